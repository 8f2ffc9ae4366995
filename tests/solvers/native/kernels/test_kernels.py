"""The kernels of native integration are ordinary Python: compiled, they do the same."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq

import flexure as fx
from flexure.solvers.native.kernels.parts import arithmetic, run_samples
from flexure.solvers.native.kernels.parts.arithmetic import next_tick, spacing
from flexure.solvers.native.kernels.parts.run import COMPLETE, Run
from flexure.solvers.native.kernels.parts.zero_search import (
    MOST_STRETCHES,
    NOW,
    SEARCH_SIZE,
    VALUE,
    next_look,
    start_search,
)
from flexure.solvers.native.kernels.runs import advance, run_events
from flexure.solvers.native.kernels.steps.resampling import resample_all
from flexure.solvers.native.language.language import Floats, types_of
from flexure.solvers.native.programs.method_programs import METHODS, kernels_of, resampling
from flexure.solvers.native.runs.run_memory import RunMemory, StructureArrays
from flexure.solvers.simulation.events.agenda import Agenda
from flexure.solvers.simulation.events.witnesses import find_crossing
from tests.support.native.native import CompiledKernel, Plain, equation_at, needs_llvmlite
from tests.support.native.native_runs import compiled_loop
from tests.support.tiers import for_each, thinned

pytestmark = needs_llvmlite

EXACT = True
FloatArray = npt.NDArray[np.float64]

# Arithmetic --------------------------------------------------------------------------------------


def product_and_sum(a: float, b: float, c: float) -> float:
    return a * b + c


def in_a_file_that(**flags: bool) -> Any:
    """Return the same kernel as if it stood in a file with some flags."""
    scope = {name: value for name, value in globals().items() if name != "EXACT"} | flags
    kernel = FunctionType(product_and_sum.__code__, scope, product_and_sum.__name__)
    kernel.__annotations__ = product_and_sum.__annotations__
    return kernel


def test_files_say_how_sums_may_be_computed() -> None:
    exact, fused, reordered = (
        CompiledKernel(in_a_file_that(**flags))
        for flags in ({"EXACT": True}, {}, {"REORDERED": True})
    )
    assert "fmul double" in exact.text
    assert "fadd double" in exact.text
    assert "fadd contract double" in fused.text
    assert "fadd contract reassoc double" in reordered.text
    rng = np.random.default_rng(1)
    for a, b in rng.normal(size=(200, 2)).tolist():
        c = -a * b  # what is left is the rounding error of a fused product
        assert exact(a, b, c) == 0.0
        assert abs(fused(a, b, c)) < 1e-15


def next_ticks(n: int, periods: Floats, offsets: Floats, times: Floats, out: Floats) -> None:
    for i in range(n):
        out[i] = next_tick(periods[i], offsets[i], times[i])


def random_clocks(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw clocks and times: anywhere, at their ticks, and close to them."""
    rng = np.random.default_rng(7)
    round_ones = np.array([0.1, 0.01, 0.3, 1.0 / 3.0, 0.25, 0.7, 1e-3])
    periods = np.where(
        rng.random(count) < 0.5, rng.choice(round_ones, count), rng.uniform(1e-3, 2.0, count)
    )
    offsets = np.where(
        rng.random(count) < 0.5, rng.choice([0.0, 0.05, 0.1, 0.3], count), rng.uniform(0, 2, count)
    )
    ticks = offsets + rng.integers(0, 5000, count) * periods
    beside = np.nextafter(ticks, rng.choice([-np.inf, np.inf], count))
    anywhere = rng.uniform(-1.0, 1e3, count)
    times = np.choose(rng.integers(0, 4, count), [ticks, beside, anywhere, 0.1 * 3 + 0.0 * ticks])
    return periods, offsets, times


def test_clocks_tick_as_periodic_events_do() -> None:
    periods, offsets, times = random_clocks(20_000)
    found = np.zeros(len(times))
    CompiledKernel(next_ticks)(len(times), periods, offsets, times, found)
    assert "contract" not in CompiledKernel(next_ticks).text
    for period, offset, time, tick in zip(
        periods.tolist(), offsets.tolist(), times.tolist(), found.tolist(), strict=True
    ):
        clock = fx.diagrams.Periodic(period, offset)
        assert tick == clock.next_time(time) == next_tick(period, offset, time) > time
        assert clock.is_due(tick)
        before = next_tick(period, offset, math.nextafter(time, -math.inf))
        assert (before == time) == clock.is_due(time)


