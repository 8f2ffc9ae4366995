"""Sensitivities: the derivative of a motion by parameters, from forward equations.

With ẋ = f(t, x, p), the matrix S = ∂x/∂p follows ::

    Ṡ = ∂f/∂x S + ∂f/∂p,    S(t₀) = ∂x₀/∂p

along the motion. The Jacobians are exact. States and sensitivities are integrated together, each
column of S times the size of its parameter, so that one tolerance fits all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams import scalars
from flexure.diagrams.answers import Answer
from flexure.diagrams.context import Context
from flexure.diagrams.errors import (
    EvaluationError,
    NonFiniteError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
)
from flexure.diagrams.events import Forced, Initialization
from flexure.diagrams.handles import start_context
from flexure.diagrams.places import Way, find_place, path_of
from flexure.diagrams.state import ContinuousState
from flexure.diagrams.store import Store
from flexure.diagrams.system import System, require_system
from flexure.diagrams.updates import run_updates
from flexure.diagrams.values import FloatArray, as_number, as_numbers, freeze
from flexure.solvers.analysis.equations import (
    Equations,
    Variable,
    find_variables,
    state_names,
)
from flexure.solvers.integration.methods import is_implicit, method_name
from flexure.solvers.integration.pace import Pace
from flexure.solvers.integration.stiffness import NONSTIFF_METHOD, assess
from flexure.solvers.simulation.diagnosis import explain_non_finite
from flexure.solvers.simulation.method_selection import Method
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.exact_jacobian import ExactJacobian
from flexure.solvers.tracing.trace import Key, trace

if TYPE_CHECKING:
    from scipy.sparse import csc_array

# Rodas5P solves with the Jacobian once and would be far off with one that is not exact.
_STIFF_METHOD = "Radau"


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Answer):
    """A motion and its derivatives by parameters.

    ``sensitivity["spring.stiffness"]`` is the derivative of the final state by a parameter, of
    shape (n, ...) with the shape of the parameter behind.

    Attributes
    ----------
    time : ndarray, shape (k,)
        Times in seconds.
    states : ndarray, shape (k, n)
        The states at these times.
    derivatives : dict
        By path of the parameter, the derivatives of the states, of shape (k, n, ...).
    state_names : list of str
        What the states are.
    context : Context
        A root context with the values at the end.
    """

    time: FloatArray
    states: FloatArray
    derivatives: dict[str, FloatArray]
    state_names: list[str]
    context: Context

    def __getitem__(self, parameter: Way) -> FloatArray:
        path = path_of(parameter)
        if path not in self.derivatives:
            with suppress(UnknownNameError):  # a parameter can have several names
                path = find_place(self.context.system, path).path
        if path not in self.derivatives:
            raise UnknownNameError(
                f"Cannot find the sensitivity to '{path}'",
                remedy=suggestion(path, self.derivatives),
            )
        final: FloatArray = self.derivatives[path][-1]
        return final

    def __repr__(self) -> str:
        count, states = self.states.shape
        when = f"t = {self.time[-1]:g} s"
        if count > 1:
            when = f"{count} times from {self.time[0]:g} to {self.time[-1]:g} s"
        what = f"{states} states of '{self.context.system.label}'"
        return f"<Sensitivity of {what} to {quoted(self.derivatives)}, {when}>"


def sensitivity(
    system: System,
    t_final: float,
    parameters: Way | Iterable[Way],
    context: Context | None = None,
    *,
    times: npt.ArrayLike | None = None,
    method: Method = "auto",
    rtol: float = 1e-8,
    atol: float | None = None,
) -> Sensitivity:
    """Simulate a block or diagram together with the derivatives of its states by parameters.

    Parameters
    ----------
    system : System
        A block or diagram without events that change states, other than at the beginning.
    t_final : float
        End time in seconds.
    parameters : NumericParameter, InputPort, str or iterable of them
        Parameters and fixed input ports by handle or path.
    context : Context, optional
        Where to start, a root context; it is not changed. A default context when omitted.
    times : array_like, shape (k,), optional
        Ascending times in seconds for the result; the end alone when omitted.
    method : str or OdeSolver class
        As for `Simulator`, but without fixed steps.
    rtol, atol : float
        Tolerances of states and, in proportion to the parameters, of sensitivities; ``atol``
        defaults to a thousandth of ``rtol``.

    Returns
    -------
    Sensitivity

    Raises
    ------
    TraceError
        When a block cannot be traced; the text names it.
    EvaluationError
        When an event changes a state, or a parameter moves the time of a jump.
    SimulationError
        When the integration cannot go on.

    Notes
    -----
    The initial state counts as independent of the parameters, except where a block sets its own
    state at the beginning. Publishes, such as those of logs, are left out. The derivatives must be
    continuous where the motion crosses a border of the equations: at a jump of ``np.sign`` or the
    like, the sensitivities would jump as well, which these equations do not know.

    Examples
    --------
    A lag that discharges, x = e^(-t/τ), has ∂x/∂τ = t/τ² e^(-t/τ), here 0.75 e^(-1.5):

    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> lag.u.fix(context, 0.0)
    >>> result = fx.sensitivity(lag, 3.0, ["time_constant"], context)
    >>> result["time_constant"].round(6)
    array([0.167348])
    """
    require_system(system, "Cannot take a sensitivity")
    attempt = f"Cannot take the sensitivity of '{system.label}'"
    start = start_context(system, context, attempt)
    variables = find_variables(start, parameters, attempt)
    _refuse_events(start, attempt)
    grid = _checked_times(start.time, t_final, times, attempt)
    initial = _initialize(start, variables, attempt)
    run = _SensitivityRun(start, variables, initial, attempt)
    samples = run.to(float(t_final), grid, method, rtol, 1e-3 * rtol if atol is None else atol)

    n = start.store.layout.num_states
    scaled = samples[:, n:].reshape(len(grid), len(run.scale), n)
    columns = (scaled / run.scale[:, np.newaxis]).swapaxes(1, 2)
    ends = np.cumsum([len(v.keys) for v in variables])[:-1]
    parts = np.split(columns, ends, axis=2) if variables else []
    return Sensitivity(
        time=grid,
        states=samples[:, :n],
        derivatives={
            v.place.path: part.reshape(len(grid), n, *v.shape)
            for v, part in zip(variables, parts, strict=True)
        },
        state_names=state_names(start),
        context=start,
    )


def _refuse_events(context: Context, attempt: str) -> None:
    """Refuse events that change states, except those at the beginning."""
    for leaf in context.leaves():
        for event in leaf.system.events:
            initial = isinstance(event.trigger, Initialization) and event.kind == "unrestricted"
            if event.kind != "publish" and not (initial or isinstance(event.trigger, Forced)):
                raise EvaluationError(
                    attempt,
                    expected="a motion without events",
                    found=f"the {event.kind} update '{event.label}'",
                    remedy="Take differences of two simulations instead",
                )


def _checked_times(
    start: float, t_final: float, times: npt.ArrayLike | None, attempt: str
) -> FloatArray:
    t_final = float(as_number(t_final, (), attempt))
    grid = as_numbers([t_final] if times is None else times, attempt)
    fine = grid.ndim == 1 and grid.size and np.isfinite(grid).all() and np.all(np.diff(grid) > 0.0)
    if not (fine and math.isfinite(t_final) and start <= grid[0] and grid[-1] <= t_final):
        raise ValueRefusedError(
            attempt,
            expected=f"ascending times from {start:g} s to t_final={t_final!r} s",
            found=repr(grid.tolist()),
        )
    return grid


def _initialize(context: Context, variables: Sequence[Variable], attempt: str) -> FloatArray:
    """Run the updates at the beginning; return the derivatives of the initial state."""

    def read(store: Store) -> tuple[list[Any], list[Any]]:
        """Return the continuous states after the updates, and what else they write."""
        x, others = list(store.x), []
        for leaf in store.leaves:
            for event in leaf.system.events:
                if isinstance(event.trigger, Initialization) and event.kind == "unrestricted":
                    for state, value in (event.handler(leaf) or {}).items():
                        if isinstance(state, ContinuousState):
                            x[leaf.x_slice] = list(state.check(value, attempt))
                        else:
                            others.extend(state.check(value, attempt))
        return x, others

    store = context.store
    keys: list[Key] = [key for variable in variables for key in variable.keys]
    x, others = trace(store.layout, read)
    if scalars.jacobian(others, keys).entries:
        raise EvaluationError(
            attempt,
            expected="initial discrete states that do not depend on the parameters",
            found="an update at the beginning that computes one from them",
        )
    derivatives = ExactJacobian(store, x, keys)(store.time, store.x)
    run_updates(
        (leaf, event)
        for leaf in context.leaves()
        for event in leaf.system.events
        if event.kind != "publish" and isinstance(event.trigger, Initialization)
    )
    return derivatives


def _iterates(method: Method) -> bool:
    """Tell whether a method makes do with a Jacobian from which some coupling is left out."""
    return is_implicit(method) and method_name(method) != "Rodas5P"


class _SensitivityRun:
    """The motion of states and scaled sensitivities together, column by column."""

    def __init__(
        self, context: Context, variables: Sequence[Variable], initial: FloatArray, attempt: str
    ) -> None:
        equations = Equations(context, variables)
        if equations.exact is None:
            assert equations.obstacle is not None
            raise equations.obstacle
        self._context = context
        self._store = store = context.store
        self._variables = variables
        self._attempt = attempt
        self._slopes = equations.exact
        self._rates = Derivatives(store, compiled=True)
        self._size = store.layout.num_states
        numbers = np.abs(equations.point()[self._size :])
        self.scale = np.where(numbers > 0.0, numbers, 1.0)
        self._time = store.time
        self._x = np.concatenate([store.x, (initial * self.scale).T.ravel()])

    def to(
        self, t_final: float, grid: FloatArray, method: Method, rtol: float, atol: float
    ) -> FloatArray:
        """Integrate up to a time and return the values at the times of the grid."""
        from flexure.solvers.integration.integration import integrate

        samples = [self._x for time in grid if time == self._time]
        if not self._size:
            return np.zeros((len(grid), 0))
        method = self._chosen(method, t_final)
        pace = Pace(self._time, t_final)
        while self._time < t_final:  # ends: a break time is later, and the pace is judged
            stop = min(self._next_breaks().values(), default=math.inf)
            jumps = stop <= t_final
            stop = min(stop, t_final)
            segment = integrate(
                self._derivatives,
                self._time,
                self._x,
                stop,
                method=method,
                rtol=rtol,
                atol=atol,
                jac=self._jacobian if _iterates(method) else None,
                keep_dense=True,
                blame=self._blame,
                pace=pace,
                t_clip=math.nextafter(stop, -math.inf) if jumps else math.inf,
            )
            for time in grid[(grid > self._time) & (grid <= stop)]:
                index = int(np.searchsorted(segment.t, time)) - 1
                exact = time == segment.t[index + 1]
                samples.append(segment.x[index + 1] if exact else segment.interpolants[index](time))
            if jumps:
                self._refuse_moving_jump(stop, segment.x[-1, : self._size])
            self._time, self._x = stop, segment.x[-1]
            self._store.set_motion(stop, freeze(self._x[: self._size].copy()))
        return np.array(samples)

    def _chosen(self, method: Method, t_final: float) -> Method:
        """Choose a method where the user left it open."""
        if not (isinstance(method, str) and method == "auto"):
            return method

        def jacobian(time: float, x: FloatArray) -> FloatArray:
            return self._slopes(time, x)[:, : self._size]

        states = self._x[: self._size]
        verdict = assess(self._rates, self._time, states, t_final - self._time, jac=jacobian)
        return _STIFF_METHOD if verdict.stiff else NONSTIFF_METHOD

    def _derivatives(self, time: float, x: FloatArray) -> FloatArray:
        n = self._size
        states, columns = x[:n], x[n:].reshape(-1, n)
        slopes = self._slopes(time, states)
        motion = columns @ slopes[:, :n].T + (slopes[:, n:] * self.scale).T
        return np.concatenate([self._rates(time, states), motion.ravel()])

    def _jacobian(self, time: float, x: FloatArray) -> csc_array:
        """Return the blocks on the diagonal; those beside them only couple one way."""
        from scipy.sparse import csc_array, eye_array, kron

        block = csc_array(self._slopes(time, x[: self._size])[:, : self._size])
        return csc_array(kron(eye_array(x.size // self._size), block))

    def _blame(self, time: float, x: FloatArray, xdot: FloatArray | None) -> Exception:
        """Make the error for something that is not finite."""
        n = self._size
        if np.isfinite(x[:n]).all() and (xdot is None or np.isfinite(xdot[:n]).all()):
            return NonFiniteError(
                f"{self._attempt} at t = {float(time):.9g} s",
                expected="finite derivatives by states and parameters",
                found="NaN or infinity",
                remedy="Look for a root or a quotient whose slope is infinite there",
            )
        return explain_non_finite(self._store, float(time), freeze(np.array(x[:n])))

    # Break times ---------------------------------------------------------------------------

    def _next_breaks(self) -> dict[System, float]:
        """Return the next time at which each block's equations are not smooth."""
        return {
            leaf.system: float(leaf.system.calc_next_break_time(leaf))
            for leaf in self._context.leaves()
            if leaf.system.has_break_times
        }

    def _refuse_moving_jump(self, stop: float, states: FloatArray) -> None:
        """Refuse a jump of the derivatives at a time that depends on a parameter."""
        before, after = (
            self._rates(math.nextafter(stop, -math.inf), states),
            self._rates(stop, states),
        )
        size = np.maximum(np.abs(before), np.abs(after))
        if np.all(np.abs(after - before) <= 1e-9 * size + 1e-12 * np.max(size)):
            return
        self._store.set_motion(self._time, freeze(self._x[: self._size].copy()))
        breaking = [block for block, time in self._next_breaks().items() if time == stop]
        for variable in self._variables:
            numbers = variable.read(self._store)
            for component, number in enumerate(numbers):
                moved = numbers.copy()
                moved[component] += 1e-6 * max(abs(number), 1e-3)
                variable.write(self._store, moved)
                breaks = self._next_breaks()
                variable.write(self._store, numbers)
                if any(breaks[block] != stop for block in breaking):
                    raise EvaluationError(
                        self._attempt,
                        expected="jumps at times that do not depend on the parameters",
                        found=f"a jump at t = {stop:g} s that '{variable.place.path}' moves",
                        remedy="Take differences of two simulations instead",
                    )
