"""Data of a mechanism on a page: its shapes and lines, and the signals that move them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.multibody.bodies.bodies import Frame, FrameLike
from flexure.blocks.multibody.plants.plant import Plant
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import show
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.analysis.statics.load_paths.load_path import LoadPath
from flexure.solvers.pages.page_content import law_of
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.flexure_shapes import ribbons
from flexure.solvers.results.mechanisms.pictures import Motion, poses_in
from flexure.solvers.results.mechanisms.scene import force_arrows
from flexure.solvers.results.mechanisms.view_data import view_data

_PHASES = 24  # of the period of a shape
_MOST_SHAPES = 12
_MOST_POINTS = 49  # of a load path


class Look(NamedTuple):
    """How mechanisms are shown; as for `animate`, with shapes of modes, buckling and paths."""

    view: View = "auto"
    forces: bool = False
    trace: Sequence[FrameLike] | FrameLike = ()
    ground: float | None = None
    stress: bool = False
    shapes: Sequence[Any] = ()


def mechanism_data(
    plant: Plant,
    context: Context,
    path_of: Callable[[OutputPort | NumericParameter], str],
    look: Look,
    traced: Sequence[Frame],
) -> dict[str, Any]:
    """Return what ``mountMechanism(element, data, app)`` of ``mechanism_view.js`` draws.

    The context gives the places on bodies, and the poses by which sizes are chosen; ``path_of``
    the path under which the page knows an output or a parameter; paths of frames ``traced`` are
    drawn. ``signals`` of the plain data holds for each body the path of its pose, which are twelve
    numbers, and None for the world.
    """
    poses = poses_in(plant, [context])
    ports = [plant.tree.find_output(f"{body.name}_pose") for body in plant.bodies[1:]]
    arrows = force_arrows(plant, context) if look.forces else []
    acting = [path_of(each.element.force_ports[each.attachment]) for each in arrows]
    motion = Motion(plant, context, poses, [""], traced=traced)
    signals = [None, *map(path_of, ports)]
    bent = ribbons(plant, context)
    colored = bent if look.stress else []
    about = view_data(
        motion,
        signals=signals,
        forces=acting,
        stresses=[path_of(each.stress_port) for each in colored],
        strengths=["" if each.strength is None else path_of(each.strength) for each in colored],
        view=look.view,
        ground=look.ground,
    )
    tensions = {path_of(each.stress_port): each.stress_port for each in colored}
    about["shapes"] = [shape for found in look.shapes for shape in _shapes(plant, found, tensions)]
    return about | {"inside": [_inside(each.stress_port.system, path_of) for each in bent]}


def _shapes(
    plant: Plant, found: Any, stresses: Mapping[str, OutputPort]
) -> Iterator[dict[str, Any]]:
    """Yield the shapes that move a plant: captions, and poses over one period, or over a path."""
    if isinstance(found, LoadPath):
        yield _path(plant, found, stresses)
        return
    turns = np.exp(2j * np.pi * np.arange(_PHASES) / _PHASES)
    for number in range(min(len(found), _MOST_SHAPES)):
        with suppress(ValueRefusedError):  # of a shape in which this plant does not move
            shape = found._shape_of(number, plant)
            yield {"name": shape.caption, "poses": _rounded(shape.poses(turns))}


def _path(plant: Plant, path: LoadPath, stresses: Mapping[str, OutputPort]) -> dict[str, Any]:
    """Return poses and stresses at points of a load path, each with a label."""
    points = np.unique(np.linspace(0, len(path) - 1, _MOST_POINTS).round().astype(int)).tolist()
    contexts = [path.state_at(k) for k in points]
    columns = {
        **path.values,
        **{f"required force on {name}": f for name, f in path.required.items()},
    }
    labels = [
        ", ".join(f"{name} = {show(rows[k])}" for name, rows in columns.items()) for k in points
    ]
    return {
        "name": f"Load path over {', '.join(path.values)}",
        "poses": _rounded(poses_in(plant, contexts)),
        "labels": labels,
        "signals": {
            name: _rounded([port.eval(context) for context in contexts])
            for name, port in stresses.items()
        },
    }


def _rounded(rows: Iterable[Any]) -> list[list[float]]:
    """Return rows of numbers in six digits."""
    return [[float(f"{x:.6g}") for x in np.ravel(row)] for row in rows]


def _inside(flexure: System, path_of: Callable[[OutputPort], str]) -> dict[str, Any]:
    """Return path and law of a flexure, and the paths of its greatest stress and its safety."""
    ports = [each for each in flexure.output_ports if each.name in ("greatest_stress", "safety")]
    signals = [path_of(port) for port in ports]
    return {"path": flexure.path, "law": law_of(flexure), "signals": signals}