@pytest.mark.parametrize(
    "kernel", [arithmetic.larger, arithmetic.smaller], ids=lambda kernel: kernel.__name__
)
def test_extrema_are_those_of_python(kernel: Any) -> None:
    compiled = CompiledKernel(kernel)
    plain = {"larger": max, "smaller": min}[kernel.__name__]
    numbers = [0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan]
    for a in numbers:
        for b in numbers:
            expected = plain(a, b)
            assert repr(compiled(a, b)) == repr(kernel(a, b)) == repr(float(expected))


# Events ------------------------------------------------------------------------------------------


def test_triggers_are_those_of_witness_events() -> None:
    compiled = CompiledKernel(run_samples.triggers)
    numbers = [-2.0, -5e-324, -0.0, 0.0, 5e-324, 3.0, math.inf, -math.inf]
    for sign, direction in ((-1, "falling"), (1, "rising"), (0, "either")):
        witness = fx.diagrams.Witness(abs, direction)  # type: ignore[arg-type]
        for before in numbers:
            for after in numbers:
                expected = witness.triggers(before, after)
                assert compiled(sign, before, after) == expected
                assert run_samples.triggers(sign, before, after) == expected


OfTime = Callable[[float], float]

FUNCTIONS: dict[str, list[OfTime]] = {
    "one crossing": [lambda t: 0.3 - t],
    "a zero at the middle of the step": [lambda t: 0.5 - t],
    "a zero at its end": [lambda t: 1.0 - t],
    "a zero at its start": [lambda t: t * (t - 0.4)],
    "two crossings": [lambda t: (t - 0.3) * (t - 0.6)],
    "three crossings": [lambda t: (t - 0.2) * (t - 0.4) * (t - 0.9)],
    "a short hop": [lambda t: (t - 0.7) * (t - 0.7001)],
    "a hop from its surface": [lambda t: t * (1e-9 - t)],
    "a function that touches zero": [lambda t: (t - 0.3) ** 2],
    "many crossings": [lambda t: math.sin(17.0 * t + 0.3)],
    "a steep one": [lambda t: math.tanh(500.0 * (t - 0.654321))],
    "a jump": [lambda t: -1.0 if t < 0.3 else 1.0],
    "none": [lambda t: 1.0 + t],
    "several": [lambda t: t - 0.7, lambda t: 0.6 - t, lambda t: math.cos(9.0 * t), lambda t: -1.0],
    "several at once": [lambda t: t - 0.25, lambda t: 0.5 - 2.0 * t, lambda t: 4.0 * t - 1.0],
}


class Watcher(fx.LeafSystem):
    """Witness events of functions of time."""

    def __init__(self, functions: list[OfTime], direction: Any, kind: str) -> None:
        super().__init__("watcher")
        for function in functions:
            witness = fx.diagrams.Witness(partial(self.calc, function), direction)
            if kind == "publish":
                self.declare_publish(lambda context: None, witness)
            else:
                self.declare_unrestricted_update(lambda context: {}, witness)

    def calc(self, function: OfTime, context: Any) -> float:
        return function(context.time)


def run_of_witnesses(evaluate: Callable[[float], Any], w: int, sign: int, turning: bool) -> Any:
    """Return a run whose last step was from 0 to 1, with functions of time and no states."""

    def witness(t: float, x: Any, env: Any, out: Any) -> None:
        out[:w] = evaluate(t)

    room, nothing = 5 + 4 * w, np.empty(0)
    return Plain(
        system=Plain(n=0, env=nothing, rhs=lambda t, x, env, out: None),
        step=Plain(
            moved=0,
            time=1.0,
            time_old=0.0,
            time_new=1.0,
            clip=math.inf,
            x=nothing,
            x_old=nothing,
            x_new=nothing,
            point=nothing,
            k=nothing,
            q=nothing,
            ready=1,
        ),
        manifold=Plain(),
        updates=Plain(staged=nothing),
        witnesses=Plain(
            count=w,
            values=witness,
            directions=[sign] * w,
            turning=[int(turning)] * w,
            longest=math.inf,
            on_surface=np.zeros(w, dtype=np.int64),
            surface=np.zeros(w),
            jumped=0,
            first=evaluate(0.0),
            samples=np.zeros(room * w),
            instants=np.zeros(room),
            order=np.zeros(room, dtype=np.int64),
            slopes=np.zeros(4 * w),
            fast=np.zeros(w, dtype=np.int64),
            peaks=np.zeros(w),
            search=np.zeros(SEARCH_SIZE),
        ),
        counts=Plain(evaluations=0),
    )


