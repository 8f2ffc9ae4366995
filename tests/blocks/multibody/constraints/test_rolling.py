"""Wheels, balls and skates: closed forms of what rolls without slip, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from examples.mechanisms.bicycle import build, eigenvalues
from flexure.blocks.math import x_rotation
from flexure.constraints import KnifeEdge, RollingDisk, RollingSphere, VelocityConstraint
from flexure.errors import DeclarationError, EvaluationError, FlexureError

GRAVITY = 9.81
TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11}


# Balls and disks ---------------------------------------------------------------------------------


def disk(mass: float, radius: float, *, crown_radius: float = 0.0) -> fx.Plant:
    """Build a thin disk with the axis y that rolls on the ground."""
    builder = fx.PlantBuilder("coin")
    inertia = fx.SpatialInertia.solid_cylinder(mass, radius=radius, length=1e-9, axis="y")
    coin = builder.add_body("coin", inertia)
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, coin))
    builder.add_constraint(
        RollingDisk(
            "rim",
            builder.world,
            coin,
            radius=radius,
            axis=(0, 1, 0),
            crown_radius=crown_radius,
        )
    )
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.parametrize(("is_ball", "k"), [(True, 0.4), (False, 1.0)])
def test_what_rolls_down_an_incline_is_as_slow_as_its_inertia_makes_it(
    is_ball: bool, k: float
) -> None:
    """The closed form: g sin(slope) / (1 + k), with the inertia k m r²."""
    slope, radius, mass = 0.3, 0.1, 2.0
    normal = np.array([np.sin(slope), 0.0, np.cos(slope)])
    builder = fx.PlantBuilder("incline")
    if is_ball:
        inertia = fx.SpatialInertia.solid_sphere(mass, radius=radius)
    else:
        inertia = fx.SpatialInertia(mass, (0, 0, 0), mass * radius**2 * np.array([0.5, 1.0, 0.5]))
    body = builder.add_body("body", inertia)
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, body))
    rolling: RollingSphere | RollingDisk
    if is_ball:
        rolling = RollingSphere("rolling", builder.world, body, radius, normal=normal)
    else:
        rolling = RollingDisk("rolling", builder.world, body, radius, axis=(0, 1, 0), normal=normal)
    builder.add_constraint(rolling)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    assembly = plant.assemble(context)
    assert (assembly.mobility, assembly.position_mobility) == (3, 5)
    expected = GRAVITY * np.sin(slope) / (1.0 + k)
    downhill = np.array([np.cos(slope), 0.0, -np.sin(slope)])
    assert body.spatial_acceleration(context)[3:] == pytest.approx(expected * downhill, abs=1e-9)
    forces = plant.output_port("rolling.multipliers").eval(context)
    assert forces[0] == pytest.approx(mass * GRAVITY * np.cos(slope), rel=1e-9)
    assert np.linalg.norm(forces[1:]) == pytest.approx(mass * k * expected, rel=1e-9)
    start = free.translation.get(context)
    result = fx.simulate(plant, 1.0, context=context, **TIGHT)
    gone = result["body.position"][-1] - start
    assert gone == pytest.approx(0.5 * expected * downhill, abs=1e-7)
    assert np.ptp(result["ledger.balance"]) < 1e-9
    assert np.max(np.abs(result["rolling.error"])) < 1e-9


@pytest.mark.parametrize("crown", [0.0, 0.05])
def test_a_disk_rolls_in_circles_at_the_rate_that_its_lean_demands(crown: float) -> None:
    """The balance of moments about the center, which goes around at the rate Ω at a distance ρ.

    The contact is h below the center and b beside it. With moments of inertia C about the axis, and
    A across, a lean φ, and the angular velocity Ω z + σ Ω e, in which the spin σ follows from the
    contact at rest::

        Ω² [C (σ - sin φ) cos φ + A sin φ cos φ + m ρ h] = m g b

    With a sharp rim it is Ω² [(C/r + m r) ρ + A sin φ] = m g r tan φ.
    """
    mass, radius, lean, rho = 1.5, 0.2, 0.4, 0.9
    C, A = 0.5 * mass * radius**2, 0.25 * mass * radius**2
    arm = radius - crown
    h, b = arm * np.cos(lean) + crown, arm * np.sin(lean)
    spin = (rho + b) / (arm + crown * np.cos(lean))
    along = C * (spin - np.sin(lean)) + A * np.sin(lean)
    moment = along * np.cos(lean) + mass * rho * h
    rate = np.sqrt(mass * GRAVITY * b / moment)
    plant = disk(mass, radius, crown_radius=crown)
    free, context = plant.joint("free"), plant.create_default_context()
    # The center is at -ρ y, and leans towards the origin, along +y.
    R = x_rotation(-lean)
    free.pose.set(context, (R, (0.0, -rho, h)))
    axis = R @ [0.0, 1.0, 0.0]
    w = np.array([0.0, 0.0, rate]) + rate * spin * axis
    free.spatial_velocity.set(context, np.array([*w, rate * rho, 0.0, 0.0]))
    turn = 2.0 * np.pi / rate
    result = fx.simulate(plant, turn, context=context, **TIGHT)
    positions = result["coin.position"]
    assert np.hypot(*positions[:, :2].T) == pytest.approx(rho, abs=1e-6)
    assert positions[:, 2] == pytest.approx(h, abs=1e-7)
    assert positions[-1] == pytest.approx([0.0, -rho, h], abs=1e-5)
    forces = result["rim.multipliers"]
    assert forces[:, 0] == pytest.approx(mass * GRAVITY, rel=1e-6)
    assert np.abs(forces[:, 2]) == pytest.approx(mass * rate**2 * rho, rel=1e-5)
    assert np.max(np.abs(result["rim.error"])) < 1e-8
    assert np.ptp(result["ledger.balance"]) < 1e-7


def test_a_ball_on_a_turntable_goes_in_circles_of_two_sevenths_of_its_rate() -> None:
    builder = fx.PlantBuilder("turntable")
    rate, radius = 3.0, 0.05
    table = builder.add_body("table", fx.SpatialInertia.thin_plate(1.0, size=(1.0, 1.0)))
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(0.2, radius=radius))
    spindle = builder.add_joint(fx.RevoluteJoint("spindle", builder.world, table, axis=(0, 0, 1)))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, ball))
    builder.add_constraint(RollingSphere("rolling", table, ball, radius))
    drive = VelocityConstraint("drive", [spindle], lambda q, v, t: v[0] - rate)
    builder.add_constraint(drive)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    free.translation.set(context, [0.3, 0.0, radius])
    free.translational_velocity.set(context, [0.1, 0.2, 0.0])
    plant.assemble(context)
    velocity = ball.spatial_velocity(context)[3:5]
    result = fx.simulate(plant, 2.0, context=context, **TIGHT)
    angle = 2.0 / 7.0 * rate * 2.0
    turned = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]] @ velocity
    assert result["ball.spatial_velocity"][-1, 3:5] == pytest.approx(turned, abs=1e-8)
    assert np.ptp(result["mechanical_energy"]) > 1e-4
    assert np.ptp(result["ledger.balance"]) < 1e-9  # the drive does work, and the ledger knows


# The bicycle -------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_bicycle_has_the_poles_of_its_linear_equations_at_any_speed() -> None:
    """The other route: M q̈ + v C₁ q̇ + (g K₀ + v² K₂) q = 0, with the published matrices."""
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
    C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
    bicycle, _ = build()
    for speed in (0.0, 8.0):
        stiffness = -np.linalg.solve(M, GRAVITY * K0 + speed**2 * K2)
        damping = -speed * np.linalg.solve(M, C1)
        A = np.block([[np.zeros((2, 2)), np.eye(2)], [stiffness, damping]])
        found = eigenvalues(bicycle, speed)
        assert np.sort_complex(found) == pytest.approx(
            np.sort_complex(np.linalg.eigvals(A).astype(complex)), abs=1e-6
        )


# Skates ------------------------------------------------------------------------------------------


def sleigh(kind: str) -> tuple[fx.Plant, fx.Context]:
    """Return Chaplygin's sleigh: a blade at the origin, the center of mass ahead of it."""
    builder = fx.PlantBuilder("sleigh")
    inertia = fx.SpatialInertia(MASS, (AHEAD, 0.0, 0.0), (0.1, 0.1, INERTIA))
    body = builder.add_body("body", inertia)
    glide = builder.add_joint(fx.PlanarJoint("glide", builder.world, body))
    if kind == "function":
        builder.add_constraint(
            VelocityConstraint(
                "blade", [glide], lambda q, v, t: v[1] * np.cos(q[2]) - v[0] * np.sin(q[2])
            )
        )
    else:
        builder.add_constraint(KnifeEdge("blade", builder.world, body, sideways=(0, 1, 0)))
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_velocities(context, [0.3, 0.0, 2.0])
    return plant, context


