"""The cost of one right-hand side in native code, without a loop around it."""

from __future__ import annotations

import ctypes

from benchmarks.versus.sides import seconds
from benchmarks.versus.workloads import Array
from flexure.solvers.native.language.language import Floats, Function
from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.programs.program import Program


def repeat(count: int, f: Function, x: Floats, env: Floats, out: Floats) -> None:
    """Evaluate derivatives again and again; a kernel."""
    for _ in range(count):
        f(0.0, x, env, out)


def evaluation_cost(program: Program, x: Array, env: Array, count: int) -> float:
    """Return the seconds of one evaluation of the derivatives.

    Parameters
    ----------
    program : Program
        The native code.
    x, env : ndarray
        State and environment.
    count : int
        How many evaluations are timed at once.
    """
    module = Module()
    module.translate(repeat, "repeat")
    library = Library(module.text, lambda: module.text)
    call = library.function("repeat", None, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    x = x.copy()
    out = x.copy()
    arguments = program.rhs, x.ctypes.data, env.ctypes.data, out.ctypes.data
    return min(seconds(lambda: call(count, *arguments)) for _ in range(5)) / count
