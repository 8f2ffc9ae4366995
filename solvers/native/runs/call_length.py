"""How far native code goes in one call, so that the interrupt key is heard within a moment."""

from __future__ import annotations

import math

_MOMENT = 0.1  # seconds that a call may take
_OPERATION = 2e-9  # seconds, guessed before anything is measured


class CallLength:
    """The number of steps, or other pieces of work, of the next call, at most ``most``.

    ``work`` are the operations of one piece, roughly; too many make the first call too short.
    """

    __slots__ = ("_most", "length")

    def __init__(self, most: int, work: float) -> None:
        self._most = most
        # The number; at least one.
        self.length = self._within(_MOMENT / (_OPERATION * max(work, 1.0)))

    def measured(self, pieces: int, seconds: float) -> None:
        """Take into account how long a call took."""
        if seconds > 0.0 and (seconds > _MOMENT or self.length < self._most):
            wanted = max(pieces, 1) * _MOMENT / seconds
            self.length = self._within(min(wanted, 8.0 * self.length))

    def _within(self, wanted: float) -> int:
        return max(1, math.floor(min(wanted, self._most)))
