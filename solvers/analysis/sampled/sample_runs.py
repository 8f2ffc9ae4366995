"""The derivatives of a period along the run through it, where equations are others on the way.

The deviations of states, discrete values and inputs from the run follow linear equations, whose
derivatives are those at the present values of the run. Updates multiply them by a matrix. Between
updates, ``Ż = A(t) Z + F(t) B``, with the deviations Z of the states, and B of all that holds. That
is integrated by the Magnus method of fourth order, in which stiff equations need no small steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from flexure.diagrams.common.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.events import Event, EventKind
from flexure.diagrams.values.values import FloatArray
from flexure.solvers.analysis.equations.kept_equations import TracedEquations
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.sampled.clockwork import KINDS, Clockwork, write_discrete
from flexure.solvers.analysis.sampled.sample_instants import Instants
from flexure.solvers.tracing.exact_jacobian import ExactJacobian
from flexure.solvers.tracing.trace import STATE, Key, number_behind

Passing = Callable[[Collection[Event], EventKind], tuple[list[int], list[int]]]
_RTOL, _ATOL = 1e-11, 1e-13  # of the run, the latter relative to how far states are and move
_TOLERATED = 1e-10  # error of the derivatives in a step, relative to the largest of a row
_MOST_STEPS = 10**5


class SampleRun:
    """A run from a point on, with the deviations from it.

    Parameters
    ----------
    context : Context
        At the point, just before the first instant; it moves along.
    entries : LinearInputs
        Which wires are closed.
    equations : TracedEquations
        Rates, outputs and results of updates.
    clockwork : Clockwork
        What moves by time alone.
    instants : Instants
        When updates are due.
    keys : sequence of Key
        States, and discrete values that follow states or inputs.
    passing : callable
        ``passing(due, kind)`` returns rows of results, and places in ``keys`` that they are for.
    attempt : str
        Beginning of messages.
    """

    def __init__(
        self,
        context: Context,
        entries: LinearInputs,
        equations: TracedEquations,
        clockwork: Clockwork,
        instants: Instants,
        keys: Sequence[Key],
        passing: Passing,
        attempt: str,
    ) -> None:
        self._store, self._entries, self._equations = context.store, entries, equations
        self._clockwork, self._instants = clockwork, instants
        self._keys, self._passing, self._attempt = keys, passing, attempt
        self._exact = ExactJacobian(context.store, equations.slopes)

    @property
    def point(self) -> FloatArray:
        """The present states and discrete values."""
        store, n = self._store, len(self._store.x)
        held = [number_behind(store, key) for key in self._keys[n:]]
        return np.concatenate([store.x, held])

    def results(self, time: float) -> FloatArray:
        """Return rates, outputs and results of updates at the present values."""
        self._move(time, self._store.x)
        return self._equations.computed(self._store, time)

    def slopes(self, time: float) -> FloatArray:
        """Return the derivatives of results by states, discrete values and inputs."""
        self._move(time, self._store.x)
        return self._entries.closed(self._exact(time, self._store.x), len(self._keys))

    def update(self, phase: float, whole: FloatArray) -> FloatArray:
        """Let the updates of an instant pass, and return what becomes of deviations."""
        time, due = self._instants.time(phase), self._instants.due(phase)
        for kind in KINDS:
            rows, places = self._passing(due, kind)
            after, numbers = whole.copy(), self.point
            if rows:
                after[places] = self.slopes(time)[rows] @ whole[:-1]
                numbers[places] = self.results(time)[rows]
            self._clockwork.advance(self._store, due, kind)
            self._write(dict(zip(self._keys, numbers, strict=True)))
            whole = after
        return whole

    def flow(self, start: float, stop: float, whole: FloatArray) -> FloatArray:
        """Go on to the next stop, and return what becomes of deviations."""
        n = len(self._store.x)
        if not n:
            return whole
        begin, end = (self._instants.time(phase) for phase in (start, stop))
        last = np.nextafter(end, -np.inf)
        motion = self._motion(begin, end, last)
        moved, held = whole[:n], whole[n:-1]

        def slopes(time: float) -> FloatArray:
            self._move(min(time, last), motion(time))
            return self.slopes(min(time, last))[:n]

        time, length = begin, end - begin
        for _ in range(_MOST_STEPS):
            h = min(length, end - time)
            coarse = _magnus(slopes, time, h, moved, held)
            half = _magnus(slopes, time, 0.5 * h, moved, held)
            fine = _magnus(slopes, time + 0.5 * h, 0.5 * h, half, held)
            largest = np.abs(fine).max(axis=1, keepdims=True)
            error = float((np.abs(fine - coarse) / (15.0 * np.maximum(largest, 1e-300))).max())
            if not np.isfinite(error):
                break
            length = h * min(4.0, max(0.1, 0.8 * (_TOLERATED / max(error, 1e-300)) ** 0.2))
            if error <= _TOLERATED:
                time, moved = time + h, fine + (fine - coarse) / 15.0
                if time >= last:
                    self._move(end, motion(end))
                    return np.vstack([moved, whole[n:]])
        raise self._refusal(f"derivatives that do not settle at t = {time:.9g} s")

    def _motion(self, begin: float, end: float, last: float) -> Callable[[float], FloatArray]:
        """Return the states between two instants."""
        from scipy.integrate import solve_ivp

        n, x = len(self._store.x), self._store.x

        def rates(time: float, x: FloatArray) -> FloatArray:
            self._move(min(time, last), x.copy())
            return self._equations.computed(self._store, self._store.time)[:n]

        def jacobian(time: float, x: FloatArray) -> FloatArray:
            self._move(min(time, last), x.copy())
            return self.slopes(self._store.time)[:n, :n]

        reach = np.abs(x) + (end - begin) * np.abs(rates(begin, x))
        atol = _ATOL * np.maximum(reach, max(1e-9 * reach.max(), 1e-300))
        found = solve_ivp(
            rates, (begin, end), x, "LSODA", rtol=_RTOL, atol=atol, jac=jacobian, dense_output=True
        )
        if not (found.success and np.isfinite(found.y[:, -1]).all()):
            raise self._refusal(f"none beyond t = {found.t[-1]:.9g} s")
        between, final = found.sol, found.y[:, -1]
        return lambda time: final if time >= end else np.array(between(time))

    def _move(self, time: float, x: FloatArray) -> None:
        """Set time and states, and what follows from them behind wires that are closed."""
        self._store.set_motion(time, x)
        self._entries.follow(self._store)

    def _write(self, numbers: Mapping[Key, float]) -> None:
        """Set states and discrete values."""
        x = self._store.x.copy()
        for (origin, component), number in numbers.items():
            if origin[0] == STATE:
                x[component] = number
        self._store.set_motion(self._store.time, x)
        write_discrete(self._store, {k: v for k, v in numbers.items() if k[0][0] != STATE})

    def _refusal(self, found: str) -> EvaluationError:
        return EvaluationError(
            self._attempt,
            expected="a motion over one period, along which equations are linearized",
            found=found,
            remedy="Linearize at equilibrium(..., period=...).context, or at another point",
        )


def _magnus(
    slopes: Callable[[float], FloatArray],
    time: float,
    h: float,
    moved: FloatArray,
    held: FloatArray,
) -> FloatArray:
    """Return the deviations of states a step later."""
    from scipy.linalg import expm

    n = len(moved)
    early, late = (slopes(time + h * (0.5 + part * np.sqrt(3.0) / 6.0)) for part in (-1.0, 1.0))
    if not (np.isfinite(early).all() and np.isfinite(late).all()):
        return np.full_like(moved, np.nan)
    read = np.flatnonzero(np.any((early != 0.0) | (late != 0.0), axis=0)[n:])
    size = n + len(read)
    first, second = np.zeros((size, size)), np.zeros((size, size))
    for matrix, each in ((first, early), (second, late)):
        matrix[:n] = each[:, [*range(n), *(n + read)]]
    turned = first @ second - second @ first
    step = expm(0.5 * h * (first + second) - np.sqrt(3.0) / 12.0 * h**2 * turned)
    deviations: FloatArray = step[:n] @ np.vstack([moved, held[read]])
    return deviations


__all__ = ["SampleRun"]
