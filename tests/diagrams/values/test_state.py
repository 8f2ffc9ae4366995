"""State: continuous (q, v, z), discrete groups and abstract state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    ContextFileError,
    DeclarationError,
    FlexureError,
    ValueRefusedError,
)
from tests.support.systems.blocks import Oscillator, diagram_of
from tests.support.tiers import for_each


class Continuous(fx.LeafSystem):
    def __init__(self, **options: Any) -> None:
        super().__init__("block")
        self.state = self.declare_continuous_state(**options)

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.state(context)


class Sampled(fx.LeafSystem):
    """Two groups of discrete state and an abstract one."""

    def __init__(self, name: str = "block", n: Any = (1.0, 2.0), **options: Any) -> None:
        super().__init__(name)
        self.n = self.declare_discrete_state("n", n, **options)
        self.m = self.declare_discrete_state("m", 7.0)
        self.mode = self.declare_abstract_state("mode", {"gear": 1})


# Continuous ------------------------------------------------------------------------------------


def test_the_state_vector_holds_positions_velocities_and_the_rest_in_this_order() -> None:
    state = (block := Continuous(q=2, v=1, z=3, default=np.arange(6.0))).state
    context = block.create_default_context()
    np.testing.assert_array_equal(state(context), [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(state.get(context), [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(state.q(context), [0, 1])
    np.testing.assert_array_equal(state.v(context), [2])
    np.testing.assert_array_equal(state.z(context), [3, 4, 5])
    assert (state.num_q, state.num_v, state.num_z, state.size) == (2, 1, 3, 6)
    assert (state.name, state.full_name) == ("x", "block.x")


def test_the_default_state_is_zero() -> None:
    block = Continuous(z=2, name="memory", element_names=["a", "b"])
    np.testing.assert_array_equal(block.state(block.create_default_context()), [0.0, 0.0])
    assert block.state.path == "memory"
    assert block.state.element_names == ("a", "b")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected at least one of q, v, z to be positive"),
        ({"q": -1}, "expected an integer size >= 0; found -1"),
        ({"z": 1.5}, "expected an integer size >= 0; found 1.5"),
        ({"z": True}, "found True"),
        ({"q": 1, "v": 2}, "expected at least as many positions q as velocities v; found q=1, v=2"),
        ({"z": 2, "default": [1.0]}, "expected a vector of size 2; found a vector of size 1"),
        ({"z": 1, "default": math.nan}, "expected finite numbers; found [nan]"),
        ({"z": 1, "default": "1"}, "found '1' (str)"),
        ({"z": 2, "element_names": ["a"]}, "expected 2 different non-empty element names"),
        ({"z": 2, "element_names": ["a", "a"]}, "expected 2 different non-empty element names"),
        ({"z": 2, "element_names": ["a", ""]}, "expected 2 different non-empty element names"),
    ],
)
def test_an_impossible_continuous_state_is_refused(options: Any, text: str) -> None:
    with pytest.raises(FlexureError, match=r"continuous state 'block\.x'") as caught:
        Continuous(**options)
    assert text in str(caught.value)


def test_a_second_continuous_state_is_refused_and_the_first_stays() -> None:
    block = Continuous(z=1)
    with pytest.raises(DeclarationError, match=r"second continuous state in 'block'.*'block\.x'"):
        block.declare_continuous_state(z=1, name="other")
    assert block.continuous_state is block.state
    assert [handle.name for handle in block.handles] == ["x"]


def test_setting_the_state_checks_and_copies() -> None:
    block = Continuous(z=2)
    context = block.create_default_context()
    value = np.array([1.0, 2.0])
    block.state.set(context, value)
    value[:] = 9.0
    wrong_values: list[Any] = [[1.0], [math.inf, 0.0], "ab", None, [[1.0, 2.0]]]
    for wrong in wrong_values:
        with pytest.raises(ValueRefusedError, match=r"Cannot set state 'block\.x': expected"):
            block.state.set(context, wrong)
    np.testing.assert_array_equal(block.state(context), [1.0, 2.0])


def test_no_view_of_the_state_can_be_written_to() -> None:
    block = Continuous(q=1, v=1, z=1)
    context = block.create_default_context()
    state = block.state
    views = [state(context), state.q(context), state.v(context), state.z(context), state.default]
    for view in [*views, context.continuous_state, context.q, context.v, context.z]:
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1.0


def test_a_state_handed_out_earlier_stays_as_it_was() -> None:
    block = Continuous(z=1)
    context = block.create_default_context()
    before, whole = block.state(context), context.continuous_state
    block.state.set(context, 5.0)
    assert (before[0], whole[0], block.state(context)[0]) == (0.0, 0.0, 5.0)


def test_a_state_set_by_an_integrator_is_read_only_to_the_equations() -> None:
    block = Continuous(z=2)
    context = block.create_default_context()
    x = np.array([1.0, 2.0])
    context.store.set_motion(0.5, x)
    with pytest.raises(ValueError, match="read-only"):
        block.state(context)[0] = 3.0
    assert x.flags.writeable


class Turning(fx.LeafSystem):
    """A complex number that turns; zero has no direction, and the length means nothing."""

    def __init__(self, name: str = "turning", **options: Any) -> None:
        super().__init__(name)
        self.asked = 0
        options = {"default": [1.0, 0.0]} | options
        self.x = self.declare_continuous_state(z=2, problem=self.problem, **options)

    def problem(self, x: Any) -> str | None:
        self.asked += 1
        return None if np.any(x) else "zero, which has no direction"

    def calc_time_derivatives(self, context: Any) -> Any:
        real, imaginary = self.x(context)
        return [-imaginary, real]


def set_states_of_the_root(diagram: fx.Diagram, context: fx.Context) -> None:
    context.continuous_state = [7.0, 1.0, 1.0, 0.0, 0.0]


def set_states_of_a_part(diagram: fx.Diagram, context: fx.Context) -> None:
    context["inner"].continuous_state = [1.0, 1.0, 0.0, 0.0]


def load(diagram: fx.Diagram, context: fx.Context) -> None:
    data = context.to_dict()
    data["blocks"]["inner.turning"]["continuous_state"]["x"]["array"] = [0.0, 0.0]
    diagram.context_from_dict(data)


WAYS: dict[str, Callable[[fx.Diagram, fx.Context], Any]] = {
    "by handle": lambda diagram, context: diagram.find("inner.turning.x").set(context, [0, 0]),
    "by path": lambda diagram, context: context.set("inner.turning.x", [0.0, 0.0]),
    "by component": lambda diagram, context: context.set("inner.turning.x[0]", 0.0),
    "with all states": set_states_of_the_root,
    "with the states of a diagram": set_states_of_a_part,
    "from a file": load,
    "in a sweep": lambda diagram, context: fx.sweep(
        diagram, {"inner.turning.x[0]": [1.0, 0.0]}, 1.0, context=context
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_state_with_a_problem_is_refused_in_every_way_of_setting_it(way: str) -> None:
    inner = diagram_of(Turning("other"), Turning(), name="inner")
    diagram = diagram_of(fx.Integrator("integrator"), inner)
    context = diagram.create_default_context()
    before = context.clone()
    with pytest.raises(FlexureError, match=r"inner.*zero, which has no direction") as refusal:
        WAYS[way](diagram, context)
    assert isinstance(refusal.value, (ValueRefusedError, ContextFileError))
    assert context == before


def test_a_default_and_a_random_state_with_a_problem_are_refused() -> None:
    with pytest.raises(ValueRefusedError, match=r"Cannot declare.*zero"):
        Turning(default=[0.0, 0.0])
    turning = Turning(distribution=lambda rng: np.zeros(2))
    with pytest.raises(ValueRefusedError, match="no direction"):
        turning.create_random_context(np.random.default_rng(1))


def test_an_integrator_does_not_ask_for_problems() -> None:
    turning = Turning()
    context = turning.create_default_context()
    asked = turning.asked
    fx.simulate(turning, 1.0, context=context, compiled=False)
    assert turning.asked == asked


def test_derivatives_are_fresh() -> None:
    block = Continuous(z=2, default=[1.0, 2.0])
    context = block.create_default_context()
    first = block.eval_time_derivatives(context)
    first[:] = 77.0
    np.testing.assert_array_equal(block.eval_time_derivatives(context), [-1.0, -2.0])


def test_derivatives_of_one_block_are_its_part_of_the_whole() -> None:
    a, b = Oscillator("a"), Oscillator("b", k=9.0)
    diagram = diagram_of(a, b)
    context = diagram.create_default_context()
    np.testing.assert_array_equal(
        diagram.eval_time_derivatives(context), [2.0, -4.0, 4.0, 2.0, -9.0, 4.0]
    )
    np.testing.assert_array_equal(b.eval_time_derivatives(context), [2.0, -9.0, 4.0])
    np.testing.assert_array_equal(b.eval_time_derivatives(context["b"]), [2.0, -9.0, 4.0])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "found None. Return the value from the method"),
        ([1.0], "expected a vector of size 2; found a vector of size 1"),
        (np.array([1j, 2.0]), "expected a vector of size 2; found array"),
        ("ab", "found 'ab'"),
    ],
)
def test_unusable_derivatives_are_refused_with_path_and_time(result: Any, text: str) -> None:
    class Broken(Continuous):
        def calc_time_derivatives(self, context: Any) -> Any:
            return result

    block = Broken(z=2)
    context = block.create_default_context()
    context.time = 2.5
    with pytest.raises(ValueRefusedError) as caught:
        block.eval_time_derivatives(context)
    assert "Cannot use the result of calc_time_derivatives of 'block'" in str(caught.value)
    assert text in str(caught.value)
    assert caught.value.__notes__ == ["while computing the time derivatives of 'block' at t = 2.5"]


def test_state_without_derivatives_is_refused_when_the_block_is_put_to_use() -> None:
    class Forgetful(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("forgetful")
            self.x = self.declare_continuous_state(z=1)

    text = r"expected a method calc_time_derivatives\(self, context\) in Forgetful; found none"
    with pytest.raises(DeclarationError, match=text):
        Forgetful().create_default_context()
    builder = fx.DiagramBuilder()
    with pytest.raises(DeclarationError, match=text):
        builder.add(Forgetful())
    assert builder.systems == ()


# Discrete and abstract -------------------------------------------------------------------------


def test_the_default_of_a_discrete_group_gives_its_size() -> None:
    block = Sampled()
    context = block.create_default_context()
    np.testing.assert_array_equal(block.n(context), [1.0, 2.0])
    np.testing.assert_array_equal(block.m.get(context), [7.0])
    assert (block.n.size, block.m.size, block.m.index) == (2, 1, 1)


@for_each("default", [math.inf, "1", None, [1.0, None], [[1.0, 2.0]], [[1], [1, 2]]])
def test_an_impossible_discrete_default_is_refused(default: Any) -> None:
    with pytest.raises(FlexureError, match=r"Cannot declare discrete state 'block\.n'"):
        Sampled(n=default)


def test_wrong_element_names_of_a_discrete_group_are_refused() -> None:
    assert Sampled(element_names=["a", "b"]).n.element_names == ("a", "b")
    with pytest.raises(DeclarationError, match="expected 2 different non-empty element names"):
        Sampled(element_names=["a"])


def test_setting_a_discrete_group_checks_and_copies_and_freezes() -> None:
    block = Sampled()
    context = block.create_default_context()
    value = np.array([3.0, 4.0])
    block.n.set(context, value)
    value[:] = 9.0
    for wrong in (3.0, [math.nan, 1.0], "x"):
        with pytest.raises(ValueRefusedError, match=r"Cannot set discrete state 'block\.n'"):
            block.n.set(context, wrong)
    np.testing.assert_array_equal(block.n(context), [3.0, 4.0])
    for array in (block.n(context), block.n.default):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_abstract_state_is_copied_on_the_way_in() -> None:
    block = Sampled()
    context = block.create_default_context()
    mode = {"gear": 2}
    block.mode.set(context, mode)
    mode["gear"] = 99
    assert block.mode.get(context) == {"gear": 2}
    assert block.mode(block.create_default_context()) == {"gear": 1}


@pytest.mark.parametrize("name", ["n", "mode"])
def test_state_handles_refuse_contexts_of_other_blocks(name: str) -> None:
    block, twin = Sampled("block"), Sampled("twin")
    context = diagram_of(block, twin).create_default_context()
    handle = getattr(block, name)
    for use in (handle, handle.get, lambda c: handle.set(c, handle.default)):
        with pytest.raises(ContextError, match=rf"state 'block\.{name}' with this context"):
            use(context["twin"])


def test_continuous_state_handles_refuse_contexts_of_other_blocks() -> None:
    a, b = Oscillator("a"), Oscillator("b")
    context = diagram_of(a, b).create_default_context()
    for use in (a.x, a.x.q, a.x.get, lambda c: a.x.set(c, np.zeros(3))):
        with pytest.raises(ContextError, match=r"continuous state 'a\.x' with this context"):
            use(context["b"])
