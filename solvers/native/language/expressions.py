"""Expressions of kernels as instructions of LLVM."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.solvers.native.language.language import (
    any_lane,
    ceil,
    fields_of,
    lane,
    lanes_in,
    nextafter,
    power,
    rint,
    sqrt,
    with_lane,
)
from flexure.solvers.native.language.reading import KernelError, Named, Reading

if TYPE_CHECKING:
    from flexure.solvers.native.language.translation import Module


@dataclass(frozen=True)
class Type:
    """A type of values in kernels."""

    name: str  # as annotations write it
    text: str  # as LLVM writes it
    element: Type | None = None  # of what an array consists
    structure: Any = None  # what a pointer leads to, if that is one


FLOAT = Type("float", "double")
INT = Type("int", "i64")
BOOL = Type("bool", "i1")
VOID = Type("None", "void")
FUNCTION = Type("Function", "ptr")
#: By the names that annotations use.
PLAIN_TYPES = {
    t.name: t
    for t in (
        FLOAT,
        INT,
        BOOL,
        VOID,
        FUNCTION,
        Type("Floats", "ptr", FLOAT),
        Type("Ints", "ptr", INT),
        Type("Functions", "ptr", FUNCTION),
    )
}


@dataclass(frozen=True)
class Value(Named):
    """A value in the text: its type and how it is written."""

    type: Type
    text: str


def constant(value: float) -> str:
    """Write a number exactly as LLVM reads it: by its bits."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


def label_of(value: Any) -> str:
    """Write a static value as a part of a name."""
    if isinstance(value, Value):
        return value.text[1:]
    name = getattr(value, "name", None) or getattr(value, "__name__", value)
    return "".join(c if c.isalnum() else "_" for c in str(name))


#: Function, its LLVM intrinsic or the function of the C library, and its number of arguments.
INTRINSICS: dict[Callable[..., Any], tuple[str, int]] = {
    abs: ("llvm.fabs", 1),
    sqrt: ("llvm.sqrt", 1),
    ceil: ("llvm.ceil", 1),
    rint: ("llvm.rint", 1),
    power: ("llvm.pow", 2),
    nextafter: ("nextafter", 2),
}

_ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_WHOLE = {ast.FloorDiv: "sdiv", ast.Mod: "srem"}
_ORDER = {
    ast.Lt: ("olt", "slt"),
    ast.LtE: ("ole", "sle"),
    ast.Gt: ("ogt", "sgt"),
    ast.GtE: ("oge", "sge"),
    ast.Eq: ("oeq", "eq"),
    ast.NotEq: ("une", "ne"),
}


