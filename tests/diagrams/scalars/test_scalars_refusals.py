"""What an equation cannot do with symbols is refused with its line and the way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flexure.diagrams import scalars as fs
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.scalars.expressions.expression import may_jump
from tests.support.tiers import for_each


def branch(x: Any) -> Any:
    if x[0] > 1:
        return x[1]
    return x[2]


def assign_into_floats(x: Any) -> Any:
    y = np.zeros(3)
    y[0] = x[0]
    return y


def assign_slice_into_floats(x: Any) -> Any:
    y = np.zeros(3)
    y[:2] = x[:2]
    return y


def add_into_floats(x: Any) -> Any:
    y = np.ones(6)
    y += x
    return y


def assign_by_mask(x: Any) -> Any:
    x[x > 1] = 0.0
    return x


def assign_array_to_entry(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[:2]
    return y


USE_WHERE = "np.where(condition, a, b) instead of 'if'"
USE_NUMPY = "np.sin(x) instead of math.sin(x)"
USE_ARRAY = "fx.array([...]) or np.stack([...]) instead of np.array([...])"
USE_RINT = "np.trunc, np.floor or np.rint instead of int() and round()"
USE_MASK = "np.where(mask, x, 0.0) instead of x[mask]"
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "if": (branch, USE_WHERE),
    "while": (lambda x: next(k for k in range(9) if x[0] * k > 3), USE_WHERE),
    "and": (lambda x: x[0] > 0 and x[1] > 0, "& | ~ instead of 'and', 'or', 'not'"),
    "not": (lambda x: not x[0], USE_WHERE),
    "chained comparison": (lambda x: 0 < x[0] < 1, USE_WHERE),
    "in": (lambda x: 1.0 in x, USE_WHERE),
    "truth of an array": (lambda x: 1 if x > 0 else 2, USE_WHERE),
    "builtin max": (lambda x: max(x[0], 0.9), "np.maximum, np.minimum or np.clip instead of max()"),
    "sorted": (lambda x: sorted(x.tolist()), USE_WHERE),
    "math.sin": (lambda x: math.sin(x[0]), USE_NUMPY),
    "math.sin of an array": (lambda x: math.sin(x[:1]), USE_NUMPY),
    "float": (lambda x: float(x[0]), "omit float()"),
    "complex": (lambda x: complex(x[0]), USE_NUMPY),
    "int": (lambda x: int(x[0]), USE_RINT),
    "round": (lambda x: round(x[0]), USE_RINT),
    "math.floor": (lambda x: math.floor(x[0]), USE_RINT),
    "range": (lambda x: range(x[0]), USE_RINT),
    "astype(int)": (lambda x: x.astype(int), USE_RINT),
    "index of a list": (lambda x: [1, 2][x[0]], "np.interp instead of an index"),
    "index of an array": (lambda x: np.eye(3)[x[0]], "np.interp instead of an index"),
    "symbol as index of symbols": (lambda x: x[x[0]], "np.interp to look up a table"),
    "mask as index": (lambda x: x[x > 1], USE_MASK),
    "mask among indices": (lambda x: x.reshape(2, 3)[0, x[:3] > 1], USE_MASK),
    "assignment by mask": (assign_by_mask, "y = np.where(mask, value, y)"),
    "format": (lambda x: f"{x[0]:.3f}", "Leave the formatting out"),
    "np.array": (lambda x: np.array([x[0], 1.0]), USE_ARRAY),
    "np.array, then branch": (lambda x: branch(np.array([x[0], x[1]])), USE_ARRAY),
    "np.asarray of floats": (lambda x: np.asarray(x, float), "fx.array([...])"),
    "np.full": (lambda x: np.full(3, x[0]), USE_ARRAY),
    "np.sum of a list": (lambda x: np.sum([x[0], x[1]]), USE_ARRAY),
    "assignment into floats": (assign_into_floats, "np.zeros_like(x)"),
    "slice assignment into floats": (assign_slice_into_floats, "np.zeros_like(x)"),
    "in-place addition into floats": (add_into_floats, "y = y + x instead of y += x"),
    "copyto floats": (lambda x: np.copyto(np.zeros(6), x), "np.zeros_like(x)"),
    "np.sort": (np.sort, "np.minimum and np.maximum"),
    "method argmax": (lambda x: x.argmax(), "np.where(a > b"),
    "np.searchsorted": (lambda x: np.searchsorted([1.0], x), "np.interp, np.select"),
    "np.allclose": (lambda x: np.allclose(x, 1.0), "np.abs(a - b) <= tolerance"),
    "np.where of one argument": (lambda x: np.where(x > 1), "all three arguments"),
    "np.fft": (np.fft.fft, "np.fft.fft"),
    "np.linalg.eigvals": (lambda x: np.linalg.eigvals(np.diag(x)), "np.linalg.eigvals"),
    "unsupported ufunc": (np.spacing, "np.spacing"),
    "unsupported method of a ufunc": (lambda x: np.add.reduceat(x, [0, 2]), "np.add.reduceat"),
    "unsupported keyword": (lambda x: np.interp(x, [0, 1.0], [0, 1.0], period=1), "period"),
    "spectral norm": (lambda x: np.linalg.norm(np.diag(x), 2), "norms 1, 2, inf"),
    "stack of matrices": (lambda x: np.linalg.inv(np.stack([np.diag(x)] * 2)), "one by one"),
    "cross of two components": (lambda x: np.cross(x[:2], x[2:4]), "vectors of length 3"),
    "ellipsis in einsum": (lambda x: np.einsum("...->...", x), "Name every axis by a letter"),
    "maximum of nothing": (lambda x: np.max(x[:0]), "at least one entry"),
    "mask of a ufunc without out": (lambda x: np.sqrt(x, where=x > 0), "without out="),
    "bits of numbers": (lambda x: x & (x > 0), "Put comparisons in parentheses"),
    "texts": (lambda x: x + "1", "no real number"),
    "complex numbers": (lambda x: x * np.array([1j]), "no real number"),
}


@for_each("name", REFUSED)
def test_refusal_names_the_line_and_the_way_out(name: str) -> None:
    equation, remedy = REFUSED[name]
    with pytest.raises(TraceError) as refused:
        equation(fs.symbols(fs.Graph(), "x", 6))
    text = str(refused.value)
    assert remedy in text
    assert " at test_scalars_refusals.py:" in text


def test_refusal_quotes_the_line_of_the_equation() -> None:
    line = branch.__code__.co_firstlineno + 1
    with pytest.raises(TraceError) as refused:
        branch(fs.symbols(fs.Graph(), "x", 6))
    assert str(refused.value) == (
        "Cannot use a symbol as a decision (if, while, and, or, not, min, max, sorted) at "
        f"test_scalars_refusals.py:{line}, 'if x[0] > 1:': expected operations that are the same "
        "for every value; found <#7 less(#6, #0)>. Write np.where(condition, a, b) instead of "
        "'if', np.maximum, np.minimum or np.clip instead of max() and min(), and & | ~ instead of "
        "'and', 'or', 'not'."
    )


def test_array_is_not_hidden_inside_an_entry() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        assign_array_to_entry(fs.symbols(fs.Graph(), "x", 6))


JUMPS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "branches": (lambda x: np.where(x[0] > x[1], x[2], 0.0), True),
    "floor": (lambda x: np.floor(x[0]), True),
    "remainder in a branch of a guard": (lambda x: np.where(x[0] == 0, 1, np.mod(x[1], 2)), True),
    "arithmetic": (lambda x: np.abs(x[0]) + np.maximum(x[1], 0.0) * x[2] + 3.0, False),
    "a number": (lambda _: 3.0, False),
    "refused arguments": (lambda x: np.sqrt(np.where(x[0] < 0.0, np.nan, x[0])), False),
    "refused otherwise": (lambda x: np.where((x[0] > 0) & (x[1] > 0), x[0], np.nan), False),
    "a replacement of NaN": (lambda x: np.fmax(np.where(x[0] > 1.0, np.nan, x[0]), 0.0), True),
    "a guarded divisor": (lambda x: x[1] / np.where(x[0] == 0.0, 1.0, x[0]), False),
    "a guarded divisor otherwise": (lambda x: x[1] / np.where(x[0] != 0.0, x[0], 1.0), False),
    "a guard that rests": (lambda x: np.where(np.maximum(x[0], 0.0) == 0.0, 1.0, x[0]), True),
}


@pytest.mark.parametrize("name", JUMPS)
def test_operations_that_a_motion_can_jump_at_are_found(name: str) -> None:
    equation, jumps = JUMPS[name]
    assert may_jump([equation(fs.symbols(fs.Graph(), "x", 3))]) is jumps
