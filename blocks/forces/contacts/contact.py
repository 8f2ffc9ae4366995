"""Compliant contact with friction between shapes of two bodies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.contacts.contact_law import (
    ContactLaw,
    Elastic,
    Push,
    StickingFriction,
    damping_for,
    friction_constants,
    friction_force,
)
from flexure.blocks.forces.contacts.contact_shapes import (
    ContactShape,
    Touch,
    are_apart,
    contact_shape,
    nearest,
    overlap_of_boxes,
    touches,
)
from flexure.blocks.math import RigidTransform, compose_transforms, cross, dot, relative_pose
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.blocks.signals.waveforms import first_after
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import flag, require, require_that
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.values.arrays import Array, bounded
from flexure.diagrams.values.events import Witness
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import DiscreteState

#: Parts of the thickness of the shapes at which the first steps in a contact end.
_FIRST = (1e-6, 1e-4, 1e-2)
_PART = 0.05  # of the time of an impact, in a fixed step that keeps its energy to half a percent
_SLOW = 1e-3  # speed in m/s; slower impacts last longer, if the force is not linear
# How the constants of friction are declared, in this order, beside their lower bound of 0.
_FRICTION: dict[str, dict[str, Any]] = {
    "friction": {},
    "transition_velocity": {"unit": "m/s", "exclusive": True},
    "tangential_stiffness": {"unit": "N/m", "exclusive": True},
    "relaxation_time": {"unit": "s", "exclusive": True},
    "static_friction": {},
    "stribeck_velocity": {"unit": "m/s", "exclusive": True},
}


class Contact(BodyForceElement):
    """A compliant contact between a shape on A and a shape on B.

    At each place where the shapes may touch, with the gap g, negative where they overlap, the unit
    normal n̂ from B to A, and the velocity v of A in B at the middle of the overlap::

        x = max(-g, 0),  ġ = v·n̂                      depth, and rate of the gap
        N = k xᵉ max(0, 1 - d ġ)                      normal force, never pulls
        F = -μ N v_t / √(v_t·v_t + v_s²)              friction, with v_t = v - ġ n̂
        V = k xᵉ⁺¹/(e + 1)                            stored energy

    The force N n̂ + F acts on A, its opposite on B. The exponent e is 1, or 1.5 for the contact of
    two elastic balls (``hertz``). The damping is that of Hunt and Crossley: ``damping_for`` returns
    the constant for a coefficient of restitution.

    With a ``transition_velocity`` v_s, friction is smooth as above: a load below its limit creeps
    at about v_s times its fraction of the limit. With a ``tangential_stiffness`` k_t it sticks: a
    spring with the stretch z and a damper act along the surface, and their foot slips on the other
    surface where it would have to hold more than μ N::

        f = k_t (z + T v_t)                           force while the foot sticks
        F = -f min(1, μ N/|f|)                        friction, or with static friction
                                                      μ + (μ_s - μ) exp(-(v_t/v_b)²) for μ
        T ż = -F/k_t - z                              ż = v_t while it sticks
        V_t = k_t z·z/2                               stored energy beside V

    A body that sticks moves by the load over k_t and stays there; damper and foot only dissipate.

    Shapes are a `BodyShape` of one sphere, capsule, box, point or rod; ``"half_space"``, solid at
    z <= 0 of its frame; or points (n, 2) of a profile in the plane x-y of its frame, solid on the
    left of the line through them and extruded along z. Gaps are exact distances, but for boxes:

    ========================  =====================================================================
    pair                      places
    ========================  =====================================================================
    sphere, capsule           one
    sphere and solid          one
    capsule and half-space    both ends
    capsule and other solid   the closest one, also between the ends, and the end further away
    box, profile              the corners of each in the other, not edges that cross
    ========================  =====================================================================

    A fall of the smallest gap through zero is an event, found inside of steps, and the next steps
    end at small parts of the thickness: steps in free flight do not jump over thin bodies.
    A loose tolerance may still do so; ``max_step`` below thickness over speed excludes it.

    Besides the outputs of every force element it has the smallest ``gap`` in m, and the sum of all
    normal forces, ``load``, in N.

    Parameters
    ----------
    name : str
        Name of the block.
    body_a : Body or Frame
        The body A, or a frame on it; the world, too.
    shape_a : BodyShape, str or array_like
        Its shape, placed in the frame. Lengths are the parameter ``size_a``: the radius of a
        sphere, radius and length of a capsule, or the extents of a box.
    body_b : Body or Frame
        The body B, or a frame on it.
    shape_b : BodyShape, str or array_like
        Its shape, likewise ``size_b``.
    stiffness : float
        Stiffness k >= 0 of each place in N/m, or N/m^1.5.
    exponent : float
        Exponent e from 1 to 3. It is structure, not a parameter.
    damping : float
        Damping constant d >= 0 in s/m.
    friction : float, optional
        Coefficient of friction μ >= 0. By default there is none, and no such parameter.
    transition_velocity : float, optional
        Velocity v_s > 0 in m/s up to which friction grows. Friction requires this or the next.
    tangential_stiffness : float, optional
        Stiffness k_t > 0 of each place along the surface in N/m, for friction that sticks.
    relaxation_time : float
        Time T > 0 in s, damping over k_t; 2 ζ √(m/k_t) damps a mass m that sticks by the ratio ζ.
    static_friction : float, optional
        Coefficient of friction μ_s >= μ at rest, for friction that sticks; μ when omitted.
    stribeck_velocity : float, optional
        Velocity v_b > 0 in m/s around which it turns into μ; required with static friction.
    watched : bool
        Whether its beginning is an event. Diagrams with more than 60 events of this kind have no
        native code: with more contacts, pass False for those of slow or thick bodies, as a
        `ContactGroup` does.

    Raises
    ------
    DeclarationError
        When a body is missing, a shape is of another kind, both are half-spaces, or constants of
        friction do not fit together.
    ValueRefusedError
        When a number is negative, out of range or not finite.
    EvaluationError
        When it is evaluated where the centers of two round shapes meet, between which a force has
        no direction, or where two boxes overlap more than twice as deep as their deepest corner.

    Warns
    -----
    UserWarning
        When a simulation begins with fixed steps longer than a tenth of the time of an impact.

    See Also
    --------
    ContactGroup : Contacts between all pairs of many shapes.
    Bumper : A spring between two points that only pushes.
    RigidStop : Stops of a joint with impacts.

    Notes
    -----
    Deep overlaps are out of range: a capsule whose axis is inside a solid, or a corner that is
    closer to the opposite face. Capsules side by side touch at one place.

    Stretches are states, in the frame of the shape that is not round, else of B. The part that
    rolling turns out of the surface relaxes. Source: P. A. Cundall and O. D. L. Strack, A discrete
    numerical model for granular assemblies, Géotechnique 29 (1979) 47-65.

    Examples
    --------
    A ball of 1 kg rests on the ground, 9.81 µm deep:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("table")
    >>> ball = builder.add_body("ball", fx.SpatialInertia.solid_sphere(1.0, radius=0.05))
    >>> slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, ball, (0, 0, 1)))
    >>> shape = fx.BodyShape.sphere(radius=0.05)
    >>> contact = builder.add_force_element(
    ...     fx.Contact("touch", ball, shape, builder.world, "half_space", stiffness=1e6)
    ... )
    >>> context = builder.build().create_default_context()
    >>> slide.translation.set(context, 0.05 - 9.81e-6)
    >>> print(contact.load.eval(context).round(9))
    [9.81]
    """

    drawn_as = ""

    friction: NumericParameter | None = None
    transition_velocity: NumericParameter  # where friction is smooth
    tangential_stiffness: NumericParameter  # where friction sticks, as the following
    relaxation_time: NumericParameter
    static_friction: NumericParameter | None = None
    stribeck_velocity: NumericParameter

    def __init__(
        self,
        name: str,
        body_a: FrameLike,
        shape_a: BodyShape | str | npt.ArrayLike,
        body_b: FrameLike,
        shape_b: BodyShape | str | npt.ArrayLike,
        *,
        stiffness: float,
        exponent: float = 1.0,
        damping: float = 0.0,
        friction: float | None = None,
        transition_velocity: float | None = None,
        tangential_stiffness: float | None = None,
        relaxation_time: float = 1e-3,
        static_friction: float | None = None,
        stribeck_velocity: float | None = None,
        watched: bool = True,
    ) -> None:
        attempt = f"Cannot make contact '{name}'"
        A, B = self._shapes = contact_shape(shape_a, attempt), contact_shape(shape_b, attempt)
        fits = {A.kind, B.kind} != {"half_space"}
        require_that(fits, attempt, "a shape beside a half-space", "two", error=DeclarationError)
        constants = friction_constants(
            attempt,
            friction=friction,
            transition_velocity=transition_velocity,
            tangential_stiffness=tangential_stiffness,
            static_friction=static_friction,
            stribeck_velocity=stribeck_velocity,
        )
        sticks = tangential_stiffness is not None
        if sticks:
            constants["relaxation_time"] = relaxation_time
        places = len(touches(A, B, RigidTransform(np.eye(3), np.zeros(3))))
        doc = "along the surface at each place, in m"
        stretch = {"z": 3 * places, "name": "stretch", "doc": doc}
        frames = {"A": body_a, "B": body_b}
        super().__init__(name, frames, states=stretch if sticks else None)
        self.exponent = bounded(exponent, f"{attempt} with this exponent", lower=1.0, upper=3.0)
        self._sizes = [self._declare_size(*each) for each in zip("ab", self._shapes, strict=True)]
        unit = "N/m" if self.exponent == 1.0 else ""  # no name for N/m^1.5
        parameter = partial(self.declare_numeric_parameter, lower=0.0)
        self.stiffness = parameter("stiffness", stiffness, unit=unit)
        self.damping = parameter("damping", damping, unit="s/m")
        for what in filter(constants.__contains__, _FRICTION):
            setattr(self, what, parameter(what, constants[what], **_FRICTION[what]))
        ground = self.attachments[A.is_round or not B.is_round]
        self._sticking = StickingFriction(self, ground) if sticks else None
        own = [] if self.continuous_state is None else [self.continuous_state]
        entry, output = self.declare_cache_entry, self.declare_vector_output
        self._poses = entry("poses", self._calc_poses, prerequisites=self.position_ports)
        self.are_apart = entry("are_apart", self._calc_are_apart, prerequisites=[self._poses])
        self._touches = entry("touches", self._calc_touches, prerequisites=[self._poses])
        read = [self._touches, *self.position_ports, *self.velocity_ports, *own]
        self.pushes = entry("pushes", self._calc_pushes, prerequisites=read)
        self.gap = output(
            "gap", 1, self._calc_gap, prerequisites=[self._touches], unit="m", doc="smallest gap"
        )
        doc = "sum of the normal forces"
        self.load = output(
            "load", 1, self._calc_load, prerequisites=[self.pushes], unit="N", doc=doc
        )
        self.beginning: DiscreteState | None = None
        if flag(watched, "watched", attempt):
            self.beginning = self.declare_discrete_state(
                "beginning",
                [0.0, 0.0],
                element_names=["time", "passage"],
                doc="when a contact has begun, and how long it would take to pass through, in s",
            )
            self.declare_discrete_update(self._begin, Witness(self._calc_approach, "falling"))

    @classmethod
    def hertz(
        cls,
        name: str,
        body_a: FrameLike,
        shape_a: BodyShape | str,
        body_b: FrameLike,
        shape_b: BodyShape | str,
        *,
        materials: tuple[Elastic, Elastic],
        **options: Any,
    ) -> Contact:
        """Return the contact of two elastic shapes by Hertz's theory.

        With Young's moduli E, Poisson's ratios ν and radii R of both shapes::

            1/E* = (1 - ν_a²)/E_a + (1 - ν_b²)/E_b,  1/R* = 1/R_a + 1/R_b
            k = 4/3 E* √R*,  e = 1.5

        Parameters
        ----------
        name, body_a, shape_a, body_b, shape_b
            As for the contact; at least one sphere. Half-spaces and boxes count as flat.
        materials : tuple of Material, Material
            The materials of both shapes.
        **options
            ``damping``, the constants of friction, and ``watched``.

        Returns
        -------
        Contact
            Its stiffness keeps its value if parameters of a context change.

        Raises
        ------
        DeclarationError
            When there is no sphere, another shape is neither sphere, half-space nor box, or there
            are not two materials.

        Notes
        -----
        The radius √(R* x) of the area of contact must be small against the radii. Source: K. L.
        Johnson, Contact Mechanics, Cambridge University Press 1985, chapter 4.

        Examples
        --------
        >>> import flexure as fx
        >>> steel = fx.Material(210e9, poissons_ratio=0.3, density=7850.0)
        >>> builder = fx.PlantBuilder("balls")
        >>> a, b = (
        ...     builder.add_body(n, fx.SpatialInertia.solid_sphere(1.0, radius=0.02)) for n in "ab"
        ... )
        >>> ball = fx.BodyShape.sphere(radius=0.02)
        >>> contact = fx.Contact.hertz("touch", a, ball, b, ball, materials=(steel, steel))
        >>> print(f"{contact.stiffness.default:.4g} N/m^1.5")
        1.538e+10 N/m^1.5
        """
        attempt = f"Cannot make contact '{name}' by Hertz's theory"
        shapes = contact_shape(shape_a, attempt), contact_shape(shape_b, attempt)
        kinds = [each.kind for each in shapes]
        fits = "sphere" in kinds and {*kinds} <= {"sphere", "box", "half_space"}
        expected, found = "a sphere, and another sphere, a half-space or a box", " and ".join(kinds)
        remedy = "Pass a stiffness to Contact instead"
        require_that(fits, attempt, expected, found, remedy, error=DeclarationError)
        pair: Any = materials
        fits = isinstance(pair, (tuple, list)) and len(pair) == 2
        fits = fits and all(isinstance(each, Elastic) for each in pair)
        remedy = "Make them as in fx.Material.common('structural steel S235')"
        require(fits, materials, attempt, "two materials", error=DeclarationError, remedy=remedy)
        bends = [1.0 / float(each.size[0]) for each in shapes if each.kind == "sphere"]
        soft = sum((1.0 - each.poissons_ratio**2) / each.youngs_modulus for each in materials)
        stiffness = 4.0 / 3.0 / soft / np.sqrt(sum(bends))
        return cls(
            name, body_a, shape_a, body_b, shape_b, stiffness=stiffness, exponent=1.5, **options
        )

    @staticmethod
    def damping_for(restitution: float, speed: float) -> float:
        """Return the damping constant for a coefficient of restitution at a speed.

        Parameters
        ----------
        restitution : float
            Ratio e of the speeds after and before an impact, from 0.05 to 1.
        speed : float
            Speed u > 0 before the impact in m/s. Slower impacts lose less: e tends to 1.

        Returns
        -------
        float
            The constant d in s/m, the solution of ``d u - ln(1 + d u) = -d e u - ln(1 - d e u)``,
            which is exact for a free mass and any stiffness; about 1.5 (1 - e)/u for small losses.

        Raises
        ------
        ValueRefusedError
            When a number is out of range. Lower restitutions need no compliance: use `RigidStop`.

        Examples
        --------
        >>> import flexure as fx
        >>> round(fx.Contact.damping_for(0.5, speed=2.0), 6)
        0.716375
        """
        attempt = "Cannot compute the damping of a contact"
        return damping_for(
            bounded(restitution, f"{attempt} with this restitution", lower=0.05, upper=1.0),
            bounded(speed, f"{attempt} with this speed", lower=0.0, exclusive=True),
        )

    def _declare_size(self, label: str, shape: ContactShape) -> NumericParameter | None:
        """Declare the lengths of a shape but those of profiles, which are structure."""
        if shape.kind in ("half_space", "polyline"):
            return None
        return self.declare_numeric_parameter(
            f"size_{label}", shape.size, unit="m", lower=0.0, doc=f"lengths of the {shape.kind}"
        )

    def _sized(self, context: Any) -> list[ContactShape]:
        """Return both shapes with the lengths of a context."""
        pairs = zip(self._shapes, self._sizes, strict=True)
        return [s if size is None else s._replace(size=size(context)) for s, size in pairs]

    # Equations -------------------------------------------------------------------------------

    def law(self, context: Any) -> ContactLaw:
        """Return the law of the normal force with the constants of a context."""
        return ContactLaw(self.stiffness(context), self.exponent, self.damping(context))

    def _calc_poses(self, context: Any) -> list[RigidTransform]:
        """Return the poses of both shapes in the world."""
        pairs = zip(self.attachments, self._shapes, strict=True)
        return [compose_transforms(each.pose_of_frame(context), s.pose) for each, s in pairs]

    def _calc_are_apart(self, context: Any) -> Array:
        """Return whether shapes are so far apart that there is no force, found at little cost."""
        A, B = self._sized(context)
        return are_apart(A, B, self._poses(context))

    def _calc_touches(self, context: Any) -> list[Touch]:
        A, B = self._sized(context)
        X_WA, X_WB = self._poses(context)
        X_BA = relative_pose(X_WB, X_WA)
        found = touches(A, B, X_BA)
        if A.is_round and B.is_round:
            meets = found[0].gap + (A.size[0] + B.size[0]) <= 0.0
            found = self._refuse(
                meets,
                found,
                "round shapes whose axes do not meet",
                "axes that meet, between which a force has no direction",
                "Place the bodies apart, or make the contact stiffer",
            )
        if A.kind == B.kind == "box":
            overlap = overlap_of_boxes(A, B, X_BA)
            unseen = overlap + 2.0 * nearest(found).gap
            rounding = 1e-7 * (np.max(A.size) + np.max(B.size))
            found = self._refuse(
                np.minimum(overlap, unseen) > rounding,
                found,
                "boxes of which one has a corner as deep in the other as they overlap",
                "edges that cross, faces of equal size, or a corner beyond the middle",
                "Round edges that may cross by capsules in contacts of their own",
            )
        return [each.seen_through(X_WB) for each in found]

    def _refuse(
        self, condition: Any, found: list[Touch], expected: str, what: str, remedy: str
    ) -> list[Touch]:
        """Return touches, the first of which has no gap where a condition holds."""

        def error() -> EvaluationError:
            attempt = f"Cannot evaluate the force of '{self.label}'"
            return EvaluationError(attempt, expected=expected, found=what, remedy=remedy)

        gap = scalars.refuse_where(condition, found[0].gap, error)
        return [found[0]._replace(gap=gap), *found[1:]]

    def _calc_pushes(self, context: Any) -> list[Push]:
        law, found = self.law(context), []
        A, B = (each.motion(context) for each in self.attachments)
        for k, touch in enumerate(self._touches(context)):
            v_A, v_B = (M.V_WF[3:] + cross(M.V_WF[:3], touch.point - M.X_WF.p) for M in (A, B))
            v = v_A - v_B
            rate = dot(v, touch.normal)
            load = law.force(touch.gap, rate)
            sliding = v - rate * touch.normal
            friction = None
            if self._sticking is not None:
                friction = self._sticking.force(context, k, touch.normal, load, sliding)
            elif self.friction is not None:
                mu, slow = self.friction(context), self.transition_velocity(context)
                friction = friction_force(load, sliding, mu, slow)
            found.append(Push(touch, rate, load, sliding, friction))
        return found

    def calc_time_derivatives(self, context: Any) -> Array:
        """Return the rates of the stretches; without a load they relax."""
        return np.zeros(0) if self._sticking is None else np.ravel(self._sticking.rates(context))

    def _smallest_gap(self, context: Any) -> Array:
        return nearest(self._touches(context)).gap

    def _calc_approach(self, context: Any) -> Array:
        """Return what falls through zero with the gap: smooth where centers pass each other."""
        gap = self._smallest_gap(context)
        if not all(each.is_round for each in self._shapes):
            return gap
        return gap * (gap + 2.0 * sum(each.size[0] for each in self._sized(context)))

    def _calc_gap(self, context: Any) -> Array:
        return scalars.array([self._smallest_gap(context)])

    def _calc_load(self, context: Any) -> Array:
        return scalars.array([sum(push.load for push in self.pushes(context))])

    def _begin(self, context: Any) -> dict[Any, Array]:
        """Let steps end soon, so that the control of errors meets the force as it grows."""
        pushes = self.pushes(context)
        gap, rate = pushes[0].touch.gap, pushes[0].rate
        for push in pushes[1:]:
            closer = push.touch.gap < gap
            gap = np.where(closer, push.touch.gap, gap)
            rate = np.where(closer, push.rate, rate)
        depth = sum(each.depth() for each in self._sized(context))
        rises = rate >= 0.0  # not where it is NaN
        passage = np.where(rises, 0.0, depth / np.where(rises, 1.0, -rate))
        assert self.beginning is not None  # the event is declared with it
        return {self.beginning: scalars.array([context.time, passage])}

    def calc_next_break_time(self, context: Any) -> float:
        """Return the end of the next of the first steps in a contact that has just begun."""
        if self.beginning is None:
            return np.inf
        time, passage = self.beginning(context)
        return first_after(context.time, *(time + part * passage for part in _FIRST))

    def longest_step(self, context: Any) -> float:
        """Return a twentieth of the time of an impact at the present speed, or after a fall."""
        bodies = [each.body for each in self.attachments if not each.body.is_world]
        tree, root = bodies[0].tree, context.root
        stiffness = float(self.stiffness(context))
        if tree is None or stiffness == 0.0:
            return np.inf
        _, _, inertias = tree.kinematics(root)
        masses = [float(inertias[each.number].mass) for each in bodies if each.number is not None]
        if min(masses) <= 0.0:
            return np.inf
        gravity = np.linalg.norm(tree.find_parameter("gravity")(root))
        fall = 2.0 * gravity * max(float(self._smallest_gap(context)), 0.0)
        rate = min(0.0, *[float(push.rate) for push in self.pushes(context)])
        speed = max(np.sqrt(rate**2 + fall), _SLOW)
        mass = 1.0 / sum(1.0 / each for each in masses)
        return _PART * float(self.law(context).impact_time(mass, speed))

    def calc_spatial_forces(self, context: Any) -> list[Array]:
        """Return the spatial force on both bodies about their origins."""
        apart, nothing = self.are_apart(context), np.zeros((2, 6))
        return list(scalars.skip_where(apart, nothing, lambda: self._spatial_forces(context)))

    def _spatial_forces(self, context: Any) -> Array:
        pushes, total = self.pushes(context), []
        for sign, each in zip((1.0, -1.0), self.attachments, strict=True):
            rest = each.at_rest(context)
            origin, F = rest.X_WF.p - rest.p_BF, np.zeros(6)
            for push in pushes:
                f = sign * push.force
                F = F + np.concatenate([cross(push.touch.point - origin, f), f])
            total.append(F)
        return np.stack(total)

    def _sum(self, context: Any, calc: Callable[[ContactLaw, Any], Array], places: Any) -> Array:
        """Return the sum of what is computed for all places, none where shapes are apart."""

        def total() -> Array:
            law = self.law(context)
            return sum(calc(law, each) for each in places(context))

        return scalars.skip_where(self.are_apart(context), 0.0, total)

    def calc_stored_energy(self, context: Any) -> Array:
        """Return the energy stored in all places."""
        stored = self._sum(context, lambda law, t: law.stored_energy(t.gap), self._touches)
        return stored if self._sticking is None else stored + self._sticking.energy(context)

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of the elastic forces."""
        power = self._sum(
            context, lambda law, p: law.conservative_power(p.touch.gap, p.rate), self.pushes
        )
        return power if self._sticking is None else power - self._sticking.power(context)

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of damping and friction."""
        power = self._sum(context, _lost, self.pushes)
        return power if self._sticking is None else power + self._sticking.power(context)


def _lost(law: ContactLaw, push: Push) -> Array:
    """Return the power of damping and friction at one place."""
    power = law.non_conservative_power(push.touch.gap, push.rate)
    return power if push.friction is None else power + dot(push.friction, push.sliding)
