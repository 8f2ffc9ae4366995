"""Constraints between two frames: joints that close loops, distances, guides of points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    cross,
    dot,
    relative_pose,
    rotate_spatial,
    shift_spatial_force,
)
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.constraints.constraint import (
    Condition,
    ConstrainedTree,
    Constraint,
    Slip,
    constraint_forces,
)
from flexure.blocks.multibody.joints.base.checks import unit_axis
from flexure.blocks.multibody.joints.base.closure import Along, ClosureEquation, Demand, two_normals
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, FloatArray, as_number

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context


class FrameConstraint(Constraint):
    """Equations between a frame F on one body and a frame M on another.

    They are functions of the pose X_FM and the velocity V_FM, as they are seen in F. One of the
    frames, which are on two bodies, may be on the world.
    """

    def __init__(self, name: str, frame_a: FrameLike, frame_c: FrameLike) -> None:
        super().__init__(name)
        attempt = f"Cannot make constraint '{name}'"
        self.frame_a = as_frame(frame_a, attempt)
        self.frame_c = as_frame(frame_c, attempt)
        if self.frame_a.body is self.frame_c.body:
            raise DeclarationError(
                attempt,
                expected="frames on two bodies",
                found=f"two frames on '{self.frame_a.body.name}'",
            )

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of F and M."""
        return self.frame_a.body, self.frame_c.body

    def declare(self, tree: ConstrainedTree) -> None:
        """Refuse bodies that are welded together, which no constraint can move."""
        owners = _owners(tree.topology)
        F, M = self.bodies
        if owners[_number(F)] == owners[_number(M)]:
            raise DeclarationError(
                f"Cannot add constraint '{self.name}'",
                expected="bodies that can move relative to each other",
                found=f"'{F.name}' and '{M.name}', which are welded together",
                remedy="Remove the constraint, or one of the welds",
            )
        super().declare(tree)

    def reaction(self, context: Context) -> FloatArray:
        """Return what the constraint exerts on the body of M: moment about Mo and force, in M.

        The body of F gets the opposite force at the same place. The plant has the output
        ``<constraint>.reaction`` of the same numbers.

        Returns
        -------
        array, shape (6,)
            Moment in N m, then force in N, about the origin of M and expressed in M.

        Raises
        ------
        EvaluationError
            When the constraints of the plant are not met in the context.
        """
        if self._tree is None:
            raise DeclarationError(
                f"Cannot use constraint '{self.name}' with a context",
                expected="a constraint of a plant that is built",
                found="one whose plant is not built yet",
                remedy="Add it with the PlantBuilder and call build() first",
            )
        F: FloatArray = self._tree.output_port(f"{self.name}_reaction").eval(context)
        return F

    def reaction_of(
        self, placements: Sequence[Placement], condition: Condition, values: Array
    ) -> Array:
        """Return the spatial force of the constraint on the body of M about Mo, expressed in M.

        Parameters
        ----------
        placements : sequence of Placement
            Of all bodies.
        condition : Condition
            The equations.
        values : array, shape (num_equations,)
            The multipliers.

        Returns
        -------
        array, shape (6,)
            Moment in N m and force in N; the body of F gets the opposite there.
        """
        body, X_BM = self.frame_c.body, self.frame_c.X_BF
        is_on_world = body.is_world
        number = _number(self.frame_a.body if is_on_world else body)
        total = constraint_forces(placements, [condition], [values])[number]
        M = placements[_number(body)]
        p_WM = M.p_WB + M.R_WB @ X_BM.p
        F = shift_spatial_force(total, p_WM - placements[number].p_WB)
        return rotate_spatial(np.transpose(M.R_WB @ X_BM.R), -F if is_on_world else F)

    @abstractmethod
    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the equations for a pose and a velocity of M in F, expressed in F."""

    def condition(
        self, context: Any, placements: Sequence[Placement], motions: Sequence[BodyMotion]
    ) -> Condition:
        """Return the equations for the placements and motions of all bodies."""
        X_AF, X_BM = self.frame_a.X_BF, self.frame_c.X_BF
        a, b = (_number(body) for body in self.bodies)
        R_FA = np.transpose(X_AF.R)
        R_FW = R_FA @ np.transpose(placements[a].R_WB)
        R_FB = R_FW @ placements[b].R_WB
        # All is expressed in F, with the positions of Mo from the origins of A and B.
        p_BM = R_FB @ X_BM.p
        p_AM = R_FW @ (placements[b].p_WB - placements[a].p_WB) + p_BM
        V_A, V_B = motions[a].V_WB, motions[b].V_WB
        w_A, w_B = R_FW @ V_A[:3], R_FW @ V_B[:3]
        turning_A, turning_B = cross(w_A, p_AM), cross(w_B, p_BM)
        w, v = w_B - w_A, R_FW @ (V_B[3:] - V_A[3:]) + turning_B - turning_A
        V = np.concatenate([w, v])
        # Where no body accelerates, what M does in F comes from velocities alone.
        steady = cross(w_B, turning_B) - cross(w_A, turning_A + 2.0 * v)
        A = np.concatenate([-cross(w_A, w), steady])
        X_FM = RigidTransform(R_FB @ X_BM.R, p_AM - R_FA @ X_AF.p)
        demands = self.demands(context, X_FM, V)

        def on_bodies(row: Array) -> dict[int, Array]:
            on_A = rotate_spatial(X_AF.R, shift_spatial_force(-row, -p_AM))
            on_B = rotate_spatial(np.transpose(R_FB), shift_spatial_force(row, -p_BM))
            return {number: F for number, F in ((a, on_A), (b, on_B)) if number}

        return Condition(
            [each.error for each in demands[: self.num_position_equations]],
            [dot(each.row, V) for each in demands],
            [dot(each.row, A) + each.bias for each in demands],
            [on_bodies(each.row) for each in demands],
            [{} for _ in demands],
            slips=[
                Slip([dot(row, V) for row in each.slides], [on_bodies(row) for row in each.slides])
                for each in demands
                if each.slides
            ],
        )


class LoopJoint(FrameConstraint):
    """A joint that closes a kinematic loop, made by `PlantBuilder.add_loop_joint`.

    Its equations are those that its kind of joint demands; see `Joint.closure`. Those between
    directions are multiplied by a length, that from the joint to the center of mass of one of its
    bodies, so that all errors are in m and all multipliers in N.

    Parameters
    ----------
    joint : Joint
        What says where its frames F and M are, and of which kind it is.

    See Also
    --------
    PlantBuilder : Adds loop joints.
    DistanceConstraint : A massless rod.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> disk = fx.SpatialInertia.solid_cylinder(1.0, radius=0.1, length=0.02, axis="z")
    >>> one, two = (builder.add_body(name, disk) for name in ("one", "two"))
    >>> a = builder.add_joint(fx.RevoluteJoint("a", builder.world, one, axis=(0, 0, 1)))
    >>> b = builder.add_joint(fx.RevoluteJoint("b", builder.world, two, axis=(0, 0, 1)))
    >>> pin = fx.RevoluteJoint("pin", one, two, axis=(0, 0, 1))
    >>> builder.add_loop_joint(pin).num_equations
    5
    """

    def __init__(self, joint: Joint) -> None:
        attempt = "Cannot close a loop"
        require(isinstance(joint, Joint), joint, attempt, "a joint", error=DeclarationError)
        super().__init__(joint.name, joint.frame_on_parent, joint.frame_on_child)
        self.joint = joint
        self.equations: tuple[ClosureEquation, ...] = tuple(joint.closure())
        self._length = max(_lever(joint.frame_on_parent), _lever(joint.frame_on_child)) or 1.0

    @property
    def num_equations(self) -> int:
        """Number of equations."""
        return len(self.equations)

    @property
    def loop_joint(self) -> Joint:
        """The joint."""
        return self.joint

    def declare(self, tree: ConstrainedTree) -> None:
        """Refuse a joint that is there already, in a tree or as a loop joint."""
        super().declare(tree)
        assert self.index is not None  # the plant builder numbers constraints before
        joints = [each.joint for each in tree.topology.mobilizers]
        before = tree.constraints[: self.index]
        joints += [each.loop_joint for each in before if each.loop_joint is not None]
        for other in joints:
            if _is_one(self.joint, other):
                raise DeclarationError(
                    f"Cannot add constraint '{self.name}'",
                    expected="a joint that does not exist yet",
                    found=f"joint '{other.name}' of the same kind in the same place",
                    remedy="Remove one of them",
                )

    def start_problem(self, context: Any) -> str | None:
        """Say that M is turned in F by more than a right angle from all that the joint allows.

        Equations between directions hold there, too: the axis is opposite, or a weld turned over.
        """
        assert self._tree is not None
        placements = self._tree.placements(context)
        X_WF, X_WM = (
            compose_transforms(placements[_number(each.body)][:2], each.X_BF)
            for each in (self.frame_a, self.frame_c)
        )
        X_FM = relative_pose(X_WF, X_WM)
        allowed = self.joint.calc_pose(self.joint.nearest_positions(X_FM))
        cosine = 0.5 * float(np.sum(allowed.R * X_FM.R) - 1.0)  # of the angle between them
        if cosine >= 0.0:
            return None
        turn = f"{np.rad2deg(np.arccos(max(cosine, -1.0))):.0f}°"
        F, M = self.frame_a.name, self.frame_c.name
        return f"'{self.name}' the wrong way round: '{M}' is turned by {turn} too far in '{F}'"

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the equations of the kind of joint, all of them as lengths."""
        demands = [each.demand(X_FM, V_FM) for each in self.equations]
        return [
            demand if each.is_length else demand.times(self._length)
            for each, demand in zip(self.equations, demands, strict=True)
        ]


