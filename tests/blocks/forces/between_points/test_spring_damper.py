"""The spring and damper as a block, one physical situation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.diagrams import scalars
from flexure.solvers.tracing.trace import number_behind, symbolic_store
from tests.support.mechanics.force_elements import (
    AT_REST,
    BodyMotion,
    carried,
    context_of,
    forces,
    number,
    random_motion,
    world,
)

POINT_P, POINT_Q = np.array([0.3, -0.2, 0.1]), np.array([-0.1, 0.4, 0.2])
GOOD: dict[str, Any] = {"free_length": 0.5, "stiffness": 80.0, "damping": 3.0}

seeds = pytest.mark.parametrize("seed", range(5))


def strut(body_a: Any = None, body_b: Any = None, **constants: Any) -> LinearSpringDamper:
    """Make a spring between two points away from the origins of the bodies."""
    body_a, body_b = body_a or Body("frame"), body_b or Body("arm")
    return LinearSpringDamper("strut", body_a, POINT_P, body_b, POINT_Q, **{**GOOD, **constants})


def slider(position: float, velocity: float = 0.0) -> tuple[LinearSpringDamper, fx.Context]:
    """Make a spring from the origin of the world to a body at some place on the x axis."""
    spring = LinearSpringDamper(
        "spring", world(), np.zeros(3), Body("slider"), np.zeros(3), **{**GOOD, "free_length": 1.0}
    )
    X_WB = fm.RigidTransform(np.eye(3), np.array([position, 0.0, 0.0]))
    V_WB = np.array([0.0, 0.0, 0.0, velocity, 0.0, 0.0])
    return spring, context_of(spring, AT_REST, BodyMotion(X_WB, V_WB))


def ends(*motions: BodyMotion) -> tuple[Any, Any]:
    """Return positions and velocities of P and Q, by NumPy alone."""
    arms = [
        motion.X_WB.R @ point for motion, point in zip(motions, (POINT_P, POINT_Q), strict=True)
    ]
    positions = [motion.X_WB.p + arm for motion, arm in zip(motions, arms, strict=True)]
    velocities = [
        motion.V_WB[3:] + np.cross(motion.V_WB[:3], arm)
        for motion, arm in zip(motions, arms, strict=True)
    ]
    return positions, velocities


# Forces -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "velocity", "pull"),
    [(1.0, 0.0, 0.0), (1.5, 0.0, 40.0), (0.5, 0.0, -40.0), (1.0, 2.0, 6.0), (1.0, -2.0, -6.0)],
)
def test_tension_pulls_and_compression_pushes(
    position: float, velocity: float, pull: float
) -> None:
    spring, context = slider(position, velocity)
    _, on_slider = forces(spring, context)
    assert on_slider == pytest.approx([0.0, 0.0, 0.0, -pull, 0.0, 0.0])
    assert number(spring.tension, context) == pytest.approx(pull)
    assert number(spring.length, context) == pytest.approx(position)
    assert number(spring.elongation, context) == pytest.approx(position - 1.0)
    assert number(spring.elongation_rate, context) == pytest.approx(velocity)
    assert number(spring.stored_energy, context) == pytest.approx(40.0 * (position - 1.0) ** 2)


@seeds
def test_forces_act_along_the_line_between_the_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    motions = random_motion(rng), random_motion(rng)
    spring = strut()
    context = context_of(spring, *motions)
    (P, Q), (v_P, v_Q) = ends(*motions)
    length = np.linalg.norm(Q - P)
    along = (Q - P) / length
    f = (80.0 * (length - 0.5) + 3.0 * (v_Q - v_P) @ along) * along
    on_frame, on_arm = forces(spring, context)
    size = np.abs([*on_frame, *on_arm]).max()
    for found, motion, point, force in (
        (on_frame, motions[0], P, f),
        (on_arm, motions[1], Q, -f),
    ):
        expected = np.concatenate([np.cross(point - motion.X_WB.p, force), force])
        assert found == pytest.approx(expected, abs=32.0 * 2.0**-52 * size)


@seeds
def test_forces_cancel_and_powers_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    motions = random_motion(rng), random_motion(rng)
    spring = strut()
    context = context_of(spring, *motions)
    both = forces(spring, context)
    assert np.array_equal(both[0][3:], -both[1][3:])
    about_world = [
        fm.shift_spatial_force(F, -motion.X_WB.p) for F, motion in zip(both, motions, strict=True)
    ]
    assert sum(about_world) == pytest.approx(np.zeros(6), abs=1e-12 * np.abs(both).max())
    done = sum(F @ motion.V_WB for F, motion in zip(both, motions, strict=True))
    powers = [
        number(port, context) for port in (spring.conservative_power, spring.non_conservative_power)
    ]
    assert sum(powers) == pytest.approx(done, rel=1e-12)
    assert powers[1] < 0.0


@seeds
def test_a_rigid_motion_of_everything_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    motions = random_motion(rng), random_motion(rng)
    X, V = random_motion(rng)
    spring = strut()
    before = context_of(spring, *motions)
    behind = context_of(spring, *(carried(motion, X, V) for motion in motions))
    for F, found in zip(forces(spring, before), forces(spring, behind), strict=True):
        expected = fm.rotate_spatial(X.R, F)
        assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    for port in (spring.length, spring.elongation_rate, spring.tension, spring.stored_energy):
        assert number(port, behind) == pytest.approx(number(port, before), rel=1e-11)


# What it is attached to ---------------------------------------------------------------------------


def test_bodies_and_the_group_of_body_a_are_told() -> None:
    spring = strut(Body("frame", model_instance="chassis"), Body("arm", model_instance="axle"))
    assert (spring.body_a.name, spring.body_b.name) == ("frame", "arm")
    assert spring.model_instance == "chassis"


def test_points_may_be_given_in_a_frame_on_the_body() -> None:
    rng = np.random.default_rng(8)
    motions = random_motion(rng), random_motion(rng)
    X_BF = fm.RigidTransform(fm.rotation_from_rpy([0.4, 0.5, 0.6]), np.array([1.0, 2.0, 3.0]))
    arm = Body("arm")
    point = fm.transform_point(fm.invert_transform(X_BF), POINT_Q)
    in_frame = LinearSpringDamper(
        "strut", Body("frame"), POINT_P, Frame("pin", arm, X_BF), point, **GOOD
    )
    found, expected = (
        np.array(forces(spring, context_of(spring, *motions))) for spring in (in_frame, strut())
    )
    assert found == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    assert in_frame.body_b is arm


def test_a_spring_within_one_body_does_nothing_to_it() -> None:
    beam = Body("beam")
    spring = strut(beam, beam)
    motion = random_motion(np.random.default_rng(2))
    on_P, on_Q = forces(spring, context_of(spring, motion, motion))
    assert np.abs(on_P).max() > 1.0
    assert on_P == pytest.approx(-on_Q, abs=1e-13 * np.abs(on_P).max())


def test_energy_needs_no_velocities() -> None:
    spring = strut()
    reading = {output for entry, output in spring.feedthrough if entry.startswith("velocity")}
    of_poses = {"length", "elongation", "stored_energy"}
    assert reading == {port.name for port in spring.output_ports} - of_poses


def test_what_is_no_body_is_refused() -> None:
    with pytest.raises(fx.errors.DeclarationError, match="Cannot attach 'strut'"):
        strut("frame")


# Constants ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("free_length", 0.0),
        ("free_length", np.inf),
        ("stiffness", -1.0),
        ("damping", -1e-12),
        ("damping", np.nan),
    ],
)
def test_bad_constants_are_refused_at_construction_and_in_a_context(name: str, bad: float) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=f"'strut.{name}'"):
        strut(**{name: bad})
    spring = strut()
    context = spring.create_default_context()
    with pytest.raises(fx.errors.ValueRefusedError, match=f"'strut.{name}'"):
        spring.find(name).set(context, bad)
    assert spring.find(name).get(context) == GOOD[name]


@pytest.mark.parametrize("bad", [[0.0, 1.0], 0.0, [0.0, np.nan, 0.0], None])
def test_points_have_three_finite_components(bad: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=r"'strut\.p_AP'"):
        LinearSpringDamper("strut", Body("frame"), bad, Body("arm"), POINT_Q, **GOOD)
    with pytest.raises(fx.errors.ValueRefusedError, match=r"'strut\.p_BQ'"):
        LinearSpringDamper("strut", Body("frame"), POINT_P, Body("arm"), bad, **GOOD)


def test_points_can_be_moved_in_a_context() -> None:
    spring, context = slider(1.0)
    spring.p_BQ.set(context, [0.5, 0.0, 0.0])
    assert number(spring.length, context) == pytest.approx(1.5)
    spring.p_AP.set(context, [0.25, 0.0, 0.0])
    assert number(spring.length, context) == pytest.approx(1.25)
    assert spring.p_AP.default.tolist() == [0.0, 0.0, 0.0]


# Points that meet ---------------------------------------------------------------------------------

#: The distance below which points meet, for a free length of 1 m.
NEAREST = 2.0**-52


@pytest.mark.parametrize("multiple", [1.0, 3.0, 1e3])
def test_the_soft_length_has_an_exact_rate_down_to_the_nearest_distance(multiple: float) -> None:
    spring, context = slider(multiple * NEAREST, 1.0)
    length, rate = (number(port, context) for port in (spring.length, spring.elongation_rate))
    assert length == pytest.approx(NEAREST * np.hypot(multiple, 1.0), rel=1e-15)
    assert rate == pytest.approx(multiple / np.hypot(multiple, 1.0), rel=1e-15)


@pytest.mark.parametrize("free_length", [1.0, 0.25])
def test_points_meet_below_the_nearest_distance(free_length: float) -> None:
    spring, context = slider(1.001 * NEAREST * free_length)
    spring.free_length.set(context, free_length)
    assert number(spring.tension, context) == pytest.approx(-80.0 * free_length)
    spring.p_BQ.set(context, [-0.002 * NEAREST * free_length, 0.0, 0.0])
    with pytest.raises(fx.errors.EvaluationError):
        spring.tension.eval(context)


@pytest.mark.parametrize(("position", "finite"), [(1e-3, True), (1e-20, False)])
def test_symbols_become_not_a_number_where_numbers_are_refused(
    position: float, finite: bool
) -> None:
    spring, context = slider(position)
    (symbolic,) = symbolic_store(spring.layout).leaves
    expressions = np.concatenate([port(symbolic) for port in spring.output_ports])
    sources: Any = scalars.sources(expressions)
    known = {key: number_behind(context.store, key) for key in sources}
    assert np.isfinite(scalars.evaluate(expressions, known)).all() == finite


def test_meeting_points_are_refused_with_the_path_of_the_spring() -> None:
    spring, context = slider(0.0)
    for port in spring.output_ports:
        with pytest.raises(fx.errors.EvaluationError, match=r"'spring'.* 0 m apart.*Keep"):
            port.eval(context)


def test_a_spring_that_was_refused_can_be_stretched_again() -> None:
    spring, context = slider(0.0)
    with pytest.raises(fx.errors.EvaluationError):
        spring.tension.eval(context)
    spring.p_BQ.set(context, [0.0, 2.0, 0.0])
    assert number(spring.tension, context) == pytest.approx(80.0)
