"""Translation of kernels: a module of LLVM functions, and the statements of one kernel.

`flexure.solvers.native.language.language` describes the language of kernels.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from flexure.solvers.native.language.expressions import (
    BOOL,
    FLOAT,
    INT,
    PLAIN_TYPES,
    VOID,
    Expressions,
    Type,
    Value,
)
from flexure.solvers.native.language.language import is_structure, with_lane
from flexure.solvers.native.language.reading import (
    KernelError,
    KernelModule,
    definition_of,
    parameters_of,
)
from flexure.solvers.native.llvm.library import VectorFunction


@dataclass
class Module(KernelModule):
    """The text of LLVM functions for one width of lanes."""

    lanes: int = 1  # numbers that are computed at once
    # Functions that compute all lanes at once, by the name of the plain function.
    vectors: Mapping[str, VectorFunction] = field(default_factory=dict)
    # Names of the kernels in whose loops LLVM may compute several rounds at once or one behind the
    # other, which makes code several times as long; in those of all if nothing is given.
    unrolled: Container[str] | None = None
    # Functions of LLVM and of the C library that are used.
    declarations: set[str] = field(default_factory=set)
    rolled: int = 0  # how many loops LLVM is to leave as they are

    def __post_init__(self) -> None:
        super().__post_init__()
        wide = self.lanes > 1
        self.real = Type("Real", f"<{self.lanes} x double>") if wide else FLOAT
        self.mask = Type("Mask", f"<{self.lanes} x i1>") if wide else BOOL
        self.types = PLAIN_TYPES | {
            "Real": self.real,
            "Mask": self.mask,
            "Reals": Type("Reals", "ptr", self.real),
        }

    def translate(
        self,
        kernel: Callable[..., Any],
        name: str,
        statics: Mapping[str, Any] | None = None,
        *,
        public: bool = True,
    ) -> None:
        """Add a kernel, and the kernels that it calls.

        ``statics`` are the values of its `Static` parameters. A parameter of the type `Function`
        may be given as a `Value`, which names a function of the module. A function that is not
        ``public`` cannot be called from outside.
        """
        self.add(
            kernel, name, statics, lambda known: _Translator(self, kernel, known).text(name, public)
        )

    @property
    def text(self) -> str:
        """The text of the module."""
        hints = [f"!{k} = distinct !{{!{k}, !0}}" for k in range(1, self.rolled + 1)]
        if hints:
            hints.append('!0 = !{!"llvm.loop.disable_nonforced"}')
        return "\n".join([*sorted(self.declarations), *self.functions.values(), *hints])

    def type_of(self, annotation: Any, scope: Mapping[str, Any] | None = None) -> Type:
        """Return the type that an annotation names, in the scope of a kernel."""
        if annotation is None:
            return VOID
        name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        if name in self.types:
            return self.types[name]
        found = scope.get(name) if scope else annotation
        if is_structure(found):
            return Type(name, "ptr", None, found)
        raise KernelError(f"no type {annotation!r}")


@dataclass
class _LoopExits:
    """Where ``continue`` and ``break`` lead, and whether there is a ``break``."""

    again: str
    after: str
    left: bool = False


class _Translator(Expressions):
    """Translates one kernel for one choice of static parameters."""

    def __init__(self, module: Module, kernel: Callable[..., Any], statics: dict[str, Any]) -> None:
        super().__init__(module, kernel, statics)
        self.loops: list[_LoopExits] = []

    def text(self, name: str, public: bool) -> str:
        """Return the text of the function."""
        definition = definition_of(self.kernel)
        annotations = self.kernel.__annotations__
        parameters = []
        for parameter in parameters_of(self.kernel):
            if parameter in self.statics:
                continue
            kind = self.module.type_of(annotations.get(parameter, parameter), self.scope)
            alias = " noalias" if kind.element is not None else ""
            parameters.append(f"{kind.text}{alias} %{parameter}")
            place = self._reserve(parameter, kind)
            self.entry.append(f"  store {kind.text} %{parameter}, ptr {place.text}, align 8")
        self.result = self.module.type_of(annotations.get("return"), self.scope)
        self._block(definition.body)
        if self.open:
            if self.result is not VOID:
                raise KernelError(f"{self.kernel.__name__} may end without a result")
            self._end("ret void")
        linkage = "" if public else "internal "
        apart = " noinline" if self.scope.get("APART") else ""
        signature = ", ".join(parameters)
        head = f"define {linkage}{self.result.text} @{name}({signature}) #0{apart} {{"
        return "\n".join([head, "entry:", *self.entry, *self.lines, "}", ""])

    # Statements ----------------------------------------------------------------------------

    def _Expr(self, node: ast.Expr) -> None:  # noqa: N802, names of the syntax
        if not isinstance(node.value, ast.Constant):
            self._value(node.value)

    def _Assign(self, node: ast.Assign) -> None:  # noqa: N802
        target, value = node.targets[0], node.value
        if self._changes_lane(target, value):
            assert isinstance(value, ast.Call)
            self._put(self._lane_of(*value.args[:2]), self._value(value.args[2]))
        else:
            super()._Assign(node)

    def _changes_lane(self, target: ast.expr, value: ast.expr) -> bool:
        """Return whether a statement reads ``a[i] = with_lane(a[i], place, number)``."""
        if not (isinstance(value, ast.Call) and self._is_element(target)):
            return False
        changes = self._known(value.func) is with_lane
        return changes and ast.unparse(target) == ast.unparse(value.args[0])

    def _AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        """Declare a local of a type; with lanes, its first value may be a plain number."""
        assert isinstance(node.target, ast.Name)
        assert node.value is not None
        kind = self.module.type_of(ast.unparse(node.annotation), self.scope)
        value = self._converted(self._value(node.value), kind)
        if node.target.id not in self.locals:
            self._reserve(node.target.id, kind)
        self._store(node.target, value)

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            place = self.locals.get(target.id) or self._reserve(target.id, value.type)
        else:
            place = self._place(target)
            if place.type.structure is not None:
                self._refuse(target)
        self._put(place, value)

    def _put(self, place: Value, value: Value) -> None:
        value = self._converted(value, place.type)
        self._emit(f"store {value.type.text} {value.text}, ptr {place.text}, align 8")

    def _Return(self, node: ast.Return) -> None:  # noqa: N802
        if node.value is None:
            self._end("ret void")
            return
        value = self._converted(self._value(node.value), self.result)
        self._end(f"ret {value.type.text} {value.text}")

    def _fork(self, node: ast.If) -> None:
        yes, no, after = self._fresh("then"), self._fresh("else"), self._fresh("after")
        self._branch(node.test, yes, no if node.orelse else after)
        self._start_block(yes, node.body, after)
        if node.orelse:
            self._start_block(no, node.orelse, after)
        self._start(after)

    def _start_block(self, label: str, statements: list[ast.stmt], after: str) -> None:
        self._start(label)
        self._block(statements)
        if self.open:
            self._end(f"br label %{after}")

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Go to one of two blocks; ``and`` and ``or`` decide as early as they can."""
        if isinstance(test, ast.BoolOp):
            for part in test.values[:-1]:
                more = self._fresh("more")
                both = isinstance(test.op, ast.And)
                self._branch(part, more if both else yes, no if both else more)
                self._start(more)
            self._branch(test.values[-1], yes, no)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._branch(test.operand, no, yes)
        else:
            value = self._value(test)
            if value.type is not BOOL:
                self._refuse(test)
            self._end(f"br i1 {value.text}, label %{yes}, label %{no}")

    def _While(self, node: ast.While) -> None:  # noqa: N802
        if node.orelse:
            self._refuse(node)
        test, body, after = self._fresh("test"), self._fresh("body"), self._fresh("after")
        self._start(test)
        if self._known(node.test) is True:
            self._end(f"br label %{body}")
        else:
            self._branch(node.test, body, after)
        self.loops.append(_LoopExits(test, after))
        self._start_block(body, node.body, f"{test}{self._hint()}")
        loop = self.loops.pop()
        if loop.left or self._known(node.test) is not True:
            self._start(after)

    def _count(self, node: ast.For, counter: ast.Name, bounds: list[ast.expr]) -> None:
        values = [self._value(each) for each in bounds]
        first = values[0] if len(values) > 1 else Value(INT, "0")
        last = values[-1] if len(values) < 3 else values[1]
        stride = values[2] if len(values) == 3 else Value(INT, "1")
        if not stride.text.lstrip("-").isdigit():  # the order of counting has to be known
            self._refuse(node)
        position = self._reserve(f"{counter.id}.position", INT)
        self._emit(f"store i64 {first.text}, ptr {position.text}, align 8")
        test, body = self._fresh("test"), self._fresh("body")
        again, after = self._fresh("again"), self._fresh("after")
        self._start(test)
        present = self._set(INT, f"load i64, ptr {position.text}")
        order = "sgt" if stride.text.startswith("-") else "slt"
        going = self._set(BOOL, f"icmp {order} i64 {present.text}, {last.text}")
        self._end(f"br i1 {going.text}, label %{body}, label %{after}")
        self.loops.append(_LoopExits(again, after))
        self._start(body)
        self._store(counter, present)
        self._block(node.body)
        self.loops.pop()
        self._start(again)
        present = self._set(INT, f"load i64, ptr {position.text}")
        following = self._set(INT, f"add nsw i64 {present.text}, {stride.text}")
        self._emit(f"store i64 {following.text}, ptr {position.text}, align 8")
        self._end(f"br label %{test}{self._hint()}")
        self._start(after)

    def _hint(self) -> str:
        """Return what the end of a loop says where LLVM is to leave it as it is."""
        unrolled = self.module.unrolled
        if unrolled is None or self.kernel.__name__ in unrolled:
            return ""
        self.module.rolled += 1
        return f", !llvm.loop !{self.module.rolled}"

    def _Break(self, node: ast.Break) -> None:  # noqa: N802
        self.loops[-1].left = True
        self._end(f"br label %{self.loops[-1].after}")

    def _Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self._end(f"br label %{self.loops[-1].again}")
