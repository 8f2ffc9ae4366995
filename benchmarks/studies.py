"""How long a study takes with metrics only: by this process alone, and by executors.

Run it with ``python benchmarks/studies.py [RUNS]``. Each run is the step response of the compliant
door of ``examples/compliant_door.py`` to 10 s, with other gains and another spring, and leaves its
overshoot and settling time. Printed are, for each way of running all of them,

seconds
    by the clock, the least of several times, when workers have the compiled equations,
ratio
    to the time of as many native threads as there are workers, without any executor,
bytes, chunks
    what is sent for each run and comes back for it, the diagram aside, and the number of chunks.

Native code needs the package llvmlite, and Dask the extra ``cluster``.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import flexure as fx
from examples.compliant_door import build

END = 10.0  # s
WORKERS = 2
#: How much longer than without it a study may take on one machine with Dask.
MOST = 1.15


def plan(runs: int) -> fx.Plan:
    """Return what the runs differ in."""
    ranges = {
        "pid.kp": (40.0, 90.0),
        "pid.ki": (10.0, 30.0),
        "pid.kd": (8.0, 16.0),
        "door.hinge.spring_constant": (2.0, 4.0),
    }
    return fx.latin_hypercube(ranges, runs, seed=1)


def study(servo: fx.System, samples: fx.Plan, **options: Any) -> fx.Sweep:
    """Run all samples."""
    metrics = {
        name: fx.metrics.step(name, "door.axis.angle") for name in ("overshoot", "settling_time")
    }
    # Explicit steps are many, as the catch is stiff, and still cheaper, for they run in lanes.
    return fx.sweep(servo, samples, END, metrics=metrics, method="RK45", **options)


class Scales(Executor):
    """Weighs what another executor is sent and what comes back, and counts the parts."""

    def __init__(self, inner: Executor) -> None:
        self.inner, self._max_workers = inner, WORKERS
        self.letters: list[int] = []

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:
        """Pass it on."""
        future = self.inner.submit(function, *args, **named)
        sent = len(pickle.dumps((args, named)))
        future.add_done_callback(
            lambda done: self.letters.append(sent + len(pickle.dumps(done.result())))
        )
        return future


@contextmanager
def dask() -> Iterator[Executor]:
    """Start a cluster on this machine."""
    distributed = importlib.import_module("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


def seconds(run: Callable[[], object], times: int) -> float:
    """Return the least time that something takes, after it was done once."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="?", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3, help="repetitions")
    arguments = parser.parse_args()
    servo, samples = build(), plan(arguments.runs)
    spawn = multiprocessing.get_context("spawn")
    ways: dict[str, Callable[[], Any]] = {
        "ThreadPoolExecutor": lambda: ThreadPoolExecutor(WORKERS),
        "ProcessPoolExecutor": lambda: ProcessPoolExecutor(WORKERS, spawn),
    }
    if find_spec("distributed") is not None:
        ways["Dask"] = dask
    print(f"{arguments.runs} runs of {END:g} s, {WORKERS} workers or threads")
    alone = study(servo, samples, threads=WORKERS)
    plain = seconds(lambda: study(servo, samples, threads=WORKERS), arguments.times)
    one = seconds(lambda: study(servo, samples, threads=1), arguments.times)
    print(f"{'no executor':20} {plain:7.3f} s; a single thread {one / plain:.2f} times that")
    for name, make in ways.items():
        with make() as executor:
            scales = Scales(executor)
            took = seconds(lambda: study(servo, samples, executor=executor), arguments.times)
            found = study(
                servo, samples, executor=scales if name != "ThreadPoolExecutor" else executor
            )
        same = all(alone.metrics[k].tobytes() == found.metrics[k].tobytes() for k in alone.metrics)
        weight = ""
        if scales.letters:
            each = np.median(scales.letters) * len(scales.letters) / arguments.runs
            weight = f", {each:.0f} bytes a run, {len(scales.letters)} chunks"
        print(f"{name:20} {took:7.3f} s, ratio {took / plain:.2f}{weight}, same bytes: {same}")


if __name__ == "__main__":
    main()
