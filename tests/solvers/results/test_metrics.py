"""Metrics of sampled signals: their numbers, their labels, and what can be made of them."""

from __future__ import annotations

import numpy as np
import pytest

from flexure import metrics

T = np.linspace(0.0, 10.0, 20001)
WAVES = {"y": np.array([np.sin(T), 2.0 * np.cos(T)]), "r": np.array([np.cos(T), np.cos(T)])}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.final("y"), [np.sin(10.0), 2.0 * np.cos(10.0)]),
        (metrics.at("y", 2.5), [np.sin(2.5), 2.0 * np.cos(2.5)]),
        (metrics.maximum("y"), [1.0, 2.0]),
        (metrics.minimum("y", start=1.0, end=3.0), [np.sin(3.0), 2.0 * np.cos(3.0)]),
        (metrics.peak("y", start=4.0, end=5.0), [1.0, -2.0 * np.cos(4.0)]),
        (metrics.integral("y"), [1.0 - np.cos(10.0), 2.0 * np.sin(10.0)]),
        (metrics.mean("y", end=np.pi), [2.0 / np.pi, 0.0]),
        (metrics.rms("y", start=np.pi, end=3.0 * np.pi), [np.sqrt(0.5), np.sqrt(2.0)]),
        (metrics.total_variation("y", end=2.0 * np.pi), [4.0, 8.0]),
        (metrics.first_crossing("y", 0.5, "rising"), [np.pi / 6.0, 2.0 * np.pi - np.arccos(0.25)]),
        (metrics.first_crossing("y", 0.5, "falling"), [5.0 * np.pi / 6.0, np.arccos(0.25)]),
        (metrics.first_crossing("y", 1.5), [np.nan, np.arccos(0.75)]),
        (metrics.iae("y", end=2.0 * np.pi), [4.0, 8.0]),
        (metrics.ise("y", target=1.0, end=2.0 * np.pi), [3.0 * np.pi, 6.0 * np.pi]),
        (metrics.ise("y", target="r", end=2.0 * np.pi), [2.0 * np.pi, np.pi]),
        (metrics.itae("y", end=np.pi), [np.pi, 2.0 * np.pi]),
    ],
    ids=lambda item: item.label if isinstance(item, metrics.Metric) else "",
)
def test_metrics_of_sines_are_those_of_their_integrals(
    metric: metrics.Metric, expected: list[float]
) -> None:
    found = metric.evaluate(T, WAVES)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
