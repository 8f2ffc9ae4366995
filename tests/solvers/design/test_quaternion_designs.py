"""Controllers for plants with quaternions and locked joints, designed on the tangent of states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import quaternion_product
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError

BOX = fx.SpatialInertia.solid_box(2.0, size=(1.0, 0.6, 0.4))
OFF_CENTER = (0.05, 0.02, -0.03)
PERIODS = pytest.mark.parametrize("period", [None, 0.05])


def about(axis: tuple[float, ...], degrees: float) -> Any:
    half = np.deg2rad(degrees) / 2.0
    return np.array([np.cos(half), *(np.sin(half) * np.array(axis) / np.linalg.norm(axis))])


def angle(found: Any, wanted: Any) -> Any:
    """Return the angles between orientations in degrees, whatever signs and lengths."""
    lengths = np.linalg.norm(found, axis=-1) * np.linalg.norm(wanted)
    return np.rad2deg(2.0 * np.arccos(np.minimum(np.abs(found @ wanted) / lengths, 1.0)))


def satellite(joint: Any = fx.QuaternionFloatingJoint) -> fx.Plant:
    """A body in space, with thrusters for all forces and torques."""
    builder = fx.PlantBuilder("satellite", gravity=(0.0, 0.0, 0.0))
    hull = builder.add_body("hull", BOX, com=OFF_CENTER)
    builder.add_joint(joint("free", builder.world, hull))
    builder.add_external_force("thrust", hull)
    return builder.build()


def at(plant: fx.Plant, quaternion: Any) -> fx.Context:
    context = plant.create_default_context()
    context.set("free.q", [*quaternion, 0.0, 0.0, 0.0])
    return context


def closed(plant: fx.Plant, controller: fx.System, force: str) -> fx.Diagram:
    """Close the loop of a plant and a feedback of its state, or of its positions."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(plant, controller)
    if any(port.name == "state" for port in controller.input_ports):
        sizes = [plant.find(name).size for name in ("positions", "velocities")]
        builder.add(fx.Multiplexer("state", sizes))
        builder.connect(plant.find("positions"), "state.u1")
        builder.connect(plant.find("velocities"), "state.u2")
        builder.connect("state.y", "controller.state")
    else:
        builder.connect(plant.find("positions"), "controller.y")
    builder.connect("controller.u", plant.find(force))
    return builder.build()


def contains(found: Any, wanted: Any, atol: float) -> None:
    assert np.abs(np.subtract.outer(wanted, found)).min(axis=1).max() < atol


# A free body --------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "period", "wanted", "factor"),
    [
        ("lqr", None, about((1, 0, 0), 0.0), 1.0),
        ("lqr", 0.05, about((1, 2, 3), 100.0), -1.0),
        ("lqr", 0.05, 2.0 * about((0, 0, 1), -170.0), -3.0),
        ("lqg", None, 2.0 * about((0, 0, 1), -170.0), -3.0),
        ("lqg", None, about((1, 2, 3), 100.0), -1.0),
        ("lqg", 0.05, about((1, 2, 3), 100.0), -0.3),
    ],
)
def test_a_free_body_turns_back_by_20_degrees(
    kind: str, period: float | None, wanted: Any, factor: float
) -> None:
    """Wherever it points, and whatever the signs and lengths of its quaternions."""
    plant = satellite()
    model = fx.linearize(plant, at(plant, wanted), ["thrust"], ["positions"], period=period)
    design: Any = (
        fx.lqr(model, Q=4.0, R=1.0) if kind == "lqr" else fx.lqg(model, Q=4.0, R=1.0, W=1.0, V=1e-2)
    )
    assert len(design.poles) == (12 if kind == "lqr" else 24)
    diagram = closed(satellite(), design.to_block("controller"), "thrust")
    context = diagram.create_default_context()
    context.set("satellite.free.q", [*wanted, 0.0, 0.0, 0.0])
    whole = fx.linearize(diagram, context, [], [], period=period)
    assert whole.is_stable
    contains(whole.poles, design.poles, 1e-8)
    if kind == "lqg" or period is None:
        contains(design.poles, whole.poles, 1e-8)
    turned = factor * quaternion_product(about((1, -1, 0.5), 20.0), wanted)
    context.set("satellite.free.q", [*turned, 0.1, 0.0, 0.0])
    result = fx.simulate(diagram, 16.0, context=context)
    away = angle(result["satellite.positions"][:, :4], wanted)
    assert away[0] == pytest.approx(20.0)
    assert away.max() < 20.1
    assert away[-1] < 0.1
    np.testing.assert_allclose(result["satellite.positions"][-1, 4:], 0.0, atol=2e-3)


