"""Nyquist and Nichols plots of loop gains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import flag
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import (
    GREY,
    PALE,
    RED,
    check_target,
    style_of,
    tidy,
    write_legend,
)
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.frequency.frequency_curves import (
    UNITS,
    Curve,
    Models,
    closest_margins,
    curves_of,
    gaps,
    to_decibels,
)
from flexure.solvers.analysis.frequency.frequency_plots import (
    cross_zero,
    turn_ticks,
    unit_name,
    with_figures,
)
from flexure.solvers.analysis.frequency.margins import margins as loop_margins
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDEST = 3.0  # of a Nyquist plot, in distances of the point -1 from the origin
_BEYOND = 1e3  # how far a Nyquist plot goes beyond the frequencies of a Bode plot
_BESIDE = 20.0  # of a Nichols plot beside a critical point, in degrees
_LEVELS = (-20.0, -12.0, -6.0, -3.0, 0.0, 1.0, 3.0, 6.0, 12.0)  # of a closed loop, in dB


def nyquist(
    models: Models,
    frequency: npt.ArrayLike | None = None,
    *,
    units: str = "rad/s",
    margins: bool = True,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot loop gains in the complex plane, around the point -1: a Nyquist plot.

    The closed loop has as many unstable poles as L, more by one for each time that the curve for
    all positive (solid) and negative (dashed) frequencies goes around -1 clockwise.

    Parameters
    ----------
    models : LinearModel, or list or dict of them
        Loop gains with one input and one output, as `loop_gain` returns them.
    frequency, units, path
        As for `bode`; ``units`` are those of ``frequency`` and of the texts.
    margins : bool
        Whether to mark the crossings with the unit circle and with the negative real axis that give
        phase and gain margin, and the circle around -1 that the curve touches. Its radius is the
        inverse of the peak of the sensitivity, Ms = max 1/abs(1 + L).
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueRefusedError
        As for `bode`, and when a model has several inputs or outputs.

    See Also
    --------
    bode : Magnitude and phase over frequency.
    nichols : Magnitude over phase.
    margins : The margins as numbers.

    Notes
    -----
    The plot shows at most the neighborhood of -1 and the origin, three times as wide as their
    distance; larger values are clipped. At poles on the imaginary axis, or of sampled models on the
    unit circle, the curve leaves the picture on one side and comes back on another, without a line
    between them: the contour passes such a pole on its right, so that the two ends are joined by
    half a turn clockwise, far away, for each pole there.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.TransferFunction("plant", [3.0], [1.0, 3.0, 3.0, 1.0])
    >>> context = plant.create_default_context()
    >>> context.set("u", 0.0)
    >>> ax = fx.nyquist({"loop": fx.linearize(plant, context)})
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('real part', 'imaginary part')
    """
    attempt = "Cannot draw a Nyquist plot"
    check_target(ax, path, attempt)
    marked = flag(margins, "margins", attempt)
    curves = curves_of(models, frequency, units, attempt, single=True, beyond=_BEYOND)
    ax = axes_or_new(ax, figsize=(7.0, 6.4))
    unit = UNITS[units]
    labels: list[Label] = []
    around = 2.0 * np.pi * np.linspace(0.0, 1.0, 181)
    for k, curve in enumerate(curves):
        style, line = _style(k, curve), _broken(curve)
        (drawn,) = ax.plot(line.real, line.imag, label=curve.label, **style)
        ax.plot(line.real, -line.imag, **style | {"linestyle": "--", "linewidth": 1.0})
        if marked:
            said = _mark_in_plane(ax, curve, unit, style["color"], around)
            labels += said
            drawn.set_label(with_figures(curve.label, said))
    ax.plot(np.cos(around), np.sin(around), color=GREY, linewidth=0.8, linestyle=":")
    ax.plot([-1.0], [0.0], "+", color=RED, markersize=11, markeredgewidth=2.0)
    _frame(ax, curves)
    tidy(ax)
    ax.set_aspect("equal")
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    write_legend(ax, curves)
    for k, curve in enumerate(curves):
        _arrows(ax, _broken(curve), style_of(k)["color"])
    labels = labels if len(curves) == 1 else []  # the legend shows the margins of several curves
    seen = [line for line in ax.lines if line.get_color() != GREY]
    place_labels(ax, [*labels, Label("-1", (-1.0, 0.0), RED)], seen)
    cross_zero(ax)
    return saved(ax, path)


