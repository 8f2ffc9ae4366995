"""The builder: what it accepts, and that a refused call says everything and changes nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    DeclarationError,
    FlexureError,
    UnknownNameError,
    WiringError,
)
from tests.support.systems.blocks import Adder, Constant, Gain, Lag, Optional, nested
from tests.support.systems.builders import contents, place_of, refusal
from tests.support.tiers import for_each

ROOT = Path(__file__).parents[3]


# Names -----------------------------------------------------------------------------------------


@for_each("name", ["", "a.b", "1a", None])
def test_a_diagram_needs_a_good_name(name: Any) -> None:
    with pytest.raises(WiringError, match="Cannot name a diagram"):
        fx.DiagramBuilder(name)


# Adding ----------------------------------------------------------------------------------------


def test_added_blocks_are_returned_and_listed_in_order() -> None:
    builder = fx.DiagramBuilder("plant")
    b, a = Gain("b"), Gain("a")
    assert builder.add(b) is b
    builder.add_all(a)
    assert builder.systems == (b, a)
    assert list(builder.graph.nodes) == [b.u, b.y, a.u, a.y]
    assert list(builder.graph.edges) == []


def test_a_taken_name_is_refused_with_the_line_where_it_was_taken() -> None:
    builder = fx.DiagramBuilder("plant")

    def add() -> None:
        builder.add(Gain("a"))

    add()
    newcomer = Lag("a")
    text = refusal(builder, lambda: builder.add(newcomer))
    assert text == (
        "Cannot add 'a' to 'plant': expected a name that is not taken; found a Gain 'a', added at "
        f"{place_of(add)}. Give one of them another name."
    )
    assert newcomer.claimed_by is None


@pytest.mark.parametrize(
    ("newcomer", "remedy"),
    [
        (fx.DiagramBuilder("inner"), " Call build() first, and pass its result."),
        (fx.PlantBuilder("arm"), " Call build() first, and pass its result."),
        (Gain, " Call the class to make a block."),
        ("a", ""),
        (None, ""),
    ],
    ids=["DiagramBuilder", "PlantBuilder", "class", "text", "None"],
)
def test_what_is_no_system_is_refused_with_the_way_to_one(
    builder: fx.DiagramBuilder, newcomer: Any, remedy: str
) -> None:
    found = "a class" if isinstance(newcomer, type) else type(newcomer).__name__
    text = refusal(builder, lambda: builder.add(newcomer))
    assert text == (
        f"Cannot add {newcomer!r} to 'plant': expected a block or a diagram; found {found}.{remedy}"
    )


def test_a_builder_says_what_is_in_it(builder: fx.DiagramBuilder) -> None:
    assert repr(builder) == "<DiagramBuilder 'plant', 3 blocks, 1 wires>"


@pytest.mark.parametrize("built", [False, True])
def test_a_system_cannot_be_in_two_diagrams(builder: fx.DiagramBuilder, built: bool) -> None:
    gain = Gain("shared")
    first = fx.DiagramBuilder("first")

    def add() -> None:
        first.add(gain)

    add()
    if built:
        first.export_input(gain.u)
        first.build()
    text = refusal(builder, lambda: builder.add(gain))
    assert text == (
        "Cannot add 'shared' to 'plant': expected a system that is in no diagram yet; found one "
        f"that was added to 'first' at {place_of(add)}. Make "
        "another instance."
    )


def test_a_system_cannot_be_twice_in_one_diagram(builder: fx.DiagramBuilder) -> None:
    (a, *_) = builder.systems
    assert "found one that was added to 'plant'" in refusal(builder, lambda: builder.add(a))


def test_adding_several_blocks_adds_all_or_none(builder: fx.DiagramBuilder) -> None:
    class Unfinished(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("unfinished")
            self.declare_continuous_state(z=1)

    c, d = Gain("c"), Gain("d")
    assert "'a'" in refusal(builder, lambda: builder.add_all(c, d, Gain("a")))
    assert "'c'" in refusal(builder, lambda: builder.add_all(c, d, c))
    assert "found str" in refusal(builder, lambda: builder.add_all(c, "d"))  # type: ignore[arg-type]
    before = contents(builder)
    with pytest.raises(DeclarationError, match="unfinished"):
        builder.add_all(c, d, Unfinished())
    assert contents(builder) == before
    assert (c.claimed_by, d.claimed_by) == (None, None)
    builder.add_all(c, d)
    assert [system.name for system in builder.systems] == ["a", "b", "two", "c", "d"]


# Connecting ------------------------------------------------------------------------------------


def test_ports_are_connected_by_handle_or_by_name() -> None:
    builder = fx.DiagramBuilder()
    a, b, c = builder.add(Gain("a")), builder.add(Gain("b")), builder.add(Gain("c"))
    builder.connect(a.y, b.u)
    builder.connect("b.y", "c.u")
    builder.connect(c.y, "a.u")
    assert list(builder.graph.edges) == [(a.y, b.u), (b.y, c.u), (c.y, a.u)]


def test_one_output_may_feed_many_inputs() -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(Constant("one", 3.0), Adder("sum", 3))
    for k in (1, 2, 3):
        builder.connect("one.y", f"sum.u{k}")
    assert builder.build().create_default_context().get("sum.y") == 9.0


def test_a_port_that_is_fed_is_refused_with_the_name_of_what_feeds_it(
    builder: fx.DiagramBuilder,
) -> None:
    for source in ("a.y", "two.y1"):
        assert refusal(builder, lambda s=source: builder.connect(s, "b.u")) == (  # type: ignore[misc]
            f"Cannot connect '{source}' to 'b.u': expected an input port that nothing feeds yet; "
            "found 'b.u' fed by 'a.y'. Use a Sum to add signals."
        )


def test_an_exported_port_cannot_be_connected(builder: fx.DiagramBuilder) -> None:
    builder.export_input("a.u", name="command")
    assert refusal(builder, lambda: builder.connect("b.y", "a.u")) == (
        "Cannot connect 'b.y' to 'a.u': expected an input port that nothing feeds yet; found "
        "'a.u' fed by 'exported input command'. Use a Sum to add signals."
    )


@for_each(
    ("source", "target", "expected", "found"),
    [
        ("two.y1", "two.u2", "a vector of size 2", "a vector of size 1"),
        ("two.y2", "two.u1", "a vector of size 1", "a vector of size 2"),
        ("two.news", "two.u1", "a vector of size 1", "an abstract value"),
        ("two.y2", "two.message", "an abstract value", "a vector of size 2"),
    ],
)
def test_ports_of_different_size_or_kind_are_refused_with_both(
    builder: fx.DiagramBuilder, source: str, target: str, expected: str, found: str
) -> None:
    assert refusal(builder, lambda: builder.connect(source, target)) == (
        f"Cannot connect '{source}' to '{target}': expected {expected}; found {found}."
    )


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        (
            "c.y",
            "two.u1",
            (
                "Cannot find output port 'c.y' in 'plant': found no block 'c'. Valid names: 'a', "
                "'b', 'two'."
            ),
        ),
        (
            "two.y",
            "a.u",
            (
                "Cannot find output port 'two.y' in 'plant': found no output port 'y' of 'two'. "
                "Did you mean 'two.y2'? Valid names: 'two.y1', 'two.y2', 'two.news'."
            ),
        ),
        (
            "a.y",
            "two.y1",
            (
                "Cannot find input port 'two.y1' in 'plant': found no input port 'y1' of 'two', "
                "but an output port of that name. "
                "Did you mean 'two.u1'? Valid names: 'two.u1', 'two.u2', 'two.message'."
            ),
        ),
        (
            "a",
            "two.u1",
            (
                "Cannot find output port 'a' in 'plant': found the name of a block only. Did "
                "you mean 'a.y'? Valid names: 'a.y'."
            ),
        ),
        ("", "a.u", "Cannot find output port '' in 'plant': found no block ''."),
    ],
)
def test_an_unknown_port_is_refused_with_a_guess_and_the_valid_names(
    builder: fx.DiagramBuilder, source: str, target: str, text: str
) -> None:
    found = refusal(builder, lambda: builder.connect(source, target), UnknownNameError)
    assert found.startswith(text)


def test_things_that_are_no_ports_are_refused(builder: fx.DiagramBuilder) -> None:
    a: Any = builder.systems[0]
    assert refusal(builder, lambda: builder.connect(a, "two.u1")) == (
        "Cannot wire <Gain 'a'> in 'plant': expected an output port; found Gain. Name the port, "
        "as in 'a.y'."
    )
    assert refusal(builder, lambda: builder.connect("a.y", a)) == (
        "Cannot wire <Gain 'a'> in 'plant': expected an input port; found Gain. Name the port, "
        "as in 'a.u'."
    )
    assert refusal(builder, lambda: builder.connect(a.u, "two.u1")) == (
        "Cannot wire <InputPort 'a.u'> in 'plant': expected an output port; found the input port "
        "'a.u'. Wires go from an output port to an input port."
    )
    assert "found the parameter" not in refusal(builder, lambda: builder.connect(a.k, "two.u1"))
    assert "found NoneType" in refusal(builder, lambda: builder.connect(None, a.u))  # type: ignore[arg-type]


def test_a_port_of_a_block_that_was_not_added_is_refused(builder: fx.DiagramBuilder) -> None:
    a: Any = builder.systems[0]
    twin = Gain("a")
    for call in (
        lambda: builder.connect(twin.y, "two.u1"),
        lambda: builder.connect("a.y", twin.u),
        lambda: builder.export_input(twin.u),
        lambda: builder.export_output(twin.y),
    ):
        text = refusal(builder, call)
        assert "expected a port of a block of this builder: 'a', 'b', 'two'" in text
        assert "found a port of 'a', which was not added here. Add the block first" in text
    assert a.path == ""


def test_a_port_inside_of_a_nested_diagram_is_refused(builder: fx.DiagramBuilder) -> None:
    gain = Gain("gain")
    builder.add(nested(gain, 1))
    text = refusal(builder, lambda: builder.connect(gain.y, "two.u1"))
    assert "Cannot wire 'gain.y'" in text
    assert "use the exported ports of a nested diagram" in text
    builder.connect("d1.y", "two.u1")


# The graph -------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", range(6))
def test_the_graph_is_the_same_whenever_it_is_looked_at(before: int) -> None:
    builder = fx.DiagramBuilder()
    calls: list[Callable[[], object]] = [
        lambda: builder.add_all(Adder("sum", 2), Constant("one")),
        lambda: builder.connect("one.y", "sum.u2"),
        lambda: builder.add(Gain("k")),
        lambda: builder.connect("one.y", "k.u"),
        lambda: builder.connect("k.y", "sum.u1"),
    ]
    for call in calls[:before]:
        call()
    graph = builder.graph
    for call in calls[before:]:
        call()
    assert builder.graph is graph
    assert [port.full_name for port in graph.nodes] == [
        *("sum.u1", "sum.u2", "sum.y", "one.y", "k.u", "k.y")
    ]
    edges = [(output.full_name, entry.full_name) for output, entry in graph.edges]
    assert edges == [("one.y", "sum.u2"), ("one.y", "k.u"), ("k.y", "sum.u1")]
    assert list(builder.build().wires.items()) == [(b, a) for a, b in graph.edges]


def test_the_builder_works_with_the_graph_that_it_shows(builder: fx.DiagramBuilder) -> None:
    a, b, _ = builder.systems
    graph = builder.graph
    graph.remove_edge(a.output_port(), b.input_port())
    builder.connect("two.y1", "b.u")
    assert list(graph.edges) == [(builder.systems[2].output_port("y1"), b.input_port())]


@pytest.mark.full
def test_networkx_is_imported_only_for_who_looks_at_a_graph() -> None:
    code = (
        "import sys, flexure as fx\n"
        "builder = fx.DiagramBuilder()\n"
        "builder.add_all(fx.Constant('one', 1.0), fx.Gain('k', 2.0))\n"
        "builder.connect_chain('one', 'k')\n"
        "gain = builder.build()\n"
        "fx.Simulator(gain).advance_to(1.0)\n"
        "print('networkx' in sys.modules)\n"
        "print(type(builder.graph).__module__)\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert outcome.stdout.split() == ["False", "networkx.classes.digraph"], outcome.stderr


# Chains ----------------------------------------------------------------------------------------


def test_a_chain_connects_blocks_ports_and_names() -> None:
    builder = fx.DiagramBuilder()
    one, total, k = Constant("one"), Adder("sum"), Gain("k")
    builder.add_all(one, total, k, Lag("lag"))
    builder.connect_chain(one, total.u[0], k, "lag", "sum.u2")
    assert [(a.path, b.path) for a, b in builder.graph.edges] == [
        ("y", "u1"),
        ("y", "u"),
        ("y", "u"),
        ("y", "u2"),
    ]
    assert dict(builder.graph.pred[total.u[1]]) == {builder.systems[3].output_port(): {}}
    context = builder.build().create_default_context()
    context.set("lag.x", 3.0)
    assert context.get("k.y") == 8.0


def test_a_chain_may_start_at_an_output_port(builder: fx.DiagramBuilder) -> None:
    builder.connect_chain("two.y1", "a")
    builder.connect_chain(builder.systems[1].output_port(), "two.u1")
    assert [(a.full_name, b.full_name) for a, b in builder.graph.edges] == [
        ("a.y", "b.u"),
        ("b.y", "two.u1"),
        ("two.y1", "a.u"),
    ]


def test_a_chain_enters_the_one_port_that_must_be_fed() -> None:
    builder = fx.DiagramBuilder()
    optional = Optional("optional")
    builder.add_all(Constant("one"), optional)
    builder.connect_chain("one", "optional")
    assert list(builder.graph.pred[optional.u]) == [builder.systems[0].output_port()]


@pytest.mark.parametrize(
    ("links", "kind", "text"),
    [
        ([], WiringError, "Cannot connect a chain in 'plant': expected at least two links"),
        (["a"], WiringError, "expected at least two links; found 1"),
        (
            ["b", "two"],
            WiringError,
            (
                "Cannot continue a chain into 'two' in 'plant': expected a block with one input "
                "port that must be fed; found the input ports 'two.u1', 'two.u2', 'two.message'. "
                "Name"
            ),
        ),
        (
            ["b", "two.u1", "a"],
            WiringError,
            (
                "Cannot continue a chain from 'two' in 'plant': expected a block with one output "
                "port; found the output ports 'two.y1', 'two.y2', 'two.news'. Start a new chain"
            ),
        ),
        (["b", "a", "b"], WiringError, "'b.u' fed by 'a.y'"),
        (["b", "two.u1", "c"], WiringError, "Cannot continue a chain from 'two'"),
        (["b", "a", "c"], UnknownNameError, "Cannot find block 'c' in 'plant'. Valid names: 'a'"),
        (["b", "a.w"], UnknownNameError, "Cannot find input port 'a.w'"),
        (["b", "a", "two.u2"], WiringError, "expected a vector of size 2; found a vector of size"),
        (["b", "a", ["two"]], WiringError, "expected blocks, ports, and names of either; found ["),
        ([None, "a"], WiringError, "expected blocks, ports, and names of either; found None"),
        (["b", Gain("a")], UnknownNameError, "block 'a' in 'plant': found another block of the"),
    ],
)
def test_a_bad_chain_is_refused_and_no_wire_of_it_stays(
    builder: fx.DiagramBuilder, links: Any, kind: type[FlexureError], text: str
) -> None:
    found = refusal(builder, lambda: builder.connect_chain(*links), kind)
    assert text in found
