"""Where sources jump or bend, integrators stop, and see each side from its own side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.solvers.integration.methods.methods import METHOD_NAMES
from tests.support.native.native import needs_llvmlite
from tests.support.systems.event_systems import Switching
from tests.support.systems.simulation import ADAPTIVE, Clockwork, chain, method_options, together
from tests.support.tiers import for_each

FloatArray = npt.NDArray[np.float64]


class Spy(fx.LeafSystem):
    """ẋ = u, and a note of every time and input at which this was evaluated."""

    def __init__(self, name: str = "spy") -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_continuous_state(z=1)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
        self.seen: list[tuple[float, float]] = []

    def calc_time_derivatives(self, context: Any) -> Any:
        self.seen.append((float(context.time), float(self.u(context)[0])))
        return self.u(context)


def double_integrator(source: fx.LeafSystem) -> fx.Diagram:
    return chain(source, fx.Integrator("rate"), fx.Integrator("position"))


@for_each("method", ["auto", *METHOD_NAMES])
@for_each("at", [1.003, 0.1 * 3])
def test_a_step_is_hit_exactly_and_never_seen_from_the_wrong_side(method: str, at: float) -> None:
    spy = Spy()
    system = chain(fx.Step("step", at=at, initial=-1.0, to=2.0), spy)
    simulator = fx.Simulator(system, **method_options(method, 0.13), compiled=False)
    simulator.advance_to(at)
    before = [time for time, u in spy.seen if u == -1.0]
    assert len(before) == len(spy.seen)
    assert all(time < at for time in before)
    spy.seen.clear()
    simulator.advance_to(2.0)
    assert spy.seen
    assert all(u == 2.0 and time >= at for time, u in spy.seen)
    exact = -at + 2.0 * (2.0 - at)
    assert simulator.context.get("spy.x") == pytest.approx([exact], rel=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_both_sides_of_a_jump_in_one_run(compiled: bool) -> None:
    system = chain(fx.Step("step", at=1.003, initial=-1.0, to=2.0), fx.Integrator("x"))
    simulator = fx.Simulator(system, method="rk4", step=0.002, compiled=compiled)
    simulator.advance_to(2.0)
    assert simulator.context.get("x.x") == pytest.approx([-1.003 + 2.0 * 0.997], rel=1e-12)
    assert ("straight-line" in simulator.explain()) == compiled


# Exact solutions ---------------------------------------------------------------------------------


def twice_integrated(
    times: list[float], values: list[float], slopes: list[float]
) -> Callable[[FloatArray], FloatArray]:
    """Integrate a function of straight pieces twice, from zero, in closed form."""

    def solution(at: FloatArray) -> FloatArray:
        result = []
        for t in at:
            rate = position = 0.0
            for begin, end, value, slope in zip(
                times, [*times[1:], math.inf], values, slopes, strict=True
            ):
                h = min(t, end) - begin
                if h <= 0.0:
                    break
                position += h * rate + h**2 / 2.0 * value + h**3 / 6.0 * slope
                rate += h * value + h**2 / 2.0 * slope
            result.append(position)
        return np.array(result)

    return solution


PIECEWISE = [
    pytest.param(
        lambda: fx.Step("source", at=1.003, initial=0.5, to=-2.0),
        twice_integrated([0.0, 1.003], [0.5, -2.0], [0.0, 0.0]),
        id="step",
    ),
    pytest.param(
        lambda: fx.Ramp("source", slope=3.0, start=0.7, stop=1.1, initial=1.0),
        twice_integrated([0.0, 0.7, 1.1], [1.0, 1.0, 2.2], [0.0, 3.0, 0.0]),
        id="ramp",
    ),
    pytest.param(
        lambda: fx.Square("source", amplitude=2.0, period=0.5, duty=0.3, delay=0.2),
        twice_integrated(
            [0.0, *np.ravel([[0.2 + 0.5 * k, 0.35 + 0.5 * k] for k in range(6)])],
            [-2.0, *[2.0, -2.0] * 6],
            [0.0] * 13,
        ),
        id="square",
    ),
    pytest.param(
        lambda: fx.Trajectory("source", [0.3, 0.9, 2.0], [1.0, -2.0, 4.0], kind="linear"),
        twice_integrated([0.0, 0.3, 0.9, 2.0], [1.0, 1.0, -2.0, 4.0], [0.0, -5.0, 6.0 / 1.1, 0.0]),
        id="trajectory",
    ),
    pytest.param(
        lambda: fx.TimeFunction("source", lambda t: np.where(t >= 0.77, t, -1.0), breaks=[0.77]),
        twice_integrated([0.0, 0.77], [-1.0, 0.77], [0.0, 1.0]),
        id="function",
    ),
]


every_source = pytest.mark.parametrize(("source", "solution"), PIECEWISE)
Source = Callable[[], fx.LeafSystem]
Solution = Callable[[FloatArray], FloatArray]


@every_source
def test_pieces_that_are_polynomials_are_exact_at_default_tolerance(
    source: Source, solution: Solution
) -> None:
    result = fx.simulate(double_integrator(source()), 3.0, method="RK45")
    times = np.linspace(0.0, 3.0, 301)
    np.testing.assert_allclose(result.sample("position.y", times), solution(times), atol=1e-10)
    np.testing.assert_allclose(result["position.y"], solution(result.time), atol=1e-10)


@every_source
@pytest.mark.parametrize("method", ["rk4", "Rodas5P", "Radau"])
def test_other_methods_that_integrate_these_polynomials_exactly(
    source: Source, solution: Solution, method: str
) -> None:
    simulator = fx.Simulator(double_integrator(source()), **method_options(method, 0.17))
    simulator.advance_to(3.0)
    exact = solution(np.array([3.0]))
    assert simulator.context.get("position.y") == pytest.approx(exact, rel=1e-10)


@every_source
def test_breaks_inside_of_many_short_advances(source: Source, solution: Solution) -> None:
    simulator = fx.Simulator(double_integrator(source()))
    for time in np.arange(0.1, 3.05, 0.1):
        simulator.advance_to(float(time))
        exact = solution(np.array([simulator.context.time]))
        assert simulator.context.get("position.y") == pytest.approx(exact, abs=1e-10)


# Before and after --------------------------------------------------------------------------------


def test_the_result_has_both_values_of_a_jump() -> None:
    result = fx.simulate(
        chain(fx.Step("step", at=1.003, initial=-1.0, to=2.0), fx.Integrator("x")), 2.0
    )
    k, after = np.flatnonzero(result.time == 1.003)
    assert after == k + 1
    assert result["step.y"][k : k + 2].tolist() == [-1.0, 2.0]
    assert result["x.y"][k : k + 2].tolist() == pytest.approx([-1.003, -1.003])
    assert np.all(result["step.y"][:k] == -1.0)
    assert np.all(result["step.y"][k + 1 :] == 2.0)


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_a_jump_at_the_very_end_has_both_values_too(moving: bool) -> None:
    blocks = [fx.Step("step", at=1.0), *([fx.Integrator("x")] if moving else [])]
    result = fx.simulate(chain(*blocks) if moving else blocks[0], 1.0)
    name = "step.y" if moving else "y"
    assert result.time[-2:].tolist() == [1.0, 1.0]
    assert result[name][-2:].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_a_jump_at_the_start_has_happened(moving: bool) -> None:
    blocks = [fx.Step("step", at=0.0), *([fx.Integrator("x")] if moving else [])]
    result = fx.simulate(chain(*blocks) if moving else blocks[0], 1.0)
    assert set(result["step.y" if moving else "y"]) == {1.0}
    if moving:
        assert result["x.y"][-1] == pytest.approx(1.0)


def test_publishes_at_a_jump_see_the_new_output_and_the_states_before() -> None:
    diagram = fx.DiagramBuilder("diagram")
    diagram.add_all(
        fx.Step("step", at=0.5), fx.Integrator("x"), fx.VectorLog("log", 1, period=0.25)
    )
    diagram.connect_chain("step", "x")
    diagram.connect("step.y", "log.u")
    simulator = fx.Simulator(diagram.build())
    simulator.advance_to(1.0)
    log: Any = simulator.system.get_system("log")
    assert log.find_log(simulator.context).data.ravel().tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("method", [*ADAPTIVE, "rk4"])
def test_breaks_and_ticks_a_rounding_error_apart_are_all_met(method: str) -> None:
    third = Clockwork(fx.diagrams.Periodic(0.3), name="third", kind="discrete")
    tenth = Clockwork(fx.diagrams.Periodic(0.1), name="tenth", kind="discrete")
    pulses = fx.Square("pulses", period=0.2, duty=0.5)
    simulator = fx.Simulator(
        together(chain(pulses, Spy(), name="inner"), third, tenth), **method_options(method)
    )
    simulator.advance_to(2.0)
    assert third.times == [k * 0.3 for k in range(7)]
    assert tenth.times == [k * 0.1 for k in range(20)]
    assert simulator.context.get("inner.spy.x") == pytest.approx([0.0], abs=1e-12)


def test_a_break_time_that_is_not_later_is_passed_over() -> None:
    class Stubborn(fx.LeafSystem):
        """Always names the same break time."""

        def __init__(self, at: float) -> None:
            super().__init__("stubborn")
            self.at = at
            self.declare_vector_output(
                "y", 1, lambda context: context.time, prerequisites=[fx.TIME]
            )

        def calc_next_break_time(self, context: Any) -> float:
            return self.at

    for at in (-1.0, 0.0, 0.5, math.nan):
        simulator = fx.Simulator(chain(Stubborn(at), Spy()))
        simulator.advance_to(1.0)
        assert simulator.context.get("spy.x") == pytest.approx([0.5])


@pytest.mark.parametrize(
    "compiled", [False, "python", pytest.param("native", marks=needs_llvmlite)]
)
def test_break_times_that_updates_move_are_met(compiled: Any) -> None:
    result = fx.simulate(Switching(), 2.0, method="RK45", compiled=compiled)
    starts = 0.4 * np.arange(5.0)  # from each of which the slope is 1 for 0.15 s, and then -2
    found = result.sample("x", np.stack([starts, starts + 0.15], axis=1).ravel())
    expected = np.stack([-0.875 * starts, -0.875 * starts + 0.15], axis=1).ravel()
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    assert set((starts + 0.15).round(9)) < set(result.time.round(9).tolist())


def test_many_breaks_cost_one_step_each() -> None:
    simulator = fx.Simulator(chain(fx.Square("pulses", period=0.02), Spy()), method="RK45")
    simulator.advance_to(2.0)
    assert simulator.statistics.restarts == 200
    assert simulator.statistics.steps <= 210
