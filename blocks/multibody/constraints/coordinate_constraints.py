"""Constraints between coordinates of joints: any function of them, and prescribed motion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.constraints.constraint import Condition, ConstrainedTree, Constraint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams import TIME, scalars
from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.systems.ports import InputPort, Prerequisite
from flexure.diagrams.values.arrays import Array


class CoordinateTerms(NamedTuple):
    """Equations of coordinates: φ, ∂φ̇/∂v, φ̇ and what is left of φ̈ at v̇ = 0.

    Those between velocities alone have no φ, and w instead of φ̇.
    """

    errors: Array
    slopes: Array
    rates: Array
    biases: Array

    def at(self, q: Array, v: Array, t: Array) -> CoordinateTerms:
        """Return equations that are traced with numbers or symbols for q, v and t."""
        values: dict[Hashable, Any] = {("q", k): each for k, each in enumerate(q)}
        values |= {("v", k): each for k, each in enumerate(v)} | {"t": t}
        return CoordinateTerms(*(scalars.substitute(each, values) for each in self))


class CoordinateConstraint(Constraint):
    """Equations between coordinates of different joints; all of their positions count."""

    NEEDS_RATES: ClassVar[bool] = True

    def __init__(self, name: str, joints: Sequence[Joint]) -> None:
        super().__init__(name)
        attempt = f"Cannot make constraint '{name}'"
        self.joints = tuple(items_of(joints, "a list of joints", attempt, kind=Joint))
        if not self.joints or len(set(self.joints)) < len(self.joints):
            raise DeclarationError(
                attempt, expected="different joints, at least one", found=repr(list(self.joints))
            )
        wanted = "joints that move"
        if self.NEEDS_RATES:
            wanted += ", with velocities that are the rates of positions"
        for joint in self.joints:
            if not joint.num_velocities or (self.NEEDS_RATES and not joint.velocities_are_rates):
                raise DeclarationError(
                    attempt, expected=wanted, found=f"the {joint.type_name} joint '{joint.name}'"
                )

    @property
    def num_coordinates(self) -> int:
        """Number of positions of all its joints."""
        return sum(joint.num_positions for joint in self.joints)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of its joints."""
        return tuple(b for joint in self.joints for b in (joint.parent_body, joint.child_body))

    @property
    def linear_rows(self) -> list[tuple[dict[tuple[Joint, int], float], float | None]]:
        """Factors by coordinates, as (joint, number), for which the sum of products is known.

        The second of each pair is that sum, or None where it is an input. So what follows from
        other constraints, or contradicts them, is found.
        """
        return []

    @abstractmethod
    def terms(self, context: Any, q: Array, v: Array) -> CoordinateTerms:
        """Return the equations for positions and velocities."""

    def condition(
        self, context: Any, placements: Sequence[Placement], motions: Sequence[BodyMotion]
    ) -> Condition:
        """Return the equations for the coordinates of a context."""
        tree = self.tree
        mobilizers = [tree.topology.mobilizer_of(joint) for joint in self.joints]
        q, v = tree.q(context), tree.moving_velocities(context)
        terms = self.terms(
            context,
            np.concatenate([q[each.q] for each in mobilizers]),
            np.concatenate([v[each.v] for each in mobilizers]),
        )
        sizes = [joint.num_velocities for joint in self.joints]
        parts = [slice(end - n, end) for end, n in zip(np.cumsum(sizes), sizes, strict=True)]
        efforts = [
            {each.outboard: row[part] for each, part in zip(mobilizers, parts, strict=True)}
            for row in terms.slopes
        ]
        empty: Mapping[int, Array] = {}
        return Condition(terms.errors, terms.rates, terms.biases, [empty] * len(efforts), efforts)


class TracedConstraint(CoordinateConstraint):
    """Equations of coordinates that are traced when the constraint is made."""

    _traced: CoordinateTerms

    @property
    def num_equations(self) -> int:
        """Number of equations."""
        return len(self._traced.rates)

    @property
    def prerequisites(self) -> list[Prerequisite]:
        """What it reads beside positions and velocities."""
        return [TIME] if self.is_driven else []

    def terms(self, context: Any, q: Array, v: Array) -> CoordinateTerms:
        """Return the traced equations at positions and velocities."""
        return self._traced.at(q, v, context.time if self.is_driven else 0.0)


