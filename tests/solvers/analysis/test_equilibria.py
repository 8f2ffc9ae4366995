"""Equilibria are found to the last bits, near the start, or refused with the state that moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.support.mechanics.mechanics import GRAVITY, ForeignPendulum, Pendulum, servo


class Flow(fx.LeafSystem):
    """ẋ = rate(x) for a given function."""

    def __init__(self, rate: Callable[[Any], Any], start: list[float]) -> None:
        super().__init__("flow")
        self.rate = rate
        self.x = self.declare_continuous_state(z=len(start), default=start)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.rate(self.x(context))


class Spring(fx.LeafSystem):
    """ẋ = stiffness + 2 x, with a stiffness that is not negative."""

    def __init__(self) -> None:
        super().__init__("spring")
        self.stiffness = self.declare_numeric_parameter("stiffness", 1.0, lower=0.0)
        self.x = self.declare_continuous_state(z=1, default=[1.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.stiffness(context) + 2.0 * self.x(context)


def hanging(torque: float = 0.0, angle: float = 0.0, *, kind: type[Pendulum] = Pendulum) -> Any:
    pendulum = kind(angle=angle)
    context = pendulum.create_default_context()
    pendulum.torque.fix(context, torque)
    return pendulum, context


@pytest.mark.full
@given(st.floats(-9.0, 9.0))
def test_a_pendulum_rests_where_gravity_balances_the_torque(torque: float) -> None:
    found = fx.equilibrium(*hanging(torque))
    expected = math.asin(torque / (2.0 * GRAVITY * 0.5))
    np.testing.assert_allclose(found.context.get("x"), [expected, 0.0], atol=1e-12)
    assert found.residual < 1e-10
    assert found.how == "exact derivatives"


def test_the_equilibrium_near_the_start_is_found() -> None:
    assert fx.equilibrium(*hanging(0.0, 3.0)).context.get("x")[0] == pytest.approx(math.pi)
    assert fx.equilibrium(*hanging(0.0, 0.5)).context.get("x")[0] == pytest.approx(0.0, abs=1e-12)


def test_a_start_at_rest_needs_no_step() -> None:
    found = fx.equilibrium(*hanging())
    assert (found.iterations, found.residual) == (0, 0.0)


def test_newton_converges_quadratically() -> None:
    assert fx.equilibrium(*hanging(3.0)).iterations <= 6


def test_the_torque_that_holds_an_angle_is_found() -> None:
    pendulum, context = hanging(0.0, 0.7)
    found = fx.equilibrium(pendulum, context, free=["torque"], fixed=["x[angle]"])
    np.testing.assert_allclose(found.context.get("x"), [0.7, 0.0], atol=1e-14)
    assert found.context.get("torque")[0] == pytest.approx(9.81 * math.sin(0.7), rel=1e-12)
    assert context.get("torque")[0] == 0.0


def test_a_parameter_can_be_found() -> None:
    pendulum, context = hanging(5.0, 0.7)
    found = fx.equilibrium(pendulum, context, free=[pendulum.mass], fixed=["x[angle]"])
    assert found.context.get("mass") == pytest.approx(5.0 / (GRAVITY * 0.5 * math.sin(0.7)))


def test_a_loop_rests_with_its_integral() -> None:
    diagram = servo()
    found = fx.equilibrium(diagram)
    assert found.context.get("pendulum.angle")[0] == pytest.approx(0.8, rel=1e-12)
    assert found.context.get("pid.u")[0] == pytest.approx(9.81 * math.sin(0.8), rel=1e-12)
    result = fx.simulate(diagram, 1.0, context=found.context)
    np.testing.assert_allclose(result["pendulum.angle"], 0.8, rtol=1e-9)


def test_the_time_of_the_context_stays() -> None:
    builder = fx.DiagramBuilder("late")
    builder.add_all(fx.Step("step", at=1.0, to=4.0), fx.FirstOrderLag("lag", 0.5))
    builder.connect_chain("step", "lag")
    diagram = builder.build()
    context = diagram.create_default_context()
    for time, expected in ((0.0, 0.0), (2.0, 4.0)):
        context.time = time
        found = fx.equilibrium(diagram, context)
        assert found.context.time == time
        assert found.context.get("lag.x").tolist() == [expected]


def test_of_a_continuum_of_equilibria_the_nearest_is_taken() -> None:
    slide = Flow(lambda x: [x[1], -x[1]], [3.0, 2.0])
    np.testing.assert_allclose(fx.equilibrium(slide).context.get("x"), [3.0, 0.0], atol=1e-12)


def test_with_more_unknowns_than_equations_the_start_is_kept_as_far_as_possible() -> None:
    pendulum, context = hanging(1.0, 0.5)
    found = fx.equilibrium(pendulum, context, free=["torque"])
    angle, torque = found.context.get("x")[0], found.context.get("torque")[0]
    assert torque == pytest.approx(9.81 * math.sin(angle))
    assert 0.1 < angle < 0.5
    assert torque > 1.0


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_units_of_the_derivatives_do_not_matter(size: float) -> None:
    flow = Flow(lambda x: size * np.stack([x[0] - 2.0, x[0] * x[1] - 6.0]), [1.0, 1.0])
    np.testing.assert_allclose(fx.equilibrium(flow).context.get("x"), [2.0, 3.0], rtol=1e-9)


def test_steps_that_would_leave_the_domain_are_shortened() -> None:
    flow = Flow(np.log, [5.0])
    np.testing.assert_allclose(fx.equilibrium(flow).context.get("x"), [1.0], rtol=1e-12)


def test_a_double_root_is_found_slowly() -> None:
    found = fx.equilibrium(Flow(lambda x: (x - 1.0) ** 2, [2.0]))
    np.testing.assert_allclose(found.context.get("x"), [1.0], atol=1e-4)
    assert found.residual < 1e-8


def test_equations_that_cannot_be_traced_are_solved_with_differences() -> None:
    found = fx.equilibrium(*hanging(3.0, kind=ForeignPendulum))
    np.testing.assert_allclose(found.context.get("x"), [math.asin(3.0 / 9.81), 0.0], atol=1e-9)
    assert found.how.startswith("central differences, because")


def test_a_system_without_states_is_at_rest() -> None:
    gain = fx.Gain("gain", 2.0)
    context = gain.create_default_context()
    gain.u.fix(context, 1.0)
    assert fx.equilibrium(gain, context).residual == 0.0


def test_the_context_given_stays_as_it_is() -> None:
    pendulum, context = hanging(3.0, 0.1)
    before = context.clone()
    found = fx.equilibrium(pendulum, context, free=["torque"])
    assert context == before
    assert found.context != before


# Refusals ----------------------------------------------------------------------------------------


def test_a_system_that_never_rests_is_refused_with_its_state() -> None:
    with pytest.raises(EvaluationError, match=r"a rate of x\[1\] of -9\.81"):
        fx.equilibrium(Flow(lambda x: [x[1], -9.81], [1.0, 0.0]))


def test_a_torque_too_large_is_refused() -> None:
    with pytest.raises(EvaluationError, match=r"a rate of x\[rate\].*name free= inputs"):
        fx.equilibrium(*hanging(20.0))


def test_a_torque_beyond_numbers_is_refused_without_a_warning() -> None:
    with pytest.raises(EvaluationError, match=r"at most 1e\+100, .* of x\[rate\]"):
        fx.equilibrium(*hanging(1e200))


def test_a_start_that_is_not_finite_is_refused() -> None:
    with pytest.raises(EvaluationError, match="a rate of x of nan"):
        fx.equilibrium(Flow(lambda x: np.sqrt(x) - 1.0, [-1.0]))


def test_an_infinite_slope_is_no_equilibrium() -> None:
    with pytest.raises(EvaluationError, match="a rate of x of 1 "):
        fx.equilibrium(Flow(lambda x: np.sqrt(x) + 1.0, [0.0]))


def test_too_few_steps_are_reported() -> None:
    with pytest.raises(EvaluationError, match="after 1 steps"):
        fx.equilibrium(*hanging(5.0), max_iterations=1)


def test_bounds_of_parameters_are_kept() -> None:
    spring = Spring()
    with pytest.raises(ValueRefusedError, match=r"'spring\.stiffness'.*found -2"):
        fx.equilibrium(spring, free=[spring.stiffness], fixed=["x"])


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an unknown state": (
        lambda: fx.equilibrium(*hanging(), fixed=["x[angel]"]),
        UnknownNameError,
        r"Did you mean 'x\[angle\]'",
    ),
    "part of a name": (
        lambda: fx.equilibrium(servo(), fixed=["pendulum"]),
        UnknownNameError,
        "a block 'pendulum', and no name of one of its items",
    ),
    "what is no state": (
        lambda: fx.equilibrium(servo(), fixed="pendulum.mass"),
        UnknownNameError,
        "'pendulum.mass' fixed: expected a continuous state.*found <NumericParameter",
    ),
    "what is no name": (
        lambda: fx.equilibrium(servo(), fixed=[3]),  # type: ignore[list-item]
        UnknownNameError,
        "Cannot find a value by 3: expected a path, or the handle.*found int",
    ),
    "a fed input": (
        lambda: fx.equilibrium(servo(), free=["pendulum.torque"]),
        UnknownNameError,
        "a connection from 'pid.u'",
    ),
    "a foreign context": (
        lambda: fx.equilibrium(servo(), servo().create_default_context()),
        ContextError,
        "a root context of the same system",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_says_what_is_wrong(name: str) -> None:
    attempt, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        attempt()


def test_a_sampled_loop_is_refused() -> None:
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(fx.Integrator("plant"), fx.ZeroOrderHold("hold", 0.1), fx.Gain("gain", -1.0))
    builder.connect_chain("plant", "hold", "gain", "plant.u")
    with pytest.raises(EvaluationError, match="the sampled block 'hold'"):
        fx.equilibrium(builder.build())


def sampled_servo() -> fx.Diagram:
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Constant("target", 0.4),
        fx.PIDController("pid", kp=6.0, ki=4.0, kd=0.5, period=0.05),
        Pendulum(),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", "pendulum.torque")
    builder.connect("pendulum.angle", "pid.measurement")
    return builder.build()


@pytest.mark.full
def test_a_sampled_loop_rests_where_a_period_leads_back_to_the_same() -> None:
    servo = sampled_servo()
    context = servo.create_default_context()
    before = context.to_dict()
    found = fx.equilibrium(servo, context, period=0.05)
    assert context.to_dict() == before
    assert (found.residual < 1e-12, found.how) == (True, "exact derivatives")
    np.testing.assert_allclose(found.context.get("pendulum.x"), [0.4, 0.0], atol=1e-12)
    torque = 2.0 * GRAVITY * 0.5 * np.sin(0.4)
    np.testing.assert_allclose(found.context.get("pid.u"), torque)
    rest = fx.simulate(servo, 1.0, context=found.context)
    np.testing.assert_allclose(rest["pendulum.angle"], 0.4, atol=1e-9)


def test_inputs_of_a_sampled_loop_can_be_found_as_well() -> None:
    servo = sampled_servo()
    context = servo.create_default_context()
    context.set("pendulum.x", [0.3, 0.0])
    options: dict[str, Any] = {"free": "target.value", "fixed": "pendulum.x[angle]"}
    found = fx.equilibrium(servo, context, period=0.05, **options).context
    np.testing.assert_allclose(found.get("target.value"), 0.3, rtol=1e-12)
    assert found.get("pendulum.x")[0] == 0.3


def test_what_a_sampled_loop_never_reaches_is_refused() -> None:
    builder = fx.DiagramBuilder("sum")
    builder.add_all(fx.Constant("one", 1.0), fx.Integrator("plant"))
    builder.add_all(fx.Integrator("count", period=0.1), fx.ZeroOrderHold("hold", 0.1))
    builder.connect_chain("one", "plant")
    builder.connect_chain("plant", "hold", "count")
    diagram = builder.build()
    with pytest.raises(EvaluationError, match=r"a change of plant\.x.* of 0\.1 "):
        fx.equilibrium(diagram, period=0.1)
    with pytest.raises(EvaluationError, match=r"^Cannot find an equilibrium of .*period=0\.15 s"):
        fx.equilibrium(diagram, period=0.15)
