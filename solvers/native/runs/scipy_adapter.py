"""The native loops behind SciPy's front: a right-hand side and solver classes for `solve_ivp`.

::

    equations = fx.compiled_equations(system, context)
    solve_ivp(equations, (0.0, 10.0), equations.x0, method=equations.method("RK45"), rtol=1e-8)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import TraceError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.integration.methods.methods import method_name, resolve
from flexure.solvers.native.programs.plan import Plan
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.programs.programs import (
    BoundProgram,
    UnsuitableError,
    has_loop,
    native_program,
)
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.exact_jacobian import (
    ExactJacobian,
    JacobianCode,
    numbers_behind,
    state_keys,
)
from flexure.solvers.tracing.trace import trace_derivatives
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agrees_at, interpreted_numbers

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver


class CompiledEquations:
    """The time derivatives of a system as a function ``f(t, x)`` for SciPy.

    Made by `compiled_equations`. Parameters, fixed inputs and discrete states are those that the
    context has when a solver is made or the function is called; its time and continuous state are
    neither read nor changed.

    Attributes
    ----------
    context : Context
        Whose parameters are used.
    t0 : float
        The time of the context when the object was made, in seconds.
    x0 : ndarray, shape (n,)
        Its continuous state then.
    why : str
        Why there is no native code; empty where there is.

    See Also
    --------
    compiled_equations : Make one of a system.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> context.set("u", 0.0)
    >>> equations = fx.compiled_equations(lag, context)
    >>> equations(0.0, equations.x0)
    array([-0.5])
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._store = context.store
        self.t0 = float(context.time)
        self.x0: FloatArray = np.array(context.store.x, dtype=float)
        program, self.why = self._find_program()
        self._bound = None if program is None else BoundProgram(program, self._store)
        if self._bound is not None and not self._agrees(partial(self._bound, self.t0)):
            self._bound, self.why = None, OTHER_NUMBERS
        self._derivatives = Derivatives(self._store, compiled=True)
        self._jacobian: ExactJacobian | None = None

    def _find_program(self) -> tuple[Program | None, str]:
        """Return the native code, or why there is none."""
        try:
            return native_program(self._store), ""
        except UnsuitableError as reason:
            return None, str(reason.__cause__ or reason)

    def _agrees(self, values: Callable[[FloatArray], npt.ArrayLike]) -> bool:
        """Return whether a function of the states gives the derivatives that the equations give."""
        store = self._store
        expected = interpreted_numbers(store)
        return expected is None or agrees_at(values, store.x, expected)

    @property
    def program(self) -> Program | None:
        """The native code for the present values of the context; None when there is none."""
        return None if self._bound is None else self._bound.program

    @property
    def plan(self) -> Plan | None:
        """How the equations became native code, and why; None without, which ``why`` explains.

        ``print`` it: a few lines state whether the code of the derivatives is written out or shared
        by equal blocks, how the steps of each method are made, and how the Jacobian is computed,
        once it was requested.
        """
        return None if self.program is None else self.program.plan

    def __call__(self, t: float, x: npt.ArrayLike) -> FloatArray:
        """Return the time derivatives, a new array of shape (n,)."""
        state = np.ascontiguousarray(x, dtype=np.float64)
        if state.shape != self.x0.shape:
            raise ValueRefusedError(
                f"Cannot evaluate the derivatives of '{self.context.system.label}'",
                expected=f"a state of shape {self.x0.shape}",
                found=f"shape {state.shape}",
            )
        if self._bound is not None:
            return self._bound(float(t), state)
        return self._evaluated(float(t), state)

    def _evaluated(self, t: float, x: FloatArray) -> FloatArray:
        """Evaluate without native code, which may move the context and so moves it back."""
        store = self._store
        time, before = store.time, store.x
        try:
            return self._derivatives(t, x)
        finally:
            if store.x is not before:
                store.set_motion(time, before)

    def environment(self) -> FloatArray:
        """Return the environment of the native code with the present values of the context."""
        assert self._bound is not None
        return self._bound.env

    def jac(self, t: float, x: npt.ArrayLike) -> Any:
        """Return the exact Jacobian by the state, dense, or sparse where that pays.

        Raises
        ------
        TraceError
            When the equations cannot be traced, or their trace gives other numbers.
        """
        if self._jacobian is None:
            store = self._store
            expressions = trace_derivatives(store.layout)

            def values(x: FloatArray) -> FloatArray:
                numbers = numbers_behind(store, expressions, store.time, x)
                return np.array(scalars.evaluate(expressions, numbers), dtype=float)

            with np.errstate(all="ignore"):
                agrees = self._agrees(values)
            if not agrees:
                raise TraceError(OTHER_NUMBERS.capitalize())
            code = JacobianCode(expressions, state_keys(store), store.layout.num_states)
            self._jacobian = ExactJacobian(store, code)
        exact = self._jacobian
        entries = exact.entries(float(t), np.array(x, dtype=float))
        return exact.sparse(entries) if exact.is_sparse else exact.dense(entries)

    def method(self, name: str = "RK45") -> type[OdeSolver]:
        """Return the solver class of a method for these equations.

        Parameters
        ----------
        name : str
            A name out of `flexure.solvers.integration.methods.methods.METHOD_NAMES`.

        Returns
        -------
        type
            A class with a native loop where there is one; else the plain class of the method,
            which takes the same steps.
        """
        name = method_name(name)
        if self.program is None or not has_loop(name) or self.program.obstacle(name):
            return resolve(name)
        from flexure.solvers.native.runs.scipy_solver import NativeSolver

        return type(f"Native{name}", (NativeSolver,), {"equations": self, "method": name})


def compiled_equations(system: System, context: Context | None = None) -> CompiledEquations:
    """Return the time derivatives of a system as compiled code for ``solve_ivp``.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        A root context of it, whose parameters are used; a default one when omitted.

    Returns
    -------
    CompiledEquations
        Call it as ``f(t, x)``; it has the initial state ``x0``, the Jacobian ``jac`` and solver
        classes ``method(name)``.

    Raises
    ------
    ContextError
        When the context belongs to another system.

    See Also
    --------
    simulate : Flexure's own integration.
    equation : The equation as text.

    Notes
    -----
    Events are for `flexure.Simulator`: here nothing updates and nothing is published.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.integrate import solve_ivp
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0)
    >>> context = lag.create_default_context()
    >>> context.set("u", 1.0)
    >>> equations = fx.compiled_equations(lag, context)
    >>> options = {"method": equations.method("DOP853"), "rtol": 1e-10, "atol": 1e-12}
    >>> solution = solve_ivp(equations, (0.0, 2.0), equations.x0, **options)
    >>> print(solution.y[0, -1].round(9))
    0.632120559
    """
    require_system(system, "Cannot compile equations")
    context = system.create_default_context() if context is None else context
    require_root(context, system, f"Cannot compile the equations of '{system.label}'")
    return CompiledEquations(context)
