"""Stick figures show bodies, springs and the frames of bushings where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from PIL import Image, ImageSequence

import flexure as fx
from flexure.solvers.results.stick_figures import strokes


@pytest.fixture
def arm() -> tuple[fx.Plant, fx.Context]:
    """A link on an axis, with a spring at its tip and a bushing in its middle."""
    builder = fx.PlantBuilder("arm")
    rod = fx.SpatialInertia.thin_rod(1.0, length=1.0)
    link = builder.add_body("link", rod, com=(0.0, 0.0, -0.5))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, link, axis=(0, 1, 0)))
    builder.add_force_element(
        fx.LinearSpringDamper(
            "spring",
            builder.world,
            (1.0, 0.0, -1.0),
            link,
            (0.0, 0.0, -1.0),
            free_length=0.5,
            stiffness=1.0,
            damping=0.0,
        )
    )
    middle = builder.add_frame("middle", link, (np.eye(3), (0.0, 0.0, -0.5)))
    builder.add_force_element(
        fx.LinearBushing(
            "bushing",
            builder.world,
            middle,
            torque_stiffness=0.0,
            torque_damping=0.0,
            force_stiffness=1.0,
            force_damping=0.0,
        )
    )
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, np.pi / 2)
    return plant, context


def ends(ax: Axes, color: str) -> list[list[float]]:
    """Return the first and the last point of each line of a color."""
    lines = [line for line in ax.lines if line.get_color() == color]
    points = [np.column_stack(line.get_data())[[0, -1]].round(6).ravel() for line in lines]
    return [list(point) for point in points]


def test_lines_are_where_the_bodies_are(arm: tuple[fx.Plant, fx.Context]) -> None:
    ax = fx.plot_mechanism(*arm)
    assert [0.0, 0.0, -1.0, 0.0] in ends(ax, "#1f5a99")  # from the axis to the spring
    assert ends(ax, "#c8641e") == [[1.0, -1.0, -1.0, 0.0]]
    plt.close("all")


def test_views_look_from_other_sides(arm: tuple[fx.Plant, fx.Context]) -> None:
    above = fx.plot_mechanism(*arm, view="xy")
    assert ends(above, "#c8641e") == [[1.0, 0.0, -1.0, 0.0]]
    side = fx.plot_mechanism(*arm, view="yz")
    assert ends(side, "#c8641e") == [[0.0, -1.0, 0.0, 0.0]]
    free = fx.plot_mechanism(*arm, view=(-90.0, 0.0))
    assert ends(free, "#c8641e") == [[1.0, -1.0, -1.0, 0.0]]
    plt.close("all")


def test_a_bushing_shows_the_axes_of_both_frames(arm: tuple[fx.Plant, fx.Context]) -> None:
    kinds = [stroke.kind for stroke in strokes(*arm)]
    assert [kind for kind in kinds if kind in "xyz"] == ["x", "y", "z", "x", "y", "z"]
    assert kinds.count("spring") == 1


class Weights(fx.BodyForceElement):
    """Constant forces downwards on any number of bodies."""

    def calc_spatial_forces(self, context: Any) -> list[Any]:
        return [[0.0, 0.0, 0.0, 0.0, 0.0, -1.0] for _ in self.attachments]

    def calc_stored_energy(self, context: Any) -> float:
        return 0.0

    calc_conservative_power = calc_non_conservative_power = calc_stored_energy


@pytest.mark.parametrize("count", [1, 2, 3])
def test_elements_of_users_are_drawn_wherever_they_are_attached(count: int) -> None:
    builder = fx.PlantBuilder("balls")
    balls = [
        builder.add_body(name, fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
        for name in "abc"[:count]
    ]
    places = [
        builder.add_frame(f"on_{ball.name}", ball, (np.eye(3), (0.0, 0.0, k)))
        for k, ball in enumerate(balls)
    ]
    builder.add_force_element(Weights("weights", dict(zip("ABC", places, strict=False))))
    plant = builder.build()
    context = plant.create_default_context()
    springs = [each for each in strokes(plant, context) if each.kind == "spring"]
    assert [each.bodies for each in springs] == ([(1, 2)] if count == 2 else [])
    for each in springs:
        np.testing.assert_array_equal(each.points, [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    fx.plot_mechanism(plant, context)
    plt.close("all")


def bar(length: tuple[float, float, float]) -> tuple[fx.Plant, fx.Context]:
    """A bar far from the origin, from its axis at (10, 0, 5) to its center of mass."""
    builder = fx.PlantBuilder("bar")
    body = builder.add_body("body", fx.SpatialInertia.solid_sphere(1.0, radius=0.1), com=length)
    foot = builder.add_frame("foot", builder.world, (10.0, 0.0, 5.0))
    builder.add_joint(fx.RevoluteJoint("axis", foot, body, axis=(0, 1, 0)))
    plant = builder.build()
    return plant, plant.create_default_context()


@pytest.mark.parametrize(
    ("length", "horizontal", "vertical"),
    [
        ((2.0, 0.0, 0.0), (9.84, 12.16), (4.7, 5.3)),
        ((0.0, 0.0, -2.0), (9.7, 10.3), (2.84, 5.16)),
        ((2.0, 0.0, 1.0), (9.84, 12.16), (4.84, 6.16)),
    ],
    ids=["lying", "hanging", "leaning"],
)
def test_a_mechanism_fills_the_picture_with_equal_scales(
    length: tuple[float, float, float],
    horizontal: tuple[float, float],
    vertical: tuple[float, float],
    tmp_path: Path,
) -> None:
    ax = fx.plot_mechanism(*bar(length))
    assert ax.get_xlim() == pytest.approx(horizontal)
    assert ax.get_ylim() == pytest.approx(vertical)
    assert ax.get_aspect() == 1.0
    sides = np.array([np.ptp(horizontal), np.ptp(vertical)])
    np.testing.assert_allclose(ax.figure.figure.get_size_inches(), 5.0 * sides / sides.max())
    given = plt.figure(figsize=(3.0, 4.0)).add_subplot()
    fx.plot_mechanism(*bar(length), ax=given)
    assert given.get_xlim() == pytest.approx(horizontal)
    np.testing.assert_array_equal(given.figure.figure.get_size_inches(), [3.0, 4.0])
    plt.close("all")

    # In the saved picture the ink comes close to the two ends of the longer side.
    fx.plot_mechanism(*bar(length), path=tmp_path / "bar.png")
    with Image.open(tmp_path / "bar.png") as picture:
        ink = np.argwhere(np.array(picture.convert("L")) < 250)
    shape = np.array([picture.height, picture.width])
    longer = int(np.argmax(shape))
    low, high = ink[:, longer].min(), ink[:, longer].max()
    assert low < 0.1 * shape[longer]
    assert high > 0.9 * shape[longer]


def test_a_body_that_is_one_point_can_be_drawn() -> None:
    builder = fx.PlantBuilder("dust")
    builder.add_body("mote", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    plant = builder.build()
    context = plant.create_default_context()
    plant.joints[0].pose.set(context, (np.eye(3), (4.0, 0.0, 2.0)))
    ax = fx.plot_mechanism(plant, context)
    assert ax.get_xlim()[0] < 4.0 < ax.get_xlim()[1]
    plt.close("all")


def test_a_picture_is_saved(arm: tuple[fx.Plant, fx.Context], tmp_path: Path) -> None:
    fx.plot_mechanism(*arm, path=tmp_path / "arm.png")
    assert (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")


def test_an_animation_is_saved(arm: tuple[fx.Plant, fx.Context], tmp_path: Path) -> None:
    plant, context = arm
    result = fx.simulate(plant, 0.5, context)
    fx.animate(result, path=tmp_path / "arm.gif", fps=10)
    with Image.open(tmp_path / "arm.gif") as pictures:
        assert len(list(ImageSequence.Iterator(pictures))) == 6
    fx.animate(result, plant, path=tmp_path / "arm.html", fps=5)
    assert "<script" in (tmp_path / "arm.html").read_text(encoding="utf-8")


def test_an_animation_moves(arm: tuple[fx.Plant, fx.Context], tmp_path: Path) -> None:
    plant, context = arm
    fx.animate(fx.simulate(plant, 0.5, context), path=tmp_path / "arm.gif", fps=10)
    with Image.open(tmp_path / "arm.gif") as pictures:
        first = np.array(pictures.convert("L"))
        pictures.seek(5)
        last = np.array(pictures.convert("L"))
    assert np.sum(first != last) > 100


def test_the_plant_is_found_inside_of_a_diagram(
    arm: tuple[fx.Plant, fx.Context], tmp_path: Path
) -> None:
    plant, _ = arm
    outer = fx.DiagramBuilder("outer")
    outer.add(plant)
    result = fx.simulate(outer.build(), 0.2)
    fx.animate(result, path=tmp_path / "outer.gif", fps=10)
    assert (tmp_path / "outer.gif").exists()


def test_what_cannot_be_drawn_is_refused(arm: tuple[fx.Plant, fx.Context], tmp_path: Path) -> None:
    plant, context = arm
    with pytest.raises(fx.errors.DeclarationError, match="xz, yz, xy"):
        fx.plot_mechanism(plant, context, view="front")
    with pytest.raises(fx.errors.ValueRefusedError, match="a vector of size 2"):
        fx.plot_mechanism(plant, context, view=(1.0, 2.0, 3.0))  # type: ignore[arg-type]
    gain = fx.Gain("gain", 1.0)
    with pytest.raises(fx.errors.DeclarationError, match=r"a plant, .*; found <Gain 'gain'>"):
        fx.plot_mechanism(gain, context)  # type: ignore[arg-type]
    result = fx.simulate(plant, 0.1, context)
    with pytest.raises(fx.errors.DeclarationError, match=r"a plant, .*; found <Gain 'gain'>"):
        fx.animate(result, gain)  # type: ignore[arg-type]
    for pace in ({"fps": 0}, {"speed": 0.0}, {"speed": np.nan}):
        with pytest.raises(fx.errors.ValueRefusedError, match="at this pace"):
            fx.animate(result, **pace)
    with pytest.raises(fx.errors.DeclarationError, match=r"\.gif or \.html"):
        fx.animate(result, path=tmp_path / "arm.avi")
    plt.close("all")
    empty = fx.simulate(fx.Gain("gain", 1.0), 0.1)
    with pytest.raises(fx.errors.UnknownNameError, match="exactly one"):
        fx.animate(empty)
