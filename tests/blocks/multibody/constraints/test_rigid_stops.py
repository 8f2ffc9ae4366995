"""Rigid stops: bounces and rests in closed form, impulses by other ways, release, and refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from flexure.constraints import DistanceConstraint, PrescribedMotion
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    ValueRefusedError,
    ZenoError,
)
from tests.support.tiers import for_each

G = 10.0


def ball(height: float = 5.0, **stop: Any) -> tuple[fx.Plant, fx.Context]:
    """Return a mass above a floor, and a context in which it is at a height."""
    builder = fx.PlantBuilder("ball", gravity=(0.0, 0.0, -G))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    rail = fx.PrismaticJoint("rail", builder.world, body, axis=(0, 0, 1), damping=0.0)
    builder.add_joint(rail)
    builder.add_constraint(fx.RigidStop("floor", rail, **{"lower": 0.0, **stop}))
    builder.add_actuator("lift", rail)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    rail.translation.set(context, height)
    return plant, context


def arm(gravity: Any = (0.0, 0.0, -9.81), **stops: Any) -> tuple[fx.Plant, fx.Context]:
    """Return a double pendulum with stops on one joint or on both, hanging down."""
    builder = fx.PlantBuilder("arm", gravity=gravity)
    rod = fx.SpatialInertia.thin_rod(1.0, length=0.5)
    upper, lower = (builder.add_body(name, rod, com=(0, 0, -0.25)) for name in ("upper", "lower"))
    elbow = builder.add_frame("elbow", upper, (0.0, 0.0, -0.5))
    joints = {
        "first": fx.RevoluteJoint("first", builder.world, upper, axis=(0, 1, 0)),
        "second": fx.RevoluteJoint("second", elbow, lower, axis=(0, 1, 0)),
    }
    for name, joint in joints.items():
        builder.add_joint(joint)
        if name in stops:
            builder.add_constraint(fx.RigidStop(f"stop_{name}", joint, **stops[name]))
    builder.add_energy_ledger()
    plant = builder.build()
    return plant, plant.create_default_context()


def impacts(result: fx.results.SimulationResult, stop: str) -> np.ndarray:
    """Return where in a result impacts of a stop take place: the last sample before each."""
    return np.flatnonzero(np.diff(result[f"{stop}.dissipated_energy"]) > 0.0)


def begun(plant: fx.Plant, context: fx.Context) -> fx.Context:
    """Return a context with which a simulation begins."""
    simulator = fx.Simulator(plant, context)
    simulator.initialize()
    return simulator.context


def struck(
    M: np.ndarray, J: np.ndarray, v: np.ndarray, e: np.ndarray, held: np.ndarray
) -> np.ndarray:
    """Return the velocities after impacts along the rows of J, held rows being equalities.

    All choices of rows that push are tried; the one that fits all conditions is the answer.
    """
    inverse = np.linalg.inv(M)
    one_sided = np.flatnonzero(~held)
    for count in range(len(one_sided), -1, -1):
        for chosen in itertools.combinations(one_sided, count):
            rows = np.array([*np.flatnonzero(held), *chosen], dtype=int)
            if not len(rows):
                return v
            A = J[rows] @ inverse @ J[rows].T
            wanted = -(1.0 + e[rows]) * (J[rows] @ v)
            impulse = np.linalg.lstsq(A, wanted, rcond=1e-12)[0]
            after: np.ndarray = v + inverse @ J[rows].T @ impulse
            rates = J @ after + e * (J @ v)
            pushes = impulse[~held[rows]]
            if np.all(pushes >= 0.0) and np.all(rates[one_sided] >= -1e-9):
                return after
    raise AssertionError("no choice fits")


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
def test_a_ball_bounces_at_the_times_and_heights_of_the_closed_form(compiled: Any) -> None:
    plant, context = ball(restitution=0.5, rest_velocity=0.01)
    result = fx.simulate(plant, 4.0, context=context, compiled=compiled)
    at = impacts(result, "floor")
    first = np.sqrt(2.0 * 5.0 / G)
    hops = 2.0 * first * 0.5 ** np.arange(1, 10)
    times = first + np.concatenate([[0.0], np.cumsum(hops)])
    np.testing.assert_allclose(result.time[at], times[: len(at)], rtol=1e-10)
    speeds = 10.0 * 0.5 ** np.arange(len(at))
    np.testing.assert_allclose(result["rail.rate"][at], -speeds, rtol=1e-8)
    np.testing.assert_allclose(result["rail.rate"][at + 1][:-1], 0.5 * speeds[:-1], rtol=1e-8)
    assert len(at) == 10  # the next rebound would be slower than 0.01 m/s
    assert result.time[at[-1]] == pytest.approx(3.0 * first, rel=2e-3)  # the sum of all times
    rest = result.time > result.time[at[-1]]
    assert np.all(result["rail.translation"][rest] == 0.0)
    assert np.all(result["rail.rate"][rest] == 0.0)
    np.testing.assert_allclose(result["floor.multipliers"][rest], 20.0)
    assert result["floor.dissipated_energy"][-1] == pytest.approx(2.0 * G * 5.0)
    assert np.ptp(result["ledger.balance"]) < 1e-9
    assert result["ledger.works"][-1] == pytest.approx([0.0, 0.0, -100.0])
    if compiled == "native":
        labels = result.plot_energy().axes[0].get_legend_handles_labels()[1]
        assert "lost in floor" in labels


def test_nothing_is_lost_without_losses_and_nothing_rebounds_without_restitution() -> None:
    plant, context = ball(restitution=1.0)
    result = fx.simulate(plant, 38.0, context=context)
    assert result.statistics.witness_events == 19
    assert result["rail.translation"][-1] == pytest.approx(5.0)
    assert result["floor.dissipated_energy"][-1] == 0.0
    plant, context = ball(restitution=0.0)
    result = fx.simulate(plant, 2.0, context=context)
    assert result.statistics.witness_events == 1
    assert result["rail.translation"][-1] == 0.0
    assert result["floor.multipliers"][-1] == pytest.approx(20.0, rel=1e-14)


def test_contact_lets_go_when_the_load_pulls_and_begins_again() -> None:
    plant, _ = ball(0.0, restitution=0.0)
    builder = fx.DiagramBuilder("lifted")
    builder.add(plant)
    builder.add(fx.Sine("force", amplitude=40.0, frequency=np.pi))
    builder.connect("force.y", "ball.lift")
    lifted = builder.build()
    result = fx.simulate(lifted, 2.0, rtol=1e-9)
    free = result.time[np.flatnonzero(np.diff(result["ball.floor.mode"]) < 0.0)]
    assert free == pytest.approx([1.0 / 6.0], abs=1e-7)  # 40 sin(π t) = 20
    t = np.linspace(free[0], 0.9, 20)
    s, w = t - free[0], np.pi
    speed = 20.0 / w * (np.cos(w * free[0]) - np.cos(w * t)) - G * s
    height = 20.0 / w * np.cos(w * free[0]) * s
    height -= 20.0 / w**2 * (np.sin(w * t) - np.sin(w * free[0])) + 0.5 * G * s**2
    np.testing.assert_allclose(result.sample("ball.rail.rate", t), speed, atol=1e-6)
    np.testing.assert_allclose(result.sample("ball.rail.translation", t), height, atol=1e-6)
    assert (result["ball.rail.translation"][-1], result["ball.floor.mode"][-1]) == (0.0, 1.0)


@pytest.mark.parametrize("compiled", ["native", "python"])
def test_contact_follows_a_load_that_jumps(compiled: Any) -> None:
    plant, _ = ball(restitution=0.0)
    builder = fx.DiagramBuilder("lifted")
    builder.add(plant)
    builder.add(fx.Square("force", amplitude=30.0, period=2.0))
    builder.connect("force.y", "ball.lift")
    lifted = builder.build()
    context = lifted.create_default_context()
    result = fx.simulate(lifted, 3.0, context=context, compiled=compiled)
    assert result.sample("ball.rail.rate", [0.5, 0.99]) == pytest.approx([2.5, 4.95])
    assert result["ball.rail.translation"][-1] == pytest.approx(2.5)
    assert result["ball.floor.mode"][-1] == 0.0
    assert result.sample("ball.rail.translation", 1.9) == 0.0


def test_an_impact_of_a_double_pendulum_has_the_impulse_of_its_mass_matrix() -> None:
    e = 0.6
    plant, context = arm(second={"restitution": e, "lower": -0.4, "upper": 0.5})
    plant.set_positions(context, [-0.9, 0.0])
    result = fx.simulate(plant, 3.0, context=context, rtol=1e-9)
    at = impacts(result, "stop_second")
    assert len(at) > 2
    for k in at:
        q = [result["first.angle"][k], result["second.angle"][k]]
        before, after = (
            np.array([result["first.rate"][i], result["second.rate"][i]]) for i in (k, k + 1)
        )
        plant.set_positions(context, q)
        M = plant.calc_mass_matrix(context)
        impulse = -(1.0 + e) * before[1] / np.linalg.inv(M)[1, 1]
        np.testing.assert_allclose(after, before + np.linalg.solve(M, [0.0, impulse]), rtol=1e-9)
        lost = 0.5 * before @ M @ before - 0.5 * after @ M @ after
        assert np.diff(result["stop_second.dissipated_energy"])[k] == pytest.approx(lost)
    assert np.ptp(result["ledger.balance"]) < 1e-7


def test_stops_that_are_struck_at_once_get_the_impulses_that_all_conditions_allow() -> None:
    rng, e = np.random.default_rng(3), np.array([0.3, 0.8])
    plant, context = arm(
        first={"restitution": e[0], "lower": 0.0, "rest_velocity": 0.0},
        second={"restitution": e[1], "upper": 0.0, "rest_velocity": 0.0},
    )
    J, nothing = np.diag([1.0, -1.0]), np.zeros(2, dtype=bool)
    released: Any = 0
    for _ in range(25):
        v = rng.normal(size=2)
        plant.set_velocities(context, v)
        touched = J @ v < 0.0
        if not touched.any():
            continue
        M = plant.calc_mass_matrix(context)
        expected = struck(M, J[touched], v, e[touched], nothing[touched])
        while np.any(J @ expected < -1e-12):  # what an impact sends against the other stop
            again = J @ expected < 0.0
            expected = struck(M, J[again], expected, e[again], nothing[again])
        found = plant.get_velocities(begun(plant, context))
        np.testing.assert_allclose(found, expected, atol=1e-12)
        released += np.any(np.abs(J @ found + e * (J @ v))[touched] > 1e-9)
    assert released > 0  # a stop that another one moves away from the joint


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
def test_an_impact_in_a_closed_loop_moves_what_the_loop_lets_move(compiled: Any) -> None:
    e, builder = 0.5, fx.PlantBuilder("press", gravity=(0.0, 0.0, 0.0))
    crank = builder.add_body(
        "crank", fx.SpatialInertia.thin_rod(2.0, length=0.2, axis="x"), com=(0.1, 0, 0)
    )
    ram = builder.add_body("ram", fx.SpatialInertia.point_mass(3.0))
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, crank, axis=(0, -1, 0)))
    guide = builder.add_joint(fx.PrismaticJoint("guide", builder.world, ram, axis=(1, 0, 0)))
    tip = builder.add_frame("tip", crank, (0.2, 0.0, 0.0))
    builder.add_constraint(DistanceConstraint("rod", tip, (0, 0, 0), ram, (0, 0, 0), 0.5))
    builder.add_constraint(fx.RigidStop("stop", guide, restitution=e, upper=0.65))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [1.5, 0.5])
    plant.assemble(context, fixed=shaft)
    plant.set_velocities(context, [-6.0, 0.0])
    plant.assemble(context, fixed=shaft)
    result = fx.simulate(plant, 0.4, context=context, rtol=1e-9, compiled=compiled)
    k = int(impacts(result, "stop")[0])
    plant.set_positions(context, [result["shaft.angle"][k], result["guide.translation"][k]])
    before, after = (
        np.array([result["shaft.rate"][i], result["guide.rate"][i]]) for i in (k, k + 1)
    )
    M, loop = plant.calc_mass_matrix(context), calc_equations(plant.tree, context).J[:1]
    J, held = np.vstack([loop, [0.0, -1.0]]), np.array([True, False])
    np.testing.assert_allclose(after, struck(M, J, before, np.array([-1.0, e]), held), rtol=1e-6)
    assert abs(loop @ after)[0] < 1e-7
    assert abs(after[0] - before[0]) > 1.0
    assert np.ptp(result["ledger.balance"]) < 1e-6


def test_a_pendulum_comes_to_rest_against_a_stop() -> None:
    plant, context = arm(
        first={"restitution": 0.4, "lower": -2.0, "upper": 0.1},
        second={"restitution": 0.0, "lower": 0.0, "upper": 1.0},
    )
    plant.set_positions(context, [-0.5, 0.0])
    result = fx.simulate(plant, 20.0, context=context, rtol=1e-8)
    assert np.ptp(result["ledger.balance"]) < 1e-6
    plant, context = arm(gravity=(3.0, 0.0, -9.0), first={"restitution": 0.4, "lower": 0.2})
    plant.joint("second").lock(context)
    plant.set_positions(context, [0.9, 0.0])
    result = fx.simulate(plant, 10.0, context=context, rtol=1e-8)
    assert result["first.angle"][-1] == 0.2
    weight = 2.0 * np.cross([3.0, 0.0, -9.0], 0.5 * np.array([np.sin(0.2), 0.0, np.cos(0.2)]))
    assert result["stop_first.multipliers"][-1] == pytest.approx(abs(weight[1]))


def test_a_compliant_stop_comes_to_the_rigid_one_as_it_grows_stiff() -> None:
    plant, context = ball(restitution=1.0)
    rigid = fx.simulate(plant, 3.5, context=context)["rail.translation"][-1]
    errors = []
    for stiffness in (1e4, 1e6):
        builder = fx.PlantBuilder("ball", gravity=(0.0, 0.0, -G))
        body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
        rail = fx.PrismaticJoint("rail", builder.world, body, axis=(0, 0, 1), damping=0.0)
        builder.add_joint(rail)
        builder.add_force_element(
            fx.JointStop("floor", rail, stiffness=stiffness, damping=0.0, lower=0.0)
        )
        soft = builder.build()
        context = soft.create_default_context()
        rail.translation.set(context, 5.0)
        result = fx.simulate(soft, 3.5, context=context, rtol=1e-9)
        errors.append(abs(result["rail.translation"][-1] - rigid))
    assert errors[1] == pytest.approx(0.1 * errors[0], rel=0.1)  # as the time in contact, 1/√k


def test_a_start_on_a_stop_rests_rebounds_or_leaves() -> None:
    plant, context = ball(0.0, restitution=0.5)
    assert fx.simulate(plant, 1.0, context=context)["rail.translation"][-1] == 0.0
    rail = plant.joint("rail")
    rail.velocities.set(context, [-4.0])
    result = fx.simulate(plant, 0.1, context=context)
    assert result["rail.translation"][-1] == pytest.approx(0.2 - 0.05)
    assert result["floor.dissipated_energy"][0] == pytest.approx(0.75 * 16.0)
    rail.velocities.set(context, [2.0])
    assert fx.simulate(plant, 0.1, context=context)["rail.translation"][-1] == pytest.approx(0.15)


def test_a_start_beyond_a_limit_is_refused_by_its_name() -> None:
    plant, context = ball(-0.1, restitution=0.5)
    said = "'rail' at -0.1, beyond the lower limit 0 of stop 'floor'"
    with pytest.raises(EvaluationError, match=said):
        fx.simulate(plant, 1.0, context=context)


def test_rebounds_that_never_end_are_reported() -> None:
    plant, context = ball(restitution=0.5, rest_velocity=0.0)
    with pytest.raises(ZenoError, match=r"'tree\.floor' closer and closer"):
        fx.simulate(plant, 4.0, context=context)


@for_each(
    ("error", "options", "said"),
    [
        (ValueRefusedError, {"restitution": 1.2}, "restitution"),
        (ValueRefusedError, {"restitution": -0.1}, "restitution"),
        (ValueRefusedError, {"restitution": np.nan}, "restitution"),
        (ValueRefusedError, {"restitution": 0.5, "rest_velocity": -1.0}, "rest_velocity"),
        (DeclarationError, {"restitution": [0.5, 0.5]}, "one number"),
        (DeclarationError, {"restitution": 0.5, "upper": -1.0}, "lower < upper"),
        (DeclarationError, {"restitution": 0.5, "lower": -np.inf}, "a limit that is finite"),
        (ValueRefusedError, {"restitution": 0.5, "upper": np.nan}, "upper"),
    ],
)
def test_stops_that_mean_nothing_are_refused(error: Any, options: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        ball(**options)


def test_stops_of_joints_without_rates_of_positions_and_of_contexts_are_refused() -> None:
    builder = fx.PlantBuilder()
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    joint = builder.add_joint(fx.BallQuaternionJoint("ball", builder.world, body))
    with pytest.raises(DeclarationError, match="velocities are the rates"):
        fx.RigidStop("stop", joint, restitution=0.5, lower=0.0)
    plant, context = ball(restitution=0.5)
    restitution, upper = plant.find("tree.floor_restitution"), plant.find("tree.floor_upper")
    with pytest.raises(ValueRefusedError, match=r"1\.5"):
        restitution.set(context, 1.5)
    with pytest.raises(ValueRefusedError, match="without one"):
        upper.set(context, 3.0)


def test_contacts_and_what_sticks_do_not_hinder_assembling() -> None:
    builder = fx.PlantBuilder("press", gravity=(0.0, 0.0, 0.0))
    crank = builder.add_body("crank", fx.SpatialInertia.thin_rod(2.0, length=0.2, axis="x"))
    ram = builder.add_body("ram", fx.SpatialInertia.point_mass(3.0))
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, crank, axis=(0, -1, 0)))
    guide = builder.add_joint(fx.PrismaticJoint("guide", builder.world, ram, axis=(1, 0, 0)))
    tip = builder.add_frame("tip", crank, (0.2, 0.0, 0.0))
    builder.add_constraint(DistanceConstraint("rod", tip, (0, 0, 0), ram, (0, 0, 0), 0.5))
    builder.add_constraint(fx.RigidStop("stop", guide, restitution=0.5, upper=0.65, lower=0.3))
    builder.add_constraint(fx.StickSlipFriction("seal", guide, coulomb_friction=1.0))
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [1.5, 0.65])
    plant.find("tree.stop_modes").set(context, [0.0, 1.0])
    closure = plant.assemble(context, fixed=shaft)
    assert (closure.mobility, closure.num_redundant) == (0, 0)
    shaft.rate.set(context, 2.0)
    plant.assemble(context, fixed=shaft)
    assert abs(plant.get_velocities(context)[1]) > 0.1


def row_of_balls(impacts: Any, e: float, masses: Any = (1.0, 1.0, 1.0)) -> tuple[Any, Any]:
    """Return velocities of balls in a row after the first one has arrived with 1, and losses."""
    builder = fx.PlantBuilder("row", gravity=(0, 0, 0), impacts=impacts)
    before = builder.world
    for k, mass in enumerate(masses):
        body = builder.add_body(f"ball{k}", fx.SpatialInertia.point_mass(mass))
        gap = builder.add_joint(fx.PrismaticJoint(f"gap{k}", before, body, axis=(1, 0, 0)))
        if k:
            builder.add_constraint(fx.RigidStop(f"stop{k}", gap, restitution=e, lower=0.0))
        before = body
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.joint("gap1").positions.set(context, [0.1])
    plant.joint("gap0").velocities.set(context, [1.0])
    plant.joint("gap1").velocities.set(context, [-1.0])
    result = fx.simulate(plant, 0.2, context=context)
    v = np.cumsum([result[f"gap{k}.rate"][-1] for k in range(len(masses))])
    lost = sum(result[f"stop{k}.dissipated_energy"][-1] for k in range(1, len(masses)))
    np.testing.assert_allclose(0.5 * np.dot(masses, v**2) + lost, 0.5 * masses[0], rtol=1e-9)
    assert lost >= -1e-12
    return v, plant


def test_the_law_of_impacts_in_a_row_of_balls_is_chosen() -> None:
    for impacts, e, expected in (
        ("sequential", 1.0, [0.0, 0.0, 1.0]),  # Newton's cradle
        ("simultaneous", 1.0, [-1 / 3, 2 / 3, 2 / 3]),
        ("sequential", 0.5, [0.203125, 0.234375, 0.5625]),  # three blows, by hand
        ("simultaneous", 0.5, [0.0, 0.5, 0.5]),
    ):
        np.testing.assert_allclose(row_of_balls(impacts, e)[0], expected, atol=1e-9)
    found, _ = row_of_balls("sequential", 1.0, (3.0, 2.0, 1.0, 1.0, 1.0))
    v = np.array([1.0, 0.0, 0.0, 0.0, 0.0])  # blow after blow, by momentum and energy
    m = np.array([3.0, 2.0, 1.0, 1.0, 1.0])
    while (approaching := np.flatnonzero(np.diff(v) < -1e-12)).size:
        pair = slice(approaching[0], approaching[0] + 2)
        v[pair] = 2.0 * np.dot(m[pair], v[pair]) / np.sum(m[pair]) - v[pair]
    np.testing.assert_allclose(found, v, atol=1e-9)
    with pytest.raises(ValueRefusedError, match=r"impacts.*'simultaneous', 'sequential'"):
        fx.PlantBuilder(impacts="both")  # type: ignore[arg-type]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_ledger_has_the_work_of_a_prescribed_motion_in_an_impact(compiled: Any) -> None:
    """A driven bat strikes a ball: the drive does the impulse m (1 + e) u times u."""
    m, e, u = 2.0, 0.5, 1.5
    builder = fx.PlantBuilder("game", gravity=np.zeros(3))
    bat = builder.add_body("bat", fx.SpatialInertia.point_mass(5.0))
    ball = builder.add_body("ball", fx.SpatialInertia.point_mass(m))
    rail = fx.PrismaticJoint("rail", builder.world, bat, axis=(1, 0, 0), damping=0.0)
    gap = fx.PrismaticJoint("gap", bat, ball, axis=(1, 0, 0), damping=0.0)
    for joint in (rail, gap):
        builder.add_joint(joint)
    builder.add_constraint(PrescribedMotion("drive", rail))
    builder.add_constraint(fx.RigidStop("face", gap, restitution=e, lower=0.0))
    builder.add_energy_ledger()
    wiring = fx.DiagramBuilder("play")
    for block in (builder.build(), fx.Ramp("x", slope=u), fx.Constant("v", [u, 0.0])):
        wiring.add(block)
    wiring.add(fx.Multiplexer("motion", [1, 2]))
    for source, target in (("x.y", "motion.u1"), ("v.y", "motion.u2"), ("motion.y", "game.drive")):
        wiring.connect(source, target)
    play = wiring.build()
    context = play.create_default_context()
    rail.rate.set(context, u)
    gap.translation.set(context, 0.3)
    gap.rate.set(context, -u)
    result = fx.simulate(play, 1.0, context=context, compiled=compiled)
    assert result["game.ball.spatial_velocity"][-1, 3] == pytest.approx((1.0 + e) * u)
    names = ("damping", "input", "face", "input_impacts", "projections")
    works = dict(zip(names, result["game.ledger.works"][-1], strict=True))
    assert works["input_impacts"] == pytest.approx(m * (1.0 + e) * u**2)
    assert works["face"] == pytest.approx(-0.5 * m * (1.0 - e**2) * u**2)
    assert np.ptp(result["game.ledger.balance"]) < 1e-9
