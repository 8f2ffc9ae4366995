"""Traced expressions as SymPy expressions, for symbolic calculations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.scalars.derivatives.evaluation import translated

_MOST_DIGITS = 1e16  # beyond, a float no longer counts units


def sympy_expressions(outputs: Iterable[Any], names: Mapping[Any, str]) -> list[Any]:
    """Return expressions of one graph, and numbers, as expressions of real SymPy symbols.

    Numbers keep every bit. SymPy simplifies as it goes, in real arithmetic without NaN and without
    rounding: ``x - x`` is zero. Where NumPy gives NaN because a result would not be real, such as
    the root of a negative number, SymPy goes on with a complex number.

    ``names`` are what the symbols of inputs are called, by key. Raises `MissingExtraError` where
    SymPy is not installed.
    """
    sympy = import_sympy()
    return translated(
        outputs,
        _rules(sympy),
        lambda key: sympy.Symbol(names[key], real=True),
        partial(_number, sympy),
    )


def import_sympy() -> Any:
    """Import the optional package."""
    return import_extra("sympy", "symbolic", "Cannot convert the equation")


def _number(sympy: Any, value: float) -> Any:
    """Return an exact number, which is an integer where the value is one."""
    if value.is_integer() and abs(value) < _MOST_DIGITS:
        return sympy.Integer(int(value))
    return sympy.Float(value)


def _rules(sp: Any) -> dict[str, Callable[..., Any]]:
    """Say what each operation of the vocabulary is in SymPy."""
    half = sp.Rational(1, 2)

    def where(condition: Any, a: Any, b: Any) -> Any:
        return sp.Piecewise((a, condition), (b, True))

    def trunc(x: Any) -> Any:
        return sp.sign(x) * sp.floor(sp.Abs(x))

    def rint(x: Any) -> Any:
        # Of two integers equally near, the even one: 2 k + 1/2 is the only tie that goes down.
        return where(sp.Eq(sp.Mod(x, 2), half), x - half, sp.floor(x + half))

    same = ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "floor")
    renamed = {
        "absolute": sp.Abs,
        "ceil": sp.ceiling,
        "arcsin": sp.asin,
        "arccos": sp.acos,
        "arctan": sp.atan,
        "arctan2": sp.atan2,
        "arcsinh": sp.asinh,
        "arccosh": sp.acosh,
        "arctanh": sp.atanh,
        "remainder": sp.Mod,
        "maximum": sp.Max,
        "fmax": sp.Max,
        "minimum": sp.Min,
        "fmin": sp.Min,
        "less": sp.Lt,
        "less_equal": sp.Le,
        "equal": sp.Eq,
        "not_equal": sp.Ne,
        "logical_and": sp.And,
        "logical_or": sp.Or,
        "logical_xor": sp.Xor,
        "logical_not": sp.Not,
    }
    return (
        {name: getattr(sp, name) for name in same}
        | renamed
        | {
            "add": lambda a, b: a + b,
            "subtract": lambda a, b: a - b,
            "multiply": lambda a, b: a * b,
            "divide": lambda a, b: a / b,
            "power": lambda a, b: a**b,
            "negative": lambda x: -x,
            "floor_divide": lambda a, b: sp.floor(a / b),
            "fmod": lambda a, b: a - b * trunc(a / b),
            "trunc": trunc,
            "rint": rint,
            "cbrt": lambda x: sp.sign(x) * sp.Abs(x) ** sp.Rational(1, 3),
            "hypot": lambda a, b: sp.sqrt(a**2 + b**2),
            "copysign": lambda a, b: where(b < 0, -sp.Abs(a), sp.Abs(a)),
            "exp2": lambda x: 2**x,
            "expm1": lambda x: sp.exp(x) - 1,
            "log2": lambda x: sp.log(x, 2),
            "log10": lambda x: sp.log(x, 10),
            "log1p": lambda x: sp.log(1 + x),
            "isfinite": lambda x: sp.And(-sp.oo < x, x < sp.oo),
            "isinf": lambda x: sp.Eq(sp.Abs(x), sp.oo),
            "isnan": lambda x: sp.false,
            "where": where,
        }
    )
