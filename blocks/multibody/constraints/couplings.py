"""Couplings of coordinates that stay proportional: gears, racks, belts, screws, differentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.constraints.constraint import ConstrainedTree
from flexure.blocks.multibody.constraints.coordinate_constraints import (
    CoordinateConstraint,
    CoordinateTerms,
)
from flexure.blocks.multibody.joints.joint import Joint
from flexure.diagrams import LeafSystem, scalars
from flexure.diagrams.arguments import flag, require
from flexure.diagrams.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.parameters import NumericParameter
from flexure.diagrams.values import Array, FloatArray, as_number, check_bounds, show

#: A joint with one position, or a joint with the suffix of one of its positions.
Coordinate: TypeAlias = Joint | tuple[Joint, str]


@dataclass(frozen=True, eq=False)
class Gearing:
    """Coordinates that are proportional, Σ c_k q_k = b, and the constants that say how.

    Attributes
    ----------
    coordinates : tuple of (Joint, int)
        Joints, and which of their positions.
    parameter : str
        What the constants n are called, such as ``"ratio"``.
    constants : ndarray
        Their default values, a number or a vector.
    factors_at_zero, factor_slopes : ndarray, shapes (k,) and (k, m)
        Each factor c is constant, or linear in the constants.
    offset : float
        The default value of b.
    unit, doc : str
        Unit and description of the constants.
    lower : float
        What the constants have to exceed.
    """

    coordinates: tuple[tuple[Joint, int], ...]
    parameter: str
    constants: FloatArray
    factors_at_zero: FloatArray
    factor_slopes: FloatArray
    offset: float
    unit: str = ""
    doc: str = ""
    lower: float = -np.inf

    @property
    def joints(self) -> list[Joint]:
        """The joints, each one once."""
        return list(dict.fromkeys(joint for joint, _ in self.coordinates))

    def factors(self, constants: Array) -> Array:
        """Return c for the constants n, without terms that are zero in any case."""
        numbers = np.reshape(constants, (-1,))
        factors = []
        for zero, slopes in zip(self.factors_at_zero, self.factor_slopes, strict=True):
            terms = [slopes[k] * numbers[k] for k in np.flatnonzero(slopes)]
            factors.append(sum(terms[1:], terms[0]) if terms else zero)
        return scalars.array(factors)

    @property
    def places(self) -> list[int]:
        """Where the coordinates are among the positions of all joints."""
        ends = np.cumsum([0, *(joint.num_positions for joint in self.joints)])
        starts = dict(zip(self.joints, map(int, ends), strict=False))
        return [starts[joint] + k for joint, k in self.coordinates]

    def declare(
        self, block: LeafSystem, prefix: str = "", *, allow_zeros: bool = False
    ) -> list[NumericParameter]:
        """Declare the constants and the offset as parameters of a block.

        Zeros, with which a coordinate is not coupled, are harmless where a coupling gives way.
        """
        constants = block.declare_numeric_parameter(
            f"{prefix}{self.parameter}",
            self.constants,
            unit=self.unit,
            lower=self.lower,
            exclusive=self.lower == 0.0,
            problem=None if allow_zeros else self.problem,
            doc=self.doc,
        )
        offset = block.declare_numeric_parameter(
            f"{prefix}offset", self.offset, doc="sum of factors times positions"
        )
        return [constants, offset]

    def problem(self, constants: FloatArray) -> str | None:
        """Say which constants mean nothing."""
        return None if np.all(constants) else f"a zero in {self.parameter}"


def gearing(
    attempt: str,
    coordinates: Sequence[Coordinate],
    parameter: str,
    constants: npt.ArrayLike,
    slopes: npt.ArrayLike,
    offset: float,
    *,
    at_zero: npt.ArrayLike = 0.0,
    **options: Any,
) -> Gearing:
    """Return a gearing of checked coordinates and constants."""
    pairs = tuple(_coordinate(each, attempt) for each in coordinates)
    if len(set(pairs)) < len(pairs) or not pairs:
        names = [f"'{joint.name}' [{joint.POSITION_SUFFIXES[k]}]" for joint, k in pairs]
        raise DeclarationError(
            attempt,
            expected="different coordinates, at least one",
            found=", ".join(names) or "none",
            remedy="Take each of them once, with the sum of its factors",
        )
    matrix = np.reshape(np.asarray(slopes, dtype=float), (len(pairs), -1))
    what = f"{attempt} with this {parameter}"
    shape = np.shape(np.asarray(constants, dtype=object))
    numbers = as_number(constants, shape, what)
    require(numbers.size == matrix.shape[1], constants, what, _numbers(matrix.shape[1]))
    check_bounds(numbers, what)
    number = as_number(offset, (), f"{attempt} with this offset")
    check_bounds(number, f"{attempt} with this offset")
    zeros = np.broadcast_to(np.asarray(at_zero, dtype=float), len(pairs))
    made = Gearing(pairs, parameter, numbers, zeros, matrix, float(number), **options)
    if made.problem(numbers) is not None or np.min(numbers) <= made.lower:
        verb = "are" if numbers.ndim else "is"
        bound = f"greater than {made.lower:g}" if made.lower == 0.0 else "not zero"
        raise ValueRefusedError(
            attempt, expected=f"{parameter} that {verb} {bound}", found=show(numbers)
        )
    return made


def _numbers(count: int) -> str:
    """Return how many numbers, in words."""
    return "one number" if count == 1 else f"{count} numbers"


def _coordinate(value: object, attempt: str) -> tuple[Joint, int]:
    """Return a joint, and which of its positions."""
    joint, suffix = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    require(isinstance(joint, Joint), value, attempt, "a joint", error=DeclarationError)
    assert isinstance(joint, Joint)
    if suffix is None and joint.num_positions == 1:
        return joint, 0
    if suffix in joint.POSITION_SUFFIXES:
        return joint, joint.POSITION_SUFFIXES.index(suffix)
    names = ", ".join(repr(each) for each in joint.POSITION_SUFFIXES) or "none"
    raise DeclarationError(
        attempt,
        expected="joints with one position, or a joint with the name of a position",
        found=f"the {joint.type_name} joint '{joint.name}', which has {joint.num_positions}",
        remedy=f"Name one, as in (joint, name); there are {names}",
    )


class Coupling(CoordinateConstraint):
    """Coordinates that stay proportional: Σ c_k q_k = b, as by gears, racks, belts and screws.

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

    Notes
    -----
    The multiplier λ is the generalized force on each coordinate over its factor. It does no work in
    total. A coupling that follows from others, or contradicts them, is refused when the plant is
    built.
    """

    def __init__(self, name: str, factors: Mapping[Coordinate, float], offset: float = 0.0) -> None:
        attempt = f"Cannot make constraint '{name}'"
        wanted = "factors by joints, as in {joint: 1.0, other: -2.0}"
        is_mapping = isinstance(factors, Mapping)
        require(is_mapping, factors, attempt, wanted, error=DeclarationError)
        numbers = [float(as_number(each, (), f"{attempt}: a factor")) for each in factors.values()]
        self._set(
            name,
            gearing(attempt, list(factors), "factors", numbers, np.eye(len(numbers)), offset),
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
        slopes = [0.0, -1.0]
        return Coupling._of(
            name,
            (rack, pinion),
            "radius",
            radius,
            slopes,
            offset,
            at_zero=[1.0, 0.0],
            unit="m",
            doc=doc,
        )

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
        slopes, doc = [0.0, -0.5 / np.pi], "advance per turn"
        return Coupling._of(
            name,
            (sliding, turning),
            "lead",
            lead,
            slopes,
            offset,
            at_zero=[1.0, 0.0],
            unit="m",
            doc=doc,
        )

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
    def num_equations(self) -> int:
        """Number of equations."""
        return 1

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
    """Two joints that turn in proportion: q₁ = n q₂ + b, or q₁ = -n q₂ + b with outer gears.

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
    """

    def __init__(
        self, name: str, driver: Coordinate, driven: Coordinate, ratio: float, offset: float = 0.0
    ) -> None:
        attempt, doc = f"Cannot make constraint '{name}'", "turns of the driver per turn"
        pair = driver, driven
        slopes, at_zero = [0.0, -1.0], [1.0, 0.0]
        made = gearing(attempt, pair, "ratio", ratio, slopes, offset, at_zero=at_zero, doc=doc)
        self._set(name, made)


__all__ = ["Coordinate", "Coupling", "GearPair", "Gearing"]
