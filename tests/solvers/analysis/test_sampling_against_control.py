"""Models from sample to sample against loops that are put together by hand in python-control."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx

control = pytest.importorskip("control")

T = 0.2
CONTROLLER = ([1.2, -1.0], [1.0, -0.4])
PLANTS = {
    "stable": ([2.0], [1.0, 3.0, 2.0]),
    "integrating": ([1.0], [1.0, 0.5, 0.0]),
    "twice integrating": ([0.3], [1.0, 0.0, 0.0]),
    "oscillatory": ([1.0, 4.0], [1.0, 0.02, 9.0]),
    "unstable": ([1.0], [1.0, -0.7]),
}
OMEGA = np.array([0.1, 0.7, 2.9, 6.0, 11.0])


def response(system: Any, period: float = T) -> Any:
    """The response of a linear system of python-control, solved and not divided by polynomials."""
    model = control.ss(system)
    z = np.exp(1j * OMEGA * period)
    return np.array(
        [model.D + model.C @ np.linalg.solve(each * np.eye(model.nstates) - model.A, model.B)
         for each in z]
    )  # fmt: skip


def assert_same(model: fx.LinearModel, system: Any, period: float = T) -> None:
    """Compare frequency responses, which do not depend on the choice of states."""
    assert model.period == period
    expected = response(system, period)
    found = model.frequency_response(OMEGA)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * abs(expected).max())


def held(name: str) -> Any:
    """A plant behind a hold, as python-control samples it."""
    return control.c2d(control.ss(control.tf(*PLANTS[name])), T, "zoh")


def loop(name: str, *behind: fx.System) -> fx.Diagram:
    """A controller in z, a hold, what comes behind it, and a plant."""
    builder = fx.DiagramBuilder("loop")
    blocks = [fx.ZeroOrderHold("hold", T), *behind, fx.TransferFunction("plant", *PLANTS[name])]
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.Sum("error", "+-"),
        fx.TransferFunction("controller", *CONTROLLER, period=T),
        *blocks,
        fx.ZeroOrderHold("sensor", T),
    )
    builder.connect_chain("target", "error.u1")
    builder.connect_chain("error", "controller", *(block.name for block in blocks), "sensor")
    builder.connect("sensor.y", "error.u2")
    return builder.build()


def closed(plant: Any) -> Any:
    """The same loop in python-control; the sensor is read by the controller a sample later."""
    shift = control.ss(control.tf([1.0], [1.0, 0.0], T))
    controller = control.ss(control.tf(*CONTROLLER, T))
    return control.feedback(control.series(controller, plant), shift)


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_behind_a_hold(name: str) -> None:
    diagram = loop(name)
    model = fx.linearize(diagram, None, "hold.u", "plant.y", openings="hold.u", period=T)
    assert_same(model, held(name))


@pytest.mark.parametrize("name", PLANTS)
def test_a_closed_loop(name: str) -> None:
    model = fx.linearize(loop(name), None, "target.value", "plant.y", period=T)
    wanted = closed(held(name))
    assert_same(model, wanted)
    poles = control.poles(wanted)
    assert all(abs(model.poles - pole).min() < 1e-9 for pole in poles)


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_delay_of_whole_periods_in_front_of_the_plant(name: str, count: int) -> None:
    delays = [fx.ZeroOrderHold(f"delay_{k}", T) for k in range(count)]
    model = fx.linearize(loop(name, *delays), None, "target.value", "plant.y", period=T)
    shifts = control.ss(control.tf([1.0], [1.0, *[0.0] * count], T))
    assert_same(model, closed(control.series(shifts, held(name))))


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("part", [0.25, 0.5, 0.9])
def test_a_delay_of_a_part_of_the_period_in_front_of_the_plant(name: str, part: float) -> None:
    """An actuator that answers late in each period, by what c2d makes of both of its parts."""
    late = fx.ZeroOrderHold("late", T, offset=part * T)
    model = fx.linearize(loop(name, late), None, "target.value", "plant.y", period=T)
    plant = control.ss(control.tf(*PLANTS[name]))
    before, after = (control.c2d(plant, length, "zoh") for length in (part * T, T - part * T))
    n = plant.nstates
    # states of the plant, and what the actuator gives until it answers
    A = np.block([[after.A @ before.A, after.A @ before.B], [np.zeros((1, n + 1))]])
    B = np.vstack([after.B, [[1.0]]])
    by_hand = control.ss(A, B, np.hstack([plant.C, plant.D]), 0.0, T)
    assert_same(model, closed(by_hand))


@pytest.mark.parametrize("name", PLANTS)
def test_a_line_of_samples_is_a_first_order_hold_and_a_shift(name: str) -> None:
    builder = fx.DiagramBuilder("line")
    builder.add_all(
        fx.TimeDelay("line", delay=T, period=T), fx.TransferFunction("plant", *PLANTS[name])
    )
    builder.connect_chain("line", "plant")
    builder.export_input("line.u", name="u")
    builder.export_output("plant.y", name="y")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("u", 0.0)
    model = fx.linearize(diagram, context, period=T)
    plant = control.c2d(control.ss(control.tf(*PLANTS[name])), T, "foh")
    shift = control.ss(control.tf([1.0], [1.0, 0.0], T))
    assert_same(model, control.series(shift, plant))


@pytest.mark.parametrize("name", PLANTS)
def test_two_rates_are_lifted_to_the_slower_one(name: str) -> None:
    """An inner loop with a gain at T, and an outer one with another at 3 T."""
    inner, outer = -0.3, 0.7
    builder = fx.DiagramBuilder("cascade")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.Sum("error", "+-"),
        fx.Gain("outer", outer),
        fx.ZeroOrderHold("slow", 3 * T),
        fx.ZeroOrderHold("sensor", T),
        fx.Gain("inner", inner),
        fx.Sum("sum", "++"),
        fx.TransferFunction("plant", *PLANTS[name]),
    )
    builder.connect_chain("target", "error.u1")
    builder.connect_chain("error", "outer", "slow", "sum.u1")
    builder.connect_chain("plant", "sensor", "inner", "sum.u2")
    builder.connect_chain("sum", "plant")
    builder.connect("plant.y", "error.u2")
    diagram = builder.build()
    model = fx.linearize(diagram, None, "target.value", "plant.y", period=3 * T)
    step = held(name)
    once = step.A + inner * step.B @ step.C
    entry = outer * sum(np.linalg.matrix_power(once, k) for k in range(3)) @ step.B
    lifted = np.linalg.matrix_power(once, 3) - entry @ step.C
    assert_same(model, control.ss(lifted, entry, step.C, 0.0, 3 * T), 3 * T)
