"""Equations in ordinary NumPy give the same numbers when they run on symbols first."""

from __future__ import annotations

import copy
import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from flexure.diagrams import scalars as fs
from flexure.diagrams.checks.errors import TraceError, UnknownNameError, ValueRefusedError
from tests.support.tiers import by_tier, for_each

Equation = Callable[..., Any]
K = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])


def trace(equation: Equation, *shapes: Any) -> Any:
    """Run an equation on new symbols, one array per shape."""
    graph = fs.Graph()
    return equation(*[fs.symbols(graph, k, shape) for k, shape in enumerate(shapes)])


def values_of(*arrays: Any) -> dict[Any, float]:
    """Give the values of the inputs that `trace` makes."""
    return {(k, i): v for k, a in enumerate(arrays) for i, v in enumerate(np.ravel(a))}


def read_both(equation: Equation, *arrays: Any) -> tuple[Any, Any]:
    """Return what an equation gives through symbols, and on floats."""
    result = fs.evaluate(trace(equation, *map(np.shape, arrays)), values_of(*arrays))
    with np.errstate(all="ignore"):
        return result, np.array(equation(*[np.array(a)[()] for a in arrays]))


def assert_same_bits(result: Any, expected: Any) -> None:
    assert np.shape(result) == np.shape(expected)
    both_nan = np.isnan(result) & np.isnan(expected)
    equal = (result == expected) & (np.signbit(result) == np.signbit(expected))
    assert np.all(equal | both_nan), f"{result} is not {expected}"


def fill_zeros_like(x: Any, A: Any) -> Any:
    y = np.zeros_like(x)
    y[:] = x
    y[0] += 1
    y[1:3] = x[4:]
    return y


def fill_matrix(x: Any, A: Any) -> Any:
    m = np.zeros((2, 3), like=x)
    m[0, 0], m[1] = x[0], x[3:]
    m[:, 2] *= x[1]
    return m


def change_in_place(x: Any, A: Any) -> Any:
    y = x.copy()
    y += 1.0
    y[2:4] *= x[0]
    y[4] -= 3
    y /= 2
    return y


def write_to_out(x: Any, A: Any) -> Any:
    y = np.ones_like(x)
    np.multiply(x, 3.0, out=y, where=x > 1.0)
    np.add(y, y, out=y)
    return y


def unpack(x: Any, A: Any) -> Any:
    a, b, *rest = x
    return [a * b, *rest]


