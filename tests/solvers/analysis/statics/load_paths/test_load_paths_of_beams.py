"""Frames of slender beams agree with the elastica: post-buckling, snap-through of Lee's frame."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve
from scipy.special import ellipe, ellipk

import flexure as fx
from flexure.blocks.math import rotation_about, skew
from flexure.solvers.analysis.forces_at_rest import exact_forces, static_equations
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from tests.support.mechanics.beams import UNIT, cantilever as unit_cantilever, tip_position

#: Motions in a plane are compared with the theory of plane beams.
pytestmark = pytest.mark.filterwarnings("ignore:.*holds in a plane:UserWarning")

FloatArray = npt.NDArray[np.float64]

#: E I_z = 1, so slender that it neither stretches nor shears.
SLENDER = fx.sections.GeneralSection(
    area=1e6,
    second_moment_y=1.0,
    second_moment_z=1.0,
    torsion_constant=1.0,
    extent_y=1.0,
    extent_z=1.0,
    torsion_modulus=1.0,
    shear_factor_y=1.0,
    shear_factor_z=1.0,
)
MATERIAL = fx.Material(1.0, poissons_ratio=0.0, density=1.0)


def add_beam(
    builder: fx.PlantBuilder,
    name: str,
    first: fx.Body,
    corners: FloatArray,
    last: fx.Body | None,
    section: fx.sections.Section = SLENDER,
    material: fx.Material = MATERIAL,
) -> list[fx.Body]:
    """Add beams from corner to corner of a line, with a planar body at each but the first."""
    bodies = [first]
    for k, (start, end) in enumerate(pairwise(corners)):
        along = end - start
        angle = float(np.arctan2(along[1], along[0]))
        turned = rotation_about(np.array([0.0, 0.0, 1.0]), angle)
        if k == len(corners) - 2 and last is not None:
            body = last
        else:
            body = builder.add_body(f"{name}{k}", fx.SpatialInertia.point_mass(1.0))
            joint = fx.PlanarJoint(f"{name}_joint{k}", builder.world, body)
            builder.add_joint(joint)
            joint.default_positions = np.append(end, 0.0)
        ends = [
            builder.add_frame(f"{name}{k}{side}", each, (turned, place))
            for side, each, place in (
                (
                    "a",
                    bodies[-1],
                    np.append(start, 0.0) if bodies[-1] is builder.world else np.zeros(3),
                ),
                ("c", body, np.zeros(3)),
            )
        ]
        beam = fx.Beam(
            f"{name}_beam{k}",
            *ends,
            section=section,
            material=material,
            length=float(np.hypot(*along)),
            shear=False,
        )
        builder.add_force_element(beam)
        bodies.append(body)
    return bodies[1:]


def line(start: Any, end: Any, count: int) -> FloatArray:
    return np.linspace(np.asarray(start, dtype=float), np.asarray(end, dtype=float), count + 1)


@pytest.mark.full
def test_a_cantilever_buckles_and_bends_like_the_elastica() -> None:
    builder = fx.PlantBuilder("cantilever", gravity=(0.0, 0.0, 0.0))
    nodes = add_beam(builder, "leaf", builder.world, line((0, 0), (1, 0), 5), None)
    builder.add_external_force("load", nodes[-1])
    plant = builder.build()
    path = fx.load_path(plant, {"load[3]": -5.0}, branch=1)
    (branch,) = path.branch_points
    assert branch.values["load[3]"] == pytest.approx(-(np.pi**2) / 4.0, rel=3e-5)
    turned = np.abs(path["leaf_joint4.q"][:, 2])
    tip = path["leaf4.position"]
    # The elastica by elliptic integrals: S. P. Timoshenko and J. M. Gere, Theory of Elastic
    # Stability, section 2.7.
    on = turned > 0.05
    k2 = np.sin(0.5 * turned[on]) ** 2
    K, E = ellipk(k2), ellipe(k2)
    np.testing.assert_allclose(-path["load[3]"][on], K**2, rtol=1e-3)
    np.testing.assert_allclose(tip[on, 0], 2.0 * E / K - 1.0, atol=1e-3)
    np.testing.assert_allclose(np.abs(tip[on, 1]), 2.0 * np.sqrt(k2) / K, rtol=1e-3)
    assert path.stable.all()
    assert np.rad2deg(turned[-1]) > 120.0


# Lee's frame --------------------------------------------------------------------------------------

LOADED = 0.2  # of the leg, from the corner


def pinned(builder: fx.PlantBuilder, name: str, place: tuple[float, float]) -> fx.Body:
    """Add a body that turns about a point."""
    body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
    foot = builder.add_frame(f"{name}_foot", builder.world, (*place, 0.0))
    builder.add_joint(fx.RevoluteJoint(f"{name}_pin", foot, body, axis=(0, 0, 1)))
    return body


def lees_frame(count: int) -> fx.Plant:
    """Two legs of 1 m, pinned at (0, 0) and (1, 1), with a force down near their corner."""
    builder = fx.PlantBuilder("frame", gravity=(0.0, 0.0, 0.0))
    foot, end = pinned(builder, "foot", (0.0, 0.0)), pinned(builder, "end", (1.0, 1.0))
    column = add_beam(builder, "column", foot, line((0, 0), (0, 1), count), None)
    near = line((0, 1), (LOADED, 1), max(1, round(LOADED * count)))
    loaded = add_beam(builder, "near", column[-1], near, None)
    far = line((LOADED, 1), (1, 1), round((1.0 - LOADED) * count))
    add_beam(builder, "far", loaded[-1], far, end)
    builder.add_external_force("load", loaded[-1])
    return builder.build()


def shoot(turn: float, guess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return forces on the foot and the load of the elastica that begins at an angle, and its end.

    Along the frame, θ' = M, with the moment of the force (X, Y) at the foot and, from the load on,
    of that load. The angle jumps in the corner.
    """

    def run(forces: FloatArray) -> tuple[FloatArray, FloatArray]:
        X, Y, P = forces

        def slope(_: float, state: Any, force: float, at: float) -> list[float]:
            angle, x, y = state
            return [X * y - Y * x + force * (x - at), np.cos(angle), np.sin(angle)]

        def ahead(state: FloatArray, length: float, force: float, at: float) -> FloatArray:
            way = solve_ivp(
                lambda s, y: slope(s, y, force, at), (0.0, length), state, rtol=1e-9, atol=1e-10
            )
            return np.asarray(way.y[:, -1])

        corner = ahead(np.array([0.5 * np.pi + turn, 0.0, 0.0]), 1.0, 0.0, 0.0)
        loaded = ahead(corner - [0.5 * np.pi, 0.0, 0.0], LOADED, 0.0, 0.0)
        end = ahead(loaded, 1.0 - LOADED, P, loaded[1])
        moment = slope(0.0, end, P, loaded[1])[0]
        return np.array([end[1] - 1.0, end[2] - 1.0, moment]), loaded[1:]

    def missing(forces: FloatArray) -> FloatArray:
        return run(forces)[0]

    forces = np.asarray(fsolve(missing, guess, xtol=1e-10))
    return forces, run(forces)[1]


