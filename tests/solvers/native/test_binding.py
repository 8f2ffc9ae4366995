"""A program bound to a context sees the values that the context has now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.native.programs.programs import BoundProgram, program_of
from tests.support.native.native import needs_llvmlite

pytestmark = needs_llvmlite


class Tank(fx.LeafSystem):
    """x′ = opening + u - leak x, with the opening of a valve as a discrete state."""

    def __init__(self) -> None:
        super().__init__("tank")
        self.leak = self.declare_numeric_parameter("leak", 1.0)
        self.opening = self.declare_discrete_state("opening", 0.0)
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.x = self.declare_continuous_state(z=1, default=1.0)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.opening(context) + self.u(context) - self.leak(context) * self.x(context)


def bound() -> tuple[fx.Context, BoundProgram]:
    context = Tank().create_default_context()
    return context, BoundProgram(program_of(context.store), context.store)


@pytest.mark.parametrize(
    ("path", "value", "expected"), [("leak", 3.0, -6.0), ("opening", 5.0, 3.0), ("u", 0.5, -1.5)]
)
def test_a_value_that_changes_is_seen(path: str, value: float, expected: float) -> None:
    context, program = bound()
    assert program(0.0, np.array([2.0])).tolist() == [-2.0]
    before = program.env
    context.set(path, value)
    assert program(0.0, np.array([2.0])).tolist() == [expected]
    assert program.env is not before


def test_the_environment_is_filled_again_only_after_a_change() -> None:
    context, program = bound()
    before = program.env
    context.time = 3.0
    context.continuous_state = [7.0]
    assert program.env is before


def test_a_jacobian_that_is_asked_for_later_finds_its_room() -> None:
    _, program = bound()
    before = program.env
    program.program.jacobian()
    assert len(program.env) >= len(before)
    assert len(program.env) > program.program.environment.size
    assert program(0.0, np.array([2.0])).tolist() == [-2.0]


def test_what_a_loop_has_written_is_handed_back_and_is_no_change() -> None:
    context, program = bound()
    env = program.env
    env[0] = 4.0
    program.hand_back()
    assert context.get("opening").tolist() == [4.0]
    assert program.env is env
    env[0] = 8.0
    assert context.get("opening").tolist() == [4.0]


def test_what_has_changed_before_values_are_handed_back_is_seen() -> None:
    context, program = bound()
    program.env[0] = 4.0
    context.set("leak", 3.0)
    program.hand_back()
    assert program(0.0, np.array([2.0])).tolist() == [4.0 - 3.0 * 2.0]
