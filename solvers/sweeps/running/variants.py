"""The runs of a sweep before they run: root contexts that differ in some numbers.

`SweptContexts` come from arrays of values, `GivenContexts` from contexts. Both are batches in the
sense of `flexure.solvers.tracing.lanes` and make contexts on demand only.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.value_places import (
    Place,
    Way,
    find_place,
    path_of,
    shows_state,
    untied,
)
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, check_bounds, freeze
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState
from flexure.diagrams.values.symbolic_values import DISCRETE, INPUT, PARAMETER, STATE, Key
from flexure.solvers.sweeps.plans.plans import Plan, zip_values
from flexure.solvers.tracing.lanes import TIME_KEY, Batch, ContextBatch


class Varied(NamedTuple):
    """What is known of a value in which runs differ."""

    unit: str  # physical unit; empty when it is unknown
    doc: str  # one line for people
    # Shape of the value; in the plan, a single component may be without axes.
    shape: tuple[int, ...]


class Variants(Batch, Protocol):
    """The contexts in which the runs of a sweep begin."""

    def base(self) -> Context:
        """Return a new context with the values that represent all runs."""

    def context(self, index: int) -> Context:
        """Return a new context with the values of one run."""

    def differ_in(self, position: int) -> bool:
        """Return whether runs may differ in what a block knows beside time and states."""

    def read(self, place: Place) -> FloatArray:
        """Return a number of each run, shape (N,)."""

    def cargo(self, runs: NDArray[np.int64]) -> list[Any]:
        """Return what distinguishes some of the runs: a list of arrays, or of contexts."""

    def loaded(self, cargo: list[Any]) -> Self:
        """Return the runs of a cargo, which have in common what these have."""


class GivenContexts(ContextBatch):
    """Copies of root contexts of one system as the beginnings of runs."""

    def __init__(self, system: System, contexts: Sequence[Context]) -> None:
        for context in contexts:
            require_root(context, system, f"Cannot simulate '{system.label}'")
        self._contexts = [context.clone() for context in contexts]
        self._base = self._contexts[0] if contexts else system.create_default_context()
        self.store = self._base.store

    def base(self) -> Context:
        """Return a copy of the first context."""
        return self._base.clone()

    def context(self, index: int) -> Context:
        """Return a copy of a context."""
        return self._contexts[index].clone()

    def read(self, place: Place) -> FloatArray:
        """Return a number of each context."""
        return np.array([float(place.read(context)) for context in self._contexts])

    def cargo(self, runs: NDArray[np.int64]) -> list[Any]:
        """Return some of the contexts."""
        return [self._contexts[run] for run in runs.tolist()]

    def loaded(self, cargo: list[Any]) -> GivenContexts:
        """Return other contexts of the same kind; values that represent all runs stay."""
        twin = copy.copy(self)
        twin._contexts = cargo
        return twin

    def differ_in(self, position: int) -> bool:
        """Return whether the contexts may differ in what a block knows beside time and states."""
        first, *others = [context.store for context in self._contexts]
        held = slice(first.layout.input_base, None)
        return any(
            not _same(getattr(first.leaves[position], kind), getattr(store.leaves[position], kind))
            for store in others
            for kind in ("parameters", "discrete")
        ) or any(not _same(first.cache[held], store.cache[held]) for store in others)


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists hold the same objects; values of contexts are never changed."""
    return all(a is b for a, b in zip(some, others, strict=True))


@dataclass(frozen=True)
class _Column:
    """The values that one item takes in the runs."""

    place: Place  # of a parameter, state or input, or of components of it
    keys: list[Key]  # the inputs of a trace for its components
    rows: FloatArray  # the value in each run, shape (N, *shape)