class HolonomicConstraint(TracedConstraint):
    """User-defined equations φ(q, t) = 0 between the positions of joints.

    The function is traced once, so that its Jacobian and the rest of φ̈ are exact::

        φ̇ = ∂φ/∂q q̇ + ∂φ/∂t
        φ̈ = ∂φ/∂q q̈ + ∂φ̇/∂q q̇ + ∂φ̇/∂t

    Parameters
    ----------
    name : str
        Name within the plant.
    joints : sequence of Joint
        The joints whose positions the function takes.
    function : callable
        ``function(q, t)`` returns φ, a number or an array, written with NumPy and without branches
        that depend on values; q has the positions of all joints, one joint after the other.

    Raises
    ------
    DeclarationError
        When the function cannot be traced, or depends on no position.

    See Also
    --------
    VelocityConstraint : Equations between velocities.
    Coupling : A linear equation between coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder()
    >>> rod = fx.SpatialInertia.thin_rod(1.0, length=0.1)
    >>> cam, follower = builder.add_body("cam", rod), builder.add_body("follower", rod)
    >>> shaft = builder.add_joint(fx.RevoluteJoint("shaft", builder.world, cam, axis=(0, 1, 0)))
    >>> guide = builder.add_joint(
    ...     fx.PrismaticJoint("guide", builder.world, follower, axis=(0, 0, 1))
    ... )
    >>> lift = lambda q, t: q[1] - 0.01 * np.sin(q[0])
    >>> _ = builder.add_constraint(
    ...     fx.constraints.HolonomicConstraint("contact", [shaft, guide], lift)
    ... )
    """

    def __init__(
        self, name: str, joints: Sequence[Joint], function: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(name, joints)
        attempt = f"Cannot trace the equations of constraint '{name}'"
        graph, n = scalars.Graph(), self.num_coordinates
        q, v, t = scalars.symbols(graph, "q", n), scalars.symbols(graph, "v", n), graph.input("t")
        errors = traced(function, {"q": q, "t": t}, attempt)
        keys: list[Hashable] = [("q", k) for k in range(n)]
        if errors.ndim != 1 or not all(scalars.sources(each) & set(keys) for each in errors):
            raise DeclarationError(
                attempt,
                expected="equations that each depend on a position",
                found=f"an array of shape {errors.shape}",
            )
        slopes = scalars.array([scalars.gradient(each, keys) for each in errors])
        rates = scalars.array([_rate(each, keys, v) for each in errors])
        biases = scalars.array([_rate(each, keys, v) for each in rates])
        self._traced = CoordinateTerms(errors, slopes, rates, biases)
        self.is_driven = "t" in scalars.sources([errors, rates, biases])


def traced(function: Callable[..., Any], arguments: Mapping[str, Any], attempt: str) -> Array:
    """Return what a function of symbols gives, in one dimension; refuse one that cannot do it."""
    try:
        return scalars.array(np.atleast_1d(function(*arguments.values())))
    except Exception as error:
        raise DeclarationError(
            attempt,
            expected=f"a function of ({', '.join(arguments)}) that computes with NumPy alone",
            found=f"{type(error).__name__}: {error}",
            remedy="Write np.where instead of if, and no conversions such as float()",
        ) from error


def _rate(value: Any, keys: Sequence[Hashable], v: Array) -> Any:
    """Return the rate of a function of q, of v as a constant, and of t."""
    *slopes, by_time = scalars.gradient(value, [*keys, "t"])
    total = by_time
    for slope, rate in zip(slopes, v, strict=True):
        total = total + slope * rate
    return total


class PrescribedMotion(CoordinateConstraint):
    """A joint whose motion is prescribed by an input.

    The input ``<name>`` of the plant takes positions, velocities and accelerations of the joint,
    one after the other: (q, q̇, q̈), three numbers for each position. Its multipliers are the
    efforts that this takes, in N m or N.

    Parameters
    ----------
    name : str
        Name within the plant, and of the input.
    joint : Joint
        The joint.

    See Also
    --------
    Plant.calc_inverse_dynamics : Efforts of a motion without a simulation.

    Notes
    -----
    The context keeps positions and velocities of the joint as states. `Plant.assemble` sets them to
    what the input says, and simulations project them there where errors are above
    ``constraint_tolerance``: a corner of the input is a blow, and what jumps there jumps with all
    that is coupled to it. Simulations warn of positions that jump. Velocities and accelerations
    that are not the rates of the positions give a motion that follows neither, and efforts that
    mean nothing: simulations warn where they have to move the states farther than a method errs at
    one step after the other.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0))
    >>> rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, bob, axis=(1, 0, 0)))
    >>> _ = builder.add_constraint(fx.constraints.PrescribedMotion("drive", rail))
    >>> builder.build().input_port("drive").size
    3
    """

    def __init__(self, name: str, joint: Joint) -> None:
        super().__init__(name, [joint])
        self.is_driven = True
        self._input: InputPort | None = None

    @property
    def num_equations(self) -> int:
        """Number of equations."""
        return self.num_coordinates

    @property
    def prerequisites(self) -> list[Prerequisite]:
        """What it reads beside positions and velocities."""
        assert self._input is not None  # the tree declares it before
        return [self._input]

    @property
    def linear_rows(self) -> list[tuple[dict[tuple[Joint, int], float], float | None]]:
        """All positions of the joint, as the input has them."""
        joint = self.joints[0]
        return [({(joint, k): 1.0}, None) for k in range(joint.num_positions)]

    def check(self, context: Any) -> None:
        """Refuse to move a joint that is locked."""
        joint = self.joints[0]
        if joint.is_locked(context):
            raise EvaluationError(
                f"Cannot move joint '{joint.name}' as '{self.name}' prescribes",
                expected="a joint that is not locked",
                found=f"'{joint.name}', which is locked and prescribed at once",
                remedy=f"Call unlock(context) of joint '{joint.name}', or prescribe a constant "
                "position, which holds it as a lock does",
            )

    @property
    def input_name(self) -> str:
        """Name of its input in the tree."""
        return f"{self.name}_motion"

    def declare(self, tree: ConstrainedTree) -> None:
        """Declare the input."""
        super().declare(tree)
        n = self.num_coordinates
        self._input = tree.declare_vector_input(
            self.input_name, 3 * n, doc="positions, velocities and accelerations to follow"
        )

    def terms(self, context: Any, q: Array, v: Array) -> CoordinateTerms:
        """Return the differences from what the input says."""
        assert self._input is not None  # the tree declares it before
        n, wanted = self.num_coordinates, self._input(context)
        return CoordinateTerms(q - wanted[:n], np.eye(n), v - wanted[n : 2 * n], -wanted[2 * n :])
