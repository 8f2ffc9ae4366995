"""`compiled_equations`: derivatives as a function, and native solvers for SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.diagrams.checks.errors import ContextError, NativeCodeError, ValueRefusedError
from flexure.solvers.integration.methods.methods import (
    METHOD_NAMES,
    is_fixed_step,
    is_implicit,
    resolve,
)
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.runs.scipy_solver import NativeSolver
from tests.support.native.native import needs_llvmlite

every_native_method = pytest.mark.parametrize("method", METHODS)


class VanDerPol(fx.LeafSystem):
    """q″ = μ (1 - q²) q′ - q + u."""

    def __init__(self, name: str = "oscillator", mu: float = 1.0) -> None:
        super().__init__(name)
        self.mu = self.declare_numeric_parameter("mu", mu)
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.x = self.declare_continuous_state(q=1, v=1, default=[2.0, 0.0])

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, self.mu(context) * (1.0 - q * q) * v - q + self.u(context)]


class Untraceable(fx.LeafSystem):
    """x′ = -x, in a way that symbols cannot follow."""

    def __init__(self) -> None:
        super().__init__("untraceable")
        self.x = self.declare_continuous_state(z=1, default=1.0)

    def calc_time_derivatives(self, context: Any) -> Any:
        return [-float(self.x(context)[0])]


class Sampled(fx.LeafSystem):
    """x′ = d - k x + u, with a discrete value d."""

    def __init__(self) -> None:
        super().__init__("sampled")
        self.k = self.declare_numeric_parameter("k", 1.0)
        self.d = self.declare_discrete_state("d", 0.0)
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.x = self.declare_continuous_state(z=1, default=1.0)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.d(context) - self.k(context) * self.x(context) + self.u(context)


@pytest.fixture(params=[pytest.param("native", marks=needs_llvmlite), "without native code"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate the equations with the extra, or without it."""
    if request.param != "native":
        monkeypatch.setattr("flexure.solvers.native.programs.programs.available", lambda: False)


both_ways = pytest.mark.usefixtures("way")


def driven() -> fx.Diagram:
    builder = fx.DiagramBuilder("driven")
    builder.add_all(fx.Sine("push", 0.5, 3.0), VanDerPol())
    builder.connect("push.y", "oscillator.u")
    return builder.build()


def solved(equations: Any, method: Any, **options: Any) -> Any:
    given = {"rtol": 1e-6, "atol": 1e-9} | options
    return solve_ivp(equations, (0.0, 10.0), equations.x0, method=method, **given)


@both_ways
def test_the_function_gives_the_derivatives_of_the_context() -> None:
    system = driven()
    context = system.create_default_context()
    context.set("oscillator.mu", 2.0)
    equations = fx.compiled_equations(system, context)
    x = np.array([0.3, -0.7])
    expected = [-0.7, 2.0 * (1.0 - 0.09) * -0.7 - 0.3 + 0.5 * np.sin(0.6)]
    assert equations(0.2, x) == pytest.approx(expected, rel=1e-15)
    assert equations.x0.tolist() == [2.0, 0.0]
    assert equations.t0 == 0.0


@both_ways
@pytest.mark.parametrize("evaluations", [1, 300], ids=["at first", "after many evaluations"])
def test_what_changes_later_in_the_context_is_seen(evaluations: int) -> None:
    system = Sampled()
    context = system.create_default_context()
    equations = fx.compiled_equations(system, context)
    for _ in range(evaluations):
        assert equations(0.0, [2.0]).tolist() == [-2.0]
    for path, value, expected in [("k", 3.0, -6.0), ("d", 5.0, -1.0), ("u", [0.5], -0.5)]:
        context.set(path, value)
        assert equations(0.0, [2.0]).tolist() == [expected]


@both_ways
def test_solvers_see_a_parameter_that_has_changed() -> None:
    system = VanDerPol()
    context = system.create_default_context()
    equations = fx.compiled_equations(system, context)
    solver = equations.method("RK45")
    solved(equations, solver)
    system.mu.set(context, 3.0)
    expected = solved(fx.compiled_equations(VanDerPol(mu=3.0)), "RK45")
    assert solved(equations, solver).y[:, -1] == pytest.approx(expected.y[:, -1], rel=1e-9)
    assert solved(equations, "RK45").y[:, -1] == pytest.approx(expected.y[:, -1], rel=1e-9)