MASS, AHEAD, INERTIA = 2.0, 0.25, 0.15


@pytest.mark.parametrize("kind", ["knife edge", "function"])
def test_a_sleigh_turns_its_spin_into_speed(kind: str) -> None:
    """The closed form: v = V tanh(a V t/J + c) with J = I/m + a² and V² = v² + J ω²."""
    plant, context = sleigh(kind)
    J = INERTIA / MASS + AHEAD**2
    V = np.sqrt(0.3**2 + J * 2.0**2)
    result = fx.simulate(plant, 3.0, context=context, **TIGHT)
    expected = V * np.tanh(AHEAD * V * result.time / J + np.arctanh(0.3 / V))
    angle = result["glide.q"][:, 2]
    vx, vy, _ = result["glide.v"].T
    assert vx * np.cos(angle) + vy * np.sin(angle) == pytest.approx(expected, abs=1e-8)
    assert np.max(np.abs(result["blade.error"])) < 1e-9
    assert np.ptp(result["mechanical_energy"]) < 1e-9
    assert plant.assemble(context).mobility == 2
    force = plant.output_port("blade.multipliers").eval(context)  # m (v ω + a ω̇)
    turn = -AHEAD / J * 0.3 * 2.0
    assert force == pytest.approx([MASS * (0.3 * 2.0 + AHEAD * turn)], rel=1e-9)


