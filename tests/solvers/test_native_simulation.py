"""Simulations by native loops do what the simulator's own phases do, event by event."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import math
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flexure as fx
from flexure.diagrams.errors import NativeCodeError, ZenoError
from flexure.solvers.history import Snapshot
from flexure.solvers.native import runner
from tests.support.native import needs_llvmlite
from tests.support.simulation import together

pytestmark = needs_llvmlite

ROOT = Path(__file__).resolve().parents[2]
METHODS = ["RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P"]

# Comparing runs ----------------------------------------------------------------------------------

Change = Callable[[fx.Simulator], None]


def run(
    system: fx.System, compiled: Any, stops: Sequence[float | Change] = (2.0,), **options: Any
) -> fx.Simulator:
    """Advance a simulator of a system from stop to stop, with changes in between."""
    simulator = fx.Simulator(system, compiled=compiled, **{"record": True, **options})
    for stop in stops:
        if callable(stop):
            stop(simulator)
        else:
            simulator.advance_to(stop)
    return simulator


def native_like_interpreted(
    make: Callable[[], fx.System],
    stops: Sequence[float | Change] = (2.0,),
    *,
    uncounted: Sequence[str] = (),
    **options: Any,
) -> fx.Simulator:
    """Run a system both ways, compare the runs, and return the native one."""
    # Differences for a Jacobian show in the estimates of errors.
    plain = "python" if options.get("method") == "Rodas5P" else False
    interpreted = run(make(), plain, stops, **options)
    native = run(make(), "native", stops, **options)
    assert_same(native, interpreted, uncounted)
    assert native.statistics.native_steps == native.statistics.steps
    return native


def assert_same(
    native: fx.Simulator, interpreted: fx.Simulator, uncounted: Sequence[str] = ()
) -> None:
    """Compare everything that two simulators tell, but for some statistics."""
    assert_same_values(native.context, interpreted.context)
    assert native.terminated_by == interpreted.terminated_by
    assert native.termination == interpreted.termination
    assert counts(native, uncounted) == counts(interpreted, uncounted)
    assert native.explain().splitlines()[:-1] == interpreted.explain().splitlines()[:-1]
    assert native.explain().splitlines()[-1].startswith("equations: native code of ")
    assert_same_logs(native.context, interpreted.context)
    assert_same_history(native, interpreted)


def counts(simulator: fx.Simulator, uncounted: Sequence[str]) -> dict[str, Any]:
    """Return the statistics; native code evaluates less where that changes nothing."""
    statistics = dict(vars(simulator.statistics))
    for name in ("native_steps", *uncounted):
        statistics.pop(name)
    names = [name for _, name, _ in statistics["methods"]]
    if "Rodas5P" in names or "DOP853" in names:
        statistics.pop("evaluations", 0)  # derivatives by time, and interpolants nobody asked for
    return statistics | {"methods": names}


def assert_same_values(native: fx.Context, interpreted: fx.Context) -> None:
    close([native.time], [interpreted.time])
    close(native.store.x, interpreted.store.x)
    assert_same_discrete(Snapshot.of(native), Snapshot.of(interpreted))


def assert_same_discrete(native: Snapshot, interpreted: Snapshot) -> None:
    for ours, theirs in zip(native.discrete, interpreted.discrete, strict=True):
        for found, expected in zip(ours, theirs, strict=True):
            close(found, expected)


def assert_same_logs(native: fx.Context, interpreted: fx.Context) -> None:
    for leaf, other in zip(native.leaves(), interpreted.leaves(), strict=True):
        if isinstance(leaf.system, fx.VectorLog):
            assert isinstance(other.system, fx.VectorLog)
            found, expected = leaf.system.find_log(leaf), other.system.find_log(other)
            at_steps = any(isinstance(e.trigger, fx.PerStep) for e in leaf.system.events)
            close(found.times, expected.times, OF_STEPS if at_steps else OF_VALUES)
            close(found.data, expected.data, 10.0 * OF_STEPS if at_steps else OF_VALUES)


def assert_same_history(native: fx.Simulator, interpreted: fx.Simulator) -> None:
    assert native.history is not None
    assert interpreted.history is not None
    ours, theirs = native.history.pieces, interpreted.history.pieces
    assert [len(piece.times) for piece in ours] == [len(piece.times) for piece in theirs]
    for found, expected in zip(ours, theirs, strict=True):
        close(found.times, expected.times, OF_STEPS)
        for end in (0, -1):
            close(found.times[end], expected.times[end])
            close(found.states[end], expected.states[end])
        assert found.last == pytest.approx(expected.last, rel=1e-12)
        assert_same_discrete(found.snapshot, expected.snapshot)
        grid = np.array(expected.times)
        for time in np.sort(np.append(grid, 0.5 * (grid[1:] + grid[:-1]))).tolist():
            close(found.state(time), expected.state(time))


OF_VALUES = 1e-9
#: Rounding errors show in the estimates of errors, and from there in the times of steps.
OF_STEPS = 1e-6


def close(found: Any, expected: Any, tolerance: float = OF_VALUES) -> None:
    """Compare numbers up to rounding errors that steps and events have made larger."""
    size = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * size)


# Blocks of pure equations ------------------------------------------------------------------------


class Oscillator(fx.LeafSystem):
    """q″ = u - 9.81 sin q - 0.1 q′, from q = 1."""

    def __init__(self, name: str = "oscillator") -> None:
        super().__init__(name)
        self.damping = self.declare_numeric_parameter("damping", 0.1)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, self.u(context)[0] - 9.81 * np.sin(q) - self.damping(context) * v]


@dataclass
class Act:
    """One event: its kind and trigger, and what becomes of the state, ``f(t, x, d)``."""

    kind: str
    trigger: Any
    update: Callable[..., Any]


class Actor(fx.LeafSystem):
    """ẋ = rate(t, x, d) with discrete values d that the events of a test change.

    A watch of an event is a function of t, x, d as well.
    """

    def __init__(
        self,
        *acts: Act,
        name: str = "actor",
        rate: Callable[..., Any] = lambda t, x, d: -x + d[0],
        start: Sequence[float] = (1.0,),
        numbers: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(name)
        self.rate = rate
        self.x = self.declare_continuous_state(z=len(start), default=start)
        self.d = self.declare_discrete_state("d", numbers)
        self.y = self.declare_vector_output("y", len(numbers), self.d, prerequisites=[self.d])
        for act in acts:
            declare: Any = {
                "publish": self.declare_publish,
                "discrete": self.declare_discrete_update,
                "unrestricted": self.declare_unrestricted_update,
            }[act.kind]
            trigger = act.trigger
            if isinstance(trigger, fx.Witness):
                trigger = fx.Witness(self.reading(trigger.calc), trigger.direction)
            declare(self.handler(act), trigger)

    def reading(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda context: function(context.time, self.x(context), self.d(context))

    def handler(self, act: Act) -> Callable[[Any], Any]:
        calc = self.reading(act.update)

        def handle(context: Any) -> Any:
            found = calc(context)
            if act.kind == "publish":
                return found
            return {{"x": self.x, "d": self.d}[name]: value for name, value in found.items()}

        return handle

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.reading(self.rate)(context)


def noting(t: Any, x: Any, d: Any) -> Any:
    """Count events, and keep the time and the state of the last one."""
    return {"d": [d[0] + 1.0, t, x[0]]}


# Situations --------------------------------------------------------------------------------------


def sampled() -> fx.System:
    """A loop of blocks with clocks of several rates and offsets."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        Oscillator(),
        fx.Selector("angle", 2, [0]),
        fx.ZeroOrderHold("hold", 0.1),
        fx.SampledPIDController("pid", 0.05, 4.0, 1.0, 0.5, offset=0.02),
        fx.DiscreteIntegrator("sum", 0.3, offset=0.1),
        fx.Constant("target", 0.5),
    )
    builder.connect_chain("oscillator", "angle", "hold", "pid.measurement")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", "oscillator.u")
    builder.connect("hold.y", "sum.u")
    return builder.build()


