"""The law of a spring and damper between two points.

The law follows Drake's LinearSpringDamper (class documentation and behavior of Drake 1.51).
"""

from __future__ import annotations

from dataclasses import dataclass

from flexure.blocks.forces.on_joints.coordinate_law import LinearlyDampedLaw
from flexure.diagrams.values.arrays import Array


@dataclass(frozen=True)
class SpringDamperLaw(LinearlyDampedLaw):
    """The law of a linear spring and damper along the length ℓ between two points.

    With the rate ℓ̇, the free length ℓ₀, stiffness k and damping c::

        tension = k (ℓ - ℓ₀) + c ℓ̇          how strongly it pulls
        f = -tension                        force along the length
        V = k (ℓ - ℓ₀)²/2                   stored energy

    A stretched spring pulls the points together, a compressed one pushes them apart, and the damper
    resists both directions. How ℓ and ℓ̇ follow from the motion of two bodies, and the forces on
    them from f, is told by `PointToPointElement`.

    Attributes
    ----------
    free_length : float
        Length ℓ₀ of the relaxed spring, > 0, in m.
    stiffness : float
        Stiffness k >= 0 in N/m.
    damping : float
        Damping constant c >= 0 in N s/m.

    See Also
    --------
    flexure.LinearSpringDamper : The element with this law.

    Examples
    --------
    A spring that is 0.5 m too long, and becomes shorter:

    >>> law = SpringDamperLaw(free_length=1.0, stiffness=100.0, damping=2.0)
    >>> law.tension(1.5, -1.0), law.stored_energy(1.5)
    (48.0, 12.5)
    """

    free_length: Array
    stiffness: Array
    damping: Array

    def elongation(self, length: Array) -> Array:
        """Return ℓ - ℓ₀ in m, negative where the spring is compressed."""
        return length - self.free_length

    def tension(self, length: Array, rate: Array) -> Array:
        """Return k (ℓ - ℓ₀) + c ℓ̇ in N, positive where it pulls."""
        return -self.force(length, rate)

    def conservative_force(self, q: Array) -> Array:
        """Return the force of the spring in N, -k (ℓ - ℓ₀), positive where it pushes."""
        return -self.stiffness * self.elongation(q)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy of the spring in J, zero at the free length."""
        elongation = self.elongation(q)
        return 0.5 * self.stiffness * (elongation * elongation)
