"""Whatever goes wrong in a mechanism, each reading ends with an error that names the culprit.

Each test runs against an alarm: a simulation that spins for ever fails instead of blocking the
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import (
    ContextError,
    EvaluationError,
    NonFiniteError,
    ValueRefusedError,
)
from flexure.solvers.native.llvm.library import available
from tests.support.mechanics.mechanisms import BOX, arm
from tests.support.native.native import needs_llvmlite
from tests.support.tiers import by_turn, thinned

pytestmark = pytest.mark.timeout(30, method="signal")

SOFT: dict[str, Any] = {
    "torque_stiffness": 1e-3,
    "torque_damping": 0.0,
    "force_stiffness": 9.0,
    "force_damping": 0.0,
}

every_reading = pytest.mark.parametrize(
    "compiled",
    [False, "python", pytest.param("native", marks=needs_llvmlite), True],
    ids=["interpreted", "straight line", "native", "as possible"],
)
#: Those that are everywhere, or all, for tests in which they have their turns.
READINGS = [False, "python", "native", True] if available() else [False, "python", True]


def text_of(error: BaseException) -> str:
    """The message and the notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def refusal(
    plant: fx.System, context: fx.Context | None, compiled: Any, **options: Any
) -> tuple[str, float]:
    """Simulate up to an error of the equations; return its text and where the context is left."""
    simulator = fx.Simulator(plant, context, compiled=compiled, **options)
    with pytest.raises(EvaluationError) as caught:
        simulator.advance_to(3.0)
    assert np.isfinite(simulator.context.continuous_state).all()
    return text_of(caught.value), simulator.context.time


# Positions without meaning -----------------------------------------------------------------------


def turning_joint(kind: type[fx.multibody.Joint]) -> tuple[fx.Plant, fx.Context]:
    """A free body with angles that turns about the pitch axis, close to gimbal lock."""
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    joint: Any = builder.add_joint(kind("culprit", builder.world, builder.add_body("arm", BOX)))
    plant = builder.build()
    context = plant.create_default_context()
    joint.angles.set(context, [0.0, 1.5, 0.0])
    joint.angular_velocity.set(context, [0.0, 1.0, 0.0])
    return plant, context


def turning_bushing() -> tuple[fx.Plant, fx.Context]:
    """A body on an axis that turns in a soft bushing, close to gimbal lock."""
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    body = builder.add_body("arm", BOX)
    joint = builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, (0, 1, 0)))
    builder.add_force_element(fx.LinearBushingRollPitchYaw("culprit", builder.world, body, **SOFT))
    plant = builder.build()
    context = plant.create_default_context()
    joint.angle.set(context, 1.5)
    joint.angular_rate.set(context, 1.0)
    return plant, context


GIMBAL_LOCKS: dict[str, tuple[Callable[[], tuple[fx.Plant, fx.Context]], str]] = {
    "ball joint": (lambda: turning_joint(fx.BallRpyJoint), "BallQuaternionJoint"),
    "floating joint": (lambda: turning_joint(fx.RpyFloatingJoint), "QuaternionFloatingJoint"),
    "bushing": (turning_bushing, "LinearBushing"),
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "method", "compiled"),
    thinned(by_turn(GIMBAL_LOCKS, ["auto", "Rodas5P", "DOP853"], last=READINGS), fast=4),
)
def test_gimbal_lock_ends_a_simulation(name: str, method: str, compiled: Any) -> None:
    make, alternative = GIMBAL_LOCKS[name]
    text, time = refusal(*make(), compiled, method=method, max_step=5e-4)
    pattern = rf"'culprit'.*away from gimbal lock at ±90.*a pitch of 89\.[59].*{alternative}"
    assert re.search(pattern, text, re.DOTALL), text
    found = re.search(r"while computing .* at t = (0\.0\d+)", text)
    assert found is not None, text
    assert 0.06 < time <= float(found.group(1)) + 1e-9 < 0.0708


