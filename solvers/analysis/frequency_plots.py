"""Pictures of frequency responses: Bode, Nyquist and Nichols plots, and singular values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.arguments import check_axes, file_path, flag, items_of, one_of, require
from flexure.diagrams.drawing.canvas import new_figure, save_figure
from flexure.diagrams.values import FloatArray
from flexure.solvers.analysis.frequency_curves import (
    UNITS,
    Curve,
    Models,
    curves_of,
    frequencies,
    gaps,
    labelled,
    margins,
    peak_sensitivity,
    to_decibels,
)
from flexure.solvers.results.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, _LIGHT = "#777777", "#dddddd"
COLORS = ("#1f5a99", "#c8641e", "#2e8b57", "#8a4fa3", "#b22222", "#4d4d4d")
_DASHES = ("-", "--", ":", "-.")
_SCALES = ("dB", "absolute")
_WIDEST = 3.0  # of a Nyquist plot, in distances of the point -1 from the origin
_BEYOND = 1e3  # how far a Nyquist plot goes beyond the frequencies of a Bode plot
_LEVELS = (-20.0, -12.0, -6.0, -3.0, 0.0, 1.0, 3.0, 6.0, 12.0)  # of a closed loop, in dB


def bode(
    models: Models,
    frequency: npt.ArrayLike | None = None,
    *,
    units: str = "rad/s",
    magnitude: str = "dB",
    margins: bool = True,
    ax: Sequence[Axes] | None = None,
    path: str | Path | None = None,
) -> tuple[Axes, Axes]:
    """Plot magnitude and phase over frequency: a Bode plot.

    Parameters
    ----------
    models : LinearModel, or list or dict of them
        What to plot, continuous or sampled; a dictionary gives their labels. Of several inputs or
        outputs, each pair gets a curve.
    frequency : array_like, optional
        Ascending frequencies in ``units``. By default from below the lowest pole or zero to above
        the highest one, with the crossings of the magnitude 1, and of a sampled model up to half of
        its sampling rate; resonances are followed in fine steps.
    units : str
        ``"rad/s"`` or ``"Hz"``.
    magnitude : str
        ``"dB"``, or ``"absolute"`` on a logarithmic axis.
    margins : bool
        Whether to mark gain and phase margin of models with one input and one output, where there
        are any: those of the loop gain L, as `loop_gain` returns it. The gain margin is the factor
        nearest to 1 that makes L = -1, above 1 or below, and the phase margin the angle nearest to
        zero. They say nothing about stability, see `nyquist`.
    ax : sequence of matplotlib.axes.Axes, optional
        The two axes for magnitude and phase; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The axes of magnitude and phase.

    Raises
    ------
    ValueRefusedError
        When there is no model, one has no inputs or outputs or contains NaN, frequencies are not
        positive and ascending, or a pole lies at a given frequency.

    Notes
    -----
    The phase is continuous, also across sharp resonances and beyond a half turn, and at an undamped
    pole it lags as if there were a little damping. It begins within half a turn of -90° for each
    pole at zero: 1/s² is at -180°.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.TransferFunction("plant", [3.0], [1.0, 3.0, 3.0, 1.0])
    >>> context = plant.create_default_context()
    >>> context.set("u", 0.0)
    >>> magnitude, phase = fx.bode(fx.linearize(plant, context), [0.1, 1.0, 10.0])
    >>> phase.lines[0].get_ydata().round(1)
    array([ -17.1, -135. , -252.9])
    """
    attempt = "Cannot draw a Bode plot"
    one_of(magnitude, _SCALES, "magnitude", attempt)
    marked = flag(margins, "margins", attempt)
    axes = _pair(ax, attempt)
    check_file(path, attempt)
    curves = curves_of(models, frequency, units, attempt, single=False)
    marked = marked and all(model.D.size == 1 for _, model in labelled(models, attempt))
    if axes is None:
        figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True)
    upper, lower = axes
    said: list[list[Label]] = [[], []]
    unit, decibels = UNITS[units], magnitude == "dB"
    for k, curve in enumerate(curves):
        sizes = curve.decibels if decibels else np.abs(curve.response)
        phase = curve.phase
        (line,) = upper.plot(curve.omega / unit, sizes, label=curve.label, **style_of(k))
        lower.plot(curve.omega / unit, phase, **style_of(k))
        if marked:
            found = _mark_margins(
                curve, phase, (upper, lower), unit, decibels, COLORS[k % len(COLORS)]
            )
            said = [a + b for a, b in zip(said, found, strict=True)]
            line.set_label(_with_figures(curve.label, found[0] + found[1]))
    for panel in (upper, lower):
        panel.set_xscale("log")
        panel.set_xlim(
            min(curve.omega[0] for curve in curves) / unit,
            max(curve.omega[-1] for curve in curves) / unit,
        )
        _mark_end_of_samples(panel, curves, unit)
        tidy(panel)
    if not decibels:
        upper.set_yscale("log")
    upper.set_ylabel("magnitude [dB]" if decibels else "magnitude")
    lower.set_ylabel("phase [°]")
    lower.set_xlabel(f"frequency [{units}]")
    _degrees(lower.yaxis, lower)
    write_legend(upper, curves)
    if len(curves) == 1:
        for panel, texts in zip((upper, lower), said, strict=True):
            place_labels(panel, texts, panel.lines)
    if path is not None:
        save_figure(upper.figure.figure, path)
    return upper, lower


def _pair(ax: Any, attempt: str) -> tuple[Axes, Axes] | None:
    """Return two axes; None asks for axes of one's own."""
    if ax is None:
        return None
    wanted = "ax to be two Axes of Matplotlib, for magnitude and phase, or None"
    pair = items_of(ax, wanted, attempt)
    fits = len(pair) == 2 and all(hasattr(each, "add_artist") for each in pair)
    require(fits, ax, attempt, wanted)
    return pair[0], pair[1]


