"""Measured frequency responses, describing functions and limit cycles against exact answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import flexure as fx

OMEGA = np.geomspace(0.5, 50.0, 8)


def loop(*blocks: fx.System) -> fx.Diagram:
    """Blocks in a ring."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(*blocks)
    builder.connect_chain(*blocks, blocks[0])
    return builder.build()


def third_order(
    block: fx.System, gain: float = 1.0, num: Sequence[float] = (1.0,), den: Any = None
) -> fx.Diagram:
    """A block that drives gain num / den, by default 1 / (s + 1)³, with negative feedback."""
    plant = fx.TransferFunction("plant", num, (1.0, 3.0, 3.0, 1.0) if den is None else den)
    return loop(fx.Gain("minus", -gain), block, plant)


def relay(width: float = 0.1, on: float = 1.0, off: float = -1.0) -> fx.Relay:
    """A relay that switches at ± width."""
    return fx.Relay("relay", width, -width, on_value=on, off_value=off)


def servo(period: float | None = 0.01) -> fx.Diagram:
    """A sampled controller that moves a mass on a spring."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Constant("target", 0.0),
        fx.PIDController("pid", kp=8.0, ki=20.0, kd=1.2, derivative_filter=0.02, period=period),
        fx.TransferFunction("arm", [1.0], [0.12, 0.05, 5.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "arm", "pid.measurement")
    return builder.build()


# Frequency responses ------------------------------------------------------------------------


@pytest.mark.parametrize("excitation", ["sine", "multisine", "chirp"])
def test_linear_loops_have_the_response_of_their_linear_model(excitation: Any) -> None:
    """At a wire, for its readers or one of them, with openings, from any time on."""
    system = servo(None)
    context = system.create_default_context()
    context.time = 3.0
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("target.y", ()),
        ("arm.u", ()),
        ("pid.u", ("pid.u",)),
        ("pid.measurement", ("arm.u",)),
    ]
    outputs = ["arm.y", "pid.u", "arm.u", "pid.measurement"]
    for entry, openings in cases if excitation == "sine" else cases[:2]:
        found = fx.frequency_response(
            *(system, entry, outputs, OMEGA, 0.1),
            excitation=excitation,
            context=context,
            openings=openings,
            tolerance=1e-5,
        )
        model = fx.linearize(system, context, [entry], outputs, openings=openings)
        exact = model.frequency_response(OMEGA)[:, :, 0]
        assert found.settled.all()
        assert found.output_names == model.output_names
        assert (np.abs(found.response - exact) <= 2e-5 * np.abs(exact) + 1e-7).all()
        assert found.coherence[np.abs(exact) > 0.0].min() > 0.9999


def test_a_sampled_loop_has_the_response_of_its_sampled_model_up_to_half_its_rate() -> None:
    system, omega = servo(), np.geomspace(1.0, np.pi / 0.01, 12)
    outputs = ["arm.y", "pid.u"]
    found = fx.frequency_response(system, "pid.setpoint", outputs, omega, 0.1, period=0.01)
    model = fx.linearize(system, None, ["pid.setpoint"], outputs, period=0.01)
    exact = model.frequency_response(omega)[:, :, 0]
    assert np.max(np.abs(found.response / exact - 1.0)) < 2e-5
    assert (found.leakage[:-1] < 1e-3).all()
    assert found.notes == ()


def test_continuous_signals_of_a_sampled_loop_show_the_hold_and_its_images() -> None:
    """A held signal has sin(x)/x of the response of its samples, x = ωT/2, and images."""
    period, omega = 0.01, np.array([2.0, 30.0, 200.0])
    system = servo(period)
    found = fx.frequency_response(system, "pid.setpoint", ["pid.u", "arm.y"], omega, 0.1)
    model = fx.linearize(system, None, ["pid.setpoint"], ["pid.u"], period=period)
    x = 0.5 * omega * period
    exact = model.frequency_response(omega)[:, 0, 0] * np.sin(x) / x * np.exp(-1j * x)
    assert np.max(np.abs(found.response[:, 0] / exact - 1.0)) < 5e-5
    arm = 1.0 / (0.12 * (1j * omega) ** 2 + 0.05j * omega + 5.0)
    assert np.max(np.abs(found.response[:, 1] / (exact * arm) - 1.0)) < 1e-3
    rates = 2.0 * np.pi / period * np.arange(1, 3)
    images = [
        np.hypot.reduce([*(w / (r - w) for r in rates), *(w / (r + w) for r in rates)])
        for w in omega
    ]
    assert np.max(np.abs(found.images[1:, 0] / images[1:] - 1.0)) < 1e-2
    beyond = fx.frequency_response(system, "pid.setpoint", "arm.y", [350.0], 0.1)
    assert "aliasing" in beyond.notes[0]
    assert "314.159 rad/s" in beyond.notes[0]


def test_images_of_many_frequencies_are_avoided_or_said() -> None:
    builder = fx.DiagramBuilder("held")
    hold, plant = fx.ZeroOrderHold("hold", 0.1), fx.FirstOrderLag("plant", 1.0)
    builder.add_all(fx.Constant("target", 0.0), hold, plant)
    builder.connect_chain("target", "hold", "plant")
    system = builder.build()
    omega = np.array([5.0, 20.0, 27.0, 40.0])
    exact = np.sinc(0.05 * omega / np.pi) * np.exp(-0.05j * omega) / (1j * omega + 1.0)
    found = fx.frequency_response(system, "target.y", "plant.y", omega[:3], excitation="chirp")
    assert np.max(np.abs(found.response[:, 0] / exact[:3] - 1.0)) < 5e-3
    mixed = np.array([2.0, 20.0, 20.0 * np.pi - 20.0])  # the last one at the image of the second
    every: list[tuple[Any, Any, str]] = [
        ("chirp", omega, r"\[.*40\]"),
        ("multisine", mixed, r"\[20, 42.8319\]"),
    ]
    for excitation, places, where in every:
        said = rf"by a {excitation} at {where} rad/s: updates every 0.1 s"
        with pytest.warns(UserWarning, match=said):
            fx.frequency_response(system, "target.y", "plant.y", places, excitation=excitation)


def test_amplitudes_change_the_response_of_a_saturation_as_its_describing_function() -> None:
    limit = fx.Saturation("limit", -1.0, 1.0)
    context = limit.create_default_context()
    context.set("u", 0.0)
    sizes = np.array([0.5, 2.0, 5.0])
    found = fx.frequency_response(limit, "u", "y", [1.0, 2.0, 3.0], sizes, context=context)
    gains = fx.describing_function(limit, sizes).gains
    assert np.max(np.abs(found.response[:, 0] - gains)) < 1e-4
    ratio = 1.0 / sizes[1:]
    angles = np.arcsin(ratio)
    power = sizes[1:] ** 2 * (angles - 0.5 * np.sin(2.0 * angles)) * 2.0 / np.pi
    power += 2.0 * (1.0 - 2.0 * angles / np.pi)  # twice the mean square
    first = sizes[1:] * gains.real[1:]
    exact = np.sqrt(power / first**2 - 1.0)
    assert np.allclose(found.distortion[1:, 0], exact, rtol=0.1)
    assert np.allclose(1.0 / found.coherence[1:, 0] - 1.0, exact**2, rtol=1e-2)
    for excitation in ("multisine", "chirp"):
        other = fx.frequency_response(
            *(limit, "u", "y", [1.0, 2.0, 3.0], 5.0), context=context, excitation=excitation
        )
        assert (other.coherence < 0.999).any()
        assert (other.distortion > 0.01).any()


def test_what_does_not_settle_has_no_response() -> None:
    slow = third_order(fx.Gain("k", 1.0), 7.99)
    with pytest.raises(fx.errors.EvaluationError, match=r"'plant.y' is not settled at \[1, 2\]"):
        fx.frequency_response(slow, "minus.u", "plant.y", [1.0, 2.0], max_periods=50)
    with pytest.raises(fx.errors.EvaluationError, match="not settled"):
        fx.frequency_response(third_order(fx.Gain("k", 1.0), 10.0), "minus.u", "plant.y", [1.0])
    root = fx.FunctionBlock("root", np.sqrt)
    (entry,), (output,) = root.input_ports, root.output_ports
    context = root.create_default_context()
    entry.fix(context, 1.5)
    with pytest.warns(UserWarning, match=r"is NaN or infinite at \[2\] rad/s"):
        found = fx.frequency_response(root, entry, output, [1.0, 2.0], [1.0, 2.0], context=context)
    assert found.settled.tolist() == [[True], [False]]
    assert np.isfinite(found.response[:, 0]).tolist() == [True, False]
    with pytest.raises(fx.errors.EvaluationError, match="NaN or infinite"):
        fx.frequency_response(root, entry, output, [1.0], 2.0, context=context)


def test_an_amplitude_in_a_dead_zone_gives_no_response_and_says_so() -> None:
    zone = fx.DeadZone("zone", -1.0, 1.0)
    context = zone.create_default_context()
    context.set("u", 0.0)
    found = fx.frequency_response(zone, "u", "y", [1.0], 0.9, context=context)
    assert found.response[0, 0] == 0.0
    assert "within a dead zone" in found.notes[0]


def test_bad_arguments_of_measurements_are_refused() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    context.set("u", 0.0)
    good: dict[str, Any] = {"input": "u", "outputs": "y", "frequency": [1.0], "context": context}
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        *((fx.errors.ValueRefusedError, {"frequency": f}) for f in ([], [0.0], [-1.0], [2.0, 1.0])),
        *((fx.errors.ValueRefusedError, {"frequency": f}) for f in ([np.nan], [np.inf], "a", None)),
        (fx.errors.ValueRefusedError, {"frequency": [400.0], "period": 0.01}),
        *((fx.errors.ValueRefusedError, {"amplitude": a}) for a in (0.0, -1.0, np.nan, [1.0, 2.0])),
        *((fx.errors.ValueRefusedError, {"tolerance": t}) for t in (0.0, 1.0, np.nan)),
        (fx.errors.ValueRefusedError, {"excitation": "noise"}),
        (fx.errors.ValueRefusedError, {"max_periods": 1.0}),
        *((fx.errors.UnknownNameError, {"input": name}) for name in ("v", "y[3]", "time_constant")),
        *((fx.errors.UnknownNameError, {"outputs": name}) for name in ("z", "time_constant")),
        (fx.errors.UnknownNameError, {"openings": "u"}),
        (fx.errors.ValueRefusedError, {"outputs": []}),
        (fx.errors.EvaluationError, {"context": None}),
    ]
    for kind, change in refused:
        with pytest.raises(kind):
            fx.frequency_response(lag, **(good | change))


def test_measuring_changes_neither_system_nor_context() -> None:
    system = servo()
    context = system.create_default_context()
    before, nodes = context.to_dict(), set(system.graph.nodes)
    fx.frequency_response(system, "arm.u", "arm.y", [1.0], context=context, openings="pid.u")
    assert context.to_dict() == before
    assert set(system.graph.nodes) == nodes


def test_pictures_show_measurement_and_linear_model_in_the_same_channels() -> None:
    system = servo()
    outputs = ["arm.y", "pid.u"]
    found = fx.frequency_response(
        system, "pid.setpoint", outputs, [1.0, 5.0, 20.0], 0.1, period=0.01
    )
    model = fx.linearize(system, None, ["pid.setpoint"], outputs, period=0.01)
    figure = found.plot(model)
    for axes in figure.axes:
        line, dots = (np.asarray(each.get_xydata()) for each in (axes.lines[0], axes.lines[-1]))
        assert np.allclose(dots[:, 1], np.interp(dots[:, 0], line[:, 0], line[:, 1]), atol=0.5)
    assert len(found.plot(units="Hz").axes) == 4
    with pytest.raises(fx.errors.ValueRefusedError, match="1 input and 2 outputs"):
        found.plot(fx.linearize(system, None, ["pid.setpoint"], ["arm.y"], period=0.01))
    assert "arm.y / pid.setpoint, by sine" in str(found)


# Describing functions -----------------------------------------------------------------------


def saturation(ratio: float) -> float:
    """Gain of a saturation with limit 1 / ratio of the amplitude."""
    return 2.0 / np.pi * (np.arcsin(ratio) + ratio * np.sqrt(1.0 - ratio**2)) if ratio < 1 else 1.0


def staircase(amplitude: float, step: float) -> float:
    """Gain of a quantizer."""
    jumps = (np.arange(1, 100) - 0.5) * step
    ratios = jumps[jumps < amplitude] / amplitude
    return float(4.0 * step / (np.pi * amplitude) * np.sum(np.sqrt(1.0 - ratios**2)))


FORMULAS: dict[str, tuple[fx.System, Callable[[float], complex]]] = {
    "saturation": (fx.Saturation("s", -1.0, 1.0), lambda a: saturation(1.0 / a)),
    "dead zone": (fx.DeadZone("d", -1.0, 1.0), lambda a: 1.0 - saturation(1.0 / a)),
    "quantizer": (fx.Quantizer("q", 0.5), lambda a: staircase(a, 0.5)),
    "relay": (
        relay(0.5),
        lambda a: 4.0 / (np.pi * a) * (np.sqrt(1.0 - 0.25 / a**2) - 0.5j / a) if a > 0.5 else 0.0,
    ),
    "Coulomb": (fx.FunctionBlock("c", np.sign), lambda a: 4.0 / (np.pi * a)),
    "cube": (fx.FunctionBlock("k", lambda u: u**3), lambda a: 0.75 * a**2),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_describing_functions_are_those_of_textbooks(name: str) -> None:
    block, formula = FORMULAS[name]
    sizes = np.array([0.51, 0.75, 1.0 + 1e-9, 1.3, 1.9779421910784107, 4.6])
    found = fx.describing_function(block, sizes)
    assert np.max(np.abs(found.gains - [formula(a) for a in sizes])) < 1e-7
    assert np.max(np.abs(found.means)) < 1e-7


def test_describing_functions_have_a_bias_and_the_values_of_a_context() -> None:
    inner = fx.Saturation("motor", -1.0, 1.0)
    system = third_order(inner)
    context = system.create_default_context()
    context.set("motor.upper", 3.0)
    found = fx.describing_function(inner, [1.0, 2.0], bias=1.0, context=context)
    theta = 2.0 * np.pi * (np.arange(200000) + 0.5) / 200000
    for k, size in enumerate((1.0, 2.0)):
        y = np.clip(1.0 + size * np.sin(theta), -1.0, 3.0)
        assert abs(found.means[k] - y.mean()) < 1e-7
        assert abs(found.gains[k] - 2.0 * np.mean(y * np.sin(theta)) / size) < 1e-7
    found.plot()


def test_bad_arguments_of_describing_functions_are_refused() -> None:
    for sizes in ([], [0.0], [-1.0], [np.nan], "a"):
        with pytest.raises(fx.errors.ValueRefusedError):
            fx.describing_function(fx.Saturation("s", -1.0, 1.0), sizes)
    with pytest.raises(fx.errors.ValueRefusedError, match="one input and one output"):
        fx.describing_function(fx.Sum("sum"), [1.0])
    with pytest.raises(fx.errors.EvaluationError, match="repeats"):
        fx.describing_function(fx.Integrator("x"), [1.0], bias=1.0)


# Limit cycles -------------------------------------------------------------------------------


def tsypkin(width: float) -> tuple[float, float]:
    """Amplitude and frequency of the exact oscillation of a relay with 1 / (s (s + 1)²).

    In half a period h, the states go from x to -x under the output 1, so that
    ``x = -(I + e^(Ah))⁻¹ ∫ e^(As) ds B``. There the relay switches on: -y = width.
    """
    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, -2.0]])
    B = np.array([0.0, 0.0, 1.0])
    whole = np.zeros((4, 4))
    whole[:3, :3], whole[:3, 3] = A, B

    def start(half: float) -> Any:
        step = expm(whole * half)
        return -np.linalg.solve(np.eye(3) + step[:3, :3], step[:3, 3])

    half = brentq(lambda h: start(h)[0] + width, 0.5, 20.0, xtol=1e-14)
    x, count = np.append(start(half), 1.0), 20000
    each, omega = expm(whole * half / count), np.pi / half
    points = [x[0]]
    for _ in range(count):
        x = each @ x
        points.append(x[0])
    times = np.linspace(0.0, half, count + 1)
    values = np.array(points) * np.exp(-1j * omega * times)
    return float(abs(2.0 / half * np.trapezoid(values, times))), omega


@pytest.mark.full
def test_a_relay_oscillates_as_tsypkin_computed() -> None:
    plant = (1.0, 2.0, 1.0, 0.0)
    for width in (1e-3, 0.1):
        found = fx.limit_cycles(
            third_order(relay(width), den=plant), "relay", np.geomspace(0.11, 2.0, 12)
        )
        amplitude, omega = tsypkin(width)
        assert len(found) == 1
        assert found.is_stable.all()
        assert found.is_confirmed.all()
        assert found.simulated_frequencies[0] == pytest.approx(omega, rel=1e-5)
        assert found.simulated_amplitudes[0] == pytest.approx(amplitude, rel=1e-5)
        a, w = found.amplitudes[0], found.frequencies[0]
        gain = 4.0 / (np.pi * a) * (np.sqrt(1.0 - (width / a) ** 2) - 1j * width / a)
        assert abs(gain / (1j * w * (1j * w + 1.0) ** 2) + 1.0) < 1e-6
    assert found.plot().get_legend() is not None
    assert "limit cycles at the input of 'relay'" in str(found)


@pytest.mark.full
def test_loops_have_no_cycle_one_or_two() -> None:
    sizes = np.geomspace(0.1, 50.0, 25)
    limit = fx.Saturation("limit", -1.0, 1.0)
    none = fx.limit_cycles(third_order(limit, 7.9), "limit", sizes)
    assert len(none) == 0
    assert "no limit cycle at 'limit'" in str(none)
    one = fx.limit_cycles(third_order(fx.Saturation("limit", -1.0, 1.0), 12.0), "limit", sizes)
    assert one.frequencies == pytest.approx([np.sqrt(3.0)], rel=1e-6)
    exact = brentq(lambda a: saturation(1.0 / a) - 8.0 / 12.0, 1.0, 9.0)
    assert one.amplitudes == pytest.approx([exact], rel=1e-6)
    assert one.is_stable.all()
    assert one.is_confirmed.all()
    # The loop 2 (s + 1)² / s³ is stable from a quarter of its gain on: large motions grow.
    triple = (1.0, 2.0, 1.0), (1.0, 0.0, 0.0, 0.0)
    system = third_order(fx.Saturation("limit", -1.0, 1.0), 2.0, *triple)
    conditional = fx.limit_cycles(system, "limit", sizes)
    exact = brentq(lambda a: saturation(1.0 / a) - 0.25, 1.0, 9.0)
    assert conditional.amplitudes == pytest.approx([exact], rel=1e-6)
    assert conditional.is_stable.tolist() == [False]
    assert conditional.is_confirmed.all()
    bent = fx.FunctionBlock(
        "bent", lambda u: np.clip(10.0 * (u - np.clip(u, -1.0, 1.0)), -8.0, 8.0)
    )
    two = fx.limit_cycles(third_order(bent, 2.5), "bent", np.geomspace(0.5, 50.0, 40))
    assert two.is_stable.tolist() == [False, True]
    assert two.is_confirmed.all()
    gain = [10.0 * (saturation(min(1.8 / a, 1.0)) - saturation(1.0 / a)) for a in two.amplitudes]
    assert gain == pytest.approx([3.2, 3.2], rel=1e-6)


@pytest.mark.full
def test_a_relay_without_negative_output_has_a_mean_and_its_prediction_is_off() -> None:
    builder = fx.DiagramBuilder("oven")
    builder.add_all(
        fx.Constant("target", 20.0),
        fx.Sum("error", "+-"),
        relay(0.5, 100.0, 0.0),
        fx.TransferFunction("plant", [1.0], [8.0, 12.0, 6.0, 1.0]),
    )
    builder.connect_chain("target", "error.u1", "relay", "plant", "error.u2")
    found = fx.limit_cycles(builder.build(), "relay", np.geomspace(4.0, 20.0, 6))
    assert len(found) == 1
    assert found.is_stable.all()
    assert found.is_confirmed.all()
    a, w, b = found.amplitudes[0], found.frequencies[0], found.biases[0]
    on, off = np.arcsin((0.5 - b) / a), np.pi - np.arcsin((-0.5 - b) / a)
    assert 20.0 - 100.0 * (off - on) / (2.0 * np.pi) == pytest.approx(b, rel=1e-5)
    first = 100.0j / np.pi * (np.exp(-1j * off) - np.exp(-1j * on)) / a * 1j
    assert abs(first / (1.0 + 2j * w) ** 3 + 1.0) < 1e-4
    assert "differs by 20 % from its simulation" in found.notes[0]


def test_bad_arguments_of_limit_cycles_are_refused() -> None:
    system = third_order(relay())
    for sizes in ([], [1.0], [2.0, 1.0], [0.0, 1.0], [np.nan, 1.0], "a"):
        with pytest.raises(fx.errors.ValueRefusedError):
            fx.limit_cycles(system, "relay", sizes)
    with pytest.raises(fx.errors.UnknownNameError):
        fx.limit_cycles(system, "switch", [1.0, 2.0])
    with pytest.raises(fx.errors.FlexureError, match="'relay'"):
        fx.limit_cycles(system, relay(), [1.0, 2.0])
    lag = fx.FirstOrderLag("lag", 0.1)
    with pytest.raises(fx.errors.EvaluationError, match="amplitude alone"):
        fx.limit_cycles(third_order(lag), "lag", [1.0, 2.0])
    with pytest.raises(fx.errors.EvaluationError, match="sampled"):
        fx.limit_cycles(servo(), "arm", [1.0, 2.0])
