"""Ten thousand runs of a step response, of which metrics alone are kept: lanes beside all others.

Run it with ``python benchmarks/many_runs.py [--runs N] [--samples N] [--json FILE]``. There are two
plants, with samples of a Latin hypercube over their constants:

door
    The compliant door of the examples, which sticks in the friction of its hinge at the end. Lanes
    stand beside a loop of single native runs, and beside Drake in a pool with a process for each
    processor.
lid
    A linear hinge under gravity with a PD actuator, beside MuJoCo's ``rollout``.

The others do fewer of the runs, from which the time of all is extrapolated.

Each side uses its fastest method with the loosest tolerance, or the longest step, with which no
angle of the first runs errs by more than a part of the target: at the samples that are measured, or
at the ends of steps. Times are CPU time of all threads and processes, since the sides run on the
same processors; those by the clock follow. Lanes are timed from the call of ``fx.sweep`` to its
return, and measure, from the steps of each run; ``--samples`` says how many samples are kept.
Of the others count the runs alone: Drake with the diagram that each run needs, MuJoCo without its
models, and neither with measuring. Drake needs the package drake, MuJoCo the package mujoco; each
is left out, with a word, where it is missing.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import flexure as fx
from benchmarks.versus import drake_door, lid
from benchmarks.versus.drake_plants import part
from benchmarks.versus.sides import MissingPeerError, loosest
from benchmarks.versus.table import Row, show
from benchmarks.versus.workloads import Array
from examples import compliant_door

DOOR = [
    "door.panel.mass",
    "door.hinge.spring_constant",
    "door.hinge.spring_zero_angle_rad",
    "door.hinge.dynamic_friction_torque",
    "door.hinge.static_friction_torque",
    "door.hinge.viscous_friction",
    "door.hinge.catch_torque",
    "pid.kp",
]
#: How many times the CPU time of lanes the others have to take.
BARS = {"Drake": 1000.0, "MuJoCo": 1.0}
ACCURACIES = {"door": (1e-6,), "lid": (1e-3, 1e-6)}
METHODS = ("RK23", "RK45", "DOP853", "Rodas5P")
CHECKED = 8  # runs whose errors are looked at
SAMPLES = 401  # times at which lanes are measured
TOO_LONG = 3.0  # seconds of CPU for one run of a method that is tried
TRIED = 800  # runs by which the fastest method is found
LANES, SINGLE = "lanes", "single native runs"


@dataclass(frozen=True)
class Side:
    """One side, at its fastest setting: seconds of CPU and clock for a number of runs."""

    name: str
    run: Callable[[], tuple[float, float]]
    runs: int
    setting: str
    error: float


@dataclass(frozen=True)
class Plant:
    """What is run: a diagram, a plan, and precise motions of its first runs."""

    name: str
    diagram: fx.Diagram
    plan: fx.plans.Plan
    end: float
    angle: str
    target: float

    @property
    def metrics(self) -> dict[str, fx.metrics.Metric]:
        """Figures of the angle, and of how much it differs from the target."""
        fm = fx.metrics
        return {
            "settling time": fm.step("settling_time", self.angle),
            "peak": fm.maximum(self.angle),
            "error": fm.iae(self.angle, target=self.target),
        }

    def context(self, k: int) -> fx.Context:
        """Return the beginning of a run."""
        context = self.diagram.create_default_context()
        for path in self.plan.paths:
            context.set(path, self.plan[path][k])
        return context

    def precise(self) -> list[fx.results.SimulationResult]:
        """Return the motions of the first runs."""
        options: Any = {"method": "Rodas5P", "rtol": 1e-10, "atol": 1e-12}
        contexts = map(self.context, range(CHECKED))
        return [fx.simulate(self.diagram, self.end, context=each, **options) for each in contexts]

    def error(self, motions: Sequence[fx.results.SimulationResult], runs: Sequence[Any]) -> float:
        """Return the largest error of times and angles of some runs, as a part of the target."""
        errors = [
            np.max(np.abs(angle - motion.sample(self.angle, times)))
            for motion, (times, angle) in zip(motions, runs, strict=False)
        ]
        return float(np.nan_to_num(max(errors), nan=np.inf)) / self.target


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of CPU of all threads, and those by the clock."""
    clock, cpu = time.perf_counter(), time.process_time()
    run()
    return time.process_time() - cpu, time.perf_counter() - clock


# Flexure ------------------------------------------------------------------------------------------


