"""Pictures over frequency: Bode plots and singular values, and the style of all such plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import are_axes, flag, items_of, one_of, require
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, new_figure, saved
from flexure.diagrams.drawing.formats.style import (
    COLORS,
    GREY,
    check_file,
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
    frequencies,
    labelled,
    to_decibels,
)
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def unit_name(unit: float) -> str:
    """Return the name of a unit of frequency by its size in rad/s."""
    return next(name for name, size in UNITS.items() if size == unit)


def widen(ax: Axes, least: float) -> None:
    """Widen a vertical axis that would show nothing but rounding, to at least some height."""
    low, high = ax.get_ylim()
    if high - low < least:
        middle = 0.5 * (low + high)
        ax.set_ylim(middle - 0.5 * least, middle + 0.5 * least)


def turn_ticks(axis: Any, ax: Axes) -> None:
    """Let an axis of degrees have ticks at parts of a turn."""
    from matplotlib.ticker import MultipleLocator

    low, high = ax.get_xlim() if axis is ax.xaxis else ax.get_ylim()
    steps = (5.0, 15.0, 30.0, 45.0, 90.0, 180.0, 360.0)
    step = next((step for step in steps if high - low <= 7.0 * step), None)
    if step is not None:
        axis.set_major_locator(MultipleLocator(step))


def frequency_ticks(ax: Axes, low: float, high: float) -> None:
    """Let an axis of frequencies be logarithmic, with labels that do not run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    ax.set_xlim(low, high)
    if low * 2.0 < high < low * 1e3:  # otherwise Matplotlib's own are the right ones
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())


def cross_zero(ax: Axes) -> None:
    """Draw the real and the imaginary axis, below everything."""
    for line in (ax.axhline(0.0), ax.axvline(0.0)):
        line.set(color=GREY, linewidth=0.6, zorder=0.5)


def with_figures(label: str, said: Sequence[Label]) -> str:
    """Return the label of a curve with the numbers of its notes."""
    figures = [re.split(r"\sat\s", each.text)[0] for each in said]
    return f"{label} ({', '.join(figures)})" if figures else label


_SCALES = ("dB", "absolute")
_LEAST = 1.0  # dB or degrees that an axis shows


