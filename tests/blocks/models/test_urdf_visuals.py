"""What links of URDF files look like; what cannot be drawn is named, and stops nothing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import flexure as fx
from tests.support.mechanics.stl import BROKEN, binary

pytest.importorskip("lxml", reason="URDF files are read with the package lxml")

ROBOT = """
<robot name="r">
  <material name="steel"><color rgba="0.5 0.5 1 1"/></material>
  <link name="world"/>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
    {}
  </link>
</robot>"""


def shape_of(visual: str) -> fx.BodyShape:
    return fx.load_urdf(ROBOT.format(visual)).body("arm").shape


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ('<box size="0.1 0.2 0.3"/>', "box", (0.1, 0.2, 0.3)),
        ('<sphere radius="0.1"/>', "ellipsoid", (0.1, 0.1, 0.1)),
        ('<cylinder radius="0.1" length="0.5"/>', "tube", (0.0, 0.1, 0.5)),
    ],
)
def test_visuals_are_read(geometry: str, kind: str, size: tuple[float, ...]) -> None:
    shape = shape_of(
        f'<visual><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry>{geometry}'
        '</geometry><material name="steel"/></visual>'
    )
    (part,) = shape.primitives
    assert (part.kind, part.size, part.color) == (kind, size, "#8080ff")
    np.testing.assert_allclose(part.p, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(part.R @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    "name", ["part.stl", "package://robots/meshes/part.stl", "package://meshes/part.stl"]
)
def test_files_of_meshes_are_found_beside_the_robot_and_in_its_package(
    name: str, tmp_path: Path
) -> None:
    for folder in ("robots/urdf", "robots/meshes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "robots/urdf/part.stl").write_bytes(binary())
    (tmp_path / "robots/meshes/part.stl").write_bytes(binary())
    file = tmp_path / "robots/urdf/robot.urdf"
    visual = f'<visual><geometry><mesh filename="{name}" scale="2 2 2"/></geometry></visual>'
    file.write_text(ROBOT.format(2 * visual), encoding="utf-8")
    parts = fx.load_urdf(file).body("arm").shape.primitives
    assert [part.kind for part in parts] == ["mesh", "mesh"]
    assert parts[0].mesh is not None
    assert parts[0].mesh is parts[1].mesh  # read once
    assert parts[0].mesh.vertices.max() == 2.0


@pytest.mark.parametrize(
    "content",
    [
        '<geometry><mesh filename="arm.dae"/></geometry>',
        '<geometry><mesh filename="nowhere.stl"/></geometry>',
        '<geometry><mesh filename="package://nobody/nowhere.stl"/></geometry>',
        '<geometry><mesh filename=""/></geometry>',
        '<geometry><box size="1 2"/></geometry>',
        '<geometry><box size="1 2 -3"/></geometry>',
        '<geometry><torus radius="1"/></geometry>',
        "<geometry/>",
        "",
        '<origin xyz="a"/><geometry><sphere radius="1"/></geometry>',
    ],
)
def test_what_cannot_be_drawn_is_named_in_a_warning(content: str) -> None:
    with pytest.warns(UserWarning, match=r"not drawn in pictures: <visual> in link 'arm', line 7"):
        shape = shape_of(f"<visual>{content}</visual>")
    assert shape.primitives == ()


def test_broken_meshes_are_named_and_the_rest_is_drawn(tmp_path: Path) -> None:
    visuals = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    for k, (_, make) in enumerate(BROKEN.items()):
        (tmp_path / f"{k}.stl").write_bytes(make())
        visuals += f'<visual><geometry><mesh filename="{k}.stl"/></geometry></visual>'
    file = tmp_path / "robot.urdf"
    file.write_text(ROBOT.format(visuals), encoding="utf-8")
    with pytest.warns(UserWarning, match=rf"not drawn.*and {len(BROKEN) - 1} more"):
        builder = fx.load_urdf(file)
    assert len(builder.body("arm").shape.primitives) == 1
    assert len(builder.left_out) == len(BROKEN)


def test_what_looks_like_something_moves_like_the_same_thing() -> None:
    visual = '<visual><geometry><box size="0.1 0.2 0.3"/></geometry></visual>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plants = [fx.load_urdf(ROBOT.format(text), base="free").build() for text in ("", visual)]
    plain, drawn = (plant.calc_mass_matrix(plant.create_default_context()) for plant in plants)
    np.testing.assert_array_equal(plain, drawn)
