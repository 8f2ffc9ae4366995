"""Limits, steps, tables, rates and relays: their values, their memory, and what they refuse."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.blocks.linear_systems.continuous import Integrator
from flexure.blocks.linear_systems.discrete import ZeroOrderHold
from flexure.blocks.signals.algebra import Sum
from flexure.blocks.signals.lookup_tables import LookupTable
from flexure.blocks.signals.nonlinear import (
    DeadZone,
    Quantizer,
    RateLimiter,
    Relay,
    Saturation,
)
from flexure.blocks.signals.sources import Step
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from flexure.diagrams.contexts.updates import run_updates
from flexure.solvers.simulation.simulator import Simulator
from tests.blocks.signals.test_algebra import needs, on_symbols, output, without_prerequisites
from tests.support.tiers import for_each

MODERATE = st.floats(-1e6, 1e6)
SIGNALS = arrays(float, 4, elements=MODERATE)
LIMITS = st.tuples(MODERATE, MODERATE).map(sorted)
POINTS, VALUES = [-1.0, 0.0, 2.0, 3.0], [4.0, 1.0, 2.0, 2.5]

STATIC: dict[str, fx.LeafSystem] = {
    "saturation": Saturation("b", [-1.0, 2.0], [1.0, 3.0]),
    "dead zone": DeadZone("b", [-1.0, 2.0], [1.0, 3.0]),
    "quantizer": Quantizer("b", [0.3, 2.0]),
    "table that holds": LookupTable("b", POINTS, VALUES, size=2),
    "table that goes on": LookupTable("b", POINTS, VALUES, "linear", size=2),
}
DYNAMIC: dict[str, fx.LeafSystem] = {
    "rate limiter": RateLimiter("b", [1.0, 2.0], 3.0, 0.1),
    "discrete rate limiter": RateLimiter("b", [1.0, 2.0], 3.0, period=0.1),
    "relay": Relay("b", 1.0, -1.0),
}


def run(context: Any, trigger: type) -> None:
    """Run the updates of a block that have one kind of trigger."""
    due = [event for event in context.system.events if isinstance(event.trigger, trigger)]
    assert due
    run_updates([(context, event) for event in due])


@pytest.mark.parametrize("block", [*STATIC.values(), *DYNAMIC.values()], ids=[*STATIC, *DYNAMIC])
def test_feedthrough_is_that_of_the_equations(block: fx.LeafSystem) -> None:
    assert block.feedthrough == ({("u", "y")} if block in STATIC.values() else frozenset())
    assert needs(block) == needs(without_prerequisites(block))


@for_each("u", [-9.0, -1.0, -0.2, 0.0, 0.45, 2.0, 2.7, 3.0, 50.0])
@for_each("block", STATIC.values())
def test_outputs_are_the_same_on_symbols(block: fx.LeafSystem, u: float) -> None:
    context = block.create_default_context()
    context.set("u", [u, -u])
    y = block.output_ports[0]
    np.testing.assert_allclose(on_symbols(y.compute, context), y(context), rtol=1e-14, atol=1e-15)


# Limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (-1.0, 2.0, [-1.0, 0.0, 0.5, 2.0]),
        (-np.inf, 2.0, [-7.0, 0.0, 0.5, 2.0]),
        (-1.0, np.inf, [-1.0, 0.0, 0.5, 9.0]),
        ([-8.0, 0.1, 0.1, 10.0], [np.inf, 1.0, 0.2, 10.0], [-7.0, 0.1, 0.2, 10.0]),
    ],
)
def test_saturation_keeps_each_component_within_its_limits(
    lower: Any, upper: Any, expected: list[float]
) -> None:
    u = np.array([-7.0, 0.0, 0.5, 9.0])
    assert output(Saturation("s", lower, upper, 4), u=u).tolist() == expected
    assert output(DeadZone("d", lower, upper, 4), u=u).tolist() == (u - expected).tolist()


@given(SIGNALS, LIMITS)
def test_saturation_changes_a_limited_signal_no_more(u: Any, limits: list[float]) -> None:
    block = Saturation("s", limits[0], limits[1], 4)
    once = output(block, u=u)
    assert np.all((limits[0] <= once) & (once <= limits[1]))
    assert np.all((once == u) | (once == limits[0]) | (once == limits[1]))
    assert output(block, u=once).tolist() == once.tolist()


@given(SIGNALS, LIMITS)
def test_dead_zone_and_saturation_add_up_to_the_signal(u: Any, limits: list[float]) -> None:
    builder = fx.DiagramBuilder("parts")
    lower, upper = limits
    builder.add(Saturation("limit", lower, upper, 4))
    builder.add(DeadZone("rest", lower, upper, 4))
    builder.add(Sum("sum", size=4))
    builder.connect("limit.y", "sum.u1")
    builder.connect("rest.y", "sum.u2")
    builder.export_input("limit.u", "rest.u", name="u")
    context = builder.build().create_default_context()
    context.set("u", u)
    np.testing.assert_allclose(context.get("sum.y"), u, rtol=1e-12, atol=1e-9)
    inside = (lower <= u) & (u <= upper)
    assert np.all(context.get("rest.y")[inside] == 0.0)


def test_limits_set_in_a_context_hold_there_and_are_refused_where_they_conflict() -> None:
    block = Saturation("s", -1.0, 1.0)
    context = block.create_default_context()
    context.set("u", 5.0)
    block.upper.set(context, np.inf)
    assert context.get("y").tolist() == [5.0]
    block.lower.set(context, 8.0)
    assert context.get("y").tolist() == [8.0]
    block.upper.set(context, 2.0)
    with pytest.raises(ValueRefusedError, match="lower <= upper; found lower=8, upper=2"):
        context.get("y")
    assert output(block, u=5.0).tolist() == [1.0]


# Quantizer -----------------------------------------------------------------------------------


def test_quantizer_rounds_halves_to_even_multiples() -> None:
    u = [-3.0, -1.0, 1.0, 3.0, 5.0, 0.999, 1.001]
    assert output(Quantizer("q", 2.0, 7), u=u).tolist() == [-4.0, 0.0, 0.0, 4.0, 4.0, 0.0, 2.0]


@given(SIGNALS, st.floats(1e-3, 1e3))
def test_quantizer_is_wrong_by_half_a_step_at_most(u: Any, step: float) -> None:
    y = output(Quantizer("q", step, 4), u=u)
    rounding = 1e-15 * np.abs(u)
    assert np.all(np.abs(y - u) <= step / 2.0 + rounding)
    np.testing.assert_allclose(y / step, np.round(y / step), rtol=1e-15)


# Tables --------------------------------------------------------------------------------------


def straight_line(u: float, k: int) -> float:
    slope = (VALUES[k + 1] - VALUES[k]) / (POINTS[k + 1] - POINTS[k])
    return VALUES[k] + slope * (u - POINTS[k])


@given(st.floats(-10.0, 10.0))
def test_table_follows_the_straight_line_between_neighbors(u: float) -> None:
    segment = min(max(bisect_right(POINTS, u) - 1, 0), len(POINTS) - 2)
    held = output(LookupTable("t", POINTS, VALUES), u=u)
    continued = output(LookupTable("t", POINTS, VALUES, "linear"), u=u)
    limited = min(max(u, POINTS[0]), POINTS[-1])
    np.testing.assert_allclose(held, straight_line(limited, segment), rtol=1e-13)
    np.testing.assert_allclose(continued, straight_line(u, segment), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("extrapolate", ["hold", "linear"])
def test_table_goes_through_its_points(extrapolate: Any) -> None:
    table = LookupTable("t", POINTS, VALUES, extrapolate, size=4)
    assert output(table, u=POINTS).tolist() == VALUES


@pytest.mark.parametrize(("extrapolate", "expected"), [("hold", 30.0), ("linear", 70.0)])
def test_values_of_a_table_are_set_in_a_context(extrapolate: Any, expected: float) -> None:
    table = LookupTable("t", [0.0, 1.0], [0.0, 1.0], extrapolate)
    context = table.create_default_context()
    context.set("u", 3.0)
    table.values.set(context, [10.0, 30.0])
    assert context.get("y").tolist() == [expected]


# Rate limits ---------------------------------------------------------------------------------


def test_rate_limiter_runs_up_a_ramp_and_settles_like_a_lag() -> None:
    rising, tau, target = 2.0, 0.1, 5.0
    limiter = RateLimiter("r", rising, 1.0, tau)
    context = limiter.create_default_context()
    limiter.u.fix(context, target)

    def rate(_: float, x: Any) -> Any:
        context.continuous_state = x
        return limiter.eval_time_derivatives(context)

    times = np.linspace(0.0, 3.0, 31)
    motion = solve_ivp(rate, (0.0, 3.0), [0.0], t_eval=times, rtol=1e-9, atol=1e-11, max_step=0.05)
    knee = (target - rising * tau) / rising
    settling = target - rising * tau * np.exp(-(times - knee) / tau)
    expected = np.where(times < knee, rising * times, settling)
    np.testing.assert_allclose(motion.y[0], expected, atol=1e-6)


@given(SIGNALS, SIGNALS)
def test_rate_stays_within_its_bounds_and_points_to_the_input(u: Any, x: Any) -> None:
    limiter = RateLimiter("r", [1.0, 2.0, 0.0, np.inf], 3.0, 0.5, initial=x)
    context = limiter.create_default_context()
    limiter.u.fix(context, u)
    rate = limiter.eval_time_derivatives(context)
    assert np.all((rate >= -3.0) & (rate <= [1.0, 2.0, 0.0, np.inf]))
    assert np.all(rate * (u - x) >= 0.0)
    assert rate[3] == max((u[3] - x[3]) / 0.5, -3.0)
    np.testing.assert_array_equal(on_symbols(limiter.calc_time_derivatives, context), rate)


def test_rate_limiters_start_at_their_initial_value() -> None:
    for limiter in [
        RateLimiter("r", 1.0, 1.0, 0.1, size=2, initial=7.0),
        RateLimiter("r", 1.0, 1.0, initial=[7.0, 7.0], period=0.1),
    ]:
        assert limiter.create_default_context().get("y").tolist() == [7.0, 7.0]


def test_discrete_rate_limiter_takes_limited_steps_and_arrives_exactly() -> None:
    limiter = RateLimiter("r", rising=[2.0, np.inf, 0.0], falling=4.0, period=0.5)
    context = limiter.create_default_context()
    seen = []
    for target in [2.5, 2.5, 2.5, 2.5, -3.0, -3.0, -3.0]:
        limiter.u.fix(context, np.full(3, target))
        symbolic = on_symbols(lambda probe: limiter.update_state(probe)[limiter.x], context)
        run(context, fx.diagrams.Periodic)
        assert context.get("y").tolist() == symbolic.tolist()
        seen.append(context.get("y").tolist())
    assert [y[0] for y in seen] == [1.0, 2.0, 2.5, 2.5, 0.5, -1.5, -3.0]
    assert [y[1] for y in seen] == [2.5, 2.5, 2.5, 2.5, 0.5, -1.5, -3.0]
    assert [y[2] for y in seen] == [0.0, 0.0, 0.0, 0.0, -2.0, -3.0, -3.0]


def test_discrete_rate_limiter_acts_at_its_sampling_times() -> None:
    (event,) = RateLimiter("r", 1.0, 1.0, offset=0.2, period=0.5).events
    assert event.trigger == fx.diagrams.Periodic(0.5, 0.2)


# Relay ---------------------------------------------------------------------------------------


def test_relay_remembers_from_which_side_its_band_was_entered() -> None:
    relay = Relay("r", on_threshold=1.0, off_threshold=-1.0, on_value=5.0, off_value=-5.0)
    context = relay.create_default_context()
    seen = []
    for u in [0.0, 0.9, 1.0, 0.0, -0.9, -1.0, 0.0, 0.9, 7.0]:
        relay.u.fix(context, u)
        run(context, fx.diagrams.Settling)
        seen.append(context.get("y").tolist())
    assert seen == [[-5.0], [-5.0], [5.0], [5.0], [5.0], [-5.0], [-5.0], [-5.0], [5.0]]


@given(st.booleans(), st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 1.0, 1.5, 3.0])))
def test_relay_switches_like_a_thermostat_and_has_room_until_the_next_switch(
    initially_on: bool, signal: list[float]
) -> None:
    relay = Relay("r", 1.0, -0.5, initially_on=initially_on)
    context = relay.create_default_context()
    is_on = initially_on
    for u in signal:
        relay.u.fix(context, u)
        symbolic = on_symbols(lambda probe: relay.update_mode(probe)[relay.mode], context)
        run(context, fx.diagrams.Witness)
        is_on = u > -0.5 if is_on else u >= 1.0
        assert context.get("y").tolist() == symbolic.tolist() == [float(is_on)]
        margin = relay.calc_margin(context)
        assert margin > 0.0
        assert margin == on_symbols(relay.calc_margin, context)


@pytest.mark.parametrize(
    ("initially_on", "u", "expected"),
    [(False, 1.0, 1.0), (False, 0.9, 0.0), (True, -1.0, 0.0), (True, -0.9, 1.0)],
)
def test_simulation_starts_with_the_right_mode(
    initially_on: bool, u: float, expected: float
) -> None:
    relay = Relay("r", 1.0, -1.0, initially_on=initially_on)
    context = relay.create_default_context()
    relay.u.fix(context, u)
    assert context.get("y").tolist() == [float(initially_on)]
    run(context, fx.diagrams.Initialization)
    assert context.get("y").tolist() == [expected]


def test_relay_does_not_follow_its_input_without_an_event() -> None:
    relay = Relay("r", 1.0, -1.0)
    assert output(relay, u=5.0).tolist() == [0.0]


def oscillator(sampled: bool = False) -> fx.Diagram:
    """Connect an integrator to a relay that reverses its rate at the levels 1 and -1."""
    builder = fx.DiagramBuilder("oscillator")
    builder.add_all(Integrator("level"), Relay("relay", 1.0, -1.0, on_value=-1.0, off_value=1.0))
    builder.connect("relay.y", "level.u")
    if sampled:
        builder.add(ZeroOrderHold("hold", 0.3))
        builder.connect_chain("level", "hold", "relay")
    else:
        builder.connect("level.y", "relay.u")
    return builder.build()


def test_relay_and_integrator_make_an_exact_triangle_wave() -> None:
    simulator = Simulator(oscillator())
    for time in np.arange(1.0, 21.0) * 0.7:
        simulator.advance_to(time)
        phase = (time + 1.0) % 4.0
        expected = phase - 1.0 if phase <= 2.0 else 3.0 - phase
        assert simulator.context.get("level.y")[0] == pytest.approx(expected, abs=1e-9)
    assert simulator.statistics.witness_events == 7


def test_relay_switches_at_the_jump_of_a_source() -> None:
    builder = fx.DiagramBuilder("switched")
    builder.add_all(Step("step", at=0.7, to=5.0), Relay("relay", 1.0, -1.0), Integrator("level"))
    builder.connect_chain("step", "relay", "level")
    simulator = Simulator(builder.build())
    simulator.advance_to(2.0)
    assert simulator.context.get("level.y")[0] == pytest.approx(1.3, abs=1e-12)


def test_relay_sees_the_jumps_of_a_sampled_input() -> None:
    simulator = Simulator(oscillator(sampled=True))
    level, rate = 0.0, 1.0
    for k in range(100):
        rate = -1.0 if level >= 1.0 else 1.0 if level <= -1.0 else rate
        level += 0.3 * rate
        simulator.advance_to(0.3 * (k + 1))
        assert simulator.context.get("level.y")[0] == pytest.approx(level, abs=1e-9)


# Refusals ------------------------------------------------------------------------------------


@for_each(
    ("kind", "arguments", "text"),
    [
        (Saturation, (1.0, -1.0), "expected lower <= upper; found lower=1, upper=-1"),
        (DeadZone, ([0.0, 3.0], 2.0), r"expected lower <= upper; found lower=\[0, 3\], upper=2"),
        (
            Saturation,
            ([0.0, 1.0], [2.0, 3.0, 4.0]),
            r"lower of shape \(2,\), upper of shape \(3,\)",
        ),
        (Quantizer, ([1.0, 2.0], 3), r"interval of shape \(2,\), size of shape \(3,\)"),
        (LookupTable, ([0.0], [1.0]), "expected two or more points and as many values"),
        (LookupTable, ([0.0, 1.0], [1.0]), r"found points of shape \(2,\), values of shape \(1,\)"),
        (LookupTable, ([[0.0, 1.0]], [[0.0, 1.0]]), r"found points of shape \(1, 2\)"),
        (LookupTable, ([0.0, 0.0], [1.0, 2.0]), r"strictly increasing points; found \[0, 0\]"),
        (LookupTable, ([0.0, np.inf], [1.0, 2.0]), r"finite, .*; found \[0, inf\]"),
        (LookupTable, ([0.0, np.nan], [1.0, 2.0]), r"finite, .*; found \[0, nan\]"),
        (LookupTable, ([0.0, 1.0], [1.0, 2.0], "cubic"), "one of 'hold', 'linear'; found 'cubic'"),
        (RateLimiter, (1.0, [1.0, 2.0], 0.1, 3), r"falling of shape \(2,\), size of shape \(3,\)"),
        (RateLimiter, (1.0, 1.0), "a time_constant, or a period without it; found neither"),
        (Relay, (1.0, 1.0), r"expected off_threshold < on_threshold; found off_threshold=1, on"),
    ],
)
def test_impossible_structure_is_refused(kind: Any, arguments: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=rf"{kind.__name__} 'b': .*{text}"):
        kind("b", *arguments)


def test_sampling_period_must_be_positive() -> None:
    with pytest.raises(DeclarationError, match=r"positive, finite period; found period=0\.0"):
        RateLimiter("b", 1.0, 1.0, period=0.0)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (lambda: Saturation("b", -1.0, 1.0), "lower", np.nan),
        (lambda: Quantizer("b", 1.0), "interval", 0.0),
        (lambda: LookupTable("b", POINTS, VALUES), "values", [1.0, 2.0]),
        (lambda: LookupTable("b", POINTS, VALUES), "values", [1.0, 2.0, 3.0, np.inf]),
        (lambda: RateLimiter("b", 1.0, 1.0, 0.1), "rising", -1.0),
        (lambda: RateLimiter("b", 1.0, 1.0, 0.1), "falling", -np.inf),
        (lambda: RateLimiter("b", 1.0, 1.0, 0.1), "time_constant", 0.0),
        (lambda: RateLimiter("b", 1.0, 1.0, period=0.1), "falling", -1.0),
        (lambda: Relay("b", 1.0, -1.0), "on_value", np.inf),
    ],
)
def test_impossible_parameters_are_refused_in_a_context(
    make: Callable[[], fx.LeafSystem], name: str, value: Any
) -> None:
    context = make().create_default_context()
    before = context.clone()
    with pytest.raises(ValueRefusedError, match=rf"b\.{name}"):
        context.set(name, value)
    assert context == before