def _style(number: int, curve: Curve) -> dict[str, Any]:
    """Return the style of a curve; that of a static gain is a point."""
    is_point = bool(np.all(curve.response == curve.response[0]))
    return style_of(number) | ({"marker": "o"} if is_point else {})


def _broken(curve: Curve) -> npt.NDArray[np.complex128]:
    """Return the response with NaN between the two sides of an undamped pole."""
    places = np.searchsorted(curve.omega, gaps(curve))
    return np.insert(curve.response, places, np.nan)


def _mark_in_plane(
    ax: Axes, curve: Curve, unit: float, color: str, around: FloatArray
) -> list[Label]:
    """Mark margins and the circle of the peak sensitivity; return what is to be said."""
    gain, angle = closest_margins(curve)
    said = []
    dot: dict[str, Any] = {
        "color": color,
        "marker": "o",
        "markersize": 5.5,
        "markerfacecolor": "white",
    }
    if gain is not None:
        factor, omega = gain
        decibels = float(to_decibels(np.array(factor)))
        ax.plot([-1.0 / factor], [0.0], linestyle="none", zorder=4, **dot)
        text = f"gain margin {decibels:.3g} dB\nat {omega / unit:.3g} {unit_name(unit)}"
        said.append(Label(text, (-1.0 / factor, 0.0), color))
    if angle is not None:
        degrees, omega = angle
        point = -np.exp(1j * np.deg2rad(degrees))
        ax.plot([point.real], [point.imag], linestyle="none", zorder=4, **dot)
        text = f"phase margin {degrees:.3g}°\nat {omega / unit:.3g} {unit_name(unit)}"
        said.append(Label(text, (point.real, point.imag), color))
    peak = 1.0 / loop_margins(curve.model).modulus_margin
    if np.isfinite(peak):
        circle = -1.0 + np.exp(1j * around) / peak
        ax.plot(circle.real, circle.imag, color=color, linewidth=0.9, linestyle="-.")
        top = -1.0 + 1j / peak
        said.append(Label(f"Ms = {peak:.3g}", (top.real, top.imag), color))
    return said


def _frame(ax: Axes, curves: Sequence[Curve]) -> None:
    """Show the curves where they are not too far from -1, in a frame that always contains it."""
    points = np.concatenate([curve.response for curve in curves])
    points = np.concatenate([points, points.conj(), [-1.0, -1.6 + 0j, 0.4 + 0.7j, 0.4 - 0.7j]])
    points = points[np.isfinite(points)]
    x = np.clip([points.real.min(), points.real.max()], -_WIDEST, _WIDEST - 1.0)
    y = min(np.max(np.abs(points.imag)), 0.5 * (2.0 * _WIDEST - 1.0))
    room = 0.06 * max(x[1] - x[0], 2.0 * y)
    ax.set_xlim(x[0] - room, x[1] + room)
    ax.set_ylim(-y - room, y + room)


