"""Sweeps by executors: every byte is that of a sweep by one process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, ExecutorError, ValueRefusedError
from flexure.solvers.sweeps.running import executors
from tests.support.native.native import needs_llvmlite
from tests.support.processes.executors import STUDIES, Fatal, Post, bytes_of, lanes, singles
from tests.support.systems.sweeps import Pendulum, servo

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("study", STUDIES)
def test_other_threads_and_processes_find_the_same_bytes(study: str, processes: Any) -> None:
    run = STUDIES[study]
    expected = bytes_of(run())
    assert bytes_of(run(processes)) == expected
    with ThreadPoolExecutor(2) as threads:
        assert bytes_of(run(threads)) == expected
    assert bytes_of(run(Post())) == expected


@needs_llvmlite
def test_a_cluster_that_loses_a_worker_finds_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    program = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.support.processes.executors",
        str(tmp_path),
    ]
    found = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
    assert found.stdout.endswith("same\n"), found.stderr[-2000:]


@needs_llvmlite
def test_a_pool_that_loses_a_worker_leaves_what_was_done(tmp_path: Path) -> None:
    fatal = fx.metrics.of(Fatal(tmp_path), "arm.y")
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        pytest.raises(ExecutorError, match="found BrokenProcessPool") as caught,
    ):
        lanes(pool, metrics=fatal)
    found, whole = caught.value.result, lanes(metrics=fatal)
    done = found.outcomes == "completed"
    assert 0 < done.sum() < len(whole)
    assert set(found.outcomes[~done]) == {"interrupted"}
    assert np.isnan(found["arm.y"][~done]).all()
    assert found["arm.y"][done].tobytes() == whole["arm.y"][done].tobytes()


def test_each_worker_gets_the_diagram_once_unless_it_has_forgotten() -> None:
    workers, post = os.cpu_count() or 1, Post()
    expected = bytes_of(lanes(post))
    assert len(post.letters) >= workers + 2
    assert post.with_diagram == workers
    forgetful = Post(forgetful=(workers + 1,))
    assert bytes_of(lanes(forgetful)) == expected
    assert workers < forgetful.with_diagram <= 3 * workers  # those on their way, once more


def test_chunks_travel_in_few_bytes_for_each_run() -> None:
    """A value goes out and six numbers come back; the rest is shared by the runs of a chunk."""
    post, count = Post(), 2000
    fx.sweep(
        fx.FirstOrderLag("lag", 1.0),
        {"time_constant": np.linspace(0.5, 2.0, count), "u": np.ones(count)},
        1.0,
        metrics=fx.metrics.final("y"),
        executor=post,
    )
    diagram = post.letters[0]
    assert sum(post.letters) - diagram * (os.cpu_count() or 1) < 64 * count


class Pressing(ThreadPoolExecutor):
    """Somebody presses Ctrl-C while the second chunk is being run."""

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:
        future = super().submit(function, *args, **named)
        self.count = getattr(self, "count", 0) + 1
        if self.count == 2:
            future.result()
            raise KeyboardInterrupt
        return future


def test_an_interrupted_sweep_has_what_came_back() -> None:
    with Pressing(1) as pool, pytest.raises(KeyboardInterrupt) as caught:
        singles(pool)
    outcomes = caught.value.result.outcomes.tolist()  # type: ignore[attr-defined]
    assert "completed" in outcomes
    assert "interrupted" in outcomes


def test_an_interruption_does_not_wait_for_long_runs_of_threads() -> None:
    press = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    began = time.process_time()
    press.start()
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        fx.sweep(Pendulum(), {"stiffness": [4.0, 5.0]}, 1e5, compiled=False, executor=pool)
    assert time.process_time() - began < 20.0


class TestPickling:
    @staticmethod
    def with_a_lambda() -> fx.Diagram:
        builder = fx.DiagramBuilder("loop")
        builder.add_all(
            fx.TimeFunction("source", lambda t: np.sin(2.0 * t), 1), fx.FirstOrderLag("lag", 1.0)
        )
        builder.connect_chain("source", "lag")
        return builder.build()

    def test_what_has_no_name_is_refused_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(executors, "find_spec", lambda _: None)
        post = Post()
        with pytest.raises(DeclarationError, match=r"attribute '.*' of 'source'.*<lambda>"):
            fx.sweep(self.with_a_lambda(), {"lag.time_constant": [1.0]}, 1.0, executor=post)
        with pytest.raises(DeclarationError, match=r"the metric 'own'.*cloudpickle"):
            lanes(post, metrics={"own": lambda result: 1.0})
        scripted = type("Scripted", (Pendulum,), {"__module__": "__main__"})
        with pytest.raises(DeclarationError, match=r"'pendulum'.*'Scripted' is defined in the"):
            fx.sweep(scripted(), {"stiffness": [1.0]}, 1.0, executor=post)
        assert not post.letters

    def test_what_has_no_name_travels_by_value(self, processes: Any) -> None:
        pytest.importorskip("cloudpickle")
        system = self.with_a_lambda()
        values = {"lag.time_constant": np.linspace(0.5, 1.5, 100)}
        options: Any = {"metrics": {"own": fx.metrics.of(lambda t, y: y[-1], "lag.y")}}
        there = fx.sweep(system, values, 1.0, executor=processes, **options)
        assert bytes_of(there) == bytes_of(fx.sweep(system, values, 1.0, **options))

    def test_other_versions_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mine = {"flexure": fx.__version__, "numpy": "1.0", "python": "3.14"}
        monkeypatch.setattr(executors, "_versions", iter([mine, executors._versions()]).__next__)
        executors._jobs.clear()
        with pytest.raises(ExecutorError, match=r"expected numpy 1\.0, python 3\.14; found"):
            fx.sweep(servo(), {"pid.kp": [4.0]}, 1.0, executor=Post())


def test_what_is_no_executor_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match=r"expected an executor of concurrent.futures"):
        lanes(4)  # type: ignore[arg-type]
