"""Gradients by the adjoint: closed forms, differences of runs, sensitivities, refusals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Initialization, Periodic, Witness
from flexure.diagrams.checks.errors import (
    EvaluationError,
    NonFiniteError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.solvers.analysis.sensitivities.adjoint_motion import AdjointMotion
from flexure.solvers.native.programs.programs import UnsuitableError
from tests.support.native.native import needs_llvmlite
from tests.support.systems.simulation import relay_charger
from tests.support.tiers import by_tier

TIGHT: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
m = fx.metrics


class Ball(fx.LeafSystem):
    """q″ = -g, and at the floor the speed v becomes -e v."""

    def __init__(self) -> None:
        super().__init__("ball")
        self.g = self.declare_numeric_parameter("g", 9.81)
        self.e = self.declare_numeric_parameter("e", 0.8)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.declare_unrestricted_update(self.bounce, Witness(self.x.q, "falling"))
        self.y = self.declare_vector_output("y", 1, self.x.q, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.x.v(context)[0], -self.g(context)]

    def bounce(self, context: Any) -> Any:
        return {self.x: [0.0, -self.e(context) * self.x.v(context)[0]]}


class Hybrid(fx.LeafSystem):
    """ẋ = A x + b tanh(w x₀) + c sin(ν t) + d mode + h held + j (t ≥ at), with events of kinds.

    A relay turns its mode where x₀ leaves a band, a reset x ← R x + r follows a crossing of
    x₁ = level + 0.1 sin(t), and ticks hold k x, at first w x.
    """

    def __init__(self, kinds: Sequence[str], name: str = "hybrid") -> None:
        super().__init__(name)
        named = {"A": (3, 3), "b": 3, "c": 3, "d": 3, "h": 3, "R": (3, 3), "r": 3, "k": 3, "j": 3}
        self.p = {
            name: self.declare_numeric_parameter(name, np.zeros(s)) for name, s in named.items()
        }
        for name in ("w", "nu", "band", "level", "at"):
            self.p[name] = self.declare_numeric_parameter(name, 1.0)
        self.x = self.declare_continuous_state(z=3)
        self.mode = self.declare_discrete_state("mode", 1.0)
        self.held = self.declare_discrete_state("held", 0.0)
        self.y = self.declare_vector_output("y", 1, self.calc_y)
        if "relay" in kinds:
            self.declare_discrete_update(self.turn, Witness(self.calc_room, "falling"))
        if "reset" in kinds:
            self.declare_unrestricted_update(self.reset, Witness(self.calc_height, "rising"))
        if "ticks" in kinds:
            self.declare_discrete_update(self.sample, Periodic(0.13, offset=0.05))
        if "beginning" in kinds:
            self.declare_discrete_update(self.fill, Initialization())
        self.jumps = "jump" in kinds

    def calc_time_derivatives(self, context: Any) -> Any:
        x, p = self.x(context), {name: each(context) for name, each in self.p.items()}
        force = p["b"] * np.tanh(p["w"] * x[0]) + p["c"] * np.sin(p["nu"] * context.time)
        if self.jumps:
            force = force + p["j"] * np.where(context.time >= p["at"], 1.0, 0.0)
        return p["A"] @ x + force + p["d"] * self.mode(context)[0] + p["h"] * self.held(context)[0]

    def calc_next_break_time(self, context: Any) -> Any:
        at = self.p["at"](context)
        return np.where(context.time < at, at, np.inf) if self.jumps else np.inf

    def calc_y(self, context: Any) -> Any:
        x = self.x(context)
        return [x[0] * x[1] + self.p["w"](context) * x[2] + self.mode(context)[0]]

    def calc_room(self, context: Any) -> Any:
        return self.p["band"](context) - self.mode(context)[0] * self.x(context)[0]

    def turn(self, context: Any) -> Any:
        return {self.mode: -self.mode(context)}

    def calc_height(self, context: Any) -> Any:
        level = self.p["level"](context) + 0.1 * np.sin(context.time)
        return self.x(context)[1] - level

    def reset(self, context: Any) -> Any:
        return {self.x: self.p["R"](context) @ self.x(context) + self.p["r"](context)}

    def fill(self, context: Any) -> Any:
        return {self.held: [self.p["w"](context) * self.x(context)[0]]}

    def sample(self, context: Any) -> Any:
        return {self.held: [self.p["k"](context) @ self.x(context)]}


def drawn(system: Hybrid, seed: int) -> fx.Context:
    """Return a context with random numbers, of a motion that swings."""
    rng, context = np.random.default_rng(seed), system.create_default_context()
    swing = np.array([[0.0, 3.0, 0.0], [-3.0, 0.0, 0.5], [0.0, 0.5, -1.0]])
    numbers: dict[str, Any] = {
        name: rng.normal(0.0, 0.4, each.shape) for name, each in system.p.items()
    }
    numbers |= {"A": swing + 0.2 * numbers["A"], "d": [-1.0, 0.2, 0.5] + 0.3 * numbers["d"]}
    numbers |= {"w": 1.5, "nu": 2.0 + numbers["nu"], "band": 0.5, "level": 0.7}
    numbers |= {"R": 0.5 * np.eye(3) + 0.2 * numbers["R"], "r": [0.1, -0.6, 0.0]}
    for name, number in numbers.items():
        context.set(name, number)
    context.continuous_state = rng.uniform(-0.4, 0.4, 3)
    context.set("at", rng.uniform(0.4, 1.6))
    return context


def differences(
    metric: fx.metrics.Metric,
    system: fx.System,
    t_final: float,
    directions: dict[str, Any],
    context: fx.Context,
) -> tuple[float, float]:
    """Return the derivative of a metric along a direction, extrapolated from central differences.

    The other number is by how much these differ at two steps.
    """
    found = []
    for h in (1e-4, 2e-4):
        sides = []
        for sign in (1.0, -1.0):
            moved = context.clone()
            for path, way in directions.items():
                moved.set(path, np.asarray(moved.get(path)) + sign * h * way)
            sides.append(metric(fx.simulate(system, t_final, context=moved, **TIGHT)))
        found.append((sides[0] - sides[1]) / (2.0 * h))
    return (4.0 * found[0] - found[1]) / 3.0, abs(found[0] - found[1])


def along(found: Any, directions: dict[str, Any]) -> float:
    """Return the derivative along a direction."""
    return float(sum(np.sum(found[path] * way) for path, way in directions.items()))


def check_hybrids(seeds: range, *more: str) -> None:
    """Compare gradients of random systems with differences, and with sensitivities."""
    kinds = [
        (*more, *k)
        for size in range(4)
        for k in itertools.combinations(("relay", "reset", "ticks"), size)
    ]
    systems = [Hybrid(each) for each in kinds]
    metrics = [
        m.final("y"),
        m.rms("x[1]", start=0.3),
        m.integral("y") + m.at("x[0]", 1.7) * m.final("x[2]"),
    ]
    unclear, events = 0, 0
    for seed in seeds:
        system, metric = systems[seed % len(systems)], metrics[seed % len(metrics)]
        context, rng = drawn(system, seed), np.random.default_rng(1000 + seed)
        directions = {
            name: rng.normal(size=np.shape(context.get(name))) for name in [*system.p, "x"]
        }
        method = ("RK45", "DOP853", "ESDIRK4")[seed % 3]
        options: dict[str, Any] = {"context": context, "method": method, "rtol": 1e-9}
        found = fx.gradient(system, metric, directions, 3.0, **options)
        events += found.result.statistics.witness_events
        expected, doubt = differences(metric, system, 3.0, directions, context)
        if doubt > 2e-3 * abs(expected) + 1e-4:  # events come, go or change their order
            unclear += 1
            continue
        assert along(found, directions) == pytest.approx(expected, rel=1e-5, abs=1e-5), seed
        if metric is metrics[0]:
            other = fx.parameter_sensitivity(system, directions, 3.0, outputs="y", **options)
            for path in directions:
                slope = other.output_derivatives["y"][path][-1, 0]
                np.testing.assert_allclose(found[path], slope, rtol=1e-6, atol=1e-6)
    assert unclear <= 0.1 * len(seeds)
    assert events > len(seeds)


@needs_llvmlite
def test_random_hybrid_systems() -> None:
    check_hybrids(range(by_tier(fast=3, full=5)))


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("first", range(5, 205, 40))
def test_many_random_hybrid_systems(first: int) -> None:
    check_hybrids(range(first, first + 40))


@pytest.mark.full
@needs_llvmlite
def test_random_hybrid_systems_whose_jumps_move_and_that_hold_what_they_begin_with() -> None:
    check_hybrids(range(320, 360), "jump", "beginning")


def complex_steps(function: Any, numbers: dict[str, float]) -> dict[str, float]:
    """Return the derivatives of a closed form, to rounding."""
    return {
        name: function(**(numbers | {name: number + 1e-30j})).imag / 1e-30
        for name, number in numbers.items()
    }


def test_a_ball_after_three_bounces() -> None:
    def height(g: Any, e: Any, q: Any, v: Any) -> Any:
        speed = np.sqrt(v * v + 2.0 * g * q)
        last = (v + speed) / g + 2.0 * (e + e * e) * speed / g
        return e**3 * speed * (2.0 - last) - 0.5 * g * (2.0 - last) ** 2

    numbers = {"g": 9.81, "e": 0.8, "q": 1.0, "v": 0.0}
    expected = complex_steps(height, numbers)
    for method in ("RK45", "DOP853"):
        found = fx.gradient(Ball(), m.final("y"), ["g", "e", "x"], 2.0, method=method)
        assert found.value == pytest.approx(height(**numbers), abs=1e-9)
        assert found["g"] == pytest.approx(expected["g"], abs=1e-8)
        assert found["e"] == pytest.approx(expected["e"], abs=1e-8)
        np.testing.assert_allclose(found["x"], [expected["q"], expected["v"]], atol=1e-8)


def test_a_relay_that_charges_a_capacitor() -> None:
    charger = relay_charger()

    def second_switch(tau: Any, on: Any, off: Any, top: Any, start: Any) -> Any:
        # It charges from the start to -off, and discharges to -on.
        return tau * np.log((top - start) / (top + off)) + tau * np.log(off / on)

    numbers = {"tau": 0.5, "on": -0.3, "off": -0.7, "top": 1.0, "start": 0.1}
    expected = complex_steps(second_switch, numbers)
    paths = {
        "tau": "lag.time_constant",
        "on": "relay.on_threshold",
        "off": "relay.off_threshold",
        "top": "relay.on_value",
        "start": "lag.x",
    }
    found = fx.gradient(charger, m.first_crossing("relay.y", 0.5, "rising"), paths.values(), 2.0)
    assert found.value == pytest.approx(second_switch(**numbers).real, abs=1e-8)
    for name, path in paths.items():
        assert np.ravel(found[path])[0] == pytest.approx(expected[name], rel=1e-6, abs=1e-7), path


def servo() -> fx.Diagram:
    """Return a sampled PID controller with an integrator that has limits behind its motor."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Step("target", at=0.1),
        fx.PIDController("pid", kp=4.0, ki=1.0, kd=0.3, derivative_filter=0.05, period=0.05),
        fx.FirstOrderLag("motor", time_constant=0.3),
        fx.Integrator("angle"),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "motor", "angle", "pid.measurement")
    return builder.build()


