"""Native libraries: LLVM's text compiled to functions of this process.

llvmlite is the only thing that is needed: no compiler, no linker. It is imported when the first
library is made; `available` tells whether it can be.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from flexure.diagrams.checks.errors import MissingExtraError
from flexure.diagrams.concurrency.forks import no_fork
from flexure.diagrams.concurrency.threads import once
from flexure.solvers.native.llvm.cache import cached

#: Functions of the C library that compiled equations may call.
C_FUNCTIONS = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sincos"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("pow", "cbrt", "hypot", "fmod", "nextafter"),
    *("memcpy", "memset", "memmove"),
)

#: Functions of glibc's vector library for x86-64, by the number of their arguments.
VECTOR_FUNCTIONS = {
    1: (
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt"),
    ),
    2: ("pow", "atan2", "hypot"),
}
_WIDTHS = {8: "avx512f", 4: "avx2"}  # numbers per register, and what the processor must know
_LETTERS = {8: "e", 4: "d", 2: "b"}  # in the names of vector functions
_FEW_STATES = 8


@once
def available() -> bool:
    """Return whether native code can be made here."""
    return importlib.util.find_spec("llvmlite") is not None and sys.maxsize > 2**32


class VectorFunction(NamedTuple):
    """A function of the C library for all lanes at once."""

    name: str  # by which it is called
    declaration: str  # what a text that calls it has to contain


def register_width() -> int:
    """Return how many numbers a register of this processor holds."""
    return _Machine.get().width


def lane_count(states: int) -> int:
    """Return how many lanes suit this processor and a number of states.

    A register of the processor holds so many numbers. Twice as many keep it busy where a step is
    mostly waiting for the operation before; with more states that costs too much memory.
    """
    width = register_width()
    return 2 * width if states <= _FEW_STATES else width


def vector_functions(lanes: int) -> dict[str, VectorFunction]:
    """Return the functions that compute all lanes at once, by the name of the plain function."""
    machine = _Machine.get()
    return {
        name: _all_lanes(symbol, arity, machine.width, lanes)
        for name, (symbol, arity) in machine.vectors.items()
    }


def _all_lanes(symbol: str, arity: int, width: int, lanes: int) -> VectorFunction:
    """Declare a function, and where there are twice as many lanes, one that calls it twice."""
    part = f"<{width} x double>"
    declaration = f"declare {part} @{symbol}({', '.join([part] * arity)}) #1"
    if lanes == width:
        return VectorFunction(symbol, declaration)
    whole, name = f"<{lanes} x double>", f"twice{symbol}"
    arguments = ", ".join(f"{whole} %{k}" for k in range(arity))
    lines = [declaration, f"define internal {whole} @{name}({arguments}) alwaysinline {{", "entry:"]
    for half, first in enumerate((0, width)):
        indices = ", ".join(f"i32 {first + k}" for k in range(width))
        for k in range(arity):
            operands = f"{whole} %{k}, {whole} poison, <{width} x i32> <{indices}>"
            lines.append(f"  %part.{half}.{k} = shufflevector {operands}")
        parts = ", ".join(f"{part} %part.{half}.{k}" for k in range(arity))
        lines.append(f"  %result.{half} = call {part} @{symbol}({parts}) #1")
    indices = ", ".join(f"i32 {k}" for k in range(lanes))
    operands = f"{part} %result.0, {part} %result.1, <{lanes} x i32> <{indices}>"
    lines += [f"  %whole = shufflevector {operands}", f"  ret {whole} %whole", "}"]
    return VectorFunction(name, "\n".join(lines))


class Address(int):
    """The address of a native function, which keeps the code alive.

    Every object that can call the function must hold it: a run, an object that is called, an array
    of addresses.
    """

    library: Library


class Library:
    """Functions compiled from the text of an LLVM module, or from those of several.

    The code lives as long as the library or one of the addresses in it.

    ``text`` is called where the cache does not know ``key``, what the text depends on. LLVM tries
    as hard as ``level``, from 0 to 3. From level 2 on, it may compute several rounds of a loop at
    once if ``vectorized``: that pays in long loops; short ones then wait for numbers that were
    written one by one. ``straight`` text has no loops and no calls to dissolve, so that LLVM can go
    straight to the instructions of the processor. ``others`` are texts of further modules, for
    functions that these modules call in each other. Each one is compiled, and kept, by itself: an
    interruption waits for no more than one of them.
    """

    def __init__(
        self,
        key: str,
        text: Callable[[], str],
        *,
        level: int = 2,
        vectorized: bool = True,
        straight: bool = False,
        others: Sequence[str] = (),
    ) -> None:
        if not available():
            raise MissingExtraError(
                "Cannot make native code",
                expected="the package llvmlite on a 64-bit machine",
                found="none installed",
                remedy="Install it with: pip install 'flexure[fast]'",
            )
        machine = _Machine.get()
        passes = 0 if straight else level

        def compiled(key: str, text: Callable[[], str]) -> bytes:
            with no_fork:
                return cached(
                    f"{machine.identity}\n{level} {passes} {vectorized}\n{key}",
                    lambda: machine.compile(text(), level, passes, vectorized),
                )

        objects = [compiled(key, text), *(compiled(each, partial(str, each)) for each in others)]
        with no_fork:
            self._engine = machine.load(objects)

    def address(self, name: str) -> Address:
        """Return the address of a function."""
        found = Address(self._engine.get_function_address(name))
        found.library = self
        return found

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return a function with ctypes types for result and arguments; it frees the GIL."""
        return callable_at(self.address(name), ctypes.CFUNCTYPE(result, *arguments))


