"""Limit cycles of sampled loops against difference equations that are written out here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, signal

import flexure as fx
from tests.support.tiers import by_tier

T = 0.25
PLANTS: dict[str, tuple[list[float], list[float]]] = {
    "integrator": ([1.0], [1.0, 2.0, 1.0, 0.0]),
    "lags": ([3.0], [1.0, 3.0, 3.0, 1.0]),
}


def loop(plant: str, held: str, on: float, off: float, target: float = 0.0) -> fx.Diagram:
    """A relay with a hold in front of or behind it, and a plant with negative feedback."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", target),
        fx.Sum("error", "+-"),
        fx.Relay("relay", 0.05, -0.1, on_value=on, off_value=off),
        fx.ZeroOrderHold("hold", T),
        fx.TransferFunction("plant", *PLANTS[plant]),
    )
    builder.connect("target.y", "error.u1")
    blocks = ("hold", "relay") if held == "input" else ("relay", "hold")
    builder.connect_chain("error", *blocks, "plant", "error.u2")
    return builder.build()


def difference_equation(plant: str) -> tuple[Any, Any, Any]:
    """The plant behind a hold."""
    A, B, C, _, _ = signal.cont2discrete((*signal.tf2ss(*PLANTS[plant]),), T)
    return A, B[:, 0], C[0]


def cycles_of_runs(
    plant: str, on: float, off: float, target: float, starts: int
) -> set[tuple[int, int, float, float]]:
    """Samples on and in all, amplitude and mean of cycles that runs reach from random states."""
    A, B, C = difference_equation(plant)
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(starts):
        x, is_on, history = rng.normal(size=len(A)) * 10.0 ** rng.uniform(-2.0, 1.0), False, []
        for _ in range(6000):
            e = target - C @ x
            is_on = e >= 0.05 or (is_on and e > -0.1)
            history.append((e, is_on))
            x = A @ x + B * (on if is_on else off)
        errors, modes = (np.array(each) for each in zip(*history[-800:], strict=True))
        rises = np.flatnonzero(~modes[:-1] & modes[1:]) + 1
        count = int(rises[-1] - rises[-2])
        cycle = errors[rises[-2] : rises[-1]]
        if count > 200 or np.abs(errors[-count:] - errors[-2 * count : -count]).max() > 1e-9:
            continue
        size = abs(np.fft.fft(cycle)[1]) * 2.0 / count
        length = int(modes[rises[-2] : rises[-1]].sum())
        found.add((length, count, round(size, 7), round(float(cycle.mean()), 7)))
    return found


