"""Contact: distances, forces by hand and by own integration, steps that meet thin bodies."""

from __future__ import annotations

import re
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.multibody.bodies.bodies import Body
from tests.support.mechanics.force_elements import (
    BodyMotion,
    carried,
    context_of,
    forces,
    number,
    random_motion,
    world,
)
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each

FloatArray = NDArray[np.float64]
PROFILE = np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (1.0, 0.4), (0.0, 1.0), (0.0, 0.0)])
SHAPES: dict[str, Any] = {
    "ball": fx.BodyShape.sphere(radius=0.4),
    "point": fx.BodyShape.point(),
    "pill": fx.BodyShape.capsule(radius=0.3, length=0.8, axis="x").moved((0.1, 0.0, 0.2)),
    "rod": fx.BodyShape.rod(length=0.6),
    "box": fx.BodyShape.box(size=(0.5, 0.7, 0.9)),
    "ground": "half_space",
    "profile": PROFILE,
}


def at(p: Any, R: Any = None, V: Any = None) -> BodyMotion:
    """Return a motion at a position."""
    turn = np.eye(3) if R is None else R
    return BodyMotion(
        fm.RigidTransform(turn, np.array(p, float)),
        np.zeros(6) if V is None else np.array(V, float),
    )


def make(a: Any, b: Any, **options: Any) -> fx.Contact:
    """Make a contact between two bodies."""
    return fx.Contact("contact", Body("a"), a, Body("b"), b, **{"stiffness": 100.0, **options})


# Distances ---------------------------------------------------------------------------------------


def test_distances_are_those_of_the_exchanged_pair_wherever_both_are() -> None:
    rng = np.random.default_rng(0)
    for a, A in SHAPES.items():
        for b, B in SHAPES.items():
            if a == b == "ground":
                continue
            first, second = make(A, B, damping=0.1), make(B, A, damping=0.1)
            for _ in range(3):
                motions, frame = (random_motion(rng), random_motion(rng)), random_motion(rng)
                contexts = [
                    context_of(first, *motions),
                    context_of(second, *motions[::-1]),
                    context_of(first, *(carried(each, *frame) for each in motions)),
                ]
                found = [
                    number(contact.gap, context)
                    for contact, context in zip((first, second, first), contexts, strict=True)
                ]
                np.testing.assert_allclose(found[1:], found[0], rtol=0.0, atol=1e-13)
                one = forces(first, contexts[0])
                np.testing.assert_allclose(forces(second, contexts[1])[::-1], one, atol=1e-10)


def test_the_distance_from_a_profile_is_that_of_its_nearest_point() -> None:
    rng, samples = np.random.default_rng(1), np.linspace(0.0, 1.0, 4001)[:, None]
    lines = pairwise(PROFILE)
    boundary = np.concatenate([a + samples * (b - a) for a, b in lines])
    contact = make(SHAPES["point"], PROFILE)
    for _ in range(60):
        x, y, z = rng.uniform((-0.5, -0.5, -1.0), (2.5, 1.5, 1.0))
        nearest = np.min(np.linalg.norm(boundary - [x, y], axis=1))
        roof = 1.0 - 0.6 * x if x < 1.0 else 0.4 + 0.6 * (x - 1.0)
        inside = 0.0 < x < 2.0 and 0.0 < y < roof
        gap = number(contact.gap, context_of(contact, at((x, y, z)), at((0, 0, 0))))
        assert gap == pytest.approx(-nearest if inside else nearest, abs=2e-3)


def test_a_capsule_touches_vertices_and_edges_between_its_ends() -> None:
    pill = fx.BodyShape.capsule(radius=0.1, length=4.0, axis="x")
    roof = make(pill, [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)])
    assert number(roof.gap, context_of(roof, at((0.3, 1.25, 0.5)), at((0, 0, 0)))) == (
        pytest.approx(0.15, abs=1e-14)
    )
    edge = make(pill, SHAPES["box"])
    R = fm.rotation_about([0.0, 0.0, 1.0], np.pi / 4)
    found = context_of(
        edge, at((0.1, 0.0, 0.6), R @ fm.rotation_about([1.0, 0, 0], 0.3)), at((0, 0, 0))
    )
    assert number(edge.gap, found) == pytest.approx(0.05, abs=1e-14)


