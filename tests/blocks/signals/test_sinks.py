"""Sinks: what they record, print and stop, and when."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.signals.sinks import Log, Printer, StopWhen, Terminator, VectorLog
from flexure.blocks.signals.sources import Ramp, Step
from flexure.blocks.signals.waveforms import Sine
from flexure.diagrams import Forced, Periodic, PerStep, Terminate, Witness
from flexure.diagrams.checks.errors import ContextError, DeclarationError
from flexure.diagrams.contexts.updates import run_updates
from tests.support.tiers import for_each


def triggers_of(sink: fx.LeafSystem) -> list[Any]:
    return [event.trigger for event in sink.events]


def publish(sink: fx.LeafSystem, context: Any, trigger: Any) -> list[Any]:
    """Call the handlers that have a trigger, as a simulator does; return what they return."""
    leaf = context.find(sink)
    return [event.handler(leaf) for event in sink.events if event.trigger == trigger]


# The log -----------------------------------------------------------------------------------


def test_log_keeps_samples_in_order_while_it_grows() -> None:
    log = Log(2)
    for k in range(1000):
        log.append(0.5 * k, [k, -k])
    assert len(log) == 1000
    np.testing.assert_array_equal(log.times, 0.5 * np.arange(1000))
    np.testing.assert_array_equal(log.data, np.outer(np.arange(1000), [1.0, -1.0]))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_empty_log_has_shapes_that_fit(size: int) -> None:
    log = Log(size)
    assert len(log) == 0
    assert log.times.shape == (0,)
    assert log.data.shape == (0, size)
    log.append(1.0, np.ones(size))
    assert log.data.shape == (1, size)


def test_cleared_log_starts_anew() -> None:
    log = Log(1)
    log.append(1.0, [5.0])
    log.clear()
    assert len(log) == 0
    log.append(2.0, [6.0])
    np.testing.assert_array_equal(log.times, [2.0])
    np.testing.assert_array_equal(log.data, [[6.0]])


def test_what_a_log_hands_out_is_read_only_and_stays_as_it_was() -> None:
    log = Log(1)
    log.append(1.0, [5.0])
    times, data = log.times, log.data
    log.clear()
    log.append(2.0, [6.0])
    np.testing.assert_array_equal(times, [1.0])
    np.testing.assert_array_equal(data, [[5.0]])
    for array in (times, data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_copy_of_a_log_is_independent() -> None:
    log = Log(1)
    log.append(1.0, [5.0])
    twin = copy.deepcopy(log)
    twin.append(2.0, [6.0])
    assert (len(log), len(twin)) == (1, 2)


# The block that logs -----------------------------------------------------------------------

FORCED, PER_STEP = Forced(), PerStep()


@for_each(
    ("options", "expected"),
    [
        ({}, [FORCED, PER_STEP]),
        ({"period": 0.0}, [FORCED, PER_STEP]),
        ({"period": 0.1}, [FORCED, Periodic(0.1)]),
        ({"period": 0.1, "offset": 0.05}, [FORCED, Periodic(0.1, 0.05)]),
        ({"triggers": ["forced"]}, [FORCED]),
        ({"triggers": "per_step"}, [PER_STEP]),
        ({"triggers": []}, []),
        ({"period": 0.1, "triggers": ["periodic"]}, [Periodic(0.1)]),
        ({"period": 0.1, "triggers": {"periodic", "per_step"}}, [PER_STEP, Periodic(0.1)]),
    ],
)
def test_log_has_the_triggers_that_its_options_ask_for(options: Any, expected: Any) -> None:
    assert triggers_of(VectorLog("log", **options)) == expected


@for_each(
    ("options", "message"),
    [
        ({"triggers": ["often"]}, "'often'"),
        ({"triggers": "periodic"}, "Pass a period as well"),
        ({"period": 0.1, "triggers": ["forced"]}, "period=0.1"),
        ({"offset": 0.1}, "offset=0.1"),
        ({"period": -0.1}, "period=-0.1"),
        ({"period": 0.1, "offset": -1.0}, "offset=-1.0"),
        ({"size": 1.5}, "1.5"),
    ],
)
def test_log_refuses_options_that_do_not_fit_together(options: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        VectorLog("log", **options)


@pytest.fixture
def logged() -> tuple[VectorLog, fx.Diagram]:
    """Return a sine with a log, as a diagram."""
    builder = fx.DiagramBuilder("logged")
    builder.add(Sine("sine", amplitude=[1.0, 2.0], frequency=np.pi))
    log = builder.add(VectorLog("log", 2, period=0.5))
    builder.connect("sine.y", "log.u")
    return log, builder.build()


def test_every_publish_takes_one_sample_of_time_and_input(
    logged: tuple[VectorLog, fx.Diagram],
) -> None:
    log, diagram = logged
    context = diagram.create_default_context()
    diagram.forced_publish(context)
    context.time = 0.5
    publish(log, context, Periodic(0.5))
    diagram.forced_publish(context)
    found = log.find_log(context)
    np.testing.assert_array_equal(found.times, [0.0, 0.5, 0.5])
    np.testing.assert_allclose(found.data, [[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]])


def test_log_is_found_in_the_context_of_the_block_and_of_the_diagram(
    logged: tuple[VectorLog, fx.Diagram],
) -> None:
    log, diagram = logged
    context = diagram.create_default_context()
    assert log.find_log(context) is log.find_log(context["log"])
    with pytest.raises(ContextError, match="context of 'sine'"):
        log.find_log(context["sine"])
    with pytest.raises(ContextError, match="expected a context"):
        log.find_log(None)  # type: ignore[arg-type]


def test_every_context_has_a_log_of_its_own_and_a_clone_has_a_copy(
    logged: tuple[VectorLog, fx.Diagram],
) -> None:
    log, diagram = logged
    context, other = diagram.create_default_context(), diagram.create_default_context()
    diagram.forced_publish(context)
    clone = context.clone()
    diagram.forced_publish(clone)
    assert [len(log.find_log(each)) for each in (context, clone, other)] == [1, 2, 0]


class Counter(fx.LeafSystem):
    """Counts its updates."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.count = self.declare_discrete_state("count", 0.0)
        self.y = self.declare_vector_output("y", 1, self.count, prerequisites=[self.count])
        self.declare_discrete_update(
            lambda context: {self.count: self.count(context) + 1.0}, Periodic(0.1)
        )


