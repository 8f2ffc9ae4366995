"""Sensitivities are the derivatives of closed forms, and of simulations at changed parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    NonFiniteError,
    TraceError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.solvers.analysis.sensitivities.sensitivities import warn_of_differences
from tests.support.mechanics.mechanics import ForeignPendulum, Pendulum, servo
from tests.support.tiers import crossed


def swinging(angle: float = 1.0, torque: float = 0.2, kind: type[Pendulum] = Pendulum) -> Any:
    pendulum = kind(angle=angle)
    context = pendulum.create_default_context()
    pendulum.torque.fix(context, torque)
    return pendulum, context


def by_differences(
    system: fx.System, context: fx.Context, path: str, t_final: float, step: float = 1e-4
) -> Any:
    """Differentiate the final state of simulations by a parameter with one entry."""
    finals = []
    for sign in (1.0, -1.0):
        changed = context.clone()
        value = np.asarray(context.get(path))
        changed.set(path, value + sign * step)
        result = fx.simulate(
            system, t_final, context=changed, method="DOP853", rtol=1e-11, atol=1e-13
        )
        finals.append(result.context.continuous_state)
    return (finals[0] - finals[1]) / (2.0 * step)


# Closed forms ------------------------------------------------------------------------------------


@given(st.floats(0.2, 5.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.0, 4.0))
@settings(max_examples=20)
def test_a_lag_has_the_sensitivities_of_its_closed_form(
    tau: float, start: float, command: float, t: float
) -> None:
    lag = fx.FirstOrderLag("lag", tau, gain=1.5, initial=start)
    context = lag.create_default_context()
    lag.u.fix(context, command)
    result = fx.parameter_sensitivity(lag, ["time_constant", "gain", "u"], t, context=context)
    decay = math.exp(-t / tau)
    offset = start - 1.5 * command
    np.testing.assert_allclose(result.states[-1], [1.5 * command + offset * decay], atol=1e-7)
    np.testing.assert_allclose(
        result["time_constant"], [offset * decay * t / tau**2], atol=1e-6 / tau
    )
    np.testing.assert_allclose(result["gain"], [command * (1.0 - decay)], atol=1e-7)
    np.testing.assert_allclose(result["u"], [[1.5 * (1.0 - decay)]], atol=1e-7)


def test_the_matrices_of_a_state_space_have_the_variation_of_its_exponential() -> None:
    block = fx.StateSpace("block", [[0.0, 1.0], [-4.0, 0.0]], [[], []], [1.0, 0.0], initial=[1, 0])
    result = fx.parameter_sensitivity(block, ["A"], 1.3, times=[0.0, 0.7, 1.3])
    # x = cos(w t) with w = sqrt(-A[1, 0]), so that ∂x/∂A[1, 0] = t sin(w t) / (2 w).
    t = np.array([0.0, 0.7, 1.3])
    np.testing.assert_allclose(result.time, t)
    np.testing.assert_allclose(result.states[:, 0], np.cos(2.0 * t), atol=1e-7)
    assert result.derivatives["A"].shape == (3, 2, 2, 2)
    np.testing.assert_allclose(
        result.derivatives["A"][:, 0, 1, 0], t * np.sin(2.0 * t) / 4.0, atol=1e-7
    )
    assert result["A"].shape == (2, 2, 2)


# Simulations at changed parameters ---------------------------------------------------------------


@pytest.mark.parametrize("path", ["mass", "length", "damping", "torque"])
def test_a_pendulum_agrees_with_simulations(path: str) -> None:
    pendulum, context = swinging()
    result = fx.parameter_sensitivity(pendulum, [path], 3.0, context=context)
    expected = by_differences(pendulum, context, path, 3.0)
    np.testing.assert_allclose(result[path].reshape(2), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    "path", ["pid.kp", "pid.ki", "pid.kd", "target.value", "pid.derivative_filter"]
)
def test_a_loop_that_sets_its_filter_at_the_start_agrees_with_simulations(path: str) -> None:
    diagram = servo(2.0, 1.0, 0.5, derivative_filter=0.1, derivative_weight=0.5)
    context = diagram.create_default_context()
    result = fx.parameter_sensitivity(diagram, [path], 1.0, context=context)
    expected = by_differences(diagram, context, path, 1.0)
    np.testing.assert_allclose(result[path].reshape(-1), expected, rtol=2e-5, atol=1e-6)


def test_all_parameters_at_once_and_one_by_one_are_the_same() -> None:
    pendulum, context = swinging()
    paths = ["mass", "length", "damping"]
    together = fx.parameter_sensitivity(pendulum, paths, 2.0, context=context)
    for path in paths:
        alone = fx.parameter_sensitivity(pendulum, [path], 2.0, context=context)
        np.testing.assert_allclose(together[path], alone[path], rtol=1e-6, atol=1e-7)
    assert together.state_names == ["x[angle]", "x[rate]"]


def test_a_component_has_its_part_of_the_sensitivity_to_the_whole() -> None:
    system = fx.StateSpace("system", [[0.0, 1.0], [-4.0, -0.5]], [0.0, 1.0], [1.0, 0.0])
    context = system.create_default_context()
    context.set("x", [1.0, -1.0])
    context.set("u", 0.5)
    whole = fx.parameter_sensitivity(system, ["A"], 2.0, context=context)
    part = fx.parameter_sensitivity(system, ["A[1,0]", "A[0,1]"], 2.0, context=context)
    np.testing.assert_allclose(part["A[1,0]"], whole["A"][:, 1, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(part["A[0, 1]"], whole["A"][:, 0, 1], rtol=1e-7, atol=1e-9)
    assert list(part.derivatives) == ["A[1, 0]", "A[0, 1]"]
    with pytest.raises(UnknownNameError, match="every name once"):
        fx.parameter_sensitivity(system, ["A", "A[1,0]"], 2.0, context=context)


def test_a_parameter_without_influence_has_the_sensitivity_zero() -> None:
    builder = fx.DiagramBuilder("pair")
    builder.add_all(Pendulum("first", 0.5), Pendulum("second", 0.5), fx.Constant("torque", 0.1))
    builder.connect("torque.y", "first.torque")
    builder.connect("torque.y", "second.torque")
    result = fx.parameter_sensitivity(builder.build(), ["first.length"], 1.0)
    assert np.all(result["first.length"][:2] != 0.0)
    assert result["first.length"][2:].tolist() == [0.0, 0.0]


def test_a_stiff_loop_is_integrated_by_a_stiff_method() -> None:
    lag = fx.StateSpace("lag", [[-1.0, 0.0], [1e4, -1e4]], [[], []], [1.0, 0.0], initial=[1.0, 0.0])
    result = fx.parameter_sensitivity(lag, ["A"], 5.0, rtol=1e-7)
    np.testing.assert_allclose(result["A"][0, 0, 0], 5.0 * math.exp(-5.0), rtol=1e-4)
    for method in ("BDF", "Rodas5P"):
        asked = fx.parameter_sensitivity(lag, ["A"], 5.0, method=method, rtol=1e-7)
        assert asked["A"][0, 0, 0] == pytest.approx(5.0 * math.exp(-5.0), rel=1e-3)


def test_the_final_context_continues_the_motion() -> None:
    pendulum, context = swinging()
    result = fx.parameter_sensitivity(pendulum, ["mass"], 1.0, context=context)
    assert result.context.time == 1.0
    np.testing.assert_array_equal(result.context.get("x"), result.states[-1])
    assert context.time == 0.0
    expected = fx.simulate(pendulum, 1.0, context=context, rtol=1e-10)
    np.testing.assert_allclose(result.states[-1], expected.context.get("x"), rtol=1e-7)


def test_the_representation_tells_what_was_differentiated() -> None:
    pendulum, context = swinging()
    last = fx.parameter_sensitivity(pendulum, ["mass", "length"], 1.0, context=context)
    assert (
        repr(last)
        == "<ParameterSensitivity of 2 states of 'pendulum' to 'mass', 'length', t = 1 s>"
    )
    many = fx.parameter_sensitivity(
        pendulum, ["mass"], 2.0, context=context, times=np.linspace(0.5, 2.0, 400)
    )
    assert repr(many) == (
        "<ParameterSensitivity of 2 states of 'pendulum' to 'mass', 400 times from 0.5 to 2 s>"
    )


def test_no_time_and_no_parameter_are_borders_that_work() -> None:
    pendulum, context = swinging()
    at_once = fx.parameter_sensitivity(pendulum, ["mass"], 0.0, context=context)
    assert at_once["mass"].tolist() == [0.0, 0.0]
    assert at_once.states.tolist() == [[1.0, 0.0]]
    assert fx.parameter_sensitivity(pendulum, [], 1.0, context=context).derivatives == {}


def test_a_gain_alone_has_no_states_to_differentiate() -> None:
    gain = fx.Gain("gain", 2.0)
    context = gain.create_default_context()
    gain.u.fix(context, 1.0)
    assert fx.parameter_sensitivity(gain, ["gain"], 1.0, context=context)["gain"].shape == (0,)


# Jumps and bends in time -------------------------------------------------------------------------


def driven(source: fx.LeafSystem) -> fx.Diagram:
    builder = fx.DiagramBuilder("driven")
    builder.add_all(source, fx.FirstOrderLag("lag", 0.5))
    builder.connect_chain(source, "lag")
    return builder.build()


def test_the_height_of_a_step_is_followed_over_its_jump() -> None:
    result = fx.parameter_sensitivity(
        driven(fx.Step("source", at=0.4, to=3.0)), ["source.to", "lag.time_constant"], 1.0
    )
    decay = math.exp(-0.6 / 0.5)
    np.testing.assert_allclose(result["source.to"].reshape(1), [1.0 - decay], rtol=1e-7)
    expected = -3.0 * decay * 0.6 / 0.5**2
    np.testing.assert_allclose(result["lag.time_constant"].reshape(1), [expected], rtol=1e-6)


def test_a_parameter_that_moves_a_jump_is_followed() -> None:
    """The lag is 1 - e^(-2 (t - at)) behind the jump."""
    diagram, times = driven(fx.Step("source", at=0.4)), [0.3, 0.7, 1.0]
    for method in ("auto", "Radau"):
        result = fx.parameter_sensitivity(diagram, ["source.at"], 1.0, times=times, method=method)
        expected = [0.0, *(-2.0 * np.exp(-2.0 * (np.array(times[1:]) - 0.4)))]
        np.testing.assert_allclose(result.derivatives["source.at"][:, 0], expected, atol=1e-6)
    with pytest.raises(EvaluationError, match="no beginning, update or sample where a jump moves"):
        fx.parameter_sensitivity(diagram, ["source.at"], 0.4)


def test_a_jump_after_the_end_does_not_matter() -> None:
    result = fx.parameter_sensitivity(driven(fx.Step("source", at=1.4)), ["source.at"], 1.0)
    assert result["source.at"].reshape(1).tolist() == [0.0]


def test_a_parameter_that_moves_a_bend_is_followed() -> None:
    diagram = driven(fx.Ramp("source", slope=2.0, start=0.3))
    context = diagram.create_default_context()
    result = fx.parameter_sensitivity(diagram, ["source.start"], 1.0, context=context)
    expected = by_differences(diagram, context, "source.start", 1.0)
    np.testing.assert_allclose(result["source.start"].reshape(1), expected, rtol=1e-6)


# Refusals ----------------------------------------------------------------------------------------


class Stepper(fx.LeafSystem):
    """A sum that grows at every step of the integration."""

    def __init__(self) -> None:
        super().__init__("stepper")
        self.x = self.declare_continuous_state(z=1)
        self.declare_unrestricted_update(lambda c: {self.x: self.x(c) + 1.0}, fx.diagrams.PerStep())

    def calc_time_derivatives(self, context: Any) -> Any:
        return [0.0]


class Root(fx.LeafSystem):
    """ẋ = sqrt(k) with k at zero, where the root has no finite slope."""

    def __init__(self) -> None:
        super().__init__("root")
        self.k = self.declare_numeric_parameter("k", 0.0)
        self.x = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [np.sqrt(self.k(context))]


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "updates at every step": (
        lambda: fx.parameter_sensitivity(Stepper(), [], 1.0),
        EvaluationError,
        "updates at ticks, crossings and the beginning",
    ),
    "equations that cannot be traced": (
        lambda: fx.parameter_sensitivity(**named(swinging(kind=ForeignPendulum))),
        TraceError,
        "if float",
    ),
    "a computed output as parameter": (
        lambda: fx.parameter_sensitivity(servo(), ["pendulum.position"], 1.0),
        UnknownNameError,
        "a numeric parameter, or a continuous state",
    ),
    "a parameter as output": (
        lambda: fx.parameter_sensitivity(servo(), [], 1.0, outputs="pendulum.mass"),
        UnknownNameError,
        "a port that carries a vector",
    ),
    "a foreign context": (
        lambda: fx.parameter_sensitivity(
            servo(), [], 1.0, context=servo().create_default_context()
        ),
        ContextError,
        "a root context of the same system",
    ),
    "an end before the start": (
        lambda: fx.parameter_sensitivity(servo(), [], -1.0),
        ValueRefusedError,
        "ascending times",
    ),
    "times that descend": (
        lambda: fx.parameter_sensitivity(servo(), [], 1.0, times=[0.5, 0.2]),
        ValueRefusedError,
        "ascending times",
    ),
    "times after the end": (
        lambda: fx.parameter_sensitivity(servo(), [], 1.0, times=[0.5, 1.2]),
        ValueRefusedError,
        "ascending times",
    ),
    "an infinite slope": (
        lambda: fx.parameter_sensitivity(Root(), ["k"], 1.0),
        NonFiniteError,
        "finite derivatives by states and parameters",
    ),
    "an unknown result": (
        lambda: fx.parameter_sensitivity(servo(), ["pid.kp"], 0.1)["pid.ki"],
        UnknownNameError,
        r"Valid names: 'pid\.kp'",
    ),
}


def named(pair: Any) -> dict[str, Any]:
    """Return the arguments of `parameter_sensitivity` for a system and its context."""
    system, context = pair
    return {"system": system, "t_final": 1.0, "parameters": ["mass"], "context": context}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_says_what_is_wrong(name: str) -> None:
    attempt, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        attempt()


# Periodic updates --------------------------------------------------------------------------------

BOTH_WAYS = pytest.mark.parametrize("method", ["auto", scipy.integrate.DOP853])


@BOTH_WAYS
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_the_first_update_runs_where_a_source_jumps_at_the_beginning(
    method: Any, start: float
) -> None:
    """In the second period of 0.1 s the integrator is x(t) = x0 (1 + 0.1 k) (1 + k (t - 0.1))."""
    builder = fx.DiagramBuilder("sampled")
    hold, gain, sum_ = fx.ZeroOrderHold("hold", 0.1), fx.Gain("gain", -3.0), fx.Integrator("sum")
    builder.add_all(hold, gain, sum_, fx.Step("step", at=start), fx.FirstOrderLag("lag", 0.5))
    builder.connect_chain("sum", "hold", "gain", "sum")
    builder.connect_chain("step", "lag")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.time = start
    context.set("sum.x", 2.0)
    found = fx.parameter_sensitivity(
        diagram, "gain.gain", start + 0.17, context=context, outputs="sum.y", method=method
    )
    expected = 2.0 * (0.1 * (1.0 - 3.0 * 0.07) + 0.7 * 0.07)
    derivative = found.output_derivatives["sum.y"]["gain.gain"].ravel()[-1]
    assert derivative == pytest.approx(expected, abs=1e-9)


@BOTH_WAYS
def test_a_sampled_loop_has_the_sensitivities_of_its_closed_form(method: Any) -> None:
    # With the integrator behind a hold, x(t) = (1 - k T)^n x0 (1 - k (t - n T)) in the n-th period.
    builder = fx.DiagramBuilder("sampled")
    hold, gain, sum_ = fx.ZeroOrderHold("hold", 0.1), fx.Gain("gain", -3.0), fx.Integrator("sum")
    builder.add_all(hold, gain, sum_)
    builder.connect_chain("sum", "hold", "gain", "sum")
    diagram = builder.build()
    context = diagram.create_default_context()
    context.set("sum.x", 2.0)
    times = np.array([0.0, 0.1, 0.2, 0.34, 0.5, 0.501, 1.0])
    result = fx.parameter_sensitivity(
        diagram,
        ["gain.gain", "sum.x"],
        1.0,
        context=context,
        outputs="gain.y",
        times=times,
        method=method,
    )
    n = np.array([0, 1, 2, 3, 5, 5, 9])  # at the end, the last update has not run
    k, late, held = 3.0, times - 0.1 * n, 0.7**n
    steeper = -0.1 * n * 0.7 ** (n - 1.0)
    by_gain = -2.0 * (steeper * (1.0 - k * late) - held * late)
    np.testing.assert_allclose(result.derivatives["gain.gain"].ravel(), by_gain, rtol=0, atol=1e-9)
    by_x = held * (1.0 - k * late)
    np.testing.assert_allclose(result.derivatives["sum.x"].ravel(), by_x, rtol=0, atol=1e-9)
    output = result.output_derivatives["gain.y"]["gain.gain"]
    expected = 2.0 * (held + k * steeper)
    np.testing.assert_allclose(output.ravel(), expected, rtol=0, atol=1e-9)


class TwoRates(fx.LeafSystem):
    """A state that is kicked by what a discrete one was, which may be updated at that instant."""

    def __init__(self) -> None:
        super().__init__("rates")
        self.k = self.declare_numeric_parameter("k", 1.3)
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.level = self.declare_discrete_state("level", default=[0.3])
        self.declare_discrete_update(self.add, fx.diagrams.Periodic(0.1))
        self.declare_unrestricted_update(self.kick, fx.diagrams.Periodic(0.3, offset=0.1))

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.level(context) - self.k(context) * self.x(context) ** 2

    def add(self, context: Any) -> Any:
        return {self.level: 0.5 * self.level(context) + self.k(context) * self.x(context)}

    def kick(self, context: Any) -> Any:
        return {self.x: np.sin(self.x(context)) + 0.1 * self.k(context) * self.level(context)}


def sampled_pid() -> fx.System:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("source", at=0.3),  # a spacing before a tick
        fx.PIDController("pid", kp=1.0, ki=0.5, kd=0.1, lower=-1.1, upper=1.05, period=0.05),
        fx.TransferFunction("plant", [2.0, 1.0], [1.0, 0.7, 5.0]),
    )
    builder.connect("source.y", "pid.setpoint")
    builder.connect_chain("pid", "plant", "pid.measurement")
    return builder.build()


def delayed_loop() -> fx.System:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Sine("source", frequency=3.0),
        fx.Sum("error", "+-"),
        fx.TimeDelay("late", 0.113, 0.01, max_delay=0.2),
        fx.TransferFunction("plant", [2.0, 1.0], [1.0, 0.7, 5.0]),
    )
    builder.connect("source.y", "error.u1")
    builder.connect_chain("error", "late", "plant", "error.u2")
    return builder.build()


def noisy() -> fx.Diagram:
    return driven(fx.Noise("source", 7, 0.1))


SAMPLED: dict[str, tuple[Callable[[], fx.System], list[str]]] = {
    "two rates": (TwoRates, ["k"]),
    "controller": (sampled_pid, ["pid.kp", "pid.ki", "pid.kd", "source.to"]),
    "delay": (delayed_loop, ["late.delay", "source.amplitude"]),
    "noise": (noisy, ["lag.gain", "lag.time_constant"]),
}


@pytest.mark.parametrize(("kind", "method"), crossed(SAMPLED, ["auto", scipy.integrate.DOP853]))
def test_sensitivities_go_through_periodic_updates(kind: str, method: Any) -> None:
    make, paths = SAMPLED[kind]
    system = make()
    found = fx.parameter_sensitivity(system, paths, 0.75, method=method)
    for path in paths:
        expected = by_differences(system, system.create_default_context(), path, 0.75, 1e-5)
        np.testing.assert_allclose(found[path].ravel(), expected, rtol=1e-6, atol=1e-7)


class Starter(fx.LeafSystem):
    """A block whose discrete state is set from a parameter at the beginning."""

    def __init__(self) -> None:
        super().__init__("starter")
        self.k = self.declare_numeric_parameter("k", 2.0)
        self.x = self.declare_continuous_state(z=1)
        self.level = self.declare_discrete_state("level", 0.0)
        self.declare_unrestricted_update(self.start, fx.diagrams.Initialization())

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.level(context)

    def start(self, context: Any) -> dict[Any, Any]:
        return {self.level: self.k(context), self.x: 3.0 * self.k(context)}


def test_a_discrete_state_that_follows_a_parameter_is_followed() -> None:
    """The state is 3 k + k t."""
    forward = fx.parameter_sensitivity(Starter(), ["k"], 1.0)
    backward = fx.gradient(Starter(), fx.metrics.final("x"), ["k"], 1.0)
    assert [float(forward["k"][0]), backward["k"]] == pytest.approx([4.0, 4.0], abs=1e-8)


# Jumps that no event marks ------------------------------------------------------------------------


def test_a_quantizer_is_refused_by_name() -> None:
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Sine("drive", frequency=3.0), fx.Quantizer("encoder", 0.1), fx.Integrator("sum")
    )
    builder.connect_chain("drive", "encoder", "sum")
    with pytest.raises(EvaluationError, match=r"found the block 'encoder', whose output jumps"):
        fx.parameter_sensitivity(builder.build(), "drive.frequency", 1.0)


class _Bent(fx.LeafSystem):
    """dx/dt = f(a t) + x/10 with some function f."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__("bent")
        self.function = function
        self.a = self.declare_numeric_parameter("a", 3.0)
        self.state = self.declare_continuous_state(z=1)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [self.function(self.a(context) * context.time) + 0.1 * self.state(context)[0]]


