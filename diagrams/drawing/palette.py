"""The colors of drawings; what differs in color differs in lightness too, for prints in gray."""

from __future__ import annotations

from typing import NamedTuple

from flexure.diagrams.drawing.content import Role


class Look(NamedTuple):
    """The colors of an area and of its edge."""

    fill: str
    edge: str


#: Lines and text, small text, and the background.
INK, PALE, PAPER = "#2b2f33", "#666c72", "#ffffff"
#: Blocks by their role, in the order of the legend.
ROLES: dict[Role, Look] = {
    "source": Look("#e3f1dc", "#6d9a5b"),
    "dynamic": Look("#cfe0f3", "#4f7cac"),
    "sampled": Look("#fdebc8", "#b98a2f"),
    "static": Look("#ffffff", "#7b8188"),
    "sink": Look("#e4e4e6", "#7b8188"),
}
#: Opened diagrams, and exported ports.
FRAME, TAG = Look("#f8f9fa", "#aab0b6"), Look("#f1f2f3", "#8b9198")