def callable_at(address: Address, prototype: Any) -> Any:
    """Return a native function as an object that is called, of a type from ``ctypes``."""
    function = prototype(address)
    function.address = address
    return function


class _Machine:
    """LLVM, set up for this process."""

    def __init__(self) -> None:
        import llvmlite
        from llvmlite import binding

        self._binding: Any = binding
        with suppress(RuntimeError):  # newer versions initialize by themselves
            binding.initialize()
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self._triple = binding.get_process_triple()
        self._cpu = binding.get_host_cpu_name()
        self._features = binding.get_host_cpu_features().flatten()
        version = ".".join(map(str, binding.llvm_version_info))
        features = self._features.split(",")
        self.width = next((w for w, f in _WIDTHS.items() if f"+{f}" in features), 2)
        self.vectors: dict[str, tuple[str, int]] = {}
        for name, symbol, arity, address in _vector_functions(self._triple, self.width):
            binding.add_symbol(symbol, address)
            self.vectors[name] = symbol, arity
        self.identity = "\n".join(
            [llvmlite.__version__, version, self._triple, self._cpu, self._features]
        )
        for name, address in _c_functions():
            binding.add_symbol(name, address)

    @classmethod
    @once
    def get(cls) -> _Machine:
        """Return the one object of this process."""
        with no_fork:
            return cls()

    def _target(self, level: int) -> Any:
        target = self._binding.Target.from_triple(self._triple)
        return target.create_target_machine(
            cpu=self._cpu, features=self._features, opt=level, jit=True
        )

    def compile(self, text: str, level: int, passes: int, vectorized: bool) -> bytes:
        """Compile the text of a module to object code."""
        machine = self._target(level)
        head = f'target triple = "{self._triple}"\ntarget datalayout = "{machine.target_data}"\n'
        # Wide lanes are worth the widest registers, which LLVM avoids by default.
        tail = '\nattributes #0 = { nounwind "prefer-vector-width"="512" }\n'
        tail += "attributes #1 = { nounwind memory(none) }\n"
        module = self._binding.parse_assembly(head + text + tail)
        if passes > 0:
            options = self._binding.create_pipeline_tuning_options(speed_level=passes)
            options.loop_vectorization = vectorized and passes > 1
            options.slp_vectorization = False
            builder = self._binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        code: bytes = machine.emit_object(module)
        return code

    def load(self, objects: Sequence[bytes]) -> Any:
        """Load object code."""
        empty = self._binding.parse_assembly(f'target triple = "{self._triple}"\n')
        engine = self._binding.create_mcjit_compiler(empty, self._target(0))
        for data in objects:
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


def _vector_functions(triple: str, width: int) -> list[tuple[str, str, int, int]]:
    """Find glibc's vector functions: name, symbol, number of arguments and address."""
    if not (triple.startswith("x86_64") and "linux" in triple and width in _LETTERS):
        return []
    try:
        library = ctypes.CDLL("libmvec.so.1")
    except OSError:
        return []
    found = []
    for arity, names in VECTOR_FUNCTIONS.items():
        for name in names:
            symbol = f"_ZGV{_LETTERS[width]}N{width}{'v' * arity}_{name}"
            function = getattr(library, symbol, None)
            if function is not None:
                address = ctypes.cast(function, ctypes.c_void_p).value or 0
                found.append((name, symbol, arity, address))
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


