"""Derivatives where jumps of the equations move, and where several events take place at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError
from flexure.solvers.analysis.sensitivities.event_slopes import EventSlopes, Instant
from flexure.solvers.results.records.history import Snapshot
from tests.solvers.analysis.sensitivities.test_gradients import (
    Hybrid,
    Ramp,
    along,
    differences,
    drawn,
)
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each

m = fx.metrics


def stepped(source: fx.System) -> fx.Diagram:
    """Return a lag of half a second behind a source."""
    builder = fx.DiagramBuilder("stepped")
    builder.add_all(source, fx.FirstOrderLag("lag", 0.5))
    builder.connect(f"{source.name}.y", "lag.u")
    return builder.build()


def test_the_time_of_a_step_has_a_derivative() -> None:
    """A lag behind a step is 1 - e^(-2 (1 - at)), and its integral falls by its end value."""
    system, decay = stepped(fx.Step("step", at=0.5)), np.exp(-1.0)
    for metric, expected in (
        (m.final("lag.y"), -2.0 * decay),
        (m.integral("lag.y"), -(1.0 - decay)),
        (m.integral("step.y"), -1.0),
        (m.first_crossing("step.y", 0.5), 1.0),
    ):
        found = fx.gradient(system, metric, ["step.at", "step.to"], 1.0)
        assert found["step.at"] == pytest.approx(expected, abs=1e-7), metric.label


def test_edges_of_a_wave_have_derivatives() -> None:
    system = stepped(fx.Square("wave", period=0.7, duty=0.4, delay=0.1))
    directions = {"wave.period": 0.3, "wave.duty": -0.4, "wave.delay": 0.2}
    context, metric = system.create_default_context(), m.rms("lag.y")
    expected, _ = differences(metric, system, 2.7, directions, context)
    found = fx.gradient(system, metric, directions, 2.7)
    assert along(found, directions) == pytest.approx(expected, rel=1e-6)
    final = m.final("lag.y")
    other = fx.gradient(system, final, directions, 2.7)
    forward = fx.parameter_sensitivity(system, directions, 2.7)
    for way in directions:
        assert forward[way][0] == pytest.approx(other[way], rel=1e-5)


@needs_llvmlite
@pytest.mark.parametrize("method", ["RK45", "DOP853", "ESDIRK4"])
def test_bends_at_break_times_have_exact_derivatives(method: Any) -> None:
    """A lag behind a ramp that stops gains 1 - e^(-2 (1 - stop)); corners of a move also bend."""
    system, decay = stepped(fx.Ramp("ramp", stop=0.5)), np.exp(-1.0)
    for metric, expected in (
        (m.final("lag.y"), 1.0 - decay),
        (m.integral("lag.y"), 0.5 * decay),
        (m.integral("ramp.y"), 0.5),
    ):
        found = fx.gradient(system, metric, "ramp.stop", 1.0, method=method)
        assert found["ramp.stop"] == pytest.approx(expected, abs=1e-7), metric.label
    move = stepped(fx.TrapezoidalProfile("move", at=0.2, to=0.7, max_acceleration=3.0))
    ways = [f"move.{name}" for name in ("at", "to", "max_velocity", "max_acceleration")]
    found = fx.gradient(move, m.final("lag.y"), ways, 1.5, method=method)
    forward = fx.parameter_sensitivity(move, ways, 1.5)
    for way in ways:
        assert found[way] == pytest.approx(forward[way][0], abs=1e-7), way


def test_jumps_that_move_are_refused_where_something_reads_their_instant() -> None:
    system = stepped(fx.Step("step", at=0.5))
    for t_final, metric in ((0.5, m.final("lag.y")), (1.0, m.rms("lag.y", start=0.5))):
        with pytest.raises(EvaluationError, match=r"t = 0\.5 s: .*'a jump of the rates'"):
            fx.gradient(system, metric, "step.at", t_final)
    system = stepped(fx.Step("step", at=0.0))
    with pytest.raises(EvaluationError, match=r"t = 0 s: .*'a jump of the rates'"):
        fx.gradient(system, m.final("lag.y"), "step.at", 1.0)
    with pytest.raises(EvaluationError, match="no beginning, update or sample where a jump moves"):
        fx.parameter_sensitivity(system, "step.at", 1.0)
    assert fx.gradient(system, m.final("lag.y"), "step.to", 1.0)["step.to"] > 0.0


def sampled(source: fx.System) -> fx.Diagram:
    """Return an integrator behind a hold with ticks every 0.1 s."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(source, fx.ZeroOrderHold("hold", period=0.1), fx.Integrator("sum"))
    builder.connect(f"{source.name}.y", "hold.u")
    builder.connect_chain("hold", "sum")
    return builder.build()


