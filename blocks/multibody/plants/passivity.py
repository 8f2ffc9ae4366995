"""Passivity check: random motions test that a force element never generates energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flexure.blocks.math import RigidTransform, rotation_about, rotation_from_quaternion
from flexure.blocks.multibody.bodies.body_motion import pose_on_wire
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, ForceElement
from flexure.diagrams.checks.arguments import generator, require
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError, warn
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.arrays import FloatArray, bounded, check_size

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.systems.ports import OutputPort

_ROUNDING = 1e-12
#: How far to go along a motion to see the energy change, as a part of the scale of positions.
_STEP = 1e-5
#: Mismatch of conservative power and stored energy, as a part of the scale of powers.
_MISMATCH = 1e-3
#: Power of forces that is not accounted for, likewise.
_UNACCOUNTED = 1e-6


@dataclass(frozen=True, repr=False)
class PassivityReport:
    """The report of `check_passivity`.

    Attributes
    ----------
    is_passive : bool
        Whether the element could be evaluated, all powers and energies were finite, its
        non-conservative power was positive in no motion, up to rounding, its conservative power was
        what its stored energy loses, within a thousandth of the scale of powers, and both powers
        were together that of its forces, within a millionth.
    greatest_power : float
        The greatest non-conservative power of all motions in W.
    power_scale : float
        The greatest magnitude of conservative and non-conservative power in W.
    greatest_mismatch : float
        The greatest magnitude of P_c + V̇ in W: of the difference between the conservative power and
        the rate at which the stored energy falls along the motion, which central differences tell
        to about 1e-6 of the scale of powers.
    greatest_unaccounted : float
        The greatest magnitude of F v - P_c - P_nc in W: of the power of the forces that neither of
        the two powers accounts for.
    num_motions : int
        Number of motions in which the element could be evaluated.
    num_refused : int
        Number of motions that it refused, such as near gimbal lock.
    worst : Context or None
        A context of the element with the motion of the greatest power.

    See Also
    --------
    check_passivity : Check an element or a plant.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> fx.check_passivity(spring).is_passive
    True
    """

    is_passive: bool
    greatest_power: float
    power_scale: float
    greatest_mismatch: float
    greatest_unaccounted: float
    num_motions: int
    num_refused: int
    worst: Context | None

    def __repr__(self) -> str:
        verdict = "passive" if self.is_passive else "not passive"
        refused = f", {self.num_refused} refused" if self.num_refused else ""
        power, mismatch = self.greatest_power + 0.0, self.greatest_mismatch  # no -0
        return (
            f"<PassivityReport: {verdict} in {self.num_motions} motions{refused}, P_nc <= "
            f"{power:.3g} W, |P_c + dV/dt| <= {mismatch:.3g} W, |F v - P_c - P_nc| <= "
            f"{self.greatest_unaccounted:.3g} W of {self.power_scale:.3g} W>"
        )


@answers_other_words
def check_passivity(
    element: ForceElement,
    context: Context | None = None,
    *,
    num_motions: int = 500,
    length: float = 1.0,
    speed: float = 1.0,
    seed: int | np.random.Generator = 0,
) -> PassivityReport:
    """Evaluate the non-conservative power P_nc of a force element in random motions.

    A passive element has P_nc <= 0 in every motion: beside what it stores, it only takes energy.
    And its conservative power P_c is the rate at which it gives back what it stores; else it could
    give more than it ever got. Both together are the power F v of its forces.

    Continuous states of the element, such as the stretch of dampers inside, are drawn as positions
    are, and move with their own rates.

    Parameters
    ----------
    element : ForceElement
        An element that is in no plant, or is not needed in one any further.
    context : Context, optional
        A context of the element, which gives its constants; the defaults when omitted.
    num_motions : int
        Number of random motions.
    length : float
        Scale > 0 of random positions in m and rad. Orientations are drawn from all rotations.
    speed : float
        Scale > 0 of random velocities in m/s and rad/s.
    seed : int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    PassivityReport

    Warns
    -----
    UserWarning
        When there was no force in any motion, so that the report says nothing.

    See Also
    --------
    doctor : Check a whole model for mistakes.

    Examples
    --------
    >>> import flexure as fx
    >>> body = fx.Body("body", fx.SpatialInertia.point_mass(1.0))
    >>> other = fx.Body("other", fx.SpatialInertia.point_mass(1.0))
    >>> spring = fx.LinearSpringDamper(
    ...     "spring", body, (0, 0, 0), other, (0, 0, 1), free_length=1.0, stiffness=5.0, damping=2.0
    ... )
    >>> report = check_passivity(spring)
    >>> report.is_passive, report.greatest_mismatch < 1e-6 * report.power_scale
    (True, True)
    """
    rng = generator(seed, "Cannot check for passivity")
    num_motions = check_size(num_motions, "a number of motions", minimum=1)
    for name, scale in (("length", length), ("speed", speed)):
        attempt = f"Cannot check for passivity with {name}"
        bounded(scale, attempt, lower=0.0, exclusive=True)
    fits, attempt = isinstance(element, ForceElement), "Cannot check for passivity"
    require(fits, element, attempt, "a force element", error=DeclarationError)
    if element.parent is not None:
        raise DeclarationError(
            f"Cannot check '{element.label}' for passivity",
            expected="a separate element, whose inputs are free",
            found=f"one in '{element.parent.label}'",
            remedy="Make another instance of it, outside of a plant",
        )
    context = element.create_default_context() if context is None else context.clone()
    greatest, refused, worst = -np.inf, 0, None
    found: list[list[float]] = []
    step = _STEP * min(length, 1.0) / speed
    for _ in range(num_motions):
        go_to = _random_motion(element, context, rng, length, speed)
        try:
            with np.errstate(all="ignore"):  # numbers that are not finite are a finding
                go_to = _with_state(go_to, element, context, rng, length)
                energies = [_number(element.stored_energy, go_to(time)) for time in (-step, step)]
                go_to(0.0)
                power = _number(element.non_conservative_power, context)
                conservative = _number(element.conservative_power, context)
                given = _power_of_forces(element, context)
        except EvaluationError:
            refused += 1
            continue
        rate = (energies[1] - energies[0]) / (2.0 * step)
        unaccounted = given - conservative - power
        largest = float(np.max(np.abs([power, conservative, given])))  # NaN if any is
        found.append([abs(conservative + rate), abs(unaccounted), largest])
        if worst is None or ((power > greatest or np.isnan(power)) and not np.isnan(greatest)):
            greatest, worst = power, context.clone()
    mismatch, unaccounted, power_scale = np.max([[0.0, 0.0, 0.0], *found], axis=0).tolist()
    passive = bool(
        refused < num_motions
        and np.isfinite([greatest, mismatch, unaccounted, power_scale]).all()
        and greatest <= _ROUNDING * power_scale
        and mismatch <= _MISMATCH * power_scale
        and unaccounted <= _UNACCOUNTED * power_scale
    )
    if found and power_scale == 0.0:
        warn(
            f"'{element.name}' exerts no force in {len(found)} motions, so that nothing is known "
            "about its power. Choose length= and speed= such that it acts"
        )
    return PassivityReport(
        passive, greatest, power_scale, mismatch, unaccounted, len(found), refused, worst
    )


def _power_of_forces(element: ForceElement, context: Context) -> float:
    """Return the power of all forces on what moves."""
    if isinstance(element, BodyForceElement):
        pairs = zip(element.force_ports, (e.velocity for e in element.attachments), strict=True)
        ends = [(force, velocity) for force, velocity in pairs if velocity is not None]
    else:
        ends = [(end.force, end.velocity) for end in element.joint_ends]
    return float(sum(force.eval(context) @ velocity.eval(context) for force, velocity in ends))


def _number(port: OutputPort, context: Context) -> float:
    """Return an output of size 1."""
    return float(port.eval(context)[0])


def _random_motion(
    element: ForceElement, context: Context, rng: np.random.Generator, length: float, speed: float
) -> Callable[[float], Context]:
    """Give an element random velocities; return a function that places it at times around zero."""
    if not isinstance(element, BodyForceElement):
        moving = []
        for end in element.joint_ends:
            q = end.joint.nearest_positions(_random_pose(rng, length))
            v = speed * rng.standard_normal(end.joint.num_velocities)
            end.velocity.fix(context, v)
            moving.append((end.position, q, end.joint.calc_position_rates(q, v)))

        def place_joints(time: float) -> Context:
            for port, q, rates in moving:
                port.fix(context, q + time * rates)
            return context

        return place_joints
    motions: dict[str, tuple[RigidTransform, FloatArray]] = {}
    for each in element.attachments:
        if each.velocity is not None:
            motion = _random_pose(rng, length), speed * rng.standard_normal(6)
            _, velocity = motions.setdefault(each.body.name, motion)
            each.velocity.fix(context, velocity)

    def place_bodies(time: float) -> Context:
        for each in element.attachments:
            if each.pose is not None:
                pose = pose_on_wire(_moved(*motions[each.body.name], time))
                each.pose.fix(context, np.concatenate(pose))
        return context

    return place_bodies


def _with_state(
    place: Callable[[float], Context],
    element: ForceElement,
    context: Context,
    rng: np.random.Generator,
    length: float,
) -> Callable[[float], Context]:
    """Draw the state of an element, if it has one, and let it move along with the bodies."""
    state = element.continuous_state
    if state is None:
        return place
    present = length * rng.standard_normal(state.size)
    state.set(place(0.0), present)
    rates = element.eval_time_derivatives(context)

    def place_all(time: float) -> Context:
        state.set(context, present + time * rates)
        return place(time)

    return place_all


def _moved(X: RigidTransform, V: FloatArray, time: float) -> RigidTransform:
    """Return where a pose is when it has moved with a velocity."""
    speed = float(np.linalg.norm(V[:3]))
    return RigidTransform(rotation_about(V[:3] / speed, speed * time) @ X.R, X.p + time * V[3:])


def _random_pose(rng: np.random.Generator, length: float) -> RigidTransform:
    """Draw a pose from all orientations."""
    R = rotation_from_quaternion(rng.standard_normal(4))
    return RigidTransform(R, length * rng.standard_normal(3))
