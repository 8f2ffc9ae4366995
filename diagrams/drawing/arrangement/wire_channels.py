"""The vertical pieces of wires: which track they take in the channels between columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from flexure.diagrams.drawing.arrangement.node_columns import GRID, Net, NodeColumns
from flexure.diagrams.systems.ports import Port

_SWAPS = 20

#: A point on the page, x to the right and y downwards.
Point = tuple[float, float]


class Hop(NamedTuple):
    """The way of a wire through a channel: where it comes in and goes out, and at which sides."""

    channel: int
    start: float
    from_left: bool
    end: float
    to_right: bool


@dataclass(eq=False)
class Trunk:
    """The vertical piece of a net in a channel, with the heights of what joins it."""

    # lefts, rights: heights at which horizontal pieces come from the left and from the right.
    lefts: set[float] = field(default_factory=set)
    rights: set[float] = field(default_factory=set)
    track: int = 0  # place in the channel, counted from the left
    x: float = 0.0  # horizontal position
    # A second trunk for what is at the right, where one trunk alone would run along a foreign wire;
    # ``middle`` is the height of the piece between both.
    tail: Trunk | None = None
    middle: float = 0.0

    @property
    def top(self) -> float:
        """Height of the upper end."""
        return min(self.lefts | self.rights)

    @property
    def bottom(self) -> float:
        """Height of the lower end."""
        return max(self.lefts | self.rights)

    @property
    def is_straight(self) -> bool:
        """Whether the wire just goes through, without any vertical piece."""
        return self.top == self.bottom

    def points(self, hop: Hop) -> list[Point]:
        """Return the corners of a wire that takes this trunk."""
        if self.tail is None or (hop.from_left and not hop.to_right):
            return [(self.x, hop.start), (self.x, hop.end)]
        if not hop.from_left and hop.to_right:
            return [(self.tail.x, hop.start), (self.tail.x, hop.end)]
        first = [(self.x, hop.start if hop.from_left else hop.end), (self.x, self.middle)]
        second = [
            (self.tail.x, self.middle),
            (self.tail.x, hop.end if hop.from_left else hop.start),
        ]
        return first + second if hop.from_left else (first + second)[::-1]

    def dots(self) -> Iterator[Point]:
        """Yield the points where three or four pieces of the net meet."""
        for y in sorted(self.lefts | self.rights):
            inside = self.top < y < self.bottom
            if not self.is_straight and (inside or (y in self.lefts and y in self.rights)):
                yield self.x, y


class Channels:
    """The trunks of all nets; channel k is at the left of column k."""

    def __init__(self, columns: NodeColumns) -> None:
        # For each pair (source, target) of ports the way of the wire through the channels.
        self.hops: dict[tuple[Port, Port], list[Hop]] = {}
        self._trunks: dict[tuple[Port, int], Trunk] = {}
        for net in columns.nets:
            for target in net.targets:
                hops = list(_way(columns, net, target))
                self.hops[net.source, target] = hops
                for hop in hops:
                    trunk = self._trunks.setdefault((net.source, hop.channel), Trunk())
                    (trunk.lefts if hop.from_left else trunk.rights).add(hop.start)
                    (trunk.rights if hop.to_right else trunk.lefts).add(hop.end)
        self._continue_lanes(columns)
        self._by_channel: list[list[Trunk]] = [[] for _ in range(len(columns.columns) + 1)]
        for (_, channel), trunk in self._trunks.items():
            if not trunk.is_straight:
                self._by_channel[channel].append(trunk)
        self._by_channel = [_in_order(trunks) for trunks in self._by_channel]
        # Number of tracks of each channel.
        self.tracks = [_assign_tracks(trunks) for trunks in self._by_channel]

    def _continue_lanes(self, columns: NodeColumns) -> None:
        """Join a lane to the trunks that it passes on its way to further targets."""
        for first, last, net in columns.far_nets():
            start = columns.node_at[net.source].layer
            for target in net.targets:
                channel = columns.node_at[target].layer
                if columns.goes_far(net.source, target):
                    trunk = self._trunks[net.source, channel]
                    if start < channel < last:
                        trunk.rights.add(net.lane)
                    elif first < channel < start:
                        trunk.lefts.add(net.lane)

    def place(self, starts: Iterable[float], pitch: float) -> None:
        """Set ``x`` of all trunks, given the position of the first track of each channel."""
        for start, trunks in zip(starts, self._by_channel, strict=True):
            for trunk in trunks:
                trunk.x = start + pitch * trunk.track

    def corners(self, source: Port, target: Port) -> list[Point]:
        """Return the corners of a wire between its two ends."""
        corners: list[Point] = []
        for hop in self.hops[source, target]:
            trunk = self._trunks[source, hop.channel]
            if hop.start != hop.end:
                corners += trunk.points(hop)
        return corners

    def dots(self) -> dict[Port, list[Point]]:
        """Return the points where wires branch, by the port where they start."""
        dots: dict[Port, list[Point]] = {}
        for (source, _), trunk in self._trunks.items():
            mine = dots.setdefault(source, [])
            mine.extend(trunk.dots())
            if trunk.tail is not None:
                mine.extend(trunk.tail.dots())
        return dots


def _way(columns: NodeColumns, net: Net, target: Port) -> Iterator[Hop]:
    """Yield the hops of a wire from the source of a net to a target."""
    start, end = columns.node_at[net.source], columns.node_at[target]
    y = start.height_of(net.source)
    back = columns.goes_back(net.source, target)
    if columns.goes_far(net.source, target):
        yield Hop(start.layer + 1, y, True, net.lane, not back)
        yield Hop(end.layer, net.lane, not back, end.height_of(target), True)
        return
    if not back:
        for layer in range(start.layer + 1, end.layer):
            onward = net.ahead[layer].y
            yield Hop(layer, y, True, onward, True)
            y = onward
        yield Hop(end.layer, y, True, end.height_of(target), True)
        return
    yield Hop(start.layer + 1, y, True, net.back[start.layer].y, False)
    for layer in range(start.layer, end.layer, -1):
        yield Hop(layer, net.back[layer].y, False, net.back[layer - 1].y, False)
    yield Hop(end.layer, net.back[end.layer].y, False, end.height_of(target), True)


def _in_order(trunks: list[Trunk]) -> list[Trunk]:
    """Sort the trunks of a channel from left to right: few crossings, no wire upon another."""
    # Two wires would run along the same line when one leaves its trunk to the right at the height
    # where the other comes to its own, further right, from the left. The first then has to be
    # further right. When such demands form a ring, one trunk is split in two.
    trunks = _with_few_crossings(trunks)
    arriving: dict[float, Trunk] = {y: trunk for trunk in trunks for y in trunk.lefts}
    later: dict[Trunk, list[Trunk]] = {trunk: [] for trunk in trunks}
    missing = dict.fromkeys(trunks, 0)
    for trunk in trunks:
        for y in sorted(trunk.rights):
            other = arriving.get(y, trunk)
            if other is not trunk:
                later[other].append(trunk)
                missing[trunk] += 1
    rank = {trunk: k for k, trunk in enumerate(trunks)}
    ready = [(k, trunk) for trunk, k in rank.items() if missing[trunk] == 0]
    waiting = dict.fromkeys(trunk for trunk in trunks if missing[trunk] > 0)
    taken = {y for trunk in trunks for y in trunk.lefts | trunk.rights}
    heapify(ready)
    order: list[Trunk] = []
    while ready or waiting:
        if ready:
            trunk = heappop(ready)[1]
        else:
            trunk = next(iter(waiting))
            tail = _split(trunk, taken)
            rank[tail], missing[tail], later[tail] = rank[trunk], missing[trunk], []
            waiting[tail] = None
            for followers in later.values():
                followers[:] = [tail if t is trunk else t for t in followers]
        waiting.pop(trunk, None)
        order.append(trunk)
        for follower in later[trunk]:
            missing[follower] -= 1
            if missing[follower] == 0:
                waiting.pop(follower)
                heappush(ready, (rank[follower], follower))
    return order


def _split(trunk: Trunk, taken: set[float]) -> Trunk:
    """Give the right side of a trunk to a second one, and return that."""
    middle = (trunk.top + trunk.bottom) // (2 * GRID) * GRID + GRID / 2
    while middle in taken:
        middle += GRID
    taken.add(middle)
    trunk.tail = Trunk({middle}, trunk.rights)
    trunk.middle, trunk.rights = middle, {middle}
    return trunk.tail


def _with_few_crossings(trunks: list[Trunk]) -> list[Trunk]:
    """Sort trunks such that those that fall nest into each other, and those that rise do too."""

    def key(trunk: Trunk) -> tuple[float, ...]:
        arrival = min(trunk.lefts, default=trunk.top)
        falls = trunk.top == arrival
        return (-arrival if falls else arrival), trunk.top, trunk.bottom

    trunks = sorted(trunks, key=key)
    for _ in range(_SWAPS):
        changed = False
        for k in range(len(trunks) - 1):
            one, two = trunks[k], trunks[k + 1]
            if _crossings(one, two) > _crossings(two, one):
                trunks[k : k + 2] = two, one
                changed = True
        if not changed:
            break
    return trunks


def _crossings(left: Trunk, right: Trunk) -> int:
    """Count the crossings of two trunks when one is at the left of the other."""
    return sum(right.top < y < right.bottom for y in left.rights) + sum(
        left.top < y < left.bottom for y in right.lefts
    )


def _assign_tracks(trunks: list[Trunk]) -> int:
    """Set the track of sorted trunks, sharing tracks where they do not meet; return the number."""
    tops, bottoms = np.empty(len(trunks)), np.empty(len(trunks))
    tracks = np.zeros(len(trunks), dtype=int)
    for k, trunk in enumerate(trunks):
        tops[k], bottoms[k] = trunk.top, trunk.bottom
        meets = (tops[:k] <= bottoms[k]) & (bottoms[:k] >= tops[k])
        trunk.track = 1 + int(tracks[:k][meets].max(initial=-1))
        tracks[k] = trunk.track
    return int(tracks.max(initial=-1)) + 1
