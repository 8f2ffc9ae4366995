"""Chains of beams come to the shape of a rod in space, and their errors fall with fourth order."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from flexure.blocks import math as fm
from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import FloatArray
from tests.support.mechanics import rods

#: G J, E I_y and E I_z of a rod of the length 1, and its E A.
STIFFNESS, AXIAL = np.array([0.8, 1.0, 2.0]), 1e3
POSES, TURNS = [("pose", k) for k in range(24)], [("turn", k) for k in range(12)]


def rod(force: FloatArray, moment: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrate Kirchhoff's rod with a dead load at its tip; return where the tip is.

    Unknown is the moment at its beginning, with which that at the tip is the one given.
    """

    def slopes(s: float, y: FloatArray) -> FloatArray:
        R, m = y[:9].reshape(3, 3), y[12:]
        along = R[:, 0] * (1.0 + force @ R[:, 0] / AXIAL)
        bent = R @ fm.skew(R.T @ m / STIFFNESS)
        return np.concatenate([bent.ravel(), along, -np.cross(along, force)])

    def tip(start: FloatArray) -> FloatArray:
        at_start = np.concatenate([np.eye(3).ravel(), np.zeros(3), start])
        end = solve_ivp(slopes, (0.0, 1.0), at_start, method="DOP853", rtol=1e-11, atol=1e-12)
        found: FloatArray = end.y[:, -1]
        return found

    def missed(start: FloatArray) -> FloatArray:
        return tip(start)[12:] - moment

    end = tip(fsolve(missed, moment, xtol=1e-12))
    return end[:9].reshape(3, 3), end[9:12]


@cache
def traced(law: BeamLaw) -> Any:
    """Return the loads that hold the ends of a beam, and their slopes by motions of the ends."""
    graph = scalars.Graph()
    given, small = scalars.symbols(graph, "pose", 24), scalars.symbols(graph, "turn", 12)
    ends = []
    for k in range(2):
        R, p = given[12 * k : 12 * k + 9].reshape(3, 3), given[12 * k + 9 : 12 * k + 12]
        turn, shift = small[6 * k : 6 * k + 3], small[6 * k + 3 : 6 * k + 6]
        ends.append((np.matmul(fm.rotation_from_rotation_vector(turn), R), p + shift))
    now = law.deformation(fm.relative_pose(*ends))
    forces = law.spatial_forces(now, law.rates(now, np.zeros(6)))
    loads = -np.concatenate([fm.rotate_spatial(ends[0][0], each) for each in forces])
    return loads, scalars.jacobian(loads, TURNS).to_array()


def chained(
    count: int,
    force: FloatArray,
    moment: FloatArray,
    *,
    axial: float = AXIAL,
    shear: tuple[float, float] = (np.inf, np.inf),
    parts: int = 2,
) -> tuple[FloatArray, FloatArray]:
    """Return where the tip of a chain of beams is, by Newton's method with exact slopes."""
    h = 1.0 / count
    about_y, about_z = 12.0 * STIFFNESS[1:] / (np.array(shear[::-1]) * h**2)
    law = BeamLaw(h, axial, *STIFFNESS)
    loads, slopes = traced(replace(law, shear_ratio_y=about_y, shear_ratio_z=about_z))
    nodes = [(np.eye(3), np.array([k * h, 0.0, 0.0])) for k in range(count + 1)]
    for part in np.arange(1, parts + 1) / parts:
        for _ in range(12):
            residual, K = np.zeros(6 * count + 6), np.zeros((6 * count + 6, 6 * count + 6))
            poses = np.array([np.r_[R.ravel(), p] for R, p in nodes]).T
            ends = [*poses[:, :-1], *poses[:, 1:], *np.zeros((12, count))]
            values = dict(zip([*POSES, *TURNS], ends, strict=True))  # of all beams at once
            held, by_ends = (scalars.evaluate(each, values) for each in (loads, slopes))
            for k in range(count):
                place = slice(6 * k, 6 * k + 12)
                residual[place] += held[:, k]
                K[place, place] += by_ends[:, :, k]
            residual[-6:] -= part * np.concatenate([moment, force])
            step = np.concatenate([np.zeros(6), np.linalg.solve(K[6:, 6:], -residual[6:])])
            nodes = [
                (fm.rotation_from_rotation_vector(d[:3]) @ R, p + d[3:])
                for (R, p), d in zip(nodes, step.reshape(-1, 6), strict=True)
            ]
            if np.max(np.abs(step)) < 1e-11:
                break
    return nodes[-1]


LOADS = {
    "a force": (np.array([-0.4, 1.2, 1.6]), np.zeros(3)),
    "a force and a moment": (np.array([0.5, 1.0, -0.7]), np.array([0.6, -0.5, 0.4])),
}


@pytest.mark.full
@pytest.mark.parametrize("load", LOADS)
def test_errors_of_a_rod_bent_in_space_fall_with_fourth_order(load: str) -> None:
    R, p = rod(*LOADS[load])
    turned = np.arccos(0.5 * (np.trace(R) - 1.0))
    assert turned > 0.5
    errors = []
    for count in (2, 4):
        turned_to, moved_to = chained(count, *LOADS[load])
        errors.append([np.linalg.norm(moved_to - p), np.max(np.abs(turned_to - R))])
    ratio = np.divide(errors[0], errors[1])
    assert np.all((ratio > 12.0) & (ratio < 20.0))  # 16 is that of fourth order
    assert np.max(errors[1]) < 1e-4


@pytest.mark.full
@pytest.mark.parametrize(
    ("force", "moment", "shear", "error"),
    [
        ((-0.5, 1.0, 0.0), (0.0, 0.0, 0.4), (60.0, 40.0), 5e-6),
        ((0.35, 0.7, -0.49), (0.42, -0.35, 0.28), (60.0, 40.0), 1.1e-4),
    ],
    ids=["in a plane", "in space"],
)
def test_thick_rods_are_bent_and_sheared_as_geometrically_exact_ones(
    force: Any, moment: Any, shear: tuple[float, float], error: float
) -> None:
    torsion, *bending = STIFFNESS.tolist()
    exact = rods.rod(
        force=force,
        moment=moment,
        torsion=torsion,
        bending=bending,
        axial=1e4,
        shear=shear,
        steps=2,
    )
    errors = []
    for count in (2, 4):
        R, p = chained(count, np.array(force), np.array(moment), axial=1e4, shear=shear, parts=4)
        errors.append([np.linalg.norm(p - exact.position), np.abs(R - exact.rotation).max()])
    assert errors[1][0] < error
    assert np.all(np.divide(errors[0], errors[1]) > 2.8)  # 4 is that of second order
