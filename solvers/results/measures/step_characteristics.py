"""The figures of step responses, of one record or of many at once, with a row for each.

Whether a record has come to rest is judged by the last two quarters of its time after the step. The
response moves over a range R0 in the last quarter but one, and over R1 in the last. With r = R1/R0,
a motion that goes on to decay as it did moves by R1 r / (1 - r) more, and one with r >= 1 does not
decay. A record *still moves* when R1 and what is to come are both more than a tenth of the band
around the final value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.common.answers import Answer
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.values import FloatArray
from flexure.solvers.results.measures.error_figures import CONTROLS, control_figures, error_figures
from flexure.solvers.results.measures.reductions import values_at

_SHARE_OF_BAND = 0.1  # of the settling band, beyond which a record still moves
_FAR = 100.0  # records of the same length; rest beyond these is not in sight
_ROWS = 256  # that are measured at once, which bounds the memory for it


@dataclass(frozen=True)
class StepInfo(Answer):
    """Figures of a step response y(t) that goes from y0 to its final value yf.

    Times count from the instant of the step. A figure that the record does not contain, because
    the response never gets there or still moves at the end, is NaN; `step_info` has the rules.

    Attributes
    ----------
    initial : float
        y0, the value at the step.
    final : float
        yf: the given final value, else the target, else the last value of a record at rest.
    rise_time : float
        From 10 % to 90 % of yf - y0, in seconds.
    overshoot : float
        How far the response goes beyond yf, in percent of ``|yf - y0|``.
    undershoot : float
        How far it first goes the wrong way from y0, in percent of ``|yf - y0|``.
    peak : float
        The value farthest from y0 in the direction of the step.
    peak_time : float
        When it is reached, in seconds.
    settling_time : float
        After which the response stays within the band around yf, in seconds.
    steady_state_error : float
        Target minus the last value of the record; NaN without a target.
    target : float
        What was asked for; NaN when unknown.
    rise_start, rise_end : float
        When 10 % and 90 % are reached first, in seconds.
    band : float
        Half the width of the settling band, as a fraction of ``|yf - y0|``.
    at : float
        The instant of the step, from which times count, in seconds.
    iae, ise, itae : float
        Integrals of ``|e|``, e² and ``(t - at) |e|`` from the step to the end of the record, where
        e is the target minus the response or, without a target, yf minus the response.
    control_variation : float
        Total variation of the manipulated input from the step on, its jump there included; NaN
        when that input is not known.
    control_peak : float
        Largest magnitude of the manipulated input from the step on; NaN when it is not known.
    """

    initial: float
    final: float
    rise_time: float
    overshoot: float
    undershoot: float
    peak: float
    peak_time: float
    settling_time: float
    steady_state_error: float
    target: float
    rise_start: float
    rise_end: float
    band: float
    at: float
    iae: float
    ise: float
    itae: float
    control_variation: float
    control_peak: float

    def __str__(self) -> str:
        known = " (the target)" if self.final == self.target else ""
        lines = [
            f"rise time           {self.rise_time:.4g} s",
            f"overshoot           {self.overshoot:.3g} %",
            f"peak                {self.peak:.5g} at {self.peak_time:.4g} s",
            f"settling time       {self.settling_time:.4g} s (band {self.band:.0%})",
            f"final value         {self.final:.5g}{known}",
        ]
        if np.isfinite(self.target):
            lines.append(f"steady-state error  {self.steady_state_error:.3g}")
        lines += effort_lines(self)
        return "\n".join(lines)


def effort_lines(info: Any) -> list[str]:
    """Return the lines in which figures tell integrals of the error, and what control took."""
    lines = []
    if np.isfinite(info.iae):
        lines.append(f"IAE, ISE, ITAE      {info.iae:.4g}, {info.ise:.4g}, {info.itae:.4g}")
    if np.isfinite(info.control_peak):
        lines.append(f"control             peak {info.control_peak:.4g}, ")
        lines[-1] += f"total variation {info.control_variation:.4g}"
    return lines


def step_figures(
    t: FloatArray,
    y: FloatArray,
    at: npt.ArrayLike,
    initial: npt.ArrayLike,
    final: npt.ArrayLike,
    target: npt.ArrayLike,
    band: float,
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Measure step responses.

    Parameters
    ----------
    t : ndarray, shape (K,)
        Times of the records.
    y : ndarray, shape (N, K)
        One response in each row.
    at, initial, final, target : array_like, shape () or (N,)
        As for `flexure.step_info`; NaN instead of None, and ``at`` is always given.
    band : float
        As for `flexure.step_info`.

    Returns
    -------
    figures : dict
        The attributes of `StepInfo` but those of `effort_figures`, arrays of shape (N,); NaN in
        rows that cannot be measured.
    longer : ndarray, shape (N,)
        How much longer records have to be that lack a figure because they still move: an estimate
        in seconds, infinite where no decay is in sight, zero where nothing is lacking.
    """
    begin, y0, yf, aim = (
        np.broadcast_to(np.asarray(item, dtype=float), len(y))
        for item in (at, initial, final, target)
    )
    parts, longer = [], []
    for start in range(0, max(len(y), 1), _ROWS):
        k = slice(start, start + _ROWS)
        part = StepFigures(t, y[k], begin[k], y0[k], yf[k], aim[k], band)
        parts.append([part[name] for name in _FIGURES])
        longer.append(part.longer)
    columns = map(np.concatenate, zip(*parts, strict=True))
    return dict(zip(_FIGURES, columns, strict=True)), np.concatenate(longer)