def test_a_sampled_servo_agrees_with_its_sensitivities() -> None:
    system, ways = (
        servo(),
        ["pid.kp", "pid.ki", "pid.kd", "motor.time_constant", "target.to", "angle.x"],
    )
    found = fx.gradient(system, m.final("angle.y"), ways, 2.0)
    other = fx.parameter_sensitivity(system, ways, 2.0, outputs="angle.y")
    for way in ways:
        expected = np.ravel(other.output_derivatives["angle.y"][way])
        np.testing.assert_allclose(np.ravel(found[way]), expected, atol=1e-7)


def test_every_metric() -> None:
    builder = fx.DiagramBuilder("limited")
    builder.add_all(
        fx.Sine("s", amplitude=2.0, frequency=3.0),
        fx.Integrator("i", lower=-0.3, upper=0.6),
        fx.FirstOrderLag("lag", time_constant=0.4),
    )
    builder.connect_chain("s", "i", "lag")
    limited = builder.build()
    directions = {"s.amplitude": 0.7, "s.frequency": -0.3, "i.upper": 0.4, "i.lower": 0.2}
    directions |= {"i.x": 0.6, "lag.time_constant": -0.2}
    context = limited.create_default_context()
    for metric in (
        m.final("lag.y"),
        m.at("lag.y", 1.3),
        m.maximum("lag.y", start=0.8),
        m.minimum("lag.y", end=2.5),
        m.peak("lag.y"),
        m.mean("i.y"),
        m.rms("i.y", start=0.2, end=1.9),
        m.total_variation("i.y", start=0.6),
        m.iae("lag.y", target=0.1),
        m.ise("lag.y", target="i.y"),
        m.itae("i.y", target="lag.y", start=0.3),
        m.first_crossing("lag.y", 0.1, "falling"),
        abs(m.final("lag.y")) / m.rms("i.y") - m.largest(m.peak("i.y"), 2.0 * m.mean("lag.y")),
    ):
        found = fx.gradient(limited, metric, directions, 3.0)
        expected, _ = differences(metric, limited, 3.0, directions, context)
        assert along(found, directions) == pytest.approx(expected, rel=1e-5, abs=1e-6), metric.label