@PERIODS
def test_angles_in_the_place_of_the_quaternion_give_the_same_design(period: float | None) -> None:
    """Of small turns, roll, pitch and yaw are twice the components x, y and z."""
    found, costs = [], []
    for joint in (fx.QuaternionFloatingJoint, fx.RpyFloatingJoint):
        plant = satellite(joint)
        model = fx.linearize(plant, None, ["thrust"], ["velocities"], period=period)
        is_angles = joint is fx.RpyFloatingJoint
        names = model.state_names[:3] if is_angles else model.state_names[1:4]
        largest = dict.fromkeys(names, 0.2 if is_angles else 0.1)
        largest |= {name: 0.5 for name in model.state_names if name[-2] in "xyz"} | largest
        largest |= dict.fromkeys(model.input_names, 3.0)
        design = fx.lqr(model, largest=largest)
        deviation = np.array([0.02, -0.01, 0.03])  # rad
        turn = deviation if is_angles else np.array([0.0, *deviation / 2.0])
        rest = np.linspace(-0.3, 0.4, 9)
        state = np.concatenate([turn, rest])
        found.append(design)
        costs.append(state @ design.cost @ state)
        np.testing.assert_allclose(
            design.gain @ state, found[0].gain @ np.array([0.0, *deviation / 2.0, *rest]), rtol=1e-8
        )
    assert costs[0] == pytest.approx(costs[1], rel=1e-8)
    np.testing.assert_allclose(
        np.sort_complex(found[0].poles), np.sort_complex(found[1].poles), rtol=1e-6
    )


def test_the_cost_is_what_the_motion_of_the_nonlinear_plant_costs() -> None:
    plant = satellite()
    point = about((1, 2, 3), 100.0)
    model = fx.linearize(plant, at(plant, point), ["thrust"], [])
    Q, R = np.diag(np.linspace(1.0, 3.0, 13)), np.diag(np.linspace(0.5, 1.0, 6))
    design = fx.lqr(model, Q, R)
    diagram = closed(satellite(), design.to_block("controller"), "thrust")
    context = diagram.create_default_context()
    turned = quaternion_product(about((1, -1, 0.5), 0.2), point)
    context.set("satellite.free.q", [*turned, 1e-3, 0.0, -1e-3])
    result = fx.simulate(diagram, 60.0, context=context, rtol=1e-9, atol=1e-13)
    times = np.linspace(0.0, 60.0, 20001)
    x = result.sample("state.y", times) - model.x0
    u = result.sample("controller.u", times)
    cost = np.sum((x @ Q) * x, axis=1) + np.sum((u @ R) * u, axis=1)
    assert np.trapezoid(cost, times) == pytest.approx(x[0] @ design.cost @ x[0], rel=2e-3)


def test_thrusters_without_torque_do_not_reach_the_turns() -> None:
    builder = fx.PlantBuilder("satellite", gravity=(0.0, 0.0, 0.0))
    hull = builder.add_body("hull", BOX)
    builder.add_external_force("thrust", hull)
    model = fx.linearize(
        builder.build(), None, [f"thrust[{k}]" for k in (0, 1, 3, 4, 5)], ["hull.v"]
    )
    message = r"every mode.*the mode at 0 of 'tree\.x\[hull_wz\]'\."
    with pytest.raises(ValueRefusedError, match=message):
        fx.lqr(model, 1.0, 1.0)
    with pytest.raises(ValueRefusedError, match=r"outputs that show .*'tree\.x\[hull_qx\]'"):
        fx.lqe(model, 1.0, 1.0)