def several_clocks() -> fx.System:
    return together(
        Actor(
            Act("discrete", fx.Periodic(0.1), noting),
            Act("unrestricted", fx.Periodic(0.25, 0.05), lambda t, x, d: {"x": x + 0.5 * d[0]}),
        ),
        Actor(Act("discrete", fx.Periodic(0.3, 0.3), noting), name="other"),
    )


def unrestricted_and_discrete() -> fx.System:
    """Two kinds of updates at the same instants: the second sees what the first wrote."""
    return Actor(
        Act("discrete", fx.Periodic(0.25), lambda t, x, d: {"d": [d[0], 10.0 * d[0] + x[0], t]}),
        Act("unrestricted", fx.Periodic(0.25), lambda t, x, d: {"d": [d[0] + 1.0, d[1], d[2]]}),
    )


def two_writers() -> fx.System:
    """Two handlers write one state and read the same values; the later one wins."""
    return Actor(
        Act("discrete", fx.Periodic(0.25), lambda t, x, d: {"d": [d[0] + 1.0, d[1], 1.0]}),
        Act("discrete", fx.Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1] + 1.0, 2.0]}),
        Act("unrestricted", fx.Periodic(1.0), lambda t, x, d: {"x": x + 1.0}),
        Act("unrestricted", fx.Periodic(0.5), lambda t, x, d: {"x": x - 0.5}),
    )