def _arrows(ax: Axes, line: npt.NDArray[np.complex128], color: str) -> None:
    """Draw the direction of growing frequency on a curve, where it is in the picture."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(line))
    seen = (line.real > left) & (line.real < right) & (line.imag > low) & (line.imag < high)
    steps = np.where(seen[1:] & seen[:-1], steps, 0.0)
    way = np.cumsum(steps)
    if not way.size or way[-1] < 0.02 * (right - left):
        return
    for share in (0.3, 0.7):
        k = int(np.searchsorted(way, share * way[-1]))
        step = line[k + 1] - line[k]
        tip = line[k] + step
        tail = tip - 1e-3 * (right - left) * step / abs(step)
        arrow = ax.annotate(
            "",
            (tip.real, tip.imag),
            xytext=(tail.real, tail.imag),
            arrowprops={"arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": color},
        )
        arrow.set_in_layout(False)


def nichols(
    models: Models,
    frequency: npt.ArrayLike | None = None,
    *,
    units: str = "rad/s",
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot loop gains in dB over their phase, with contours of the closed loop.

    Parameters
    ----------
    models : LinearModel, or list or dict of them
        Loop gains with one input and one output, as `loop_gain` returns them.
    frequency, units, ax, path
        As for `nyquist`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueRefusedError
        As for `nyquist`.

    See Also
    --------
    bode : Magnitude and phase over frequency.
    nyquist : Loop gains around the point -1.

    Notes
    -----
    The grey contours are those of constant abs(L/(1 + L)), in dB. The crosses are the points
    L = -1.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.TransferFunction("plant", [3.0], [1.0, 3.0, 3.0, 1.0])
    >>> context = plant.create_default_context()
    >>> context.set("u", 0.0)
    >>> ax = fx.nichols(fx.linearize(plant, context), [1.0, 2.0])
    >>> ax.lines[0].get_xdata().round(1)
    array([-135. , -190.3])
    """
    attempt = "Cannot draw a Nichols plot"
    check_target(ax, path, attempt)
    curves = curves_of(models, frequency, units, attempt, single=True)
    ax = axes_or_new(ax, figsize=(8.0, 6.0))
    for k, curve in enumerate(curves):
        ax.plot(curve.phase, curve.decibels, label=curve.label, **_style(k, curve))
    phases = np.concatenate([curve.phase for curve in curves])
    sizes = np.concatenate([curve.decibels for curve in curves])
    phases, sizes = phases[np.isfinite(phases)], sizes[np.isfinite(sizes)]
    left = 90.0 * np.floor((np.min(phases, initial=-180.0) - 45.0) / 90.0)
    right = 90.0 * np.ceil((np.max(phases, initial=-180.0) + 45.0) / 90.0)
    left -= _BESIDE if left % 360.0 == 180.0 else 0.0  # a critical point is there
    right += _BESIDE if right % 360.0 == 180.0 else 0.0
    low = max(np.min(sizes, initial=-24.0), -60.0) - 3.0
    high = min(np.max(sizes, initial=15.0), 60.0) + 3.0
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    turns = np.arange(np.floor(left / 360.0), np.ceil(right / 360.0) + 1.0)
    ax.plot(360.0 * turns - 180.0, 0.0 * turns, "+", color=RED, markersize=11, mew=2.0)
    drawn = list(ax.lines)
    labels = _contours(ax, turns, (left, right), (low, high))
    tidy(ax)
    turn_ticks(ax.xaxis, ax)
    ax.set_xlabel("phase [°]")
    ax.set_ylabel("magnitude [dB]")
    write_legend(ax, curves)
    place_labels(ax, labels, drawn)
    return saved(ax, path)


def _contours(
    ax: Axes, turns: FloatArray, phases: tuple[float, float], sizes: tuple[float, float]
) -> list[Label]:
    """Draw where |L/(1 + L)| is constant; return the labels of these contours."""
    # With T = L/(1 + L) on a circle around the origin, L = T/(1 - T).
    said = []
    around = np.pi * np.linspace(-1.0, 1.0, 721)[1:-1]
    for level in _LEVELS:
        T = 10.0 ** (level / 20.0) * np.exp(1j * np.sort(np.concatenate([around, around * 0.02])))
        L = T[T != 1.0] / (1.0 - T[T != 1.0])
        x = np.rad2deg(np.angle(-L)) - 180.0
        y = to_decibels(np.abs(L))
        x[np.append(np.abs(np.diff(x)) > 180.0, False)] = np.nan  # from one turn to the next
        for turn in turns:
            ax.plot(x + 360.0 * turn, y, color=PALE, linewidth=0.7, zorder=1)
        xs = np.concatenate([x + 360.0 * turn for turn in turns])
        ys = np.tile(y, len(turns))
        with np.errstate(invalid="ignore"):
            seen = (xs > phases[0]) & (xs < phases[1]) & (ys > sizes[0]) & (ys < sizes[1])
        if seen.any():
            rank = ys[seen] if level > 0.0 else xs[seen] - 1e-3 * ys[seen]
            k = np.flatnonzero(seen)[np.argmax(rank)]
            said.append(Label(f"{level:g} dB", (xs[k], ys[k]), GREY, on_line=True))
    return said
