"""Plots of modes: frequencies and damping, tracks, and mode shapes of mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.drawing.formats.new_figures import new_figure, saved
from flexure.diagrams.drawing.formats.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    RED,
    labelled,
    style_of,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexure.solvers.analysis.modes.mode_tracking import ModeTracks
    from flexure.solvers.analysis.modes.modes import Modes

_COLORS = {
    "rigid": GREY,
    "integrator": PALE,
    "oscillation": BLUE,
    "overdamped": ORANGE,
    "decay": GREEN,
    "growth": RED,
}
_LISTED = 30  # tracks in a legend
_DECADES = 2.0  # of frequencies, beyond which their axis is logarithmic


def plot_modes(modes: Modes, *, path: str | Path | None = None) -> Figure:
    """Plot natural frequencies and damping ratios.

    Parameters
    ----------
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    width = min(max(6.0, 1.5 + 0.3 * len(modes)), 16.0)
    damped = bool(np.any(np.nan_to_num(modes.damping_ratios)))
    rows = 2 if damped else 1
    figure = new_figure(figsize=(width, 0.6 + 2.3 * rows), layout="constrained")
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    numbers = np.arange(len(modes))
    kinds = np.array([mode.kind for mode in modes])
    for kind, color in _COLORS.items():
        here = numbers[kinds == kind]
        if here.size:
            style: dict[str, Any] = {
                "linestyle": "none",
                "marker": "o",
                "markersize": 6,
                "clip_on": False,
            }
            for ax, values in zip(panels, (modes.frequencies, modes.damping_ratios), strict=False):
                ax.vlines(here, 0.0, values[here], color=color, linewidth=1.6)
                ax.plot(here, values[here], color=color, label=kind, **style)
    moving = modes.frequencies[modes.frequencies > 0.0]
    if moving.size and np.log10(moving.max() / moving.min()) > _DECADES:
        if moving.size == len(modes):
            panels[0].set_yscale("log")
            panels[0].set_ylim(bottom=0.5 * float(moving.min()))
        else:
            panels[0].set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(moving.min())))
    panels[0].set_ylabel("natural frequency [Hz]")
    panels[-1].set_xlabel("mode")
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    for ax in panels:
        tidy(ax)
    if panels[0].get_yscale() != "log":
        panels[0].set_ylim(bottom=0.0)
    if damped:
        panels[1].set_ylabel("damping ratio")
        panels[1].axhline(0.0, color=GREY, linewidth=0.8)
        if not np.any(modes.damping_ratios < 0.0):
            panels[1].set_ylim(bottom=0.0)
    if len(set(kinds)) > 1:
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(modes.system.label if damped else f"{modes.system.label}, undamped")
    return saved(figure, path)


def plot_tracks(tracks: ModeTracks, *, path: str | Path | None = None) -> Figure:
    """Plot natural frequencies and damping ratios over the parameter, a line for each track.

    Parameters
    ----------
    path : str or Path, optional
        Where to save the figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(figsize=(8.0, 6.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    name, values = next(iter(tracks.values.items()))
    along = values.reshape(len(values), -1)
    single = along.shape[1] == 1
    grid = along[:, 0] if single else np.arange(len(along))
    for k, line in enumerate(np.transpose(tracks.frequencies)):
        style = style_of(k) | {"marker": "o", "markersize": 3.5}
        upper.plot(grid, line, label=str(k), **style)
        lower.plot(grid, tracks.damping_ratios[:, k], **style)
    upper.set_ylabel("natural frequency [Hz]")
    lower.set_ylabel("damping ratio")
    unit = find_place(tracks.system, name).handle.unit if single else ""
    lower.set_xlabel(labelled(name, unit) if single else "number of the value")
    for ax in (upper, lower):
        tidy(ax)
    upper.set_ylim(bottom=0.0)
    if not np.any(tracks.damping_ratios < 0.0):
        lower.set_ylim(bottom=0.0)
    if 1 < len(tracks) <= _LISTED:
        figure.legend(title="track", loc="outside right upper", frameon=False)
    figure.suptitle(tracks.system.label)
    return saved(figure, path)
