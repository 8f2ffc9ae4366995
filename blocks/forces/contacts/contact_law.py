"""The force of a contact over its gap: an elastic law with damping and friction."""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.optimize import brentq

from flexure.blocks.forces.contacts.contact_shapes import Touch
from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw, hunt_crossley_damping
from flexure.blocks.math import dot
from flexure.diagrams.values.arrays import Array


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
