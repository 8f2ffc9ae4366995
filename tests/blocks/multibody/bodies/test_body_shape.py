"""Bodies know what they look like: by their inertia, by shapes added by hand, by meshes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import z_rotation
from flexure.blocks.multibody.bodies.meshes import Mesh, read_stl, simplified
from flexure.diagrams.checks.errors import DeclarationError, FlexureError, WiringError
from tests.support.mechanics.stl import BROKEN, TRIANGLES, VERTICES, ascii_text, binary

QUARTER = np.asarray(z_rotation(0.5 * np.pi))


def test_a_solid_has_the_shape_of_its_name_wherever_it_is_moved() -> None:
    inertia = fx.SpatialInertia.solid_cylinder(2.0, radius=0.1, length=0.5, axis="x")
    (tube,) = inertia.shifted([0.0, 0.0, 1.0]).rotated(QUARTER).with_mass(3.0).shape.primitives
    assert (tube.kind, tube.size) == ("tube", (0.0, 0.1, 0.5))
    np.testing.assert_allclose(tube.p, [0.0, 0.0, 1.0])
    np.testing.assert_allclose(abs(tube.R[:, 2]), [0.0, 1.0, 0.0], atol=1e-15)  # its axis, now y


def test_joined_bodies_have_both_shapes_and_plain_numbers_have_none() -> None:
    box = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.2, 0.3))
    both = box + fx.SpatialInertia.point_mass(2.0).shifted([0.0, 0.0, 1.0])
    assert repr(both.shape) == "<BodyShape: box, point>"
    light = box + fx.SpatialInertia.hollow_sphere(0.0, radius=0.1)
    assert repr(light.shape) == "<BodyShape: box, ellipsoid>"
    assert light == box
    plain = fx.SpatialInertia(1.0, inertia=box.inertia)
    assert repr(plain.shape) == "<BodyShape: nothing>"
    assert plain == box  # the shape is no part of equality
    assert hash(plain) == hash(box)


def test_a_body_is_where_its_center_of_mass_is_put() -> None:
    builder = fx.PlantBuilder("door")
    panel = fx.SpatialInertia.solid_box(9.0, size=(0.02, 0.6, 0.7))
    door = builder.add_body("door", panel, com=(0.0, 0.3, 0.0))
    edge = builder.add_frame("edge", door, (QUARTER, (0.0, 0.6, 0.0)))
    builder.add_shape(edge, fx.BodyShape.sphere(radius=0.03), (0.1, 0.0, 0.0), color="orange")
    builder.add_shape(builder.world, fx.BodyShape.box(size=(1.0, 1.0, 0.1)))
    box, knob = door.shape.primitives
    np.testing.assert_allclose(box.p, [0.0, 0.3, 0.0])
    np.testing.assert_allclose(knob.p, [0.0, 0.7, 0.0], atol=1e-12)
    assert (box.color, knob.color) == (None, "#c8641e")
    assert len(builder.world.shape.primitives) == 1


def test_shapes_that_are_none_and_shapes_of_others_are_refused() -> None:
    builder, other = fx.PlantBuilder("one"), fx.PlantBuilder("other")
    body = builder.add_body("body", fx.SpatialInertia.point_mass(1.0))
    ball = fx.BodyShape.sphere(radius=0.1)
    with pytest.raises(DeclarationError, match="expected a BodyShape"):
        builder.add_shape(body, "ball")  # type: ignore[arg-type]
    with pytest.raises(WiringError, match="bodies of 'one'"):
        builder.add_shape(other.world, ball)
    with pytest.raises(DeclarationError, match="'#rrggbb' or 'blue'"):
        builder.add_shape(body, ball, color="mauve")
    with pytest.raises(FlexureError, match="Cannot make a solid box with size"):
        fx.BodyShape.box(size=(1.0, 1.0, -1.0))
    assert len(body.shape.primitives) == 1
    builder.build()
    with pytest.raises(WiringError, match="has not built yet"):
        builder.add_shape(body, ball)


# Meshes ------------------------------------------------------------------------------------------


def volume(mesh: Mesh) -> float:
    return float(np.sum(np.linalg.det(mesh.vertices[mesh.triangles]))) / 6.0


@pytest.mark.parametrize(
    "content",
    [binary(), binary(b"solid, as some programs begin binary files"), ascii_text()],
    ids=["binary", "binary that begins with solid", "ASCII"],
)
def test_stl_files_are_read(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "part.stl"
    file.write_bytes(content)
    mesh = read_stl(file)
    assert sorted(map(tuple, mesh.vertices.tolist())) == sorted(VERTICES)
    assert volume(mesh) == pytest.approx(1.0 / 6.0)
    for scale, factor in ((0.1, 1e-3), ((1.0, 1.0, -2.0), 2.0)):
        (part,) = fx.BodyShape.mesh(file, scale=scale).primitives
        assert part.mesh is not None
        assert volume(part.mesh) == pytest.approx(factor / 6.0)  # a mirrored one is turned, too


@pytest.mark.parametrize("why", BROKEN)
def test_broken_files_are_refused_by_name(why: str, tmp_path: Path) -> None:
    file = tmp_path / "part.stl"
    file.write_bytes(BROKEN[why]())
    with pytest.raises(DeclarationError, match=r"Cannot read a mesh from '.*part\.stl'"):
        fx.BodyShape.mesh(file)


@pytest.mark.parametrize(
    "source",
    ["nowhere.stl", "part.obj", 3, (VERTICES,), (VERTICES, [(0, 1, 9)]), ([], []), (VERTICES, "a")],
    ids=repr,
)
def test_what_is_no_mesh_is_refused(source: Any, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError):
        fx.BodyShape.mesh(source)
    with pytest.raises(DeclarationError, match="Cannot read a mesh"):
        read_stl(tmp_path)


def test_a_mesh_of_many_triangles_is_drawn_with_fewer_that_look_alike() -> None:
    count = 150
    u, v = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, count), np.linspace(0.0, np.pi, count))
    points = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], axis=-1)
    k = np.arange(count * count).reshape(count, count)
    a, b, c, d = (each.ravel() for each in (k[:-1, :-1], k[1:, :-1], k[1:, 1:], k[:-1, 1:]))
    triangles = np.vstack([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    mesh = simplified(Mesh(points.reshape(-1, 3), triangles))
    assert 500 < len(mesh.triangles) <= 4000
    assert volume(mesh) == pytest.approx(4.0 / 3.0 * np.pi, rel=0.05)
    assert fx.BodyShape.mesh((VERTICES, TRIANGLES)).primitives[0].kind == "mesh"