# Equations whose reading through symbols has the bits of the reading on floats.
EXACT: dict[str, Equation] = {
    "sum of products": lambda x, A: x[0] * x[1] + x[2] * 2 - 1 / x[3],
    "reflected operators": lambda x, A: fs.array([2 - x, 2 / x, 2.0**x, 7 // x, 7 % x]),
    "floor division and remainder": lambda x, A: np.stack([x // 0.7, x % 0.7, x % -0.7]),
    "divmod": lambda x, A: np.stack([*divmod(x, 0.3), *divmod(x[0] + x * 0, 2.0)]),
    "integers and booleans mixed in": lambda x, A: fs.array([x[0] * True, x[1] + 1, 3 * x[2]]),
    "integer powers of an array": lambda x, A: np.stack([x**0, x**1, x**2, x**3, x**-1, x**-2]),
    "roots of an array": lambda x, A: np.stack([x**0.5, np.sqrt(x), np.cbrt(x)]),
    "circular": lambda x, A: np.stack([np.sin(x), np.cos(x), np.tan(x)]),
    "inverse circular": lambda x, A: np.stack([np.arcsin(x), np.arccos(x), np.arctan(x)]),
    "hyperbolic": lambda x, A: np.stack([np.sinh(x), np.cosh(x), np.tanh(x)]),
    "inverse hyperbolic": lambda x, A: np.stack([np.arcsinh(x), np.arccosh(x), np.arctanh(x)]),
    "exponentials": lambda x, A: np.stack([np.exp(x), np.exp2(x), np.expm1(x)]),
    "logarithms": lambda x, A: np.stack([np.log(x), np.log2(x), np.log10(x), np.log1p(x)]),
    "rounding": lambda x, A: np.stack([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)]),
    "sizes and signs": lambda x, A: np.stack([abs(x), np.fabs(x), np.sign(x), -x, +x]),
    "squares and reciprocals": lambda x, A: np.stack([np.square(x), np.reciprocal(x)]),
    "angles": lambda x, A: np.stack([np.deg2rad(x), np.radians(x), np.degrees(x), np.rad2deg(x)]),
    "two-argument functions": lambda x, A: np.stack(
        [f(x[:3], x[3:]) for f in (np.arctan2, np.hypot, np.fmod, np.remainder, np.floor_divide)]
    ),
    "scalar ufuncs": lambda x, A: fs.array([np.arctan2(x[0], 1.0), np.hypot(3, x[1])]),
    "copysign with finite signs": lambda x, A: np.copysign(x, [1, -1, 1, -1, 0.0, -0.0]),
    "heaviside": lambda x, A: np.heaviside(x - 1.0, 0.5),
    "maximum and minimum": lambda x, A: np.stack([np.maximum(x, 1.0), np.minimum(x[0], x)]),
    "fmax and fmin": lambda x, A: np.stack([np.fmax(x, 1.0), np.fmin(0.5, x)]),
    "comparisons": lambda x, A: np.stack([x < 1, x <= 1, x > 1, x >= 1, x == 1, x != 1]),
    "comparisons with a number first": lambda x, A: np.stack([K[0, 1] < x, K[0, 1] >= x]),
    "finite or not": lambda x, A: np.stack([np.isfinite(x), np.isnan(x), np.isinf(x)]),
    "logic": lambda x, A: (x > 0.5) & (x < 1.5) | ~(x > -1) ^ (x < 9),
    "logic of numbers": lambda x, A: np.logical_or(np.logical_not(x), np.logical_and(x, x - 1.0)),
    "logic with known masks": lambda x, A: (x > 1) & np.array([True, False] * 3),
    "mask arithmetic": lambda x, A: ((x > 0.3) & (x < 2)) * x + (x > 1),
    "counting": lambda x, A: np.sum(x > 0.5) + (x > 1).sum(),
    "masks add as or, multiply as and": lambda x, A: np.where(
        (x > 0) + (x > 1), (x > 2) * (x < 3), x
    ),
    "all and any": lambda x, A: fs.array([np.all(x > 0), np.any(x > 2), (x < 1).all(), x.any()]),
    "where": lambda x, A: np.where(x > 1, x, -x),
    "where of mixed constants": lambda x, A: np.where(x > 0, 1.0, x) + np.where(x > 1, 2, False),
    "where of scalars": lambda x, A: fs.array([np.where(x[0] > 1, x[1], x[2]), x[0] > 1]),
    "where with a known condition": lambda x, A: np.where([True, False] * 3, x, 2.0),
    "fs.where on lists": lambda x, A: fs.where([x[0] > 1, True], [x[1], 2.0], 0),
    "select": lambda x, A: np.select([x < 0.5, x < 1], [x, 2 * x], 3 * x),
    "select without default": lambda x, A: np.select([x < 0.5], [x]),
    "piecewise of functions": lambda x, A: np.piecewise(
        x, [x < 1, x >= 1], [lambda v: v, lambda v: v**2]
    ),
    "piecewise of values with otherwise": lambda x, A: np.piecewise(
        x, [x < 0, x > 1], [-1, 1, 0.5]
    ),
    "clip": lambda x, A: np.stack([np.clip(x, 0.5, 1.5), x.clip(-1, 1), np.clip(x, None, x[0])]),
    "clip by keywords": lambda x, A: fs.clip([x[0], 2.0], 0.5, x[1]),
    "sums of few": lambda x, A: fs.array([np.sum(x), x.sum(), np.mean(x), x.mean(), np.sum(x[:1])]),
    "sums along axes": lambda x, A: np.sum(A, axis=0) + A.sum(axis=-1) + np.mean(A, axis=1),
    "sums that keep axes": lambda x, A: A / np.sum(A, axis=1, keepdims=True),
    "sums of all axes": lambda x, A: np.sum(x.reshape(1, 2, 3), axis=(0, 2)),
    "sums with a start and a mask": lambda x, A: np.sum(x, initial=2.0, where=x > 1),
    "products": lambda x, A: fs.array([np.prod(x), x.prod(), np.prod(A[:2, :2])]),
    "extrema": lambda x, A: fs.array(
        [x.max(), np.min(x), np.max(A), np.ptp(x), np.amax(x, initial=9)]
    ),
    "extrema along an axis": lambda x, A: np.stack([np.max(A, axis=0), A.min(axis=1)]),
    "running sums": lambda x, A: np.stack([np.cumsum(x), x.cumsum(), np.cumprod(x), x.cumprod()]),
    "running sums along an axis": lambda x, A: np.cumsum(A, axis=1) + np.add.accumulate(A),
    "ufunc methods": lambda x, A: np.maximum.reduce(A) * np.multiply.outer(x[:3], x[3:]),
    "differences": lambda x, A: np.diff(x, n=2) + np.diff(A, axis=0).ravel()[:4],
    "trapezoid": lambda x, A: fs.array(
        [np.trapezoid(x), np.trapezoid(x[:3], A[0]), *np.trapezoid(A)]
    ),
    "outer, kron, diag": lambda x, A: (
        np.outer(x[:3], x[3:]) + np.diag(x[:3]) + np.kron(x[:3], A)[:, :3]
    ),
    "cross": lambda x, A: np.cross(x[:3], x[3:]) + np.cross([0, 0, 1.0], x[3:]),
    "cross of rows": lambda x, A: np.cross(A, x[:3]) + np.cross(A, A.T, axis=0),
    "polyval": lambda x, A: np.polyval([1.0, 2.0, 3.0], x) + np.polyval(x[:3], 2.0),
    "nan_to_num": lambda x, A: np.nan_to_num(x, nan=1.0, posinf=2.0),
    "concatenate": lambda x, A: np.concatenate([x[:2], [1.0], np.array([4]), x[4:]]),
    "stacking": lambda x, A: np.vstack([x[:3], x[3:]]) + np.stack([x[3:], A[0]]),
    "stacking scalars": lambda x, A: np.hstack(
        [x[0], 1.0, np.stack([x[1], x[2]]), np.append(x, 2)]
    ),
    "column_stack and block": lambda x, A: np.block(
        [[A, np.ones((3, 2))], [np.column_stack([x[:2], x[2:4]]), A[:2]]]
    ),
    "tile, repeat, roll, flip": lambda x, A: (
        np.tile(x, 2) + np.repeat(x, 2) + np.roll(np.flip(np.tile(x, 2)), 1)
    ),
    "shapes": lambda x, A: (
        x.reshape(2, 3).T.ravel() + np.moveaxis(x.reshape(1, 2, 3), 0, 2).squeeze().ravel()
    ),
    "more shapes": lambda x, A: (
        np.expand_dims(x[:3], 1) + np.broadcast_to(x[3:], (3, 3)) + np.transpose(A)
    ),
    "split": lambda x, A: np.split(x, 2)[0] * np.array_split(x, [3])[1] + np.atleast_1d(x[0]),
    "zeros_like and assignment": fill_zeros_like,
    "zeros by like and assignment": fill_matrix,
    "full, ones, eye by like": lambda x, A: np.full((3, 3), 2.0, like=x) * A + np.eye(3, like=x),
    "array by like": lambda x, A: (
        np.array([x[0], 1.0], like=x) if fs.is_symbolic(x) else x[:1] * [1, 0] + [0, 1]
    ),
    "full_like and ones_like": lambda x, A: np.full_like(x, 2.0) * x + np.ones_like(A, shape=6),
    "in-place changes": change_in_place,
    "out and where of a ufunc": write_to_out,
    "unpacking": unpack,
    "scalars have no axes": lambda x, A: (
        x[0].item() + x[1].ndim + len(x[2].shape) + x[3].T + x[4].size
    ),
    "known entries are NumPy scalars": lambda x, A: np.zeros_like(x)[0].item() + x,
    "indexing by lists and known masks": lambda x, A: (
        x[[0, 2]] + x[np.array([0, 1, 0, 0, 0, 1]) > 0]
    ),
    "axes by newaxis and ellipsis": lambda x, A: A[..., 0] + x[:3, np.newaxis] * A[1, ...],
    "builtin sum and abs": lambda x, A: sum(x[:3]) + abs(x[0]) + pow(x, 2),
    "fs.array of rows": lambda x, A: fs.array([[x[0], 1, 2.5], x[3:], A[0]]),
    "fs.array of nothing symbolic": lambda x, A: fs.array([[1, 2], [3, 4]])[0] + x[:2],
}

# Equations that NumPy hands to BLAS, LAPACK or a pairwise sum: equal to rounding.
ROUNDED: dict[str, Equation] = {
    "powers of scalars": lambda x, A: fs.array([x[0] ** 2, abs(x[1]) ** 0.5, abs(x[2]) ** 1.7]),
    "float_power": lambda x, A: np.float_power(abs(x), 1.7),
    "sum of many": lambda x, A: np.sum(np.tile(x, 9)),
    "dot": lambda x, A: np.dot(x[:3], x[3:]) + x[:3].dot(x[3:]) + np.inner(x, x) + np.vdot(x, x),
    "matrix products": lambda x, A: A @ x[:3] + x[3:] @ A + K @ x[:3] + A.dot(x[:3]),
    "product of three": lambda x, A: x[:3] @ A @ x[3:],
    "stacks of matrices": lambda x, A: np.matmul(np.stack([A, K]), x.reshape(3, 2)),
    "multi_dot": lambda x, A: np.linalg.multi_dot([A, K, A, x[:3]]),
    "trace": lambda x, A: np.trace(A) + A.trace() + np.trace(np.outer(x[:3], x[3:])),
    "vecdot": lambda x, A: np.vecdot(A, x[:3]),
    "einsum": lambda x, A: np.einsum("ij,j->i", A, x[:3]) + np.einsum("ji,j", A, x[3:]),
    "einsum of three": lambda x, A: np.einsum("i, ij, j ->", x[:3], A, x[3:]) + np.einsum("ii", A),
    "einsum transposing": lambda x, A: np.einsum("ij->ji", A) + np.einsum("i,j->ij", x[:3], x[3:]),
    "tensordot": lambda x, A: (
        np.tensordot(A, x[:3], axes=1) + np.tensordot(A, A, axes=([0, 1], [1, 0]))
    ),
    "interp": lambda x, A: np.interp(x, [0.0, 0.5, 1.0, 2.0], [0.0, 1.0, 4.0, 9.0]),
    "interp at steps": lambda x, A: np.interp(
        x[0], [0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 4.0, 9.0], -7, 7
    ),
    "interp in a table of symbols": lambda x, A: np.interp(
        [-1, 0.3, 1.0, 2, 5], [0, 1, 2.0], x[:3]
    ),
    "norms of vectors": lambda x, A: [
        np.linalg.norm(x[:3], p) for p in (None, 1, 2, np.inf, -np.inf)
    ],
    "norms of matrices": lambda x, A: [np.linalg.norm(A), np.linalg.norm(A, "fro")],
    "norms along an axis": lambda x, A: np.linalg.norm(A, axis=1) + np.linalg.norm(A, 1, 0),
    "norms that keep axes": lambda x, A: A / np.linalg.norm(A, axis=1, keepdims=True),
    "sinc": lambda x, A: np.sinc(x) + fs.sinc(x) + fs.sinc(x[0]),
    "solve with known matrix": lambda x, A: np.linalg.solve(K, x[:3]),
    "solve": lambda x, A: np.linalg.solve(A, x[3:]),
    "solve with many right-hand sides": lambda x, A: np.linalg.solve(A, x.reshape(3, 2)),
    "solve six": lambda x, A: np.linalg.solve(np.kron(K[:2, :2], A), x),
    "inv": lambda x, A: np.linalg.inv(A),
    "det": lambda x, A: np.linalg.det(A) + np.linalg.det(x[:4].reshape(2, 2)),
}

RANDOM = np.random.default_rng(7)
SAMPLES = {
    "random": (RANDOM.normal(size=6), RANDOM.normal(size=(3, 3))),
    "random positive": (RANDOM.uniform(0.1, 3, size=6), K + RANDOM.uniform(size=(3, 3))),
    "ties": (np.array([1.0, 1.0, 2.0, 1.0, 2.0, 2.0]), K),
    "zero pivots": (np.array([0.5, 0.0, 1.5, 0.0, 0.3, 1.0]), K[[2, 0, 1]]),
}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])


@for_each("sample", SAMPLES)
@for_each("name", EXACT)
def test_equation_has_the_same_bits_through_symbols(name: str, sample: str) -> None:
    assert_same_bits(*read_both(EXACT[name], *SAMPLES[sample]))


@for_each("name", EXACT)
def test_equation_has_the_same_bits_at_special_values(name: str) -> None:
    assert_same_bits(*read_both(EXACT[name], SPECIAL, np.resize(SPECIAL, (3, 3))))


@for_each("sample", SAMPLES)
@for_each("name", ROUNDED)
def test_equation_agrees_to_rounding_through_symbols(name: str, sample: str) -> None:
    result, expected = read_both(ROUNDED[name], *SAMPLES[sample])
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-14 * np.max(np.abs(expected)))


