"""Kernels as functions of JavaScript: the second target of their translation.

`flexure.solvers.native.language.language` describes the language of kernels, and
`flexure.solvers.native.language.reading` the values that are known while they are translated. There
is one lane. Structures become objects, and arrays typed arrays. The rest of an array, ``a[i:]``, is
the array and a number that is added to every position: a view of it would take longer to make than
most kernels run. So a parameter that is an array is followed by another one, where it begins. Only
equations, which know nothing of that, are given views. No kernel returns an array here, and whether
numbers are whole is left to the other target, to which every kernel is translated, too.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flexure.solvers.export.javascript.equation_functions import number
from flexure.solvers.export.kernel_text import KernelText, count_assignments, increment
from flexure.solvers.native.language.language import (
    ceil,
    is_structure,
    nextafter,
    power,
    rint,
    sqrt,
    types_of,
)
from flexure.solvers.native.language.llvm_values import label_of
from flexure.solvers.native.language.reading import (
    KernelError,
    KernelModule,
    definition_of,
)

_ARRAYS = ("Floats", "Reals", "Ints", "Functions")
_CALLS: dict[Any, str] = {
    abs: "Math.abs",
    sqrt: "Math.sqrt",
    ceil: "Math.ceil",
    rint: "rint",
    power: "Math.pow",
    nextafter: "nextafter$",
    int: "Math.trunc",
}
#: Operators, and how strongly they bind.
_BINARY = {ast.Add: ("+", 12), ast.Sub: ("-", 12), ast.Mult: ("*", 13), ast.Div: ("/", 13)}
_ORDER = {
    ast.Lt: ("<", 10),
    ast.LtE: ("<=", 10),
    ast.Gt: (">", 10),
    ast.GtE: (">=", 10),
    ast.Eq: ("===", 9),
    ast.NotEq: ("!==", 9),
}
_AND, _OR, _CHOICE, _SIGN, _ATOM = 5, 4, 3, 15, 20
#: Names of kernels that mean something else in JavaScript.
_RESERVED = {"new", "function", "var", "let", "const", "case", "this", "switch", "delete", "void"}

#: What the functions call, besides ``rint`` of the equations.
HELPERS = """\
const bits$ = new Float64Array(1), words$ = new Uint32Array(bits$.buffer);
const low$ = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? 0 : 1, high$ = 1 - low$;
function nextafter$(a, b) {
if (!(a < b) && !(a > b)) return a === b ? b : NaN;
if (a === 0) return b > 0 ? 5e-324 : -5e-324;
bits$[0] = a;
if (a < b === a > 0) {
words$[low$] += 1;
if (words$[low$] === 0) words$[high$] += 1;
} else {
if (words$[low$] === 0) words$[high$] -= 1;
words$[low$] -= 1;
}
return bits$[0];
}
function view$(array, start) {
return start === 0 ? array : array.subarray(start);
}
"""


@dataclass(frozen=True)
class Code:
    """An expression of JavaScript.

    Attributes
    ----------
    text : str
        How it is written.
    binds : int
        How strongly its outermost operator binds.
    start : Code or None
        For an array, where it begins in the array that the text names.
    structure : type of Structure or None
        What it is, if that is one.
    """

    text: str
    binds: int = _ATOM
    start: Code | None = None
    structure: Any = None

    def beside(self, binds: int) -> str:
        """Return the text as an operand of an operator that binds so strongly."""
        return self.text if self.binds >= binds else f"({self.text})"


_ZERO = Code("0")


class FunctionModule(KernelModule):
    """The text of functions of JavaScript."""

    def translate(
        self, kernel: Callable[..., Any], name: str, statics: Mapping[str, Any] | None = None
    ) -> None:
        """Add a kernel, and the kernels that it calls, for values of its static parameters."""
        self.add(
            kernel, name, statics, lambda known: _FunctionWriter(self, kernel, known).text(name)
        )

    @property
    def text(self) -> str:
        """The text of all functions."""
        return "".join(self.functions.values())


def structure_text(kind: Any) -> str:
    """Write an object with the fields of a structure, all of them zero.

    A number that may become a fraction begins as -0: for engines, 0 would be a whole number.
    """
    zeros = {"float": "-0", "int": "0"}
    fields = ", ".join(
        f"{name}: {structure_text(part) if is_structure(part) else zeros.get(part, 'null')}"
        for name, part in types_of(kind).items()
    )
    return f"{{{fields}}}"


class _FunctionWriter(KernelText):
    """Writes one kernel for one choice of static parameters."""

    same = KernelText.same | {float: 0}

    def __init__(
        self, module: FunctionModule, kernel: Callable[..., Any], statics: dict[str, Any]
    ) -> None:
        super().__init__(kernel, statics)
        self.module = module
        self.lines: list[str] = []
        self.variables: dict[str, None] = {}  # in their order
        self.outside: list[str] = []  # what is made once, and not in every call
        self.stores = count_assignments(definition_of(kernel))

    def text(self, name: str) -> str:
        """Return the text of the function."""
        parameters = []
        for parameter in inspect.signature(self.kernel).parameters:
            if parameter not in self.statics:
                found = self._typed(parameter, self.kernel.__annotations__.get(parameter))
                self.locals[parameter] = found
                parameters.append(found.text)
                if found.start is not None:
                    parameters.append(found.start.text)
        self._block(definition_of(self.kernel).body)
        variables = f"let {', '.join(self.variables)};\n" if self.variables else ""
        body = "".join(f"{line}\n" for line in self.lines)
        outside = "".join(f"{line}\n" for line in self.outside)
        return (
            f"{outside}function {_plain(name)}({', '.join(parameters)}) {{\n{variables}{body}}}\n"
        )

    def _typed(self, name: str, annotation: Any) -> Code:
        """Return what a variable of a type is."""
        if annotation is None:
            raise KernelError(f"{self.kernel.__name__}: no type of '{name}'")
        text = f"{name}$" if name in _RESERVED else name
        if annotation in _ARRAYS:
            return Code(text, start=Code(f"{name}$start"))
        found = self.scope.get(annotation) if isinstance(annotation, str) else annotation
        return Code(text, structure=found if is_structure(found) else None)

    # Statements ----------------------------------------------------------------------------

    def _Expr(self, node: ast.Expr) -> None:  # noqa: N802, names of the syntax
        if not isinstance(node.value, ast.Constant):
            self.lines.append(f"{self._value(node.value).text};")

    def _kept(self, value: Code) -> Code:
        """Keep a value in a variable of its own."""
        name, start = f"kept${len(self.variables)}", value.start
        self.variables[name] = None
        self.lines.append(f"{name} = {value.text};")
        if start is not None and start != _ZERO:
            start = self._kept(start)
        return Code(name, start=start, structure=value.structure)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        assert node.value is not None
        self._store(node.target, self._value(node.value))

    def _store(self, target: ast.expr, value: Code) -> None:
        if isinstance(target, ast.Name):
            self._store_local(target, value)
            return
        if value.start is not None and value.start != _ZERO:
            self._refuse(target)
        place: Code = getattr(self, f"_{type(target).__name__}", self._refuse)(target)
        if place.structure is not None:
            self._refuse(target)
        self.lines.append(f"{place.text} = {value.text};")

    def _store_local(self, target: ast.Name, value: Code) -> None:
        """Assign to a variable; arrays that begin where others do need no second one."""
        name = target.id
        if name not in self.locals:
            text = f"{name}$" if name in _RESERVED else name
            self.variables[text] = None
            start = value.start
            if start is not None and (start != _ZERO or self.stores[name] > 1):
                start = Code(f"{name}$start")
                self.variables[start.text] = None
            self.locals[name] = Code(text, start=start, structure=value.structure)
        place: Code = self.locals[name]
        if (place.start is None) != (value.start is None):
            self._refuse(target)
        if place.start is not None and value.start is not None and place.start != _ZERO:
            self.lines.append(f"{place.start.text} = {value.start.text};")
        self.lines.append(f"{place.text} = {value.text};")

    def _Return(self, node: ast.Return) -> None:  # noqa: N802
        value = Code("") if node.value is None else self._value(node.value)
        if value.start is not None or value.structure is not None:
            self._refuse(node)
        self.lines.append(f"return {value.text};" if value.text else "return;")

    def _fork(self, node: ast.If) -> None:
        self.lines.append(f"if ({self._value(node.test).text}) {{")
        self._block(node.body)
        if node.orelse:
            self.lines.append("} else {")
            self._block(node.orelse)
        self.lines.append("}")

    def _While(self, node: ast.While) -> None:  # noqa: N802
        if node.orelse:
            self._refuse(node)
        self.lines.append(f"while ({self._value(node.test).text}) {{")
        self._block(node.body)
        self.lines.append("}")

    def _count(self, node: ast.For, counter: ast.Name, bounds: list[ast.expr]) -> None:
        first, last, stride = self._range(bounds)
        at, end = f"{counter.id}$at", f"{counter.id}$end"
        order = "<" if stride > 0 else ">"
        self.lines.append(
            f"for (let {at} = {first}, {end} = {last.text}; {at} {order} {end}; "
            f"{increment(at, stride)}) {{"
        )
        self._store(counter, Code(at))
        self._block(node.body)
        self.lines.append("}")

    def _Break(self, node: ast.Break) -> None:  # noqa: N802
        self.lines.append("break;")

    def _Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self.lines.append("continue;")

    # Expressions ---------------------------------------------------------------------------

    def _constant(self, known: float) -> Code:
        if isinstance(known, bool):
            return Code("true" if known else "false")
        text = number(known)
        return Code(text, _SIGN if text[0] == "-" else _ATOM)

    def _Attribute(self, node: ast.Attribute) -> Code:  # noqa: N802
        whole = self._value(node.value)
        kinds = types_of(whole.structure) if whole.structure is not None else {}
        if node.attr not in kinds:
            self._refuse(node)
        kind = kinds[node.attr]
        return Code(
            f"{whole.text}.{node.attr}",
            start=_ZERO if kind in _ARRAYS else None,
            structure=kind if is_structure(kind) else None,
        )

    def _Subscript(self, node: ast.Subscript) -> Code:  # noqa: N802
        array = self._value(node.value)
        if array.start is None:
            self._refuse(node)
        assert array.start is not None
        cut = node.slice
        if not isinstance(cut, ast.Slice):
            return Code(f"{array.text}[{_sum(array.start, self._value(cut)).text}]")
        if cut.lower is None or cut.upper is not None:
            self._refuse(node)
        assert cut.lower is not None
        return Code(array.text, start=_sum(array.start, self._value(cut.lower)))

    def _BinOp(self, node: ast.BinOp) -> Code:  # noqa: N802
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.FloorDiv):
            return Code(f"Math.floor({left.beside(13)} / {right.beside(14)})")
        if isinstance(node.op, ast.Mod):
            return Code(f"{left.beside(13)} % {right.beside(14)}", 13)
        if type(node.op) not in _BINARY:
            self._refuse(node)
        sign, binds = _BINARY[type(node.op)]
        return Code(f"{left.beside(binds)} {sign} {right.beside(binds + 1)}", binds)

    def _UnaryOp(self, node: ast.UnaryOp) -> Code:  # noqa: N802
        sign = "!" if isinstance(node.op, ast.Not) else "-"
        return Code(f"{sign}{self._value(node.operand).beside(_SIGN + 1)}", _SIGN)

    def _Compare(self, node: ast.Compare) -> Code:  # noqa: N802
        operands = [self._value(each) for each in (node.left, *node.comparators)]
        parts = []
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            if type(operator) not in _ORDER:
                self._refuse(node)
            sign, binds = _ORDER[type(operator)]
            parts.append(f"{left.beside(binds + 1)} {sign} {right.beside(binds + 1)}")
        return Code(" && ".join(parts), binds if len(parts) == 1 else _AND)

    def _BoolOp(self, node: ast.BoolOp) -> Code:  # noqa: N802
        sign, binds = ("&&", _AND) if isinstance(node.op, ast.And) else ("||", _OR)
        parts = [self._value(each).beside(binds) for each in node.values]
        return Code(f" {sign} ".join(parts), binds)

    def _choice(self, nodes: list[ast.expr]) -> Code:
        condition, a, b = (self._value(each).beside(_CHOICE + 1) for each in nodes)
        return Code(f"{condition} ? {a} : {b}", _CHOICE)

    def _computed(self, target: Any, nodes: list[ast.expr]) -> Code | None:
        if target not in _CALLS:
            return None
        values = ", ".join(self._value(each).text for each in nodes)
        return Code(f"{_CALLS[target]}({values})")

    def _local(self, count: int) -> Code:
        """Make an array once for all calls, which do not rely on what is in it."""
        name = f"local${len(self.module.functions)}${len(self.outside)}"
        self.outside.append(f"const {name} = new Float64Array({count});")
        return Code(name, start=_ZERO)

    def _kernel(self, kernel: Callable[..., Any], node: ast.Call) -> Code:
        """Call another kernel, translated for the static values it is called with."""
        statics, others = self._arguments(kernel, node)
        label = kernel.__name__ + "".join(f"${label_of(value)}" for value in statics.values())
        arguments = []
        for name, argument in others.items():
            value, kind = self._value(argument), kernel.__annotations__[name]
            wanted = kernel.__globals__.get(kind)
            if (value.start is not None) != (kind in _ARRAYS) or value.structure is not (
                wanted if is_structure(wanted) else None
            ):
                self._refuse(node)
            arguments.append(value.text)
            if value.start is not None:
                arguments.append(value.start.text)
        self.module.translate(kernel, label, statics)
        return Code(f"{_plain(label)}({', '.join(arguments)})")

    def _equation(self, function: Code, nodes: list[ast.expr]) -> Code:
        """Call a function ``f(t, x, env, out)``, or a step function ``f(run)``."""
        arguments = []
        for value in map(self._value, nodes):
            if value.start is None or value.start == _ZERO:
                arguments.append(value.text)
            else:
                arguments.append(f"view$({value.text}, {value.start.text})")
        return Code(f"{function.text}({', '.join(arguments)})")


def _sum(a: Code, b: Code) -> Code:
    """Add positions."""
    if a == _ZERO:
        return b
    return a if b == _ZERO else Code(f"{a.beside(12)} + {b.beside(13)}", 12)


def _plain(name: str) -> str:
    """Return a name of a function as JavaScript takes it."""
    return name.replace(".", "$")