@pytest.mark.parametrize("held", ["input", pytest.param("output", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("plant", "on", "off", "target"),
    [
        ("lags", 3.0, 0.0, 2.0),
        pytest.param("lags", 2.0, -1.0, 0.5, marks=pytest.mark.full),
        pytest.param("integrator", 1.0, -1.0, 0.0, marks=pytest.mark.full),
    ],
)
def test_sampled_relays_have_the_cycles_of_their_difference_equation(
    plant: str, on: float, off: float, target: float, held: str
) -> None:
    system = loop(plant, held, on, off, target)
    found = fx.limit_cycles(system, "relay", [0.3, 4.0], period=T)
    assert found.is_confirmed.all()
    assert found.is_stable.all()
    periods = 2.0 * np.pi / (found.frequencies * T)
    np.testing.assert_allclose(periods, np.round(periods), rtol=1e-12)
    runs = cycles_of_runs(plant, on, off, target, by_tier(fast=10, full=100))
    assert runs
    for _, count, size, mean in runs:
        near = (np.round(periods) == count) & np.isclose(found.amplitudes, size, rtol=1e-6)
        if plant == "lags":  # behind an integrator, any mean of a range is possible
            near &= np.isclose(found.biases, mean, rtol=1e-6, atol=1e-6)
        assert near.any(), (count, size, mean, found)
    np.testing.assert_allclose(found.simulated_frequencies, found.frequencies)
    np.testing.assert_allclose(found.simulated_amplitudes, found.amplitudes, rtol=1e-2)


def saturated(gain: float, period: float) -> fx.Diagram:
    """A sampled gain that saturates, with the plant 1 / (s + 1)³."""
    builder = fx.DiagramBuilder("saturated")
    builder.add_all(
        fx.Gain("minus", -gain),
        fx.ZeroOrderHold("hold", period),
        fx.Saturation("limit", -1.0, 1.0),
        fx.TransferFunction("plant", [1.0], [1.0, 3.0, 3.0, 1.0]),
    )
    builder.connect_chain("minus", "hold", "limit", "plant", "minus")
    return builder.build()


@pytest.mark.full
def test_sampled_saturations_balance_with_the_response_of_the_sampled_plant() -> None:
    period, gain = 0.2, 12.0
    found = fx.limit_cycles(
        saturated(gain, period), "limit", np.geomspace(0.5, 50.0, 25), period=period
    )
    assert len(found) == 1
    lags = signal.tf2ss([1.0], [1.0, 3.0, 3.0, 1.0])
    A, B, C, D, _ = signal.cont2discrete(lags, period)

    def response(w: float) -> complex:
        z = np.exp(1j * w * period)
        return complex((C @ np.linalg.solve(z * np.eye(3) - A, B) + D).item())

    omega = optimize.brentq(lambda w: response(w).imag, 1.0, 2.0, xtol=1e-14)

    def balance(a: float) -> float:
        slope = 2.0 / np.pi * (np.arcsin(1.0 / a) + np.sqrt(1.0 - 1.0 / a**2) / a)
        return float(slope + 1.0 / (gain * response(omega).real))

    amplitude = optimize.brentq(balance, 1.0 + 1e-9, 50.0, xtol=1e-13)
    assert found.frequencies == pytest.approx([omega], rel=1e-6)
    assert found.amplitudes == pytest.approx([amplitude], rel=1e-6)
    assert found.is_stable.all()
    assert found.is_confirmed.all()
    x, samples = np.full(3, 0.1), []
    for _ in range(6000):
        samples.append(-gain * (C @ x).item())
        x = A @ x + B[:, 0] * np.clip(samples[-1], -1.0, 1.0)
    turns = np.exp(-1j * found.simulated_frequencies[0] * period * np.arange(4000))
    fitted = 2.0 * abs(np.mean(turns * samples[2000:]))
    assert found.simulated_amplitudes[0] == pytest.approx(fitted, rel=1e-2)


def test_that_cycles_with_several_times_on_are_not_looked_for_is_said() -> None:
    A, B, C, _, _ = signal.cont2discrete(signal.tf2ss(*PLANTS["lags"]), 0.42)
    x, is_on, modes = np.ones(3), False, []
    for _ in range(2000):
        e = -(C @ x).item()
        is_on = e >= 0.1 or (is_on and e > -0.1)
        modes.append(is_on)
        x = A @ x + B[:, 0] * (0.5 if is_on else -1.5)
    assert modes[-1000:-25] == modes[-975:]
    assert np.sum(np.diff(np.array(modes[-26:], dtype=int)) > 0) == 2
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.Relay("relay", 0.1, -0.1, on_value=0.5, off_value=-1.5),
        fx.ZeroOrderHold("hold", 0.42),
        fx.TransferFunction("plant", *PLANTS["lags"]),
    )
    builder.connect_chain("minus", "relay", "hold", "plant", "minus")
    found = fx.limit_cycles(builder.build(), "relay", [0.01, 50.0], period=0.42)
    assert not len(found)
    assert "cycles in which 'relay' switches on more than once are not looked for" in found.notes


def test_a_delay_that_interpolates_between_samples_moves_the_relay() -> None:
    builder, period = fx.DiagramBuilder("delayed"), 0.2
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.Relay("relay", 0.1, -0.1, on_value=1.0, off_value=-1.0),
        fx.ZeroOrderHold("hold", period),
        fx.TransferFunction("plant", *PLANTS["lags"]),
        fx.TimeDelay("late", 2.0 * period, period),
    )
    builder.connect_chain("minus", "relay", "hold", "plant", "late", "minus")
    found = fx.limit_cycles(builder.build(), "relay", [0.01, 50.0], period=period)
    A, B, C, _, _ = signal.cont2discrete(signal.tf2ss(*PLANTS["lags"]), period)
    x, is_on, outputs, modes = np.zeros(3), False, [0.0, 0.0], []
    for _ in range(2000):
        outputs.append((C @ x).item())
        is_on = -outputs[-3] >= 0.1 or (is_on and -outputs[-3] > -0.1)
        modes.append(is_on)
        x = A @ x + B[:, 0] * (1.0 if is_on else -1.0)
    first, last = (np.flatnonzero(np.diff(np.array(modes, dtype=int)) > 0) + 1)[-2:]
    size = abs(np.fft.fft(outputs[first:last])[1]) * 2.0 / (last - first)
    near = np.isclose(found.frequencies, 2.0 * np.pi / (period * (last - first)))
    assert found.amplitudes[near] == pytest.approx([size], rel=1e-6)
    assert found.is_confirmed.all()


