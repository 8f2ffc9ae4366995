"""The state at any time of a run: before and after jumps, between the steps, many times at once."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.scalars import is_symbolic
from flexure.solvers.tracing import lanes
from tests.support.systems.blocks import Oscillator
from tests.support.systems.recorded_run import oscillation, recorded_run, sampled
from tests.support.systems.simulation import (
    ADAPTIVE,
    Clockwork,
    ball,
    chain,
    count_up,
    method_options,
    together,
)
from tests.support.tiers import for_each, thinned

FloatArray = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def result() -> fx.results.SimulationResult:
    return recorded_run()


# Before and after --------------------------------------------------------------------------------


@pytest.mark.full
def test_times_are_doubled_where_something_jumps_and_nowhere_else(
    result: fx.results.SimulationResult,
) -> None:
    time = result.time
    doubled = time[:-1][np.diff(time) == 0.0]
    # At 0.25 the held value changes, as at 0.5 and 0.75; at 0.6 there is a step.
    assert doubled.tolist() == [0.25, 0.5, 0.6, 0.75]
    assert np.all(np.diff(time) >= 0.0)


def test_the_first_of_two_equal_times_is_before_and_a_single_one_after(
    result: fx.results.SimulationResult,
) -> None:
    times = [0.1, 0.25, 0.25, 0.3, 0.5, 0.6, 0.6, 0.75, 0.75, 1.0]
    held = [0.0, 0.0, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.75, 0.75]
    assert result.sample("sampled.hold.y", times).tolist() == held
    assert result.sample("held", times).tolist() == held
    assert result.sample("sampled.hold.x", times).tolist() == held
    steps = [0.0] * 6 + [1.0] * 4
    assert result.sample("step.y", times).tolist() == steps


def test_sampling_at_the_times_of_the_result_gives_its_signals(
    result: fx.results.SimulationResult,
) -> None:
    for signal in result.signals:
        assert result.sample(signal, result.time).tolist() == result[signal].tolist()


def test_an_update_that_changes_nothing_leaves_no_double_time() -> None:
    idle = Clockwork(fx.diagrams.Periodic(0.1), lambda context, count: 0.0, kind="discrete")
    result = fx.simulate(together(idle, Oscillator()), 1.0)
    assert np.all(np.diff(result.time) > 0.0)


def test_a_chain_of_updates_at_one_instant_is_one_jump() -> None:
    """An event whose update makes another event due at the same instant."""
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(
        Clockwork(fx.diagrams.Periodic(0.5, 0.5), count_up, kind="discrete", name="first"),
        fx.Relay("relay", 0.5, -0.5),
        Oscillator("oscillator"),
    )
    builder.connect_chain("first", "relay")
    result = fx.simulate(builder.build(), 0.8)
    (k, after) = np.flatnonzero(result.time == 0.5)
    assert after == k + 1
    assert result["first.y"][k : k + 2].tolist() == [0.0, 1.0]


def test_a_bounce_reverses_the_speed_between_two_equal_times() -> None:
    flow = ball(0.5)
    result = fx.simulate(flow, 0.8)
    impact = flow.hits[0]
    before, after = result.sample("x[1]", [impact, impact])
    assert before == pytest.approx(-math.sqrt(2.0 * 9.81))
    assert after == pytest.approx(-0.5 * before)


@pytest.mark.parametrize("moving", [False, True], ids=["without motion", "with motion"])
def test_discrete_signals_are_held_between_their_updates(moving: bool) -> None:
    counter = Clockwork(fx.diagrams.Periodic(0.25, 0.25), count_up, kind="discrete")
    result = fx.simulate(together(counter, Oscillator()) if moving else together(counter), 1.0)
    times = np.array([0.0, 0.2, 0.25, 0.3, 0.49, 0.5, 0.9])
    assert result.sample("clockwork.count", times).tolist() == [0, 0, 1, 1, 1, 2, 3]


# Between the steps -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", thinned(ADAPTIVE, fast=3))
def test_signals_between_the_steps_are_as_accurate_as_the_steps(method: str) -> None:
    result = fx.simulate(Oscillator(), 5.0, method=method, rtol=1e-8, atol=1e-10)
    at_steps = np.max(np.abs(result["position"] - oscillation(result.time)))
    times = np.linspace(0.0, 5.0, 2001)
    between = np.max(np.abs(result.sample("position", times) - oscillation(times)))
    assert between < max(20.0 * at_steps, 1e-6)


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-5), ("rk2", 5e-3), ("euler", 0.2)])
def test_fixed_steps_are_interpolated_too(method: str, tolerance: float) -> None:
    result = fx.simulate(Oscillator(), 1.0, **method_options(method, 0.02))
    times = np.linspace(0.0, 1.0, 333)
    assert result.sample("position", times) == pytest.approx(oscillation(times), abs=tolerance)


def test_outputs_are_computed_from_the_interpolated_state() -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(Oscillator("oscillator"), fx.FunctionBlock("square", lambda u: u * u))
    builder.connect_chain("oscillator", "square")
    result = fx.simulate(builder.build(), 3.0)
    times = np.linspace(0.0, 3.0, 50)
    squared = result.sample("square.y", times)
    assert squared.tolist() == (result.sample("oscillator.position", times) ** 2).tolist()


def test_fine_time_contains_every_step_and_keeps_the_jumps() -> None:
    result = fx.simulate(together(sampled(), Oscillator("oscillator")), 1.0)
    fine = result.fine_time(100)
    assert len(fine) >= 100
    assert np.all(np.diff(fine) >= 0.0)
    assert set(result.time) <= set(fine)
    doubled = [time for time in result.time if np.sum(result.time == time) == 2]
    assert [time for time in fine if np.sum(fine == time) == 2] == doubled


def cpu_time_of_reading(ticks: int) -> float:
    counter = Clockwork(fx.diagrams.Periodic(1.0), count_up, kind="discrete", name="counter")
    result = fx.simulate(together(counter), float(ticks))
    start = process_time()
    assert result["counter.y"][-1] == ticks
    return process_time() - start


@pytest.mark.full
def test_the_work_of_reading_a_signal_grows_in_proportion_to_its_length() -> None:
    few = min(cpu_time_of_reading(2_000) for _ in range(3))  # the first one compiles what reads
    assert cpu_time_of_reading(16_000) < 30.0 * few


# Many times at once ------------------------------------------------------------------------------


def stairs() -> fx.Diagram:
    """Steps and a ramp that stops, which bend the motion of a lag."""
    builder = fx.DiagramBuilder("stairs")
    builder.add_all(
        fx.Step("first", at=0.3),
        fx.Step("second", at=[0.7, 1.1], to=[2.0, -1.0]),
        fx.Ramp("ramp", slope=0.5, start=0.4, stop=0.9),
        fx.Demultiplexer("split", [1, 1]),
        fx.Sum("sum", "+-+"),
        fx.FirstOrderLag("lag", 0.2),
        Oscillator("oscillator"),
    )
    builder.connect("second.y", "split.u")
    builder.connect("first.y", "sum.u1")
    builder.connect("split.y1", "sum.u2")
    builder.connect("ramp.y", "sum.u3")
    builder.connect_chain("sum", "lag")
    return builder.build()


def controlled(period: float = 0.05) -> fx.Diagram:
    """A plant with a sampled controller, whose reference jumps."""
    builder = fx.DiagramBuilder("controlled")
    builder.add_all(
        fx.Step("reference", at=0.42),
        fx.PIDController("pid", kp=4.0, ki=1.0, kd=0.1, period=period),
        fx.StateSpace("plant", [[0.0, 1.0], [-4.0, -0.5]], [[0.0], [1.0]], [[1.0, 0.0]]),
        fx.ZeroOrderHold("slow", 0.3, 0.1),
    )
    builder.connect("reference.y", "pid.setpoint")
    builder.connect_chain("pid", "plant", "slow")
    builder.connect("plant.y", "pid.measurement")
    return builder.build()


def thermostat() -> fx.Diagram:
    """A relay that switches a lag between two temperatures."""
    builder = fx.DiagramBuilder("thermostat")
    builder.add_all(
        fx.FirstOrderLag("room", 0.3, initial=-1.0),
        fx.Relay("relay", on_threshold=0.5, off_threshold=-0.5, on_value=-2.0, off_value=2.0),
        fx.FunctionBlock("squared", lambda u: u * u),
    )
    builder.connect_chain("room", "relay", "squared")
    builder.connect("relay.y", "room.u")
    return builder.build()


def counting() -> fx.Diagram:
    """No continuous state at all."""
    counter = Clockwork(fx.diagrams.Periodic(0.05), count_up, kind="discrete", name="counter")
    return together(counter, fx.Sine("sine", 1.0, 3.0))


RUNS: dict[str, Callable[[], fx.System]] = {
    "steps": stairs,
    "sampled controller": controlled,
    "bouncing ball": lambda: ball(0.7),
    "relay": thermostat,
    "without motion": counting,
    "single block": Oscillator,
}


def visited(
    result: fx.results.SimulationResult, signals: Sequence[str], times: FloatArray
) -> list[FloatArray]:
    """Return signals that are evaluated at one time after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "_WORTHWHILE", math.inf)
        return result.sample_all(signals, times)


