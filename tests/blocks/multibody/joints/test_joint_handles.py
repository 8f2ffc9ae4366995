"""Handles of joint coordinates stand for paths, and no handle gives way to a value."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError


class Door(NamedTuple):
    servo: fx.Diagram
    axis: fx.RevoluteJoint
    puck: fx.PlanarJoint
    hinge: fx.DoorHinge
    panel: fx.Body
    plant: fx.Plant


@pytest.fixture(scope="module")
def door() -> Door:
    """A driven door and a sliding puck in one plant, inside of a diagram."""
    plant = fx.PlantBuilder("door")
    panel = plant.add_body("panel", fx.SpatialInertia.point_mass(1.0), com=(0, 1, 0))
    disk = plant.add_body("disk", fx.SpatialInertia.solid_sphere(mass=1.0, radius=0.1))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    puck = plant.add_joint(fx.PlanarJoint("puck", plant.world, disk, damping=[1.0, 2.0, 3.0]))
    hinge = plant.add_force_element(
        fx.DoorHinge(
            "hinge",
            axis,
            spring_constant=3.0,
            static_friction_torque=0.0,
            dynamic_friction_torque=0.0,
            catch_torque=0.0,
        )
    )
    plant.add_actuator("motor", axis)
    builder = fx.DiagramBuilder("servo")
    pid = fx.PIDController("pid", kp=9.0, ki=5.0)
    built = builder.add(plant.build())
    builder.add_all(fx.Step("target", to=0.3), pid)
    builder.connect_chain("target", "pid.setpoint")
    builder.connect(axis.angle, "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return Door(builder.build(), axis, puck, hinge, panel, built)


@pytest.fixture(scope="module")
def result(door: Door) -> fx.results.SimulationResult:
    context = door.servo.create_default_context()
    door.puck.velocities.set(context, [1.0, 2.0, 3.0])
    return fx.simulate(door.servo, 2.0, context=context)


def test_a_result_is_read_by_handles_of_coordinates(
    door: Door, result: fx.results.SimulationResult
) -> None:
    axis, puck = door.axis, door.puck
    for handle in (axis.angle, axis.positions):
        np.testing.assert_array_equal(result[handle], result["door.axis.angle"])
    times = [0.5, 1.0]
    for handle in (axis.rate, axis.angular_rate, axis.velocities):
        np.testing.assert_array_equal(
            result.sample(handle, times), result.sample("door.axis.rate", times)
        )
    whole, moved, turned = result.sample_all(
        [puck.positions, puck.translation, puck.rotation], times
    )
    assert moved.shape == (2, 2)
    np.testing.assert_array_equal(moved, whole[:, :2])
    np.testing.assert_array_equal(turned, whole[:, 2])
    table = result.columns([axis.angle, puck.translation, puck.rotation], times)
    assert list(table) == [
        "time",
        "door.axis.angle",
        "door.puck.translation[x]",
        "door.puck.translation[y]",
        "door.puck.q[qz]",
    ]
    assert [axes.get_ylabel() for axes in result.plot(axis.angle, puck.translation).axes] == [
        "door.axis.angle [rad]",
        "door.puck.translation",
    ]


@pytest.mark.full
def test_sweeps_and_batches_take_handles_of_coordinates(door: Door) -> None:
    servo, axis, puck = door.servo, door.axis, door.puck
    places = [[1.0, 2.0], [3.0, 4.0]]
    values: dict[Any, Any] = {axis.angle: [0.1, 0.2], puck.translation: places}
    sweep = fx.sweep(servo, values, 0.5, signals=[axis.angle, puck.translation], times=[0.0, 0.5])
    assert sweep.signals == ("door.axis.angle", "door.puck.translation")
    assert sweep[axis.angle][:, 0].tolist() == [0.1, 0.2]
    np.testing.assert_array_equal(sweep[puck.translation][:, 0], places)
    contexts = [sweep.context(k) for k in range(2)]
    assert fx.evaluate_batch(servo, [axis.angle], contexts)[0].tolist() == [0.1, 0.2]
    assert sweep.metric("at", axis.angle).tolist() == [0.0, 0.0]


def test_contexts_linear_models_equations_and_equilibria_take_them(door: Door) -> None:
    servo, axis, puck = door.servo, door.axis, door.puck
    context = servo.create_default_context()
    context.set(axis.angle, 0.25)
    context.set(puck.translation, [1.0, 2.0])
    assert context.get("door.axis.angle") == 0.25
    assert context.get(puck.translation).tolist() == [1.0, 2.0]
    assert context.get("door.puck.q").tolist() == [1.0, 2.0, 0.0]
    model = fx.linearize(servo, context, "target.to", [axis.angle, puck.rotation])
    assert model.output_names == ["door.axis.angle[q]", "door.puck.q[qz]"]
    assert model.C.sum(axis=1).tolist() == [1.0, 1.0]
    assert fx.equation(servo, axis.angle).inputs == ("door.tree.x[axis_q]",)
    held = fx.equilibrium(servo, context, fixed=[puck.positions, puck.velocities])
    assert held.context.get(puck.translation).tolist() == [1.0, 2.0]
    assert held.context.get(axis.angle) == pytest.approx(0.3)


def test_what_no_output_shows_is_refused_with_another_way(
    door: Door, result: fx.results.SimulationResult
) -> None:
    with pytest.raises(UnknownNameError, match=r"Call axis\.pose\.get\(context\)"):
        result.sample(door.axis.pose, [1.0])
    with pytest.raises(UnknownNameError, match="Name one of its items: 'position', "):
        result.sample(door.hinge, [1.0])  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="expected a path, or the handle"):
        result[3]  # type: ignore[index]
    unbuilt = fx.RevoluteJoint("axis", fx.Body("wall"), fx.Body("panel"), axis=(0, 0, 1))
    with pytest.raises(DeclarationError, match=r"call build\(\) first"):
        result.sample(unbuilt.angle, [1.0])


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        ("hinge", "spring_constant", r"Call hinge\.spring_constant\.set\(context, 4\.5\)"),
        ("hinge", "stored_energy", "The block computes it"),
        ("hinge", "position", r"Call hinge\.position\.fix\(context, 4\.5\)"),
        ("axis", "angle", r"Call axis\.angle\.set\(context, 4\.5\)\. Set axis\.default_angle"),
        ("axis", "damping", r"Call axis\.damping\.set\(context, 4\.5\)"),
        ("axis", "positions", r"Call axis\.positions\.set\(context, 4\.5\)"),
        ("axis", "locked", r"Call axis\.locked\.set\(context, 4\.5\)"),
        ("puck", "translation", r"Call puck\.translation\.set\(context, 4\.5\)"),
        ("panel", "mass", r"Call panel\.mass\.set\(context, 4\.5\)"),
        ("plant", "gravity", r"Call door\.gravity\.set\(context, 4\.5\)"),
    ],
)
def test_a_value_in_the_place_of_a_handle_is_refused(
    door: Door, owner: str, name: str, remedy: str
) -> None:
    thing = getattr(door, owner)
    before = repr(getattr(thing, name))
    with pytest.raises(DeclarationError, match=f"Cannot assign 4.5 to '{name}' .*{remedy}"):
        setattr(thing, name, 4.5)
    assert repr(getattr(thing, name)) == before


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        ("axis", "Locked", "found no attribute of that name. Did you mean 'locked'?"),
        ("axis", "lock", "found a method. Call axis.lock(...)"),
        ("axis", "dampings", "Did you mean 'damping'?"),
        ("panel", "density", "found no attribute of that name."),
        ("plant", "gravitation", "Did you mean 'gravity'?"),
        ("plant", "set_positions", "Call door.set_positions(...)"),
    ],
)
def test_an_attribute_is_not_made_up(door: Door, owner: str, name: str, remedy: str) -> None:
    thing = getattr(door, owner)
    before = vars(thing).copy()
    with pytest.raises(
        DeclarationError, match=f"Cannot assign 4.5 to '{name}' .*{re.escape(remedy)}"
    ):
        setattr(thing, name, 4.5)
    assert vars(thing) == before


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        ("axis", "angel", "angle"),
        ("axis", "rat", "rate"),
        ("puck", "translatoin", "translation"),
        ("panel", "mas", "mass"),
        ("plant", "gravitation", "gravity"),
    ],
)
def test_a_misspelled_handle_is_answered_with_the_one_that_was_meant(
    door: Door, owner: str, name: str, meant: str
) -> None:
    thing = getattr(door, owner)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Did you mean '{meant}'"):
        getattr(thing, name)
    assert not hasattr(thing, "of_nothing_alike")


def test_what_is_locked_is_read_by_its_handle(door: Door) -> None:
    context = door.servo.create_default_context()
    door.axis.lock(context)
    assert door.axis.locked.get(context) == 1.0
    door.axis.locked.set(context, 0.0)
    assert not door.axis.is_locked(context)
    assert door.plant.gravity is door.plant.tree.gravity


def test_before_the_plant_is_built_the_default_is_named() -> None:
    joint = fx.RevoluteJoint("axis", fx.Body("wall"), fx.Body("panel"), axis=(0, 0, 1))
    with pytest.raises(DeclarationError, match=r"Set axis\.default_damping before"):
        joint.damping = 0.5  # type: ignore[misc, assignment]
    joint.default_damping = 0.5
    with pytest.raises(AttributeError, match="no setter"):
        joint.num_positions = 3  # type: ignore[misc]


def test_motors_say_where_their_constants_are_set() -> None:
    builder = fx.PlantBuilder("door")
    panel = builder.add_body("panel", fx.SpatialInertia.solid_box(mass=9.0, size=(1, 1, 1)))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    motor: Any = builder.add_actuator("motor", axis, gear_ratio=2.0)
    with pytest.raises(DeclarationError, match=r"For all contexts, pass gear_ratio= where"):
        motor.gear_ratio = 3.0
    builder.build()
    with pytest.raises(DeclarationError, match=r"Call motor\.gear_ratio\.set\(context, 3\.0\)"):
        motor.gear_ratio = 3.0
    for name in ("default_gear_ratio", "effort_limit", "name", "misspelled"):
        with pytest.raises(DeclarationError, match=f"Cannot set '{name}' of motor 'motor' to 3"):
            setattr(motor, name, 3.0)
    assert motor.gear_ratio.default == motor.default_gear_ratio == 2.0


def test_a_block_may_still_replace_handles_by_handles_and_values_by_values() -> None:
    class Twice(fx.LeafSystem):
        def __init__(self) -> None:
            super().__init__("twice")
            self.gain: Any = 3.0
            self.gain = 4.0
            self.gain = self.declare_numeric_parameter("gain", self.gain)
            self.gain = self.declare_numeric_parameter("other", 5.0)

    assert Twice().gain.default == 5.0