@for_each("kind", ["publish", "update"])
@for_each("direction", ["falling", "rising", "either"])
@for_each("functions", FUNCTIONS.values())
def test_crossings_are_found_where_the_simulator_finds_them(
    functions: list[OfTime], direction: str, kind: str
) -> None:
    watcher = Watcher(functions, direction, kind)
    entries = Agenda(watcher.create_default_context()).witnesses

    def evaluate(time: float) -> FloatArray:
        return np.array([function(time) for function in functions])

    sign = {"falling": -1, "rising": 1, "either": 0}[direction]
    run = run_of_witnesses(evaluate, len(functions), sign, turning=kind != "publish")
    search = find_crossing(entries, evaluate, 0.0, 1.0, evaluate(0.0))
    expected = search.crossing
    assert not search.lost
    with np.errstate(all="ignore"):
        status = run_events.find_crossing(run, METHODS["RK45"])
    if expected is None:
        assert status == run_events.NOTHING
        np.testing.assert_array_equal(run.witnesses.first, evaluate(1.0))
        return
    assert status == run_events.FOUND
    assert run.witnesses.time_crossed == expected.time
    triggered = [entry for k, entry in enumerate(entries) if run.witnesses.crossed >> k & 1]
    assert triggered == expected.entries
    assert np.flatnonzero(run.witnesses.on_surface).tolist() == [
        entries.index(e) for e in triggered
    ]
    surface = np.where(run.witnesses.on_surface, expected.values, 0.0)
    np.testing.assert_array_equal(run.witnesses.surface, surface)


@pytest.mark.full
def test_stretches_as_long_as_the_user_wants_may_be_as_many_as_there_are() -> None:
    def pulse(time: float) -> float:
        return math.exp(-(((time - 0.95) / 1e-3) ** 2)) - 0.5

    def evaluate(time: float) -> FloatArray:
        return np.array([pulse(time)])

    longest = 1.0 / (1.2 * MOST_STRETCHES)
    watcher = Watcher([pulse], "rising", "publish")
    entries = Agenda(watcher.create_default_context()).witnesses
    search = find_crossing(entries, evaluate, 0.0, 1.0, evaluate(0.0), longest)
    assert not search.lost
    assert search.crossing is not None
    run = run_of_witnesses(evaluate, 1, 1, turning=False)
    run.witnesses.longest = longest
    with np.errstate(all="ignore"):
        assert run_events.find_crossing(run, METHODS["RK45"]) == run_events.FOUND
    assert run.witnesses.time_crossed == search.crossing.time
    assert run.witnesses.time_crossed == pytest.approx(0.95 - 1e-3 * math.sqrt(math.log(2.0)))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_function_that_leaves_zero_against_the_equations_is_left_to_python(place: int) -> None:
    def search(start: float) -> int:
        def evaluate(time: float) -> FloatArray:
            return np.array([*[1.0 + time] * place, start + time if time < 1e-9 else -time])

        run = run_of_witnesses(evaluate, place + 1, -1, turning=True)
        with np.errstate(all="ignore"):
            return run_events.find_crossing(run, METHODS["RK45"])

    assert search(0.0) == run_events.UNDEFINED
    assert search(0.1) == run_events.FOUND


