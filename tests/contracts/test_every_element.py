"""What every force element promises about forces, energies and powers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.diagrams.contexts.value_places import Place
from flexure.solvers.analysis.equations.equations import Equations, find_variables
from tests.contracts.catalog import CATALOG, TRIED
from tests.support.mechanics.force_elements import (
    AT_REST,
    BodyMotion,
    carried,
    forces,
    move,
    number,
    random_motion,
)
from tests.support.mechanics.mechanisms import chain, elements_between
from tests.support.mechanics.multibody import random_pose
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_tier, for_each, thinned

#: Makes a fresh element, by its label in the catalog.
ELEMENTS: dict[str, Callable[..., Any]] = {
    label: CATALOG[label]
    for label in TRIED
    if isinstance(kind := CATALOG[label].func, type) and issubclass(kind, fx.multibody.ForceElement)
}
ON_JOINTS = [label for label, make in ELEMENTS.items() if make().joint_ends]
ON_BODIES = [label for label in ELEMENTS if label not in ON_JOINTS]
BETWEEN_BODIES = [label for label in ON_BODIES if len(ELEMENTS[label]().position_ports) == 2]
#: The one element whose springs have no potential, as they have none in Drake.
DRAKE = "LinearBushingRollPitchYaw"
#: Contacts whose springs along the surface act on bodies by way of friction alone.
STICKING = ("Contact that sticks", "Contact that sticks to the ground")

every_element = for_each("label", ELEMENTS)


def moved(
    element: fx.multibody.ForceElement, seed: int = 0, count: int = by_tier(fast=6, full=12)
) -> Iterator[fx.Context]:
    """Yield a context of an element in one random motion after the other."""
    rng, context = np.random.default_rng(seed), element.create_default_context()
    for _ in range(count):
        if isinstance(element, BodyForceElement):
            move(element, context, *(random_motion(rng) for _ in element.attachments))
        for end in element.joint_ends:
            end.position.fix(context, rng.normal(size=end.joint.num_positions))
            end.velocity.fix(context, rng.normal(size=end.joint.num_velocities))
        if element.continuous_state is not None:
            element.continuous_state.set(context, rng.normal(size=element.continuous_state.size))
        yield context


def stop(element: fx.multibody.ForceElement, context: fx.Context) -> None:
    """Bring what moves an element to rest."""
    for port in element.input_ports:
        if port.name.startswith("velocity"):
            port.fix(context, np.zeros(port.size or 0))


def force_and_velocity(element: fx.multibody.ForceElement, context: fx.Context) -> tuple[Any, Any]:
    """Return all forces on what can move, and its velocities, laid end to end."""
    if not isinstance(element, BodyForceElement):
        return (
            np.concatenate([end.force.eval(context) for end in element.joint_ends]),
            np.concatenate([end.velocity.eval(context) for end in element.joint_ends]),
        )
    ends = zip(element.force_ports, element.attachments, strict=True)
    pairs = [(port.eval(context), end.velocity) for port, end in ends if end.velocity is not None]
    return (
        np.concatenate([force for force, _ in pairs]),
        np.concatenate([velocity.eval(context) for _, velocity in pairs]),
    )


def slopes_of_energy(element: fx.multibody.ForceElement, context: fx.Context) -> Any:
    """Return the exact derivatives of the stored energy along the velocities of what moves."""
    if not isinstance(element, BodyForceElement):
        return derivatives_of_energy(element, [end.position for end in element.joint_ends], context)
    ports = element.position_ports
    derivatives = derivatives_of_energy(element, ports, context)
    parts = []
    for port, by_pose in zip(ports, np.split(derivatives, len(ports)), strict=True):
        R = port.eval(context)[:9].reshape(3, 3)
        turns = [np.ravel(fm.skew(axis) @ R) for axis in np.eye(3)]
        parts += [np.array([by_pose[:9] @ turn for turn in turns]), by_pose[9:]]
    return np.concatenate(parts)


def given_inside(element: fx.multibody.ForceElement, context: fx.Context) -> float:
    """Return the power that goes to what is inside, by the derivatives of the energy by states."""
    if element.continuous_state is None:
        return 0.0
    count = element.continuous_state.size
    slopes = all_derivatives_of_energy(element, [], context)[:count]
    return float(-slopes @ element.eval_time_derivatives(context))


def derivatives_of_energy(
    element: fx.multibody.ForceElement, ports: Sequence[fx.diagrams.InputPort], context: fx.Context
) -> Any:
    """Return the exact derivatives of the stored energy by all components of inputs."""
    states = 0 if element.continuous_state is None else element.continuous_state.size
    return all_derivatives_of_energy(element, ports, context)[states:]


def all_derivatives_of_energy(
    element: fx.multibody.ForceElement, ports: Sequence[fx.diagrams.InputPort], context: fx.Context
) -> Any:
    """Return the exact derivatives of the stored energy, those by states first."""
    variables = find_variables(context, ports, "Cannot differentiate")
    equations = Equations(context.clone(), variables, [Place.of(element.stored_energy)])
    assert equations.exact is not None
    return equations.jacobian(equations.point())[-1]


# Energy ------------------------------------------------------------------------------------------


@every_element
def test_an_element_never_makes_energy_beside_what_it_stores(label: str) -> None:
    count = by_tier(fast=60, full=100)
    report = fx.check_passivity(ELEMENTS[label](), num_motions=count)
    assert report.is_passive == (label != DRAKE), report
    assert report.num_motions > 0.8 * count  # bushings refuse what is almost a half turn
    assert report.power_scale > 0.0
    assert report.greatest_mismatch <= 1e-5 * report.power_scale, report


def test_the_bushing_of_drake_makes_none_where_its_stiffnesses_are_equal() -> None:
    assert fx.check_passivity(ELEMENTS[DRAKE](force_stiffness=40.0)).is_passive
    report = fx.check_passivity(ELEMENTS[DRAKE](force_damping=0.0, torque_damping=0.0))
    assert report.greatest_power > 1e-2 * report.power_scale
    assert report.worst is not None


@every_element
def test_the_power_of_the_forces_is_accounted_for(label: str) -> None:
    element, seen = ELEMENTS[label](), 0.0
    for context in moved(element):
        force, velocity = force_and_velocity(element, context)
        conservative = number(element.conservative_power, context)
        total = conservative + number(element.non_conservative_power, context)
        scale = max(1.0, float(np.abs(force) @ np.abs(velocity)))
        assert total == pytest.approx(force @ velocity, abs=1e-12 * scale)
        seen = max(seen, abs(total))
    assert seen > 0.1


@every_element
def test_conservative_power_is_the_negative_rate_of_the_stored_energy(label: str) -> None:
    element = ELEMENTS[label]()
    for context in moved(element, count=8):
        _, velocity = force_and_velocity(element, context)
        slopes = slopes_of_energy(element, context)
        scale = max(1.0, float(np.abs(slopes) @ np.abs(velocity)))
        power = number(element.conservative_power, context)
        inside = given_inside(element, context)
        scale = max(scale, abs(inside))
        assert power == pytest.approx(inside - slopes @ velocity, abs=1e-11 * scale)


@every_element
def test_forces_at_rest_are_the_negative_gradient_of_the_stored_energy(label: str) -> None:
    element, differences = ELEMENTS[label](), []
    for context in moved(element, count=8):
        stop(element, context)
        if label in STICKING and element.continuous_state is not None:  # its foot may slip at once
            element.continuous_state.set(context, np.zeros(element.continuous_state.size))
        force, _ = force_and_velocity(element, context)
        slopes = slopes_of_energy(element, context)
        differences.append(np.max(np.abs(force + slopes)) / max(1.0, np.max(np.abs(slopes))))
    assert (max(differences) < 1e-11) == (label != DRAKE)


@for_each("label", ON_JOINTS)
def test_an_element_on_a_joint_without_motion_loses_nothing(label: str) -> None:
    element = ELEMENTS[label]()
    for context in moved(element):
        stop(element, context)
        assert number(element.conservative_power, context) == 0.0
        assert number(element.non_conservative_power, context) == 0.0


# Forces ------------------------------------------------------------------------------------------


def about_world(F: Any, motion: BodyMotion) -> Any:
    """Return a spatial force about the origin of a body as one about that of the world."""
    return fm.shift_spatial_force(F, -motion.X_WB.p)


@for_each("label", ON_BODIES)
def test_action_and_reaction_are_opposite(label: str) -> None:
    element, seen = ELEMENTS[label](), 0.0
    rng, context = np.random.default_rng(1), element.create_default_context()
    for _ in range(20):
        motions = [
            AT_REST if end.body.is_world else random_motion(rng) for end in element.attachments
        ]
        move(element, context, *motions)
        on_A, on_B = map(about_world, forces(element, context), motions)
        scale = np.max(np.abs(on_A), initial=1.0)
        np.testing.assert_allclose(on_A + on_B, 0.0, atol=1e-13 * scale)
        seen = max(seen, np.max(np.abs(on_A)))
    assert seen > 1.0


@for_each("label", BETWEEN_BODIES)
def test_nothing_changes_when_everything_is_carried_along(label: str) -> None:
    """A rigid motion of all bodies turns forces, and leaves energies and powers as they are."""
    element = ELEMENTS[label]()
    rng, context = np.random.default_rng(2), element.create_default_context()
    turning = {port.name for port in element.force_ports}
    others = [port for port in element.output_ports if port.name not in turning]
    for _ in range(10):
        motions = [random_motion(rng) for _ in element.attachments]
        frame = random_motion(rng)
        move(element, context, *motions)
        before = forces(element, context), [port.eval(context) for port in others]
        move(element, context, *(carried(motion, *frame) for motion in motions))
        scale = max(1.0, *(np.max(np.abs(force)) for force in before[0]))
        for found, force in zip(forces(element, context), before[0], strict=True):
            expected = fm.rotate_spatial(frame.X_WB.R, force)
            np.testing.assert_allclose(found, expected, atol=1e-11 * scale)
        for port, value in zip(others, before[1], strict=True):
            found = port.eval(context)
            np.testing.assert_allclose(found, value, atol=1e-11 * scale, err_msg=port.name)


# In plants ---------------------------------------------------------------------------------------


def test_generalized_forces_at_rest_are_the_negative_gradient_of_the_potential_energy() -> None:
    builder = chain("universal", "planar")
    rng = np.random.default_rng(3)
    first, second, third = (
        builder.add_frame(f"f{k}", body, random_pose(rng)) for k, body in enumerate(builder.bodies)
    )
    bend, plane = builder.joints
    for element in (
        *(each for each in elements_between(first, second, third) if each.name != "drake"),
        fx.JointSpring("bend_spring", bend, stiffness=[7.0, 9.0], nominal_position=0.3),
        fx.JointStop("plane_stop", plane, stiffness=50.0, damping=1.0, lower=-0.1, upper=0.1),
    ):
        builder.add_force_element(element)
    plant = builder.build()
    for _ in range(5):
        context = plant.create_default_context()
        plant.set_positions(context, rng.normal(size=plant.num_positions))
        energy = Equations(context, (), [Place.of(plant.output_port("potential_energy"))])
        assert energy.exact is not None
        slopes = energy.jacobian(energy.point())[-1, : plant.num_positions]
        forces = plant.calc_force_elements_contribution(context)
        found = plant.calc_generalized_forces(context, forces)
        np.testing.assert_allclose(found, -slopes, rtol=1e-10, atol=1e-10)


def free_bodies() -> tuple[fx.Plant, fx.Context]:
    """Three bodies in empty space that turn about each other, with every element between them."""
    rng, builder = np.random.default_rng(4), fx.PlantBuilder("plant", gravity=(0, 0, 0))
    bodies = [
        builder.add_body(f"body{k}", fx.SpatialInertia.solid_box(3.0, size=(1.0, 0.7, 0.8)))
        for k in range(3)
    ]
    for element in elements_between(*(body.frame for body in bodies)):
        builder.add_force_element(element)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    for k, joint in enumerate(plant.joints):
        joint.pose.set(context, fm.RigidTransform(np.eye(3), 0.5 * np.eye(3)[k]))
    plant.set_velocities(context, 0.3 * rng.normal(size=plant.num_velocities))
    return plant, context


def test_bodies_that_only_act_on_each_other_keep_their_momentum() -> None:
    plant, context = free_bodies()
    result = fx.simulate(plant, 3.0, context=context, method="DOP853", rtol=1e-11, atol=1e-12)
    momentum = result["momentum"]
    assert np.all(np.abs(momentum[0]) > 0.01)
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (len(momentum), 1)), atol=1e-9)
    assert np.ptp(result["ledger.balance"]) < 1e-8
    assert np.max(np.ptp(result["ledger.store_balances"], axis=0)) < 1e-8
    motion = np.linalg.norm(np.diff(result["center_of_mass_velocity"], axis=0), axis=1)
    assert np.max(motion) < 1e-9
    assert np.ptp(result["kinetic_energy"]) > 0.1


PERIODS = 10_000


def oscillator(kind: str) -> tuple[fx.Plant, fx.Context]:
    """A body that swings without friction, once a second or about that."""
    builder = fx.PlantBuilder("plant")
    bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(1.0, radius=0.2))
    if kind == "slider":
        joint: fx.multibody.Joint = fx.PrismaticJoint("joint", builder.world, bob, (0, 0, 1))
        element: fx.multibody.ForceElement = fx.JointSpring(
            "spring", joint, stiffness=(2.0 * np.pi) ** 2
        )
    else:
        pivot = builder.add_frame("pivot", bob, (np.eye(3), (0, 0, 0.3)))
        joint = fx.UniversalJoint("joint", builder.world, pivot)
        places = (builder.world, (1, 0, 0), bob, (0, 0, 0))
        element = fx.LinearSpringDamper(
            "spring", *places, free_length=1.0, stiffness=30.0, damping=0.0
        )
    builder.add_joint(joint)
    builder.add_force_element(element)
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [0.5, 0.3][: plant.num_positions])
    return plant, context


@needs_llvmlite
@pytest.mark.parametrize("kind", thinned(["pendulum", "slider"], fast=1))
def test_the_ledger_closes_after_ten_thousand_periods_without_friction(kind: str) -> None:
    plant, context = oscillator(kind)
    simulator = fx.Simulator(
        plant, context, method="DOP853", rtol=1e-11, atol=1e-12, compiled="native"
    )
    names = ("ledger.balance", "ledger.store_balances", "mechanical_energy")
    before = [np.array(simulator.context.get(name)) for name in names]
    simulator.advance_to(float(PERIODS))
    for name, start in zip(names, before, strict=True):
        np.testing.assert_allclose(simulator.context.get(name), start, atol=1e-6, err_msg=name)
    works = simulator.context.get("ledger.works")
    np.testing.assert_array_equal(works, 0.0)
