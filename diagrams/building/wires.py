"""The wires of a builder until they are needed as a networkx graph.

networkx takes longer to import than most diagrams take to build and run. Until a program asks for
the graph, the builder keeps its wires here; from then on, it keeps them in the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from flexure.diagrams.systems.ports import InputPort, OutputPort, Port

if TYPE_CHECKING:
    import networkx as nx


class Wires:
    """Ports and wires, with those members of ``networkx.DiGraph`` that a builder uses."""

    def __init__(self) -> None:
        self.pred: dict[Port, dict[Port, None]] = {}  # for each port, the ports with a wire to it
        self._succ: dict[Port, dict[Port, None]] = {}

    @property
    def nodes(self) -> Iterable[Port]:
        """All ports, in the order in which they were added."""
        return self._succ.keys()

    @property
    def edges(self) -> Iterator[tuple[Port, Port]]:
        """All wires, as pairs of an output and an input, in the order of the outputs."""
        return ((output, entry) for output, fed in self._succ.items() for entry in fed)

    def add_nodes_from(self, ports: Iterable[Port]) -> None:
        """Add ports without wires."""
        for port in ports:
            self.pred[port] = {}
            self._succ[port] = {}

    def remove_nodes_from(self, ports: Iterable[Port]) -> None:
        """Remove ports without wires."""
        for port in ports:
            del self.pred[port], self._succ[port]

    def add_edge(self, output: OutputPort, entry: InputPort) -> None:
        """Add a wire."""
        self.pred[entry][output] = self._succ[output][entry] = None

    def remove_edges_from(self, wires: Iterable[tuple[OutputPort, InputPort]]) -> None:
        """Remove wires."""
        for output, entry in wires:
            del self.pred[entry][output], self._succ[output][entry]

    def as_networkx(self) -> nx.DiGraph:
        """Return a networkx graph of the same ports and wires, in the same order."""
        import networkx as nx  # here, as it is slow to import

        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph
