"""State-space systems with and without offsets, and transfer functions, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import flexure as fx
from flexure.blocks.linear_systems.state_space import AffineSystem, StateSpace, TransferFunction
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from tests.support.tiers import for_each

Integrate = Callable[[fx.Context, float], fx.Context]

A = np.array([[-0.4, 2.0, 0.0], [-2.0, -0.3, 0.5], [0.0, 1.0, -1.0]])
B = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]])
C = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0]])
D = np.array([[0.0, 3.0], [0.0, 0.0]])
X = np.array([1.0, -2.0, 0.5])
U = np.array([0.7, -0.3])


def moved(x: Any, f: Any, time: float) -> Any:
    """Solution of ẋ = A x + f after a time, from one matrix exponential."""
    augmented = np.block([[A, np.reshape(f, (-1, 1))], [np.zeros((1, len(A) + 1))]])
    return (scipy.linalg.expm(augmented * time) @ np.append(x, 1.0))[:-1]


def prepared(block: Any) -> fx.Context:
    """Context with the state X and the input U."""
    context: fx.Context = block.create_default_context()
    block.x.set(context, X)
    block.u.fix(context, U)
    return context


def frequency_response(block: Any, omega: float) -> complex:
    """Response of a single-input block, from its derivatives and outputs at unit vectors."""
    context = block.create_default_context()
    n = block.x.size

    def column(x: Any, u: float) -> tuple[Any, Any]:
        block.x.set(context, x)
        block.u.fix(context, u)
        return block.eval_time_derivatives(context), block.y.eval(context)

    columns = [column(row, 0.0) for row in np.eye(n)]
    rates, outputs = (np.array([c[k] for c in columns]).T for k in (0, 1))
    b, d = column(np.zeros(n), 1.0)
    return complex((outputs @ np.linalg.solve(1j * omega * np.eye(n) - rates, b) + d)[0])


# State space ---------------------------------------------------------------------------------


def test_state_space_moves_like_the_matrix_exponential(integrate: Integrate) -> None:
    block = StateSpace("system", A, B, C, D)
    context = integrate(prepared(block), 1.3)
    expected = moved(X, B @ U, 1.3)
    np.testing.assert_allclose(block.x(context), expected, rtol=1e-9)
    np.testing.assert_allclose(block.y.eval(context), C @ expected + D @ U, rtol=1e-9)


def test_state_space_starts_at_the_given_state() -> None:
    block = StateSpace("system", A, B, C, initial=X)
    assert block.x(block.create_default_context()).tolist() == X.tolist()


@pytest.mark.parametrize("direct", [None, np.zeros((2, 2)), 0.0 * D])
def test_state_space_without_direct_part_breaks_loops(direct: Any) -> None:
    block = StateSpace("system", A, B, C, direct)
    assert block.feedthrough == frozenset()
    assert [p.name for p in block.numeric_parameters] == ["A", "B", "C"]
    np.testing.assert_allclose(block.y.eval(prepared(block)), C @ X, rtol=1e-15)


def test_state_space_with_direct_part_needs_its_input_at_once() -> None:
    block = StateSpace("system", A, B, C, D)
    assert block.feedthrough == {("u", "y")}
    np.testing.assert_allclose(block.y.eval(prepared(block)), C @ X + D @ U, rtol=1e-15)


def test_state_space_without_inputs_has_no_input_port(integrate: Integrate) -> None:
    block = StateSpace("system", A, np.zeros((3, 0)), C, initial=X)
    assert block.input_ports == []
    assert block.find_output("y").size == 2
    context = integrate(block.create_default_context(), 0.7)
    np.testing.assert_allclose(block.x(context), scipy.linalg.expm(0.7 * A) @ X, rtol=1e-9)


def test_state_space_takes_vectors_for_one_input_and_output_and_numbers_for_all() -> None:
    vectors = StateSpace("vectors", A, [1.0, 0.0, -1.0], [1.0, 0.0, 2.0], 0.5)
    assert vectors.find("B").shape == (3, 1)
    assert vectors.find("C").shape == (1, 3)
    assert vectors.find("D").shape == (1, 1)
    assert vectors.feedthrough == {("u", "y")}
    numbers = StateSpace("numbers", -2.0, 3.0, 4.0)
    context = numbers.create_default_context()
    numbers.x.set(context, 5.0)
    context.set("u", 1.0)
    assert numbers.eval_time_derivatives(context).tolist() == [-7.0]
    assert numbers.y.eval(context).tolist() == [20.0]


def test_state_space_matrices_can_be_set() -> None:
    block = StateSpace("system", A, B, C, D)
    context = prepared(block)
    for name, matrix in (("A", 2 * A), ("B", -B), ("C", 3 * C), ("D", D + 1.0)):
        context.set(name, matrix)
    np.testing.assert_allclose(block.eval_time_derivatives(context), 2 * A @ X - B @ U, rtol=1e-14)
    np.testing.assert_allclose(block.y.eval(context), 3 * C @ X + (D + 1.0) @ U, rtol=1e-14)


@for_each(
    ("matrices", "culprit"),
    [
        ((A[:2], B, C), "2 x 2 matrix for A"),
        ((A, B[:2], C), "3 x any matrix for B"),
        ((A, B, C[:, :2]), "any x 3 matrix for C"),
        ((A, B, C, D[:1]), "2 x 2 matrix for D"),
        ((A, B, C, 1.0), "2 x 2 matrix for D"),
        ((np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0))), "at least one state"),
        ((A, B, np.zeros((0, 3))), "at least one output"),
        (("fast", B, C), "real numbers for A"),
        ((A[np.newaxis], B, C), "any x any matrix for A"),
    ],
)
def test_state_space_refuses_matrices_that_do_not_fit(matrices: Any, culprit: str) -> None:
    with pytest.raises(DeclarationError, match=f"StateSpace 'system': expected.*{culprit}"):
        StateSpace("system", *matrices)


def test_state_space_refuses_infinite_entries_and_a_misfit_state() -> None:
    with pytest.raises(ValueRefusedError, match=r"system\.B"):
        StateSpace("system", A, B + np.inf, C)
    with pytest.raises(DeclarationError, match="3 numbers for initial"):
        StateSpace("system", A, B, C, initial=[1.0, 2.0])


# Affine systems ------------------------------------------------------------------------------


def test_affine_system_adds_its_offsets(integrate: Integrate) -> None:
    f0, y0 = np.array([1.0, -1.0, 0.25]), np.array([10.0, 20.0])
    block = AffineSystem("system", A, B, f0, C, D, y0)
    context = integrate(prepared(block), 0.9)
    expected = moved(X, B @ U + f0, 0.9)
    np.testing.assert_allclose(block.x(context), expected, rtol=1e-9)
    np.testing.assert_allclose(block.y.eval(context), C @ expected + D @ U + y0, rtol=1e-9)


def test_affine_system_rests_where_its_offset_says(integrate: Integrate) -> None:
    rest = np.array([3.0, 1.0, -2.0])
    block = AffineSystem("system", A, np.zeros((3, 0)), -A @ rest, C, None, 0.0, initial=X)
    context = integrate(block.create_default_context(), 60.0)
    np.testing.assert_allclose(block.x(context), rest, atol=1e-6)
    assert block.feedthrough == frozenset()


def test_affine_offsets_can_be_set() -> None:
    block = AffineSystem("system", A, B, 0.0, C, D, 0.0)
    context = prepared(block)
    block.f0.set(context, [1.0, 2.0, 3.0])
    block.y0.set(context, [4.0, 5.0])
    np.testing.assert_allclose(
        block.eval_time_derivatives(context), A @ X + B @ U + [1.0, 2.0, 3.0], rtol=1e-14
    )
    np.testing.assert_allclose(block.y.eval(context), C @ X + D @ U + [4.0, 5.0], rtol=1e-14)


@for_each(("f0", "y0"), [([1.0, 2.0], 0.0), (0.0, [1.0, 2.0, 3.0])])
def test_affine_system_refuses_offsets_of_another_size(f0: Any, y0: Any) -> None:
    with pytest.raises(DeclarationError, match=r"numbers for [fy]0"):
        AffineSystem("system", A, B, f0, C, D, y0)


# Transfer functions --------------------------------------------------------------------------

RATIOS = [
    ([2.0], [3.0, 4.0]),
    ([2.0, 1.0], [3.0, 4.0]),
    ([5.0], [1.0, 0.2, 4.0]),
    ([1.0, -5.0], [-2.0, -0.2, -4.0]),
    ([1.0, 0.0, 4.0], [1.0, 4.0, 4.0]),
    ([0.0, 0.0, 3.0], [1.0, 2.0, 3.0, 4.0]),
    ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 9.0, 5.0, 1.0]),
]


@for_each(("numerator", "denominator"), RATIOS)
@for_each("omega", [0.0, 0.3, 2.0, 50.0])
def test_transfer_function_has_the_response_of_its_polynomials(
    numerator: list[float], denominator: list[float], omega: float
) -> None:
    block = TransferFunction("ratio", numerator, denominator)
    s = 1j * omega
    expected = np.polyval(numerator, s) / np.polyval(denominator, s)
    np.testing.assert_allclose(frequency_response(block, omega), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("numerator", "denominator"), RATIOS[2:5])
def test_transfer_function_answers_a_step_like_scipy(
    numerator: list[float], denominator: list[float], integrate: Integrate
) -> None:
    block = TransferFunction("ratio", numerator, denominator)
    context = block.create_default_context()
    block.u.fix(context, 1.0)
    times, expected = scipy.signal.step((numerator, denominator), T=np.linspace(0.0, 5.0, 11))
    for time, y in zip(times, expected, strict=True):
        integrate(context, time)
        np.testing.assert_allclose(block.y.eval(context), [y], rtol=1e-6, atol=1e-9)


def test_transfer_function_state_are_derivatives_of_one_signal(integrate: Integrate) -> None:
    block = TransferFunction("ratio", [1.0], [1.0, 3.0, 2.0])
    context = block.create_default_context()
    block.u.fix(context, 4.0)
    integrate(context, 0.5)
    # 4 / (s (s + 1) (s + 2)) in the time domain.
    signal = 2.0 - 4.0 * np.exp(-0.5) + 2.0 * np.exp(-1.0)
    rate = 4.0 * np.exp(-0.5) - 4.0 * np.exp(-1.0)
    np.testing.assert_allclose(block.x(context), [rate, signal], rtol=1e-9)


def test_transfer_function_goes_straight_through_when_the_degrees_are_equal() -> None:
    for numerator, feedthrough in [
        ([1.0, 0.0, 4.0], {("u", "y")}),
        ([1.0, 4.0], set()),
        ([0.0, 1.0, 4.0], set()),
        ([0.0], set()),
    ]:
        assert TransferFunction("ratio", numerator, [1.0, 4.0, 4.0]).feedthrough == feedthrough


def test_transfer_function_coefficients_can_be_set() -> None:
    block = TransferFunction("ratio", [0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    context = block.create_default_context()
    block.x.set(context, [10.0, 1.0])
    block.u.fix(context, 1.0)
    block.numerator.set(context, [3.0, 5.0])
    block.denominator.set(context, [2.0, 4.0, 8.0])
    assert block.y.eval(context).tolist() == [17.5]
    assert block.eval_time_derivatives(context).tolist() == [-23.0, 10.0]


@pytest.mark.parametrize("lead", [2.0, -2.0])
def test_leading_coefficient_keeps_its_sign(lead: float) -> None:
    block = TransferFunction("ratio", [1.0], [lead, -1.0, 0.0])
    context = block.create_default_context()
    block.denominator.set(context, [0.5 * lead, 1.0, -1.0])
    for refused in (0.0, -lead):
        with pytest.raises(ValueRefusedError, match="denominator"):
            block.denominator.set(context, [refused, 1.0, 1.0])


def test_improper_transfer_function_is_refused_with_advice() -> None:
    with pytest.raises(DeclarationError, match=r"at most degree 1.*degree 2.*FilteredDerivative"):
        TransferFunction("ratio", [1.0, 0.0, 0.0], [1.0, 1.0])


@for_each(
    ("numerator", "denominator"),
    [([1.0], [2.0]), ([1.0], []), ([1.0], [0.0, 1.0, 1.0]), ([], [1.0, 1.0]), ([1.0], 3.0),
     ([[1.0, 2.0]], [1.0, 2.0, 3.0]), ([1.0], "s + 1")],
)  # fmt: skip
def test_senseless_coefficients_are_refused(numerator: Any, denominator: Any) -> None:
    with pytest.raises(DeclarationError, match="'ratio'"):
        TransferFunction("ratio", numerator, denominator)


def test_coefficients_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueRefusedError, match="numerator"):
        TransferFunction("ratio", [np.nan], [1.0, 1.0])
