"""From a builder to a diagram: what it shows to the outside, and what it takes to build."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    AlgebraicLoopError,
)
from tests.support.systems.blocks import Adder, Constant, Gain, Optional, diagram_of
from tests.support.systems.builders import contents, place_of, refusal
from tests.support.tiers import for_each

# Exports ---------------------------------------------------------------------------------------


def test_exported_ports_take_over_name_size_unit_and_doc() -> None:
    block = fx.LeafSystem("block")
    block.declare_vector_input("u", 2, unit="N", element_names=["x", "y"], doc="push")
    block.declare_vector_output("y", 1, abs, prerequisites=[], unit="m", doc="move")
    builder = fx.DiagramBuilder("plant")
    builder.add(block)
    builder.export_input("block.u")
    builder.export_output("block.y", "plant.motion")
    plant = builder.build()
    u, y = plant.input_port("u"), plant.output_port("plant.motion")
    assert (u.size, u.unit, u.element_names, u.doc) == (2, "N", ("x", "y"), "push")
    assert (y.size, y.unit, y.element_names, y.doc) == (1, "m", None, "move")
    assert (u.full_name, y.full_name) == ("plant.u", "plant.plant.motion")
    assert y.origin is block.output_port()
    assert plant.find("plant.motion") is y


def test_one_exported_input_may_feed_many_ports() -> None:
    builder = fx.DiagramBuilder()
    total = builder.add(Adder("sum", 2))
    builder.export_input(*total.u, name="u")
    context = builder.build().create_default_context()
    context.set("u", 4.0)
    assert context.get("sum.y") == 8.0


def test_one_output_may_be_exported_under_several_names() -> None:
    builder = fx.DiagramBuilder()
    builder.add(Constant("one", 5.0))
    builder.export_output("one.y")
    builder.export_output("one.y", "again")
    context = builder.build().create_default_context()
    assert (context.get("y"), context.get("again")) == (5.0, 5.0)


@pytest.mark.parametrize("export", ["export_input", "export_output"])
@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "1", "a b", 3])
def test_a_bad_name_of_an_export_is_refused(
    builder: fx.DiagramBuilder, export: str, name: Any
) -> None:
    port = "a.u" if export == "export_input" else "a.y"
    text = refusal(builder, lambda: getattr(builder, export)(port, name=name))
    assert "Cannot name an exported port of 'plant'" in text


def test_a_taken_name_of_an_export_is_refused(builder: fx.DiagramBuilder) -> None:
    builder.export_input("a.u", name="port")
    builder.export_output("b.y", name="signal")
    for call in (
        lambda: builder.export_input("two.u1", name="port"),
        lambda: builder.export_output("a.y", name="port"),
        lambda: builder.export_input("two.u1", name="signal"),
        lambda: builder.export_output("a.y", name="signal"),
    ):
        text = refusal(builder, call)
        assert "expected a name that is not taken; found an exported port" in text
        assert "Pass another name=" in text


@for_each(
    ("targets", "text"),
    [
        ([], "Cannot export an input of 'plant': expected at least one port; found none"),
        (["b.u"], "Cannot export 'b.u' as input 'w' of 'plant': expected an input port that noth"),
        (["a.u", "b.u"], "found 'b.u' fed by 'a.y'"),
        (["a.u", "a.u"], "Cannot export 'a.u', 'a.u' as input 'w' of 'plant': expected different"),
        (["a.u", "two.u2"], "expected a vector of size 1; found a vector of size 2 at 'two.u2'"),
        (["two.message", "a.u"], "expected an abstract value; found a vector of size 1 at 'a.u'"),
    ],
)
def test_a_bad_export_of_an_input_is_refused(
    builder: fx.DiagramBuilder, targets: list[str], text: str
) -> None:
    assert text in refusal(builder, lambda: builder.export_input(*targets, name="w"))


def test_an_input_cannot_be_exported_twice(builder: fx.DiagramBuilder) -> None:
    builder.export_input("a.u", name="first")
    assert refusal(builder, lambda: builder.export_input("a.u", name="second")) == (
        "Cannot export 'a.u' as input 'second' of 'plant': expected an input port that nothing "
        "feeds yet; found 'a.u' fed by 'exported input first'. Use a Sum to add signals."
    )


# Building --------------------------------------------------------------------------------------


def test_a_diagram_needs_a_block() -> None:
    builder = fx.DiagramBuilder("empty")

    def build() -> None:
        builder.build()

    assert refusal(builder, build) == (
        "Cannot build 'empty': expected at least one block; found none."
    )


def test_inputs_that_must_be_fed_and_are_not_are_all_named() -> None:
    builder = fx.DiagramBuilder("plant")

    def add() -> None:
        builder.add_all(Gain("a", size=1), Gain("b", size=3), Optional("c"))

    add()
    builder.connect("c.y", "a.u")
    place = f"block added at {place_of(add)}"

    def build() -> None:
        builder.build()

    assert refusal(builder, build) == (
        "Cannot build 'plant': expected every input port without a default to be connected or "
        f"exported; found no wire to 'b.u' (a vector of size 3; {place}), 'c.u' (a vector of size "
        f"1; {place}). Call connect(output, input) or export_input(input) for each."
    )
    builder.export_input("b.u", name="first")
    builder.export_input("c.u", name="second")
    assert [port.name for port in builder.build().input_ports] == ["first", "second"]


def test_a_long_list_of_missing_wires_is_cut() -> None:
    builder = fx.DiagramBuilder("plant")
    builder.add_all(*(Gain(f"g{k}") for k in range(20)))

    def build() -> None:
        builder.build()

    assert "and 12 more" in refusal(builder, build)


def test_nothing_can_be_done_after_building(builder: fx.DiagramBuilder) -> None:
    for target in ("a.u", "two.u1", "two.u2"):
        builder.export_input(target, name=target)

    def build() -> None:
        builder.build()

    build()
    for call in (
        lambda: builder.add(Gain("c")),
        lambda: builder.add_all(Gain("c")),
        lambda: builder.connect("a.y", "two.u1"),
        lambda: builder.connect_chain("b", "a"),
        lambda: builder.export_input("two.message"),
        lambda: builder.export_output("a.y"),
        build,
    ):
        assert refusal(builder, call) == (
            "Cannot change 'plant': expected a builder that has not built yet; found one that "
            f"built its diagram at {place_of(build)}. Start a "
            "new DiagramBuilder with new blocks; the diagram itself can be added to it."
        )


def test_after_a_loop_is_refused_the_builder_can_go_on() -> None:
    builder = fx.DiagramBuilder("plant")
    a, total = builder.add(Gain("a")), builder.add(Adder("sum"))
    builder.connect_chain(a, total.u[0])
    builder.connect_chain(total, a)
    builder.export_input(total.u[1])
    before = contents(builder)
    for _ in range(2):
        with pytest.raises(AlgebraicLoopError):
            builder.build()
        assert contents(builder) == before
        assert (a.parent, a.path) == (None, "")


def test_the_name_of_the_builder_is_the_name_of_the_diagram() -> None:
    assert fx.DiagramBuilder().name == "diagram"
    diagram = diagram_of(Constant(), name="plant")
    assert (diagram.name, diagram.label, diagram.path) == ("plant", "plant", "")


def test_vectors_pass_through_wires_unchanged() -> None:
    builder = fx.DiagramBuilder()
    value = np.array([1e-300, -0.0, 3.0])
    builder.add_all(Constant("source", value), Gain("gain", 1.0, size=3))
    builder.connect_chain("source", "gain")
    context = builder.build().create_default_context()
    assert context.get("gain.u").tobytes() == value.tobytes()


def test_an_exported_name_may_not_lead_to_another_port() -> None:
    builder = fx.DiagramBuilder("outer")
    builder.add_all(fx.Gain("a", 1.0), fx.Gain("b", 2.0))
    with pytest.raises(fx.errors.WiringError, match=r"path of another port, 'a\.y'"):
        builder.export_output("b.y", name="a.y")
    builder.export_output("a.y", name="a.y")


class Preset(fx.LeafSystem):
    """An input with a default."""

    def __init__(self, name: str, default: float) -> None:
        super().__init__(name)
        self.declare_vector_input("u", 1, default=default)


@pytest.mark.parametrize(("second", "kept"), [(1.0, [1.0]), (2.0, None)])
def test_exported_inputs_keep_a_default_on_which_they_agree(second: float, kept: Any) -> None:
    builder = fx.DiagramBuilder("outer")
    builder.add_all(Preset("one", 1.0), Preset("two", second))
    builder.export_input("one.u", "two.u", name="bias")
    default = builder.build().input_port("bias").default
    assert (default if default is None else default.tolist()) == kept
