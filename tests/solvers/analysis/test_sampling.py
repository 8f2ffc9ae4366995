"""Linear models of diagrams with periodic updates, from sample to sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.signal import cont2discrete

import flexure as fx
from flexure.diagrams.checks.errors import EvaluationError, UnknownNameError, ValueRefusedError
from tests.support.mechanics.mechanics import Pendulum

T = 0.05
A = np.array([[0.0, 1.0], [-4.0, -0.3]])
B = np.array([[0.0], [2.0]])
C = np.array([[1.0, 0.0]])


def plant(name: str = "plant") -> fx.StateSpace:
    return fx.StateSpace(name, A, B, C)


def servo(controller: fx.LeafSystem, body: fx.LeafSystem | None = None) -> fx.Diagram:
    builder = fx.DiagramBuilder("servo")
    body = body or plant()
    builder.add_all(fx.Constant("target", 0.0), controller, body)
    builder.connect("target.y", controller.input_port("setpoint"))
    builder.connect(body.output_ports[0], controller.input_port("measurement"))
    builder.connect(controller.output_port("u"), body.input_ports[0])
    return builder.build()


def pid(period: float = T, **options: Any) -> fx.PIDController:
    return fx.PIDController("pid", kp=6.0, ki=4.0, kd=0.5, period=period, **options)


def steps(model: fx.LinearModel, u: float, count: int) -> Any:
    """Outputs of a model after a step of its input, and drift where it has any."""
    z, found = np.zeros(len(model.A)), []
    for _ in range(count):
        found.append(model.y0 + model.C @ z + model.D @ [u])
        z = model.A @ z + model.B @ [u] + model.xdot0
    return np.array(found)


def simulated(diagram: fx.Diagram, context: fx.Context, signals: list[str], times: Any) -> Any:
    result = fx.simulate(diagram, times[-1] + 1e-9, context=context, rtol=1e-11, atol=1e-15)
    return np.stack([result.sample(signal, times) for signal in signals], axis=1)


# Against simulation ------------------------------------------------------------------------------


def test_a_sampled_loop_moves_as_it_is_simulated() -> None:
    diagram = servo(pid())
    model = fx.linearize(diagram, None, ["target.value"], ["plant.y", "pid.u"], period=T)
    assert model.period == T
    assert model.state_names == [
        *("plant.x[0]", "plant.x[1]"),
        *("pid.integral", "pid.held", "pid.previous", "pid.rate"),
    ]
    context = diagram.create_default_context()
    context.set("target.value", 1.0)
    found = steps(model, 1.0, 40)[1:]
    expected = simulated(diagram, context, ["plant.y", "pid.u"], T * np.arange(1, 40))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_small_motions_of_a_nonlinear_plant_follow_the_model_at_an_equilibrium() -> None:
    diagram = servo(pid(), Pendulum())
    start = diagram.create_default_context()
    start.set("target.value", 0.4)
    settled = fx.simulate(diagram, 60.0, context=start, rtol=1e-10, atol=1e-13).context
    model = fx.linearize(diagram, settled, ["target.value"], ["pendulum.angle"], period=T)
    assert abs(model.xdot0).max() < 1e-7
    settled.set("target.value", 0.4 + 1e-5)
    times = model.time + T * np.arange(1, 30)
    expected = simulated(diagram, settled, ["pendulum.angle"], times)
    moved = steps(model, 1e-5, 30)[1:]
    np.testing.assert_allclose(moved, expected, rtol=0.0, atol=1e-9)
    assert abs(moved - model.y0).max() > 1e-6


@pytest.mark.parametrize("delay", [0.05, 0.1, 0.12, 0.17])
def test_delays_between_and_at_samples_are_exact(delay: float) -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(plant(), fx.TimeDelay("delay", delay=delay, period=T), fx.Gain("gain", -1.5))
    builder.connect_chain("gain", "plant", "delay", "gain")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("plant.x", [1.0, 0.0])
    model = fx.linearize(diagram, context, [], ["plant.y"], period=T)
    z, found = np.zeros(len(model.A)), []
    for _ in range(40):
        found.append(model.y0 + model.C @ z)
        z = model.A @ z + model.xdot0
    expected = simulated(diagram, context, ["plant.y"], T * np.arange(40))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)


def test_several_periods_are_lifted_to_the_common_one() -> None:
    outer = fx.PIDController("outer", kp=2.0, ki=1.0, period=3 * T)
    inner = pid(offset=0.02)
    builder = fx.DiagramBuilder("cascade")
    builder.add_all(
        fx.Constant("target", 1.0), outer, inner, fx.StateSpace("plant", A, B, np.eye(2))
    )
    builder.add_all(fx.Selector("angle", 2, [0]), fx.Selector("rate", 2, [1]))
    builder.connect("target.y", "outer.setpoint")
    builder.connect("outer.u", "pid.setpoint")
    builder.connect("pid.u", "plant.u")
    builder.connect("plant.y", "angle.u")
    builder.connect("plant.y", "rate.u")
    builder.connect("angle.y", "outer.measurement")
    builder.connect("rate.y", "pid.measurement")
    diagram = builder.build()
    context = diagram.create_default_context()
    model = fx.linearize(diagram, context, [], ["angle.y", "pid.u"], period=3 * T)
    z, found = np.zeros(len(model.A)), []
    for _ in range(20):
        found.append(model.y0 + model.C @ z)
        z = model.A @ z + model.xdot0
    times = 3 * T * np.arange(20)
    expected = simulated(diagram, context, ["angle.y", "pid.u"], times)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-8)
    with pytest.raises(EvaluationError, match=r"period=0\.1, which is|'outer"):
        fx.linearize(diagram, context, [], ["angle.y"], period=0.1)


# Against textbooks -------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(1, 3), st.integers(1, 2), st.floats(1e-3, 2.0), st.integers(0, 2**31))
def test_without_updates_it_is_the_model_behind_a_hold(
    n: int, m: int, period: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b, c, d = (rng.normal(size=shape) for shape in ((n, n), (n, m), (2, n), (2, m)))
    block = fx.StateSpace("block", a, b, c, d)
    context = block.create_default_context()
    context.set("u", np.zeros(m))
    model = fx.linearize(block, context, period=period)
    expected = cont2discrete((a, b, c, d), period)[:4]
    for found, wanted in zip((model.A, model.B, model.C, model.D), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_the_gain_of_a_sampled_loop_is_that_of_plant_and_controller_in_z() -> None:
    hold = fx.ZeroOrderHold("hold", T)
    builder = fx.DiagramBuilder("loop")
    builder.add_all(hold, fx.Gain("gain", -1.5), plant())
    builder.connect_chain("gain", "hold", "plant", "gain")
    diagram = builder.build()
    phi, gamma, output, _, _ = cont2discrete((A, B, C, np.zeros((1, 1))), T)
    omega = np.array([0.5, 2.0, 20.0])
    z = np.exp(1j * omega * T)
    expected = [1.5 * (output @ np.linalg.solve(each * np.eye(2) - phi, gamma))[0, 0] for each in z]
    model = fx.linearize(
        diagram, inputs=["gain.u"], outputs=["plant.y"], openings=["gain.u"], period=T
    )
    np.testing.assert_allclose(-model.frequency_response(omega)[:, 0, 0], expected, rtol=1e-12)
    gain = fx.loop_gain(diagram, "gain.u", period=T).frequency_response(omega)[:, 0, 0]
    np.testing.assert_allclose(gain, expected, rtol=1e-12)
    peak = fx.sensitivity_function(diagram, "gain.u", period=T).frequency_response(omega)[:, 0, 0]
    np.testing.assert_allclose(peak, 1.0 / (1.0 + gain), rtol=1e-11)
    closed = fx.linearize(diagram, inputs=[], outputs=["plant.y"], period=T)
    wanted = np.linalg.eigvals(phi - 1.5 * gamma @ output)
    found = sorted(closed.poles, key=abs)
    assert abs(found[0]) < 1e-12  # of the hold, which keeps nothing
    np.testing.assert_allclose(sorted(found[1:], key=np.imag), sorted(wanted, key=np.imag))
    assert closed.is_stable
    assert closed.to_state_space("again").period == closed.period


def test_a_unit_delay_costs_a_period() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.UnitDelay("delay", T), fx.Gain("gain", -0.5))
    builder.connect_chain("gain", "delay", "gain")
    diagram = builder.build()
    model = fx.linearize(diagram, None, ["gain.u"], ["delay.y"], openings="gain.u", period=T)
    omega = np.array([1.0, 10.0])
    expected = -0.5 * np.exp(-1j * omega * T)
    np.testing.assert_allclose(model.frequency_response(omega)[:, 0, 0], expected)


def test_what_follows_nothing_counts_as_constant() -> None:
    builder = fx.DiagramBuilder("noisy")
    builder.add_all(
        fx.Noise("noise", period=T, seed=1),
        fx.Sum("sum", "++"),
        fx.ZeroOrderHold("hold", T),
        plant(),
    )
    builder.connect("noise.y", "sum.u2")
    builder.connect("plant.y", "sum.u1")
    builder.connect_chain("sum", "hold", "plant")
    model = fx.linearize(builder.build(), inputs=[], outputs=["plant.y"], period=T)
    assert model.state_names == ["plant.x[0]", "plant.x[1]", "hold.x"]


# Refusals ----------------------------------------------------------------------------------------


class Chirping(fx.LeafSystem):
    """ẋ = -t x, which no matrix exponential solves."""

    def __init__(self) -> None:
        super().__init__("chirping")
        self.x = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return -context.time * self.x(context)


class Counting(fx.LeafSystem):
    """An update that cannot be traced."""

    def __init__(self) -> None:
        super().__init__("counting")
        self.u = self.declare_vector_input("u", 1)
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(self.count, fx.diagrams.Periodic(T))
        self.calls = 0

    def count(self, context: Any) -> dict[Any, Any]:
        self.calls += 1
        return {self.n: float(self.u(context)[0]) + self.calls}


class Restless(fx.LeafSystem):
    """An update at every step."""

    def __init__(self) -> None:
        super().__init__("restless")
        self.n = self.declare_discrete_state("n", 0.0)
        self.declare_discrete_update(lambda c: {self.n: self.n(c)}, fx.diagrams.PerStep())


def test_what_does_not_fit_is_refused_by_name() -> None:
    for period, kind, text in (
        (0.07, EvaluationError, "pid.*every 0.05 s"),
        (0.02, EvaluationError, "pid.*every 0.05 s"),
        (0.0, ValueRefusedError, "period"),
        (float("nan"), ValueRefusedError, "period"),
        ("T", ValueRefusedError, "period"),
    ):
        with pytest.raises(kind, match=text):
            fx.linearize(servo(pid()), period=period)  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match=r"the rate of chirping.x.*depend on time"):
        fx.linearize(Chirping(), period=T)
    counting = Counting()
    context = counting.create_default_context()
    context.set("u", 0.0)
    with pytest.raises(EvaluationError, match="counting"):
        fx.linearize(counting, context, period=T)
    assert counting.calls == 0
    with pytest.raises(EvaluationError, match="at every step"):
        fx.linearize(Restless(), period=T)
    with pytest.raises(EvaluationError, match="sampled block 'pid'"):
        fx.linearize(servo(pid()), inputs=["target.value"])
    with pytest.raises(UnknownNameError):
        fx.linearize(servo(pid()), inputs=["plant.v"], period=T)


def test_a_sampled_model_is_a_block_for_the_values_themselves() -> None:
    loop = servo(pid())
    context = loop.create_default_context()
    context.set("target.value", 1.0)  # no equilibrium: the model drifts from x0
    model = fx.linearize(loop, context, inputs=[], outputs=["plant.y"], period=T)
    times = T * (np.arange(20) + 0.5)
    found = fx.simulate(model.to_affine_system("sampled"), 20.5 * T).sample("y", times)
    later = fx.simulate(loop, 21.0 * T, context=context).sample("plant.y", times + 0.5 * T)
    assert np.ptp(later) > 0.1
    np.testing.assert_allclose(found, later, rtol=1e-5, atol=1e-6)


def test_a_reset_by_a_block_is_refused_by_name_and_one_that_is_fixed_does_nothing() -> None:
    def summing(*, is_wired: bool) -> fx.Diagram:
        builder = fx.DiagramBuilder("summing")
        builder.add_all(fx.ZeroOrderHold("hold", T), fx.Integrator("sum", reset=True))
        builder.connect("hold.y", "sum.u")
        builder.export_input("hold.u", name="u")
        if is_wired:
            builder.add(fx.Square("pulse", T))
            builder.connect("pulse.y", "sum.reset")
        else:
            builder.export_input("sum.reset", name="reset")
        return builder.build()

    with pytest.raises(EvaluationError, match=r"'sum', which 'pulse\.y' resets.*input 'reset'"):
        fx.linearize(summing(is_wired=True), inputs=["u"], outputs=["sum.y"], period=T)
    diagram = summing(is_wired=False)
    context = diagram.create_default_context()
    context.set("u", 0.0)
    context.set("reset", 0.0)
    model = fx.linearize(diagram, context, ["u"], ["sum.y"], period=T)
    assert model.A[0, 0] == 1.0


def held_loop(*blocks: fx.LeafSystem) -> fx.Diagram:
    """Close a loop of blocks, of which 'pid' is the first."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(fx.Constant("target", 1.0), *blocks)
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain(*blocks, "pid.measurement")
    return builder.build()