def test_a_function_that_is_still_where_it_triggered_counts_as_zero_once() -> None:
    run = run_of_witnesses(lambda t: np.array([0.25, 0.5, -0.0]), 3, 0, turning=True)
    run.witnesses.on_surface[:] = [1, 1, 0]
    run.witnesses.surface[:] = [0.25, 0.25, -0.0]
    assert run_events.first_values(run)
    assert run.witnesses.first.tolist() == [0.0, 0.5, -0.0]
    run_samples.forget_old_events(run.witnesses)  # after a step
    assert run_events.first_values(run)
    assert run.witnesses.first.tolist() == [0.25, 0.5, -0.0]


# A run -------------------------------------------------------------------------------------------


class Bouncer(fx.LeafSystem):
    """A ball with a clock and two witness functions of time and state."""

    def __init__(self) -> None:
        super().__init__("bouncer")
        self.g = self.declare_numeric_parameter("g", 9.81)
        self.x = self.declare_continuous_state(z=2, default=[1.0, 0.3])
        self.d = self.declare_discrete_state("d", [0.0, 0.0])
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])
        self.declare_unrestricted_update(
            self.bounce, fx.diagrams.Witness(lambda context: self.x(context)[0], "falling")
        )
        self.declare_discrete_update(
            self.note, fx.diagrams.Witness(lambda context: np.sin(9.0 * context.time))
        )
        self.declare_discrete_update(self.tick, fx.diagrams.Periodic(0.3, 0.1))

    def calc_time_derivatives(self, context: Any) -> Any:
        _, speed = self.x(context)
        return [speed, self.d(context)[0] - self.g(context) - 0.1 * speed * np.abs(speed)]

    def bounce(self, context: Any) -> Any:
        height, speed = self.x(context)
        return {self.x: [height, -0.7 * speed]}

    def note(self, context: Any) -> Any:
        return {self.d: [self.d(context)[0], context.time]}

    def tick(self, context: Any) -> Any:
        return {self.d: [self.d(context)[0] + 0.5, self.d(context)[1]]}


def bouncing() -> fx.Diagram:
    builder = fx.DiagramBuilder("diagram")
    builder.add_all(Bouncer(), fx.VectorLog("log", 2, period=0.07))
    builder.connect("bouncer.y", "log.u")
    return builder.build()


def shadow_of(memory: RunMemory) -> Any:
    """Make an object for interpreted kernels with what a record has: copies, and functions."""
    shadow = shadow_of_part(memory, Run)
    method = memory.method
    kernel = kernels_of(method).attempt_any
    shadow.system.attempt = lambda run: kernel(run, method.tableau)
    return shadow


def shadow_of_part(memory: StructureArrays, structure: Any) -> Any:
    shadow: Any = Plain()
    for name, kind in types_of(structure).items():
        value = getattr(memory.fields, name)
        if name in memory.parts:
            value = shadow_of_part(memory.parts[name], kind)
        elif kind == "Function":
            value = equation_at(value) if value else None
        elif kind == "Functions":
            value = [equation_at(address) for address in memory.arrays[name].tolist()]
        elif name in memory.arrays:
            value = memory.arrays[name].copy()
        setattr(shadow, name, value)
    return shadow


@pytest.mark.parametrize("method", thinned(METHODS, fast=2))
def test_interpreted_loops_run_a_simulation_like_compiled_ones(method: str) -> None:
    """The kernels of a whole run: steps, events, updates and rows."""
    simulator = fx.Simulator(bouncing(), method=method, compiled="native", record=True)
    simulator.initialize()
    loop = compiled_loop(simulator, method, 1.1)
    memory = loop.memory
    memory.fields.budget = 1000
    shadow = shadow_of(memory)
    with np.errstate(all="ignore"):
        status = advance.advance(shadow, METHODS[method], True)
    assert loop.call(memory.pointer) == status == COMPLETE
    kinds, rows = memory.take_rows()
    used = shadow.rows.used
    assert len(rows) == used > 30
    assert kinds.tolist() == shadow.rows.kinds[: 2 * used].reshape(used, 2).tolist()
    assert set(kinds[:, 0]) == {0, 1, 2, 3}
    expected = shadow.rows.table[: used * shadow.rows.width].reshape(used, -1)
    np.testing.assert_allclose(rows, expected, rtol=1e-6, atol=1e-9)
    counts = memory.fields.counts
    for name in ("steps", "rejected", "restarts", "evaluations", "jacobians", "factorizations"):
        assert getattr(counts, name) == getattr(shadow.counts, name)
    assert counts.unrestricted_updates == shadow.counts.unrestricted_updates >= 1
    assert counts.discrete_updates == shadow.counts.discrete_updates >= 6


