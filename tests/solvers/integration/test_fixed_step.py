"""The fixed-step solvers, driven by plain `solve_ivp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.integrate import solve_ivp

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.integration.methods.fixed_step import (
    ExplicitEuler,
    FixedStep,
    GeneralizedAlpha,
    ImplicitEuler,
    RungeKutta2,
    RungeKutta4,
    SemiExplicitEuler,
)
from tests.support.tiers import for_each

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]

SOLVERS: list[tuple[type[FixedStep], dict[str, Any], int]] = [
    (ExplicitEuler, {}, 1),
    (SemiExplicitEuler, {"positions": [0]}, 1),
    (RungeKutta2, {}, 2),
    (RungeKutta4, {}, 4),
    (ImplicitEuler, {}, 1),
    (GeneralizedAlpha, {"rho_inf": 0.6}, 2),
]
every_solver = pytest.mark.parametrize(
    ("solver", "options", "order"), SOLVERS, ids=[entry[0].__name__ for entry in SOLVERS]
)


def pendulum(t: float, x: Array) -> Array:
    """A damped pendulum, pushed periodically."""
    return np.array([x[1], -9.81 * np.sin(x[0]) - 0.3 * x[1] + np.cos(2.0 * t)])


def oscillator(t: float, x: Array) -> Array:
    return np.array([x[1], -x[0]])


def run(
    rhs: RightHandSide,
    span: tuple[float, float],
    x0: list[float],
    solver: type[FixedStep],
    **options: Any,
) -> Any:
    solve: Any = solve_ivp
    return solve(rhs, span, x0, method=solver, **options)


# The grid ---------------------------------------------------------------------------------------


@every_solver
def test_steps_end_at_the_sum_of_time_and_step(
    solver: type[FixedStep], options: dict[str, Any], order: int
) -> None:
    times = run(oscillator, (0.25, 0.65), [1.0, 0.0], solver, step=0.1, **options).t
    assert times.tolist() == [0.25, 0.35, 0.44999999999999996, 0.5499999999999999, 0.65]


@pytest.mark.parametrize(
    ("end", "stretch", "steps", "last"),
    [
        (1.0, 0.01, 10, 0.1),
        (1.0009, 0.01, 10, 0.1009),
        (1.0011, 0.01, 11, 0.0011),
        (1.004, 0.05, 10, 0.104),
        (1.05, 0.0, 11, 0.05),
        (0.03, 0.01, 1, 0.03),
    ],
)
def test_the_last_step_lands_on_the_end(
    end: float, stretch: float, steps: int, last: float
) -> None:
    times = run(oscillator, (0.0, end), [1.0, 0.0], ExplicitEuler, step=0.1, stretch=stretch).t
    assert len(times) == steps + 1
    assert times[-1] == end
    assert times[-1] - times[-2] == pytest.approx(last, rel=1e-9)


def test_without_stretch_a_sliver_of_a_step_remains_after_rounding() -> None:
    times = run(oscillator, (0.0, 1.0), [1.0, 0.0], ExplicitEuler, step=0.1, stretch=0.0).t
    assert times.tolist()[-2:] == [0.9999999999999999, 1.0]


@every_solver
def test_integration_backwards_undoes_integration_forwards(
    solver: type[FixedStep], options: dict[str, Any], order: int
) -> None:
    there = run(oscillator, (0.0, 1.0), [1.0, 0.5], solver, step=1e-3, **options)
    back = run(oscillator, (1.0, 0.0), there.y[:, -1].tolist(), solver, step=1e-3, **options)
    assert back.t[-1] == 0.0
    assert np.allclose(back.y[:, -1], [1.0, 0.5], atol=3e-3)


def test_a_step_below_the_spacing_of_numbers_fails() -> None:
    result = run(oscillator, (1e16, 1e16 + 10.0), [1.0, 0.0], ExplicitEuler, step=0.1)
    assert result.status == -1
    assert "spacing between numbers" in result.message


# The formulas -----------------------------------------------------------------------------------


@every_solver
def test_halving_the_step_shows_the_order(
    solver: type[FixedStep], options: dict[str, Any], order: int
) -> None:
    exact = solve_ivp(pendulum, (0.0, 1.0), [1.0, 0.2], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = [
        np.linalg.norm(
            run(pendulum, (0.0, 1.0), [1.0, 0.2], solver, step=step, **options).y[:, -1] - exact
        )
        for step in (0.01, 0.005, 0.0025)
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert orders == pytest.approx([order, order], abs=0.15)


@pytest.mark.parametrize(
    ("solver", "degree"), [(ExplicitEuler, 1), (RungeKutta2, 2), (RungeKutta4, 4)]
)
def test_polynomials_up_to_the_order_are_exact(solver: type[FixedStep], degree: int) -> None:
    def rate(t: float, x: Array) -> Array:
        return np.array([degree * t ** (degree - 1)])

    one_more = run(
        lambda t, x: np.array([(degree + 1) * t**degree]), (0.0, 2.0), [0.0], solver, step=0.25
    )
    result = run(rate, (0.0, 2.0), [0.0], solver, step=0.25)
    assert np.allclose(result.y[0], result.t**degree, rtol=1e-14, atol=1e-14)
    assert not np.allclose(one_more.y[0], one_more.t ** (degree + 1), rtol=1e-6)


def test_one_step_of_heun_averages_the_slopes_at_both_ends() -> None:
    x = run(lambda t, x: -2.0 * x + t, (0.0, 0.5), [1.0], RungeKutta2, step=0.5).y[0, -1]
    k1 = -2.0
    k2 = -2.0 * (1.0 + 0.5 * k1) + 0.5
    assert x == 1.0 + 0.25 * (k1 + k2)


def test_implicit_euler_divides_by_one_plus_rate_times_step() -> None:
    states = run(lambda t, x: -3.0 * x, (0.0, 1.0), [2.0], ImplicitEuler, step=0.25).y[0]
    assert states == pytest.approx(2.0 / 1.75 ** np.arange(5), rel=1e-9)


def test_generalized_alpha_is_the_midpoint_rule_without_damping() -> None:
    options = {"step": 0.25, "rho_inf": 1.0}
    states = run(lambda t, x: -3.0 * x + t, (0.0, 1.0), [2.0], GeneralizedAlpha, **options).y[0]
    expected = [2.0]
    for k in range(4):  # x⁺ = x + h f(t + h/2, (x + x⁺)/2)
        expected.append((0.625 * expected[-1] + 0.25 * (0.25 * k + 0.125)) / 1.375)
    assert states == pytest.approx(expected, rel=1e-9)


def test_generalized_alpha_is_bdf2_with_all_damping() -> None:
    found = run(pendulum, (0.0, 1.0), [1.0, 0.5], GeneralizedAlpha, step=0.05, rho_inf=0.0)
    x, t = found.y.T, found.t
    for k in range(2, len(t)):
        slope = pendulum(t[k], x[k])
        assert 1.5 * x[k] - 2.0 * x[k - 1] + 0.5 * x[k - 2] == pytest.approx(0.05 * slope, rel=1e-8)


@pytest.mark.parametrize("rho", [0.3, 0.8, 1.0])
def test_generalized_alpha_leaves_a_part_of_the_fastest_modes(rho: float) -> None:
    """An oscillation of a million radians in a step, whose energy has no damping of its own."""
    omega = 1e8
    states = run(
        lambda t, x: np.array([omega * x[1], -omega * x[0]]),
        (0.0, 1.0),
        [1.0, 0.0],
        GeneralizedAlpha,
        step=0.01,
        rho_inf=rho,
        jac=lambda t, x: np.array([[0.0, omega], [-omega, 0.0]]),
    ).y
    sizes = np.hypot(*states)
    # Both roots of the method tend to -rho there, so that sizes go like (a + k b) rho^k.
    matrix = np.array([[1.0, 40.0], [1.0, 41.0]])
    a, b = np.linalg.solve(matrix, sizes[40:42] / rho ** np.arange(40, 42))
    assert sizes[60] == pytest.approx((a + 60 * b) * rho**60, rel=1e-3)


@for_each("rho", [-0.1, 1.1, np.nan])
def test_generalized_alpha_refuses_a_part_that_is_none(rho: float) -> None:
    with pytest.raises(ValueRefusedError, match="a factor rho_inf from 0 to 1"):
        run(pendulum, (0.0, 1.0), [1.0, 0.5], GeneralizedAlpha, step=0.05, rho_inf=rho)


def test_semi_explicit_euler_moves_positions_with_the_new_velocities() -> None:
    x = run(
        lambda t, x: np.array([-x[0] * x[1], 3.0 * x[1], x[0]]),  # v, q, z
        (0.0, 0.1),
        [2.0, 5.0, 7.0],
        SemiExplicitEuler,
        step=0.1,
        positions=[1],
    ).y[:, -1]
    v = 2.0 + 0.1 * -10.0
    assert x == pytest.approx([v, 5.0 + 0.1 * 3.0 * 5.0, 7.2])
    x = run(oscillator, (0.0, 0.1), [1.0, 0.0], SemiExplicitEuler, step=0.1, positions=[0]).y[:, -1]
    assert x == pytest.approx([1.0 - 0.01, -0.1])


def test_semi_explicit_euler_keeps_its_modified_energy_for_ever() -> None:
    h = 0.3
    states = run(oscillator, (0.0, 300.0), [1.0, 0.0], SemiExplicitEuler, step=h, positions=[0]).y
    q, v = states[:, :-1]
    assert q**2 + v**2 - h * q * v == pytest.approx(np.ones(q.size), rel=1e-12)


# Inside of a step -------------------------------------------------------------------------------


@every_solver
def test_the_interpolant_joins_the_states(
    solver: type[FixedStep], options: dict[str, Any], order: int
) -> None:
    result = run(pendulum, (0.0, 1.0), [1.0, 0.2], solver, step=0.1, dense_output=True, **options)
    for interpolant, left, right, before, after in zip(
        result.sol.interpolants,
        result.t[:-1],
        result.t[1:],
        result.y.T[:-1],
        result.y.T[1:],
        strict=True,
    ):
        assert interpolant(left) == pytest.approx(before, rel=1e-14)
        assert interpolant(right) == pytest.approx(after, rel=1e-14)
        between = np.array([left, 0.5 * (left + right), right])
        assert interpolant(between).shape == (2, 3)
        assert interpolant(between)[:, 1] == pytest.approx(interpolant(between[1]), rel=1e-14)


@every_solver
def test_the_interpolant_is_as_accurate_as_the_steps(
    solver: type[FixedStep], options: dict[str, Any], order: int
) -> None:
    times = np.linspace(0.0, 1.0, 397)
    exact = solve_ivp(
        pendulum, (0.0, 1.0), [1.0, 0.2], "DOP853", rtol=1e-13, atol=1e-13, t_eval=times
    ).y
    errors = []
    for step in (0.01, 0.005):
        dense = run(
            pendulum, (0.0, 1.0), [1.0, 0.2], solver, step=step, dense_output=True, **options
        ).sol
        errors.append(np.max(np.abs(dense(times) - exact)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("solver", [ExplicitEuler, ImplicitEuler])
def test_euler_steps_are_straight_lines(solver: type[FixedStep]) -> None:
    sol = run(pendulum, (0.0, 0.2), [1.0, 0.2], solver, step=0.2, dense_output=True).sol
    assert sol(0.05) == pytest.approx(0.75 * sol(0.0) + 0.25 * sol(0.2))


# Cost -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "options", "per_step"),
    [
        (ExplicitEuler, {}, 1),
        (SemiExplicitEuler, {"positions": [0]}, 2),
        (RungeKutta2, {}, 2),
        (RungeKutta4, {}, 4),
    ],
)
def test_no_evaluation_is_wasted(
    solver: type[FixedStep], options: dict[str, Any], per_step: int
) -> None:
    result = run(pendulum, (0.0, 1.0), [1.0, 0.2], solver, step=0.1, **options)
    assert result.nfev == 10 * per_step
    dense = run(pendulum, (0.0, 1.0), [1.0, 0.2], solver, step=0.1, dense_output=True, **options)
    extra = 0 if solver is ExplicitEuler else 1  # the slope at the very end
    assert dense.nfev == 10 * per_step + extra


# Implicit Euler ---------------------------------------------------------------------------------


def test_implicit_euler_takes_long_steps_over_a_fast_mode() -> None:
    result = run(lambda t, x: -1e6 * (x - np.cos(t)), (0.0, 2.0), [5.0], ImplicitEuler, step=0.1)
    assert result.y[0, 1:] == pytest.approx(np.cos(result.t[1:]), abs=1e-4)
    assert result.nfev < 4 * 20


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-9])
def test_implicit_euler_brings_steep_friction_to_rest(width: float) -> None:
    speed = run(
        lambda t, x: -10.0 * np.tanh(x / width), (0.0, 0.3), [1.0], ImplicitEuler, step=0.03
    ).y[0]
    assert speed[:4] == pytest.approx([1.0, 0.7, 0.4, 0.1])
    assert abs(speed[4]) < width
    assert np.all(np.abs(np.diff(speed[4:])) < width)


def stiff_pair(t: float, x: Array) -> Array:
    return np.array([x[1] ** 2 - x[0], -1e4 * (x[1] - np.cos(x[0]))])


def stiff_pair_jacobian(t: float, x: Array) -> Array:
    return np.array([[-1.0, 2.0 * x[1]], [-1e4 * np.sin(x[0]), -1e4]])


@pytest.mark.parametrize(
    "jac",
    [stiff_pair_jacobian, lambda t, x: sparse.csr_array(stiff_pair_jacobian(t, x))],
    ids=["dense", "sparse"],
)
def test_a_given_jacobian_leads_to_the_same_states(jac: Any) -> None:
    by_differences = run(stiff_pair, (0.0, 1.0), [0.5, 0.0], ImplicitEuler, step=0.1)
    given = run(stiff_pair, (0.0, 1.0), [0.5, 0.0], ImplicitEuler, step=0.1, jac=jac)
    assert given.status == 0
    assert given.y == pytest.approx(by_differences.y, rel=1e-8)
    assert 0 < by_differences.njev < 10
    assert by_differences.nlu >= by_differences.njev


def test_a_step_without_solution_fails() -> None:
    result = run(lambda t, x: 1.0 + x**2, (0.0, 5.0), [0.0], ImplicitEuler, step=0.1)
    assert result.status == -1
    assert result.t[-1] < np.pi / 2.0
    assert "Newton" in result.message


def test_a_singular_system_fails() -> None:
    result = run(lambda t, x: 10.0 * x, (0.0, 1.0), [1.0], ImplicitEuler, step=0.1)
    assert result.status == -1


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"step": 0.0}, {"step": -0.1}, {"step": np.nan}, {"step": np.inf}],
    ids=["missing", "zero", "negative", "NaN", "infinite"],
)
def test_a_step_that_is_no_step_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueRefusedError, match="positive step in seconds"):
        run(oscillator, (0.0, 1.0), [1.0, 0.0], RungeKutta4, **options)


@for_each("stretch", [-0.01, np.nan])
def test_a_negative_stretch_is_refused(stretch: float) -> None:
    with pytest.raises(ValueRefusedError, match="stretch of 0 or more"):
        run(oscillator, (0.0, 1.0), [1.0, 0.0], RungeKutta4, step=0.1, stretch=stretch)


@pytest.mark.parametrize(
    "positions",
    [None, [2], [-1], [0, 0], [0.0], [[0, 1]], [True, False]],
    ids=["missing", "beyond", "negative", "repeated", "float", "matrix", "mask"],
)
def test_positions_that_are_no_indices_are_refused(positions: Any) -> None:
    with pytest.raises(ValueRefusedError, match="different indices from 0 to 1"):
        run(oscillator, (0.0, 1.0), [1.0, 0.0], SemiExplicitEuler, step=0.1, positions=positions)


def test_without_positions_semi_explicit_euler_is_explicit_euler() -> None:
    semi = run(pendulum, (0.0, 1.0), [1.0, 0.2], SemiExplicitEuler, step=0.1, positions=[])
    explicit = run(pendulum, (0.0, 1.0), [1.0, 0.2], ExplicitEuler, step=0.1)
    assert np.array_equal(semi.y, explicit.y)


def test_an_option_without_effect_is_announced() -> None:
    with pytest.warns(UserWarning, match="RungeKutta4 ignores the options rtol"):
        run(oscillator, (0.0, 1.0), [1.0, 0.0], RungeKutta4, step=0.1, rtol=1e-6)
