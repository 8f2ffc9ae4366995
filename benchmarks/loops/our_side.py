"""Loops as plants."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from benchmarks.loops.random_loops import GRAVITY, Array, Loop

OPTIONS: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}


def build(loop: Loop) -> tuple[fx.Plant, fx.Context]:
    """Return the plant of a loop with velocities that its constraints allow."""
    builder = fx.PlantBuilder("loop", gravity=GRAVITY)
    bars = [
        builder.add_body(f"bar{k}", fx.SpatialInertia(bar.mass, np.zeros(3), np.diag(bar.moments)))
        for k, bar in enumerate(loop.bars)
    ]

    def frame(name: str, which: int | None, place: Array) -> fx.Frame:
        if which is None:
            return builder.add_frame(name, builder.world, place)
        return builder.add_frame(name, bars[which], place - loop.bars[which].position)

    for k, hinge in enumerate(loop.hinges):
        F = frame(f"F{k}", hinge.parent, hinge.anchor)
        M = frame(f"M{k}", hinge.child, hinge.anchor)
        if hinge.axis is None:
            builder.add_joint(fx.BallQuaternionJoint(f"joint{k}", F, M))
        else:
            kind = fx.RevoluteJoint if hinge.kind == "revolute" else fx.PrismaticJoint
            builder.add_joint(kind(f"joint{k}", F, M, axis=hinge.axis))
    for k, closing in enumerate(loop.closings):
        (a, b), (p, q) = closing.bodies, closing.anchors
        F, M = frame(f"P{k}", a, p), frame(f"Q{k}", b, q)
        if closing.kind == "rod":
            distance = float(np.linalg.norm(q - p))
            builder.add_constraint(
                fx.constraints.DistanceConstraint(
                    f"closing{k}", F, (0, 0, 0), M, (0, 0, 0), distance
                )
            )
        else:
            joint = fx.BallQuaternionJoint if closing.kind == "ball" else fx.WeldJoint
            builder.add_loop_joint(joint(f"closing{k}", F, M))
    plant = builder.build()
    context = plant.create_default_context()
    plant.set_velocities(context, np.ones(plant.num_velocities))
    plant.assemble(context)
    return plant, context


def rates(loop: Loop, plant: fx.Plant, context: fx.Context) -> list[list[float]]:
    """Return the velocities of each joint; those of balls are expressed in the world."""
    joints = [plant.joint(f"joint{k}") for k in range(len(loop.hinges))]
    return [np.array(joint.velocities.get(context)).tolist() for joint in joints]


def motion(loop: Loop, times: Array) -> dict[str, Any]:
    """Return positions of all bars, energy drift, errors, and forces in the first joint.

    Forces are those on the child where the joint is, expressed in the world: moment, force.
    """
    plant, context = build(loop)
    start = rates(loop, plant, context)
    simulator = fx.Simulator(plant, context, **OPTIONS)
    energy = plant.output_port("mechanical_energy")
    first = float(energy.eval(context)[0])
    positions, reactions, drift, opening = [], [], 0.0, 0.0
    for time in times:
        simulator.advance_to(float(time))
        now = simulator.context
        bodies = [plant.body(f"bar{k}") for k in range(len(loop.bars))]
        positions.append([body.pose(now).p for body in bodies])
        F = np.reshape(plant.joint("joint0").reaction(now), (2, 3))
        reactions.append(np.ravel(F @ bodies[0].pose(now).R.T))
        drift = max(drift, abs(float(energy.eval(now)[0]) - first))
        for k in range(len(loop.closings)):
            found = plant.output_port(f"closing{k}.error").eval(now)
            opening = max(opening, float(np.max(np.abs(found))))
    return {
        "rates": start,
        "motion": np.array(positions),
        "reaction": np.array(reactions),
        "drift": drift,
        "opening": opening,
    }