@pytest.mark.parametrize(
    "source",
    [
        fx.MinimumJerkProfile("move", at=0.3, to=0.7),
        fx.TrapezoidalProfile("move", at=0.3, max_velocity=0.5),
    ],
    ids=["least jerk", "trapezoid"],
)
def test_ticks_at_corners_and_in_the_middle_of_moves_have_derivatives(source: Any) -> None:
    """A later begin changes what is held by the velocity at each tick."""
    system, context = sampled(source), source.create_default_context()
    expected = 0.0
    for k in range(20):
        context.time = 0.1 * k
        expected -= 0.1 * source.velocity(context)[0]
    found = fx.gradient(system, m.final("sum.y"), "move.at", 2.0, rtol=1e-10)
    assert found["move.at"] == pytest.approx(expected, rel=1e-8)
    forward = fx.parameter_sensitivity(system, "move.at", 2.0, outputs=["sum.y"])
    assert forward["move.at"][-1] == pytest.approx(expected, rel=1e-6)


@for_each("at", [0.5, 0.3])
def test_ticks_that_read_a_jump_or_a_bend_that_moves_are_refused(at: float) -> None:
    """0.3 is a rounding error before the tick."""
    for source, way in (
        (fx.Step("source", at=at), "source.at"),
        (fx.Ramp("source", stop=at), "source.stop"),
    ):
        system = sampled(source)
        with pytest.raises(EvaluationError, match=rf"t = {at} s: expected events one after"):
            fx.gradient(system, m.final("sum.y"), way, 0.95)
        with pytest.raises(EvaluationError, match=rf"t = {at} s: expected no beginning, update"):
            fx.parameter_sensitivity(system, way, 0.95)


def test_runs_may_end_at_a_jump_and_a_tick() -> None:
    """The tick does not take place. Everything is in proportion to the amplitude."""
    system = sampled(fx.Square("wave", period=0.5))
    for signal in ("wave.y", "hold.y", "sum.y"):
        for metric in (m.final(signal), m.rms(signal)):
            found = fx.gradient(system, metric, "wave.amplitude", 1.0)
            assert found["wave.amplitude"] == pytest.approx(found.value, abs=1e-7), metric.label


@pytest.mark.full
def test_runs_of_waves_between_ticks_have_derivatives_also_where_they_nearly_coincide() -> None:
    """At 199.95 s an edge is a rounding error beside a tick, with a step of that length."""
    builder = fx.DiagramBuilder("waves")
    builder.add_all(fx.Square("wave", period=0.31, duty=0.4), fx.ZeroOrderHold("hold", period=0.05))
    builder.add_all(fx.FirstOrderLag("lag", 0.1))
    builder.connect_chain("wave", "hold", "lag")
    found = fx.gradient(builder.build(), m.rms("lag.y"), "wave.amplitude", 200.0)
    assert found["wave.amplitude"] == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("kind", [fx.Sum, fx.Product])
