"""The kernels that move the states of all lanes to where they belong.

Each lane does what `flexure.solvers.native.kernels.parts.manifold` does for a single run. A state
that projections do not bring there stays as it is, up to a size at which its run ends.
"""

from __future__ import annotations

from flexure.solvers.integration.methods.projecting import FAR, MOST_PROJECTIONS, ROOM
from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble, LaneManifoldData
from flexure.solvers.native.kernels.parts.arithmetic import copy, larger
from flexure.solvers.native.language.language import Mask, Real, Reals, any_lane, lane, where

APART = True


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
