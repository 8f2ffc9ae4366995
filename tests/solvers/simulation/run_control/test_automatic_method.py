"""The method that is chosen when the user asks for none."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import flexure as fx
from examples.compliant_door import build
from flexure.solvers.native.programs.method_programs import loops
from flexure.solvers.simulation.native_runs import native_runner
from tests.support.native.native import needs_llvmlite
from tests.support.systems.blocks import Oscillator
from tests.support.systems.simulation import Clockwork, Flow, count_up, together

END = 10.0


def methods(simulator: fx.Simulator) -> list[str]:
    return [name for _, name, _ in simulator.statistics.methods]


def pendulum() -> Flow:
    """Not stiff."""
    return Flow(lambda t, x: [x[1], -9.81 * np.sin(x[0]) - 0.3 * x[1]], [1.0, 0.0])


def stiff_from(time: float, rate: float = 1e4) -> Flow:
    """x follows cos t, slowly at first, and very closely from some time on."""
    return Flow(
        lambda t, x: [-np.where(t >= time, rate, 1.0) * (x[0] - np.cos(t)) - np.sin(t)], [1.0]
    )


# The door ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def door() -> dict[str, fx.results.SimulationResult]:
    """The example, integrated by several methods."""
    return {
        method: fx.simulate(build(), END, method=method, rtol=1e-6, compiled=True)
        for method in ("auto", "Rodas5P", "RK45")
    }


def test_the_door_is_stiff_and_the_result_says_so(
    door: dict[str, fx.results.SimulationResult],
) -> None:
    result = door["auto"]
    assert [name for _, name, _ in result.statistics.methods] == ["Rodas5P"]
    assert (
        "from t = 0 s: Rodas5P, because the diagram is stiff: time constant 0.00015 s, "
        "mostly in door.tree.x[axis_w]"
    ) in result.message


def test_the_choice_gives_the_same_answer(door: dict[str, fx.results.SimulationResult]) -> None:
    times = np.linspace(0.0, END, 81)
    angles = {method: result.sample("door.axis.angle", times) for method, result in door.items()}
    np.testing.assert_array_equal(angles["auto"], angles["Rodas5P"])
    np.testing.assert_allclose(angles["auto"], angles["RK45"], atol=1e-4)


def test_an_explicit_method_needs_many_times_more_evaluations(
    door: dict[str, fx.results.SimulationResult],
) -> None:
    explicit, chosen = (door[method].statistics.evaluations for method in ("RK45", "auto"))
    assert explicit > 4 * chosen


def test_at_rest_an_explicit_method_needs_a_hundred_times_more_steps() -> None:
    """Held in its catch the door hardly moves, and friction is at its steepest."""
    steps = {}
    for method in ("auto", "RK45"):
        servo = build()
        context = servo.create_default_context()
        context.set("target.at", 1e6)
        simulator = fx.Simulator(servo, context, method=method)
        simulator.advance_to(2.0)
        before = simulator.statistics.steps
        simulator.advance_to(6.0)
        steps[method] = simulator.statistics.steps - before
    assert steps["RK45"] > 100 * steps["auto"]


# Other systems -----------------------------------------------------------------------------------


@pytest.mark.parametrize("system", [pendulum, Oscillator, lambda: stiff_from(np.inf)])
def test_a_system_that_is_not_stiff_stays_with_the_explicit_method(system: Any) -> None:
    simulator = fx.Simulator(system())
    for end in (0.1, 1.0, 20.0):
        simulator.advance_to(end)
    assert methods(simulator) == ["RK45"]
    assert "RK45, chosen because nothing is stiff at the start" in simulator.explain()


def test_the_explicit_method_chosen_gives_what_it_gives_when_asked_for() -> None:
    chosen, asked = fx.Simulator(pendulum()), fx.Simulator(pendulum(), method="RK45")
    for simulator in (chosen, asked):
        simulator.advance_to(5.0)
    assert chosen.context.get("x").tolist() == asked.context.get("x").tolist()


@pytest.mark.parametrize("watched", [False, True], ids=["alone", "with a monitor"])
@pytest.mark.parametrize("ticking", [False, True], ids=["undisturbed", "with ticks"])
def test_stiffness_that_appears_during_the_run_changes_the_method(
    watched: bool, ticking: bool
) -> None:
    flow = stiff_from(2.0)
    tick = Clockwork(fx.diagrams.Periodic(0.5), count_up, kind="discrete")
    simulator = fx.Simulator(
        together(flow, *([tick] if ticking else [])),
        monitor=(lambda context: None) if watched else None,
    )
    simulator.advance_to(20.0)
    assert methods(simulator) == ["RK45", "Rodas5P"]
    changed, _, why = simulator.statistics.methods[1]
    assert 2.0 < changed < 2.5
    assert why == "because stability began to limit the steps"
    assert flow.x(simulator.context) == pytest.approx([np.cos(20.0)], abs=1e-5)
    assert simulator.statistics.evaluations < 20_000
    assert tick.times == [0.5 * k for k in range(40)] * ticking


def test_a_stiff_method_once_chosen_is_kept_until_the_next_initialization() -> None:
    simulator = fx.Simulator(stiff_from(2.0))
    simulator.advance_to(20.0)
    simulator.advance_to(40.0)
    assert methods(simulator) == ["RK45", "Rodas5P"]
    simulator.context.time = 0.0
    simulator.context.set("x", 1.0)
    simulator.initialize()
    simulator.advance_to(1.0)
    assert methods(simulator) == ["RK45"]


def test_a_longer_horizon_is_judged_anew() -> None:
    simulator = fx.Simulator(Flow(lambda t, x: -1e4 * (x - 1.0), [0.0]))
    simulator.advance_to(1e-4)
    assert methods(simulator) == ["RK45"]
    simulator.advance_to(1e2)
    assert methods(simulator) == ["RK45", "Rodas5P"]
    assert "time constant 0.0001 s, mostly in flow.x[0]" in simulator.explain()


def test_a_fast_oscillation_is_no_stiffness() -> None:
    simulator = fx.Simulator(Flow(lambda t, x: [x[1], -1e6 * x[0]], [1.0, 0.0]))
    simulator.advance_to(0.2)
    assert methods(simulator) == ["RK45"]


def test_a_method_that_was_asked_for_is_never_changed() -> None:
    simulator = fx.Simulator(stiff_from(0.0, rate=1e3), method="RK45")
    simulator.advance_to(5.0)
    assert methods(simulator) == ["RK45"]


def test_the_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    simulator = fx.Simulator(stiff_from(0.0))
    with caplog.at_level(logging.INFO, logger="flexure"):
        simulator.advance_to(10.0)
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "'flow': Rodas5P from t = 0 s, because the diagram is stiff: time constant 0.0001 s"
    )


@needs_llvmlite
def test_the_loop_of_a_method_that_takes_no_step_is_not_made(monkeypatch: Any) -> None:
    made: list[str] = []

    def noted(name: str, eventful: bool) -> Any:
        made.append(name)
        return loops(name, eventful)

    monkeypatch.setattr(native_runner, "loops", noted)
    found = fx.Simulator(build(), compiled="native")
    found.advance_to(END)
    assert made == ["Rodas5P"] == methods(found)
