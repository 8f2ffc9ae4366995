"""Divided beams take the shapes of rods, and give way and snap through at the loads of rods."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from flexure.diagrams.values.arrays import FloatArray
from tests.oracle.beams.test_rod_references import ELASTICA
from tests.support.mechanics.beam_theory import guided_stiffness, lateral_buckling
from tests.support.mechanics.beams import (
    NO_GRAVITY,
    UNIT,
    cantilever,
    stiffness_section,
    tip_position,
    under_load,
)
from tests.support.mechanics.rods import Toggle, rod

AXIAL = 1e5  # EA L²/EI, of rods and beams


def bent(plant: fx.Plant, load: npt.ArrayLike, steps: int = 20) -> FloatArray:
    """Return where the tip of a cantilever is under a moment and a force."""
    context, _ = under_load(plant, {"load": load}, steps)
    return tip_position(plant, context)


# Shapes -------------------------------------------------------------------------------------------


def test_a_cantilever_bends_as_the_elastica() -> None:
    plant, context = cantilever(16), None
    for force, published in ELASTICA.items():
        context, _ = under_load(plant, {"load[4]": force}, 6, context)
        x, y, _ = tip_position(plant, context)
        assert (y, 1.0 - x) == pytest.approx(published, abs=1e-4)
        exact = rod(force=(0.0, force, 0.0), axial=AXIAL).position
        assert (x, y) == pytest.approx(exact[:2], abs=2e-6)


def followed(plant: fx.Plant, load: npt.ArrayLike) -> FloatArray:
    """Return the same by a load path, which also gets there with few, long segments."""
    path = fx.load_path(plant, {"load": [np.zeros(6), load]})
    return tip_position(plant, path.context(-1))


def test_errors_fall_with_the_fourth_power_of_the_number_of_segments() -> None:
    load = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    exact = rod(force=load[3:], axial=AXIAL).position
    errors = [np.linalg.norm(followed(cantilever(n), load) - exact) for n in (1, 2, 4)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([4.0, 4.0], abs=0.4)
    assert errors[-1] < 1e-5


def test_a_moment_rolls_a_beam_up_to_a_circle() -> None:
    load = np.array([0.0, 0.0, 2.0 * np.pi, 0.0, 0.0, 0.0])
    assert bent(cantilever(12), load) == pytest.approx(np.zeros(3), abs=2e-3)


@pytest.mark.parametrize("curvature", [0.0, 1.5], ids=["straight", "curved"])
def test_forces_and_moments_together_bend_it_as_a_rod(curvature: float) -> None:
    load = np.array([0.0, 0.0, -1.0, -2.0, 3.0, 0.0])
    options: dict[str, Any] = {"curvature": (0.0, curvature)} if curvature else {}
    found = bent(cantilever(8, **options), load)
    exact = rod(force=load[3:], moment=load[:3], curvature=(0.0, 0.0, curvature), axial=AXIAL)
    assert found == pytest.approx(exact.position, abs=5e-5)


def test_a_beam_bends_in_space_as_a_rod() -> None:
    load = np.array([0.3, 0.4, 0.6, -0.3, 0.6, 0.3])
    constants: dict[str, Any] = {"bending": (1.0, 2.0), "torsion": 0.8}
    exact = rod(force=load[3:], moment=load[:3], axial=AXIAL, **constants).position
    plants = [cantilever(n, planar=False, **constants) for n in (1, 2)]
    errors = [np.linalg.norm(followed(plant, load) - exact) for plant in plants]
    assert errors[1] < 5e-4
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.3)


# Stiffening and buckling --------------------------------------------------------------------------


def leaf(segments: int, *, across: bool = True, shear: float | None = None) -> fx.Plant:
    """Return a clamped leaf whose other end slides along it, and across it if wanted, unturned."""
    builder = fx.PlantBuilder("leaf", gravity=NO_GRAVITY)
    sledge = builder.add_body("sledge", fx.SpatialInertia.point_mass(1.0))
    along = builder.add_joint(fx.PrismaticJoint("along", builder.world, sledge, (1.0, 0.0, 0.0)))
    along.default_translation = 1.0
    end = sledge
    if across:
        end = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
        builder.add_joint(fx.PrismaticJoint("across", sledge, end, (0.0, 1.0, 0.0)))
    beam = fx.Beam(
        "beam",
        builder.world,
        end,
        section=stiffness_section(1e7, shear=shear),
        material=UNIT,
        length=1.0,
        shear=shear is not None,
        segments=segments,
        planar=True,
    )
    builder.add_force_element(beam)
    builder.add_external_force("load", end)
    return builder.build()


def test_a_guided_leaf_stiffens_under_tension() -> None:
    for segments, error in ((1, 2e-3), (4, 5e-5)):
        _, K = under_load(leaf(segments), {"load[3]": 5.0}, steps=1)
        across = 1.0 / np.linalg.inv(K)[1, 1]
        assert across == pytest.approx(guided_stiffness(5.0), abs=error)


@pytest.mark.parametrize(
    ("segments", "across", "load", "error"),
    [(1, True, np.pi**2, 2e-3), (4, True, np.pi**2, 1e-4), (4, False, 4.0 * np.pi**2, 1e-3)],
    ids=["guided, one", "guided", "clamped"],
)
def test_leaves_buckle_at_the_loads_of_columns(
    segments: int, across: bool, load: float, error: float
) -> None:
    path = fx.load_path(leaf(segments, across=across), {"load[3]": -1.05 * load})
    (point,) = path.branch_points
    # A column of 1 - P/EA of its length carries that much more.
    assert point.values["load[3]"] == pytest.approx(-load, rel=error)


@pytest.mark.parametrize(("segments", "error"), [(1, 1e-2), (4, 2e-4)])
def test_a_thick_guided_column_buckles_at_the_load_of_haringx(segments: int, error: float) -> None:
    shear = 40.0
    found = fx.buckling(leaf(segments, shear=shear), {"load[3]": -1.0}, num_factors=1).factors
    # E I φ'' + P (1 + P/S) φ = 0. Engesser's π²/(1 + π²/S) is 3 % below.
    exact = 0.5 * shear * (np.sqrt(1.0 + 4.0 * np.pi**2 / shear) - 1.0)
    assert found == pytest.approx([exact], rel=error)


def test_a_leaf_buckles_sideways() -> None:
    bending, torsion = (1.0, 1e3), 1.0
    plant = cantilever(4, planar=False, axial=1e6, bending=bending, torsion=torsion)
    path = fx.load_path(plant, {"load[4]": 4.2})
    (point,) = path.branch_points
    assert point.values["load[4]"] == pytest.approx(lateral_buckling(bending, torsion), rel=2e-3)


# Frames -------------------------------------------------------------------------------------------


def test_the_toggle_of_williams_snaps_through() -> None:
    toggle = Toggle()
    angle, length = np.arctan2(toggle.rise, toggle.span), np.hypot(toggle.rise, toggle.span)
    builder = fx.PlantBuilder("toggle", gravity=NO_GRAVITY)
    ridge = builder.add_body("ridge", fx.SpatialInertia.point_mass(1.0))
    slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, ridge, (0.0, 1.0, 0.0)))
    slide.default_translation = toggle.rise
    tilted = rotation_from_rpy(np.array([0.0, 0.0, angle]))
    bar = fx.Beam(
        "bar",
        builder.add_frame("foot", builder.world, (tilted, (-toggle.span, 0.0, 0.0))),
        builder.add_frame("top", ridge, (tilted, np.zeros(3))),
        section=stiffness_section(toggle.EA, (toggle.EI, toggle.EI), toggle.EI),
        material=UNIT,
        length=length,
        shear=False,
        segments=4,
        planar=True,
    )
    builder.add_force_element(bar)
    path = fx.load_path(builder.build(), {"generalized_force[0]": -18.0})
    found = [-2.0 * point.values["generalized_force[0]"] for point in path.limit_points]
    assert found == pytest.approx([33.87180, 31.28000], rel=1e-4)  # of `Toggle.limits`
    assert toggle.load(0.24) == pytest.approx(33.85295, rel=1e-6)
