"""Processes that are made while a thread compiles: they simulate, and do not hang."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.native import needs_llvmlite

ROOT = Path(__file__).resolve().parents[2]


@needs_llvmlite
@pytest.mark.timeout(200)
@pytest.mark.parametrize(("how", "count"), [("fork", 2), ("forkserver", 1), ("spawn", 1)])
def test_processes_that_are_made_while_a_thread_compiles_simulate(
    how: str, count: int, tmp_path: Path
) -> None:
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has other ways to make processes")
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.forking", how, str(count)],
        cwd=ROOT,
        env=os.environ | ({"FLEXURE_CACHE": str(tmp_path)} if how == "fork" else {}),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert found.stdout.startswith("0 of "), found.stderr
    assert found.returncode == 0
