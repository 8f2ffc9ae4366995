"""The law of a contact force over its gap: elastic, damped, with friction that slips or sticks."""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.optimize import brentq

from flexure.blocks.forces.contacts.contact_shapes import Touch
from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw, hunt_crossley_damping
from flexure.blocks.math import dot
from flexure.blocks.multibody.force_elements.force_element import BodyAttachment
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require_that
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array

if TYPE_CHECKING:
    from flexure.blocks.forces.contacts.contact import Contact


@dataclass(frozen=True)
class ContactLaw(CoordinateLaw):
    """The law of a compliant contact, with the gap g, its rate ġ and the depth x = max(-g, 0).

    ::

        n = k xᵉ                            elastic force
        N = n max(0, 1 - d ġ)               normal force, which never pulls
        V = k xᵉ⁺¹/(e + 1)                  stored energy
        F = -μ N v/√(v² + v_s²)             friction at the velocity v of sliding

    >>> law = ContactLaw(1e6, 1.5, damping=0.0)
    >>> float(law.force(-1e-4, 0.0).round(9)), float(law.force(1e-4, 0.0))
    (1.0, 0.0)
    """

    stiffness: Array  # stiffness k >= 0 in N/mᵉ
    exponent: float  # exponent e >= 1: 1 for a linear contact, 1.5 for Hertz's
    damping: Array  # damping constant d >= 0 of `hunt_crossley_damping` in s/m

    def conservative_force(self, q: Array) -> Array:
        """Return the elastic force n at a gap in N."""
        return self.stiffness * np.maximum(-q, 0.0) ** self.exponent

    def dissipative_force(self, q: Array, v: Array) -> Array:
        """Return what damping adds to the force at a gap and its rate in N."""
        return hunt_crossley_damping(self.conservative_force(q), -v, self.damping)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy V at a gap in J."""
        power = self.exponent + 1.0
        return self.stiffness * np.maximum(-q, 0.0) ** power / power

    def impact_time(self, mass: Array, speed: Array) -> Array:
        """Return how long a mass in kg that arrives at a speed in m/s stays in contact, undamped.

        With the greatest depth x: ``(2 x/u) ∫ dz/√(1 - zᵉ⁺¹)`` from 0 to 1, π √(m/k) for e = 1.
        """
        power = self.exponent + 1.0
        depth = (0.5 * power * mass * speed**2 / self.stiffness) ** (1.0 / power)
        part = gamma(1.0 + 1.0 / power) / gamma(0.5 + 1.0 / power)
        return 2.0 * np.sqrt(np.pi) * part * depth / speed


@runtime_checkable
class Elastic(Protocol):
    """A material with elastic constants, such as `Material`."""

    @property
    def youngs_modulus(self) -> float:
        """Young's modulus in Pa."""

    @property
    def poissons_ratio(self) -> float:
        """Poisson's ratio."""


class Push(NamedTuple):
    """Motion and forces at one touch, in the world."""

    touch: Touch  # the place; its normal is from B to A
    rate: Array  # rate of the gap
    load: Array  # normal force N >= 0
    sliding: Array  # velocity of A in B along the surface, shape (3,)
    friction: Array | None  # friction on A, shape (3,) or None

    @property
    def force(self) -> Array:
        """The force on A."""
        normal = self.load * self.touch.normal
        return normal if self.friction is None else normal + self.friction


def friction_force(load: Array, velocity: Array, coefficient: Array, transition: Array) -> Array:
    """Return the regularized friction at a normal force, against a velocity of sliding, in N."""
    return -coefficient * load * velocity / np.sqrt(dot(velocity, velocity) + transition**2)


def damping_for(restitution: float, speed: float) -> float:
    """Return the damping d with which a mass that arrives with a speed leaves with e times it.

    It solves ``d u - ln(1 + d u) = -d w - ln(1 - d w)`` with w = e u, where 0 < d w < 1.
    """
    start = 1.5 * (1.0 - restitution)  # the limit of d u for small losses
    if start < 1e-5:
        return start / speed

    def excess(z: float) -> float:
        return float((1.0 + restitution) * z - np.log1p(z) + np.log1p(-restitution * z))

    # It rises from zero, returns to it once, and falls to minus infinity at z = 1/e.
    found = brentq(excess, 0.5 * start, (1.0 - 1e-15) / restitution, xtol=1e-300, rtol=1e-14)
    return float(found) / speed


