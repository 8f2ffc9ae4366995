"""The base class of constraints, and what the equations of motion take from each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import dot, rotate_spatial
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.bodies.plant_base import Part, TreeBase
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.articulated_body import Articulation
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.systems.ports import CacheEntry, Prerequisite
from flexure.diagrams.values.arrays import Array, bounded, check_name
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState


class Slip(NamedTuple):
    """The sliding at a contact along two tangents, and the friction there."""

    rates: Sequence[Array]  # the velocities of sliding
    forces: Sequence[Mapping[int, Array]]  # as those of a `Condition`, for a unit along each
    coefficient: Array = 0.0  # the coefficient of friction
    drags: Sequence[Array] = (0.0, 0.0)  # friction along each tangent by a multiplier of 1

    @property
    def force(self) -> dict[int, Array]:
        """The spatial forces of the friction by a multiplier of 1."""
        (a, b), (along_a, along_b) = self.drags, self.forces
        return {number: a * F + b * along_b[number] for number, F in along_a.items()}


class Condition(NamedTuple):
    """The equations of a constraint at an instant: φ = 0 between positions, then w = 0."""

    errors: Sequence[Array]  # the values φ of the equations between positions
    # Their rates φ̇, and the values w of the equations between velocities alone.
    rates: Sequence[Array]
    # What is left of φ̈ and ẇ where no body and no velocity of a joint accelerates.
    biases: Sequence[Array]
    # For each equation the spatial forces on bodies about Bo, expressed in the bodies, that belong
    # to a multiplier of 1, by numbers of bodies; none on the world. They are the derivatives of φ̇
    # and w by the spatial velocities, shape (6,).
    forces: Sequence[Mapping[int, Array]]
    # The same along the velocities of joints, by numbers of outboard bodies.
    efforts: Sequence[Mapping[int, Array]]
    # For each equation 1 where it holds now, and 0 where it does not: its multiplier is zero then.
    # All hold when there is none.
    held: Sequence[Array] | None = None
    slips: Sequence[Slip] = ()  # the friction of each equation, if they have any


def constraint_forces(
    placements: Sequence[Placement], conditions: Sequence[Condition], values: Sequence[Array]
) -> dict[int, Array]:
    """Return the spatial forces of constraints with given multipliers, and of their friction.

    They are about Bo, expressed in the world, by the numbers of the bodies.
    """
    total: dict[int, Array] = {}
    for condition, multipliers in zip(conditions, values, strict=True):
        pairs = [
            *zip(condition.forces, multipliers, strict=True),
            *((slip.force, each) for slip, each in zip(condition.slips, multipliers, strict=False)),
        ]
        for forces, multiplier in pairs:
            for number, F in forces.items():
                part = multiplier * F
                total[number] = total[number] + part if number in total else part
    return {number: rotate_spatial(placements[number].R_WB, F) for number, F in total.items()}


class ConstrainedTree(TreeBase):
    """The interface of a tree for its constraints."""

    topology: Topology
    constraints: Sequence[Constraint]
    placements: CacheEntry
    motions: CacheEntry
    moving_velocities: CacheEntry
    conditions: CacheEntry
    multipliers: CacheEntry
    rates: CacheEntry
    transmitted: CacheEntry
    impacts_are_sequential = False  # the plant builder says so
    #: What constraints that move with time have taken away in impacts, where there are both.
    input_impacts: DiscreteState | None = None

    @property
    @abstractmethod
    def state(self) -> ContinuousState:
        """The positions and velocities of all joints."""

    @abstractmethod
    def articulation(self, context: Any) -> Articulation:
        """Return the tree under all forces but those of constraints, its joints eliminated."""

    @abstractmethod
    def regularization(self, context: Any) -> Array:
        """Return what is added to the equations of constraints, relative to their diagonal."""

    @abstractmethod
    def q(self, context: Any) -> Array:
        """Return the positions of all joints."""


class Constraint(Part, ABC):
    """Equations between the motions of bodies that hold at any time: φ(q, t) = 0, w(q, v, t) = 0.

    Each equation has a multiplier λ. With the Jacobian J of φ̇ = J v + ∂φ/∂t, or w = J v - b, the
    constraint adds the generalized forces Jᵀ λ, which do no work where ∂φ/∂t and b are zero.
    Constants of the constraint become parameters of the tree, ``<name>_<constant>``.
    """

    is_driven: bool = False  # whether its equations hold the time or inputs

    def __init__(self, name: str) -> None:
        self.name = check_name(name, "a constraint")
        self.index: int | None = None  # position among the constraints of the plant
        self._tree: ConstrainedTree | None = None
        # Constants before and after they are declared, by name.
        self._defaults: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._parameters: dict[str, NumericParameter] = {}

    @property
    def tree(self) -> ConstrainedTree:
        """The tree that it is in."""
        assert self._tree is not None  # the tree declares constraints before anything is evaluated
        return self._tree

    @property
    @abstractmethod
    def num_equations(self) -> int:
        """Number of equations."""

    @property
    def num_position_equations(self) -> int:
        """How many of them, the first ones, are between positions; others between velocities."""
        return self.num_equations

    @property
    def loop_joint(self) -> Joint | None:
        """The joint that closes a loop, if the constraint is one; pictures show its axis."""
        return None

    @property
    def contact_equation(self) -> int | None:
        """Which equation is that of a contact that can push alone, if one is."""
        return None

    @property
    def does_work(self) -> bool:
        """Whether its forces do work, as those of constraints that move with time."""
        return self.is_driven

    @property
    @abstractmethod
    def bodies(self) -> tuple[Body, ...]:
        """The bodies that its forces act on."""

    @property
    def prerequisites(self) -> list[Prerequisite]:
        """Further values that its equations read beside positions and velocities; here none."""
        return []

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare parameters and inputs of the constraint in the tree: here its constants."""
        self._tree = tree
        for what, (value, options) in self._defaults.items():
            self._declare(what, value, **options)

    def _set_default(self, what: str, value: Any, **bounds: Any) -> None:
        """Check the default of a constant, a number within bounds, and keep both."""
        attempt = f"Cannot make constraint '{self.name}' with this {what}"
        self._defaults[what] = bounded(value, attempt, **bounds), bounds

    def _declare(self, what: str, value: Any, **options: Any) -> None:
        """Declare a constant in the tree, a vector of one entry as a scalar."""
        name, number = f"{self.name}_{what}", value[0] if np.shape(value) == (1,) else value
        self._parameters[what] = self.tree.declare_numeric_parameter(name, number, **options)

    def check(self, context: Any) -> None:
        """Refuse values of a context with which it means nothing, before a motion begins."""

    @abstractmethod
    def condition(
        self, context: Any, placements: Sequence[Placement], motions: Sequence[BodyMotion]
    ) -> Condition:
        """Return the equations for the placements and motions of all bodies."""

    def start_problem(self, context: Any) -> str | None:
        """Say why no motion can begin with the values of a context, beside errors; or None."""
        return None

    def hold_problem(self, context: Any) -> str | None:
        """Say what does not go on as the equations of a context have it; or None."""
        return None


def driven_power(tree: ConstrainedTree, context: Any, multipliers: Sequence[Array]) -> Array:
    """Return the power of the constraints that move with time, or the work of their impulses."""
    placements, motions = tree.placements(context), tree.motions(context)
    v, power = tree.moving_velocities(context), 0.0
    conditions = tree.conditions(context)
    for constraint, condition, values in zip(
        tree.constraints, conditions, multipliers, strict=True
    ):
        if constraint.does_work:
            forces = constraint_forces(placements, [condition], [values])
            for number, F in forces.items():
                power = power + dot(F, motions[number].V_WB)
            for efforts, value in zip(condition.efforts, values, strict=True):
                for number, effort in efforts.items():
                    part = tree.topology.path_to(number)[0].v
                    power = power + value * dot(effort, v[part])
    return power
