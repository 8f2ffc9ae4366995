"""The look of a drawing: the paths and texts that show blocks, tags and wires in any format."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from typing import Literal, TypeAlias

from flexure.diagrams.drawing.arrangement.content import (
    Content,
    Fold,
    Role,
    Row,
    caption_of,
    describe_link,
    label_of,
    role_of,
)
from flexure.diagrams.drawing.arrangement.geometry import Block, Picture, Tag, Wire, text_width
from flexure.diagrams.drawing.arrangement.node_columns import GRID
from flexure.diagrams.drawing.arrangement.picture import (
    CAPTION,
    INDENT,
    LABEL,
    NAME,
    PADDING,
    block_head,
    label_room,
    picture_of,
)
from flexure.diagrams.drawing.arrangement.wire_channels import Point
from flexure.diagrams.drawing.formats.palette import FRAME, INK, PALE, PAPER, ROLES, TAG
from flexure.diagrams.systems.ports import InputPort, Port
from flexure.diagrams.systems.system import System

#: A step of a path: "M" moves, "L" draws a line, "Q" a quadratic curve (control point, end point),
#: and "Z" closes the path.
Step: TypeAlias = tuple[Literal["M", "L", "Q", "Z"], tuple[Point, ...]]

#: Which point of a text is at its place.
Anchor: TypeAlias = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Path:
    """A line or an area."""

    steps: tuple[Step, ...]  # the outline
    # stroke, fill: colors; None leaves the line or the area out.
    stroke: str | None = INK
    fill: str | None = None
    width: float = 1.0  # width of the line, in points
    title: str = ""  # text that appears on hover
    subject: object = None  # what it shows: a system, a port or the line of others, a wire, or None


@dataclass(frozen=True)
class Text:
    """One line of text; ``x`` is its start, middle or end, and ``y`` its base line.

    ``title`` appears on hover, and ``subject`` is the owner, as in `Path`.
    """

    text: str
    x: float
    y: float
    size: float
    anchor: Anchor = "start"
    bold: bool = False
    color: str = INK
    title: str = ""
    subject: object = None


@dataclass(frozen=True)
class Sheet:
    """A complete drawing: its upper left corner and size, and its marks from back to front."""

    left: float
    top: float
    width: float
    height: float
    shapes: tuple[Path | Text, ...]


def polygon(*points: Point) -> tuple[Step, ...]:
    """Return the outline of an area with straight edges."""
    return ("M", points[:1]), *(("L", (point,)) for point in points[1:]), ("Z", ())


def rounded_box(x: float, y: float, width: float, height: float, radius: float) -> tuple[Step, ...]:
    """Return the outline of a box with round corners."""
    right, bottom = x + width, y + height
    return (
        ("M", ((x + radius, y),)),
        ("L", ((right - radius, y),)),
        ("Q", ((right, y), (right, y + radius))),
        ("L", ((right, bottom - radius),)),
        ("Q", ((right, bottom), (right - radius, bottom))),
        ("L", ((x + radius, bottom),)),
        ("Q", ((x, bottom), (x, bottom - radius))),
        ("L", ((x, y + radius),)),
        ("Q", ((x, y), (x + radius, y))),
        ("Z", ()),
    )


def disk(center: Point, radius: float) -> tuple[Step, ...]:
    """Return the outline of a small disk."""
    return rounded_box(center[0] - radius, center[1] - radius, 2 * radius, 2 * radius, radius)


def bent_line(points: Sequence[Point], radius: float) -> tuple[Step, ...]:
    """Return a line through ``points`` with rounded corners."""
    steps: list[Step] = [("M", (points[0],))]
    for k, corner in enumerate(points[1:-1], start=1):
        steps.append(("L", (_towards(corner, points[k - 1], radius),)))
        steps.append(("Q", (corner, _towards(corner, points[k + 1], radius))))
    return *steps, ("L", (points[-1],))


def _towards(start: Point, end: Point, distance: float) -> Point:
    """Return the point at a distance from ``start``, at most half of the way to ``end``."""
    length = hypot(end[0] - start[0], end[1] - start[1])
    part = min(distance / length, 0.5)
    return start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])


_WIRE_WIDTH = 1.1
_ROUND, _BEND, _DOT, _OPEN, _TAG_INSET = 5.0, 4.0, 2.0, 2.2, 1.5
_ARROW, _ARROW_HALF = 7.0, 2.8
_MARGIN, _SWATCH, _LEGEND_GAP = 12.0, 10.0, 12.0
#: Diagrams of fewer blocks explain themselves.
_LEGEND_FROM = 4


def sheet_of(content: Content, picture: Picture | None = None) -> Sheet:
    """Draw a diagram with everything that is shown of it, given its geometry if that is known."""
    picture = picture or picture_of(content)
    closed = [block for block in picture.blocks if block.inside is None]
    frames = [block for block in picture.blocks if block.inside is not None]
    wired = {port for wire in picture.wires for port in (wire.source, wire.target)}
    nets: dict[Port, list[Wire]] = {}
    for wire in picture.wires:
        nets.setdefault(wire.source, []).append(wire)
    shapes: list[Path | Text] = [*_head(content.diagram, -PADDING, 0.0)]
    for frame in frames:
        shapes += _frame(frame)
    for source, wires in nets.items():
        shapes += _net(wires, picture.dots[source])
    for tag in picture.tags:
        shapes += _tag(tag)
    for block in closed:
        shapes += _block(block, content)
    for block in picture.blocks:
        shapes += [
            Path(disk(point, _OPEN), stroke=INK, fill=PAPER, width=0.8, subject=port)
            for port, point in block.ports.items()
            if isinstance(port, Port) and port not in wired
        ]
    height: float = picture.height
    legend = _legend({role_of(block.system) for block in closed}, height + _LEGEND_GAP)
    if legend and len(closed) >= _LEGEND_FROM and _right_end(legend) <= picture.width:
        shapes += legend
        height += _SWATCH + _LEGEND_GAP
    width = picture.width
    return Sheet(-_MARGIN, -_MARGIN, width + 2 * _MARGIN, height + 2 * _MARGIN, tuple(shapes))


def _head(system: System, x: float, y: float) -> Iterator[Text]:
    """Draw the name and the caption of an opened diagram at its upper edge."""
    after = x + PADDING + text_width(system.name, NAME, bold=True) + INDENT
    yield Text(system.name, x + PADDING, y + 18.0, NAME, bold=True, subject=system)
    yield Text(caption_of(system), after, y + 18.0, CAPTION, color=PALE, subject=system)


def _frame(block: Block) -> Iterator[Path | Text]:
    """Draw the frame around an opened diagram."""
    fill, edge = FRAME
    outline = rounded_box(block.x, block.y, block.width, block.height, _ROUND)
    yield Path(outline, stroke=edge, fill=fill, subject=block.system)
    yield from _head(block.system, block.x, block.y)


def _block(block: Block, content: Content) -> Iterator[Path | Text]:
    """Draw a closed block; a second line inside of its edge shows that it can be opened."""
    system = block.system
    fill, edge = ROLES[role_of(system)]
    x, y, width, height = block.x, block.y, block.width, block.height
    title = f"{system.label} ({caption_of(system)})"
    outline = rounded_box(x, y, width, height, _ROUND)
    yield Path(outline, stroke=edge, fill=fill, title=title, subject=system)
    if system.children is not None:
        inner = rounded_box(x + 2.5, y + 2.5, width - 5.0, height - 5.0, _ROUND - 2.5)
        yield Path(inner, stroke=edge, width=0.6, subject=system)
    head = block_head(system, content)
    shift = label_room(content.inputs(system)) - label_room(content.outputs(system))
    middle = x + (width + (0.0 if head else shift)) / 2.0
    center = y + (head + GRID if head else height) / 2.0
    caption, low = caption_of(system), center + 9.5
    yield Text(system.name, middle, center - 2.5, NAME, "middle", bold=True, subject=system)
    yield Text(caption, middle, low, CAPTION, "middle", color=PALE, subject=system)
    for port in content.rows(system):
        at, level = block.ports[port]
        yield from _label(port, at, level, at_left=at == x)


def _label(port: Row, x: float, y: float, *, at_left: bool) -> Iterator[Text]:
    """Draw the name of a port, or of others, inside of the edge that it is at."""
    if text := label_of(port):
        at = x + INDENT if at_left else x - INDENT
        color, title = INK, ""
        if isinstance(port, Fold):
            color, title = PALE, ", ".join(folded.name for folded in port.ports)
        anchor: Anchor = "start" if at_left else "end"
        yield Text(text, at, y + 3.0, LABEL, anchor, color=color, title=title, subject=port)


def _tag(tag: Tag) -> Iterator[Path | Text]:
    """Draw the marker of an exported port, which points along the flow."""
    if isinstance(tag.port, Fold):
        at_left = isinstance(tag.port.ports[0], InputPort)
        side = tag.x if at_left else tag.x + tag.width
        yield from _label(tag.port, side, tag.y + tag.height / 2.0, at_left=at_left)
        return
    fill, edge = TAG
    left, right = tag.x, tag.x + tag.width
    top, bottom = tag.y + _TAG_INSET, tag.y + tag.height - _TAG_INSET
    center = (top + bottom) / 2.0
    outline = polygon(
        (left, top),
        (right - INDENT, top),
        (right, center),
        (right - INDENT, bottom),
        (left, bottom),
    )
    title = tag.port.full_name
    yield Path(outline, stroke=edge, fill=fill, width=0.8, title=title, subject=tag.port)
    yield Text(tag.port.name, left + INDENT, center + 3.0, LABEL, subject=tag.port)


def _net(wires: Sequence[Wire], dots: Sequence[Point]) -> Iterator[Path]:
    """Draw the wires from one port, the pieces that they share once, with arrow heads."""
    by_x, by_y = _by_line(dots, 0), _by_line(dots, 1)
    source = wires[0].source
    drawn: set[tuple[Point, ...]] = set()
    for wire in wires:
        x, y = wire.points[-1]
        ends = [*wire.points[:-1], (x - _ARROW / 2.0, y)]
        title = describe_link(source, wire.target)
        for piece in _cut(ends, by_x, by_y):
            if piece in drawn:
                break  # What comes before it is drawn too.
            drawn.add(piece)
            yield Path(bent_line(piece, _BEND), width=_WIRE_WIDTH, title=title, subject=wire)
            title = source.full_name
        head = polygon((x, y), (x - _ARROW, y - _ARROW_HALF), (x - _ARROW, y + _ARROW_HALF))
        yield Path(head, stroke=None, fill=INK, subject=wire)
    for dot in dots:
        yield Path(disk(dot, _DOT), stroke=None, fill=INK, subject=wires[0])


def _by_line(dots: Sequence[Point], axis: int) -> dict[float, list[float]]:
    """Group dots by one coordinate; the other one is sorted."""
    lines: dict[float, list[float]] = {}
    for dot in dots:
        lines.setdefault(dot[axis], []).append(dot[1 - axis])
    return {position: sorted(line) for position, line in lines.items()}


def _cut(
    points: Sequence[Point], by_x: dict[float, list[float]], by_y: dict[float, list[float]]
) -> Iterator[tuple[Point, ...]]:
    """Cut a wire at the dots that lie on it; the last piece comes first."""
    piece = [points[-1]]
    for end, start in pairwise(reversed(points)):
        is_vertical = start[0] == end[0]
        if is_vertical:
            dots = [(start[0], y) for y in _passed(by_x.get(start[0], ()), end[1], start[1])]
        else:
            dots = [(x, start[1]) for x in _passed(by_y.get(start[1], ()), end[0], start[0])]
        for dot in dots:
            yield dot, *reversed(piece)
            piece = [dot]
        if piece[-1] != start:
            piece.append(start)
    yield tuple(reversed(piece))


def _passed(line: Sequence[float], start: float, end: float) -> Sequence[float]:
    """Return the positions that lie behind ``start`` and not behind ``end``, in this order."""
    if start < end:
        return line[bisect_right(line, start) : bisect_right(line, end)]
    return line[bisect_left(line, end) : bisect_left(line, start)][::-1]


def _legend(roles: set[Role], top: float) -> list[Path | Text]:
    """Draw a row of swatches with the names of the roles; nothing for a single role."""
    shapes: list[Path | Text] = []
    x = 0.0
    for role, (fill, edge) in ROLES.items():
        if role in roles and len(roles) > 1:
            swatch = rounded_box(x, top, _SWATCH, _SWATCH, 2.0)
            x += _SWATCH + INDENT
            shapes.append(Path(swatch, stroke=edge, fill=fill, width=0.8))
            shapes.append(Text(role, x, top + 8.0, LABEL, color=PALE))
            x += text_width(role, LABEL) + 2 * INDENT
    return shapes


def _right_end(shapes: Sequence[Path | Text]) -> float:
    """Return where the texts of a row end."""
    texts = [shape for shape in shapes if isinstance(shape, Text)]
    return max((text.x + text_width(text.text, text.size) for text in texts), default=0.0)
