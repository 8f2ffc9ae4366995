"""Leaf systems: names, freezing, finding, copying, and errors raised inside of equations."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    FlexureError,
    UnknownNameError,
)
from tests.support.systems.blocks import Constant, Gain, Lag, Oscillator, diagram_of, nested
from tests.support.tiers import for_each

DECLARATIONS: dict[str, Callable[[fx.LeafSystem, str], Any]] = {
    "numeric parameter": lambda s, name: s.declare_numeric_parameter(name, 1.0),
    "abstract parameter": lambda s, name: s.declare_abstract_parameter(name, None),
    "continuous state": lambda s, name: s.declare_continuous_state(z=1, name=name),
    "discrete state": lambda s, name: s.declare_discrete_state(name, 1.0),
    "abstract state": lambda s, name: s.declare_abstract_state(name, None),
    "vector input": lambda s, name: s.declare_vector_input(name, 1),
    "abstract input": lambda s, name: s.declare_abstract_input(name),
    "vector output": lambda s, name: s.declare_vector_output(name, 1, abs),
    "abstract output": lambda s, name: s.declare_abstract_output(name, abs),
    "cache entry": lambda s, name: s.declare_cache_entry(name, abs),
}
DECLARATIONS_WITHOUT_NAME: dict[str, Callable[[fx.LeafSystem, str], Any]] = {
    "publish": lambda s, _: s.declare_publish(abs, fx.diagrams.PerStep()),
    "discrete update": lambda s, _: s.declare_discrete_update(abs, fx.diagrams.PerStep()),
    "unrestricted update": lambda s, _: s.declare_unrestricted_update(abs, fx.diagrams.PerStep()),
    "record": lambda s, _: s.declare_record(list),
}


def contents(system: fx.LeafSystem) -> list[Any]:
    """List everything that was declared."""
    return [*system.handles, *system.events, *system.record_makers]


# Names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "_a", "A9", "joint-1", "x[0]", "größe", "a_b"])
def test_good_names_are_accepted(name: str) -> None:
    assert fx.LeafSystem(name).name == name
    assert fx.LeafSystem("block").declare_numeric_parameter(name, 1.0).path == name


@pytest.mark.parametrize("name", ["", "9a", "a.b", "a b", "-a", "[0]", "a\n", ".", None, 3])
def test_bad_names_are_refused(name: Any) -> None:
    with pytest.raises(DeclarationError, match="Cannot name a Gain"):
        Gain(name)
    for declare in DECLARATIONS.values():
        block = fx.LeafSystem("block")
        with pytest.raises(DeclarationError, match="Cannot name an item of 'block'"):
            declare(block, name)
        assert contents(block) == []


def test_an_empty_name_is_called_empty() -> None:
    with pytest.raises(DeclarationError, match=r"found an empty name\. Choose another name; dots"):
        fx.LeafSystem("")


@pytest.mark.parametrize("second", DECLARATIONS)
def test_all_items_of_a_block_share_one_namespace(second: str) -> None:
    block = fx.LeafSystem("block")
    first = block.declare_cache_entry("name", abs)
    with pytest.raises(DeclarationError) as caught:
        DECLARATIONS[second](block, "name")
    assert str(caught.value) == (
        "Cannot declare 'name' of 'block': expected a name that is used once in the block; found "
        "the cache entry of the same name."
    )
    assert contents(block) == [first]
    assert block.continuous_state is None


def test_items_are_listed_in_the_order_of_their_declaration() -> None:
    block = fx.LeafSystem("block")
    names = [f"item{k}" for k in range(len(DECLARATIONS))]
    declared = [
        declare(block, name) for declare, name in zip(DECLARATIONS.values(), names, strict=True)
    ]
    assert list(block.handles) == declared
    assert [handle.name for handle in block.handles] == names
    assert [block.find(name) for name in names] == declared


# Freezing --------------------------------------------------------------------------------------


def make_context(block: fx.LeafSystem) -> None:
    block.create_default_context()


def add_to_builder(block: fx.LeafSystem) -> None:
    fx.DiagramBuilder().add(block)


def ask_for_feedthrough(block: fx.LeafSystem) -> None:
    assert block.feedthrough == frozenset()


@for_each("use", [make_context, add_to_builder, ask_for_feedthrough])
@for_each("declare", [*DECLARATIONS.values(), *DECLARATIONS_WITHOUT_NAME.values()])
def test_declaring_after_first_use_is_refused(
    declare: Callable[[fx.LeafSystem, str], Any], use: Callable[[fx.LeafSystem], None]
) -> None:
    block = fx.LeafSystem("block")
    use(block)
    text = "expected declarations in the constructor, before the block is used"
    with pytest.raises(DeclarationError, match=f"Cannot declare .*: {text}"):
        declare(block, "late")
    assert contents(block) == []


# Finding ---------------------------------------------------------------------------------------


def test_unknown_items_are_refused_with_a_guess_and_the_valid_names() -> None:
    block = Lag("lag")
    with pytest.raises(UnknownNameError) as caught:
        block.find("tua")
    assert str(caught.value) == (
        "Cannot find 'tua' in 'lag'. Did you mean 'tau'? Valid names: 'tau', 'x', 'u', 'y'."
    )
    with pytest.raises(UnknownNameError, match="Cannot find input port 'y' of 'lag'"):
        block.input_port("y")
    with pytest.raises(UnknownNameError, match="Cannot find output port 1 of 'lag'"):
        block.output_port(1)
    with pytest.raises(LookupError):
        block.find("")


def test_nothing_is_below_a_leaf() -> None:
    lag = Lag("lag")
    assert lag.get_system("") is lag
    with pytest.raises(UnknownNameError, match="found the block 'lag', which has no blocks inside"):
        lag.get_system("x")


def test_only_outputs_are_signals() -> None:
    diagram = diagram_of(Lag("lag"))
    assert diagram.find_output("lag.y") is diagram["lag"].output_port()
    for path, what in {
        "lag.tau": "parameter",
        "lag.x": "continuous state",
        "lag.u": "input port",
    }.items():
        with pytest.raises(UnknownNameError, match=f"expected an output port; found the {what}"):
            diagram.find_output(path)


def test_paths_and_labels_follow_the_nesting() -> None:
    lag = Lag("lag")
    assert (lag.path, lag.label, lag.tau.path, lag.tau.full_name) == ("", "lag", "tau", "lag.tau")
    diagram = nested(lag, 2)
    assert (lag.path, lag.label) == ("d1.lag", "d1.lag")
    assert lag.tau.path == lag.tau.full_name == "d1.lag.tau"
    assert (diagram.path, diagram.label) == ("", "d2")
    assert diagram.input_port().path == "u"
    assert diagram.input_port().full_name == "d2.u"
    assert repr(lag) == "<Lag 'd1.lag'>"
    assert repr(diagram) == "<Diagram 'd2'>"


# Errors inside of equations --------------------------------------------------------------------


class Exploding(fx.LeafSystem):
    """Raises where it is told to."""

    def __init__(self, where: str, error: Exception) -> None:
        super().__init__("bomb")
        self.where = where
        self.error = error
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.entry = self.declare_cache_entry("entry", self.calc_entry, prerequisites=[self.u])
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.entry])

    def explode(self, where: str) -> None:
        if where == self.where:
            raise self.error

    def calc_entry(self, context: Any) -> Any:
        self.explode("entry")
        return self.u(context)

    def calc_y(self, context: Any) -> Any:
        self.explode("y")
        return self.entry(context)

    def calc_time_derivatives(self, context: Any) -> Any:
        self.explode("derivatives")
        return self.u(context)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("ouch"), KeyError("ouch"), FlexureError("ouch")]
)
@pytest.mark.parametrize(
    ("where", "note"),
    [
        ("entry", "while computing cache entry 'inner.bomb.entry' at t = 1.25"),
        ("y", "while computing output port 'inner.bomb.y' at t = 1.25"),
        ("derivatives", "while computing the time derivatives of 'inner.bomb' at t = 1.25"),
    ],
)
def test_an_error_keeps_its_type_and_gets_one_note_with_path_and_time(
    where: str, note: str, error: Exception
) -> None:
    bomb, lag, source = Exploding(where, type(error)(*error.args)), Lag("lag"), Constant("source")
    inner = fx.DiagramBuilder("inner")
    inner.add_all(source, bomb)
    inner.connect_chain("source", "bomb")
    inner.export_output("bomb.y")
    builder = fx.DiagramBuilder("outer")
    builder.add_all(inner.build(), lag)
    builder.connect_chain("inner", "lag")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.time = 1.25
    uses: list[Callable[[], Any]] = [lambda: diagram.eval_time_derivatives(context)]
    if where != "derivatives":
        uses += [lambda: lag.u.eval(context), lambda: bomb.y.eval(context)]
    for use in uses:
        bomb.error = type(error)(*error.args)
        with pytest.raises(type(error), match="ouch") as caught:
            use()
        assert caught.value.__notes__ == [note]


def test_after_an_error_the_context_can_still_be_used() -> None:
    bomb = Exploding("y", ValueError("ouch"))
    context = bomb.create_default_context()
    bomb.u.fix(context, 3.0)
    with pytest.raises(ValueError, match="ouch"):
        bomb.y.eval(context)
    bomb.where = "nowhere"
    assert bomb.y.eval(context) == 3.0


# Derivatives and break times -------------------------------------------------------------------


def test_derivatives_ask_for_a_context_of_the_system() -> None:
    lag = Lag("lag")
    with pytest.raises(ContextError, match="Cannot use 'lag': expected a context"):
        lag.eval_time_derivatives(None)  # type: ignore[arg-type]
    with pytest.raises(ContextError, match="Cannot use 'lag' with this context"):
        lag.eval_time_derivatives(Lag("lag").create_default_context())


def test_a_system_without_state_has_an_empty_derivative() -> None:
    gain = Gain("gain")
    assert gain.eval_time_derivatives(gain.create_default_context()).shape == (0,)


def test_a_block_has_no_break_times_unless_it_says_so() -> None:
    class Stepping(fx.LeafSystem):
        def calc_next_break_time(self, context: Any) -> float:
            return 1.0

    lag = Lag("lag")
    assert lag.calc_next_break_time(lag.create_default_context()) == math.inf
    assert not lag.has_break_times
    assert Stepping("stepping").has_break_times


# Copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_pickled_block_is_a_separate_block_with_the_same_equations(
    duplicate: Callable[[Any], Any], used: bool
) -> None:
    block = Oscillator("block", k=9.0)
    if used:
        block.create_default_context()
    twin = duplicate(block)
    context = twin.create_default_context()
    np.testing.assert_array_equal(twin.eval_time_derivatives(context), [2.0, -9.0, 4.0])
    np.testing.assert_array_equal(twin.position.eval(context), [1.0])
    assert [handle.name for handle in twin.handles] == [handle.name for handle in block.handles]
    assert all(handle.system is twin for handle in twin.handles)
    for one, other in ((block, twin), (twin, block)):
        with pytest.raises(ContextError, match=r"Cannot use parameter 'block\.k'"):
            one.k(other.create_default_context())