@PERIODS
def test_poles_are_placed_for_turns_and_not_for_components(period: float | None) -> None:
    plant = satellite()
    context = at(plant, about((3, 1, -1), 70.0))
    model = fx.linearize(plant, context, ["thrust"], ["positions"], period=period)
    wanted = -np.linspace(1.0, 3.0, 12)
    fast = 3.0 * wanted
    if period is not None:
        wanted, fast = np.exp(period * wanted), np.exp(period * fast)
    with pytest.raises(ValueRefusedError, match=r"12 poles, .* that can move; found shape \(13,\)"):
        fx.place(model, [*wanted, 0.5])
    design = fx.results.OutputFeedbackDesign(
        fx.place(model, wanted), fx.place_observer(model, fast)
    )
    diagram = closed(satellite(), design.to_block("controller"), "thrust")
    start = diagram.create_default_context()
    start.set("satellite.free.q", context.get("free.q"))
    whole = fx.linearize(diagram, start, [], [], period=period)
    np.testing.assert_allclose(np.sort(whole.poles.real), np.sort([*wanted, *fast]), rtol=1e-5)


# Several bodies, locks, mounts --------------------------------------------------------------------


def pair() -> fx.Plant:
    """Two bodies in space with a bushing between them; the second carries a wheel."""
    builder = fx.PlantBuilder("pair", gravity=(0.0, 0.0, 0.0))
    first = builder.add_body("first", BOX, com=OFF_CENTER)
    second = builder.add_body("second", BOX, com=OFF_CENTER)
    wheel = builder.add_body(
        "wheel", fx.SpatialInertia.solid_cylinder(0.3, radius=0.1, length=0.05)
    )
    axle = builder.add_joint(fx.RevoluteJoint("axle", second, wheel, axis=(0, 0, 1), damping=0.1))
    builder.add_actuator("motor", axle)
    stiff = {"torque_stiffness": (6.0, 7.0, 8.0), "force_stiffness": (60.0, 70.0, 80.0)}
    damped = {"torque_damping": (0.1,) * 3, "force_damping": (0.3,) * 3}
    builder.add_force_element(fx.LinearBushing("between", first, second, **stiff, **damped))
    builder.add_external_force("thrust", first)
    return builder.build()


def test_modes_of_the_closed_diagram_have_the_poles_of_the_design() -> None:
    """Two quaternions, of which one is longer than 1, and a wheel that is locked."""
    plant = pair()
    context = plant.create_default_context()
    turn = about((1, 2, -1), 50.0)
    context.set("first.q", [*(1.7 * turn), 0.0, 0.0, 0.0])
    context.set("second.q", [*-turn, 0.0, 0.0, 0.0])
    context.set("axle.locked", 1.0)
    context.set("axle.angle", 0.4)
    model = fx.linearize(plant, context, ["thrust"], [])
    assert (len(model.A), len(model.poles)) == (28, 24)
    design = fx.lqr(model, Q=1.0, R=1.0)
    still = [name for name in model.state_names if "axle" in name]
    assert len(still) == 2
    for name in still:
        assert not design.gain[:, model.state_names.index(name)].any()
    assert np.linalg.norm(design.gain @ model.x0) < 1e-12 + np.linalg.norm(
        design.gain @ np.where(np.arange(28) < 14, 0.0, model.x0)
    )

    diagram = closed(pair(), design.to_block("controller"), "thrust")
    start = diagram.create_default_context()
    for name in ("first.q", "second.q", "axle.locked", "axle.angle"):
        start.set(f"pair.{name}", context.get(name))
    poles = np.concatenate([mode.poles for mode in fx.modes(diagram, start)])
    assert len(poles) == 24
    contains(poles, design.poles, 1e-7)
    contains(design.poles, poles, 1e-7)


def test_a_plant_whose_joints_are_all_locked_is_refused() -> None:
    plant = satellite()
    context = plant.create_default_context()
    context.set("free.locked", 1.0)
    model = fx.linearize(plant, context, ["thrust"], ["positions"])
    assert model.tangent.shape == (13, 0)
    for design in (fx.lqr, fx.lqe):
        with pytest.raises(ValueRefusedError, match="at least one state that can move; found <Lin"):
            design(model, 1.0, 1.0)


def on_mounts() -> fx.Plant:
    """A body on four soft mounts with little damping, and actuators at it."""
    builder = fx.PlantBuilder("rig")
    block = builder.add_body("block", BOX, com=OFF_CENTER)
    stiff = {"torque_stiffness": (0.5,) * 3, "force_stiffness": (300.0, 300.0, 500.0)}
    damped = {"torque_damping": (0.001,) * 3, "force_damping": (0.3,) * 3}
    for k, corner in enumerate([(0.5, 0.3), (0.5, -0.3), (-0.5, 0.3), (-0.5, -0.3)]):
        place = (np.eye(3), (*corner, -0.2))
        foot = builder.add_frame(f"foot{k}", builder.world, place)
        seat = builder.add_frame(f"seat{k}", block, place)
        builder.add_force_element(fx.LinearBushing(f"mount{k}", foot, seat, **stiff, **damped))
    builder.add_external_force("actuators", block)
    return builder.build()


