"""Kernels are ordinary Python: run by Python or compiled, they do the same."""

from __future__ import annotations

import copy
import ctypes
import math
from collections.abc import Callable
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq

import flexure as fx
from flexure.solvers.native import advance, arithmetic, events, explicit, linear, rosenbrock
from flexure.solvers.native.arithmetic import next_tick, spacing
from flexure.solvers.native.language import (
    Floats,
    Function,
    Ints,
    KernelError,
    Mask,
    Module,
    Real,
    Reals,
    Record,
    Static,
    any_lane,
    ceil,
    lane,
    local,
    nextafter,
    power,
    rint,
    sqrt,
    unrolled,
    where,
    with_lane,
)
from flexure.solvers.native.library import Library
from flexure.solvers.native.methods import METHODS, loops
from flexure.solvers.native.pattern import find_pattern
from flexure.solvers.native.record import RecordArrays, RunRecord
from flexure.solvers.native.resampling import resample
from flexure.solvers.native.run import COMPLETE, Run
from tests.support.native import CompiledKernel, equation_at, needs_llvmlite

pytestmark = needs_llvmlite

EXACT = True
FloatArray = npt.NDArray[np.float64]


def both(kernel: Callable[..., Any], *arguments: Any, **statics: Any) -> Any:
    """Run a kernel by Python and compiled on copies, compare all, and return the result."""
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        expected = kernel(*theirs, **statics)
    found = CompiledKernel(kernel, **statics)(*ours)
    assert type(found) is type(expected) or isinstance(expected, np.generic)
    np.testing.assert_array_equal([found], [expected])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    return found, *ours


# The language ------------------------------------------------------------------------------------


def conversions(i: int, a: float, out: Floats, whole: Ints) -> None:
    out[0] = i
    out[1] = i / 4
    out[2] = i * a + 1
    out[3] = float(i) - 2
    out[4] = 3
    out[5] = -i
    whole[0] = int(a)
    whole[1] = int(-a)
    whole[2] = i // 4 + i % 4
    whole[3] = -i + 2 * i


def test_whole_numbers_become_numbers_and_back() -> None:
    both(conversions, 7, 3.9, np.zeros(6), np.zeros(4, dtype=np.int64))


def elementary(a: float, b: float, out: Floats) -> None:
    out[0] = abs(a)
    out[1] = sqrt(abs(a))
    out[2] = ceil(a)
    out[3] = rint(a)
    out[4] = power(abs(a), b)
    out[5] = nextafter(a, b)
    out[6] = where(a < b, a, b)
    out[7] = a if a >= b else -b
    out[8] = -a
    out[9] = a / b
    out[10] = spacing(a)


@pytest.mark.parametrize("a", [0.5, 1.5, 2.5, -0.5, -1.5, 3.0, -0.0, 1e300, 5e-324])
def test_elementary_functions(a: float) -> None:
    both(elementary, a, 0.3, np.zeros(11))


def comparisons(a: float, b: float, i: int, out: Ints) -> None:
    out[0] = 1 if a < b else 0
    out[1] = 1 if a <= b else 0
    out[2] = 1 if a == b else 0
    out[3] = 1 if a != b else 0
    out[4] = 1 if a > b else 0
    out[5] = 1 if a >= b else 0
    out[6] = 1 if 0.0 < a <= b < 3 else 0
    out[7] = 1 if not (a < b and b < 3.0) or i == 3 else 0
    out[8] = 1 if not a < b else 0
    out[9] = 1 if -1 < i <= 3 != 4 else 0
    out[10] = 1 if i > a else 0