@pytest.mark.parametrize("kind", [fx.BallRpyJoint, fx.RpyFloatingJoint])
def test_in_gimbal_lock_poses_and_accelerations_are_known_all_the_same(
    kind: type[fx.multibody.Joint],
) -> None:
    plant, context = turning_joint(kind)
    joint: Any = plant.joint("culprit")
    joint.angles.set(context, [0.0, np.pi / 2, 0.0])
    R = plant.body("arm").pose(context).R
    np.testing.assert_allclose(R, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(plant.calc_vdot(context), 0.0, atol=1e-15)
    with pytest.raises(EvaluationError, match=r"'culprit'.*a pitch of 90 degrees"):
        plant.eval_time_derivatives(context)


def point_on_rail(element: Callable[[fx.Body, fx.Body], fx.multibody.ForceElement]) -> fx.Plant:
    """A body whose origin is that of the world, with an element between them."""
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    body = builder.add_body("bob", fx.SpatialInertia.point_mass(1.0))
    builder.add_joint(fx.PrismaticJoint("slide", builder.world, body, (1, 0, 0)))
    builder.add_force_element(element(builder.world, body))
    return builder.build()


def spring(world: fx.Body, body: fx.Body) -> fx.multibody.ForceElement:
    ends = (world, (0, 0, 0), body, (0, 0, 0))
    return fx.LinearSpringDamper("spring", *ends, free_length=1.0, stiffness=1.0, damping=0.1)


def bumper(world: fx.Body, body: fx.Body) -> fx.multibody.ForceElement:
    ends = (world, (0, 0, 0), body, (0, 0, 0))
    return fx.Bumper("spring", *ends, free_length=1.0, deflections=[1.0], forces=[1.0])


def cable(world: fx.Body, body: fx.Body) -> fx.multibody.ForceElement:
    ends = (world, (0, 0, 0), body, (0, 0, 0))
    return fx.Cable("spring", *ends, free_length=1.0, deflections=[1.0], forces=[1.0])


@every_reading
@pytest.mark.parametrize("element", [spring, bumper])
def test_the_ends_of_a_spring_may_not_meet(element: Any, compiled: Any) -> None:
    text, time = refusal(point_on_rail(element), None, compiled)
    assert "Cannot evaluate the force of 'spring'" in text
    assert "0 m apart" in text
    assert "Keep the points apart" in text
    assert "at t = 0" in text
    assert time == 0.0


@every_reading
def test_the_ends_of_a_slack_cable_may_meet(compiled: Any) -> None:
    result = fx.simulate(point_on_rail(cable), 1.0, compiled=compiled)
    np.testing.assert_array_equal(result.context.continuous_state, [0.0, 0.0])


def test_a_quaternion_of_zeros_is_refused_however_it_is_set() -> None:
    builder = fx.PlantBuilder("plant")
    builder.add_body("body", BOX)
    plant = builder.build()
    context = plant.create_default_context()
    joint: Any = plant.joint("body")
    sets: list[Callable[[], None]] = [
        lambda: joint.quaternion.set(context, np.zeros(4)),
        lambda: joint.positions.set(context, np.zeros(7)),
        lambda: plant.set_positions(context, np.zeros(7)),
        lambda: context.set("tree.x", np.zeros(13)),
        lambda: context.set("tree.x[body_qw]", 0.0),
        lambda: context.set("body.q", np.zeros(7)),
        lambda: setattr(context, "continuous_state", np.zeros(13)),
    ]
    before = context.clone()
    for set_zeros in sets:
        with pytest.raises(ValueRefusedError, match=r"joint 'body'.* a quaternion \(w, x, y, z\)"):
            set_zeros()
    assert context == before


# Numbers that are none ---------------------------------------------------------------------------


def driven(bad: float, port: str) -> fx.Diagram:
    """An arm that something drives, which breaks at t = 0.5."""
    builder, link, axis = arm()
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=2.0))
    builder.add_actuator("motor", axis)
    builder.add_external_force("push", link)
    plant = builder.build()
    size = plant.input_port(port).size or 0
    rig = fx.DiagramBuilder("rig")
    rig.add(plant)
    rig.add(
        fx.TimeFunction("drive", lambda t: np.where(t >= 0.5, bad, 1.0) * np.ones(size), size=size)
    )
    rig.connect("drive.y", f"arm.{port}")
    return rig.build()


