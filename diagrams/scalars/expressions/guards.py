"""Refusing values for which an equation has no meaning, in every reading alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.scalars.expressions.functions import is_symbolic


def refuse_where(condition: Any, value: Any, make_error: Callable[[], FlexureError]) -> Any:
    """Return a value unless a condition holds, for which the equation has no meaning.

    Numbers are refused with an error. Symbols cannot be; there the value becomes NaN where the
    condition holds, and who computes with compiled equations and finds NaN interprets them to learn
    the reason. ``make_error`` is called only for numbers that are refused.

    >>> float(refuse_where(False, 2.0, lambda: FlexureError("Cannot divide")))
    2.0
    """
    if is_symbolic(condition):
        return np.where(condition, np.nan, value)
    if condition:
        raise make_error()
    return value


def skip_where(condition: Any, value: Any, calc: Callable[[], Any]) -> Any:
    """Return a value where a condition holds, and elsewhere what a function computes.

    For numbers the function is called only if the condition does not hold. Symbols record both;
    loops of native code skip the rest where all results of a block are so chosen.

    >>> skip_where(True, 0.0, lambda: 1.0 / 0.0)
    0.0
    """
    if is_symbolic(condition):
        return np.where(condition, value, calc())
    return value if condition else calc()
