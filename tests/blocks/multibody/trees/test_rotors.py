"""Rotors: energy, the mass matrix, and their constants as parameters."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError
from tests.support.mechanics.mechanisms import MOVING, arm, chain, random_context
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import for_each


def test_the_energy_of_a_rotor_is_that_of_a_flywheel_behind_a_gear() -> None:
    builder = fx.PlantBuilder("winch", gravity=(0.0, 0.0, 0.0))
    drum = builder.add_body("drum", fx.SpatialInertia(1.0, inertia=(1.0, 1.0, 1.0 / 3.0)))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, drum, (0, 0, 1)))
    motor = builder.add_actuator("motor", axis, gear_ratio=50.0, rotor_inertia=1e-3)
    plant = builder.build()
    context = plant.create_default_context()
    axis.angular_rate.set(context, 2.0)
    of_drum, of_rotor = 0.5 / 3.0 * 2.0**2, 0.5 * 1e-3 * (50.0 * 2.0) ** 2
    assert plant.calc_kinetic_energy(context) == pytest.approx(of_drum + of_rotor)
    assert motor.calc_reflected_inertia(context) == pytest.approx(2.5)
    np.testing.assert_allclose(plant.calc_mass_matrix(context), [[2.5 + 1.0 / 3.0]])


def driven(kind: str, seed: int = 3) -> fx.Plant:
    """A chain with a joint of some kind, motors with rotors on all of its joints, and a ledger."""
    builder = chain("revolute", kind, "universal", is_reversed=seed % 2 == 0, seed=seed)
    for k, joint in enumerate(builder.joints):
        builder.add_actuator(f"m{k}", joint, gear_ratio=2.0 + k, rotor_inertia=0.03 * (k + 1))
    builder.add_actuator("second", builder.joints[0], gear_ratio=-3.0, rotor_inertia=0.01)
    builder.add_external_force("push", builder.bodies[-1])
    builder.add_energy_ledger()
    return builder.build()


@pytest.mark.parametrize("kind", MOVING)
def test_kinetic_energy_is_that_of_the_mass_matrix(kind: str) -> None:
    rng = np.random.default_rng(5)
    for seed in (1, 2):
        plant = driven(kind, seed)
        for _ in range(5):  # some of the joints are locked in some of the contexts
            context = random_context(plant, rng)
            v, M = plant.get_velocities(context), plant.calc_mass_matrix(context)
            assert plant.calc_kinetic_energy(context) == pytest.approx(0.5 * v @ M @ v, rel=1e-12)


def under_way(kind: str, locked: int | None) -> tuple[fx.Plant, fx.Context]:
    """Return a driven chain in motion, in which one of the joints may be locked."""
    plant = driven(kind)
    context = plant.create_default_context()
    plant.set_velocities(context, np.linspace(-0.6, 0.8, plant.num_velocities))
    for k, port in enumerate(plant.input_ports):
        port.fix(context, np.linspace(0.5, 1.0 + k, port.size or 0))
    if locked is not None:
        plant.find(f"{plant.joints[locked].name}.locked").set(context, 1.0)
    return plant, context


@for_each("kind", MOVING)
@for_each("locked", [None, 0, 1])
def test_no_energy_comes_from_nowhere(kind: str, locked: int | None) -> None:
    plant, context = under_way(kind, locked)
    x, rates = context.continuous_state, plant.eval_time_derivatives(context)

    def slope(signal: str, step: float = 1e-5) -> float:
        values = []
        for side in (-step, step):
            context.continuous_state = x + side * rates
            values.append(context.get(signal)[0])
        return float(values[1] - values[0]) / (2.0 * step)

    assert abs(slope("kinetic_energy")) > 0.1
    assert slope("ledger.balance") == pytest.approx(0.0, abs=1e-6 * np.max(np.abs(rates)) ** 2)


@pytest.mark.full
@needs_llvmlite
def test_energy_adds_up_in_a_run() -> None:
    plant, context = under_way("planar", None)
    result = fx.simulate(plant, 0.3, context=context, method="DOP853", rtol=1e-10, atol=1e-10)
    assert np.ptp(result["ledger.balance"]) < 1e-6
    assert np.ptp(result["kinetic_energy"]) > 1.0


# Parameters --------------------------------------------------------------------------------------


def geared(ratio: float, inertia: float) -> tuple[fx.Plant, fx.multibody.Actuator]:
    builder, _, axis = arm()
    motor = builder.add_actuator("motor", axis, gear_ratio=ratio, rotor_inertia=inertia)
    return builder.build(), motor


def test_constants_of_rotors_are_parameters_with_unit_and_bounds() -> None:
    plant, motor = geared(5.0, 0.02)
    context = plant.create_default_context()
    assert plant.find("motor.gear_ratio") is motor.gear_ratio
    assert (
        plant.find("tree.motor_rotor_inertia")
        is motor.rotor_inertia
        is plant.find("motor.rotor_inertia")
    )
    assert (motor.default_gear_ratio, motor.default_rotor_inertia) == (5.0, 0.02)
    assert motor.rotor_inertia.unit == "kg m^2"
    motor.gear_ratio.set(context, -7.0)
    context.set("motor.rotor_inertia", 0.1)
    assert motor.calc_reflected_inertia(context) == pytest.approx(4.9)
    with pytest.raises(ValueRefusedError, match="motor_rotor_inertia"):
        context.set("motor.rotor_inertia", -0.1)


@pytest.mark.full
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_llvmlite)])
def test_swept_rotors_move_as_those_that_were_built_in(compiled: bool) -> None:
    ratios, inertias = [1.0, 4.0, 4.0, 9.0], [0.0, 0.0, 0.02, 0.01]
    plant, _ = geared(1.0, 0.0)
    context = plant.create_default_context()
    context.set("axis.angle", 1.0)
    grid = {"motor.gear_ratio": ratios, "motor.rotor_inertia": inertias}
    table = fx.sweep(
        plant, grid, 1.0, context=context, signals=["axis.angle"], times=[1.0], compiled=compiled
    )
    for k, constants in enumerate(zip(ratios, inertias, strict=True)):
        other, _ = geared(*constants)
        start = other.create_default_context()
        start.set("axis.angle", 1.0)
        alone = fx.simulate(other, 1.0, context=start, compiled=compiled)
        expected = alone["axis.angle"][-1]
        np.testing.assert_allclose(table["axis.angle"][k, -1], expected, rtol=1e-6)


@needs_llvmlite
def test_native_code_does_no_work_for_rotors_that_are_not_there() -> None:
    from flexure.solvers.native.programs.programs import program_of

    operations = []
    for rotors in ([], [0.0], [0.0, 0.0], [0.1]):
        builder, _, axis = arm()
        for k, inertia in enumerate(rotors):
            builder.add_actuator(f"m{k}", axis, gear_ratio=3.0, rotor_inertia=inertia)
        context = builder.build().create_default_context()
        operations.append(program_of(context.store).trace.operations)
    none, one, two, heavy = operations
    assert (one - none, two - none) == (1, 2)  # their efforts are added
    assert heavy > one
