"""The agenda of a simulation: every event below a root context, by kind and trigger.

Events due together run in this order: by block in diagram order; within a block initialization
events, then per-step events, then timed events, then witness events, then those that settle; among
these in the order of their declaration. This is also Drake's order, which has no settling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.values.events import (
    Event,
    EventKind,
    Forced,
    Initialization,
    Periodic,
    PerStep,
    Settling,
    Witness,
    require_interval,
)

_RANK = {Initialization: 0, PerStep: 1, Periodic: 2, Witness: 3, Settling: 4}


@dataclass(frozen=True, eq=False)
class Entry:
    """One event of one block in one context."""

    order: tuple[int, int, int]  # sorting key: block, trigger, declaration
    leaf: LeafContext  # the values that the handler sees
    event: Event  # what to do

    @property
    def key(self) -> tuple[int, int]:
        """Position of the block, and of the event in it."""
        return self.order[0], self.order[2]

    @property
    def is_update(self) -> bool:
        """Whether it may change values."""
        return self.event.kind != "publish"

    @property
    def witness(self) -> Witness:
        """The trigger of an event of a witness function."""
        assert isinstance(self.event.trigger, Witness)
        return self.event.trigger


class Agenda:
    """All events below a root context."""

    def __init__(self, context: Context) -> None:
        self._breaking = [leaf for leaf in context.leaves() if leaf.system.has_break_times]
        found: dict[type, list[Entry]] = {kind: [] for kind in _RANK}
        for leaf in context.leaves():
            for index, event in enumerate(leaf.system.events):
                kind = type(event.trigger)
                if kind is not Forced:
                    found[kind].append(Entry((leaf.position, _RANK[kind], index), leaf, event))
        self.initialization, self.per_step = found[Initialization], found[PerStep]
        self.witnesses, self.settling = found[Witness], found[Settling]
        self._periodic: dict[Periodic, list[Entry]] = {}
        for entry in found[Periodic]:
            clock: Any = entry.event.trigger
            self._periodic.setdefault(clock, []).append(entry)
        self._update_clocks = [
            clock
            for clock, entries in self._periodic.items()
            if any(entry.is_update for entry in entries)
        ]

    @property
    def clocks(self) -> list[tuple[Periodic, list[Entry]]]:
        """The periodic triggers and the events of each."""
        return list(self._periodic.items())

    @property
    def shortest_period(self) -> float:
        """The shortest period of a periodic event, or infinity."""
        return min((clock.period for clock in self._periodic), default=math.inf)

    @property
    def max_check_interval(self) -> float:
        """The longest stretch of time for which all witness functions may be left alone."""
        return min((entry.witness.max_check_interval for entry in self.witnesses), default=math.inf)

    def next_time(self, time: float, *, updates_only: bool = False) -> float:
        """Return the next time of a periodic event, strictly later than ``time``, or infinity.

        With ``updates_only``, times at which there are only publishes are passed over.
        """
        clocks: Iterable[Periodic] = self._update_clocks if updates_only else self._periodic
        return min((clock.next_time(time) for clock in clocks), default=math.inf)

    def next_break(self, time: float) -> float:
        """Return the next time at which some block's equations are not smooth."""
        breaks = (float(leaf.system.calc_next_break_time(leaf)) for leaf in self._breaking)
        return min((each for each in breaks if each > time), default=math.inf)

    def require_periods(self, end: float, latest: float, attempt: str) -> None:
        """Refuse periods of events before an end that floating-point time does not resolve."""
        for clock, entries in self.clocks:
            if clock.offset < end:
                what = f"a period of '{entries[0].event.label}'"
                require_interval(what, clock.period, latest, attempt)

    def due(self, time: float) -> list[Entry]:
        """Return the periodic events of exactly this time."""
        return [
            entry
            for clock, entries in self._periodic.items()
            if clock.is_due(time)
            for entry in entries
        ]


def ordered(entries: Iterable[Entry], kind: EventKind) -> list[Entry]:
    """Return the entries of one kind in the order in which they run."""
    return sorted((e for e in entries if e.event.kind == kind), key=lambda entry: entry.order)
