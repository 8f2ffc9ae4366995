"""Robots from URDF files: what links, joints, motors, bushings and springs become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.forces.bushings.bushing import LinearBushingRollPitchYaw
from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.models.urdf.urdf import load_urdf
from flexure.blocks.multibody.bodies.bodies import Frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallRpyJoint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.joints.universal import UniversalJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.errors import DeclarationError
from tests.support.mechanics.robots import ARM, BUSHING, DOOR, LINK
from tests.support.tiers import for_each

pytest.importorskip("lxml", reason="URDF files are read with the package lxml")


def arm_by_hand() -> Plant:
    """Return the arm, made without a file."""
    six = (0.5, 0.6, 0.7, 0.01, -0.02, 0.03)
    pose = rotation_from_rpy([0.3, 0.2, -0.5]), [0.1, -0.2, 0.3]
    inertia = SpatialInertia(2.0, inertia=six).moved(pose)
    builder = PlantBuilder("arm")
    base, forearm, hand = (builder.add_body(name, inertia) for name in ("base", "forearm", "hand"))
    builder.add_joint(WeldJoint("foot", builder.world, base))
    shoulder = Frame("shoulder", base, (rotation_from_rpy([0.2, -0.4, 0.7]), [0.3, 0.1, -0.2]))
    elbow = builder.add_joint(RevoluteJoint("elbow", shoulder, forearm, (0, 1, 0), damping=0.3))
    end = Frame("end", forearm, (np.eye(3), [0.4, 0.0, 0.0]))
    builder.add_joint(PrismaticJoint("wrist", end, hand, (1, 1, 0)))
    builder.add_actuator("motor", elbow, gear_ratio=9.0, rotor_inertia=0.02)
    socket = builder.add_frame(
        "socket", base, (rotation_from_rpy([0.1, 0.2, 0.3]), [0.1, 0.2, 0.3])
    )
    builder.add_force_element(
        LinearBushingRollPitchYaw(
            "bushing1",
            socket,
            hand,
            torque_stiffness=[10, 20, 30],
            torque_damping=[0.1, 0.2, 0.3],
            force_stiffness=[100, 200, 300],
            force_damping=[1, 2, 3],
        )
    )
    builder.add_force_element(
        LinearSpringDamper(
            "spring1",
            base,
            [0.1, 0.2, 0.3],
            hand,
            [-0.1, 0.2, 0.0],
            free_length=0.5,
            stiffness=30.0,
            damping=2.0,
        )
    )
    return builder.build()


def accelerations(plant: Plant, seed: int) -> Any:
    """Return the mass matrix and the accelerations at some state."""
    rng = np.random.default_rng(seed)
    context = plant.create_default_context()
    plant.set_positions(context, rng.normal(size=plant.num_positions))
    plant.set_velocities(context, rng.normal(size=plant.num_velocities))
    return plant.calc_mass_matrix(context), plant.calc_vdot(context)


def pair(joint: str, *, extra: str = "") -> str:
    """Return a robot of two links, with a joint between them."""
    links = LINK.format("a") + LINK.format("b")
    return f"<robot name='pair'>{links}{joint}{extra}</robot>"


def joint_text(kind: str, inside: str = "", tag: str = "joint") -> str:
    """Return a joint between the links of a pair."""
    ends = '<parent link="a"/><child link="b"/>'
    return f'<{tag} name="j" type="{kind}">{ends}{inside}</{tag}>'


def only_joint(kind: str, inside: str = "", tag: str = "joint") -> Joint:
    builder = load_urdf(pair(joint_text(kind, inside, tag)))
    return next(joint for joint in builder.joints if joint.name == "j")


# Whole robots -------------------------------------------------------------------------------------


def test_door_falls_like_a_pendulum() -> None:
    door = load_urdf(DOOR).build()
    context = door.create_default_context()
    axis = door.joint("axis")
    axis.positions.set(context, [0.5])
    axis.velocities.set(context, [2.0])
    inertia = 0.6 + 9.0 * 0.4**2
    torque = -9.0 * 9.81 * 0.4 * np.cos(0.5) - 0.25 * 2.0
    assert door.calc_mass_matrix(context) == pytest.approx(np.array([[inertia]]))
    assert door.calc_vdot(context) == pytest.approx([torque / inertia])
    com = np.array([1.0, 2.0 + 0.4 * np.cos(0.5), 3.0 + 0.4 * np.sin(0.5)])
    assert door.output_port("center_of_mass").eval(context) == pytest.approx(com)


def test_door_has_the_names_limits_and_motor_of_the_file() -> None:
    door = load_urdf(DOOR).build()
    axis = door.joint("axis")
    assert door.name == "door"
    assert door.body("panel").model_instance == "door"
    assert np.array_equal(axis.position_limits, [[-0.1], [1.6]])
    assert np.array_equal(axis.velocity_upper_limits, [5.0])
    assert np.array_equal(axis.acceleration_upper_limits, [np.inf])
    assert door.actuator("motor").joint is axis
    assert door.actuator("motor").effort_limit == 30.0
    context = door.create_default_context()
    still = door.calc_vdot(context)
    door.input_port("motor").fix(context, [4.0])
    assert door.calc_vdot(context) - still == pytest.approx([4.0 / (0.6 + 9.0 * 0.4**2)])


@for_each("seed", range(3))
def test_arm_with_bushing_and_spring_moves_like_one_made_by_hand(seed: int) -> None:
    for found, expected in zip(
        accelerations(load_urdf(ARM).build(), seed), accelerations(arm_by_hand(), seed), strict=True
    ):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_force_elements_have_numbers_or_the_names_of_the_file() -> None:
    assert [each.name for each in load_urdf(ARM).force_elements] == ["bushing1", "spring1"]
    named = ARM.replace("<drake:linear_bushing_rpy>", '<drake:linear_bushing_rpy name="mount">')
    assert [each.name for each in load_urdf(named).force_elements] == ["mount", "spring1"]


@pytest.mark.parametrize(
    "declaration", ["", 'xmlns:drake="https://another.example"', 'xmlns="http://ros.example"']
)
def test_prefix_of_drake_needs_no_declaration(declaration: str) -> None:
    text = ARM.replace('xmlns:drake="http://drake.mit.edu"', declaration)
    builder = load_urdf(text)
    assert len(builder.force_elements) == 2
    wrist = next(joint for joint in builder.joints if joint.name == "wrist")
    assert np.array_equal(wrist.acceleration_upper_limits, [7.0])


def test_base_is_welded_to_the_world() -> None:
    arm = load_urdf(ARM).build()
    assert arm.num_velocities == 2
    assert arm.joint("world_welds_to_base").parent_body.is_world


def test_free_base_falls() -> None:
    arm = load_urdf(ARM, base="free", gravity=(0.0, 0.0, -1.6)).build()
    assert arm.num_velocities == 8
    context = arm.create_default_context()
    assert isinstance(arm.joint("base"), QuaternionFloatingJoint)
    momentum = arm.output_port("momentum")
    force = arm.calc_mass_matrix(context)[3:6] @ arm.calc_vdot(context)
    assert force == pytest.approx([0.0, 0.0, -6.0 * 1.6])  # no other force is from outside
    assert momentum.eval(context) == pytest.approx(np.zeros(6))


def test_robot_on_a_reversed_joint_is_connected_already() -> None:
    reversed_axis = DOOR.replace('parent link="world"', 'parent link="panel"').replace(
        'child link="panel"', 'child link="world"'
    )
    assert [joint.name for joint in load_urdf(reversed_axis).joints] == ["axis"]


def test_each_robot_that_stands_alone_is_welded() -> None:
    text = f"<robot name='r'>{LINK.format('a')}{LINK.format('b')}</robot>"
    names = [joint.name for joint in load_urdf(text).joints]
    assert names == ["world_welds_to_a", "world_welds_to_b"]


def test_more_can_be_added_before_the_plant_is_built() -> None:
    builder = load_urdf(DOOR, name="barn")
    panel = next(body for body in builder.bodies if body.name == "panel")
    knob = builder.add_body("knob", SpatialInertia.point_mass(0.2))
    builder.add_joint(WeldJoint("screws", panel, knob, (np.eye(3), [0.0, 0.7, 0.0])))
    plant = builder.build()
    assert plant.name == panel.model_instance == "barn"
    context = plant.create_default_context()
    expected = 0.6 + 9.0 * 0.4**2 + 0.2 * 0.7**2
    assert plant.calc_mass_matrix(context) == pytest.approx(np.array([[expected]]))


def test_files_are_read_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "door.urdf"
    path.write_text(DOOR, encoding="utf-8")
    assert load_urdf(path).name == load_urdf(str(path)).name == "door"


# Joints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tag", "expected"),
    [
        ("revolute", "joint", RevoluteJoint),
        ("continuous", "joint", RevoluteJoint),
        ("prismatic", "joint", PrismaticJoint),
        ("fixed", "joint", WeldJoint),
        ("floating", "joint", QuaternionFloatingJoint),
        ("planar", "joint", PlanarJoint),
        ("planar", "drake:joint", PlanarJoint),
        ("ball", "drake:joint", BallRpyJoint),
        ("universal", "drake:joint", UniversalJoint),
        ("screw", "drake:joint", ScrewJoint),
    ],
)
def test_every_type_becomes_its_joint(kind: str, tag: str, expected: type[Joint]) -> None:
    pitch = '<drake:screw_thread_pitch value="0.3"/>' if kind == "screw" else ""
    moving = '<dynamics damping="0.5"/>' if kind != "fixed" else ""
    joint = only_joint(kind, pitch + moving, tag)
    assert type(joint) is expected
    assert np.array_equal(joint.default_damping_vector, np.full(joint.num_velocities, 0.5))


def test_screw_has_its_pitch() -> None:
    joint = only_joint("screw", '<drake:screw_thread_pitch value="0.3"/>', "drake:joint")
    assert joint.calc_pose(np.array([2.0 * np.pi])).p == pytest.approx([0.3, 0.0, 0.0])


def test_axis_is_x_where_none_is_given() -> None:
    joint = only_joint("revolute")
    assert joint.calc_motion_matrix(np.zeros(1))[:3, 0] == pytest.approx([1.0, 0.0, 0.0])


def test_limits_that_are_not_given_are_infinite() -> None:
    joint = only_joint("revolute", '<limit effort="1" velocity="2"/>')
    assert np.array_equal(joint.position_limits, [[-np.inf], [np.inf]])


def test_angle_of_a_continuous_joint_has_no_limits() -> None:
    joint = only_joint("continuous", '<limit lower="0" upper="0" velocity="2"/>')
    assert np.array_equal(joint.position_limits, [[-np.inf], [np.inf]])
    assert np.array_equal(joint.velocity_upper_limits, [2.0])


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -2), (1, 0, 0), (1, -2, 3)])
def test_planar_joint_moves_across_its_axis(axis: Any) -> None:
    joint = only_joint(
        "planar",
        '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="{} {} {}"/>'.format(*axis),
    )
    (R_PF, p_PF), (R_BM, p_BM) = joint.frame_on_parent.X_BF, joint.frame_on_child.X_BF
    unit = np.array(axis) / np.linalg.norm(axis)
    assert R_BM[:, 2] == pytest.approx(unit, abs=1e-15)
    assert np.trace(R_BM) == pytest.approx(1.0 + 2.0 * unit[2])  # the smallest such rotation
    given = R_PF @ R_BM.T
    assert given == pytest.approx(rotation_from_rpy([0.1, 0.2, 0.3]), abs=1e-15)
    assert np.array_equal(p_PF, [1.0, 2.0, 3.0])
    assert np.array_equal(p_BM, np.zeros(3))


def test_planar_joint_can_have_damping_for_each_coordinate() -> None:
    joint = only_joint("planar", '<dynamics damping="1 2 3"/>')
    assert np.array_equal(joint.default_damping_vector, [1.0, 2.0, 3.0])


def test_bushing_holds_the_frame_of_a_joint() -> None:
    text = pair(
        joint_text("revolute", '<origin xyz="1 0 0"/>'),
        extra=BUSHING.replace("socket", "j_parent").replace("hand", "world"),
    )
    (bushing,) = load_urdf(text).force_elements
    assert isinstance(bushing, LinearBushingRollPitchYaw)
    assert np.array_equal(bushing.frame_a.X_BF.p, [1.0, 0.0, 0.0])
    assert bushing.link1.is_world


# Links and motors ---------------------------------------------------------------------------------


def test_link_without_inertia_has_no_mass() -> None:
    builder = load_urdf('<robot name="r"><link name="marker"/></robot>')
    assert builder.bodies[1].inertia == SpatialInertia(0.0)


def test_inertia_is_turned_with_its_origin() -> None:
    builder = load_urdf(f"<robot name='r'>{LINK.format('a')}</robot>")
    inertia = builder.bodies[1].inertia
    assert inertia is not None
    R = rotation_from_rpy([0.3, 0.2, -0.5])
    given = np.array([[0.5, 0.01, -0.02], [0.01, 0.6, 0.03], [-0.02, 0.03, 0.7]])
    assert inertia.mass == 2.0
    assert np.array_equal(inertia.com, [0.1, -0.2, 0.3])
    assert inertia.inertia == pytest.approx(R @ given @ R.T)


@pytest.mark.parametrize(
    ("inside", "ratio"),
    [
        ("", 1.0),
        ("<mechanicalReduction>50</mechanicalReduction>", 50.0),
        ('<drake:gear_ratio value="7"/><mechanicalReduction>50</mechanicalReduction>', 7.0),
    ],
)
def test_reduction_is_the_gear_ratio(inside: str, ratio: float) -> None:
    motor = f'<actuator name="motor"><drake:rotor_inertia value="0.1"/>{inside}</actuator>'
    plant = load_urdf(DOOR.replace('<actuator name="motor"/>', motor)).build()
    assert plant.actuator("motor").default_gear_ratio == ratio
    found = plant.calc_mass_matrix(plant.create_default_context())
    assert found == pytest.approx(np.array([[0.6 + 9.0 * 0.4**2 + 0.1 * ratio**2]]))


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            DOOR.replace('damping="0.25"', 'damping="0.25" stiction="0.1"'),
            "the attribute 'stiction' of <dynamics> in joint 'axis', line 18 of the text",
        ),
        (
            DOOR.replace("<visual>", "<collision><geometry/></collision><collision/><visual>"),
            "<collision> in link 'panel', line 10 of the text and 1 more of the kind",
        ),
        (
            DOOR.replace('type="revolute"', 'type="fixed"'),
            "<actuator name='motor'>, line 23 of the text is left out: the joint 'axis' is fixed",
        ),
        (
            DOOR.replace('name="world"/>', 'name="world"><inertial/></link>'),
            "<inertial> in link 'world', line 3 of the text is left out",
        ),
    ],
)
def test_what_is_left_out_is_said(text: str, note: str) -> None:
    with pytest.warns(UserWarning, match=note) as caught:
        load_urdf(text)
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]


def test_dry_friction_of_a_file_acts() -> None:
    door = load_urdf(DOOR.replace('damping="0.25"', 'friction="0.1"'), gravity=np.zeros(3)).build()
    context = door.create_default_context()
    for rate, torque in ((0.0, 0.0), (2.0, -0.1), (-2.0, 0.1)):
        door.joint("axis").velocities.set(context, [rate])
        assert door.calc_vdot(context) == pytest.approx([torque / (0.6 + 9.0 * 0.4**2)])
    assert [each.name for each in door.force_elements] == ["axis_friction"]


def test_points_that_a_file_holds_together_stay_so() -> None:
    ball = """<drake:ball_constraint><drake:ball_constraint_body_A name="base"/>
    <drake:ball_constraint_p_AP value="0.1 0.2 0.3"/><drake:ball_constraint_body_B name="hand"/>
    <drake:ball_constraint_p_BQ value="-0.1 0.2 0"/></drake:ball_constraint></robot>"""
    builder = load_urdf(ARM.replace("</robot>", ball))
    (constraint,) = builder.constraints
    assert constraint.name == "ball1"
    assert [body.name for body in constraint.bodies] == ["base", "hand"]
    assert constraint.num_equations == 3


def test_a_joint_that_mimics_another_follows_it() -> None:
    """The other route: the inertia that both have together at the first joint."""
    link = """<link name="{0}"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="{0}_axis" type="continuous"><parent link="world"/><child link="{0}"/>
    <axis xyz="0 0 1"/>{1}</joint>"""
    mimic = '<mimic joint="first_axis" multiplier="-3" offset="0.2"/>'
    text = link.format("second", mimic) + link.format("first", "")  # which is named before it comes
    plant = load_urdf(f'<robot name="hand">{text}</robot>').build()
    context = plant.create_default_context()
    first, second = plant.joint("first_axis"), plant.joint("second_axis")
    first.positions.set(context, [0.5])
    plant.assemble(context, fixed=first)
    assert second.positions.get(context) == pytest.approx([0.2 - 3.0 * 0.5], abs=1e-12)
    forces = np.zeros(2)
    forces[plant.tree.velocities_of(first)] = 1.0
    plant.input_port("generalized_force").fix(context, forces)
    rate = plant.calc_vdot(context)[plant.tree.velocities_of(first)]
    assert rate == pytest.approx([1.0 / (0.1 + 0.1 * 3.0**2)], rel=1e-9)


def robot(*six: float) -> str:
    """Return a robot as some files have it, with these moments of inertia of its base."""
    keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    pairs = " ".join(f'{key}="{value}"' for key, value in zip(keys, six, strict=True))
    return (
        f'<robot name="2dof"><link name="a.0"><inertial><mass value="2"/><inertia {pairs}/>'
        '</inertial></link><link name="b"/><joint name="j.1" type="fixed"><parent link="a.0"/>'
        '<child link="b"/><axis xyz="0 0 0"/></joint></robot>'
    )


def test_names_with_dots_or_digits_and_axes_of_fixed_joints_are_read() -> None:
    builder = load_urdf(robot(1, 1, 1, 0, 0, 0), base="free")
    plant = builder.build()
    assert (builder.name, [body.name for body in plant.bodies[1:]]) == ("_2dof", ["a_0", "b"])
    assert plant.joint("j_1").parent_body.name == "a_0"
    assert builder.left_out == ()


def test_a_product_of_inertia_that_is_rounding_is_that_of_a_point() -> None:
    body = load_urdf(robot(0, 0, 0, 0, 2.4e-35, 0), base="free").bodies[1]
    assert body.inertia is not None
    assert body.inertia.mass == 2.0


@pytest.mark.parametrize(
    "six", [(1e-3, 1e-3, 1.0, 0, 0, 0), (1, 1, -1, 0, 0, 0), (0, 0, 0, 1, 0, 0)]
)
def test_dummy_inertia_is_refused_or_repaired_and_listed(six: tuple[float, ...]) -> None:
    with pytest.raises(DeclarationError, match="principal moments"):
        load_urdf(robot(*six))
    with pytest.warns(UserWarning, match="moments of inertia"):
        builder = load_urdf(robot(*six), base="free", unphysical="repair")
    inertia = builder.bodies[1].inertia
    assert inertia is not None
    assert inertia.mass == 2.0
    assert any("became" in line for line in builder.left_out)
    with pytest.raises(DeclarationError, match="unphysical to be one of 'refuse', 'repair'"):
        load_urdf(robot(*six), unphysical="mend")  # type: ignore[arg-type]
