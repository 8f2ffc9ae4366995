"""Texts in pictures that cover no curve: each is put where there is room, near what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.drawing.formats.style import readable
from flexure.diagrams.values.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 2.0  # of the map of what is taken, in points
_STEP = 1.0  # between places on a curve, in points
_PADDING = 2.5  # around a text, in points
_DOT = 4.5  # radius around the point of a text, in points
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind a text on a line
_LINE_FROM = 15.0  # farther away, a thin line leads to the text
_FARTHEST = 130.0  # from its point, in points, where a text can also be outside
_SECOND = 6.0  # costs, in points, of another place than the first one
_TRIES = 200  # places that are looked at, the cheapest first
_SIZE = 9


@dataclass(frozen=True)
class Label:
    """A text about a point, or about one of several."""

    text: str  # what it says
    at: tuple[float, float]  # the point, in the numbers of the axes
    color: str  # of the text
    on_line: bool = False  # whether the text interrupts a line of a grid, on which its point is
    # Other points that it can be at: those of the line that it is about.
    along: Sequence[tuple[float, float]] = ()


def place_labels(
    ax: Axes, labels: Sequence[Label], curves: Sequence[Any], *, outside: bool = False
) -> list[Any]:
    """Write labels where they cover neither curves nor each other, as near as that is possible.

    Labels of points outside of the axes are left out. The limits of the axes, and what is beside
    them, should not change afterwards.

    Only ``curves`` are left visible: other lines are covered where that brings a text nearer. With
    ``outside``, texts without a free place near their points go to a legend beside the axes;
    otherwise they are where they cover the least.
    """
    (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    labels = [la for la in labels if left <= la.at[0] <= right and low <= la.at[1] <= high]
    written: list[Any] = []
    while labels:
        crowd = _Crowd(ax, curves, labels)
        homeless = []
        for label in labels:
            artists = crowd.write(label, any_place=not outside)
            written += artists
            if not artists:
                homeless.append(label)
        if not homeless:
            break
        for artist in written:
            artist.remove()
        written = []
        labels = [label for label in labels if label not in homeless]
        _write_beside(ax, homeless)  # which makes the axes smaller: try again
    return [artist for artist in written if artist.get_text()]


class _Crowd:
    """What is taken in a picture, as a map of small cells."""

    def __init__(self, ax: Axes, curves: Sequence[Any], labels: Sequence[Label]) -> None:
        self.ax = ax
        figure: Any = ax.figure.figure
        figure.draw_without_rendering()  # so that everything is where it will be
        has_one = hasattr(figure.canvas, "get_renderer")
        self.renderer = figure.canvas.get_renderer() if has_one else None
        self.scale = figure.dpi / 72.0
        frame = ax.get_window_extent(self.renderer)
        self.cell = _CELL * self.scale
        self.corner = np.array([frame.x0, frame.y0])
        size = np.array([frame.width, frame.height])
        self.shape = np.maximum(1, (size / self.cell).astype(int))
        self.taken, self.lines = (np.zeros(self.shape, dtype=bool) for _ in range(2))
        shown = set(curves)
        for line in ax.lines:
            self._mark(self.taken if line in shown else self.lines, self._pixels(line))
        for label in labels:
            if not (label.on_line or label.along):
                self._mark_disc(ax.transData.transform(label.at))
        boxes = [each for each in (*ax.texts, ax.get_legend()) if each is not None]
        for box in boxes:
            if getattr(box, "get_text", lambda: "legend")():
                extent = box.get_window_extent(self.renderer)
                self._mark_rectangle(extent.p0, extent.p1)
        self.texts: list[FloatArray] = []

    def write(self, label: Label, any_place: bool) -> list[Any]:
        """Write a label in the cheapest place, if there is one; return what was made."""
        ax = self.ax
        text = ax.annotate(
            readable(label.text),
            label.at,
            xytext=(0.0, 0.0),
            textcoords="offset points",
            ha="center",
            va="center",
            color=label.color,
            fontsize=_SIZE,
            zorder=6,
            bbox=_PAPER if label.on_line else None,
        )
        text.set_in_layout(False)
        extent = text.get_window_extent(self.renderer)
        half = 0.5 * np.array([extent.width, extent.height]) + _PADDING * self.scale
        place = self._find(label, half, any_place)
        if place is None:
            text.remove()
            return []
        number, center = place
        anchor = (label.at, *label.along)[number]
        point = ax.transData.transform(anchor)
        text.xy = anchor
        text.xyann = tuple((center - point) / self.scale)
        box = np.array([center - half, center + half])
        self._mark_rectangle(*box)
        self.texts.append(box)
        made = [text]
        nearest = np.clip(point, *box)
        if np.hypot(*(nearest - point)) > _LINE_FROM * self.scale:
            leader = ax.annotate(
                "",
                tuple(ax.transData.inverted().transform(nearest)),
                xytext=anchor,
                arrowprops={"arrowstyle": "-", "color": label.color, "linewidth": 0.7},
                zorder=5,
            )
            leader.set_in_layout(False)
            self._mark(
                self.taken, point + np.linspace(0, 1, 200)[:, np.newaxis] * (nearest - point)
            )
            made.append(leader)
        return made

    def _find(
        self, label: Label, half: FloatArray, any_place: bool
    ) -> tuple[int, FloatArray] | None:
        """Return which point a text is at, and where its middle goes."""
        wide = np.ceil(2.0 * half / self.cell).astype(int) + 1  # cells that it can touch
        room = self.shape - wide + 1
        if np.any(room < 1):
            if not any_place:
                return None
            wide = np.minimum(wide, self.shape)
            room = self.shape - wide + 1
        covered, crossed = (_sums(each, wide) for each in (self.taken, self.lines))
        x, y = (self.corner[k] + (np.arange(room[k]) + 0.5 * wide[k]) * self.cell for k in range(2))
        points = self.ax.transData.transform([label.at, *label.along])
        cost, number = np.full(tuple(room), np.inf), np.zeros(tuple(room), dtype=int)
        for k, point in enumerate(points):
            ways = np.abs(x - point[0])[:, np.newaxis], np.abs(y - point[1])[np.newaxis]
            if label.on_line:
                far = np.hypot(*ways)
            else:
                gaps = [np.maximum(way - h, 0.0) for way, h in zip(ways, half, strict=True)]
                far = np.hypot(*gaps) + (0.1 * ways[0] + 0.1 * ways[1])
            far = far / self.scale + (_SECOND if k else 0.0)
            nearer = far < cost
            cost[nearer], number[nearer] = far[nearer], k
        far = cost
        cost = cost + (0.0 if label.on_line else 3.0) * crossed + 20.0 * covered
        for place in self._cheapest(cost):
            center = np.array([x[place[0]], y[place[1]]])
            k = int(number[place])
            fits = not covered[place] and far[place] < _FARTHEST
            if (fits and not self._leads_over_text(points[k], center, half)) or any_place:
                return k, center
            if not fits:
                break
        return None

    def _cheapest(self, cost: FloatArray) -> Sequence[tuple[int, int]]:
        """Return the cheapest places, the first one first."""
        flat = cost.ravel()
        few = min(_TRIES, flat.size)
        chosen = np.argpartition(flat, few - 1)[:few]
        chosen = chosen[np.argsort(flat[chosen], kind="stable")]
        return [tuple(place) for place in np.transpose(np.unravel_index(chosen, cost.shape))]

    def _leads_over_text(self, point: FloatArray, center: FloatArray, half: FloatArray) -> bool:
        """Return whether a line from a point to a text would cross another one."""
        nearest = np.clip(point, center - half, center + half)
        if np.hypot(*(nearest - point)) <= _LINE_FROM * self.scale or not self.texts:
            return False
        way = point + np.linspace(0.0, 1.0, 50)[:, np.newaxis] * (nearest - point)
        inside = [np.all((way > low) & (way < high), axis=1).any() for low, high in self.texts]
        return any(inside)

    def _mark(self, cells: Any, pixels: FloatArray) -> None:
        """Mark places."""
        where = np.floor((pixels - self.corner) / self.cell)
        inside = np.all((where >= 0) & (where < self.shape), axis=1)
        cells[tuple(where[inside].astype(int).T)] = True

    def _mark_disc(self, point: FloatArray) -> None:
        around = np.linspace(-1.0, 1.0, 9) * _DOT * self.scale
        x, y = np.meshgrid(around, around)
        disc = np.column_stack([x.ravel(), y.ravel()])
        self._mark(self.taken, point + disc[np.hypot(*disc.T) <= _DOT * self.scale])

    def _mark_rectangle(self, first: FloatArray, last: FloatArray) -> None:
        start = np.clip(np.floor((first - self.corner) / self.cell), 0, self.shape).astype(int)
        stop = np.clip(np.ceil((last - self.corner) / self.cell), 0, self.shape).astype(int)
        self.taken[start[0] : stop[0], start[1] : stop[1]] = True

    def _pixels(self, line: Any) -> FloatArray:
        """Return places along a line, close together, as far as they are in the picture."""
        path, to_pixels = line.get_path(), line.get_transform()
        if line.get_linestyle() == "None":
            pixels: FloatArray = to_pixels.transform(path.vertices)
            return pixels[np.isfinite(pixels).all(axis=1)]
        clip = (*self.corner, *(self.corner + self.shape * self.cell))
        path = to_pixels.transform_path(path).cleaned(remove_nans=True, clip=clip)
        drawn = path.codes[1:] == path.LINETO
        starts, ways = path.vertices[:-1][drawn], np.diff(path.vertices, axis=0)[drawn]
        counts = 1 + np.ceil(np.hypot(*ways.T) / (_STEP * self.scale)).astype(int)
        which = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        shares = number / np.maximum(counts - 1, 1)[which]
        return np.asarray(starts[which] + shares[:, np.newaxis] * ways[which])


def _sums(cells: Any, wide: Any) -> Any:
    """Return the number of marked cells in each rectangle of a size."""
    total = np.zeros(np.array(cells.shape) + 1, dtype=int)
    total[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    a, b = wide
    return total[a:, b:] - total[:-a, b:] - total[a:, :-b] + total[:-a, :-b]


def _write_beside(ax: Axes, labels: Sequence[Label]) -> None:
    """Add labels to the legend: at the right where the axes make room for it, else above."""
    from matplotlib.lines import Line2D

    old = ax.get_legend()
    handles: list[Any] = [] if old is None else [*old.legend_handles]
    texts = [] if old is None else [text.get_text() for text in old.get_texts()]
    for label in labels:
        style: dict[str, Any] = {"linestyle": "--"} if label.along else _MARK
        handles.append(Line2D([], [], color=label.color, **style))
    fluid = ax.figure.figure.get_layout_engine() is not None
    spot: dict[str, Any] = (
        {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        if fluid
        else {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 2}
    )
    texts += [readable(label.text) for label in labels]
    ax.legend(handles, texts, frameon=False, fontsize=_SIZE, **spot)


_MARK: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5}
