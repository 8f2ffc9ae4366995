"""Blocks that cannot be traced are interpreted among straight-line code, with the same numbers."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.tracing.derivatives import Derivatives
from tests.support.systems.blocks import Lag
from tests.support.systems.foreign_blocks import (
    SYSTEMS,
    Spline,
    assert_equal_at_random,
    compiled,
    everything,
    series,
    wired,
)


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives_are_equal_bit_by_bit(name: str) -> None:
    context = SYSTEMS[name]().create_default_context()
    derivatives = compiled(context)
    assert_equal_at_random(derivatives, context)
    assert derivatives.how.startswith("straight-line Python of")


@pytest.mark.full
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("method", ["RK45", "rk4"])
def test_simulations_are_equal_bit_by_bit(name: str, method: str) -> None:
    options: dict[str, Any] = {"method": method} | ({"step": 0.01} if method == "rk4" else {})
    first, second = (
        fx.simulate(SYSTEMS[name](), 4.0, compiled=c, **options) for c in (True, False)
    )
    assert ("; interpreted: '" in first.message) == (first.statistics.evaluations > 40)
    assert first.time.tolist() == second.time.tolist()
    for signal in first.signals:
        assert first[signal].tolist() == second[signal].tolist()


@pytest.mark.full
@pytest.mark.parametrize("name", SYSTEMS)
def test_implicit_methods_take_differences(name: str) -> None:
    diagram = SYSTEMS[name]()
    derivatives = Derivatives(diagram.create_default_context().store, compiled=True)
    assert derivatives.jacobian() is None
    assert "interpreted: '" in derivatives.how
    first, second = (fx.simulate(diagram, 1.0, method="Radau", compiled=c) for c in (True, False))
    for signal in first.signals:
        np.testing.assert_allclose(first[signal][-1], second[signal][-1], rtol=1e-9)


@pytest.mark.parametrize("how", ["declared", "undeclared"])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("everything.k", 7.0),
        ("everything.table", {"gain": -1.0}),
        ("everything.n", 2.0),
        ("everything.mode", "slow"),
        ("everything.message", {"offset": -4.0}),
        ("gain.gain", [1.0, 2.0]),
        ("lag.tau", 2.0),
    ],
)
def test_every_change_of_a_value_reaches_the_foreign_block(how: str, path: str, value: Any) -> None:
    context = everything(how).create_default_context()
    derivatives = compiled(context)
    x = np.linspace(0.5, 1.5, context.continuous_state.size)
    before = derivatives(0.5, x)
    context.set(path, value)
    assert not np.array_equal(derivatives(0.5, x), before)
    assert_equal_at_random(derivatives, context)


def test_values_of_a_call_are_not_taken_for_fresh_later() -> None:
    context = series().create_default_context()
    derivatives = compiled(context)
    ports = [context.system.find(f"{name}.y") for name in ("before", "one", "between", "two")]
    for moment, state in ((0.5, 1.0), (0.5, -2.0), (0.7, -2.0)):
        derivatives(moment, np.array([state]))
        # The store is where the evaluation was, and whole.
        assert context.time == moment
        twin = series().create_default_context()
        twin.time, twin.continuous_state = moment, [state]
        read = [port(context)[0] for port in ports]
        assert read == [twin.get(f"{name}.y")[0] for name in ("before", "one", "between", "two")]
        context.set("lag.x", [0.25])
        assert ports[0](context) == [0.375]
        assert ports[1](context)[0] == pytest.approx(math.tanh(0.375), rel=1e-3)


class Undeclared(fx.LeafSystem):
    """y = sin(other.y), which it reads behind the back of the diagram."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name)
        self.target = path
        self.x = self.declare_continuous_state(z=1)
        self.y = self.declare_vector_output("y", 1, self.calc_y, prerequisites=[self.x])

    def calc_y(self, context: Any) -> Any:
        return [math.sin(context.root.get(self.target)[0])]

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.y(context)


def test_a_block_may_read_more_than_it_declares() -> None:
    diagram = wired(
        Undeclared("spy", "gain.y"),
        fx.Gain("gain", 3.0),
        Lag("lag"),
        wires=[("lag.y", "gain.u"), ("spy.y", "lag.u")],
    )
    context = diagram.create_default_context()
    assert_equal_at_random(compiled(context), context)


# Speed -------------------------------------------------------------------------------------------


def test_one_foreign_block_among_many_costs_little() -> None:
    lags = [Lag(f"lag{k}", 0.1 + 0.01 * k) for k in range(100)]
    chain = [block.name for block in (*lags[:50], Spline("table"), *lags[50:])]
    diagram = wired(
        *lags,
        Spline("table"),
        wires=[(f"{a}.y", f"{b}.u") for a, b in zip([chain[-1], *chain], chain, strict=False)],
    )
    context = diagram.create_default_context()
    fast, slow = compiled(context), Derivatives(context.clone().store, compiled=False)
    x = np.linspace(-1.0, 1.0, 100)
    assert fast(0.0, x).tolist() == slow(0.0, x).tolist()

    def cost(derivatives: Derivatives) -> float:
        start = time.process_time()  # which other processes do not use up
        for _ in range(50):
            derivatives(0.0, x)
        return time.process_time() - start

    assert min(cost(fast) for _ in range(5)) < 0.7 * min(cost(slow) for _ in range(5))