@needs_llvmlite
def test_python_gives_what_native_code_gives() -> None:
    def refuse(_: object) -> None:
        raise UnsuitableError("of a comparison")

    for system, metric, ways in (
        (Ball(), m.rms("y"), ["g", "e", "x"]),
        (servo(), m.itae("angle.y", target="target.y"), ["pid.kp", "motor.time_constant"]),
    ):
        for method in ("RK23", "RK45", "DOP853"):
            native = fx.gradient(system, metric, ways, 0.7, method=method)
            with patch.object(AdjointMotion, "_compiled", refuse):
                python = fx.gradient(system, metric, ways, 0.7, method=method)
            for way in ways:
                np.testing.assert_allclose(python[way], native[way], rtol=1e-9, atol=1e-12)
    with patch.object(AdjointMotion, "_compiled", refuse), pytest.raises(EvaluationError) as e:
        fx.gradient(Ball(), m.final("y"), "g", 1.0, method="ESDIRK4")
    assert "native code" in str(e.value)


class Chain(fx.LeafSystem):
    """Masses in a row between springs and dampers, with vectors of parameters."""

    def __init__(self, count: int) -> None:
        super().__init__("chain")
        steps = np.arange(count) / count
        self.m = self.declare_numeric_parameter("m", 1.0 + 0.2 * np.sin(7.0 * steps))
        self.k = self.declare_numeric_parameter("k", 100.0 + 20.0 * np.cos(5.0 * steps))
        self.d = self.declare_numeric_parameter("d", 0.5 + 0.1 * steps)
        start = np.concatenate([0.2 * (1.0 + steps), np.zeros(count)])
        self.x = self.declare_continuous_state(q=count, v=count, default=start)

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x.q(context), self.x.v(context)
        stretch, rate = (each - np.append(0.0, each[:-1]) for each in (q, v))
        force = self.k(context) * stretch + self.d(context) * rate
        return np.concatenate([v, (np.append(force[1:], 0.0) - force) / self.m(context)])


