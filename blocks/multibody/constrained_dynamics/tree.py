"""The block that carries the motion of all bodies of a plant."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import POSE_SIZE
from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.constrained_dynamics.tree_totals import declare_totals
from flexure.blocks.multibody.constraints import (
    Constraint,
    FrameConstraint,
    LoadedFriction,
    StickingConstraint,
    SwitchedConstraint,
    UnilateralConstraint,
)
from flexure.blocks.multibody.trees.component_names import (
    POSITION,
    SPATIAL_FORCE,
    SPATIAL_VELOCITY,
    along_joint,
    common_unit,
)
from flexure.blocks.multibody.trees.inverse_dynamics import reaction
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams import scalars
from flexure.diagrams.systems.ports import Calculation, Prerequisite
from flexure.diagrams.values.arrays import Array


class MultibodyTree(TreeDynamics):
    """Rigid bodies connected by joints, in reduced coordinates.

    The state holds the positions q and velocities v of all joints. With the mass matrix M, the
    Coriolis, centripetal and gyroscopic terms C v, gravity, the viscous damping D of the joints,
    applied forces τ along the joints and spatial forces F on the bodies with their Jacobians J::

        q̇ = N(q) v
        M(q) v̇ + C(q, v) v = τ_gravity(q) - D v + τ + Σ Jᵀ F

    The second equation is solved for v̇ by the articulated-body algorithm, with an effort that is
    proportional to the number of bodies.

    A locked joint stands still, however and whenever it was locked: its velocities count as zero in
    all equations and outputs, whatever the state holds for them, and their rates are exactly zero.

    Blocks of this kind are made by `PlantBuilder`.

    Parameters
    ----------
    name : str
        Name of the block.
    topology : Topology
        Bodies and joints.
    gravity : array_like, shape (3,)
        Acceleration of free fall in the world, in m/s².
    spin : array_like, shape (3,), optional
        Constant angular velocity of the world about its origin, in rad/s; see `PlantBuilder`.
    force_inputs : sequence of ForceInput
        The inputs through which forces come in.
    actuators : sequence of Actuator
        The motors whose rotors the joints feel.
    inertia_inputs : sequence of InertiaInput or CouplingInput
        The inputs through which force elements add to the inertia of bodies, or couple bodies.
    constraints : sequence of Constraint
        What holds between bodies beside the joints.

    Raises
    ------
    DeclarationError
        When the name of an input is taken.
    ValueRefusedError
        When gravity is not a finite vector of size 3.

    See Also
    --------
    PlantBuilder : Build a plant with force elements and ports.

    Notes
    -----
    Parameters: ``gravity``; ``spin`` if there is any; for each body ``<body>_mass`` in kg,
    ``<body>_com``, the position of the center of mass in the body frame in m, and
    ``<body>_unit_inertia`` (xx, yy, zz, xy, xz, yz
    about the center of mass, per mass, in m²); for each joint ``<joint>_damping`` and
    ``<joint>_locked``, which is 1 or 0; for each motor ``<motor>_gear_ratio`` and
    ``<motor>_rotor_inertia`` in kg m² (or kg).

    Inputs, zero when not connected: those of ``force_inputs`` and of ``inertia_inputs``, and
    ``generalized_force``. All that follows counts what comes in through ``inertia_inputs`` as part
    of the bodies.

    Outputs: ``positions``, ``velocities``, ``accelerations``; for each body ``<body>_pose`` (the
    rotation matrix row by row, then the position), ``<body>_position``, ``<body>_spatial_velocity``
    and ``<body>_spatial_acceleration`` in the world at its origin; for each joint that moves
    ``<joint>_q`` and ``<joint>_v``, and for each joint ``<joint>_reaction``, the moment and force
    (tx, ty, tz, fx, fy, fz) that it exerts on its child body, about the origin of the frame M
    there and expressed in M; ``kinetic_energy`` (that of rotors included), ``gravity_energy``,
    ``gravity_power``, ``damping_power`` (of the joints) and ``input_power`` (of all forces that are
    not from elements); ``momentum`` about the origin of the world, ``center_of_mass`` and its
    velocity. For each constraint ``<constraint>_error`` and its ``_error_rate``, ``_multipliers``
    and, between frames, ``_reaction``; of contacts also ``_contact_force`` and ``_lift_off``.

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

    def _declare_outputs(self) -> None:
        topology, x = self.topology, self._own_state
        nq, nv = topology.num_positions, topology.num_velocities
        self.positions = self.declare_vector_output(
            "positions", nq, self.q, prerequisites=x, shows=slice(nq) if x else None
        )
        self.velocities = self.declare_vector_output(
            "velocities",
            nv,
            self.moving_velocities,
            prerequisites=[self.moving_velocities],
            shows=self._in_state(slice(nv)) if x else None,
        )
        self.accelerations = self.declare_vector_output(
            "accelerations", nv, self.rates, prerequisites=[self.rates]
        )
        for number, body in enumerate(topology.bodies[1:], start=1):
            self._declare_body_outputs(number, body)
        for mobilizer in topology.mobilizers:
            self._declare_joint_outputs(mobilizer)
        for k, constraint in enumerate(self.constraints):
            self._declare_constraint_outputs(k, constraint)
        declare_totals(self)

    def _show(
        self,
        owner: str,
        name: str,
        size: int,
        calc: Calculation,
        *reads: Prerequisite,
        **about: Any,
    ) -> None:
        """Declare an output of a body, a joint or a constraint."""
        self.declare_vector_output(f"{owner}_{name}", size, calc, prerequisites=reads, **about)

    def _declare_body_outputs(self, number: int, body: Body) -> None:
        def show(name: str, size: int, calc: Any, reads: Prerequisite, **about: Any) -> None:
            self._show(body.name, name, size, partial(calc, number), reads, **about)

        doc = "rotation matrix row by row, then position, in the world"
        show("pose", POSE_SIZE, self._calc_pose, self.placements, doc=doc)
        show("position", 3, self._calc_position, self.placements, unit="m", element_names=POSITION)
        doc = "angular velocity, then velocity of the origin, in the world"
        about = {"element_names": SPATIAL_VELOCITY, "doc": doc}
        show("spatial_velocity", 6, self._calc_velocity, self.motions, **about)
        doc = "angular acceleration, then acceleration of the origin, in the world"
        show("spatial_acceleration", 6, self._calc_acceleration, self.body_accelerations, doc=doc)

    def _declare_joint_outputs(self, mobilizer: Mobilizer) -> None:
        joint = mobilizer.joint
        show = partial(self._show, joint.name)
        doc = "moment about Mo and force on the child body by the joint, in the frame M on it"
        about = {"element_names": SPATIAL_FORCE, "doc": doc}
        calc = partial(self._calc_reaction, mobilizer)
        show("reaction", 6, calc, self.transmitted, self.placements, **about)
        if mobilizer.is_weld:
            return
        show(
            "q",
            joint.num_positions,
            partial(self._calc_joint_position, mobilizer.q),
            self.state,
            shows=mobilizer.q,
            element_names=joint.POSITION_SUFFIXES,
            unit=common_unit(joint.POSITION_SUFFIXES, "rad", "m"),
        )
        show(
            "v",
            joint.num_velocities,
            partial(self._calc_joint_velocity, mobilizer.v),
            self.moving_velocities,
            shows=self._in_state(mobilizer.v),
            element_names=joint.VELOCITY_SUFFIXES,
            unit=common_unit(joint.VELOCITY_SUFFIXES, "rad/s", "m/s"),
        )

    def _declare_constraint_outputs(self, k: int, constraint: Constraint) -> None:
        show, size = partial(self._show, constraint.name), constraint.num_equations
        doc = "what is left of the equations of the constraint, as lengths, angles or velocities"
        show("error", size, partial(self._calc_constraint_error, k), self.conditions, doc=doc)
        show("error_rate", size, partial(self._calc_constraint_rate, k), self.conditions)
        doc = "forces and moments with which the equations are upheld"
        show("multipliers", size, partial(self._calc_multipliers_of, k), self.multipliers, doc=doc)
        if constraint.contact_equation is not None:
            number = constraint.contact_equation
            for what, calc, doc in (
                ("contact_force", self._calc_contact_force, "negative where it pulls"),
                ("lift_off", self._calc_lift_off, "1 where a real contact would open, or 0"),
            ):
                show(what, 1, partial(calc, k, number), self.multipliers, doc=doc)
        if isinstance(constraint, FrameConstraint):
            reaction_of = partial(self._calc_constraint_reaction, k, constraint)
            reads = self.multipliers, self.conditions, self.placements
            doc = "moment about Mo and force on the body of M, in the frame M on it"
            show("reaction", 6, reaction_of, *reads, element_names=SPATIAL_FORCE, doc=doc)
        if isinstance(constraint, SwitchedConstraint):
            self._declare_switched_outputs(constraint)

    def _declare_switched_outputs(self, constraint: SwitchedConstraint) -> None:
        show, modes = partial(self._show, constraint.name), constraint.modes
        names, doc = constraint.mode_names(), constraint.MODES
        show("mode", len(constraint.rows), modes, modes, element_names=names, doc=doc)
        needs: list[Prerequisite]
        if isinstance(constraint, UnilateralConstraint):
            taken, doc = constraint.dissipated, "what impacts have taken away so far"
            show("dissipated_energy", 1, taken, taken, unit="J", doc=doc)
            if constraint.has_friction:
                needs = [self.conditions, self.multipliers]
                show(
                    "friction_force",
                    3 * constraint.num_equations,
                    constraint.friction_force,
                    *(*needs, self.placements),
                    unit="N",
                    doc="friction on the shape that is not a half-space, else on A, at each gap, "
                    "in the world",
                )
                show("non_conservative_power", 1, constraint.power, *needs, unit="W")
        elif isinstance(constraint, StickingConstraint):
            needs = [self.moving_velocities, modes]
            pressed, along = [*needs, self.multipliers], along_joint(constraint.joint)
            size = constraint.joint.num_velocities
            show("generalized_force", size, constraint.force, *pressed, **along)
            if not isinstance(constraint, LoadedFriction):
                show("non_conservative_power", 1, constraint.power, *needs, unit="W")
                return
            show("non_conservative_power", 1, constraint.power, *pressed, unit="W")
            doc = "what the coefficient of friction is multiplied by"
            show("load", 1, constraint.load, self.transmitted, self.placements, doc=doc, **along)

    def _calc_constraint_error(self, k: int, context: Any) -> Array:
        condition = self.conditions(context)[k]
        return scalars.array([*condition.errors, *condition.rates[len(condition.errors) :]])

    def _calc_constraint_rate(self, k: int, context: Any) -> Array:
        return scalars.array(self.conditions(context)[k].rates)

    def _calc_multipliers_of(self, k: int, context: Any) -> Array:
        return self.multipliers(context).values[k]

    def _calc_contact_force(self, k: int, number: int, context: Any) -> Array:
        return self.multipliers(context).values[k][number]

    def _calc_lift_off(self, k: int, number: int, context: Any) -> Array:
        return np.where(self._calc_contact_force(k, number, context) < 0.0, 1.0, 0.0)

    def _calc_constraint_reaction(self, k: int, constraint: FrameConstraint, context: Any) -> Array:
        condition, values = self.conditions(context)[k], self.multipliers(context).values[k]
        return constraint.reaction_of(self.placements(context), condition, values)

    def _calc_pose(self, number: int, context: Any) -> Array:
        placement = self.placements(context)[number]
        return np.concatenate([np.ravel(placement.R_WB), placement.p_WB])

    def _calc_position(self, number: int, context: Any) -> Array:
        return self.placements(context)[number].p_WB

    def _calc_velocity(self, number: int, context: Any) -> Array:
        return self.motions(context)[number].V_WB

    def _calc_acceleration(self, number: int, context: Any) -> Array:
        return self.body_accelerations(context)[number]

    def _calc_joint_position(self, part: slice, context: Any) -> Array:
        return self.q(context)[part]

    def _calc_joint_velocity(self, part: slice, context: Any) -> Array:
        return self.moving_velocities(context)[part]

    def _calc_reaction(self, mobilizer: Mobilizer, context: Any) -> Array:
        return reaction(mobilizer, self.placements(context), self.transmitted(context))