@pytest.mark.full
@every_reading
@pytest.mark.parametrize("bad", thinned([np.nan, np.inf], fast=1))
@pytest.mark.parametrize("port", ["motor", "push", "generalized_force"])
def test_a_drive_that_breaks_is_found_behind_the_bodies(
    port: str, bad: float, compiled: Any
) -> None:
    simulator = fx.Simulator(driven(bad, port), compiled=compiled)
    with pytest.raises(NonFiniteError, match=rf"found {bad} in component 0 of output port") as e:
        simulator.advance_to(2.0)
    assert "'drive.y'" in str(e.value)
    assert e.value.time == pytest.approx(0.5, abs=0.03)
    assert simulator.context.time <= 0.5 + 1e-12
    assert np.isfinite(simulator.context.continuous_state).all()


class Broken(fx.multibody.JointForceElement):
    """An element whose force is a root of a negative number beyond an angle."""

    def calc_generalized_force(self, context: Any) -> Any:
        return -np.sqrt(0.5 - self.position(context))

    def calc_stored_energy(self, context: Any) -> Any:
        return 0.0

    def calc_conservative_power(self, context: Any) -> Any:
        return 0.0

    def calc_non_conservative_power(self, context: Any) -> Any:
        return self.calc_generalized_force(context) * self.velocity(context)


@every_reading
def test_an_element_that_leaves_its_domain_is_named(compiled: Any) -> None:
    builder, _, axis = arm(gravity=(0, 0, 0))
    builder.add_force_element(Broken("broken", axis))
    plant = builder.build()
    context = plant.create_default_context()
    axis.angular_rate.set(context, 3.0)
    simulator = fx.Simulator(plant, context, compiled=compiled)
    with pytest.raises(NonFiniteError, match=r"output port 'broken\.generalized_force'"):
        simulator.advance_to(2.0)
    assert 0.3 < axis.angle.get(simulator.context) <= 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_do_not_get_into_a_context(bad: float) -> None:
    builder, _, axis = arm()
    hinge = builder.add_force_element(fx.DoorHinge("hinge", axis))
    builder.add_actuator("motor", axis)
    plant = builder.build()
    context = plant.create_default_context()
    before = context.clone()
    sets: list[Callable[[], None]] = [
        lambda: hinge.spring_constant.set(context, bad),
        lambda: axis.damping.set(context, [bad]),
        lambda: axis.angle.set(context, bad),
        lambda: axis.angular_rate.set(context, bad),
        lambda: plant.set_positions(context, [bad]),
        lambda: plant.set_velocities(context, [bad]),
        lambda: plant.input_port("motor").fix(context, bad),
        *(
            lambda path=path: context.set(path, bad * np.ones(np.shape(before.get(path))))
            for path in (
                "link.mass",
                "link.com",
                "link.unit_inertia",
                "tree.gravity",
                "axis.locked",
            )
        ),
    ]
    for set_bad in sets:
        with pytest.raises(ValueRefusedError, match="expected finite numbers"):
            set_bad()
    assert context == before


# Bodies without mass -----------------------------------------------------------------------------


def double_pendulum(tip: fx.SpatialInertia, kind: str = "revolute") -> fx.Plant:
    """An upper body on an axis, and a tip on a joint of some kind."""
    builder = fx.PlantBuilder("plant")
    upper = builder.add_body("upper", BOX, com=(0.0, 0.0, -0.5))
    lower = builder.add_body("tip", tip, com=(0.0, 0.0, -0.3))
    builder.add_joint(fx.RevoluteJoint("shoulder", builder.world, upper, (0, 1, 0)))
    end = builder.add_frame("end", upper, (np.eye(3), (0.0, 0.0, -1.0)))
    elbows: dict[str, Callable[[], fx.multibody.Joint]] = {
        "revolute": lambda: fx.RevoluteJoint("elbow", end, lower, (0, 1, 0)),
        "prismatic": lambda: fx.PrismaticJoint("elbow", end, lower, (1, 0, 0)),
        "universal": lambda: fx.UniversalJoint("elbow", end, lower),
        "ball": lambda: fx.BallQuaternionJoint("elbow", end, lower),
        "weld": lambda: fx.WeldJoint("elbow", end, lower),
    }
    builder.add_joint(elbows[kind]())
    return builder.build()


