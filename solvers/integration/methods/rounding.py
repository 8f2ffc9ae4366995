"""How much rounding errors of the equations add to the error of a step.

States are stored with rounding errors, which stiff equations enlarge: the force of 10⁹ N/m is known
to 10⁻⁷ N where positions are of the order of a meter. Where an integrator tolerates less than what
such an error of the force moves in a step, its steps become very short.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["rounding_errors", "shortened_by_rounding"]

Array = NDArray[np.float64]

_STATES = 3  # rounded otherwise, of which the largest change counts
_ASIDE = 0.1  # of what is tolerated: that far from the state no jump is mistaken for rounding


def rounding_errors(
    rhs: Callable[[float, Array], Array], t: float, x: Array, tolerated: Array
) -> Array:
    """Return how much derivatives change with the last digits of the states near a state."""
    random = np.random.default_rng(0)
    signs = random.choice((-1.0, 1.0), (_STATES, x.size))
    near = x + _ASIDE * tolerated * random.uniform(-1.0, 1.0, x.size)
    here = np.array(rhs(t, near.copy()), dtype=float)
    changes = [rhs(t, near + sign * np.spacing(np.abs(near))) - here for sign in signs]
    errors: Array = np.max(np.abs(changes), axis=0)
    return errors


def shortened_by_rounding(
    rhs: Callable[[float, Array], Array], t: float, x: Array, h: float, tolerated: Array
) -> str:
    """Say by how much rounding makes a larger error in a step than is tolerated, if it does.

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
    if not 1.0 < share < np.inf:
        return ""
    return (
        f"rounding errors of the equations alone make {share:.2g} times the error that"
        f" rtol and atol tolerate in a step of {h:.3g} s"
    )
