"""Ports and cache entries: declaration, values, fixing, and results that are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    EvaluationError,
    FlexureError,
    ValueRefusedError,
)
from tests.support.systems.blocks import Constant, Gain, Lag, Optional, diagram_of, nested


class Ported(fx.LeafSystem):
    """One port of every kind; the calculations are given from outside."""

    def __init__(
        self, name: str = "block", calc: Callable[[Any], Any] = lambda context: [0.0, 0.0]
    ) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 2, default=[1.0, 2.0], unit="N")
        self.message = self.declare_abstract_input("message", default={"text": "none"})
        self.y = self.declare_vector_output("y", 2, calc, prerequisites=[self.u], unit="m")
        self.entry = self.declare_cache_entry("entry", calc, prerequisites=[self.u])
        self.thing = self.declare_abstract_output("thing", calc, prerequisites=[self.u])


def result(value: Any) -> Any:
    """Return what a port of size 2 makes of the result of its calculation."""
    block = Ported(calc=lambda context: value)
    return block.y.eval(block.create_default_context())


# Declaration -----------------------------------------------------------------------------------


def test_ports_show_what_was_declared() -> None:
    block = fx.LeafSystem("block")
    u = block.declare_vector_input("u", 2, unit="N", element_names=["x", "y"], doc="push")
    a = block.declare_abstract_input("a")
    y = block.declare_vector_output("y", 0, lambda c: [], unit="m", doc="nothing")
    assert (u.name, u.size, u.unit, u.doc, u.index) == ("u", 2, "N", "push", 0)
    assert (u.element_names, u.default, u.kind) == (("x", "y"), None, "a vector of size 2")
    assert (a.size, a.is_abstract, a.kind, a.index) == (None, True, "an abstract value", 1)
    assert (y.size, y.is_abstract, y.origin, y.path) == (0, False, y, "y")
    assert list(block.input_ports) == [u, a]
    assert list(block.output_ports) == [y]
    assert repr(u) == "<InputPort 'block.u'>"


@pytest.mark.parametrize("size", [-1, 1.0, "1", None, True, [1]])
def test_a_size_that_is_no_count_is_refused(size: Any) -> None:
    block = fx.LeafSystem("block")
    with pytest.raises(DeclarationError, match=r"input port 'block\.u': expected an integer"):
        block.declare_vector_input("u", size)
    with pytest.raises(DeclarationError, match=r"output port 'block\.y': expected an integer"):
        block.declare_vector_output("y", size, lambda c: 0.0)
    assert block.handles == ()


@pytest.mark.parametrize("default", [[1.0], "ab", [math.nan, 0.0], [1.0, None]])
def test_a_default_that_does_not_fit_the_port_is_refused(default: Any) -> None:
    block = fx.LeafSystem("block")
    with pytest.raises(ValueRefusedError, match=r"Cannot declare input port 'block\.u'"):
        block.declare_vector_input("u", 2, default=default)
    assert block.handles == ()


def test_wrong_element_names_are_refused() -> None:
    block = fx.LeafSystem("block")
    with pytest.raises(DeclarationError, match="expected 2 different non-empty element names"):
        block.declare_vector_input("u", 2, element_names=["x"])
    with pytest.raises(DeclarationError, match="expected 1 different non-empty element names"):
        block.declare_vector_output("y", 1, lambda c: 0.0, element_names=["x", "y"])


COMPUTED: dict[str, Callable[..., Any]] = {
    "output port": lambda block, *given, **more: block.declare_abstract_output(*given, **more),
    "cache entry": lambda block, *given, **more: block.declare_cache_entry(*given, **more),
}


@pytest.mark.parametrize("what", COMPUTED)
@pytest.mark.parametrize(
    ("prerequisites", "text"),
    [
        ([Lag("other").x], "found <ContinuousState 'other.x'>"),
        (["first"], "found <LeafOutputPort 'block.first'>"),
        (["y"], "found 'y'"),
        ("time", "expected a list of prerequisites; found 'time' (str)"),
        (Lag("other").x, "expected a list of prerequisites; found <ContinuousState 'other.x'>"),
    ],
)
def test_bad_prerequisites_are_refused(what: str, prerequisites: Any, text: str) -> None:
    block = fx.LeafSystem("block")
    first = block.declare_vector_output("first", 1, abs, prerequisites=[fx.TIME])
    if prerequisites == ["first"]:
        prerequisites = [first]
    with pytest.raises(DeclarationError) as caught:
        COMPUTED[what](block, "bad", abs, prerequisites=prerequisites)
    assert str(caught.value).startswith(f"Cannot declare {what} 'block.bad': expected")
    assert text in str(caught.value)
    assert block.handles == (first,)


@pytest.mark.parametrize("what", COMPUTED)
def test_a_calculation_that_cannot_be_called_is_refused(what: str) -> None:
    block = fx.LeafSystem("block")
    with pytest.raises(DeclarationError, match="expected a method that takes a context; found 3"):
        COMPUTED[what](block, "bad", 3)
    assert block.handles == ()


# What calculations return ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "vector"),
    [
        ([1, 2], [1.0, 2.0]),
        ((1.0, np.float32(2.0)), [1.0, 2.0]),
        ([np.array([1.0]), 2], [1.0, 2.0]),
        ([np.array([1.0, 2.0])], [1.0, 2.0]),
        (np.array([True, False]), [1.0, 0.0]),
        (np.arange(4.0)[::2], [0.0, 2.0]),
        ([math.nan, math.inf], [math.nan, math.inf]),
    ],
)
def test_results_are_laid_end_to_end_as_float64(value: Any, vector: list[float]) -> None:
    port_value = result(value)
    assert port_value.dtype == np.float64
    np.testing.assert_array_equal(port_value, vector)


@pytest.mark.parametrize("value", [3, 3.0, np.float64(3.0), np.array(3.0), [3.0], [[3.0]]])
def test_a_scalar_result_is_a_vector_of_one(value: Any) -> None:
    block = fx.LeafSystem("block")
    y = block.declare_vector_output("y", 1, lambda c: value, prerequisites=[])
    np.testing.assert_array_equal(y.eval(block.create_default_context()), [3.0])


def test_a_port_of_size_zero_gives_an_empty_vector() -> None:
    block = fx.LeafSystem("block")
    y = block.declare_vector_output("y", 0, lambda c: [], prerequisites=[])
    assert y.eval(block.create_default_context()).shape == (0,)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "expected a vector of size 2; found None. Return the value from the method."),
        ([1.0], "expected a vector of size 2; found a vector of size 1."),
        (1.0, "expected a vector of size 2; found a real number."),
        (np.array([[1.0, 2.0]]), "expected a vector of size 2; found an array of shape (1, 2)."),
        (np.array([1j, 2.0]), "expected a vector of size 2; found array([0.+1.j, 2.+0.j])."),
        ([1j, 2.0], "expected a vector of size 2; found [1j, 2.0]."),
        ([None, 2.0], "expected a vector of size 2; found [None, 2.0]."),
        (["1", "2"], "expected a vector of size 2; found ['1', '2']."),
        ({}, "expected a vector of size 2; found {}."),
        ([[1.0, 2.0], [[3.0]]], "expected a vector of size 2; found [[1.0, 2.0], [[3.0]]]."),
    ],
)
def test_an_unusable_result_is_refused_with_path_and_time(value: Any, text: str) -> None:
    with pytest.raises(ValueRefusedError) as caught:
        result(value)
    assert str(caught.value) == f"Cannot use the result of output port 'block.y': {text}"
    assert caught.value.__notes__ == ["while computing output port 'block.y' at t = 0"]


@pytest.mark.parametrize(
    "value", [np.array([1.0, 2.0]), np.arange(4.0)[1:3], np.arange(4.0)[::2], [1.0, 2.0]]
)
def test_port_values_cannot_be_written_to(value: Any) -> None:
    block = Ported(calc=lambda context: value)
    context = block.create_default_context()
    for port_value in (block.y(context), block.y.eval(context), context.get("y")):
        with pytest.raises(ValueError, match="read-only"):
            port_value[0] = 5.0


def test_a_view_of_an_array_that_changes_later_is_copied() -> None:
    buffer = np.zeros(4)
    block = Ported(calc=lambda context: buffer[:2])
    context = block.create_default_context()
    y, entry = block.y(context), block.entry(context)
    buffer[:] = 9.0
    np.testing.assert_array_equal([y, entry], np.zeros((2, 2)))


def test_arrays_in_cache_entries_and_abstract_outputs_cannot_be_written_to() -> None:
    block = Ported(calc=lambda context: np.ones((2, 2)))
    context = block.create_default_context()
    for array in (block.entry(context), block.entry.eval(context), block.thing.eval(context)):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 5.0


@pytest.mark.parametrize("value", [None, {"a": 1}, "text", lambda: None])
def test_abstract_outputs_and_cache_entries_give_any_object(value: Any) -> None:
    block = Ported(calc=lambda context: value)
    context = block.create_default_context()
    assert block.thing.eval(context) is value
    assert block.entry.eval(context) is value


def test_inputs_cannot_be_written_to_inside_of_calculations() -> None:
    class Meddler(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("meddler")
            self.u = self.declare_vector_input("u", 1)
            self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

        def calc_y(self, context: Any) -> Any:
            u = self.u(context)
            u += 1.0
            return u

    source, meddler = Constant("source"), Meddler()
    builder = fx.DiagramBuilder()
    builder.add_all(source, meddler)
    builder.connect_chain("source", "meddler")
    context = builder.build().create_default_context()
    with pytest.raises(ValueError, match="read-only") as caught:
        meddler.y.eval(context)
    assert caught.value.__notes__ == ["while computing output port 'meddler.y' at t = 0"]
    np.testing.assert_array_equal(source.y.eval(context), [1.0])


# Fixing ----------------------------------------------------------------------------------------


def test_fixing_an_input_checks_copies_and_freezes() -> None:
    block = Ported()
    context = block.create_default_context()
    value = np.array([5.0, 6.0])
    block.u.fix(context, value)
    value[:] = 9.0
    for wrong in ([1.0], "ab", None, [math.inf, 0.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueRefusedError, match=r"Cannot fix input port 'block\.u': expected"):
            block.u.fix(context, wrong)
    np.testing.assert_array_equal(block.u.eval(context), [5.0, 6.0])
    default: Any = block.u.default
    for array in (block.u(context), default):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_abstract_inputs_carry_copies_of_any_object_even_none() -> None:
    block = Ported()
    context = block.create_default_context()
    assert block.message.eval(context) == {"text": "none"}
    message = {"text": "go"}
    block.message.fix(context, message)
    message["text"] = "stop"
    assert block.message.eval(context) == {"text": "go"}
    block.message.fix(context, None)
    assert block.message.eval(context) is None


def test_an_input_that_is_neither_connected_nor_fixed_is_refused_when_it_is_read() -> None:
    gain = Gain("gain")
    context = gain.create_default_context()
    text = (
        "Cannot evaluate input port 'gain.u': expected a connection or a fixed value; found "
        "neither. Connect the port, or call fix(context, value) on 'gain.u'."
    )
    for port in (gain.u, gain.y):
        with pytest.raises(EvaluationError) as caught:
            port.eval(context)
        assert str(caught.value) == text
    gain.u.fix(context, 4.0)
    assert gain.y.eval(context) == 8.0


def test_fixing_a_connected_port_is_refused_with_the_name_of_what_feeds_it() -> None:
    source, gain = Constant("source", 3.0), Gain("gain")
    builder = fx.DiagramBuilder("inner")
    builder.add_all(source, gain)
    builder.connect_chain("source", "gain")
    builder.export_output("gain.y")
    context = diagram_of(builder.build()).create_default_context()
    with pytest.raises(ContextError) as caught:
        gain.u.fix(context, 1.0)
    assert str(caught.value) == (
        "Cannot fix input port 'inner.gain.u': expected a port that is fed from outside of the "
        "root diagram; found a connection from 'inner.source.y'. Fix the ports of the root "
        "diagram, or change the wiring."
    )
    assert gain.y.eval(context) == 6.0


def test_a_port_that_leads_to_the_root_can_be_fixed_at_any_depth() -> None:
    gain = Gain("gain", 3.0)
    diagram = nested(gain, 3)
    context = diagram.create_default_context()
    inner = diagram["d2.d1"]
    for k, port in enumerate([gain.u, inner.input_port("u"), diagram.input_port("u")]):
        port.fix(context, k + 1.0)
        assert diagram.output_port("y").eval(context) == 3.0 * (k + 1.0)
        assert gain.u.eval(context) == inner.input_port("u").eval(context) == k + 1.0


def test_a_block_inside_of_a_diagram_can_still_be_used_alone() -> None:
    gain = Gain("gain", 3.0)
    source = Constant("source", 7.0)
    builder = fx.DiagramBuilder()
    builder.add_all(source, gain)
    builder.connect_chain("source", "gain")
    builder.build()
    alone = gain.create_default_context()
    gain.u.fix(alone, 2.0)
    assert gain.y.eval(alone) == 6.0


# Optional inputs -------------------------------------------------------------------------------


def test_an_optional_input_has_its_default_until_it_is_fixed() -> None:
    block = Optional("block", 10.0)
    context = block.create_default_context()
    block.u.fix(context, 1.0)
    assert block.y.eval(context) == 11.0
    block.v.fix(context, 20.0)
    assert block.y.eval(context) == 21.0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_exported_optional_input_stays_optional_through_nesting(depth: int) -> None:
    block = Optional("block", 10.0)
    diagram = nested(block, depth)
    context = diagram.create_default_context()
    diagram.input_port("u").fix(context, 1.0)
    np.testing.assert_array_equal(diagram.input_port("v").default, [10.0])
    assert diagram.output_port("y").eval(context) == 11.0
    diagram.input_port("v").fix(context, 20.0)
    assert diagram.output_port("y").eval(context) == 21.0


def test_an_optional_input_inside_can_be_fixed_without_being_exported() -> None:
    block = Optional("block", 10.0)
    diagram = diagram_of(diagram_of(block, name="inner"))
    context = diagram.create_default_context()
    diagram.input_port("inner.block.u").fix(context, 1.0)
    assert block.y.eval(context) == 11.0
    block.v.fix(context, 20.0)
    assert block.y.eval(context) == 21.0


def test_an_optional_export_that_the_outer_diagram_leaves_open_can_be_fixed() -> None:
    block = Optional("block", 10.0)
    inner = nested(block, 1)
    builder = fx.DiagramBuilder("outer")
    builder.add_all(inner, Constant("one", 1.0))
    builder.connect("one.y", "d1.u")
    diagram = builder.build()
    context = diagram.create_default_context()
    assert block.y.eval(context) == 11.0
    for k, port in enumerate([inner.input_port("v"), block.v]):
        port.fix(context, 20.0 + k)
        assert block.y.eval(context) == 21.0 + k


def test_an_export_that_feeds_a_port_without_default_must_be_fed() -> None:
    block = Optional("block")
    builder = fx.DiagramBuilder()
    builder.add(block)
    builder.export_input(block.v, block.u, name="both")
    diagram = builder.build()
    assert diagram.input_port("both").default is None
    context = diagram.create_default_context()
    with pytest.raises(EvaluationError, match=r"input port 'diagram\.both'"):
        block.y.eval(context)
    diagram.input_port("both").fix(context, 2.0)
    assert block.y.eval(context) == 4.0


# Wrong contexts --------------------------------------------------------------------------------


def test_ports_and_cache_entries_refuse_contexts_of_other_blocks() -> None:
    block, other = Ported("block"), Ported("other")
    context = diagram_of(block, other).create_default_context()["other"]
    for handle in (block.u, block.y, block.entry, block.thing):
        for use in (handle, handle.eval):
            with pytest.raises(ContextError, match=rf"{handle.what} '{handle.full_name}' with"):
                use(context)
    with pytest.raises(ContextError, match=r"input port 'block\.u' with this context"):
        block.u.fix(context, [1.0, 2.0])


def test_exported_ports_refuse_contexts_of_the_blocks_inside() -> None:
    gain = Gain("gain")
    diagram = nested(gain, 1)
    context = diagram.create_default_context()
    gain.u.fix(context, 1.0)
    for port in (diagram.input_port("u"), diagram.output_port("y")):
        assert port.eval(context) in (1.0, 2.0)
        with pytest.raises(ContextError, match=rf"'d1\.{port.name}' with this context"):
            port.eval(context["gain"])


@pytest.mark.parametrize("wrong", [None, Gain("gain")])
def test_what_is_no_context_is_refused(wrong: Any) -> None:
    block = Ported()
    for use in (block.u.eval, block.y.eval, block.entry.eval, lambda c: block.u.fix(c, [0, 0])):
        with pytest.raises(ContextError, match="expected a context, as made by"):
            use(wrong)


# Finding ---------------------------------------------------------------------------------------


def test_ports_are_found_by_name_and_by_index() -> None:
    block = Ported()
    assert block.input_port() is block.input_port("u") is block.input_port(0) is block.u
    assert block.input_port("message") is block.input_port(1) is block.message
    assert block.output_port(-1) is block.output_port("thing") is block.thing
    for name in ("w", 2, -3):
        with pytest.raises(FlexureError, match=r"of 'block'\. .*Valid names: 'u', 'message'"):
            block.input_port(name)
