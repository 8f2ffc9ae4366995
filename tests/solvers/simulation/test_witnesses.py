"""Witness events: where they are found, what triggers them, and when they are too many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.errors import (
    DeclarationError,
    EvaluationError,
    NonFiniteError,
    ValueRefusedError,
    ZenoError,
)
from flexure.diagrams.events import Direction
from flexure.solvers.integration.methods import METHOD_NAMES
from flexure.solvers.native.methods import METHODS
from flexure.solvers.simulation.zeno import PileUp
from tests.support.native import needs_llvmlite
from tests.support.simulation import (
    ADAPTIVE,
    Clockwork,
    Flow,
    ball,
    chain,
    count_up,
    method_options,
    together,
)

EXACT: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
ROUNDING = 1e-13


def clock(watch: Callable[[Any], Any], direction: Direction = "either", **given: Any) -> Flow:
    """ẋ = 1 from x = 0, so that x is the time, and a function of x is watched."""
    return Flow(
        lambda t, x: [1.0], [0.0], watch=lambda t, x: watch(x[0]), direction=direction, **given
    )


def hits(flow: Flow, end: float, **options: Any) -> list[float]:
    fx.Simulator(flow, **options).advance_to(end)
    return flow.hits


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


@pytest.mark.parametrize("height", [1e-4, 1e-8, 1e-12])
def test_a_near_miss_is_no_event(height: float) -> None:
    assert hits(clock(lambda x: (x - 0.6) ** 2 + height), 1.0, method="rk4", step=1.0) == []


def test_touching_zero_from_above_is_at_most_one_falling_event() -> None:
    flow = clock(lambda x: (x - 0.5) ** 2, "falling")
    found = hits(flow, 1.0, method="rk4", step=0.25)
    assert found == [0.5]


def test_a_function_of_time_alone_is_watched_without_continuous_state() -> None:
    block = Clockwork(fx.Witness(lambda context: (context.time - 0.25) * (context.time - 0.75)))
    simulator = fx.Simulator(block)
    simulator.advance_to(1.0)
    assert block.times == pytest.approx([0.25, 0.75], abs=ROUNDING)


def test_without_continuous_state_the_longest_step_bounds_the_search() -> None:
    block = Clockwork(fx.Witness(lambda context: math.sin(math.pi * context.time)))
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


# Several blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations([0.7, 0.3, 0.5])))
def test_events_of_several_blocks_inside_of_one_step_take_place_in_the_order_of_time(
    order: tuple[float, ...],
) -> None:
    trace: list[tuple[str, float]] = []

    def noting(name: str) -> Callable[[Any, Any], Any]:
        def update(t: float, x: Any) -> Any:
            trace.append((name, t))
            return x

        return update

    blocks = [
        clock(lambda x, at=at: x - at, name=f"b{k}", update=noting(f"b{k}"))  # type: ignore[misc]
        for k, at in enumerate(order)
    ]
    fx.Simulator(together(*blocks), method="rk4", step=1.0).advance_to(1.0)
    assert [time for _, time in trace] == pytest.approx([0.3, 0.5, 0.7], abs=ROUNDING)
    assert [name for name, _ in trace] == [f"b{order.index(at)}" for at in (0.3, 0.5, 0.7)]


def test_simultaneous_events_of_two_blocks_see_each_others_old_values() -> None:
    class Swapper(fx.LeafSystem):
        """Takes over the value of another block when the time passes 0.5."""

        def __init__(self, name: str, start: float) -> None:
            super().__init__(name)
            self.u = self.declare_vector_input("u", 1)
            self.x = self.declare_discrete_state("x", start)
            self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
            self.declare_discrete_update(self.take, fx.Witness(lambda context: context.time - 0.5))

        def take(self, context: Any) -> Any:
            return {self.x: self.u(context)}

    builder = fx.DiagramBuilder("swap")
    builder.add_all(Swapper("a", 1.0), Swapper("b", 2.0))
    builder.connect("a.y", "b.u")
    builder.connect("b.y", "a.u")
    simulator = fx.Simulator(builder.build())
    simulator.advance_to(1.0)
    assert simulator.context.get("a.x") == [2.0]
    assert simulator.context.get("b.x") == [1.0]
    assert simulator.statistics.witness_events == 2


def test_events_at_almost_one_instant_in_many_blocks_are_no_pile_up() -> None:
    blocks = [clock(lambda x, c=1.0 + k / 7: c * x - c * 0.7, name=f"b{k}") for k in range(30)]  # type: ignore[misc]
    fx.Simulator(together(*blocks)).advance_to(1.0)
    for block in blocks:
        assert block.hits == pytest.approx([0.7], abs=ROUNDING)


class _Tally(fx.LeafSystem):
    """ẋ = 1, with a tick every 0.1 s, and a witness function that is zero at about one of them."""

    def __init__(self) -> None:
        super().__init__("tally")
        self.x = self.declare_continuous_state(z=1, default=[0.0])
        self.due = self.declare_numeric_parameter("due", 0.4)
        self.n = self.declare_discrete_state("ticks", 0.0)
        self.m = self.declare_discrete_state("events", 0.0)
        self.declare_discrete_update(self.tick, fx.Periodic(0.1, 0.1))
        self.declare_discrete_update(self.cross, fx.Witness(self.watch, "rising"))

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0]

    def watch(self, context: Any) -> Any:
        return self.x(context) - self.due(context)

    def tick(self, context: Any) -> Any:
        return {self.n: self.n(context) + 1.0}

    def cross(self, context: Any) -> Any:
        return {self.m: self.m(context) + 1.0}


@pytest.mark.parametrize(
    ("method", "compiled"),
    [
        *((method, False) for method in METHOD_NAMES),
        *(pytest.param(method, "native", marks=needs_llvmlite) for method in METHODS),
    ],
)
def test_no_event_is_lost_where_a_zero_meets_a_tick(method: str, compiled: Any) -> None:
    tally = _Tally()
    for due in (0.3, 0.30000000000000004, 0.4, math.nextafter(0.4, 0), math.nextafter(0.4, 1)):
        context = tally.create_default_context()
        tally.due.set(context, due)
        fx.Simulator(tally, context, compiled=compiled, **method_options(method)).advance_to(0.55)
        assert [tally.n(context)[0], tally.m(context)[0]] == [5.0, 1.0]


def test_an_event_at_the_instant_of_a_tick_runs_together_with_it() -> None:
    tick = Clockwork(fx.Periodic(0.5), count_up, kind="discrete", name="tick")
    event = Clockwork(
        fx.Witness(lambda context: context.time - 0.5), count_up, kind="discrete", name="event"
    )
    simulator = fx.Simulator(together(tick, event, clock(lambda x: 1.0)))
    simulator.advance_to(0.5)
    assert simulator.context.time == 0.5
    assert event.times == []
    simulator.advance_pending_events()
    assert tick.times == [0.0, 0.5]
    assert event.times == [0.5]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("gap", [1, 2, 3, 7])
def test_ticks_may_be_as_close_together_as_floating_point_numbers(
    gap: int, moving: bool, compiled: bool
) -> None:
    moment = gap * math.ulp(0.0)
    # One function changes its sign between the ticks, the other one long after.
    soon = Clockwork(fx.Witness(lambda c: np.where(c.time > 0.0, 1.0, -1.0)), name="soon")
    late = Clockwork(fx.Witness(lambda c: c.time - 0.3), name="late")
    counters = [
        Clockwork(fx.Periodic(1.0, offset), count_up, kind="discrete", name=name)
        for name, offset in {"first": 0.0, "second": moment}.items()
    ]
    motion = [Flow(lambda t, x: [1.0], [0.0])] if moving else []
    simulator = fx.Simulator(together(soon, late, *counters, *motion), compiled=compiled)
    simulator.advance_to(0.5)
    assert len(soon.times) == len(late.times) == 1
    assert 0.0 < soon.times[0] <= moment
    assert late.times[0] == pytest.approx(0.3)
    assert [simulator.context.get(f"{name}.count") for name in ("first", "second")] == [1.0, 1.0]


def test_an_event_may_cause_another_one_a_moment_later() -> None:
    """One block starts to move when another arrives, and its arrival starts the third."""

    class Runner(fx.LeafSystem):
        """ẋ = 1 from when the input reaches 1; a witness function notes when x = 1."""

        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.u = self.declare_vector_input("u", 1)
            self.x = self.declare_continuous_state(z=1)
            self.moving = self.declare_discrete_state("moving", 0.0)
            self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
            self.times: list[float] = []
            started = fx.Witness(lambda context: self.u(context)[0] - 1.0, "rising")
            arrived = fx.Witness(lambda context: self.x(context)[0] - 1.0, "rising")
            self.declare_discrete_update(lambda context: {self.moving: 1.0}, started)
            self.declare_publish(lambda context: self.times.append(context.time), arrived)

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.moving(context)

    runners = [Runner(name) for name in "abc"]
    fx.Simulator(chain(fx.Ramp("ramp", slope=1.0), *runners)).advance_to(5.0)
    assert [runner.times for runner in runners] == [
        pytest.approx([at], abs=1e-9) for at in (2.0, 3.0, 4.0)
    ]


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
    block = Clockwork(fx.Witness(lambda context: context.time - 0.3))
    fx.Simulator(block, max_step=0.25, isolate=False).advance_to(1.0)
    assert block.times == [0.5]


# Bouncing balls ----------------------------------------------------------------------------------


def impact_times(
    restitution: float, number: int, *, height: float = 1.0, gravity: float = 9.81
) -> np.ndarray:
    """Impacts of a ball that is dropped, in closed form."""
    fall = math.sqrt(2.0 * height / gravity)
    hops = 2.0 * fall * restitution ** np.arange(1, number)
    return np.cumsum([fall, *hops])


@pytest.mark.parametrize("direction", ["falling", "either"])
@pytest.mark.parametrize("restitution", [0.5, 0.65, 0.8])
def test_impacts_of_a_ball_down_to_tiny_hops(restitution: float, direction: Direction) -> None:
    hops = math.ceil(math.log(2e-5) / math.log(restitution))
    expected = impact_times(restitution, hops)
    flow = ball(restitution, direction=direction)
    simulator = fx.Simulator(flow, method="RK45")
    simulator.advance_to(expected[-1] + 0.1 * (expected[-1] - expected[-2]) * restitution)
    assert len(flow.hits) == hops
    np.testing.assert_allclose(flow.hits, expected, rtol=1e-12, atol=1e-12)
    height = float(flow.x(simulator.context)[0])
    assert 0.0 < height < 1e-8


@pytest.mark.parametrize("method", ["auto", "RK45", "DOP853", "Rodas5P", "Radau", "rk2", "rk4"])
def test_a_ball_bounces_several_times_inside_of_one_long_step(method: str) -> None:
    expected = impact_times(0.7, 6)
    flow = ball(0.7)
    options: dict[str, Any] = {"step": 2.3} if method.startswith("rk") else {}
    simulator = fx.Simulator(flow, method=method, **options)
    simulator.advance_to(2.3)
    np.testing.assert_allclose(flow.hits, expected, rtol=1e-9)
    if method.startswith("rk"):
        assert simulator.statistics.steps == 7


@pytest.mark.parametrize("restitution", [0.5, 0.65, 0.8, 0.95])
def test_a_ball_that_never_comes_to_rest_ends_in_an_error_at_its_last_instant(
    restitution: float,
) -> None:
    flow = ball(restitution)
    last = impact_times(restitution, 2000)[-1]
    simulator = fx.Simulator(flow)
    with pytest.raises(ZenoError, match=r"'ball\.change' closer and closer.*below a speed") as e:
        simulator.advance_to(last + 1.0)
    assert e.value.time == simulator.context.time == pytest.approx(last, rel=1e-5)
    assert abs(flow.x(simulator.context)[0]) < 1e-9


def test_a_ball_that_is_put_to_rest_comes_to_rest() -> None:
    class Resting(fx.LeafSystem):
        """A ball that a slow impact ends."""

        def __init__(self) -> None:
            super().__init__("ball")
            self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
            self.falling = self.declare_discrete_state("falling", 1.0)
            self.declare_unrestricted_update(self.bounce, fx.Witness(self.x.q, "falling"))

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.falling(context) * [self.x.v(context)[0], -9.81]

        def bounce(self, context: Any) -> Any:
            speed = -0.5 * self.x.v(context)[0]
            if speed < 1e-3:
                return {self.x: [0.0, 0.0], self.falling: 0.0}
            return {self.x: [0.0, speed]}

    simulator = fx.Simulator(Resting())
    simulator.advance_to(100.0)
    assert simulator.context.get("x").tolist() == [0.0, 0.0]


# Zeno --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "Rodas5P", "Radau", "LSODA", "rk4"])
def test_a_relay_without_hysteresis_ends_in_an_error(method: str) -> None:
    class Relay(fx.LeafSystem):
        """ẋ = -sign, where the sign follows x at once."""

        def __init__(self) -> None:
            super().__init__("relay")
            self.x = self.declare_continuous_state(z=1, default=[1.0])
            self.sign = self.declare_discrete_state("sign", 1.0)
            margin = fx.Witness(
                lambda context: (self.x(context) * self.sign(context))[0], "falling"
            )
            self.declare_discrete_update(lambda context: {self.sign: -self.sign(context)}, margin)

        def calc_time_derivatives(self, context: Any) -> Any:
            return -self.sign(context)

    simulator = fx.Simulator(Relay(), **method_options(method, 0.3))
    with pytest.raises(ZenoError, match=r"'relay\.<lambda>'.*give a relay some hysteresis") as e:
        simulator.advance_to(2.0)
    assert e.value.time == pytest.approx(1.0)
    assert simulator.context.get("x") == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize("period", [1e-1, 1e-3, 1e-6])
def test_fast_regular_events_are_no_pile_up(period: float) -> None:
    flow = clock(lambda x: np.sin(math.pi * x / period))
    found = hits(flow, 100.5 * period, max_step=0.4 * period)
    assert found == pytest.approx(period * np.arange(1.0, 101.0), rel=1e-9)


def test_a_hysteresis_relay_that_switches_often_is_no_pile_up() -> None:
    builder = fx.DiagramBuilder("heater")
    builder.add_all(
        fx.Relay("relay", 1e-4, -1e-4, on_value=1.0, off_value=-1.0), fx.Gain("gain", -1.0)
    )
    builder.add(fx.Integrator("tank"))
    builder.connect_chain("tank", "relay", "gain", "tank.u")
    simulator = fx.Simulator(builder.build(), monitor=lambda context: None)
    simulator.advance_to(0.05)
    assert simulator.statistics.witness_events == 250
    assert abs(simulator.context.get("tank.x")[0]) <= 1e-4 + ROUNDING


def test_events_of_a_chirp_are_no_pile_up() -> None:
    flow = clock(lambda x: np.sin(math.pi * x**2))
    found = hits(flow, 10.02, max_step=0.02)
    assert found == pytest.approx(np.sqrt(np.arange(1.0, 101.0)), abs=1e-9)


@pytest.mark.parametrize(
    "times",
    [
        [1e-3 * k for k in range(5000)],
        [1e6 + 1e-5 * k for k in range(5000)],
        [math.sqrt(k) for k in range(5000)],
        [math.log(k) for k in range(1, 5000)],
        [1.0 - 0.5**k for k in range(15)],
        [k // 10 for k in range(5000)],
    ],
    ids=["regular", "regular and late", "square root", "logarithm", "few", "tens at once"],
)
def test_times_that_do_not_pile_up(times: list[float]) -> None:
    pile_up = PileUp()
    assert not any(pile_up.add(time) for time in times)


@pytest.mark.parametrize(
    "times",
    [
        [1.0 - 0.5**k for k in range(60)],
        [1e3 - 0.9**k for k in range(400)],
        [0.3] * 12,
        [0.3 + 1e-16 * k for k in range(12)],
        [*range(1000), *(1000.0 - 0.5**k for k in range(60))],
    ],
    ids=["halving", "late and slow", "one instant", "rounding", "after a regular time"],
)
def test_times_that_pile_up(times: list[float]) -> None:
    pile_up = PileUp()
    assert any(pile_up.add(time) for time in times)


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, [1.0, 2.0], None])
def test_a_witness_function_that_is_no_finite_number(bad: Any, moving: bool) -> None:
    block = Clockwork(fx.Witness(lambda context: 1.0 if context.time <= 0.5 else bad))
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

    block = Clockwork(fx.Witness(fail))
    simulator = fx.Simulator(together(block, clock(lambda x: 1.0)) if moving else block)
    with pytest.raises(ZeroDivisionError) as caught:
        simulator.advance_to(1.0)
    (note,) = caught.value.__notes__
    assert note.startswith(f"while computing the witness function of '{block.label}.run' at t = ")
    assert simulator.context.time <= 0.5


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("bad", [1.0 + 2.0j, np.complex128(1.0), "abc", "1.0", b"1", [[1.0], []]])
def test_a_witness_function_that_is_no_real_number(bad: Any, moving: bool) -> None:
    block = Clockwork(fx.Witness(lambda context: 1.0 if context.time <= 0.5 else bad))
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
        fx.Witness(abs, max_check_interval=value)


# Flat, fast and short ----------------------------------------------------------------------------

READINGS = pytest.mark.parametrize("compiled", [True, "python", False])


@READINGS
@pytest.mark.parametrize("moving", [False, True], ids=["of time", "of the state"])
@pytest.mark.parametrize(
    "flat", [lambda s: s**3, lambda s: s * abs(s), lambda s: s**9, lambda s: 1e-200 * s**5]
)
def test_a_flat_zero_is_found(flat: Callable[[Any], Any], moving: bool, compiled: Any) -> None:
    flow = Flow(
        lambda t, x: [1.0], [0.0], watch=lambda t, x: flat((x[0] if moving else t) - 1.0 / 3.0)
    )
    assert hits(flow, 1.0, compiled=compiled) == pytest.approx([1.0 / 3.0], abs=1e-12)


@READINGS
@pytest.mark.parametrize("moving", [False, True], ids=["of time", "of the state"])
@pytest.mark.parametrize("phase", [0.0, 0.5 * math.pi, 2.0])
def test_all_crossings_of_a_fast_function_are_found_in_long_steps(
    phase: float, moving: bool, compiled: Any
) -> None:
    flow = Flow(
        lambda t, x: [1.0],
        [0.0],
        watch=lambda t, x: np.sin(40.0 * math.pi * (x[0] if moving else t) + phase),
    )
    expected = (math.pi * np.arange(1, 40) - phase % math.pi) / (40.0 * math.pi)
    assert hits(flow, 0.98, compiled=compiled) == pytest.approx(
        expected[expected < 0.98], abs=1e-12
    )


def test_crossings_of_a_fast_function_are_found_without_continuous_state() -> None:
    block = Clockwork(fx.Witness(lambda context: math.sin(40.0 * math.pi * context.time)))
    fx.Simulator(block).advance_to(5.01)
    assert block.times == pytest.approx(0.025 * np.arange(1, 201), abs=1e-12)


def pulse(t: Any) -> Any:
    """Short pulses at 0.3 and 0.8, between which nothing moves."""
    return np.exp(-(((t - 0.3) / 1e-3) ** 2)) + np.exp(-(((t - 0.8) / 1e-3) ** 2)) - 0.5


@READINGS
@pytest.mark.parametrize("of_the_witness", [False, True])
def test_pulses_are_found_by_looking_often_enough(of_the_witness: bool, compiled: Any) -> None:
    class Pulses(Flow):
        """Watches pulses with an interval of its own."""

        def __init__(self) -> None:
            super().__init__(lambda t, x: [1.0], [0.0])
            witness = fx.Witness(
                lambda context: pulse(context.time),
                max_check_interval=1e-3 if of_the_witness else math.inf,
            )
            self.declare_publish(self.note, witness)

    flow = Pulses()
    options = {} if of_the_witness else {"max_check_interval": 1e-3}
    half = 1e-3 * math.sqrt(math.log(2.0))
    expected = [0.3 - half, 0.3 + half, 0.8 - half, 0.8 + half]
    assert hits(flow, 1.0, compiled=compiled, **options) == pytest.approx(expected, abs=1e-9)


def test_the_interval_means_the_same_in_every_call() -> None:
    flow = Flow(lambda t, x: [1.0], [0.0], watch=lambda t, x: pulse(t), update=lambda t, x: [0.0])
    often: dict[str, Any] = {"max_check_interval": 1e-3}
    result = fx.simulate(flow, 1.0, **often)
    assert result.statistics.witness_events == 4
    found = fx.sweep(flow, {"x": np.zeros((2, 1))}, 1.0, **often)
    assert found.final_states[:, 0] == pytest.approx([1.0 - flow.hits[3]] * 2)


def test_a_function_that_varies_too_fast_to_be_watched_is_a_warning() -> None:
    flow = clock(lambda x: 1.5 + np.sin(6000.0 * math.pi * x))
    with pytest.warns(UserWarning, match=r"'flow\.note' may have missed.*max_check_interval"):
        hits(flow, 1.0, method="rk4", step=1.0)


def test_corners_and_jumps_are_no_reason_to_warn() -> None:
    corner = clock(lambda x: abs(x - 0.4), name="corner")
    jump = clock(lambda x: np.where(x < 0.6, 1.0, 0.5), name="jump")
    both = clock(lambda x: np.where(x < 0.7, 1.0, -1.0), name="both")
    fx.Simulator(together(corner, jump, both), method="rk4", step=1.0).advance_to(1.0)
    assert (corner.hits, jump.hits) == ([], [])
    assert both.hits == pytest.approx([0.7])


def test_a_steep_change_of_sign_is_found_and_no_reason_to_warn() -> None:
    for place in 0.7 + 1e-7 * np.arange(5):
        steep = clock(partial(lambda at, x: 0.5 * np.tanh((at - x) / 5e-7), place))
        assert hits(steep, 1.0, method="rk4", step=1.0) == pytest.approx([place], abs=1e-12)
