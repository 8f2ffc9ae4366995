"""Symbols for the values of a context: their names, and values without a symbol.

Equations are traced by running them on a context of symbols. There are two, which name and make
their symbols, and refuse what is no number, by what is here:

`flexure.diagrams.systems.feedthrough.Probe`
    One block that has no layout yet, since its layout is made of what the probe finds out: which
    values a calculation reads. So it makes each symbol when it is read, notes the reads (those
    included whose values do not appear in the result), and follows no branches. Without layout it
    has neither the order nor the cache of a store.
`flexure.solvers.tracing.trace.SymbolicStore`
    A root system: a store as any other, with all symbols in it from the beginning. Everything that
    is compiled or read as expressions comes from it: the trace that goes on where a block cannot
    be traced (`flexure.solvers.tracing.interpreted_blocks`), and the trace of one block in place
    of all that are alike (`flexure.solvers.native.sharing.families.families`), which is a root
    by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import TraceError

#: Where the number behind an input of a trace is: what, block or slot, index, and component.
Key: TypeAlias = tuple[tuple[str, int, int], int]
TIME, STATE, PARAMETER, DISCRETE, INPUT = "time", "state", "parameter", "discrete", "input"


def symbols_for(
    graph: scalars.Graph, what: str, where: int, index: int, shape: tuple[int, ...]
) -> Any:
    """Return the symbols of one value."""
    return scalars.symbols(graph, (what, where, index), shape)


class Item(Protocol):
    """The handle of a value, as far as a refusal names it."""

    @property
    def what(self) -> str:
        """Its kind, in words."""

    @property
    def full_name(self) -> str:
        """Its path."""


class OutOfReach(list[Any]):
    """The values of a block that are no numbers, in place of which are their handles.

    ``refuse(handle)`` raises an error when one is read, such as `unreadable` makes.
    """

    def __init__(self, handles: Sequence[Item], refuse: Callable[[Any], NoReturn]) -> None:
        super().__init__(handles)
        self._refuse = refuse

    def __getitem__(self, index: Any) -> NoReturn:
        self._refuse(super().__getitem__(index))


def unreadable(handle: Item) -> TraceError:
    """Return the error for reading what no symbol stands for."""
    return TraceError(
        f"Cannot read {handle.what} '{handle.full_name}' as a symbol",
        expected="a number or a vector",
        found="a value of another kind",
    )
