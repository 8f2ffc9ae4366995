"""Noise: reproducible from its seed, and of the moments that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import flexure as fx
from flexure.blocks.signals.noise import BandLimitedNoise, Noise
from flexure.blocks.signals.random_numbers import normal_quantile, uniform
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.updates import run_updates
from tests.support.tiers import for_each


def run_events(context: Any, trigger: type) -> None:
    """Run the updates of a noise block that have a trigger of a kind."""
    due = [event for event in context.system.events if isinstance(event.trigger, trigger)]
    run_updates((context, event) for event in due)


def samples(noise: Any, count: int, context: Any = None) -> Any:
    context = noise.create_default_context() if context is None else context
    found = []
    for _ in range(count):
        found.append(noise.y(context))
        run_events(context, fx.diagrams.Periodic)
    return np.array(found)


def test_noise_is_sampled_at_the_instants_of_all_blocks_with_its_period() -> None:
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(Noise("noise", 3, 0.01), fx.ZeroOrderHold("hold", period=0.01))
    builder.connect_chain("noise", "hold")
    result = fx.simulate(builder.build(), 4.0)
    after, before = slice(0, None, 2), slice(1, None, 2)  # the ends of 400 stretches
    for ends in (after, before):
        np.testing.assert_array_equal(result["noise.index"][ends], np.arange(1.0, 401.0))
    np.testing.assert_array_equal(result["hold.x"][after][1:], result["noise.sample"][before][:-1])


def test_sample_of_noise_depends_on_the_seed_and_its_number_alone() -> None:
    noise = Noise("noise", seed=5, period=0.1, mean=2.0, standard_deviation=3.0, size=2)
    for k, sample in enumerate(samples(noise, 5)):
        drawn = normal_quantile(uniform(5.0, np.array([2.0 * k, 2.0 * k + 1.0])))
        np.testing.assert_allclose(sample, 2.0 + 3.0 * drawn)


def test_noise_of_a_run_that_is_split_or_cloned_or_saved_is_the_same() -> None:
    noise = Noise("noise", seed=1, period=0.1)
    whole = samples(noise, 20)
    context = noise.create_default_context()
    np.testing.assert_array_equal(samples(noise, 8, context), whole[:8])
    for twin in (context.clone(), noise.context_from_dict(context.to_dict()), context):
        run_events(twin, fx.diagrams.Initialization)
        np.testing.assert_array_equal(samples(noise, 12, twin), whole[8:])


def test_new_seed_counts_from_the_initialization() -> None:
    noise = Noise("noise", seed=1, period=0.1)
    context = noise.create_default_context()
    noise.seed.set(context, 2)
    run_events(context, fx.diagrams.Initialization)
    np.testing.assert_array_equal(samples(noise, 5, context), samples(Noise("other", 2, 0.1), 5))


def test_seed_that_is_no_integer_is_refused_when_it_is_used() -> None:
    noise = Noise("noise", seed=1, period=0.1)
    context = noise.create_default_context()
    noise.seed.set(context, 1.5)
    with pytest.raises(ValueRefusedError, match=r"integer as the seed; found 1\.5"):
        run_events(context, fx.diagrams.Periodic)


def test_a_seed_that_becomes_no_integer_during_a_native_run_is_refused_alike() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(Noise("noise", 1, 0.1), fx.FirstOrderLag("lag", 0.5))
    builder.connect_chain("noise", "lag")
    diagram = builder.build()
    for compiled in (False, True):
        simulator = fx.Simulator(diagram, compiled=compiled)
        simulator.advance_to(0.45)
        simulator.context.set("noise.seed", 1.5)
        with pytest.raises(ValueRefusedError, match=r"integer as the seed; found 1\.5"):
            simulator.advance_to(1.0)


def test_random_contexts_have_noise_of_their_own_and_reproducibly() -> None:
    noise = Noise("noise", seed=1, period=0.1)
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    seeds = [float(noise.seed(noise.create_random_context(rng))) for _ in range(5)]
    assert len(set(seeds)) == 5
    assert seeds == [float(noise.seed(noise.create_random_context(again))) for _ in range(5)]


@pytest.mark.full
@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_noise_has_the_declared_moments_and_is_white(distribution: Any) -> None:
    noise = Noise("noise", 11, 0.1, [1.0, -1.0], [0.5, 2.0], distribution=distribution)
    w = (samples(noise, 4000) - [1.0, -1.0]) / [0.5, 2.0]
    spread = 4.0 / np.sqrt(4000)
    np.testing.assert_allclose(np.mean(w, axis=0), 0.0, atol=spread)
    np.testing.assert_allclose(np.var(w, axis=0), 1.0, atol=1.5 * spread)
    np.testing.assert_allclose(np.mean(w[1:] * w[:-1], axis=0), 0.0, atol=spread)
    np.testing.assert_allclose(np.mean(w[:, 0] * w[:, 1]), 0.0, atol=spread)
    kurtosis = {"gaussian": 3.0, "uniform": 1.8}[distribution]
    np.testing.assert_allclose(np.mean(w**4, axis=0), kurtosis, rtol=0.15)


def test_uniform_noise_fills_its_interval_and_stays_inside() -> None:
    noise = Noise("noise", 2, 0.1, 10.0, 2.0, distribution="uniform")
    found = samples(noise, 2000)
    bound = 2.0 * np.sqrt(3.0)
    assert 10.0 - bound <= found.min() < 10.0 - 0.99 * bound
    assert 10.0 + 0.99 * bound < found.max() <= 10.0 + bound


@pytest.mark.full
def test_noise_of_a_spectral_density_has_it() -> None:
    noise = Noise.from_spectral_density("noise", seed=4, period=0.01, density=0.3)
    _, one_sided = scipy.signal.periodogram(samples(noise, 4096)[:, 0], fs=100.0)
    np.testing.assert_allclose(np.mean(one_sided[1:-1]), 2.0 * 0.3, rtol=0.1)


# Noise of a bandwidth -------------------------------------------------------------------------


@pytest.mark.full
def test_noise_of_a_bandwidth_has_the_spectrum_of_a_lag() -> None:
    density, bandwidth, period = 0.3, 2.0, 0.01
    noise = BandLimitedNoise("noise", 4, period, density, bandwidth, mean=[5.0] * 40)
    y = samples(noise, 3000) - 5.0
    frequency, found = scipy.signal.welch(y, 1.0 / period, nperseg=500, axis=0)
    found = np.mean(found, axis=1) / 2.0  # of one side
    kept = (frequency > 0.3) & (frequency < 12.0)
    expected = density / (1.0 + (frequency / bandwidth) ** 2)
    np.testing.assert_allclose(found[kept], expected[kept], rtol=0.15)
    assert np.mean(found[kept] / expected[kept]) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("bandwidth", [0.5, 3.0, 40.0])
def test_noise_of_a_bandwidth_is_stationary_from_the_start(bandwidth: float) -> None:
    density, period, count = 0.7, 0.02, 4000
    noise = BandLimitedNoise("noise", 9, period, density, bandwidth, size=count)
    y = samples(noise, 4)
    decay = np.exp(-2.0 * np.pi * bandwidth * period)
    variance = density / period * np.tanh(np.pi * bandwidth * period)
    spread = 5.0 * variance / np.sqrt(count)
    for lag in range(4):
        for k in range(4 - lag):
            found = np.mean(y[k] * y[k + lag])
            assert found == pytest.approx(variance * decay**lag, abs=spread)


def test_noise_of_a_wide_band_is_that_of_a_spectral_density() -> None:
    wide = BandLimitedNoise("wide", 3, 0.1, density=0.4, bandwidth=1e4, mean=1.0)
    white = Noise.from_spectral_density("white", 3, 0.1, 0.4, mean=1.0)
    np.testing.assert_allclose(samples(wide, 20), samples(white, 20), rtol=1e-15)


def test_samples_follow_from_the_noise_of_the_same_seed() -> None:
    bandwidth, period = np.array([0.5, 2.0]), 0.1
    noise = BandLimitedNoise("noise", 6, period, 1.0, bandwidth)
    w = samples(Noise("white", 6, period, size=2), 10)
    a = np.exp(-2.0 * np.pi * bandwidth * period)
    x = w[0]
    scale = np.sqrt(np.tanh(np.pi * bandwidth * period) / period)
    for k, found in enumerate(samples(noise, 10)):
        x = w[0] if k == 0 else a * x + np.sqrt(1.0 - a**2) * w[k]
        np.testing.assert_allclose(found, scale * x, rtol=1e-6, atol=1e-7)


def test_noise_of_a_bandwidth_is_the_same_in_runs_that_are_split_or_native() -> None:
    builder = fx.DiagramBuilder("bench")
    builder.add_all(
        BandLimitedNoise("noise", 1, 0.01, [0.3, 2.0], [1.5, 0.7], mean=0.1),
        fx.FirstOrderLag("lag", 0.5, size=2),
    )
    builder.connect_chain("noise", "lag")
    diagram = builder.build()
    ends = []
    for compiled in (False, True):
        simulator = fx.Simulator(diagram, compiled=compiled)
        simulator.advance_to(1.005)
        ends.append(simulator.context)
    simulator = fx.Simulator(diagram, compiled=False)
    simulator.advance_to(0.505)
    again = fx.Simulator(diagram, simulator.context.clone(), compiled=False)
    again.advance_to(1.005)
    ends.append(again.context)
    for context in ends[1:]:
        for path in ("noise.sample", "noise.index", "noise.y"):
            np.testing.assert_array_equal(context.get(path), ends[0].get(path))


def test_a_new_seed_of_noise_of_a_bandwidth_counts_from_the_initialization() -> None:
    noise = BandLimitedNoise("noise", 1, 0.1, 1.0, 0.5)
    context = noise.create_default_context()
    noise.seed.set(context, 2)
    run_events(context, fx.diagrams.Initialization)
    twin = BandLimitedNoise("noise", 2, 0.1, 1.0, 0.5)
    np.testing.assert_array_equal(samples(noise, 5, context), samples(twin, 5))
    # Later a run goes on with the state that it has.
    before = noise.y(context)
    run_events(context, fx.diagrams.Initialization)
    np.testing.assert_array_equal(noise.y(context), before)


@for_each("options", [{"density": -1.0}, {"bandwidth": 0.0}, {"bandwidth": np.inf}, {"seed": -1}])
def test_noise_of_a_bandwidth_refuses_what_means_nothing(options: Any) -> None:
    with pytest.raises(ValueRefusedError):
        BandLimitedNoise(
            "noise", **{"seed": 1, "period": 0.1, "density": 1.0, "bandwidth": 1.0} | options
        )
