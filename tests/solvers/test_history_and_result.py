"""What a simulation leaves behind: signals at any time, before and after jumps, and exports."""

from __future__ import annotations

import csv
import math
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure

import flexure as fx
from flexure.diagrams.errors import (
    ContextError,
    EvaluationError,
    MissingExtraError,
    NonFiniteError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.diagrams.scalars import is_symbolic
from flexure.solvers import lanes
from tests.support.blocks import Oscillator
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

FloatArray = npt.NDArray[np.float64]


def oscillation(times: FloatArray) -> FloatArray:
    """Position of the oscillator of tests/support, in closed form."""
    return np.asarray(np.cos(2.0 * times) + np.sin(2.0 * times))


def sampled() -> fx.Diagram:
    """Time, and the time held with a period of 0.25."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        fx.Ramp("ramp"), fx.ZeroOrderHold("hold", 0.25, 0.25), fx.Integrator("integral")
    )
    builder.connect_chain("ramp", "hold", "integral")
    builder.export_output("hold.y", name="held")
    return builder.build()


@pytest.fixture(scope="module")
def result() -> fx.SimulationResult:
    """A result with vector states, discrete states, jumps and an exported port."""
    builder = fx.DiagramBuilder("root")
    builder.add_all(sampled(), Oscillator("oscillator"), fx.Step("step", at=0.6))
    builder.export_output("sampled.held", name="held")
    return fx.simulate(builder.build(), 1.0)


# Signals -----------------------------------------------------------------------------------------


def test_signals_are_all_vector_outputs_and_states(result: fx.SimulationResult) -> None:
    assert set(result.signals) == {
        "held",
        "sampled.ramp.y",
        "sampled.hold.y",
        "sampled.hold.x",
        "sampled.integral.y",
        "sampled.integral.x",
        "oscillator.position",
        "oscillator.x",
        "step.y",
    }
    assert len(result.signals) == len(set(result.signals))


def test_signals_of_a_single_block_have_its_own_names() -> None:
    result = fx.simulate(Oscillator(), 0.1)
    assert result.signals == ("position", "x")


def test_a_signal_with_one_component_has_one_axis(result: fx.SimulationResult) -> None:
    assert result["oscillator.position"].shape == result.time.shape
    assert result["oscillator.x"].shape == (*result.time.shape, 3)


@pytest.mark.parametrize("signal", ["oscillator.x[1]", "oscillator.x[rate]"])
def test_a_component_by_number_or_name(result: fx.SimulationResult, signal: str) -> None:
    assert result[signal].tolist() == result["oscillator.x"][:, 1].tolist()


def test_handles_serve_as_signals() -> None:
    oscillator = Oscillator()
    result = fx.simulate(together(oscillator), 0.5)
    assert result[oscillator.position].tolist() == result["oscillator.position"].tolist()
    assert result[oscillator.x].shape == (len(result.time), 3)
    assert result.sample(oscillator.force, [0.0, 0.5]).tolist() == [0.0, 0.0]


def test_arrays_that_are_handed_out_cannot_be_used_to_change_the_result() -> None:
    result = fx.simulate(Oscillator(), 0.5)
    for array in (result.time, result["x"], result["position"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0


@pytest.mark.parametrize(
    ("signal", "text"),
    [
        ("oscillator.poistion", "Did you mean 'position'"),
        ("oscillator.x[3]", r"component 0 to 2 or one of .*; found '3'"),
        ("oscillator.x[-1]", "component 0 to 2"),
        ("oscillator.x[speed]", "'speed'"),
        ("oscillator.x[", "'x\\['"),
        ("oscillator.k", "expected a vector port or a numeric state; found a parameter"),
        ("nothing.at.all", "nothing"),
        ("", "Cannot find"),
    ],
)
def test_what_is_no_signal_is_refused(result: fx.SimulationResult, signal: str, text: str) -> None:
    with pytest.raises(UnknownNameError, match=text):
        result.sample(signal, [0.0])
    with pytest.raises(UnknownNameError, match=text):
        result[signal]


@pytest.mark.parametrize(
    "times", [[-0.1], [1.1], [0.5, 0.4], [math.nan], [[0.1, 0.2]], [0.0, math.inf]]
)
def test_times_outside_of_the_run_or_out_of_order_are_refused(
    result: fx.SimulationResult, times: Any
) -> None:
    with pytest.raises(ValueRefusedError, match=r"expected ascending times in \[0\.0, 1\.0\] s"):
        result.sample("held", times)


# Before and after --------------------------------------------------------------------------------


def test_times_are_doubled_where_something_jumps_and_nowhere_else(
    result: fx.SimulationResult,
) -> None:
    time = result.time
    doubled = time[:-1][np.diff(time) == 0.0]
    # At 0.25 the held value changes, as at 0.5 and 0.75; at 0.6 there is a step.
    assert doubled.tolist() == [0.25, 0.5, 0.6, 0.75]
    assert np.all(np.diff(time) >= 0.0)


def test_the_first_of_two_equal_times_is_before_and_a_single_one_after(
    result: fx.SimulationResult,
) -> None:
    times = [0.1, 0.25, 0.25, 0.3, 0.5, 0.6, 0.6, 0.75, 0.75, 1.0]
    held = [0.0, 0.0, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.75, 0.75]
    assert result.sample("sampled.hold.y", times).tolist() == held
    assert result.sample("held", times).tolist() == held
    assert result.sample("sampled.hold.x", times).tolist() == held
    steps = [0.0] * 6 + [1.0] * 4
    assert result.sample("step.y", times).tolist() == steps


def test_sampling_at_the_times_of_the_result_gives_its_signals(
    result: fx.SimulationResult,
) -> None:
    for signal in result.signals:
        assert result.sample(signal, result.time).tolist() == result[signal].tolist()


def test_an_update_that_changes_nothing_leaves_no_double_time() -> None:
    idle = Clockwork(fx.Periodic(0.1), lambda context, count: 0.0, kind="discrete")
    result = fx.simulate(together(idle, Oscillator()), 1.0)
    assert np.all(np.diff(result.time) > 0.0)


def test_a_chain_of_updates_at_one_instant_is_one_jump() -> None:
    """An event whose update makes another event due at the same instant."""
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(
        Clockwork(fx.Periodic(0.5, 0.5), count_up, kind="discrete", name="first"),
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
    counter = Clockwork(fx.Periodic(0.25, 0.25), count_up, kind="discrete")
    result = fx.simulate(together(counter, Oscillator()) if moving else together(counter), 1.0)
    times = np.array([0.0, 0.2, 0.25, 0.3, 0.49, 0.5, 0.9])
    assert result.sample("clockwork.count", times).tolist() == [0, 0, 1, 1, 1, 2, 3]


# Between the steps -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ADAPTIVE)
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
    counter = Clockwork(fx.Periodic(1.0), count_up, kind="discrete", name="counter")
    result = fx.simulate(together(counter), float(ticks))
    start = process_time()
    assert result["counter.y"][-1] == ticks
    return process_time() - start


def test_the_work_of_reading_a_signal_grows_in_proportion_to_its_length() -> None:
    assert cpu_time_of_reading(16_000) < 30.0 * min(cpu_time_of_reading(2_000) for _ in range(3))


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
        fx.SampledPIDController("pid", period, kp=4.0, ki=1.0, kd=0.1),
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
    counter = Clockwork(fx.Periodic(0.05), count_up, kind="discrete", name="counter")
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
    result: fx.SimulationResult, signals: Sequence[str], times: FloatArray
) -> list[FloatArray]:
    """Return signals that are evaluated at one time after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "_WORTHWHILE", math.inf)
        return result.sample_all(signals, times)


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


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("method", ["auto", "Radau", "BDF", "LSODA", "rk4", "euler"])
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
                fx.Periodic(0.25, 0.25),
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
    result = fx.simulate(diagram, 1.0, context, max_step=0.01)
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