def test_known_values_can_be_decided_on() -> None:
    def equation(x: Any) -> Any:
        known = np.zeros_like(x)
        assert not known[0] > 0
        assert np.all(known == 0)
        assert not known[:1]
        return x[1:][known[1:] == 0] if math.cos(known[0]) > 0 else x

    assert fs.sources(trace(equation, 3)) == {(0, 1), (0, 2)}


# Dependence

DEPENDENCE: dict[str, tuple[Equation, set[int]]] = {
    "nothing": (lambda x: np.ones(3), set()),
    "one entry": (lambda x: np.sin(x[2]), {2}),
    "sum": (lambda x: x[:3].sum() + x[5], {0, 1, 2, 5}),
    "both branches and the condition": (lambda x: np.where(x[0] > 1, x[1], x[2] * 2), {0, 1, 2}),
    "equal branches": (lambda x: np.where(x[0] > 1, x[1], x[1]), {1}),
    "known condition": (lambda x: np.where(np.arange(6) < 2, x, 0.0), {0, 1}),
    "zero times a symbol, which may be NaN": (lambda x: 0.0 * x[3], {3}),
    "symbol minus itself, which may be NaN": (lambda x: x[3] - x[3], {3}),
    "power zero, which is 1 even of NaN": (lambda x: x[3] ** 0 + x[1], {1}),
    "known table": (lambda x: np.interp(x[4], [0.0, 1.0], [2.0, 3.0]), {4}),
    "nested sequences": (lambda x: [x[0], [x[4], 1.0]], {0, 4}),
    "overwritten entry": (lambda x: change_in_place(x[:6], None)[1], {1}),
}