@pytest.mark.full
@needs_llvmlite
def test_300_parameters() -> None:
    chain = Chain(100)
    ways = ["m[0]", "k[57]", "d[99]", "x[30]"]
    other = fx.parameter_sensitivity(chain, ways, 2.0, method="RK45")
    for method in ("RK45", "ESDIRK4"):  # whose factors are sparse here
        found = fx.gradient(chain, m.final("x[99]"), ["m", "k", "d", "x"], 2.0, method=method)
        for way in ways:
            name, place = way[0], int(way[2:-1])
            assert found[name][place] == pytest.approx(other[way][99], rel=1e-5, abs=1e-9), way


@needs_llvmlite
def test_stiff_runs() -> None:
    class Stiff(fx.LeafSystem):
        """Van der Pol's oscillator."""

        def __init__(self) -> None:
            super().__init__("vdp")
            self.mu = self.declare_numeric_parameter("mu", 100.0)
            self.x = self.declare_continuous_state(q=1, v=1, default=[2.0, 0.0])

        def calc_time_derivatives(self, context: Any) -> Any:
            q, v = self.x(context)
            return [v, self.mu(context) * (1.0 - q * q) * v - q]

    system = Stiff()
    found = fx.gradient(system, m.ise("x[0]"), ["mu", "x"], 60.0, rtol=1e-9)
    assert "ESDIRK4" in found.result.message
    directions = {"mu": 2.0, "x": np.array([0.05, 0.3])}
    context = system.create_default_context()
    expected, _ = differences(m.ise("x[0]"), system, 60.0, directions, context)
    assert along(found, directions) == pytest.approx(expected, rel=1e-5)


