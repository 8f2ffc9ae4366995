"""Coefficients: those of SciPy to the last bit, the others by their order conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.typing import NDArray

from flexure.solvers.integration.methods import tableaus
from flexure.solvers.integration.methods.tableaus import (
    DOP853,
    ESDIRK4,
    RADAU_IIA,
    RK23,
    RK45,
    RODAS5P,
    ExplicitTableau,
    Matrix,
)
from tests.support.tiers import for_each

Array = NDArray[np.float64]

EXPLICIT = [RK23, RK45, DOP853]
every_explicit = pytest.mark.parametrize("tableau", EXPLICIT, ids=lambda tableau: tableau.name)


def padded(rows: Matrix, columns: int) -> Array:
    """Fill rows of different lengths up with zeros."""
    return np.array([(*row, *(0.0,) * (columns - len(row))) for row in rows])


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(tableaus.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "dataclasses"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


# Explicit methods --------------------------------------------------------------------------------


@every_explicit
def test_explicit_methods_are_those_of_scipy_to_the_last_bit(tableau: ExplicitTableau) -> None:
    theirs: Any = getattr(scipy.integrate, tableau.name)
    assert (tableau.order, tableau.error_order) == (theirs.order, theirs.error_estimator_order)
    assert len(tableau.B) == len(tableau.C) == theirs.n_stages
    assert np.array_equal(padded(tableau.A, theirs.A.shape[1]), theirs.A)
    assert np.array_equal(tableau.B, theirs.B)
    assert np.array_equal(tableau.C, theirs.C)


@pytest.mark.parametrize("tableau", [RK23, RK45], ids=lambda tableau: tableau.name)
def test_error_estimates_and_interpolants_are_those_of_scipy(tableau: ExplicitTableau) -> None:
    theirs: Any = getattr(scipy.integrate, tableau.name)
    assert np.array_equal(tableau.E, theirs.E)
    assert np.array_equal(tableau.P, theirs.P)


def test_what_only_dop853_has_is_that_of_scipy() -> None:
    theirs: Any = scipy.integrate.DOP853
    assert np.array_equal(DOP853.E, theirs.E5)
    assert np.array_equal(DOP853.E3, theirs.E3)
    assert np.array_equal(padded(DOP853.A_extra, 16), theirs.A_EXTRA)
    assert np.array_equal(DOP853.C_extra, theirs.C_EXTRA)
    assert np.array_equal(DOP853.D, theirs.D)


@every_explicit
def test_stages_use_earlier_stages_only_and_meet_their_times(tableau: ExplicitTableau) -> None:
    assert [len(row) for row in tableau.A] == list(range(len(tableau.B)))
    assert [sum(row) for row in tableau.A] == pytest.approx(tableau.C, abs=1e-14)
    assert [sum(row) for row in tableau.A_extra] == pytest.approx(tableau.C_extra, abs=1e-14)
    assert sum(tableau.B) == pytest.approx(1.0, abs=1e-15)


def lorenz(t: float, x: Array) -> Array:
    return np.array(
        [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2] + t]
    )


@every_explicit
def test_a_step_as_described_is_a_step_of_scipy(tableau: ExplicitTableau) -> None:
    x, h = np.array([1.0, 2.0, 20.0]), 0.01
    theirs: Any = getattr(scipy.integrate, tableau.name)
    solver = theirs(lorenz, 0.0, x, h, first_step=h)
    solver.step()
    assert solver.t == h
    slopes: list[Array] = []
    for c, row in zip(tableau.C, tableau.A, strict=True):
        change = sum((a * k for a, k in zip(row, slopes, strict=True)), np.zeros(3))
        slopes.append(lorenz(c * h, x + h * change))
    x_new = x + h * np.array(tableau.B) @ slopes
    slopes.append(lorenz(h, x_new))
    for c, row in zip(tableau.C_extra, tableau.A_extra, strict=True):
        slopes.append(lorenz(c * h, x + h * np.array(row) @ slopes))
    assert x_new == pytest.approx(solver.y, rel=1e-15)

    s = 0.3
    if tableau.P:
        powers = [s ** (p + 1) for p in range(len(tableau.P[0]))]
        inside = x + h * np.array(powers) @ np.array(tableau.P).T @ slopes
    else:
        whole = x_new - x
        f = [whole, h * slopes[0] - whole, 2.0 * whole - h * (slopes[0] + slopes[12])]
        f.extend(h * np.array(tableau.D) @ slopes)
        r = 1.0 - s
        inner = f[2] + r * (f[3] + s * (f[4] + r * (f[5] + s * f[6])))
        inside = x + s * (f[0] + r * (f[1] + s * inner))
    assert inside == pytest.approx(solver.dense_output()(s * h), rel=1e-14)


# Rodas5P -----------------------------------------------------------------------------------------

Tree = tuple["Tree", ...]  # a rooted tree as the tuple of its branches

# The stages of the tableau are combinations k of the classical ones, k = Γ u.
CLASSICAL = np.linalg.inv(np.eye(8) / RODAS5P.gamma - padded(RODAS5P.C, 8))
ALPHA = padded(RODAS5P.A, 8) @ CLASSICAL
BETA = ALPHA + CLASSICAL


def classical_weights(weights: Any) -> Array:
    found: Array = np.asarray(weights) @ CLASSICAL
    return found


NEW_STATE = classical_weights((*RODAS5P.A[-1], 1.0))
EMBEDDED = classical_weights((*RODAS5P.A[-1], 0.0))


def inside_weights(s: float) -> Array:
    """Weights of the interpolant at the fraction s of a step."""
    first, second, third = np.array(RODAS5P.H)
    ends = np.array((*RODAS5P.A[-1], 1.0))
    return classical_weights(s * (ends + (1.0 - s) * (first + s * (second + s * third))))


@cache
def trees(size: int) -> list[Tree]:
    """Return all rooted trees with a number of nodes."""

    def forests(size: int, largest: int) -> Iterator[Tree]:
        if size == 0:
            yield ()
        for first in range(min(size, largest), 0, -1):
            for tree in trees(first):
                for rest in forests(size - first, first):
                    yield (tree, *rest)

    return sorted({tuple(sorted(forest)) for forest in forests(size - 1, size)})


def nodes(tree: Tree) -> int:
    return 1 + sum(nodes(branch) for branch in tree)


def density(tree: Tree) -> int:
    product = nodes(tree)
    for branch in tree:
        product *= density(branch)
    return product


def elementary_weights(tree: Tree) -> Array:
    """Return the weights of the stages: β where a node has one branch, α where it has several."""
    matrix = BETA if len(tree) == 1 else ALPHA
    product = np.ones(8)
    for branch in tree:
        product = product * (matrix @ elementary_weights(branch))
    return product


def worst_residual(weights: Array, order: int, s: float = 1.0) -> float:
    """Return by how much the conditions of one order are missed."""
    return max(
        abs(float(weights @ elementary_weights(tree)) - s**order / density(tree))
        for tree in trees(order)
    )


def test_there_are_as_many_conditions_as_there_should_be() -> None:
    assert [len(trees(order)) for order in range(1, 7)] == [1, 1, 2, 4, 9, 20]


def test_rodas5p_meets_the_conditions_of_its_order() -> None:
    for order in [1, 2, 3, 4, 5]:
        assert worst_residual(NEW_STATE, order) < 5e-14


def test_its_embedded_solution_has_order_4() -> None:
    for order in [1, 2, 3, 4]:
        assert worst_residual(EMBEDDED, order) < 5e-14


@for_each("s", [0.1, 0.3, 0.5, 0.7, 0.9])
@for_each("order", [1, 2, 3, 4])
def test_its_interpolant_has_order_4(order: int, s: float) -> None:
    assert worst_residual(inside_weights(s), order, s) < 5e-14


@pytest.mark.parametrize(
    ("weights", "order", "s"),
    [(NEW_STATE, 6, 1.0), (EMBEDDED, 5, 1.0), (inside_weights(0.3), 5, 0.3)],
    ids=["method", "embedded solution", "interpolant"],
)
def test_none_of_them_meets_those_of_one_order_more(weights: Array, order: int, s: float) -> None:
    assert worst_residual(weights, order, s) > 1e-4


def test_its_times_are_the_sums_of_its_coefficients() -> None:
    assert ALPHA.sum(axis=1) == pytest.approx(RODAS5P.alpha, abs=5e-14)
    assert CLASSICAL.sum(axis=1) == pytest.approx(RODAS5P.gammas, abs=5e-14)
    assert np.diag(CLASSICAL) == pytest.approx(np.full(8, RODAS5P.gamma), abs=5e-14)


def test_the_error_of_the_time_derivative_is_forgiven() -> None:
    assert float(NEW_STATE @ RODAS5P.gammas) == pytest.approx(0.0, abs=5e-14)


def test_it_is_stiffly_accurate() -> None:
    assert RODAS5P.A[-1] == (*RODAS5P.A[-2], 1.0)
    assert RODAS5P.alpha[-1] == 1.0
    assert RODAS5P.gammas[-1] == 0.0


def growth(z: complex, weights: Array) -> float:
    """Return the factor by which a step with h λ = z multiplies a mode."""
    stages = np.linalg.solve(np.eye(8) - z * BETA, np.ones(8))
    return abs(1.0 + z * complex(weights @ stages))


@pytest.mark.parametrize("weights", [NEW_STATE, EMBEDDED], ids=["method", "embedded"])
def test_no_decaying_mode_grows_and_infinitely_fast_ones_vanish(weights: Array) -> None:
    for size in np.logspace(-2, 4, 61):
        for angle in np.linspace(0.5, 1.0, 21) * np.pi:
            assert growth(size * np.exp(1j * angle), weights) < 1.0 + 1e-9
    assert growth(-1e12, weights) < 1e-10


def test_its_stages_use_earlier_stages_only() -> None:
    for rows in (RODAS5P.A, RODAS5P.C):
        assert [len(row) for row in rows] == list(range(RODAS5P.stages))


# ESDIRK4 -----------------------------------------------------------------------------------------

IMPLICIT = padded(ESDIRK4.A, 6) + np.diag([0.0] + [ESDIRK4.gamma] * 5)


def weights_of_tree(tree: Tree) -> Array:
    """Return the weights of the stages for the branches of a tree."""
    product = np.ones(6)
    for branch in tree:
        product = product * (IMPLICIT @ weights_of_tree(branch))
    return product


def residual(weights: Array, order: int, s: float = 1.0) -> float:
    """Return by how much the conditions of one order are missed."""
    return max(
        abs(float(weights @ weights_of_tree(tree)) - s**order / density(tree))
        for tree in trees(order)
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_esdirk4_meets_the_conditions_of_its_order_inside_of_a_step_too(order: int) -> None:
    first, second, third = np.array(ESDIRK4.H)
    for s in (0.1, 0.5, 0.8, 1.0):
        inside = s * (IMPLICIT[-1] + (1.0 - s) * (first + s * (second + s * third)))
        assert residual(inside, order, s) < 1e-14
    if order < 4:
        assert residual(IMPLICIT[-1] - np.array(ESDIRK4.E), order) < 1e-14


def test_every_stage_of_esdirk4_has_order_2_and_the_last_one_is_the_new_state() -> None:
    times = np.array(ESDIRK4.alpha)
    np.testing.assert_allclose(IMPLICIT @ np.ones(6), times, atol=1e-15)
    np.testing.assert_allclose(IMPLICIT @ times, times**2 / 2.0, atol=1e-15)
    assert times[-1] == 1.0


def test_slopes_of_its_interpolant_are_those_at_both_ends() -> None:
    first, second, third = np.array(ESDIRK4.H)
    begin, end = IMPLICIT[-1] + first, IMPLICIT[-1] - first - second - third
    np.testing.assert_allclose(begin, np.eye(6)[0], atol=1e-14)
    np.testing.assert_allclose(end, np.eye(6)[5], atol=1e-14)


def test_it_damps_what_is_infinitely_fast_and_no_oscillation_grows() -> None:
    def amplification(z: complex) -> complex:
        return complex(
            1.0 + z * IMPLICIT[-1] @ np.linalg.solve(np.eye(6) - z * IMPLICIT, np.ones(6))
        )

    assert abs(amplification(-1e8)) < 1e-6
    assert abs(amplification(1e8j)) < 1e-6
    assert all(abs(amplification(1j * y)) <= 1.0 + 1e-14 for y in np.geomspace(1e-3, 1e4, 300))


@pytest.mark.parametrize("stage", [2, 3, 4, 5])
def test_its_guesses_are_exact_for_motion_along_a_parabola(stage: int) -> None:
    times = np.array(ESDIRK4.alpha)
    guess = np.array(ESDIRK4.G[stage]) @ (1.0 + 2.0 * times[:stage])  # slopes of t + t²
    assert guess == pytest.approx(times[stage] + times[stage] ** 2, abs=1e-14)


# Fully implicit method ---------------------------------------------------------------------------


def test_radau_iia_is_the_collocation_at_the_points_of_radau() -> None:
    A, c = np.array(RADAU_IIA.A), np.array(RADAU_IIA.C)
    for k in range(1, len(c) + 1):  # polynomials are integrated exactly up to each stage
        assert A @ c ** (k - 1) == pytest.approx(c**k / k, abs=1e-15)
    for k in range(1, RADAU_IIA.order + 1):  # and those of a higher degree over the step
        assert A[-1] @ c ** (k - 1) == pytest.approx(1.0 / k, abs=1e-15)
    assert c[-1] == 1.0
    assert scipy.integrate.Radau.__init__.__globals__["C"] == pytest.approx(c, abs=1e-15)
