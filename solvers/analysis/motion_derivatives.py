"""A motion together with its derivatives by parameters, run once or again and again.

With ẋ = f(t, x, p), the matrix S = ∂x/∂p follows ::

    Ṡ = ∂f/∂x S + ∂f/∂p,    S(t₀) = ∂x₀/∂p

along the motion, and outputs y = g(t, x, p) have the derivatives ∂g/∂x S + ∂g/∂p. The Jacobians are
exact. States and sensitivities are integrated together, each column of S times the size of its
parameter, so that one tolerance fits all. Of an initial state, S(t₀) is a column of the identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.context import Context
from flexure.diagrams.errors import EvaluationError, NonFiniteError
from flexure.diagrams.events import Forced, Initialization
from flexure.diagrams.places import Place
from flexure.diagrams.starts import initialize
from flexure.diagrams.state import ContinuousState
from flexure.diagrams.store import Store
from flexure.diagrams.system import System
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.analysis.assembled_slopes import AssembledSlopes
from flexure.solvers.analysis.equations import Equations, Variable
from flexure.solvers.analysis.kept_equations import TracedEquations, kept_equations
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
_STRAIGHT = 1e-12  # of the values: less of a bend is rounding


@dataclass(frozen=True, eq=False)
class Drive:
    """Free input ports that follow straight lines between given points.

    Attributes
    ----------
    slot : int
        The slot of the port.
    times : ndarray, shape (k,)
        Instants of the points.
    values : ndarray, shape (k, size)
        The points.
    """

    slot: int
    times: FloatArray
    values: FloatArray
    _bends: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ways = np.diff(self.values, axis=0)
        lengths = np.diff(self.times)[:, np.newaxis]
        turn = np.abs(ways[1:] - ways[:-1] * lengths[1:] / lengths[:-1])
        bends = np.any(turn > _STRAIGHT * np.max(np.abs(self.values)), axis=1)
        object.__setattr__(self, "_bends", self.times[1:-1][bends])

    def apply(self, store: Store, time: float) -> None:
        """Fix the port at the value of a time."""
        last = len(self.times) - 2
        k = min(max(int(np.searchsorted(self.times, time, side="right")) - 1, 0), last)
        share = (time - self.times[k]) / (self.times[k + 1] - self.times[k])
        value = self.values[k] + share * (self.values[k + 1] - self.values[k])
        if not (store.holds(self.slot) and np.array_equal(store.cache[self.slot], value)):
            store.fix(self.slot, freeze(value))

    def next_bend(self, time: float) -> float:
        """Return the next instant at which the line bends."""
        k = int(np.searchsorted(self._bends, time, side="right"))
        return float(self._bends[k]) if k < len(self._bends) else math.inf


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """States and outputs at some times, and their derivatives by the variables.

    Attributes
    ----------
    states, outputs : ndarray, shapes (k, n) and (k, p)
        The values.
    state_slopes, output_slopes : ndarray, shapes (k, n, m) and (k, p, m)
        Their derivatives.
    """

    states: FloatArray
    outputs: FloatArray
    state_slopes: FloatArray
    output_slopes: FloatArray


def refuse_events(context: Context, attempt: str) -> None:
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


def _iterates(method: Method) -> bool:
    """Tell whether a method makes do with a Jacobian from which some coupling is left out."""
    return is_implicit(method) and method_name(method) != "Rodas5P"


class MotionDerivatives:
    """The motion of a context with its derivatives, which is traced once for any number of runs.

    Parameters
    ----------
    context : Context
        A root context; `run` moves it from where it is to the end.
    variables : sequence of Variable
        Parameters, fixed inputs and initial states.
    outputs : sequence of Place
        Ports or continuous states, or components of them.
    drives : sequence of Drive
        Free input ports that change along the motion.
    attempt : str
        Beginning of messages.
    """

    def __init__(
        self,
        context: Context,
        variables: Sequence[Variable],
        outputs: Sequence[Place],
        attempt: str,
        drives: Sequence[Drive] = (),
    ) -> None:
        self._context = context
        self._store = store = context.store
        self._attempt = attempt
        self._drives = drives
        self._all = variables
        self._places = outputs
        self._size = store.layout.num_states
        keys: list[Key] = [key for variable in variables for key in variable.keys]
        steers = [not variable.is_state for variable in variables for _ in variable.keys]
        self._steering = np.flatnonzero(steers)
        self._variables = [variable for variable in variables if not variable.is_state]
        self._initial = _initial_jacobian(context, keys, attempt)
        self._rates = Derivatives(store, compiled=True)
        self._slopes: ExactJacobian | None = None
        self._shown: Equations | None = None
        self._method: Method | None = None
        self._assembled = AssembledSlopes(context, self._variables, _exact)
        self.scale = np.ones(len(keys))

    def run(
        self, t_final: float, grid: FloatArray, method: Method, rtol: float, atol: float
    ) -> MotionSamples:
        """Run the updates at the beginning, and integrate up to a time.

        Parameters
        ----------
        t_final : float
            Where the motion ends, in seconds.
        grid : ndarray, shape (k,)
            Ascending times of the samples, none beyond the end.
        method, rtol, atol
            As for `sensitivity`; what "auto" chooses in the first run serves all.
        """
        store, n = self._store, self._size
        self._drive(store.time)
        initial = self._initial(store.time, store.x)
        initialize(self._context)
        self._trace()
        names = [variable.place.path for variable in self._all for _ in variable.keys]
        initial = self._assembled.closed(initial, self._steering, names)
        numbers = np.abs(np.concatenate([np.zeros(0), *[v.read(store) for v in self._all]]))
        self.scale = np.where(numbers > 0.0, numbers, 1.0)
        self._time = store.time
        self._x = np.concatenate([store.x, (initial * self.scale).T.ravel()])
        samples = self._integrate(t_final, grid, method, rtol, atol)
        scaled = samples[:, n:].reshape(len(grid), len(self.scale), n)
        columns = (scaled / self.scale[:, np.newaxis]).swapaxes(1, 2)
        outputs, slopes = self._show(grid, samples[:, :n], columns)
        return MotionSamples(samples[:, :n], outputs, columns, slopes)

    def _trace(self) -> None:
        """Trace the equations, the first time."""
        if self._slopes is None:
            self._slopes = _exact(Equations(self._context, self._variables))
        if self._shown is None and self._places:
            self._shown = Equations(self._context, self._variables, self._places)
            _exact(self._shown)

    def _show(
        self, grid: FloatArray, states: FloatArray, columns: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the outputs and their derivatives at the times of samples."""
        if self._shown is None:
            return np.zeros((len(grid), 0)), np.zeros((len(grid), 0, len(self.scale)))
        n, store = self._size, self._store
        end, x_end = store.time, store.x
        parameters = self._shown.point()[n:]
        values, slopes = [], []
        for time, x, column in zip(grid.tolist(), states, columns, strict=True):
            self._drive(time)
            store.set_motion(time, freeze(x.copy()))
            point = np.concatenate([x, parameters])
            values.append(self._shown.values(point)[n:])
            matrix = self._shown.jacobian(point)[n:]
            slope = matrix[:, :n] @ column
            slope[:, self._steering] += matrix[:, n:]
            slopes.append(slope)
        self._drive(end)
        store.set_motion(end, x_end)
        found = np.array(values), np.array(slopes)
        if not all(np.isfinite(each).all() for each in found):
            raise NonFiniteError(
                self._attempt,
                expected="finite outputs, and derivatives of them",
                found="NaN or infinity",
                remedy="Look for a root or a quotient whose slope is infinite there",
            )
        return found

    def _drive(self, time: float) -> None:
        for drive in self._drives:
            drive.apply(self._store, time)

    def _integrate(
        self, t_final: float, grid: FloatArray, method: Method, rtol: float, atol: float
    ) -> FloatArray:
        """Integrate up to a time and return the values at the times of the grid."""
        from flexure.solvers.integration.integration import integrate

        samples = [self._x for time in grid if time == self._time]
        if not self._size:
            return np.zeros((len(grid), 0))
        method = self._chosen(method, t_final)
        pace = Pace(self._time, t_final)
        first_step = None
        while self._time < t_final:  # ends: a break time is later, and the pace is judged
            stop = min(self._next_breaks().values(), default=math.inf)
            bend = min((d.next_bend(self._time) for d in self._drives), default=math.inf)
            jumps = stop <= min(t_final, bend)
            stop = min(stop, t_final, bend)
            segment = integrate(
                self._derivatives,
                self._time,
                self._x,
                stop,
                method=method,
                rtol=rtol,
                atol=atol,
                jac=self._jacobian if _iterates(method) else None,
                first_step=first_step,
                keep_dense=True,
                blame=self._blame,
                pace=pace,
                t_clip=math.nextafter(stop, -math.inf) if jumps else math.inf,
            )
            for time in grid[(grid > self._time) & (grid <= stop)]:
                index = int(np.searchsorted(segment.t, time)) - 1
                exact = time == segment.t[index + 1]
                samples.append(segment.x[index + 1] if exact else segment.interpolants[index](time))
            first_step = None if jumps else segment.next_step  # the rates go on behind a bend
            if jumps:
                self._refuse_moving_jump(stop, segment.x[-1, : self._size])
            self._time, self._x = stop, segment.x[-1]
            self._store.set_motion(stop, freeze(self._x[: self._size].copy()))
        return np.array(samples)

    def _chosen(self, method: Method, t_final: float) -> Method:
        """Choose a method where the user left it open."""
        if not (isinstance(method, str) and method == "auto"):
            return method
        if self._method is not None:
            return self._method

        def jacobian(time: float, x: FloatArray) -> FloatArray:
            return self._jacobian_of(time, x)[:, : self._size]

        states = self._x[: self._size]
        verdict = assess(self._rates, self._time, states, t_final - self._time, jac=jacobian)
        self._method = _STIFF_METHOD if verdict.stiff else NONSTIFF_METHOD
        return self._method

    def _jacobian_of(self, time: float, x: FloatArray) -> FloatArray:
        """Return the derivatives of the rates by states and steering variables."""
        assert self._slopes is not None
        return self._slopes(time, x)

    def _derivatives(self, time: float, x: FloatArray) -> FloatArray:
        n = self._size
        self._drive(time)
        states, columns = x[:n], x[n:].reshape(-1, n)
        slopes = self._jacobian_of(time, states)
        motion = columns @ slopes[:, :n].T
        motion[self._steering] += (slopes[:, n:] * self.scale[self._steering]).T
        return np.concatenate([self._rates(time, states), motion.ravel()])

    def _jacobian(self, time: float, x: FloatArray) -> csc_array:
        """Return the blocks on the diagonal; those beside them only couple one way."""
        from scipy.sparse import csc_array, eye_array, kron

        self._drive(time)
        block = csc_array(self._jacobian_of(time, x[: self._size])[:, : self._size])
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


def _exact(equations: Equations) -> ExactJacobian:
    """Return the exact Jacobian, or raise what is in its way."""
    if equations.exact is None:
        assert equations.obstacle is not None
        raise equations.obstacle
    return equations.exact


def _initial_jacobian(
    context: Context, keys: Sequence[Key], attempt: str
) -> Callable[[float, FloatArray], FloatArray]:
    """Return the derivatives of the state after the updates at the beginning."""

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

    def traced() -> TracedEquations:
        x, others = trace(layout, read)
        if scalars.jacobian(others, keys).entries:
            raise EvaluationError(
                attempt,
                expected="initial discrete states that do not depend on the parameters",
                found="an update at the beginning that computes one from them",
            )
        return TracedEquations(layout, x, keys)

    layout = context.store.layout
    found, _ = kept_equations(layout, ("beginning", *keys), traced)
    return ExactJacobian(context.store, found.slopes)


__all__ = ["Drive", "MotionDerivatives", "MotionSamples", "refuse_events"]
