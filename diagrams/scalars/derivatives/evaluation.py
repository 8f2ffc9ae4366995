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

Lanes are many evaluations at once: where arrays take the place of floats, one call of a ufunc does
its operation for all of them. No lane depends on what is in another. Compared with one evaluation
for each lane, on x86-64 with AVX-512, with AVX2 and with neither, over scattered and special
numbers, all operations of the vocabulary gave the same bits but for two:

- ``fmax`` and ``fmin`` can choose the other one of two zeros of different sign, depending on the
  position of the lane;
- ``power`` with an exponent of 2, 0.5 or -1 among other exponents. Such an exponent alone means a
  square, a square root or a reciprocal, which can differ in the last bit, in the sign of the zero
  that is the root of -0.0, and in the root of -inf, which is NaN.

That holds for contiguous arrays, which lanes are copied into: along others, NumPy computes most
transcendental functions by other code, with other last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from flexure.diagrams.scalars.expressions.expression import (
    Symbol,
    is_boolean,
    reachable,
    symbols_among,
)
from flexure.diagrams.scalars.expressions.functions import array, where
from flexure.diagrams.scalars.expressions.ufuncs import objects
from flexure.diagrams.scalars.expressions.vocabulary import OPERATIONS


def _choose(condition: Any, a: Any, b: Any) -> Any:
    """Do what ``np.where`` does, but leave scalars what they are."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


_COMPUTE: dict[str, Callable[..., Any]] = {**OPERATIONS, "where": _choose}


def evaluate(outputs: Any, values: Mapping[Any, float | npt.NDArray[np.float64]]) -> Any:
    """Compute expressions of one graph, or numbers, from the values of their inputs by key.

    A value is a number, or an array with an entry for each lane. All arrays have the same shape,
    also those of keys that are not needed. The result has the shape of the outputs, then that of
    the lanes, and holds bools if all outputs are truth values. What is the same in all lanes is
    repeated.

    Raises UnknownNameError where a needed input has no value, ValueRefusedError where shapes
    differ.

    >>> from flexure.diagrams.scalars import Graph
    >>> x = Graph().input("x")
    >>> evaluate(np.where(x > 1.0, x * x, 0.0), {"x": 3.0})
    np.float64(9.0)
    >>> evaluate([x + 1.0, 5.0], {"x": np.array([0.5, 1.5, 2.5])})
    array([[1.5, 2.5, 3.5],
           [5. , 5. , 5. ]])
    """
    wanted = objects(outputs)
    lanes = _shape_of_lanes(values)
    truths = wanted.size > 0 and all(map(is_boolean, wanted.flat))
    results = np.empty((wanted.size, *lanes), dtype=bool if truths else float)
    rows: dict[int, list[int]] = {}
    for row, entry in enumerate(wanted.flat):
        if isinstance(entry, Symbol):
            rows.setdefault(entry.index, []).append(row)
        else:
            results[row] = entry
    nodes = reachable(wanted.flat)
    finished_after = _finished_after(nodes) if lanes else repeat(())
    known: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node, finished in zip(nodes, finished_after, strict=False):
            if node.op == "input":
                value = _value_of(node.key, values)
                value = np.asarray(value, dtype=float, order="C") if lanes else np.float64(value)
            elif node.op == "constant":
                value = np.float64(node.value)
            else:
                value = _COMPUTE[node.op](*[known[arg.index] for arg in node.args])
            known[node.index] = value
            if node.index in rows:
                results[rows[node.index]] = value
            for index in finished:
                del known[index]
    return results.reshape(wanted.shape + lanes)[()]


def substitute(outputs: Any, values: Mapping[Any, Any]) -> Any:
    """Substitute other expressions, or numbers, for the inputs of expressions of one graph.

    ``values`` has what takes the place of each input by key: a number, or an expression of another
    graph. UnknownNameError is raised where a needed input has none. The result has the shape of the
    outputs, and holds numbers if all values are, else symbols.

    >>> from flexure.diagrams.scalars import Graph
    >>> x, y = Graph().input("x"), Graph().input("y")
    >>> evaluate(substitute([x * x, x + 1.0], {"x": 2.0 * y}), {"y": 3.0})
    array([36.,  7.])
    """
    wanted = objects(outputs)
    known: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in reachable(wanted.flat):
            if node.op == "input":
                known[node.index] = _value_of(node.key, values)
            elif node.op == "constant":
                known[node.index] = node.value
            elif node.op == "where":
                known[node.index] = where(*(known[arg.index] for arg in node.args))
            else:
                known[node.index] = OPERATIONS[node.op](*(known[a.index] for a in node.args))
    found = [known[each.index] if isinstance(each, Symbol) else each for each in wanted.flat]
    return array(found).reshape(wanted.shape)


def translated(
    outputs: Iterable[Any],
    rules: Mapping[str, Callable[..., Any]],
    read: Callable[[Any], Any],
    number: Callable[[float], Any],
) -> list[Any]:
    """Return expressions of one graph, and numbers, in the terms of another program.

    ``rules`` gives what each operation is there, by its name, ``read`` an input by its key, and
    ``number`` a number.
    """
    outputs = list(outputs)
    known: dict[int, Any] = {}
    for node in reachable(outputs):
        if node.op == "input":
            known[node.index] = read(node.key)
        elif node.op == "constant":
            known[node.index] = number(node.value)
        else:
            known[node.index] = rules[node.op](*[known[arg.index] for arg in node.args])
    return [
        known[output.index] if isinstance(output, Symbol) else number(float(output))
        for output in outputs
    ]


def sources(value: Any) -> set[Hashable]:
    """Return the keys of the inputs that expressions of one graph, or numbers, are computed from.

    Both branches and the condition of a ``where`` count.

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
    return symbols_among(objects(value).flat)


def _shape_of_lanes(values: Mapping[Any, Any]) -> tuple[int, ...]:
    """Return the shape of all arrays among the values."""
    shapes = {getattr(value, "shape", ()) for value in values.values()} - {()}
    if len(shapes) > 1:
        raise ValueRefusedError(
            "Cannot evaluate expressions in lanes",
            expected="arrays of one common shape beside plain numbers",
            found=f"arrays of the shapes {', '.join(map(str, sorted(shapes)))}",
        )
    return shapes.pop() if shapes else ()


def _finished_after(nodes: list[Symbol]) -> list[list[int]]:
    """List after each node whose values have been used for the last time, to free their memory."""
    last = {}
    for k, node in enumerate(nodes):
        last[node.index] = k
        for arg in node.args:
            last[arg.index] = k
    finished: list[list[int]] = [[] for _ in nodes]
    for index, k in last.items():
        finished[k].append(index)
    return finished


def _value_of(key: Hashable, values: Mapping[Any, Any]) -> Any:
    """Look up an input."""
    try:
        return values[key]
    except KeyError:
        raise UnknownNameError(
            f"Cannot evaluate an expression of the input {key!r}",
            expected="a value for every input it depends on",
            found=f"values for {len(values)} other inputs",
            remedy="Call sources(expression) for the keys that it needs",
        ) from None