def bode(
    models: Models,
    frequency: npt.ArrayLike | None = None,
    *,
    units: str = "rad/s",
    magnitude: str = "dB",
    margins: bool = True,
    ax: Sequence[Axes] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Plot magnitude and phase over frequency: a Bode plot.

    Parameters
    ----------
    models : LinearModel, or list or dict of them
        What to plot, continuous or sampled; a dictionary gives their labels. With several inputs or
        outputs there is a grid of channels: a row for each output, a column for each input.
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
        The two axes for magnitude and phase, also of several channels; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are those of magnitude and phase; in a grid, row by row.

    Raises
    ------
    ValueRefusedError
        When there is no model, one has no inputs or outputs or contains NaN, frequencies are not
        positive and ascending, or a pole lies at a given frequency.

    See Also
    --------
    nyquist : Loop gains around the point -1.
    nichols : Magnitude over phase.
    margins : The margins as numbers.
    singular_values : Systems with several inputs.

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
    >>> magnitude, phase = fx.bode(fx.linearize(plant, context), [0.1, 1.0, 10.0]).axes
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
    named = labelled(models, attempt)
    channels = _channels(curves, named) if axes is None else [curves]
    tall, wide = named[0][1].D.shape if len(channels) > 1 else (1, 1)
    if axes is None:
        size = (8.0, 6.0) if len(channels) == 1 else (1.0 + 4.4 * wide, 4.4 * tall)
        figure = new_figure(figsize=size, layout="constrained")
        panels = figure.subplots(2 * tall, wide, sharex=True, squeeze=False)
        pairs = [(panels[2 * i, j], panels[2 * i + 1, j]) for i, j in np.ndindex(tall, wide)]
    else:
        pairs = [axes]
    for pair, some in zip(pairs, channels, strict=True):
        _draw_channel(pair, some, units, magnitude, marked)
        if len(pairs) > 1:
            (output,), (entry,) = some[0].model.output_names, some[0].model.input_names
            pair[0].set_title(f"{output} / {entry}", fontsize=10)
            if not any(each.response.any() for each in some):
                for panel in pair:
                    panel.text(0.5, 0.5, "no response", transform=panel.transAxes, ha="center")
    for _, lower in pairs[:-wide]:
        lower.set_xlabel("")
    if len(pairs) > 1 and len(named) > 1:
        handles = pairs[0][0].get_legend_handles_labels()
        pairs[0][0].figure.legend(*handles, loc="outside upper left", ncols=3, frameon=False)
    elif len(pairs) == 1:
        write_legend(pairs[0][0], curves)
    drawn: Figure = pairs[0][0].figure.figure
    return saved(drawn, path)


def _channels(
    curves: Sequence[Curve], named: Sequence[tuple[str, LinearModel]]
) -> list[Sequence[Curve]]:
    """Return the curves of each channel; all together where models have other channels."""
    count = named[0][1].D.size
    ways = {(*model.output_names, "/", *model.input_names) for _, model in named}
    if count == 1 or len(ways) > 1:
        return [curves]
    names = [label for label, _ in named]
    return [
        [replace(each, label=name) for each, name in zip(curves[k::count], names, strict=True)]
        for k in range(count)
    ]


def _draw_channel(
    axes: tuple[Axes, Axes], curves: Sequence[Curve], units: str, magnitude: str, marked: bool
) -> None:
    """Draw magnitude and phase of curves, and their margins."""
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
            line.set_label(with_figures(curve.label, found[0] + found[1]))
    for panel in (upper, lower):
        frequency_ticks(
            panel,
            min(curve.omega[0] for curve in curves) / unit,
            max(curve.omega[-1] for curve in curves) / unit,
        )
        _mark_end_of_samples(panel, [curve.model for curve in curves], unit)
        tidy(panel)
    if decibels:
        widen(upper, _LEAST)
    else:
        upper.set_yscale("log")
    widen(lower, _LEAST)
    upper.set_ylabel("magnitude [dB]" if decibels else "magnitude")
    lower.set_ylabel("phase [°]")
    lower.set_xlabel(f"frequency [{units}]")
    turn_ticks(lower.yaxis, lower)
    if len(curves) == 1:
        for panel, texts in zip((upper, lower), said, strict=True):
            place_labels(panel, texts, panel.lines)


def _pair(ax: Any, attempt: str) -> tuple[Axes, Axes] | None:
    """Return two axes; None asks for axes of one's own."""
    if ax is None:
        return None
    wanted = "ax to be two Axes of Matplotlib, for magnitude and phase, or None"
    pair = items_of(ax, wanted, attempt)
    fits = len(pair) == 2 and all(map(are_axes, pair))
    require(fits, ax, attempt, wanted)
    return pair[0], pair[1]


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
    gain, angle = closest_margins(curve)
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
        text = f"{0.0 - size:.3g} dB" if decibels else f"{factor:.3g}"
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


def _mark_end_of_samples(ax: Axes, models: Iterable[LinearModel], unit: float) -> None:
    """Mark half of the sampling rate of sampled models."""
    for period in {model.period for model in models}:
        if period is not None:
            ax.axvline(np.pi / period / unit, color=GREY, linewidth=0.9, linestyle=":")


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

    See Also
    --------
    bode : Magnitude and phase of each pair of input and output.

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
    check_target(ax, path, attempt)
    one_of(magnitude, _SCALES, "magnitude", attempt)
    named = labelled(models, attempt)
    grids = frequencies([model for _, model in named], frequency, units, attempt)
    responses = [m.frequency_response(w) for (_, m), w in zip(named, grids, strict=True)]
    ax = axes_or_new(ax, figsize=(8.0, 4.8))
    unit = UNITS[units]
    for k, ((label, _), omega, response) in enumerate(zip(named, grids, responses, strict=True)):
        usable = np.isfinite(response).all(axis=(1, 2))
        gains = np.full((len(omega), min(response.shape[1:])), np.nan)
        gains[usable] = np.linalg.svd(response[usable], compute_uv=False)
        lines = ax.plot(omega / unit, to_decibels(gains) if magnitude == "dB" else gains)
        for n, line in enumerate(lines):
            line.set(color=COLORS[k % len(COLORS)], linewidth=max(1.8 - 0.4 * n, 0.8))
        lines[0].set_label(label)
    frequency_ticks(ax, min(g[0] for g in grids) / unit, max(g[-1] for g in grids) / unit)
    _mark_end_of_samples(ax, [model for _, model in named], unit)
    if magnitude != "dB":
        ax.set_yscale("log")
    else:
        widen(ax, _LEAST)
    tidy(ax)
    ax.set_xlabel(f"frequency [{units}]")
    ax.set_ylabel("singular values [dB]" if magnitude == "dB" else "singular values")
    write_legend(ax, [label for label, _ in named])
    return saved(ax, path)
