"""How the matrices of a period change with parameters, by the product rule.

Updates and flows of a period are linear maps M of w. With dM from the second derivatives of the
traced equations, ``d(M W) = dM W + M dW`` holds for each of them; for a flow, M = exp(A h), dM is
the Fréchet derivative of the exponential along h dA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.jacobians import directional
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.analysis.equations.kept_equations import TracedNumbers
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode


class SecondSlopes:
    """Derivatives of rows along two directions, which are further states of the code.

    Rows are differentiated by ``columns``; ``keys`` move: the columns, and parameters behind them.
    """

    def __init__(self, rows: list[Any], columns: list[Key], keys: list[Key], size: int) -> None:
        self._given = rows, columns, keys, size

    @cached_property
    def _code(self) -> TracedNumbers:
        """The derivatives along a direction of the columns, and one of all keys behind it."""
        rows, columns, keys, n = self._given
        ends = n + len(columns), n + len(columns) + len(keys)
        first, second = (
            [((STATE, 0, 0), k) for k in range(*span)] for span in ((n, ends[0]), ends)
        )
        with quietly():
            slopes = simplify(directional(rows, columns, first))
            return TracedNumbers(simplify(directional(slopes, keys, second)), ends[1])

    def changes(
        self, store: Store, ways: FloatArray, directions: FloatArray | None = None
    ) -> FloatArray:
        """Return how the derivatives along directions of the columns change along ways of all keys.

        With k ways, shape (keys, k), and m directions, shape (columns, m), by default one column
        after the other, the result has the shape (k, rows, m).
        """
        rows, columns, _, _ = self._given
        directions = np.eye(len(columns)) if directions is None else directions
        found = np.zeros((ways.shape[1], len(rows), directions.shape[1]))
        run = self._code.bound(store)
        for number, way in enumerate(ways.T):
            for k, direction in enumerate(directions.T):
                found[number, :, k] = run(store.time, np.concatenate([store.x, direction, way]))
        return found


class ParameterCode:
    """Code of the derivatives of traced rows by what they read, and of their changes.

    Rows are differentiated by ``columns`` and by the parameters ``own``.
    """

    def __init__(
        self, rows: list[Any], columns: Sequence[Key], own: Sequence[Key], num_states: int
    ) -> None:
        keys = [*columns, *own]
        self._count = len(columns)
        self._slopes = JacobianCode(rows, keys, num_states)
        self._changes = SecondSlopes(rows, list(columns), keys, num_states)

    def changes(self, store: Store, time: float, entries: LinearInputs, size: int) -> FloatArray:
        """Return how the derivatives by w without its 1 change, with wires closed."""
        store.time = time
        whole = ExactJacobian(store, self._slopes)(time, store.x)
        matrix, by = whole[:, : self._count], whole[:, self._count :]
        ways = np.vstack([np.zeros((self._count, by.shape[1])), np.eye(by.shape[1])])
        behind = slice(self._count - entries.num_behind, self._count)
        ways[behind] = entries.changes_behind(matrix, by)
        return entries.closed_changes(matrix, self._changes.changes(store, ways), size)


class ParameterSlopes:
    """Maps of a period that carry the derivatives of what they have made of w.

    ``slopes(phase, rows)`` returns the derivatives of rates, outputs or results of updates by w
    without its 1, shape (rows, n), and ``changes(phase)`` how all of them change with k parameters,
    shape (k, rows, n); ``shape`` is k and n. The first ``num_states`` rows are rates, and ``shown``
    are those of outputs. ``updates(phase)`` yields the map of each kind of updates at an instant,
    with the rows that it copies from these and their places in w. ``flow(start, stop)`` returns
    that of a time between updates.

    The result is in ``moved`` and ``outputs``, shapes (k, n + 1, n + 1) and (k, p, n): derivatives
    of what a period makes of w, and of the outputs, but for the part of the 1 of w. It holds only
    if ``is_constant``: the rates had the same derivatives between two updates.
    """

    def __init__(
        self,
        slopes: Callable[[float, list[int]], FloatArray],
        changes: Callable[[float], FloatArray],
        shape: tuple[int, int],
        num_states: int,
        shown: list[int],
        updates: Callable[[float], Iterator[tuple[FloatArray, list[int], list[int]]]],
        flow: Callable[[float, float], FloatArray],
    ) -> None:
        self._slopes, self._changes = slopes, changes
        self._num_states, self._shown = num_states, shown
        self._updates, self._flow = updates, flow
        count, n = shape
        self._whole = np.eye(n + 1)
        self.moved = np.zeros((count, n + 1, n + 1))
        self.outputs = np.zeros((count, len(shown), n))
        self.is_constant = True

    def _pass(self, matrix: FloatArray, change: FloatArray) -> None:
        self.moved = matrix @ self.moved + change @ self._whole
        self._whole = matrix @ self._whole

    def update(self, phase: float, whole: FloatArray) -> FloatArray:
        """Let the updates of an instant pass."""
        for matrix, rows, places in self._updates(phase):
            change = np.zeros_like(self.moved)
            if rows:
                change[:, places, :-1] = self._changes(phase)[:, rows]
            self._pass(matrix, change)
            whole = matrix @ whole
        return whole

    def flow(self, start: float, stop: float, whole: FloatArray) -> FloatArray:
        """Let the time between two updates pass."""
        from scipy.linalg import expm_frechet

        n, length = self._num_states, stop - start
        early, middle, late = (
            self._slopes(start + part * length, list(range(n))) for part in (0.25, 0.5, 0.75)
        )
        self.is_constant = self.is_constant and np.array_equal(early, late)
        rates, change = np.zeros_like(self._whole), np.zeros_like(self.moved)
        rates[:n, :-1] = length * middle
        change[:, :n, :-1] = length * self._changes(start + 0.5 * length)[:, :n]
        for k in np.flatnonzero(change.any(axis=(1, 2))):  # gains of sampled blocks change no flow
            change[k] = expm_frechet(rates, change[k], compute_expm=False)
        matrix = self._flow(start, stop)
        self._pass(matrix, change)
        return matrix @ whole

    def show(self) -> FloatArray:
        """Return the derivatives of the outputs by w without its 1, after the first updates."""
        slopes, changes = self._slopes(0.0, self._shown), self._changes(0.0)[:, self._shown]
        self.outputs = changes @ self._whole[:-1, :-1] + slopes @ self.moved[:, :-1, :-1]
        return slopes
