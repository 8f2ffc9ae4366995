"""Plots of modes: frequencies and damping, tracks, and mode shapes of mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks import Plant
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
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
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds
from flexure.solvers.analysis.modes.spectrum import ComplexArray
from flexure.solvers.results.mechanisms.animation_files import target_of
from flexure.solvers.results.mechanisms.animations import play
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.mechanism_lines import points_on
from flexure.solvers.results.mechanisms.pictures import (
    Motion,
    only_plant,
    poses_in,
    require_plant,
)

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
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
_PERIOD = 2.0  # of an animated mode, in seconds
_REACH = 0.12  # of the largest motion of a point, as a part of the size of the mechanism
_WIDEST = 0.5  # turn of a body, in rad
_STILL = 1e-9  # of a displacement
_NEARBY = 1e-6  # of the amplitude with which motions of points are measured
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
        panels[0].set_yscale("symlog", linthresh=float(moving.min()))
    panels[0].set_ylabel("natural frequency [Hz]")
    panels[-1].set_xlabel("mode")
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    for ax in panels:
        tidy(ax)
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


def animate_mode(
    modes: Modes,
    index: int,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
) -> FuncAnimation:
    """Animate a mode shape of a plant.

    Parameters
    ----------
    index : int
        Number of the mode.
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    path : str or Path, optional
        Where to save it, as for `animate`.
    view : str or tuple of float
        As in `plot_mechanism`.
    fps : int
        Pictures per second.

    Returns
    -------
    matplotlib.animation.FuncAnimation

    Raises
    ------
    ValueRefusedError
        When there is no such mode, or it does not move the plant.
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.

    Notes
    -----
    Every mode takes two seconds for one period and keeps its amplitude, which is chosen so that
    it can be seen: about an eighth of the size of the mechanism.
    """
    mode = modes[index]
    attempt = f"Cannot animate a mode of '{modes.system.label}'"
    plant = only_plant(modes.system, "animate(0, plant)") if plant is None else plant
    require_plant(plant)
    check_bounds(as_number(fps, (), attempt), attempt, lower=1.0, upper=1000.0)
    target = None if path is None else target_of(path)
    state = plant.tree.state
    leaf = modes.context.find_leaf(plant.tree)
    motion = mode.vector[leaf.x_slice][: state.num_q]
    if np.max(np.abs(motion), initial=0.0) <= _STILL * np.max(np.abs(mode.vector)):
        raise ValueRefusedError(
            attempt,
            expected=f"a mode that moves '{plant.label}'",
            found=f"{mode!r}, in which it does not move",
            remedy="The attribute shape of a mode shows what moves",
        )
    motion = motion * _amplitude(plant, modes.context, motion)
    count = max(2, round(_PERIOD * fps))
    turns = np.exp(2j * np.pi * np.arange(count) / count)
    moved = [_moved(plant, modes.context, (motion * turn).real) for turn in turns]
    caption = f"{mode.kind}\n{mode.frequency:.4g} Hz, damping ratio {mode.damping_ratio:.3g}"
    captions = [mode.kind if np.isnan(mode.damping_ratio) else caption] * count
    motion_shown = Motion(plant, modes.context, poses_in(plant, moved), captions)
    return play(motion_shown, target=target, view=view, fps=fps)


def _moved(plant: Plant, context: Context, motion: FloatArray) -> Context:
    """Return a context in which the positions of a plant are others."""
    twin = context.clone()
    plant.set_positions(twin, plant.get_positions(context) + motion)
    return twin


def _amplitude(plant: Plant, context: Context, motion: ComplexArray) -> float:
    """Return the factor with which a shape can be seen, but does not tear the mechanism."""
    step = _NEARBY / float(np.max(np.abs(motion)))
    parts = [step * part for part in (motion.real, motion.imag)]
    poses = poses_in(plant, [context, *(_moved(plant, context, part) for part in parts)])
    points = np.stack([points_on(plant, context, each) for each in poses])
    size = float(np.max(np.ptp(points[0], axis=0))) or 1.0
    moved = np.max(np.linalg.norm(points - points[0], axis=2)) / step
    turned = np.max(np.linalg.norm(poses[:, :, :9] - poses[0, :, :9], axis=2)) / step
    angle = turned / np.sqrt(2.0)  # of a rotation matrix, √2 times the angle changes
    return float(1.0 / max(moved / (_REACH * size), angle / _WIDEST))
