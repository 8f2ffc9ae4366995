"""Making and reading the record of a run from Python: the arrays behind its pointers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values import FloatArray
from flexure.solvers.native.kernels.run import Run
from flexure.solvers.native.language.language import Structure
from flexure.solvers.native.llvm.library import Address
from flexure.solvers.native.methods import METHODS, generic_attempt
from flexure.solvers.native.program import Program

_ROOMY = 1000  # states, up to which a dense matrix may be made


class StructureArrays:
    """A record with the arrays behind its pointers.

    Parameters
    ----------
    kind : type
        The record.

    Attributes
    ----------
    fields : ctypes.Structure
        The record; plain fields are read and written as attributes.
    arrays : dict
        The arrays behind the other fields.
    code : dict
        The addresses of the functions behind them.
    """

    def __init__(self, kind: type[Structure]) -> None:
        self.fields: Any = kind.structure()()
        self.arrays: dict[str, NDArray[Any]] = {}
        self.code: dict[str, Any] = {}

    def attach(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Put an array behind a field; the record keeps it alive."""
        array = np.ascontiguousarray(array)
        self.arrays[name] = array
        setattr(self.fields, name, array.ctypes.data)
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
        """Put a function behind a field, or none; the record keeps its code alive."""
        self.code[name] = address
        setattr(self.fields, name, address or 0)

    def link_all(self, name: str, addresses: list[Address]) -> None:
        """Put functions behind a field; the record keeps their code alive."""
        self.code[name] = addresses
        self.indices(name, addresses)

    @property
    def pointer(self) -> int:
        """The address of the record."""
        return ctypes.addressof(self.fields)


class RunMemory(StructureArrays):
    """A record `Run` with its arrays.

    Parameters
    ----------
    program : Program
        The equations.
    method : str
        The name of the method.
    rtol, atol : ndarray, shape (n,)
        Tolerances.
    max_step : float
        Longest step in seconds.
    """

    def __init__(
        self,
        program: Program,
        method: str,
        rtol: FloatArray,
        atol: FloatArray,
        max_step: float = np.inf,
    ) -> None:
        super().__init__(Run)
        self.program = program
        self.method = METHODS[method]
        n, m = program.num_states, program.num_discrete
        fields = self.fields
        fields.n, fields.m = n, m
        self.link("rhs", program.rhs)
        self.link("witness", program.witness)
        self.link("signals", program.signal)
        fields.timed = program.timed
        fields.keeping = 1
        fields.max_step = max_step
        self.attach("rtol", np.maximum(rtol, 100.0 * np.finfo(float).eps))
        self.attach("atol", np.maximum(atol, np.finfo(float).tiny))
        for name in ("work", "point", "time_slope"):
            self.room(name, n)
        self._states: dict[int, FloatArray] = {}
        for name in ("x", "x_old", "x_new"):
            array = self.room(name, n)
            self._states[array.ctypes.data] = array[:n]
        self.room("k", self.method.rows * n)
        self.room("q", self.method.bends * n)
        if self.method.linear:
            self._prepare_linear()
        self.link("attempt", program.attempt(method) if n else generic_attempt(method))

    def _prepare_linear(self) -> None:
        """Provide what solving linear equations needs."""
        program, fields, n = self.program, self.fields, self.program.num_states
        self.link("jacobian", program.jacobian())
        assert program.jacobian_entries is not None
        rows, columns = program.jacobian_entries
        fields.nonzeros = len(rows)
        self.attach("rows", rows)
        self.attach("columns", columns)
        self.room("entries", len(rows))
        pattern = program.sparse_factors
        fields.sparse = pattern is not None
        if pattern is not None:
            fields.pairs = pattern.pairs
            for name in ("starts", "diagonal", "column", "slots", "ranks", "lower", "upper"):
                self.indices(name, getattr(pattern, name))
            self.room("factors", len(pattern.column))
        fields.roomy = n <= _ROOMY
        if fields.roomy:
            self.room("matrix", n * n)
            self.room("pivots", n, np.int64)

    @property
    def work(self) -> float:
        """Roughly the number of operations of a step, and of a look for witness events in it."""
        fields, program = self.fields, self.program
        evaluations = self.method.rows + (3 + 4 * fields.witnesses if fields.witnesses else 0)
        work: float = evaluations * (program.operations + fields.n)
        if self.method.linear:
            pattern = program.sparse_factors
            work += 10 * fields.nonzeros + (pattern.products if pattern else fields.n**3)
        return work

    @property
    def x(self) -> FloatArray:
        """The present state; the loops change which array holds it."""
        return self._states[self.fields.x]

    def set_environment(self, env: FloatArray) -> bool:
        """Use an environment; tell whether it is another one than before."""
        if self.arrays.get("env") is env:
            return False
        self.attach("env", env)
        return True
