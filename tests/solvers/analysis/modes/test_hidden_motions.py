"""A planar joint beside a flexure is named where it hides modes that the flexure alone has."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flexure as fx

STEEL = fx.Material.common("stainless steel 301")


def stage(joint: Any, **options: Any) -> fx.Plant:
    """A table on a parallel guide, beside a joint of some kind."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    block = fx.SpatialInertia.solid_box(0.2, size=(0.01, 0.08, 0.02))
    table = builder.add_body("table", block, com=(0.005, 0.0, 0.0))
    beside = builder.add_joint(joint("beside", builder.world, table))
    beside.default_pose = np.eye(3), (0.05, 0.0, 0.0)
    leaves = {"length": 0.05, "width": 0.02, "thickness": 3e-4, "material": STEEL, **options}
    builder.add_assembly(fx.ParallelGuide("guide", builder.world, table, distance=0.06, **leaves))
    return builder.build()


@pytest.mark.full
def test_the_hidden_modes_are_those_of_the_free_stage() -> None:
    free = [mode.frequency for mode in fx.modes(stage(fx.RpyFloatingJoint))]
    planar = stage(fx.PlanarJoint)
    with pytest.warns(UserWarning, match="'beside' holds in a plane.*RpyFloatingJoint") as told:
        left = [mode.frequency for mode in fx.modes(planar)]
    hidden = [f for f in free if not np.isclose(f, left, rtol=1e-3).any() and f < left[-1]]
    named = re.search(r"at about ([\d., ]+) Hz", str(told[0].message))
    assert named is not None
    estimates = [float(number) for number in named[1].split(", ")]
    assert estimates == pytest.approx(hidden, rel=0.3)  # beams without shear and without mass
    with pytest.warns(UserWarning, match="stiffness of 'stage'.*'guide_leaf1', 'guide_leaf2'"):
        assert np.isinf(fx.stiffness(planar, "table").matrix[5, 5])
    assert np.isfinite(fx.stiffness(stage(fx.RpyFloatingJoint), "table").matrix).all()


def test_it_does_not_matter_which_side_the_joint_is_seen_from() -> None:
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    block = fx.SpatialInertia.solid_box(0.2, size=(0.01, 0.08, 0.02))
    table = builder.add_body("table", block, com=(-0.005, 0.0, 0.0))
    joint = builder.add_joint(fx.PlanarJoint("beside", builder.world, table))
    joint.default_pose = np.eye(3), (-0.05, 0.0, 0.0)
    leaves: Any = {"length": 0.05, "width": 0.02, "thickness": 3e-4, "material": STEEL}
    builder.add_assembly(fx.ParallelGuide("guide", table, builder.world, distance=0.06, **leaves))
    with pytest.warns(UserWarning, match="at about 410, 1200 Hz"):
        fx.modes(builder.build())


def test_flexures_for_motions_in_their_plane_get_no_warning() -> None:
    assert len(fx.modes(stage(fx.PlanarJoint, segments=2, planar=True))) > 3


def test_a_hinge_beside_a_crossed_pivot_counts_as_a_bearing() -> None:
    builder = fx.PlantBuilder("pivot", gravity=(0.0, 0.0, 0.0))
    arm = builder.add_body("arm", fx.SpatialInertia.solid_box(0.2, size=(0.1, 0.02, 0.02)))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 0, 1)))
    leaves: Any = {"length": 0.05, "width": 0.02, "thickness": 3e-4, "material": STEEL}
    builder.add_assembly(fx.CrossPivot("pivot", builder.world, arm, gap=0.03, **leaves))
    assert len(fx.modes(builder.build())) == 1
