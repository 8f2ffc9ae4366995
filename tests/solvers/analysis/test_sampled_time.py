"""Models from sample to sample of loops in which something moves by time alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError
from tests.support.mechanics.mechanics import Pendulum

T = 0.125
DELAYS = st.tuples(st.sampled_from([0.125, 0.5, 1.0, 2.0]), st.sampled_from([1.0, 1.3, 2.0, 3.75]))


def loop(delay: float, own: float, hold: float, offset: float, *, behind: bool) -> fx.Diagram:
    """A pendulum with a sampled controller, a delay before or behind it, and a hold."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 0.3),
        fx.PIDController("pid", kp=6.0, ki=3.0, kd=0.5, offset=offset, period=T),
        fx.TimeDelay("delay", delay, own),
        fx.ZeroOrderHold("hold", hold),
        Pendulum(),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", *["delay"] * (not behind), "pendulum.torque")
    builder.connect_chain("pendulum.angle", *["delay"] * behind, "hold", "pid.measurement")
    return builder.build()


def predicted(model: fx.LinearModel, u: float, count: int) -> Any:
    """The outputs at the instants behind the first."""
    z, found = np.zeros(len(model.A)), []
    for _ in range(count + 1):
        found.append(model.y0 + model.C @ z + model.D @ [u])
        z = model.A @ z + model.B @ [u] + model.xdot0
    return np.array(found[1:])


@pytest.mark.full
@settings(max_examples=8, deadline=None)
@given(
    DELAYS,
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([0.0, 0.03, T / 2]),
    st.booleans(),
    st.sampled_from([0.0, 0.4, 0.5]),
)
def test_small_steps_of_loops_with_delays_of_their_own_period_are_those_of_the_simulation(
    delays: tuple[float, float], hold: float, offset: float, behind: bool, time: float
) -> None:
    own = delays[0] * T
    diagram = loop(own * delays[1], own, hold * T, offset, behind=behind)
    ports = (["target.value"], ["pendulum.angle", "pid.u"])
    period = max(own, hold * T, T)
    context = fx.simulate(diagram, time).context if time else diagram.create_default_context()
    rest = fx.equilibrium(diagram, context, period=period).context
    model = fx.linearize(diagram, rest, *ports, period=period)
    twice = fx.linearize(diagram, rest, *ports, period=2 * period)
    np.testing.assert_allclose(twice.A, model.A @ model.A, rtol=0.0, atol=1e-12)
    start = fx.simulate(diagram, model.time, context=rest).context if model.time > time else rest
    start.set("target.value", 0.3 + 1e-6)
    times = model.time + period * np.arange(1, 9)
    result = fx.simulate(diagram, times[-1] + 1e-9, context=start, rtol=1e-11, atol=1e-15)
    simulated = np.stack([result.sample(path, times).ravel() for path in ports[1]], axis=1)
    expected = predicted(model, 1e-6, 8)
    moved = abs(expected - model.y0).max()
    assert moved > 1e-7
    np.testing.assert_allclose(expected, simulated, rtol=0.0, atol=1e-4 * moved)


def test_a_line_of_different_samples_moves_on_as_it_is_simulated() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Gain("gain", -1.0),
        fx.TransferFunction("lag", [1.0], [1.0, 1.2]),
        fx.TimeDelay("delay", 0.13, 0.05),
        fx.ZeroOrderHold("hold", 0.1),
    )
    builder.connect_chain("gain", "lag", "delay", "hold", "gain")
    builder.connect_chain("delay.y", builder.add(fx.Integrator("sum")))
    diagram = builder.build()
    start = diagram.create_default_context()
    start.set("lag.x", [1.0])
    start.set("hold.x", [0.4])
    start = fx.simulate(diagram, 0.33, context=start).context
    start = fx.simulate(diagram, 0.4, context=start, rtol=1e-11, atol=1e-15).context
    model = fx.linearize(diagram, start, ["gain.u"], ["sum.y", "lag.y"], period=0.2)
    times = model.time + 0.2 * np.arange(1, 9)
    result = fx.simulate(diagram, times[-1] + 1e-9, context=start, rtol=1e-11, atol=1e-15)
    simulated = np.stack([result.sample(path, times).ravel() for path in ("sum.y", "lag.y")], 1)
    np.testing.assert_allclose(predicted(model, 0.0, 8), simulated, rtol=0.0, atol=1e-9)


# What repeats itself, and what does not ----------------------------------------------------------


