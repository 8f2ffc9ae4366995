"""Derivatives by code that alike blocks share, and by code that is written out."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

import flexure as fx
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.program import Program
from flexure.solvers.native.sharing.shared_derivatives import SharedDerivatives
from flexure.solvers.tracing.trace import Key
from tests.support.native import equation_at

FloatArray = npt.NDArray[np.float64]


def shared(context: fx.Context, zeros: Collection[Key] = ()) -> FloatArray:
    """Compute the derivatives by code that alike blocks share."""
    store = context.store
    program = Program(store.layout)
    environment = Environment(program.num_discrete, program.environment.discrete)
    made = SharedDerivatives(store.layout, environment, zeros)
    library = made.code.compile()
    env = np.full(environment.size + 1, np.nan)
    program.read_discrete(store, env)
    made.inputs.fill(store, env)
    equation_at(library.address("prepare"))(0.0, np.zeros(1), env, env)
    out = np.full(program.num_states + 1, np.nan)
    equation_at(library.address("rhs"))(store.time, np.array(store.x), env, out)
    assert np.isnan(out[-1])
    assert np.isnan(env[-1])
    return out[:-1]


def computed_by(program: Program, context: fx.Context) -> FloatArray:
    """Compute the derivatives by a program."""
    env = program.fill(context.store)
    out = np.full(program.num_states, np.nan)
    equation_at(program.rhs)(context.time, np.array(context.store.x), env, out)
    return out