def test_sample_holds_the_value_from_before_the_updates_of_its_instant() -> None:
    builder = fx.DiagramBuilder("counting")
    counter = builder.add(Counter("counter"))
    log = builder.add(VectorLog("log", period=0.1))
    builder.connect("counter.y", "log.u")
    context = builder.build().create_default_context()
    for _ in range(3):
        publish(log, context, Periodic(0.1))
        run_updates([(context.find_leaf(counter), counter.events[0])])
    np.testing.assert_array_equal(log.find_log(context).data, [[0.0], [1.0], [2.0]])


# Printing ----------------------------------------------------------------------------------


def fed(sink: Any, value: Any, time: float = 0.0) -> Any:
    """Return a context with a value at the input."""
    context = sink.create_default_context()
    sink.u.fix(context, value)
    context.time = time
    return context


def test_printer_writes_one_line_with_time_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer("printer", size=2)
    context = fed(printer, [1.0, -2.5], time=0.25)
    printer.forced_publish(context)
    assert capsys.readouterr().out == "t=0.25 [ 1.  -2.5]\n"


def test_printer_fills_its_template_and_writes_to_its_stream() -> None:
    stream = io.StringIO()
    printer = Printer("angle", template="{path} {value[0]:.1f} {time:.2f}", stream=stream)
    publish(printer, fed(printer, 0.52, time=1.0), PER_STEP)
    publish(printer, fed(printer, 0.68, time=2.0), PER_STEP)
    assert stream.getvalue() == "angle 0.5 1.00\nangle 0.7 2.00\n"