class Toggling(fx.LeafSystem):
    """Hold u times a factor: one that changes its sign with every sample, or the cosine of time."""

    def __init__(self, factor: str = "sign", omega: float = 1.0) -> None:
        super().__init__("toggling")
        self.factor, self.omega = factor, omega
        self.u = self.declare_vector_input("u", 1)
        self.sign = self.declare_discrete_state("sign", 1.0)
        self.held = self.declare_discrete_state("held", 0.0)
        self.declare_discrete_update(self.sample, fx.diagrams.Periodic(0.1))
        self.declare_vector_output("y", 1, self.held)

    def sample(self, context: Any) -> dict[Any, Any]:
        sign = self.sign(context)
        factor = sign if self.factor == "sign" else np.cos(self.omega * context.time)
        return {self.sign: -sign, self.held: factor * self.u(context)}


def around(block: fx.LeafSystem) -> fx.Diagram:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(block, fx.Integrator("plant"), fx.Gain("gain", -1.0))
    builder.connect_chain("plant", "gain", "toggling", "plant")
    return builder.build()


def test_a_gain_that_toggles_is_lifted_to_the_period_after_which_it_is_the_same() -> None:
    diagram = around(Toggling())
    for count in (2, 4):
        model = fx.linearize(diagram, None, [], [], period=count * 0.1)
        np.testing.assert_allclose(model.A[0], [0.99 ** (count / 2), 0.0], rtol=1e-12)
    context = diagram.create_default_context()
    context.set("plant.x", [1.0])
    result = fx.simulate(diagram, 0.41, context=context)
    np.testing.assert_allclose(result.sample("plant.y", [0.4]).ravel(), 0.99**2, rtol=1e-9)
    later = fx.simulate(diagram, 0.15).context  # what toggles goes on to the first instant
    np.testing.assert_allclose(fx.linearize(diagram, later, [], [], period=0.2).A[1, 0], 0.9)


def test_what_is_another_one_in_the_next_period_is_refused_by_name() -> None:
    for period in (0.1, 0.3):
        with pytest.raises(EvaluationError, match=r"toggling\.held.*'toggling\.sign' is 1, .* -1"):
            fx.linearize(around(Toggling()), None, [], [], period=period)
    with pytest.raises(EvaluationError, match=r"update of toggling\.held.*a period later"):
        fx.linearize(around(Toggling("time")), None, [], [], period=0.1)
    periodic = around(Toggling("time", np.pi / 0.1))
    model = fx.linearize(periodic, None, [], [], period=0.2)
    np.testing.assert_allclose(model.A[0], [0.9 * 1.1, 0.0], rtol=1e-12)


def test_periods_with_too_many_instants_are_refused_before_they_take_room() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.TimeDelay("delay", 1.5e-6, 1e-6), fx.Integrator("plant"))
    builder.connect_chain("plant", "delay", "plant")
    diagram = builder.build()
    for period in (1e12, 1.0):
        with pytest.raises(EvaluationError, match=r"at most 100000 instants.*'delay\.sample'"):
            fx.linearize(diagram, None, [], [], period=period)


class Flickering(fx.LeafSystem):
    """ẋ = -x |sin(π t / 1e-6)|, which is not smooth at a great many times."""

    def __init__(self) -> None:
        super().__init__("flickering")
        self.x = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return -np.abs(np.sin(context.time * np.pi / 1e-6)) * self.x(context)

    def calc_next_break_time(self, context: Any) -> float:
        return float((np.floor(context.time / 1e-6 + 0.5) + 1.0) * 1e-6)


def test_periods_with_too_many_breaks_are_refused_by_name() -> None:
    with pytest.raises(EvaluationError, match=r"at most 100000 instants.*'flickering'"):
        fx.linearize(Flickering(), period=1.0)


# Points that move ---------------------------------------------------------------------------------


class Multiplying(fx.LeafSystem):
    """Two clocks: x becomes x² u + y, and y becomes y + x y in between."""

    def __init__(self) -> None:
        super().__init__("multiplying")
        self.u = self.declare_vector_input("u", 1)
        self.x = self.declare_discrete_state("x", 0.4)
        self.held = self.declare_discrete_state("held", 0.3)
        self.declare_discrete_update(self.square, fx.diagrams.Periodic(0.1))
        self.declare_discrete_update(self.add, fx.diagrams.Periodic(0.05))
        self.declare_vector_output("y", 1, self.x)

    def square(self, context: Any) -> dict[Any, Any]:
        return {self.x: 0.3 * np.cos(self.x(context)) * self.u(context) + self.held(context)}

    def add(self, context: Any) -> dict[Any, Any]:
        return {self.held: np.sin(self.held(context)) * (1.0 - self.x(context))}


