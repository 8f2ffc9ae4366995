"""Gains over a signal. `test_nonlinear.py` has the tests of lookup tables by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import flexure as fx
from flexure.blocks.signals.lookup_tables import GainSchedule
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from tests.support.tiers import for_each

SPEEDS = [-1.0, 0.0, 2.0, 5.0]
GAINS = np.array([[1.0, 0.5], [3.0, -2.0], [8.0, 4.0], [2.0, 4.5]])


def scheduled(block: GainSchedule, signal: float, u: Any) -> Any:
    context = block.create_default_context()
    context.set("signal", signal)
    context.set("u", u)
    return context.get("y")


@pytest.mark.parametrize("extrapolate", ["hold", "linear"])
@pytest.mark.parametrize("signal", [-2.0, -1.0, -0.3, 0.0, 1.1, 4.9, 5.0, 7.5])
def test_gains_of_all_components_are_on_straight_lines(extrapolate: Any, signal: float) -> None:
    block = GainSchedule("schedule", SPEEDS, GAINS, extrapolate)
    line = scipy.interpolate.make_interp_spline(SPEEDS, GAINS, k=1)
    where = np.clip(signal, SPEEDS[0], SPEEDS[-1]) if extrapolate == "hold" else signal
    expected = line(where) * [2.0, -3.0]
    np.testing.assert_allclose(scheduled(block, signal, [2.0, -3.0]), expected, rtol=1e-13)


def test_one_row_of_gains_holds_for_every_component() -> None:
    block = GainSchedule("schedule", SPEEDS, GAINS[:, 0], size=3)
    np.testing.assert_allclose(scheduled(block, 1.0, [1.0, 2.0, -1.0]), [5.5, 11.0, -5.5])


def test_with_nothing_connected_the_output_is_the_gain() -> None:
    context = (block := GainSchedule("schedule", SPEEDS, GAINS)).create_default_context()
    block.signal.fix(context, 1.0)
    np.testing.assert_allclose(block.y.eval(context), [5.5, 1.0])


def test_a_scheduled_loop_keeps_its_pole_over_a_changing_plant() -> None:
    """The plant is y' = s u with s from 1 to 4, and the gain is 2/s: the pole stays at -2."""
    speeds = np.linspace(1.0, 4.0, 4)
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("speed", 2.0),
        fx.Sum("error", "+-"),
        GainSchedule("schedule", speeds, 2.0 / speeds),
        fx.Product("effect"),
        fx.Integrator("plant"),
    )
    builder.connect("speed.y", "schedule.signal")
    builder.connect("speed.y", "effect.u1")
    builder.connect_chain("error", "schedule.u")
    builder.connect("schedule.y", "effect.u2")
    builder.connect_chain("effect", "plant", "error.u2")
    builder.export_input("error.u1", name="setpoint")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("setpoint", 1.0)
    for speed in speeds:
        context.set("speed.value", speed)
        np.testing.assert_allclose(fx.linearize(diagram, context).poles, [-2.0])


def test_gains_are_set_in_a_context() -> None:
    block = GainSchedule("schedule", [0.0, 1.0], [1.0, 1.0])
    context = block.create_default_context()
    context.set("gains", [10.0, 30.0])
    context.set("signal", 0.5)
    context.set("u", 2.0)
    assert context.get("y").tolist() == [40.0]


@for_each(
    ("arguments", "message"),
    [
        (([0.0], [1.0]), "two or more breakpoints and a row of gains for each"),
        (([0.0, 1.0], [1.0, 2.0, 3.0]), r"breakpoints of shape \(2,\), gains of shape \(3,\)"),
        ((0.0, 1.0), r"breakpoints of shape \(\), gains of shape \(\)"),
        (([1.0, 0.0], [1.0, 2.0]), r"strictly increasing breakpoints; found \[1, 0\]"),
        (([0.0, 1.0], [1.0, 2.0], "cubic"), "one of 'hold', 'linear'; found 'cubic'"),
        (([0.0, 1.0], np.ones((2, 2)), "hold", 3), "one gain, or 3, for each breakpoint; found 2"),
    ],
)
def test_tables_that_are_none_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        GainSchedule("schedule", *arguments)


def test_gains_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueRefusedError, match="gains"):
        GainSchedule("schedule", [0.0, 1.0], [1.0, np.nan])
