"""The memory of a native run: the structure that loops see, and the arrays behind its pointers."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.integration.methods.projecting import FAR
from flexure.solvers.native.emission.sparse_factors import BlockFactors, SparseFactors
from flexure.solvers.native.kernels.parts.blocks import BlockData
from flexure.solvers.native.kernels.parts.linear_solves import FactorData
from flexure.solvers.native.kernels.parts.output_rows import RowLayout
from flexure.solvers.native.kernels.parts.run import Run
from flexure.solvers.native.language.language import parts_of, types_of
from flexure.solvers.native.llvm.library import Address, address_of
from flexure.solvers.native.programs.method_programs import METHODS, generic_attempt
from flexure.solvers.native.programs.program import Program

ROOMY = 1000  # states, up to which a dense matrix may be made


class StructureArrays:
    """A structure with the arrays behind its pointers, in new memory without ``fields``."""

    def __init__(self, kind: Any, fields: Any = None) -> None:
        self.kind = kind
        # The structure; plain fields are read and written as attributes.
        self.fields: Any = kind.new() if fields is None else fields
        self.arrays: dict[str, NDArray[Any]] = {}  # the arrays behind the other fields
        self.code: dict[str, Any] = {}  # the addresses of the functions behind them
        # The structures that are fields of it, each with its own arrays.
        self.parts: dict[str, StructureArrays] = {
            name: StructureArrays(part, getattr(self.fields, name))
            for name, part in parts_of(kind).items()
        }

    def attach(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Put an array behind a field, and keep it alive."""
        array = np.ascontiguousarray(array)
        self.arrays[name] = array
        setattr(self.fields, name, address_of(array))
        return array

    def room(self, name: str, size: int, kind: Any = np.float64) -> NDArray[Any]:
        """Put a new array of zeros behind a field, never an empty one."""
        array = np.empty(max(size, 1), dtype=kind)
        array.fill(0)  # unlike np.zeros, this touches the memory now and not during the run
        return self.attach(name, array)

    def indices(self, name: str, values: Any) -> NDArray[Any]:
        """Put whole numbers behind a field."""
        array = np.array([*values] or [0], dtype=np.int64)
        return self.attach(name, array)

    def link(self, name: str, address: Address | None) -> None:
        """Put a function behind a field, or none, and keep its code alive."""
        self.code[name] = address
        setattr(self.fields, name, address or 0)

    def link_all(self, name: str, addresses: list[Address]) -> None:
        """Put functions behind a field, and keep their code alive."""
        self.code[name] = addresses
        self.indices(name, addresses)

    @property
    def pointer(self) -> int:
        """The address of the structure."""
        return ctypes.addressof(self.fields)


def set_tolerances(
    memory: StructureArrays, rtol: FloatArray, atol: FloatArray, max_step: float
) -> None:
    """Put tolerances and the longest step into a structure `Run` or `Ensemble`."""
    tolerances = memory.parts["tolerances"]
    tolerances.attach("rtol", np.maximum(rtol, 100.0 * np.finfo(float).eps))
    tolerances.attach("atol", np.maximum(atol, np.finfo(float).tiny))
    tolerances.fields.max_step = max_step


def set_factors(factors: StructureArrays, found: SparseFactors) -> None:
    """Put the places of sparse factors into a part `FactorData`."""
    for name, kind in types_of(FactorData).items():
        value = getattr(found, name)
        if kind == "int":
            setattr(factors.fields, name, value)
        else:
            factors.indices(name, value)


def set_blocks(memory: StructureArrays, found: BlockFactors) -> None:
    """Put the places of factors in blocks into a part `BlockData`, and make room for them."""
    for name, kind in types_of(BlockData).items():
        value = getattr(found, name, None)
        if isinstance(value, tuple):
            memory.indices(name, value)
        elif value is not None:
            setattr(memory.fields, name, value)
        elif kind == "Floats":
            in_tiles = name in ("tiles", "passed")
            memory.room(name, len(found.direct) if in_tiles else len(found.links))


def set_linear(linear: StructureArrays, program: Program, blocks: BlockFactors | None) -> None:
    """Provide what solving linear equations needs in a part `LinearData`."""
    fields, n = linear.fields, program.num_states
    fields.n = n
    linear.link("jacobian", program.jacobian())
    assert program.jacobian_entries is not None
    rows, columns = program.jacobian_entries
    fields.nonzeros = len(rows)
    linear.attach("rows", rows)
    linear.attach("columns", columns)
    linear.room("entries", len(rows) + 1)  # the last one is zero
    sparse = program.sparse_factors
    fields.sparse = sparse is not None
    if blocks is not None:
        set_blocks(linear.parts["blocks"], blocks)
    elif sparse is not None:
        set_factors(linear.parts["factors"], sparse)
        linear.room("values", len(sparse.column))
        linear.room("row", n)
    fields.roomy = n <= ROOMY
    if fields.roomy:
        linear.room("matrix", n * n)
        linear.room("pivots", n, np.int64)


