"""Controllers on pendulums, continuous and sampled, agree with Drake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams import Periodic
from tests.oracle.reading import cases

TIGHT: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}


class Pendulum(fx.LeafSystem):
    """m l² q̈ = u - b q̇ - m g l sin q."""

    def __init__(self, spec: dict[str, Any], start: list[float]) -> None:
        super().__init__("pendulum")
        self.spec = spec
        self.state = self.declare_continuous_state(q=1, v=1, default=start)
        self.u = self.declare_vector_input("u", 1)
        self.declare_vector_output("q", 1, self.state.q)
        self.declare_vector_output("v", 1, self.state.v)

    def calc_time_derivatives(self, context: Any) -> list[Any]:
        q, v = self.state(context)
        m, length = self.spec["mass"], self.spec["length"]
        torque = self.u(context) - self.spec["damping"] * v
        return [v, torque / (m * length**2) - self.spec["gravity"] / length * np.sin(q)]


def rotation(quaternion: list[float]) -> np.ndarray:
    """Rotation matrix of a quaternion (w, x, y, z)."""
    w, x, y, z = np.array(quaternion) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


class Arm(fx.LeafSystem):
    """One body on one revolute joint to the world, from its inertia and frames.

    With J the inertia about the axis and r the vector from the axis to the center of mass,
    J q̈ = u - d q̇ + axis . (r x m g).
    """

    def __init__(self, model: dict[str, Any], start: list[float]) -> None:
        super().__init__("pendulum")
        (body,), (joint,) = model["bodies"], model["joints"]
        identity: dict[str, list[float]] = {"q": [1.0, 0.0, 0.0, 0.0], "p": [0.0, 0.0, 0.0]}
        parent, child = joint.get("X_PF") or identity, joint.get("X_BM") or identity
        axis = np.array(joint["axis"], dtype=float)
        self.axis = axis / np.linalg.norm(axis)
        self.to_world = rotation(parent["q"])
        from_body = rotation(child["q"]).T
        self.com = from_body @ (np.array(body["p_BoBcm"]) - np.array(child["p"]))
        xx, yy, zz, xy, xz, yz = body["I_BBcm_B"]
        central = from_body @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ from_body.T
        self.mass = body["mass"]
        arm = np.cross(self.axis, self.com)
        self.inertia = self.axis @ central @ self.axis + self.mass * arm @ arm
        self.gravity = self.to_world.T @ np.array(model["gravity"], dtype=float)
        self.damping = joint.get("damping", 0.0)
        self.state = self.declare_continuous_state(q=1, v=1, default=start)
        self.u = self.declare_vector_input("u", 1)
        self.declare_vector_output("q", 1, self.state.q)

    def calc_time_derivatives(self, context: Any) -> list[Any]:
        q, v = self.state(context)
        along = self.axis * (self.axis @ self.com)
        across = self.com - along
        r = along + np.cos(q) * across + np.sin(q) * np.cross(self.axis, self.com)
        gravity = self.axis @ np.cross(r, self.mass * self.gravity)
        return [v, (self.u(context) - self.damping * v + gravity) / self.inertia]


def reference(spec: Any) -> tuple[fx.LeafSystem, fx.LeafSystem]:
    """A reference value and its rate as two blocks."""
    if not isinstance(spec, dict):
        spec = {"type": "constant", "value": spec}
    if spec["type"] == "constant":
        return fx.Constant("reference", spec["value"]), fx.Constant("reference_rate", 0.0)
    amplitude, frequency = spec["amplitude"], spec.get("frequency", spec.get("omega"))
    phase = spec.get("phase", 0.0)
    return (
        fx.Sine("reference", amplitude, frequency, phase, spec.get("offset", 0.0)),
        fx.Sine("reference_rate", amplitude * frequency, frequency, phase + 0.5 * np.pi),
    )


def advance_through(diagram: fx.Diagram, times: list[float], signals: list[str]) -> np.ndarray:
    """Simulate and return signals at times, one row per time."""
    simulator = fx.Simulator(diagram, **TIGHT)
    rows = []
    for time in times:
        simulator.advance_to(time)
        rows.append([float(simulator.context.get(signal)[0]) for signal in signals])
    return np.array(rows)


@pytest.mark.parametrize("case", cases("framework_pi_pendulum.json", "pid_pendulum"))
def test_pid_on_a_pendulum(case: dict[str, Any]) -> None:
    gains = {key: case["controller"][key] for key in ("kp", "ki", "kd")}
    builder = fx.DiagramBuilder("oracle")
    builder.add_all(
        *reference(case["reference"]),
        fx.PIDController("pid", **gains, rate_inputs=True),
        Pendulum(case["plant"], case["x0"]),
    )
    builder.connect("reference.y", "pid.setpoint")
    builder.connect("reference_rate.y", "pid.setpoint_rate")
    builder.connect("pendulum.q", "pid.measurement")
    builder.connect("pendulum.v", "pid.measurement_rate")
    builder.connect("pid.u", "pendulum.u")
    expected = case["expected"]
    signals = ["pendulum.q", "pendulum.v", "pid.integral", "pid.u"]
    found = advance_through(builder.build(), expected["times"], signals)
    np.testing.assert_allclose(found[:, :3], expected["state_q_qd_z"], atol=1e-6)
    np.testing.assert_allclose(found[:, 3], expected["u"], atol=1e-5)


@pytest.mark.parametrize("case", cases("framework_pi_pendulum.json", "pi_blocks_multibody"))
def test_pi_from_single_blocks_on_an_arm(case: dict[str, Any]) -> None:
    controller = case["controller"]
    builder = fx.DiagramBuilder("oracle")
    source, _ = reference(case["reference"])
    builder.add_all(
        source,
        fx.Sum("error", "+-"),
        fx.Gain("kp", controller["kp"]),
        fx.Integrator("integral"),
        fx.Gain("ki", controller["ki"]),
        fx.Sum("command", "++"),
        Arm(case["model"], case["x0"]),
    )
    builder.connect_chain("reference", "error.u1", "kp", "command.u1")
    builder.connect_chain("error", "integral", "ki", "command.u2")
    limit = controller.get("sat")
    if limit is None:
        builder.connect_chain("command", "pendulum.u")
        command = "command.y"
    else:
        builder.add(fx.Saturation("saturation", -limit, limit))
        builder.connect_chain("command", "saturation", "pendulum.u")
        command = "saturation.y"
    builder.connect("pendulum.q", "error.u2")
    expected = case["expected"]
    diagram = builder.build()
    simulator = fx.Simulator(diagram, **TIGHT)
    for time, state, u in zip(
        expected["times"], expected["state_q_qd_z"], expected["u"], strict=True
    ):
        simulator.advance_to(time)
        context = simulator.context
        found = [*context.get("pendulum.x"), *context.get("integral.x")]
        np.testing.assert_allclose(found, state, atol=1e-6)
        np.testing.assert_allclose(context.get(command), [u], atol=1e-5)


class DigitalPi(fx.LeafSystem):
    """Both states are updated together at t_k; the new command is held."""

    def __init__(self, spec: dict[str, Any], target: float) -> None:
        super().__init__("controller")
        self.spec, self.target = spec, target
        self.rows: list[list[float]] = []
        self.q = self.declare_vector_input("q", 1)
        self.integral = self.declare_discrete_state("integral", [0.0])
        self.held = self.declare_discrete_state("held", [0.0])
        self.declare_vector_output("u", 1, self.held, prerequisites=[self.held])
        self.declare_discrete_update(self.sample, Periodic(spec["period"], spec["offset"]))

    def sample(self, context: Any) -> dict[Any, Any]:
        q = float(self.q(context)[0])
        error = self.target - q
        integral = float(self.integral(context)[0]) + self.spec["period"] * error
        u = self.spec["kp"] * error + self.spec["ki"] * integral
        self.rows.append([context.time, self.target, q, integral, u])
        return {self.integral: [integral], self.held: [u]}


def sampled_loop(case: dict[str, Any], controller: fx.LeafSystem, entry: str) -> fx.Diagram:
    builder = fx.DiagramBuilder("oracle")
    builder.add_all(controller, Pendulum(case["plant"], case["plant"]["x0"]))
    builder.connect("pendulum.q", f"controller.{entry}")
    builder.connect("controller.u", "pendulum.u")
    if entry == "measurement":
        builder.add(fx.Constant("reference", case["reference"]))
        builder.connect("reference.y", "controller.setpoint")
    return builder.build()


@pytest.mark.parametrize("case", cases("framework_sampled.json", "digital_pi_pendulum"))
def test_digital_pi(case: dict[str, Any]) -> None:
    expected = case["expected"]
    block = DigitalPi(case["controller"], case["reference"])
    found = advance_through(
        sampled_loop(case, block, "q"), expected["times"], ["pendulum.q", "pendulum.v"]
    )
    np.testing.assert_allclose(found, expected["state"], atol=1e-6)
    rows = np.array(expected["update_rows"])
    mine = np.array(block.rows[: len(rows)])
    assert mine[:, 0].tolist() == rows[:, 0].tolist()
    np.testing.assert_allclose(mine, rows, atol=1e-6)


@pytest.mark.parametrize("case", cases("framework_sampled.json", "digital_pi_pendulum"))
def test_our_sampled_pid_block_is_the_same_controller(case: dict[str, Any]) -> None:
    spec = case["controller"]
    block = fx.PIDController(
        "controller", period=spec["period"], offset=spec["offset"], kp=spec["kp"], ki=spec["ki"]
    )
    expected = case["expected"]
    found = advance_through(
        sampled_loop(case, block, "measurement"),
        expected["times"],
        ["pendulum.q", "pendulum.v"],
    )
    np.testing.assert_allclose(found, expected["state"], atol=1e-6)


@pytest.mark.parametrize("case", cases("framework_sampled.json", "zero_order_hold"))
def test_zero_order_hold(case: dict[str, Any]) -> None:
    amplitude, frequency, phase = parse_sine(case["source"])
    builder = fx.DiagramBuilder("oracle")
    log_period = case["log_period"]
    builder.add_all(
        fx.Sine("source", amplitude, frequency, phase),
        fx.ZeroOrderHold("hold", case["period"], case["offset"]),
        fx.VectorLog("held", 1, period=log_period),
        fx.VectorLog("plain", 1, period=log_period),
    )
    builder.connect_chain("source", "hold", "held")
    builder.connect("source.y", "plain.u")
    diagram = builder.build()
    simulator = fx.Simulator(diagram)
    simulator.advance_to(case["t_end"])
    expected = case["expected"]
    for name, key in (("held", "held"), ("plain", "source")):
        record = diagram[name].find_log(simulator.context)  # type: ignore[attr-defined]
        assert record.times.tolist() == expected["log_times"]
        np.testing.assert_allclose(record.data.ravel(), expected[key], rtol=1e-14, atol=1e-15)


def parse_sine(text: str) -> tuple[float, float, float]:
    """Read amplitude, frequency and phase out of ``y = a sin(b t + c)``."""
    import re

    number = r"([-+]?[\d.]+(?:e[-+]?\d+)?)"
    found = re.fullmatch(rf"y = {number} sin\({number} t ([+-]) {number}\)", text)
    assert found is not None, text
    a, b, sign, c = found.groups()
    return float(a), float(b), float(sign + c)
