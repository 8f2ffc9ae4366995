"""The kernel of ensembles, lane by lane, and the parts that it is made of."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.scalars import Graph
from flexure.solvers.integration.methods.tableaus import RK45
from flexure.solvers.native.kernels.ensembles import ensemble
from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble
from flexure.solvers.native.kernels.parts.arithmetic import larger
from flexure.solvers.native.language.language import (
    Mask,
    Reals,
    any_lane,
    lane,
    local,
    power,
    where,
    with_lane,
)
from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm import library
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.programs import lane_equations
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.programs.programs import program_of
from flexure.solvers.native.runs import batch
from tests.support.native.native import Compiled, empty
from tests.support.tiers import thinned

pytest.importorskip("llvmlite", reason="native code needs the package llvmlite")

FloatArray = npt.NDArray[np.float64]

# The language -------------------------------------------------------------------------------------


def between(a: Reals, low: float, high: float, out: Reals) -> int:
    """Return in which lanes a number is between two bounds, and whether it is in some."""
    x = a[0]
    inside: Mask = low < x and not x >= high
    out[0] = where(inside, 1.0, 0.0)
    return 1 if any_lane(inside) else 0


def rotate(a: Reals, lanes: int, out: Reals) -> int:
    """Move the number of every lane to the next one, and count those that are positive."""
    positive: Mask = a[0] > 0.0
    count = 0
    last: float = lane(a[0], lanes - 1)
    for k in range(lanes - 1, 0, -1):
        out[0] = with_lane(out[0], k, lane(a[0], k - 1))
    out[0] = with_lane(out[0], 0, last)
    for k in range(lanes):
        if lane(positive, k):
            count += 1
    return count


def powers(a: Reals, exponent: float, unused: float, out: Reals) -> int:
    """Raise the larger of a number and one half to a power, by way of a local array."""
    held = local(2)
    held[1] = larger(0.5, a[0])
    out[0] = power(held[1], exponent)
    return 0


def call(kernel: Callable[..., int], lanes: int, a: FloatArray, *numbers: float | int) -> Any:
    """Run a kernel in lanes; return its result and the lanes that it has written."""
    module = Module(lanes, library.vector_functions(lanes))
    module.translate(kernel, "kernel")
    compiled = Library(module.text, lambda: module.text)
    kinds = [ctypes.c_double if isinstance(n, float) else ctypes.c_int64 for n in numbers]
    pointer = ctypes.c_void_p
    function = compiled.function("kernel", ctypes.c_int64, pointer, *kinds, pointer)
    out = np.zeros(lanes)
    return function(a.ctypes.data, *numbers, out.ctypes.data), out


widths = pytest.mark.parametrize("lanes", [library.lane_count(100), library.lane_count(1)])


@widths
def test_truth_values_are_combined_lane_by_lane(lanes: int) -> None:
    a = np.arange(float(lanes))
    found, out = call(between, lanes, a, 1.0, 3.0)
    np.testing.assert_array_equal(out, (a > 1.0) & (a < 3.0))
    assert found == 1
    assert call(between, lanes, a, -5.0, -4.0)[0] == 0


@widths
def test_single_lanes_are_read_and_written(lanes: int) -> None:
    a = np.cos(np.arange(lanes))
    found, out = call(rotate, lanes, a, lanes)
    np.testing.assert_array_equal(out, np.roll(a, 1))
    assert found == np.count_nonzero(a > 0.0)


@widths
def test_powers_are_taken_in_all_lanes(lanes: int) -> None:
    a = np.linspace(0.0, 3.0, lanes)
    _, out = call(powers, lanes, a, 0.3, 0.0)
    np.testing.assert_allclose(out, np.maximum(a, 0.5) ** 0.3, rtol=1e-15)


def test_kernels_in_lanes_are_ordinary_functions_of_one_lane() -> None:
    a, out = np.array([2.0]), np.zeros(1)
    assert between(a, 1.0, 3.0, out) == 1
    assert out == 1.0
    assert rotate(a, 1, out) == 1
    assert out == 2.0
    powers(a, 3.0, 0.0, out)
    assert out == 8.0


# Functions for all lanes --------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e300, -1e-300, 710.0, 1e22]
NAMES = {"pow": "power"} | {
    f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")
}


def in_lanes(name: str, lanes: int, numbers: FloatArray, vectors: Any) -> FloatArray:
    """Compute a function of rows of numbers, as many at once as there are lanes."""
    graph = Graph()
    inputs = [graph.input(k) for k in range(len(numbers))]
    compiled = Compiled([getattr(np, NAMES.get(name, name))(*inputs)], lanes=lanes, vectors=vectors)
    assert ("_ZGV" in compiled.text) == bool(vectors)
    parts = numbers.reshape(len(numbers), -1, lanes)
    return np.ravel([compiled(dict(enumerate(parts[:, k])))[0] for k in range(parts.shape[1])])


def samples(arity: int, lanes: int) -> FloatArray:
    """Return pairs of numbers, scattered and special, or single ones."""
    rng = np.random.default_rng(1)
    scattered = rng.normal(size=(2, 500)) * np.exp(rng.uniform(-9.0, 9.0, (2, 500)))
    special = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    numbers = np.hstack([scattered, rng.uniform(-1.0, 1.0, (2, 300)), special])[:arity]
    return numbers[:, : numbers.shape[1] // lanes * lanes]


@pytest.mark.full
@pytest.mark.skipif(not library.vector_functions(8), reason="there is no vector library here")
@pytest.mark.parametrize("name", [*library.VECTOR_FUNCTIONS[1], *library.VECTOR_FUNCTIONS[2]])
@widths
def test_functions_for_all_lanes_err_by_little_and_look_at_no_other_lane(
    name: str, lanes: int
) -> None:
    functions = library.vector_functions(lanes)
    if name not in functions:
        pytest.skip("not among the functions of this vector library")
    numbers = samples(2 if name in library.VECTOR_FUNCTIONS[2] else 1, lanes)
    found = in_lanes(name, lanes, numbers, {name: functions[name]})
    expected = in_lanes(name, lanes, numbers, {})
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    ours, theirs = found[finite], expected[finite]
    np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))
    assert np.all(np.abs(ours - theirs) <= 4.0 * np.spacing(np.abs(theirs)))
    order = np.random.default_rng(2).permutation(numbers.shape[1])
    shuffled = in_lanes(name, lanes, numbers[:, order], {name: functions[name]})
    np.testing.assert_array_equal(shuffled, found[order])


# The kernel ---------------------------------------------------------------------------------------


class Spring(fx.LeafSystem):
    """q″ = sin(rate t) − stiffness q, and nothing after the end of the world."""

    def __init__(self) -> None:
        super().__init__("spring")
        self.stiffness = self.declare_numeric_parameter("stiffness", 4.0)
        self.rate = self.declare_numeric_parameter("rate", 2.0)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.energy = self.declare_vector_output("energy", 1, self.calc_energy)

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, np.sin(self.rate(context) * context.time) - self.stiffness(context) * q]

    def calc_energy(self, context: Any) -> Any:
        q, v = self.x(context)
        return 0.5 * v * v + 0.5 * self.stiffness(context) * q * q


VALUES = {"stiffness": np.linspace(1.0, 9.0, 37), "rate": np.linspace(3.0, 1.0, 37)}
TIMES = np.linspace(0.0, 3.0, 16)


def run_springs(**options: Any) -> fx.results.Sweep:
    return fx.sweep(Spring(), VALUES, 3.0, signals=["energy", "x"], times=TIMES, **options)


def assert_same(found: fx.results.Sweep, expected: fx.results.Sweep) -> None:
    np.testing.assert_array_equal(found.final_states, expected.final_states)
    for signal in expected.signals:
        np.testing.assert_array_equal(found[signal], expected[signal])


@pytest.fixture
def another_processor(monkeypatch: Any) -> Iterator[Callable[..., None]]:
    """Pretend that registers hold another number of numbers."""
    machine: Any = library._Machine.get()

    def pretend(width: int, *, functions: bool) -> None:
        found = library._vector_functions(machine._triple, width) if functions else []
        for _, symbol, _, address in found:
            machine._binding.add_symbol(symbol, address)
        monkeypatch.setattr(machine, "width", width)
        monkeypatch.setattr(machine, "vectors", {n: (s, arity) for n, s, arity, _ in found})
        lane_equations.ensemble_loop.cache_clear()

    yield pretend
    lane_equations.ensemble_loop.cache_clear()


@pytest.mark.full
@pytest.mark.parametrize(("width", "functions"), [(8, False), (4, True), (2, True), (2, False)])
def test_other_processors_give_the_same_up_to_rounding(
    width: int, functions: bool, another_processor: Callable[..., None]
) -> None:
    expected = run_springs()
    if width > library._Machine.get().width:
        pytest.skip("registers of this processor are smaller")
    another_processor(width, functions=functions)
    found = run_springs()
    assert f" {2 * width} lanes" in found.how
    np.testing.assert_allclose(found.final_states, expected.final_states, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found["energy"], expected["energy"], rtol=1e-12, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
def test_pauses_change_nothing(method: str, monkeypatch: Any) -> None:
    expected = run_springs(method=method)
    monkeypatch.setattr(batch, "_WORK", 1)
    assert_same(run_springs(method=method), expected)


@pytest.mark.parametrize("method", thinned(METHODS, fast=2))
def test_samples_do_not_depend_on_how_many_others_there_are(method: str) -> None:
    # Few times find all lanes at one sample each, many leave some lanes with most of them.
    few = np.linspace(0.0, 3.0, 4)
    many = np.unique([*few, *np.linspace(0.0, 3.0, 1500), *np.linspace(2.0, 2.001, 90)])
    values = {"stiffness": np.geomspace(0.1, 1000.0, 20), "rate": np.linspace(3.0, 1.0, 20)}
    options: Any = {"signals": ["energy", "x"], "method": method}
    coarse = fx.sweep(Spring(), values, 3.0, times=few, **options)
    fine = fx.sweep(Spring(), values, 3.0, times=many, **options)
    for signal in coarse.signals:
        found = fine[signal][:, np.searchsorted(many, few)]
        np.testing.assert_array_equal(found, coarse[signal])
        assert not np.isnan(fine[signal]).any()


def test_large_equations_take_steps_of_their_own(monkeypatch: Any) -> None:
    expected = run_springs()
    monkeypatch.setattr(lane_equations, "_LARGE", 10)
    found = run_springs()
    np.testing.assert_allclose(found.final_states, expected.final_states, rtol=1e-12, atol=1e-12)


def test_the_last_lanes_may_have_nothing_to_do() -> None:
    everything = run_springs()
    for count in (1, 5, 17):
        part = fx.sweep(
            Spring(),
            {name: array[:count] for name, array in VALUES.items()},
            3.0,
            signals=["energy"],
            times=TIMES,
            threads=1,
        )
        np.testing.assert_array_equal(part["energy"], everything["energy"][:count])


def test_the_equations_of_a_system_are_compiled_once() -> None:
    program = program_of(Spring().create_default_context().store)
    assert program.lane_equations([]) is program.lane_equations([])


def test_breaks_interrupt_each_run_where_it_asks_for_it() -> None:
    builder = fx.DiagramBuilder("pushed")
    builder.add_all(fx.Square("push", period=0.4), fx.Integrator("position"))
    builder.connect_chain("push", "position")
    pushed = builder.build()
    values = {"push.period": [0.4, 0.5, 1.0, 4.0], "push.amplitude": [1.0, 2.0, 3.0, 4.0]}
    sweep = fx.sweep(pushed, values, 1.3, method="RK23")
    assert " lanes on " in sweep.how
    # While the slope is constant every method is exact.
    expected = [
        fx.simulate(pushed, 1.3, context=sweep.context(k), method="RK23").context.continuous_state
        for k in range(4)
    ]
    np.testing.assert_allclose(sweep.final_states, expected, rtol=1e-14, atol=1e-14)


def plain_run() -> tuple[Any, FloatArray]:
    """Return the record of one run of ẋ = −x, to be run by Python itself."""
    n = 1

    def rhs(time: float, x: FloatArray, env: FloatArray, out: FloatArray) -> None:
        out[:n] = -env[0] * x[:n]

    def signals(time: float, x: FloatArray, env: FloatArray, out: FloatArray) -> None:
        out[0], out[1] = time, 2.0 * x[0]

    def attempt(run: Any) -> float:
        return ensemble.attempt(run, RK45, n, rhs)

    run = empty(Ensemble)
    run.boundary, run.budget, run.prepare = 1.0, 10_000, lambda *_: None
    run.system.n, run.system.rhs, run.system.signals, run.system.attempt = n, rhs, signals, attempt
    run.tolerances.rtol[:], run.tolerances.atol[:], run.tolerances.max_step = 1e-9, 1e-12, np.inf
    run.runs.count, run.runs.apart, run.runs.given = 2, 1, 1
    run.runs.initial[:2], run.runs.table[:2], run.runs.breaks[:2] = [1, 2], [1, 3], [0.5, np.inf]
    run.samples.times[:4] = [0.0, 0.3, 1.0, np.inf]
    run.samples.count, run.samples.width = 3, 2
    run.lanes.count = run.lanes.waiting = 1
    run.lanes.run_of[:] = ensemble.FREE
    return run, run.samples.values


def test_the_kernel_is_a_function_that_python_runs_with_one_lane() -> None:
    run, found = plain_run()
    assert ensemble.integrate(run, METHODS["RK45"]) == ensemble.FINISHED
    assert run.outcome.outcomes[:2].tolist() == [ensemble.COMPLETE, ensemble.COMPLETE]
    np.testing.assert_allclose(
        run.outcome.finals[:2], [np.exp(-1.0), 2.0 * np.exp(-3.0)], rtol=1e-8
    )
    times = np.array([0.0, 0.3, 1.0])
    np.testing.assert_array_equal(found[:12:2], [*times, *times])
    expected = [*(2.0 * np.exp(-times)), *(4.0 * np.exp(-3.0 * times))]
    np.testing.assert_allclose(found[1:12:2], expected, rtol=1e-6)


def test_the_gap_to_the_next_number_is_that_of_floating_point_numbers() -> None:
    rng = np.random.default_rng(3)
    times = np.append(
        rng.normal(size=2000) * 10.0 ** rng.uniform(-300, 300, 2000), [1.0, -1.0, 2.0**60]
    )
    for time in times.tolist():
        assert ensemble.gap(time) == np.nextafter(time, np.inf) - time
    assert ensemble.gap(0.0) == 0.0
