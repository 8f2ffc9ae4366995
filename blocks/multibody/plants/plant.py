"""The plant: a diagram of a multibody tree and its force elements, with its quantities by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import rotate_spatial
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces, require_forces
from flexure.blocks.multibody.bodies.plant_base import PlantBase
from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree
from flexure.blocks.multibody.constraints import Constraint
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.loop_closure.closing import Closure, Freedom, assemble
from flexure.blocks.multibody.loop_closure.loop_assemblies import find_assemblies
from flexure.blocks.multibody.plants.held_coordinates import Held, held_velocities
from flexure.blocks.multibody.trees.coupled_articulation import added_forces, coupled_mass_matrix
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces, inverse_dynamics
from flexure.blocks.multibody.trees.kinematics import (
    calc_accelerations,
    jacobian_bias,
    spatial_jacobian,
)
from flexure.diagrams.checks.arguments import generator, is_one_of, is_whole, require
from flexure.diagrams.checks.errors import ContextError, UnknownNameError, suggestion
from flexure.diagrams.values.arrays import Array, FloatArray, as_finite, as_number, bounded
from flexure.diagrams.values.handles import Handle, require_context
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.tied_parameters import TiedParameter

if TYPE_CHECKING:
    from flexure.blocks.multibody.trees.tree_inputs import Actuator
    from flexure.diagrams.contexts.context import Context


class Plant(PlantBase):
    """A mechanism as a diagram: a `MultibodyTree` and a block for each force element.

    Made by `PlantBuilder.build`. It is a diagram like any other: it can be drawn, nested and taken
    apart. Its inputs are those of its actuators and external forces and ``generalized_force``. Its
    outputs are, for each joint, two of names such as ``axis.angle`` and ``axis.rate`` (for joints
    without names of their own ``<joint>.q`` and ``<joint>.v``), and for each joint and weld
    ``<joint>.reaction``, what it exerts on its child body; those of force elements under the
    names that they have inside, such as ``hinge.stored_energy``, for each constraint
    ``<constraint>.error``, ``<constraint>.multipliers`` and, between frames,
    ``<constraint>.reaction``, for each body ``<body>.pose``,
    ``<body>.position``, ``<body>.spatial_velocity`` and ``<body>.spatial_acceleration``, and for
    the whole plant ``positions``, ``velocities``, ``accelerations``, ``kinetic_energy``,
    ``potential_energy``, ``mechanical_energy``, ``conservative_power``, ``non_conservative_power``,
    ``input_power``, ``momentum``, ``center_of_mass`` and ``center_of_mass_velocity``. Parameters of
    bodies, joints and motors can be named in two ways, ``panel.mass`` or ``tree.panel_mass``.

    Attributes
    ----------
    tree : MultibodyTree
        The block that carries the motion.
    frames : tuple of Frame
        The frames that were added.
    actuators : tuple of Actuator
        The motors.

    See Also
    --------
    PlantBuilder : Build a plant.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("door", gravity=(0.0, 0.0, 0.0))
    >>> panel = builder.add_body("panel", fx.SpatialInertia.point_mass(2.0), com=(0.5, 0.0, 0.0))
    >>> axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, panel, axis=(0, 0, 1)))
    >>> spring = fx.JointSpring("spring", axis, stiffness=50.0, damping=0.5)
    >>> _ = builder.add_force_element(spring)
    >>> door = builder.build()
    >>> context = door.create_default_context()
    >>> axis.angle.set(context, 0.1)
    >>> door.calc_mass_matrix(context)
    array([[0.5]])
    """

    tree: MultibodyTree
    frames: tuple[Frame, ...]
    actuators: tuple[Actuator, ...]

    def adopt(
        self,
        tree: MultibodyTree,
        frames: tuple[Frame, ...],
        actuators: tuple[Actuator, ...],
        tied: tuple[TiedParameter, ...],
    ) -> None:
        """Store the parts of a builder, and attach bodies and joints to the tree."""
        self.tree, self.frames, self.actuators = tree, frames, actuators
        self._tied = {each.name: each for each in tied}
        for each in tied:
            each.system = self
        for body in tree.topology.bodies:
            body.tree = tree
        for joint in tree.joints:
            joint.bind(tree)
        self.complete()

    # What is in it ---------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[Body, ...]:
        """All bodies, the world first."""
        return tuple(self.tree.topology.bodies)

    @property
    def world(self) -> Body:
        """The body that does not move."""
        return self.bodies[0]

    @property
    def joints(self) -> tuple[Joint, ...]:
        """All joints in the order of their coordinates."""
        return tuple(self.tree.joints)

    @property
    def force_elements(self) -> tuple[ForceElement, ...]:
        """The force elements in the order in which they were added."""
        elements = [child for child in self.children if isinstance(child, ForceElement)]
        return tuple(element for element in elements if element.index is not None)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints in the order in which they were added, loop joints among them."""
        return tuple(self.tree.constraints)

    @property
    def gravity(self) -> NumericParameter:
        """Acceleration of free fall in contexts, in the world, in m/s²."""
        return self.tree.gravity

    @property
    def spin(self) -> NumericParameter | None:
        """Angular velocity of the world about its origin in contexts, in rad/s, if it has any."""
        return self.tree.spin

    @property
    def num_positions(self) -> int:
        """Number of positions q."""
        return self.tree.topology.num_positions

    @property
    def num_velocities(self) -> int:
        """Number of velocities v."""
        return self.tree.topology.num_velocities

    def body(self, name: str) -> Body:
        """Return a body by its name."""
        return by_name(self.bodies, name, "body", self.label)

    def joint(self, name: str) -> Joint:
        """Return a joint by its name."""
        return by_name(self.joints, name, "joint", self.label)

    def frame(self, name: str) -> Frame:
        """Return a frame that was added, or that of a body, by its name."""
        frames = (*self.frames, *(body.frame for body in self.bodies))
        return by_name(frames, name, "frame", self.label)

    def force_element(self, name: str) -> ForceElement:
        """Return a force element by its name."""
        return by_name(self.force_elements, name, "force element", self.label)

    def constraint(self, name: str) -> Constraint:
        """Return a constraint by its name, such as that of a loop joint."""
        return by_name(self.constraints, name, "constraint", self.label)

    def actuator(self, name: str) -> Actuator:
        """Return an actuator by its name."""
        return by_name(self.actuators, name, "actuator", self.label)

    def find(self, path: str, takes: Callable[[Any], bool] | None = None) -> Any:
        """Return the parameter, state or port at ``path``, as in ``"panel.mass"``, too."""
        try:
            return super().find(path, takes)
        except UnknownNameError:
            owner = path.partition(".")[0]
            own: dict[str, Handle] = {**self._tied}
            own |= {f"{owner}.{what}": handle for what, handle in self._parameters_of(owner)}
            own = {name: each for name, each in own.items() if name.startswith(f"{owner}.")}
            if path in own:
                return own[path]
            if not own and any(child.name == owner for child in self.children):
                raise
        raise UnknownNameError(
            f"Cannot find '{path}' in '{self.label}'",
            remedy=suggestion(path, self._paths(owner, takes)),
        )

    def _paths(self, owner: str, takes: Callable[[Any], bool] | None) -> list[str]:
        """Return the paths of a body or joint, and all paths when there is none of the name."""
        parts: tuple[Named, ...] = (*self.bodies[1:], *self.joints, *self.actuators)
        owners = dict.fromkeys(part.name for part in parts)
        paths = [f"{each}.{what}" for each in owners for what, _ in self._parameters_of(each)]
        for element in self.force_elements:
            paths += [f"{element.name}.{each.name}" for each in element.numeric_parameters]
        paths += self._tied
        ports = (*self.output_ports, *self.input_ports)
        paths += [port.name for port in ports if not takes or takes(port)]
        return [path for path in paths if path.startswith(f"{owner}.")] or paths

    def _parameters_of(self, owner: str) -> Iterator[tuple[str, NumericParameter]]:
        """Yield the parameters of the body, joint and motor of a name, by their short names."""
        return self.tree.constants.named(owner)

    def short_paths(self) -> dict[Handle, str]:
        """Return the paths of the parameters of bodies, joints and motors, as ``"panel.mass"``."""
        blocks = {child.name for child in self.children}
        found = {
            handle: f"{owner}.{what}"
            for owner, what, handle in self.tree.constants.items()
            if owner not in blocks
        }
        return {handle: path for handle, path in found.items() if self.named_port(path) is None}

    # State -----------------------------------------------------------------------------------

    def get_positions(self, context: Context) -> FloatArray:
        """Return the positions q of all joints."""
        q: FloatArray = self.tree.positions.eval(context)
        return q

    def get_velocities(self, context: Context) -> FloatArray:
        """Return the velocities v of all joints; those of locked joints are zero."""
        v: FloatArray = self.tree.velocities.eval(context)
        return v

    def set_positions(self, context: Context, q: npt.ArrayLike) -> None:
        """Set the positions q of all joints."""
        attempt = f"Cannot set the positions of '{self.label}'"
        number = as_finite(q, (self.num_positions,), attempt)
        self.tree.write_coordinates(context, slice(self.num_positions), number)

    def set_velocities(self, context: Context, v: npt.ArrayLike) -> None:
        """Set the velocities v of all joints."""
        attempt = f"Cannot set the velocities of '{self.label}'"
        number = as_finite(v, (self.num_velocities,), attempt)
        for joint in self.joints:
            part = number[self.tree.velocities_of(joint)]
            if joint.is_locked(context) and np.any(part != 0.0):
                raise ContextError(
                    attempt,
                    expected=f"zeros for joint '{joint.name}' while it is locked",
                    found=f"{part.tolist()}",
                    remedy=f"Call unlock(context) of joint '{joint.name}' first",
                )
        self.tree.write_coordinates(context, slice(self.num_positions, None), number)

    def assemble(
        self, context: Context, fixed: Held | Iterable[Held] = (), *, tolerance: float = 1e-10
    ) -> Closure:
        """Find positions and velocities near the present ones that all constraints allow.

        Positions stay within the ``position_limits`` of the joints that are not held.

        Parameters
        ----------
        context : Context
            A context of the plant, or of a diagram around it. It gets the new positions and
            velocities; when there are none it stays as it is.
        fixed : Joint, handle, str or iterable of them, optional
            Joints that keep their positions and velocities, as locked ones do, by handle or name;
            or single coordinates of them, as for `equilibrium`.
        tolerance : float
            Largest error of a constraint that is left, in m, or in the unit of a general one.

        Returns
        -------
        Closure
            The error that is left, the mobility there, and the number of redundant equations.

        Raises
        ------
        EvaluationError
            When a constraint stays open, which is named, or velocities cannot be made to fit.
        """
        attempt = f"Cannot assemble '{self.label}'"
        limit = _tolerance(tolerance, attempt)
        return assemble(self.tree, context, self._freedom(context, fixed, attempt), limit)

    def find_assemblies(
        self,
        context: Context,
        fixed: Held | Iterable[Held] = (),
        *,
        starts: int = 100,
        seed: int | np.random.Generator = 0,
        tolerance: float = 1e-10,
    ) -> tuple[Context, ...]:
        """Find all configurations of a small mechanism, such as elbow up and elbow down.

        Parameters
        ----------
        context : Context
            A context of the plant, or of a diagram around it; it is not changed.
        fixed : Joint, handle, str or iterable of them, optional
            What keeps its positions, as for `assemble`: so much that nothing is left to choose.
        starts : int
            From how many random positions to look, besides the present ones. Those within reach of
            none are not found, so that more of them make the answer more certain.
        seed : int or numpy.random.Generator
            Of these positions: the same one finds the same.
        tolerance : float
            As for `assemble`.

        Returns
        -------
        tuple of Context
            Copies of the context that are put together, that which is nearest first; none where
            there is no way to do it. Velocities fit.

        Raises
        ------
        EvaluationError
            When something is left to choose, or velocities cannot be made to fit.

        Examples
        --------
        >>> import flexure as fx
        >>> builder = fx.PlantBuilder("elbow", gravity=(0.0, 0.0, 0.0))
        >>> rod = fx.SpatialInertia.thin_rod(1.0, length=1.0, axis="x")
        >>> upper, lower = (builder.add_body(name, rod) for name in ("upper", "lower"))
        >>> elbow = builder.add_frame("elbow", upper, (1.0, 0.0, 0.0))
        >>> ends = (builder.world, upper), (elbow, lower)
        >>> for name, pair in zip(("a", "b"), ends):
        ...     _ = builder.add_joint(fx.RevoluteJoint(name, *pair, axis=(0, 0, 1)))
        >>> hand = builder.add_frame("hand", lower, (1.0, 0.0, 0.0))
        >>> place = builder.add_frame("place", builder.world, (1.0, 1.0, 0.0))
        >>> _ = builder.add_loop_joint(fx.RevoluteJoint("hold", place, hand, axis=(0, 0, 1)))
        >>> arm = builder.build()
        >>> found = arm.find_assemblies(arm.create_default_context())
        >>> sorted(float(arm.joint("b").angle.get(each).round(6)) for each in found)
        [-1.570796, 1.570796]
        """
        attempt = f"Cannot find all configurations of '{self.label}'"
        rng = generator(seed, attempt)
        wanted = "a whole number >= 0"
        require(is_whole(starts), starts, f"{attempt} with this starts", wanted)
        require(starts >= 0, starts, f"{attempt} with this starts", wanted)
        limit = _tolerance(tolerance, attempt)
        freedom = self._freedom(context, fixed, attempt)
        return find_assemblies(self.tree, context, freedom, limit, starts, rng)

    def _freedom(self, context: Context, fixed: Held | Iterable[Held], attempt: str) -> Freedom:
        """Return what may move in a context where some joints or coordinates are held."""
        tree = self.tree
        require_context(context, f"plant '{self.label}'")
        own = context.find(tree, tree.positions)
        held = tree.constants.mobile_velocities(own) == 0.0
        held |= held_velocities(self, tree, fixed, attempt)
        return Freedom(tree, held)

    # Dynamics --------------------------------------------------------------------------------

    def calc_mass_matrix(self, context: Context) -> FloatArray:
        """Return the mass matrix M(q), of shape (nv, nv), reflected inertia of rotors included."""
        tree = self.tree
        placements, _, inertias = tree.kinematics(context)
        couplings = tree.constants.couplings(context)
        M = coupled_mass_matrix(tree.topology, placements, inertias, couplings)
        return np.asarray(M + np.diag(tree.constants.reflected_inertia(context)))

    def calc_inverse_dynamics(
        self, context: Context, vdot: npt.ArrayLike, forces: MultibodyForces | None = None
    ) -> FloatArray:
        """Return the generalized forces τ = M v̇ + C v - Σ Jᵀ F - τ_forces.

        Parameters
        ----------
        context : Context
            Gives q and v.
        vdot : array_like, shape (nv,)
            The accelerations to be reached.
        forces : MultibodyForces, optional
            Forces that act already, such as those of `calc_force_elements_contribution`; none, not
            even gravity, when omitted.

        Returns
        -------
        array, shape (nv,)
        """
        attempt = f"Cannot calculate the inverse dynamics of '{self.label}'"
        number = as_finite(vdot, (self.num_velocities,), attempt)
        tree = self.tree
        placements, motions, inertias = tree.kinematics(context)
        forces = MultibodyForces(self) if forces is None else forces
        require_forces(forces, self, attempt)
        tau = inverse_dynamics(
            tree.topology, placements, motions, inertias, forces.body_forces, number
        )
        A = calc_accelerations(tree.topology, placements, motions, number)
        on_bodies, on_joints = added_forces(
            tree.topology, tree.constants.couplings(context), A, number
        )
        tau = tau + generalized_forces(tree.topology, placements, on_bodies) + on_joints
        rotors = tree.constants.reflected_inertia(context) * number
        return np.asarray(tau + rotors - forces.generalized_forces)

    def calc_bias_term(self, context: Context) -> FloatArray:
        """Return C(q, v) v: the Coriolis, centripetal and gyroscopic generalized forces."""
        return self.calc_inverse_dynamics(context, np.zeros(self.num_velocities))

    def calc_gravity_generalized_forces(self, context: Context) -> FloatArray:
        """Return the generalized forces of gravity τ_g(q), on the side of the applied forces.

        In a world that spins, centrifugal and Coriolis forces are part of them.
        """
        tree = self.tree
        forces = MultibodyForces(self)
        forces.body_forces[:] = tree.gravity_forces(context)
        forces.generalized_forces += tree.coupled_weights(context)[1]
        return self.calc_generalized_forces(context, forces)

    def calc_generalized_forces(self, context: Context, forces: MultibodyForces) -> FloatArray:
        """Return all forces as generalized ones, Σ Jᵀ F + τ."""
        require_forces(forces, self, f"Cannot add up the forces on '{self.label}'")
        placements, _, _ = self.tree.kinematics(context)
        on_bodies = dict(enumerate(forces.body_forces))
        tau = generalized_forces(self.tree.topology, placements, on_bodies)
        return np.asarray(tau + forces.generalized_forces)

    def calc_force_elements_contribution(self, context: Context) -> MultibodyForces:
        """Return the forces of gravity, of all force elements and of the damping of joints."""
        forces = MultibodyForces(self)
        forces.body_forces[:] = self.tree.gravity_forces(context)
        weights = self.tree.coupled_weights(context)[1]
        forces.generalized_forces[:] = self.tree.damping_forces(context) + weights
        for element in self.force_elements:
            element.calc_and_add_force_contribution(context, forces)
        return forces

    def calc_vdot(self, context: Context) -> FloatArray:
        """Return the accelerations v̇ of the joints under all forces and inputs."""
        vdot: FloatArray = self.tree.accelerations.eval(context)
        return vdot

    # Kinematics ------------------------------------------------------------------------------

    def calc_jacobian(
        self,
        context: Context,
        frame: FrameLike,
        p_FP: npt.ArrayLike = (0.0, 0.0, 0.0),
        measured_in: FrameLike | None = None,
        expressed_in: FrameLike | None = None,
    ) -> FloatArray:
        """Return J with V_MP = J v: the spatial velocity of a point P fixed in a frame F.

        Parameters
        ----------
        context : Context
            Gives q.
        frame : Frame or Body
            The frame F.
        p_FP : array_like, shape (3,)
            Position of P from Fo, expressed in F, in m.
        measured_in : Frame or Body, optional
            The frame M from which the motion is seen; the world when omitted.
        expressed_in : Frame or Body, optional
            The frame whose axes the components are along; the world when omitted.

        Returns
        -------
        array, shape (6, nv)
            Angular velocity, then velocity of P.
        """
        number, p_BP = self._point(context, frame, p_FP)
        M, _ = self._point(context, measured_in or self.world)
        placements, _, _ = self.tree.kinematics(context)
        J: Array = spatial_jacobian(self.tree.topology, placements, number, p_BP, M)
        return self._expressed(J, context, expressed_in)

    def calc_bias_spatial_acceleration(
        self,
        context: Context,
        frame: FrameLike,
        p_FP: npt.ArrayLike = (0.0, 0.0, 0.0),
        measured_in: FrameLike | None = None,
        expressed_in: FrameLike | None = None,
    ) -> FloatArray:
        """Return A_MP - J v̇, which is J̇ v: the spatial acceleration of P when v does not change.

        Parameters
        ----------
        context, frame, p_FP, measured_in, expressed_in
            As in `calc_jacobian`.

        Returns
        -------
        array, shape (6,)
        """
        number, p_BP = self._point(context, frame, p_FP)
        M, _ = self._point(context, measured_in or self.world)
        placements, motions, _ = self.tree.kinematics(context)
        bias: Array = jacobian_bias(self.tree.topology, placements, motions, number, p_BP, M)
        return self._expressed(bias, context, expressed_in)

    def _expressed(
        self, vectors: Array, context: Context, expressed_in: FrameLike | None
    ) -> FloatArray:
        """Return columns of six components along the axes of a frame, from those in the world."""
        if expressed_in is None:
            return np.asarray(vectors)
        self._point(context, expressed_in)  # refuses frames of other plants
        return np.asarray(rotate_spatial(expressed_in.pose(context).R.T, vectors))

    def _point(
        self, context: Context, frame: FrameLike, p_FP: npt.ArrayLike = (0.0, 0.0, 0.0)
    ) -> tuple[int, FloatArray]:
        """Return the number of a body, and the position of a point in it."""
        frame = as_frame(frame, f"Cannot find a point in '{self.label}'")
        number = frame.body.number
        if number is None or self.bodies[number] is not frame.body:
            raise UnknownNameError(
                f"Cannot find {frame!r} in '{self.label}'",
                remedy=suggestion(frame.body.name, (body.name for body in self.bodies)),
            )
        point = as_number(p_FP, (3,), f"Cannot use a point of frame '{frame.name}'")
        X_BF = frame.expanded(context)
        return number, X_BF.p + X_BF.R @ point

    # Energy ----------------------------------------------------------------------------------

    def _scalar(self, name: str, context: Context) -> float:
        return float(self.output_port(name).eval(context)[0])

    def calc_kinetic_energy(self, context: Context) -> float:
        """Return the kinetic energy in J."""
        return self._scalar("kinetic_energy", context)

    def calc_potential_energy(self, context: Context) -> float:
        """Return the energy stored in gravity and force elements in J."""
        return self._scalar("potential_energy", context)

    def calc_conservative_power(self, context: Context) -> float:
        """Return the power of gravity and of the conservative forces of elements in W."""
        return self._scalar("conservative_power", context)

    def calc_non_conservative_power(self, context: Context) -> float:
        """Return the power of all other forces of elements, and of the damping of joints, in W."""
        return self._scalar("non_conservative_power", context)


def _tolerance(tolerance: float, attempt: str) -> float:
    """Return the largest error of constraints that is left, a positive number."""
    return bounded(tolerance, attempt, lower=0.0, exclusive=True)


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str:
        """The name."""


_N = TypeVar("_N", bound=Named)


def by_name(items: tuple[_N, ...], name: str, what: str, label: str) -> _N:
    """Return the item of a name, else raise."""
    for item in items:
        if is_one_of(name, [item.name]):
            return item
    raise UnknownNameError(
        f"Cannot find {what} {name!r:.200} in '{label}'",
        remedy=suggestion(name, (item.name for item in items)),
    )
