"""What the notes about elements, joints and plants in the tables of Drake's names claim."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    FlexureError,
    ValueRefusedError,
)
from tests.support.drake_notes import note

# Elements ----------------------------------------------------------------------------------------


@note(
    "name first, constants as keywords; `energy_consistent=True` chooses forces that have a "
    "potential"
)
def consistent_bushings(names: dict[str, Any]) -> None:
    keys = [f"{what}_{kind}" for what in ("torque", "force") for kind in ("stiffness", "damping")]
    constants: dict[str, Any] = {key: [1.0, 2.0, 3.0] for key in keys}
    made = fx.LinearBushingRollPitchYaw(
        "other", names["body"], names["body"], **constants, energy_consistent=True
    )
    assert made.name == "other"


@note("also before the plant is built")
def before_building(_: Any) -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia(1.0))
    joint = fx.RevoluteJoint("axis", builder.world, body, axis=(0, 0, 1))
    bushing = fx.LinearBushing(
        "bushing",
        builder.world,
        body,
        torque_stiffness=[1.0] * 3,
        torque_damping=[1.0] * 3,
        force_stiffness=[1.0] * 3,
        force_damping=[1.0] * 3,
    )
    assert bushing.link0 is builder.world
    assert bushing.frame_c is body.frame
    assert (joint.can_rotate, joint.can_translate) == (True, False)
    assert (joint.position_suffix(0), joint.velocity_suffix(0)) == ("q", "w")


@note("negative values are refused")
def negative_constants(names: dict[str, Any]) -> None:
    for kind in ("torque_stiffness", "torque_damping", "force_stiffness", "force_damping"):
        with pytest.raises(ValueRefusedError, match="found"):
            getattr(names["bushing"], kind).set(names["context"], [1.0, -1.0, 1.0])


@note("six numbers: moment about Ao, force, in A", "six numbers: moment about Co, force, in C")
def bushing_forces(names: dict[str, Any]) -> None:
    """The forces on both frames are in balance in the world, and moments about one point."""
    bushing, context = names["bushing"], names["context"]
    names["plant"].set_positions(context, [0.1, 0.2, 0.3, 0.4])
    total = np.zeros(6)
    for frame, port in (
        (bushing.frame_a, bushing.force_on_frame_A),
        (bushing.frame_c, bushing.force_on_frame_C),
    ):
        R, p = frame.pose(context)
        force = port.eval(context)
        assert force.shape == (6,)
        moment, push = R @ force[:3], R @ force[3:]
        total += [*(moment + np.cross(p, push)), *push]
    np.testing.assert_allclose(total, 0.0, atol=1e-12)


@note("not implemented in Drake", "every element has it")
def energies(names: dict[str, Any]) -> None:
    for element in (names["bushing"], names["spring"], names["hinge"]):
        for quantity in ("stored_energy", "conservative_power", "non_conservative_power"):
            assert np.isfinite(getattr(element, quantity).eval(names["context"])).all()


@note("`copy.copy` is refused; `copy.deepcopy` copies the whole plant")
def copies(names: dict[str, Any]) -> None:
    plant = names["plant"]
    for name in ("bushing", "spring", "hinge", "ball", "axis", "body"):
        with pytest.raises(DeclarationError, match="or copy all of its"):
            copy.copy(names[name])
        twin, whole = copy.deepcopy([names[name], plant])
        assert twin is not names[name]
        assert whole is not plant
        context = whole.create_default_context()
        assert whole.eval_time_derivatives(context).shape == (8,)
    twin = copy.deepcopy(names["axis"])
    assert twin.parent_plant is not plant
    assert [joint.name for joint in twin.parent_plant.joints] == ["ball", "axis"]


@note("name first, constants as keywords", "name first; single constants as keywords")
def constants_as_keywords(names: dict[str, Any]) -> None:
    assert fx.DoorHinge("first", names["axis"], spring_constant=2.0).name == "first"
    assert names["spring"].name == "spring"


@note("parameters, which can be set in a context", "a parameter")
def parameters(names: dict[str, Any]) -> None:
    spring, context = names["spring"], names["context"]
    spring.p_AP.set(context, [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(spring.p_AP.get(context), [0.0, 1.0, 0.0])
    for handle in (spring.free_length, spring.stiffness, spring.damping):
        handle.set(context, 3.0)
        assert handle.get(context) == 3.0


@note("the same eight fields and defaults")
def hinge_configuration(_: Any) -> None:
    """Those of Drake 1.51's DoorHingeConfig."""
    assert vars(fx.DoorHingeConfig()) == {
        "spring_zero_angle_rad": -1.5,
        "spring_constant": 1.5,
        "dynamic_friction_torque": 3.0,
        "static_friction_torque": 2.0,
        "viscous_friction": 1.0,
        "catch_width": 0.02,
        "catch_torque": 15.0,
        "motion_threshold": 0.001,
    }


