"""Bushings as blocks: attachments, constants, forces on bodies, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.forces.bushings.bushing import Bushing, LinearBushing, LinearBushingRollPitchYaw
from flexure.blocks.forces.coefficients.mounts import BushingConstants
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from tests.support.mechanics.bushings import compute
from tests.support.mechanics.force_elements import (
    AT_REST,
    BodyMotion,
    carried,
    context_of,
    forces,
    move,
    number,
    random_motion,
    random_pair,
    world,
)
from tests.support.tiers import for_each

CONSTANTS: dict[str, Any] = {
    "torque_stiffness": [30.0, 50.0, 70.0],
    "torque_damping": [0.1, 0.2, 0.3],
    "force_stiffness": [900.0, 500.0, 100.0],
    "force_damping": [3.0, 2.0, 1.0],
}
KINDS: dict[str, tuple[type[Bushing], dict[str, Any]]] = {
    "drake": (LinearBushingRollPitchYaw, {}),
    "consistent": (LinearBushingRollPitchYaw, {"energy_consistent": True}),
    "gimbal_free": (LinearBushing, {}),
}
UNITS = {
    "torque_stiffness": "N m/rad",
    "torque_damping": "N m s/rad",
    "force_stiffness": "N/m",
    "force_damping": "N s/m",
}

every_kind = for_each("kind", KINDS)
every_class = for_each("cls", [LinearBushingRollPitchYaw, LinearBushing])
every_constant = for_each("name", CONSTANTS)
seeds = for_each("seed", range(5))


def make(kind: str, frame_a: Any, frame_c: Any, **constants: Any) -> Bushing:
    """Make a bushing with the usual constants, or some others."""
    cls, options = KINDS[kind]
    return cls("mount", frame_a, frame_c, **{**CONSTANTS, **constants}, **options)


def between_frames(kind: str, seed: int) -> Bushing:
    """Make a bushing between frames that are not those of the bodies."""
    rng = np.random.default_rng(100 + seed)
    R = fm.rotation_from_rotation_vector([0.3, -0.2, 0.1])
    frame_a = Frame("bracket", Body("car", model_instance="vehicle"), (R, rng.normal(size=3)))
    frame_c = Frame("lug", Body("engine", model_instance="drive"), (R.T, rng.normal(size=3)))
    return make(kind, frame_a, frame_c)


# Forces -------------------------------------------------------------------------------------------


@every_kind
@seeds
def test_outputs_are_those_of_the_law_between_the_frames(kind: str, seed: int) -> None:
    mount = between_frames(kind, seed)
    motions = random_pair(np.random.default_rng(seed))
    context = context_of(mount, *motions)
    X_WA, X_WC = (
        fm.compose_transforms(motion.X_WB, frame.X_BF)
        for motion, frame in zip(motions, (mount.frame_a, mount.frame_c), strict=True)
    )
    V_WA, V_WC = (
        fm.shift_spatial_velocity(motion.V_WB, X_WF.p - motion.X_WB.p)
        for motion, X_WF in zip(motions, (X_WA, X_WC), strict=True)
    )
    # The world of the law is A: pose and velocity of C there come from the inverse of X_WA.
    X_AC = fm.compose_transforms(fm.invert_transform(X_WA), X_WC)
    seen_from_A = V_WC - fm.shift_spatial_velocity(V_WA, X_WC.p - X_WA.p)
    V_AC = fm.rotate_spatial(X_WA.R.T, seen_from_A)
    law = mount.law(context)
    expected = compute(law, *X_AC, V_AC)
    found = {
        "on_A": mount.force_on_frame_A,
        "on_C_in_C": mount.force_on_frame_C,
        "angles": mount.angles,
        "angle_rates": mount.angle_rates,
        "position": mount.position,
        "stored_energy": mount.stored_energy,
        "conservative_power": mount.conservative_power,
        "non_conservative_power": mount.non_conservative_power,
    }
    for name, port in found.items():
        right = getattr(expected, name)
        size = np.abs(right).max()
        assert port.eval(context) == pytest.approx(right, abs=1e-12 * size), name


@every_kind
@seeds
def test_forces_on_the_bodies_are_those_on_the_frames(kind: str, seed: int) -> None:
    mount = between_frames(kind, seed)
    motions = random_pair(np.random.default_rng(seed))
    context = context_of(mount, *motions)
    on_frames = [mount.force_on_frame_A.eval(context), mount.force_on_frame_C.eval(context)]
    frames = [mount.frame_a, mount.frame_c]
    for F_F, frame, motion, found in zip(
        on_frames, frames, motions, forces(mount, context), strict=True
    ):
        X_WF = fm.compose_transforms(motion.X_WB, frame.X_BF)
        expected = fm.shift_spatial_force(fm.rotate_spatial(X_WF.R, F_F), motion.X_WB.p - X_WF.p)
        assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


@every_kind
@seeds
def test_forces_on_both_bodies_cancel(kind: str, seed: int) -> None:
    mount = between_frames(kind, seed)
    motions = random_pair(np.random.default_rng(seed))
    F_A, F_C = forces(mount, context_of(mount, *motions))
    about_world = [
        fm.shift_spatial_force(F, -motion.X_WB.p)
        for F, motion in zip((F_A, F_C), motions, strict=True)
    ]
    assert np.array_equal(F_A[3:], -F_C[3:])
    assert sum(about_world) == pytest.approx(np.zeros(6), abs=1e-12 * np.abs(F_C).max())


@every_kind
@seeds
def test_powers_are_what_the_forces_do_on_the_bodies(kind: str, seed: int) -> None:
    mount = between_frames(kind, seed)
    motions = random_pair(np.random.default_rng(seed))
    context = context_of(mount, *motions)
    done = sum(F @ motion.V_WB for F, motion in zip(forces(mount, context), motions, strict=True))
    powers = [number(p, context) for p in (mount.conservative_power, mount.non_conservative_power)]
    assert sum(powers) == pytest.approx(done, abs=1e-12 * np.abs(powers).max())


@every_kind
@seeds
def test_a_rigid_motion_of_everything_changes_nothing(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mount = between_frames(kind, seed)
    motions = random_pair(rng)
    X, V = random_motion(rng)
    before = context_of(mount, *motions)
    behind = context_of(mount, *(carried(motion, X, V) for motion in motions))
    for F, found in zip(forces(mount, before), forces(mount, behind), strict=True):
        expected = fm.rotate_spatial(X.R, F)
        assert found == pytest.approx(expected, abs=1e-11 * np.abs(expected).max())
    for port in mount.output_ports:
        if port not in mount.force_ports:
            expected = port.eval(before)
            size = np.abs(expected).max()
            assert port.eval(behind) == pytest.approx(expected, abs=1e-11 * size), port


# What it is attached to ---------------------------------------------------------------------------


@every_kind
def test_a_mount_on_the_world_has_one_moving_side(kind: str) -> None:
    rng = np.random.default_rng(0)
    ground, engine = world(), Body("engine")
    mount = make(kind, Frame("post", ground, (np.eye(3), [0.1, 0.2, 0.3])), engine)
    assert [port.name for port in mount.input_ports] == ["pose_C", "velocity_C"]
    _, motion = random_pair(rng)
    motion = motion._replace(X_WB=fm.RigidTransform(fm.x_rotation(0.7), motion.X_WB.p))
    two = make(kind, Frame("post", Body("rock"), (np.eye(3), [0.1, 0.2, 0.3])), engine)
    found = forces(mount, context_of(mount, AT_REST, motion))
    expected = forces(two, context_of(two, AT_REST, motion))
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-14)
    turned_round = make(kind, engine, ground)
    assert [port.name for port in turned_round.input_ports] == ["pose_A", "velocity_A"]


@every_kind
def test_both_frames_may_be_on_one_body(kind: str) -> None:
    beam = Body("beam")
    R = fm.rotation_from_rpy([0.1, 0.2, 0.3])
    mount = make(kind, beam, Frame("tip", beam, (R, [0.5, 0.0, 0.0])))
    motion = random_motion(np.random.default_rng(1))
    context = context_of(mount, motion, motion)
    on_A, on_C = forces(mount, context)
    size = np.abs(on_A).max()
    assert size > 1.0
    assert on_A == pytest.approx(-on_C, abs=1e-12 * size)
    assert mount.angle_rates.eval(context) == pytest.approx(np.zeros(3), abs=1e-14)


@every_kind
def test_links_frames_and_the_group_of_frame_c_are_told(kind: str) -> None:
    mount = between_frames(kind, 0)
    assert (mount.frame_a.name, mount.frame_c.name) == ("bracket", "lug")
    assert (mount.link0.name, mount.link1.name) == ("car", "engine")
    assert mount.model_instance == "drive"
    assert mount.index is None


@every_kind
def test_energy_and_place_need_no_velocities(kind: str) -> None:
    mount = make(kind, Body("car"), Body("engine"))
    context = mount.create_default_context()
    for attachment, height in zip(mount.attachments, (0.0, 0.1), strict=True):
        assert attachment.pose is not None
        attachment.pose.fix(context, [*np.eye(3).ravel(), 0.0, 0.0, height])
    assert number(mount.stored_energy, context) == pytest.approx(0.5)
    assert mount.position.eval(context) == pytest.approx([0.0, 0.0, 0.1])
    of_poses = {"angles", "position", "stored_energy"}
    reading = {output for entry, output in mount.feedthrough if entry.startswith("velocity")}
    assert reading == {port.name for port in mount.output_ports} - of_poses


@for_each("missing", ["wheel", None])
@every_class
def test_what_is_no_frame_is_refused(cls: type[Bushing], missing: Any) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=r"Cannot attach 'mount'.*a Frame or"):
        cls("mount", Body("car"), missing, **CONSTANTS)


# Constants ----------------------------------------------------------------------------------------


@every_kind
@every_constant
def test_constants_are_parameters_that_keep_their_defaults(kind: str, name: str) -> None:
    mount = make(kind, Body("car"), Body("engine"))
    parameter = mount.find(name)
    assert parameter.unit == UNITS[name]
    context = mount.create_default_context()
    assert parameter.get(context).tolist() == CONSTANTS[name]
    parameter.set(context, [7.0, 8.0, 0.0])
    assert parameter.get(context).tolist() == [7.0, 8.0, 0.0]
    assert getattr(mount, f"{name}_constants").tolist() == CONSTANTS[name]


@every_kind
def test_forces_follow_the_constants_of_the_context(kind: str) -> None:
    mount = make(kind, Body("car"), Body("engine"))
    motions = random_pair(np.random.default_rng(3))
    context = context_of(mount, *motions)
    before = forces(mount, context)
    for name, constants in CONSTANTS.items():
        mount.find(name).set(context, 2.0 * np.array(constants))
    for F, twice in zip(before, forces(mount, context), strict=True):
        assert twice == pytest.approx(2.0 * F, rel=1e-14)


@every_class
@every_constant
@for_each("bad", [-1e-12, [1.0, -1.0, 1.0], np.nan, np.inf, [1.0, 2.0], "soft", None])
def test_bad_constants_are_refused_at_construction(cls: type[Bushing], name: str, bad: Any) -> None:
    constants = {**CONSTANTS, name: bad}
    with pytest.raises(fx.errors.ValueRefusedError, match=f"'mount.{name}'"):
        cls("mount", Body("car"), Body("engine"), **constants)


@every_class
@every_constant
def test_negative_constants_are_refused_in_a_context(cls: type[Bushing], name: str) -> None:
    mount = cls("mount", Body("car"), Body("engine"), **CONSTANTS)
    context = mount.create_default_context()
    with pytest.raises(fx.errors.ValueRefusedError, match=f"'mount.{name}'"):
        mount.find(name).set(context, [1.0, -1.0, 1.0])
    assert mount.find(name).get(context).tolist() == CONSTANTS[name]


@every_class
def test_one_number_stands_for_three(cls: type[Bushing]) -> None:
    mount = cls("mount", Body("car"), Body("engine"), **dict.fromkeys(CONSTANTS, 4.0))
    for name in CONSTANTS:
        assert mount.find(name).default.tolist() == [4.0, 4.0, 4.0]


@every_kind
def test_the_constants_of_a_mount_make_a_bushing(kind: str) -> None:
    cls, options = KINDS[kind]
    constants = BushingConstants.prismatic("x", 20.0, 300.0, 0.5).with_time_constant(0.1)
    mount = cls.from_constants("rail", Body("base"), Body("sled"), constants, **options)
    assert type(mount) is cls
    assert (
        tuple(mount.torque_stiffness_constants) == constants.torque_stiffness == (20.0, 20.0, 20.0)
    )
    assert tuple(mount.torque_damping_constants) == constants.torque_damping == (2.0, 2.0, 2.0)
    assert (
        tuple(mount.force_stiffness_constants) == constants.force_stiffness == (0.0, 300.0, 300.0)
    )
    assert tuple(mount.force_damping_constants) == constants.force_damping == (0.5, 30.0, 30.0)
    if isinstance(mount, LinearBushingRollPitchYaw):
        assert mount.energy_consistent == options.get("energy_consistent", False)


# Gimbal lock --------------------------------------------------------------------------------------

LOCKED = BodyMotion(fm.RigidTransform(fm.y_rotation(0.5 * np.pi), np.ones(3)), np.ones(6))


@for_each("kind", ["drake", "consistent"])
def test_gimbal_lock_is_refused_with_the_path_of_the_bushing(kind: str) -> None:
    zeros = dict.fromkeys(CONSTANTS, 0.0)
    mount = make(kind, world(), Body("engine"), **zeros)
    builder = fx.DiagramBuilder("car")
    builder.add(mount)
    for entry in mount.input_ports:
        builder.export_input(entry)
    outer = fx.DiagramBuilder("garage")
    outer.add(builder.build())
    for entry in outer.systems[0].input_ports:
        outer.export_input(entry)
    context = outer.build().create_default_context()
    for entry, value in zip(
        context.system.input_ports,
        ([*LOCKED.X_WB.R.ravel(), *LOCKED.X_WB.p], LOCKED.V_WB),
        strict=True,
    ):
        entry.fix(context, value)
    for port in (*mount.force_ports, mount.angle_rates, mount.non_conservative_power):
        with pytest.raises(
            fx.errors.EvaluationError, match=r"'car\.mount'.*90\.000 degrees.*Orient"
        ):
            port.eval(context)
    assert number(mount.stored_energy, context) == 0.0
    assert mount.angles.eval(context)[1] == pytest.approx(0.5 * np.pi)


def test_the_gimbal_free_bushing_does_not_care() -> None:
    mount = make("gimbal_free", world(), Body("engine"))
    context = context_of(mount, AT_REST, LOCKED)
    assert mount.angles.eval(context) == pytest.approx([0.0, 0.5 * np.pi, 0.0])
    assert np.isfinite(forces(mount, context)).all()


def test_a_context_can_be_moved_on() -> None:
    mount = make("drake", world(), Body("engine"))
    context = context_of(mount, AT_REST, LOCKED)
    with pytest.raises(fx.errors.EvaluationError):
        forces(mount, context)
    move(mount, context, AT_REST, AT_REST)
    assert np.array_equal(forces(mount, context), np.zeros((2, 6)))
