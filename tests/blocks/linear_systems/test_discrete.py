"""Sampled blocks against their difference equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import flexure as fx
from flexure.blocks.linear_systems.continuous import FilteredDerivative, Integrator
from flexure.blocks.linear_systems.discrete import UnitDelay, ZeroOrderHold
from flexure.blocks.linear_systems.state_space import StateSpace, TransferFunction
from flexure.diagrams.checks.errors import AlgebraicLoopError, DeclarationError, ValueRefusedError
from tests.support.tiers import for_each

Tick = Callable[[fx.Context], None]

SAMPLES = [3.0, 1.0, -4.0, 1.5, 9.0, -2.5]


def run(block: Any, tick: Tick, inputs: Any) -> tuple[Any, Any]:
    """Outputs just before and just after the updates of successive instants."""
    context = block.create_default_context()
    before, after = [], []
    for u in inputs:
        block.u.fix(context, u)
        before.append(block.y.eval(context))
        tick(context)
        after.append(block.y.eval(context))
    return np.squeeze(before), np.squeeze(after)


# Holds and delays ----------------------------------------------------------------------------


def test_hold_shows_the_last_sample_and_is_a_shift_to_those_who_sample_it(tick: Tick) -> None:
    before, after = run(ZeroOrderHold("hold", 0.1), tick, SAMPLES)
    assert after.tolist() == SAMPLES
    assert before.tolist() == [0.0, *SAMPLES[:-1]]


def test_unit_delay_shows_the_sample_before_the_last_one(tick: Tick) -> None:
    _, after = run(UnitDelay("delay", 0.1), tick, SAMPLES)
    assert after.tolist() == [0.0, *SAMPLES[:-1]]


def test_unit_delay_is_a_hold_one_period_later() -> None:
    builder = fx.DiagramBuilder("delays")
    builder.add_all(
        fx.Sine("source", 2.0, 3.0),
        ZeroOrderHold("hold", 0.1, 0.03),
        UnitDelay("delay", 0.1, 0.03),
    )
    builder.connect("source.y", "hold.u")
    builder.connect("source.y", "delay.u")
    simulator = fx.Simulator(builder.build())
    held, late = [], []
    for k in range(10):
        simulator.advance_to(0.08 + 0.1 * k)
        held.append(simulator.context.get("hold.y")[0])
        late.append(simulator.context.get("delay.y")[0])
    assert held == pytest.approx([2.0 * np.sin(3.0 * (0.03 + 0.1 * k)) for k in range(10)])
    assert late == [0.0, *held[:-1]]


@pytest.mark.parametrize(
    ("kind", "last"), [("hold", [4.0, 3.0]), ("delay", [1.0, 2.0]), ("derivative", [6.0, 2.0])]
)
def test_held_blocks_take_vectors_and_break_loops(kind: str, last: Any, tick: Tick) -> None:
    block = MAKERS[kind]("block", 0.5, size=2)
    assert block.feedthrough == frozenset()
    assert block.periods == (0.5,)
    _, after = run(block, tick, [[1.0, 2.0], [4.0, 3.0]])
    assert after[-1].tolist() == last


def test_a_hold_in_a_loop_of_sampled_blocks_is_the_shift_operator(tick: Tick) -> None:
    builder = fx.DiagramBuilder("accumulator")
    builder.add_all(fx.Sum("sum", "++"), ZeroOrderHold("shift", 1.0))
    builder.connect_chain("sum.u1", "shift", "sum.u2")
    builder.export_input("sum.u1", name="u")
    accumulator = builder.build()
    context = accumulator.create_default_context()
    found = []
    for u in SAMPLES:
        context.set("u", u)
        found.append(context.get("sum.y")[0])
        tick(context)
    np.testing.assert_allclose(found, np.cumsum(SAMPLES), rtol=1e-15)


# Sums and differences ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "numerator", "feedthrough"),
    [
        ("forward", [0.0, 0.2], set()),
        ("backward", [0.2, 0.0], {("u", "y")}),
        ("trapezoidal", [0.1, 0.1], {("u", "y")}),
    ],
)
def test_integrator_follows_the_transfer_function_of_its_rule(
    method: Any, numerator: list[float], feedthrough: set[tuple[str, str]], tick: Tick
) -> None:
    block = Integrator("total", method=method, period=0.2)
    before, _ = run(block, tick, SAMPLES)
    expected = scipy.signal.lfilter(numerator, [1.0, -1.0], SAMPLES)
    np.testing.assert_allclose(before, expected, rtol=1e-13, atol=1e-15)
    assert block.feedthrough == feedthrough


def test_integrator_starts_at_its_initial_value_component_by_component(tick: Tick) -> None:
    block = Integrator("total", size=2, initial=[1.0, -1.0], period=0.5)
    before, after = run(block, tick, [[2.0, 4.0], [2.0, 0.0]])
    assert before[0].tolist() == [1.0, -1.0]
    assert after[-1].tolist() == [3.0, 1.0]


def test_trapezoidal_rule_integrates_a_ramp_without_error(tick: Tick) -> None:
    times = 0.1 * np.arange(8)
    before, _ = run(Integrator("total", method="trapezoidal", period=0.1), tick, 6.0 * times)
    np.testing.assert_allclose(before, 3.0 * times**2, atol=1e-14)


def test_sampled_integrator_stops_at_limits_and_resets_at_edges(tick: Tick) -> None:
    block = Integrator("total", lower=-1.0, upper=1.0, reset=True, period=0.5)
    context = block.create_default_context()
    block.reset_value.fix(context, 0.25)
    x, high, found, expected = 0.0, True, [], []
    for u, level in zip(
        [3.0, 3.0, -1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.8, 0.9, 0.0], strict=True
    ):
        block.u.fix(context, u)
        block.reset.fix(context, level)
        tick(context)
        rises, high = level >= 0.5 and not high, level >= 0.5
        x = min(max(0.25 if rises else x + 0.5 * u, -1.0), 1.0)
        found.append(block.y.eval(context)[0])
        expected.append(x)
    assert found == expected
    assert len({*expected}) > 3


@pytest.mark.parametrize(("at_rest", "first"), [(True, 3.0), (False, 0.0)])
def test_sampled_derivative_is_the_backward_difference_of_its_filter(
    at_rest: bool, first: float, tick: Tick
) -> None:
    block = FilteredDerivative("rate", 0.3, start_at_rest=at_rest, period=0.1)
    _, after = run(block, tick, SAMPLES)
    changes = np.diff(SAMPLES, prepend=first)
    expected = scipy.signal.lfilter([1.0], [0.4, -0.3], changes)
    np.testing.assert_allclose(after, expected, rtol=1e-13, atol=1e-13)


def test_derivative_is_the_difference_of_two_samples_and_begins_at_zero(tick: Tick) -> None:
    _, after = run(FilteredDerivative("rate", 0.0, period=0.5), tick, SAMPLES)
    np.testing.assert_allclose(after, [0.0, *(np.diff(SAMPLES) / 0.5)], rtol=1e-15)


def test_derivative_that_was_started_counts_from_the_last_sample(tick: Tick) -> None:
    block = FilteredDerivative("rate", 0.0, period=0.5)
    context = block.create_default_context()
    block.last.set(context, 2.0)
    block.started.set(context, 1.0)
    block.u.fix(context, 3.0)
    tick(context)
    assert block.y.eval(context).tolist() == [2.0]


# Linear difference equations -----------------------------------------------------------------

A = np.array([[0.5, 0.2], [-0.3, 0.8]])
B = np.array([[1.0, 0.0], [0.5, -1.0]])
C = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
D = np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
INPUTS = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5], [-2.0, 0.0]])


@pytest.mark.parametrize("direct", [D, None])
def test_state_space_gives_the_sequence_of_scipy(direct: Any, tick: Tick) -> None:
    block = StateSpace("system", A, B, C, direct, period=0.1, initial=[1.0, -1.0])
    before, _ = run(block, tick, INPUTS)
    system = (A, B, C, np.zeros((3, 2)) if direct is None else direct, 0.1)
    _, expected, _ = scipy.signal.dlsim(system, INPUTS, x0=[1.0, -1.0])
    np.testing.assert_allclose(before, expected, rtol=1e-13, atol=1e-13)
    assert block.feedthrough == (frozenset() if direct is None else {("u", "y")})


def test_state_space_without_inputs_moves_by_itself(tick: Tick) -> None:
    block = StateSpace("system", A, np.zeros((2, 0)), C, None, period=0.1, initial=[1.0, -1.0])
    context = block.create_default_context()
    for _ in range(5):
        tick(context)
    expected = np.linalg.matrix_power(A, 5) @ [1.0, -1.0]
    np.testing.assert_allclose(block.x(context), expected, rtol=1e-13)


def test_state_space_matrices_can_be_set(tick: Tick) -> None:
    block = StateSpace("system", 0.5, 1.0, 1.0, None, period=0.1, initial=2.0)
    context = block.create_default_context()
    context.set("u", 1.0)
    block.A.set(context, [[3.0]])
    tick(context)
    assert block.x(context).tolist() == [7.0]


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        ([0.2], [1.0, -0.8]),
        ([0.5, 0.5], [2.0, -0.8]),
        ([1.0, -0.3], [-1.0, 0.5, 0.25]),
        ([1.0, 0.0, 2.0], [2.0, -1.0, 0.5]),
        ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]),
    ],
)
def test_transfer_function_filters_like_scipy(
    numerator: list[float], denominator: list[float], tick: Tick
) -> None:
    block = TransferFunction("filter", numerator, denominator, period=0.1)
    before, _ = run(block, tick, SAMPLES)
    above = np.concatenate([np.zeros(len(denominator) - len(numerator)), numerator])
    expected = scipy.signal.lfilter(above, denominator, SAMPLES)
    np.testing.assert_allclose(before, expected, rtol=1e-12, atol=1e-12)
    assert block.feedthrough == ({("u", "y")} if above[0] else frozenset())


def test_transfer_function_coefficients_can_be_set(tick: Tick) -> None:
    block = TransferFunction("filter", [1.0], [1.0, 0.0], period=0.1)
    context = block.create_default_context()
    block.u.fix(context, 6.0)
    block.numerator.set(context, 4.0)
    block.denominator.set(context, [2.0, 1.0])
    block.x.set(context, 2.0)
    assert block.y.eval(context).tolist() == [4.0]
    tick(context)
    assert block.x(context).tolist() == [5.0]


def test_a_hold_behind_a_sampled_block_gives_its_output_to_continuous_ones() -> None:
    builder = fx.DiagramBuilder("filter")
    builder.add_all(
        fx.Ramp("ramp"),
        TransferFunction("average", [0.5, 0.5], [1.0, 0.0], period=0.1),
        ZeroOrderHold("hold", 0.1),
    )
    builder.connect_chain("ramp", "average", "hold")
    simulator = fx.Simulator(builder.build())
    simulator.advance_to(0.55)
    assert simulator.context.get("hold.y") == pytest.approx(0.5 * (0.5 + 0.4))


def test_direct_parts_close_algebraic_loops() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add(Integrator("total", method="backward", period=0.1))
    builder.connect("total.y", "total.u")
    with pytest.raises(AlgebraicLoopError, match=r"total\.y"):
        builder.build()


# Refusals ------------------------------------------------------------------------------------

MAKERS: dict[str, Callable[..., Any]] = {
    "hold": ZeroOrderHold,
    "delay": UnitDelay,
    "derivative": lambda name, period, **options: FilteredDerivative(
        name, 0.0, period=period, **options
    ),
    "integrator": lambda name, period, **options: Integrator(name, period=period, **options),
    "state_space": lambda name, period, **options: StateSpace(
        name, A, B, C, D, period=period, **options
    ),
    "transfer_function": lambda name, period, **options: TransferFunction(
        name, [1.0], [1.0, 0.5], period=period, **options
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_sampled_block_keeps_its_clock(kind: str) -> None:
    make = MAKERS[kind]
    (event,) = make("block", 0.25, offset=0.5).events
    assert event.trigger == fx.diagrams.Periodic(0.25, 0.5)
    for period, offset in ((0.0, 0.0), (-1.0, 0.0), (np.inf, 0.0), (1.0, -1.0)):
        with pytest.raises(DeclarationError):
            make("block", period, offset=offset)


@for_each("kind", ["hold", "delay", "derivative", "integrator"])
def test_every_sampled_block_has_at_least_one_component(kind: str) -> None:
    with pytest.raises(DeclarationError, match="block"):
        MAKERS[kind]("block", 0.1, size=0)


def test_unknown_rules_and_misfits_are_refused() -> None:
    with pytest.raises(DeclarationError, match="'forward', 'backward', 'trapezoidal'"):
        Integrator("total", method="midpoint", period=0.1)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="initial"):
        Integrator("total", initial=[1.0, 2.0], period=0.1)
    with pytest.raises(DeclarationError, match="no rule of summation without a sampling period"):
        Integrator("total", method="backward")
    for kind in (Integrator, lambda name, offset: FilteredDerivative(name, 1.0, offset=offset)):
        with pytest.raises(DeclarationError, match="no offset without a sampling period"):
            kind("block", offset=0.1)
    with pytest.raises(DeclarationError, match="2 x 2 matrix for A"):
        StateSpace("system", A[:, :1], B, C, D, period=0.1)
    with pytest.raises(DeclarationError, match="initial"):
        StateSpace("system", A, B, C, D, period=0.1, initial=[1.0, 2.0, 3.0])
    with pytest.raises(DeclarationError, match="precede its input"):
        TransferFunction("filter", [1.0, 0.0, 0.0], [1.0, 0.5], period=0.1)
    with pytest.raises(ValueRefusedError, match="denominator"):
        TransferFunction("filter", [1.0], [1.0, np.nan], period=0.1)
