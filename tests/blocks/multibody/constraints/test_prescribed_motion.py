"""Joints that follow inputs: by a profile, by another block, or not at all, as locked ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flexure as fx


def arm(*, is_driven: bool) -> fx.Plant:
    """Build two rods in a row, of which the first may be driven."""
    builder = fx.PlantBuilder("arm")
    rod = fx.SpatialInertia.thin_rod(2.0, length=0.5, axis="x")
    upper, lower = (builder.add_body(name, rod, com=(0.25, 0, 0)) for name in ("upper", "lower"))
    tip = builder.add_frame("tip", upper, (0.5, 0, 0))
    shoulder = fx.RevoluteJoint("shoulder", builder.world, upper, axis=(0, 1, 0))
    builder.add_joint(shoulder)
    builder.add_joint(fx.RevoluteJoint("elbow", tip, lower, axis=(0, 1, 0)))
    if is_driven:
        builder.add_constraint(fx.constraints.PrescribedMotion("drive", shoulder))
    builder.add_energy_ledger()
    return builder.build()


def test_a_joint_follows_a_profile_and_tells_the_effort_by_which_a_motor_would_do_it() -> None:
    """The other route: inverse dynamics along the same motion."""
    plant, builder = arm(is_driven=True), fx.DiagramBuilder("robot")
    builder.add_all(
        plant,
        fx.MinimumJerkProfile("path", at=0.1, to=1.0, duration=0.8),
        fx.Multiplexer("motion", [1, 1, 1]),
    )
    for number, name in enumerate(("y", "velocity", "acceleration"), start=1):
        builder.connect(f"path.{name}", f"motion.u{number}")
    builder.connect("motion.y", "arm.drive")
    system = builder.build()
    context = system.create_default_context()
    assert plant.assemble(context).mobility == 1
    result = fx.simulate(system, 1.0, context=context, rtol=1e-9, atol=1e-11, compiled="python")
    assert result["arm.shoulder.angle"] == pytest.approx(result["path.y"], abs=1e-8)
    assert np.ptp(result["arm.mechanical_energy"]) > 0.1
    assert np.ptp(result["arm.ledger.balance"]) < 1e-7
    at = result.context_at(0.5)
    forces = plant.calc_force_elements_contribution(at)
    needed = plant.calc_inverse_dynamics(at, plant.calc_vdot(at), forces)
    effort = plant.output_port("drive.effort").eval(at)
    assert effort == pytest.approx(needed[:1], rel=1e-9)
    assert needed[1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.full
def test_a_constant_motion_holds_a_joint_as_a_lock_does() -> None:
    driven, locked = arm(is_driven=True), arm(is_driven=False)
    contexts = [plant.create_default_context() for plant in (driven, locked)]
    driven.input_port("drive").fix(contexts[0], [0.4, 0.0, 0.0])
    for plant, context in zip((driven, locked), contexts, strict=True):
        plant.set_positions(context, [0.4, -0.3])
        plant.joint("elbow").velocities.set(context, [1.5])
    locked.joint("shoulder").lock(contexts[1])
    accelerations = [p.calc_vdot(c) for p, c in zip((driven, locked), contexts, strict=True)]
    assert accelerations[0] == pytest.approx(accelerations[1], rel=1e-9, abs=1e-9)
    reaction = locked.output_port("shoulder.reaction").eval(contexts[1])
    effort = driven.output_port("drive.effort").eval(contexts[0])
    assert effort == pytest.approx(reaction[1:2], rel=1e-9)
    options: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11, "compiled": "python"}
    held = fx.simulate(driven, 0.5, context=contexts[0], **options)
    still = fx.simulate(locked, 0.5, context=contexts[1], **options)
    assert held["elbow.angle"][-1] == pytest.approx(still["elbow.angle"][-1], abs=1e-8)
    assert held["shoulder.angle"] == pytest.approx(0.4, abs=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
@pytest.mark.parametrize("contradiction", ["velocity", "acceleration"])
def test_a_motion_that_contradicts_itself_is_named_once(contradiction: str, compiled: Any) -> None:
    """Positions that stand still, with a velocity or an acceleration that leads away from them."""
    plant = arm(is_driven=True)
    context = plant.create_default_context()
    motion = {"velocity": [0.4, 1.0, 0.0], "acceleration": [0.4, 0.0, 10.0]}[contradiction]
    plant.input_port("drive").fix(context, motion)
    plant.assemble(context)
    with pytest.warns(UserWarning, match="'drive' are the rates of its positions") as said:
        fx.simulate(plant, 0.5, context=context, compiled=compiled)
    assert len(said) == 1
    assert "found 'drive' open by " in str(said[0].message)


@pytest.mark.full
@pytest.mark.parametrize("compiled", ["native", "python"])
@pytest.mark.parametrize("sampled", [False, True])
def test_a_prescribed_position_that_jumps_is_a_blow_and_named(compiled: Any, sampled: bool) -> None:
    plant, builder = arm(is_driven=True), fx.DiagramBuilder("robot")
    builder.add_all(
        plant,
        fx.Step("position", at=0.2, to=0.2, initial=0.1),
        fx.Constant("rates", [0.0, 0.0]),
        fx.Multiplexer("motion", [1, 2]),
    )
    source = "position"
    if sampled:
        builder.add(fx.ZeroOrderHold("hold", 0.25, initial=0.1))
        builder.connect_chain("position", source := "hold")
    builder.connect(f"{source}.y", "motion.u1")
    builder.connect("rates.y", "motion.u2")
    builder.connect("motion.y", "arm.drive")
    system = builder.build()
    context = system.create_default_context()
    plant.assemble(context)
    when = 0.25 if sampled else 0.2
    text = rf"Positions of 'robot' jump at t = {when} s: found 'drive' open by 0\.1\."
    with pytest.warns(UserWarning, match=text) as said:
        result = fx.simulate(system, 0.5, context=context, compiled=compiled)
    assert len(said) == 1
    assert result["arm.shoulder.angle"][-1] == pytest.approx(0.2, abs=1e-7)


@pytest.mark.parametrize("geared", [False, True])
def test_a_motion_through_a_stop_is_refused(geared: bool) -> None:
    builder = fx.PlantBuilder("press", gravity=(0.0, 0.0, 0.0))
    rails = []
    for name in ("ram", "follower"):
        body = builder.add_body(name, fx.SpatialInertia.point_mass(1.0))
        rail = fx.PrismaticJoint(name, builder.world, body, axis=(0, 0, 1))
        rails.append(builder.add_joint(rail))
    builder.add_constraint(fx.constraints.PrescribedMotion("drive", rails[0]))
    builder.add_constraint(fx.constraints.GearPair("gear", rails[1], rails[0], ratio=2.0))
    stop = fx.RigidStop("stop", rails[int(geared)], upper=0.1, restitution=0.5)
    builder.add_constraint(stop)
    plant = builder.build()
    outer = fx.DiagramBuilder("machine")
    outer.add_all(plant, fx.Ramp("path", slope=[0.2, 0.0, 0.0], initial=[0.0, 0.2, 0.0]))
    outer.connect("path.y", "press.drive")
    machine = outer.build()
    context = machine.create_default_context()
    plant.set_velocities(context, [0.2, 0.4])
    with pytest.raises(fx.errors.EvaluationError, match="rebound from 'stop'"):
        fx.simulate(machine, 1.0, context=context)
