"""Base classes of the force elements: blocks that turn motions of bodies and joints into forces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    shift_spatial_force,
    shift_spatial_velocity,
)
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame, grown
from flexure.blocks.multibody.bodies.body_motion import POSE_SIZE, pose_from_wire
from flexure.blocks.multibody.bodies.multibody_forces import MultibodyForces, require_forces
from flexure.blocks.multibody.bodies.plant_base import PlantBase
from flexure.blocks.multibody.force_elements.division import UNDIVIDED, Division, total
from flexure.blocks.multibody.force_elements.limits import Limited
from flexure.blocks.multibody.force_elements.presentation import Presented
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.component_names import SPATIAL_FORCE
from flexure.blocks.multibody.trees.topology import InPlane
from flexure.blocks.multibody.trees.tree_inputs import INERTIA_SIZE, inertia_on_body
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.systems.ports import Calculation, InputPort, LeafOutputPort, Prerequisite
from flexure.diagrams.values.arrays import Array


class JointEnd(NamedTuple):
    """Where an element acts on a joint, and the ports that know how the joint moves."""

    joint: Joint
    # position, velocity: its positions and velocities.
    position: InputPort
    velocity: InputPort
    force: LeafOutputPort  # the generalized force along its velocities


class ForceElement(Presented, Limited):
    """Base class of blocks that store and dissipate energy between bodies.

    Subclasses must follow the rules of `LeafSystem`, and these:

    1. It derives from `BodyForceElement` or `JointForceElement`, which declare how it is attached,
       and say which forces it returns, about which points and in which frames; one on several
       joints sets ``joint_ends`` itself. Its constants are parameters with units and bounds.
    2. Forces, energy and powers are functions of positions, velocities and what is inside of the
       element, its continuous state of kind z, such as the stretch of dampers in series with
       springs; they do not depend on time. All of them come from one set of kinematics, so that
       they agree to rounding.
    3. `calc_stored_energy` returns the energy V in J. It depends on positions and the state alone,
       and so reads no velocities. A constant may be added to it.
    4. `calc_conservative_power` returns -dV/dt in W, the power of the forces that belong to V, and
       what springs give to the inside of the element as its state moves.
    5. `calc_non_conservative_power` returns the power of all other forces in W; it is never
       positive where they only dissipate, also inside. The sum of both is the power of all forces
       on what the element is attached to.
    6. Forces are those on the body or joint. The forces of an element between bodies cancel,
       moments about a common point included, and turn with the bodies when all are carried along.
    7. Where there is no answer, as in gimbal lock, ``scalars.refuse_where`` raises on numbers and
       gives NaN on symbols: that sends a compiled run back to Python, and to the same message.

    In return its plant gives it the motion of what it is attached to, applies the forces, and adds
    up the energies. They are outputs of size 1, ``stored_energy``, ``conservative_power`` and
    ``non_conservative_power``, from which the `EnergyLedger` tells whether 3 to 5 hold in a run.
    `check_passivity` tells it without a plant, and ``tests/contracts/test_every_element.py`` checks
    2 to 6 on every element of the library.

    Parameters
    ----------
    name : str
        Name within the plant.

    Attributes
    ----------
    index : int or None
        Position among the force elements of the plant, in which gravity is number 0.
    joint_ends : tuple of JointEnd
        Where it acts on joints.
    coupled : tuple of Body or Joint
        What an element couples by inertia. It then has an output ``coupled_inertia``, which holds
        what ``CouplingInput`` defines.
    stiffens : bool
        Whether loads change its stiffness, as far as it has one; true by default.

    See Also
    --------
    BodyForceElement : Forces between bodies.
    JointForceElement : A force along a joint.

    Examples
    --------
    >>> import flexure as fx
    >>> issubclass(fx.LinearSpringDamper, fx.multibody.ForceElement)
    True
    """

    index: int | None = None
    joint_ends: tuple[JointEnd, ...] = ()
    coupled: tuple[Body | Joint, ...] = ()
    stiffens: bool = True
    coupled_inertia: LeafOutputPort
    stored_energy: LeafOutputPort
    conservative_power: LeafOutputPort
    non_conservative_power: LeafOutputPort

    def _declare_energies(
        self,
        *,
        energy: Sequence[Prerequisite],
        conservative: Sequence[Prerequisite],
        non_conservative: Sequence[Prerequisite],
    ) -> None:
        """Declare the outputs of energy and powers, with what each of them reads."""
        self._declare_energy("stored_energy", self.calc_stored_energy, energy, "J")
        self._declare_energy("conservative_power", self.calc_conservative_power, conservative, "W")
        self._declare_energy(
            "non_conservative_power", self.calc_non_conservative_power, non_conservative, "W"
        )

    def _declare_energy(
        self, name: str, calc: Calculation, reads: Sequence[Prerequisite], unit: str
    ) -> None:
        """Declare an energy or a power as an output and as an attribute."""
        setattr(
            self, name, self.declare_vector_output(name, 1, calc, prerequisites=reads, unit=unit)
        )

    @abstractmethod
    def calc_stored_energy(self, context: Any) -> Array:
        """Return the stored energy in J."""

    @abstractmethod
    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of the conservative forces in W, the negative rate of the energy."""

    @abstractmethod
    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of all other forces in W."""

    def calc_and_add_force_contribution(self, context: Any, forces: MultibodyForces) -> None:
        """Add the forces of the element to others on its plant.

        Parameters
        ----------
        context : Context
            A context of the plant, or of a diagram around it.
        forces : MultibodyForces
            What they are added to.

        Raises
        ------
        ContextError
            When the forces or the context belong to another plant; nothing is added then.
        """
        plant = self.parent_plant
        require_forces(forces, plant, f"Cannot add the forces of '{self.label}' to others")
        self._add_forces(context, forces)

    def _add_forces(self, context: Any, forces: MultibodyForces) -> None:
        """Add the forces of the element to others, which are known to be on its plant."""
        for end in self.joint_ends:
            part = end.joint.tree.velocities_of(end.joint)
            forces.generalized_forces[part] += end.force.eval(context)

    @property
    def acting(self) -> Sequence[ForceElement]:
        """The blocks whose forces act on the plant: the element itself, or its segments."""
        return (self,)

    @property
    def model_instance(self) -> str:
        """Name of the group of bodies that the element belongs to, that of its first joint."""
        return self.joint_ends[0].joint.model_instance

    @property
    def parent_plant(self) -> PlantBase:
        """The plant that contains the element."""
        if isinstance(self.parent, PlantBase):
            return self.parent
        raise DeclarationError(
            f"Cannot name the plant of '{self.label}'",
            expected="an element of a plant that is built",
            found="an element that is in no plant" if self.parent is None else repr(self.parent),
            remedy="Add it with PlantBuilder.add_force_element and call build() first",
        )


class FrameMotion(NamedTuple):
    """Pose and velocity of a frame F on a body B."""

    X_WF: RigidTransform  # pose of F in the world
    V_WF: Array  # spatial velocity of F in the world, at Fo, expressed in the world, shape (6,)
    p_BF: Array  # position of Fo from Bo, expressed in the world, shape (3,)

    def force_on_body(self, F_Fo: Array) -> Array:
        """Return a spatial force on F about Fo as one about Bo, both expressed in the world."""
        return shift_spatial_force(F_Fo, -self.p_BF)


@dataclass(frozen=True)
class BodyAttachment:
    """Where an element is attached to a body, and the ports that know how the body moves."""

    label: str  # the letter that names the frame in equations
    frame: Frame  # the frame on the body at which the element is attached
    # pose, velocity: pose X_WB and spatial velocity V_WB of the body; None for the world.
    pose: InputPort | None
    velocity: InputPort | None
    # Returns how far along the x axis of the frame the element is attached, in m, for a context;
    # None if it is attached at the frame.
    offset: Calculation | None = None
    strain: InputPort | None = None  # thermal strain of the body, if it expands

    @property
    def body(self) -> Body:
        """The body to which the element is attached."""
        return self.frame.body

    def unexpanded(self, context: Any) -> RigidTransform:
        """Return the pose in the body at which the element is attached without thermal strain."""
        X_BF = self.frame.X_BF
        if self.offset is None:
            return X_BF
        return RigidTransform(X_BF.R, X_BF.p + self.offset(context) * X_BF.R[:, 0])

    def X_BF(self, context: Any) -> RigidTransform:
        """Return the pose in the body at which the element is attached."""
        X_BF = self.unexpanded(context)
        return X_BF if self.strain is None else grown(X_BF, self.strain(context)[0])

    def pose_of_frame(self, context: Any) -> RigidTransform:
        """Return the pose of the frame in the world; unlike `motion` it reads no velocity."""
        if self.pose is None:
            return self.X_BF(context)
        return compose_transforms(pose_from_wire(self.pose(context)), self.X_BF(context))

    def at_rest(self, context: Any) -> FrameMotion:
        """Return the pose of the frame, and no velocity."""
        X_BF = self.X_BF(context)
        if self.pose is None:
            return FrameMotion(X_BF, np.zeros(6), X_BF.p)
        X_WB = pose_from_wire(self.pose(context))
        X_WF = compose_transforms(X_WB, X_BF)
        return FrameMotion(X_WF, np.zeros(6), X_WF.p - X_WB.p)

    def motion(self, context: Any) -> FrameMotion:
        """Return pose and velocity of the frame."""
        rest = self.at_rest(context)
        if self.velocity is None:
            return rest
        return rest._replace(V_WF=shift_spatial_velocity(self.velocity(context), rest.p_BF))


class BodyForceElement(ForceElement):
    """A force element between frames on bodies.

    For each frame with the label A it has the inputs ``pose_A`` (the pose of its body in the world:
    the rotation matrix row by row, then the position) and ``velocity_A`` (the spatial velocity of
    the body, in the world), unless the body is the world, and the output ``force_on_A``.

    Beside the contract of `ForceElement`, a subclass keeps this one:

    1. `calc_spatial_forces` returns one spatial force for each frame, in their order, also for a
       frame on the world: moment in N m, then force in N, on the body about its origin Bo,
       expressed in the world.
    2. Where a frame is and how it moves it reads from its attachment: ``motion(context)`` gives
       pose and velocity, and takes a force about Fo to Bo by ``force_on_body``. The stored energy
       takes ``pose_of_frame(context)``, which reads no velocity. Frames may be on the world, or
       both on one body.
    3. An element with mass calls `declare_inertias` in its constructor. Its plant counts what is
       carried as part of the bodies, in all that it computes, so that their own mass may be zero.

    Parameters
    ----------
    name : str
        Name of the block.
    frames : mapping of str to Frame or Body
        The frames by their labels.
    dissipates : bool
        Whether there are other forces than those of the stored energy. Otherwise forces read no
        velocities, and ``non_conservative_power`` is zero and reads nothing.
    given : mapping of str to int, optional
        Sizes of further inputs, by their names.
    drives : mapping of str to dict, optional
        Further inputs that are inputs of the plant, ``<name>.<input>``, by their names: arguments
        of ``declare_vector_input`` such as their unit. Their size is 1 and their default 0, unless
        these say otherwise.
    inside : Division, optional
        Of an element that is divided: its forces, energy and powers are those of its segments.
    offsets : mapping of str to callable, optional
        Of frames, by their labels: how far along its x axis the element is attached, in m, as a
        function of parameters and ``given`` inputs in a context.
    states : mapping of str, optional
        Of an element with continuous state: the arguments of ``declare_continuous_state``.
    memory : mapping of str to array_like, optional
        Groups of discrete state, with defaults. Forces and energy depend on all of these.

    Attributes
    ----------
    attachments : tuple of BodyAttachment
        Where it is attached, in the order of ``frames``; each tells the ``motion`` of its frame.
    inertia_ports : tuple of LeafOutputPort
        The outputs ``inertia_on_A`` of an element with mass, one for each frame.
    inside : Division
        What is inside of an element that is divided; nothing in others.
    given_ports : list of InputPort
        The inputs of ``given``.
    drive_ports : list of InputPort
        The inputs of ``drives``.

    Raises
    ------
    DeclarationError
        When a frame is missing.
    EvaluationError
        When there are more or fewer forces or inertias than there are frames.

    See Also
    --------
    JointForceElement : Base class of force elements on coordinates of joints.
    LinearSpringDamper : The shortest element of this kind.

    Examples
    --------
    The drag of the air on a body:

    >>> class Drag(BodyForceElement):
    ...     def __init__(self, name, body, coefficient):
    ...         super().__init__(name, {"A": body})
    ...         self.coefficient = self.declare_numeric_parameter("coefficient", coefficient)
    ...
    ...     def calc_spatial_forces(self, context):
    ...         motion = self.attachments[0].motion(context)
    ...         velocity = motion.V_WF[3:]
    ...         drag = -self.coefficient(context) * np.linalg.norm(velocity) * velocity
    ...         return [motion.force_on_body(np.concatenate([np.zeros(3), drag]))]
    ...
    ...     def calc_stored_energy(self, context):
    ...         return 0.0
    ...
    ...     def calc_conservative_power(self, context):
    ...         return 0.0
    ...
    ...     def calc_non_conservative_power(self, context):
    ...         speed = np.linalg.norm(self.attachments[0].motion(context).V_WF[3:])
    ...         return -self.coefficient(context) * speed**3
    >>> drag = Drag("drag", Body("ball"), 0.5)
    >>> context = drag.create_default_context()
    >>> drag.attachments[0].pose.fix(context, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
    >>> drag.attachments[0].velocity.fix(context, [0, 0, 0, 0, 0, 2])
    >>> drag.force_ports[0].eval(context)
    array([ 0.,  0.,  0., -0., -0., -2.])
    """

    drawn_as = "line"
    attachments: tuple[BodyAttachment, ...]
    force_ports: tuple[LeafOutputPort, ...]
    inertia_ports: tuple[LeafOutputPort, ...] = ()
    #: Whether its force at rest depends on how it came there, as that of friction that sticks.
    sticks = False

    def __init__(
        self,
        name: str,
        frames: Mapping[str, FrameLike],
        *,
        dissipates: bool = True,
        given: Mapping[str, int] | None = None,
        drives: Mapping[str, Mapping[str, Any]] | None = None,
        inside: Division | None = None,
        offsets: Mapping[str, Calculation] | None = None,
        states: Mapping[str, Any] | None = None,
        memory: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        super().__init__(name)
        self.inside = inside or UNDIVIDED
        attempt = f"Cannot attach '{name}'"
        self.attachments = tuple(
            self._attach(label, as_frame(frame, attempt), (offsets or {}).get(label))
            for label, frame in frames.items()
        )
        known = [port for each in self.attachments for port in (each.pose, each.strain)]
        positions = [port for port in known if port is not None]
        velocities = [each.velocity for each in self.attachments if each.velocity is not None]
        self.position_ports, self.velocity_ports = positions, velocities
        self.given_ports = [
            self.declare_vector_input(each, size) for each, size in (given or {}).items()
        ]
        self.drive_ports = [
            self.declare_vector_input(each, **{"size": 1, "default": [0.0], **options})
            for each, options in (drives or {}).items()
        ]
        own: list[Prerequisite] = [self.declare_continuous_state(**states)] if states else []
        own += [self.declare_discrete_state(*group) for group in (memory or {}).items()]
        at_rest = [*positions, *self.given_ports, *self.drive_ports, *own]
        calc, both = self._calc_forces, [*at_rest, *velocities]
        reads = both if dissipates else at_rest
        if self.inside:
            ends = self.inside.segments[0].force_ports[0], self.inside.segments[-1].force_ports[-1]
            forces = [self.inside.declare_input(self, f"{end.name}_given", end) for end in ends]
            calc, reads = partial(_at_ends, forces), [*forces]
        self._forces = self.declare_cache_entry("spatial_forces", calc, prerequisites=reads)
        self.force_ports = tuple(
            self.declare_vector_output(
                f"force_on_{each.label}",
                6,
                partial(self._force, k),
                prerequisites=[self._forces],
                element_names=SPATIAL_FORCE,
                doc=f"spatial force on '{each.body.name}' about its origin, in the world",
            )
            for k, each in enumerate(self.attachments)
        )
        if self.inside:
            powers = {"conservative_power": "W", "non_conservative_power": "W"}
            for what, unit in {"stored_energy": "J", **powers}.items():
                ports = self.inside.declare_inputs(self, what)
                self._declare_energy(what, partial(total, ports), ports, unit)
        else:
            lost = both if dissipates else []
            self._declare_energies(energy=at_rest, conservative=both, non_conservative=lost)

    def declare_inertias(
        self, calc: Calculation, *, prerequisites: Sequence[Prerequisite] = ()
    ) -> None:
        """Declare the inertia that the element adds to the bodies it is attached to.

        For each frame with the label A the element then has the output ``inertia_on_A``, by which
        the plant moves that body as if it had been welded to it.

        Parameters
        ----------
        calc : callable
            Takes the context and returns ten numbers for each frame, also for one on the world: the
            mass m in kg, the first moment m c in kg m and the inertia xx, yy, zz, xy, xz, yz about
            the origin of the frame in kg m², expressed in the frame.
        prerequisites : sequence
            What it reads beside parameters. It is not how bodies move, since inertia that changes
            with the motion would make energy.

        Raises
        ------
        DeclarationError
            When it is declared to read how bodies move.
        """
        motions = [*self.position_ports, *self.velocity_ports]
        if any(each in motions for each in prerequisites):
            raise DeclarationError(
                f"Cannot declare the inertias of '{self.label}'",
                expected="inertias that do not depend on the motion",
                found="poses or velocities among the prerequisites",
            )
        self._inertias = self.declare_cache_entry(
            "inertias", partial(self._calc_inertias, calc), prerequisites=prerequisites
        )
        self.inertia_ports = tuple(
            self.declare_vector_output(
                f"inertia_on_{each.label}",
                INERTIA_SIZE,
                partial(self._inertia, k),
                prerequisites=[self._inertias],
                doc=f"mass, first moment and inertia about its origin added to '{each.body.name}'",
            )
            for k, each in enumerate(self.attachments)
        )

    @abstractmethod
    def calc_spatial_forces(self, context: Any) -> Sequence[Array]:
        """Return the spatial force on each body about its origin, expressed in the world."""

    @property
    def acting(self) -> Sequence[BodyForceElement]:
        """The blocks whose forces act on the plant: the element itself, or its segments."""
        return self.inside.segments or (self,)

    def make_joints(self, world: Body, poses: Sequence[Any], in_plane: InPlane) -> Sequence[Joint]:
        """Return the joints of all nodes of the built plant, by default unstressed.

        Parameters
        ----------
        world : Body
            The world.
        poses : sequence of RigidTransform
            The default poses of the frames in it.
        in_plane : InPlane
            Finds the bodies that move, relative to a body, in planes across a direction alone.
        """
        return ()

    def check_assembly(self, poses: Sequence[RigidTransform]) -> None:
        """Refuse a plant whose frames do not fit the element.

        Plants ask once, when built, with the default poses of the frames in the world.
        """

    def _add_forces(self, context: Any, forces: MultibodyForces) -> None:
        """Add the spatial forces on the bodies to others, and those on joints."""
        for acting in self.acting:
            for each, port in zip(acting.attachments, acting.force_ports, strict=True):
                if each.body.number is not None:
                    forces.body_forces[each.body.number] += port.eval(context)
        super()._add_forces(context, forces)

    @property
    def model_instance(self) -> str:
        """Name of the group of bodies that the element belongs to, that of its last frame."""
        return self.attachments[-1].body.model_instance

    def _attach(self, label: str, frame: Frame, offset: Calculation | None) -> BodyAttachment:
        strain = None
        if frame.body.expansion is not None:
            strain = self.declare_vector_input(f"strain_{label}", 1, default=[0.0])
        if frame.body.is_world:
            return BodyAttachment(label, frame, None, None, offset, strain)
        pose = self.declare_vector_input(f"pose_{label}", POSE_SIZE)
        velocity = self.declare_vector_input(f"velocity_{label}", 6)
        return BodyAttachment(label, frame, pose, velocity, offset, strain)

    def _calc_forces(self, context: Any) -> Sequence[Array]:
        return self._one_for_each_frame(
            self.calc_spatial_forces(context),
            "spatial forces",
            "Return a force for every frame from calc_spatial_forces, the world's too",
        )

    def _calc_inertias(self, calc: Calculation, context: Any) -> Sequence[Array]:
        carried = self._one_for_each_frame(
            calc(context), "inertias", "Return ten numbers for every frame, the world's too"
        )
        attached = zip(carried, self.attachments, strict=True)
        return [inertia_on_body(inertia, each.unexpanded(context)) for inertia, each in attached]

    def _one_for_each_frame(
        self, values: Sequence[Array], what: str, remedy: str
    ) -> Sequence[Array]:
        if len(values) != len(self.attachments):
            raise EvaluationError(
                f"Cannot use the {what} of '{self.label}'",
                expected=f"{len(self.attachments)}, one for each of its frames",
                found=f"{len(values)}",
                remedy=remedy,
            )
        return values

    def _inertia(self, k: int, context: Any) -> Array:
        return self._inertias(context)[k]

    def _force(self, k: int, context: Any) -> Array:
        return self._forces(context)[k]


def _at_ends(ports: Sequence[InputPort], context: Any) -> list[Array]:
    """Return the forces at both ends of an element that is divided."""
    return [port(context) for port in ports]
