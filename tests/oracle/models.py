"""Building the mechanisms that the oracle files describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import flexure as fx
from flexure.blocks.math import rotation_from_quaternion

Pose = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def pose(spec: dict[str, Any] | None) -> Pose:
    """Return a pose (R, p) from a quaternion and a position; nothing means the identity."""
    if spec is None:
        return np.eye(3), np.zeros(3)
    return rotation_from_quaternion(np.array(spec["q"])), np.array(spec["p"], dtype=float)


def symmetric(six: list[float]) -> npt.NDArray[np.float64]:
    """Return the matrix of the numbers xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


JOINTS: dict[str, Callable[..., fx.multibody.Joint]] = {
    "weld": fx.WeldJoint,
    "revolute": fx.RevoluteJoint,
    "prismatic": fx.PrismaticJoint,
    "screw": fx.ScrewJoint,
    "universal": fx.UniversalJoint,
    "planar": fx.PlanarJoint,
    "ball_rpy": fx.BallRpyJoint,
    "rpy_floating": fx.RpyFloatingJoint,
    "quaternion_floating": fx.QuaternionFloatingJoint,
}
OPTIONS = ("axis", "screw_pitch", "damping", "angular_damping", "translational_damping")


def build(model: dict[str, Any], *, ledger: bool = False) -> fx.Plant:
    """Build a plant from a model; force elements are e0, e1, ..., forces on bodies on_<body>."""
    builder = fx.PlantBuilder("oracle", gravity=model["gravity"])
    bodies = {"world": builder.world}
    for spec in model["bodies"]:
        inertia = fx.SpatialInertia(spec["mass"], spec["p_BoBcm"], symmetric(spec["I_BBcm_B"]))
        bodies[spec["name"]] = builder.add_body(spec["name"], inertia)

    def frame(name: str, body: str, spec: dict[str, Any] | None) -> fx.Frame:
        return builder.add_frame(name, bodies[body], pose(spec))

    joints = {}
    for spec in model["joints"]:
        name = spec["name"]
        ends = [
            frame(f"{name}_F", spec["parent"], spec.get("X_PF")),
            frame(f"{name}_M", spec["child"], spec.get("X_BM")),
        ]
        options = {key: spec[key] for key in OPTIONS if key in spec}
        if spec["type"] == "weld":
            options = {"pose": pose(spec.get("X_FM"))}
        joints[name] = builder.add_joint(JOINTS[spec["type"]](name, *ends, **options))
    for k, spec in enumerate(model.get("force_elements", [])):
        builder.add_force_element(_element(f"e{k}", spec, frame, bodies, joints))
    for spec in model.get("actuators", []):
        rotor = {key: spec[key] for key in ("gear_ratio", "rotor_inertia")}
        builder.add_actuator(spec["name"], joints[spec["joint"]], **rotor)
    for body in builder.bodies[1:]:
        builder.add_external_force(f"on_{body.name}", body)
    if ledger:
        builder.add_energy_ledger()
    return builder.build()


def _element(
    name: str,
    spec: dict[str, Any],
    frame: Callable[..., fx.Frame],
    bodies: dict[str, fx.Body],
    joints: dict[str, fx.multibody.Joint],
) -> fx.multibody.ForceElement:
    if spec["type"] == "door_hinge":
        return fx.DoorHinge(name, joints[spec["joint"]], fx.DoorHingeConfig(**spec["config"]))
    if spec["type"] == "linear_spring_damper":
        constants = {key: spec[key] for key in ("free_length", "stiffness", "damping")}
        ends = (bodies[spec["body_A"]], spec["p_AP"], bodies[spec["body_B"]], spec["p_BQ"])
        return fx.LinearSpringDamper(name, *ends, **constants)
    assert spec["type"] == "linear_bushing_rpy", spec["type"]
    constants = {
        f"{what}_{kind}": spec[f"{what}_{kind}"]
        for what in ("torque", "force")
        for kind in ("stiffness", "damping")
    }
    frame_a = frame(f"{name}_A", spec["body_L0"], spec.get("X_L0A"))
    frame_c = frame(f"{name}_C", spec["body_L1"], spec.get("X_L1C"))
    return fx.LinearBushingRollPitchYaw(name, frame_a, frame_c, **constants)


class Coordinates:
    """Translates between the coordinates of an oracle file and those of our plant."""

    def __init__(self, plant: fx.Plant, layout: list[dict[str, Any]]) -> None:
        self.q = np.zeros(plant.num_positions, dtype=int)
        self.v = np.zeros(plant.num_velocities, dtype=int)
        for entry in layout:
            joint = plant.joint(entry["joint"])
            assert (joint.num_positions, joint.num_velocities) == (entry["nq"], entry["nv"])
            for ours, start, count, first in (
                (self.q, joint.position_start, entry["nq"], entry["q_start"]),
                (self.v, joint.velocity_start, entry["nv"], entry["v_start"]),
            ):
                ours[start : start + count] = np.arange(first, first + count)

    def state(self, entry: dict[str, Any]) -> npt.NDArray[np.float64]:
        """Return our state (q, v) from theirs."""
        return np.concatenate([np.array(entry["q"])[self.q], np.array(entry["v"])[self.v]])
