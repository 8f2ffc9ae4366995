"""Implicit methods get the exact Jacobian of traced equations, and keep their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.tracing.derivatives import Derivatives
from flexure.solvers.tracing.differences import difference_jacobian
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode, state_keys
from flexure.solvers.tracing.trace import trace_derivatives
from tests.support.mechanics.mechanics import ForeignPendulum, Pendulum, servo
from tests.support.tiers import thinned

IMPLICIT = ["Rodas5P", "Radau", "BDF", "LSODA", "implicit_euler"]


class Chain(fx.LeafSystem):
    """Masses between stiff, damped springs."""

    def __init__(self, size: int) -> None:
        super().__init__("chain")
        self.size = size
        self.stiffness = self.declare_numeric_parameter("stiffness", 1e4)
        start = np.concatenate([0.01 * np.sin(np.arange(size)), np.zeros(size)])
        self.x = self.declare_continuous_state(q=size, v=size, default=start)

    def calc_time_derivatives(self, context: Any) -> Any:
        x = self.x(context)
        q, v = x[: self.size], x[self.size :]
        stretch = np.concatenate([q[:1], q[1:] - q[:-1]])
        rate = np.concatenate([v[:1], v[1:] - v[:-1]])
        force = self.stiffness(context) * stretch * (1.0 + stretch**2) + 300.0 * rate
        return np.concatenate([v, force[1:] - force[:-1], -force[-1:]])


class Cell(fx.LeafSystem):
    """ẋ = rate(x, k) for a given function."""

    def __init__(self, rate: Callable[..., Any], start: list[float]) -> None:
        super().__init__("cell")
        self.rate = rate
        self.k = self.declare_numeric_parameter("k", 2.0)
        self.x = self.declare_continuous_state(z=len(start), default=start)

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.rate(self.x(context), self.k(context))


def options(method: str) -> dict[str, Any]:
    return {"method": method} | ({"step": 0.002} if method == "implicit_euler" else {})


def exact_of(context: fx.Context) -> ExactJacobian:
    store = context.store
    rates, keys = trace_derivatives(store.layout), state_keys(store)
    return ExactJacobian(store, JacobianCode(rates, keys, store.layout.num_states))


def torqued(pendulum: Pendulum) -> fx.Context:
    context = pendulum.create_default_context()
    pendulum.torque.fix(context, 0.5)
    return context


# Simulations -------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("method", IMPLICIT)
def test_the_motion_stays_the_same(method: str) -> None:
    diagram = servo()
    results = [
        fx.simulate(diagram, 0.4, compiled=compiled, rtol=1e-7, **options(method))
        for compiled in ("python", False)
    ]
    assert "exact Jacobian of" in results[0].message
    assert "Jacobian" not in results[1].message
    final = [result["pendulum.angle"][-1] for result in results]
    assert final[0] == pytest.approx(final[1], rel=1e-6)


@pytest.mark.parametrize("method", IMPLICIT)
def test_it_saves_evaluations(method: str) -> None:
    chain = Chain(12)
    counts = [
        fx.simulate(chain, 0.2, compiled=compiled, **options(method)).statistics.evaluations
        for compiled in ("python", False)
    ]
    assert counts[0] < 0.95 * counts[1]


def test_explicit_methods_do_not_ask_for_it() -> None:
    assert "Jacobian" not in fx.simulate(Chain(3), 0.5, method="RK45").message


@pytest.mark.full
@pytest.mark.parametrize("method", thinned(IMPLICIT, fast=2))
def test_a_large_chain_runs_on_sparse_matrices(method: str) -> None:
    chain = Chain(20)
    derivatives = Derivatives(chain.create_default_context().store, compiled=True)
    jacobian = derivatives.jacobian()
    assert jacobian is not None
    matrix = jacobian(0.0, np.zeros(40))
    assert (matrix.shape, matrix.nnz) == ((40, 40), 20 + 2 * (3 * 20 - 2))
    few = fx.simulate(chain, 0.02, compiled=True, **options(method))
    many = fx.simulate(chain, 0.02, compiled=False, **options(method))
    tolerance = 1e-5 * np.max(np.abs(many.context.get("x")))
    np.testing.assert_allclose(few.context.get("x"), many.context.get("x"), atol=tolerance)


def test_a_change_of_a_parameter_in_mid_run_reaches_the_jacobian() -> None:
    context = Chain(2).create_default_context()
    derivatives = Derivatives(context.store, compiled=True)
    jacobian = derivatives.jacobian()
    assert jacobian is not None
    x = np.zeros(4)
    assert jacobian(0.0, x)[3, 0] == 1e4
    context.set("stiffness", 5.0)
    assert jacobian(0.0, x)[3, 0] == 5.0


def test_equations_that_are_not_compiled_have_none() -> None:
    pendulum = ForeignPendulum()
    assert Derivatives(torqued(pendulum).store, compiled=True).jacobian() is None
    assert Derivatives(torqued(Pendulum()).store, compiled=False).jacobian() is None
    result = fx.simulate(pendulum, 0.2, context=torqued(pendulum), method="Radau")
    assert "equations: interpreted, because" in result.message


# The matrix itself -------------------------------------------------------------------------------


def test_the_first_matrices_have_the_bits_of_the_code_that_computes_the_later_ones() -> None:
    jacobian = exact_of(torqued(Pendulum()))
    found = [jacobian(0.0, np.array([0.3, -0.2])) for _ in range(9)]
    assert "code" in vars(jacobian._code)
    assert all(np.array_equal(found[0], each) for each in found)


def test_it_agrees_with_differences() -> None:
    diagram = servo()
    context = diagram.create_default_context()
    exact, rng = exact_of(context), np.random.default_rng(5)
    for _ in range(5):
        x = rng.normal(size=4)

        def rates(t: float, x: Any) -> Any:
            context.continuous_state = x
            return context.store.time_derivatives()

        expected = difference_jacobian(rates, 0.0, x, rates(0.0, x))
        rounding = 1e-6 * np.max(np.abs(expected))
        np.testing.assert_allclose(exact(0.0, x), expected, rtol=1e-6, atol=rounding)


def test_a_division_by_zero_gives_what_numpy_gives() -> None:
    block = Cell(lambda x, k: k * x / (x[0] + x[1]), [1.0, 1.0])
    matrix = exact_of(block.create_default_context())(0.0, np.array([1.0, -1.0]))
    assert not np.isfinite(matrix).all()
    divided = Cell(lambda x, k: x / k, [1.0, 1.0])
    context = divided.create_default_context()
    divided.k.set(context, 0.0)
    assert exact_of(context)(0.0, np.zeros(2)).tolist() == [[np.inf, 0.0], [0.0, np.inf]]


def test_an_infinite_slope_is_replaced_by_differences() -> None:
    block = Cell(lambda x, k: k - np.sqrt(x), [0.0])
    derivatives = Derivatives(block.create_default_context().store, compiled=True)
    jacobian = derivatives.jacobian()
    assert jacobian is not None
    assert np.isfinite(jacobian(0.0, np.zeros(1))).all()
    np.testing.assert_allclose(jacobian(0.0, np.ones(1)), [[-0.5]])
    assert fx.simulate(block, 60.0, method="Radau")["x"][-1] == pytest.approx(4.0, rel=1e-5)


def test_time_is_read_as_given() -> None:
    class Clocked(Cell):
        def calc_time_derivatives(self, context: Any) -> Any:
            return self.x(context) / context.time

    exact = exact_of(Clocked(lambda x, k: x, [1.0]).create_default_context())
    assert exact(4.0, np.ones(1)).tolist() == [[0.25]]
    assert exact(0.0, np.ones(1)).tolist() == [[np.inf]]


def test_constant_equations_have_an_empty_matrix() -> None:
    block = Cell(lambda x, k: [k, 3.0], [0.0, 0.0])
    exact = exact_of(block.create_default_context())
    assert exact(0.0, np.zeros(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    final = fx.simulate(block, 1.0, method="Radau").context.get("x")
    np.testing.assert_allclose(final, [2.0, 3.0], rtol=1e-12)
