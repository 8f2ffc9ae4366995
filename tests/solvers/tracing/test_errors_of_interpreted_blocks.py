"""Errors of interpreted blocks come out of the code around them as they were raised."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.systems.blocks import Lag
from tests.support.systems.foreign_blocks import Spline, compiled, wired


class Fragile(fx.LeafSystem):
    """Passes its input on, as an output or as a derivative, and raises where it is told to."""

    def __init__(self, error: Exception, where: str) -> None:
        super().__init__("fragile")
        self.error, self.where = error, where
        self.limit, self.raised = math.inf, 0
        self.x = self.declare_continuous_state(z=1)
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, lambda c: self.passed(c, "output"))

    def passed(self, context: Any, where: str) -> Any:
        u = float(self.u(context)[0])
        if where == self.where and u > self.limit:
            self.raised += 1
            raise self.error
        return [u]

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.passed(context, "derivative")


@pytest.mark.parametrize(
    ("where", "what"),
    [("output", "output port 'fragile.y'"), ("derivative", "the time derivatives of 'fragile'")],
)
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("by hand"), ValueError("too large"), KeyError("k")], ids=repr
)
def test_an_exception_of_a_foreign_block_says_where_and_when(
    where: str, what: str, error: Exception
) -> None:
    error = type(error)(*error.args)
    fragile = Fragile(error, where)
    diagram = wired(
        Lag("lag"),
        fx.Gain("gain", 2.0),
        fragile,
        wires=[("lag.y", "gain.u"), ("gain.y", "fragile.u"), ("fragile.y", "lag.u")],
    )
    context = diagram.create_default_context()
    derivatives = compiled(context)
    fragile.limit = 5.0
    assert np.isfinite(derivatives(0.25, np.array([1.0, 0.0]))).all()
    with pytest.raises(type(error)) as caught:
        derivatives(0.25, np.array([3.0, 0.0]))
    assert caught.value is error
    assert error.__notes__ == [f"while computing {what} at t = 0.25"]
    # It is no reason to ask the interpreted equations again, or to give the code up.
    assert fragile.raised == 1
    assert derivatives(0.25, np.array([1.0, 0.0])).tolist() == [1.0, 2.0]
    assert derivatives.how.startswith("straight-line Python of")


def test_an_exception_in_a_branch_is_raised_when_the_branch_is_taken() -> None:
    def limited(u: Any) -> Any:
        if u[0] > 2.0:
            raise OverflowError("too fast")
        return u

    diagram = wired(
        Lag("lag"),
        fx.Gain("gain", 3.0),
        fx.FunctionBlock("limit", limited),
        wires=[("lag.y", "gain.u"), ("gain.y", "limit.u"), ("limit.y", "lag.u")],
    )
    simulator = fx.Simulator(diagram, method="rk4", step=1e-3)  # x = 0.5 exp(2 t)
    simulator.context.set("lag.x", 0.5)
    with pytest.raises(OverflowError, match="too fast") as caught:
        simulator.advance_to(1.0)
    crossing = 0.5 * math.log(4.0 / 3.0)
    assert caught.value.__notes__[0].startswith("while computing output port 'limit.y' at t = 0.14")
    assert simulator.context.time == pytest.approx(crossing, abs=2e-3)
    here = f"interpreted: 'limit' (OverflowError at {Path(__file__).name}:"
    assert here in simulator.explain()


def test_a_division_by_zero_beside_a_foreign_block_gives_what_numpy_gives() -> None:
    diagram = wired(
        Lag("lag"),
        fx.FunctionBlock("inverse", lambda u: 1.0 / u),
        Spline("table"),
        wires=[("lag.y", "table.u"), ("table.y", "inverse.u"), ("inverse.y", "lag.u")],
    )
    context = diagram.create_default_context()
    context.set("lag.x", [1.0])
    derivatives = compiled(context)
    with np.errstate(all="ignore"):
        assert derivatives(0.0, np.zeros(1)).tolist() == [math.inf]
        assert derivatives(0.0, np.ones(1))[0] == pytest.approx(
            1.0 / math.tanh(1.0) - 1.0, rel=1e-3
        )
        for _ in range(1100):
            derivatives(0.0, np.zeros(1))
    assert "divide by zero" in derivatives.how
