"""Step responses and the figures that describe them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.context import Context
from flexure.diagrams.errors import ValueRefusedError
from flexure.diagrams.ports import InputPort
from flexure.diagrams.system import System, require_system
from flexure.diagrams.values import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.result import Signal


@dataclass(frozen=True)
class StepInfo:
    """Figures of a step response y(t) that goes from y0 to its final value yf.

    Times count from the instant of the step. A figure that the record does not contain, because
    the response never gets there, is NaN.

    Attributes
    ----------
    initial : float
        y0, the value at the step.
    final : float
        yf, the given final value, or the last one of the record.
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

    def __str__(self) -> str:
        lines = [
            f"rise time           {self.rise_time:.4g} s",
            f"overshoot           {self.overshoot:.3g} %",
            f"peak                {self.peak:.5g} at {self.peak_time:.4g} s",
            f"settling time       {self.settling_time:.4g} s (band {self.band:.0%})",
            f"final value         {self.final:.5g}",
        ]
        if np.isfinite(self.target):
            lines.append(f"steady-state error  {self.steady_state_error:.3g}")
        return "\n".join(lines)


def step_info(
    time: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    at: float | None = None,
    initial: float | None = None,
    final: float | None = None,
    target: float | None = None,
    band: float = 0.02,
) -> StepInfo:
    """Measure a step response.

    Parameters
    ----------
    time : array_like, shape (k,)
        Ascending times in seconds; a repeated time marks a jump.
    values : array_like, shape (k,)
        The response; between the points it is taken to be linear.
    at : float, optional
        Instant of the step; the first time when omitted.
    initial : float, optional
        Value before the response; the value at the step when omitted, before a jump there.
    final : float, optional
        Value that the response settles to; its last value when omitted.
    target : float, optional
        What was asked for, for the steady-state error.
    band : float
        Half the width of the settling band, as a fraction of the whole change.

    Returns
    -------
    StepInfo

    Raises
    ------
    ValueRefusedError
        When shapes differ, values are not finite, or there is no change to measure.

    Examples
    --------
    >>> t = np.linspace(0.0, 10.0, 5001)
    >>> info = step_info(t, 1.0 - np.exp(-t), final=1.0)
    >>> round(info.rise_time, 4), round(info.settling_time, 4), info.overshoot
    (2.1972, 3.912, 0.0)
    """
    t, y = _checked(time, values)
    at = float(t[0] if at is None else at)
    first = int(np.searchsorted(t, at))
    if first == len(t):
        raise ValueRefusedError(
            "Cannot measure a step response",
            expected=f"a step before the end of the record at {t[-1]:g} s",
            found=f"a step at {at:g} s",
        )
    if initial is None:  # where the signal itself jumps at the step, the value before
        initial = float(y[first] if t[first] == at else np.interp(at, t, y))
    y0 = float(initial)
    t, y = t[first:] - at, y[first:]
    yf = float(y[-1] if final is None else final)
    change = yf - y0
    if not np.isfinite(change) or change == 0.0:
        raise ValueRefusedError(
            "Cannot measure a step response",
            expected="a finite final value that differs from the initial one",
            found=f"{y0:g} at first and {yf:g} at last",
            remedy="Simulate longer, or pass final=",
        )
    share = (y - y0) / change
    low, high = _first_reach(t, share, 0.1), _first_reach(t, share, 0.9)
    peak = int(np.argmax(share))
    return StepInfo(
        initial=y0,
        final=yf,
        rise_time=high - low,
        overshoot=100.0 * max(0.0, float(share[peak]) - 1.0),
        undershoot=100.0 * max(0.0, -float(share.min())),
        peak=float(y[peak]),
        peak_time=float(t[peak]),
        settling_time=_settled(t, share - 1.0, band),
        steady_state_error=float("nan" if target is None else target - y[-1]),
        target=float("nan" if target is None else target),
        rise_start=low,
        rise_end=high,
        band=band,
    )


