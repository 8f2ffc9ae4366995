"""A spring and damper between two points of two bodies.

The law follows Drake's LinearSpringDamper (class documentation and behavior of Drake 1.51).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from flexure.blocks.forces.between_points.point_to_point import PointToPointElement
from flexure.blocks.forces.on_joints.coordinate_law import LinearlyDampedLaw
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.arrays import Array


@dataclass(frozen=True)
class SpringDamperLaw(LinearlyDampedLaw):
    """The law of a linear spring and damper along the length ℓ between two points.

    With the rate ℓ̇, the free length ℓ₀, stiffness k and damping c::

        tension = k (ℓ - ℓ₀) + c ℓ̇          how strongly it pulls
        f = -tension                        force along the length
        V = k (ℓ - ℓ₀)²/2                   stored energy

    A stretched spring pulls the points together, a compressed one pushes them apart, and the damper
    resists both directions. `PointToPointElement` states how ℓ and ℓ̇ follow from the motion of two
    bodies, and the forces on these from f.

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


class LinearSpringDamper(PointToPointElement):
    """A linear spring and damper between point P of body A and point Q of body B.

    With the length ℓ from P to Q, the unit vector r̂ from P to Q, and the free length ℓ₀::

        tension = k (ℓ - ℓ₀) + c ℓ̇
        force on A at P = tension r̂, force on B at Q = -tension r̂
        V = ½ k (ℓ - ℓ₀)²                   stored energy

    A stretched spring pulls the bodies together, a compressed one pushes them apart, and the damper
    resists both directions. The law is `SpringDamperLaw`; `PointToPointElement` has the equations
    of ℓ, ℓ̇ and r̂.

    Inputs: ``pose_A``, ``velocity_A``, ``pose_B`` and ``velocity_B`` of the bodies, but for the
    world. Outputs: ``force_on_A`` and ``force_on_B`` on the bodies about their origins in the
    world, in N m and N; ``length`` ℓ and ``elongation`` ℓ - ℓ₀ in m, ``elongation_rate`` ℓ̇ in m/s,
    ``tension`` k (ℓ - ℓ₀) + c ℓ̇ in N; ``stored_energy`` in J, ``conservative_power`` and
    ``non_conservative_power`` in W.

    Parameters
    ----------
    name : str
        Name of the block.
    body_a : Body or Frame
        The body A, or a frame on it in which P is given instead.
    p_AP : array_like, shape (3,)
        Position of P from the origin of A, expressed in A, in m.
    body_b : Body or Frame
        The body B, or a frame on it in which Q is given instead; it may be the same body.
    p_BQ : array_like, shape (3,)
        Position of Q from the origin of B, expressed in B, in m.
    free_length : float
        Length ℓ₀ of the relaxed spring, > 0, in m.
    stiffness : float
        Stiffness k >= 0 in N/m.
    damping : float
        Damping constant c >= 0 in N s/m.

    Raises
    ------
    DeclarationError
        When a body is missing.
    ValueRefusedError
        When a constant is not finite, the free length not positive, or stiffness or damping
        negative.
    EvaluationError
        When an output is evaluated while P and Q are closer than 2⁻⁵² ℓ₀: without a length the
        force has no direction.

    See Also
    --------
    JointSpring : A linear spring and damper along every coordinate of a joint.
    Cable : A cable between points P on A and Q on B.
    Bumper : A bumper between points P on A and Q on B.

    Notes
    -----
    Differences from Drake 1.51: all constants and both points are parameters that can be set in a
    context; an infinite free length is refused.

    Examples
    --------
    A spring pulls a body that is 1.5 m above the ground down by 48 N:

    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> ground, body, origin = Body("ground"), Body("body"), (0.0, 0.0, 0.0)
    >>> strut = LinearSpringDamper(
    ...     "strut", ground, origin, body, origin, free_length=1.0, stiffness=96.0, damping=2.0
    ... )
    >>> context = strut.create_default_context()
    >>> for end, height in zip(strut.attachments, (0.0, 1.5)):
    ...     end.pose.fix(context, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, height])
    ...     end.velocity.fix(context, [0, 0, 0, 0, 0, 0])
    >>> strut.tension.eval(context)
    array([48.])
    """

    def __init__(
        self,
        name: str,
        body_a: FrameLike,
        p_AP: npt.ArrayLike,
        body_b: FrameLike,
        p_BQ: npt.ArrayLike,
        *,
        free_length: float,
        stiffness: float,
        damping: float,
    ) -> None:
        super().__init__(name, body_a, p_AP, body_b, p_BQ, free_length=free_length)
        self.stiffness = self.declare_numeric_parameter(
            "stiffness", stiffness, unit="N/m", lower=0.0
        )
        self.damping = self.declare_numeric_parameter("damping", damping, unit="N s/m", lower=0.0)
        where, moving = [self._separation], [self._line]
        self.elongation = self.declare_vector_output(
            "elongation", 1, self._calc_elongation, prerequisites=where, unit="m"
        )
        self.elongation_rate = self.declare_vector_output(
            "elongation_rate", 1, self._calc_elongation_rate, prerequisites=moving, unit="m/s"
        )
        self.tension = self.declare_vector_output(
            "tension", 1, self._calc_tension, prerequisites=moving, unit="N"
        )

    def law(self, context: Any) -> SpringDamperLaw:
        """Return the law with the constants of a context."""
        return SpringDamperLaw(
            self.free_length(context), self.stiffness(context), self.damping(context)
        )

    def _calc_elongation(self, context: Any) -> Array:
        return self.law(context).elongation(self._calc_length(context))

    def _calc_elongation_rate(self, context: Any) -> Array:
        return self._line(context).rate

    def _calc_tension(self, context: Any) -> Array:
        line = self._line(context)
        return self.law(context).tension(line.length, line.rate)
