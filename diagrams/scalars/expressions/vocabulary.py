"""The operations that expressions are made of, each computed by the NumPy ufunc of its name.

Operations are typed: `CONDITIONS` give a truth value, all others a number; ``logical_*`` take truth
values, all others numbers. Three operations are not ufuncs: the leaves ``"input"`` and
``"constant"``, and ``"where"``, which takes a truth value and two numbers.
"""

from __future__ import annotations

import numpy as np

_ROUNDING = ("floor", "ceil", "trunc", "rint")
_EXPONENTIAL = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")
_CIRCULAR = ("sin", "cos", "tan", "arcsin", "arccos", "arctan")
_HYPERBOLIC = ("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh")
_TESTS = ("isfinite", "isinf", "isnan")
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "power")
_DIVISION = ("floor_divide", "remainder", "fmod")
_EXTREMA = ("maximum", "minimum", "fmax", "fmin")
_COMPARISONS = ("less", "less_equal", "equal", "not_equal")

UNARY = (
    *("negative", "absolute", "sign", "sqrt", "cbrt"),
    *_ROUNDING,
    *_EXPONENTIAL,
    *_CIRCULAR,
    *_HYPERBOLIC,
    *_TESTS,
)
BINARY = (*_ARITHMETIC, *_DIVISION, *_EXTREMA, *("arctan2", "hypot", "copysign"), *_COMPARISONS)
LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")

OPERATIONS: dict[str, np.ufunc] = {name: getattr(np, name) for name in (*UNARY, *BINARY, *LOGICAL)}
CONDITIONS = frozenset((*_TESTS, *_COMPARISONS, *LOGICAL))
#: Operations that jump at some of their arguments, unless others in the same equation undo it.
JUMPING = frozenset((*_ROUNDING, *_DIVISION, "sign", "copysign", "where"))
COMMUTATIVE = frozenset(("add", "multiply", "equal", "not_equal", *LOGICAL))


def fold(op: str, *values: float) -> float | np.bool_:
    """Compute an operation on numbers as NumPy does for float64, silently.

    >>> fold("divide", 1.0, 0.0)
    inf
    """
    with np.errstate(all="ignore"):
        result = OPERATIONS[op](*values)
    return result if isinstance(result, np.bool_) else float(result)
