"""PID controllers: their laws term by term, limits, windup, and the laws of the oracle files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import flexure as fx
from flexure.blocks.controllers.controllers import PIDController
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, ValueRefusedError
from tests.oracle.reading import cases
from tests.support.tiers import for_each, thinned

Tick = Callable[[fx.Context], None]

R, Y, F = np.array([3.0, -1.0]), np.array([0.5, 2.0]), np.array([10.0, 20.0])
E = R - Y
Z, FILTERED = np.array([0.25, -4.0]), np.array([1.5, 0.75])


def context_of(block: PIDController, **inputs: Any) -> fx.Context:
    """Context with some inputs fixed and the others zero."""
    context = block.create_default_context()
    for port in block.input_ports:
        port.fix(context, inputs.get(port.name, np.zeros(block.size)))
    return context


def make(period: float | None, **options: Any) -> PIDController:
    return PIDController("pid", period=period, **options)


both_kinds = pytest.mark.parametrize("period", [None, 0.1])


# The continuous law --------------------------------------------------------------------------


def test_every_term_of_the_continuous_law() -> None:
    block = PIDController(
        "pid",
        kp=[2.0, 3.0],
        ki=0.5,
        kd=[4.0, -1.0],
        size=2,
        derivative_filter=0.2,
        setpoint_weight=0.8,
        derivative_weight=0.3,
    )
    context = context_of(block, setpoint=R, measurement=Y, feedforward=F)
    block.x.set(context, [*Z, *FILTERED])
    rate = (0.3 * R - Y - FILTERED) / 0.2
    expected = np.array([2.0, 3.0]) * (0.8 * R - Y) + 0.5 * Z + np.array([4.0, -1.0]) * rate + F
    np.testing.assert_allclose(block.u.eval(context), expected, rtol=1e-14)
    np.testing.assert_allclose(block.eval_time_derivatives(context), [*E, *rate], rtol=1e-14)
    assert context.get("integral").tolist() == Z.tolist()
    np.testing.assert_allclose(context.get("command"), expected, rtol=1e-14)


def test_rate_inputs_replace_the_filter_and_its_state() -> None:
    block = PIDController("pid", kp=2.0, ki=0.5, kd=4.0, size=2, rate_inputs=True)
    rates = {"setpoint_rate": [0.1, 0.2], "measurement_rate": [1.0, -1.0]}
    context = context_of(block, setpoint=R, measurement=Y, **rates)
    block.x.set(context, Z)
    edot = np.array([0.1 - 1.0, 0.2 + 1.0])
    np.testing.assert_allclose(block.u.eval(context), 2.0 * E + 4.0 * edot + 0.5 * Z, rtol=1e-14)
    assert block.eval_time_derivatives(context).tolist() == E.tolist()
    assert block.events == []


@pytest.mark.parametrize("case", cases("framework_pi_pendulum.json", "pid_pendulum"))
def test_the_continuous_law_of_the_oracle(case: dict[str, Any]) -> None:
    spec, reference = case["controller"], case["reference"]
    if reference["type"] != "constant":
        pytest.skip("the law is the same for every reference")
    block = PIDController("pid", kp=spec["kp"], ki=spec["ki"], kd=spec["kd"], rate_inputs=True)
    expected = case["expected"]
    for (q, v, z), u in zip(expected["state_q_qd_z"], expected["u"], strict=True):
        context = context_of(block, setpoint=reference["value"], measurement=q, measurement_rate=v)
        block.x.set(context, z)
        np.testing.assert_allclose(block.u.eval(context), [u], rtol=1e-12, atol=1e-12)
        rate = block.eval_time_derivatives(context)
        assert rate.tolist() == [reference["value"] - q]


def test_derivative_part_begins_at_zero_and_ignores_a_step_of_the_setpoint() -> None:
    builder = fx.DiagramBuilder("kick")
    pid = PIDController("pid", kp=0.0, kd=2.0, derivative_filter=0.1)
    builder.add_all(fx.Step("target", at=0.5), fx.Ramp("plant", slope=3.0, initial=4.0), pid)
    builder.connect("target.y", "pid.setpoint")
    builder.connect("plant.y", "pid.measurement")
    simulator = fx.Simulator(builder.build(), rtol=1e-10)
    simulator.initialize()
    assert pid.u.eval(simulator.context).tolist() == [0.0]
    simulator.advance_to(0.8)
    expected = -6.0 * (1.0 - np.exp(-8.0))
    np.testing.assert_allclose(pid.u.eval(simulator.context), [expected], rtol=1e-7)
    continued = fx.Simulator(simulator.system, simulator.context)
    continued.initialize()
    np.testing.assert_allclose(pid.u.eval(simulator.context), [expected], rtol=1e-7)


def test_the_default_weight_of_the_setpoint_rate_is_one_and_that_of_a_filtered_setpoint_zero() -> (
    None
):
    assert PIDController("pid", kd=1.0).derivative_weight.default == 0.0
    assert PIDController("pid", kd=1.0, rate_inputs=True).derivative_weight.default == 1.0


def test_a_controller_without_derivative_has_one_state_per_component() -> None:
    block = PIDController("pid", kp=2.0, ki=1.0, size=2)
    assert block.x.size == 2
    for name in ("kd", "derivative_filter", "derivative_weight", "started"):
        with pytest.raises(UnknownNameError):
            block.find(name)
    assert PIDController("pid", kd=0.0, size=2).x.element_names == (
        "integral[0]",
        "integral[1]",
        "filtered[0]",
        "filtered[1]",
    )


# What both kinds share -----------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("kd", [None, 1.0])
def test_feedthrough_of_the_continuous_controller_alone(
    period: float | None, kd: float | None
) -> None:
    block = make(period, kd=kd)
    inputs = {"setpoint", "measurement", "feedforward"}
    assert {port.name for port in block.input_ports} == inputs
    expected = {(name, "u") for name in inputs} if period is None else set()
    assert block.feedthrough == expected
    with_rates = make(period, kd=1.0, rate_inputs=True)
    assert {port.name for port in with_rates.input_ports} == inputs | {
        "setpoint_rate",
        "measurement_rate",
    }
    assert len(with_rates.feedthrough) == (5 if period is None else 0)


@both_kinds
def test_feedforward_may_be_left_open(period: float | None) -> None:
    feedforward = make(period, size=2).find("feedforward")
    assert feedforward.default.tolist() == [0.0, 0.0]


def command(block: PIDController, context: fx.Context, tick: Tick) -> Any:
    """Output of a controller, of a sampled one right after the first sample."""
    if block.period is not None:
        tick(context)
    return block.u.eval(context)


@both_kinds
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("kp", 4.0, 4.0),
        ("ki", 5.0, 12.0),
        ("kd", 10.0, 2.0),
        ("setpoint_weight", 3.0, 6.0),
        ("upper", 1.5, 1.5),
        ("lower", 3.0, 3.0),
        ("feedforward", -1.0, 1.0),
    ],
)
def test_gains_weights_and_limits_can_be_set(
    period: float | None, name: str, value: float, expected: float, tick: Tick
) -> None:
    block = make(period, kp=2.0, ki=0.0, kd=0.0)
    context = context_of(block, setpoint=1.0)
    integral = 2.0
    if period is None:
        block.x.set(context, [integral, 0.0])
    else:
        # The first sample adds 0.1 times the error of 1.
        block.integral.set(context, integral - 0.1)
    context.set(name, value)
    np.testing.assert_allclose(command(block, context, tick), [expected], rtol=1e-14)


@both_kinds
@pytest.mark.parametrize(
    ("anti_windup", "options"),
    [("back_calculation", {"tracking_time": 0.5}), ("conditional", {}), (None, {})],
)
def test_without_limits_the_integral_takes_the_error_exactly(
    period: float | None, anti_windup: Any, options: Any, tick: Tick
) -> None:
    block = make(period, kp=2.0, ki=0.3, anti_windup=anti_windup, **options)
    context = context_of(block, setpoint=0.7, measurement=0.1)
    if period is None:
        assert block.eval_time_derivatives(context).tolist() == [0.7 - 0.1]
    else:
        tick(context)
        assert block.integral(context).tolist() == [0.1 * (0.7 - 0.1)]


@pytest.mark.parametrize(
    ("setpoint", "expected"),
    [
        # v = 4 r within [-1, 2]; ż = r + (u - v) / (ki Tₜ) with ki Tₜ = 0.1.
        (0.25, 0.25),
        (1.0, 1.0 + (2.0 - 4.0) / 0.1),
        (-1.0, -1.0 + (-1.0 + 4.0) / 0.1),
    ],
)
def test_back_calculation_pulls_the_integral_back(setpoint: float, expected: float) -> None:
    block = PIDController("pid", kp=4.0, ki=0.5, lower=-1.0, upper=2.0, tracking_time=0.2)
    context = context_of(block, setpoint=setpoint)
    np.testing.assert_allclose(block.eval_time_derivatives(context), [expected], rtol=1e-14)
    block.tracking_time.set(context, 0.4)
    block.ki.set(context, 0.25)
    np.testing.assert_allclose(block.eval_time_derivatives(context), [expected], rtol=1e-14)


def test_back_calculation_without_integral_action_corrects_nothing() -> None:
    block = PIDController("pid", kp=4.0, ki=0.0, upper=2.0)
    context = context_of(block, setpoint=3.0)
    assert block.eval_time_derivatives(context).tolist() == [3.0]


@pytest.mark.parametrize("ki", [0.5, -0.5])
@pytest.mark.parametrize(
    ("integral", "setpoint", "stops"),
    [(10.0, 0.1, True), (10.0, -0.1, False), (-10.0, -0.1, True), (-10.0, 0.1, False),
     (0.0, 0.1, False)],
)  # fmt: skip
def test_conditional_integration_stops_only_what_pushes_further(
    ki: float, integral: float, setpoint: float, stops: bool
) -> None:
    block = PIDController("pid", kp=0.0, ki=ki, lower=-1.0, upper=1.0, anti_windup="conditional")
    sign = np.sign(ki)
    context = context_of(block, setpoint=sign * setpoint)
    block.x.set(context, sign * integral)
    expected = 0.0 if stops else sign * setpoint
    assert block.eval_time_derivatives(context).tolist() == [expected]


@both_kinds
def test_tracking_time_defaults_to_the_integral_time(period: float | None) -> None:
    block = make(period, kp=[6.0, 1.0, 1.0, 0.001], ki=[2.0, 0.0, -1.0, 1.0], size=4)
    shortest = 0.001 if period is None else 0.1
    assert block.tracking_time.default.tolist() == [3.0, 1.0, 1.0, shortest]


def recovery(controller: PIDController) -> float:
    """Error 4 s after a setpoint that was out of reach for 10 s came back into reach."""
    builder = fx.DiagramBuilder("recovery")
    builder.add_all(
        fx.Step("target", at=10.0, to=0.5, initial=2.0),
        controller,
        fx.FirstOrderLag("plant", time_constant=1.0),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    simulator = fx.Simulator(builder.build())
    simulator.advance_to(10.0)
    np.testing.assert_allclose(simulator.context.get("plant.y"), [1.0], atol=1e-3)
    simulator.advance_to(14.0)
    return float(abs(simulator.context.get("plant.y")[0] - 0.5))


@both_kinds
def test_recovery_from_a_limit_is_faster_with_anti_windup(period: float | None) -> None:
    errors = {
        way: recovery(make(period, kp=2.0, ki=2.0, lower=-1.0, upper=1.0, anti_windup=way))
        for way in ("back_calculation", "conditional", None)
    }
    assert errors["back_calculation"] < 0.05
    assert errors["conditional"] < 0.05
    assert errors[None] > 0.4


# The sampled law -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("framework_sampled.json", "digital_pi_pendulum"))
def test_the_sampled_law_of_the_oracle(case: dict[str, Any], tick: Tick) -> None:
    spec = case["controller"]
    block = PIDController(
        "pid", kp=spec["kp"], ki=spec["ki"], offset=spec["offset"], period=spec["period"]
    )
    context = context_of(block, setpoint=case["reference"])
    assert block.u.eval(context).tolist() == [0.0]
    for _, _, q, integral, u in case["expected"]["update_rows"]:
        block.measurement.fix(context, q)
        tick(context)
        np.testing.assert_allclose(block.integral(context), [integral], rtol=1e-12)
        np.testing.assert_allclose(block.u.eval(context), [u], rtol=1e-12)


@pytest.mark.parametrize("lag", [0.0, 0.03])
def test_the_sampled_derivative_is_a_filtered_backward_difference(lag: float, tick: Tick) -> None:
    period = 0.1
    block = PIDController(
        "pid", kp=0.0, kd=2.0, derivative_filter=lag, derivative_weight=0.5, period=period
    )
    context = context_of(block)
    setpoints = np.array([4.0, 4.0, 6.0, 6.0, 6.0])
    measurements = np.array([1.0, 2.0, -1.0, 0.5, 0.0])
    found = []
    for r, y in zip(setpoints, measurements, strict=True):
        block.setpoint.fix(context, r)
        block.measurement.fix(context, y)
        tick(context)
        found.append(block.u.eval(context)[0])
    changes = np.diff(0.5 * setpoints - measurements, prepend=1.0)
    expected = 2.0 * scipy.signal.lfilter([1.0], [lag + period, -lag], changes)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert found[0] == 0.0


def test_the_sampled_controller_takes_given_rates(tick: Tick) -> None:
    block = PIDController("pid", kp=0.0, kd=2.0, rate_inputs=True, period=0.1)
    context = context_of(block, setpoint_rate=3.0, measurement_rate=0.5)
    tick(context)
    assert block.u.eval(context).tolist() == [5.0]
    assert [state.name for state in block.discrete_states] == ["integral", "held"]


def test_sampled_back_calculation_pulls_the_integral_back(tick: Tick) -> None:
    block = PIDController("pid", kp=4.0, ki=0.5, upper=2.0, tracking_time=0.2, period=0.1)
    context = context_of(block, setpoint=1.0)
    tick(context)
    assert block.u.eval(context).tolist() == [2.0]
    # v = 4 + 0.5 * 0.1, and the integral goes back by T (v - u) / (ki Tₜ).
    np.testing.assert_allclose(block.integral(context), [0.1 - 0.1 * 2.05 / 0.1], rtol=1e-13)


def test_sampled_conditional_integration_leaves_the_sample_out(tick: Tick) -> None:
    block = PIDController("pid", kp=4.0, ki=0.5, upper=2.0, anti_windup="conditional", period=0.1)
    context = context_of(block, setpoint=1.0)
    tick(context)
    assert block.integral(context).tolist() == [0.0]
    assert block.u.eval(context).tolist() == [2.0]


def test_a_sampled_controller_tends_to_the_continuous_one() -> None:
    def final(controller: PIDController) -> float:
        builder = fx.DiagramBuilder("loop")
        builder.add_all(
            fx.Constant("target", 1.0),
            controller,
            fx.TransferFunction("plant", [1.0], [1.0, 0.6, 1.0]),
        )
        builder.connect("target.y", "pid.setpoint")
        builder.connect_chain("pid", "plant", "pid.measurement")
        simulator = fx.Simulator(builder.build(), rtol=1e-8)
        simulator.advance_to(1.5)
        return float(simulator.context.get("plant.y")[0])

    gains: Any = {"kp": 3.0, "ki": 1.0, "kd": 0.8, "derivative_filter": 0.1}
    exact = final(PIDController("pid", **gains))
    coarse, fine = (
        final(PIDController("pid", period=period, **gains)) - exact for period in (0.02, 0.01)
    )
    assert abs(fine) < 0.01
    assert fine / coarse == pytest.approx(0.5, abs=0.05)


# Gains from outside --------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("anti_windup", thinned(["back_calculation", "conditional", None], fast=2))
def test_gain_ports_that_are_left_open_change_nothing(
    period: float | None, anti_windup: Any
) -> None:
    def motion(**options: Any) -> Any:
        builder = fx.DiagramBuilder("loop")
        builder.add_all(
            fx.Constant("target", 1.0),
            make(period, kp=3.0, ki=2.0, kd=0.5, upper=1.5, anti_windup=anti_windup, **options),
            fx.TransferFunction("plant", [1.0], [1.0, 0.6, 1.0]),
        )
        builder.connect("target.y", "pid.setpoint")
        builder.connect_chain("pid", "plant", "pid.measurement")
        result = fx.simulate(builder.build(), 4.0, rtol=1e-9, atol=1e-11)
        return result.sample("pid.u", np.linspace(0.05, 3.95, 40))

    commands = motion()
    assert commands.max() == 1.5
    np.testing.assert_allclose(motion(gain_ports=True), commands, atol=1e-6)


@both_kinds
def test_a_jump_of_the_integral_gain_does_not_move_the_output(period: float | None) -> None:
    builder = fx.DiagramBuilder("ramp")
    builder.add_all(
        fx.Constant("target", 1.0),
        fx.Constant("measured", 0.0),
        fx.Step("ki", at=1.0, initial=2.0, to=10.0),
        make(period, kp=0.0, gain_ports=True),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("measured", "pid.measurement")
    builder.connect_chain("ki", "pid.ki")
    result = fx.simulate(builder.build(), 2.0)
    before, after, last = result.sample("pid.u", [0.999, 1.001, 1.999])
    step = 0.002 if period is None else 0.1  # a sample counts at once
    np.testing.assert_allclose(before, 2.0, atol=2.0 * step)
    assert 0.0 <= after - before <= 10.001 * step
    np.testing.assert_allclose(last, 12.0, atol=10.001 * step)


def test_a_schedule_drives_all_gains() -> None:
    """Of a constant error, with gains that grow with a signal, here the time."""
    builder = fx.DiagramBuilder("scheduled")
    builder.add_all(
        fx.Ramp("signal"),
        fx.Constant("target", 2.0),
        fx.Ramp("measured"),
        fx.PIDController("pid", kd=0.0, derivative_filter=0.02, gain_ports=True),
    )
    gains = {"kp": [1.0, 5.0], "ki": [2.0, 10.0], "kd": [3.0, 1.0]}
    for gain, values in gains.items():
        builder.add(fx.GainSchedule(gain, [0.0, 2.0], values))
        builder.connect("signal.y", f"{gain}.signal")
        builder.connect(f"{gain}.y", f"pid.{gain}")
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("measured", "pid.measurement")
    t = np.array([0.5, 0.7, 1.5, 1.9])  # the filter has come to rest
    found = fx.simulate(builder.build(), 2.0, rtol=1e-7, atol=1e-8).sample("pid.u", t)
    integral = 4.0 * t + 3.0 * t**2 - 4.0 * t**3 / 3.0  # of (2 + 4 t) (2 - t)
    np.testing.assert_allclose(found, (1.0 + 2.0 * t) * (2.0 - t) + integral - (3.0 - t), rtol=1e-5)


def test_the_output_needs_the_gains_at_once_but_that_of_the_integral() -> None:
    block = PIDController("pid", kd=0.0, gain_ports=True)
    assert {name for name, _ in block.feedthrough} == {
        *("setpoint", "measurement", "feedforward", "kp", "kd")
    }
    assert [port.name for port in block.input_ports][3:] == ["kp", "ki", "kd"]
    with pytest.raises(UnknownNameError, match="kd"):
        PIDController("pid", gain_ports=True).find("kd")


# Refusals ------------------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"kp": [1.0, 2.0]}, "one number for kp.*For 2 components, pass size=2"),
        ({"size": 3, "kd": [1.0, 2.0]}, "one number or 3 numbers for kd"),
        ({"size": 0}, "size >= 1"),
        ({"anti_windup": "clamping"}, "'back_calculation', 'conditional' or None"),
        ({"rate_inputs": True}, "kd=None"),
        ({"lower": 1.0, "upper": -1.0}, "lower <= upper"),
        ({"tracking_time": [1.0, 2.0]}, "tracking_time"),
        ({"ki": "much"}, "real numbers for ki"),
        ({"gain_ports": "ki"}, "True or False for gain_ports"),
        ({"gain_ports": True, "ki": [1.0, 2.0]}, "one number for ki"),
    ],
)
def test_controllers_refuse_what_does_not_fit(
    period: float | None, options: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(DeclarationError, match=culprit):
        make(period, **options)


@both_kinds
@pytest.mark.parametrize(
    "options",
    [
        {"kp": np.inf},
        {"upper": np.nan},
        {"ki": np.nan},
        {"ki": np.nan, "gain_ports": True},
        {"kd": 1.0, "derivative_filter": -0.1},
        {"tracking_time": 0.0},
        {"upper": 1.0, "tracking_time": np.inf},
    ],
)
def test_controllers_refuse_values_out_of_bounds(
    period: float | None, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueRefusedError, match=r"pid\."):
        make(period, **options)


def test_a_filter_needs_time_only_in_the_continuous_controller() -> None:
    with pytest.raises(ValueRefusedError, match="derivative_filter"):
        PIDController("pid", kd=1.0, derivative_filter=0.0)
    assert PIDController("pid", kd=1.0, derivative_filter=0.0, period=0.1).has_filter


def test_the_tracking_time_of_a_sampled_controller_is_at_least_one_period() -> None:
    with pytest.raises(ValueRefusedError, match="tracking_time"):
        PIDController("pid", tracking_time=0.05, period=0.1)


@for_each(("period", "offset"), [(0.0, 0.0), (-0.1, 0.0), (0.1, -1.0)])
def test_a_sampled_controller_needs_a_clock(period: float, offset: float) -> None:
    with pytest.raises(DeclarationError, match="periodic"):
        PIDController("pid", offset=offset, period=period)