@pytest.mark.full
def test_lees_frame_snaps_through_and_back_like_the_elastica() -> None:
    path = fx.load_path(lees_frame(4), {"load[4]": -20.0})
    limits = [point.values["load[4]"] for point in path.limit_points]
    # S.-L. Lee, F. S. Manuel and E. C. Rossow, Large deflections and stability of elastic frames,
    # Journal of the Engineering Mechanics Division ASCE 94, 1968: 18.552 E I/L².
    assert limits[0] == pytest.approx(-18.552, rel=2e-3)
    for point in path.limit_points:
        context = path.context(point.index)
        angle, load = context.get("foot_pin.angle").item(), point.values["load[4]"]
        c, s = np.cos(angle), np.sin(angle)
        X, Y = -(np.array([[c, -s], [s, c]]) @ context.get("foot_pin.reaction")[3:5])
        found, at = shoot(angle, np.array([X, Y, load]))
        assert load == pytest.approx(found[2], rel=1e-3)
        np.testing.assert_allclose(context.get("near0.position")[:2], at, atol=1e-3)
    assert path.num_unstable.max() == 1
    assert path.stable[-1]


# Williams' toggle -------------------------------------------------------------------------------

# F. W. Williams, An approach to the non-linear behaviour of the members of a rigid jointed plane
# framework with finite deflections, Quarterly Journal of Mechanics and Applied Mathematics 17,
# 1964, in inches and pounds: two inclined members, clamped at their feet, are joined rigidly.
SPAN, RISE = 12.943, 0.386
STRIP = fx.sections.RectangleSection(width=0.753, thickness=0.243)
ALUMINUM = fx.Material(10.3e6, poissons_ratio=0.3, density=1.0)


def toggle(count: int) -> fx.Plant:
    """The half of the toggle: symmetric, its top slides straight down without turning."""
    builder = fx.PlantBuilder("toggle", gravity=(0.0, 0.0, 0.0))
    top = builder.add_body("top", fx.SpatialInertia.point_mass(1.0))
    middle = builder.add_frame("middle", builder.world, (SPAN, RISE, 0.0))
    builder.add_joint(fx.PrismaticJoint("slide", middle, top, axis=(0, 1, 0)))
    corners = line((0.0, 0.0), (SPAN, RISE), count)
    add_beam(builder, "bar", builder.world, corners, top, STRIP, ALUMINUM)
    return builder.build()


