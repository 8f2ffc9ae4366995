"""Telling events that pile up at one instant from events that are merely frequent."""

from __future__ import annotations

from typing import Any

from flexure.diagrams.checks.errors import ZenoError
from flexure.solvers.native.kernels.runs.zeno_detection import WATCH_SIZE, piles_up


class PileUp:
    """Watches the times of one kind of event.

    When these pile up, `flexure.solvers.native.kernels.runs.zeno_detection` says.

    Examples
    --------
    >>> hops, regular = PileUp(), PileUp()
    >>> any(hops.add(1.0 - 0.5**k) for k in range(30))
    True
    >>> any(regular.add(1e-6 * k) for k in range(1000))
    False
    """

    def __init__(self) -> None:
        self._watch: Any = [0.0] * WATCH_SIZE

    def add(self, time: float, *, blurred: bool = False) -> bool:
        """Note an event, and tell whether events pile up."""
        return piles_up(self._watch, time, blurred)


def zeno_error(label: str, time: float, found: str, remedy: str = "") -> ZenoError:
    """Return the error of a system that does not get past a time."""
    error = ZenoError(
        f"Cannot advance '{label}' past t = {time:.9g}",
        expected="finitely many events in a finite time",
        found=found,
        remedy=f"{(remedy and remedy + '; or let') or 'Let'} the update end the motion when it "
        "becomes small (for a bouncing ball, below a speed threshold), or give a relay some "
        "hysteresis",
    )
    error.time = time
    return error
