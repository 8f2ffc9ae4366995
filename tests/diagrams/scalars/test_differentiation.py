"""Derivatives of expressions are those of analysis, and at kinks those of the stated convention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from flexure.blocks.math import solve_symmetric
from flexure.diagrams import scalars as fs
from flexure.diagrams.scalars.derivatives.differentiation import RULES
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.scalars.expressions.vocabulary import CONDITIONS, OPERATIONS
from tests.support.tiers import for_each

Equation = Callable[..., Any]


def keys_of(size: int) -> list[Any]:
    return [("x", k) for k in range(size)]


def both_ways(equation: Equation, x: Any) -> tuple[Any, Any]:
    """Return the derivatives of one output of x, forward and backward, at a point.

    Forward in blocks, they are the same as one by one.
    """
    x = np.asarray(x, dtype=float)
    output = equation(fs.symbols(fs.Graph(), "x", x.size))
    values = dict(zip(keys_of(x.size), x, strict=True))
    forward = fs.evaluate(fs.jacobian([output], keys_of(x.size)).to_array()[0], values)
    backward = fs.gradient(output, keys_of(x.size))
    for width in (1, 2, 8):
        np.testing.assert_array_equal(in_blocks([output], x, width), forward[None])
    return forward, fs.evaluate(backward, values)


def in_blocks(outputs: list[Any], x: Any, width: int) -> Any:
    """Return the matrix of derivatives by blocks of x at a point."""
    seeds = [("seed", lane) for lane in range(width)]
    found = fs.block_jacobian(outputs, keys_of(x.size), seeds)
    values = dict(zip([*keys_of(x.size), *seeds], [*x, *np.eye(width)], strict=True))
    matrix = np.zeros((len(outputs), x.size))
    for vector, lanes in zip(found.vectors, found.lanes, strict=True):
        numbers = np.broadcast_to(fs.evaluate(vector, values), width)
        for lane, position in lanes:
            matrix[found.rows[position], found.columns[position]] = numbers[lane]
    return matrix


def complex_step(equation: Equation, x: Any) -> Any:
    """Differentiate an analytic equation to the last bits."""
    steps = np.asarray(x, dtype=complex) + 1e-200j * np.eye(len(x))
    return np.array([equation(step).imag for step in steps]) / 1e-200


def central(equation: Equation, x: Any) -> Any:
    """Differentiate by differences of fourth order."""
    x = np.asarray(x, dtype=float)
    offsets, weights = np.array([-2, -1, 1, 2]) * 1e-3, np.array([1, -8, 8, -1]) / 12e-3
    return np.array(
        [
            sum(w * equation(x + o * e) for o, w in zip(offsets, weights, strict=True))
            for e in np.eye(x.size)
        ]
    )


# Every operation ---------------------------------------------------------------------------------

# Equations of one or two inputs that NumPy continues to complex numbers, and where to look.
ANALYTIC: dict[str, tuple[Equation, list[list[float]]]] = {
    "add": (lambda x: x[0] + x[1], [[1.5, 2.0]]),
    "subtract": (lambda x: x[0] - x[1], [[1.5, 2.0]]),
    "multiply": (lambda x: x[0] * x[1], [[1.5, -2.0], [0.0, 3.0]]),
    "divide": (lambda x: x[0] / x[1], [[1.5, -2.0], [0.0, 3.0]]),
    "power": (lambda x: x[0] ** x[1], [[1.5, -2.5], [0.5, 3.0], [2.0, 0.0]]),
    "power of a negative number": (lambda x: x[0] ** 3.0, [[-1.5]]),
    "negative": (lambda x: -x[0], [[1.5]]),
    "sqrt": (lambda x: np.sqrt(x[0]), [[1.5], [1e-8]]),
    "exp": (lambda x: np.exp(x[0]), [[1.5], [-30.0]]),
    "exp2": (lambda x: np.exp2(x[0]), [[1.5], [-30.0]]),
    "expm1": (lambda x: np.expm1(x[0]), [[1.5], [-30.0], [1e-9]]),
    "log": (lambda x: np.log(x[0]), [[1.5], [1e-8]]),
    "log2": (lambda x: np.log2(x[0]), [[1.5], [1e-8]]),
    "log10": (lambda x: np.log10(x[0]), [[1.5], [1e-8]]),
    "log1p": (lambda x: np.log1p(x[0]), [[1.5], [1e-8]]),
    "sin": (lambda x: np.sin(x[0]), [[1.5], [0.0], [40.0]]),
    "cos": (lambda x: np.cos(x[0]), [[1.5], [0.0], [40.0]]),
    "tan": (lambda x: np.tan(x[0]), [[1.5], [0.0]]),
    "arcsin": (lambda x: np.arcsin(x[0]), [[0.5], [0.0], [-0.99]]),
    "arccos": (lambda x: np.arccos(x[0]), [[0.5], [0.0], [-0.99]]),
    "arctan": (lambda x: np.arctan(x[0]), [[0.5], [0.0], [-30.0]]),
    "sinh": (lambda x: np.sinh(x[0]), [[0.5], [0.0], [-3.0]]),
    "cosh": (lambda x: np.cosh(x[0]), [[0.5], [0.0], [-3.0]]),
    "tanh": (lambda x: np.tanh(x[0]), [[0.5], [0.0], [-3.0]]),
    "arcsinh": (lambda x: np.arcsinh(x[0]), [[0.5], [0.0], [-30.0]]),
    "arccosh": (lambda x: np.arccosh(x[0]), [[1.5], [30.0]]),
    "arctanh": (lambda x: np.arctanh(x[0]), [[0.5], [0.0], [-0.99]]),
}
# Equations that are not analytic, away from their kinks.
PIECEWISE: dict[str, tuple[Equation, list[list[float]]]] = {
    "absolute": (lambda x: np.abs(x[0]), [[1.5], [-1.5]]),
    "sign": (lambda x: np.sign(x[0]), [[1.5], [-1.5]]),
    "floor": (lambda x: np.floor(x[0]), [[1.5], [-1.2]]),
    "ceil": (lambda x: np.ceil(x[0]), [[1.5], [-1.2]]),
    "trunc": (lambda x: np.trunc(x[0]), [[1.5], [-1.2]]),
    "rint": (lambda x: np.rint(x[0]), [[1.2], [-1.2]]),
    "cbrt": (lambda x: np.cbrt(x[0]), [[1.5], [-1.5]]),
    "floor_divide": (lambda x: x[0] // x[1], [[7.3, 2.1], [-7.3, 2.1]]),
    "remainder": (lambda x: x[0] % x[1], [[7.3, 2.1], [-7.3, 2.1], [7.3, -2.1]]),
    "fmod": (lambda x: np.fmod(x[0], x[1]), [[7.3, 2.1], [-7.3, 2.1], [7.3, -2.1]]),
    "maximum": (lambda x: np.maximum(x[0], x[1] ** 2), [[1.5, 2.0], [5.0, 2.0]]),
    "minimum": (lambda x: np.minimum(x[0], x[1] ** 2), [[1.5, 2.0], [5.0, 2.0]]),
    "fmax": (lambda x: np.fmax(x[0], x[1] ** 2), [[1.5, 2.0], [5.0, 2.0]]),
    "fmin": (lambda x: np.fmin(x[0], x[1] ** 2), [[1.5, 2.0], [5.0, 2.0]]),
    "arctan2": (
        lambda x: np.arctan2(x[0], x[1]),
        [[1.5, 2.0], [-1.5, 2.0], [1.5, -2.0], [0.0, 2.0], [1.5, 0.0]],
    ),
    "hypot": (lambda x: np.hypot(x[0], x[1]), [[3.0, 4.0], [-3.0, 4.0], [0.0, 1.0]]),
    "copysign": (lambda x: np.copysign(x[0], x[1]), [[3.0, -4.0], [-3.0, -4.0], [-3.0, 4.0]]),
    "where": (lambda x: np.where(x[0] > x[1], x[0] ** 2, 3.0 * x[1]), [[2.0, 1.0], [1.0, 2.0]]),
}


def test_there_is_a_rule_for_every_operand_of_every_operation() -> None:
    assert set(RULES) == (set(OPERATIONS) - CONDITIONS) | {"where"}
    assert {op: len(rules) for op, rules in RULES.items() if op != "where"} == {
        op: OPERATIONS[op].nin for op in RULES if op != "where"
    }


def test_every_operation_is_tested() -> None:
    assert {name.split()[0] for name in (*ANALYTIC, *PIECEWISE)} == set(RULES)


@for_each("name", ANALYTIC)
def test_analytic_operation_agrees_with_the_complex_step(name: str) -> None:
    equation, points = ANALYTIC[name]
    for point in points:
        expected = complex_step(equation, point)
        for found in both_ways(equation, point):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", PIECEWISE)
def test_piecewise_operation_agrees_with_differences(name: str) -> None:
    equation, points = PIECEWISE[name]
    for point in points:
        expected = central(equation, point)
        for found in both_ways(equation, point):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# Equations in NumPy ------------------------------------------------------------------------------

K = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
FIVE = np.vander([0.3, -0.8, 1.2, 0.9, -1.4])


def spread(x: Any, size: int = 5) -> Any:
    """Return a symmetric matrix of any size that depends on all of x."""
    return sum(
        each * np.outer(w, w)
        for each, w in zip(x**2, np.vander([0.5, 1.1, 0.8], size), strict=True)
    )


def system(x: Any) -> tuple[Any, Any]:
    """Return equations that are solved with exchanges of rows."""
    return FIVE + 9.0 * np.eye(5)[::-1] + spread(x) / 9.0, np.concatenate([x, np.sin(x[:2])])


EQUATIONS: dict[str, Equation] = {
    "chain rule": lambda x: np.exp(np.sin(x[0] * x[1])) / (1.0 + x[2] ** 2),
    "shared parts": lambda x: (x[0] * x[1]) * np.tanh(x[0] * x[1]) + x[0] * x[1],
    "quadratic form": lambda x: x @ K @ x,
    "norm": np.linalg.norm,
    "solve": lambda x: np.linalg.solve(K + np.diag(x**2), x)[1],
    "solve of five": lambda x: np.linalg.solve(*system(x)) @ np.arange(5),
    "one unknown of five": lambda x: x[0] * np.linalg.solve(*system(x))[3] ** 2,
    "solve of symmetric five": lambda x: solve_symmetric(np.eye(5) + spread(x), x[2] * FIVE[0])[4],
    "inverse of five": lambda x: np.sum(np.linalg.inv(system(x)[0]) * FIVE),
    "determinant": lambda x: np.linalg.det(K + np.outer(x, x)),
    "cross": lambda x: np.cross(x, [1.0, 2.0, 3.0]) @ x[::-1],
    "interpolation": lambda x: np.interp(x[0], [0.0, 1.0, 3.0], [0.0, 2.0, 3.0]) * x[1],
    "clip": lambda x: np.sum(np.clip(x, 0.4, 1.0) ** 2),
    "mean of choices": lambda x: np.mean(np.where(x > 0.5, np.sqrt(x), x**2)),
    "independent of one": lambda x: x[0] * x[2],
    "constant": lambda x: 0.0 * x[0] + 3.0,
    "sum that cancels": lambda x: x[0] - x[0] + x[1],
}
POINT = [0.7, 1.3, 0.2]


@pytest.mark.parametrize("name", EQUATIONS)
def test_equation_agrees_with_differences(name: str) -> None:
    expected = central(EQUATIONS[name], POINT)
    for found in both_ways(EQUATIONS[name], POINT):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_second_derivatives_are_derivatives_of_derivatives() -> None:
    x = fs.symbols(fs.Graph(), "x", 3)
    energy = 0.5 * x @ K @ x + np.cos(x[0]) * x[1]
    hessian = fs.jacobian(fs.gradient(energy, keys_of(3)), keys_of(3)).to_array()
    found = fs.evaluate(hessian, dict(zip(keys_of(3), POINT, strict=True)))
    a, b, _ = POINT
    expected = K.copy()
    expected[0, 0] -= math.cos(a) * b
    expected[0, 1] -= math.sin(a)
    expected[1, 0] -= math.sin(a)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@for_each("name", [name for name in EQUATIONS if "five" in name])
def test_second_derivatives_of_solutions_agree_with_differences(name: str) -> None:
    x, keys = fs.symbols(fs.Graph(), "x", 3), keys_of(3)
    slopes = fs.gradient(EQUATIONS[name](x), keys)
    hessian = fs.jacobian(slopes, keys).to_array()
    found = fs.evaluate(hessian, dict(zip(keys, POINT, strict=True)))
    expected = central(lambda y: fs.evaluate(slopes, dict(zip(keys, y, strict=True))), POINT)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("solve", [solve_symmetric, np.linalg.solve])
def test_unknowns_depend_on_their_own_equations_alone(solve: Callable[..., Any]) -> None:
    x, number = fs.symbols(fs.Graph(), "x", 10), np.arange(10)
    together = np.equal.outer(number % 2, number % 2)  # two systems, whose equations take turns
    A = np.where(together, 9.0 * np.eye(10) + np.outer(np.sin(x), np.sin(x)), 0.0)
    found = fs.jacobian(
        solve(A, x) if solve is solve_symmetric else solve(A[::-1], x[::-1]), keys_of(10)
    )
    np.testing.assert_array_equal(found.rows, np.nonzero(together)[0])
    np.testing.assert_array_equal(found.columns, np.nonzero(together)[1])
    point = np.linspace(-1.0, 2.0, 10)
    slopes = fs.evaluate(found.to_array(), dict(zip(keys_of(10), point, strict=True)))

    def equation(y: Any) -> Any:
        return np.linalg.solve(together * (9.0 * np.eye(10) + np.outer(np.sin(y), np.sin(y))), y)

    np.testing.assert_allclose(slopes, complex_step(equation, point).T, rtol=1e-12, atol=1e-15)


def test_derivatives_of_a_solution_take_its_factors_again() -> None:
    lengths = []
    for size in (6, 12):
        x = fs.symbols(fs.Graph(), "x", 3)
        output = solve_symmetric(np.eye(size) + spread(x, size), np.ones(size))
        behind = len(reachable(simplify(output)))
        slopes = simplify(fs.jacobian(simplify(output), keys_of(3)).entries)
        lengths.append(len(reachable(slopes)) - behind)
    assert lengths[1] < 6.0 * lengths[0]  # n², and with derivatives of the elimination n³


#: An energy, a point at which a weight of it is exactly zero, and the matrix that it has there.
AT_ZERO_WEIGHT: dict[str, tuple[Equation, list[float], list[list[float]]]] = {
    "spring as long as unstressed": (
        lambda x: 0.5 * (np.sqrt(x[0] * x[0] + x[1] * x[1]) - 1.0) ** 2,
        [1.0, 0.0],
        [[1.0, 0.0], [0.0, 0.0]],
    ),
    "norm on an axis": (np.linalg.norm, [2.0, 0.0], [[0.0, 0.0], [0.0, 0.5]]),
    "cube root": (lambda x: np.cbrt(1.0 + x[0] * x[1]), [0.0, 0.0], [[0, 1 / 3], [1 / 3, 0]]),
    "power": (lambda x: (1.0 + x[0] * x[1]) ** 2.5, [0.0, 0.0], [[0, 2.5], [2.5, 0]]),
    "arcsine": (lambda x: np.arcsin(x[0] * x[1]), [0.0, 0.0], [[0, 1], [1, 0]]),
    "choice": (lambda x: x[1] * np.where(x[0] < 1.0, x[0] * x[0], 0), [0.5, 0.0], [[0, 1], [1, 0]]),
    "larger of two": (lambda x: np.maximum(x[0] * x[1], -1.0), [0.0, 0.0], [[0, 1], [1, 0]]),
    "root of a choice": (
        lambda x: np.sqrt(np.where(x[0] > -1.0, 1.0 + x[0] * x[1], 0.0)),
        [0.0, 0.0],
        [[0, 0.5], [0.5, 0]],
    ),
    "what is not chosen, with an infinite slope": (
        lambda x: np.where(x[0] > 0.0, x[0] ** 1.5, 0.0) * x[1],
        [0.0, 1.0],
        [[0, 0], [0, 0]],
    ),
}
PATHS: dict[str, Callable[[Any, Any], Any]] = {
    "backward": fs.gradient,
    "forward": lambda output, keys: fs.jacobian([output], keys).to_array()[0],
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", AT_ZERO_WEIGHT)
def test_second_derivatives_are_complete_where_a_weight_is_zero(name: str, path: str) -> None:
    equation, point, expected = AT_ZERO_WEIGHT[name]
    keys = keys_of(2)
    slopes = PATHS[path](equation(fs.symbols(fs.Graph(), "x", 2)), keys)
    values = dict(zip(keys, point, strict=True))
    for found in (
        fs.evaluate(fs.jacobian(slopes, keys).to_array(), values),
        np.array([fs.evaluate(fs.gradient(slope, keys), values) for slope in slopes]),
        in_blocks(list(slopes), np.array(point), 2),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0.0)


def test_third_derivatives_are_complete_where_a_weight_is_zero() -> None:
    x, keys = fs.symbols(fs.Graph(), "x", 2), keys_of(2)
    outputs = [np.linalg.norm(x)]
    for _ in range(3):
        outputs = list(np.concatenate([fs.gradient(each, keys) for each in outputs]))
    found = fs.evaluate(fs.array(outputs), {("x", 0): 1.0, ("x", 1): 0.0})
    # r = x + y²/(2 x) for small y, of which the third derivative by x, y and y is -1/x².
    np.testing.assert_allclose(found, [0, 0, 0, -1, 0, -1, -1, 0], rtol=1e-14, atol=0.0)


# Kinks and other conventions ---------------------------------------------------------------------

KINKS: dict[str, tuple[Equation, list[float], list[float]]] = {
    "absolute at zero": (lambda x: np.abs(x[0]), [0.0], [0.0]),
    "sign at zero": (lambda x: np.sign(x[0]), [0.0], [0.0]),
    "rounding at a jump": (lambda x: np.floor(x[0]) + np.rint(x[0] + 0.5), [2.0], [0.0]),
    "maximum of equals": (lambda x: np.maximum(2.0 * x[0], x[0] + x[1]), [1.0, 1.0], [2.0, 0.0]),
    "minimum of equals": (lambda x: np.minimum(2.0 * x[0], x[0] + x[1]), [1.0, 1.0], [2.0, 0.0]),
    "fmax of equals": (lambda x: np.fmax(2.0 * x[0], x[0] + x[1]), [1.0, 1.0], [2.0, 0.0]),
    "fmin of equals": (lambda x: np.fmin(2.0 * x[0], x[0] + x[1]), [1.0, 1.0], [2.0, 0.0]),
    "clip at its lower limit": (lambda x: np.clip(x[0], -1.0, 1.0), [-1.0], [1.0]),
    "clip at its upper limit": (lambda x: np.clip(x[0], -1.0, 1.0), [1.0], [1.0]),
    "clip beyond its limit": (lambda x: np.clip(x[0], -1.0, 1.0), [1.5], [0.0]),
    "where at its border": (lambda x: np.where(x[0] > 1.0, x[0] ** 2, -x[0]), [1.0], [-1.0]),
    "zero kept out of a quotient": (
        lambda x: np.where(x[0] == 0.0, 0.0, np.sin(x[0]) ** 2 / x[0]),
        [0.0],
        [0.0],
    ),
    "zero that is none the less": (
        lambda x: np.where(x[0] == 0.0, 0.0, np.sin(x[0])),
        [0.0],
        [1.0],
    ),
    "zero that is a jump": (
        lambda x: np.where(x[0] == 0.0, 0.0, np.cos(x[0]) + x[0]),
        [0.0],
        [0.0],
    ),
    "norm at zero": (np.linalg.norm, [0.0, 0.0], [0.0, 0.0]),
    "hypot at zero": (lambda x: np.hypot(x[0], x[1]), [0.0, 0.0], [0.0, 0.0]),
    "copysign at zero": (lambda x: np.copysign(x[0], -1.0), [0.0], [0.0]),
    "root of what is cut off": (lambda x: np.sqrt(np.maximum(x[0], 0.0)), [-1.0], [0.0]),
    "root at zero": (lambda x: np.sqrt(x[0]), [0.0], [np.inf]),
    "cube root at zero": (lambda x: np.cbrt(x[0]), [0.0], [np.inf]),
    "arcsine at its end": (lambda x: np.arcsin(x[0]), [1.0], [np.inf]),
    "arccosine at its end": (lambda x: np.arccos(x[0]), [1.0], [-np.inf]),
    "arcosh at its end": (lambda x: np.arccosh(x[0]), [1.0], [np.inf]),
    "small power at zero": (lambda x: x[0] ** 0.3, [0.0], [np.inf]),
    "small power of a square at zero": (lambda x: (x[0] * x[0]) ** 0.3, [0.0], [0.0]),
    "power of zero": (lambda x: x[0] ** x[1], [0.0, 2.0], [0.0, 0.0]),
    "zeroth power of zero": (lambda x: x[0] ** (x[1] - 2.0), [0.0, 2.0], [0.0, 0.0]),
    "tanh far out": (lambda x: np.tanh(x[0]), [400.0], [0.0]),
    "singular equations that are not chosen": (
        lambda x: np.where(
            x[0] > 0.5, x[1], np.linalg.solve(np.diag(x[0] - FIVE[0]), x[1] + x[0] * FIVE[0])[4]
        ),
        [1.0, 3.0],
        [0.0, 1.0],
    ),
    "determinant of a column of zeros": (
        lambda x: np.linalg.det(x.reshape(2, 2)),
        [0.0, 1.0, 0.0, 2.0],
        [2.0, 0.0, -1.0, 0.0],
    ),
    "fmax beside NaN": (lambda x: np.fmax(x[0], x[1]), [1.0, np.nan], [1.0, 0.0]),
    "fmin behind NaN": (lambda x: np.fmin(x[0], x[1]), [np.nan, 1.0], [0.0, 1.0]),
}


@for_each("name", KINKS)
def test_convention_holds(name: str) -> None:
    equation, point, expected = KINKS[name]
    for found in both_ways(equation, point):
        assert found.tolist() == expected


UNCHOSEN: dict[str, Equation] = {
    "root of a negative number": lambda x: np.where(x[0] > 0.0, np.sqrt(x[0]), x[0]),
    "quotient by zero": lambda x: np.where(x[0] > 0.0, 1.0 / (x[0] + 1.0), x[0]),
    "logarithm": lambda x: np.where(x[0] > 0.0, 3.0 * np.log(x[0] + 1.0), x[0]),
    "product behind two choices": lambda x: (
        np.where(x[0] > 0.0, x[0] * np.log(x[0] + 1.0), x[0])
        + np.where(x[0] > 5.0, np.log(x[0] + 1.0), 0.0)
    ),
}


@for_each("name", UNCHOSEN)
def test_what_is_not_chosen_has_no_influence_even_if_it_is_not_finite(name: str) -> None:
    for found in both_ways(UNCHOSEN[name], [-1.0]):
        assert found.tolist() == [1.0]


def test_truth_values_have_no_derivative() -> None:
    x = fs.symbols(fs.Graph(), "x", 1)
    assert fs.jacobian([x[0] > 1.0, (x[0] > 1.0) * 2.0], keys_of(1)).entries == []
    assert fs.gradient(x[0] > 1.0, keys_of(1)).tolist() == [0.0]


# Shapes and sparsity -----------------------------------------------------------------------------


def test_numbers_and_absent_inputs_give_empty_rows_and_columns() -> None:
    x = fs.symbols(fs.Graph(), "x", 2)
    matrix = fs.jacobian([5.0, x[1] * 2.0], ["absent", ("x", 1)])
    assert (matrix.rows, matrix.columns) == ([1], [1])
    assert fs.evaluate(matrix.to_array(), {}).tolist() == [[0.0, 0.0], [0.0, 2.0]]
    assert fs.gradient(5.0, ["absent"]).tolist() == [0.0]


@pytest.mark.parametrize(("outputs", "keys"), [([], keys_of(2)), ([1.0, 2.0], []), ([], [])])
def test_empty_sides_are_kept(outputs: list[float], keys: list[Any]) -> None:
    matrix = fs.jacobian(outputs, keys)
    assert matrix.shape == matrix.to_array().shape == (len(outputs), len(keys))


def test_a_matrix_of_outputs_is_read_row_by_row() -> None:
    x = fs.symbols(fs.Graph(), "x", (2, 2))
    matrix = fs.jacobian(3.0 * x.T, keys_of(4))
    assert matrix.shape == (4, 4)
    assert matrix.columns == [0, 2, 1, 3]
    assert fs.evaluate(matrix.entries, {}).tolist() == [3.0] * 4


def chain(size: int) -> tuple[fs.Graph, Any]:
    """Accelerations of masses between nonlinear springs, as expressions of positions."""
    graph = fs.Graph()
    x = fs.symbols(graph, "x", size)
    stretch = np.concatenate([x[:1], x[1:] - x[:-1]])
    force = 50.0 * stretch + 3.0 * stretch**3
    return graph, np.append(force[1:] - force[:-1], -force[-1])


def test_a_chain_has_a_banded_jacobian() -> None:
    _, accelerations = chain(100)
    matrix = fs.jacobian(accelerations, keys_of(100))
    assert len(matrix.entries) == 3 * 100 - 2
    assert all(abs(i - j) <= 1 for i, j in zip(matrix.rows, matrix.columns, strict=True))
    assert list(zip(matrix.rows, matrix.columns, strict=True)) == sorted(
        zip(matrix.rows, matrix.columns, strict=True)
    )


def test_the_cost_of_a_banded_jacobian_grows_linearly() -> None:
    added = []
    for size in (100, 200):
        graph, accelerations = chain(size)
        before = len(graph.nodes)
        fs.jacobian(accelerations, keys_of(size))
        added.append(len(graph.nodes) - before)
    assert added[1] < 2.1 * added[0]


def test_the_cost_of_a_gradient_does_not_grow_with_the_inputs() -> None:
    graph = fs.Graph()
    x = fs.symbols(graph, "x", 400)
    energy = np.sum(np.sin(x[1:] - x[:-1]) ** 2)
    before = len(graph.nodes)
    slopes = fs.gradient(energy, keys_of(400))
    assert len(graph.nodes) - before < 3 * before
    assert len(slopes) == 400


@pytest.mark.full
def test_a_table_of_a_thousand_points_needs_no_recursion() -> None:
    grid = np.linspace(0.0, 10.0, 3000)
    for found in both_ways(lambda x: np.interp(x[0], grid, grid**2) + x[0], [4.0001]):
        np.testing.assert_allclose(found, [9.0], atol=0.01)


def test_the_same_expressions_come_out_twice() -> None:
    first, second = (repr(chain(5)[0].nodes) for _ in range(2))
    assert first == second
    graph, accelerations = chain(5)
    known = fs.jacobian(accelerations, keys_of(5)).entries
    count = len(graph.nodes)
    again = fs.jacobian(accelerations, keys_of(5)).entries
    assert all(a is b for a, b in zip(known, again, strict=True))
    assert len(graph.nodes) == count


# Random expressions ------------------------------------------------------------------------------

_SMOOTH_UNARY = ("negative", "sin", "cos", "tanh", "arctan", "arcsinh", "exp")
_SMOOTH_BINARY = ("add", "subtract", "multiply")


@st.composite
def random_equations(draw: st.DrawFn) -> tuple[Equation, list[float]]:
    """Draw a recipe once, so that it can be run on symbols and on numbers."""
    size = draw(st.integers(1, 3))
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from((*_SMOOTH_UNARY, *_SMOOTH_BINARY)),
                st.integers(0, 100),
                st.integers(0, 100),
            ),
            min_size=1,
            max_size=12,
        )
    )

    def equation(x: Any) -> Any:
        parts = [x[k] for k in range(size)]
        for name, i, j in steps:
            a, b = parts[i % len(parts)], parts[j % len(parts)]
            if name in _SMOOTH_BINARY:
                parts.append(getattr(np, name)(a, b))
            else:
                parts.append(getattr(np, name)(np.tanh(a) if name == "exp" else a))
        return parts[-1] + 0.0 * x[0]

    point = draw(st.lists(st.floats(-1.5, 1.5), min_size=size, max_size=size))
    return equation, point


@given(random_equations())
def test_random_expressions_agree_with_the_complex_step(case: tuple[Equation, list[float]]) -> None:
    equation, point = case
    expected = complex_step(equation, point)
    for found in both_ways(equation, point):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
