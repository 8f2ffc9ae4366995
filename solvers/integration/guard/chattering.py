"""Finds the jump of the equations at which a motion chatters.

Where equations jump at a surface, and lead back to it from both sides, a motion cannot leave it:
an integrator goes to and fro with tiny steps. Such a jump is looked for straight ahead of a step,
along the line on which the motion would go on, by halving it where the derivatives change most.
A jump stays as large as it is when the line gets shorter and shorter; what stiff equations do on a
line, which need tiny steps as well, is in proportion to its length. Rounding turns smooth equations
into stairs of equal heights; these are no jumps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexure.solvers.integration.methods.rounding import rounding_errors

Array = NDArray[np.float64]
Point = tuple[float, Array, Array]  # time, state, derivatives

LOOKS = 16  # steps in a row ahead of which a jump is looked for
_REACH = 10.0  # steps that are looked ahead, as much as a step may grow
_HALVINGS = 40
_FIRST_GLANCE = 10  # halvings after which smooth equations are given up
_STEEPENING = 4.0  # which they then do not exceed
_STEEPER = 100.0  # by which the equations are to be steeper at the jump than on the whole line
_ROUNDING = 10.0  # times the rounding errors, up to which a jump is one of them
_LEAST_INFLUENCE = 1e-8  # of the jump on a step, in units of the tolerance


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump at which a motion chatters."""

    # before, after: time, state and derivatives on both sides.
    before: Point
    after: Point
    state: int  # index of the derivative that jumps most, in units of the tolerance


def find_jump(
    rhs: Callable[[float, Array], Array], t: float, x: Array, h: float, tolerated: Array
) -> Jump | None:
    """Find a jump of ``rhs`` straight ahead that leads back to itself from both sides.

    ``t`` in seconds and ``x`` are the end of a step of length ``h``, and ``tolerated`` are the
    errors of the state. None, too, where equations refuse to be evaluated ahead of the motion.
    """
    try:
        with np.errstate(all="ignore"):
            return _jump_ahead(rhs, t, x, h, tolerated)
    except Exception:
        return None


def _jump_ahead(
    rhs: Callable[[float, Array], Array], t: float, x: Array, h: float, tolerated: Array
) -> Jump | None:

    def change(a: Point, b: Point) -> float:
        return float(np.linalg.norm((b[2] - a[2]) / tolerated))

    def ahead(point: Point, lapse: float) -> Point:
        later = point[0] + lapse
        there = point[1] + lapse * point[2]
        return later, there, np.array(rhs(later, there.copy()), dtype=float)

    here = (t, x, np.array(rhs(t, x.copy()), dtype=float))
    before, after = here, ahead(here, _REACH * h)
    whole = change(before, after)
    if not _LEAST_INFLUENCE <= _REACH * h * whole < np.inf:
        return None
    low, high, steeper = 0.0, 1.0, 1.0
    for halvings in range(1, _HALVINGS + 1):
        middle = 0.5 * (low + high)
        point = ahead(here, middle * _REACH * h)
        if change(before, point) > change(point, after):
            after, high = point, middle
        else:
            before, low = point, middle
        steeper = change(before, after) / whole / (high - low)
        if halvings == _FIRST_GLANCE and not steeper > _STEEPENING:
            return None
    beyond, back = ahead(before, h), ahead(after, h)
    leads_on = change(beyond, after) < change(beyond, before)
    leads_back = change(back, before) < change(back, after)
    if not (steeper > _STEEPER and leads_on and leads_back):
        return None
    jumps = np.abs(after[2] - before[2])
    state = int(np.argmax(jumps / tolerated))
    if jumps[state] <= _ROUNDING * rounding_errors(rhs, *before[:2], tolerated)[state]:
        return None
    return Jump(before, after, state)
