"""What NumPy's protocols cannot reach, in one spelling for floats and symbols."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError
from flexure.diagrams.scalars.expressions.array import SymbolArray, wrap
from flexure.diagrams.scalars.expressions.expression import Graph, Symbol
from flexure.diagrams.scalars.expressions.ufuncs import objects

_PLAIN = frozenset((float, int, bool, np.float64))


def is_symbolic(value: object) -> bool:
    """Return whether a value is a Symbol, a SymbolArray, or nested sequences with one inside.

    >>> is_symbolic([1.0, [Graph().input("x")]])
    True
    """
    if isinstance(value, (list, tuple)):
        return not _PLAIN.issuperset(map(type, value)) and any(map(is_symbolic, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return isinstance(value, SymbolArray) or any(map(is_symbolic, value.flat))
    return isinstance(value, Symbol)


def array(values: Any) -> Any:
    """Make an array of numbers and symbols: ``np.array`` for equations.

    Parameters
    ----------
    values : array_like
        Numbers, symbols, arrays, or nested lists and tuples of them.

    Returns
    -------
    numpy.ndarray or SymbolArray
        A new array, or a scalar if ``values`` is one. Without symbols it holds floats, or bools
        if all values are truth values.

    Raises
    ------
    ValueRefusedError
        The rows differ in shape, or a value is no real number.

    See Also
    --------
    LeafSystem : Write a block.

    Examples
    --------
    >>> array([1, 2.5])
    array([1. , 2.5])
    >>> array([0.0, Graph().input("torque")])
    SymbolArray([0.0, <#0 input 'torque'>])
    """
    symbolic = is_symbolic(values)
    try:
        made = objects(values).copy() if symbolic else np.array(values)
    except ValueError as error:
        raise ValueRefusedError(
            "Cannot make an array",
            expected="rows of equal shape",
            found=str(error),
            remedy="Pad the shorter rows, or join them with np.concatenate",
        ) from None
    if symbolic:
        return wrap(made)
    if made.dtype.kind not in "biuf":
        raise ValueRefusedError(
            "Cannot make an array",
            expected="real numbers, truth values and symbols",
            found=f"values of type {made.dtype}",
            remedy="Keep texts, None and complex numbers out of equations",
        )
    return (made if made.dtype.kind == "b" else made.astype(float, copy=False))[()]


def symbols(graph: Graph, key: Hashable, shape: int | tuple[int, ...]) -> Any:
    """Make an array of inputs with the keys ``(key, 0)``, ``(key, 1)``, ... in C order.

    Inputs that the graph already has are reused. The shape ``()`` gives one bare Symbol.

    >>> angle, rate = symbols(Graph(), "state", 2)
    >>> rate
    <#1 input ('state', 1)>
    """
    entries = np.empty(shape, dtype=object)
    for k in range(entries.size):
        entries.flat[k] = graph.input((key, k))
    return wrap(entries)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Choose between two values entry by entry; like ``np.where``, also on lists of symbols.

    A choice between scalars gives a scalar, where ``np.where`` gives an array without axes.

    >>> where(2.0 > 1.0, 5.0, 7.0)
    np.float64(5.0)
    """
    return _unboxed(np.where(_operand(condition), _operand(a), _operand(b)))


def clip(x: Any, lower: Any, upper: Any) -> Any:
    """Limit a value to an interval; like ``np.clip``, also on lists of symbols.

    >>> clip([0.5, 3.0], 0.0, 1.0)
    array([0.5, 1. ])
    """
    return np.minimum(np.maximum(_operand(x), _operand(lower)), _operand(upper))


def sinc(x: Any) -> Any:
    """Return sin(x) / x, which is 1 at zero, with accurate derivatives around zero.

    Below ``|x| = 0.3`` it is the series 1 - x²/6 + x⁴/120 - ..., exact to rounding in value and to
    1e-13 in the first two derivatives. Neither branch divides by zero. The other quotient of
    rotation vectors follows from it: (1 - cos x) / x² = sinc(x / 2)² / 2. The angle x is
    in rad; ``np.sinc`` takes it divided by π.

    >>> float(sinc(0.0)), float(sinc(np.pi / 2)) == 2 / np.pi
    (1.0, True)
    """
    x = _operand(x)
    near = np.abs(x) < 0.3
    square = np.square(np.where(near, x, 0.0))
    series = np.polyval([-1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0], square)
    far = np.where(near, 1.0, x)
    return _unboxed(np.where(near, series, np.sin(far) / far))


def with_slope_of(value: Any, through: Any) -> Any:
    """Return a value; where a graph asks for gains, with the slope of another value.

    >>> from flexure.diagrams.scalars import evaluate, jacobian
    >>> for graph in (Graph(), Graph(as_gain=True)):
    ...     u = graph.input("u")
    ...     y = with_slope_of(np.rint(u), u)
    ...     print(evaluate(y, {"u": 2.3}), evaluate(jacobian([y], ["u"]).entries, {"u": 2.3}))
    2.0 []
    2.0 [1.]
    """
    symbols_of = [each for each in np.ravel(objects(through)) if isinstance(each, Symbol)]
    if not (symbols_of and symbols_of[0].graph.as_gain):
        return value
    return _held(value) + (_operand(through) - _held(through))


def vanishing(value: Any) -> Any:
    """Return zero, with the slope of a finite value.

    >>> float(vanishing(0.3))
    0.0
    """
    return value - _held(value)


def _held(value: Any) -> Any:
    """Return a value without its slope: rounded to 2⁻²⁰⁰, which changes no digit of it."""
    return np.rint(_operand(value) * 2.0**200) * 2.0**-200


def _unboxed(result: Any) -> Any:
    """Turn an array without axes into a scalar."""
    return result[()] if isinstance(result, np.ndarray) else result


def _operand(value: Any) -> Any:
    """Turn sequences into arrays."""
    return array(value) if isinstance(value, (list, tuple)) else value


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
