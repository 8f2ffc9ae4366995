"""A working call of what makes bodies: inertias, shapes, and builders of plants."""

from __future__ import annotations

from typing import Any

import numpy as np

import flexure as fx
from flexure.constraints import (
    CamFollower,
    Coupling,
    DistanceConstraint,
    GearPair,
    HolonomicConstraint,
    KnifeEdge,
    LoopJoint,
    PointOnLine,
    PointOnPlane,
    PrescribedMotion,
    RollingDisk,
    RollingSphere,
    VelocityConstraint,
)
from tests.contracts import parts
from tests.support.calls.odd_arguments import Call
from tests.support.calls.public_calls import (
    BOX,
    Make,
    method,
    plant_builder,
    state_of_plant_builder,
    whole,
)
from tests.support.mechanics import stl


def new_plant() -> tuple[Any, Any]:
    made = plant_builder()
    return made, lambda: state_of_plant_builder(made)


def adding(verb: str, **arguments: Any) -> Make:
    def make() -> Call:
        made, snapshot = new_plant()
        given = {k: v(made) if callable(v) else v for k, v in arguments.items()}
        return Call(getattr(made, verb), given, snapshot)

    return make


def constraint_calls() -> dict[str, Make]:
    """Constructors of constraints."""
    a, b = parts.lump("a"), parts.lump("b")
    frames = {"frame_a": a, "frame_c": b}
    point = {"body_b": b, "p_BQ": (0.0, 0.1, 0.0)}
    shaft, guide = (
        kind("axis", parts.lump("a"), parts.lump("b"), axis=(0.0, 0.0, 1.0))
        for kind in (fx.RevoluteJoint, fx.PrismaticJoint)
    )
    third = fx.RevoluteJoint("third", parts.lump("a"), parts.lump("c"), axis=(0.0, 0.0, 1.0))
    return {
        "CamFollower": whole(
            CamFollower,
            name="c",
            cam=shaft,
            follower=guide,
            angles=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            lifts=[0.0, 0.1, 0.3, 0.4, 0.3, 0.1],
        ),
        "Coupling.belt": whole(
            Coupling.belt,
            name="c",
            driver=shaft,
            driven=guide,
            radii=[1.0, 2.0],
            offset=0.1,
            crossed=True,
        ),
        "Coupling.differential": whole(
            Coupling.differential,
            name="c",
            drive=shaft,
            left=guide,
            right=third,
            ratio=2.0,
            offset=0.1,
        ),
        "Coupling.mimic": whole(
            Coupling.mimic, name="c", joint=shaft, mimicked=guide, multiplier=2.0, offset=0.1
        ),
        "Coupling.planetary": whole(
            Coupling.planetary,
            name="c",
            sun=shaft,
            carrier=guide,
            ring=third,
            teeth=[20.0, 60.0],
            offset=0.1,
        ),
        "Coupling.rack_and_pinion": whole(
            Coupling.rack_and_pinion, name="c", pinion=shaft, rack=guide, radius=0.1, offset=0.1
        ),
        "Coupling.screw": whole(
            Coupling.screw, name="c", turning=shaft, sliding=guide, lead=0.1, offset=0.1
        ),
        "Coupling": whole(Coupling, name="c", factors={shaft: 1.0, guide: 2.0}, offset=0.1),
        "DistanceConstraint": whole(
            DistanceConstraint, name="c", body_a=a, p_AP=(0.1, 0.0, 0.0), **point, distance=0.1
        ),
        "GearPair": whole(GearPair, name="c", driver=shaft, driven=guide, ratio=2.0, offset=0.1),
        "HolonomicConstraint": whole(
            HolonomicConstraint, name="c", joints=[shaft], function=lambda q, t: q[0] - t
        ),
        "KnifeEdge": whole(KnifeEdge, name="c", **frames, sideways=(0.0, 1.0, 0.0)),
        "LoopJoint": whole(LoopJoint, joint=shaft),
        "PointOnLine": whole(PointOnLine, name="c", frame_a=a, **point, axis=(0.0, 0.0, 1.0)),
        "PointOnPlane": whole(PointOnPlane, name="c", frame_a=a, **point, normal=(0.0, 0.0, 1.0)),
        "PrescribedMotion": whole(PrescribedMotion, name="c", joint=shaft),
        "RollingDisk": whole(
            RollingDisk,
            name="c",
            **frames,
            radius=0.1,
            axis=(0.0, 1.0, 0.0),
            normal=(0.0, 0.0, 1.0),
            crown_radius=0.01,
        ),
        "RollingSphere": whole(
            RollingSphere, name="c", **frames, radius=0.1, normal=(0.0, 0.0, 1.0)
        ),
        "RigidStop": whole(
            fx.RigidStop,
            name="c",
            joint=shaft,
            restitution=0.5,
            lower=-1.0,
            upper=1.0,
            rest_velocity=1e-3,
        ),
        "StickSlipFriction": whole(
            fx.StickSlipFriction,
            name="c",
            joint=shaft,
            coulomb_friction=1.0,
            static_friction=2.0,
            stribeck_velocity=0.1,
            viscous_friction=0.5,
        ),
        "BearingFriction": whole(
            fx.BearingFriction,
            name="c",
            joint=shaft,
            friction=0.1,
            static_friction=0.2,
            radius=0.01,
            length=0.05,
            thrust_radius=0.02,
        ),
        "VelocityConstraint": whole(
            VelocityConstraint, name="c", joints=[shaft], function=lambda q, v, t: v[0] - t
        ),
    }


