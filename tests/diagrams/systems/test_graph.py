"""The wiring as a networkx graph: nodes, edges and their attributes."""

from __future__ import annotations

from typing import Any

import networkx as nx

import flexure as fx
from flexure.diagrams.systems.graph import graph_of
from tests.support.systems.blocks import Adder, Constant, Gain, Lag, Oscillator, nested


def loop() -> fx.Diagram:
    """Build inner(sum, lag) in a loop with a gain, exported by outer."""
    builder = fx.DiagramBuilder("inner")
    builder.add_all(Adder("sum", size=2), Lag("lag", size=2))
    builder.connect_chain("sum", "lag")
    builder.export_input("sum.u1", name="reference")
    builder.export_input("sum.u2", name="feedback")
    builder.export_output("lag.y", name="motion")
    outer = fx.DiagramBuilder("outer")
    outer.add_all(builder.build(), Gain("k", [1.0, 2.0], size=2))
    outer.connect_chain("inner", "k", "inner.feedback")
    outer.export_input("inner.reference", name="target")
    outer.export_output("inner.motion")
    return outer.build()


def edges(graph: nx.DiGraph) -> set[tuple[str, str, str]]:
    """Return the edges as (from, to, relation), with the kinds of ports as ``u?`` and ``y!``."""
    mark = {"input": "?", "output": "!"}
    return {
        (a + mark[kind_a], b + mark[kind_b], relation)
        for (a, kind_a), (b, kind_b), relation in graph.edges(data="relation")
    }


def test_nodes_are_all_ports_at_every_depth_with_their_attributes() -> None:
    graph = loop().graph
    vector = {"size": 2, "unit": ""}
    assert graph.name == "outer"
    assert dict(graph.nodes(data=True)) == {
        (path, kind): {"block": block, "port": port, "leaf": leaf} | vector
        for path, kind, block, port, leaf in [
            ("target", "input", "", "target", False),
            ("motion", "output", "", "motion", False),
            ("inner.reference", "input", "inner", "reference", False),
            ("inner.feedback", "input", "inner", "feedback", False),
            ("inner.motion", "output", "inner", "motion", False),
            ("inner.sum.u1", "input", "inner.sum", "u1", True),
            ("inner.sum.u2", "input", "inner.sum", "u2", True),
            ("inner.sum.y", "output", "inner.sum", "y", True),
            ("inner.lag.u", "input", "inner.lag", "u", True),
            ("inner.lag.y", "output", "inner.lag", "y", True),
            ("k.u", "input", "k", "u", True),
            ("k.y", "output", "k", "y", True),
        ]
    }


def test_edges_say_how_ports_are_related() -> None:
    assert edges(loop().graph) == {
        ("target?", "inner.reference?", "export"),
        ("inner.reference?", "inner.sum.u1?", "export"),
        ("inner.feedback?", "inner.sum.u2?", "export"),
        ("inner.sum.u1?", "inner.sum.y!", "direct"),
        ("inner.sum.u2?", "inner.sum.y!", "direct"),
        ("inner.sum.y!", "inner.lag.u?", "wire"),
        ("inner.lag.u?", "inner.lag.y!", "dynamic"),
        ("inner.lag.y!", "inner.motion!", "export"),
        ("inner.motion!", "motion!", "export"),
        ("inner.motion!", "k.u?", "wire"),
        ("k.u?", "k.y!", "direct"),
        ("k.y!", "inner.feedback?", "wire"),
    }


def test_the_graph_of_a_diagram_inside_has_paths_of_its_own() -> None:
    inner = loop()["inner"]
    assert isinstance(inner, fx.Diagram)
    graph = inner.graph
    assert edges(graph) == {
        ("reference?", "sum.u1?", "export"),
        ("feedback?", "sum.u2?", "export"),
        ("sum.u1?", "sum.y!", "direct"),
        ("sum.u2?", "sum.y!", "direct"),
        ("sum.y!", "lag.u?", "wire"),
        ("lag.u?", "lag.y!", "dynamic"),
        ("lag.y!", "motion!", "export"),
    }
    assert {graph.nodes[node]["block"] for node in graph} == {"", "sum", "lag"}


def test_units_and_abstract_ports_are_shown() -> None:
    block = fx.LeafSystem("block")
    block.declare_vector_input("force", 1, unit="N", default=0.0)
    block.declare_abstract_input("message", default="none")
    block.declare_abstract_output("news", abs, prerequisites=[])
    builder = fx.DiagramBuilder()
    builder.add(block)
    nodes = builder.build().graph.nodes
    assert nodes["block.force", "input"]["unit"] == "N"
    assert nodes["block.message", "input"]["size"] is None
    assert nodes["block.news", "output"]["size"] is None


def test_an_input_that_cannot_reach_an_output_has_no_edge_to_it() -> None:
    class Deaf(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("deaf")
            self.declare_vector_input("u", 1, default=0.0)
            self.declare_vector_output("y", 1, abs, prerequisites=[])

    class Sampling(Deaf):
        def __init__(self, kind: str) -> None:
            super().__init__()
            getattr(self, f"declare_{kind}_state")("memory", 0.0)

    def relations(block: Any) -> set[tuple[str, str, str]]:
        builder = fx.DiagramBuilder()
        builder.add(block)
        return edges(builder.build().graph)

    assert relations(Deaf()) == set()
    for kind in ("discrete", "abstract"):
        assert relations(Sampling(kind)) == {("deaf.u?", "deaf.y!", "dynamic")}


def test_networkx_answers_questions_about_the_loop() -> None:
    graph = loop().graph
    direct = graph.edge_subgraph(
        [(a, b) for a, b, relation in graph.edges(data="relation") if relation != "dynamic"]
    )
    assert not nx.is_directed_acyclic_graph(graph)
    assert nx.is_directed_acyclic_graph(direct)
    assert nx.has_path(graph, ("target", "input"), ("motion", "output"))
    assert not nx.has_path(direct, ("target", "input"), ("motion", "output"))


def test_the_graph_is_new_each_time() -> None:
    diagram = loop()
    diagram.graph.clear()
    assert diagram.graph.number_of_nodes() == 12
    assert edges(graph_of(diagram)) == edges(diagram.graph)


def test_an_export_with_the_path_of_the_port_it_shows_is_one_node_with_it() -> None:
    builder = fx.DiagramBuilder("plant")
    builder.add_all(Oscillator("axis"), Constant("source"))
    builder.connect("source.y", "axis.force")
    builder.export_output("axis.position", name="axis.position")
    graph = builder.build().graph
    assert edges(graph) == {
        ("source.y!", "axis.force?", "wire"),
        ("axis.force?", "axis.position!", "dynamic"),
    }
    assert graph.nodes["axis.position", "output"]["leaf"] is True


def test_deep_nesting_is_no_recursion() -> None:
    graph = nested(Gain("gain"), 200).graph
    assert graph.number_of_nodes() == 2 * 201
    assert nx.dag_longest_path_length(graph) == 2 * 200 + 1
