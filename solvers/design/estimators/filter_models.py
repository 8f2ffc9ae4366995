"""Models of filters: the equations of any diagram as a step in time, with exact slopes.

The diagram is traced once. The filter substitutes numbers or symbols into the expressions, so the
equations of the model run interpreted, in lanes and in native code, as those of any block do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, UnknownNameError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.value_places import Place, Way
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.ufuncs import objects
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.symbolic_values import TIME, Key
from flexure.solvers.analysis.equations.equations import (
    Variable,
    find_ports,
    find_variables,
    read_equations,
    refuse_sampled,
    shown,
    state_names,
)
from flexure.solvers.analysis.equations.tangents import constraint_ports, quaternions_and_locked
from flexure.solvers.tracing.exact_jacobian import state_keys
from flexure.solvers.tracing.trace import number_behind, trace

#: A sparse matrix: for each row its entries by column.
Rows: TypeAlias = list[dict[int, Any]]
_TIME_KEY: Key = ((TIME, 0, 0), 0)


class FilterModel:
    """Rates and outputs of a diagram as functions of estimated states, inputs and time.

    ``context`` has the values of everything that is not estimated. Names of components are in
    ``states``, which end with the estimated parameters, ``inputs`` and ``outputs``.
    """

    def __init__(
        self,
        context: Context,
        inputs: Way | Iterable[Way],
        outputs: Way | Iterable[Way],
        parameters: Way | Iterable[Way],
        attempt: str,
    ) -> None:
        _refuse_coordinates(context, attempt)
        refuse_sampled(context, attempt)
        entries = find_variables(context, inputs, attempt)
        estimated = find_variables(context, parameters, attempt)
        for each in estimated:
            if not isinstance(each.place.handle, NumericParameter):
                raise UnknownNameError(
                    f"{attempt} with '{each.place.path}' as a state",
                    expected="a numeric parameter",
                    found=f"the {each.place.handle.what} '{each.place.handle.full_name}'",
                )
        shows = find_ports(context.system, outputs, "a measured output")
        store = context.store
        self._made_of = (context, *([v.place.path for v in some] for some in (entries, estimated)))
        self._shown = [place.path for place in shows]
        self.states = [*state_names(context), *_names(estimated)]
        self.inputs, self.outputs = _names(entries), [n for place in shows for n in place.names]
        if not (self.states and self.outputs):
            raise EvaluationError(
                attempt,
                expected="a model with states, and measured outputs",
                found=f"{len(self.states)} states and {len(self.outputs)} outputs",
            )
        self.initial = np.concatenate([store.x, *(v.read(store) for v in estimated)])
        self._moving = store.layout.num_states
        self._trace(store, shows, entries, estimated, context)

    def _trace(
        self,
        store: Store,
        shows: Sequence[Place],
        entries: Sequence[Variable],
        estimated: Sequence[Variable],
        context: Context,
    ) -> None:
        """Make the expressions, in which all other values are numbers."""
        read = [shown(context, place) for place in shows]
        traced = trace(store.layout, lambda symbolic: read_equations(symbolic, read))
        self._keys: list[Key] = [*state_keys(store), *(key for v in estimated for key in v.keys)]
        self._entries: list[Key] = [key for v in entries for key in v.keys]
        graph = scalars.Graph()
        free = [*self._keys, *self._entries, _TIME_KEY]
        values: dict[Key, Any] = {key: graph.input(key) for key in free}
        for key in cast("set[Key]", scalars.sources(traced)) - set(free):
            values[key] = number_behind(store, key)
        known = simplify(list(objects(scalars.substitute(traced, values)).flat))
        self._rates, self._outputs = known[: self._moving], known[self._moving :]
        self._slopes = scalars.jacobian(self._rates, self._keys)
        self._shown_slopes = scalars.jacobian(self._outputs, self._keys)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made of."""
        context, inputs, parameters = self._made_of
        return FilterModel, (context, inputs, self._shown, parameters, "Cannot make a filter")

    def __deepcopy__(self, memo: Any) -> FilterModel:
        """Return itself, since it never changes."""
        return self

    def move(self, x: Array, u: Array, start: Any, period: float, substeps: int) -> Array:
        """Return the states a period later, by steps of the classical Runge-Kutta method."""
        step = period / substeps
        for k in range(substeps):
            x = self._step(x, u, start + k * step, step, with_slopes=False)[0]
        return x

    def move_with_slopes(
        self, x: Array, u: Array, start: Any, period: float, substeps: int
    ) -> tuple[Array, Array]:
        """Return the states a period later, and their derivatives by the present ones."""
        step, whole = period / substeps, _one(len(x))
        for k in range(substeps):
            x, own = self._step(x, u, start + k * step, step, with_slopes=True)
            whole = _product(own, whole)
        return x, _dense(whole)

    def show(self, x: Array, u: Array, time: Any) -> Array:
        """Return the outputs."""
        return scalars.substitute(self._outputs, self._values(x, u, time))

    def show_with_slopes(self, x: Array, u: Array, time: Any) -> tuple[Array, Array]:
        """Return the outputs, and their derivatives by the states."""
        slopes, p = self._shown_slopes, len(self._outputs)
        found = scalars.substitute([*self._outputs, *slopes.entries], self._values(x, u, time))
        return found[:p], _dense(_rows(slopes, found[p:], p), len(x))

    def _step(
        self, x: Array, u: Array, time: Any, step: float, *, with_slopes: bool
    ) -> tuple[Array, Rows]:
        """Return the states after one step, and their derivatives."""
        # The derivative of a Runge-Kutta step is the same step for the derivatives.
        n, entries = len(x), self._slopes.entries if with_slopes else []
        rate: Array = np.zeros(n)
        slope: Rows = [{} for _ in range(n)]
        total, moved = x, _one(n)
        for share, weight in (
            (0.0, 1.0 / 6.0),
            (0.5, 1.0 / 3.0),
            (0.5, 1.0 / 3.0),
            (1.0, 1.0 / 6.0),
        ):
            point = x + (share * step) * rate if share else x
            values = self._values(point, u, time + share * step)
            found = scalars.substitute([*self._rates, *entries], values)
            rate = np.concatenate([found[: self._moving], np.zeros(n - self._moving)])
            total = total + (weight * step) * rate
            if with_slopes:
                inner = _sum(_one(n), slope, share * step)
                slope = _product(_rows(self._slopes, found[self._moving :], n), inner)
                moved = _sum(moved, slope, weight * step)
        return total, moved

    def _values(self, x: Array, u: Array, time: Any) -> dict[Key, Any]:
        """Return what takes the place of the inputs of the expressions."""
        values: dict[Key, Any] = dict(zip(self._keys, x, strict=True))
        values |= dict(zip(self._entries, u, strict=True))
        return values | {_TIME_KEY: time}


