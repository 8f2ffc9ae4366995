"""Drawings in Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexure.diagrams.drawing.arrangement.content import content_of
from flexure.diagrams.drawing.formats.new_figures import new_figure
from flexure.diagrams.drawing.formats.palette import PAPER
from flexure.diagrams.drawing.formats.sheet import Path, Text, sheet_of
from flexure.diagrams.systems.diagram import Diagram, ShownPorts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS_PER_INCH = 72.0
#: Beyond this size a figure is scaled down, because images of it would not fit into memory.
_LARGEST = 150.0


def plot(
    diagram: Diagram, depth: int = 1, ax: Axes | None = None, ports: ShownPorts = "used"
) -> Axes:
    """Draw a diagram with Matplotlib; see `Diagram.plot`."""
    sheet = sheet_of(content_of(diagram, depth, ports))
    if ax is None:
        size = sheet.width / _POINTS_PER_INCH, sheet.height / _POINTS_PER_INCH
        scale = min(1.0, _LARGEST / max(size))
        figure = new_figure(figsize=(scale * size[0], scale * size[1]), facecolor=PAPER)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(sheet.left, sheet.left + sheet.width)
    ax.set_ylim(sheet.top + sheet.height, sheet.top)
    ax.set_aspect("equal")
    ax.set_axis_off()
    for order, shape in enumerate(sheet.shapes):
        patch = _path(shape) if isinstance(shape, Path) else _text(shape)
        patch.set_zorder(1.0 + 1e-6 * order)
        ax.add_artist(patch)  # add_patch would compute the extent of every letter
    return ax


def _path(path: Path) -> Any:
    """Make the patch of a line or an area."""
    from matplotlib import patches, path as paths

    codes = {
        "M": [paths.Path.MOVETO],
        "L": [paths.Path.LINETO],
        "Q": [paths.Path.CURVE3, paths.Path.CURVE3],
        "Z": [paths.Path.CLOSEPOLY],
    }
    points = [point for _, step in path.steps for point in step or ((0.0, 0.0),)]
    outline = paths.Path(points, [code for letter, _ in path.steps for code in codes[letter]])
    return patches.PathPatch(
        outline,
        facecolor=path.fill or "none",
        edgecolor=path.stroke or "none",
        linewidth=path.width,
    )


def _text(text: Text) -> Any:
    """Make the patch of a text: outlines instead of a text, which keep their size in the box."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    font = FontProperties(weight="bold" if text.bold else "normal")
    outline = TextPath((0.0, 0.0), text.text.replace("$", r"\$"), size=text.size, prop=font)
    width = outline.vertices[:, 0].max(initial=0.0)
    shift = {"start": 0.0, "middle": width / 2.0, "end": width}[text.anchor]
    to_place = Affine2D().scale(1.0, -1.0).translate(text.x - shift, text.y)
    return PathPatch(to_place.transform_path(outline), facecolor=text.color, linewidth=0.0)
