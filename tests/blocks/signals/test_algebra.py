"""Blocks without memory: what they compute, what they need at once, and what they refuse."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import flexure as fx
from flexure.blocks.signals.algebra import (
    Demultiplexer,
    FunctionBlock,
    Gain,
    MatrixGain,
    Multiplexer,
    PassThrough,
    PortSwitch,
    Product,
    Selector,
    Sum,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, TraceError, ValueRefusedError
from flexure.diagrams.systems.feedthrough import Probe, needs_of
from flexure.diagrams.values.symbolic_values import DISCRETE, INPUT, PARAMETER, STATE, TIME
from tests.support.tiers import for_each

MODERATE = st.floats(-1e6, 1e6)


def output(block: fx.LeafSystem, **inputs: Any) -> Any:
    """Compute the output y from the inputs given by name."""
    context = block.create_default_context()
    for name, value in inputs.items():
        context.set(name, value)
    return context.get("y")


def needs(block: fx.LeafSystem) -> dict[str, tuple[int, set[str]]]:
    """Return the kinds of values and the inputs that each output needs."""
    found = {}
    for port in block.output_ports:
        need = needs_of(port)
        assert not need.assumed
        found[port.name] = need.mask, {block.input_ports[index].name for index in need.inputs}
    return found


def without_prerequisites(block: fx.LeafSystem) -> fx.LeafSystem:
    """Copy a block so that what its outputs need has to be found by tracing."""
    twin = copy.deepcopy(block)
    twin.known_needs.clear()
    for port in twin.output_ports:
        port.prerequisites = None
    return twin


def on_symbols(calc: Callable[[Any], Any], context: Any) -> Any:
    """Run a calculation of a block on symbols, then give them the values of a context."""
    block = context.system
    known = {((TIME, 0, 0), 0): context.time}
    families = {
        (STATE, 0, 0): context.continuous_state,
        **{(PARAMETER, 0, p.index): p(context) for p in block.numeric_parameters},
        **{(DISCRETE, 0, state.index): state(context) for state in block.discrete_states},
        **{(INPUT, 0, port.index): port(context) for port in block.input_ports},
    }
    for key, value in families.items():
        known |= {(key, k): entry for k, entry in enumerate(np.ravel(value))}
    return scalars.evaluate(scalars.array(calc(Probe(block))), known)


def average(first: Any, second: Any) -> Any:
    return (first + second) / 2.0


BLOCKS: dict[str, tuple[fx.LeafSystem, set[tuple[str, str]]]] = {
    "gain": (Gain("b", [2.0, -3.0]), {("u", "y")}),
    "matrix gain": (MatrixGain("b", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), {("u", "y")}),
    "sum": (Sum("b", "-+-", size=2), {("u1", "y"), ("u2", "y"), ("u3", "y")}),
    "product": (Product("b", "/*/", size=2), {("u1", "y"), ("u2", "y"), ("u3", "y")}),
    "multiplexer": (Multiplexer("b", [2, 1]), {("u1", "y"), ("u2", "y")}),
    "demultiplexer": (Demultiplexer("b", [2, 1]), {("u", "y1"), ("u", "y2")}),
    "selector": (Selector("b", 3, [2, 0, 2]), {("u", "y")}),
    "pass-through": (PassThrough("b", 2), {("u", "y")}),
    "port switch": (
        PortSwitch("b", 3, 2),
        {("u1", "y"), ("u2", "y"), ("u3", "y"), ("select", "y")},
    ),
    "function": (
        FunctionBlock("b", average, inputs={"left": 2, "right": 2}, output_size=2),
        {("left", "y"), ("right", "y")},
    ),
}


@pytest.mark.parametrize(("block", "pairs"), BLOCKS.values(), ids=BLOCKS)
def test_feedthrough_is_that_of_the_equations(
    block: fx.LeafSystem, pairs: set[tuple[str, str]]
) -> None:
    assert block.feedthrough == pairs
    assert needs(block) == needs(without_prerequisites(block))


@pytest.mark.parametrize(("block", "_"), BLOCKS.values(), ids=BLOCKS)
def test_outputs_are_the_same_on_symbols_and_after_pickling(block: fx.LeafSystem, _: Any) -> None:
    twin = pickle.loads(pickle.dumps(block))
    contexts = [block.create_default_context(), twin.create_default_context()]
    for k, port in enumerate(block.input_ports):
        assert port.size is not None
        value = np.linspace(1.5, 2.5, port.size) + k
        for context in contexts:
            context.set(port.name, value)
    for y in block.output_ports:
        expected = y(contexts[0])
        assert np.all(np.isfinite(expected))
        np.testing.assert_allclose(on_symbols(y.compute, contexts[0]), expected, rtol=1e-15)
        np.testing.assert_array_equal(contexts[1].get(y.name), expected)


@pytest.mark.parametrize(
    "block",
    [
        Gain("b", 2.0, size=0),
        MatrixGain("b", np.zeros((0, 0))),
        Sum("b", size=0),
        Product("b", size=0),
        Multiplexer("b", [0, 0]),
        PassThrough("b", 0),
        PortSwitch("b", size=0),
        FunctionBlock("b", np.abs, inputs=0, output_size=0),
    ],
    ids=lambda block: type(block).__name__,
)
def test_ports_without_components_are_fine(block: fx.LeafSystem) -> None:
    nothing = {port.name: [0.0] * (port.size or 0) for port in block.input_ports}
    assert output(block, **nothing).shape == (0,)


# Gains ---------------------------------------------------------------------------------------


@for_each(
    ("gain", "size", "expected"),
    [(3.0, 2, [30.0, -60.0]), ([3.0, 0.5], None, [30.0, -10.0]), ([3.0, 0.5], 2, [30.0, -10.0])],
)
def test_gain_multiplies_each_component(gain: Any, size: int | None, expected: list[float]) -> None:
    assert output(Gain("k", gain, size), u=[10.0, -20.0]).tolist() == expected


@given(arrays(float, (3, 2), elements=MODERATE), arrays(float, 2, elements=MODERATE))
def test_matrix_gain_is_rows_times_input(matrix: Any, u: Any) -> None:
    expected = [row[0] * u[0] + row[1] * u[1] for row in matrix]
    np.testing.assert_allclose(
        output(MatrixGain("K", matrix), u=u), expected, rtol=1e-12, atol=1e-3
    )


def test_gains_are_set_in_the_context_of_the_diagram_around_them() -> None:
    builder = fx.DiagramBuilder("chain")
    builder.add_all(Gain("gain", 1.0, size=2), MatrixGain("mix", np.eye(2)))
    builder.connect("gain.y", "mix.u")
    builder.export_input("gain.u", name="u")
    builder.export_output("mix.y", name="y")
    chain = builder.build()
    context, untouched = chain.create_default_context(), chain.create_default_context()
    for each in (context, untouched):
        each.set("u", [1.0, 2.0])
    assert context.get("y").tolist() == [1.0, 2.0]
    context.set("gain.gain", 10.0)
    context.set("mix.matrix", [[0.0, 1.0], [1.0, 0.0]])
    assert context.get("y").tolist() == [20.0, 10.0]
    assert untouched.get("y").tolist() == [1.0, 2.0]


# Sums and products ---------------------------------------------------------------------------


def test_inputs_are_combined_from_left_to_right() -> None:
    for block, expected in [
        (Sum("s", "+++"), 5.0 + 2.0 + 10.0),
        (Sum("s", "+-+"), 5.0 - 2.0 + 10.0),
        (Sum("s", "-+-"), -5.0 + 2.0 - 10.0),
        (Sum("s", "---"), -5.0 - 2.0 - 10.0),
        (Product("p", "***"), 5.0 * 2.0 * 10.0),
        (Product("p", "*/*"), 5.0 / 2.0 * 10.0),
        (Product("p", "/*/"), 1.0 / 5.0 * 2.0 / 10.0),
    ]:
        assert output(block, u1=5.0, u2=2.0, u3=10.0).tolist() == [expected]


@given(arrays(float, (2, 3), elements=MODERATE))
def test_error_sum_is_exactly_the_difference(u: Any) -> None:
    assert output(Sum("error", "+-", size=3), u1=u[0], u2=u[1]).tolist() == (u[0] - u[1]).tolist()


def test_one_input_is_enough() -> None:
    assert output(Sum("s", "-"), u1=3.0).tolist() == [-3.0]
    assert output(Product("p", "/"), u1=4.0).tolist() == [0.25]


def test_division_by_zero_follows_ieee_with_the_warning_of_numpy() -> None:
    ratio = Product("ratio", "*/", size=3)
    with pytest.warns(RuntimeWarning):
        quotients = output(ratio, u1=[1.0, -1.0, 0.0], u2=[0.0, 0.0, 0.0])
    np.testing.assert_array_equal(quotients, [np.inf, -np.inf, np.nan])


def test_error_sum_closes_a_loop_through_its_named_ports() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(Sum("error", "+-"), Gain("controller", 2.0))
    builder.connect("error.y", "controller.u")
    builder.export_input("error.u1", name="setpoint")
    builder.export_input("error.u2", name="measurement")
    builder.export_output("controller.y", name="effort")
    loop = builder.build()
    context = loop.create_default_context()
    context.set("setpoint", 5.0)
    context.set("measurement", 1.5)
    assert context.get("effort").tolist() == [7.0]


# Routing -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_multiplexer_undoes_demultiplexer(sizes: list[int]) -> None:
    builder = fx.DiagramBuilder("round_trip")
    builder.add_all(Demultiplexer("split", sizes), Multiplexer("join", sizes))
    for number in range(1, len(sizes) + 1):
        builder.connect(f"split.y{number}", f"join.u{number}")
    builder.export_input("split.u", name="u")
    builder.export_output("join.y", name="y")
    context = builder.build().create_default_context()
    u = np.arange(1.0, 1.0 + sum(sizes))
    context.set("u", u)
    assert context.get("y").tolist() == u.tolist()


def test_demultiplexer_gives_consecutive_parts() -> None:
    context = Demultiplexer("split", [2, 1, 3]).create_default_context()
    context.set("u", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    parts = [context.get(f"y{number}").tolist() for number in (1, 2, 3)]
    assert parts == [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]


@given(st.permutations(range(5)))
def test_selector_of_the_inverse_permutation_undoes_a_selector(order: list[int]) -> None:
    there, back = Selector("there", 5, order), Selector("back", 5, np.argsort(order))
    u = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    mixed = output(there, u=u)
    assert mixed.tolist() == [u[index] for index in order]
    assert output(back, u=mixed).tolist() == u.tolist()


def test_selector_does_not_follow_its_list_of_indices_when_that_changes() -> None:
    indices = [0, 0, 2]
    pick = Selector("pick", 3, indices)
    indices[0] = 1
    assert output(pick, u=[5.0, 6.0, 7.0]).tolist() == [5.0, 5.0, 7.0]


@pytest.mark.parametrize(
    ("select", "expected"),
    [(1.0, 10.0), (1.999, 10.0), (2.0, 20.0), (2.5, 20.0), (3.0, 30.0), (-7.0, 10.0), (99.0, 30.0)],
)
def test_port_switch_rounds_down_and_stays_within_its_ports(select: float, expected: float) -> None:
    inputs = {f"u{number}": [10.0 * number, -number] for number in (1, 2, 3)}
    y = output(PortSwitch("switch", 3, 2), select=select, **inputs)
    assert y.tolist() == [expected, -expected / 10.0]


def test_port_switch_passes_no_port_when_select_is_not_a_number() -> None:
    builder = fx.DiagramBuilder("choice")
    builder.add_all(FunctionBlock("broken", np.sqrt), PortSwitch("switch"))
    builder.connect("broken.y", "switch.select")
    builder.export_input("broken.u", "switch.u1", "switch.u2", name="u")
    context = builder.build().create_default_context()
    context.set("u", -1.0)
    with pytest.warns(RuntimeWarning, match="sqrt"):
        assert np.isnan(context.get("switch.y"))


def test_pass_through_hands_on_the_very_value() -> None:
    junction = PassThrough("junction", 2)
    context = junction.create_default_context()
    junction.u.fix(context, [1.0, 2.0])
    assert junction.y(context) is junction.u(context)


# Functions -----------------------------------------------------------------------------------


def test_function_takes_inputs_in_the_order_of_their_declaration() -> None:
    block = FunctionBlock("f", np.arctan2, inputs={"rise": 1, "run": 1})
    assert output(block, rise=1.0, run=0.0).tolist() == [np.pi / 2.0]


@pytest.mark.parametrize(
    ("function", "size", "expected"),
    [
        (lambda u: u[0] * u[1], 1, [12.0]),
        (lambda u: [u[1], u[0] - u[1]], 2, [4.0, -1.0]),
        (lambda u: [u, 7.0], 3, [3.0, 4.0, 7.0]),
        (np.square, 2, [9.0, 16.0]),
        (lambda u: u, 2, [3.0, 4.0]),
    ],
    ids=["number", "list", "list of parts", "ufunc", "argument"],
)
def test_function_may_return_numbers_lists_and_vectors(
    function: Any, size: int, expected: list[float]
) -> None:
    block = FunctionBlock("f", function, inputs=2, output_size=size)
    assert output(block, u=[3.0, 4.0]).tolist() == expected


def test_function_of_time_is_computed_anew_when_time_passes() -> None:
    block = FunctionBlock("f", lambda t, u: t * u, with_time=True)
    context = block.create_default_context()
    context.set("u", 10.0)
    assert context.get("y").tolist() == [0.0]
    context.time = 2.0
    assert context.get("y").tolist() == [20.0]
    assert needs(block) == needs(without_prerequisites(block))


def test_function_of_time_alone_is_a_source() -> None:
    block = FunctionBlock("f", lambda t: 3.0 * t, inputs={}, with_time=True)
    context = block.create_default_context()
    context.time = 2.0
    assert context.get("y").tolist() == [6.0]
    assert block.feedthrough == frozenset()


def test_function_with_a_branch_is_interpreted_and_names_its_line_when_traced() -> None:
    def staircase(u: Any) -> float:
        return 1.0 if u[0] > 0.0 else -1.0

    block = FunctionBlock("f", staircase)
    assert output(block, u=2.0).tolist() == [1.0]
    assert output(block, u=-2.0).tolist() == [-1.0]
    assert block.feedthrough == {("u", "y")}
    with pytest.raises(TraceError, match=r"1\.0 if u\[0\] > 0\.0 else -1\.0"):
        block.y.compute(Probe(block))


def test_array_that_a_function_returns_remains_its_own() -> None:
    table = np.array([1.0, 2.0])
    block = FunctionBlock("f", lambda u: table, output_size=2)
    context = block.create_default_context()
    context.set("u", 0.0)
    y = context.get("y")
    table[0] = 5.0
    assert y.tolist() == [1.0, 2.0]


def test_result_of_the_wrong_size_names_the_port() -> None:
    with pytest.raises(ValueRefusedError, match=r"'f\.y': expected a vector of size 3; found .* 1"):
        output(FunctionBlock("f", np.abs, output_size=3), u=1.0)


# Refusals ------------------------------------------------------------------------------------


@for_each(
    ("kind", "arguments", "text"),
    [
        (Gain, ([1.0, 2.0], 3), r"found gain of shape \(2,\), size of shape \(3,\)"),
        (Gain, ([[1.0]],), r"expected numbers, or vectors of one size; found .* \(1, 1\)"),
        (Gain, ([[1.0], [2.0, 3.0]],), "expected real numbers for gain"),
        (Gain, (1.0, -1), r"expected an integer size >= 0; found -1"),
        (MatrixGain, ([1.0, 2.0],), r"expected a matrix of shape \(m, n\); found shape \(2,\)"),
        (Sum, ("",), r"expected a string of '\+' and '-', one per input; found ''"),
        (Sum, ("+*",), r"found '\+\*'"),
        (Product, ("*+",), r"expected a string of '\*' and '/', one per input"),
        (Product, (3,), "found 3"),
        (Multiplexer, ([],), r"expected a sequence of sizes; found \[\]"),
        (Multiplexer, (3,), "expected a sequence of sizes; found 3"),
        (Multiplexer, ([1, 1.5],), r"\.u2': expected an integer size >= 0; found 1\.5"),
        (Demultiplexer, ([1, -1],), "expected an integer size >= 0; found -1"),
        (Selector, (3, []), r"expected a sequence of indices; found \[\]"),
        (Selector, (3, [0, 3]), r"expected integer indices from 0 to 2; found \[0, 3\]"),
        (Selector, (3, [-1]), r"found \[-1\]"),
        (Selector, (2, [True]), r"found \[True\]"),
        (PortSwitch, (1,), "expected num_inputs to be an integer >= 2; found 1"),
        (FunctionBlock, (3.0,), r"expected a function; found 3\.0"),
        (FunctionBlock, (np.abs, [1, 2]), r"\.u': expected an integer size"),
        (FunctionBlock, (np.abs, {"y": 1}), "found the input port of the same name"),
    ],
)
def test_impossible_structure_is_refused(kind: Any, arguments: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=rf"'b.*{text}"):
        kind("b", *arguments)


@pytest.mark.parametrize("gain", [np.nan, np.inf, [1.0, np.nan]])
def test_gain_that_is_not_finite_is_refused_at_once_and_in_a_context(gain: Any) -> None:
    with pytest.raises(ValueRefusedError, match=r"k\.gain"):
        Gain("k", gain)
    block = Gain("k", [1.0, 1.0])
    context = block.create_default_context()
    with pytest.raises(ValueRefusedError, match=r"k\.gain"):
        block.gain.set(context, np.broadcast_to(gain, 2))
    assert block.gain(context).tolist() == [1.0, 1.0]
