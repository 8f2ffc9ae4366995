"""Warnings of motions with derivatives that take long in Python."""

from __future__ import annotations

import time

from flexure.diagrams.checks.errors import warn

_LONG = 60.0  # seconds, beyond which somebody is told,
_STRETCH = 3.0  # looked at for so many at a time: the first steps may be short


class LongMotions:
    """Looks at the motions of one study, and warns once."""

    def __init__(self, attempt: str) -> None:
        self._attempt = attempt
        self._has_warned = False
        self._why = ""
        self._begun = self._start = self._end = 0.0
        self._mark = 0.0, 0.0
        self._stretches = 0

    def begin(self, start: float, end: float, why: str) -> None:
        """Note that a motion begins, its begin and end in seconds, and why it is not native."""
        self._start, self._end, self._why = start, end, why
        self._begun = time.perf_counter()
        self._mark = self._begun, start  # where the present stretch began
        self._stretches = 0

    def look(self, reached: float) -> None:
        """Look how far the motion is; warn, once, if the study takes more than a minute."""
        now, (before, there) = time.perf_counter(), self._mark
        if self._has_warned or now - before < _STRETCH or not reached > there:
            return
        self._mark = now, reached
        self._stretches += 1
        whole = now - self._begun + (self._end - reached) * (now - before) / (reached - there)
        if self._stretches > 1 and whole > _LONG:
            self._has_warned = True
            lasting = f"{whole / 60.0:.2g} minutes" if whole < 6e3 else f"{whole / 3600:.2g} hours"
            warn(
                f"{self._attempt.replace('Cannot', 'It takes long to', 1)}: after "
                f"{now - self._begun:.0f} s, {reached - self._start:.3g} s of "
                f"{self._end - self._start:g} s are done, and at this pace the motion takes about "
                f"{lasting}. Its derivatives are computed in Python, because {self._why}. "
                f"{self._way_out()}"
            )

    def _way_out(self) -> str:
        """Say what to do."""
        if "not installed" in self._why:
            return "Install that extra"
        if "no native loop" in self._why:
            return "Leave the method open, or use method='ESDIRK4', which runs in compiled loops"
        return "Shorten the motion, loosen rtol, or divide fewer beams"
