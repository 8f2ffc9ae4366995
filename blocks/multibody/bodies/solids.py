"""Lengths, volumes and unit moments of inertia of solids, for `SpatialInertia` and `BodyShape`.

The unit inertia G of a body is its inertia per mass, in m². Six numbers hold it in the order xx,
yy, zz, xy, xz, yz. They are the entries of the matrix, so the last three are the negative
products: -∫ x y dm / m and so on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies.meshes import Mesh, solid_moments
from flexure.blocks.signals.argument_shapes import Axis, is_axis
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import (
    Array,
    FloatArray,
    as_number,
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


class Solid(NamedTuple):
    """A solid of uniform density; all but meshes are around the origin, along principal axes."""

    what: str  # its name, for errors
    kind: str  # how it is drawn: ``"rod"``, ``"box"``, ``"ellipsoid"``, ``"tube"`` or ``"capsule"``
    size: tuple[float, ...]  # its lengths in m, as a `Primitive` of that kind has them
    # Moments of inertia, or inertia, about its center per mass, in m², shape (3,) or (3, 3).
    moments: FloatArray
    volume: float = 0.0  # in m³; zero for lines and surfaces
    axis: Axis = "z"  # the axis of symmetry, where there is one
    center: tuple[float, ...] = (0.0, 0.0, 0.0)  # its center of mass in m


def mesh(surface: Mesh) -> Solid:
    """Return what a closed surface encloses."""
    what = "a solid of a mesh"
    volume, center, inertia = solid_moments(surface, f"Cannot make {what}")
    return Solid(what, "mesh", (), inertia, volume, center=_numbers(center))


def rod(length: float, axis: Axis) -> Solid:
    """Return a straight line."""
    what = "a thin rod"
    length = _length(length, "length", what)
    return Solid(what, "rod", (length,), _around(axis, 0.0, length**2 / 12.0, what), axis=axis)


def plate(size: npt.ArrayLike, normal: Axis) -> Solid:
    """Return a rectangle."""
    what = "a thin plate"
    extents = np.zeros(3)
    extents[~_is_axis(normal, what)] = _lengths(size, 2, "size", what)
    return Solid(what, "box", _numbers(extents), _sum_of_others(extents**2) / 12.0)


def shell(radius: float) -> Solid:
    """Return the surface of a ball."""
    what = "a hollow sphere"
    r = _length(radius, "radius", what)
    return Solid(what, "ellipsoid", (r, r, r), np.full(3, 2.0 / 3.0 * r**2))


def box(size: npt.ArrayLike) -> Solid:
    """Return a box."""
    what = "a solid box"
    extents = _lengths(size, 3, "size", what)
    moments = _sum_of_others(extents**2) / 12.0
    return Solid(what, "box", _numbers(extents), moments, float(np.prod(extents)))


def ball(radius: float) -> Solid:
    """Return a ball."""
    what = "a solid sphere"
    r = _length(radius, "radius", what)
    return Solid(what, "ellipsoid", (r, r, r), np.full(3, 0.4 * r**2), 4.0 / 3.0 * np.pi * r**3)


def ellipsoid(semi_axes: npt.ArrayLike) -> Solid:
    """Return an ellipsoid."""
    what = "a solid ellipsoid"
    halves = _lengths(semi_axes, 3, "semi_axes", what)
    volume = 4.0 / 3.0 * np.pi * float(np.prod(halves))
    return Solid(what, "ellipsoid", _numbers(halves), _sum_of_others(halves**2) / 5.0, volume)


def cylinder(radius: float, length: float, axis: Axis) -> Solid:
    """Return a cylinder."""
    what = "a solid cylinder"
    r = _length(radius, "radius", what)
    length = _length(length, "length", what)
    moments = _around(axis, 0.5 * r**2, (3.0 * r**2 + length**2) / 12.0, what)
    return Solid(what, "tube", (0.0, r, length), moments, np.pi * r**2 * length, axis)


def tube(inner_radius: float, outer_radius: float, length: float, axis: Axis) -> Solid:
    """Return a cylinder with a bore."""
    what = "a hollow cylinder"
    inner = _length(inner_radius, "inner_radius", what)
    outer = _length(outer_radius, "outer_radius", what)
    length = _length(length, "length", what)
    if inner > outer:
        raise ValueRefusedError(
            f"Cannot make {what}",
            expected="an inner radius that is at most the outer one",
            found=f"{inner:g} m and {outer:g} m",
        )
    squares = inner**2 + outer**2
    moments = _around(axis, 0.5 * squares, (3.0 * squares + length**2) / 12.0, what)
    volume = np.pi * (outer**2 - inner**2) * length
    return Solid(what, "tube", (inner, outer, length), moments, volume, axis)


def capsule(radius: float, length: float, axis: Axis) -> Solid:
    """Return a cylinder with a half ball on each end."""
    what = "a solid capsule"
    r = _length(radius, "radius", what)
    length = _length(length, "length", what)
    mu = length / (length + 4.0 / 3.0 * r)
    about = mu * 0.5 * r**2 + (1.0 - mu) * 0.4 * r**2
    ends = 0.4 * r**2 + 0.375 * r * length + 0.25 * length**2
    across = mu * (3.0 * r**2 + length**2) / 12.0 + (1.0 - mu) * ends
    volume = np.pi * r**2 * (length + 4.0 / 3.0 * r)
    moments = _around(axis, about, across, what)
    return Solid(what, "capsule", (r, length), moments, volume, axis)


def _numbers(lengths: FloatArray) -> tuple[float, ...]:
    return tuple(lengths.tolist())


def _sum_of_others(squares: FloatArray) -> FloatArray:
    """Return the sum of the two other entries, for each entry."""
    x, y, z = squares
    return np.array([y + z, z + x, x + y])


#: In m; the product of three lengths is still a number.
_LONGEST = 1e100


def _lengths(value: npt.ArrayLike, size: int, name: str, what: str) -> FloatArray:
    """Return lengths that are finite and positive, else raise."""
    attempt = f"Cannot make {what} with {name}"
    lengths: FloatArray = as_number(value, (size,), attempt)
    check_bounds(lengths, attempt, lower=0.0, upper=_LONGEST, exclusive=True, unit="m")
    return lengths


def _length(value: float, name: str, what: str) -> float:
    """Return one length that is finite and positive, else raise."""
    return float(_lengths(value, 1, name, what)[0])


def _is_axis(axis: str, what: str) -> npt.NDArray[np.bool_]:
    """Return for each axis whether it is the one of a shape."""
    return is_axis(axis, f"Cannot make {what}", "Turn it with rotated() for any other axis")


def _around(axis: str, about: float, across: float, what: str) -> FloatArray:
    """Return the three moments of a body of revolution."""
    return np.where(_is_axis(axis, what), about, across)
