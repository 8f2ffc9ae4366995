"""Periodic updates in lanes are those of single simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.native.native import needs_llvmlite
from tests.support.systems.sweeps import assert_like_singles, in_lanes, single
from tests.support.tiers import thinned

SAMPLED: dict[str, Callable[[], fx.System]] = {
    "hold": lambda: fx.ZeroOrderHold("sampled", 0.05),
    "unit delay": lambda: fx.UnitDelay("sampled", 0.07, offset=0.02),
    "delay": lambda: fx.TimeDelay("sampled", 0.113, 0.01),
    "long delay": lambda: fx.TimeDelay("sampled", 0.35, 0.003),
    "variable delay": lambda: fx.TimeDelay("sampled", 0.113, 0.01, max_delay=0.2),
    "state space": lambda: fx.StateSpace(
        "sampled", [[0.5, 0.1], [0.0, 0.8]], [[0.3], [0.2]], [[1.0, 1.0]], [[0.1]], period=0.04
    ),
    "integrator": lambda: fx.Integrator("sampled", period=0.03),
    "rate limiter": lambda: fx.RateLimiter("sampled", 1.5, 0.05, period=1.0),
    "transfer function": lambda: fx.TransferFunction(
        "sampled", [0.2, 0.1], [1.0, -0.7], period=0.05
    ),
}


def sampled_loop(make: Callable[[], fx.System]) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("source"),
        fx.Sum("error", "+-"),
        make(),
        fx.TransferFunction("plant", [2.0, 1.0], [1.0, 0.7, 5.0]),
    )
    builder.connect("source.y", "error.u1")
    builder.connect_chain("error", "sampled", "plant", "error.u2")
    return builder.build()


@needs_llvmlite
@pytest.mark.parametrize("kind", thinned(SAMPLED, fast=5))
def test_sampled_blocks_run_in_lanes(kind: str) -> None:
    # Steps come before, at, and a spacing before a tick, and samples are taken at ticks.
    values = {"source.to": [0.5, 1.1, 2.0, 1.4, 1.7], "source.at": [0.3, 0.31, 0.35, 0.5, 0.7]}
    if kind == "variable delay":
        values["sampled.delay"] = [0.05, 0.1, 0.113, 0.15, 0.19]
    figures = {
        "peak": fx.metrics.maximum("plant.y"),
        "crossing": fx.metrics.first_crossing("plant.y", 0.2),
        "effort": fx.metrics.total_variation("sampled.y"),
        "iae": fx.metrics.iae("error.y"),
    }
    context = (loop := sampled_loop(SAMPLED[kind])).create_default_context()
    context.time = 0.06
    sweep = fx.sweep(
        loop,
        values,
        2.0,
        context=context,
        times=np.append(0.06, np.arange(2, 41) * 0.05),
        signals=["plant.y", "sampled.y"],
        metrics=figures,
        method="RK45",
    )
    assert in_lanes(sweep)
    assert_like_singles(sweep, method="RK45")
    for index in (0, 4):
        result = single(sweep, index, method="RK45")
        for name, figure in figures.items():
            found = figure(result)
            assert sweep.metrics[name][index] == pytest.approx(found, rel=1e-9, nan_ok=True)


class TwoRates(fx.LeafSystem):
    """A state that decays and is kicked by a count of what it was; both may be at one instant."""

    def __init__(self) -> None:
        super().__init__("rates")
        self.gain = self.declare_numeric_parameter("gain", 1.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.count = self.declare_discrete_state("count", default=[0.3])
        self.y = self.declare_vector_output("y", 1, self.x, prerequisites=[self.x])
        self.declare_discrete_update(self.add, fx.diagrams.Periodic(0.1))
        self.declare_unrestricted_update(self.kick, fx.diagrams.Periodic(0.3, offset=0.1))

    def calc_time_derivatives(self, context: Any) -> Any:
        return -self.x(context)

    def add(self, context: Any) -> Any:
        root = np.sqrt(self.gain(context) - self.x(context))
        return {self.count: 0.5 * self.count(context) + root}

    def kick(self, context: Any) -> Any:
        return {self.x: 0.5 * self.x(context) + 0.1 * self.count(context)}


@needs_llvmlite
@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_updates_in_lanes_run_in_their_order_and_fail_where_they_are_undefined(method: str) -> None:
    gains = np.array([3.0, 4.0, 5.0, 0.2, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0])
    values = {"gain": gains, "count": 0.1 * gains[::-1]}
    options: dict[str, Any] = {"signals": "y", "times": np.linspace(0, 2, 41), "method": method}
    sweep = fx.sweep(TwoRates(), values, 2.0, **options)
    assert in_lanes(sweep)
    assert list(sweep.failures) == [3]  # a square root of a negative number
    assert_like_singles(sweep, [k for k in range(10) if k != 3], method=method)
    few = fx.sweep(TwoRates(), {"gain": [3.0], "count": [1.1]}, 2.0, **options)
    np.testing.assert_array_equal(few.final_states[0], sweep.final_states[0])
    x, count, decay = 1.0, 1.1, math.exp(-0.1)
    for k in range(20):
        x = 0.5 * x + 0.1 * count if k % 3 == 1 else x
        count = 0.5 * count + math.sqrt(3.0 - x)
        x *= decay
    assert sweep.final_states[0] == pytest.approx(x, rel=1e-3)
