"""Kernels as text: what the writers of JavaScript and of C have in common."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from flexure.solvers.native.language.language import (
    any_lane,
    is_structure,
    lane,
    types_of,
    with_lane,
)
from flexure.solvers.native.language.reading import UNKNOWN, Reading, definition_of

#: Types of C of elements, by the types of arrays.
ELEMENTS = {"Floats": "double", "Reals": "double", "Ints": "int64_t"}
#: Operators of both languages.
ORDER: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ARITHMETIC: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_NEUTRAL = (("+", "0"), ("-", "0"), ("*", "1"))


@dataclass(frozen=True)
class Code:
    """An expression."""

    text: str  # how it is written
    kind: Any  # its type: a name as annotations have it, or a structure
    compound: bool = False  # whether it needs parentheses as an operand
    start: str = ""  # for an array, where it begins in what the text names
    root: str = ""  # for an array or a structure, the parameter or local name that leads to it
    pointer: bool = False  # for a structure, whether the text is a pointer to it

    @property
    def operand(self) -> str:
        """The text as an operand."""
        return f"({self.text})" if self.compound or self.text[0] == "-" else self.text

    @property
    def address(self) -> str:
        """A pointer to a structure, or to the first element of an array."""
        if is_structure(self.kind):
            return self.text if self.pointer else f"&{self.text}"
        return f"&{self.text}[{self.start}]" if self.start else self.text

    def member(self, name: str) -> str:
        """Return the text of a member of a structure."""
        return f"{self.text}{'->' if self.pointer else '.'}{name}"


class KernelText(Reading):
    """Writes one kernel for one choice of static parameters, in a language with one lane.

    ``same`` are functions that return one of their arguments, and which one; ``calls`` the names of
    functions of numbers that the target has; ``order`` how comparisons are written; ``indent`` is
    what lines inside of a block begin with.
    """

    same: ClassVar[dict[Any, int]] = {any_lane: 0, lane: 0, with_lane: 2}
    calls: ClassVar[dict[Any, str]]
    order: ClassVar[dict[type, str]] = ORDER
    indent: ClassVar[str] = ""

    def __init__(self, kernel: Callable[..., Any], statics: dict[str, Any]) -> None:
        super().__init__(kernel, statics)
        self.lines: list[str] = []
        self.depth = 1
        self.ended = False  # whether nothing leads to what follows
        self.stores = count_assignments(definition_of(kernel)).copy()

    def _kind(self, annotation: Any) -> Any:
        """Return what an annotation means: a structure, or a name of a type; None for no value."""
        if annotation == "None":
            return None
        found = self.scope.get(annotation) if isinstance(annotation, str) else annotation
        return found if is_structure(found) else annotation

    # Statements ----------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append(f"{self.indent * self.depth}{text}")

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.ended:
                return
            super()._block([statement])

    def _inside(self, statements: list[ast.stmt]) -> bool:
        """Write a block in braces; tell whether it ends by a jump."""
        before = dict(self.locals)
        self.depth += 1
        self._block(statements)
        self.depth -= 1
        ended, self.ended = self.ended, False
        self._forget(before)
        return ended

    def _forget(self, before: Mapping[str, Any]) -> None:
        """Forget the names of a block that is left."""

    def _fork(self, node: ast.If) -> None:
        test = self._value(node.test).text
        if test in ("true", "false"):
            self._block(node.body if test == "true" else node.orelse)
            return
        at = len(self.lines)
        ended = self._inside(node.body)
        middle = len(self.lines)
        ended_too = self._inside(node.orelse)
        inside, otherwise = self.lines[at:middle], self.lines[middle:]
        del self.lines[at:]
        if not inside and not otherwise:
            return
        self._line(f"if ({test}) {{" if inside else f"if (!({test})) {{")
        self.lines += inside or otherwise
        if inside and otherwise:
            self._line("} else {")
            self.lines += otherwise
        self._line("}")
        self.ended = ended and ended_too

    def _While(self, node: ast.While) -> None:  # noqa: N802, names of the syntax
        if node.orelse:
            self._refuse(node)
        self._line(f"while ({self._value(node.test).text}) {{")
        self._inside(node.body)
        self._line("}")
        left = any(isinstance(each, ast.Break) for each in ast.walk(node))
        self.ended = self._known(node.test) is True and not left

    def _Break(self, node: ast.Break) -> None:  # noqa: N802
        self._line("break;")
        self.ended = True

    def _Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self._line("continue;")
        self.ended = True

    def _AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        assert node.value is not None
        kind = self._kind(ast.unparse(node.annotation))
        self._store(node.target, self._as(self._value(node.value), kind))

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

    # Expressions ---------------------------------------------------------------------------

    def _as(self, value: Code, kind: Any) -> Code:
        """Convert a number, where the target has types."""
        return value

    def _BinOp(self, node: ast.BinOp) -> Code:  # noqa: N802
        left, right = self._value(node.left), self._value(node.right)
        if type(node.op) not in _ARITHMETIC:
            self._refuse(node)
        is_whole = left.kind == right.kind == "int" and not isinstance(node.op, ast.Div)
        kind = "int" if is_whole else "float"
        left, right = self._as(left, kind), self._as(right, kind)
        sign = _ARITHMETIC[type(node.op)]
        if is_whole and (sign, right.text) in _NEUTRAL:
            return left
        if is_whole and (sign, left.text) in (("+", "0"), ("*", "1")):
            return right
        return Code(f"{left.operand} {sign} {right.operand}", kind, True)

    def _UnaryOp(self, node: ast.UnaryOp) -> Code:  # noqa: N802
        value = self._value(node.operand)
        if value.text in ("true", "false"):
            return Code("false" if value.text == "true" else "true", "bool")
        sign = "!" if isinstance(node.op, ast.Not) else "-"
        return Code(f"{sign}{value.operand}", value.kind)

    def _Compare(self, node: ast.Compare) -> Code:  # noqa: N802
        operands = [self._value(each) for each in (node.left, *node.comparators)]
        parts = []
        for left, order, right in zip(operands, node.ops, operands[1:], strict=False):
            if type(order) not in self.order:
                self._refuse(node)
            kind = "float" if left.kind != right.kind else left.kind
            a, b = self._as(left, kind), self._as(right, kind)
            parts.append(f"{a.operand} {self.order[type(order)]} {b.operand}")
        text = parts[0] if len(parts) == 1 else " && ".join(f"({part})" for part in parts)
        return Code(text, "bool", True)

    def _BoolOp(self, node: ast.BoolOp) -> Code:  # noqa: N802
        sign = "&&" if isinstance(node.op, ast.And) else "||"
        neutral, decisive = ("true", "false") if sign == "&&" else ("false", "true")
        parts: list[Code] = [*map(self._value, node.values)]
        parts = [part for part in parts if part.text != neutral]
        if decisive in [part.text for part in parts]:
            return Code(decisive, "bool")
        if len(parts) <= 1:
            return parts[0] if parts else Code(neutral, "bool")
        return Code(f" {sign} ".join(part.operand for part in parts), "bool", True)

    def _choice(self, nodes: list[ast.expr]) -> Code:
        condition, a, b = map(self._value, nodes)
        kind = "float" if a.kind != b.kind else a.kind
        a, b = self._as(a, kind), self._as(b, kind)
        if is_literal(a.text) and is_literal(b.text):
            a, b = self._whole(a), self._whole(b)
        return Code(f"{condition.operand} ? {a.operand} : {b.operand}", kind, True)

    def _whole(self, value: Code) -> Code:
        """Return a literal whole number whose type is to be seen."""
        return value

    def _computed(self, target: Any, nodes: list[ast.expr]) -> Any:
        """Call a function that the language has, or return None."""
        if target in self.same:
            return self._value(nodes[self.same[target]])
        if target not in self.calls:
            return None
        values = (self._as(self._value(each), "float").text for each in nodes)
        return Code(f"{self.calls[target]}({', '.join(values)})", "float")

    def _Subscript(self, node: ast.Subscript) -> Code:  # noqa: N802
        array: Code = self._value(node.value)
        cut = node.slice
        if array.kind not in (*ELEMENTS, "Functions"):
            self._refuse(node)
        if not isinstance(cut, ast.Slice):
            at = sum_of(array.start, self._value(cut).text)
            return self._element(array, f"{array.text}[{at}]")
        if cut.lower is None or cut.upper is not None:
            self._refuse(node)
        assert cut.lower is not None
        return replace(array, start=sum_of(array.start, self._value(cut.lower).text))

    def _element(self, array: Code, text: str) -> Code:
        """Return an element of an array."""
        kind = {"Ints": "int", "Functions": "Function"}.get(array.kind, "float")
        return Code(text, kind, root=array.root)

    def _field(self, node: ast.Attribute) -> tuple[Code, Any]:
        """Return the structure of which a field is read, and the type of the field."""
        whole: Code = self._value(node.value)
        structure: Any = whole.kind
        kinds = types_of(structure) if is_structure(whole.kind) else {}
        if node.attr not in kinds:
            self._refuse(node)
        return whole, kinds[node.attr]

    def _Name(self, node: ast.Name) -> Any:  # noqa: N802
        if node.id not in self.locals:
            self._refuse(node)
        return self.locals[node.id]


@cache
def count_assignments(definition: ast.AST) -> Counter[str]:
    """Count the assignments to each local name, once for all models."""
    return Counter(
        each.id
        for each in ast.walk(definition)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )


def increment(name: str, stride: int) -> str:
    """Write the statement that moves a counter on."""
    return {1: f"{name}++", -1: f"{name}--"}.get(stride, f"{name} += {stride}")


def is_literal(text: str) -> bool:
    """Return whether a text is a whole number."""
    return text.removeprefix("-").isdigit()


def sum_of(a: str, b: str) -> str:
    """Add positions."""
    if not a or a == "0":
        return b
    if is_literal(a) and is_literal(b):
        return str(int(a) + int(b))
    a, b = (f"({each})" if " " in each else each for each in (a, b))
    return f"{a} + {b}"
