"""What the loop has written: steps for the history, samples for logs, events for the watch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.events import Periodic
from flexure.diagrams.feedthrough import DISCRETE
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.agenda import Entry
from flexure.solvers.history import Snapshot
from flexure.solvers.native.program import Program
from flexure.solvers.native.record import RunRecord
from flexure.solvers.native.run import CHANGE, CROSSING, SAMPLE, STEP
from flexure.solvers.native.steps import NativeStep, StepMaker

if TYPE_CHECKING:
    from flexure.solvers.simulator import Simulator


_EVERY = -1  # in place of the bit of a clock: at every step


class Rows:
    """Reads the rows of a run after each call of its loop.

    Parameters
    ----------
    simulator : Simulator
        For whom the rows are read.
    program : Program
        The equations of its system.
    clocks : list of tuple
        The clocks and their events, in the order of the bits of a mask.

    Attributes
    ----------
    at_once : bool
        Whether nothing but logs publishes at clocks and steps, so that many rows can be read
        together. Else the loop has to wait after every publish, which may end the run.
    ended : bool
        Whether something has ended the run, and left the context where that was.
    """

    def __init__(
        self, simulator: Simulator, program: Program, clocks: list[tuple[Periodic, list[Entry]]]
    ) -> None:
        self._simulator = simulator
        self._program = program
        self._per_step = simulator.agenda.per_step
        self._publishes = [
            [e for e in entries if e.event.kind == "publish"] for _, entries in clocks
        ]
        self._logs: dict[int, list[tuple[Entry, int]]] = {}  # events and their bits, by block
        for bit, entries in [(_EVERY, self._per_step), *enumerate(self._publishes)]:
            for entry in entries:
                self._logs.setdefault(entry.leaf.position, []).append((entry, bit))
        # Logs take all samples at once; other handlers see one instant after the other.
        self.at_once = all(map(self._is_log, self._logs.values()))
        self.ended = False
        self._x: FloatArray = simulator.context.store.x
        self._discrete: FloatArray = np.empty(0)
        self._kinds: Any = np.empty((0, 2), dtype=np.int64)
        self._table: FloatArray = np.empty((0, 3))
        self._reached = 0
        self._waiting: list[Entry] = []  # publishes of the last instant
        self._maker: StepMaker | None = None
        self._jump = math.inf

    def _place(self, entry: Entry) -> slice | None:
        """Return where the signal of a log is among the logged signals."""
        if entry.event.record is None:
            return None
        return self._program.signals.get((entry.leaf.position, entry.order[2]))

    def _is_log(self, entries: list[tuple[Entry, int]]) -> bool:
        """Tell whether the publishes of a block do nothing but to record one signal."""
        ways = {(entry.event.record, str(self._place(entry))) for entry, _ in entries}
        return len(ways) == 1 and self._place(entries[0][0]) is not None

    def begin(self, record: RunRecord) -> None:
        """Note the state from which a run starts."""
        self.ended = False
        self._waiting = []
        self._jump = float(record.fields.jump)
        self._x = record.x.copy()
        self._discrete = record.arrays["env"][: self._program.num_discrete].copy()

    def take(self, record: RunRecord, maker: StepMaker | None) -> None:
        """Read all rows, and make room for new ones."""
        fields = record.fields
        used, width = int(fields.rows_used), int(fields.width)
        fields.rows_used = 0
        if not used:
            return
        self._maker = maker
        self._kinds = record.arrays["kinds"][: 2 * used].reshape(used, 2)
        self._table = record.arrays["table"][: used * width].reshape(used, width)
        self._reached = used
        one_by_one = self._simulator.history is not None or not self.at_once
        try:
            if one_by_one or np.any(self._kinds[:, 0] == CROSSING):
                self._go_through()
        finally:
            if self.at_once:
                self._fill_logs(self._kinds[: self._reached], self._table[: self._reached])

    def _fill_logs(self, kinds: Any, table: FloatArray) -> None:
        """Hand all samples to the logs."""
        is_sample = kinds[:, 0] == SAMPLE
        values = table[:, 3 + self._program.num_states + self._program.num_discrete :]
        for entries in self._logs.values():
            due = [is_sample & (bit == _EVERY or kinds[:, 1] >> bit & 1 == 1) for _, bit in entries]
            counts = np.sum(due, axis=0)
            rows = slice(None) if np.all(counts == 1) else np.repeat(np.arange(len(kinds)), counts)
            entry, times = entries[0][0], table[rows, 0]
            where, record = self._place(entry), entry.event.record
            assert where is not None
            assert record is not None
            record(entry.leaf, times, values[rows, where])
            self._simulator.statistics.publishes += len(times)

    def _go_through(self) -> None:
        """Read row by row; what is to be published belongs to the last instant."""
        history, n, m = self._simulator.history, self._program.num_states, len(self._discrete)
        kinds, table = self._kinds.tolist(), self._table.copy()
        for k, ((kind, mask), row) in enumerate(zip(kinds, table, strict=True)):
            self._reached = k + 1
            time, x = float(row[0]), row[3 : 3 + n]
            if kind == CHANGE:
                self._x, self._discrete = x, row[3 + n : 3 + n + m]
                if history is not None:
                    history.begin_with(time, freeze(x), self._snapshot())
            elif kind == STEP:
                assert history is not None
                history.extend(time, freeze(x), self._step(row))
                self._x = x
            elif kind == CROSSING:
                self._waiting = self._note_crossing(mask, row)
            elif not self.at_once:
                self._waiting = [*self._due(mask), *self._waiting]

    def _snapshot(self) -> Snapshot:
        """Return the present discrete values, and the abstract ones, which do not change here."""
        groups = self._program.discrete_groups(freeze(self._discrete))
        leaves = self._simulator.context.store.leaves
        return Snapshot(groups, [list(leaf.abstract) for leaf in leaves])

    def _note_crossing(self, mask: int, row: FloatArray) -> list[Entry]:
        """Count witness events, and return them."""
        witnesses = self._simulator.agenda.witnesses
        crossed = [entry for k, entry in enumerate(witnesses) if mask >> k & 1]
        self._simulator.statistics.witness_events += len(crossed)
        self._put(row)
        self.ended = True  # unless there is nothing to raise
        self._simulator.watch_for_zeno(crossed)
        self.ended = False
        return crossed

    def _due(self, mask: int) -> list[Entry]:
        """Return the publishes of a sample."""
        of_clocks = [each for bit, each in enumerate(self._publishes) if mask >> bit & 1]
        return [*self._per_step, *(entry for each in of_clocks for entry in each)]

    def _step(self, row: FloatArray) -> NativeStep:
        """Return the interpolant of the step of a row."""
        assert self._maker is not None
        begin, end = float(row[1]), float(row[2])
        clip = math.nextafter(end, -math.inf) if end == self._jump else math.inf
        return NativeStep(self._maker, begin, end, self._x, self._discrete, clip)

    def publish(self) -> None:
        """Run the publishes that wait, and note whether they end the run."""
        entries, self._waiting = self._waiting, []
        if all(entry.event.kind != "publish" for entry in entries):
            return
        simulator, row = self._simulator, self._table[-1].copy()
        self._put(row)
        self.ended = True  # if one raises
        try:
            simulator.publish(entries)
            self.ended = simulator.termination is not None
        finally:
            history, time = simulator.history, simulator.context.store.time
            if self.ended and history is not None and history.end != time:  # inside of a step
                history.extend(time, simulator.context.store.x, self._step(row))

    def _put(self, row: FloatArray) -> None:
        """Put the values of a row into the context."""
        store, n, m = self._simulator.context.store, self._program.num_states, len(self._discrete)
        store.set_motion(float(row[0]), freeze(row[3 : 3 + n].copy()))
        if m:
            groups = self._program.discrete_groups(freeze(row[3 + n : 3 + n + m].copy()))
            for leaf, values in zip(store.leaves, groups, strict=True):
                if values:
                    leaf.discrete = values
            store.changed(DISCRETE)
