"""Motions begin where constraints are met: what is open is refused, and named, in any reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.multibody.constraints.frame_constraints import LoopJoint
from flexure.errors import (
    DeclarationError,
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
)
from tests.blocks.multibody.constraints.test_closed_loops import four_bar

READINGS: dict[str, Callable[[fx.Plant, fx.Context], Any]] = {
    "a run": lambda plant, context: fx.simulate(plant, 0.01, context=context),
    "a run in Python": lambda plant, context: fx.simulate(
        plant, 0.01, context=context, compiled="python"
    ),
    "a linear model": fx.linearize,
    "a sampled model": lambda plant, context: fx.linearize(plant, context, period=0.01),
    "modes": fx.modes,
    "a sensitivity": lambda plant, context: fx.parameter_sensitivity(
        plant, ["tree.stabilization"], 0.01, context=context
    ),
}


@pytest.mark.parametrize("reading", READINGS)
def test_nothing_begins_with_an_open_loop(reading: str) -> None:
    linkage, context = four_bar()
    linkage.joint("foot").positions.set(context, [1.0])
    with pytest.raises(EvaluationError, match=r"'pin' open by 0\.4.*assemble\(context\)"):
        READINGS[reading](linkage, context)


@pytest.mark.parametrize("kind", [fx.WeldJoint, fx.PrismaticJoint, fx.RevoluteJoint])
def test_loops_do_not_close_the_wrong_way_round(kind: Callable[..., Any]) -> None:
    """Cosines are zero as well where a weld is turned by half a turn, or an axis is opposite."""
    builder = fx.PlantBuilder("crate")
    crate = builder.add_body("crate", fx.SpatialInertia.solid_box(2.0, size=(0.3, 0.2, 0.1)))
    free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, crate))
    axis = {} if kind is fx.WeldJoint else {"axis": (0, 0, 1)}
    builder.add_loop_joint(kind("tie", builder.world, crate, **axis))
    plant = builder.build()
    context = plant.create_default_context()
    free.positions.set(context, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(EvaluationError, match="found 'tie' the wrong way round"):
        fx.simulate(plant, 0.01, context=context)
    for angle in (1.8, 2.1):
        turn = fx.rotations.quaternion_from_axis_angle(np.array([0.6, 0.8, 0.0]), angle)
        free.positions.set(context, [*turn, 0.1, 0.2, -0.1])
        plant.assemble(context)
        R = crate.pose(context).R
        upright = R if kind is fx.RevoluteJoint else np.trace(R) / 3.0 * np.ones((3, 3))
        assert upright[2, 2] == pytest.approx(1.0, abs=1e-9)


def test_velocities_that_open_a_loop_are_refused_and_fit_after_assembly() -> None:
    linkage, context = four_bar()
    linkage.joint("shaft").velocities.set(context, [2.0])
    with pytest.raises(EvaluationError, match=r"'pin' with rates of its errors of 1\.84"):
        fx.simulate(linkage, 0.01, context=context)
    linkage.assemble(context, fixed="shaft")
    fx.simulate(linkage, 0.01, context=context)


def test_small_errors_decay_and_larger_ones_where_they_are_allowed() -> None:
    linkage, context = four_bar()
    q = linkage.get_positions(context)
    context.set("tree.constraint_tolerance", np.inf)  # else they go at once
    linkage.set_positions(context, q + np.array([0.0, 5e-4, 0.0]))
    result = fx.simulate(linkage, 1.0, context=context)
    assert 1e-4 < np.max(np.abs(result["pin.error"][0])) < 1e-3
    assert np.max(np.abs(result["pin.error"][-1])) < 1e-6
    linkage.set_positions(context, q + np.array([0.0, 5e-2, 0.0]))
    with pytest.raises(EvaluationError):
        fx.simulate(linkage, 1.0, context=context)
    context.set("tree.start_tolerance", 0.1)
    result = fx.simulate(linkage, 1.0, context=context)
    assert np.max(np.abs(result["pin.error"][-1])) < 1e-5


def test_runs_of_a_sweep_that_cannot_begin_fail_by_themselves() -> None:
    linkage, context = four_bar()
    angle = float(linkage.joint("foot").positions.get(context)[0])
    runs = fx.sweep(
        linkage, {"foot.angle": [angle, 1.0]}, 0.01, context=context, signals=["shaft.angle"]
    )
    assert list(runs.outcomes) == ["completed", "failed"]
    assert "not all runs can begin" in runs.how


def test_a_sampled_model_has_no_poles_but_those_of_the_motion() -> None:
    """The other route: those of the continuous model, over the period."""
    linkage, context = four_bar()
    linkage.joint("shaft").positions.set(context, [-2.0])
    linkage.assemble(context, fixed="shaft")
    rest = fx.equilibrium(linkage, context).context
    continuous = fx.linearize(linkage, rest, inputs=[], outputs=[]).poles
    sampled = fx.linearize(linkage, rest, inputs=[], outputs=[], period=0.02).poles
    assert np.sort_complex(sampled) == pytest.approx(
        np.sort_complex(np.exp(0.02 * continuous)), abs=1e-9
    )


def welded() -> fx.PlantBuilder:
    """Build two bodies that are welded to each other, and one that turns."""
    rod = fx.SpatialInertia.thin_rod(1.0, length=1.0)
    builder = fx.PlantBuilder("welded")
    a, b, c = (builder.add_body(name, rod) for name in "abc")
    builder.add_joint(fx.RevoluteJoint("hinge", builder.world, a, axis=(0, 1, 0)))
    builder.add_joint(fx.WeldJoint("seam", a, b, (np.eye(3), (1.0, 0.0, 0.0))))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, c, axis=(0, 1, 0)))
    return builder


def test_a_constraint_between_bodies_that_are_welded_together_is_refused() -> None:
    builder = welded()
    _, a, b, _ = builder.bodies
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", a, (0, 0, 0), b, (0, 0, 0), 1.0)
    )
    with pytest.raises(DeclarationError, match=r"'rod'.*'a' and 'b'"):
        builder.build()


def test_a_constraint_between_locked_bodies_leaves_the_others_their_motion() -> None:
    builder = welded()
    _, a, _, c = builder.bodies
    M = builder.add_frame("M", a, (0.0, 1.0, 0.0))
    builder.add_constraint(
        fx.constraints.DistanceConstraint("rod", builder.world, (0, 0, 0), M, (0, 0, 0), 1.0)
    )
    plant = builder.build()
    context = plant.create_default_context()
    plant.joint("axis").velocities.set(context, [0.5])
    plant.joint("hinge").lock(context)
    assert plant.assemble(context).mobility == 1
    assert c.spatial_velocity(context)[1] == pytest.approx(0.5)
    assert np.all(np.isfinite(plant.calc_vdot(context)))


@pytest.mark.parametrize("first", ["joint", "loop joint"])
def test_a_loop_joint_that_is_there_already_is_refused(first: str) -> None:
    builder = fx.PlantBuilder("twice")
    rod = fx.SpatialInertia.thin_rod(1.0, length=1.0)
    bar = builder.add_body("bar", rod)
    axis = fx.RevoluteJoint("axis", builder.world, bar, axis=(0, 1, 0))
    if first == "joint":
        builder.add_joint(axis)
    else:
        builder.add_loop_joint(axis)
    other = fx.RevoluteJoint("other", builder.world, bar, axis=(1, 0, 0))
    builder.add_loop_joint(other)  # another axis, which is no mistake in itself
    builder.add_loop_joint(fx.RevoluteJoint("again", builder.world, bar, axis=(0, 1, 0)))
    with pytest.raises(DeclarationError, match=r"'again'.*joint 'axis' of the same kind"):
        builder.build()


def open_four_bar() -> fx.Plant:
    """Build a four-bar whose default pose leaves the loop open by 0.45 m."""
    builder = fx.PlantBuilder("bars")
    ends: dict[str, tuple[fx.Body, fx.Frame]] = {}
    for name, length in (("crank", 0.25), ("coupler", 0.8), ("rocker", 0.6)):
        rod = fx.SpatialInertia.thin_rod(1.0, length=length, axis="x")
        body = builder.add_body(name, rod, com=(0.5 * length, 0.0, 0.0))
        ends[name] = body, builder.add_frame(f"{name}_end", body, (length, 0.0, 0.0))
    foot = builder.add_frame("foot", builder.world, (0.9, 0.0, 0.0))
    pairs = (builder.world, "crank"), (ends["crank"][1], "coupler"), (foot, "rocker")
    for inner, name in pairs:
        builder.add_joint(fx.RevoluteJoint(f"{name}_pivot", inner, ends[name][0], axis=(0, 1, 0)))
    tips = ends["coupler"][1], ends["rocker"][1]
    builder.add_loop_joint(fx.RevoluteJoint("pin", *tips, axis=(0, 1, 0)))
    return builder.build()


def _loop_reaction(plant: fx.Plant, context: fx.Context) -> Any:
    pin = plant.constraint("pin")
    assert isinstance(pin, LoopJoint)
    return pin.reaction(context)


QUERIES: dict[str, Callable[[fx.Plant, fx.Context], Any]] = {
    "accelerations": lambda plant, context: plant.calc_vdot(context),
    "derivatives": lambda plant, context: plant.eval_time_derivatives(context),
    "reaction of a joint": lambda plant, context: plant.joint("crank_pivot").reaction(context),
    "reaction of a loop joint": _loop_reaction,
    "output": lambda plant, context: context.get("pin.multipliers"),
    "input power": lambda plant, context: plant.output_port("input_power").eval(context),
    "acceleration of a body": lambda plant, context: plant.body("rocker").spatial_acceleration(
        context
    ),
}


@pytest.mark.parametrize("query", QUERIES)
def test_open_loops_are_refused_alike_whatever_is_asked(query: str) -> None:
    plant = open_four_bar()
    context = plant.create_default_context()
    with pytest.raises(EvaluationError, match=r"'pin' open by 0\.45.*Call assemble\(context\)"):
        QUERIES[query](plant, context)
    assert np.max(np.abs(context.get("pin.error"))) == pytest.approx(0.45)
    plant.assemble(context)
    QUERIES[query](plant, context)


def test_an_assembly_holds_joints_or_single_coordinates_of_them() -> None:
    """A plate on a rod of length 1: what may move follows, and the rest stays to the last bit."""
    builder = fx.PlantBuilder("plate", gravity=(0.0, 0.0, 0.0))
    plate = builder.add_body("plate", fx.SpatialInertia.solid_box(1.0, size=(1.0, 1.0, 1.0)))
    joint = builder.add_joint(fx.PlanarJoint("joint", builder.world, plate))
    ends = builder.world, (0, 0, 0), plate, (0, 0, 0)
    builder.add_constraint(fx.constraints.DistanceConstraint("rod", *ends, distance=1.0))
    plant = builder.build()
    for fixed, expected in (
        (joint.translation, None),
        ("tree.x[joint_x]", (0.6, 0.8)),
        (["joint.q[1]", "joint.q[2]"], (np.sqrt(0.51), 0.7)),
        ("joint", None),
        ((), (0.6 / np.hypot(0.6, 0.7), 0.7 / np.hypot(0.6, 0.7))),
    ):
        context = plant.create_default_context()
        joint.positions.set(context, [0.6, 0.7, 0.1])
        if expected is None:
            with pytest.raises(EvaluationError, match="'rod'"):
                plant.assemble(context, fixed=fixed)
        else:
            plant.assemble(context, fixed=fixed)
            assert joint.positions.get(context) == pytest.approx([*expected, 0.1], abs=1e-9)


def test_what_an_assembly_cannot_hold_is_refused() -> None:
    builder = fx.PlantBuilder("ball")
    ball = builder.add_body("ball", fx.SpatialInertia.solid_box(1.0, size=(1.0, 1.0, 1.0)))
    builder.add_joint(fx.BallQuaternionJoint("joint", builder.world, ball))
    plant = builder.build()
    context = plant.create_default_context()
    for fixed, kind, words in (
        ("joint.quaternion[0]", ValueRefusedError, "the whole joint 'joint'"),
        ("joint.angular_velocity", ValueRefusedError, "joints of 'ball' and their coordinates"),
        ("joins", UnknownNameError, "Did you mean 'joint'"),
        (3, ValueRefusedError, "joints and coordinates, by handle, name or path"),
    ):
        with pytest.raises(kind, match=words):
            plant.assemble(context, fixed=fixed)  # type: ignore[arg-type]
