"""Cross sections of flexures: their areas, moments and stresses, as functions of dimensions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.scalars import is_symbolic, refuse_where
from flexure.diagrams.values.arrays import Array, FloatArray, bounded, show

# ruff: noqa: RUF009 - what the calls return are fields

#: Corners of a square with sides of length 2, along y and z.
CORNERS = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
_AROUND = 12  # corners of a circle that is drawn


def dimension(unit: str, doc: str) -> Any:
    """Return a field whose metadata are what its parameter is declared with."""
    return field(metadata={"unit": unit, "lower": 0.0, "doc": doc})


def check_dimensions(shape: Any) -> None:
    """Turn the fields of a dataclass to floats, or refuse what is not positive; pass symbols."""
    for each in fields(shape):
        value = getattr(shape, each.name)
        if not is_symbolic(value):
            attempt = f"Cannot make {type(shape).__name__} with {each.name}"
            number = bounded(value, attempt, lower=0.0, exclusive=True, unit=each.metadata["unit"])
            object.__setattr__(shape, each.name, number)


@dataclass(frozen=True)
class Section(ABC):
    """The cross section of a flexure along x, in its principal axes y and z.

    Its dimensions are its fields. Pure functions compute everything else from them and accept
    symbols instead of numbers, so that derivatives by dimensions are exact.

    Subclasses are dataclasses, with a ``dimension`` for each field.

    Attributes
    ----------
    area : float or Symbol
        Area A in m².
    second_moment_y, second_moment_z : float or Symbol
        Second moments I_y = ∫ z² dA and I_z = ∫ y² dA of bending about y and z, in m⁴.
    torsion_constant : float or Symbol
        Torsion constant J of free warping in m⁴: G J is the torque over the twist per length.

    Raises
    ------
    ValueRefusedError
        When a dimension is no number, not finite or not positive; symbols are not looked at.

    See Also
    --------
    Beam : The element.
    RectangleSection : A rectangle.
    CircleSection : A circle.
    TubeSection : A tube.
    GeneralSection : Any section.

    Examples
    --------
    >>> import flexure as fx
    >>> leaf = fx.sections.RectangleSection(width=0.02, thickness=5e-4)
    >>> isinstance(leaf, fx.sections.Section), round(leaf.area * 1e6, 9)
    (True, 10.0)
    """

    def __post_init__(self) -> None:
        check_dimensions(self)

    if TYPE_CHECKING:  # an attribute in some subclasses, computed from others in the rest

        @property
        def area(self) -> Array:
            """The area in m²."""

        @property
        def second_moment_y(self) -> Array:
            """The second moment of area about y in m⁴."""

        @property
        def second_moment_z(self) -> Array:
            """The second moment of area about z in m⁴."""

        @property
        def torsion_constant(self) -> Array:
            """The torsion constant in m⁴."""

    @abstractmethod
    def shear_factors(self, poissons_ratio: Array) -> tuple[Array, Array]:
        """Return the factors k of the shear stiffness k G A along y and along z.

        Parameters
        ----------
        poissons_ratio : float or Symbol
            Poisson's ratio of the material.

        Returns
        -------
        tuple of float or Symbol
        """

    @abstractmethod
    def normal_stress(self, force: Array, moment_y: Array, moment_z: Array) -> Array:
        """Return the greatest magnitude of the normal stress.

        Parameters
        ----------
        force : float or Symbol
            Force along x in N.
        moment_y, moment_z : float or Symbol
            Bending moments about y and z in N m.

        Returns
        -------
        float or Symbol
            In Pa.
        """

    @abstractmethod
    def torsion_stress(self, torque: Array) -> Array:
        """Return the greatest magnitude of the shear stress in torsion with free warping.

        Parameters
        ----------
        torque : float or Symbol
            Torque about x in N m.

        Returns
        -------
        float or Symbol
            In Pa.
        """

    def outline(self) -> FloatArray:
        """Return corners along y and z, (n, 2), to draw it: of a rectangle as stiff as it is."""
        moments = np.array([self.second_moment_z, self.second_moment_y], dtype=float)
        return CORNERS * np.sqrt(3.0 * moments / float(self.area))

    @property
    def polar_moment(self) -> Array:
        """The polar moment of area I_y + I_z in m⁴, of which turning about x has its inertia."""
        return self.second_moment_y + self.second_moment_z

    @property
    def wagner_constant(self) -> Array:
        """The constant ∫ r⁴ dA - I_p²/A in m⁶, by which twist stretches fibers unevenly.

        It is that of a rectangle of the same area and second moments. Sections other than thin open
        ones resist twist by so much more that it hardly counts.
        """
        squares = self.second_moment_y**2 + self.second_moment_z**2
        return 0.8 * squares / self.area

    @property
    def outermost_square(self) -> Array:
        """The square of the distance of the outermost point from the axis in m², or more."""
        z = self.normal_stress(0.0, self.second_moment_y, 0.0)
        y = self.normal_stress(0.0, 0.0, self.second_moment_z)
        return y * y + z * z

    def winding_force(self, youngs_modulus: Array, wound: Array) -> Array:
        """Return the tension in N whose stress is that of the outermost fiber of a twisted beam.

        Parameters
        ----------
        youngs_modulus : float or Symbol
            Young's modulus in Pa.
        wound : float or Symbol
            Half of the square of the twist per length in 1/m², less that at rest.
        """
        farther = self.outermost_square * self.area - self.polar_moment
        return youngs_modulus * farther * np.abs(wound)

    def equivalent_stress(
        self, force: Array, torque: Array, moment_y: Array, moment_z: Array
    ) -> Array:
        """Return von Mises' stress √(σ² + 3 τ²) of the greatest normal and shear stresses.

        They are not always at one point, and so this is never too small; stresses of shear forces,
        which are small in slender flexures, are left out.

        Parameters
        ----------
        force : float or Symbol
            Force along x in N.
        torque : float or Symbol
            Torque about x in N m.
        moment_y, moment_z : float or Symbol
            Bending moments in N m.

        Returns
        -------
        float or Symbol
            In Pa.
        """
        sigma = self.normal_stress(force, moment_y, moment_z)
        tau = self.torsion_stress(torque)
        return np.sqrt(sigma * sigma + 3.0 * tau * tau)


class RoundSection(Section):
    """Base class of sections that are alike in all directions of their plane."""

    if TYPE_CHECKING:

        @property
        def outer_diameter(self) -> Array:
            """The outer diameter in m."""

    @property
    def second_moment_z(self) -> Array:
        """The second moment of area I_z in m⁴, as large as I_y."""
        return self.second_moment_y

    @property
    def torsion_constant(self) -> Array:
        """The torsion constant J in m⁴, which is the polar moment."""
        return 2.0 * self.second_moment_y

    @property
    def wagner_constant(self) -> Array:
        """The constant ∫ r⁴ dA - I_p²/A in m⁶, which is A³/(12 π²)."""
        return self.area**3 / (12.0 * np.pi**2)

    @property
    def outermost_square(self) -> Array:
        """The square of the outer radius in m²."""
        return 0.25 * self.outer_diameter**2

    def outline(self) -> FloatArray:
        """Return corners along y and z, (n, 2), on the outer circle."""
        angles = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        return 0.5 * float(self.outer_diameter) * circle

    def normal_stress(self, force: Array, moment_y: Array, moment_z: Array) -> Array:
        """Return ``|N|/A + √(M_y² + M_z²) D / (2 I)`` in Pa."""
        moment = np.hypot(moment_y, moment_z)
        bending = 0.5 * moment * self.outer_diameter / self.second_moment_y
        return np.abs(force) / self.area + bending

    def torsion_stress(self, torque: Array) -> Array:
        """Return ``|T| D / (2 J)`` in Pa."""
        return 0.5 * np.abs(torque) * self.outer_diameter / self.torsion_constant


@dataclass(frozen=True)
class CircleSection(RoundSection):
    """The section of a wire.

    ``A = π D²/4,  I = π D⁴/64,  J = 2 I``

    Attributes
    ----------
    diameter : float or Symbol
        Diameter D > 0 in m.

    See Also
    --------
    RectangleSection : The section of a leaf.
    TubeSection : A hollow wire.
    GeneralSection : A section given by its constants.

    Notes
    -----
    The shear factor is 6 (1 + ν) / (7 + 6 ν), from G. R. Cowper, The shear coefficient in
    Timoshenko's beam theory, Journal of Applied Mechanics 33 (1966) 335-340.

    Examples
    --------
    >>> wire = CircleSection(diameter=0.001)
    >>> round(wire.torsion_constant / wire.second_moment_y, 12)
    2.0
    """

    diameter: Any = dimension("m", "diameter")

    @property
    def outer_diameter(self) -> Array:
        """The outer diameter in m."""
        return self.diameter

    @property
    def area(self) -> Array:
        """The area A in m²."""
        return 0.25 * np.pi * self.diameter**2

    @property
    def second_moment_y(self) -> Array:
        """The second moment of area I_y in m⁴."""
        return np.pi / 64.0 * self.diameter**4

    def shear_factors(self, poissons_ratio: Array) -> tuple[Array, Array]:
        """Return 6 (1 + ν) / (7 + 6 ν), twice."""
        k = 6.0 * (1.0 + poissons_ratio) / (7.0 + 6.0 * poissons_ratio)
        return k, k


@dataclass(frozen=True)
class TubeSection(RoundSection):
    """The section of a tube with a wall of constant thickness.

    ``A = π (D² - d²)/4,  I = π (D⁴ - d⁴)/64,  J = 2 I``

    Attributes
    ----------
    outer_diameter, inner_diameter : float or Symbol
        Diameters D > d > 0 in m.

    See Also
    --------
    CircleSection : The section of a wire.
    GeneralSection : A section given by its constants.

    Notes
    -----
    With m = d/D and n = (1 + m²)², the shear factor is 6 (1 + ν) n / ((7 + 6 ν) n + (20 + 12 ν) m²)
    of Cowper, as in `CircleSection`.

    Examples
    --------
    >>> tube = TubeSection(outer_diameter=0.004, inner_diameter=0.003)
    >>> round(tube.area * 1e6, 6)
    5.497787
    """

    outer_diameter: Any = dimension("m", "outer diameter")
    inner_diameter: Any = dimension("m", "inner diameter")

    def __post_init__(self) -> None:
        super().__post_init__()
        outer, inner = self.outer_diameter, self.inner_diameter
        possible = refuse_where(
            inner >= outer,
            inner,
            lambda: ValueRefusedError(
                "Cannot make TubeSection",
                expected="an inner diameter below the outer one",
                found=f"{show(inner)} m inside of {show(outer)} m",
            ),
        )
        object.__setattr__(self, "inner_diameter", possible)

    @property
    def area(self) -> Array:
        """The area A in m²."""
        return 0.25 * np.pi * (self.outer_diameter**2 - self.inner_diameter**2)

    @property
    def second_moment_y(self) -> Array:
        """The second moment of area I_y in m⁴."""
        return np.pi / 64.0 * (self.outer_diameter**4 - self.inner_diameter**4)

    def shear_factors(self, poissons_ratio: Array) -> tuple[Array, Array]:
        """Return Cowper's factor for a tube, twice."""
        nu, square = poissons_ratio, (self.inner_diameter / self.outer_diameter) ** 2
        n = (1.0 + square) ** 2
        k = 6.0 * (1.0 + nu) * n / ((7.0 + 6.0 * nu) * n + (20.0 + 12.0 * nu) * square)
        return k, k


