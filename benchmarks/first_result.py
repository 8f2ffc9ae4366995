"""How long one waits for the first result after an edit of a model: chains of 5 to 200 links.

Run it with ``python benchmarks/first_result.py [--quick] [--json FILE] [COUNT ...]``. Every
measurement is a process of its own with a cache of its own, in which the model is built and
simulated for 10 ms, with an explicit method and with one for stiff systems:

warm
    a chain of one link was simulated before, so that modules are imported and the loops of the
    methods are in the cache; the longer chain is new to it,
cold
    the cache is empty, and all but ``import flexure`` is still to be imported.

Seconds are those of the processor. Times are divided by that of ``import numpy, scipy.integrate``
in the same process, so that they can be compared between machines. Operations are those of the
derivatives. The comparison with Drake needs pydrake (``pip install drake``).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from benchmarks.versus.table import Row
    from benchmarks.versus.workloads import LinkChain

COUNTS = (5, 20, 50, 100, 200)
METHODS = ("DOP853", "Rodas5P")
#: How many times that of the imports the time after an edit may be.
BARS = {(5, "DOP853"): 1.0, (5, "Rodas5P"): 2.0, (50, "DOP853"): 4.0, (50, "Rodas5P"): 8.0}
#: How much more than from the chain of 50 links an operation of a longer one may take.
GROWTH = 1.5

_HORIZON = 0.01


def chain(count: int) -> LinkChain:
    """Return the benchmark's links in space, another number of them."""
    from benchmarks.versus.workloads import SpatialLinks

    start = tuple(islice(cycle(SpatialLinks.start), count))
    axes = "".join(islice(cycle("yx"), count))
    kind: type[LinkChain] = type("Links", (SpatialLinks,), {"axes": axes})
    return kind(start=start, horizon=_HORIZON)


def ours(method: str, count: int, *, warm: bool) -> dict[str, float]:
    """Build and simulate a chain in this process, which has not done so before."""
    unit = _import_time()
    import flexure as fx
    from benchmarks.versus.plants import build_plant

    def first(links: int) -> tuple[float, int]:
        workload = chain(links)
        start = time.process_time()
        simulator = fx.Simulator(build_plant(workload), method=method, compiled="native")
        simulator.context.set("tree.x", workload.initial)
        simulator.advance_to(workload.horizon)
        spent = time.process_time() - start
        return spent, int(simulator.explain().split()[-2])

    if warm:
        first(1)
    seconds, operations = first(count)
    return {"unit": unit, "seconds": seconds, "operations": operations}


def drake(count: int) -> dict[str, float]:
    """Do the same with Drake, whose integrators need no preparation."""
    unit = _import_time()
    from benchmarks.versus.drake_plants import part, plant

    analysis, workload = part("systems.analysis"), chain(count)
    plant(chain(1))
    start = time.process_time()
    made, _ = plant(workload)
    simulator: Any = analysis.Simulator(made)
    simulator.get_mutable_context().SetContinuousState(workload.initial)
    simulator.AdvanceTo(workload.horizon)
    return {"unit": unit, "seconds": time.process_time() - start}


def _import_time() -> float:
    start = time.process_time()
    import numpy as np
    import scipy.integrate

    assert np.__name__ in sys.modules
    assert scipy.integrate is not None
    return time.process_time() - start


def in_new_process(*arguments: object) -> dict[str, float] | None:
    """Measure in a new process with an empty cache; None when that is not possible."""
    with tempfile.TemporaryDirectory() as folder:
        folder_of_cache = str(Path(folder) / "cache")
        done = subprocess.run(
            [sys.executable, __file__, "--one", *map(str, arguments)],
            env=os.environ | {"FLEXURE_CACHE": folder_of_cache},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1])
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows(counts: Sequence[int], rounds: int) -> Iterator[Row]:
    """Measure chains in rounds."""
    from benchmarks.versus.table import Row

    per_operation: dict[tuple[int, str], float] = {}
    for count in counts:
        title = f"{count} links in space"
        for method in METHODS:
            for state in ("warm", "cold"):
                found = [in_new_process("ours", method, count, state) for _ in range(rounds)]
                each = [one for one in found if one is not None]
                ratio = statistics.median(one["seconds"] / one["unit"] for one in each)
                seconds = min(one["seconds"] for one in each)
                note = f"{seconds:.3g} s of {each[0]['operations']:.0f} operations"
                bar = BARS.get((count, method)) if state == "warm" else None
                yield Row(title, f"{method}, {state} / imports", ratio, bar, "lower", note)
                if state == "warm":
                    per_operation[count, method] = ratio / each[0]["operations"]
        theirs = [in_new_process("drake", count) for _ in range(rounds)]
        known = [one for one in theirs if one is not None]
        if known:
            ratio = statistics.median(one["seconds"] / one["unit"] for one in known)
            note = f"{min(one['seconds'] for one in known):.3g} s"
            yield Row(title, "Drake / imports", ratio, None, "lower", note)
    for (count, method), cost in per_operation.items():
        if count > 50 and (50, method) in per_operation:
            metric = f"{method}, per operation / 50 links"
            value = cost / per_operation[50, method]
            yield Row(f"{count} links in space", metric, value, GROWTH, "lower")


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="The first result after an edit of a model.")
    parser.add_argument("counts", nargs="*", type=int, metavar="COUNT", help="numbers of links")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and chains")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    parser.add_argument("--one", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        match arguments.one:
            case ["ours", method, count, state]:
                print(json.dumps(ours(method, int(count), warm=state == "warm")))
            case ["drake", count]:
                print(json.dumps(drake(int(count))))
        return
    from benchmarks.versus.table import show

    counts = arguments.counts or ((5, 50) if arguments.quick else COUNTS)
    show(([row] for row in rows(counts, 2 if arguments.quick else 5)), arguments.json)


if __name__ == "__main__":
    main()
