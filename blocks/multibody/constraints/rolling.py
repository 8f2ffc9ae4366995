"""Wheels and balls that roll on a plane without slip."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, cross, dot
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.constraints.frame_constraints import FrameConstraint
from flexure.blocks.multibody.joints.base.checks import unit_axis
from flexure.blocks.multibody.joints.base.closure import Demand, two_normals
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array

_FLAT = 1e-6  # sine of the angle between axis and normal at which a disk lies on its side


class Contact(NamedTuple):
    """Where a body touches the plane, expressed in F, and how that changes."""

    gap: Array  # height φ of the lowest point over the plane in m
    # c, c_rate: position of that point from Mo, and its rate in F.
    c: Array
    c_rate: Array
    # directions, turns: the normal and two tangents of the plane, and their rates.
    directions: Sequence[Array]
    turns: Sequence[Array]


class RollingContact(FrameConstraint):
    """A body rolls on a plane without slip: what disks and spheres have in common.

    C is the lowest point of the body, at p_MC from the center Mo.
    """

    num_equations = 3
    num_position_equations = 1
    contact_equation = 0  # the first one, which is between positions

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        radius: float,
        *,
        normal: npt.ArrayLike = (0.0, 0.0, 1.0),
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        self._set_default("radius", radius, lower=0.0, exclusive=True, unit="m")
        self.normal = unit_axis(normal, f"Cannot make constraint '{name}' with this normal")

    def radius(self, context: Any) -> Array:
        """Return the radius in a context."""
        return self._parameters["radius"](context)

    @abstractmethod
    def contact(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Contact:
        """Return where the body touches the plane."""

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the height over the plane, and the velocities of slip."""
        contact, w = self.contact(context, X_FM, V_FM), V_FM[:3]
        slip, slip_rate = V_FM[3:] + cross(w, contact.c), cross(w, contact.c_rate)
        return [
            Demand(
                contact.gap,
                np.concatenate([cross(contact.c, e), e]),
                dot(e, slip_rate) + dot(turn, slip),
            )
            for e, turn in zip(contact.directions, contact.turns, strict=True)
        ]