class PointOnPlane(FrameConstraint):
    """A point Q of body B that stays in a plane of frame A: n · p_AQ = 0.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_a : Frame or Body
        The frame A with the plane through its origin.
    body_b : Body or Frame
        The body B, or a frame on it in which Q is given instead.
    p_BQ : array_like, shape (3,)
        Position of Q from the origin of B, expressed in B, in m.
    normal : array_like, shape (3,)
        Direction n at right angles to the plane, of any length, expressed in A.

    See Also
    --------
    PointOnLine : A point on a line.
    DistanceConstraint : A massless rod.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    >>> _ = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, bob))
    >>> floor = fx.constraints.PointOnPlane(
    ...     "floor", builder.world, bob, (0, 0, 0), normal=(0, 0, 1)
    ... )
    >>> builder.add_constraint(floor).num_equations
    1
    """

    num_equations = 1

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        body_b: FrameLike,
        p_BQ: npt.ArrayLike,
        normal: npt.ArrayLike,
    ) -> None:
        super().__init__(name, frame_a, _point(name, "p_BQ", body_b, p_BQ))
        self.normal = unit_axis(normal, f"Cannot make constraint '{name}'")

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the distance from the plane."""
        return [Along(self.normal).demand(X_FM, V_FM)]


class PointOnLine(FrameConstraint):
    """A point Q of body B that stays on a line through the origin of frame A.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_a : Frame or Body
        The frame A with the line through its origin.
    body_b : Body or Frame
        The body B, or a frame on it in which Q is given instead.
    p_BQ : array_like, shape (3,)
        Position of Q from the origin of B, expressed in B, in m.
    axis : array_like, shape (3,)
        Direction of the line, of any length, expressed in A.

    See Also
    --------
    PointOnPlane : A point in a plane.
    PrismaticJoint : A body that slides along a line.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    >>> _ = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, bob))
    >>> wire = fx.constraints.PointOnLine("wire", builder.world, bob, (0, 0, 0), axis=(1, 0, 0))
    >>> builder.add_constraint(wire).num_equations
    2
    """

    num_equations = 2

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        body_b: FrameLike,
        p_BQ: npt.ArrayLike,
        axis: npt.ArrayLike,
    ) -> None:
        super().__init__(name, frame_a, _point(name, "p_BQ", body_b, p_BQ))
        self.axis = unit_axis(axis, f"Cannot make constraint '{name}'")

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the distances from the line along two directions."""
        return [Along(e).demand(X_FM, V_FM) for e in two_normals(self.axis)]


