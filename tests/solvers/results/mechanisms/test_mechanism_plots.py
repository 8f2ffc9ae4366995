"""Pictures show bodies, springs, forces and the frames of bushings where they are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from PIL import Image

import flexure as fx
from examples.mechanisms.four_bar_linkage import build as four_bar
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.results.mechanisms.mechanism_lines import strokes
from flexure.solvers.results.mechanisms.pictures import poses_in
from flexure.solvers.results.mechanisms.scene import make_scene


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
    assert [-1.0, 0.0, 0.0, 0.0] in ends(ax, "#1f5a99")  # from the spring to the axis
    assert ends(ax, "#c8641e") == [[1.0, -1.0, -1.0, 0.0]]


def test_views_look_from_other_sides(arm: tuple[fx.Plant, fx.Context]) -> None:
    above = fx.plot_mechanism(*arm, view="xy")
    assert ends(above, "#c8641e") == [[1.0, 0.0, -1.0, 0.0]]
    side = fx.plot_mechanism(*arm, view="yz")
    assert ends(side, "#c8641e") == [[0.0, -1.0, 0.0, 0.0]]
    free = fx.plot_mechanism(*arm, view=(-90.0, 0.0))
    assert ends(free, "#c8641e") == [[1.0, -1.0, -1.0, 0.0]]


def test_a_bushing_shows_the_axes_of_both_frames(arm: tuple[fx.Plant, fx.Context]) -> None:
    kinds = [stroke.kind for stroke in strokes(*arm)]
    assert [kind for kind in kinds if kind in "xyz"] == ["x", "y", "z", "x", "y", "z"]
    assert kinds.count("spring") == 1


class Weights(fx.multibody.BodyForceElement):
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


def bar(length: tuple[float, float, float]) -> tuple[fx.Plant, fx.Context]:
    """A bar far from the origin, from its axis at (10, 0, 5) to its center of mass."""
    builder = fx.PlantBuilder("bar")
    body = builder.add_body("body", fx.SpatialInertia(1.0, inertia=[0.01] * 3), com=length)
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
    inches = 5.0 * sides / sides.max() + 0.75  # with room for numbers
    np.testing.assert_allclose(ax.figure.figure.get_size_inches(), inches)
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
    ax = fx.plot_mechanism(plant, context, view="xz")
    assert ax.get_xlim()[0] < 4.0 < ax.get_xlim()[1]


def test_a_picture_is_saved(arm: tuple[fx.Plant, fx.Context], tmp_path: Path) -> None:
    fx.plot_mechanism(*arm, path=tmp_path / "arm.png")
    assert (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(arm: tuple[fx.Plant, fx.Context], tmp_path: Path) -> None:
    plant, context = arm
    with pytest.raises(fx.errors.DeclarationError, match="auto, corner, xz, yz, xy"):
        fx.plot_mechanism(plant, context, view="front")
    with pytest.raises(fx.errors.ValueRefusedError, match="a vector of size 2"):
        fx.plot_mechanism(plant, context, view=(1.0, 2.0, 3.0))  # type: ignore[arg-type]
    gain = fx.Gain("gain", 1.0)
    with pytest.raises(fx.errors.DeclarationError, match=r"a plant, .*; found <Gain 'gain'>"):
        fx.plot_mechanism(gain, context)  # type: ignore[arg-type]
    for wrong in ({"forces": 1}, {"ground": "low"}, {"ground": np.inf}, {"title": 3}):
        with pytest.raises(fx.errors.ValueRefusedError, match="Cannot draw 'arm'"):
            fx.plot_mechanism(plant, context, **wrong)


def test_what_is_out_of_all_proportion_is_refused_or_made_to_fit(
    arm: tuple[fx.Plant, fx.Context],
) -> None:
    plant, context = arm
    for wrong in ((np.nan, 0.0), (np.inf, 0.0)):
        with pytest.raises(ValueRefusedError, match="in a view: expected finite numbers"):
            fx.plot_mechanism(plant, context, view=wrong)
    with pytest.raises(ValueRefusedError, match=r"Write \\\$ for a dollar"):
        fx.plot_mechanism(plant, context, title="$x_$")
    ax = fx.plot_mechanism(plant, context, title="long " * 80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.figure.draw_without_rendering()
    assert ax.get_title(loc="left").count("\n") == 2

    plant = sliding_box()
    context = plant.create_default_context()
    context.set("rail.translation", 1e99)
    fx.plot_mechanism(plant, context)
    context.set("rail.translation", 1e200)
    with pytest.raises(ValueRefusedError, match=r"values in \[-1e\+100, 1e\+100\] m"):
        fx.plot_mechanism(plant, context)


def sliding_box() -> fx.Plant:
    builder = fx.PlantBuilder("plant")
    box = builder.add_body("box", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3)))
    builder.add_joint(fx.PrismaticJoint("rail", builder.world, box, axis=(1, 0, 0)))
    return builder.build()


def sliding(axis: tuple[float, float, float], turning: tuple[float, float, float]) -> Any:
    """A cart with a pole, in a plane that the two axes tell."""
    builder = fx.PlantBuilder("sliding")
    cart = builder.add_body("cart", fx.SpatialInertia.solid_box(1.0, size=(0.4, 0.4, 0.2)))
    pole = builder.add_body("pole", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, 1.0))
    builder.add_joint(fx.PrismaticJoint("track", builder.world, cart, axis=axis))
    builder.add_joint(fx.RevoluteJoint("hinge", cart, pole, axis=turning))
    plant = builder.build()
    return plant, plant.create_default_context()


@pytest.mark.parametrize(
    ("axis", "turning", "labels"),
    [
        ((1, 0, 0), (0, 1, 0), ("x in m", "z in m")),
        ((0, 1, 0), (1, 0, 0), ("y in m", "z in m")),
        ((0, 1, 0), (0, 1, 0), ("", "")),  # no plane holds it: seen from a corner
    ],
)
def test_a_planar_mechanism_is_seen_in_its_plane_and_others_from_a_corner(
    axis: Any, turning: Any, labels: tuple[str, str]
) -> None:
    ax = fx.plot_mechanism(*sliding(axis, turning))
    assert (ax.get_xlabel(), ax.get_ylabel()) == labels
    texts = {text.get_text() for text in ax.texts}
    assert ({"x in m", "y in m", "z in m"} <= texts) == (labels == ("", ""))


def test_a_solid_covers_its_area_of_the_picture_in_the_color_of_its_shape() -> None:
    builder = fx.PlantBuilder("box")
    block = builder.add_body("block", fx.SpatialInertia.point_mass(1.0), com=(0.0, 0.0, 0.2))
    builder.add_joint(fx.WeldJoint("weld", builder.world, block))
    builder.add_shape(block, fx.BodyShape.box(size=(0.4, 0.2, 0.6)), (0, 0, 0.3), color="#3366cc")
    plant = builder.build()
    ax = fx.plot_mechanism(plant, plant.create_default_context(), view="xz", ground=-0.1)
    (faces,) = ax.collections
    (path,) = faces.get_paths()
    assert path.get_extents().bounds == pytest.approx((-0.2, 0.0, 0.4, 0.6))
    assert np.asarray(faces.get_facecolor())[0, :3] @ [0, 0, 1] > 0.5
    assert [line for line in ax.lines if np.array_equal(line.get_ydata(), [-0.1, -0.1])]
    assert not ends(ax, "#1f5a99")  # where the shape is there are no bones


def test_arrows_show_forces_at_their_places_with_a_scale(
    arm: tuple[fx.Plant, fx.Context],
) -> None:
    plant, context = arm
    ax = fx.plot_mechanism(plant, context, forces=True, title="pulled")
    assert ax.get_title(loc="left") == "pulled"
    spring = plant.force_element("spring")
    pulls = [float(spring.output_port("tension").eval(context)[0])]
    middle = plant.frame("middle").pose(context).p
    pulls.append(float(np.linalg.norm(middle)))  # of the bushing, with 1 N/m
    lengths = []
    for arrow in ax.patches:
        start, end = arrow._posA_posB  # type: ignore[attr-defined]
        lengths.append(float(np.linalg.norm(np.subtract(end, start))))
    assert np.allclose(np.divide(lengths, max(lengths)), np.divide(pulls, max(pulls)))
    assert any(text.get_text().endswith(" N") for text in ax.texts)


@pytest.mark.parametrize(
    ("stiffness", "damping", "kind"),
    [(1.0, 0.0, "spring"), (1.0, 2.0, "damped spring"), (0.0, 2.0, "damper")],
)
def test_an_element_looks_like_what_its_constants_make_of_it(
    stiffness: float, damping: float, kind: str
) -> None:
    builder = fx.PlantBuilder("ball")
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    builder.add_force_element(
        fx.LinearSpringDamper(
            "element",
            builder.world,
            (0.0, 0.0, 1.0),
            ball,
            (0.0, 0.0, 0.1),
            free_length=0.5,
            stiffness=stiffness,
            damping=damping,
        )
    )
    plant = builder.build()
    context = plant.create_default_context()
    found = [each.kind for each in strokes(plant, context)]
    assert kind in found
    context.set("element.stiffness", 0.0)
    context.set("element.damping", 1.0)
    assert "damper" in [each.kind for each in strokes(plant, context)]
    fx.plot_mechanism(plant, context)


def test_a_bone_leads_from_the_joint_to_the_surface_of_a_ball() -> None:
    builder = fx.PlantBuilder("pendulum")
    sphere = fx.SpatialInertia.solid_sphere(1.0, radius=0.2)
    bob = builder.add_body("bob", sphere, com=(0.0, 0.0, -1.0))
    builder.add_joint(fx.RevoluteJoint("pivot", builder.world, bob, axis=(0, 1, 0)))
    plant = builder.build()
    context = plant.create_default_context()
    (bone,) = (each for each in strokes(plant, context) if each.kind == "bone")
    assert bone.points.ravel().tolist() == pytest.approx([0, 0, 0, 0, 0, -0.8])
    # The shape is decoration: it stays where it is when the mass moves.
    context.set("bob.com", [0.5, 0.0, -1.0])
    bones = [each.points[-1].round(6).tolist() for each in strokes(plant, context)]
    assert [0.5, 0.0, -1.0] in bones
    assert [0.0, 0.0, -0.8] in bones


def test_the_pin_of_a_joint_that_closes_a_loop_is_drawn_as_those_of_others() -> None:
    linkage, context = four_bar()
    ax = fx.plot_mechanism(linkage, context)
    pins = [
        np.asarray(line.get_xydata(), dtype=float).mean(axis=0)
        for line in ax.lines
        if line.get_marker() == "o"
    ]
    pin = linkage.frame("pin_rocker").pose(context).p
    assert len([each for each in pins if np.linalg.norm(each - pin[[0, 2]]) < 1e-9]) == 1
    assert len(pins) == 4


def test_the_axis_of_a_joint_reaches_over_what_turns_about_it_and_slides_along_it() -> None:
    builder = fx.PlantBuilder("bushing")
    solid = fx.SpatialInertia.solid_cylinder(1.0, radius=0.02, length=0.4, axis="x")
    rod = builder.add_body("rod", solid)
    joint = fx.CylindricalJoint("joint", builder.world, rod, axis=(1, 0, 0))
    builder.add_joint(joint)
    plant = builder.build()
    context = plant.create_default_context()
    poses = []
    for x in (0.0, 0.5):
        joint.translation.set(context, x)
        poses.append(poses_in(plant, [context])[0])
    scene = make_scene(plant, context, np.array(poses))
    (axis,) = [each for each in scene.strokes if each.kind == "axis"]
    assert axis.points[0, 0] < -0.2
    assert axis.points[1, 0] > 0.7
    np.testing.assert_array_equal(axis.points[:, 1:], 0.0)


class Magnet(fx.LinearSpringDamper):
    """An element that is not to be seen."""

    drawn_as = ""


@pytest.mark.parametrize(("kind", "count"), [(fx.LinearSpringDamper, 1), (Magnet, 0)])
def test_an_element_says_itself_how_it_is_drawn(kind: Any, count: int) -> None:
    builder = fx.PlantBuilder("magnets")
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PrismaticJoint("slide", builder.world, body, axis=(1, 0, 0)))
    options = {"free_length": 0.1, "stiffness": 5.0, "damping": 0.0}
    builder.add_force_element(
        kind("pull", builder.world, (1.0, 0.0, 0.0), body, (0.0, 0.0, 0.0), **options)
    )
    plant = builder.build()
    context = plant.create_default_context()
    scene = make_scene(plant, context, poses_in(plant, [context]))
    assert [each.kind for each in scene.strokes].count("spring") == count
