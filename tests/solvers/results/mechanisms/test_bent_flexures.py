"""Pictures show flexures as they bend, colored by their stress."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

import flexure as fx
from flexure.blocks.math import z_rotation
from flexure.diagrams.drawing.formats.style import RED
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.camera import Camera
from flexure.solvers.results.mechanisms.flexure_shapes import Ribbon, StressColors, ribbons
from flexure.solvers.results.mechanisms.pictures import poses_in
from tests.support.pages.browser import visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser

STEEL = fx.Material.common("structural steel S235")
SIZE: dict[str, Any] = {"length": 0.1, "width": 0.02, "thickness": 1e-3, "material": STEEL}


def leaf_on(segments: int = 1, **options: Any) -> tuple[fx.Plant, Any]:
    """A leaf from the world to a body that can go anywhere, and the joint of that body."""
    builder = fx.PlantBuilder("leaf", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.1))
    joint = fx.QuaternionFloatingJoint("tip", builder.world, tip)
    joint.default_pose = np.eye(3), (0.1, 0.0, 0.0)
    builder.add_joint(joint)
    builder.add_force_element(
        fx.LeafSpring("leaf", builder.world, tip, segments=segments, **{**SIZE, **options})
    )
    return builder.build(), joint


def drawn(plant: fx.Plant, context: fx.Context) -> tuple[Ribbon, FloatArray]:
    """Return the only flexure of a plant, and the corners of its sections."""
    (ribbon,) = ribbons(plant, context)
    return ribbon, ribbon.corners(poses_in(plant, [context])[0])


def test_a_cantilever_is_drawn_along_the_cubic_of_the_textbook() -> None:
    plant, joint = leaf_on()
    context = plant.create_default_context()
    stroke, h = 1e-4, SIZE["length"]
    joint.pose.set(context, (z_rotation(1.5 * stroke / h), (h, stroke, 0.0)))
    _, corners = drawn(plant, context)
    x, y, _ = corners.mean(axis=1).T
    np.testing.assert_allclose(y, stroke * (3.0 - x / h) * (x / h) ** 2 / 2.0, atol=1e-6 * stroke)
    sizes = np.ptp(corners, axis=1)
    np.testing.assert_allclose(sizes[:, 1], SIZE["thickness"], rtol=1e-5)
    np.testing.assert_allclose(sizes[:, 2], SIZE["width"], rtol=1e-12)


@pytest.mark.parametrize("segments", [1, 3])
def test_an_arc_is_drawn_as_one_also_through_nodes(segments: int) -> None:
    curvature, h = 6.0, SIZE["length"]
    builder = fx.PlantBuilder("arc")
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.1))
    joint = fx.QuaternionFloatingJoint("tip", builder.world, tip)
    angle = curvature * h
    joint.default_pose = (
        z_rotation(angle),
        (np.sin(angle) / curvature, (1.0 - np.cos(angle)) / curvature, 0.0),
    )
    builder.add_joint(joint)
    builder.add_force_element(
        fx.LeafSpring(
            "leaf", builder.world, tip, curvature=(0.0, curvature), segments=segments, **SIZE
        )
    )
    plant = builder.build()
    _, corners = drawn(plant, plant.create_default_context())
    along = corners.mean(axis=1)
    radius = np.linalg.norm(along - [0.0, 1.0 / curvature, 0.0], axis=1)
    np.testing.assert_allclose(radius, 1.0 / curvature, rtol=4e-4 / segments**4)


def test_a_wire_is_round_and_a_notch_as_thick_as_its_neck() -> None:
    builder = fx.PlantBuilder("both", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(0.1))
    end = builder.add_frame("end", builder.world, (-0.1, 0.0, 0.0))
    builder.add_force_element(
        fx.WireFlexure("wire", end, body, length=0.1, diameter=2e-3, material=STEEL)
    )
    notch = fx.sections.FilletedNotch(
        thickness=1e-3, neck_length=4e-3, fillet_radius=2e-3, width=8e-3
    )
    builder.add_force_element(
        fx.NotchHinge("hinge", builder.world, body, notch=notch, material=STEEL)
    )
    plant = builder.build()
    context = plant.create_default_context()
    poses = poses_in(plant, [context])[0]
    wire, hinge = (ribbon.corners(poses) for ribbon in ribbons(plant, context))
    np.testing.assert_allclose(np.linalg.norm(wire[0, :, 1:], axis=1), 1e-3)
    thickness = np.ptp(hinge[..., 1], axis=1)
    along = hinge[..., 0].mean(axis=1)
    assert thickness[0] == pytest.approx(5e-3)
    assert thickness.min() == pytest.approx(1e-3)
    np.testing.assert_allclose(thickness[np.abs(along) < 2e-3], 1e-3)
    np.testing.assert_allclose([along[0], along[-1]], [-4e-3, 4e-3])


def test_a_tapered_beam_gets_thinner() -> None:
    builder = fx.PlantBuilder("taper", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.point_mass(0.1))
    end = builder.add_frame("end", builder.world, (-0.1, 0.0, 0.0))
    thick, thin = fx.sections.RectangleSection(0.02, 2e-3), fx.sections.RectangleSection(0.01, 1e-3)
    builder.add_force_element(
        fx.Beam("beam", end, body, section=thick, end_section=thin, material=STEEL, length=0.1)
    )
    plant = builder.build()
    _, corners = drawn(plant, plant.create_default_context())
    np.testing.assert_allclose(np.ptp(corners[0], axis=0)[1:], [2e-3, 0.02])
    np.testing.assert_allclose(np.ptp(corners[-1], axis=0)[1:], [1e-3, 0.01])


def colors_of(ax: Any) -> list[str]:
    """Return the colors of the slabs, in no order."""
    return [to_hex(each.get_facecolor()[0]) for each in ax.collections if len(each.get_paths())]


def test_colors_go_from_no_stress_to_yield_and_are_red_beyond() -> None:
    plant, joint = leaf_on(segments=2)
    context = plant.create_default_context()
    ax = fx.plot_mechanism(plant, context, stress=True)
    assert set(colors_of(ax)) == {"#440154"}
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "stress in MPa, up to yield"
    assert bar.get_ylim()[1] == pytest.approx(235e6)
    joint.pose.set(context, (z_rotation(0.3), (0.0985, 0.015, 0.0)))
    assert plant.find_output("leaf.greatest_stress").eval(context)[0] > 235e6
    assert RED in colors_of(fx.plot_mechanism(plant, context, stress=True))
    assert len(set(colors_of(fx.plot_mechanism(plant, context)))) < 4  # shades of one color


def test_slabs_have_the_stress_between_what_is_known_of_the_segment() -> None:
    plant, joint = leaf_on()
    context = plant.create_default_context()
    joint.pose.set(context, (np.eye(3), (0.1 - 0.6e-8 / 0.1, 1e-4, 0.0)))  # without tension
    ribbon, _ = drawn(plant, context)
    stress = ribbon.along(ribbon.stress_port.eval(context))
    places = (np.arange(16) + 0.5) / 16
    # Of a leaf that is guided: the moment 6 EI y/h² at the ends, none in the middle.
    at_ends = 3.0 * STEEL.youngs_modulus * SIZE["thickness"] * 1e-4 / SIZE["length"] ** 2
    np.testing.assert_allclose(stress, at_ends * np.abs(1.0 - 2.0 * places), rtol=0.02)


@pytest.mark.full
def test_without_yield_strength_colors_end_at_the_greatest_stress_of_the_motion(
    tmp_path: Path,
) -> None:
    soft = fx.Material(youngs_modulus=2e9, poissons_ratio=0.4, density=1e3)
    plant, joint = leaf_on(material=soft)
    context = plant.create_default_context()
    joint.pose.set(context, (np.eye(3), (0.1, 2e-3, 0.0)))
    result = fx.simulate(plant, 0.2, context=context)
    shown = fx.animate(result, stress=True, fps=20, path=tmp_path / "motion.gif")
    bar = shown._fig.axes[1]  # type: ignore[attr-defined]
    assert bar.get_ylabel() == "stress in MPa"
    times = np.linspace(0.0, 0.2, 5)
    assert bar.get_ylim()[1] == pytest.approx(np.max(result.sample("leaf.stress", times)), rel=0.05)


def bent_leaf() -> tuple[fx.Plant, fx.Context]:
    plant, joint = leaf_on(segments=2)
    context = plant.create_default_context()
    joint.pose.set(context, (z_rotation(0.02), (0.0999, 1.5e-3, 0.0)))
    return plant, context


def seen_colors(seen: dict[str, Any], slabs: int) -> FloatArray:
    """Return the colors of the last pieces in the order of the slabs, as red, green and blue."""
    found = {face["piece"]: face["color"] for face in seen["faces"]}
    last = sorted(found)[-slabs:]
    return np.array([[int(found[k][i : i + 2], 16) for i in (1, 3, 5)] for k in last])


def expected_colors(plant: fx.Plant, context: fx.Context) -> FloatArray:
    (ribbon,) = ribbons(plant, context)
    stress = ribbon.stress_port.eval(context)
    named = StressColors([ribbon], context, [stress])(ribbon.along(stress))
    return np.array([[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in named])


def test_a_page_that_plays_a_motion_has_the_colors_of_pictures(
    browser: Browser, tmp_path: Path
) -> None:
    plant, context = bent_leaf()
    result = fx.simulate(plant, 1e-4, context=context)
    fx.animate(result, path=tmp_path / "motion.html", fps=10_000, stress=True, view="corner")
    with visiting(browser, tmp_path / "motion.html") as visit:
        seen = visit.page.evaluate(
            "() => { mechanism.seek(0); mechanism.draw(); return mechanism.seen(); }"
        )
    expected = expected_colors(plant, context)
    assert np.ptp(expected, axis=0).max() > 50  # from the clamp to the tip
    assert np.max(np.abs(seen_colors(seen, len(expected)) - expected)) <= 8  # of 64 colors
    assert seen["stress"] == 235e6


def test_colors_of_a_plant_without_flexures_are_refused() -> None:
    builder = fx.PlantBuilder("ball")
    builder.add_body("ball", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    ball = builder.build()
    with pytest.raises(fx.errors.DeclarationError, match="a Beam or a NotchHinge"):
        fx.plot_mechanism(ball, ball.create_default_context(), stress=True)


def test_the_canvas_of_a_page_has_the_same_slabs(browser: Browser, tmp_path: Path) -> None:
    plant, joint = leaf_on(segments=2)
    context = plant.create_default_context()
    joint.pose.set(context, (z_rotation(0.3), (0.097, 0.015, 0.001)))
    result = fx.simulate(plant, 1e-4, context=context)
    view = -50.0, 30.0
    fx.animate(result, path=tmp_path / "motion.html", fps=10_000, view=view)
    _, corners = drawn(plant, context)
    camera = Camera(view)
    expected = camera(corners)[..., :2].reshape(-1, 2)
    with visiting(browser, tmp_path / "motion.html") as visit:
        seen = visit.page.evaluate(
            "() => { mechanism.seek(0); mechanism.draw(); return mechanism.seen(); }"
        )
    pixels = np.concatenate([face["corners"] for face in seen["faces"]])
    found = (pixels - seen["bodies"][0]) * [1.0, -1.0] / seen["scale"]
    assert found[:, 0].min() == pytest.approx(expected[:, 0].min(), abs=1e-5)
    for point in found:
        off = np.linalg.norm(expected - point, axis=1)
        assert off.min() < 1e-5
