"""Random numbers: the same ones everywhere, evenly spread, and independent of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import flexure as fx
from flexure.blocks.signals import random_numbers
from flexure.blocks.signals.random_numbers import normal_quantile, uniform
from tests.support.native.native import needs_llvmlite

LARGEST = 2**53 - 1
COUNT = 200_000


def in_integers(seed: int, counter: int) -> float:
    """Compute what `uniform` does, in Python's integers."""
    base = 2**27
    keys = divmod(seed, base)
    left, right = divmod(counter, base)
    for k, constant in enumerate(random_numbers._ROUNDS):
        middle = (left - base // 2) ** 2 // 2**13
        left, right = (right + middle + keys[k % 2] + int(constant)) % base, left
    return (left * 2**25 + right // 4 + 0.5) / 2.0**52


def test_no_operation_is_rounded() -> None:
    rng = np.random.default_rng(1)
    edges = [0, 1, 2**26, 2**27 - 1, 2**27, LARGEST]
    pairs = [(s, c) for s in edges for c in edges] + rng.integers(LARGEST, size=(500, 2)).tolist()
    for seed, counter in pairs:
        assert uniform(float(seed), float(counter)) == in_integers(seed, counter)


def test_the_numbers_stay_the_same_ones() -> None:
    # Recorded when the generator was written; another number means another noise for everybody.
    assert in_integers(0, 0) == 0.7061944181854939
    assert in_integers(7, 3) == 0.3796179644549996
    assert in_integers(LARGEST, LARGEST) == 0.3281113482449579


def test_quantiles_are_those_of_the_normal_distribution() -> None:
    tail = 2.0 ** -np.linspace(1.0, 53.0, 5000)
    p = np.concatenate([tail, np.linspace(0.001, 0.999, 5000), 1.0 - tail])
    np.testing.assert_allclose(normal_quantile(p), special.ndtri(p), rtol=0.0, atol=1e-7)
    drawn = uniform(1.0, np.arange(1000.0))
    np.testing.assert_array_equal(normal_quantile(1.0 - drawn), -normal_quantile(drawn))


STREAMS: dict[str, Callable[[], Any]] = {
    "counters": lambda: uniform(3.0, np.arange(COUNT)),
    "counters far away": lambda: uniform(3.0, 2.0**50 + np.arange(COUNT)),
    "seeds": lambda: uniform(np.arange(COUNT), 0.0),
    "large seeds": lambda: uniform(LARGEST - np.arange(COUNT), 17.0),
    "every other component": lambda: uniform(3.0, 2.0 * np.arange(COUNT)),
    "low bits": lambda: (uniform(3.0, np.arange(COUNT)) * 2.0**30) % 1.0,
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_uniform_and_independent(name: str) -> None:
    u = STREAMS[name]()
    assert 0.0 < u.min() < u.max() < 1.0
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert stats.kstest(normal_quantile(u), "norm").pvalue > 1e-3
    z = (u - 0.5) * np.sqrt(12.0)
    for lag in (1, 2, 3, 5, 64, 1000):
        assert abs(np.mean(z[lag:] * z[:-lag])) < 4.0 / np.sqrt(COUNT)
    triples = np.floor(u[: COUNT // 3 * 3] * 12.0).reshape(-1, 3) @ [144.0, 12.0, 1.0]
    assert stats.chisquare(np.bincount(triples.astype(int), minlength=1728)).pvalue > 1e-3


@pytest.mark.parametrize("small", [True, False], ids=["small numbers", "all numbers"])
def test_every_bit_of_seed_and_counter_turns_every_bit_half_of_the_time(small: bool) -> None:
    count = 1500
    rng = np.random.default_rng(2)
    seed, counter = rng.integers(100 if small else LARGEST, size=(2, count)).astype(np.uint64)
    counter = np.arange(count).astype(np.uint64) if small else counter

    def bits(seed: Any, counter: Any) -> Any:
        number = uniform(seed.astype(float), counter.astype(float)) * 2.0**52
        return number.astype(np.uint64)[:, None] >> np.arange(52, dtype=np.uint64) & np.uint64(1)

    before = bits(seed, counter)
    for k in range(53):
        bit = np.uint64(1 << k)
        for after in (bits(seed ^ bit, counter), bits(seed, counter ^ bit)):
            turned = np.mean(before != after, axis=0)
            assert np.max(np.abs(turned - 0.5)) < 5.5 * 0.5 / np.sqrt(count)


def test_noises_of_other_seeds_and_other_channels_are_independent() -> None:
    drawn = [
        normal_quantile(uniform(float(seed), np.arange(60_000.0))).reshape(-1, 3).T
        for seed in (0, 1, 2, 2**27, LARGEST)
    ]
    correlations = np.corrcoef(np.concatenate(drawn)) - np.eye(15)
    assert np.max(np.abs(correlations)) < 4.5 / np.sqrt(20_000)


def noisy_loop() -> fx.Diagram:
    """A sampled loop in which both kinds of noise disturb the measurement."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.TransferFunction("plant", [1.0], [1.0, 0.6, 4.0]),
        fx.Noise("gauss", 3, 0.01, standard_deviation=0.01, size=2),
        fx.Noise("even", 4, 0.02, standard_deviation=0.02, distribution="uniform"),
        fx.Demultiplexer("parts", [1, 1]),
        fx.Sum("measured", "++++"),
        fx.Step("target", at=0.1, to=1.0),
        fx.PIDController("pid", period=0.01, kp=8.0, ki=6.0, kd=2.0),
    )
    builder.connect("gauss.y", "parts.u")
    for k, source in enumerate(["plant.y", "parts.y1", "parts.y2", "even.y"]):
        builder.connect(source, f"measured.u{k + 1}")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("measured.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    return builder.build()


def test_noise_is_the_same_in_every_reading_to_the_last_bit() -> None:
    loop = noisy_loop()
    paths = ["gauss.sample", "even.sample", "gauss.index"]
    runs = [fx.simulate(loop, 1.0, compiled=how) for how in (False, "python", "native")]
    for path in paths:
        first, *others = (run[path] for run in runs)
        assert len(np.unique(first)) >= 50
        for other in others:
            np.testing.assert_array_equal(first, other)


@needs_llvmlite
def test_noise_does_not_depend_on_the_order_of_runs_in_lanes() -> None:
    loop = noisy_loop()
    seeds = np.array([5, 6, 7, 5, 2**53 - 1])
    there = fx.sweep(loop, {"gauss.seed": seeds}, 0.3, signals=["gauss.y"])
    back = fx.sweep(loop, {"gauss.seed": seeds[::-1]}, 0.3, signals=["gauss.y"], threads=1)
    assert "lanes" in there.how
    context = loop.create_default_context()
    context.set("gauss.seed", 6)
    alone = fx.simulate(loop, 0.3, context=context).sample("gauss.y", there.times)
    np.testing.assert_array_equal(there["gauss.y"][1], alone)
    np.testing.assert_array_equal(there["gauss.y"], back["gauss.y"][::-1])
    np.testing.assert_array_equal(there["gauss.y"][0], there["gauss.y"][3])
    assert len(np.unique(there["gauss.y"][[0, 1, 2, 4], 100])) == 8
