"""Running an ensemble from Python: its runs as tables, spread over threads."""

from __future__ import annotations

import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values import FloatArray
from flexure.solvers.integration.slow_strides import MARKS
from flexure.solvers.native.call_length import CallLength
from flexure.solvers.native.kernels.ensemble import FREE, PAUSED, UNFINISHED, Ensemble
from flexure.solvers.native.lane_equations import LaneEquations, ensemble_loop
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.methods import METHODS, NativeMethod
from flexure.solvers.native.run_memory import StructureArrays

_ALIGNMENT = 64  # bytes
_WORK = 1_000_000  # tries times states, at most, until a loop looks whether it is to stop

_SINGLE = (
    *("live", "starting", "again", "time", "end", "stop", "clip", "sample_time"),
    *("h", "h_wanted", "h_first", "error", "error_old", "steps", "motion_steps"),
    "review",
)


@dataclass(frozen=True)
class EnsembleRuns:
    """What the runs of an ensemble are.

    Attributes
    ----------
    starts : ndarray, shape (N,)
        Times at which they begin.
    initial : ndarray, shape (N, n)
        States then.
    env : ndarray
        Numbers of the environment that they share.
    places : ndarray, shape (G,)
        Entries of the environment in which they differ.
    table : ndarray, shape (N, G)
        The numbers there.
    breaks : ndarray, shape (B,) or (N, B)
        Ascending break times, of all runs or of each; infinity at the end.
    """

    starts: FloatArray
    initial: FloatArray
    env: FloatArray
    places: NDArray[np.int64]
    table: FloatArray
    breaks: FloatArray


@dataclass
class Outcome:
    """What became of the runs.

    Attributes
    ----------
    finals : ndarray, shape (N, n)
        States at the end.
    ends : ndarray, shape (N,)
        Times at the end.
    outcomes : ndarray of int, shape (N,)
        How they ended, in the words of `flexure.solvers.native.kernels.ensemble`.
    steps : ndarray of int, shape (N,)
        Steps taken.
    samples : ndarray, shape (N, K, S)
        Components of the signals at the times of samples.
    threads : int
        On how many threads they ran.
    interruption : KeyboardInterrupt or None
        Why some runs are unfinished, if so.
    """

    finals: FloatArray
    ends: FloatArray
    outcomes: NDArray[np.int64]
    steps: NDArray[np.int64]
    samples: FloatArray
    threads: int
    interruption: KeyboardInterrupt | None = None


