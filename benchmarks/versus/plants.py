"""The mechanisms as plants of ours."""

from __future__ import annotations

import numpy as np

import flexure as fx
from benchmarks.versus.workloads import (
    BodyChain,
    HingedDoor,
    LinkChain,
    Mechanism,
    MountedBody,
)

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def build_plant(workload: Mechanism) -> fx.Plant:
    """Return the plant of a mechanism; all of its state is in one block, the tree."""
    builder = fx.PlantBuilder(workload.name, gravity=(0.0, 0.0, -workload.g))
    match workload:
        case LinkChain():
            _add_links(builder, workload)
        case MountedBody():
            _add_mounted_body(builder, workload)
        case BodyChain():
            _add_bodies(builder, workload)
        case HingedDoor():
            _add_door(builder, workload)
        case _:
            raise NotImplementedError(workload)
    return builder.build()


def _add_links(builder: fx.PlantBuilder, w: LinkChain) -> None:
    inertia = fx.SpatialInertia(w.m, (0.0, 0.0, -0.5 * w.length), w.moments)
    place: fx.Frame | fx.Body = builder.world
    for k, axis in enumerate(w.axes):
        rod = builder.add_body(f"rod{k}", inertia)
        joint = fx.RevoluteJoint(f"joint{k}", place, rod, axis=_AXES[axis], damping=w.d)
        builder.add_joint(joint)
        builder.add_force_element(fx.JointSpring(f"spring{k}", joint, stiffness=w.k))
        place = builder.add_frame(f"end{k}", rod, (np.eye(3), (0.0, 0.0, -w.length)))


def _add_mounted_body(builder: fx.PlantBuilder, w: MountedBody) -> None:
    body = builder.add_body("body", fx.SpatialInertia(w.m, (0.0, 0.0, 0.0), w.moments))
    builder.add_force_element(
        fx.LinearBushingRollPitchYaw(
            "bushing",
            builder.world,
            body,
            torque_stiffness=w.torsional_k,
            torque_damping=w.torsional_d,
            force_stiffness=w.k,
            force_damping=w.d,
        )
    )


def _add_bodies(builder: fx.PlantBuilder, w: BodyChain) -> None:
    inertia, center = fx.SpatialInertia.solid_sphere(w.m, radius=w.radius), (0.0, 0.0, 0.0)
    constants = {"free_length": w.length, "stiffness": w.k, "damping": w.d}
    before = builder.world
    for k in range(w.count):
        body = builder.add_body(f"body{k}", inertia)
        spring = fx.LinearSpringDamper(f"spring{k}", before, center, body, center, **constants)
        builder.add_force_element(spring)
        before = body


def _add_door(builder: fx.PlantBuilder, w: HingedDoor) -> None:
    inertia = fx.SpatialInertia.solid_box(w.m, size=(w.thickness, w.width, 1.0))
    panel = builder.add_body("panel", inertia)
    edge = builder.add_frame("edge", panel, (np.eye(3), (0.0, -0.5 * w.width, 0.0)))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, edge, axis=_AXES["z"]))
    builder.add_force_element(fx.DoorHinge("hinge", axis))