def bouncing() -> fx.System:
    """A ball with resets, and a lid that it may hit while it rises."""
    return Actor(
        Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.8 * x[1]], "d": [d[0] + 1.0, t, d[2]]},
        ),
        Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0] - 0.5, "rising"),
            lambda t, x, d: {"x": [x[0], -0.9 * x[1]], "d": [d[0], d[1], d[2] + 1.0]},
        ),
        rate=lambda t, x, d: [x[1], -9.81],
        start=[1.0, 0.0],
    )


def crossings_of_every_direction() -> fx.System:
    """Sines that cross levels, several times in one step, without resets."""
    return together(
        *(
            Actor(
                Act("discrete", fx.Witness(lambda t, x, d, k=k: x[0] - 0.1 * k, direction), noting),
                name=direction,
                rate=lambda t, x, d: [x[1], -25.0 * x[0]],
                start=[1.0, 0.0],
            )
            for k, direction in enumerate(("falling", "rising", "either"))
        ),
        Actor(Act("discrete", fx.Witness(lambda t, x, d: np.sin(40.0 * t)), noting), name="time"),
    )


def simultaneous() -> fx.System:
    """Two functions of two blocks that trigger at one instant, where a clock ticks too."""

    def half(t: Any, x: Any, d: Any) -> Any:
        return t - 0.5

    return together(
        Actor(
            Act("discrete", fx.Witness(half), noting),
            Act("unrestricted", fx.Witness(half, "rising"), lambda t, x, d: {"x": -x}),
            Act("discrete", fx.Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1], d[2] + 100.0]}),
        ),
        Actor(Act("unrestricted", fx.Witness(half, "falling"), noting), name="never"),
        Actor(Act("unrestricted", fx.Witness(half), noting), name="other"),
    )


def turned_around() -> fx.System:
    """A surface on which a motion is reflected at exactly zero, again and again."""
    return Actor(
        Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [0.0, 1.0], "d": [d[0] + 1.0, t, 0.0]},
        ),
        rate=lambda t, x, d: [x[1], -2.0],
        start=[0.0, 1.0],
    )


def thermostat() -> fx.System:
    """A heater that is switched with hysteresis: ẋ = 3 d - x between 0.9 and 1.1."""
    return Actor(
        Act(
            "discrete",
            fx.Witness(lambda t, x, d: x[0] - 1.1, "rising"),
            lambda t, x, d: {"d": [0.0, d[1] + 1.0, t]},
        ),
        Act(
            "discrete",
            fx.Witness(lambda t, x, d: x[0] - 0.9, "falling"),
            lambda t, x, d: {"d": [1.0, d[1] + 1.0, t]},
        ),
        rate=lambda t, x, d: 3.0 * d[0] - x,
        numbers=[1.0, 0.0, 0.0],
    )


def jumps() -> fx.System:
    """Sources whose break times the integrator has to land on."""
    builder = fx.DiagramBuilder("jumps")
    builder.add_all(
        fx.Step("step", at=0.3, to=2.0),
        fx.Square("pulses", period=0.25, duty=0.4, delay=0.1),
        fx.Trajectory("path", [0.0, 0.7, 1.5], [0.0, 2.0, -1.0], kind="hold"),
        fx.Sum("sum", "+++"),
        Oscillator(),
    )
    for k, name in enumerate(("step", "pulses", "path"), start=1):
        builder.connect(f"{name}.y", f"sum.u{k}")
    builder.connect("sum.y", "oscillator.u")
    return builder.build()


def logged() -> fx.System:
    """Logs of several clocks, one of them dense, beside updates and crossings."""
    builder = fx.DiagramBuilder("logged")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("dense", 2, period=0.003),
        fx.VectorLog("coarse", 2, period=0.25, offset=0.1),
        fx.VectorLog("at_ticks", 2, period=0.1),
        Actor(
            Act("discrete", fx.Periodic(0.1), noting),
            Act("discrete", fx.Witness(lambda t, x, d: x[0] - 0.6), noting),
        ),
        fx.VectorLog("numbers", 3, period=0.05),
    )
    for name in ("dense", "coarse", "at_ticks"):
        builder.connect("oscillator.y", f"{name}.u")
    builder.connect("actor.y", "numbers.u")
    return builder.build()


