"""Friction of rigid contacts: slides and impacts by hand, by own integration, energy, refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier

FloatArray = npt.NDArray[np.float64]
M, R, G, SLOW = 2.0, 0.1, 10.0, 1e-3
BALL = fx.BodyShape.sphere(radius=R)


def thrown(mu: float, e: float = 0.5, *, wall: bool = False, pulled: bool = False) -> fx.Plant:
    """Return a ball that may touch the ground, and a wall at x = 1."""
    builder = fx.PlantBuilder("court", gravity=(0.0, 0.0, -G))
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(M, radius=R))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, ball))
    friction: Any = {"restitution": e, "friction": mu, "transition_velocity": SLOW}
    ground = fx.RigidContact("ground", ball, BALL, builder.world, "half_space", **friction)
    builder.add_constraint(ground)
    if wall:
        turned = rotation_from_rpy((0.0, -np.pi / 2.0, 0.0))
        frame = builder.add_frame("wall_frame", builder.world, (turned, (1.0, 0.0, 0.0)))
        builder.add_constraint(fx.RigidContact("wall", ball, BALL, frame, "half_space", **friction))
    builder.add_energy_ledger()
    if pulled:
        builder.add_external_force("pull", ball)
    return builder.build()


def start(plant: fx.Plant, place: Any, velocities: Any, turned: Any = None) -> fx.Context:
    """Return a context with the body of a plant at a place, with angular and linear velocity."""
    context = plant.create_default_context()
    plant.joints[0].pose.set(context, (np.eye(3) if turned is None else turned, place))
    plant.set_velocities(context, velocities)
    return context


@needs_llvmlite
@pytest.mark.parametrize("mu", [0.1, 0.8])
def test_a_ball_bounces_with_backspin(mu: float) -> None:
    """The impulse along the ground is μ (1 + e) m v, or 2/7 m u, which ends the sliding u."""
    e, spin, ahead, fall = 0.6, -30.0, 1.5, 2.0
    context = start(thrown(mu, e), (0.0, 0.0, R + 0.2), [0.0, spin, 0.0, ahead, 0.0, 0.0])
    sliding = ahead - spin * R
    impulse = min(mu * (1.0 + e) * M * fall, 2.0 / 7.0 * M * sliding)
    expected = [0.0, spin + 2.5 * impulse / (M * R), 0.0, ahead - impulse / M, 0.0, e * fall - 1.0]
    for compiled in ("native", False):
        result = fx.simulate(context.system, 0.3, context=context, compiled=compiled)
        np.testing.assert_allclose(result["ball.spatial_velocity"][-1], expected, atol=1e-9)
        assert np.ptp(result["ledger.balance"]) < 1e-9
        assert result["ground.mode"][-1] == 0.0
    lost = 0.5 * M * (1 - e * e) * fall**2 + impulse * (sliding - 3.5 * impulse / M / 2.0)
    assert result["ground.dissipated_energy"][-1] == pytest.approx(lost, rel=1e-9)


@needs_llvmlite
def test_a_ball_slides_until_it_rolls() -> None:
    """Smooth friction by an own integration; and 5/7 of the speed after 2 v/(7 μ g)."""
    mu, speed, t_final = 0.3, 2.0, 0.4
    context = start(thrown(mu), (0.0, 0.0, R), [0.0, 0.0, 0.0, speed, 0.0, 0.0])

    def rates(_: float, y: FloatArray) -> list[float]:
        v, w = y
        u = v - R * w
        f = -mu * G * u / np.hypot(u, SLOW)
        return [f, -2.5 * f / R]

    own = solve_ivp(rates, (0, t_final), [speed, 0.0], method="Radau", rtol=1e-10, atol=1e-12)
    options: Any = {"context": context, "method": "Rodas5P", "rtol": 1e-9, "atol": 1e-12}
    result = fx.simulate(context.system, t_final, compiled="native", **options)
    found = result["ball.spatial_velocity"][-1]
    np.testing.assert_allclose(found[[3, 1]], own.y[:, -1], rtol=1e-7)
    assert 2.0 * speed / (7.0 * mu * G) < t_final
    assert found[3] == pytest.approx(5.0 / 7.0 * speed, rel=1e-4)
    np.testing.assert_allclose(result["ground.multipliers"], M * G, rtol=1e-9)
    first = result["ground.friction_force"][0]
    np.testing.assert_allclose(first, [-mu * M * G, 0.0, 0.0], rtol=1e-6, atol=1e-12)
    assert np.ptp(result["ledger.balance"]) < 1e-7
    lanes = fx.sweep(
        context.system,
        {"tree.ground_friction": [mu, 0.1]},
        t_final,
        signals=["ball.spatial_velocity"],
        **options,
    )["ball.spatial_velocity"]
    np.testing.assert_allclose(lanes[0, -1], found, atol=1e-7)
    assert lanes[1, -1, 3] == pytest.approx(speed - 0.1 * G * t_final, abs=1e-4)


def crate(
    angle: float, mu: float, size: Any = (0.3, 0.2, 0.1), law: Any = "simultaneous"
) -> fx.Context:
    """Return a context with a box on a slope; one plant serves all frictions."""
    context = start(box_on_slope(angle, size, law), (0.0, 0.0, 0.5 * size[2]), np.zeros(6))
    context.set("tree.ground_friction", mu)
    return context


@cache
def box_on_slope(angle: float, size: Any, law: Any) -> fx.Plant:
    """Build a box on a slope."""
    gravity = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    builder = fx.PlantBuilder("slope", gravity=gravity, impacts=law)
    box = builder.add_body("box", fx.SpatialInertia.solid_box(M, size=size))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, box))
    shape = fx.BodyShape.box(size=size)
    options: Any = {"restitution": 0.3, "friction": 0.3, "transition_velocity": SLOW}
    ground = fx.RigidContact("ground", box, shape, builder.world, "half_space", **options)
    builder.add_constraint(ground)
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.full
@needs_llvmlite
def test_a_crate_on_a_slope_slides_or_creeps() -> None:
    angle = 0.3
    options: Any = {"compiled": "native", "method": "Rodas5P", "rtol": 1e-8}
    for mu in (0.2, 0.5):
        context, slope = crate(angle, mu), np.tan(angle)
        result = fx.simulate(context.system, 0.5, context=context, **options)
        speed = result["box.spatial_velocity"][-1, 3]
        if mu < slope:  # after a start in v_s/(g (sin α - μ cos α))
            expected = 0.5 * G * (np.sin(angle) - mu * np.cos(angle))
            assert speed == pytest.approx(expected, abs=2.0 * SLOW)
        else:  # μ v/√(v² + v_s²) = tan α
            assert speed == pytest.approx(SLOW * slope / np.sqrt(mu**2 - slope**2), rel=1e-6)
        loads = result["ground.multipliers"][-1]
        assert loads.sum() == pytest.approx(M * G * np.cos(angle), rel=1e-9)
        assert np.ptp(result["ledger.balance"]) < 1e-7
        # The load moves to the front by the height of the center over the friction.
        force = result["ground.friction_force"][-1].reshape(8, 3).sum(axis=0)
        uneven = abs(loads[:4].sum() - loads[4:].sum())
        assert 0.15 * uneven == pytest.approx(0.05 * -force[0], rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("law", ["simultaneous", "sequential"])
def test_a_crate_lands_flat(law: str) -> None:
    """It slips by μ (1 + e) of the fall, or stops; it never turns if the law treats all alike."""
    mu, e, fall, size = 0.4, 0.3, 2.0, (0.3, 0.2, 0.1)
    for speed in (3.0, 0.5):
        context = crate(0.0, mu, size, law)
        flight = context.system
        assert isinstance(flight, fx.Plant)
        flight.set_velocities(context, [0.0, 0.0, 0.0, speed, 0.0, -fall])
        result = fx.simulate(context.system, 1e-9, context=context)
        after = result["box.spatial_velocity"][-1]
        before = 0.5 * M * (speed**2 + fall**2)
        assert 0.0 <= before - result["tree.kinetic_energy"][-1] <= before
        assert np.ptp(result["ledger.balance"]) < 1e-6
        left = max(speed - mu * (1.0 + e) * fall, 0.0)
        if law == "simultaneous":
            np.testing.assert_allclose(after, [0, 0, 0, left, 0, e * fall], atol=1e-3)
        assert after[3] >= left - 1e-3


def test_the_slope_of_a_throw_by_friction() -> None:
    """The distance falls by (1 + e) of the fall for each second after the impact."""
    mu, e, fall = 0.1, 0.6, 2.0
    context = start(thrown(mu, e), (0.0, 0.0, R + 0.2), [0.0, 0.0, 0.0, 3.0, 0.0, 0.0])
    metric = fx.metrics.final("ball.position[0]")
    found = fx.gradient(context.system, metric, ["tree.ground_friction"], 0.3, context=context)
    assert found["tree.ground_friction"] == pytest.approx(-(1.0 + e) * fall * 0.1, rel=1e-6)


@pytest.mark.full
def test_small_motions_of_a_crate_are_damped_by_its_load() -> None:
    context = crate(0.0, 0.3)
    rest = fx.simulate(context.system, 1e-6, context=context).context
    poles = fx.linearize(context.system, rest).poles
    fast = 0.3 * G / SLOW  # and with the squares of the distances, 3 times as fast about z
    np.testing.assert_allclose(np.sort(poles.real)[:3], [-3.0 * fast, -fast, -fast], rtol=1e-6)


@pytest.mark.full
def test_a_tall_crate_tips_over_and_does_not_slide() -> None:
    context = crate(0.7, 0.9, (0.1, 0.1, 0.4))
    result = fx.simulate(context.system, 0.2, context=context, method="Rodas5P")
    assert result["box.spatial_velocity"][-1, 1] > 0.5
    assert result["ground.mode"][-1].sum() == 2.0


@needs_llvmlite
def test_a_ball_rolls_into_a_corner() -> None:
    """Rolling on, its front moves down: the wall lifts it. Turning back, the ground stops it."""
    e, mu, v = 0.5, 0.2, 1.0
    for spin in (v / R, -v / R):
        context = start(thrown(mu, e, wall=True), (0.85, 0.0, R), [0.0, spin, 0.0, v, 0.0, 0.0])
        result = fx.simulate(context.system, 0.07, context=context, compiled="native")
        hit = np.flatnonzero(np.diff(result["wall.dissipated_energy"]))[0]
        (_, w, _, u, *_), after = result["ball.spatial_velocity"][hit : hit + 2]
        lift = np.sign(w) * min(mu * (1.0 + e) * M * u, 2.0 / 7.0 * M * R * abs(w))
        ahead = -e * u
        if spin < 0.0:  # then the ground strikes, and rubs against the sliding there
            sliding = ahead - R * w + 2.5 * lift / M
            most = min(-mu * (1.0 + e) * lift, 2.0 / 7.0 * M * abs(sliding))
            ahead, lift = ahead - np.sign(sliding) * most / M, -e * lift
        assert after[5] == pytest.approx(lift / M, rel=1e-6)
        assert after[3] == pytest.approx(ahead, rel=1e-6)
        assert np.ptp(result["ledger.balance"]) < 1e-9


def rod(mu: float, e: float = 0.0) -> fx.Plant:
    """Return a rod of length 1 in the plane x-z, whose ends may touch the ground."""
    builder = fx.PlantBuilder("rod", gravity=(0.0, 0.0, -G))
    upright = rotation_from_rpy((np.pi / 2.0, 0.0, 0.0))
    plane = builder.add_frame("plane", builder.world, (upright, (0.0, 0.0, 0.0)))
    body = builder.add_body("rod", fx.SpatialInertia.thin_rod(M, length=1.0, axis="x"))
    builder.add_joint(fx.PlanarJoint("free", plane, body))
    options: Any = {"restitution": e, "friction": mu, "transition_velocity": SLOW}
    for name, x in (("left", -0.5), ("right", 0.5)):
        tip = builder.add_frame(f"{name}_tip", body, (x, 0.0, 0.0))
        point = fx.BodyShape.point()
        end = fx.RigidContact(name, tip, point, builder.world, "half_space", **options)
        builder.add_constraint(end)
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.parametrize("e", [0.0, 0.7])
@pytest.mark.parametrize("mu", [0.1, 0.4, 2.0])
def test_a_rod_falls_on_a_rough_floor(mu: float, e: float) -> None:
    """By the mass matrix, and the impulse in the cone after which kinetic energy is least."""
    plant, angle, v = rod(mu, e), 0.6, np.array([1.0, -2.0, 3.0])
    context = plant.create_default_context()
    plant.joints[0].positions.set(context, [0.0, 0.5 * np.sin(angle), angle])
    plant.set_velocities(context, v)
    c, s = 0.5 * np.cos(angle), 0.5 * np.sin(angle)  # the left end is at (-c, -s)
    J, inertia = np.array([[1.0, 0.0, s], [0.0, 1.0, -c]]), np.diag([M, M, M / 12.0])
    W, u = J @ np.linalg.solve(inertia, J.T), J @ v

    def after(tangential: float) -> FloatArray:
        normal = (-(1.0 + e) * u[1] - W[1, 0] * tangential) / W[1, 1]
        return np.asarray(v + np.linalg.solve(inertia, J.T @ [tangential, normal]))

    def energy(tangential: float) -> float:
        end = after(tangential)
        return float(end @ inertia @ end)

    # |P| <= μ (a + b P) on both sides
    a, b = -(1.0 + e) * u[1] / W[1, 1], -W[1, 0] / W[1, 1]
    highest = mu * a / (1.0 - mu * b) if mu * b < 1.0 else np.inf
    lowest = -mu * a / (1.0 + mu * b) if mu * b > -1.0 else -np.inf
    best = minimize_scalar(energy, bracket=(-1.0, 1.0)).x
    expected = after(float(np.clip(best, lowest, highest)))
    result = fx.simulate(plant, 1e-9, context=context)
    np.testing.assert_allclose(result.context.get("tree.x")[3:], expected, atol=1e-6)
    lost = 0.5 * (v @ inertia @ v - expected @ inertia @ expected)
    assert result["left.dissipated_energy"][-1] == pytest.approx(lost, abs=1e-6)


def test_a_rod_that_jams_is_refused_by_name_and_one_that_is_pulled_is_not() -> None:
    """Painlevé's rod: friction adds μ 3 sin α cos α/(1 + 3 cos² α) of the load."""
    mu, angle = 2.0, 1.0
    plant = rod(mu)
    for ahead, jams in ((-1.0, True), (1.0, False)):
        context = plant.create_default_context()
        plant.joints[0].positions.set(context, [0.0, 0.5 * np.sin(angle), angle])
        plant.set_velocities(context, [ahead, 0.0, 0.0])
        c, s = np.cos(angle), np.sin(angle)
        if not jams:
            result = fx.simulate(plant, 1e-6, context=context)
            load = M * G / (1.0 + 3.0 * c * c + mu * 3.0 * s * c)
            assert result["left.multipliers"][0] == pytest.approx(load, rel=1e-5)
            continue
        share = f"{mu * 3.0 * s * c / (1.0 + 3.0 * c * c):.3g}".replace(".", r"\.")
        with pytest.raises(fx.errors.EvaluationError, match=f"'left'.*{share} times.*Painlev"):
            fx.simulate(plant, 1e-3, context=context)


