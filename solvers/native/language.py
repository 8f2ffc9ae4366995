"""Kernels: loops written in a small part of Python and translated to LLVM IR.

The loops of native integration (steps, events, ensembles) are ordinary Python functions over NumPy
arrays, so that they can be read, checked and run like any other. `translate` turns such a function,
and every kernel that it calls, into the text of LLVM functions. What a kernel may contain:

* parameters and results annotated with the types below;
* assignments to local names, to elements ``a[i]`` and to fields ``run.time``; ``a[i:]`` is the rest
  of an array; a local name keeps the type of its first assignment;
* arithmetic, comparisons, ``and or not``, ``a if c else b``, `where`, `any_lane`, `lane`,
  `with_lane`, the functions of `INTRINSICS`;
* ``if``, ``while``, ``for i in range(...)``, ``for j in unrolled(...)``, ``break continue return``;
* calls of other kernels, and of functions held in parameters, fields and arrays.

Whatever depends only on global names, on parameters of the type `Static` and on the counters of
unrolled loops is computed while translating: coefficients become constants of the code, and an
``if`` on them keeps one branch. A short loop of known length is unrolled.

A product and a sum may be fused into one operation with one rounding, except in files that say
``EXACT = True``; in files that say ``REORDERED = True``, sums may also be taken in another order,
which lets the processor add several numbers at once. Kernels of files that say ``APART = True`` are
not put into others, which compiles faster. Arrays that are given to one kernel must not
overlap where it writes.

=============  ===================================================================================
``float``      a number
``int``        a whole number; ``//`` and ``%`` are for numbers that are not negative
``bool``       a truth value
``Real``       a number, or one number per lane
``Mask``       a truth value, or one per lane
``Floats``     array of numbers; ``Ints``, ``Reals`` likewise
``Function``   an equation ``f(t, x, env, out)``; ``Functions`` is an array of them
``Static``     known while translating
a `Record`     a C structure with the fields that the class declares
=============  ===================================================================================
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flexure.solvers.native.library import VectorFunction

Real: TypeAlias = float
Mask: TypeAlias = bool
Floats: TypeAlias = NDArray[np.float64]
Reals: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Function: TypeAlias = Callable[..., Any]
Functions: TypeAlias = Any
Static: TypeAlias = Any


class Record:
    """Base of structures that kernels share with Python; a subclass annotates its fields."""

    @classmethod
    def structure(cls) -> type[ctypes.Structure]:
        """Return the same structure for ctypes."""
        record: Any = cls
        return _structure(record)


@dataclass(frozen=True)
class Type:
    """A type of values in kernels.

    Attributes
    ----------
    name : str
        As annotations write it.
    text : str
        As LLVM writes it.
    element : Type or None
        Of what an array consists.
    record : type or None
        The structure that a pointer leads to.
    """

    name: str
    text: str
    element: Type | None = None
    record: type[Record] | None = None


FLOAT = Type("float", "double")
INT = Type("int", "i64")
BOOL = Type("bool", "i1")
VOID = Type("None", "void")
FUNCTION = Type("Function", "ptr")
_PLAIN = {
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


class KernelError(Exception):
    """A kernel contains something that cannot be translated; a mistake in this package."""


# What kernels may call ---------------------------------------------------------------------


def where(condition: Mask, a: Real, b: Real) -> Real:
    """Return the first value where the condition holds, else the second; per lane."""
    return a if condition else b


def unrolled(*bounds: int) -> Iterable[int]:
    """Count like ``range`` in a loop that is written out."""
    return range(*bounds)


def nextafter(a: float, b: float) -> float:
    """Return the next floating-point number from one towards another."""
    return math.nextafter(a, b)


def power(a: Real, b: Real) -> Real:
    """Return a power of a number that is not negative."""
    return math.pow(a, b)


def sqrt(a: Real) -> Real:
    """Return a square root; NaN for a negative number."""
    return math.nan if a < 0.0 else math.sqrt(a)


def ceil(a: float) -> float:
    """Round up, to a float."""
    return float(math.ceil(a))


def rint(a: float) -> float:
    """Round to the nearest whole number, ties to the even one, to a float."""
    return float(round(a))


def local(count: int) -> Reals:
    """Return an array that lasts until the kernel returns; the count is known while translating."""
    return np.zeros(count)


def any_lane(mask: Mask) -> bool:
    """Tell whether a truth value holds in some lane."""
    return bool(mask)


def lane(value: Any, position: int) -> Any:
    """Return the number, or the truth value, of one lane."""
    return value


def with_lane(value: Real, position: int, number: float) -> Real:
    """Return the numbers of all lanes with another one in one of them."""
    return number


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


@dataclass(frozen=True)
class Value:
    """A value in the text: its type and how it is written."""

    type: Type
    text: str


class _Unknown(Exception):  # noqa: N818, a signal and not an error
    """An expression is not known while translating."""


@dataclass
class Module:
    """The text of LLVM functions for one width of lanes.

    Parameters
    ----------
    lanes : int
        Numbers that are computed at once.
    vectors : mapping
        Functions that compute all lanes at once, by the name of the plain function.

    Attributes
    ----------
    functions : dict
        Text of each function by its name.
    declarations : set of str
        Functions of LLVM and of the C library that are used.
    """

    lanes: int = 1
    vectors: Mapping[str, VectorFunction] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    declarations: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._meanings: dict[str, tuple[Any, dict[str, Any]]] = {}
        wide = self.lanes > 1
        self.real = Type("Real", f"<{self.lanes} x double>") if wide else FLOAT
        self.mask = Type("Mask", f"<{self.lanes} x i1>") if wide else BOOL
        self.types = _PLAIN | {
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

        Parameters
        ----------
        kernel : callable
            The function.
        name : str
            Its name in the module.
        statics : mapping, optional
            Values of its `Static` parameters. A parameter of the type `Function` may be given as
            a `Value`, which names a function of the module.
        public : bool
            Whether the function can be called from outside.
        """
        meaning = kernel, dict(statics or {})
        if self._meanings.setdefault(name, meaning) != meaning:
            raise KernelError(f"'{name}' stands for two kernels")
        if name not in self.functions:
            self.functions[name] = ""  # it may be reached again before it is complete
            self.functions[name] = _Translator(self, kernel, dict(statics or {})).text(name, public)

    @property
    def text(self) -> str:
        """The text of the module."""
        return "\n".join([*sorted(self.declarations), *self.functions.values()])

    def type_of(self, annotation: Any, scope: Mapping[str, Any]) -> Type:
        """Return the type that an annotation names."""
        name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        if annotation is None:
            return VOID
        if name in self.types:
            return self.types[name]
        found = scope.get(name)
        if isinstance(found, type) and issubclass(found, Record):
            return Type(name, "ptr", None, found)
        raise KernelError(f"no type {annotation!r}")


