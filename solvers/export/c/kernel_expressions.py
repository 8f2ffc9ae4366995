"""Expressions of kernels as C, and what is known of the memory that they read."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexure.solvers.export.c.equation_functions import number
from flexure.solvers.export.kernel_text import ELEMENTS, Code, KernelText, is_literal
from flexure.solvers.native.language.expressions import label_of
from flexure.solvers.native.language.language import (
    ceil,
    exponent,
    is_structure,
    nextafter,
    power,
    rint,
    scaled,
    sqrt,
    types_of,
)
from flexure.solvers.native.language.reading import (
    UNKNOWN,
    KernelError,
    Named,
    NotKnown,
    parameters_of,
)

if TYPE_CHECKING:
    from flexure.solvers.export.c.kernel_functions import CModule


PLAIN = {"float": "double", "Real": "double", "int": "int64_t", "bool": "bool", "Mask": "bool"}

#: A field: the structure, and the name.
FieldKey = tuple[Any, str]


class Fixed(int):
    """A number that memory always has; a loop up to it is no reason to write it out."""


@dataclass(frozen=True)
class FunctionName(Named):
    """A function ``f(t, x, env, out)``, or one of a model, by its name."""

    name: str


@dataclass
class Memory:
    """What is known of the fields of structures."""

    numbers: dict[FieldKey, float] = field(default_factory=dict)  # those that are always the same
    tables: dict[FieldKey, str] = field(default_factory=dict)  # names of constant arrays
    # Fields that are functions: a name, or a kernel and the statics that it gets from those of the
    # kernel that calls it.
    functions: dict[FieldKey, Any] = field(default_factory=dict)
    sizes: dict[FieldKey, int] = field(default_factory=dict)  # lengths of arrays
    rotating: frozenset[FieldKey] = frozenset()  # arrays that are exchanged
    # Names of the parameters that are the same array, wherever a field is read.
    aliases: dict[FieldKey, str] = field(default_factory=dict)
    ignored: frozenset[FieldKey] = frozenset()  # numbers that nothing asks for
    # The fields that have been read or written.
    used: dict[FieldKey, None] = field(default_factory=dict)


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return re.findall(r"\w+", text)


def plain_name(name: str) -> str:
    """Return a name of a function as C takes it."""
    return name.replace(".", "_")


def variable_name(name: str) -> str:
    """Return a name of a variable as C takes it."""
    return f"{name}_" if name in ("double", "float", "int", "long", "short", "signed") else name


_CALLS: dict[Any, str] = {
    abs: "fabs",
    sqrt: "sqrt",
    ceil: "ceil",
    rint: "rint",
    power: "pow",
    nextafter: "nextafter",
    math.sin: "sin",
    math.cos: "cos",
    math.fmod: "fmod",
    math.copysign: "copysign",
}
_WHOLE = {ast.FloorDiv: "/", ast.Mod: "%"}


class _Fields:
    """A structure, of whose fields only those can be read that memory knows."""

    def __init__(self, memory: Memory, structure: Any) -> None:
        self._memory, self._structure = memory, structure

    def __getattr__(self, name: str) -> Any:
        kind = types_of(self._structure).get(name)
        if is_structure(kind):
            return _Fields(self._memory, kind)
        if (self._structure, name) not in self._memory.numbers:
            raise NotKnown
        return self._memory.numbers[self._structure, name]


class Expressions(KernelText):
    """Writes the expressions of one kernel, for one choice of static parameters."""

    calls = _CALLS
    indent = "  "

    def __init__(
        self, module: CModule, kernel: Callable[..., Any], statics: dict[str, Any]
    ) -> None:
        super().__init__(kernel, statics)
        self.module = module
        self.memory = module.memory
        self.changed: frozenset[str] = frozenset()  # names that lead to what the function changes
        self.variables: list[str] = []

    def _change(self, code: Code) -> None:
        """Note that something is changed."""
        if code.root:
            self.changed |= {code.root}

    # What is known -------------------------------------------------------------------------

    def _known(self, node: ast.expr) -> Any:
        known = super()._known(node)
        if known is UNKNOWN and isinstance(node, ast.BoolOp) and self._has_fields(node):
            decisive = isinstance(node.op, ast.Or)  # fields have no effects: any part may decide
            if decisive in [self._known(part) for part in node.values]:
                return decisive
        return known

    def _static(self, node: ast.expr) -> Any:
        """Compute an expression; fields may be known, too."""
        found = super()._static(node)
        if isinstance(found, _Fields):
            raise NotKnown
        return found

    def _stand_in(self, name: str) -> Any:
        kind = getattr(self.locals[name], "kind", None)
        return _Fields(self.memory, kind) if is_structure(kind) else super()._stand_in(name)

    def _structure_of(self, node: ast.expr) -> Any:
        """Return the structure that an expression is, or None."""
        if isinstance(node, ast.Name):
            known = self.locals.get(node.id)
            return known.kind if known is not None and is_structure(known.kind) else None
        if isinstance(node, ast.Attribute):
            whole = self._structure_of(node.value)
            kind = types_of(whole).get(node.attr) if whole is not None else None
            return kind if is_structure(kind) else None
        return None

    def _is_written_out(self, loop: ast.For) -> bool:
        """Return whether a loop shall be unrolled, for more than what is known of memory alone."""
        assert isinstance(loop.iter, ast.Call)
        assert isinstance(loop.iter.func, ast.Name)
        bounds = [self._known(argument) for argument in loop.iter.args]
        if UNKNOWN in bounds:
            return False
        if len(range(*bounds)) == 0:
            return True
        names = [each.id for each in ast.walk(loop.iter) if isinstance(each, ast.Name)]
        if self._has_fields(loop.iter) or Fixed in [type(self.statics.get(n)) for n in names]:
            return False
        return loop.iter.func.id == "unrolled"

    def _has_fields(self, node: ast.expr) -> bool:
        """Return whether fields of structures are read in an expression."""
        return any(
            isinstance(each, ast.Attribute) and self._structure_of(each.value) is not None
            for each in ast.walk(node)
        )

    # Expressions ---------------------------------------------------------------------------

    def _constant(self, known: float) -> Code:
        if isinstance(known, bool):
            return Code("true" if known else "false", "bool")
        return Code(str(known), "int") if isinstance(known, int) else Code(number(known), "float")

    def _as(self, value: Code, kind: Any) -> Code:
        """Convert a number."""
        wanted = {"Real": "float", "Mask": "bool"}.get(kind, kind)
        found = {"Real": "float", "Mask": "bool"}.get(value.kind, value.kind)
        if wanted == found:
            return value
        if wanted == "float" and found == "int":
            if is_literal(value.text):
                return Code(number(float(value.text)), "float")
            return Code(f"(double){value.operand}", "float")
        raise KernelError(f"{self.kernel.__name__}: {value.text} is {found}, not {wanted}")

    def _Name(self, node: ast.Name) -> Code:  # noqa: N802
        if isinstance(self.statics.get(node.id), FunctionName):
            return Code("", self.statics[node.id])
        found: Code = super()._Name(node)
        return found

    def _Attribute(self, node: ast.Attribute) -> Code:  # noqa: N802
        whole, kind = self._field(node)
        memory, key = self.memory, (whole.kind, node.attr)
        if key in memory.functions:
            found = memory.functions[key]
            name = found if isinstance(found, str) else found(self.module, self.statics)
            return Code("", FunctionName(name))
        if key in memory.aliases:
            return self.locals[memory.aliases[key]]  # type: ignore[no-any-return]
        if key in memory.tables:
            return Code(memory.tables[key], kind)
        if key not in memory.ignored:
            memory.used[key] = None
        text = whole.member(node.attr)
        if key in memory.rotating:
            return Code(whole.member("rooms"), kind, start=text, root=whole.root)
        if kind in ELEMENTS and key not in memory.sizes:
            raise KernelError(f"{self.kernel.__name__}: no size of {key[0].__name__}.{key[1]}")
        return Code(text, kind, root=whole.root)

    def _BinOp(self, node: ast.BinOp) -> Code:  # noqa: N802
        if type(node.op) not in _WHOLE:
            return super()._BinOp(node)
        left, right = self._value(node.left), self._value(node.right)
        if not left.kind == right.kind == "int":
            self._refuse(node)
        return Code(f"{left.operand} {_WHOLE[type(node.op)]} {right.operand}", "int", True)

    def _whole(self, value: Code) -> Code:
        return Code(f"(int64_t){value.operand}", "int")

    def _element(self, array: Code, text: str) -> Code:
        if array.kind == "Functions":
            return Code("", FunctionName(text))
        return super()._element(array, text)

    def _computed(self, target: Any, nodes: list[ast.expr]) -> Any:
        if target is float:
            return self._as(self._value(nodes[0]), "float")
        if target is int:
            return Code(f"(int64_t){self._value(nodes[0]).operand}", "int")
        if target is scaled:
            value, power_of_two = (self._value(each) for each in nodes)
            return Code(f"ldexp({value.text}, (int){power_of_two.operand})", "float")
        if target is exponent:
            return Code(f"(int64_t)ilogb({self._value(nodes[0]).text})", "int")
        return super()._computed(target, nodes)

    def _local(self, count: int) -> Code:
        """Make an array."""
        name = f"local{len(self.variables)}"
        self.variables.append(f"  double {name}[{count}];")
        return Code(name, "Floats")

    def _arguments(
        self, kernel: Callable[..., Any], node: ast.Call
    ) -> tuple[dict[str, Any], dict[str, ast.expr]]:
        """Hand on functions, and numbers that are known, as static values."""
        statics, others = super()._arguments(kernel, node)
        for name, argument in list(others.items()):
            known = self._known(argument)
            whole = kernel.__annotations__[name] == "int" and self._has_fields(argument)
            if kernel.__annotations__[name] == "Function":
                statics[name] = self._value(argument).kind
                del others[name]
            elif whole and known is not UNKNOWN:
                statics[name] = Fixed(known)
                del others[name]
        return statics, others

    def _kernel(self, kernel: Callable[..., Any], node: ast.Call) -> Code:
        """Call another kernel, translated for the static values it is called with."""
        statics, others = self._arguments(kernel, node)
        order = parameters_of(kernel)
        labels = [label_of(statics[each]) for each in order if each in statics]
        name = "_".join([kernel.__name__, *labels])
        self.module.translate(kernel, name, statics)
        arguments = []
        for each, is_changed in self.module.parameters.get(name, {}).items():
            value = self._value(others[each])
            kind = kernel.__annotations__[each]
            if is_structure(value.kind) or value.kind in ELEMENTS:
                if is_changed:
                    self._change(value)
                arguments.append(value.address)
            else:
                arguments.append(self._as(value, kind).text)
        result = self._kind(kernel.__annotations__["return"])
        if result is None and not any(self.module.parameters[name].values()):
            return Code("", None)  # it does nothing for this model
        always = re.search(r"\n{\n  return (true|false);\n}\n\n$", self.module.functions[name])
        if always is not None:
            return Code(always[1], "bool")
        return Code(f"{plain_name(name)}({', '.join(arguments)})", result)

    def _equation(self, function: Code, node: ast.Call) -> Code:
        """Call a function ``f(t, x, env, out)``, or a step function ``f(run)``."""
        if not isinstance(function.kind, FunctionName):
            raise KernelError(f"{self.kernel.__name__}: a call of {function.text}")
        values = [self._value(each) for each in node.args]
        name = function.kind.name
        if len(values) == 1:
            self._change(values[0])
            return Code(f"{name}({values[0].address})", "float")
        for value in values[2:]:
            self._change(value)
        arguments = [values[0].text, *(value.address for value in values[1:])]
        return Code(f"{name}({', '.join(arguments)})", None)