def motion(plant: fx.Plant, context: fx.Context) -> tuple[FloatArray, list[FloatArray]]:
    """Return the velocity of the second body past the first, and the momenta of both."""
    found, momenta = [], []
    for body in plant.bodies[-2:]:
        V = plant.output_port(f"{body.name}.spatial_velocity").eval(context)
        pose = plant.output_port(f"{body.name}.pose").eval(context)
        assert body.inertia is not None
        found.append(V[3:])
        com = pose[:9].reshape(3, 3) @ body.inertia.com
        momenta.append(body.inertia.mass * (V[3:] + np.cross(V[:3], com)))
    return found[1] - found[0], momenta


def test_kinetic_energy_never_grows_in_impacts() -> None:
    """Uneven balls in space: Newton's law, the cone, the energy, and what it says it has lost."""
    rng = np.random.default_rng(33)
    for _ in range(by_tier(fast=3, full=12)):
        mu, e = rng.uniform(0.0, 2.0), rng.uniform()
        builder = fx.PlantBuilder("space", gravity=(0, 0, 0))
        bodies = []
        for name in ("one", "two"):
            A = rng.normal(size=(3, 3)) * 0.05
            square = A @ A.T + 1e-4 * np.eye(3)
            moments = np.trace(square) * np.eye(3) - square
            mass, com = rng.uniform(0.5, 2.0), 0.05 * rng.normal(size=3)
            six = moments[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            inertia = fx.SpatialInertia(mass, com, six)
            bodies.append(builder.add_body(name, inertia))
            builder.add_joint(fx.QuaternionFloatingJoint(f"{name}_free", builder.world, bodies[-1]))
        friction: Any = {"restitution": e, "friction": mu, "transition_velocity": SLOW}
        touch = fx.RigidContact("touch", bodies[0], BALL, bodies[1], BALL, **friction)
        builder.add_constraint(touch)
        plant = builder.build()
        for _ in range(4):
            context = plant.create_default_context()
            n = rng.normal(size=3)
            n /= np.linalg.norm(n)
            places = (0.0 * n, 2.0 * R * n * (1.0 - 1e-15))
            for joint, place in zip(plant.joints, places, strict=True):
                joint.pose.set(context, (rotation_from_rpy(rng.normal(size=3)), place))
            v = rng.normal(size=12)
            v[9:] -= ((v[9:] - v[3:6]) @ n + 1.0) * n
            plant.set_velocities(context, v)
            end = fx.simulate(plant, 1e-12, context=context, compiled=False).context
            rates, momenta = zip(*(motion(plant, each) for each in (context, end)), strict=True)
            assert rates[0] @ n == pytest.approx(-1.0)
            assert rates[1] @ n == pytest.approx(e)
            np.testing.assert_allclose(sum(momenta[0]), sum(momenta[1]), atol=1e-12)
            impulse = momenta[1][0] - momenta[0][0]
            normal = -(impulse @ n)
            assert np.linalg.norm(impulse + normal * n) <= mu * normal + 1e-9
            energy = plant.tree.output_port("kinetic_energy")
            energies = [energy.eval(each)[0] for each in (context, end)]
            lost = end.get("tree.touch_dissipated")
            assert energies[0] - energies[1] == pytest.approx(lost, abs=1e-9)
            assert lost >= -1e-12


@needs_llvmlite
@pytest.mark.full
@pytest.mark.parametrize("friction", [{}, {"friction": 0.3, "transition_velocity": SLOW}])
def test_a_thrown_box_comes_to_rest(friction: Any) -> None:
    """Corners touch together and rattle; energy is accounted for, and falls, and none sinks in.

    Without friction the box slides on with long steps, on four corners that bear the same load.
    """
    builder, size = fx.PlantBuilder("yard", gravity=(0.0, 0.0, -G)), (0.2, 0.3, 0.4)
    box = builder.add_body("box", fx.SpatialInertia.solid_box(M, size=size))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, box))
    pair = box, fx.BodyShape.box(size=size), builder.world, "half_space"
    builder.add_constraint(fx.RigidContact("ground", *pair, restitution=0.3, **friction))
    builder.add_energy_ledger()
    plant = builder.build()
    corners = np.array(np.meshgrid(*[(-0.5 * a, 0.5 * a) for a in size])).reshape(3, 8)
    for seed in range(24):
        rng = np.random.default_rng(seed)
        turned = rotation_from_rpy(rng.uniform(-3.0, 3.0, 3))
        velocities = np.concatenate([rng.uniform(-5.0, 5.0, 3), rng.uniform(-2.0, 2.0, 3)])
        context = start(plant, (0.0, 0.0, 0.6), velocities, turned)
        end, method = (2.0, "Rodas5P") if friction else (4.0, "auto")
        result = fx.simulate(plant, end, context=context, method=method, rtol=1e-7)
        assert result.statistics.witness_events < 200
        if not friction:
            loads = result["ground.multipliers"][-1]
            assert loads[loads > 0.0] == pytest.approx(0.25 * M * G * np.ones(4), rel=1e-6)
        energy = np.ravel(result["ledger.kinetic_energy"] + result["ledger.gravity_energy"])
        assert np.max(np.diff(energy)) < 1e-6 * energy[0]
        assert np.ptp(result["ledger.balance"]) < 1e-6 * energy[0]
        assert np.diff(np.ravel(result["ground.dissipated_energy"])).min() > -1e-12
        for time in np.linspace(0.0, end, 101):
            pose = free.pose(result.context_at(time))
            assert (pose.R @ corners)[2].min() + pose.p[2] > -1e-6