def test_a_skate_can_go_anywhere_by_detours_and_any_place_is_a_place_of_rest() -> None:
    plant, context = sleigh("knife edge")
    plant.set_positions(context, [0.0, 0.3, 0.5])  # sideways: positions are free
    plant.set_velocities(context, np.zeros(3))
    plant.assemble(context)
    assert plant.get_positions(context) == pytest.approx([0.0, 0.3, 0.5])
    rest = fx.equilibrium(plant, context)
    assert plant.get_positions(rest.context) == pytest.approx([0.0, 0.3, 0.5])
    assert [mode.kind for mode in fx.modes(plant, rest.context)].count("rigid") == 2


def test_a_pendulum_on_a_skate_swings_as_on_a_rail() -> None:
    """The other route: a slide along the blade in its place."""

    def swinging(on_blade: bool) -> Any:
        builder = fx.PlantBuilder("skater")
        body = builder.add_body("body", fx.SpatialInertia.solid_box(1.0, size=(0.3, 0.1, 0.1)))
        bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -0.5))
        if on_blade:
            builder.add_joint(fx.PlanarJoint("glide", builder.world, body))
            blade = KnifeEdge("blade", builder.world, body, sideways=(0, 1, 0))
            builder.add_constraint(blade)
        else:
            builder.add_joint(fx.PrismaticJoint("glide", builder.world, body, axis=(1, 0, 0)))
        builder.add_joint(fx.RevoluteJoint("swing", body, bob, axis=(0, 1, 0)))
        found = fx.modes(builder.build())
        return [mode.frequency for mode in found if mode.kind == "oscillation"]

    assert swinging(True) == pytest.approx(swinging(False), rel=1e-9)


# Refusals ----------------------------------------------------------------------------------------


