"""Texts in pictures that cover no curve: each is put where there is room, near what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.values import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RINGS = (9.0, 16.0, 28.0, 44.0, 64.0, 90.0, 125.0, 170.0)  # ways from the point, in points
_WAYS = 24  # around each ring
_STEP = 2.0  # between places on a curve, in points
_PADDING = 2.5  # around a text, in points
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind a text on a line
_LINE_FROM = 15.0  # farther away, a thin line leads to the text


@dataclass(frozen=True)
class Label:
    """A text about a point.

    Attributes
    ----------
    text : str
        What it says.
    at : tuple of float
        The point, in the numbers of the axes.
    color : str
        Of the text.
    on_line : bool
        Whether the text interrupts a line of a grid, on which its point is.
    """

    text: str
    at: tuple[float, float]
    color: str
    on_line: bool = False


def place_labels(ax: Axes, labels: Sequence[Label], curves: Sequence[Any]) -> list[Any]:
    """Write labels where they cover neither curves nor each other, as near as that is possible.

    Those of points outside of the axes are left out. The limits of the axes, and what is beside
    them, should not change afterwards.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to write.
    labels : sequence of Label
        What to write.
    curves : sequence of matplotlib.lines.Line2D
        What to leave visible.

    Returns
    -------
    list of matplotlib.text.Annotation
    """
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    labels = [la for la in labels if left <= la.at[0] <= right and low <= la.at[1] <= high]
    if not labels:
        return []
    figure: Any = ax.figure.figure
    figure.draw_without_rendering()  # so that everything is where it will be
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    scale = figure.dpi / 72.0
    frame = ax.get_window_extent(renderer)
    taken = np.vstack([np.empty((0, 2)), *(_pixels(line, frame, scale) for line in curves)])
    points = ax.transData.transform([label.at for label in labels])
    taken = np.vstack([taken, *(p for p, la in zip(points, labels, strict=True) if not la.on_line)])
    boxes = np.array(
        [_box(old, renderer) for old in ax.texts if old.get_text()], dtype=float
    ).reshape(-1, 4)
    written = []
    for label in labels:
        text = ax.annotate(
            label.text,
            label.at,
            xytext=(0.0, 0.0),
            textcoords="offset points",
            ha="center",
            va="center",
            color=label.color,
            fontsize=9,
            zorder=6,
            bbox=_PAPER if label.on_line else None,
        )
        text.set_in_layout(False)
        extent = text.get_window_extent(renderer)
        half = 0.5 * np.array([extent.width, extent.height]) + _PADDING * scale
        point = ax.transData.transform(label.at)
        rings = (0.0, *_RINGS) if label.on_line else _RINGS
        offset = _best_offset(point, half, scale, rings, taken, boxes, frame)
        text.xyann = tuple(offset / scale)
        nearest = np.clip(0.0, offset - half, offset + half)  # of the text, as seen from the point
        if np.hypot(*nearest) > _LINE_FROM * scale:
            start, stop, to_data = point, point + nearest, ax.transData.inverted()
            leader = ax.annotate(
                "",
                tuple(to_data.transform(stop)),
                xytext=label.at,
                arrowprops={"arrowstyle": "-", "color": label.color, "linewidth": 0.7},
                zorder=5,
            )
            leader.set_in_layout(False)
            taken = np.vstack(
                [taken, start + np.linspace(0, 1, 40)[:, np.newaxis] * (stop - start)]
            )
        center = point + offset
        boxes = np.vstack([boxes, [*(center - half), *(center + half)]])
        written.append(text)
    return written


def _pixels(line: Any, frame: Any, scale: float) -> FloatArray:
    """Return places along a line, close together, as far as they are in the picture."""
    points = line.get_transform().transform(np.column_stack(line.get_data(orig=False)))
    size = max(frame.width, frame.height)
    low = np.array([frame.x0, frame.y0]) - 4.0 * size
    points = np.clip(points, low, low + 9.0 * size)  # far away, where fine steps would be many
    found = [points]
    steps = np.hypot(*np.diff(points, axis=0).T)
    for k in np.flatnonzero(steps > _STEP * scale):
        shares = np.linspace(0.0, 1.0, int(steps[k] / (_STEP * scale)) + 2)[:, np.newaxis]
        found.append(points[k] + shares * (points[k + 1] - points[k]))
    pixels = np.vstack(found)
    inside = np.isfinite(pixels).all(axis=1)
    inside &= (pixels[:, 0] >= frame.x0) & (pixels[:, 0] <= frame.x1)
    inside &= (pixels[:, 1] >= frame.y0) & (pixels[:, 1] <= frame.y1)
    return np.asarray(pixels[inside])


def _box(text: Any, renderer: Any) -> tuple[float, float, float, float]:
    extent = text.get_window_extent(renderer)
    return extent.x0, extent.y0, extent.x1, extent.y1


def _best_offset(
    point: FloatArray,
    half: FloatArray,
    scale: float,
    rings: Sequence[float],
    taken: FloatArray,
    boxes: FloatArray,
    frame: Any,
) -> FloatArray:
    """Return where the middle of a text goes, from its point: the nearest place with room."""
    low, high = np.array([frame.x0, frame.y0]), np.array([frame.x1, frame.y1])
    reach = (_RINGS[-1] * scale + 2.0 * half) + 1.0
    taken = taken[np.all(np.abs(taken - point) < reach, axis=1)]
    best, least = np.zeros(2), np.inf
    for ring in rings:
        if least <= ring:
            break  # what is farther away costs more
        for angle in 2.0 * np.pi * (0.5 + np.arange(_WAYS)) / _WAYS:
            way = np.array([np.cos(angle), np.sin(angle)])
            offset = ring * scale * way
            offset = offset + half * np.clip(1.5 * way, -1.0, 1.0) * (ring > 0.0)
            first, last = point + offset - half, point + offset + half
            covered = np.sum(np.all((taken > first) & (taken < last), axis=1))
            crossed = np.sum(np.all((boxes[:, :2] < last) & (boxes[:, 2:] > first), axis=1))
            outside = np.sum(np.maximum(low - first, 0.0) + np.maximum(last - high, 0.0))
            cost = ring + 20.0 * covered + 1000.0 * crossed + 50.0 * outside
            if cost < least:
                best, least = offset, cost
    return best


__all__ = ["Label", "place_labels"]
