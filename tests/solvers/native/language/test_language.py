"""The language of kernels: run by Python or compiled, they do the same."""

from __future__ import annotations

import copy
import ctypes
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from flexure.solvers.native.kernels.parts.arithmetic import spacing
from flexure.solvers.native.kernels.parts.linear_solves import FactorData
from flexure.solvers.native.kernels.steps import explicit, rosenbrock
from flexure.solvers.native.language.language import (
    Floats,
    Function,
    Ints,
    Mask,
    Real,
    Reals,
    Static,
    Structure,
    any_lane,
    ceil,
    is_structure,
    lane,
    lanes_in,
    local,
    nextafter,
    power,
    rint,
    sqrt,
    types_of,
    unrolled,
    where,
    with_lane,
)
from flexure.solvers.native.language.reading import KernelError
from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.runs.run_memory import StructureArrays
from tests.support.native import refused_kernels
from tests.support.native.native import CompiledKernel, Plain, needs_llvmlite
from tests.support.tiers import for_each

pytestmark = needs_llvmlite

EXACT = True


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


@for_each("a", [0.5, 1.5, 2.5, -0.5, -1.5, 3.0, -0.0, 1e300, 5e-324])
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
    out[9] = 1 if -1 < i <= 3 != i else 0
    out[10] = 1 if i > a else 0


@for_each("a", [1.0, 2.0, -1.0, math.nan, math.inf])
@for_each("b", [1.0, 2.5, math.nan, -math.inf])
@for_each("i", [3, 0])
def test_comparisons_alone_chained_and_combined(a: float, b: float, i: int) -> None:
    both(comparisons, a, b, i, np.full(11, 7))


def note(log: Ints, verdict: int) -> bool:
    log[0] += 1
    return verdict == 1


def early(log: Ints, a: int, b: int, c: int) -> int:
    if (note(log, a) and note(log, b)) or note(log, c):
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
    for i in range(n):
        total += i
        i += 3  # noqa: PLW2901, which does not disturb the counting
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
    found: float = total + max(2.0, table[0][1]) + abs(table[2][2])
    return found + (1.0 if LIMIT == 2 else 0.0)


def test_what_is_known_while_translating_becomes_constant() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    (found, _) = both(static_parts, a, table=TABLE, flag=False)
    assert found == 1.0 + 4.0 + 1.5 - 20.0 + 10.0 + 2.0 + 4.0 + 1.0
    text = CompiledKernel(static_parts, table=TABLE, flag=False).text
    assert "br i1" not in text  # nothing is left to decide
    with pytest.raises(KernelError, match="bad_if_translated"):
        CompiledKernel(static_parts, table=TABLE, flag=True)


class Places(Plain):
    """Where numbers are; known while translating, or in a record."""

    name = "places"
    starts = (0, 2, 3)
    column = (0, 3, 1)


def gathered(n: int, places: FactorData, a: Floats) -> float:
    total = 0.0
    for i in unrolled(n):
        total = gathered_row(places, i, total, a)
    return total


def gathered_row(places: FactorData, i: int, total: float, a: Floats) -> float:
    for e in unrolled(places.starts[i + 1] - 1, places.starts[i] - 1, -1):
        total = 10.0 * total + a[places.column[e]]
    return total


def test_what_is_known_goes_on_into_the_kernels_that_are_called() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0])
    places: Any = Places()
    known = CompiledKernel(gathered, n=2, places=places)
    assert known(a) == gathered(2, places, a) == 412.0
    assert "br i1" not in known.text
    record = StructureArrays(FactorData)
    record.indices("starts", Places.starts)
    record.indices("column", Places.column)
    read = CompiledKernel(gathered)
    assert read(2, record.pointer, a) == 412.0
    assert "br i1" in read.text  # what is not known is counted in loops


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
    last: float = b[0]
    return last


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


class Tank(Structure):
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


def test_fields_of_records() -> None:
    module = Module()
    module.translate(pump, "pump")
    module.translate(rate, "rate")
    library = Library(module.text, lambda: module.text)
    start = {"values": [2.0, 0.0, 0.0], "spare": [0.0, 3.0, 0.0], "marks": [0, 0, 0, 0]}
    arrays = {name: np.array(values) for name, values in start.items()}
    plain: Any = Plain(level=1.5, count=1, rate=rate, **copy.deepcopy(arrays))
    record = StructureArrays(Tank)
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


class Valve(Structure):
    """A record of a test, which is a part of others."""

    opening: float
    turns: Ints


class Basin(Structure):
    """A record with parts, one of them twice."""

    inlet: Valve
    height: float
    tank: Tank
    outlet: Valve
    days: int


class Plant(Structure):
    """A record with a part that has parts."""

    days: int
    basin: Basin
    ends: Floats


def open_valve(valve: Valve, by: float) -> float:
    valve.opening += by
    valve.turns[1] += 2
    return valve.opening


def run_plant(plant: Plant, n: int) -> float:
    """Parts are named, passed on, and read and written at any depth."""
    basin, tank = plant.basin, plant.basin.tank
    total = open_valve(plant.basin.inlet, 0.5) + open_valve(basin.outlet, 2.0)
    plant.days += n
    basin.days = plant.days + 1
    basin.height = total + pump(tank, n)
    plant.basin.tank.marks[plant.basin.outlet.turns[1]] = 7
    plant.ends, tank.spare = tank.spare, plant.ends
    plant.ends[1] = plant.basin.height
    return plant.basin.tank.level


