"""Force elements that act along the line between two points."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw
from flexure.blocks.math import cross, dot, shift_spatial_velocity, transform_point
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array, as_number
from flexure.diagrams.values.parameters import NumericParameter

_EPSILON = 2.0**-52


class PointToPointElement(BodyForceElement):
    """A force element that pulls or pushes along the line between a point P on A and Q on B.

    With the position p from P to Q, its rate v, both in the world, and the free length ℓ₀::

        ℓ = √(p·p + δ²),  δ = 2⁻⁵² ℓ₀       soft length
        r̂ = p/ℓ                             direction from P to Q
        ℓ̇ = v·r̂                             the exact rate of the soft length

    A law gives the force f(ℓ, ℓ̇) along the length, positive where it pushes the points apart: f r̂
    acts on B at Q, and -f r̂ on A at P. Where the points meet, which is where they are closer than
    δ, there is no direction, and all outputs are refused.

    Besides the outputs of every force element it has the ``length`` ℓ in m.

    A subclass declares the constants of the law as parameters and implements `law`. One whose force
    vanishes where the points meet may set ``_points_may_meet``; then only forces that are not zero
    are refused there.

    Parameters
    ----------
    name : str
        Name of the block.
    body_a : Body or Frame
        The body A, or a frame on it in which P is given instead; the world, too.
    p_AP : array_like, shape (3,)
        Position of P in A in m.
    body_b : Body or Frame
        The body B, or a frame on it in which Q is given instead; it may be the same body.
    p_BQ : array_like, shape (3,)
        Position of Q in B in m.
    free_length : float
        Length ℓ₀ > 0 without force, in m.
    **options
        Further arguments of `BodyForceElement`, such as ``states`` and ``drives``.

    Raises
    ------
    DeclarationError
        When a body is missing.
    ValueRefusedError
        When the free length is not positive and finite, or a position is not one.
    EvaluationError
        When an output is evaluated where P and Q meet.
    """

    moves_along_line = True
    _points_may_meet: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        body_a: FrameLike,
        p_AP: npt.ArrayLike,
        body_b: FrameLike,
        p_BQ: npt.ArrayLike,
        *,
        free_length: float,
        **options: Any,
    ) -> None:
        super().__init__(name, {"A": body_a, "B": body_b}, **options)
        self.p_AP = self._declare_point("p_AP", p_AP, "of P in A")
        self.p_BQ = self._declare_point("p_BQ", p_BQ, "of Q in B")
        self.free_length = self.declare_numeric_parameter(
            "free_length", free_length, unit="m", lower=0.0, exclusive=True, doc="without force"
        )
        positions, velocities = self.position_ports, self.velocity_ports
        self._separation = self.declare_cache_entry(
            "separation", self._calc_separation, prerequisites=positions
        )
        self._line = self.declare_cache_entry(
            "line", self._calc_line, prerequisites=[self._separation, *positions, *velocities]
        )
        self.length = self.declare_vector_output(
            "length", 1, self._calc_length, prerequisites=[self._separation], unit="m"
        )

    def _declare_point(self, name: str, position: npt.ArrayLike, doc: str) -> NumericParameter:
        number = as_number(position, (3,), f"Cannot declare parameter '{self.label}.{name}'")
        return self.declare_numeric_parameter(
            name, number, unit="m", doc=f"position {doc}", sparse=True
        )

    @property
    def frame_a(self) -> Frame:
        """The frame in which the point P is given."""
        return self.attachments[0].frame

    @property
    def frame_b(self) -> Frame:
        """The frame in which the point Q is given."""
        return self.attachments[1].frame

    @property
    def body_a(self) -> Body:
        """The body that carries A and the point P."""
        return self.attachments[0].body

    @property
    def body_b(self) -> Body:
        """The body that carries B and the point Q."""
        return self.attachments[1].body

    @property
    def model_instance(self) -> str:
        """Name of the group of bodies that the element belongs to, that of the body of A."""
        return self.body_a.model_instance

    def attachment_points(self, context: Any) -> list[Array]:
        """Return P and Q, each in the frame of its body."""
        points = self.p_AP.get(context), self.p_BQ.get(context)
        frames = self.frame_a.X_BF, self.frame_b.X_BF
        return [X_BF.p + X_BF.R @ point for X_BF, point in zip(frames, points, strict=True)]

    @abstractmethod
    def law(self, context: Any) -> CoordinateLaw:
        """Return the law of the force along the length, with the constants of a context."""

    def _calc_separation(self, context: Any) -> Array:
        """Return the position p from P to Q in the world."""
        A, B = (each.pose_of_frame(context) for each in self.attachments)
        p = transform_point(B, self.p_BQ(context)) - transform_point(A, self.p_AP(context))
        return p if self._points_may_meet else self._refuse_meeting(context, p, p)

    def _calc_length(self, context: Any) -> Array:
        p = self._separation(context)
        return np.sqrt(dot(p, p) + np.square(self._nearest(context)))

    def _calc_line(self, context: Any) -> Line:
        """Return how the line between the points moves."""
        arms, velocities = [], []
        for attachment, point in zip(self.attachments, (self.p_AP, self.p_BQ), strict=True):
            X_WF, V_WF, p_BF = attachment.motion(context)
            p_FP = np.matmul(X_WF.R, point(context))
            arms.append(p_BF + p_FP)
            velocities.append(shift_spatial_velocity(V_WF, p_FP)[3:])
        v_P, v_Q = velocities
        length = self._calc_length(context)
        direction = self._separation(context) / length
        return Line(length, dot(v_Q - v_P, direction), direction, arms)

    def calc_spatial_forces(self, context: Any) -> list[Array]:
        """Return the spatial force on both bodies about their origins."""
        line = self._line(context)
        force = self.law(context).force(line.length, line.rate)
        direction = line.direction
        if self._points_may_meet:
            direction = self._refuse_meeting(
                context, self._separation(context), direction, force != 0.0
            )
        on_B = force * direction
        return [
            np.concatenate([cross(arm, f), f])
            for arm, f in zip(line.arms, (-on_B, on_B), strict=True)
        ]

    def calc_stored_energy(self, context: Any) -> Array:
        """Return the energy stored along the length."""
        return self.law(context).stored_energy(self._calc_length(context))

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of the conservative force along the length."""
        line = self._line(context)
        return self.law(context).conservative_power(line.length, line.rate)

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of the dissipative force along the length."""
        line = self._line(context)
        return self.law(context).non_conservative_power(line.length, line.rate)

    def _nearest(self, context: Any) -> Array:
        """Return δ, the distance below which the direction is lost."""
        return _EPSILON * self.free_length(context)

    def _refuse_meeting(self, context: Any, p: Array, value: Array, where: Array = True) -> Array:
        """Return a value that needs a direction, unless the points meet where it is needed."""
        nearest = self._nearest(context)
        return scalars.refuse_where(
            (dot(p, p) < np.square(nearest)) & where,
            value,
            lambda: EvaluationError(
                f"Cannot evaluate the force of '{self.label}'",
                expected=f"points that are at least {nearest:.3g} m apart",
                found=f"points that are {np.sqrt(dot(p, p)):.3g} m apart, "
                "between which a force has no direction",
                remedy="Keep the points apart: a stiffer spring, other points, or other joints "
                "between the bodies",
            ),
        )


class Line(NamedTuple):
    """How the line between two points moves, with the points from the origins of their bodies."""

    length: Array
    rate: Array
    direction: Array
    arms: list[Array]
