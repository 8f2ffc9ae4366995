"""Controllers that use the model of a plant: computed torque and gravity compensation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.math import shift_mass_properties
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.solids import mass_properties
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees import energy
from flexure.blocks.multibody.trees.component_names import along_joint, along_joints
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces, inverse_dynamics
from flexure.blocks.multibody.trees.kinematics import calc_motions, calc_placements, world_inertias
from flexure.blocks.multibody.trees.tree_constants import (
    TreeConstants,
    declare_gravity,
    declare_spin,
    declare_weight,
)
from flexure.blocks.multibody.trees.tree_inputs import Actuator
from flexure.blocks.signals.argument_shapes import flag, refusal
from flexure.diagrams.checks.errors import quoted
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort, LeafOutputPort
from flexure.diagrams.values.arrays import Array


class PlantModel(LeafSystem):
    """Base class of controllers that use the model of a plant, with outputs for its motors."""

    def __init__(self, name: str, plant: Plant, underactuated: bool) -> None:
        super().__init__(name)
        if not isinstance(plant, Plant):
            wanted = "a plant, as PlantBuilder.build() and load_urdf(...) return it"
            raise refusal(self, wanted, f"{plant!r:.200}")
        self.topology = plant.tree.topology
        if not self.topology.num_velocities:
            raise refusal(self, "a plant that can move", "only welds")
        if any(element.coupled for element in plant.force_elements):
            raise refusal(self, "a plant of rigid bodies", f"a flexible body in '{plant.label}'")
        self._require_motors(plant, flag(self, "underactuated", underactuated))
        self.gravity = declare_gravity(self, plant.gravity.default)
        self.spin = plant.spin and declare_spin(self, plant.spin.default, ())
        self.positions = self.declare_vector_input("positions", self.topology.num_positions)

    def _require_motors(self, plant: Plant, underactuated: bool) -> None:
        """Refuse motors that share a joint, and joints without one beside joints with one."""
        driven = [actuator.joint for actuator in plant.actuators]
        shared = [joint.name for joint in dict.fromkeys(driven) if driven.count(joint) > 1]
        if shared:
            raise refusal(
                self,
                "one motor on a joint, so that the source of its force is unique",
                f"several on {quoted(shared)} of '{plant.label}'",
            )
        idle = [each.name for each in plant.joints if each.num_velocities and each not in driven]
        if driven and idle and not underactuated:
            raise refusal(
                self,
                f"motors on all joints of '{plant.label}', or on none",
                f"none on {quoted(idle)}",
                "Add motors, or pass underactuated=True, if the forces of these joints are not "
                "applied, or other blocks apply them",
            )

    def _declare_forces(self, actuators: Sequence[Actuator], inputs: list[InputPort]) -> None:
        """Declare the outputs."""
        self._forces = self.declare_cache_entry(
            "needed_forces", self.calc_forces, prerequisites=inputs
        )
        self.generalized_force = self.declare_vector_output(
            "generalized_force",
            self.topology.num_velocities,
            self._forces,
            prerequisites=[self._forces],
            **along_joints(mobilizer.joint for mobilizer in self.topology.mobilizers),
        )
        self.efforts: tuple[LeafOutputPort, ...] = tuple(
            self.declare_vector_output(
                actuator.name,
                actuator.joint.num_velocities,
                partial(self._calc_effort, self.topology.mobilizer_of(actuator.joint).v),
                prerequisites=[self._forces],
                **along_joint(actuator.joint),
                doc=f"for the motor on {actuator.joint.name}",
            )
            for actuator in actuators
        )

    @abstractmethod
    def calc_forces(self, context: Any) -> Array:
        """Return the generalized forces along all velocities."""

    def calc_weights(
        self, context: Any, placements: Sequence[Placement], v: Array, inertias: Any
    ) -> list[Array]:
        """Return the weights of all bodies, with the forces of a world that spins."""
        weights = energy.gravity_forces(inertias, self.gravity(context))
        if self.spin is None:
            return weights
        motions = calc_motions(self.topology, placements, v, self.positions(context))
        added = energy.frame_forces(placements, motions, inertias, self.spin(context))
        return [weight + more for weight, more in zip(weights, added, strict=True)]

    def _calc_effort(self, part: slice, context: Any) -> Array:
        return self._forces(context)[part]


class InverseDynamics(PlantModel):
    """The forces that produce desired joint accelerations of a plant: computed torque.

    With the mass matrix M, the Coriolis, centripetal and gyroscopic terms C v, the viscous damping
    D of the joints and gravity, all from the parameters of this block, and the wanted acceleration
    a::

        τ = M(q) a + C(q, v) v + D v − τ_gravity(q)

    A plant with the same parameters, and no other forces on it, then accelerates with v̇ = a: each
    joint by itself, as a double integrator. A `PIDController` with ``rate_inputs`` and the
    acceleration of the setpoint as feedforward gives an a that brings it to its setpoint.

    The parameters are a copy of those of the plant, so that a model error is simulated by setting
    them here or there. The masses here include those that force elements carry by default.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    plant : Plant
        What is controlled. Its structure is taken, and the parameters that it has in new contexts.
    underactuated : bool
        Whether there may be joints without a motor beside those with one. Motors then get what
        their own joints need, and only ``generalized_force`` has what the others need.

    Attributes
    ----------
    positions, velocities : InputPort
        Inputs "positions" (q) and "velocities" (v), as the plant has them as outputs.
    accelerations : InputPort
        Input "accelerations" (a), of the size of v.
    generalized_force : LeafOutputPort
        Output "generalized_force" (τ), for the input of the plant of the same name.
    efforts : tuple of LeafOutputPort
        One output for each motor of the plant, with its name, for the input of the plant of the
        same name. Connect either these or ``generalized_force``.
    gravity : NumericParameter
        Parameter "gravity", in m/s^2.

    Raises
    ------
    DeclarationError
        When there is no plant, nothing in it moves, two motors are on one joint, or, unless
        ``underactuated``, motors are on some joints and not on others.

    See Also
    --------
    GravityCompensation : The forces that hold a plant at rest.

    Notes
    -----
    The other parameters have the names that they have in the `MultibodyTree` of the plant, such as
    ``<body>_mass`` in kg, ``<body>_com`` in m, ``<body>_unit_inertia`` in m^2, ``<joint>_damping``,
    ``<joint>_locked``, ``<motor>_gear_ratio`` and ``<motor>_rotor_inertia`` in kg m^2 or kg, and
    ``spin`` in rad/s of a world that spins, whose forces count as those of gravity. A joint that is
    locked here stands still, whatever the inputs say, and gets no force.

    Force elements, such as springs and friction, are not part of the model; neither are limits of
    motors. What is known of such forces is subtracted from τ by a `Sum`. The effort is proportional
    to the number of bodies.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("crane", gravity=(0.0, 0.0, -10.0))
    >>> load = builder.add_body("load", fx.SpatialInertia.point_mass(3.0), com=(0.0, 0.0, -2.0))
    >>> rope = builder.add_joint(fx.RevoluteJoint("rope", builder.world, load, (0.0, 1.0, 0.0)))
    >>> motor = builder.add_actuator("motor", rope)
    >>> torque = fx.InverseDynamics("torque", builder.build())
    >>> context = torque.create_default_context()
    >>> torque.positions.fix(context, np.pi / 2)
    >>> torque.velocities.fix(context, 0.0)
    >>> torque.accelerations.fix(context, 0.5)
    >>> torque.output_port("motor").eval(context).round(6)
    array([66.])
    """

    def __init__(self, name: str, plant: Plant, *, underactuated: bool = False) -> None:
        super().__init__(name, plant, underactuated)
        inertias = _default_inertias(plant)
        self.constants = TreeConstants(self, self.topology, plant.actuators, inertias=inertias)
        size = self.topology.num_velocities
        self.velocities = self.declare_vector_input("velocities", size)
        self.accelerations = self.declare_vector_input("accelerations", size)
        inputs = [self.positions, self.velocities, self.accelerations]
        self._declare_forces(plant.actuators, inputs)

    def calc_forces(self, context: Any) -> Array:
        """Return τ."""
        topology, constants, q = self.topology, self.constants, self.positions(context)
        mobile = constants.mobile_velocities(context)
        v, vdot = mobile * self.velocities(context), mobile * self.accelerations(context)
        placements = calc_placements(topology, q)
        motions = calc_motions(topology, placements, v, q)
        inertias = world_inertias(placements, constants.mass_properties(context))
        weights = self.calc_weights(context, placements, v, inertias)
        tau = inverse_dynamics(topology, placements, motions, inertias, weights, vdot)
        rotors = constants.reflected_inertia(context) * vdot
        return mobile * (tau + rotors + constants.dampings(context) * v)


class GravityCompensation(PlantModel):
    """The forces that hold a plant at rest against gravity, in any position.

    With the masses and centers of mass of this block::

        τ = −τ_gravity(q)

    A plant with the same parameters, and no other forces on it, stays at rest in any pose. Where a
    controller holds it, a wrong mass makes it sag by the missing weight over the stiffness.

    The parameters are a copy of those of the plant, so that a model error is simulated by setting
    them here or there. The masses here include those that force elements carry by default.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    plant : Plant
        What is held. Its structure is taken, and the parameters that it has in new contexts.
    underactuated : bool
        Whether there may be joints without a motor beside those with one. Motors then get what
        their own joints need, and only ``generalized_force`` has what the others need.

    Attributes
    ----------
    positions : InputPort
        Input "positions" (q), as the plant has it as output.
    generalized_force : LeafOutputPort
        Output "generalized_force" (τ), for the input of the plant of the same name.
    efforts : tuple of LeafOutputPort
        One output for each motor of the plant, with its name, for the input of the plant of the
        same name. Connect either these or ``generalized_force``.
    gravity : NumericParameter
        Parameter "gravity", in m/s^2.

    Raises
    ------
    DeclarationError
        When there is no plant, nothing in it moves, two motors are on one joint, or, unless
        ``underactuated``, motors are on some joints and not on others.

    See Also
    --------
    InverseDynamics : The forces for desired accelerations.

    Notes
    -----
    The other parameters are ``<body>_mass`` in kg and ``<body>_com`` in m, for each body, and
    ``spin`` in rad/s of a world that spins, whose centrifugal forces count as those of gravity.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("crane", gravity=(0.0, 0.0, -10.0))
    >>> load = builder.add_body("load", fx.SpatialInertia.point_mass(3.0), com=(0.0, 0.0, -2.0))
    >>> rope = builder.add_joint(fx.RevoluteJoint("rope", builder.world, load, (0.0, 1.0, 0.0)))
    >>> hold = fx.GravityCompensation("hold", builder.build())
    >>> context = hold.create_default_context()
    >>> hold.positions.fix(context, np.pi / 2)
    >>> hold.generalized_force.eval(context).round(6)
    array([60.])
    >>> context.set("load_mass", 2.0)
    >>> hold.generalized_force.eval(context).round(6)
    array([40.])
    """

    def __init__(self, name: str, plant: Plant, *, underactuated: bool = False) -> None:
        super().__init__(name, plant, underactuated)
        bodies = zip(self.topology.bodies[1:], _default_inertias(plant), strict=True)
        self._weights = [
            (*declare_weight(self, body.name, inertia), inertia.unit_inertia_six)
            for body, inertia in bodies
        ]
        self._declare_forces(plant.actuators, [self.positions])

    def calc_forces(self, context: Any) -> Array:
        """Return τ."""
        placements = calc_placements(self.topology, self.positions(context))
        still = np.zeros(self.topology.num_velocities)
        masses = [
            mass_properties(mass(context), com(context), unit_inertia)
            for mass, com, unit_inertia in self._weights
        ]
        inertias = world_inertias(placements, masses)
        weights = self.calc_weights(context, placements, still, inertias)
        return -generalized_forces(self.topology, placements, dict(enumerate(weights)))


def _default_inertias(plant: Plant) -> list[SpatialInertia]:
    """Return the inertias of all bodies but the world in new contexts, with what they carry."""
    bodies: Sequence[Any] = plant.bodies[1:]  # all have an inertia, or carry one
    inertias = [body.inertia for body in bodies]
    constants = plant.tree.constants
    if constants.inertia_ports:
        together = constants.mass_properties(plant.create_default_context().find_leaf(plant.tree))
        for number in constants.carriers:
            M = together[number - 1]
            about_center = shift_mass_properties(M, M.com).inertia
            inertias[number - 1] = SpatialInertia(M.mass, M.com, about_center)
    return inertias
