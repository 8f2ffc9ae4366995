"""What a picture shows at a place is what a viewer sees there, by the lines of sight."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.results.mechanisms.camera import Camera
from flexure.solvers.results.mechanisms.drawing import Seen, SeenPiece, painting_order
from flexure.solvers.results.mechanisms.facets import pieces_of
from flexure.solvers.results.mechanisms.pictures import poses_in
from tests.support.pages.scenes import contains, plant_of, seen_first, things
from tests.support.tiers import by_tier

STILL = np.array([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], dtype=float)
SHAPES = {
    "box": (BodyShape.box(size=(0.2, 0.5, 0.7)), 0.07),
    "ball": (BodyShape.sphere(radius=0.3), 4.0 / 3.0 * np.pi * 0.027),
    "ellipsoid": (BodyShape.ellipsoid(semi_axes=(0.3, 0.2, 0.1)), 4.0 / 3.0 * np.pi * 0.006),
    "cylinder": (BodyShape.cylinder(radius=0.2, length=0.5, axis="y"), 0.02 * np.pi),
    "tube": (
        BodyShape.tube(inner_radius=0.1, outer_radius=0.2, length=0.5, axis="x"),
        0.015 * np.pi,
    ),
    "capsule": (
        BodyShape.capsule(radius=0.1, length=0.5),
        0.005 * np.pi + 4.0 / 3.0 * np.pi * 0.001,
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(by_tier(fast=1, full=4)))
def test_things_are_painted_in_the_order_in_which_they_are_seen(seed: int) -> None:
    made = things(seed)
    plant = plant_of(made)
    poses = poses_in(plant, [plant.create_default_context()])[0]
    camera = Camera((37.0 * seed - 100.0, 15.0 * seed - 30.0))
    pieces = [
        SeenPiece(piece, poses[number], camera)
        for number, body in enumerate(plant.bodies)
        for piece in pieces_of(body.shape, number, "#808080")
    ]
    order = painting_order([piece.thing for piece in pieces])
    toward = camera.axes[2]
    compared = 0
    for place in np.random.default_rng(seed).uniform(-1.2, 1.2, (100, 2)):
        expected, clear = seen_first(made, place @ camera.axes[:2], toward)
        if clear < 0.02:
            continue
        painted = [k for k in order if any(contains(face, place) for face in pieces[k].corners)]
        assert (painted[-1] if painted else -1) == expected
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("name", SHAPES)
def test_faces_enclose_the_volume_and_look_outwards(name: str) -> None:
    shape, volume = SHAPES[name]
    found = 0.0
    for piece in pieces_of(shape.moved((0.3, -0.2, 0.5)), 1, "#808080"):
        for face in piece.faces:
            corners = piece.vertices[list(face)]
            for a, b in pairwise(corners[1:]):
                found += np.linalg.det([corners[0], a, b]) / 6.0
        for vertex in piece.vertices:
            assert piece.contains(vertex, 1e-9)
    assert found == pytest.approx(volume, rel=0.04)


def test_faces_are_projected_and_shaded_by_how_they_look_at_the_light() -> None:
    (piece,) = pieces_of(BodyShape.box(size=(2.0, 4.0, 6.0)), 1, "#ffffff")
    camera = Camera((30.0, 40.0))
    seen = SeenPiece(piece, STILL, camera)
    areas = [_area(face) for face in seen.corners]
    toward = camera.axes[2]  # all of it is positive: three sides are seen
    np.testing.assert_allclose(sorted(areas), sorted([24.0, 12.0, 8.0] * np.abs(toward)))
    top = seen.colors[np.argmin(np.abs(np.array(areas) - 8.0 * toward[2]))]
    light = camera.axes.T @ np.array([-0.35, 0.55, 0.76]) / np.linalg.norm([-0.35, 0.55, 0.76])
    np.testing.assert_allclose(top, 0.7 + 0.3 * max(light[2], 0.0))


def _area(face: FloatArray) -> float:
    x, y = face.T
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def test_lines_are_behind_what_hides_them_and_in_front_of_what_they_enter() -> None:
    (piece,) = pieces_of(BodyShape.box(size=(1.0, 1.0, 1.0)), 1, "#808080")
    box = SeenPiece(piece, STILL, Camera((0.0, 90.0))).thing  # seen from above
    none = np.empty((0, 4))
    below = Seen(np.array([[-1.0, 0.1, -2.0], [1.0, 0.1, -0.6]]), none)
    above = Seen(np.array([[-1.0, 0.1, 0.6], [1.0, 0.1, 0.6]]), none)
    entering = Seen(np.array([[-1.0, 0.1, -0.3], [0.1, 0.1, -0.3]]), none)
    assert painting_order([box, below]) == [1, 0]
    assert painting_order([above, box]) == [1, 0]
    assert painting_order([entering, box]) == [1, 0]
    assert painting_order([]) == []


def test_pieces_in_a_circle_are_all_painted_once() -> None:
    """Three bars each of which lies on the next one."""
    bars = []
    for k in range(3):
        turn = fx.blocks.math.z_rotation(2.0 * np.pi * k / 3.0)
        tilt = fx.blocks.math.x_rotation(0.3)
        shape = BodyShape.box(size=(0.05, 1.5, 0.05)).moved((np.eye(3), (0.4, 0.0, 0.0)))
        (piece,) = pieces_of(shape.moved((turn @ tilt, np.zeros(3))), 1, "#808080")
        bars.append(SeenPiece(piece, STILL, Camera((0.0, 90.0))).thing)
    assert sorted(painting_order(bars)) == [0, 1, 2]
