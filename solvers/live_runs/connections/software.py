"""Software in the loop: a controller that runs as compiled C in place of its block."""

from __future__ import annotations

import ctypes
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flexure.diagrams.checks.errors import (
    NativeCodeError,
    SimulationError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.systems.system import System
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.export.fmi.compilers import PLATFORMS, shared_library
from flexure.solvers.simulation.run_control.state_manifold import Reading
from flexure.solvers.tracing.signals import Reader, resolve

_SHOWN = """
#include <stddef.h>
#if defined(_WIN32)
#define SHOWN __declspec(dllexport)
#else
#define SHOWN __attribute__((visibility("default")))
#endif
SHOWN size_t live_room(void);
SHOWN void live_reset(NAME *m);
SHOWN int64_t live_step(NAME *m, const double inputs[], double outputs[]);
SHOWN double live_time(const NAME *m);
SHOWN const char *live_problem(int64_t status);
size_t live_room(void) { return sizeof(NAME); }
void live_reset(NAME *m) { NAME_reset(m); }
int64_t live_step(NAME *m, const double inputs[], double outputs[])
{
  return NAME_step(m, inputs, outputs);
}
double live_time(const NAME *m) { return NAME_time(m); }
const char *live_problem(int64_t status) { return NAME_problem(status); }
"""


class Software:
    """A compiled controller, as `to_c` writes it, in place of the block at a path of a diagram."""

    def __init__(self, system: System, path: str, model: CModel, period: float) -> None:
        self._path = path
        attempt = f"Cannot run '{path}' as C"
        if "double" not in model.header:
            raise ValueRefusedError(
                attempt,
                expected="double precision",
                found="single precision",
                remedy="Write it with precision='double'",
            )
        block = system.get_system(path)
        self._readers = [self._reader_of(block, model, place) for place in model.drives]
        self.outputs: list[OutputPort] = []
        for row in model.info["signals"]:
            port = resolve(block, row["path"].removeprefix(f"{path}.")).handle
            if not isinstance(port, OutputPort) or port.system is not block:
                raise UnknownNameError(
                    attempt,
                    expected="a model whose signals are outputs of the block",
                    found=f"'{row['path']}'",
                    remedy="Write it with signals= the outputs",
                )
            self.outputs.append(port)
        self._count = 0
        self._load(model, attempt)
        self._every = self._steps_between(period, attempt)
        self._reading: Reading | None = None

    @staticmethod
    def _reader_of(block: System, model: CModel, place: int) -> Reader:
        """Return what reads the component of an input that is at a place of the model."""
        row = max((r for r in model.info["inputs"] if r["at"] <= place), key=lambda r: int(r["at"]))
        return Reader(resolve(block, row["path"]).handle, (place - row["at"],))

    def _load(self, model: CModel, attempt: str) -> None:
        here = (platform.system(), platform.machine())
        name = next((name for name, each in PLATFORMS.items() if each.host == here), None)
        if name is None:
            raise NativeCodeError(attempt, expected="a known platform", found=" ".join(here))
        text = model.source + _SHOWN.replace("NAME", model.name)
        texts = {f"{model.name}.h": model.header, f"{model.name}.c": text}
        # What is loaded stays there without its file, or Windows keeps the file.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            file = Path(folder, f"software{PLATFORMS[name].ending}")
            file.write_bytes(shared_library(texts, name, attempt))
            self._library = library = ctypes.CDLL(str(file))
        library.live_room.restype = ctypes.c_size_t
        library.live_step.restype = ctypes.c_int64
        library.live_time.restype = ctypes.c_double
        library.live_problem.restype = ctypes.c_char_p
        self._memory = ctypes.create_string_buffer(library.live_room())
        self._inputs = np.zeros(max(len(model.drives), 1))
        self._outputs = np.zeros(max(sum(port.size or 0 for port in self.outputs), 1))
        library.live_reset(self._memory)

    def _steps_between(self, period: float, attempt: str) -> int:
        """Return the number of steps of the run from one step of the controller to the next."""
        before, start = self.memory, self._library.live_time(self._memory)
        self._call()
        own = self._library.live_time(self._memory) - start
        self.memory = before
        ratio = float(own) / period
        if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6 * ratio:
            raise ValueRefusedError(
                attempt,
                expected=f"its period to be a multiple of the period of the run, {period:g} s",
                found=f"{own:g} s",
                remedy="Give another period=",
            )
        return round(ratio)

    def _call(self) -> int:
        pointers = (each.ctypes.data_as(ctypes.c_void_p) for each in (self._inputs, self._outputs))
        return int(self._library.live_step(self._memory, *pointers))

    def attach(self, context: Context, reading: Callable[..., Reading]) -> None:
        """Read from a context in which the wires of the outputs are cut."""
        self._slots = [context.store.layout.cuts[port] for port in self.outputs]
        self._reading = reading(context, self._readers)

    @property
    def memory(self) -> tuple[bytes, int]:
        """All values of the controller, and how many steps of the run it has seen."""
        return self._memory.raw, self._count

    @memory.setter
    def memory(self, values: tuple[bytes, int]) -> None:
        raw, self._count = values
        ctypes.memmove(self._memory, raw, len(raw))

    def step(self, context: Context) -> None:
        """Take a step, if one is due, and put the outputs onto the wires."""
        count, self._count = self._count, self._count + 1
        if count % self._every:
            return
        assert self._reading is not None
        store = context.store
        self._inputs[: len(self._readers)] = self._reading(store.time, store.x)
        status = self._call()
        if status < 0:
            problem = self._library.live_problem(ctypes.c_int64(status)).decode()
            raise SimulationError(
                f"Cannot step '{self._path}' as C at t = {context.time:g} s", found=problem
            )
        start = 0
        for slot, port in zip(self._slots, self.outputs, strict=True):
            size = port.size or 0
            store.fix(slot, np.array(self._outputs[start : start + size]))
            start += size
