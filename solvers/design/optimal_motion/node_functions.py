"""The equations of a problem at one instant, as functions of CasADi that come from one trace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, TraceError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars import Symbol
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS, JUMPING
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Witness
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, TIME, Key
from flexure.solvers.analysis.equations.equations import read_equations
from flexure.solvers.design.optimal_motion.casadi_form import casadi_expressions
from flexure.solvers.design.optimal_motion.motion_problem import Bounded, MotionProblem
from flexure.solvers.native.programs.system_trace import DiscretePlaces, read_update, read_witness
from flexure.solvers.results.records.history import Snapshot
from flexure.solvers.tracing.trace import SymbolicStore, number_behind, trace

_PAIRS = 400  # of points, between which jumps are looked for
_HALVINGS = 45
_JUMP = 1e-6  # of the size of a value, which is larger than what 45 halvings leave of a slope


class Row(NamedTuple):
    """A bounded number: its name and bounds, its size if that is known, and its phase."""

    name: str
    lower: float
    upper: float
    size: float = 0.0
    phase: int = 0


class NodeFunctions:
    """Rates, signals and costs at one instant, as functions of states, inputs and time.

    States x, inputs u and times t are those of all phases, end to end. Bounds are those of states
    followed by inputs, named ``names``, where signals of the path and the end are these; those of
    inputs at the start hold everywhere. All other bounded signals, and witness functions, are rows.
    """

    def __init__(self, ca: Any, problem: MotionProblem) -> None:
        self.problem = problem
        self._trace = _Trace(problem)
        n, m, count = len(problem.states), len(problem.input_lower), len(problem.phases)
        x, u, t = (ca.SX.sym(name, k * count) for name, k in (("x", n), ("u", m), ("t", 1)))
        parts = [
            _Part(ca, self._trace, phase.snapshot, ca.vertsplit(own), ca.vertsplit(given), time)
            for phase, own, given, time in zip(
                problem.phases, ca.vertsplit(x, n), ca.vertsplit(u, m), ca.vertsplit(t), strict=True
            )
        ]
        self.names = [*problem.states * count, *problem.input_names * count]
        rows, self.path_lower, self.path_upper, along = self._split(problem.path, 0)
        self.end_rows, self.end_lower, self.end_upper, last = self._split(problem.end, count - 1)
        free = np.full(n * (count - 1), np.inf)
        self.start_lower, self.start_upper = (
            np.concatenate([start, beyond, np.tile(limit, count)])
            for start, beyond, limit in (
                (problem.start_lower, -free, problem.input_lower),
                (problem.start_upper, free, problem.input_upper),
            )
        )
        self.path_rows: list[Row] = []
        bounded, ended = [], [parts[-1].signals[row] for row in last]
        behind: list[Any] = []
        held: list[tuple[str, Any]] = []
        for k, (phase, part) in enumerate(zip(problem.phases, parts, strict=True)):
            bounded += [part.signals[row] for row in along]
            self.path_rows += [row._replace(phase=k) for row in rows]
            for number, sign, size in phase.sides:
                sides = (0.0, np.inf) if sign > 0.0 else (-np.inf, 0.0)
                bounded.append(part.witnesses[number])
                self.path_rows.append(Row(problem.switches[number][1].label, *sides, size, k))
            if phase.event is not None:
                size = next((size for j, _, size in phase.sides if j == phase.event), 1.0)
                label = problem.switches[phase.event][1].label
                ended.append(part.witnesses[phase.event])
                self.end_rows.append(Row(label, 0.0, 0.0, size, k))
                after, values = part.behind(phase.rounds)
                behind += after
                held += [(label, value) for value in values]
        if count > 1:
            low, high = (problem.context.time + each for each in problem.duration)
            ended.append(t[-1])
            self.end_rows.append(Row("t_final", low, high, problem.duration[1], count - 1))
        integrands = [
            sum(
                (
                    weight * (part.signals[row] - target) ** 2
                    for each in problem.squares
                    for row, weight, target in zip(
                        each.rows, each.weights, each.targets, strict=True
                    )
                ),
                ca.SX(0.0),
            )
            for part in parts
        ]
        finals = [
            weight * parts[-1].signals[row]
            for rows, weights in problem.finals
            for row, weight in zip(rows, weights, strict=True)
        ]
        seen = [row for each in problem.squares for row in each.rows]

        def function(name: str, *outputs: Any) -> Any:
            return ca.Function(name, [x, u, t], outputs)

        def column(found: list[Any]) -> Any:
            return ca.vertcat(ca.SX(0, 1), *found)

        rates = column([part.rates for part in parts])
        # Signals of the cost, of which the integrand, one for each phase, has weighted squares.
        self.residuals = function("residuals", parts[-1].signals[seen])
        self.running = function("running", rates, column(bounded))
        self.integrand = function("integrand", column(integrands))
        # Bounded signals, and the cost of the end without that of the time.
        self.ending = function("ending", column(ended), sum(finals, ca.SX(0.0)))
        # States with which later phases begin where earlier ones end.
        self.joints = function("joints", column(behind))
        self.slopes = function("slopes", ca.jacobian(rates, ca.vertcat(x, u)))
        # The state, moved to where it belongs: quaternions, closed loops.
        projected = column([part.projected for part in parts])
        self.projected = ca.Function("projected", [x], [projected]) if projected.numel() else None
        values = column([rates, *(part.signals for part in parts)])
        self._decided = function("decided", values, column([part.decisions for part in parts]))
        if held:
            stored = column([value for _, value in held])
            self._refuse_held(function("stored", ca.jacobian(stored, ca.vertcat(x, u, t))), held)

    def _refuse_held(self, slopes: Any, held: list[tuple[str, Any]]) -> None:
        """Refuse events that set discrete values which change with their instant."""
        problem, size = self.problem, len(self.problem.states)
        last = [each.last if each.last.size else np.zeros(size) for each in problem.phases]
        inputs = np.tile(problem.held_inputs(), len(last))
        found = np.array(slopes(np.concatenate(last), inputs, [k.end for k in problem.phases]))
        moving = np.flatnonzero(np.any(np.nan_to_num(found, nan=1.0) != 0.0, axis=1))
        if moving.size:
            raise EvaluationError(
                problem.attempt,
                expected="events that set discrete values to numbers which do not depend on states",
                found=f"'{held[moving[0]][0]}', which stores what depends on them",
                remedy="Make it a continuous state whose rate is zero",
            )

    def _split(
        self, bounds: list[Bounded], first: int
    ) -> tuple[list[Row], FloatArray, FloatArray, list[int]]:
        """Return bounds of signals, and of what is a state or input as such, from a phase on."""
        n, size, count = len(self.problem.states), len(self._trace.keys), len(self.problem.phases)
        lower, upper = np.full((count, size), -np.inf), np.full((count, size), np.inf)
        rows, others = [], []
        for each in bounds:
            for name, row, low, high in zip(
                each.names, each.rows, each.lower, each.upper, strict=True
            ):
                if row in self._trace.places:
                    k = self._trace.places[row]
                    for phase in range(first, count):
                        lower[phase, k] = max(lower[phase, k], low)
                        upper[phase, k] = min(upper[phase, k], high)
                        before = phase * n if k < n else count * n + phase * (size - n) - n
                        self.names[before + k] = name
                else:
                    rows.append(Row(name, float(low), float(high), phase=first))
                    others.append(row)
        lower, upper = (np.hstack([s[:, :n].ravel(), s[:, n:].ravel()]) for s in (lower, upper))
        return rows, lower, upper, others

    def refuse_jumps(self, lower: FloatArray, upper: FloatArray, time: float) -> None:
        """Refuse equations that jump between states and inputs within bounds.

        Pairs of random points are halved where conditions differ between them, until they are
        neighbors: if the rates or signals still differ, they jump there.
        """
        if not self._trace.decisions:
            return
        rng = np.random.default_rng(0)
        n = len(self.problem.states) * len(self.problem.phases)
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
            decisions = self._trace.decisions
            which = int(np.flatnonzero(choice[:, pair] != other[:, pair])[0])
            node = decisions[which % len(decisions)]
            raise EvaluationError(
                self.problem.attempt,
                expected="equations that are smooth in states and inputs",
                found=f"{self._owner(node)}, which jumps",
                remedy="Replace the block by a smooth one, such as tanh in place of a sign, or "
                "optimize the plant without it",
            )

    def _owner(self, node: Symbol) -> str:
        """Name the output or rate in which a node appears first."""
        symbols = self._trace.symbols
        layout = symbols.layout
        for slot in sorted(range(layout.input_base), key=layout.rank.__getitem__):
            if _contains(symbols.cache[slot], node):
                return f"'{layout.slot_port[slot].full_name}'"
        rates = zip(self.problem.states, self._trace.rates, strict=True)
        return f"the rate of '{next(name for name, rate in rates if _contains(rate, node))}'"


class _Trace:
    """One trace of all equations, with symbols for states, inputs and other values."""

    def __init__(self, problem: MotionProblem) -> None:
        self.store = problem.context.store  # values of parameters and other inputs
        self._problem, layout = problem, self.store.layout
        groups, targets, self.symbols = trace(layout, self._read)
        ends = np.cumsum([len(group) for group in groups]).tolist()
        expressions = simplify([each for group in groups for each in group])
        parts = [
            expressions[end - len(group) : end] for group, end in zip(groups, ends, strict=True)
        ]
        n = layout.num_states
        self.rates, self.signals = parts[0][:n], parts[0][n:]
        self.projected, self.witnesses = parts[1:3]
        # Expressions of each update, and where they go.
        self.updates = list(zip(parts[3:], targets, strict=True))
        # States, followed by the free inputs; `read` are all inputs of the expressions.
        self.keys: list[Key] = [((STATE, 0, 0), k) for k in range(n)]
        self.keys += [key for each in problem.inputs for key in each.keys]
        inside = reachable(expressions)
        self.read: list[Any] = [node.key for node in inside if node.op == "input"]
        moving = [
            value
            for values, where in self.updates
            for value, target in zip(values, where, strict=True)
            if target < n
        ]
        seen = reachable(e for part in (*parts[:3], moving) for e in part if isinstance(e, Symbol))
        starts = DiscretePlaces(layout).starts
        inputs: list[Any] = [node.key for node in seen if node.op == "input"]
        # Discrete values that act on states, signals or events, as targets of updates.
        self.effective = {
            n + starts[where][index] + component
            for (what, where, index), component in inputs
            if what == DISCRETE
        }
        self.decisions = [
            node for node in inside if node.op in CONDITIONS or node.op in JUMPING - {"where"}
        ]
        self.places = {  # which of the keys a signal is, by its row
            row: self.keys.index(each.key)
            for row, each in enumerate(self.signals)
            if isinstance(each, Symbol) and each.op == "input" and each.key in self.keys
        }

    def _read(self, store: SymbolicStore) -> tuple[list[list[Any]], list[list[int]], Store]:
        """Read rates and signals, the projected state, witness functions and updates."""
        problem, layout = self._problem, store.layout
        starts = DiscretePlaces(layout).starts
        events = [(store.leaves[position], event) for position, event in problem.switches]
        equations = read_equations(store, problem.signals)
        moved = [*store.projected_state()] if layout.projecting else []
        witnesses = [
            read_witness(store, leaf, event)[0] if isinstance(event.trigger, Witness) else 0.0
            for leaf, event in events
        ]
        updates = [read_update(store, leaf, event, starts) for leaf, event in events]
        groups = [equations, moved, witnesses, *(each.expressions for each in updates)]
        return groups, [each.targets for each in updates], store


class _Part:
    """The expressions of one phase in scalars of CasADi: columns for each kind."""

    def __init__(
        self, ca: Any, traced: _Trace, held: Snapshot, x: list[Any], u: list[Any], time: Any
    ) -> None:
        self._ca, self._traced, self._x, self._u, self._time = ca, traced, x, u, time
        kinds = traced.rates, traced.signals, traced.projected, traced.witnesses, traced.decisions
        whole = self._column([each for kind in kinds for each in kind], held, x)
        parts: list[Any] = ca.vertsplit(whole, np.cumsum([0, *map(len, kinds)]).tolist())
        self.rates, self.signals, self.projected = parts[:3]
        self.witnesses, self.decisions = parts[3:]

    def _column(self, wanted: list[Any], held: Snapshot, x: list[Any]) -> Any:
        """Return expressions with given discrete values and states."""
        traced = self._traced
        values: dict[Any, Any] = dict(zip(traced.keys, [*x, *self._u], strict=True))
        for key in traced.read:
            (what, where, index), component = key
            if key in values:
                continue
            if what == TIME:
                values[key] = self._time
            elif what == DISCRETE:
                values[key] = float(held.discrete[where][index].item(component))
            else:
                values[key] = number_behind(traced.store, key)
        return casadi_expressions(self._ca, wanted, values)

    def behind(self, rounds: list[tuple[list[int], Snapshot]]) -> tuple[list[Any], list[Any]]:
        """Return the states behind updates, and the effective discrete values that these set."""
        state, held = self._x, []
        for chosen, snapshot in rounds:
            moved = list(state)
            for number in chosen:
                expressions, targets = self._traced.updates[number]
                found = self._ca.vertsplit(self._column(expressions, snapshot, state))
                for target, value in zip(targets, found, strict=True):
                    if target < len(state):
                        moved[target] = value
                    elif target in self._traced.effective:
                        held.append(value)
            state = moved
        return state, held


def _contains(value: Any, node: Symbol) -> bool:
    """Return whether a node is part of expressions."""
    inside = reachable(np.ravel(value))
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
