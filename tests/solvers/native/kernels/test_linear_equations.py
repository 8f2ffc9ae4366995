"""The kernels that solve linear equations, compiled and as ordinary Python."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.solvers.native.emission.sparse_factors import SparseFactors, find_sparse_factors
from flexure.solvers.native.kernels.parts import linear_solves
from flexure.solvers.native.kernels.parts.linear_solves import FactorData
from flexure.solvers.native.runs.run_memory import StructureArrays, set_factors
from tests.support.native.native import CompiledKernel, needs_llvmlite
from tests.support.native.native_runs import compiled_loop
from tests.support.tiers import thinned

pytestmark = needs_llvmlite

FloatArray = npt.NDArray[np.float64]


def linear_problem(n: int, density: float, seed: int) -> tuple[Any, ...]:
    """Draw the entries of a sparse Jacobian that is dominated by its diagonal, and a vector."""
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n, n)) < density, rng.normal(size=(n, n)), 0.0)
    rows, columns = np.nonzero(matrix)
    entries = matrix[rows, columns]
    return matrix, rows.astype(np.int64), columns.astype(np.int64), entries, rng.normal(size=n)


def places_of(n: int, rows: Any, columns: Any) -> SparseFactors:
    factors = find_sparse_factors(n, np.array(rows), np.array(columns))
    assert factors is not None
    return factors


def sparse_solution(
    factors: SparseFactors, d: float, entries: FloatArray, b: FloatArray
) -> FloatArray | None:
    """Solve by Python, with places in a record, and with places that are known; compare.

    Return the solution, or None where the factors are not accurate.
    """
    n = len(b)
    kernels: list[Any] = [linear_solves.factorize_sparse, linear_solves.solve_sparse]
    given = {"factors": factors, "n": n}
    memory = StructureArrays(FactorData)
    set_factors(memory, factors)
    read = [partial(CompiledKernel(kernel), memory.pointer, n) for kernel in kernels]
    known = [CompiledKernel(kernel, **given) for kernel in kernels]
    plain = [partial(kernel, factors, n) for kernel in kernels]
    verdicts, solutions = [], []
    for factorize, solve in (plain, read, known):
        values, row, x = np.zeros(len(factors.column)), np.zeros(n), b.copy()
        with np.errstate(all="ignore"):
            verdicts.append(bool(factorize(d, entries, values, row)))
            solve(values, row, x)
        solutions.append(x)
    assert len(set(verdicts)) == 1
    if not verdicts[0]:
        return None
    for x in solutions[1:]:
        np.testing.assert_allclose(x, solutions[0], rtol=1e-12, atol=1e-12)
    return solutions[0]


@pytest.mark.full
@pytest.mark.parametrize(
    ("n", "density"),
    thinned([(13, 0.1), (1, 1.0), (2, 0.5), (13, 0.8), (40, 0.05), (120, 0.01), (60, 0.0)], fast=3),
)
def test_sparse_factors_solve_linear_equations(n: int, density: float) -> None:
    matrix, rows, columns, entries, b = linear_problem(n, density, n)
    factors = places_of(n, rows, columns)
    x = sparse_solution(factors, 7.0, entries, b)
    assert x is not None
    np.testing.assert_allclose((7.0 * np.eye(n) - matrix) @ x, b, atol=1e-12)


def test_factors_hold_no_zeros_that_elimination_leaves() -> None:
    """Positions follow velocities, and forces depend on all: the rows of positions stay as short
    as they are."""
    n = 4
    rows = [*range(n), *np.repeat(np.arange(n, 2 * n), 2 * n).tolist()]
    columns = [*range(n, 2 * n), *list(range(2 * n)) * n]
    factors = places_of(2 * n, rows, columns)
    assert factors.ranks[:n] == (0, 1, 2, 3)
    assert [factors.starts[k + 1] - factors.starts[k] for k in range(2 * n)] == [2] * n + [8] * n
    assert factors.pairs == n + n * (n - 1) // 2
    assert factors.products == n * (2 * n + 1) + sum(k * k + 2 * k for k in range(n))


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_dense_factors_solve_linear_equations(n: int) -> None:
    matrix, rows, columns, entries, b = linear_problem(n, 0.7, n)
    d = 0.1  # so that rows change places
    possible, *_, factors, pivots = both_close(
        linear_solves.factorize_dense,
        *(n, d, len(entries), entries, rows, columns),
        *(np.zeros(n * n), np.zeros(n, dtype=np.int64)),
    )
    assert possible
    _, *_, x = both_close(linear_solves.solve_dense, n, factors, pivots, b.copy())
    np.testing.assert_allclose((d * np.eye(n) - matrix) @ x, b, atol=1e-10)


def test_matrices_that_are_singular_or_grow_are_refused() -> None:
    ones, places = np.ones(4), np.array([0, 0, 1, 1])
    possible, *_ = both_close(
        linear_solves.factorize_dense,
        *(2, 0.0, 4, ones, places, np.array([0, 1, 0, 1])),
        *(np.zeros(4), np.zeros(2, dtype=np.int64)),
    )
    assert not possible


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize(
    ("corner", "accurate"),
    [(1e-2, True), (1e-4, True), (1e-5, False), (0.0, False), (np.nan, False)],
)
def test_sparse_factors_that_grow_are_refused_whatever_the_units(
    corner: float, accurate: bool, unit: float
) -> None:
    factors = places_of(3, [0, 1, 2, 0, 1], [0, 1, 2, 1, 0])
    assert factors.ranks == (1, 2, 0)  # the first pivots are those of the states 2 and 0
    entries = np.array([corner, 1.0, 1.0, unit, 1.0 / unit])
    x = sparse_solution(factors, 0.0, entries, np.array([1.0, 2.0, 3.0]))
    assert (x is not None) is accurate
    if x is not None:
        matrix = np.array([[corner, unit, 0.0], [1.0 / unit, 1.0, 0.0], [0.0, 0.0, 1.0]])
        np.testing.assert_allclose(-matrix @ x, [1.0, 2.0, 3.0], rtol=1e-7)


def test_patterns_are_for_matrices_that_are_small_or_have_zeros() -> None:
    for n, expected in ((10, True), (40, False)):
        rows, columns = np.nonzero(np.ones((n, n)))
        assert (find_sparse_factors(n, rows, columns) is not None) is expected
    rows, columns = np.nonzero(np.tri(40))
    assert find_sparse_factors(40, rows, columns) is not None


class Whirl(fx.LeafSystem):
    """A fast oscillator at rest beside a slow decay."""

    def __init__(self, rate: float) -> None:
        super().__init__("whirl")
        self.rate = self.declare_numeric_parameter("rate", rate)
        self.x = self.declare_continuous_state(z=3, default=[0.0, 0.0, 1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        a, b, c = self.x(context)
        return [self.rate(context) * b, -self.rate(context) * a, -c]


@pytest.mark.parametrize(("rate", "sparse"), [(1e2, 1), (1e8, 0)])
def test_steps_go_on_with_dense_factors_where_sparse_ones_grow(rate: float, sparse: int) -> None:
    simulator = fx.Simulator(Whirl(rate), method="Rodas5P", compiled="native", rtol=1e-8)
    simulator.initialize()
    simulator.advance_to(1.0)
    assert simulator.statistics.native_steps > 5
    assert compiled_loop(simulator, "Rodas5P").memory.fields.linear.factored_sparse == sparse
    x = simulator.context.get("x")
    np.testing.assert_allclose(x, [0.0, 0.0, np.exp(-1.0)], atol=1e-6)


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
