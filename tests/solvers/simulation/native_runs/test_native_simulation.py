"""Simulations by native loops do what the simulator's own phases do, event by event."""

from __future__ import annotations

import contextlib
import math
import re
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ZenoError
from flexure.solvers.simulation.native_runs import native_runner, run_output
from flexure.solvers.tracing.derivatives import Derivatives
from tests.support.native.native import needs_llvmlite
from tests.support.native.native_runs import (
    METHODS,
    OF_STEPS,
    Change,
    assert_same_logs,
    assert_same_values,
    close,
    compiled_loop,
    counts,
    native_like_interpreted,
    run,
)
from tests.support.systems.event_systems import (
    SITUATIONS,
    Act,
    Actor,
    Oscillator,
    Watch,
    logged,
    noting,
    sampled,
)
from tests.support.systems.simulation import together
from tests.support.tiers import by_tier, by_turn, thinned

pytestmark = needs_llvmlite

every_method = pytest.mark.parametrize("method", thinned(METHODS, fast=3))


#: In the full tier, each situation with every other method, the next one with those between.
PAIRS = [
    (name, method)
    for row, name in enumerate(SITUATIONS)
    for column, method in enumerate(METHODS)
    if (column - row) % by_tier(fast=len(METHODS), full=2) == 0
]


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_situations(name: str, method: str) -> None:
    make = SITUATIONS[name]
    native_like_interpreted(make, [2.3], method=method)


@pytest.mark.parametrize(
    ("name", "method"), thinned(by_turn(SITUATIONS, last=["RK45", "DOP853"]), fast=6)
)
def test_a_run_without_history_is_the_same(name: str, method: str) -> None:
    make = SITUATIONS[name]
    plain, kept = (
        run(make(), "native", [2.3], method=method, record=record) for record in (False, True)
    )
    assert plain.context.store.x.tolist() == kept.context.store.x.tolist()
    assert counts(plain, ["evaluations"]) == counts(kept, ["evaluations"])
    interpreted = run(make(), False, [2.3], method=method, record=False)
    assert_same_values(plain.context, interpreted.context)
    assert_same_logs(plain.context, interpreted.context)
    assert plain.statistics.evaluations == interpreted.statistics.evaluations


def test_tiny_tables_and_short_calls_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More samples inside of one step than the table holds, and a call for every other step."""
    whole = run(logged(), "native", [2.3], method="RK45")
    monkeypatch.setattr(run_output, "_TABLE", 1)
    monkeypatch.setattr(native_runner, "_STRIDE", 2)
    native = native_like_interpreted(logged, [2.3], method="RK45")
    assert native.context.get("actor.d").tolist() == whole.context.get("actor.d").tolist()
    assert native.context.store.x.tolist() == whole.context.store.x.tolist()
    dense: Any = native.system.get_system("dense")
    assert len(dense.find_log(native.context)) == 767


@every_method
def test_a_run_in_pieces_is_the_run_in_one_piece(method: str) -> None:
    pieces = [0.0, 0.1, 0.1, 0.1234, 0.5, 0.5000001, 0.75, 1.5, 2.0, 2.3]
    parts = native_like_interpreted(logged, pieces, method=method)
    whole = run(logged(), "native", [2.3], method=method)
    close(parts.context.store.x, whole.context.store.x, 1e-4)
    found, expected = (s.context.get("actor.d") for s in (parts, whole))
    assert found[0] == expected[0]
    close(found, expected, 1e-4)


def started_late(simulator: fx.Simulator) -> None:
    simulator.context.time = 1e4
    simulator.initialize()


def set_to(path: str, value: Any) -> Change:
    return lambda simulator: simulator.context.set(path, value)


CHANGES: dict[str, Change] = {
    "parameter": set_to("oscillator.damping", 2.0),
    "continuous state": set_to("oscillator.x", [0.3, -1.0]),
    "discrete state": set_to("actor.d", [3.0, 2.0, 1.0]),
    "time": started_late,
    "nothing, but initialized": lambda simulator: simulator.initialize(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_what_is_changed_between_advances_counts_from_then_on(method: str, change: Change) -> None:
    start = 1e4 if change is started_late else 0.0
    stops: list[Any] = [0.0, change, start + 0.77, change, start + 1.3]
    if change is not started_late:
        stops[0] = 0.25
    native_like_interpreted(logged, stops, method=method)


def test_a_fixed_input_changed_between_advances_counts_from_then_on() -> None:
    def feed(value: float) -> Change:
        return lambda simulator: simulator.system.input_port("u").fix(simulator.context, value)

    native_like_interpreted(Oscillator, [feed(3.0), 0.7, feed(-2.0), 1.9], method="RK45")


@pytest.mark.parametrize(
    "options",
    [
        {"max_step": 0.011},
        {"rtol": 1e-3, "atol": 1e-3},
        {"rtol": {"actor": 1e-10, "": 1e-4}},
        {"method": "auto"},
    ],
    ids=str,
)
def test_options_mean_the_same(options: dict[str, Any]) -> None:
    native_like_interpreted(logged, [2.3], **{"method": "RK45", **options})


def test_a_run_from_a_negative_time() -> None:
    def back(simulator: fx.Simulator) -> None:
        simulator.context.time = -1.0

    native_like_interpreted(logged, [back, 0.7], method="RK45")


def stiff_later() -> fx.System:
    """A mode that becomes fast and strongly damped on the way."""
    return Actor(
        rate=lambda t, x, d: [x[1], -x[0], -(1.0 + 1e5 * (x[0] < 0.0)) * (x[2] - x[0])],
        start=[1.0, 0.0, 1.0],
    )


@pytest.mark.parametrize("make", [stiff_later, Oscillator, sampled])
def test_the_choice_of_the_method_is_the_same(make: Callable[[], fx.System]) -> None:
    native, interpreted = (run(make(), compiled, [20.0]).statistics for compiled in (True, False))
    assert [each[1:] for each in native.methods] == [each[1:] for each in interpreted.methods]
    times = [time for time, _, _ in interpreted.methods]
    assert [time for time, _, _ in native.methods] == pytest.approx(times, abs=1e-3)
    assert len(times) == (2 if make is stiff_later else 1)


def test_native_code_evaluates_what_the_search_for_stiffness_wants_to_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the parameters that the context has when the search begins."""

    def refused(*_: Any) -> Any:
        pytest.fail("the equations were evaluated in Python")

    simulator = fx.Simulator(fx.FirstOrderLag("lag", time_constant=1.0), compiled="native")
    simulator.context.set("u", 1.0)
    simulator.initialize()
    monkeypatch.setattr(Derivatives, "__call__", refused)
    simulator.advance_to(0.01)
    simulator.context.set("time_constant", 1e-5)
    simulator.advance_to(10.0)
    assert [name for _, name, _ in simulator.statistics.methods] == ["RK45", "Rodas5P"]
    assert simulator.context.get("y")[0] == pytest.approx(1.0)


