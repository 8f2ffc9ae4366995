"""Racks, belts, screws, differentials and planetary gears: rigid, compliant, and with losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.constraints import Coupling, GearPair, PrescribedMotion
from flexure.errors import DeclarationError, EvaluationError, FlexureError
from tests.support.tiers import for_each

INERTIAS, MASS = (0.02, 0.03, 0.05), 0.5
Make = Callable[[Any, Any, Any, Any], Any]


def machine(*makes: Make) -> fx.Plant:
    """Build three shafts and a slide in space, without gravity, and couple them."""
    builder = fx.PlantBuilder("machine", gravity=(0.0, 0.0, 0.0))
    joints: list[Any] = []
    for k, inertia in enumerate(INERTIAS):
        wheel = builder.add_body(f"w{k}", fx.SpatialInertia(1.0, (0, 0, 0), np.eye(3) * inertia))
        joints.append(fx.RevoluteJoint("abc"[k], builder.world, wheel, axis=(0, 1, 0)))
    weight = builder.add_body("weight", fx.SpatialInertia.point_mass(MASS))
    joints.append(fx.PrismaticJoint("slide", builder.world, weight, axis=(0, 0, 1)))
    for joint in joints:
        builder.add_joint(joint)
        builder.add_actuator(f"on_{joint.name}", joint)
    for make in makes:
        made = make(*joints)
        is_force = isinstance(made, fx.multibody.ForceElement)
        (builder.add_force_element if is_force else builder.add_constraint)(made)
    builder.add_energy_ledger()
    return builder.build()


COUPLINGS: dict[str, tuple[Make, list[float], str, Any, list[float]]] = {
    "rack": (
        lambda a, b, c, s: Coupling.rack_and_pinion("g", a, s, radius=0.1),
        [-0.1, 0.0, 0.0, 1.0],
        "radius",
        0.2,
        [-0.2, 0.0, 0.0, 1.0],
    ),
    "belt": (
        lambda a, b, c, s: Coupling.belt("g", a, b, radii=(0.1, 0.3)),
        [0.1, -0.3, 0.0, 0.0],
        "radii",
        [0.2, 0.3],
        [0.2, -0.3, 0.0, 0.0],
    ),
    "crossed belt": (
        lambda a, b, c, s: Coupling.belt("g", a, b, radii=(0.1, 0.3), crossed=True),
        [0.1, 0.3, 0.0, 0.0],
        "radii",
        [0.2, 0.3],
        [0.2, 0.3, 0.0, 0.0],
    ),
    "screw": (
        lambda a, b, c, s: Coupling.screw("g", a, s, lead=2e-3),
        [-1e-3 / np.pi, 0.0, 0.0, 1.0],
        "lead",
        4e-3,
        [-2e-3 / np.pi, 0.0, 0.0, 1.0],
    ),
    "differential": (
        lambda a, b, c, s: Coupling.differential("g", a, b, c, ratio=4.0),
        [1.0, -2.0, -2.0, 0.0],
        "ratio",
        3.0,
        [1.0, -1.5, -1.5, 0.0],
    ),
    "planetary gear": (
        lambda a, b, c, s: Coupling.planetary("g", a, b, c, teeth=(20, 60)),
        [20.0, -80.0, 60.0, 0.0],
        "teeth",
        [30.0, 60.0],
        [30.0, -90.0, 60.0, 0.0],
    ),
    "mimic": (
        lambda a, b, c, s: Coupling.mimic("g", a, b, multiplier=-0.5),
        [1.0, 0.5, 0.0, 0.0],
        "multiplier",
        2.0,
        [1.0, -2.0, 0.0, 0.0],
    ),
}


@pytest.mark.parametrize("kind", COUPLINGS)
def test_couplings_move_as_lagrange_says_with_their_constants_as_parameters(kind: str) -> None:
    """The other route: [M, -cᵀ; c, 0] for a torque on the first coordinate that is coupled."""
    make, factors, parameter, value, others = COUPLINGS[kind]
    plant = machine(make)
    context = plant.create_default_context()
    push = np.array([1.0, -0.3, 0.2, 0.5])
    for joint, effort in zip(plant.joints, push, strict=True):
        plant.input_port(f"on_{joint.name}").fix(context, effort)
    for c in (np.array(factors), np.array(others)):
        M = np.diag([*INERTIAS, MASS])
        system = np.block([[M, -c[:, np.newaxis]], [c[np.newaxis], np.zeros((1, 1))]])
        solution = np.linalg.solve(system, [*push, 0.0])
        assert plant.calc_vdot(context) == pytest.approx(solution[:4], rel=1e-8, abs=1e-9)
        multiplier = plant.output_port("g.multipliers").eval(context)
        assert multiplier == pytest.approx(solution[4:], rel=1e-8)
        context.set(f"tree.g_{parameter}", value)


def test_a_coordinate_of_a_joint_with_several_can_be_coupled() -> None:
    builder = fx.PlantBuilder("plotter", gravity=(0.0, 0.0, 0.0))
    wheel = builder.add_body("wheel", fx.SpatialInertia(1.0, (0, 0, 0), np.eye(3) * 0.02))
    plate = builder.add_body("plate", fx.SpatialInertia.point_mass(2.0))
    shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, wheel, axis=(0, 1, 0)))
    glide = builder.add_joint(fx.PlanarJoint("glide", builder.world, plate))
    rack = Coupling.rack_and_pinion("rack", shaft, (glide, "y"), radius=0.05, offset=0.3)
    builder.add_constraint(rack)
    plant = builder.build()
    context = plant.create_default_context()
    shaft.angle.set(context, 2.0)
    shaft.rate.set(context, 10.0)
    plant.assemble(context, fixed="shaft")
    assert plant.get_positions(context) == pytest.approx([2.0, 0.0, 0.4, 0.0])
    assert plant.get_velocities(context) == pytest.approx([10.0, 0.0, 0.5, 0.0])


# What gives way ----------------------------------------------------------------------------------


def teeth(efficiency: float | None, ratio: float = -4.0) -> fx.Plant:
    return machine(
        lambda a, b, c, s: fx.CompliantCoupling(
            "teeth",
            GearPair("gears", a, b, ratio),
            stiffness=2e3,
            damping=1.0,
            efficiency=efficiency,
            power_threshold=0.1,
        )
    )


def test_stiff_teeth_turn_as_rigid_gears_do_and_keep_the_books() -> None:
    plant = teeth(None)
    context = plant.create_default_context()
    plant.input_port("on_a").fix(context, 1.0)
    result = fx.simulate(plant, 1.0, context=context, rtol=1e-8, atol=1e-10)
    rate = 1.0 / (INERTIAS[0] + INERTIAS[1] / 16.0)
    assert result["a.rate"][-1] == pytest.approx(rate, rel=1e-4)
    assert result["b.rate"][-1] == pytest.approx(-rate / 4.0, rel=1e-4)
    effort = -INERTIAS[1] * rate / 16.0
    assert result["teeth.effort"][-1] == pytest.approx(effort, rel=1e-4)
    assert result["teeth.deflection"][-1] == pytest.approx(-effort / 2e3, rel=1e-4)
    assert np.ptp(result["ledger.balance"]) < 1e-7


def test_teeth_swing_at_the_frequency_of_both_inertias() -> None:
    mode = fx.modes(teeth(None))[-1]
    reduced = 1.0 / (1.0 / INERTIAS[0] + 16.0 / INERTIAS[1])
    assert mode.frequency == pytest.approx(np.sqrt(2e3 / reduced) / (2.0 * np.pi), rel=1e-9)
    assert mode.strain_energy == {"teeth": 1.0}


@pytest.mark.parametrize("torque", [1.0, -1.0])
def test_of_the_power_that_drives_a_gear_the_efficiency_comes_out(torque: float) -> None:
    """Forth from a to b, or back; the ledger has the rest."""
    plant = teeth(0.9)
    for drive, load in (("a", "b"), ("b", "a")):
        context = plant.create_default_context()
        plant.input_port(f"on_{drive}").fix(context, torque)
        result = fx.simulate(plant, 1.0, context=context, rtol=1e-8, atol=1e-10)
        inertia = dict(zip("abc", INERTIAS, strict=True))
        rates = {name: result[f"{name}.rate"] for name in "ab"}
        taken = inertia[load] * np.gradient(rates[load], result.time) * rates[load]
        loss = -result["teeth.non_conservative_power"]
        late = slice(len(loss) // 2, -3)
        given = taken + loss
        assert taken[late] == pytest.approx(0.9 * given[late], rel=0.02)
        assert np.all(loss >= 0.0)
        assert np.ptp(result["ledger.balance"]) < 1e-6


# Refusals ----------------------------------------------------------------------------------------


@for_each(
    ("make", "found"),
    [
        (lambda a, b, c, s: Coupling.screw("g", a, s, lead=0.0), "lead that is not zero"),
        (lambda a, b, c, s: Coupling.belt("g", a, b, radii=(0.1,)), "2 numbers"),
        (lambda a, b, c, s: GearPair("g", a, b, -1e300), "'g'.*ratio within"),
        (
            lambda a, b, c, s: Coupling.belt("g", a, b, radii=(0.1, -0.1)),
            "are greater than 0.*-0.1",
        ),
        (lambda a, b, c, s: Coupling.planetary("g", a, b, b, (1, 2)), "different coordinates"),
        (lambda a, b, c, s: Coupling.rack_and_pinion("g", a, s, np.nan), "radius.*finite"),
        (lambda a, b, c, s: Coupling.rack_and_pinion("g", s, a, 0.1), "order is .pinion, rack"),
        (lambda a, b, c, s: Coupling.screw("g", a, b, 0.1), "one that slides.*'a'.*'b'"),
        (lambda a, b, c, s: Coupling("g", {a: 1.0, (a, "q"): 2.0}), "different coordinates"),
        (lambda a, b, c, s: Coupling("g", {(a, "z"): 1.0}), "there are 'q'"),
        (lambda a, b, c, s: Coupling("g", {}), "at least one"),
        (lambda a, b, c, s: fx.CompliantCoupling("g", a, stiffness=1.0), "a Coupling"),
        (
            lambda a, b, c, s: fx.CompliantCoupling(
                "g", GearPair("g", a, b, 2.0), stiffness=1.0, efficiency=1.2
            ),
            "1.2",
        ),
    ],
)
def test_couplings_that_mean_nothing_are_refused(make: Make, found: str) -> None:
    with pytest.raises(FlexureError, match=found):
        machine(make)


GEARS: list[Make] = [
    lambda a, b, c, s: GearPair("first", a, b, 2.0),
    lambda a, b, c, s: GearPair("second", b, c, 3.0),
]


@for_each(
    ("more", "found"),
    [
        (
            [lambda a, b, c, s: GearPair("g", a, b, 2.0, 0.1)],
            "'g' with an offset of 0.1, which contradicts 'first': with these it is 0",
        ),
        (
            [lambda a, b, c, s: GearPair("g", a, c, 5.0)],
            "'first', 'second', 'g' that allow no motion of 'a', 'b', 'c'",
        ),
        (
            [lambda a, b, c, s, n=n: PrescribedMotion(n, s) for n in ("in", "out")],
            "'out' and 'in', which prescribe one",
        ),
        (
            [
                lambda a, b, c, s: PrescribedMotion("in", a),
                lambda a, b, c, s: PrescribedMotion("out", c),
            ],
            "'out' and 'first', 'second', 'in', which prescribe one",
        ),
    ],
)
def test_couplings_that_contradict_others_are_named(more: list[Make], found: str) -> None:
    with pytest.raises(DeclarationError, match=found):
        machine(*GEARS, *more)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (lambda a, b, c, s: GearPair("g", b, a, 0.5), "'g' follows from 'first'"),
        (lambda a, b, c, s: GearPair("g", a, c, 6.0), "'g' follows from 'first', 'second'"),
    ],
)
def test_a_redundant_coupling_is_said_and_shares_the_load(more: Make, told: str) -> None:
    with pytest.warns(UserWarning, match=told):
        twice = machine(*GEARS, more)
    once = machine(*GEARS)
    ends, shares = [], []
    for plant in (once, twice):
        context = plant.create_default_context()
        for number, name in enumerate("abc", start=1):
            plant.input_port(f"on_{name}").fix(context, number)
        rates = plant.calc_vdot(context)
        shares.append(float(context.get("first.multipliers")[0]))
        result = fx.simulate(plant, 0.3, context=context)
        ends.append([*rates, *(result[f"{name}.angle"][-1] for name in "abc")])
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-8, atol=1e-11)
    if "second" not in told:  # two equal gears carry half of the load each
        assert shares[1] == pytest.approx(0.5 * shares[0], rel=1e-6)


def test_a_second_path_of_power_may_give_way() -> None:
    plant = machine(
        *GEARS,
        lambda a, b, c, s: fx.CompliantCoupling("g", GearPair("g", a, c, 6.0), stiffness=10.0),
    )
    assert np.all(np.isfinite(plant.calc_vdot(plant.create_default_context())))


def test_a_coupling_cannot_be_rigid_and_compliant_at_once() -> None:
    def both(a: Any, b: Any, c: Any, s: Any) -> Any:
        return fx.CompliantCoupling("soft", gears, stiffness=1.0)

    gears: Any = None

    def rigid(a: Any, b: Any, c: Any, s: Any) -> Any:
        nonlocal gears
        gears = GearPair("gears", a, b, 2.0)
        return gears

    with pytest.raises(DeclarationError, match="'gears', which is rigid"):
        machine(rigid, both)


def test_a_joint_that_is_locked_and_prescribed_is_refused() -> None:
    plant = machine(lambda a, b, c, s: PrescribedMotion("drive", a))
    context = plant.create_default_context()
    plant.input_port("drive").fix(context, [0.0, 0.0, 0.0])
    plant.joint("a").lock(context)
    for attempt in (
        plant.assemble,
        lambda c: fx.simulate(plant, 0.1, context=c),
    ):
        with pytest.raises(EvaluationError, match=r"'a'.*'drive'.*unlock\(context\)"):
            attempt(context)
    plant.joint("a").unlock(context)
    fx.simulate(plant, 0.1, context=context)
