"""Springs between two points that only pull, as cables do, or only push, as bumpers do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.between_points.point_to_point import PointToPointElement
from flexure.blocks.forces.on_joints.coordinate_law import CoordinateLaw, hunt_crossley_damping
from flexure.blocks.forces.on_joints.force_table import ForceTable, declare_table
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.values.arrays import Array, FloatArray
from flexure.diagrams.values.parameters import NumericParameter


@dataclass(frozen=True)
class OneSidedSpringLaw(CoordinateLaw):
    """The law of a spring that acts on one side of its free length only.

    With the length q, its rate v, the free length q₀, and s = 1 for a cable, s = -1 for a bumper::

        x = max(s (q - q₀), 0),  ẋ = s v        deflection while it is engaged
        load = n(x) max(0, 1 + d ẋ) >= 0        how strongly it pulls or pushes
        f = -s load                             force along the length
        V = ∫₀ˣ n dx                            stored energy, exact

    n is piecewise linear, through zero and the points of a table. The damping is that of
    `hunt_crossley_damping`: it acts only while the spring is engaged, sets in without a jump, and
    never turns the direction of the force.

    Attributes
    ----------
    side : float
        s: 1 for a spring that acts when it is longer than q₀ and pulls, -1 for one that acts when
        it is shorter and pushes.
    free_length : float
        Length q₀ in m.
    deflections : ndarray, shape (n,)
        Strictly increasing deflections > 0 in m.
    forces : array, shape (n,)
        Forces n >= 0 at the deflections in N.
    damping : float
        Damping constant d >= 0 in s/m.
    end_stiffness : float, optional
        Slope of n beyond the last point, >= 0, in N/m. When omitted the last line goes on, level
        where it falls.

    See Also
    --------
    flexure.Cable, flexure.Bumper

    Examples
    --------
    >>> cable = OneSidedSpringLaw(1.0, 2.0, np.array([0.1]), np.array([50.0]), damping=0.5)
    >>> cable.force(np.array([1.9, 2.0, 2.2]), 1.0)
    array([  -0.,   -0., -150.])
    """

    side: float
    free_length: Array
    deflections: FloatArray
    forces: Array
    damping: Array = 0.0
    end_stiffness: Array | None = None

    @classmethod
    def linear(
        cls, side: float, free_length: Array, stiffness: Array, damping: Array = 0.0
    ) -> OneSidedSpringLaw:
        """Return the law with n(x) = k x, for a stiffness k in N/m."""
        forces = scalars.array([stiffness])
        return cls(side, free_length, np.ones(1), forces, damping=damping)

    def load(self, q: Array, v: Array) -> Array:
        """Return how strongly the spring pulls or pushes in N, never negative."""
        n = self._elastic_load(q)
        return n + hunt_crossley_damping(n, self.side * v, self.damping)

    def conservative_force(self, q: Array) -> Array:
        """Return the elastic force along the length in N."""
        return -self.side * self._elastic_load(q)

    def dissipative_force(self, q: Array, v: Array) -> Array:
        """Return what damping adds to the force along the length in N."""
        n = self._elastic_load(q)
        return -self.side * hunt_crossley_damping(n, self.side * v, self.damping)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy stored in the spring in J, zero while it is not engaged."""
        return self._table().energy(self._deflection(q))

    def _deflection(self, q: Array) -> Array:
        return np.maximum(self.side * (q - self.free_length), 0.0)

    def _elastic_load(self, q: Array) -> Array:
        return self._table().force(self._deflection(q))

    def _table(self) -> ForceTable:
        points = np.concatenate([[0.0], self.deflections])
        forces = np.concatenate([[0.0], self.forces])
        slope = (forces[-1] - forces[-2]) / (points[-1] - points[-2])
        end = np.maximum(slope, 0.0) if self.end_stiffness is None else self.end_stiffness
        return ForceTable(points, forces, 0.0, end)


