"""Closed loops agree with Drake and MuJoCo in the limit of constraints that do not give way.

The script that made the numbers is ``benchmarks/loops/agreement.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.loops import our_side
from benchmarks.loops.random_loops import from_plain
from tests.oracle.reading import cases, read

TIMES = np.array(read("closed_loops.json")["times"])


@pytest.mark.parametrize("case", cases("closed_loops.json")[:6])  # one of each kind
def test_loops_move_as_those_of_drake_and_mujoco(case: dict[str, Any]) -> None:
    loop = from_plain(case)
    found = our_side.motion(loop, TIMES)
    assert np.concatenate(found["rates"]) == pytest.approx(np.concatenate(case["rates"]), abs=1e-9)
    moved = found["motion"] - [bar.position for bar in loop.bars]
    scale = np.abs(moved).max()
    for peer in ("Drake", "MuJoCo"):
        expected = np.array(case[peer]["motion"]["values"])
        assert found["motion"] == pytest.approx(expected, abs=2e-4 * scale)
    force, expected = found["reaction"][:, 3:], np.array(case["Drake"]["reaction"]["values"])[:, 3:]
    if loop.axis is not None:  # at right angles to a plane, forces are not determined
        inside = np.eye(3) - np.outer(loop.axis, loop.axis)
        force, expected = force @ inside, expected @ inside
    assert force == pytest.approx(expected, abs=5e-3 * np.abs(force).max())
    assert found["drift"] < 1e-8
    assert found["opening"] < 1e-10