def lanes(
    plant: Plant, motions: Sequence[fx.results.SimulationResult], accuracy: float, samples: int
) -> Side:
    """Prepare a sweep of all runs."""

    def swept(method: str, tolerance: float, count: int, **wanted: Any) -> fx.results.Sweep:
        wanted |= {"method": method, "rtol": tolerance, "atol": 1e-2 * tolerance}
        times = np.linspace(0.0, plant.end, samples)
        return fx.sweep(plant.diagram, plant.plan[:count], plant.end, times=times, **wanted)

    def angles(method: str, tolerance: float) -> list[tuple[Array, Array]]:
        found = swept(method, tolerance, CHECKED, signals=plant.angle)
        return [(found.times, angle) for angle in found[plant.angle]]

    def run(method: str, tolerance: float, count: int) -> str:
        return swept(method, tolerance, count, metrics=plant.metrics).how

    every = len(plant.plan)
    method, tolerance, error = _fastest(plant, motions, accuracy, angles, partial(run, count=TRIED))
    how = run(method, tolerance, every).partition(":")[0]
    setting = f"{method}, rtol {tolerance:.1e}, {how}"
    return Side(LANES, lambda: timed(partial(run, method, tolerance, every)), every, setting, error)


def single_runs(
    plant: Plant, motions: Sequence[fx.results.SimulationResult], accuracy: float, runs: int
) -> Side:
    """Prepare a loop of single native runs."""
    contexts = list(map(plant.context, range(runs)))

    def simulated(
        method: str, tolerance: float, count: int
    ) -> Iterator[fx.results.SimulationResult]:
        options: Any = {"method": method, "rtol": tolerance, "atol": 1e-2 * tolerance}
        for context in contexts[:count]:
            yield fx.simulate(plant.diagram, plant.end, context=context, **options)

    def angles(method: str, tolerance: float) -> list[tuple[Array, Array]]:
        found = simulated(method, tolerance, CHECKED)
        return [(each.time, each[plant.angle]) for each in found]

    def run(method: str, tolerance: float, count: int) -> None:
        for result in simulated(method, tolerance, count):
            for metric in plant.metrics.values():
                metric(result)

    few = partial(run, count=CHECKED)
    method, tolerance, error = _fastest(plant, motions, accuracy, angles, few)
    setting = f"{method}, rtol {tolerance:.1e}, {runs} runs, measured"
    return Side(SINGLE, lambda: timed(partial(run, method, tolerance, runs)), runs, setting, error)


def _fastest(
    plant: Plant,
    motions: Sequence[fx.results.SimulationResult],
    accuracy: float,
    angles: Callable[[str, float], list[tuple[Array, Array]]],
    run: Callable[[str, float], object],
) -> tuple[str, float, float]:
    """Return the method whose runs are fastest, its loosest tolerance, and its error."""

    def seconds(method: str, tolerance: float) -> float:
        run(method, tolerance)  # compiles
        return min(timed(partial(run, method, tolerance))[0] for _ in range(3))

    def error(tolerance: float, method: str) -> float:
        return plant.error(motions, angles(method, tolerance))

    found = {method: loosest(partial(error, method=method), accuracy) for method in METHODS}
    good = [(seconds(method, each[0]), method, *each) for method, each in found.items() if each]
    return min(good)[1:]


# The others ---------------------------------------------------------------------------------------


def drake_seconds(job: tuple[dict[str, float], str, float]) -> float:
    """Do a run in a process of a pool, and return its seconds of CPU."""
    return drake_door.run(*job).seconds


def drake(
    plant: Plant, motions: Sequence[fx.results.SimulationResult], accuracy: float, runs: int
) -> Side:
    """Prepare runs of Drake in a pool of processes, with its fastest scheme."""
    part("systems.analysis")
    columns = [plant.plan[path][:runs].tolist() for path in plant.plan.paths]
    values = [dict(zip(plant.plan.paths, row, strict=True)) for row in zip(*columns, strict=True)]
    candidates: list[tuple[float, str, float, float]] = []
    done: set[str] = set()
    fastest = math.inf
    for scheme, exponent in product(drake_door.SCHEMES, np.arange(2.0, 7.1, 0.5).tolist()):
        if scheme in done:
            continue
        tolerance = 10.0**-exponent
        limit = 10.0 * min(fastest, TOO_LONG)
        found = [drake_door.run(each, scheme, tolerance, limit) for each in values[:3]]
        seconds = statistics.median(each.seconds for each in found)
        error = plant.error(motions, [(each.times, each.angle) for each in found])
        if any(each.times[-1] < drake_door.END for each in found):
            error = math.inf
        if error <= accuracy:
            candidates.append((seconds, scheme, tolerance, error))
            fastest = min(fastest, seconds)
        if error <= accuracy or seconds > 2.0 * fastest:
            done.add(scheme)  # a tighter accuracy takes longer
    if not candidates:
        raise MissingPeerError(f"{plant.name}: Drake does not reach {accuracy:g}")
    _, scheme, tolerance, error = min(candidates)
    processes = os.cpu_count() or 1
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    jobs = [(each, scheme, tolerance) for each in values]
    list(pool.map(drake_seconds, jobs[: 4 * processes]))  # starts the processes

    def run() -> tuple[float, float]:
        start = time.perf_counter()
        cpu = sum(pool.map(drake_seconds, jobs))
        return cpu, time.perf_counter() - start

    setting = f"{scheme}, accuracy {tolerance:.1e}, {runs} runs in {processes} processes"
    return Side("Drake", run, runs, setting, error)


