"""Blocks, tags and wires at their places in a drawing, and the width of their texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from flexure.diagrams.drawing.arrangement.content import Row
from flexure.diagrams.drawing.arrangement.wire_channels import Point
from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.ports import Port
from flexure.diagrams.systems.system import System

# Widths in units of the font size. They bound DejaVu Sans Bold, the widest of the usual fonts, so
# that a box of this width holds its text in any of them.
_WIDTHS = {
    character: width
    for width, characters in {
        0.42: " '`,.:;/\\|-ijlIJ",
        0.52: '"()[]!*_frt',
        0.72: "$0123456789{}?EFLTabcdeghknopqsuvxyz",
        0.85: "#+<=>^~ABCDGHKNOPQRSUVXYZ",
        1.10: "%&@MWmw",
    }.items()
    for character in characters
}
_REGULAR = 0.93  # regular letters against bold ones


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return an upper estimate of the width of one line of text, in the unit of ``size``.

    >>> text_width("plant", 10.0, bold=True) > text_width("plant", 10.0) > text_width("pl", 10.0)
    True
    """
    return sum(_character_width(c) for c in text) * size * (1.0 if bold else _REGULAR)


def _character_width(character: str) -> float:
    width = _WIDTHS.get(character)
    if width is not None:
        return width
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.9


@dataclass(frozen=True, eq=False)
class Block:
    """A block, or the frame of an opened diagram."""

    system: System  # the block
    # x, y, width, height: upper left corner and size.
    x: float
    y: int
    width: float
    height: int
    # Position of each shown port or line of others, on the left or the right edge.
    ports: Mapping[Row, Point]
    inside: Picture | None = None  # what is in the frame, relative to its upper left corner

    def moved(self, dx: float, dy: int) -> Block:
        """Return it at another place, with its ports."""
        ports = {port: (x + dx, y + dy) for port, (x, y) in self.ports.items()}
        return replace(self, x=self.x + dx, y=self.y + dy, ports=ports)


@dataclass(frozen=True, eq=False)
class Tag:
    """The marker of an exported port, or of others, at the edge of the diagram that exports it."""

    port: Row
    x: float
    y: int
    width: float
    height: int

    def moved(self, dx: float, dy: int) -> Tag:
        """Return it at another place."""
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True, eq=False)
class Wire:
    """A wire from a port to a port."""

    # source, target: the ports.
    source: Port
    target: Port
    # The corners, ends included; pieces are alternately horizontal and vertical.
    points: tuple[Point, ...]
    goes_back: bool  # whether the wire leads back, against the flow of the drawing


@dataclass(eq=False)
class Picture:
    """The drawing of one opened diagram."""

    system: Diagram  # the diagram
    # width, height: size.
    width: float = 0.0
    height: int = 0
    # blocks, tags, wires: blocks and frames, markers of exported ports, and wires.
    blocks: list[Block] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    # For each port where wires start, the points where they branch.
    dots: dict[Port, list[Point]] = field(default_factory=dict)


def without_straights(points: Sequence[Point]) -> tuple[Point, ...]:
    """Leave out repeated points and those in the middle of a straight piece."""
    kept = [*points[:1]]
    for point in points[1:]:
        while len(kept) > 1 and (
            kept[-2][0] == kept[-1][0] == point[0] or kept[-2][1] == kept[-1][1] == point[1]
        ):
            kept.pop()
        if point != kept[-1]:
            kept.append(point)
    return tuple(kept)
