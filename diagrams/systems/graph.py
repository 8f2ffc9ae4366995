"""The wiring of a diagram as a networkx graph.

Nodes are ``(path, kind)`` with kind ``"input"`` or ``"output"``: every port of every block at every
depth, and the exported ports of every diagram, the outermost included. Node attributes: ``block``
(path of the block, empty for the outermost diagram), ``port`` (name), ``size`` (None for abstract
ports), ``unit`` and ``leaf`` (whether a leaf owns the port).

Edges point the way values travel. The attribute ``relation`` is

* ``"wire"`` from an output port to the input port that it feeds;
* ``"export"`` from an exported input to the ports inside that it feeds, and from a port inside to
  the exported output that shows it;
* ``"direct"`` from an input to an output of one leaf that needs it at the same instant;
* ``"dynamic"`` from an input to an output of one leaf that it can only reach through state.

An exported port with the path of the very port that it shows is one node with that port.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias

import networkx as nx

from flexure.diagrams.systems.diagram import Diagram
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import InputPort, Port
from flexure.diagrams.systems.system import System, each_system

#: A port in the graph: its path and "input" or "output".
Node: TypeAlias = tuple[str, str]


def graph_of(diagram: Diagram) -> nx.DiGraph:
    """Return the wiring of a diagram, with paths counted from this diagram.

    >>> import networkx as nx
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(fx.Gain("k", -1.0), fx.Integrator("x"))
    >>> builder.connect_chain("k", "x", "k.u")
    >>> graph = builder.build().graph
    >>> sorted(nx.descendants(graph, ("k.u", "input")))
    [('k.y', 'output'), ('x.u', 'input'), ('x.y', 'output')]
    """
    graph = nx.DiGraph(name=diagram.name)
    systems = list(each_system(diagram))
    skip = len(diagram.path) + 1 if diagram.path else 0

    def node(port: Port) -> Node:
        return port.path[skip:], "input" if isinstance(port, InputPort) else "output"

    for system in systems:
        for port in (*system.input_ports, *system.output_ports):
            graph.add_node(
                node(port),
                block=system.path[skip:] if system is not diagram else "",
                port=port.name,
                size=port.size,
                unit=port.unit,
                leaf=isinstance(system, LeafSystem),
            )
    for system in systems:
        for source, target, relation in _edges_of(system):
            if node(source) != node(target):
                graph.add_edge(node(source), node(target), relation=relation)
    return graph


def _edges_of(system: System) -> Iterator[tuple[Port, Port, str]]:
    """Go through the edges that one system contributes."""
    if isinstance(system, Diagram):
        for target, source in system.wires.items():
            yield source, target, "wire"
        for exported in system.input_ports:
            for target in exported.targets:
                yield exported, target, "export"
        for shown in system.output_ports:
            yield shown.source, shown, "export"
    elif isinstance(system, LeafSystem):
        has_state = system.continuous_state or system.discrete_states or system.abstract_states
        direct = system.feedthrough
        for entry, output in itertools.product(system.input_ports, system.output_ports):
            if (entry.name, output.name) in direct:
                yield entry, output, "direct"
            elif has_state:
                yield entry, output, "dynamic"
