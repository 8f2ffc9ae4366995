"""Derivatives by code that is shared wherever it can be, and by code that is written out.

What sharing is called inside stands here and nowhere else in the tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.contexts.value_places import find_place
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.analysis.equations.equations import find_variables, read_equations, shown
from flexure.solvers.analysis.equations.shared_equations import (
    SharedCode,
    SharedEquations,
    WrittenCode,
)
from flexure.solvers.native.emission import jacobian_emission
from flexure.solvers.native.emission.tangent_emission import WIDTH
from flexure.solvers.native.programs import plan
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.sharing.families.requested_derivatives import OF_RUNS, Question, Reading
from flexure.solvers.native.sharing.jobs import repetition, shared_derivatives, shared_jacobian
from flexure.solvers.tracing.trace import trace
from tests.support.native.native import equation_at

FloatArray = npt.NDArray[np.float64]


@contextmanager
def sharing(
    everywhere: bool, *, width: int | None = None, one_by_one: bool = True
) -> Iterator[None]:
    """Let new programs share code however little that saves, or not at all.

    Parameters
    ----------
    everywhere : bool
        Whether they share code.
    width : int, optional
        Numbers in a register, if not those of this processor.
    one_by_one : bool
        Whether functions of the C library are called for one number at a time, so that no bit
        differs.
    """
    bound = 0 if everywhere else 10**9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_MANY", bound)
        patch.setattr(plan, "_LONG", bound)
        patch.setattr(shared_derivatives, "_SAVING", 0)
        if width is not None:
            patch.setattr(repetition, "register_width", lambda: width)
        if one_by_one:
            patch.setattr(repetition, "vector_functions", lambda width: {})
        yield


def shares_code(program: Program) -> bool:
    """Return whether blocks or parts of them share the code of their derivatives."""
    return program.plan.is_shared


def derivatives(program: Program, context: fx.Context) -> FloatArray:
    """Compute the derivatives by a program, which reads and writes no place beside its own."""
    store = context.store
    env = np.full(program.environment.size + 1, np.nan)
    program.refresh(store, env)
    out = np.full(program.num_states + 1, np.nan)
    equation_at(program.rhs)(store.time, np.array(store.x), env, out)
    assert np.isnan(out[-1])
    assert np.isnan(env[-1])
    return out[:-1]


def jacobian(context: fx.Context, *, everywhere: bool) -> FloatArray:
    """Return the Jacobian by code that is shared wherever it can be, or written out."""
    found, way = jacobian_by(context, "entry by entry" if everywhere else "written out")
    assert ("shared code" in way) is everywhere
    return found


def jacobian_by(context: fx.Context, way: str, states: int = 8000) -> tuple[FloatArray, str]:
    """Return the Jacobian in one of four ways, and what is said of that.

    Parameters
    ----------
    context : Context
        A context.
    way : {'entry by entry', 'along directions', 'written out', 'written out along directions'}
        The first two share code wherever it can be.
    states : int
        Sums that depend on more states are taken apart.
    """
    is_shared = "written out" not in way
    with sharing(is_shared), pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_jacobian, "LONG", -1)
        patch.setattr(shared_jacobian, "_MANY", 0)
        patch.setattr(shared_jacobian, "_TURNS", states / WIDTH)
        if way == "along directions":
            patch.setattr(shared_jacobian, "_ENTRIES", -1)
        if way == "written out along directions":
            patch.setattr(jacobian_emission, "LONG", -1)
        program = Program(context.system.layout)
        call = equation_at(program.jacobian())
    assert program.plan.jacobian is not None
    assert program.jacobian_entries is not None
    store = context.store
    env = np.full(program.environment.size + 1, np.nan)
    program.refresh(store, env)
    entries = np.full(len(program.jacobian_entries[0]) + 1, np.nan)
    call(store.time, np.array(store.x), env, entries)
    assert np.isnan(entries[-1])
    assert np.isnan(env[-1])
    found = np.zeros((program.num_states, program.num_states))
    assert len({*zip(*program.jacobian_entries, strict=True)}) == len(entries) - 1
    found[program.jacobian_entries] = entries[:-1]
    return found, program.plan.jacobian.way


def shared(context: fx.Context, zeros: Collection[Key] = (), **how: int | bool) -> FloatArray:
    """Compute the derivatives by code that is shared wherever it can be."""
    with sharing(True, **how):  # type: ignore[arg-type]
        program = Program(context.system.layout, zeros)
    assert shares_code(program)
    return derivatives(program, context)


def written_out(context: fx.Context, zeros: Collection[Key] = ()) -> FloatArray:
    """Compute the derivatives by code that is written out."""
    with sharing(False):
        program = Program(context.system.layout, zeros)
    assert not shares_code(program)
    return derivatives(program, context)


def answers(
    context: fx.Context,
    inputs: Sequence[str],
    outputs: Sequence[str],
    reading: Reading = OF_RUNS.reading,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Compute rates and outputs with all their derivatives, by shared code and written out."""
    layout, places = context.system.layout, [find_place(context.system, each) for each in outputs]
    read = [(slot, tuple(part)) for slot, part in (shown(context, place) for place in places)]
    keys = [key for each in find_variables(context, inputs, "Cannot") for key in each.keys]
    question = Question(tuple(read), tuple(keys), reading)
    expressions = trace(layout, lambda store: read_equations(store, read))
    with sharing(True):
        shared_code = SharedCode(layout, question, frozenset())
    for code in (shared_code, WrittenCode(layout, question, expressions)):
        equations = SharedEquations(context.store, code)
        yield equations.computed(), equations.jacobian()


def operations(system: fx.System, *, everywhere: bool) -> int:
    """Return how many operations the derivatives take, with code that is shared or written out."""
    with sharing(everywhere):
        return Program(system.layout).trace.operations


def size_of_code(system: fx.System) -> int:
    """Return how many bytes of code the derivatives of a system leave in an empty cache."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXURE_CACHE", folder)
        Program(system.layout)
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