def toggle_force(height: float) -> float:
    """Return the force on half of the toggle at a height of its top, by the extensible elastica."""
    EI = ALUMINUM.youngs_modulus * float(STRIP.second_moment_z)
    EA = ALUMINUM.youngs_modulus * float(STRIP.area)
    slope = float(np.arctan2(RISE, SPAN))

    def end(found: FloatArray) -> FloatArray:
        X, Y, moment = found * [1e3, 10.0, 100.0]

        def along(_: float, state: Any) -> list[float]:
            angle, x, y = state
            stretch = 1.0 + (X * np.cos(angle) + Y * np.sin(angle)) / EA
            bent = (moment + X * y - Y * x) / EI
            return [bent, stretch * np.cos(angle), stretch * np.sin(angle)]

        way = solve_ivp(
            along, (0.0, np.hypot(SPAN, RISE)), [slope, 0.0, 0.0], rtol=1e-11, atol=1e-12
        )
        return np.asarray(way.y[:, -1] - [slope, SPAN, height])

    found = fsolve(end, np.array([-0.1 * (RISE - height), 0.0, 0.0]), xtol=1e-8)
    return float(10.0 * found[1])


@pytest.mark.full
def test_williams_toggle_follows_the_extensible_elastica() -> None:
    heights = RISE - np.array([0.0, 0.1, 0.25, 0.4, 0.5, 0.6])
    path = fx.load_path(toggle(4), {"top.position[y]": heights})
    force = path.required["top.position[y]"][path.stations]
    assert abs(force[0]) < 1e-9
    expected = [toggle_force(height) for height in heights[1:]]
    np.testing.assert_allclose(force[1:], expected, rtol=5e-4)
    pushed = fx.load_path(toggle(2), {"generalized_force[0]": -25.0})
    assert len(pushed.limit_points) == 2
    for point in pushed.limit_points:
        height = pushed["top.position[y]"][point.index]
        load = point.values["generalized_force[0]"]
        assert load == pytest.approx(toggle_force(height), rel=2e-3)
    assert pushed.num_unstable.max() == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("segments", "load", "axial"), [(1, 2.0, 1e5), (1, 10.0, 1e5), (2, 20.0, 1.2e7)]
)
def test_all_statics_begin_where_the_load_of_a_context_bends_a_beam_to(
    segments: int, load: float, axial: float
) -> None:
    plant = unit_cantilever(segments, axial=axial)
    context = plant.create_default_context()  # straight, but loaded
    plant.find("load").fix(context, [0.0, 0.0, 0.0, 0.0, load, 0.0])
    is_far = load / segments > 5.0  # an end turns by more than 0.9 rad against the other one
    expecting = partial(pytest.warns, match="of 0.3 rad. Divide it into more segments")
    statics: dict[str, Callable[[], fx.Context]] = {
        "path": lambda: fx.load_path(
            plant, {"load[4]": [load, 1.01 * load]}, context=context
        ).context(0),
        "equilibrium": lambda: fx.equilibrium(plant, context).context,
        "stiffness": lambda: fx.stiffness(plant, "tip", context=context).context,
        "buckling": lambda: (
            fx.buckling(plant, {"load[3]": -1.0}, context=context, num_factors=1).context
        ),
    }
    begun = {}
    for name, calculate in statics.items():
        with expecting(UserWarning) if is_far else nullcontext():
            begun[name] = calculate()
    with expecting(UserWarning) if is_far else nullcontext():
        followed = fx.load_path(plant, {"load[4]": load}).context(-1)
    for found in begun.values():
        there = tip_position(plant, found)
        np.testing.assert_allclose(there, tip_position(plant, followed), atol=1e-8)


def test_all_motions_that_nothing_resists_are_named() -> None:
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    for name in ("held", "loose"):
        builder.add_body(name, fx.SpatialInertia(1.0))
    held, loose = builder.bodies[1:]
    joint = builder.add_joint(fx.PlanarJoint("held", builder.world, held))
    joint.default_pose = (np.eye(3), [1.0, 0.0, 0.0])
    builder.add_joint(fx.PlanarJoint("loose", builder.world, loose))
    beam = fx.Beam("beam", builder.world, held, section=SLENDER, material=UNIT, length=1.0)
    builder.add_force_element(beam)
    builder.add_external_force("load", held)
    with pytest.raises(fx.errors.EvaluationError) as caught:
        fx.load_path(builder.build(), {"load[4]": 1.0})
    for name in ("loose.q[x]", "loose.q[y]", "loose.q[qz]"):
        assert name in str(caught.value)


