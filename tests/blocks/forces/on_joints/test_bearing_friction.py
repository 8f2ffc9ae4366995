"""Friction by the load on a bearing: textbook statics, own integration, self-locking, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import flexure as fx
from flexure.blocks.multibody.constrained_dynamics import joint_loads
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier

G, MASS, ARM, INERTIA = 10.0, 2.0, 0.3, 0.05
PENDULUM = {"friction": 0.25, "radius": 0.05}


def pendulum(angle: float, rate: float = 0.0, **constants: Any) -> tuple[fx.Plant, fx.Context]:
    """Return a pendulum on a journal, and a context in which it begins."""
    builder = fx.PlantBuilder("swing", gravity=(0.0, 0.0, -G))
    inertia = fx.SpatialInertia.solid_cylinder(MASS, radius=0.1, length=0.2, axis="y")
    bob = builder.add_body("bob", inertia, com=(0.0, 0.0, -ARM))
    pin = fx.RevoluteJoint("pin", builder.world, bob, axis=(0, -1, 0), damping=0.0)
    builder.add_joint(pin)
    builder.add_constraint(fx.BearingFriction("journal", pin, **{**PENDULUM, **constants}))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    pin.angle.set(context, angle)
    pin.rate.set(context, rate)
    return plant, context


def swing(angle: float, factor: float, half_swings: int) -> list[float]:
    """Return the turning points of a pendulum whose friction is a factor of the force on its pin.

    The force has a part along the arm and one across it, which depends on the friction.
    """
    about_pin = 0.5 * MASS * 0.1**2 + MASS * ARM**2
    found = []
    for _ in range(half_swings):
        side = np.sign(angle)

        def rates(_: float, y: Any, side: float = side) -> list[float]:
            along = MASS * (G * np.cos(y[0]) + ARM * y[1] ** 2)

            def miss(torque: float) -> float:
                alpha = (torque - MASS * G * ARM * np.sin(y[0])) / about_pin
                across = MASS * (ARM * alpha + G * np.sin(y[0]))
                return float(torque - side * factor * np.hypot(along, across))

            torque = brentq(miss, -1e3, 1e3, xtol=1e-14)
            return [y[1], (torque - MASS * G * ARM * np.sin(y[0])) / about_pin]

        def turns(_: float, y: Any, side: float = side) -> float:
            return float(y[1] * side + 1e-12)

        turns.terminal, turns.direction = True, 1.0  # type: ignore[attr-defined]
        options: Any = {"events": turns, "rtol": 1e-9, "atol": 1e-11}
        angle = float(solve_ivp(rates, (0.0, 9.0), [angle, -1e-9 * side], **options).y[0, -1])
        found.append(angle)
    return found


@needs_llvmlite
@pytest.mark.parametrize("compiled", by_tier(fast=["native"], full=["native", "python", False]))
def test_a_pendulum_loses_what_it_loses_by_own_integration_and_sticks(compiled: Any) -> None:
    plant, context = pendulum(1.2)
    native = compiled == "native"
    t_final = 9.0 if native else 1.5
    result = fx.simulate(plant, t_final, context=context, rtol=1e-9, compiled=compiled)
    mode, angle = result["journal.mode"], result["pin.angle"]
    turns = np.flatnonzero((mode[1:] != mode[:-1]) & (mode[:-1] != 0.0))
    factor = PENDULUM["friction"] * PENDULUM["radius"]
    expected = swing(1.2, factor, 12 if native else 2)[: len(turns)]
    assert len(turns) >= (10 if native else 2)
    np.testing.assert_allclose(angle[turns], expected, atol=1e-6)
    assert np.ptp(result["ledger.balance"]) < 1e-6
    lost = result["ledger.works"][:, 1]
    assert np.all(np.diff(lost) <= 1e-12)
    if native:  # within the friction circle it rests
        assert mode[-1] == 0.0
        assert abs(np.sin(angle[-1])) <= factor / ARM
    assert (result.statistics.native_steps > 0) == native


def test_a_load_line_through_the_friction_circle_holds_and_one_beside_it_slips() -> None:
    edge = np.arcsin(PENDULUM["friction"] * PENDULUM["radius"] / ARM)
    for part, holds in ((0.999, True), (1.001, False), (-0.999, True), (-1.001, False)):
        plant, context = pendulum(part * edge)
        result = fx.simulate(plant, 0.2, context=context)
        assert (np.ptp(result["pin.angle"]) == 0.0) == holds
        if holds:
            torque = MASS * G * ARM * np.sin(part * edge)
            assert result["journal.generalized_force"][-1] == pytest.approx(torque, rel=1e-9)
    plant, context = pendulum(1.05 * edge, static_friction=0.3)
    assert np.ptp(fx.simulate(plant, 0.2, context=context)["pin.angle"]) == 0.0


def test_the_effort_of_a_drive_includes_the_friction_by_its_load() -> None:
    builder = fx.PlantBuilder("driven", gravity=(0.0, 0.0, -G))
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(MASS), com=(0.0, 0.0, -ARM))
    pin = builder.add_joint(fx.RevoluteJoint("pin", builder.world, bob, axis=(0, -1, 0)))
    builder.add_constraint(fx.BearingFriction("journal", pin, friction=0.25, radius=0.05))
    builder.add_constraint(fx.constraints.PrescribedMotion("drive", pin))
    plant = builder.build()
    for q, rate, alpha in ((0.5, 2.0, 3.0), (1.0, -1.0, 0.0)):
        context = plant.create_default_context()
        pin.angle.set(context, q)
        pin.rate.set(context, rate)
        plant.input_port("drive").fix(context, [q, rate, alpha])
        across, along = ARM * alpha + G * np.sin(q), ARM * rate**2 + G * np.cos(q)
        friction = -np.sign(rate) * 0.25 * 0.05 * MASS * np.hypot(across, along)
        effort = MASS * ARM * across - friction
        assert plant.find("drive.effort").eval(context) == pytest.approx(effort, rel=1e-9)


def test_moments_across_a_journal_and_its_collar_rub() -> None:
    """A turntable with an eccentric weight: two bearings carry its moment, a collar its weight."""
    builder, b, e = fx.PlantBuilder("table", gravity=(0.0, 0.0, -G)), 0.08, 0.2
    disk = fx.SpatialInertia.solid_cylinder(MASS, radius=0.1, length=0.02, axis="z")
    table = builder.add_body("table", disk, com=(e, 0.0, 0.0))
    axle = builder.add_joint(
        fx.RevoluteJoint("axle", builder.world, table, axis=(0, 0, 1), damping=0.0)
    )
    builder.add_constraint(
        fx.BearingFriction("rub", axle, friction=0.1, radius=0.01, length=b, thrust_radius=0.02)
    )
    plant = builder.build()
    context = plant.create_default_context()
    axle.rate.set(context, 3.0)
    plant_mode = fx.simulate(plant, 1e-6, context=context)
    # Slowly turning, the moment m g e is shared by forces m g e/b; the spin adds m e w^2/2 across.
    about = 0.5 * MASS * 0.1**2 + MASS * e**2
    torque: Any = 0.0
    for _ in range(50):
        alpha = torque / about
        radial = np.array([-MASS * e * 9.0, MASS * e * alpha])
        pair = [0.5 * radial + sign * np.array([MASS * G * e / b, 0.0]) for sign in (1.0, -1.0)]
        torque = -0.1 * (0.01 * sum(map(np.linalg.norm, pair)) + 0.02 * MASS * G)
    assert plant_mode["rub.generalized_force"][0] == pytest.approx(torque, rel=1e-9)


def slider(slope: float, **constants: Any) -> tuple[fx.Plant, fx.PrismaticJoint]:
    """Return a slider on a guide with a slope in x, whose mass is 0.2 m beside it."""
    weight = (G * np.sin(slope), 0.0, -G * np.cos(slope))
    builder = fx.PlantBuilder("guide", gravity=weight)
    inertia = fx.SpatialInertia.solid_sphere(MASS, radius=0.05)
    block = builder.add_body("block", inertia, com=(0.25, 0.0, 0.2))
    rail = fx.PrismaticJoint("rail", builder.world, block, axis=(1, 0, 0), damping=0.0)
    builder.add_joint(rail)
    builder.add_constraint(fx.BearingFriction("rub", rail, **constants))
    builder.add_energy_ledger()
    return builder.build(), rail


@pytest.mark.parametrize("length", [5.0, 0.3])
def test_a_slider_accelerates_as_two_bearings_by_hand(length: float) -> None:
    """They carry N = m g cos between them, or ± M/b by the moment of an eccentric mass."""
    mu, slope, a = 0.3, 0.6, 0.2
    plant, rail = slider(slope, friction=mu, length=length)
    context = plant.create_default_context()
    rail.rate.set(context, 2.0)
    result = fx.simulate(plant, 1.0, context=context)
    normal, pull = G * np.cos(slope), G * np.sin(slope)

    def miss(x: float) -> float:
        moment = 0.25 * normal + a * (pull - x)
        return float(pull - mu * max(normal, 2.0 * moment / length) - x)

    expected = brentq(miss, -99.0, 99.0)
    travel = 2.0 + 0.5 * expected
    assert result["rail.translation"][-1] == pytest.approx(travel, rel=1e-6)
    assert np.ptp(result["ledger.balance"]) < 1e-6


def test_a_bracket_on_a_post_holds_itself_where_the_textbook_says() -> None:
    """It needs 2 μ a > b. Otherwise it falls freely, as then nothing loads the bearing."""
    a = 0.2
    for length, holds in ((0.999 * 2.0 * 0.4 * a, True), (1.001 * 2.0 * 0.4 * a, False)):
        plant, _ = slider(np.pi / 2.0, friction=0.4, length=length)
        result = fx.simulate(plant, 0.5)
        if holds:
            assert np.ptp(result["rail.translation"]) == 0.0
            assert result["rub.generalized_force"][-1] == pytest.approx(-MASS * G, rel=1e-9)
        else:
            assert result["rail.translation"][-1] == pytest.approx(0.5 * G * 0.25, rel=1e-6)


def test_a_slip_that_locks_itself_is_refused_by_name() -> None:
    plant, rail = slider(np.pi / 2.0, friction=0.4, length=0.1)
    context = plant.create_default_context()
    rail.rate.set(context, 1.0)
    with pytest.raises(EvaluationError, match=r"friction of 'rub'.*1\.6 times.*Painlev"):
        fx.simulate(plant, 0.1, context=context)


def test_frictions_whose_equations_are_singular_are_refused_by_name() -> None:
    """The first bearing is at the limit by its own load, where elimination gives NaN."""
    changes = [[np.array([size, 0.0, 0.0])] for size in (1.0, 0.1)]
    loads = [([np.array([3.0, 0.0, 0.0])], [changes[k], changes[1 - k]]) for k in (0, 1)]
    with np.errstate(all="ignore"):
        assert np.isfinite(joint_loads._solution(["a", "b"], np.full(2, 0.5), loads)).all()
        with pytest.raises(EvaluationError, match=r"friction of 'a', 'b'.*1\.1 times"):
            joint_loads._solution(["a", "b"], np.ones(2), loads)


def test_a_guide_carries_a_moment_about_its_axis_by_its_radius() -> None:
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, -G))
    block = builder.add_body("block", fx.SpatialInertia.point_mass(MASS), com=(0.0, 0.3, 0.0))
    rail = fx.PrismaticJoint("rail", builder.world, block, axis=(1, 0, 0), damping=0.0)
    builder.add_joint(rail)
    builder.add_constraint(fx.BearingFriction("rub", rail, friction=0.1, radius=0.05))
    plant = builder.build()
    context = plant.create_default_context()
    rail.rate.set(context, -1.0)
    result = fx.simulate(plant, 0.01, context=context)
    expected = 0.1 * MASS * G * (1.0 + 0.3 / 0.05)
    assert result["rub.load"][0] == pytest.approx(10.0 * expected, rel=1e-12)
    assert result["rub.generalized_force"][0] == pytest.approx(expected, rel=1e-12)


def test_two_bearings_that_load_each_other_are_solved_together() -> None:
    """Three arms in a row that turn fast: each friction is that of the force on its own pin."""
    builder = fx.PlantBuilder("arms", gravity=(0.0, 0.0, -G))
    base, joints = builder.world, []
    for k in range(3):
        rod = fx.SpatialInertia.thin_rod(1.0 + k, length=0.4, axis="x")
        arm = builder.add_body(f"arm{k}", rod, com=(0.2, 0.0, 0.0))
        where = base if k == 0 else builder.add_frame(f"end{k}", base, (0.4, 0.0, 0.0))
        joints.append(
            builder.add_joint(fx.RevoluteJoint(f"pin{k}", where, arm, axis=(0, -1, 0), damping=0.0))
        )
        base = arm
    for k, joint in enumerate(joints):
        builder.add_constraint(fx.BearingFriction(f"rub{k}", joint, friction=0.5, radius=0.06))
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [0.3, -0.5, 0.8])
    plant.set_velocities(context, [2.0, -3.0, 1.0])
    result = fx.simulate(plant, 1e-5, context=context)
    rates = np.array([2.0, -3.0, 1.0])
    for k in range(3):
        reaction = result[f"pin{k}.reaction"][0]
        force = 0.5 * 0.06 * np.linalg.norm(reaction[[3, 5]])
        torque = result[f"rub{k}.generalized_force"][0]
        assert torque == pytest.approx(-np.sign(rates[k]) * force, rel=1e-9)
        assert -reaction[1] == pytest.approx(torque, rel=1e-9)


def test_a_loop_accelerates_as_its_bodies_by_newton_and_euler() -> None:
    """A slider-crank with friction in two pins and the guide, whose forces are unknowns here.

    Frictions are iterated until they are those of the forces that they bring about.
    """
    m, length, mu, r = (1.0, 1.5, 2.0), (0.2, 0.5), (0.3, 0.2, 0.25), (0.03, 0.02)
    builder = fx.PlantBuilder("crank", gravity=(0.0, 0.0, -G))
    rods = [
        builder.add_body(
            name,
            fx.SpatialInertia.thin_rod(m[k], length=length[k], axis="x"),
            com=(0.5 * length[k], 0.0, 0.0),
        )
        for k, name in enumerate(("crank", "rod"))
    ]
    slider = builder.add_body("slider", fx.SpatialInertia.solid_sphere(m[2], radius=0.05))
    at = builder.world, builder.add_frame("tip", rods[0], (length[0], 0.0, 0.0))
    axis = (0.0, -1.0, 0.0)
    joints: list[Any] = [
        builder.add_joint(fx.RevoluteJoint(f"pin{k}", at[k], rods[k], axis, damping=0.0))
        for k in range(2)
    ]
    guide = fx.PrismaticJoint("guide", builder.world, slider, (1, 0, 0), damping=0.0)
    joints.append(builder.add_joint(guide))
    end = builder.add_frame("end", rods[1], (length[1], 0.0, 0.0))
    builder.add_loop_joint(fx.RevoluteJoint("wrist", end, slider, axis))
    for k, joint in enumerate(joints):
        options: Any = {"radius": r[k]} if k < 2 else {}
        builder.add_constraint(fx.BearingFriction(f"rub{k}", joint, friction=mu[k], **options))
    plant = builder.build()
    for angle, rate in ((0.7, 8.0), (2.0, -5.0), (-1.1, 3.0)):
        bend = np.arcsin(-length[0] * np.sin(angle) / length[1])
        turning = -length[0] * np.cos(angle) * rate / (length[1] * np.cos(bend))
        angles, rates = np.array([angle, bend]), np.array([rate, turning])
        x = length[0] * np.cos(angle) + length[1] * np.cos(bend)
        v = -length[0] * np.sin(angle) * rate - length[1] * np.sin(bend) * turning
        context = plant.create_default_context()
        plant.set_positions(context, [angle, bend - angle, x])
        plant.set_velocities(context, [rate, turning - rate, v])
        along = [np.array([np.cos(a), np.sin(a)]) for a in angles]
        across = [np.array([-np.sin(a), np.cos(a)]) for a in angles]

        def forces(frictions: Any, c: Any = (along, across, rates)) -> Any:
            """Solve for 3 accelerations, the forces in 3 pins (x, z) and that of the guide (z)."""
            along, across, rates = c
            A, b = np.zeros((10, 10)), np.zeros(10)
            for row in range(2):  # forces on crank, rod and slider; pins push the outer bodies
                A[row, 0] = m[0] * 0.5 * length[0] * across[0][row]
                A[row, 3 + row], A[row, 5 + row] = -1.0, 1.0
                b[row] = m[0] * 0.5 * length[0] * rates[0] ** 2 * along[0][row]
                A[2 + row, 0] = m[1] * length[0] * across[0][row]
                A[2 + row, 1] = m[1] * 0.5 * length[1] * across[1][row]
                A[2 + row, 5 + row], A[2 + row, 7 + row] = -1.0, 1.0
                b[2 + row] = m[1] * (
                    length[0] * rates[0] ** 2 * along[0][row]
                    + 0.5 * length[1] * rates[1] ** 2 * along[1][row]
                )
                A[4 + row, 7 + row] = -1.0
            b[1] -= m[0] * G
            b[3] -= m[1] * G
            A[4, 2], A[5, 9], b[4], b[5] = m[2], -1.0, frictions[2], -m[2] * G
            for k in range(2):  # moments about the centers of both rods
                A[6 + k, k] = m[k] * length[k] ** 2 / 12.0
                for row, sign in ((0, -1.0), (1, 1.0)):
                    arm = 0.5 * length[k] * along[k][1 - row]
                    # the inner force at -arm and the opposite of the outer one at +arm
                    A[6 + k, 3 + 2 * k + row] += sign * arm
                    A[6 + k, 5 + 2 * k + row] += sign * arm
            b[6], b[7] = frictions[0] - frictions[1], frictions[1]
            for row in range(2):  # the wrist is where the slider is
                A[8 + row, 0] = length[0] * across[0][row]
                A[8 + row, 1] = length[1] * across[1][row]
                A[8 + row, 2] = -1.0 if row == 0 else 0.0
                b[8 + row] = sum(length[k] * rates[k] ** 2 * along[k][row] for k in range(2))
            return np.linalg.solve(A, b)

        slips = np.sign([rate, turning - rate, v])
        frictions = np.zeros(3)
        for _ in range(200):
            found = forces(frictions)
            loads = r[0] * np.hypot(*found[3:5]), r[1] * np.hypot(*found[5:7]), abs(found[9])
            frictions = -slips * np.array(mu) * loads
        expected = [found[0], found[1] - found[0], found[2]]
        np.testing.assert_allclose(plant.calc_vdot(context), expected, rtol=1e-8)
        seen = [plant.find(f"rub{k}.generalized_force").eval(context)[0] for k in range(3)]
        np.testing.assert_allclose(seen, frictions, rtol=1e-8)


def test_what_means_nothing_is_refused() -> None:
    builder = fx.PlantBuilder("rig")
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    ball = fx.BallRpyJoint("ball", builder.world, body)
    pin = fx.RevoluteJoint("pin", builder.world, body, axis=(0, 1, 0))
    rail = fx.PrismaticJoint("rail", builder.world, body, axis=(0, 1, 0))
    with pytest.raises(DeclarationError, match="a revolute or prismatic joint"):
        fx.BearingFriction("rub", ball, friction=0.1, radius=0.1)
    with pytest.raises(DeclarationError, match="a radius if the joint turns"):
        fx.BearingFriction("rub", pin, friction=0.1)
    with pytest.raises(DeclarationError, match="no thrust_radius if it slides"):
        fx.BearingFriction("rub", rail, friction=0.1, thrust_radius=0.1)
    with pytest.raises(fx.errors.ValueRefusedError, match="static_friction"):
        fx.BearingFriction("rub", rail, friction=0.2, static_friction=0.1)


@needs_llvmlite
@pytest.mark.parametrize("follows_load", [True, False])
def test_a_gradient_passes_where_a_slip_begins(follows_load: bool) -> None:
    """A force f = r t moves a block from t = c/r on to v = r (T - c/r)²/(2 m)."""
    plant_builder, mu, r, t_final = fx.PlantBuilder("guide", gravity=(0.0, 0.0, -G)), 0.3, 8.0, 1.2
    block = plant_builder.add_body("block", fx.SpatialInertia.point_mass(MASS))
    rail = fx.PrismaticJoint("rail", plant_builder.world, block, axis=(1, 0, 0), damping=0.0)
    plant_builder.add_joint(rail)
    c = mu * MASS * G
    friction: Any = fx.StickSlipFriction("rub", rail, coulomb_friction=c)
    if follows_load:
        friction = fx.BearingFriction("rub", rail, friction=mu)
    plant_builder.add_constraint(friction)
    builder = fx.DiagramBuilder("pulled")
    builder.add_all(plant_builder.build(), fx.Ramp("pull", slope=r))
    builder.connect("pull.y", "guide.generalized_force")
    system = builder.build()
    way = f"guide.tree.rub_{'' if follows_load else 'coulomb_'}friction"
    found = fx.gradient(system, fx.metrics.final("guide.rail.rate"), way, t_final)
    slope = -(t_final - c / r) / MASS * (MASS * G if follows_load else 1.0)
    assert found.value == pytest.approx(0.5 * r * (t_final - c / r) ** 2 / MASS, rel=1e-6)
    assert found[way].item() == pytest.approx(slope, rel=1e-6)