@pytest.mark.parametrize("name", DEPENDENCE)
def test_sources_are_exactly_what_is_used(name: str) -> None:
    equation, used = DEPENDENCE[name]
    assert fs.sources(trace(equation, 6)) == {(0, k) for k in used}


# Recording


def test_equal_expressions_are_one_node() -> None:
    x, y = fs.symbols(fs.Graph(), "x", 2)
    assert x * y + 1 is 1.0 + y * x
    assert np.sin(x - y) is np.sin(x - y)
    assert np.sin(x - y) is not np.sin(y - x)
    assert x.graph.input(("x", 1)) is y
    assert copy.deepcopy(x) is x
    assert copy.copy(fs.array([x, y]))[1] is y


@pytest.mark.parametrize(
    "identity",
    [
        lambda x: x * 1,
        lambda x: 1.0 * x,
        lambda x: x / 1,
        lambda x: x - 0.0,
        lambda x: np.negative(-x),
        lambda x: x**1,
        lambda x: +x,
        lambda x: np.where(True, x, 7.0),
        lambda x: np.where(x > 0, x, x),
        lambda x: np.where(~~(x > 0) & True | False, x, x),
    ],
)
def test_exact_identities_record_nothing_new(identity: Any) -> None:
    x = fs.Graph().input("x")
    assert identity(x) is x


