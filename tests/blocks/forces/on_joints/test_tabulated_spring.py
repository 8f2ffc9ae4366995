"""Springs that are given by a table, one physical situation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import flexure as fx
from flexure.blocks.forces.on_joints.force_table import ForceTable
from flexure.blocks.forces.on_joints.joint_springs import TabulatedSpring
from tests.support.mechanics.joint_forces import WITHOUT_RATES, computed, joint
from tests.support.tiers import for_each

DEFLECTIONS = [-1.0, 0.0, 1.0, 3.0]
FORCES = [-4.0, 0.0, 2.0, 10.0]


def spring(kind: str = "revolute", **options: Any) -> TabulatedSpring:
    table = {"deflections": DEFLECTIONS, "forces": FORCES}
    return TabulatedSpring("spring", joint(kind), **{**table, **options})


# The table ----------------------------------------------------------------------------------------


@given(st.floats(-1.0, 3.0))
def test_within_the_table_the_force_is_interpolated(x: float) -> None:
    table = ForceTable(np.array(DEFLECTIONS), np.array(FORCES), 100.0, 100.0)
    assert table.force(x) == pytest.approx(np.interp(x, DEFLECTIONS, FORCES), rel=1e-13, abs=1e-13)


def test_at_the_points_the_force_is_exact() -> None:
    rng = np.random.default_rng(2)
    points, forces = np.sort(rng.normal(size=30)), 1e3 * rng.normal(size=30)
    table = ForceTable(points, forces, 1.0, 1.0)
    np.testing.assert_array_equal(table.force(points), forces)


@given(st.lists(st.floats(0.0, 1e3), min_size=2, max_size=9), st.floats(-1.0, 10.0))
def test_forces_of_one_sign_are_never_joined_by_one_of_the_other(
    forces: list[float], x: float
) -> None:
    points = np.cumsum(np.full(len(forces), 0.3))
    assert ForceTable(points, np.array(forces), 0.0, 0.0).force(x) >= 0.0


def test_the_energy_is_the_area_under_the_lines() -> None:
    table = ForceTable(np.array(DEFLECTIONS), np.array(FORCES), 4.0, 4.0)
    found = table.energy(np.array([-1.0, 0.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [2.0, 0.0, 1.0, 1.0 + 4.0, 1.0 + 12.0], rtol=1e-15)


def test_a_table_that_is_elsewhere_still_has_its_energy_from_zero() -> None:
    table = ForceTable(np.array([2.0, 3.0]), np.array([6.0, 6.0]), 3.0, 0.0)
    np.testing.assert_allclose(table.energy(np.array([0.0, 2.0, 4.0])), [0.0, 6.0, 18.0])


# The spring ---------------------------------------------------------------------------------------


def test_the_spring_resists_its_deflection_and_stores_energy() -> None:
    assert computed(spring(), 2.0) == (-6.0, 5.0, 0.0, 0.0)
    assert computed(spring(), -0.5) == (2.0, 0.5, 0.0, 0.0)


def test_the_deflection_is_counted_from_the_nominal_position() -> None:
    assert computed(spring(nominal_position=0.5), 2.5) == (-6.0, 5.0, 0.0, 0.0)


def test_beyond_the_table_the_outermost_lines_go_on() -> None:
    assert computed(spring(), 4.0)[:2] == (-14.0, 13.0 + 12.0)
    assert computed(spring(), -2.0)[:2] == (8.0, 8.0)


def test_beyond_the_table_a_stop_takes_over() -> None:
    stiff = spring(end_stiffness=1000.0)
    assert computed(stiff, 3.5)[:2] == (-510.0, 13.0 + 5.0 + 125.0)
    assert computed(stiff, -1.5)[:2] == (504.0, 2.0 + 2.0 + 125.0)
    assert computed(stiff, 2.0)[:2] == (-6.0, 5.0)


def test_beyond_the_table_the_force_can_stay_as_it_is() -> None:
    assert computed(spring(end_stiffness=0.0), 13.0)[:2] == (-10.0, 113.0)


def test_play_is_a_table_of_zeros() -> None:
    play = spring("prismatic", deflections=[-1e-3, 1e-3], forces=[0.0, 0.0], end_stiffness=5e3)
    assert computed(play, 5e-4, 3.0) == (0.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(computed(play, -3e-3).force, [10.0], rtol=1e-15)


def test_a_spring_that_snaps_may_lose_force() -> None:
    snapping = spring(deflections=[0.0, 1.0, 2.0], forces=[0.0, 5.0, -5.0])
    assert computed(snapping, 1.5)[:2] == (0.0, 2.5 + 1.25)
    assert computed(snapping, 2.0)[:2] == (5.0, 2.5)


def test_preload_and_damping_add_to_the_force() -> None:
    found = computed(spring(preload=1.5, damping=0.5), 2.0, 3.0)
    assert found.force == -6.0 + 1.5 - 1.5
    assert found.stored_energy == 5.0 - 3.0
    assert found.conservative_power == -13.5
    assert found.non_conservative_power == -4.5


def test_the_forces_of_the_table_are_a_parameter() -> None:
    harder = np.multiply(2.0, FORCES)
    assert computed(spring(), 2.0, forces=harder)[:2] == (-12.0, 10.0)
    assert computed(spring(end_stiffness=1.0), 4.0, end_stiffness=7.0).force == -17.0


def test_what_was_passed_is_copied() -> None:
    points = np.array(DEFLECTIONS)
    made = spring(deflections=points)
    points[:] = 0.0
    np.testing.assert_array_equal(made.deflections, DEFLECTIONS)
    assert not made.deflections.flags.writeable


def test_units_are_those_of_the_coordinate() -> None:
    for kind, unit in [("revolute", "N m"), ("screw", "N m"), ("prismatic", "N")]:
        assert spring(kind).forces.unit == unit


# Refusals -----------------------------------------------------------------------------------------


@for_each(
    ("table", "text"),
    [
        ({"deflections": [0.0, 1.0, 1.0, 2.0]}, "increase strictly; found"),
        ({"deflections": [3.0, 2.0, 1.0, 0.0]}, "increase strictly"),
        ({"deflections": [0.0, 1.0, 2.0, np.inf]}, "finite deflections"),
        ({"deflections": [0.0, 1.0, 2.0]}, r"3 forces.*found forces of shape \(4,\)"),
        ({"deflections": [0.0], "forces": [0.0]}, "at least 2 deflections"),
        ({"deflections": 0.0, "forces": 0.0}, r"one row; found an array of shape \(\)"),
        ({"deflections": [DEFLECTIONS], "forces": [FORCES]}, r"shape \(1, 4\)"),
    ],
)
def test_impossible_tables_are_refused(table: dict[str, Any], text: str) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=rf"table of 'spring'.*{text}"):
        spring(**table)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("forces", [0.0, 1.0, np.nan, 2.0]),
        ("forces", [0.0, 1.0, 2.0, np.inf]),
        ("damping", -1.0),
        ("end_stiffness", -1.0),
        ("preload", np.nan),
    ],
)
def test_impossible_constants_are_refused(name: str, value: Any) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"spring\.{name}"):
        spring(**{name: value})
    made = spring(end_stiffness=1.0)
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"spring\.{name}"):
        getattr(made, name).set(made.create_default_context(), value)


@for_each("kind", [*WITHOUT_RATES, "universal", "planar"])
def test_joints_with_other_than_one_coordinate_are_refused(kind: str) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=f"joint 'axis'.*found a {kind} joint"):
        spring(kind)
