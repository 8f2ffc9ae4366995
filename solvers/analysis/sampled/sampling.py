"""Linear models of diagrams with periodic updates, from one sample instant to the next.

Between updates, states move and discrete values hold; at an update, discrete values jump. Both are
linear in the deviations from a point, so that a period is a product of matrices that act on

    w = [states, discrete values, inputs, 1].

Between updates that is a matrix exponential. Values that change linearly in time there, such as the
output of a `TimeDelay`, are exact as well: where the rates of the states are ``(F + τ G) w``, and G
has no column of a state, τ w is one more vector, which has the rate w.

Where the point moves, and the derivatives are others along its run, deviations are those from the
run, see `flexure.solvers.analysis.sampled.sample_runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from flexure.blocks.linear_systems.continuous import Integrator
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, TraceError
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Event, EventKind, Periodic
from flexure.diagrams.values.state import ContinuousState
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, Key
from flexure.solvers.analysis.equations.equations import Variable, slot_of
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.linear_models.linear_inputs import LinearInputs
from flexure.solvers.analysis.sampled.parameter_slopes import ParameterCode, ParameterSlopes
from flexure.solvers.analysis.sampled.sample_runs import SampleRun
from flexure.solvers.analysis.sampled.time_driven_values import (
    KINDS,
    SAME,
    Course,
    Instants,
    Reading,
    TimeDrivenValues,
    TracedUpdate,
    following,
    write_discrete,
)
from flexure.solvers.native.programs.system_trace import updated_states
from flexure.solvers.simulation.events.agenda import Agenda, Entry
from flexure.solvers.tracing.exact_jacobian import state_keys
from flexure.solvers.tracing.trace import number_behind, trace
from flexure.solvers.tracing.trace_check import agree, interpreted_numbers

_REPEATED = 1e-6  # part of a row's largest derivative: more is another one, and no rounding
_ROUNDING = 1e-12  # part of the largest of all
_AT_REST = 1e-11  # way of a state in a period that is none, beside 1 or the state
_STRAIGHT = 1e-9  # part of a row's largest derivative that may change along a run
_STATES = (STATE, 0, 0)


def _reset_of(block: LeafSystem, layout: Layout) -> OutputPort | None:
    """Return the port that resets an integrator, if a block does."""
    if not isinstance(block, Integrator) or not block.has_reset:
        return None
    feed = layout.trace_back(block.reset)
    return feed if isinstance(feed, OutputPort) else None


class SampledEquations:
    """The linear equations of a root context from one sample instant to the next.

    The instants are those of the slowest clock. States and discrete values are those just before
    an instant, results those just after it, and inputs hold from one instant to the next. Values
    that depend on time alone change meanwhile, see
    `flexure.solvers.analysis.sampled.time_driven_values`; the derivatives have to be the same again
    in the next period.

    The context of ``entries`` is changed. With ``as_gain``, blocks with ``linearize_as="gain"``
    have the slopes of gains; if ``frozen``, derivatives are those at the point for the whole
    period, also where it moves.
    """

    def __init__(
        self,
        entries: LinearInputs,
        outputs: list[Place],
        period: float,
        attempt: str,
        *,
        as_gain: bool,
        frozen: bool = False,
    ) -> None:
        self._entries, self._period, self._attempt = entries, period, attempt
        self._store = store = entries.context.store
        agenda = Agenda(entries.context)
        at_steps = [entry for entry in agenda.per_step if entry.event.kind != "publish"]
        switching = [
            entry
            for entry in agenda.settling
            if entry.event.kind == "discrete" and not entries.opens(entry.leaf.system)
        ]
        for entry in [*at_steps, *switching]:
            when = "at every step" if entry in at_steps else "whenever a value changes"
            raise self._refusal(
                "updates at known times", f"'{entry.event.label}', which is due {when}"
            )
        for leaf in entries.context.leaves():
            if feed := _reset_of(leaf.system, store.layout):
                raise self._refusal(
                    "states that jump at known times only",
                    f"'{leaf.system.label}', which '{feed.full_name}' resets",
                    "Linearize without that wire, with its input 'reset' free and fixed to 0",
                )
        self._clocks = {
            clock: due
            for clock, all_due in agenda.clocks
            if (due := [entry for entry in all_due if entry.event.kind != "publish"])
        }
        self._instants = Instants(entries.context, self._clocks, period, attempt)
        began, self._start = store.time, self._instants.start
        store.set_motion(self._start, store.x)
        slots = [slot_of(entries.context, place.handle) for place in outputs]
        parts = [place.components.tolist() for place in outputs]
        inputs = [key for variable in entries.variables for key in variable.keys]
        read = tuple(slots), tuple(map(tuple, parts)), tuple(inputs)
        try:
            traced, _ = kept_equations(
                store.layout,
                ("sampled", *read, as_gain),
                lambda: self._traced(slots, parts, inputs, as_gain=as_gain),
                lambda known: self._agrees(known, slots, parts),
            )
        except TraceError as error:
            found = f"{error.attempt[0].lower()}{error.attempt[1:]} ({error.found})"
            raise self._refusal("equations and updates that can be traced", found) from error
        reading: Reading = traced.more
        self.keys = reading.keys
        self._moves = [(update.event, key) for update in reading.moving for key in update.targets]
        states = state_keys(store)
        self._place = {key: k for k, key in enumerate([*states, *self.keys])}
        self._num_states, self._num_outputs = len(states), reading.num_outputs
        self._num_results = len(traced.expressions)
        self._equations, self._time_driven = traced, reading.time_driven
        moving = self._time_driven.keys
        self._values_vary = not moving.isdisjoint(traced.sources)
        self._slopes_vary = traced.slopes.depends_on_time or not moving.isdisjoint(
            traced.slopes.sources
        )
        curving = [key for key in self._place if key in traced.slopes.sources]
        self._curving_keys = [] if frozen else curving
        self._curving = [self._place[key] for key in self._curving_keys]
        self._is_bent = False
        self._differing: str | None = None
        self._courses = [Course(store, traced.slopes, 0.0)]
        self._varies = self._values_vary or self._slopes_vary
        if self._varies:
            self._begin(began)
        self._exact = self._courses[0].exact
        self._constant: FloatArray | None = None
        self._jumps: dict[frozenset[Event], FloatArray] = {}
        self._flows: dict[float, FloatArray] = {}
        self._powers: dict[tuple[float, bytes], FloatArray] = {}
        self.values = traced.evaluated(store)
        self.x = store.x
        self.held = np.array([number_behind(store, key) for key in self.keys])
        self.inputs = np.array([number_behind(store, key) for key in inputs])
        point = np.concatenate([self.x, self.held])[self._curving]
        self._straight = _AT_REST * (1.0 + np.abs(point))  # on which way the derivatives stay

    def _refusal(self, expected: str, found: str, remedy: str | None = None) -> EvaluationError:
        return EvaluationError(self._attempt, expected=expected, found=found, remedy=remedy)

    @property
    def names(self) -> list[str]:
        """The discrete values."""
        return [self._name(key) for key in self.keys]

    @property
    def slopes(self) -> FloatArray:
        """The derivatives of everything at the first instant, with all wires cut."""
        return self._exact(self._start, self._store.x)

    # Reading -------------------------------------------------------------------------------

    def _traced(
        self, slots: list[int], parts: list[list[int]], inputs: list[Key], *, as_gain: bool
    ) -> TracedEquations:
        """Trace the equations and updates, and find what matters of them."""
        layout = self._store.layout
        rates, shown, updates, cut = trace(
            layout, lambda symbols: self._read(symbols, slots, parts), as_gain=as_gain
        )
        keys = following(updates, inputs)
        wanted = [*state_keys(self._store), *keys]
        moving = [u for u in updates if not set(wanted).isdisjoint(u.targets)]
        results = [value for update in moving for value in update.values]
        time_driven = TimeDrivenValues(updates, keys, layout.num_states)
        reading = Reading(keys, time_driven, moving, len(shown), cut)
        expressions = [*rates, *shown, *results]
        return TracedEquations(layout, expressions, [*wanted, *inputs], beyond=cut, more=reading)

    def _agrees(self, known: TracedEquations, slots: list[int], parts: list[list[int]]) -> bool:
        """Return whether a trace that is kept gives the rates and outputs of the equations."""
        store = self._store
        signals = (store.value(slot)[part] for slot, part in zip(slots, parts, strict=True))
        expected = interpreted_numbers(store, signals)
        return expected is not None and agree(known.computed(store)[: len(expected)], expected)

    def _read(
        self, store: Any, slots: list[int], parts: list[list[int]]
    ) -> tuple[list[Any], list[Any], list[TracedUpdate], list[Any]]:
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

    def _read_update(self, store: Any, clock: Periodic, entry: Entry) -> TracedUpdate:
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
        return TracedUpdate(entry.event, clock, values, targets)

    # Time ----------------------------------------------------------------------------------

    def _begin(self, began: float) -> None:
        """Let what moves by time alone come to the first instant and, beside, a period further."""
        now, period, ticks = self._courses[0], self._period, self._instants.ticks
        self._time_driven.latch(now.store, began)
        for phase in ticks:
            if self._start + phase - period >= began - SAME * period:
                self._pass(now, phase - period)
        if self._slopes_vary:
            twin = self._entries.context.clone()
            later = Course(twin.store, self._equations.slopes, period)
            for phase in ticks:
                self._pass(later, phase - period)
            self._courses.append(later)

    def _pass(self, course: Course, phase: float, kinds: Iterable[EventKind] = KINDS) -> None:
        """Let what moves by time alone in a course pass an instant."""
        due = self._instants.due(phase + course.ahead)
        for kind in kinds:
            self._time_driven.advance(course.store, due, kind)

    def _slopes_at(self, phase: float, used: list[int]) -> FloatArray:
        """Return all derivatives some time after the first instant; note if used ones change."""
        times = [self._instants.time(phase + course.ahead) for course in self._courses]
        now, *others = (
            course.exact.entries(time, self._store.x)
            for course, time in zip(self._courses, times, strict=True)
        )
        code = self._equations.slopes
        rows = code.place[0]
        largest = np.zeros(code.shape[0])
        np.maximum.at(largest, rows, np.abs(now))
        counts = rows >= self._num_results  # what comes to wires, which is always used
        counts |= np.isin(rows, used)
        for later in others:
            forgiven = _REPEATED * largest[rows] + _ROUNDING * largest.max(initial=0.0)
            differ = ~(np.abs(later - now) <= forgiven) & counts
            if differ.any() and self._differing is None:
                self._differing = self._difference(int(np.argmax(differ)))
        return self._exact.dense(now)

    def _difference(self, entry: int) -> str:
        """Name an entry of the derivatives that is another one a period later, and why it is."""
        code = self._equations.slopes
        read = self._time_driven.keys.intersection(scalars.sources([code.entries[entry]]))
        why = []
        for key in sorted(read)[:3]:
            numbers = [number_behind(course.store, key) for course in self._courses]
            why.append(f"'{self._name(key)}' is {numbers[0]:.6g}, and then {numbers[1]:.6g}")
        what = self._result_name(int(code.place[0][entry]))
        found = f"{what}, whose derivatives are others a period later"
        return f"{found}, where {' and '.join(why)}" if why else found

    def _result_name(self, row: int) -> str:
        """Say what a row of the derivatives is."""
        n, p = self._num_states, self._num_outputs
        if row < n:
            return f"the rate of {self._name((_STATES, row))}"
        if n + p <= row < self._num_results:
            return f"the update of {self._name(self._moves[row - n - p][1])}"
        return "an output" if row < n + p else "what comes to a wire"

    def _name(self, key: Key) -> str:
        """Name a state or a discrete value."""
        (what, position, index), k = key
        if what == STATE:
            return self._store.layout.state_name(k)
        return Place.of(self._store.layout.leaves[position].discrete_states[index]).names[k]

    # Matrices ------------------------------------------------------------------------------

    def matrices(self) -> tuple[FloatArray, FloatArray]:
        """Return what a period makes of w, and the outputs just after its beginning, of w.

        Sets ``sampled``, the parts of both that come of inputs by the updates of the beginning,
        which read what an input was before it.

        Rows: states and discrete values; outputs. Columns: those of w.
        """
        run = self._run() if self._curving else None
        stops = self._instants.stops(smooth=not self._varies)
        moved, outputs = self._product(
            stops,
            lambda phase, whole: self._update_at(phase) @ whole,
            lambda start, stop, whole: self._flow(start, stop) @ whole,
            lambda: self._derivatives(0.0, self._shown),
        )
        if self._differing is not None:
            raise self._refusal(
                "equations that are the same in every period",
                self._differing,
                "Pass a period after which everything is the same again",
            )
        one = self._one
        outputs[:, one] += self._values_at(0.0)[self._shown]
        if run is not None and self._is_bent:
            begun: list[FloatArray] = []

            def shown() -> FloatArray:
                begun.append(run.results(self._start)[self._shown])
                return run.slopes(self._start)[self._shown]

            moved, outputs = self._product(stops, run.update, run.flow, shown)
            moved[:, one] = run.point - np.concatenate([self.x, self.held])
            outputs[:, one] = begun[0]
        self.sampled = moved[:, one + 1 :], outputs[:, one + 1 :]
        return moved[:, : one + 1], outputs[:, : one + 1]

    def slopes_by(self, parameters: Iterable[Variable]) -> FloatArray | None:
        """Return the derivatives of a linear model by parameters, shape (k, n + p, n + m).

        None where matrices change between two updates, or along a run. It takes the place of
        `matrices`, since what moves by time alone passes a period.
        """
        own = tuple(key for each in parameters for key in each.keys)
        reading: Reading = self._equations.more
        known, n, size = reading.by_parameters, self._num_states, len(self._place)
        if own not in known:
            inputs = (key for each in self._entries.variables for key in each.keys)
            rows = [*self._equations.expressions, *reading.cut]
            known[own] = ParameterCode(rows, [*self._place, *inputs], own, n)

        def changes(phase: float) -> FloatArray:
            time = self._instants.time(phase)
            return known[own].changes(self._store, time, self._entries, size)

        constant = None if self._varies else changes(0.0)
        found = ParameterSlopes(
            self._derivatives,
            lambda phase: changes(phase) if constant is None else constant,
            (len(own), self._one),
            n,
            self._shown,
            self._updates,
            self._flow,
        )
        stops = self._instants.stops(smooth=not self._varies)
        self._product(stops, found.update, found.flow, found.show)
        if self._is_bent or self._differing is not None or not found.is_constant:
            return None
        return np.hstack([found.moved[:, :size, :-1], found.outputs])

    @property
    def _one(self) -> int:
        """Where the 1 of w is."""
        return len(self._place) + len(self._entries.names)

    @property
    def _shown(self) -> list[int]:
        """The rows of outputs."""
        return [self._num_states + k for k in range(self._num_outputs)]

    def _run(self) -> SampleRun:
        """Return a run that begins at the point."""
        return SampleRun(
            self._entries.context.clone(),
            self._entries,
            self._equations,
            self._time_driven,
            self._instants,
            list(self._place),
            self._passing,
            self._attempt,
        )

    def _product(
        self,
        stops: list[float],
        update: Callable[[float, FloatArray], FloatArray],
        flow: Callable[[float, float, FloatArray], FloatArray],
        shown: Callable[[], FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Return a period and the outputs, with columns for what the first updates read of inputs.

        These come behind those of w.
        """
        ticks = set(self._instants.ticks)
        identity, inputs = self._identity(), slice(len(self._place), self._one)
        whole = update(0.0, identity) if 0.0 in ticks else identity
        whole = np.hstack([whole, (whole - identity)[:, inputs]])
        self._note_motion(0.0, whole[:, self._one])
        outputs = shown() @ whole[:-1]
        for start, stop in pairwise(stops):
            if start > 0.0 and start in ticks:
                whole = update(start, whole)
                self._note_motion(start, whole[:, self._one])
            whole = flow(start, stop, whole)
            self._note_motion(stop, whole[:, self._one])
        return whole[: len(self._place)], outputs

    def _note_motion(self, phase: float, way: FloatArray) -> None:
        """Note whether the derivatives are others some way from the point."""
        way = np.abs(way[self._curving])
        if self._is_bent or not (way > self._straight).any():
            return
        time, code = self._instants.time(phase), self._equations.slopes
        here = self._exact.entries(time, self.x)
        rows, largest = code.place[0], np.zeros(code.shape[0])
        np.maximum.at(largest, rows, np.abs(here))
        allowed = _STRAIGHT * largest[rows] + _ROUNDING * largest.max(initial=0.0)
        for direction in (1.0, -1.0):
            change = np.abs(self._slopes_beside(time, direction * way) - here)
            self._is_bent = self._is_bent or not (change <= allowed).all()
        self._straight = np.maximum(self._straight, way)

    def _slopes_beside(self, time: float, way: FloatArray) -> FloatArray:
        """Return the derivatives, other than zeros, some way from the point."""
        x, before, after = self.x.copy(), {}, {}
        for key, length in zip(self._curving_keys, way, strict=True):
            if key[0][0] == STATE:
                x[key[1]] += length
            else:
                before[key] = number_behind(self._store, key)
                after[key] = before[key] + length
        write_discrete(self._store, after)
        found = self._exact.entries(time, x)
        write_discrete(self._store, before)
        return found

    def _identity(self) -> FloatArray:
        return np.eye(len(self._place) + len(self._entries.names) + 1)

    def _derivatives(self, phase: float, rows: list[int]) -> FloatArray:
        """Return the derivatives of rates, outputs or results of updates by w, without its 1."""
        if self._slopes_vary:
            return self._entries.closed(self._slopes_at(phase, rows), len(self._place))[rows]
        if self._constant is None:
            matrix = self._exact(self._start, self._store.x)
            self._constant = self._entries.closed(matrix, len(self._place))
        return self._constant[rows]

    def _values_at(self, phase: float) -> FloatArray:
        """Return rates, outputs and results of updates at the point."""
        if not self._values_vary:
            return self.values
        return self._equations.computed(self._store, self._instants.time(phase))

    def _update_at(self, phase: float) -> FloatArray:
        """Return what the updates of an instant make of w: unrestricted ones first."""
        due = self._instants.due(phase)
        if (known := self._jumps.get(frozenset(due))) is not None:
            return known
        whole = self._identity()
        for matrix, _, _ in self._updates(phase):
            whole = matrix @ whole
        if not self._varies:
            self._jumps[frozenset(due)] = whole
        return whole

    def _updates(self, phase: float) -> Iterator[tuple[FloatArray, list[int], list[int]]]:
        """Yield what each kind of updates of an instant makes of w, with its rows and places."""
        due = self._instants.due(phase)
        present = np.concatenate([self.x, self.held])
        for kind in KINDS:
            rows, places = self._passing(due, kind)
            matrix = self._identity()
            if rows:
                matrix[places, :-1] = self._derivatives(phase, rows)
                matrix[places, -1] = self._values_at(phase)[rows] - present[places]
            yield matrix, rows, places
            for course in self._courses:
                self._pass(course, phase, [kind])

    def _passing(self, due: Collection[Event], kind: EventKind) -> tuple[list[int], list[int]]:
        """Return the rows of updates of one kind, and the places that they are for."""
        first = self._num_states + self._num_outputs
        passing = [
            (row, self._place[key])
            for row, (event, key) in enumerate(self._moves, first)
            if event in due and event.kind == kind and key in self._place
        ]
        return [row for row, _ in passing], [place for _, place in passing]

    def _flow(self, start: float, stop: float) -> FloatArray:
        """Return what the time between two updates makes of w."""
        from scipy.linalg import expm

        n, length = self._num_states, stop - start
        if length in self._flows:
            return self._flows[length]
        rates = list(range(n))
        early, middle, late = (
            self._derivatives(start + part * length, rates) for part in (0.25, 0.5, 0.75)
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
        if self._values_vary:
            first, last = (self._values_at(start + part * length)[:n] for part in (0.25, 0.75))
            matrix[:n, size - 1] = 1.5 * first - 0.5 * last
            matrix[:n, -1] = (last - first) / (0.5 * length)
            way = length * np.maximum(np.abs(first), np.abs(last))
            self._note_motion(start, np.pad(way, (0, len(self.keys))))
        if (np.abs(late - early) > 1e-12 * scale).any():
            matrix[:n, size:-1] = slope[:, n:]
        else:
            matrix[:n, : size - 1] = middle
        matrix[size:, n:size] = np.eye(held)
        alike = _rounded(matrix)
        if (length, alike) not in self._powers:
            self._powers[length, alike] = expm(length * matrix)[:size, :size]
        moved = self._powers[length, alike]
        if not self._varies:  # then it is the same in all stretches of this length
            self._flows[length] = moved
        return moved


def _rounded(matrix: FloatArray) -> bytes:
    """Distinguish matrices that differ by more than the rounding of times."""
    mantissas, exponents = np.frexp(matrix)
    return np.ldexp(np.round(mantissas * 2.0**40), exponents).tobytes()