@pytest.mark.full
@needs_llvmlite
def test_mechanisms_with_stops_friction_and_loops() -> None:
    def arm(constraint: str) -> tuple[fx.Plant, str]:
        builder = fx.PlantBuilder("arm")
        rod = fx.SpatialInertia.thin_rod(1.0, length=0.5)
        bodies = [builder.add_body(name, rod, com=(0, 0, -0.25)) for name in ("upper", "lower")]
        elbow = builder.add_frame("elbow", bodies[0], (0.0, 0.0, -0.5))
        first = builder.add_joint(
            fx.RevoluteJoint("first", builder.world, bodies[0], axis=(0, 1, 0))
        )
        second = builder.add_joint(fx.RevoluteJoint("second", elbow, bodies[1], axis=(0, 1, 0)))
        first.default_angle, second.default_angle = 0.6, -0.3
        if constraint == "stop":
            builder.add_constraint(fx.RigidStop("stop", first, restitution=0.2, lower=-0.2))
            return builder.build(), "tree.stop_restitution"
        if constraint == "friction":
            builder.add_constraint(fx.StickSlipFriction("seal", second, coulomb_friction=0.3))
            return builder.build(), "tree.seal_coulomb_friction"
        base = builder.add_frame("base", builder.world, (0.6, 0.0, -0.4))
        rocker = builder.add_body("rocker", rod, com=(0, 0, -0.25))
        foot = builder.add_joint(fx.RevoluteJoint("foot", base, rocker, axis=(0, 1, 0)))
        foot.default_angle = 0.3
        end, top = (
            builder.add_frame(f"end_{b.name}", b, (0, 0, -0.5)) for b in (bodies[1], rocker)
        )
        builder.add_loop_joint(fx.RevoluteJoint("pin", end, top, axis=(0, 1, 0)))
        builder.assemble_starts()
        return builder.build(), "tree.rocker_mass"

    for constraint in ("stop", "friction", "loop"):
        plant, way = arm(constraint)
        directions = {"tree.upper_mass": 0.4, "tree.lower_mass": -0.3, way: 0.1}
        metric = m.rms("first.angle")
        found = fx.gradient(plant, metric, directions, 1.5, rtol=1e-9)
        context = plant.create_default_context()
        expected, _ = differences(metric, plant, 1.5, directions, context)
        assert along(found, directions) == pytest.approx(expected, rel=1e-5), constraint


