"""The colors of drawings; what differs in color differs in lightness too, for prints in gray."""

from __future__ import annotations

from typing import NamedTuple

from flexure.diagrams.drawing.arrangement.content import Role


class Look(NamedTuple):
    """The colors of an area and of its edge."""

    fill: str
    edge: str


#: Lines and text, small text, and the background.
INK, PALE, PAPER = "#2b2f33", "#565c62", "#ffffff"
#: Blocks by their role, in the order of the legend.
ROLES: dict[Role, Look] = {
    "source": Look("#e8f4e3", "#6d9a5b"),
    "dynamic": Look("#c4d9ef", "#4f7cac"),
    "sampled": Look("#fbe2b0", "#b98a2f"),
    "static": Look("#ffffff", "#7b8188"),
    "sink": Look("#dadadd", "#7b8188"),
}
#: Opened diagrams, and exported ports.
FRAME, TAG = Look("#f8f9fa", "#aab0b6"), Look("#f1f2f3", "#8b9198")
