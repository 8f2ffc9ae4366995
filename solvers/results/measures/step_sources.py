"""Which step a signal responds to, found by going back along the wires."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flexure.blocks.signals.sources import Constant, Step
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.kinds import ABSTRACT, CONTINUOUS, DISCRETE
from flexure.solvers.tracing.signals import Reader

_STATES = CONTINUOUS | DISCRETE | ABSTRACT


class StepInput(NamedTuple):
    """A step: its instant, and the value that it asks for, NaN when that is unknown."""

    at: float
    target: float


class StepFinder:
    """Finds the step that a signal responds to.

    The instant of the step is the break time of the sources upstream of the signal: blocks without
    inputs that declare break times, such as `Step`. Upstream is whatever the signal depends on,
    at once or through states. Without a break time within the record, the step is the beginning of
    the record; with several, nothing is guessed.

    The target is the setpoint of a controller upstream of the signal: of a block with the inputs
    ``setpoint`` and ``measurement``, the latter wired to the signal. It counts when it comes from
    a `Step` at the very instant of the step, or does not change and no source breaks.

    Contexts have the system as root. The first component of the signal counts.
    """

    def __init__(self, system: System, reader: Reader) -> None:
        layout = self._layout = system.layout
        self._component = 0 if reader.part is None else reader.part[0]
        slots = _slots(layout, reader)
        observed = slots if isinstance(reader.handle, (OutputPort, InputPort)) else ()
        self.sources: list[int] = []  # positions of the sources upstream of the signal that break
        self.setpoints: set[int] = set()  # the slots of the setpoints of its controllers
        for k in sorted(_leaves_upstream(layout, slots)):
            ports, leaf = layout.leaves[k].input_ports, layout.leaves[k]
            if leaf.has_break_times and not ports:
                self.sources.append(k)
            fed = {port.name: slot for port, slot in zip(ports, layout.sources[k], strict=True)}
            if "setpoint" in fed and fed.get("measurement") in observed:
                self.setpoints.add(fed["setpoint"])
        held = [max(0, layout.slot_leaf[slot]) for slot in self.setpoints]
        # Positions of the leaves whose parameters decide on the answer.
        self.deciding = [*self.sources, *held]

    def follows(self, port: InputPort) -> bool:
        """Return whether the only setpoint of the signal is a free input port of the root."""
        return self.setpoints == {self._layout.slot_feeding(port)}

    def find(self, context: Context, start: float, end: float, at: float | None) -> StepInput:
        """Return the step within a record.

        The root context has the parameters and inputs of the run; its time is changed. The record
        begins and ends at ``start`` and ``end``. Raises ValueRefusedError when sources break at
        different times and the instant ``at`` is not given.
        """
        breaks = self._instants(context, self.sources, start, end)
        at = _only_instant(breaks, start) if at is None else at

        def asks(own: list[float]) -> bool:
            """Return whether the setpoint says without any doubt what the step asks for."""
            return own == [at] or not (own or breaks or at != start)

        return StepInput(at, self._setpoint(context, start, end, at, asks))

    def find_disturbance(
        self, context: Context, start: float, end: float, at: float | None
    ) -> StepInput:
        """Return the disturbance within a record, and where the signal belongs.

        The disturbance is the break of a source that is no setpoint. The signal belongs to the
        setpoint of its controller, which counts unless it moves at that instant.

        Arguments and errors are those of `find`.
        """
        held = {self._layout.slot_leaf[slot] for slot in self.setpoints}
        others = [k for k in self.sources if k not in held]
        if at is None:
            at = _only_instant(self._instants(context, others, start, end), start)
        return StepInput(at, self._setpoint(context, start, end, at, lambda own: at not in own))

    def _instants(
        self, context: Context, sources: list[int], start: float, end: float
    ) -> dict[float, str]:
        """Return when sources break within a record, and which."""
        breaks: dict[float, str] = {}
        for k in sources:
            name = self._layout.leaves[k].label
            breaks |= dict.fromkeys(_breaks(context, k, start, end), name) | breaks
        return breaks

    def _setpoint(
        self,
        context: Context,
        start: float,
        end: float,
        at: float,
        counts: Callable[[list[float]], bool],
    ) -> float:
        """Return the setpoint at a time; NaN if it is unknown, or its breaks speak against it."""
        if len(self.setpoints) != 1:
            return math.nan
        (slot,) = self.setpoints
        k = self._layout.slot_leaf[slot]
        own: list[float] = []
        if k >= 0:
            if not isinstance(self._layout.leaves[k], (Step, Constant)):
                return math.nan
            own = _breaks(context, k, start, end)
        if not counts(own):
            return math.nan
        context.time = at
        return float(context.store.value(slot)[self._component])


def _only_instant(breaks: dict[float, str], start: float) -> float:
    """Return when sources break, or the start if none does."""
    if len(breaks) > 1:
        found = ", ".join(f"'{name}' at {t:g} s" for t, name in sorted(breaks.items())[:4])
        raise ValueRefusedError(
            "Cannot decide to which step a signal responds",
            expected="sources that jump or bend at one time within the record",
            found=found + (" and so on" if len(breaks) > 4 else ""),
            remedy="Pass at= with the time of the step",
        )
    return next(iter(breaks), start)


def _slots(layout: Layout, reader: Reader) -> list[int]:
    """Return the slots that a signal shows or, as a state, is moved by."""
    handle = reader.handle
    try:
        if isinstance(handle, OutputPort):
            return [layout.slot_of(handle)]
        if isinstance(handle, InputPort):
            return [layout.slot_feeding(handle)]
        return layout.sources[layout.position[handle.system]]
    except KeyError:
        return []  # it is of another system, as whoever reads it will say


def _leaves_upstream(layout: Layout, slots: list[int]) -> set[int]:
    """Return the positions of the leaves that slots depend on, at once or through states."""
    seen, leaves, stack = set(slots), set(), list(slots)
    while stack:
        slot = stack.pop()
        k = layout.slot_leaf[slot]
        if k < 0:
            continue
        leaves.add(k)
        moved_by = layout.sources[k] if layout.own_masks[slot] & _STATES else ()
        fresh = {*layout.needs[slot], *moved_by} - seen
        seen |= fresh
        stack.extend(fresh)
    return leaves


def _breaks(context: Context, position: int, start: float, end: float) -> list[float]:
    """Return the break times of a leaf from the start, included, to the end; at most five."""
    leaf = context.store.leaves[position]
    found: list[float] = []
    time = math.nextafter(start, -math.inf)
    while len(found) < 5:
        context.time = time
        time = float(leaf.system.calc_next_break_time(leaf))
        if not time < end:
            break
        found.append(time)
    return found