def test_a_round_column_buckles_in_both_planes_at_once_and_both_are_told() -> None:
    plant = unit_cantilever(2, planar=False)
    path = fx.load_path(plant, {"load[3]": -2.6})
    first, second = path.special
    assert first.kind == second.kind == "branch"
    for point in (first, second):
        assert point.values["load[3]"] == pytest.approx(-(np.pi**2) / 4.0, rel=1e-3)
    shapes = [{name for name, part in p.shape.items() if abs(part) > 1e-6} for p in path.special]
    shapes.sort(key=lambda names: "end.rotation[z]" in names)
    assert "end.rotation[y]" in shapes[0]
    assert "end.rotation[z]" in shapes[1]
    assert not shapes[0] & shapes[1]


@pytest.mark.parametrize("calls", [1, 4])
def test_an_interruption_leaves_the_context_as_it_was(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = unit_cantilever(2)
    context = plant.create_default_context()
    load = plant.find("load")
    load.fix(context, np.zeros(6))
    before = context.clone()
    asks: dict[str, Any] = {
        "path": lambda: fx.load_path(plant, {"load[4]": 1.0}, context=context),
        "buckling": lambda: fx.buckling(plant, {"load[3]": -1.0}, context=context),
        "stiffness": lambda: fx.stiffness(plant, "tip", context=context),
    }
    point, left = StaticEquations.point, [0]

    def interrupted(*given: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return point(*given)

    for name, ask in asks.items():
        left[0] = 1 if name == "stiffness" else calls
        with monkeypatch.context() as patch:
            patch.setattr(StaticEquations, "point", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ask()
        np.testing.assert_array_equal(context.continuous_state, before.continuous_state)
        np.testing.assert_array_equal(load.eval(context), load.eval(before))
    assert asks["path"]()["end.q"][-1] == pytest.approx([0.94, 0.30, 0.46], abs=0.01)


def test_what_is_too_large_for_exact_derivatives_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(static_equations, "_MOST_BY_DIFFERENCES", 5)

    def too_long(*_: Any) -> Any:
        raise fx.errors.TraceError("Cannot trace more than 1000 operations", found="more")

    monkeypatch.setattr(exact_forces, "trace", too_long)
    with pytest.raises(fx.errors.EvaluationError, match="at most 5 unknowns by differences"):
        fx.load_path(unit_cantilever(2), {"load[4]": 1.0})


@pytest.mark.full
@pytest.mark.parametrize("planar", [True, False])
def test_points_count_the_negative_stiffnesses_that_their_matrices_have(planar: bool) -> None:
    path = fx.load_path(
        unit_cantilever(3, planar=planar), {"load": [0.0, 0.0, 0.0, -30.0, 0.0, 0.0]}
    )
    special = {point.index for point in path.special}
    assert special
    for index in set(range(len(path))) - special:
        K = StaticEquations(path.context(index), attempt="Cannot").point().stiffness
        negative = np.sum(np.linalg.eigvalsh(0.5 * (K + K.T)) < 0.0)
        assert path.num_unstable[index] == negative


def test_a_dead_moment_winds_a_wire_up_without_any_special_point() -> None:
    """The moment is the same everywhere, so that one integration from the clamp has the shape."""
    L, d, E = 0.3, 1e-3, 193e9
    builder = fx.PlantBuilder("wire", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.point_mass(0.01))
    joint = builder.add_joint(fx.QuaternionFloatingJoint("tip", builder.world, tip))
    joint.default_pose = np.eye(3), (L, 0.0, 0.0)
    steel = fx.Material(E, poissons_ratio=0.3, density=7880.0)
    options: dict[str, Any] = {"length": L, "diameter": d, "segments": 4, "shear": False}
    builder.add_force_element(fx.WireFlexure("wire", builder.world, tip, material=steel, **options))
    builder.add_external_force("push", tip)
    bend = E * np.pi * d**4 / 64.0
    moment = np.array([2.0, 0.8, 2.0]) * bend / L
    path = fx.load_path(builder.build(), {"push": [*moment, 0.0, 0.0, 0.0]})
    assert not path.special
    for k in (
        20,
        -1,
    ):  # an undamped round wire flutters, as dead moments feed it
        poles = fx.linearize(path.system, context=path.context(k)).poles
        growing = (poles.real > 1e-6 * np.abs(poles)) & (poles.imag > 0.0)
        assert path.num_unstable[k] == np.sum(growing) == 1
    assert np.all(np.linalg.norm(path["tip.position"], axis=1) <= L)

    def slopes(s: float, y: FloatArray) -> FloatArray:
        R = y[:9].reshape(3, 3)
        curvature = R.T @ moment / np.array([bend / 1.3, bend, bend])
        return np.concatenate([(R @ skew(curvature)).ravel(), R[:, 0]])

    start = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    end = solve_ivp(slopes, (0.0, L), start, rtol=1e-10, atol=1e-12).y[9:, -1]
    assert np.linalg.norm(path["tip.position"][-1] - end) < 0.01 * L
