"""Integrators with limits and resets, lags, and filtered derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.linear_systems.continuous import FilteredDerivative, FirstOrderLag, Integrator
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, ValueRefusedError
from tests.support.tiers import for_each

Integrate = Callable[[fx.Context, float], fx.Context]


def driven(block: fx.LeafSystem, **sources: fx.LeafSystem) -> fx.Simulator:
    """Simulate a block whose inputs are fed by one source each."""
    builder = fx.DiagramBuilder("driven")
    builder.add(block)
    for port, source in sources.items():
        builder.add(source)
        builder.connect(f"{source.name}.y", f"{block.name}.{port}")
    return fx.Simulator(builder.build(), rtol=1e-10)


# Integrator ----------------------------------------------------------------------------------


def test_integrator_integrates_each_component_from_its_initial_state(integrate: Integrate) -> None:
    block = Integrator("integrator", size=3, initial=[1.0, 0.0, -2.0])
    context = block.create_default_context()
    block.u.fix(context, [2.0, -1.0, 0.0])
    integrate(context, 1.5)
    np.testing.assert_allclose(block.y.eval(context), [4.0, -1.5, -2.0], rtol=1e-12)


def test_integrator_of_a_sine_is_a_cosine() -> None:
    block = Integrator("integrator", initial=-0.5)
    simulator = driven(block, u=fx.Sine("source", 1.0, 2.0))
    simulator.advance_to(1.7)
    np.testing.assert_allclose(block.y.eval(simulator.context), [-0.5 * np.cos(3.4)], rtol=1e-8)


def test_integrator_output_needs_no_input_at_once() -> None:
    for options in ({}, {"upper": 1.0}, {"reset": True}):
        assert Integrator("integrator", **options).feedthrough == frozenset()


def test_integrator_without_limits_has_no_parameters_and_no_events() -> None:
    block = Integrator("integrator")
    assert block.numeric_parameters == []
    assert block.events == []
    with pytest.raises(UnknownNameError):
        block.find("upper")


@pytest.mark.parametrize(
    ("x", "u", "rate"),
    [
        (0.0, 3.0, 3.0),
        (1.0, 3.0, 0.0),
        (1.0, -3.0, -3.0),
        (1.5, 3.0, 0.0),
        (1.5, -3.0, -3.0),
        (-2.0, -3.0, 0.0),
        (-2.0, 3.0, 3.0),
        (-2.5, -3.0, 0.0),
        (1.0, 0.0, 0.0),
    ],
)
def test_integrator_stops_only_where_the_input_pushes_beyond_a_limit(
    x: float, u: float, rate: float
) -> None:
    block = Integrator("integrator", lower=-2.0, upper=1.0)
    context = block.create_default_context()
    block.x.set(context, x)
    block.u.fix(context, u)
    assert block.eval_time_derivatives(context).tolist() == [rate]
    assert block.y.eval(context).tolist() == [min(max(x, -2.0), 1.0)]


def test_integrator_limits_are_parameters_that_can_be_set() -> None:
    block = Integrator("integrator", upper=1.0)
    context = block.create_default_context()
    block.u.fix(context, 1.0)
    block.x.set(context, 1.0)
    block.upper.set(context, 2.0)
    assert block.eval_time_derivatives(context).tolist() == [1.0]
    block.upper.set(context, np.inf)
    assert block.eval_time_derivatives(context).tolist() == [1.0]
    block.lower.set(context, 1.25)
    assert block.y.eval(context).tolist() == [1.25]


def test_integrator_hits_its_limit_exactly_and_leaves_it_without_windup() -> None:
    block = Integrator("integrator", upper=0.7)
    source = fx.Step("source", at=2.0, to=-1.0, initial=1.0)
    simulator = driven(block, u=source)
    simulator.advance_to(1.9)
    assert block.x(simulator.context).tolist() == [0.7]
    simulator.advance_to(2.5)
    np.testing.assert_allclose(block.y.eval(simulator.context), [0.2], rtol=1e-9)


def test_integrator_limits_hold_component_by_component() -> None:
    block = Integrator("integrator", size=3, lower=[-np.inf, -1.0, -1.0], upper=[2.0, np.inf, 4.0])
    simulator = driven(block, u=fx.Constant("source", [1.0, -0.5, 1.0]))
    simulator.advance_to(3.0)
    x = block.x(simulator.context)
    assert x[:2].tolist() == [2.0, -1.0]
    np.testing.assert_allclose(x[2], 3.0, rtol=1e-12)
    assert simulator.statistics.witness_events == 2


def test_integrator_that_starts_beyond_a_limit_is_put_on_it() -> None:
    block = Integrator("integrator", upper=1.0)
    context = block.create_default_context()
    block.u.fix(context, -1.0)
    block.x.set(context, 5.0)
    fx.Simulator(block, context).initialize()
    assert block.x(context).tolist() == [1.0]


def test_integrator_between_two_limits_follows_a_sine_like_a_clipped_sum() -> None:
    block = Integrator("integrator", lower=-0.5, upper=0.5)
    simulator = driven(block, u=fx.Sine("source"))
    found = []
    for time in (2.0, 4.0, 6.0, 8.0):
        simulator.advance_to(time)
        found.append(block.y.eval(simulator.context)[0])
    # Up to 0.5, down from t = π on, stuck at -0.5, up again from t = 2π on.
    np.testing.assert_allclose(found, [0.5, -0.5 - np.cos(4.0), -0.5, 0.5], atol=1e-7)


def test_integrator_reset_by_a_step_happens_at_that_instant() -> None:
    block = Integrator("integrator", initial=5.0, reset=True)
    simulator = driven(block, u=fx.Constant("one", 1.0), reset=fx.Step("reset", at=1.3))
    simulator.advance_to(1.2)
    np.testing.assert_allclose(block.y.eval(simulator.context), [6.2], rtol=1e-12)
    simulator.advance_to(2.0)
    np.testing.assert_allclose(block.y.eval(simulator.context), [5.7], rtol=1e-12)


def test_integrator_reset_by_a_continuous_signal_happens_where_it_rises_through_one_half() -> None:
    block = Integrator("integrator", reset=True)
    simulator = driven(block, u=fx.Constant("one", 1.0), reset=fx.Sine("reset"))
    simulator.advance_to(6.0)
    np.testing.assert_allclose(block.y.eval(simulator.context), [6.0 - np.pi / 6], rtol=1e-9)
    simulator.advance_to(7.0)
    edge = 2.0 * np.pi + np.pi / 6
    np.testing.assert_allclose(block.y.eval(simulator.context), [7.0 - edge], rtol=1e-9)


def test_integrator_is_reset_by_every_rising_edge_and_no_falling_one() -> None:
    block = Integrator("integrator", reset=True)
    pulses = fx.Square("pulses", 1.0, period=1.0, duty=0.5, delay=0.25)
    simulator = driven(block, u=fx.Constant("one", 1.0), reset=pulses)
    for time in (0.2, 0.6, 1.2, 1.6, 2.2):
        simulator.advance_to(time)
        since = time if time < 0.25 else (time - 0.25) % 1.0
        np.testing.assert_allclose(block.y.eval(simulator.context), [since], rtol=1e-9)


def test_integrator_ignores_a_reset_signal_that_is_high_from_the_beginning() -> None:
    block = Integrator("integrator", initial=1.0, reset=True)
    simulator = driven(block, u=fx.Constant("one", 1.0), reset=fx.Constant("high", 1.0))
    simulator.advance_to(2.0)
    np.testing.assert_allclose(block.y.eval(simulator.context), [3.0], rtol=1e-12)


def test_integrator_is_reset_at_the_sample_that_resets_it() -> None:
    block = Integrator("integrator", reset=True)
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        block, fx.Constant("one", 1.0), fx.Step("step", at=0.95), fx.ZeroOrderHold("hold", 0.1)
    )
    builder.connect("one.y", "integrator.u")
    builder.connect_chain("step", "hold", "integrator.reset")
    simulator = fx.Simulator(builder.build())
    simulator.advance_to(2.0)
    np.testing.assert_allclose(block.y.eval(simulator.context), [1.0], rtol=1e-12)


def test_integrator_is_reset_to_the_value_at_its_input_within_the_limits() -> None:
    block = Integrator("integrator", size=2, reset=True, upper=4.0)
    simulator = driven(
        block,
        u=fx.Constant("rest", [0.0, 0.0]),
        reset=fx.Step("reset", at=1.0),
        reset_value=fx.Constant("value", [3.0, 9.0]),
    )
    simulator.advance_to(2.0)
    assert block.x(simulator.context).tolist() == [3.0, 4.0]


@for_each(
    "options",
    [
        {"size": 0},
        {"size": 2, "initial": [1.0, 2.0, 3.0]},
        {"initial": np.nan},
        {"initial": "one"},
        {"initial": 3.0, "upper": 2.0},
        {"initial": -3.0, "lower": -2.0},
        {"lower": 1.0, "upper": -1.0},
        {"size": 2, "lower": [[0.0, 0.0]]},
    ],
)
def test_integrator_refuses_what_does_not_fit(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="'integrator'"):
        Integrator("integrator", **options)


# First-order lag -----------------------------------------------------------------------------


def test_lag_answers_a_step_with_an_exponential(integrate: Integrate) -> None:
    block = FirstOrderLag("lag", [0.5, 2.0], gain=3.0, size=2, initial=[0.0, 1.0])
    context = block.create_default_context()
    block.u.fix(context, [1.0, -1.0])
    integrate(context, 0.8)
    expected = [3.0 * (1.0 - np.exp(-1.6)), -3.0 + 4.0 * np.exp(-0.4)]
    np.testing.assert_allclose(block.y.eval(context), expected, rtol=1e-9)
    assert block.feedthrough == frozenset()


def test_lag_constants_can_be_set() -> None:
    block = FirstOrderLag("lag", 0.5)
    context = block.create_default_context()
    block.u.fix(context, 1.0)
    block.time_constant.set(context, 4.0)
    block.gain.set(context, 6.0)
    assert block.eval_time_derivatives(context).tolist() == [1.5]


@pytest.mark.parametrize("make", [FirstOrderLag, FilteredDerivative])
@pytest.mark.parametrize("time_constant", [0.0, -1.0, np.inf, np.nan])
def test_time_constants_are_positive(make: Any, time_constant: float) -> None:
    with pytest.raises(ValueRefusedError, match="time_constant"):
        make("block", time_constant)
    block = make("block", 1.0)
    with pytest.raises(ValueRefusedError, match="time_constant"):
        block.time_constant.set(block.create_default_context(), time_constant)


@for_each("make", [FirstOrderLag, FilteredDerivative])
def test_time_constants_are_one_or_as_many_as_components(make: Any) -> None:
    with pytest.raises(DeclarationError, match="one number or 3 numbers for time_constant"):
        make("block", [1.0, 2.0], size=3)


# Filtered derivative -------------------------------------------------------------------------


def test_derivative_of_a_ramp_approaches_its_slope_exponentially() -> None:
    block = FilteredDerivative("rate", 0.2)
    simulator = driven(block, u=fx.Ramp("ramp", slope=3.0, initial=7.0))
    simulator.initialize()
    assert block.y.eval(simulator.context).tolist() == [0.0]
    for time in (0.1, 0.5, 2.0):
        simulator.advance_to(time)
        np.testing.assert_allclose(
            block.y.eval(simulator.context), [3.0 * (1.0 - np.exp(-time / 0.2))], rtol=1e-7
        )


def test_derivative_not_started_at_rest_begins_with_a_kick() -> None:
    block = FilteredDerivative("rate", 0.2, start_at_rest=False)
    simulator = driven(block, u=fx.Constant("one", 1.0))
    simulator.initialize()
    assert block.y.eval(simulator.context).tolist() == [5.0]
    simulator.advance_to(0.3)
    np.testing.assert_allclose(block.y.eval(simulator.context), [5.0 * np.exp(-1.5)], rtol=1e-8)


def test_derivative_of_a_sine_has_the_gain_and_phase_of_its_transfer_function() -> None:
    omega, tau = 3.0, 0.1
    block = FilteredDerivative("rate", tau)
    simulator = driven(block, u=fx.Sine("sine", 1.0, omega))
    simulator.advance_to(4.0)
    response = 1j * omega / (1.0 + 1j * omega * tau) * np.exp(1j * omega * 4.0)
    np.testing.assert_allclose(block.y.eval(simulator.context), [response.imag], rtol=1e-7)


def test_derivative_goes_on_when_a_simulation_is_continued() -> None:
    block = FilteredDerivative("rate", 0.2)
    simulator = driven(block, u=fx.Ramp("ramp", slope=3.0))
    simulator.advance_to(0.3)
    again = fx.Simulator(simulator.system, simulator.context.clone(), rtol=1e-10)
    again.advance_to(0.5)
    simulator.advance_to(0.5)
    np.testing.assert_allclose(
        block.y.eval(again.context), block.y.eval(simulator.context), rtol=1e-9
    )


def test_derivative_needs_its_input_at_once_and_follows_its_time_constant() -> None:
    block = FilteredDerivative("rate", [0.1, 0.2], size=2)
    assert block.feedthrough == {("u", "y")}
    context = block.create_default_context()
    block.u.fix(context, [1.0, 2.0])
    block.x.set(context, [0.5, 3.0])
    np.testing.assert_allclose(block.y.eval(context), [5.0, -5.0], rtol=1e-15)
    block.time_constant.set(context, [1.0, 2.0])
    np.testing.assert_allclose(block.eval_time_derivatives(context), [0.5, -0.5], rtol=1e-15)
