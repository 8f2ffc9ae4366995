"""Paths and lines of text with colors: the few marks that every format can draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import Literal, TypeAlias

from flexure.diagrams.drawing.arrangement.wire_channels import Point
from flexure.diagrams.drawing.formats.palette import INK

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
