"""Stiffness: foreseen from the Jacobian, and noticed during a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from flexure.solvers.integration.guard.integration import Stop, TakenStep, integrate
from flexure.solvers.integration.guard.stiffness_detection import (
    NONSTIFF_METHOD,
    STIFF_METHOD,
    StiffnessDetector,
    assess,
)
from flexure.solvers.tracing.differences import difference_jacobian
from tests.support.tiers import thinned

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]

INERTIA = 1.5


def singlet(width: float, x: float) -> float:
    return float(1.0 - np.tanh(x / width) ** 2)


def doublet(width: float, x: float) -> float:
    return 2.0 * float(np.tanh(x / width)) * singlet(width, x)


def door_hinge(t: float, x: Array) -> Array:
    """The default door hinge: spring, catch, and friction that is steep below 1 mrad/s."""
    angle, rate = x
    spring = -1.5 * (angle + 1.5) + 15.0 * doublet(0.01, angle - 0.01)
    friction = 3.0 * np.tanh(rate / 1e-3) + 2.0 * doublet(1e-3, rate) + rate
    return np.array([rate, (spring - friction) / INERTIA])


def controlled_mass(t: float, x: Array) -> Array:
    """A mass, spring and damper under a PID controller with a filtered derivative."""
    position, velocity, integral, filtered = x
    error = 1.0 - position
    slope = (error - filtered) / 0.01
    force = 50.0 * error + 20.0 * integral + 8.0 * slope
    return np.array([velocity, force - velocity - 10.0 * position, error, slope])


def oscillator(t: float, x: Array) -> Array:
    return np.array([x[1], -1e6 * x[0]])


def lorenz(t: float, x: Array) -> Array:
    return np.array(
        [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]]
    )


def van_der_pol(t: float, x: Array) -> Array:
    return np.array([x[1], 1000.0 * (1.0 - x[0] ** 2) * x[1] - x[0]])


# The Jacobian -----------------------------------------------------------------------------------


def test_differences_approximate_the_jacobian() -> None:
    x = np.array([0.3, -0.7, 2e5])

    def rhs(t: float, x: Array) -> Array:
        return np.array([x[0] * x[1], np.sin(x[2] * 1e-5) + t, x[2] ** 2 * 1e-5])

    exact = [[-0.7, 0.3, 0.0], [0.0, 0.0, 1e-5 * np.cos(2.0)], [0.0, 0.0, 4.0]]
    found = difference_jacobian(rhs, 1.0, x, rhs(1.0, x))
    assert found == pytest.approx(np.array(exact), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_differences_stay_inside_of_the_domain(sign: float) -> None:
    def rhs(t: float, x: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.array([-1.0, 1.0]) + sign * np.sqrt(x - 1.0)

    x = np.ones(2)
    assert np.isfinite(difference_jacobian(rhs, 0.0, x, rhs(0.0, x))).all()


def test_differences_go_first_where_the_state_is_going() -> None:
    tried: list[float] = []

    def rhs(t: float, x: Array) -> Array:
        tried.append(x[0])
        return -1.0 - x

    difference_jacobian(rhs, 0.0, np.ones(1), np.array([-2.0]))
    assert len(tried) == 1
    assert tried[0] < 1.0


def test_differences_around_a_point_without_domain_are_not_finite() -> None:
    x = np.ones(1)
    found = difference_jacobian(lambda t, x: np.full(1, np.nan), 0.0, x, np.zeros(1))
    assert np.isnan(found).all()


# Foreseen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 0.3])
def test_a_door_hinge_at_rest_is_stiff(angle: float) -> None:
    verdict = assess(door_hinge, 0.0, np.array([angle, 0.0]), 5.0)
    assert verdict.stiff
    assert verdict.state == 1
    assert verdict.time_constant == pytest.approx(INERTIA / 7001.0, rel=1e-3)
    assert verdict.ratio == pytest.approx(5.0 / verdict.time_constant / 330.0, rel=1e-6)


def test_a_door_hinge_in_motion_is_not() -> None:
    assert not assess(door_hinge, 0.0, np.array([0.3, 1.0]), 5.0).stiff


def test_a_short_look_at_a_door_hinge_is_not() -> None:
    assert not assess(door_hinge, 0.0, np.array([0.3, 0.0]), 0.05).stiff


@pytest.mark.parametrize("horizon", [1.0, 10.0, 1000.0])
def test_a_controlled_mass_is_not(horizon: float) -> None:
    verdict = assess(controlled_mass, 0.0, np.zeros(4), horizon)
    assert not verdict.stiff
    assert verdict.state == 3
    assert verdict.time_constant == pytest.approx(0.01, rel=0.2)


@pytest.mark.parametrize("horizon", [0.1, 10.0, 1000.0])
def test_a_fast_oscillation_is_not(horizon: float) -> None:
    verdict = assess(oscillator, 0.0, np.array([1.0, 0.0]), horizon)
    assert not verdict.stiff
    assert verdict.state is None
    assert verdict.time_constant == np.inf


def test_a_damped_mode_must_be_far_faster_than_the_oscillations() -> None:
    def both(decay: float) -> RightHandSide:
        return lambda t, x: np.array([x[1], -1e4 * x[0], -decay * x[2]])

    x = np.array([1.0, 0.0, 1.0])
    assert not assess(both(2_000.0), 0.0, x, 1e3).stiff
    assert assess(both(20_000.0), 0.0, x, 1e3).stiff


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_culprit_does_not_depend_on_units(scale: float) -> None:
    units = np.array([1.0, scale])
    jacobian = np.array([[0.0, 1.0], [-1.0, -4667.0]]) * np.outer(units, 1.0 / units)
    assert assess(door_hinge, 0.0, np.zeros(2), 5.0, jac=lambda t, x: jacobian).state == 1


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_a_given_jacobian_saves_every_evaluation(form: Any) -> None:
    def rhs(t: float, x: Array) -> Array:
        raise AssertionError

    verdict = assess(rhs, 0.0, np.zeros(2), 1.0, jac=lambda t, x: form([[-1.0, 0.0], [0.0, -1e5]]))
    assert verdict.stiff
    assert verdict.state == 1
    assert verdict.time_constant == pytest.approx(1e-5)


def test_nothing_is_foreseen_where_the_jacobian_is_not_finite_or_large() -> None:
    with np.errstate(invalid="ignore"):
        assert not assess(lambda t, x: -np.sqrt(x - 2.0), 0.0, np.ones(2), 1.0).stiff
    assert not assess(lambda t, x: -1e9 * x, 0.0, np.ones(301), 1.0).stiff


def test_growing_modes_do_not_count() -> None:
    assert not assess(lambda t, x: 1e6 * x, 0.0, np.ones(2), 10.0).stiff


def test_modes_of_minutes_count_in_runs_of_days() -> None:
    matrix = np.array([[0.0, 1e-4, 0.0], [-1e-4, 0.0, 0.0], [0.0, 0.0, -0.01]])
    verdict = assess(lambda t, x: matrix @ x, 0.0, np.ones(3), 1e6)
    assert (verdict.stiff, verdict.state) == (True, 2)
    assert verdict.time_constant == pytest.approx(100.0)


# Noticed ----------------------------------------------------------------------------------------

explicit = pytest.mark.parametrize("method", ["RK45", "DOP853"])


def run_until_stiff(
    rhs: RightHandSide, x0: list[float], t_end: float, **given: Any
) -> tuple[float | None, int]:
    """Return when a run was found to be stiff, and after how many steps."""
    detector = StiffnessDetector(t_end)

    def on_step(step: TakenStep) -> Stop | None:
        return Stop(step.t, step.x) if detector(step) else None

    segment = integrate(rhs, 0.0, x0, t_end, on_step=on_step, **given)
    return None if segment.stop is None else segment.stop.t, segment.steps


@explicit
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_a_door_that_comes_to_rest_is_noticed(method: str, rtol: float) -> None:
    time, steps = run_until_stiff(
        door_hinge, [0.8, -6.0], 5.0, method=method, rtol=rtol, atol=1e-3 * rtol
    )
    assert time is not None
    assert steps < 300
    moving = integrate(door_hinge, 0.0, [0.8, -6.0], time, rtol=1e-9, atol=1e-12)
    at_rest = np.abs(moving.x[:, 1]) < 1e-3
    assert moving.t[at_rest][0] < time < moving.t[at_rest][0] + 0.1


@explicit
def test_a_relaxation_oscillation_is_noticed(method: str) -> None:
    time, steps = run_until_stiff(van_der_pol, [2.0, 0.0], 500.0, method=method)
    assert time is not None
    assert steps < 100


@explicit
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_the_units_of_the_other_states_do_not_matter(method: str, scale: float) -> None:
    def rhs(t: float, x: Array) -> Array:
        return np.array([scale * np.cos(t), -1e5 * (x[1] - np.sin(t))])

    time, steps = run_until_stiff(
        rhs, [scale, 0.0], 2.0, method=method, atol=np.array([1e-9 * scale, 1e-9])
    )
    assert time is not None
    assert steps < 200


@explicit
@pytest.mark.parametrize("rtol", thinned([1e-6, 1e-3, 1e-9], fast=1))
@pytest.mark.parametrize(
    ("rhs", "x0", "t_end"),
    [(lorenz, [1.0, 1.0, 1.0], 20.0), (oscillator, [1.0, 0.0], 0.5)],
    ids=["lorenz", "oscillator"],
)
def test_what_accuracy_limits_is_left_alone(
    method: str, rtol: float, rhs: RightHandSide, x0: list[float], t_end: float
) -> None:
    detector = StiffnessDetector(t_end, worthwhile=0.0)
    verdicts: list[bool] = []
    integrate(
        rhs,
        0.0,
        x0,
        t_end,
        method=method,
        rtol=rtol,
        atol=1e-3 * rtol,
        on_step=lambda step: verdicts.append(detector(step)),
    )
    assert len(verdicts) > 100
    assert not any(verdicts)


def test_a_run_that_is_nearly_over_is_left_alone() -> None:
    time, steps = run_until_stiff(door_hinge, [0.0, 0.0], 1.0)
    assert time is None
    assert steps > 500


@explicit
def test_a_system_at_rest_under_short_steps_is_left_alone(method: str) -> None:
    time, steps = run_until_stiff(oscillator, [0.0, 0.0], 3.0, method=method, max_step=2e-3)
    assert time is None
    assert steps > 1_400


@pytest.mark.parametrize("method", ["RK23", "Rodas5P", "Radau", "LSODA"])
def test_other_methods_are_left_alone(method: str) -> None:
    time, _ = run_until_stiff(van_der_pol, [2.0, 0.0], 0.5, method=method)
    assert time is None


def test_the_stiff_method_needs_far_fewer_evaluations_for_a_resting_door() -> None:
    explicit_run, stiff_run = (
        integrate(door_hinge, 0.0, [0.0, 0.0], 5.0, method=method)
        for method in (NONSTIFF_METHOD, STIFF_METHOD)
    )
    assert stiff_run.nfev < 0.1 * explicit_run.nfev
    assert stiff_run.x[-1] == pytest.approx(explicit_run.x[-1], abs=1e-6)
