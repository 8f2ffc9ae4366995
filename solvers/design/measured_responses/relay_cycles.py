"""Exact limit cycles of a relay in a sampled loop, whose periods are whole numbers of samples.

The relay is on for p samples and off for q of them. Its output repeats after ``N = p + q`` samples,
and so does what the linear rest G of the loop makes of it, to all harmonics:

    e[k] = e₀ + Σₘ G(exp(2πjm/N)) Uₘ exp(2πjmk/N) / N,   m = 1, ..., N - 1,

with the discrete Fourier transform U of the output. The cycle exists if e[k] switches the relay at
just these samples, which is Tsypkin's condition for sampled relays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.linear_models.linear_model import LinearModel

#: Samples of the longest cycle that is looked for.
LONGEST = 200
_NEUTRAL = 1e-9  # how far from the unit circle a pole neither decays nor grows


@dataclass(frozen=True, eq=False)
class RelayCycle:
    """A cycle."""

    # amplitude, omega, bias: of the fundamental of the input, and its mean.
    amplitude: float
    omega: float
    bias: float
    mean: float  # of the output
    # The input of the relay from the sample on at which it switches on, shape (N,).
    inputs: FloatArray
    outputs: FloatArray  # its output less the mean, shape (N,)

    def states(self, model: LinearModel) -> FloatArray:
        """Return the states less their mean just before the relay switches on."""
        count = len(self.inputs)
        z = np.exp(2j * np.pi * np.arange(1, count) / count)
        away = z[:, np.newaxis, np.newaxis] * np.eye(len(model.A)) - model.A
        spectrum = np.fft.fft(self.outputs)[1:, np.newaxis, np.newaxis] / count
        found: FloatArray = np.linalg.solve(away, model.B * spectrum).sum(axis=0)[:, 0].real
        return found


def relay_cycles(
    model: LinearModel,
    thresholds: tuple[float, float],
    values: tuple[float, float],
    mean_input: Callable[[float], float | None],
) -> Iterator[RelayCycle]:
    """Yield the cycles of up to 200 samples.

    The sampled ``model`` G leads from the output of the relay to its input. Thresholds are where
    it switches on and off, ``values`` its outputs when on and off. ``mean_input`` returns the mean
    of the input for that of the output: NaN if any mean is possible, as behind an integrator, and
    None if there is none.
    """
    assert model.period is not None
    (rise, fall), (on, off) = thresholds, values
    for count in range(2, LONGEST + 1):
        omega = 2.0 * np.pi / (count * model.period)
        lengths = np.arange(1, count)[:, np.newaxis]
        is_on = np.arange(count) < lengths
        means = off + (on - off) * lengths[:, 0] / count
        biases = [mean_input(mean) for mean in means]
        fits = np.array([bias is not None for bias in biases])
        if not fits.any():
            continue
        lengths, is_on, means = lengths[fits], is_on[fits], means[fits]
        outputs = np.where(is_on, on, off) - means[:, np.newaxis]
        spectra = np.fft.rfft(outputs)
        spectra[:, 1:] *= model.frequency_response(omega * np.arange(1, count // 2 + 1))[:, 0, 0]
        spectra[:, 0] = 0.0
        inputs = np.fft.irfft(spectra, count)
        # What the mean must be so that the relay switches at the first samples, and not between.
        before = np.roll(is_on, 1, axis=1)
        switches_on, switches_off = is_on & ~before, ~is_on & before
        low = np.where(switches_on, rise - inputs, np.where(is_on, fall - inputs, -np.inf))
        high = np.where(switches_off, fall - inputs, np.where(is_on, np.inf, rise - inputs))
        lowest, highest = low.max(axis=1), high.min(axis=1)
        wanted = np.array([bias for bias in biases if bias is not None])
        wanted = np.where(np.isnan(wanted), 0.5 * (lowest + highest), wanted)
        for k in np.flatnonzero((lowest <= wanted) & (wanted <= highest)):
            size, bias, mean = amplitude_of(inputs[k]), float(wanted[k]), float(means[k])
            yield RelayCycle(size, omega, bias, mean, bias + inputs[k], outputs[k])


def amplitude_of(cycle: FloatArray) -> float:
    """Return the amplitude of the fundamental of the samples of one cycle."""
    count = len(cycle)
    return float(abs(np.fft.rfft(cycle)[1])) * (2.0 if count > 2 else 1.0) / count


def returns(model: LinearModel) -> bool:
    """Return whether small motions beside a cycle with fixed switching samples do not grow.

    They follow the linear rest alone. One integrator leaves the mean of the loop free.
    """
    sizes = np.abs(np.linalg.eigvals(model.on_tangent().A))
    return bool(np.sum(sizes > 1.0 - _NEUTRAL) <= 1 and np.all(sizes <= 1.0 + _NEUTRAL))
