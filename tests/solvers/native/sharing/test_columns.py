"""Where the numbers of alike blocks are, which shows in speed alone and not in any number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.sharing.families.value_columns import MOVING, SHIFT, Columns


def places_of(codes: Iterable[int], wishes: list[list[int]]) -> list[int]:
    """Arrange columns of one number each, and return where the numbers are."""
    columns = Columns(Environment(0, []), 0)
    made = np.array([columns.add(MOVING, 1) for _ in codes]) << SHIFT
    columns.arrange(made[wish] for wish in wishes)
    return [int(columns.locate(made[[k]])[1][0]) for k in codes]


def test_numbers_that_are_read_in_a_row_lie_in_a_row() -> None:
    places = places_of(range(6), [[4, 5], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(np.diff(places), np.ones(5))


def test_of_contradicting_wishes_the_longer_one_counts() -> None:
    places = places_of(range(3), [[1, 0], [0, 1, 2]])
    np.testing.assert_array_equal(np.diff(places), np.ones(2))
    assert sorted(places_of(range(2), [[1, 0], [0, 1]])) == [0, 1]
