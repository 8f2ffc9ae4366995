"""How coordinates are proportional: their factors, and the constants that these follow from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import LeafSystem, scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.values.arrays import Array, FloatArray, as_number, bounded, check_bounds, show
from flexure.diagrams.values.parameters import NumericParameter

#: A joint with one position, or a joint with the suffix of one of its positions.
Coordinate: TypeAlias = Joint | tuple[Joint, str]
#: Beyond it, the square of a ratio by which coordinates move each other is soon infinite.
LARGEST_RATIO = 1e100


@dataclass(frozen=True, eq=False)
class Gearing:
    """Coordinates that are proportional, Σ c_k q_k = b, and the constants that say how."""

    coordinates: tuple[tuple[Joint, int], ...]  # joints, and which of their positions
    parameter: str  # what the constants n are called, such as ``"ratio"``
    constants: FloatArray  # their default values, a number or a vector
    # factors_at_zero, factor_slopes: each factor c is constant, or linear in the constants,
    # shapes (k,) and (k, m).
    factors_at_zero: FloatArray
    factor_slopes: FloatArray
    offset: float  # the default value of b
    # unit, doc: unit and description of the constants.
    unit: str = ""
    doc: str = ""
    lower: float = -np.inf  # what the constants have to exceed

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
            problem=self.excess if allow_zeros else self.problem,
            doc=self.doc,
        )
        offset = block.declare_numeric_parameter(
            f"{prefix}offset", self.offset, doc="sum of factors times positions"
        )
        return [constants, offset]

    def problem(self, constants: FloatArray) -> str | None:
        """Say which constants mean nothing."""
        return self.excess(constants) if np.all(constants) else f"a zero in {self.parameter}"

    def excess(self, constants: FloatArray) -> str | None:
        """Say which constants are so large that masses seen through them are infinite."""
        if np.max(np.abs(constants)) <= LARGEST_RATIO:
            return None
        return f"{show(constants)} as {self.parameter}, beyond {LARGEST_RATIO:g}"


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
    """Return a gearing of checked coordinates and constants.

    A coordinate is a joint, or a joint with the suffix of a position. ``slopes`` are the
    derivatives of the factors by the constants, of shape (k,) or (k, m); ``at_zero`` are factors
    that are constant.
    """
    pairs = tuple(_coordinate(each, attempt) for each in coordinates)
    if len(set(pairs)) < len(pairs) or not pairs:
        names = [f"'{joint.name}' [{joint.POSITION_SUFFIXES[k]}]" for joint, k in pairs]
        raise DeclarationError(
            attempt,
            expected="different coordinates, at least one",
            found=", ".join(names) or "none",
            remedy="Use each of them once, with the sum of its factors",
        )
    matrix = np.reshape(np.asarray(slopes, dtype=float), (len(pairs), -1))
    what = f"{attempt} with this {parameter}"
    shape = np.shape(np.asarray(constants, dtype=object))
    numbers = as_number(constants, shape, what)
    count = matrix.shape[1]
    wanted = "one number" if count == 1 else f"{count} numbers"
    require(numbers.size == count, constants, what, wanted)
    check_bounds(numbers, what)
    number = bounded(offset, f"{attempt} with this offset")
    zeros = np.broadcast_to(np.asarray(at_zero, dtype=float), len(pairs))
    made = Gearing(pairs, parameter, numbers, zeros, matrix, number, **options)
    if made.excess(numbers) is not None:
        raise ValueRefusedError(
            attempt, expected=f"{parameter} within ±{LARGEST_RATIO:g}", found=show(numbers)
        )
    if made.problem(numbers) is not None or np.min(numbers) <= made.lower:
        verb = "are" if numbers.ndim else "is"
        bound = f"greater than {made.lower:g}" if made.lower == 0.0 else "not zero"
        raise ValueRefusedError(
            attempt, expected=f"{parameter} that {verb} {bound}", found=show(numbers)
        )
    return made


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
