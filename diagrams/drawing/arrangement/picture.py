"""The geometry of a drawing: where blocks, ports and wires are, in points, before any format.

Every opened diagram is laid out on its own, innermost first; for the diagram around it, it is then
just a big block. Positions count from the upper left corner, x to the right and y downwards.

Long drawings are wrapped in rows, as a text, with wires from the end of a row to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, sqrt

import networkx as nx

from flexure.diagrams.drawing.arrangement.content import Content, Row, caption_of, label_of
from flexure.diagrams.drawing.arrangement.crossings import assign_layers, reduce_crossings
from flexure.diagrams.drawing.arrangement.geometry import (
    Block,
    Picture,
    Tag,
    Wire,
    text_width,
    without_straights,
)
from flexure.diagrams.drawing.arrangement.heights import assign_heights
from flexure.diagrams.drawing.arrangement.node_columns import GRID, Node, NodeColumns
from flexure.diagrams.drawing.arrangement.wire_channels import Channels, Point
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import Port
from flexure.diagrams.systems.system import System

#: Drawings that are wider than this, and than this many times their height, wrap.
_WIDEST, _LONGEST = 1800.0, 5.0
#: Width of the rows together, in parts of their height.
_ASPECT = 1.7
#: From a block to the cut behind it, and the distance of parallel wires between rows.
_BEHIND, _SPACING = 6.0, 8


def in_rows(picture: Picture) -> Picture:
    """Return a picture in rows if it is very wide, else the picture itself.

    Cuts are in the middle between columns. A wire that meets a cut leads down at the right of its
    row, back above the next one, and down at its left. Wires of one cut spiral into each other, so
    that none of them crosses another.
    """
    height = picture.height + 4 * GRID
    if picture.width < max(_WIDEST, _LONGEST * picture.height):
        return picture
    count = round(sqrt(picture.width / (_ASPECT * height)))
    if not (places := _free_places(picture)):
        return picture
    wanted = [picture.width * k / count for k in range(1, count)]
    cuts = sorted({min(places, key=lambda x: abs(x - w)) for w in wanted})
    return _Rows(picture, cuts).wrapped()


def _free_places(picture: Picture) -> list[float]:
    """Return where a cut meets neither a block nor a tag: behind each column but the last."""
    spans = sorted((shape.x, shape.x + shape.width) for shape in _shapes(picture))
    places, end = [], spans[0][1]
    for left, right in spans[1:]:
        if left > end + 2 * _BEHIND:
            places.append(end + _BEHIND)
        end = max(end, right)
    return places


def _shapes(picture: Picture) -> list[Block | Tag]:
    """Return the blocks and tags of a picture."""
    return [*picture.blocks, *picture.tags]


class _Rows:
    """The rows of a picture that is cut at some places."""

    def __init__(self, picture: Picture, cuts: Sequence[float]) -> None:
        self._picture = picture
        self._cuts = cuts
        met: list[dict[tuple[Port, float], None]] = [{} for _ in cuts]
        for wire in picture.wires:
            for k, y in self._meetings(wire):
                met[k][wire.source, y] = None
        #: For each cut, the numbers of the wires that meet it, from the lowest up.
        self._tracks = [
            {key: n for n, key in enumerate(sorted(keys, key=lambda key: -key[1]))} for keys in met
        ]
        tops, bottoms = self._extents()
        self._shifts = [(0.0, 0)]
        self._levels: list[int] = []
        for k, cut in enumerate(cuts):
            room = _SPACING * len(self._tracks[k])
            self._levels.append(bottoms[k] + self._shifts[k][1] + 2 * GRID)
            top = self._levels[k] + room + GRID
            self._shifts.append((room + GRID - cut, top - tops[k + 1]))
        self._height = bottoms[-1] + self._shifts[-1][1]

    def wrapped(self) -> Picture:
        """Return the picture in rows."""
        picture = self._picture
        ends = [*self._cuts, picture.width]
        rooms = [_SPACING * (len(tracks) + 1) for tracks in self._tracks] + [0]
        return Picture(
            picture.system,
            max(
                end + self._shifts[k][0] + room
                for k, (end, room) in enumerate(zip(ends, rooms, strict=True))
            ),
            self._height,
            [block.moved(*self._shifts[self._row(block.x)]) for block in picture.blocks],
            [tag.moved(*self._shifts[self._row(tag.x)]) for tag in picture.tags],
            [replace(wire, points=without_straights(self._points(wire))) for wire in picture.wires],
            {port: [self._moved(dot) for dot in dots] for port, dots in picture.dots.items()},
        )

    def _row(self, x: float) -> int:
        """Return in which row a place is."""
        return sum(x > cut for cut in self._cuts)

    def _moved(self, point: Point) -> Point:
        """Return where a point is in its row."""
        dx, dy = self._shifts[self._row(point[0])]
        return point[0] + dx, point[1] + dy

    def _extents(self) -> tuple[list[int], list[int]]:
        """Return the highest and the lowest level of each row."""
        picture = self._picture
        levels: list[list[float]] = [[] for _ in range(len(self._cuts) + 1)]
        for shape in _shapes(picture):
            levels[self._row(shape.x)] += [shape.y - GRID, shape.y + shape.height + GRID]
        for wire in picture.wires:
            for x, y in wire.points:
                levels[self._row(x)].append(y)
            for k, y in self._meetings(wire):
                levels[k].append(y)
                levels[k + 1].append(y)
        return [int(min(row)) for row in levels], [int(max(row)) for row in levels]

    def _meetings(self, wire: Wire) -> Iterator[tuple[int, float]]:
        """Yield the cuts that a wire meets, and where."""
        for start, end in pairwise(wire.points):
            for k, cut in enumerate(self._cuts):
                if min(start[0], end[0]) < cut < max(start[0], end[0]):
                    yield k, start[1]

    def _points(self, wire: Wire) -> list[Point]:
        """Return the corners of a wire in rows."""
        points = [self._moved(wire.points[0])]
        for start, end in pairwise(wire.points):
            between = range(*sorted((self._row(start[0]), self._row(end[0]))))
            forth = start[0] < end[0]
            for k in between if forth else reversed(between):
                passage = self._passage(k, wire.source, start[1])
                points += passage if forth else passage[::-1]
            points.append(self._moved(end))
        return points

    def _passage(self, k: int, source: Port, y: float) -> list[Point]:
        """Return the corners of a wire from the end of a row to the start of the next."""
        n = self._tracks[k][source, y]
        right = self._cuts[k] + self._shifts[k][0] + _SPACING * (n + 1)
        left = self._cuts[k] + self._shifts[k + 1][0] - _SPACING * (len(self._tracks[k]) - n)
        level = self._levels[k] + _SPACING * n
        before, after = y + self._shifts[k][1], y + self._shifts[k + 1][1]
        return [(right, before), (right, level), (left, level), (left, after)]


#: Sizes of text.
NAME, CAPTION, LABEL, TITLE = 10.0, 8.0, 8.0, 12.0
#: From the edge of a block to the label of a port.
INDENT = 6.0
#: Space between the edge of a frame and what is in it, and the head with its name.
PADDING, HEAD = 2 * GRID, 4 * GRID
#: Distance of parallel vertical wires, and the room that they keep to the columns beside them.
_PITCH, _LEAVE, _ARRIVE = 8.0, 12.0, 20.0
#: Free space above and below a block.
_MARGIN = 3 * GRID // 2
#: Distance of two ports.
_ROW = 2 * GRID
#: Blocks with so many rows at one side have their name above them.
_HEAD_FROM = 4


def picture_of(content: Content, *, rows: bool = True) -> Picture:
    """Return the geometry of a diagram with everything in it at its final position.

    A very wide one wraps into rows, unless this is switched off.
    """
    pictures: dict[System, Picture] = {}
    for current in reversed(content.opened):
        padding = 0 if current is content.diagram else PADDING
        pictures[current] = _lay_out(current, content, pictures, padding)
    picture = _flat(pictures[content.diagram])
    return in_rows(picture) if rows else picture


def _flat(root: Picture) -> Picture:
    """Bring all blocks, frames and wires at any depth into one picture; frames come first."""
    flat = Picture(root.system, root.width, root.height)
    stack = [(root, 0.0, 0)]
    while stack:
        picture, dx, dy = stack.pop()

        def moved(point: Point, dx: float = dx, dy: int = dy) -> Point:
            return point[0] + dx, point[1] + dy

        for block in picture.blocks:
            placed = block.moved(dx, dy)
            flat.blocks.append(placed)
            if block.inside is not None:
                stack.append((block.inside, placed.x, placed.y))
        flat.tags += [tag.moved(dx, dy) for tag in picture.tags]
        flat.wires += [
            replace(wire, points=tuple(map(moved, wire.points))) for wire in picture.wires
        ]
        flat.dots |= {port: [moved(dot) for dot in dots] for port, dots in picture.dots.items()}
    return flat


def _lay_out(
    diagram: Diagram, content: Content, pictures: Mapping[System, Picture], padding: int
) -> Picture:
    """Lay out one diagram, given the pictures of the opened diagrams in it."""
    links = content.links(diagram)
    nodes = _nodes_of(diagram, content, pictures)
    columns = NodeColumns(nodes, links)
    reduce_crossings(columns)
    assign_heights(columns, HEAD)
    channels = Channels(columns)
    width = _place_columns(diagram, columns, channels, padding)
    lowest = max(node.bottom for column in columns for node in column)
    lowest = max([lowest, *(net.lane for _, _, net in columns.far_nets())])
    picture = Picture(diagram, width, lowest + padding, dots=channels.dots())
    for node, shown in nodes.items():
        place = node.x, node.y, node.width, node.height
        if not isinstance(shown, System):
            picture.tags.append(Tag(shown, *place))
            continue
        ports = {row: _left_of(node, row) for row in content.inputs(shown)}
        ports |= {row: _right_of(node, row) for row in content.outputs(shown)}
        picture.blocks.append(Block(shown, *place, ports, pictures.get(shown)))
    for source, target in links:
        start = _right_of(columns.node_at[source], source)
        end = _left_of(columns.node_at[target], target)
        points = without_straights([start, *channels.corners(source, target), end])
        picture.wires.append(Wire(source, target, points, columns.goes_back(source, target)))
    return picture


def _left_of(node: Node, port: Row) -> Point:
    """Return the position of a port on the left edge."""
    return node.x, node.height_of(port)


def _right_of(node: Node, port: Row) -> Point:
    """Return the position of a port on the right edge."""
    return node.x + node.width, node.height_of(port)


def _nodes_of(
    diagram: Diagram, content: Content, pictures: Mapping[System, Picture]
) -> dict[Node, System | Row]:
    """Make the nodes of the blocks and the exported ports of a diagram."""
    index: dict[System, int] = {child: k for k, child in enumerate(diagram.children)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(index)))
    graph.add_edges_from(
        (index[source.system], index[target.system])
        for source, target in content.links(diagram)
        if source.system in index and target.system in index
    )
    layers = assign_layers(graph)
    first = 1 if diagram.input_ports else 0
    last = first + 1 + max(layers.values())
    nodes: dict[Node, System | Row] = {}
    for entry in content.inputs(diagram):
        nodes[_tag_node(entry, 0, 0.0)] = entry
    for child, k in index.items():
        inside = pictures.get(child)
        node = _frame_node(inside) if inside is not None else _block_node(child, content)
        node.layer = first + layers[k]
        nodes[node] = child
    for port in content.outputs(diagram):
        nodes[_tag_node(port, last, 1.0)] = port
    return nodes


def _tag_node(port: Row, layer: int, align: float) -> Node:
    """Make the node of an exported port."""
    width = _round_up(text_width(port.name, LABEL) + 3 * INDENT)
    return Node(layer, width, 2 * GRID, align, 0, {port: GRID})


def _block_node(system: System, content: Content) -> Node:
    """Make the node of a closed block, as large as its texts need."""
    inputs, outputs = content.inputs(system), content.outputs(system)
    head = block_head(system, content)
    text = max(text_width(system.name, NAME, bold=True), text_width(caption_of(system), CAPTION))
    labels = label_room(inputs) + 2 * INDENT + label_room(outputs)
    width = _round_up(max(text + 2 * INDENT, labels) if head else text + labels)
    height = head + _ROW * (1 + max(2, len(inputs), len(outputs)))
    offsets: dict[Row, int] = {}
    for ports in (inputs, outputs):
        first = head + (height - head - _ROW * (len(ports) - 1)) // 2
        offsets.update((port, first + _ROW * k) for k, port in enumerate(ports))
    return Node(0, max(width, 9 * GRID), height, margin=_MARGIN, offsets=offsets)


def block_head(system: System, content: Content) -> int:
    """Return the height of the head of a closed block; 0 when its name stands between labels.

    A block with many ports is tall anyway; with its name above them it is not wide as well.
    """
    rows = max(len(content.inputs(system)), len(content.outputs(system)))
    return 3 * GRID if rows >= _HEAD_FROM else 0


def _frame_node(inside: Picture) -> Node:
    """Make the node of an opened diagram."""
    offsets = {tag.port: tag.y + tag.height // 2 for tag in inside.tags}
    return Node(0, inside.width, inside.height, margin=_MARGIN, offsets=offsets)


def _place_columns(
    diagram: Diagram, columns: NodeColumns, channels: Channels, padding: int
) -> float:
    """Set ``x`` of all nodes and trunks and return the width of the diagram."""
    widths = [max(node.width for node in column) for column in columns]
    rooms = [_LEAVE + _PITCH * max(tracks - 1, 0) + _ARRIVE for tracks in channels.tracks]
    if not channels.tracks[0]:
        rooms[0] = 0.0 if diagram.input_ports else padding
    if not channels.tracks[-1]:
        rooms[-1] = 0.0 if diagram.output_ports else padding
    missing = head_width(diagram) - sum(widths) - sum(rooms)
    rooms[-2 if diagram.output_ports else -1] += max(missing, 0.0)
    x, starts = 0.0, []
    for room, width, column in zip(rooms, [*widths, 0.0], [*columns, []], strict=True):
        starts.append(x + _LEAVE)
        x += room
        for node in column:
            node.x = x + node.align * (width - node.width)
        x += width
    channels.place(starts, _PITCH)
    return x


def label_room(ports: Sequence[Row]) -> float:
    """Return the room that the labels of the ports of one side need inside of a block."""
    return INDENT + max((text_width(label_of(port), LABEL) for port in ports), default=0.0)


def head_width(diagram: Diagram) -> float:
    """Return the width of the name and the caption of an opened diagram, with its margins."""
    name = text_width(diagram.name, NAME, bold=True)
    return 2 * PADDING + name + INDENT + text_width(caption_of(diagram), CAPTION)


def _round_up(width: float) -> float:
    """Return the next multiple of the grid."""
    return GRID * ceil(width / GRID)
