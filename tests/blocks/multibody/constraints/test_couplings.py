"""Couplings of coordinates: gears, cams and prescribed motion, against closed forms; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.constraints import (
    DistanceConstraint,
    GearPair,
    HolonomicConstraint,
    LoopJoint,
    PointOnLine,
    PointOnPlane,
    PrescribedMotion,
)
from flexure.errors import DeclarationError, FlexureError
from tests.support.tiers import for_each

INERTIA, MASS = 0.02, 0.5


def shaft_and_slide(*constraints: Callable[[Any, Any], Any]) -> fx.Plant:
    """Build a wheel on a shaft and a weight on a vertical slide, and couple them."""
    builder = fx.PlantBuilder("lift")
    wheel = builder.add_body("wheel", fx.SpatialInertia(1.0, (0, 0, 0), np.eye(3) * INERTIA))
    weight = builder.add_body("weight", fx.SpatialInertia.point_mass(MASS))
    shaft = fx.RevoluteJoint("shaft", builder.world, wheel, axis=(0, 1, 0))
    slide = fx.PrismaticJoint("slide", builder.world, weight, axis=(0, 0, 1))
    builder.add_joint(shaft)
    builder.add_joint(slide)
    for make in constraints:
        builder.add_constraint(make(shaft, slide))
    builder.add_energy_ledger()
    return builder.build()


def test_a_weight_on_a_drum_falls_as_slowly_as_the_drum_lets_it() -> None:
    radius = 0.1
    plant = shaft_and_slide(lambda a, b: GearPair("rope", a, b, 1.0 / radius))
    context = plant.create_default_context()
    fall = -9.81 * MASS / (MASS + INERTIA / radius**2)
    assert plant.calc_vdot(context) == pytest.approx([fall / radius, fall], rel=1e-9)
    tension = MASS * (9.81 + fall)
    multiplier = plant.output_port("rope.multipliers").eval(context)
    assert abs(multiplier[0]) == pytest.approx(tension * radius, rel=1e-9)
    result = fx.simulate(plant, 1.0, context=context)
    assert result["slide.translation"][-1] == pytest.approx(0.5 * fall, rel=1e-7)
    assert np.ptp(result["ledger.balance"]) < 1e-9


def test_the_ratio_of_a_gear_is_a_parameter() -> None:
    plant = shaft_and_slide(lambda a, b: GearPair("rope", a, b, 10.0))
    context = plant.create_default_context()
    context.set("tree.rope_ratio", 20.0)
    fall = -9.81 * MASS / (MASS + INERTIA * 20.0**2)
    assert plant.calc_vdot(context)[1] == pytest.approx(fall, rel=1e-9)


def test_a_follower_on_a_cam_moves_as_the_cam_says() -> None:
    """The other route: the mass that the shaft feels, by the slope of the cam."""
    plant = shaft_and_slide(
        lambda a, b: HolonomicConstraint("cam", [a, b], lambda q, t: q[1] - 0.1 * np.sin(q[0]))
    )
    context = plant.create_default_context()
    angle, rate = 0.7, 3.0
    plant.joint("shaft").positions.set(context, [angle])
    plant.joint("shaft").velocities.set(context, [rate])
    plant.assemble(context, fixed="shaft")
    slope, bend = 0.1 * np.cos(angle), -0.1 * np.sin(angle)
    assert plant.get_positions(context)[1] == pytest.approx(0.1 * np.sin(angle), abs=1e-10)
    assert plant.get_velocities(context)[1] == pytest.approx(slope * rate, abs=1e-10)
    expected = -MASS * slope * (9.81 + bend * rate**2) / (INERTIA + MASS * slope**2)
    assert plant.calc_vdot(context)[0] == pytest.approx(expected, rel=1e-9)


def test_constraints_that_move_with_time_do_the_work_that_the_ledger_shows() -> None:
    plant = shaft_and_slide(
        lambda a, b: HolonomicConstraint("lift", [b], lambda q, t: q[0] - 0.1 * np.sin(3.0 * t))
    )
    context = plant.create_default_context()
    plant.assemble(context)
    assert plant.get_velocities(context)[1] == pytest.approx(0.3, abs=1e-10)
    result = fx.simulate(plant, 2.0, context=context, rtol=1e-9, atol=1e-11)
    assert result["slide.translation"][-1] == pytest.approx(0.1 * np.sin(6.0), abs=1e-8)
    assert np.ptp(result["mechanical_energy"]) > 0.1
    assert np.ptp(result["ledger.balance"]) < 1e-7


def test_a_prescribed_motion_tells_the_effort_that_it_takes() -> None:
    plant = shaft_and_slide(lambda a, b: PrescribedMotion("drive", b))
    context = plant.create_default_context()
    plant.input_port("drive").fix(context, [0.2, 0.0, 2.0])
    plant.assemble(context)
    assert plant.get_positions(context)[1] == pytest.approx(0.2, abs=1e-12)
    effort = plant.output_port("drive.multipliers").eval(context)
    assert effort == pytest.approx([MASS * (9.81 + 2.0)], rel=1e-9)


def test_a_rod_without_mass_makes_a_pendulum() -> None:
    """The other route: the same bob on a joint."""
    length, angle = 0.8, 1.1
    builder = fx.PlantBuilder("pendulum")
    bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(mass=2.0, radius=0.1))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, bob))
    builder.add_constraint(
        DistanceConstraint("rod", builder.world, (0, 0, 0), bob, (0, 0, 0), length)
    )
    plant = builder.build()
    context = plant.create_default_context()
    free.pose.set(context, (np.eye(3), length * np.array([np.sin(angle), 0.0, -np.cos(angle)])))
    found = bob.spatial_acceleration(context)[3:]
    assert np.linalg.norm(found) == pytest.approx(9.81 * np.sin(angle), rel=1e-9)
    tension = plant.output_port("rod.multipliers").eval(context)[0]
    assert abs(tension) == pytest.approx(2.0 * 9.81 * np.cos(angle), rel=1e-9)


@for_each(
    ("make", "found"),
    [
        (lambda a, b: GearPair("g", a, b, 0.0), "ratio that is not zero"),
        (lambda a, b: GearPair("g", a, a, 2.0), "different"),
        (lambda a, b: GearPair("g", a, b, np.nan), "finite"),
        (
            lambda a, b: DistanceConstraint(
                "g", a.child_body, (0, 0, 0), b.child_body, (0, 0, 0), 0.0
            ),
            "0",
        ),
        (
            lambda a, b: DistanceConstraint(
                "g", a.child_body, (0, 0, 0), a.child_body, (0, 0, 0), 1.0
            ),
            "two bodies",
        ),
        (lambda a, b: HolonomicConstraint("g", [a], lambda q, t: t), "position"),
        (lambda a, b: HolonomicConstraint("g", [a], lambda q, t: float(q[0])), "trace"),
    ],
)
def test_constraints_that_mean_nothing_are_refused(make: Any, found: str) -> None:
    with pytest.raises(FlexureError, match=found):
        shaft_and_slide(make)


def test_loops_that_cannot_close_are_named() -> None:
    builder = fx.PlantBuilder("open")
    a = builder.add_body("a", fx.SpatialInertia.thin_rod(1.0, length=1.0))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, a, axis=(0, 1, 0)))
    far = builder.add_frame("far", builder.world, (9.0, 0.0, 0.0))
    builder.add_constraint(DistanceConstraint("rod", far, (0, 0, 0), a, (0, 0, 0), 1.0))
    plant = builder.build()
    context = plant.create_default_context()
    before = context.continuous_state
    with pytest.raises(FlexureError, match=r"open constraints: 'rod' by"):
        plant.assemble(context)
    assert np.array_equal(context.continuous_state, before)


def test_a_free_joint_closes_no_loop() -> None:
    with pytest.raises(DeclarationError, match="holds bodies together"):
        LoopJoint(fx.QuaternionFloatingJoint("free", fx.Body("a"), fx.Body("b")))


def test_points_are_given_on_bodies_or_as_frames() -> None:
    p_AP, p_BQ, O = np.array([0.3, 0.0, 0.1]), np.array([0.05, -0.02, -0.3]), np.zeros(3)

    def reaction(which: int, on_frames: bool) -> Any:
        builder = fx.PlantBuilder("plant")
        bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(mass=2.0, radius=0.1))
        builder.add_joint(fx.RpyFloatingJoint("free", builder.world, bob))
        P = builder.add_frame("P", builder.world, p_AP)
        A = builder.add_frame("A", builder.world, p_BQ)
        Q: Any = (builder.add_frame("Q", bob, p_BQ), O) if on_frames else (bob, p_BQ)
        first: Any = (P, O) if on_frames else (builder.world, p_AP)
        length = float(np.linalg.norm(p_BQ - p_AP))
        kept = (
            lambda: DistanceConstraint("kept", first[0], first[1], Q[0], Q[1], distance=length),
            lambda: PointOnPlane("kept", A, Q[0], Q[1], normal=(0.3, 0.1, 1.0)),
            lambda: PointOnLine("kept", A, Q[0], Q[1], axis=(1.0, 0.2, 0.1)),
        )[which]()
        builder.add_constraint(kept)
        return kept.reaction(builder.build().create_default_context())

    for which in range(3):
        one, other = reaction(which, True), reaction(which, False)
        assert np.abs(one[3:]).max() > 0.1
        assert np.array_equal(one, other)
