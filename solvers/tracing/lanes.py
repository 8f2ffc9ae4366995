"""Lanes: vectorized evaluation of the equations in many contexts at once.

One trace of a system serves all of its contexts. In a batch, every symbol is a vector with one
entry, a lane, for each context, and each operation is a single NumPy call for all lanes. The
numbers are those of one evaluation after the other, apart from last bits, as
`flexure.diagrams.scalars.derivatives.evaluation` says; nothing crosses from lane to lane.

Signals that cannot be traced are evaluated in one context after the other: those that depend on
equations that call foreign functions, read values that are no numbers or count their calls, and all
signals of a system in which a block has abstract states or parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, cast

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, TIME, Key
from flexure.solvers.tracing.signals import Reader, Signal, resolve
from flexure.solvers.tracing.trace import number_behind, trace, value_behind
from flexure.solvers.tracing.trace_check import agree

#: The time in a trace.
TIME_KEY: Key = ((TIME, 0, 0), 0)

_WORTHWHILE = 25  # contexts whose evaluation takes about as long as a trace of a few blocks
_AT_ONCE = 8192  # lanes whose intermediate values stay in the cache of a processor


class Lanes:
    """Expressions of a trace, to be computed for many lanes at once."""

    def __init__(self, expressions: Sequence[Any]) -> None:
        self._expressions = list(expressions)
        # Inputs of the trace that the expressions depend on.
        self.keys = sorted(cast("set[Key]", scalars.sources(self._expressions)))

    def evaluate(self, store: Store, lanes: Mapping[Key, FloatArray]) -> FloatArray:
        """Compute all expressions in all lanes: a row for each expression, shape (n, k).

        ``store`` holds parameters, discrete states and fixed inputs that are the same in all lanes,
        ``lanes`` the other inputs of the trace, and always time, by key: arrays of shape (k,).
        """
        same = {key: number_behind(store, key) for key in self.keys if key not in lanes}
        count = len(lanes[TIME_KEY])
        table = np.empty((len(self._expressions), count))
        for start in range(0, count, _AT_ONCE):
            span = slice(start, start + _AT_ONCE)
            values = same | {key: numbers[span] for key, numbers in lanes.items()}
            table[:, span] = scalars.evaluate(self._expressions, values)
        return table


class Batch(Protocol):
    """Many situations of one root system."""

    @property
    def store(self) -> Store:
        """Where the values are that all situations have in common."""

    def __len__(self) -> int:
        """Return the number of situations."""

    def __iter__(self) -> Iterator[Context]:
        """Go through root contexts with the values of one situation after the other."""

    def last(self) -> Context:
        """Return a root context with the values of the last situation."""

    def lanes(self, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return time, and those of the sorted inputs of a trace in which situations differ."""


