"""Blocks that know a plant: against dense matrices, and in loops with closed forms."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import flexure as fx
from flexure.blocks.multibody.plants.computed_torque import GravityCompensation, InverseDynamics
from flexure.diagrams.checks.errors import DeclarationError
from tests.contracts.parts import ASKEW, LUMP, half_driven

SEEDS = range(4)
MOTORS = {"first": "first", "second": "second"}
CHANGED = {"fore_mass": 5.0, "shoulder_damping": 3.0, "second_gear_ratio": 9.0}


def arm(**options: Any) -> fx.Plant:
    """Two links whose axes lie askew, each with a motor and its rotor."""
    builder = fx.PlantBuilder("arm", **options)
    upper, fore = builder.add_body("upper", LUMP), builder.add_body("fore", LUMP)
    elbow_place = builder.add_frame("elbow_place", upper, ASKEW)
    shoulder = builder.add_joint(
        fx.RevoluteJoint("shoulder", builder.world, upper, (0.0, 1.0, 0.3), damping=0.2)
    )
    elbow = builder.add_joint(fx.RevoluteJoint("elbow", elbow_place, fore, (0.0, 1.0, 0.0)))
    builder.add_actuator("first", shoulder, gear_ratio=5.0, rotor_inertia=0.01)
    builder.add_actuator("second", elbow, gear_ratio=3.0, rotor_inertia=0.02)
    return builder.build()


def satellite_with_boom() -> fx.Plant:
    """A body that floats with a quaternion, and a slider on it; no motors."""
    builder = fx.PlantBuilder("satellite")
    hull, boom = builder.add_body("hull", LUMP), builder.add_body("boom", LUMP)
    builder.add_joint(fx.PrismaticJoint("slide", hull, boom, (1.0, 2.0, 0.5), damping=0.4))
    return builder.build()


def at_random(plant: fx.Plant, seed: int) -> tuple[fx.Context, Any]:
    """Return a context in motion, and accelerations."""
    rng = np.random.default_rng(seed)
    context = plant.create_default_context()
    q = plant.get_positions(context) + rng.normal(size=plant.num_positions)
    plant.set_positions(context, q)
    plant.set_velocities(context, rng.normal(size=plant.num_velocities))
    return context, rng.normal(size=plant.num_velocities)


def needed(block: Any, plant: fx.Plant, context: fx.Context, wanted: Any, own: Any = None) -> Any:
    """Return the forces that a block finds for a plant that is in a context."""
    other = block.create_default_context() if own is None else own
    values = {
        "positions": plant.get_positions(context),
        "velocities": plant.get_velocities(context),
        "accelerations": wanted,
    }
    for port in block.input_ports:
        port.fix(other, values[port.name])
    return block.generalized_force.eval(other)


def controlled(plant: fx.Plant, block: Any, wires: dict[str, str]) -> fx.Diagram:
    """Wire a block to a plant, its outputs to inputs of the plant as given."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(plant, block)
    for port in block.input_ports:
        if port.name != "accelerations":
            builder.connect(f"{plant.name}.{port.name}", port)
    for output, entry in wires.items():
        builder.connect(f"{block.name}.{output}", f"{plant.name}.{entry}")
    if isinstance(block, InverseDynamics):
        builder.export_input(block.accelerations, name="wanted")
    return builder.build()


# Against dense matrices -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [arm, satellite_with_boom, half_driven])
@pytest.mark.parametrize("seed", SEEDS)
def test_forces_are_those_of_the_dense_equations_of_motion(make: Any, seed: int) -> None:
    plant = make()
    context, wanted = at_random(plant, seed)
    inertial = plant.calc_mass_matrix(context) @ wanted + plant.calc_bias_term(context)
    weight = plant.calc_gravity_generalized_forces(context)
    damping = plant.tree.damping_forces(context["tree"])
    block = InverseDynamics("model", plant, underactuated=True)
    found = needed(block, plant, context, wanted)
    np.testing.assert_allclose(found, inertial - weight - damping, rtol=1e-11, atol=1e-11)
    hold = GravityCompensation("hold", plant, underactuated=True)
    found = needed(hold, plant, context, wanted)
    np.testing.assert_allclose(found, -weight, rtol=1e-11, atol=1e-11)


def test_each_motor_gets_its_own_part() -> None:
    plant = arm()
    block = InverseDynamics("model", plant)
    context, wanted = at_random(plant, 3)
    own = block.create_default_context()
    forces = needed(block, plant, context, wanted, own)
    assert [port.name for port in block.efforts] == ["first", "second"]
    assert [float(port.eval(own)[0]) for port in block.efforts] == forces.tolist()


