"""The columns of a drawing: nodes from top to bottom, and the strands between adjacent columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flexure.diagrams.drawing.arrangement.content import Row
from flexure.diagrams.systems.ports import Port

#: Heights and vertical positions of ports are multiples of this, in points. So two horizontal
#: wires are either in line or well apart.
GRID = 8
#: Wires over more columns than this take a lane below everything: nobody could follow them through
#: the columns, and their number of nodes would grow with the square of the size of a diagram.
_FAR = 30


class Strand(NamedTuple):
    """A piece of wire seen from one node: the node at its other end and both heights."""

    other: Node
    offset: int
    other_offset: int


@dataclass(eq=False)
class Node:
    """An element that occupies space in a column: a block, an exported port, or a passing wire."""

    layer: int  # column
    # width, height: size; zero for a wire.
    width: float = 0.0
    height: int = 0
    align: float = 0.5  # horizontal position in the column, from 0 (left) to 1 (right)
    # Free space above and below; the sum of the margins of neighbors keeps to the grid.
    margin: int = GRID // 2
    # Height of each row below the top of the node.
    offsets: dict[Row, int] = field(default_factory=dict)
    # turns_left, turns_right: blocks of the same column to which a wire that leads back turns at
    # its left or right end.
    turns_left: list[Node] = field(default_factory=list)
    turns_right: list[Node] = field(default_factory=list)
    # Blocks of the same column that have to stay above the wire.
    above: list[Node] = field(default_factory=list)
    # lefts, rights: pieces of wire to the columns at the left and at the right.
    lefts: list[Strand] = field(default_factory=list)
    rights: list[Strand] = field(default_factory=list)
    place: int = 0  # position in the column from the top
    # x, y: upper left corner.
    x: float = 0.0
    y: int = 0

    @property
    def is_wire(self) -> bool:
        """Whether this is a wire that passes the column."""
        return not self.offsets

    @property
    def turns(self) -> list[Node]:
        """The blocks at both ends."""
        return self.turns_left + self.turns_right

    @property
    def bottom(self) -> int:
        """Height of the lower edge."""
        return self.y + self.height

    def height_of(self, port: Row) -> int:
        """Return the vertical position of a row."""
        return self.y + self.offsets[port]


@dataclass(eq=False)
class Net:
    """An output and all the inputs it feeds, with the nodes where its wires pass columns."""

    source: Port  # where the wires start
    targets: list[Port] = field(default_factory=list)  # where they end
    # ahead, back: for each passed column its node, on the way to the right and on the way back.
    ahead: dict[int, Node] = field(default_factory=dict)
    back: dict[int, Node] = field(default_factory=dict)
    lane: int = 0  # height of the lane below all columns in which the wires go that lead far


class NodeColumns:
    """All nodes of one opened diagram, in columns, with the nets between them.

    Links are wires, from the port where they start to the port where they end.
    """

    def __init__(self, nodes: Iterable[Node], links: Iterable[tuple[Port, Port]]) -> None:
        nodes = list(nodes)
        # The node of each port.
        self.node_at: Mapping[Row, Node] = {port: node for node in nodes for port in node.offsets}
        # The nodes of each column from top to bottom, passing wires included.
        self.columns: list[list[Node]] = [[] for _ in range(1 + max(n.layer for n in nodes))]
        for node in nodes:
            self._add(node)
        self._before: dict[Node, list[Node]] = {node: [] for node in nodes}
        nets: dict[Port, Net] = {}
        for source, target in links:
            nets.setdefault(source, Net(source)).targets.append(target)
            if not self.goes_back(source, target):
                self._before[self.node_at[target]].append(self.node_at[source])
        self.nets = list(nets.values())  # the nets in the order of ``links``
        for net in self.nets:
            self._lead_ahead(net)
            self._lead_back(net)

    def __iter__(self) -> Iterator[list[Node]]:
        return iter(self.columns)

    def goes_back(self, source: Port, target: Port) -> bool:
        """Return whether a wire leads back, to the same column or to one further left."""
        return self.node_at[target].layer <= self.node_at[source].layer

    def goes_far(self, source: Port, target: Port) -> bool:
        """Return whether a wire is too long to be led through the columns between its ends."""
        return abs(self.node_at[target].layer - self.node_at[source].layer) > _FAR

    def far_nets(self) -> Iterator[tuple[int, int, Net]]:
        """Yield the nets with far wires, and the first and the last column that those reach."""
        for net in self.nets:
            far = [port for port in net.targets if self.goes_far(net.source, port)]
            layers = [self.node_at[port].layer for port in (net.source, *far)]
            if far:
                yield min(layers), max(layers), net

    def _add(self, node: Node) -> Node:
        node.place = len(self.columns[node.layer])
        self.columns[node.layer].append(node)
        return node

    def _lead_ahead(self, net: Net) -> None:
        """Make the nodes of a net on its way to the right, one per column, shared by targets."""
        start = self.node_at[net.source]
        targets = [
            port
            for port in net.targets
            if not (self.goes_back(net.source, port) or self.goes_far(net.source, port))
        ]
        last = max((self.node_at[port].layer for port in targets), default=0)
        before, port = start, net.source
        for layer in range(start.layer + 1, last):
            node = net.ahead[layer] = self._add(Node(layer))
            _tie(before, node, port if before is start else None)
            before = node
        for target in targets:
            node = self.node_at[target]
            before = net.ahead.get(node.layer - 1, start)
            _tie(before, node, port if before is start else None, target)

    def _lead_back(self, net: Net) -> None:
        """Make the nodes of a net on its way back, below the blocks of the loop that it closes."""
        start = self.node_at[net.source]
        targets = dict.fromkeys(
            self.node_at[port]
            for port in net.targets
            if self.goes_back(net.source, port) and not self.goes_far(net.source, port)
        )
        if not targets:
            return
        for layer in range(start.layer, min(node.layer for node in targets) - 1, -1):
            node = net.back[layer] = self._add(Node(layer))
            if layer < start.layer:
                _tie(node, net.back[layer + 1])
        net.back[start.layer].turns_right.append(start)
        for node in targets:
            net.back[node.layer].turns_left.append(node)
        for node in {start: None} | targets | self._between(targets, start):
            net.back[node.layer].above.append(node)

    def _between(self, starts: Mapping[Node, None], end: Node) -> dict[Node, None]:
        """Return the blocks on the ways to the right that lead from ``starts`` to ``end``."""
        first = min(node.layer for node in starts)
        cone = {end: None}
        stack = [end]
        while stack:
            for node in self._before[stack.pop()]:
                if node.layer >= first and node not in cone:
                    cone[node] = None
                    stack.append(node)
        between: dict[Node, None] = {}
        for node in sorted(cone, key=lambda node: node.layer):
            if node in starts or any(before in between for before in self._before[node]):
                between[node] = None
        return between


def gap_between(upper: Node, lower: Node) -> int:
    """Return the smallest distance between two adjacent nodes of a column."""
    return upper.margin + lower.margin


def _tie(left: Node, right: Node, source: Port | None = None, target: Port | None = None) -> None:
    """Note a strand at both of its nodes."""
    start = left.offsets[source] if source is not None else 0
    end = right.offsets[target] if target is not None else 0
    left.rights.append(Strand(right, start, end))
    right.lefts.append(Strand(left, end, start))
