"""Models in C in tests: compiled to shared libraries, and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

FloatArray = npt.NDArray[np.float64]

#: Every warning that the export promises to avoid.
STRICT = (
    *("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion"),
    *("-Werror", "-ffp-contract=off"),
)


def needed(tool: str) -> str:
    """Return the path of a program; skip the test, and say so, where it is missing."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"needs {tool}, which is not installed")
    return found


def compile_all(models: Sequence[Any], folder: Path, *options: str, compiler: str = "gcc") -> Path:
    """Compile models into one shared library."""
    library = folder / f"{compiler}.so"
    sources = []
    for model in models:
        model.save(folder)
        size = folder / f"{model.name}_size.c"
        size.write_text(
            f'#include <stddef.h>\n#include "{model.name}.h"\nsize_t {model.name}_room(void);\n'
            f"size_t {model.name}_room(void) {{ return sizeof({model.name}); }}\n"
        )
        sources += [str(folder / f"{model.name}.c"), str(size)]
    command = [needed(compiler), *STRICT, "-O1", *options, "-shared", "-fPIC", *sources]
    command += ["-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


class Running:
    """An instance of a compiled model.

    Parameters
    ----------
    model : CModel
        The model.
    library : Path
        What `compile_all` has made of it.
    """

    def __init__(self, model: Any, library: Path) -> None:
        self.model = model
        self._library = ctypes.CDLL(str(library))
        room: Any = self._library[f"{model.name}_room"]
        room.restype = ctypes.c_size_t
        self.memory = ctypes.create_string_buffer(room())
        self.real = np.float64 if "double" in model.header else np.float32
        self.call("reset")

    def call(self, name: str, *values: Any, result: Any = ctypes.c_int64) -> Any:
        """Call a function of the model: floats, whole numbers and arrays."""
        function: Any = self._library[f"{self.model.name}_{name}"]
        function.restype = result
        return function(self.memory, *map(self._given, values))

    def _given(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.ctypes.data_as(ctypes.c_void_p)
        if isinstance(value, float):
            return ctypes.c_double(value) if self.real is np.float64 else ctypes.c_float(value)
        return ctypes.c_int64(value)

    def numbers(self, name: str, count: int, *values: Any) -> Any:
        """Return the numbers that a function computes."""
        out = np.full(count + 1, -77.0, self.real)
        self.call(name, *values, out)
        assert out[count] == -77.0  # nothing is written beyond
        return out[:count]

    @property
    def signals(self) -> Any:
        """All signals."""
        return self.numbers("signals", sum(row["size"] for row in self.model.info["signals"]))

    def step(self, inputs: Sequence[float] = (), *, expected: int = 0) -> Any:
        """Take a fixed step; return the outputs."""
        out = np.zeros(sum(row["size"] for row in self.model.info["signals"]) + 1, self.real)
        assert self.call("step", np.array([*inputs, 0.0], self.real), out) == expected
        return out[:-1]


__all__ = ["Running", "compile_all", "needed"]
