"""Two ways to move a context without the simulator, so that blocks are tested by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import flexure as fx
from flexure.diagrams.contexts.updates import run_updates


def integrate_with_scipy(context: fx.Context, until: float) -> fx.Context:
    """Move time and continuous state, without events, and return the context."""
    store = context.store

    def rate(time: float, x: Any) -> Any:
        store.set_motion(time, x.copy())
        return store.time_derivatives()

    solution = scipy.integrate.solve_ivp(
        rate, (context.time, until), store.x, method="DOP853", rtol=1e-11, atol=1e-13
    )
    store.set_motion(until, np.ascontiguousarray(solution.y[:, -1]))
    return context


def run_periodic_updates(context: fx.Context) -> None:
    """Run every periodic update once, all on the same values."""
    run_updates(
        (leaf, event)
        for leaf in context.leaves()
        for event in leaf.system.events
        if isinstance(event.trigger, fx.diagrams.Periodic) and event.kind != "publish"
    )


@pytest.fixture
def integrate() -> Callable[[fx.Context, float], fx.Context]:
    return integrate_with_scipy


@pytest.fixture
def tick() -> Callable[[fx.Context], None]:
    return run_periodic_updates
