"""Drawings as SVG text, without any other library."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from flexure.diagrams.drawing.arrangement.content import content_of
from flexure.diagrams.drawing.formats.palette import FRAME, INK, PALE, PAPER, ROLES, TAG
from flexure.diagrams.drawing.formats.sheet import Path, Text, sheet_of
from flexure.diagrams.systems.diagram import Diagram, ShownPorts

_FONTS = "Helvetica, Arial, 'DejaVu Sans', sans-serif"


def to_svg(diagram: Diagram, depth: int = 1, ports: ShownPorts = "used") -> str:
    """Return the drawing of a diagram as SVG text; equal diagrams give equal texts."""
    sheet = sheet_of(content_of(diagram, depth, ports))
    left, top, width, height = map(_number, (sheet.left, sheet.top, sheet.width, sheet.height))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt" '
        f'viewBox="{left} {top} {width} {height}" style="max-width:100%;height:auto" '
        f'font-family="{_FONTS}" role="img">'
    )
    lines = [
        head,
        f"<title>{escape(diagram.name)}</title>",
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{PAPER}"/>',
        *(_path(s) if isinstance(s, Path) else _text(s) for s in sheet.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def without_paper(text: str) -> str:
    """Return a drawing in the colors of its surroundings, such as a dark notebook.

    Text and lines have the color of the text around the drawing, and areas are tinted glass.
    """
    tints = {look.fill: f"{look.edge}40" for look in (*ROLES.values(), FRAME, TAG)}
    colors = {**tints, PAPER: "none", INK: "currentColor", PALE: "currentColor"}
    return re.sub(
        r'(?<=(?:fill|roke)=")#\w+(?=")', lambda found: colors.get(found[0], found[0]), text
    )


def outline_text(path: Path) -> str:
    """Write the steps of a path in the language of SVG."""
    return " ".join(
        letter + " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        for letter, points in path.steps
    )


def _path(path: Path) -> str:
    steps = outline_text(path)
    line = ""
    if path.stroke is not None:
        line = f' stroke="{path.stroke}" stroke-width="{_number(path.width)}"'
    start = f'<path d="{steps}" fill="{path.fill or "none"}"{line}'
    return f"{start}>{_title(path)}</path>" if path.title else f"{start}/>"


def _text(text: Text) -> str:
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    weight = ' font-weight="bold"' if text.bold else ""
    return (
        f'<text x="{_number(text.x)}" y="{_number(text.y)}" font-size="{_number(text.size)}" '
        f"fill={quoteattr(text.color)}{anchor}{weight}>{_title(text)}{escape(text.text)}</text>"
    )


def _title(shape: Path | Text) -> str:
    return f"<title>{escape(shape.title)}</title>" if shape.title else ""


def _number(value: float) -> str:
    """Write a number in hundredths of a point, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
