"""Delay lines and Padé delays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import flexure as fx
from flexure.blocks.linear_systems.delays import PadeDelay, TimeDelay
from flexure.diagrams.common.errors import DeclarationError, ValueRefusedError

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


@pytest.mark.parametrize(
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


def test_a_delay_beyond_the_longest_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match="delay"):
        TimeDelay("pipe", 2.0, 0.1, max_delay=1.0)


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


@pytest.mark.parametrize("order", [0, 11, 2.5])
def test_pade_orders_from_one_to_ten(order: Any) -> None:
    with pytest.raises(DeclarationError):
        PadeDelay("delay", 1.0, order)


def test_pade_delay_is_positive() -> None:
    with pytest.raises(ValueRefusedError, match=r"delay\.delay"):
        PadeDelay("delay", 0.0)
