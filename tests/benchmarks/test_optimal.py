"""The benchmark of optimal motions: both sides find the same motion."""

from __future__ import annotations

import pytest

pytest.importorskip("casadi", reason="optimal motions need the package casadi")

from benchmarks.control import optimal


@pytest.mark.full
def test_equations_by_hand_have_the_same_optimum() -> None:
    motion = optimal.swing_up(tolerance=1.0, max_refinements=0)
    assert motion.cost == pytest.approx(optimal.by_hand(), rel=1e-4)


@pytest.mark.full
def test_a_compliant_arm_ends_at_rest() -> None:
    motion = optimal.arm_motion(2)
    assert motion.replay_error <= 1e-4
    assert motion["flexure.rate"][-1] == pytest.approx(0.0, abs=1e-4)
