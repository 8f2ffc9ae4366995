"""How long a study takes with metrics only, by threads and executors, and what goes to and fro.

Run it with ``python benchmarks/sweeps/studies.py [RUNS] [--times N]``. Each run is the step
response of the compliant door of ``examples/compliant_door.py`` to 10 s, with other gains and
another spring, and leaves its overshoot and settling time. For one worker and for two, printed are,
for each way of running all of them,

seconds, ratio
    by the clock, the least of several times, when workers have the compiled equations, and their
    ratio to the time of as many native threads without any executor,
bytes a run, chunks, chunks a second
    what is sent for each run and comes back for it, the diagram aside, and in how many chunks,
ms a chunk
    of processor time that this process takes for a chunk, without what it takes while it waits: t
    of the model in ``docs/studies.md``,
saturation
    the numbers of workers, T / t and B T / (r b), at which this process, with chunks of T = 1 s,
    and a network of 1 Gbit/s would be busy all the time.

Measure on a quiet machine: chunks have the length that workers take by the clock. Native code needs
the package llvmlite, and Dask the extra ``cluster``.
"""

from __future__ import annotations

import argparse
import importlib
import math
import multiprocessing
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from examples.compliant_door import build

END = 10.0  # s
#: How much longer than without it a study may take on one machine with Dask.
MOST = 1.15
CHUNK = 1.0  # s that a chunk takes, about
NETWORK = 1e9 / 8.0  # bytes per second


def plan(runs: int) -> fx.plans.Plan:
    """Return what the runs differ in."""
    ranges = {
        "pid.kp": (40.0, 90.0),
        "pid.ki": (10.0, 30.0),
        "pid.kd": (8.0, 16.0),
        "door.hinge.spring_constant": (2.0, 4.0),
    }
    return fx.plans.latin_hypercube(ranges, runs, seed=1)


def study(servo: fx.System, samples: fx.plans.Plan, **options: Any) -> fx.results.Sweep:
    """Run all samples."""
    metrics = {
        name: fx.metrics.step(name, "door.axis.angle") for name in ("overshoot", "settling_time")
    }
    # Explicit steps are many, as the catch is stiff, and still cheaper, for they run in lanes.
    return fx.sweep(servo, samples, END, metrics=metrics, method="RK45", **options)


class Scales(Executor):
    """Weighs what another executor is sent and what comes back, and counts the parts."""

    def __init__(self, inner: Executor, workers: int) -> None:
        self.inner, self._max_workers = inner, workers
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
def dask(workers: int) -> Iterator[Executor]:
    """Start a cluster on this machine."""
    distributed = importlib.import_module("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


def seconds(run: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the least time that something takes, and the processor time here, once it was done."""
    run()
    found = []
    for _ in range(times):
        start, cpu = time.perf_counter(), time.process_time()
        run()
        found.append((time.perf_counter() - start, time.process_time() - cpu))
    return min(found)


def idling() -> float:
    """Return which part of a processor this process takes while it waits."""
    cpu = time.process_time()
    time.sleep(1.0)
    return time.process_time() - cpu


def weighed(scales: Scales, took: float, here: float, runs: int) -> str:
    """Say what was sent, and where the sender and a network are saturated."""
    chunks = len(scales.letters)
    each = sum(scales.letters) / runs
    sender, cost = here / chunks, took * scales._max_workers / runs
    return (
        f"{each:.0f} bytes a run, {chunks} chunks, {chunks / took:.1f} a second, "
        f"{1e3 * sender:.1f} ms a chunk; saturation: sender at {CHUNK / sender:.0f} workers, "
        f"network at {NETWORK * cost / each:.0f}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="?", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3, help="repetitions")
    arguments = parser.parse_args()
    runs, times = arguments.runs, arguments.times
    servo, samples = build(), plan(runs)
    spawn = multiprocessing.get_context("spawn")
    ways: dict[str, Callable[[int], Any]] = {
        "ThreadPoolExecutor": ThreadPoolExecutor,
        "ProcessPoolExecutor": lambda workers: ProcessPoolExecutor(workers, spawn),
    }
    if find_spec("distributed") is not None:
        ways["Dask"] = dask
    print(f"{runs} runs of {END:g} s")
    single = math.nan
    for workers in (1, 2):
        alone = study(servo, samples, threads=workers)
        plain, _ = seconds(partial(study, servo, samples, threads=workers), times)
        single = plain if workers == 1 else single
        print(f"{workers} threads, no executor: {plain:.3f} s, {single / plain:.2f} times as fast")
        for name, make in ways.items():
            with make(workers) as executor:
                took, here = seconds(partial(study, servo, samples, executor=executor), times)
                here -= idling() * took
                scales = Scales(executor, workers)
                weighs = name != "ThreadPoolExecutor"
                found = study(servo, samples, executor=scales if weighs else executor)
            same = all(
                column.tobytes() == found.metrics[k].tobytes()
                for k, column in alone.metrics.items()
            )
            told = weighed(scales, took, here, runs) if weighs else "nothing is sent"
            bar = f" (at most {MOST:g})" if name == "Dask" else ""
            ratio = f"ratio {took / plain:.2f}{bar}"
            print(f"  {name:19} {took:.3f} s, {ratio}, same bytes: {same}; {told}")


if __name__ == "__main__":
    main()
