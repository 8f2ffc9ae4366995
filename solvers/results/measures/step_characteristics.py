"""Step metrics of one run, or of many at once.

Whether a record has come to rest is judged by the last two quarters of its time after the step. The
response moves over a range R0 in the last quarter but one, and over R1 in the last. With r = R1/R0,
a motion that goes on to decay as it did moves by R1 r / (1 - r) more, and one with r >= 1 does not
decay. A record *still moves* when R1 and what is to come are both more than a tenth of the band
around the final value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.measures import reductions
from flexure.solvers.results.measures.curves import Curve

#: Least and greatest values, arrays of shape (N,).
Range: TypeAlias = tuple[FloatArray, FloatArray]
_SLIP = 1.5  # ratio of the motions in two quarters, from which on a motion is no steady drift
_SHARE_OF_BAND = 0.1  # of the settling band, beyond which a record still moves
_ROUNDING = 1e-14  # of the whole way, in its extremes
_FAR = 100.0  # records of the same length; rest beyond these is not in sight


@dataclass(frozen=True)
class StepInfo(Answer):
    """Measures of a step response y(t) from y0 to its final value yf.

    Times count from the instant of the step. A metric that the record does not contain, because
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

    See Also
    --------
    step_info : Measure a record.
    step_response : Simulate and measure.

    Examples
    --------
    >>> import flexure as fx
    >>> t = np.linspace(0.0, 10.0, 1001)
    >>> info = fx.step_info(t, 1.0 - np.exp(-t), final=1.0)
    >>> round(info.rise_time, 3), info.overshoot
    (2.197, 0.0)
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
    """Return the lines about integrals of the error and the control effort."""
    lines = []
    if np.isfinite(info.iae):
        lines.append(f"IAE, ISE, ITAE      {info.iae:.4g}, {info.ise:.4g}, {info.itae:.4g}")
    if np.isfinite(info.control_peak):
        lines.append(f"control             peak {info.control_peak:.4g}, ")
        lines[-1] += f"total variation {info.control_variation:.4g}"
    return lines


def effort_figures(
    y: Curve, figures: Mapping[str, FloatArray] | StepFigures, control: Curve | None = None
) -> dict[str, FloatArray]:
    """Return the metrics of responses that are integrals of the error, or of the control.

    ``figures`` are the `StepFigures` of the N runs in ``y``, and ``control`` is the manipulated
    input.
    """
    at, target, final = (figures[name] for name in ("at", "target", "final"))
    found = error_figures(y, at, np.where(np.isnan(target), final, target))
    if control is None:
        return found | dict.fromkeys(CONTROLS, np.full(len(y), np.nan))
    return found | control_figures(control, at)


