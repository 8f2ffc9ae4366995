"""The mechanisms as plants of Drake, which are continuous and in C++ throughout."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.versus.sides import MissingPeerError
from benchmarks.versus.workloads import (
    BodyChain,
    HingedDoor,
    LinkChain,
    MassChain,
    Mechanism,
    MountedBody,
    Workload,
)

_ORIGIN = [0.0, 0.0, 0.0]
_AXES = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]}


def part(name: str) -> Any:
    """Import one part of pydrake.

    Raises
    ------
    MissingPeerError
        When pydrake is not installed.
    """
    try:
        return importlib.import_module(f"pydrake.{name}")
    except ImportError as error:
        raise MissingPeerError(
            "pydrake is not installed (pip install drake): no comparison with Drake"
        ) from error


def plant(workload: Workload) -> tuple[Any, str]:
    """Return the plant of a mechanism, and what acts in it."""
    tree, made = part("multibody.tree"), part("multibody.plant").MultibodyPlant(0.0)
    gravity = workload.g if isinstance(workload, Mechanism) else 0.0
    made.mutable_gravity_field().set_gravity_vector([0.0, 0.0, -gravity])
    match workload:
        case MassChain():
            elements = _add_masses(tree, made, workload)
        case LinkChain():
            elements = _add_links(tree, made, workload)
        case MountedBody():
            elements = _add_mounted_body(tree, made, workload)
        case BodyChain():
            elements = _add_bodies(tree, made, workload)
        case HingedDoor():
            elements = _add_door(tree, made, workload)
        case _:
            raise NotImplementedError(workload)
    made.Finalize()
    return made, elements


def _add_masses(tree: Any, plant: Any, w: MassChain) -> str:
    inertia = tree.SpatialInertia(w.m, _ORIGIN, tree.UnitInertia.SolidSphere(0.01))
    before = plant.world_body()
    for k in range(w.count):
        body = plant.AddRigidBody(f"mass{k}", inertia)
        place = _shifted(tree, plant, f"place{k}", plant.world_frame(), [w.spacing * (k + 1), 0, 0])
        plant.AddJoint(tree.PrismaticJoint(f"rail{k}", place, body.body_frame(), _AXES["x"]))
        _add_spring(tree, plant, before, body, w.rest_length, w.k, w.d)
        before = body
    return "LinearSpringDamper elements"


def _add_links(tree: Any, plant: Any, w: LinkChain) -> str:
    inertia = _inertia(tree, w.m, w.moments, [0.0, 0.0, -0.5 * w.length])
    place = plant.world_frame()
    for k, axis in enumerate(w.axes):
        rod = plant.AddRigidBody(f"rod{k}", inertia).body_frame()
        joint = plant.AddJoint(tree.RevoluteJoint(f"joint{k}", place, rod, _AXES[axis], w.d))
        plant.AddForceElement(tree.RevoluteSpring(joint, 0.0, w.k))
        place = _shifted(tree, plant, f"end{k}", rod, [0.0, 0.0, -w.length])
    return "damped RevoluteJoints and RevoluteSprings"


def _add_mounted_body(tree: Any, plant: Any, w: MountedBody) -> str:
    body = plant.AddRigidBody("body", _inertia(tree, w.m, w.moments, _ORIGIN)).body_frame()
    constants = [np.full(3, each) for each in (w.torsional_k, w.torsional_d, w.k, w.d)]
    plant.AddForceElement(tree.LinearBushingRollPitchYaw(plant.world_frame(), body, *constants))
    return "a LinearBushingRollPitchYaw"


def _add_bodies(tree: Any, plant: Any, w: BodyChain) -> str:
    inertia = tree.SpatialInertia(w.m, _ORIGIN, tree.UnitInertia.SolidSphere(w.radius))
    before = plant.world_body()
    for k in range(w.count):
        body = plant.AddRigidBody(f"body{k}", inertia)
        _add_spring(tree, plant, before, body, w.length, w.k, w.d)
        before = body
    return "free bodies and LinearSpringDamper elements"


def _add_door(tree: Any, plant: Any, w: HingedDoor) -> str:
    box = tree.UnitInertia.SolidBox(w.thickness, w.width, 1.0)
    panel = plant.AddRigidBody("panel", tree.SpatialInertia(w.m, _ORIGIN, box)).body_frame()
    edge = _shifted(tree, plant, "edge", panel, [0.0, -0.5 * w.width, 0.0])
    joint = plant.AddJoint(tree.RevoluteJoint("axis", plant.world_frame(), edge, _AXES["z"]))
    plant.AddForceElement(tree.DoorHinge(joint, tree.DoorHingeConfig()))
    return "a DoorHinge"


def _add_spring(tree: Any, plant: Any, a: Any, b: Any, length: float, k: float, d: float) -> None:
    """Join the origins of two bodies."""
    plant.AddForceElement(tree.LinearSpringDamper(a, _ORIGIN, b, _ORIGIN, length, k, d))


def _shifted(tree: Any, plant: Any, name: str, frame: Any, position: list[float]) -> Any:
    """Add a frame beside another one."""
    transform = part("math").RigidTransform(position)
    return plant.AddFrame(tree.FixedOffsetFrame(name, frame, transform))


def _inertia(tree: Any, m: float, moments: Any, com: list[float]) -> Any:
    """Return a spatial inertia from the moments about the center of mass."""
    rotational = tree.RotationalInertia(*moments)
    return tree.SpatialInertia.MakeFromCentralInertia(m, com, rotational)
