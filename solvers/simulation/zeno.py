"""Telling events that pile up at one instant from events that are merely frequent."""

from __future__ import annotations

from collections import deque

from flexure.diagrams.errors import ZenoError

_EVENTS = 12  # that are needed for a verdict
_SAME_INSTANT = 1e-11  # relative to the time, or in seconds below one second
_STILL_TO_COME = 1e-6  # as a part of what has been covered


class PileUp:
    """Watches the times of one kind of event.

    Events pile up when a dozen of them happen at one instant, to within rounding. They also do
    when their distances shrink steadily, and the sum of the distances still to come, if they go on
    to shrink like that, is a millionth of the distance covered so far.

    Examples
    --------
    >>> hops, regular = PileUp(), PileUp()
    >>> any(hops.add(1.0 - 0.5**k) for k in range(30))
    True
    >>> any(regular.add(1e-6 * k) for k in range(1000))
    False
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_EVENTS)
        self._ratios: deque[float] = deque(maxlen=_EVENTS)  # of successive distances, all below 1
        self._begin = 0.0  # of the steady shrinking
        self._distance = 0.0
        self._blurred = 0  # in a row

    def add(self, time: float, *, blurred: bool = False) -> bool:
        """Note an event, and tell whether events pile up."""
        self._blurred = self._blurred + 1 if blurred else 0
        last = self._times[-1] if self._times else time
        distance = time - last
        if 0.0 < distance < self._distance:
            self._ratios.append(distance / self._distance)
        else:
            self._ratios.clear()
            self._begin = last
        self._distance = distance
        self._times.append(time)
        too_many = self._blurred >= _EVENTS
        return too_many or self._is_one_instant(time) or self._converges(time)

    def _is_one_instant(self, now: float) -> bool:
        full = len(self._times) == _EVENTS
        return full and now - self._times[0] <= _SAME_INSTANT * max(1.0, abs(now))

    def _converges(self, now: float) -> bool:
        if len(self._ratios) < _EVENTS:
            return False
        ratio = max(self._ratios)
        return self._distance * ratio < _STILL_TO_COME * (now - self._begin) * (1.0 - ratio)


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
