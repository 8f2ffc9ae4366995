"""The side written by hand in C, compiled here and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.versus import reference
from benchmarks.versus.sides import Contender, MissingPeerError, fastest, loosest, seconds
from benchmarks.versus.workloads import (
    Array,
    ControlledMass,
    LinkChain,
    MassChain,
    PlanarLinks,
    SpatialLinks,
    Workload,
)

SOURCE = Path(__file__).with_name("hand_written.c")
COMPILER = ["gcc", "-O3", "-march=native", "-shared", "-fPIC"]

_NAMES = {"dormand_prince": "Dormand-Prince 5(4)", "dop853": "DOP853"}
_ROOM = 100_000  # steps that can be recorded
_EVALUATIONS = 100_000


def contenders(workload: Workload) -> list[Contender]:
    """Return this side for a workload, prepared; an empty list for those not written in C.

    Raises
    ------
    MissingPeerError
        When there is no compiler.
    """
    if not isinstance(workload, (ControlledMass, MassChain, LinkChain)):
        return []
    methods = ["dormand_prince"]
    if isinstance(workload, LinkChain):
        methods.append("dop853")
    program = compiled(workload)
    program.check()
    return [fastest([_contender(program, method) for method in methods])]


def _contender(program: Program, method: str) -> Contender:
    """Return the loop of one method at the accuracy of the workload."""
    workload = program.workload
    found = loosest(lambda rtol: program.error(method, rtol), workload.target)
    if found is None:
        raise MissingPeerError(
            f"{workload.title}: the loop in C does not reach {workload.target:g}"
        )
    rtol, error = found
    return Contender(
        "C",
        lambda: program.run(method, rtol),
        error,
        f"{_NAMES[method]}, rtol and atol {rtol:.1e}",
        f"{program.steps(method, rtol)} steps",
        right_hand_side=program.pure_cost(),
    )


@dataclass(frozen=True)
class Program:
    """One workload in the compiled library."""

    workload: Workload
    library: ctypes.CDLL

    def steps(self, method: str, rtol: float, record: Array | None = None) -> int:
        """Run once, and return the number of steps; with a record, their ends are left there."""
        integrate = self._function(method)
        integrate.restype = ctypes.c_long
        horizon, tolerance = ctypes.c_double(self.workload.horizon), ctypes.c_double(rtol)
        room = ctypes.c_long(0 if record is None else len(record))
        x, ends = _pointer(self.workload.initial), None if record is None else _pointer(record)
        return int(integrate(horizon, x, tolerance, tolerance, ends, room))

    def run(self, method: str, rtol: float) -> float:
        """Run once, and return the seconds."""
        return seconds(lambda: self.steps(method, rtol))

    def error(self, method: str, rtol: float) -> float:
        """Return the error at the ends of the steps."""
        record = np.empty((_ROOM, 1 + self.workload.initial.size))
        steps = self.steps(method, rtol, record)
        if not 0 < steps <= _ROOM:
            return float("inf")
        return reference.error(self.workload, record[:steps, 0], record[:steps, 1:])

    def check(self) -> None:
        """Compare the right-hand side with that of the reference at a random state."""
        x = self.workload.probe
        found = np.empty_like(x)
        self._function("evaluate")(ctypes.c_double(0.3), _pointer(x), _pointer(found))
        expected = reference.equations(self.workload)(0.3, x)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)

    def pure_cost(self) -> float:
        """Return the seconds of one right-hand side."""
        x = self.workload.initial
        dx, repeat = np.empty_like(x), self._function("repeat")
        arguments = ctypes.c_long(_EVALUATIONS), _pointer(x), _pointer(dx)
        return min(seconds(lambda: repeat(*arguments)) for _ in range(20)) / _EVALUATIONS

    def _function(self, name: str) -> ctypes._NamedFuncPointer:
        function: ctypes._NamedFuncPointer = getattr(self.library, f"{self.workload.name}_{name}")
        return function


@cache
def compiled(workload: Workload) -> Program:
    """Compile the file with the constants of a workload, and load it."""
    if shutil.which(COMPILER[0]) is None:
        raise MissingPeerError("gcc is not installed: no comparison with C")
    known = ControlledMass(), MassChain(), PlanarLinks(), SpatialLinks()
    workloads: dict[str, Workload] = {w.name: w for w in (*known, workload)}
    constants = [
        f"-D{name}_{field.name}={value!r}".upper()
        for name, each in workloads.items()
        for field in fields(each)
        if isinstance(value := getattr(each, field.name), (int, float))
    ]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "hand_written.so"
        command = [*COMPILER, *constants, "-o", str(library), str(SOURCE), "-lm"]
        subprocess.run(command, check=True)
        return Program(workload, ctypes.CDLL(str(library)))


def _pointer(array: Array) -> ctypes._Pointer[ctypes.c_double]:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
