"""Beams that are known to stay in a plane: the numbers of others, and who knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.flexures.beams.beam_law import BeamLaw
from flexure.blocks.math import rotation_from_rotation_vector

LAW = BeamLaw(0.3, 4e6, 2.0, 30.0, 5.0, 1e-5, 0.02, 0.01, 1e-4)
LAWS = {"straight": LAW, "curved": replace(LAW, rest=np.array([0, 0, 0.2, 0.03, 0, 0.29]))}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_in_a_plane_gives_the_numbers_of_one_in_space(name: str, seed: int) -> None:
    rng, law = np.random.default_rng(seed), LAWS[name]
    turn = rng.uniform(-2.5, 2.5) if seed else 0.0
    X_AC = rotation_from_rotation_vector([0.0, 0.0, turn]), np.array([0.3, *rng.normal(0, 0.1, 2)])
    X_AC[1][2] = 0.0
    V_AC = np.array([0.0, 0.0, *rng.normal(size=3), 0.0])
    found: list[list[Any]] = []
    for each in (law, replace(law, planar=True)):
        now = each.in_range(each.deformation(X_AC))
        rates = each.rates(now, V_AC)
        forces = each.spatial_forces(now, rates)
        energy = [each.stored_energy(now), each.conservative_power(now, rates)]
        found.append([*forces, *energy, each.section_forces(now, *forces)])
    for expected, planar in zip(*found, strict=True):
        scale = np.abs(expected).max(initial=1e-300)
        np.testing.assert_allclose(planar, expected, rtol=0.0, atol=1e-11 * scale)


def joined(kind: str) -> fx.Beam:
    """Return a planar beam in four segments from the world to a body on a joint."""
    builder = fx.PlantBuilder("bench")
    tip = builder.add_body("tip", fx.SpatialInertia(1.0, np.zeros(3), np.ones(3)))
    joint: Any
    if kind == "revolute across":
        joint = fx.RevoluteJoint("joint", builder.world, tip, axis=(0.0, 0.0, 1.0))
    elif kind == "revolute along":
        joint = fx.RevoluteJoint("joint", builder.world, tip, axis=(1.0, 0.0, 0.0))
    elif kind == "planar":
        joint = fx.PlanarJoint("joint", builder.world, tip)
    else:
        joint = fx.QuaternionFloatingJoint("joint", builder.world, tip)
    builder.add_joint(joint)
    beam = fx.Beam(
        "leaf",
        builder.world,
        builder.add_frame("end", tip, (0.2, 0.0, 0.0)),
        section=fx.RectangleSection(width=0.02, thickness=0.001),
        material=fx.Material.common("structural steel S235"),
        length=0.2,
        segments=4,
        planar=True,
    )
    builder.add_force_element(beam)
    builder.build()
    return beam


@pytest.mark.parametrize(
    ("kind", "stays"),
    [
        ("planar", True),
        ("revolute across", True),
        ("revolute along", False),
        ("floating", False),
    ],
)
def test_the_last_segment_stays_in_the_plane_if_joints_say_so(kind: str, stays: bool) -> None:
    segments = joined(kind).inside.segments
    assert [segment.planar for segment in segments] == [True, True, True, stays]


def test_an_end_that_leaves_the_plane_is_pushed_back() -> None:
    beam = joined("floating")
    plant: Any = beam.parent_plant
    context = plant.create_default_context()
    plant.joint("joint").positions.set(context, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-4]))
    force = beam.force_on_frame_C.eval(context)[3:]
    assert force[2] < -1e-3
