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
        self._at_once = all(map(self._is_log, self._logs.values()))
        self._x: FloatArray = simulator.context.store.x
        self._discrete: FloatArray = np.empty(0)

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
        self._x = record.x.copy()
        self._discrete = record.arrays["env"][: self._program.num_discrete].copy()

    def take(self, record: RunRecord, maker: StepMaker | None) -> None:
        """Read all rows and make room for new ones."""
        fields = record.fields
        used, width = int(fields.rows_used), int(fields.width)
        fields.rows_used = 0
        if not used:
            return
        kinds = record.arrays["kinds"][: 2 * used].reshape(used, 2)
        table = record.arrays["table"][: used * width].reshape(used, width)
        if self._at_once:
            self._fill_logs(kinds, table)
        one_by_one = self._simulator.history is not None or not self._at_once
        if one_by_one or fields.crossings:
            self._go_through(kinds.tolist(), table.copy(), maker, float(fields.jump))

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

    def _go_through(
        self, kinds: list[list[int]], table: FloatArray, maker: StepMaker | None, jump: float
    ) -> None:
        """Read row by row, until a publish ends the run."""
        simulator, n, m = self._simulator, self._program.num_states, self._program.num_discrete
        history, leaves = simulator.history, simulator.context.store.leaves
        for (kind, mask), row in zip(kinds, table, strict=True):
            time, x, discrete = float(row[0]), row[3 : 3 + n], row[3 + n : 3 + n + m]
            if kind == CROSSING:
                witnesses = simulator.agenda.witnesses
                self._put(time, x, discrete)
                simulator.watch_for_zeno([e for k, e in enumerate(witnesses) if mask >> k & 1])
            elif kind == SAMPLE:
                if not self._at_once and self._publish(mask, row, maker, jump):
                    return
            elif history is not None:
                if kind == CHANGE:
                    self._discrete = discrete
                    groups = self._program.discrete_groups(freeze(discrete))
                    snapshot = Snapshot(groups, [list(k.abstract) for k in leaves])
                    history.begin_with(time, freeze(x), snapshot)
                elif kind == STEP:
                    assert maker is not None
                    history.extend(time, freeze(x), self._step(maker, row, jump))
                self._x = x

    def _step(self, maker: StepMaker, row: FloatArray, jump: float) -> NativeStep:
        """Return the interpolant of the step of a row."""
        begin, end = float(row[1]), float(row[2])
        clip = math.nextafter(end, -math.inf) if end == jump else math.inf
        return NativeStep(maker, begin, end, self._x, self._discrete, clip)

    def _publish(self, mask: int, row: FloatArray, maker: StepMaker | None, jump: float) -> bool:
        """Run the publishes of one instant; tell whether the run ends there."""
        simulator, n, m = self._simulator, self._program.num_states, self._program.num_discrete
        time, x = float(row[0]), row[3 : 3 + n]
        due = [e for bit, each in enumerate(self._publishes) if mask >> bit & 1 for e in each]
        self._put(time, x, row[3 + n : 3 + n + m])
        failed = True
        try:
            simulator.publish([*self._per_step, *due])
            failed = simulator.termination is not None
        finally:
            if failed and simulator.history is not None:
                assert maker is not None
                step = self._step(maker, row, jump)
                simulator.history.extend(time, simulator.context.store.x, step)
        return failed

    def _put(self, time: float, x: FloatArray, discrete: FloatArray) -> None:
        """Put the values of a row into the context."""
        store = self._simulator.context.store
        store.set_motion(time, freeze(x.copy()))
        if len(discrete):
            groups = self._program.discrete_groups(freeze(discrete.copy()))
            for leaf, values in zip(store.leaves, groups, strict=True):
                if values:
                    leaf.discrete = values
            store.changed(DISCRETE)