@cache
def _fields(record: Any) -> dict[str, tuple[int, str]]:
    """Return position and annotation of each field of a record."""
    return {name: (k, kind) for k, (name, kind) in enumerate(record.__annotations__.items())}


@cache
def _structure(record: Any) -> type[ctypes.Structure]:
    """Make the ctypes structure of a record."""
    kinds = {"float": ctypes.c_double, "int": ctypes.c_int64}
    fields = [
        (name, kinds.get(kind, ctypes.c_void_p)) for name, (_, kind) in _fields(record).items()
    ]
    return type(record.__name__, (ctypes.Structure,), {"_fields_": fields})


@dataclass
class _Loop:
    """Where ``continue`` and ``break`` lead, and whether there is a ``break``."""

    again: str
    after: str
    left: bool = False


class _Translator:
    """Translates one kernel for one choice of static parameters."""

    def __init__(self, module: Module, kernel: Callable[..., Any], statics: dict[str, Any]) -> None:
        self.module = module
        self.kernel = kernel
        self.statics = statics
        self.scope: dict[str, Any] = kernel.__globals__
        self.flags = "" if self.scope.get("EXACT") else " contract"
        if self.scope.get("REORDERED"):
            self.flags = " contract reassoc"
        self.locals: dict[str, Value] = {}
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[_Loop] = []
        self.open = True  # whether the present block still lacks its end

    # Text ----------------------------------------------------------------------------------

    def text(self, name: str, public: bool) -> str:
        """Return the text of the function."""
        source = textwrap.dedent(inspect.getsource(self.kernel))
        definition = ast.parse(source).body[0]
        assert isinstance(definition, ast.FunctionDef)
        annotations = self.kernel.__annotations__
        parameters = []
        for parameter in inspect.signature(self.kernel).parameters:
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

    # Statements ----------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            getattr(self, f"_{type(statement).__name__}", self._refuse)(statement)

    def _refuse(self, node: ast.AST) -> Any:
        line = getattr(node, "lineno", 0)
        raise KernelError(f"{self.kernel.__name__}, line {line}: {ast.unparse(node)}")

    def _Pass(self, node: ast.Pass) -> None:  # noqa: N802, names of the syntax
        pass

    def _Expr(self, node: ast.Expr) -> None:  # noqa: N802
        if not isinstance(node.value, ast.Constant):
            self._value(node.value)

    def _Assign(self, node: ast.Assign) -> None:  # noqa: N802
        for target in node.targets:
            if isinstance(target, ast.Tuple):
                if not isinstance(node.value, ast.Tuple):
                    self._refuse(node)
                assert isinstance(node.value, ast.Tuple)
                values = [self._value(each) for each in node.value.elts]
                for each, value in zip(target.elts, values, strict=True):
                    self._store(each, value)
            else:
                self._store(target, self._value(node.value))

    def _AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        value = ast.BinOp(node.target, node.op, node.value)
        self._store(node.target, self._value(ast.copy_location(value, node)))

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
        value = self._converted(value, place.type)
        self._emit(f"store {value.type.text} {value.text}, ptr {place.text}, align 8")

    def _Return(self, node: ast.Return) -> None:  # noqa: N802
        if node.value is None:
            self._end("ret void")
            return
        value = self._converted(self._value(node.value), self.result)
        self._end(f"ret {value.type.text} {value.text}")

    def _If(self, node: ast.If) -> None:  # noqa: N802
        known = self._known(node.test)
        if known is not _UNKNOWN:
            self._block(node.body if known else node.orelse)
            return
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
        self.loops.append(_Loop(test, after))
        self._start_block(body, node.body, test)
        loop = self.loops.pop()
        if loop.left or self._known(node.test) is not True:
            self._start(after)

    def _For(self, node: ast.For) -> None:  # noqa: N802
        call, counter = node.iter, node.target
        if not isinstance(call, ast.Call) or node.orelse or call.keywords:
            self._refuse(node)
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        assert isinstance(counter, ast.Name)
        if call.func.id == "unrolled" or self._is_short(node):
            if _jumps(node):
                self._refuse(node)
            for value in range(*[self._static(argument) for argument in call.args]):
                self.statics[counter.id] = value
                self._block(node.body)
            self.statics.pop(counter.id, None)
            return
        bounds = [self._value(argument) for argument in call.args]
        first = bounds[0] if len(bounds) > 1 else Value(INT, "0")
        last = bounds[-1] if len(bounds) < 3 else bounds[1]
        stride = bounds[2] if len(bounds) == 3 else Value(INT, "1")
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
        self.loops.append(_Loop(again, after))
        self._start(body)
        self._store(counter, present)
        self._block(node.body)
        self.loops.pop()
        self._start(again)
        present = self._set(INT, f"load i64, ptr {position.text}")
        following = self._set(INT, f"add nsw i64 {present.text}, {stride.text}")
        self._emit(f"store i64 {following.text}, ptr {position.text}, align 8")
        self._end(f"br label %{test}")
        self._start(after)

    def _is_short(self, loop: ast.For) -> bool:
        """Tell whether a loop of known length is short enough to be written out."""
        assert isinstance(loop.iter, ast.Call)
        bounds = [self._known(argument) for argument in loop.iter.args]
        if _UNKNOWN in bounds or len(range(*bounds)) > _SHORT:
            return False
        return not _jumps(loop)

    def _Break(self, node: ast.Break) -> None:  # noqa: N802
        self.loops[-1].left = True
        self._end(f"br label %{self.loops[-1].after}")

    def _Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self._end(f"br label %{self.loops[-1].again}")

    # Expressions ---------------------------------------------------------------------------

    def _known(self, node: ast.expr) -> Any:
        """Return what an expression is while translating, or that it is unknown."""
        try:
            return self._static(node)
        except _Unknown:
            return _UNKNOWN

    def _static(self, node: ast.expr) -> Any:
        """Compute an expression of static values."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                name = each.id
                if name in self.statics:
                    if isinstance(self.statics[name], Value):
                        raise _Unknown
                elif name in self.locals or name not in self.scope | _BUILTINS:
                    raise _Unknown
            elif isinstance(each, ast.Call) and not (
                isinstance(each.func, ast.Name) and each.func.id in ("len", "range", "abs", "max")
            ):
                raise _Unknown
        code = compile(ast.Expression(ast.fix_missing_locations(node)), "<static>", "eval")
        return eval(code, dict(self.scope), self.statics)

    def _value(self, node: ast.expr) -> Value:
        """Translate an expression."""
        known = self._known(node)
        if isinstance(known, bool):
            return Value(BOOL, "true" if known else "false")
        if isinstance(known, int):
            return Value(INT, str(known))
        if isinstance(known, float):
            return Value(FLOAT, constant(known))
        found: Value = getattr(self, f"_{type(node).__name__}", self._refuse)(node)
        return found

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
            record = self._value(node.value)
            declared: Any = record.type.record
            if declared is None or node.attr not in _fields(declared):
                self._refuse(node)
            position, annotation = _fields(declared)[node.attr]
            kind = self.module.type_of(annotation, vars(inspect.getmodule(declared)))
            # All fields take eight bytes.
            return self._set(kind, f"getelementptr i64, ptr {record.text}, i64 {position}")
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

    def _Attribute(self, node: ast.Attribute) -> Value:  # noqa: N802
        place = self._place(node)
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
        parts = [self._value(each) for each in node.values]
        result = parts[0]
        for part in parts[1:]:
            result = self._both(result, part, word)
        return result

    def _both(self, a: Value, b: Value, word: str) -> Value:
        a, b = self._same(a, b)
        return self._set(a.type, f"{word} {a.type.text} {a.text}, {b.text}")

    def _IfExp(self, node: ast.IfExp) -> Value:  # noqa: N802
        known = self._known(node.test)
        if known is not _UNKNOWN:
            return self._value(node.body if known else node.orelse)
        return self._choice([node.test, node.body, node.orelse])

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

    def _Call(self, node: ast.Call) -> Value:  # noqa: N802
        target = self._known(node.func)
        if node.keywords:
            self._refuse(node)
        if target is _UNKNOWN:
            return self._equation(self._value(node.func), node)
        if target is where:
            return self._choice(node.args)
        if target is local:
            return self._local(self._static(node.args[0]))
        if target is any_lane:
            return self._any(self._value(node.args[0]))
        if target in (lane, with_lane):
            return self._one_lane(*[self._value(argument) for argument in node.args])
        if target is float:
            return self._converted(self._value(node.args[0]), FLOAT)
        if target is int:
            value = self._value(node.args[0])
            return self._set(INT, f"fptosi double {value.text} to i64")
        if target in INTRINSICS:
            return self._intrinsic(*INTRINSICS[target], node)
        if not inspect.isfunction(target):
            self._refuse(node)
        return self._kernel(target, node)

    def _local(self, count: int) -> Value:
        """Make an array on the stack; LLVM keeps small ones in registers."""
        place = "%" + self._fresh("array")
        self.entry.append(f"  {place} = alloca [{count} x {self.module.real.text}], align 64")
        return Value(self.module.types["Reals"], place)

    def _any(self, mask: Value) -> Value:
        if mask.type is BOOL:
            return mask
        lanes = self.module.lanes
        name = f"llvm.vector.reduce.or.v{lanes}i1"
        self.module.declarations.add(f"declare i1 @{name}({mask.type.text}) #1")
        return self._set(BOOL, f"call i1 @{name}({mask.type.text} {mask.text})")

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

    def _intrinsic(self, name: str, arity: int, node: ast.Call) -> Value:
        values = [self._value(argument) for argument in node.args]
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
        statics: dict[str, Any] = {}
        arguments = []
        for name, argument in zip(inspect.signature(kernel).parameters, node.args, strict=True):
            known = self.statics.get(argument.id) if isinstance(argument, ast.Name) else None
            if annotations[name] == "Static" or isinstance(known, int):
                statics[name] = self._static(argument)
                continue
            value = self._value(argument)
            if value.type is FUNCTION and value.text.startswith("@"):
                statics[name] = value
                continue
            kind = self.module.type_of(annotations[name], scope)
            value = self._converted(value, kind)
            arguments.append(f"{kind.text} {value.text}")
        label = kernel.__name__ + "".join(f".{_label(value)}" for value in statics.values())
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
        if value.type is kind or value.type.text == kind.text == "ptr":
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


def _jumps(loop: ast.For) -> bool:
    """Tell whether a loop contains what a loop that is written out cannot do."""
    return any(isinstance(each, (ast.Break, ast.Continue)) for each in ast.walk(loop))


_UNKNOWN = object()
_SHORT = 8  # rounds
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


def constant(value: float) -> str:
    """Write a number exactly as LLVM reads it: by its bits."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


def _label(value: Any) -> str:
    """Write a static value as a part of a name."""
    if isinstance(value, Value):
        return value.text[1:]
    name = getattr(value, "name", value)
    return "".join(c if c.isalnum() else "_" for c in str(name))


__all__ = [
    "Floats",
    "Function",
    "Functions",
    "Ints",
    "KernelError",
    "Mask",
    "Module",
    "Real",
    "Reals",
    "Record",
    "Static",
    "Type",
    "Value",
    "any_lane",
    "ceil",
    "constant",
    "lane",
    "local",
    "nextafter",
    "power",
    "rint",
    "sqrt",
    "unrolled",
    "where",
    "with_lane",
]
