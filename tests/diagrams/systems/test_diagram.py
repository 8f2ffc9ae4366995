"""Diagrams: nesting, finding, feedthrough, algebraic loops, and copies."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import AlgebraicLoopError, ContextError, UnknownNameError
from tests.support.systems.blocks import (
    Adder,
    Constant,
    Declared,
    Gain,
    Lag,
    Optional,
    Oscillator,
    diagram_of,
    nested,
)


class Crossed(fx.LeafSystem):
    """Two independent paths through one block: y1 = u1 and y2 = u2."""

    def __init__(self, name: str = "crossed") -> None:
        super().__init__(name)
        self.u1 = self.declare_vector_input("u1", 1)
        self.u2 = self.declare_vector_input("u2", 1)
        self.y1 = self.declare_vector_output("y1", 1, self.u1, prerequisites=[self.u1])
        self.y2 = self.declare_vector_output("y2", 1, self.u2, prerequisites=[self.u2])


def three_deep() -> tuple[fx.Diagram, Lag, Gain]:
    """Build outer(middle(inner(gain -> lag), sum) ...) as a feedback loop of depth three."""
    lag, gain = Lag("lag", tau=0.5), Gain("gain", 3.0)
    inner = fx.DiagramBuilder("inner")
    inner.add_all(gain, lag)
    inner.connect_chain(gain, lag)
    inner.export_input("gain.u", name="command")
    inner.export_output("lag.y", name="motion")
    middle = fx.DiagramBuilder("middle")
    middle.add_all(Adder("sum"), inner.build())
    middle.connect_chain("sum", "inner", "sum.u2")
    middle.export_input("sum.u1", name="reference")
    middle.export_output("inner.motion", name="motion")
    outer = fx.DiagramBuilder("outer")
    outer.add_all(Constant("source", 2.0), middle.build(), Gain("scale", 10.0))
    outer.connect_chain("source", "middle", "scale")
    outer.export_output("scale.y", name="result")
    return outer.build(), lag, gain


# Nesting ---------------------------------------------------------------------------------------


def test_diagrams_three_deep_compute_like_flat_ones() -> None:
    diagram, lag, gain = three_deep()
    context = diagram.create_default_context()
    for state, k in [(0.0, 3.0), (4.0, 3.0), (4.0, -1.0)]:
        lag.x.set(context, state)
        gain.k.set(context, k)
        np.testing.assert_array_equal(
            diagram.eval_time_derivatives(context), [(k * (2.0 + state) - state) / 0.5]
        )
        assert context.get("result") == 10.0 * state
        for path in ("middle.motion", "middle.inner.motion", "middle.inner.lag.y", "scale.u"):
            assert context.get(path) == state
        for path in ("middle.inner.command", "middle.inner.gain.u", "middle.sum.y"):
            assert context.get(path) == 2.0 + state


def test_a_diagram_inside_can_still_be_used_alone() -> None:
    diagram, lag, _ = three_deep()
    middle = diagram["middle"]
    alone = middle.create_default_context()
    middle.input_port("reference").fix(alone, 1.0)
    lag.x.set(alone, 5.0)
    np.testing.assert_array_equal(middle.eval_time_derivatives(alone), [(3.0 * 6.0 - 5.0) / 0.5])
    assert diagram.create_default_context().get("middle.motion") == 0.0
    with pytest.raises(ContextError, match="Cannot use 'outer' with this context"):
        diagram.eval_time_derivatives(alone)


def test_a_nested_diagram_is_one_system_of_the_outer_one() -> None:
    diagram, lag, gain = three_deep()
    assert [child.name for child in diagram.children] == ["source", "middle", "scale"]
    assert lag.path == "middle.inner.lag"
    assert diagram["middle.inner.lag"] is diagram.get_system("middle.inner.lag") is lag
    assert diagram.get_system("") is diagram
    inner = diagram["middle.inner"]
    assert isinstance(inner, fx.Diagram)
    assert lag.parent is inner["lag"].parent is inner
    assert inner.wires == {lag.u: gain.y}
    assert inner.feed_of(lag.u) is gain.y
    assert inner.feed_of(gain.u) is inner.input_port("command")
    assert inner.feed_of(diagram["scale"].input_port()) is None


def test_handles_are_found_by_path() -> None:
    diagram, lag, gain = three_deep()
    assert diagram.find("middle.inner.lag.tau") is lag.tau
    assert diagram.find("middle.inner.motion") is diagram["middle.inner"].output_port()
    assert diagram.find("result") is diagram.output_port("result")
    assert diagram["middle"].find("inner.gain.u") is gain.u


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("middle.innner.lag", "found no block 'innner' in 'middle'. Did you mean 'inner'?"),
        ("scale.x", "found no block 'x' in 'scale'. Valid names: none"),
        ("x", "found no block 'x' in 'outer'. Valid names: 'source', 'middle', 'scale'"),
        ("middle..lag", "found no block '' in 'middle'"),
    ],
)
def test_an_unknown_block_is_refused_with_the_valid_names(path: str, text: str) -> None:
    diagram, _, _ = three_deep()
    for use in (diagram.get_system, diagram.__getitem__):
        with pytest.raises(UnknownNameError) as caught:
            use(path)
        assert str(caught.value).startswith(f"Cannot find block '{path}' in 'outer': {text}")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("resutl", "no block or exported port 'resutl'. Did you mean 'result'? Valid names: 'res"),
        ("scale", "found a block 'scale', and no name of one of its items behind it. Did you mean"),
        ("scale.", "found a block 'scale', and no name of one of its items"),
        ("middle.motoin", "Cannot find 'motoin' in 'middle'"),
    ],
)
def test_an_unknown_item_is_refused_with_a_guess(path: str, text: str) -> None:
    diagram, _, _ = three_deep()
    with pytest.raises(UnknownNameError) as caught:
        diagram.find(path)
    assert text in str(caught.value)


def test_states_are_laid_out_in_the_order_of_the_blocks_depth_first() -> None:
    first = diagram_of(Lag("a"), diagram_of(Oscillator("b"), name="deep"), Lag("c"), name="first")
    diagram = diagram_of(Lag("z"), first, Lag("d"))
    layout = diagram.layout
    assert [leaf.path for leaf in layout.leaves] == [
        *("z", "first.a", "first.deep.b", "first.c", "d"),
    ]
    assert [layout.state_name(k) for k in range(layout.num_states)] == [
        "z.x[0]",
        "first.a.x[0]",
        "first.deep.b.x[position]",
        "first.deep.b.x[rate]",
        "first.deep.b.x[work]",
        "first.c.x[0]",
        "d.x[0]",
    ]
    with pytest.raises(IndexError):
        layout.state_name(7)


# Feedthrough -----------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_feedthrough_of_a_diagram_follows_its_wires(depth: int) -> None:
    builder = fx.DiagramBuilder("plant")
    crossed, lag = Crossed(), Lag("lag")
    builder.add_all(crossed, lag, Adder("sum"))
    builder.connect("crossed.y1", "sum.u1")
    builder.connect("crossed.y2", "lag.u")
    builder.connect("lag.y", "sum.u2")
    for name in ("u1", "u2"):
        builder.export_input(f"crossed.{name}")
    builder.export_output("sum.y")
    builder.export_output("crossed.y2")
    plant: fx.System = builder.build()
    if depth:
        plant = nested(plant, depth)
    assert plant.feedthrough == {("u1", "y"), ("u2", "y2")}


def test_feedthrough_through_a_state_is_none() -> None:
    assert nested(Lag(), 2).feedthrough == frozenset()
    assert nested(Optional(), 2).feedthrough == {("u", "y"), ("v", "y")}


# Algebraic loops -------------------------------------------------------------------------------


def loop_of(builder: fx.DiagramBuilder) -> AlgebraicLoopError:
    with pytest.raises(AlgebraicLoopError) as caught:
        builder.build()
    return caught.value


def rotations(loop: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {loop[k:] + loop[:k] for k in range(len(loop))}


def test_a_loop_is_printed_port_by_port_in_the_order_in_which_values_travel() -> None:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(Constant("target"), Adder("sum"), Gain("k"), Gain("plant"))
    builder.connect_chain("target", "sum.u1", "k", "plant", "sum.u2")
    error = loop_of(builder)
    assert error.loop in rotations(
        ("sum.u2", "sum.y", "k.u", "k.y", "plant.u", "plant.y"),
    )
    place = r"\(at test_diagram\.py:\d+\)"
    assert re.fullmatch(f"Cannot order the computations of 'servo' {place}", error.attempt)
    assert error.expected == "no output that depends on itself at the same instant"
    assert error.found == f"the algebraic loop {' -> '.join([*error.loop, error.loop[0]])}"
    assert error.remedy is not None
    assert error.remedy.startswith("Break the loop with a block whose output does not depend on")
    assert "really depend" not in error.remedy


def test_a_block_fed_by_itself_is_a_loop() -> None:
    builder = fx.DiagramBuilder()
    builder.add(Gain("k"))
    builder.connect("k.y", "k.u")
    assert loop_of(builder).loop == ("k.u", "k.y")


def test_a_loop_names_the_input_that_closes_it() -> None:
    class OneSided(fx.LeafSystem):
        """Fed twice by the same output, of which only the second input counts at once."""

        def __init__(self) -> None:
            super().__init__("sided")
            self.declare_vector_input("u1", 1)
            u2 = self.declare_vector_input("u2", 1)
            self.declare_vector_output("y", 1, u2, prerequisites=[u2])

    builder = fx.DiagramBuilder()
    builder.add_all(OneSided(), Gain("k"))
    builder.connect_chain("sided", "k", "sided.u1")
    builder.connect("k.y", "sided.u2")
    assert loop_of(builder).loop in rotations(("sided.u2", "sided.y", "k.u", "k.y"))


def test_a_loop_through_a_cache_entry_shows_the_entry() -> None:
    block = fx.LeafSystem("block")
    u = block.declare_vector_input("u", 1)
    entry = block.declare_cache_entry("entry", u, prerequisites=[u])
    block.declare_vector_output("y", 1, entry, prerequisites=[entry])
    builder = fx.DiagramBuilder()
    builder.add(block)
    builder.connect("block.y", "block.u")
    assert loop_of(builder).loop in rotations(("block.u", "block.entry", "block.y"))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_loop_is_found_through_any_nesting_with_full_paths(depth: int) -> None:
    builder = fx.DiagramBuilder("outer")
    gain = Gain("gain")
    builder.add_all(nested(gain, depth), Gain("k"))
    builder.connect_chain(f"d{depth}", "k", f"d{depth}.u")
    prefix = ".".join(f"d{k}" for k in range(depth, 0, -1))
    assert loop_of(builder).loop in rotations(
        (f"{prefix}.gain.u", f"{prefix}.gain.y", "k.u", "k.y")
    )


def test_a_loop_that_runs_twice_through_one_nested_diagram_is_found() -> None:
    builder = fx.DiagramBuilder("outer")
    builder.add(nested(Crossed(), 2))
    builder.connect("d2.y1", "d2.u2")
    builder.connect("d2.y2", "d2.u1")
    assert loop_of(builder).loop in rotations(
        ("d2.d1.crossed.u1", "d2.d1.crossed.y1", "d2.d1.crossed.u2", "d2.d1.crossed.y2")
    )


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_cycle_of_blocks_without_a_cycle_of_dependence_builds(depth: int) -> None:
    crossed = Crossed("block")
    system: fx.System = nested(crossed, depth) if depth else crossed
    builder = fx.DiagramBuilder("outer")
    builder.add_all(Constant("source", 4.0), system, Gain("k", 3.0))
    builder.connect("source.y", f"{system.name}.u1")
    builder.connect(f"{system.name}.y1", "k.u")
    builder.connect("k.y", f"{system.name}.u2")
    context = builder.build().create_default_context()
    assert crossed.y2.eval(context) == 12.0


def test_a_block_fed_by_itself_along_another_path_builds() -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(Constant("source", 4.0), Crossed("block"))
    builder.connect("source.y", "block.u1")
    builder.connect("block.y1", "block.u2")
    assert builder.build().create_default_context().get("block.y2") == 4.0


def test_a_state_breaks_the_loop() -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(Gain("k", -2.0), Lag("lag"))
    builder.connect_chain("k", "lag", "k.u")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("lag.x", 1.0)
    np.testing.assert_array_equal(diagram.eval_time_derivatives(context), [-3.0])


@pytest.mark.parametrize(("how", "guessed"), [("assumed", True), ("traced", False)])
def test_advice_names_the_outputs_whose_feedthrough_was_only_assumed(
    how: Declared, guessed: bool
) -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(Gain("a", how=how), Gain("b"))
    builder.connect_chain("a", "b", "a.u")
    text = str(loop_of(builder))
    advice = (
        "; or, if 'a.y' does not really depend on that input, declare its prerequisites (they "
        "could not be traced and every input was assumed)."
    )
    assert (advice in text) is guessed


def test_an_assumed_feedthrough_that_is_not_there_is_cured_by_declaring() -> None:
    class Sticky(fx.LeafSystem):
        """An output of the state, computed in a way that cannot be traced."""

        def __init__(self, declared: bool) -> None:
            super().__init__("sticky")
            self.x = self.declare_continuous_state(z=1)
            self.u = self.declare_vector_input("u", 1)
            self.y = self.declare_vector_output(
                "y", 1, self.calc_y, prerequisites=[self.x] if declared else None
            )

        def calc_y(self, context: Any) -> Any:
            return float(self.x(context)[0])

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.u(context)

    def build(declared: bool) -> fx.Diagram:
        builder = fx.DiagramBuilder()
        builder.add_all(Sticky(declared), Gain("k"))
        builder.connect_chain("sticky", "k", "sticky.u")
        return builder.build()

    with pytest.raises(AlgebraicLoopError, match=r"if 'sticky\.y' does not really depend"):
        build(declared=False)
    assert build(declared=True).feedthrough == frozenset()


def test_one_of_several_loops_is_enough_to_refuse() -> None:
    builder = fx.DiagramBuilder()
    builder.add_all(*(Gain(name) for name in "abcd"))
    builder.connect_chain("a", "b", "a.u")
    builder.connect_chain("c", "d", "c.u")
    found = loop_of(builder).loop
    assert found in rotations(("a.u", "a.y", "b.u", "b.y")) | rotations(
        ("c.u", "c.y", "d.u", "d.y")
    )


# Copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_pickled_diagram_is_a_separate_diagram_with_the_same_behavior(
    duplicate: Callable[[Any], Any], used: bool
) -> None:
    diagram, lag, _ = three_deep()
    context = diagram.create_default_context()
    lag.x.set(context, 4.0)
    if used:
        diagram.eval_time_derivatives(context)
    twin = duplicate(diagram)
    copied = twin.create_default_context()
    twin["middle.inner.lag"].x.set(copied, 4.0)
    np.testing.assert_array_equal(
        twin.eval_time_derivatives(copied), diagram.eval_time_derivatives(context)
    )
    assert copied.get("result") == 40.0
    assert copied.to_dict() == context.to_dict()
    assert twin.feedthrough == diagram.feedthrough
    assert twin["middle.inner.lag"].path == "middle.inner.lag"
    for handle, wrong in ((lag.x, copied), (twin["middle.inner.lag"].x, context)):
        with pytest.raises(ContextError, match=r"continuous state 'middle\.inner\.lag\.x' with"):
            handle(wrong)
    assert copied != context


def test_a_wide_and_a_deep_diagram_can_be_pickled() -> None:
    wide = diagram_of(*(Gain(f"g{k}") for k in range(3000)))
    deep = nested(Gain("gain", 3.0), 30)
    for diagram in (wide, deep):
        twin = pickle.loads(pickle.dumps(diagram))
        context = twin.create_default_context()
        for port in twin.input_ports:
            port.fix(context, 2.0)
        leaf = next(context.leaves())
        assert leaf.get("y") == leaf.get("k") * 2.0
