"""The plant builder: collects bodies, joints and force elements, and builds a plant."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import compose_transforms
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.body_motion import PoseLike, checked_pose
from flexure.blocks.multibody.bodies.body_shape import BodyShape, require_shape
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.constrained_dynamics.tree import MultibodyTree
from flexure.blocks.multibody.constraints import Constraint, LoopJoint, SwitchedConstraint
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.loop_closure.loop_assemblies import AssembledStarts
from flexure.blocks.multibody.plants.part_group import PartGroup
from flexure.blocks.multibody.plants.plant import Plant, by_name
from flexure.blocks.multibody.plants.plant_wiring import (
    OUTPUTS,
    TERMS,
    TOTALS,
    TREE,
    add_expansions,
    completed_joints,
    export_ports,
    force_inputs,
    inertia_inputs,
    refuse_taken,
    wire_element,
    wire_energies,
)
from flexure.blocks.multibody.trees.topology import JointGraph, make_topology
from flexure.blocks.multibody.trees.tree_inputs import Actuator
from flexure.diagrams.building.builder import DiagramBuilder
from flexure.diagrams.checks.arguments import items_of, one_of, require, shown
from flexure.diagrams.checks.errors import DeclarationError, FlexureError, WiringError, call_site
from flexure.diagrams.values.arrays import FloatArray, as_finite, bounded, check_name
from flexure.diagrams.values.tied_parameters import TiedParameter

_C = TypeVar("_C", bound=Constraint)
_E = TypeVar("_E", bound=ForceElement)
_G = TypeVar("_G", bound=PartGroup)
_J = TypeVar("_J", bound=Joint)

#: Each kind of parts in words, with its class and the method of a builder that adds it.
_WAYS = (
    ("a joint", Joint, "add_joint"),
    ("a constraint", Constraint, "add_constraint"),
    ("a force element", ForceElement, "add_force_element"),
    ("an assembly, such as a CrossPivot", PartGroup, "add_assembly"),
)


class PlantBuilder:
    """Collects bodies, joints and force elements, and builds one plant from them.

    A refused call raises an error and leaves the builder as it was. Bodies that no joint connects
    to the world get a `QuaternionFloatingJoint` of their name when the plant is built.

    Parameters
    ----------
    name : str
        Name of the plant.
    gravity : array_like, shape (3,)
        Acceleration of free fall in the world in m/s².
    impacts : {"simultaneous", "sequential"}
        How each `RigidStop` or `RigidContact` takes part in impacts: all at once, or one by one.
    spin : array_like, shape (3,), optional
        Constant angular velocity in rad/s with which the world spins about its origin. The plant
        then has a parameter ``spin``. Positions and velocities are those in the world, and
        centrifugal and Coriolis forces are part of its gravity.

    Attributes
    ----------
    world : Body
        The body that does not move.
    left_out : tuple of str
        What is in the file that it was read from, as by `load_urdf`, and not in the builder.

    See Also
    --------
    Plant : The diagram that it builds.
    DiagramBuilder : Connect a plant with a controller.
    load_urdf : Read a builder from a file.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("pendulum")
    >>> bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -1.0))
    >>> pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, bob, axis=(0, 1, 0)))
    >>> pendulum = builder.build()
    >>> context = pendulum.create_default_context()
    >>> pivot.angle.set(context, np.pi / 2)
    >>> pendulum.eval_time_derivatives(context)
    array([ 0.  , -9.81])
    """

    def __init__(
        self,
        name: str = "plant",
        *,
        gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
        impacts: Literal["simultaneous", "sequential"] = "simultaneous",
        spin: npt.ArrayLike | None = None,
    ) -> None:
        self.name = check_name(name, "a plant", WiringError)
        laws = "simultaneous", "sequential"
        law = one_of(impacts, laws, "impacts", f"Cannot set the impacts of '{name}'")
        self._is_sequential = law == "sequential"
        attempt = f"Cannot set the gravity of '{name}'"
        self.gravity = as_finite(gravity, (3,), attempt)
        self.spin: FloatArray | None = None
        if spin is not None:
            attempt = f"Cannot set the spin of '{name}'"
            self.spin = as_finite(spin, (3,), attempt)
        self.world = Body("world", model_instance="world")
        self.world.number = 0
        self.world.complete()
        self._bodies: dict[str, Body] = {"world": self.world}
        self._frames: dict[str, Frame] = {}
        self._graph = JointGraph([self.world])
        self._joints: dict[str, Joint] = {}
        self._elements: dict[str, ForceElement] = {}
        self._constraints: dict[str, Constraint] = {}
        self._inside: dict[str, Body | BodyForceElement] = {}
        self._actuators: dict[str, Actuator] = {}
        self._external: dict[str, Body] = {}
        self._tied: tuple[TiedParameter, ...] = ()
        self._ledger: str | None = None
        self._assembled: AssembledStarts | None = None
        self._built_at: str | None = None
        self.left_out: tuple[str, ...] = ()

    # What is in it ---------------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies added so far, the world first."""
        return tuple(self._bodies.values())

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints added so far."""
        return tuple(self._joints.values())

    @property
    def force_elements(self) -> tuple[ForceElement, ...]:
        """The force elements added so far."""
        return tuple(self._elements.values())

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints added so far, loop joints among them."""
        return tuple(self._constraints.values())

    def body(self, name: str) -> Body:
        """Return a body by its name."""
        return by_name(self.bodies, name, "body", self.name)

    def joint(self, name: str) -> Joint:
        """Return a joint by its name."""
        return by_name(self.joints, name, "joint", self.name)

    def frame(self, name: str) -> Frame:
        """Return a frame that was added, or that of a body, by its name."""
        frames = (*self._frames.values(), *(body.frame for body in self.bodies))
        return by_name(frames, name, "frame", self.name)

    def __repr__(self) -> str:
        counts = f"{len(self._bodies) - 1} bodies, {len(self._joints)} joints"
        return f"<PlantBuilder '{self.name}', {counts}, {len(self._elements)} force elements>"

    # Adding ----------------------------------------------------------------------------------

    def add_body(
        self,
        name: str,
        inertia: SpatialInertia,
        *,
        com: npt.ArrayLike | None = None,
        model_instance: str = "default",
    ) -> Body:
        """Add a rigid body and return it.

        Parameters
        ----------
        name : str
            Name within the plant.
        inertia : SpatialInertia
            Mass, center of mass and inertia in the frame of the body.
        com : array_like, shape (3,), optional
            Where to move the center of mass, in the frame of the body in m.
        model_instance : str
            Name of a group of bodies, of no importance to the dynamics.
        """
        attempt = f"Cannot add body {name!r} to '{self.name}'"
        taken = ChainMap[str, Any](self._elements, self._frames, self._bodies)
        self._refuse(attempt, check_name(name, "a body"), taken)
        fits, wanted = isinstance(inertia, SpatialInertia), "a SpatialInertia"
        remedy = "Make one, as in SpatialInertia.solid_box(mass=1.0, size=(0.1, 0.2, 0.3))"
        require(fits, inertia, attempt, wanted, error=DeclarationError, remedy=remedy)
        if com is not None:
            position = as_finite(com, (3,), attempt)
            inertia = inertia.shifted(position - inertia.com)
        body = Body(name, inertia, model_instance=model_instance)
        self._adopt(body)
        return body

    def _adopt(self, body: Body) -> None:
        """Take a body over, with the next number."""
        body.number = len(self._bodies)
        body.complete()
        self._bodies[body.name] = body
        self._graph.add_body(body)

    def add_frame(self, name: str, on: FrameLike, pose: PoseLike | None = None) -> Frame:
        """Add a frame that is fixed on a body or on another frame, and return it.

        Parameters
        ----------
        name : str
            Name within the plant.
        on : Body or Frame
            What it is fixed on.
        pose : tuple of array_like, shapes (3, 3) and (3,), or array_like, shape (3,), optional
            Rotation matrix and position of the frame there, or its position alone when it is not
            turned; the identity when omitted.
        """
        attempt = f"Cannot add frame {name!r} to '{self.name}'"
        taken = ChainMap[str, Any](self._frames, self._bodies)
        self._refuse(attempt, check_name(name, "a frame"), taken)
        frame = Frame(name, on, pose)
        self._require_own(attempt, frame.body)
        self._frames[name] = frame
        return frame

    def add_shape(
        self,
        on: FrameLike,
        shape: BodyShape,
        pose: PoseLike | None = None,
        *,
        color: str | None = None,
    ) -> None:
        """Add a shape to the pictures of a body; it has no influence on the motion.

        Bodies with the inertia of a solid have its shape already; ``inertia.with_shape(...)`` gives
        them another one.

        Parameters
        ----------
        on : Body or Frame
            What it is fixed on; the world, too.
        shape : BodyShape
            The shape.
        pose : tuple of array_like, shapes (3, 3) and (3,), or array_like, shape (3,), optional
            Rotation matrix and position of the shape there, or its position alone; the identity
            when omitted.
        color : str, optional
            As for `BodyShape.colored`.
        """
        attempt = f"Cannot add a shape to '{self.name}'"
        self._refuse_after_build(attempt)
        frame = as_frame(on, attempt)
        self._require_own(attempt, frame.body)
        require_shape(shape, attempt)
        if color is not None:
            shape = shape.colored(color)
        X_BS = compose_transforms(frame.X_BF, checked_pose(pose, attempt))
        frame.body.shape += shape.moved(X_BS)

    def add_joint(self, joint: _J) -> _J:
        """Add a joint between bodies of this builder, and return it."""
        attempt = f"Cannot add {joint!r} to '{self.name}'"
        if not isinstance(joint, Joint):
            self._refuse_kind(attempt, joint, "a joint")
        taken = ChainMap[str, Any](self._inside, self._elements, self._joints)
        self._refuse(attempt, joint.name, taken)
        self._require_own(attempt, joint.parent_body, joint.child_body)
        self._graph.add_joint(joint)
        joint.index = len(self._joints)
        joint.complete()
        self._joints[joint.name] = joint
        return joint

    def add_loop_joint(self, joint: Joint) -> LoopJoint:
        """Add a joint that closes a loop of bodies, as a constraint, and return that.

        Parameters
        ----------
        joint : Joint
            A joint between bodies of this builder that joints connect already, or that are on
            different trees. It has no coordinates in the plant.
        """
        return self.add_constraint(LoopJoint(joint))

    def add_constraint(self, constraint: _C) -> _C:
        """Add a constraint between bodies of this builder, and return it."""
        attempt = f"Cannot add {constraint!r} to '{self.name}'"
        if not isinstance(constraint, Constraint):
            self._refuse_kind(attempt, constraint, "a constraint")
        own = dict.fromkeys(TERMS) if isinstance(constraint, SwitchedConstraint) else {}
        taken = ChainMap[str, Any](self._constraints, self._elements, self._joints, own)
        self._refuse(attempt, constraint.name, taken)
        self._require_own(attempt, *constraint.bodies)
        constraint.index = len(self._constraints)
        constraint.complete()
        self._constraints[constraint.name] = constraint
        return constraint

    def add_force_element(self, element: _E) -> _E:
        """Add a force element between bodies, or on a joint, of this builder, and return it."""
        attempt = f"Cannot add {element!r} to '{self.name}'"
        if not (isinstance(element, BodyForceElement) or getattr(element, "joint_ends", False)):
            self._refuse_kind(attempt, element, "a force element")
        own = dict.fromkeys(TERMS)
        others = self._joints, self._constraints, self._bodies
        taken = ChainMap[str, Any](*others, *self._blocks.maps, own)
        self._refuse(attempt, element.name, taken)
        for end in element.joint_ends:
            self._require_own_joint(attempt, end.joint)
        if isinstance(element, BodyForceElement):
            self._require_own(attempt, *(each.body for each in element.attachments))
            self._add_inside(attempt, element)
        element.index = len(self._elements) + 1
        self._elements[element.name] = element
        return element

    def add_assembly(self, assembly: _G) -> _G:
        """Add all bodies, joints and force elements of an assembly, and return it.

        Parameters
        ----------
        assembly : PartGroup
            Such as a `CrossPivot`. When a part of it is refused, none is added.
        """
        attempt = f"Cannot add {assembly!r} to '{self.name}'"
        self._refuse_after_build(attempt)
        if not isinstance(assembly, PartGroup):
            self._refuse_kind(attempt, assembly, "an assembly, such as a CrossPivot")
        stores: list[dict[str, Any]]
        stores = [self._bodies, self._joints, self._elements, self._inside]
        before = [dict(store) for store in stores]
        try:
            for body in assembly.bodies:
                taken = ChainMap[str, Any](self._elements, self._frames, self._bodies)
                self._refuse(attempt, body.name, taken)
                self._adopt(body)
            for joint in assembly.joints:
                self.add_joint(joint)
            for element in assembly.force_elements:
                self.add_force_element(element)
        except FlexureError:
            for store, kept in zip(stores, before, strict=True):
                store.clear()
                store.update(kept)
            self._graph = JointGraph(self._bodies.values(), self._joints.values())
            raise
        self._tied += assembly.tied
        return assembly

    def _add_inside(self, attempt: str, element: BodyForceElement) -> None:
        """Add the nodes and segments of an element, if no name is taken."""
        inside: dict[str, Body | BodyForceElement] = {}
        inside |= {node.name: node for node in element.inside.nodes}
        inside |= {segment.name: segment for segment in element.inside.segments}
        taken = ChainMap[str, Any](self._frames, self._joints, self._bodies, *self._blocks.maps)
        for name in inside:
            self._refuse(attempt, name, taken)
        for node in element.inside.nodes:
            self._adopt(node)
        self._inside |= inside

    def add_actuator(
        self,
        name: str,
        joint: Joint,
        *,
        gear_ratio: float = 1.0,
        rotor_inertia: float = 0.0,
        effort_limit: float = np.inf,
    ) -> Actuator:
        """Add a motor on a joint: an input of the plant, and return it.

        Parameters
        ----------
        name : str
            Name of the input, which takes one generalized force per velocity of the joint.
        joint : Joint
            What it drives.
        gear_ratio : float
            Turns of the rotor per turn of the joint, a parameter of the plant.
        rotor_inertia : float
            Inertia >= 0 of the rotor in kg m² (or kg), a parameter of the plant; the joint feels it
            times the ratio squared.
        effort_limit : float
            Greatest magnitude > 0 of each component of the force on the side of the joint. The
            input is clipped to it.
        """
        attempt = f"Cannot add actuator {name!r} to '{self.name}'"
        self._refuse(attempt, check_name(name, "an actuator"), self._inputs)
        self._require_own_joint(attempt, joint)
        ratio = bounded(gear_ratio, attempt)
        inertia = bounded(rotor_inertia, attempt, lower=0.0)
        limit = bounded(effort_limit, attempt, lower=0.0, exclusive=True, allow_infinite=True)
        actuator = Actuator(name, joint, ratio, inertia, limit)
        self._actuators[name] = actuator
        return actuator

    def add_external_force(self, name: str, body: Body) -> None:
        """Add an input of the plant that takes a spatial force on a body.

        Parameters
        ----------
        name : str
            Name of the input: moment about the origin of the body and force, (t, f) of size 6, in
            N m and N, expressed in the world. Its components are called tx, ty, tz, fx, fy, fz.
        body : Body
            What the force acts on.
        """
        attempt = f"Cannot add external force {name!r} to '{self.name}'"
        self._refuse(attempt, check_name(name, "an external force"), self._inputs)
        self._require_own(attempt, body)
        if body.is_world:
            raise DeclarationError(attempt, expected="a body that can move", found="the world")
        self._external[name] = body

    def add_energy_ledger(self, name: str = "ledger") -> None:
        """Add an `EnergyLedger` that is wired to all energies and powers of the plant."""
        attempt = f"Cannot add an energy ledger to '{self.name}'"
        self._refuse(attempt, check_name(name, "an energy ledger"), self._blocks)
        if self._ledger is not None:
            raise DeclarationError(attempt, expected="one ledger", found=f"'{self._ledger}'")
        self._ledger = name

    def assemble_starts(self, fixed: Joint | str | Iterable[Joint | str] = ()) -> None:
        """Assemble the mechanism before each motion, with the values that it is given.

        Runs, also those of sweeps, fits, optimizations and sensitivities, change lengths, ratios
        and angles with which a loop would not be closed. Then positions and velocities are changed
        by as little as it takes, as by `Plant.assemble`, after initialization events. What is
        closed already stays as it is. Derivatives of motions are those of motions that begin so.

        Parameters
        ----------
        fixed : Joint, str or iterable of them, optional
            Joints that keep their positions and velocities, by handle or name.

        Raises
        ------
        DeclarationError
            When a joint is not one of this builder, or this was said before.
        """
        attempt = f"Cannot assemble the starts of '{self.name}'"
        self._refuse_after_build(attempt)
        wanted = "joints of this builder"
        several = items_of([fixed] if isinstance(fixed, (Joint, str)) else fixed, wanted, attempt)
        joints = [self.joint(each) if isinstance(each, str) else each for each in several]
        for joint in joints:
            self._require_own_joint(attempt, joint)
        if self._assembled is not None:
            raise DeclarationError(
                attempt, expected="one call of assemble_starts()", found="a second call"
            )
        self._assembled = AssembledStarts(tuple(joints))

    # Building --------------------------------------------------------------------------------

    def build(self) -> Plant:
        """Build the plant; the builder cannot be used afterwards.

        Raises
        ------
        DeclarationError
            When there are no bodies, or joints close a loop.
        """
        attempt = f"Cannot build '{self.name}'"
        self._refuse_after_build(attempt)
        if len(self._bodies) == 1:
            raise DeclarationError(attempt, expected="at least one body", found="only the world")
        elements, nodes = self.force_elements, self._inside.values()
        joints = completed_joints(self._graph, self.bodies, self.joints, elements, nodes)
        topology = make_topology(self.bodies, joints)
        tree = MultibodyTree(
            TREE,
            topology,
            gravity=self.gravity,
            spin=self.spin,
            force_inputs=force_inputs(elements, self._actuators.values(), self._external),
            actuators=tuple(self._actuators.values()),
            inertia_inputs=inertia_inputs(elements),
            constraints=tuple(self._constraints.values()),
        )
        tree.start_assembly = self._assembled
        tree.impacts_are_sequential = self._is_sequential
        wiring = DiagramBuilder(self.name)
        wiring.diagram_type = Plant
        wiring.add(tree)
        add_expansions(wiring, tree)
        for element in elements:
            wire_element(wiring, element)
        wire_energies(wiring, elements, tree, self._ledger)
        export_ports(wiring, tree, elements, [*self._actuators, *self._external])
        plant = wiring.build()
        assert isinstance(plant, Plant)
        plant.adopt(tree, tuple(self._frames.values()), tuple(self._actuators.values()), self._tied)
        self._built_at = call_site()
        return plant

    # Checks ----------------------------------------------------------------------------------

    @property
    def _blocks(self) -> ChainMap[str, Any]:
        """Names of blocks in the plant that are taken."""
        own = [TREE, TOTALS] if self._ledger is None else [TREE, TOTALS, self._ledger]
        return ChainMap(self._elements, self._inside, dict.fromkeys(own))

    @property
    def _inputs(self) -> ChainMap[str, Any]:
        """Names that no other input of the plant can have."""
        own = dict.fromkeys(["generalized_force", *OUTPUTS[TREE], *OUTPUTS[TOTALS]])
        return ChainMap(self._external, self._actuators, own)

    def _refuse(self, attempt: str, name: str, taken: Mapping[str, Any]) -> None:
        """Refuse to add to a builder that has built, and refuse a name that is taken."""
        self._refuse_after_build(attempt)
        refuse_taken(attempt, name, taken)

    def _refuse_kind(self, attempt: str, part: object, expected: str) -> NoReturn:
        """Refuse what is of another kind, and name the method that adds it."""
        self._refuse_after_build(attempt)
        others = (way for what, kind, way in _WAYS if what != expected and isinstance(part, kind))
        way = next(others, None)
        remedy = None if way is None else f"Call {way} instead"
        raise DeclarationError(attempt, expected=expected, found=shown(part), remedy=remedy)

    def _refuse_after_build(self, attempt: str) -> None:
        if self._built_at is not None:
            raise WiringError(
                attempt,
                expected="a builder that has not built yet",
                found=f"one that built its plant at {self._built_at}",
                remedy="Start a new PlantBuilder with new bodies, joints and elements",
            )

    def _require_own(self, attempt: str, *bodies: object) -> None:
        for body in bodies:
            if not isinstance(body, Body) or self._bodies.get(body.name) is not body:
                raise WiringError(
                    attempt,
                    expected=f"bodies of '{self.name}'",
                    found=f"{body!r}, which was not added to it",
                    remedy="Make bodies with add_body, and use the world of this builder",
                )

    def _require_own_joint(self, attempt: str, joint: object) -> None:
        if not isinstance(joint, Joint) or self._joints.get(joint.name) is not joint:
            raise WiringError(
                attempt,
                expected=f"a joint of '{self.name}'",
                found=f"{joint!r}, which was not added to it",
                remedy="Call add_joint(joint) first",
            )
        if not joint.num_velocities:
            raise DeclarationError(
                attempt, expected="a joint that moves", found=f"a {joint.type_name} joint"
            )