@note(
    "the defaults; in a context each constant is a parameter, such as `hinge.spring_constant.set`"
)
def hinge_constants(names: dict[str, Any]) -> None:
    hinge, context = names["hinge"], names["context"]
    hinge.spring_constant.set(context, 2.5)
    assert hinge.config.spring_constant == 1.5
    assert hinge.spring_constant.get(context) == 2.5


@note("keeps its sign with `motion_threshold = 0`")
def viscous_friction(_: Any) -> None:
    builder = fx.PlantBuilder()
    door = builder.add_body("door", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, door, axis=(0, 0, 1)))
    hinge = builder.add_force_element(
        fx.DoorHinge(
            "hinge",
            axis,
            viscous_friction=2.0,
            dynamic_friction_torque=0.0,
            static_friction_torque=0.0,
            motion_threshold=0.0,
        )
    )
    context = builder.build().create_default_context()
    for rate in (-1.5, 1.5):
        axis.angular_rate.set(context, rate)
        np.testing.assert_allclose(hinge.law(context).frictional_torque(rate), -2.0 * rate)


@note("derive from `fx.multibody.BodyForceElement` or `fx.multibody.JointForceElement`")
def element_classes(names: dict[str, Any]) -> None:
    assert isinstance(names["bushing"], fx.multibody.BodyForceElement)
    assert isinstance(names["hinge"], fx.multibody.JointForceElement)


@note("gravity, which the tree computes, is number 0")
def element_numbers(names: dict[str, Any]) -> None:
    assert [names[name].index for name in ("bushing", "spring", "hinge")] == [1, 2, 3]


@note("adds to `fx.MultibodyForces`; for the whole plant `plant.calc_force_elements_contribution`")
def contributions(names: dict[str, Any]) -> None:
    plant, context = names["plant"], names["context"]
    plant.set_positions(context, [0.1, 0.2, 0.3, 0.4])
    forces = fx.MultibodyForces(plant)
    names["spring"].calc_and_add_force_contribution(context, forces)
    once = np.array(forces.body_forces)
    assert np.any(once)
    names["spring"].calc_and_add_force_contribution(context, forces)
    np.testing.assert_allclose(forces.body_forces, 2.0 * once)
    assert isinstance(plant.calc_force_elements_contribution(context), fx.MultibodyForces)


@note("called in the constructor", "blocks are systems themselves; called in the constructor")
def late_declarations(names: dict[str, Any]) -> None:
    assert isinstance(names["bushing"], fx.LeafSystem)
    for declare in ("declare_numeric_parameter", "declare_discrete_state"):
        with pytest.raises(DeclarationError, match="declarations in the constructor"):
            getattr(names["bushing"], declare)("late", [1.0])


@note("defaults are given with the declaration")
def declared_defaults(names: dict[str, Any]) -> None:
    bushing, context = names["bushing"], names["context"]
    np.testing.assert_array_equal(bushing.force_damping.get(context), [1.0, 2.0, 3.0])


@note("a name, given to `builder.add_body`")
def model_instances(_: Any) -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia(1.0), model_instance="robot")
    assert body.model_instance == "robot"


@note("the floating joints that `build` adds are only in `plant.joints`")
def added_joints(_: Any) -> None:
    builder = fx.PlantBuilder()
    builder.add_body("loose", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    plant = builder.build()
    assert builder.joints == ()
    assert [joint.name for joint in plant.joints] == ["loose"]


# Joints ------------------------------------------------------------------------------------------


@note("takes a function of a NumPy generator")
def random_angles(_: Any) -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    ball = builder.add_joint(fx.BallRpyJoint("ball", builder.world, body))
    ball.set_random_angles_distribution(lambda rng: rng.uniform(0.2, 0.3, size=3))
    context = builder.build().create_random_context(np.random.default_rng(1))
    angles = ball.angles.get(context)
    assert np.all((angles >= 0.2) & (angles <= 0.3))


@note("a property, to be set until the plant is built", "a property")
def default_properties(names: dict[str, Any]) -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, axis=(0, 0, 1)))
    axis.default_angle, axis.default_damping = 0.5, 0.25
    context = builder.build().create_default_context()
    assert (axis.angle.get(context), axis.damping.get(context)) == (0.5, 0.25)
    with pytest.raises(FlexureError, match="built"):
        axis.default_angle = 0.6
    with pytest.raises(FlexureError, match="built"):
        names["ball"].default_angles = [0.1, 0.2, 0.3]