def _checked(time: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    t, y = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    fine = t.ndim == 1 and t.shape == y.shape and t.size >= 2
    if not fine or not np.isfinite(t).all() or not np.isfinite(y).all() or np.any(np.diff(t) < 0):
        raise ValueRefusedError(
            "Cannot measure a step response",
            expected="at least two ascending times and as many finite values",
            found=f"times of shape {t.shape} and values of shape {y.shape}"
            if not fine
            else "values that are not finite or times that do not ascend",
        )
    return t, y


def _first_reach(t: FloatArray, share: FloatArray, level: float) -> float:
    """Return when a level is first reached from below, or NaN."""
    above = np.flatnonzero(share >= level)
    if above.size == 0:
        return float("nan")
    return _between(t, share, int(above[0]), level)


def _settled(t: FloatArray, deviation: FloatArray, band: float) -> float:
    """Return when the deviation enters the band for good, or NaN."""
    outside = np.flatnonzero(np.abs(deviation) > band)
    if outside.size == 0:
        return float(t[0])
    last = int(outside[-1])
    if last + 1 == len(t):
        return float("nan")
    return _between(t, deviation, last + 1, float(np.copysign(band, deviation[last])))


def _between(t: FloatArray, values: FloatArray, index: int, level: float) -> float:
    """Interpolate when the level was crossed between the points ``index - 1`` and ``index``."""
    if index == 0:
        return float(t[0])
    before, after = float(values[index - 1]), float(values[index])
    fraction = (level - before) / (after - before) if after != before else 1.0
    return float(t[index - 1] + fraction * (t[index] - t[index - 1]))


@dataclass(frozen=True)
class StepResponse:
    """A recorded step response with its figures.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Times in seconds.
    values : ndarray, shape (k,)
        The response.
    info : StepInfo
        Its figures.
    at : float
        Instant of the step in seconds.
    name : str
        Path of the signal.
    unit : str
        Its unit.
    """

    time: FloatArray
    values: FloatArray
    info: StepInfo
    at: float
    name: str
    unit: str

    def plot(self, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
        """Plot the response with rise time, peak, settling time and final value marked.

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
        from flexure.solvers.plotting import plot_step_response

        return plot_step_response(self, ax=ax, path=path)


def step_response(
    system: System,
    entry: InputPort | str,
    signal: Signal,
    t_final: float,
    *,
    to: float = 1.0,
    context: Context | None = None,
    initial: float | None = None,
    final: float | None = None,
    target: float | None = None,
    band: float = 0.02,
    **options: Any,
) -> StepResponse:
    """Put a step on a free input port and record how a signal responds.

    The step takes place at the time of the context: the input has had its old value up to then,
    the states are those of the context, and from then on the input is ``to``.

    Parameters
    ----------
    system : System
        A block or diagram.
    entry : InputPort or str
        An input port with one component that nothing feeds.
    signal : Handle or str
        What to record, with one component.
    t_final : float
        End of the record in seconds.
    to : float
        The new value of the input.
    context : Context, optional
        Where to start; it is not changed. A default context when omitted.
    initial, final, target, band
        As for `step_info`. Give the initial value when the signal jumps together with the input.
    **options
        As for `flexure.simulate`.

    Returns
    -------
    StepResponse

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.5)
    >>> response = fx.step_response(lag, "u", "y", 5.0, final=1.0)
    >>> round(response.info.rise_time, 3)
    1.099
    """
    from flexure.solvers.equations import start_context
    from flexure.solvers.simulation import simulate

    require_system(system, "Cannot record a step response")
    start = start_context(system, context, f"Cannot record a step response of '{system.label}'")
    port = system.input_port(entry) if isinstance(entry, str) else entry
    port.fix(start, to)
    result = simulate(system, t_final, start, **options)
    return result.step_response(signal, initial=initial, final=final, target=target, band=band)