def assert_names_the_joint(text: str, joint: str = "elbow") -> None:
    assert f"Cannot accelerate joint '{joint}'" in text
    assert "Give the bodies that it moves a mass and, where they rotate, moments of inertia" in text
    assert "'tree.joint_accelerations' at t = 0" in text


@every_reading
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal", "ball"])
def test_a_tip_without_mass_is_refused(kind: str, compiled: Any) -> None:
    plant = double_pendulum(fx.SpatialInertia.point_mass(0.0), kind)
    text, time = refusal(plant, None, compiled)
    assert_names_the_joint(text)
    assert time == 0.0


@every_reading
def test_a_mass_that_is_set_to_zero_is_refused(compiled: Any) -> None:
    plant = double_pendulum(fx.SpatialInertia.point_mass(1.0))
    context = plant.create_default_context()
    context.set("tip.mass", 0.0)
    assert_names_the_joint(refusal(plant, context, compiled)[0])
    context.set("tip.mass", 1e-3)
    assert fx.simulate(plant, 0.1, context=context, compiled=compiled).outcome == "completed"


@pytest.mark.parametrize(
    ("make", "joint"),
    [
        (lambda: double_pendulum(fx.SpatialInertia.point_mass(1.0), "ball"), "elbow"),
        (lambda: lonely_point(is_free=False), "joint"),
        (lambda: lonely_point(is_free=True), "bob"),
    ],
    ids=["a rod without thickness on a ball joint", "a point on its axis", "a free point"],
)
def test_a_point_that_nothing_keeps_from_turning_is_refused(
    make: Callable[[], fx.Plant], joint: str
) -> None:
    plant = make()
    with pytest.raises(EvaluationError) as caught:
        plant.calc_vdot(plant.create_default_context())
    assert_names_the_joint(text_of(caught.value), joint)


def lonely_point(*, is_free: bool) -> fx.Plant:
    """A mass at its own origin, on an axis through it or free."""
    builder = fx.PlantBuilder("plant")
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(1.0))
    if not is_free:
        builder.add_joint(fx.RevoluteJoint("joint", builder.world, bob, (0, 1, 0)))
    return builder.build()


@every_reading
def test_a_tip_without_mass_may_be_locked_or_welded(compiled: Any) -> None:
    locked = double_pendulum(fx.SpatialInertia.point_mass(0.0))
    context = locked.create_default_context()
    locked.joint("elbow").lock(context)
    welded = double_pendulum(fx.SpatialInertia.point_mass(0.0), "weld")
    found = []
    for plant, start in ((locked, context), (welded, welded.create_default_context())):
        shoulder: Any = plant.joint("shoulder")
        shoulder.angle.set(start, 1.0)
        result = fx.simulate(plant, 1.0, context=start, compiled=compiled)
        found.append(shoulder.angle.get(result.context))
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert found[0] < 0.5


@pytest.mark.parametrize("position", [0, 1])
def test_one_mass_of_zero_fails_one_run_of_a_sweep(position: int) -> None:
    plant = double_pendulum(fx.SpatialInertia.point_mass(1.0))
    masses = np.array([1.0, 2.0, 3.0])
    masses[position] = 0.0
    table = fx.sweep(plant, {"tip.mass": masses}, 0.5)
    assert [*table.failures] == [position]
    for k, final in enumerate(table.final_states):
        assert np.all(np.isnan(final) == (k == position))
    with pytest.raises(EvaluationError) as caught:
        fx.simulate(plant, 0.5, context=table.context(position))
    assert_names_the_joint(text_of(caught.value))


def test_bodies_without_mass_have_no_center() -> None:
    builder = fx.PlantBuilder("plant")
    builder.add_body("body", BOX)
    plant = builder.build()
    context = plant.create_default_context()
    context.set("body.mass", 0.0)
    with pytest.raises(EvaluationError, match="at least one body with a mass"):
        plant.output_port("center_of_mass").eval(context)


# Stiffness and stops -----------------------------------------------------------------------------


