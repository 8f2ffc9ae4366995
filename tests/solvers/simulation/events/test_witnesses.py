"""Witness events: where they are found, and what triggers them."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Witness
from flexure.diagrams.checks.errors import (
    DeclarationError,
    EvaluationError,
    NonFiniteError,
    ValueRefusedError,
)
from flexure.diagrams.values.events import Direction
from tests.support.systems.simulation import (
    ADAPTIVE,
    ROUNDING,
    Clockwork,
    Flow,
    clock,
    hits,
    method_options,
    together,
)
from tests.support.tiers import for_each

# Where events are --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_crossing_is_found_to_rounding_by_every_method(method: str) -> None:
    found = hits(clock(lambda x: x**3 - 0.3), 1.0, method=method)
    assert found == pytest.approx([0.3 ** (1.0 / 3.0)], abs=1e-12)


def test_at_the_event_the_function_has_reached_or_just_passed_zero() -> None:
    values: list[float] = []

    def update(t: float, x: Any) -> Any:
        values.append(x[0] - 1.0 / 3.0)
        return x

    hits(clock(lambda x: x - 1.0 / 3.0, update=update), 1.0)
    assert 0.0 <= values[0] < ROUNDING


@pytest.mark.parametrize(
    ("roots", "direction", "expected"),
    [
        ([0.2, 0.9], "either", [0.2, 0.9]),
        ([0.2, 0.9], "falling", [0.2]),
        ([0.2, 0.9], "rising", [0.9]),
        ([0.5, 0.5 + 1e-6], "either", [0.5, 0.5 + 1e-6]),
        ([0.3, 0.31], "falling", [0.3]),
        ([0.3, 0.31], "rising", [0.31]),
        ([0.97, 0.99], "either", [0.97, 0.99]),
        ([0.001, 0.002], "either", [0.001, 0.002]),
    ],
)
def test_two_roots_inside_of_one_step(
    roots: list[float], direction: Direction, expected: list[float]
) -> None:
    a, b = roots
    flow = clock(lambda x: (x - a) * (x - b), direction)
    simulator = fx.Simulator(flow, method="rk4", step=1.0)
    simulator.advance_to(1.0)
    assert flow.hits == pytest.approx(expected, abs=1e-9)
    assert simulator.statistics.steps == 1 + len(expected)


def test_three_roots_inside_of_one_step() -> None:
    flow = clock(lambda x: (x - 0.1) * (x - 0.4) * (x - 0.8))
    assert hits(flow, 1.0, method="rk4", step=1.0) == pytest.approx([0.1, 0.4, 0.8])


def test_many_roots_with_steps_of_a_third_of_their_distance() -> None:
    flow = clock(lambda x: np.sin(math.pi * x))
    found = hits(flow, 20.5, max_step=0.33)
    assert found == pytest.approx(np.arange(1.0, 21.0), abs=1e-12)


@pytest.mark.parametrize("depth", [1e-4, 1e-8, 1e-12])
def test_a_dip_just_below_zero_is_found(depth: float) -> None:
    flow = clock(lambda x: (x - 0.6) ** 2 - depth)
    found = hits(flow, 1.0, method="rk4", step=1.0)
    width = math.sqrt(depth)
    assert found == pytest.approx([0.6 - width, 0.6 + width], abs=1e-4 * width)


@for_each("height", [1e-4, 1e-8, 1e-12])
def test_a_near_miss_is_no_event(height: float) -> None:
    assert hits(clock(lambda x: (x - 0.6) ** 2 + height), 1.0, method="rk4", step=1.0) == []


def test_touching_zero_from_above_is_at_most_one_falling_event() -> None:
    flow = clock(lambda x: (x - 0.5) ** 2, "falling")
    found = hits(flow, 1.0, method="rk4", step=0.25)
    assert found == [0.5]


def test_a_function_of_time_alone_is_watched_without_continuous_state() -> None:
    block = Clockwork(Witness(lambda context: (context.time - 0.25) * (context.time - 0.75)))
    simulator = fx.Simulator(block)
    simulator.advance_to(1.0)
    assert block.times == pytest.approx([0.25, 0.75], abs=ROUNDING)


def test_without_continuous_state_the_longest_step_bounds_the_search() -> None:
    block = Clockwork(Witness(lambda context: math.sin(math.pi * context.time)))
    simulator = fx.Simulator(block, max_step=0.3)
    simulator.advance_to(10.5)
    assert block.times == pytest.approx(np.arange(1.0, 11.0), abs=1e-12)


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_a_function_that_jumps_at_a_break_time_triggers_there(moving: bool) -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(
        fx.Step("step", at=1.003, initial=-1.0, to=1.0), fx.StopWhen("stop", "it jumped")
    )
    builder.connect_chain("step", "stop")
    if moving:
        builder.add(clock(lambda x: x + 1.0))
    result = fx.simulate(builder.build(), 2.0)
    assert result.outcome == "terminated"
    assert result.context.time == 1.003


# The surface -------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["falling", "rising", "either"])
@pytest.mark.parametrize("speed", [1.0, -1.0])
@pytest.mark.parametrize("method", ["auto", "rk4"])
def test_leaving_the_surface_at_the_start_is_no_event(
    method: str, speed: float, direction: Direction
) -> None:
    flow = Flow(lambda t, x: [speed], [0.0], watch=lambda t, x: x[0], direction=direction)
    assert hits(flow, 1.0, **method_options(method, 0.1)) == []


def test_the_search_for_stiffness_does_not_move_a_state_off_its_surface() -> None:
    flow = Flow(lambda t, x: [-t], [0.0], watch=lambda t, x: x[0])
    assert hits(flow, 0.5) == []


def test_returning_to_the_surface_from_a_start_on_it_is_an_event() -> None:
    # x = t - 10 t², back at zero after 0.1.
    flow = Flow(lambda t, x: [1.0 - 20.0 * t], [0.0], watch=lambda t, x: x[0], direction="falling")
    assert hits(flow, 1.0, method="rk4", step=1.0) == pytest.approx([0.1], abs=ROUNDING)


def test_an_event_without_reset_does_not_trigger_again() -> None:
    flow = clock(lambda x: x - 0.5)
    simulator = fx.Simulator(flow, max_step=0.01)
    for end in (0.5, 0.6, 1.0):
        simulator.advance_to(end)
    assert flow.hits == pytest.approx([0.5], abs=ROUNDING)


def test_a_state_put_on_the_surface_of_another_event_does_not_trigger_it() -> None:
    flow = clock(lambda x: (x - 0.5) * (x - 2.0), update=lambda t, x: [2.0] if t < 1.0 else x)
    assert hits(flow, 1.5) == pytest.approx([0.5], abs=ROUNDING)


# Direction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("falling", [1.0, 3.0, 5.0]),
        ("rising", [2.0, 4.0]),
        ("either", [1.0, 2.0, 3.0, 4.0, 5.0]),
    ],
)
def test_direction(direction: Direction, expected: list[float], isolate: bool) -> None:
    # sin(pi x) is positive on (0, 1). Without isolation events are at most one step late.
    flow = clock(lambda x: np.sin(math.pi * x), direction)
    step = 0.13
    found = hits(flow, 5.5, method="rk4", step=step, isolate=isolate)
    assert len(found) == len(expected)
    late = np.array(found) - expected
    assert np.all((late >= -ROUNDING) & (late < (1e-12 if isolate else step)))


def test_without_isolation_events_take_place_at_the_ends_of_steps() -> None:
    flow = clock(lambda x: np.sin(5.0 * x))
    found = hits(flow, 4.0, method="euler", step=0.4, isolate=False)
    ends = np.cumsum([0.0] + [0.4] * 10)
    signs = np.sign(np.sin(5.0 * ends))
    assert found == pytest.approx(ends[1:][signs[1:] * signs[:-1] < 0.0], abs=1e-12)


def test_without_isolation_a_function_of_time_is_looked_at_where_time_stops() -> None:
    block = Clockwork(Witness(lambda context: context.time - 0.3))
    fx.Simulator(block, max_step=0.25, isolate=False).advance_to(1.0)
    assert block.times == [0.5]


@pytest.mark.parametrize("given", [{}, {"max_check_interval": 0.01}])
@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_without_isolation_a_pulse_is_seen_at_the_check_interval(given: Any, moving: bool) -> None:
    interval = {} if given else {"max_check_interval": 0.01}
    pulse = Witness(lambda context: 0.015 - abs(context.time - 0.3), "rising", **interval)
    block = Clockwork(pulse)
    system = together(block, clock(lambda x: 1.0)) if moving else block
    fx.Simulator(system, isolate=False, **given).advance_to(1.0)
    assert block.times == [pytest.approx(0.285, abs=0.0101)]


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, [1.0, 2.0], None])
def test_a_witness_function_that_is_no_finite_number(bad: Any, moving: bool) -> None:
    block = Clockwork(Witness(lambda context: 1.0 if context.time <= 0.5 else bad))
    simulator = fx.Simulator(together(block, clock(lambda x: 1.0)) if moving else block)
    with pytest.raises(
        NonFiniteError, match=r"witness function of '.*clockwork\.run' at t = "
    ) as e:
        simulator.advance_to(1.0)
    assert e.value.time is not None
    assert e.value.time > 0.5
    assert simulator.context.time <= 0.5
    assert (bad is None) == ("found None (NoneType)" in str(e.value))


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_a_witness_function_that_raises_is_named(moving: bool) -> None:
    def fail(context: Any) -> Any:
        return 1.0 / (context.time <= 0.5)

    block = Clockwork(Witness(fail))
    simulator = fx.Simulator(together(block, clock(lambda x: 1.0)) if moving else block)
    with pytest.raises(ZeroDivisionError) as caught:
        simulator.advance_to(1.0)
    (note,) = caught.value.__notes__
    assert note.startswith(f"while computing the witness function of '{block.label}.run' at t = ")
    assert simulator.context.time <= 0.5


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("bad", [1.0 + 2.0j, np.complex128(1.0), "abc", "1.0", b"1", [[1.0], []]])
def test_a_witness_function_that_is_no_real_number(bad: Any, moving: bool) -> None:
    block = Clockwork(Witness(lambda context: 1.0 if context.time <= 0.5 else bad))
    simulator = fx.Simulator(together(block, clock(lambda x: 1.0)) if moving else block)
    with pytest.raises(
        EvaluationError, match=r"witness function of '.*clockwork\.run' at t = .*one"
    ):
        simulator.advance_to(1.0)
    assert simulator.context.time <= 0.5


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, "soon", None])
def test_the_longest_time_between_two_looks_is_a_positive_number(value: Any) -> None:
    with pytest.raises(ValueRefusedError, match="max_check_interval"):
        fx.Simulator(clock(lambda x: x), max_check_interval=value)
    with pytest.raises(DeclarationError, match="max_check_interval"):
        Witness(abs, max_check_interval=value)


# How they are evaluated --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["LSODA", "Radau"])
def test_in_long_runs_of_any_method_functions_are_compiled(method: str) -> None:
    def calls_and_hits(compiled: bool) -> tuple[int, list[float]]:
        flow, other, calls = clock(lambda x: np.sin(20.0 * x)), clock(np.cos, name="other"), 0

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal calls
            calls += event == "call" and frame.f_code is Flow.calc_watch.__code__

        sys.setprofile(count)
        try:
            fx.simulate(together(flow, other), 10.0, method=method, compiled=compiled)
        finally:
            sys.setprofile(None)
        return calls, flow.hits + other.hits

    (often, expected), (seldom, found) = calls_and_hits(False), calls_and_hits(True)
    assert found == pytest.approx(expected, abs=1e-12)
    assert seldom < 0.2 * often
