"""Trajectories: what goes through given points, and where it jumps or bends."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from hypothesis import given, strategies as st

from flexure.blocks.signals.sources import Trajectory
from tests.support.systems.sources import (
    GRID,
    KNOTS,
    POINTS,
    before,
    breaks_of,
    times,
    value_at,
    values_at,
)


@pytest.mark.parametrize("kind", ["hold", "linear", "cubic"])
def test_trajectory_goes_exactly_through_its_points_and_holds_its_ends(kind: Any) -> None:
    trajectory = Trajectory("trajectory", KNOTS, POINTS, kind)
    found = values_at(trajectory, [-1e6, *KNOTS, 1e6])
    np.testing.assert_array_equal(found, [POINTS[0], *POINTS, POINTS[-1]])


def test_held_trajectory_changes_at_its_times_exactly() -> None:
    trajectory = Trajectory("trajectory", KNOTS, POINTS, "hold")
    np.testing.assert_array_equal(values_at(trajectory, map(before, KNOTS[1:])), POINTS[:-1])
    assert breaks_of(trajectory, -2.0, 9.0) == KNOTS[1:]


def test_held_trajectory_is_exact_where_the_interval_hides_the_last_bit() -> None:
    trajectory = Trajectory("trajectory", [-1.0, 1e-20], [0.0, 1.0], "hold")
    assert value_at(trajectory, 0.0) == 0.0


def test_linear_trajectory_agrees_with_numpy_interp() -> None:
    trajectory = Trajectory("trajectory", KNOTS, POINTS, "linear")
    expected = np.column_stack([np.interp(GRID, KNOTS, column) for column in POINTS.T])
    np.testing.assert_allclose(values_at(trajectory, GRID), expected, atol=1e-14)
    assert breaks_of(trajectory, -2.0, 9.0) == KNOTS


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_cubic_trajectory_agrees_with_the_spline_of_scipy(count: int) -> None:
    trajectory = Trajectory("trajectory", KNOTS[:count], POINTS[:count], "cubic")
    spline = scipy.interpolate.CubicSpline(KNOTS[:count], POINTS[:count])
    inside = np.linspace(KNOTS[0], KNOTS[count - 1], 40)
    np.testing.assert_allclose(values_at(trajectory, inside), spline(inside), atol=1e-13)
    assert breaks_of(trajectory, -2.0, 9.0) == [KNOTS[0], KNOTS[count - 1]]


def test_cubic_trajectory_reproduces_a_cubic_also_after_its_values_are_set() -> None:
    trajectory = Trajectory("trajectory", KNOTS, np.zeros(5), "cubic")
    context = trajectory.create_default_context()
    assert trajectory.y(context) == 0.0
    trajectory.values.set(context, np.polyval([1.0, -2.0, 0.5, 3.0], KNOTS))
    context.time = 1.3
    np.testing.assert_allclose(trajectory.y(context), np.polyval([1.0, -2.0, 0.5, 3.0], 1.3))


@given(
    st.lists(times, min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(times, min_size=8, max_size=8),
)
def test_held_trajectory_jumps_nowhere_but_at_its_breaks(
    knots: list[float], values: list[float]
) -> None:
    trajectory = Trajectory("trajectory", knots, values[: len(knots)], "hold")
    instants = [-2e3, *breaks_of(trajectory, -2e3, 2e3), 2e3]
    for left, right in pairwise(instants):
        assert value_at(trajectory, left) == value_at(trajectory, before(right))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True).map(sorted))
def test_linear_trajectory_is_straight_between_its_breaks(knots: list[int]) -> None:
    values = np.cos(np.arange(len(knots)) ** 2)
    trajectory = Trajectory("trajectory", knots, values, "linear")
    instants = [-99.0, *breaks_of(trajectory, -99.0, 99.0), 99.0]
    for left, right in pairwise(instants):
        first, middle, last = values_at(trajectory, [left, (left + right) / 2.0, right])
        np.testing.assert_allclose(middle, (first + last) / 2.0, atol=1e-13)


def test_times_of_a_trajectory_are_a_read_only_copy() -> None:
    knots = np.array([0.0, 1.0])
    trajectory = Trajectory("trajectory", knots, [0.0, 1.0])
    knots[1] = 5.0
    assert value_at(trajectory, 1.0) == 1.0
    with pytest.raises(ValueError, match="read-only"):
        trajectory.times[0] = 9.0