class StepFigures:
    """Step metrics, each computed when it is asked for.

    They are the attributes of `StepInfo` but those of `effort_figures`, arrays of shape (N,); NaN
    in runs that cannot be measured.

    ``y`` are the responses of N runs; all others are as for `flexure.step_info`, shape () or (N,),
    with NaN instead of None, and ``at`` is always given.
    """

    def __init__(
        self,
        y: Curve,
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
        self._y, self._at, self._band = y, at, band
        with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
            fine = y.finite & (at <= y.stop) & ((at >= y.start) | ~np.isnan(y0))
            y0 = np.where(np.isnan(y0), y.value_before(at), y0)
            yf = np.where(np.isnan(yf), target, yf)
            known = ~np.isnan(yf)
            yf = np.where(known, yf, y.final)
            change = yf - y0
            fine &= np.isfinite(change) & (change != 0.0)
            quarters = last_quarters(y, at)
            more = _time_to_rest(quarters, y.stop - at, _SHARE_OF_BAND * band * np.abs(change))
            yf[~fine | ((more > 0.0) & ~known)] = np.nan
            self._since = y.between(at, y.stop)
            width = band * np.abs(yf - y0)
            stays = remains(quarters, y.final, yf, width)
            settled = np.where(stays, entered(self._since, at, yf, width) - at, np.nan)
        self._initial, self._final, self._target = y0, yf, target
        self._settled = settled
        # How much longer runs have to be that lack a metric because they still move: an estimate in
        # seconds, infinite where no decay is in sight, zero where nothing is lacking, shape (N,).
        self.longer = np.where(fine & np.isnan(settled), more, 0.0)

    def __getitem__(self, name: str) -> FloatArray:
        """Return a metric by its name."""
        with np.errstate(all="ignore"):
            return np.asarray(_FIGURES[name](self))

    def all(self) -> dict[str, FloatArray]:
        """Return all metrics by name."""
        return {name: self[name] for name in _FIGURES}

    @cached_property
    def _extremes(self) -> Curve:
        """The response from the step on, divided at its extremes."""
        return self._since.at_extremes()

    def _shares(self, since: Curve) -> tuple[FloatArray, FloatArray]:
        """Return the shares of the way where arcs begin and end."""
        y0, change = (each[since.run] for each in (self._initial, self._final - self._initial))
        return (since.y0 - y0) / change, (since.y1 - y0) / change

    @cached_property
    def _peak(self) -> tuple[FloatArray, FloatArray]:
        """Where each response is farthest: the time and the value."""
        since = self._extremes
        a, b = self._shares(since)
        farthest = since.over(np.maximum, np.maximum(a, b))[since.run]
        arc = since.first_of((a == farthest) | (b == farthest))
        begins = a[arc] == farthest[arc]
        time = np.where(begins, since.t0[arc], since.t1[arc])
        value = np.where(begins, since.y0[arc], since.y1[arc])
        known = np.isfinite(self._final)
        return np.where(known, time - self._at, np.nan), np.where(known, value, np.nan)

    @cached_property
    def _overshoot(self) -> FloatArray:
        """How far each response goes beyond its final value, as a share of the way."""
        return np.asarray((self._peak[1] - self._initial) / (self._final - self._initial) - 1.0)

    @property
    def _undershoot(self) -> FloatArray:
        """How far each response goes the wrong way, as a share of the way."""
        since = self._extremes
        return -since.over(np.minimum, np.minimum(*self._shares(since)))

    @cached_property
    def _rise(self) -> tuple[FloatArray, FloatArray]:
        """When the rise begins and ends."""
        low, high = (self._reach(level) - self._at for level in (0.1, 0.9))
        return low, high

    def _reach(self, level: float) -> FloatArray:
        """Return when each response first reaches a share of the way, or NaN."""
        goal = self._initial + level * (self._final - self._initial)
        a, b = self._shares(self._since)
        since = self._since.first_crossing(goal, (a >= level) | (b >= level))
        a, b = self._shares(since)
        arc = since.first_of((a >= level) | (b >= level))
        crossed = since.crossing(arc, goal)
        return np.where(arc >= 0, np.where(a[arc] >= level, since.t0[arc], crossed), np.nan)


#: How each metric is computed.
_FIGURES: dict[str, Callable[[StepFigures], FloatArray]] = {
    "initial": lambda of: of._initial,
    "final": lambda of: of._final,
    "rise_time": lambda of: of._rise[1] - of._rise[0],
    "overshoot": lambda of: _percent(of._overshoot),
    "undershoot": lambda of: _percent(of._undershoot),
    "peak": lambda of: of._peak[1],
    "peak_time": lambda of: of._peak[0],
    "settling_time": lambda of: of._settled,
    "steady_state_error": lambda of: of._target - of._y.final,
    "target": lambda of: of._target,
    "rise_start": lambda of: of._rise[0],
    "rise_end": lambda of: of._rise[1],
    "band": lambda of: np.full(len(of._y), of._band),
    "at": lambda of: of._at,
}


def _percent(share: FloatArray) -> FloatArray:
    """Return a share of the way in percent, and nothing where it is negative or rounding."""
    return np.where(share <= _ROUNDING, 0.0, 100.0 * share)


def last_quarters(y: Curve, at: FloatArray) -> tuple[Range, Range]:
    """Return the ranges of runs in the last quarter but one after an instant, and in the last."""
    begin, middle = (at + part * (y.stop - at) for part in (0.5, 0.75))
    return y.extremes(begin, middle), y.extremes(middle, y.stop)


def _motions(quarters: tuple[Range, Range]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return by how much runs moved in both quarters, and will move after them."""
    before, moved = (highest - lowest for lowest, highest in quarters)
    ratio = moved / before
    return before, moved, np.where(ratio < 1.0, moved * ratio / (1.0 - ratio), np.inf)


def _time_to_rest(
    quarters: tuple[Range, Range], length: FloatArray, small: FloatArray
) -> FloatArray:
    """Return how long it takes until less than something small is to come; 0 if it is so now."""
    before, moved, to_come = _motions(quarters)
    ratio = moved / before
    count = np.where(ratio < 1.0, np.log(to_come / small) / -np.log(ratio), np.inf)
    moving = (moved > small) & (to_come > small)
    in_sight = np.where(count > 4.0 * _FAR, np.inf, count)
    return np.where(moving, in_sight * length / 4.0, 0.0)


def remains(
    quarters: tuple[Range, Range], last: FloatArray, goal: FloatArray, band: FloatArray
) -> npt.NDArray[np.bool_]:
    """Return which runs are inside of the band around a goal at their end, and will stay there.

    A deviation of up to E0 in the last quarter but one and E1 in the last is taken to go on as
    E1²/E0, which has to be inside, too. Up to a tenth of the band it may also grow. If the ranges
    of both quarters do not overlap, the response drifts. If it drifts away from its goal by
    more than a tenth of the band in each, and not much faster in the last one, the limit of the
    drift has to be inside, too.
    """
    before, now = (np.maximum(goal - least, greatest - goal) for least, greatest in quarters)
    lasting = (now <= _SHARE_OF_BAND * band) | (now**2 <= band * before)
    (low, high), (lowest, highest) = quarters
    moved_before, moved, to_come = _motions(quarters)
    drift = np.where(lowest >= high, to_come, np.where(highest <= low, -to_come, 0.0))
    drifts = np.minimum(moved, moved_before) > _SHARE_OF_BAND * band  # in both quarters,
    drifts &= moved < _SLIP * moved_before  # and not suddenly
    lands = ~drifts | (np.abs(last + drift - goal) <= band)
    lands |= drift * (last - goal) < 0.0  # it approaches its goal
    return np.asarray((np.abs(last - goal) <= band) & lasting & lands)


def entered(y: Curve, at: FloatArray, goal: FloatArray, band: FloatArray) -> FloatArray:
    """Return when each run that ends inside of the band enters it for the last time."""
    low, high = goal - band, goal + band
    y = y.last_outside(low, high)
    under, over = low[y.run], high[y.run]
    after = (y.y1 < under) | (y.y1 > over)
    arc = y.last_of(after | (y.y0 < under) | (y.y0 > over))
    crossed = y.crossing(arc, np.where(y.y0[arc] > high, high, low))
    return np.where(arc >= 0, np.where(after[arc], y.t1[arc], crossed), at)


ERRORS = ("iae", "ise", "itae")
CONTROLS = ("control_variation", "control_peak")


def error_figures(y: Curve, at: FloatArray, goal: FloatArray) -> dict[str, FloatArray]:
    """Return IAE, ISE and ITAE of goal - y from an instant on.

    Each of the N runs begins at one of ``at``, and should be at its ``goal``.
    """
    with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
        e = y.between(at, y.stop).moved(-goal)
        return {"iae": reductions.iae(e), "ise": reductions.ise(e), "itae": reductions.itae(e, at)}


def control_figures(u: Curve, at: FloatArray) -> dict[str, FloatArray]:
    """Return the total variation of a manipulated input, and its largest magnitude.

    A jump at the instant is in the variation; the magnitude counts from the instant on, after it.
    """
    with np.errstate(all="ignore"):
        since = u.between(at, u.stop)
        jump = np.abs(since.y0[since.first[:-1]] - u.value_before(at))
        fine = u.finite & (at <= u.stop)
        return {
            "control_variation": np.where(fine, reductions.total_variation(since) + jump, np.nan),
            "control_peak": np.where(fine, reductions.peak(since), np.nan),
        }