@pytest.mark.parametrize("a", [1.0, 2.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("b", [1.0, 2.5, math.nan, -math.inf])
@pytest.mark.parametrize("i", [3, 0])
def test_comparisons_alone_chained_and_combined(a: float, b: float, i: int) -> None:
    both(comparisons, a, b, i, np.full(11, 7))


def note(log: Ints, verdict: int) -> bool:
    log[0] += 1
    return verdict == 1


def early(log: Ints, a: int, b: int, c: int) -> int:
    if note(log, a) and note(log, b) or note(log, c):
        return 1
    if not (note(log, a) or note(log, b)):
        return 2
    while note(log, b) and note(log, c):
        return 3
    return 4


@pytest.mark.parametrize("bits", range(8))
def test_conditions_decide_as_early_as_in_python(bits: int) -> None:
    flags = (bits & 1, bits >> 1 & 1, bits >> 2)
    both(early, np.zeros(1, dtype=np.int64), *flags)


def loops_of_all_kinds(n: int, a: Floats) -> float:
    total = 0.0
    for i in range(n):
        if a[i] < 0.0:
            continue
        for j in range(i, n, 2):
            if a[j] > 5.0:
                break
            total += a[j]
        total += 100.0
    for i in range(n - 1, -1, -1):
        total = total * 0.5 + a[i]
    for _ in range(3):
        total += 0.25
    count = 0
    while True:
        count += 1
        if count == 2:
            continue
        if a[count] > 3.0 or count == n - 1:
            break
    while count > 0:
        count -= 1
        total += 1.0
    for i in range(0, n):
        total += i
        i += 3
    return total + count + i


@pytest.mark.parametrize("seed", range(5))
def test_loops(seed: int) -> None:
    a = np.random.default_rng(seed).normal(1.0, 3.0, 12)
    both(loops_of_all_kinds, len(a), a)
    both(loops_of_all_kinds, 3, a)


def found_at(n: int, a: Floats, b: float) -> int:
    for i in range(n):
        while a[i] >= b:
            if a[i] == b:
                return i
            a[i] -= 1.0
    return -1


def test_a_return_from_the_middle_of_loops() -> None:
    assert both(found_at, 4, np.array([0.5, 3.25, 2.0, 7.0]), 2.0)[0] == 2
    assert both(found_at, 2, np.array([0.5, 3.25, 2.0, 7.0]), 2.0)[0] == -1


TABLE = ((1.0, 2.0), (), (0.5, 0.0, -4.0))
LIMIT = 2


def bad_if_translated(a: float) -> float:
    return [a][0]  # which no kernel may contain


def static_parts(a: Floats, table: Static, flag: Static) -> float:
    total = 0.0
    for i in unrolled(len(table)):
        for j in unrolled(len(table[i])):
            if table[i][j] != 0.0:
                total += table[i][j] * a[i + j]
    if flag:
        total += bad_if_translated(total)
    elif len(table) > LIMIT:
        total += 10.0
    else:
        total = bad_if_translated(total)
    return total + max(2.0, table[0][1]) + abs(table[2][2]) + (1.0 if LIMIT == 2 else 0.0)


def test_what_is_known_while_translating_becomes_constant() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    (found, _) = both(static_parts, a, table=TABLE, flag=False)
    assert found == 1.0 + 4.0 + 1.5 - 20.0 + 10.0 + 2.0 + 4.0 + 1.0
    text = CompiledKernel(static_parts, table=TABLE, flag=False).text
    assert "br i1" not in text  # nothing is left to decide
    with pytest.raises(KernelError, match="bad_if_translated"):
        CompiledKernel(static_parts, table=TABLE, flag=True)


def fill(n: int, value: float, a: Floats) -> None:
    for i in range(n):
        a[i] = value


def rest(a: Floats) -> Floats:
    return a[1:]


def slices(a: Floats, whole: Ints) -> float:
    fill(2, 7.0, a[3:])
    b = a[4:]
    b[0] += 1.0
    c = rest(b)
    c[0] = a[0]
    part = whole[2:]
    part[0] = 5
    whole[int(c[0])] = part[0] * 2
    return b[0]


def test_a_slice_is_the_rest_of_an_array() -> None:
    found, a, whole = both(slices, np.array([1.0, 2, 3, 4, 5, 6]), np.zeros(4, dtype=np.int64))
    assert found == 8.0
    assert a.tolist() == [1.0, 2.0, 3.0, 7.0, 8.0, 1.0]
    assert whole.tolist() == [0, 10, 5, 0]


def swaps(a: Floats, n: int) -> float:
    first, last = a[0], a[n]
    first, last = last, first + last
    a[0], a[n] = last, first
    space = local(3)
    fill(3, first, space)
    space[1] = last
    kept: float = 0
    for i in range(3):
        kept += space[i]
    return kept


def test_tuples_of_values_and_local_arrays() -> None:
    assert both(swaps, np.array([2.0, 3.0]), 1)[0] == 3.0 + 5.0 + 3.0


class Tank(Record):
    """A record of a test."""

    level: float
    count: int
    values: Floats
    spare: Floats
    marks: Ints
    rate: Function


def pump(tank: Tank, n: int) -> float:
    """Fields are read and written, arrays change places, and a function is called."""
    tank.rate(tank.level, tank.values, tank.spare, tank.values[2:])
    tank.level += tank.values[2]
    tank.count = tank.count + n
    tank.values, tank.spare = tank.spare, tank.values
    tank.marks[tank.count] = 4
    tank.values[0] = tank.level
    return tank.level / tank.count


def rate(t: float, x: Floats, env: Floats, out: Floats) -> None:
    out[0] = t + x[0] * env[1]


class Plain:
    """Stands for a record in Python."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)


def test_fields_of_records() -> None:
    module = Module()
    module.translate(pump, "pump")
    module.translate(rate, "rate")
    library = Library(module.text, lambda: module.text)
    start = {"values": [2.0, 0.0, 0.0], "spare": [0.0, 3.0, 0.0], "marks": [0, 0, 0, 0]}
    arrays = {name: np.array(values) for name, values in start.items()}
    plain: Any = Plain(level=1.5, count=1, rate=rate, **copy.deepcopy(arrays))
    record = RecordArrays(Tank)
    for name, array in arrays.items():
        record.attach(name, array)
    record.fields.level, record.fields.count = 1.5, 1
    record.fields.rate = library.address("rate")
    call = library.function("pump", ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)
    assert call(record.pointer, 2) == pump(plain, 2) == 3.0
    assert record.fields.level == plain.level == 9.0
    assert record.fields.count == plain.count == 3
    assert record.fields.values == arrays["spare"].ctypes.data
    assert arrays["spare"].tolist() == plain.values.tolist() == [9.0, 3.0, 0.0]
    assert arrays["values"].tolist() == plain.spare.tolist() == [2.0, 0.0, 7.5]
    assert arrays["marks"].tolist() == plain.marks.tolist() == [0, 0, 0, 4]


# Lanes -------------------------------------------------------------------------------------------


def in_every_lane(n: int, a: Reals, b: Reals, low: Floats, out: Reals) -> None:
    total: Real = 0.0
    for i in range(n):
        is_small = a[i] < b[i]
        is_known: Mask = b[i] == b[i]
        total += where(is_small and is_known, a[i] * 2, sqrt(abs(b[i])))
        out[i] = where(not is_small or a[i] > low[i], total, -b[i])


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_every_lane_computes_what_a_single_one_does(lanes: int) -> None:
    module = Module(lanes=lanes)
    module.translate(in_every_lane, "kernel")
    library = Library(module.text, lambda: module.text)
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 9, lanes))
    a[3], b[5], low = 3.0, np.nan, rng.normal(size=9)
    out = np.zeros((9, lanes))
    call = library.function("kernel", None, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    call(9, *(each.ctypes.data for each in (a, b, low, out)))
    for k in range(lanes):
        expected = np.zeros(9)
        in_every_lane(9, a[:, k].copy(), b[:, k].copy(), low, expected)
        np.testing.assert_array_equal(out[:, k], expected)


def single_lanes(n: int, a: Reals, b: Reals, out: Ints) -> None:
    for i in range(n):
        if any_lane(a[i] > b[i]):
            out[i] = 1
        if lane(a[i] > b[i], 1):
            out[i] += 2
        b[i] = with_lane(a[i], 2, lane(b[i], 3) + 100.0)


def test_single_lanes_are_read_and_replaced() -> None:
    module = Module(lanes=4)
    module.translate(single_lanes, "kernel")
    library = Library(module.text, lambda: module.text)
    a, b = np.random.default_rng(3).normal(size=(2, 20, 4))
    expected = np.any(a > b, axis=1) + 2 * (a[:, 1] > b[:, 1])
    replaced, out = a.copy(), np.zeros(20, dtype=np.int64)
    replaced[:, 2] = b[:, 3] + 100.0
    call = library.function("kernel", None, ctypes.c_int64, *[ctypes.c_void_p] * 3)
    call(20, *(each.ctypes.data for each in (a, b, out)))
    assert out.tolist() == expected.tolist()
    assert set(out) == {0, 1, 3}
    np.testing.assert_array_equal(b, replaced)


# Refusals ----------------------------------------------------------------------------------------


def a_list(a: Floats) -> float:
    return sum([a[0], a[1]])


def a_comprehension(a: Floats) -> float:
    return max(a[i] for i in range(3))


def a_foreign_function(a: Floats) -> float:
    return math.sin(a[0])


def a_power(a: Floats) -> float:
    return a[0] ** 2


def a_matrix_product(a: Floats) -> float:
    return a @ a


def a_bounded_slice(a: Floats) -> float:
    return spacing(a[1:3])


def an_attribute_of_a_number(a: float) -> float:
    return a.real


def a_field_that_is_missing(tank: Tank) -> float:
    return tank.temperature


def an_unknown_name(a: float) -> float:
    return unknown + a  # noqa: F821


def a_missing_result(a: float) -> float:
    if a > 0.0:
        return a


def a_result_of_another_type(a: float) -> int:
    return a


def an_array_as_number(a: Floats) -> float:
    return a


def a_number_as_index(a: Floats, b: float) -> float:
    return a[b]


def a_loop_over_a_tuple(a: Floats) -> float:
    total = 0.0
    for i in (1, 2):
        total += a[i]
    return total


def a_loop_over_an_array(a: Floats) -> float:
    total = 0.0
    for each in a:
        total += each
    return total


def a_text(a: float) -> float:
    return a + len("text" + a)


def an_exception(a: float) -> float:
    try:
        return 1.0 / a
    except ZeroDivisionError:
        return 0.0


def a_raise(a: float) -> float:
    raise ValueError(a)


def a_function_inside(a: float) -> float:
    def twice(b: float) -> float:
        return 2.0 * b

    return twice(a)


def a_lambda(a: float) -> float:
    return (lambda b: b)(a)


def a_keyword(a: float) -> float:
    return where(a > 0.0, a=a, b=0.0)


def an_unpacked_call(a: float) -> float:
    b, c = divmod(a, 2.0)
    return b + c


def a_global(a: float) -> float:
    global LIMIT
    LIMIT = 3
    return a


def a_loop_with_an_else(a: float) -> float:
    while a > 0.0:
        a -= 1.0
    else:
        a = 7.0
    return a


def a_walrus(a: float) -> float:
    return (b := a) + b


def a_parameter_without_a_type(a) -> float:  # type: ignore[no-untyped-def]
    return a


def an_unknown_type(a: FloatArray) -> float:
    return a[0]


def a_jump_out_of_a_loop_that_is_written_out(a: Floats) -> float:
    total = 0.0
    for i in unrolled(3):
        if a[i] < 0.0:
            continue
        total += a[i]
    return total


def a_stride_that_is_not_known(a: Floats, stride: int) -> float:
    total = 0.0
    for i in range(10, 0, stride):
        total += a[i]
    return total


def a_remainder_of_numbers(a: float) -> float:
    return a % 2.0


def an_identity(a: float) -> int:
    return 1 if a is a else 0


def a_class_in_place_of_a_function(a: float) -> float:
    return Fraction(a)


def test_two_kernels_of_one_name_are_not_mixed_up() -> None:
    module = Module()
    module.translate(rosenbrock.error_norm, "error_norm")
    module.translate(rosenbrock.error_norm, "error_norm")
    with pytest.raises(KernelError, match="'error_norm' stands for two kernels"):
        module.translate(explicit.error_norm, "error_norm", {"tableau": METHODS["RK45"].tableau})


@pytest.mark.parametrize(
    "kernel",
    [
        value
        for name, value in globals().items()
        if name.startswith(("a_", "an_")) and isinstance(value, FunctionType)
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_what_is_no_part_of_the_language_is_refused(kernel: Callable[..., Any]) -> None:
    with pytest.raises(KernelError) as caught:
        Module().translate(kernel, "kernel")
    assert kernel.__name__ in str(caught.value) or "no type" in str(caught.value)


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
        clock = fx.Periodic(period, offset)
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


# Linear equations --------------------------------------------------------------------------------


def linear_problem(n: int, density: float, seed: int) -> tuple[Any, ...]:
    """Draw the entries of a sparse Jacobian that is dominated by its diagonal, and a vector."""
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n, n)) < density, rng.normal(size=(n, n)), 0.0)
    rows, columns = np.nonzero(matrix)
    entries = matrix[rows, columns]
    return matrix, rows.astype(np.int64), columns.astype(np.int64), entries, rng.normal(size=n)


@pytest.mark.parametrize(("n", "density"), [(13, 0.1), (40, 0.05), (120, 0.01), (60, 0.0)])
def test_sparse_factors_solve_linear_equations(n: int, density: float) -> None:
    matrix, rows, columns, entries, b = linear_problem(n, density, n)
    pattern = find_pattern(n, rows, columns)
    assert pattern is not None
    factors, row = np.zeros(len(pattern.column)), np.zeros(n)
    places = pattern.slots, pattern.starts, pattern.diagonal, pattern.column
    possible, *_, factors, row = both_close(
        linear.sparse_factors, n, 7.0, len(entries), entries, *places, factors, row
    )
    assert possible
    _, *_, x = both_close(
        linear.sparse_solution,
        *(n, pattern.starts, pattern.diagonal, pattern.column, factors, pattern.ranks),
        *(np.zeros(n), b.copy()),
    )
    np.testing.assert_allclose((7.0 * np.eye(n) - matrix) @ x, b, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_dense_factors_solve_linear_equations(n: int) -> None:
    matrix, rows, columns, entries, b = linear_problem(n, 0.7, n)
    d = 0.1  # so that rows change places
    possible, *_, factors, pivots = both_close(
        linear.dense_factors,
        *(n, d, len(entries), entries, rows, columns),
        *(np.zeros(n * n), np.zeros(n, dtype=np.int64)),
    )
    assert possible
    _, *_, x = both_close(linear.dense_solution, n, factors, pivots, b.copy())
    np.testing.assert_allclose((d * np.eye(n) - matrix) @ x, b, atol=1e-10)


def test_matrices_that_are_singular_or_grow_are_refused() -> None:
    ones, places = np.ones(4), np.array([0, 0, 1, 1])
    possible, *_ = both_close(
        linear.dense_factors,
        *(2, 0.0, 4, ones, places, np.array([0, 1, 0, 1])),
        *(np.zeros(4), np.zeros(2, dtype=np.int64)),
    )
    assert not possible
    n = 13
    rows = np.array([*range(n), 0, 1])
    columns = np.array([*range(n), 1, 0])
    pattern = find_pattern(n, rows, columns)
    assert pattern is not None
    for corner, expected in ((1e-5, False), (1e-2, True), (0.0, False)):
        entries = np.array([corner, *np.ones(n - 1), 1.0, 1.0])  # the pivot is the first entry
        possible, *_ = both_close(
            linear.sparse_factors,
            *(n, 0.0, len(entries), entries, pattern.slots, pattern.starts),
            *(pattern.diagonal, pattern.column, np.zeros(len(pattern.column)), np.zeros(n)),
        )
        assert possible is expected


def both_close(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Run a kernel both ways, compare up to fused operations, and return what is compiled."""
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        expected = kernel(*theirs)
    found = CompiledKernel(kernel)(*ours)
    assert found == expected
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    return found, *ours


# Events ------------------------------------------------------------------------------------------


def test_triggers_are_those_of_witness_events() -> None:
    compiled = CompiledKernel(events.triggers)
    numbers = [-2.0, -5e-324, -0.0, 0.0, 5e-324, 3.0, math.inf, -math.inf]
    for sign, direction in ((-1, "falling"), (1, "rising"), (0, "either")):
        witness = fx.Witness(abs, direction)  # type: ignore[arg-type]
        for before in numbers:
            for after in numbers:
                expected = witness.triggers(before, after)
                assert compiled(sign, before, after) == expected
                assert events.triggers(sign, before, after) == expected


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
            self.bounce, fx.Witness(lambda context: self.x(context)[0], "falling")
        )
        self.declare_discrete_update(
            self.note, fx.Witness(lambda context: np.sin(9.0 * context.time))
        )
        self.declare_discrete_update(self.tick, fx.Periodic(0.3, 0.1))

    def calc_time_derivatives(self, context: Any) -> Any:
        height, speed = self.x(context)
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


def shadow_of(record: RunRecord) -> Any:
    """Make an object for interpreted kernels with what a record has: copies, and functions."""
    shadow: Any = Plain()
    for name, kind in Run.__annotations__.items():
        value = getattr(record.fields, name)
        if kind == "Function":
            value = equation_at(value) if value else None
        elif kind == "Functions":
            value = [equation_at(address) for address in record.arrays[name].tolist()]
        elif name in record.arrays:
            value = record.arrays[name].copy()
        setattr(shadow, name, value)
    method = record.method
    kernel = rosenbrock.attempt_any if method.linear else explicit.attempt_any
    shadow.attempt = lambda run: kernel(run, method.tableau)
    return shadow


@pytest.mark.parametrize("method", METHODS)
def test_interpreted_loops_run_a_simulation_like_compiled_ones(method: str) -> None:
    """The kernels of a whole run: steps, events, updates and rows."""
    simulator = fx.Simulator(bouncing(), method=method, compiled="native", record=True)
    simulator.initialize()
    native: Any = simulator._native
    record, call = native._record(method)
    native._enter(record, 1.1)
    record.fields.budget = 1000
    shadow = shadow_of(record)
    with np.errstate(all="ignore"):
        status = advance.advance(shadow, METHODS[method])
    assert call(record.pointer) == status == COMPLETE
    used, width = record.fields.rows_used, record.fields.width
    assert used == shadow.rows_used > 30
    kinds = record.arrays["kinds"][: 2 * used]
    assert kinds.tolist() == shadow.kinds[: 2 * used].tolist()
    assert set(kinds[::2]) == {0, 1, 2, 3}
    rows = record.arrays["table"][: used * width]
    np.testing.assert_allclose(rows, shadow.table[: used * width], rtol=1e-6, atol=1e-9)
    for name in ("steps", "rejected", "restarts", "evaluations", "jacobians", "factorizations"):
        assert getattr(record.fields, name) == getattr(shadow, name)
    assert record.fields.unrestricted_updates == shadow.unrestricted_updates >= 1
    assert record.fields.discrete_updates == shadow.discrete_updates >= 6


@pytest.mark.parametrize("method", METHODS)
def test_a_step_and_its_interpolant_agree_to_rounding(method: str) -> None:
    """One step without events, and states inside of it, by Python and compiled."""
    simulator = fx.Simulator(Bouncer(), method=method, compiled="native")
    simulator.initialize()
    native: Any = simulator._native
    record, _ = native._record(method)
    native._enter(record, 1.0)
    record.fields.time_new, record.fields.h = 0.05, 0.05
    shadow = shadow_of(record)
    times = np.linspace(0.0, 0.05, 11)
    found, expected = np.zeros((2, 11, 2))
    resample_here = loops(method).function(
        "resample", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 2
    )
    resample_here(record.pointer, 11, times.ctypes.data, found.ctypes.data)
    resample(shadow, METHODS[method], 11, times, expected.reshape(-1))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    assert found[0].tolist() == [1.0, 0.3]
    np.testing.assert_allclose(record.x, shadow.x, rtol=1e-13)


def line(run: Any, root: float) -> Callable[..., None]:
    """A witness function that is a cubic of time."""

    def witness(t: float, x: Any, env: Any, out: Any) -> None:
        out[0] = (t - root) * (1.0 + (t - root) ** 2)

    return witness


@pytest.mark.parametrize("root", [0.1, 0.3123456789, 0.77, 0.99999])
def test_zeros_are_found_where_scipy_finds_them(root: float) -> None:
    simulator = fx.Simulator(Bouncer(), method="RK45", compiled="native")
    simulator.initialize()
    native: Any = simulator._native
    record, _ = native._record("RK45")
    native._enter(record, 1.0)
    shadow = shadow_of(record)
    shadow.witness = line(shadow, root)
    shadow.time = shadow.time_new = 1.0
    shadow.ready, shadow.x_old, shadow.q = 1, np.zeros(2), np.zeros(100)
    calls = []

    def function(time: float) -> float:
        events.witness_values(shadow, METHODS["RK45"], time, shadow.slopes)
        calls.append(time)
        return float(shadow.slopes[0])

    low, high = function(0.0), function(1.0)
    expected = brentq(function, 0.0, 1.0, xtol=4.0 * spacing(1.0), rtol=1e-15)
    found = events.brent(shadow, METHODS["RK45"], 0, 0.0, 1.0, low, high, 4.0 * spacing(1.0))
    assert found == pytest.approx(expected, abs=1e-15)
    assert found == pytest.approx(root, abs=4.0 * spacing(1.0))