def moving(kind: str) -> fx.Diagram:
    """A swinging pendulum, what follows it from sample to sample, and a lag behind that."""
    builder = fx.DiagramBuilder("moving")
    builder.add_all(
        fx.Constant("factor", 1.7),
        Pendulum(),
        fx.Constant("torque", 0.3),
        fx.Gain("gain", 1.3),
        fx.Product("product"),
        fx.FirstOrderLag("lag", time_constant=0.07),
    )
    if kind == "multiplying":
        builder.add(Multiplying())
    elif kind == "delay":
        builder.add(fx.TimeDelay("multiplying", 0.173, 0.05, max_delay=0.4))
    else:
        builder.add({"unit": fx.UnitDelay, "hold": fx.ZeroOrderHold}[kind]("multiplying", 0.1))
    builder.connect_chain("torque", "pendulum.torque")
    builder.connect_chain("pendulum.angle", "multiplying", "gain", "product.u1")
    builder.connect("factor.y", "product.u2")
    builder.connect_chain("product", "lag")
    return builder.build()


@pytest.mark.full
@pytest.mark.parametrize("kind", ["unit", "hold", "delay", "multiplying"])
def test_derivatives_at_moving_points_are_those_of_whole_simulated_periods(kind: str) -> None:
    diagram, period = moving(kind), 0.1
    context = diagram.create_default_context()
    context.set("pendulum.x", [0.9, 1.5])
    context = fx.simulate(diagram, 0.5, context=context, rtol=1e-11, atol=1e-13).context
    inputs = ["factor.value", "gain.gain", "torque.value"]
    inputs += ["multiplying.delay"] if kind == "delay" else []
    model = fx.linearize(diagram, context, inputs, ["lag.y", "product.y"], period=period)
    assert model.time == 0.5

    def states(changed: fx.Context) -> Any:
        return np.concatenate([np.ravel(changed.get(name)) for name in model.state_names])

    def after(name: str, change: float) -> Any:
        changed = context.clone()
        changed.set(name, np.asarray(changed.get(name)) + change)
        end = fx.simulate(diagram, 0.5 + period, context=changed, rtol=1e-12, atol=1e-14).context
        return states(end)

    np.testing.assert_array_equal(states(context), model.x0)
    np.testing.assert_allclose(model.xdot0, after("lag.x", 0.0) - model.x0, atol=1e-9)
    h = 1e-4
    for matrix, names in ((model.A, model.state_names), (model.B, inputs)):
        expected = np.stack([(after(n, h) - after(n, -h)) / (2.0 * h) for n in names], axis=1)
        np.testing.assert_allclose(matrix, expected, rtol=0.0, atol=1e-6)
    wires = fx.linearize(diagram, context, [*inputs, "product.u1", "gain.y"], [], period=period)
    np.testing.assert_allclose(wires.A, model.A, atol=1e-9)
    np.testing.assert_allclose(wires.B[:, : len(inputs)], model.B, atol=1e-9)


# Wires -------------------------------------------------------------------------------------------


def test_both_ends_of_one_wire_are_an_input_each_and_can_be_opened() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Gain("gain", -2.0), fx.FirstOrderLag("lag", time_constant=1.0))
    builder.connect_chain("gain", "lag", "gain")
    diagram = builder.build()
    ends, shown = ["gain.y", "lag.u"], ["lag.y", "gain.y", "lag.u"]
    closed = fx.linearize(diagram, None, ends, shown)
    np.testing.assert_allclose(closed.B, [[1.0, 1.0]])
    np.testing.assert_allclose(closed.D, [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(closed.A, [[-3.0]])
    for opening, reach in (("gain.y", [1.0, 1.0]), ("lag.u", [0.0, 1.0]), (ends, [0.0, 1.0])):
        model = fx.linearize(diagram, None, ends, shown, openings=opening)
        np.testing.assert_allclose(model.A, [[-1.0]])
        np.testing.assert_allclose(model.B, [reach])
        np.testing.assert_allclose(model.D[2], reach)


@pytest.mark.parametrize("late", [fx.UnitDelay("late", 0.1), fx.ZeroOrderHold("late", 0.1)])
def test_sensitivities_at_a_wire_that_is_sampled_as_it_changes_are_those_of_the_loop_gain(
    late: fx.System,
) -> None:
    """The delay reads what the controller gave before: S = 1 / (1 + L), and T = L S."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.PIDController("pid", kp=0.8, ki=0.3, period=0.1),
        late,
        fx.FirstOrderLag("plant", 0.5),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "late", "plant", "pid.measurement")
    diagram = builder.build()
    ways = fx.loop_gain, fx.sensitivity_function, fx.complementary_sensitivity
    L, S, T = (way(diagram, "pid.u", period=0.1) for way in ways)
    for frequency in (0.3, 3.0, 25.0):
        gain, s, t = (each.frequency_response(frequency).item() for each in (L, S, T))
        assert s == pytest.approx(1.0 / (1.0 + gain), rel=1e-12)
        assert t == pytest.approx(gain / (1.0 + gain), rel=1e-12)