@pytest.mark.parametrize(
    "operation",
    [lambda x: x * 0, lambda x: x - x, lambda x: x + 0.0, lambda x: x - -0.0, lambda x: x / x],
)
def test_what_is_no_identity_for_every_float_is_recorded(operation: Any) -> None:
    x = fs.Graph().input("x")
    recorded = operation(x)
    assert recorded.op not in ("input", "constant")
    for value in SPECIAL:
        with np.errstate(all="ignore"):
            expected = operation(np.float64(value))
        assert_same_bits(fs.evaluate(recorded, {"x": value}), expected)


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (lambda c: 1 / (c - 2.0), np.inf),
        (lambda c: np.log(-c), np.nan),
        (lambda c: (0 * -c) ** 3, -0.0),
        (lambda c: c**-1, 0.5),
        (lambda c: np.exp(c * 1e3), np.inf),
    ],
)
def test_operations_on_constants_are_computed_as_float64(operation: Any, value: Any) -> None:
    folded = operation(fs.Graph().constant(2.0))
    assert folded.op == "constant"
    assert_same_bits(folded.value, value)


def test_comparing_constants_gives_a_truth_value() -> None:
    two = fs.Graph().constant(2.0)
    assert (two < 3) is np.True_
    assert ~(two == 2.0) is np.False_
    assert np.isnan(two) is np.False_