@pytest.mark.full
def test_a_regulator_of_velocities_is_a_skyhook_damper_of_a_body_on_mounts() -> None:
    plant = on_mounts()
    rest = fx.equilibrium(plant).context
    model = fx.linearize(plant, rest, ["actuators"], ["block.position"])
    velocities = [
        name for name in model.state_names if name[-3:-1] in ("wx", "wy", "wz", "vx", "vy", "vz")
    ]
    assert len(velocities) == 6
    largest = dict.fromkeys(velocities, 0.1) | dict.fromkeys(model.input_names, 2.0)
    design = fx.lqr(model, largest=largest)
    diagram = closed(on_mounts(), design.to_block("controller"), "actuators")
    context = diagram.create_default_context()
    context.set("rig.tree.x", rest.get("tree.x"))
    before, after = fx.modes(plant, rest), fx.modes(diagram, context)
    assert len(before) == 6
    assert before.damping_ratios.max() < 0.05
    poles = np.concatenate([mode.poles for mode in after])
    contains(poles, design.poles, 1e-7)
    assert (-poles.real / np.abs(poles)).min() > 0.15


# What linear models tell --------------------------------------------------------------------------


def test_a_static_push_moves_a_body_on_mounts_as_its_linear_model_says() -> None:
    plant = on_mounts()
    rest = fx.equilibrium(plant).context
    model = fx.linearize(plant, rest, ["actuators"], ["block.position"])
    assert model.is_stable
    small = 1e-4
    for k in range(6):
        pushed = rest.clone()
        pushed.set("actuators", small * np.eye(6)[k])
        moved = fx.equilibrium(plant, pushed, tolerance=1e-12).context.get("block.position")
        expected = (moved - rest.get("block.position")) / small
        np.testing.assert_allclose(model.static_gain[:, k], expected, rtol=1e-3, atol=1e-8)
        np.testing.assert_allclose(
            model.frequency_response(0.0)[:, k].real, expected, rtol=1e-3, atol=1e-8
        )


def test_a_root_locus_has_no_pole_for_the_length_of_a_quaternion() -> None:
    builder = fx.PlantBuilder("lamp")
    shade = builder.add_body("shade", BOX, com=(0.0, 0.0, -0.4))
    builder.add_joint(fx.BallQuaternionJoint("hook", builder.world, shade, damping=0.1))
    plant = builder.build()
    locus = fx.root_locus(plant, "hook.damping[2]", [0.1, 0.2, 0.4])
    assert locus.poles.shape == (3, 6)
    assert np.sum(np.abs(locus.poles[0]) < 1e-9) == 1  # it may turn about the vertical
    with pytest.raises(ValueRefusedError, match="at 1: expected 6 poles, as before; found 0"):
        fx.root_locus(plant, "hook.locked", [0.0, 1.0])


# Blocks -------------------------------------------------------------------------------------------


def test_all_quaternions_of_an_orientation_are_answered_alike() -> None:
    gain = np.arange(8.0).reshape(2, 4)
    point = about((1, 2, 3), 140.0)
    block = fx.StateFeedback("feedback", gain, x0=point, quaternions=[0])
    context = block.create_default_context()
    turned = quaternion_product(about((0, 1, 0), 60.0), point)
    for factor in (1.0, -1.0, 0.2, -30.0):
        context.set("state", factor * turned)
        np.testing.assert_allclose(block.u(context), -gain @ (turned - point), rtol=1e-12)


@pytest.mark.parametrize("quaternions", [[1], [-1], ["a"], [0.0]])
def test_a_quaternion_that_is_not_among_the_states_is_refused(quaternions: Any) -> None:
    with pytest.raises(DeclarationError, match="quaternions at places from 0 to 0"):
        fx.StateFeedback("feedback", np.ones(4), x0=[1, 0, 0, 0], quaternions=quaternions)
    with pytest.raises(DeclarationError, match=r"no quaternions; found .* Give the point"):
        fx.StateFeedback("feedback", np.ones(4), quaternions=[0])
