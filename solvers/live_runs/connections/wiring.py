"""The wiring of a live run: values of partners, values for partners, and software in the loop."""

from __future__ import annotations

import ctypes
import platform
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require, require_known
from flexure.diagrams.checks.errors import (
    NativeCodeError,
    SimulationError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.rewiring import cut_wires
from flexure.diagrams.contexts.value_places import Place, Way, can_be_set, find_place, path_of
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.export.fmi.compilers import PLATFORMS, shared_library
from flexure.solvers.live_runs.connections.channels import Entry, Indices
from flexure.solvers.simulation.run_control.state_manifold import Reading
from flexure.solvers.tracing.signals import Reader, Signal, resolve

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


class SignalReading(Reading):
    """The signals of a live run, read together."""

    names: list[tuple[str, int]]  # their paths and numbers of components
    places: list[Indices]  # for each output, which components it takes
    units: list[str]  # the units of the signals


def together_read(context: Context, readers: Sequence[Callable[[Context], Any]]) -> SignalReading:
    """Return what reads several signals of a context at once, compiled where possible."""
    store = context.store

    def read(of: Any) -> list[Any]:
        source = context if of is store else of.leaves[0].root
        return [number for reader in readers for number in reader(source)]

    found = SignalReading(store, read, compiled=True)
    found.prepare()
    return found


class Wiring:
    """Finds the places of values, and cuts the wires that partners and ``software`` replace."""

    def __init__(
        self, system: System, context: Context, attempt: str, software: Sequence[Software]
    ) -> None:
        self._system, self._context, self._attempt = system, context, attempt
        self._software = software
        self._entries: dict[str, Entry] = {}
        self._cuts: list[InputPort | OutputPort] = [
            port for each in software for port in each.outputs
        ]

    def groups(self, partners: Any, what: str) -> list[tuple[tuple[Way, ...], Any]]:
        """Return each partner with its paths, of which a tuple names several."""
        partners = {} if partners is None else partners
        fits = isinstance(partners, Mapping)
        require(fits, partners, self._attempt, f"{what} to be partners by path")
        found = [
            (key if isinstance(key, tuple) else (key,), each) for key, each in partners.items()
        ]
        for ways, _ in found:
            require(ways, ways, self._attempt, f"{what} with at least one path each")
        return found

    def entries(self, groups: Sequence[Sequence[Way]]) -> list[list[Entry]]:
        """Return the places of the values that partners send."""
        return [[self._entry(way) for way in ways] for ways in groups]

    def _entry(self, way: Way) -> Entry:
        place = find_place(self._system, way, can_be_set)
        entry = Entry(path_of(way), place)
        if self._is_wired(place):
            require(
                place.part is None, entry.path, self._attempt, "a whole port where a wire is cut"
            )
            twice = place.handle in self._cuts
            self._cuts.append(place.handle)
        else:
            entry = Entry(entry.path, place.settable)
            twice = False
        if twice or entry.path in self._entries:
            raise ValueRefusedError(
                self._attempt,
                expected="one partner for each input",
                found=f"two for '{entry.path}'",
            )
        self._entries[entry.path] = entry
        return entry

    def _is_wired(self, place: Place) -> bool:
        """Return whether a port gets its value over a wire, or computes it."""
        handle = place.handle
        if isinstance(handle, InputPort):
            return not self._context.find(handle.system, handle).input_is_free(handle.index)
        return isinstance(handle, OutputPort) and handle.origin.shows is None

    def begin(self, values: Mapping[str, Any]) -> Context:
        """Return a context in which the wires are cut, and inputs have their first values."""
        for path, entry in self._entries.items():
            if entry.place.handle not in self._cuts:
                handle, held = entry.place.handle, values.get(path)
                if held is None and isinstance(handle, InputPort) and not self._has_value(handle):
                    held = np.zeros(entry.size)
                if held is not None:
                    entry.write(self._context, held)
        moving = cut_wires(self._context, self._cuts) if self._cuts else self._context
        for path, entry in self._entries.items():
            entry.slot = moving.store.layout.cuts.get(entry.place.handle)
            if entry.slot is not None and path in values:
                entry.write(moving, values[path])
        for each in self._software:
            each.attach(moving, together_read)
        self._context = moving
        return moving

    def settable(self, way: Way) -> Entry:
        """Return where a value is set."""
        path = path_of(way)
        if path in self._entries:
            return self._entries[path]
        return Entry(path, find_place(self._system, way, can_be_set).settable)

    def reading(
        self, groups: Sequence[Sequence[Signal]], others: Sequence[Signal]
    ) -> SignalReading:
        """Return what reads the signals of all outputs, and other ones."""
        readers: dict[str, Reader] = {}
        for way in [*(way for ways in groups for way in ways), *others]:
            readers.setdefault(path_of(way), resolve(self._system, way))
        ends = dict(zip(readers, np.cumsum([each.size for each in readers.values()]), strict=True))
        found = together_read(self._context, [self._behind(each) for each in readers.values()])
        found.names = [(path, reader.size) for path, reader in readers.items()]
        found.units = [reader.unit for reader in readers.values()]
        found.places = [
            np.concatenate(
                [
                    np.arange(ends[path] - readers[path].size, ends[path])
                    for path in map(path_of, ways)
                ]
            )
            for ways in groups
        ]
        return found

    def _behind(self, reader: Reader) -> Callable[[Context], Any]:
        """Return what reads a signal, beyond a cut where there is one."""
        slot = self._context.store.layout.cuts.get(reader.handle)
        if slot is None or not isinstance(reader.handle, OutputPort):
            return reader.__call__
        part = slice(None) if reader.part is None else list(reader.part)
        return lambda context: context.store.value(slot)[part]

    def _has_value(self, port: InputPort) -> bool:
        """Return whether a free input has a value."""
        own = self._context.find(port.system, port)
        return bool(own.store.holds(own._input_slot(port.index)))


def by_path(values: Any, known: Collection[str], name: str, attempt: str) -> dict[str, Any]:
    """Return values by paths that are known; handles are paths, too."""
    require(isinstance(values, Mapping), values, attempt, f"{name} to be values by path")
    found = {path_of(way): value for way, value in values.items()}
    for path in found:
        about = f"{attempt} and the {name} value of '{path}'"
        require_known(path, sorted(known), about, "an input or output of the run")
    return found


def together(
    names: Sequence[str], values: Mapping[str, Any], size: int, attempt: str
) -> FloatArray | None:
    """Return the safe values of several paths as one array; None unless all have one."""
    if not all(name in values for name in names):
        return None
    given = [values[name] for name in names]
    number: FloatArray = np.zeros(0)
    with suppress(TypeError, ValueError):  # of what is refused below
        number = np.concatenate([np.reshape(np.asarray(each, float), -1) for each in given])
    fits = number.size == size and np.isfinite(number).all()
    about = f"{attempt} with the safe value of {', '.join(names)}"
    require(fits, given, about, "finite numbers that fit")
    return number