def test_a_foot_and_the_rail_above_it_rub_together() -> None:
    """The foot carries its own weight, the rail that of the carriage; the guide has the rest."""
    builder, on_rail, mu = fx.PlantBuilder("sled", gravity=(0.0, 0.0, -G)), 0.1, 0.4
    carriage = builder.add_body("carriage", fx.SpatialInertia.point_mass(3.0))
    foot = builder.add_body("foot", fx.SpatialInertia.point_mass(M))
    rail = fx.PrismaticJoint("rail", builder.world, carriage, (1, 0, 0), damping=0.0)
    guide = fx.PrismaticJoint("guide", carriage, foot, (0, 0, 1), damping=0.0)
    builder.add_joint(rail)
    builder.add_joint(guide)
    builder.add_constraint(fx.BearingFriction("bearing", rail, friction=on_rail))
    friction: Any = {"restitution": 0.0, "friction": mu, "transition_velocity": 1e-6}
    pair = foot, fx.BodyShape.point(), builder.world, "half_space"
    builder.add_constraint(fx.RigidContact("sole", *pair, **friction))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    rail.rate.set(context, 1.0)
    result = fx.simulate(plant, 0.05, context=context)
    a = -(on_rail * 3.0 + mu * M) * G / (3.0 + M)
    assert result["rail.rate"][-1] == pytest.approx(1.0 + 0.05 * a, rel=1e-9)
    assert result["bearing.load"][-1] == pytest.approx(3.0 * G, rel=1e-9)
    across = result["tree.guide_reaction"][-1, 3]
    assert across == pytest.approx(M * a + mu * M * G, rel=1e-9)
    assert np.ptp(result["ledger.balance"]) < 1e-9


