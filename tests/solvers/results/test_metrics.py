"""Metrics of sampled signals: their numbers, their labels, and what can be made of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import flexure as fx
from flexure import metrics
from flexure.errors import UnknownNameError, ValueRefusedError
from tests.support.tiers import for_each

T = np.linspace(0.0, 10.0, 20001)
WAVES = {"y": np.array([np.sin(T), 2.0 * np.cos(T)]), "r": np.array([np.cos(T), np.cos(T)])}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.final("y"), [np.sin(10.0), 2.0 * np.cos(10.0)]),
        (metrics.at("y", 2.5), [np.sin(2.5), 2.0 * np.cos(2.5)]),
        (metrics.maximum("y"), [1.0, 2.0]),
        (metrics.minimum("y", start=1.0, end=3.0), [np.sin(3.0), 2.0 * np.cos(3.0)]),
        (metrics.peak("y", start=4.0, end=5.0), [1.0, -2.0 * np.cos(4.0)]),
        (metrics.integral("y"), [1.0 - np.cos(10.0), 2.0 * np.sin(10.0)]),
        (metrics.mean("y", end=np.pi), [2.0 / np.pi, 0.0]),
        (metrics.rms("y", start=np.pi, end=3.0 * np.pi), [np.sqrt(0.5), np.sqrt(2.0)]),
        (metrics.total_variation("y", end=2.0 * np.pi), [4.0, 8.0]),
        (metrics.first_crossing("y", 0.5, "rising"), [np.pi / 6.0, 2.0 * np.pi - np.arccos(0.25)]),
        (metrics.first_crossing("y", 0.5, "falling"), [5.0 * np.pi / 6.0, np.arccos(0.25)]),
        (metrics.first_crossing("y", 1.5), [np.nan, np.arccos(0.75)]),
        (metrics.iae("y", end=2.0 * np.pi), [4.0, 8.0]),
        (metrics.ise("y", target=1.0, end=2.0 * np.pi), [3.0 * np.pi, 6.0 * np.pi]),
        (metrics.ise("y", target="r", end=2.0 * np.pi), [2.0 * np.pi, np.pi]),
        (metrics.itae("y", end=np.pi), [np.pi, 2.0 * np.pi]),
    ],
    ids=lambda item: item.label if isinstance(item, metrics.Metric) else "",
)
def test_metrics_of_sines_are_those_of_their_integrals(
    metric: metrics.Metric, expected: list[float]
) -> None:
    found = metric.evaluate(T, WAVES)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_record_that_jumps_is_measured_on_both_sides_of_the_jump() -> None:
    t, y = [0.0, 1.0, 1.0, 3.0], {"y": [[0.0, 1.0, 5.0, 5.0]]}
    assert metrics.total_variation("y").evaluate(t, y) == 5.0
    assert metrics.integral("y").evaluate(t, y) == 10.5
    assert metrics.at("y", 1.0).evaluate(t, y) == 5.0
    assert metrics.first_crossing("y", 3.0).evaluate(t, y) == 1.0
    assert metrics.minimum("y", start=1.0).evaluate(t, y) == 5.0
    assert metrics.maximum("y", end=1.0).evaluate(t, y) == 1.0


@pytest.mark.parametrize("kind", [metrics.iae, metrics.ise, metrics.itae])
def test_integrals_of_errors_are_exact_for_straight_lines(kind: object) -> None:
    """Against a fine grid, of which each point lies on the same lines."""
    rng = np.random.default_rng(3)
    t, y = np.sort(rng.uniform(0.0, 4.0, 12)), rng.normal(0.0, 1.0, (5, 12))
    fine = np.unique(np.concatenate([t, np.linspace(t[0], t[-1], 400_001)]))
    e = np.array([np.interp(fine, t, row) for row in y]) - 0.3
    weight = fine - t[0] if kind is metrics.itae else 1.0
    integrand = e**2 if kind is metrics.ise else weight * np.abs(e)
    expected = np.trapezoid(integrand, fine, axis=1)
    found = kind("y", target=0.3).evaluate(t, {"y": y})  # type: ignore[operator]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_runs_that_failed_give_nan_and_leave_the_others_alone() -> None:
    y = np.vstack([WAVES["y"], np.full(len(T), np.nan)])
    for metric in (metrics.rms("y"), metrics.itae("y"), metrics.of(lambda t, y: y[3], "y")):
        found = metric.evaluate(T, {"y": y})
        np.testing.assert_array_equal(found, [*metric.evaluate(T, WAVES), np.nan])


def test_a_run_that_ended_early_has_no_extremes_of_the_time_after() -> None:
    builder = fx.DiagramBuilder("filling")
    builder.add_all(fx.Ramp("level", slope=1.0, initial=-2.0), fx.StopWhen("full", "it is full"))
    builder.connect_chain("level", "full")
    extremes = {"top": metrics.maximum, "low": metrics.minimum, "peak": metrics.peak}
    asked = {name: metric("level.y") for name, metric in extremes.items()}
    early = {f"early {name}": metric("level.y", end=1.0) for name, metric in extremes.items()}
    swept = fx.sweep(builder.build(), {"level.slope": [1.0, 0.1]}, 4.0, metrics=asked | early)
    found = [swept.metrics[name] for name in (*asked, *early)]
    expected = [
        (np.nan, -1.6),
        (np.nan, -2.0),
        (np.nan, 2.0),
        (-1.0, -1.9),
        (-2.0, -2.0),
        (2.0, 2.0),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.full
def test_the_numbers_of_a_run_do_not_depend_on_its_neighbors() -> None:
    rng = np.random.default_rng(5)
    t, y = np.linspace(0.0, 3.0, 1001), rng.normal(0.0, 1.0, (300, 1001)).cumsum(axis=1)
    some = [metrics.rms("y"), metrics.itae("y", target=0.1), metrics.integral("y", end=1.234)]
    figures = [metrics.step(name, "y", final=50.0) for name in ("overshoot", "settling_time")]
    for metric in [*some, *figures]:
        whole = metric.evaluate(t, {"y": y})
        single = np.concatenate([metric.evaluate(t, {"y": row[np.newaxis]}) for row in y])
        np.testing.assert_array_equal(whole, single)


def test_metrics_are_computed_with_like_numbers_and_spelled_like_programs() -> None:
    e, u = metrics.iae("e"), metrics.total_variation("u")
    samples = {"e": [[1.0, 1.0]], "u": [[0.0, 3.0]]}
    for metric, label, expected in [
        (e + 0.1 * u, "iae(e) + 0.1 * total_variation(u)", 2.3),
        (2 - (e - u) / 4.0, "2 - (iae(e) - total_variation(u)) / 4", 2.25),
        (-(e + u) * np.float64(2.0), "-(iae(e) + total_variation(u)) * 2", -10.0),
        (np.float64(6.0) / abs(e - u), "6 / abs(iae(e) - total_variation(u))", 6.0),
        (metrics.largest(e, u, 1.0) * 2, "largest(iae(e), total_variation(u), 1) * 2", 6.0),
        (metrics.smallest(e, u) / (e * u), "smallest(iae(e), total_variation(u))", 1.0 / 3.0),
    ]:
        assert metric.label.startswith(label)
        assert metric.evaluate([0.0, 2.0], samples) == pytest.approx([expected])
        for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
            assert twin.evaluate([0.0, 2.0], samples) == pytest.approx([expected])
    assert (e + u + e).signals == ("e", "u")
    assert e.named("error").label == "error"


def test_a_comparison_is_a_constraint() -> None:
    u, e = metrics.peak("u"), metrics.rms("e")
    for bounded, label, excess in [
        (u <= 5.0, "peak(u) <= 5", [0.0, 2.0, np.nan]),
        (u <= 5.0, "peak(u) <= 5", [0.0, 2.0, np.nan]),
        (u >= np.float64(4.0), "peak(u) >= 4", [1.0, 0.0, np.nan]),
    ]:
        assert bounded.label == label
        np.testing.assert_array_equal(bounded.excess([3.0, 7.0, np.nan]), excess)
        assert bounded.holds([3.0, 7.0, np.nan]).tolist() == [each == 0.0 for each in excess]
    assert (u <= e).label == "peak(u) <= rms(e)"
    with pytest.raises(ValueRefusedError, match="Write two constraints"):
        assert 1.0 <= u <= 5.0


@for_each(
    ("make", "told"),
    [
        (lambda: metrics.step("overshot", "y"), "Did you mean 'overshoot'"),
        (lambda: metrics.rms("y", start=2.0, end=1.0), "expected a start before the end"),
        (lambda: metrics.first_crossing("y", 0.0, "up"), "direction to be one of"),  # type: ignore[arg-type]
        (lambda: metrics.at("y", 11.0).evaluate(T, WAVES), "within the runs, from 0 to 10 s"),
        (lambda: metrics.rms("z").evaluate(T, WAVES), "expected samples of 'z'"),
        (lambda: metrics.rms("y").evaluate(T[::-1], WAVES), "expected ascending times"),
        (lambda: metrics.rms("y").evaluate(T[:3], WAVES), r"shape \(N, 3\)"),
        (lambda: metrics.rms("x").evaluate([0, 1], {"x": np.ones((1, 2, 2))}), r"as in 'x\[0\]'"),
        (lambda: metrics.largest(1.0), "expected metrics"),
        (lambda: metrics.of(len).evaluate(T, {}), "Call it with the result"),
        (lambda: metrics.rms("y") + "z", "Cannot compute with"),
    ],
)
def test_what_makes_no_metric_is_refused(make: object, told: str) -> None:
    with pytest.raises((UnknownNameError, ValueRefusedError), match=told):
        make()  # type: ignore[operator]


def test_a_metric_of_a_result_is_that_of_its_signals() -> None:
    lag = fx.FirstOrderLag("lag", 0.5)
    context = lag.create_default_context()
    context.set("u", 2.0)
    result = fx.simulate(lag, 4.0, context=context, rtol=1e-9)
    exact = 2.0 * 0.5 * (1.0 - np.exp(-8.0))
    assert metrics.iae("y", target=2.0)(result) == pytest.approx(exact, rel=1e-5)
    info = result.step_info("y", target=2.0)
    assert metrics.step("rise_time", "y", target=2.0)(result) == info.rise_time
    both = metrics.of(lambda result: result.statistics.steps) + metrics.final("y")
    assert both(result) == pytest.approx(result.statistics.steps + 2.0 * (1.0 - np.exp(-8.0)))


def test_a_break_time_a_spacing_before_a_tick_ends_the_search_for_pieces() -> None:
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(fx.Step("source", at=0.3), fx.ZeroOrderHold("hold", 0.05), fx.Integrator("sum"))
    builder.connect_chain("source", "hold", "sum")
    result = fx.simulate(builder.build(), 1.0)  # 6 * 0.05 is the next number after 0.3
    assert fx.metrics.total_variation("source.y")(result) == 1.0
    np.testing.assert_allclose(fx.metrics.maximum("sum.y")(result), 0.7, rtol=1e-12)


def test_a_signal_that_jumps_within_a_step_has_no_extremes_but_its_own() -> None:
    builder = fx.DiagramBuilder("encoder")
    builder.add_all(fx.Sine("swing", amplitude=2.1), fx.Quantizer("steps", 0.3))
    builder.connect_chain("swing", "steps")
    run = fx.simulate(builder.build(), 2.0 * np.pi)
    levels = metrics.maximum("steps.y"), metrics.minimum("steps.y"), metrics.peak("steps.y")
    assert [level(run) for level in levels] == [2.1, -2.1, 2.1]
    assert metrics.total_variation("steps.y")(run) == pytest.approx(8.4, rel=1e-12)
    crossing = metrics.first_crossing("steps.y", 0.5, "falling")(run)
    assert crossing == pytest.approx(np.pi - np.arcsin(0.45 / 2.1), abs=1e-6)
