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

__all__ = ["rounding_errors", "shortened_by_rounding"]

Array = NDArray[np.float64]

_RAYS = 3  # of which one may meet a kink
_ORDER = 6  # of differences
_ASIDE = 0.1  # of what is tolerated, where rays begin, so that a jump at the state is on none
_LARGEST = 3.0  # rounding errors, in standard deviations
_NOTED = 0.1  # part of the error that a method allows, from which on rounding keeps steps short


def rounding_errors(
    rhs: Callable[[float, Array], Array], t: float, x: Array, tolerated: Array
) -> Array:
    """Return the rounding errors of derivatives near a state."""
    random = np.random.default_rng(0)
    sides = random.choice((-1.0, 1.0), (_RAYS, x.size)) * random.uniform(0.5, 1.0, (_RAYS, x.size))
    along = 1.0 + np.arange(_ORDER + 1.0) / _ORDER
    found = [[rhs(t, x + part * _ASIDE * tolerated * ray) for part in along] for ray in sides]
    differences = np.diff(np.array(found, dtype=float), _ORDER, axis=1)[:, 0]
    deviations = np.abs(differences) / math.sqrt(math.comb(2 * _ORDER, _ORDER))
    errors: Array = _LARGEST * np.median(deviations, axis=0)
    return errors


def shortened_by_rounding(
    rhs: Callable[[float, Array], Array],
    t: float,
    x: Array,
    h: float,
    tolerated: Array,
    solver: Any = None,
) -> str:
    """Say how much of the error that a method allows in a step is rounding, if that is much.

    Parameters
    ----------
    rhs : callable
        The right-hand side ``f(t, x)``.
    t : float
        Time at the end of a step, in seconds.
    x : ndarray, shape (n,)
        The state there.
    h : float
        Length of the step, in seconds.
    tolerated : ndarray, shape (n,)
        Errors of the state that are tolerated.
    solver : OdeSolver or type, optional
        The method; those that iterate allow a part of these errors, their ``newton_tol``.

    Returns
    -------
    str
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
