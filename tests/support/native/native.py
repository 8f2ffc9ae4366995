"""Native code in tests: where it can be made, and the numbers that functions of it give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from flexure.diagrams import scalars
from flexure.diagrams.scalars.expressions.expression import reachable
from flexure.diagrams.values.symbolic_values import STATE, TIME
from flexure.solvers.native.emission.emission import Environment, Place, emit
from flexure.solvers.native.language.language import is_structure, types_of
from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm.library import Library, VectorFunction, available, care, cut
from tests.support.tiers import by_tier

FloatArray = npt.NDArray[np.float64]

needs_llvmlite = pytest.mark.skipif(
    not available(), reason="native code needs the package llvmlite, which is not installed"
)

_POINTER = ctypes.c_void_p
_BEYOND = -77.0  # what stands behind the end of arrays that native code writes


def empty(structure: Any) -> Any:
    """Return a structure of zeros with arrays of NumPy, for kernels that Python runs."""
    found = SimpleNamespace()
    for name, kind in types_of(structure).items():
        value: Any = 0
        if is_structure(kind):
            value = empty(kind)
        elif kind in ("Reals", "Floats"):
            value = np.zeros(40)
        elif kind == "Ints":
            value = np.zeros(3, dtype=np.int64)
        setattr(found, name, value)
    return found


class Compiled:
    """Expressions of one trace as a native function, compiled as in runs or in sweeps.

    Parameters
    ----------
    expressions : sequence
        Expressions, or numbers.
    lanes : int
        Numbers that are computed at once.
    chunk : int
        Operations per chunk.
    vectors : mapping, optional
        Functions that compute all lanes at once.
    """

    def __init__(
        self,
        expressions: Sequence[Any],
        *,
        lanes: int = 1,
        chunk: int = 1000,
        vectors: Mapping[str, VectorFunction] | None = None,
    ) -> None:
        self._count = len(expressions)
        self._lanes = lanes
        self._states = 0
        self._environment = Environment()
        self._places: dict[Any, Place] = {}
        for node in reachable(e for e in expressions if isinstance(e, scalars.Symbol)):
            if node.op == "input":
                self._environment.places[node.index] = self._place(node.key)
        text, declarations = emit(
            "f", expressions, self._environment, lanes=lanes, vectors=vectors, chunk=chunk
        )
        text += _taking_time_by_address(lanes)
        self.text = "\n".join([*sorted(declarations), text])
        if lanes == 1:  # as runs compile equations, and then as sweeps do
            self._library = cut([(text, declarations)]).compile()
        else:
            level, quick = care(len(text)), by_tier(fast=True, full=False)
            self._library = Library(self.text, lambda: self.text, level=level, straight=quick)
        self._function = self._library.function("g", None, *[_POINTER] * 4)

    def _place(self, key: Any) -> Place:
        """Put time and state where a system has them, and everything else into the environment."""
        family, component = key if isinstance(key, tuple) else (None, 0)
        if family == (TIME, 0, 0):
            place: Place = ("t", 0)
        elif family == (STATE, 0, 0):
            place = ("x", component)
            self._states = max(self._states, component + 1)
        else:
            place = ("env", self._environment.reserve())
        self._places[key] = place
        return place

    def __call__(self, values: Mapping[Any, Any]) -> FloatArray:
        """Return the values of all expressions, shape (n,), or (n, lanes)."""
        sizes = {"t": 1, "x": self._states, "env": self._environment.size}
        arrays = {name: np.full((size + 1, self._lanes), np.nan) for name, size in sizes.items()}
        for key, (array, position) in self._places.items():
            arrays[array][position] = values[key]
        out = np.full((self._count + 1, self._lanes), _BEYOND)
        self._function(*(array.ctypes.data for array in (*arrays.values(), out)))
        assert np.all(out[-1] == _BEYOND)
        return out[:-1, 0] if self._lanes == 1 else out[:-1]


def _taking_time_by_address(lanes: int) -> str:
    """Write a function around ``f`` whose arguments are all addresses."""
    kind = "double" if lanes == 1 else f"<{lanes} x double>"
    return (
        "define void @g(ptr %t, ptr %x, ptr %env, ptr %out) #0 {\n"
        f"  %v = load {kind}, ptr %t, align 8\n"
        f"  call void @f({kind} %v, ptr %x, ptr %env, ptr %out)\n"
        "  ret void\n}\n"
    )


def equation_at(address: int) -> Callable[..., None]:
    """Return the function ``f(t, x, env, out)`` at an address; it takes arrays."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_double, *[_POINTER] * 3)(address)

    def call(time: float, *arrays: FloatArray) -> None:
        assert all(array.flags.c_contiguous and array.dtype == float for array in arrays)
        function(time, *(array.ctypes.data for array in arrays))

    return call


class CompiledKernel:
    """A kernel as native code, called like the Python function that it is.

    Parameters
    ----------
    kernel : callable
        The kernel; its other parameters than ``statics`` are numbers and arrays.
    statics
        Values of static parameters.
    """

    def __init__(self, kernel: Callable[..., Any], **statics: Any) -> None:
        module = Module()
        module.translate(kernel, "kernel", statics)
        self.text = module.text
        self._library = Library(self.text, lambda: self.text)
        annotations = kernel.__annotations__
        names = [name for name in annotations if name not in ("return", *statics)]
        self._kinds = [_C_TYPES.get(annotations[name], _POINTER) for name in names]
        result = _C_TYPES.get(annotations["return"])
        self._function = self._library.function("kernel", result, *self._kinds)
        self._truth = result is _TRUTH

    def __call__(self, *arguments: Any) -> Any:
        for each in arguments:
            assert not isinstance(each, np.ndarray) or each.flags.c_contiguous
        passed = [each.ctypes.data if isinstance(each, np.ndarray) else each for each in arguments]
        result = self._function(*passed)
        return bool(result & 1) if self._truth else result


_TRUTH = ctypes.c_uint8  # of which one bit is defined
_C_TYPES: dict[str, Any] = {
    "float": ctypes.c_double,
    "Real": ctypes.c_double,
    "int": ctypes.c_int64,
    "bool": _TRUTH,
    "Mask": _TRUTH,
}


class Plain:
    """Stands for a record in Python."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)
