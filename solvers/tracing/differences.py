"""The Jacobian of a right-hand side by one-sided differences, and its errors at jumps.

An increment that crosses a jump gives an entry without bound. The iterations of implicit methods
then hardly move, which looks like convergence: steps grow, and a run completes with any numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_RELATIVE_INCREMENT = float(np.sqrt(np.finfo(float).eps))
_SMALLEST_SCALE = 1e-3
_PART = 0.1  # of the change that a column promises over the tolerance, and has to keep


def difference_jacobian(
    rhs: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    t: float,
    x: NDArray[np.float64],
    xdot: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Approximate the Jacobian ``J[i, j] = ∂f_i/∂x_j`` with one evaluation per state.

    Each state is moved by ``1.5e-8 max(|x_j|, 1e-3)`` in the direction in which it is about to
    move anyway, and in the other direction if the first leads out of the domain of the equations.

    ``xdot`` is ``f(t, x)``. For a smooth ``f``, about eight digits are right. A column holds NaN or
    infinity if the equations cannot be evaluated on either side.

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


def without_jumps(
    rhs: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    jacobian: NDArray[np.float64],
    t: float,
    x: NDArray[np.float64],
    tolerated: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Replace columns of a Jacobian by differences that belong to a jump of the equations.

    A column that promises a change of the derivatives larger than they are, within the tolerated
    error of its state, is compared with the change that there is. Where that is much smaller, the
    slope beyond the jump takes its place.

    ``tolerated`` are the errors of the state. The Jacobian is left as it is. A smooth ``f`` costs
    one evaluation, and one more for each column that is checked.

    Examples
    --------
    >>> import numpy as np
    >>> def friction(t, x):
    ...     return -np.sign(x)
    >>> x = np.zeros(1)
    >>> steep = difference_jacobian(friction, 0.0, x, friction(0.0, x))
    >>> abs(steep) > 1e7, without_jumps(friction, steep, 0.0, x, np.array([1e-9]))
    (array([[ True]]), array([[0.]]))
    """
    promised = jacobian * tolerated
    xdot = rhs(t, x)
    suspects = np.flatnonzero(np.abs(promised).max(axis=0) > np.abs(xdot).max())
    if suspects.size:
        jacobian = jacobian.copy()
    for j in suspects.tolist():
        there = x.copy()
        there[j] += tolerated[j]
        change = rhs(t, there) - xdot
        if not np.abs(change).max() < _PART * np.abs(promised[:, j]).max():
            continue
        slope = _column(rhs, t, there, xdot + change, j, tolerated[j])
        if np.isfinite(slope).all():
            jacobian[:, j] = slope
    return jacobian
