"""Processes that are made while a thread compiles: they simulate, and do not hang."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flexure.diagrams.concurrency.threads import cached_property
from tests.support.native.native import needs_llvmlite

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[3]


@needs_llvmlite
@pytest.mark.timeout(200)
@pytest.mark.parametrize(("how", "count"), [("fork", 2), ("forkserver", 1), ("spawn", 1)])
def test_processes_that_are_made_while_a_thread_compiles_simulate(
    how: str, count: int, tmp_path: Path
) -> None:
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has other ways to make processes")
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.processes.forking", how, str(count)],
        cwd=ROOT,
        env=os.environ | ({"FLEXURE_CACHE": str(tmp_path)} if how == "fork" else {}),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert found.stdout.startswith("0 of "), found.stderr
    assert found.returncode == 0


#: Forks while another thread is inside of a library, and does what `meanwhile` says before it ends.
FORKS_LATE = """
import os, signal, threading, time
import flexure as fx
from flexure.diagrams.concurrency.forks import no_fork

def fork():
    process = os.fork()
    if process == 0:
        signal.alarm(20)
        code = 0
        try:
            again = os.fork()
            if again == 0:
                os._exit(0)
            os.waitpid(again, 0)
        except KeyboardInterrupt:
            code = 1
        os._exit(code)
    assert os.waitpid(process, 0)[1] == 0, "the child was interrupted"

def busy():
    with no_fork:
        inside.set()
        time.sleep(0.1)
        meanwhile()
        time.sleep(0.1)

inside, other = threading.Event(), threading.Thread(target=fork)
meanwhile = MEANWHILE
thread = threading.Thread(target=busy)
thread.start()
inside.wait()
try:
    fork()
    thread.join()
    if other.ident is not None:
        other.join()
    print("forked")
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has other ways to make processes")
@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [
        ("other.start", "forked\ninterrupted\n"),
        ("lambda: os.kill(os.getpid(), signal.SIGINT)", "interrupted\n"),
    ],
    ids=["another thread forks, too", "the interrupt key is pressed"],
)
def test_a_fork_that_waits_leaves_the_interrupt_key_as_it_was(
    meanwhile: str, expected: str
) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS_LATE.replace("MEANWHILE", meanwhile)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (found.stdout, found.stderr) == (expected, "")


#: What a handler of a signal does that comes between `begin` and the fork itself.
FORKS_TWICE = """
import _imp, os, threading
from flexure.diagrams.concurrency import forks

forks._fork.begin()
process = os.fork()
if process == 0:
    os._exit(0)
os.waitpid(process, 0)
forks._fork.deliver()
found = []
thread = threading.Thread(target=lambda: found.append(forks.no_fork.acquire(timeout=1.0)))
thread.start()
thread.join()
print(found, _imp.lock_held())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has other ways to make processes")
def test_a_fork_amid_a_fork_leaves_no_lock_closed() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS_TWICE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert found.stdout == "[True] False\n", found.stderr


class Slow:
    """A thing with a property whose computation can last."""

    def __init__(self, begun: threading.Event, enough: threading.Event) -> None:
        self.begun, self.enough = begun, enough

    @cached_property
    def number(self) -> float:
        """A number."""
        self.begun.set()
        self.enough.wait()
        return 3.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has other ways to make processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_property_that_a_thread_computes_can_be_computed_in_a_child() -> None:
    begun, enough = threading.Event(), threading.Event()
    slow = Slow(begun, enough)
    thread = threading.Thread(target=lambda: slow.number)
    thread.start()
    begun.wait()
    process = os.fork()
    if process == 0:
        signal.alarm(10)
        enough = threading.Event()
        enough.set()
        os._exit(0 if Slow(begun, enough).number == 3.0 else 1)
    status = os.waitpid(process, 0)[1]
    enough.set()
    thread.join()
    assert status == 0


def test_no_code_of_ours_has_locks_that_a_fork_leaves_closed() -> None:
    for folder in ("diagrams", "blocks", "solvers"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name != "threads.py":
                text = path.read_text(encoding="utf-8")
                for line in text.splitlines():
                    assert not ("functools" in line and "cached_property" in line), path
                assert "threading.Lock" not in text, path
                assert "RLock" not in text, path
