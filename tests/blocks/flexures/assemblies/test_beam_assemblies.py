"""Pivots, plane springs, hexapods and amplifiers: formulas, and integrations of their rods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import root

import flexure as fx
from flexure.errors import FlexureError
from tests.support.mechanics.rods import leg
from tests.support.tiers import thinned

E, G, WIDTH, THICKNESS, LENGTH = 193e9, 78e9, 0.01, 4e-4, 0.04
STEEL = fx.Material(E, shear_modulus=G, density=7880.0, name="steel")
EI, EA = E * WIDTH * THICKNESS**3 / 12.0, E * WIDTH * THICKNESS
SHEET: dict[str, Any] = {"width": WIDTH, "thickness": THICKNESS, "material": STEEL, "shear": False}
LEAF = SHEET | {"length": LENGTH}
BLOCK = fx.SpatialInertia.solid_box(mass=0.02, size=(0.01, 0.01, 0.01))
BRIDGE = {"length": 0.02, "angle": 0.1, "root_distance": 0.01, "side_height": 0.01, "sides": BLOCK}
LEVER: dict[str, Any] = {"input_arm": 0.008, "output_arm": 0.04, "lever": BLOCK, "length": 0.006}
HEXAPOD = {"base_radius": 0.06, "platform_radius": 0.05, "base_angle": 0.3, "platform_angle": 0.4}
RING = {"inner_radius": 0.01, "outer_radius": 0.03}
FOLDED = {"outer_distance": 0.06, "inner_distance": 0.02, "shuttle": BLOCK.shifted((LENGTH, 0, 0))}
WIRE: dict[str, Any] = {"diameter": 0.001, "material": STEEL}


def carrying(kind: Any, at: Any = (0.0, 0.0, 0.0), **options: Any) -> Any:
    """Return a builder with a body at a place on an assembly, the body and the assembly."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", BLOCK)
    joint = builder.add_joint(fx.QuaternionFloatingJoint("body", builder.world, body))
    joint.default_pose = np.eye(3), at
    assembly = builder.add_assembly(kind("made", builder.world, body, **options))
    builder.add_external_force("push", body)
    return builder, body, assembly


def at_rest(builder: Any, loads: dict[str, Any]) -> tuple[Any, Any]:
    """Return the context at rest under forces and moments in the plane: x, y, z-moment."""
    wrenches = {each: [0.0, 0.0, m, x, y, 0.0] for each, (x, y, m) in loads.items()}
    plant = builder.build()
    return plant, fx.load_path(plant, wrenches).context(-1)


def in_plane(body: Any, context: Any) -> Any:
    pose = body.pose(context)
    return np.array([pose.p[0], pose.p[1], np.arctan2(pose.R[1, 0], pose.R[0, 0])])


def rods_at_rest(rods: list[Any], loads: list[Any], free: Any = (0, 1, 2)) -> Any:
    """Return the displacements x, y and angle of rigid bodies that elastic rods hold in a plane.

    A rod is (body, body, start, end) with -1 for the ground; loads act at the origin. Each rod is
    integrated from its start with an unknown force and moment, until its end fits its body.
    """
    count, scale = len(loads), np.array([10.0, 10.0, 0.1])

    def carried(number: int, moved: Any, point: Any) -> Any:
        x, y, turn = np.zeros(3) if number < 0 else moved[number]
        c, s = np.cos(turn), np.sin(turn)
        return np.array([x + c * point[0] - s * point[1], y + s * point[0] + c * point[1], turn])

    def misses(unknown: Any) -> Any:
        moved = np.zeros((count, 3))
        moved[:, free] = 1e-3 * unknown[: count * len(free)].reshape(count, -1)
        inner = unknown[count * len(free) :].reshape(-1, 3) * scale
        left, fits = np.array(loads, dtype=float), []
        for (a, c, start, end), (fx_, fy, m) in zip(rods, inner, strict=True):
            along = np.subtract(end, start)
            first, last = carried(a, moved, start), carried(c, moved, end)
            angle = np.arctan2(along[1], along[0])
            begin = np.array([first[0], first[1], first[2] + angle, m])
            found = leg(begin, float(np.hypot(*along)), np.array([fx_, fy]), EA, EI)
            fits += [*(found[:2] - last[:2]) * 1e4, (found[2] - angle - last[2]) * 1e2]
            for body, place, sign, moment in ((a, first, 1.0, m), (c, last, -1.0, found[3])):
                if body >= 0:
                    arm = place[:2] - moved[body, :2]
                    turning = arm[0] * fy - arm[1] * fx_ + moment
                    left[body] += sign * np.array([fx_, fy, turning])
        return np.concatenate([np.ravel((left / scale)[:, free]), fits])

    found = root(misses, np.zeros(count * len(free) + 3 * len(rods)), tol=1e-10).x
    assert np.max(np.abs(misses(found))) < 1e-6
    moved = np.zeros((count, 3))
    moved[:, free] = 1e-3 * found[: count * len(free)].reshape(count, -1)
    return moved


