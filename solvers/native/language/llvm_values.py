"""Types and values in the text of LLVM functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.solvers.native.language.reading import Named


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
