"""The plan of a program says what was decided and why, and what is compiled follows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.native.emission import jacobian_emission
from flexure.solvers.native.programs import plan
from flexure.solvers.native.programs.method_programs import METHODS, generic_attempt
from flexure.solvers.native.programs.program import Program
from tests.support.native.native import needs_llvmlite
from tests.support.systems.many_blocks import Lag, Law, chain


class Swing(fx.LeafSystem):
    """x'' = -g sin(x)"""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.g = self.declare_numeric_parameter("g", 9.81)
        self.x = self.declare_continuous_state(q=1, v=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        x, v = self.x(context)
        return [v, -self.g(context) * np.sin(x)]


def lines_of(program: Program) -> dict[str, str]:
    """Return what a printed plan says, by subject."""
    return dict(line.split(": ", 1) for line in str(program.plan).splitlines())


@needs_llvmlite
def test_a_short_plan_is_written_out_in_a_step_of_its_own() -> None:
    program = Program(Swing("swing").layout)
    said = lines_of(program)
    assert program.plan.operations == 3  # of a sine, a product and a sign
    assert said["derivatives"].startswith("written out, 3 operations, because fewer than 3000")
    assert "in 1 module" in said["code"]
    explicit = said["step of RK23, RK45, DOP853, DormandPrince"]
    assert explicit.startswith("specialized to 2 states, with the derivatives in it, because")


@needs_llvmlite
def test_a_plan_tells_how_much_sharing_saves() -> None:
    """In the code are two springs and two masses, those with a free end by themselves."""
    made = Program(chain(300).build().layout)
    assert (made.plan.blocks, made.plan.kinds) == (600, 2)
    assert (made.plan.operations, made.plan.written) == (300 * 4, 8)
    text = "shared by what is alike in 600 blocks of 2 kinds, 1200 -> 8 operations, because"
    assert lines_of(made)["derivatives"].startswith(text)


@needs_llvmlite
@pytest.mark.parametrize(
    ("threshold", "value", "name", "states", "inlined"),
    [
        ("_LARGE", 200_000, "DOP853", 2, True),
        ("_LARGE", 10, "DOP853", None, True),
        ("_INLINED", 10, "RK45", 2, False),
        ("_FEW", 1, "RK45", 2, True),
    ],
)
def test_steps_are_made_as_planned(
    threshold: str,
    value: int,
    name: str,
    states: int | None,
    inlined: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, threshold, value)
    program = Program(Swing("swing").layout)
    step = program.plan.step(name)
    assert (step.states, step.is_inlined) == (states, inlined)
    assert step.is_vectorized == (threshold == "_FEW")
    assert (program.attempt(name) == generic_attempt(name)) == (states is None)


@needs_llvmlite
def test_a_jacobian_is_planned_when_it_is_made() -> None:
    program = Program(Swing("swing").layout)
    before = program.plan
    assert "not asked for" in lines_of(program)["Jacobian"]
    assert program.obstacle("Rodas5P") == ""
    assert program.plan.jacobian is not None
    assert before.jacobian is None
    assert lines_of(program)["Jacobian"].startswith(f"{program.plan.jacobian.entries} entries")
    assert program.plan.step("Rodas5P").states == 2


@needs_llvmlite
def test_a_plan_tells_why_there_is_no_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jacobian_emission, "WRITTEN", 0)
    program = Program(Swing("swing").layout)
    obstacle = program.obstacle("Rodas5P")
    assert "cannot compile" in obstacle
    assert lines_of(program)["Jacobian"] == f"none, because {obstacle}"
    assert lines_of(program)["step of Rodas5P, ESDIRK4"] == "decided with the Jacobian"


@needs_llvmlite
def test_what_stands_in_the_way_of_sharing_is_named() -> None:
    builder = fx.DiagramBuilder("different")
    for k in range(120):
        builder.add(Lag(f"l{k}"))
        builder.add(Law(f"law{k}", lambda c, u, k=k: k * u))
        builder.connect(f"l{k}.y", f"law{k}.u")
        builder.connect(f"law{k}.y", f"l{k}.u")
    program = Program(builder.build().layout)
    assert not program.plan.is_shared
    assert program.plan.written == program.plan.operations
    assert lines_of(program)["derivatives"].endswith("because sharing code saves too little")


def test_compiled_equations_show_the_plan_of_their_program() -> None:
    equations = fx.compiled_equations(Swing("swing"))
    if equations.program is None:
        assert equations.plan is None
    else:
        assert equations.plan is equations.program.plan
        assert len(METHODS) == sum(
            len(subject.removeprefix("step of ").split(", "))
            for subject in lines_of(equations.program)
            if subject.startswith("step of ")
        )


class Row(fx.LeafSystem):
    """Points in space one behind the other, each pulled by those beside it in all directions."""

    def __init__(self, count: int) -> None:
        super().__init__("row")
        self.count = count
        self.x = self.declare_continuous_state(q=3 * count, v=3 * count)

    def calc_time_derivatives(self, context: Any) -> Any:
        parts = self.x.q(context), self.x.v(context)
        q, v = (np.reshape(part, (self.count, 3)) for part in parts)
        stiffness = np.array([[9.0, 1.0, 2.0], [1.0, 8.0, 3.0], [2.0, 3.0, 7.0]])
        pulls = [(q[k + 1] - q[k] + 0.1 * v[k + 1] - 0.1 * v[k]) for k in range(self.count - 1)]
        forces = [stiffness @ pull for pull in [-q[0] - v[0], *pulls, 0.0 * q[0]]]
        slopes = [forces[k + 1] - forces[k] for k in range(self.count)]
        return np.concatenate([*v, *slopes])


@pytest.mark.full
@needs_llvmlite
def test_a_plan_tells_which_factors_are_cheaper() -> None:
    """Positions are expressed by velocities, and those of a point are a block."""
    program = Program(Row(12).layout)
    assert program.obstacle("Rodas5P") == ""
    assert program.plan.jacobian is not None
    blocks, factors = program.plan.jacobian.blocks, program.plan.jacobian.factors
    assert blocks is not None
    assert factors is not None
    assert (blocks.size, blocks.count, blocks.expressed) == (3, 12, 36)
    assert blocks.cost < factors.products
    said = lines_of(program)["Jacobian"]
    assert "factors in 12 blocks of 3 states, 36 others expressed by these" in said
    assert program.attempt("Rodas5P") == generic_attempt("Rodas5P", 3)
