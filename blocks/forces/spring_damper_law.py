"""The force of a spring and damper between two points, as a function of where they are.

The law follows Drake's LinearSpringDamper (class documentation and behavior of Drake 1.51).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.errors import EvaluationError
from flexure.diagrams.values import Array

_EPSILON = 2.0**-52


@dataclass(frozen=True)
class SpringDamperLaw:
    """The law of a linear spring and damper between a point P of body A and Q of body B.

    With the position p from P to Q, p = p_WQ - p_WP, its rate v = v_WQ - v_WP, both in the world
    frame, the free length ℓ₀, stiffness k and damping c::

        ℓ = √(p·p + δ²),  δ = 2⁻⁵² ℓ₀       soft length
        r̂ = p/ℓ                             direction from P to Q
        ℓ̇ = v·r̂                             the exact rate of the soft length
        f = (k (ℓ - ℓ₀) + c ℓ̇) r̂            force on A at P; that on B at Q is -f
        V = k (ℓ - ℓ₀)²/2                   stored energy

    A stretched spring pulls the bodies together, a compressed one pushes them apart, and the damper
    resists both directions.

    Attributes
    ----------
    free_length : float
        Length ℓ₀ of the relaxed spring, > 0, in m.
    stiffness : float
        Stiffness k >= 0 in N/m.
    damping : float
        Damping constant c >= 0 in N s/m.

    Notes
    -----
    The constants may be symbols; they are checked by the block. All functions take vectors of three
    numbers or symbols, or arrays of shape (..., 3) with one vector per row.

    The points must not meet, because the direction is lost there: the soft length only keeps the
    equations finite. Within a distance of δ ``refuse_coincident_points`` raises.

    Examples
    --------
    A spring pulls P towards Q, which is 0.5 m too far away:

    >>> law = SpringDamperLaw(free_length=1.0, stiffness=100.0, damping=2.0)
    >>> p, v = np.array([0.0, 0.0, 1.5]), np.array([3.0, 0.0, -1.0])
    >>> law.force(p, v)
    array([ 0.,  0., 48.])
    >>> float(law.stored_energy(p))
    12.5
    """

    free_length: Array
    stiffness: Array
    damping: Array

    def length(self, p: Array) -> Array:
        """Return the soft length ℓ in m."""
        return np.sqrt(np.sum(p * p, axis=-1) + (_EPSILON * self.free_length) ** 2)

    def elongation(self, p: Array) -> Array:
        """Return ℓ - ℓ₀ in m, negative where the spring is compressed."""
        return self.length(p) - self.free_length

    def direction(self, p: Array) -> Array:
        """Return r̂, which points from P to Q; its norm is 1 but for distances close to δ."""
        return p / np.expand_dims(self.length(p), -1)

    def rate(self, p: Array, v: Array) -> Array:
        """Return ℓ̇ in m/s, positive while the points move apart."""
        return np.sum(v * self.direction(p), axis=-1)

    def tension(self, p: Array, v: Array) -> Array:
        """Return k (ℓ - ℓ₀) + c ℓ̇ in N, positive where it pulls."""
        return self.stiffness * self.elongation(p) + self.damping * self.rate(p, v)

    def force(self, p: Array, v: Array) -> Array:
        """Return the force f on A at P in N; B has -f at Q."""
        return np.expand_dims(self.tension(p, v), -1) * self.direction(p)

    def stored_energy(self, p: Array) -> Array:
        """Return the energy V of the spring in J, zero at the free length."""
        return 0.5 * self.stiffness * self.elongation(p) ** 2

    def conservative_power(self, p: Array, v: Array) -> Array:
        """Return the power of the spring in W, -k (ℓ - ℓ₀) ℓ̇, the negative rate of V."""
        return -self.stiffness * self.elongation(p) * self.rate(p, v)

    def non_conservative_power(self, p: Array, v: Array) -> Array:
        """Return the power of the damper in W, -c ℓ̇², never positive."""
        return -self.damping * self.rate(p, v) ** 2


def refuse_coincident_points(label: str, p: Array, free_length: Array) -> None:
    """Raise when the ends of a spring are so close that its direction is lost.

    Symbols pass unchecked.

    Parameters
    ----------
    label : str
        Path of the spring, for the message.
    p : array_like, shape (3,)
        Position from one end to the other in m.
    free_length : float
        Length of the relaxed spring in m.

    Raises
    ------
    EvaluationError
        When the distance is below 2⁻⁵² of the free length.
    """
    if scalars.is_symbolic(p) or scalars.is_symbolic(free_length):
        return
    nearest = _EPSILON * free_length
    if np.sum(p * p) < nearest**2:
        raise EvaluationError(
            f"Cannot evaluate the force of '{label}'",
            expected=f"a length of at least {nearest:.3g} m",
            found=f"a spring with its ends {np.sqrt(np.sum(p * p)):.3g} m apart",
            remedy="Keep the two points apart: a stiffer spring, other points, or other joints "
            "between the bodies; a spring of zero length has no direction",
        )
