"""Runs that lead nowhere get their verdict soon, by name, and the same in every reading.

What chatters jumps at a surface and is led back to it from both sides. Fast oscillations, stiffness
and transversal jumps need many steps as well, but these lead somewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import NoProgressError, SimulationError, ValueRefusedError
from flexure.solvers.integration.guard.failures import find_jump
from tests.support.native.native import needs_llvmlite
from tests.support.systems.simulation import ADAPTIVE, Flow
from tests.support.tiers import thinned

pytestmark = pytest.mark.timeout(110, method="signal")

NATIVE = ("RK45", "RK23", "DOP853", "DormandPrince", "Rodas5P")
WAYS = [
    pytest.param(method, compiled, id=f"{method}-{compiled}", marks=marks)
    for method in ADAPTIVE
    for compiled, marks in ((False, ()), ("native", needs_llvmlite))
    if compiled is False or method in NATIVE
]


def relay() -> fx.System:
    """ẋ = -sign(x), in two blocks."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.FunctionBlock("relay", lambda u: -np.sign(u)), fx.Integrator("x", initial=0.5)
    )
    builder.connect_chain("x", "relay", "x.u")
    return builder.build()


@pytest.mark.parametrize(("method", "compiled"), thinned(WAYS, fast=4))
def test_chattering_is_noticed_within_a_few_thousand_steps(method: str, compiled: Any) -> None:
    simulator = fx.Simulator(relay(), method=method, compiled=compiled)
    with pytest.raises(SimulationError) as caught:
        simulator.advance_to(1.0)
    assert simulator.statistics.steps < 3000
    assert simulator.context.time == pytest.approx(0.5, abs=1e-3)
    assert simulator.context.get("x.x") == pytest.approx([0.0], abs=1e-6)
    if isinstance(caught.value, NoProgressError):
        text = str(caught.value)
        assert "found chattering: component 0 of output port 'relay.y' jumps from" in text
        assert "Make the transition continuous" in text


def rubbed(method: str) -> fx.Simulator:
    """An oscillator with dry friction, at rest at x = 1: just where the equations jump."""
    flow = Flow(lambda t, x: [x[1], -x[0] - 0.3 * np.sign(x[1])], [1.0, 0.0])
    return fx.Simulator(flow, method=method, compiled=False)


@pytest.mark.parametrize("method", ["BDF", "Radau"])
def test_a_jump_at_the_start_does_not_deceive_an_implicit_method(method: str) -> None:
    simulator = rubbed(method)
    simulator.advance_to(5.0)
    # Half a swing about 0.3, from 1 to -0.4, and then about -0.3.
    expected = [-0.3 - 0.1 * np.cos(5.0 - np.pi), 0.1 * np.sin(5.0 - np.pi)]
    assert simulator.context.continuous_state == pytest.approx(expected, abs=1e-4)
    with pytest.raises(SimulationError, match=r"past t = 6\.28"):  # where friction holds it
        simulator.advance_to(1000.0)


@pytest.mark.full
@pytest.mark.parametrize("compiled", [False, "python"])
def test_a_root_at_which_radau_creeps_is_noticed_too(compiled: Any) -> None:
    flow = Flow(lambda t, x: -np.sqrt(np.abs(x)) * np.sign(x), [0.5])
    simulator = fx.Simulator(flow, method="Radau", compiled=compiled)
    with pytest.raises(NoProgressError, match=r"derivative of the state flow\.x\[0\] jumps"):
        simulator.advance_to(2.0)
    assert simulator.statistics.steps < 10_000


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("method", NATIVE)
def test_native_and_interpreted_runs_are_given_up_at_the_same_step(method: str) -> None:
    """An oscillation of 1e6 rad/s needs millions of steps for 1 s; 100,000 are allowed."""
    found = []
    for compiled in (False, "native"):
        flow = Flow(lambda t, x: [1e6 * x[1], -1e6 * x[0]], [1.0, 0.0])
        simulator = fx.Simulator(flow, method=method, compiled=compiled, max_steps=1e5, rtol=1e-9)
        with pytest.raises(NoProgressError, match="to reach the end; found 1000 steps") as caught:
            simulator.advance_to(1.0)
        found.append((caught.value, simulator))
    (ours, native), (theirs, interpreted) = found
    assert ours.time == pytest.approx(theirs.time, rel=1e-3)
    assert native.context.time == pytest.approx(interpreted.context.time, rel=1e-3)
    assert native.statistics.steps == interpreted.statistics.steps == 999


@pytest.mark.parametrize(
    "compiled", [False, pytest.param("native", marks=needs_llvmlite)], ids=["Python", "native"]
)
def test_tolerances_below_rounding_are_named_as_the_reason(compiled: Any) -> None:
    """A spring whose stretch is the difference of nearly equal numbers, so that digits are lost."""

    def simulator(atol: float) -> fx.Simulator:
        flow = Flow(lambda t, x: [x[1], -1e6 * (x[0] - 1.0)], [1.0 + 1e-9, 0.0])
        given: dict[str, Any] = {"method": "RK45", "compiled": compiled, "max_steps": 1e6}
        return fx.Simulator(flow, rtol=1e-13, atol=atol, **given)

    with pytest.raises(NoProgressError, match=r"rounding errors of .*Loosen rtol and atol"):
        simulator(atol=1e-20).advance_to(10.0)
    simulator(atol=1e-14).advance_to(0.01)  # says nothing


def test_stairs_that_rounding_makes_are_no_jumps() -> None:
    """A spring on the difference of two large numbers, whose force rises by stairs of 0.01 N."""
    flow = Flow(lambda t, x: [x[1], -1e8 * ((x[0] + 1e6) - (1e6 + 1e-3)) - 1e6 * x[1]], [0.0, 0.0])
    with pytest.raises(NoProgressError, match="rounding errors of the equations") as caught:
        fx.simulate(flow, 1.0, method="LSODA", max_steps=1e5, compiled=False)
    assert "chattering" not in str(caught.value)


