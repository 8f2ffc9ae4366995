"""Moving the bodies of a force element by hand, without a plant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import flexure as fx
from flexure.blocks import math as fm
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import pose_on_wire
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement

FloatArray = npt.NDArray[np.float64]


class BodyMotion(NamedTuple):
    """Pose and spatial velocity of a body in the world."""

    X_WB: fm.RigidTransform
    V_WB: FloatArray


AT_REST = BodyMotion(fm.RigidTransform(np.eye(3), np.zeros(3)), np.zeros(6))


def world() -> Body:
    """Make a body that is the world."""
    body = Body("world")
    body.number = 0
    return body


def random_motion(rng: np.random.Generator) -> BodyMotion:
    """Draw pose and velocity of a body; two of them are turned by less than 2.4 rad."""
    axis, angle = rng.normal(size=3), rng.uniform(0.0, 1.2)
    rotation = fm.rotation_about(axis / np.linalg.norm(axis), angle)
    return BodyMotion(fm.RigidTransform(rotation, rng.normal(size=3)), rng.normal(size=6))


def random_pair(rng: np.random.Generator, turn: float = 1.2) -> tuple[BodyMotion, BodyMotion]:
    """Draw the motions of two bodies, with a rotation between them of some angle in rad."""
    first, second = random_motion(rng), random_motion(rng)
    axis = rng.normal(size=3)
    relative = fm.rotation_about(axis / np.linalg.norm(axis), turn)
    R_WB = first.X_WB.R @ relative
    return first, second._replace(X_WB=fm.RigidTransform(R_WB, second.X_WB.p))


def move(element: BodyForceElement, context: fx.Context, *motions: BodyMotion) -> None:
    """Fix the inputs of an element, one motion for each attachment."""
    for attachment, motion in zip(element.attachments, motions, strict=True):
        if attachment.pose is not None and attachment.velocity is not None:
            attachment.pose.fix(context, np.concatenate(pose_on_wire(motion.X_WB)))
            attachment.velocity.fix(context, motion.V_WB)


def context_of(element: BodyForceElement, *motions: BodyMotion) -> fx.Context:
    """Make a context of an element whose bodies move in some way."""
    context = element.create_default_context()
    move(element, context, *motions)
    return context


def forces(element: BodyForceElement, context: fx.Context) -> list[FloatArray]:
    """Return the spatial forces on the bodies about their origins."""
    return [port.eval(context) for port in element.force_ports]


def number(port: Any, context: fx.Context) -> float:
    """Return the only component of an output."""
    (value,) = port.eval(context)
    return float(value)


def carried(motion: BodyMotion, X: fm.RigidTransform, V: FloatArray) -> BodyMotion:
    """Move a body along with a frame that has the pose X and the spatial velocity V."""
    X_WB = fm.compose_transforms(X, motion.X_WB)
    own = fm.rotate_spatial(X.R, motion.V_WB)
    return BodyMotion(X_WB, own + fm.shift_spatial_velocity(V, X_WB.p - X.p))
