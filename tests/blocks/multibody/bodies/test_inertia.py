"""Inertias of bodies: what solids weigh, how parts add up, and what no body can have."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from flexure.blocks import math as fm
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.meshes import Mesh, write_stl
from flexure.blocks.multibody.bodies.solids import mass_properties, validity_problem
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from tests.blocks.math.samples import (
    components,
    flat,
    quaternions,
    random_rotation,
    traced,
    values_of,
    vectors,
)
from tests.support.tiers import for_each

#: Points (n, 3) and the volume, area or length that each of them stands for (n,).
Nodes = tuple[Any, Any]


def almost(found: SpatialInertia, expected: SpatialInertia) -> None:
    """Check that two inertias are equal to rounding."""
    assert found.mass == pytest.approx(expected.mass, rel=1e-13)
    assert found.com == pytest.approx(expected.com, rel=1e-13, abs=1e-13)
    assert found.inertia == pytest.approx(expected.inertia, rel=1e-12, abs=1e-12)


# Solids, integrated over their volume ------------------------------------------------------------


def gauss(a: float, b: float) -> tuple[Any, Any]:
    """Return nodes and weights that integrate polynomials of degree 11 from a to b exactly."""
    x, w = np.polynomial.legendre.leggauss(6)
    return 0.5 * (a + b) + 0.5 * (b - a) * x, 0.5 * (b - a) * w


#: Nodes and weights over a full turn, exact for the harmonics that moments of inertia have.
TURN = 2.0 * np.pi * np.arange(8) / 8.0, np.full(8, 2.0 * np.pi / 8.0)


def grid(*rules: tuple[Any, Any]) -> tuple[list[Any], Any]:
    """Return the coordinates and weights of all combinations of the nodes of some rules."""
    coordinates = [axis.ravel() for axis in np.meshgrid(*[rule[0] for rule in rules])]
    weights = np.prod([axis.ravel() for axis in np.meshgrid(*[rule[1] for rule in rules])], axis=0)
    return coordinates, weights


def block(size: Any) -> Nodes:
    coordinates, weights = grid(*[gauss(-0.5 * extent, 0.5 * extent) for extent in size])
    return np.stack(coordinates, axis=1), weights


def round_bar(inner: float, outer: float, length: float) -> Nodes:
    (r, angle, z), weights = grid(gauss(inner, outer), TURN, gauss(-0.5 * length, 0.5 * length))
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1), weights * r


def part_of_ball(semi_axes: Any, lowest: float = -1.0) -> Nodes:
    """Return an ellipsoid, cut off below a height, with the radius as the last coordinate."""
    (r, angle, height), weights = grid(gauss(0.0, 1.0), TURN, gauss(lowest, 1.0))
    across = r * np.sqrt(1.0 - height**2)
    points = np.stack([across * np.cos(angle), across * np.sin(angle), r * height], axis=1)
    return points * semi_axes, weights * r**2 * np.prod(semi_axes)


def capsule(radius: float, length: float) -> Nodes:
    bar, in_bar = round_bar(0.0, radius, length)
    cap, in_cap = part_of_ball(np.full(3, radius), lowest=0.0)
    top = np.add(cap, [0.0, 0.0, 0.5 * length])
    return np.concatenate([bar, top, -top]), np.concatenate([in_bar, in_cap, in_cap])


def sphere(radius: float) -> Nodes:
    (angle, height), weights = grid(TURN, gauss(-1.0, 1.0))
    across = np.sqrt(1.0 - height**2)
    points = np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)
    return radius * points, weights * radius**2


def rod(length: float) -> Nodes:
    z, weights = gauss(-0.5 * length, 0.5 * length)
    return np.outer(z, [0.0, 0.0, 1.0]), weights


def plate(a: float, b: float) -> Nodes:
    (x, y), weights = grid(gauss(-0.5 * a, 0.5 * a), gauss(-0.5 * b, 0.5 * b))
    return np.stack([x, y, np.zeros_like(x)], axis=1), weights


def summed(points: Any, weights: Any) -> Any:
    """Return the sum of weight (|p|² 1 - p pᵀ) over all points."""
    squares = np.einsum("n,ni,nj->ij", weights, points, points)
    return np.trace(squares) * np.eye(3) - squares


SOLIDS: dict[str, tuple[Callable[..., SpatialInertia], dict[str, Any], Nodes]] = {
    "box": (SpatialInertia.solid_box, {"size": (0.3, 0.4, 0.7)}, block((0.3, 0.4, 0.7))),
    "sphere": (SpatialInertia.solid_sphere, {"radius": 0.6}, part_of_ball(np.full(3, 0.6))),
    "ellipsoid": (
        SpatialInertia.solid_ellipsoid,
        {"semi_axes": (0.2, 0.5, 0.9)},
        part_of_ball(np.array([0.2, 0.5, 0.9])),
    ),
    "cylinder": (
        SpatialInertia.solid_cylinder,
        {"radius": 0.3, "length": 0.8},
        round_bar(0.0, 0.3, 0.8),
    ),
    "tube": (
        SpatialInertia.hollow_cylinder,
        {"inner_radius": 0.2, "outer_radius": 0.3, "length": 0.8},
        round_bar(0.2, 0.3, 0.8),
    ),
    "capsule": (
        SpatialInertia.solid_capsule,
        {"radius": 0.3, "length": 0.8},
        capsule(0.3, 0.8),
    ),
}
SHAPES_WITHOUT_VOLUME: dict[str, tuple[Callable[..., SpatialInertia], dict[str, Any], Nodes]] = {
    "hollow sphere": (SpatialInertia.hollow_sphere, {"radius": 0.6}, sphere(0.6)),
    "rod": (SpatialInertia.thin_rod, {"length": 0.7}, rod(0.7)),
    "plate": (SpatialInertia.thin_plate, {"size": (0.3, 0.4)}, plate(0.3, 0.4)),
}


@pytest.mark.parametrize("name", SOLIDS | SHAPES_WITHOUT_VOLUME)
def test_shape_of_a_mass_has_the_integral_of_its_points(name: str) -> None:
    make, lengths, (points, weights) = (SOLIDS | SHAPES_WITHOUT_VOLUME)[name]
    body = make(2.5, **lengths)
    assert body.mass == 2.5
    assert np.array_equal(body.com, np.zeros(3))
    expected = 2.5 * summed(points, weights) / weights.sum()
    assert body.inertia == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("name", SOLIDS)
def test_solid_of_a_density_weighs_as_much_as_its_volume(name: str) -> None:
    make, lengths, (points, weights) = SOLIDS[name]
    body = make(density=700.0, **lengths)
    assert body.mass == pytest.approx(700.0 * weights.sum(), rel=1e-13)
    assert body.inertia == pytest.approx(700.0 * summed(points, weights), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize("name", ["cylinder", "tube", "capsule", "rod"])
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_moment_about_the_named_axis_is_that_of_the_symmetry(name: str, axis: str) -> None:
    make, lengths, (points, weights) = (SOLIDS | SHAPES_WITHOUT_VOLUME)[name]
    moments = np.diag(make(2.5, axis=axis, **lengths).inertia)
    along, across = np.diag(2.5 * summed(points, weights) / weights.sum())[[2, 0]]
    expected = [along if axis == letter else across for letter in "xyz"]
    assert moments == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(
    ("normal", "flat_size"), [("x", (0, 3, 4)), ("y", (3, 0, 4)), ("z", (3, 4, 0))]
)
def test_extents_of_a_plate_are_in_the_order_of_the_axes(normal: Any, flat_size: Any) -> None:
    found = SpatialInertia.thin_plate(12.0, size=(3.0, 4.0), normal=normal)
    x, y, z = (extent**2 for extent in flat_size)
    assert np.array_equal(found.inertia, np.diag([y + z, z + x, x + y]))


def test_tube_without_a_wall_has_all_mass_at_its_radius() -> None:
    tube = SpatialInertia.hollow_cylinder(2.0, inner_radius=0.5, outer_radius=0.5, length=1.0)
    assert tube.inertia[2, 2] == pytest.approx(2.0 * 0.5**2)


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inertia",
    [
        [[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]],
        (2.0, 3.0, 4.0, 0.1, 0.2, 0.3),
    ],
)
def test_matrix_and_six_numbers_say_the_same(inertia: Any) -> None:
    body = SpatialInertia(2.0, inertia=inertia)
    assert np.array_equal(body.unit_inertia_six, [1.0, 1.5, 2.0, 0.05, 0.1, 0.15])
    assert np.array_equal(body.inertia, [[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]])


def test_three_numbers_are_moments_about_the_axes() -> None:
    assert np.array_equal(SpatialInertia(2.0, inertia=(2, 3, 4)).inertia, np.diag([2.0, 3.0, 4.0]))


def test_unequal_rounding_of_mirrored_entries_is_evened_out() -> None:
    crooked = np.diag([2.0, 3.0, 4.0])
    crooked[0, 1], crooked[1, 0] = 0.1, 0.1 + 1e-12
    inertia = SpatialInertia(1.0, inertia=crooked).inertia
    assert np.array_equal(inertia, inertia.T)


def test_equal_numbers_make_equal_inertias() -> None:
    one, same = (SpatialInertia(1.0, (0, 1, 2), (3, 4, 5)) for _ in range(2))
    assert one == same == pickle.loads(pickle.dumps(one)) == eval(repr(one))
    assert len({one, same, one.with_mass(2.0)}) == 2


def test_arrays_that_are_handed_out_are_copies() -> None:
    body = SpatialInertia(1.0, (0.0, 1.0, 2.0), (3.0, 4.0, 5.0))
    body.com[:] = body.inertia[:] = body.unit_inertia_six[:] = 7.0
    assert body == SpatialInertia(1.0, (0.0, 1.0, 2.0), (3.0, 4.0, 5.0))
    with pytest.raises(AttributeError):
        body.mass = 2.0  # type: ignore[misc]


# Moving and joining -------------------------------------------------------------------------------


def some_body(seed: int = 0) -> SpatialInertia:
    """Return a body without any symmetry."""
    rng = np.random.default_rng(seed)
    box = SpatialInertia.solid_box(rng.uniform(1.0, 3.0), size=rng.uniform(0.1, 1.0, 3))
    return box.moved((random_rotation(rng), rng.normal(size=3)))


def test_moments_about_a_distant_point_follow_the_parallel_axis_theorem() -> None:
    rod = SpatialInertia.thin_rod(3.0, length=2.0, axis="x").shifted([1.0, 0.0, 0.0])
    about_end = rod.about_origin()
    assert np.array_equal(about_end.com, [1.0, 0.0, 0.0])
    assert about_end.inertia == pytest.approx(np.diag([0.0, 4.0, 4.0]))  # m l²/3


def test_mass_properties_are_those_of_the_points_about_the_origin() -> None:
    points, weights = block((0.3, 0.4, 0.7))
    pose = fm.RigidTransform(fm.rotation_from_rpy([0.3, 0.5, -0.7]), np.array([1.0, -2.0, 3.0]))
    M = SpatialInertia.solid_box(density=5.0, size=(0.3, 0.4, 0.7)).moved(pose).about_origin()
    seen = points @ pose.R.T + pose.p
    assert M.inertia == pytest.approx(5.0 * summed(seen, weights), rel=1e-13)
    assert M.mass * M.com == pytest.approx(5.0 * weights @ seen, rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_moving_agrees_with_shifting_mass_properties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body, R, p = some_body(seed), random_rotation(rng), rng.normal(size=3)
    seen = fm.shift_mass_properties(fm.rotate_mass_properties(R, body.about_origin()), -p)
    for found, expected in zip(body.moved((R, p)).about_origin(), seen, strict=True):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_turning_and_shifting_one_after_the_other_is_moving() -> None:
    R, p = fm.x_rotation(0.4), np.array([1.0, 2.0, 3.0])
    almost(some_body().rotated(R).shifted(p), some_body().moved((R, p)))


def test_two_halves_of_a_box_make_the_whole() -> None:
    half = SpatialInertia.solid_box(density=3.0, size=(1.0, 2.0, 3.0))
    whole = half.shifted([0.5, 0.0, 0.0]) + half.shifted([-0.5, 0.0, 0.0])
    almost(whole, SpatialInertia.solid_box(density=3.0, size=(2.0, 2.0, 3.0)))


def test_bore_and_tube_make_a_full_cylinder() -> None:
    lengths: dict[str, Any] = {"length": 0.8, "density": 2.0}
    core = SpatialInertia.solid_cylinder(radius=0.2, **lengths)
    tube = SpatialInertia.hollow_cylinder(inner_radius=0.2, outer_radius=0.3, **lengths)
    almost(core + tube, SpatialInertia.solid_cylinder(radius=0.3, **lengths))


@pytest.mark.parametrize("seed", range(5))
def test_joining_adds_the_mass_properties_about_the_origin(seed: int) -> None:
    one, other = some_body(seed), some_body(seed + 50)
    both = (one + other).about_origin()
    a, b = one.about_origin(), other.about_origin()
    assert both.mass == pytest.approx(a.mass + b.mass)
    assert both.mass * both.com == pytest.approx(a.mass * a.com + b.mass * b.com, rel=1e-13)
    assert both.inertia == pytest.approx(a.inertia + b.inertia, rel=1e-13)
    almost(one + other, other + one)


def test_a_body_without_mass_adds_nothing() -> None:
    nothing = SpatialInertia(0.0, com=(5.0, 6.0, 7.0))
    assert some_body() + nothing == nothing + some_body() == some_body()
    assert nothing + nothing == nothing
    assert sum([some_body(), some_body()], SpatialInertia.point_mass(0.0)).mass > 0.0


def test_only_inertias_are_added() -> None:
    with pytest.raises(TypeError):
        some_body() + 1.0  # type: ignore[operator]


def test_same_shape_of_another_mass_has_inertia_in_proportion() -> None:
    body = some_body()
    heavier = body.with_mass(3.0 * body.mass)
    assert np.array_equal(heavier.com, body.com)
    assert heavier.inertia == pytest.approx(3.0 * body.inertia, rel=1e-15)
    assert not body.with_mass(0.0).inertia.any()


def test_principal_moments_survive_turning() -> None:
    box = SpatialInertia.solid_box(12.0, size=(1.0, 2.0, 3.0))
    moments, R = box.rotated(fm.rotation_from_rpy([0.3, 0.5, -0.7])).principal()
    assert moments == pytest.approx([5.0, 10.0, 13.0])
    assert np.linalg.det(R) == pytest.approx(1.0)
    turned = box.rotated(fm.rotation_from_rpy([0.3, 0.5, -0.7]))
    assert R @ np.diag(moments) @ R.T == pytest.approx(turned.inertia)


@pytest.mark.parametrize("seed", range(3))
def test_symbols_give_the_bits_of_floats(seed: int) -> None:
    body = some_body(seed)
    arguments = [np.float64(body.mass), body.com, body.unit_inertia_six]
    found = scalars.evaluate(traced(mass_properties, arguments), values_of(arguments))
    assert np.array_equal(found, flat(mass_properties(*arguments)))


# What no body can have ----------------------------------------------------------------------------

positive = st.floats(0.01, 100.0)
extents = st.floats(0.001, 10.0)
clouds = st.lists(st.tuples(positive, vectors), min_size=1, max_size=6)


@given(clouds, quaternions, vectors)
def test_every_cloud_of_points_can_be_a_body(cloud: Any, q: Any, p: Any) -> None:
    body = sum(
        (SpatialInertia.point_mass(m).shifted(place) for m, place in cloud),
        SpatialInertia.point_mass(0.0),
    )
    masses, places = np.array([m for m, _ in cloud]), np.array([place for _, place in cloud])
    com = masses @ places / masses.sum()
    scale = masses.sum() * max(1.0, float(np.max(places**2)))
    assert body.com == pytest.approx(com, abs=1e-12)
    assert body.inertia == pytest.approx(summed(places - com, masses), abs=1e-12 * scale)
    body.moved((fm.rotation_from_quaternion(q), p))  # is checked anew, and accepted


@given(st.tuples(extents, extents, extents), positive, quaternions)
def test_three_moments_that_violate_the_triangle_are_refused_in_any_pose(
    squares: Any, excess: float, q: Any
) -> None:
    x, y, z = squares
    R = fm.rotation_from_quaternion(q)
    possible = R @ np.diag([y + z, z + x, x + y]) @ R.T
    SpatialInertia(1.0, inertia=possible)
    with pytest.raises(ValueRefusedError, match="the greatest exceeds the sum of the others"):
        SpatialInertia(1.0, inertia=R @ np.diag([x + y, x, y + excess + 2.0 * x]) @ R.T)


@given(st.tuples(*[components] * 6).map(np.array))
def test_validity_is_that_of_the_second_moments_of_mass(six: Any) -> None:
    xx, yy, zz, xy, xz, yz = six
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # A mass distribution with the covariance S has the inertia tr(S) 1 - S.
    covariance = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    smallest = np.linalg.eigvalsh(covariance)[0]
    assume(abs(smallest) > 1e-6)
    assert (validity_problem(six) is None) == (smallest > 0.0)


@for_each(
    ("arguments", "message"),
    [
        ({"mass": -1.0}, r"with the mass: expected values in \[0, inf\] kg; found -1"),
        ({"mass": np.inf}, "with the mass: expected finite numbers; found inf"),
        ({"mass": "heavy"}, "with the mass: expected a real number; found 'heavy'"),
        ({"com": (0, 0)}, "with the center of mass: expected a vector of size 3"),
        ({"com": (0, np.nan, 0)}, "with the center of mass: expected finite numbers"),
        ({"inertia": 1.0}, r"expected an inertia of shape \(3, 3\), \(3,\) or \(6,\)"),
        ({"inertia": (np.nan, 1, 1)}, "with the inertia: expected finite numbers"),
        ({"inertia": [[1, 0, 0], [0.5, 1, 0], [0, 0, 1]]}, "expected a symmetric inertia"),
        ({"inertia": (-1, 1, 1)}, r"principal moments \[-1, 1, 1\], of which the smallest is neg"),
        ({"inertia": (1, 1, 3)}, r"principal moments \[1, 1, 3\], of which the greatest exceeds"),
        ({"inertia": (1, 1, 1, 2, 0, 0)}, r"principal moments \[-1, 1, 3\], of which the smallest"),
        ({"mass": 0.0, "inertia": (1, 1, 1)}, "no inertia where there is no mass"),
        ({"mass": 1e-300, "inertia": (1e10, 1e10, 1e10)}, "which is not finite"),
    ],
)
def test_what_is_not_physical_is_refused_with_its_reason(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueRefusedError, match=message):
        SpatialInertia(**({"mass": 1.0} | arguments))


def test_parameter_check_tells_numbers_that_are_not_finite() -> None:
    assert validity_problem(np.full(6, np.nan)) == (
        "[nan, nan, nan, nan, nan, nan], which is not finite"
    )


@for_each("name", SOLIDS | SHAPES_WITHOUT_VOLUME)
@for_each("bad", [0.0, -0.1, np.inf])
def test_lengths_are_positive_and_finite(name: str, bad: float) -> None:
    make, lengths, _ = (SOLIDS | SHAPES_WITHOUT_VOLUME)[name]
    for key, value in lengths.items():
        wrong = bad if np.ndim(value) == 0 else (*np.ravel(value)[1:], bad)
        with pytest.raises(ValueRefusedError, match=f"with {key}: expected"):
            make(1.0, **(lengths | {key: wrong}))


def test_bore_is_not_wider_than_its_tube() -> None:
    with pytest.raises(ValueRefusedError, match=r"at most the outer one; found 0\.3 m and 0\.2 m"):
        SpatialInertia.hollow_cylinder(1.0, inner_radius=0.3, outer_radius=0.2, length=1.0)


@for_each(
    ("given", "found"), [({}, "neither of them"), ({"mass": 1.0, "density": 2.0}, "both of them")]
)
def test_a_solid_has_a_mass_or_a_density(given: Any, found: str) -> None:
    with pytest.raises(DeclarationError, match=f"a solid sphere: expected either.*{found}"):
        SpatialInertia.solid_sphere(radius=1.0, **given)


@for_each("density", [-1.0, np.nan])
def test_density_is_not_negative(density: float) -> None:
    with pytest.raises(ValueRefusedError, match="a solid box with the density: expected"):
        SpatialInertia.solid_box(size=(1.0, 1.0, 1.0), density=density)


def test_other_axes_are_reached_by_turning() -> None:
    with pytest.raises(DeclarationError, match=r"one of the axes 'x', 'y', 'z'; found 'w'"):
        SpatialInertia.thin_rod(1.0, length=1.0, axis="w")  # type: ignore[arg-type]


def test_matrix_that_is_no_rotation_turns_nothing() -> None:
    with pytest.raises(DeclarationError, match="Cannot move SpatialInertia"):
        some_body().rotated(2.0 * np.eye(3))


# Solids of closed surfaces -----------------------------------------------------------------------


def box_surface(size: Any, center: Any) -> tuple[Any, Any]:
    """Return twelve triangles around a box, with corners counter-clockwise seen from outside."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [(a, b, c) for side in sides for a, b, c in (side[:3], (side[0], *side[2:]))]
    return corners * size + center, np.array(triangles)


