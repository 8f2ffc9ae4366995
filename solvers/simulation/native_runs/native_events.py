"""The events of a simulation in the form in which compiled loops have them.

Clocks, updates and witness functions have fixed places. Pending events, and places where functions
have triggered, are passed to a loop before it is called, and read back afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.values.events import Periodic
from flexure.solvers.native.kernels.parts.zero_search import SEARCH_SIZE
from flexure.solvers.native.programs.program import Program
from flexure.solvers.native.runs.run_memory import RunMemory, StructureArrays
from flexure.solvers.simulation.events.agenda import Entry

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


class NativeEvents:
    """Tells loops about the events of a simulation, and the simulation what has become of them."""

    def __init__(self, simulation: SimulationState, program: Program) -> None:
        self._simulation = simulation
        self._program = program
        self._clocks = simulation.agenda.clocks
        self._witnesses = simulation.agenda.witnesses
        self._settling = simulation.agenda.settling
        timed = [entry for _, entries in self._clocks for entry in entries]
        entries = [*timed, *self._witnesses, *self._settling]
        self._updates = sorted(
            (entry for entry in entries if entry.is_update), key=lambda e: e.order
        )
        self._places = {entry: k for k, entry in enumerate(self._updates)}

    def include(self, entries: list[Entry]) -> bool:
        """Return whether the loops have these updates."""
        return all(entry in self._places for entry in entries)

    # Once ----------------------------------------------------------------------------------

    def describe(self, memory: RunMemory) -> None:
        """Put clocks, updates and witness functions into a record."""
        self._describe_clocks(memory.parts["clocks"])
        self._describe_updates(memory.parts["updates"])
        self._describe_witnesses(memory.parts["witnesses"])
        memory.fields.rows.stepwise = bool(self._simulation.agenda.per_step)

    def _describe_clocks(self, part: StructureArrays) -> None:
        clocks = [clock for clock, _ in self._clocks]
        kinds = [{e.event.kind for e in entries} for _, entries in self._clocks]
        part.fields.count = len(clocks)
        part.attach("periods", np.array([c.period for c in clocks] or [1.0]))
        part.attach("offsets", np.array([c.offset for c in clocks] or [0.0]))
        part.room("ticks", len(clocks))
        part.room("publish_ticks", len(clocks))
        part.indices("updating", [bool(each - {"publish"}) for each in kinds])
        part.indices("publishing", ["publish" in each for each in kinds])
        part.fields.publishes = any("publish" in each for each in kinds)

    def _describe_updates(self, part: StructureArrays) -> None:
        program, updates = self._program, self._updates
        traced = [program.trace.updates[entry.key].computed for entry in updates]
        targets = [update.targets for update in traced]
        part.fields.count = len(traced)
        part.link_all("functions", [program.update_address(entry.key) for entry in updates])
        part.indices("unrestricted", [e.event.kind == "unrestricted" for e in updates])
        part.indices("clock", [self._clock_of(entry) for entry in updates])
        witnesses = self._witnesses
        part.indices("trigger", [witnesses.index(e) if e in witnesses else -1 for e in updates])
        part.indices("pending", [0] * len(traced))
        part.indices("settling", [entry in self._settling for entry in updates])
        part.fields.settles = bool(self._settling)
        part.indices("first_target", np.cumsum([0, *map(len, targets)]))
        part.indices("targets", [target for each in targets for target in each])
        keys = [entry.key for entry in updates]
        part.fields.lines = len(program.lines)
        part.indices("mover", [keys.index(key) for key, _ in program.lines])
        part.indices("starts", [line.start for _, line in program.lines])
        part.indices("aparts", [line.apart for _, line in program.lines])
        part.indices("ends", [line.end for _, line in program.lines])
        part.room("staged", program.num_states)
        part.room("results", sum(map(len, targets)))

    def _clock_of(self, entry: Entry) -> int:
        trigger, clocks = entry.event.trigger, [clock for clock, _ in self._clocks]
        return clocks.index(trigger) if isinstance(trigger, Periodic) else -1

    def _describe_witnesses(self, part: StructureArrays) -> None:
        witnesses = self._witnesses
        w = part.fields.count = len(witnesses)
        part.indices("directions", [e.witness.sign for e in witnesses])
        updates = [e.is_update for e in witnesses]
        part.indices("handled", updates)
        part.indices("turning", updates)
        part.indices("on_surface", [0] * w)
        part.indices("fast", [0] * w)
        part.indices("leaping", [0] * w)
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
            part.room(name, size)
        part.fields.longest = self._simulation.max_check_interval
        part.room("order", samples, np.int64)

    # Around a call -------------------------------------------------------------------------

    def hand_over(self, memory: RunMemory) -> None:
        """Put into a record what waits, and where functions have triggered."""
        simulation, surfaces = self._simulation, self._simulation.surfaces
        memory.fields.updates.moved = 0
        for entry in simulation.events.pending:
            memory.parts["updates"].arrays["pending"][self._places[entry]] = 1
        fields, witnesses = memory.fields.witnesses, memory.parts["witnesses"].arrays
        fields.jumped = surfaces.jumped
        fields.known = fields.stirred = surfaces.last is not None
        if surfaces.last is not None:
            witnesses["first"][:] = surfaces.last
        for k, value in surfaces.touched.items():
            witnesses["on_surface"][k], witnesses["surface"][k] = 1, value

    def take_back(self, memory: RunMemory, *, at_end: bool) -> None:
        """Pass the simulation the waiting events, and where functions have triggered.

        Nothing of that holds unless the context is where the loop has come to.
        """
        fields = memory.fields
        pending: list[Entry] = []
        if self._updates:
            flags = memory.parts["updates"].arrays["pending"]
            if at_end:
                waiting = zip(self._updates, flags.tolist(), strict=True)
                pending = [entry for entry, waits in waiting if waits]
            flags[:] = 0
        self._simulation.events.take_over(pending, updated=bool(fields.motion.changed))
        if fields.witnesses.count:
            witnesses = memory.parts["witnesses"].arrays
            touched: dict[int, float] = {}
            if at_end:
                values = witnesses["surface"].tolist()
                touching = enumerate(witnesses["on_surface"].tolist())
                touched = {k: values[k] for k, touches in touching if touches == 1}
            witnesses["on_surface"][:] = 0
            known = at_end and fields.witnesses.known
            last = witnesses["first"].copy() if known else None
            jumped = bool(fields.witnesses.jumped)
            self._simulation.surfaces.take_over(touched, last, jumped=jumped)
