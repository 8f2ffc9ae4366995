"""Functions that leave their surfaces: no method lets a ball fall through the floor in silence."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ZenoError
from flexure.diagrams.values.events import Direction
from flexure.solvers.integration.methods.methods import METHOD_NAMES, is_fixed_step
from flexure.solvers.simulation.events.due_events import PileUp
from tests.support.systems.simulation import TRIED_METHODS, Flow, ball, clock, method_options
from tests.support.tiers import by_turn, crossed, thinned

READINGS = [True, "python", False]
FALL = math.sqrt(2.0 / 9.81)
LAST = 3.0 * FALL  # the last impact of a ball that keeps half of its speed


@pytest.mark.parametrize(
    ("method", "direction", "compiled"),
    by_turn(TRIED_METHODS, ["falling", "either"], last=READINGS),
)
def test_a_ball_that_never_comes_to_rest_is_an_error_with_every_method(
    method: str, direction: Direction, compiled: Any
) -> None:
    flow = ball(0.5, direction=direction)
    simulator = fx.Simulator(flow, compiled=compiled, **method_options(method, 0.01))
    with pytest.raises(ZenoError, match=r"'ball\.change'.*below a speed threshold") as caught:
        simulator.advance_to(5.0)
    assert caught.value.time == pytest.approx(simulator.context.time)
    assert simulator.context.continuous_state[0] > -1e-9
    # Methods of first order cannot follow hops that are as short as their steps, nor can one that
    # reaches order 2 only some steps after it began anew.
    error = 0.5 if method.endswith("euler") else 5e-3 if method == "generalized_alpha" else 1e-4
    assert caught.value.time == pytest.approx(LAST, abs=error)


@pytest.mark.parametrize(
    ("method", "step"),
    crossed([name for name in METHOD_NAMES if is_fixed_step(name)], [0.1, 0.003]),
)
def test_it_is_so_with_long_and_short_steps(method: str, step: float) -> None:
    simulator = fx.Simulator(ball(0.5), method=method, step=step)
    with pytest.raises(ZenoError):
        simulator.advance_to(10.0)
    assert simulator.context.continuous_state[0] > -1e-9


class Ball(fx.LeafSystem):
    """A ball with a position and a velocity, which an impact puts to zero height or leaves."""

    def __init__(self, to_zero: bool) -> None:
        super().__init__("ball")
        self.to_zero = to_zero
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.declare_unrestricted_update(self.bounce, fx.diagrams.Witness(self.x.q, "falling"))

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.x.v(context)[0], -9.81]

    def bounce(self, context: Any) -> Any:
        height, speed = self.x(context)
        return {self.x: [0.0 if self.to_zero else height, -0.5 * speed]}


@pytest.mark.parametrize("to_zero", [False, True])
@pytest.mark.parametrize("method", ["BDF", "implicit_euler", "semi_explicit_euler"])
def test_the_error_says_which_step_is_too_long(method: str, to_zero: bool) -> None:
    simulator = fx.Simulator(Ball(to_zero), **method_options(method, 0.01))
    with pytest.raises(ZenoError, match="Take smaller steps or tolerances; or let") as caught:
        simulator.advance_to(5.0)
    found = rf"a step of \S+ s in which {method} does not see the witness function of "
    assert re.search(found + r"'ball\.bounce' leave zero and come back", str(caught.value))
    assert simulator.context.continuous_state[0] > -1e-9


@pytest.mark.parametrize("method", ["rk4", "implicit_euler", "semi_explicit_euler"])
def test_without_isolation_a_ball_is_not_lost_below_the_floor(method: str) -> None:
    simulator = fx.Simulator(Ball(to_zero=False), method=method, step=0.01, isolate=False)
    with pytest.raises(ZenoError):
        simulator.advance_to(5.0)
    assert simulator.context.continuous_state[0] > -0.1


def test_without_isolation_a_ball_may_take_several_steps_back_to_the_floor() -> None:
    height, speed, rising_below, step = 1.0, 0.0, 0, 0.01
    for _ in range(100):
        before = height
        height, speed = height + step * speed - 4.905 * step**2, speed - 9.81 * step
        rising_below += before < 0.0 and height < 0.0
        if before > 0.0 >= height:
            speed *= -0.5
    simulator = fx.Simulator(Ball(to_zero=False), method="rk4", step=step, isolate=False)
    simulator.advance_to(1.0)
    assert rising_below, "each impact is over in one step, so that this shows nothing"
    assert simulator.context.continuous_state == pytest.approx([height, speed], abs=1e-12)


def test_without_isolation_a_function_may_cross_and_turn_back_in_one_step() -> None:
    phases = 0.75 * np.pi * np.arange(20) - 0.3 * np.pi
    flow = clock(lambda x: np.sin(7.5 * np.pi * x - 0.3 * np.pi), update=lambda t, x: x)
    fx.Simulator(flow, method="rk4", step=0.1, isolate=False).advance_to(1.9)
    assert flow.hits == pytest.approx(0.1 * (np.flatnonzero(np.diff(np.sin(phases) > 0.0)) + 1))


class Pause(fx.LeafSystem):
    """x stops at 1/2 when a discrete update says so, and moves on slowly at first."""

    def __init__(self) -> None:
        super().__init__("pause")
        self.x = self.declare_continuous_state(z=1)
        self.since = self.declare_discrete_state("since", -1.0)
        middle = fx.diagrams.Witness(lambda context: self.x(context)[0] - 0.5)
        self.declare_discrete_update(lambda context: {self.since: context.time}, middle)

    def calc_time_derivatives(self, context: Any) -> Any:
        since = self.since(context)[0]
        return [np.where(since < 0.0, 1.0, context.time - since)]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_function_may_move_on_after_a_pause_at_zero(compiled: bool) -> None:
    result = fx.simulate(Pause(), 1.5, method="RK45", compiled=compiled)
    assert result["x"][-1] == pytest.approx(1.0)
    assert result.statistics.witness_events == 1


@pytest.mark.full
@pytest.mark.parametrize(
    "method", ["auto", "BDF", "euler", "implicit_euler", "semi_explicit_euler"]
)
def test_hops_that_a_method_can_follow_are_no_error(method: str) -> None:
    flow = ball(0.9)
    simulator = fx.Simulator(flow, **method_options(method, 0.001))
    simulator.advance_to(FALL * (1.0 + 2.0 * (0.9 + 0.81 + 0.729)) + 0.1)
    assert len(flow.hits) == 4
    assert flow.hits[0] == pytest.approx(FALL, abs=0.002)


@pytest.mark.parametrize(
    ("method", "direction"),
    crossed(["auto", "Rodas5P", "BDF", "rk4", "implicit_euler"], ["falling", "rising", "either"]),
)
def test_an_event_that_turns_nothing_around_is_passed_through(
    method: str, direction: Direction
) -> None:
    flow = Flow(
        lambda t, x: [x[1], -x[0]],
        [1.0, 0.0],
        watch=lambda t, x: x[0],
        direction=direction,
        update=lambda t, x: x,
    )
    fx.Simulator(flow, **method_options(method, 0.01)).advance_to(7.0)
    times = {"falling": [0.5], "rising": [1.5], "either": [0.5, 1.5]}[direction]
    assert flow.hits == pytest.approx([t * math.pi for t in times], rel=0.03)


@pytest.mark.parametrize("update", [None, lambda t, x: x])
@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_events_two_steps_apart_are_frequent_and_nothing_worse(method: str, update: Any) -> None:
    flow = Flow(
        lambda t, x: [1.0],
        [0.0],
        watch=lambda t, x: math.sin(math.pi * (t / 0.015 + 0.5)),
        update=update,
    )
    fx.Simulator(flow, method=method, step=0.01, compiled=False).advance_to(0.6)
    assert flow.hits == pytest.approx([0.015 * (k + 0.5) for k in range(40)])


def test_a_publish_that_misses_its_events_is_a_warning() -> None:
    # Up and down again within one step, of which implicit Euler sees only that it went down.
    flow = Flow(lambda t, x: [x[1], -2.0], [0.0, 0.02], watch=lambda t, x: x[0])
    simulator = fx.Simulator(flow, method="implicit_euler", step=0.1)
    with pytest.warns(UserWarning, match=r"'flow\.note' may have missed events at t = 0 s: found"):
        simulator.advance_to(1.0)
    assert flow.hits == []


def test_events_that_are_blurred_a_dozen_times_in_a_row_pile_up() -> None:
    hops = PileUp()
    found = [hops.add(0.1 * k, blurred=True) for k in range(12)]
    assert found == [False] * 11 + [True]
    hops = PileUp()
    assert not any(hops.add(0.1 * k, blurred=k % 12 > 0) for k in range(100))


def test_distances_that_shrink_slowly_pile_up_when_a_millionth_is_still_to_come() -> None:
    hops = PileUp()
    # What is still to come after hop k, relative to what was covered, is about 0.99 ** k.
    verdict = next(k for k in range(3000) if hops.add(1.0 - 0.99**k))
    assert verdict == pytest.approx(math.log(1e-6) / math.log(0.99), abs=20.0)


@pytest.mark.parametrize("start", [-1000.0, 1000.0])
def test_distances_are_compared_with_what_was_covered_since_they_shrink(start: float) -> None:
    hops = PileUp()
    assert not any(hops.add(start - 100.0 + k) for k in range(100))
    verdict = next(k for k in range(100) if hops.add(start + 1.0 - 0.5**k))
    # 2 s are covered, the last regular distance and those after it; 0.5 ** k s are to come.
    assert verdict == math.ceil(math.log2(1e6 / 2.0))


# Impacts without rebound -------------------------------------------------------------------------


class Clod(fx.LeafSystem):
    """A body that falls, and stops where it lands; when it lies, nothing drives it."""

    def __init__(self, *, lies: bool, snaps: bool) -> None:
        super().__init__("clod")
        self.lies, self.snaps = lies, snaps
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.lying = self.declare_discrete_state("lying", 0.0)
        self.declare_unrestricted_update(self.land, fx.diagrams.Witness(self.height, "falling"))

    def height(self, context: Any) -> Any:
        return self.x(context)[0]

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.x.v(context), -9.81 * (1.0 - self.lying(context))]

    def land(self, context: Any) -> Any:
        height = 0.0 if self.snaps else self.height(context)
        return {self.x: [height, 0.0], self.lying: [1.0 if self.lies else 0.0]}


def dropped(method: str, compiled: Any, **options: bool) -> fx.results.SimulationResult:
    step = 0.003 if method != "auto" and is_fixed_step(method) else None
    return fx.simulate(Clod(**options), 2.0, method=method, step=step, compiled=compiled)


@pytest.mark.parametrize(
    ("method", "snaps", "compiled"), by_turn(TRIED_METHODS, [True, False], last=READINGS)
)
def test_a_body_that_stops_at_a_floor_does_not_fall_through_it(
    method: str, snaps: bool, compiled: Any
) -> None:
    with pytest.raises(ZenoError, match="at rest on zero") as caught:
        dropped(method, compiled, lies=False, snaps=snaps)
    assert caught.value.result["x[0]"].min() > -0.03  # type: ignore[attr-defined]
    assert caught.value.time == pytest.approx(FALL, abs=0.01)


@pytest.mark.parametrize(
    ("method", "snaps", "compiled"), by_turn(TRIED_METHODS, [True, False], last=READINGS)
)
def test_a_body_that_lies_on_a_floor_stays_there(method: str, snaps: bool, compiled: Any) -> None:
    result = dropped(method, compiled, lies=True, snaps=snaps)
    assert result.outcome == "completed"
    assert result["x"][-1] == pytest.approx([0.0, 0.0], abs=0.03)


class Passing(fx.LeafSystem):
    """A point that passes zero with speed, or comes to rest there for an instant, and counts it."""

    def __init__(self, power: int) -> None:
        super().__init__("passing")
        self.power = power
        self.x = self.declare_continuous_state(z=2, default=[-1.0, 0.0])
        self.declare_unrestricted_update(self.count, fx.diagrams.Witness(self.height, "rising"))

    def height(self, context: Any) -> Any:
        return self.x(context)[0] ** self.power

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0, 0.0]

    def count(self, context: Any) -> Any:
        return {self.x: [self.x(context)[0], self.x(context)[1] + 1.0]}


@pytest.mark.parametrize("power", thinned([3, 1, 5], fast=1))
@pytest.mark.parametrize(
    ("method", "compiled"), crossed(["auto", "Rodas5P", "BDF", "euler", "rk4"], [True, False])
)
def test_an_update_that_changes_other_states_is_no_obstacle(
    method: str, power: int, compiled: bool
) -> None:
    step = 0.003 if method in ("euler", "rk4") else None
    result = fx.simulate(Passing(power), 2.0, method=method, step=step, compiled=compiled)
    assert result["x"][-1] == pytest.approx([1.0, 1.0])


class Passer(fx.LeafSystem):
    """A mark that is noted; another event, at the same instant, brings the body to rest there."""

    def __init__(self) -> None:
        super().__init__("passer")
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, -1.0])
        self.braked = self.declare_discrete_state("braked", 0.0)
        self.seen: list[float] = []
        self.declare_publish(self.note, fx.diagrams.Witness(lambda c: self.x(c)[0], "falling"))
        brakes = fx.diagrams.Witness(lambda c: self.x(c)[0] + self.x(c)[1] + 1.0, "falling")
        self.declare_unrestricted_update(self.brake, brakes)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.x.v(context), -2.0 * self.braked(context)]

    def note(self, context: Any) -> None:
        self.seen.append(context.time)

    def brake(self, context: Any) -> Any:
        return {self.x: self.x(context) * self.braked(context), self.braked: [1.0]}


@pytest.mark.parametrize("compiled", [True, False])
def test_a_publish_keeps_nothing_from_passing_its_mark(compiled: bool) -> None:
    passer = Passer()
    result = fx.simulate(passer, 2.0, compiled=compiled)
    assert passer.seen == [pytest.approx(1.0)]
    assert result["x"][-1] == pytest.approx([-1.0, -2.0])


class Jumping(fx.LeafSystem):
    """A clock s' = 1 that two events set to zero: one at s = 1, and one where a function jumps."""

    def __init__(self) -> None:
        super().__init__("jumping")
        self.s = self.declare_continuous_state(z=1)
        self.count = self.declare_discrete_state("count", [0.0])
        self.declare_unrestricted_update(self.change, fx.diagrams.Witness(self.left, "falling"))

    def calc_time_derivatives(self, context: Any) -> Any:
        return [1.0]

    def left(self, context: Any) -> Any:
        s, count = self.s(context)[0], self.count(context)[0]
        behind = np.where(s < 1e-3, 1e-9, s - 1.0)
        return np.where(count < 0.5, 1.0 - s, np.where(count < 1.5, behind, 1.0))

    def change(self, context: Any) -> Any:
        return {self.s: [0.0], self.count: self.count(context) + 1.0}


@pytest.mark.parametrize("compiled", READINGS)
@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_a_function_that_jumps_across_and_comes_back_from_there(method: str, compiled: Any) -> None:
    result = fx.simulate(Jumping(), 1.5, method=method, compiled=compiled)
    assert result["x"][-1] == pytest.approx(1.5 - 1.001, abs=1e-9)
    assert result.statistics.witness_events == 2
