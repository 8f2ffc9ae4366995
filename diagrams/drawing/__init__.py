"""Drawings of diagrams: as a Matplotlib figure, as SVG, and for Graphviz and Mermaid.

One geometry serves the figure and the SVG text. It is found in the order of the modules here:
`content` (what is shown), `layers` (columns of blocks along the flow), `columns` (nodes and passing
wires), `crossings` (their order), `heights` (their position), `channels` (vertical pieces of
wires), `picture` (all of it, nested diagrams included), `sheet` (colors, texts and lines).
"""

from flexure.diagrams.drawing.dot import to_dot
from flexure.diagrams.drawing.figure import plot
from flexure.diagrams.drawing.mermaid import to_mermaid
from flexure.diagrams.drawing.svg import to_svg

__all__ = ["plot", "to_dot", "to_mermaid", "to_svg"]