class OneSidedSpring(PointToPointElement):
    """Base class of `Cable` and `Bumper`, which say on which side of the free length they act."""

    stiffness: NumericParameter
    deflections: FloatArray
    forces: NumericParameter
    _side: ClassVar[float]
    _points_may_meet = True

    def __init__(
        self,
        name: str,
        body_a: FrameLike,
        p_AP: npt.ArrayLike,
        body_b: FrameLike,
        p_BQ: npt.ArrayLike,
        *,
        free_length: float,
        stiffness: float | None = None,
        deflections: npt.ArrayLike | None = None,
        forces: npt.ArrayLike | None = None,
        damping: float = 0.0,
        end_stiffness: float | None = None,
    ) -> None:
        super().__init__(name, body_a, p_AP, body_b, p_BQ, free_length=free_length)
        table = {"deflections": deflections, "forces": forces, "end_stiffness": end_stiffness}
        self._is_linear = stiffness is not None
        if stiffness is not None:
            self._refuse_both([name for name, value in table.items() if value is not None])
            self.stiffness = self.declare_numeric_parameter(
                "stiffness", stiffness, unit="N/m", lower=0.0
            )
        elif deflections is not None and forces is not None:
            self.deflections, self.forces = declare_table(
                self, deflections, forces, unit="N", lower=0.0, from_zero=True
            )
        else:
            raise DeclarationError(
                f"Cannot make '{name}'",
                expected="a stiffness, or deflections and forces",
                found=quoted(name for name, value in table.items() if value is not None),
            )
        self.damping = self.declare_numeric_parameter("damping", damping, unit="s/m", lower=0.0)
        self.end_stiffness = (
            None
            if end_stiffness is None
            else self.declare_numeric_parameter(
                "end_stiffness",
                end_stiffness,
                unit="N/m",
                lower=0.0,
                doc="beyond the end of the table",
            )
        )
        self.load = self.declare_vector_output(
            "load",
            1,
            self._calc_load,
            prerequisites=[self._line],
            unit="N",
            doc="how strongly it pulls or pushes, never negative",
        )

    def law(self, context: Any) -> OneSidedSpringLaw:
        """Return the law with the constants of a context."""
        if self._is_linear:
            return OneSidedSpringLaw.linear(
                self._side,
                self.free_length(context),
                self.stiffness(context),
                damping=self.damping(context),
            )
        return OneSidedSpringLaw(
            self._side,
            self.free_length(context),
            self.deflections,
            self.forces(context),
            damping=self.damping(context),
            end_stiffness=None if self.end_stiffness is None else self.end_stiffness(context),
        )

    def _refuse_both(self, rest: list[str]) -> None:
        """Refuse a table beside a stiffness."""
        if rest:
            raise DeclarationError(
                f"Cannot make '{self.name}' with a stiffness",
                expected="no table beside it",
                found=quoted(rest),
                remedy="Omit the stiffness: the points of a table define the slopes",
            )

    def _calc_load(self, context: Any) -> Array:
        line = self._line(context)
        return self.law(context).load(line.length, line.rate)


class Cable(OneSidedSpring):
    """A cable between points P on A and Q on B: pulls when stretched, never pushes.

    With the distance ℓ of the points and its rate, and either n(x) = k x or a piecewise linear n(x)
    through zero and the points of a table::

        x = max(ℓ - ℓ₀, 0),  ẋ = ℓ̇
        load = n(x) max(0, 1 + d ẋ) >= 0

    The load pulls A and B towards each other; a slack cable exerts no force, with its ends apart or
    together. The law is `OneSidedSpringLaw`. All constants but the deflections are parameters of
    the block, with their names as attributes; there is ``stiffness``, or there are ``deflections``
    and ``forces``. A shorter free length makes a pretension.

    Besides the outputs of every force element it has ``length`` ℓ in m and ``load`` in N.

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
        Length ℓ₀ > 0 in m, below which the cable is slack.
    stiffness : float, optional
        Stiffness k >= 0 in N/m of a linear cable, n = k x. Give it, or a table.
    deflections : array_like, shape (n,), optional
        Strictly increasing deflections > 0 in m, one or more. They are structure, not a parameter.
    forces : array_like, shape (n,), optional
        Forces >= 0 at the deflections in N.
    damping : float
        Damping constant d >= 0 in s/m. It is no force per rate: the damping force grows with the
        deflection as the elastic force does.
    end_stiffness : float, optional
        Slope of n beyond the last point, >= 0, in N/m. When omitted the last line goes on, level
        where it falls, and there is no such parameter.

    Raises
    ------
    DeclarationError
        When a body is missing, there are a stiffness and a table or neither of them, the
        deflections do not increase from zero, or there are not as many forces.
    ValueRefusedError
        When the free length is not positive, a stiffness, force or damping is negative, or a number
        is not finite.

    See Also
    --------
    Bumper : A bumper between points P on A and Q on B.

    Examples
    --------
    A cable of 2 m from the ceiling to the eye on top of a load, stretched by 20 mm:

    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> ceiling, load = Body("ceiling"), Body("load")
    >>> top, eye = (0.0, 0.0, 3.0), (0.0, 0.0, 0.5)
    >>> cable = Cable("cable", ceiling, top, load, eye, free_length=2.0, stiffness=5e4)
    >>> context = cable.create_default_context()
    >>> for attachment, height in zip(cable.attachments, [0.0, 0.48], strict=True):
    ...     attachment.pose.fix(context, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, height])
    ...     attachment.velocity.fix(context, np.zeros(6))
    >>> cable.load.eval(context)
    array([1000.])
    """

    drawn_as = "cable"

    _side = 1.0


