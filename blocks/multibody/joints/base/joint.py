"""The base class of all joints: what a joint is, and the hooks in which the kinds differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, rotate_spatial
from flexure.blocks.multibody.bodies.bodies import Body, FrameLike, as_frame
from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces, require_forces
from flexure.blocks.multibody.bodies.plant_base import Part, PlantBase, TreeBase
from flexure.blocks.multibody.joints.base.checks import (
    as_pose,
    checked_index,
    pair_from_pose,
    pair_of_limits,
    pose_from_pair,
    spread,
)
from flexure.blocks.multibody.joints.base.closure import ClosureEquation
from flexure.blocks.multibody.joints.base.joint_quantities import JointValue
from flexure.diagrams.checks.errors import ContextError, DeclarationError, ValueRefusedError
from flexure.diagrams.systems.copying import refuse_copy
from flexure.diagrams.values.arrays import (
    Array,
    Distribution,
    FloatArray,
    as_finite,
    check_bounds,
    check_name,
    freeze,
)

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.values.parameters import NumericParameter

#: Lower and upper limits, each a number for all coordinates or one for each.
Limits = tuple[npt.ArrayLike, npt.ArrayLike]


class Joint(Part, ABC):
    """A joint between a frame F on a parent body and a frame M on a child body.

    The pose of M in F is a function of the positions q, and the spatial velocity of M in F is
    V_FM = H(q) v, linear in the velocities v. Either body can be the one nearer to the world.

    Parameters
    ----------
    name : str
        Name within the plant.
    frame_on_parent, frame_on_child : Frame or Body
        The frames F and M; a body means its own frame.
    damping : float or array_like, shape (num_velocities,)
        Viscous damping d >= 0: the generalized force -d v, component by component.
    position_limits, velocity_limits, acceleration_limits : tuple of array_like, optional
        Lower and upper limits, infinite when omitted. Only a `JointStop` lets positions feel them.

    Attributes
    ----------
    TYPE_NAME : str
        Name of the kind of joint.
    num_positions, num_velocities : int
        Numbers of positions q and velocities v.
    can_rotate, can_translate : bool
        Whether M can turn in F, and whether Mo can move in F.
    index : int or None
        Position among the joints of the plant, in the order in which they were added.
    positions, velocities : JointValue of array
        The positions q and velocities v in a context.
    pose : JointValue of RigidTransform
        The pose X_FM in a context. Setting it sets the positions whose pose matches best, and
        ignores what the joint does not allow.
    pose_pair : JointValue of tuple
        The same as a quaternion (w, x, y, z), w >= 0, and a position.
    spatial_velocity : JointValue of array, shape (6,)
        The spatial velocity V_FM in a context, expressed in F. Setting it sets the velocities
        that match best, and ignores what the joint does not allow.

    Raises
    ------
    DeclarationError
        When a frame is missing, or both are on one body.
    ValueRefusedError
        When damping is negative, or limits are not in order.

    See Also
    --------
    RevoluteJoint : A hinge.
    PlantBuilder.add_joint : Add a joint to a plant.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.PlanarJoint.can_rotate, fx.PlanarJoint.can_translate
    (True, True)
    """

    TYPE_NAME: ClassVar[str]
    POSITION_SUFFIXES: ClassVar[tuple[str, ...]]
    VELOCITY_SUFFIXES: ClassVar[tuple[str, ...]]
    #: Names of the outputs of a plant that show positions and velocities.
    PORT_NAMES: ClassVar[tuple[str, str]] = ("q", "v")
    can_rotate: ClassVar[bool]
    can_translate: ClassVar[bool]

    def __init__(
        self,
        name: str,
        frame_on_parent: FrameLike,
        frame_on_child: FrameLike,
        *,
        damping: npt.ArrayLike = 0.0,
        position_limits: Limits | None = None,
        velocity_limits: Limits | None = None,
        acceleration_limits: Limits | None = None,
    ) -> None:
        attempt = f"Cannot make joint '{name}'"
        self.name = check_name(name, "a joint")
        self.frame_on_parent = as_frame(frame_on_parent, attempt)
        self.frame_on_child = as_frame(frame_on_child, attempt)
        if self.parent_body is self.child_body:
            raise DeclarationError(
                attempt,
                expected="frames on two bodies",
                found=f"two frames on '{self.parent_body.name}'",
            )
        self.index: int | None = None
        self._tree: TreeBase | None = None
        self._random_positions: Distribution | None = None
        self._default_positions: FloatArray = freeze(self.zero_positions())
        self._default_damping = self._checked_damping(damping)
        self.set_position_limits(*pair_of_limits(position_limits, attempt))
        self.set_velocity_limits(*pair_of_limits(velocity_limits, attempt))
        self.set_acceleration_limits(*pair_of_limits(acceleration_limits, attempt))
        self.positions = JointValue(self, "positions", self._read_q, self._write_q, port=0)
        self.velocities = JointValue(self, "velocities", self._read_v, self._write_v, port=1)
        self.pose = JointValue(self, "pose", self._read_pose, self._write_pose)
        self.pose_pair = JointValue(self, "pose_pair", self._read_pair, self._write_pair)
        self.spatial_velocity = JointValue(self, "spatial_velocity", self._read_V, self._write_V)

    # Kinematics, to be implemented by each kind ----------------------------------------------

    @abstractmethod
    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the pose X_FM for the positions q."""

    @abstractmethod
    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H of shape (6, num_velocities), with V_FM = H v expressed in F."""

    @abstractmethod
    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v of shape (6,), the rate of H seen in F, expressed in F."""

    def calc_motion_factors(self, q: Array) -> tuple[Array, Array]:
        """Return S of shape (6, nv) and an orthogonal Q with R_FMᵀ H = S Qᵀ.

        V_FM expressed in M is S u with u = Qᵀ v, the velocities along axes of M. A kind of joint
        for which S is constant gives it as an array of numbers, which saves work.
        """
        R_MF = np.transpose(self.calc_pose(q).R)
        return rotate_spatial(R_MF, self.calc_motion_matrix(q)), np.eye(self.num_velocities)

    def calc_position_rates(self, q: Array, v: Array) -> Array:
        """Return q̇ = N(q) v; here N is the identity."""
        return v

    def calc_velocities(self, q: Array, q_rate: Array) -> Array:
        """Return the velocities v that belong to q̇; here they are equal."""
        return q_rate

    @abstractmethod
    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return the positions whose pose is closest to X_FM; other components are ignored."""

    @abstractmethod
    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return the velocities that match the spatial velocity V_FM, expressed in F, best."""

    def closure(self) -> list[ClosureEquation]:
        """Return the equations between F and M by which the joint closes a loop."""
        raise DeclarationError(
            f"Cannot close a loop by joint '{self.name}'",
            expected="a kind of joint that holds bodies together",
            found=f"a {self.type_name} joint",
            remedy="Define its method closure(), or take another kind of joint",
        )

    def zero_positions(self) -> FloatArray:
        """Return the positions at which the joint is in its zero configuration."""
        return np.zeros(self.num_positions)

    # What the joint is -----------------------------------------------------------------------

    @property
    def num_positions(self) -> int:
        """Number of positions q."""
        return len(self.POSITION_SUFFIXES)

    @property
    def num_velocities(self) -> int:
        """Number of velocities v."""
        return len(self.VELOCITY_SUFFIXES)

    @property
    def type_name(self) -> str:
        """Name of the kind of joint."""
        return self.TYPE_NAME

    @property
    def axis(self) -> FloatArray | None:
        """Unit vector along the axis, the same in F and in M, which pictures show; None if none."""
        return None

    @property
    def velocities_are_rates(self) -> bool:
        """Whether the velocities v are the rates q̇ of the positions, one by one."""
        return type(self).calc_position_rates is Joint.calc_position_rates

    @property
    def parent_body(self) -> Body:
        """The body that carries F."""
        return self.frame_on_parent.body

    @property
    def child_body(self) -> Body:
        """The body that carries M."""
        return self.frame_on_child.body

    @property
    def model_instance(self) -> str:
        """Name of the group of bodies that the joint belongs to, that of its child."""
        return self.child_body.model_instance

    def position_suffix(self, index: int) -> str:
        """Return the name of a position, such as ``"qx"``."""
        return self._suffix(self.POSITION_SUFFIXES, index, "position")

    def velocity_suffix(self, index: int) -> str:
        """Return the name of a velocity, such as ``"wx"``."""
        return self._suffix(self.VELOCITY_SUFFIXES, index, "velocity")

    def _suffix(self, suffixes: tuple[str, ...], index: int, what: str) -> str:
        attempt = f"Cannot name {what} {index!r} of joint '{self.name}'"
        return suffixes[checked_index(index, len(suffixes), attempt)]

    # Defaults, limits and distributions, before the plant is built ---------------------------

    @property
    def default_positions(self) -> FloatArray:
        """Positions in new contexts; they can be set until the plant is built."""
        return self._default_positions

    @default_positions.setter
    def default_positions(self, q: npt.ArrayLike) -> None:
        attempt = f"Cannot set the default positions of joint '{self.name}'"
        self.refuse_when_built(attempt)
        self._default_positions = self.checked_positions(q, attempt)

    def _replace_default(self, part: slice, values: npt.ArrayLike) -> None:
        """Set some of the default positions."""
        attempt = f"Cannot set the default positions of joint '{self.name}'"
        q: FloatArray = self._default_positions.copy()
        q[part] = as_finite(values, q[part].shape, attempt)
        self.default_positions = q

    @property
    def default_pose(self) -> RigidTransform:
        """The pose X_FM at the default positions; setting it sets the positions that match best."""
        return self.calc_pose(self._default_positions)

    @default_pose.setter
    def default_pose(self, X_FM: tuple[npt.ArrayLike, npt.ArrayLike]) -> None:
        attempt = f"Cannot set the default pose of joint '{self.name}'"
        self.default_positions = self.nearest_positions(as_pose(X_FM, attempt))

    @property
    def default_pose_pair(self) -> tuple[FloatArray, FloatArray]:
        """The default pose as a quaternion (w, x, y, z), w >= 0, and a position."""
        return pair_from_pose(self.default_pose)

    @default_pose_pair.setter
    def default_pose_pair(self, pair: tuple[npt.ArrayLike, npt.ArrayLike]) -> None:
        attempt = f"Cannot set the default pose of joint '{self.name}'"
        self.default_pose = pose_from_pair(pair, attempt)

    @property
    def default_damping_vector(self) -> FloatArray:
        """Viscous damping in new contexts, one value for each velocity."""
        return self._default_damping

    @default_damping_vector.setter
    def default_damping_vector(self, damping: npt.ArrayLike) -> None:
        self.refuse_when_built(f"Cannot set the default damping of joint '{self.name}'")
        self._default_damping = self._checked_damping(damping)

    @property
    def position_limits(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the positions."""
        return self.position_lower_limits, self.position_upper_limits

    def set_position_limits(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        """Set the limits of the positions, numbers or vectors; lower <= upper."""
        limits = self._checked_limits("position", lower, upper, self.num_positions)
        self.position_lower_limits, self.position_upper_limits = limits

    def set_velocity_limits(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        """Set the limits of the velocities, numbers or vectors; lower <= upper."""
        limits = self._checked_limits("velocity", lower, upper, self.num_velocities)
        self.velocity_lower_limits, self.velocity_upper_limits = limits

    def set_acceleration_limits(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        """Set the limits of the accelerations, numbers or vectors; lower <= upper."""
        limits = self._checked_limits("acceleration", lower, upper, self.num_velocities)
        self.acceleration_lower_limits, self.acceleration_upper_limits = limits

    def set_random_positions_distribution(self, sampler: Distribution) -> None:
        """Let random contexts draw the positions from ``sampler(rng)``; velocities stay zero."""
        self._random_positions = self._checked_sampler(sampler)

    @property
    def random_positions_distribution(self) -> Distribution | None:
        """The function that draws positions for random contexts, or None."""
        return self._random_positions

    def _set_random_part(self, part: slice, sampler: Distribution) -> None:
        """Let random contexts draw some of the positions; the others are drawn as before."""
        draw = partial(self._draw, self._random_positions, part, self._checked_sampler(sampler))
        self.set_random_positions_distribution(draw)

    def _draw(
        self, others: Distribution | None, part: slice, sampler: Distribution, rng: Any
    ) -> FloatArray:
        attempt = f"Cannot draw the positions of joint '{self.name}'"
        drawn = self._default_positions if others is None else others(rng)
        q = self.checked_positions(drawn, attempt).copy()
        q[part] = as_finite(sampler(rng), q[part].shape, attempt)
        return q

    # In a plant ------------------------------------------------------------------------------

    @property
    def tree(self) -> TreeBase:
        """The block that carries the state of the joint, in a plant that is built."""
        if self._tree is None:
            raise DeclarationError(
                f"Cannot use joint '{self.name}' with a context",
                expected="a joint of a plant that is built",
                found="one whose plant is not built yet",
                remedy="Add the joint with PlantBuilder.add_joint and call build() first",
            )
        return self._tree

    def bind(self, tree: TreeBase) -> None:
        """Attach the joint to the tree of a built plant; called by the plant."""
        self._tree = tree

    @property
    def parent_plant(self) -> PlantBase:
        """The plant that contains the joint."""
        return self.tree.parent_plant

    @property
    def position_start(self) -> int:
        """Index of the first position among those of the plant."""
        return int(self.tree.positions_of(self).start)

    @property
    def velocity_start(self) -> int:
        """Index of the first velocity among those of the plant."""
        return int(self.tree.velocities_of(self).start)

    def reaction(self, context: Context) -> FloatArray:
        """Return the reaction on the child body: moment about Mo and force, expressed in M.

        It balances all forces on the bodies beyond the joint with their accelerations. Along the
        velocities of the joint it is what acts there: damping, motors and force elements, less
        what accelerates rotors; zero on a free joint without any. The parent body gets the opposite
        force at the same place. The plant has the output ``<joint>.reaction`` of the same numbers.

        Returns
        -------
        array, shape (6,)
            Moment in N m, then force in N, about the origin of M and expressed in M.
        """
        F: FloatArray = self.tree.reaction_of(self).eval(context)
        return F

    @property
    def damping(self) -> NumericParameter:
        """Viscous damping in contexts, a parameter of the tree with one value per velocity."""
        return self.tree.damping_of(self)

    @property
    def locked(self) -> NumericParameter:
        """Whether the joint is locked in contexts, a parameter that is 1 or 0; see `lock`."""
        return self.tree.find_parameter(f"{self.name}_locked")

    def lock(self, context: Context) -> None:
        """Stop the joint: its velocities become zero and stay so until it is unlocked.

        It is stopped just so by the parameter ``locked`` alone, wherever that is set to 1. In
        addition this sets the velocities in the state to zero.

        Other joints keep their velocities. In a loop that moves these do not fit any more: call
        `Plant.assemble` next, which makes them fit and keeps the joint where it is.
        """
        self._set_lock(context, 1.0)

    def unlock(self, context: Context) -> None:
        """Release the joint; it starts from rest if it was locked, in whatever way."""
        if self.is_locked(context):
            self._set_lock(context, 0.0)

    def _set_lock(self, context: Context, flag: float) -> None:
        locked = self.tree.lock_of(self)
        if locked is not None:
            self._replace_velocities(context, np.zeros(self.num_velocities))
            locked.set(context, flag)

    def is_locked(self, context: Context) -> bool:
        """Return whether the joint is locked."""
        locked = self.tree.lock_of(self)
        return locked is not None and bool(locked.get(context))

    def get_one_position(self, context: Context) -> float:
        """Return the position of a joint that has exactly one."""
        return float(self._one("position", self.num_positions, self._read_q, context))

    def get_one_velocity(self, context: Context) -> float:
        """Return the velocity of a joint that has exactly one."""
        return float(self._one("velocity", self.num_velocities, self._read_v, context))

    def _one(
        self, what: str, count: int, read: Callable[[Context], FloatArray], context: Context
    ) -> Any:
        if count != 1:
            raise ContextError(
                f"Cannot get the one {what} of joint '{self.name}'",
                expected=f"a joint with one {what}",
                found=f"a {self.TYPE_NAME} joint, which has {count}",
            )
        return read(context)[0]

    def add_in_one_force(self, index: int, force: float, forces: MultibodyForces) -> None:
        """Add a generalized force along one velocity of the joint.

        Parameters
        ----------
        index : int
            Which velocity of the joint.
        force : float
            In N m for a velocity in rad/s, in N for one in m/s. On a ball joint it is the moment
            about one axis of F.
        forces : MultibodyForces
            What it is added to.
        """
        attempt = f"Cannot add a force along joint '{self.name}'"
        place = checked_index(index, self.num_velocities, attempt)
        addend = as_finite(force, (), attempt)
        self._along(forces, attempt)[place] += addend

    def add_in_damping(self, context: Context, forces: MultibodyForces) -> None:
        """Add -d v, the generalized force of viscous damping."""
        part = self._along(forces, f"Cannot add the damping of joint '{self.name}'")
        if self.num_velocities:
            part -= self.damping.get(context) * self._read_v(context)

    def _along(self, forces: MultibodyForces, attempt: str) -> FloatArray:
        """Return a view of the generalized forces along this joint."""
        require_forces(forces, self.parent_plant, attempt)
        return forces.generalized_forces[self.tree.velocities_of(self)]

    # The quantities behind the handles -------------------------------------------------------

    def _read_q(self, context: Context) -> FloatArray:
        q: FloatArray = self.tree.positions.eval(context)[self.tree.positions_of(self)]
        return q

    def _read_v(self, context: Context) -> FloatArray:
        v: FloatArray = self.tree.velocities.eval(context)[self.tree.velocities_of(self)]
        return v

    def _write_q(self, context: Context, q: npt.ArrayLike) -> None:
        number = self.checked_positions(q, f"Cannot set the positions of joint '{self.name}'")
        self.tree.write_coordinates(context, self.tree.positions_of(self), number)

    def _write_v(self, context: Context, v: npt.ArrayLike) -> None:
        attempt = f"Cannot set the velocities of joint '{self.name}'"
        number = as_finite(v, (self.num_velocities,), attempt)
        if self.is_locked(context) and np.any(number != 0.0):
            raise ContextError(
                attempt,
                expected="zeros while the joint is locked",
                found=f"{number.tolist()}",
                remedy="Call unlock(context) first",
            )
        self._replace_velocities(context, number)

    def _replace_velocities(self, context: Context, v: FloatArray) -> None:
        self.tree.write_coordinates(context, self.tree.velocities_in_state(self), v)

    def _read_pose(self, context: Context) -> RigidTransform:
        return self.calc_pose(self._read_q(context))

    def _write_pose(self, context: Context, X_FM: Any) -> None:
        pose = as_pose(X_FM, f"Cannot set the pose of joint '{self.name}'")
        self._write_q(context, self.nearest_positions(pose))

    def _read_pair(self, context: Context) -> tuple[FloatArray, FloatArray]:
        return pair_from_pose(self._read_pose(context))

    def _write_pair(self, context: Context, pair: Any) -> None:
        attempt = f"Cannot set the pose of joint '{self.name}'"
        self._write_pose(context, pose_from_pair(pair, attempt))

    def _read_V(self, context: Context) -> FloatArray:
        H = self.calc_motion_matrix(self._read_q(context))
        V: FloatArray = np.matmul(H, self._read_v(context))
        return V

    def _write_V(self, context: Context, V_FM: Any) -> None:
        attempt = f"Cannot set the spatial velocity of joint '{self.name}'"
        number = as_finite(V_FM, (6,), attempt)
        v = self.nearest_velocities(self._read_q(context), number)
        self._write_v(context, v)

    # Checks ----------------------------------------------------------------------------------

    def checked_positions(self, q: npt.ArrayLike, attempt: str) -> FloatArray:
        """Return a frozen copy of positions when they are acceptable, else raise."""
        number: FloatArray = as_finite(q, (self.num_positions,), attempt)
        problem = self.positions_problem(number)
        if problem is not None:
            raise ValueRefusedError(attempt, found=problem)
        return number

    def positions_problem(self, q: FloatArray) -> str | None:
        """Return the problem with finite positions, in words; here None."""
        return None

    def normalized_positions(self, q: FloatArray) -> FloatArray:
        """Return the normal form of positions that mean the same pose; here there is only one."""
        return q

    def refuse_when_built(self, attempt: str) -> None:
        """Refuse changes of default values once the plant is built."""
        if self._tree is not None:
            raise DeclarationError(
                attempt,
                expected="a plant that is not built yet",
                found="a built plant, which cannot change",
                remedy="Set the values of a context instead",
            )

    def _checked_sampler(self, sampler: Distribution) -> Distribution:
        attempt = f"Cannot set the distribution of joint '{self.name}'"
        self.refuse_when_built(attempt)
        if callable(sampler):
            return sampler
        raise DeclarationError(
            attempt, expected="a function of a NumPy generator", found=repr(sampler)
        )

    def _checked_damping(self, damping: npt.ArrayLike) -> FloatArray:
        attempt = f"Cannot set the damping of joint '{self.name}'"
        number = spread(damping, self.num_velocities, attempt)
        check_bounds(number, attempt, lower=0.0)
        return number

    def _checked_limits(
        self, what: str, lower: npt.ArrayLike, upper: npt.ArrayLike, size: int
    ) -> tuple[FloatArray, FloatArray]:
        attempt = f"Cannot set the {what} limits of joint '{self.name}'"
        self.refuse_when_built(attempt)
        limits = spread(lower, size, attempt), spread(upper, size, attempt)
        if not np.all(limits[0] <= limits[1]):
            raise ValueRefusedError(
                attempt,
                expected="lower limits that are at most the upper ones",
                found=f"{limits[0].tolist()} and {limits[1].tolist()}",
            )
        return limits

    def __copy__(self) -> NoReturn:
        refuse_copy(f"joint '{self.name}'", "all of its plant")