def test_sources_that_jump_at_once(kind: Any) -> None:
    """Their sum has derivatives by the time of each, and their product has a kink."""
    builder = fx.DiagramBuilder("two")
    builder.add_all(fx.Step("a", at=0.5), fx.Step("b", at=0.5, to=3.0), kind("both"))
    builder.add_all(fx.FirstOrderLag("lag", 0.5))
    builder.connect("a.y", "both.u1")
    builder.connect("b.y", "both.u2")
    builder.connect_chain("both", "lag")
    system, ways, metric = builder.build(), ["a.at", "b.at"], m.final("lag.y")
    if kind is fx.Product:
        together = "several at once, whose order matters"
        with pytest.raises(EvaluationError, match=together):
            fx.gradient(system, metric, "a.at", 1.0)
        with pytest.raises(EvaluationError, match=together):
            fx.parameter_sensitivity(system, "a.at", 1.0)
        return
    expected = -2.0 * np.exp(-1.0) * np.array([1.0, 3.0])
    for chosen in (ways, ways[:1], ways[1:]):
        found = fx.gradient(system, metric, chosen, 1.0)
        forward = fx.parameter_sensitivity(system, chosen, 1.0)
        for way in chosen:
            assert found[way] == pytest.approx(expected[ways.index(way)], rel=1e-7)
            assert forward[way][0] == pytest.approx(expected[ways.index(way)], rel=1e-6)


def test_a_relay_turns_where_its_input_jumps() -> None:
    """The lag behind it is 1 - e^(-2 (1 - at)), as behind the step itself."""
    builder = fx.DiagramBuilder("switched")
    builder.add_all(
        fx.Step("step", at=0.5), fx.Relay("relay", 0.7, 0.2), fx.FirstOrderLag("lag", 0.5)
    )
    builder.connect_chain("step", "relay", "lag")
    system, decay = builder.build(), np.exp(-1.0)
    for metric, expected in (
        (m.final("lag.y"), -2.0 * decay),
        (m.integral("relay.y"), -1.0),
        (m.integral("lag.y"), decay - 1.0),
    ):
        found = fx.gradient(system, metric, "step.at", 1.0)
        assert found["step.at"] == pytest.approx(expected, abs=1e-7), metric.label


