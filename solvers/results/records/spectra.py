"""Spectra of signals: which frequencies a run contains, as numbers and as pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from flexure.diagrams.checks.arguments import count_of, one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.drawing.formats.style import BLUE, ORANGE, name_axis, tidy
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.units import product
from flexure.solvers.results.measures.step_responses import require_single
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.tracing.signals import Signal

KINDS = ("amplitude", "psd")
WINDOWS = ("hann", "hamming", "blackman", "blackmanharris", "flattop", "boxcar")
_LEAST, _MOST = 4096, 2**18  # samples, unless somebody says how many
_FEWEST = 16
_SEGMENTS = 8  # of Welch's method, each half over the next one
_DEPTH = {"amplitude": 1e-6, "psd": 1e-12}  # of the largest value, below which nothing is shown


@dataclass(frozen=True, eq=False)
class Spectrum(Answer, Plotted):
    """The spectrum of a signal of a run; see `SimulationResult.spectrum`.

    Its picture is over frequency, both in powers of ten.

    Attributes
    ----------
    frequency : ndarray, shape (k,)
        Frequencies in Hz, from 0 to half of the sampling rate.
    values : ndarray, shape (k,)
        Amplitudes, or densities.
    kind : {"amplitude", "psd"}
        Which of these.
    window : str
        What the samples were weighted by.
    name : str
        Path of the signal.
    unit : str
        Unit of the values; empty when it is unknown.

    See Also
    --------
    simulate : Simulate a system.

    Examples
    --------
    >>> import flexure as fx
    >>> sine = fx.Sine("sine", amplitude=2.0, frequency=2.0 * np.pi * 5.0)
    >>> spectrum = fx.simulate(sine, 2.0).spectrum("y")
    >>> spectrum.frequency[np.argmax(spectrum.values)].round(1)
    np.float64(5.0)
    """

    _function: ClassVar[str | None] = "SimulationResult.spectrum"

    frequency: FloatArray
    values: FloatArray
    kind: str
    window: str
    name: str
    unit: str

    @property
    def peak(self) -> float:
        """The frequency with the largest value, in Hz."""
        return float(self.frequency[np.argmax(self.values)])

    _figsize = (8.0, 4.4)

    def _draw(self, ax: Axes) -> None:
        frequency, values = self.frequency[1:], self.values[1:]
        lines = ax.plot(frequency, values, color=BLUE, linewidth=1.4)
        ax.set_xscale("log")
        ax.set_xlim(frequency[0], frequency[-1])
        what = "amplitude" if self.kind == "amplitude" else "density"
        name_axis(ax.yaxis, f"{what} of {self.name}", self.unit, most=60)
        ax.set_xlabel(f"frequency [Hz], {self.window} window")
        tidy(ax)
        largest = float(np.max(values))
        if largest > 0.0:
            ax.set_yscale("log")
            low = max(float(np.min(values)), _DEPTH[self.kind] * largest)
            ax.set_ylim(0.5 * low, 4.0 * largest)
            ax.set_xlim(right=float(frequency[np.flatnonzero(values >= low)[-1]]))
            at = float(frequency[np.argmax(values)])
            ax.plot(at, largest, "o", color=ORANGE, markersize=5, zorder=4)
            label = Label(f"{largest:.3g} at {at:.4g} Hz", (at, largest), ORANGE)
            place_labels(ax, [label], lines, outside=True)

    def __repr__(self) -> str:
        size = f"{len(self.values)} frequencies up to {self.frequency[-1]:.4g} Hz"
        return f"<Spectrum of '{self.name}', {self.kind}, {self.window} window, {size}>"


@answers_other_words
def spectrum(
    result: SimulationResult,
    signal: Signal,
    *,
    kind: str = "amplitude",
    window: str = "hann",
    start: float | None = None,
    num_samples: int | None = None,
) -> Spectrum:
    """Return the spectrum of a signal, ready to be plotted.

    The signal is sampled at even times, its mean is removed, and it is weighted by a window. An
    oscillation a sin(2π f t) has the amplitude a at its frequency; the power spectral density
    is that of Welch's method with eight segments, each half over the next one, and its integral
    over frequency is the variance.

    Parameters
    ----------
    signal : Handle or str
        A signal with one component.
    kind : {"amplitude", "psd"}
        Amplitudes, or the power spectral density.
    window : {"hann", "hamming", "blackman", "blackmanharris", "flattop", "boxcar"}
        What the samples are weighted by; ``"boxcar"`` weights all alike.
    start : float, optional
        Where the samples begin, in seconds; at the beginning of the run when omitted.
    num_samples : int, optional
        Their number. When omitted, a power of two that is at least 4096, and twice the number
        of steps of the run.

    Returns
    -------
    Spectrum

    Raises
    ------
    ValueRefusedError
        When the signal has several components, or samples cannot be taken.
    """
    from scipy.signal import get_window, welch

    name = path_of(signal)
    attempt = f"Cannot compute a spectrum of '{name}'"
    one_of(kind, KINDS, "kind", attempt)
    one_of(window, WINDOWS, "window", attempt)
    first, last = float(result.time[0]), float(result.time[-1])
    if start is not None:
        begin = float(as_number(start, (), attempt))
        if not first <= begin < last:
            raise ValueRefusedError(
                attempt,
                expected=f"start before the end of the run, in [{first:g}, {last:g}) s",
                found=f"{begin:g} s",
            )
        first = begin
    if not last > first:
        raise ValueRefusedError(attempt, expected="a run that takes time", found=f"{last:g} s")
    if num_samples is None:
        steps = int(np.sum(result.time >= first))
        count = min(max(_LEAST, 2 ** int(np.ceil(np.log2(2 * steps)))), _MOST)
    else:
        count = count_of(num_samples, "num_samples", attempt, minimum=_FEWEST)
    rate = count / (last - first)
    values = result.sample(signal, first + np.arange(count) / rate)
    require_single(values, 1, attempt, f"Name one, as in '{name}[0]'")
    unit = result.unit_of(signal)
    with np.errstate(over="ignore", invalid="ignore"):  # of what is refused below
        if kind == "amplitude":
            weights = get_window(window, count)
            lines = np.fft.rfft(weights * (values - np.mean(values)))
            size = 2.0 * np.abs(lines) / np.sum(weights)
            size[:: (count + 1) // 2] *= 0.5  # 0 and half of the rate have no opposite
            frequency = np.arange(len(lines)) * rate / count
        else:
            length = max(_FEWEST, 2 * count // (_SEGMENTS + 1))
            frequency, size = welch(values, rate, window, nperseg=min(length, count))
            unit = product(product(unit, unit), "Hz", -1)
    if not np.all(np.isfinite(size)):
        finite = np.isfinite(values)
        found = "numbers too large to add up"
        if not finite.all():
            found = f"{values[~finite][0]:g} at t = {first + np.argmin(finite) / rate:.6g} s"
        raise ValueRefusedError(attempt, expected="finite values", found=found)
    return Spectrum(frequency, size, kind, window, name, unit)
