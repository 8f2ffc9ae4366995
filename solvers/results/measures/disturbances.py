"""Disturbances: what a response does that is pushed away and should come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flexure.diagrams.common.answers import Answer
from flexure.diagrams.common.errors import ValueRefusedError, warn
from flexure.diagrams.common.html import Shown
from flexure.diagrams.contexts.places import path_of
from flexure.diagrams.values.values import FloatArray, as_number
from flexure.solvers.results.measures.error_figures import CONTROLS, control_figures, error_figures
from flexure.solvers.results.measures.reductions import values_at
from flexure.solvers.results.measures.step_characteristics import effort_lines, entered, remains
from flexure.solvers.results.measures.step_responses import checked_record, first_row, read_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.results.records.result import Signal, SimulationResult

_ATTEMPT = "Cannot measure the response to a disturbance"
BAND = 0.05  # half the width of the band, as a fraction of the peak deviation, unless it is given


@dataclass(frozen=True)
class DisturbanceInfo(Answer):
    """Figures of a response y(t) that is pushed away from its target, and should come back.

    Times count from the instant of the disturbance. `disturbance_info` has the rules.

    Attributes
    ----------
    target : float
        Where the response belongs: the given target, else its value at the disturbance.
    peak_deviation : float
        The largest distance from the target, a magnitude.
    peak : float
        The value that is so far away.
    peak_time : float
        When it is reached, in seconds.
    recovery_time : float
        After which the response stays within the tolerance around the target, in seconds; NaN when
        it does not get there, or cannot be expected to stay.
    steady_state_error : float
        Target minus the last value of the record.
    iae, ise, itae : float
        Integrals of ``|e|``, e² and ``(t - at) |e|``, with e = target - y, from the disturbance to
        the end of the record.
    control_variation : float
        Total variation of the manipulated input from the disturbance on; NaN when it is not known.
    control_peak : float
        Largest magnitude of the manipulated input from then on; NaN when it is not known.
    tolerance : float
        Half the width of the band around the target.
    at : float
        The instant of the disturbance, in seconds.
    """

    target: float
    peak_deviation: float
    peak: float
    peak_time: float
    recovery_time: float
    steady_state_error: float
    iae: float
    ise: float
    itae: float
    control_variation: float
    control_peak: float
    tolerance: float
    at: float

    def __str__(self) -> str:
        lines = [
            f"peak deviation      {self.peak_deviation:.4g} at {self.peak_time:.4g} s",
            f"recovery time       {self.recovery_time:.4g} s (within {self.tolerance:.3g})",
            f"target              {self.target:.5g}",
            f"steady-state error  {self.steady_state_error:.3g}",
        ]
        return "\n".join([*lines, *effort_lines(self)])


FIGURES = tuple(field.name for field in fields(DisturbanceInfo))


def disturbance_figures(
    t: FloatArray,
    y: FloatArray,
    at: npt.ArrayLike,
    target: npt.ArrayLike,
    tolerance: npt.ArrayLike,
    band: float,
    control: FloatArray | None = None,
) -> dict[str, FloatArray]:
    """Measure responses to disturbances.

    Parameters
    ----------
    t : ndarray, shape (K,)
        Times of the records.
    y : ndarray, shape (N, K)
        One response in each row.
    at, target, tolerance : array_like, shape () or (N,)
        As for `flexure.disturbance_info`; NaN instead of None, and ``at`` is always given.
    band : float
        As for `flexure.disturbance_info`.
    control : ndarray, shape (N, K), optional
        The manipulated input.

    Returns
    -------
    dict
        The attributes of `DisturbanceInfo`, arrays of shape (N,); NaN in rows that cannot be
        measured.
    """
    at, aim, width = (
        np.broadcast_to(np.asarray(item, dtype=float), len(y)) for item in (at, target, tolerance)
    )
    with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
        fine = np.isfinite(y).all(axis=1) & (at >= t[0]) & (at <= t[-1])
        aim = np.where(np.isnan(aim), values_at(t, y, at), aim)
        deviation = np.where(t >= at[:, None], y - aim[:, None], 0.0)
        index, rows = np.argmax(np.abs(deviation), axis=1), np.arange(len(y))
        peak = np.abs(deviation[rows, index])
        width = np.where(np.isnan(width), band * peak, width)
        unit = deviation / np.where(width > 0.0, width, 1.0)[:, None]  # without any, all is zero
        back = np.where(remains(t, unit, at, 1.0), entered(t, unit, at, 1.0) - at, np.nan)
        figures = {
            "target": aim,
            "peak_deviation": peak,
            "peak": y[rows, index],
            "peak_time": np.maximum(t[index] - at, 0.0),
            "recovery_time": np.maximum(back, 0.0),
            "steady_state_error": aim - y[:, -1],
            **error_figures(t, y, at, aim),
            **dict.fromkeys(CONTROLS, np.full(len(y), np.nan)),
            "tolerance": width,
            "at": at,
        }
    if control is not None:
        figures |= control_figures(t, control, at)
    return {name: np.where(fine, figures[name], np.nan) for name in FIGURES}


def disturbance_info(
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    at: float | None = None,
    target: float | None = None,
    band: float = BAND,
    tolerance: float | None = None,
    control: npt.ArrayLike | None = None,
) -> DisturbanceInfo:
    """Measure how a response that is pushed away from its target comes back.

    It has recovered when it stays within the tolerance, and is expected to stay there: a deviation
    of up to E0 in the third quarter of the record after the disturbance and E1 in the fourth is
    taken to go on as E1²/E0, as by `step_info`.

    Parameters
    ----------
    time : array_like, shape (k,)
        Ascending times in seconds; a repeated time marks a jump.
    values : array_like, shape (k,)
        The response; between the points it is taken to be linear.
    at : float, optional
        Instant of the disturbance; the first time when omitted.
    target : float, optional
        Where the response belongs; the value at the disturbance, before a jump there, when omitted.
    band : float
        Half the width of the band around the target, as a fraction of the peak deviation.
    tolerance : float, optional
        The same in the unit of the response, in the place of ``band``.
    control : array_like, shape (k,), optional
        The manipulated input, for its total variation and peak.

    Returns
    -------
    DisturbanceInfo

    Warns
    -----
    UserWarning
        When the recovery time is NaN.

    Raises
    ------
    ValueRefusedError
        When shapes differ, values are not finite, the disturbance is not within the record, or the
        band or tolerance is not positive.

    Examples
    --------
    >>> t = np.linspace(0.0, 10.0, 5001)
    >>> info = disturbance_info(t, t * np.exp(-t), tolerance=0.01)
    >>> round(info.peak_deviation, 4), round(info.peak_time, 3), round(info.recovery_time, 2)
    (0.3679, 1.0, 6.47)
    """
    return measure("the response", time, values, at, target, band, tolerance, control)


def measure(
    name: str,
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    at: float | None,
    target: float | None,
    band: float,
    tolerance: float | None,
    control: npt.ArrayLike | None,
) -> DisturbanceInfo:
    """Measure a response as `disturbance_info` does; a warning calls it by a name."""
    t, y = checked_record(time, values, _ATTEMPT)
    effort = None if control is None else checked_record(time, control, _ATTEMPT)[1][np.newaxis]
    begin = float(t[0]) if at is None else _number("at", at)
    if not t[0] <= begin <= t[-1]:
        raise ValueRefusedError(
            _ATTEMPT,
            expected=f"a disturbance within the record, from {t[0]:g} to {t[-1]:g} s",
            found=f"a disturbance at {begin:g} s",
        )
    aim = np.nan if target is None else _number("target", target)
    width = np.nan if tolerance is None else positive("tolerance", tolerance)
    share = positive("band", band)
    figures = disturbance_figures(t, y[np.newaxis], begin, aim, width, share, effort)
    info = DisturbanceInfo(**first_row(figures))
    if np.isnan(info.recovery_time):
        warn(
            f"{name} has not recovered at t = {t[-1]:g} s, so that its recovery time is NaN: it is "
            f"{abs(info.steady_state_error):.3g} from its target, and the tolerance is "
            f"{info.tolerance:.3g}"
        )
    return info


def _number(argument: str, value: object) -> float:
    number = float(as_number(value, (), f"{_ATTEMPT} with {argument}"))
    if not np.isfinite(number):
        raise ValueRefusedError(
            f"{_ATTEMPT} with {argument}", expected="a finite number", found=f"{number:g}"
        )
    return number


def positive(argument: str, value: object) -> float:
    """Return a width, which has to be positive."""
    number = _number(argument, value)
    if not number > 0.0:
        raise ValueRefusedError(
            f"{_ATTEMPT} with {argument}", expected="a positive number", found=f"{number:g}"
        )
    return number


@dataclass(frozen=True)
class DisturbanceResponse(Shown):
    """A recorded response to a disturbance with its figures.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Times in seconds.
    values : ndarray, shape (k,)
        The response.
    info : DisturbanceInfo
        Its figures.
    name : str
        Path of the signal.
    unit : str
        Its unit.
    """

    time: FloatArray
    values: FloatArray
    info: DisturbanceInfo
    name: str
    unit: str

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.results.records.overview import response_pieces

        return response_pieces(self)

    def plot(self, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
        """Plot the response with its peak, its recovery and the area of its error marked.

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
        from flexure.solvers.results.pictures.response_plots import plot_disturbance

        return plot_disturbance(self, ax=ax, path=path)


def record_disturbance(
    result: SimulationResult,
    signal: Signal,
    *,
    at: float,
    target: float | None,
    band: float,
    tolerance: float | None,
    control: Signal | None,
) -> DisturbanceResponse:
    """Return a signal of a simulation as a response to a disturbance."""
    grid = result.fine_time()
    values, effort = read_records(result, signal, control, grid, "response to a disturbance")
    name = path_of(signal)
    info = measure(f"'{name}'", grid, values, at, target, band, tolerance, effort)
    return DisturbanceResponse(grid, values, info, name, result.unit_of(signal))


__all__ = [
    "BAND",
    "FIGURES",
    "DisturbanceInfo",
    "DisturbanceResponse",
    "disturbance_figures",
    "disturbance_info",
    "positive",
    "record_disturbance",
]
