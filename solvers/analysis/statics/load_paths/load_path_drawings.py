"""Drawings of the mechanism along a load path: equilibria in one picture, or animated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.blocks import Plant
from flexure.diagrams.checks.arguments import check_axes, require
from flexure.diagrams.drawing.formats.new_figures import axes_or_new, saved
from flexure.diagrams.drawing.formats.style import check_file
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.arrays import FloatArray, as_number, bounded
from flexure.solvers.results.mechanisms.animation_files import target_of
from flexure.solvers.results.mechanisms.animations import play
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.pictures import (
    Motion,
    Picture,
    checked_options,
    only_plant,
    poses_in,
    require_plant,
    stressed,
)

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from flexure.solvers.analysis.statics.load_paths.load_path import LoadPath

_SECONDS = 4.0  # of an animation
_MOST = 100  # states in one picture


@answers_other_words
def plot_mechanism(
    found: LoadPath,
    plant: Plant | None = None,
    *,
    num_equilibria: int = 5,
    view: View = "auto",
    stress: bool = False,
    ground: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a plant at several equilibria in one picture, the last one in front.

    Parameters
    ----------
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    num_equilibria : int
        How many equilibria: the first one, the last one, and others between which bodies move
        by about as much.
    view, stress, ground, title, ax, path
        As for `flexure.plot_mechanism`. All states share one scale of stresses. The title
        tells what was varied when omitted.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When there is no flexure that could be colored.

    Notes
    -----
    Bodies are pale but in the last state, flexures are not. Where parameters are varied,
    shapes have the dimensions with which the path begins.
    """
    attempt = f"Cannot draw '{found.system.label}' along its load path"
    plant = only_plant(found.system, "plot_mechanism(plant)") if plant is None else plant
    require_plant(plant)
    check_axes(ax, attempt)
    check_file(path, attempt)
    number = as_number(num_equilibria, (), f"{attempt} with num_equilibria={num_equilibria!r}")
    wanted = f"a whole number of states from 2 to {_MOST}"
    require(2 <= number <= _MOST and number == int(number), num_equilibria, attempt, wanted)
    _, height, caption = checked_options(plant, False, ground, title)
    numbers = _spread(found, plant, int(number))
    names = ", ".join(
        f"{name} from {_word(rows[0])} to {_word(rows[-1])}" for name, rows in found.values.items()
    )
    motion = _motion(found, plant, numbers, [caption or names] * len(numbers), stress)
    own = ax is None
    ax = axes_or_new(ax)
    picture = Picture(motion, ax, view=view, ground=height)
    if own:
        ax.figure.figure.set_size_inches(*picture.inches)
    picture.show_all()
    return saved(ax, path)


def animate_path(
    found: LoadPath,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
    stress: bool = False,
) -> FuncAnimation:
    """Animate a plant along the path, from equilibrium to equilibrium.

    Parameters
    ----------
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    path : str or Path, optional
        Where to save it, as for `animate`.
    view, stress
        As for `flexure.plot_mechanism`.
    fps : int
        Pictures per second.

    Returns
    -------
    matplotlib.animation.FuncAnimation

    Raises
    ------
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    DeclarationError
        When there is no flexure that could be colored.

    Notes
    -----
    It takes four seconds, in which bodies move evenly, as far as there are points: this is no
    motion in time. The title states the varied value, and whether the equilibrium is unstable.
    """
    attempt = f"Cannot animate a load path of '{found.system.label}'"
    plant = only_plant(found.system, "animate(plant)") if plant is None else plant
    require_plant(plant)
    bounded(fps, attempt, lower=1.0, upper=1000.0)
    target = None if path is None else target_of(path)
    numbers = _spread(found, plant, round(_SECONDS * fps))
    captions = [_caption(found, number) for number in numbers]
    motion = _motion(found, plant, numbers, captions, stress)
    return play(motion, target=target, view=view, fps=fps)


def _motion(
    found: LoadPath, plant: Plant, numbers: Sequence[int], captions: Sequence[str], stress: bool
) -> Motion:
    """Return the states of some points."""
    contexts = [found.state_at(number) for number in numbers]
    colored = stressed(plant, contexts[0], stress)
    stresses = None
    if colored is not None:
        stresses = [
            np.array([each.stress_port.eval(context) for context in contexts]) for each in colored
        ]
    return Motion(plant, contexts[0], poses_in(plant, contexts), captions, stresses=stresses)


def _spread(found: LoadPath, plant: Plant, count: int) -> list[int]:
    """Return the numbers of points between which bodies move by about as much, in their order."""
    # The first and the last one are among them. Where the path has fewer points, some come twice.
    poses = poses_in(plant, [found.state_at(number) for number in range(len(found))])
    size = float(np.max(np.ptp(poses[..., 9:].reshape(-1, 3), axis=0))) or 1.0
    scaled = np.concatenate([size * poses[..., :9] / np.sqrt(2.0), poses[..., 9:]], axis=-1)
    steps: FloatArray = np.sqrt(np.sum(np.diff(scaled, axis=0) ** 2, axis=(1, 2)))
    along = np.append(0.0, np.cumsum(steps))
    wanted = np.linspace(0.0, along[-1], count)
    return [int(np.argmin(np.abs(along - each))) for each in wanted[:-1]] + [len(found) - 1]


def _caption(found: LoadPath, number: int) -> str:
    values = ", ".join(f"{name} = {_word(rows[number])}" for name, rows in found.values.items())
    return values if found.stable[number] else f"{values}, unstable"


def _word(value: Any) -> str:
    return f"{value:.4g}" if np.ndim(value) == 0 else np.array2string(value, precision=4)
