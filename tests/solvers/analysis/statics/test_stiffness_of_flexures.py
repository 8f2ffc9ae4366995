"""Flexures have the stiffness, the motions, the critical loads and the frequencies of textbooks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.transform import Rotation

import flexure as fx

#: Motions in a plane are compared with the theory of plane beams.
pytestmark = pytest.mark.filterwarnings("ignore:.*holds in a plane:UserWarning")

FloatArray = npt.NDArray[np.float64]
STEEL = fx.Material(210e9, poissons_ratio=0.3, density=7850.0)
LENGTH, WIDTH, THICKNESS = 0.1, 0.05, 0.0005
EI = STEEL.youngs_modulus * WIDTH * THICKNESS**3 / 12.0
EA = STEEL.youngs_modulus * WIDTH * THICKNESS
CUBE = fx.SpatialInertia.solid_box(0.5, size=(0.02, 0.1, 0.05))


def along(direction: int) -> FloatArray:
    """A force along x, y or z, or a moment about one: a unit vector of six components."""
    unit: FloatArray = np.eye(6)[direction]
    return unit


def test_the_tip_of_a_leaf_has_the_compliance_of_a_cantilever() -> None:
    builder = fx.PlantBuilder("cantilever", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", CUBE)
    foot = builder.add_frame("foot", builder.world, (-LENGTH, 0.0, 0.0))
    size: dict[str, Any] = {"length": LENGTH, "width": WIDTH, "thickness": THICKNESS}
    builder.add_force_element(fx.LeafSpring("leaf", foot, tip, material=STEEL, shear=False, **size))
    section = fx.sections.RectangleSection(width=WIDTH, thickness=THICKNESS)
    E, G = STEEL.youngs_modulus, STEEL.youngs_modulus / 2.6
    stiff, twist = E * WIDTH**3 * THICKNESS / 12.0, G * section.torsion_constant
    expected = np.diag([LENGTH / twist, LENGTH / stiff, LENGTH / EI, LENGTH / EA, 0.0, 0.0])
    expected[4, 4], expected[5, 5] = LENGTH**3 / (3.0 * EI), LENGTH**3 / (3.0 * stiff)
    expected[2, 4] = expected[4, 2] = LENGTH**2 / (2.0 * EI)
    expected[1, 5] = expected[5, 1] = -(LENGTH**2) / (2.0 * stiff)
    found = fx.stiffness(builder.build(), tip)
    np.testing.assert_allclose(found.compliance, expected, rtol=1e-9, atol=1e-15)
    center = found.center_of_compliance
    np.testing.assert_allclose(center.point[0], -LENGTH / 2.0, rtol=1e-9)
    assert center.coupling < 1e-9


@cache
def guide() -> fx.Plant:
    """A table on two leaves of 100 x 50 x 0.5 mm, 60 mm apart, which moves along y."""
    builder = fx.PlantBuilder("guide", gravity=(0.0, 0.0, 0.0))
    table = builder.add_body("table", CUBE)
    section = fx.sections.RectangleSection(width=WIDTH, thickness=THICKNESS)
    for name, y in (("low", -0.03), ("high", 0.03)):
        foot = builder.add_frame(f"{name}_foot", builder.world, (-LENGTH, y, 0.0))
        head = builder.add_frame(f"{name}_head", table, (0.0, y, 0.0))
        options: dict[str, Any] = {"section": section, "material": STEEL, "length": LENGTH}
        builder.add_force_element(fx.Beam(name, foot, head, shear=False, **options))
    builder.add_external_force("push", table)
    return builder.build()


@pytest.mark.full
def test_a_parallel_guide_over_its_stroke() -> None:
    plant, y = guide(), np.array([0.0, 1e-3, 2e-3, 4e-3])
    path = fx.load_path(plant, {"table.position[y]": y})
    track = fx.track_stiffness(plant, "table", path, expressed_in=plant.world)
    alone, held = track.diagonals(held=False), track.diagonals(held=True)
    y = track.motion("y")
    np.testing.assert_allclose(track.motion("x"), -0.6 * y**2 / LENGTH, rtol=1e-3, atol=1e-12)
    np.testing.assert_allclose(alone[:, 4], 24.0 * EI / LENGTH**3, rtol=0.01)
    support = 1.0 / (LENGTH / (2.0 * EA) + y**2 * LENGTH / (1400.0 * EI))  # Awtar's leaf
    np.testing.assert_allclose(held[:, 3], support, rtol=3e-3)
    assert track.stroke() == "y"
    assert np.max(np.abs(track.motions[:, [0, 1, 5]])) < 1e-12
    tracks = fx.track_modes(plant, path)
    mass = 0.5 + LENGTH * WIDTH * THICKNESS * STEEL.density  # with half of each leaf
    lowest = np.sqrt(24.0 * EI / LENGTH**3 / mass) / (2.0 * np.pi)
    np.testing.assert_allclose(tracks.frequencies[:, 0], lowest, rtol=5e-3)
    assert tracks.frequencies[-1, 4] < 0.75 * tracks.frequencies[0, 4]  # along the leaves


def test_a_parallel_guide_under_weight_buckles_sideways() -> None:
    found = fx.buckling(guide(), {"push": -along(3)}, num_factors=1)
    assert found.factors == pytest.approx([2.0 * np.pi**2 * EI / LENGTH**2], rel=2e-3)
    assert found[0].shape["table.translation[y]"] == 1.0


@cache
def cross_pivot() -> fx.Plant:
    """Two leaves that cross at their middles, at right angles."""
    builder = fx.PlantBuilder("cross", gravity=(0.0, 0.0, 0.0))
    arm = builder.add_body("arm", CUBE)
    section = fx.sections.RectangleSection(width=0.02, thickness=THICKNESS)
    for name, side, z in (("up", 1.0, -0.015), ("down", -1.0, 0.015)):
        R = Rotation.from_rotvec([0.0, 0.0, side * np.pi / 4.0]).as_matrix()
        middle, half = np.array([0.0, 0.0, z]), R @ [LENGTH / 2.0, 0.0, 0.0]
        foot = builder.add_frame(f"{name}_foot", builder.world, (R, middle - half))
        head = builder.add_frame(f"{name}_head", arm, (R, middle + half))
        options: dict[str, Any] = {"section": section, "material": STEEL, "length": LENGTH}
        builder.add_force_element(fx.Beam(name, foot, head, shear=False, **options))
    builder.add_external_force("push", arm)
    return builder.build()


def test_a_cross_pivot_turns_about_its_crossing_with_twice_the_stiffness_of_a_leaf() -> None:
    plant = cross_pivot()
    whole = 2.0 * STEEL.youngs_modulus * 0.02 * THICKNESS**3 / 12.0 / LENGTH
    found = fx.stiffness(plant, "arm")
    line = found.rotation_axis((0.0, 0.0, 1.0))
    assert line.compliance == pytest.approx(1.0 / whole, rel=1e-12)
    np.testing.assert_allclose(line.point, 0.0, atol=1e-12)


def test_the_pole_of_a_cross_pivot_is_where_its_motion_says() -> None:
    """The second route are differences of equilibria under pure moments."""
    plant = cross_pivot()
    moments = 0.04 * np.array([0.99, 1.0, 1.01])[:, np.newaxis] * along(2)
    track = fx.track_stiffness(plant, "arm", {"push": moments}, expressed_in=plant.world)
    moved = track.motions[2] - track.motions[0]
    line = track.stiffnesses[1].rotation_axis((0.0, 0.0, 1.0))
    pole = np.array([-moved[4], moved[3]]) / moved[2]
    assert np.linalg.norm(pole) > 1e-5
    np.testing.assert_allclose(line.point[:2], pole, rtol=1e-3, atol=1e-9)


def slender(count: int, end: str, **constants: float) -> fx.Plant:
    """A beam of the length 1 along x, of some elements, with EI = 1 about z."""
    sizes = {"area": 1e6, "second_moment_y": 1.0, "second_moment_z": 1.0, "torsion_constant": 1.0}
    unused = ("extent_y", "extent_z", "torsion_modulus", "shear_factor_y", "shear_factor_z")
    section = fx.sections.GeneralSection(**(sizes | constants), **dict.fromkeys(unused, 1.0))
    material = fx.Material(1.0, shear_modulus=1.0, density=1.0)
    builder = fx.PlantBuilder("beam", gravity=(0.0, 0.0, 0.0))
    last = builder.world
    for k in range(count):
        body = builder.add_body(f"node{k}", fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1)))
        at = (k + 1.0) / count
        if k < count - 1 or end == "free in the plane":
            plane = builder.add_joint(fx.PlanarJoint(f"at{k}", builder.world, body))
            plane.default_positions = (at, 0.0, 0.0)
        elif end == "free":
            free = builder.add_joint(fx.QuaternionFloatingJoint(f"at{k}", builder.world, body))
            free.default_positions = (1.0, 0.0, 0.0, 0.0, at, 0.0, 0.0)
        else:
            carrier = builder.add_body("carrier", fx.SpatialInertia.point_mass(1.0))
            first = body if end == "clamped" else carrier
            rail = builder.add_joint(fx.PrismaticJoint("x", builder.world, first, (1, 0, 0)))
            rail.default_translation = at
            builder.add_joint(
                fx.WeldJoint("rest", body, carrier)
                if end == "clamped"
                else fx.PrismaticJoint("y", carrier, body, (0, 1, 0))
            )
        options: dict[str, Any] = {"material": material, "length": 1.0 / count, "shear": False}
        builder.add_force_element(fx.Beam(f"beam{k}", last, body, section=section, **options))
        last = body
    builder.add_external_force("push", last)
    return builder.build()


def test_tension_stiffens_a_guided_leaf_as_the_exact_beam_column_says() -> None:
    plant = slender(2, "guided")
    context = plant.create_default_context()
    plant.input_port("push").fix(context, 5.0 * along(3))
    found = fx.stiffness(plant, "node1", context=context)
    assert 1.0 / found.compliance[4, 4] == pytest.approx(17.966158, rel=5e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    ("count", "end", "expected"),
    [
        (2, "guided", -(np.pi**2)),
        (4, "clamped", -4.0 * np.pi**2),
        (2, "free in the plane", -(np.pi**2) / 4.0),
    ],
)
def test_columns_buckle_under_eulers_loads(count: int, end: str, expected: float) -> None:
    found = fx.buckling(slender(count, end), {"push": along(3)}, num_factors=1)
    assert found.factors == pytest.approx([expected], rel=5e-4)
    assert found[0].kind == "bifurcation"


def test_a_leaf_that_is_bent_the_stiff_way_buckles_laterally() -> None:
    """Of a narrow beam at 4.0126 √(EI GJ)/L², and later as its bending in the plane is finite."""
    builder = slender(1, "free", second_moment_y=1e3)
    found = fx.buckling(builder, {"push": along(5)}, num_factors=2)
    np.testing.assert_allclose(np.sort(found.factors), [-4.542035, 4.542035], rtol=1e-6)
    assert found[0].factor < found[0].linear_factor or found[0].factor < 0.0


def test_rounding_in_stiff_leaves_does_not_count_as_other_equations() -> None:
    """Forces of tilted leaves cancel at rest, but for what stiffness makes of the last bits."""
    plant = cross_pivot()
    context = plant.create_default_context()
    plant.joint("arm").pose.set(context, (np.eye(3), np.array([3e-17, -2e-17, 1e-17])))
    assert fx.stiffness(plant, "arm", context=context).how == "exact derivatives"
    assert fx.modes(plant, context).how == "exact derivatives"