def friction_constants(attempt: str, **given: float | None) -> dict[str, float]:
    """Return the constants of friction that are given, or refuse those that do not fit together."""
    has = {what: value is not None for what, value in given.items()}
    sticks, at_rest = has["tangential_stiffness"], has["static_friction"]
    is_complete = has["transition_velocity"] + sticks == has["friction"]
    require_that(
        is_complete and at_rest == has["stribeck_velocity"] and at_rest <= sticks,
        attempt,
        "friction with transition_velocity or tangential_stiffness; with the latter also "
        "static_friction and stribeck_velocity, or neither",
        ", ".join(f"{what}={value!r}" for what, value in given.items()),
        "Choose a transition velocity far below those of sliding, such as 1e-3, or a tangential "
        "stiffness of about the stiffness",
        error=DeclarationError,
    )
    return {what: value for what, value in given.items() if value is not None}


class StickingFriction:
    """The friction of all places of a contact, whose state is the stretch z of each.

    With the limit μ N and the velocity v of sliding::

        f = k (z + T v),   F = -f min(1, μ N/|f|),   ż = -(F/k + z)/T

    Parameters of the contact are the constants k and T, and those of friction at rest. Stretches
    are expressed in the frame of the ground.
    """

    def __init__(self, contact: Contact, ground: BodyAttachment) -> None:
        self._contact, self._ground, contact.sticks = contact, ground, True
        assert contact.friction is not None  # nothing sticks without
        self._friction = contact.friction  # of a fast slip
        if contact.static_friction is not None:
            contact.declare_relation(self._friction, "<=", contact.static_friction)

    def _coefficient(self, context: Any, v: Array) -> Array:
        """Return the coefficient of friction at a velocity."""
        friction, at_rest = self._friction(context), self._contact.static_friction
        if at_rest is None:
            return friction
        fading = np.exp(-dot(v, v) / self._contact.stribeck_velocity(context) ** 2)
        return friction + (at_rest(context) - friction) * fading

    def _stretches(self, context: Any) -> list[Array]:
        """Return the stretch at each place."""
        state = self._contact.continuous_state
        assert state is not None  # it is declared where friction sticks
        z = state(context)
        return [z[k : k + 3] for k in range(0, len(z), 3)]

    def force(self, context: Any, k: int, normal: Array, load: Array, v: Array) -> Array:
        """Return the friction on A at a place under a load, in the world."""
        limit = self._coefficient(context, v) * load
        z = self._ground.at_rest(context).X_WF.R @ self._stretches(context)[k]
        stiffness = self._contact.tangential_stiffness(context)
        along = z - dot(z, normal) * normal
        f = stiffness * (along + self._contact.relaxation_time(context) * v)
        square = dot(f, f)
        slips = square > limit * limit
        return -f * np.where(slips, limit / np.sqrt(np.where(slips, square, 1.0)), 1.0)

    def rates(self, context: Any) -> Array:
        """Return the rates of the stretches at all places, which relax where there is no force."""
        contact, z = self._contact, np.stack(self._stretches(context))
        stiffness, time = contact.tangential_stiffness(context), contact.relaxation_time(context)
        R = self._ground.at_rest(context).X_WF.R

        def held() -> Array:
            forces = np.stack([R.T @ push.friction for push in contact.pushes(context)])
            return -(forces / stiffness + z) / time

        return scalars.skip_where(contact.are_apart(context), -z / time, held)

    def energy(self, context: Any) -> Array:
        """Return the energy of the springs."""
        squares = [dot(z, z) for z in self._stretches(context)]
        return 0.5 * self._contact.tangential_stiffness(context) * sum(squares)

    def power(self, context: Any) -> Array:
        """Return the power that goes into the springs."""
        pairs = zip(self._stretches(context), self.rates(context), strict=True)
        powers = [dot(z, rate) for z, rate in pairs]
        return self._contact.tangential_stiffness(context) * sum(powers)
