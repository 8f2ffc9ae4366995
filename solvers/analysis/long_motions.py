"""A word, in time, about motions with derivatives that will take long in Python."""

from __future__ import annotations

import time

from flexure.diagrams.errors import warn

_LONG = 60.0  # seconds, beyond which somebody is told,
_EARLY = 2.0  # after so many, since the first steps may be short


class LongMotions:
    """Looks at the motions of one study, and warns once.

    Parameters
    ----------
    attempt : str
        What the study attempts.
    """

    def __init__(self, attempt: str) -> None:
        self._attempt = attempt
        self._has_warned = False
        self._why = ""
        self._spent = 0.0  # in earlier motions
        self._begun = self._start = self._end = 0.0

    def begin(self, start: float, end: float, why: str) -> None:
        """Note that a motion begins.

        Parameters
        ----------
        start, end : float
            Where it begins and ends, in seconds.
        why : str
            Why it is not native.
        """
        self._start, self._end, self._why = start, end, why
        self._begun = time.perf_counter()

    def look(self, reached: float) -> None:
        """Look how far the motion is; warn, once, if the study takes more than a minute.

        Warns
        -----
        UserWarning
            With the reason and a way out.
        """
        spent = time.perf_counter() - self._begun
        if self._has_warned or spent < _EARLY or not reached > self._start:
            return
        whole = spent * (self._end - self._start) / (reached - self._start)
        if whole > _LONG:
            self._has_warned = True
            minutes = f"{whole / 60.0:.2g} minutes" if whole < 6e3 else "hours"
            warn(
                f"{self._attempt.replace('Cannot', 'Slow to', 1)}: after {spent:.0f} s, "
                f"{reached - self._start:.3g} s of {self._end - self._start:g} s are done, so that "
                f"one motion takes about {minutes}. Its derivatives are computed in Python, "
                f"because {self._why}. {self._way_out()}"
            )

    def _way_out(self) -> str:
        """Say what to do."""
        if "not installed" in self._why:
            return "Install that extra"
        if "no native loop" in self._why:
            return "Leave the method open, or take method='ESDIRK4', which compiled loops can carry"
        return "Shorten the motion, loosen rtol, or divide fewer beams"


__all__ = ["LongMotions"]
