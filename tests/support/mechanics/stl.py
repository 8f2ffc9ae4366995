"""STL files of a tetrahedron: binary, ASCII, and broken in many ways."""

from __future__ import annotations

import struct
from collections.abc import Callable

VERTICES = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
TRIANGLES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def binary(header: bytes = b"made by hand") -> bytes:
    """Return a binary file."""
    content = header.ljust(80, b" ") + struct.pack("<I", len(TRIANGLES))
    for triangle in TRIANGLES:
        corners = [number for corner in triangle for number in VERTICES[corner]]
        content += struct.pack("<12fH", 0.0, 0.0, 0.0, *corners, 0)
    return content


def ascii_text(name: str = "tetrahedron") -> bytes:
    """Return an ASCII file."""
    lines = [f"solid {name}"]
    for triangle in TRIANGLES:
        lines += ["  facet normal 0 0 0", "    outer loop"]
        lines += [f"      vertex {' '.join(map(repr, VERTICES[k]))}" for k in triangle]
        lines += ["    endloop", "  endfacet"]
    return "\n".join([*lines, f"endsolid {name}", ""]).encode()


#: Contents that are no STL files, by what is wrong with them.
BROKEN: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"this is not a mesh",
    "binary that is cut off": lambda: binary()[:-7],
    "binary with more than it says": lambda: binary() + b"more",
    "binary that promises four billion triangles": lambda: binary()[:80] + b"\xff" * 4,
    "binary without triangles": lambda: b" " * 80 + struct.pack("<I", 0),
    "binary with a corner that is no number": lambda: (
        binary()[:96] + struct.pack("<f", float("nan")) + binary()[100:]
    ),
    "binary with a corner at infinity": lambda: (
        binary()[:96] + struct.pack("<f", float("inf")) + binary()[100:]
    ),
    "ASCII that is cut off": lambda: ascii_text()[:-30],
    "ASCII without triangles": lambda: b"solid nothing\nendsolid nothing\n",
    "ASCII with a word for a number": lambda: ascii_text().replace(b"1.0", b"one", 1),
    "ASCII with two numbers": lambda: ascii_text().replace(b"0.0 0.0 0.0", b"0.0 0.0", 1),
    "ASCII with two corners": lambda: ascii_text().replace(b"vertex 0.0 0.0 0.0", b"", 1),
    "ASCII with a corner that is no number": lambda: ascii_text().replace(b"1.0", b"nan", 1),
}