def _wall_dimensions(
    name: str, width: float, height: float, flange: float, web: float, webs: float, flanges: float
) -> tuple[float, float, float, float]:
    """Return the dimensions of walls, which must leave room between each other."""
    attempt = f"Cannot make GeneralSection.{name} with"
    sizes = {"width": width, "height": height, "flange": flange, "web": web}
    y, z, f, w = (
        bounded(size, f"{attempt} {what}", lower=0.0, exclusive=True, unit="m")
        for what, size in sizes.items()
    )
    if webs * w >= y or flanges * f >= z:
        raise ValueRefusedError(
            f"{attempt} its walls",
            expected="walls thinner than the space for them",
            found=f"{show(f)} m and {show(w)} m in {show(y)} m x {show(z)} m",
        )
    return y, z, f, w


@dataclass(frozen=True)
class GeneralSection(Section):
    """A section of any shape, described by its constants.

    Attributes
    ----------
    area : float or Symbol
        Area A > 0 in m².
    second_moment_y, second_moment_z : float or Symbol
        Second moments I_y, I_z > 0 about the principal axes in m⁴.
    torsion_constant : float or Symbol
        Torsion constant J > 0 in m⁴.
    extent_y, extent_z : float or Symbol
        Distances > 0 from the axis to the outermost points along y and z, in m.
    torsion_modulus : float or Symbol
        Torque over the greatest shear stress, > 0 in m³.
    shear_factor_y, shear_factor_z : float or Symbol
        Factors k > 0 of the shear stiffness k G A along y and z.

    See Also
    --------
    RectangleSection : The section of a leaf.
    CircleSection : The section of a wire.

    Examples
    --------
    >>> bar = GeneralSection(
    ...     area=2e-6,
    ...     second_moment_y=1e-13,
    ...     second_moment_z=4e-13,
    ...     torsion_constant=3e-13,
    ...     extent_y=1e-3,
    ...     extent_z=5e-4,
    ...     torsion_modulus=4e-10,
    ...     shear_factor_y=0.83,
    ...     shear_factor_z=0.83,
    ... )
    >>> round(bar.normal_stress(force=2.0, moment_y=0.0, moment_z=0.001))
    3500000
    """

    area: Any = dimension("m^2", "area")
    second_moment_y: Any = dimension("m^4", "second moment of area about y")
    second_moment_z: Any = dimension("m^4", "second moment of area about z")
    torsion_constant: Any = dimension("m^4", "torsion constant")
    extent_y: Any = dimension("m", "distance of the outermost points along y")
    extent_z: Any = dimension("m", "distance of the outermost points along z")
    torsion_modulus: Any = dimension("m^3", "torque over the greatest shear stress")
    shear_factor_y: Any = dimension("", "shear factor along y")
    shear_factor_z: Any = dimension("", "shear factor along z")

    @classmethod
    def from_polygon(
        cls, corners: npt.ArrayLike, holes: Sequence[npt.ArrayLike] = ()
    ) -> GeneralSection:
        """Return the section of a polygon, also with holes.

        Area and second moments are exact (Green's theorem), the torsion constant and modulus are
        those of Prandtl's stress function with finite elements, and the shear factors are those of
        a shear stress that is constant across each line, I²/(A ∫ Q²/b ds)::

            -∇²φ = 2,  φ = 0 outside, constant around holes;   J = 2 ∫ φ dA + 2 Σ φ_k A_k

        Its axes are the principal axes through the centroid nearest to those of the corners, so
        that the beam must be turned by the `principal_angle`. The shear center is taken to be at
        the centroid: for channels, angles and tees, put loads at the real one. Warping is free.

        Parameters
        ----------
        corners : array_like, shape (n, 2)
            Corners (y, z) of the outline in m, in either direction.
        holes : sequence of array_like
            Corners of each hole, inside of the outline, in m.

        Returns
        -------
        GeneralSection
            Its numbers; they do not follow dimensions of the polygon in a context.

        Raises
        ------
        ValueRefusedError
            When corners enclose no area or cross, details are too small for the mesh, or the
            outline is longer than 10000 times the mean thickness.

        Notes
        -----
        The torsion constant errs by less than 0.5 %. Stress at re-entrant corners, which has no
        bound without a fillet, is not counted within half of the mean thickness.

        Examples
        --------
        A square bar, and a tee of 40 x 40 x 4 mm:

        >>> square = GeneralSection.from_polygon([(0, 0), (0.01, 0), (0.01, 0.01), (0, 0.01)])
        >>> print(f"{square.torsion_constant / 0.01**4:.4f}")
        0.1406
        >>> tee = GeneralSection.tee(width=0.04, height=0.04, flange=0.004, web=0.004)
        >>> print(f"{tee.area * 1e6:.0f} mm^2")
        304 mm^2
        """
        from flexure.blocks.flexures.sections.polygon_constants import polygon_constants

        return cls(**polygon_constants(corners, holes))

    @staticmethod
    def principal_angle(corners: npt.ArrayLike, holes: Sequence[npt.ArrayLike] = ()) -> float:
        """Return the angle in rad, from y of a polygon to y of its principal axes, about x."""
        from flexure.blocks.flexures.sections.polygon_constants import principal_axes, rings_of

        R = principal_axes(rings_of(corners, holes).moments()[2])
        return float(np.arctan2(R[1, 0], R[0, 0]))

    @classmethod
    def i_beam(cls, *, width: float, height: float, flange: float, web: float) -> GeneralSection:
        """Return an I: two flanges of a width along y, and a web along z between them."""
        return cls._walls("i_beam", width, height, flange, web, 0.5, (True, True))

    @classmethod
    def channel(cls, *, width: float, height: float, flange: float, web: float) -> GeneralSection:
        """Return a C: two flanges of a width along y, and a web along z at their ends."""
        return cls._walls("channel", width, height, flange, web, 0.0, (True, True))

    @classmethod
    def tee(cls, *, width: float, height: float, flange: float, web: float) -> GeneralSection:
        """Return a T: a flange of a width along y on a web along z, of this height together."""
        return cls._walls("tee", width, height, flange, web, 0.5, (False, True))

    @classmethod
    def angle(cls, *, width: float, height: float, flange: float, web: float) -> GeneralSection:
        """Return an L in its principal axes: a leg along y and a web along z."""
        return cls._walls("angle", width, height, flange, web, 0.0, (True, False))

    @classmethod
    def box(cls, *, width: float, height: float, flange: float, web: float) -> GeneralSection:
        """Return a hollow box: walls of the thickness flange along y and web along z."""
        y, z, f, w = _wall_dimensions("box", width, height, flange, web, 2.0, 2.0)
        hole = CORNERS * [0.5 * y - w, 0.5 * z - f]
        return cls.from_polygon(CORNERS * [0.5 * y, 0.5 * z], [hole])

    @classmethod
    def _walls(
        cls,
        name: str,
        width: float,
        height: float,
        flange: float,
        web: float,
        beside: float,
        flanges: tuple[bool, bool],
    ) -> GeneralSection:
        """Return a web with flanges below and above, with a part of their overhang at smaller y."""
        y, z, f, w = _wall_dimensions(name, width, height, flange, web, 1.0, float(sum(flanges)))
        left, right = beside * (y - w), beside * (y - w) + w
        low = [(0.0, 0.0), (y, 0.0), (y, f), (right, f)] if flanges[0] else [(left, 0), (right, 0)]
        top = [(right, z - f), (y, z - f), (y, z), (0.0, z)] if flanges[1] else [(right, z)]
        back = [(0.0, z - f), (left, z - f)] if flanges[1] else [(left, z)]
        ends = [(left, f), (0.0, f)] if flanges[0] else []
        corners = [*low, *top, *back, *ends]
        kept = [p for k, p in enumerate(corners) if p != corners[k - 1]]
        return cls.from_polygon(kept)

    def shear_factors(self, poissons_ratio: Array) -> tuple[Array, Array]:
        """Return the two factors as they were given."""
        return self.shear_factor_y, self.shear_factor_z

    def normal_stress(self, force: Array, moment_y: Array, moment_z: Array) -> Array:
        """Return ``|N|/A + |M_y| c_z/I_y + |M_z| c_y/I_z`` in Pa, never too small."""
        return (
            np.abs(force) / self.area
            + np.abs(moment_y) * self.extent_z / self.second_moment_y
            + np.abs(moment_z) * self.extent_y / self.second_moment_z
        )

    def torsion_stress(self, torque: Array) -> Array:
        """Return the torque over the torsion modulus in Pa."""
        return np.abs(torque) / self.torsion_modulus
