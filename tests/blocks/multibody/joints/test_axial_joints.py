"""Joints with an axis: revolute, prismatic and screw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import RigidTransform, rotation_from_rpy
from flexure.diagrams.checks.errors import ValueRefusedError
from tests.blocks.math.samples import EPS
from tests.blocks.multibody.joints.samples import joint_of
from tests.support.tiers import for_each

AXIAL = {
    "revolute": joint_of(fx.RevoluteJoint),
    "prismatic": joint_of(fx.PrismaticJoint),
    "screw": joint_of(fx.ScrewJoint, screw_pitch=0.5),
}
AXIS_OF = {
    "revolute": "revolute_axis",
    "prismatic": "translation_axis",
    "screw": "screw_axis",
}
every_axial = pytest.mark.parametrize("kind", AXIAL)


# The axis -----------------------------------------------------------------------------------------


@every_axial
@pytest.mark.parametrize(
    ("axis", "unit"),
    [
        ((2, -3, 6), [2 / 7, -3 / 7, 6 / 7]),
        ((1e-15, 0, 0), [1.0, 0.0, 0.0]),
        ((0, 0, -1e300), [0.0, 0.0, -1.0]),
        ((0.0, 3e200, -4e200), [0.0, 0.6, -0.8]),
    ],
)
def test_the_axis_may_have_any_length(kind: str, axis: Any, unit: Any) -> None:
    joint = AXIAL[kind](axis=axis)
    np.testing.assert_allclose(getattr(joint, AXIS_OF[kind]), unit, rtol=2 * EPS, atol=0.0)


@every_axial
@pytest.mark.parametrize("axis", [(0.1, 0, -0.0), (0, -7e-9, 0), (-0.0, -0.0, 3)])
def test_an_axis_along_a_coordinate_axis_is_so_exactly(kind: str, axis: Any) -> None:
    unit = getattr(AXIAL[kind](axis=axis), AXIS_OF[kind])
    np.testing.assert_array_equal(unit, np.sign(axis))
    assert not np.signbit(unit[unit == 0.0]).any()


@every_axial
@pytest.mark.parametrize("axis", [(0, 0, 0), (1e-17, 0, 0), (0, 2.0**-52, -(2.0**-52))])
def test_an_axis_without_length_is_refused(kind: str, axis: Any) -> None:
    with pytest.raises(ValueRefusedError, match=r"Cannot make joint 'hip'.*an axis"):
        AXIAL[kind](axis=axis)


@every_axial
@pytest.mark.parametrize("axis", [(np.nan, 0, 1), (np.inf, 0, 0), (1, 0), "z", None], ids=str)
def test_an_axis_is_three_finite_numbers(kind: str, axis: Any) -> None:
    with pytest.raises(ValueRefusedError, match="Cannot make joint 'hip'"):
        AXIAL[kind](axis=axis)


@every_axial
def test_the_axis_cannot_be_changed(kind: str) -> None:
    joint = AXIAL[kind](axis=(0, 0, 1))
    with pytest.raises(ValueError, match="read-only"):
        getattr(joint, AXIS_OF[kind])[0] = 1.0
    with pytest.raises(AttributeError):
        setattr(joint, AXIS_OF[kind], (1, 0, 0))


@every_axial
def test_turning_the_axis_around_is_turning_the_motion_around(kind: str) -> None:
    there, back = (AXIAL[kind](axis=axis) for axis in [(0, 1, 0), (0, -1, 0)])
    q = np.array([0.7])
    np.testing.assert_allclose(there.calc_pose(q).R, back.calc_pose(-q).R, atol=EPS)
    np.testing.assert_array_equal(there.calc_pose(q).p, back.calc_pose(-q).p)
    np.testing.assert_array_equal(there.calc_motion_matrix(q), -back.calc_motion_matrix(q))


# Motions ------------------------------------------------------------------------------------------


@for_each(
    ("axis", "turned"),
    [
        ((1, 0, 0), [1.0, -3.0, 2.0]),
        ((0, 1, 0), [3.0, 2.0, -1.0]),
        ((0, 0, 1), [-2.0, 1.0, 3.0]),
        ((0, 0, -1), [2.0, -1.0, 3.0]),
        ((1, 1, 1), [7 / 3 + 3**-0.5 - 1 / 3, 2 - 2 * 3**-0.5, 2 + 3**-0.5]),
    ],
)
def test_a_quarter_turn_is_right_handed(axis: Any, turned: Any) -> None:
    for kind in ("revolute", "screw"):
        R, _ = AXIAL[kind](axis=axis).calc_pose(np.array([np.pi / 2]))
        np.testing.assert_allclose(R @ [1.0, 2.0, 3.0], turned, atol=1e-15)


def test_a_drawer_moves_along_its_rails() -> None:
    rail = AXIAL["prismatic"](axis=(0, -3, 4))
    R, p = rail.calc_pose(np.array([0.5]))
    np.testing.assert_array_equal(R, np.eye(3))
    np.testing.assert_allclose(p, [0.0, -0.3, 0.4], rtol=2 * EPS)
    np.testing.assert_allclose(rail.calc_motion_matrix(np.zeros(1))[:, 0], [0, 0, 0, 0, -0.6, 0.8])


@pytest.mark.parametrize("pitch", [0.005, -0.005])
def test_a_screw_advances_by_its_pitch_per_turn(pitch: float) -> None:
    spindle = joint_of(fx.ScrewJoint, (0, 1, 0), screw_pitch=pitch)()
    assert spindle.screw_pitch == pitch
    R, p = spindle.calc_pose(np.array([6 * np.pi]))
    np.testing.assert_allclose(R, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(p, [0.0, 3 * pitch, 0.0], rtol=1e-15)


def test_a_screw_without_pitch_is_a_revolute_joint() -> None:
    screw = joint_of(fx.ScrewJoint, (2, -3, 6), screw_pitch=0.0)()
    hinge = AXIAL["revolute"](axis=(2, -3, 6))
    q = np.array([0.7])
    np.testing.assert_array_equal(screw.calc_pose(q).R, hinge.calc_pose(q).R)
    np.testing.assert_array_equal(screw.calc_pose(q).p, np.zeros(3))
    np.testing.assert_array_equal(screw.calc_motion_matrix(q), hinge.calc_motion_matrix(q))


def test_a_screw_turns_about_z_unless_told_otherwise() -> None:
    screw = joint_of(fx.ScrewJoint, screw_pitch=1.0)()
    np.testing.assert_array_equal(screw.screw_axis, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("pitch", [np.nan, np.inf, None, [1.0, 2.0]], ids=str)
def test_a_pitch_is_a_finite_number(pitch: Any) -> None:
    with pytest.raises(ValueRefusedError, match="Cannot make joint 'hip'"):
        joint_of(fx.ScrewJoint)(screw_pitch=pitch)


def test_without_pitch_nothing_goes_along_the_axis() -> None:
    screw = joint_of(fx.ScrewJoint, screw_pitch=0.0)()
    with pytest.raises(ValueRefusedError, match=r"'default_translation' of joint 'hip'.*a pitch"):
        screw.default_translation = 0.1
    assert screw.default_translation == 0.0


# Best matches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["revolute", "screw"])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_angle_is_nearer_to_a_rotation(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    joint = AXIAL[kind](axis=rng.normal(size=3))
    pose = RigidTransform(rotation_from_rpy(rng.uniform(-3, 3, 3)), rng.normal(size=3))

    def likeness(q: Any) -> Any:
        return np.trace(joint.calc_pose(q).R.T @ pose.R)

    best = likeness(joint.nearest_positions(pose))
    assert best >= max(likeness(np.array([q])) for q in np.linspace(-np.pi, np.pi, 721)) - 1e-14


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_velocity_is_nearer_to_a_motion(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    joint = AXIAL[kind](axis=rng.normal(size=3))
    V = rng.normal(size=6)
    H = joint.calc_motion_matrix(np.zeros(1))
    (expected,) = np.linalg.lstsq(H, V, rcond=None)[0]
    assert joint.nearest_velocities(np.zeros(1), V) == pytest.approx([expected], rel=1e-14)


def test_what_is_off_the_rail_is_ignored() -> None:
    rail = AXIAL["prismatic"](axis=(0, 0, 1))
    q = rail.nearest_positions(RigidTransform(rotation_from_rpy([1.0, 2.0, 3.0]), np.arange(3.0)))
    np.testing.assert_array_equal(q, [2.0])


@pytest.mark.parametrize("pitch", [0.7, -0.7])
@pytest.mark.parametrize("angle", [0.3, 3.0, -3.0, 100.0, -7.0])
def test_the_position_tells_how_many_turns_a_screw_has_made(pitch: float, angle: float) -> None:
    screw = joint_of(fx.ScrewJoint, (2, -3, 6), screw_pitch=pitch)()
    pose = screw.calc_pose(np.array([angle]))
    assert screw.nearest_positions(pose) == pytest.approx([angle], abs=1e-13)


def test_the_angle_of_a_door_is_within_half_a_turn() -> None:
    door = AXIAL["revolute"](axis=(0, 0, 1))
    pose = door.calc_pose(np.array([7.0]))
    assert door.nearest_positions(pose) == pytest.approx([7.0 - 2 * np.pi], abs=1e-14)