def test_a_model_has_its_own_parameters() -> None:
    plant = arm()
    block = InverseDynamics("model", plant)
    context, wanted = at_random(plant, 1)
    before = needed(block, plant, context, wanted)
    for path, value in CHANGED.items():
        context.set(f"tree.{path}", value)
    np.testing.assert_array_equal(needed(block, plant, context, wanted), before)
    own = block.create_default_context()
    for path, value in CHANGED.items():
        own.set(path, value)
    inertial = plant.calc_mass_matrix(context) @ wanted + plant.calc_bias_term(context)
    weight = plant.calc_gravity_generalized_forces(context)
    expected = inertial - weight - plant.tree.damping_forces(context["tree"])
    np.testing.assert_allclose(needed(block, plant, context, wanted, own), expected, rtol=1e-12)


def test_a_joint_that_is_locked_in_plant_and_model_gets_no_force() -> None:
    plant = arm()
    loop = controlled(plant, InverseDynamics("model", plant), MOTORS)
    context = loop.create_default_context()
    plant.set_positions(context["arm"], [0.4, -0.9])
    plant.set_velocities(context["arm"], [0.0, 0.7])
    plant.joint("shoulder").lock(context)
    context.set("model.shoulder_locked", 1.0)
    context.set("wanted", [2.0, -3.0])
    assert context.get("model.first").tolist() == [0.0]
    np.testing.assert_allclose(context.get("arm.accelerations"), [0.0, -3.0], atol=1e-12)


# In a loop ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wires", [MOTORS, {"generalized_force": "generalized_force"}])
def test_an_arm_under_computed_torque_is_made_of_double_integrators(wires: Any) -> None:
    plant = arm()
    loop = controlled(plant, InverseDynamics("model", plant), wires)
    context = loop.create_default_context()
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        plant.set_positions(context["arm"], rng.normal(size=2))
        plant.set_velocities(context["arm"], rng.normal(size=2))
        context.set("wanted", wanted := rng.normal(size=2))
        np.testing.assert_allclose(context.get("arm.accelerations"), wanted, atol=1e-11)
        model = fx.linearize(loop, context)
        expected = np.block([[np.zeros((2, 2)), np.eye(2)], [np.zeros((2, 4))]])
        np.testing.assert_allclose(model.A, expected, atol=1e-10)
        np.testing.assert_allclose(model.B, [[0, 0], [0, 0], [1, 0], [0, 1]], atol=1e-10)


def test_an_arm_under_computed_torque_follows_a_profile_with_the_errors_of_a_linear_loop() -> None:
    """The error obeys e'' + 2 w e' + w² e = 0, so from e₀ at rest it is e₀ (1 + w t) exp(-w t)."""
    w, start, error = 3.0, np.array([0.3, -0.5]), np.array([0.4, -0.2])
    plant = arm()
    builder = fx.DiagramBuilder("robot")
    builder.add_all(
        plant,
        fx.MinimumJerkProfile("path", at=0.2, to=[2.0, 1.0], initial=start, duration=1.5),
        fx.PIDController("loop", w**2, 0.0, 2.0 * w, size=2, rate_inputs=True),
        InverseDynamics("model", plant),
    )
    wires = {
        "path.y": "loop.setpoint",
        "path.velocity": "loop.setpoint_rate",
        "path.acceleration": "loop.feedforward",
        "loop.u": "model.accelerations",
        "model.first": "arm.first",
        "model.second": "arm.second",
    }
    for source, target in wires.items():
        builder.connect(source, target)
    for port, target in {"positions": "measurement", "velocities": "measurement_rate"}.items():
        builder.connect(f"arm.{port}", f"model.{port}")
        builder.connect(f"arm.{port}", f"loop.{target}")
    robot = builder.build()
    context = robot.create_default_context()
    plant.set_positions(context["arm"], start - error)
    result = fx.simulate(robot, 2.0, context=context, rtol=1e-9, atol=1e-11)
    decay = (1.0 + w * result.time) * np.exp(-w * result.time)
    found = result["path.y"] - result["arm.positions"]
    np.testing.assert_allclose(found, decay[:, np.newaxis] * error, atol=1e-7)


@pytest.mark.full
@pytest.mark.parametrize("make", [arm, satellite_with_boom])
@pytest.mark.parametrize("seed", SEEDS)
def test_gravity_compensation_holds_a_plant_in_any_pose(make: Any, seed: int) -> None:
    plant = make()
    hold = GravityCompensation("hold", plant)
    loop = controlled(plant, hold, {"generalized_force": "generalized_force"})
    context = loop.create_default_context()
    moved, _ = at_random(plant, seed)
    plant.set_positions(context[plant.name], plant.get_positions(moved))
    np.testing.assert_allclose(context.get(f"{plant.name}.accelerations"), 0.0, atol=1e-12)
    result = fx.simulate(loop, 0.5, context=context)
    positions = result[f"{plant.name}.positions"]
    np.testing.assert_allclose(positions - positions[0], 0.0, atol=1e-10)