def test_degenerate_placements() -> None:
    """Zero radii and gaps have values; no direction, no force."""
    point = make(SHAPES["point"], "half_space")
    for z, load in ((0.0, 0.0), (-0.1, 10.0), (1e-300, 0.0)):
        context = context_of(point, at((3.0, 2.0, z)), at((0, 0, 0)))
        assert (number(point.gap, context), number(point.load, context)) == pytest.approx((z, load))
    corner = make(SHAPES["point"], SHAPES["box"])
    on_corner = context_of(corner, at((0.25, 0.35, 0.45)), at((0, 0, 0)))
    assert number(corner.gap, on_corner) == 0.0
    parallel = make(SHAPES["pill"], SHAPES["pill"])
    above = context_of(parallel, at((0.0, 0.0, 0.5)), at((0, 0, 0)))
    np.testing.assert_allclose(forces(parallel, above)[0][3:], [0.0, 0.0, 10.0], atol=1e-12)
    rods = make(SHAPES["rod"], SHAPES["rod"])
    for pair in (parallel, rods, make(SHAPES["ball"], SHAPES["ball"])):
        context = context_of(pair, at((0, 0, 0)), at((0, 0, 0)))
        with pytest.raises(fx.errors.EvaluationError, match="axes do not meet"):
            pair.load.eval(context)


# Forces ------------------------------------------------------------------------------------------


def test_forces_by_hand() -> None:
    """Hunt-Crossley and friction of a ball that sinks, slides and spins on the ground."""
    options: dict[str, Any] = {
        "stiffness": 5e3,
        "damping": 0.2,
        "friction": 0.5,
        "transition_velocity": 0.3,
    }
    contact = fx.Contact(
        "c", Body("a"), SHAPES["ball"], world(), "half_space", exponent=1.5, **options
    )
    depth, sink, slide, spin = 0.02, 0.7, 1.1, 2.0
    motion = at((0, 0, 0.4 - depth), V=[0.0, spin, 0.0, slide, 0.0, -sink])
    context = context_of(contact, motion, motion)
    N = 5e3 * depth**1.5 * (1.0 + 0.2 * sink)
    arm = 0.4 - 0.5 * depth
    v = slide - spin * arm
    F = -0.5 * N * v / np.hypot(v, 0.3)
    expected = np.array([0.0, -arm * F, 0.0, F, 0.0, N])
    np.testing.assert_allclose(forces(contact, context)[0], expected, rtol=1e-12, atol=1e-12)
    lost = -(N - 5e3 * depth**1.5) * sink + F * v
    assert number(contact.non_conservative_power, context) == pytest.approx(lost)
    assert number(contact.stored_energy, context) == pytest.approx(5e3 * depth**2.5 / 2.5)
    leaving = context_of(contact, motion._replace(V_WB=np.array([0, 0, 0, 0, 0, 9.0])), motion)
    assert number(contact.load, leaving) == 0.0


def test_hertz_by_hand() -> None:
    """The deflection of two steel balls under 1 kN by the formula of handbooks."""
    steel = fx.Material(206e9, poissons_ratio=0.3, density=7850.0)
    glass = fx.Material(70e9, poissons_ratio=0.22, density=2500.0)
    balls = [fx.BodyShape.sphere(radius=r) for r in (0.01, 0.03)]
    contact = fx.Contact.hertz(
        "c", Body("a"), balls[0], Body("b"), balls[1], materials=(steel, glass)
    )
    soft = (1.0 - 0.3**2) / 206e9 + (1.0 - 0.22**2) / 70e9
    curved = 1.0 / 0.01 + 1.0 / 0.03
    depth = (9.0 / 16.0 * (1e3 * soft) ** 2 * curved) ** (1.0 / 3.0)
    context = context_of(contact, at((0, 0, 0.04 - depth)), at((0, 0, 0)))
    assert number(contact.load, context) == pytest.approx(1e3, rel=1e-9)
    flat = fx.Contact.hertz(
        "c", Body("a"), balls[0], Body("b"), "half_space", materials=(steel, glass)
    )
    assert flat.stiffness.default == pytest.approx(4.0 / 3.0 / soft * np.sqrt(0.01))


