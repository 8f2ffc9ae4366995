"""Tolerances by block path, spread over the components of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from flexure.diagrams.common.arguments import mapping
from flexure.diagrams.common.errors import UnknownNameError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.values import FloatArray, as_number

#: One tolerance for all states, or one per block path; the key "" stands for all others.
Tolerance: TypeAlias = float | Mapping[str, float]


def spread(name: str, wish: Tolerance | None, default: float, context: Context) -> FloatArray:
    """Return one tolerance per component of the continuous state of a root context.

    Parameters
    ----------
    name : str
        What it is called, for messages.
    wish : float, mapping or None
        What the user asked for. The path of a diagram stands for everything inside that is not
        named more closely.
    default : float
        For the components about which the wish says nothing.
    context : Context
        A root context.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    UnknownNameError
        When a path names no block, or a block without continuous state.
    ValueRefusedError
        When a tolerance is no number.
    """
    system, layout = context.system, context.store.layout
    attempt = f"Cannot set {name} of '{system.label}'"
    wishes = {} if wish is None else {"": wish}
    if isinstance(wish, Mapping):
        wishes = mapping(wish, "one number, or a mapping from paths of blocks to numbers", attempt)
    values = np.full(layout.num_states, as_number(wishes.get("", default), (), attempt))
    for path in sorted((path for path in wishes if path), key=len):
        span = context.find(system.get_system(path))._span()
        if span.start == span.stop:
            raise UnknownNameError(
                f"Cannot set {name} of '{path}'",
                expected="a block with continuous state: "
                + quoted(layout.leaves[k].path for k in layout.dynamic),
                found="a block without",
            )
        values[span] = as_number(wishes[path], (), attempt)
    return values


def are_sensible(rtol: FloatArray, atol: FloatArray, max_step: float) -> bool:
    """Tell whether tolerances are not negative, and the longest step positive.

    Integrators refuse others when they start.
    """
    return max_step > 0.0 and bool(np.all(rtol >= 0.0) and np.all(atol >= 0.0))
