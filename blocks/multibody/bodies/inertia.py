"""Mass, center of mass and inertia of a rigid body, checked to be physical."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies import solids
from flexure.blocks.multibody.bodies.body_motion import checked_pose
from flexure.blocks.multibody.bodies.body_shape import BodyShape, require_shape, shape_of
from flexure.blocks.multibody.bodies.meshes import read_mesh
from flexure.blocks.multibody.bodies.solids import (
    checked_inertia,
    checked_mass,
    mass_properties,
    symmetric_matrix,
    validity_problem,
)
from flexure.blocks.signals.argument_shapes import Axis
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import Array, FloatArray, as_finite, as_number, bounded, show


@dataclass(frozen=True, init=False, repr=False)
class SpatialInertia:
    """Mass, center of mass and inertia of a rigid body B; checked to be physical.

    Let λ₁ <= λ₂ <= λ₃ be the principal moments about the center of mass. A body of positive mass
    has moments with::

        λ₁ >= 0  and  λ₁ + λ₂ >= λ₃

    and a body without mass has no inertia either. Objects of this class do not change: what moves
    or combines them returns another one.

    Parameters
    ----------
    mass : float
        Mass m >= 0 in kg.
    com : array_like, shape (3,)
        Position p_BoBcm of the center of mass, expressed in the body frame, in m.
    inertia : array_like, shape (3, 3), (3,) or (6,)
        Inertia about the center of mass, expressed in the body frame, in kg m²: the matrix, the
        moments about axes that are principal, or the entries xx, yy, zz, xy, xz, yz.

    Attributes
    ----------
    mass : float
        Mass in kg.
    com : array, shape (3,)
        Position of the center of mass in m.
    inertia : array, shape (3, 3)
        Inertia about the center of mass, expressed in the body frame, in kg m².
    unit_inertia : array, shape (3, 3)
        The same per mass, in m²; zero for a body without mass.
    unit_inertia_six : array, shape (6,)
        Its entries xx, yy, zz, xy, xz, yz.
    shape : BodyShape
        What the body looks like, as far as the constructors named after solids, and what moves and
        combines their results, know it: decoration, which is no part of equality.

    Raises
    ------
    ValueRefusedError
        When a number is not finite, the mass is negative, or the inertia is not symmetric, has
        a negative principal moment, violates the triangle inequality, or has no mass.

    See Also
    --------
    PlantBuilder.add_body : Add a body with this inertia.

    Notes
    -----
    Rounding is tolerated up to 10⁻⁹ of the greatest moment.

    The constructors named after solids put the center of mass at the origin, and the axes of
    symmetry along those of the body frame; `moved`, `shifted`, `rotated` and ``+`` make bodies of
    them. Their lengths are passed by keyword, and solids accept ``density`` instead of ``mass``.

    Examples
    --------
    A hammer along z, of wood and of steel, and its moments about the origin, where it is held:

    >>> handle = SpatialInertia.solid_cylinder(density=700.0, radius=0.015, length=0.3)
    >>> head = SpatialInertia.solid_box(0.5, size=(0.1, 0.025, 0.025)).shifted([0.0, 0.0, 0.3])
    >>> hammer = handle.shifted([0.0, 0.0, 0.15]) + head
    >>> hammer.com
    array([0.        , 0.        , 0.26566216])
    >>> np.diag(hammer.about_origin().inertia)
    array([0.04951364, 0.04990427, 0.00045941])
    """

    mass: float
    _com: tuple[float, ...]
    _unit_inertia: tuple[float, ...]
    shape: BodyShape = field(compare=False)

    def __init__(
        self,
        mass: float,
        com: npt.ArrayLike = (0.0, 0.0, 0.0),
        inertia: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        attempt = "Cannot make SpatialInertia"
        m = checked_mass(mass, attempt)
        center = as_finite(com, (3,), f"{attempt} with the center of mass", unit="m")
        six = checked_inertia(inertia, attempt)
        if m == 0.0 and six.any():
            raise ValueRefusedError(
                attempt, expected="no inertia where there is no mass", found=f"inertia {show(six)}"
            )
        with np.errstate(over="ignore"):  # the check of the quotient names what is infinite
            six = six / m if m else six
        self._hold(m, center, six, BodyShape(), attempt)

    def _hold(
        self, mass: float, com: FloatArray, six: FloatArray, shape: BodyShape, attempt: str
    ) -> None:
        """Take over numbers of which the mass is checked already."""
        problem = validity_problem(six)
        if problem is not None:
            raise ValueRefusedError(
                attempt,
                expected="principal moments of inertia >= 0, none greater than the sum of the"
                " others",
                found=f"those per mass: {problem}",
                remedy="Give the inertia about the center of mass, with the off-diagonal entries"
                " of the matrix, which are negative products of inertia",
            )
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "_com", tuple(com.tolist()))
        object.__setattr__(self, "_unit_inertia", tuple(six.tolist()))
        object.__setattr__(self, "shape", shape)

    @classmethod
    def _of(
        cls, mass: float, com: Array, unit_inertia: Array, shape: BodyShape, attempt: str
    ) -> SpatialInertia:
        """Return the inertia with a unit inertia, as a matrix or as moments, about the center."""
        made = object.__new__(cls)
        six = checked_inertia(unit_inertia, attempt)
        center = as_number(com, (3,), attempt)
        made._hold(mass, center, six if mass else np.zeros(6), shape, attempt)
        return made

    @classmethod
    def _uniform(
        cls,
        solid: solids.Solid,
        mass: float | None,
        density: float | None = None,
        shape: BodyShape | None = None,
    ) -> SpatialInertia:
        """Return a solid that has the mass or the density."""
        attempt = f"Cannot make {solid.what}"
        if (mass is None) == (density is None):
            raise DeclarationError(
                attempt,
                expected="either mass or density",
                found="neither of them" if mass is None else "both of them",
            )
        if mass is None:
            what = f"{attempt} with the density"
            rho = bounded(density, what, lower=0.0, unit="kg/m^3")
            mass = rho * solid.volume
        m = checked_mass(mass, attempt)
        shape = shape_of(solid) if shape is None else shape
        return cls._of(m, np.array(solid.center), solid.moments, shape, attempt)

    # Particles and solids --------------------------------------------------------------------

    @classmethod
    def point_mass(cls, mass: float) -> SpatialInertia:
        """Return a particle of a mass in kg at the origin, which has no inertia about it."""
        return cls(mass).with_shape(BodyShape.point())

    @classmethod
    def thin_rod(cls, mass: float, *, length: float, axis: Axis = "z") -> SpatialInertia:
        """Return a straight line of mass, with l²/12 across its axis and 0 about it.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        length : float
            Length l > 0 in m.
        axis : {"x", "y", "z"}
            The axis it lies along.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.rod(length, axis), mass)

    @classmethod
    def thin_plate(cls, mass: float, *, size: npt.ArrayLike, normal: Axis = "z") -> SpatialInertia:
        """Return a rectangle of mass: a box without thickness.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        size : array_like, shape (2,)
            Extents > 0 in m along the two other axes, in the order x, y, z.
        normal : {"x", "y", "z"}
            The axis it is perpendicular to.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.plate(size, normal), mass)

    @classmethod
    def hollow_sphere(cls, mass: float, *, radius: float) -> SpatialInertia:
        """Return a sphere of mass without thickness, with 2r²/3 about each axis.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        radius : float
            Radius r > 0 in m.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.shell(radius), mass)

    @classmethod
    def solid_box(
        cls, mass: float | None = None, *, size: npt.ArrayLike, density: float | None = None
    ) -> SpatialInertia:
        """Return a box, with (b² + c²)/12 about the axis along a.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        size : array_like, shape (3,)
            Extents a, b, c > 0 along x, y, z in m.
        density : float
            Density >= 0 in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia

        Examples
        --------
        >>> SpatialInertia.solid_box(12.0, size=(1.0, 2.0, 3.0))
        SpatialInertia(12.0, com=(0.0, 0.0, 0.0), inertia=(13.0, 10.0, 5.0, 0.0, 0.0, 0.0))
        """
        return cls._uniform(solids.box(size), mass, density)

    @classmethod
    def solid_sphere(
        cls, mass: float | None = None, *, radius: float, density: float | None = None
    ) -> SpatialInertia:
        """Return a ball, with 2r²/5 about each axis.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        radius : float
            Radius r > 0 in m.
        density : float
            Density >= 0 in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.ball(radius), mass, density)

    @classmethod
    def solid_ellipsoid(
        cls, mass: float | None = None, *, semi_axes: npt.ArrayLike, density: float | None = None
    ) -> SpatialInertia:
        """Return an ellipsoid, with (b² + c²)/5 about the axis along a.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        semi_axes : array_like, shape (3,)
            Half of its extents, a, b, c > 0, along x, y, z in m.
        density : float
            Density >= 0 in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.ellipsoid(semi_axes), mass, density)

    @classmethod
    def solid_cylinder(
        cls,
        mass: float | None = None,
        *,
        radius: float,
        length: float,
        axis: Axis = "z",
        density: float | None = None,
    ) -> SpatialInertia:
        """Return a cylinder, with r²/2 about its axis and (3r² + l²)/12 across.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        radius, length : float
            Radius r > 0 and length l > 0 in m.
        axis : {"x", "y", "z"}
            Its axis of symmetry.
        density : float
            Density >= 0 in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.cylinder(radius, length, axis), mass, density)

    @classmethod
    def hollow_cylinder(
        cls,
        mass: float | None = None,
        *,
        inner_radius: float,
        outer_radius: float,
        length: float,
        axis: Axis = "z",
        density: float | None = None,
    ) -> SpatialInertia:
        """Return a tube, with (a² + b²)/2 about its axis and (3a² + 3b² + l²)/12 across.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        inner_radius, outer_radius, length : float
            Radii 0 < a <= b and length l > 0 in m; with a = b the wall has no thickness.
        axis : {"x", "y", "z"}
            Its axis of symmetry.
        density : float
            Density >= 0 of the wall in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia
        """
        solid = solids.tube(inner_radius, outer_radius, length, axis)
        return cls._uniform(solid, mass, density)

    @classmethod
    def solid_capsule(
        cls,
        mass: float | None = None,
        *,
        radius: float,
        length: float,
        axis: Axis = "z",
        density: float | None = None,
    ) -> SpatialInertia:
        """Return a cylinder with a half ball on each end.

        With the fractions of volume μ of the cylinder and 1 - μ of the ball, it has
        μ r²/2 + (1 - μ) 2r²/5 about its axis and
        μ (3r² + l²)/12 + (1 - μ) (2r²/5 + 3rl/8 + l²/4) across.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        radius, length : float
            Radius r > 0, and length l > 0 of the cylinder alone, in m.
        axis : {"x", "y", "z"}
            Its axis of symmetry.
        density : float
            Density >= 0 in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia
        """
        return cls._uniform(solids.capsule(radius, length, axis), mass, density)

    @classmethod
    def solid_mesh(
        cls,
        mass: float | None = None,
        *,
        source: str | Path | tuple[npt.ArrayLike, npt.ArrayLike],
        scale: npt.ArrayLike = 1.0,
        density: float | None = None,
    ) -> SpatialInertia:
        """Return what a closed surface of triangles encloses, with the surface as its shape.

        Parameters
        ----------
        mass : float
            Mass >= 0 in kg.
        source, scale
            As for `BodyShape.mesh`, such as an STL file, with ``scale=1e-3`` for millimeters.
        density : float
            Density >= 0 in kg/m³, in place of the mass.

        Returns
        -------
        SpatialInertia

        Raises
        ------
        DeclarationError
            When the file cannot be read, or the surface is not closed or is inside out.

        Examples
        --------
        A tetrahedron with edges of 1 m along the axes:

        >>> corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
        >>> sides = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
        >>> SpatialInertia.solid_mesh(source=(corners, sides), density=600.0).com
        array([0.25, 0.25, 0.25])
        """
        surface = read_mesh(source, scale)
        solid = solids.mesh(surface)
        return cls._uniform(
            solid, mass, density, BodyShape.mesh((surface.vertices, surface.triangles))
        )

    # What it holds ---------------------------------------------------------------------------

    @property
    def com(self) -> FloatArray:
        """Position of the center of mass, expressed in the body frame, in m."""
        return np.array(self._com)

    @property
    def unit_inertia_six(self) -> FloatArray:
        """Entries xx, yy, zz, xy, xz, yz of the unit inertia about the center of mass, in m²."""
        return np.array(self._unit_inertia)

    @property
    def unit_inertia(self) -> FloatArray:
        """Unit inertia about the center of mass, expressed in the body frame, in m²."""
        matrix: FloatArray = symmetric_matrix(self._unit_inertia)
        return matrix

    @property
    def inertia(self) -> FloatArray:
        """Inertia about the center of mass, expressed in the body frame, in kg m²."""
        return self.mass * self.unit_inertia

    def about_origin(self) -> MassProperties:
        """Return the mass properties about the origin Bo of the body frame, expressed in it."""
        return mass_properties(self.mass, self.com, self.unit_inertia_six)

    def principal(self) -> tuple[FloatArray, FloatArray]:
        """Return the principal moments about the center of mass, and the axes they belong to.

        Returns
        -------
        moments : array, shape (3,)
            Principal moments in kg m², the smallest one first.
        R : array, shape (3, 3)
            Rotation matrix whose columns are the axes in the body frame:
            ``inertia = R diag(moments) Rᵀ``.

        Examples
        --------
        >>> plate = SpatialInertia.thin_plate(12.0, size=(1.0, 2.0))
        >>> plate.rotated([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).principal()[0]
        array([1., 4., 5.])
        """
        moments, R = np.linalg.eigh(self.inertia)
        R[:, 2] *= np.sign(np.linalg.det(R))
        return np.maximum(moments, 0.0), R

    # Others made from it ---------------------------------------------------------------------

    def with_mass(self, mass: float) -> SpatialInertia:
        """Return the inertia of a body of the same shape with another mass in kg."""
        attempt = "Cannot change the mass of SpatialInertia"
        m = checked_mass(mass, attempt)
        return self._of(m, self.com, self.unit_inertia, self.shape, attempt)

    def with_shape(self, shape: BodyShape) -> SpatialInertia:
        """Return the same inertia with another shape for pictures; ``BodyShape()`` is empty.

        Examples
        --------
        >>> panel = SpatialInertia(9.0, inertia=(0.6, 0.4, 0.3))
        >>> panel.with_shape(BodyShape.box(size=(0.02, 0.6, 0.7))).shape
        <BodyShape: box>
        """
        require_shape(shape, "Cannot give a shape to SpatialInertia")
        made = copy(self)
        object.__setattr__(made, "shape", shape)
        return made

    def shifted(self, p: npt.ArrayLike) -> SpatialInertia:
        """Return the inertia of the body after a displacement p in m, without turning."""
        return self.moved((np.eye(3), p))

    def rotated(self, R: npt.ArrayLike) -> SpatialInertia:
        """Return the inertia of the body after it is turned about the origin by a matrix R."""
        return self.moved((R, np.zeros(3)))

    def moved(self, X_AB: tuple[npt.ArrayLike, npt.ArrayLike]) -> SpatialInertia:
        """Return the same inertia with respect to a frame A, p_AoBcm = p_AB + R_AB p_BoBcm.

        Parameters
        ----------
        X_AB : tuple of array_like, shapes (3, 3) and (3,)
            Pose (R, p) of the body frame in A.

        Returns
        -------
        SpatialInertia

        Raises
        ------
        DeclarationError
            When the pose is not finite or its matrix is no rotation.
        """
        attempt = "Cannot move SpatialInertia"
        R, p = checked_pose(X_AB, attempt)
        com, unit = p + R @ self.com, R @ self.unit_inertia @ R.T
        shape = self.shape.moved((R, p)) if self.shape.primitives else self.shape
        return self._of(self.mass, com, unit, shape, attempt)

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        """Return the inertia of two bodies that are joined rigidly, with one frame for both."""
        if not isinstance(other, SpatialInertia):
            return NotImplemented
        shape = self.shape + other.shape
        if other.mass == 0.0:
            return self.with_shape(shape)
        mass = self.mass + other.mass
        mu = other.mass / mass
        com = (1.0 - mu) * self.com + mu * other.com
        # Inertia about the common center: no differences of great numbers arise this way.
        unit = sum(
            weight * mass_properties(1.0, part.com - com, part.unit_inertia_six).inertia
            for weight, part in ((1.0 - mu, self), (mu, other))
        )
        return self._of(mass, com, unit, shape, "Cannot join two bodies")

    def __repr__(self) -> str:
        six = tuple((self.mass * self.unit_inertia_six).tolist())
        return f"SpatialInertia({self.mass}, com={self._com}, inertia={six})"