@pytest.mark.parametrize("method", thinned(METHODS, fast=2))
def test_the_loop_for_systems_without_events_takes_the_same_steps(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = fx.FirstOrderLag("lag", time_constant=0.5)
    found = []
    for eventful in (False, True):
        simulator = fx.Simulator(lag, method=method, compiled="native")
        simulator.context.set("u", 1.0)
        simulator.initialize()
        if eventful:
            monkeypatch.setattr(RunMemory, "is_eventful", True)
        assert compiled_loop(simulator, method, 2.0).memory.is_eventful is eventful
        simulator.advance_to(2.0)
        found.append((simulator.context.get("x").tolist(), simulator.statistics.steps))
    assert found[0] == found[1]
    np.testing.assert_allclose(found[0][0], 1.0 - np.exp(-4.0), rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_a_step_and_its_interpolant_agree_to_rounding(method: str) -> None:
    """One step without events, and states inside of it, by Python and compiled."""
    simulator = fx.Simulator(Bouncer(), method=method, compiled="native")
    simulator.initialize()
    memory = compiled_loop(simulator, method, 1.0).memory
    shadow = shadow_of(memory)
    m = int(memory.fields.system.m)
    spans = np.array([[0.0, 0.05, np.inf], [0.0, 0.02, np.inf]])
    states, discrete = np.tile(memory.x, (2, 1)), np.tile(shadow.system.env[:m], (2, 1))
    counts, times = np.array([11, 3]), np.append(np.linspace(0.0, 0.05, 11), [0.0, 0.01, 0.02])
    found, expected = np.zeros((2, 14, 2))
    resample_here = resampling(method, "resample_all").function(
        "resample_all", None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 6
    )
    arrays = [each.ctypes.data for each in (spans, states, discrete, counts, times, found)]
    resample_here(memory.pointer, 2, *arrays)
    out = expected.reshape(-1)
    begins, values = states.reshape(-1), discrete.reshape(-1)
    resample_all(shadow, METHODS[method], 2, spans.reshape(-1), begins, values, counts, times, out)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    assert found[0].tolist() == found[11].tolist() == [1.0, 0.3]
    np.testing.assert_allclose(memory.x, shadow.step.x, rtol=1e-13)


def line(root: float) -> Callable[..., None]:
    """A witness function that is a cubic of time."""

    def witness(t: float, x: Any, env: Any, out: Any) -> None:
        out[0] = (t - root) * (1.0 + (t - root) ** 2)

    return witness


@pytest.mark.parametrize("root", [0.1, 0.3123456789, 0.77, 0.99999])
def test_zeros_are_found_where_scipy_finds_them(root: float) -> None:
    simulator = fx.Simulator(Bouncer(), method="RK45", compiled="native")
    simulator.initialize()
    shadow = shadow_of(compiled_loop(simulator, "RK45", 1.0).memory)
    shadow.witnesses.values = line(root)
    step = shadow.step
    step.time = step.time_new = 1.0
    step.ready, step.x_old, step.q = 1, np.zeros(2), np.zeros(100)
    calls = []

    def function(time: float) -> float:
        run_events.witness_values(shadow, METHODS["RK45"], time, shadow.witnesses.slopes)
        calls.append(time)
        return float(shadow.witnesses.slopes[0])

    low, high = function(0.0), function(1.0)
    expected = brentq(function, 0.0, 1.0, xtol=4.0 * spacing(1.0), rtol=1e-15)
    calls.clear()
    search = np.empty(SEARCH_SIZE)
    start_search(search, 0.0, 1.0, low, high)
    while next_look(search, 4.0 * spacing(1.0)):
        search[VALUE] = function(search[NOW])
    found = search[NOW]
    assert found == pytest.approx(expected, abs=1e-15)
    assert found == pytest.approx(root, abs=4.0 * spacing(1.0))
