"""The right-hand side of a simulation: interpreted at first, later compiled if that pays.

Blocks that cannot be traced are interpreted in the midst of the code. Where that leaves nothing to
compile, and where the code gives other numbers than the equations, all is interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.jacobians import jacobian_length
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.tracing.compile_limits import JACOBIAN_STATEMENTS, STATEMENTS, refuse_beyond
from flexure.solvers.tracing.differences import difference_jacobian
from flexure.solvers.tracing.exact_jacobian import (
    ExactJacobian,
    JacobianCode,
    compressed,
    state_keys,
)
from flexure.solvers.tracing.interpreted_blocks import Interpreter, trace_with_foreign
from flexure.solvers.tracing.straight_line import ARITHMETIC_ERRORS, Function, StraightLine
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agree, agrees_at

_WORTHWHILE = 40  # evaluations that take as long as a trace and its code
_PATIENCE = 1000  # evaluations that straight-line code may hand back before it is given up


class Derivatives:
    """Time derivatives of everything below a root context, as a function of time and state.

    Evaluation by interpretation moves the values of the store.
    """

    def __init__(self, store: Store, *, compiled: bool) -> None:
        self._store = store
        self._left = _WORTHWHILE if compiled else -1
        self._expressions: list[Any] = []
        self._code: StraightLine | None = None
        self._interpreter = Interpreter(store, [])
        self._jacobian: ExactJacobian | None = None
        self._jacobian_is_long = False
        self._function: Function | None = None
        self._revision = -1
        self._handed_back = 0
        # How the equations are evaluated at present, in words.
        self.how = "interpreted" if not compiled else "interpreted, too few evaluations to compile"

    def __call__(self, time: float, x: FloatArray) -> FloatArray:
        """Return the derivatives, a fresh vector."""
        if self._code is not None:
            if self._revision != self._store.revision or self._function is None:
                self._function = self._bound()
            try:
                return self._function(time, x)
            except ARITHMETIC_ERRORS as error:
                if self._interpreter.raised(error):
                    raise
                return self._handed_back_evaluation(time, x)
        value = self._interpreted(time, x)
        self._left -= 1
        if self._left == 0:
            self._compile(time, x, value)
        return value

    def jacobian(self) -> Callable[[float, FloatArray], Any] | None:
        """Return the exact Jacobian by the state as a function of time and state.

        Only implicit methods need it; for them it pays to compile at once. The matrix is a sparse
        one where that pays. None when equations of some block are not compiled, and when that would
        take too long.
        """
        store = self._store
        if self._left > 0:
            self._left = 0
            with np.errstate(all="ignore"):
                value = self._interpreted(store.time, store.x)
            self._compile(store.time, store.x, value)
        if self._code is None or self._interpreter.functions:
            return None
        if self._jacobian is None and not self._jacobian_is_long:
            keys = state_keys(store)
            length = jacobian_length(simplify(self._expressions), keys)
            if length > JACOBIAN_STATEMENTS:
                self._jacobian_is_long = True
                self.how += f", Jacobian by differences, since the exact one takes about {length}"
                return None
            code = JacobianCode(self._expressions, keys, store.layout.num_states)
            self._jacobian = ExactJacobian(store, code)
            self.how += f", exact Jacobian of {code.operations}"
        return None if self._jacobian_is_long else self._finite_jacobian

    def _finite_jacobian(self, time: float, x: FloatArray) -> Any:
        """Return the exact Jacobian, or differences where an entry is infinite or undefined."""
        exact = self._jacobian
        assert exact is not None
        entries = exact.entries(time, x)
        if np.isfinite(entries).all():
            return exact.sparse(entries) if exact.is_sparse else exact.dense(entries)
        matrix = difference_jacobian(self, time, x, self(time, x))
        return compressed(matrix) if exact.is_sparse else matrix

    def _interpreted(self, time: float, x: FloatArray) -> FloatArray:
        self._store.set_motion(float(time), freeze(np.array(x)))
        derivatives: FloatArray = self._store.time_derivatives()
        return derivatives

    def _bound(self) -> Function:
        """Bind the code to the present parameters, discrete states and inputs."""
        assert self._code is not None
        self._revision = self._store.revision
        try:
            return self._code.bind(self._store, self._interpreter.functions)
        except ARITHMETIC_ERRORS:
            self._code = None
            self.how = "interpreted, because constants of the equations are not finite"
            return self._interpreted

    def _handed_back_evaluation(self, time: float, x: FloatArray) -> FloatArray:
        self._handed_back += 1
        if self._handed_back > _PATIENCE:
            self._code = None
            self.how = "interpreted, because the equations often divide by zero"
        return self._interpreted(time, x)

    def _compile(self, time: float, x: FloatArray, expected: FloatArray) -> None:
        """Compile, and keep the code if it gives the same numbers here."""
        trace = trace_with_foreign(self._store.layout)
        interpreter = Interpreter(self._store, trace.calls)
        try:
            refuse_beyond(STATEMENTS, len(reachable(trace.expressions)), "equations")
            code = StraightLine(trace.expressions, calls=trace.calls)
            if trace.calls and not code.operations:
                self.how = f"interpreted, because {trace.first_obstacle()}"
                return
            run = partial(code.bind(self._store, interpreter.functions), float(time))
            if trace.calls:  # which may keep something between calls
                agrees = agree(run(np.array(x)), expected)
            else:
                agrees = agrees_at(run, np.array(x), expected)
        except TraceError as error:
            self.how = f"interpreted, because {error.attempt[0].lower()}{error.attempt[1:]}"
            return
        except ARITHMETIC_ERRORS as error:
            if interpreter.raised(error):
                raise
            self.how = "interpreted, because the equations are singular where they were compiled"
            return
        if not agrees:
            self.how = f"interpreted, because {OTHER_NUMBERS}"
            return
        self._expressions, self._code, self._interpreter = trace.expressions, code, interpreter
        self.how = f"straight-line Python of {code.operations} operations"
        if trace.calls:
            self.how += f"; interpreted: {trace.interpreted_blocks()}"