def test_slow_steps_are_blamed_on_nothing_that_is_not_known() -> None:
    flow = Flow(lambda t, x: [1e6 * x[1], -1e6 * x[0]], [1.0, 0.0])
    with pytest.raises(NoProgressError, match="fastest state") as caught:
        fx.simulate(flow, 1.0, method="RK45", max_steps=1e5)
    assert "friction" not in str(caught.value)


@needs_llvmlite
def test_a_fast_oscillation_may_take_millions_of_steps() -> None:
    """Natively as interpreted, up to 50 million: 20 million are ahead here, 60 million there."""
    flow = Flow(lambda t, x: [1e6 * x[1], -1e6 * x[0]], [1.0, 0.0])
    simulator = fx.Simulator(flow, method="RK45", compiled="native")
    simulator.advance_to(0.01)
    pace = simulator.statistics.steps / 0.01
    stop = fx.diagrams.Terminate("that was long enough")

    class Stopped(Flow):
        def __init__(self) -> None:
            super().__init__(lambda t, x: [1e6 * x[1], -1e6 * x[0]], [1.0, 0.0])
            self.declare_publish(lambda context: stop, fx.diagrams.Periodic(0.04, 0.04))

    simulator = fx.Simulator(Stopped(), method="RK45", compiled="native")
    simulator.advance_to(2e7 / pace)
    assert simulator.termination is stop
    assert simulator.statistics.steps > 80_000
    with pytest.raises(NoProgressError, match="more to go"):
        fx.Simulator(Stopped(), method="RK45", compiled="native").advance_to(6e7 / pace)


def test_the_limit_is_an_option_of_every_way_to_run() -> None:
    def flow() -> Flow:
        return Flow(lambda t, x: [1e4 * x[1], -1e4 * x[0]], [1.0, 0.0])

    few: dict[str, Any] = {"max_steps": 1000, "method": "RK45"}
    for compiled in (False, True):
        with pytest.raises(NoProgressError):
            fx.simulate(flow(), 1.0, compiled=compiled, **few)
        found = fx.sweep(flow(), {"x": [[1.0, 0.0], [2.0, 0.0]]}, 1.0, compiled=compiled, **few)
        assert set(found.outcomes) == {"failed"}
    assert fx.simulate(flow(), 0.5, method="RK45", max_steps=math.inf).outcome == "completed"
    for wrong in (0, 1e-3, math.nan, "many"):
        with pytest.raises(ValueRefusedError, match="Cannot use this max_steps"):
            fx.simulate(flow(), 1.0, max_steps=wrong)  # type: ignore[arg-type]


Equations = Callable[[float, Any], Any]

CHATTERS: dict[str, tuple[Equations, list[float]]] = {
    "a relay": (lambda t, x: -np.sign(x), [1e-9]),
    "dry friction that holds": (
        lambda t, x: np.array([x[1], -x[0] - 0.3 * np.sign(x[1])]),
        [0.1, 1e-10],
    ),
    "a line on which the state slides": (
        lambda t, x: np.array([x[1], -np.sign(x[0] + x[1])]),
        [0.5, -0.5 + 1e-9],
    ),
    "a clock beside": (lambda t, x: np.array([-np.sign(x[0]), 100.0]), [1e-9, 3.0]),
}
GOES_ON: dict[str, tuple[Equations, list[float]]] = {
    "dry friction that gives way": (
        lambda t, x: np.array([x[1], -x[0] - 0.3 * np.sign(x[1])]),
        [2.0, 1e-10],
    ),
    "a line that is crossed": (lambda t, x: np.array([x[1], -np.sign(x[0])]), [1e-9, -1.0]),
    "a jump in time": (lambda t, x: np.where(t < 1e-9, -1.0, 1.0) + 0.0 * x, [1.0]),
    "a step up": (lambda t, x: np.sign(x) + 2.0, [-1e-9]),
    "stiffness": (lambda t, x: -1e8 * x, [1e-9]),
    "a steep but smooth relay": (lambda t, x: -np.tanh(1e9 * x), [1e-9]),
    "a bumper": (lambda t, x: np.array([x[1], -1e10 * np.maximum(x[0], 0.0)]), [-1e-9, 1.0]),
}


@pytest.mark.parametrize("case", CHATTERS)
def test_a_jump_that_leads_back_is_found_ahead(case: str) -> None:
    rhs, x0 = CHATTERS[case]
    x = np.array(x0)
    jump = find_jump(rhs, 0.0, x, 1e-9, 1e-9 + 1e-6 * np.abs(x))
    assert jump is not None
    (_, before, rates), (_, after, others) = jump.before, jump.after
    assert before == pytest.approx(after, abs=1e-15)
    assert abs(rates[jump.state] - others[jump.state]) > 0.1


@pytest.mark.parametrize("case", GOES_ON)
def test_what_goes_on_is_no_chattering(case: str) -> None:
    rhs, x0 = GOES_ON[case]
    x = np.array(x0)
    for step in (1e-10, 1e-9, 1e-8):
        assert find_jump(rhs, 0.0, x, step, 1e-9 + 1e-6 * np.abs(x)) is None


def test_equations_that_refuse_what_lies_ahead_are_no_chattering() -> None:
    def rhs(t: float, x: Any) -> Any:
        if t > 0.0:
            raise ZeroDivisionError
        return -np.sign(x)

    assert find_jump(rhs, 0.0, np.array([1e-9]), 1e-9, np.array([1e-9])) is None
