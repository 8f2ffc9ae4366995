"""Reading of a kernel: its analysis before it is written in a target language.

Here is what all targets have in common: what is known while translating, which branches and rounds
are left by it, and which values of a call become part of the kernel that is called. A target
derives from `Reading` and says how what remains is written.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any

from flexure.solvers.native.language.language import local, where

_SHORT = 16  # rounds
_BUILTINS: dict[str, Any] = {
    "abs": abs,
    "float": float,
    "int": int,
    "len": len,
    "range": range,
    "max": max,
    "True": True,
    "False": False,
}

_CALLED = ("len", "range", "abs", "max")  # in expressions that are known while translating

#: In place of what is not known while translating.
UNKNOWN = object()


class KernelError(Exception):
    """A kernel contains something that cannot be translated; a mistake in this package."""


class NotKnown(Exception):  # noqa: N818, a signal and not an error
    """An expression is not known while translating."""


class Named:
    """Base of values that represent a function of the module while translating."""


@dataclass
class KernelModule:
    """Kernels that are translated together, with those that they call."""

    # Text of each function by its name.
    functions: dict[str, str] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self._meanings: dict[str, tuple[Any, dict[str, Any]]] = {}

    def add(
        self,
        kernel: Callable[..., Any],
        name: str,
        statics: Mapping[str, Any] | None,
        write: Callable[[dict[str, Any]], str],
    ) -> None:
        """Add a kernel for values of its static parameters, unless it is there."""
        meaning = kernel, dict(statics or {})
        if self._meanings.setdefault(name, meaning) != meaning:
            raise KernelError(f"'{name}' names two kernels")
        if name not in self.functions:
            self.functions[name] = ""  # it may be reached again before it is complete
            self.functions[name] = write(dict(statics or {}))


class Reading:
    """Reads one kernel for one choice of static parameters."""

    def __init__(self, kernel: Callable[..., Any], statics: dict[str, Any]) -> None:
        self.kernel = kernel
        self.statics = statics
        # What names mean where the kernel is written.
        self.scope: dict[str, Any] = kernel.__globals__
        self.locals: dict[str, Any] = {}  # what the target knows of the local names so far

    def _refuse(self, node: ast.AST) -> Any:
        line = getattr(node, "lineno", 0)
        raise KernelError(f"{self.kernel.__name__}, line {line}: {ast.unparse(node)}")

    # What is known -------------------------------------------------------------------------

    def _known(self, node: ast.expr) -> Any:
        """Return what an expression is while translating, or that it is unknown."""
        try:
            return self._static(node)
        except NotKnown:
            if isinstance(node, ast.BoolOp):  # its first part may decide
                decisive = isinstance(node.op, ast.Or)
                return decisive if self._known(node.values[0]) is decisive else UNKNOWN
            return UNKNOWN

    def _static(self, node: ast.expr) -> Any:
        """Compute an expression of static values."""
        if node.__class__ is ast.Constant:
            return node.value
        names, is_plain = _read(node)
        statics, scope = self.statics, self.scope
        for name in names:
            if name in self.statics:
                if isinstance(self.statics[name], Named):
                    raise NotKnown
            elif name in self.locals:
                statics = {**statics, name: self._stand_in(name)}
            elif not (name in scope or name in _BUILTINS):
                raise NotKnown
        if not is_plain:
            raise NotKnown
        return eval(_code(node), scope, statics)

    def _stand_in(self, name: str) -> Any:
        """Return something in place of a local name, of which a part may be known."""
        raise NotKnown

    def _value(self, node: ast.expr) -> Any:
        """Translate an expression."""
        known = self._known(node)
        if isinstance(known, (bool, int, float)):
            return self._constant(known)
        return getattr(self, f"_{type(node).__name__}", self._refuse)(node)

    def _constant(self, known: float) -> Any:
        """Write a number, or a truth value."""
        raise NotImplementedError

    def _IfExp(self, node: ast.IfExp) -> Any:  # noqa: N802, names of the syntax
        known = self._known(node.test)
        if known is not UNKNOWN:
            return self._value(node.body if known else node.orelse)
        return self._choice([node.test, node.body, node.orelse])

    def _choice(self, nodes: list[ast.expr]) -> Any:
        """Write a choice between two values by a condition."""
        raise NotImplementedError

    # Statements ----------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            getattr(self, f"_{type(statement).__name__}", self._refuse)(statement)

    def _Pass(self, node: ast.Pass) -> None:  # noqa: N802
        pass

    def _Assign(self, node: ast.Assign) -> None:  # noqa: N802
        for target in node.targets:
            if isinstance(target, ast.Tuple):
                if not isinstance(node.value, ast.Tuple):
                    self._refuse(node)
                assert isinstance(node.value, ast.Tuple)
                values = self._together(node.value.elts, target.elts)
                for each, value in zip(target.elts, values, strict=True):
                    self._store(each, value)
            else:
                self._store(target, self._value(node.value))

    def _together(self, nodes: list[ast.expr], targets: list[ast.expr]) -> list[Any]:
        """Compute values before the first of them is stored."""
        return [self._value(each) for each in nodes]

    def _store(self, target: ast.expr, value: Any) -> None:
        """Write an assignment."""
        raise NotImplementedError

    def _If(self, node: ast.If) -> None:  # noqa: N802
        known = self._known(node.test)
        if known is UNKNOWN:
            self._fork(node)
        else:
            self._block(node.body if known else node.orelse)

    def _fork(self, node: ast.If) -> None:
        """Write both branches."""
        raise NotImplementedError

    def _For(self, node: ast.For) -> None:  # noqa: N802
        call, counter = node.iter, node.target
        if not isinstance(call, ast.Call) or node.orelse or call.keywords:
            self._refuse(node)
        assert isinstance(call, ast.Call)
        assert isinstance(counter, ast.Name)
        if not self._is_written_out(node):
            self._count(node, counter, call.args)
            return
        rounds = range(*[self._static(argument) for argument in call.args])
        if rounds and _jumps(node):
            self._refuse(node)
        for value in rounds:
            self.statics[counter.id] = value
            self._round(node.body)
        self.statics.pop(counter.id, None)

    def _round(self, statements: list[ast.stmt]) -> None:
        """Write one round of a loop that is written out."""
        self._block(statements)

    def _count(self, node: ast.For, counter: ast.Name, bounds: list[ast.expr]) -> None:
        """Write a loop that counts."""
        raise NotImplementedError

    def _is_written_out(self, loop: ast.For) -> bool:
        """Return whether a loop is of known length, and meant to be written out or short."""
        assert isinstance(loop.iter, ast.Call)
        assert isinstance(loop.iter.func, ast.Name)
        bounds = [self._known(argument) for argument in loop.iter.args]
        if UNKNOWN in bounds:
            return False
        if loop.iter.func.id == "unrolled":
            return True
        return len(range(*bounds)) <= _SHORT and not _jumps(loop)

    # Calls ---------------------------------------------------------------------------------

    def _Call(self, node: ast.Call) -> Any:  # noqa: N802
        target = self._known(node.func)
        if node.keywords:
            self._refuse(node)
        if target is UNKNOWN:
            return self._equation(self._value(node.func), node)
        if target is where:
            return self._choice(node.args)
        if target is local:
            return self._local(self._static(node.args[0]))
        found = self._computed(target, node.args)
        if found is not None:
            return found
        if not inspect.isfunction(target):
            self._refuse(node)
        return self._kernel(target, node)

    def _equation(self, function: Any, node: ast.Call) -> Any:
        """Call a function ``f(t, x, env, out)``, or a step function ``f(run)``."""
        raise NotImplementedError

    def _local(self, count: int) -> Any:
        """Make an array."""
        raise NotImplementedError

    def _computed(self, target: Any, nodes: list[ast.expr]) -> Any:
        """Call a function that the target language has, or return None."""
        raise NotImplementedError

    def _kernel(self, kernel: Callable[..., Any], node: ast.Call) -> Any:
        """Call another kernel, translated for the static values it is called with."""
        raise NotImplementedError

    def _arguments(
        self, kernel: Callable[..., Any], node: ast.Call
    ) -> tuple[dict[str, Any], dict[str, ast.expr]]:
        """Return what of a call is known while translating, and what is handed over."""
        annotations = kernel.__annotations__
        statics: dict[str, Any] = {}
        others: dict[str, ast.expr] = {}
        for name, argument in zip(parameters_of(kernel), node.args, strict=True):
            known = self.statics.get(argument.id) if isinstance(argument, ast.Name) else None
            if isinstance(known, Named):
                statics[name] = known
            elif annotations[name] == "Static" or known is not None:
                statics[name] = self._static(argument)
            else:
                others[name] = argument
        return statics, others


@cache
def definition_of(kernel: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax of a kernel, which is translated many times over."""
    module = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    _make_plain(definition)
    return definition