@for_each("exponent", [1.0, 1.5])
def test_a_ball_leaves_with_the_restitution_that_was_asked_for(exponent: float) -> None:
    for restitution, speed in ((0.05, 2.0), (0.5, 2.0), (0.9, 0.3), (1.0 - 1e-7, 1.0)):
        d = fx.Contact.damping_for(restitution, speed)

        def motion(_: float, y: FloatArray, d: float = d) -> list[float]:
            force = 1e4 * max(-y[0], 0.0) ** exponent * max(0.0, 1.0 - d * y[1])
            return [y[1], force]

        end: Any = lambda t, y: y[0] if t > 1e-6 else -1.0  # noqa: E731
        end.terminal, end.direction = True, 1.0
        run = solve_ivp(motion, (0, 10), [0.0, -speed], events=end, rtol=1e-10, atol=1e-13)
        assert run.y[1, -1] == pytest.approx(restitution * speed, rel=1e-6)


# Runs --------------------------------------------------------------------------------------------


def bouncing(damping: float, **options: Any) -> tuple[fx.Plant, fx.Context]:
    """A ball of 2 kg, 0.5 m above the ground."""
    builder = fx.PlantBuilder("bench", gravity=(0.0, 0.0, -10.0))
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(2.0, radius=0.4))
    slide = builder.add_joint(
        fx.PrismaticJoint("slide", builder.world, ball, (0, 0, 1), damping=0.0)
    )
    contact = {"stiffness": 1e4, "damping": damping, "exponent": 1.5, **options}
    builder.add_force_element(
        fx.Contact("contact", builder.world, "half_space", ball, SHAPES["ball"], **contact)
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    slide.translation.set(context, 0.9)
    return plant, context


@needs_llvmlite
def test_a_ball_bounces_as_by_own_integration_in_each_way_of_running() -> None:
    plant, context = bouncing(0.3)
    settings: Any = {"rtol": 1e-9, "atol": 1e-11, "method": "DOP853"}

    def motion(_: float, y: FloatArray) -> list[float]:
        n = 1e4 * max(0.4 - y[0], 0.0) ** 1.5
        return [y[1], -10.0 + n * max(0.0, 1.0 - 0.3 * y[1]) / 2.0]

    own = solve_ivp(
        motion, (0, 1), [0.9, 0.0], rtol=1e-11, atol=1e-13, max_step=1e-3, method="DOP853"
    )
    for compiled in ("native", False):
        result = fx.simulate(plant, 1.0, context=context, compiled=compiled, **settings)
        assert result["slide.translation"][-1] == pytest.approx(own.y[0, -1], abs=1e-6)
        assert (result.statistics.native_steps > 0) == (compiled == "native")
        assert np.ptp(result["ledger.balance"]) < 1e-7
    sweep = fx.sweep(
        plant,
        {"contact.damping": [0.3, 0.0]},
        1.0,
        context=context,
        signals=["slide.translation"],
        **settings,
    )
    assert sweep["slide.translation"][0, -1] == pytest.approx(own.y[0, -1], abs=1e-6)


def test_a_ball_at_rest_stays_at_its_depth_and_starts_that_touch_do_not_move() -> None:
    plant, context = bouncing(0.5)
    slide = plant.joints[0]
    depth = (20.0 / 1e4) ** (1.0 / 1.5)
    slide.translation.set(context, 0.4 - depth)  # type: ignore[attr-defined]
    result = fx.simulate(plant, 1.0, context=context)
    assert np.ptp(result["slide.translation"]) < 1e-9
    rest = fx.equilibrium(plant, context=context)
    assert rest.context.get("contact.load") == pytest.approx(20.0)


def test_fixed_steps_longer_than_an_impact_are_warned_of() -> None:
    """An impact takes as long as by own integration; a tenth of that is short enough."""
    for exponent, touching in ((1.0, np.pi * np.sqrt(2.0 / 1e4)), (1.5, None)):
        plant, context = bouncing(0.0, exponent=exponent)
        speed = np.sqrt(2.0 * 10.0 * 0.5)
        end: Any = lambda t, y: y[0] if t > 1e-6 else -1.0  # noqa: E731
        end.terminal, end.direction = True, 1.0

        def motion(_: float, y: FloatArray, e: float = exponent) -> list[float]:
            return [y[1], 5e3 * max(-y[0], 0.0) ** e]

        run = solve_ivp(
            motion,
            (0.0, 1.0),
            [0.0, -speed],
            events=end,
            rtol=1e-9,
            atol=1e-12,
        )
        impact = run.t[-1] if touching is None else touching
        assert run.t[-1] == pytest.approx(impact, rel=1e-6)
        with pytest.warns(UserWarning, match=rf"for 'contact', .* lasts about {impact:.2g} s"):
            fx.simulate(plant, 0.01, context=context, method="rk4", step=0.101 * impact)
        fx.simulate(plant, 0.01, context=context, method="rk4", step=0.099 * impact)


def test_no_step_jumps_over_a_thin_body() -> None:
    """Small balls that fly at each other in free space exchange their velocities."""
    builder = fx.PlantBuilder("space", gravity=(0, 0, 0))
    ball = fx.BodyShape.sphere(radius=1e-3)
    bodies = [
        builder.add_body(name, fx.SpatialInertia.solid_sphere(1e-3, radius=1e-3)) for name in "ab"
    ]
    slides = [
        builder.add_joint(
            fx.PrismaticJoint(f"on_{b.name}", builder.world, b, (1, 0, 0), damping=0.0)
        )
        for b in bodies
    ]
    builder.add_force_element(fx.Contact("c", bodies[0], ball, bodies[1], ball, stiffness=1e9))
    plant = builder.build()
    for speed in (0.01, 1.0, 30.0):
        for method in ("RK45", "DOP853", "LSODA", "Rodas5P"):
            context = plant.create_default_context()
            slides[0].translation.set(context, -7.77 * speed)
            slides[0].rate.set(context, speed)
            result = fx.simulate(plant, 20.0, context=context, method=method, rtol=1e-6, atol=1e-9)
            found = result["on_a.rate"][-1], result["on_b.rate"][-1]
            np.testing.assert_allclose(found, [0.0, speed], atol=1e-3 * speed, err_msg=method)


@needs_llvmlite
def test_a_group_of_contacts_runs_natively_with_one_code_for_like_pairs() -> None:
    """A pile of balls keeps its energy; code that skips distant pairs gives the same numbers."""
    builder, ball = fx.PlantBuilder("pile", gravity=(0, 0, -10.0)), fx.BodyShape.sphere(radius=0.1)
    inertia = fx.SpatialInertia.solid_sphere(1.0, radius=0.1)
    bodies = [builder.add_body(f"b{k}", inertia) for k in range(12)]
    joints = [
        builder.add_joint(fx.PrismaticJoint(f"j{k}", builder.world, b, (0, 0, 1), damping=0.0))
        for k, b in enumerate(bodies)
    ]
    shapes: list[Any] = [*((b, ball) for b in bodies), (builder.world, "half_space")]
    shapes.append((builder.world, fx.BodyShape.box(size=(0.1, 0.1, 0.01)).moved((0, 0, 5.0))))
    touch = builder.add_assembly(fx.ContactGroup("touch", shapes, stiffness=2e4))
    builder.add_energy_ledger()
    plant = builder.build()
    assert len(touch.contacts) == 12 * 11 / 2 + 2 * 12
    assert touch.contacts[-1].name == "touch_12_14"
    context = plant.create_default_context()
    touch.stiffness.set(context, 1e4)
    for k, joint in enumerate(joints):
        joint.translation.set(context, 0.3 + 0.25 * k)
    settings: Any = {"rtol": 1e-8, "method": "DOP853", "compiled": "native"}
    result = fx.simulate(plant, 1.0, context=context, **settings)
    assert np.ptp(result["ledger.balance"]) < 1e-4
    assert result["b0.position"][:, 2].min() < 0.1
    assert np.all(np.diff([result[f"b{k}.position"][-1, 2] for k in range(12)]) > 0.15)
    middle = fx.simulate(plant, 0.3, context=context, **settings).context
    assert any(middle.get(f"{each.name}.gap") < 0.0 for each in touch.contacts)
    ends = [
        fx.simulate(plant, 0.3005, context=middle, method="RK45", compiled=each)
        for each in ("native", False)
    ]
    x = [each.context.get("tree.velocities") for each in ends]
    np.testing.assert_allclose(x[0], x[1], rtol=0.0, atol=1e-12)
    plan = str(fx.compiled_equations(plant).plan)
    blocks, kinds = map(int, re.findall(r"in (\d+) blocks of (\d+) kinds", plan)[0])
    assert (blocks, kinds) == (92, 5)


def test_leaves_touch_along_their_length() -> None:
    """A load that bends one leaf onto another bends both; capsules include the thickness."""
    builder = fx.PlantBuilder("leaves", gravity=(0, 0, 0))
    size: dict[str, Any] = {"width": 0.01, "length": 0.05}
    leaves = []
    for name, height in (("low", 0.0), ("high", 6e-4)):
        tip = builder.add_body(f"tip_{name}", fx.SpatialInertia.point_mass(0.01))
        clamp = builder.add_frame(f"clamp_{name}", builder.world, (0.0, height, 0.0))
        end = builder.add_frame(f"end_{name}", builder.world, (0.05, height, 0.0))
        builder.add_joint(fx.PlanarJoint(f"at_{name}", end, tip))
        steel = fx.Material.common("stainless steel 301")
        leaf = fx.LeafSpring(
            name, clamp, tip, **size, thickness=5e-4, material=steel, segments=6, planar=True
        )
        leaves.append(builder.add_force_element(leaf))
    builder.add_external_force("load", builder.body("tip_high"))
    low, high = (leaf.capsules() for leaf in leaves)
    assert [node.name for node, _ in low] == [f"low_node{k}" for k in range(1, 6)]
    builder.add_assembly(fx.ContactGroup("touch", high, low, stiffness=1e6))
    plant = builder.build()
    context = plant.create_default_context()
    assert context.get("touch_1_6.gap") == pytest.approx(1e-4)
    plant.input_port("load").fix(context, [0, 0, 0, 0, -1.0, 0])
    rest = fx.equilibrium(plant, context=context).context
    bending, at = steel.youngs_modulus * 0.01 * 5e-4**3 / 12.0, 0.05 * 11.0 / 12.0

    def sag(x: float, place: float) -> float:
        return x**2 * (3.0 * place - x) / (6.0 * bending)

    force = (sag(at, 0.05) - 1e-4) / (2.0 * sag(at, at) + 1e-6)
    loads = np.array([[rest.get(f"touch_{i}_{k}.load") for k in range(6, 11)] for i in range(1, 6)])
    assert loads[-1, -1] == loads.sum()  # they touch at the outer end of the last capsules
    assert loads.sum() == pytest.approx(force, rel=0.02)


def test_friction_stops_a_sliding_box_after_the_distance_of_coulomb() -> None:
    builder = fx.PlantBuilder("bench", gravity=(0.0, 0.0, -10.0))
    inertia = fx.SpatialInertia.solid_box(2.0, size=(0.4, 0.3, 0.1))
    box = builder.add_body("box", inertia)
    table = builder.add_frame(
        "table", builder.world, (fm.rotation_about([1.0, 0, 0], np.pi / 2), [0, 0, 0])
    )
    flat = builder.add_frame("flat", box, (fm.rotation_about([1.0, 0, 0], np.pi / 2), [0, 0, 0]))
    plane = builder.add_joint(fx.PlanarJoint("plane", table, flat))
    builder.add_force_element(
        fx.Contact(
            "contact",
            box,
            fx.BodyShape.box(size=(0.4, 0.3, 0.1)),
            builder.world,
            "half_space",
            stiffness=1e5,
            damping=1.0,
            friction=0.3,
            transition_velocity=1e-4,
        )
    )
    plant = builder.build()
    context = plant.create_default_context()
    plane.positions.set(context, [0.0, 0.05 - 20.0 / 4e5, 0.0])
    plane.velocities.set(context, [1.2, 0.0, 0.0])
    result = fx.simulate(plant, 1.0, context=context)
    expected = 1.2**2 / (2.0 * 0.3 * 10.0)
    assert result["box.position"][-1][0] == pytest.approx(expected, rel=2e-3)
    assert result["contact.load"][-1] == pytest.approx(20.0, rel=1e-3)


def test_boxes_whose_overlap_no_corner_shows_are_refused() -> None:
    """They overlap if they have a point in common, which linear programming finds."""
    rng, beam = np.random.default_rng(3), fx.BodyShape.box(size=(1.0, 0.1, 0.1))
    contact, seen = make(beam, beam), {"refused": 0, "apart": 0, "touching": 0}
    corners = np.array(list(product((-0.5, 0.5), repeat=3))) * [1.0, 0.1, 0.1]
    for k in range(60):
        axis = rng.normal(size=3)
        R = fm.rotation_about(axis / np.linalg.norm(axis), 2.0 * (k % 3))
        p = rng.uniform(-1.0, 1.0, size=3) * ([0.4, 0.2, 0.2] if k % 3 else [1.0, 0.1, 0.1])
        context = context_of(contact, at(p, R), at([0.0, 0.0, 0.0]))
        sides = np.hstack([(corners @ R.T + p).T, -corners.T])
        sums = np.repeat(np.eye(2), 8, axis=1)
        meet = linprog(np.zeros(16), A_eq=np.vstack([sides, sums]), b_eq=[0, 0, 0, 1, 1])
        try:
            gap = number(contact.gap, context)
        except fx.errors.EvaluationError:
            assert meet.status == 0
            seen["refused"] += 1
        else:
            assert (meet.status == 0) == (gap < 0.0)
            seen["touching" if gap < 0.0 else "apart"] += 1
    assert min(seen.values()) > 5, seen


@needs_llvmlite
def test_a_beam_does_not_fall_through_one_that_lies_across() -> None:
    builder = fx.PlantBuilder("cross", gravity=(0, 0, -9.81))
    beam = builder.add_body("beam", fx.SpatialInertia.solid_box(1.0, size=(1.0, 0.1, 0.1)))
    fall = builder.add_joint(fx.PrismaticJoint("fall", builder.world, beam, (0, 0, 1)))
    shapes = [fx.BodyShape.box(size=size) for size in ((1.0, 0.1, 0.1), (0.1, 1.0, 0.1))]
    builder.add_force_element(
        fx.Contact("touch", beam, shapes[0], builder.world, shapes[1], stiffness=1e5)
    )
    plant = builder.build()
    context = plant.create_default_context()
    fall.translation.set(context, 0.2)
    for compiled in ("native", False):
        with pytest.raises(fx.errors.FlexureError, match="edges that cross"):
            fx.simulate(plant, 1.0, context=context, compiled=compiled)
    sweep = fx.sweep(plant, {"touch.stiffness": [1e5, 1e6]}, 1.0, context=context, signals=[])
    assert all("edges that cross" in str(each) for each in sweep.failures.values())


# Refusals ----------------------------------------------------------------------------------------


def test_what_is_no_contact_is_refused() -> None:
    ball, two = SHAPES["ball"], SHAPES["ball"] + SHAPES["box"]
    for a, b, options, reason in (
        ("half_space", "half_space", {}, "beside a half-space"),
        (two, ball, {}, "one contact for each part"),
        ("plane", ball, {}, "half_space"),
        ([(0.0, 0.0), (0.0, 0.0)], ball, {}, "neighbors"),
        ([(0.0, np.nan), (0.0, 0.0)], ball, {}, "nan"),
        ([(0.0, 1.0)], ball, {}, "points"),
        (ball, None, {}, "BodyShape"),
        (ball, ball, {"stiffness": -1.0}, "stiffness"),
        (ball, ball, {"stiffness": np.nan}, "stiffness"),
        (ball, ball, {"exponent": 0.5}, "exponent"),
        (ball, ball, {"friction": 0.1}, "transition_velocity"),
        (ball, ball, {"friction": 0.1, "transition_velocity": 0.0}, "transition_velocity"),
    ):
        with pytest.raises(fx.errors.FlexureError, match=reason):
            make(a, b, **options)
    steel = fx.Material(206e9, poissons_ratio=0.3, density=7850.0)
    with pytest.raises(fx.errors.DeclarationError, match="a sphere"):
        fx.Contact.hertz(
            "c", Body("a"), SHAPES["pill"], Body("b"), "half_space", materials=(steel, steel)
        )
    for restitution, speed in ((0.0, 1.0), (1.1, 1.0), (0.5, 0.0), (np.nan, 1.0)):
        with pytest.raises(fx.errors.ValueRefusedError):
            fx.Contact.damping_for(restitution, speed)
