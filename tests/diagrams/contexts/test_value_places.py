"""Paths with brackets: components of values are read and set like values, by number or name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    DeclarationError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.systems.blocks import diagram_of


class Arm(fx.LeafSystem):
    """One of everything that has components."""

    def __init__(self, name: str = "arm") -> None:
        super().__init__(name)
        self.stiffness = self.declare_numeric_parameter("stiffness", 5.0)
        self.A = self.declare_numeric_parameter("A", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], lower=0.0)
        self.x = self.declare_continuous_state(
            q=2, v=1, default=[0.1, 0.2, 0.3], element_names=["angle", "lift", "rate"]
        )
        self.n = self.declare_discrete_state("n", [7.0, 8.0])
        self.u = self.declare_vector_input("u", 2, default=[9.0, 10.0], element_names=["a", "b"])
        self.loose = self.declare_vector_input("loose", 2)
        self.mode = self.declare_abstract_state("mode", ["idle"])
        self.coordinates = self.declare_vector_output(
            "coordinates", 2, self.x.q, shows=slice(2), element_names=["angle", "lift"]
        )
        self.rate = self.declare_vector_output("rate", 1, self.x.v, shows=slice(2, 3))
        self.double = self.declare_vector_output("double", 2, self.calc_double)

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(3)

    def calc_double(self, context: Any) -> Any:
        return 2.0 * self.x.q(context)


@pytest.fixture
def context() -> fx.Context:
    """The root context of two levels of diagrams around an arm, whose outputs are exported."""
    builder = fx.DiagramBuilder("cell")
    builder.add(Arm())
    builder.export_output("arm.coordinates", name="arm.pose")
    builder.export_input("arm.u", name="drive")
    builder.export_input("arm.loose", name="loose")
    return diagram_of(builder.build(), name="plant").create_default_context()


@pytest.mark.parametrize(
    ("path", "before", "whole", "after"),
    [
        ("cell.arm.x[rate]", 0.3, "cell.arm.x", [0.1, 0.2, 77.0]),
        ("cell.arm.x[1]", 0.2, "cell.arm.x", [0.1, 77.0, 0.3]),
        ("cell.arm.A[1,0]", 4.0, "cell.arm.A", [[1, 2, 3], [77, 5, 6]]),
        ("cell.arm.A[1, 2]", 6.0, "cell.arm.A", [[1, 2, 3], [4, 5, 77]]),
        ("cell.arm.n[0]", 7.0, "cell.arm.n", [77.0, 8.0]),
        ("cell.drive[b]", 10.0, "cell.arm.u", [9.0, 77.0]),
        ("cell.arm.pose[lift]", 0.2, "cell.arm.x", [0.1, 77.0, 0.3]),
        ("cell.arm.rate[0]", 0.3, "cell.arm.x", [0.1, 0.2, 77.0]),
    ],
)
def test_a_component_is_read_and_set_while_the_others_stay(
    context: fx.Context, path: str, before: float, whole: str, after: Any
) -> None:
    assert context.get(path) == before
    assert isinstance(context.get(path), np.float64)
    context.set(path, 77)
    assert context.get(path) == 77.0
    np.testing.assert_array_equal(context.get(whole), after)


def test_paths_count_from_the_block_of_the_context(context: fx.Context) -> None:
    context["cell.arm"].set("x[rate]", 1.5)
    assert context["cell"].get("arm.x[rate]") == context.get("cell.arm.x[2]") == 1.5


@pytest.mark.parametrize(
    ("path", "value", "state"),
    [
        ("cell.arm.pose", [1.0, 2.0], [1.0, 2.0, 0.3]),
        ("cell.arm.coordinates", [1.0, 2.0], [1.0, 2.0, 0.3]),
        ("cell.arm.rate", 4.0, [0.1, 0.2, 4.0]),
    ],
)
def test_an_output_that_shows_a_state_stands_for_it(
    context: fx.Context, path: str, value: Any, state: list[float]
) -> None:
    context.set(path, value)
    np.testing.assert_array_equal(context.get("cell.arm.x"), state)
    np.testing.assert_array_equal(context.get(path), np.atleast_1d(value))


def test_brackets_can_be_part_of_a_name() -> None:
    context = diagram_of(Arm("arm[0]"), name="plant").create_default_context()
    context.set("arm[0].x[1]", 3.0)
    assert context.get("arm[0].x").tolist() == [0.1, 3.0, 0.3]


@pytest.mark.parametrize(
    ("path", "value", "kind", "text"),
    [
        ("x[3]", 1.0, UnknownNameError, "component 0 to 2; found '3'"),
        ("x[-1]", 1.0, UnknownNameError, "found '-1'"),
        ("x[angel]", 1.0, UnknownNameError, r"Did you mean 'arm\.x\[angle\]'"),
        ("A[1]", 1.0, UnknownNameError, r"indices into an array of shape \(2, 3\)"),
        ("A[2,0]", 1.0, UnknownNameError, "found '2,0'"),
        ("stiffness[0]", 1.0, UnknownNameError, "without brackets"),
        ("mode[0]", "x", UnknownNameError, "without brackets"),
        ("y[0]", 1.0, UnknownNameError, "y"),
        ("x[0", 1.0, UnknownNameError, r"x\[0"),
        ("x[rate]", [1.0, 2.0], ValueRefusedError, r"'arm\.x\[rate\]'.*a real number"),
        ("x[rate]", np.nan, ValueRefusedError, r"'arm\.x': expected finite"),
        ("A[0,1]", -1.0, ValueRefusedError, r"'arm\.A'.*\[0, inf\]"),
        ("coordinates", [1.0], ValueRefusedError, r"'arm\.coordinates': .* a vector of size 2"),
        ("double", [1.0, 2.0], ContextError, "found the output port 'arm.double'"),
        ("double[0]", 1.0, ContextError, r"can be set there: 'arm\.coordinates', "),
        ("loose[0]", 1.0, EvaluationError, "a connection or a fixed value"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(
    path: str, value: Any, kind: type[Exception], text: str
) -> None:
    context = diagram_of(Arm(), name="plant").create_default_context()
    before = context.clone()
    with pytest.raises(kind, match=text):
        context.set(f"arm.{path}", value)
    assert context == before


@pytest.mark.parametrize("shown", [slice(1), slice(5, 7)])
def test_an_output_shows_as_many_components_as_it_has(shown: slice) -> None:
    class Wrong(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("wrong")
            x = self.declare_continuous_state(z=3)
            self.declare_vector_output("y", 2, x, shows=shown)

    with pytest.raises(DeclarationError, match=r"'wrong\.y': expected 2 components"):
        Wrong()


def test_an_output_of_a_block_without_state_shows_none() -> None:
    class Wrong(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("wrong")
            u = self.declare_vector_input("u", 1)
            self.declare_vector_output("y", 1, u, shows=slice(1))

    with pytest.raises(DeclarationError, match="of no components"):
        Wrong()