def logged_at_every_step() -> fx.System:
    builder = fx.DiagramBuilder("logged")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("steps", 2),
        fx.VectorLog("both", 2, period=0.15, triggers=["per_step", "periodic"]),
        Actor(Act("discrete", fx.Periodic(0.4), noting)),
    )
    builder.connect("oscillator.y", "steps.u")
    builder.connect("oscillator.y", "both.u")
    return builder.build()


SITUATIONS: dict[str, Callable[[], fx.System]] = {
    each.__name__: each
    for each in (
        Oscillator,
        sampled,
        several_clocks,
        unrestricted_and_discrete,
        two_writers,
        bouncing,
        crossings_of_every_direction,
        simultaneous,
        turned_around,
        thermostat,
        jumps,
        logged,
        logged_at_every_step,
    )
}
every_method = pytest.mark.parametrize("method", METHODS)


@every_method
@pytest.mark.parametrize("make", SITUATIONS.values(), ids=SITUATIONS)
def test_situations(make: Callable[[], fx.System], method: str) -> None:
    native_like_interpreted(make, [2.3], method=method)


@pytest.mark.parametrize("method", ["RK45", "DOP853"])
@pytest.mark.parametrize("make", SITUATIONS.values(), ids=SITUATIONS)
def test_a_run_without_history_is_the_same(make: Callable[[], fx.System], method: str) -> None:
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
    monkeypatch.setattr(runner, "_TABLE", 1)
    monkeypatch.setattr(runner, "_STRIDE", 2)
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
    native = run(make(), True, [20.0])
    interpreted = run(make(), False, [20.0])
    assert native.explain().splitlines()[:-1] == interpreted.explain().splitlines()[:-1]
    close(native.context.store.x, interpreted.context.store.x, 1e-4)


# Publishes that end a run ------------------------------------------------------------------------


def stopped_by(trigger: Any, verdict: Callable[[float], Any], **log: Any) -> fx.System:
    """An oscillator that is logged, and a block that may end the run when it publishes."""
    builder = fx.DiagramBuilder("stopped")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("log", 2, **(log or {"period": 0.03})),
        Actor(
            Act("publish", trigger, lambda t, x, d: verdict(t)),
            Act("discrete", fx.Periodic(0.1), noting),
            rate=lambda t, x, d: 1.0,
            start=[0.0],
        ),
    )
    builder.connect("oscillator.y", "log.u")
    return builder.build()


def late(t: float) -> fx.Terminate | None:
    return fx.Terminate("it is late") if t > 0.8 else None


def failing(t: float) -> None:
    if t > 0.8:
        raise ValueError("a bad day")


def interrupting(t: float) -> None:
    if t > 0.8:
        raise KeyboardInterrupt


PUBLISHES: dict[str, Any] = {
    "at a tick of its own": fx.Periodic(0.07),
    "at a tick of updates": fx.Periodic(0.3),
    "at every step": fx.PerStep(),
    "at a crossing": fx.Witness(lambda t, x, d: np.sin(10.0 * t)),
}
every_publish = pytest.mark.parametrize("trigger", PUBLISHES.values(), ids=PUBLISHES)


@every_publish
@pytest.mark.parametrize("log", [{"period": 0.03}, {}], ids=["sampled log", "log of steps"])
@every_method
def test_a_publish_ends_the_run(trigger: Any, log: dict[str, Any], method: str) -> None:
    native = native_like_interpreted(lambda: stopped_by(trigger, late, **log), method=method)
    assert native.termination == fx.Terminate("it is late")
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
    stops = [to_the_fault, repair, 2.0]
    native_like_interpreted(make, stops, uncounted=uncounted, method="RK45")


