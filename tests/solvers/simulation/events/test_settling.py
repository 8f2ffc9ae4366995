"""Updates that settle: when they run, how often, what they see, and that they come to an end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Initialization, Periodic, Settling
from flexure.diagrams.checks.errors import DeclarationError, ZenoError
from tests.support.systems.event_systems import Act, Actor, settling

HOW = pytest.mark.parametrize("compiled", ["native", "python", False])


@HOW
def test_values_settle_before_a_motion_and_not_after_it(compiled: Any) -> None:
    simulator = fx.Simulator(settling(), compiled=compiled, record=True)
    actor = simulator.system
    assert isinstance(actor, Actor)
    simulator.initialize()
    assert actor.d(simulator.context).tolist() == [0.0, 0.0, 0.0]
    simulator.advance_to(0.4)
    assert actor.d(simulator.context).tolist() == [3.0, 3.0, 3.0]
    simulator.advance_pending_events()
    assert actor.d(simulator.context).tolist() == [0.0, 0.0, 6.0]
    actor.d.set(simulator.context, [0.0, 2.0, 0.0])
    simulator.advance_to(0.7)
    assert actor.d(simulator.context).tolist() == [2.0, 2.0, 2.0]


@HOW
def test_a_run_begins_with_values_that_have_settled(compiled: Any) -> None:
    follow = Act("discrete", Settling(), lambda t, x, d: {"d": [2.0 * x[0], d[1], d[2]]})
    wait = Act("publish", Initialization(), lambda t, x, d: seen.append(d[0]))
    seen: list[float] = []
    actor = Actor(follow, wait, start=[1.5], rate=lambda t, x, d: [d[0]])
    result = fx.simulate(actor, 1.0, compiled=compiled)
    assert seen == [3.0]
    assert result["y"][:, 0].tolist() == [3.0] * len(result.time)


@HOW
def test_all_settling_updates_see_the_same_values_in_each_round(compiled: Any) -> None:
    swap = (
        Act("unrestricted", Settling(), lambda t, x, d: {"x": [max_of(d[0] - 1.0)]}),
        Act("unrestricted", Settling(), lambda t, x, d: {"d": [d[0], d[1], x[0]]}),
    )

    def max_of(value: Any) -> Any:
        return 0.5 * (value + abs(value))

    actor = Actor(*swap, start=[7.0], numbers=[5.0, 0.0, 0.0], rate=lambda t, x, d: [0.0])
    result = fx.simulate(actor, 0.1, compiled=compiled)
    assert result["y"][0].tolist() == [5.0, 0.0, 4.0]


@HOW
def test_a_record_has_times_twice_where_settling_changes_a_value_and_else_once(
    compiled: Any,
) -> None:
    follow = Act("discrete", Settling(), lambda t, x, d: {"d": [d[1], d[1], d[2]]})
    tick = Act("discrete", Periodic(0.3), lambda t, x, d: {"d": [d[0], t > 0.5, d[2]]})
    result = fx.simulate(Actor(follow, tick), 1.0, compiled=compiled)
    assert result.time[1:][np.diff(result.time) == 0.0].tolist() == [0.6]


@HOW
def test_values_that_never_settle_end_the_run_with_the_name_of_the_update(compiled: Any) -> None:
    acts = [
        Act("discrete", Settling(), lambda t, x, d: {"d": [d[0] + d[1], d[1], d[2]]}),
        Act("discrete", Periodic(0.5, 0.5), lambda t, x, d: {"d": [d[0], 1.0, d[2]]}),
    ]
    simulator = fx.Simulator(Actor(*acts), compiled=compiled)
    with pytest.raises(ZenoError, match=r"go on to change values: 'actor\.handle'") as caught:
        simulator.advance_to(1.0)
    assert caught.value.time == 0.5
    assert simulator.context.time == 0.5


def test_publishes_have_nothing_to_settle() -> None:
    with pytest.raises(DeclarationError, match="an update"):
        Actor(Act("publish", Settling(), lambda t, x, d: None))
