"""What an output needs: as declared, as traced, or as assumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import AlgebraicLoopError
from flexure.diagrams.scalars import array, where
from flexure.diagrams.systems.feedthrough import Needs, needs_of
from flexure.diagrams.values.kinds import (
    ABSTRACT,
    ALL_KINDS,
    CONTINUOUS,
    DISCRETE,
    INPUT,
    PARAMETER,
    TIME_KIND,
)
from tests.support.systems.blocks import Gain, Lag

Equation = Callable[["Block", Any], Any]


class Block(fx.LeafSystem):
    """A block with everything that an equation can read; its one output reads what it is told."""

    def __init__(self, equation: Equation, prerequisites: Any = None, size: int | None = 1) -> None:
        super().__init__("block")
        self.k = self.declare_numeric_parameter("k", 2.0)
        self.table = self.declare_abstract_parameter("table", {"a": 1.0})
        self.x = self.declare_continuous_state(q=1, v=1, default=[3.0, 4.0])
        self.n = self.declare_discrete_state("n", 5.0)
        self.mode = self.declare_abstract_state("mode", "idle")
        self.u = self.declare_vector_input("u", 2, default=[6.0, 7.0])
        self.w = self.declare_vector_input("w", 1, default=8.0)
        self.message = self.declare_abstract_input("message", default=9.0)
        self.of_w = self.declare_cache_entry(
            "of_w", lambda c: 2.0 * self.w(c), prerequisites=[self.w]
        )
        self.of_n = self.declare_cache_entry("of_n", lambda c: [self.n(c), self.k(c)])
        self.other = self.declare_vector_output("other", 1, lambda c: -self.of_w(c))

        def calc(context: Any) -> Any:
            return equation(self, context)

        listed = None if prerequisites is None else prerequisites(self)
        if size is None:
            self.y = self.declare_abstract_output("y", calc, prerequisites=listed)
        else:
            self.y = self.declare_vector_output("y", size, calc, prerequisites=listed)

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(2)


def found(equation: Equation, size: int | None = 1) -> Needs:
    """Return what an output with undeclared prerequisites is found to need."""
    return needs_of(Block(equation, size=size).y)


# The numbers of the inputs of Block.
U, W, MESSAGE = range(3)
#: What is assumed of an output that cannot be traced.
EVERYTHING = Needs(ALL_KINDS & ~INPUT, (U, W, MESSAGE), (0, 1), assumed=True)


# Declared --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prerequisites", "needs"),
    [
        (lambda b: [], Needs(PARAMETER, (), ())),
        (lambda b: [fx.TIME], Needs(PARAMETER | TIME_KIND, (), ())),
        (lambda b: [b.x], Needs(PARAMETER | CONTINUOUS, (), ())),
        (lambda b: [b.n], Needs(PARAMETER | DISCRETE, (), ())),
        (lambda b: [b.mode], Needs(PARAMETER | ABSTRACT, (), ())),
        (lambda b: [b.k, b.table], Needs(PARAMETER, (), ())),
        (lambda b: [b.w, b.message], Needs(PARAMETER, (W, MESSAGE), ())),
        (lambda b: [b.of_n], Needs(PARAMETER, (), (1,))),
        (
            lambda b: (item for item in (b.u, b.x, fx.TIME, b.of_w)),
            Needs(PARAMETER | CONTINUOUS | TIME_KIND, (U,), (0,)),
        ),
    ],
)
def test_what_is_declared_is_believed(prerequisites: Any, needs: Needs) -> None:
    block = Block(lambda b, c: b.u(c)[0], prerequisites)
    assert needs_of(block.y) == needs


def test_a_declaration_covers_the_inputs_behind_a_cache_entry() -> None:
    block = Block(lambda b, c: b.of_w(c), lambda b: [b.of_w])
    assert {pair for pair in block.feedthrough if pair[1] == "y"} == {("w", "y")}


# Traced ----------------------------------------------------------------------------------------


def test_what_is_not_declared_is_found_by_tracing() -> None:
    for equation, needs in [
        (lambda b, c: 3.0, Needs(PARAMETER, (), ())),
        (lambda b, c: b.k(c), Needs(PARAMETER, (), ())),
        (lambda b, c: c.time, Needs(PARAMETER | TIME_KIND, (), ())),
        (lambda b, c: b.x.v(c), Needs(PARAMETER | CONTINUOUS, (), ())),
        (lambda b, c: b.n.get(c) ** 2, Needs(PARAMETER | DISCRETE, (), ())),
        (lambda b, c: b.w.eval(c), Needs(PARAMETER, (W,), ())),
        (lambda b, c: b.of_w(c), Needs(PARAMETER, (W,), ())),
        (lambda b, c: b.of_n.eval(c)[0], Needs(PARAMETER | DISCRETE, (), ())),
        (lambda b, c: b.other(c) + b.k(c), Needs(PARAMETER, (W,), ())),
        (lambda b, c: c.accuracy or c.time, Needs(PARAMETER | TIME_KIND, (), ())),
        (
            lambda b, c: where(b.x(c)[0] > 0.0, b.u(c)[1], np.sin(c.time)),
            Needs(PARAMETER | CONTINUOUS | TIME_KIND, (U,), ()),
        ),
        (
            lambda b, c: np.linalg.norm(array([*b.u(c), b.w(c)[0]])),
            Needs(PARAMETER, (U, W), ()),
        ),
        (lambda b, c: np.clip(b.u(c)[:1], -1.0, b.k(c)), Needs(PARAMETER, (U,), ())),
    ]:
        assert found(equation) == needs


def test_a_list_of_results_is_traced() -> None:
    assert found(lambda b, c: [b.x(c)[0], b.w(c)], size=2) == Needs(
        PARAMETER | CONTINUOUS, (W,), ()
    )


def test_an_abstract_output_of_numbers_is_traced() -> None:
    equation: Equation = lambda b, c: {"sum": b.w(c) + b.x(c)[0]}  # noqa: E731
    assert found(equation, size=None) == Needs(PARAMETER | CONTINUOUS, (W,), ())


def test_a_value_that_is_read_counts_even_when_the_result_does_not_contain_it() -> None:
    for equation in [
        lambda b, c: (b.x(c), b.w(c))[0][:1],
        lambda b, c: b.x(c)[:1] + 0.0 * b.w(c),
        lambda b, c: b.x(c)[:1] + b.w(c) - b.w(c),
    ]:
        assert found(equation) == Needs(PARAMETER | CONTINUOUS, (W,), ())


def test_tracing_leaves_warnings_and_values_alone() -> None:
    block = Block(lambda b, c: np.log(b.k(c) - 2.0) / np.float64(0.0) + b.w(c))
    assert needs_of(block.y) == Needs(PARAMETER, (W,), ())


def test_each_output_is_traced_once() -> None:
    calls = []

    def equation(block: Block, context: Any) -> Any:
        calls.append(context)
        return block.w(context)

    block = Block(equation)
    for _ in range(3):
        assert needs_of(block.y) == Needs(PARAMETER, (W,), ())
        assert {pair for pair in block.feedthrough if pair[1] == "y"} == {("w", "y")}
        block.create_default_context()
    assert len(calls) == 1


# Assumed ---------------------------------------------------------------------------------------


def raises(block: Block, context: Any) -> Any:
    raise RuntimeError("no tracing here")


def test_what_cannot_be_traced_is_assumed_to_need_everything() -> None:
    for equation in [
        lambda b, c: 1.0 if b.x(c)[0] > 0.0 else 2.0,
        lambda b, c: float(b.x(c)[0]),
        lambda b, c: math.sin(c.time),
        lambda b, c: max(b.u(c)),
        lambda b, c: b.table(c)["a"],
        lambda b, c: {"idle": 1.0}[b.mode(c)],
        lambda b, c: b.message(c),
        lambda b, c: None,
        lambda b, c: [1.0, 2.0],
        raises,
    ]:
        assert found(equation) == EVERYTHING


def test_swallowing_the_refusal_of_an_abstract_value_does_not_hide_it() -> None:
    def equation(block: Block, context: Any) -> Any:
        try:
            return block.mode(context) == "idle"
        except Exception:
            return 0.0

    assert found(equation) == EVERYTHING


def test_an_assumed_cache_entry_does_not_need_itself_or_later_ones() -> None:
    block = fx.LeafSystem("block")
    u = block.declare_vector_input("u", 1, default=2.0)
    first = block.declare_cache_entry("first", lambda c: float(u(c)[0]))
    second = block.declare_cache_entry("second", lambda c: float(first(c)) + 1.0)
    y = block.declare_vector_output("y", 1, lambda c: float(second(c)))
    assert needs_of(first) == Needs(ALL_KINDS & ~INPUT, (0,), (), assumed=True)
    assert needs_of(second) == Needs(ALL_KINDS & ~INPUT, (0,), (0,), assumed=True)
    context = block.create_default_context()
    assert y.eval(context) == 3.0
    u.fix(context, 5.0)
    assert y.eval(context) == 6.0


@pytest.mark.parametrize("path", ["k", "table", "x", "n", "mode", "u", "w", "message"])
def test_an_assumed_output_is_stale_after_any_change(path: str) -> None:
    count = 0

    def equation(block: Block, context: Any) -> Any:
        nonlocal count
        count += isinstance(context, fx.Context)
        return {"idle": float(count)}[block.mode(context)]

    block = Block(equation)
    context = block.create_default_context()
    assert [block.y.eval(context)[0] for _ in range(2)] == [1.0, 1.0]
    context.set(path, context.get(path))
    assert [block.y.eval(context)[0] for _ in range(2)] == [2.0, 2.0]
    context.time = 3.0
    assert block.y.eval(context) == 3.0


# In diagrams -----------------------------------------------------------------------------------


class Traced(fx.LeafSystem):
    """Two traced outputs: one of the input, one of the state."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.x = self.declare_continuous_state(z=1, default=3.0)
        self.u = self.declare_vector_input("u", 1)
        self.direct = self.declare_vector_output("direct", 1, lambda c: np.sin(self.u(c)))
        self.late = self.declare_vector_output("late", 1, lambda c: 2.0 * self.x(c))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.u(context)


