"""Spectra of signals: which frequencies a run contains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from flexure.diagrams.checks.arguments import count_of, one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.units import product
from flexure.solvers.results.measures.step_responses import require_single

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.records.result import Signal, SimulationResult

KINDS = ("amplitude", "psd")
WINDOWS = ("hann", "hamming", "blackman", "blackmanharris", "flattop", "boxcar")
_LEAST, _MOST = 4096, 2**18  # samples, unless somebody says how many
_FEWEST = 16
_SEGMENTS = 8  # of Welch's method, each half over the next one


@dataclass(frozen=True, eq=False)
class Spectrum(Answer):
    """The spectrum of a signal of a run; see `SimulationResult.spectrum`.

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

    def plot(self, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
        """Plot the spectrum over frequency, both in powers of ten.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to plot; a new figure when omitted.
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from flexure.solvers.results.pictures.spectrum_plots import plot_spectrum

        return plot_spectrum(self, ax=ax, path=path)

    def __repr__(self) -> str:
        size = f"{len(self.values)} frequencies up to {self.frequency[-1]:.4g} Hz"
        return f"<Spectrum of '{self.name}', {self.kind}, {self.window} window, {size}>"


def make_spectrum(
    result: SimulationResult,
    signal: Signal,
    *,
    kind: str,
    window: str,
    start: float | None,
    num_samples: int | None,
) -> Spectrum:
    """Return the spectrum of a signal; see `SimulationResult.spectrum`."""
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
