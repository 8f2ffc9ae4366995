"""Delay lines and Padé delays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import flexure as fx
from flexure.blocks.linear_systems.delays import PadeDelay, TimeDelay
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.solvers.native.programs.method_programs import METHODS
from tests.support.native.javascript_runs import simulate_all
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each, thinned

Tick = Callable[[fx.Context], None]
Signal = Callable[[float], Any]


def outputs(
    block: TimeDelay,
    tick: Tick,
    signal: Signal,
    times: list[float],
    context: fx.Context | None = None,
) -> Any:
    """Feed a delay line with a signal from t = 0 on and read it at increasing times."""
    context = block.create_default_context() if context is None else context
    ticks, found = 0, []
    for time in times:
        while ticks * block.period <= time:
            context.time = ticks * block.period
            block.u.fix(context, signal(context.time))
            tick(context)
            ticks += 1
        context.time = time
        found.append(block.y.eval(context))
    return np.array(found)


@pytest.mark.parametrize("delay", [0.1, 0.25, 0.3, 0.7001, 1.0])
def test_straight_lines_are_delayed_without_error(tick: Tick, delay: float) -> None:
    block = TimeDelay("pipe", delay, 0.1, size=2)
    times = np.linspace(1.1, 3.0, 40)
    found = outputs(block, tick, lambda t: np.array([2.0 * t - 1.0, -t]), list(times))
    late = times - delay
    np.testing.assert_allclose(found, np.stack([2.0 * late - 1.0, -late], axis=1), atol=1e-12)


@pytest.mark.parametrize("period", [0.1, 0.05])
def test_curves_are_delayed_within_the_stated_error(tick: Tick, period: float) -> None:
    omega = 3.0
    block = TimeDelay("pipe", 0.33, period)
    times = np.linspace(0.5, 4.0, 301)
    found = outputs(block, tick, lambda t: np.sin(omega * t), list(times))[:, 0]
    error = np.abs(found - np.sin(omega * (times - 0.33))).max()
    bound = period**2 / 8.0 * omega**2
    assert 0.9 * bound < error <= bound


def test_before_anything_arrives_the_output_is_the_initial_value(tick: Tick) -> None:
    block = TimeDelay("pipe", 0.5, 0.1, size=2, initial=[7.0, -1.0])
    found = outputs(block, tick, lambda t: [t + 10.0, t], [0.0, 0.2, 0.39])
    np.testing.assert_allclose(found, [[7.0, -1.0]] * 3, rtol=1e-12)


def test_a_jump_comes_out_as_a_ramp_of_one_period(tick: Tick) -> None:
    block = TimeDelay("pipe", 0.5, 0.1)
    found = outputs(block, tick, lambda t: float(t > 0.95), [1.39, 1.425, 1.45, 1.475, 1.51])
    np.testing.assert_allclose(found[:, 0], [0.0, 0.25, 0.5, 0.75, 1.0], atol=1e-12)


def test_the_output_does_not_jump_at_an_update(tick: Tick) -> None:
    block = TimeDelay("pipe", 0.25, 0.1)
    context = block.create_default_context()
    outputs(block, tick, np.sin, [0.65], context)
    context.time = 0.7
    block.u.fix(context, np.sin(0.7))
    before = block.y.eval(context)
    tick(context)
    np.testing.assert_allclose(block.y.eval(context), before, rtol=1e-13)


def test_the_delay_can_be_set_within_its_bounds(tick: Tick) -> None:
    block = TimeDelay("pipe", 0.2, 0.1, max_delay=1.0)
    context = block.create_default_context()
    block.delay.set(context, 0.95)
    found = outputs(block, tick, lambda t: t, [3.0], context)
    np.testing.assert_allclose(found, [[2.05]], rtol=1e-12)
    for refused in (0.05, 1.1, np.nan):
        with pytest.raises(ValueRefusedError, match="delay"):
            block.delay.set(context, refused)


@for_each("seed", range(20))
def test_the_output_is_on_straight_lines_between_the_samples_at_any_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, period = int(rng.integers(2, 12)), rng.uniform(0.01, 1.0)
    ratio = float(rng.integers(1, count)) if seed % 2 else rng.uniform(1.0, count)
    block = TimeDelay("pipe", ratio * period, period, max_delay=count * period)
    context, samples = block.create_default_context(), rng.normal(size=block.length + 1)
    block.samples.set(context, samples)
    block.sampled_at.set(context, 3.0 * period)
    for elapsed in (0.0, 1.0, *rng.uniform(-2.0, 14.0, 5)):  # far from a tick as well
        context.time = (3.0 + elapsed) * period
        expected = np.interp(ratio - elapsed, np.arange(len(samples)), samples)
        np.testing.assert_allclose(block.y.eval(context), [expected], rtol=0.0, atol=1e-7)


def test_a_delay_line_simulated_in_a_diagram_follows_its_bends() -> None:
    builder = fx.DiagramBuilder("line")
    pipe = TimeDelay("pipe", 0.37, 0.1)
    builder.add_all(fx.Ramp("ramp", slope=2.0), pipe, fx.Integrator("area"))
    builder.connect_chain("ramp", "pipe", "area")
    simulator = fx.Simulator(builder.build(), rtol=1e-10)
    simulator.advance_to(2.0)
    np.testing.assert_allclose(pipe.y.eval(simulator.context), [3.26], rtol=1e-12)
    np.testing.assert_allclose(simulator.context.get("area.y"), [1.63**2], rtol=1e-9)


@pytest.mark.parametrize(
    ("delay", "time", "expected"),
    [
        (0.37, 0.00, 0.07),
        (0.37, 0.06, 0.07),
        (0.37, 0.07, 0.17),
        (0.37, 0.93, 0.97),
        (0.30, 0.00, np.inf),
        (0.10, 0.44, np.inf),
    ],
)
def test_the_output_bends_where_a_sample_passes(delay: float, time: float, expected: float) -> None:
    block = TimeDelay("pipe", delay, 0.1)
    context = block.create_default_context()
    context.time = time
    found = block.calc_next_break_time(context)
    assert found > time
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_delay_line_breaks_loops_and_a_pade_delay_does_not() -> None:
    assert TimeDelay("pipe", 0.5, 0.1).feedthrough == frozenset()
    assert PadeDelay("pipe", 0.5).feedthrough == {("u", "y")}


@for_each(
    ("delay", "period", "options"),
    [
        (0.05, 0.1, {}),
        (np.nan, 0.1, {}),
        (np.inf, 0.1, {}),
        (0.5, 0.0, {}),
        (0.5, -0.1, {}),
        (0.5, 0.1, {"size": 0}),
        (0.5, 0.1, {"initial": [1.0, 2.0]}),
    ],
)
def test_senseless_delay_lines_are_refused(delay: float, period: float, options: Any) -> None:
    with pytest.raises(DeclarationError):
        TimeDelay("pipe", delay, period, **options)


def test_a_delay_beyond_the_longest_is_refused_with_a_way_out() -> None:
    way_out = r"delay.*in \[0\.1, 1\] s; found 2\. Make the TimeDelay with another max_delay"
    with pytest.raises(ValueRefusedError, match=r"pipe\.delay"):
        TimeDelay("pipe", 2.0, 0.1, max_delay=1.0)
    with pytest.raises(ValueRefusedError, match=way_out):
        TimeDelay("pipe", 1.0, 0.1).create_default_context().set("delay", 2.0)


# Runs ----------------------------------------------------------------------------------------

READINGS = [False, "python", pytest.param("native", marks=needs_llvmlite)]


def line(delay: float, period: float) -> fx.Diagram:
    """A ramp that is delayed and integrated: straight lines are delayed without error."""
    builder = fx.DiagramBuilder("line")
    builder.add_all(fx.Ramp("ramp", slope=2.0), TimeDelay("pipe", delay, period, max_delay=1.5))
    builder.connect_chain("ramp", "pipe", builder.add(fx.Integrator("area")))
    return builder.build()


def area(times: Any, delay: Any) -> Any:
    return np.maximum(np.asarray(times) - delay, 0.0) ** 2


TIMES = np.linspace(0.0, 2.0, 41)
#: Whole numbers of samples and others, few and so many that loops move them as a whole.
LINES = [(0.2, 0.1), (0.25, 0.1), (0.37, 0.1), (1.2, 0.01), (1.2345, 0.01)]


@pytest.mark.full
@pytest.mark.parametrize("compiled", READINGS)
@pytest.mark.parametrize(("delay", "period"), LINES)
def test_every_reading_has_the_closed_form(delay: float, period: float, compiled: Any) -> None:
    result = fx.simulate(line(delay, period), 2.0, rtol=1e-10, atol=1e-12, compiled=compiled)
    areas, delayed = result.sample_all(["area.y", "pipe.y"], TIMES)
    np.testing.assert_allclose(areas.ravel(), area(TIMES, delay), rtol=0.0, atol=1e-9)
    expected = 2.0 * np.maximum(TIMES - delay, 0.0)
    np.testing.assert_allclose(delayed.ravel(), expected, rtol=0.0, atol=1e-9)


@needs_llvmlite
@pytest.mark.parametrize("method", thinned(METHODS, fast=2))
def test_every_native_method_has_the_closed_form(method: str) -> None:
    result = fx.simulate(line(0.37, 0.1), 2.0, method=method, rtol=1e-8, compiled="native")
    assert result["area.y"][-1] == pytest.approx(1.63**2, rel=1e-6)


def test_javascript_has_the_closed_form() -> None:
    asked = {
        str(k): (fx.to_javascript(line(*each), method="RK45"), [{"tFinal": 2.0, "rtol": 1e-10}])
        for k, each in enumerate(LINES)
    }
    for (delay, _), (found,) in zip(LINES, simulate_all(asked).values(), strict=True):
        assert found["outcome"] == "completed", found["message"]
        np.testing.assert_allclose(found["state"], area([2.0], delay), rtol=1e-9)


def test_a_sweep_of_delays_up_to_the_longest_runs_natively() -> None:
    delays = [0.1, 0.25, 0.7, 1.5]
    end = {"end": fx.metrics.final("area.y")}
    sweep = fx.sweep(line(0.5, 0.1), {"pipe.delay": delays}, 2.0, metrics=end, compiled="native")
    expected = [area(2.0, delay) for delay in delays]
    np.testing.assert_allclose(np.asarray(sweep.metrics["end"]), expected, atol=1e-6)


def test_a_delay_that_changes_on_the_way_reads_the_samples_that_are_there() -> None:
    simulator = fx.Simulator(line(0.2, 0.1))
    simulator.advance_to(1.025)
    simulator.context.set("pipe.delay", 0.73)
    assert simulator.context.get("pipe.y") == pytest.approx([2.0 * (1.025 - 0.73)])
    simulator.advance_to(2.0)
    expected = area(1.025, 0.2) + area(2.0, 0.73) - area(1.025, 0.73)
    assert simulator.context.get("area.y") == pytest.approx([expected], rel=1e-6)


def test_a_saved_context_goes_on_in_the_midst_of_a_delay(tmp_path: Path) -> None:
    diagram = line(1.2345, 0.01)
    halfway = fx.simulate(diagram, 1.503, rtol=1e-10, atol=1e-12).context
    halfway.save(tmp_path / "halfway.json")
    again = diagram.load_context(tmp_path / "halfway.json")
    ends = [
        fx.simulate(diagram, 2.0, context=context, rtol=1e-10, atol=1e-12)["area.y"][-1]
        for context in (halfway, again)
    ]
    assert ends[0] == pytest.approx(area(2.0, 1.2345), rel=1e-8)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", range(3))
def test_random_loops_follow_the_method_of_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    period = rng.uniform(0.02, 0.1)
    samples_of_seeds: list[float] = [
        rng.uniform(1, 4),
        int(rng.integers(2, 6)),
        rng.uniform(101, 120),
    ]
    delay = period * samples_of_seeds[seed]
    rate, gain, begin = rng.uniform(0.2, 2.0), rng.uniform(-2.0, 0.5) / delay, rng.normal()
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.FirstOrderLag("lag", time_constant=1.0 / rate, initial=[begin]),
        TimeDelay("delay", delay, period, initial=begin),
        fx.Gain("gain", gain / rate),
    )
    builder.connect_chain("lag", "delay", "gain", "lag")
    ends = period * np.arange(1, 300 if seed == 2 else 60)
    result = fx.simulate(builder.build(), ends[-1], rtol=1e-11, atol=1e-13)
    # x' = -rate x + gain y, where y is on straight lines between the samples of x.
    samples, x = [begin], begin
    for end in ends:
        knots = np.array([end - period, *(end - period + delay % period,), end])
        past = np.interp(knots - delay, period * np.arange(len(samples)), samples)
        for (a, b), (y0, y1) in zip(pairwise(knots), pairwise(past), strict=True):
            if b - a > 1e-12:
                h, slope = b - a, gain * (y1 - y0) / (b - a)
                level = gain * y0 / rate - slope / rate**2
                x = level + slope / rate * h + (x - level) * np.exp(-rate * h)
        samples.append(x)
    found = result.sample("lag.y", ends).ravel()
    np.testing.assert_allclose(found, samples[1:], rtol=0.0, atol=1e-8 * np.abs(samples).max())


def test_a_model_from_sample_to_sample_shifts_by_the_delay() -> None:
    builder = fx.DiagramBuilder("line")
    builder.add_all(TimeDelay("pipe", 0.3, 0.1), fx.ZeroOrderHold("hold", 0.1))
    builder.connect_chain("pipe", "hold")
    builder.export_input("pipe.u", name="u")
    context = (diagram := builder.build()).create_default_context()
    context.set("u", 0.0)
    model = fx.linearize(diagram, context, ["u"], ["hold.y"], period=0.1)
    z, found = np.zeros(len(model.A)), []
    for k in range(6):
        u = [1.0 if k == 0 else 0.0]
        found.append((model.C @ z + model.D @ u)[0])
        z = model.A @ z + model.B @ u
    np.testing.assert_allclose(found, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], atol=1e-12)


# Padé ----------------------------------------------------------------------------------------


def response(block: PadeDelay, omega: float, delay: float) -> complex:
    """Frequency response from derivatives and outputs at unit vectors."""
    context = block.create_default_context()
    block.delay.set(context, delay)
    rates, weights = [], []
    n = block.x.size
    for x, u in [*((row, 0.0) for row in np.eye(n)), (np.zeros(n), 1.0)]:
        block.x.set(context, x)
        block.u.fix(context, u)
        rates.append(block.eval_time_derivatives(context))
        weights.append(block.y.eval(context)[0])
    a, b = np.array(rates[:-1]).T, rates[-1]
    state = np.linalg.solve(1j * omega * np.eye(n) - a, b)
    return complex(np.array(weights[:-1]) @ state + weights[-1])


@pytest.mark.parametrize("order", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("delay", [1.0, 0.02])
def test_pade_delay_is_the_diagonal_approximant_of_the_exponential(
    order: int, delay: float
) -> None:
    block = PadeDelay("delay", 1.0, order)
    if order <= 5:  # The linear equations lose digits beyond.
        # The quotient above/below has the Taylor series of exp up to the power 2 order.
        taylor = 1.0 / np.cumprod([1.0, *range(1, 2 * order + 1)])
        rows = scipy.linalg.toeplitz(taylor, np.zeros(order + 1))
        below = np.append(1.0, np.linalg.solve(rows[order + 1 :, 1:], -rows[order + 1 :, 0]))
        above = (rows @ below)[: order + 1]
        z = -0.7j
        expected = np.polynomial.Polynomial(above)(z) / np.polynomial.Polynomial(below)(z)
        np.testing.assert_allclose(response(block, 0.7 / delay, delay), expected, rtol=1e-7)
    assert abs(response(block, 4.0 / delay, delay)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(("order", "reach"), [(1, 0.49), (2, 1.5), (3, 2.8), (4, 4.2), (5, 5.7)])
def test_pade_delay_has_the_right_phase_as_far_as_it_says(order: int, reach: float) -> None:
    block = PadeDelay("delay", 1.0, order)
    errors = [
        abs(np.angle(response(block, omega, 1.0) * np.exp(1j * omega)))
        for omega in (0.5 * reach, reach, 1.1 * reach)
    ]
    assert errors[0] < 0.1 * errors[2]
    assert errors[1] < 0.01 < errors[2]


@pytest.mark.parametrize(("order", "direct"), [(1, -1.0), (2, 1.0), (3, -1.0)])
def test_pade_delay_shows_a_jump_at_once_with_alternating_sign(order: int, direct: float) -> None:
    block = PadeDelay("delay", 1.0, order)
    context = block.create_default_context()
    block.u.fix(context, 2.5)
    assert block.y.eval(context).tolist() == [2.5 * direct]


@for_each("order", [0, 11, 2.5])
def test_pade_orders_from_one_to_ten(order: Any) -> None:
    with pytest.raises(DeclarationError):
        PadeDelay("delay", 1.0, order)


def test_pade_delay_is_positive() -> None:
    with pytest.raises(ValueRefusedError, match=r"delay\.delay"):
        PadeDelay("delay", 0.0)
