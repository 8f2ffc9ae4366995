"""Linear models of diagrams with periodic updates, from one sample instant to the next.

Between updates, states move and discrete values hold; at an update, discrete values jump. Both are
linear in the deviations from a point, so that a period is a product of matrices that act on

    w = [states, discrete values, inputs, 1].

Between updates that is a matrix exponential. What changes linearly in time there, as the output of
a `TimeDelay` does, is exact as well: where the rates of the states are ``(F + τ G) w``, and G has
no column of a state, τ w is one more vector, which has the rate w.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.errors import EvaluationError, TraceError
from flexure.diagrams.events import Event, Periodic
from flexure.diagrams.places import Place
from flexure.diagrams.state import ContinuousState
from flexure.diagrams.values import FloatArray, freeze
from flexure.solvers.analysis.equations import slot_of
from flexure.solvers.analysis.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.linear_inputs import LinearInputs
from flexure.solvers.native.system_trace import updated_states
from flexure.solvers.simulation.agenda import Agenda, Entry
from flexure.solvers.tracing.agreement import agree, interpreted_numbers
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, numbers_behind, state_keys
from flexure.solvers.tracing.trace import DISCRETE, STATE, Key, number_behind, trace

_SAME = 1e-9  # part of a period: instants that are closer to each other are one
_STATES = (STATE, 0, 0)


@dataclass
class _Update:
    """A traced update: its event, what it computes, and what becomes of that."""

    event: Event
    clock: Periodic
    values: list[Any]
    targets: list[Key]


@dataclass(frozen=True)
class _Reading:
    """What a trace has found, beside rates and outputs.

    Attributes
    ----------
    keys : list of Key
        The discrete values that follow states or inputs.
    settling : list of _Update
        All updates.
    moving : list of _Update
        Those that write states or these discrete values.
    num_outputs : int
        Number of outputs.
    """

    keys: list[Key]
    settling: list[_Update]
    moving: list[_Update]
    num_outputs: int


class SampledEquations:
    """The linear equations of a root context from one sample instant to the next.

    The instants are those of the slowest clock. States and discrete values are those just before
    an instant, results those just after it, and inputs hold from one instant to the next.

    Parameters
    ----------
    entries : LinearInputs
        Context and inputs; the context is changed.
    outputs : list of Place
        Ports, or components of them.
    period : float
        From one instant to the next, in s.
    attempt : str
        Beginning of messages.

    Attributes
    ----------
    keys : list of Key
        The discrete values that follow states or inputs; all others count as constant.
    x, held, inputs : ndarray
        States, these discrete values, and variables at the point.
    values : ndarray
        Rates, outputs and results of updates there.
    """

    def __init__(
        self,
        entries: LinearInputs,
        outputs: list[Place],
        period: float,
        attempt: str,
    ) -> None:
        self._entries, self._period, self._attempt = entries, period, attempt
        self._store = store = entries.context.store
        self._agenda = agenda = Agenda(entries.context)
        if every_step := [e for e in agenda.per_step if e.event.kind != "publish"]:
            raise self._refusal(
                "updates at known times",
                f"'{every_step[0].event.label}', which is due at every step",
            )
        self._clocks = {
            clock: due
            for clock, all_due in agenda.clocks
            if (due := [entry for entry in all_due if entry.event.kind != "publish"])
        }
        self._start = self._first_instant()
        store.set_motion(self._start, store.x)
        slots = [slot_of(entries.context, place.handle) for place in outputs]
        parts = [place.components.tolist() for place in outputs]
        inputs = [key for variable in entries.variables for key in variable.keys]
        read = tuple(slots), tuple(map(tuple, parts)), tuple(inputs)
        try:
            traced, _ = kept_equations(
                store.layout,
                ("sampled", *read),
                lambda: self._traced(slots, parts, inputs),
                lambda known: self._agrees(known, slots, parts),
            )
        except TraceError as error:
            found = f"{error.attempt[0].lower()}{error.attempt[1:]} ({error.found})"
            raise self._refusal("equations and updates that can be traced", found) from error
        reading: _Reading = traced.more
        self.keys, self._updates = reading.keys, reading.moving
        self._settle(reading.settling)
        states = state_keys(store)
        self._place = {key: k for k, key in enumerate([*states, *self.keys])}
        self._num_states, self._num_outputs = len(states), reading.num_outputs
        self._exact = ExactJacobian(store, traced.slopes)
        self._constant: FloatArray | None = None
        self._flows: dict[float, FloatArray] = {}
        self.values = traced.evaluated(store)
        self.x = store.x
        self.held = np.array([number_behind(store, key) for key in self.keys])
        self.inputs = np.array([number_behind(store, key) for key in inputs])

    def _refusal(self, expected: str, found: str, remedy: str | None = None) -> EvaluationError:
        return EvaluationError(self._attempt, expected=expected, found=found, remedy=remedy)

    @property
    def names(self) -> list[str]:
        """What the discrete values are."""
        leaves = self._store.layout.leaves
        return [
            Place.of(leaves[position].discrete_states[index]).names[k]
            for (_, position, index), k in self.keys
        ]

    @property
    def slopes(self) -> FloatArray:
        """The derivatives of everything at the first instant, with all wires cut."""
        return self._exact(self._start, self._store.x)

    # Reading -------------------------------------------------------------------------------

    def _traced(
        self, slots: list[int], parts: list[list[int]], inputs: list[Key]
    ) -> TracedEquations:
        """Trace the equations and updates, and find what matters of them."""
        layout = self._store.layout
        rates, shown, updates, cut = trace(
            layout, lambda symbols: self._read(symbols, slots, parts)
        )
        keys = _following(updates, inputs)
        wanted = [*state_keys(self._store), *keys]
        moving = [u for u in updates if not set(wanted).isdisjoint(u.targets)]
        results = [value for update in moving for value in update.values]
        reading = _Reading(keys, updates, moving, len(shown))
        expressions = [*rates, *shown, *results]
        return TracedEquations(layout, expressions, [*wanted, *inputs], beyond=cut, more=reading)

    def _agrees(self, known: TracedEquations, slots: list[int], parts: list[list[int]]) -> bool:
        """Tell whether a trace that is kept gives the rates and outputs of the equations."""
        store = self._store
        signals = (store.value(slot)[part] for slot, part in zip(slots, parts, strict=True))
        expected = interpreted_numbers(store, signals)
        return expected is not None and agree(known.computed(store)[: len(expected)], expected)

    def _read(
        self, store: Any, slots: list[int], parts: list[list[int]]
    ) -> tuple[list[Any], list[Any], list[_Update], list[Any]]:
        """Trace rates, outputs, updates, and what comes to the cuts."""
        updates = [
            self._read_update(store, clock, entry)
            for clock, due in self._clocks.items()
            for entry in due
        ]
        cut = [value for slot in self._entries.slots for value in store.value(slot)]
        shown = [
            store.value(slot)[k] for slot, part in zip(slots, parts, strict=True) for k in part
        ]
        return list(store.time_derivatives()), shown, updates, cut

    def _read_update(self, store: Any, clock: Periodic, entry: Entry) -> _Update:
        position = entry.leaf.position
        values: list[Any] = []
        targets: list[Key] = []
        for state, value in updated_states(store, store.leaves[position], entry.event).items():
            values.extend(value)
            if isinstance(state, ContinuousState):
                start = store.layout.x_slices[position].start
                targets.extend((_STATES, start + k) for k in range(state.size))
            else:
                origin = (DISCRETE, position, state.index)
                targets.extend((origin, k) for k in range(state.size))
        return _Update(entry.event, clock, values, targets)

    def _settle(self, updates: list[_Update]) -> None:
        """Let the discrete values that count as constant be those after the latest updates."""
        store, following = self._store, set(self.keys)
        for update in updates:
            since = (self._start - update.clock.offset) % update.clock.period
            latest = self._start - since * (since < (1.0 - _SAME) * update.clock.period)
            numbers = numbers_behind(store, update.values, latest, store.x)
            for key, value in zip(update.targets, update.values, strict=True):
                (what, position, index), component = key
                if what == DISCRETE and key not in following:
                    leaf = store.leaves[position]
                    group = np.array(leaf.discrete[index])
                    group[component] = float(scalars.evaluate([value], numbers)[0])
                    leaf.write_discrete_state(index, freeze(group))

    # Instants ------------------------------------------------------------------------------

    def _first_instant(self) -> float:
        """Return the first instant of the slowest clock that is not before the present time."""
        time, period = self._store.time, self._period
        for clock, due in self._clocks.items():
            count = period / clock.period
            if round(count) < 1 or abs(count - round(count)) > _SAME * count:
                raise self._refusal(
                    "a period in which every update is due a whole number of times",
                    f"period={period:g} s and '{due[0].event.label}', which is due every "
                    f"{clock.period:g} s",
                    "Pass a whole multiple of the periods of all updates",
                )
        if not self._clocks:
            return float(time)
        slowest = max(self._clocks, key=lambda clock: clock.period)
        return slowest.next_time(np.nextafter(time, -np.inf))

    def _due(self, phase: float) -> list[tuple[Periodic, Entry]]:
        """Return the updates that are due some time after an instant."""
        found = []
        for clock, due in self._clocks.items():
            count = (phase + self._start - clock.offset) / clock.period
            if abs(count - round(count)) * clock.period <= _SAME * self._period:
                found += [(clock, entry) for entry in due]
        return found

    def _phases(self) -> list[float]:
        """Return the times after an instant at which updates are due, ascending."""
        phases: list[float] = []
        for clock in self._clocks:
            first = (clock.offset - self._start) % clock.period
            count = round(self._period / clock.period)
            phases += [(first + k * clock.period) % self._period for k in range(count)]
        same = _SAME * self._period
        phases = sorted(0.0 if self._period - phase < same else phase for phase in phases)
        return [p for k, p in enumerate(phases) if k == 0 or p - phases[k - 1] > same]

    def _breaks(self) -> list[float]:
        """Return the times after an instant at which equations are not smooth, ascending."""
        breaks: list[float] = []
        time = self._start
        while (time := self._agenda.next_break(time)) < self._start + self._period:
            breaks.append(time - self._start)
        return breaks

    # Matrices ------------------------------------------------------------------------------

    def matrices(self) -> tuple[FloatArray, FloatArray]:
        """Return what a period makes of w, and the outputs just after its beginning, of w.

        Rows: states and discrete values; outputs. Columns: those of w.
        """
        ticks = self._phases()
        stops = sorted({0.0, *ticks, *self._breaks(), self._period})
        first = self._update_at(0.0) if 0.0 in ticks else self._identity()
        shown = self._derivatives(0.0)[self._num_states :][: self._num_outputs]
        outputs = np.hstack([shown, np.zeros((len(shown), 1))]) @ first
        whole = first
        for start, stop in pairwise(stops):
            if start > 0.0 and start in ticks:
                whole = self._update_at(start) @ whole
            whole = self._flow(start, stop) @ whole
        return whole[: len(self._place)], outputs

    def _identity(self) -> FloatArray:
        return np.eye(len(self._place) + len(self._entries.names) + 1)

    def _derivatives(self, phase: float) -> FloatArray:
        """Return the derivatives of rates, outputs and results of updates by w, without its 1."""
        if self._constant is not None:
            return self._constant
        matrix = self._exact(self._start + phase, self._store.x)
        closed = self._entries.closed(matrix, len(self._place))
        if not self._exact.depends_on_time:
            self._constant = closed
        return closed

    def _update_at(self, phase: float) -> FloatArray:
        """Return what the updates of an instant make of w: unrestricted ones first."""
        events = {entry.event for _, entry in self._due(phase)}
        present = np.concatenate([self.x, self.held])
        rows = self._derivatives(phase)[self._num_states + self._num_outputs :]
        whole = self._identity()
        for kind in ("unrestricted", "discrete"):
            matrix = self._identity()
            start = 0
            for update in self._updates:
                for k, key in enumerate(update.targets, start):
                    event = update.event
                    if event in events and event.kind == kind and key in self._place:
                        place = self._place[key]
                        value = self.values[self._num_states + self._num_outputs + k]
                        matrix[place] = [*rows[k], value - present[place]]
                start += len(update.targets)
            whole = matrix @ whole
        return whole

    def _flow(self, start: float, stop: float) -> FloatArray:
        """Return what the time between two updates makes of w."""
        from scipy.linalg import expm

        n, length = self._num_states, stop - start
        if length in self._flows:
            return self._flows[length]
        early, middle, late = (
            self._derivatives(start + part * length)[:n] for part in (0.25, 0.5, 0.75)
        )
        slope = (late - early) / (0.5 * length)
        scale = np.abs(middle).max(initial=0.0)
        bent = np.abs(early + late - 2.0 * middle) > 1e-9 * scale
        turning = np.abs(late - early)[:, :n] > 1e-9 * scale
        if bent.any() or turning.any():
            row = int(np.argmax(bent.any(axis=1) | turning.any(axis=1)))
            name = self._store.layout.state_name(row)
            raise self._refusal(
                "equations whose derivatives do not change between updates",
                f"the rate of {name}, whose derivatives depend on time",
            )
        size = len(self._identity())
        held = size - n
        matrix = np.zeros((size + held, size + held))
        matrix[:n, : size - 1] = middle - 0.5 * length * slope
        matrix[:n, size - 1] = self.values[:n]
        if (np.abs(late - early) > 1e-12 * scale).any():
            matrix[:n, size:-1] = slope[:, n:]
        else:
            matrix[:n, : size - 1] = middle
        matrix[size:, n:size] = np.eye(held)
        moved: FloatArray = expm(length * matrix)[:size, :size]
        if not self._exact.depends_on_time:  # then so it is in all stretches of this length
            self._flows[length] = moved
        return moved


def _following(updates: Iterable[_Update], inputs: list[Key]) -> list[Key]:
    """Return the discrete values that follow states or inputs, at once or through others."""
    sources: dict[Key, set[Any]] = {}
    for update in updates:
        for key, value in zip(update.targets, update.values, strict=True):
            sources.setdefault(key, set()).update(scalars.sources([value]))
    found = set(inputs)
    while True:
        more = {
            key
            for key, read in sources.items()
            if key not in found and any(k in found or k[0] == _STATES for k in read)
        }
        if not more:
            return [key for key in sources if key in found and key[0][0] == DISCRETE]
        found |= more


__all__ = ["SampledEquations"]