def effort_figures(
    t: FloatArray,
    y: FloatArray,
    figures: Mapping[str, FloatArray] | StepFigures,
    control: FloatArray | None = None,
) -> dict[str, FloatArray]:
    """Return the figures of responses that are integrals of the error, or of the control.

    Parameters
    ----------
    t, y
        As for `step_figures`.
    figures : mapping
        What `step_figures` has returned for them.
    control : ndarray, shape (N, K), optional
        The manipulated input.
    """
    at, target, final = (figures[name] for name in ("at", "target", "final"))
    found = error_figures(t, y, at, np.where(np.isnan(target), final, target))
    if control is None:
        return found | dict.fromkeys(CONTROLS, np.full(len(y), np.nan))
    return found | control_figures(t, control, at)


class StepFigures:
    """Figures of step responses as `step_figures` has them, each computed when it is asked for.

    Parameters
    ----------
    t, y, at, initial, final, target, band
        As for `step_figures`.
    """

    def __init__(
        self,
        t: FloatArray,
        y: FloatArray,
        at: npt.ArrayLike,
        initial: npt.ArrayLike,
        final: npt.ArrayLike,
        target: npt.ArrayLike,
        band: float,
    ) -> None:
        at, y0, yf, target = (
            np.broadcast_to(np.asarray(item, dtype=float), len(y))
            for item in (at, initial, final, target)
        )
        self._t, self._y, self._at, self._band = t, y, at, band
        with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
            fine = np.isfinite(y).all(axis=1) & (at <= t[-1]) & ((at >= t[0]) | ~np.isnan(y0))
            y0 = np.where(np.isnan(y0), values_at(t, y, at), y0)
            yf = np.where(np.isnan(yf), target, yf)
            known = ~np.isnan(yf)
            yf = np.where(known, yf, y[:, -1])
            change = yf - y0
            fine &= np.isfinite(change) & (change != 0.0)
            more = _time_to_rest(t, y, at, _SHARE_OF_BAND * band * np.abs(change))
            yf[~fine | ((more > 0.0) & ~known)] = np.nan
            share = y - y0[:, None]
            share /= (yf - y0)[:, None]
            off = share - 1.0
            settled = np.where(remains(t, off, at, band), entered(t, off, at, band) - at, np.nan)
        self._initial, self._final, self._target = y0, yf, target
        self._share, self._settled = share, settled
        self.longer = np.where(fine & np.isnan(settled), more, 0.0)

    def __getitem__(self, name: str) -> FloatArray:
        """Return a figure by its name."""
        with np.errstate(all="ignore"):
            return np.asarray(_FIGURES[name](self))

    @cached_property
    def _since(self) -> FloatArray:
        """The shares of the way from the step on, before it NaN."""
        return np.where(self._t >= self._at[:, None], self._share, np.nan)

    @cached_property
    def _peak(self) -> npt.NDArray[np.intp]:
        """Where each response is farthest."""
        known = np.where(np.isnan(self._since), -np.inf, self._since)
        return np.asarray(np.argmax(known, axis=1))

    def _at_peak(self, values: FloatArray) -> FloatArray:
        """Return the values of each row at its peak."""
        return values[np.arange(len(values)), self._peak]

    def _where_final(self, values: FloatArray) -> FloatArray:
        """Return values, NaN where there is no final value."""
        return np.where(np.isfinite(self._final), values, np.nan)

    @cached_property
    def _rise(self) -> tuple[FloatArray, FloatArray]:
        """When the rise begins and ends."""
        low, high = (_first_reach(self._t, self._since, level) - self._at for level in (0.1, 0.9))
        return low, high