# The run itself ----------------------------------------------------------------------------------


def test_simulate_leaves_the_given_context_as_it_was() -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(
        fx.Ramp("ramp"), fx.ZeroOrderHold("hold", 0.25), fx.VectorLog("log", period=0.1)
    )
    builder.connect_chain("ramp", "hold", "log")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.time = 1.0
    untouched = context.clone()
    log: Any = diagram.get_system("log")
    result = fx.simulate(diagram, 2.0, context)
    assert context == untouched
    assert len(log.find_log(context)) == 0
    assert len(log.find_log(result.context)) == 11
    assert result.context is not context
    assert result.context.time == 2.0
    assert result.time[0] == 1.0


def test_what_happens_to_the_final_context_afterwards_changes_no_signal() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(fx.Constant("one", 1.0), lag, fx.Gain("gain", 2.0))
    builder.connect_chain("one", "lag", "gain")
    result = fx.simulate(builder.build(), 1.0)
    before = result.sample("gain.y", [0.5, 1.0])
    result.context.set("gain.gain", 5.0)
    result.context.set("lag.x", 9.0)
    result.context.time = 0.0
    assert result.sample("gain.y", [0.5, 1.0]).tolist() == before.tolist()


def test_a_run_of_zero_length_has_one_instant() -> None:
    result = fx.simulate(Oscillator(), 0.0)
    assert result.time.tolist() == [0.0]
    assert result["position"].tolist() == [1.0]
    assert result.outcome == "completed"