class DistanceConstraint(FrameConstraint):
    """A massless rod: a constant distance L between points P and Q of two bodies.

    φ = (p · p - L²)/(2 L) with p = p_PQ, which is the difference of the lengths where it is small.

    Parameters
    ----------
    name : str
        Name within the plant.
    body_a : Body or Frame
        The body A, or a frame on it in which P is given instead.
    p_AP : array_like, shape (3,)
        Position of P from the origin of A, expressed in A, in m.
    body_b : Body or Frame
        The body B, or a frame on it in which Q is given instead.
    p_BQ : array_like, shape (3,)
        Position of Q from the origin of B, expressed in B, in m.
    distance : float
        The distance L > 0 in m, the parameter ``<name>_distance`` of the tree.

    See Also
    --------
    PointOnPlane : A point in a plane.
    LoopJoint : A joint that closes a loop.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("bench")
    >>> bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    >>> _ = builder.add_joint(fx.QuaternionFloatingJoint("free", builder.world, bob))
    >>> rod = fx.constraints.DistanceConstraint(
    ...     "rod", builder.world, (0, 0, 1), bob, (0, 0, 0), distance=1.0
    ... )
    >>> builder.add_constraint(rod).num_equations
    1
    """

    num_equations = 1

    def __init__(
        self,
        name: str,
        body_a: FrameLike,
        p_AP: npt.ArrayLike,
        body_b: FrameLike,
        p_BQ: npt.ArrayLike,
        distance: float,
    ) -> None:
        super().__init__(
            name, _point(name, "p_AP", body_a, p_AP), _point(name, "p_BQ", body_b, p_BQ)
        )
        self._set_default("distance", distance, lower=0.0, exclusive=True, unit="m")

    def demands(self, context: Any, X_FM: RigidTransform, V_FM: Array) -> Sequence[Demand]:
        """Return the error of the distance."""
        L, p, v = self._parameters["distance"](context), X_FM.p, V_FM[3:]
        row = np.concatenate([np.zeros(3), p / L])
        return [Demand((dot(p, p) - L * L) / (2.0 * L), row, dot(v, v) / L)]


