"""Steps whose ends are projected onto constraints: number of tries, and dense output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: How often the end of a step is projected, at most. Steps of Newton's method that are not at their
#: goal by then have begun far away from it, and might end at another one.
MOST_PROJECTIONS = 5

#: Deviations that projections do not remove, and with which no run goes on.
FAR = 1000.0
#: By how much smaller ones have to grow until they are looked at again.
ROOM = 10.0

#: Steps that are moved in units of the tolerance so much farther than they can err, so often one
#: after the other, begin with slopes that lead away from where equations hold.
PULLED, TIMES = 100.0, 5

#: Returns the state with which to go on at a time; the same object where it is fine.
Project: TypeAlias = Callable[[float, NDArray[np.float64]], NDArray[np.float64]]


class Bent:
    """The interpolant of a step whose end was moved; called like SciPy's.

    With the fraction s of the step, it adds s² (3 - 2 s) times the displacement, so that it leads
    to the new end, smoothly, and with the old slopes.
    """

    def __init__(
        self, interpolant: Any, t_old: float, t: float, displacement: NDArray[np.float64]
    ) -> None:
        self._interpolant = interpolant
        self._t_old = t_old
        self._length = t - t_old
        self._displacement = displacement

    def __call__(self, t: Any) -> NDArray[np.float64]:
        """Return the state at a time, shape (n,), or at k times, shape (n, k)."""
        s = (np.asarray(t) - self._t_old) / self._length
        bend = np.multiply.outer(self._displacement, s * s * (3.0 - 2.0 * s))
        states: NDArray[np.float64] = self._interpolant(t) + bend
        return states
