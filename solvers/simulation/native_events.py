"""The events of a simulation in the form in which compiled loops have them.

Clocks, updates and witness functions have fixed places. What waits to be run, and where functions
have triggered, is handed to a loop before it is called, and taken back afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.events import Periodic
from flexure.solvers.native.kernels.search import SEARCH_SIZE
from flexure.solvers.native.program import Program
from flexure.solvers.native.run_memory import RunMemory
from flexure.solvers.simulation.agenda import Entry

if TYPE_CHECKING:
    from flexure.solvers.simulation.simulation_state import SimulationState

_SIGNS = {"falling": -1, "rising": 1, "either": 0}


class NativeEvents:
    """Tells loops about the events of a simulation, and the simulation what has become of them.

    Parameters
    ----------
    simulation : SimulationState
        Whose events they are.
    program : Program
        The equations of its system.
    """

    def __init__(self, simulation: SimulationState, program: Program) -> None:
        self._simulation = simulation
        self._program = program
        self._clocks = simulation.agenda.clocks
        self._witnesses = simulation.agenda.witnesses
        entries = [e for _, each in self._clocks for e in each] + self._witnesses
        self._updates = sorted(
            (entry for entry in entries if entry.event.kind != "publish"), key=lambda e: e.order
        )
        self._places = {entry: k for k, entry in enumerate(self._updates)}

    def include(self, entries: list[Entry]) -> bool:
        """Tell whether the loops have these updates."""
        return all(entry in self._places for entry in entries)

    # Once ----------------------------------------------------------------------------------

    def describe(self, record: RunMemory) -> None:
        """Put clocks, updates and witness functions into a record."""
        self._describe_clocks(record)
        self._describe_updates(record)
        self._describe_witnesses(record)

    def _describe_clocks(self, record: RunMemory) -> None:
        fields, clocks = record.fields, [clock for clock, _ in self._clocks]
        kinds = [{e.event.kind for e in entries} for _, entries in self._clocks]
        fields.clocks = len(clocks)
        record.attach("periods", np.array([c.period for c in clocks] or [1.0]))
        record.attach("offsets", np.array([c.offset for c in clocks] or [0.0]))
        record.room("ticks", len(clocks))
        record.room("publish_ticks", len(clocks))
        record.indices("updating", [bool(each - {"publish"}) for each in kinds])
        record.indices("publishing", ["publish" in each for each in kinds])
        fields.publishes = any("publish" in each for each in kinds)
        fields.stepwise = bool(self._simulation.agenda.per_step)

    def _describe_updates(self, record: RunMemory) -> None:
        fields, program, updates = record.fields, self._program, self._updates
        traced = [program.updates[entry.key] for entry in updates]
        targets = [update.targets for update in traced]
        fields.events = len(traced)
        record.link_all("updates", [program.update_address(entry.key) for entry in updates])
        record.indices("unrestricted", [e.event.kind == "unrestricted" for e in updates])
        record.indices("clock", [self._clock_of(entry) for entry in updates])
        witnesses = self._witnesses
        record.indices("trigger", [witnesses.index(e) if e in witnesses else -1 for e in updates])
        record.indices("pending", [0] * len(traced))
        record.indices("first_target", np.cumsum([0, *map(len, targets)]))
        record.indices("targets", [target for each in targets for target in each])
        record.room("staged", fields.n + fields.m)
        record.room("results", max(map(len, targets), default=0))

    def _clock_of(self, entry: Entry) -> int:
        trigger, clocks = entry.event.trigger, [clock for clock, _ in self._clocks]
        return clocks.index(trigger) if isinstance(trigger, Periodic) else -1

    def _describe_witnesses(self, record: RunMemory) -> None:
        witnesses = self._witnesses
        fields, w = record.fields, len(witnesses)
        fields.witnesses = w
        record.indices("directions", [_SIGNS[e.event.trigger.direction] for e in witnesses])  # type: ignore[union-attr]
        updates = [e.event.kind != "publish" for e in witnesses]
        record.indices("handled", updates)
        record.indices("turning", updates)
        record.indices("on_surface", [0] * w)
        record.indices("fast", [0] * w)
        samples = 5 + 4 * w
        for name, size in (
            ("surface", w),
            ("first", w),
            ("samples", samples * w),
            ("instants", samples),
            ("slopes", 4 * w),
            ("peaks", w),
            ("search", SEARCH_SIZE),
        ):
            record.room(name, size)
        fields.longest = self._simulation.max_check_interval
        record.room("order", samples, np.int64)

    # Around a call -------------------------------------------------------------------------

    def hand_over(self, record: RunMemory) -> None:
        """Put into a record what waits, and where functions have triggered."""
        simulation, arrays = self._simulation, record.arrays
        for entry in simulation.events.pending:
            arrays["pending"][self._places[entry]] = 1
        surfaces = simulation.surfaces
        record.fields.jumped = surfaces.jumped
        for k, value in surfaces.touched.items():
            arrays["on_surface"][k] = 1
            arrays["surface"][k] = value

    def take_back(self, record: RunMemory, *, at_end: bool) -> None:
        """Tell the simulation what waits now, and where functions have triggered.

        Nothing of that holds unless the context is where the loop has come to.
        """
        fields, arrays = record.fields, record.arrays
        pending: list[Entry] = []
        if self._updates:
            if at_end:
                waiting = zip(self._updates, arrays["pending"].tolist(), strict=True)
                pending = [entry for entry, waits in waiting if waits]
            arrays["pending"][:] = 0
        self._simulation.events.take_over(pending, updated=bool(fields.changed))
        if fields.witnesses:
            touched: dict[int, float] = {}
            if at_end:
                values = arrays["surface"].tolist()
                touching = enumerate(arrays["on_surface"].tolist())
                touched = {k: values[k] for k, touches in touching if touches == 1}
            arrays["on_surface"][:] = 0
            self._simulation.surfaces.take_over(touched, jumped=bool(fields.jumped))


__all__ = ["NativeEvents"]