def body_calls() -> dict[str, Make]:
    """Constructors of inertias and shapes, and the methods of builders of plants."""
    inertia, shape = fx.SpatialInertia, fx.BodyShape
    knob = shape.sphere(radius=0.1)
    return constraint_calls() | {
        "BodyShape.box": whole(shape.box, size=(0.1, 0.2, 0.3)),
        "BodyShape.capsule": whole(shape.capsule, radius=0.1, length=0.2, axis="x"),
        "BodyShape.colored": whole(knob.colored, color="blue"),
        "BodyShape.cylinder": whole(shape.cylinder, radius=0.1, length=0.2, axis="x"),
        "BodyShape.ellipsoid": whole(shape.ellipsoid, semi_axes=(0.1, 0.2, 0.3)),
        "BodyShape.mesh": whole(shape.mesh, source=(np.eye(3), [[0, 1, 2]]), scale=1.0),
        "BodyShape.moved": whole(knob.moved, pose=(np.eye(3), (0.1, 0.2, 0.3))),
        "BodyShape.rod": whole(shape.rod, length=0.2, axis="x"),
        "BodyShape.sphere": whole(shape.sphere, radius=0.1),
        "BodyShape.tube": whole(
            shape.tube, inner_radius=0.1, outer_radius=0.2, length=0.2, axis="x"
        ),
        "SpatialInertia.with_shape": whole(BOX.with_shape, shape=knob),
        "SpatialInertia": whole(inertia, mass=2.0, com=(0.1, 0.0, 0.0), inertia=(0.5, 0.5, 0.5)),
        "SpatialInertia.hollow_cylinder": whole(
            inertia.hollow_cylinder, mass=1.0, inner_radius=0.1, outer_radius=0.2, length=0.3
        ),
        "SpatialInertia.hollow_sphere": whole(inertia.hollow_sphere, mass=1.0, radius=0.1),
        "SpatialInertia.point_mass": whole(inertia.point_mass, mass=1.0),
        "SpatialInertia.solid_box": whole(inertia.solid_box, mass=1.0, size=(0.1, 0.2, 0.3)),
        "SpatialInertia.solid_mesh": whole(
            inertia.solid_mesh, source=(stl.VERTICES, stl.TRIANGLES), density=1e3
        ),
        "SpatialInertia.solid_capsule": whole(
            inertia.solid_capsule, mass=1.0, radius=0.1, length=0.2
        ),
        "SpatialInertia.solid_cylinder": whole(
            inertia.solid_cylinder, mass=1.0, radius=0.1, length=0.2
        ),
        "SpatialInertia.solid_ellipsoid": whole(
            inertia.solid_ellipsoid, mass=1.0, semi_axes=(0.1, 0.2, 0.3)
        ),
        "SpatialInertia.solid_sphere": whole(inertia.solid_sphere, mass=1.0, radius=0.1),
        "SpatialInertia.thin_plate": whole(inertia.thin_plate, mass=1.0, size=(0.1, 0.2)),
        "SpatialInertia.thin_rod": whole(inertia.thin_rod, mass=1.0, length=0.2),
        "SpatialInertia.moved": whole(BOX.moved, X_AB=(np.eye(3), (0.1, 0.2, 0.3))),
        "SpatialInertia.rotated": whole(BOX.rotated, R=np.eye(3)),
        "SpatialInertia.shifted": whole(BOX.shifted, p=(0.1, 0.2, 0.3)),
        "SpatialInertia.with_mass": whole(BOX.with_mass, mass=2.0),
        "PlantBuilder.add_body": method(
            new_plant, "add_body", name="b", inertia=BOX, com=None, model_instance="default"
        ),
        "PlantBuilder.add_shape": adding(
            "add_shape",
            on=lambda made: made.world,
            shape=fx.BodyShape.sphere(radius=0.1),
            pose=(0.1, 0.2, 0.3),
            color="blue",
        ),
        "PlantBuilder.add_frame": adding(
            "add_frame", name="f", on=lambda made: made.world, pose=(0.1, 0.2, 0.3)
        ),
        "PlantBuilder.add_joint": method(new_plant, "add_joint", joint=None),
        "PlantBuilder.add_loop_joint": method(new_plant, "add_loop_joint", joint=None),
        "PlantBuilder.assemble_starts": method(new_plant, "assemble_starts", fixed=()),
        "PlantBuilder.add_constraint": method(new_plant, "add_constraint", constraint=None),
        "PlantBuilder.add_force_element": method(new_plant, "add_force_element", element=None),
        "PlantBuilder.add_assembly": method(new_plant, "add_assembly", assembly=None),
        "PlantBuilder.add_actuator": adding(
            "add_actuator",
            name="second",
            joint=lambda made: made.joint("axis"),
            gear_ratio=1.0,
            rotor_inertia=0.0,
            effort_limit=np.inf,
        ),
        "PlantBuilder.add_external_force": adding(
            "add_external_force", name="push", body=lambda made: made.body("link")
        ),
        "PlantBuilder.add_energy_ledger": method(new_plant, "add_energy_ledger", name="ledger"),
        "PlantBuilder.body": method(new_plant, "body", name="link"),
        "PlantBuilder.frame": method(new_plant, "frame", name="tip"),
        "PlantBuilder.joint": method(new_plant, "joint", name="axis"),
    }
