"""Contact whose friction sticks: slopes, rolling, stick and slip by own integration, energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.blocks import math as fm
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier

G, MASS, MU = 10.0, 2.0, 0.4
STICKS: dict[str, Any] = {
    "stiffness": 1e5,
    "damping": 0.5,
    "friction": MU,
    "tangential_stiffness": 1e5,
    "relaxation_time": 3e-3,
}
BOX = (0.3, 0.2, 0.1)
READINGS: Any = by_tier(fast=["native"], full=["native", "python", False])


def incline(slope: float, **options: Any) -> tuple[fx.Plant, fx.Context]:
    """Return a free box that rests on a plane with a slope in x, in its depth."""
    builder = fx.PlantBuilder("incline", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    box = builder.add_body("box", fx.SpatialInertia.solid_box(MASS, size=BOX))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, box))
    shape = fx.BodyShape.box(size=BOX)
    contact = {**STICKS, **options}
    builder.add_force_element(
        fx.Contact("touch", box, shape, builder.world, "half_space", **contact)
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    depth = MASS * G * np.cos(slope) / 4.0 / STICKS["stiffness"]
    free.pose.set(context, (np.eye(3), [0.0, 0.0, 0.5 * BOX[2] - depth]))
    return plant, context


@needs_llvmlite
def test_a_box_below_the_angle_of_friction_does_not_creep() -> None:
    for part, slips_first in ((0.45, False), (0.95, True)):  # as the load sets in, by overshoot
        slope = part * np.arctan(MU)
        plant, context = incline(slope)
        result = fx.simulate(plant, 100.0, context=context, compiled="native", rtol=1e-8)
        x, settled = result["box.position"][:, 0], result.time > 20.0
        given = MASS * G * np.sin(slope) / 4.0 / STICKS["tangential_stiffness"]
        assert given < x[-1] < (10.0 if slips_first else 1.3) * given
        assert np.ptp(x[settled]) < 1e-9
        assert result["touch.load"][-1] == pytest.approx(MASS * G * np.cos(slope), rel=1e-6)
        assert np.ptp(result["ledger.balance"]) < 1e-6


@needs_llvmlite
@pytest.mark.parametrize("compiled", READINGS)
def test_a_box_above_it_accelerates_by_what_friction_leaves(compiled: Any) -> None:
    slope = 1.2 * np.arctan(MU)
    plant, context = incline(slope)
    t_final = 1.0 if compiled == "native" else 0.06
    result = fx.simulate(plant, t_final, context=context, compiled=compiled, rtol=1e-8)
    time, v = result.time, result["box.spatial_velocity"][:, 3]
    later = time > 0.5 * t_final
    gain = np.polyfit(time[later], v[later], 1)[0]
    assert gain == pytest.approx(G * (np.sin(slope) - MU * np.cos(slope)), rel=2e-3)
    assert np.ptp(result["ledger.balance"]) < 1e-6
    works = result["ledger.works"]
    assert np.all(np.diff(works, axis=0) <= 1e-9)
    assert (result.statistics.native_steps > 0) == (compiled == "native")


@needs_llvmlite
@pytest.mark.parametrize("flat_first", [True, False])
def test_a_ball_that_slips_comes_to_roll_with_five_sevenths_of_its_speed(flat_first: bool) -> None:
    builder, r, speed = fx.PlantBuilder("lane", gravity=(0.0, 0.0, -G)), 0.1, 2.0
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(MASS, radius=r))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, ball))
    places: list[Any] = [ball, fx.BodyShape.sphere(radius=r), builder.world, "half_space"]
    if flat_first:
        places = places[2:] + places[:2]
    builder.add_force_element(fx.Contact("touch", *places, **STICKS))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    free.pose.set(context, (np.eye(3), [0.0, 0.0, r - MASS * G / STICKS["stiffness"]]))
    plant.set_velocities(context, [0.0, 0.0, 0.0, speed, 0.0, 0.0])
    result = fx.simulate(plant, 3.0, context=context, compiled="native", rtol=1e-8)
    v, w = result["ball.spatial_velocity"][:, 3], result["ball.spatial_velocity"][:, 1]
    begin = 2.0 * speed / (7.0 * MU * G)  # of rolling
    slips = result.time < 0.98 * begin
    np.testing.assert_allclose(v[slips], speed - MU * G * result.time[slips], atol=2e-3)
    rolls = result.time > begin + 0.1
    np.testing.assert_allclose(v[rolls], 5.0 / 7.0 * speed, rtol=1e-3)
    arm = r - 0.5 * MASS * G / STICKS["stiffness"]  # to the middle of the overlap
    np.testing.assert_allclose(v[rolls], arm * w[rolls], rtol=1e-5)
    lost = MASS * speed**2 * (1.0 - 5.0 / 7.0) / 2.0
    assert result["ledger.works"][-1].sum() == pytest.approx(-lost, rel=2e-3)
    assert np.ptp(result["ledger.balance"]) < 1e-6


@needs_llvmlite
@pytest.mark.full
def test_a_block_that_a_spring_pulls_moves_as_by_own_integration() -> None:
    """A point that a plane presses on the ground: turning points lose 2 μ N/k until it sticks."""
    builder, k = fx.PlantBuilder("rig", gravity=(0.0, 0.0, -G)), 200.0
    block = builder.add_body("block", fx.SpatialInertia.solid_sphere(MASS, radius=0.1))
    plane = builder.add_joint(fx.PlanarJoint("plane", builder.world, block, damping=0.0))
    point, depth = fx.BodyShape.point(), 2e-4
    ground = builder.add_frame("ground", builder.world, (0.0, 0.0, depth))
    builder.add_force_element(fx.Contact("touch", block, point, ground, "half_space", **STICKS))
    builder.add_force_element(fx.JointSpring("spring", plane, stiffness=[k, k, 0.0]))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plane.translation.set(context, [0.3, 0.0])
    result = fx.simulate(plant, 3.0, context=context, compiled="native", rtol=1e-9)
    limit, stiff, T = MU * 1e5 * depth, STICKS["tangential_stiffness"], STICKS["relaxation_time"]

    def motion(_: float, y: Any) -> list[float]:
        trial = stiff * (y[2] + T * y[1])
        force = -np.clip(trial, -limit, limit)
        return [y[1], (force - k * y[0]) / MASS, -(force / stiff + y[2]) / T]

    options: Any = {"rtol": 1e-9, "atol": 1e-12, "method": "Radau", "t_eval": result.time}
    own = solve_ivp(motion, (0.0, 3.0), [0.3, 0.0, 0.0], **options)
    np.testing.assert_allclose(result["block.position"][:, 0], own.y[0], atol=1e-5)
    assert abs(k * own.y[0, -1]) < limit  # it sticks where the spring pulls less than friction
    assert result["block.position"][:, 0].min() == pytest.approx(-0.3 + 2.0 * limit / k, abs=1e-3)
    assert np.ptp(result["ledger.balance"]) < 1e-6


@needs_llvmlite
def test_a_belt_drags_a_block_that_sticks_and_slips_with_the_period_of_own_integration() -> None:
    """A block on a spring, on a belt that moves: static friction lets it stick, again and again."""
    builder, k, speed = fx.PlantBuilder("rig", gravity=(0.0, 0.0, -G)), 100.0, 0.1
    belt = builder.add_body("belt", fx.SpatialInertia.point_mass(1e9))
    run = builder.add_joint(fx.PrismaticJoint("run", builder.world, belt, (1, 0, 0), damping=0.0))
    block = builder.add_body("block", fx.SpatialInertia.solid_sphere(MASS, radius=0.1))
    plane = builder.add_joint(fx.PlanarJoint("plane", builder.world, block, damping=0.0))
    ground, depth = builder.add_frame("ground", belt, (0.0, 0.0, 2e-4)), 2e-4
    rest = {"friction": 0.3, "static_friction": 0.5, "stribeck_velocity": 0.02}
    options: Any = {**STICKS, "tangential_stiffness": 1e6, **rest}
    builder.add_force_element(
        fx.Contact("touch", block, fx.BodyShape.point(), ground, "half_space", **options)
    )
    builder.add_force_element(fx.JointSpring("spring", plane, stiffness=[k, k, 0.0]))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    run.rate.set(context, speed)
    result = fx.simulate(plant, 6.0, context=context, compiled="native", rtol=1e-8)
    x, load = result["block.position"][:, 0], STICKS["stiffness"] * depth

    def slip(_: float, y: Any) -> list[float]:
        v = speed - y[1]
        return [y[1], ((0.3 + 0.2 * np.exp(-((v / 0.02) ** 2))) * load - k * y[0]) / MASS]

    def sticks(_: float, y: Any) -> float:
        return float(y[1] - speed)

    sticks.terminal, sticks.direction = True, 1.0  # type: ignore[attr-defined]
    most = 0.5 * load / k
    start = [most, speed - 1e-6]
    own = solve_ivp(slip, (0.0, 5.0), start, events=sticks, rtol=1e-9, atol=1e-12)
    period = own.t[-1] + (most - own.y[0, -1]) / speed
    tops = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:]) & (x[1:-1] > 0.9 * most)) + 1
    times = result.time[tops]
    gaps = np.diff(times)[np.diff(times) > 0.5 * period]
    assert len(gaps) >= 2
    np.testing.assert_allclose(gaps, period, rtol=0.02)
    assert np.ptp(result["ledger.balance"]) < 1e-5


def test_forces_by_hand_and_none_where_shapes_are_apart() -> None:
    contact = fx.Contact(
        "c",
        *(fx.PlantBuilder("p").world, "half_space"),
        fx.PlantBuilder("q").add_body("b", fx.SpatialInertia.point_mass(1.0)),
        fx.BodyShape.sphere(radius=0.1),
        **STICKS,
    )
    context = contact.create_default_context()
    R = fm.rotation_about([0.0, 1.0, 0.0], 0.4)
    for height, sliding in ((0.0999, 1e-5), (0.0999, -3.0), (0.2, 1.0)):
        contact.input_port("pose_B").fix(context, [*np.ravel(R), 0.0, 0.0, height])
        contact.input_port("velocity_B").fix(context, [0.0, 0.0, 0.0, sliding, 0.0, 0.0])
        z = np.array([2e-5, 0.0, 1e-5])
        assert contact.continuous_state is not None
        contact.continuous_state.set(context, z)
        # A is the ground, so that the stretch is that of A against the ball
        load = STICKS["stiffness"] * max(0.1 - height, 0.0)
        T, k = STICKS["relaxation_time"], STICKS["tangential_stiffness"]
        trial = k * (z[0] - T * sliding)
        force = -np.clip(trial, -MU * load, MU * load)
        found = contact.output_port("force_on_B").eval(context)
        assert found[3] == pytest.approx(-force, abs=1e-12)
        rates = contact.eval_time_derivatives(context)
        np.testing.assert_allclose(rates, [-(force / k + z[0]) / T, 0.0, -z[2] / T], rtol=1e-12)
        assert contact.non_conservative_power.eval(context)[0] <= 0.0


def test_a_box_on_a_turntable_turns_with_it() -> None:
    """Its stretch is in the frame of the table: centripetal friction turns, and nothing creeps."""
    builder, rate, r = fx.PlantBuilder("table", gravity=(0.0, 0.0, -G)), 3.0, 0.3
    disk = builder.add_body(
        "disk", fx.SpatialInertia.solid_cylinder(9.0, radius=0.5, length=0.1, axis="z")
    )
    axle = builder.add_joint(
        fx.RevoluteJoint("axle", builder.world, disk, axis=(0, 0, 1), damping=0.0)
    )
    box = builder.add_body("box", fx.SpatialInertia.solid_box(0.5, size=(0.05, 0.05, 0.02)))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, box))
    shape = fx.BodyShape.box(size=(0.05, 0.05, 0.02))
    builder.add_force_element(fx.Contact("touch", box, shape, disk, "half_space", **STICKS))
    plant = builder.build()
    context = plant.create_default_context()
    free.pose.set(context, (np.eye(3), [r, 0.0, 0.01 - 0.5 * G / 4e5]))
    axle.rate.set(context, rate)
    plant.set_velocities(context, [rate, 0.0, 0.0, rate, 0.0, rate * r, 0.0])
    assert rate**2 * r < MU * G
    result = fx.simulate(plant, 5.0, context=context, rtol=1e-8)
    place = result["box.position"]
    radius = np.hypot(place[:, 0], place[:, 1])
    assert np.ptp(radius) < 1e-4
    assert np.ptp(radius[result.time > 1.0]) < 1e-6
    turned = np.unwrap(np.arctan2(place[:, 1], place[:, 0])) - result["axle.angle"]
    assert np.ptp(turned[result.time > 1.0]) < 1e-6


def test_small_motions_of_what_sticks_are_those_of_its_spring() -> None:
    plant, context = incline(0.0)
    linear = fx.linearize(plant, context)
    frequencies = np.abs(np.linalg.eigvals(linear.A).imag)
    along = np.sqrt(4.0 * STICKS["tangential_stiffness"] / MASS)
    assert np.min(np.abs(frequencies - along)) < 0.2 * along


def test_statics_refuse_what_depends_on_the_way_and_an_equilibrium_finds_what_holds() -> None:
    plant, context = incline(0.1)
    for ask in (
        lambda: fx.stiffness(plant, "box", context=context),
        lambda: fx.load_path(plant, {"box.position[0]": 0.1}, context=context),
    ):
        with pytest.raises(fx.errors.DeclarationError, match="friction that sticks: 'touch'"):
            ask()
    rest = fx.equilibrium(plant, context=context)
    assert rest.context.get("touch.load") == pytest.approx(MASS * G * np.cos(0.1))
    steep, context = incline(0.6)
    with pytest.raises(fx.errors.EvaluationError, match="Cannot find an equilibrium"):
        fx.equilibrium(steep, context=context)


def test_friction_needs_one_of_its_two_forms() -> None:
    builder = fx.PlantBuilder("rig")
    ball = builder.add_body("ball", fx.SpatialInertia.point_mass(1.0))
    pair: Any = (ball, fx.BodyShape.point(), builder.world, "half_space")
    wrong: list[dict[str, Any]] = [
        {"friction": 0.1},
        {"tangential_stiffness": 1.0},
        {"friction": 0.1, "tangential_stiffness": 1.0, "transition_velocity": 1.0},
        {"friction": 0.1, "tangential_stiffness": 1.0, "static_friction": 0.2},
        {"friction": 0.1, "tangential_stiffness": 1.0, "stribeck_velocity": 0.2},
        {
            "friction": 0.1,
            "transition_velocity": 1.0,
            "static_friction": 0.2,
            "stribeck_velocity": 0.2,
        },
    ]
    for options in wrong:
        with pytest.raises(fx.errors.DeclarationError, match="or tangential_stiffness; with"):
            fx.Contact("c", *pair, stiffness=1.0, **options)
    low: dict[str, Any] = {**STICKS, "static_friction": 0.05, "stribeck_velocity": 0.01}
    with pytest.raises(fx.errors.DeclarationError, match="friction <= static_friction"):
        fx.Contact("c", *pair, **low)