def pole(stiffness: float) -> tuple[fx.Diagram, fx.Plant]:
    """A lever of 2 kg at 0.5 m on a servo, that is a spring to the horizontal, which is held."""
    builder = fx.PlantBuilder("lever", gravity=(0.0, 0.0, -10.0))
    body = builder.add_body("load", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(
        fx.RevoluteJoint("axis", builder.world, body, (0.0, -1.0, 0.0), damping=1.0)
    )
    builder.add_force_element(fx.JointSpring("servo", axis, stiffness=stiffness))
    plant = builder.build()
    hold = GravityCompensation("hold", plant)
    return controlled(plant, hold, {"generalized_force": "generalized_force"}), plant


@pytest.mark.parametrize("believed", [2.0, 1.5, 2.6])
def test_a_wrong_mass_makes_a_held_lever_sag_by_the_missing_weight(believed: float) -> None:
    stiffness = 40.0
    loop, _ = pole(stiffness)
    context = loop.create_default_context()
    context.set("hold.load_mass", believed)
    rest = fx.equilibrium(loop, context).context
    missing = (2.0 - believed) * 10.0 * 0.5
    expected = scipy.optimize.brentq(lambda a: stiffness * a + missing * np.cos(a), -1.0, 1.0)
    np.testing.assert_allclose(rest.get("lever.axis.angle"), expected, atol=1e-9)


def test_a_model_error_is_swept() -> None:
    loop, _ = pole(40.0)
    sweep = fx.sweep(loop, {"hold.load_mass": [1.5, 2.0, 2.5]}, 8.0, signals=["lever.axis.angle"])
    final = sweep["lever.axis.angle"][:, -1].ravel()
    assert final[1] == pytest.approx(0.0, abs=1e-9)
    expected = [
        scipy.optimize.brentq(lambda a, d=d: 40.0 * a + 5.0 * d * np.cos(a), -1.0, 1.0)
        for d in (0.5, 0.0, -0.5)
    ]
    np.testing.assert_allclose(final, expected, atol=1e-4)


def test_a_loop_with_a_model_is_saved_and_loaded_as_a_whole() -> None:
    plant = arm()
    loop = controlled(plant, InverseDynamics("model", plant), {"first": "first"})
    twin = pickle.loads(pickle.dumps(loop))
    assert twin["model"].topology is twin["arm"].tree.topology
    context, other = loop.create_default_context(), twin.create_default_context()
    for each in (context, other):
        each.set("wanted", [1.0, 2.0])
    np.testing.assert_array_equal(other.get("model.first"), context.get("model.first"))


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [InverseDynamics, GravityCompensation])
def test_a_plant_with_too_few_motors_is_refused_until_that_is_meant(kind: Any) -> None:
    plant = half_driven()
    expected = r"motors on all joints of 'half_driven', or on none; found none on 'drift'\. Add mot"
    with pytest.raises(DeclarationError, match=expected):
        kind("model", plant)
    block = kind("model", plant, underactuated=True)
    assert [port.name for port in block.output_ports] == ["generalized_force", "motor"]


def test_motors_that_share_a_joint_are_refused() -> None:
    builder = fx.PlantBuilder("twins")
    axis = builder.add_joint(
        fx.RevoluteJoint("axis", builder.world, builder.add_body("load", LUMP), (0, 0, 1))
    )
    builder.add_actuator("left", axis)
    builder.add_actuator("right", axis)
    with pytest.raises(DeclarationError, match=r"one motor on a joint.* found several on 'axis'"):
        InverseDynamics("model", builder.build(), underactuated=True)


def test_what_is_no_plant_or_cannot_move_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"a plant, as PlantBuilder\.build"):
        GravityCompensation("hold", arm().tree)  # type: ignore[arg-type]
    builder = fx.PlantBuilder("statue")
    builder.add_joint(fx.WeldJoint("foot", builder.world, builder.add_body("stone", LUMP)))
    with pytest.raises(DeclarationError, match="a plant that can move; found only welds"):
        InverseDynamics("model", builder.build())
    with pytest.raises(DeclarationError, match="True or False for underactuated"):
        InverseDynamics("model", arm(), underactuated="yes")  # type: ignore[arg-type]