def test_a_closed_surface_has_the_inertia_of_what_it_encloses(tmp_path: Path) -> None:
    size, center = np.array([0.3, 0.2, 0.05]), np.array([1.0, -2.0, 0.5])
    surface = box_surface(size, center)
    found = SpatialInertia.solid_mesh(source=surface, density=2700.0)
    box = SpatialInertia.solid_box(size=size, density=2700.0).shifted((1.0, -2.0, 0.5))
    assert found.mass == pytest.approx(box.mass, rel=1e-12)
    np.testing.assert_allclose(found.com, center, rtol=1e-12)
    np.testing.assert_allclose(found.inertia, box.inertia, rtol=1e-10, atol=1e-12)
    assert SpatialInertia.solid_mesh(3.0, source=surface).mass == 3.0
    # In millimeters and mirrored, as a file.
    write_stl(tmp_path / "box.stl", Mesh(1e3 * surface[0], surface[1]))
    source = tmp_path / "box.stl"
    scaled = SpatialInertia.solid_mesh(source=source, scale=(1e-3, -1e-3, 1e-3), density=2700.0)
    np.testing.assert_allclose(scaled.com, center * [1.0, -1.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(scaled.inertia, found.inertia, rtol=1e-5, atol=1e-7)


def test_surfaces_that_enclose_nothing_are_refused() -> None:
    corners, triangles = box_surface(1.0, 0.0)
    turned = triangles.copy()
    turned[3] = turned[3, ::-1]
    for broken, text in (
        (triangles[:-1], "3 of 33 sides"),
        (turned, "6 of 36 sides"),
        (np.vstack([triangles, triangles[:1]]), "of 39 sides"),
        (triangles[:, ::-1], "a volume of -1 m"),
    ):
        with pytest.raises(DeclarationError, match=f"a solid of a mesh: .*{text}"):
            SpatialInertia.solid_mesh(source=(corners, broken), density=1.0)
    copied = (
        np.vstack([corners, corners]),
        np.vstack([triangles, np.roll(triangles + 8, 1, axis=1)]),
    )
    with pytest.raises(DeclarationError, match="12 triangles that lie where others do"):
        SpatialInertia.solid_mesh(source=copied, density=1.0)  # its mass would be counted twice


@pytest.mark.full
def test_random_solids_have_the_inertia_that_trimesh_finds() -> None:
    trimesh = pytest.importorskip("trimesh")
    rng = np.random.default_rng(4)
    for _ in range(10):
        ball = trimesh.creation.icosphere(subdivisions=2)
        scale = rng.uniform(0.5, 2.0, 3) * (1.0 + 0.2 * rng.uniform(size=(len(ball.vertices), 1)))
        ball.vertices = ball.vertices * scale + rng.normal(size=3)
        found = SpatialInertia.solid_mesh(source=(ball.vertices, ball.faces), density=500.0)
        assert found.mass == pytest.approx(500.0 * ball.volume, rel=1e-12)
        np.testing.assert_allclose(found.com, ball.center_mass, atol=1e-12)
        np.testing.assert_allclose(found.inertia, 500.0 * ball.moment_inertia, rtol=1e-9)
