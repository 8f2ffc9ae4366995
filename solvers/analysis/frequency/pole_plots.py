"""Pictures of poles and zeros, and of root loci, over lines of equal damping and frequency."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import COLORS, GREY, check_target, tidy, write_legend
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded
from flexure.solvers.analysis.frequency.frequency_curves import UNITS, Models, labelled
from flexure.solvers.analysis.frequency.frequency_plots import cross_zero
from flexure.solvers.results.pictures.free_labels import Label, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from flexure.solvers.analysis.frequency.root_locus import RootLocus

_DAMPING = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_FAINT: dict[str, Any] = {"color": "#cccccc", "linewidth": 0.7, "zorder": 0.6}
_STILL = 1e-6  # of the largest pole: a branch that moves less has one label
_TOO_MANY = 10  # branches, beyond which they share colors
_FAR = 10.0  # times as far from the origin as all nearer branches: not shown by default


def pole_zero(
    models: Models,
    *,
    units: str = "rad/s",
    reach: float | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot poles (crosses) and transmission zeros (circles).

    Parameters
    ----------
    models : LinearModel, or list or dict of them
        What to plot; all continuous, or all sampled.
    units : str
        Of the axes for continuous models, ``"rad/s"`` or ``"Hz"``.
    reach : float, optional
        How far from the origin the picture shows everything, in the units of its axes. By default
        as far as the farthest pole or zero.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueRefusedError
        When there is no model, one contains NaN, or some are sampled and others not.

    See Also
    --------
    root_locus : Poles over a parameter.
    modes : Natural frequencies and mode shapes.

    Notes
    -----
    Grey lines through the origin are those of equal damping ratio, and circles those of equal
    natural frequency. For sampled models, they are what exp(s period) makes of them inside of the
    unit circle, and the frequencies are parts of π/period. Zeros of several inputs and outputs are
    transmission zeros: where some combination of inputs gives no output. A mode that no input moves
    or no output shows has a zero on top of its pole.

    Examples
    --------
    >>> import flexure as fx
    >>> plant = fx.TransferFunction("plant", [1.0, 4.0], [1.0, 2.0, 10.0])
    >>> context = plant.create_default_context()
    >>> context.set("u", 0.0)
    >>> ax = fx.pole_zero(fx.linearize(plant, context))
    >>> ax.lines[1].get_xdata().round(6)
    array([-4.])
    """
    attempt = "Cannot draw poles and zeros"
    check_target(ax, path, attempt)
    reach = _checked_reach(reach, attempt)
    unit = UNITS[one_of(units, UNITS, "units", attempt)]
    named = labelled(models, attempt, ports=False)
    sampled = {model.period is not None for _, model in named}
    if len(sampled) > 1:
        raise ValueRefusedError(
            attempt,
            expected="models that are all continuous or all sampled",
            found="both",
            remedy="Draw them in two pictures",
        )
    ax = axes_or_new(ax, figsize=(7.0, 5.6))
    discrete = sampled.pop()
    scale = 1.0 if discrete else 1.0 / unit
    everything = []
    for k, (label, model) in enumerate(named):
        style: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "linestyle": "none"}
        style["markersize"] = 8
        poles, zeros = scale * model.poles, scale * model.zeros
        everything += [poles, zeros]
        cross, circle = style | {"marker": "x", "mew": 1.8}, style | {"marker": "o", "mew": 1.5}
        ax.plot(poles.real, poles.imag, label=label or "poles", **cross)
        ax.plot(zeros.real, zeros.imag, label="" if label else "zeros", mfc="none", **circle)
    _lay_out(ax, _within(np.concatenate(everything), reach), discrete, units)
    if len(named) > 1:
        write_legend(ax, named)
    return saved(ax, path)


