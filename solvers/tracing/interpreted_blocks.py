"""Blocks that cannot be traced: they are interpreted within the generated code of the others.

Where a calculation does not run on symbols (it calls a foreign library, or reads a value that is no
number), the trace goes on with fresh symbols for what it gives, and notes a `Call`. The code made
of the trace then makes these calls: the numbers that the block reads of other blocks are put into
the store of the run, and its own calculation is asked.

The store is set to the time and state of every evaluation, so that it holds what interpretation
would find there. A calculation that reads more than it declares is none the worse for it: what was
not put into the store is computed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.context import LeafContext
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.expressions.refusal import line_behind
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import Array, FloatArray, freeze
from flexure.diagrams.values.kinds import MOTION
from flexure.solvers.tracing.trace import FOREIGN, SymbolicStore

_MOST_NAMES = 6  # blocks that a text names


@dataclass(frozen=True)
class Call:
    """A calculation of a block that stays interpreted."""

    slot: int | None  # the output that it computes; None for the time derivatives
    position: int  # position of the block in the layout
    # The slots of other blocks that it reads, each with its expressions or numbers.
    inputs: tuple[tuple[int, Sequence[Any]], ...]
    results: Sequence[Any]  # the symbols of its result in the trace

    @property
    def arguments(self) -> list[Any]:
        """The expressions of all inputs, end to end."""
        return [expression for _, expressions in self.inputs for expression in expressions]


@dataclass(frozen=True)
class Trace:
    """Time derivatives as expressions of numbers and of what interpreted calculations give."""

    expressions: list[Any]  # expression or number of every state
    calls: list[Call]  # the interpreted calculations in the order in which they run
    # For each block that is interpreted, why and where it cannot be traced.
    obstacles: dict[str, tuple[str, str]]

    def first_obstacle(self) -> str:
        """Say why and where the first of the blocks cannot be traced."""
        why, where = next(iter(self.obstacles.values()))
        return f"{why}, {where} on symbols"

    def interpreted_blocks(self) -> str:
        """Name the blocks that are interpreted and say why."""
        named = [f"'{block}' ({why})" for block, (why, _) in self.obstacles.items()]
        more = len(named) - _MOST_NAMES
        return ", ".join(named[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def trace_with_foreign(layout: Layout) -> Trace:
    """Trace the time derivatives of a root system as far as its blocks can be traced."""
    with quietly():
        store = PartlySymbolicStore(layout)
        return Trace(list(store.time_derivatives()), store.calls, store.obstacles)


class PartlySymbolicStore(SymbolicStore):
    """A store of symbols in which calculations that cannot be traced become calls."""

    def __init__(self, layout: Layout, *, as_gain: bool = False) -> None:
        super().__init__(layout, as_gain=as_gain)
        self.calls: list[Call] = []
        self.obstacles: dict[str, tuple[str, str]] = {}
        self._obscure: dict[int, Exception] = {}
        self._put: set[int] = set()

    def compute(self, slot: int) -> None:
        """Run the calculation of one slot, or note that it must be called."""
        if slot in self._obscure:
            return
        try:
            super().compute(slot)
        except Exception as error:
            size, position = self.layout.slot_port[slot].size, self.layout.slot_leaf[slot]
            if size is None:
                self._obscure[slot] = error  # an obstacle when somebody reads it
                return
            self._note(slot, error)
            self.cache[slot] = self._call(slot, position, size, self.layout.needs[slot])
            self.stamps[slot] = self.clock
            self._put.add(slot)

    def update(self, slot: int) -> None:
        """Compute a slot; refuse it when it cannot be computed from symbols."""
        try:
            super().update(slot)
        finally:
            if slot in self._obscure:
                self._note(slot, self._obscure[slot])

    def _derivatives_of(self, leaf: LeafContext, size: int) -> Array:
        """Run the derivative method of one leaf, or note that it must be called."""
        try:
            return super()._derivatives_of(leaf, size)
        except Exception as error:
            where = f"while computing the time derivatives of '{leaf.system.label}'"
            self.obstacles.setdefault(leaf.system.label, (_reason(error), where))
            return self._call(None, leaf.position, size, leaf.sources)

    def _note(self, slot: int, error: Exception) -> None:
        """Note why a slot cannot be computed from symbols; the first obstacle of a block counts."""
        port = self.layout.slot_port[slot]
        where = f"while computing {port.what} '{port.full_name}'"
        self.obstacles.setdefault(port.system.label, (_reason(error), where))

    def _call(self, slot: int | None, position: int, size: int, needs: Sequence[int]) -> Any:
        """Note a call and return the symbols of its result."""
        inputs = tuple((source, self.value(source)) for source in self._sources(needs))
        results = self._symbols(FOREIGN, len(self.calls), 0, (size,))
        self.calls.append(Call(slot, position, inputs, results))
        return results

    def _sources(self, needs: Iterable[int]) -> list[int]:
        """Return the vectors of other blocks behind some needs that follow the motion."""
        # The store of the run has the others already: what an earlier call put there or computed,
        # and what changes with parameters and the like alone.
        layout = self.layout
        found: list[int] = []
        seen: set[int] = set()
        pending = list(needs)
        while pending:
            slot = pending.pop()
            if slot in seen:
                continue
            seen.add(slot)
            if layout.slot_port[slot].size is None:
                pending.extend(layout.needs[slot])
            elif layout.masks[slot] & MOTION and slot not in self._put:
                found.append(slot)
        self._put.update(found)
        return found


def _reason(error: Exception) -> str:
    """Say in short why a calculation cannot be traced."""
    if isinstance(error, FlexureError):
        return error.attempt[0].lower() + error.attempt[1:]
    return f"{type(error).__name__}{line_behind(error)}: {error}"


class Interpreter:
    """Makes the calls of a trace in the store of a run, whose values every evaluation moves."""

    def __init__(self, store: Store, calls: Sequence[Call]) -> None:
        self._store = store
        self._error: Exception | None = None
        # What straight-line code calls: `begin` with time and state, then for each call a function
        # that takes and gives lists of numbers. Empty without calls.
        self.functions: list[Callable[..., Any]] = [self.begin] if calls else []
        for call in calls:
            inputs, start = [], 0
            for slot, expressions in call.inputs:
                inputs.append((slot, slice(start, start + len(expressions))))
                start += len(expressions)
            ask = self._output(call.slot) if call.slot is not None else self._derivatives(call)
            self.functions.append(partial(self._run, inputs, ask))

    def begin(self, time: float, x: FloatArray) -> None:
        """Set the store to a time and state."""
        self._store.set_motion(float(time), freeze(np.array(x)))

    def raised(self, error: Exception) -> bool:
        """Return whether an error comes out of a block, and not out of the code around it."""
        return error is self._error

    def _output(self, slot: int) -> Callable[[], Array]:
        """Return the calculation of an output as a function without arguments."""
        store, mask = self._store, self._store.masks[slot]

        def ask() -> Array:
            # Quicker than store.value(slot), since what the calculation needs is there already.
            if store.stamps[slot] < store.required[mask]:
                store.compute(slot)
            return store.cache[slot]

        return ask

    def _derivatives(self, call: Call) -> Callable[[], Array]:
        """Return the calculation of time derivatives as a function without arguments."""
        store = self._store
        return partial(store._derivatives_of, store.leaves[call.position], len(call.results))

    def _run(
        self, inputs: list[tuple[int, slice]], ask: Callable[[], Array], numbers: list[float]
    ) -> list[float]:
        """Put numbers into the store and ask for a result."""
        store = self._store
        cache, stamps, clock = store.cache, store.stamps, store.clock
        for slot, span in inputs:
            cache[slot] = freeze(np.array(numbers[span]))
            stamps[slot] = clock
        try:
            result: list[float] = ask().tolist()
        except Exception as error:
            self._error = error
            raise
        return result
