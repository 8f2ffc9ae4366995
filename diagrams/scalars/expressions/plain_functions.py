"""NumPy functions that move entries, or only add and multiply them.

They run NumPy's own code on plain object arrays, whose entries know ``+`` and ``*``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flexure.diagrams.scalars.expressions import ufuncs
from flexure.diagrams.scalars.expressions.array import SymbolArray, implements, wrap
from flexure.diagrams.scalars.expressions.expression import Symbol
from flexure.diagrams.scalars.expressions.ufuncs import objects

_JOINING = (
    np.append,
    np.block,
    np.column_stack,
    np.concatenate,
    np.dstack,
    np.hstack,
    np.insert,
    np.stack,
    np.vstack,
)
_SPLITTING = (
    np.array_split,
    np.delete,
    np.diagonal,
    np.dsplit,
    np.hsplit,
    np.split,
    np.take,
    np.vsplit,
)
_RESHAPING = (
    np.atleast_1d,
    np.atleast_2d,
    np.atleast_3d,
    np.expand_dims,
    np.ravel,
    np.reshape,
    np.squeeze,
)
_TURNING = (
    np.flip,
    np.fliplr,
    np.flipud,
    np.matrix_transpose,
    np.moveaxis,
    np.permute_dims,
    np.roll,
    np.rot90,
    np.swapaxes,
    np.transpose,
)
_REPEATING = (
    np.broadcast_arrays,
    np.broadcast_to,
    np.copy,
    np.diag,
    np.diagflat,
    np.repeat,
    np.tile,
    np.tril,
    np.triu,
)
_ASKING = (np.ndim, np.shape, np.size)
_MULTIPLYING: tuple[Callable[..., Any], ...] = (
    np.dot,
    np.inner,
    np.kron,
    np.linalg.multi_dot,
    np.outer,
    np.tensordot,
    np.trace,
    np.vdot,
)


def _on_plain_objects(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run NumPy's own code on arrays that it does not recognize as symbolic."""

    def replacement(*args: Any, **options: Any) -> Any:
        return _rewrap(function(*_plain(args), **_plain(options)))

    return replacement


def _product_on_plain_objects(function: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same for a function that may add nothing at all, which gives the integer 0."""

    def replacement(*args: Any, **options: Any) -> Any:
        return wrap(objects(function(*_plain(args), **_plain(options))))

    return replacement


def _plain(argument: Any) -> Any:
    """Replace symbols in an argument by plain object arrays."""
    if isinstance(argument, (Symbol, SymbolArray)):
        return objects(argument)
    if isinstance(argument, (list, tuple)):
        parts = map(_plain, argument)
        return list(parts) if isinstance(argument, list) else tuple(parts)
    if isinstance(argument, dict):
        return {key: _plain(value) for key, value in argument.items()}
    return argument


def _rewrap(result: Any) -> Any:
    """Undo `_plain`, also in the lists that splitting gives."""
    if isinstance(result, (list, tuple)):
        return type(result)(map(_rewrap, result))
    if isinstance(result, np.ndarray):
        return wrap(ufuncs.tidy(result)) if result.dtype == object else result
    return wrap(result) if isinstance(result, (Symbol, float)) else result


_MOVING: tuple[Callable[..., Any], ...] = (
    *_JOINING,
    *_SPLITTING,
    *_RESHAPING,
    *_TURNING,
    *_REPEATING,
    *_ASKING,
)
for _moving in _MOVING:
    implements(_moving)(_on_plain_objects(_moving))
for _product in _MULTIPLYING:
    implements(_product)(_product_on_plain_objects(_product))
