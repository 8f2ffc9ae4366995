"""Friction that sticks: closed forms, its own integration, the smooth law, loads that jump."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from tests.support.tiers import for_each

K, M = 100.0, 1.0


def oscillator(
    start: float = 0.5, rate: float = 0.0, smooth: float | None = None, **constants: Any
) -> tuple[fx.Plant, fx.Context]:
    """Return a mass on a spring with friction, and a context in which it begins to move."""
    builder = fx.PlantBuilder("oscillator", gravity=np.zeros(3))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(M))
    slide = fx.PrismaticJoint("slide", builder.world, body, axis=(1, 0, 0), damping=0.0)
    builder.add_joint(slide)
    builder.add_force_element(fx.JointSpring("spring", slide, stiffness=K))
    if smooth is None:
        builder.add_constraint(fx.StickSlipFriction("friction", slide, **constants))
    else:
        builder.add_force_element(
            fx.JointFriction("friction", slide, transition_velocity=smooth, **constants)
        )
    builder.add_actuator("push", slide)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    slide.translation.set(context, start)
    slide.translation_rate.set(context, rate)
    return plant, context


def driven(signal: fx.LeafSystem, **constants: Any) -> fx.Diagram:
    """Return the oscillator at rest, pushed by a signal."""
    plant, _ = oscillator(**constants)
    builder = fx.DiagramBuilder("driven")
    builder.add(plant)
    builder.add(signal)
    builder.connect(f"{signal.name}.y", "oscillator.push")
    return builder.build()


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
def test_an_oscillation_decays_by_four_frictions_over_the_stiffness_in_a_period(
    compiled: Any,
) -> None:
    plant, context = oscillator(0.25, coulomb_friction=2.0)
    result = fx.simulate(plant, 2.5, context=context, rtol=1e-8, compiled=compiled)
    mode, x = result["friction.mode"], result["slide.translation"]
    turns = np.flatnonzero(mode[1:] != mode[:-1])
    half = np.pi * np.sqrt(M / K)
    expected: list[float] = []
    size = 0.25
    while size > 2.0 / K:
        size -= 2.0 * 2.0 / K
        expected.append(size * (-1.0) ** (len(expected) + 1))
    np.testing.assert_allclose(result.time[turns], half * np.arange(1, len(turns) + 1), rtol=1e-6)
    np.testing.assert_allclose(x[turns], expected, atol=1e-6)
    rests = result.time > result.time[turns[-1]]
    assert np.all(mode[rests] == 0.0)
    assert np.all(result["slide.rate"][rests] == 0.0)
    assert np.ptp(x[rests]) == 0.0  # no creep at all
    held = result["friction.generalized_force"][rests]
    np.testing.assert_allclose(held, K * expected[-1], rtol=1e-4)
    path = np.sum(np.abs(np.diff([0.25, *expected])))
    assert result["ledger.works"][-1] == pytest.approx([0.0, 0.0, -2.0 * path, 0.0], rel=1e-5)
    assert np.ptp(result["ledger.balance"]) < 1e-5


def belt(t_final: float, c: dict[str, float], speed: float) -> list[tuple[float, float]]:
    """Integrate a mass that sticks and slips on a spring whose foot moves with a speed.

    Return when it breaks away, and where it is then. It moves in one direction only.
    """
    from scipy.integrate import solve_ivp

    least, most, v_s = c["coulomb_friction"], c["static_friction"], c["stribeck_velocity"]

    def rates(t: float, y: Any) -> list[float]:
        friction = least + (most - least) * np.exp(-((y[1] / v_s) ** 2))
        return [y[1], (-K * (y[0] + speed * t) + friction) / M]

    def rate(_: float, y: Any) -> float:
        return float(y[1])

    rate.terminal, rate.direction = True, 1.0  # type: ignore[attr-defined]
    found, x = [], 0.0
    while (t := (most / K - x) / speed) < t_final:
        found.append((t, x))
        ends = (t + 1e-9, t_final + 10.0)
        start = [x, -1e-10]
        options: Any = {"events": rate, "rtol": 1e-10, "atol": 1e-13}
        x = float(solve_ivp(rates, ends, start, **options).y[0, -1])
    return found


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
def test_a_mass_on_a_belt_sticks_and_slips_as_an_integration_from_mode_to_mode(
    compiled: Any,
) -> None:
    c, speed = {"coulomb_friction": 2.0, "static_friction": 5.0, "stribeck_velocity": 0.05}, 0.2
    system = driven(fx.Ramp("pull", slope=-K * speed), start=0.0, **c)
    t_final = 1.5 if compiled == "native" else 1.2
    result = fx.simulate(system, t_final, rtol=1e-8, compiled=compiled)
    times, positions = np.transpose(belt(t_final, c, speed))
    mode = result["oscillator.friction.mode"]
    away = np.flatnonzero(np.diff(mode) < 0.0)
    assert len(away) == len(times) > 1
    np.testing.assert_allclose(result.time[away], times, atol=1e-5)
    np.testing.assert_allclose(result["oscillator.slide.translation"][away], positions, atol=1e-5)


@pytest.mark.full
def test_smooth_friction_comes_to_the_one_that_sticks_as_it_grows_steep() -> None:
    constants = {"coulomb_friction": 2.0, "static_friction": 2.5, "stribeck_velocity": 0.2}
    plant, context = oscillator(**constants)
    times = np.linspace(0.0, 1.5, 30)
    exact = fx.simulate(plant, 1.5, context=context, rtol=1e-9).sample("slide.translation", times)
    errors = []
    for width in (1e-2, 1e-3):
        plant, context = oscillator(smooth=width, **constants)
        result = fx.simulate(plant, 1.5, context=context, method="Rodas5P", rtol=1e-8)
        errors.append(np.max(np.abs(result.sample("slide.translation", times) - exact)))
    assert errors[1] < 0.2 * errors[0]
    assert errors[1] < 1e-3


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
def test_loads_that_jump_or_grow_break_it_away_at_the_static_friction(compiled: Any) -> None:
    constants = {"start": 0.0, "coulomb_friction": 3.0, "static_friction": 5.0}
    grown = driven(fx.Ramp("load", slope=10.0), **constants)
    result = fx.simulate(grown, 0.6, rtol=1e-9, compiled=compiled)
    away = np.flatnonzero(np.diff(result["oscillator.friction.mode"]))
    assert result.time[away] == pytest.approx([0.5], abs=1e-8)
    for load, moves in ((4.9, False), (5.1, True), (-5.1, True)):
        jumped = driven(fx.Step("load", at=0.2, to=load), **constants)
        result = fx.simulate(jumped, 0.3, compiled=compiled)
        x = result["oscillator.slide.translation"]
        assert np.sign(x[-1]) == (np.sign(load) if moves else 0.0)
        assert np.all(x[result.time <= 0.2] == 0.0)
    force = result["oscillator.friction.generalized_force"]
    assert (force[0], force[-1]) == (0.0, 3.0)


def test_a_motion_turns_around_at_once_where_the_load_is_too_great_to_stick() -> None:
    plant, context = oscillator(0.5, 0.0, coulomb_friction=2.0)
    result = fx.simulate(plant, 0.7, context=context, rtol=1e-9)
    mode = result["friction.mode"]
    assert set(mode[1:-1].tolist()) == {-1.0, 1.0}
    plant, context = oscillator(0.01, 0.3, coulomb_friction=2.0)
    result = fx.simulate(plant, 0.7, context=context, rtol=1e-9)
    assert result["friction.mode"][0] == 1.0
    assert result["friction.mode"][-1] == 0.0


def test_several_joints_stick_and_slip_each_by_itself() -> None:
    builder = fx.PlantBuilder("train", gravity=np.zeros(3))
    names, forces = ["first", "second", "third"], [2.0, 3.0, 4.0]
    bodies = [builder.add_body(name, fx.SpatialInertia.point_mass(1.0)) for name in names]
    base: Any = builder.world
    for name, body, force in zip(names, bodies, forces, strict=True):
        joint = fx.PrismaticJoint(f"slide_{name}", base, body, axis=(1, 0, 0), damping=0.0)
        builder.add_joint(joint)
        friction = fx.StickSlipFriction(f"friction_{name}", joint, coulomb_friction=force)
        builder.add_constraint(friction)
        base = body
    builder.add_actuator("push", builder.joint("slide_third"))
    builder.add_energy_ledger()
    plant = builder.build()
    outer = fx.DiagramBuilder("pushed")
    outer.add(plant)
    outer.add(fx.Ramp("ramp", slope=1.0))
    outer.connect("ramp.y", "train.push")
    pushed = outer.build()
    result = fx.simulate(pushed, 9.0, rtol=1e-9)
    broken = {
        name: result.time[np.flatnonzero(result[f"train.friction_{name}.mode"])[0]]
        for name in names
        if np.any(result[f"train.friction_{name}.mode"])
    }
    # A force between the second and the third body: the others feel nothing until they slip.
    assert broken["third"] == pytest.approx(4.0, abs=1e-8)
    assert np.ptp(result["train.ledger.balance"]) < 1e-6
    # By its equations while only the third slips: x'' = (t - 4)/m
    t = 4.5
    assert result.sample("train.slide_third.rate", t) == pytest.approx(0.5 * 0.5**2, abs=1e-8)


def test_a_joint_with_three_velocities_has_friction_along_each() -> None:
    builder = fx.PlantBuilder("plate", gravity=np.zeros(3))
    body = builder.add_body("body", fx.SpatialInertia.solid_box(mass=2.0, size=(0.1, 0.2, 0.3)))
    joint = builder.add_joint(fx.PlanarJoint("joint", builder.world, body, damping=np.zeros(3)))
    builder.add_constraint(
        fx.StickSlipFriction("friction", joint, coulomb_friction=[1.0, 2.0, 0.01])
    )
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_velocities(context, [1.0, 1.0, 1.0])
    result = fx.simulate(plant, 3.0, context=context, rtol=1e-8)
    stuck = [result.time[np.flatnonzero(result["friction.mode"][:, k] == 0.0)[0]] for k in range(3)]
    inertia = plant.calc_mass_matrix(context)[2, 2]
    assert stuck == pytest.approx([2.0, 1.0, inertia / 0.01], rel=1e-6)
    assert np.all(result["joint.v"][-1] == 0.0)


def test_friction_and_a_stop_share_a_joint() -> None:
    builder = fx.PlantBuilder("drawer", gravity=np.zeros(3))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    slide = builder.add_joint(
        fx.PrismaticJoint("slide", builder.world, body, axis=(1, 0, 0), damping=0.0)
    )
    builder.add_constraint(fx.StickSlipFriction("friction", slide, coulomb_friction=1.0))
    builder.add_constraint(fx.RigidStop("stop", slide, restitution=0.1, upper=0.05))
    builder.add_actuator("push", slide)
    plant = builder.build()
    outer = fx.DiagramBuilder("pushed")
    outer.add(plant)
    outer.add(fx.Sine("force", amplitude=6.0, frequency=2.0, phase=np.pi / 2.0))
    outer.connect("force.y", "drawer.push")
    result = fx.simulate(outer.build(), 3.0, rtol=1e-9)
    x, contact = result["drawer.slide.translation"], result["drawer.stop.mode"]
    force = result["drawer.stop.multipliers"]
    assert np.max(x) == pytest.approx(0.05, abs=1e-11)
    assert contact.any()
    assert np.all(force >= -1e-7)
    # It leaves when the force pulls with more than the friction that holds it there.
    leaves = 0.5 * np.arccos(-1.0 / 6.0)
    before, after = leaves - np.array([0.3, 1e-3]), leaves + np.array([1e-2, 0.1])
    assert np.all(result.sample("drawer.slide.translation", before) == 0.05)
    assert np.all(result.sample("drawer.slide.rate", after) < 0.0)


@for_each(
    ("error", "constants", "said"),
    [
        (ValueRefusedError, {"coulomb_friction": -1.0}, "coulomb_friction"),
        (ValueRefusedError, {"coulomb_friction": np.nan}, "coulomb_friction"),
        (ValueRefusedError, {"coulomb_friction": 2.0, "static_friction": 1.0}, "static_friction"),
        (ValueRefusedError, {"coulomb_friction": 2.0, "stribeck_velocity": 0.0}, "stribeck"),
        (ValueRefusedError, {"coulomb_friction": 2.0, "viscous_friction": -1.0}, "viscous"),
        (DeclarationError, {"coulomb_friction": [2.0, 1.0]}, "one number"),
    ],
)
def test_constants_that_mean_nothing_are_refused(error: Any, constants: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        oscillator(**constants)


def test_friction_needs_a_joint_that_moves() -> None:
    weld = fx.WeldJoint("weld", fx.Body("a"), fx.Body("b"))
    with pytest.raises(DeclarationError, match="a joint that moves"):
        fx.StickSlipFriction("friction", weld, coulomb_friction=1.0)


def test_two_joints_of_a_loop_come_to_rest_together() -> None:
    builder = fx.PlantBuilder("press", gravity=(3.0, 0.0, -4.0))
    rod = fx.SpatialInertia.thin_rod(2.0, length=0.2, axis="x")
    crank = builder.add_body("crank", rod, com=(0.1, 0.0, 0.0))
    ram = builder.add_body("ram", fx.SpatialInertia.point_mass(3.0))
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, crank, axis=(0, -1, 0)))
    guide = builder.add_joint(fx.PrismaticJoint("guide", builder.world, ram, axis=(1, 0, 0)))
    tip = builder.add_frame("tip", crank, (0.2, 0.0, 0.0))
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", tip, (0, 0, 0), ram, (0, 0, 0), 0.5)
    )
    builder.add_constraint(
        fx.StickSlipFriction("f_guide", guide, coulomb_friction=6.0, static_friction=8.0)
    )
    builder.add_constraint(fx.StickSlipFriction("f_shaft", shaft, coulomb_friction=0.8))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [1.5, 0.5])
    plant.assemble(context, fixed=shaft)
    plant.set_velocities(context, [6.0, 0.0])
    plant.assemble(context, fixed=shaft)
    result = fx.simulate(plant, 3.0, context=context, rtol=1e-7)
    assert abs(result["guide.rate"][-1]) < 1e-8
    assert abs(result["shaft.rate"][-1]) < 1e-7
    assert np.ptp(result["shaft.angle"][result.time > 2.5]) < 1e-7
    assert np.ptp(result["ledger.balance"]) < 1e-4
