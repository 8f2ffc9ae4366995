"""Kernels as functions of C: the third target of their translation.

`flexure.solvers.native.language.language` describes the language of kernels. There is one lane.
Structures become structures of C without pointers: arrays are in them, so that a copy of the memory
of an instance is another instance. Fields that a `Memory` knows become part of the code: numbers,
constant tables or functions. So only what a model needs is written, and the fields that
are used are the memory that it takes.

Arrays that kernels exchange by assigning fields, as a step does with the states at its ends, are
rows of one matrix; such a field holds where its row begins.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from flexure.solvers.export.c.kernel_expressions import (
    PLAIN,
    Expressions,
    FieldKey,
    Fixed,
    FunctionName,
    Memory,
    plain_name,
    variable_name,
    words_of,
)
from flexure.solvers.export.kernel_text import (
    ELEMENTS,
    Code,
    count_assignments,
    increment,
    is_literal,
)
from flexure.solvers.native.language.language import is_structure, types_of
from flexure.solvers.native.language.reading import (
    KernelError,
    KernelModule,
    definition_of,
    parameters_of,
)


@dataclass
class CModule(KernelModule):
    """The text of functions of C."""

    prefix: str  # with what the names of types begin
    memory: Memory  # what is known of structures
    whole: str  # the structure that is called like the model
    declarations: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, dict[str, bool]] = field(default_factory=dict)

    def translate(
        self,
        kernel: Callable[..., Any],
        name: str,
        statics: Mapping[str, Any] | None = None,
        public: bool = False,
    ) -> None:
        """Add a kernel, and the kernels that it calls, for values of its static parameters.

        A public one keeps all its parameters, and has a comment.
        """

        def write(known: dict[str, Any]) -> str:
            changed: frozenset[str] = frozenset()
            while True:  # until it is known what the function changes
                writer = _FunctionWriter(self, kernel, dict(known), changed)
                text = writer.text(name, public)
                if writer.changed <= changed:
                    return text
                changed |= writer.changed

        is_new = name not in self.functions
        self.add(kernel, name, statics, write)
        if is_new:  # behind those that it calls
            self.functions[name] = self.functions.pop(name)

    @property
    def text(self) -> str:
        """The text of all functions, each behind those that it calls."""
        kept = dict(self.functions)
        while True:
            calls = Counter(w for text in kept.values() for w in {*re.findall(r"(\w+)\(", text)})
            unused = [each for each in kept if calls[plain_name(each)] < 2]
            unused = [each for each in unused if each not in self.declarations]
            if not unused:
                return "".join(kept.values())
            for each in unused:
                del kept[each]

    def type_of(self, kind: Any) -> str:
        """Return the name of a type that is no array."""
        if is_structure(kind):
            name = kind.__name__
            return self.prefix if name == self.whole else f"{self.prefix}_{name}"
        return PLAIN[kind]


def structures_text(module: CModule, whole: Any) -> str:
    """Write a structure with the fields that are used, behind those that it contains."""
    memory = module.memory
    texts: list[str] = []
    members: list[str] = []
    rows: list[FieldKey] = []
    for name, kind in types_of(whole).items():
        key = whole, name
        if is_structure(kind):
            inside = structures_text(module, kind)
            if inside:
                texts.append(inside)
                members.append(f"{module.type_of(kind)} {name}")
        elif key in memory.used:
            if key in memory.rotating:
                rows.append(key)
                members.append(f"int64_t {name}")
            elif kind in ELEMENTS:
                members.append(f"{ELEMENTS[kind]} {name}[{memory.sizes[key]}]")
            else:
                members.append(f"{module.type_of(kind)} {name}")
    if rows:
        members.append(f"double rooms[{sum(memory.sizes[key] for key in rows)}]")
    if not members:
        return ""
    body = "".join(f"  {each};\n" for each in members)
    name = module.type_of(whole)
    return f"{''.join(texts)}typedef struct {{\n{body}}} {name};\n\n"


class _FunctionWriter(Expressions):
    """Writes one kernel for one choice of static parameters."""

    def __init__(
        self,
        module: CModule,
        kernel: Callable[..., Any],
        statics: dict[str, Any],
        changed: frozenset[str],
    ) -> None:
        super().__init__(module, kernel, statics)
        self.given = changed  # names that are known to lead to what the function changes
        self.copied: set[str] = set()  # parameters that are assigned to
        self.result: Any = None
        definition = definition_of(kernel)
        given = parameters_of(kernel)
        self.stores |= {each: self.stores.get(each, 0) + 1 for each in given}
        self.inner = _inner_names(definition) - {*given}
        self.exchanged = _exchanged(definition)

    # The function --------------------------------------------------------------------------

    def text(self, name: str, public: bool) -> str:
        """Return the text of the function."""
        annotations = self.kernel.__annotations__
        wanted = {}
        for parameter in parameters_of(self.kernel):
            if parameter not in self.statics:
                kind = self._kind(annotations[parameter])
                wanted[parameter] = kind
                pointer = is_structure(kind)
                self.locals[parameter] = Code(parameter, kind, root=parameter, pointer=pointer)
                if kind in PLAIN and self.stores[parameter] > 1:  # parameters keep their values
                    self.copied.add(parameter)
                    line = f"  {self.module.type_of(kind)} {parameter} = {parameter}_given;"
                    self.variables.append(line)
        self.result = self._kind(annotations["return"])
        self._block(definition_of(self.kernel).body)
        self._leave_out_unused()
        body = "".join(f"{line}\n" for line in [*self.variables, *self.lines])
        words = set(words_of(body))
        unused = [each for each in wanted if each not in words]
        if not public:
            wanted = {each: kind for each, kind in wanted.items() if each not in unused}
            unused = []
        self.module.parameters[name] = {each: each in self.changed for each in wanted}
        parameters = ", ".join(self._declared(each, kind) for each, kind in wanted.items())
        result = "void" if self.result is None else self.module.type_of(self.result)
        head = f"{result} {plain_name(name)}({parameters or 'void'})"
        silent = "".join(f"  (void){each};\n" for each in unused)
        doc = (inspect.getdoc(self.kernel) or "").split("\n")[0]
        if public:
            self.module.declarations[name] = f"/* {doc} */\n{head};\n"
        static = "" if public else "static "
        return f"/* {doc} */\n{static}{head}\n{{\n{silent}{body}}}\n\n"

    def _leave_out_unused(self) -> None:
        """Leave out variables that nothing reads for this model."""
        acting = {
            plain_name(k) for k, given in self.module.parameters.items() if any(given.values())
        }
        while True:
            plain = [re.sub(r"(\.|->)\w+", "", line) for line in self.lines]
            counts = Counter(word for line in plain for word in words_of(line))
            for at, line in enumerate(self.lines):
                found = re.fullmatch(r" *[\w *]+[ *](\w+) = (.*);", line)
                if found and counts[found[1]] == 1 and not acting & {*words_of(found[2])}:
                    del self.lines[at]
                    break
            else:
                return

    def _declared(self, name: str, kind: Any) -> str:
        """Write the declaration of a parameter."""
        constant = "" if name in self.changed else "const "
        if is_structure(kind):
            return f"{constant}{self.module.type_of(kind)} *{name}"
        if kind in ELEMENTS:
            return f"{constant}{ELEMENTS[kind]} {name}[]"
        return f"{self.module.type_of(kind)} {name}{'_given' if name in self.copied else ''}"

    # Statements ----------------------------------------------------------------------------

    def _Expr(self, node: ast.Expr) -> None:  # noqa: N802, names of the syntax
        if not isinstance(node.value, ast.Constant):
            found = self._value(node.value)
            if found.text:
                void = "" if found.kind is None else "(void)"
                self._line(f"{void}{found.text};")

    def _kept(self, value: Code) -> Code:
        """Keep a number in a variable of its own."""
        if is_literal(value.text):
            return value
        name = f"kept{len(self.lines)}_{len(self.variables)}"
        self._line(f"const {self.module.type_of(value.kind)} {name} = {value.text};")
        return Code(name, value.kind)

    def _store(self, target: ast.expr, value: Code) -> None:
        if isinstance(target, ast.Name):
            self._store_local(target.id, value)
            return
        place = getattr(self, f"_{type(target).__name__}", self._refuse)(target)
        self._change(place)
        if isinstance(target, ast.Attribute):
            key = self._structure_of(target.value), target.attr
            if key in self.memory.ignored or key in self.memory.numbers:
                return
            if value.kind in ELEMENTS:  # of rows, the places where they begin are exchanged
                if key not in self.memory.rotating:
                    self._refuse(target)
                place, value = Code(place.start, "int"), Code(value.start, "int")
        self._line(f"{place.text} = {self._as(value, place.kind).text};")

    def _store_local(self, name: str, value: Code) -> None:
        """Assign to a local name, unless it is another name of something."""
        single = self.stores[name] == 1
        fixed = value.kind in ELEMENTS and (not value.start or is_literal(value.start))
        if single and (is_structure(value.kind) or fixed or isinstance(value.kind, FunctionName)):
            self.locals[name] = value
            return
        if single and value.kind == "int" and is_literal(value.text):
            self.statics[name] = Fixed(value.text)
            return
        if name in self.exchanged and value.kind in ELEMENTS:
            self.locals[name] = Code(value.text, value.kind, start=f"{name}_start", root=value.root)
            self._line(f"const int64_t {name}_start = {value.start};")
            return
        if name in self.locals and name not in self.inner:
            place: Code = self.locals[name]
            self._line(f"{place.text} = {self._as(value, place.kind).text};")
            return
        text = variable_name(name)
        if value.kind in ELEMENTS:
            if not single:
                raise KernelError(f"{self.kernel.__name__}: '{name}' is two arrays")
            constant = "" if text in self.given else "const "
            self.locals[name] = Code(text, value.kind, root=text)
            self._line(f"{constant}{ELEMENTS[value.kind]} *const {text} = {value.address};")
            if text in self.given:
                self._change(value)
            return
        kind = self.module.type_of(value.kind)
        self.locals[name] = Code(text, value.kind)
        if name in self.inner or self.depth == 1:
            constant = "const " if name in self.inner else ""
            self._line(f"{constant}{kind} {text} = {value.text};")
            return
        zero = {"bool": "false", "double": "0.0"}.get(kind, "0")
        self.variables.append(f"  {kind} {text} = {zero};")
        self._line(f"{text} = {value.text};")

    def _Return(self, node: ast.Return) -> None:  # noqa: N802
        if node.value is None:
            self._line("return;")
        else:
            self._line(f"return {self._as(self._value(node.value), self.result).text};")
        self.ended = True

    def _forget(self, before: Mapping[str, Any]) -> None:
        for name in [each for each in self.locals if each not in before and each in self.inner]:
            del self.locals[name]

    def _round(self, statements: list[ast.stmt]) -> None:
        at = len(self.lines)
        self._inside(statements)
        inside = self.lines[at:]
        if any(" = " in line and line.strip().split(" ")[0] == "const" for line in inside):
            self.lines[at:] = [f"{'  ' * self.depth}{{", *inside, f"{'  ' * self.depth}}}"]
        else:
            self.lines[at:] = [line.removeprefix("  ") for line in inside]

    def _count(self, node: ast.For, counter: ast.Name, bounds: list[ast.expr]) -> None:
        first, last, stride = self._range(bounds)
        name = counter.id
        text = variable_name(name) if name != "_" else "round"
        end = last.operand
        if not end.isalnum() or {*words_of(end)} & {*count_assignments(node)}:
            end = f"{text}_end_{len(self.lines)}"
            self._line(f"const int64_t {end} = {last.text};")
        order = "<" if stride > 0 else ">"
        step = increment(text, stride)
        head = f"for (int64_t {text} = {first}; {text} {order} {end}; {step}) {{"
        before, at = dict(self.locals), len(self.lines)
        self.locals[name] = Code(text, "int")
        self._inside(node.body)
        self.locals.pop(name, None)
        if name in before:
            self.locals[name] = before[name]
        if len(self.lines) > at:
            self.lines.insert(at, f"{'  ' * self.depth}{head}")
            self._line("}")


@cache
def _inner_names(definition: ast.FunctionDef) -> frozenset[str]:
    """Return the names that are assigned once, where the block is in which they are used."""
    counts, once = _occurrences(definition), count_assignments(definition)
    found: set[str] = set()
    for node in ast.walk(definition):
        for statements in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(statements, list):
                block = _occurrences(ast.Module(statements, []))
                for each in statements:
                    if isinstance(each, (ast.Assign, ast.AnnAssign)):
                        found |= {k for k in count_assignments(each) if block[k] == counts[k]}
    return frozenset(each for each in found if once[each] == 1)


def _occurrences(node: ast.AST) -> Counter[str]:
    return Counter(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


@cache
def _exchanged(definition: ast.FunctionDef) -> frozenset[str]:
    """Return the names of arrays that are assigned to fields."""
    return frozenset(
        each.value.id
        for each in ast.walk(definition)
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Attribute)
        and isinstance(each.value, ast.Name)
    )
