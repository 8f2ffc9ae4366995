"""Couplings of coordinates that stay proportional: gears, racks, belts, screws, differentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.constraints.coordinate_constraints import (
    CoordinateConstraint,
    CoordinateTerms,
)
from flexure.blocks.multibody.constraints.gearing import Coordinate, Gearing, gearing
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, as_number
from flexure.diagrams.values.parameters import NumericParameter


class Coupling(CoordinateConstraint):
    """Proportional coordinates, Σ c_k q_k = b, as in gears, racks, belts and screws.

    The constructors below have the names of machine elements, and one parameter with what is
    known of them: `rack_and_pinion`, `belt`, `screw`, `differential`, `planetary` and `mimic`;
    `GearPair` is one, too. A `CompliantCoupling` of any of them gives way, and may have losses.

    Parameters
    ----------
    name : str
        Name within the plant.
    factors : mapping of Joint, or of (Joint, str), to float
        The factors c, not zero, of joints with one position each, or of a position by its name, as
        in ``{(glide, "x"): 1.0, shaft: -0.1}``: the parameter ``<name>_factors``.
    offset : float
        The value b: the parameter ``<name>_offset``.

    Raises
    ------
    DeclarationError
        When a coordinate is no position of a joint, or is there twice, or velocities of a joint are
        not the rates of its positions.
    ValueRefusedError
        When a factor is zero or not finite.

    See Also
    --------
    GearPair : Two joints with proportional angles.
    CompliantCoupling : A coupling with stiffness and losses.

    Notes
    -----
    The multiplier λ is the generalized force on each coordinate over its factor. It does no work in
    total. A coupling that follows from others, or contradicts them, is refused when the plant is
    built.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> disk = fx.SpatialInertia.solid_cylinder(1.0, radius=0.1, length=0.02, axis="z")
    >>> one, two = (builder.add_body(name, disk) for name in ("one", "two"))
    >>> a = builder.add_joint(fx.RevoluteJoint("a", builder.world, one, axis=(0, 0, 1)))
    >>> b = builder.add_joint(fx.RevoluteJoint("b", builder.world, two, axis=(0, 0, 1)))
    >>> _ = builder.add_constraint(fx.constraints.Coupling("belt", {a: 1.0, b: -3.0}))
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> b.angle.set(context, 0.2)
    >>> _ = plant.assemble(context, fixed=b)
    >>> round(float(a.angle(context)), 9)
    0.6
    """

    num_equations = 1

    def __init__(self, name: str, factors: Mapping[Coordinate, float], offset: float = 0.0) -> None:
        attempt = f"Cannot make constraint '{name}'"
        wanted = "factors by joints, as in {joint: 1.0, other: -2.0}"
        is_mapping = isinstance(factors, Mapping)
        require(is_mapping, factors, attempt, wanted, error=DeclarationError)
        numbers = [float(as_number(each, (), f"{attempt}: a factor")) for each in factors.values()]
        self._set(
            name, gearing(attempt, list(factors), "factors", numbers, np.eye(len(numbers)), offset)
        )

    def _set(self, name: str, made: Gearing) -> None:
        """Take a gearing over."""
        super().__init__(name, made.joints)
        self.gearing = made
        self._constants: list[NumericParameter] = []

    @staticmethod
    def _of(name: str, *arguments: Any, **options: Any) -> Coupling:
        """Return a coupling that a gearing describes."""
        made = Coupling.__new__(Coupling)
        made._set(name, gearing(f"Cannot make constraint '{name}'", *arguments, **options))
        return made

    def _from_turn_to_slide(self, order: str) -> Coupling:
        """Return this, unless what should slide turns, or what should turn slides."""
        kinds = [joint.POSITION_SUFFIXES[k] for joint, k in self.gearing.coordinates]
        if [suffix.startswith("q") for suffix in kinds] != [False, True]:
            (rack, _), (pinion, _) = self.gearing.coordinates
            raise DeclarationError(
                f"Cannot make constraint '{self.name}'",
                expected="a coordinate that turns, and one that slides",
                found=f"'{pinion.name}' [{kinds[1]}], then '{rack.name}' [{kinds[0]}]",
                remedy=f"The order is ({order}); use a GearPair or a Coupling for other kinds",
            )
        return self

    @staticmethod
    def rack_and_pinion(
        name: str, pinion: Coordinate, rack: Coordinate, radius: float, offset: float = 0.0
    ) -> Coupling:
        """Return the coupling of a rack that rolls off a pinion: q_rack = r q_pinion + b.

        Parameters
        ----------
        name : str
            Name within the plant.
        pinion, rack : Joint or (Joint, str)
            What turns, and what slides.
        radius : float
            Pitch radius r in m, not zero, negative where they go opposite ways: the parameter
            ``<name>_radius``.
        offset : float
            The value b in m: the parameter ``<name>_offset``.
        """
        doc = "pitch radius of the pinion"
        made = Coupling._of(
            name,
            (rack, pinion),
            "radius",
            radius,
            [0.0, -1.0],
            offset,
            at_zero=[1.0, 0.0],
            unit="m",
            doc=doc,
        )
        return made._from_turn_to_slide("pinion, rack")

    @staticmethod
    def belt(
        name: str,
        driver: Coordinate,
        driven: Coordinate,
        radii: npt.ArrayLike,
        offset: float = 0.0,
        *,
        crossed: bool = False,
    ) -> Coupling:
        """Return the coupling of two wheels by a belt or a chain: r₁ q₁ - r₂ q₂ = b.

        Parameters
        ----------
        name : str
            Name within the plant.
        driver, driven : Joint or (Joint, str)
            The joints of the wheels.
        radii : array_like, shape (2,)
            Radii r > 0 of both in m: the parameter ``<name>_radii``.
        offset : float
            The length b in m by which the belt is ahead: the parameter ``<name>_offset``.
        crossed : bool
            Whether the belt is crossed, so that the wheels turn opposite ways.
        """
        opposite = flag(crossed, "crossed", f"Cannot make constraint '{name}'")
        slopes = np.diag([1.0, 1.0 if opposite else -1.0])
        options: dict[str, Any] = {"unit": "m", "doc": "of driver and driven", "lower": 0.0}
        return Coupling._of(name, (driver, driven), "radii", radii, slopes, offset, **options)

    @staticmethod
    def screw(
        name: str, turning: Coordinate, sliding: Coordinate, lead: float, offset: float = 0.0
    ) -> Coupling:
        """Return the coupling of a nut that a spindle moves: q_sliding = p q_turning/2π + b.

        Parameters
        ----------
        name : str
            Name within the plant.
        turning, sliding : Joint or (Joint, str)
            The spindle, and the nut.
        lead : float
            Lead p in m per turn, not zero: the parameter ``<name>_lead``.
        offset : float
            The value b in m: the parameter ``<name>_offset``.
        """
        made = Coupling._of(
            name,
            (sliding, turning),
            "lead",
            lead,
            [0.0, -0.5 / np.pi],
            offset,
            at_zero=[1.0, 0.0],
            unit="m",
            doc="advance per turn",
        )
        return made._from_turn_to_slide("turning, sliding")

    @staticmethod
    def differential(
        name: str,
        drive: Coordinate,
        left: Coordinate,
        right: Coordinate,
        ratio: float = 1.0,
        offset: float = 0.0,
    ) -> Coupling:
        """Return the coupling of a differential: q_drive = n (q_left + q_right)/2 + b.

        Parameters
        ----------
        name : str
            Name within the plant.
        drive, left, right : Joint or (Joint, str)
            The carrier, or the shaft that drives it, and both outputs, which get equal torques.
        ratio : float
            Turns n of the drive for one of both outputs, not zero: the parameter ``<name>_ratio``.
        offset : float
            The value b: the parameter ``<name>_offset``.
        """
        slopes, doc = [0.0, -0.5, -0.5], "turns of the drive per turn of both outputs"
        coordinates, at_zero = (drive, left, right), [1.0, 0.0, 0.0]
        return Coupling._of(
            name, coordinates, "ratio", ratio, slopes, offset, at_zero=at_zero, doc=doc
        )

    @staticmethod
    def planetary(
        name: str,
        sun: Coordinate,
        carrier: Coordinate,
        ring: Coordinate,
        teeth: npt.ArrayLike,
        offset: float = 0.0,
    ) -> Coupling:
        """Return the coupling of a planetary gear: z_s q_s + z_r q_r - (z_s + z_r) q_c = b.

        This is the equation of Willis: seen from the carrier, sun and ring turn opposite ways, in
        the ratio of their teeth. The planets are counted with the carrier.

        Parameters
        ----------
        name : str
            Name within the plant.
        sun, carrier, ring : Joint or (Joint, str)
            Joints that measure angles from one housing.
        teeth : array_like, shape (2,)
            Numbers of teeth > 0, or radii, of sun z_s and ring z_r: the parameter ``<name>_teeth``.
        offset : float
            The value b: the parameter ``<name>_offset``.
        """
        slopes = [[1.0, 0.0], [-1.0, -1.0], [0.0, 1.0]]
        options: dict[str, Any] = {"doc": "of sun and ring", "lower": 0.0}
        return Coupling._of(name, (sun, carrier, ring), "teeth", teeth, slopes, offset, **options)

    @staticmethod
    def mimic(
        name: str,
        joint: Coordinate,
        mimicked: Coordinate,
        multiplier: float = 1.0,
        offset: float = 0.0,
    ) -> Coupling:
        """Return the coupling of a joint that does what another one does, as in URDF files.

        The equation is q_joint = n q_mimicked + b.

        Parameters
        ----------
        name : str
            Name within the plant.
        joint, mimicked : Joint or (Joint, str)
            The joint that follows, and the one that it follows.
        multiplier : float
            The factor n, not zero: the parameter ``<name>_multiplier``.
        offset : float
            The value b: the parameter ``<name>_offset``.
        """
        slopes, at_zero = [0.0, -1.0], [1.0, 0.0]
        return Coupling._of(
            name, (joint, mimicked), "multiplier", multiplier, slopes, offset, at_zero=at_zero
        )

    @property
    def linear_rows(self) -> list[tuple[dict[tuple[Joint, int], float], float | None]]:
        """Its factors by coordinates, and the sum that they give."""
        made = self.gearing
        factors = made.factors(made.constants)
        return [(dict(zip(made.coordinates, map(float, factors), strict=True)), made.offset)]

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare constants and offset."""
        super().declare(tree)
        self._constants = self.gearing.declare(tree, f"{self.name}_")

    def equation(self, context: Any) -> tuple[Array, Array]:
        """Return the factors c and the sum b with the constants of a context."""
        constants, offset = (each(context) for each in self._constants)
        return self.gearing.factors(constants), offset

    def terms(self, context: Any, q: Array, v: Array) -> CoordinateTerms:
        """Return the sum of factors times positions, minus the offset."""
        made, (c, offset) = self.gearing, self.equation(context)
        row: list[Any] = [0.0] * len(q)
        for place, factor in zip(made.places, c, strict=True):
            row[place] = factor
        error, rate = np.sum(c * q[made.places]) - offset, np.sum(c * v[made.places])
        slopes = scalars.array([scalars.array(row)])
        return CoordinateTerms(scalars.array([error]), slopes, scalars.array([rate]), np.zeros(1))