class Expressions(Reading):
    """Writes the expressions of one kernel, for one choice of static parameters."""

    def __init__(self, module: Module, kernel: Callable[..., Any], statics: dict[str, Any]) -> None:
        super().__init__(kernel, statics)
        self.module = module
        self.flags = "" if self.scope.get("EXACT") else " contract"
        if self.scope.get("REORDERED"):
            self.flags = " contract reassoc"
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.open = True  # whether the present block still lacks its end

    def _emit(self, line: str) -> None:
        if self.open:
            self.lines.append("  " + line)

    def _end(self, line: str) -> None:
        """Write the last instruction of a block."""
        self._emit(line)
        self.open = False

    def _start(self, label: str) -> None:
        """Begin a block."""
        if self.open:
            self._end(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.open = True

    def _fresh(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def _set(self, kind: Type, instruction: str) -> Value:
        """Write an instruction that has a result."""
        name = "%" + self._fresh()
        self._emit(f"{name} = {instruction}")
        return Value(kind, name)

    def _reserve(self, name: str, kind: Type) -> Value:
        """Make a local variable."""
        place = Value(kind, "%" + self._fresh(name))
        self.entry.append(f"  {place.text} = alloca {kind.text}, align 8")
        self.locals[name] = place
        return place

    # Expressions ---------------------------------------------------------------------------

    def _constant(self, known: float) -> Value:
        if isinstance(known, bool):
            return Value(BOOL, "true" if known else "false")
        if isinstance(known, int):
            return Value(INT, str(known))
        return Value(FLOAT, constant(known))

    def _Name(self, node: ast.Name) -> Value:  # noqa: N802
        if node.id in self.statics:
            return self.statics[node.id]  # type: ignore[no-any-return]  # a function of the module
        if node.id not in self.locals:
            self._refuse(node)
        place = self.locals[node.id]
        return self._set(place.type, f"load {place.type.text}, ptr {place.text}")

    def _place(self, node: ast.expr) -> Value:
        """Return the address of an element or a field."""
        if isinstance(node, ast.Attribute):
            return self._field(node)
        if not isinstance(node, ast.Subscript):
            self._refuse(node)
        assert isinstance(node, ast.Subscript)
        array = self._value(node.value)
        element = array.type.element
        index = self._value(node.slice)
        if element is None or index.type is not INT:
            self._refuse(node)
        assert element is not None
        step = f"getelementptr inbounds {element.text}, ptr {array.text}, i64 {index.text}"
        return self._set(element, step)

    def _field(self, node: ast.Attribute) -> Value:
        """Return the address of a field, however many structures it is inside of."""
        path, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        whole = self._value(root)
        kind, position = whole.type, 0
        for name in reversed(path):
            if kind.structure is None or name not in fields_of(kind.structure):
                self._refuse(node)
            assert kind.structure is not None
            offset, annotation = fields_of(kind.structure)[name]
            position += offset
            kind = self.module.type_of(annotation)
        return self._set(kind, f"getelementptr i64, ptr {whole.text}, i64 {position}")

    def _Attribute(self, node: ast.Attribute) -> Value:  # noqa: N802
        place = self._place(node)
        if place.type.structure is not None:
            return place
        return self._set(place.type, f"load {place.type.text}, ptr {place.text}")

    def _Subscript(self, node: ast.Subscript) -> Value:  # noqa: N802
        if not isinstance(node.slice, ast.Slice):
            place = self._place(node)
            return self._set(place.type, f"load {place.type.text}, ptr {place.text}, align 8")
        array, cut = self._value(node.value), node.slice
        if cut.lower is None or cut.upper is not None or array.type.element is None:
            self._refuse(node)
        assert cut.lower is not None
        assert array.type.element is not None
        start = self._value(cut.lower)
        step = f"getelementptr {array.type.element.text}, ptr {array.text}, i64 {start.text}"
        return self._set(array.type, step)

    def _BinOp(self, node: ast.BinOp) -> Value:  # noqa: N802
        left, right = self._value(node.left), self._value(node.right)
        if type(node.op) in _WHOLE and left.type is right.type is INT:
            return self._set(INT, f"{_WHOLE[type(node.op)]} i64 {left.text}, {right.text}")
        if type(node.op) not in _ARITHMETIC:
            self._refuse(node)
        left, right = self._same(left, right, whole=not isinstance(node.op, ast.Div))
        operation = _ARITHMETIC[type(node.op)]
        if left.type is INT:
            return self._set(INT, f"{operation} nsw i64 {left.text}, {right.text}")
        return self._set(
            left.type, f"f{operation}{self.flags} {left.type.text} {left.text}, {right.text}"
        )

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:  # noqa: N802
        value = self._value(node.operand)
        if isinstance(node.op, ast.Not):
            ones = self._converted(Value(BOOL, "true"), value.type)
            return self._set(value.type, f"xor {value.type.text} {value.text}, {ones.text}")
        if value.type is INT:
            return self._set(INT, f"sub nsw i64 0, {value.text}")
        return self._set(value.type, f"fneg {value.type.text} {value.text}")

    def _Compare(self, node: ast.Compare) -> Value:  # noqa: N802
        operands = [self._value(each) for each in (node.left, *node.comparators)]
        result: Value | None = None
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            a, b = self._same(left, right)
            if type(operator) not in _ORDER:
                self._refuse(node)
            real, whole = _ORDER[type(operator)]
            if a.type in (INT, BOOL):
                found = self._set(BOOL, f"icmp {whole} {a.type.text} {a.text}, {b.text}")
            else:
                kind = BOOL if a.type is FLOAT else self.module.mask
                found = self._set(kind, f"fcmp {real} {a.type.text} {a.text}, {b.text}")
            result = found if result is None else self._both(result, found, "and")
        assert result is not None
        return result

    def _BoolOp(self, node: ast.BoolOp) -> Value:  # noqa: N802
        """Combine truth values; the parts have no effects and are all computed."""
        word = "and" if isinstance(node.op, ast.And) else "or"
        parts: list[Value] = [self._value(each) for each in node.values]
        result = parts[0]
        for part in parts[1:]:
            result = self._both(result, part, word)
        return result

    def _both(self, a: Value, b: Value, word: str) -> Value:
        a, b = self._same(a, b)
        return self._set(a.type, f"{word} {a.type.text} {a.text}, {b.text}")

    def _choice(self, nodes: list[ast.expr]) -> Value:
        condition, a, b = (self._value(each) for each in nodes)
        a, b = self._same(a, b)
        if condition.type is not BOOL:
            a, b = (self._converted(value, self.module.real) for value in (a, b))
        return self._set(
            a.type,
            f"select {condition.type.text} {condition.text}, {a.type.text} {a.text}, "
            f"{b.type.text} {b.text}",
        )

    def _computed(self, target: Any, nodes: list[ast.expr]) -> Value | None:
        """Call a function that LLVM has, or return None."""
        if target in (any_lane, lanes_in, lane, with_lane):
            return self._about_lanes(target, nodes)
        if target is float:
            return self._converted(self._value(nodes[0]), FLOAT)
        if target is int:
            return self._set(INT, f"fptosi double {self._value(nodes[0]).text} to i64")
        return self._intrinsic(*INTRINSICS[target], nodes) if target in INTRINSICS else None

    def _local(self, count: int) -> Value:
        """Make an array on the stack; LLVM keeps small ones in registers."""
        place = "%" + self._fresh("array")
        self.entry.append(f"  {place} = alloca [{count} x {self.module.real.text}], align 64")
        return Value(self.module.types["Reals"], place)

    def _about_lanes(self, target: Any, arguments: list[ast.expr]) -> Value:
        """Look at lanes, or change one."""
        if target is lane and self._is_element(arguments[0]):
            place = self._lane_of(*arguments)
            return self._set(place.type, f"load {place.type.text}, ptr {place.text}, align 8")
        values = [self._value(argument) for argument in arguments]
        if target in (lane, with_lane):
            return self._one_lane(*values)
        return self._any(values[0]) if target is any_lane else self._how_many(values[0])

    def _any(self, mask: Value) -> Value:
        if mask.type is BOOL:
            return mask
        lanes = self.module.lanes
        name = f"llvm.vector.reduce.or.v{lanes}i1"
        self.module.declarations.add(f"declare i1 @{name}({mask.type.text}) #1")
        return self._set(BOOL, f"call i1 @{name}({mask.type.text} {mask.text})")

    def _how_many(self, mask: Value) -> Value:
        if mask.type is BOOL:
            return self._set(INT, f"zext i1 {mask.text} to i64")
        whole = f"i{self.module.lanes}"
        bits = self._set(INT, f"bitcast {mask.type.text} {mask.text} to {whole}")
        self.module.declarations.add(f"declare {whole} @llvm.ctpop.{whole}({whole}) #1")
        count = self._set(INT, f"call {whole} @llvm.ctpop.{whole}({whole} {bits.text})")
        return self._set(INT, f"zext {whole} {count.text} to i64")

    def _is_element(self, node: ast.expr) -> bool:
        """Return whether something is an element of an array."""
        return isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)

    def _lane_of(self, element: ast.expr, position: ast.expr) -> Value:
        """Return the address of one lane of an element, so that the others are left alone."""
        place, which = self._place(element), self._value(position)
        if place.type is not self.module.real or self.module.lanes == 1:
            return place
        step = f"getelementptr inbounds double, ptr {place.text}, i64 {which.text}"
        return self._set(FLOAT, step)

    def _one_lane(self, value: Value, position: Value, number: Value | None = None) -> Value:
        """Read one lane, or write a number into it."""
        if self.module.lanes == 1:
            return value if number is None else number
        at = f"{value.type.text} {value.text}"
        if number is None:
            single = BOOL if value.type is self.module.mask else FLOAT
            return self._set(single, f"extractelement {at}, i64 {position.text}")
        number = self._converted(number, FLOAT)
        return self._set(
            value.type, f"insertelement {at}, double {number.text}, i64 {position.text}"
        )

    def _intrinsic(self, name: str, arity: int, nodes: list[ast.expr]) -> Value:
        values = [self._value(argument) for argument in nodes]
        kind = FLOAT
        if any(value.type is self.module.real for value in values):
            kind = self.module.real
        values = [self._converted(value, kind) for value in values]
        plain = name.removeprefix("llvm.")
        if kind is not FLOAT and plain in self.module.vectors:
            name, declaration = self.module.vectors[plain]
        else:
            if name.startswith("llvm."):
                name += ".f64" if kind is FLOAT else f".v{self.module.lanes}f64"
            declaration = f"declare {kind.text} @{name}({', '.join([kind.text] * arity)}) #1"
        self.module.declarations.add(declaration)
        arguments = ", ".join(f"{kind.text} {value.text}" for value in values)
        return self._set(kind, f"call {kind.text} @{name}({arguments})")

    def _kernel(self, kernel: Callable[..., Any], node: ast.Call) -> Value:
        """Call another kernel, translated for the static values it is called with."""
        annotations = kernel.__annotations__
        scope = kernel.__globals__
        statics, others = self._arguments(kernel, node)
        arguments = []
        for name, argument in others.items():
            kind = self.module.type_of(annotations[name], scope)
            value = self._converted(self._value(argument), kind)
            arguments.append(f"{kind.text} {value.text}")
        label = kernel.__name__ + "".join(f".{label_of(value)}" for value in statics.values())
        self.module.translate(kernel, label, statics, public=False)
        result = self.module.type_of(annotations.get("return"), scope)
        return self._invoke(result, f"@{label}", arguments)

    def _equation(self, function: Value, node: ast.Call) -> Value:
        """Call a function ``f(t, x, env, out)``, or a step function ``f(run)``."""
        if function.type is not FUNCTION:
            self._refuse(node)
        values = [self._value(argument) for argument in node.args]
        if len(values) == 1:
            return self._invoke(FLOAT, function.text, [f"ptr {values[0].text}"])
        time = self._converted(values[0], self.module.real)
        arguments = [f"{time.type.text} {time.text}"]
        arguments += [f"ptr {value.text}" for value in values[1:]]
        return self._invoke(VOID, function.text, arguments)

    def _invoke(self, result: Type, name: str, arguments: list[str]) -> Value:
        call = f"call {result.text} {name}({', '.join(arguments)})"
        if result is VOID:
            self._emit(call)
            return Value(VOID, "")
        return self._set(result, call)

    # Conversions ---------------------------------------------------------------------------

    def _same(self, a: Value, b: Value, *, whole: bool = True) -> tuple[Value, Value]:
        """Convert two values to the wider one of their types."""
        ranks = [BOOL, self.module.mask, INT, FLOAT, self.module.real]
        kind = max(a.type, b.type, key=ranks.index) if a.type is not b.type else a.type
        if kind is INT and not whole:
            kind = FLOAT
        return self._converted(a, kind), self._converted(b, kind)

    def _converted(self, value: Value, kind: Type) -> Value:
        """Convert a value: whole numbers to numbers, one to all lanes."""
        if value.type is kind:
            return value
        if value.type.text == kind.text == "ptr" and value.type.structure is kind.structure:
            return value
        if kind is FLOAT and value.type is INT:
            if value.text.lstrip("-").isdigit():
                return Value(FLOAT, constant(float(value.text)))
            return self._set(FLOAT, f"sitofp i64 {value.text} to double")
        lanes = self.module.lanes
        if lanes > 1 and kind in (self.module.real, self.module.mask):
            single = FLOAT if kind is self.module.real else BOOL
            value = self._converted(value, single)
            first = self._set(
                kind, f"insertelement {kind.text} poison, {single.text} {value.text}, i64 0"
            )
            zeros = f"<{lanes} x i32> zeroinitializer"
            return self._set(
                kind, f"shufflevector {kind.text} {first.text}, {kind.text} poison, {zeros}"
            )
        raise KernelError(f"{self.kernel.__name__}: {value.type.name} used as {kind.name}")
