"""Lumps of mass by Gregory's weights beside other ways to divide the mass of a beam.

The stiffness is that of cubic shapes, exact for loads at nodes; masses are those of each way.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.linalg import eigh

import flexure as fx
from flexure.blocks.flexures.beams.beam_segment import end_shares
from flexure.diagrams.values.arrays import FloatArray
from tests.support.mechanics.beam_theory import frequencies
from tests.support.mechanics.beams import UNIT, stiffness_section

ENDS = {"cantilever": ("clamped", "free"), "clamped": ("clamped", "clamped")}


def found_frequencies(ends: str, way: str, n: int) -> FloatArray:
    """Return the frequencies of a beam with EI = ρA = L = 1 that is divided into n segments."""
    h = 1.0 / n
    a, b, c, d = 12.0 / h**3, 6.0 / h**2, 4.0 / h, 2.0 / h
    stiffness = np.array([[a, b, -a, b], [b, c, -b, d], [-a, -b, a, -b], [b, d, -b, c]])
    consistent = np.array(
        [
            [156.0, 22.0 * h, 54.0, -13.0 * h],
            [22.0 * h, 4.0 * h * h, 13.0 * h, -3.0 * h * h],
            [54.0, 13.0 * h, 156.0, -22.0 * h],
            [-13.0 * h, -3.0 * h * h, -22.0 * h, 4.0 * h * h],
        ]
    )
    K, M = np.zeros((2, 2 * n + 2, 2 * n + 2))
    for k, (first, last) in enumerate(end_shares(n)):
        at = slice(2 * k, 2 * k + 4)
        K[at, at] += stiffness
        lumps = {"lumps": (first, last), "halves": (0.5, 0.5), "rigid": (0.5, 0.5)}
        if way == "consistent":
            M[at, at] += h / 420.0 * consistent
            continue
        M[at, at] += h * np.diag([lumps[way][0], 0.0, lumps[way][1], 0.0])
        if way == "rigid":  # each half turns with its node
            across, about = h**2 / 8.0, h**3 / 24.0
            M[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] += [[0.0, across], [across, about]]
            M[2 * k + 2 : 2 * k + 4, 2 * k + 2 : 2 * k + 4] += [[0.0, -across], [-across, about]]
    free = slice(2, None) if ends == "cantilever" else slice(2, -2)
    flexible = eigh(M[free, free], K[free, free], eigvals_only=True)[::-1]
    found: FloatArray = 1.0 / np.sqrt(flexible[flexible > 1e-9])
    return found


@cache
def exact(ends: str) -> FloatArray:
    return frequencies(*ENDS[ends], 2)


def errors(ends: str, way: str, n: int) -> FloatArray:
    return np.asarray(found_frequencies(ends, way, n)[:2] / exact(ends) - 1.0)


def test_plants_have_the_frequencies_of_their_lumps() -> None:
    builder = fx.PlantBuilder("clamped", gravity=(0, 0, 0))
    end = builder.add_frame("end", builder.world, (1.0, 0.0, 0.0))
    section = stiffness_section(1e5, (1.0, 1.0), 1.0)
    beam = fx.Beam(
        "beam",
        builder.world,
        end,
        section=section,
        material=UNIT,
        length=1.0,
        shear=False,
        segments=6,
        planar=True,
    )
    builder.add_force_element(beam)
    plant = builder.build()
    context = plant.create_default_context()
    beam.density.set(context, 1e-5)  # so that a length has the mass 1
    found = sorted(abs(mode.poles[0]) for mode in fx.modes(plant, context))
    np.testing.assert_allclose(found[:2], found_frequencies("clamped", "lumps", 6)[:2], rtol=1e-3)


@pytest.mark.parametrize("ends", ENDS)
def test_frequencies_of_lumps_come_with_fourth_order_and_at_last_from_above(ends: str) -> None:
    coarse, fine = errors(ends, "lumps", 16), errors(ends, "lumps", 32)
    assert np.all(fine > 0.0)
    assert np.all(fine < coarse / 12.0)
    assert errors(ends, "lumps", 4)[1] < -0.03  # two nodes and a half for each half of a wave


@pytest.mark.parametrize("ends", ENDS)
def test_other_masses_come_from_one_side(ends: str) -> None:
    for n in (4, 8, 16):
        assert np.all(errors(ends, "consistent", n) > 0.0)
        assert np.all(errors(ends, "halves", n) < 0.0)
    fine = errors(ends, "lumps", 16)
    assert np.all(errors(ends, "consistent", 16) < fine)
    # Halves of segments that turn with their nodes are worse: they come with second order.
    coarse, rigid = (np.abs(errors(ends, "rigid", n)) for n in (8, 16))
    assert np.all(rigid > 2.5 * fine)
    assert np.all((rigid > coarse / 5.0) & (rigid < coarse / 3.0))