def _point(constraint: str, option: str, body: FrameLike, position: npt.ArrayLike) -> Frame:
    """Return the frame at a point of a body, parallel to the body or frame it is given in."""
    attempt = f"Cannot make constraint '{constraint}'"
    p = as_number(position, (3,), f"{attempt} with this {option}")
    return Frame(option[-1], as_frame(body, attempt), p)


def _is_one(joint: Joint, other: Joint) -> bool:
    """Return whether two joints are of one kind, with the same frames and numbers."""
    ends = zip(
        (joint.frame_on_parent, joint.frame_on_child),
        (other.frame_on_parent, other.frame_on_child),
        strict=True,
    )
    return (
        type(joint) is type(other)
        and all(
            a.body is b.body
            and np.array_equal(a.X_BF.R, b.X_BF.R)
            and np.array_equal(a.X_BF.p, b.X_BF.p)
            for a, b in ends
        )
        and all(
            np.array_equal(x, y)
            for one, two in zip(joint.closure(), other.closure(), strict=True)
            for x, y in zip(vars(one).values(), vars(two).values(), strict=True)
        )
    )


def _lever(frame: Frame) -> float:
    """Return the distance of a frame from the center of mass of its body in m."""
    inertia = frame.body.inertia
    return 0.0 if inertia is None else float(np.linalg.norm(frame.X_BF.p - inertia.com))


def _owners(topology: Topology) -> dict[int, int]:
    """Return the body nearest to the world that each body is welded to, by numbers."""
    owners = {0: 0}
    for each in topology.mobilizers:
        owners[each.outboard] = owners[each.inboard] if each.is_weld else each.outboard
    return owners


def _number(body: Body) -> int:
    """Return the number of a body in its plant."""
    assert body.number is not None  # the plant builder numbers bodies before
    return body.number