@note("works for every joint", "adds, with all three entries of the damping")
def joint_forces(_: Any) -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    ball = builder.add_joint(fx.BallRpyJoint("ball", builder.world, body))
    ball.default_damping_vector = [1.0, 2.0, 3.0]
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_velocities(context, [1.0, 1.0, 1.0])
    forces = fx.MultibodyForces(plant)
    ball.add_in_one_force(1, 10.0, forces)
    ball.add_in_damping(context, forces)
    np.testing.assert_allclose(forces.generalized_forces, [-1.0, 8.0, -3.0])


@note("limits as pairs: `position_limits=(lower, upper)`", "the same, without damping")
def limits(names: dict[str, Any]) -> None:
    axis = fx.RevoluteJoint(
        "other",
        names["body"],
        names["plant"].body("arm"),
        axis=(0, 0, 1),
        position_limits=(-1.0, 2.0),
    )
    assert (axis.position_lower_limit, axis.position_upper_limit) == (-1.0, 2.0)
    assert axis.default_damping == 0.0


@note("joints are not removed, so both are one number")
def joint_numbers(names: dict[str, Any]) -> None:
    assert [joint.index for joint in names["plant"].joints] == [0, 1]


@note("a locked joint stands still whatever its velocity was; its handles refuse another than zero")
def locked_joints(names: dict[str, Any]) -> None:
    axis, context, arm = names["axis"], names["context"], names["plant"].body("arm")
    axis.angular_rate.set(context, 2.0)
    context.set("tree.axis_locked", 1.0)
    assert arm.spatial_velocity(context).tolist() == [0.0] * 6
    context.set("tree.axis_locked", 0.0)
    assert arm.spatial_velocity(context).tolist() == [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    axis.lock(context)
    assert axis.is_locked(context)
    with pytest.raises(ContextError):
        axis.angular_rate.set(context, 1.0)
    axis.unlock(context)
    axis.angular_rate.set(context, 1.0)


@note("with `measured_in=` and `expressed_in=`, the world when omitted")
def other_frames(names: dict[str, Any]) -> None:
    axis, context, body = names["axis"], names["context"], names["body"]
    arm, world = names["plant"].body("arm"), names["plant"].world
    names["ball"].angular_velocity.set(context, [0.0, 5.0, 0.0])
    axis.angular_rate.set(context, 2.0)
    assert arm.spatial_velocity(context)[1] == 7.0
    assert arm.spatial_velocity(context, measured_in=body)[1] == 2.0
    given = arm.spatial_velocity(context, measured_in=world, expressed_in=world)
    assert np.array_equal(given, arm.spatial_velocity(context))
    assert np.array_equal(arm.pose(context, measured_in=world).p, arm.pose(context).p)


@note("the same")
def jacobians_of_other_frames(names: dict[str, Any]) -> None:
    plant, context, body = names["plant"], names["context"], names["body"]
    arm = plant.body("arm")
    plant.set_velocities(context, [0.1, 0.2, 0.3, 2.0])
    for frames in ({}, {"measured_in": body, "expressed_in": arm}):
        moved = plant.calc_jacobian(context, arm, **frames) @ plant.get_velocities(context)
        assert np.allclose(moved, arm.spatial_velocity(context, **frames), atol=1e-14)
        assert plant.calc_bias_spatial_acceleration(context, arm, **frames).shape == (6,)


@note("one output per joint, `<joint>.reaction`, about and along the same frame")
def reactions(names: dict[str, Any]) -> None:
    plant, context = names["plant"], names["context"]
    for joint in (names["axis"], names["ball"]):
        port = plant.output_port(f"{joint.name}.reaction")
        assert np.array_equal(port.eval(context), joint.reaction(context))
        assert port.size == 6
    # Along its axis the joint passes on what acts there: hinge, motor, damping.
    hinge = plant["hinge"].output_port("generalized_force").eval(context)
    assert names["axis"].reaction(context)[1] == pytest.approx(
        hinge[0] - names["motor"].calc_reflected_inertia(context) * plant.calc_vdot(context)[3]
    )


@note("parameters of their own; force elements are not part of the model")
def models_of_plants(names: dict[str, Any]) -> None:
    plant, context = names["plant"], names["context"]
    names["axis"].angle.set(context, 0.5)
    plant["hinge"].spring_constant.set(context, 3.0)
    assert plant["hinge"].output_port("generalized_force").eval(context)[0]
    weight = plant.calc_gravity_generalized_forces(context)
    for kind in (fx.InverseDynamics, fx.GravityCompensation):
        model = kind("model", plant, underactuated=True)
        own = model.create_default_context()
        assert {"gravity", "arm_mass"} <= {each.name for each in model.numeric_parameters}
        for port in model.input_ports:
            is_pose = port is model.positions
            port.fix(own, plant.get_positions(context) if is_pose else np.zeros(port.size))
        assert np.allclose(model.generalized_force.eval(own), -weight, atol=1e-12)


@note("parameters, which can be swept")
def constants_of_motors(names: dict[str, Any]) -> None:
    plant, context, motor = names["plant"], names["context"], names["motor"]
    before = plant.calc_mass_matrix(context)[3, 3]
    assert motor.calc_reflected_inertia(context) == pytest.approx(0.1 * 3.0**2)
    motor.gear_ratio.set(context, 10.0)
    after = plant.calc_mass_matrix(context)[3, 3]
    assert after - before == pytest.approx(0.1 * (10.0**2 - 3.0**2))
    sweep = fx.sweep(plant, {"motor.rotor_inertia": [0.1, 0.2]}, 1e-3, signals="axis.angle")
    assert sweep.outcomes.tolist() == ["completed"] * 2


@note("stored; `fx.JointStop` makes position limits act")
def stops(_: Any) -> None:
    final = []
    for stopped in (False, True):
        builder = fx.PlantBuilder(gravity=(0, 0, 0))
        body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
        slide = builder.add_joint(
            fx.PrismaticJoint(
                "slide", builder.world, body, axis=(1, 0, 0), position_limits=(-0.1, 0.1)
            )
        )
        if stopped:
            builder.add_force_element(fx.JointStop("stop", slide, stiffness=1e4, damping=0.0))
        plant = builder.build()
        context = plant.create_default_context()
        slide.translation_rate.set(context, 1.0)
        final.append(
            fx.simulate(plant, 1.0, context=context, compiled=False)["slide.translation"].max()
        )
    assert final[0] > 0.9
    assert final[1] < 0.12


@note("raises in Drake for most joints", "the best match; raises in Drake for most joints")
def poses(names: dict[str, Any]) -> None:
    """What a joint cannot do is left out of what it is asked for."""
    axis, context = names["axis"], names["context"]
    angle = 0.3
    turned = np.array(
        [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    )
    axis.pose.set(context, (turned, [1.0, 2.0, 3.0]))
    np.testing.assert_allclose(axis.angle.get(context), angle)
    R, p = axis.pose.get(context)
    np.testing.assert_allclose(R, turned, atol=1e-12)
    np.testing.assert_allclose(p, 0.0, atol=1e-12)
    axis.spatial_velocity.set(context, [0.0, 2.0, 0.0, 5.0, 0.0, 0.0])
    np.testing.assert_allclose(axis.angular_rate.get(context), 2.0)
    assert len(axis.pose_pair.get(context)) == 2
    assert len(axis.default_pose_pair) == 2
    assert axis.default_pose is not None


@note("the hooks of the kinds of joints")
def hooks(names: dict[str, Any]) -> None:
    R, p = names["axis"].calc_pose(np.array([0.0]))
    np.testing.assert_array_equal(R, np.eye(3))
    np.testing.assert_array_equal(p, np.zeros(3))


# Plants ------------------------------------------------------------------------------------------


@note("gives a diagram")
def plants_are_diagrams(names: dict[str, Any]) -> None:
    assert isinstance(names["plant"], fx.Diagram)


@note("with bushings, too", "the damping of joints counts")
def plant_energies(_: Any) -> None:
    builder = fx.PlantBuilder(gravity=(0, 0, 0))
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    slide = builder.add_joint(
        fx.PrismaticJoint("slide", builder.world, body, axis=(1, 0, 0), damping=0.5)
    )
    zeros = [0.0, 0.0, 0.0]
    builder.add_force_element(
        fx.LinearBushingRollPitchYaw(
            "bushing",
            builder.world,
            body,
            torque_stiffness=zeros,
            torque_damping=zeros,
            force_stiffness=[8.0, 8.0, 8.0],
            force_damping=zeros,
        )
    )
    plant = builder.build()
    context = plant.create_default_context()
    slide.translation.set(context, 0.5)
    slide.translation_rate.set(context, 2.0)
    np.testing.assert_allclose(plant.calc_potential_energy(context), 0.5 * 8.0 * 0.5**2)
    np.testing.assert_allclose(plant.calc_non_conservative_power(context), -0.5 * 2.0**2)


@note("one named input per force", "the input `generalized_force`")
def force_inputs(_: Any) -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    builder.add_external_force("push", body)
    plant = builder.build()
    assert plant.input_port("push").size == 6
    assert plant.input_port("generalized_force").size == 6


@note("checked; constructors for the usual solids")
def inertias(_: Any) -> None:
    assert fx.SpatialInertia.solid_sphere(2.0, radius=0.1).mass == 2.0
    with pytest.raises(FlexureError):
        fx.SpatialInertia(1.0, inertia=[1.0, 1.0, 3.0, 0.0, 0.0, 0.0])
