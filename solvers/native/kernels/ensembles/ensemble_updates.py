"""Periodic updates and projections of an ensemble, between the steps of its lanes.

Each lane has its own time, and its own ticks of all clocks. Where motions begin, updates that are
due run as in `flexure.solvers.native.kernels.runs.advance`: unrestricted ones first, and all of one
kind on the same values. Every function computes all lanes, and only those in which it is due take
the results. Projections move states to where they belong, as the kernels of `parts.manifold` do for
a single run. A state that they do not bring there stays as it is, up to a size at which its run
ends.
"""

from __future__ import annotations

from flexure.solvers.integration.methods.projecting import FAR, MOST_PROJECTIONS, ROOM
from flexure.solvers.native.kernels.ensembles.ensemble_data import (
    Ensemble,
    LaneManifoldData,
    LaneUpdateData,
)
from flexure.solvers.native.kernels.parts.arithmetic import copy, larger, next_tick
from flexure.solvers.native.language.language import (
    Mask,
    Real,
    Reals,
    any_lane,
    lane,
    rint,
    where,
    with_lane,
)

APART = True
UNRESTRICTED, DISCRETE = 1, 0


def set_clocks(ensemble: Ensemble, place: int, time: float) -> None:
    """Set the clocks of a lane where a run begins, with its discrete values."""
    updates, env = ensemble.updates, ensemble.system.env
    for i in range(updates.held):
        env[i] = with_lane(env[i], place, updates.values[i])
    for c in range(updates.clocks):
        period, offset = updates.periods[c], updates.offsets[c]
        now = time >= offset and offset + rint((time - offset) / period) * period == time
        updates.due[c] = with_lane(updates.due[c], place, 1.0 if now else 0.0)
        tick = next_tick(period, offset, time)
        updates.ticks[c] = with_lane(updates.ticks[c], place, tick)


def note_due(updates: LaneUpdateData, place: int, time: float) -> None:
    """Note which clocks of a lane tick at its time, and when next."""
    for c in range(updates.clocks):
        if lane(updates.ticks[c], place) == time:
            updates.due[c] = with_lane(updates.due[c], place, 1.0)
            tick = next_tick(updates.periods[c], updates.offsets[c], time)
            updates.ticks[c] = with_lane(updates.ticks[c], place, tick)


def run_updates(ensemble: Ensemble) -> Real:
    """Run all updates that are due; return zero in the lanes in which all results are finite."""
    updates = ensemble.updates
    check: Real = update(ensemble, UNRESTRICTED)
    check += update(ensemble, DISCRETE)
    for c in range(updates.clocks):
        updates.due[c] = 0.0
    return check


def update(ensemble: Ensemble, kind: int) -> Real:
    """Run the updates of one kind that are due, on the same values."""
    updates, system, step = ensemble.updates, ensemble.system, ensemble.step
    n, x, env = system.n, step.x, system.env
    check: Real = 0.0
    for e in range(updates.count):
        if updates.unrestricted[e] == kind and any_lane(updates.due[updates.clock[e]] > 0.0):
            call = updates.functions[e]
            call(step.time[0], x, env, updates.results[updates.first_target[e] :])
    for e in range(updates.count):
        due: Mask = updates.due[updates.clock[e]] > 0.0
        if updates.unrestricted[e] == kind and any_lane(due):
            for g in range(updates.first_target[e], updates.first_target[e + 1]):
                target, new = updates.targets[g], updates.results[g]
                check += where(due, new * 0.0, 0.0)
                if target >= n:
                    env[target - n] = where(due, new, env[target - n])
                else:
                    x[target] = where(due, new, x[target])
    return check


def place_lanes(ensemble: Ensemble, looked_at: Mask, time: Real, x: Reals) -> None:
    """Move the states of some lanes; `LaneManifoldData.moved` tells in which that was needed."""
    manifold, env, work = ensemble.manifold, ensemble.system.env, ensemble.step.work
    n = ensemble.system.n
    manifold.any_moved = 0
    found = deviation(manifold, time, x, env)
    at_home: Mask = found <= 1.0
    manifold.allowed[0] = where(looked_at and at_home, 1.0, manifold.allowed[0])
    tried = looked_at and not found <= manifold.allowed[0]
    if not any_lane(tried):
        return
    copy(n, x, manifold.landed)
    astray = tried
    passes = 0
    while any_lane(astray) and passes < MOST_PROJECTIONS:
        passes += 1
        manifold.projection(time, x, env, work)
        for i in range(n):
            x[i] = where(astray, work[i], x[i])
        astray = astray and not deviation(manifold, time, x, env) <= 1.0
    for i in range(n):
        x[i] = where(astray, manifold.landed[i], x[i])
        manifold.shift[i] = x[i] - manifold.landed[i]
    manifold.any_moved = 1
    manifold.moved[0] = where(tried and not astray, 1.0, 0.0)
    manifold.lost[0] = where(astray and not found <= FAR, 1.0, 0.0)
    manifold.allowed[0] = where(astray, ROOM * found, manifold.allowed[0])
    if any_lane(astray):
        for place in range(ensemble.lanes.count):
            if lane(astray, place):
                which = ensemble.lanes.run_of[place]
                left: float = lane(found, place)
                if not left <= ensemble.outcome.left[which]:
                    ensemble.outcome.left[which] = left


def deviation(manifold: LaneManifoldData, time: Real, x: Reals, env: Reals) -> Real:
    """Return the largest deviation of each lane, or NaN."""
    manifold.deviations(time, x, env, manifold.away)
    largest: Real = 0.0
    check: Real = 0.0
    for k in range(manifold.count):
        largest = larger(largest, abs(manifold.away[k]))
        check += manifold.away[k] * 0.0
    return largest + check
