"""Phases: stretches of a motion between state events, in the sequence in which a run has them.

All phases are transcribed on one mesh, each with its states, inputs and duration. Where one ends,
the witness function of its event is zero, and the next one begins with what the updates return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.contexts.updates import run_updates
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Event, Settling, Witness
from flexure.solvers.design.optimal_motion.motion_replay import states_of
from flexure.solvers.native.kernels.parts.run import MOST_ROUNDS
from flexure.solvers.results.records.history import Piece, Snapshot
from flexure.solvers.results.records.result import SimulationResult

#: An event and the position of its block.
Switch = tuple[int, Event]
_ALIKE = 1e-6  # relative difference of what are the same numbers
_POINTS = 9  # of a phase, at which functions show on which side they stay


@dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of a motion between events."""

    snapshot: Snapshot  # the discrete values during it
    # begin, end: its time in the run in seconds.
    begin: float = 0.0
    end: float = 0.0
    # Witness functions that keep a sign during it: the number of the event, the sign, and the
    # largest magnitude in the run.
    sides: list[tuple[int, float, float]] = field(default_factory=list)
    event: int | None = None  # the event that ends it; none ends the last phase
    # Updates that run together at its end, with the discrete values that they read.
    rounds: list[tuple[list[int], Snapshot]] = field(default_factory=list)
    # The states of the run where it ends.
    last: FloatArray = field(default_factory=lambda: np.zeros(0))


def phases_of(
    context: Context, switches: Sequence[Switch], run: SimulationResult, attempt: str
) -> list[Phase]:
    """Return the phases of a run, each of which a single event ends; the context is changed."""
    events = _Switches(context, switches)
    pieces = run._history.pieces
    begin, first, found = pieces[0].times[0], pieces[0], list[Phase]()
    for before, after in pairwise(pieces):
        time = after.times[0]
        if time == begin:
            first = after
        elif not _same(_values_of(before, -1), _values_of(after, 0)):
            event, rounds = events.between(before, after, attempt)
            sides = events.sides(run, first.snapshot, begin, time)
            last = before.states[-1]
            found.append(Phase(first.snapshot, begin, time, sides, event, rounds, last))
            begin, first = time, after
    end = pieces[-1].times[-1]
    if found and end == begin:  # the event at the end joins nothing
        return [*found[:-1], replace(found[-1], event=None, rounds=[])]
    return [
        *found,
        Phase(first.snapshot, begin, end, events.sides(run, first.snapshot, begin, end)),
    ]


def _values_of(piece: Piece, at: int) -> list[FloatArray]:
    """Return the states and the discrete values of a piece, at its begin or end."""
    return [piece.states[at], *(value for leaf in piece.snapshot.discrete for value in leaf)]


def _same(values: list[FloatArray], others: list[FloatArray]) -> bool:
    """Return whether arrays are the same but for rounding, beside their largest magnitudes."""
    return all(
        np.all(np.abs(a - b) <= _ALIKE * np.max(np.abs(b), initial=0.0))
        for a, b in zip(values, others, strict=True)
    )


class _Switches:
    """The events of a context that phases are between."""

    def __init__(self, context: Context, switches: Sequence[Switch]) -> None:
        self._context, self._events = context, [event for _, event in switches]
        leaves = context.store.leaves
        self._pairs: list[tuple[LeafContext, Event]] = [(leaves[k], event) for k, event in switches]

    def _set(self, time: float, x: FloatArray, snapshot: Snapshot) -> None:
        snapshot.restore(self._context)
        self._context.store.set_motion(time, freeze(x.copy()))

    def _values(self) -> dict[int, float]:
        """Return the witness functions."""
        return {
            k: float(np.reshape(event.trigger.calc(leaf), ()))
            for k, (leaf, event) in enumerate(self._pairs)
            if isinstance(event.trigger, Witness)
        }

    def between(
        self, before: Piece, after: Piece, attempt: str
    ) -> tuple[int, list[tuple[list[int], Snapshot]]]:
        """Return the event that leads from one piece to the next, and its updates."""
        start = after.times[0], before.states[-1], before.snapshot
        self._set(*start)
        values = self._values()
        for k in sorted(values, key=lambda k: abs(values[k])):
            self._set(*start)
            rounds = self._run(k)
            held = [value for leaf in self._context.store.leaves for value in leaf.discrete]
            if _same([self._context.store.x, *held], _values_of(after, 0)):
                return k, rounds
        raise EvaluationError(
            f"{attempt} through the events of its guess",
            expected="a run with one state event at a time",
            found=f"values at t = {start[0]:.9g} s that no single event explains",
            remedy="Begin from another run",
        )

    def _run(self, chosen: int) -> list[tuple[list[int], Snapshot]]:
        """Run an update, and then those that settle until they change nothing."""
        settling = [k for k, e in enumerate(self._events) if isinstance(e.trigger, Settling)]
        rounds: list[tuple[list[int], Snapshot]] = []
        due = [chosen]
        for _ in range(MOST_ROUNDS):
            changed = False
            for kind in ("unrestricted", "discrete"):
                group = [k for k in due if self._events[k].kind == kind]
                seen = Snapshot.of(self._context)
                if group and run_updates(self._pairs[k] for k in group):
                    rounds.append((group, seen))
                    changed = True
            if not settling or (due is settling and not changed):
                break
            due = settling
        return rounds

    def sides(
        self, run: SimulationResult, snapshot: Snapshot, begin: float, end: float
    ) -> list[tuple[int, float, float]]:
        """Return which functions keep a sign between two times, the sign, and their size."""
        times = np.linspace(begin, end, _POINTS + 2)[1:-1]
        rows: list[dict[int, float]] = []
        for time, x in zip(times.tolist(), states_of(run, times).T, strict=True):
            self._set(time, x, snapshot)
            rows.append(self._values())
        found = []
        for k in rows[0]:
            values = np.array([row[k] for row in rows])
            trigger = self._events[k].trigger
            assert isinstance(trigger, Witness)
            sign = -trigger.sign or float(np.sign(values[0]))
            if np.all(sign * values > 0.0):
                found.append((k, sign, float(np.max(np.abs(values)))))
        return found
