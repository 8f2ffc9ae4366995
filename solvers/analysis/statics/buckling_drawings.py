"""Buckling shapes, drawn on the mechanism and animated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks import Plant
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.static_coordinates import StaticCoordinates
from flexure.solvers.analysis.modes.shape_drawings import Shape
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.pictures import only_plant, require_plant

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from flexure.solvers.analysis.statics.buckling import Buckling, CriticalLoad


def plot_buckling_shape(
    found: Buckling,
    index: int = 0,
    plant: Plant | None = None,
    *,
    view: View = "auto",
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a buckling shape on the mechanism, over the critical state.

    Parameters
    ----------
    index : int
        Number of the critical load.
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
        When there is no such critical load, or its shape does not move the plant.
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.

    Notes
    -----
    The amplitude is chosen so that the shape can be seen: about an eighth of the size of the
    mechanism.
    """
    attempt = f"Cannot draw a buckling shape of '{found.context.system.label}'"
    return buckling_shape(found[index], plant, attempt).plot(view=view, ax=ax, path=path)


def animate_buckling(
    found: Buckling,
    index: int = 0,
    plant: Plant | None = None,
    *,
    path: str | Path | None = None,
    view: View = "auto",
    fps: int = 25,
) -> FuncAnimation:
    """Animate a buckling shape about the critical state.

    Parameters
    ----------
    index : int
        Number of the critical load.
    plant : Plant, optional
        The plant; it may be omitted when the system is one or contains exactly one.
    path, view, fps
        As in `animate`.

    Returns
    -------
    matplotlib.animation.FuncAnimation

    Raises
    ------
    ValueRefusedError
        When there is no such critical load, or its shape does not move the plant.
    UnknownNameError
        When there is no plant, or it is not clear which one is meant.
    """
    attempt = f"Cannot animate a buckling shape of '{found.context.system.label}'"
    return buckling_shape(found[index], plant, attempt).animate(path=path, view=view, fps=fps)


def shape_of_load(found: Buckling, index: int, plant: Plant) -> Shape:
    """Return the shape of a critical load for a page."""
    attempt = f"Cannot show a buckling shape of '{found.context.system.label}'"
    return buckling_shape(found[index], plant, attempt)


def buckling_shape(critical: CriticalLoad, plant: Plant | None, attempt: str) -> Shape:
    """Return the shape in which a mechanism loses its stiffness."""
    context = critical.context
    plant = only_plant(context.system, "plot(0, plant)") if plant is None else plant
    require_plant(plant)
    coordinates = StaticCoordinates(context)
    motion = np.array([critical.shape[name] for name in coordinates.names])
    x = context.continuous_state

    def move(part: FloatArray) -> Context:
        twin = context.clone()
        twin.continuous_state = coordinates.moved(x, part)
        return twin

    factor = critical.linear_factor if np.isnan(critical.factor) else critical.factor
    caption = f"{critical.kind}, factor {factor:.4g}"
    return Shape(plant, context, motion, move, caption, attempt)
