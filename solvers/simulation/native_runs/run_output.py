"""Output of a loop: steps for the history, samples for logs, events for the watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.native.kernels.parts.output_rows import (
    BEGIN,
    CHANGE,
    CLIP,
    CROSSING,
    END,
    MOST_ROWS,
    SAMPLE,
    STEP,
    TIME,
    RowLayout,
)
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.runs.past_steps import (
    HeldValues,
    NativeStep,
    StepRepeater,
    StepRows,
    kept_places,
)
from flexure.solvers.native.runs.run_memory import RunMemory
from flexure.solvers.results.records.history import History, Snapshot
from flexure.solvers.simulation.events.agenda import Entry

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


_TABLE = 2**18  # numbers in the table of rows
_EVERY = 1 << 61  # beyond the bits of all clocks: at every step


class RunOutput:
    """Reads the rows of a run after each call of its loop.

    ``at_once`` is whether nothing but logs publishes at clocks and steps, so that many rows can be
    read together. Else the loop has to wait after every publish, which may end the run. ``ended``
    is whether something has ended the run, and left the context where that was; ``disturbed``
    whether a publish has changed values in the context, such as a parameter, which the loop has not
    seen.
    """

    def __init__(self, simulation: SimulationState, program: Program) -> None:
        self._simulation = simulation
        self._program = program
        signals = sum(where.stop - where.start for where in program.trace.signals.values())
        recorded = simulation.history is not None
        self._lines = [line for _, line in program.lines] if recorded else []
        self._places = kept_places(self._lines, program.num_discrete)
        self._row = RowLayout.of(program.num_states, len(self._places), signals)
        self._per_step = simulation.agenda.per_step
        clocks = simulation.agenda.clocks  # in the order of the bits of a mask
        self._publishes = [[e for e in entries if not e.is_update] for _, entries in clocks]
        # Logs take all samples at once; other handlers see one instant after the other.
        logs = self._find_logs()
        self.at_once = logs is not None
        self._logs = logs or {}
        self.ended = self.disturbed = False
        self._x: FloatArray = simulation.store.x
        self._discrete: FloatArray = np.empty(0)
        self._abstract: list[list[Any]] = []
        self._kinds: Any = np.empty((0, 2), dtype=np.int64)
        self._table: FloatArray = np.empty((0, self._row.width))
        self._reached = 0
        self._waiting: list[Entry] = []  # publishes of the last instant
        self._maker: StepRepeater | None = None

    def _find_logs(self) -> dict[tuple[int, ...], list[Entry]] | None:
        """Return one entry of each log by the bits at which it is due; None if others publish."""
        blocks: dict[int, list[tuple[int, Entry]]] = {}
        clocks = ((1 << k, entries) for k, entries in enumerate(self._publishes))
        for bit, entries in [(_EVERY, self._per_step), *clocks]:
            for entry in entries:
                blocks.setdefault(entry.leaf.position, []).append((bit, entry))
        logs: dict[tuple[int, ...], list[Entry]] = {}
        for each in blocks.values():
            if not self._is_log([entry for _, entry in each]):
                return None
            logs.setdefault(tuple(bit for bit, _ in each), []).append(each[0][1])
        return logs

    def _place(self, entry: Entry) -> slice | None:
        """Return where the signal of a log is among the logged signals."""
        if entry.event.record is None:
            return None
        return self._program.trace.signals.get(entry.key)

    def _is_log(self, entries: list[Entry]) -> bool:
        """Return whether the publishes of a block do nothing but to record one signal."""
        ways = {(entry.event.record, str(self._place(entry))) for entry in entries}
        return len(ways) == 1 and self._place(entries[0]) is not None

    def make_room(self, memory: RunMemory) -> None:
        """Make the table that the loop writes rows to, in a record that knows the events."""
        fields, program = memory.fields, self._program
        fields.rows.logging = bool(program.signal)
        fields.rows.recording = self._simulation.history is not None
        many = max(16, min(4096, _TABLE // self._row.width))
        wanted = fields.rows.recording or fields.rows.stepwise
        written = wanted or fields.clocks.publishes or fields.witnesses.count
        memory.make_rows(many if written and self.at_once else MOST_ROWS, self._row, self._places)

    def begin(self, memory: RunMemory) -> None:
        """Note the state from which a run starts."""
        self.ended = self.disturbed = False
        self._waiting = []
        if self._simulation.history is not None:
            self._x = memory.x.copy()
            self._discrete = freeze(
                memory.parts["system"].arrays["env"][: self._program.num_discrete].copy()
            )
            self._abstract = [list(k.abstract) for k in self._simulation.store.leaves]

    def take(self, memory: RunMemory, maker: StepRepeater | None) -> None:
        """Read all rows, and make room for new ones."""
        fields = memory.fields
        if not fields.rows.used:
            return
        kinds, table = memory.take_rows()
        self._maker, self._kinds, self._table = maker, kinds, table
        self._reached = len(table)
        history = self._simulation.history
        crossing = fields.witnesses.count and np.any(kinds[:, 0] == CROSSING)
        try:
            if history is not None and self.at_once and history.takes(len(table)):
                self._keep(history)
            elif history is not None or crossing or not self.at_once:
                self._go_through()
        finally:
            if self._logs:
                self._fill_logs(self._kinds[: self._reached], self._table[: self._reached])

    def _fill_logs(self, kinds: Any, table: FloatArray) -> None:
        """Hand all samples to the logs."""
        masks = kinds[:, 1] | _EVERY
        if self._simulation.history is not None or self._simulation.agenda.witnesses:
            masks[kinds[:, 0] != SAMPLE] = 0  # else there are no other rows
        signals = table[:, self._row.signals]
        for bits, entries in self._logs.items():
            rows = _due_rows(masks, bits)
            times, samples = table[rows, TIME], signals[rows]
            for entry in entries:
                where, record = self._place(entry), entry.event.record
                assert where is not None
                assert record is not None
                record(entry.leaf, times, samples[:, where])
            self._simulation.statistics.publishes += len(times) * len(entries)

    def _keep(self, history: History) -> None:
        """Keep all rows as the record of the motion, up to a crossing that ends the run."""
        kinds, masks = self._kinds.T
        assert self._maker is not None
        changes = kinds == CHANGE
        held, count = self._held(self._table[changes], masks[changes]), np.cumsum(changes)
        wanted = changes | (kinds == STEP)
        try:
            for k in np.flatnonzero(kinds == CROSSING).tolist():
                self._reached, self._discrete = k + 1, held.after(int(count[k]))
                self._waiting = self._note_crossing(int(masks[k]), self._table[k])
            self._reached = len(kinds)
        finally:
            wanted[self._reached :] = False
            if wanted.any():
                table = self._table if wanted.all() else self._table[wanted]
                begins = changes[wanted]
                history.append(
                    StepRows(self._maker, self._row, begins, table, self._x, held, self._abstract)
                )
                self._x = freeze(table[-1, self._row.x].copy())
            self._discrete = held.after(int(count[self._reached - 1]))

    def _held(self, table: FloatArray, masks: NDArray[np.int64]) -> HeldValues:
        """Return the discrete values before and after some changes."""
        return HeldValues(self._lines, self._discrete, table[:, self._row.discrete], masks)

    def _go_through(self) -> None:
        """Read row by row; what is to be published belongs to the last instant."""
        history = self._simulation.history
        of_x = self._row.x
        kinds, table = self._kinds.tolist(), freeze(self._table.copy())
        for k, ((kind, mask), row) in enumerate(zip(kinds, table, strict=True)):
            self._reached = k + 1
            time, x = float(row[TIME]), row[of_x]
            if kind == CHANGE:
                self._x = x
                self._discrete = self._held(table[k : k + 1], self._kinds[k : k + 1, 1]).after(1)
                if history is not None:
                    history.begin_with(time, x, self._snapshot())
            elif kind == STEP:
                assert history is not None
                history.extend(time, x, self._step(row))
                if row[CLIP] < time:
                    history.end_before(float(row[CLIP]))
                self._x = x
            elif kind == CROSSING:
                self._waiting = self._note_crossing(mask, row)
            elif not self.at_once:
                self._waiting = [*self._due(mask), *self._waiting]

    def _snapshot(self) -> Snapshot:
        """Return the present discrete values, and the abstract ones, which do not change here."""
        return _Unread(self._program, self._discrete, self._abstract)

    def _note_crossing(self, mask: int, row: FloatArray) -> list[Entry]:
        """Count witness events, and return them."""
        witnesses = self._simulation.agenda.witnesses
        crossed = [entry for k, entry in enumerate(witnesses) if mask >> k & 1]
        self._simulation.statistics.witness_events += len(crossed)
        self._put(row)
        self.ended = True  # unless there is nothing to raise
        self._simulation.missed_crossings.watch_for_zeno(crossed)
        self.ended = False
        return crossed

    def _due(self, mask: int) -> list[Entry]:
        """Return the publishes of a sample."""
        of_clocks = [each for bit, each in enumerate(self._publishes) if mask >> bit & 1]
        return [*self._per_step, *(entry for each in of_clocks for entry in each)]

    def _step(self, row: FloatArray) -> NativeStep:
        """Return the interpolant of the step of a row."""
        assert self._maker is not None
        begin, end, clip = row[[BEGIN, END, CLIP]].tolist()
        return NativeStep(self._maker, begin, end, self._x, self._discrete, clip)

    def publish(self) -> None:
        """Run the publishes that wait, and note whether they end the run."""
        entries, self._waiting = self._waiting, []
        if all(entry.is_update for entry in entries):
            return
        simulation, row = self._simulation, self._table[-1].copy()
        self._put(row)
        revision = simulation.store.revision
        self.ended = True  # if one raises
        try:
            simulation.events.publish(entries)
            self.ended = simulation.events.termination is not None
            self.disturbed |= simulation.store.revision != revision
        finally:
            history, time = simulation.history, simulation.store.time
            if self.ended and history is not None and history.end != time:  # inside of a step
                history.extend(time, simulation.store.x, self._step(row))

    def _put(self, row: FloatArray) -> None:
        """Put the values of a row into the context."""
        store = self._simulation.store
        store.set_motion(float(row[TIME]), row[self._row.x].copy())
        recorded = self._simulation.history is not None
        values = self._discrete if recorded else row[self._row.discrete]
        self._program.discrete.write(store, values)


class _Unread(Snapshot):
    """A snapshot that splits its discrete values by block on demand."""

    def __init__(self, program: Program, values: FloatArray, abstract: list[list[Any]]) -> None:
        self._program = program
        self._values = values
        self.abstract = abstract

    @property
    def discrete(self) -> list[list[Any]]:  # type: ignore[override]
        return self._program.discrete.groups(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.discrete, self.abstract)


def _due_rows(masks: NDArray[np.int64], bits: tuple[int, ...]) -> Any:
    """Return the rows in which bits are set, each row once for each of them."""
    if len(bits) == 1:
        due = masks & bits[0] != 0
        return slice(None) if due.all() else np.flatnonzero(due)
    return np.sort(np.concatenate([np.flatnonzero(masks & bit) for bit in bits]))
