"""The fault matrix: no hang, no crash, no false success, no foreign exception, in any cell.

The cells are in `tests.support.systems.fault_matrix`; every reading of the equations is a process.
Here some methods represent the others; the program itself runs all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.native.native import needs_llvmlite

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("reading", "methods", "cells"),
    [
        ("interpreted", ["RK45", "rk4"], 358),
        ("straight-line", ["Rodas5P"], 107),
        pytest.param("native", ["RK45", "DOP853"], 214, marks=needs_llvmlite),
        pytest.param("sweep", ["RK45"], 103, marks=needs_llvmlite),
    ],
)
def test_every_fault_is_refused_or_harmless(reading: str, methods: list[str], cells: int) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.support.systems.fault_matrix",
            reading,
            *methods,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=115,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert sum(found["counts"].values()) == cells
