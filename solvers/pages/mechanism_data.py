"""What a page shows of a mechanism: its shapes and lines, and the signals that move them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flexure.blocks.multibody.plant import Plant
from flexure.diagrams.context import Context
from flexure.diagrams.ports import OutputPort
from flexure.solvers.results.mechanisms.pictures import Motion, poses_in
from flexure.solvers.results.mechanisms.view_data import view_data


def mechanism_data(
    plant: Plant, context: Context, path_of: Callable[[OutputPort], str]
) -> dict[str, Any]:
    """Return what ``mountMechanism(element, data, app)`` of ``mechanism_view.js`` draws.

    Parameters
    ----------
    plant : Plant
        The plant.
    context : Context
        Gives the places on its bodies, and the poses by which sizes are chosen.
    path_of : callable
        Returns the path under which the page knows an output of a block.

    Returns
    -------
    dict
        Plain data; ``signals`` holds for each body the path of its pose, which are twelve numbers,
        and None for the world.
    """
    poses = poses_in(plant, [context])
    ports = [plant.tree.find_output(f"{body.name}_pose") for body in plant.bodies[1:]]
    motion = Motion(plant, context, poses, [""])
    return view_data(motion, signals=[None, *map(path_of, ports)])


__all__ = ["mechanism_data"]
