"""Derivatives where jumps of the equations move, and where several events take place at once."""

from __future__ import annotations

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

m = fx.metrics


def stepped(source: fx.System) -> fx.Diagram:
    """Return a lag of half a second behind a source."""
    builder = fx.DiagramBuilder("stepped")
    builder.add_all(source, fx.FirstOrderLag("lag", 0.5))
    builder.connect_chain(source, "lag")
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
        found = fx.gradient(metric, system, 1.0, ["step.at", "step.to"])
        assert found["step.at"] == pytest.approx(expected, abs=1e-7), metric.label


def test_edges_of_a_wave_have_derivatives() -> None:
    system = stepped(fx.Square("wave", period=0.7, duty=0.4, delay=0.1))
    directions = {"wave.period": 0.3, "wave.duty": -0.4, "wave.delay": 0.2}
    context, metric = system.create_default_context(), m.rms("lag.y")
    expected, _ = differences(metric, system, 2.7, directions, context)
    found = fx.gradient(metric, system, 2.7, directions)
    assert along(found, directions) == pytest.approx(expected, rel=1e-6)
    final = m.final("lag.y")
    other = fx.gradient(final, system, 2.7, directions)
    forward = fx.parameter_sensitivity(system, 2.7, directions)
    for way in directions:
        assert forward[way][0] == pytest.approx(other[way], rel=1e-5)


def test_jumps_that_move_are_refused_where_something_reads_their_instant() -> None:
    system = stepped(fx.Step("step", at=0.5))
    for t_final, metric in ((0.5, m.final("lag.y")), (1.0, m.rms("lag.y", start=0.5))):
        with pytest.raises(EvaluationError, match=r"t = 0\.5 s: .*'a jump of the rates'"):
            fx.gradient(metric, system, t_final, "step.at")


def test_sources_that_jump_at_once_are_refused_if_only_one_of_them_moves() -> None:
    builder = fx.DiagramBuilder("two")
    builder.add_all(fx.Step("a", at=0.5), fx.Step("b", at=0.5), fx.Sum("sum", "++"))
    builder.add_all(fx.FirstOrderLag("lag", 0.5))
    for k, name in enumerate("ab"):
        builder.connect(f"{name}.y", f"sum.u{k + 1}")
    builder.connect_chain("sum", "lag")
    with pytest.raises(EvaluationError, match=r"'.*a', '.*b', at once"):
        fx.gradient(m.final("lag.y"), builder.build(), 1.0, "a.at")


def pair(blocks: list[fx.LeafSystem]) -> fx.Diagram:
    """Return blocks that have nothing to do with each other."""
    builder = fx.DiagramBuilder("pair")
    builder.add_all(*blocks)
    return builder.build()


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
        found = fx.gradient(metric, twins, 2.5, ways, context=both, **options)
        other = fx.gradient(m.final("x[0]"), one, 2.5, names, context=alone, **options)
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
    found = fx.gradient(m.final("x[0]"), ramp, 0.8, ["rate", "p", "top"], **options)
    assert [found[k] for k in ("rate", "p", "top")] == pytest.approx([0.8, 0.3, 0.0], abs=1e-8)
    found = fx.gradient(m.final("x[1]"), ramp, 0.8, ["rate", "p", "top"], **options)
    assert [found[k] for k in ("rate", "p", "top")] == pytest.approx([0.0, 0.5, 0.3], abs=1e-8)


def test_a_change_of_mode_beside_large_states_is_not_lost() -> None:
    """An instant behind which a mode differs from what updates give has no derivatives."""
    system = Hybrid(["relay"])
    context = system.create_default_context()
    events = EventSlopes(context, [], "Cannot differentiate")
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
