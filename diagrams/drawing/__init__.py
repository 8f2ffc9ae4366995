"""Drawings of diagrams: as a Matplotlib figure, as SVG, and for Graphviz and Mermaid.

`content` says what is shown at a depth; `dot` and `mermaid` need no more than that. The figure and
the SVG text share one geometry, found step by step: the columns in which the blocks stand along
the flow of signals, the nodes of each column, with the wires that pass it (`node_columns`), their
order (`crossings`), their heights (`heights`), the vertical pieces of the
wires between columns (`wire_channels`), and all of it together, nested diagrams included
(`picture`). Then `sheet` chooses marks (`shapes`) and colors (`palette`), which `svg` and `figure`
write and draw.
"""
