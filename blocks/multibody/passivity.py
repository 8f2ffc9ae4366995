"""Checking on random motions that a force element never makes energy out of nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks.math import RigidTransform, rotation_from_quaternion
from flexure.blocks.multibody.force_element import (
    BodyForceElement,
    ForceElement,
    JointForceElement,
    pose_on_wire,
)
from flexure.diagrams.errors import DeclarationError, EvaluationError
from flexure.diagrams.values import FloatArray, check_size

if TYPE_CHECKING:
    from flexure.diagrams.context import Context

_ROUNDING = 1e-12


@dataclass(frozen=True)
class PassivityReport:
    """What `check_passivity` found.

    Attributes
    ----------
    is_passive : bool
        Whether the element could be evaluated, and its non-conservative power was positive in no
        motion, up to rounding.
    greatest_power : float
        The greatest non-conservative power of all motions in W.
    power_scale : float
        The greatest magnitude of conservative and non-conservative power in W.
    num_motions : int
        Number of motions in which the element could be evaluated.
    num_refused : int
        Number of motions that it refused, such as near gimbal lock.
    worst : Context or None
        A context of the element with the motion of the greatest power.
    """

    is_passive: bool
    greatest_power: float
    power_scale: float
    num_motions: int
    num_refused: int
    worst: Context | None


def check_passivity(
    element: ForceElement,
    context: Context | None = None,
    *,
    count: int = 500,
    length: float = 1.0,
    speed: float = 1.0,
    seed: int | np.random.Generator = 0,
) -> PassivityReport:
    """Evaluate the non-conservative power P_nc of a force element in random motions.

    A passive element has P_nc <= 0 in every motion: beside what it stores, it only takes energy.

    Parameters
    ----------
    element : ForceElement
        An element that is in no plant (or no longer wanted in one).
    context : Context, optional
        A context of the element, which gives its constants; the defaults when omitted.
    count : int
        Number of random motions.
    length : float
        Scale of random positions in m and rad. Orientations are drawn from all rotations.
    speed : float
        Scale of random velocities in m/s and rad/s.
    seed : int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    PassivityReport

    Examples
    --------
    >>> import flexure as fx
    >>> body = fx.Body("body", fx.SpatialInertia.point_mass(1.0))
    >>> other = fx.Body("other", fx.SpatialInertia.point_mass(1.0))
    >>> spring = fx.LinearSpringDamper(
    ...     "spring", body, (0, 0, 0), other, (0, 0, 1), free_length=1.0, stiffness=5.0, damping=2.0
    ... )
    >>> check_passivity(spring).is_passive
    True
    """
    rng = np.random.default_rng(seed)
    count = check_size(count, "a number of motions", minimum=1)
    if not isinstance(element, (BodyForceElement, JointForceElement)):
        raise DeclarationError(
            "Cannot check for passivity", expected="a force element", found=repr(element)
        )
    if element.parent is not None:
        raise DeclarationError(
            f"Cannot check '{element.label}' for passivity",
            expected="an element of its own, whose inputs are free",
            found=f"one in '{element.parent.label}'",
            remedy="Make another instance of it, outside of a plant",
        )
    context = element.create_default_context() if context is None else context.clone()
    greatest, scale, refused = -np.inf, 0.0, 0
    worst = None
    for _ in range(count):
        _move(element, context, rng, length, speed)
        try:
            power = float(element.non_conservative_power.eval(context)[0])
            conservative = float(element.conservative_power.eval(context)[0])
        except EvaluationError:
            refused += 1
            continue
        scale = max(scale, abs(power), abs(conservative))
        if power > greatest:
            greatest, worst = power, context.clone()
    passive = refused < count and greatest <= _ROUNDING * scale
    return PassivityReport(passive, greatest, scale, count - refused, refused, worst)


def _move(
    element: BodyForceElement | JointForceElement,
    context: Context,
    rng: np.random.Generator,
    length: float,
    speed: float,
) -> None:
    """Give an element a random motion."""
    if isinstance(element, JointForceElement):
        joint = element.joint
        positions = joint.nearest_positions(_random_pose(rng, length))
        element.position.fix(context, positions)
        element.velocity.fix(context, speed * rng.standard_normal(joint.num_velocities))
        return
    bodies: dict[str, tuple[list[FloatArray], FloatArray]] = {}
    for each in element.attachments:
        if each.pose is not None and each.velocity is not None:
            motion = pose_on_wire(_random_pose(rng, length)), speed * rng.standard_normal(6)
            pose, velocity = bodies.setdefault(each.body.name, motion)
            each.pose.fix(context, np.concatenate(pose))
            each.velocity.fix(context, velocity)


def _random_pose(rng: np.random.Generator, length: float) -> RigidTransform:
    """Draw a pose from all orientations."""
    R = rotation_from_quaternion(rng.standard_normal(4))
    return RigidTransform(R, length * rng.standard_normal(3))


__all__ = ["PassivityReport", "check_passivity"]
