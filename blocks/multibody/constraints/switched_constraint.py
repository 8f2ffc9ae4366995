"""Constraints that hold or do not, as modes in contexts say; those that only push among them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import dot
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.constraints.constraint import (
    Condition,
    ConstrainedTree,
    Constraint,
    Slip,
)
from flexure.blocks.multibody.constraints.stabilization import GRAVITY, longest_link
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.systems.ports import Prerequisite
from flexure.diagrams.values.arrays import Array, FloatArray, as_numbers, check_bounds
from flexure.diagrams.values.state import DiscreteState

SLOW = 1e-4  # a rebound after which a contact rests, as a part of the usual rate
_SMALL = 1e-9  # what counts as rest, as a part of what is usual in a mechanism
_FAINT = 1e-6  # acceleration that the decay of errors of loops can make, likewise


class Scale(NamedTuple):
    """What is usual of a coordinate: that of a pendulum with the length of the mechanism."""

    # size, rate, acceleration: a radian or that length, and the rate and the acceleration with
    # which gravity moves it.
    size: float
    rate: float
    acceleration: float

    @property
    def still(self) -> float:
        """The rate up to which a coordinate counts as resting."""
        return _SMALL * self.rate

    @property
    def slack(self) -> float:
        """The acceleration that is needed to say that it begins to move."""
        return _SMALL * self.acceleration

    @property
    def faint(self) -> float:
        """The acceleration below which what slips from rest does not begin to move."""
        return _FAINT * self.acceleration


class Row(NamedTuple):
    """One equation: a velocity of a joint by its number, and the direction in which it counts.

    Equations that are about no joint are numbered.
    """

    k: int
    sign: float


class SwitchedConstraint(Constraint):
    """Equations each of which holds or does not.

    Which of them hold is told by discrete state of the tree. Events of the tree change it where a
    `witness` function becomes negative, and before every motion until it fits (see
    `flexure.blocks.multibody.constrained_dynamics.mode_changes`).
    """

    # The joint whose velocities the equations hold, constant to the last bit, if they do.
    joint: Joint | None = None

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.rows: tuple[Row, ...] = ()  # the equations
        self.scales: tuple[Scale, ...] = ()  # what is usual along each
        self._modes: DiscreteState | None = None

    @property
    def num_equations(self) -> int:
        """Number of equations."""
        return len(self.rows)

    @property
    def modes(self) -> DiscreteState:
        """The state that selects the active equations."""
        assert self._modes is not None  # the tree declares it before
        return self._modes

    @property
    def prerequisites(self) -> list[Prerequisite]:
        """Further values that its equations read beside positions and velocities."""
        return [self.modes]

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare the constants and the modes."""
        super().declare(tree)
        length = longest_link(tree.topology)
        self.scales = tuple(_scale(turns, length) for turns in self._turns())
        self._modes = tree.declare_discrete_state(
            f"{self.name}_modes",
            np.zeros(len(self.rows)),
            element_names=self.mode_names(),
            doc=self.MODES,
        )

    #: What the modes mean.
    MODES: ClassVar[str]
    #: What the plant shows of it beside the multipliers.
    outputs: tuple[str, ...]
    #: Whether a velocity rests, too, while its equation does not hold.
    may_rest: ClassVar[bool] = False

    @abstractmethod
    def _turns(self) -> Sequence[bool]:
        """Return for each equation whether it is about angles."""

    @abstractmethod
    def mode_names(self) -> Sequence[str]:
        """Return what the modes are of."""

    @abstractmethod
    def held(self, context: Any) -> list[Array]:
        """Return 1 for each equation that holds, and 0 for others."""

    def errors(self, context: Any) -> Sequence[Array]:
        """Return the errors of the equations between positions; there are none here."""
        return []

    @property
    def num_position_equations(self) -> int:
        """How many of the equations are between positions; there are none here."""
        return 0

    @abstractmethod
    def witness(self, row: int, context: Any) -> Array:
        """Return a function that becomes negative where the mode of an equation has to change."""

    def multipliers(self, context: Any) -> tuple[Array, Array]:
        """Return the multipliers, and what a multiplier of 1 adds to its own acceleration."""
        assert self.index is not None  # the plant builder numbers constraints before
        found = self.tree.multipliers(context)
        return found.values[self.index], found.compliances[self.index]

    def witnesses(self) -> list[Any]:
        """Return the witness functions of all equations."""
        return [partial(self.witness, row) for row in range(len(self.rows))]


