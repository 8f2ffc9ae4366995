"""Kernels: loops written in a small part of Python and translated to LLVM IR, JavaScript or C.

The loops of native integration (steps, events, ensembles) are ordinary Python functions over NumPy
arrays, so that they can be read, checked and run like any other; the module ``translation`` turns
such a function, and every kernel that it calls, into the text of LLVM functions, and
``kernel_functions`` of `flexure.solvers.export.javascript` and of `flexure.solvers.export.c` into
functions of JavaScript and C. Their common part is in ``reading``. A kernel may contain:

* parameters and results annotated with the types below;
* assignments to local names, to elements ``a[i]`` and to fields ``run.step.time``; ``a[i:]`` is the
  rest of an array; a local name keeps the type of its first assignment;
* arithmetic, comparisons, ``and or not``, ``a if c else b``, `where`, `any_lane`, `lanes_in`,
  `lane`, `with_lane`, and the other functions below;
* ``if``, ``while``, ``for i in range(...)``, ``for j in unrolled(...)``, ``break continue return``;
* calls of other kernels, and of functions held in parameters, fields and arrays.

Expressions that depend only on global names, on parameters of the type `Static` and on the counters
of unrolled loops are computed while translating: coefficients become constants of the code, and an
``if`` on them keeps one branch. A short loop of known length is unrolled, and so are those over
`unrolled`, of any known length. What is known goes on into the kernels that are called, whatever
the types of their parameters say.

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
a `Structure`  a C structure with the fields that the class declares
=============  ===================================================================================

A field may be a `Structure` itself. It is then a part of the structure around it, so that the place
of ``run.step.time`` is as well known while translating as that of ``run.budget``. Such a part is
passed to kernels and given a local name like any structure; only its fields can be assigned::

    class Step(Structure):
        time: float
        x: Floats


    class Run(Structure):
        step: Step
        budget: int
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = float
Mask: TypeAlias = bool
Floats: TypeAlias = NDArray[np.float64]
Reals: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Function: TypeAlias = Callable[..., Any]
Functions: TypeAlias = Any
Static: TypeAlias = Any


class Structure:
    """Base of structures that kernels share with Python; a subclass annotates its fields.

    Each field takes eight bytes, or those of the structure that it is.
    """

    @classmethod
    def structure(cls) -> type[ctypes.Structure]:
        """Return the same structure for ctypes; `new` makes one whose parts are attributes."""
        structure: Any = cls
        return _structure(structure)

    @classmethod
    def new(cls) -> Any:
        """Return a structure of zeros, whose fields are read and written as attributes."""
        fields = cls.structure()()
        _show_parts(cls, fields)
        return fields


@cache
def types_of(structure: Any) -> dict[str, Any]:
    """Return the type of each field: its name, or the structure that the field is."""
    scope = vars(sys.modules[structure.__module__])
    annotations = structure.__annotations__
    return {
        name: scope[kind] if is_structure(scope.get(kind)) else kind
        for name, kind in annotations.items()
    }


@cache
def parts_of(structure: Any) -> dict[str, type[Structure]]:
    """Return the fields that are structures themselves."""
    return {name: kind for name, kind in types_of(structure).items() if is_structure(kind)}


def is_structure(kind: object) -> TypeGuard[type[Structure]]:
    """Return whether something is a type of structures."""
    return isinstance(kind, type) and issubclass(kind, Structure)


@cache
def fields_of(structure: Any) -> dict[str, tuple[int, Any]]:
    """Return where each field is, in units of eight bytes, and its type."""
    layout = _structure(structure)
    return {
        name: (getattr(layout, _hidden(name, kind)).offset // 8, kind)
        for name, kind in types_of(structure).items()
    }


@cache
def _structure(structure: Any) -> type[ctypes.Structure]:
    """Make the structure of ctypes."""
    numbers = {"float": ctypes.c_double, "int": ctypes.c_int64}
    fields = [
        (
            _hidden(name, kind),
            kind.structure() if is_structure(kind) else numbers.get(kind, ctypes.c_void_p),
        )
        for name, kind in types_of(structure).items()
    ]
    return type(structure.__name__, (ctypes.Structure,), {"_fields_": fields})


def _hidden(name: str, kind: object) -> str:
    """Return the name of a field for ctypes; that of a part is for what `_show_parts` makes."""
    return f"_{name}" if is_structure(kind) else name


def _show_parts(structure: Any, fields: Any) -> None:
    """Make each part an attribute; ctypes makes a new object at every look, which takes long."""
    for name, kind in parts_of(structure).items():
        part = getattr(fields, _hidden(name, kind))
        _show_parts(kind, part)
        setattr(fields, name, part)


# What kernels may call ---------------------------------------------------------------------


def where(condition: Mask, a: Real, b: Real) -> Real:
    """Return the first value where the condition holds, else the second; per lane."""
    return a if condition else b


def unrolled(*bounds: int) -> Iterable[int]:
    """Count like ``range``, in a loop that is written out if it is of known length."""
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


def scaled(a: float, k: int) -> float:
    """Return a number times a power of two, rounded once; only C has it."""
    return math.ldexp(a, k)


def exponent(a: float) -> int:
    """Return k for a positive number from ``2**k`` up to twice that; only C has it."""
    return math.frexp(a)[1] - 1


def local(count: int) -> Reals:
    """Return an array that lasts until the kernel returns; the count is known while translating."""
    return np.zeros(count)


def any_lane(mask: Mask) -> bool:
    """Return whether a truth value holds in some lane."""
    return bool(mask)


def lanes_in(mask: Mask) -> int:
    """Return in how many lanes a truth value holds."""
    return int(mask)


def lane(value: Any, position: int) -> Any:
    """Return the number, or the truth value, of one lane."""
    return value


def with_lane(value: Real, position: int, number: float) -> Real:
    """Return the numbers of all lanes with another one in one of them."""
    return number
