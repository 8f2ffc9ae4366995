"""ESDIRK4: what its docstring says about damping, equations made anew, and beams that turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from flexure.solvers.integration.methods.esdirk import ESDIRK4
from flexure.solvers.integration.methods.rosenbrock import Rodas5P

LOOSE: dict[str, Any] = {"rtol": 1e3, "atol": 1e6}  # no error is too large


def oscillate(_: float, x: Any) -> Any:
    return np.array([x[1], -x[0]])


@pytest.mark.parametrize(("part", "loss"), [(0.1, 1.41e-6), (0.5, 3.50e-3), (10.0, 0.852)])
def test_a_step_takes_from_an_oscillation_what_is_stated(part: float, loss: float) -> None:
    step = 2.0 * np.pi * part
    found = solve_ivp(oscillate, (0.0, step), [1.0, 0.0], method=ESDIRK4, first_step=step, **LOOSE)
    assert len(found.t) == 2
    assert 1.0 - np.hypot(*found.y[:, -1]) == pytest.approx(loss, rel=5e-3)


def test_linear_equations_are_made_once_per_step_and_their_stages_share_them() -> None:
    found = solve_ivp(
        oscillate,
        (0.0, 20.0),
        [1.0, 0.0],
        method=ESDIRK4,
        jac=lambda t, x: np.array([[0.0, 1.0], [-1.0, 0.0]]),
        first_step=0.1,
        rtol=1e-6,
        atol=1e-6,
    )
    tries = found.njev
    assert len(found.t) - 1 <= tries < 1.1 * len(found.t)
    assert found.nlu == tries
    assert found.nfev <= 11 * tries + 1


# A mass on a spring that hardly stretches swings by more than a right angle -----------------------

STIFFNESS, GRAVITY = 1e8, 10.0


def swing(_: float, x: Any) -> Any:
    p, v = x[:2], x[2:]
    length = np.hypot(*p)
    direction = p / length
    pull = STIFFNESS * (length - 1.0) + 2e3 * (direction @ v)
    return np.array([*v, *(-pull * direction - np.array([0.0, GRAVITY]))])


def swing_jacobian(_: float, x: Any) -> Any:
    p, v = x[:2], x[2:]
    length = np.hypot(*p)
    n = p / length
    across = (np.eye(2) - np.outer(n, n)) / length
    pull = STIFFNESS * (length - 1.0) + 2e3 * (n @ v)
    by_p = np.outer(n, STIFFNESS * n + 2e3 * (across @ v)) + pull * across
    made = np.zeros((4, 4))
    made[:2, 2:], made[2:, :2], made[2:, 2:] = np.eye(2), -by_p, -2e3 * np.outer(n, n)
    return made


def swung(method: Any, tolerance: float) -> tuple[Any, int]:
    """Return the angle at some times, and the number of steps."""
    times = np.linspace(0.0, 3.0, 31)
    start = [1.0, 0.0, 0.0, 0.0]
    given: dict[str, Any] = {"rtol": tolerance, "atol": tolerance, "jac": swing_jacobian}
    found: Any = solve_ivp(swing, (0.0, 3.0), start, method=method, dense_output=True, **given)
    x, y = found.sol(times)[:2]
    return np.unwrap(np.arctan2(y, x)), len(found.t) - 1


def test_what_is_stiff_in_a_direction_that_turns_takes_few_steps() -> None:
    def pendulum(_: float, x: Any) -> Any:
        return [x[1], -GRAVITY * np.cos(x[0])]

    times = np.linspace(0.0, 3.0, 31)
    rigid = solve_ivp(pendulum, (0.0, 3.0), [0.0, 0.0], "DOP853", times, rtol=1e-12, atol=1e-12)
    found, steps = swung(ESDIRK4, 1e-4)
    other, many = swung(Rodas5P, 1e-5)
    assert np.abs(found - rigid.y[0]).max() < 2e-3
    assert np.abs(other - rigid.y[0]).max() < 5e-3
    assert many > 5 * steps


def test_what_is_not_finite_makes_steps_shorter_until_there_is_none() -> None:
    def root(_: float, x: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return -np.sqrt(x)

    found = solve_ivp(root, (0.0, 5.0), [1.0], method=ESDIRK4, rtol=1e-4)
    assert not found.success
    assert found.t[-1] == pytest.approx(2.0, abs=0.1)