class RunMemory(StructureArrays):
    """A structure `Run` with its arrays.

    ``max_step`` is in seconds; so many ``columns`` of derivatives lie behind the states.
    """

    def __init__(
        self,
        program: Program,
        method: str,
        rtol: FloatArray,
        atol: FloatArray,
        max_step: float = np.inf,
        columns: int = 0,
    ) -> None:
        super().__init__(Run)
        self.program = program
        self.method = METHODS[method]
        self.size = program.num_states * (1 + columns)
        set_tolerances(self, rtol, atol, max_step)
        self._prepare_system()
        self._prepare_step()
        if self.method.linear:
            self._prepare_linear()
        self._prepare_attempt()

    def _prepare_attempt(self) -> None:
        """Provide the trial step."""
        program, name = self.program, self.method.name
        attempt = program.attempt(name) if program.num_states else generic_attempt(name)
        self.parts["system"].link("attempt", attempt)

    def _prepare_system(self) -> None:
        """Provide the equations."""
        program, system = self.program, self.parts["system"]
        system.fields.n, system.fields.m = program.num_states, program.num_discrete
        system.fields.timed = program.trace.timed
        system.link("rhs", program.rhs)
        system.link("signals", program.signal)
        self.parts["witnesses"].link("values", program.witness)
        self.parts["clocks"].link("breaks", program.breaks)
        self.fields.clocks.breaking = program.breaks is not None

    def _prepare_step(self) -> None:
        """Provide what a step computes."""
        step, n = self.parts["step"], self.size
        self._step = step.fields
        step.fields.keeping = 1
        for name in ("work", "point", "time_slope"):
            step.room(name, n)
        self._states: dict[int, FloatArray] = {}
        for name in ("x", "x_old", "x_new"):
            array = step.room(name, n)
            self._states[address_of(array)] = array[:n]
        step.room("k", self.method.rows * n)
        step.room("q", self.method.bends * n)

    @property
    def is_eventful(self) -> bool:
        """Whether anything but steps can happen: updates, crossings, departures."""
        fields = self.fields
        return any(part.count for part in (fields.updates, fields.witnesses, fields.manifold))

    def watch_manifold(self) -> None:
        """Check steps, and project them if they violate constraints."""
        manifold, n, program = self.parts["manifold"], self.program.num_states, self.program
        fields = manifold.fields
        fields.count, fields.allowed, fields.farthest = len(program.trace.deviations), 1.0, FAR
        manifold.link("deviations", program.deviations)
        manifold.room("values", len(program.trace.deviations))
        for name in ("landed", "shift", "slope"):
            manifold.room(name, n)

    def link_projection(self, env: FloatArray) -> None:
        """Provide the code of projections, with its environment."""
        manifold = self.parts["manifold"]
        manifold.link("projection", self.program.projection)
        manifold.attach("env", env)
        manifold.fields.discrete = self.program.num_discrete
        manifold.fields.coded = 1

    def _prepare_linear(self) -> None:
        """Provide what solving linear equations needs."""
        set_linear(self.parts["linear"], self.program, self.program.block_factors)

    def note_beginning(self) -> None:
        """Note what is in the structure now, for `reset`."""
        self._beginning = bytes(self.fields)

    def reset(self) -> None:
        """Make the structure what it was when that was noted; the environment has to be set again.

        What is in arrays stays there: every motion writes it before it reads it.
        """
        ctypes.memmove(self.pointer, self._beginning, len(self._beginning))
        self.parts["system"].arrays.pop("env", None)

    def make_rows(self, count: int, layout: RowLayout, places: NDArray[np.intp]) -> None:
        """Make room for so many rows, with the discrete values at some places."""
        part = self.parts["rows"]
        part.fields.held = len(places)
        part.indices("places", places)
        part.fields.room, part.fields.width = count, layout.width
        part.fields.discrete, part.fields.signals = layout.discrete.start, layout.signals.start
        part.room("kinds", 2 * count, np.int64)
        part.room("table", count * layout.width)

    def take_rows(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Return kinds and masks of the rows that are written, and the rows; free their room.

        The next call of a loop writes over both.
        """
        part = self.parts["rows"]
        used, width = int(part.fields.used), int(part.fields.width)
        part.fields.used = 0
        kinds, table = part.arrays["kinds"][: 2 * used], part.arrays["table"][: used * width]
        return kinds.reshape(used, 2), table.reshape(used, width)

    @property
    def work(self) -> float:
        """Roughly the number of operations of a step, and of a look for witness events in it."""
        fields, program = self.fields, self.program
        n, witnesses = program.num_states, fields.witnesses.count
        evaluations = self.method.rows + (3 + 4 * witnesses if witnesses else 0)
        work: float = evaluations * (program.trace.operations + n)
        if self.method.linear:
            sparse = program.sparse_factors
            work += 10 * fields.linear.nonzeros + (sparse.products if sparse else n**3)
        return work

    @property
    def x(self) -> FloatArray:
        """The present state; the loops change which array holds it."""
        return self._states[self._step.x]

    def tolerated(self, x: FloatArray) -> FloatArray:
        """Return the tolerated errors of a state."""
        tolerances = self.parts["tolerances"].arrays
        error: FloatArray = tolerances["atol"] + tolerances["rtol"] * np.abs(x)
        return error

    def set_environment(self, env: FloatArray) -> bool:
        """Use an environment; tell whether it is another one than before."""
        system = self.parts["system"]
        if system.arrays.get("env") is env:
            return False
        system.attach("env", env)
        return True


_MOMENT = 0.1  # seconds that a call may take
_OPERATION = 2e-9  # seconds, guessed before anything is measured


class CallLength:
    """The number of steps, or other pieces of work, of the next call, at most ``most``.

    A call goes so far that the interrupt key is heard within a moment.
    ``work`` are the operations of one piece, roughly; too many make the first call too short.
    """

    __slots__ = ("_most", "length")

    def __init__(self, most: int, work: float) -> None:
        self._most = most
        # The number; at least one.
        self.length = self._within(_MOMENT / (_OPERATION * max(work, 1.0)))

    def measured(self, pieces: int, seconds: float) -> None:
        """Take into account how long a call took."""
        if seconds > 0.0 and (seconds > _MOMENT or self.length < self._most):
            wanted = max(pieces, 1) * _MOMENT / seconds
            self.length = self._within(min(wanted, 8.0 * self.length))

    def _within(self, wanted: float) -> int:
        return max(1, math.floor(min(wanted, self._most)))
