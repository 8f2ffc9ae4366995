"""Values of kernels as they are written in C, and what is known of memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flexure.solvers.native.language.language import is_structure
from flexure.solvers.native.language.reading import Named

#: Types of C of elements, by the types of arrays.
ELEMENTS = {"Floats": "double", "Reals": "double", "Ints": "int64_t"}
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
    """What is known of the fields of structures.

    Attributes
    ----------
    numbers : dict
        Those that are always the same.
    tables : dict
        Names of constant arrays.
    functions : dict
        Fields that are functions: a name, or a kernel and the statics that it gets from those of
        the kernel that calls it.
    sizes : dict
        Lengths of arrays.
    rotating : frozenset of FieldKey
        Arrays that are exchanged.
    aliases : dict
        Names of the parameters that are the same array, wherever a field is read.
    ignored : frozenset of FieldKey
        Numbers that nothing asks for.
    used : dict
        The fields that have been read or written.
    """

    numbers: dict[FieldKey, float] = field(default_factory=dict)
    tables: dict[FieldKey, str] = field(default_factory=dict)
    functions: dict[FieldKey, Any] = field(default_factory=dict)
    sizes: dict[FieldKey, int] = field(default_factory=dict)
    rotating: frozenset[FieldKey] = frozenset()
    aliases: dict[FieldKey, str] = field(default_factory=dict)
    ignored: frozenset[FieldKey] = frozenset()
    used: dict[FieldKey, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """An expression of C.

    Attributes
    ----------
    text : str
        How it is written.
    kind : object
        Its type: a name as annotations have it, or a structure.
    compound : bool
        Whether it needs parentheses as an operand.
    start : str
        For an array, where it begins in what the text names.
    root : str
        For an array or a structure, the parameter or local name that leads to it.
    pointer : bool
        For a structure, whether the text is a pointer to it.
    """

    text: str
    kind: Any
    compound: bool = False
    start: str = ""
    root: str = ""
    pointer: bool = False

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


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def is_literal(text: str) -> bool:
    """Tell whether a text is a whole number."""
    return text.removeprefix("-").isdigit()


def sum_of(a: str, b: str) -> str:
    """Add positions."""
    if not a or a == "0":
        return b
    if is_literal(a) and is_literal(b):
        return str(int(a) + int(b))
    a, b = (f"({each})" if " " in each else each for each in (a, b))
    return f"{a} + {b}"


def plain_name(name: str) -> str:
    """Return a name of a function as C takes it."""
    return name.replace(".", "_")


def variable_name(name: str) -> str:
    """Return a name of a variable as C takes it."""
    return f"{name}_" if name in ("double", "float", "int", "long", "short", "signed") else name