def test_nodes_are_in_order_and_typed() -> None:
    x, y = fs.symbols(fs.Graph(), "x", 2)
    output: Any = np.where((x > 1) & (y > 1), np.maximum(x, (y > 2) * y), 0.5)
    for index, node in enumerate(x.graph.nodes):
        assert node.index == index
        assert all(arg.index < index for arg in node.args)
    assert [node.op for node in output.args[0].args] == ["less", "less"]
    assert isinstance(output.args[0], fs.Condition)
    assert not any(isinstance(arg, fs.Condition) for arg in output.args[1:])
    assert (x.key, output.args[2].value) == (("x", 0), 0.5)
    with pytest.raises(AttributeError):
        x.value  # noqa: B018


def test_symbols_of_two_graphs_do_not_mix() -> None:
    x, y = (fs.symbols(fs.Graph(), "x", 2) for _ in range(2))
    with pytest.raises(TraceError, match="two graphs"):
        x + y
    with pytest.raises(TraceError, match="two graphs"):
        fs.sources([x, y])


def test_symbols_have_no_hidden_order_or_recursion() -> None:
    x = fs.Graph().input("x")
    y = x
    for _ in range(50_000):
        y = np.float64(1.0) - y * 0.5
    assert len(x.graph.nodes) > 100_000
    assert fs.sources(y) == {"x"}
    assert fs.evaluate(y, {"x": 3.0}) == pytest.approx(2 / 3, rel=1e-15)


