"""Cams from tables: what the follower does, when it would lift off, and tables that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import flexure as fx
from flexure.errors import DeclarationError
from tests.support.tiers import for_each

MASS, INERTIA, STROKE = 0.3, 0.01, 8e-3
TURNED = np.deg2rad(np.arange(20.0, 380.0, 15.0))


def rise(angle: Any) -> Any:
    """A cycloidal rise over half of a turn, and as much of a return."""
    part = np.mod(angle, 2.0 * np.pi) / np.pi
    part = np.where(part > 1.0, 2.0 - part, part)
    return STROKE * (part - np.sin(2.0 * np.pi * part) / (2.0 * np.pi))


def valve(stop: float | None = None, **table: Any) -> fx.Plant:
    """Build a cam whose follower a spring presses down, and that may turn up to a stop."""
    builder = fx.PlantBuilder("valve", gravity=(0.0, 0.0, 0.0))
    lobe = builder.add_body("lobe", fx.SpatialInertia(1.0, (0, 0, 0), np.eye(3) * INERTIA))
    stem = builder.add_body("stem", fx.SpatialInertia.point_mass(MASS))
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, lobe, axis=(0, 1, 0)))
    guide = builder.add_joint(fx.PrismaticJoint("guide", builder.world, stem, axis=(0, 0, 1)))
    given = {"angles": TURNED, "lifts": rise(TURNED), **table}
    builder.add_constraint(fx.constraints.CamFollower("cam", shaft, guide, **given))
    if stop is not None:
        builder.add_constraint(fx.RigidStop("stop", shaft, restitution=0.5, upper=stop))
    builder.add_force_element(fx.JointSpring("spring", guide, stiffness=2e3, preload=-10.0))
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.full
@pytest.mark.parametrize("turns", [-2.0, 0.0, 3.0])
def test_a_follower_moves_by_the_spline_of_the_table_and_its_exact_derivatives(
    turns: float,
) -> None:
    """The other route: SciPy's spline, and the mass that the shaft feels."""
    spline = CubicSpline(
        [*TURNED, TURNED[0] + 2.0 * np.pi], [*rise(TURNED), rise(TURNED[0])], bc_type="periodic"
    )
    plant = valve()
    context = plant.create_default_context()
    for angle in (0.1, TURNED[3], 4.0, 2.0 * np.pi):
        plant.joint("shaft").positions.set(context, [angle + 2.0 * np.pi * turns])
        plant.joint("shaft").velocities.set(context, [30.0])
        plant.assemble(context, fixed="shaft")
        q, slope, bend = (spline(angle, nu) for nu in range(3))
        assert plant.get_positions(context)[1] == pytest.approx(q, abs=1e-12)
        assert plant.get_velocities(context)[1] == pytest.approx(30.0 * slope, abs=1e-10)
        pressed = -2e3 * q - 10.0
        turning = slope * (pressed - MASS * bend * 30.0**2) / (INERTIA + MASS * slope**2)
        vdot = plant.calc_vdot(context)
        assert vdot[0] == pytest.approx(turning, rel=1e-9, abs=1e-9)
        lifting = slope * turning + bend * 30.0**2
        assert vdot[1] == pytest.approx(lifting, rel=1e-9, abs=1e-9)
        force = plant.output_port("cam.contact_force").eval(context)
        assert force == pytest.approx([MASS * lifting - pressed], rel=1e-9)


@pytest.mark.full
def test_a_follower_lifts_off_where_the_spring_is_too_weak() -> None:
    plant = valve()
    for rate, lifts in ((30.0, 0.0), (150.0, 1.0)):
        context = plant.create_default_context()
        plant.joint("shaft").velocities.set(context, [rate])
        plant.assemble(context, fixed="shaft")
        result = fx.simulate(plant, 2.0 * np.pi / rate, context=context, rtol=1e-8, atol=1e-10)
        assert np.max(result["cam.lift_off"]) == lifts
        assert (np.min(result["cam.contact_force"]) < 0.0) == bool(lifts)
        assert np.ptp(result["ledger.balance"]) < 1e-6
        assert np.max(np.abs(result["cam.error"])) < 1e-7