def test_outcome_and_message_of_a_completed_run() -> None:
    result = fx.simulate(Oscillator(), 1.0, method="RK45")
    assert result.outcome == "completed"
    assert result.message.startswith("reached t = 1 s\nfrom t = 0 s: RK45, as asked")
    assert repr(result) == (
        f"<SimulationResult of 'oscillator', t = 0 to 1 s, {result.statistics.steps} steps, "
        "completed>"
    )


def test_outcome_and_message_of_a_terminated_run() -> None:
    stop = Clockwork(
        fx.Periodic(0.25),
        lambda context, count: fx.Terminate("far enough") if context.time > 0.4 else None,
        name="stop",
    )
    result = fx.simulate(together(stop, Oscillator()), 1.0)
    assert result.outcome == "terminated"
    assert result.message.startswith("terminated by stop.run at t = 0.5 s: far enough\n")
    assert result.time[-1] == result.context.time == 0.5
    assert result["oscillator.position"][-1] == pytest.approx(oscillation(np.array(0.5)), abs=1e-5)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (RuntimeError("broken"), "failed"),
        (EvaluationError("Cannot go on"), "failed"),
    ],
)
def test_an_exception_carries_the_run_up_to_there(error: BaseException, outcome: str) -> None:
    def rate(t: Any, x: Any) -> Any:
        if t > 0.5:
            raise error
        return -x

    with pytest.raises(type(error)) as caught:
        fx.simulate(Flow(rate, [1.0]), 2.0, max_step=0.05)
    result: fx.SimulationResult = caught.value.result  # type: ignore[attr-defined]
    assert caught.value is error
    assert result.outcome == outcome
    assert 0.4 < result.time[-1] == result.context.time <= 0.5
    times = np.linspace(0.0, result.time[-1], 20)
    np.testing.assert_allclose(result.sample("x", times), np.exp(-times), rtol=1e-5)


def test_a_failed_simulation_carries_the_run_up_to_there() -> None:
    flow = Flow(lambda t, x: [np.where(t > 0.5, math.nan, 1.0)], [0.0])
    with pytest.raises(NonFiniteError) as caught:
        fx.simulate(flow, 2.0)
    result: fx.SimulationResult = caught.value.result  # type: ignore[attr-defined]
    assert result.outcome == "failed"
    assert result.message.startswith("Cannot integrate")
    assert result["x"] == pytest.approx(result.time)