def integrate_runs(
    equations: LaneEquations,
    runs: EnsembleRuns,
    boundary: float,
    times: FloatArray,
    *,
    method: str,
    rtol: FloatArray,
    atol: FloatArray,
    max_step: float,
    most_steps: float,
    threads: int,
) -> Outcome:
    """Integrate all runs to a time.

    Parameters
    ----------
    equations : LaneEquations
        Of their system.
    runs : EnsembleRuns
        At least one.
    boundary : float
        The time to reach.
    times : ndarray, shape (K,)
        Ascending times at which signals are sampled.
    method, rtol, atol, max_step, most_steps
        As for a single run; the method is an explicit one.
    threads : int
        Number of threads; it has no influence on the numbers.
    """
    count, n = runs.initial.shape
    threads = max(1, min(threads, -(-count // equations.lanes)))
    outcome = Outcome(
        finals=np.full((count, n), np.nan),
        ends=np.full(count, np.nan),
        outcomes=np.full(count, UNFINISHED),
        steps=np.zeros(count, dtype=np.int64),
        samples=np.full((count, len(times), len(equations.signals)), np.nan),
        threads=threads,
    )
    records = []
    for first in range(threads):
        record = _record(equations, runs, outcome, times, method)
        record.attach("rtol", np.maximum(rtol, 100.0 * np.finfo(float).eps))
        record.attach("atol", np.maximum(atol, np.finfo(float).tiny))
        record.fields.max_step, record.fields.boundary = max_step, boundary
        record.fields.most_steps = most_steps
        record.fields.next, record.fields.stride = first, threads
        records.append(record)
    work = equations.operations * METHODS[method].rows * equations.lanes
    try:
        _in_threads(ensemble_loop(method, equations.lanes), records, work)
    except KeyboardInterrupt as error:
        outcome.interruption = error
    return outcome


def _in_threads(library: Library, records: list[StructureArrays], operations: int) -> None:
    """Run a loop on all records, each in a thread of its own.

    A try in all lanes takes about so many operations.
    """
    loop = library.function("integrate", ctypes.c_int64, ctypes.c_void_p)
    stopping = threading.Event()

    def work(record: StructureArrays) -> None:
        status, fields = PAUSED, record.fields
        stride = CallLength(1 + _WORK // fields.n, operations)
        while status == PAUSED and not stopping.is_set():
            fields.budget = tries = stride.length
            began = time.perf_counter()
            status = loop(record.pointer)
            stride.measured(tries - fields.budget, time.perf_counter() - began)

    first, *others = records
    with ThreadPoolExecutor(max(1, len(others))) as pool:
        try:
            waiting = [pool.submit(work, record) for record in others]
            work(first)
            for each in waiting:
                each.result()
        finally:
            stopping.set()


def _record(
    equations: LaneEquations, runs: EnsembleRuns, outcome: Outcome, times: FloatArray, method: str
) -> StructureArrays:
    """Make the record of a loop: what the runs share, and room for the lanes."""
    record = StructureArrays(Ensemble)
    fields, lanes = record.fields, equations.lanes
    count, n = runs.initial.shape
    fields.n, fields.lanes, fields.waiting, fields.runs = n, lanes, 1, count
    for name, address in equations.addresses(method).items():
        record.link(name, address)
    record.link("signals", equations.signal)
    for name in ("starts", "initial", "places", "table", "breaks"):
        record.attach(name, getattr(runs, name))
    fields.given = len(runs.places)
    fields.break_width = runs.breaks.shape[-1] if runs.breaks.ndim == 2 else 0
    for name, array in (
        ("finals", outcome.finals),
        ("ends", outcome.ends),
        ("outcomes", outcome.outcomes),
        ("steps_taken", outcome.steps),
        ("samples", outcome.samples),
        ("times", np.append(times, np.inf)),
    ):
        record.attach(name, array)
    fields.count, fields.width = len(times), outcome.samples.shape[2]
    record.attach("run_of", np.full(lanes, FREE))
    for name in ("break_of", "sample_of"):
        record.room(name, lanes, np.int64)
    record.room("marks", lanes * MARKS)
    _make_lanes(record, equations, runs.env, METHODS[method])
    return record


def _make_lanes(
    record: StructureArrays, equations: LaneEquations, env: FloatArray, method: NativeMethod
) -> None:
    """Make the arrays with a number for each lane, all in one piece of memory."""
    n, lanes = record.fields.n, equations.lanes
    sizes = dict.fromkeys(_SINGLE, 1) | dict.fromkeys(("x", "x_new", "work"), n)
    sizes |= {"k": method.rows * n, "q": method.bends * n, "row": len(equations.signals)}
    sizes["env"] = equations.environment.size
    memory = _aligned(lanes * sum(sizes.values()))
    start = 0
    for name, size in sizes.items():
        record.attach(name, memory[start : start + lanes * size])
        start += lanes * size
    record.arrays["env"][:] = np.repeat(env, lanes)
    record.arrays["sample_time"][:] = np.inf
    record.fields.prepared = record.fields.env + 8 * lanes * equations.prepared


def _aligned(size: int) -> FloatArray:
    """Return zeros that begin where the processor reads whole lanes fastest."""
    memory = np.zeros(size + _ALIGNMENT // 8)
    shift = -memory.ctypes.data % _ALIGNMENT // 8
    return memory[shift : shift + size]


__all__ = ["EnsembleRuns", "Outcome", "integrate_runs"]