def test_printer_has_the_default_triggers_of_a_log() -> None:
    for period, expected in [(None, [FORCED, PER_STEP]), (0.2, [FORCED, Periodic(0.2)])]:
        assert triggers_of(Printer("printer", period=period)) == expected


@for_each(
    "options",
    [
        {"template": "{angle}"},
        {"template": "{value:.3f}"},
        {"template": "{value[1]}"},
        {"template": "{time"},
        {"template": 5},
        {"stream": "out.txt"},
        {"period": -1.0},
        {"size": -1},
    ],
)
def test_printer_refuses_what_it_could_not_print(options: Any) -> None:
    with pytest.raises(DeclarationError):
        Printer("printer", **options)


# Stopping and ignoring ---------------------------------------------------------------------


def test_stop_is_triggered_by_a_signal_that_rises_through_zero() -> None:
    stop = StopWhen("stop", "too far")
    (event,) = stop.witnesses
    trigger = event.trigger
    assert isinstance(trigger, Witness)
    levels = [trigger.calc(fed(stop, value)) for value in (-0.5, 0.0, 0.5)]
    assert levels == [-0.5, 0.0, 0.5]
    assert trigger.triggers(-0.5, 0.0)
    assert trigger.triggers(-0.5, 0.5)
    assert not trigger.triggers(0.5, -0.5)
    assert not trigger.triggers(0.0, 0.5)


def test_stop_ends_the_run_with_its_reason() -> None:
    stop = StopWhen("stop", "too far")
    (event,) = stop.events
    assert event.kind == "publish"
    assert event.handler(fed(stop, 0.0)) == Terminate("too far")


def test_stop_refuses_a_reason_that_is_no_text() -> None:
    with pytest.raises(DeclarationError, match=r"'stop'.*text"):
        StopWhen("stop", None)  # type: ignore[arg-type]


def test_terminator_takes_a_vector_and_does_nothing() -> None:
    terminator = Terminator("unused", size=3)
    assert terminator.u.size == 3
    assert list(terminator.output_ports) == []
    assert terminator.events == []


def test_terminator_leaves_no_input_open() -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(Step("step", to=[1.0, 2.0]), Terminator("unused", 2))
    builder.connect_chain("step", "unused")
    assert len(builder.build().children) == 2


# All sinks ---------------------------------------------------------------------------------

SINKS: list[Callable[[], Any]] = [
    partial(VectorLog, "sink", 1, 0.1),
    partial(Printer, "sink"),
    partial(StopWhen, "sink", "done"),
    partial(Terminator, "sink"),
]


@pytest.mark.parametrize("make", SINKS)
def test_sink_has_the_input_u_alone_which_must_be_fed(make: Callable[[], Any]) -> None:
    sink = make()
    assert [port.name for port in sink.input_ports] == ["u"]
    assert sink.u.default is None
    assert list(sink.output_ports) == []
    assert sink.feedthrough == frozenset()


@pytest.mark.parametrize("make", SINKS)
def test_diagram_with_a_sink_survives_pickling(make: Callable[[], Any]) -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(Ramp("ramp"), make())
    builder.connect_chain("ramp", "sink")
    twin = pickle.loads(pickle.dumps(builder.build()))
    context = twin.create_default_context()
    context.time = 2.0
    assert context.get("sink.u") == 2.0
    assert len(twin.get_system("sink").events) == len(make().events)


def test_unpickled_log_records() -> None:
    log = pickle.loads(pickle.dumps(VectorLog("log", 2)))
    context = fed(log, [1.0, 2.0])
    log.forced_publish(context)
    np.testing.assert_array_equal(log.find_log(context).data, [[1.0, 2.0]])
