"""How a simulation ends before its time: by a monitor, by a publish, or by an exception."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams import Initialization, Periodic, Terminate, Witness
from flexure.diagrams.values.events import Trigger
from tests.support.systems.simulation import Clockwork, Flow, count_up, together
from tests.support.tiers import for_each


def decay() -> Flow:
    """ẋ = -x from x = 1."""
    return Flow(lambda t, x: -x, [1.0])


# Monitor and termination -------------------------------------------------------------------------


def test_the_monitor_sees_the_root_context_at_the_start_and_after_every_step() -> None:
    seen: list[fx.Context] = []
    times: list[float] = []

    def monitor(context: fx.Context) -> None:
        seen.append(context)
        times.append(context.time)

    simulator = fx.Simulator(together(decay(), name="root"), monitor=monitor)
    simulator.advance_to(1.0)
    assert all(context is simulator.context for context in seen)
    assert times[0] == 0.0
    assert times[-1] == 1.0
    assert times == sorted(set(times))
    assert len(times) == 1 + simulator.statistics.steps


def end_from(time: float) -> Callable[[Any, float], Terminate | None]:
    def act(context: Any, count: float) -> Terminate | None:
        return Terminate("enough") if context.time >= time else None

    return act


@for_each(
    ("trigger", "end"),
    [
        (Initialization(), 0.0),
        (Periodic(0.25), 0.5),
        (Periodic(0.25, 0.1), 0.6),
        (Witness(lambda context: context.time - 0.75), 0.75),
        (Periodic(2.0, 2.0), 2.0),
    ],
)
@for_each("moving", [False, True])
@for_each("watched", [False, True])
@for_each("compiled", [False, True])
def test_a_publish_that_terminates_ends_the_run_at_its_instant(
    trigger: Trigger, end: float, moving: bool, watched: bool, compiled: bool
) -> None:
    start = 0.0 if isinstance(trigger, Initialization) else 0.4
    block = Clockwork(trigger, end_from(start))
    system = together(block, decay()) if moving else block
    monitor = (lambda context: None) if watched else None
    simulator = fx.Simulator(system, monitor=monitor, compiled=compiled)
    simulator.advance_to(2.0)
    assert simulator.termination == Terminate("enough")
    assert simulator.terminated_by is not None
    assert simulator.terminated_by.endswith("clockwork.run")
    assert simulator.context.time == end
    assert block.times[-1] == end
    assert len(block.times) == len(set(block.times))
    if moving:
        assert simulator.context.get("flow.x") == pytest.approx([math.exp(-end)], rel=1e-5)


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_a_run_goes_on_after_its_termination(moving: bool) -> None:
    block = Clockwork(Periodic(0.25), end_from(0.5))
    simulator = fx.Simulator(together(block, decay()) if moving else block)
    ends = []
    for _ in range(3):
        simulator.advance_to(5.0)
        ends.append(simulator.context.time)
    assert ends == [0.5, 0.75, 1.0]
    assert block.times == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("time", [0.0, 0.3])
def test_a_monitor_that_terminates_ends_the_run(time: float) -> None:
    simulator = fx.Simulator(
        decay(), method="rk4", step=0.1, monitor=lambda context: end_from(time)(context, 0.0)
    )
    simulator.advance_to(2.0)
    assert simulator.termination is not None
    assert simulator.terminated_by == "the monitor"
    assert simulator.context.time == pytest.approx(time)


def test_the_updates_of_the_instant_of_termination_stay_pending() -> None:
    stop = Clockwork(Periodic(0.5), end_from(0.5), name="stop")
    counter = Clockwork(Periodic(0.5), count_up, kind="discrete", name="counter")
    simulator = fx.Simulator(together(stop, counter, decay()))
    simulator.advance_to(2.0)
    assert counter.times == [0.0]
    simulator.advance_pending_events()
    assert counter.times == [0.0, 0.5]


def test_of_two_terminations_at_one_instant_the_first_is_reported() -> None:
    blocks = [Clockwork(Periodic(0.5), end_from(0.5), name=name) for name in ("first", "second")]
    simulator = fx.Simulator(together(*blocks))
    simulator.advance_to(1.0)
    assert simulator.terminated_by == "first.run"
    assert blocks[1].times == [0.0, 0.5]


# Exceptions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
@pytest.mark.parametrize("kind", ["discrete", "unrestricted"])
def test_an_update_that_raised_is_still_due(kind: Any, moving: bool) -> None:
    broken = [True]

    def fail_once(context: Any, count: float) -> float:
        if context.time > 0.25 and broken:
            broken.clear()
            raise RuntimeError("not yet")
        return count + 1.0

    block = Clockwork(Periodic(0.25), fail_once, kind=kind)
    simulator = fx.Simulator(together(block, decay()) if moving else block)
    with pytest.raises(RuntimeError, match="not yet") as caught:
        simulator.advance_to(1.0)
    assert caught.value.__notes__ == [
        f"while computing the update '{block.label}.renew' at t = 0.5"
    ]
    assert simulator.context.time == 0.5
    simulator.advance_to(1.0)
    assert block.count(simulator.context) == [4.0]


def test_of_two_phases_only_the_one_that_failed_is_repeated() -> None:
    broken = [True]

    def fail_once(context: Any, count: float) -> float:
        if broken:
            broken.clear()
            raise RuntimeError
        return count + 1.0

    first = Clockwork(Periodic(0.5), count_up, kind="unrestricted", name="first")
    second = Clockwork(Periodic(0.5), fail_once, kind="discrete", name="second")
    simulator = fx.Simulator(together(first, second))
    with pytest.raises(RuntimeError):
        simulator.advance_to(0.25)
    simulator.advance_to(0.25)
    assert first.count(simulator.context) == [1.0]
    assert second.count(simulator.context) == [1.0]


def test_a_publish_that_raised_leaves_the_context_at_its_instant() -> None:
    def fail(context: Any, count: float) -> None:
        if context.time == 0.5:
            raise RuntimeError

    block = Clockwork(Periodic(0.25), fail)
    simulator = fx.Simulator(together(block, decay()), rtol=1e-9)
    with pytest.raises(RuntimeError):
        simulator.advance_to(1.0)
    assert simulator.context.time == 0.5
    assert simulator.context.get("flow.x") == pytest.approx([math.exp(-0.5)])
    simulator.advance_to(1.0)
    assert block.times == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert simulator.context.get("flow.x") == pytest.approx([math.exp(-1.0)])
