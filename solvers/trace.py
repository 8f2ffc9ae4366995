"""Tracing: the derivatives of a diagram as expressions, from one run of its equations on symbols.

Time, states, parameters and fixed inputs all become inputs of the trace, so that one trace serves
whatever their values. What cannot be traced is named: an equation that branches on a value or
calls a foreign function, and blocks with values that are no numbers.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.context import make_context
from flexure.diagrams.errors import TraceError
from flexure.diagrams.layout import Layout
from flexure.diagrams.store import Store

#: Where the number behind an input of a trace is: what, block or slot, index, and component.
Key: TypeAlias = tuple[tuple[str, int, int], int]
TIME, STATE, PARAMETER, DISCRETE, INPUT = "time", "state", "parameter", "discrete", "input"

_T = TypeVar("_T")


def trace_derivatives(layout: Layout) -> list[Any]:
    """Return the time derivative of every state of a root system as an expression or a number.

    Raises
    ------
    TraceError
        When some block cannot be traced; the text names it.
    """
    return list(trace(layout, Store.time_derivatives))


def trace(layout: Layout, read: Callable[[Store], _T]) -> _T:
    """Return what a function reads from the values of a root system when all of them are symbols.

    Raises
    ------
    TraceError
        When some block cannot be traced; the text names it.
    """
    with _quietly():
        store = symbolic_store(layout)
        try:
            return read(store)
        except TraceError:
            raise
        except Exception as error:
            doing = "; ".join(getattr(error, "__notes__", ())) or "while tracing"
            raise TraceError(
                f"Cannot trace '{layout.root.label}'",
                expected="equations that run on symbols",
                found=f"{type(error).__name__} {doing}: {error}",
            ) from error


def symbolic_store(layout: Layout) -> Store:
    """Make the values of a root context with a symbol for every number."""
    graph = scalars.Graph()

    def symbols(what: str, where: int, index: int, shape: tuple[int, ...]) -> Any:
        return scalars.symbols(graph, (what, where, index), shape)

    store = make_context(layout).store
    store.time = symbols(TIME, 0, 0, ())
    store.x = symbols(STATE, 0, 0, (layout.num_states,))
    for k, leaf in enumerate(store.leaves):
        system = leaf.system
        if system.abstract_parameters or system.abstract_states:
            raise TraceError(
                f"Cannot trace '{system.label}'",
                expected="numeric parameters and states",
                found="abstract ones",
            )
        leaf.parameters = [
            symbols(PARAMETER, k, i, p.shape) for i, p in enumerate(system.numeric_parameters)
        ]
        leaf.discrete = [
            symbols(DISCRETE, k, i, (d.size,)) for i, d in enumerate(system.discrete_states)
        ]
    for slot in range(layout.input_base, len(layout.slot_port)):
        size = layout.slot_port[slot].size
        if size is not None:
            store.hold(slot, symbols(INPUT, slot, 0, (size,)))
    return store


def number_behind(store: Store, key: Key) -> float:
    """Return the number that an input of a trace stands for; not for time and state."""
    (what, where, index), component = key
    value: Any
    if what == PARAMETER:
        value = store.leaves[where].parameters[index]
    elif what == DISCRETE:
        value = store.leaves[where].discrete[index]
    else:
        value = store.value(where)
    return float(np.ravel(value)[component])


@contextmanager
def _quietly() -> Iterator[None]:
    """Trace without warnings, and without collecting garbage among the many small objects."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        if collecting:
            gc.enable()
