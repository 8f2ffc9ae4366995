"""Values of kernels as they are written in C, and what is known of memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from flexure.solvers.native.language.reading import Named

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
