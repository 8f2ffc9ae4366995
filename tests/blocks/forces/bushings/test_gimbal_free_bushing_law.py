"""The law on the rotation vector has no lock and prefers no frame; it ends at half turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from flexure.blocks import math as fm
from flexure.blocks.forces.bushings.bushing_law import RotationVectorBushingLaw
from tests.blocks.math.samples import traced_slopes
from tests.support.mechanics.bushings import compute, random_sample
from tests.support.tiers import for_each

STILL = np.zeros(6)
NONE = np.zeros(3)


@for_each("seed", range(20))
def test_the_same_bushing_from_the_other_frame_exerts_the_same_forces(seed: int) -> None:
    sample = random_sample(seed, turn=3.1)
    law = RotationVectorBushingLaw(*sample.constants)
    found = compute(law, *sample[1:])
    X_AC = fm.RigidTransform(sample.R_AC, sample.r)
    at_rest = fm.RigidTransform(np.eye(3), NONE)
    V_CA = fm.relative_velocity(X_AC, sample.V_AC, at_rest, STILL)
    swapped = compute(law, *fm.invert_transform(X_AC), V_CA)
    size = np.abs(found.on_C).max()
    assert swapped.on_C_in_C == pytest.approx(found.on_A, abs=1e-13 * size)
    assert swapped.on_A == pytest.approx(found.on_C_in_C, abs=1e-13 * size)
    assert swapped.stored_energy == pytest.approx(found.stored_energy, rel=1e-13)
    assert swapped.angles == pytest.approx(-found.angles, abs=1e-13)


@pytest.mark.parametrize("angle", [1e-9, 0.5, np.pi / 2, 3.0, 3.14159])
@pytest.mark.parametrize("seed", range(3))
def test_equal_springs_turn_back_about_the_axis_of_the_rotation(seed: int, angle: float) -> None:
    axis = Rotation.random(random_state=np.random.default_rng(seed)).as_matrix()[:, 0]
    law = RotationVectorBushingLaw(np.full(3, 6.0), NONE, NONE, NONE)
    found = compute(law, fm.rotation_about(axis, angle), NONE, STILL)
    assert found.on_C[:3] == pytest.approx(-6.0 * angle * axis, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("rpy", [[0.0, np.pi / 2, 0.0], [0.4, np.pi / 2, -0.3], [0.4, -1.57, 0.1]])
def test_gimbal_lock_of_the_angles_does_not_matter(rpy: Any) -> None:
    sample = random_sample(2)
    law = RotationVectorBushingLaw(*sample.constants)
    found = compute(law, fm.rotation_from_rpy(rpy), sample.r, sample.V_AC)
    power = found.conservative_power + found.non_conservative_power
    assert power == pytest.approx(found.on_C @ sample.V_AC, rel=1e-12)


def test_at_a_half_turn_springs_change_sides_and_keep_their_energy() -> None:
    law = RotationVectorBushingLaw(np.array([2.0, 3.0, 4.0]), NONE, NONE, NONE)
    axis = np.array([0.6, 0.0, 0.8])
    before, behind = (
        compute(law, fm.rotation_about(axis, angle), NONE, STILL)
        for angle in (np.pi - 1e-9, np.pi + 1e-9)
    )
    assert behind.angles == pytest.approx(-before.angles, abs=1e-8)
    pull, push = before.on_C[:3] @ axis, behind.on_C[:3] @ axis
    assert pull == pytest.approx(-np.pi * (2.0 * 0.36 + 4.0 * 0.64))
    assert push == pytest.approx(-pull)
    assert behind.stored_energy == pytest.approx(before.stored_energy, rel=1e-8)


@pytest.mark.parametrize("turn", [[0.0, 0.0, 0.0], [1e-12, 0.0, 0.0], [0.0, 0.999, 0.0]])
def test_slopes_are_finite_where_series_begin_and_end(turn: Any) -> None:
    sample = random_sample(4)
    law = RotationVectorBushingLaw(*sample.constants)

    def everything(R: Any, r: Any, V: Any) -> Any:
        found = compute(law, R, r, V)
        return np.concatenate([found.on_A, found.on_C])

    R_AC = fm.rotation_from_rotation_vector(turn)
    slopes = traced_slopes(everything, R_AC, sample.r, sample.V_AC)
    assert np.isfinite(slopes).all()
    w = np.array([0.3, -0.2, 0.5])
    ahead, behind = (
        everything(fm.rotation_from_rotation_vector(h * w) @ R_AC, sample.r, sample.V_AC)
        for h in (1e-5, -1e-5)
    )
    found = slopes[:, :9] @ (fm.skew(w) @ R_AC).ravel()
    assert found == pytest.approx((ahead - behind) / 2e-5, abs=1e-6)
