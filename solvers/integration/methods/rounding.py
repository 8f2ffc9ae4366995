"""How much rounding errors of the equations add to the error of a step.

States are stored with rounding errors, which stiff equations enlarge: the force of 10⁹ N/m is known
to 10⁻⁷ N where positions are of the order of a meter. Differences of nearly equal numbers make
stairs of what is smooth. Where an integrator tolerates less than what such an error of the force
moves in a step, its steps become very short.

Rounding is measured as high differences along rays, to which smooth equations contribute next to
nothing (Moré and Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33, 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LINES = 3  # of which one may meet a kink; a surface near the state is on one side of it
_POINTS = 12  # on each side
_ORDER, _BEFORE = 8, 4  # of differences, which are as large in both orders if they are of rounding
_SMOOTH = 10.0  # times as large in the lower order, where they come from the curvature of equations
_LARGEST = 3.0  # rounding errors, in standard deviations
_NOTED = 0.1  # part of the error that a method allows, from which on rounding keeps steps short


def rounding_errors(
    rhs: Callable[[float, Array], Array], t: float, x: Array, tolerated: Array
) -> Array:
    """Return the rounding errors of derivatives near a state."""
    random = np.random.default_rng(0)
    signs = random.choice((-1.0, 1.0), (_LINES, x.size))
    lines = tolerated * signs * random.uniform(0.5, 1.0, signs.shape)
    along = np.linspace(1.0, 2.0, _POINTS)  # away from the state, and a jump there
    found = [[[rhs(t, x + s * k * line) for k in along] for s in (-1.0, 1.0)] for line in lines]
    values = np.array(found, dtype=float)
    before, deviations = _deviations(values, _BEFORE), _deviations(values, _ORDER)
    errors: Array = np.where(before < _SMOOTH * deviations, _LARGEST * deviations, 0.0)
    return errors


def _deviations(values: Array, order: int) -> Array:
    """Return the standard deviations of values on rays that make their differences."""
    squares = np.mean(np.diff(values, order, axis=2) ** 2, axis=2) / math.comb(2 * order, order)
    deviations: Array = np.sqrt(np.median(np.min(squares, axis=1), axis=0))
    return deviations


def shortened_by_rounding(
    rhs: Callable[[float, Array], Array],
    t: float,
    x: Array,
    h: float,
    tolerated: Array,
    solver: Any = None,
) -> str:
    """Say how much of the error that a method allows in a step is rounding, if that is much.

    ``t`` in seconds and ``x`` are the end of a step of length ``h``, and ``tolerated`` are the
    errors of the state. Methods that iterate allow a part of these errors, their ``newton_tol``.
    Nothing, too, where equations cannot be evaluated.
    """
    try:
        with np.errstate(all="ignore"):
            largest = rounding_errors(rhs, t, x, tolerated)
            share = h * float(np.sqrt(np.mean((largest / tolerated) ** 2)))
    except Exception:
        return ""
    allowed = getattr(solver, "newton_tol", 1.0)
    if not _NOTED * allowed < share < np.inf:
        return ""
    whose = "rtol and atol tolerate" if allowed == 1.0 else "its iterations may leave"
    return (
        f"rounding errors of the equations alone make {share / allowed:.2g} times the error that"
        f" {whose} in a step of {h:.3g} s"
    )