class Bumper(OneSidedSpring):
    """A bumper between points P on A and Q on B: pushes when compressed, never pulls.

    With the distance ℓ of the points and its rate, and either n(x) = k x or a piecewise linear n(x)
    through zero and the points of a table::

        x = max(ℓ₀ - ℓ, 0),  ẋ = -ℓ̇
        load = n(x) max(0, 1 + d ẋ) >= 0

    The load pushes A and B away from each other, and it never pulls. The law is
    `OneSidedSpringLaw`. All constants but the deflections are parameters of the block, with their
    names as attributes; there is ``stiffness``, or there are ``deflections`` and ``forces``. The
    bumper has to be stiff enough to keep the points apart: where they meet, the force has no
    direction, and the bumper refuses to be evaluated.

    Besides the outputs of every force element it has ``length`` ℓ in m and ``load`` in N.

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
        Length ℓ₀ > 0 in m, beyond which the bumper exerts no force.
    stiffness : float, optional
        Stiffness k >= 0 in N/m of a linear bumper, n = k x. Give it, or a table.
    deflections : array_like, shape (n,), optional
        Strictly increasing deflections > 0 in m, one or more. They are structure, not a parameter.
    forces : array_like, shape (n,), optional
        Forces >= 0 at the deflections in N.
    damping : float
        Damping constant d >= 0 in s/m. It is no force per rate: the damping force grows with the
        deflection as the elastic force does.
    end_stiffness : float, optional
        Slope of n beyond the last point, >= 0, in N/m. When omitted the last line goes on, level
        where it falls, and there is no such parameter.

    Raises
    ------
    DeclarationError
        When a body is missing, there are a stiffness and a table or neither of them, the
        deflections do not increase from zero, or there are not as many forces.
    ValueRefusedError
        When the free length is not positive, a stiffness, force or damping is negative, or a number
        is not finite.
    EvaluationError
        When the force is evaluated while P and Q meet.

    See Also
    --------
    Cable : A cable between points P on A and Q on B.

    Examples
    --------
    A rubber bumper that grows stiffer:

    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> wall, cart = Body("wall"), Body("cart")
    >>> bumper = Bumper(
    ...     "bumper",
    ...     wall,
    ...     (0.0, 0.0, 0.0),
    ...     cart,
    ...     (-0.5, 0.0, 0.0),
    ...     free_length=0.05,
    ...     deflections=[0.01, 0.02],
    ...     forces=[100.0, 400.0],
    ... )
    >>> context = bumper.create_default_context()
    >>> for attachment, x in zip(bumper.attachments, [0.0, 0.535], strict=True):
    ...     attachment.pose.fix(context, [1, 0, 0, 0, 1, 0, 0, 0, 1, x, 0, 0])
    ...     attachment.velocity.fix(context, np.zeros(6))
    >>> bumper.load.eval(context)
    array([250.])
    """

    _side = -1.0
