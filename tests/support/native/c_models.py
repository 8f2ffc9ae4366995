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

from tests.support.tiers import by_tier

FloatArray = npt.NDArray[np.float64]

#: Every warning that the export promises to avoid.
STRICT = (
    *("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion"),
    *("-Werror", "-ffp-contract=off"),
)

#: A source that shows what is hidden in that of a model.
_SHOWN = """
#include "NAME.c"
#include <stddef.h>
size_t NAME_room(void);
size_t NAME_room(void) { return sizeof(NAME); }
void NAME_update(NAME *m, int64_t number, double out[]);
void NAME_update(NAME *m, int64_t number, double out[])
{
  UPDATE
}
"""


def needed(tool: str) -> str:
    """Return the path of a program; skip the test, and say so, where it is missing."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"needs {tool}, which is not installed")
    return found


def compile_all(models: Sequence[Any], folder: Path, *options: str, compiler: str = "gcc") -> Path:
    """Compile models into one shared library."""
    folder.mkdir(exist_ok=True)
    library = folder / f"{compiler}.so"
    sources = []
    for model in models:
        model.save(folder)
        source = folder / f"{model.name}_shown.c"
        source.write_text(_shown(model))
        sources.append(str(source))
    level = by_tier(fast="-O0", full="-O1")
    command = [needed(compiler), *STRICT, level, *options, "-shared", "-fPIC", *sources]
    command += ["-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


def _shown(model: Any) -> str:
    """Write a source that shows the updates of a model, and how much memory an instance takes."""
    x = "&m->run.step.rooms[m->run.step.x]" if "rooms" in model.header else "m->run.step.x"
    values = f"m->run.step.time, {x}, m->run.system.env"
    update = f"refresh(m);\n  update_functions[number]({values}, out);"
    if "update_functions[" not in model.source:
        update = "(void)m;\n  (void)number;\n  (void)out;"
    text = _SHOWN.replace("NAME", model.name).replace("UPDATE", update)
    return text if "double" in model.header else text.replace("double", "float")


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
