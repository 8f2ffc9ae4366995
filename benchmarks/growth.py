"""How cost and preparation grow with the size of a diagram: chains of 10 to 10,000 masses.

Run it with ``python benchmarks/growth.py [COUNT ...]``. For every chain there are

build
    the seconds from nothing to a diagram with a context,
cold
    those from there to native derivatives with the parameters filled in, with an empty cache,
warm
    the same when the cache knows the code,
evaluation
    the nanoseconds of one evaluation of all derivatives, per block, called from native code.

What the cache saves, cold minus warm, is the work of LLVM. The rest of the preparation looks once
at every block, as building the diagram does many times. Seconds are those that the thread spends at
work. Native code needs the package llvmlite.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.versus.native_cost import evaluation_cost
from benchmarks.versus.ours import build
from benchmarks.versus.table import Row, formatted
from benchmarks.versus.workloads import MassChain
from flexure.solvers.native.programs.program import Program

COUNTS = (10, 100, 1000, 10_000)
#: How much the cost of an evaluation per block, and the work of LLVM for long chains, may vary.
FLATNESS = 2.0

_LONG = 1000  # masses
_WORK = 2_000_000  # blocks that one measurement evaluates


@dataclass(frozen=True)
class Growth:
    """What was measured for one chain; seconds, and for one block.

    Attributes
    ----------
    count, blocks : int
        Numbers of masses and of blocks.
    build, cold, warm : float
        Seconds of building and preparing.
    compilation : float
        Seconds that the cache saves.
    cost : float
        Seconds of one evaluation per block.
    """

    count: int
    blocks: int
    build: float
    cold: float
    warm: float
    compilation: float
    cost: float


def measure(count: int, repeats: int = 5) -> Growth:
    """Build, prepare and evaluate one chain; of several repetitions the best counts."""
    start = time.thread_time()
    diagram = build(MassChain(count=count))
    context = diagram.create_default_context()
    built = time.thread_time() - start

    def prepare() -> Any:
        program = Program(diagram.layout)
        return program, program.fill(context.store)

    cold: list[float] = []
    warm: list[float] = []
    before = os.environ.get("FLEXURE_CACHE")
    try:
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["FLEXURE_CACHE"] = folder
                for times in (cold, warm):
                    start = time.thread_time()
                    program, env = prepare()
                    times.append(time.thread_time() - start)
    finally:
        del os.environ["FLEXURE_CACHE"]
        if before is not None:
            os.environ["FLEXURE_CACHE"] = before
    blocks = len(diagram.layout.leaves)
    x, evaluations = np.array(context.store.x), max(1, _WORK // blocks)
    cost = evaluation_cost(program, x, env, evaluations) / blocks
    return Growth(count, blocks, built, min(cold), min(warm), min(cold) - min(warm), cost)


def growth_rows(counts: Sequence[int] = COUNTS) -> Iterator[Row]:
    """Measure chains of several lengths, and how much they differ."""
    title = "chains of masses"
    measure(2)  # what only the first program of a process costs
    found = [measure(count) for count in counts]
    for each in found:
        name = f"{each.count} masses"
        note = f"{each.blocks} blocks, built in {each.build:.3g} s"
        yield Row(title, f"{name}: preparation, cold [s]", each.cold, note=note)
        yield Row(title, f"{name}: preparation, warm [s]", each.warm)
        yield Row(title, f"{name}: compilation [s]", each.compilation)
        yield Row(title, f"{name}: evaluation per block [ns]", 1e9 * each.cost)
    costs = [each.cost for each in found]
    yield Row(title, "largest / smallest cost per block", max(costs) / min(costs), FLATNESS)
    long = [each.compilation for each in found if each.count >= _LONG]
    if len(long) > 1:
        metric = f"largest / smallest compilation from {_LONG} masses on"
        # A difference that noise makes negative shows nothing, and meets no bar.
        ratio = max(long) / min(long) if min(long) > 0.0 else float("inf")
        yield Row(title, metric, ratio, FLATNESS)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Growth of cost with the size of a diagram.")
    parser.add_argument("counts", nargs="*", type=int, metavar="COUNT", help="numbers of masses")
    counts = parser.parse_args().counts or COUNTS
    print(formatted(list(growth_rows(counts))))


if __name__ == "__main__":
    main()
