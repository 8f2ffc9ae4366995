"""The equations of a tree: its state, the forces on it, and what follows from both."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.constrained_dynamics.accuracy import warn_if_inaccurate
from flexure.blocks.multibody.constrained_dynamics.constrained_motion import (
    Multipliers,
    UpheldEquations,
    find_multipliers,
)
from flexure.blocks.multibody.constrained_dynamics.joint_loads import (
    transmitted_under,
    with_loaded_friction,
)
from flexure.blocks.multibody.constrained_dynamics.mode_changes import declare_mode_changes
from flexure.blocks.multibody.constrained_dynamics.projection import (
    calc_correction,
    calc_deviations,
    compared,
    require_consistent,
    unmet,
)
from flexure.blocks.multibody.constraints.constraint import Condition, ConstrainedTree, Constraint
from flexure.blocks.multibody.constraints.stabilization import declare_constraints
from flexure.blocks.multibody.constraints.sticking_constraint import (
    LoadedFriction,
    StickingConstraint,
)
from flexure.blocks.multibody.constraints.switched_constraint import SwitchedCoordinates, held_still
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees import energy
from flexure.blocks.multibody.trees.articulated_body import Articulation, articulate
from flexure.blocks.multibody.trees.component_names import SPATIAL_FORCE, along_joint, along_joints
from flexure.blocks.multibody.trees.coupled_articulation import (
    CouplingInput,
    articulate_coupled,
    coupled_weights,
)
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces
from flexure.blocks.multibody.trees.kinematics import (
    calc_accelerations,
    calc_motions,
    calc_placements,
    world_inertias,
)
from flexure.blocks.multibody.trees.topology import Topology
from flexure.blocks.multibody.trees.tree_constants import (
    TreeConstants,
    declare_gravity,
    declare_spin,
)
from flexure.blocks.multibody.trees.tree_inputs import Actuator, ForceInput, InertiaInput
from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.ports import CacheEntry, Calculation, InputPort, Prerequisite
from flexure.diagrams.values.arrays import Array, FloatArray, as_number
from flexure.diagrams.values.state import ContinuousState

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.values.parameters import NumericParameter

_JUDGED: WeakSet[TreeDynamics] = WeakSet()  # trees whose accuracy was looked at


class AssemblesStarts(Protocol):
    """The assembly of a mechanism before motions begin; see `PlantBuilder.assemble_starts`."""

    def __call__(self, tree: TreeDynamics, context: Any) -> None:
        """Change positions and velocities of a context until they fit."""

    def held(self, tree: TreeDynamics, context: Any) -> npt.NDArray[np.bool_]:
        """Return which velocities are held."""


class TreeDynamics(ConstrainedTree):
    """The part of a `MultibodyTree` that computes; its outputs are declared there."""

    def __init__(
        self,
        name: str,
        topology: Topology,
        *,
        gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
        spin: npt.ArrayLike | None = None,
        force_inputs: Sequence[ForceInput] = (),
        actuators: Sequence[Actuator] = (),
        inertia_inputs: Sequence[InertiaInput | CouplingInput] = (),
        constraints: Sequence[Constraint] = (),
    ) -> None:
        super().__init__(name)
        attempt = f"Cannot make '{name}'"
        if not isinstance(topology, Topology):
            wanted = "a topology, as PlantBuilder.build() makes it of bodies and joints"
            raise DeclarationError(attempt, expected=wanted, found=repr(topology))
        self.topology = topology
        self.start_assembly: AssemblesStarts | None = None
        self.gravity = declare_gravity(self, as_number(gravity, (3,), attempt))
        motors = items_of(actuators, "a list of motors", attempt, kind=Actuator)
        kinds, wanted = (InertiaInput, CouplingInput), "a list of inertia inputs"
        carried = items_of(inertia_inputs, wanted, attempt, kind=kinds)
        self.spin = declare_spin(self, spin, carried)
        self.constants = TreeConstants(self, topology, motors, carried)
        self.constraints = items_of(constraints, "a list of constraints", attempt, kind=Constraint)
        self._stabilization = declare_constraints(self, self.constraints)
        if topology.num_positions:
            self._declare_state()
        self._declare_inputs(force_inputs)
        self._declare_cache()
        declare_mode_changes(self)
        self._declare_outputs()

    # Declarations ----------------------------------------------------------------------------

    def _declare_state(self) -> None:
        topology = self.topology
        parts = [mobilizer.joint.default_positions for mobilizer in topology.mobilizers]
        v = np.zeros(topology.num_velocities)
        names = [
            f"{joint.name}_{suffix}"
            for kind in ("POSITION_SUFFIXES", "VELOCITY_SUFFIXES")
            for joint in self.joints
            for suffix in getattr(joint, kind)
        ]
        self.declare_continuous_state(
            q=topology.num_positions,
            v=topology.num_velocities,
            default=np.concatenate([*parts, v]),
            element_names=names if len(set(names)) == len(names) else None,
            problem=self._state_problem,
            normalize=self._normalized_state,
            distribution=self._random_state if self._is_random else None,
        )
        if any(not isinstance(each, SwitchedCoordinates) for each in self.constraints):
            self.declare_projection(
                self._calc_deviations,
                self._calc_projected,
                size=sum(
                    each.num_position_equations + each.num_equations for each in self.constraints
                ),
                describe=self._describe_deviations,
            )

    def _state_problem(self, x: FloatArray) -> str | None:
        """Say which joint has positions that mean nothing."""
        for mobilizer in self.topology.mobilizers:
            problem = mobilizer.joint.positions_problem(x[mobilizer.q])
            if problem is not None:
                return f"joint '{mobilizer.joint.name}' with {problem}"
        return None

    def _normalized_state(self, x: FloatArray) -> FloatArray:
        """Bring the positions of all joints to their normal form."""
        normal = x.copy()
        for mobilizer in self.topology.mobilizers:
            normal[mobilizer.q] = mobilizer.joint.normalized_positions(x[mobilizer.q])
        return normal

    @property
    def _is_random(self) -> bool:
        return any(joint.random_positions_distribution is not None for joint in self.joints)

    def _random_state(self, rng: np.random.Generator) -> FloatArray:
        """Draw the positions of the joints with a distribution; the others keep their defaults."""
        parts = []
        for joint in self.joints:
            sampler = joint.random_positions_distribution
            attempt = f"Cannot draw the positions of joint '{joint.name}'"
            parts.append(
                joint.default_positions
                if sampler is None
                else joint.checked_positions(sampler(rng), attempt)
            )
        return np.concatenate([*parts, np.zeros(self.topology.num_velocities)])

    def _declare_inputs(self, force_inputs: Sequence[ForceInput]) -> None:
        wanted = "a list of force inputs"
        self.force_inputs = items_of(force_inputs, wanted, "Cannot make a tree", kind=ForceInput)
        self.on_bodies: list[tuple[InputPort, ForceInput, int]] = []
        self.on_joints: list[tuple[InputPort, ForceInput, slice]] = []
        for force in self.force_inputs:
            if isinstance(force.target, Body):
                number = force.target.number
                assert number is not None  # the plant builder numbers bodies before
                port = self.declare_vector_input(
                    force.name, 6, default=np.zeros(6), element_names=SPATIAL_FORCE
                )
                self.on_bodies.append((port, force, number))
            else:
                size = force.target.num_velocities
                port = self.declare_vector_input(
                    force.name, size, default=np.zeros(size), **along_joint(force.target)
                )
                part = self.velocities_of(force.target)
                self.on_joints.append((port, force, part))
        size = self.topology.num_velocities
        self.generalized_force = self.declare_vector_input(
            "generalized_force", size, default=np.zeros(size), **along_joints(self.joints)
        )

    @abstractmethod
    def _declare_outputs(self) -> None:
        """Declare what is shown of all that."""

    def _declare_cache(self) -> None:
        def entry(name: str, calc: Calculation, *reads: Prerequisite) -> CacheEntry:
            return self.declare_cache_entry(name, calc, prerequisites=reads)

        x, carried = self._own_state, self.constants.inertia_ports
        self.moving_velocities = entry("moving_velocities", self._calc_velocities, *x)
        self.placements = entry("placements", self._calc_placements, *x)
        moving: list[Prerequisite] = [self.placements, self.moving_velocities, *x]
        self.motions = entry("motions", self._calc_motions, *moving)
        self.inertias = entry("inertias", self._calc_inertias, self.placements, *carried)
        on_bodies = [port for port, _, _ in self.on_bodies]
        on_joints = [port for port, _, _ in self.on_joints]
        modes = [each.modes for each in self.frictions]
        acting = [*moving, self.generalized_force, *on_bodies, *on_joints, *carried, *modes]
        given = dict.fromkeys(k for each in self.constraints for k in each.prerequisites)
        conditions = entry("conditions", self._calc_conditions, *moving, self.motions, *given)
        solved = [*acting, self.motions, self.inertias, conditions]
        multipliers = entry("multipliers", self._calc_multipliers, *solved)
        multipliers.needs_start = True
        self.conditions, self.multipliers = conditions, multipliers
        upheld: list[Prerequisite] = [conditions, multipliers] if self.constraints else []
        reads = [multipliers] if self.constraints else acting
        self.rates = entry("joint_accelerations", self._calc_joint_accelerations, *reads)
        self.body_accelerations = entry(
            "body_accelerations", self._calc_body_accelerations, self.motions, self.rates
        )
        reads = [self.rates, self.motions, self.inertias, *on_bodies, *upheld]
        self.transmitted = entry("transmitted_forces", self._calc_transmitted, *reads)

    # What the tree is made of ----------------------------------------------------------------

    @property
    def frictions(self) -> list[StickingConstraint]:
        """The constraints that are dry friction."""
        return [each for each in self.constraints if isinstance(each, StickingConstraint)]

    @property
    def joints(self) -> list[Joint]:
        """The joints from the world outwards, in the order of their coordinates."""
        return [mobilizer.joint for mobilizer in self.topology.mobilizers]

    def positions_of(self, joint: Joint) -> slice:
        """Where the positions of a joint are among those of the tree."""
        return self.topology.mobilizer_of(joint).q

    def velocities_of(self, joint: Joint) -> slice:
        """Where the velocities of a joint are among those of the tree."""
        return self.topology.mobilizer_of(joint).v

    @property
    def state(self) -> ContinuousState:
        """The positions q and velocities v of all joints."""
        if self.continuous_state is None:
            raise DeclarationError(
                f"Cannot find the state of '{self.label}'",
                expected="a plant that can move",
                found="only welds",
            )
        return self.continuous_state

    @property
    def _own_state(self) -> list[Prerequisite]:
        """The state if there is one; a tree of welds has none."""
        return [] if self.continuous_state is None else [self.continuous_state]

    def velocities_in_state(self, joint: Joint) -> slice:
        """Where the velocities of a joint are in the state."""
        return self._in_state(self.velocities_of(joint))

    def _in_state(self, part: slice) -> slice:
        """Where some of the velocities are in the state."""
        first = self.topology.num_positions
        return slice(first + (part.start or 0), first + part.stop)

    def lock_of(self, joint: Joint) -> NumericParameter | None:
        """Return the parameter that locks a joint; None for a weld."""
        return self.constants.lock_of(joint)

    def write_coordinates(self, context: Context, part: slice, numbers: FloatArray) -> None:
        """Replace some of the positions and velocities (q, v) in a context."""
        if numbers.size:
            x = self.state.get(context).copy()
            x[part] = numbers
            self.state.set(context, x)

    # Equations -------------------------------------------------------------------------------

    def calc_time_derivatives(self, context: Any) -> list[Array]:
        """Return (q̇, v̇)."""
        q, v = self.q(context), self.moving_velocities(context)
        rates = [
            mobilizer.joint.calc_position_rates(q[mobilizer.q], v[mobilizer.v])
            for mobilizer in self.topology.mobilizers
        ]
        return [*rates, self.rates(context)]

    @property
    def restricts_starts(self) -> bool:
        """Whether there are constraints, which the values of a context may not meet."""
        return bool(self.constraints)

    @property
    def prepares_starts(self) -> bool:
        """Whether positions and velocities are made to fit constraints before motions begin."""
        return self.start_assembly is not None and bool(self.constraints)

    def prepare_start(self, context: Any) -> None:
        """Put the mechanism together, if the builder was told so."""
        if self.start_assembly is not None and self.constraints:
            self.start_assembly(self, context)

    def start_limits(self, context: Any) -> Sequence[tuple[str, Any, Any]]:
        """Return errors and rates of constraints, and how large they may be at the start."""
        allowed = self._stabilization
        if allowed is None:
            return []
        error = allowed.start_tolerance(context)
        rate = allowed.rate(context, error, self.moving_velocities(context))
        return compared(self, context, error, rate)

    def check_start(self, context: Any) -> None:
        """Refuse positions and velocities that constraints do not allow."""
        if self._stabilization is not None:
            require_consistent(self, context, self._stabilization)
            if self not in _JUDGED:  # once, since native runs start much faster than this takes
                _JUDGED.add(self)
                self.check_accuracy(context)

    def check_accuracy(self, context: Any) -> None:
        """Warn of accelerations and reactions that are not accurate."""
        if self._stabilization is not None:
            warn_if_inaccurate(self, context)

    def _calc_deviations(self, context: Any) -> list[Array]:
        assert self._stabilization is not None
        return calc_deviations(self, context, self._stabilization)

    def _describe_deviations(self, context: Any) -> str:
        assert self._stabilization is not None
        error = float(self._stabilization.tolerance(context))
        rate = float(self._stabilization.rate(context, error, self.moving_velocities(context)))
        found = unmet(self, context, error, rate)
        if not found:  # less is tolerated near a singular position
            limits = compared(self, context, error, rate)
            what, value, _ = max(limits, key=lambda each: float(each[1]) / each[2])
            found = f"{what} {float(value):.3g}, too large so near a singular position"
        return found

    def _calc_projected(self, context: Any) -> list[Array]:
        """Return (q, v), moved to where the constraints are met, or nearer to it."""
        topology, q = self.topology, self.q(context)
        nothing = np.zeros(topology.num_velocities)
        tree = self._articulated(context, nothing, {}, nothing)
        displacement, velocity = (
            held_still(self, context, each)
            for each in calc_correction(tree, self.conditions(context))
        )
        moves = [
            mobilizer.joint.calc_position_rates(q[mobilizer.q], displacement[mobilizer.v])
            for mobilizer in topology.mobilizers
        ]
        moved = q + np.concatenate([np.zeros(0), *moves])
        return [moved, self.state.v(context) + velocity]

    def q(self, context: Any) -> Array:
        """Return the positions of all joints."""
        state = self.continuous_state
        return np.zeros(0) if state is None else state.q(context)

    def _calc_velocities(self, context: Any) -> Array:
        """Return the velocities of all joints, in which those of locked joints are zero."""
        state = self.continuous_state
        if state is None:
            return np.zeros(0)
        return state.v(context) * self.constants.mobile_velocities(context)

    def kinematics(
        self, context: Any
    ) -> tuple[list[Placement], list[BodyMotion], list[MassProperties]]:
        """Return placements and motions of all bodies, and their inertias in the world."""
        entries = self.placements, self.motions, self.inertias
        placements, motions, inertias = (entry.eval(context) for entry in entries)
        return placements, motions, inertias

    def _calc_placements(self, context: Any) -> list[Placement]:
        return calc_placements(self.topology, self.q(context))

    def _calc_motions(self, context: Any) -> list[BodyMotion]:
        v, q = self.moving_velocities(context), self.q(context)
        return calc_motions(self.topology, self.placements(context), v, q)

    def _calc_inertias(self, context: Any) -> list[MassProperties]:
        return world_inertias(self.placements(context), self.constants.mass_properties(context))

    def articulation(self, context: Any) -> Articulation:
        """Return the tree under all forces but those of constraints, its joints eliminated."""
        v, forces = self.moving_velocities(context), self._applied_body_forces(context)
        return self._articulated(context, v, forces, self.joint_forces(context))

    def upheld_equations(self, context: Any) -> UpheldEquations:
        """Return the equations of all constraints in this tree."""
        return UpheldEquations(
            self.articulation(context), self.conditions(context), self.regularization(context)
        )

    def regularization(self, context: Any) -> Array:
        """Return what is added to the equations of constraints, relative to their diagonal."""
        assert self._stabilization is not None
        return self._stabilization.regularization(context)

    def _articulated(
        self, context: Any, v: Array, forces: dict[int, Array], tau: Array
    ) -> Articulation:
        """Return the tree with these velocities under its weight and these forces."""
        rotors = self.constants.rotors(context)
        couplings = self.constants.couplings(context)
        spin = None if self.spin is None else self.spin(context)  # never with couplings
        rigid = partial(articulate, spin=spin)
        solve = partial(articulate_coupled, couplings=couplings) if couplings else rigid
        return solve(
            self.topology,
            self.placements(context),
            self.constants.mass_properties(context),
            self.q(context),
            v,
            self.gravity(context),
            forces,
            tau,
            self.constants.mobile(context),
            [rotors.get(joint, 0.0) for joint in self.joints],
        )

    def _calc_conditions(self, context: Any) -> list[Condition]:
        placements, motions = self.placements(context), self.motions(context)
        return [each.condition(context, placements, motions) for each in self.constraints]

    def _calc_multipliers(self, context: Any) -> Multipliers:
        if self._stabilization is None:
            return Multipliers([], [], self.articulation(context).rates())
        equations, conditions = self.upheld_equations(context), self.conditions(context)
        found = find_multipliers(equations, conditions, self._stabilization.pace(context))
        found = with_loaded_friction(self, context, found)
        return found._replace(rates=held_still(self, context, found.rates))

    def _calc_joint_accelerations(self, context: Any) -> Array:
        if not self.constraints:
            return self.articulation(context).rates()
        return self.multipliers(context).rates

    def _calc_body_accelerations(self, context: Any) -> list[Array]:
        return calc_accelerations(
            self.topology, self.placements(context), self.motions(context), self.rates(context)
        )

    # Forces ----------------------------------------------------------------------------------

    def gravity_forces(self, context: Any) -> list[Array]:
        """Return the weight of each body about Bo in the world, and the forces of its spin."""
        inertias = self.inertias(context)
        forces = energy.gravity_forces(inertias, self.gravity(context))
        for number, weight in self.coupled_weights(context)[0].items():
            forces[number] = forces[number] + weight
        if self.spin is None:
            return forces
        at, motions, spin = self.placements(context), self.motions(context), self.spin(context)
        added = energy.frame_forces(at, motions, inertias, spin)
        return [force + more for force, more in zip(forces, added, strict=True)]

    def coupled_weights(self, context: Any) -> tuple[dict[int, Array], Array]:
        """Return the weight of what couples bodies: forces on these, and along joints."""
        couplings = self.constants.couplings(context)
        return coupled_weights(self.topology, couplings, self.gravity(context))

    def _applied_body_forces(self, context: Any) -> dict[int, Array]:
        """Return the sums of the inputs on bodies, by the numbers of the bodies that have any."""
        forces: dict[int, Array] = {}
        for port, _, number in self.on_bodies:
            force = port(context)
            forces[number] = forces[number] + force if number in forces else force
        return forces

    def forces_at_rest(self, context: Any) -> Array:
        """Return the generalized forces of gravity and of all inputs, and of dampers at v."""
        placements, forces = self.placements(context), dict(enumerate(self.given_forces(context)))
        along_joints = self.joint_forces(context) + self.coupled_weights(context)[1]
        return generalized_forces(self.topology, placements, forces) + along_joints

    def given_forces(self, context: Any) -> list[Array]:
        """Return weight and inputs of each body as a spatial force about Bo, in the world."""
        forces = self.gravity_forces(context)
        for number, force in self._applied_body_forces(context).items():
            forces[number] = forces[number] + force
        return forces

    def joint_forces(self, context: Any) -> Array:
        """Return the generalized forces along the joints but friction by loads: damping, inputs."""
        forces = self.damping_forces(context) + self.generalized_force(context)
        forces = self.added_on_joints(context, forces, internal=True)
        for friction in self.frictions:
            if isinstance(friction, LoadedFriction):  # which the multipliers bring about
                continue
            k = self.velocities_of(friction.joint)
            parts = forces[: k.start], forces[k] + friction.slip_force(context), forces[k.stop :]
            forces = np.concatenate(parts)
        return forces

    def damping_forces(self, context: Any) -> Array:
        """Return -d v of all joints."""
        return -self.constants.dampings(context) * self.moving_velocities(context)

    def _calc_transmitted(self, context: Any) -> list[Array]:
        values = self.multipliers(context).values if self.constraints else []
        return transmitted_under(self, context, self.rates(context), values)

    def added_on_joints(self, context: Any, forces: Array, *, internal: bool) -> Array:
        """Return generalized forces with those of inputs on joints added, or the external ones."""
        parts = [forces[mobilizer.v] for mobilizer in self.topology.mobilizers]
        places = {
            m.v.start: k for k, m in enumerate(self.topology.mobilizers) if m.v.stop > m.v.start
        }
        for port, force, part in self.on_joints:
            if internal or not force.is_internal:
                k = places[part.start]
                parts[k] = parts[k] + force.limited(port(context))
        return np.concatenate([np.zeros(0), *parts])

    @property
    def inputs_from_outside(self) -> list[InputPort]:
        """The inputs that no force element feeds."""
        inputs = (*self.on_bodies, *self.on_joints)
        return [
            self.generalized_force,
            *(port for port, force, _ in inputs if not force.is_internal),
        ]