def test_publishes_of_one_instant_run_in_the_order_of_the_blocks() -> None:
    def seen(compiled: Any) -> list[tuple[float, str]]:
        trace: list[tuple[float, str]] = []

        def note(label: str) -> Callable[..., None]:
            return lambda t, x, d: trace.append((round(float(t), 9), label))

        triggers = {
            "crossing": fx.Witness(lambda t, x, d: t - 0.5),
            "tick": fx.Periodic(0.25),
            "step": fx.PerStep(),
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
        system = stopped_by(fx.Periodic(0.07), verdict)
        with pytest.raises((ValueError, KeyboardInterrupt)) as caught:
            fx.simulate(system, 2.0, method="RK45", compiled=compiled)
        result: Any = caught.value.result  # type: ignore[union-attr]
        assert result.time[-1] == 12.0 * 0.07
        return caught.value, [result.outcome, result.message.splitlines()[0]]

    (native, ours), (interpreted, theirs) = errors("native"), errors(False)
    assert type(native) is type(interpreted)
    assert getattr(native, "__notes__", []) == getattr(interpreted, "__notes__", [])
    assert ours == theirs


def test_a_block_that_stops_the_run_when_a_signal_is_positive() -> None:
    def make() -> fx.System:
        builder = fx.DiagramBuilder("stopped")
        builder.add_all(fx.Sine("sine", phase=-1.0), fx.Integrator("sum"), fx.StopWhen("stop", "up"))
        builder.connect("sine.y", "sum.u")
        builder.connect("sine.y", "stop.u")
        return builder.build()

    native = native_like_interpreted(make, method="RK45")
    assert native.context.time == pytest.approx(1.0)


def test_events_that_pile_up_are_named_alike() -> None:
    def make() -> fx.System:
        fall = Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.5 * x[1]]},
        )
        return Actor(fall, rate=lambda t, x, d: [x[1], -9.81], start=[1.0, 0.0])

    texts = []
    for compiled in ("native", False):
        with pytest.raises(ZenoError) as caught:
            fx.Simulator(make(), compiled=compiled).advance_to(3.0)
        texts.append(re.sub(r"t = [\d.]+", "t", str(caught.value)))
        assert caught.value.time == pytest.approx(math.sqrt(2.0 / 9.81) * 3.0, abs=1e-6)
    assert texts[0] == texts[1]


# What stays interpreted --------------------------------------------------------------------------

HITS: list[float] = []
COUNT = 0


class Shelf:
    """Something beside the block."""

    def __init__(self) -> None:
        self.count = 0


