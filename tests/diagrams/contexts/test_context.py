"""Contexts: time, parts of the state, paths, clones, equality, random draws, threads."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, UnknownNameError, ValueRefusedError
from tests.support.systems.blocks import (
    Constant,
    Gain,
    Lag,
    Oscillator,
    diagram_of,
    nested,
)
from tests.support.tiers import for_each


class Everything(fx.LeafSystem):
    """One of everything that a context holds."""

    def __init__(self, name: str = "all") -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", [1.0, 2.0])
        self.table = self.declare_abstract_parameter("table", {"a": [1, 2]})
        self.x = self.declare_continuous_state(q=1, v=1, z=1)
        self.n = self.declare_discrete_state("n", [5.0])
        self.mode = self.declare_abstract_state("mode", "idle")
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.message = self.declare_abstract_input("message", default="none")
        self.y = self.declare_vector_output("y", 1, self.u, prerequisites=[self.u])
        self.entry = self.declare_cache_entry("entry", self.u, prerequisites=[self.u])
        self.log = self.declare_record(list)

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(3)


@pytest.fixture
def block() -> Everything:
    return Everything()


@pytest.fixture
def context(block: Everything) -> fx.Context:
    """The root context of two levels of diagrams around the block."""
    return diagram_of(
        diagram_of(block, name="inner"), Lag("lag"), name="outer"
    ).create_default_context()


Change = Callable[[Everything, fx.Context], None]
CHANGES: dict[str, Change] = {
    "time": lambda block, context: setattr(context, "time", 2.0),
    "accuracy": lambda block, context: setattr(context, "accuracy", 1e-3),
    "parameter": lambda block, context: block.k.set(context, [1.0, 3.0]),
    "abstract parameter": lambda block, context: block.table.set(context, {"a": [1, 3]}),
    "continuous state": lambda block, context: block.x.set(context, [0.0, 0.0, 1.0]),
    "discrete state": lambda block, context: block.n.set(context, [6.0]),
    "abstract state": lambda block, context: block.mode.set(context, "busy"),
    "input": lambda block, context: block.u.fix(context, 1.0),
    "abstract input": lambda block, context: block.message.fix(context, "go"),
    "exported input": lambda block, context: context.set("lag.u", 0.0),
}


# Time and accuracy -----------------------------------------------------------------------------


def test_one_time_and_one_accuracy_hold_for_everything_below_a_root(context: fx.Context) -> None:
    assert (context.time, context.accuracy) == (0.0, None)
    context["inner.all"].time = -2.5
    context["lag"].accuracy = 1e-6
    for window in (context, context["inner"], context["inner.all"], context["lag"]):
        assert (window.time, window.accuracy) == (-2.5, 1e-6)
    context.accuracy = None
    assert context["lag"].accuracy is None


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, [1.0, 2.0], 1j])
def test_an_impossible_time_is_refused(context: fx.Context, value: Any) -> None:
    context.time = 1.0
    with pytest.raises(ValueRefusedError, match=r"Cannot set the time of 'outer' \[s\]: expected"):
        context["inner"].time = value
    assert context.time == 1.0


@pytest.mark.parametrize("value", [0.0, -1e-3, math.nan, math.inf, "1", [1.0, 2.0]])
def test_an_impossible_accuracy_is_refused(context: fx.Context, value: Any) -> None:
    context.accuracy = 0.5
    with pytest.raises(ValueRefusedError, match="Cannot set the accuracy of 'outer': expected"):
        context.accuracy = value
    assert context.accuracy == 0.5


def test_time_is_a_plain_float(context: fx.Context) -> None:
    context.time = np.float32(0.5)  # type: ignore[assignment]
    assert type(context.time) is float


# Parts of the state ----------------------------------------------------------------------------


@pytest.fixture
def oscillators() -> fx.Context:
    """Two oscillators inside of a nested diagram, a lag, and one more oscillator."""
    pair = diagram_of(Oscillator("a"), Oscillator("b"), name="pair")
    return diagram_of(pair, Lag("lag"), Oscillator("c"), name="root").create_default_context()


def test_q_v_and_z_are_gathered_across_nested_diagrams(oscillators: fx.Context) -> None:
    oscillators.continuous_state = np.arange(10.0)
    expected = {
        "": ([0, 3, 7], [1, 4, 8], [2, 5, 6, 9]),
        "pair": ([0, 3], [1, 4], [2, 5]),
        "pair.b": ([3], [4], [5]),
        "lag": ([], [], [6]),
    }
    for path, parts in expected.items():
        window = oscillators[path]
        for part, values in zip((window.q, window.v, window.z), parts, strict=True):
            np.testing.assert_array_equal(part, values)
    np.testing.assert_array_equal(oscillators["pair"].continuous_state, np.arange(6.0))
    np.testing.assert_array_equal(oscillators["c"].continuous_state, [7, 8, 9])


def test_the_state_of_one_diagram_inside_can_be_set(oscillators: fx.Context) -> None:
    before = oscillators.continuous_state
    oscillators["pair"].continuous_state = np.zeros(6)
    np.testing.assert_array_equal(oscillators.continuous_state[:6], np.zeros(6))
    np.testing.assert_array_equal(oscillators.continuous_state[6:], before[6:])
    np.testing.assert_array_equal(before[:3], [1.0, 2.0, 3.0])


def test_a_state_of_the_wrong_size_is_refused_with_both_sizes(oscillators: fx.Context) -> None:
    before = oscillators.clone()
    with pytest.raises(ValueRefusedError) as caught:
        oscillators["pair"].continuous_state = np.zeros(3)
    assert str(caught.value) == (
        "Cannot set the continuous state of 'pair': expected a vector of size 6; found a vector "
        "of size 3."
    )
    with pytest.raises(ValueRefusedError, match="finite"):
        oscillators.continuous_state = np.full(10, math.nan)
    assert oscillators == before


def test_what_is_passed_as_state_is_copied(oscillators: fx.Context) -> None:
    x = np.zeros(10)
    oscillators.continuous_state = x
    x[:] = 9.0
    np.testing.assert_array_equal(oscillators.continuous_state, np.zeros(10))


# Paths -----------------------------------------------------------------------------------------


def test_contexts_of_blocks_are_found_by_path(context: fx.Context, block: Everything) -> None:
    assert context["inner"]["all"] is context["inner.all"] is context.find(block)
    assert context["inner.all"].system is block
    assert context["inner.all"].parent is context["inner"]
    assert context["inner.all"].root is context[""] is context
    assert (context.is_root, context["inner"].is_root) == (True, False)
    assert [leaf.system.name for leaf in context.leaves()] == ["all", "lag"]


def test_an_unknown_block_is_refused_with_the_valid_names(context: fx.Context) -> None:
    with pytest.raises(UnknownNameError, match=r"'inner\.al' in 'outer'.*'al' in 'inner'.*'all'"):
        context["inner.al"]
    with pytest.raises(UnknownNameError, match=r"'x' below 'inner\.all'.*no blocks inside"):
        context["inner.all"]["x"]


def test_values_are_read_and_written_by_path(context: fx.Context, block: Everything) -> None:
    for path, value in {"k": [7.0, 8.0], "n": [9.0], "x": [1.0, 2.0, 3.0], "u": [4.0]}.items():
        context.set(f"inner.all.{path}", value)
        np.testing.assert_array_equal(context.get(f"inner.all.{path}"), value)
        np.testing.assert_array_equal(context["inner"].get(f"all.{path}"), value)
        np.testing.assert_array_equal(context["inner.all"].get(path), value)
    for path, text in {"mode": "busy", "table": "x", "message": "go"}.items():
        context["inner"].set(f"all.{path}", text)
        assert context.get(f"inner.all.{path}") == text
    assert context.get("inner.all.y") == context.get("inner.all.entry") == 4.0


def test_exported_ports_are_read_and_fixed_by_path() -> None:
    diagram = nested(Gain("gain", 3.0), 2)
    context = diagram.create_default_context()
    context.set("u", 2.0)
    assert [context.get(p) for p in ("u", "y", "d1.u", "d1.y", "d1.gain.u", "d1.gain.y")] == [
        *(2.0, 6.0, 2.0, 6.0, 2.0, 6.0),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("inner.all.w", r"Cannot find 'w' in 'inner\.all'.*Valid names: 'k', 'table', 'x'"),
        ("inner.al.k", r"Cannot find 'al\.k' in 'inner': found no block or exported port 'al'"),
        ("inner", "a block 'inner', and no name of one of its items"),
        ("", "Cannot find '' in 'outer'"),
    ],
)
def test_an_unknown_path_is_refused_with_the_valid_names(
    context: fx.Context, path: str, text: str
) -> None:
    before = context.clone()
    for use in (context.get, lambda p: context.set(p, 1.0)):
        with pytest.raises(UnknownNameError, match=text):
            use(path)
    assert context == before


@for_each("path", ["inner.all.y", "inner.all.entry"])
def test_computed_values_cannot_be_set(context: fx.Context, path: str) -> None:
    with pytest.raises(ContextError, match=rf"Cannot set '{path}': expected a parameter, a state"):
        context.set(path, 1.0)


# Clones and equality ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHANGES)
def test_a_clone_is_equal_until_one_side_changes(
    name: str, context: fx.Context, block: Everything
) -> None:
    twin = context.clone()
    assert twin == context
    CHANGES[name](block, twin)
    assert twin != context
    assert context == context.clone()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_original_does_not_reach_the_clone(
    name: str, context: fx.Context, block: Everything
) -> None:
    fresh, twin = context.clone(), context.clone()
    CHANGES[name](block, context)
    assert twin == fresh
    assert twin != context


@pytest.mark.parametrize("name", CHANGES)
def test_copying_takes_over_every_value(name: str, context: fx.Context, block: Everything) -> None:
    twin = context.clone()
    CHANGES[name](block, context)
    twin.copy_from(context)
    assert twin == context


def test_a_clone_computes_with_its_own_values() -> None:
    gain = Gain("gain", 2.0)
    context = gain.create_default_context()
    gain.u.fix(context, 1.0)
    assert gain.y.eval(context) == 2.0
    twin = context.clone()
    gain.k.set(twin, 5.0)
    gain.u.fix(context, 10.0)
    assert (gain.y.eval(context), gain.y.eval(twin)) == (20.0, 5.0)
    twin.copy_from(context)
    assert gain.y.eval(twin) == 20.0


def test_only_root_contexts_are_cloned_and_copied(context: fx.Context) -> None:
    inner = context["inner"]
    for use in (
        inner.clone,
        inner.to_dict,
        lambda: inner.copy_from(context),
        lambda: context.copy_from(inner),
    ):
        with pytest.raises(
            ContextError, match=r"'inner': expected a root context; .*context\.root"
        ):
            use()


def test_copying_between_systems_is_refused(context: fx.Context, block: Everything) -> None:
    before = context.clone()
    for other in (Everything().create_default_context(), block.create_default_context()):
        with pytest.raises(ContextError, match="of the same system object; found a context of"):
            context.copy_from(other)
    assert context == before


def test_contexts_of_two_systems_are_never_equal() -> None:
    assert Gain().create_default_context() != Gain().create_default_context()
    assert Gain().create_default_context() != 3


def test_contexts_of_one_block_are_compared_by_its_own_values() -> None:
    a, b = Gain("a"), Gain("b")
    diagram = diagram_of(a, b)
    one, two = diagram.create_default_context(), diagram.create_default_context()
    one.set("a.u", 1.0)
    assert one != two
    assert one["a"] != two["a"]
    assert one["b"] == two["b"]
    assert one["b"] == b.create_default_context()
    one.set("b.u", 1.0)
    alone = b.create_default_context()
    assert one["b"] != alone
    b.u.fix(alone, 1.0)
    assert one["b"] == alone


def test_an_input_fixed_to_none_differs_from_one_that_is_not_fixed() -> None:
    block = fx.LeafSystem("block")
    port = block.declare_abstract_input("port")
    one, two = block.create_default_context(), block.create_default_context()
    assert one == two
    port.fix(one, None)
    assert one != two
    assert one == one.clone()


def test_contexts_cannot_be_hashed_since_they_change(context: fx.Context) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(context)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array([1, 2]), [1, 2], True),
        (np.array([1, 2]), np.array([[1, 2]]), False),
        ({"a": np.array([1.0])}, {"a": np.array([1.0])}, True),
        ({"a": np.array([1.0])}, {"b": np.array([1.0])}, False),
        ([np.array([1.0]), "x"], [np.array([1.0]), "x"], True),
        ([1], (1,), False),
        (None, 0, False),
    ],
)
def test_abstract_values_with_arrays_inside_are_compared(one: Any, other: Any, equal: bool) -> None:
    block = Everything()
    a, b = block.create_default_context(), block.create_default_context()
    block.mode.set(a, one)
    block.mode.set(b, other)
    assert (a == b) is equal


def test_a_context_with_nan_in_an_abstract_value_equals_its_clone() -> None:
    block = Everything()
    context = block.create_default_context()
    block.mode.set(context, [math.nan, np.array([math.nan])])
    assert context.clone() == context


def test_the_text_of_a_context_says_whose_it_is_and_when(context: fx.Context) -> None:
    context.time = 1.5
    assert repr(context) == "<DiagramContext of 'outer' at t=1.5, 4 continuous states>"
    assert repr(context["lag"]) == "<LeafContext of 'lag' at t=1.5, 1 continuous states>"


# Random contexts -------------------------------------------------------------------------------


class Uncertain(fx.LeafSystem):
    def __init__(self, name: str, **bounds: Any) -> None:
        super().__init__(name)
        self.mass = self.declare_numeric_parameter(
            "mass", 1.0, distribution=lambda rng: rng.uniform(0.5, 1.5), **bounds
        )
        self.fixed = self.declare_numeric_parameter("fixed", 7.0)
        self.x = self.declare_continuous_state(
            q=1, v=1, distribution=lambda rng: rng.normal(size=2)
        )
        self.n = self.declare_discrete_state("n", 0.0, distribution=lambda rng: rng.integers(10))

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(2)


def test_equal_seeds_give_equal_random_contexts() -> None:
    diagram = diagram_of(Uncertain("a"), diagram_of(Uncertain("b"), name="inner"))
    one, two, other = (
        diagram.create_random_context(np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    assert one == two
    assert one != other
    assert one.get("a.mass") != one.get("inner.b.mass")
    assert one.get("a.fixed") == 7.0


def test_random_values_follow_their_distributions() -> None:
    block = Uncertain("block")
    rng = np.random.default_rng(0)
    drawn = [block.create_random_context(rng) for _ in range(300)]
    masses = [block.mass(context) for context in drawn]
    assert 0.5 <= min(masses) < 0.52
    assert 1.48 < max(masses) <= 1.5
    assert {float(block.n(context)[0]) for context in drawn} == set(map(float, range(10)))
    assert abs(np.std([block.x(context) for context in drawn]) - 1.0) < 0.1


def test_a_random_value_out_of_bounds_is_refused() -> None:
    block = Uncertain("block", lower=1.0, upper=1.0)
    with pytest.raises(ValueRefusedError, match=r"parameter 'block\.mass': expected values in \[1"):
        block.create_random_context(np.random.default_rng(0))


# Threads ---------------------------------------------------------------------------------------


def test_contexts_of_one_system_work_in_several_threads_at_once() -> None:
    gains = [Gain(f"g{k}", 1.0) for k in range(30)]
    builder = fx.DiagramBuilder()
    builder.add_all(Constant("source"), *gains, Lag("lag"))
    builder.connect_chain("source", *gains, "lag")
    diagram = builder.build()
    start = threading.Barrier(4)

    def work(seed: int) -> list[float]:
        rng = np.random.default_rng(seed)
        start.wait()
        context = diagram.create_default_context()
        results = []
        for _ in range(200):
            k = rng.integers(30)
            gains[k].k.set(context, rng.uniform(0.9, 1.1))
            context.set("lag.x", rng.normal())
            derivative = diagram.eval_time_derivatives(context)[0]
            expected = math.prod(g.k(context) for g in gains) - context.get("lag.x")[0]
            results.append(derivative - expected)
        return results

    with ThreadPoolExecutor(4) as pool:
        errors = [error for errors in pool.map(work, range(4)) for error in errors]
    np.testing.assert_allclose(errors, 0.0, atol=1e-12)


def test_first_contexts_made_by_several_threads_share_one_layout() -> None:
    start = threading.Barrier(4)

    def calc(context: Any) -> Any:
        time.sleep(0.01)  # while one thread traces this, the others come along
        return u(context)

    block = fx.LeafSystem("block")
    u = block.declare_vector_input("u", 1, default=1.0)
    block.declare_vector_output("y", 1, calc)

    def make(_: int) -> fx.Context:
        start.wait()
        return block.create_default_context()

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(make, range(4))
    for other in others:
        other.copy_from(first)
        assert other == first
