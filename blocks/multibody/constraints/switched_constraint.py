"""Constraints that hold or do not, one equation at a time, as modes in contexts say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.constraints.constraint import Condition, ConstrainedTree, Constraint
from flexure.blocks.multibody.constraints.stabilization import GRAVITY, longest_link
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.ports import Prerequisite
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.state import DiscreteState

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
        self._tree: ConstrainedTree | None = None
        self._modes: DiscreteState | None = None

    @property
    def num_equations(self) -> int:
        """Number of equations."""
        return len(self.rows)

    @property
    def tree(self) -> ConstrainedTree:
        """The tree that it is in."""
        assert self._tree is not None  # the tree declares constraints before anything is evaluated
        return self._tree

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
        """Declare the modes; a subclass declares its parameters."""
        self._tree = tree
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
