"""Norms and passivity indices are those of closed forms, of SciPy and of dense grids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import linalg, signal

import flexure as fx
from flexure.diagrams.checks.errors import FlexureError
from tests.support.tiers import by_tier, for_each


def ratio(above: Any, below: Any, **options: float) -> fx.LinearModel:
    """The model of a ratio of polynomials."""
    return fx.LinearModel.from_scipy(signal.TransferFunction(above, below, **options))


def random_model(seed: int, period: float | None, *, square: bool = False) -> fx.LinearModel:
    """A stable model with feedthrough, and unless sampled or square sometimes without."""
    rng = np.random.default_rng(seed)
    n, m, p = int(rng.integers(1, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    p = m if square else p
    A = rng.normal(size=(n, n))
    A -= (np.linalg.eigvals(A).real.max() + 10.0 ** rng.uniform(-3.0, 0.0)) * np.eye(n)
    parts = A, rng.normal(size=(n, m)), rng.normal(size=(p, n)), rng.normal(size=(p, m))
    if not square and seed % 2:
        parts = *parts[:3], np.zeros((p, m))
    if period is None:
        return fx.LinearModel.from_scipy(signal.StateSpace(*parts))
    sampled = signal.cont2discrete(parts, period)[:4]
    return fx.LinearModel.from_scipy(signal.StateSpace(*sampled, dt=period))


def grid(model: fx.LinearModel, *points: float) -> Any:
    """Frequencies over the whole range, with some more."""
    top = 1e4 if model.period is None else np.pi / model.period
    own = np.abs(model.poles.imag if model.period is None else np.angle(model.poles) / model.period)
    near = (own[:, np.newaxis] * (1.0 + np.linspace(-0.1, 0.1, 101))).ravel()
    some = [p for p in points if np.isfinite(p)]
    every = np.concatenate([[0.0], np.geomspace(1e-4, top, 2000), near])
    return np.unique(np.append(every[every <= top], some))


@for_each("seed", range(by_tier(fast=8, full=25)))
@for_each("period", [None, 0.1])
def test_norms_are_those_of_a_grid_and_of_a_gramian(seed: int, period: Any) -> None:
    model = random_model(seed, period)
    found = fx.norms(model)
    response = model.frequency_response(grid(model, found.peak_frequency))
    gains = np.linalg.norm(response, 2, axis=(1, 2))
    highest = max(gains.max(), 0.0 if period else np.linalg.norm(model.D, 2))
    assert found.is_stable
    assert highest <= found.peak_gain * (1.0 + 1e-9)
    assert found.h_infinity == found.peak_gain == pytest.approx(highest, rel=1e-9)
    if np.isfinite(found.peak_frequency):
        there = model.frequency_response(found.peak_frequency) @ found.input_direction
        assert np.linalg.norm(there) == pytest.approx(found.peak_gain, rel=1e-9)
        assert abs(np.vdot(found.output_direction, there)) == pytest.approx(found.peak_gain)
    if period is None and model.D.any():
        assert found.h2 == math.inf
        return
    # The other Gramian: energies of the responses to initial states.
    solve = linalg.solve_continuous_lyapunov if period is None else linalg.solve_discrete_lyapunov
    seen = solve(model.A.T, -model.C.T @ model.C if period is None else model.C.T @ model.C)
    energy = np.trace(model.B.T @ seen @ model.B) + np.sum(model.D**2)
    assert found.h2 == pytest.approx(math.sqrt(energy), rel=1e-8)


@pytest.mark.filterwarnings("ignore:.*converge.*:UserWarning")
def test_python_control_finds_the_same_norms() -> None:
    control = pytest.importorskip("control")
    for seed in range(0, by_tier(fast=20, full=100), 2):
        model = random_model(seed, None, square=True)
        system = control.ss(model.A, model.B, model.C, model.D)
        peak = control.norm(system, "inf", method="scipy", tol=1e-9)
        assert fx.norms(model).h_infinity == pytest.approx(peak, rel=1e-7)


def test_sharp_resonances_and_their_closed_forms() -> None:
    for damping in (0.3, 1e-3, 1e-7):
        found = fx.norms(ratio([1.0], [1.0, 2.0 * damping, 1.0]))
        assert found.peak_gain == pytest.approx(0.5 / damping / math.sqrt(1 - damping**2), rel=1e-6)
        assert found.h2 == pytest.approx(math.sqrt(0.25 / damping), rel=1e-6)
        assert found.peak_frequency == pytest.approx(math.sqrt(1 - 2 * damping**2), rel=1e-6)


def test_slow_poles_beside_fast_ones_keep_their_digits() -> None:
    parts = np.diag([-1e9, -1e-3]), np.ones((2, 1)), np.ones((1, 2)), np.zeros((1, 1))
    model = fx.LinearModel.from_scipy(signal.StateSpace(*parts))
    assert fx.norms(model).h_infinity == pytest.approx(1e3, rel=1e-10)


def test_norms_of_what_is_not_stable_are_infinite_and_peaks_are_not() -> None:
    growing = fx.norms(ratio([2.0], [1.0, -1.0]))
    assert not growing.is_stable
    assert (growing.h2, growing.h_infinity, growing.peak_gain) == (math.inf, math.inf, 2.0)
    swinging = fx.norms(ratio([1.0], [1.0, 0.0, 4.0]))
    assert swinging.peak_gain == math.inf
    assert swinging.peak_frequency == pytest.approx(2.0)
    assert np.isnan(swinging.input_direction).all()
    assert "peak gain   inf at 2 rad/s" in str(swinging)
    ledger = fx.LinearModel.from_scipy(
        signal.StateSpace(np.diag([-1.0, 0.0]), [[1.0], [0.0]], [[1.0, 0.0]], [[0.0]])
    )
    assert fx.norms(ledger).is_stable  # a hidden state that stays
    assert fx.norms(ledger).h2 == pytest.approx(math.sqrt(0.5))


@for_each("seed", range(by_tier(fast=4, full=12)))
@for_each("period", [None, 0.1])
def test_passivity_indices_are_those_of_a_grid(seed: int, period: Any) -> None:
    model = random_model(seed, period, square=True)
    found = fx.passivity_indices(model)
    places = grid(model, found.input_frequency, found.output_frequency)
    responses = model.frequency_response(places)
    if period is None:
        responses = np.concatenate([responses, model.D[np.newaxis].astype(complex)])
    for each, index in (
        (responses, found.input_index),
        (np.linalg.inv(responses), found.output_index),
    ):
        real = np.linalg.eigvalsh(0.5 * (each + each.conj().transpose(0, 2, 1)))
        assert real[:, 0].min() == pytest.approx(index, rel=1e-8, abs=1e-9)
    assert found.is_passive == (found.input_index >= 0.0)
    norm = fx.norms(model).h_infinity  # the sector of a gain
    for share in (0.999, 1.001):
        bounds = (-share * norm, share * norm)
        assert fx.passivity_indices(model, sector=bounds).is_passive is (share > 1.0)


def test_integrators_and_undamped_modes_are_passive_and_two_integrators_are_not() -> None:
    for above, below, passive in [
        ([1.0], [1.0, 0.0], True),
        ([1.0, 0.0], [1.0, 0.0, 1.0], True),
        ([1.0], [1.0, 0.0, 0.0], False),
        ([1.0], [1.0, 0.0, 1.0], False),
        ([1.0], [1.0, -1.0], False),  # Re G > 0 nowhere, and it grows
        ([1.0, 3.0], [1.0, -1.0], False),
    ]:
        assert fx.passivity_indices(ratio(above, below)).is_passive is passive, (above, below)
    double = fx.passivity_indices(ratio([1.0], [1.0, 0.0, 0.0]))
    assert double.input_index == double.output_index == -math.inf
    assert "passive       no" in str(double)


def test_the_circle_criterion_bounds_a_nonlinearity() -> None:
    """1/(s + 1)³ bears gains up to 8, and any nonlinearity of a sector up to -1/ν."""
    model = ratio([1.0], [1.0, 3.0, 3.0, 1.0])
    index = fx.passivity_indices(model).input_index
    # Re 1/(1 + jω)³ = cos³θ cos 3θ with ω = tan θ, least at θ = π/4.
    assert index == pytest.approx(-0.25, rel=1e-9)
    inside = fx.passivity_indices(ratio([1.0], [1.0, 1.0]), sector=(0.0, 1.0001))
    outside = fx.passivity_indices(ratio([1.0], [1.0, 1.0]), sector=(0.0, 0.9999))
    assert inside.is_passive
    assert not outside.is_passive
    assert "sector [0, 0.9999]" in str(outside)


def test_what_is_no_model_or_no_sector_is_refused() -> None:
    model = ratio([1.0], [1.0, 1.0])
    wide = random_model(1, None)
    assert wide.D.shape[0] != wide.D.shape[1]
    for call in (
        lambda: fx.norms("plant"),  # type: ignore[arg-type]
        lambda: fx.norms(fx.Integrator("plant")),  # type: ignore[arg-type]
        lambda: fx.norms(fx.linearize(fx.Integrator("plant"), None, [], [])),
        lambda: fx.passivity_indices(wide),
        lambda: fx.passivity_indices(model, sector=(1.0, 0.0)),
        lambda: fx.passivity_indices(model, sector=(-2.0, -1.0)),
        lambda: fx.passivity_indices(model, sector=(math.nan, 1.0)),
        lambda: fx.passivity_indices(model, sector=1.0),  # type: ignore[arg-type]
        lambda: fx.passivity_indices(ratio([2.0, 1.0], [1.0, 1.0]), sector=(0.0, 2.0)),
    ):
        with pytest.raises(FlexureError, match=r"Cannot (compute|linearize|evaluate|find)"):
            call()