# Publishes that end a run ------------------------------------------------------------------------


def stopped_by(trigger: Any, verdict: Callable[[float], Any], **log: Any) -> fx.System:
    """An oscillator that is logged, and a block that may end the run when it publishes."""
    builder = fx.DiagramBuilder("stopped")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("log", 2, **(log or {"period": 0.03})),
        Actor(
            Act("publish", trigger, lambda t, x, d: verdict(t)),
            Act("discrete", fx.diagrams.Periodic(0.1), noting),
            rate=lambda t, x, d: 1.0,
            start=[0.0],
        ),
    )
    builder.connect("oscillator.y", "log.u")
    return builder.build()


def late(t: float) -> fx.diagrams.Terminate | None:
    return fx.diagrams.Terminate("it is late") if t > 0.8 else None


def failing(t: float) -> None:
    if t > 0.8:
        raise ValueError("a bad day")


def interrupting(t: float) -> None:
    if t > 0.8:
        raise KeyboardInterrupt


PUBLISHES: dict[str, Any] = {
    "at a tick of its own": fx.diagrams.Periodic(0.07),
    "at a tick of updates": fx.diagrams.Periodic(0.3),
    "at every step": fx.diagrams.PerStep(),
    "at a crossing": Watch(lambda t, x, d: np.sin(10.0 * t)),
}
every_publish = pytest.mark.parametrize("trigger", PUBLISHES.values(), ids=PUBLISHES)


@pytest.mark.parametrize(
    ("name", "log", "method"), by_turn(PUBLISHES, [{"period": 0.03}, {}], last=METHODS)
)
def test_a_publish_ends_the_run(name: str, log: dict[str, Any], method: str) -> None:
    trigger = PUBLISHES[name]
    native = native_like_interpreted(lambda: stopped_by(trigger, late, **log), method=method)
    assert native.termination == fx.diagrams.Terminate("it is late")
    assert 0.8 < native.context.time < 1.3


@every_publish
@pytest.mark.parametrize("verdict", [failing, interrupting, late])
def test_after_a_publish_that_ended_a_run_another_one_goes_on(trigger: Any, verdict: Any) -> None:
    def to_the_fault(simulator: fx.Simulator) -> None:
        with contextlib.suppress(ValueError, KeyboardInterrupt):
            simulator.advance_to(2.0)
        assert 0.8 < simulator.context.time < 1.3

    def repair(simulator: fx.Simulator) -> None:
        broken.clear()

    def make() -> fx.System:
        broken.append(True)
        return stopped_by(trigger, lambda t: verdict(t) if broken else None)

    broken: list[bool] = []
    # Of a motion that an exception ended, integrators of SciPy count nothing but steps.
    uncounted = () if verdict is late else ("restarts", "evaluations")
    stops: list[Any] = [to_the_fault, repair, 2.0]
    native_like_interpreted(make, stops, uncounted=uncounted, method="RK45")