@pytest.mark.full
@every_reading
def test_a_stiff_hinge_gets_a_method_for_stiff_equations(compiled: Any) -> None:
    builder, _, axis = arm()
    builder.add_force_element(fx.DoorHinge("hinge", axis, motion_threshold=1e-4))
    plant = builder.build()
    context = plant.create_default_context()
    axis.angle.set(context, 1.0)
    simulator = fx.Simulator(plant, context, compiled=compiled)
    simulator.advance_to(1.0)
    assert re.search(
        r"Rodas5P, because the diagram is stiff: time constant .* tree\.x\[axis_w\]",
        simulator.explain(),
    )
    assert axis.angle.get(simulator.context) == pytest.approx(-0.390187, abs=1e-5)
    assert simulator.statistics.steps < 1000


@pytest.mark.full
@every_reading
@pytest.mark.parametrize("damping", thinned([1.0, 0.0, 1e3], fast=1))
def test_a_ball_bounces_on_a_stop_without_end(damping: float, compiled: Any) -> None:
    builder = fx.PlantBuilder("plant")
    ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    fall = builder.add_joint(fx.PrismaticJoint("fall", builder.world, ball, (0, 0, 1)))
    builder.add_force_element(
        fx.JointStop("floor", fall, stiffness=1e4, damping=damping, lower=0.0, upper=np.inf)
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    fall.translation.set(context, 0.1)
    simulator = fx.Simulator(plant, context, compiled=compiled)
    start = plant.calc_potential_energy(context)
    simulator.advance_to(2.0)
    context = simulator.context
    lost = start - plant.calc_potential_energy(context) - plant.calc_kinetic_energy(context)
    works = context.get("ledger.works")
    assert lost == pytest.approx(-np.sum(works), abs=1e-3)
    if damping == 0.0:
        assert lost == pytest.approx(0.0, abs=1e-3)
    if damping == 1e3:
        assert fall.translation.get(context) == pytest.approx(-9.81e-4, rel=0.1)


# Locked joints -----------------------------------------------------------------------------------


def test_a_locked_joint_refuses_velocities() -> None:
    plant = double_pendulum(fx.SpatialInertia.point_mass(1.0))
    context = plant.create_default_context()
    shoulder: Any = plant.joint("shoulder")
    plant.set_velocities(context, [1.0, -2.0])
    shoulder.lock(context)
    np.testing.assert_array_equal(plant.get_velocities(context), [0.0, -2.0])
    before = context.clone()
    with pytest.raises(ContextError, match=r"'shoulder'.*while .* locked.*unlock"):
        shoulder.angular_rate.set(context, 1.0)
    with pytest.raises(ContextError, match=r"'shoulder' while it is locked.*unlock"):
        plant.set_velocities(context, [1.0, 0.0])
    assert context == before
    plant.set_velocities(context, [0.0, 3.0])
    shoulder.unlock(context)
    plant.set_velocities(context, [1.0, 3.0])


# Half turns --------------------------------------------------------------------------------------

TWISTED: dict[str, Any] = {**SOFT, "torque_stiffness": [0.0, 1e-3, 0.0]}
UNEVEN: dict[str, Any] = {**SOFT, "torque_stiffness": 0.0, "force_stiffness": [9.0, 4.0, 9.0]}
FREE: dict[str, Any] = {**SOFT, "torque_stiffness": 0.0, "torque_damping": 0.2}


def turned(
    kind: str, constants: dict[str, Any], axis: Any = (1, 0, 0)
) -> tuple[fx.Plant, fx.Context]:
    """A body on an axis that turns in a bushing, not far from 170 degrees."""
    builder = fx.PlantBuilder("plant", gravity=(0, 0, 0))
    body = builder.add_body("arm", BOX)
    joint = builder.add_joint(fx.RevoluteJoint("axis", builder.world, body, axis))
    places = builder.add_frame("foot", builder.world, (0.1, 0.2, 0.3)), body
    builder.add_force_element(
        fx.LinearBushing("culprit", *places, **constants)
        if kind == "gimbal-free"
        else fx.LinearBushingRollPitchYaw(
            "culprit", *places, energy_consistent=kind == "consistent", **constants
        )
    )
    builder.add_energy_ledger()
    plant = builder.build()
    context = plant.create_default_context()
    joint.angle.set(context, np.deg2rad(165.0))
    joint.angular_rate.set(context, 3.0)
    return plant, context


JUMPING: dict[str, tuple[str, dict[str, Any]]] = {
    "twisted": ("gimbal-free", {**SOFT, "torque_stiffness": [0.0, 0.0, 1e-3]}),
    "uneven": ("gimbal-free", UNEVEN),
    "rolled": ("consistent", {**SOFT, "torque_stiffness": [1e-3, 0.0, 0.0]}),
    "uneven roll": ("consistent", UNEVEN),
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "method", "compiled"),
    thinned(by_turn(JUMPING, ["auto", "Rodas5P", "rk4"], last=READINGS), fast=5),
)
def test_bushings_end_a_simulation_before_their_springs_jump(
    name: str, method: str, compiled: Any
) -> None:
    if (method, compiled) == ("rk4", "native"):
        pytest.skip("steps of a fixed length have no native loop")
    options: dict[str, Any] = {"step" if method == "rk4" else "max_step": 1e-3}
    plant, context = turned(*JUMPING[name])
    text, time = refusal(plant, context, compiled, method=method, **options)
    pattern = (
        r"springs of 'culprit': .*less than 170 degrees.*jump at a half turn.*by 17[01]\.\d+ deg"
    )
    assert re.search(pattern, text, re.DOTALL), text
    found = re.search(r"while computing .* at t = (0\.0\d+)", text)
    assert found is not None, text
    assert 0.026 < time <= float(found.group(1)) + 1e-9 < 0.032


