"""Constraints between velocities alone, which leave positions free: any function, knife edges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, cross, dot
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.constraints.coordinate_constraints import (
    CoordinateTerms,
    TracedConstraint,
    traced,
)
from flexure.blocks.multibody.constraints.frame_constraints import FrameConstraint
from flexure.blocks.multibody.joints.base.checks import unit_axis
from flexure.blocks.multibody.joints.base.closure import Demand
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array

_SAMPLES = 3  # positions at which a term without velocities is looked for


class VelocityConstraint(TracedConstraint):
    """User-defined equations w = J(q, t) v - b(q, t) = 0 between joint velocities.

    Such equations are called nonholonomic where they are not the rates of equations between
    positions: what rolls or skates can come to any place, by detours. The function is traced once,
    so that J and the rest of ẇ are exact::

        ẇ = J v̇ + ∂w/∂q N(q) v + ∂w/∂t

    with the rates N v of the positions. Positions need not fit anything, and errors of w decay
    with twice the pace ``stabilization``.

    Parameters
    ----------
    name : str
        Name within the plant.
    joints : sequence of Joint
        The joints whose positions and velocities the function takes; ball and free joints, too.
    function : callable
        ``function(q, v, t)`` returns w, a number or an array, linear in v, written with NumPy and
        without branches that depend on values; q and v have the positions and velocities of all
        joints, one joint after the other.

    Raises
    ------
    DeclarationError
        When the function cannot be traced, is not linear in the velocities, or depends on none.

    See Also
    --------
    HolonomicConstraint : Equations between positions.
    KnifeEdge : One such equation.

    Notes
    -----
    The multipliers belong to the velocities w: their forces are Jᵀ λ. They do no work unless there
    is a b, as of a belt that is driven, whose power counts as that of inputs.

    Examples
    --------
    A skate, which does not slide sideways:

    >>> import numpy as np
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("ice")
    >>> body = builder.add_body("body", fx.SpatialInertia.solid_box(1.0, size=(0.3, 0.1, 0.1)))
    >>> glide = builder.add_joint(fx.PlanarJoint("glide", builder.world, body))
    >>> sideways = lambda q, v, t: v[1] * np.cos(q[2]) - v[0] * np.sin(q[2])
    >>> _ = builder.add_constraint(fx.constraints.VelocityConstraint("skate", [glide], sideways))
    >>> plant = builder.build()
    >>> assembly = plant.assemble(plant.create_default_context())
    >>> assembly.mobility, assembly.position_mobility
    (2, 3)
    """

    num_position_equations = 0

    NEEDS_RATES: ClassVar[bool] = False

    def __init__(
        self, name: str, joints: Sequence[Joint], function: Callable[[Any, Any, Any], Any]
    ) -> None:
        super().__init__(name, joints)
        attempt = f"Cannot trace the equations of constraint '{name}'"
        sizes = [(joint.num_positions, joint.num_velocities) for joint in self.joints]
        graph, (nq, nv) = scalars.Graph(), np.sum(sizes, axis=0)
        q, v, t = scalars.symbols(graph, "q", nq), scalars.symbols(graph, "v", nv), graph.input("t")
        values = traced(function, {"q": q, "v": v, "t": t}, attempt)
        speeds: list[Hashable] = [("v", k) for k in range(nv)]
        if values.ndim != 1 or not all(scalars.sources(each) & set(speeds) for each in values):
            raise DeclarationError(
                attempt,
                expected="equations that each depend on a velocity",
                found=f"an array of shape {values.shape}",
                remedy="Equations between positions are a HolonomicConstraint",
            )
        slopes = scalars.array([scalars.gradient(each, speeds) for each in values])
        for number, row in enumerate(slopes):
            if scalars.sources(row) & set(speeds):
                raise DeclarationError(
                    attempt,
                    expected="equations that are linear in the velocities",
                    found=f"derivatives of equation {number} by velocities that depend on these",
                    remedy="Multiply velocities by functions of positions and time alone",
                )
        ends = np.cumsum([(0, 0), *sizes], axis=0)
        rates = np.concatenate(
            [
                joint.calc_position_rates(q[i:j], v[k:m])
                for joint, (i, k), (j, m) in zip(self.joints, ends[:-1], ends[1:], strict=True)
            ]
        )
        places: list[Hashable] = [*(("q", k) for k in range(nq)), "t"]
        by_place = [scalars.gradient(each, places) for each in values]
        biases = scalars.array(
            [np.sum(scalars.array(each[:-1]) * rates) + each[-1] for each in by_place]
        )
        self._traced = CoordinateTerms(scalars.array([]), slopes, values, biases)
        self.is_driven = "t" in scalars.sources([values, biases])
        self._does_work = self.is_driven or self._moves_at_rest(nq, nv)

    @property
    def does_work(self) -> bool:
        """Whether there is a b, so that its forces do work."""
        return self._does_work

    def _moves_at_rest(self, nq: int, nv: int) -> bool:
        """Return whether w is anything but zero where all velocities are."""
        rng = np.random.default_rng(0)
        samples = [self._traced.at(rng.normal(size=nq), np.zeros(nv), 0.0) for _ in range(_SAMPLES)]
        return any(np.any(np.asarray(each.rates, dtype=float) != 0.0) for each in samples)


class KnifeEdge(FrameConstraint):
    """A knife edge: Mo does not move sideways in F, as with a skate or a thin wheel.

    With the direction n on the body of M, and the velocity v of Mo in F::

        w = n · v = 0

    Mo can move along the edge, and M turn in any way. The multiplier is the force on M along n in
    N, and does no work.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_a, frame_c : Frame or Body
        The frame F in which nothing slips sideways, such as the world, and M with the edge.
    sideways : array_like, shape (3,)
        Direction n at right angles to the edge, of any length, expressed in M.

    See Also
    --------
    VelocityConstraint : Any equation between velocities.
    RollingDisk : A wheel that may lean.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("sleigh")
    >>> body = builder.add_body("body", fx.SpatialInertia.solid_box(1.0, size=(0.3, 0.1, 0.1)))
    >>> glide = builder.add_joint(fx.PlanarJoint("glide", builder.world, body))
    >>> tail = builder.add_frame("tail", body, (-0.15, 0.0, 0.0))
    >>> _ = builder.add_constraint(
    ...     fx.constraints.KnifeEdge("blade", builder.world, tail, sideways=(0, 1, 0))
    ... )
    """

    num_equations = 1
    num_position_equations = 0

    def __init__(
        self, name: str, frame_a: FrameLike, frame_c: FrameLike, sideways: npt.ArrayLike
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        self.sideways = unit_axis(sideways, f"Cannot make constraint '{name}'")

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the velocity sideways."""
        n, w, v = X_FM.R @ self.sideways, V_FM[:3], V_FM[3:]
        return [Demand(0.0, np.concatenate([np.zeros(3), n]), dot(cross(w, n), v))]
