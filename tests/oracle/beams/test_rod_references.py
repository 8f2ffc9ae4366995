"""What stands beside the beams agrees with the literature, and with itself by other routes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.mechanics.beam_theory import (
    buckled_column,
    frequencies,
    guided_stiffness,
    lateral_buckling,
)
from tests.support.mechanics.rods import Toggle, leg, rod, under_moment

#: Deflection and shortening of a cantilever by a force F L²/EI across its tip: K. Mattiasson,
#: Numerical results from large deflection beam and frame problems analysed by means of elliptic
#: integrals, Int. J. Numer. Meth. Eng. 17 (1981) 145-153.
ELASTICA = {
    1.0: (0.30172, 0.05643),
    2.0: (0.49346, 0.16064),
    5.0: (0.71379, 0.38763),
    10.0: (0.81061, 0.55500),
}


@pytest.mark.parametrize("force", ELASTICA)
def test_a_cantilever_bends_as_tables_of_the_elastica_say(force: float) -> None:
    x, y, z = rod(force=(0.0, force, 0.0)).position
    assert (y, 1.0 - x, z) == pytest.approx((*ELASTICA[force], 0.0), abs=5e-6)


def test_a_buckled_column_has_the_shape_of_elliptic_integrals() -> None:
    load, x, y = buckled_column(1.0)
    end = leg(np.array([0.0, 0.0, 0.0, load * y]), 1.0, (-load, 0.0), EA=np.inf, EI=1.0)
    assert end == pytest.approx([x, y, 1.0, 0.0], abs=1e-8)


def test_a_moment_rolls_a_rod_up() -> None:
    circle = rod(moment=(0.0, 0.0, 2.0 * np.pi))
    assert circle.position == pytest.approx(np.zeros(3), abs=1e-9)
    bent = rod(moment=(0.0, 0.0, 1.0), curvature=(0.0, 0.0, 0.5))
    assert bent.position == pytest.approx(
        [np.sin(1.5) / 1.5, (1.0 - np.cos(1.5)) / 1.5, 0.0], abs=1e-9
    )


def test_rods_in_space_bend_as_an_initial_value_problem_says() -> None:
    found = rod(moment=(1.0, 1.5, 2.0), torsion=0.8, bending=(1.0, 2.0))
    other = under_moment((1.0, 1.5, 2.0), torsion=0.8, bending=(1.0, 2.0))
    assert found.position == pytest.approx(other.position, abs=1e-8)
    assert found.rotation == pytest.approx(other.rotation, abs=1e-8)


def test_small_loads_give_the_deflections_of_textbooks() -> None:
    found = rod(
        2.0,
        bending=(2.0, 3.0),
        torsion=0.5,
        force=(1e-6, 2e-6, 3e-6),
        moment=(1e-6, 0.0, 0.0),
        axial=10.0,
        shear=(4.0, 5.0),
    )
    stretched, across = 2e-6 / 10.0, [2e-6 * (8 / 9 + 2 / 4), 3e-6 * (8 / 6 + 2 / 5)]
    assert found.position == pytest.approx([2.0 + stretched, *across], abs=1e-11)
    assert found.rotation[2, 1] == pytest.approx(4e-6, abs=1e-11)


def test_frequencies_are_those_of_textbooks() -> None:
    roots = np.sqrt(frequencies("clamped", "free", 3))
    assert roots == pytest.approx([1.875104, 4.694091, 7.854757], abs=1e-6)
    for ends in (("clamped", "clamped"), ("free", "free")):
        assert np.sqrt(frequencies(*ends, 2)) == pytest.approx([4.730041, 7.853205], abs=1e-6)
    # Of Timoshenko's beam on two hinges, by inserting sines.
    EI, mass, length, shear, rotary = 2.0, 3.0, 0.5, 100.0, 0.01
    found = frequencies(
        "pinned", "pinned", 2, EI=EI, mass=mass, length=length, shear=shear, rotary=rotary
    )
    for n, frequency in enumerate(found, start=1):
        k = n * np.pi / length
        stiffness = np.array([[shear * k * k, -shear * k], [-shear * k, shear + EI * k * k]])
        squares = np.linalg.eigvals(np.diag([1.0 / mass, 1.0 / rotary]) @ stiffness)
        assert frequency**2 == pytest.approx(min(squares))


def test_columns_and_leaves_give_way_at_the_loads_of_textbooks() -> None:
    assert guided_stiffness(5.0) == pytest.approx(17.966158, abs=1e-6)
    assert guided_stiffness(-(np.pi**2)) == pytest.approx(0.0, abs=1e-9)
    assert buckled_column(1e-6)[0] == pytest.approx(np.pi**2 / 4.0)
    assert lateral_buckling((1.0, np.inf), 1.0) == pytest.approx(4.0126, abs=5e-5)


def test_a_toggle_snaps_through_where_the_literature_says() -> None:
    # Williams (1964) measured about 34 pounds.
    assert Toggle().limits()[0] == pytest.approx(34.0, abs=0.3)