def test_a_loop_opened_before_a_block_that_samples_has_the_poles_of_the_diagram() -> None:
    controller = fx.PIDController("pid", kp=3.0, ki=2.0, period=0.1)
    loop = held_loop(controller, fx.ZeroOrderHold("hold", 0.1), fx.FirstOrderLag("plant", 0.4))
    gain = fx.loop_gain(loop, "pid.u", period=0.1)
    back = gain.B @ np.linalg.solve(np.eye(1) + gain.D, gain.C)
    whole = fx.linearize(loop, None, [], [], period=0.1).A
    for z in (1.3, 0.4 + 1.1j, -1.2):
        found, expected = (np.linalg.det(np.eye(len(A)) - A / z) for A in (gain.A - back, whole))
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_sampled_loop_is_not_opened_where_its_signal_moves_between_the_instants() -> None:
    controller = fx.PIDController("pid", kp=3.0, ki=2.0)
    loop = held_loop(controller, fx.FirstOrderLag("plant", 0.4), fx.ZeroOrderHold("hold", 0.1))
    with pytest.raises(EvaluationError, match="at the output of a block that samples"):
        fx.loop_gain(loop, "pid.u", period=0.1)
    assert fx.margins(fx.loop_gain(loop, "hold.y", period=0.1)).is_stable


def test_growth_beyond_all_numbers_within_a_period_is_refused() -> None:
    plant = fx.TransferFunction("plant", [1.0], [1.0, -1e6])
    context = plant.create_default_context()
    context.set("u", 0.0)
    with pytest.raises(EvaluationError, match=r"stay finite over a period of 0\.01 s"):
        fx.linearize(plant, context, ["u"], ["y"], period=0.01)
