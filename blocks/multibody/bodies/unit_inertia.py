"""Unit moments of inertia: six numbers as a matrix, about other points, and which are possible.

The unit inertia G of a body is its inertia per mass, in m². Six numbers hold it in the order xx,
yy, zz, xy, xz, yz. They are the entries of the matrix, so the last three are the negative
products: -∫ x y dm / m and so on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import MassProperties
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import (
    Array,
    FloatArray,
    as_numbers,
    bounded,
    check_bounds,
    show,
)

# Errors of this size, relative to the greatest moment, are taken for rounding. Rotation matrices
# are accepted with the same error.
_ROUNDING = 1e-9
_NOTHING = 1e-30  # m², of a body smaller than an atomic nucleus


def mass_properties(mass: Array, com: Array, unit_inertia_six: Array) -> MassProperties:
    """Return the mass properties of a body about its origin Bo, by the parallel axis theorem.

    With c = p_BoBcm and the unit inertia G about Bcm::

        I_BBo = m (G + c · c 1 - c cᵀ)

    The unit inertia has six numbers as above.

    >>> mass_properties(2.0, [1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.5]).inertia
    array([[2., 0., 0.],
           [0., 4., 1.],
           [0., 1., 4.]])
    """
    x, y, z = center = scalars.array(com)
    xx, yy, zz, xy, xz, yz = unit_inertia_six
    unit_inertia = symmetric_matrix(
        [
            xx + (y * y + z * z),
            yy + (z * z + x * x),
            zz + (x * x + y * y),
            xy - x * y,
            xz - x * z,
            yz - y * z,
        ]
    )
    return MassProperties(mass, center, mass * unit_inertia)


def validity_problem(unit_inertia_six: FloatArray) -> str | None:
    """Say why six numbers cannot be the unit inertia of a body about its center of mass.

    It states what is wrong with the principal moments; None for the inertia of a possible body.

    >>> validity_problem(np.array([1.0, 1.0, 2.0, 0.0, 0.0, 0.0])) is None
    True
    >>> validity_problem(np.array([1.0, 1.0, 3.0, 0.0, 0.0, 0.0]))
    'principal moments [1, 1, 3], of which the greatest exceeds the sum of the others'
    """
    if not np.isfinite(unit_inertia_six).all():
        return f"{show(unit_inertia_six)}, which is not finite"
    moments = np.linalg.eigvalsh(symmetric_matrix(unit_inertia_six))
    tolerance = _ROUNDING * np.max(np.abs(moments)) + _NOTHING
    if moments[0] < -tolerance:
        return f"principal moments {show(moments)}, of which the smallest is negative"
    if moments[0] + moments[1] < moments[2] - tolerance:
        return (
            f"principal moments {show(moments)}, of which the greatest exceeds the sum of the"
            " others"
        )
    return None


def symmetric_matrix(six: Array) -> Array:
    """Return the matrix with the entries xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = six
    return scalars.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def checked_mass(mass: float, attempt: str) -> float:
    """Return a mass that is finite and not negative, else raise."""
    return bounded(mass, f"{attempt} with the mass", lower=0.0, unit="kg")


def checked_inertia(inertia: npt.ArrayLike, attempt: str) -> FloatArray:
    """Return the entries xx, yy, zz, xy, xz, yz of a finite, symmetric matrix, else raise."""
    numbers = as_numbers(inertia, attempt)
    check_bounds(numbers, f"{attempt} with the inertia")
    if numbers.shape == (6,):
        return numbers
    if numbers.shape == (3,):
        return np.concatenate([numbers, np.zeros(3)])
    if numbers.shape != (3, 3):
        raise ValueRefusedError(
            attempt,
            expected="an inertia of shape (3, 3), (3,) or (6,)",
            found=f"one of shape {numbers.shape}",
        )
    if np.max(np.abs(numbers - numbers.T)) > _ROUNDING * np.max(np.abs(numbers)):
        raise ValueRefusedError(
            attempt, expected="a symmetric inertia", found=f"{numbers.tolist()}"
        )
    mean = 0.5 * (numbers + numbers.T)
    return np.concatenate([np.diag(mean), mean[[0, 0, 1], [1, 2, 2]]])
