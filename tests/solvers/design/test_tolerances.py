"""Tolerances: yield and shares against Monte Carlo and derivatives by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import flexure as fx

m = fx.metrics
STEEL = fx.Material(193e9, poissons_ratio=0.3, density=7880.0, yield_strength=965e6)


def hinge() -> fx.Plant:
    """A beam on a leaf, which is turned by a couple."""
    builder = fx.PlantBuilder("hinge", gravity=(0.0, 0.0, 0.0))
    inertia = fx.SpatialInertia.solid_box(0.1, size=(0.05, 0.01, 0.01))
    arm = builder.add_body("arm", inertia)
    builder.add_joint(fx.PlanarJoint("arm", builder.world, arm))
    builder.add_assembly(
        fx.CrossPivot(
            *("pivot", builder.world, arm),
            length=0.03,
            width=0.01,
            thickness=3e-4,
            material=STEEL,
            planar=True,
        )
    )
    return builder.build()


def test_yield_and_shares_at_rest_are_those_of_a_closed_form() -> None:
    """The stiffness of a cross pivot is E (w₁ t₁³/L + w₂ t₂³/L) / 12."""
    plant = hinge()
    drawn: dict[str, Any] = {
        "pivot_leaf1.thickness": norm(3e-4, 6e-6),
        "pivot_leaf2.thickness": "± 1e-5",
        "pivot.length": "2 %",
    }
    stiffness = m.stiffness_at("arm", about=(0, 0, 1)).named("k")
    limits = [stiffness >= 0.28, stiffness <= 0.3, m.frequency() >= 10.0]
    found = fx.tolerances(plant, drawn, limits, num_samples=64, seed=3)

    rng = np.random.default_rng(0)
    size = 200_000
    thick = rng.normal(3e-4, 6e-6, size), rng.uniform(2.9e-4, 3.1e-4, size)
    length = rng.uniform(0.98 * 0.03, 1.02 * 0.03, size)
    form = 193e9 * 0.01 * (thick[0] ** 3 + thick[1] ** 3) / (12.0 * length)
    rate = np.mean((form >= 0.28) & (form <= 0.3))
    low, high = found.interval
    assert low < rate < high
    assert found.yield_rate == pytest.approx(rate, abs=0.06)
    assert found.nominal["k"] == pytest.approx(0.2895, rel=1e-3)
    assert found.values["k"].std() == pytest.approx(form.std(), rel=0.1)
    assert found.linear_deviations["k"] == pytest.approx(form.std(), rel=0.1)
    spreads = 1.5 * np.array([6e-6 / 3e-4, 1e-5 / np.sqrt(3.0) / 3e-4, 0.0])
    spreads[2] = 0.02 / np.sqrt(3.0)
    np.testing.assert_allclose(found.shares["k"], spreads**2 / np.sum(spreads**2), atol=0.03)
    assert found.paths == tuple(drawn)
    assert found.explained["k"] > 0.99
    assert found.table()["path"][0] == "pivot_leaf1.thickness"


def test_metrics_of_runs_and_correlated_tolerances() -> None:
    """The end of a lag is u (1 - exp(-1/T))."""
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    drawn = {"u": (0.9, 1.1), "time_constant": (0.9, 1.1)}
    end = m.final("y")
    found = fx.tolerances(lag, drawn, end >= 0.6, 1.0, context=context, num_samples=128)
    u, T = found.plan["u"], found.plan["time_constant"]
    np.testing.assert_allclose(found.values["final(y)"], u * (1.0 - np.exp(-1.0 / T)), rtol=1e-3)
    assert found.yield_rate == np.mean(found.values["final(y)"] >= 0.6)
    slopes = np.array([1.0 - np.exp(-1.0), -np.exp(-1.0)])
    np.testing.assert_allclose(found.shares["final(y)"], slopes**2 / np.sum(slopes**2), atol=0.02)
    correlated = fx.tolerances(
        lag,
        drawn,
        end >= 0.6,
        1.0,
        context=context,
        num_samples=128,
        correlation={("u", "time_constant"): 0.9},
    )
    assert correlated.linear_deviations["final(y)"] == pytest.approx(
        correlated.values["final(y)"].std(), rel=0.05
    )


def test_shares_that_mislead_are_warned_of_and_bad_arguments_refused() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    context = lag.create_default_context()
    context.set("u", 0.0)
    drawn = {"u": (-1.0, 1.0), "x": (-0.01, 0.011)}
    squared = m.final("y") * m.final("y")
    options: dict[str, Any] = {"context": context, "num_samples": 32}
    with pytest.warns(UserWarning, match="first order mislead"):
        fx.tolerances(lag, drawn, squared <= 0.1, 1.0, **options)
    refused: list[tuple[Any, dict[str, Any]]] = [
        ((drawn, []), {}),
        ((drawn, m.final("y")), {}),
        ((drawn, m.final("y") <= 1.0), {}),  # without a run
        ((drawn, m.final("y") <= 1.0, 1.0), {"confidence": 1.0}),
        ((drawn, m.final("y") <= 1.0, 1.0), {"num_samples": 1}),
        (({"v": (0.0, 1.0)}, m.final("y") <= 1.0, 1.0), {}),
        (({"x": "± zero"}, m.final("y") <= 1.0, 1.0), {}),
    ]
    for arguments, others in refused:
        with pytest.raises(fx.errors.FlexureError):
            fx.tolerances(lag, *arguments, **options | others)


def test_metrics_of_one_label_are_told_apart() -> None:
    """Two functions without names have one label; results by label would hold one of them."""
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    options: dict[str, Any] = {"context": context, "num_samples": 8}
    twice, tenth = m.of(lambda t, y: 2.0 * y[-1], "y"), m.of(lambda t, y: 0.1 * y[-1], "y")
    for limits in ([twice <= 0.9, tenth <= 0.9], [tenth <= 0.9, twice <= 0.9]):
        with pytest.raises(fx.errors.FlexureError, match="different labels"):
            fx.tolerances(lag, {"u": "5 %"}, limits, 1.0, **options)
    band = [m.final("y") >= 0.6, m.final("y") <= 0.7]  # two objects, and the same numbers
    assert fx.tolerances(lag, {"u": "5 %"}, band, 1.0, **options).yield_rate == 1.0
    bound = np.array([0.6, np.nan])[1]
    with pytest.raises(fx.errors.FlexureError, match="NaN"):
        _ = m.final("y") <= bound


def test_samples_without_numbers_are_counted_in_the_text() -> None:
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    crossing = m.first_crossing("y", 0.6) <= 0.99
    drawn = {"u": (0.9, 1.1)}
    found = fx.tolerances(lag, drawn, crossing, 1.0, num_samples=32)
    missing = int(np.isnan(next(iter(found.values.values()))).sum())
    assert missing == len(found.failures) > 0
    assert not found.passed[list(found.failures)].any()
    assert f"{missing} samples have no numbers" in str(found)
