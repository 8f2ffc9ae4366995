"""Kernels as JavaScript give the numbers that they give in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from flexure.solvers.export.javascript.kernel_functions import (
    HELPERS,
    FunctionModule,
    arithmetic,
    structure_text,
)
from flexure.solvers.export.javascript.model_text import loops_text
from flexure.solvers.integration.guard.progress_limits import (
    MARKS,
    is_conspicuous,
    makes_slow_progress,
)
from flexure.solvers.integration.methods import tableaus
from flexure.solvers.native.emission.sparse_factors import find_sparse_factors
from flexure.solvers.native.kernels.parts import arithmetic as numbers, linear_solves, zero_search
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.runs import zeno_detection
from flexure.solvers.native.kernels.steps import explicit, rosenbrock
from flexure.solvers.native.language.language import (
    Floats,
    Ints,
    local,
    nextafter,
    rint,
    types_of,
)
from flexure.solvers.native.language.reading import KernelError
from flexure.solvers.native.programs.method_programs import METHODS
from tests.solvers.native.language import test_language as language
from tests.support.native import refused_kernels
from tests.support.native.javascript_runs import Call, compare_calls, results_of
from tests.support.tiers import for_each


def called(kernel: Callable[..., Any], *arguments: Any, **statics: Any) -> Call:
    return Call(kernel, arguments, statics)


def parts_of_arrays(a: Floats, whole: Ints, n: int) -> float:
    """Parts that begin anywhere change places, are passed on, and are written to."""
    b, c = a[1:], a[n:]
    b, c = c, b
    b[0] += 10.0 * c[1]
    while n > 0:
        c = c[1:]
        n -= 1
    language.fill(2, c[0], b[1:])
    new = local(3)
    language.fill(3, a[0], new)
    new[1:][whole[n]] = 7.0
    a[0] = new[2] + new[1]
    last: float = c[0]
    return last


def test_the_language_means_the_same() -> None:
    rng = np.random.default_rng(5)
    whole = np.zeros(11, dtype=np.int64)
    calls = [
        called(language.conversions, 7, 3.9, np.zeros(6), whole),
        called(language.swaps, np.array([2.0, 3.0]), 1),
        called(language.static_parts, rng.normal(size=5), table=language.TABLE, flag=False),
        called(language.gathered, np.arange(4.0), n=2, places=language.Places()),
        called(parts_of_arrays, rng.normal(size=8), np.array([1, 0]), 3),
    ]
    for bits in range(8):
        flags = (bits & 1, bits >> 1 & 1, bits >> 2)
        calls.append(called(language.early, whole, *flags))
        a = rng.normal(1.0, 3.0, 12)
        calls.append(called(language.loops_of_all_kinds, len(a), a))
        calls.append(called(language.found_at, 4, np.round(np.abs(a) * 2.0) / 2.0, 0.5))
    calls += [
        called(language.comparisons, a, b, 3, whole)
        for a in (1.0, 2.0, -1.0, math.nan, math.inf)
        for b in (1.0, 2.5, math.nan, -math.inf)
    ]
    calls += [
        called(language.elementary, a, 0.5, np.zeros(11))
        for a in (0.5, 1.5, 2.5, -0.5, -1.5, 3.0, -0.0, 1e300, 5e-324)
    ]
    compare_calls(calls)


def next_ones(n: int, a: Floats, b: Floats, out: Floats) -> None:
    for i in range(n):
        out[3 * i] = nextafter(a[i], b[i])
        out[3 * i + 1] = numbers.spacing(a[i])
        out[3 * i + 2] = rint(a[i])


def test_neighbors_of_numbers_are_exact() -> None:
    edges = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308]
    edges += [1.0, -1.0, 0.9999999999999999, 2.0**52, 2.0**53, 1e308, -1.7976931348623157e308]
    edges += [4503599627370497.5, 2.5, -2.5, 0.1]
    a, b = (each.ravel() for each in np.meshgrid(edges, [*edges, np.inf, -np.inf]))
    compare_calls([called(next_ones, len(a), a, b, np.zeros(3 * len(a)))])


@pytest.mark.parametrize("n", [1, 5])
def test_steps_have_the_same_stages(n: int) -> None:
    rng = np.random.default_rng(n)
    calls = []
    for tableau in (tableaus.RK23, tableaus.RK45, tableaus.DOP853):
        k, x, new = rng.normal(size=(20, n)).ravel(), *rng.normal(size=(2, n))
        tolerances = rng.uniform(1e-6, 1e-3, (2, n))
        calls += [
            called(explicit.stage, n, 0.3, x, k, new, tableau=tableau, s=s)
            for s in (1, 3, len(tableau.B))
        ]
        calls.append(called(explicit.error_norm, n, 0.3, x, new, k, *tolerances, tableau=tableau))
        q = np.zeros(7 * n)
        fill = explicit.polynomial if tableau.P else explicit.nested
        arguments = (n, k, q) if tableau.P else (n, 0.3, x, new, k, q)
        calls.append(called(fill, *arguments, tableau=tableau))
        q = rng.normal(size=7 * n)
        calls.append(called(explicit.point_inside, n, 0.3, 0.7, x, q, new, tableau=tableau))
    calls.append(called(rosenbrock.bends, n, x, new, k, q, tableau=tableaus.RODAS5P))
    calls.append(called(rosenbrock.error_norm, n, x, new, k, *tolerances))
    compare_calls(calls)


def test_linear_equations_have_the_same_solutions() -> None:
    rng = np.random.default_rng(2)
    n = 9
    pattern = (rng.random((n, n)) < 0.15) | np.eye(n, dtype=bool)
    rows, columns = (each.astype(np.int64) for each in np.nonzero(pattern))
    entries = rng.normal(size=len(rows))
    factors = find_sparse_factors(n, rows, columns)
    assert factors is not None
    values, row = np.zeros(len(factors.column)), np.zeros(n)
    matrix, pivots, b = np.zeros(n * n), np.zeros(n, dtype=np.int64), rng.normal(size=n)
    factored, chosen = matrix.copy(), pivots.copy()
    dense = (n, 2.0, len(rows), entries, rows, columns)
    assert linear_solves.factorize_dense(*dense, factored, chosen)
    filled = values.copy()
    assert linear_solves.factorize_sparse(factors, n, 2.0, entries, filled, row.copy())  # type: ignore[arg-type]
    compare_calls(
        [
            called(linear_solves.factorize_dense, *dense, matrix, pivots),
            called(linear_solves.solve_dense, n, factored, chosen, b),
            called(linear_solves.factorize_sparse, 2.0, entries, values, row, n=n, factors=factors),
            called(linear_solves.solve_sparse, filled, row, b, n=n, factors=factors),
        ]
    )


def search_all(n: int, a: Floats, found: Floats) -> None:
    """Look for the zeros of cubics, and note all looks."""
    for i in range(n):
        memory = local(zero_search.SEARCH_SIZE)
        zero_search.start_search(memory, 0.0, 1.0, -a[i], 1.0 - a[i])
        while zero_search.next_look(memory, 1e-15):
            now = memory[zero_search.NOW]
            memory[zero_search.VALUE] = now * now * now - a[i]
            found[i] += now


def pile(n: int, times: Floats, watch: Floats, verdicts: Ints) -> None:
    for i in range(n):
        verdicts[i] = 1 if zeno_detection.piles_up(watch, times[i], i % 5 == 0) else 0


def test_searches_and_verdicts_are_the_same() -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(size=(40, 6)).tolist()
    watch, verdicts = np.zeros(zeno_detection.WATCH_SIZE), np.zeros(60, dtype=np.int64)
    shrinking = 3.0 - 0.5 ** np.arange(60)
    compare_calls(
        [
            called(search_all, 30, rng.random(30), np.zeros(30)),
            *(called(zero_search.varies_fast, *each) for each in values),
            *(called(zero_search.is_far, *each[:5]) for each in values),
            called(pile, 60, shrinking, watch, verdicts),
            called(pile, 60, np.arange(60.0), watch, verdicts),
            called(makes_slow_progress, np.linspace(0, 1e-6, MARKS), 25, 1000, 1e-6, 9.0, 1e6, 1.0),
            called(is_conspicuous, np.linspace(0, 1e-6, MARKS), 4, 1000, 1e-6, 9.0, 1e6, 1.0),
            *(called(numbers.next_tick, 0.1, o, 0.1 * k) for k in range(20) for o in (0.0, 0.3)),
        ]
    )


def test_structures_are_objects_whose_arrays_change_places() -> None:
    module = FunctionModule()
    module.translate(language.run_plant, "runPlant")
    text = f"""(() => {{ {arithmetic()} {HELPERS} {module.text}
        const plant = {structure_text(language.Plant)};
        const {{ basin }} = plant;
        for (const each of [basin.inlet, basin.outlet]) each.turns = new Int32Array(3);
        Object.assign(plant, {{ days: 1, ends: Float64Array.of(5, 6, 7, 8) }});
        Object.assign(basin.tank, {{
          level: 1.5, count: 1, marks: new Int32Array(9),
          values: Float64Array.of(2, 0, 0, 1), spare: Float64Array.of(0, 3, 0, 1),
          rate: (t, x, env, out) => {{ out[0] = t + x[0] * env[1]; }},
        }});
        const result = runPlant(plant, 2);
        return [result, plant.days, plant.basin.tank.values, plant.ends, plant.basin.tank.marks];
    }})()"""
    plain = language.filled(language.Plant)
    plain.days, plain.ends = 1, np.array([5.0, 6, 7, 8])
    for valve in (plain.basin.inlet, plain.basin.outlet):
        valve.opening, valve.turns = 0.0, np.zeros(3, dtype=np.int64)
    tank = plain.basin.tank
    tank.level, tank.count, tank.marks = 1.5, 1, np.zeros(9, dtype=np.int64)
    tank.values, tank.spare = np.array([2.0, 0, 0, 1]), np.array([0.0, 3, 0, 1])
    tank.rate = language.rate
    result = language.run_plant(plain, 2)
    expected = [result, plain.days, tank.values, plain.ends, tank.marks]
    for ours, theirs in zip(results_of(text), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_structure_of_a_run_has_all_fields() -> None:
    found = results_of(f"({structure_text(Run)})")

    def compare(values: dict[str, Any], kind: Any) -> None:
        assert list(values) == list(types_of(kind))
        for name, part in types_of(kind).items():
            if isinstance(part, type):
                compare(values[name], part)
            else:
                assert values[name] == (0 if part in ("float", "int") else None)

    compare(found, Run)


@pytest.mark.full
def test_a_text_has_the_loops_of_the_methods_that_are_wanted_alone() -> None:
    texts = {name: loops_text((name,)) for name in METHODS}
    both = loops_text(("RK45", "Rodas5P"))
    assert "Rodas5P" not in texts["RK45"].replace('"Rodas5P"', "")
    assert max(map(len, texts.values())) < 85_000
    assert len(both) < len(texts["RK45"]) + len(texts["Rodas5P"])


NOT_ITS_BUSINESS = {  # what the target for LLVM refuses, as it knows which numbers are whole
    "a_missing_result",
    "a_result_of_another_type",
    "a_number_as_index",
    "a_remainder_of_numbers",
}


@for_each(
    "kernel",
    [
        value
        for name, value in vars(refused_kernels).items()
        if name.startswith(("a_", "an_"))
        and isinstance(value, FunctionType)
        and name not in NOT_ITS_BUSINESS
    ],
)
def test_what_is_no_part_of_the_language_is_refused(kernel: Callable[..., Any]) -> None:
    with pytest.raises(KernelError, match=kernel.__name__):
        FunctionModule().translate(kernel, "kernel")


def test_a_kernel_that_returns_an_array_is_refused() -> None:
    with pytest.raises(KernelError, match="rest"):
        FunctionModule().translate(language.slices, "kernel")