def test_a_context_of_another_system_is_refused() -> None:
    with pytest.raises(ContextError, match="expected a root context of the same system"):
        fx.simulate(Oscillator(), 1.0, Oscillator().create_default_context())


# Export ------------------------------------------------------------------------------------------


def test_to_dict_has_time_and_all_signals(result: fx.SimulationResult) -> None:
    table = result.to_dict()
    assert list(table) == ["time", *result.signals]
    for signal in result.signals:
        assert table[signal].tolist() == result[signal].tolist()


def test_to_dict_of_chosen_signals_at_chosen_times(result: fx.SimulationResult) -> None:
    table = result.to_dict(["step.y", "oscillator.x[rate]"], [0.0, 0.5, 1.0])
    assert list(table) == ["time", "step.y", "oscillator.x[rate]"]
    assert table["time"].tolist() == [0.0, 0.5, 1.0]
    assert table["step.y"].tolist() == [0.0, 0.0, 1.0]


def test_to_csv_keeps_every_bit(result: fx.SimulationResult, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    result.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert names == list(result.columns())
    assert {"oscillator.x[position]", "oscillator.x[rate]", "oscillator.x[work]"} < set(names)
    columns = np.array([[float(cell) for cell in row] for row in rows]).T
    for name, column in zip(names, columns, strict=True):
        assert column.tolist() == result.columns()[name].tolist()


def test_to_npz_keeps_every_bit(result: fx.SimulationResult, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    result.to_npz(path, ["oscillator.x", "held"])
    with np.load(path) as archive:
        assert set(archive) == {"time", "oscillator.x", "held"}
        assert archive["oscillator.x"].tolist() == result["oscillator.x"].tolist()
        assert archive["time"].tolist() == result.time.tolist()


def test_to_pandas(result: fx.SimulationResult) -> None:
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert frame.index.name == "time"
    assert frame.index.to_numpy().tolist() == result.time.tolist()
    assert frame["oscillator.x[rate]"].tolist() == result["oscillator.x[rate]"].tolist()


def test_to_xarray(result: fx.SimulationResult) -> None:
    pytest.importorskip("xarray")
    data = result.to_xarray()
    assert data["oscillator.x"].dims[0] == "time"
    assert data["oscillator.x"].values.tolist() == result["oscillator.x"].tolist()
    assert data["time"].values.tolist() == result.time.tolist()


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named_with_its_installation(
    result: fx.SimulationResult, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install 'flexure\[data\]'"):
        getattr(result, f"to_{package}")()


def test_an_output_called_time_does_not_hide_the_time() -> None:
    class Clock(fx.LeafSystem):
        """time = twice the time."""

        def __init__(self) -> None:
            super().__init__("clock")
            self.declare_vector_output(
                "time", 1, lambda context: 2.0 * context.time, prerequisites=[fx.TIME]
            )

    result = fx.simulate(Clock(), 1.0)
    assert result["time"].tolist() == [0.0, 2.0]
    with pytest.raises(ValueRefusedError, match="'time'"):
        result.to_dict()


# Plots -------------------------------------------------------------------------------------------


def test_plot_has_a_panel_per_signal_with_its_values(
    result: fx.SimulationResult, tmp_path: Path
) -> None:
    path = tmp_path / "plot.png"
    figure = result.plot("oscillator.x", "step.y", path=path)
    assert isinstance(figure, Figure)
    assert path.stat().st_size > 1000
    vector, step = figure.axes
    assert [text.get_text() for text in vector.get_legend().get_texts()] == [  # type: ignore[union-attr]
        "position",
        "rate",
        "work",
    ]
    x, y = step.lines[0].get_data()
    assert np.asarray(x)[np.flatnonzero(np.diff(np.asarray(y)))].tolist() == [0.6]
    assert step.get_ylabel() == "step.y"


def test_plot_without_names_shows_the_outputs_of_the_system(result: fx.SimulationResult) -> None:
    assert [axes.get_ylabel() for axes in result.plot().axes] == ["held"]
