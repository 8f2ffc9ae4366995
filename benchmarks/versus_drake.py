"""Flexure against Drake and against C, at equal accuracy, in one run.

Run it with ``python benchmarks/versus_drake.py [--quick] [--json FILE] [WORKLOAD ...]``. Every side
uses its fastest setting that meets the accuracy of the workload, the sides take turns, and ratios
are medians over the rounds. The comparison with Drake needs pydrake (``pip install drake``), the
one with C needs gcc; each is left out, with a word, where it is missing.

=============  =====================================================================================
pid            PID on a mass, of seven blocks
chain          100 masses, springs and dampers
pendulum       sampled PD controller at 1 kHz, logged
ball           15 impacts
stiff          rates 400 apart
ensemble       1000 times pid with other gains
links          five links with springs and dampers in their joints, in a plane
links3d        the same in space
bushing        a body on a LinearBushingRollPitchYaw
stiff-bushing  the same with rates from 10 to 20000
bodies         100 free bodies, joined by springs and dampers
door           a door on the default DoorHinge
cold           a new process that imports, builds and runs pid
growth         right-hand sides of longer and longer chains
=============  =====================================================================================
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import growth
from benchmarks.versus import cold, drake_side, ours
from benchmarks.versus.drake_plants import part
from benchmarks.versus.in_c import c_side
from benchmarks.versus.sides import Contender, MissingPeerError, in_rounds, ratio
from benchmarks.versus.table import Row, show
from benchmarks.versus.workloads import Workload, all_workloads
from flexure.solvers.native import available

#: How many times faster than Drake, or than another side, a way has to be.
SPEEDUPS = {
    ("pid", "native loop", "Drake"): 150.0,
    ("chain", "native loop", "Drake"): 200.0,
    ("pendulum", "native loop", "Drake"): 20.0,
    ("ball", "native loop", "Drake"): 50.0,
    ("stiff", "native loop", "Drake"): 100.0,
    ("pid", "solve_ivp", "Drake"): 25.0,
    ("chain", "solve_ivp", "Drake"): 60.0,
    ("ensemble", "lanes", "Drake"): 500.0,
    ("ensemble", "lanes", "native loop"): 7.0,
    ("links", "native loop", "Drake"): 100.0,
    ("links3d", "native loop", "Drake"): 100.0,
    ("bushing", "native loop", "Drake"): 100.0,
    ("stiff-bushing", "native loop", "Drake"): 200.0,
    ("door", "native loop", "Drake"): 50.0,
}
#: How many times faster than an evaluation of the derivatives in a run of Drake ours has to be.
SPEEDUPS_PER_EVALUATION = {("bodies", "native loop", "Drake"): 100.0}
#: How many times the time of C a way may take.
COSTS = {
    ("pid", "native loop", "C"): 1.2,
    ("chain", "native loop", "C"): 1.8,
    ("links", "native loop", "C"): 1.3,
    ("links3d", "native loop", "C"): 1.3,
}
BARS = (*SPEEDUPS, *SPEEDUPS_PER_EVALUATION, *COSTS)
#: Of straight-line Python, in microseconds per block and evaluation.
STRAIGHT_LINE_COST = 1.0


def peers(workload: Workload) -> tuple[list[Contender], list[str]]:
    """Return the other sides of a workload, and what is missing among them."""
    found: list[Contender] = []
    missing = []
    for side in (drake_side, c_side):
        try:
            found += side.contenders(workload)
        except MissingPeerError as error:
            missing.append(str(error))
    return found, missing


def workload_rows(
    workload: Workload, ways: Sequence[Contender], others: Sequence[Contender], rounds: int
) -> Iterator[Row]:
    """Time all sides of a workload in rounds, and compare our ways with the other sides."""
    sides = [*ways, *others]
    columns = in_rounds([side.run for side in sides], rounds)
    times = {side.name: column for side, column in zip(sides, columns, strict=True)}
    for side in sides:
        best = 1e3 * min(times[side.name])
        yield Row(workload.title, f"{side.name} [ms]", best, note=side.remark)
    for way, other in product(ways, sides):
        key = (workload.name, way.name, other.name)
        mine, theirs = times[way.name], times[other.name]
        if other.name == "C":
            metric = f"{way.name} / C"
            yield Row(workload.title, metric, ratio(mine, theirs), COSTS.get(key), "lower")
        elif other in others or key in SPEEDUPS:
            metric = f"{other.name} / {way.name}"
            yield Row(workload.title, metric, ratio(theirs, mine), SPEEDUPS.get(key), "higher")
        if key in SPEEDUPS_PER_EVALUATION and way.right_hand_side and other.evaluations:
            metric = f"{other.name} / {way.name}, one right-hand side"
            value = statistics.median(theirs) / other.evaluations / way.right_hand_side
            yield Row(workload.title, metric, value, SPEEDUPS_PER_EVALUATION[key], "higher")


def straight_line_row(workload: Workload) -> Row:
    """Measure the right-hand side that needs no further package."""
    side = ours.straight_line(workload)
    metric = "straight-line Python [us per block and evaluation]"
    value = 1e6 * side.cost / side.blocks
    return Row(workload.title, metric, value, STRAIGHT_LINE_COST, "lower", f"{side.blocks} blocks")


def cold_rows(rounds: int) -> Iterator[Row]:
    """Time new processes."""
    part("systems.analysis")
    mine, theirs = in_rounds(
        [lambda: cold.processor_seconds("ours"), lambda: cold.processor_seconds("drake")], rounds
    )
    title, note = "new process", "processor time"
    yield Row(title, "ours [ms]", 1e3 * min(mine), note=note)
    yield Row(title, "Drake [ms]", 1e3 * min(theirs), note=note)
    yield Row(title, "ours / Drake", ratio(mine, theirs), 1.0, "lower")


def measure(names: Sequence[str], missing: list[str], *, quick: bool) -> Iterator[list[Row]]:
    """Give the rows of each workload; list what is missing."""
    rounds = 3 if quick else 9
    for workload in all_workloads(quick=quick):
        if workload.name not in names:
            continue
        others, lacks = peers(workload)
        ways = [found for way in ours.WAYS if (found := way(workload)) is not None]
        rows = list(workload_rows(workload, ways, others, rounds))
        if workload.name in ("pid", "chain"):
            rows.append(straight_line_row(workload))
        yield rows
        bars = [way for name, way, _ in BARS if name == workload.name]
        missing += lacks
        missing += [
            f"{workload.title}: there is no '{way}'"
            for way in dict.fromkeys(bars)
            if way not in {found.name for found in ways}
        ]
    if "cold" in names:
        try:
            yield list(cold_rows(rounds))
        except MissingPeerError as error:
            missing.append(str(error))
    if "growth" in names and available():
        yield list(growth.growth_rows((10, 100, 1000) if quick else growth.COUNTS))
    elif "growth" in names:
        missing.append("growth: native code needs llvmlite (pip install 'flexure[fast]')")


def main() -> None:
    """Measure, print a table, and write the rows."""
    names = [*(workload.name for workload in all_workloads()), "cold", "growth"]
    parser = argparse.ArgumentParser(description="Flexure against Drake and against C.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.workloads if name not in names]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    missing: list[str] = []
    groups = measure(arguments.workloads or names, missing, quick=arguments.quick)
    show(groups, arguments.json)
    for text in dict.fromkeys(missing):
        print(text)


if __name__ == "__main__":
    main()
