"""The equations of a problem at one instant, as functions of CasADi that come from one trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, TraceError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars import Symbol
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS, JUMPING
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import read_equations
from flexure.solvers.design.optimal_motion.casadi_form import casadi_expressions
from flexure.solvers.design.optimal_motion.motion_problem import Bounded, MotionProblem
from flexure.solvers.tracing.trace import STATE, TIME, Key, SymbolicStore, number_behind, trace

_PAIRS = 400  # of points, between which jumps are looked for
_HALVINGS = 45
_JUMP = 1e-6  # of the size of a value, which is larger than what 45 halvings leave of a slope


class NodeFunctions:
    """Rates, signals and costs at one instant, as functions of states, inputs and time.

    Parameters
    ----------
    ca : module
        CasADi.
    problem : MotionProblem
        What is asked for.

    Attributes
    ----------
    running : casadi.Function
        ``(x, u, t) -> rates, bounded signals of the path``.
    integrand : casadi.Function
        ``(x, u, t) -> integrand of the cost``.
    ending : casadi.Function
        ``(x, u, t) -> bounded signals of the end, cost of the end`` without that of the time.
    slopes : casadi.Function
        ``(x, u, t) -> derivatives of the rates by states and inputs``.
    residuals : casadi.Function
        ``(x, u, t) -> signals of the cost``, of which the integrand has weighted squares.
    projected : casadi.Function or None
        The state, moved to where it belongs: quaternions, closed loops.
    path_rows, end_rows : list of (str, float, float)
        Name and bounds of each bounded signal that is neither a state nor a free input.
    names : list of str
        Of states, followed by inputs, as the bounds call them.
    path_lower, path_upper, end_lower, end_upper : ndarray
        Bounds of states followed by inputs, where signals of the path and the end are these.
    """

    def __init__(self, ca: Any, problem: MotionProblem) -> None:
        self.problem = problem
        layout = problem.context.store.layout
        n, store = layout.num_states, problem.context.store
        traced, moved, self._symbols = trace(layout, self._read)
        expressions = simplify([*traced, *moved])
        traced, moved = expressions[: len(traced)], expressions[len(traced) :]
        keys: list[Key] = [((STATE, 0, 0), k) for k in range(n)]
        keys += [key for each in problem.inputs for key in each.keys]
        x, u, t = ca.SX.sym("x", n), ca.SX.sym("u", len(keys) - n), ca.SX.sym("t")
        values: dict[Any, Any] = dict(zip(keys, [*ca.vertsplit(x), *ca.vertsplit(u)], strict=True))
        inside = reachable(each for each in expressions if isinstance(each, Symbol))
        for key in (node.key for node in inside if node.op == "input"):
            if key not in values:
                is_time = key[0][0] == TIME  # type: ignore[index]
                values[key] = t if is_time else number_behind(store, key)  # type: ignore[arg-type]
        column = casadi_expressions(ca, expressions, values)
        rates, signals = column[:n], column[n : len(traced)]
        self._rates = traced[:n]
        places = {
            row: keys.index(each.key)
            for row, each in enumerate(traced[n:])
            if isinstance(each, Symbol) and each.op == "input" and each.key in keys
        }
        self.names = [*problem.states, *problem.input_names]
        path = self._split(problem.path, places, len(keys))
        end = self._split(problem.end, places, len(keys))
        self.path_rows, self.path_lower, self.path_upper, along = path
        self.end_rows, self.end_lower, self.end_upper, last = end
        squares = [
            weight * (signals[row] - target) ** 2
            for each in problem.squares
            for row, weight, target in zip(each.rows, each.weights, each.targets, strict=True)
        ]
        finals = [
            weight * signals[row]
            for rows, weights in problem.finals
            for row, weight in zip(rows, weights, strict=True)
        ]
        inputs = [x, u, t]
        seen = [row for each in problem.squares for row in each.rows]
        self.residuals = ca.Function("residuals", inputs, [signals[seen]])
        total = [sum(each, ca.SX(0.0)) for each in (squares, finals)]
        bounded = [ca.vertcat(ca.SX(0, 1), *(signals[k] for k in each)) for each in (along, last)]
        self.running = ca.Function("running", inputs, [rates, bounded[0]])
        self.integrand = ca.Function("integrand", inputs, [total[0]])
        self.ending = ca.Function("ending", inputs, [bounded[1], total[1]])
        self.slopes = ca.Function("slopes", inputs, [ca.jacobian(rates, ca.vertcat(x, u))])
        self.projected = ca.Function("projected", [x], [column[len(traced) :]]) if moved else None
        self._decisions = [
            node for node in inside if node.op in CONDITIONS or node.op in JUMPING - {"where"}
        ]
        decisions = casadi_expressions(ca, self._decisions, values)
        self._decided = ca.Function("decided", inputs, [ca.vertcat(rates, signals), decisions])

    def _read(self, store: SymbolicStore) -> tuple[list[Any], list[Any], Store]:
        """Read rates and signals, and the projected state where there is a projection."""
        found = read_equations(store, self.problem.signals)
        return found, [*store.projected_state()] if store.layout.projecting else [], store

    def _split(
        self, bounds: list[Bounded], places: dict[int, int], size: int
    ) -> tuple[list[tuple[str, float, float]], FloatArray, FloatArray, list[int]]:
        """Return bounds of signals, and of what is a state or input as such."""
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        rows, others = [], []
        for each in bounds:
            for name, row, low, high in zip(
                each.names, each.rows, each.lower, each.upper, strict=True
            ):
                if row in places:
                    k = places[row]
                    self.names[k] = name
                    lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
                else:
                    rows.append((name, float(low), float(high)))
                    others.append(row)
        return rows, lower, upper, others

    def refuse_jumps(self, lower: FloatArray, upper: FloatArray, time: float) -> None:
        """Refuse equations that jump between states and inputs within bounds.

        Pairs of random points are halved where conditions differ between them, until they are
        neighbors: if the rates or signals still differ, they jump there.

        Raises
        ------
        EvaluationError
            The text names the block.
        """
        if not self._decisions:
            return
        rng, n = np.random.default_rng(0), len(self.problem.states)
        a, b = (rng.uniform(lower, upper, (_PAIRS, len(lower))).T for _ in range(2))
        decided = self._decided.map(_PAIRS)

        def at(points: FloatArray) -> list[FloatArray]:
            return [np.array(each) for each in decided(points[:n], points[n:], time)]

        (at_a, choice), (at_b, other) = at(a), at(b)
        differ = np.any(choice != other, axis=0)
        if not differ.any():
            return
        for _ in range(_HALVINGS):
            middle = (a + b) / 2.0
            value, chosen = at(middle)
            same = np.all(chosen == choice, axis=0)
            a, at_a = np.where(same, middle, a), np.where(same, value, at_a)
            b, at_b = np.where(same, b, middle), np.where(same, at_b, value)
            other = np.where(same, other, chosen)
        size = 1e-9 + np.maximum(np.abs(at_a), np.abs(at_b))
        jumps = differ & np.any(
            np.abs(at_a - at_b) > _JUMP * size.max(axis=1, keepdims=True), axis=0
        )
        if jumps.any():
            pair = int(np.flatnonzero(jumps)[0])
            node = self._decisions[int(np.flatnonzero(choice[:, pair] != other[:, pair])[0])]
            raise EvaluationError(
                self.problem.attempt,
                expected="equations that are smooth in states and inputs",
                found=f"{self._owner(node)}, which jumps",
                remedy="Replace the block by a smooth one, such as tanh in place of a sign, or "
                "optimize the plant without it",
            )

    def _owner(self, node: Symbol) -> str:
        """Name the output or rate in which a node appears first."""
        layout = self._symbols.layout
        for slot in sorted(range(layout.input_base), key=layout.rank.__getitem__):
            if _contains(self._symbols.cache[slot], node):
                return f"'{layout.slot_port[slot].full_name}'"
        rates = zip(self.problem.states, self._rates, strict=True)
        return f"the rate of '{next(name for name, rate in rates if _contains(rate, node))}'"


def _contains(value: Any, node: Symbol) -> bool:
    """Return whether a node is part of expressions."""
    inside = reachable(each for each in np.ravel(value) if isinstance(each, Symbol))
    return any(each is node for each in inside)


def require_finite(values: FloatArray, names: list[str], attempt: str) -> None:
    """Refuse a first guess at which equations are not finite."""
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad.size:
        raise TraceError(
            attempt,
            expected="finite rates along the guess",
            found=f"NaN or infinity in the rate of '{names[bad[0]]}'",
            remedy="Choose another guess or start",
        )
