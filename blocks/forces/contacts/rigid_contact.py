"""Contact of rigid shapes: gaps between bodies that impacts keep open, or that stay closed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.contacts.contact_law import friction_force
from flexure.blocks.forces.contacts.contact_shapes import ContactShape, contact_shape
from flexure.blocks.math import RigidTransform, cross, dot, rotate_spatial
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.constraints.constraint import Condition, ConstrainedTree, Slip
from flexure.blocks.multibody.constraints.frame_constraints import FrameConstraint
from flexure.blocks.multibody.constraints.switched_constraint import (
    NEAR,
    SLOW,
    Row,
    UnilateralConstraint,
)
from flexure.blocks.multibody.joints.base.closure import Demand
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import flag, require_that
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, bounded

_UP = np.array([0.0, 0.0, 1.0])
_BOUNDS: dict[str, dict[str, Any]] = {
    "restitution": {"lower": 0.0, "upper": 1.0},
    "rest_velocity": {"lower": 0.0, "unit": "m/s"},
    "friction": {"lower": 0.0},
    "transition_velocity": {"lower": 0.0, "exclusive": True, "unit": "m/s"},
}


class RigidContact(UnilateralConstraint):
    """Rigid contact between shapes of two bodies, with impacts and friction.

    Each gap g >= 0 between the shapes behaves as that of a `RigidStop`: at an impact the rate ġ⁻
    becomes ``-e ġ⁻`` by an impulse along the normal, rebounds slower than the ``rest_velocity`` do
    not take place, and a contact holds until it would have to pull. Contacts that touch at one
    instant, or are open by less than 1e-9 of the mechanism's size, take part in impacts together,
    or one by one; see ``impacts`` of the `PlantBuilder`.

    ========================  =====================================================================
    pair                      gaps
    ========================  =====================================================================
    sphere and sphere         one, between the closest points
    sphere inside a sphere    one, ``r_b - r_a`` minus the distance of the centers: of two points,
                              a stop of their distance, as of a rope
    sphere and half-space     one
    capsule and half-space    those of both ends
    box and half-space        those of the eight corners
    ========================  =====================================================================

    While contacts hold, errors of their gaps decay and are projected away as those of loops.

    With ``friction`` a closed contact with the load λ that slides at its point with the velocity
    v_t resists by ::

        F = -μ λ v_t/√(v_t·v_t + v_s²)

    F loads its own contact, and both are solved for together. As that of a smooth `Contact`, it
    does not stick: under a load P along the surface bodies creep with about v_s P/(μ λ).

    In an impact, friction acts with impulses P along the surface at the contacts that push, and
    leaves ``ġ⁺ = -e ġ⁻`` as it is. With the velocity of sliding u that is left if the gaps do not
    rebound, either u = 0 and ``|P| <= μ Λ``, or ``P = -μ Λ u/|u|``. If W is what an impulse at a
    contact adds to its velocity, with the parts n along the normal and t along the surface ::

        u = v_t⁻ - W_tn ġ⁻/W_nn + (W_tt - W_tn W_nt/W_nn) P

    Kinetic energy never grows. For balls, with W_tn = 0, sliding ends, or P is μ Λ against it. For
    several contacts that load each other, a fixed number of rounds finds P nearly: inside of the
    cones ``|P| <= μ Λ``, with less kinetic energy. A contact without load that is sent away more
    slowly than its ``rest_velocity`` rests, too.

    Restitution and ``rest_velocity`` are parameters of the tree, ``<name>_restitution`` and
    ``<name>_rest_velocity``; so are ``friction`` and ``transition_velocity``. With friction there
    are the outputs ``<name>.friction_force``, in N in the world, on the shape that is not a
    half-space, else on A, for each gap, and ``<name>.non_conservative_power`` in W. The
    ``<name>.dissipated_energy`` of impacts includes friction.

    Parameters
    ----------
    name : str
        Name within the plant.
    body_a : Body or Frame
        The body A, or a frame on it; the world, too.
    shape_a : BodyShape or str
        Its shape, as for `Contact`: one sphere, capsule, box, point or rod, or ``"half_space"``.
        Lengths are structure, not parameters.
    body_b : Body or Frame
        The body B, or a frame on it.
    shape_b : BodyShape or str
        Its shape.
    inside : bool
        Whether a sphere or point A is inside of a sphere B, instead of beside it.
    restitution : float
        Coefficient of restitution e, from 0 to 1.
    rest_velocity : float, optional
        Rate >= 0 in m/s of the slowest rebound; by default 1e-4 of the rate with which a pendulum
        of the length of the mechanism's longest link moves.
    friction : float, optional
        Coefficient of friction μ >= 0. By default there is none, and no such parameter.
    transition_velocity : float, optional
        Velocity v_s > 0 in m/s up to which friction grows; required with friction.

    Raises
    ------
    DeclarationError
        When shapes are no pair of the table, or both are on one body, or only one of ``friction``
        and ``transition_velocity`` is given.
    ValueRefusedError
        When a number is out of range or not finite.
    EvaluationError
        When friction presses its own contact by more than it takes to cause it, so that rigid
        bodies have several motions or none (Painlevé's paradox).

    See Also
    --------
    RigidStop : Stops at the limits of the coordinates of a joint.
    Contact : Compliant contact with friction, of more shapes.

    Notes
    -----
    Friction has no torque about the normal, and none against rolling. Several closed contacts share
    a load that statics do not divide, as the legs of a table, by the least sum of squares, and
    their friction follows these shares.

    In the plane the impulse is that of A. Chatterjee, A. Ruina, A new algebraic rigid-body
    collision law based on impulse space considerations, Journal of Applied Mechanics 65 (1998)
    939-951, with no restitution along the surface. In space sliding may turn during an impact,
    which one impulse neglects.

    Examples
    --------
    A ball of 2 kg falls onto the ground, until it rests there:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("balls", gravity=(0.0, 0.0, -10.0))
    >>> shape = fx.BodyShape.sphere(radius=0.1)
    >>> ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    >>> height = builder.add_joint(
    ...     fx.PrismaticJoint("height", builder.world, ball, axis=(0, 0, 1), damping=0.0)
    ... )
    >>> touch = builder.add_constraint(
    ...     fx.RigidContact("touch", ball, shape, builder.world, "half_space", restitution=0.5)
    ... )
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> height.translation.set(context, 5.1)
    >>> result = fx.simulate(plant, 4.0, context=context)
    >>> found = result["touch.multipliers"][-1], result["touch.dissipated_energy"][-1]
    >>> print(*np.round(found, 6))
    20.0 100.0
    """

    LEEWAY: ClassVar[tuple[float, float]] = (1e4, 1e8)  # trial steps leave some of both

    def __init__(
        self,
        name: str,
        body_a: FrameLike,
        shape_a: BodyShape | str,
        body_b: FrameLike,
        shape_b: BodyShape | str,
        *,
        inside: bool = False,
        restitution: npt.ArrayLike,
        rest_velocity: npt.ArrayLike | None = None,
        friction: float | None = None,
        transition_velocity: float | None = None,
    ) -> None:
        super().__init__(name)
        attempt = f"Cannot make constraint '{name}'"
        places = [
            (as_frame(body, attempt), contact_shape(shape, attempt))
            for body, shape in ((body_a, shape_a), (body_b, shape_b))
        ]
        is_inside = flag(inside, "inside", attempt)
        places.sort(key=lambda place: place[1].kind == "half_space")  # what is flat comes last
        (_, A), (_, B) = places
        if B.kind == "half_space":
            fits = A.kind in ("sphere", "capsule", "box") and not is_inside
        else:
            least = A.size[0] if is_inside else -A.size[0]  # two points have no inside to keep out
            fits = A.kind == B.kind == "sphere" and B.size[0] > least
        demand = partial(require_that, attempt=attempt, error=DeclarationError)
        flat = "two spheres, or a sphere, a capsule or a box and a half-space, not two points"
        expected = "a larger sphere around a smaller one" if is_inside else flat
        found = f"{A.kind} and {B.kind}, of sizes {A.size} and {B.size} m"
        remedy = "Use the compliant Contact, or spheres along edges and corners"
        demand(fits, expected=expected, found=found, remedy=remedy)
        expected = "friction with a transition_velocity, or neither"
        found = f"friction={friction!r}, transition_velocity={transition_velocity!r}"
        remedy = "Choose a transition velocity far below those of sliding, such as 1e-3"
        is_pair = (friction is None) == (transition_velocity is None)
        demand(is_pair, expected=expected, found=found, remedy=remedy)
        given = {
            "restitution": restitution,
            "rest_velocity": rest_velocity,
            "friction": friction,
            "transition_velocity": transition_velocity,
        }
        self._constants = {
            what: bounded(value, f"{attempt} with this {what}", **_BOUNDS[what])
            for what, value in given.items()
            if value is not None or what == "restitution"
        }
        if friction is not None:
            self.has_friction = True
            self.outputs = (*self.outputs, "friction_force", "non_conservative_power")
        self._gaps = _Gaps(name, *places, sign=-1.0 if is_inside else 1.0, rubs=self.has_friction)
        self.rows = tuple(Row(k, 1.0) for k in range(self._gaps.num_equations))

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of both shapes."""
        return self._gaps.bodies

    def _turns(self) -> Sequence[bool]:
        return [False for _ in self.rows]

    def mode_names(self) -> Sequence[str]:
        """Return numbers of the gaps."""
        return [f"gap{row.k + 1}" for row in self.rows]

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare restitution, slowest rebound, and what impacts have dissipated."""
        super().declare(tree)
        self._gaps.declare(tree)
        constants = {"rest_velocity": SLOW * self.scales[0].rate, **self._constants}
        for what in filter(constants.__contains__, _BOUNDS):
            self._declare(what, constants[what], **_BOUNDS[what])
        self._declare_dissipated(tree)

    def _open(self, context: Any) -> Condition:
        """Return the equations of all gaps, held or not."""
        tree = self.tree
        return self._gaps.condition(context, tree.placements(context), tree.motions(context))

    def gaps(self, context: Any) -> list[Array]:
        """Return the gaps, negative where shapes overlap."""
        return list(self._open(context).errors)

    def rates(self, context: Any) -> list[Array]:
        """Return the rates of the gaps."""
        return list(self._open(context).rates)

    def accelerations(self, context: Any) -> list[Array]:
        """Return the second derivatives of the gaps."""
        condition, tree = self._open(context), self.tree
        placements, A = tree.placements(context), tree.body_accelerations(context)
        turned = {
            number: rotate_spatial(np.transpose(placements[number].R_WB), A[number])
            for forces in condition.forces
            for number in forces
        }
        pairs = zip(condition.forces, condition.biases, strict=True)
        return [sum((dot(F, turned[k]) for k, F in each.items()), bias) for each, bias in pairs]

    def limits(self, context: Any) -> list[Array]:
        """Return zeros: no coordinate is at a limit."""
        return [0.0 for _ in self.rows]

    def restitutions(self, context: Any) -> list[Array]:
        """Return the coefficient of restitution of each gap."""
        return [self._parameters["restitution"](context) for _ in self.rows]

    def rest_velocities(self, context: Any) -> list[Array]:
        """Return the rate of the slowest rebound of each gap."""
        return [self._parameters["rest_velocity"](context) for _ in self.rows]

    def condition(
        self, context: Any, placements: Sequence[Placement], motions: Sequence[BodyMotion]
    ) -> Condition:
        """Return the equations, with zero errors and rates of those that do not hold."""
        held, found = self.held(context), self._gaps.condition(context, placements, motions)
        slips = found.slips
        if self.has_friction:
            mu = self._parameters["friction"](context)
            slow = self._parameters["transition_velocity"](context)
            slips = [
                Slip(*slip[:2], mu, friction_force(1.0, scalars.array(slip.rates), mu, slow))
                for slip in slips
            ]
        return found._replace(
            errors=[h * error for h, error in zip(held, found.errors, strict=True)],
            rates=[h * rate for h, rate in zip(held, found.rates, strict=True)],
            held=held,
            slips=slips,
        )

    def start_problem(self, context: Any) -> str | None:
        """Say which shapes overlap, or are apart while their contact is closed."""
        held = self.held(context)
        for k, (gap, scale) in enumerate(zip(self.gaps(context), self.scales, strict=True)):
            if not gap >= -NEAR * scale.size:
                return f"shapes of '{self.name}' that overlap by {-float(gap):.3g} m"
            if held[k] > 0.0 and gap > NEAR * scale.size:
                return (
                    f"shapes of '{self.name}' that are {float(gap):.3g} m apart, but in contact "
                    f"(to open it, set '{self.tree.name}.{self.modes.name}' to zeros)"
                )
        return None


class _Gaps(FrameConstraint):
    """The gaps between points with a radius and a half-space, or between two balls."""

    def __init__(
        self,
        name: str,
        place_a: tuple[Frame, ContactShape],
        place_b: tuple[Frame, ContactShape],
        *,
        sign: float,
        rubs: bool,
    ) -> None:
        (on_a, A), (on_b, B) = place_a, place_b
        super().__init__(name, Frame("F", on_b, B.pose), Frame("M", on_a, A.pose))
        self._is_flat = B.kind == "half_space"
        self._points = A.points()
        self._sign, self._rubs = sign, rubs
        self._radius = float(A.size[0]) if A.is_round else 0.0
        self._offset = -self._radius
        self._offset -= 0.0 if self._is_flat else sign * float(B.size[0])

    @property
    def num_equations(self) -> int:
        """Number of gaps."""
        return len(self._points)

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the gaps."""
        w, found = V_FM[:3], []
        for point in self._points:
            arm = X_FM.R @ point
            x, v = X_FM.p + arm, V_FM[3:] + cross(w, arm)
            if self._is_flat:
                distance, n, curved = x[2], _UP, 0.0
            else:
                square = dot(x, x)
                distance = np.sqrt(np.where(square > 0.0, square, 1.0))
                n = np.where(square > 0.0, x / distance, _UP)
                distance = np.where(square > 0.0, distance, 0.0)
                rate = dot(n, v)
                curved = (dot(v, v) - rate * rate) / np.where(square > 0.0, distance, 1.0)
            sign = self._sign
            row = sign * np.concatenate([cross(arm, n), n])
            bias = sign * (dot(n, cross(w, cross(w, arm))) + curved)
            slides: Sequence[Array] = ()
            if self._rubs:
                lever = arm - sign * self._radius * n
                slides = [np.concatenate([cross(lever, t), t]) for t in _tangents(n)]
            found.append(Demand(sign * distance + self._offset, row, bias, slides))
        return found


def _tangents(n: Array) -> tuple[Array, Array]:
    """Return two directions at right angles to a normal and to each other."""
    across = cross(n, np.where(n[0] * n[0] < 0.5, np.eye(3)[0], np.eye(3)[1]))
    first = across / np.sqrt(dot(across, across))
    return first, cross(n, first)