class Ramp(fx.LeafSystem):
    """ẋ = (rate + held, c), where ticks and crossings of x₀ = top run given updates."""

    def __init__(self, events: Sequence[tuple[str, Any]]) -> None:
        super().__init__("ramp")
        numbers = {"rate": 1.0, "top": 0.5, "p": 0.0, "c": 0.0}
        self.p = {k: self.declare_numeric_parameter(k, value) for k, value in numbers.items()}
        self.x = self.declare_continuous_state(z=2)
        self.held = self.declare_discrete_state("held", 0.0)
        watch = Witness(lambda c: self.x(c)[0] - self.p["top"](c), "rising")
        for when, update in events:
            trigger = Periodic(0.5, offset=0.5) if when == "tick" else watch
            self.declare_unrestricted_update(getattr(self, update), trigger)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.p["rate"](context) + self.held(context)[0], self.p["c"](context)]

    def hold(self, context: Any) -> Any:
        return {self.held: [self.p["p"](context)]}

    def push(self, context: Any) -> Any:
        x = self.x(context)
        return {self.x: [x[0], x[1] + self.p["p"](context) * x[0]]}


@needs_llvmlite
def test_events_that_change_no_number_have_derivatives() -> None:
    """With p = 0 updates leave all values as they are, but not what they depend on."""
    for update, signal, expected in (("hold", "x[0]", 0.5), ("push", "x[1]", 0.5)):
        for when in ("tick", "crossing"):
            ramp = Ramp([(when, update)])
            found = fx.gradient(ramp, m.final(signal), ["p", "top", "rate"], 1.0)
            assert found["p"] == pytest.approx(expected, abs=1e-7), (update, when)
            assert found["top"] == 0.0
            assert found["rate"] == pytest.approx(float(signal == "x[0]"), abs=1e-9)


# Refusals ----------------------------------------------------------------------------------------


def test_a_grazing_event_is_named() -> None:
    class Grazing(fx.LeafSystem):
        """A sine that touches its level."""

        def __init__(self) -> None:
            super().__init__("grazing")
            self.level = self.declare_numeric_parameter("level", 1.0 - 1e-13)
            self.x = self.declare_continuous_state(q=1, v=1, default=[0.0, 1.0])
            self.seen = self.declare_discrete_state("seen", 0.0)
            watch = Witness(lambda c: self.x(c)[0] - self.level(c), "rising")
            self.declare_discrete_update(self.see, watch)

        def calc_time_derivatives(self, context: Any) -> Any:
            s, c = self.x(context)
            return [c + self.seen(context)[0], -s]

        def see(self, context: Any) -> Any:
            return {self.seen: [1.0]}

    system = Grazing()
    context = system.create_default_context()
    context.set("level", 1.0 - 1e-8)
    with pytest.raises(EvaluationError, match=r"'grazing\.see', which only graze") as e:
        fx.gradient(system, m.final("x[0]"), "level", 3.0, context=context)
    assert "differences" in str(e.value)
    context.set("level", 0.9)
    found = fx.gradient(system, m.final("x[0]"), "level", 3.0, context=context)
    expected, _ = differences(m.final("x[0]"), system, 3.0, {"level": 1.0}, context)
    assert found["level"] == pytest.approx(expected, rel=1e-6)


@needs_llvmlite
def test_events_that_coincide_are_refused() -> None:
    """A small change of a parameter changes their order, or whether they take place."""
    final = m.final("x[0]")
    for events, t_final, metric in (
        ([("tick", "push"), ("crossing", "hold")], 0.8, m.final("x[1]")),
        ([("crossing", "push")], 0.5, final),
        ([("crossing", "hold")], 0.5, final),
        ([("crossing", "hold")], 0.8, final - m.at("x[0]", 0.5)),
        ([("crossing", "hold")], 0.8, m.rms("x[0]", start=0.5)),
    ):
        ramp = Ramp(events)
        context = ramp.create_default_context()
        context.set("p", 0.3)
        with pytest.raises(EvaluationError, match=r"at t = 0\.5 s: expected events"):
            fx.gradient(ramp, metric, ["rate"], t_final, context=context)


