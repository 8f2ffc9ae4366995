"""Loops that joints close: against closed forms, other cuts, trees, and the balance of energy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.math import rotation_from_rotation_vector
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from tests.support.mechanics.joints import JOINTS

GROUND, CRANK, COUPLER, ROCKER = 0.9, 0.25, 0.8, 0.6
TURNED = rotation_from_rotation_vector([0.3, -0.8, 0.5])


def rigid_four_bar(crank: float) -> tuple[float, float]:
    """Return the angles of coupler and rocker, by the intersection of two circles."""
    tip = CRANK * np.array([np.cos(crank), np.sin(crank)])
    to_foot = np.array([GROUND, 0.0]) - tip
    distance = np.linalg.norm(to_foot)
    inner = np.arccos((COUPLER**2 + distance**2 - ROCKER**2) / (2.0 * COUPLER * distance))
    coupler = np.arctan2(to_foot[1], to_foot[0]) + inner
    pin = tip + COUPLER * np.array([np.cos(coupler), np.sin(coupler)])
    return float(coupler), float(np.arctan2(pin[1], pin[0] - GROUND))


def four_bar(
    cut: str = "pin", turned: Any = None, kind: str = "revolute", angle: float = 1.5
) -> tuple[fx.Plant, fx.Context]:
    """Build a four-bar linkage whose loop is closed at a pin, and put it together."""
    R = np.eye(3) if turned is None else turned
    plant = fx.PlantBuilder("linkage", gravity=R @ [0.0, 0.0, -9.81])

    def bar(name: str, length: float) -> fx.Body:
        rod = fx.SpatialInertia.thin_rod(2.0 * length, length=length, axis="x")
        return plant.add_body(name, rod, com=(0.5 * length, 0.0, 0.0))

    crank, coupler, rocker = bar("crank", CRANK), bar("coupler", COUPLER), bar("rocker", ROCKER)
    base = plant.add_frame("base", plant.world, (R, np.zeros(3)))
    foot = plant.add_frame("foot", plant.world, (R, R @ [GROUND, 0.0, 0.0]))
    tip = plant.add_frame("tip", crank, (CRANK, 0.0, 0.0))
    ends = (
        plant.add_frame("end", coupler, (COUPLER, 0.0, 0.0)),
        plant.add_frame("top", rocker, (ROCKER, 0.0, 0.0)),
    )
    up = (0, -1, 0)
    joints = {
        "shaft": fx.RevoluteJoint("shaft", base, crank, axis=up, damping=0.1),
        "knee": fx.RevoluteJoint("knee", tip, coupler, axis=up),
        "foot": fx.RevoluteJoint("foot", foot, rocker, axis=up),
        "pin": fx.RevoluteJoint("pin", *ends, axis=up)
        if kind == "revolute"
        else fx.BallQuaternionJoint("pin", *ends),
    }
    for name, joint in joints.items():
        if name == cut:
            plant.add_loop_joint(joint)
        else:
            plant.add_joint(joint)
    plant.add_energy_ledger()
    linkage = plant.build()
    context = linkage.create_default_context()
    coupler_angle, rocker_angle = rigid_four_bar(angle)
    values = {
        "shaft": angle,
        "knee": coupler_angle - angle,
        "foot": rocker_angle,
        "pin": rocker_angle - coupler_angle,
    }
    for name in values.keys() - {cut}:
        linkage.joint(name).positions.set(context, [values[name]])
    return linkage, context


@pytest.mark.full
@pytest.mark.parametrize("cut", ["pin", "knee", "foot"])
@pytest.mark.parametrize("turned", [None, TURNED], ids=["planar", "askew"])
def test_a_four_bar_moves_as_its_closed_form_says_wherever_it_is_cut(cut: str, turned: Any) -> None:
    linkage, context = four_bar(cut, turned)
    result = fx.simulate(linkage, 1.0, context=context, rtol=1e-9, atol=1e-11)
    times = np.linspace(0.0, 1.0, 40)
    crank = result.sample("shaft.angle", times)
    other = "knee.angle" if cut == "foot" else "foot.angle"
    coupler, rocker = np.transpose([rigid_four_bar(angle) for angle in crank])
    expected = np.unwrap(coupler - crank if cut == "foot" else rocker)
    assert np.ptp(crank) > 1.0
    assert result.sample(other, times) == pytest.approx(expected, abs=1e-8)
    assert np.max(np.abs(result[f"{cut}.error"])) < 1e-8
    assert np.ptp(result["ledger.balance"]) < 1e-7


@pytest.mark.parametrize("turned", [None, TURNED], ids=["planar", "askew"])
def test_reactions_are_the_same_wherever_a_loop_is_cut(turned: Any) -> None:
    found = []
    for cut in ("pin", "knee"):
        linkage, context = four_bar(cut, turned)
        linkage.joint("shaft").velocities.set(context, [3.0])
        linkage.assemble(context, fixed="shaft")
        names = ("pin.reaction", "knee.reaction", "shaft.reaction")
        found.append([linkage.output_port(name).eval(context) for name in names])
    # Moments at right angles to the pins are shared as little as the equations can tell.
    assert found[0] == pytest.approx(np.array(found[1]), abs=1e-3)


def test_three_equations_of_a_planar_loop_are_redundant_and_none_with_a_ball() -> None:
    linkage, context = four_bar()
    assembly = linkage.assemble(context)
    assert (assembly.mobility, assembly.num_redundant) == (1, 3)
    linkage, context = four_bar(kind="ball")
    assert linkage.assemble(context).num_redundant == 1  # still one, out of the plane


def test_constraint_rates_are_those_of_the_errors() -> None:
    linkage, context = four_bar(turned=TURNED)
    rng = np.random.default_rng(3)
    q, v = linkage.get_positions(context) + rng.uniform(-0.3, 0.3, 3), rng.uniform(-2.0, 2.0, 3)
    step = 1e-6

    def error(s: float) -> Any:
        linkage.set_positions(context, q + s * v)
        return linkage.output_port("pin.error").eval(context)

    slope = (error(step) - error(-step)) / (2.0 * step)
    linkage.set_positions(context, q)
    linkage.set_velocities(context, v)
    found = calc_equations(linkage.tree, context)
    assert found.rates == pytest.approx(slope, abs=1e-8)
    assert found.J @ v == pytest.approx(slope, abs=1e-8)


def loop_joint(kind: str, F: fx.Frame, M: fx.Frame) -> fx.multibody.Joint:
    """Make a joint, about a general axis if it has one."""
    known = JOINTS[kind]
    if kind == "weld":
        return fx.WeldJoint("loop", F, M, (TURNED, (0.1, 0.2, 0.3)))
    axis = {"axis": (1.0, 2.0, -1.0)} if known.has_axis else {}
    return known.make("loop", F, M, **{**known.options, **axis})


@pytest.mark.parametrize("kind", [kind for kind in JOINTS if "floating" not in kind])
def test_a_free_body_on_a_loop_joint_moves_as_on_the_joint_itself(kind: str) -> None:
    """The other route: the joint with coordinates of its own."""
    moment = np.diag([0.3, 0.4, 0.5]) + 0.02
    inertia = fx.SpatialInertia(2.0, (0.05, -0.1, 0.2), moment)
    results = []
    for is_loop in (False, True):
        builder = fx.PlantBuilder("one")
        arm = builder.add_body("arm", inertia)
        body = builder.add_body("body", inertia)
        builder.add_joint(fx.RevoluteJoint("shoulder", builder.world, arm, axis=(0, 1, 0)))
        F = builder.add_frame("F", arm, (TURNED, (0.3, 0.1, 0.2)))
        M = builder.add_frame("M", body, (TURNED.T, (-0.1, 0.2, 0.05)))
        joint = loop_joint(kind, F, M)
        if is_loop:
            builder.add_loop_joint(joint)
        else:
            builder.add_joint(joint)
        plant = builder.build()
        context = plant.create_default_context()
        if not is_loop:
            q = joint.zero_positions()
            if joint.num_velocities:
                q = q + np.resize([0.2, -0.1, 0.3], len(q))
                joint.positions.set(context, joint.normalized_positions(q))
                joint.velocities.set(context, np.resize([0.7, -0.4, 0.9], joint.num_velocities))
            plant.joint("shoulder").velocities.set(context, [1.5])
            pose = body.pose(context)
            velocity = body.spatial_velocity(context)
        else:
            plant.joint("shoulder").velocities.set(context, [1.5])
            free = plant.joint("body")
            free.pose.set(context, pose)
            free.spatial_velocity.set(context, velocity)
            errors = plant.output_port("loop.error").eval(context)
            assert np.max(np.abs(errors)) < 1e-12
        accelerations = body.spatial_acceleration(context)
        reaction = plant.output_port("loop.reaction").eval(context)
        results.append((accelerations, reaction))
    assert results[1][0] == pytest.approx(results[0][0], abs=1e-7)
    assert results[1][1] == pytest.approx(results[0][1], abs=1e-6)


@pytest.mark.full
def test_poles_and_modes_of_a_loop_are_those_of_its_motion_alone() -> None:
    """The other route: the period of small swings of the linkage at rest under gravity."""
    found = []
    for cut in ("pin", "knee"):
        for turned in (None, TURNED):
            linkage, context = four_bar(cut, turned)
            linkage.joint("shaft").positions.set(context, [-2.0])
            linkage.assemble(context, fixed="shaft")
            rest = fx.equilibrium(linkage, context).context
            poles = fx.linearize(linkage, rest, inputs=[], outputs=[]).poles
            moving = poles[np.abs(poles) > 1e-6]  # two states of the ledger only add up
            (mode,) = [each for each in fx.modes(linkage, rest) if each.kind == "oscillation"]
            assert len(moving) == 2
            assert mode.frequency == pytest.approx(abs(moving[0]) / (2.0 * np.pi), rel=1e-9)
            found.append(moving)
    assert found == pytest.approx(np.tile(found[0], (4, 1)), rel=1e-6)
    linkage.joint("shaft").velocities.set(rest, [1e-3])
    linkage.assemble(rest, fixed="shaft")
    result = fx.simulate(linkage, 2.0, context=rest, rtol=1e-9, atol=1e-12)
    times = np.linspace(0.0, 2.0, 20001)
    rate = result.sample("shaft.rate", times)
    zeros = times[1:][(rate[1:] > 0.0) != (rate[:-1] > 0.0)]
    swing = np.pi / abs(found[0][0].imag)
    assert np.diff(zeros) == pytest.approx(swing, abs=3e-4)


@pytest.mark.full
def test_linear_models_of_a_loop_beside_rest_say_that_coordinates_decide_them() -> None:
    linkage, context = four_bar("pin", None)
    linkage.assemble(context, fixed="shaft")
    for find in (fx.linearize, fx.modes):
        with pytest.warns(UserWarning, match="not at rest: tree.x.* has a rate of"):
            find(linkage, context)
    with pytest.warns(UserWarning, match="not at rest: tree.x.* has a change in a period of"):
        fx.linearize(linkage, context, period=0.01)
    model = fx.linearize(linkage, fx.equilibrium(linkage, context).context)
    everything = np.linalg.eigvals(model.A)  # those of the motion, and the decay of errors
    for pole in model.poles:
        assert np.min(np.abs(everything - pole)) < 1e-6 * np.max(np.abs(everything))


def test_redundant_equations_have_the_name_of_their_constraint() -> None:
    for kind, count in (("revolute", 3), ("ball", 1)):
        linkage, context = four_bar(kind=kind)
        assert linkage.assemble(context).redundant == {"pin": count}


def test_a_dead_point_is_one_for_the_joint_that_is_held_only() -> None:
    """The closed form: crank and coupler lie in one line."""
    linkage, context = four_bar()
    reach = CRANK + COUPLER
    crank = np.arccos((GROUND**2 + reach**2 - ROCKER**2) / (2.0 * GROUND * reach))
    pin = reach * np.array([np.cos(crank), np.sin(crank)])
    q = np.array([crank, 0.0, np.arctan2(pin[1], pin[0] - GROUND)])
    linkage.set_positions(context, q)
    assert linkage.assemble(context, fixed="shaft").singularity is None
    with pytest.warns(UserWarning, match="'linkage' is assembled at a dead point"):
        assembly = linkage.assemble(context, fixed="foot")
    assert (assembly.singularity, assembly.mobility) == ("dead point", 1)
    linkage.set_positions(context, q - [0.1, 0.0, 0.0])
    assert linkage.assemble(context, fixed="shaft").singularity is None
    assert linkage.assemble(context, fixed="foot").singularity is None


@pytest.mark.parametrize(("angle", "kind"), [(0.0, "change point"), (1.0, None)])
def test_a_flat_parallelogram_is_at_a_change_point(angle: float, kind: str | None) -> None:
    builder = fx.PlantBuilder("parallelogram")
    ends = {"world": builder.add_frame("base", builder.world)}
    for name, length in {"crank": 0.5, "coupler": 1.0, "rocker": 0.5, "ground": 1.0}.items():
        body = builder.world
        if name != "ground":
            rod = fx.SpatialInertia.thin_rod(1.0, length=length, axis="x")
            body = builder.add_body(name, rod, com=(0.5 * length, 0.0, 0.0))
        ends[name] = builder.add_frame(f"{name}_end", body, (length, 0.0, 0.0))
    for inner, outer in (("world", "crank"), ("crank", "coupler"), ("ground", "rocker")):
        body = ends[outer].body
        builder.add_joint(fx.RevoluteJoint(f"to_{outer}", ends[inner], body, axis=(0, -1, 0)))
    builder.add_loop_joint(
        fx.RevoluteJoint("pin", ends["coupler"], ends["rocker"], axis=(0, -1, 0))
    )
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_positions(context, [angle, -angle, angle])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assembly = plant.assemble(context)
    assert assembly.singularity == kind
    assert assembly.mobility == (2 if kind else 1)
    assert ["change point" in str(each.message) for each in caught] == ([True] if kind else [])