def inclined(half: float, outer: float, inner: float, center: float = 0.0) -> Any:
    """Return starts and ends of two leaves towards a center."""
    lines = [np.array([np.cos(half), sign * np.sin(half)]) for sign in (1.0, -1.0)]
    return [([center, 0.0] - outer * u, [center, 0.0] - inner * u) for u in lines]


def test_remote_center_hinges_follow_the_textbook_and_their_rods() -> None:
    near, half, turn = 0.02, 0.6, 0.01
    ratio = 1.0 + near / LENGTH
    k = 8.0 * EI / LENGTH * (1.0 - 3.0 * ratio + 3.0 * ratio**2)
    builder, body, _ = carrying(fx.RemoteCenterHinge, distance=near, angle=2.0 * half, **LEAF)
    _, context = at_rest(builder, {"push": (0.0, 0.0, k * turn)})
    x, _, angle = in_plane(body, context)
    assert angle == pytest.approx(turn, rel=1e-3)
    square = 9.0 * ratio**2 - 9.0 * ratio + 1.0
    assert x == pytest.approx(-square * LENGTH * turn**2 / (15.0 * np.cos(half)), rel=2e-3)

    load = 0.3, 0.4, 10.0 * k * turn
    given = LEAF | {"segments": 4, "planar": True}
    builder, body, _ = carrying(fx.RemoteCenterHinge, distance=near, angle=2.0 * half, **given)
    _, context = at_rest(builder, {"push": load})
    rods = [(-1, 0, *ends) for ends in inclined(half, near + LENGTH, near)]
    expected = rods_at_rest(rods, [load])[0]
    assert np.allclose(in_plane(body, context), expected, rtol=2e-3, atol=2e-8)


def test_a_roberts_guide_goes_straight() -> None:
    b, c, stroke = 0.06, 0.02, 1e-3
    builder, body, guide = carrying(
        fx.RobertsGuide, base_distance=b, coupler_distance=c, **LEAF, segments=4, planar=True
    )
    r, ratio, half = guide.center_distance, b / (b - c), np.arcsin(0.5 * (b - c) / LENGTH)
    k = 8.0 * EI * (1.0 - 3.0 * ratio + 3.0 * ratio**2) / (LENGTH * r**2)
    load = 0.0, k * stroke, 0.0
    _, context = at_rest(builder, {"push": load})
    found = in_plane(body, context)
    assert found[1] == pytest.approx(stroke, rel=2e-3)
    assert found[2] == pytest.approx(-stroke / r, rel=5e-3)
    assert abs(found[0]) < 1e-3 * 0.5 * stroke**2 / r  # of the descent of a point that rotates
    rods = [(-1, 0, *ends) for ends in inclined(half, ratio * LENGTH, (ratio - 1) * LENGTH, r)]
    assert np.allclose(found, rods_at_rest(rods, [load])[0], rtol=1e-3, atol=2e-9)


def test_the_shifts_of_a_butterfly_pivot_cancel() -> None:
    near, half, turn = 0.02, 0.6, 0.02
    ratio = 1.0 + near / LENGTH
    k = 4.0 * EI / LENGTH * (1.0 - 3.0 * ratio + 3.0 * ratio**2)
    options = {"distance": near, "angle": 2.0 * half, "shuttle": BLOCK, **LEAF}
    builder, body, _ = carrying(fx.ButterflyPivot, **options, segments=2, planar=True)
    load = 0.0, 0.0, k * turn
    _, context = at_rest(builder, {"push": load})
    found = in_plane(body, context)
    assert found[2] == pytest.approx(turn, rel=1e-3)
    square = 9.0 * ratio**2 - 9.0 * ratio + 1.0
    single = square * LENGTH * turn**2 / (15.0 * np.cos(half))
    assert np.hypot(*found[:2]) < 0.02 * single
    rods = [(-1, 0, *ends) for ends in inclined(half, near + LENGTH, near)]
    rods += [(0, 1, *ends) for ends in inclined(half, -near - LENGTH, -near)]
    expected = rods_at_rest(rods, [np.zeros(3), load])[1]
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3 * single)


