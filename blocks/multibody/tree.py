"""The block that carries the motion of all bodies of a plant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import MassProperties, dot
from flexure.blocks.multibody import energy
from flexure.blocks.multibody.articulated_body import forward_dynamics
from flexure.blocks.multibody.bodies import Body
from flexure.blocks.multibody.force_element import POSE_SIZE
from flexure.blocks.multibody.force_input import ForceInput
from flexure.blocks.multibody.inertia import mass_properties, validity_problem
from flexure.blocks.multibody.joints.joint import Joint
from flexure.blocks.multibody.kinematics import (
    Motion,
    Placement,
    calc_accelerations,
    calc_motions,
    calc_placements,
    world_inertias,
)
from flexure.blocks.multibody.topology import Topology
from flexure.diagrams import LeafSystem, scalars
from flexure.diagrams.arguments import items_of
from flexure.diagrams.errors import DeclarationError
from flexure.diagrams.parameters import NumericParameter
from flexure.diagrams.ports import Calculation, InputPort, Prerequisite
from flexure.diagrams.values import Array, FloatArray, as_number

if TYPE_CHECKING:
    from flexure.blocks.multibody.plant import Plant

_POSITION, _VELOCITY = ("x", "y", "z"), ("vx", "vy", "vz")
_SPATIAL_VELOCITY = ("wx", "wy", "wz", *_VELOCITY)
_MOMENTUM = ("hx", "hy", "hz", "lx", "ly", "lz")


class MultibodyTree(LeafSystem):
    """Rigid bodies that hang together by joints, in reduced coordinates.

    The state holds the positions q and velocities v of all joints. With the mass matrix M, the
    Coriolis, centripetal and gyroscopic terms C v, gravity, the viscous damping D of the joints,
    applied forces τ along the joints and spatial forces F on the bodies with their Jacobians J::

        q̇ = N(q) v
        M(q) v̇ + C(q, v) v = τ_gravity(q) - D v + τ + Σ Jᵀ F

    The second equation is solved for v̇ by the articulated-body algorithm, with an effort that is
    proportional to the number of bodies. A locked joint has v̇ = 0 exactly.

    Blocks of this kind are made by `PlantBuilder`.

    Parameters
    ----------
    name : str
        Name of the block.
    topology : Topology
        Bodies and joints.
    gravity : array_like, shape (3,)
        Acceleration of free fall in the world, in m/s².
    force_inputs : sequence of ForceInput
        The inputs through which forces come in.

    Raises
    ------
    DeclarationError
        When no joint can move, or the name of an input is taken.
    ValueRefusedError
        When gravity is not a finite vector of size 3.

    Notes
    -----
    Parameters: ``gravity``; for each body ``<body>_mass`` in kg, ``<body>_com``, the position of
    the center of mass in the body frame in m, and ``<body>_unit_inertia`` (xx, yy, zz, xy, xz, yz
    about the center of mass, per mass, in m²); for each joint ``<joint>_damping`` and
    ``<joint>_locked``, which is 1 or 0.

    Inputs, zero when not connected: those of ``force_inputs``, and ``generalized_force``.

    Outputs: ``positions``, ``velocities``, ``accelerations``; for each body ``<body>_pose`` (the
    rotation matrix row by row, then the position), ``<body>_position``, ``<body>_spatial_velocity``
    and ``<body>_spatial_acceleration`` in the world at its origin; for each joint ``<joint>_q`` and
    ``<joint>_v``; ``kinetic_energy``, ``gravity_energy``, ``gravity_power``,
    ``damping_power`` (of the joints) and ``input_power`` (of all forces that are not from
    elements); ``momentum`` about the origin of the world, ``center_of_mass`` and its velocity.

    Source of the algorithm: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008,
    section 7.3.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("crane", gravity=(0.0, 0.0, -10.0))
    >>> load = builder.add_body("load", fx.SpatialInertia.point_mass(3.0), com=(0.0, 0.0, -2.0))
    >>> rope = builder.add_joint(fx.RevoluteJoint("rope", builder.world, load, (0.0, 1.0, 0.0)))
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> rope.angle.set(context, np.pi / 2)
    >>> plant.tree.accelerations.eval(context)
    array([-5.])
    """

    def __init__(
        self,
        name: str,
        topology: Topology,
        *,
        gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
        force_inputs: Sequence[ForceInput] = (),
    ) -> None:
        super().__init__(name)
        if not isinstance(topology, Topology):
            wanted = "a topology, as PlantBuilder.build() makes it of bodies and joints"
            raise DeclarationError(f"Cannot make '{name}'", expected=wanted, found=repr(topology))
        self.topology = topology
        self.gravity = self.declare_numeric_parameter(
            "gravity", as_number(gravity, (3,), f"Cannot make '{name}'"), unit="m/s^2", sparse=True
        )
        self._declare_body_parameters()
        self._declare_joint_parameters()
        self._declare_state()
        self._declare_inputs(force_inputs)
        self._declare_cache()
        self._declare_outputs()

    # Declarations ----------------------------------------------------------------------------

    def _declare_body_parameters(self) -> None:
        self.body_parameters: list[tuple[NumericParameter, ...]] = []
        for body in self.topology.bodies[1:]:
            inertia = body.inertia
            assert inertia is not None  # all bodies but the world have one
            self.body_parameters.append(
                (
                    self.declare_numeric_parameter(
                        f"{body.name}_mass", inertia.mass, unit="kg", lower=0.0
                    ),
                    self.declare_numeric_parameter(
                        f"{body.name}_com", inertia.com, unit="m", sparse=True
                    ),
                    self.declare_numeric_parameter(
                        f"{body.name}_unit_inertia",
                        inertia.unit_inertia_six,
                        unit="m^2",
                        problem=validity_problem,
                        sparse=True,
                        doc="about the center of mass: xx, yy, zz, xy, xz, yz",
                    ),
                )
            )

    def _declare_joint_parameters(self) -> None:
        self._dampings: dict[str, NumericParameter] = {}
        self._locks: dict[str, NumericParameter] = {}
        for joint in self.joints:
            if joint.num_velocities == 0:
                continue
            self._dampings[joint.name] = self.declare_numeric_parameter(
                f"{joint.name}_damping",
                joint.default_damping_vector,
                lower=0.0,
                sparse=True,
                doc="generalized force per velocity",
            )
            self._locks[joint.name] = self.declare_numeric_parameter(
                f"{joint.name}_locked",
                0.0,
                lower=0.0,
                upper=1.0,
                problem=_neither_zero_nor_one,
                sparse=True,
                doc="1 while the joint is locked",
            )

    def _declare_state(self) -> None:
        topology = self.topology
        parts = [mobilizer.joint.default_positions for mobilizer in topology.mobilizers]
        v = np.zeros(topology.num_velocities)
        names = [
            *(
                f"{joint.name}_{suffix}"
                for joint in self.joints
                for suffix in joint.POSITION_SUFFIXES
            ),
            *(
                f"{joint.name}_{suffix}"
                for joint in self.joints
                for suffix in joint.VELOCITY_SUFFIXES
            ),
        ]
        self.state = self.declare_continuous_state(
            q=topology.num_positions,
            v=topology.num_velocities,
            default=np.concatenate([*parts, v]),
            element_names=names if len(set(names)) == len(names) else None,
            problem=self._state_problem,
            normalize=self._normalized_state,
            distribution=self._random_state if self._is_random else None,
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
        self._on_bodies: list[tuple[InputPort, ForceInput, int]] = []
        self._on_joints: list[tuple[InputPort, ForceInput, slice]] = []
        self._rotor_inertias = {joint.name: 0.0 for joint in self.joints}
        for force in self.force_inputs:
            if isinstance(force.target, Body):
                number = force.target.number
                assert number is not None  # the plant builder numbers bodies before
                port = self.declare_vector_input(force.name, 6, default=np.zeros(6))
                self._on_bodies.append((port, force, number))
            else:
                size = force.target.num_velocities
                port = self.declare_vector_input(force.name, size, default=np.zeros(size))
                part = self.velocities_of(force.target)
                self._on_joints.append((port, force, part))
                self._rotor_inertias[force.target.name] += force.rotor_inertia
        size = self.topology.num_velocities
        self.generalized_force = self.declare_vector_input(
            "generalized_force", size, default=np.zeros(size)
        )

    def _declare_cache(self) -> None:
        x = self.state
        self._placements = self.declare_cache_entry(
            "placements", self._calc_placements, prerequisites=[x]
        )
        self._motions = self.declare_cache_entry(
            "motions", self._calc_motions, prerequisites=[self._placements, x]
        )
        self._inertias = self.declare_cache_entry(
            "inertias", self._calc_inertias, prerequisites=[self._placements]
        )
        inputs = [port for port, _, _ in (*self._on_bodies, *self._on_joints)]
        self._accelerations = self.declare_cache_entry(
            "joint_accelerations",
            self._calc_joint_accelerations,
            prerequisites=[self._placements, x, self.generalized_force, *inputs],
        )
        self.body_accelerations = self.declare_cache_entry(
            "body_accelerations",
            self._calc_body_accelerations,
            prerequisites=[self._motions, self._accelerations],
        )

    def _declare_outputs(self) -> None:
        topology, x = self.topology, self.state
        nq, nv = topology.num_positions, topology.num_velocities
        self.positions = self.declare_vector_output(
            "positions", nq, x.q, prerequisites=[x], shows=slice(nq)
        )
        self.velocities = self.declare_vector_output(
            "velocities", nv, x.v, prerequisites=[x], shows=self._velocities_in_state(slice(nv))
        )
        self.accelerations = self.declare_vector_output(
            "accelerations", nv, self._accelerations, prerequisites=[self._accelerations]
        )
        for number, body in enumerate(topology.bodies[1:], start=1):
            self._declare_body_outputs(number, body)
        for joint in self.joints:
            self._declare_joint_outputs(joint)
        motion: list[Prerequisite] = [self._motions, self._inertias]
        inputs = [port for port, force, _ in self._on_bodies if not force.is_internal]
        efforts = [port for port, force, _ in self._on_joints if not force.is_internal]
        given: list[Prerequisite] = [self._motions, x, self.generalized_force, *inputs, *efforts]
        com = "center_of_mass"
        totals: list[tuple[str, Calculation, list[Prerequisite], str, Sequence[str]]] = [
            ("kinetic_energy", self._calc_kinetic_energy, motion, "J", ()),
            ("gravity_energy", self._calc_gravity_energy, [self._inertias, x], "J", ()),
            ("gravity_power", self._calc_gravity_power, motion, "W", ()),
            ("damping_power", self._calc_damping_power, [x], "W", ()),
            ("input_power", self._calc_input_power, given, "W", ()),
            ("momentum", self._calc_momentum, motion, "", _MOMENTUM),
            (com, self._calc_center_of_mass, [self._inertias], "m", _POSITION),
            (f"{com}_velocity", self._calc_center_of_mass_velocity, motion, "m/s", _VELOCITY),
        ]
        for name, calc, needs, unit, names in totals:
            self.declare_vector_output(
                name,
                len(names) or 1,
                calc,
                prerequisites=needs,
                unit=unit,
                element_names=names or None,
            )

    def _declare_body_outputs(self, number: int, body: Body) -> None:
        self.declare_vector_output(
            f"{body.name}_pose",
            POSE_SIZE,
            partial(self._calc_pose, number),
            prerequisites=[self._placements],
            doc="rotation matrix row by row, then position, in the world",
        )
        self.declare_vector_output(
            f"{body.name}_position",
            3,
            partial(self._calc_position, number),
            prerequisites=[self._placements],
            unit="m",
            element_names=_POSITION,
        )
        self.declare_vector_output(
            f"{body.name}_spatial_velocity",
            6,
            partial(self._calc_velocity, number),
            prerequisites=[self._motions],
            element_names=_SPATIAL_VELOCITY,
            doc="angular velocity, then velocity of the origin, in the world",
        )
        self.declare_vector_output(
            f"{body.name}_spatial_acceleration",
            6,
            partial(self._calc_acceleration, number),
            prerequisites=[self.body_accelerations],
            doc="angular acceleration, then acceleration of the origin, in the world",
        )

    def _declare_joint_outputs(self, joint: Joint) -> None:
        if joint.num_velocities == 0:
            return
        self.declare_vector_output(
            f"{joint.name}_q",
            joint.num_positions,
            partial(self._calc_joint_position, self.positions_of(joint)),
            prerequisites=[self.state],
            shows=self.positions_of(joint),
            element_names=joint.POSITION_SUFFIXES,
            unit=_common_unit(joint.POSITION_SUFFIXES, "rad", "m"),
        )
        self.declare_vector_output(
            f"{joint.name}_v",
            joint.num_velocities,
            partial(self._calc_joint_velocity, self.velocities_of(joint)),
            prerequisites=[self.state],
            shows=self._velocities_in_state(self.velocities_of(joint)),
            element_names=joint.VELOCITY_SUFFIXES,
            unit=_common_unit(joint.VELOCITY_SUFFIXES, "rad/s", "m/s"),
        )

    # What the tree is made of ----------------------------------------------------------------

    @property
    def parent_plant(self) -> Plant:
        """The plant that contains the tree."""
        from flexure.blocks.multibody.plant import Plant

        assert isinstance(self.parent, Plant)  # no one else makes trees
        return self.parent

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
    def reflected_inertia(self) -> FloatArray:
        """Inertia that rotors add to each velocity, in kg m² or kg."""
        sizes = [joint.num_velocities for joint in self.joints]
        return np.repeat(np.array([*self._rotor_inertias.values()]), sizes)

    def _velocities_in_state(self, part: slice) -> slice:
        """Where some of the velocities are in the state."""
        first = self.topology.num_positions
        return slice(first + (part.start or 0), first + part.stop)

    def damping_of(self, joint: Joint) -> NumericParameter:
        """Return the parameter with the damping of a joint."""
        return self.find_parameter(f"{joint.name}_damping")

    def find_parameter(self, name: str) -> NumericParameter:
        """Return a parameter by its name."""
        parameter = self.find(name)
        assert isinstance(parameter, NumericParameter)
        return parameter

    def lock_of(self, joint: Joint) -> NumericParameter | None:
        """Return the parameter that locks a joint; None for a weld."""
        return self._locks.get(joint.name)

    # Equations -------------------------------------------------------------------------------

    def calc_time_derivatives(self, context: Any) -> list[Array]:
        """Return (q̇, v̇)."""
        q, v = self.state.q(context), self.state.v(context)
        rates = [
            mobilizer.joint.calc_position_rates(q[mobilizer.q], v[mobilizer.v])
            for mobilizer in self.topology.mobilizers
        ]
        return [*rates, self._accelerations(context)]

    def mass_properties(self, context: Any) -> list[MassProperties]:
        """Return the mass properties of the bodies but the world about Bo, in B."""
        return [
            mass_properties(*(parameter(context) for parameter in parameters))
            for parameters in self.body_parameters
        ]

    def kinematics(
        self, context: Any
    ) -> tuple[list[Placement], list[Motion], list[MassProperties]]:
        """Return placements and motions of all bodies, and their inertias in the world."""
        entries = self._placements, self._motions, self._inertias
        placements, motions, inertias = (entry.eval(context) for entry in entries)
        return placements, motions, inertias

    def _calc_placements(self, context: Any) -> list[Placement]:
        return calc_placements(self.topology, self.state.q(context))

    def _calc_motions(self, context: Any) -> list[Motion]:
        q, v = self.state.q(context), self.state.v(context)
        return calc_motions(self.topology, self._placements(context), v, q)

    def _calc_inertias(self, context: Any) -> list[MassProperties]:
        return world_inertias(self._placements(context), self.mass_properties(context))

    def _calc_joint_accelerations(self, context: Any) -> Array:
        return forward_dynamics(
            self.topology,
            self._placements(context),
            self.mass_properties(context),
            self.state.q(context),
            self.state.v(context),
            self.gravity(context),
            self._applied_body_forces(context),
            self.joint_forces(context),
            self._mobile(context),
            list(self._rotor_inertias.values()),
        )

    def _calc_body_accelerations(self, context: Any) -> list[Array]:
        return calc_accelerations(
            self.topology,
            self._placements(context),
            self._motions(context),
            self._accelerations(context),
        )

    # Forces ----------------------------------------------------------------------------------

    def gravity_forces(self, context: Any) -> list[Array]:
        """Return the weight of each body as a spatial force about Bo, expressed in the world."""
        return energy.gravity_forces(self._inertias(context), self.gravity(context))

    def _applied_body_forces(self, context: Any) -> dict[int, Array]:
        """Return the sums of the inputs on bodies, by the numbers of the bodies that have any."""
        forces: dict[int, Array] = {}
        for port, _, number in self._on_bodies:
            force = port(context)
            forces[number] = forces[number] + force if number in forces else force
        return forces

    def joint_forces(self, context: Any) -> Array:
        """Return the generalized forces along the joints: damping and all inputs."""
        forces = self.damping_forces(context) + self.generalized_force(context)
        return self._added_on_joints(context, forces, internal=True, external=True)

    def damping_forces(self, context: Any) -> Array:
        """Return -d v of all joints."""
        dampings = [damping(context) for damping in self._dampings.values()]
        return -np.concatenate([np.zeros(0), *dampings]) * self.state.v(context)

    def _mobile(self, context: Any) -> Array:
        """Return 1 for each joint that is free and 0 for a locked one."""
        locks = (self._locks.get(joint.name) for joint in self.joints)
        return scalars.array([1.0 if lock is None else 1.0 - lock(context) for lock in locks])

    def _added_on_joints(
        self, context: Any, forces: Array, *, internal: bool, external: bool
    ) -> Array:
        """Return generalized forces with those of inputs on joints added."""
        parts = [forces[mobilizer.v] for mobilizer in self.topology.mobilizers]
        places = {
            m.v.start: k for k, m in enumerate(self.topology.mobilizers) if m.v.stop > m.v.start
        }
        for port, force, part in self._on_joints:
            if internal if force.is_internal else external:
                k = places[part.start]
                parts[k] = parts[k] + force.limited(port(context))
        return np.concatenate([np.zeros(0), *parts])

    # Outputs ---------------------------------------------------------------------------------

    def _calc_pose(self, number: int, context: Any) -> Array:
        placement = self._placements(context)[number]
        return np.concatenate([np.ravel(placement.R_WB), placement.p_WB])

    def _calc_position(self, number: int, context: Any) -> Array:
        return self._placements(context)[number].p_WB

    def _calc_velocity(self, number: int, context: Any) -> Array:
        return self._motions(context)[number].V_WB

    def _calc_acceleration(self, number: int, context: Any) -> Array:
        return self.body_accelerations(context)[number]

    def _calc_joint_position(self, part: slice, context: Any) -> Array:
        return self.state.q(context)[part]

    def _calc_joint_velocity(self, part: slice, context: Any) -> Array:
        return self.state.v(context)[part]

    def _calc_kinetic_energy(self, context: Any) -> Array:
        return energy.kinetic_energy(self._motions(context), self._inertias(context))

    def _calc_gravity_energy(self, context: Any) -> Array:
        placements, inertias = self._placements(context), self._inertias(context)
        return energy.gravity_energy(placements, inertias, self.gravity(context))

    def _calc_gravity_power(self, context: Any) -> Array:
        motions = self._motions(context)
        weights = self.gravity_forces(context)
        return sum(
            dot(weight, motion.V_WB) for weight, motion in zip(weights, motions, strict=True)
        )

    def _calc_damping_power(self, context: Any) -> Array:
        return np.sum(self.damping_forces(context) * self.state.v(context))

    def _calc_input_power(self, context: Any) -> Array:
        forces = self._added_on_joints(
            context, self.generalized_force(context), internal=False, external=True
        )
        power = np.sum(forces * self.state.v(context))
        for port, force, number in self._on_bodies:
            if not force.is_internal:
                power = power + dot(port(context), self._motions(context)[number].V_WB)
        return power

    def _calc_momentum(self, context: Any) -> Array:
        return energy.momentum(
            self._placements(context), self._motions(context), self._inertias(context)
        )

    def _calc_center_of_mass(self, context: Any) -> Array:
        return energy.center_of_mass(self._placements(context), self._inertias(context))

    def _calc_center_of_mass_velocity(self, context: Any) -> Array:
        return energy.center_of_mass_velocity(self._motions(context), self._inertias(context))


def _common_unit(coordinates: Sequence[str], turning: str, sliding: str) -> str:
    """Return the unit of all coordinates of a joint, by their names; none where they differ."""
    if "qw" in coordinates:  # a quaternion
        return ""
    units = {turning if name[0] in "qw" else sliding for name in coordinates}
    return units.pop() if len(units) == 1 else ""


def _neither_zero_nor_one(value: FloatArray) -> str | None:
    """Say what is wrong with a flag."""
    return None if value in (0.0, 1.0) else f"{value:g}, which is neither 0 nor 1"
