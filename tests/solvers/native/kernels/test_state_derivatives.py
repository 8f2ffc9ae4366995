"""Columns of derivatives behind the states: how they move, and how their stages are solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flexure.solvers.native.kernels.parts import state_derivatives
from flexure.solvers.native.kernels.parts.linear_solves import factorize
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.kernels.steps import esdirk
from tests.support.native.native import empty

MATRIX = np.array([[0.3, -2.0], [5.0, -1.0]])


def linear_run() -> Any:
    """Return a run of ẋ = J x + (u, 0), with the columns of ẋ by b in the second row and by x₂."""
    run = empty(Run)
    data = run.columns
    rows, others = np.indices((2, 2)).reshape(2, 4)
    data.n, data.count, data.nonzeros = 2, 2, 4
    data.rows, data.columns, data.entries = rows, others, np.zeros(4)
    data.env, data.own = np.zeros(3), np.zeros(3)

    def rates(time: float, x: Any, env: Any, out: Any) -> None:
        out[:2] = MATRIX @ x[:2] + [env[1], 0.0]

    def jacobian(time: float, x: Any, env: Any, out: Any) -> None:
        out[:] = MATRIX.ravel()

    def slopes(time: float, x: Any, env: Any, out: Any) -> None:
        out[0] = time

    data.rhs, data.jacobian, data.slopes = rates, jacobian, slopes
    data.steered, data.pushed, data.sources = 1, 1, np.array([0])
    data.places, data.scales = np.array([1]), np.array([10.0])
    data.pulls, data.push = np.zeros(1), np.zeros(4)
    data.drives, data.begin = 1, 2.0
    data.bases, data.tilts = np.array([4.0]), np.array([-3.0])
    data.targets, data.own_targets = np.array([1]), np.array([2])
    linear = run.linear
    linear.n, linear.nonzeros, linear.roomy = 2, 4, 1
    linear.rows, linear.columns, linear.entries = rows, others, np.zeros(4)
    linear.matrix, linear.pivots = np.zeros(4), np.zeros(2, dtype=np.int64)
    return run


def test_columns_move_by_the_jacobian_and_by_what_their_numbers_do() -> None:
    data = linear_run().columns
    x = np.array([1.0, 2.0, 0.5, -1.0, 3.0, 0.0])
    out = np.zeros(6)
    state_derivatives.rates_of_all(2.5, x, data, out)
    np.testing.assert_allclose(out[:2], MATRIX @ x[:2] + [4.0 - 3.0 * 0.5, 0.0])
    np.testing.assert_allclose(out[2:4], MATRIX @ x[2:4] + [0.0, 10.0 * 2.5])
    np.testing.assert_allclose(out[4:], MATRIX @ x[4:])
    assert data.own[2] == data.env[1] == 2.5


@pytest.mark.parametrize(("off", "renewed"), [(0.0, 0), (0.02, 0), (1.5, 1), (-4.0, 1)])
def test_stages_of_columns_are_solved_with_whatever_factors_there_are(
    off: float, renewed: int
) -> None:
    run, d = linear_run(), 7.0
    linear, step = run.linear, run.step
    linear.entries[:] = (MATRIX * (1.0 + off)).ravel()
    assert factorize(linear, linear.factors, 2, 0, d)
    base = np.array([0.0, 0.0, 1.0, -2.0, 0.0, 3.0])
    step.x, step.work, step.time_slope = np.ones(6), base, np.zeros(6)
    step.point = np.array([1.0, 2.0, 0.5, -1.0, 3.0, 0.0])
    run.tolerances.rtol, run.tolerances.atol = np.full(6, 1e-9), np.full(6, 1e-12)
    ratio = esdirk.find_columns(run, d, 0, 2.5, 1.0)
    assert ratio < np.inf
    assert run.counts.factorizations == renewed
    for first, push in ((2, [0.0, 25.0]), (4, [0.0, 0.0])):
        exact = np.linalg.solve(d * np.eye(2) - MATRIX, d * base[first : first + 2] + push)
        np.testing.assert_allclose(step.point[first : first + 2], exact, rtol=0.0, atol=1e-10)