def test_modes_of_what_rolls_are_refused_with_the_way_out() -> None:
    plant, context = sleigh("knife edge")
    with pytest.raises(EvaluationError, match=r"not zero.*linearize"):
        fx.modes(plant, context)


def test_a_start_with_slip_is_refused_and_fits_after_assembly() -> None:
    plant, context = sleigh("knife edge")
    plant.set_velocities(context, [0.3, 1.0, 2.0])
    with pytest.raises(EvaluationError, match=r"'blade' off by a velocity of 1\b"):
        fx.simulate(plant, 0.1, context=context)
    plant.assemble(context)
    fx.simulate(plant, 0.1, context=context)


def test_a_slip_within_tolerance_decays_where_nothing_is_projected() -> None:
    plant, context = sleigh("knife edge")
    plant.set_velocities(context, [0.3, 1e-4, 2.0])
    context.set("tree.constraint_tolerance", np.inf)
    result = fx.simulate(plant, 1.0, context=context)
    assert abs(result["blade.error"][0]) > 5e-5
    assert abs(result["blade.error"][-1]) < 1e-6


def test_a_disk_that_lies_flat_is_named() -> None:
    plant = disk(1.0, 0.1)
    context = plant.create_default_context()
    plant.joint("free").pose.set(context, (x_rotation(0.5 * np.pi), (0.0, 0.0, 0.0)))
    with pytest.raises(EvaluationError, match=r"'coin' by constraint 'rim'.*flat"):
        fx.simulate(plant, 0.1, context=context)


def wheel(**options: Any) -> Any:
    return lambda a: RollingDisk(
        "w", a.parent_body, a.child_body, **{"radius": 0.1, "axis": (0, 1, 0), **options}
    )


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (wheel(radius=0.0), r"radius.*0"),
        (wheel(radius=np.nan), "nan"),
        (wheel(axis=(0, 0, 0)), "axis"),
        (wheel(normal=(0, 0)), "normal"),
        (wheel(crown_radius=-0.1), "crown_radius"),
        (lambda a: KnifeEdge("k", a.parent_body, a.child_body, (0, 0, 0)), "an axis"),
        (lambda a: VelocityConstraint("k", [a], lambda q, v, t: v[0] ** 2), "linear"),
        (lambda a: VelocityConstraint("k", [a], lambda q, v, t: np.abs(v[0])), "linear"),
        (lambda a: VelocityConstraint("k", [a], lambda q, v, t: q[0]), "Holonomic"),
        (lambda a: VelocityConstraint("k", [a], lambda q, v, t: float(v[0])), "trace"),
        (lambda a: VelocityConstraint("k", [], lambda q, v, t: v[0]), "at least one"),
    ],
)
def test_constraints_between_velocities_that_mean_nothing_are_refused(
    make: Any, found: str
) -> None:
    axis = fx.RevoluteJoint("axis", fx.Body("base"), fx.Body("arm"), axis=(0, 1, 0))
    with pytest.raises(FlexureError, match=found):
        make(axis)


def test_a_constraint_that_drives_is_no_equilibrium() -> None:
    builder = fx.PlantBuilder("belt")
    cart = builder.add_body("cart", fx.SpatialInertia.point_mass(1.0))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, cart, axis=(1, 0, 0)))
    belt = VelocityConstraint("belt", [rail], lambda q, v, t: v[0] - 0.5)
    builder.add_constraint(belt)
    plant = builder.build()
    assert belt.does_work
    with pytest.raises(EvaluationError):
        fx.equilibrium(plant)


def test_a_constraint_on_welded_bodies_is_refused() -> None:
    builder = fx.PlantBuilder("welded")
    box = fx.SpatialInertia.solid_box(1.0, size=(0.1, 0.1, 0.1))
    a, b = builder.add_body("a", box), builder.add_body("b", box)
    builder.add_joint(fx.WeldJoint("seam", a, b))
    builder.add_constraint(KnifeEdge("blade", a, b, sideways=(0, 1, 0)))
    with pytest.raises(DeclarationError, match="welded together"):
        builder.build()
