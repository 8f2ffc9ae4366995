"""The Jacobian of a right-hand side by one-sided differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["difference_jacobian"]

_RELATIVE_INCREMENT = float(np.sqrt(np.finfo(float).eps))
_SMALLEST_SCALE = 1e-3


def difference_jacobian(
    rhs: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    t: float,
    x: NDArray[np.float64],
    xdot: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Approximate the Jacobian ``J[i, j] = ∂f_i/∂x_j`` with one evaluation per state.

    Each state is moved by ``1.5e-8 max(|x_j|, 1e-3)`` in the direction in which it is about to
    move anyway, and in the other direction if the first leads out of the domain of the equations.

    Parameters
    ----------
    rhs : callable
        The right-hand side ``f(t, x)``.
    t : float
        Time, in seconds.
    x : ndarray, shape (n,)
        State.
    xdot : ndarray, shape (n,)
        The derivative ``f(t, x)``, known already.

    Returns
    -------
    ndarray, shape (n, n)
        Accurate to about eight digits for a smooth ``f``. A column holds NaN or infinity if the
        equations cannot be evaluated on either side.

    Examples
    --------
    >>> import numpy as np
    >>> def pendulum(t, x):
    ...     return np.array([x[1], -np.sin(x[0])])
    >>> x = np.zeros(2)
    >>> difference_jacobian(pendulum, 0.0, x, pendulum(0.0, x))
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    increments = _RELATIVE_INCREMENT * np.maximum(np.abs(x), _SMALLEST_SCALE)
    increments = np.where(xdot < 0.0, -increments, increments)
    jacobian = np.empty((x.size, x.size))
    for j, increment in enumerate(increments):
        jacobian[:, j] = _column(rhs, t, x, xdot, j, increment)
        if not np.isfinite(jacobian[:, j]).all():
            jacobian[:, j] = _column(rhs, t, x, xdot, j, -increment)
    return jacobian


def _column(
    rhs: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    t: float,
    x: NDArray[np.float64],
    xdot: NDArray[np.float64],
    j: int,
    increment: float,
) -> NDArray[np.float64]:
    """Difference quotient in one state, with the increment that floating point really makes."""
    moved = x.copy()
    moved[j] += increment
    quotient: NDArray[np.float64] = (rhs(t, moved) - xdot) / (moved[j] - x[j])
    return quotient