def filled(kind: Any) -> Any:
    """Return a structure in Python, with other values in all fields."""
    sizes = {"Floats": np.zeros(4), "Ints": np.zeros(9, dtype=np.int64)}
    plain: Any = Plain()
    for position, (name, part) in enumerate(types_of(kind).items()):
        value: Any = filled(part) if is_structure(part) else 0.25 * (position + 1)
        if part == "int":
            value = position + 1
        elif part in sizes:
            value = sizes[part] + 1
        setattr(plain, name, value)
    return plain


def put(memory: StructureArrays, plain: Any) -> None:
    """Put what Python has into a structure; arrays are copied."""
    for name, value in vars(plain).items():
        if name in memory.parts:
            put(memory.parts[name], value)
        elif isinstance(value, np.ndarray):
            memory.attach(name, value.copy())
        elif name != "rate":
            setattr(memory.fields, name, value)


def numbers_in(fields: Any, plain: Any) -> list[tuple[Any, Any]]:
    """Return what a structure and Python have in all fields, pair by pair."""
    pairs = []
    for name, value in vars(plain).items():
        found = getattr(fields, name)
        if isinstance(value, Plain):
            pairs += numbers_in(found, value)
        elif isinstance(value, np.ndarray):
            kind = ctypes.c_double if value.dtype == float else ctypes.c_int64
            pairs.append((list((kind * len(value)).from_address(found)), value.tolist()))
        elif name != "rate":
            pairs.append((found, value))
    return pairs


def test_structures_inside_of_structures() -> None:
    module = Module()
    module.translate(run_plant, "run_plant")
    module.translate(rate, "rate")
    library = Library(module.text, lambda: module.text)
    plain = filled(Plant)
    memory = StructureArrays(Plant)
    put(memory, plain)
    plain.basin.tank.rate = rate
    memory.parts["basin"].parts["tank"].link("rate", library.address("rate"))
    call = library.function("run_plant", ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)
    assert call(memory.pointer, 2) == run_plant(plain, 2)
    pairs = numbers_in(memory.fields, plain)
    assert len(pairs) == 13
    for found, expected in pairs:
        assert found == expected
    assert (plain.basin.inlet.opening, plain.basin.outlet.opening) == (0.75, 2.25)
    assert memory.fields.basin.tank.spare == memory.arrays["ends"].ctypes.data


def height_of(plant: Plant) -> float:
    return plant.basin.tank.level


def test_a_field_inside_of_a_structure_is_at_a_place_that_is_known() -> None:
    text = CompiledKernel(height_of).text
    assert text.count("getelementptr") == 1
    before = 1 + 2 + 1  # days, the inlet and the height
    assert f", i64 {before}\n" in text
    assert StructureArrays(Plant).pointer % 8 == 0
    assert ctypes.sizeof(Plant.structure()) == 8 * (1 + 2 + 1 + 6 + 2 + 1 + 1)


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
        out[i] += 10 * lanes_in(a[i] > b[i])
        b[i] = with_lane(a[i], 2, lane(b[i], 3) + 100.0)
        b[i] = with_lane(b[i], i % 2, lane(a[n - 1 - i], i % 4))


def test_single_lanes_are_read_and_replaced() -> None:
    module = Module(lanes=4)
    module.translate(single_lanes, "kernel")
    library = Library(module.text, lambda: module.text)
    a, b = np.random.default_rng(3).normal(size=(2, 20, 4))
    expected = np.any(a > b, axis=1) + 2 * (a[:, 1] > b[:, 1])
    counts = np.sum(a > b, axis=1)
    replaced, out = a.copy(), np.zeros(20, dtype=np.int64)
    replaced[:, 2] = b[:, 3] + 100.0
    rows = np.arange(20)
    replaced[rows, rows % 2] = a[19 - rows, rows % 4]
    call = library.function("kernel", None, ctypes.c_int64, *[ctypes.c_void_p] * 3)
    call(20, *(each.ctypes.data for each in (a, b, out)))
    assert set(expected) == {0, 1, 3}
    assert out.tolist() == (expected + 10 * counts).tolist()
    np.testing.assert_array_equal(b, replaced)


# Refusals ----------------------------------------------------------------------------------------


def test_two_kernels_of_one_name_are_not_mixed_up() -> None:
    module = Module()
    module.translate(rosenbrock.error_norm, "error_norm")
    module.translate(rosenbrock.error_norm, "error_norm")
    with pytest.raises(KernelError, match="'error_norm' names two kernels"):
        module.translate(explicit.error_norm, "error_norm", {"tableau": METHODS["RK45"].tableau})


@for_each(
    "kernel",
    [
        value
        for name, value in vars(refused_kernels).items()
        if name.startswith(("a_", "an_")) and isinstance(value, FunctionType)
    ],
)
def test_what_is_no_part_of_the_language_is_refused(kernel: Callable[..., Any]) -> None:
    with pytest.raises(KernelError) as caught:
        Module().translate(kernel, "kernel")
    assert kernel.__name__ in str(caught.value) or "no type" in str(caught.value)


def decided_by_the_first(a: Floats, flag: Static) -> float:
    found = 0.0
    if flag and bad_if_translated(found) > 0.0:
        found = 1.0
    if not flag or bad_if_translated(found) > 0.0:
        found += 2.0
    return found


def test_a_part_of_a_condition_that_is_known_decides_while_translating() -> None:
    (found, _) = both(decided_by_the_first, np.zeros(1), flag=False)
    assert found == 2.0
    assert "br i1" not in CompiledKernel(decided_by_the_first, flag=False).text
    with pytest.raises(KernelError, match="bad_if_translated"):
        CompiledKernel(decided_by_the_first, flag=True)