@pytest.mark.full
def test_a_compound_guide_has_twice_the_stiffness_of_a_folded_one() -> None:
    builder, body, _ = carrying(fx.CompoundGuide, root_distance=0.02, **FOLDED, **LEAF, planar=True)
    load = 0.0, 24.0 * EI / LENGTH**3 * 1e-3, 0.0
    _, context = at_rest(builder, {"push": load})
    x, y, angle = in_plane(body, context)
    assert y == pytest.approx(1e-3, rel=1e-2)
    assert abs(x) < 1e-9
    assert abs(angle) < 1e-9
    rods = []
    for sign, shuttle in ((1.0, 0), (-1.0, 1)):
        for a, c, y0, far in ((-1, shuttle, 0.03, True), (shuttle, 2, 0.01, False)):
            for side in (1.0, -1.0):
                ends = [(sign * (0.01 + d), side * y0) for d in (0.0, LENGTH)]
                rods.append((a, c, *(ends if far else ends[::-1])))
    assert y == pytest.approx(rods_at_rest(rods, [np.zeros(3)] * 2 + [load])[2][1], rel=1e-4)


def test_a_bridge_amplifies_as_the_formula_and_its_rods_do() -> None:
    L, tilt = 0.02, 0.1
    s, c = np.sin(tilt), np.cos(tilt)
    height, force = 2.0 * L * s + 0.01, 0.5
    for hinge in (None, 0.004):
        short = 0.5 * L if hinge is None else hinge
        builder, body, bridge = carrying(
            fx.BridgeAmplifier, (0.0, height, 0.0), **BRIDGE, **SHEET, hinge_length=hinge
        )
        for side in ("left", "right"):
            builder.add_external_force(side, getattr(bridge, side))
        _, context = at_rest(builder, {"left": (-force, 0.0, 0.0), "right": (force, 0.0, 0.0)})
        k_a, k_b = EA / (2.0 * short), 12.0 * EI / (L**3 - (L - 2.0 * short) ** 3)
        apart = 2.0 * (in_plane(bridge.right, context)[0] - 0.005 - L * c)
        lift = in_plane(body, context)[1] - height
        assert -lift / apart == pytest.approx((k_a - k_b) * s * c / (k_a * s**2 + k_b * c**2), 2e-3)
        assert force / apart == pytest.approx(k_a * k_b / (k_a * s**2 + k_b * c**2), rel=2e-3)
        if hinge is None:
            far, rods = 0.005 + L * c, []
            for k, sign in ((0, -1.0), (1, 1.0)):
                rods.append((-1, k, (sign * 0.005, 0.0), (sign * far, L * s)))
                rods.append((2, k, (sign * 0.005, height), (sign * far, height - L * s)))
            loads = [(-force, 0.0, 0.5 * force * height), (force, 0.0, -0.5 * force * height)]
            moved = rods_at_rest(rods, [*loads, np.zeros(3)])
            assert lift == pytest.approx(moved[2][1], rel=1e-4)
            assert apart == pytest.approx(moved[1][0] - moved[0][0], rel=1e-4)


def test_a_lever_amplifies_as_the_formula_and_its_rods_do() -> None:
    a, b, L = 0.008, 0.04, 0.006
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    pushed, moved = (builder.add_body(name, BLOCK) for name in ("pushed", "moved"))
    for body in (pushed, moved):
        builder.add_joint(fx.PrismaticJoint(body.name, builder.world, body, axis=(0, 1, 0)))
    ends = (
        builder.add_frame("B", pushed, (a, 0.0, 0.0)),
        builder.add_frame("C", moved, (b, 2.0 * L, 0.0)),
    )
    lever = fx.LeverAmplifier("lever", builder.world, ends[1], frame_b=ends[0], **LEVER, **SHEET)
    builder.add_assembly(lever)
    builder.add_external_force("push", pushed)
    force = 0.01
    _, context = at_rest(builder, {"push": (0.0, force, 0.0)})
    x, y = (in_plane(body, context)[1] for body in (pushed, moved))
    k_a, k_t = EA / L, 11.0 * EI / L
    assert y / x == pytest.approx(0.5 + (b - 0.5 * a) * a / (a**2 + 2.0 * k_t / k_a), rel=1e-3)
    assert force / x == pytest.approx(k_a * k_t / (k_a * a**2 + 2.0 * k_t), rel=1e-3)


