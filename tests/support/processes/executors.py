"""Sweeps for executors: what is compared, workers that die, and a study on a cluster of Dask.

Run as a program, ``python -m tests.support.processes.executors FOLDER``, it starts a cluster with
two worker processes, one of which dies in the midst of the first study.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np

import flexure as fx
from flexure.solvers.sweeps.running import executors
from tests.support.systems.sweeps import UntilEdge, driven_pendulum, servo

TIMES = np.linspace(0.0, 3.0, 31)


def lanes(executor: Executor | None = None, **options: Any) -> fx.results.Sweep:
    metrics = ["peak", fx.metrics.iae("arm.y", target="target.y")]
    values = {"pid.kp": np.linspace(4.0, 40.0, 1000)}
    options = {"signals": "arm.y", "times": TIMES, "metrics": metrics} | options
    return fx.sweep(servo(), values, 3.0, executor=executor, **options)


def singles(executor: Executor | None = None) -> fx.results.Sweep:
    values = {"pendulum.stiffness": np.linspace(1.0, 9.0, 12)}
    options: Any = {"signals": "pendulum.angle", "times": TIMES, "method": "Rodas5P"}
    options["metrics"] = {"end": fx.metrics.final("pendulum.angle"), "steps": num_steps}
    return fx.sweep(driven_pendulum(), values, 3.0, executor=executor, **options)


def num_steps(result: fx.results.SimulationResult) -> float:
    return float(result.statistics.steps)


def contexts(executor: Executor | None = None) -> fx.results.Sweep:
    pendulum, rng = driven_pendulum(), np.random.default_rng(3)
    given = [pendulum.create_default_context() for _ in range(60)]
    for context in given:
        context.set("pendulum.x", rng.normal(0.0, 0.5, 2))
        context.set("drive.amplitude", rng.uniform(0.1, 1.0))
    return fx.simulate_many(pendulum, given, 3.0, executor=executor, signals="pendulum.angle")


def failures(executor: Executor | None = None) -> fx.results.Sweep:
    return fx.sweep(UntilEdge(), {"edge": np.linspace(0.5, 8.0, 200)}, 6.0, executor=executor)


STUDIES: dict[str, Callable[..., fx.results.Sweep]] = {
    "lanes": lanes,
    "singles": singles,
    "contexts": contexts,
    "failures": failures,
}


def bytes_of(sweep: fx.results.Sweep) -> dict[str, Any]:
    """Return all that a sweep found, bit by bit."""
    arrays = {"finals": sweep.final_states, "steps": sweep.steps}
    arrays |= {signal: sweep[signal] for signal in sweep.signals} | sweep.metrics
    told = {"outcomes": sweep.outcomes.tolist(), "failures": sweep.failures}
    return told | {name: array.tobytes() for name, array in arrays.items()}


class Fatal:
    """A function of samples that kills its own process once, in the midst of a study."""

    def __init__(self, folder: str | Path) -> None:
        self.marker = Path(folder) / "killed"

    def __call__(self, times: Any, samples: Any) -> float:
        if max(samples) < 1.2:  # in two thirds of the runs, not in the first ones
            try:
                self.marker.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return float(samples[-1])


class Post(Executor):
    """Does at once what it is given, which travels as bytes as if to another process.

    After each of some numbers of letters, the workers have forgotten all that they knew.
    """

    def __init__(self, forgetful: tuple[int, ...] = ()) -> None:
        self.letters: list[int] = []
        self.with_diagram = 0
        self.forgetful = forgetful

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:
        if len(self.letters) in self.forgetful:
            executors._jobs.clear()
        letter = pickle.dumps((function, args, named))
        self.letters.append(len(letter))
        self.with_diagram += b"PIDController" in letter
        future: Future[Any] = Future()
        function, args, named = pickle.loads(letter)
        try:
            future.set_result(pickle.loads(pickle.dumps(function(*args, **named))))
        except Exception as error:
            future.set_exception(error)
        return future


def _on_a_cluster(folder: str) -> None:
    distributed: Any = importlib.import_module("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.ncores())
        fatal = fx.metrics.of(Fatal(folder), "arm.y")
        there = lanes(client.get_executor(), metrics=fatal)
        assert (Path(folder) / "killed").exists(), "nobody was killed"
        assert set(client.ncores()) != before, "the workers are those of before"
        assert bytes_of(there) == bytes_of(lanes(metrics=fatal)), "a worker was lost"
        assert bytes_of(contexts(client)) == bytes_of(contexts())
    print("same")


if __name__ == "__main__":
    _on_a_cluster(sys.argv[1])