@pytest.mark.full
def test_a_cycle_from_which_motions_grow_without_bounds_is_left_on_both_sides() -> None:
    builder = fx.DiagramBuilder("dead")
    builder.add_all(
        fx.Gain("minus", -12.0),
        fx.ZeroOrderHold("hold", 0.2),
        fx.DeadZone("slack", -0.3, 0.3),
        fx.TransferFunction("plant", [1.0], [1.0, 3.0, 3.0, 1.0]),
    )
    builder.connect_chain("minus", "hold", "slack", "plant", "minus")
    found = fx.limit_cycles(builder.build(), "slack", np.geomspace(0.4, 2.0, 10), period=0.2)
    assert found.is_stable.tolist() == [False]
    assert found.is_confirmed.tolist() == [True]
    assert not found.notes


@pytest.mark.full
def test_cycles_of_many_samples_are_those_of_harmonic_balance() -> None:
    """With a short period, the hold is a delay of half a period and more."""
    found = fx.limit_cycles(
        third_order_relay(0.01), "relay", np.geomspace(0.2, 2.0, 12), period=0.01
    )
    assert len(found) == 1
    assert found.is_stable.all()
    assert found.is_confirmed.all()
    assert 2.0 * np.pi / (0.01 * found.frequencies[0]) > 200.0
    assert found.simulated_frequencies == pytest.approx(found.frequencies, rel=0.03)


def third_order_relay(period: float) -> fx.Diagram:
    """A sampled relay with hysteresis and the plant 1 / (s (s + 1)²)."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.Relay("relay", 0.1, -0.1, on_value=1.0, off_value=-1.0),
        fx.ZeroOrderHold("hold", period),
        fx.TransferFunction("plant", [1.0], [1.0, 2.0, 1.0, 0.0]),
    )
    builder.connect_chain("minus", "relay", "hold", "plant", "minus")
    return builder.build()


def test_loops_that_are_not_sampled_at_the_block_are_refused() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.Relay("relay", 0.1, -0.1, on_value=1.0, off_value=-1.0),
        fx.TransferFunction("plant", [1.0], [1.0, 2.0, 1.0, 0.0]),
    )
    builder.connect_chain("minus", "relay", "plant", "minus")
    with pytest.raises(fx.errors.EvaluationError, match="both of which move between them"):
        fx.limit_cycles(builder.build(), "relay", [0.2, 1.0], period=0.1)
    with pytest.raises(fx.errors.EvaluationError, match="Pass period="):
        fx.limit_cycles(third_order_relay(0.1), "relay", [0.2, 1.0])
    with pytest.raises(fx.errors.ValueRefusedError, match="period"):
        fx.limit_cycles(third_order_relay(0.1), "relay", [0.2, 1.0], period=0.0)
    with pytest.raises(fx.errors.EvaluationError, match="whole number of times"):
        fx.limit_cycles(third_order_relay(0.1), "relay", [0.2, 1.0], period=0.15)


@pytest.mark.parametrize("order", [("adc", "relay", "hold"), ("relay", "adc", "hold")])
def test_samplers_of_other_periods_beside_the_block_are_refused(order: tuple[str, ...]) -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.ZeroOrderHold("adc", 0.05),
        fx.Relay("relay", 0.1, -0.1, on_value=1.0, off_value=-1.0),
        fx.ZeroOrderHold("hold", 0.1),
        fx.TransferFunction("plant", [1.0], [1.0, 1.0, 0.0]),
    )
    builder.connect_chain("minus", *order, "plant", "minus")
    with pytest.raises(fx.errors.EvaluationError, match=r"'adc', which samples every 0.05 s"):
        fx.limit_cycles(builder.build(), "relay", [0.2, 1.0], period=0.1)


@pytest.mark.full
def test_cycles_of_an_unstable_plant_are_left() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("minus", -1.0),
        fx.Relay("relay", 0.05, -0.05, on_value=1.0, off_value=-1.0),
        fx.ZeroOrderHold("hold", 0.1),
        fx.TransferFunction("plant", [1.0], [1.0, 1.7, -0.6]),
    )
    builder.connect_chain("minus", "relay", "hold", "plant", "minus")
    found = fx.limit_cycles(builder.build(), "relay", [0.01, 1.5], period=0.1)
    assert len(found) == 4
    assert not found.is_stable.any()
    assert found.is_confirmed.all()
    found.plot()
