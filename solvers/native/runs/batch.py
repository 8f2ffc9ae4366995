"""Running an ensemble from Python: its runs as tables, spread over threads."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.integration.guard.progress_limits import MARKS
from flexure.solvers.native.kernels.ensembles.ensemble import FREE, PAUSED, UNFINISHED
from flexure.solvers.native.kernels.ensembles.ensemble_data import Ensemble
from flexure.solvers.native.kernels.ensembles.ensemble_trail import FEW
from flexure.solvers.native.language.language import types_of
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.programs.lane_equations import (
    LaneEquations,
    LaneJacobian,
    ensemble_loop,
)
from flexure.solvers.native.programs.method_programs import METHODS, NativeMethod
from flexure.solvers.native.runs.run_memory import (
    CallLength,
    StructureArrays,
    set_factors,
    set_tolerances,
)
from flexure.solvers.results.measures.curves import DenseOutput
from flexure.solvers.results.measures.polynomials import NODES, TOLERANCE

_ALIGNMENT = 64  # bytes
_MOST = 5000  # pieces that are tried in a step, if they fit into
_RESERVE = 32_000_000  # bytes, where all lanes write them until a loop can pause
_SHARE = 1e-4  # of the tolerance of steps, by which pieces may miss signals
_ROOM = 1_000_000  # bytes for pieces, after which a loop pauses
_WORK = 1_000_000  # tries times states, at most, until a loop looks whether it is to stop


@dataclass(frozen=True)
class EnsembleRuns:
    """Definition of the runs of an ensemble."""

    starts: FloatArray  # times at which they begin, shape (N,)
    initial: FloatArray  # states then, shape (N, n)
    env: FloatArray  # numbers of the environment that they share
    places: NDArray[np.int64]  # entries of the environment in which they differ, shape (G,)
    table: FloatArray  # the numbers there, shape (N, G)
    # Ascending break times, of all runs or of each; infinity at the end, shape (B,) or (N, B).
    breaks: FloatArray

    def part(self, first: int, last: int) -> EnsembleRuns:
        """Return the runs from one on, and before another."""
        rows = slice(first, last)
        breaks = self.breaks[rows] if self.breaks.ndim == 2 else self.breaks
        return replace(
            self,
            starts=self.starts[rows],
            initial=self.initial[rows],
            table=self.table[rows],
            breaks=breaks,
        )


@dataclass
class Outcome:
    """Outcomes of the runs."""

    finals: FloatArray  # states at the end, shape (N, n)
    ends: FloatArray  # times at the end, shape (N,)
    # How they ended, in the words of `flexure.solvers.native.kernels.ensembles.ensemble`,
    # shape (N,).
    outcomes: NDArray[np.int64]
    steps: NDArray[np.int64]  # steps taken, shape (N,)
    # The largest deviations from where states belong that projections have left, or zero,
    # shape (N,).
    left: FloatArray
    # Components of the signals at the times of samples; anything in runs that did not come to the
    # end, shape (N, K, S).
    samples: FloatArray
    # The components that are followed, in all steps; NaN where no step was taken.
    dense: DenseOutput
    rough: list[int]  # numbers of the followed components that are too fast for the pieces
    threads: int  # on how many threads they ran
    interruption: KeyboardInterrupt | None = None  # why some runs are unfinished, if so


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
    stopping: threading.Event,
    sampled: int,
    followed: Sequence[int] = (),
    watch: Callable[[NDArray[np.int64]], None] | None = None,
) -> Outcome:
    """Integrate one or more runs to the time ``boundary``.

    Signals are sampled at the ascending ``times``, the first ``sampled`` components of them; of the
    components ``followed``, all is kept that they do in the steps. The equations have a Jacobian if
    the method needs it. The number of ``threads`` has no influence on the numbers. By ``stopping``,
    others end it before its time; ``watch`` is called now and then with the outcomes so far.
    """
    count, n = runs.initial.shape
    threads = max(1, min(threads, -(-count // equations.lanes)))
    outcome = Outcome(
        finals=np.full((count, n), np.nan),
        ends=np.full(count, np.nan),
        outcomes=np.full(count, UNFINISHED),
        steps=np.zeros(count, dtype=np.int64),
        left=np.zeros(count),
        samples=np.empty((count, len(times), sampled)),
        dense=DenseOutput.joined([], len(followed)),
        rough=[],
        threads=threads,
    )
    memories = []
    for first in range(threads):
        memory = _make_memory(equations, runs, outcome, times, method, followed)
        set_tolerances(memory, rtol, atol, max_step)
        memory.fields.trail.tolerance = max(TOLERANCE, _SHARE * float(np.min(rtol)))
        memory.fields.boundary, memory.fields.most_steps = boundary, most_steps
        memory.fields.runs.next, memory.fields.runs.apart = first, threads
        memories.append(memory)
    work = equations.operations * METHODS[method].rows * equations.lanes
    if equations.jacobian is not None:
        factors = equations.jacobian.factors
        work += equations.lanes * (factors.products if factors else n**3)
    pieces: list[FloatArray] = []
    try:
        loop = ensemble_loop(method, equations.lanes)
        look = None if watch is None else partial(watch, outcome.outcomes)
        _in_threads(loop, memories, work, stopping, pieces, look)
    except KeyboardInterrupt as error:
        outcome.interruption = error
    outcome.rough = [each.fields.trail.rough - 1 for each in memories if each.fields.trail.rough]
    outcome.dense = _dense(pieces, runs.starts, boundary, len(followed))
    return outcome


def _in_threads(
    library: Library,
    memories: list[StructureArrays],
    operations: int,
    stopping: threading.Event,
    pieces: list[FloatArray],
    watch: Callable[[], None] | None,
) -> None:
    """Run a loop on all memories, each in a thread of its own, until an event is set."""
    # This thread watches between the calls of its loop. The output of their steps is read then. A
    # try in all lanes takes about so many operations.
    loop = library.function("integrate", ctypes.c_int64, ctypes.c_void_p)

    def work(memory: StructureArrays, watch: Callable[[], None] | None = None) -> None:
        status, fields = PAUSED, memory.fields
        call_length = CallLength(1 + _WORK // fields.system.n, operations)
        while status == PAUSED and not stopping.is_set():
            fields.budget = tries = call_length.length
            began = time.perf_counter()
            status = loop(memory.pointer)
            call_length.measured(tries - fields.budget, time.perf_counter() - began)
            if fields.trail.count:
                pieces.append(memory.parts["trail"].arrays["rows"][: fields.trail.count].copy())
                fields.trail.count = 0
            if watch is not None:
                watch()

    first, *others = memories
    with ThreadPoolExecutor(max(1, len(others))) as pool:
        try:
            waiting = [pool.submit(work, memory) for memory in others]
            work(first, watch)
            for each in waiting:
                each.result()
        except BaseException:
            stopping.set()
            raise


def _dense(
    pieces: list[FloatArray], starts: FloatArray, boundary: float, width: int
) -> DenseOutput:
    """Return what loops have left of the steps of all runs."""
    count, size = len(starts), _row_size(width)
    runs = np.concatenate([np.empty(0), *(rows[:, 0] for rows in pieces)]).astype(np.intp)
    idle = np.flatnonzero(np.bincount(runs, minlength=count) == 0)
    nothing = np.full((len(idle), size), np.nan)
    nothing[:, 1], nothing[:, 2] = starts[idle], boundary
    runs = np.append(runs, idle)
    first = np.append(0, np.cumsum(np.bincount(runs, minlength=count))).astype(np.intp)
    # Those of one run ascend; small integers are sorted in linear time.
    order = np.argsort(runs.astype(np.min_scalar_type(count)), kind="stable")
    rows = np.concatenate([*pieces, nothing])
    pieces.clear()  # there may be many
    rows = np.take(rows, order, axis=0)
    values = rows[:, 3:].reshape(len(rows), len(NODES), width)  # a view
    return DenseOutput(rows[:, 1].copy(), rows[:, 2].copy(), first, values)


def _row_size(width: int) -> int:
    """Return how many numbers a piece of so many components takes."""
    return 3 + len(NODES) * width


def _make_memory(
    equations: LaneEquations,
    runs: EnsembleRuns,
    outcome: Outcome,
    times: FloatArray,
    method: str,
    followed: Sequence[int],
) -> StructureArrays:
    """Make the memory of a loop: what the runs share, and room for the lanes."""
    memory = StructureArrays(Ensemble)
    addresses = equations.addresses(method)
    memory.link("prepare", addresses["prepare"])
    system = memory.parts["system"]
    system.fields.n, system.fields.timed = runs.initial.shape[1], equations.timed
    for name in ("rhs", "attempt"):
        system.link(name, addresses[name])
    system.link("signals", equations.signal)
    _describe_runs(memory.parts["runs"], runs)
    _describe_updates(memory.parts["updates"], equations, runs.env)
    became = memory.parts["outcome"]
    for name in ("finals", "ends", "outcomes", "steps", "left"):
        became.attach(name, getattr(outcome, name))
    samples = memory.parts["samples"]
    samples.fields.count, samples.fields.width = len(times), outcome.samples.shape[2]
    samples.attach("values", outcome.samples)
    samples.attach("times", np.append(times, np.full(equations.lanes, np.inf)))
    samples.fields.bends = METHODS[method].bends
    samples.fields.reads = len(equations.signal_places)
    samples.indices("places", equations.signal_places)
    if followed:
        _make_trail(memory.parts["trail"], followed, equations.lanes)
    memory.parts["manifold"].fields.count = equations.num_deviations
    for name in ("deviations", "projection") if equations.num_deviations else ():
        memory.parts["manifold"].link(name, addresses[name])
    if equations.jacobian is not None:
        memory.parts["linear"].link("jacobian", addresses["jacobian"])
        _make_linear(memory, equations.jacobian, equations.lanes)
    _make_lanes(memory, equations, METHODS[method], runs.env)
    return memory


def _make_trail(trail: StructureArrays, followed: Sequence[int], lanes: int) -> None:
    """Make room for what signals do in the steps."""
    fields, size = trail.fields, _row_size(len(followed))
    fields.width, fields.size = len(followed), size
    fields.most = max(FEW, min(_MOST, _RESERVE // (8 * size * lanes)))
    fields.reserve = (fields.most + 4) * lanes
    fields.room = fields.reserve + _ROOM // (8 * size)
    trail.indices("which", np.asarray(followed, dtype=np.int64))
    trail.attach("rows", np.empty((fields.room, size)))


def _describe_runs(part: StructureArrays, runs: EnsembleRuns) -> None:
    """Say what the runs are."""
    part.fields.count, part.fields.given = len(runs.starts), len(runs.places)
    part.fields.break_width = runs.breaks.shape[-1] if runs.breaks.ndim == 2 else 0
    for name in ("starts", "initial", "places", "table", "breaks"):
        part.attach(name, getattr(runs, name))


def _describe_updates(part: StructureArrays, equations: LaneEquations, env: FloatArray) -> None:
    """Say which updates there are, and when."""
    fields, periodic = part.fields, equations.periodic
    clocks = list(dict.fromkeys(event.trigger for event, _ in periodic))
    fields.count, fields.clocks = len(periodic), len(clocks)
    part.link_all("functions", equations.update_functions)
    part.link("breaks", equations.breaks)
    fields.breaking = equations.breaks is not None
    part.indices("unrestricted", [event.kind == "unrestricted" for event, _ in periodic])
    part.indices("clock", [clocks.index(event.trigger) for event, _ in periodic])
    ends = np.cumsum([0, *(len(update.targets) for _, update in periodic)])
    part.indices("first_target", ends)
    part.indices("targets", [target for _, update in periodic for target in update.targets])
    for name in ("periods", "offsets"):
        part.attach(name, np.array([getattr(clock, name[:-1]) for clock in clocks] or [0.0]))
    fields.held = equations.num_discrete if periodic else 0
    part.attach("values", env[: max(1, fields.held)].copy())


def _make_lanes(
    memory: StructureArrays, equations: LaneEquations, method: NativeMethod, env: FloatArray
) -> None:
    """Make room for the lanes; what has a number for each lane is in one piece of memory."""
    lanes, count, n = memory.parts["lanes"], equations.lanes, memory.fields.system.n
    lanes.fields.count, lanes.fields.waiting = count, 1
    lanes.attach("run_of", np.full(count, FREE))
    for name in ("break_of", "sample_of"):
        lanes.room(name, count, np.int64)
    lanes.room("marks", count * MARKS)
    several = dict.fromkeys(("x", "x_new", "work"), n)
    several |= {"k": method.rows * n, "q": method.bends * n, "sample": len(equations.signals)}
    several["env"] = equations.environment.size
    width = memory.fields.trail.width
    several |= dict.fromkeys(("inside", "both"), (len(NODES) + 1) * width)
    several |= {"before": len(NODES) * width, "scale": width, "basis": len(NODES)}
    updates = memory.parts["updates"]
    several |= dict.fromkeys(("ticks", "due"), max(1, updates.fields.clocks))
    several["results"] = max(1, int(updates.arrays["first_target"][-1]))
    several["away"] = max(1, equations.num_deviations)
    several |= dict.fromkeys(("landed", "shift", "slope", "shift_of_one"), n)
    parts = ["lanes", "step", "samples", "trail", "system", "manifold", "updates"]
    if equations.jacobian is not None:
        parts.append("linear")
        factors = equations.jacobian.factors
        several |= {"time_slope": n, "row": n, "entries": len(equations.jacobian.rows)}
        several |= {"values": len(factors.column) if factors else 1}
    entries = [
        (part, name, count * several.get(name, 1))
        for part in map(memory.parts.__getitem__, parts)
        for name, kind in types_of(part.kind).items()
        if kind == "Reals"
    ]
    piece, start = _aligned(sum(size for *_, size in entries)), 0
    for part, name, size in entries:
        part.attach(name, piece[start : start + size])
        start += size
    for whose in ("system", "samples"):
        memory.parts[whose].arrays["env"][:] = np.repeat(env, count)
    lanes.arrays["sample_time"][:] = np.inf
    memory.fields.prepared = memory.fields.system.env + 8 * count * equations.prepared


def _make_linear(memory: StructureArrays, jacobian: LaneJacobian, lanes: int) -> None:
    """Describe the linear equations, and make room for dense factors of every lane."""
    linear, n = memory.parts["linear"], memory.fields.system.n
    fields, factors = linear.fields, jacobian.factors
    fields.n, fields.nonzeros = n, len(jacobian.rows)
    linear.attach("rows", jacobian.rows)
    linear.attach("columns", jacobian.columns)
    fields.sparse = factors is not None
    if factors is not None:
        set_factors(linear.parts["factors"], factors)
    fields.roomy = True
    linear.room("matrix", lanes * n * n)
    linear.room("pivots", lanes * n, np.int64)
    memory.parts["step"].room("one", max(n, len(jacobian.rows)))


def _aligned(size: int) -> FloatArray:
    """Return zeros that begin where the processor reads whole lanes fastest."""
    memory = np.zeros(size + _ALIGNMENT // 8)
    shift = -memory.ctypes.data % _ALIGNMENT // 8
    return memory[shift : shift + size]