@pytest.mark.parametrize(
    "function",
    [np.floor, lambda s: np.where(s > 2.0, s, 0.0), lambda s: np.remainder(s, 1.0)],
    ids=["floor", "where", "remainder"],
)
def test_jumps_that_the_motion_crosses_are_warned_of(function: Callable[[Any], Any]) -> None:
    with pytest.warns(UserWarning, match=r"'x' changes .*The motion crosses a jump"):
        fx.parameter_sensitivity(_Bent(function), "a", 1.3)


@pytest.mark.parametrize(
    "function",
    [
        lambda s: np.where(s > 2.0, s - 2.0, 0.0),
        lambda s: np.sign(s - 2.0) * (s - 2.0) ** 2,
        lambda s: np.sin(np.remainder(s, 2.0 * np.pi)),
    ],
    ids=["bend", "square", "angle"],
)
def test_equations_that_only_bend_are_not_warned_of(function: Callable[[Any], Any]) -> None:
    bent = _Bent(function)
    found = fx.parameter_sensitivity(bent, "a", 1.3)["a"]
    ends = []
    for a in (3.0 - 1e-4, 3.0 + 1e-4):
        context = bent.create_default_context()
        context.set("a", a)
        ends.append(fx.simulate(bent, 1.3, context=context, rtol=1e-11).context.continuous_state)
    np.testing.assert_allclose(found, (ends[1] - ends[0]) / 2e-4, rtol=1e-5)


@pytest.mark.parametrize(("slope", "motions", "warned"), [(2.0, 2, 0), (2.1, 3, 1)])
def test_a_third_motion_confirms_differences_that_are_off(
    slope: float, motions: int, warned: int, recwarn: pytest.WarningsRecorder
) -> None:
    steps = []

    def moved(step: Any) -> Any:
        steps.append(step)
        return 2.0 * step

    one = np.ones(1)
    warn_of_differences(one, slope * one[:, None], moved, one, ["x"], "Cannot differentiate")
    assert (len(steps), len(recwarn)) == (motions, warned)
