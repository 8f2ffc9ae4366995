"""Derivatives as straight-line Python: one statement per operation, no calls between blocks.

The text is made from a trace. Statements that depend on neither time nor state run once per
binding; the rest is a function of ``(t, x)``. Arithmetic is Python's, which for floats is that of
NumPy; other functions are NumPy's own, so that the results are those of the interpreted equations,
apart from sums that NumPy adds in another order. Where Python would raise (a division by zero, the
root of a negative number), the caller is to ask the interpreted equations instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expression import reachable
from flexure.diagrams.scalars.vocabulary import OPERATIONS
from flexure.diagrams.store import Store
from flexure.diagrams.values import FloatArray
from flexure.solvers.trace import STATE, TIME, Key, number_behind

#: Gives the derivatives at a time and state.
Function: TypeAlias = Callable[[float, FloatArray], FloatArray]
#: What a bound function may raise where the interpreted equations give NaN or infinity.
ARITHMETIC_ERRORS = (ZeroDivisionError, ValueError, OverflowError)

_PATTERNS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "negative": "-{}",
    "absolute": "abs({})",
    "sqrt": "sqrt({})",
    "maximum": "{0} if {0} >= {1} or {0} != {0} else {1}",
    "minimum": "{0} if {0} <= {1} or {0} != {0} else {1}",
    "where": "{1} if {0} else {2}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "equal": "{} == {}",
    "not_equal": "{} != {}",
    "logical_and": "{} and {}",
    "logical_or": "{} or {}",
    "logical_xor": "{} != {}",
    "logical_not": "not {}",
    "isnan": "{0} != {0}",
    "isfinite": "-inf < {} < inf",
    "isinf": "abs({}) == inf",
}


class StraightLine:
    """Compiled derivatives of one root system, or other expressions of its trace.

    Parameters
    ----------
    expressions : list
        Expressions or numbers.
    num_states : int, optional
        Number of states of the system; that of the expressions when omitted.

    Attributes
    ----------
    source : str
        The text of the program.
    operations : int
        Number of its statements.
    """

    def __init__(self, expressions: list[Any], num_states: int | None = None) -> None:
        num_states = len(expressions) if num_states is None else num_states
        nodes = reachable(e for e in expressions if isinstance(e, scalars.Symbol))
        names: dict[int, str] = {}
        moving: set[int] = set()
        self._keys: list[Key] = []
        once: list[str] = []
        always: list[str] = []
        for node in nodes:
            name = names[node.index] = f"v{node.index}"
            if node.op == "constant":
                names[node.index] = f"({node.value!r})"
            elif node.op == "input":
                key = cast("Key", node.key)
                (what, _, _), component = key
                if what in (TIME, STATE):
                    moving.add(node.index)
                    names[node.index] = "t" if what == TIME else f"x{component}"
                else:
                    names[node.index] = f"c{len(self._keys)}"
                    self._keys.append(key)
            else:
                statement = f"{name} = {_expression(node, names)}"
                if any(arg.index in moving for arg in node.args):
                    moving.add(node.index)
                    always.append(statement)
                else:
                    once.append(statement)
        results = [
            names[e.index] if isinstance(e, scalars.Symbol) else repr(float(e)) for e in expressions
        ]
        self.operations = len(once) + len(always)
        self.source = _program(len(self._keys), num_states, once, always, results)
        scope: dict[str, Any] = {
            f"np_{name}": operation for name, operation in OPERATIONS.items()
        } | {"inf": np.inf, "nan": np.nan, "array": np.array}
        exec(compile("from math import sqrt\n" + self.source, "<straight line>", "exec"), scope)
        self._bind: Callable[[list[float]], Function] = scope["bind"]

    def bind(self, store: Store) -> Function:
        """Return the expressions as a function, with the present parameters and inputs."""
        return self._bind([number_behind(store, key) for key in self._keys])


def _expression(node: scalars.Symbol, names: dict[int, str]) -> str:
    """Write one operation on named arguments."""
    arguments = [names[arg.index] for arg in node.args]
    pattern = _PATTERNS.get(node.op)
    if pattern is not None:
        return pattern.format(*arguments)
    return f"float(np_{node.op}({', '.join(arguments)}))"


def _program(
    num_constants: int, num_states: int, once: list[str], always: list[str], results: list[str]
) -> str:
    """Put the statements together."""
    lines = ["def bind(constants):"]
    if num_constants:
        lines.append(f"    [{', '.join(f'c{k}' for k in range(num_constants))}] = constants")
    lines += [f"    {statement}" for statement in once]
    lines.append("    def derivatives(t, x):")
    lines.append(f"        [{', '.join(f'x{k}' for k in range(num_states))}] = x.tolist()")
    lines += [f"        {statement}" for statement in always]
    lines.append(f"        return array([{', '.join(results)}])")
    lines.append("    return derivatives")
    return "\n".join(lines) + "\n"