@pytest.mark.full
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("method", ["RK45", "Radau", "LSODA"])
def test_many_times_at_once_give_what_one_after_the_other_gives(name: str, method: str) -> None:
    result = fx.simulate(RUNS[name](), 1.5, method=method, max_step=0.04)
    assert len(result.time) > 30
    for found, expected in zip(
        result.sample_all(result.signals, result.time),
        visited(result, result.signals, result.time),
        strict=True,
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.full
@for_each("name", RUNS)
@for_each("method", thinned(["auto", "Radau", "BDF", "LSODA", "rk4", "euler"], fast=2))
def test_times_between_the_steps_give_the_same_as_well(name: str, method: str) -> None:
    result = fx.simulate(RUNS[name](), 1.5, **method_options(method, 0.02))
    inner = np.linspace(0.0, 1.5, 331)
    once = np.union1d(result.time, inner)
    for times in (inner, once, np.repeat(once, 2), np.repeat(inner, 3), result.fine_time(200)):
        for found, expected in zip(
            result.sample_all(result.signals, times),
            visited(result, result.signals, times),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_both_values_at_a_jump_are_found_among_many_times() -> None:
    result = fx.simulate(sampled(), 1.0)
    times = np.sort(np.append(np.linspace(0.0, 1.0, 101), [0.25, 0.5, 0.75]))
    held = result.sample("hold.y", times)
    for jump in (0.25, 0.5, 0.75):
        assert held[times == jump].tolist() == [jump - 0.25, jump]


def test_equations_that_jump_are_evaluated_just_before_and_at_the_jump() -> None:
    result = fx.simulate(chain(fx.Step("step", at=0.6), fx.Integrator("integral")), 1.0)
    times = np.sort(np.append(np.linspace(0.0, 1.0, 101), 0.6))
    assert result.sample("step.y", times).tolist() == [0.0] * 61 + [1.0] * 41


def test_equations_run_a_few_times_for_many_times() -> None:
    runs = []

    def noted(u: Any) -> Any:
        runs.append(u)
        return np.sin(u)

    result = fx.simulate(chain(Oscillator("oscillator"), fx.FunctionBlock("noted", noted)), 1.0)
    times = np.linspace(0.0, 1.0, 2001)
    runs.clear()
    expected = np.sin(result.sample("oscillator.position", times))
    assert result.sample("noted.y", times).tolist() == pytest.approx(expected.tolist(), abs=1e-15)
    assert 0 < len(runs) < 10
    traced = sum(map(is_symbolic, runs))
    result.sample("noted.y", times)
    assert sum(map(is_symbolic, runs)) == traced


def test_what_cannot_be_traced_is_evaluated_at_one_time_after_the_other() -> None:
    class Diary(fx.LeafSystem):
        """y = t, and a page for every sample."""

        def __init__(self) -> None:
            super().__init__("diary")
            self.pages = self.declare_abstract_state("pages", ())
            self.declare_unrestricted_update(
                lambda context: {self.pages: (*self.pages(context), context.time)},
                fx.diagrams.Periodic(0.25, 0.25),
            )
            self.y = self.declare_vector_output(
                "y", 1, lambda context: len(self.pages(context)), prerequisites=[self.pages]
            )

    foreign = fx.FunctionBlock("foreign", lambda u: math.exp(float(u[0])))
    times = np.linspace(0.0, 1.0, 201)
    result = fx.simulate(chain(Oscillator("oscillator"), foreign), 1.0)
    position = result.sample("oscillator.position", times)
    assert result.sample("foreign.y", times) == pytest.approx(np.exp(position), rel=1e-14)
    result = fx.simulate(together(Diary(), Oscillator("oscillator")), 0.9)
    assert result.sample("diary.y", times[times < 0.9]).tolist() == [
        np.floor(4.0 * time) for time in times[times < 0.9].tolist()
    ]


def test_parameters_and_inputs_of_the_run_count() -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(fx.Gain("gain", 2.0), Oscillator("oscillator"))
    builder.export_input("gain.u", name="u")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("gain.gain", 5.0)
    context.set("u", 3.0)
    result = fx.simulate(diagram, 1.0, context=context, max_step=0.01)
    assert len(result.time) > 100
    assert np.all(result["gain.y"] == 15.0)
    assert np.all(result["u"] == 3.0)


def test_a_result_that_was_read_can_be_pickled() -> None:
    result = fx.simulate(chain(Oscillator(), fx.Gain("gain", 2.0)), 1.0, compiled=False)
    times = np.linspace(0.0, 1.0, 101)
    expected = result.sample_all(result.signals, times)
    twin = pickle.loads(pickle.dumps(result))
    for found, each in zip(twin.sample_all(result.signals, times), expected, strict=True):
        assert found.tolist() == each.tolist()
