"""Traced expressions as CasADi expressions, for solvers that differentiate them again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import inf, log
from typing import Any

from flexure.diagrams.checks.arguments import import_extra
from flexure.diagrams.scalars.derivatives.evaluation import translated


def import_casadi(attempt: str) -> Any:
    """Import the optional package."""
    return import_extra("casadi", "optimal", attempt)


def casadi_expressions(ca: Any, outputs: Iterable[Any], values: Mapping[Any, Any]) -> Any:
    """Return expressions as a column of CasADi's scalars (SX), with values by keys of inputs."""
    found = translated(outputs, _rules(ca), lambda key: ca.SX(values[key]), ca.SX)
    return ca.vertcat(ca.SX(0, 1), *found)


@cache
def _rules(ca: Any) -> dict[str, Callable[..., Any]]:
    """Say what each operation of the vocabulary is in CasADi."""
    same = (
        *("sqrt", "exp", "log", "log10", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh"),
        *("tanh", "sign", "floor", "ceil", "copysign", "hypot", "fmax", "fmin", "fmod", "power"),
    )
    renamed = {
        "absolute": ca.fabs,
        "arcsin": ca.asin,
        "arccos": ca.acos,
        "arctan": ca.atan,
        "arctan2": ca.atan2,
        "arcsinh": ca.asinh,
        "arccosh": ca.acosh,
        "arctanh": ca.atanh,
        "maximum": ca.fmax,
        "minimum": ca.fmin,
        "less": ca.lt,
        "less_equal": ca.le,
        "equal": ca.eq,
        "not_equal": ca.ne,
        "logical_and": ca.logic_and,
        "logical_or": ca.logic_or,
        "logical_not": ca.logic_not,
        "logical_xor": ca.ne,
        "where": ca.if_else,
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": operator.truediv,
        "negative": operator.neg,
    }
    return (
        {name: getattr(ca, name) for name in same}
        | renamed
        | {
            "trunc": lambda x: ca.sign(x) * ca.floor(ca.fabs(x)),
            "rint": lambda x: x - ca.remainder(x, 1.0),  # of two integers equally near, the even
            "cbrt": lambda x: ca.sign(x) * ca.fabs(x) ** (1.0 / 3.0),
            "exp2": lambda x: ca.exp(log(2.0) * x),
            "log2": lambda x: ca.log(x) / log(2.0),
            "floor_divide": lambda a, b: ca.floor(a / b),
            "remainder": lambda a, b: a - b * ca.floor(a / b),
            "isfinite": lambda x: ca.fabs(x) < inf,
            "isinf": lambda x: ca.fabs(x) == inf,
            "isnan": lambda x: ca.SX(0.0),  # which solvers of CasADi refuse by themselves
        }
    )