def stiffness_of_arc(radius: float, sweep: float, stiffness: Any) -> float:
    """Return the force per deflection across the plane of an arc whose end does not rotate.

    A unit of each load at the end bends and twists each piece of a clamped rod.
    """
    angles = sweep * (np.arange(4000) + 0.5) / 4000
    step, tip = radius * sweep / 4000, radius * np.array([np.sin(sweep), 1.0 - np.cos(sweep), 0.0])
    compliance = np.zeros((6, 6))
    for angle in angles:
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        x, y, _ = tip - radius * np.array([s, 1.0 - c, 0.0])
        arm = np.array([[0.0, 0.0, y], [0.0, 0.0, -x], [-y, x, 0.0]])  # of a force at the end
        moments = np.hstack([np.eye(3), arm])
        compliance += step * moments.T @ (R / stiffness) @ R.T @ moments
    flexible = compliance[np.ix_([5, 0, 1], [5, 0, 1])]
    return float(np.linalg.inv(flexible)[0, 0])


@pytest.mark.full
def test_plane_springs_are_as_stiff_as_their_arms() -> None:
    for angle, arms in ((0.0, 3), (0.3, 4)):
        options = RING | SHEET | {"angle": angle, "arms": arms}
        builder, body, spring = carrying(fx.MembraneFlexure, **options)
        L = 0.03 * np.cos(angle) - np.sqrt(0.01**2 - (0.03 * np.sin(angle)) ** 2)
        stiffness = fx.stiffness(builder.build(), body).matrix
        assert spring.leaves[0].length.default == pytest.approx(L)
        assert stiffness[5, 5] == pytest.approx(arms * 12.0 * EI / L**3, rel=1e-6)
    J = float(fx.sections.RectangleSection(WIDTH, THICKNESS).torsion_constant)
    for sweep in (0.8, np.pi):
        builder, body, spring = carrying(fx.SpiralFlexure, **RING, **SHEET, sweep=sweep, arms=2)
        stiffness = fx.stiffness(builder.build(), body).matrix[5, 5]
        arm = stiffness_of_arc(spring.radius, sweep, np.array([G * J, EI, 1e4 * EI]))
        assert stiffness == pytest.approx(2.0 * arm, rel=1e-2)
        parts = sweep - np.sin(sweep), sweep + np.sin(sweep)
        inner = parts[0] / (2.0 * EI) + parts[1] / (2.0 * G * J)
        softness = sweep / (G * J) - 4.0 * np.sin(0.5 * sweep) ** 2 / (G * J) ** 2 / inner
        assert stiffness == pytest.approx(2.0 / (spring.radius**3 * softness), rel=1e-2)


def test_hexapods_and_bipods_are_as_stiff_as_lines_of_springs() -> None:
    h, tension = 0.05, E * np.pi / 4.0 * 0.001**2
    builder, body, hexapod = carrying(fx.Hexapod, (0.0, 0.0, h), height=h, **HEXAPOD, **WIRE)
    turn = np.pi / 3.0 - 0.35
    square = h**2 + 0.06**2 + 0.05**2 - 2.0 * 0.06 * 0.05 * np.cos(turn)
    spring = tension / square**1.5
    assert hexapod.leaves[0].length.default == pytest.approx(np.sqrt(square))
    K = fx.stiffness(builder.build(), body).matrix
    assert K[5, 5] == pytest.approx(6.0 * spring * h**2, rel=1e-3)
    assert K[[3, 4], [3, 4]] == pytest.approx(3.0 * spring * (square - h**2), rel=2e-3)
    assert K[2, 2] == pytest.approx(6.0 * spring * (0.06 * 0.05 * np.sin(turn)) ** 2, rel=1e-3)
    distances = {"base_distance": 0.03, "platform_distance": 0.005}
    builder, body, _ = carrying(fx.Bipod, (0.0, 0.0, 0.03), height=0.03, **distances, **WIRE)
    K = fx.stiffness(builder.build(), body).matrix
    spring = tension / (0.03**2 + 0.25 * 0.025**2) ** 1.5
    assert K[5, 5] == pytest.approx(2.0 * spring * 0.03**2, rel=1e-3)
    assert K[3, 3] == pytest.approx(0.5 * spring * 0.025**2, rel=6e-3)


