"""Native libraries: LLVM's text compiled to functions of this process.

llvmlite is the only thing that is needed: no compiler, no linker. It is imported when the first
library is made; `available` tells whether it can be.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from flexure.diagrams.errors import MissingExtraError
from flexure.solvers.native.cache import cached

#: Functions of the C library that compiled equations may call.
C_FUNCTIONS = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sincos"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("pow", "cbrt", "hypot", "fmod", "nextafter"),
    *("memcpy", "memset", "memmove"),
)

_lock = threading.Lock()


@cache
def available() -> bool:
    """Tell whether native code can be made here."""
    return importlib.util.find_spec("llvmlite") is not None and sys.maxsize > 2**32


class Library:
    """Functions compiled from the text of an LLVM module.

    Parameters
    ----------
    key : str
        What the text depends on; where the cache knows it, the text is not made.
    text : callable
        Makes the text.
    level : int
        How hard LLVM tries, 0 to 3.

    Raises
    ------
    MissingExtraError
        When llvmlite is not installed.
    """

    def __init__(self, key: str, text: Callable[[], str], *, level: int = 2) -> None:
        if not available():
            raise MissingExtraError(
                "Cannot make native code",
                expected="the package llvmlite on a 64-bit machine",
                found="none installed",
                remedy="Install it with: pip install 'flexure[fast]'",
            )
        with _lock:
            machine = _Machine.get()
            data = cached(
                f"{machine.identity}\n{level}\n{key}", lambda: machine.compile(text(), level)
            )
            self._engine = machine.load(data)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        found: int = self._engine.get_function_address(name)
        return found

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return a function with ctypes types for result and arguments; it frees the GIL."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))


class _Machine:
    """LLVM, set up for this process."""

    _found: _Machine | None = None

    def __init__(self) -> None:
        import llvmlite
        from llvmlite import binding

        self._binding: Any = binding
        try:
            binding.initialize()
        except RuntimeError:  # newer versions initialize by themselves
            pass
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self._triple = binding.get_process_triple()
        self._cpu = binding.get_host_cpu_name()
        self._features = binding.get_host_cpu_features().flatten()
        version = ".".join(map(str, binding.llvm_version_info))
        self.identity = "\n".join(
            [llvmlite.__version__, version, self._triple, self._cpu, self._features]
        )
        for name, address in _c_functions():
            binding.add_symbol(name, address)

    @classmethod
    def get(cls) -> _Machine:
        """Return the one object of this process."""
        if cls._found is None:
            cls._found = cls()
        return cls._found

    def _target(self, level: int) -> Any:
        target = self._binding.Target.from_triple(self._triple)
        return target.create_target_machine(
            cpu=self._cpu, features=self._features, opt=level, jit=True
        )

    def compile(self, text: str, level: int) -> bytes:
        """Compile the text of a module to object code."""
        machine = self._target(level)
        head = f'target triple = "{self._triple}"\ntarget datalayout = "{machine.target_data}"\n'
        # Wide lanes are worth the widest registers, which LLVM avoids by default.
        tail = '\nattributes #0 = { nounwind "prefer-vector-width"="512" }\n'
        tail += "attributes #1 = { nounwind memory(none) }\n"
        module = self._binding.parse_assembly(head + text + tail)
        if level > 0:
            options = self._binding.create_pipeline_tuning_options(speed_level=level)
            options.loop_vectorization = level > 1
            options.slp_vectorization = level > 1
            builder = self._binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        code: bytes = machine.emit_object(module)
        return code

    def load(self, data: bytes) -> Any:
        """Load object code."""
        empty = self._binding.parse_assembly(f'target triple = "{self._triple}"\n')
        engine = self._binding.create_mcjit_compiler(empty, self._target(0))
        engine.add_object_file(self._binding.object_file.ObjectFileRef.from_data(data))
        engine.finalize_object()
        return engine


def _c_functions() -> list[tuple[str, int]]:
    """Find the functions of the C library that exist here."""
    libraries = [ctypes.CDLL("ucrtbase")] if sys.platform == "win32" else _posix_libraries()
    found = []
    for name in C_FUNCTIONS:
        for library in libraries:
            function = getattr(library, name, None)
            if function is not None:
                found.append((name, ctypes.cast(function, ctypes.c_void_p).value or 0))
                break
    return found


def _posix_libraries() -> list[Any]:
    """Return what this process has loaded, and the mathematical library by its usual names."""
    libraries: list[Any] = [ctypes.CDLL(None)]
    for name in ("libm.so.6", "libm.dylib", "libm.so"):
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:
            continue
    return libraries


__all__ = ["Library", "available"]
