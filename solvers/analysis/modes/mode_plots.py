"""Plots of modes and tracks, and shapes of mechanisms, drawn on them and animated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from flexure.blocks import Plant
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.drawing.formats.new_figures import new_figure
from flexure.diagrams.drawing.formats.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    RED,
    check_target,
    tidy,
)
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.solvers.analysis.modes.spectrum import ComplexArray
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.films import play, target_of
from flexure.solvers.results.mechanisms.mechanism_lines import points_on
from flexure.solvers.results.mechanisms.pictures import Motion, chosen_plant, drawn, poses_in

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flexure.solvers.analysis.modes.modes import Mode, Modes

_COLORS = {
    "rigid": GREY,
    "integrator": PALE,
    "oscillation": BLUE,
    "overdamped": ORANGE,
    "decay": GREEN,
    "growth": RED,
}
_DECADES = 2.0  # of frequencies, beyond which their axis is logarithmic
_PERIOD = 2.0  # of an animated shape, in seconds
_REACH = 0.12  # of the largest motion of a point, as a part of the size of the mechanism
_WIDEST = 0.5  # turn of a body, in rad
_STILL = 1e-9  # of a displacement
_NEARBY = 1e-6  # of the amplitude with which motions of points are measured


def plot_modes(modes: Modes) -> Figure:
    """Plot natural frequencies and damping ratios."""
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
    return figure


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape of a plant about a context."""

    plant: Plant
    context: Context  # the state that it moves about
    motion: ComplexArray  # amplitudes, complex for a mode whose points do not move in step
    move: Callable[[FloatArray], Context]  # returns a context that is moved by real amplitudes
    caption: str  # the text above the picture
    attempt: str  # for errors

    def animate(self, *, path: str | Path | None, view: View, fps: int) -> FuncAnimation:
        """Return an animation of one period."""
        bounded(fps, self.attempt, lower=1.0, upper=1000.0)
        target = None if path is None else target_of(path)
        count = max(2, round(_PERIOD * fps))
        turns = np.exp(2j * np.pi * np.arange(count) / count)
        return play(self._seen(turns), target=target, view=view, fps=fps)

    def plot(self, *, view: View, ax: Axes | None, path: str | Path | None) -> Axes:
        """Draw the shape over the state that it moves about."""
        check_target(ax, path, self.attempt)
        return drawn(self._seen(np.array([0.0, 1.0])), ax, path, view=view)

    def _seen(self, turns: npt.NDArray[np.complexfloating | np.floating]) -> Motion:
        """Return the mechanism at some phases of the shape, large enough to be seen."""
        captions = [self.caption] * len(turns)
        return Motion(self.plant, self.context, self.poses(turns), captions)

    def poses(self, turns: npt.NDArray[np.complexfloating | np.floating]) -> FloatArray:
        """Return the poses of all bodies at some phases, of shape (phases, bodies, 12)."""
        motion = self.motion * self._amplitude()
        return poses_in(self.plant, [self.move((motion * turn).real) for turn in turns])

    def _amplitude(self) -> float:
        """Return the factor with which a shape can be seen, but does not tear the mechanism."""
        plant, context = self.plant, self.context
        step = _NEARBY / float(np.max(np.abs(self.motion)))
        parts = [step * part for part in (self.motion.real, self.motion.imag)]
        poses = poses_in(plant, [context, *map(self.move, parts)])
        points = np.stack([points_on(plant, context, each) for each in poses])
        size = float(np.max(np.ptp(points[0], axis=0))) or 1.0
        moved = np.max(np.linalg.norm(points - points[0], axis=2)) / step
        turned = np.max(np.linalg.norm(poses[:, :, :9] - poses[0, :, :9], axis=2)) / step
        angle = turned / np.sqrt(2.0)  # of a rotation matrix, √2 times the angle changes
        reach = max(moved / (_REACH * size), angle / _WIDEST)
        fits = reach > _STILL
        require(fits, self.caption, self.attempt, f"a shape that moves '{plant.label}'")
        return float(1.0 / reach)


class HasShapes(Protocol):
    """Results whose entries are shapes of mechanisms: modes, or critical loads."""

    def _shape_of(self, index: int, plant: Plant | None, verb: str = "show") -> Shape:
        """Return the shape of an entry; ``verb`` is what is done with it, for errors."""


def plot_shape(
    found: HasShapes,
    index: int = 0,
    plant: Plant | None = None,
    *,
    view: View = "auto",
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a shape of a plant over the state that it moves about.

    Parameters
    ----------
    index : int
        Number of the mode, or of the critical load.
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    view, ax, path
        As in `plot_mechanism`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueRefusedError
        When there is no such shape, or it does not move the plant.
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.

    Notes
    -----
    The amplitude is as in ``animate``. Where the points of a mode do not move in step, what is
    drawn is the moment at which its phase is zero.
    """
    return found._shape_of(index, plant, "draw").plot(view=view, ax=ax, path=path)


def animate_shape(
    found: HasShapes,
    index: int = 0,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
) -> FuncAnimation:
    """Animate a shape of a plant about the state that it moves about.

    Parameters
    ----------
    index : int
        Number of the mode, or of the critical load.
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
        When there is no such shape, or it does not move the plant.
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.

    Notes
    -----
    Every shape takes two seconds for one period and keeps its amplitude, which is chosen so that
    it can be seen: about an eighth of the size of the mechanism.
    """
    return found._shape_of(index, plant, "animate").animate(path=path, view=view, fps=fps)


def mode_shape(modes: Modes, mode: Mode, plant: Plant | None, attempt: str) -> Shape:
    """Return the shape of a mode."""
    plant = chosen_plant(plant, modes.system, "plot_mechanism(0, plant)")
    leaf = modes.context.find_leaf(plant.tree)
    motion = mode.vector[leaf.x_slice][: plant.tree.state.num_q]
    if np.max(np.abs(motion), initial=0.0) <= _STILL * np.max(np.abs(mode.vector)):
        raise ValueRefusedError(
            attempt,
            expected=f"a mode that moves '{plant.label}'",
            found=f"{mode!r}, in which it does not move",
            remedy="The attribute shape of a mode shows what moves",
        )

    def move(part: FloatArray) -> Context:
        twin = modes.context.clone()
        plant.set_positions(twin, plant.get_positions(modes.context) + part)
        return twin

    caption = f"{mode.kind}, {mode.frequency:.4g} Hz, damping ratio {mode.damping_ratio:.3g}"
    caption = mode.kind if np.isnan(mode.damping_ratio) else caption
    return Shape(plant, modes.context, motion, move, caption, attempt)
