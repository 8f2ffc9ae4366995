"""Margins are those of closed forms and of python-control, and no sharp resonance hides any."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, signal

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError
from tests.support.tiers import by_tier, for_each

S = np.poly1d([1.0, 0.0])


def ratio(above: Any, below: Any, **options: float) -> fx.LinearModel:
    """The model of a ratio of polynomials."""
    system = signal.TransferFunction(np.atleast_1d(above), np.atleast_1d(below), **options)
    return fx.LinearModel.from_scipy(system)


def resonant(gain: float, damping: float) -> fx.LinearModel:
    """gain / (s (s² + 2 ζ s + 1)), in states that do not show the resonance at once."""
    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, -2.0 * damping]])
    turn, _ = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))
    model = ratio(1.0, S)
    return dataclasses.replace(
        model,
        A=turn.T @ A @ turn,
        B=turn.T @ np.array([[0.0], [0.0], [gain]]),
        C=np.eye(1, 3) @ turn,
        x0=np.zeros(3),
        xdot0=np.zeros(3),
    )


# Closed forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0.01, 2.0, 5.9])
def test_a_loop_of_three_lags_has_the_margins_of_the_textbook(k: float) -> None:
    found = fx.margins(ratio(k, S * (S + 1.0) * (S + 2.0)))  # L(j √2) = -k/6
    assert found.is_stable
    assert found.gain_margin == pytest.approx(6.0 / k, rel=1e-12)
    assert found.gain_frequency == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert found.gain_reduction == 0.0
    w = found.phase_frequency
    assert w * math.hypot(w, 1.0) * math.hypot(w, 2.0) == pytest.approx(k, rel=1e-12)
    angle = math.pi / 2.0 - math.atan(w) - math.atan(w / 2.0)
    assert found.phase_margin == pytest.approx(angle, rel=1e-10)
    assert found.delay_margin == pytest.approx(angle / w, rel=1e-10)
    assert found.delay_frequency == w


def test_an_integrator_has_the_margins_of_its_circle() -> None:
    found = fx.margins(ratio(3.0, S))
    assert (found.gain_margin, found.gain_reduction) == (math.inf, 0.0)
    assert math.isnan(found.gain_frequency)
    assert found.phase_margin == pytest.approx(math.pi / 2.0, rel=1e-14)
    assert found.delay_margin == pytest.approx(math.pi / 6.0, rel=1e-14)
    assert (found.modulus_margin, found.modulus_frequency) == (1.0, math.inf)
    assert found.disk_margin == pytest.approx(2.0, rel=1e-12)
    assert found.disk_phase_margin == pytest.approx(math.pi / 2.0, rel=1e-12)


def test_an_unstable_plant_that_is_held_may_lose_some_gain() -> None:
    found = fx.margins(ratio(10.0, (S - 1.0) * (S + 3.0)))  # L(0) = -10/3
    assert found.is_stable
    assert found.gain_reduction == pytest.approx(0.3, rel=1e-13)
    assert found.gain_margin == math.inf
    assert found.gain_margin_frequencies.tolist() == [0.0]


@pytest.mark.parametrize("gain", [0.5, -0.5])
def test_a_static_loop_has_gain_margins_only_with_the_wrong_sign(gain: float) -> None:
    A = np.zeros((0, 0))
    block = signal.StateSpace(A, np.zeros((0, 1)), np.zeros((1, 0)), [[gain]])
    found = fx.margins(fx.LinearModel.from_scipy(block))
    assert found.gain_margin == (math.inf if gain > 0.0 else 2.0)
    assert found.phase_margin == found.delay_margin == math.inf
    assert found.modulus_margin == pytest.approx(1.0 + gain)
    assert found.disk_margin == pytest.approx(2.0 * (1.0 + gain) / (1.0 - gain))


def test_what_happens_beyond_all_frequencies_counts() -> None:
    found = fx.margins(ratio(-0.5 * S, S + 1.0))
    assert found.gain_margins.tolist() == pytest.approx([2.0])
    assert found.gain_margin_frequencies.tolist() == [math.inf]
    assert not fx.margins(ratio(-S, S + 1.0)).is_stable  # 1 + L(∞) = 0


@pytest.mark.parametrize("gain", [-3.0, 1.0, 3.0])
def test_what_passes_all_frequencies_bears_no_delay(gain: float) -> None:
    for above, below in ((gain, [1.0]), (gain * S + gain, S + 2.0)):
        found = fx.margins(ratio(above, below))
        assert found.is_stable
        assert found.delay_margin == 0.0
        assert found.delay_frequency == np.inf
    sampled = ratio(gain, [1.0], dt=0.1)  # after one sample, z = -gain is a pole
    assert fx.margins(sampled).delay_margin == 0.1
    assert fx.margins(ratio(0.99, [1.0])).delay_margin == np.inf


@pytest.mark.parametrize("above", [20.0, 6.0001])
def test_an_unstable_loop_has_crossings_and_no_margins(above: float) -> None:
    found = fx.margins(ratio(above, S * (S + 1.0) * (S + 2.0)))
    assert not found.is_stable
    assert found.gain_margins == pytest.approx([6.0 / above])
    assert found.phase_margins[0] < 0.0
    figures = (found.gain_margin, found.phase_margin, found.delay_margin, found.disk_margin)
    assert np.isnan([*figures, found.gain_reduction, *found.disk_gain_margins]).all()
    assert str(found) == "closed loop     not stable, so it has no margins"


# Sharp resonances --------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [1e-2, 1e-4, 1e-6, 1e-8])
def test_the_sharpest_resonance_is_not_missed(damping: float) -> None:
    # Without the resonance the loop is 0.001/s. With it, |L| > 1 within a band of 1e-3 or less.
    found = fx.margins(resonant(1e-3, damping))
    peak = 1e-3 / (2.0 * damping)  # L(j) = -peak
    assert found.gain_margins == pytest.approx([1.0 / peak], rel=1e-6)
    assert found.gain_margin_frequencies == pytest.approx([1.0], rel=1e-12)
    assert found.is_stable == (peak < 1.0)
    assert len(found.phase_margins) == (1 if peak < 1.0 else 3)
    if peak > 1.0:
        first, low, high = found.phase_margin_frequencies
        assert first == pytest.approx(1e-3, rel=1e-5)
        x = np.sort(np.roots([1.0, 4.0 * damping**2 - 2.0, 1.0, -1e-6]).real)  # ω² of |L| = 1
        assert [low**2, high**2] == pytest.approx(x[1:], rel=1e-9)


def test_a_sharp_resonance_that_stays_stable_decides_the_distance() -> None:
    damping = 1e-7
    gain = 0.9 * 2.0 * damping
    found = fx.margins(resonant(gain, damping))
    assert found.is_stable
    assert found.gain_margin == pytest.approx(1.0 / 0.9, rel=1e-6)
    # Beside the resonance, L = -0.9 / (1 + j x): a circle through -0.9 around -0.45.
    assert found.modulus_margin == pytest.approx(0.1, rel=1e-5)
    assert found.disk_margin == pytest.approx(2.0 * 0.1 / 1.9, rel=1e-5)
    assert found.modulus_frequency == pytest.approx(1.0, rel=1e-9)


def test_poles_on_the_axis_are_no_crossings() -> None:
    found = fx.margins(ratio(0.1, S * (S**2 + 1.0)))
    assert found.gain_margins.tolist() == []
    assert len(found.phase_margins) == 3
    double = fx.margins(ratio([1.0, 1.0], S**2))
    assert (double.gain_reduction, double.gain_margin) == (0.0, math.inf)
    assert double.disk_margin == pytest.approx(2.0 / math.sqrt(5.0), rel=1e-9)


# Sampled loops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [0.1, 1e-4])
def test_a_sampled_integrator_is_limited_by_half_the_sampling_frequency(period: float) -> None:
    found = fx.margins(ratio(0.5, [1.0, -1.0], dt=period))  # 0.5 / (z - 1): L(-1) = -1/4
    assert found.gain_margin == pytest.approx(4.0, rel=1e-12)
    assert found.gain_frequency == math.pi / period
    w = 2.0 / period * math.asin(0.25)  # |z - 1| = 2 sin(ω T / 2) = 1/2
    assert found.phase_frequency == pytest.approx(w, rel=1e-9)
    # The argument of z - 1 is (π + ω T) / 2.
    assert found.phase_margin == pytest.approx((math.pi - w * period) / 2.0, rel=1e-9)
    assert found.delay_margin == pytest.approx(found.phase_margin / w, rel=1e-9)
    assert found.modulus_margin == pytest.approx(0.75, rel=1e-12)


def test_delays_of_samples_are_no_obstacle() -> None:
    found = fx.margins(ratio(0.2, [1.0, -1.0, 0.0, 0.0, 0.0], dt=0.01))
    w = np.linspace(1e-3, math.pi / 0.01, 400_000)
    z = np.exp(0.01j * w)
    curve = 0.2 / (z - 1.0) / z**3
    assert found.modulus_margin == pytest.approx(np.abs(1.0 + curve).min(), rel=1e-8)
    real = np.flatnonzero((np.diff(np.sign(curve.imag)) != 0) & (curve.real[1:] < 0.0))
    np.testing.assert_allclose(found.gain_margin_frequencies[: len(real)], w[real], rtol=1e-3)
    assert found.gain_margin == pytest.approx(-1.0 / curve.real[real[0]], rel=1e-3)


def test_the_wire_of_a_mechanism_has_the_margins_of_its_polynomials() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.PIDController("pid", kp=3.0, ki=2.0),
        fx.TransferFunction("plant", [1.0], [1.0, 2.0, 0.0]),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    found = fx.margins(fx.loop_gain(builder.build(), "plant.u"))
    again = fx.margins(ratio([3.0, 2.0], [1.0, 2.0, 0.0, 0.0]))
    assert found.phase_margin == pytest.approx(again.phase_margin, rel=1e-10)
    assert found.modulus_margin == pytest.approx(again.modulus_margin, rel=1e-9)


def test_hidden_states_may_drift_but_not_grow() -> None:
    model = ratio(1.0, S + 1.0)
    for growth, is_stable in [(0.0, True), (0.5, False)]:
        A = np.diag([-1.0, growth])
        hidden = dataclasses.replace(
            model, A=A, B=np.array([[1.0], [0.0]]), C=np.array([[1.0, 0.0]]), x0=np.zeros(2)
        )
        assert fx.margins(hidden).is_stable is is_stable


def test_loops_with_real_poles_only_and_with_fast_filters_are_searched_like_others() -> None:
    # 0.1 / (z² - 1): S is zero at both ends, and all poles lie on the real axis.
    found = fx.margins(ratio(0.1, [1.0, 0.0, -1.0], dt=0.1))
    z = np.exp(1j * np.linspace(1e-4, math.pi - 1e-4, 100_001))
    distance = np.abs(1.0 + 0.1 / (z**2 - 1.0)).min()
    assert found.modulus_margin == pytest.approx(distance, rel=1e-6)
    A = [[0.0, 1.0, 0.0], [0.0, -1e-3, 1.0], [0.0, 0.0, -1e8]]
    filtered = fx.LinearModel.from_scipy(
        signal.StateSpace(A, [[0.0], [0.0], [1e8]], [[1e-4, 0.0, 0.0]], [[0.0]])
    )
    w = math.sqrt((math.sqrt(1e-12 + 4e-8) - 1e-6) / 2.0)  # 1e-4 / (w |jw + 1e-3|) = 1
    assert fx.margins(filtered).phase_frequency == pytest.approx(w, rel=1e-9)
    assert fx.margins(filtered).phase_margin == pytest.approx(math.atan(1e-3 / w), rel=1e-4)


@pytest.mark.parametrize("hidden", [False, True], ids=["", "with a hidden state"])
@pytest.mark.parametrize("turned", [False, True], ids=["", "in turned states"])
def test_a_phase_that_comes_to_a_half_turn_from_above_does_not_cross_it(
    turned: bool, hidden: bool
) -> None:
    """Where real parts of L(jω) are negative is known from the polynomial Im N(jω) D(-jω)."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        order, integrators = int(rng.integers(3, 5)), int(rng.integers(0, 3))
        roots = -(10.0 ** rng.uniform(-1.0, 2.0, 2 * order))
        below = np.poly(np.append(np.zeros(integrators), roots[integrators:order]))
        above = 10.0 ** rng.uniform(0.0, 3.0) * np.poly(roots[order : 2 * order - 2])
        model = ratio(above, below)
        A, B, C = model.A, model.B, model.C
        if hidden:
            A = np.block([[A, np.zeros((order, 1))], [rng.normal(size=(1, order)), -np.ones(1)]])
            B, C = np.vstack([B, 0.3]), np.hstack([C, [[0.0]]])
        if turned:
            turn, _ = np.linalg.qr(rng.normal(size=(len(A), len(A))))
            A, B, C = turn.T @ A @ turn, turn.T @ B, C @ turn
        model = dataclasses.replace(model, A=A, B=B, C=C, x0=np.zeros(len(A)))
        numerator, denominator = (c * 1j ** np.arange(len(c))[::-1] for c in (above, below))
        along = np.roots(np.trim_zeros(np.polymul(numerator, denominator.conj()).imag, "f"))
        along = along[(along.real > 1e-6) & (np.abs(along.imag) < 1e-7 * np.abs(along))].real
        real = np.polyval(numerator, along) / np.polyval(denominator, along)
        found = fx.margins(model).gain_margin_frequencies
        found = found[(found > 0.0) & (found < np.inf)]
        np.testing.assert_allclose(found, np.sort(along[real.real < 0.0]), rtol=1e-3)


