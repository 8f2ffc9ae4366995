"""Rodas5P as a solver class: order, stability, the rules of its steps, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.integrate import DOP853, RK23, RK45, OdeSolver, solve_ivp

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.integration.methods.rosenbrock import Rodas5P, initial_step
from flexure.solvers.integration.methods.tableaus import RODAS5P
from tests.support.tiers import for_each

Array = NDArray[np.float64]
RightHandSide = Callable[[float, Array], Array]

plain: Any = solve_ivp  # its stub knows the options of SciPy's own methods only
CARELESS = {"rtol": 1e3, "atol": 1e6}  # no error is too large


def driven(t: float, x: Array) -> Array:
    return np.array([x[1] * np.cos(t), -x[0] * x[1] + np.sin(t)])


def logistic(t: float, x: Array) -> Array:
    return np.array([x[0] * (2.0 + np.sin(3.0 * t) - x[0]), np.exp(-t) * x[0] - x[1] ** 2])


def robertson(t: float, x: Array) -> Array:
    slow, fast, recombined = 0.04 * x[0], 3e7 * x[1] ** 2, 1e4 * x[1] * x[2]
    return np.array([recombined - slow, slow - recombined - fast, fast])


def robertson_jacobian(t: float, x: Array) -> Array:
    return np.array(
        [
            [-0.04, 1e4 * x[2], 1e4 * x[1]],
            [0.04, -1e4 * x[2] - 6e7 * x[1], -1e4 * x[1]],
            [0.0, 6e7 * x[1], 0.0],
        ]
    )


def van_der_pol(t: float, x: Array) -> Array:
    return np.array([x[1], 1000.0 * (1.0 - x[0] ** 2) * x[1] - x[0]])


def follower(rate: float) -> RightHandSide:
    """x follows cos t, the more closely the larger the rate."""
    return lambda t, x: -rate * (x - np.cos(t)) - np.sin(t)


def constant(matrix: Any) -> Callable[[float, Array], Any]:
    return lambda t, x: matrix


def solver_of(rhs: RightHandSide, x0: list[float], t_bound: float, **options: Any) -> Rodas5P:
    return Rodas5P(rhs, 0.0, x0, t_bound, **options)


def one_step(rhs: RightHandSide, x0: list[float], h: float, **options: Any) -> Rodas5P:
    """Return a solver after one step of a given length, whatever its error."""
    solver = solver_of(rhs, x0, h, first_step=abs(h), **CARELESS, **options)
    assert solver.step() is None
    assert solver.t == h
    return solver


# Order -------------------------------------------------------------------------------------------

smooth = pytest.mark.parametrize("rhs", [driven, logistic])


def exact_motion(rhs: RightHandSide, x0: list[float], t_bound: float) -> Any:
    given = {"rtol": 1e-13, "atol": 1e-15, "max_step": abs(t_bound) / 10.0}
    return plain(rhs, (0.0, t_bound), x0, "DOP853", dense_output=True, **given).sol


@smooth
@pytest.mark.parametrize("direction", [1.0, -1.0], ids=["forward", "backward"])
def test_halving_the_steps_shows_order_5(rhs: RightHandSide, direction: float) -> None:
    end = direction * 1.0
    exact = exact_motion(rhs, [1.0, 0.5], end)(end)
    errors = []
    for steps in (20, 40):
        h = 1.0 / steps
        found = plain(rhs, (0.0, end), [1.0, 0.5], Rodas5P, max_step=h, first_step=h, **CARELESS).y[
            :, -1
        ]
        errors.append(np.max(np.abs(found - exact)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(5.0, abs=0.35)


@smooth
@pytest.mark.parametrize("direction", [1.0, -1.0], ids=["forward", "backward"])
def test_inside_of_a_step_the_order_is_4(rhs: RightHandSide, direction: float) -> None:
    errors = []
    for h in (direction * 0.1, direction * 0.05):
        exact = exact_motion(rhs, [1.0, 0.5], h)
        times = h * np.linspace(0.1, 0.9, 9)
        inside = one_step(rhs, [1.0, 0.5], h).dense_output()(times)
        errors.append(np.max(np.abs(inside - exact(times))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(5.0, abs=0.35)  # of one step


def test_the_interpolant_joins_the_ends_of_a_step() -> None:
    solver = one_step(driven, [1.0, 0.5], 0.3)
    interpolant = solver.dense_output()
    assert interpolant(0.0).tolist() == [1.0, 0.5]
    assert interpolant(0.3).tolist() == solver.y.tolist()
    assert interpolant(np.array([0.0, 0.1, 0.3])).shape == (2, 3)
    assert interpolant(np.array([0.0, 0.1, 0.3]))[:, 1].tolist() == interpolant(0.1).tolist()


def test_a_polynomial_of_time_is_integrated_exactly_in_one_step() -> None:
    found = one_step(lambda t, x: np.array([5.0 * t**4, 4.0 * t**3 - 1.0]), [0.0, 0.0], 2.0).y
    assert found == pytest.approx([32.0, 14.0], rel=1e-13)


# Stability ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("jac", [None, constant(np.array([[-1e12]]))], ids=["differences", "given"])
def test_a_giant_step_ends_what_decays_in_no_time(jac: Any) -> None:
    assert abs(one_step(lambda t, x: -1e12 * x, [1.0], 1.0, jac=jac).y[0]) < 1e-10


@pytest.mark.parametrize("rate", [1e2, 1e4, 1e6, 1e9])
def test_steps_are_as_long_as_the_motion_allows_however_fast_the_decay(rate: float) -> None:
    given = {"jac": constant(np.array([[-rate]])), "rtol": 1e-6, "atol": 1e-8}
    solution = plain(follower(rate), (0.0, 10.0), [1.0], Rodas5P, **given)
    assert solution.y[0] == pytest.approx(np.cos(solution.t), abs=1e-6)
    assert len(solution.t) < 80


@pytest.mark.full
@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize(
    ("rhs", "x0", "t_end"),
    [(robertson, [1.0, 0.0, 0.0], 1e3), (van_der_pol, [2.0, 0.0], 1000.0)],
    ids=["robertson", "van der pol"],
)
def test_stiff_motions_are_those_of_radau_within_the_tolerance(
    rhs: RightHandSide, x0: list[float], t_end: float, rtol: float
) -> None:
    exact = plain(rhs, (0.0, t_end), x0, "Radau", rtol=1e-10, atol=1e-14).y[:, -1]
    solution = plain(rhs, (0.0, t_end), x0, Rodas5P, rtol=rtol, atol=1e-6 * rtol)
    assert solution.y[:, -1] == pytest.approx(exact, rel=5.0 * rtol)
    coarse = plain(rhs, (0.0, t_end), x0, "Radau", rtol=rtol, atol=1e-6 * rtol)
    assert len(solution.t) < len(coarse.t)


# The Jacobian ------------------------------------------------------------------------------------

SIZE = 60
LAPLACE: Any = (SIZE + 1) ** 2 * sparse.csc_array(
    np.eye(SIZE, k=-1) - 2.0 * np.eye(SIZE) + np.eye(SIZE, k=1)
)


def diffusion(t: float, x: Array) -> Array:
    found: Array = LAPLACE @ x - x**3 + np.cos(3.0 * t)
    return found


def diffusion_jacobian(t: float, x: Array) -> Any:
    return LAPLACE - sparse.diags_array(3.0 * x**2)


@pytest.mark.parametrize(
    "form",
    [sparse.csc_array, sparse.csr_array, sparse.csc_matrix, sparse.coo_array],
    ids=lambda form: form.__name__,
)
def test_sparse_and_dense_jacobians_lead_to_the_same_steps(form: Any) -> None:
    x0 = np.sin(np.linspace(0.0, np.pi, SIZE))
    few, many = (
        plain(diffusion, (0.0, 1.0), x0, Rodas5P, rtol=1e-6, jac=jac)
        for jac in (
            lambda t, x: form(diffusion_jacobian(t, x)),
            lambda t, x: diffusion_jacobian(t, x).toarray(),
        )
    )
    assert few.t == pytest.approx(many.t, rel=1e-6)
    assert few.y == pytest.approx(many.y, rel=1e-7, abs=1e-10)


def test_differences_replace_a_jacobian() -> None:
    given, by_differences = (
        plain(robertson, (0.0, 100.0), [1.0, 0.0, 0.0], Rodas5P, rtol=1e-6, atol=1e-10, jac=jac)
        for jac in (robertson_jacobian, None)
    )
    assert len(by_differences.t) == len(given.t)
    assert by_differences.y[:, -1] == pytest.approx(given.y[:, -1], rel=1e-7)


def test_the_jacobian_is_evaluated_once_per_step_and_factorized_once_per_try() -> None:
    times: list[float] = []

    def jac(t: float, x: Array) -> Array:
        times.append(t)
        return np.array([[0.0, 1.0], [-2000.0 * x[0] * x[1] - 1.0, 1000.0 * (1.0 - x[0] ** 2)]])

    solution = plain(van_der_pol, (0.0, 1000.0), [2.0, 0.0], Rodas5P, rtol=1e-4, jac=jac)
    assert times == solution.t[:-1].tolist()
    assert solution.njev == len(times)
    assert solution.nlu > solution.njev


@pytest.mark.parametrize("form", [np.array, sparse.csc_array], ids=["dense", "sparse"])
def test_a_singular_matrix_is_avoided_by_a_shorter_step(form: Any) -> None:
    rate = 1.0 / (RODAS5P.gamma * 0.5)
    matrix = form(np.diag([rate, -1.0]))
    solver = solver_of(
        lambda t, x: np.array([rate, -1.0]) * x,
        [1.0, 1.0],
        2.0,
        first_step=0.5,
        jac=constant(matrix),
    )
    assert solver.step() is None
    assert solver.t == pytest.approx(0.1)
    assert solver.nlu == 2
    assert solver.y == pytest.approx(np.exp([0.1 * rate, -0.1]), rel=1e-4)


# The rules of a step -----------------------------------------------------------------------------


@pytest.mark.parametrize(("rhs", "per_step"), [(robertson, 9), (follower(1e3), 10)])
def test_time_costs_an_evaluation_where_it_matters(rhs: RightHandSide, per_step: int) -> None:
    x0 = [1.0, 0.0, 0.0] if rhs is robertson else [1.0]
    solver = one_step(rhs, x0, 1e-3)
    assert solver.nfev == 1 + per_step


def test_every_evaluation_is_inside_of_the_step() -> None:
    times: list[float] = []

    def rhs(t: float, x: Array) -> Array:
        times.append(t)
        return np.array([np.sin(t) - x[0]])

    one_step(rhs, [1.0], -0.25)
    assert min(times) == -0.25
    assert max(times) == 0.0


@pytest.mark.parametrize("end", [0.7, -0.7])
def test_the_last_step_ends_at_the_bound_exactly(end: float) -> None:
    solution = plain(driven, (0.0, end), [1.0, 0.5], Rodas5P, max_step=0.1)
    assert solution.t[-1] == end
    steps = np.abs(np.diff(solution.t))
    assert np.max(steps) <= 0.1 * (1.0 + 1e-12)
    assert len(steps) >= 7


def test_the_first_step_is_the_one_asked_for_and_cut_to_the_interval() -> None:
    assert plain(driven, (0.0, 1.0), [1.0, 0.5], Rodas5P, first_step=0.01).t[1] == 0.01
    assert plain(driven, (0.0, 1e-3), [1.0, 0.5], Rodas5P, first_step=1.0).t.tolist() == [0.0, 1e-3]


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_steps_grow_and_shrink_as_the_rules_say(rtol: float) -> None:
    solver = solver_of(van_der_pol, [2.0, 0.0], 1000.0, rtol=rtol, atol=rtol)
    rejected = 0
    while solver.status == "running":
        before, tries = solver.h_abs, solver.nlu
        solver.step()
        step = solver.t - solver.t_old
        if solver.nlu > tries + 1:
            rejected += 1
            assert step <= 0.9 * before
            assert step >= 0.99 * before * 0.2 ** (solver.nlu - tries - 1)
            assert solver.h_abs <= step
        else:
            assert step == pytest.approx(min(before, 1000.0 - solver.t_old), rel=1e-9)
            assert 0.9 * step <= solver.h_abs <= 6.0 * step
    assert rejected > 5


def test_a_step_without_error_is_followed_by_one_six_times_as_long() -> None:
    solver = solver_of(lambda t, x: 0.0 * x, [1.0], 1.0, first_step=0.01)
    solver.step()
    assert solver.h_abs == pytest.approx(0.06)


@pytest.mark.parametrize("position", range(2, 11))
def test_a_value_that_is_not_finite_at_any_point_of_a_step_makes_it_shorter(position: int) -> None:
    count = 0

    def rhs(t: float, x: Array) -> Array:
        nonlocal count
        count += 1
        return np.full(1, np.nan) if count == position else np.sin(t) - x

    solver = solver_of(
        rhs, [1.0], 1.0, first_step=0.1, jac=constant(np.array([[-1.0]])), **CARELESS
    )
    assert solver.step() is None
    assert solver.t == pytest.approx(0.02)
    assert solver.h_abs <= solver.t
    assert solver.y == pytest.approx([(3.0 * np.exp(-0.02) + np.sin(0.02) - np.cos(0.02)) / 2.0])


def test_equations_that_are_finite_nowhere_end_the_run() -> None:
    count = 0

    def rhs(t: float, x: Array) -> Array:
        nonlocal count
        count += 1
        return x if count == 1 else np.full(1, np.nan)

    solver = Rodas5P(rhs, 1.0, [1.0], 2.0, first_step=0.1, jac=constant(np.eye(1)))
    assert solver.step() == OdeSolver.TOO_SMALL_STEP
    assert solver.status == "failed"
    assert count < 300


def test_a_first_step_that_cannot_be_found_ends_the_run() -> None:
    solver = solver_of(lambda t, x: x * np.nan, [1.0], 2.0, jac=constant(np.eye(1)))
    assert np.isnan(solver.h_abs)
    assert solver.step() == OdeSolver.TOO_SMALL_STEP


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("solver", [RK23, RK45, DOP853])
def test_the_first_step_is_suggested_as_scipy_does(solver: Any, size: float) -> None:
    def rhs(t: float, x: Array) -> Array:
        return np.array([-20.0 * x[1], 5.0 * x[0] + size * np.cos(t)])

    for t_bound in (3.0, -3.0, 1e-7):
        for x in (np.array([size, 0.3 * size]), np.zeros(2)):
            expected = solver(rhs, 0.0, x, t_bound, rtol=1e-4, atol=1e-7).h_abs
            given = {"order": solver.error_estimator_order, "rtol": 1e-4, "atol": 1e-7}
            found = initial_step(rhs, 0.0, x, rhs(0.0, x), t_bound, **given)
            assert found == pytest.approx(expected, rel=1e-14)


def test_an_interval_without_length_has_no_first_step() -> None:
    assert initial_step(driven, 1.0, np.ones(2), np.ones(2), 1.0, order=4, rtol=1, atol=1) == 0.0


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [False, True])
def test_vectorized_equations_will_do(vectorized: bool) -> None:
    solution = plain(
        lambda t, x: -1e4 * (x - np.cos(t)), (0.0, 1.0), [1.0], Rodas5P, vectorized=vectorized
    )
    assert solution.y[0, -1] == pytest.approx(np.cos(1.0), abs=1e-3)


def test_each_state_may_have_its_own_tolerances() -> None:
    loose, tight = (
        plain(driven, (0.0, 5.0), [1.0, 0.5], Rodas5P, rtol=[1e-3, rtol], atol=[1e-6, 1e-3 * rtol])
        for rtol in (1e-3, 1e-9)
    )
    assert len(tight.t) > 3 * len(loose.t)


@for_each(
    ("options", "text"),
    [
        ({"first_step": 0.0}, "expected first_step positive, in seconds; found first_step=0.0"),
        ({"first_step": np.nan}, "expected first_step positive"),
        ({"max_step": -1.0}, "expected max_step positive"),
        ({"rtol": 1e-15}, r"expected rtol of at least 2\.22e-14, one number or 2"),
        ({"rtol": [1e-3, 1e-3, 1e-3]}, "expected rtol"),
        ({"atol": -1.0}, "expected atol of at least 0, one number or 2"),
        ({"atol": [np.nan, 1.0]}, "expected atol"),
    ],
)
def test_senseless_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueRefusedError, match=f"Cannot integrate with Rodas5P: {text}"):
        solver_of(driven, [1.0, 0.5], 1.0, **options)


def test_options_of_other_methods_are_announced_as_ignored() -> None:
    with pytest.warns(UserWarning, match="Rodas5P ignores the options min_step, order"):
        solver_of(driven, [1.0, 0.5], 1.0, order=3, min_step=1e-3)


# In a simulation ---------------------------------------------------------------------------------


def test_a_simulation_may_ask_for_it_by_name_or_as_a_class() -> None:
    def result_of(method: Any) -> fx.results.SimulationResult:
        builder = fx.DiagramBuilder("stiff")
        builder.add_all(
            fx.Sine("wave", frequency=3.0),
            fx.FirstOrderLag("sensor", time_constant=1e-5),
            fx.FirstOrderLag("motor", time_constant=0.5),
        )
        builder.connect_chain("wave", "sensor", "motor")
        return fx.simulate(builder.build(), 2.0, method=method, rtol=1e-7)

    named, classed = (result_of(method) for method in ("rodas5p", Rodas5P))
    exact = result_of("Radau")
    times = np.linspace(0.0, 2.0, 41)
    for result in (named, classed):
        assert result.statistics.steps < exact.statistics.steps
        np.testing.assert_allclose(
            result.sample("motor.y", times), exact.sample("motor.y", times), atol=1e-6
        )
