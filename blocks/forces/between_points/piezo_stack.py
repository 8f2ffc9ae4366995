"""A piezo stack between two points: a spring that a drive lengthens, with hysteresis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.between_points.point_to_point import PointToPointElement
from flexure.blocks.forces.between_points.spring_damper import SpringDamperLaw
from flexure.blocks.forces.bushings.mount_branches import FrictionBranch
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.values.arrays import Array


@dataclass(frozen=True)
class _PiezoLaw(SpringDamperLaw):
    """A spring and damper whose free length a drive changes, in parallel with friction."""

    push: Array
    friction: FrictionBranch

    def conservative_force(self, q: Array) -> Array:
        """Return the force of the springs in N."""
        xi = scalars.array([self.elongation(q)])
        return super().conservative_force(q) - self.friction.load(xi)[0]

    def dissipative_force(self, q: Array, v: Array) -> Array:
        """Return the force of the drive and of the damper in N."""
        return self.push + super().dissipative_force(q, v)

    def stored_energy(self, q: Array) -> Array:
        """Return the energy of the springs in J."""
        return super().stored_energy(q) + self.friction.energy(scalars.array([self.elongation(q)]))

    def flow(self, q: Array, v: Array) -> Array:
        """Return how fast the friction slips in m/s."""
        return self.friction.flow(scalars.array([self.elongation(q)]), scalars.array([v]))

    def heat(self, q: Array, v: Array) -> Array:
        """Return the power that the friction turns into heat in W."""
        return self.friction.load(scalars.array([self.elongation(q)]))[0] * self.flow(q, v)[0]

    def conservative_power(self, q: Array, v: Array) -> Array:
        """Return the negative rate of the stored energy in W."""
        return super().conservative_power(q, v) + self.heat(q, v)

    def non_conservative_power(self, q: Array, v: Array) -> Array:
        """Return the power of the drive less that of damper and friction in W."""
        return self.push * v + self.damper_power(v) - self.heat(q, v)


class PiezoStack(PointToPointElement):
    """A piezo stack between point P of body A and point Q of body B, with hysteresis.

    With the length ℓ from P to Q, its free length ℓ₀, the elongation ξ = ℓ - ℓ₀ and the drive u, a
    voltage or a charge, the force f along the length pushes the points apart::

        f = F_b u/u_full - k ξ - c ξ̇ - F a,    a = (ξ - z)/h between -1 and 1
        k = (F_b - F x_0/(h + x_0))/x_0
        ż = max(ξ̇, 0) (1 - g(a)) + min(ξ̇, 0) (1 - g(-a)),   g(a) = (1 - a) |1 - a|

    A blocked stack pushes with F_b at the full drive u_full, and a free one elongates by x_0 when
    it is driven there once, slowly, from rest. The hysteresis is friction of the Bouc-Wen kind with
    one smooth state, the slip z; `FrictionBranch` has its equations. A cycle of the elongation
    between ±X about its middle dissipates E, which grows with X³ where X is small::

        α = (√(1 + 4 X²/h²) - 1) h/(2 X),   E = 2 F (2 X - h ln((1 + α)/(1 - α)))

    Its plant has the input ``<name>.drive`` for u, 0 while nothing is connected. The power of the
    drive is a part of ``non_conservative_power``, so that energies balance.

    Inputs: those of `LinearSpringDamper`, and ``drive``. Outputs: ``force_on_A`` and ``force_on_B``
    on the bodies about their origins in the world, in N m and N; ``length`` ℓ and ``elongation`` ξ
    in m, ``force`` f in N; ``stored_energy`` in J, ``conservative_power`` and
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
        The body B, or a frame on it in which Q is given instead.
    p_BQ : array_like, shape (3,)
        Position of Q from the origin of B, expressed in B, in m.
    free_length : float
        Length ℓ₀ > 0 without drive and load, in m.
    blocking_force : float
        Force F_b > 0 at full drive and no elongation, in N.
    free_stroke : float
        Elongation x_0 > 0 at full drive without load, in m.
    full_drive : float
        Drive u_full > 0 in the unit of the drive; 100 V by default.
    drive_unit : str
        ``"V"``, or ``"C"`` for a charge.
    damping : float
        Damping constant c >= 0 in N s/m.
    hysteresis_force : float
        Greatest force F of the friction, >= 0 and at most F_b, in N. At 0, the default,
        there is no hysteresis, no state and no parameter of it.
    hysteresis_stroke : float, optional
        Elongation h > 0 from rest at which half of it is there, in m; x_0 when omitted.

    Raises
    ------
    DeclarationError
        When a body is missing, or F exceeds F_b.
    ValueRefusedError
        When a number is out of its range or not finite.
    EvaluationError
        When an output is evaluated while P and Q meet.

    See Also
    --------
    BridgeAmplifier : More stroke.
    LinearSpringDamper : A passive spring.

    Notes
    -----
    The datasheet of a stack has F_b, x_0 and u_full, for a voltage. With a charge as the drive,
    stacks have hardly any hysteresis and are stiffer by 1/(1 - κ²), with their coupling factor κ;
    so use F_b and x_0 measured with a charge source, and no hysteresis. At small amplitudes, the
    stack is stiffer by F/h than over its full stroke. Creep over minutes, depolarization by
    negative drives, and the electric side with its capacitance are neglected.

    Equilibria leave the friction where it has slipped.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("drive", gravity=(0.0, 0.0, 0.0))
    >>> block = builder.add_body("block", fx.SpatialInertia.point_mass(0.1))
    >>> slide = builder.add_joint(fx.PrismaticJoint("x", builder.world, block, axis=(1, 0, 0)))
    >>> ends = builder.world, (-0.02, 0.0, 0.0), block, (0.0, 0.0, 0.0)
    >>> stack = fx.PiezoStack(
    ...     "stack", *ends, free_length=0.02, blocking_force=800.0, free_stroke=2e-5
    ... )
    >>> plant = builder.add_force_element(stack) and builder.build()
    >>> path = fx.load_path(plant, {"stack.drive": 50.0})
    >>> print(f"{1e6 * path['stack.elongation'][-1]:.3f} um")
    10.000 um
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
        blocking_force: float,
        free_stroke: float,
        full_drive: float = 100.0,
        drive_unit: str = "V",
        damping: float = 0.0,
        hysteresis_force: float = 0.0,
        hysteresis_stroke: float | None = None,
    ) -> None:
        unit = one_of(drive_unit, ("V", "C"), "drive_unit", f"Cannot make PiezoStack '{name}'")
        slip = {"name": "z", "z": 1, "element_names": ["slip"], "doc": "of the friction, in m"}
        slips = hysteresis_force != 0.0
        ends = body_a, p_AP, body_b, p_BQ
        super().__init__(
            name,
            *ends,
            free_length=free_length,
            states=slip if slips else None,
            drives={"drive": {"unit": unit}},
        )
        (self.drive,) = self.drive_ports

        def declare(what: str, value: float, unit: str, *, exclusive: bool = True) -> Any:
            return self.declare_numeric_parameter(
                what, value, unit=unit, lower=0.0, exclusive=exclusive
            )

        self.blocking_force = declare("blocking_force", blocking_force, "N")
        self.free_stroke = declare("free_stroke", free_stroke, "m")
        self.full_drive = declare("full_drive", full_drive, unit)
        self.damping = declare("damping", damping, "N s/m", exclusive=False)
        self.hysteresis_force = self.hysteresis_stroke = None
        reads: list[Any] = [self._line, self.drive]
        if slips:
            half = free_stroke if hysteresis_stroke is None else hysteresis_stroke
            self.hysteresis_force = declare("hysteresis_force", hysteresis_force, "N")
            self.hysteresis_stroke = declare("hysteresis_stroke", half, "m")
            self.declare_relation(self.hysteresis_force, "<=", self.blocking_force)
            reads.append(self.continuous_state)
        self.elongation = self.declare_vector_output(
            "elongation", 1, self._calc_elongation, prerequisites=[self._separation], unit="m"
        )
        self.force = self.declare_vector_output(
            "force", 1, self._calc_force, prerequisites=reads, unit="N"
        )

    def law(self, context: Any) -> _PiezoLaw:
        """Return the law with the constants, the drive and the slip of a context."""
        blocked, stroke = self.blocking_force(context), self.free_stroke(context)
        limit, half, slip = np.zeros(1), stroke, np.zeros(1)
        if self.hysteresis_force is not None and self.continuous_state is not None:
            assert self.hysteresis_stroke is not None
            limit = scalars.array([self.hysteresis_force(context)])
            half, slip = self.hysteresis_stroke(context), self.continuous_state(context)
        return _PiezoLaw(
            self.free_length(context),
            (blocked - limit[0] * stroke / (half + stroke)) / stroke,
            self.damping(context),
            blocked * self.drive(context)[0] / self.full_drive(context),
            FrictionBranch((0,), limit, half, slip),
        )

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return how fast the friction slips in m/s."""
        if self.continuous_state is None:
            return np.zeros(0)
        line = self._line(context)
        return self.law(context).flow(line.length, line.rate)

    def _calc_elongation(self, context: Any) -> Array:
        return self._calc_length(context) - self.free_length(context)

    def _calc_force(self, context: Any) -> Array:
        line = self._line(context)
        return self.law(context).force(line.length, line.rate)
