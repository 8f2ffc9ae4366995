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
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, ClassVar

from flexure.solvers.export import operations
from flexure.solvers.export.javascript.equation_functions import number
from flexure.solvers.export.kernel_text import ELEMENTS, ORDER, Code, KernelText, increment
from flexure.solvers.native.language.expressions import label_of
from flexure.solvers.native.language.language import (
    ceil,
    is_structure,
    nextafter,
    power,
    rint,
    sqrt,
    types_of,
)
from flexure.solvers.native.language.reading import (
    KernelError,
    KernelModule,
    definition_of,
    parameters_of,
)

_ARRAYS = (*ELEMENTS, "Functions")
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


def arithmetic() -> str:
    """Return the functions that the text of equations calls."""
    module = FunctionModule()
    for each in (operations.sign, operations.remainder_of, operations.floor_divide):
        module.translate(each, each.__name__)
    return files(__package__).joinpath("arithmetic.js").read_text(encoding="utf-8") + module.text


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
    calls: ClassVar[dict[Any, str]] = {
        abs: "Math.abs",
        sqrt: "Math.sqrt",
        ceil: "Math.ceil",
        rint: "rint",
        power: "Math.pow",
        nextafter: "nextafter$",
        int: "Math.trunc",
        math.fmod: "fmod",
        math.copysign: "copysign",
    }
    order = ORDER | {ast.Eq: "===", ast.NotEq: "!=="}

    def __init__(
        self, module: FunctionModule, kernel: Callable[..., Any], statics: dict[str, Any]
    ) -> None:
        super().__init__(kernel, statics)
        self.module = module
        self.variables: dict[str, None] = {}  # in their order
        self.outside: list[str] = []  # what is made once, and not in every call

    def text(self, name: str) -> str:
        """Return the text of the function."""
        parameters = []
        for parameter in parameters_of(self.kernel):
            if parameter not in self.statics:
                found = self._typed(parameter, self.kernel.__annotations__.get(parameter))
                self.locals[parameter] = found
                parameters += [found.text, found.start] if found.start else [found.text]
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
        return Code(
            text, self._kind(annotation), start=f"{name}$start" if annotation in _ARRAYS else ""
        )

    # Statements ----------------------------------------------------------------------------

    def _Expr(self, node: ast.Expr) -> None:  # noqa: N802, names of the syntax
        if not isinstance(node.value, ast.Constant):
            self._line(f"{self._value(node.value).text};")

    def _kept(self, value: Code) -> Code:
        name = f"kept${len(self.variables)}"
        self.variables[name] = None
        self._line(f"{name} = {value.text};")
        start = self._kept(Code(value.start, "int")).text if value.start else ""
        return replace(value, text=name, compound=False, start=start)

    def _store(self, target: ast.expr, value: Code) -> None:
        if isinstance(target, ast.Name):
            self._store_local(target, value)
            return
        place: Code = getattr(self, f"_{type(target).__name__}", self._refuse)(target)
        if value.start or is_structure(place.kind):
            self._refuse(target)
        self._line(f"{place.text} = {value.text};")

    def _store_local(self, target: ast.Name, value: Code) -> None:
        """Assign to a variable; arrays that begin where others do need no second one."""
        name, is_array = target.id, value.kind in _ARRAYS
        if name not in self.locals:
            text = f"{name}$" if name in _RESERVED else name
            self.variables[text] = None
            start = f"{name}$start" if value.start or (is_array and self.stores[name] > 1) else ""
            if start:
                self.variables[start] = None
            self.locals[name] = Code(text, value.kind, start=start)
        place: Code = self.locals[name]
        if (place.kind in _ARRAYS) != is_array:
            self._refuse(target)
        if place.start:
            self._line(f"{place.start} = {value.start or '0'};")
        self._line(f"{place.text} = {value.text};")

    def _Return(self, node: ast.Return) -> None:  # noqa: N802
        value = Code("", None) if node.value is None else self._value(node.value)
        if value.kind in _ARRAYS or is_structure(value.kind):
            self._refuse(node)
        self._line(f"return {value.text};" if value.text else "return;")
        self.ended = True

    def _count(self, node: ast.For, counter: ast.Name, bounds: list[ast.expr]) -> None:
        first, last, stride = self._range(bounds)
        at, end = f"{counter.id}$at", f"{counter.id}$end"
        order = "<" if stride > 0 else ">"
        self._line(
            f"for (let {at} = {first}, {end} = {last.text}; {at} {order} {end}; "
            f"{increment(at, stride)}) {{"
        )
        self._store(counter, Code(at, "int"))
        self._inside(node.body)
        self._line("}")

    # Expressions ---------------------------------------------------------------------------

    def _constant(self, known: float) -> Code:
        if isinstance(known, bool):
            return Code("true" if known else "false", "bool")
        return Code(number(known), "int" if isinstance(known, int) else "float")

    def _Attribute(self, node: ast.Attribute) -> Code:  # noqa: N802
        whole, kind = self._field(node)
        return Code(whole.member(node.attr), kind)

    def _BinOp(self, node: ast.BinOp) -> Code:  # noqa: N802
        if not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            return super()._BinOp(node)
        left, right = self._value(node.left).operand, self._value(node.right).operand
        if isinstance(node.op, ast.FloorDiv):
            return Code(f"Math.floor({left} / {right})", "int")
        return Code(f"{left} % {right}", "int", True)

    def _local(self, count: int) -> Code:
        """Make an array once for all calls, which do not rely on what is in it."""
        name = f"local${len(self.module.functions)}${len(self.outside)}"
        self.outside.append(f"const {name} = new Float64Array({count});")
        return Code(name, "Floats")

    def _kernel(self, kernel: Callable[..., Any], node: ast.Call) -> Code:
        statics, others = self._arguments(kernel, node)
        label = kernel.__name__ + "".join(f"${label_of(value)}" for value in statics.values())
        arguments = []
        for name, argument in others.items():
            value, kind = self._value(argument), kernel.__annotations__[name]
            wanted = kernel.__globals__.get(kind)
            is_fine = value.kind is wanted if is_structure(wanted) else not is_structure(value.kind)
            if not is_fine or (value.kind in _ARRAYS) != (kind in _ARRAYS):
                self._refuse(node)
            arguments += [value.text, value.start or "0"] if kind in _ARRAYS else [value.text]
        self.module.translate(kernel, label, statics)
        return Code(f"{_plain(label)}({', '.join(arguments)})", kernel.__annotations__["return"])

    def _equation(self, function: Code, node: ast.Call) -> Code:
        arguments = [
            f"view$({value.text}, {value.start})" if value.start else value.text
            for value in map(self._value, node.args)
        ]
        return Code(f"{function.text}({', '.join(arguments)})", None)


def _plain(name: str) -> str:
    """Return a name of a function as JavaScript takes it."""
    return name.replace(".", "$")