# Second routes -----------------------------------------------------------------------------------

RANDOM = range(by_tier(fast=5, full=12))


@pytest.mark.full
@pytest.mark.parametrize("seed", RANDOM)
@pytest.mark.filterwarnings("ignore:.*Falling back:UserWarning")
def test_python_control_finds_the_same(seed: int) -> None:
    control = pytest.importorskip("control")
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    poles = -rng.uniform(0.1, 3.0, n - 2 * (n // 2)).astype(complex)
    for _ in range(n // 2):
        pole = rng.uniform(0.5, 10.0) * np.exp(1j * rng.uniform(1.6, 3.1))
        poles = np.append(poles, [pole, pole.conj()])
    above = np.atleast_1d(np.poly(-rng.uniform(0.2, 4.0, n - 2)))
    below = np.poly(poles).real
    above = above * rng.uniform(0.5, 3.0) * below[-1] / above[-1]
    found = fx.margins(ratio(above, below))
    system = control.tf(above, below)
    gains, phases, distances, w_gains, w_phases, _ = control.stability_margins(
        system, returnall=True
    )
    order = np.argsort(w_gains)
    np.testing.assert_allclose(found.gain_margin_frequencies, w_gains[order], rtol=1e-6)
    np.testing.assert_allclose(found.gain_margins, gains[order], rtol=1e-6)
    order = np.argsort(w_phases)
    np.testing.assert_allclose(found.phase_margin_frequencies, w_phases[order], rtol=1e-6)
    np.testing.assert_allclose(np.degrees(found.phase_margins), phases[order], rtol=1e-6)
    if found.is_stable:
        nearest = min([1.0, *distances])
        assert found.modulus_margin == pytest.approx(nearest, rel=1e-6)
        omega = np.unique([*np.geomspace(1e-2, 1e2, 2000), found.disk_frequency])
        omega = omega[(omega > 0.0) & (omega < 1e6)]
        disk, _, phase = control.disk_margins(control.ss(system), omega, skew=0.0)
        assert found.disk_margin == pytest.approx(disk, rel=1e-3)
        assert found.disk_margin <= disk * (1.0 + 1e-9)
        assert math.degrees(found.disk_phase_margin) == pytest.approx(phase, rel=1e-3)


@for_each("seed", RANDOM)
@for_each("period", [None, 0.05])
def test_at_the_margins_the_closed_loop_is_at_its_boundary(seed: int, period: Any) -> None:
    rng = np.random.default_rng(100 + seed)
    A = rng.normal(size=(5, 5)) - 2.5 * np.eye(5)
    B, C = rng.normal(size=(5, 1)), 3.0 * rng.normal(size=(1, 5))
    model = fx.LinearModel.from_scipy(signal.StateSpace(A, B, C, [[0.0]]))
    if period is not None:
        sampled = signal.cont2discrete((A, B, C, [[0.0]]), period)
        model = fx.LinearModel.from_scipy(signal.StateSpace(*sampled[:4], dt=period))
    found = fx.margins(model)
    for k, w in zip(found.gain_margins, found.gain_margin_frequencies, strict=True):
        poles = np.linalg.eigvals(model.A - k * model.B @ model.C)
        edge = 1j * w if period is None else np.exp(1j * w * period)
        assert np.abs(poles - edge).min() < 1e-7
    for angle, w in zip(found.phase_margins, found.phase_margin_frequencies, strict=True):
        turned = np.exp(-1j * angle) * model.frequency_response(w)
        assert abs(turned.item() + 1.0) < 1e-9
    if found.is_stable:
        w = np.geomspace(1e-3, 1e3 if period is None else math.pi / period, 3000)
        curve = model.frequency_response(w)[:, 0, 0]
        lowest = np.abs(1.0 + curve).min()
        assert found.modulus_margin <= lowest * (1.0 + 1e-9)
        assert found.modulus_margin == pytest.approx(lowest, rel=1e-3)
        disk = (2.0 * np.abs(1.0 + curve) / np.abs(1.0 - curve)).min()
        assert found.disk_margin == pytest.approx(disk, rel=1e-3)


# Several wires -----------------------------------------------------------------------------------


def satellite(a: float) -> fx.Diagram:
    """A spinning satellite, each of whose axes is held by feedback of its own rate."""
    builder = fx.DiagramBuilder("satellite")
    builder.add_all(
        fx.StateSpace("plant", [[0.0, a], [-a, 0.0]], np.eye(2), [[1.0, a], [-a, 1.0]]),
        fx.Gain("controller", [-1.0, -1.0]),
    )
    builder.connect_chain("plant", "controller", "plant")
    return builder.build()


@pytest.mark.parametrize("a", [0.3, 10.0])
def test_each_loop_of_a_spinning_satellite_is_robust_and_both_together_are_not(a: float) -> None:
    """S - I/2 = I/2 - (I + a J) / (s + 1) is normal, so μ is its largest eigenvalue."""
    diagram = satellite(a)
    found = fx.margins(fx.loop_gain(diagram, "plant.u"))
    w = np.linspace(0.0, 12.0, 400_001)
    mu = np.sqrt((0.25 + (w / 2.0 + a) ** 2) / (1.0 + w**2))
    distance = (np.abs(1.0 - (1.0 + 1j * a) / (1.0 + 1j * np.concatenate([w, -w])))).max()
    assert found.disk_margin == pytest.approx(1.0 / mu.max(), rel=1e-8)
    assert found.worst_disk_margin == pytest.approx(found.disk_margin, rel=1e-8)
    assert found.modulus_margin == pytest.approx(1.0 / distance, rel=1e-8)
    peak = fx.norms(fx.complementary_sensitivity(diagram, "plant.u")).h_infinity
    assert peak == pytest.approx(math.hypot(1.0, a), rel=1e-12)
    assert found.wires == ("plant.u[0]", "plant.u[1]")
    for k, loop in enumerate(found.loops):
        assert loop.disk_margin == pytest.approx(2.0, rel=1e-9)  # 1/s
        assert loop.gain_margin == math.inf
        own = fx.margins(fx.loop_gain(diagram, f"plant.u[{k}]"))
        assert own.disk_margin == pytest.approx(loop.disk_margin, rel=1e-12)
        assert own.phase_margin == pytest.approx(found.phase_margin, rel=1e-12)
    text = str(found)
    assert "stable, 2 wires" in text
    assert "at 'plant.u[1]'  gain 1, phase" in text


def several_loops(seed: int, period: float | None) -> fx.LinearModel:
    """A random stable loop gain of two to five wires."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(2, 6))
    A = rng.normal(size=(n, n)) - 3.0 * np.eye(n)
    B, C = rng.normal(size=(n, m)), rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-0.5, 0.5)
    D = 0.2 * rng.normal(size=(m, m))
    if period is None:
        return fx.LinearModel.from_scipy(signal.StateSpace(A, B, C, D))
    return fx.LinearModel.from_scipy(
        signal.StateSpace(*signal.cont2discrete((A, B, C, D), period)[:4], dt=period)
    )


@for_each("seed", range(by_tier(fast=3, full=8)))
@for_each("period", [None, 0.05])
def test_factors_within_the_disk_keep_loops_stable_and_the_worst_ones_do_not(
    seed: int, period: Any
) -> None:
    model = several_loops(200 + seed, period)
    found = fx.margins(model)
    m = len(model.D)
    if not found.is_stable:
        assert np.isnan(
            [found.disk_margin, found.modulus_margin, *np.abs(found.worst_factors)]
        ).all()
        assert found.loops == ()
        return
    rng = np.random.default_rng(seed)
    for _ in range(100):  # on the border of the disk of 2 (f - 1) / (f + 1), as everywhere inside
        change = 0.999 * found.disk_margin * np.exp(1j * rng.uniform(-np.pi, np.pi, m))
        F = np.diag((1.0 + 0.5 * change) / (1.0 - 0.5 * change))
        back = np.linalg.solve(np.eye(m) + F @ model.D, F @ model.C)
        poles = np.linalg.eigvals(model.A - model.B @ back)
        assert (poles.real.max() if period is None else np.abs(poles).max() - 1.0) < 0.0
    assert found.disk_margin <= found.worst_disk_margin * (1.0 + 1e-9)
    if m <= 3:
        assert found.worst_disk_margin == pytest.approx(found.disk_margin, rel=1e-6)
    changes = 2.0 * (found.worst_factors - 1.0) / (found.worst_factors + 1.0)
    if np.isfinite(changes).all() and np.isfinite(found.disk_frequency):
        np.testing.assert_allclose(np.abs(changes), found.worst_disk_margin, rtol=1e-6)
        there = np.eye(m) + model.frequency_response(found.disk_frequency) * found.worst_factors
        assert np.linalg.svd(there, compute_uv=False)[-1] < 1e-7
        np.testing.assert_allclose(found.worst_gains, np.abs(found.worst_factors))
    # The least upper bound on a grid, minimized without slopes.
    top = 2.0 * np.pi if period is None else np.pi / period
    grid = np.append(np.geomspace(1e-2, top, 12), np.clip(found.disk_frequency, 0.0, top))
    for w in grid:
        S = np.linalg.inv(np.eye(m) + model.frequency_response(w)) - 0.5 * np.eye(m)

        def bound(x: Any, S: Any = S) -> float:
            d = np.exp(np.append(x, 0.0))
            return float(np.linalg.norm(S * d[:, np.newaxis] / d, 2))

        least = optimize.minimize(bound, np.zeros(m - 1), method="Nelder-Mead").fun
        assert 1.0 / least >= found.disk_margin * (1.0 - 1e-4)
        if w == found.disk_frequency:
            assert 1.0 / least == pytest.approx(found.disk_margin, rel=1e-3)


@pytest.mark.full
def test_python_control_finds_the_same_disk_margins_of_several_wires() -> None:
    pytest.importorskip("slycot", reason="slycot, which computes μ, is missing")
    control = pytest.importorskip("control")
    compared = 0
    for seed in range(100):
        loop = several_loops(seed, None)
        found = fx.margins(loop)
        if not found.is_stable:
            continue
        places = np.append(np.geomspace(1e-2, 1e3, 60), np.clip(found.disk_frequency, 1e-6, 1e6))
        disk, *_ = control.disk_margins(loop.to_control(), np.sort(places), skew=0.0)
        assert found.disk_margin == pytest.approx(disk, rel=2e-3)
        assert found.disk_margin <= disk * (1.0 + 1e-4)
        compared += 1
    assert compared > 40


@for_each("seed", range(by_tier(fast=2, full=20)))
@for_each("period", [None, 0.05])
def test_the_disk_margin_of_two_wires_is_that_of_a_minimax_by_scipy(seed: int, period: Any) -> None:
    """μ of two changes is the least over one scale of a largest singular value."""
    model = several_loops(600 + seed, period)
    pair = dataclasses.replace(
        model,
        B=model.B[:, :2],
        C=model.C[:2],
        D=model.D[:2, :2],
        u0=model.u0[:2],
        y0=model.y0[:2],
        input_names=model.input_names[:2],
        output_names=model.output_names[:2],
    )
    found = fx.margins(pair)
    if not found.is_stable:
        return
    unit = np.eye(2)

    def bound(w: float) -> float:
        M = np.linalg.inv(unit + pair.frequency_response(w)) - 0.5 * unit

        def largest(x: float) -> float:
            scales = np.array([1.0, np.exp(x)])
            return float(np.linalg.norm(M * scales[:, np.newaxis] / scales, 2))

        return float(
            optimize.minimize_scalar(largest, bounds=(-9.0, 9.0), options={"xatol": 1e-10}).fun
        )

    end = 1e3 if period is None else math.pi / period
    grid = np.geomspace(1e-3, end, 200)
    sizes = [bound(w) for w in grid]
    k = int(np.argmax(sizes))
    near = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    top = -optimize.minimize_scalar(lambda w: -bound(w), bounds=near, options={"xatol": 1e-9}).fun
    highest = max(top, *sizes, bound(0.0))
    assert found.disk_margin <= (1.0 + 1e-8) / highest
    if 1e-2 < found.disk_frequency < 0.9 * end:
        assert found.disk_margin == pytest.approx(1.0 / highest, rel=1e-8)


def test_a_real_system_with_the_worst_gains_and_phases_is_at_its_boundary() -> None:
    """All-passes g (b - s) / (b + s) have these phases at the frequency of the margin."""
    model = fx.loop_gain(satellite(2.0), ["plant.u[0]", "plant.u[1]"])
    found = fx.margins(model)
    w, (g1, g2), phases = found.disk_frequency, found.worst_gains, found.worst_phases
    lags = np.where(phases > 0.0, phases - np.pi, phases)  # and -g where a phase leads
    b, g = w / np.tan(-lags / 2.0), np.where(phases > 0.0, -1.0, 1.0) * [g1, g2]
    A = np.block(
        [[model.A - model.B @ np.diag(-g) @ model.C, np.zeros((2, 2))], [np.zeros((2, 4))]]
    )
    A[:2, 2:] = -model.B @ np.diag(2.0 * b)  # f = g (-1 + 2 b / (s + b))
    A[2:, :2], A[2:, 2:] = np.diag(g) @ model.C, -np.diag(b)
    assert np.abs(np.linalg.eigvals(A) - 1j * w).min() < 1e-7


def test_loops_that_are_stable_one_by_one_may_be_unstable_together() -> None:
    lag = signal.StateSpace(-np.eye(2), np.eye(2), [[1.0, 3.0], [3.0, 1.0]], np.zeros((2, 2)))
    model = fx.LinearModel.from_scipy(lag)  # eigenvalues 4 / (s + 1) and -2 / (s + 1)
    assert all(fx.margins(ratio(1.0, S + 1.0)).is_stable for _ in range(2))
    found = fx.margins(model)
    assert not found.is_stable
    assert math.isnan(found.disk_margin)
    assert str(found).startswith("closed loop     not stable")
    fast = dataclasses.replace(model, D=-np.eye(2))  # I + L(∞) = 0
    assert not fx.margins(fast).is_stable


def test_static_loops_at_several_wires_have_the_margins_of_a_matrix() -> None:
    gains = np.array([[0.5, 0.2], [-0.1, 0.3]])
    empty = np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0))
    found = fx.margins(fx.LinearModel.from_scipy(signal.StateSpace(*empty, gains)))
    S = np.linalg.inv(np.eye(2) + gains)
    assert found.modulus_margin == pytest.approx(1.0 / np.linalg.norm(S, 2), rel=1e-12)
    assert np.linalg.det(np.eye(2) + gains * found.worst_factors) == pytest.approx(0.0, abs=1e-9)
    passive = fx.margins(fx.LinearModel.from_scipy(signal.StateSpace(*empty, np.eye(2))))
    assert passive.disk_margin == passive.worst_disk_margin == np.inf  # S = 1/2 everywhere
    np.testing.assert_allclose(passive.worst_factors, -1.0)


def test_changes_at_infinite_frequency_are_infinite() -> None:
    lags = np.diag([-1.0, -3.0]), np.eye(2), np.diag([1.0, 2.0]), np.zeros((2, 2))
    found = fx.margins(fx.LinearModel.from_scipy(signal.StateSpace(*lags)))
    assert found.disk_margin == pytest.approx(2.0)
    assert found.disk_frequency == math.inf
    assert np.isinf(found.worst_gains).any()
    assert not (found.worst_gains[np.isfinite(found.worst_gains)] > 1e9).any()
    assert "gain inf, phase 0°" in str(found)


# What is refused ---------------------------------------------------------------------------------


def test_the_result_prints_all_and_stays_as_it_is() -> None:
    found = fx.margins(ratio(2.0, S * (S + 1.0) * (S + 2.0)))
    assert "phase margin    32.61° at 0.7494 rad/s" in str(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.disk_margin = 1.0  # type: ignore[misc]


def test_no_loop_gain_is_refused() -> None:
    model = ratio([1.0], [1.0, 1.0])
    both = dataclasses.replace(model, C=np.ones((2, 1)), D=np.zeros((2, 1)))
    with pytest.raises(ValueRefusedError, match=r"as many inputs as outputs.*plant\.y\[1\]"):
        fx.margins(both)
    empty = np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0))
    stuck = signal.StateSpace(*empty, [[-1.0, 1.0], [1.0, 0.0]])
    with pytest.raises(EvaluationError, match=r"'u\[1\]' open: their gain is -1"):
        fx.margins(fx.LinearModel.from_scipy(stuck))
    with pytest.raises(ValueRefusedError, match="LinearModel"):
        fx.margins("plant")  # type: ignore[arg-type]
