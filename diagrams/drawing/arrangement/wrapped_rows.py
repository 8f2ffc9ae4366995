"""Long drawings in rows, as a text wraps, with wires from the end of a row to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt

from flexure.diagrams.drawing.arrangement.geometry import (
    Block,
    Picture,
    Tag,
    Wire,
    without_straights,
)
from flexure.diagrams.drawing.arrangement.node_columns import GRID
from flexure.diagrams.drawing.arrangement.wire_channels import Point
from flexure.diagrams.systems.ports import Port

#: Drawings that are wider than this, and than this many times their height, wrap.
_WIDEST, _LONGEST = 1800.0, 5.0
#: Width of the rows together, in parts of their height.
_ASPECT = 1.7
#: From a block to the cut behind it, and the distance of parallel wires between rows.
_BEHIND, _PITCH = 6.0, 8


def in_rows(picture: Picture) -> Picture:
    """Return a picture in rows if it is very wide, else the picture itself.

    Cuts are in the middle between columns. A wire that meets a cut leads down at the right of its
    row, back above the next one, and down at its left. Wires of one cut spiral into each other, so
    that none of them crosses another.
    """
    height = picture.height + 4 * GRID
    if picture.width < max(_WIDEST, _LONGEST * picture.height):
        return picture
    count = round(sqrt(picture.width / (_ASPECT * height)))
    if not (places := _free_places(picture)):
        return picture
    wanted = [picture.width * k / count for k in range(1, count)]
    cuts = sorted({min(places, key=lambda x: abs(x - w)) for w in wanted})
    return _Rows(picture, cuts).wrapped()


def _free_places(picture: Picture) -> list[float]:
    """Return where a cut meets neither a block nor a tag: behind each column but the last."""
    spans = sorted((shape.x, shape.x + shape.width) for shape in _shapes(picture))
    places, end = [], spans[0][1]
    for left, right in spans[1:]:
        if left > end + 2 * _BEHIND:
            places.append(end + _BEHIND)
        end = max(end, right)
    return places


def _shapes(picture: Picture) -> list[Block | Tag]:
    """Return the blocks and tags of a picture."""
    return [*picture.blocks, *picture.tags]


class _Rows:
    """The rows of a picture that is cut at some places."""

    def __init__(self, picture: Picture, cuts: Sequence[float]) -> None:
        self._picture = picture
        self._cuts = cuts
        met: list[dict[tuple[Port, float], None]] = [{} for _ in cuts]
        for wire in picture.wires:
            for k, y in self._meetings(wire):
                met[k][wire.source, y] = None
        #: For each cut, the numbers of the wires that meet it, from the lowest up.
        self._tracks = [
            {key: n for n, key in enumerate(sorted(keys, key=lambda key: -key[1]))} for keys in met
        ]
        tops, bottoms = self._extents()
        self._shifts = [(0.0, 0)]
        self._levels: list[int] = []
        for k, cut in enumerate(cuts):
            room = _PITCH * len(self._tracks[k])
            self._levels.append(bottoms[k] + self._shifts[k][1] + 2 * GRID)
            top = self._levels[k] + room + GRID
            self._shifts.append((room + GRID - cut, top - tops[k + 1]))
        self._height = bottoms[-1] + self._shifts[-1][1]

    def wrapped(self) -> Picture:
        """Return the picture in rows."""
        picture = self._picture
        ends = [*self._cuts, picture.width]
        rooms = [_PITCH * (len(tracks) + 1) for tracks in self._tracks] + [0]
        blocks = [
            replace(
                block,
                x=self._moved((block.x, 0.0))[0],
                y=block.y + self._shifts[self._row(block.x)][1],
                ports={port: self._moved(at, block.x) for port, at in block.ports.items()},
            )
            for block in picture.blocks
        ]
        tags = [
            replace(
                tag, x=self._moved((tag.x, 0.0))[0], y=tag.y + self._shifts[self._row(tag.x)][1]
            )
            for tag in picture.tags
        ]
        return Picture(
            picture.system,
            max(
                end + self._shifts[k][0] + room
                for k, (end, room) in enumerate(zip(ends, rooms, strict=True))
            ),
            self._height,
            blocks,
            tags,
            [replace(wire, points=without_straights(self._points(wire))) for wire in picture.wires],
            {port: [self._moved(dot) for dot in dots] for port, dots in picture.dots.items()},
        )

    def _row(self, x: float) -> int:
        """Return in which row a place is."""
        return sum(x > cut for cut in self._cuts)

    def _moved(self, point: Point, x: float | None = None) -> Point:
        """Return where a point is in its row."""
        dx, dy = self._shifts[self._row(point[0] if x is None else x)]
        return point[0] + dx, point[1] + dy

    def _extents(self) -> tuple[list[int], list[int]]:
        """Return the highest and the lowest level of each row."""
        picture = self._picture
        levels: list[list[float]] = [[] for _ in range(len(self._cuts) + 1)]
        for shape in _shapes(picture):
            levels[self._row(shape.x)] += [shape.y - GRID, shape.y + shape.height + GRID]
        for wire in picture.wires:
            for x, y in wire.points:
                levels[self._row(x)].append(y)
            for k, y in self._meetings(wire):
                levels[k].append(y)
                levels[k + 1].append(y)
        return [int(min(row)) for row in levels], [int(max(row)) for row in levels]

    def _meetings(self, wire: Wire) -> Iterator[tuple[int, float]]:
        """Yield the cuts that a wire meets, and where."""
        for start, end in pairwise(wire.points):
            for k, cut in enumerate(self._cuts):
                if min(start[0], end[0]) < cut < max(start[0], end[0]):
                    yield k, start[1]

    def _points(self, wire: Wire) -> list[Point]:
        """Return the corners of a wire in rows."""
        points = [self._moved(wire.points[0])]
        for start, end in pairwise(wire.points):
            between = range(*sorted((self._row(start[0]), self._row(end[0]))))
            forth = start[0] < end[0]
            for k in between if forth else reversed(between):
                passage = self._passage(k, wire.source, start[1])
                points += passage if forth else passage[::-1]
            points.append(self._moved(end))
        return points

    def _passage(self, k: int, source: Port, y: float) -> list[Point]:
        """Return the corners of a wire from the end of a row to the start of the next."""
        n = self._tracks[k][source, y]
        right = self._cuts[k] + self._shifts[k][0] + _PITCH * (n + 1)
        left = self._cuts[k] + self._shifts[k + 1][0] - _PITCH * (len(self._tracks[k]) - n)
        level = self._levels[k] + _PITCH * n
        before, after = y + self._shifts[k][1], y + self._shifts[k + 1][1]
        return [(right, before), (right, level), (left, level), (left, after)]