class SwitchedCoordinates(SwitchedConstraint):
    """Equations along single velocities of a joint, each of which holds or does not.

    A velocity that is held is constant to the last bit.
    """

    joint: Joint

    def __init__(self, name: str, joint: Joint) -> None:
        super().__init__(name)
        attempt = f"Cannot make constraint '{name}'"
        require(isinstance(joint, Joint), joint, attempt, "a joint", error=DeclarationError)
        if not joint.num_velocities:
            raise DeclarationError(
                attempt, expected="a joint that moves", found=f"a {joint.type_name} joint"
            )
        self.joint = joint

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of its joint."""
        return self.joint.parent_body, self.joint.child_body

    def _vector(self, value: npt.ArrayLike, what: str, **bounds: Any) -> FloatArray:
        """Return one number within bounds for each velocity."""
        attempt = f"Cannot make constraint '{self.name}' with this {what}"
        numbers, n = as_numbers(value, attempt), self.joint.num_velocities
        if numbers.shape not in ((), (n,)):
            raise DeclarationError(
                attempt,
                expected=f"one number, or {n} for the velocities of joint '{self.joint.name}'",
                found=f"an array of shape {numbers.shape}",
            )
        vector: FloatArray = np.broadcast_to(numbers, n).astype(float)
        check_bounds(vector, attempt, **bounds)
        return vector

    def _turns(self) -> Sequence[bool]:
        return [self.joint.VELOCITY_SUFFIXES[row.k].startswith("w") for row in self.rows]

    def mode_names(self) -> Sequence[str]:
        """Return what the modes are of."""
        return [self.joint.VELOCITY_SUFFIXES[row.k] for row in self.rows]

    def velocity(self, context: Any) -> Array:
        """Return the velocities of the joint."""
        tree = self.tree
        return tree.moving_velocities(context)[tree.velocities_of(self.joint)]

    def condition(
        self, context: Any, placements: Sequence[Placement], motions: Sequence[BodyMotion]
    ) -> Condition:
        """Return the equations, with zero errors and rates of those that do not hold."""
        held, v = self.held(context), self.velocity(context)
        outboard = self.tree.topology.mobilizer_of(self.joint).outboard
        axes = np.eye(self.joint.num_velocities)
        empty: Mapping[int, Array] = {}
        return Condition(
            [h * error for h, error in zip(held, self.errors(context), strict=False)],
            [h * (sign * v[k]) for h, (k, sign) in zip(held, self.rows, strict=True)],
            [0.0] * len(held),
            [empty] * len(held),
            [{outboard: sign * axes[k]} for k, sign in self.rows],
            held,
        )


def held_still(tree: ConstrainedTree, context: Any, rates: Array) -> Array:
    """Return the rates of all velocities, with exact zeros for those that are held.

    An acceleration of a velocity at rest that is too small to be told from rounding is zero, too,
    but where a slip begins, it has slopes.
    """
    switching = [each for each in tree.constraints if isinstance(each, SwitchedCoordinates)]
    if not switching:
        return rates
    found = [rates[k] for k in range(len(rates))]
    for constraint in switching:
        first, v = tree.velocities_of(constraint.joint).start, constraint.velocity(context)
        held = constraint.held(context)
        for row, scale, h in zip(constraint.rows, constraint.scales, held, strict=True):
            k = first + row.k
            lies = np.logical_and(np.abs(v[row.k]) <= scale.still, constraint.may_rest)
            faint = np.logical_and(lies, np.abs(found[k]) <= scale.faint)
            moves = np.where(faint, scalars.vanishing(found[k]), found[k])
            found[k] = np.where(h > 0.0, 0.0, moves)
    return scalars.array(found)


def _scale(turns: bool, length: float) -> Scale:
    """Return what is usual along a coordinate of a mechanism with this length."""
    size = 1.0 if turns else length
    return Scale(size, size * float(np.sqrt(GRAVITY / length)), size * GRAVITY / length)


NEAR = 1e-6  # how far from the limit a contact still holds, as a part of the usual size
TOUCHING = 1e-13  # how far counts as touching, likewise


def touches(gap: Any, scale: Scale, reach: Any = TOUCHING) -> Any:
    """Return whether a coordinate is at its limit, or beyond it."""
    return gap <= reach * scale.size


def rests(gap: Any, rate: Any, scale: Scale, reach: Any = TOUCHING) -> Any:
    """Return whether a coordinate is at rest at its limit."""
    return np.logical_and(touches(gap, scale, reach), np.abs(rate) <= scale.still)


class UnilateralConstraint(SwitchedConstraint):
    """Gaps g >= 0, each with impacts and resting contact: 0 <= g ⊥ λ >= 0.

    Subclasses return the gaps with their rates and accelerations, and what is said of each.
    """

    MODES = "1 in contact, 0 open"
    outputs: tuple[str, ...] = ("mode", "dissipated_energy")

    #: How many times larger than those of coordinates gaps and rates may be while contacts hold.
    LEEWAY: ClassVar[tuple[float, float]] = (1.0, 1.0)

    #: Whether there is friction in proportion to the multipliers.
    has_friction: bool = False

    _dissipated: DiscreteState | None = None

    def _declare_dissipated(self, tree: ConstrainedTree) -> None:
        self._dissipated = tree.declare_discrete_state(
            f"{self.name}_dissipated", [0.0], doc="energy that impacts have taken away, in J"
        )

    @property
    def dissipated(self) -> DiscreteState:
        """The energy that impacts have taken away so far."""
        assert self._dissipated is not None  # the tree declares it before
        return self._dissipated

    @abstractmethod
    def gaps(self, context: Any) -> list[Array]:
        """Return the gap of each equation, negative beyond the limit."""

    @abstractmethod
    def rates(self, context: Any) -> list[Array]:
        """Return the rates of the gaps."""

    @abstractmethod
    def accelerations(self, context: Any) -> list[Array]:
        """Return the second derivatives of the gaps."""

    @abstractmethod
    def limits(self, context: Any) -> list[Array]:
        """Return the coordinate of each equation where its gap is zero, if there is one."""

    @abstractmethod
    def restitutions(self, context: Any) -> list[Array]:
        """Return the coefficient of restitution of each equation."""

    @abstractmethod
    def rest_velocities(self, context: Any) -> list[Array]:
        """Return the rate of the slowest rebound of each equation."""

    def friction_force(self, context: Any) -> Array:
        """Return the friction of each equation on the second of the bodies, in the world."""
        (values, _), (A, B) = self.multipliers(context), self.bodies
        number = A.number if B.is_world else B.number
        assert number is not None  # the plant builder numbers bodies before
        R = self.tree.placements(context)[number].R_WB
        pairs = zip(self._slips(context), values, strict=True)
        forces = [value * (R @ slip.force[number][3:]) for slip, value in pairs]
        return np.concatenate([-force if B.is_world else force for force in forces])

    def power(self, context: Any) -> Array:
        """Return the power of the friction."""
        (values, _), slips = self.multipliers(context), self._slips(context)
        pairs = zip(slips, values, strict=True)
        return sum(
            value * dot(scalars.array(slip.drags), scalars.array(slip.rates))
            for slip, value in pairs
        )

    def _slips(self, context: Any) -> Sequence[Slip]:
        assert self.index is not None  # the plant builder numbers constraints before
        slips: Sequence[Slip] = self.tree.conditions(context)[self.index].slips
        return slips

    def resting(self, context: Any) -> list[Any]:
        """Return for each equation whether the coordinate is at rest at its limit."""
        triples = zip(self.gaps(context), self.rates(context), self.scales, strict=True)
        return [rests(*each) for each in triples]

    def held(self, context: Any) -> list[Array]:
        """Return 1 for each contact, unless bodies were moved away from it."""
        modes, gaps, rates = self.modes(context), self.gaps(context), self.rates(context)
        far, fast = self.LEEWAY
        pairs = zip(gaps, self.scales, strict=True)
        near = [np.abs(gap) <= far * NEAR * scale.size for gap, scale in pairs]
        pairs = zip(rates, self.scales, strict=True)
        still = [np.abs(rate) <= fast * scale.still for rate, scale in pairs]
        return [
            np.where(np.logical_and(*each), modes[k], 0.0)
            for k, each in enumerate(zip(near, still, strict=True))
        ]

    @property
    def num_position_equations(self) -> int:
        """How many of the equations are between positions: all."""
        return self.num_equations

    def errors(self, context: Any) -> Sequence[Array]:
        """Return the distances from the limits."""
        return self.gaps(context)

    def hold_problem(self, context: Any) -> str | None:
        """Say which contact pulls, and which coordinate is pressed through its limit."""
        held, (values, _) = self.held(context), self.multipliers(context)
        resting, accelerations = self.resting(context), self.accelerations(context)
        names = self.mode_names()
        for k, scale in enumerate(self.scales):
            if held[k] > 0.0 and not self.witness(k, context) >= 0.0:
                return (
                    f"'{self.name}' in contact ({names[k]}), pulling with {-float(values[k]):.6g}"
                )
            if resting[k] and not held[k] and accelerations[k] < -scale.slack:
                pressed = quoted(
                    each.name for each in ([self.joint] if self.joint else self.bodies)
                )
                return f"'{self.name}' open ({names[k]}), with {pressed} pressed against it"
        return None

    def witness(self, row: int, context: Any) -> Array:
        """Return the distance from a limit, or how firmly the stop holds.

        Where a coordinate rests at the limit without the stop, it is by how much it is kept there.
        """
        values, compliances = self.multipliers(context)
        slack = self.scales[row].slack
        # What has just left its limit counts as away from it.
        near = TOUCHING * self.scales[row].size
        gap = self.gaps(context)[row] + near
        force = values[row] * compliances[row]
        firm = np.where(np.abs(force) < 0.1 * slack, slack, force + slack)  # without rounding
        kept = np.minimum(self.accelerations(context)[row] + slack, near)
        open_ = np.where(self.resting(context)[row], kept, gap)
        return np.where(self.held(context)[row] > 0.0, firm, open_)