@needs_llvmlite
@pytest.mark.parametrize("kind", ["gimbal-free", "consistent"])
def test_coarse_steps_do_not_miss_the_end_of_the_range(kind: str) -> None:
    plant, context = turned(kind, UNEVEN)
    plant.joint("axis").velocities.set(context, [30.0])
    context.set("axis.angle", 0.0)
    for options in (
        {"rtol": 1e-2},
        {"method": "RK45", "rtol": 1e-2},
        {"method": "rk4", "step": 0.01},
    ):
        refusal(plant, context.clone(), True, **options)


@pytest.mark.full
@every_reading
def test_a_slow_motion_that_can_only_creep_up_to_its_end_is_told_why(compiled: Any) -> None:
    plant, context = turned("gimbal-free", {**SOFT, "torque_stiffness": [0.0, 0.0, 1e-3]})
    context.set("axis.angle", np.deg2rad(169.9))
    context.set("axis.rate", 0.05)  # so slow that the shortest steps do not change the angle
    text, _ = refusal(plant, context, compiled, method="RK45", max_step=1e-3)
    assert "springs of 'culprit'" in text


@pytest.mark.parametrize("compiled", [False, pytest.param("native", marks=needs_llvmlite)])
@pytest.mark.parametrize(
    ("kind", "constants", "axis"),
    [
        ("gimbal-free", FREE, (1, 2, 3)),
        ("consistent", FREE, (1, 0, 0)),
        ("consistent", {**FREE, "torque_stiffness": [0.0, 0.5, 0.5]}, (1, 0, 0)),
    ],
    ids=["gimbal-free", "consistent", "mount that turns about x"],
)
def test_bushings_in_which_nothing_jumps_turn_as_they_like(
    kind: str, constants: dict[str, Any], axis: Any, compiled: Any
) -> None:
    plant, context = turned(kind, {**constants, "torque_damping": 0.0}, axis)
    context.set("axis.rate", 30.0)
    result = fx.simulate(plant, 1.0, context=context, compiled=compiled, rtol=1e-8, atol=1e-8)
    assert np.ptp(result["axis.angle"]) > 3.0 * np.pi
    assert np.ptp(result["ledger.balance"]) < 1e-5


def test_a_sweep_tells_which_bushings_turned_too_far() -> None:
    plant, context = turned("gimbal-free", FREE)
    stiffness = [[0.0] * 3, [0.0, 1e-3, 0.0], [0.0] * 3]
    table = fx.sweep(plant, {"culprit.torque_stiffness": stiffness}, 0.1, context=context)
    assert [*table.failures] == [1]


def test_the_bushing_of_drake_jumps_as_in_drake() -> None:
    plant, context = turned("drake", UNEVEN)
    assert fx.simulate(plant, 0.2, context=context).outcome == "completed"
