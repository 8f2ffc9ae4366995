"""Leaves that are tapered and curved are told how many segments their stiffness across takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.flexures.beams.beam_presentation import along_arc
from flexure.blocks.flexures.beams.beam_segment import error_across, segments_across
from flexure.blocks.flexures.beams.tapered_beam_law import STATIONS, TaperedBeamLaw
from flexure.blocks.math import relative_pose, rotation_from_rotation_vector, skew
from flexure.diagrams.values.arrays import FloatArray

STEEL = fx.Material.common("structural steel S235")
LENGTH = 0.1


def leaf(thickness: float, width: float = 0.02) -> fx.sections.RectangleSection:
    return fx.sections.RectangleSection(width=width, thickness=thickness)


def between(first: Any, last: Any, part: float) -> fx.sections.RectangleSection:
    return leaf(
        (1.0 - part) * first.thickness + part * last.thickness,
        (1.0 - part) * first.width + part * last.width,
    )


def to_tip(compliance: FloatArray, R: FloatArray, lever: FloatArray) -> FloatArray:
    """Return what a compliance in a frame does at the tip of a leaf, seen from the world."""
    moved = np.eye(6)
    moved[3:, :3] = -skew(lever)
    moved = moved @ np.kron(np.eye(2), R)
    return moved @ compliance @ moved.T


def exactly(first: Any, last: Any, turn: float) -> float:
    """Return the compliance across at the tip of an arc, by Castigliano."""
    curvature = np.array([0.0, turn / LENGTH])
    tip, total = along_arc(curvature, LENGTH).p, np.zeros((6, 6))
    points, weights = np.polynomial.legendre.leggauss(30)
    for part, weight in zip(0.5 + 0.5 * points, 0.5 * LENGTH * weights, strict=True):
        at, each = along_arc(curvature, part * LENGTH), between(first, last, part)
        E, G = STEEL.youngs_modulus, STEEL.shear_modulus
        bend = E * np.array([each.second_moment_y, each.second_moment_z])
        soft = np.diag([1.0 / (G * each.torsion_constant), *(1.0 / bend), 0.0, 0.0, 0.0])
        total += weight * to_tip(soft, at.R, tip - at.p)
    return float(total[5, 5])


def divided(first: Any, last: Any, turn: float, count: int) -> float:
    """Return the compliance across at the tip of segments in a row, each by its law."""
    h, curvature = LENGTH / count, np.array([0.0, turn / LENGTH])
    tip, total = along_arc(curvature, LENGTH).p, np.zeros((6, 6))
    ends = [along_arc(curvature, k * h) for k in range(count + 1)]
    for k, (A, C) in enumerate(pairwise(ends)):
        parts = [between(first, last, (k + part) / count) for part in STATIONS]
        law = TaperedBeamLaw.between(h, parts, STEEL, shear=False)
        X_AC = relative_pose(A, C)
        K = stiffness(replace(law, rest=law.rest_at(X_AC)), X_AC, h)
        soft = np.asarray(np.linalg.inv(K), dtype=float)
        total += to_tip(soft, A.R, tip - C.p)
    return float(total[5, 5])


def stiffness(law: BeamLaw, X_AC: Any, h: float) -> FloatArray:
    """Return the stiffness of an unstressed beam against motions of C, seen from A."""
    columns = []
    for step in 1e-6 * np.diag([1.0, 1.0, 1.0, h, h, h]):
        pulls = []
        for side in (step, -step):
            R = rotation_from_rotation_vector(side[:3]) @ X_AC.R
            now = law.deformation((R, X_AC.p + side[3:]))
            pulls.append(law.spatial_forces(now, law.rates(now, np.zeros(6)))[1])
        columns.append((pulls[1] - pulls[0]) / (2.0 * np.max(step)))
    return np.array(columns).T


@pytest.mark.full
@pytest.mark.parametrize(
    ("first", "last", "turn"),
    [
        (leaf(1e-3), leaf(5e-4), 1.0),
        (leaf(1e-3), leaf(8e-4), 0.5),
        (leaf(1e-3), leaf(5e-4, 0.01), 1.6),
        (leaf(4e-3), leaf(2e-3), 0.5),
    ],
    ids=["half", "nearly", "narrow", "thick"],
)
def test_so_many_segments_make_the_error_one_percent(first: Any, last: Any, turn: float) -> None:
    exact = exactly(first, last, turn)
    sections = (first, last, STEEL, (0.0, turn))
    count = segments_across(*sections)
    assert 1.0 - exact / divided(*sections[:2], turn, count) == pytest.approx(0.009, abs=0.003)
    for few in (1, 2, 4):
        error = 1.0 - exact / divided(*sections[:2], turn, few)
        assert error == pytest.approx(error_across(*sections, few), rel=0.35)


def stage(segments: int, **options: Any) -> fx.Plant:
    """Return a table on a leaf that is tapered and curved."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    joint = builder.add_joint(fx.PlanarJoint("free", builder.world, table))
    joint.default_pose = along_arc(np.array([0.0, 10.0]), LENGTH)
    given: dict[str, Any] = {"end_section": leaf(5e-4), "curvature": (0.0, 10.0)} | options
    beam = fx.Beam(
        "leaf",
        builder.world,
        table,
        section=leaf(1e-3),
        material=STEEL,
        length=LENGTH,
        segments=segments,
        **given,
    )
    builder.add_force_element(beam)
    return builder.build()


def test_too_few_segments_are_warned_of_with_the_number_it_takes() -> None:
    with pytest.warns(
        UserWarning, match="'leaf' is tapered and curved: with one segment"
    ) as caught:
        stage(1)
    (warning,) = caught
    assert "errs by about 42 %" in str(warning.message)
    assert "Pass segments=9 for 1 %, or planar=True" in str(warning.message)
    assert warning.filename == __file__
    with pytest.warns(UserWarning, match="with 4 segments, .* by about 4.. %"):
        stage(4)


def test_enough_segments_a_plane_and_uniform_leaves_are_not() -> None:
    stage(9)
    stage(2, planar=True)
    stage(1, end_section=None)
