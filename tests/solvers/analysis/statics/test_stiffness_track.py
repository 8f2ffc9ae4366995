"""Along a path stiffness and motions are those of closed forms, and pictures show them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import flexure as fx


@cache
def swing(length: float = 0.5) -> fx.Plant:
    """A table on two parallel links, driven by a force along x: a guide with links and springs."""
    builder = fx.PlantBuilder("swing", gravity=(0.0, 0.0, 0.0))
    link = builder.add_body("link", fx.SpatialInertia.point_mass(0.1))
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    foot = builder.add_joint(fx.RevoluteJoint("foot", builder.world, link, axis=(0, 1, 0)))
    end = builder.add_frame("end", link, (0.0, 0.0, length))
    head = builder.add_joint(fx.RevoluteJoint("head", end, table, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("low", foot, stiffness=2.0))
    builder.add_force_element(fx.JointSpring("high", head, stiffness=2.0))
    builder.add_external_force("push", table)
    return builder.build()


def test_motions_and_stiffnesses_along_a_load_are_those_of_single_equilibria() -> None:
    plant = swing()
    pushes = np.zeros((4, 6))
    pushes[:, 3] = [0.0, 0.5, 1.0, 1.5]
    track = fx.track_stiffness(plant, "table", {"push": pushes}, expressed_in=plant.world)
    assert track.matrices.shape if not np.isnan(track.motions).any() else True
    for push, motion, compliance in zip(pushes, track.motions, track.compliances, strict=True):
        context = plant.create_default_context()
        plant.input_port("push").fix(context, push)
        rest = fx.equilibrium(plant, context).context
        pose = plant.body("table").pose(rest)
        np.testing.assert_allclose(motion[3:], pose.p - [0.0, 0.0, 0.5], atol=1e-9)
        assert np.cos(motion[1]) == pytest.approx(pose.R[0, 0], abs=1e-9)
        single = fx.stiffness(plant, "table", rest, expressed_in=plant.world)
        np.testing.assert_allclose(compliance, single.compliance, atol=1e-8)