_Byte: Any = ctypes.c_char


def address_of(array: NDArray[Any]) -> int:
    """Return the address of a contiguous array; the caller keeps it alive.

    For what can be written, ``array.ctypes.data`` would take several times as long.
    """
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size:
        return ctypes.addressof(_Byte.from_buffer(array))
    return array.ctypes.data


# In what pieces equations are compiled, and how hard LLVM tries. They are straight-line code, often
# of tens of thousands of operations. LLVM's passes find nothing in it, and take as long as what
# follows them. A careful choice of instructions and registers takes 30 microseconds for each
# operation, the fastest one 4; equations then run 1.1 times as long, Jacobians in vectors twice as
# long. Python hears an interruption when LLVM returns. So long texts are cut into modules, each of
# which is compiled, and put into the cache, by itself.

#: Characters of text, about 70 for each operation.
_SHORT = 200_000  # up to which LLVM takes all the care it can
_LONG = 2_000_000  # from which on it takes none: the other way would take about a second
_PIECE = 1_000_000  # in a module
_CARE = ("with the fastest choice of instructions", "with less care", "with all care")

_DEFINITION = re.compile(r"^define (?:internal )?void @([\w.]+)\((.*)\) #0 \{$", re.MULTILINE)
_TYPE = re.compile(r"(?:^|, )(<[^>]*>|\S+)")  # of each parameter
_CALL = re.compile(r"call void @([\w.]+)\(")


class ModuleTexts(NamedTuple):
    """Texts on their way to a library."""

    modules: list[str]  # the texts; each is compiled, and kept, by itself
    level: int  # how hard LLVM tries, 0 to 2
    has_loops: bool = False  # whether LLVM's passes have anything to do

    def compile(self) -> Library:
        """Return the library."""
        text, *others = self.modules
        straight = not self.has_loops
        return Library(text, lambda: text, level=self.level, straight=straight, others=others)

    def __str__(self) -> str:
        size = sum(map(len, self.modules))
        modules = f"{len(self.modules)} module{'s' * (len(self.modules) > 1)}"
        return f"{size} characters in {modules}, {_CARE[self.level]}"


def cut(texts: Iterable[tuple[str, set[str]]]) -> ModuleTexts:
    """Distribute functions that `flexure.solvers.native.emission.emission` has written."""
    parts, declarations = zip(*texts, strict=True)
    head = "\n".join(sorted(set().union(*declarations)))
    size = sum(map(len, parts))
    modules = ["\n".join([head, *parts])] if size < _PIECE else _modules(head, parts)
    return ModuleTexts(modules, care(size))


def care(size: int) -> int:
    """Return how hard LLVM tries with so many characters of straight-line code."""
    return 2 if size < _SHORT else 1 if size < _LONG else 0


def _modules(head: str, parts: Iterable[str]) -> list[str]:
    """Distribute functions over modules that can call those of each other."""
    functions = [function for part in parts for function in _functions(part)]
    signatures: dict[str, str] = {}
    for function in functions:
        for name, parameters in _DEFINITION.findall(function):
            kinds = ", ".join(_TYPE.findall(parameters))
            signatures[name] = f"declare void @{name}({kinds})"
    modules = []
    for group in _groups(functions):
        text = "\n".join(group).replace("define internal void @", "define void @")
        own = set(_DEFINITION.findall(text))
        called = set(_CALL.findall(text)) & signatures.keys() - {name for name, _ in own}
        modules.append("\n".join([head, *(signatures[name] for name in sorted(called)), text]))
    return modules


def _functions(text: str) -> Iterator[str]:
    """Take a text apart behind each of its functions, which end with a brace in its own line."""
    start = 0
    for end in re.finditer(r"^\}$", text, re.MULTILINE):
        yield text[start : end.end() + 1]
        start = end.end() + 1


def _groups(functions: Sequence[str]) -> Iterator[list[str]]:
    """Put functions together until they fill a module."""
    group: list[str] = []
    for function in functions:
        if group and sum(map(len, group)) + len(function) > _PIECE:
            yield group
            group = []
        group.append(function)
    yield group
