"""Along a path stiffness, motions and frequencies are those of closed forms; pictures show them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
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
def stroke() -> fx.results.LoadPath:
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


def test_a_load_is_varied_as_for_other_sweeps() -> None:
    plant = pendulum()
    torques = np.array([[0.0], [5.0], [10.0]])
    track = fx.track_stiffness(plant, "bob", {"generalized_force": torques}, since=-1)
    angles = -track.motion("ry")
    assert angles[-1] == 0.0
    for angle, torque in zip(angles - angles[0], torques[:, 0], strict=True):
        held = SPRING * angle + MASS * GRAVITY * LENGTH * np.sin(angle)
        assert held == pytest.approx(torque, abs=1e-9)
    assert [found.frame.name for found in track] == ["bob"] * 3
    assert track.stiffnesses[1].context.system is plant


def bead() -> tuple[fx.Plant, fx.Body]:
    """A point that moves in all directions, on three springs that are all stressed."""
    builder = fx.PlantBuilder("bead", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("bead", fx.SpatialInertia.point_mass(0.1))
    last = builder.world
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))):
        to = body if name == "z" else builder.add_body(name, fx.SpatialInertia.point_mass(0.1))
        rail = builder.add_joint(fx.PrismaticJoint(f"along_{name}", last, to, axis))
        builder.add_force_element(
            fx.JointSpring(f"spring_{name}", rail, stiffness=10.0 + len(name))
        )
        last = to
    builder.add_external_force("push", body)
    return builder.build(), body


@pytest.mark.full
def test_tables_and_pictures_show_stiffnesses_and_motions(tmp_path: Path) -> None:
    plant, body = bead()
    pushes = np.outer(np.linspace(0.0, 1.0, 5), [0.0, 0.0, 0.0, 1.0, 0.5, 0.0])
    track = fx.track_stiffness(plant, body, {"push": pushes})
    table = track.table()
    assert table.columns == ("push", "krx", "kry", "krz", "kx", "ky", "kz")
    assert table["kx"] == pytest.approx([11.0] * 5)
    assert np.all(np.isinf(table["krx"]))
    np.testing.assert_allclose(track.diagonals(held=True), track.diagonals(held=False))
    html = track._repr_html_()
    assert html is not None
    assert "krz" in html
    figure = track.plot(path=tmp_path / "stiffness.png")
    assert (tmp_path / "stiffness.png").stat().st_size > 10_000
    rotation, translation = figure.axes
    assert rotation.get_ylabel() == "stiffness of rotation [N m/rad]"
    assert not rotation.lines  # none of which is finite
    labels = [line.get_label() for line in translation.lines]
    assert labels[:6:2] == ["kx", "ky", "kz"]
    assert labels[6:] == ["alone", "others held"]
    assert translation.get_xlabel() == "number of the equilibrium"
    figure = track.plot_parasitic(path=tmp_path / "motion.png")
    _, translation = figure.axes
    assert translation.get_xlabel() == "stroke x [m]"
    x, y = map(np.asarray, translation.lines[0].get_data())
    np.testing.assert_allclose(x, pushes[:, 3] / 11.0)
    np.testing.assert_allclose(y, pushes[:, 4] / 11.0)


def test_what_is_no_path_or_direction_is_refused() -> None:
    plant, body = bead()
    with pytest.raises(fx.errors.UnknownNameError, match="pass what load_path finds"):
        fx.track_stiffness(plant, body, {"bead.position[x]": [0.0, 1e-3]})
    with pytest.raises(fx.errors.ValueRefusedError, match="a mapping"):
        fx.track_stiffness(plant, body, [1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(fx.errors.ValueRefusedError, match="one value or more"):
        fx.track_stiffness(plant, body, {"spring_x.stiffness": []})
    with pytest.raises(fx.errors.ValueRefusedError, match="one of 1 equilibria"):
        fx.track_stiffness(plant, body, {"spring_x.stiffness": [1.0]}, since=1)
    track = fx.track_stiffness(plant, body, {"spring_x.stiffness": [1.0]})
    with pytest.raises(fx.errors.ValueRefusedError, match="'rx', 'ry'"):
        track.motion("w")
