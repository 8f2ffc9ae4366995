"""Loops in Drake: constraints of discrete plants, solved by SAP."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.loops.random_loops import GRAVITY, Array, Loop
from benchmarks.versus.sides import MissingPeerError

_TURNS = 8


def modules() -> tuple[Any, Any, Any, Any]:
    """Return parts of pydrake, or raise the house's error where it is missing."""
    try:
        names = ("multibody.plant", "multibody.tree", "math", "systems.analysis")
        plant, tree, math, analysis = (importlib.import_module(f"pydrake.{n}") for n in names)
    except ImportError as error:
        raise MissingPeerError(
            "drake is not installed (pip install drake): no comparison with it"
        ) from error
    return plant, tree, math, analysis


def motion(
    loop: Loop, rates: Sequence[Sequence[float]], times: Array, step: float
) -> tuple[Array, Array]:
    """Return where all bars are at some times, and what the first joint exerts on its child.

    Forces are those on the child where the joint is, expressed in the world: moment, force. Balls
    have angles in Drake, which are singular somewhere; their frames are turned until that is far.
    """
    for tries in range(_TURNS):
        turn = np.linalg.qr(np.random.default_rng(tries).normal(size=(3, 3)))[0]
        turn *= np.linalg.det(turn)
        try:
            return _moved(loop, rates, times, step, turn)
        except RuntimeError:
            if tries == _TURNS - 1:
                raise
    raise AssertionError


def _moved(
    loop: Loop, rates: Sequence[Sequence[float]], times: Array, step: float, turn: Array
) -> tuple[Array, Array]:
    """Do so with frames of balls that are turned."""
    kinds, tree, math, analysis = modules()
    plant = kinds.MultibodyPlant(time_step=step)
    plant.set_discrete_contact_approximation(kinds.DiscreteContactApproximation.kSap)
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY)

    def place(which: int | None) -> Array:
        return np.zeros(3) if which is None else loop.bars[which].position

    bars = []
    for k, bar in enumerate(loop.bars):
        inertia = tree.UnitInertia(*(np.array(bar.moments) / bar.mass))
        mass = tree.SpatialInertia(bar.mass, np.zeros(3), inertia)
        bars.append(plant.AddRigidBody(f"bar{k}", mass))

    def body(which: int | None) -> Any:
        return plant.world_body() if which is None else bars[which]

    def frame(which: int | None, point: Array, name: str) -> Any:
        X = math.RigidTransform(math.RotationMatrix(turn), point - place(which))
        return plant.AddFrame(tree.FixedOffsetFrame(name, body(which).body_frame(), X))

    joints = []
    for k, hinge in enumerate(loop.hinges):
        F = frame(hinge.parent, hinge.anchor, f"F{k}")
        M = frame(hinge.child, hinge.anchor, f"M{k}")
        if hinge.axis is None:
            joint = tree.BallRpyJoint(f"joint{k}", F, M)
        else:
            kind = tree.RevoluteJoint if hinge.kind == "revolute" else tree.PrismaticJoint
            joint = kind(f"joint{k}", F, M, turn.T @ hinge.axis)
        joints.append(plant.AddJoint(joint))
    for closing in loop.closings:
        (a, b), (p, q) = closing.bodies, closing.anchors
        at, to = p - place(a), q - place(b)
        if closing.kind == "rod":
            plant.AddDistanceConstraint(body(a), at, body(b), to, float(np.linalg.norm(q - p)))
        elif closing.kind == "ball":
            plant.AddBallConstraint(body(a), at, body(b), to)
        else:
            poses = math.RigidTransform(at), math.RigidTransform(to)
            plant.AddWeldConstraint(body(a), poses[0], body(b), poses[1])
    plant.Finalize()
    simulator = analysis.Simulator(plant)
    context = simulator.get_mutable_context()
    v = np.zeros(plant.num_velocities())
    for joint, rate in zip(joints, rates, strict=True):
        own = rate if len(rate) == 1 else turn.T @ rate
        v[joint.velocity_start() : joint.velocity_start() + len(rate)] = own
    plant.SetVelocities(context, v)
    port = plant.get_reaction_forces_output_port()
    found, forces = [], []
    for time in times:
        simulator.AdvanceTo(time)
        places = [plant.EvalBodyPoseInWorld(context, bar) for bar in bars]
        found.append([X.translation() for X in places])
        F = port.Eval(context)[int(joints[0].index())]
        R = places[0].rotation().matrix() @ turn
        forces.append(np.concatenate([R @ F.rotational(), R @ F.translational()]))
    return np.array(found), np.array(forces)