def test_a_cam_strikes_a_stop_in_native_code() -> None:
    """The other route: energies of the motion, by the spline, and half of the rate at each impact.

    The equations of both are in the reach of what happens at an impact.
    """
    plant = valve(stop=2.5)
    cam = plant.constraints[0]
    assert isinstance(cam, fx.constraints.CamFollower)
    context = plant.create_default_context()
    plant.joint("shaft").velocities.set(context, [40.0])
    plant.assemble(context, fixed="shaft")
    result = fx.simulate(plant, 0.3, context=context, rtol=1e-9, atol=1e-11, compiled="native")
    angle, rate = result["shaft.angle"].ravel(), result["shaft.rate"].ravel()
    q, slope = cam.lift(angle), cam.lift(angle, 1)
    moving = 0.5 * (INERTIA + MASS * slope**2) * rate**2
    lost = result["stop.dissipated_energy"].ravel()
    assert np.ptp(moving + 1e3 * q**2 + 10.0 * q + lost) < 1e-6
    before, after = (rate[k] for k in (np.argmax(lost > 0.0) - 1, np.argmax(lost > 0.0)))
    assert after == pytest.approx(-0.5 * before, rel=1e-3)
    assert np.max(angle) == pytest.approx(2.5, abs=1e-9)


def test_the_lift_can_be_asked_for() -> None:
    cam = valve().constraint("cam")
    assert isinstance(cam, fx.constraints.CamFollower)
    assert cam.lift(TURNED) == pytest.approx(rise(TURNED), abs=1e-15)
    step = 1e-4
    slope = (cam.lift(1.0 + step) - cam.lift(1.0 - step)) / (2.0 * step)
    assert cam.lift(1.0, derivative=1) == pytest.approx(slope, rel=1e-6)
    around = [cam.lift(edge, derivative=2) for edge in (-1e-9, 2.0 * np.pi + 1e-9)]
    assert around[0] == pytest.approx(around[1], abs=1e-8)


def kinked(angle: Any) -> Any:
    return 1e-3 * np.abs(np.mod(angle - TURNED[11] + np.pi, 2.0 * np.pi) - np.pi)


@for_each(
    ("table", "found"),
    [
        ({"angles": TURNED[::-1]}, r"increase strictly; found 6\.37\d* rad and then 6\.1"),
        ({"angles": np.rad2deg(TURNED)}, r"over one turn.*np\.deg2rad"),
        ({"lifts": [0.0, 1.0]}, "as many lifts"),
        ({"lifts": np.full(len(TURNED), np.nan)}, "lifts.*finite"),
        ({"lifts": kinked(TURNED)}, r"a corner, a jump or noise at \d"),
        ({"lifts": np.where(TURNED > 3.0, 1.0, 0.0)}, "corner, a jump or noise"),
        (
            {"angles": np.linspace(0.0, 2.0 * np.pi, 9), "lifts": np.arange(9.0)},
            "same lift at the beginning and the end of a turn; found 0 and 8",
        ),
        (
            {
                "angles": np.linspace(0.0, 2.0 * np.pi, 9),
                "lifts": 1e200 * (1.0 - np.cos(np.linspace(0.0, 2.0 * np.pi, 9))),
            },
            r"'cam' with these lifts.* 1e\+100",
        ),
    ],
)
def test_tables_that_make_no_cam_are_refused(table: dict[str, Any], found: str) -> None:
    with pytest.raises(fx.errors.FlexureError, match=found):
        valve(**table)


def test_a_cam_needs_joints_with_one_position() -> None:
    glide = fx.PlanarJoint("glide", fx.Body("table"), fx.Body("plate"))
    guide = fx.PrismaticJoint("guide", fx.Body("frame"), fx.Body("stem"), axis=(0, 0, 1))
    with pytest.raises(DeclarationError, match="planar joint 'glide'"):
        fx.constraints.CamFollower("cam", glide, guide, TURNED, rise(TURNED))