def test_a_pull_that_is_not_finite_is_traced_to_its_cause() -> None:
    class Root(fx.LeafSystem):
        """A force along z that is NaN from t = 0.05 s on."""

        def __init__(self) -> None:
            super().__init__("root")
            self.declare_vector_output("y", 6, self.calc_force)

        def calc_force(self, context: Any) -> Any:
            return [0.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.05 - context.time)]

    plant, builder = thrown(0.3, pulled=True), fx.DiagramBuilder("pulled")
    builder.add_all(plant, Root())
    builder.connect("root.y", "court.pull")
    context = builder.build().create_default_context()
    plant.joints[0].pose.set(context, (np.eye(3), (0.0, 0.0, R)))
    plant.set_velocities(context, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    with pytest.raises(fx.errors.NonFiniteError, match=r"component 5 of output port 'root\.y'"):
        fx.simulate(context.system, 0.1, context=context)


def test_wrong_constants_of_friction_are_refused() -> None:
    builder = fx.PlantBuilder("bench")
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(M, radius=R))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"friction": 0.1}, "with a transition_velocity, or neither"),
        ({"transition_velocity": 0.1}, "with a transition_velocity, or neither"),
        ({"friction": -0.1, "transition_velocity": 0.1}, "friction"),
        ({"friction": 0.1, "transition_velocity": 0.0}, "transition_velocity"),
    ]
    for options, reason in refused:
        with pytest.raises(fx.errors.FlexureError, match=reason):
            fx.RigidContact("c", ball, BALL, builder.world, "half_space", restitution=0, **options)


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize(("mu", "seed"), [(0.0, 1), (0.2, 3)])
def test_a_thrown_crate_tumbles_until_it_lies_flat(mu: float, seed: int) -> None:
    """Without friction it slides on, turning about the normal."""
    size, rng = (0.4, 0.3, 0.1), np.random.default_rng(seed)
    plant = box_on_slope(0.0, size, "simultaneous")
    turned = rotation_from_rpy(0.5 * rng.normal(size=3))
    v = rng.normal(size=6) * np.array([3.0, 3.0, 3.0, 1.0, 1.0, 0.2])
    context = start(plant, (0.0, 0.0, 0.5), v, turned)
    context.set("tree.ground_friction", mu)
    result = fx.simulate(plant, 1.5, context=context, method="Rodas5P", compiled="native")
    assert result["box.position"][-1, 2] == pytest.approx(0.05, abs=1e-6)
    assert result["ground.multipliers"][-1].sum() == pytest.approx(M * G, rel=1e-6)
    assert np.ptp(result["ledger.balance"]) < 1e-5
    slides = np.abs(result["box.spatial_velocity"][-1, [2, 3, 4]])
    assert np.all(slides < 1e-3) if mu else np.any(slides > 0.1)


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("law", ["simultaneous", "sequential"])
def test_corners_that_strike_together_keep_cone_and_energy(law: str) -> None:
    plant, rng = box_on_slope(0.0, (0.3, 0.2, 0.1), law), np.random.default_rng(7)
    moments = M / 12.0 * np.array([0.05, 0.10, 0.13])
    for _ in range(20):
        mu, v = rng.uniform(0.0, 1.5), rng.normal(size=6) * [2.0, 2.0, 8.0, 2.0, 2.0, 0.0]
        v[5] = -rng.uniform(0.1, 2.0)
        context = start(plant, (0.0, 0.0, 0.05), v)
        context.set("tree.ground_friction", mu)
        context.set("tree.ground_restitution", rng.uniform())
        result = fx.simulate(plant, 1e-9, context=context, compiled="native")
        after = result["box.spatial_velocity"][-1]
        impulse = M * (after[3:] - v[3:])
        assert np.hypot(*impulse[:2]) <= mu * impulse[2] + 1e-6
        energies = [0.5 * (M * u[3:] @ u[3:] + moments @ u[:3] ** 2) for u in (v, after)]
        lost = result["ground.dissipated_energy"][-1]
        assert energies[0] - energies[1] == pytest.approx(lost, abs=1e-6)
        assert lost > 0.0
        corners = [(x, y) for x in (-0.15, 0.15) for y in (-0.1, 0.1)]
        assert min(after[5] + after[0] * y - after[1] * x for x, y in corners) > -1e-6