@pytest.mark.usefixtures("interruptible")
def test_the_interrupt_key_pressed_while_a_publish_ends_the_run_is_not_lost() -> None:
    system = stopped_by(fx.diagrams.Periodic(0.07), late)
    simulator = fx.Simulator(system, method="RK45", compiled="native", record=True)
    simulator.initialize()
    loop = compiled_loop(simulator, "RK45")
    call = loop.call

    def pressed_at_the_end(pointer: int) -> Any:
        status = call(pointer)
        if loop.memory.fields.step.time > 0.8:
            signal.raise_signal(signal.SIGINT)
        return status

    loop.call = pressed_at_the_end
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(2.0)
    assert simulator.termination == fx.diagrams.Terminate("it is late")
    assert simulator.history is not None
    assert simulator.history.end == simulator.context.time == 12.0 * 0.07


def test_publishes_of_one_instant_run_in_the_order_of_the_blocks() -> None:
    def seen(compiled: Any) -> list[tuple[float, str]]:
        trace: list[tuple[float, str]] = []

        def note(label: str) -> Callable[..., None]:
            return lambda t, x, d: trace.append((round(float(t), 9), label))

        triggers = {
            "crossing": Watch(lambda t, x, d: t - 0.5),
            "tick": fx.diagrams.Periodic(0.25),
            "step": fx.diagrams.PerStep(),
        }
        blocks = [
            Actor(*(Act("publish", each, note(f"{name} {label}")) for label, each in some))
            for name, some in zip(
                "abc",
                ([*triggers.items()], [*triggers.items()][::-1], [*triggers.items()][1:]),
                strict=True,
            )
        ]
        for name, block in zip("abc", blocks, strict=True):
            block.name = name
        run(together(*blocks), compiled, [0.6], method="RK45")
        return trace

    native, interpreted = seen("native"), seen(False)
    assert [label for _, label in native] == [label for _, label in interpreted]
    close([time for time, _ in native], [time for time, _ in interpreted], OF_STEPS)
    assert (0.5, "c step") in native


@pytest.mark.parametrize("verdict", [failing, interrupting])
def test_what_a_publish_raises_comes_out_with_the_same_text(verdict: Any) -> None:
    def errors(compiled: Any) -> tuple[BaseException, list[str]]:
        system = stopped_by(fx.diagrams.Periodic(0.07), verdict)
        with pytest.raises((ValueError, KeyboardInterrupt)) as caught:
            fx.simulate(system, 2.0, method="RK45", compiled=compiled)
        error: Any = caught.value
        assert error.result.time[-1] == 12.0 * 0.07
        return error, [error.result.outcome, error.result.message.splitlines()[0]]

    (native, ours), (interpreted, theirs) = errors("native"), errors(False)
    assert type(native) is type(interpreted)
    assert getattr(native, "__notes__", []) == getattr(interpreted, "__notes__", [])
    assert ours == theirs


def test_a_block_that_stops_the_run_when_a_signal_is_positive() -> None:
    def make() -> fx.System:
        builder = fx.DiagramBuilder("stopped")
        builder.add_all(
            fx.Sine("sine", phase=-1.0), fx.Integrator("sum"), fx.StopWhen("stop", "up")
        )
        builder.connect("sine.y", "sum.u")
        builder.connect("sine.y", "stop.u")
        return builder.build()

    native = native_like_interpreted(make, method="RK45")
    assert native.context.time == pytest.approx(1.0)


def test_events_that_pile_up_are_named_alike_and_end_the_logs_alike() -> None:
    def make() -> fx.System:
        fall = Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.5 * x[1]]},
        )
        builder = fx.DiagramBuilder("ball")
        builder.add(Actor(fall, rate=lambda t, x, d: [x[1], -9.81], start=[1.0, 0.0]))
        builder.add(fx.VectorLog("log", 3, period=0.01))
        builder.connect("actor.y", "log.u")
        return builder.build()

    texts, simulators = [], []
    for compiled in ("native", False):
        simulator = fx.Simulator(make(), compiled=compiled)
        with pytest.raises(ZenoError) as caught:
            simulator.advance_to(3.0)
        simulators.append(simulator)
        texts.append(re.sub(r"t = [\d.]+", "t", str(caught.value)))
        assert caught.value.time == pytest.approx(math.sqrt(2.0 / 9.81) * 3.0, abs=1e-6)
    assert texts[0] == texts[1]
    native, interpreted = (simulator.context for simulator in simulators)
    assert_same_values(native, interpreted)
    assert_same_logs(native, interpreted)
