"""The reference reading of expressions: their values, and what they depend on.

Every operation is computed by the NumPy ufunc of its name on float64 scalars, in the order in which
the operations were recorded, so the result has the same bits as running the equation on floats.
Where NumPy itself has no fixed order or more than one rounding, bits can differ:

- ``np.sum`` and ``np.mean`` of 8 values or more along a contiguous axis (NumPy adds pairwise), and
  the sign of a sum of negative zeros;
- ``@``, ``np.dot``, ``np.einsum``, ``np.linalg`` and what is built on them (BLAS and LAPACK);
- ``**`` on NumPy scalars and ``np.float_power`` (not the last bit of ``**`` on arrays);
- ``np.interp`` and ``np.sinc`` (compiled or changed between versions of NumPy);
- which of two zeros of different sign ``np.maximum`` and its like choose, and the sign of NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from flexure.diagrams.errors import UnknownNameError
from flexure.diagrams.scalars.expression import Symbol, is_boolean, reachable
from flexure.diagrams.scalars.ufuncs import objects
from flexure.diagrams.scalars.vocabulary import OPERATIONS

_COMPUTE: dict[str, Callable[..., Any]] = {
    **OPERATIONS,
    "where": lambda condition, a, b: a if condition else b,
}


def evaluate(outputs: Any, values: Mapping[Any, float]) -> Any:
    """Compute expressions from the values of their inputs.

    Parameters
    ----------
    outputs : Symbol, SymbolArray or nested sequence
        Expressions of one graph; numbers among them stand for themselves.
    values : mapping
        Value of each input, by key. Keys that are not needed are ignored.

    Returns
    -------
    float or numpy.ndarray
        Values in the shape of the outputs; bools if all of them are truth values.

    Raises
    ------
    UnknownNameError
        A needed input has no value.

    Examples
    --------
    >>> from flexure.diagrams.scalars import Graph
    >>> x = Graph().input("x")
    >>> evaluate(np.where(x > 1.0, x * x, 0.0), {"x": 3.0})
    np.float64(9.0)
    """
    wanted = objects(outputs)
    known: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in reachable(_symbols_in(wanted)):
            if node.op == "input":
                known[node.index] = np.float64(_value_of(node.key, values))
            elif node.op == "constant":
                known[node.index] = np.float64(node.value)
            else:
                known[node.index] = _COMPUTE[node.op](*[known[arg.index] for arg in node.args])
    results = [known[e.index] if isinstance(e, Symbol) else e for e in wanted.flat]
    kind = bool if results and all(map(is_boolean, results)) else float
    return np.array(results, dtype=kind).reshape(wanted.shape)[()]


def sources(value: Any) -> set[Hashable]:
    """Return the keys of the inputs that a value is computed from.

    Parameters
    ----------
    value : Symbol, SymbolArray or nested sequence
        Expressions of one graph; numbers depend on nothing.

    Returns
    -------
    set
        Keys of inputs. Both branches and the condition of a ``where`` count.

    Examples
    --------
    >>> from flexure.diagrams.scalars import Graph, symbols
    >>> x = symbols(Graph(), "x", 3)
    >>> sorted(sources(x[0] * x[2] + 1.0))
    [('x', 0), ('x', 2)]
    """
    return {node.key for node in reachable(_symbols_in(value)) if node.op == "input"}


def _symbols_in(value: Any) -> list[Symbol]:
    """List the symbols in a value; nested sequences may be ragged."""
    if isinstance(value, (list, tuple)):
        return [symbol for part in value for symbol in _symbols_in(part)]
    return [entry for entry in objects(value).flat if isinstance(entry, Symbol)]


def _value_of(key: Hashable, values: Mapping[Any, float]) -> float:
    """Look up an input."""
    try:
        return values[key]
    except KeyError:
        raise UnknownNameError(
            f"Cannot evaluate an expression of the input {key!r}",
            expected="a value for every input it depends on",
            found=f"values for {len(values)} other inputs",
            remedy="Ask sources(expression) for the keys that are needed",
        ) from None