class GearPair(Coupling):
    """Two joints with proportional angles: q₁ = n q₂ + b, or -n q₂ + b outside.

    The second form is that of outer gears.

    Parameters
    ----------
    name : str
        Name within the plant.
    driver, driven : Joint or (Joint, str)
        Joints with one position each, or a position of a joint by its name.
    ratio : float
        The signed ratio n, not zero, positive where both go the same way: the parameter
        ``<name>_ratio``. The factors of the coupling are 1 and -n.
    offset : float
        The value b: the parameter ``<name>_offset``.

    See Also
    --------
    Coupling : Any number of proportional coordinates.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> disk = fx.SpatialInertia.solid_cylinder(1.0, radius=0.1, length=0.02, axis="z")
    >>> one, two = (builder.add_body(name, disk) for name in ("one", "two"))
    >>> a = builder.add_joint(fx.RevoluteJoint("a", builder.world, one, axis=(0, 0, 1)))
    >>> b = builder.add_joint(fx.RevoluteJoint("b", builder.world, two, axis=(0, 0, 1)))
    >>> builder.add_constraint(fx.constraints.GearPair("gears", a, b, ratio=-3.0)).num_equations
    1
    """

    def __init__(
        self, name: str, driver: Coordinate, driven: Coordinate, ratio: float, offset: float = 0.0
    ) -> None:
        attempt, doc = f"Cannot make constraint '{name}'", "turns of the driver per turn"
        pair = driver, driven
        slopes, at_zero = [0.0, -1.0], [1.0, 0.0]
        made = gearing(attempt, pair, "ratio", ratio, slopes, offset, at_zero=at_zero, doc=doc)
        self._set(name, made)
