"""Forces at rest agree with inverse dynamics, their derivatives with differences of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import null_space

import flexure as fx
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError, ValueRefusedError
from flexure.diagrams.contexts.value_places import find_place
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.forces_at_rest import exact_forces
from flexure.solvers.analysis.forces_at_rest.static_coordinates import StaticCoordinates
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from tests.support.mechanics.joints import JOINTS
from tests.support.mechanics.mechanisms import MECHANISMS, random_context
from tests.support.systems.foreign_blocks import Spline
from tests.support.tiers import for_each

ATTEMPT = "Cannot test"
CONSTRAINED = (
    "loops and couplings",
    "wheels and skates",
    "stops and friction",
    "rigid contacts",
    "loaded bearings",
)
#: What has no constraints.
PLAIN = [name for name in MECHANISMS if name not in CONSTRAINED]
BOX = fx.SpatialInertia.solid_box(2.0, size=(0.1, 0.2, 0.3))


def at_rest(plant: fx.Plant, seed: int = 4) -> fx.Context:
    """Draw positions and inputs of a plant that stands still."""
    context = random_context(plant, np.random.default_rng(seed))
    plant.set_velocities(context, np.zeros(plant.num_velocities))
    for joint in plant.joints:
        if joint.num_velocities:
            joint.unlock(context)
    return context


def equations(context: fx.Context, *variables: str, held: tuple[str, ...] = ()) -> StaticEquations:
    places = [find_place(context.system, path) for path in held]
    found = find_variables(context, variables, ATTEMPT)
    return StaticEquations(context.clone(), found, places, attempt=ATTEMPT)


def needed(plant: fx.Plant, context: fx.Context) -> Any:
    """What holds a plant still, by the mass matrix and the accelerations of forward dynamics."""
    return plant.calc_mass_matrix(context) @ plant.calc_vdot(context)


@pytest.mark.full
@for_each("name", PLAIN)
def test_forces_are_those_that_accelerate_and_stiffness_their_differences(name: str) -> None:
    plant = MECHANISMS[name]()
    context = at_rest(plant)
    statics = equations(context)
    expected = needed(plant, context)[statics.coordinates.free]
    scale = 1.0 + np.max(np.abs(expected))
    found = statics.point().forces
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(found, statics.forces(), rtol=1e-12, atol=1e-12 * scale)
    x, n, step = statics.states, len(statics.coordinates), 1e-6
    found = statics.point().stiffness
    for k, direction in enumerate(step * np.eye(n)):
        values = []
        for sign in (1.0, -1.0):
            statics.move_to(statics.coordinates.moved(x, sign * direction))
            values.append(statics.forces())
        column = (values[1] - values[0]) / (2.0 * step)
        scale = 1.0 + np.max(np.abs(found))
        np.testing.assert_allclose(found[:, k] / scale, column / scale, rtol=0.0, atol=1e-8)


def tied() -> tuple[fx.Plant, fx.Context]:
    """An arm on a hinge with a spring, and a free block that a bushing ties to it."""
    builder = fx.PlantBuilder("arm")
    arm = builder.add_body("arm", BOX, com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 1, 0)))
    block = builder.add_body("block", BOX, com=(0.1, 0.0, 0.2))
    builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, block))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=50.0))
    bushing = fx.LinearBushing(
        "bushing",
        arm,
        block,
        torque_stiffness=(100.0, 120.0, 130.0),
        torque_damping=1.0,
        force_stiffness=(1000.0, 1100.0, 1200.0),
        force_damping=1.0,
    )
    builder.add_force_element(bushing)
    plant = builder.build()
    return plant, fx.equilibrium(plant).context


def test_stiffness_is_symmetric_where_conservative_forces_balance() -> None:
    _, context = tied()
    point = equations(context).point()
    assert np.max(np.abs(point.forces)) < 1e-9
    assert point.asymmetry(np.ones(len(point.forces))) <= 1e-9
    assert np.all(np.linalg.eigvalsh(point.stiffness) > 0.0)


def test_a_holder_of_an_output_pushes_with_its_gradient_and_its_curvature() -> None:
    _, context = tied()
    held = ("block.position[z]", "block.pose[2]", "axis.angle")
    statics = equations(context, "tree.gravity[2]", held=held)
    reactions = np.array([3.0, 4.0, 5.0])
    alone, loaded = statics.point(), statics.point(reactions)
    assert np.all(alone.forces + reactions @ alone.directions == loaded.forces)
    x, step = statics.states, 1e-6
    for k, direction in enumerate(step * np.eye(len(statics.coordinates))):
        strokes, forces = [], []
        for sign in (1.0, -1.0):
            statics.move_to(statics.coordinates.moved(x, sign * direction))
            there = statics.point(reactions)
            strokes.append(there.strokes)
            forces.append(there.forces)
        slopes = (strokes[0] - strokes[1]) / (2.0 * step)
        np.testing.assert_allclose(alone.directions[:, k], slopes, atol=1e-9)
        column = (forces[1] - forces[0]) / (2.0 * step)
        np.testing.assert_allclose(loaded.stiffness[:, k], column, atol=1e-5)


def test_derivatives_by_parameters_and_inputs_are_exact() -> None:
    plant, context = tied()
    block = plant.body("block")
    context.set("axis.angle", 0.3)
    names = ("tree.gravity[2]", "block.mass", "spring.stiffness", "generalized_force[0]")
    loads = equations(context, *names).point().loads
    z = block.frame.pose(context).R @ np.array([0.1, 0.0, 0.2])
    x = plant.body("arm").frame.pose(context).R @ np.array([0.5, 0.0, 0.0])
    moment = np.array([-2.0 * x[0], 2.0 * z[1], -2.0 * z[0], 0.0, 0.0, 0.0, 2.0])
    np.testing.assert_allclose(loads[:, 0], moment, atol=1e-12)
    weight = -9.81 * np.array([0.0, z[1], -z[0], 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(loads[:, 1], weight, atol=1e-12)
    np.testing.assert_allclose(loads[:, 2], [-0.3, 0, 0, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(loads[:, 3], [1, 0, 0, 0, 0, 0, 0], atol=0.0)


def test_locked_joints_have_no_unknowns() -> None:
    plant, context = tied()
    plant.joint("free").lock(context)
    statics = equations(context)
    assert statics.coordinates.names == ["axis.angle"]
    assert statics.point().stiffness.shape == (1, 1)
    plant.joint("axis").lock(context)
    with pytest.raises(ValueRefusedError, match="expected a mechanism that can move"):
        equations(context)


def servo() -> fx.Diagram:
    """An arm that a spring and the lag of an actuator hold, with a ledger and an integral."""
    builder = fx.PlantBuilder("arm")
    arm = builder.add_body("arm", BOX, com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 1, 0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=50.0))
    builder.add_actuator("motor", axis)
    builder.add_energy_ledger()
    outer = fx.DiagramBuilder("servo")
    outer.add(builder.build())
    outer.add_all(fx.Gain("gain", -30.0), fx.FirstOrderLag("lag", time_constant=0.1))
    outer.add(fx.Integrator("integral"))
    outer.connect_chain("arm.axis.angle", "gain", "lag", "arm.motor")
    outer.connect("arm.axis.angle", "integral.u")
    return outer.build()


def test_other_states_come_to_rest_and_records_stay() -> None:
    system = servo()
    context = system.create_default_context()
    context.set("arm.axis.angle", 0.2)
    statics = equations(context)
    assert statics.coordinates.names == ["arm.axis.angle", "lag.x"]
    stiffness = statics.point().stiffness
    weight = 2.0 * 9.81 * 0.5
    expected = [[50.0 + weight * np.sin(0.2), -1.0], [300.0, 10.0]]
    np.testing.assert_allclose(stiffness, expected, rtol=1e-12)


def test_the_integral_of_a_controller_is_found() -> None:
    builder = fx.PlantBuilder("arm")
    arm = builder.add_body("arm", BOX, com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 1, 0)))
    builder.add_actuator("motor", axis)
    outer = fx.DiagramBuilder("held")
    outer.add(builder.build())
    outer.add_all(fx.Constant("target", 0.1), fx.PIDController("pid", kp=30.0, ki=20.0))
    outer.connect_chain("target", "pid.setpoint")
    outer.connect_chain("arm.axis.angle", "pid.measurement")
    outer.connect_chain("pid", "arm.motor")
    statics = equations(outer.build().create_default_context())
    assert statics.coordinates.names == ["arm.axis.angle", "pid.x[integral]"]
    np.testing.assert_allclose(statics.point().stiffness, [[30.0, -20.0], [1.0, 0.0]])


def foreign() -> fx.Diagram:
    """An arm that is held by a spring which no symbol goes through."""
    builder = fx.PlantBuilder("arm")
    arm = builder.add_body("arm", BOX, com=(0.5, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, arm, axis=(0, 1, 0)))
    builder.add_actuator("motor", axis)
    outer = fx.DiagramBuilder("sprung")
    outer.add(builder.build())
    outer.add_all(Spline("spline"), fx.Gain("gain", -40.0))
    outer.connect_chain("arm.axis.angle", "spline", "gain", "arm.motor")
    return outer.build()


def test_what_cannot_be_traced_is_differentiated_by_differences() -> None:
    context = foreign().create_default_context()
    statics = equations(context, "gain.gain")
    assert "central differences" in statics.how
    point = statics.point()
    np.testing.assert_allclose(point.stiffness, [[40.0]], rtol=1e-3)
    np.testing.assert_allclose(point.loads, [[0.0]], atol=1e-9)
    with pytest.raises(EvaluationError, match="spline"):
        equations(context, held=("arm.axis.angle",))


def test_traced_equations_serve_other_contexts_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant, context = tied()
    first = equations(context).point()
    monkeypatch.setattr(exact_forces, "trace", None)  # for none is traced again
    other = context.clone()
    plant.find("spring.stiffness").set(other, 70.0)
    second = equations(other).point()
    change = second.stiffness - first.stiffness
    np.testing.assert_allclose(change[0, 0], 20.0, rtol=1e-9)


@pytest.mark.full
def test_constraints_are_met_and_their_multipliers_turn_with_the_rows() -> None:
    """The other route: differences of the forces with given multipliers, from the dynamics."""
    plant = MECHANISMS["loops and couplings"]()
    context = at_rest(plant)
    plant.assemble(context)
    statics = equations(context, "tree.gears_ratio", "drive[0]")
    point = statics.point()
    x, free = statics.states, statics.coordinates.free
    J = calc_equations(plant.tree, statics.context).J[:, free]
    np.testing.assert_allclose(point.rows, J, atol=1e-12)
    multipliers = np.linalg.lstsq(J.T, -statics.forces(), rcond=1e-7)[0]
    np.testing.assert_allclose(point.forces, statics.forces() + multipliers @ J, atol=1e-9)
    columns, step = [], 1e-6
    for direction in step * np.eye(len(free)):
        values = []
        for sign in (1.0, -1.0):
            statics.move_to(statics.coordinates.moved(x, sign * direction))
            rows = calc_equations(plant.tree, statics.context).J[:, free]
            values.append(statics.forces() + multipliers @ rows)
        columns.append((values[1] - values[0]) / (2.0 * step))
    # Away from its axis, the rows of a thread are not those of its errors.
    allowed = null_space(J) / np.max(np.abs(columns))
    np.testing.assert_allclose(
        point.stiffness @ allowed, np.transpose(columns) @ allowed, atol=1e-7
    )
    assert point.error_slopes.shape == (len(point.errors), 2)


def test_constraints_between_velocities_are_refused_by_name() -> None:
    plant = MECHANISMS["wheels and skates"]()
    with pytest.raises(DeclarationError, match="between velocities: '"):
        StaticEquations(plant.create_default_context(), attempt=ATTEMPT)


class OneByOne(fx.BallRpyJoint):
    """A joint whose position rates are written for one velocity at a time."""

    def calc_position_rates(self, q: Any, v: Any) -> Any:
        return super().calc_position_rates(q, np.reshape(v, (3,)))


def test_displacements_of_several_joints_of_each_kind_move_the_states_as_each_joint_says() -> None:
    builder = fx.PlantBuilder("many", gravity=(0.0, 0.0, 0.0))
    rng = np.random.default_rng(3)
    kinds = JOINTS | {"one_by_one": JOINTS["ball_rpy"]._replace(make=OneByOne)}
    for name, kind in kinds.items():
        for k in range(3):
            body = builder.add_body(f"{name}_{k}", BOX)
            options = {**kind.options, **kind.draw(rng)}
            builder.add_joint(kind.make(f"of_{name}_{k}", builder.world, body, **options))
    plant = builder.build()
    context = at_rest(plant)
    coordinates = StaticCoordinates(context)
    x, n = np.asarray(context.store.x), len(coordinates)
    slopes = coordinates.along(np.eye(len(x)), x)
    step = 1e-6
    for k, unit in enumerate(np.eye(n)):
        ends = [coordinates.moved(x, sign * step * unit) for sign in (1.0, -1.0)]
        difference = (ends[0] - ends[1]) / (2.0 * step)
        np.testing.assert_allclose(difference, slopes[:, k], atol=1e-6)
    rate = np.zeros(len(x))
    increments = rng.normal(size=n)
    for joint in plant.joints:
        if joint.num_velocities:
            names = [name for name in coordinates.names if name.startswith(f"{joint.name}.")]
            own = increments[[coordinates.names.index(name) for name in names]]
            q = slice(joint.position_start, joint.position_start + joint.num_positions)
            rate[q] = joint.calc_position_rates(x[q], own)
    np.testing.assert_allclose(slopes @ increments, rate, rtol=1e-13, atol=1e-13)