def test_traced_feedthrough_is_by_input_and_output() -> None:
    assert Traced("block").feedthrough == {("u", "direct")}


def test_traced_outputs_of_state_break_loops_and_others_do_not() -> None:
    builder = fx.DiagramBuilder()
    block = builder.add(Traced("block"))
    builder.add(Gain("k", how="traced"))
    builder.connect_chain(block.late, "k", block.u)
    diagram = builder.build()
    context = diagram.create_default_context()
    np.testing.assert_array_equal(diagram.eval_time_derivatives(context), [12.0])
    np.testing.assert_array_equal(block.direct.eval(context), np.sin([12.0]))

    builder = fx.DiagramBuilder()
    block = builder.add(Traced("block"))
    builder.add(Gain("k", how="traced"))
    builder.connect_chain(block.direct, "k", block.u)
    with pytest.raises(AlgebraicLoopError, match=r"block\.u -> block\.direct"):
        builder.build()


def test_a_traced_output_that_only_reads_its_input_is_in_the_loop_at_build_time() -> None:
    class Careless(fx.LeafSystem):
        """Computes all signals in one method, and shows one of them."""

        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.x = self.declare_continuous_state(z=1)
            self.u = self.declare_vector_input("u", 1)
            self.y = self.declare_vector_output("y", 1, lambda c: self.calc_signals(c)[0])

        def calc_signals(self, context: Any) -> Any:
            return self.x(context), self.u(context)

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.calc_signals(context)[1]

    builder = fx.DiagramBuilder()
    builder.add_all(Careless("a"), Lag("lag"), Careless("b"))
    builder.connect_chain("a", "b", "a.u")
    builder.connect("a.y", "lag.u")
    with pytest.raises(AlgebraicLoopError, match=r"a\.u -> a\.y -> b\.u -> b\.y"):
        builder.build()
