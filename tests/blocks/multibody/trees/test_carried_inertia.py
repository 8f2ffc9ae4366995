"""Force elements with mass: their plant moves as if its bodies had it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.mechanics.mechanisms import Bars, bars_on_bodies
from tests.support.mechanics.multibody import random_pose

DENSITY = 0.7


def rod(length: float) -> fx.SpatialInertia:
    """A bar of `Bars` as a rigid body."""
    m = DENSITY * length
    moments = (0.002 * m, m * length**2 / 12.0, m * length**2 / 12.0)
    return fx.SpatialInertia(m, (0.5 * length, 0.0, 0.0), moments)


def moving(plant: fx.Plant) -> fx.Context:
    """Return a context in which everything moves."""
    rng, context = np.random.default_rng(8), plant.create_default_context()
    for joint in plant.joints:
        joint.positions.set(context, joint.nearest_positions(random_pose(rng)))
        joint.velocities.set(context, rng.normal(size=joint.num_velocities))
    for port in plant.input_ports:
        port.fix(context, rng.normal(size=port.size))
    return context


def welded(context: fx.Context, plant: fx.Plant) -> None:
    """Take all mass from the bars in a context, and give it to the bodies themselves."""
    inertias: dict[str, Any] = {body.name: body.inertia for body in plant.bodies[1:]}
    for element in plant.force_elements:
        assert isinstance(element, Bars)
        for attachment, length in zip(
            element.attachments, element.lengths.get(context), strict=True
        ):
            if not attachment.body.is_world:
                X_BF = attachment.frame.X_BF
                inertias[attachment.body.name] += rod(length).moved((X_BF.R, X_BF.p))
        element.density.set(context, 0.0)
    for name, inertia in inertias.items():
        context.set(f"{name}.mass", inertia.mass)
        context.set(f"{name}.com", inertia.com)
        context.set(f"{name}.unit_inertia", inertia.unit_inertia_six)


CALCULATIONS: dict[str, Callable[[fx.Plant, fx.Context], Any]] = {
    "mass matrix": lambda plant, context: plant.calc_mass_matrix(context),
    "bias": lambda plant, context: plant.calc_bias_term(context),
    "weight": lambda plant, context: plant.calc_gravity_generalized_forces(context),
    "potential energy": lambda plant, context: plant.calc_potential_energy(context),
    "outputs": lambda plant, context: np.concatenate(
        [port.eval(context) for port in plant.output_ports if ".inertia_on_" not in port.name]
    ),
}


@pytest.mark.parametrize("what", CALCULATIONS)
def test_a_plant_counts_what_elements_carry_as_part_of_the_bodies(what: str) -> None:
    plant = bars_on_bodies()
    context = moving(plant)
    found = CALCULATIONS[what](plant, context)
    welded(context, plant)
    expected = CALCULATIONS[what](plant, context)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())


def test_the_inverse_dynamics_is_that_of_the_accelerations() -> None:
    plant = bars_on_bodies()
    context = moving(plant)
    forces = plant.calc_force_elements_contribution(context)
    for port in plant.input_ports:
        port.fix(context, np.zeros(port.size or 0))
    missing = plant.calc_inverse_dynamics(context, plant.calc_vdot(context), forces)
    np.testing.assert_allclose(missing, 0.0, atol=1e-10)


def test_the_energy_ledger_closes_with_elements_that_have_mass() -> None:
    plant = bars_on_bodies()
    result = fx.simulate(plant, 0.5, context=moving(plant), rtol=1e-10, atol=1e-10)
    energy = np.ptp(result["ledger.balance"])
    assert energy < 1e-7 * np.ptp(result["kinetic_energy"])


def test_controllers_that_know_a_plant_know_what_its_elements_carry() -> None:
    plant = bars_on_bodies()
    context = moving(plant)
    expected = -plant.calc_gravity_generalized_forces(context)
    hold = fx.GravityCompensation("hold", plant)
    knowing = hold.create_default_context()
    hold.positions.fix(knowing, plant.get_positions(context))
    np.testing.assert_allclose(hold.generalized_force.eval(knowing), expected, atol=1e-12)
    drive = fx.InverseDynamics("drive", plant)
    knowing = drive.create_default_context()
    vdot = np.ones(plant.num_velocities)
    drive.positions.fix(knowing, plant.get_positions(context))
    drive.velocities.fix(knowing, plant.get_velocities(context))
    drive.accelerations.fix(knowing, vdot)
    forces = plant.calc_force_elements_contribution(context)
    needed = plant.calc_inverse_dynamics(context, vdot, forces)
    found = drive.generalized_force.eval(knowing)
    np.testing.assert_allclose(found, needed, atol=1e-11)


# A pendulum whose whole mass is that of an element ----------------------------------------------


def pendulum() -> fx.Plant:
    """A bar of 0.5 m that hangs on an axis, on a body without mass."""
    builder = fx.PlantBuilder("pendulum", gravity=(0, 0, -10))
    body = builder.add_body("holder", fx.SpatialInertia(0.0))
    builder.add_joint(fx.RevoluteJoint("pivot", builder.world, body, axis=(0, 1, 0)))
    down = builder.add_frame("down", body, ([[0, 0, 1], [0, 1, 0], [-1, 0, 0]], (0, 0, 0)))
    builder.add_force_element(Bars("bar", {"A": down}, [0.5]))
    return builder.build()


def test_a_bar_on_a_massless_body_swings_as_a_physical_pendulum() -> None:
    (mode,) = fx.modes(pendulum())
    assert abs(mode.poles[0]) == pytest.approx(np.sqrt(1.5 * 10.0 / 0.5), rel=1e-9)


def test_a_joint_without_any_mass_is_refused_by_name() -> None:
    plant = pendulum()
    context = plant.create_default_context()
    context.set("bar.density", 0.0)
    with pytest.raises(fx.errors.EvaluationError, match="Cannot accelerate joint 'pivot'"):
        plant.calc_vdot(context)


def test_the_motion_has_exact_derivatives_by_what_the_mass_is_made_from() -> None:
    plant = pendulum()
    context = plant.create_default_context()
    plant.set_positions(context, 0.4)
    found = fx.parameter_sensitivity(
        plant, "bar.lengths", 1.0, context=context, outputs="pivot.angle"
    )
    ends = []
    for length in (0.5 + 1e-5, 0.5 - 1e-5):
        context.set("bar.lengths", length)
        ends.append(
            fx.simulate(plant, 1.0, context=context, rtol=1e-12, atol=1e-13)["pivot.angle"][-1]
        )
    slope = (ends[0] - ends[1]) / 2e-5
    assert found["bar.lengths"][0, 0] == pytest.approx(slope, rel=1e-6)


@pytest.mark.full
def test_a_linear_model_has_exact_derivatives_by_what_the_mass_is_made_from() -> None:
    plant = bars_on_bodies()
    context = moving(plant)
    model = fx.linearize(plant, context, inputs=["bars.lengths"], outputs=["accelerations"])
    assert model.how == "exact derivatives"
    lengths = plant.force_element("bars").find("lengths")
    for k, column in enumerate(model.D.T):
        step = 1e-5 * np.eye(5)[k]
        ends = []
        for sign in (1.0, -1.0):
            changed = context.clone()
            lengths.set(changed, lengths.default + sign * step)
            ends.append(plant.calc_vdot(changed))
        np.testing.assert_allclose(
            column, (ends[0] - ends[1]) / 2e-5, atol=1e-7 * np.abs(model.D).max()
        )
        assert np.any(column) == (k != 1)  # the second bar is on the world


# Refusals ----------------------------------------------------------------------------------------


class Moved(Bars):
    """Bars that claim to change with the motion."""

    def declare_inertias(self, calc: Any, **_: Any) -> None:
        super().declare_inertias(calc, prerequisites=self.position_ports)


def test_inertia_that_depends_on_the_motion_is_refused() -> None:
    words = "expected inertias that do not depend on the motion"
    with pytest.raises(fx.errors.DeclarationError, match=words):
        Moved("bar", {"A": fx.Body("body")}, [1.0])


def test_too_few_inertias_are_refused() -> None:
    builder = fx.PlantBuilder("plant")
    body = builder.add_body("body", fx.SpatialInertia(1.0))
    bars = builder.add_force_element(Bars("bars", {"A": body, "B": builder.world}, [1.0]))
    context = builder.build().create_default_context()
    words = "inertias of 'bars': expected 2, one for each of its frames; found 1"
    with pytest.raises(fx.errors.EvaluationError, match=words):
        bars.inertia_ports[0].eval(context)