def test_numbering_does_not_depend_on_hash_seeds() -> None:
    program = (
        "import numpy as np\n"
        "from flexure.diagrams import scalars as fs\n"
        "x = fs.symbols(fs.Graph(), 'x', 6)\n"
        "np.linalg.solve(np.outer(x[:3], x[3:]) + np.eye(3), np.where(x > 0, x, 2.0)[:3])\n"
        "np.einsum('ij,j', x.reshape(2, 3), x[:3])\n"
        "print(x[0].graph.nodes)\n"
    )
    listings = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(listings) == 1
    assert listings.pop().startswith("[<#0 input ('x', 0)>, <#1 input ('x', 1)>")


# Shapes and kinds


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    "equation",
    [
        lambda x: x @ x + np.dot(x, x) + np.sum(x) + np.prod(x) + np.linalg.norm(x),
        lambda x: np.where(x > 0, np.sin(x), 0.0) + np.cumsum(x) + x**2,
        lambda x: np.outer(x, x) @ x + np.einsum("i,j->i", x, x) + np.diag(x) @ x,
        lambda x: np.linalg.solve(np.eye(len(x)) + np.outer(x, x), x),
        lambda x: np.linalg.det(np.diag(x)) + np.trace(np.diag(x)) + np.tensordot(x, x, 1),
        lambda x: np.concatenate([x, [2.0]]) * np.append(1.0, x) + np.hstack([x, 1.0]),
        lambda x: np.stack([x, x]).T @ np.ones(2) + np.max(x, initial=-9.0),
        lambda x: fs.array([x.all(), x.any(), np.sum(x > 0)]),
    ],
)
def test_arrays_of_no_and_of_one_entry(equation: Any, size: int) -> None:
    result, expected = read_both(equation, np.array([0.75])[:size])
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "equation",
    [
        lambda x: x.reshape(()),
        np.squeeze,
        lambda x: x @ x,
        np.sum,
        lambda x: x[..., 0],
        lambda x: np.where(x[0] > 0, x[0], 1.0),
        lambda x: np.clip(x[0], 0, 1),
        lambda x: np.array(2.0) * x[0],
        lambda x: fs.array(x[0]),
        lambda x: fs.clip(fs.where(x[0] > 0, 1.0, x[0]), 0, x[0]),
        lambda x: x[0].reshape(1)[0].ravel()[0].T.sum().copy().conj().item(),
    ],
)
def test_results_without_axes_are_bare_symbols(equation: Any) -> None:
    result = trace(equation, 1)
    assert isinstance(result, fs.Symbol)
    assert result.shape == ()
    assert fs.evaluate(result, {(0, 0): 0.5}) == equation(np.array([0.5]))


def test_plain_object_arrays_compute_with_methods() -> None:
    x = fs.symbols(fs.Graph(), "x", 2)
    plain = x.view(np.ndarray)
    assert np.sin(plain)[1] is np.sin(x[1])
    assert np.arctan2(plain, plain[::-1])[0] is np.arctan2(x[0], x[1])
    assert isinstance(np.where(plain + x > 0, plain, 1.0), fs.SymbolArray)


def test_array_without_symbols_is_an_ordinary_array() -> None:
    assert fs.array([1, 2]).dtype == float
    assert fs.array([[True], [False]]).dtype == bool
    assert type(fs.array(3)) is np.float64
    source = np.ones(2)
    assert not np.shares_memory(fs.array(source), source)


@pytest.mark.parametrize("part", [1.0, fs.Graph().input("x")])
def test_array_refuses_ragged_rows_and_other_objects(part: Any) -> None:
    with pytest.raises(ValueRefusedError, match="equal shape"):
        fs.array([[part, 2.0], [3.0]])
    with pytest.raises((ValueRefusedError, TraceError), match="real number"):
        fs.array([part, None])


