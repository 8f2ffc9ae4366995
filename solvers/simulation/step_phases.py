"""One step of a simulation: the phases 1 to 5 of `flexure.solvers.simulation.simulator`, in Python.

Compiled loops take the same phases where they can, see
`flexure.solvers.simulation.native_runs.native_eligibility`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.integration.methods.methods import is_fixed_step
from flexure.solvers.results.records.history import Unmoved
from flexure.solvers.simulation.events.agenda import Entry
from flexure.solvers.simulation.integrator_run import Motion
from flexure.solvers.simulation.run_control.diagnosis import give_up_slow, judge_record

if TYPE_CHECKING:
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


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
