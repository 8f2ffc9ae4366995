"""Outlines of flexures have the areas, lengths and volumes of their dimensions, in every format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.multibody.bodies.meshes import read_stl
from tests.support.tiers import for_each

STEEL = fx.Material.common("stainless steel 301")
LENGTH, WIDTH, THICKNESS, RADIUS, NECK = 0.05, 0.02, 3e-4, 4e-3, 5e-4
#: Between the flat ends of a circular notch: a rectangle less two half disks.
NOTCH_AREA = 2.0 * RADIUS * (NECK + 2.0 * RADIUS) - np.pi * RADIUS**2


def hinged_guide() -> fx.Plant:
    """Return a stage on two leaves, and an arm on it behind a circular notch."""
    builder = fx.PlantBuilder("part", gravity=(0.0, 0.0, 0.0))
    block = fx.SpatialInertia.solid_box(0.2, size=(0.01, 0.08, 0.02))
    stage = builder.add_body("stage", block, com=(0.005, 0.0, 0.0))
    joint = builder.add_joint(fx.RpyFloatingJoint("stage", builder.world, stage))
    joint.default_pose = np.eye(3), (LENGTH, 0.0, 0.0)
    sizes = {"length": LENGTH, "width": WIDTH, "thickness": THICKNESS}
    guide = fx.ParallelGuide("guide", builder.world, stage, distance=0.06, material=STEEL, **sizes)
    builder.add_assembly(guide)
    arm = builder.add_body("arm", fx.SpatialInertia.point_mass(0.1))
    joint = builder.add_joint(fx.RpyFloatingJoint("arm", stage, arm))
    joint.default_pose = np.eye(3), (0.02, 0.0, 0.0)
    notch = fx.sections.CircularNotch(thickness=NECK, radius=RADIUS, width=WIDTH)
    center = builder.add_frame("center", stage, (0.02, 0.0, 0.0))
    builder.add_force_element(fx.NotchHinge("notch", center, arm, notch=notch, material=STEEL))
    return builder.build()


def check_outline(outline: np.ndarray, area: float, tolerance: float) -> None:
    x, y = outline.T
    found = 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))
    assert found == pytest.approx(area, rel=tolerance)


def test_outlines_have_the_areas_of_their_dimensions(tmp_path: Path) -> None:
    drawing = fx.part_drawing(hinged_guide(), tmp_path / "part.svg")
    assert drawing.flexures["guide_leaf1"].shape == (4, 2)  # no point beside its corners
    for name in ("guide_leaf1", "guide_leaf2"):
        assert drawing.area(name) == pytest.approx(LENGTH * THICKNESS, rel=1e-9)
        assert drawing.sizes[name] == pytest.approx((LENGTH, THICKNESS, WIDTH))
    check_outline(drawing.flexures["notch"], NOTCH_AREA, 1e-3)
    assert drawing.sizes["notch"] == pytest.approx((2.0 * RADIUS, NECK, WIDTH), rel=1e-4)
    circle = drawing.flexures["notch"] - [LENGTH + 0.02, RADIUS + 0.5 * NECK]
    radii = np.linalg.norm(circle[(circle[:, 1] > -RADIUS)], axis=1)
    np.testing.assert_allclose(radii, RADIUS, rtol=1e-3)
    (body,) = drawing.bodies
    check_outline(body, 0.01 * 0.08, 1e-9)


def test_every_format_has_the_same_outlines(tmp_path: Path) -> None:
    drawing = fx.part_drawing(hinged_guide())
    drawing.save(tmp_path / "part.svg")
    root = ET.parse(tmp_path / "part.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    layers = {each.get("id"): each for each in root.iter(f"{space}g")}
    polygons = layers["flexures"].iter(f"{space}polygon")
    for polygon, outline in zip(polygons, drawing.flexures.values(), strict=True):
        points = np.array(re.findall(r"\S+,\S+", polygon.get("points") or ""))
        numbers = np.array([row.split(",") for row in points], dtype=float) * [1e-3, -1e-3]
        np.testing.assert_allclose(numbers, outline, atol=1e-8)
    assert next(each.text for each in layers["dimensions"]) == "guide_leaf1: 50 x 0.3 x 20"
    width = float((root.get("width") or "").removesuffix("mm"))
    assert width == float((root.get("viewBox") or "").split()[2])  # a scale of 1:1
    drawing.save(tmp_path / "part.stl")
    mesh = read_stl(tmp_path / "part.stl")
    corners = mesh.vertices[mesh.triangles]
    volume = np.einsum("ki,ki->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    assert volume == pytest.approx(WIDTH * (2.0 * LENGTH * THICKNESS + NOTCH_AREA), rel=1e-3)
    edges = [tuple(row) for row in np.sort(mesh.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2))]
    assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}  # it is closed


def test_a_dxf_file_is_read_back_without_findings(tmp_path: Path) -> None:
    ezdxf = pytest.importorskip("ezdxf")
    drawing = fx.part_drawing(hinged_guide(), tmp_path / "part.dxf")
    document = ezdxf.readfile(tmp_path / "part.dxf")
    assert not document.audit().errors
    assert document.header["$INSUNITS"] == 4  # mm
    lines = document.modelspace().query('LWPOLYLINE[layer=="flexures"]')
    for line, outline in zip(lines, drawing.flexures.values(), strict=True):
        assert line.closed
        np.testing.assert_allclose(np.array(line.get_points("xy")), 1e3 * outline, atol=1e-9)


def test_what_cannot_be_drawn_is_refused_or_warned_of(tmp_path: Path) -> None:
    plant = hinged_guide()
    with pytest.raises(fx.errors.ValueRefusedError, match=r"seen along its length"):
        fx.part_drawing(plant, view="yz")
    with pytest.raises(fx.errors.ValueRefusedError, match=r"ends in \.svg, \.dxf or \.stl"):
        fx.part_drawing(plant, tmp_path / "part.step")
    bare = fx.PlantBuilder("bare")
    bare.add_joint(fx.RevoluteJoint("axis", bare.world, bare.add_body("arm", BALL), (0, 0, 1)))
    with pytest.raises(fx.errors.ValueRefusedError, match=r"a plant with flexures"):
        fx.part_drawing(bare.build())
    context = plant.create_default_context()
    context.set("stage.q[y]", 1e-3)
    with pytest.warns(UserWarning, match=r"bent: 'guide_leaf1', 'guide_leaf2', by up to \d+ MPa"):
        fx.part_drawing(plant, context=context)


def test_flexures_inclined_to_the_plane_are_warned_of_or_refused() -> None:
    """Seen shorter by cos 30°, turned about their length by 30°, or back and forth."""
    sizes = {"length": LENGTH, "width": WIDTH, "thickness": THICKNESS}
    rotations = fx.rotations.z_rotation(np.pi / 6), fx.rotations.x_rotation(np.pi / 6)
    turns: list[tuple[Any, Any]] = [(rotations[0], "xz"), (rotations[1], "xy")]
    for rotation, view in turns:
        builder = fx.PlantBuilder("part", gravity=(0.0, 0.0, 0.0))
        turned = builder.add_frame("turned", builder.world, (rotation, (0, 0, 0)))
        arm = builder.add_body("arm", BALL)
        joint = builder.add_joint(fx.RpyFloatingJoint("arm", turned, arm))
        joint.default_pose = np.eye(3), (LENGTH, 0.0, 0.0)
        builder.add_force_element(fx.LeafSpring("leaf", turned, arm, material=STEEL, **sizes))
        with pytest.warns(UserWarning, match=f"inclined to the plane {view}: 'leaf'"):
            drawing = fx.part_drawing(builder.build(), view=view)
        if view == "xz":
            assert drawing.area("leaf") == pytest.approx(LENGTH * np.cos(np.pi / 6) * WIDTH)
            across = THICKNESS * np.cos(np.pi / 6)  # and not how far the leaf goes
            assert drawing.sizes["leaf"] == pytest.approx((LENGTH, WIDTH, across))
    builder = fx.PlantBuilder("spring", gravity=(0.0, 0.0, 0.0))
    hub = builder.add_body("hub", BALL)
    builder.add_joint(fx.RpyFloatingJoint("hub", builder.world, hub))
    ring: dict[str, Any] = {
        "inner_radius": 0.01,
        "outer_radius": 0.03,
        "width": 2e-3,
        "thickness": THICKNESS,
    }
    spiral: dict[str, Any] = {"sweep": 3.0, "arms": 2, "segments": 4, "material": STEEL}
    builder.add_assembly(fx.SpiralFlexure("spiral", builder.world, hub, **ring, **spiral))
    plant = builder.build()
    drawing = fx.part_drawing(plant)
    length, width, _ = drawing.sizes["spiral_leaf1"]
    assert drawing.area("spiral_leaf1") == pytest.approx(length * width, rel=1e-4)
    with pytest.raises(fx.errors.ValueRefusedError, match="seen along its length"):
        fx.part_drawing(plant, view="xz")


@for_each("tolerance", [1e-4, 1e-6])
def test_contours_miss_the_notch_by_no_more_than_the_tolerance(tolerance: float) -> None:
    outline = fx.part_drawing(hinged_guide(), tolerance=tolerance).flexures["notch"]
    center = np.array([LENGTH + 0.02, RADIUS + 0.5 * NECK])
    upper = outline[outline[:, 1] > 0.0]
    middles = 0.5 * (upper[1:] + upper[:-1])
    away = np.abs(np.linalg.norm(middles - center, axis=1) - RADIUS)
    assert away.max() <= 1.1 * tolerance + 1e-6


BALL = fx.SpatialInertia.point_mass(0.1)
