"""Data of the diagram and of the mechanism on a page: drawings and their contents, moving shapes.

Every drawing of a diagram is made here, with the geometry of `flexure.diagrams.drawing`; the page
only chooses which one to show. Each diagram has a drawing of its own, in which nothing is unfolded.
The outermost one has further drawings with blocks unfolded in place, as many as fit into a budget,
those with few unfolded blocks first. Where the page has none, it goes inside of a block instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from inspect import getdoc
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.multibody.bodies.bodies import Frame, FrameLike
from flexure.blocks.multibody.plants.plant import Plant
from flexure.diagrams.building.known_units import KnownUnits
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import Paths
from flexure.diagrams.drawing.arrangement.content import Content, Fold, Row, caption_of, role_of
from flexure.diagrams.drawing.arrangement.geometry import Block, Picture, Wire
from flexure.diagrams.drawing.arrangement.node_columns import GRID
from flexure.diagrams.drawing.arrangement.picture import label_room, picture_of
from flexure.diagrams.drawing.formats.palette import FRAME, INK, PALE, PAPER, ROLES, TAG
from flexure.diagrams.drawing.formats.sheet import Path, Text, sheet_of
from flexure.diagrams.drawing.formats.svg import outline_text
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import InputPort, OutputPort, Port
from flexure.diagrams.systems.system import System, each_system
from flexure.diagrams.values.arrays import show
from flexure.diagrams.values.parameters import NumericParameter
from flexure.solvers.analysis.statics.load_paths.load_path import LoadPath
from flexure.solvers.pages.page_content import PageSignals, law_of
from flexure.solvers.results.mechanisms.camera import View
from flexure.solvers.results.mechanisms.flexure_shapes import ribbons
from flexure.solvers.results.mechanisms.pictures import Motion, poses_in
from flexure.solvers.results.mechanisms.scene import force_arrows
from flexure.solvers.results.mechanisms.view_data import view_data

#: Marks of all drawings with unfolded blocks; one takes some 100 bytes of the page.
_BUDGET = 4000
#: Names of the colors, which the page may replace in the dark.
_COLORS = {
    **{look.edge: f"{role}-edge" for role, look in ROLES.items()},
    **{look.fill: role for role, look in ROLES.items()},
    FRAME.edge: "frame-edge",
    FRAME.fill: "frame",
    TAG.edge: "tag-edge",
    TAG.fill: "tag",
    INK: "ink",
    PALE: "pale",
    PAPER: "paper",
}


def diagram_data(system: System) -> dict[str, Any] | None:
    """Return what `mountDiagram` of the page draws, as plain JSON; None for a single block.

    It has ``name``; ``colors`` by name; ``things``, the blocks, ports, folded lines and parameters
    that all else refers to by number; and ``views``, the drawings, each with the number of the
    diagram that it shows (``focus``), those of the blocks unfolded in it (``open``), its rectangle
    (``box``), ``shapes``, ``blocks`` with their rectangles, and the rectangles of ``ports``.
    """
    if not isinstance(system, Diagram):
        return None
    things = _Things(system)
    views = [_view(Content(each, [each]), things) for each in each_diagram(system)]
    views += _unfolded(system, things)
    return {
        "name": system.name,
        "colors": {name: color for color, name in _COLORS.items()},
        "things": things.listed,
        "views": views,
    }


def each_diagram(system: System) -> Iterator[Diagram]:
    """Go through a diagram and all diagrams in it, the outer ones first."""
    return (each for each in each_system(system) if isinstance(each, Diagram))


def _unfolded(root: Diagram, things: _Things) -> Iterator[dict[str, Any]]:
    """Yield the drawings of a diagram with blocks unfolded, while they fit into the budget."""
    order = [*each_diagram(root)]
    found = [frozenset({root})]
    known = {*found}
    left = _BUDGET
    for opened in found:
        if len(opened) > 1:
            view = _view(Content(root, [each for each in order if each in opened]), things)
            left -= len(view["shapes"])
            if left < 0:
                return
            yield view
        further = [opened | {each} for each in order if each.parent in opened]
        found += [each for each in dict.fromkeys(further) if each not in known]
        known.update(further)


class _Things:
    """The numbered list of what drawings are about, as plain JSON."""

    def __init__(self, root: Diagram) -> None:
        self.listed: list[dict[str, Any]] = []
        self._root = root
        self._path_of = Paths(root)
        self._signals = PageSignals(root)
        self._units = KnownUnits(root)
        self._numbers: dict[Any, int] = {}
        self._start = len(f"{root.path}.") if root.path else 0
        for system in each_system(root):
            self._add(system, self._block(system))
            for port in (*system.input_ports, *system.output_ports):
                self._add(port, self._port(port))
            for handle in getattr(system, "numeric_parameters", ()):
                block = self._numbers[system]
                details = {"path": self._path_of(handle), "name": handle.name, "block": block}
                words = {"unit": handle.unit, "doc": handle.doc}
                self._add(handle, {"kind": "parameter", **details, **words})

    def number(self, subject: object) -> int:
        """Return the number of a system, a row, or of the port where a wire starts."""
        subject = subject.source if isinstance(subject, Wire) else subject
        if isinstance(subject, Fold):
            key = subject.system, subject.ports
            if key not in self._numbers:
                ports = [self._numbers[port] for port in subject.ports]
                block = self._numbers[subject.system]
                fold = {"kind": "fold", "name": subject.name, "block": block, "ports": ports}
                self._add(key, fold)
            return self._numbers[key]
        return self._numbers[subject]

    def _add(self, key: Any, thing: dict[str, Any]) -> None:
        self._numbers[key] = len(self.listed)
        self.listed.append(thing)

    def _block(self, system: System) -> dict[str, Any]:
        """Describe a system."""
        summary = (getdoc(type(system)) or "").split("\n\n")[0]
        return {
            "kind": "block",
            "path": system.path[self._start :] if system is not self._root else "",
            "name": system.name,
            "caption": caption_of(system),
            "role": role_of(system),
            "doc": summary.replace("\n", " ").replace("`", ""),
            "parent": None if system is self._root else self._numbers[system.parent],
            "opens": isinstance(system, Diagram),
        }

    def _port(self, port: Port) -> dict[str, Any]:
        """Describe a port, and where its value comes from: a signal, or an input of the whole."""
        source = self._source(port)
        is_signal = not isinstance(source, InputPort) and port.size is not None
        return {
            "kind": "input" if isinstance(port, InputPort) else "output",
            "path": self._path_of(port),
            "name": port.name,
            "block": self._numbers[port.system],
            "size": port.size,
            "unit": (port.unit if port.size is None else self._units.unit(port)) or source.unit,
            "doc": port.doc or source.doc,
            "signal": self._signals.outermost(source) if is_signal else None,
            "free": self._path_of(source) if isinstance(source, InputPort) else None,
        }

    def _source(self, port: Port) -> Port:
        """Return the output that gives a port its value, or the input that nothing feeds."""
        while isinstance(port, InputPort) and port.system is not self._root:
            diagram = port.system.parent
            feed = diagram.feed_of(port) if isinstance(diagram, Diagram) else None
            if feed is None:
                break
            port = feed
        return port


def _view(content: Content, things: _Things) -> dict[str, Any]:
    """Return one drawing."""
    picture = picture_of(content)
    sheet = sheet_of(content, picture)
    inside = [each for each in content.opened if each is not content.diagram]
    return {
        "focus": things.number(content.diagram),
        "open": [things.number(each) for each in inside],
        "box": [sheet.left, sheet.top, sheet.width, sheet.height],
        "shapes": [_shape(each, things) for each in sheet.shapes],
        "blocks": [[things.number(b.system), b.x, b.y, b.width, b.height] for b in picture.blocks],
        "ports": [*_port_boxes(picture, content, things)],
    }


def _shape(shape: Path | Text, things: _Things) -> list[Any]:
    """Write a mark: what it is about, whether that is a wire, and how it looks."""
    subject = None if shape.subject is None else things.number(shape.subject)
    if isinstance(shape, Text):
        look = [shape.text, round(shape.x, 1), round(shape.y, 1), shape.size, shape.anchor]
        return [subject, "text", *look, _COLORS[shape.color], int(shape.bold)]
    kind = "wire" if isinstance(shape.subject, Wire) else "area"
    fill, stroke = (c and _COLORS[c] for c in (shape.fill, shape.stroke))
    return [subject, kind, outline_text(shape), fill, stroke, shape.width]


def _port_boxes(picture: Picture, content: Content, things: _Things) -> Iterator[list[Any]]:
    """Yield where rows are to be pointed at: [number, x, y, width, height]."""
    half = GRID - 1.0
    for block in picture.blocks:
        if block.inside is None:
            for rows in (content.inputs(block.system), content.outputs(block.system)):
                yield from _side_boxes(block, rows, half, things)
    for tag in picture.tags:
        yield [things.number(tag.port), tag.x, tag.y, tag.width, tag.height]


def _side_boxes(
    block: Block, rows: Sequence[Row], half: float, things: _Things
) -> Iterator[list[Any]]:
    room = label_room(rows) + 2.0
    for row in rows:
        x, y = block.ports[row]
        left = x - 4.0 if x == block.x else x - room
        yield [things.number(row), round(left, 1), y - half, round(room + 4.0, 1), 2 * half]


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
