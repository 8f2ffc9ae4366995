"""What is wrong with how a plant is built or asked is refused, with a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    UnknownNameError,
    WiringError,
)
from tests.support.mechanics.mechanisms import BOX, arm


class Idle(fx.multibody.JointForceElement):
    """An element without any force."""

    def calc_generalized_force(self, context: Any) -> Any:
        return np.zeros(self.joint.num_velocities)

    def calc_stored_energy(self, context: Any) -> Any:
        return 0.0

    def calc_conservative_power(self, context: Any) -> Any:
        return 0.0

    def calc_non_conservative_power(self, context: Any) -> Any:
        return 0.0


# Contexts, forces and names of others ------------------------------------------------------------


def sprung_arm() -> tuple[fx.Plant, fx.Body, fx.RevoluteJoint, fx.JointSpring]:
    builder, link, axis = arm()
    spring = builder.add_force_element(fx.JointSpring("spring", axis, stiffness=1.0))
    return builder.build(), link, axis, spring


Parts = tuple[fx.Plant, fx.Body, Any, Any]
FOREIGN_CONTEXT: dict[str, Callable[[Parts, fx.Context], object]] = {
    "get angle": lambda own, other: own[2].angle.get(other),
    "set angle": lambda own, other: own[2].angle.set(other, 1.0),
    "lock": lambda own, other: own[2].lock(other),
    "is locked": lambda own, other: own[2].is_locked(other),
    "damping": lambda own, other: own[2].damping.get(other),
    "pose": lambda own, other: own[1].pose(other),
    "velocity": lambda own, other: own[1].frame.spatial_velocity(other),
    "acceleration": lambda own, other: own[1].spatial_acceleration(other),
    "constant": lambda own, other: own[3].stiffness.set(other, 2.0),
    "energy": lambda own, other: own[3].stored_energy.eval(other),
    "positions": lambda own, other: own[0].get_positions(other),
    "set positions": lambda own, other: own[0].set_positions(other, [1.0]),
    "set velocities": lambda own, other: own[0].set_velocities(other, [1.0]),
    "mass matrix": lambda own, other: own[0].calc_mass_matrix(other),
    "accelerations": lambda own, other: own[0].calc_vdot(other),
    "bias": lambda own, other: own[0].calc_bias_term(other),
    "jacobian": lambda own, other: own[0].calc_jacobian(other, own[1]),
    "inverse dynamics": lambda own, other: own[0].calc_inverse_dynamics(other, [0.0]),
    "kinetic energy": lambda own, other: own[0].calc_kinetic_energy(other),
    "contribution": lambda own, other: own[0].calc_force_elements_contribution(other),
    "input": lambda own, other: own[0].input_port("generalized_force").fix(other, [1.0]),
    "simulation": lambda own, other: fx.simulate(own[0], 1.0, context=other),
}


@pytest.mark.parametrize("use", FOREIGN_CONTEXT)
def test_the_context_of_another_plant_is_refused(use: str) -> None:
    own, other = sprung_arm(), sprung_arm()[0].create_default_context()
    before = other.clone()
    with pytest.raises(
        ContextError, match=r"Create the context from the same|the same system|Make a new context"
    ):
        FOREIGN_CONTEXT[use](own, other)
    assert other == before


@pytest.mark.parametrize("use", ["get angle", "pose", "positions", "mass matrix", "energy"])
def test_what_is_no_context_is_refused(use: str) -> None:
    nothing: Any = None
    with pytest.raises(ContextError, match="create_default_context"):
        FOREIGN_CONTEXT[use](sprung_arm(), nothing)


def test_the_bodies_of_another_plant_are_refused() -> None:
    plant, (_, link, _, _) = sprung_arm()[0], sprung_arm()
    context = plant.create_default_context()
    with pytest.raises(UnknownNameError, match="'link'"):
        plant.calc_jacobian(context, link)


def pulled_arm() -> fx.Plant:
    """An arm with a spring on its joint, and a cable from the world to its link."""
    builder, link, axis = arm()
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=1.0))
    builder.add_force_element(
        fx.Cable(
            *("cable", builder.world, (0, 0, 3), link, (0, 0, 0)), free_length=1.0, stiffness=10.0
        )
    )
    return builder.build()


FORCES: dict[str, Callable[[fx.Plant, fx.Context, Any], object]] = {
    "inverse dynamics": lambda own, at, forces: own.calc_inverse_dynamics(at, [0.0], forces),
    "generalized forces": lambda own, at, forces: own.calc_generalized_forces(at, forces),
    "one force": lambda own, at, forces: own.joints[0].add_in_one_force(0, 1.0, forces),
    "damping": lambda own, at, forces: own.joints[0].add_in_damping(at, forces),
    "spring": lambda own, at, forces: own.force_element("spring").calc_and_add_force_contribution(
        at, forces
    ),
    "cable": lambda own, at, forces: own.force_element("cable").calc_and_add_force_contribution(
        at, forces
    ),
    "sum": lambda own, at, forces: fx.MultibodyForces(own).add(forces),
}


@pytest.mark.parametrize("use", FORCES)
def test_forces_on_another_plant_are_refused_and_left_alone(use: str) -> None:
    plant, other = pulled_arm(), pulled_arm()
    context = plant.create_default_context()
    plant.set_positions(context, [0.3])
    forces = fx.MultibodyForces(other)
    with pytest.raises(ContextError, match="MultibodyForces on 'arm'; found forces on another"):
        FORCES[use](plant, context, forces)
    assert not np.any(forces.generalized_forces)
    assert not np.any(forces.body_forces)
    with pytest.raises(ContextError, match="found 'none'"):
        FORCES[use](plant, context, "none")
    FORCES[use](plant, context, fx.MultibodyForces(plant))


def test_an_element_refuses_the_context_of_another_plant_and_adds_nothing() -> None:
    plant, other = pulled_arm(), pulled_arm().create_default_context()
    forces = fx.MultibodyForces(plant)
    for element in plant.force_elements:
        with pytest.raises(ContextError, match="Make a new context"):
            element.calc_and_add_force_contribution(other, forces)
    assert not np.any(forces.generalized_forces)
    assert not np.any(forces.body_forces)


@pytest.mark.parametrize("nothing", [None, arm()[0]], ids=["None", "a builder"])
def test_forces_are_collected_for_a_plant(nothing: Any) -> None:
    with pytest.raises(DeclarationError, match=r"PlantBuilder\.build\(\)"):
        fx.MultibodyForces(nothing)


def test_what_is_not_there_is_answered_with_what_is() -> None:
    plant, *_ = sprung_arm()
    context = plant.create_default_context()
    questions: list[tuple[Callable[[], object], str]] = [
        (lambda: plant.joint("axs"), "Cannot find joint 'axs' in 'arm'. Did you mean 'axis'?"),
        (lambda: plant.body("lnk"), "Cannot find body 'lnk' in 'arm'. Did you mean 'link'?"),
        (lambda: plant.frame("lnk"), "Cannot find frame 'lnk' in 'arm'. Did you mean 'link'?"),
        (lambda: plant.force_element("sprng"), "Did you mean 'spring'?"),
        (lambda: context.get("axis.dampin"), "Did you mean 'axis.damping'?"),
        (lambda: context.get("link.mas"), "Did you mean 'link.mass'?"),
        (lambda: context.set("axis.angel", 1.0), "Did you mean 'axis.angle'?"),
        (lambda: context.get("spring.stifness"), "Did you mean 'stiffness'?"),
    ]
    for look, answer in questions:
        with pytest.raises(UnknownNameError) as caught:
            look()
        assert answer in str(caught.value)


# Building ----------------------------------------------------------------------------------------


def ring() -> fx.PlantBuilder:
    """Four bodies on hinges, one after the other."""
    builder = fx.PlantBuilder("ring")
    bodies = [builder.world, *(builder.add_body(f"link{k}", BOX) for k in range(4))]
    for k in range(4):
        builder.add_joint(fx.RevoluteJoint(f"hinge{k}", bodies[k], bodies[k + 1], (0, 1, 0)))
    return builder


def test_a_ring_of_joints_is_refused_and_spelled_out() -> None:
    builder = ring()
    last = builder.bodies[-1]
    with pytest.raises(DeclarationError) as caught:
        builder.add_joint(fx.RevoluteJoint("closing", last, builder.world, (0, 1, 0)))
    text = str(caught.value)
    assert "Cannot close a loop by joint 'closing'" in text
    for name in ("link0", "link3", "'hinge0'", "'hinge3'"):
        assert name in text
    assert (
        "in place of 'closing', or of another one: a LinearBushing or LinearBushingRollPitchYaw "
        "between 'link3' and 'world'"
    ) in text
    builder.add_force_element(
        fx.LinearBushing.from_constants(  # the way out
            "closing",
            last,
            builder.world,
            fx.BushingConstants.revolute("y", torque_stiffness=1e3, force_stiffness=1e5),
        )
    )
    assert builder.build().num_positions == 4


ADDITIONS: dict[str, Callable[[fx.PlantBuilder, fx.Body, fx.RevoluteJoint], object]] = {
    "add_body": lambda builder, link, axis: builder.add_body("late", BOX),
    "add_frame": lambda builder, link, axis: builder.add_frame("late", link),
    "add_joint": lambda builder, link, axis: builder.add_joint(
        fx.RevoluteJoint("late", builder.world, link, (1, 0, 0))
    ),
    "add_force_element": lambda builder, link, axis: builder.add_force_element(
        fx.JointSpring("late", axis, stiffness=1.0)
    ),
    "add_actuator": lambda builder, link, axis: builder.add_actuator("late", axis),
    "add_external_force": lambda builder, link, axis: builder.add_external_force("late", link),
    "add_energy_ledger": lambda builder, link, axis: builder.add_energy_ledger("late"),
    "build": lambda builder, link, axis: builder.build(),
}


@pytest.mark.parametrize("addition", ADDITIONS)
def test_a_builder_that_has_built_takes_nothing_more(addition: str) -> None:
    builder, link, axis = arm()
    plant = builder.build()
    with pytest.raises(WiringError, match=r"built its plant at test_plant_faults\.py:\d+"):
        ADDITIONS[addition](builder, link, axis)
    assert plant.num_positions == 1


@pytest.mark.parametrize("addition", ["add_joint", "add_force_element", "add_actuator"])
def test_parts_of_another_builder_are_refused(addition: str) -> None:
    builder, _, _ = arm()
    _, link, axis = arm()
    with pytest.raises(WiringError, match="was not added to it"):
        ADDITIONS[addition](builder, link, axis)
    assert builder.build().num_positions == 1


def test_an_element_belongs_to_one_plant() -> None:
    builder, _, axis = arm()
    spring = builder.add_force_element(fx.JointSpring("spring", axis, stiffness=1.0))
    with pytest.raises(WiringError, match="'spring'"):
        builder.add_force_element(spring)
    builder.build()
    other = fx.DiagramBuilder("other")
    with pytest.raises(WiringError, match="Make another instance"):
        other.add(spring)
    with pytest.raises(DeclarationError, match="Make another instance of it, outside of a plant"):
        fx.check_passivity(spring)


TAKEN = [
    *("tree", "totals", "ledger", "gravity", "damping", "input", "kinetic", "link", "axis"),
    "other",
]


@pytest.mark.parametrize("name", TAKEN)
def test_an_element_cannot_have_a_name_that_means_something_else(name: str) -> None:
    builder, _, axis = arm()
    builder.add_energy_ledger()
    builder.add_force_element(fx.JointSpring("other", axis, stiffness=1.0))
    with pytest.raises(WiringError, match=f"found '{name}', which"):
        builder.add_force_element(fx.JointSpring(name, axis, stiffness=1.0))
    assert len(builder.build().force_elements) == 1


def test_bodies_and_joints_cannot_have_the_name_of_an_element() -> None:
    builder, link, axis = arm()
    builder.add_force_element(fx.JointSpring("flap", axis, stiffness=1.0))
    with pytest.raises(WiringError, match="'flap'"):
        builder.add_body("flap", BOX)
    second = builder.add_body("second", BOX)
    with pytest.raises(WiringError, match="'flap'"):
        builder.add_joint(fx.RevoluteJoint("flap", link, second, (1, 0, 0)))


@pytest.mark.parametrize(
    "name", ["gravity", "x", "axis_q", "axis_damping", "link_mass", "link_pose", "link", "axis"]
)
def test_inputs_and_elements_may_be_called_as_things_inside_of_the_tree_are(name: str) -> None:
    builder, link, axis = arm()
    if name not in ("gravity", "link", "axis"):
        builder.add_force_element(fx.JointSpring(name, axis, stiffness=1.0))
    builder.add_actuator(name, axis)
    builder.add_external_force("push", link)
    plant = builder.build()
    context = plant.create_default_context()
    at_rest = plant.calc_vdot(context)[0]
    plant.input_port(name).fix(context, 2.0)
    assert plant.calc_vdot(context)[0] > at_rest


@pytest.mark.parametrize(
    "name", ["positions", "momentum", "mechanical_energy", "generalized_force"]
)
def test_inputs_cannot_be_called_as_outputs_of_a_plant_are(name: str) -> None:
    builder, link, axis = arm()
    for add in (
        lambda: builder.add_actuator(name, axis),
        lambda: builder.add_external_force(name, link),
    ):
        with pytest.raises(WiringError, match=f"found '{name}', which"):
            add()
    builder.build()


def test_what_cannot_move_has_no_motors() -> None:
    builder = fx.PlantBuilder("plant")
    weld = builder.add_joint(fx.WeldJoint("weld", builder.world, builder.add_body("body", BOX)))
    with pytest.raises(DeclarationError, match="a joint that moves; found a weld joint"):
        builder.add_actuator("motor", weld)
    with pytest.raises(DeclarationError, match="a joint that moves; found a weld joint"):
        builder.add_force_element(Idle("idle", weld))
    assert builder.build().num_velocities == 0