WRONG: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
    (fx.RemoteCenterHinge, LEAF | {"distance": 0.01}, {"distance": 0.0}, "distance"),
    (fx.RemoteCenterHinge, LEAF | {"distance": 0.01}, {"angle": np.pi}, "angle"),
    (
        fx.RobertsGuide,
        LEAF | {"base_distance": 0.06, "coupler_distance": 0.02},
        {"coupler_distance": 0.07},
        "base_distance above the coupler_distance",
    ),
    (fx.ButterflyPivot, LEAF | {"distance": 0.01, "shuttle": BLOCK}, {"shuttle": 3.0}, "Inertia"),
    (fx.CompoundGuide, LEAF | FOLDED | {"root_distance": 0.02}, {"root_distance": -1.0}, "root_d"),
    (fx.MembraneFlexure, RING | SHEET, {"inner_radius": 0.04}, "below the outer_radius"),
    (fx.MembraneFlexure, RING | SHEET, {"angle": 0.5}, "arms reach the hub"),
    (fx.MembraneFlexure, RING | SHEET, {"arms": 1}, "size >= 2"),
    (fx.SpiralFlexure, RING | SHEET | {"sweep": 1.0}, {"sweep": 4.0}, "sweep"),
    (fx.Hexapod, HEXAPOD | WIRE | {"height": 0.05}, {"base_angle": 3.0}, "base_angle"),
    (
        fx.Bipod,
        WIRE | {"base_distance": 0.03, "platform_distance": 0.005, "height": 0.03},
        {"height": np.nan},
        "height",
    ),
    (fx.BridgeAmplifier, BRIDGE | SHEET, {"hinge_length": 0.01}, "hinge_length"),
    (fx.BridgeAmplifier, BRIDGE | SHEET, {"angle": 0.0}, "angle"),
    (
        fx.LeverAmplifier,
        LEVER | SHEET | {"frame_b": fx.Body("b")},
        {"output_arm": 0.008},
        "differs from the input_arm",
    ),
]


def test_impossible_dimensions_are_refused_by_name() -> None:
    for kind, given, wrong, message in WRONG:
        with pytest.raises(FlexureError, match=f"(?s)made.*{message}"):
            kind("made", fx.Body("a"), fx.Body("c"), **(given | wrong))


def test_assemblies_have_the_dimensions_of_their_leaves() -> None:
    """The second route builds the same plant with other dimensions."""
    wire = WIRE | HEXAPOD | {"height": 0.05}
    bipod = WIRE | {"base_distance": 0.03, "platform_distance": 0.005, "height": 0.03}
    roots = FOLDED | LEAF | {"root_distance": 0.02}
    cases: list[tuple[Any, Any, dict[str, Any], dict[str, float]]] = [
        (fx.RemoteCenterHinge, 0.0, LEAF | {"distance": 0.02}, {"length": 0.05, "width": 0.02}),
        (fx.ButterflyPivot, 0.0, LEAF | {"distance": 0.02, "shuttle": BLOCK}, {"length": 0.05}),
        (fx.CompoundGuide, 0.0, roots, {"length": 0.05, "thickness": 3e-4}),
        (fx.MembraneFlexure, 0.0, SHEET | RING, {"thickness": 3e-4}),
        (fx.SpiralFlexure, 0.0, SHEET | RING | {"sweep": 1.2, "segments": 2}, {"width": 0.008}),
        (fx.Hexapod, (0.0, 0.0, 0.05), wire, {"diameter": 0.002}),
        (fx.Bipod, (0.0, 0.0, 0.03), bipod, {"diameter": 0.002}),
    ]
    for kind, at, options, changes in thinned(cases, fast=3):
        place = np.zeros(3) + at
        builder, _, _ = carrying(kind, place, **options)
        plant = builder.build()
        context = plant.create_default_context()
        for name, value in changes.items():
            context.set(f"made.{name}", value)
        builder, _, _ = carrying(kind, place, **options | changes)
        built = builder.build()
        found, wanted = (
            fx.stiffness(each, "body", context=values).compliance
            for each, values in ((plant, context), (built, built.create_default_context()))
        )
        np.testing.assert_allclose(
            found, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max(), err_msg=kind.__name__
        )
