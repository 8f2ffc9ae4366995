"""Derivatives of a period along its simulation, if the equations change within it.

The deviations of states, discrete values and inputs from the run follow linear equations, whose
derivatives are those at the present values of the run. Updates multiply them by a matrix. Between
updates, ``Ż = A(t) Z + F(t) B``, with the deviations Z of the states, and B of all that holds. Run
and deviations take the same steps of Radau IIA of fifth order, so that the deviations are the
derivatives of these steps, and stiff equations need no small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Event, EventKind
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.analysis.equations.kept_equations import TracedEquations
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.sampled.time_driven_values import (
    KINDS,
    Instants,
    TimeDrivenValues,
    write_discrete,
)
from flexure.solvers.integration.methods.tableaus import RADAU_IIA
from flexure.solvers.tracing.exact_jacobian import ExactJacobian
from flexure.solvers.tracing.trace import number_behind

Passing = Callable[[Collection[Event], EventKind], tuple[list[int], list[int]]]
_TOLERATED = 1e-9  # difference of a step and its halves, relative to states and deviations
_MOST_STEPS = 10**4
_NEWTON_STEPS, _SETTLED = 8, 1e-11  # relative to how far states are and move
_TIMES, _WEIGHTS = np.array(RADAU_IIA.C), np.array(RADAU_IIA.A)


class SampleRun:
    """A run from a point on, with the deviations from it.

    The context is at the point, just before the first instant, and moves along. Equations are
    rates, outputs and results of updates; ``keys`` are states, and discrete values that follow
    states or inputs. ``passing(due, kind)`` returns rows of results, and the places in ``keys``
    that they are for.
    """

    def __init__(
        self,
        context: Context,
        entries: LinearInputs,
        equations: TracedEquations,
        time_driven: TimeDrivenValues,
        instants: Instants,
        keys: Sequence[Key],
        passing: Passing,
        attempt: str,
    ) -> None:
        self._store, self._entries, self._equations = context.store, entries, equations
        self._time_driven, self._instants = time_driven, instants
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
            self._time_driven.advance(self._store, due, kind)
            self._write(dict(zip(self._keys, numbers, strict=True)))
            whole = after
        return whole

    def flow(self, start: float, stop: float, whole: FloatArray) -> FloatArray:
        """Go on to the next stop, and return what becomes of deviations."""
        x, n = self._store.x, len(self._store.x)
        if not n:
            return whole
        time, end = (self._instants.time(phase) for phase in (start, stop))
        last, moved, held, length = np.nextafter(end, -np.inf), whole[:n], whole[n:-1], end - time
        reach = np.abs(x) + length * np.abs(self.results(time)[:n])
        unit = np.maximum(reach, max(1e-9 * reach.max(), 1e-300))
        for _ in range(_MOST_STEPS):
            h = min(length, end - time)
            coarse, rough = self._step(time, h, last, x, moved, held, unit)
            error = np.inf
            if np.isfinite(coarse).all():
                half = self._step(time, 0.5 * h, last, x, moved, held, unit)
                new, fine = self._step(time + 0.5 * h, 0.5 * h, last, *half, held, unit)
                largest = np.maximum(np.abs(fine).max(axis=1, keepdims=True), 1e-300)
                errors = [(new - coarse) / unit, (fine - rough) / largest]
                error = max(float(np.abs(each).max()) for each in errors)
            length = h * min(4.0, max(0.1, 0.8 * (_TOLERATED / max(error, 1e-300)) ** (1 / 6)))
            if error <= _TOLERATED:
                time, x, moved = time + h, new, fine
                if time >= last:
                    self._move(end, x)
                    return np.vstack([moved, whole[n:]])
        raise EvaluationError(
            self._attempt,
            expected="a motion over one period, along which equations are linearized",
            found=f"none beyond t = {time:.9g} s in {_MOST_STEPS} steps",
            remedy="Linearize at equilibrium(..., period=...).context, or at another point",
        )

    def _step(
        self,
        time: float,
        h: float,
        last: float,
        x: FloatArray,
        moved: FloatArray,
        held: FloatArray,
        unit: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return states and their deviations a step later; NaN where it has no solution."""
        n, count = len(x), len(_TIMES)
        failed = np.full_like(x, np.nan), np.full_like(moved, np.nan)
        stages = np.tile(x, (count, 1))
        for _ in range(_NEWTON_STEPS):
            rates, slopes = np.empty((count, n)), []
            for k, part in enumerate(_TIMES):
                self._move(now := min(time + part * h, last), stages[k].copy())
                rates[k] = self._equations.computed(self._store, now)[:n]
                slopes.append(self.slopes(now)[:n])
            by_states = np.hstack([matrix[:, :n] for matrix in slopes])
            parts = h * np.kron(_WEIGHTS, np.ones((n, n)))
            system = np.eye(count * n) - parts * np.tile(by_states, (count, 1))
            left = x + h * _WEIGHTS @ rates - stages
            added = np.stack([matrix[:, n:] @ held for matrix in slopes])
            right = moved + h * np.tensordot(_WEIGHTS, added, axes=1)
            if not all(np.isfinite(each).all() for each in (system, left, right)):
                return failed
            both = np.hstack([left.reshape(-1, 1), np.concatenate(right)])
            solved: Any = np.linalg.solve(system, both)
            change = solved[:, 0].reshape(count, n)
            stages += change
            if (np.abs(change) <= _SETTLED * unit).all():
                return stages[-1], solved[-n:, 1:]
        return failed

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