@both_ways
def test_time_and_state_of_the_context_are_left_alone() -> None:
    system = driven()
    context = system.create_default_context()
    context.time = 0.25
    equations = fx.compiled_equations(system, context)
    before = context.clone()
    push = context.get("push.y").tolist()
    first = equations(1.0, [0.5, 1.0]).tolist()
    assert context == before
    assert context.get("push.y").tolist() == push
    context.time = 0.5
    context.set("oscillator.x", [0.0, 7.0])
    assert equations(1.0, [0.5, 1.0]).tolist() == first
    assert context.get("oscillator.x").tolist() == [0.0, 7.0]


def test_equations_that_raise_leave_the_context_alone() -> None:
    class Picky(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("picky")
            self.x = self.declare_continuous_state(z=1, default=1.0)

        def calc_time_derivatives(self, context: Any) -> Any:
            if float(self.x(context)[0]) > 2.0:
                raise ValueError("too much")
            return [0.0]

    context = Picky().create_default_context()
    equations = fx.compiled_equations(context.system, context)
    with pytest.raises(ValueError, match="too much"):
        equations(1.0, [3.0])
    assert context.time == 0.0
    assert context.continuous_state.tolist() == [1.0]


@both_ways
def test_arrays_that_are_not_contiguous_are_read_right() -> None:
    equations = fx.compiled_equations(VanDerPol())
    wide = np.arange(8.0).reshape(4, 2)
    assert equations(0.0, wide[::2, 1]).tolist() == equations(0.0, [1.0, 5.0]).tolist()
    assert equations(0.0, wide.T[1][::-2]).tolist() == equations(0.0, [7.0, 3.0]).tolist()


@both_ways
def test_a_state_of_another_size_is_refused() -> None:
    equations = fx.compiled_equations(VanDerPol())
    with pytest.raises(ValueRefusedError, match=r"expected a state of shape \(2,\)"):
        equations(0.0, [1.0, 2.0, 3.0])


@both_ways
def test_the_exact_jacobian() -> None:
    equations = fx.compiled_equations(VanDerPol(mu=2.0))
    q, v = 0.3, -0.7
    expected = [[0.0, 1.0], [-4.0 * q * v - 1.0, 2.0 * (1.0 - q * q)]]
    np.testing.assert_allclose(equations.jac(0.0, [q, v]), expected, rtol=1e-14)


# Solver classes -----------------------------------------------------------------------------------


@needs_llvmlite
@every_native_method
def test_the_native_solver_takes_the_steps_of_the_plain_one(method: str) -> None:
    equations = fx.compiled_equations(driven())
    options = {"jac": equations.jac} if is_implicit(method) else {}
    mine = solved(equations, equations.method(method))
    theirs = solved(equations, resolve(method), **options)
    assert mine.success
    assert issubclass(equations.method(method), NativeSolver)
    assert len(mine.t) == len(theirs.t)
    # The rounding of an error estimate, a small difference, shows in the length of the next step.
    np.testing.assert_allclose(mine.t, theirs.t, rtol=0.0, atol=1e-5)
    assert mine.nfev == theirs.nfev
    assert (mine.njev, mine.nlu) == (theirs.njev, theirs.nlu)


@needs_llvmlite
@pytest.mark.parametrize("method", ["RK45", "RK23", "DormandPrince"])
def test_with_equal_steps_the_numbers_are_equal(method: str) -> None:
    equations = fx.compiled_equations(driven())
    options = {"max_step": 0.05, "first_step": 0.05, "rtol": 1e-3, "atol": 1e-3}
    mine = solved(equations, equations.method(method), **options)
    theirs = solved(equations, resolve(method), **options)
    np.testing.assert_allclose(mine.t, theirs.t, rtol=1e-14)
    np.testing.assert_allclose(mine.y, theirs.y, rtol=1e-12, atol=1e-12)


@needs_llvmlite
@every_native_method
def test_dense_output_and_events_of_scipy(method: str) -> None:
    equations = fx.compiled_equations(driven())
    options: dict[str, Any] = {"jac": equations.jac} if is_implicit(method) else {}

    def crossing(t: float, x: Any) -> float:
        return float(x[0])

    crossing.terminal = 3  # type: ignore[attr-defined]
    given = {"dense_output": True, "events": crossing, "rtol": 1e-8, "atol": 1e-10}
    mine = solved(equations, equations.method(method), **given)
    theirs = solved(equations, resolve(method), **given, **options)
    assert mine.status == 1
    np.testing.assert_allclose(mine.t_events[0], theirs.t_events[0], rtol=1e-6)
    times = np.linspace(0.0, mine.t[-1], 57)
    np.testing.assert_allclose(mine.sol(times), theirs.sol(times), rtol=1e-5, atol=1e-5)


@needs_llvmlite
def test_times_to_evaluate_at_lie_on_the_interpolants() -> None:
    equations = fx.compiled_equations(driven())
    times = np.linspace(0.0, 10.0, 301)
    mine = solved(equations, equations.method("RK45"), t_eval=times)
    theirs = solved(equations, "RK45", t_eval=times)
    np.testing.assert_allclose(mine.y, theirs.y, rtol=1e-10, atol=1e-10)


@needs_llvmlite
def test_more_steps_than_one_call_of_the_loop_takes() -> None:
    equations = fx.compiled_equations(driven())
    options = {"max_step": 1e-3}
    mine = solved(equations, equations.method("RK23"), **options)
    assert len(mine.t) > 10_000
    assert np.all(np.diff(mine.t) > 0.0)
    assert mine.t[-1] == 10.0


@needs_llvmlite
def test_a_run_that_cannot_go_on_fails_as_with_scipy() -> None:
    class Explosion(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("explosion")
            self.x = self.declare_continuous_state(z=1, default=1.0)

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.x(context) ** 2

    equations = fx.compiled_equations(Explosion())
    mine = solved(equations, equations.method("RK45"))
    theirs = solved(equations, "RK45")
    assert (mine.success, theirs.success) == (False, False)
    assert mine.message == theirs.message
    assert mine.t[-1] == pytest.approx(1.0, abs=1e-6)


@needs_llvmlite
def test_only_its_own_equations_and_only_forward() -> None:
    equations, other = (fx.compiled_equations(VanDerPol()) for _ in range(2))
    with pytest.raises(NativeCodeError, match="equations for which this solver class was made"):
        solved(other, equations.method("RK45"))
    with pytest.raises(NativeCodeError, match="a time span that goes forward"):
        solve_ivp(equations, (1.0, 0.0), equations.x0, method=equations.method("RK45"))


def test_methods_without_a_native_loop_are_the_plain_ones() -> None:
    for method in [name for name in METHOD_NAMES if name not in METHODS]:
        assert fx.compiled_equations(VanDerPol()).method(method) is resolve(method)


@pytest.mark.parametrize("way", ["without native code"], indirect=True)
@both_ways
def test_without_native_code_everything_works_more_slowly() -> None:
    equations = fx.compiled_equations(driven())
    assert equations.program is None
    assert "flexure[fast]" in equations.why
    assert equations.method("RK45") is resolve("RK45")
    assert solved(equations, equations.method("RK45")).success


def test_equations_that_cannot_be_traced_are_interpreted() -> None:
    equations = fx.compiled_equations(Untraceable())
    assert equations.program is None
    solution = solved(equations, equations.method("DOP853"))
    assert solution.y[0, -1] == pytest.approx(np.exp(-10.0), rel=1e-4)


def test_a_context_of_another_system_is_refused() -> None:
    with pytest.raises(ContextError, match="Cannot compile the equations of 'oscillator'"):
        fx.compiled_equations(VanDerPol(), VanDerPol().create_default_context())


def test_fixed_steps_need_no_native_code() -> None:
    equations = fx.compiled_equations(driven())
    fixed = [name for name in METHOD_NAMES if is_fixed_step(name)]
    assert all(not issubclass(equations.method(name), NativeSolver) for name in fixed)
