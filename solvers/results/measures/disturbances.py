"""Disturbances: what a response does that is pushed away and should come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ValueRefusedError, warn
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.drawing.formats.new_figures import Plotted
from flexure.diagrams.interface.html import Shown
from flexure.diagrams.interface.lazy_names import Deferred
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.solvers.results.measures.curves import Curve
from flexure.solvers.results.measures.step_characteristics import (
    CONTROLS,
    control_figures,
    effort_lines,
    entered,
    error_figures,
    last_quarters,
    remains,
)
from flexure.solvers.results.measures.step_responses import (
    checked_band,
    first_row,
    read_curves,
    straight,
)

if TYPE_CHECKING:
    from flexure.solvers.results.pictures import response_plots
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.tracing.signals import Signal
else:
    response_plots = Deferred("flexure.solvers.results.pictures.response_plots")

_ATTEMPT = "Cannot measure the response to a disturbance"
BAND = 0.05  # half the width of the band, as a fraction of the peak deviation, unless it is given


@dataclass(frozen=True)
class DisturbanceInfo(Answer):
    """Measures of a response y(t) that recovers from a disturbance.

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

    See Also
    --------
    disturbance_info : Measure a record.

    Examples
    --------
    >>> import flexure as fx
    >>> t = np.linspace(0.0, 10.0, 5001)
    >>> info = fx.disturbance_info(t, t * np.exp(-t), tolerance=0.01)
    >>> round(info.peak_deviation, 3), round(info.recovery_time, 2)
    (0.368, 6.47)
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
    y: Curve,
    at: npt.ArrayLike,
    target: npt.ArrayLike,
    tolerance: npt.ArrayLike,
    band: float,
    control: Curve | None = None,
) -> dict[str, FloatArray]:
    """Measure responses to disturbances.

    ``y`` are the responses of N runs, and ``control`` the manipulated input; all others are as for
    `flexure.disturbance_info`, shape () or (N,), with NaN instead of None, and ``at`` is always
    given. The result has the attributes of `DisturbanceInfo`, shape (N,); NaN in runs that cannot
    be measured.
    """
    at, aim, width = (
        np.broadcast_to(np.asarray(item, dtype=float), len(y)) for item in (at, target, tolerance)
    )
    with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
        fine = y.finite & (at >= y.start) & (at < y.stop)
        aim = np.where(np.isnan(aim), y.value_before(at), aim)
        since = y.between(at, y.stop)
        away = since.at_extremes()
        goal = aim[away.run]
        first, last = np.abs(away.y0 - goal), np.abs(away.y1 - goal)
        peak = away.over(np.maximum, np.maximum(first, last))
        arc = away.first_of(np.maximum(first, last) == peak[away.run])
        begins = first[arc] == peak
        width = np.where(np.isnan(width), band * peak, width)
        returns = (np.abs(y.final - aim) < peak) | (peak == 0.0)  # else it still moves away
        stays = returns & remains(last_quarters(y, at), y.final, aim, width)
        back = np.where(stays, entered(since, at, aim, width) - at, np.nan)
        figures = {
            "target": aim,
            "peak_deviation": peak,
            "peak": np.where(begins, away.y0[arc], away.y1[arc]),
            "peak_time": np.where(begins, away.t0[arc], away.t1[arc]) - at,
            "recovery_time": back,
            "steady_state_error": aim - y.final,
            **error_figures(y, at, aim),
            **dict.fromkeys(CONTROLS, np.full(len(y), np.nan)),
            "tolerance": width,
            "at": at,
        }
    if control is not None:
        figures |= control_figures(control, at)
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
    """Measure how a response recovers after a disturbance.

    It has recovered when it stays within the tolerance, and is expected to stay there: a deviation
    of up to E0 in the third quarter of the record after the disturbance and E1 in the fourth is
    taken to go on as E1²/E0, as by `step_info`. A record that ends at its largest deviation shows
    no recovery.

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
        The same in the unit of the response, instead of ``band``.
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

    See Also
    --------
    step_info : Measure a step response.

    Examples
    --------
    >>> t = np.linspace(0.0, 10.0, 5001)
    >>> info = disturbance_info(t, t * np.exp(-t), tolerance=0.01)
    >>> round(info.peak_deviation, 4), round(info.peak_time, 3), round(info.recovery_time, 2)
    (0.3679, 1.0, 6.47)
    """
    effort = None if control is None else straight(time, control, _ATTEMPT)
    response = straight(time, values, _ATTEMPT)
    return measure("the response", response, at, target, band, tolerance, effort)


def measure(
    name: str,
    response: Curve,
    at: float | None,
    target: float | None,
    band: float,
    tolerance: float | None,
    control: Curve | None,
) -> DisturbanceInfo:
    """Measure a response as `disturbance_info` does; a warning calls it by a name."""
    start, stop = float(response.start[0]), float(response.stop[0])
    begin = start if at is None else _number("at", at)
    if not start <= begin < stop:
        raise ValueRefusedError(
            _ATTEMPT,
            expected=f"a disturbance within the record, from {start:g} to {stop:g} s, before its "
            "end",
            found=f"a disturbance at {begin:g} s",
        )
    aim = np.nan if target is None else _number("target", target)
    width = np.nan if tolerance is None else positive("tolerance", tolerance)
    share = positive("band", band)
    figures = disturbance_figures(response, begin, aim, width, share, control)
    info = DisturbanceInfo(**first_row(figures))
    if np.isnan(info.recovery_time):
        away = abs(info.steady_state_error)
        farthest = " and farther than ever before" if away == info.peak_deviation else ""
        warn(
            f"{name} has not recovered at t = {stop:g} s, so that its recovery time is NaN: it is "
            f"{away:.3g} from its target{farthest}, and the tolerance is {info.tolerance:.3g}"
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
    return checked_band(argument, value, _ATTEMPT)


@dataclass(frozen=True)
class DisturbanceResponse(Shown, Plotted):
    """A recorded response to a disturbance with its measures.

    Its picture has the peak, the recovery and the area of the error marked.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Times in seconds.
    values : ndarray, shape (k,)
        The response.
    info : DisturbanceInfo
        Its metrics.
    name : str
        Path of the signal.
    unit : str
        Its unit.

    See Also
    --------
    disturbance_info : Measure a record.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> charge = builder.build()
    >>> response = fx.simulate(charge, 8.0).disturbance_response("lag.y", target=1.0)
    >>> round(response.info.peak_deviation, 3)
    1.0
    """

    time: FloatArray
    values: FloatArray
    info: DisturbanceInfo
    name: str
    unit: str

    def _pieces(self) -> Iterator[str]:
        from flexure.solvers.results.records.result_tables import response_pieces

        return response_pieces(self)

    _figsize = (8.0, 4.8)
    _draw = response_plots.draw_disturbance


def record_disturbance(
    result: SimulationResult,
    signal: Signal,
    *,
    at: float | None = None,
    target: float | None = None,
    band: float = BAND,
    tolerance: float | None = None,
    control: Signal | None = None,
) -> DisturbanceResponse:
    """Return a signal as the response to a disturbance, ready to be plotted.

    Options are those of `disturbance_info`.
    """
    at, asked = result.find_step(signal, at, disturbs=True)
    target = asked if target is None and not np.isnan(asked) else target
    response, effort = read_curves(result, signal, control, "response to a disturbance")
    name = path_of(signal)
    info = measure(f"'{name}'", response, at, target, band, tolerance, effort)
    grid = result.fine_time()
    values = result.sample(signal, grid)
    return DisturbanceResponse(grid, values, info, name, result.unit_of(signal))