def _with_figures(label: str, said: Sequence[Label]) -> str:
    """Return the label of a curve with the figures in what is said about it."""
    figures = [re.split(r"\sat\s", each.text)[0] for each in said]
    return f"{label} ({', '.join(figures)})" if figures else label


def _mark_margins(
    curve: Curve,
    phase: FloatArray,
    axes: tuple[Axes, Axes],
    unit: float,
    decibels: bool,
    color: str,
) -> tuple[list[Label], list[Label]]:
    """Draw the margins of a loop gain; return what is to be said about them."""
    upper, lower = axes
    gain, angle = margins(curve)
    base = 0.0 if decibels else 1.0
    if gain is not None or angle is not None:
        upper.axhline(base, color=GREY, linewidth=0.9, linestyle="--")
    said: tuple[list[Label], list[Label]] = ([], [])
    stem: dict[str, Any] = {
        "color": color,
        "linewidth": 2.5,
        "alpha": 0.45,
        "solid_capstyle": "butt",
    }
    dot: dict[str, Any] = {
        "color": color,
        "marker": "o",
        "markersize": 5,
        "markerfacecolor": "white",
    }
    if gain is not None:
        factor, omega = gain
        size = float(to_decibels(np.array(1.0 / factor))) if decibels else 1.0 / factor
        upper.plot([omega / unit] * 2, [size, base], **stem)
        upper.plot([omega / unit], [size], linestyle="none", **dot)
        lower.plot([omega / unit], [np.interp(omega, curve.omega, phase)], linestyle="none", **dot)
        text = f"{-size:.3g} dB" if decibels else f"{factor:.3g}"
        text = f"gain margin {text} at {omega / unit:.3g} {unit_name(unit)}"
        said[0].append(Label(text, (omega / unit, size), color))
    if angle is not None:
        degrees, omega = angle
        here = float(np.interp(omega, curve.omega, phase))
        lower.plot([omega / unit] * 2, [here, here - degrees], **stem)
        lower.plot([omega / unit], [here], linestyle="none", **dot)
        upper.plot([omega / unit], [base], linestyle="none", **dot)
        lower.axhline(here - degrees, color=GREY, linewidth=0.9, linestyle="--")
        text = f"phase margin {degrees:.3g}° at {omega / unit:.3g} {unit_name(unit)}"
        said[1].append(Label(text, (omega / unit, here), color))
    return said


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

    Notes
    -----
    The picture shows at most the neighborhood of -1 and of the origin, three times as wide as their
    distance; what is larger is clipped. At poles on the imaginary axis, or of sampled models on the
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
    check_axes(ax, attempt)
    check_file(path, attempt)
    marked = flag(margins, "margins", attempt)
    curves = curves_of(models, frequency, units, attempt, single=True, beyond=_BEYOND)
    if ax is None:
        ax = new_figure(figsize=(7.0, 6.4), layout="constrained").subplots()
    unit = UNITS[units]
    labels: list[Label] = []
    around = 2.0 * np.pi * np.linspace(0.0, 1.0, 181)
    for k, curve in enumerate(curves):
        style, line = style_of(k), _broken(curve)
        (drawn,) = ax.plot(line.real, line.imag, label=curve.label, **style)
        ax.plot(line.real, -line.imag, **style | {"linestyle": "--", "linewidth": 1.0})
        if marked:
            said = _mark_in_plane(ax, curve, unit, style["color"], around)
            labels += said
            drawn.set_label(_with_figures(curve.label, said))
    ax.plot(np.cos(around), np.sin(around), color=GREY, linewidth=0.8, linestyle=":")
    ax.plot([-1.0], [0.0], "+", color="#b22222", markersize=11, markeredgewidth=2.0)
    _frame(ax, curves)
    tidy(ax)
    ax.set_aspect("equal")
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    write_legend(ax, curves)
    for k, curve in enumerate(curves):
        _arrows(ax, _broken(curve), style_of(k)["color"])
    labels = labels if len(curves) == 1 else []  # of several curves, the legend has the figures
    place_labels(ax, [*labels, Label("-1", (-1.0, 0.0), "#b22222")], list(ax.lines))
    cross_zero(ax)
    if path is not None:
        save_figure(ax.figure.figure, path)
    return ax