#: How each figure is computed.
_FIGURES: dict[str, Callable[[StepFigures], FloatArray]] = {
    "initial": lambda of: of._initial,
    "final": lambda of: of._final,
    "rise_time": lambda of: of._rise[1] - of._rise[0],
    "overshoot": lambda of: 100.0 * np.maximum(0.0, of._at_peak(of._since) - 1.0),
    "undershoot": lambda of: 100.0 * np.maximum(0.0, -np.fmin.reduce(of._since, axis=1)),
    "peak": lambda of: of._where_final(of._at_peak(of._y)),
    "peak_time": lambda of: of._where_final(of._t[of._peak] - of._at),
    "settling_time": lambda of: of._settled,
    "steady_state_error": lambda of: of._target - of._y[:, -1],
    "target": lambda of: of._target,
    "rise_start": lambda of: of._rise[0],
    "rise_end": lambda of: of._rise[1],
    "band": lambda of: np.full(len(of._y), of._band),
    "at": lambda of: of._at,
}


def _ranges(
    t: FloatArray, y: FloatArray, begin: FloatArray, end: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each row between two times of its own."""
    first, last = np.searchsorted(t, begin), np.searchsorted(t, end, side="right")
    low, high = np.min(first, initial=len(t)), np.max(last, initial=0)
    inside: Any = True
    if np.any(first != low) or np.any(last != high):  # a window for each row takes longer
        places = np.arange(low, high)
        inside = (places >= first[:, None]) & (places < last[:, None])
    ends = values_at(t, y, begin), values_at(t, y, end)
    least = np.min(y[:, low:high], axis=1, where=inside, initial=np.inf)
    greatest = np.max(y[:, low:high], axis=1, where=inside, initial=-np.inf)
    return np.minimum(least, np.minimum(*ends)), np.maximum(greatest, np.maximum(*ends))


def _last_quarters(
    t: FloatArray, y: FloatArray, at: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Return the ranges of the rows in the last quarter but one after the step, and in the last."""
    begin, middle = (at + part * (t[-1] - at) for part in (0.5, 0.75))
    return _ranges(t, y, begin, middle), _ranges(t, y, middle, np.full(len(y), t[-1]))


def _time_to_rest(t: FloatArray, y: FloatArray, at: FloatArray, small: FloatArray) -> FloatArray:
    """Return how long it takes until less than something small is to come; 0 if it is so now."""
    before, now = _last_quarters(t, y, at)
    moved, ratio = now[1] - now[0], (now[1] - now[0]) / (before[1] - before[0])
    to_come = np.where(ratio < 1.0, moved * ratio / (1.0 - ratio), np.inf)
    quarters = np.where(ratio < 1.0, np.log(to_come / small) / -np.log(ratio), np.inf)
    moving = (moved > small) & (to_come > small)
    in_sight = np.where(quarters > 4.0 * _FAR, np.inf, quarters)
    return np.where(moving, in_sight * (t[-1] - at) / 4.0, 0.0)


def _first_reach(t: FloatArray, share: FloatArray, level: float) -> FloatArray:
    """Return when each row first reaches a level from below, or NaN."""
    above = share >= level
    index = np.argmax(above, axis=1)
    return np.where(
        above.any(axis=1), _crossing(t, share, index, np.full(len(share), level)), np.nan
    )


def remains(
    t: FloatArray, deviation: FloatArray, at: FloatArray, band: float
) -> npt.NDArray[np.bool_]:
    """Tell which rows are inside of the band at the end of the record, and will stay there.

    A deviation of up to E0 in the last quarter but one and E1 in the last is taken to go on as
    E1²/E0, which has to be inside, too. Up to a tenth of the band it may also grow.
    """
    before, now = (
        np.maximum(-least, greatest) for least, greatest in _last_quarters(t, deviation, at)
    )
    lasting = (now <= _SHARE_OF_BAND * band) | (now**2 <= band * before)
    return np.asarray((np.abs(deviation[:, -1]) <= band) & lasting)


def entered(t: FloatArray, deviation: FloatArray, at: FloatArray, band: float) -> FloatArray:
    """Return when each row that ends inside of the band enters it for the last time."""
    outside = np.abs(deviation) > band
    last = deviation.shape[1] - 1 - np.argmax(outside[:, ::-1], axis=1)
    index = np.minimum(last + 1, len(t) - 1)
    level = np.copysign(band, deviation[np.arange(len(deviation)), last])
    first = t[np.minimum(np.searchsorted(t, at), len(t) - 1)]
    return np.where(outside.any(axis=1), _crossing(t, deviation, index, level), first)


def _crossing(
    t: FloatArray, values: FloatArray, index: npt.NDArray[np.intp], level: FloatArray
) -> FloatArray:
    """Interpolate when each row crossed its level between points ``index - 1`` and ``index``."""
    rows, before = np.arange(len(values)), np.maximum(index - 1, 0)
    first, last = values[rows, before], values[rows, index]
    inside = (index > 0) & ~np.isnan(first) & (first != last)
    fraction = np.where(inside, (level - first) / (last - first), 1.0)
    return np.asarray(t[before] + fraction * (t[index] - t[before]))


__all__ = [
    "StepFigures",
    "StepInfo",
    "effort_figures",
    "effort_lines",
    "entered",
    "remains",
    "step_figures",
]