def test_is_symbolic_looks_inside_sequences() -> None:
    x = fs.symbols(fs.Graph(), "x", 2)
    assert all(
        map(fs.is_symbolic, [x, x[0], x > 0, (1.0, [x[1]]), np.asarray(x), np.zeros_like(x)])
    )
    assert not any(map(fs.is_symbolic, [1.0, "x", None, [1.0, (2.0,)], np.ones(3)]))


def test_symbols_have_the_keys_of_their_position() -> None:
    matrix = fs.symbols(fs.Graph(), ("input port", 3), (2, 2))
    assert matrix[1, 0].key == (("input port", 3), 2)
    assert fs.symbols(fs.Graph(), "time", ()).key == ("time", 0)


def test_evaluation_gives_truth_values_and_keeps_shapes() -> None:
    x = fs.symbols(fs.Graph(), 0, (2, 2))
    truths = fs.evaluate(x > 2.5, values_of([1, 2, 3, 4]))
    assert truths.tolist() == [[False, False], [True, True]]
    assert fs.evaluate([[x[0, 0], 7], [True, 1]], values_of([5])).tolist() == [[5, 7], [1, 1]]


def test_evaluation_names_the_input_without_value() -> None:
    with pytest.raises(UnknownNameError, match=r"input \(0, 1\)"):
        fs.evaluate(trace(lambda x: x[1] + 1, 2), {(0, 0): 1.0})


@pytest.mark.parametrize("x", [0.0, 1e-9, -0.01, 0.2999, 0.3001, 1.0, -3.0, 40.0])
def test_sinc_is_accurate_and_defined_at_zero(x: float) -> None:
    expected = math.sin(x) / x if x else 1.0
    assert fs.sinc(x) == pytest.approx(expected, rel=4e-16)
    assert fs.evaluate(trace(fs.sinc, ()), {(0, 0): x}) == fs.sinc(x)
    assert fs.sinc([x])[0] == fs.sinc(x)


# Random equations

FUNCTIONS_OF_ONE: tuple[Equation, ...] = (
    np.sin,
    np.exp,
    np.log,
    np.sqrt,
    np.arctan,
    np.floor,
    abs,
    np.negative,
    np.sign,
)
FUNCTIONS_OF_TWO: tuple[Equation, ...] = (
    *(np.add, np.subtract, np.multiply, np.divide, np.arctan2, np.fmod, np.remainder, np.hypot),
    *(lambda a, b: np.where(a < b, a, b * 2), lambda a, b: np.where(~(a == b) & (b >= 0), b, 1.5)),
    *(lambda a, b: a * 1 - 0.0 + b / 1, np.heaviside, lambda a, b: (a > b) * b),
)
NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan]),
    st.floats(-1e3, 1e3),
)
EQUATIONS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.sampled_from([("input", k) for k in range(3)]), NUMBERS),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(FUNCTIONS_OF_ONE), inner),
        st.tuples(st.sampled_from(FUNCTIONS_OF_TWO), inner, inner),
    ),
    max_leaves=25,
)


def read(equation: Any, inputs: list[Any]) -> Any:
    """Compute a random equation on numbers or symbols."""
    if isinstance(equation, float):
        return np.float64(equation)
    operation, *operands = equation
    if operation == "input":
        return inputs[operands[0]]
    return operation(*[read(operand, inputs) for operand in operands])


@settings(max_examples=by_tier(fast=75, full=300), deadline=None)
@given(EQUATIONS, st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_random_equations_have_the_same_bits_through_symbols(equation: Any, numbers: Any) -> None:
    graph = fs.Graph()
    inputs = [graph.input(k) for k in range(3)]
    with np.errstate(all="ignore"):
        symbolic = read(equation, inputs)
        expected = read(equation, [np.float64(number) for number in numbers])
    assert_same_bits(fs.evaluate(symbolic, dict(enumerate(numbers))), expected)
