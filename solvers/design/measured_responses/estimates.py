"""Complex amplitudes of sampled signals, by weighted least squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.values.arrays import FloatArray

ComplexArray: TypeAlias = npt.NDArray[np.complex128]

HARMONICS = 9  # that are told from the rest
_IMAGES = 2  # multiples of a sampling rate about which images are looked for
_POWERS = 4  # of time in a trend
_BLOCK = 8192  # times that are evaluated at once
_SINGULAR = 1e-13  # of normal equations: lines that samples do not show
_BELOW = 0.98  # of the Nyquist frequency, up to which samples show a harmonic


@dataclass(frozen=True)
class Lines:
    """The amplitudes at some frequencies in signals."""

    amplitudes: ComplexArray  # c of each part Re(c exp(jωt)), shape (lines, signals)
    # Amplitude of a sine with the power of what no line explains, shape (signals,).
    rest: FloatArray


@in_one_thread
def fit_lines(times: FloatArray, signals: FloatArray, omega: FloatArray) -> Lines:
    """Return the amplitudes of lines in signals beside a cubic trend.

    Times (k,) are equidistant, signals have the shape (k, signals), and frequencies ``omega``, in
    rad/s, are above zero. The weights are those of a Hann window, so that frequencies that are no
    lines leak little.
    """
    count, middle = len(omega), 0.5 * (times[0] + times[-1])
    half = times[-1] - middle
    size = 2 * count + _POWERS
    normal = np.zeros((size, size))
    sums = np.zeros((size, signals.shape[1]))

    def blocks() -> Iterator[tuple[FloatArray, FloatArray]]:
        for first in range(0, len(times), _BLOCK):
            since = times[first : first + _BLOCK, np.newaxis] - middle
            angles = omega * since
            basis = [np.cos(angles), np.sin(angles), (since / half) ** np.arange(_POWERS)]
            weights = np.cos(0.5 * np.pi * since / half * (1.0 - 1.0 / len(times)))
            yield weights * np.hstack(basis), weights * signals[first : first + _BLOCK]

    for basis, values in blocks():
        normal += basis.T @ basis
        sums += basis.T @ values
    found = np.linalg.lstsq(normal, sums, rcond=_SINGULAR)[0]
    power = np.zeros(signals.shape[1])
    for basis, values in blocks():
        power += np.sum((values - basis @ found) ** 2, axis=0)
    weight = 0.5 * len(times)  # the sum of the squares of the window
    turned = np.exp(-1j * omega * middle)[:, np.newaxis]
    amplitudes = (found[:count] - 1j * found[count : 2 * count]) * turned
    return Lines(amplitudes, np.sqrt(2.0 * power / weight))


def harmonics_of(omega: float, period: float | None) -> FloatArray:
    """Return a frequency and those of its harmonics that samples of a period can show."""
    found = omega * np.arange(1, HARMONICS + 1)
    limit = np.inf if period is None else _BELOW * np.pi / period
    return np.asarray(found[(found <= limit) | (found == omega)])


def images_of(
    omega: float, periods: Sequence[float], known: FloatArray, close: float
) -> FloatArray:
    """Return the frequencies at which sampling repeats one, but for those next to known lines."""
    found: list[float] = []
    for rate in (2.0 * np.pi / period for period in periods):
        for k, side in product(range(1, _IMAGES + 1), (-1.0, 1.0)):
            line = abs(k * rate + side * omega)
            if np.min(np.abs(line - np.append(known, found))) > close * rate:
                found.append(line)
    return np.array(found)


def transform(times: FloatArray, signals: FloatArray, omega: FloatArray) -> ComplexArray:
    """Return sums of ``signal exp(-jωt)`` over equidistant times, shape (lines, signals)."""
    since = times - times[0]
    found: ComplexArray = np.array([np.exp(-1j * each * since) @ signals for each in omega])
    return found