class Slotted:
    """Something without a dictionary."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Keeper(fx.LeafSystem):
    """A counter whose update keeps something for itself."""

    shared: ClassVar[list[float]] = []
    total = 0

    def __init__(self, keep: Callable[[Keeper, float], Any]) -> None:
        super().__init__("keeper")
        self.keep = keep
        self.hits: list[float] = []
        self.deep = {"hits": [deque([0.0])]}
        self.marks: set[float] = set()
        self.shelf, self.slotted = Shelf(), Slotted()
        self.array = np.zeros(2)
        self.calls = 0
        self.ids = itertools.count()
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.count, fx.Periodic(0.25))

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.x(context)

    def count(self, context: Any) -> Any:
        self.keep(self, context.time)
        return {self.n: self.n(context) + 1.0}

    def note_in_a_method(self, time: float) -> None:
        HITS.append(time)

    def kept(self) -> Any:
        """Return everything that a handler may have kept."""
        return [
            *(self.hits, self.deep, self.marks, self.shelf.count, self.slotted.count),
            *(self.array.tolist(), self.calls, repr(self.ids), HITS, COUNT),
            *(self.shared, type(self).total, DEFAULT, KEYWORD, note.count),
        ]

    @classmethod
    def forget(cls) -> None:
        """Put back what is outside of blocks."""
        global COUNT
        COUNT = 0
        for each in (HITS, cls.shared, DEFAULT, KEYWORD):
            each.clear()
        cls.total = note.count = 0


def count_globally(block: Keeper, time: float) -> None:
    global COUNT
    COUNT += 1


def count_in_a_class(block: Keeper, time: float) -> None:
    Keeper.total += 1


DEFAULT: list[float] = []
KEYWORD: list[float] = []


def note(block: Keeper, time: float, hits: list[float] = DEFAULT) -> None:
    hits.append(time)


def count_calls(block: Keeper, time: float) -> None:
    note.count += 1


note.count = 0


def keyword(block: Keeper, time: float, *, hits: list[float]) -> None:
    hits.append(time)


def counting() -> Callable[[Keeper, float], None]:
    calls = 0

    def count(block: Keeper, time: float) -> None:
        nonlocal calls
        calls += 1
        block.calls = calls

    return count


def increment(thing: Any) -> None:
    thing.count += 1


KEEPERS: dict[str, Callable[[], Callable[[Keeper, float], Any]]] = {
    "a list of the block": lambda: lambda block, time: block.hits.append(time),
    "a deque in a list in a dictionary": lambda: lambda block, time: block.deep["hits"][0].append(time),
    "a set": lambda: lambda block, time: block.marks.add(time),
    "an attribute": lambda: lambda block, time: setattr(block, "calls", block.calls + 1),
    "an attribute of another object": lambda: lambda block, time: increment(block.shelf),
    "a slot of another object": lambda: lambda block, time: increment(block.slotted),
    "an array": lambda: lambda block, time: np.add(block.array, 1.0, out=block.array),
    "an iterator": lambda: lambda block, time: next(block.ids),
    "a variable of a closure": counting,
    "a global list": lambda: lambda block, time: HITS.append(time),
    "a global list in another method": lambda: lambda block, time: block.note_in_a_method(time),
    "a global number": lambda: count_globally,
    "a list of the class": lambda: lambda block, time: block.shared.append(time),
    "a number of the class": lambda: count_in_a_class,
    "a default argument": lambda: note,
    "a keyword of a partial function": lambda: partial(keyword, hits=KEYWORD),
    "an attribute of a function": lambda: count_calls,
}


@pytest.mark.parametrize("keep", KEEPERS.values(), ids=KEEPERS)
def test_an_update_that_keeps_something_is_run_by_python_alone(
    keep: Callable[[], Callable[[Keeper, float], Any]],
) -> None:
    found = []
    for compiled in (True, False):
        Keeper.forget()
        block = Keeper(keep())
        simulator = run(block, compiled, [1.1], method="RK45")
        found.append((copy.deepcopy(block.kept()), simulator.context.get("n").tolist()))
        if compiled:
            assert "no native code, because 'keeper.count' cannot be traced" in simulator.explain()
    Keeper.forget()
    assert found[0] == found[1]
    assert found[0][1] == [5.0]


class Drawing(fx.LeafSystem):
    """An update whose result is no function of the context."""

    def __init__(self, draw: Callable[[], float]) -> None:
        super().__init__("drawing")
        self.draw = draw
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.renew, fx.Periodic(0.25))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.n(context) - self.x(context)

    def renew(self, context: Any) -> Any:
        return {self.n: self.n(context) + self.draw()}


def seeded() -> float:
    return random.random()


DRAWS: dict[str, Callable[[], Callable[[], float]]] = {
    "a generator of numpy": lambda: np.random.default_rng(3).normal,
    "a generator of Python": lambda: random.Random(3).random,
    "the generator of a module": lambda: seeded,
    "an iterator": lambda: partial(next, iter([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_an_update_that_draws_numbers_draws_the_same_ones(draw: Any) -> None:
    found = []
    for compiled in (True, False):
        random.seed(3)
        simulator = run(Drawing(draw()), compiled, [1.1], method="RK45")
        assert simulator.statistics.native_steps == 0
        found.append(simulator.context.get("n").tolist())
    assert found[0] == found[1]


def test_an_update_that_depends_on_the_clock_on_the_wall_stays_interpreted() -> None:
    simulator = run(Drawing(time.perf_counter), True, [1.1], method="RK45")
    assert "something else when it is called again" in simulator.explain()


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_an_update_that_prints_prints_numbers(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def speak() -> float:
        print("tick")
        return 1.0

    run(Drawing(speak), True, [1.1], method=method)
    assert capsys.readouterr().out.split() == ["tick"] * 5


class Counting(fx.LeafSystem):
    """Equations with a hidden state, which no trace can follow."""

    def __init__(self, where: str) -> None:
        super().__init__("counting")
        self.where = where
        self.calls = {"derivatives": 0, "output": 0}
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.y = self.declare_vector_output("y", 1, self.calc_y)
        self.u = self.declare_vector_input("u", 1)

    def factor(self, where: str) -> float:
        self.calls[where] += self.where == where
        return float(self.calls[where])

    def calc_y(self, context: Any) -> Any:
        return self.factor("output") * context.time

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context) - self.factor("derivatives")


@pytest.mark.parametrize(
    ("where", "reader"), [("derivatives", "counting"), ("output", "counting"), ("output", "log")]
)
def test_equations_that_give_other_numbers_than_their_trace_stay_interpreted(
    where: str, reader: str
) -> None:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(Counting(where), fx.Constant("one", 1.0), fx.VectorLog("log", period=0.1))
    builder.connect("counting.y", f"{reader}.u")
    builder.connect("one.y", "log.u" if reader == "counting" else "counting.u")
    simulator = fx.Simulator(builder.build(), method="RK45")
    simulator.context.time = 1.0
    simulator.advance_to(2.0)
    assert simulator.statistics.native_steps == 0
    assert "gave other numbers" in simulator.explain()


class PerStepUpdate(Oscillator):
    """An oscillator that counts the steps of the integrator."""

    def __init__(self) -> None:
        super().__init__()
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.count, fx.PerStep())

    def count(self, context: Any) -> Any:
        return {self.n: self.n(context) + 1.0}


def foreign() -> fx.System:
    return Actor(rate=lambda t, x, d: [math.sin(x[0])])


REFUSALS: dict[str, tuple[Callable[[], fx.System], dict[str, Any], str]] = {
    "a monitor": (Oscillator, {"monitor": lambda context: None}, "a monitor wants to see"),
    "no isolation": (bouncing, {"isolate": False}, "witness events are not isolated"),
    "an update at every step": (PerStepUpdate, {}, "'oscillator.count' updates at every step"),
    "a foreign function": (foreign, {}, r"cannot use a symbol as float\(\), a function of math"),
}


@pytest.mark.parametrize(("make", "options", "why"), REFUSALS.values(), ids=REFUSALS)
def test_what_has_no_native_code_says_why(
    make: Callable[[], fx.System], options: dict[str, Any], why: str
) -> None:
    reference, simulator = (run(make(), c, [1.1], **options) for c in (False, True))
    assert simulator.statistics.native_steps == 0
    assert simulator.context.store.x.tolist() == reference.context.store.x.tolist()
    assert re.search(f"; no native code, because {why}", simulator.explain())
    with pytest.raises(NativeCodeError, match=why) as caught:
        run(make(), "native", [1.1], **options)
    assert caught.value.remedy == "Leave compiled=True, which takes what is possible"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "rk4", "step": 0.01}, "rk4 has no native loop"),
        ({"method": "Radau"}, "Radau has no native loop"),
    ],
    ids=str,
)
def test_methods_without_native_loops_say_so(options: dict[str, Any], why: str) -> None:
    simulator = run(Oscillator(), True, [1.1], **options)
    assert simulator.statistics.native_steps == 0
    assert f"no native code, because {why}" in simulator.explain()
    with pytest.raises(NativeCodeError, match=f"found {why}"):
        run(Oscillator(), "native", [1.1], **options)


# Results, programs and threads -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Rodas5P"])
def test_a_pickled_result_gives_the_same_numbers_in_another_process(
    method: str, tmp_path: Path
) -> None:
    builder = fx.DiagramBuilder("pickled")
    builder.add_all(fx.Sine("sine", frequency=5.0), fx.ZeroOrderHold("hold", 0.25))
    builder.add(fx.FirstOrderLag("lag", 0.2))
    builder.connect_chain("sine", "hold", "lag")
    result = fx.simulate(builder.build(), 2.0, method=method, compiled="native")
    times = np.linspace(0.0, 2.0, 101)
    expected = result.sample("lag.y", times)
    (tmp_path / "result.pickle").write_bytes(pickle.dumps(result))
    program = (
        "import pickle, sys, numpy as np\n"
        "result = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(result.sample('lag.y', np.linspace(0.0, 2.0, 101)).tobytes().hex())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "result.pickle")]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert np.frombuffer(bytes.fromhex(output)).tolist() == expected.tolist()


class Powers(fx.LeafSystem):
    """ẋ_k = -x_k^p_k: each derivative has a power of its own, known before a run."""

    def __init__(self) -> None:
        super().__init__("powers")
        self.p = self.declare_numeric_parameter("p", np.linspace(1.1, 2.5, 40))
        self.x = self.declare_continuous_state(z=40, default=np.linspace(1.0, 2.0, 40))

    def calc_time_derivatives(self, context: Any) -> Any:
        return -(self.x(context) ** self.p(context))


def test_a_jacobian_that_one_simulator_asks_for_does_not_disturb_another() -> None:
    block, other = Powers(), np.linspace(1.2, 2.6, 40)
    explicit = run(block, "native", [0.5], method="RK45")
    run(block, "native", [0.5], method="Rodas5P")
    for simulator in (explicit, reference := run(block, False, [0.5], method="RK45")):
        block.p.set(simulator.context, other)
        simulator.advance_to(1.0)
    close(explicit.context.store.x, reference.context.store.x)


@pytest.mark.parametrize("make", [Oscillator, foreign], ids=["native", "not traced"])
def test_what_was_compiled_for_a_system_goes_with_it(make: Callable[[], fx.System]) -> None:
    system = make()
    run(system, True, [0.5], method="RK45")
    layout = weakref.ref(system.layout)
    del system
    gc.collect()
    assert layout() is None


def test_simulators_of_one_system_run_in_threads() -> None:
    system = logged()
    damping = [0.1, 0.5, 1.0, 3.0]
    methods = ["RK45", "Rodas5P", "DOP853", "RK45"]

    def simulated(k: int) -> list[Any]:
        simulator = fx.Simulator(system, method=methods[k], compiled="native", record=True)
        simulator.context.set("oscillator.damping", damping[k])
        for time in (0.5, 1.0, 5.0, 20.0):
            simulator.advance_to(time)
        assert simulator.history is not None
        pieces = simulator.history.pieces
        inside = [piece.state(0.5 * (piece.times[0] + piece.times[-1])).tolist() for piece in pieces]
        return [simulator.context.store.x.tolist(), inside]

    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(simulated, range(4))]
    assert together == [simulated(k) for k in range(4)]


def test_the_interrupt_key_leaves_a_native_run_where_it_is() -> None:
    """The history ends where the context is, and the run goes on from there."""
    simulator = fx.Simulator(
        together(Oscillator(), Actor(Act("discrete", fx.Periodic(0.001), noting))),
        method="RK45",
        compiled="native",
        record=True,
        max_step=1e-3,
    )
    simulator.initialize()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        simulator.advance_to(1e5)
    time = simulator.context.time
    assert 0.0 < time < 1e5
    assert simulator.history is not None
    assert simulator.history.end == time
    assert simulator.statistics.native_steps == simulator.statistics.steps > 0
    simulator.advance_to(time + 0.1)
    steps = np.diff(simulator.history.grid())
    assert np.all((steps >= 0.0) & (steps <= 1.0001e-3))
    assert simulator.context.get("actor.d")[0] == math.ceil(simulator.context.time / 0.001)


# Random event systems ----------------------------------------------------------------------------

UPDATES: dict[str, Callable[..., Any]] = {
    "note": noting,
    "kick": lambda t, x, d: {"x": [x[0], x[1] + 0.1], "d": [d[0] + 1.0, t, d[2]]},
    "reverse": lambda t, x, d: {"x": [x[0], -0.9 * x[1]]},
    "hold": lambda t, x, d: {"d": [d[0], d[1], x[0]]},
    "halve": lambda t, x, d: {"x": 0.5 * x, "d": [d[0] + 1.0, t, d[2]]},
}


def thousandths(first: int, last: int, parts: int = 1000) -> st.SearchStrategy[float]:
    return st.integers(first, last).map(lambda k: k / parts)


@st.composite
def acts(draw: st.DrawFn) -> Act:
    """Draw an event; what it does to continuous state makes the update an unrestricted one."""
    name = draw(st.sampled_from([*UPDATES]))
    writes_x = name in ("kick", "reverse", "halve")
    kind = "unrestricted" if writes_x else draw(st.sampled_from(["discrete", "unrestricted"]))
    direction = draw(st.sampled_from(["falling", "rising", "either"]))
    level, rate = draw(thousandths(-900, 900)), draw(thousandths(1000, 9000))
    trigger = draw(
        st.sampled_from(
            [
                fx.Periodic(draw(st.sampled_from([0.1, 0.25, 0.3, 0.7])), draw(thousandths(0, 8, 8))),
                fx.Periodic(draw(thousandths(50, 1000)), draw(thousandths(0, 1000))),
                fx.Witness(lambda t, x, d: x[0] - level, direction),
                fx.Witness(lambda t, x, d: np.sin(rate * t + level), direction),
            ]
        )
    )
    return Act(kind, trigger, UPDATES[name])


@st.composite
def publishes(draw: st.DrawFn) -> Act:
    """Draw a publish, which may end the run."""
    end, rate = draw(thousandths(300, 4000)), draw(thousandths(1000, 9000))
    trigger = draw(
        st.sampled_from(
            [
                fx.Periodic(draw(thousandths(50, 1000)), draw(thousandths(0, 1000))),
                fx.Witness(lambda t, x, d: np.sin(rate * t)),
                fx.PerStep(),
            ]
        )
    )
    return Act("publish", trigger, lambda t, x, d: fx.Terminate("enough") if t >= end else None)


actors = st.tuples(
    st.lists(acts(), max_size=3), st.lists(publishes(), max_size=1), thousandths(1000, 6000)
)


@settings(max_examples=60)
@given(
    st.lists(actors, min_size=1, max_size=2),
    st.lists(thousandths(0, 1900), max_size=2),
    st.sampled_from(METHODS),
)
def test_random_event_systems(
    parts: list[tuple[list[Act], list[Act], float]], stops: list[float], method: str
) -> None:
    def make() -> fx.System:
        builder = fx.DiagramBuilder("random")
        for k, (some, publish, omega) in enumerate(parts):
            builder.add(
                Actor(
                    *some,
                    *publish,
                    name=f"actor{k}",
                    rate=lambda t, x, d, w=omega: [x[1], d[2] - w * w * x[0] + np.sin(3.0 * t)],
                    start=[0.3 + k, 0.0],
                )
            )
            builder.add(fx.VectorLog(f"log{k}", 3, period=0.07))
            builder.connect(f"actor{k}.y", f"log{k}.u")
        return builder.build()

    with contextlib.suppress(ZenoError):
        native_like_interpreted(make, [*sorted(stops), 2.0], method=method)
