"""Kernels as text: what the writers of JavaScript and of C have in common."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flexure.solvers.native.language.language import any_lane, lane, local, where, with_lane
from flexure.solvers.native.language.reading import UNKNOWN, Reading


class KernelText(Reading):
    """Writes one kernel for one choice of static parameters, in a language with one lane.

    Attributes
    ----------
    same : dict
        Functions that return one of their arguments, and which one.
    """

    same: ClassVar[dict[Any, int]] = {any_lane: 0, lane: 0, with_lane: 2}

    def _together(self, nodes: list[ast.expr], targets: list[ast.expr]) -> list[Any]:
        """Keep values in variables where storing one of them may change the next."""
        read = {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        values = super()._together(nodes, targets)
        if len(names) == len(targets) and not names & read:
            return values
        return [self._kept(value) for value in values]

    def _kept(self, value: Any) -> Any:
        """Keep a value in a variable of its own."""
        raise NotImplementedError

    def _range(self, bounds: Sequence[ast.expr]) -> tuple[str, Any, int]:
        """Return where a loop begins and ends, and its stride, which has to be known."""
        stride = self._known(bounds[2]) if len(bounds) == 3 else 1
        if stride is UNKNOWN:
            self._refuse(bounds[2])
        first = self._value(bounds[0]).text if len(bounds) > 1 else "0"
        return first, self._value(bounds[min(len(bounds) - 1, 1)]), stride

    def _Name(self, node: ast.Name) -> Any:  # noqa: N802, names of the syntax
        if node.id not in self.locals:
            self._refuse(node)
        return self.locals[node.id]

    def _Call(self, node: ast.Call) -> Any:  # noqa: N802
        target = self._known(node.func)
        if node.keywords:
            self._refuse(node)
        if target is UNKNOWN:
            return self._equation(self._value(node.func), node.args)
        if target is where:
            return self._choice(node.args)
        if target is local:
            return self._local(self._static(node.args[0]))
        if target in self.same:
            return self._value(node.args[self.same[target]])
        found = self._computed(target, node.args)
        if found is not None:
            return found
        if not inspect.isfunction(target):
            self._refuse(node)
        return self._kernel(target, node)

    def _equation(self, function: Any, nodes: list[ast.expr]) -> Any:
        """Call a function ``f(t, x, env, out)``, or a step function ``f(run)``."""
        raise NotImplementedError

    def _local(self, count: int) -> Any:
        """Make an array."""
        raise NotImplementedError

    def _computed(self, target: Any, nodes: list[ast.expr]) -> Any:
        """Call a function that the language has, or return None."""
        raise NotImplementedError

    def _kernel(self, kernel: Callable[..., Any], node: ast.Call) -> Any:
        """Call another kernel, translated for the static values it is called with."""
        raise NotImplementedError


def count_assignments(definition: ast.AST) -> Counter[str]:
    """Count the assignments to each local name."""
    return Counter(
        each.id
        for each in ast.walk(definition)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )


def increment(name: str, stride: int) -> str:
    """Write the statement that moves a counter on."""
    return {1: f"{name}++", -1: f"{name}--"}.get(stride, f"{name} += {stride}")