class BatchReader:
    """Reads signals of one root system over batches; what is traced once serves again."""

    def __init__(self, system: System) -> None:
        self._layout = system.layout
        self._expressions: dict[Reader, list[Any] | None] = {}
        self._symbolic: list[Context | None] = []  # where it has been tried to make one
        self._lock = Lock()  # while it is moved

    def read(self, readers: Sequence[Reader], batch: Batch) -> list[FloatArray]:
        """Return an array for each signal: shape (k,) for one component, else (k, n)."""
        found: dict[Reader, FloatArray] = {}
        with np.errstate(all="ignore"):
            if len(batch) >= _WORTHWHILE:
                found = self._in_lanes([r for r in readers if self._trace(r) is not None], batch)
            found |= self._one_by_one([r for r in readers if r not in found], batch)
        return [
            np.array(found[reader], order="C").reshape(len(batch), *reader.shape)
            for reader in readers
        ]

    def _one_by_one(self, readers: Iterable[Reader], batch: Batch) -> dict[Reader, FloatArray]:
        """Evaluate the equations in one context after the other."""
        tables = {reader: np.empty((len(batch), reader.size)) for reader in readers}
        if tables:
            for k, context in enumerate(batch):
                for reader, table in tables.items():
                    table[k] = reader(context)
        return tables

    def _in_lanes(self, readers: Iterable[Reader], batch: Batch) -> dict[Reader, FloatArray]:
        """Evaluate what was traced for all contexts at once; keep what can be trusted."""
        traced = {reader: self._trace(reader) or [] for reader in readers}
        if not traced:
            return {}
        lanes = Lanes([entry for entries in traced.values() for entry in entries])
        table = lanes.evaluate(batch.store, batch.lanes(lanes.keys))
        last = batch.last()
        found, end = {}, 0
        for reader in traced:
            start, end = end, end + reader.size
            part = table[start:end].T
            if agree(part[-1], reader(last)):
                found[reader] = part
            else:
                self._expressions[reader] = None
        return found

    # Tracing -------------------------------------------------------------------------------

    def _symbols(self) -> Context | None:
        """Return a root context of symbols, or None where there cannot be one."""
        if not self._symbolic:
            try:
                self._symbolic.append(trace(self._layout, lambda store: store.leaves[0].root))
            except TraceError:
                self._symbolic.append(None)
        return self._symbolic[0]

    def _trace(self, reader: Reader) -> list[Any] | None:
        """Return the components of a signal as expressions, or None if it cannot be traced."""
        if reader not in self._expressions:
            with self._lock:
                symbols, found = self._symbols(), None
                if symbols is not None:
                    with quietly(), suppress(Exception):
                        found = list(reader(symbols))
                self._expressions.setdefault(reader, found)
        return self._expressions[reader]

    def __reduce__(self) -> tuple[type[BatchReader], tuple[System]]:
        return BatchReader, (self._layout.root,)  # what was traced is traced again


class ContextBatch:
    """Contexts of one root system, at least one."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self._contexts = contexts
        self.store = contexts[0].store

    def __len__(self) -> int:
        return len(self._contexts)

    def __iter__(self) -> Iterator[Context]:
        return iter(self._contexts)

    def last(self) -> Context:
        """Return the last context."""
        return self._contexts[-1]

    def lanes(self, keys: Iterable[Key]) -> dict[Key, FloatArray]:
        """Return time, and those of the sorted inputs of a trace in which contexts differ."""
        stores = [context.store for context in self._contexts]
        lanes = {TIME_KEY: np.array([store.time for store in stores])}
        for family, members in groupby(keys, itemgetter(0)):
            values = [value_behind(store, family) for store in stores]
            if family[0] == STATE or len(set(map(id, values))) > 1:
                table = np.array(values).reshape(len(values), -1)
                lanes |= {key: table[:, key[1]] for key in members}
        return lanes


def evaluate_batch(
    system: System, signals: Iterable[Signal], contexts: Iterable[Context]
) -> list[FloatArray]:
    """Evaluate signals in many contexts at once.

    The contexts may differ in anything: time, states, parameters and fixed inputs. The numbers are
    those of one evaluation after the other, apart from last bits. Where the equations can be
    traced they come faster, the more so the more equations are behind the signals.

    Parameters
    ----------
    system : System
        A block or diagram.
    signals : iterable of Handle or str
        Vector ports and states, or their paths; ``"plant.x[1]"`` or ``"plant.x[rate]"`` is a
        component.
    contexts : iterable of Context
        Root contexts of the system.

    Returns
    -------
    list of ndarray
        For each signal an array with one row for each context: of shape (k,) for a single
        component, else (k, n).

    Raises
    ------
    ContextError
        A context belongs to another system, or to a block inside of a diagram.
    UnknownNameError
        There is no such signal.

    See Also
    --------
    sweep : Simulate many runs.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0)
    >>> contexts = [lag.create_default_context() for _ in range(3)]
    >>> for k, context in enumerate(contexts):
    ...     context.set("x", 0.5 * k)
    >>> fx.evaluate_batch(lag, ["y"], contexts)
    [array([0. , 0.5, 1. ])]
    """
    require_system(system, "Cannot evaluate signals")
    attempt = f"Cannot evaluate '{system.label}'"
    contexts = items_of(contexts, "several root contexts", attempt)
    for context in contexts:
        require_root(context, system, attempt)
    signals = items_of(signals, "a list of signals", attempt)
    readers = [resolve(system, signal) for signal in signals]
    if not contexts:
        return [np.empty((0, *reader.shape)) for reader in readers]
    return BatchReader(system).read(readers, ContextBatch(contexts))
