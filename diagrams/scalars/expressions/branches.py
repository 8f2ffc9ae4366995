"""Branches: equations that decide by ``if`` run on symbols once for each way through them.

A calculation that asks whether a condition holds (``if``, ``while``, ``and``, ``not``, ``max``,
``sorted`` ...) is run again and again, until every way through its decisions has been gone. The
results of all paths are merged by ``where`` on the conditions that separate them, so that the
expressions are equivalent to the equation. Only what cannot end is given up: a loop that asks ever
new questions, and decisions that multiply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.scalars.expressions import ufuncs
from flexure.diagrams.scalars.expressions.array import wrap
from flexure.diagrams.scalars.expressions.expression import Condition, Graph, Symbol, as_condition
from flexure.diagrams.scalars.expressions.refusal import too_many_ways

#: Ways through one calculation that are followed.
MOST_WAYS = 32

_SCALARS = (Symbol, float, int, np.number, np.bool_)


def explore(graph: Graph, run: Callable[[], Any]) -> Any:
    """Run a calculation on symbols along all of its branches and merge the results.

    The calculation is a pure function. It may explore others in turn, whose decisions are their
    own. Where branches differ, the numbers, arrays, lists, tuples or dictionaries that are returned
    hold a ``where`` for each number that is not the same.

    Raises TraceError when there are more than `MOST_WAYS` ways through the calculation, or when
    what they give differs in more than its numbers. Errors of the calculation on any path pass
    unchanged.

    >>> from flexure.diagrams.scalars import evaluate
    >>> graph = Graph()
    >>> x = graph.input("x")
    >>> size = explore(graph, lambda: x if x > 0.0 else -x)
    >>> [float(evaluate(size, {"x": value})) for value in (3.0, -2.0)]
    [3.0, 2.0]
    """
    branches, outer = Branches(graph, run), graph.branches
    graph.branches = branches
    try:
        return branches.result()
    finally:
        graph.branches = outer


class Branches:
    """The decisions of one calculation while it is explored."""

    def __init__(self, graph: Graph, run: Callable[[], Any]) -> None:
        self._graph = graph
        self._run = run
        self._ways = 1
        self._answers: dict[int, bool] = {}
        self._refusal: TraceError | None = None

    def result(self) -> Any:
        """Return what the calculation gives on all ways together."""
        return self._result_after({})

    def _result_after(self, decided: dict[int, bool]) -> Any:
        """Return what it gives on the ways that begin with the decisions given."""
        # One run answers every further question by yes. Going back from its last question to its
        # first, the other answers are followed up.
        answers = self._answers = dict(decided)
        try:
            value = self._run()
        except Exception:
            raise
        except BaseException as error:
            self._survive(error)
        if self._refusal is not None:
            raise self._refusal  # although the calculation took no notice of it
        while len(answers) > len(decided):
            index, _ = answers.popitem()
            otherwise = self._result_after({**answers, index: False})
            value = _merge(self._graph.nodes[index], value, otherwise)
        return value

    def _survive(self, error: BaseException) -> NoReturn:
        """Find out whether a path ends the program, or the user does by Ctrl-C."""
        # A calculation does it again. It may do so at run time, but not while its ways are
        # explored.
        if self._answers:
            try:
                self._run()
            except BaseException as again:
                raise TraceError(
                    "Cannot follow a branch that ends the program",
                    expected="branches that return a value",
                    found=type(again).__name__,
                ) from again
        raise error

    def decide(self, value: Symbol) -> bool:
        """Answer whether a symbol is true, on the way that is being followed.

        A condition is answered alike whenever it is asked on one way, and so is its negation.
        """
        condition = as_condition(value)
        if not isinstance(condition, Condition):
            return bool(condition)
        if condition.op == "logical_not":
            return not self.decide(condition.args[0])
        if condition.op == "not_equal":
            return not self.decide(self._graph.record("equal", *condition.args))
        if condition.index not in self._answers:
            if self._ways == MOST_WAYS:
                self.refuse(too_many_ways(MOST_WAYS, condition))
            self._ways += 1
            self._answers[condition.index] = True
        return self._answers[condition.index]

    def refuse(self, error: TraceError) -> NoReturn:
        """Raise an error that ends the exploration even if the calculation catches it."""
        self._refusal = error
        raise error


def _merge(condition: Symbol, a: Any, b: Any) -> Any:
    """Choose between what two branches give, number by number."""
    if a is b:
        return a
    if isinstance(a, _SCALARS) and isinstance(b, _SCALARS):
        return wrap(ufuncs.merge(condition, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape:
        merged = wrap(ufuncs.merge(condition, a, b))
        merged.setflags(write=False)
        return merged
    if type(a) is type(b):
        if isinstance(a, (list, tuple)) and len(a) == len(b):
            parts = [_merge(condition, x, y) for x, y in zip(a, b, strict=True)]
            return a._make(parts) if hasattr(a, "_make") else type(a)(parts)
        if isinstance(a, dict) and a.keys() == b.keys():
            return {key: _merge(condition, a[key], b[key]) for key in a}
    raise TraceError(
        "Cannot merge the results of the branches of a calculation",
        expected="numbers, or arrays, lists, tuples and dictionaries of the same form",
        found=f"{a!r:.100} and {b!r:.100}",
        remedy="Let all branches return the same kind of value",
    )