def mujoco(
    plant: Plant, motions: Sequence[fx.results.SimulationResult], accuracy: float, runs: int
) -> Side:
    """Prepare rollouts of MuJoCo, with its fastest integrator."""
    rollouts = lid.Rollouts(plant.plan[:runs])

    def error(pieces: int, integrator: str) -> float:
        times, angles = rollouts.run(integrator, pieces, CHECKED)
        return plant.error(motions, [(times, each) for each in angles])

    def is_good(pieces: int, integrator: str) -> bool:
        return error(pieces, integrator) <= accuracy

    candidates = []
    for integrator in lid.INTEGRATORS:
        pieces = lid.fewest_pieces(partial(is_good, integrator=integrator), first=16)
        if pieces is not None:
            seconds, _ = timed(partial(rollouts.run, integrator, pieces, CHECKED))
            candidates.append((seconds, integrator, pieces))
    if not candidates:
        raise MissingPeerError(f"{plant.name}: MuJoCo does not reach {accuracy:g}")
    _, integrator, pieces = min(candidates)
    setting = f"{integrator}, steps of {1e3 * lid.STEP_AT / pieces:.3g} ms, {runs} runs"
    return Side(
        "MuJoCo",
        lambda: timed(partial(rollouts.run, integrator, pieces)),
        runs,
        setting,
        error(pieces, integrator),
    )


#: How the others are prepared, for which plant.
MAKERS = {SINGLE: single_runs, "Drake": drake, "MuJoCo": mujoco}
OTHERS = {"door": (SINGLE, "Drake"), "lid": ("MuJoCo",)}

# Comparison ---------------------------------------------------------------------------------------


def plants(runs: int) -> Iterator[Plant]:
    """Return door and lid, with plans of as many runs."""
    door, hinged = compliant_door.build(), lid.build()
    plan = fx.plans.latin_hypercube(DOOR, runs, plus_minus="5 %", context=door)
    yield Plant("door", door, plan, drake_door.END, "door.axis.angle", drake_door.TARGET)
    plan = fx.plans.latin_hypercube([*lid.NOMINAL], runs, plus_minus="20 %", context=hinged)
    yield Plant("lid", hinged, plan, lid.END, lid.ANGLE, lid.TARGET)


def rows_of(title: str, sides: Sequence[Side], runs: int, rounds: int) -> Iterator[Row]:
    """Time the sides in turns, and compare them."""
    times = np.array([[side.run() for side in sides] for _ in range(rounds)])
    times *= np.array([[runs / side.runs] for side in sides])
    for side, column in zip(sides, times.swapaxes(0, 1), strict=True):
        cpu, clock = np.median(column, axis=0)
        note = f"{clock:.3g} s by the clock; {side.setting}; error {side.error:.1e}"
        yield Row(title, f"{side.name} [s of CPU]", cpu, note=note)
    for k, side in enumerate(sides[1:], start=1):
        cpu, clock = np.median(times[:, k] / times[:, 0], axis=0)
        note = f"{clock:.3g} by the clock"
        yield Row(title, f"{side.name} / {LANES}", cpu, BARS.get(side.name), "higher", note)


def measure(
    runs: int, fewer: Mapping[str, int], rounds: int, samples: int, missing: list[str]
) -> Iterator[list[Row]]:
    """Return the rows of each plant and accuracy; list what is missing."""
    for plant in plants(runs):
        motions = plant.precise()
        for accuracy in ACCURACIES[plant.name]:
            sides = [lanes(plant, motions, accuracy, samples)]
            for name in OTHERS[plant.name]:
                try:
                    sides.append(MAKERS[name](plant, motions, accuracy, min(runs, fewer[name])))
                except MissingPeerError as error:
                    missing.append(str(error))
            title = f"{runs} runs of the {plant.name}, error {accuracy:g}"
            yield list(rows_of(title, sides, runs, rounds))


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Many runs, of which metrics are kept.")
    parser.add_argument("--runs", type=int, default=10_000, help="of lanes")
    for name, count in (("single", 200), ("Drake", 40), ("MuJoCo", 2000)):
        parser.add_argument(f"--{name.lower()}", type=int, default=count, help=f"runs of {name}")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="times that lanes measure at")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    fewer = {SINGLE: arguments.single, "Drake": arguments.drake, "MuJoCo": arguments.mujoco}
    missing: list[str] = []
    counts = arguments.rounds, arguments.samples
    show(measure(arguments.runs, fewer, *counts, missing), arguments.json)
    for text in dict.fromkeys(missing):
        print(text)


if __name__ == "__main__":
    main()
