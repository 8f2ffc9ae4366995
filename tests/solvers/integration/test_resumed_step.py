"""With which step a motion goes on after a stop has cut its last one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import RK45

import flexure as fx
from flexure.solvers.integration.guard.progress_limits import carried_step
from tests.support.native.native import needs_llvmlite

CUT = {"begin": 0.9, "end": 1.0, "stop": 1.0}


def test_a_step_that_a_stop_cut_is_taken_up_again() -> None:
    for following, wanted, given, steps, span, expected in [
        (0.2, 0.3, 0.0, 5, CUT, 0.3),
        (0.4, 0.3, 0.0, 5, CUT, 0.4),
        (0.2, 0.3, 0.0, 5, {"begin": 0.6, "end": 0.9, "stop": 1.0}, 0.2),  # an event, no stop
        (0.2, 0.1, 0.0, 5, {"begin": 0.875, "end": 1.0, "stop": 1.0}, 0.2),  # it dares more
        (0.1, 0.125, 0.0, 5, {"begin": 0.875, "end": 1.0, "stop": 1.0}, 0.1),  # it just fitted
        (0.2, 0.1, 0.5, 1, CUT, 0.5),  # the first step was cut before it was tried
        (0.2, 0.3, 0.5, 2, CUT, 0.3),
        (0.2, 0.3, 0.0, 1, CUT, 0.3),
    ]:
        assert carried_step(following, wanted, given, steps=steps, **span) == expected


@pytest.mark.parametrize(
    "compiled", [False, pytest.param("native", marks=needs_llvmlite)], ids=["Python", "native"]
)
def test_a_short_advance_does_not_shorten_the_steps_that_follow(compiled: Any) -> None:
    """SciPy's own solver, left alone up to the same time, wants steps of about that length."""
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    simulator = fx.Simulator(lag, method="RK45", compiled=compiled, record=True)
    lag.input_port("u").fix(simulator.context, 1.0)
    for end in (1.0, 1.0 + 1e-6, 4.0):
        simulator.advance_to(end)
    alone: Any = RK45(lambda t, x: 1.0 - x, 0.0, np.zeros(1), 4.0, rtol=1e-6, atol=1e-9)
    while alone.t < 1.0:
        alone.step()
    assert simulator.history is not None
    grid = simulator.history.grid()
    first = np.diff(grid)[grid[:-1] > 1.0][0]
    assert 0.5 * alone.h_abs < first < 2.0 * alone.h_abs
