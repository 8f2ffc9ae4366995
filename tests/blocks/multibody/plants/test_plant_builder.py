"""Plants are built step by step; what is refused leaves the builder as it was."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.mechanics.mechanisms import BOX, arm
from tests.support.tiers import for_each


def pendulum_acceleration(angle: float) -> float:
    """θ̈ = -m g l sin θ / (I + m l²) about the y axis."""
    inertia = 2.0 / 12.0 * (0.1**2 + 0.3**2) + 2.0 * 0.5**2
    return float(-2.0 * 9.81 * 0.5 * np.sin(angle) / inertia)


# What is built -----------------------------------------------------------------------------------


def test_a_body_on_an_axis_swings_like_a_pendulum() -> None:
    builder, _, axis = arm()
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, 0.7)
    rate, acceleration = plant.eval_time_derivatives(context)
    assert rate == 0.0
    assert acceleration == pytest.approx(pendulum_acceleration(0.7), rel=1e-14)


def test_a_plant_is_a_diagram_with_named_ports() -> None:
    builder, _, axis = arm()
    builder.add_actuator("motor", axis)
    plant = builder.build()
    assert isinstance(plant, fx.Diagram)
    assert [port.name for port in plant.input_ports] == ["motor", "generalized_force"]
    names = {port.name for port in plant.output_ports}
    assert {"axis.angle", "axis.rate", "link.pose", "link.position", "kinetic_energy"} <= names


def test_com_moves_the_center_of_mass_and_keeps_the_inertia_about_it() -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("a", BOX.shifted((1.0, 0.0, 0.0)), com=(0.0, 0.0, -0.5))
    assert body.inertia is not None
    np.testing.assert_allclose(body.inertia.com, (0.0, 0.0, -0.5), atol=1e-16)
    np.testing.assert_allclose(body.inertia.inertia, BOX.inertia, rtol=1e-14)


def test_free_bodies_get_floating_joints() -> None:
    builder, link, _ = arm()
    ball = builder.add_body("ball", BOX)
    rod = builder.add_body("rod", BOX)
    builder.add_joint(fx.RevoluteJoint("elbow", ball, rod, axis=(1, 0, 0)))
    plant = builder.build()
    assert plant.joint("ball").TYPE_NAME == "quaternion_floating"
    assert plant.joint("ball").child_body is ball
    assert (plant.num_positions, plant.num_velocities) == (9, 8)
    assert {joint.child_body for joint in plant.joints} == {link, ball, rod}


def test_a_floating_joint_avoids_a_name_that_is_taken() -> None:
    builder = fx.PlantBuilder()
    link = builder.add_body("link", BOX)
    builder.add_body("axis", BOX)
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 0, 1)))
    assert [joint.name for joint in builder.build().joints] == ["axis", "axis_free"]


def test_a_group_of_bodies_floats_at_the_body_that_is_no_child() -> None:
    builder = fx.PlantBuilder()
    rod, ball = builder.add_body("rod", BOX), builder.add_body("ball", BOX)
    builder.add_joint(fx.RevoluteJoint("elbow", ball, rod, axis=(1, 0, 0)))
    plant = builder.build()
    assert plant.joints[0].child_body is ball


def test_frames_can_be_stacked() -> None:
    builder, link, _ = arm()
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    edge = builder.add_frame("edge", link, (quarter, (1.0, 0.0, 0.0)))
    tip = builder.add_frame("tip", edge, (np.eye(3), (0.0, 2.0, 0.0)))
    np.testing.assert_allclose(tip.X_BF.p, (-1.0, 0.0, 0.0), atol=1e-15)
    plant = builder.build()
    assert plant.frame("tip") is tip
    assert plant.frame("link") is link.frame


@pytest.mark.parametrize("position", [(1.0, 2.0, 3.0), np.array([1.0, 2.0, 3.0]), [1, 2, 3]])
def test_a_position_alone_places_a_frame_that_is_not_turned(position: Any) -> None:
    builder, link, _ = arm()
    tip = builder.add_frame("tip", link, position)
    np.testing.assert_array_equal(tip.X_BF.R, np.eye(3))
    np.testing.assert_array_equal(tip.X_BF.p, [1.0, 2.0, 3.0])
    weld = fx.WeldJoint("weld", tip, builder.add_body("cap", BOX), position)
    np.testing.assert_array_equal(weld.X_FM.p, [1.0, 2.0, 3.0])


def test_an_actuator_drives_its_joint_and_its_rotor_is_felt() -> None:
    builder, _, axis = arm(gravity=(0, 0, 0))
    builder.add_actuator("motor", axis, gear_ratio=10.0, rotor_inertia=0.01)
    plant = builder.build()
    context = plant.create_default_context()
    plant.input_port("motor").fix(context, 3.0)
    inertia = 2.0 / 12.0 * (0.1**2 + 0.3**2) + 2.0 * 0.5**2 + 1.0
    assert plant.calc_mass_matrix(context)[0, 0] == pytest.approx(inertia, rel=1e-14)
    assert plant.calc_vdot(context)[0] == pytest.approx(3.0 / inertia, rel=1e-14)


def test_an_actuator_gives_no_more_than_its_limit() -> None:
    builder, _, axis = arm(gravity=(0, 0, 0))
    builder.add_actuator("motor", axis, effort_limit=2.0)
    plant = builder.build()
    context = plant.create_default_context()
    axis.angular_rate.set(context, 0.5)
    accelerations = []
    for torque in (2.0, 50.0, -50.0):
        plant.input_port("motor").fix(context, torque)
        accelerations.append(plant.calc_vdot(context)[0])
    assert accelerations[0] == accelerations[1] == -accelerations[2] > 0.0
    assert context.get("input_power") == -1.0


def test_an_external_force_pushes_a_body() -> None:
    builder = fx.PlantBuilder(gravity=(0, 0, 0))
    body = builder.add_body("body", BOX)
    builder.add_external_force("push", body)
    plant = builder.build()
    context = plant.create_default_context()
    plant.input_port("push").fix(context, [0, 0, 1.0, 4.0, 0, 0])
    spin = 1.0 / BOX.inertia[2, 2]
    np.testing.assert_allclose(plant.calc_vdot(context), [0, 0, spin, 2.0, 0, 0], rtol=1e-14)


def test_generalized_forces_add_to_actuators() -> None:
    builder, _, axis = arm(gravity=(0, 0, 0))
    builder.add_actuator("motor", axis)
    plant = builder.build()
    context = plant.create_default_context()
    plant.input_port("motor").fix(context, 3.0)
    once = plant.calc_vdot(context)[0]
    plant.input_port("generalized_force").fix(context, -1.0)
    assert plant.calc_vdot(context)[0] == pytest.approx(once * 2.0 / 3.0, rel=1e-14)


def test_parameters_have_short_names_and_can_be_swept() -> None:
    builder, link, _ = arm()
    plant = builder.build()
    context = plant.create_default_context()
    assert context.get("link.mass") == 2.0
    context.set("link.mass", 5.0)
    assert context.get("tree.link_mass") == link.mass.get(context) == 5.0
    link.com.set(context, (0.0, 0.0, -1.0))
    assert context.get("link.com")[2] == -1.0
    np.testing.assert_allclose(link.unit_inertia.get(context), BOX.unit_inertia_six)
    with pytest.raises(fx.errors.UnknownNameError, match=r"link\.weight"):
        context.get("link.weight")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("lnik.mass", "link.mass"),
        ("axs.damping", "axis.damping"),
        ("sprng.stiffness", "spring.stiffness"),
        ("spring.stifness", "stiffness"),
        ("axis.angel", "axis.angle"),
    ],
)
def test_paths_with_slips_bring_up_what_was_meant(path: str, meant: str) -> None:
    builder, _, axis = arm()
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=1.0))
    with pytest.raises(fx.errors.UnknownNameError, match=f"Did you mean '{meant}'"):
        builder.build().find(path)


def test_the_frame_of_a_jacobian_is_no_name() -> None:
    builder, _, _ = arm()
    plant = builder.build()
    with pytest.raises(fx.errors.DeclarationError, match="a Frame or a Body; found 'link'"):
        plant.calc_jacobian(plant.create_default_context(), "link")  # type: ignore[arg-type]


def test_a_sensitivity_is_found_by_either_name_of_a_parameter() -> None:
    builder, _, axis = arm()
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, 0.7)
    found = fx.parameter_sensitivity(plant, ["link.com"], 0.5, context=context)
    np.testing.assert_array_equal(found["link.com"], found["tree.link_com"])
    with pytest.raises(fx.errors.UnknownNameError, match="link_com"):
        found["link.mass"]


def test_forces_of_another_plant_are_refused() -> None:
    plant, other = arm()[0].build(), arm()[0].build()
    context = plant.create_default_context()
    with pytest.raises(fx.errors.ContextError, match="another plant"):
        plant.calc_inverse_dynamics(context, [0.0], fx.MultibodyForces(other))
    with pytest.raises(fx.errors.ContextError, match="MultibodyForces"):
        plant.calc_inverse_dynamics(context, [0.0], [1, 2])  # type: ignore[arg-type]


def test_a_plant_can_be_pickled() -> None:
    builder, _, _ = arm()
    plant = pickle.loads(pickle.dumps(builder.build()))
    context = plant.create_default_context()
    plant.joint("axis").angle.set(context, 0.7)
    assert plant.calc_vdot(context)[0] == pytest.approx(pendulum_acceleration(0.7), rel=1e-14)


def test_a_plant_nests_in_a_diagram() -> None:
    builder, _, axis = arm()
    builder.add_actuator("motor", axis)
    outer = fx.DiagramBuilder("servo")
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=4.0))
    outer.add_all(builder.build(), fx.Constant("torque", 1.5), fx.Gain("scale", 0.1))
    outer.connect("torque.y", "arm.motor")
    outer.connect("arm.spring.generalized_force", "scale.u")
    servo = outer.build()
    context = servo.create_default_context()
    axis.angle.set(context, 0.2)
    assert context.get("arm.axis.angle")[0] == 0.2
    assert context.get("arm.link.mass") == 2.0
    assert context.get("scale.y")[0] == pytest.approx(0.1 * -4.0 * 0.2)


# What the context of a plant gives ---------------------------------------------------------------


def test_bodies_and_frames_tell_where_they_are_and_how_they_move() -> None:
    builder, link, axis = arm()
    tip = builder.add_frame("tip", link, (np.eye(3), (0.0, 0.0, -1.0)))
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, np.pi / 2)
    axis.angular_rate.set(context, 3.0)
    np.testing.assert_allclose(tip.pose(context).p, (-1.0, 0.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(tip.spatial_velocity(context), (0, 3, 0, 0, 0, 3), atol=1e-14)
    acceleration = pendulum_acceleration(np.pi / 2)
    expected = (0, acceleration, 0, 9.0, 0, acceleration)
    np.testing.assert_allclose(tip.spatial_acceleration(context), expected, atol=1e-13)
    np.testing.assert_allclose(link.pose(context).p, np.zeros(3), atol=1e-16)
    np.testing.assert_allclose(plant.world.pose(context).R, np.eye(3))


def test_jacobian_maps_velocities_to_the_velocity_of_a_point() -> None:
    builder, link, axis = arm()
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, 0.4)
    J = plant.calc_jacobian(context, link, (0.0, 0.0, -1.0))
    expected = [0, 1, 0, -np.cos(0.4), 0, np.sin(0.4)]
    np.testing.assert_allclose(J[:, 0], expected, atol=1e-15)
    axis.angular_rate.set(context, 2.0)
    bias = plant.calc_bias_spatial_acceleration(context, link, (0.0, 0.0, -1.0))
    np.testing.assert_allclose(bias, [0, 0, 0, 4 * np.sin(0.4), 0, 4 * np.cos(0.4)], atol=1e-14)


def test_energies_and_powers_of_the_whole_plant() -> None:
    builder, _, axis = arm()
    spring = builder.add_force_element(fx.JointSpring("spring", axis, stiffness=4.0))
    axis_damping = 0.5
    plant = builder.build()
    context = plant.create_default_context()
    axis.damping.set(context, axis_damping)
    axis.angle.set(context, 0.3)
    axis.angular_rate.set(context, 2.0)
    inertia = plant.calc_mass_matrix(context)[0, 0]
    assert plant.calc_kinetic_energy(context) == pytest.approx(2.0 * inertia, rel=1e-14)
    height = -0.5 * np.cos(0.3)
    stored = 2.0 * 9.81 * height + spring.stored_energy.eval(context)[0]
    assert plant.calc_potential_energy(context) == pytest.approx(stored, rel=1e-14)
    falling = -2.0 * 9.81 * 0.5 * np.sin(0.3) * 2.0
    power = falling - 4.0 * 0.3 * 2.0
    assert plant.calc_conservative_power(context) == pytest.approx(power, rel=1e-14)
    lost = plant.calc_non_conservative_power(context)
    assert lost == pytest.approx(-axis_damping * 4.0, rel=1e-14)


def test_forces_of_elements_gravity_and_damping_give_the_accelerations() -> None:
    builder, _, axis = arm()
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=4.0))
    plant = builder.build()
    context = plant.create_default_context()
    axis.damping.set(context, 0.5)
    plant.set_positions(context, [0.3])
    plant.set_velocities(context, [2.0])
    forces = plant.calc_force_elements_contribution(context)
    tau = plant.calc_generalized_forces(context, forces) - plant.calc_bias_term(context)
    expected = np.linalg.solve(plant.calc_mass_matrix(context), tau)
    np.testing.assert_allclose(plant.calc_vdot(context), expected, rtol=1e-13)
    rest = plant.calc_inverse_dynamics(context, plant.calc_vdot(context), forces)
    np.testing.assert_allclose(rest, [0.0], atol=1e-13)


def test_random_contexts_draw_positions_and_rest() -> None:
    builder, _, axis = arm()
    axis.set_random_positions_distribution(lambda rng: [rng.uniform(1.0, 2.0)])
    plant = builder.build()
    draws = [plant.create_random_context(np.random.default_rng(seed)) for seed in range(20)]
    angles = [axis.angle.get(context) for context in draws]
    assert 1.0 <= min(angles) < max(angles) <= 2.0
    assert all(axis.angular_rate.get(context) == 0.0 for context in draws)


# The ledger --------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_ledger_balances_a_driven_damped_arm() -> None:
    builder, link, axis = arm()
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=4.0, damping=0.3))
    builder.add_force_element(fx.DoorHinge("hinge", axis, motion_threshold=0.5))
    builder.add_actuator("motor", axis)
    builder.add_external_force("push", link)
    builder.add_energy_ledger()
    plant = builder.build()
    outer = fx.DiagramBuilder("driven")
    outer.add_all(
        plant, fx.Sine("torque", 3.0, 2.0), fx.Constant("force", [0.0, 0.5, 0, 0.3, 0, 0.2])
    )
    outer.connect("torque.y", "arm.motor")
    outer.connect("force.y", "arm.push")
    driven = outer.build()
    context = driven.create_default_context()
    axis.damping.set(context, 0.2)
    axis.angle.set(context, 1.0)
    result = fx.simulate(driven, 10.0, context=context, method="DOP853", rtol=1e-10, atol=1e-10)
    works = result["arm.ledger.works"][-1]
    assert np.all(np.abs(works) > 1e-3)
    assert np.ptp(result["arm.ledger.balance"]) < 1e-7
    assert np.max(np.ptp(result["arm.ledger.store_balances"], axis=0)) < 1e-7


# What is in a builder ----------------------------------------------------------------------------


def test_a_builder_finds_by_name_what_was_added() -> None:
    builder, link, axis = arm()
    tip = builder.add_frame("tip", link)
    assert builder.body("link") is link
    assert builder.body("world") is builder.world
    assert builder.joint("axis") is axis
    assert builder.frame("tip") is tip
    assert builder.frame("link") is link.frame
    for find, what in [(builder.body, "body"), (builder.joint, "joint"), (builder.frame, "frame")]:
        with pytest.raises(fx.errors.UnknownNameError, match=f"Cannot find {what} 'tipp' in 'arm'"):
            find("tipp")


def test_a_builder_says_how_much_is_in_it() -> None:
    builder, _, axis = arm()
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=1.0))
    assert repr(builder) == "<PlantBuilder 'arm', 1 bodies, 1 joints, 1 force elements>"


# What is refused ---------------------------------------------------------------------------------


def other_world(builder: fx.PlantBuilder, body: fx.Body) -> None:
    builder.add_joint(fx.WeldJoint("w", fx.PlantBuilder().world, body))


def loop(builder: fx.PlantBuilder, body: fx.Body) -> None:
    builder.add_joint(fx.RevoluteJoint("second", body, builder.world, axis=(0, 0, 1)))


REFUSED: dict[str, Callable[[fx.PlantBuilder, fx.Body], object]] = {
    "'link'": lambda builder, body: builder.add_body("link", BOX),
    "SpatialInertia": lambda builder, body: builder.add_body("a", 3.0),  # type: ignore[arg-type]
    "a frame": lambda builder, body: builder.add_frame("a b", body),
    "a matrix R": lambda b, body: b.add_frame("f", body, (np.ones((3, 3)), [0] * 3)),
    "'world'": other_world,
    "loop": loop,
    "a joint": lambda builder, body: builder.add_joint(body),  # type: ignore[type-var]
    "force element": lambda b, body: b.add_force_element(fx.Gain("g", 1.0)),  # type: ignore[type-var]
    "Call add_force_element": lambda b, _: b.add_constraint(
        fx.JointSpring("s", b.joints[0], stiffness=1.0)  # type: ignore[type-var]
    ),
    "Call add_constraint": lambda b, _: b.add_force_element(
        fx.RigidStop("s", b.joints[0], lower=0.0, restitution=0.5)  # type: ignore[type-var]
    ),
    "'tree'": lambda builder, body: builder.add_energy_ledger("tree"),
    "'tree', which the plant itself uses": lambda b, _: b.add_energy_ledger("tree"),
    "the name of <Body 'link'>": lambda b, body: b.add_frame("link", body),
    "name a body ['x']": lambda b, _: b.add_body(["x"], BOX),  # type: ignore[arg-type]
    "name a frame ['x']": lambda b, body: b.add_frame(["x"], body),  # type: ignore[arg-type]
    "a Body; found 'link'": lambda b, _: b.add_frame("f", "link"),  # type: ignore[arg-type]
    "found 'link', which was not": lambda b, _: b.add_external_force(
        "p",
        "link",  # type: ignore[arg-type]
    ),
    "or a position alone; found (0.0, 1.0)": lambda b, body: b.add_frame("f", body, (0.0, 1.0)),
    "or a position alone; found 1.0": lambda b, body: b.add_frame("f", body, 1.0),
    "a finite position": lambda b, body: b.add_frame("f", body, (0.0, 0.0, np.nan)),
    "the world": lambda builder, body: builder.add_external_force("p", builder.world),
    "add_joint": lambda b, body: b.add_actuator("m", fx.WeldJoint("w", b.world, body)),
}


@for_each("words", REFUSED)
def test_refusals_say_what_and_leave_the_builder_as_it_was(words: str) -> None:
    builder, body, _ = arm()
    before = (builder.bodies, builder.joints, builder.force_elements)
    with pytest.raises(fx.errors.FlexureError, match=re.escape(words)):
        REFUSED[words](builder, body)
    assert (builder.bodies, builder.joints, builder.force_elements) == before
    assert builder.build().num_positions == 1


def test_a_body_does_not_take_the_name_of_a_frame() -> None:
    builder, link, _ = arm()
    tip = builder.add_frame("tip", link)
    with pytest.raises(fx.errors.WiringError, match="the name of <Frame 'tip' on 'link'>"):
        builder.add_body("tip", BOX)
    assert builder.build().frame("tip") is tip


def test_a_builder_builds_once() -> None:
    builder, _, _ = arm()
    builder.build()
    with pytest.raises(fx.errors.WiringError, match="built its plant at test_plant_builder"):
        builder.add_body("late", BOX)


def test_an_empty_plant_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match="at least one body"):
        fx.PlantBuilder().build()


def test_handles_of_an_unbuilt_plant_say_so() -> None:
    _, body, axis = arm()
    context = fx.Gain("g", 1.0).create_default_context()
    with pytest.raises(fx.errors.DeclarationError, match="not built yet"):
        axis.angle.get(context)
    with pytest.raises(fx.errors.DeclarationError, match="not built yet"):
        body.pose(context)


def test_unphysical_inertia_is_refused_in_a_context() -> None:
    builder, _, _ = arm()
    context = builder.build().create_default_context()
    with pytest.raises(fx.errors.ValueRefusedError, match="the sum of the others"):
        context.set("link.unit_inertia", [1.0, 1.0, 5.0, 0.0, 0.0, 0.0])
    with pytest.raises(fx.errors.ValueRefusedError):
        context.set("link.mass", -1.0)
