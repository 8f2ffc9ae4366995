"""Many threads at once: what they share is made once, and lives as long as one of them uses it.

The variable ``FLEXURE_STRESS_ROUNDS`` asks for more rounds of the test with eight threads, one
process for each; 200 of them take about ten minutes.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.concurrency.threads import once
from flexure.diagrams.concurrency.warnings_and_garbage import Silence, quietly
from flexure.solvers.native.llvm.library import Library
from flexure.solvers.native.programs import method_programs
from tests.support.native.native import needs_llvmlite
from tests.support.processes.many_threads import make

ROOT = Path(__file__).resolve().parents[3]
ROUNDS = int(os.environ.get("FLEXURE_STRESS_ROUNDS", "2"))


@pytest.mark.full
@needs_llvmlite
@pytest.mark.timeout(200 * ROUNDS)
def test_eight_threads_that_begin_at_once_give_right_numbers(tmp_path: Path) -> None:
    """Half of the rounds in a cache that they fill, half in one that they find full."""
    for k in range(ROUNDS):
        found = subprocess.run(
            [sys.executable, "-m", "tests.support.processes.many_threads", "1"],
            cwd=ROOT,
            env=os.environ | {"FLEXURE_CACHE": str(tmp_path / f"{k - k % 2}")},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert (found.returncode, found.stderr) == (0, "")


# What is shared --------------------------------------------------------------------------------


@pytest.mark.full
@needs_llvmlite
@pytest.mark.parametrize("kind", ["address", "function"])
def test_native_code_lives_as_long_as_somebody_can_call_it(kind: str) -> None:
    text = "define double @three() {\n  ret double 3.0\n}\n"
    library = Library("three", lambda: text)
    alive = weakref.ref(library)
    kept = library.address("three")
    if kind == "function":
        kept = library.function("three", ctypes.c_double)
        assert kept() == 3.0
    del library
    gc.collect()
    assert alive() is not None
    del kept
    gc.collect()
    assert alive() is None


@needs_llvmlite
def test_a_run_keeps_the_loops_that_others_replace() -> None:
    block = fx.FirstOrderLag("lag", time_constant=0.5)
    simulator = fx.Simulator(block, method="RK45")
    simulator.context.set("u", 1.0)
    simulator.advance_to(0.5)
    method_programs.loops.cache_clear()
    method_programs.generic_attempt.cache_clear()
    gc.collect()
    simulator.advance_to(1.0)
    np.testing.assert_allclose(simulator.context.get("x"), 1.0 - np.exp(-2.0), rtol=1e-5)


def test_what_is_made_once_is_made_by_one_thread_for_all() -> None:
    barrier, made = threading.Barrier(8), []

    @once
    def produce(key: str) -> object:
        made.append(key)
        return object()

    def ask(key: str) -> object:
        barrier.wait()
        return produce(key)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, "aaaabbbb"))
    assert sorted(made) == ["a", "b"]
    assert len(set(found[:4])) == len(set(found[4:])) == 1


@pytest.mark.parametrize("count", [20, 40], ids=["one by one", "in lanes"])
def test_a_result_is_read_by_many_threads_at_once(count: int) -> None:
    result = fx.simulate(make(0.7, ticking=True), 3.0, compiled=False)
    names, times = ("y", "ticking.x", "ticking.n"), np.linspace(0.0, 3.0, count)
    expected = {name: result.sample(name, times) for name in names}
    barrier = threading.Barrier(6)

    def read(k: int) -> Any:
        barrier.wait()
        return [result.sample(names[k % 3], times) for _ in range(5)]

    with ThreadPoolExecutor(6) as pool:
        for k, tables in enumerate(pool.map(read, range(6))):
            for table in tables:
                np.testing.assert_array_equal(table, expected[names[k % 3]])


# Silence ---------------------------------------------------------------------------------------


def test_silence_is_for_one_thread_and_leaves_the_filters_to_others() -> None:
    inside, outside = threading.Event(), threading.Event()
    heard: list[str] = []

    def trace() -> None:
        with quietly():
            warnings.warn("of the trace", UserWarning, stacklevel=1)
            inside.set()
            outside.wait()

    thread = threading.Thread(target=trace)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread.start()
        inside.wait()
        assert not gc.isenabled()
        with quietly():
            pass
        warnings.warn("of the main thread", UserWarning, stacklevel=1)
        outside.set()
        thread.join()
        warnings.warn("afterwards", UserWarning, stacklevel=1)
        heard += [str(each.message) for each in caught]
    assert heard == ["of the main thread", "afterwards"]
    assert gc.isenabled()


def test_silence_can_be_for_some_warnings_only() -> None:
    silence = Silence("lsoda")
    with silence:
        warnings.warn("lsoda: repeated failures", UserWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="something else"):
            warnings.warn("something else", UserWarning, stacklevel=1)


# Figures ---------------------------------------------------------------------------------------


@pytest.mark.full
def test_figures_of_other_threads_are_not_mixed_up_with_those_of_pyplot() -> None:
    import matplotlib.pyplot as plt

    builder = fx.DiagramBuilder("charge")
    builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    builder.connect_chain("source", "lag")
    diagram = builder.build()
    result = fx.simulate(diagram, 12.0)
    draw = [
        lambda: result.plot("lag.y").axes[0],
        lambda: result.step_response("lag.y", at=0.5).plot(),
        diagram.plot,
    ]
    before = plt.get_fignums()
    with ThreadPoolExecutor(3) as pool:
        axes = [future.result() for future in [pool.submit(each) for each in draw]]
    assert plt.get_fignums() == before
    assert all(ax.has_data() for ax in axes)
    shown = result.plot("lag.y")
    assert plt.get_fignums() == [*before, shown.number]
    plt.close(shown)
