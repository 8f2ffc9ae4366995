"""Sobol indices against closed forms, those of SciPy, and planes through the same runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, sobol_indices

import flexure as fx


class Formula(fx.LeafSystem):
    """A function of parameters as the final value of a state: ẋ = f(p) for a second."""

    def __init__(self, function: Any, count: int, name: str = "formula") -> None:
        super().__init__(name)
        self.function = function
        self.p = [self.declare_numeric_parameter(f"p{k}", 0.0) for k in range(count)]
        self.x = self.declare_continuous_state(z=1)
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.function(*(each(context) for each in self.p))]


def ishigami(a: Any, b: Any, c: Any) -> Any:
    return np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


def additive(a: Any, b: Any, c: Any) -> Any:
    return 3.0 * a - 2.0 * b + c


END = {"end": fx.metrics.final("y")}
UNIFORM: dict[str, Any] = {f"p{k}": (-np.pi, np.pi) for k in range(3)}
NORMAL: dict[str, Any] = {"p0": norm(1.0, 2.0), "p1": norm(0.0, 1.0), "p2": norm(5.0, 0.5)}


def find(function: Any, values: Any, n: int = 2048, **options: Any) -> fx.results.SobolIndices:
    system = Formula(function, len(values))
    return fx.sobol_indices(system, values, 1.0, n, metrics=END, times=[1.0], **options)


def test_ishigami_has_the_indices_of_its_closed_form() -> None:
    found = find(ishigami, UNIFORM, 4096)["end"]
    one = 0.5 * (1.0 + 0.1 * np.pi**4 / 5.0) ** 2
    two, three = 7.0**2 / 8.0, 0.1**2 * np.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
    whole = one + two + three
    np.testing.assert_allclose(found.variance, whole, rtol=0.01)
    np.testing.assert_allclose(found.first, np.array([one, two, 0.0]) / whole, atol=0.01)
    total = np.array([one + three, two, three]) / whole
    np.testing.assert_allclose(found.total, total, atol=0.01)
    for exact, interval in zip(total, found.total_interval, strict=True):
        assert interval[0] < exact < interval[1]
        assert interval[1] - interval[0] < 0.15


def test_effects_that_add_up_are_those_of_a_plane() -> None:
    indices = find(additive, NORMAL)
    found, shares = indices["end"], np.array([36.0, 4.0, 0.25]) / 40.25
    np.testing.assert_allclose(found.total, shares, atol=0.01)
    np.testing.assert_allclose(found.first, shares, atol=0.03)
    assert found.regression is not None
    np.testing.assert_allclose(found.regression.slopes, [3.0, -2.0, 1.0], rtol=1e-9)
    assert found.regression.r_squared == pytest.approx(1.0, abs=1e-12)
    table = indices.table()
    assert table["path"] == ["p0", "p1", "p2"]
    np.testing.assert_allclose(table["linear"], shares, atol=0.01)


def test_the_estimates_are_those_of_scipy() -> None:
    indices = find(ishigami, UNIFORM, 256)
    rows = indices.sweep.metrics["end"].reshape(256, 5).T
    expected = sobol_indices(
        func={"f_A": rows[:1], "f_B": rows[1:2], "f_AB": rows[2:, np.newaxis]}, n=256
    )
    np.testing.assert_allclose(indices["end"].first, expected.first_order, rtol=1e-9)
    np.testing.assert_allclose(indices["end"].total, expected.total_order, rtol=1e-9)
    bounds = expected.bootstrap(n_resamples=400).total_order.confidence_interval
    theirs, mine = bounds.high - bounds.low, np.diff(indices["end"].total_interval)[:, 0]
    np.testing.assert_allclose(mine, theirs, rtol=0.25)


def test_the_same_seed_gives_the_same_indices() -> None:
    first, second, third = (find(ishigami, UNIFORM, 64, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first["end"].first, second["end"].first)
    np.testing.assert_array_equal(first["end"].total_interval, second["end"].total_interval)
    assert first.sweep.plan == second.sweep.plan != third.sweep.plan


def test_what_does_not_vary_has_no_shares() -> None:
    with pytest.warns(UserWarning, match="'end' say nothing: it does not depend on the values"):
        found = find(lambda a, b: 0.0 * a + 1.0, {"p0": (0.0, 1.0), "p1": (0.0, 1.0)}, 32)["end"]
    np.testing.assert_array_equal(found.total, [0.0, 0.0])


def test_rows_with_failed_runs_are_left_out_and_counted() -> None:
    with pytest.warns(UserWarning, match=r"\d+ of 64 rows of samples are left out"):
        indices = find(lambda a, b: np.sqrt(a + 0.95) + b, {"p0": (-1, 1), "p1": (0, 1)}, 64)
    rows = np.isfinite(indices.sweep.metrics["end"].reshape(64, 4)).all(axis=1)
    assert indices["end"].rows == rows.sum() < 64
    assert np.isfinite(indices["end"].total).all()


def test_correlated_values_are_refused() -> None:
    joint = {("p0", "p1"): multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])}
    with pytest.raises(fx.errors.ValueRefusedError, match="expected independent values"):
        fx.sobol_indices(Formula(additive, 3), joint, 1.0, 8, metrics=END)


def test_indices_without_metrics_are_refused() -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="at least one of metrics="):
        fx.sobol_indices(Formula(additive, 3), NORMAL, 1.0, 8)


def test_the_picture_has_bars_of_both_orders_with_the_largest_first() -> None:
    ax = find(additive, NORMAL, 64).plot()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["p0", "p1", "p2"]
    assert len(ax.containers) >= 2
    assert "share of the variance of end" in ax.get_ylabel()
