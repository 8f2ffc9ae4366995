"""Tracing: the derivatives of a diagram as expressions, from one run of its equations on symbols.

Time, states, parameters and fixed inputs all become inputs of the trace, so that one trace serves
whatever their values. An equation that branches on a value is traced along all of its branches.
If tracing fails, the cause is named: an equation that calls a foreign function or branches without
end, or a block with values that are no numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.context import Context, LeafContext, make_context
from flexure.diagrams.contexts.store import Store, annotate
from flexure.diagrams.contexts.updates import only_looking
from flexure.diagrams.scalars.expressions.branches import explore
from flexure.diagrams.scalars.expressions.refusal import line_behind
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.state_projection import Projection
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.handles import Handle
from flexure.diagrams.values.symbolic_values import (
    DISCRETE,
    INPUT,
    PARAMETER,
    STATE,
    TIME,
    Key,
    OutOfReach,
    symbols_for,
    unreadable,
)
from flexure.solvers.tracing import compile_limits

#: What a calculation gives that stays interpreted, see `interpreted_blocks` in this room.
FOREIGN = "foreign"

_T = TypeVar("_T")


def trace_derivatives(layout: Layout) -> list[Any]:
    """Return the time derivative of every state of a root system as an expression or a number.

    Raises `TraceError` when some block cannot be traced; the text names it.
    """
    return list(trace(layout, Store.time_derivatives))


def trace(layout: Layout, read: Callable[[SymbolicStore], _T], *, as_gain: bool = False) -> _T:
    """Return what a function reads from the values of a root system when all of them are symbols.

    With ``as_gain``, blocks that are to pass as gains in linear models have the slopes of gains.
    """
    with quietly():
        store = symbolic_store(layout, as_gain=as_gain)
        try:
            return read(store)
        except TraceError as error:
            if not getattr(error, "__notes__", ()):
                error.add_note(f"while tracing '{layout.root.label}'")
            raise
        except Exception as error:
            doing = "; ".join(getattr(error, "__notes__", ())) or "while tracing"
            raise TraceError(
                f"Cannot trace '{layout.root.label}'",
                expected="equations that run on symbols",
                found=f"{type(error).__name__}{line_behind(error)}, {doing}: {error}",
            ) from error


def symbolic_store(layout: Layout, *, as_gain: bool = False) -> SymbolicStore:
    """Make the values of a root context with a symbol for every number."""
    for leaf in layout.leaves:
        if leaf.abstract_parameters or leaf.abstract_states:
            raise TraceError(
                f"Cannot trace '{leaf.label}'",
                expected="numeric parameters and states",
                found="abstract ones",
            )
    return SymbolicStore(layout, as_gain=as_gain)


class SymbolicStore(Store):
    """The values of a root context with a symbol for every number.

    Calculations run along all of their branches. Reading a value that is no number, for which there
    is no symbol, raises a `TraceError`.
    """

    def __init__(self, layout: Layout, *, as_gain: bool = False) -> None:
        super().__init__(layout)
        self.graph = scalars.Graph(compile_limits.TRACED, as_gain=as_gain)
        self._adopt(make_context(layout).store.leaves)
        self.time = self._symbols(TIME, 0, 0, ())
        self.x = self._symbols(STATE, 0, 0, (layout.num_states,))
        for k, leaf in enumerate(self.leaves):
            system = leaf.system
            leaf.parameters = [
                self._symbols(PARAMETER, k, i, p.shape)
                for i, p in enumerate(system.numeric_parameters)
            ]
            leaf.discrete = [
                self._symbols(DISCRETE, k, i, (d.size,))
                for i, d in enumerate(system.discrete_states)
            ]
            leaf.abstract_parameters = OutOfReach(system.abstract_parameters, self.refuse)
            leaf.abstract = OutOfReach(system.abstract_states, self.refuse)
        for slot in range(layout.input_base, len(layout.slot_port)):
            size = layout.slot_port[slot].size
            if size is not None:
                self.hold(slot, self._symbols(INPUT, slot, 0, (size,)))

    def require_start(self) -> None:
        """Refuse nothing: the caller that gives symbols their values checks these."""

    def _adopt(self, leaves: list[LeafContext]) -> None:
        """Take over the contexts of the blocks and of the diagrams around them."""
        self.leaves = leaves
        for leaf in leaves:
            context: Context | None = leaf
            while context is not None and context.store is not self:
                context.store = self
                context = context.parent

    def _symbols(self, what: str, where: int, index: int, shape: tuple[int, ...]) -> Any:
        return symbols_for(self.graph, what, where, index, shape)

    def hold(self, slot: int, value: Any) -> None:
        """Put symbols into a slot; a default value that is no vector stays out of reach."""
        if self.layout.slot_port[slot].size is not None:
            super().hold(slot, value)

    def update(self, slot: int) -> None:
        """Compute a slot; refuse it when it cannot be computed from symbols."""
        super().update(slot)
        if self._is_stale(slot):
            self.refuse(self.layout.slot_port[slot])

    def compute(self, slot: int) -> None:
        """Run the calculation of one slot along all of its branches."""
        port, position = self.layout.slot_port[slot], self.layout.slot_leaf[slot]
        if position < 0:
            return  # an obstacle only if somebody reads it, which is for `update` to say
        leaf = self.leaves[position]
        try:
            value = self._explored(partial(port.compute, leaf))
        except Exception as error:
            annotate(error, f"while computing {port.what} '{port.full_name}'", self.time)
            raise
        self.cache[slot] = value
        self.stamps[slot] = self.clock

    def refuse(self, handle: Handle) -> NoReturn:
        """Refuse to read what no symbol stands for."""
        error = unreadable(handle)
        if self.graph.branches is not None:
            self.graph.branches.refuse(error)
        raise error

    def _is_stale(self, slot: int) -> bool:
        return self.stamps[slot] < self.required[self.masks[slot]]

    def _refresh_plan(self) -> None:
        """Compute what the derivatives need."""
        for slot in self.layout.plan:
            if self._is_stale(slot):
                self._compute_once(slot)

    def _derivatives_of(self, leaf: LeafContext, size: int) -> Array:
        """Run the derivative method of one leaf along all of its branches."""
        return self._explored(partial(super()._derivatives_of, leaf, size))

    def _projection_of(self, leaf: LeafContext, calc: Callable[[Projection, Any], Array]) -> Array:
        """Run a method of the projection of one leaf along all of its branches."""
        return self._explored(partial(super()._projection_of, leaf, calc))

    def _explored(self, calculation: Callable[[], Any]) -> Any:
        """Run equations along all of their branches; what they would set, native code would not."""
        with only_looking(self.leaves[0], "an equation", is_pure=True):
            return explore(self.graph, calculation)


def number_behind(store: Store, key: Key) -> float:
    """Return the number that an input of a trace stands for; not for time and state."""
    family, component = key
    return float(value_behind(store, family).item(component))


def value_behind(store: Store, family: tuple[str, int, int]) -> Any:
    """Return the whole vector or number whose components the keys of a family stand for."""
    what, where, index = family
    if what == PARAMETER:
        return store.leaves[where].parameters[index]
    if what == DISCRETE:
        return store.leaves[where].discrete[index]
    if what == INPUT:
        return store.value(where)
    return store.x if what == STATE else store.time