def test_a_sample_at_a_jump_that_moves_is_refused() -> None:
    """The number that is held is 0 or 1, as the step is behind the tick or before it."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(fx.Step("step", at=0.5), fx.ZeroOrderHold("hold", 0.25), fx.Integrator("sum"))
    builder.connect_chain("step", "hold", "sum")
    system = builder.build()
    with pytest.raises(EvaluationError, match=r"t = 0\.5 s: expected events one after the other"):
        fx.gradient(system, m.final("sum.y"), "step.at", 1.0)
    with pytest.raises(EvaluationError, match="update or sample where a jump moves"):
        fx.parameter_sensitivity(system, "step.at", 1.0)


def pair(blocks: list[fx.LeafSystem]) -> fx.Diagram:
    """Return blocks that have nothing to do with each other."""
    builder = fx.DiagramBuilder("pair")
    builder.add_all(*blocks)
    return builder.build()


@pytest.mark.full
@needs_llvmlite
def test_events_at_once_of_blocks_apart_have_the_derivatives_of_each() -> None:
    """Whatever the order in which rounding lets them take place."""
    one = Hybrid(["relay", "reset", "ticks"])
    for seed in (3, 5):
        twins = pair([Hybrid(["relay", "reset", "ticks"], name) for name in "ab"])
        alone, both = drawn(one, seed), twins.create_default_context()
        for name in [*one.p, "x"]:
            for twin in "ab":
                both.set(f"{twin}.{name}", alone.get(name))
        names = ["A", "w", "band", "level", "k", "x"]
        ways = [f"{twin}.{name}" for twin in "ab" for name in names]
        metric = m.final("a.x[0]") + 2.0 * m.final("b.x[0]")
        options: dict[str, Any] = {"rtol": 1e-9, "method": "RK45"}
        found = fx.gradient(twins, metric, ways, 2.5, context=both, **options)
        other = fx.gradient(one, m.final("x[0]"), names, 2.5, context=alone, **options)
        assert other.result.statistics.witness_events > 0
        for name in names:
            for twin, share in (("a", 1.0), ("b", 2.0)):
                np.testing.assert_allclose(
                    found[f"{twin}.{name}"], share * other[name], rtol=1e-5, atol=1e-6
                )


def test_a_tick_and_a_crossing_at_once() -> None:
    """With x₁ += p x₀ at x₀ = top, and with f₀ += p from a tick on, which is at the same time."""
    ramp = Ramp([("tick", "hold"), ("crossing", "push")])
    context = ramp.create_default_context()
    context.set("p", 0.3)
    options: dict[str, Any] = {"context": context}
    found = fx.gradient(ramp, m.final("x[0]"), ["rate", "p", "top"], 0.8, **options)
    assert [found[k] for k in ("rate", "p", "top")] == pytest.approx([0.8, 0.3, 0.0], abs=1e-8)
    found = fx.gradient(ramp, m.final("x[1]"), ["rate", "p", "top"], 0.8, **options)
    assert [found[k] for k in ("rate", "p", "top")] == pytest.approx([0.0, 0.5, 0.3], abs=1e-8)


class Bell(fx.LeafSystem):
    """ẋ = (rate + m, x₀ - 0.3 x₁ + m), where m turns from 0 to 1 and x₁ ← x₁/2 + p, at a time.

    That is when x₀ rises through a level, at ticks, or at a given time, where x₁ stays.
    """

    def __init__(self, name: str, kind: str, at: float) -> None:
        super().__init__(name)
        numbers = {"rate": 1.0, "top": at, "p": 0.7, "at": at}
        self.p = {k: self.declare_numeric_parameter(k, value) for k, value in numbers.items()}
        self.x = self.declare_continuous_state(z=2)
        self.mode = self.declare_discrete_state("mode", 0.0)
        self.y = self.declare_vector_output("y", 1, lambda c: self.x(c)[:1] + self.mode(c))
        self.breaks = kind == "break"
        if kind == "crossing":
            watch = fx.diagrams.Witness(lambda c: self.x(c)[0] - self.p["top"](c), "rising")
            self.declare_unrestricted_update(self.ring, watch)
        if kind == "tick":
            self.declare_unrestricted_update(self.ring, fx.diagrams.Periodic(at, offset=at))

    def calc_time_derivatives(self, context: Any) -> Any:
        turned, x = self.mode(context)[0], self.x(context)
        if self.breaks:
            turned = np.where(context.time >= self.p["at"](context), 1.0, 0.0)
        return [self.p["rate"](context) + turned, x[0] - 0.3 * x[1] + turned]

    def calc_next_break_time(self, context: Any) -> Any:
        at = self.p["at"](context)
        return np.where(context.time < at, at, np.inf) if self.breaks else np.inf

    def ring(self, context: Any) -> Any:
        x = self.x(context)
        return {self.x: [x[0], 0.5 * x[1] + self.p["p"](context)], self.mode: [1.0]}


def check_bells(*kinds: str, at: float, rates: Sequence[float]) -> None:
    """Compare gradients with differences where all of the bells ring at once but for rounding."""
    system = pair([Bell(f"b{k}", kind, at) for k, kind in enumerate(kinds)])
    context, directions = system.create_default_context(), dict[str, Any]()
    for k, (kind, rate) in enumerate(zip(kinds, rates, strict=True)):
        context.set(f"b{k}.rate", rate)
        context.set(f"b{k}.top", rate * at)
        directions |= {f"b{k}.rate": 0.3 - 0.2 * k, f"b{k}.top": 0.4, f"b{k}.p": -0.5 + 0.3 * k}
        directions |= {f"b{k}.at": 0.2 - 0.3 * k} if kind == "break" else {}
    finals = [(k + 1.0) * m.final(f"b{k}.x[1]") for k in range(len(kinds))]
    for metric in (finals[0] + m.largest(*finals), m.rms("b0.y")):
        found = fx.gradient(system, metric, directions, 1.7 * at, context=context, rtol=1e-10)
        expected, _ = differences(metric, system, 1.7 * at, directions, context)
        assert along(found, directions) == pytest.approx(expected, rel=1e-5, abs=1e-6), kinds


@needs_llvmlite
def test_a_crossing_beside_a_jump_that_moves() -> None:
    check_bells("crossing", "break", at=0.1 * 3.0, rates=(0.7, 1.0))


@pytest.mark.full
@needs_llvmlite
def test_all_kinds_of_instants_that_coincide() -> None:
    """Rates and times whose products rounding moves to one side or the other."""
    kinds = itertools.product(("crossing", "tick", "break"), repeat=3)
    for k, each in enumerate(kinds):
        if each.count("break") < 2:
            rates = [(1.0, 0.3, 0.7, 1.1, 3.0)[(k + 2 * j) % 5] for j in range(3)]
            check_bells(*each, at=(0.5, 0.3, 0.7, 0.1 * 3.0)[k % 4], rates=rates)


def test_an_order_that_matters_is_refused() -> None:
    """The same bell rings at a crossing and at a tick."""

    class Heard(Bell):
        """A bell with two clappers."""

        def __init__(self) -> None:
            super().__init__("heard", "crossing", 0.5)
            self.declare_unrestricted_update(self.ring, fx.diagrams.Periodic(0.5, offset=0.5))

    system = Heard()
    with pytest.raises(EvaluationError, match=r"t = 0\.5 s: expected events one after the other"):
        fx.gradient(system, m.final("x[1]"), ["rate", "top"], 0.8)


def test_a_change_of_mode_beside_large_states_is_not_lost() -> None:
    """An instant behind which a mode differs from what updates give has no derivatives."""
    system = Hybrid(["relay"])
    context = system.create_default_context()
    events = EventSlopes(context, [], "Cannot differentiate", [])
    for size in (1.0, 1e7, 1e9):
        context.continuous_state = [0.1 * size, size, -size]
        before = Instant(0.0, context.store.x, Snapshot.of(context))
        turned = context.clone()
        turned.set("mode", -1.0)
        after = Instant(0.0, context.store.x, Snapshot.of(turned))

        def rates(time: float, x: Any) -> Any:
            return np.ones(3)

        options: dict[str, Any] = {"moving": False, "shift": None}
        events.cross(before, before, rates, np.abs, **options)
        with pytest.raises(EvaluationError, match="which lead elsewhere"):
            events.cross(before, after, rates, np.abs, **options)


@for_each(
    "metric",
    [m.iae("step.y", start=0.5), m.mean("step.y", end=0.5), m.at("step.y", 0.5)],
)
def test_a_jump_that_moves_over_an_end_of_a_metric_has_no_derivative(metric: Any) -> None:
    """Nothing else depends on it: the rates of the lag do not jump there."""
    builder = fx.DiagramBuilder("apart")
    builder.add_all(fx.Step("step", at=0.5, initial=-0.3), fx.Constant("one", 1.0))
    builder.add(fx.FirstOrderLag("lag", time_constant=1.0))
    builder.connect("one.y", "lag.u")
    apart = builder.build()
    with pytest.raises(EvaluationError, match=r"at t = 0\.5 s: expected events apart from"):
        fx.gradient(apart, metric, "step.at", 1.0)
    assert np.isfinite(fx.gradient(apart, metric, "step.to", 1.0)["step.to"])


@for_each("metric", [m.rms("lag.y"), m.iae("lag.y"), m.peak("lag.y")])
def test_metrics_at_a_kink_have_the_derivative_zero(metric: Any) -> None:
    builder = fx.DiagramBuilder("still")
    builder.add_all(fx.Constant("nothing", 0.0), fx.FirstOrderLag("lag", time_constant=1.0))
    builder.connect_chain("nothing", "lag")
    assert fx.gradient(builder.build(), metric, "nothing.value", 1.0)["nothing.value"] == 0.0


@for_each(
    ("metric", "expected"),
    [
        (m.maximum("limit.y"), [1.0, 0.0, 0.0]),
        (m.minimum("limit.y"), [0.0, 1.0, 0.0]),
        (m.peak("limit.y"), [1.0, 0.0, 0.0]),
        (m.total_variation("limit.y"), [4.0, -3.0, 0.0]),
    ],
)
def test_a_signal_at_its_limits_does_not_depend_on_what_comes_in(
    metric: Any, expected: list[float]
) -> None:
    builder = fx.DiagramBuilder("limited")
    sine, limit = fx.Sine("sine", 1.3, 2.0), fx.Saturation("limit", -0.7, 1.0)
    builder.add_all(sine, limit, fx.FirstOrderLag("lag", time_constant=0.3))
    builder.connect_chain("sine", "limit", "lag")
    paths = ["limit.upper", "limit.lower", "sine.amplitude"]
    found = fx.gradient(builder.build(), metric, paths, 5.9)
    np.testing.assert_allclose([found[path] for path in paths], expected, atol=1e-9)
