"""Bodies on beams agree with Exudyn in the limit of ever shorter elements.

The script that made the numbers is ``benchmarks/flexures/agreement.py``. Exudyn's beams do not
become shorter where they are twisted, and neither do ours here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.flexures import our_side
from benchmarks.flexures.assemblies import from_plain
from tests.oracle.reading import cases, read

SEGMENTS = 2
TIMES = np.array(read("beam_assemblies.json")["times"])
one_in_a_plane_and_one_in_space = pytest.mark.parametrize("case", cases("beam_assemblies.json")[:2])


@pytest.mark.full
@one_in_a_plane_and_one_in_space
def test_assemblies_of_beams_rest_and_swing_as_those_of_exudyn(case: dict[str, Any]) -> None:
    assembly = from_plain(case)
    start = np.array([body.position for body in assembly.bodies])
    plant = our_side.build(assembly, SEGMENTS, our_side.PlainSection)
    expected = np.array(case["statics"]["values"])
    found = our_side.static_positions(assembly, plant)
    assert found == pytest.approx(expected, abs=1e-3 * np.abs(expected - start).max())
    if not assembly.planar:  # the more general of the two
        rates = np.array(case["frequencies"]["values"])
        assert our_side.frequencies(plant, len(rates)) == pytest.approx(rates, rel=1e-2)
        expected = np.array(case["motion"]["values"])
        found = our_side.motion(assembly, plant, TIMES)
        assert found == pytest.approx(expected, abs=3e-2 * np.abs(expected - start).max())