def _refuse_coordinates(context: Context, attempt: str) -> None:
    """Refuse states that cannot be corrected by any small vector."""
    quaternions, locked = quaternions_and_locked(context)
    names = state_names(context)
    bound = [names[k] for k in (*quaternions, *locked)]
    found = f"quaternions or locked joints at {quoted(bound)}"
    if not bound:
        bound = [port.full_name for port in constraint_ports(context)]
        found = f"constraints at {quoted(bound)}"
    if bound:
        raise EvaluationError(
            attempt,
            expected="a model whose states are independent of each other",
            found=found,
            remedy="Use joints with as many velocities as positions, and no loops, or fx.lqe at a "
            "point",
        )


def _names(variables: Iterable[Variable]) -> list[str]:
    return [name for variable in variables for name in variable.place.names]


def _one(n: int) -> Rows:
    return [{k: 1.0} for k in range(n)]


def _rows(slopes: scalars.Jacobian, entries: Sequence[Any], n: int) -> Rows:
    rows: Rows = [{} for _ in range(n)]
    for row, column, entry in zip(slopes.rows, slopes.columns, entries, strict=True):
        rows[row][column] = entry
    return rows


def _sum(a: Rows, b: Rows, factor: float) -> Rows:
    """Return a + factor b."""
    result = [dict(row) for row in a]
    if factor:
        for row, other in zip(result, b, strict=True):
            for column, entry in other.items():
                scaled = factor * entry
                row[column] = row[column] + scaled if column in row else scaled
    return result


def _product(a: Rows, b: Rows) -> Rows:
    """Return a b."""
    result: Rows = [{} for _ in a]
    for row, left in zip(result, a, strict=True):
        for k, factor in left.items():
            for column, entry in b[k].items():
                term = factor * entry
                row[column] = row[column] + term if column in row else term
    return result


def _dense(rows: Rows, width: int | None = None) -> Array:
    n = len(rows) if width is None else width
    return scalars.array([[row.get(k, 0.0) for k in range(n)] for row in rows])
