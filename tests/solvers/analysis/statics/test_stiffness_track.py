"""Along a path stiffness, motions and frequencies are those of closed forms, and pictures show them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import flexure as fx

LENGTH, MASS, SPRING, GRAVITY = 0.5, 2.0, 30.0, 9.81


@cache
def pendulum() -> fx.Plant:
    """A point mass that hangs on a rod about y, with a torsion spring."""
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, 0.0, -GRAVITY))
    inertia = fx.SpatialInertia.point_mass(MASS)
    rod = builder.add_body("rod", inertia, com=(0.0, 0.0, -LENGTH))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, rod, axis=(0, -1, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=SPRING))
    builder.add_frame("bob", rod, (0.0, 0.0, -LENGTH))
    return builder.build()


@cache
def stroke() -> fx.LoadPath:
    return fx.load_path(pendulum(), {"axis.angle": np.linspace(0.0, 1.2, 7)})


def angular_stiffness(angle: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return SPRING + MASS * GRAVITY * LENGTH * np.cos(angle)


def test_points_of_a_path_with_a_stroke_are_at_rest_under_the_force_that_holds_it() -> None:
    path = stroke()
    angle = path["axis.angle"]
    context = path.context(-1)
    torque = pendulum().input_port("generalized_force").eval(context)
    expected = SPRING * angle[-1] + MASS * GRAVITY * LENGTH * np.sin(angle[-1])
    assert torque == pytest.approx(expected, rel=1e-9)
    assert np.max(np.abs(pendulum().calc_vdot(context))) < 1e-9


def test_stiffness_and_motion_over_a_stroke() -> None:
    path = stroke()
    angle = path["axis.angle"]
    track = fx.track_stiffness(pendulum(), "bob", path)
    np.testing.assert_allclose(track.compliances[:, 1, 1], 1.0 / angular_stiffness(angle))
    np.testing.assert_allclose(track.compliances[:, 3, 3], LENGTH**2 / angular_stiffness(angle))
    np.testing.assert_allclose(track.motion("ry"), -angle, atol=1e-12)
    np.testing.assert_allclose(track.motion("x"), LENGTH * np.sin(angle), atol=1e-12)
    np.testing.assert_allclose(track.motion("z"), LENGTH * (1.0 - np.cos(angle)), atol=1e-12)
    np.testing.assert_allclose(track.centers_of_compliance, 0.0, atol=1e-12)
    assert track.stroke() == "x"
    table = track.parasitic()
    assert table.columns == ("x [m]", "rx [rad]", "ry [rad]", "rz [rad]", "y [m]", "z [m]")
    np.testing.assert_array_equal(table["z [m]"], track.motion("z"))
    assert track.parasitic("ry").columns[0] == "ry [rad]"
    assert repr(track) == f"<StiffnessTrack of 'pendulum' at 'bob': {len(path)} over axis.angle>"


def test_frequencies_over_a_stroke() -> None:
    path = stroke()
    tracks = fx.track_modes(pendulum(), path)
    expected = np.sqrt(angular_stiffness(path["axis.angle"]) / MASS) / LENGTH / (2.0 * np.pi)
    np.testing.assert_allclose(tracks.frequencies[:, 0], expected, rtol=1e-9)
    np.testing.assert_array_equal(tracks.values["axis.angle"], path["axis.angle"])


@cache
def guide() -> fx.Plant:
    """A table on a spring along x, and two across that tension changes."""
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PlanarJoint("free", builder.world, table))
    builder.add_external_force("push", table)
    origin, damping = (0.0, 0.0, 0.0), 0.0
    for name, place in (("along", (1.0, 0.0)), ("left", (0.0, -1.0)), ("right", (0.0, 1.0))):
        wall = builder.add_frame(f"{name}_wall", builder.world, (*place, 0.0))
        spring = fx.LinearSpringDamper(
            name, wall, origin, table, origin, free_length=0.9, stiffness=50.0, damping=damping
        )
        builder.add_force_element(spring)
    builder.add_force_element(fx.JointSpring("turn", builder_joint(builder), stiffness=1.0))
    return builder.build()