class RollingSphere(RollingContact):
    """A ball that rolls on a plane without slip.

    The plane of F through Fo has the normal n. The point of the ball that touches it, at -r n from
    the center Mo, has the velocity v_C = v - r w × n in F::

        φ = n · p_FM - r = 0
        w₁ = t₁ · v_C = 0
        w₂ = t₂ · v_C = 0

    with two tangents t of the plane that are fixed in F. The ball may spin about the normal.
    Multipliers are the forces of the plane on the ball along n, t₁ and t₂, in N. They do no work.
    The first is the output ``<name>.contact_force``, too. Where it is negative a real ball would
    lift off, as the output ``<name>.lift_off`` tells by a 1.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_a : Frame or Body
        The frame F with the plane through its origin, on a body that may move itself.
    frame_c : Frame or Body
        The frame M with the center of the ball as its origin.
    radius : float
        Radius r > 0 in m, the parameter ``<name>_radius`` of the tree.
    normal : array_like, shape (3,)
        Direction n out of the plane, of any length, expressed in F.

    See Also
    --------
    RollingDisk : A disk, wheel or hoop.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("table")
    >>> ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(1.0, radius=0.1))
    >>> free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, ball))
    >>> _ = builder.add_constraint(
    ...     fx.constraints.RollingSphere("rolling", builder.world, ball, radius=0.1)
    ... )
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> free.translational_velocity.set(context, [1.0, 0.0, 0.0])
    >>> assembly = plant.assemble(context)
    >>> assembly.mobility, assembly.position_mobility
    (3, 5)
    """

    def contact(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Contact:
        """Return the point below the center."""
        n, r, none = self.normal, self.radius(context), np.zeros(3)
        directions = (n, *two_normals(n))
        return Contact(dot(n, X_FM.p) - r, -r * n, none, directions, (none, none, none))


class RollingDisk(RollingContact):
    """A disk, wheel or hoop that rolls on a plane without slip and may lean.

    The plane of F through Fo has the normal n, and C is the lowest point of the disk. The material
    of the disk at C has the velocity v_C = v + w × p_MC in F::

        φ = n · p_FC = 0              the disk touches the plane,
        w₁ = t₁ · v_C = 0             and slips neither along t₁,
        w₂ = t₂ · v_C = 0             nor along t₂

    The first equation is one between positions, with the rate n · v_C. The others leave positions
    free: `Plant.assemble` puts the disk onto the plane, and then makes velocities fit.

    With the axis e of the disk and s = ``|e × n|``, the sine of the angle between them, a disk of
    the radius r with a sharp rim has p_MC = -r (n - (n · e) e)/s. The rim may be rounded to a
    circle of the crown radius ρ, as that of a tire::

        p_MC = -(r - ρ) (n - (n · e) e)/s - ρ n
        φ = n · p_FM - (r - ρ) s - ρ

    The directions are t₁ = e × n/s, along which the disk rolls, and t₂ = n × t₁ to its side, so
    that the multipliers are the normal, longitudinal and lateral force of the plane on the disk at
    C, in N. They do no work. The normal force is the output ``<name>.contact_force``, too. Where it
    is negative a real disk would lift off, as the output ``<name>.lift_off`` tells by a 1.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_a : Frame or Body
        The frame F with the plane through its origin, on a body that may move itself.
    frame_c : Frame or Body
        The frame M with the center of the disk as its origin.
    radius : float
        Radius r > 0 in m, the parameter ``<name>_radius`` of the tree.
    axis : array_like, shape (3,)
        Direction e of the axis of the disk, of any length, expressed in M.
    normal : array_like, shape (3,)
        Direction n out of the plane, of any length, expressed in F.
    crown_radius : float
        Radius ρ >= 0 of the cross-section of the rim in m, the parameter ``<name>_crown_radius`` of
        the tree.

    Raises
    ------
    EvaluationError
        When the disk lies flat on the plane, so that no point is the lowest.

    See Also
    --------
    RollingSphere : A ball.
    KnifeEdge : An edge that may not slide sideways.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("coin")
    >>> inertia = fx.SpatialInertia.solid_cylinder(0.1, radius=0.05, length=0.002, axis="y")
    >>> coin = builder.add_body("coin", inertia)
    >>> free = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, coin))
    >>> rim = fx.constraints.RollingDisk("rim", builder.world, coin, radius=0.05, axis=(0, 1, 0))
    >>> _ = builder.add_constraint(rim)
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> assembly = plant.assemble(context)
    >>> float(free.translation.get(context)[2].round(6))
    0.05
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        radius: float,
        *,
        axis: npt.ArrayLike,
        normal: npt.ArrayLike = (0.0, 0.0, 1.0),
        crown_radius: float = 0.0,
    ) -> None:
        super().__init__(name, frame_a, frame_c, radius, normal=normal)
        self.axis = unit_axis(axis, f"Cannot make constraint '{name}' with this axis")
        self._set_default("crown_radius", crown_radius, lower=0.0, unit="m")

    def contact(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Contact:
        """Return the lowest point of the rim."""
        n, crown = self.normal, self._parameters["crown_radius"](context)
        e = X_FM.R @ self.axis
        e_rate = cross(V_FM[:3], e)
        across, across_rate = cross(e, n), cross(e_rate, n)
        s = self._upright(np.sqrt(dot(across, across)))
        s_rate = dot(across, across_rate) / s
        ahead = across / s
        ahead_rate = (across_rate - ahead * s_rate) / s
        up, up_rate = cross(ahead, e), cross(ahead_rate, e) + cross(ahead, e_rate)
        arm, none = self.radius(context) - crown, np.zeros(3)
        return Contact(
            dot(n, X_FM.p) - arm * s - crown,
            -arm * up - crown * n,
            -arm * up_rate,
            (n, ahead, cross(n, ahead)),
            (none, ahead_rate, cross(n, ahead_rate)),
        )

    def _upright(self, s: Array) -> Array:
        """Refuse a disk that lies flat."""
        return scalars.refuse_where(
            s < _FLAT,
            s,
            lambda: EvaluationError(
                f"Cannot roll '{self.frame_c.body.name}' by constraint '{self.name}'",
                expected="a disk with a lowest point",
                found=f"an axis along the normal of the plane, up to {float(s):.3g}: it lies flat",
                remedy="Start with an upright disk, and check its axis and the normal; Euler's "
                "disk lies flat after a finite time if it loses energy",
            ),
        )
