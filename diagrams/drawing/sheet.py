"""The look of a drawing: which marks show the blocks, tags and wires of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flexure.diagrams.diagram import Diagram
from flexure.diagrams.drawing.content import Role, caption_of, describe_link, label_of, role_of
from flexure.diagrams.drawing.picture import (
    CAPTION,
    INDENT,
    LABEL,
    NAME,
    PADDING,
    Block,
    Picture,
    Tag,
    Wire,
    picture_of,
)
from flexure.diagrams.drawing.shapes import (
    INK,
    Path,
    Sheet,
    Text,
    bent_line,
    disk,
    polygon,
    rounded_box,
)
from flexure.diagrams.drawing.text import text_width
from flexure.diagrams.ports import Port
from flexure.diagrams.system import System

PALE, PAPER = "#666c72", "#ffffff"
#: Fill and edge of blocks by role, in the order of the legend. The fills differ in lightness too,
#: for prints in gray.
COLORS: dict[Role, tuple[str, str]] = {
    "source": ("#e3f1dc", "#6d9a5b"),
    "dynamic": ("#cfe0f3", "#4f7cac"),
    "sampled": ("#fdebc8", "#b98a2f"),
    "static": ("#ffffff", "#7b8188"),
    "sink": ("#e4e4e6", "#7b8188"),
}
_FRAME, _TAG = ("#f8f9fa", "#aab0b6"), ("#f1f2f3", "#8b9198")
_WIRE_WIDTH = 1.1
_ROUND, _BEND, _DOT, _OPEN = 5.0, 4.0, 2.0, 2.2
_ARROW, _ARROW_HALF = 7.0, 2.8
_MARGIN, _SWATCH, _LEGEND_GAP = 8.0, 10.0, 8.0
#: Diagrams of fewer blocks explain themselves.
_LEGEND_FROM = 4


def sheet_of(diagram: Diagram, depth: int) -> Sheet:
    """Draw a diagram with everything that is shown at a depth."""
    picture = picture_of(diagram, depth)
    closed = [block for block in picture.blocks if block.inside is None]
    frames = [block for block in picture.blocks if block.inside is not None]
    wired = {port for wire in picture.wires for port in (wire.source, wire.target)}
    dots = set(picture.dots)
    shapes: list[Path | Text] = [*_head(diagram, 0.0, 0.0)]
    for frame in frames:
        shapes += _frame(frame)
    for wire in picture.wires:
        shapes += _wire(wire, dots)
    shapes += [Path(disk(dot, _DOT), stroke=None, fill=INK) for dot in sorted(dots)]
    for tag in picture.tags:
        shapes += _tag(tag)
    for block in closed:
        shapes += _block(block)
    for block in picture.blocks:
        shapes += [
            Path(disk(point, _OPEN), stroke=INK, fill=PAPER, width=0.8)
            for port, point in block.ports.items()
            if port not in wired
        ]
    height = picture.height
    legend = _legend({role_of(block.system) for block in closed}, height)
    if len(closed) >= _LEGEND_FROM and _right_end(legend) <= picture.width:
        shapes += legend
        height += _SWATCH + _LEGEND_GAP
    width = picture.width
    return Sheet(-_MARGIN, -_MARGIN, width + 2 * _MARGIN, height + 2 * _MARGIN, tuple(shapes))


def _head(system: System, x: float, y: float) -> Iterator[Text]:
    """Draw the name and the caption of an opened diagram at its upper edge."""
    after = x + PADDING + text_width(system.name, NAME, bold=True) + INDENT
    yield Text(system.name, x + PADDING, y + 18.0, NAME, bold=True)
    yield Text(caption_of(system), after, y + 18.0, CAPTION, color=PALE)


def _frame(block: Block) -> Iterator[Path | Text]:
    """Draw the frame around an opened diagram."""
    fill, edge = _FRAME
    outline = rounded_box(block.x, block.y, block.width, block.height, _ROUND)
    yield Path(outline, stroke=edge, fill=fill)
    yield from _head(block.system, block.x, block.y)


def _block(block: Block) -> Iterator[Path | Text]:
    """Draw a closed block; a second line inside of its edge shows that it can be opened."""
    system = block.system
    fill, edge = COLORS[role_of(system)]
    x, y, width, height = block.x, block.y, block.width, block.height
    title = f"{system.label} ({caption_of(system)})"
    yield Path(rounded_box(x, y, width, height, _ROUND), stroke=edge, fill=fill, title=title)
    if system.children is not None:
        inner = rounded_box(x + 2.5, y + 2.5, width - 5.0, height - 5.0, _ROUND - 2.5)
        yield Path(inner, stroke=edge, width=0.6)
    sides = [
        max((text_width(label_of(port), LABEL) + INDENT for port in ports), default=INDENT)
        for ports in (system.input_ports, system.output_ports)
    ]
    middle = x + (width + sides[0] - sides[1]) / 2.0
    center = y + height / 2.0
    yield Text(system.name, middle, center - 1.0, NAME, "middle", bold=True)
    yield Text(caption_of(system), middle, center + 11.0, CAPTION, "middle", color=PALE)
    for port in (*system.input_ports, *system.output_ports):
        yield from _label(port, block)


def _label(port: Port, block: Block) -> Iterator[Text]:
    """Draw the name of a port beside it, inside of its block."""
    x, y = block.ports[port]
    text = label_of(port)
    if text:
        at_left = x == block.x
        place = (x + INDENT, y + 3.0, LABEL) if at_left else (x - INDENT, y + 3.0, LABEL)
        yield Text(text, *place, "start" if at_left else "end")


def _tag(tag: Tag) -> Iterator[Path | Text]:
    """Draw the marker of an exported port, which points along the flow."""
    fill, edge = _TAG
    left, right, top, bottom = tag.x, tag.x + tag.width, tag.y, tag.y + tag.height
    center = (top + bottom) / 2.0
    outline = polygon(
        (left, top), (right - INDENT, top), (right, center), (right - INDENT, bottom), (left, bottom)
    )
    yield Path(outline, stroke=edge, fill=fill, width=0.8, title=tag.port.full_name)
    yield Text(tag.port.name, left + INDENT, center + 3.0, LABEL)


def _wire(wire: Wire, dots: set[tuple[float, float]]) -> Iterator[Path]:
    """Draw a wire with an arrow head at its end."""
    x, y = wire.points[-1]
    line = bent_line([*wire.points[:-1], (x - _ARROW / 2.0, y)], _BEND, dots)
    yield Path(line, width=_WIRE_WIDTH, title=describe_link(wire.source, wire.target))
    head = polygon((x, y), (x - _ARROW, y - _ARROW_HALF), (x - _ARROW, y + _ARROW_HALF))
    yield Path(head, stroke=None, fill=INK)


def _legend(roles: set[Role], top: float) -> list[Path | Text]:
    """Draw a row of swatches with the names of the roles; nothing for a single role."""
    shapes: list[Path | Text] = []
    x = PADDING
    for role, (fill, edge) in COLORS.items():
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
