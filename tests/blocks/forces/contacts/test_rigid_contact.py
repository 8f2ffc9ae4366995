"""Rigid contact between bodies: impacts by hand, motions by own integration, rest, refusals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import flexure as fx
from flexure.blocks.math import rotation_from_rpy
from tests.support.native.native import needs_llvmlite

BALL = fx.BodyShape.sphere(radius=0.1)


def free_balls(count: int, restitution: float, law: Any = "simultaneous") -> fx.Plant:
    """Balls of 1 kg in free space."""
    builder = fx.PlantBuilder("table", gravity=(0, 0, 0), impacts=law)
    inertia = fx.SpatialInertia.solid_sphere(1.0, radius=0.1)
    bodies = [builder.add_body(f"b{k}", inertia) for k in range(count)]
    for body in bodies:
        builder.add_joint(fx.QuaternionFloatingJoint(f"at_{body.name}", builder.world, body))
    for one, two in pairwise(bodies):
        name = f"{one.name}_{two.name}"
        builder.add_constraint(fx.RigidContact(name, one, BALL, two, BALL, restitution=restitution))
    builder.add_energy_ledger()
    return builder.build()


def put(plant: fx.Plant, places: Any, velocities: Any) -> fx.Context:
    """Return a context with balls at places, with velocities."""
    context = plant.create_default_context()
    for joint, place in zip(plant.joints, places, strict=True):
        joint.pose.set(context, (np.eye(3), place))
    plant.set_velocities(context, np.hstack([[0.0, 0.0, 0.0, *v] for v in velocities]))
    return context


@needs_llvmlite
def test_two_balls_part_as_by_the_law_of_restitution() -> None:
    plant = free_balls(2, 0.8)
    p, v = np.array([0.6, 0.08, 0.05]), np.array([2.0, 0.1, 0.0])
    context = put(plant, [np.zeros(3), p], [v, np.zeros(3)])
    # |p - v t| = 0.2, and then an impulse along the line of centers
    a, b, c = v @ v, p @ v, p @ p - 0.04
    t = (b - np.sqrt(b * b - a * c)) / a
    n = (v * t - p) / 0.2
    jump = 0.5 * 1.8 * (v @ n) * n
    lost = 0.25 * (1.0 - 0.8**2) * (v @ n) ** 2
    for compiled in ("native", False):
        result = fx.simulate(plant, 0.5, context=context, compiled=compiled)
        first, second = (result[f"b{k}.spatial_velocity"][-1, 3:] for k in range(2))
        np.testing.assert_allclose(first, v - jump, atol=1e-12)
        np.testing.assert_allclose(second, jump, atol=1e-12)
        assert result["b0_b1.dissipated_energy"][-1] == pytest.approx(lost, abs=1e-12)
        assert np.ptp(result["ledger.balance"]) < 1e-12
        assert result["b0_b1.mode"][-1] == 0.0


def test_a_row_of_touching_balls_by_both_laws_of_impact() -> None:
    """One by one, only the last ball leaves; at once, all but the first share the speed."""
    expected = {"sequential": [0.0, 0.0, 1.0], "simultaneous": [-1 / 3, 2 / 3, 2 / 3]}
    for law, speeds in expected.items():
        plant = free_balls(3, 1.0, law)
        places = [(0.0, 0, 0), (0.3, 0, 0), (0.5, 0, 0)]
        context = put(plant, places, [(1.0, 0, 0), (0, 0, 0), (0, 0, 0)])
        result = fx.simulate(plant, 0.2, context=context)
        found = [result[f"b{k}.spatial_velocity"][-1, 3] for k in range(3)]
        np.testing.assert_allclose(found, speeds, atol=1e-9)


@needs_llvmlite
def test_a_rope_catches_a_bob_which_then_swings() -> None:
    builder = fx.PlantBuilder("rope", gravity=(0.0, 0.0, -10.0))
    bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(2.0, radius=0.05))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, bob))
    far = fx.BodyShape.sphere(radius=1.0)
    rope: dict[str, Any] = {"inside": True, "restitution": 0.0}
    builder.add_constraint(
        fx.RigidContact("rope", bob, fx.BodyShape.point(), builder.world, far, **rope)
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    free.pose.set(context, (np.eye(3), [0.8, 0.0, 0.3]))
    result = fx.simulate(plant, 1.0, context=context, rtol=1e-8, compiled="native")
    fall = np.sqrt(2.0 * 0.9 / 10.0)  # to z = -0.6, where the rope is as long as it can be
    speed = 10.0 * fall * 0.8  # along the circle
    swing = solve_ivp(
        lambda _, y: [y[1], -10.0 * np.sin(y[0])],
        (fall, 1.0),
        [np.arcsin(0.8), -speed],
        rtol=1e-10,
        atol=1e-12,
    )
    angle, rate = swing.y[:, -1]
    expected = [np.sin(angle), 0.0, -np.cos(angle)]
    np.testing.assert_allclose(result["bob.position"][-1], expected, atol=1e-6)
    pull = 2.0 * (rate**2 + 10.0 * np.cos(angle))
    assert result["rope.multipliers"][-1] == pytest.approx(pull, rel=1e-5)
    assert result["rope.dissipated_energy"][-1] == pytest.approx(0.5 * 2.0 * (10 * fall * 0.6) ** 2)
    assert np.ptp(result["ledger.balance"]) < 1e-6
    restitutions = {"tree.rope_restitution": [0.0, 0.4]}
    options: dict[str, Any] = {"context": context, "rtol": 1e-8}
    sweep = fx.sweep(plant, restitutions, 1.0, signals=["bob.position"], **options)
    np.testing.assert_allclose(sweep["bob.position"][0, -1], expected, atol=1e-6)
    context.set("tree.rope_restitution", 0.4)
    again = fx.simulate(plant, 1.0, **options)
    np.testing.assert_allclose(sweep["bob.position"][1, -1], again["bob.position"][-1], atol=1e-6)


@needs_llvmlite
def test_a_tilted_box_comes_to_rest_on_four_corners() -> None:
    builder, size = fx.PlantBuilder("bench", gravity=(0.0, 0.0, -10.0)), (0.4, 0.3, 0.1)
    box = builder.add_body("box", fx.SpatialInertia.solid_box(2.0, size=size))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, box))
    shape = fx.BodyShape.box(size=size)
    builder.add_constraint(
        fx.RigidContact("ground", builder.world, "half_space", box, shape, restitution=0.3)
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    free.pose.set(context, (rotation_from_rpy((0.3, 0.2, 0.1)), [0.0, 0.0, 0.5]))
    result = fx.simulate(plant, 2.0, context=context, compiled="native")
    assert result["box.position"][-1, 2] == pytest.approx(0.05, abs=1e-9)
    assert result["ground.mode"][-1].sum() == 4.0
    np.testing.assert_allclose(np.sort(result["ground.multipliers"][-1])[4:], 5.0, rtol=1e-6)
    assert np.ptp(result["ledger.balance"]) < 1e-6
    rest = result.context
    free.pose.set(rest, (np.eye(3), [0.0, 0.0, 0.0505]))  # no run pulls it back to the ground
    with pytest.raises(fx.errors.EvaluationError, match=r"0\.0005 m apart, but in contact"):
        fx.simulate(plant, 2.01, context=rest)
    rest.set("tree.ground_modes", np.zeros(8))
    fallen = fx.simulate(plant, 2.002, context=rest, compiled=False)["box.position"][-1, 2]
    assert fallen == pytest.approx(0.0505 - 5.0 * 0.002**2, abs=1e-9)
    free.pose.set(context, (np.eye(3), [0.0, 0.0, 0.04]))
    with pytest.raises(fx.errors.EvaluationError, match=r"overlap by 0\.01 m"):
        fx.simulate(plant, 0.1, context=context)


def test_what_is_no_pair_of_rigid_shapes_is_refused() -> None:
    builder = fx.PlantBuilder("bench")
    one, two = (builder.add_body(n, fx.SpatialInertia.point_mass(1.0)) for n in ("one", "two"))
    box = fx.BodyShape.box(size=(0.1, 0.1, 0.1))
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        (two, box, {}, "two spheres, or"),
        (builder.world, "half_space", {"inside": True}, "around a smaller one"),
        (two, BALL, {"inside": True}, "around a smaller one"),
        (two, BALL, {"restitution": 1.5}, "restitution"),
        (two, BALL, {"restitution": np.nan}, "restitution"),
        (two, BALL, {"rest_velocity": -1.0}, "rest_velocity"),
        (one, BALL, {}, "two bodies"),
    ]
    for b, shape, options, reason in refused:
        with pytest.raises(fx.errors.FlexureError, match=reason):
            fx.RigidContact("c", one, BALL, b, shape, **{"restitution": 0.5, **options})
    with pytest.raises(fx.errors.DeclarationError, match="not two points"):
        fx.RigidContact("c", one, fx.BodyShape.point(), two, fx.BodyShape.point(), restitution=0.5)