def _broken(curve: Curve) -> npt.NDArray[np.complex128]:
    """Return the response with NaN between the two sides of an undamped pole."""
    places = np.searchsorted(curve.omega, gaps(curve))
    return np.insert(curve.response, places, np.nan)


def _mark_in_plane(
    ax: Axes, curve: Curve, unit: float, color: str, around: FloatArray
) -> list[Label]:
    """Mark margins and the circle of the peak sensitivity; return what is to be said."""
    gain, angle = margins(curve)
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
    peak, _ = peak_sensitivity(curve)
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
    """Plot loop gains in dB over their phase, with the magnitudes of the closed loop.

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
    check_axes(ax, attempt)
    check_file(path, attempt)
    curves = curves_of(models, frequency, units, attempt, single=True)
    if ax is None:
        ax = new_figure(figsize=(8.0, 6.0), layout="constrained").subplots()
    for k, curve in enumerate(curves):
        ax.plot(curve.phase, curve.decibels, label=curve.label, **style_of(k))
    phases = np.concatenate([curve.phase for curve in curves])
    sizes = np.concatenate([curve.decibels for curve in curves])
    phases, sizes = phases[np.isfinite(phases)], sizes[np.isfinite(sizes)]
    left = 90.0 * np.floor((np.min(phases, initial=-180.0) - 45.0) / 90.0)
    right = 90.0 * np.ceil((np.max(phases, initial=-180.0) + 45.0) / 90.0)
    low = max(np.min(sizes, initial=-24.0), -60.0) - 3.0
    high = min(np.max(sizes, initial=15.0), 60.0) + 3.0
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    turns = np.arange(np.floor(left / 360.0), np.ceil(right / 360.0) + 1.0)
    ax.plot(360.0 * turns - 180.0, 0.0 * turns, "+", color="#b22222", markersize=11, mew=2.0)
    drawn = list(ax.lines)
    labels = _contours(ax, turns, (left, right), (low, high))
    tidy(ax)
    _degrees(ax.xaxis, ax)
    ax.set_xlabel("phase [°]")
    ax.set_ylabel("magnitude [dB]")
    write_legend(ax, curves)
    place_labels(ax, labels, drawn)
    if path is not None:
        save_figure(ax.figure.figure, path)
    return ax


def _contours(
    ax: Axes, turns: FloatArray, phases: tuple[float, float], sizes: tuple[float, float]
) -> list[Label]:
    """Draw where |L/(1 + L)| is constant; return the labels of these contours.

    With T = L/(1 + L) on a circle around the origin, L = T/(1 - T).
    """
    said = []
    around = np.pi * np.linspace(-1.0, 1.0, 721)[1:-1]
    for level in _LEVELS:
        T = 10.0 ** (level / 20.0) * np.exp(1j * np.sort(np.concatenate([around, around * 0.02])))
        L = T[T != 1.0] / (1.0 - T[T != 1.0])
        x = np.rad2deg(np.angle(-L)) - 180.0
        y = to_decibels(np.abs(L))
        x[np.append(np.abs(np.diff(x)) > 180.0, False)] = np.nan  # from one turn to the next
        for turn in turns:
            ax.plot(x + 360.0 * turn, y, color="#bbbbbb", linewidth=0.7, zorder=1)
        xs = np.concatenate([x + 360.0 * turn for turn in turns])
        ys = np.tile(y, len(turns))
        with np.errstate(invalid="ignore"):
            seen = (xs > phases[0]) & (xs < phases[1]) & (ys > sizes[0]) & (ys < sizes[1])
        if seen.any():
            rank = ys[seen] if level > 0.0 else xs[seen] - 1e-3 * ys[seen]
            k = np.flatnonzero(seen)[np.argmax(rank)]
            said.append(Label(f"{level:g} dB", (xs[k], ys[k]), GREY, on_line=True))
    return said


def singular_values(
    models: Models,
    frequency: npt.ArrayLike | None = None,
    *,
    units: str = "rad/s",
    magnitude: str = "dB",
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot the singular values of frequency responses: the gains in all directions.

    Parameters
    ----------
    models : LinearModel, or list or dict of them
        What to plot, with any number of inputs and outputs.
    frequency, units, magnitude, path
        As for `bode`.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueRefusedError
        As for `bode`.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.TransferFunction("plant", [3.0], [1.0, 3.0, 3.0, 1.0])
    >>> context = plant.create_default_context()
    >>> context.set("u", 0.0)
    >>> ax = fx.singular_values(fx.linearize(plant, context), [1.0, 2.0], magnitude="absolute")
    >>> ax.lines[0].get_ydata().round(3)
    array([1.061, 0.268])
    """
    attempt = "Cannot draw singular values"
    check_axes(ax, attempt)
    check_file(path, attempt)
    one_of(magnitude, _SCALES, "magnitude", attempt)
    named = labelled(models, attempt)
    grids = frequencies([model for _, model in named], frequency, units, attempt)
    responses = [m.frequency_response(w) for (_, m), w in zip(named, grids, strict=True)]
    if ax is None:
        ax = new_figure(figsize=(8.0, 4.8), layout="constrained").subplots()
    unit = UNITS[units]
    for k, ((label, _), omega, response) in enumerate(zip(named, grids, responses, strict=True)):
        usable = np.isfinite(response).all(axis=(1, 2))
        gains = np.full((len(omega), min(response.shape[1:])), np.nan)
        gains[usable] = np.linalg.svd(response[usable], compute_uv=False)
        lines = ax.plot(omega / unit, to_decibels(gains) if magnitude == "dB" else gains)
        for n, line in enumerate(lines):
            line.set(color=COLORS[k % len(COLORS)], linewidth=max(1.8 - 0.4 * n, 0.8))
        lines[0].set_label(label)
    ax.set_xscale("log")
    ax.set_xlim(min(grid[0] for grid in grids) / unit, max(grid[-1] for grid in grids) / unit)
    if magnitude != "dB":
        ax.set_yscale("log")
    tidy(ax)
    ax.set_xlabel(f"frequency [{units}]")
    ax.set_ylabel("singular values [dB]" if magnitude == "dB" else "singular values")
    write_legend(ax, [label for label, _ in named])
    if path is not None:
        save_figure(ax.figure.figure, path)
    return ax


