"""Plots of stiffness along a path, and of parasitic motions over a stroke."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import GREY, labelled, name_axis, style_of, tidy
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.statics.stiffness import TWIST, TWIST_UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.analysis.statics.stiffness_track import StiffnessTrack

_DECADES = 1.5  # of stiffnesses, beyond which their axis is logarithmic
_PLAIN = (-3, 5)  # powers of ten of numbers that are written as they are
_SMALL = 1e-9  # of the stroke, which is no motion
_KINDS = ((slice(0, 3), "rotation"), (slice(3, 6), "translation"))


def plot_stiffnesses(track: StiffnessTrack, *, path: str | Path | None = None) -> Figure:
    """Plot the stiffness against motions in each direction over the path.

    Full lines are those of a load that acts alone. Dashed ones are those of a frame that is
    kept from moving in the five other directions, where there are such.

    Parameters
    ----------
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    name, grid, unit = _over(track)
    alone, held = track.diagonals(held=False), _held(track)
    for ax, (part, kind), load in zip(axes, _KINDS, ("N m/rad", "N/m"), strict=True):
        shown = []
        for k in range(*part.indices(6)):
            for line, dashes in ((alone[:, k], "-"), (held[:, k], "--")):
                if np.isfinite(line).any():
                    shown.append(line)
                    label = f"k{TWIST[k]}" if dashes == "-" else None
                    ax.plot(grid, line, label=label, **_style(TWIST[k]) | {"linestyle": dashes})
        ax.set_ylabel(f"stiffness of {kind} [{load}]")
        if kind == "translation" and np.isfinite(held).any():
            for dashes, meaning in (("-", "alone"), ("--", "others held")):
                ax.plot([], [], color=GREY, linestyle=dashes, label=meaning)
        _scale(ax, np.ravel(shown))
        _finish(ax, len(shown))
    name_axis(axes[1].xaxis, name, unit, most=60)
    figure.suptitle(f"{track.system.label}: {track.stiffnesses[0].frame.name}")
    return saved(figure, path)


def plot_parasitic(
    track: StiffnessTrack, stroke: str | None = None, *, path: str | Path | None = None
) -> Figure:
    """Plot the motions in five directions over that in the sixth.

    Parameters
    ----------
    stroke : str, optional
        The direction of the stroke, as for `parasitic`.
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    along = track.stroke() if stroke is None else stroke
    grid = track.motion(along)
    least = _SMALL * float(np.max(np.abs(grid), initial=0.0))
    figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    for ax, (part, kind) in zip(axes, _KINDS, strict=True):
        names = [name for name in TWIST[part] if name != along]
        for name in names:
            line = track.motion(name)
            ax.plot(grid, np.where(np.abs(line) > least, line, 0.0), label=name, **_style(name))
        ax.set_ylabel(f"{kind} [{TWIST_UNITS[part][0]}]")
        _finish(ax, len(names))
    axes[1].set_xlabel(f"stroke {labelled(along, TWIST_UNITS[TWIST.index(along)])}")
    figure.suptitle(f"{track.system.label}: {track.stiffnesses[0].frame.name}")
    return saved(figure, path)


def _over(track: StiffnessTrack) -> tuple[str, FloatArray, str]:
    """Return the name, the numbers and the unit of what is varied first."""
    name, values = next(iter(track.values.items()))
    along = values.reshape(len(values), -1)
    varied = np.flatnonzero(np.ptp(along, axis=0))
    if len(varied) != 1 or name == "number":
        return "number of the equilibrium", np.arange(len(along), dtype=float), ""
    suffix = f"[{varied[0]}]" if along.shape[1] > 1 else ""
    return f"{name}{suffix}", along[:, varied[0]], find_place(track.system, name).handle.unit


def _held(track: StiffnessTrack) -> FloatArray:
    """Return the stiffness of a frame that is held in all other directions, where there is one."""
    try:
        return track.diagonals(held=True)
    except EvaluationError:
        return np.full((len(track), 6), np.nan)


def _style(name: str) -> dict[str, Any]:
    """Return how a direction is drawn: in the color of its axis."""
    return style_of(TWIST.index(name) % 3)


def _scale(ax: Axes, numbers: FloatArray) -> None:
    """Take a logarithmic axis for positive numbers of different size."""
    sizes = numbers[np.isfinite(numbers) & (numbers != 0.0)]
    if sizes.size and np.all(sizes > 0.0) and np.log10(sizes.max() / sizes.min()) > _DECADES:
        ax.set_yscale("log")


def _finish(ax: Axes, count: int) -> None:
    tidy(ax)
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", style="sci", scilimits=_PLAIN)
    if count:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
