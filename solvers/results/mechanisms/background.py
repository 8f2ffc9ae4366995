"""What is around a mechanism: axes with units or a floor with coordinates, scales of forces."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.camera import Camera, Frame
from flexure.solvers.results.mechanisms.drawing import ARROW, FORCE, METAL

_GRID, _TEXT = "#dfe2e5", "#666666"
_CELLS = 5  # of a floor, about
_STEPS = (1.0, 2.0, 5.0, 10.0)
_READABLE = 0.12  # of the size: an edge of the floor that is longer has numbers
_AWAY = 11.0  # of numbers from their edge, in points
_FLAT = 5.0  # degrees of elevation, below which there is no floor


def nice_step(extent: float) -> float:
    """Return 1, 2 or 5 times a power of ten that divides an extent into about five cells."""
    rough = extent / _CELLS
    power = 10.0 ** np.floor(np.log10(rough))
    return float(min(_STEPS, key=lambda step: abs(np.log(step * power / rough))) * power)


class Floor:
    """The ground below a mechanism: a grid, with numbers along the edges near the viewer.

    The points, shape (n, 3), stand on it, in the world; without a height, it is below all of them.
    """

    def __init__(self, points: FloatArray, height: float | None) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        self.step = nice_step(max(float(np.max(high - low)), 1e-9))  # the side of a cell in m
        # low, high: corners of the box above the floor that holds all points; whole numbers of
        # cells, shape (3,).
        self.low = self.step * np.floor(low / self.step + 1e-6)
        self.high = self.step * np.ceil(high / self.step - 1e-6)
        self.high[:2] = np.maximum(self.high, self.low + self.step)[:2]
        self.low[2] = low[2] if height is None else height

    def corners(self) -> FloatArray:
        """Return the corners of the floor."""
        (x, y, z), (far_x, far_y, _) = self.low, self.high
        return np.array([[x, y, z], [far_x, y, z], [far_x, far_y, z], [x, far_y, z]])

    def ticks(self, axis: int) -> FloatArray:
        """Return the coordinates along an axis where lines of the grid are."""
        first = np.ceil(self.low[axis] / self.step - 1e-6)
        last = np.floor(self.high[axis] / self.step + 1e-6)
        return np.asarray(self.step * np.arange(first, last + 1.0))

    def lines(self) -> list[FloatArray]:
        """Return the lines of the grid, in the world."""
        found = []
        for axis, other in ((0, 1), (1, 0)):
            for tick in self.ticks(axis):
                line = np.tile(self.low, (2, 1))
                line[:, axis] = tick
                line[:, other] = self.low[other], self.high[other]
                found.append(line)
        return found

    def edges(self, camera: Camera) -> list[tuple[int, FloatArray]]:
        """Return an axis and an edge of the box along it, for x, y and z, where numbers go."""
        near = np.where(camera.axes[2] > 0.0, self.high, self.low)
        found = []
        for axis, other in ((0, 1), (1, 0)):
            edge = np.tile(self.low, (2, 1))
            edge[:, other] = near[other]
            edge[:, axis] = self.low[axis], self.high[axis]
            found.append((axis, edge))
        leftmost = min(self.corners(), key=lambda corner: float(camera(corner)[0]))
        upright = np.tile(leftmost, (2, 1))
        upright[1, 2] = self.high[2]
        return [*found, (2, upright)]


def draw_floor(ax: Any, floor: Floor, camera: Camera, size: float) -> None:
    """Draw a floor with numbers and units; where it is seen edge-on, only what can be read."""
    grid = floor.lines() if abs(camera.angles[1]) > _FLAT else []
    for line in grid:
        ax.plot(*camera(line)[:, :2].T, color=_GRID, linewidth=0.8, zorder=0.0)
    center = camera(floor.corners().mean(axis=0))[:2]
    for axis, edge in floor.edges(camera):
        seen = camera(edge)[:, :2]
        along = seen[1] - seen[0]
        length = float(np.linalg.norm(along))
        if length < _READABLE * size:
            continue
        ax.plot(*seen.T, color="#aab0b6", linewidth=0.9, zorder=0.1)
        away = np.array([-along[1], along[0]]) / length
        middle = seen.mean(axis=0)
        away *= 1.0 if away @ (middle - center) > 0.0 else -1.0
        ticks = floor.ticks(axis)
        if axis == 1:  # where the two edges meet there is the number of the other one
            ticks = ticks[np.abs(ticks - _nearest(edge, camera)) > 0.5 * floor.step]
        every = max(1, int(np.ceil(len(ticks) * 0.07 * size / length)))
        for tick in ticks[::every]:
            place = edge[0].copy()
            place[axis] = tick
            _text(ax, f"{tick + 0.0:.6g}", camera(place)[:2], _AWAY * away, 8.0)
        label = f"{'xyz'[axis]} in m"
        if axis == 2:
            _text(ax, label, seen[1], np.array([0.0, _AWAY]), 9.0)
        else:
            _text(ax, label, middle, 2.4 * _AWAY * away, 9.0)


def _nearest(edge: FloatArray, camera: Camera) -> float:
    """Return the coordinate y of the end of an edge along y that is nearer to the viewer."""
    return float(edge[np.argmax(camera(edge)[:, 2]), 1])


def _text(ax: Any, text: str, place: FloatArray, offset: FloatArray, fontsize: float) -> None:
    ax.annotate(
        text,
        place,
        offset,
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=fontsize,
        color=_TEXT,
        annotation_clip=False,
    )


def draw_axes(ax: Any, side: str, ground: float | None) -> None:
    """Draw axes with units for a view from a side, and a ground line at a height.

    The limits of the picture are set before.
    """
    from matplotlib.ticker import MultipleLocator

    step = nice_step(float(np.max(np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1))))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MultipleLocator(step))
    ax.set_xlabel(f"{side[0]} in m", color=_TEXT)
    ax.set_ylabel(f"{side[1]} in m", color=_TEXT)
    ax.tick_params(colors=_TEXT, labelsize="small")
    ax.grid(True, color=_GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#aab0b6")
    if ground is not None and side != "xy":
        ax.axhline(ground, color=METAL, linewidth=1.4, zorder=0.5)
        ax.axhspan(ax.get_ylim()[0], ground, color="#eceef0", linewidth=0.0, zorder=0.2)


def draw_force_scale(ax: Any, largest: float, size: float) -> None:
    """Draw an arrow of a round force in the upper right corner."""
    step = nice_step(_CELLS * 0.6 * largest)
    length = ARROW * size * step / largest
    right, top = ax.get_xlim()[1], ax.get_ylim()[1]
    corner = np.array([right, top]) - 0.03 * size
    ends = corner - np.array([[length, 0.0], [0.0, 0.0]])
    style = {"arrowstyle": "-|>,head_length=0.5,head_width=0.25", "color": FORCE, "linewidth": 1.6}
    style |= {"shrinkA": 0, "shrinkB": 0}
    ax.annotate("", ends[1], ends[0], arrowprops=style, zorder=4.0)
    _text(ax, f"{step:.6g} N", ends.mean(axis=0), np.array([0.0, -9.0]), 8.0)


def set_limits(ax: Any, frame: Frame) -> None:
    """Show a part of the plane, with equal scales."""
    (left, bottom), (right, top) = frame.center - frame.half, frame.center + frame.half
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_aspect("equal")
