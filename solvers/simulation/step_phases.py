"""One step of a simulation: the phases 1 to 5 of `flexure.solvers.simulation.simulator`, in Python.

In phase 3, a `Motion` runs the integrator between two stops of the simulation.
Compiled loops take the same phases where they can, see
`flexure.solvers.simulation.native_runs.native_eligibility`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.errors import SimulationError
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.solvers.integration.methods.methods import is_fixed_step, is_implicit, option_names
from flexure.solvers.results.records.history import Unmoved
from flexure.solvers.simulation.events.agenda import Entry
from flexure.solvers.simulation.run_control.diagnosis import (
    explain_non_finite,
    give_up_slow,
    judge_record,
    name_fastest,
    name_jump,
)

if TYPE_CHECKING:
    from flexure.solvers.integration.guard.integration import Segment, Stop, TakenStep
    from flexure.solvers.simulation.events.witnesses import Crossing
    from flexure.solvers.simulation.run_control.method_selection import Method
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState

_ROUNDED = 1e-6  # of a fixed step: what rounding errors of time may add to its last one


def take_step(simulation: SimulationState, boundary: float) -> None:
    """Run the phases 1 to 5 once, or more often where the integrator may go on."""
    events, agenda, store = simulation.events, simulation.agenda, simulation.store
    wrote, start = events.update_all(), store.time
    if boundary > start and simulation.manifold.place_start():
        simulation.surfaces.note_jump()
        wrote = True
    if wrote and simulation.history is not None:
        simulation.history.begin(simulation.context)
    if events.termination is not None:
        return
    crossed = _move(simulation, boundary) if boundary > start else []
    if events.published:
        return
    now = store.time
    found = [*(agenda.due(now) if now > start else []), *crossed]
    events.expect(found)
    events.publish([*agenda.per_step, *found])


def _move(simulation: SimulationState, boundary: float) -> list[Entry]:
    """Phase 3: let time pass up to the next stop; return the witness events there."""
    agenda, store = simulation.agenda, simulation.store
    start, moves = store.time, store.layout.num_states > 0
    dense_publishes = not (
        simulation.stepwise or is_fixed_step(simulation.choice.method) or not moves
    )
    tick = agenda.next_time(start, updates_only=dense_publishes)
    jump = agenda.next_break(start)
    stop = min(boundary, tick, jump)
    crossed: list[Entry] = []
    # Over a rounding error of time nothing moves, and some integrators refuse to start.
    if moves and stop - start > 4.0 * math.ulp(start):
        motion = Motion(simulation, stop, dense_publishes=dense_publishes)
        crossed = motion.run(left_limit=stop == jump, stretch=stop in (tick, jump))
    elif agenda.witnesses:
        crossed = _jump(simulation, min(stop, start + simulation.max_step))
    else:
        _land(simulation, stop, store.x)
        if lack := simulation.pace.count(stop):
            give_up_slow(simulation, stop, lack)
        judge_record(simulation, lambda: None)
    if store.time == jump:
        simulation.pass_break(jump)
    if crossed:
        simulation.missed_crossings.watch_for_zeno(crossed)
    return crossed


def _jump(simulation: SimulationState, stop: float) -> list[Entry]:
    """Let time pass without continuous state, watching witness functions of time."""
    store, surfaces = simulation.store, simulation.surfaces
    start, x = store.time, store.x

    def evaluate(time: float) -> FloatArray:
        store.set_motion(time, x)
        return surfaces.values()

    try:
        first = surfaces.first_values()
        search = surfaces.find_crossing(evaluate, start, stop, first)
        crossing = search.crossing
    finally:
        store.set_motion(start, x)
    _land(simulation, stop if crossing is None else crossing.time, x)
    surfaces.last = search.values
    return [] if crossing is None else surfaces.note_crossing(crossing)


def _land(simulation: SimulationState, time: float, x: FloatArray) -> None:
    """Accept a time and state."""
    simulation.store.set_motion(time, x)
    if simulation.history is not None:
        simulation.history.extend(time, x, Unmoved(x))


class Motion:
    """Carries the continuous state of a simulation up to a stop.

    That is the time to reach, unless a witness event or the end of a single step comes first. With
    ``dense_publishes``, periodic publishes read the interpolants of steps.
    """

    def __init__(self, simulation: SimulationState, stop: float, *, dense_publishes: bool) -> None:
        self._simulation = simulation
        self._store = simulation.store
        self._stop = stop
        self._dense_publishes = dense_publishes
        self._accepted: tuple[float, FloatArray] = (self._store.time, self._store.x)
        self._published_until = self._store.time
        self._revision = self._store.revision
        self._crossed: list[Entry] = []
        self._first: FloatArray | None = None
        self._clip = math.inf

    def run(self, *, left_limit: bool, stretch: bool) -> list[Entry]:
        """Integrate and return the witness events at the end.

        With ``left_limit``, equations jump at the stop, and are evaluated just before it. With
        ``stretch``, the last fixed step may be slightly longer to land on the stop; else it is
        longer by no more than rounding errors of time, which would be a step of their own.
        """
        from flexure.solvers.integration.guard.integration import integrate

        simulation, store = self._simulation, self._store
        start, x = self._accepted
        clip = self._clip = math.nextafter(self._stop, -math.inf) if left_limit else math.inf
        try:
            method = simulation.choice.settle(simulation.derivatives, start, x)
            options = dict(simulation.choice.options)
            if not stretch and "stretch" in option_names(method):
                options["stretch"] = _ROUNDED
            if simulation.agenda.witnesses:
                store.set_motion(start, x)
                self._first = simulation.surfaces.first_values()
                simulation.missed_crossings.begin(clip)
            segment = integrate(
                simulation.derivatives,
                start,
                np.array(x),
                self._stop,
                method=method,
                rtol=simulation.rtol,
                atol=simulation.atol,
                max_step=simulation.max_step,
                first_step=simulation.choice.first_step,
                options=options,
                jac=simulation.derivatives.jacobian() if is_implicit(method) else None,
                on_step=self._on_step,
                blame=self._blame,
                name_jump=partial(name_jump, store),
                pace=simulation.pace,
                t_clip=clip,
                project=self._project if simulation.manifold.exists else None,
            )
        except BaseException as error:
            store.set_motion(*self._accepted)
            if isinstance(error, SimulationError):
                name_fastest(error, store, simulation.rtol, simulation.atol)
            raise
        store.set_motion(*self._accepted)
        self._count(method, segment)
        return self._crossed

    def _project(self, time: float, x: FloatArray) -> FloatArray:
        return self._simulation.manifold.place_end(min(time, self._clip), x)

    def _blame(self, time: float, x: FloatArray, _: FloatArray | None) -> Exception:
        return explain_non_finite(self._store, float(time), freeze(np.array(x)))

    def _count(self, method: Method, segment: Segment) -> None:
        """Add to the statistics and remember the step size for the next motion."""
        simulation = self._simulation
        statistics = simulation.statistics
        statistics.restarts += 1
        statistics.evaluations += segment.nfev
        statistics.jacobians += segment.njev
        statistics.factorizations += segment.nlu
        simulation.choice.remember(method, segment.next_step)

    # Accepted steps ------------------------------------------------------------------------

    def _on_step(self, step: TakenStep) -> Stop | None:
        """Look at one accepted step: witnesses, publishes, history; end the motion or not."""
        from flexure.solvers.integration.guard.integration import Stop

        simulation = self._simulation
        simulation.statistics.steps += 1
        crossing = self._find_crossing(step)
        end = float(step.t) if crossing is None else crossing.time
        last = end == self._stop or crossing is not None or step.is_last
        last = simulation.choice.watch(step) or last
        if self._dense_publishes and self._publish_before(step, end, last):
            return Stop(*self._accepted)
        self._accept(step, end)
        simulation.surfaces.last = self._first
        simulation.progress_bar.update(end)
        if crossing is not None:
            self._crossed = simulation.surfaces.note_crossing(crossing)
        if last:
            return Stop(*self._accepted)
        if simulation.stepwise:
            self._store.set_motion(*self._accepted)
            if simulation.events.finish_step():
                self._accepted = (end, self._store.x)
                return Stop(*self._accepted)
        if self._store.revision != self._revision:  # a publish has changed a value
            simulation.events.note_published()
            return Stop(*self._accepted)
        return None

    def _accept(self, step: TakenStep, time: float) -> None:
        """Let the motion have come to a time inside of a step."""
        self._accepted = (time, self._state(step, time))
        if self._simulation.history is not None:
            self._simulation.history.extend(*self._accepted, step.dense())
            judge_record(self._simulation, lambda: self._store.set_motion(*self._accepted))

    def _state(self, step: TakenStep, time: float) -> FloatArray:
        """Return the state at a time inside of a step."""
        x: FloatArray = freeze(np.array(step.x if time == step.t else step.dense()(time)))
        return x

    def _publish_before(self, step: TakenStep, end: float, last: bool) -> bool:
        """Run periodic publishes inside of a step; those at the very end wait for its landing.

        The motion has come to the time of a publish that terminates the run, or fails. Returned is
        whether the run is terminated.
        """
        simulation = self._simulation
        agenda = simulation.agenda
        while (time := agenda.next_time(self._published_until)) < end or (time == end and not last):
            self._published_until = time
            self._store.set_motion(time, self._state(step, time))
            try:
                terminated = simulation.events.publish_between(time)
            except BaseException:
                self._accept(step, time)
                raise
            if terminated:
                self._accept(step, time)
                return True
        return False

    def _find_crossing(self, step: TakenStep) -> Crossing | None:
        """Return the earliest witness event inside of a step, if any."""
        simulation = self._simulation
        if self._first is None:
            return None

        def evaluate(time: float) -> FloatArray:
            self._store.set_motion(time, self._state(step, time))
            return simulation.surfaces.values()

        start, end = float(step.t_old), float(step.t)
        search = simulation.surfaces.find_crossing(evaluate, start, end, self._first)
        simulation.missed_crossings.check(step, self._first, search)
        self._first = search.values
        return search.crossing
