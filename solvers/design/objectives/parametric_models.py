"""Linear models whose parameters vary, with the exact derivatives of what is computed from them.

A number φ that is computed from the matrices of a linear model, ``M = ∂(ẋ, y)/∂(x, u)``, changes
with a parameter p by ``dφ/dp = Σ W dM/dp`` with ``W = ∂φ/∂M``. With a sum of products
``W = Σ a bᵀ``, that is the derivative of ``aᵀ M b``, which is a derivative of the equations along
the direction b. So one trace of it, differentiated backward, serves all numbers and parameters: no
matrix of second derivatives is ever made.

Where the states of rest follow the parameters, F(x, v, p) = 0 moves them by the implicit function
theorem. Among the equations F are the rates, the errors of constraints, the lengths of quaternions,
and, at wires that are cut for the linear model, that what goes on is what comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from flexure.blocks.multibody import Frame, Plant
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.rewiring import cut_wires
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.value_places import Place, Way, find_place
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.analysis.equations.equations import (
    Variable,
    can_start,
    carries_vector,
    find_variables,
    read_equations,
    refuse_sampled,
    shown,
    wire_at,
)
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.equations.tangents import (
    constraint_ports,
    gains,
    quaternions_and_locked,
    require_holding,
    tangent,
)
from flexure.solvers.analysis.forces_at_rest.static_coordinates import Indices
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs, closing
from flexure.solvers.analysis.sampled.parameter_slopes import SecondSlopes
from flexure.solvers.analysis.statics.stiffness import plant_of
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, numbers_of, state_keys
from flexure.solvers.tracing.signals import can_be_read
from flexure.solvers.tracing.trace import trace
from flexure.solvers.tracing.trace_check import agree, sizes_of_terms

_SINGULAR = 1e-13  # of the largest singular value of scaled equations of rest
_NO_DIRECTION = 1e-14  # of weights: what is left of them beside known directions is rounding
_REST = 1e-6  # of the largest change of an equation: what is left where nothing follows


@dataclass(frozen=True)
class PointMotion:
    """The motion of a point P fixed in a frame F, along or about an axis of F."""

    frame: Frame  # the frame F
    p_FP: tuple[float, ...]  # position of P from Fo, expressed in F, in m
    # Shape (6,), along the axes of F: about which axis it turns, then along which it moves.
    direction: tuple[float, ...]

    @property
    def plant(self) -> Plant:
        """The plant of the frame."""
        return plant_of(self.frame)

    def velocities(self, layout: Layout) -> Indices:
        """Return where the velocities of the plant are among the states."""
        tree = self.plant.tree
        position = next(k for k, leaf in enumerate(layout.leaves) if leaf is tree)
        first = layout.x_slices[position].start + tree.topology.num_positions
        return np.arange(first, first + tree.topology.num_velocities)

    def velocity(self, store: Store) -> Any:
        """Return its velocity, a number or an expression."""
        J = self.plant.calc_jacobian(store.leaves[0].root, self.frame, self.p_FP, None, self.frame)
        v = store.x[self.velocities(store.layout)]
        return np.sum((np.array(self.direction) @ J) * v)


#: A point whose velocity is shown, or a component of a slot, a state or a parameter.
_Output: TypeAlias = PointMotion | tuple[Any, int]


@dataclass(frozen=True)
class Request:
    """A linear model that is wanted, as by `flexure.linearize`."""

    inputs: tuple[Way, ...] = ()
    outputs: tuple[Way | PointMotion, ...] = ()  # or velocities of points
    openings: tuple[Way, ...] = ()


@dataclass(frozen=True, eq=False)
class ModelPoint:
    """Equations and their first derivatives at one point, with all wires cut."""

    values: FloatArray  # of all rows: rates, errors, outputs, and what comes to cut wires
    matrix: FloatArray  # their derivatives by states, inputs and parameters
    store: Store  # the values there
    made: dict[str, FloatArray] = field(default_factory=dict)  # what was found out beyond that


@dataclass(frozen=True, eq=False)
class Realization:
    """A linear model, as it follows when cut wires are closed, but for those that stay open."""

    # A, B, C, D: the model.
    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    tangent: FloatArray  # the directions in which states can move
    values: FloatArray  # of the outputs
    period: float | None = None  # in s, of a sampled model
    # left, right: ``dM = left dM_cut right`` for changes of the derivatives with all wires cut.
    left: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    right: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    def on_tangent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return A, B and C in coordinates of the directions in which states can move."""
        T = self.tangent
        return T.T @ self.A @ T, T.T @ self.B, self.C @ T


