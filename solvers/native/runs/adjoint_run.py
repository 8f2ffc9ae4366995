"""Steps of a run that are gone through backward: the memory, and the calls.

See `flexure.solvers.native.kernels.runs.adjoint_runs`. Without native code, Python runs the same
kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.kernels.runs.adjoint_runs import AdjointData, go_back
from flexure.solvers.native.kernels.steps import rosenbrock
from flexure.solvers.native.kernels.steps.explicit import bends, point_inside
from flexure.solvers.native.llvm.library import address_of
from flexure.solvers.native.programs.method_programs import METHODS, adjoint_loops
from flexure.solvers.native.programs.programs import BoundProgram
from flexure.solvers.native.programs.sensitivity_program import AdjointEquations, AdjointProgram
from flexure.solvers.native.runs.run_memory import RunMemory, StructureArrays, set_linear


class AdjointRun:
    """Weights of the state in a number, and its derivatives, carried backward.

    ``method`` is one of `DIFFERENTIABLE`; implicit ones need ``native``, the native code of rates
    and products. The store holds the present discrete values too. ``adjoint`` are the weights, of
    shape (n,), and ``slopes`` the derivatives by numbers, of shape (m,).
    """

    def __init__(
        self,
        method: str,
        equations: AdjointEquations,
        store: Store,
        rates: Callable[[float, FloatArray], FloatArray],
        native: tuple[BoundProgram, AdjointProgram] | None,
        tolerances: tuple[float, float],
    ) -> None:
        self._method, self._equations = METHODS[method], equations
        self._store, self._native, self._rates = store, native, rates
        n, m = equations.num_states, equations.num_keys
        rows = len(self._method.ends)
        sizes = {
            "point": equations.width,
            "points": rows * n,
            "k": rows * n,
            "bars": rows * n,
            "out": n + m + 1,
        }
        sizes |= {"adjoint": n, "slopes": m}
        numbers = {"n": n, "m": m, "p": equations.num_outputs}
        numbers |= {"read": len(equations.reads), "placed": len(equations.places)}
        indices = {"reads": equations.reads, "places": equations.places}
        if native is None:
            arrays = {name: np.zeros(size) for name, size in sizes.items()}
            self._data: Any = SimpleNamespace(**numbers, **arrays, **indices, env=None, own=None)
            self._data.rhs = self._call_rates
        else:
            self._memory = memory = StructureArrays(AdjointData)
            for name, number in numbers.items():
                setattr(memory.fields, name, number)
            arrays = {name: memory.room(name, size)[:size] for name, size in sizes.items()}
            for name, places in indices.items():
                memory.indices(name, places)
            memory.link("pulled", native[1].pulled)
            memory.link("shown", native[1].shown)
            whole, pointer = ctypes.c_int64, ctypes.c_void_p
            arguments = [pointer, pointer, whole, *[pointer] * 6]
            self._repeating: RunMemory | None = None
            if self._method.linear:
                program = native[0].program
                program.jacobian()  # before an environment is filled
                set_linear(memory.parts["linear"], program, None)
                rtol, atol = (np.full(n, each) for each in tolerances)
                self._repeating = RunMemory(program, method, rtol, atol)
            self._go_back = adjoint_loops(method).function("go_back", None, *arguments)
        self.adjoint, self.slopes = arrays["adjoint"], arrays["slopes"]

    def hold(self) -> None:
        """Take over the discrete values of the context."""
        if self._native is None:
            pulled, shown = self._equations.products(self._store, None)
            self._data.pulled, self._data.shown = partial(_put, pulled), partial(_put, shown)
            return
        bound, own = self._native
        memory = self._memory
        memory.attach("env", bound.env)  # first, since it may bring another program
        memory.link("rhs", bound.program.rhs)
        if self._repeating is not None:
            self._repeating.set_environment(bound.env)
        memory.attach("own", own.fill(self._store))

    def _call_rates(self, time: float, x: FloatArray, env: None, out: FloatArray) -> None:
        n = self._data.n
        out[:n] = self._rates(time, x[:n])

    def interpolating(self, fractions: FloatArray) -> FloatArray:
        """Return the weights of all slopes in states at fractions of a step, divided by it."""
        rows, tableau = len(self._method.ends), self._method.tableau
        slopes, nothing = np.eye(rows), np.zeros(rows)
        coefficients = np.zeros((self._method.bends, rows))
        end = np.array(self._method.ends)
        found = np.zeros((rows, len(fractions)))

        def known(time: float, x: FloatArray, env: None, out: FloatArray) -> None:
            """Leave the slopes what they are."""

        if self._method.linear:
            rosenbrock.bends(tableau, rows, nothing, end, slopes.ravel(), coefficients.ravel())
            arguments: Any = fractions, nothing, coefficients.ravel(), found
            rosenbrock.point_inside(rows, *arguments)
            return np.ascontiguousarray(found.T)
        step = 0.0, 1.0, np.inf, nothing, end, np.zeros(rows), slopes.ravel()
        bends(tableau, rows, known, *step, None, coefficients.ravel())  # type: ignore[arg-type]
        arguments = fractions, 1.0, nothing, coefficients.ravel(), found
        point_inside(tableau, rows, *arguments)
        return np.ascontiguousarray(found.T)

    def go_back(
        self,
        spans: FloatArray,
        states: FloatArray,
        counts: NDArray[np.int64],
        times: FloatArray,
        seeds: FloatArray,
    ) -> None:
        """Go through steps, the last one first.

        ``spans``, of shape (k, 3), are begins and ends of the steps, and latest times to evaluate
        at; ``states``, of shape (k, n), those at their begins. ``counts`` says how many samples are
        in each step: at ``times``, of shape (s,), in seconds, with the weights ``seeds``, of shape
        (s, p).
        """
        begin, end, clip = np.repeat(spans, counts, axis=0).T
        inside = np.clip(times, begin, end)
        weights = self.interpolating((inside - begin) / (end - begin))
        data: Any = spans, states, counts, np.minimum(inside, clip), seeds, weights
        arrays = [np.ascontiguousarray(each).ravel() for each in data]
        if self._native is not None:
            addresses = [address_of(each) for each in arrays]
            repeating = self._memory if self._repeating is None else self._repeating
            self._go_back(self._memory.pointer, repeating.pointer, len(spans), *addresses)
            return
        method = self._method
        with np.errstate(all="ignore"):
            nobody: Any = None
            go_back(self._data, nobody, method, method.ends, len(spans), *arrays)


def _put(function: Callable[..., FloatArray], *arguments: Any) -> None:
    """Call code of Python as a kernel calls functions."""
    time, x, _, out = arguments
    found = function(time, x)
    out[: len(found)] = found
