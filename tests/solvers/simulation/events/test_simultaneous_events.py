"""Events of several blocks, and of several kinds, at one instant or nearly so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Periodic, Witness
from flexure.solvers.integration.methods.methods import METHOD_NAMES
from flexure.solvers.native.programs.method_programs import METHODS
from tests.support.native.native import needs_llvmlite
from tests.support.systems.simulation import (
    ROUNDING,
    Clockwork,
    Flow,
    chain,
    clock,
    count_up,
    method_options,
    together,
)
from tests.support.tiers import thinned


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
            self.declare_discrete_update(self.take, Witness(lambda context: context.time - 0.5))

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
        self.declare_discrete_update(self.tick, Periodic(0.1, 0.1))
        self.declare_discrete_update(self.cross, Witness(self.watch, "rising"))

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
    thinned(
        [
            *((method, False) for method in METHOD_NAMES),
            *(pytest.param(method, "native", marks=needs_llvmlite) for method in METHODS),
        ],
        fast=7,
    ),
)
def test_no_event_is_lost_where_a_zero_meets_a_tick(method: str, compiled: Any) -> None:
    tally = _Tally()
    for due in (0.3, 0.30000000000000004, 0.4, math.nextafter(0.4, 0), math.nextafter(0.4, 1)):
        context = tally.create_default_context()
        tally.due.set(context, due)
        fx.Simulator(tally, context, compiled=compiled, **method_options(method)).advance_to(0.55)
        assert [tally.n(context)[0], tally.m(context)[0]] == [5.0, 1.0]


def test_an_event_at_the_instant_of_a_tick_runs_together_with_it() -> None:
    tick = Clockwork(Periodic(0.5), count_up, kind="discrete", name="tick")
    event = Clockwork(
        Witness(lambda context: context.time - 0.5), count_up, kind="discrete", name="event"
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
    soon = Clockwork(Witness(lambda c: np.where(c.time > 0.0, 1.0, -1.0)), name="soon")
    late = Clockwork(Witness(lambda c: c.time - 0.3), name="late")
    counters = [
        Clockwork(Periodic(1.0, offset), count_up, kind="discrete", name=name)
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
            started = Witness(lambda context: self.u(context)[0] - 1.0, "rising")
            arrived = Witness(lambda context: self.x(context)[0] - 1.0, "rising")
            self.declare_discrete_update(lambda context: {self.moving: 1.0}, started)
            self.declare_publish(lambda context: self.times.append(context.time), arrived)

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.moving(context)

    runners = [Runner(name) for name in "abc"]
    fx.Simulator(chain(fx.Ramp("ramp", slope=1.0), *runners)).advance_to(5.0)
    assert [runner.times for runner in runners] == [
        pytest.approx([at], abs=1e-9) for at in (2.0, 3.0, 4.0)
    ]