class SweptContexts:
    """Copies of one root context, the batch's own, in which some values are replaced.

    Values are arrays with one value, or one row of values, for each run, by path. Unknown paths,
    inputs that a block feeds, and arrays that do not fit are refused.
    """

    def __init__(self, context: Context, values: Plan | Mapping[Any, npt.ArrayLike]) -> None:
        self._context = context
        self.store: Store = context.store
        self.values: dict[str, FloatArray] = {}  # the checked arrays by path
        self._columns: list[_Column] = []
        self._named: dict[str, _Column] = {}
        self._keys: set[Key] = set()
        # What the contexts differ in.
        self.plan = values if isinstance(values, Plan) else self._zip(values)
        ways = {} if isinstance(values, Plan) else {path_of(way): way for way in values}
        for path, array in self.plan.columns().items():
            members = untied(context, ways.get(path, path))
            for number, way in enumerate(members):
                self._add(way, array, path if number == 0 else None)
        self._count = len(self.plan)
        self._complete()

    def _zip(self, values: Any) -> Plan:
        """Return the plan that a mapping stands for."""
        for way in values if isinstance(values, Mapping) else ():
            for each in untied(self._context, way):
                _find(self._context, each, path_of(way))  # so that names are refused first
        label = self._context.system.label
        return zip_values(values, f"Cannot sweep '{label}'", "Cannot sweep '{}'")

    def _add(self, way: Way, array: FloatArray, name: str | None) -> None:
        """Check the values of one item; those of tied parameters have the name of the first."""
        context, path = self._context, name or path_of(way)
        place = _find(context, way, path)
        attempt = f"Cannot sweep '{path}'"
        keys = _keys(context.store.layout, place, attempt)
        rows = freeze(_rows(array, place.shape or (), attempt))
        column = _Column(place, keys, rows)
        self._check(column, path)
        if not self._keys.isdisjoint(keys) or len(set(keys)) < len(keys):
            raise ValueRefusedError(
                attempt, expected="one array for each number", found="two for the same"
            )
        self._keys.update(keys)
        self._columns.append(column)
        if name is not None:
            self.values[name], self._named[name] = rows, column

    def _check(self, column: _Column, path: str) -> None:
        """Refuse values that the item would refuse; the text names the first of them."""
        handle, whole = column.place.handle, column.rows
        if column.place.part is not None:
            base = np.reshape(handle(self._context), (1, -1))
            whole = np.repeat(base, len(column.rows), axis=0)
            whole[:, column.place.part] = column.rows.reshape(len(whole), -1)
            whole = whole.reshape(len(whole), *np.shape(handle(self._context)))
        bounds = ("lower", "upper", "exclusive", "allow_infinite", "unit")
        known = {name: getattr(handle, name) for name in bounds if hasattr(handle, name)}
        try:
            check_bounds(whole, "", **known)
            suspicious = getattr(handle, "problem", None) is not None
        except ValueRefusedError:
            suspicious = True
        for index, value in enumerate(whole if suspicious else ()):
            handle.check(value, f"Cannot sweep '{path}' with the value at index {index}")

    def _complete(self) -> None:
        """Give inputs that are swept and have no value that of the first run."""
        for column in self._columns if self._count else ():
            try:
                column.place.read(self._context)
            except EvaluationError:
                column.place.write(self._context, column.rows[0])

    @property
    def varied(self) -> dict[str, Varied]:
        """What is known of the values in which runs differ, by path."""
        found = {}
        for path, column in self._named.items():
            handle = column.place.handle
            unit, doc = (str(getattr(handle, name, "")) for name in ("unit", "doc"))
            found[path] = Varied(unit, doc, self.values[path].shape[1:])
        return found

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Context]:
        return map(self.context, range(self._count))

    def last(self) -> Context:
        """Return a context with the values of the last run."""
        return self.context(self._count - 1)

    def base(self) -> Context:
        """Return a copy of the context in which values are replaced."""
        return self._context.clone()

    def context(self, index: int) -> Context:
        """Return a new context with the values of one run."""
        context = self._context.clone()
        for column in self._columns:
            column.place.write(context, column.rows[index])
        return context

    def read(self, place: Place) -> FloatArray:
        """Return a number of each run."""
        for column in self._columns:
            if column.place.handle is place.handle:
                where = np.flatnonzero(column.place.components == place.components[0])
                if len(where):
                    return np.array(column.rows.reshape(self._count, -1)[:, where[0]], dtype=float)
        return np.full(self._count, float(np.reshape(place.read(self._context), ())))

    def cargo(self, runs: NDArray[np.int64]) -> list[Any]:
        """Return the values of some of the runs, an array for each path."""
        return [column.rows[runs] for column in self._columns]

    def loaded(self, cargo: list[Any]) -> SweptContexts:
        """Return runs with other values; what they have in common stays."""
        twin = copy.copy(self)
        twin._columns = [
            replace(column, rows=rows) for column, rows in zip(self._columns, cargo, strict=True)
        ]
        twin._count = len(cargo[0]) if cargo else 0
        twin.values, twin.plan = {}, Plan([])  # they are those of the whole sweep
        return twin

    def lanes(self, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return time, and those of some inputs of a trace in which runs differ."""
        wanted = set(keys)
        lanes = {
            key: numbers.copy()
            for column in self._columns
            for key, numbers in zip(
                column.keys, column.rows.reshape(self._count, len(column.keys)).T, strict=True
            )
            if key in wanted
        }
        return {TIME_KEY: np.full(self._count, self.store.time)} | lanes

    def differ_in(self, position: int) -> bool:
        """Return whether runs may differ in what a block knows beside time and states."""
        return any(
            what == INPUT or (what in (PARAMETER, DISCRETE) and where == position)
            for (what, where, _), _ in self._keys
        )


# What a path stands for --------------------------------------------------------------------


def _find(context: Context, name: Way, path: str) -> Place:
    """Return the place of what a path names, which must be something that a sweep can change."""
    found = find_place(context.system, name, _can_be_swept)
    if not _can_be_swept(found.handle) or found.shape is None:
        raise UnknownNameError(
            f"Cannot sweep '{path}'",
            expected="a numeric parameter, a numeric state or a free vector input",
            found=f"the {found.handle.what} '{found.handle.full_name}'",
        )
    return found.settable


def _can_be_swept(handle: Any) -> bool:
    """Return whether a handle is that of a numeric parameter, state or input, or shows a state."""
    kinds = (NumericParameter, ContinuousState, DiscreteState, InputPort)
    return isinstance(handle, kinds) or shows_state(handle)


def _rows(numbers: FloatArray, shape: tuple[int, ...], attempt: str) -> FloatArray:
    """Return one value of a shape for each run; those with one number may come without axes."""
    size = prod(shape)
    if numbers.ndim == 0 or not (
        numbers.shape[1:] == shape or (size == 1 and numbers.size == len(numbers))
    ):
        wanted = "(N,)" if size == 1 else f"(N, {', '.join(map(str, shape))})"
        raise ValueRefusedError(
            attempt,
            expected=f"values of shape {wanted}, one for each of N runs",
            found=f"shape {numbers.shape}",
            remedy="Set values that all runs share in the context",
        )
    return numbers.reshape(len(numbers), *shape)


def _keys(layout: Layout, place: Place, attempt: str) -> list[Key]:
    """Return the inputs of a trace for the components of a value."""
    handle, components = place.handle, place.components.tolist()
    if isinstance(handle, InputPort):
        end = layout.trace_back(handle)
        if end not in layout.held:
            raise ContextError(
                attempt,
                expected="a port that is fed from outside of the root diagram",
                found=f"a connection from '{end.full_name}'",
            )
        return [((INPUT, layout.held[end], 0), k) for k in components]
    position = layout.position[handle.system]
    if isinstance(handle, ContinuousState):
        start = layout.x_slices[position].start
        return [((STATE, 0, 0), start + k) for k in components]
    what = PARAMETER if isinstance(handle, NumericParameter) else DISCRETE
    return [((what, position, handle.index), k) for k in components]
