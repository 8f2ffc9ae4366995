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
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds
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

    from flexure.solvers.analysis.statics.load_path import LoadPath

_SECONDS = 4.0  # of an animation
_MOST = 100  # states in one picture


def plot_states(
    found: LoadPath,
    plant: Plant | None,
    *,
    count: int,
    view: View,
    stress: bool,
    ground: float | None,
    title: str | None,
    ax: Axes | None,
    path: str | Path | None,
) -> Axes:
    """Draw some equilibria of a path over each other; see `LoadPath.plot_mechanism`."""
    attempt = f"Cannot draw '{found.system.label}' along its load path"
    plant = only_plant(found.system, "plot_mechanism(plant)") if plant is None else plant
    require_plant(plant)
    check_axes(ax, attempt)
    check_file(path, attempt)
    number = as_number(count, (), f"{attempt} with count={count!r}")
    wanted = f"a whole number of states from 2 to {_MOST}"
    require(2 <= number <= _MOST and number == int(number), count, attempt, wanted)
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
    plant: Plant | None,
    *,
    path: str | Path | None,
    view: View,
    fps: int,
    stress: bool,
) -> FuncAnimation:
    """Return an animation of a plant along a path; see `LoadPath.animate`."""
    attempt = f"Cannot animate a load path of '{found.system.label}'"
    plant = only_plant(found.system, "animate(plant)") if plant is None else plant
    require_plant(plant)
    check_bounds(as_number(fps, (), attempt), attempt, lower=1.0, upper=1000.0)
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
    """Return the numbers of points between which bodies move by about as much, in their order.

    The first and the last one are among them. Where the path has fewer points, some come twice.
    """
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