def parameters_of(kernel: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a kernel."""
    return [each.arg for each in definition_of(kernel).args.args]


def _make_plain(node: ast.AST) -> None:
    """Write ``a += b`` as ``a = a + b`` among the statements inside of another."""
    for name in ("body", "orelse"):
        statements = getattr(node, name, None)
        if not isinstance(statements, list):  # of a conditional expression
            continue
        for k, statement in enumerate(statements):
            if isinstance(statement, ast.AugAssign):
                statements[k] = _plain(statement)
            else:
                _make_plain(statement)


def _plain(node: ast.AugAssign) -> ast.Assign:
    """Write one statement."""
    present = copy(node.target)
    present.ctx = ast.Load()
    total = ast.copy_location(ast.BinOp(present, node.op, node.value), node)
    return ast.copy_location(ast.Assign([node.target], total), node)


@cache
def _read(node: ast.AST) -> tuple[tuple[str, ...], bool]:
    """Return the names in a part of an expression, and whether nothing is called but Python's."""
    names: dict[str, None] = {}
    is_plain = True
    if isinstance(node, ast.Name):
        names[node.id] = None
    elif isinstance(node, ast.Call):
        function = node.func
        is_plain = isinstance(function, ast.Name) and function.id in _CALLED
    for child in ast.iter_child_nodes(node):
        inside, is_plain_inside = _read(child)
        names |= dict.fromkeys(inside)
        is_plain = is_plain and is_plain_inside
    return tuple(names), is_plain


@cache
def _code(node: ast.expr) -> CodeType:
    """Return the code of an expression."""
    return compile(ast.Expression(node), "<static>", "eval")


@cache
def _jumps(loop: ast.For) -> bool:
    """Return whether a loop contains what a loop that is written out cannot do."""
    return any(isinstance(each, (ast.Break, ast.Continue)) for each in ast.walk(loop))
