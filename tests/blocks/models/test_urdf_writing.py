"""URDF files from plants: read again they are the same, and what they cannot hold is said."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.diagrams.checks.errors import DeclarationError
from tests.oracle.reading import DATA
from tests.support.mechanics.joints import JOINTS
from tests.support.mechanics.robots import ARM, DOOR

pytest.importorskip("lxml", reason="URDF files are read with the package lxml")

GRIPPER = DATA.parent / "models" / "gripper.urdf"
POSE = rotation_from_rpy(np.array([0.3, -0.2, 0.5])), np.array([0.1, 0.2, 0.3])
OTHER = rotation_from_rpy(np.array([-1.3, 0.7, 2.5])), np.array([-0.4, 0.1, 0.2])


def crooked() -> fx.PlantBuilder:
    """Frames on both sides of all joints, one joint from child to parent, a rotor, a coupling."""
    builder = fx.PlantBuilder("crooked")
    solid = fx.SpatialInertia(2.0, (0.1, 0.2, -0.1), (0.3, 0.25, 0.4, 0.01, 0.02, -0.03))
    one, two, three, four = (builder.add_body(f"b{k}", solid) for k in range(4))

    def F(body: fx.Body, k: int) -> fx.Frame:
        return fx.Frame(f"F{k}", body, POSE)

    def M(body: fx.Body, k: int) -> fx.Frame:
        return fx.Frame(f"M{k}", body, OTHER)

    turn = builder.add_joint(
        fx.RevoluteJoint("turn", F(builder.world, 1), M(one, 1), axis=(1, 2, 3), damping=0.3)
    )
    slide = fx.PrismaticJoint(
        "slide", F(two, 2), M(one, 2), axis=(0, 1, -1), position_limits=(-0.3, 0.4),
        velocity_limits=(-3.0, 3.0), acceleration_limits=(-5.0, 5.0), damping=0.2,
    )  # fmt: skip
    builder.add_joint(slide)
    builder.add_joint(fx.WeldJoint("bolts", F(two, 3), M(three, 3), OTHER))
    builder.add_joint(fx.PlanarJoint("table", F(three, 4), M(four, 4), damping=(0.1, 0.2, 0.3)))
    builder.add_actuator("motor", turn, gear_ratio=30.0, rotor_inertia=1e-3, effort_limit=20.0)
    builder.add_constraint(fx.constraints.Coupling("belt", {slide: 2.0, turn: -0.5}, 0.3))
    builder.add_force_element(
        fx.JointFriction(
            "rub", turn, coulomb_friction=0.7, transition_velocity=0.01, viscous_friction=0.1
        )
    )
    builder.add_frame("eye", three, POSE)
    return builder


def saved_and_loaded(plant: fx.Plant, path: Path, **options: Any) -> fx.Plant:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fx.save_urdf(plant, path)
        return fx.load_urdf(path, **options).build()


@pytest.mark.parametrize(
    "make",
    [crooked, lambda: fx.load_urdf(GRIPPER), lambda: fx.load_urdf(DOOR)],
    ids=["crooked", "gripper", "door"],
)
def test_what_is_saved_and_read_again_moves_alike(make: Any, tmp_path: Path) -> None:
    plant = make().build()
    again = saved_and_loaded(plant, tmp_path / "robot.urdf")
    names = [joint.name for joint in plant.joints]
    assert sorted(names) == sorted(joint.name for joint in again.joints)
    rng = np.random.default_rng(3)
    for _ in range(3):
        found = []
        state = {n: rng.normal(size=(2, plant.joint(n).num_velocities)) for n in names}
        if plant.constraints:  # a belt, which moves the slide
            state["slide"] = np.array([[0.15], [0.0]]) + 0.25 * state["turn"]
        for each in (plant, again):
            context = each.create_default_context()
            order = []
            for name in names:
                joint = each.joint(name)
                joint.positions.set(context, state[name][0])
                joint.velocities.set(context, state[name][1])
                part = each.tree.velocities_of(joint)
                order += list(range(part.start, part.stop))
            M = each.calc_mass_matrix(context)[np.ix_(order, order)]
            found.append((M, each.calc_vdot(context)[order], each.calc_potential_energy(context)))
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-11, atol=1e-12 * np.max(np.abs(mine)))


def test_limits_motors_frames_and_looks_come_back(tmp_path: Path) -> None:
    builder = crooked()
    builder.add_shape(builder.body("b1"), fx.BodyShape.capsule(radius=0.1, length=0.5), POSE)
    triangle = np.eye(3), [[0, 1, 2]]
    builder.add_shape(builder.body("b1"), fx.BodyShape.mesh(triangle), OTHER, color="#336699")
    plant = builder.build()
    again = saved_and_loaded(plant, tmp_path / "robot.urdf")
    for name in ("turn", "slide"):
        for what in ("position", "velocity", "acceleration"):
            for side in ("lower", "upper"):
                key = f"{what}_{side}_limits"
                pair = (getattr(each.joint(name), key) for each in (plant, again))
                np.testing.assert_array_equal(*pair)
    motor = again.actuator("motor")
    assert (motor.default_gear_ratio, motor.default_rotor_inertia) == (30.0, 1e-3)
    assert motor.effort_limit == 20.0
    contexts = [each.create_default_context() for each in (plant, again)]
    poses = (each.frame("eye").pose(c) for each, c in zip((plant, again), contexts, strict=True))
    mine, theirs = (np.column_stack(pose) for pose in poses)
    np.testing.assert_allclose(mine, theirs, atol=1e-12)
    first, second = (
        [
            (part.kind, part.color, np.column_stack([X.R @ part.R, X.R @ part.p + X.p]))
            for X, part in ((each.body("b1").pose(c), p) for p in each.body("b1").shape.primitives)
        ]
        for each, c in zip((plant, again), contexts, strict=True)
    )
    for one, other in zip(first, second, strict=True):
        assert one[:2] == other[:2]
        np.testing.assert_allclose(one[2], other[2], atol=1e-12)


def test_a_rack_is_saved_as_a_mimic_with_the_radius_of_a_context(tmp_path: Path) -> None:
    builder = fx.PlantBuilder("rack")
    solid = fx.SpatialInertia.solid_sphere(1.0, radius=0.1)
    wheel, bar = builder.add_body("wheel", solid), builder.add_body("bar", solid)
    turn = builder.add_joint(fx.RevoluteJoint("turn", builder.world, wheel, axis=(0, 1, 0)))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, bar, axis=(1, 0, 0)))
    builder.add_constraint(fx.constraints.Coupling.rack_and_pinion("rack", turn, slide, radius=0.1))
    plant = builder.build()
    context = plant.create_default_context()
    context.set("tree.rack_radius", 0.25)
    context.set("tree.rack_offset", 0.5)
    fx.save_urdf(plant, tmp_path / "rack.urdf", context=context)
    text = (tmp_path / "rack.urdf").read_text(encoding="utf-8")
    assert '<mimic joint="turn" multiplier="0.25" offset="0.5"' in text


def test_values_of_a_context_are_saved(tmp_path: Path) -> None:
    plant = fx.load_urdf(DOOR).build()
    context = plant.create_default_context()
    plant.body("panel").mass.set(context, 4.0)
    plant.joint("axis").damping.set(context, [0.7])
    fx.save_urdf(plant, tmp_path / "door.urdf", context=context)
    again = fx.load_urdf(tmp_path / "door.urdf").build()
    M = [
        each.calc_mass_matrix(c)
        for each, c in ((plant, context), (again, again.create_default_context()))
    ]
    np.testing.assert_allclose(M[0], M[1], rtol=1e-14)
    assert again.joint("axis").default_damping_vector == [0.7]


@pytest.mark.parametrize("kind", ["gears", "rack", "again"])
def test_couplings_of_two_joints_are_mimics(kind: str, tmp_path: Path) -> None:
    builder = fx.load_urdf(GRIPPER)
    turn, slide = builder.joint("turn"), builder.joint("open_left")
    if kind == "rack":
        coupling = fx.constraints.Coupling.rack_and_pinion("c", turn, slide, 0.05, 0.01)
    else:
        coupling = fx.constraints.GearPair("c", slide, turn, 0.05, 0.01)
    builder.add_constraint(coupling)
    plant = builder.build()
    context = plant.create_default_context()
    if kind == "again":
        plant.tree.find_parameter("c_ratio").set(context, 0.07)
    fx.save_urdf(plant, tmp_path / "r.urdf", context=context)
    again = fx.load_urdf(tmp_path / "r.urdf").build()
    other = again.create_default_context()
    for each, start in ((plant, context), (again, other)):
        each.joint("turn").positions.set(start, [0.4])
        each.assemble(start, fixed=each.joint("turn"))
    found = again.joint("open_left").positions.get(other)
    assert found == pytest.approx(plant.joint("open_left").positions.get(context), abs=1e-12)


def test_what_urdf_cannot_hold_is_listed_by_name(tmp_path: Path) -> None:
    builder = fx.load_urdf(ARM, gravity=(0.0, 0.0, -1.6))
    elbow, wrist = builder.joint("elbow"), builder.joint("wrist")
    elbow.default_positions = [0.3]
    builder.add_force_element(fx.JointSpring("coil", elbow, stiffness=3.0))
    builder.add_loop_joint(fx.BallRpyJoint("tie", builder.world, builder.body("hand")))
    builder.add_external_force("push", builder.body("hand"))
    builder.add_shape(builder.world, fx.BodyShape.tube(inner_radius=1, outer_radius=2, length=3))
    wrist.set_velocity_limits(-1.0, 2.0)
    plant = builder.build()
    with pytest.warns(UserWarning, match="URDF cannot hold all of 'arm'"):
        listed = fx.save_urdf(plant, tmp_path / "arm.urdf")
    text = "\n".join(listed)
    for word in (
        *("'coil'", "'bushing1'", "'spring1'", "'tie'", "'push'", "tube", "1.6", "'elbow' starts"),
        "the velocity of joint 'wrist'",
    ):
        assert word in text


def test_joints_that_urdf_has_not_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    builder = fx.PlantBuilder("hips")
    known = ("weld", "revolute", "prismatic", "planar", "rpy_floating", "quaternion_floating")
    refused = [name for name in JOINTS if name not in known]
    assert {"ball_rpy", "universal", "screw", "cylindrical"} <= set(refused)
    for name in refused:
        body = builder.add_body(f"b_{name}", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
        kind = JOINTS[name]
        builder.add_joint(kind.make(f"j_{name}", builder.world, body, **kind.options))
    told = "; ".join(f"the {name} joint 'j_{name}'" for name in refused)
    with pytest.raises(DeclarationError, match=told):
        fx.save_urdf(builder.build(), tmp_path / "hips.urdf")
    assert not list(tmp_path.iterdir())


def test_a_robot_that_floats_comes_back_with_a_free_base(tmp_path: Path) -> None:
    plant = fx.load_urdf(ARM, base="free", name="floating").build()
    with pytest.warns(UserWarning, match="'bushing1'"):
        fx.save_urdf(plant, tmp_path / "arm.urdf")
    again = fx.load_urdf(tmp_path / "arm.urdf").build()
    assert [joint.type_name for joint in again.joints] == [j.type_name for j in plant.joints]
    M = [each.calc_mass_matrix(each.create_default_context()) for each in (plant, again)]
    np.testing.assert_allclose(M[0], M[1], atol=1e-12)