def plot_root_locus(
    locus: RootLocus,
    *,
    marks: npt.ArrayLike | None = None,
    units: str = "rad/s",
    reach: float | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Plot the branches from the first value (cross) to the last one (square).

    Parameters
    ----------
    marks : array_like, optional
        Those of ``values`` that get a dot and a label on every branch; the ends have labels in
        any case. Labels are in the upper half of the plane.
    units : str
        Of the axes in continuous time, ``"rad/s"`` or ``"Hz"``. Poles in z have none; they are
        drawn over the unit circle, as by `pole_zero`.
    reach : float, optional
        How far from the origin the picture shows everything, in the units of its axes. By
        default, the axes include all poles but stable ones that are ten times as far away as
        all others; the title then says how many there are.
    ax : matplotlib.axes.Axes, optional
        Where to plot; a new figure when omitted.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueRefusedError
        When a mark is none of the values.
    """
    attempt = "Cannot draw a root locus"
    check_target(ax, path, attempt)
    reach = _checked_reach(reach, attempt)
    unit = UNITS[one_of(units, UNITS, "units", attempt)]
    discrete = locus.period is not None
    scale = 1.0 if discrete else 1.0 / unit
    chosen = _chosen(locus, marks, attempt)
    ax = axes_or_new(ax, figsize=(7.5, 6.0))
    branches = scale * locus.fine_poles.T
    if not discrete and np.isinf(reach):
        reach = _default_reach(branches)
    outside = int(np.sum(np.min(np.abs(branches), axis=1) > reach))
    labels = []
    for k, branch in enumerate(branches):
        color = COLORS[k % len(COLORS)] if len(branches) <= _TOO_MANY else COLORS[0]
        dot: dict[str, Any] = {"color": color, "linestyle": "none"}
        ax.plot(branch.real, branch.imag, color=color, linewidth=1.7)
        first, last = branch[0], branch[-1]
        ax.plot([first.real], [first.imag], marker="x", markersize=8, mew=1.8, **dot)
        ax.plot([last.real], [last.imag], marker="s", markersize=6, **dot)
        moves = np.max(np.abs(branch - first)) > _STILL * np.max(np.abs(branches))
        for number in chosen:
            pole = scale * locus.poles[number, k]
            if 0 < number < len(locus.values) - 1:
                ax.plot([pole.real], [pole.imag], marker="o", markersize=5, **dot)
            if pole.imag >= 0.0 and (moves or number == 0):
                labels.append(Label(f"{locus.values[number]:.4g}", (pole.real, pole.imag), color))
    _lay_out(ax, _within(branches.ravel(), reach), discrete, units, labels)
    of = getattr(find_place(locus.system, locus.parameter).handle, "unit", "")
    name = f"{locus.parameter} [{of}]" if of else locus.parameter
    rest = f", {outside} farther away" if outside else ""
    ax.set_title(f"poles over {name}{rest}", fontsize=10)
    return saved(ax, path)


def _chosen(locus: RootLocus, marks: npt.ArrayLike | None, attempt: str) -> list[int]:
    """Return the numbers of the values that get labels: the ends, and those that are asked for."""
    wanted = np.atleast_1d(as_numbers([] if marks is None else marks, attempt, "values to mark"))
    found = {0, len(locus.values) - 1}
    for value in wanted.ravel():
        same = np.isclose(locus.values, value, rtol=1e-6, atol=0.0)
        if not same.any():
            raise ValueRefusedError(
                attempt,
                expected=f"marks among the values of '{locus.parameter}' that were computed",
                found=f"{value:g}",
                remedy="Add it to the values of fx.root_locus",
            )
        found.add(int(np.flatnonzero(same)[0]))
    return sorted(found)


# The plane ------------------------------------------------------------------------------------


def _checked_reach(reach: float | None, attempt: str) -> float:
    """Return how far from the origin things are shown."""
    if reach is None:
        return np.inf
    return bounded(reach, f"{attempt} with this reach", lower=0.0, exclusive=True)


def _default_reach(branches: npt.NDArray[np.complex128]) -> float:
    """Return how far the branches near the origin go, or infinity if all of them are to be seen."""
    # What is left out is far beyond the others, and stable.
    sizes = np.where(np.isfinite(branches), np.abs(branches), 0.0)
    nearest, farthest = sizes.min(axis=1), sizes.max(axis=1)
    order = np.argsort(farthest)
    for inner, outer in pairwise(order):
        beyond = nearest > _FAR * farthest[inner]
        if farthest[inner] > 0.0 and beyond[outer] and np.all(branches[beyond].real < 0.0):
            return 1.2 * float(farthest[inner])
    return np.inf


def _within(points: npt.NDArray[np.complex128], reach: float) -> npt.NDArray[np.complex128]:
    """Return the points that are to be seen."""
    size = np.abs(points)
    return points[(size <= reach) & np.isfinite(size)]


def _lay_out(
    ax: Axes,
    points: npt.NDArray[np.complex128],
    discrete: bool,
    units: str,
    labels: list[Label] | None = None,
) -> None:
    """Choose the limits, draw the grid and write the labels."""
    curves = list(ax.lines)
    tidy(ax)
    ax.grid(False)
    if discrete:
        around = np.linspace(-np.pi, np.pi, 361)
        curves += ax.plot(np.cos(around), np.sin(around), color=GREY, linewidth=1.0, zorder=0.7)
        grid = _sampled_grid(ax, points)
    else:
        grid = _continuous_grid(ax, points, units)
    cross_zero(ax)
    place_labels(ax, [*(labels or []), *grid], curves)


def _continuous_grid(ax: Axes, points: npt.NDArray[np.complex128], units: str) -> list[Label]:
    """Draw rays of equal damping and circles of equal frequency; return their labels."""
    size = float(np.max(np.abs(points), initial=0.0)) or 1.0
    tall = max(float(np.max(np.abs(points.imag), initial=0.0)), 0.25 * size)
    left = min(float(np.min(points.real, initial=0.0)), -0.25 * size)
    right = max(float(np.max(points.real, initial=0.0)), 0.0)
    room = 0.12 * max(right - left, tall)
    left, right, tall = left - room, right + room, 1.15 * tall
    ax.set_xlim(left, right)
    ax.set_ylim(-tall, tall)
    ax.set_xlabel(f"real part [{units}]")
    ax.set_ylabel(f"imaginary part [{units}]")
    labels = []
    for zeta in _DAMPING:
        slope = np.sqrt(1.0 - zeta**2) / zeta
        end = min(-left, tall / slope)
        ax.plot([-end, 0.0, -end], [end * slope, 0.0, -end * slope], linestyle="--", **_FAINT)
        labels.append(
            Label(f"ζ = {zeta:g}", (-0.97 * end, -0.97 * end * slope), GREY, on_line=True)
        )
    around = np.linspace(0.5 * np.pi, 1.5 * np.pi, 181)
    for radius in _round_steps(max(-left, tall)):
        ax.plot(radius * np.cos(around), radius * np.sin(around), linestyle=":", **_FAINT)
    return _apart(ax, labels)


def _apart(ax: Axes, labels: list[Label]) -> list[Label]:
    """Return those labels of a fan that are not too close together."""
    kept: list[Label] = []
    ax.figure.figure.draw_without_rendering()
    for label in labels:
        here = ax.transData.transform(label.at)
        others = [ax.transData.transform(other.at) for other in kept]
        if all(np.hypot(*(here - there)) > 0.5 * ax.figure.figure.dpi for there in others):
            kept.append(label)
    return kept


def _round_steps(size: float) -> FloatArray:
    """Return about five round numbers up to a size."""
    step = 10.0 ** np.floor(np.log10(size / 4.0))
    step *= max(factor for factor in (1.0, 2.0, 5.0) if factor * step <= size / 3.0)
    return np.asarray(step * np.arange(1.0, np.floor(1.42 * size / step) + 1.0))


def _sampled_grid(ax: Axes, points: npt.NDArray[np.complex128]) -> list[Label]:
    """Draw the unit circle with lines of equal damping and frequency; return their labels."""
    far = max(1.0, float(np.max(np.abs(points), initial=0.0)))
    ax.set_aspect("equal")
    left = -1.12 if far == 1.0 else min(-1.12, 1.1 * float(points.real.min(initial=-1.0)))
    right = 1.12 if far == 1.0 else max(1.12, 1.1 * float(points.real.max(initial=1.0)))
    tall = max(1.12, 1.1 * float(np.max(np.abs(points.imag), initial=0.0)))
    ax.set_xlim(left, right)
    ax.set_ylim(-tall, tall)
    ax.set_xlabel("real part of z")
    ax.set_ylabel("imaginary part of z")
    labels = []
    for zeta in _DAMPING:
        angle = np.linspace(0.0, np.pi, 181)
        z = np.exp(-zeta / np.sqrt(1.0 - zeta**2) * angle + 1j * angle)
        ax.plot(z.real, z.imag, linestyle="--", **_FAINT)
        ax.plot(z.real, -z.imag, linestyle="--", **_FAINT)
        if zeta in (0.1, 0.3, 0.5, 0.7):
            labels.append(Label(f"ζ = {zeta:g}", (z[70].real, -z[70].imag), GREY, on_line=True))
    theta = np.linspace(0.5 * np.pi, np.pi, 91)
    for part in np.arange(1, 11) / 10.0:
        z = np.exp(np.pi * part * np.exp(1j * theta))
        ax.plot(z.real, z.imag, linestyle=":", **_FAINT)
        ax.plot(z.real, -z.imag, linestyle=":", **_FAINT)
        if part in (0.1, 0.2, 0.4, 0.6, 0.8):
            labels.append(Label(f"{part:g} π/T", (z[0].real, z[0].imag), GREY, on_line=True))
    return labels