def test_an_integrator_that_begins_at_a_limit() -> None:
    builder = fx.DiagramBuilder("limited")
    limits: dict[str, Any] = {"lower": -0.3, "upper": 0.6, "initial": -0.3}
    builder.add_all(fx.Sine("s", amplitude=2.0, frequency=3.0), fx.Integrator("i", **limits))
    builder.connect_chain("s", "i")
    limited = builder.build()
    found = fx.gradient(limited, m.rms("i.y"), "s.amplitude", 2.0)
    context = limited.create_default_context()
    expected, _ = differences(m.rms("i.y"), limited, 2.0, {"s.amplitude": 1.0}, context)
    assert found["s.amplitude"] == pytest.approx(expected, rel=1e-5)


def test_metrics_without_a_derivative_are_named() -> None:
    ball = Ball()
    for metric, words in (
        (m.step("overshoot", "y"), r"step\(overshoot, y\)"),
        (m.of(lambda t, y: y.max(), "y"), r"of\(<lambda>, y\)"),
        (m.of(lambda result: 1.0) + m.final("y"), "whole results"),
        (m.first_crossing("y", 5.0), r"first_crossing\(y, 5, either\)"),
    ):
        with pytest.raises(EvaluationError, match=words):
            fx.gradient(ball, metric, "g", 1.0)
    system = Hybrid(["ticks"])
    with pytest.raises(ValueRefusedError, match="discrete state 'held'"):
        fx.gradient(system, m.final("held"), "w", 1.0)


def test_what_has_no_gradient_is_refused() -> None:
    ball = Ball()
    with pytest.raises(ValueRefusedError, match="an end after"):
        fx.gradient(ball, m.final("y"), "g", 0.0)
    with pytest.raises(ValueRefusedError, match="'RK45'"):
        fx.gradient(ball, m.final("y"), "g", 1.0, method="Rodas5P")
    with pytest.raises(UnknownNameError):
        fx.gradient(ball, m.final("y"), "gravity", 1.0)
    builder = fx.DiagramBuilder("steps")
    builder.add_all(fx.Step("step", at=0.5), fx.FirstOrderLag("lag", 0.5), fx.Quantizer("q", 0.1))
    builder.connect_chain("step", "lag", "q")
    with pytest.raises(EvaluationError, match=r"'q', whose output jumps"):
        fx.gradient(builder.build(), m.final("lag.y"), "lag.time_constant", 1.0)


def test_slopes_that_are_not_finite_are_named() -> None:
    class Root(fx.LeafSystem):
        """ẋ = √(p (1 + x)) with p = 0."""

        def __init__(self) -> None:
            super().__init__("root")
            self.p = self.declare_numeric_parameter("p", 0.0)
            self.x = self.declare_continuous_state(z=1)

        def calc_time_derivatives(self, context: Any) -> Any:
            return [np.sqrt(self.p(context) * (1.0 + self.x(context)[0]))]

    with pytest.raises(NonFiniteError, match="finite derivatives"):
        fx.gradient(Root(), m.final("x[0]"), "p", 1.0)


def test_a_jump_of_the_equations_is_warned_of() -> None:
    class Dry(fx.LeafSystem):
        """q″ = -q - f sign(v), with no event."""

        def __init__(self) -> None:
            super().__init__("dry")
            self.f = self.declare_numeric_parameter("f", 0.3)
            self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.1])

        def calc_time_derivatives(self, context: Any) -> Any:
            q, v = self.x(context)
            return [v, -q - self.f(context) * np.sign(v)]

    with pytest.warns(UserWarning, match="crosses a jump of the equations"):
        fx.gradient(Dry(), m.final("x[0]"), "f", 5.0, rtol=1e-6)