# What the pictures share ----------------------------------------------------------------------


def style_of(number: int) -> dict[str, Any]:
    """Return color and dashes of a curve."""
    dashes = _DASHES[number // len(COLORS) % len(_DASHES)]
    return {"color": COLORS[number % len(COLORS)], "linestyle": dashes, "linewidth": 1.7}


def unit_name(unit: float) -> str:
    return next(name for name, size in UNITS.items() if size == unit)


def tidy(ax: Axes) -> None:
    """Draw a light grid."""
    ax.grid(True, color=_LIGHT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _degrees(axis: Any, ax: Axes) -> None:
    """Let an axis of degrees have ticks at parts of a turn."""
    from matplotlib.ticker import MultipleLocator

    low, high = ax.get_xlim() if axis is ax.xaxis else ax.get_ylim()
    steps = (5.0, 15.0, 30.0, 45.0, 90.0, 180.0, 360.0)
    step = next((step for step in steps if high - low <= 7.0 * step), None)
    if step is not None:
        axis.set_major_locator(MultipleLocator(step))


def write_legend(ax: Axes, named: Sequence[Any]) -> None:
    """Write the labels of several curves above the axes, where they cover nothing."""
    if len(named) > 1:
        widest = max(len(text) for text in ax.get_legend_handles_labels()[1])
        columns = min(len(named), max(1, 90 // (widest + 8)))
        ax.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False, fontsize=9
        )


def check_file(path: object, attempt: str) -> None:
    """Refuse what is no name of a file before anything is drawn."""
    if path is not None:
        file_path(path, attempt)


def cross_zero(ax: Axes) -> None:
    """Draw the real and the imaginary axis, below everything."""
    for line in (ax.axhline(0.0), ax.axvline(0.0)):
        line.set(color=GREY, linewidth=0.6, zorder=0.5)


def _mark_end_of_samples(ax: Axes, curves: Sequence[Curve], unit: float) -> None:
    """Mark half of the sampling rate of sampled models."""
    for period in {curve.model.period for curve in curves}:
        if period is not None:
            ax.axvline(np.pi / period / unit, color=GREY, linewidth=0.9, linestyle=":")


__all__ = ["COLORS", "bode", "nichols", "nyquist", "singular_values"]