class ParametricModel:
    """The linear models of a root context as functions of parameters, inputs and initial states.

    If it ``follows``, states of rest follow the parameters. ``spread``, shape (k, n), says how the
    k numbers of the parameters follow n coordinates, by which numbers are then differentiated.
    Blocks that cannot be traced are refused, and sampled ones that follow the motion.
    """

    def __init__(
        self,
        context: Context,
        parameters: Iterable[Way],
        requests: Sequence[Request],
        attempt: str,
        *,
        follows: bool,
        spread: FloatArray | None = None,
    ) -> None:
        remedy = "Use metrics of runs, or the plant only" if follows else "Pass period="
        refuse_sampled(context, attempt, remedy)
        require_holding(context, attempt)
        self._follows, self._attempt = follows, attempt
        entered = [way for each in requests for way in (*each.inputs, *each.openings)]
        wires = [wire_at(find_place(context.system, way, can_start).handle) for way in entered]
        self._entries = entries = LinearInputs(context, list(dict.fromkeys(wires)), (), attempt)
        self._inside = inside = entries.context
        store = inside.store
        self._wires = list(store.layout.cuts)
        self._variables = find_variables(inside, list(parameters), attempt, states=True)
        self._constrained = [Place.of(port) for port in constraint_ports(inside)]
        self._quaternions, self._locked = quaternions_and_locked(inside)
        self.num_states = n = store.layout.num_states
        columns, varied = [*state_keys(store), *_keys(entries.variables)], _keys(self._variables)
        self._num_columns = len(columns)
        self._keys = list(dict.fromkeys([*columns, *varied]))
        places = {key: k for k, key in enumerate(self._keys)}
        self._own = np.array([places[key] for key in varied], dtype=np.intp)
        self._spread = np.eye(len(varied)) if spread is None else spread
        self.num_parameters = self._spread.shape[1]
        errors = len(self._quaternions) + sum(each.components.size for each in self._constrained)
        self._errors, self._outputs = slice(n, n + errors), list[_Output]()

        def entering(ways: tuple[Way, ...]) -> list[int]:
            found = (each for way in ways for each in find_variables(inside, [way], attempt))
            return [places[key] for key in _keys(found)]

        # Of each request the columns of inputs, the rows of outputs, and the columns of openings.
        self._chosen: list[tuple[list[int], list[int], list[int]]] = []
        for each in requests:
            start = len(self._outputs)
            self._outputs += [part for way in each.outputs for part in _parts(inside, way)]
            rows = range(n + errors + start, n + errors + len(self._outputs))
            self._chosen.append((entering(each.inputs), [*rows], entering(each.openings)))
        self._coming = slice(n + errors + len(self._outputs), None)
        self._equations, known = kept_equations(
            store.layout,
            ("parametric", tuple(self._outputs), tuple(self._keys), len(columns)),
            lambda: self._traced(columns),
        )
        self._unchecked = not known
        if not (known or follows):  # others are checked at rest: without loads, stresses vanish
            self.at(context)

    def _traced(self, columns: list[Key]) -> TracedEquations:
        layout = self._inside.store.layout
        rows = trace(layout, self._read, as_gain=True)
        bend = SecondSlopes(rows, columns, self._keys, layout.num_states)
        often = self._follows and len(self._keys) > len(columns)  # in a search
        return TracedEquations(layout, rows, self._keys, more=bend, often=often)

    def _read(self, store: Store) -> list[Any]:
        """Read all rows, numbers or symbols."""
        rows = read_equations(store, [shown(self._inside, each) for each in self._constrained])
        rows += [0.5 * np.sum(store.x[k : k + 4] ** 2) - 0.5 for k in self._quaternions]
        rows += [_read_part(store, each) for each in self._outputs]
        return [*rows, *(value for slot in self._entries.slots for value in store.value(slot))]

    def _require_same(self, point: ModelPoint) -> None:
        """Refuse equations whose trace gives other numbers than they do."""
        with np.errstate(all="ignore"):
            expected = np.array(self._read(point.store), dtype=float)
            known = numbers_of(point.store, self._keys, point.store.time, point.store.x)
            numbers = np.array([known[key] for key in self._keys])
            terms = sizes_of_terms(point.matrix, numbers)
        if not agree(point.values, expected, terms):
            raise EvaluationError(
                self._attempt,
                expected="equations that give the same numbers when they are traced",
                found="others",
                remedy="Make them pure functions of the values of the context",
            )

    @property
    def traced(self) -> TracedEquations | None:
        """All rows by all columns, rates and states first; None with cut wires, or with gains."""
        return None if self._wires or any(gains(self._inside)) else self._equations

    # At a point ------------------------------------------------------------------------------

    def at(self, context: Context) -> ModelPoint:
        """Return the equations at the values of a root context, which is not changed."""
        inside = cut_wires(context, self._wires) if self._wires else context.clone()
        store = inside.store
        exact = ExactJacobian(store, self._equations.slopes)
        found = ModelPoint(self._equations.computed(store), exact(store.time, store.x), store)
        if self._unchecked:
            self._require_same(found)
            self._unchecked = False
        return found

    def realization(self, point: ModelPoint, number: int) -> Realization:
        """Return the linear model of a request at a point."""
        inputs, outputs, opened = self._chosen[number]
        n, q, count = self.num_states, self._entries.num_behind, self._num_columns
        rows, closed = [*range(n), *outputs], np.ones((q, 1))
        closed[[k - count for k in opened]] = 0.0
        left, right = closing(point.matrix[:, :count], closed)
        left, right = left[rows], right[:, [*range(n), *inputs]]
        whole = point.matrix[rows, :count] @ right
        normals = point.matrix[n : self._errors.stop - len(self._quaternions), :n]
        T = tangent(point.store.x, self._quaternions, self._locked, normals)
        parts = (whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:])
        return Realization(*parts, T, point.values[outputs], None, left, right)

    def rest_rows(self, point: ModelPoint, A: FloatArray) -> FloatArray:
        """Return A, and behind it the derivatives of errors of constraints by the states."""
        return np.vstack([A, point.matrix[self._errors, : self.num_states]])

    # Derivatives -----------------------------------------------------------------------------

    def slopes(
        self,
        point: ModelPoint,
        realization: Realization,
        number: int,
        weights: FloatArray,
        by_errors: FloatArray | None = None,
        by_values: FloatArray | None = None,
    ) -> FloatArray:
        """Return the derivatives by the parameters of a number of the realization of a request.

        ``weights``, (n + p, n + m), are derivatives of the number by the matrices of the model,
        ``by_errors``, (r, n), those by the errors of constraints, ``by_values`` those by outputs.
        """
        whole = realization.left.T @ weights @ realization.right.T
        if by_errors is not None:
            whole[self._errors, : self.num_states] += by_errors
        found = self._changes(point, whole) if np.any(whole) else np.zeros(self.num_parameters)
        if by_values is not None:
            found += by_values @ point.matrix[self._chosen[number][1]] @ self._ways(point)
        return found

    def _ways(self, point: ModelPoint) -> FloatArray:
        """Return how everything moves with the parameters: a column for each."""
        if "ways" not in point.made:
            ways = np.zeros((len(self._keys), self.num_parameters))
            ways[self._own] = self._spread
            n, q, count = self.num_states, self._entries.num_behind, self._num_columns
            # The equations of rest, and what is unknown in them: states, and what wires carry.
            rows, unknown = point.matrix[self._coming].copy(), np.arange(count - q, count)
            rows[:, count - q : count] -= np.eye(q)
            if self._follows:
                rows = np.vstack([point.matrix[: self._errors.stop], rows])
                unknown = np.append(np.setdiff1d(np.arange(n), self._own), unknown)
            if len(unknown):
                driven = rows[:, self._own] @ self._spread
                ways[unknown] = -solve(rows[:, unknown], driven)
                self._require_following(rows @ ways, driven)
            point.made["ways"] = ways
        return point.made["ways"]

    def _changes(self, point: ModelPoint, weights: FloatArray) -> FloatArray:
        """Return the sum of the products of weights and dM/dp for each parameter."""
        # Of the columns only the directions that weights have and none before had are computed.
        matrix = point.matrix[:, : self._num_columns]
        rows, columns = _sizes(matrix)
        scaled = rows[:, np.newaxis] * weights * columns
        if not np.isfinite(scaled).all():
            return np.full(self.num_parameters, np.nan)
        basis = point.made.get("directions", np.zeros((len(columns), 0)))
        known = point.made.get("changes", np.zeros((self.num_parameters, len(rows), 0)))
        _, sizes, others = np.linalg.svd(scaled - scaled @ basis @ basis.T, full_matrices=False)
        new = others[sizes > _NO_DIRECTION * np.linalg.norm(scaled)].T
        if new.size:
            bend: SecondSlopes = self._equations.more
            new = np.linalg.qr(new - basis @ (basis.T @ new))[0]
            found = bend.changes(point.store, self._ways(point), new / columns[:, np.newaxis])
            known = point.made["changes"] = np.concatenate([known, found], axis=2)
            basis = point.made["directions"] = np.hstack([basis, new])
        return np.asarray(np.tensordot(known, weights * columns @ basis, 2))

    def _require_following(self, left: FloatArray, driven: FloatArray) -> None:
        """Refuse parameters that no states of rest can follow."""
        sizes = np.abs(driven).max(axis=0, initial=0.0)
        lost = np.flatnonzero(np.abs(left).max(axis=0, initial=0.0) > _REST * sizes)
        if lost.size:
            names = [name for variable in self._variables for name in variable.place.names]
            raise EvaluationError(
                self._attempt,
                expected="states of rest that follow all parameters",
                found=f"none that follows '{names[int(np.argmax(self._spread[:, lost[0]]))]}'",
                remedy="Hold what moves freely, or lock a joint",
            )


def solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the smallest solution of equations, which are scaled."""
    if not matrix.size:
        return np.zeros((matrix.shape[1], *right.shape[1:]))
    rows, columns = _sizes(matrix)
    scaled = matrix / rows[:, np.newaxis] / columns
    found = np.linalg.lstsq(scaled, (right.T / rows).T, rcond=_SINGULAR)[0]
    return np.asarray((found.T / columns).T)


def _sizes(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return by what to divide rows, and then columns, so that their largest entries are 1."""
    rows = np.abs(matrix).max(axis=1, initial=0.0)
    rows[rows == 0.0] = 1.0
    columns = np.abs(matrix / rows[:, np.newaxis]).max(axis=0, initial=0.0)
    columns[columns == 0.0] = 1.0
    return rows, columns


def _parts(context: Context, way: Way | PointMotion) -> Sequence[_Output]:
    """Return the components of an output."""
    if isinstance(way, PointMotion):
        return [way]
    place = find_place(context.system, way, can_be_read)
    if carries_vector(place.handle):
        slot, components = shown(context, place)
        return [(slot, k) for k in components]
    (variable,) = find_variables(context, [way], f"Cannot show '{place.path}'", states=True)
    return variable.keys


def _read_part(store: Store, part: _Output) -> Any:
    """Read a component of an output, a number or a symbol."""
    if isinstance(part, PointMotion):
        return part.velocity(store)
    where, component = part
    if isinstance(where, int):
        return store.value(where)[component]
    what, leaf, index = where
    if what == STATE:
        return store.x[component]
    return np.reshape(store.leaves[leaf].parameters[index], -1)[component]


def _keys(variables: Iterable[Variable]) -> list[Key]:
    return [key for variable in variables for key in variable.keys]
