"""Blocks that no symbol goes through, diagrams with them, and a look at what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

import flexure as fx
from flexure.solvers.tracing.derivatives import Derivatives
from tests.support.systems.blocks import Lag


class Spline(fx.LeafSystem):
    """y = s(u) with a spline of SciPy, which no symbol goes through."""

    def __init__(self, name: str, function: Callable[[Any], Any] = np.tanh) -> None:
        super().__init__(name)
        grid = np.linspace(-5.0, 5.0, 41)
        self.spline = CubicSpline(grid, function(grid))
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.u])

    def calc_y(self, context: Any) -> Any:
        return self.spline(self.u(context))


class Everything(fx.LeafSystem):
    """A block whose equations read values of every kind, and pass through ``math``."""

    def __init__(self, name: str = "everything", how: str = "declared") -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", 2.0)
        self.table = self.declare_abstract_parameter("table", {"gain": 3.0})
        self.x = self.declare_continuous_state(q=1, v=1, default=[0.3, -0.2])
        self.n = self.declare_discrete_state("n", 5.0)
        self.mode = self.declare_abstract_state("mode", "fast")
        self.u = self.declare_vector_input("u", 2)
        self.w = self.declare_vector_input("w", 1, default=0.7)
        self.message = self.declare_abstract_input("message", default={"offset": 0.1})
        declared = how == "declared"
        self.shared = self.declare_cache_entry(
            "shared",
            lambda c: {"power": math.hypot(*self.u(c)) * self.table(c)["gain"]},
            prerequisites=[self.u] if declared else None,
        )
        self.y = self.declare_vector_output(
            "y",
            2,
            self.calc_y,
            prerequisites=[fx.TIME, self.x, self.n, self.mode, self.w, self.message, self.shared]
            if declared
            else None,
        )

    def calc_y(self, context: Any) -> Any:
        factor = {"fast": 2.0, "slow": 0.5}[self.mode(context)]
        offset = self.message(context)["offset"] + self.n(context)[0] * math.cos(context.time)
        return [
            factor * self.shared(context)["power"] + offset,
            self.k(context) * self.x(context)[0] + self.w(context)[0],
        ]

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, self.shared(context)["power"] - math.sin(q) - self.k(context) * v]


def wired(*blocks: fx.System, wires: list[tuple[str, str]]) -> fx.Diagram:
    builder = fx.DiagramBuilder("plant")
    builder.add_all(*blocks)
    for source, target in wires:
        builder.connect(source, target)
    return builder.build()


def table_loop() -> fx.Diagram:
    """A spline in the feedback around two lags."""
    return wired(
        fx.Sine("reference", 2.0, 3.0),
        fx.Sum("error", "+-"),
        Lag("first", 0.3),
        Lag("second", 0.5),
        Spline("table"),
        wires=[
            ("reference.y", "error.u1"),
            ("table.y", "error.u2"),
            ("error.y", "first.u"),
            ("first.y", "second.u"),
            ("second.y", "table.u"),
        ],
    )


def series() -> fx.Diagram:
    """Two splines one after the other, with traced blocks before, between and after them."""
    return wired(
        Lag("lag", 0.4),
        fx.Gain("before", 1.5),
        Spline("one"),
        fx.Gain("between", -2.0),
        Spline("two", np.sin),
        Spline("three", np.cos),
        fx.Sum("sum", "++"),
        wires=[
            ("lag.y", "before.u"),
            ("before.y", "one.u"),
            ("one.y", "between.u"),
            ("between.y", "two.u"),
            ("two.y", "three.u"),
            ("three.y", "sum.u1"),
            ("one.y", "sum.u2"),
            ("sum.y", "lag.u"),
        ],
    )


def everything(how: str) -> fx.Diagram:
    """A block with values of every kind between traced ones."""
    return wired(
        Lag("lag", 0.4, size=2),
        fx.Gain("gain", [0.5, -0.7]),
        Everything("everything", how),
        fx.Selector("selector", 2, [1]),
        Lag("other", 0.3),
        wires=[
            ("everything.y", "lag.u"),
            ("lag.y", "gain.u"),
            ("gain.y", "everything.u"),
            ("everything.y", "selector.u"),
            ("selector.y", "other.u"),
            ("other.y", "everything.w"),
        ],
    )


def sampled() -> fx.Diagram:
    """A spline behind a sampler, with a relay that switches within the motion."""
    return wired(
        fx.Sine("reference", 2.0, 3.0),
        fx.Sum("error", "+-"),
        fx.ZeroOrderHold("hold", 0.05),
        Spline("table"),
        Lag("lag", 0.3),
        fx.Relay("relay", 0.1, -0.1),
        Spline("other", np.cos),
        Lag("last", 0.2),
        wires=[
            ("reference.y", "error.u1"),
            ("last.y", "error.u2"),
            ("error.y", "hold.u"),
            ("hold.y", "table.u"),
            ("table.y", "lag.u"),
            ("lag.y", "relay.u"),
            ("relay.y", "other.u"),
            ("other.y", "last.u"),
        ],
    )


SYSTEMS: dict[str, Callable[[], fx.Diagram]] = {
    "a table in a loop": table_loop,
    "tables in series": series,
    "values of every kind": lambda: everything("declared"),
    "undeclared": lambda: everything("undeclared"),
    "updates and witnesses": sampled,
}


def compiled(context: fx.Context) -> Derivatives:
    derivatives = Derivatives(context.store, compiled=True)
    for _ in range(200):
        derivatives(context.time, context.continuous_state)
    assert derivatives.how.startswith("straight-line Python of")
    return derivatives


def assert_equal_at_random(derivatives: Derivatives, context: fx.Context, seed: int = 3) -> None:
    """Compare with the equations themselves, on another context with the same values."""
    rng = np.random.default_rng(seed)
    twin = context.clone()
    interpreted = Derivatives(twin.store, compiled=False)
    for _ in range(20):
        moment, x = rng.uniform(0.0, 9.0), rng.normal(size=context.continuous_state.size)
        assert derivatives(moment, x).tolist() == interpreted(moment, x).tolist()
