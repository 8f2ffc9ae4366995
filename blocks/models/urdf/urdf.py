"""Plants from URDF files: links, joints, motors, and the bushings and springs of Drake's dialect.

Needs lxml, which `flexure[urdf]` installs.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.forces.bushings.bushing import LinearBushingRollPitchYaw
from flexure.blocks.math import rotation_about
from flexure.blocks.models.reading.links import (
    BOUNDLESS,
    Loader,
    Unphysical,
    add_friction,
    loose_bases,
    new_joint,
    outermost,
    set_limits,
)
from flexure.blocks.models.reading.visuals import folder_of
from flexure.blocks.models.reading.xml_elements import Element, plant_name
from flexure.blocks.models.urdf.urdf_visuals import UrdfVisuals, origin_pose
from flexure.blocks.multibody.bodies.bodies import Frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.constraints import GearPair
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallRpyJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, quoted, suggestion
from flexure.diagrams.values.arrays import Array, FloatArray

#: What becomes of a robot that no joint connects to the world.
Base: TypeAlias = Literal["weld", "free"]

_X = np.array([1.0, 0.0, 0.0])

_JOINT_TYPES = (
    *("revolute", "continuous", "prismatic", "fixed", "floating", "planar"),
    *("ball", "screw", "universal"),
)

_WITHOUT_AXIS = ("fixed", "floating", "ball", "universal")

#: Elements of a robot: a plant of so many would take minutes and gigabytes.
_MOST = 100_000

#: Elements that change the motion of a robot in ways that plants do not have.
_IMPOSSIBLE = {"loop_joint": "joints without loops", "drake:tendon_constraint": "no tendons"}


def load_urdf(
    source: str | Path,
    *,
    name: str | None = None,
    gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
    base: Base = "weld",
    unphysical: Unphysical = "refuse",
) -> PlantBuilder:
    """Read a robot from a URDF file into a new builder.

    You can add more to the builder.

    Parameters
    ----------
    source : str or Path
        Name of a file, or the text itself: what contains ``<`` is no name.
    name : str, optional
        Name of the plant and of the model instance of its bodies; that of the robot if omitted.
    gravity : array_like, shape (3,)
        Acceleration of free fall in the world in m/s².
    base : {"weld", "free"}
        What becomes of a link that is the child of no joint, unless it is connected to the link
        ``world``: it is welded to the world, where it has the identity as its pose, or it can move
        freely.
    unphysical : {"refuse", "repair"}
        What becomes of moments of inertia that no body can have, as dummies in files of robots
        often are: they are refused, or the small ones are raised until a body can have them.
        Moments of a link without mass become zero. The attribute ``left_out`` of the builder lists
        them.

    Returns
    -------
    PlantBuilder
        It has the bodies, joints and frames of the file under their names, with ``_`` for
        characters that names in plants cannot have, such as dots, and before a first digit.

    Raises
    ------
    DeclarationError
        When the file cannot be read, something is missing in it or impossible, or it asks for
        something that plants do not have, such as ``loop_joint``. The error names the element, its
        line and the file.
    UnknownNameError
        When a link, joint or frame is referred to that does not exist.
    MissingExtraError
        When lxml is not installed.

    Warns
    -----
    UserWarning
        When something in the file is left out: elements and attributes that are not understood,
        collisions, a transmission to a fixed joint, inertia of the world, a visual that cannot be
        drawn. The attribute ``left_out`` of the builder lists all of it with the lines.

    See Also
    --------
    load_sdf : Read an SDF file.
    load_mjcf : Read an MJCF file.
    save_urdf : Save a plant as URDF.

    Notes
    -----
    Read are ``link`` with ``inertial``; ``joint`` of the types revolute, continuous, prismatic,
    fixed, floating and planar with ``origin``, ``axis``, ``limit`` and ``dynamics``; and simple
    ``transmission``, each of which becomes an actuator with the name of its ``actuator``. A
    ``friction`` becomes a `JointFriction` with the name ``<joint>_friction``, which changes its
    direction within 0.01 rad/s, or m/s, a parameter. A ``mimic`` of a joint becomes a `GearPair`
    with the name ``<joint>_mimic``: call `Plant.assemble` where it has an offset. A ``visual`` with
    a box, a cylinder, a sphere or a mesh of the format STL is what its link looks like, in the
    color of its ``material``; other meshes are not drawn. Files of meshes are looked for beside
    that of the robot, and those of ``package://name/`` also in the folders of that name around it.
    ``safety_controller``, ``calibration`` and ``hardwareInterface`` have no importance to the
    motion, and are passed over. A robot can have up to 100 000 links, joints and other elements.

    A link without ``inertial`` has no mass. Limits are only stored; `JointStop` makes those of
    positions act. Limits that are not given, or of 10¹⁶ and more, are infinite. The effort of a
    ``limit`` becomes that of the actuators of the joint; zero counts as not given. A
    ``mechanicalReduction`` becomes the gear ratio, which matters to the inertia of the rotor alone,
    as actuators exert their torque on the joint.

    Of Drake's elements these are read: ``drake:joint`` with the types ball, screw and universal,
    too; ``drake:acceleration`` of ``limit``; ``drake:rotor_inertia`` and ``drake:gear_ratio`` of
    ``actuator``; ``frame``; ``drake:linear_bushing_rpy``, ``drake:linear_spring_damper`` and
    ``drake:ball_constraint``. The last three are called ``bushing1``, ``bushing2``, ...,
    ``spring1``, ... and ``ball1``, ... unless they have an attribute ``name``. The frames of a
    joint are called ``<joint>_parent`` and ``<joint>_child``.

    Differences from Drake 1.51: the base is welded unless asked for otherwise; a floating joint is
    one between its parent and its child; limits of the angle of a continuous joint are ignored, as
    they should be; friction acts; inertia that is not physical and transmissions that are not
    simple are refused.

    Examples
    --------
    >>> door = load_urdf('''
    ... <robot name="door">
    ...   <link name="panel">
    ...     <inertial>
    ...       <origin xyz="0 0.3 0"/> <mass value="9"/>
    ...       <inertia ixx="0.6" iyy="0.4" izz="0.3" ixy="0" ixz="0" iyz="0"/>
    ...     </inertial>
    ...   </link>
    ...   <joint name="axis" type="revolute">
    ...     <parent link="world"/> <child link="panel"/> <axis xyz="0 0 1"/>
    ...     <limit lower="0" upper="1.6" effort="30" velocity="5"/>
    ...   </joint>
    ... </robot>''').build()
    >>> door.calc_mass_matrix(door.create_default_context())
    array([[1.11]])
    """
    attempt = "Cannot load a URDF file"
    one_of(base, get_args(Base), "base", attempt, error=DeclarationError)
    robot = outermost(source, "robot", unphysical, attempt)
    title = robot.plant_name() if name is None else name
    builder = PlantBuilder(title, gravity=gravity)
    loader = _Loader(builder, UrdfVisuals(robot, folder_of(source)), unphysical)
    loader.load(robot)
    if base == "weld":
        loader.weld_bases()
    return loader.finish(robot)


class _Loader(Loader):
    """Adds the elements of a robot to a builder."""

    def __init__(self, builder: PlantBuilder, visuals: UrdfVisuals, unphysical: Unphysical) -> None:
        super().__init__(builder, visuals, unphysical)
        self._frames: dict[str, Frame] = {}
        self._joints: dict[str, Joint] = {}
        self._efforts: dict[str, float] = {}

    def load(self, robot: Element) -> None:
        """Add everything, in an order in which what is referred to comes first."""
        count = robot.num_children
        if count > _MOST:
            raise robot.refusal(expected=f"at most {_MOST} elements", found=f"{count} of them")
        robot.take_as_known("version")
        for element in robot.children():
            if element.tag in _IMPOSSIBLE or element.tag.startswith("xacro:"):
                raise element.refusal(
                    expected=_IMPOSSIBLE.get(element.tag, "a file that xacro has expanded"),
                    found=f"<{element.tag}>",
                )
        for tags, add in (
            (["link"], self._add_link),
            (["joint", "drake:joint"], self._add_joint),
            (["joint", "drake:joint"], self._add_mimic),
            (["joint", "drake:joint"], self._add_friction),
            (["transmission"], self._add_transmission),
            (["frame", "drake:frame"], self._add_frame),
        ):
            for element in robot.children(*tags):
                add(element)
        for number, element in enumerate(robot.children("drake:linear_bushing_rpy"), start=1):
            self._add_bushing(element, f"bushing{number}")
        for number, element in enumerate(robot.children("drake:linear_spring_damper"), start=1):
            self._add_spring(element, f"spring{number}")
        for number, element in enumerate(robot.children("drake:ball_constraint"), start=1):
            self._add_ball(element, f"ball{number}")

    def weld_bases(self) -> None:
        """Weld what hangs together, and is not connected to the world, to the world."""
        for body in loose_bases(self.builder):
            weld = WeldJoint(f"world_welds_to_{body.name}", self.builder.world, body)
            self.builder.add_joint(weld)

    # Links and joints ------------------------------------------------------------------------

    def _add_link(self, link: Element) -> None:
        name = link.text("name")
        inertial = link.child("inertial")
        shape = self.visuals.shape_of(link)
        if name == "world":
            self.builder.add_shape(self.builder.world, shape)
            if inertial is not None:
                self.left_out.add(f"{inertial} is left out: the world has no inertia")
                inertial.pass_over()
            return
        inertia = SpatialInertia(0.0) if inertial is None else self._inertia(inertial)
        if shape.primitives:
            inertia = inertia.with_shape(shape)
        with link.blamed():
            self._bodies[name] = self.builder.add_body(
                link.plant_name(), inertia, model_instance=self.builder.name
            )

    def _inertia(self, inertial: Element) -> SpatialInertia:
        """Return the inertia of a link."""
        mass = inertial.required("mass").number("value")
        inertia = inertial.required("inertia")
        moments = [inertia.number(key) for key in ("ixx", "iyy", "izz")]
        others = [inertia.number(key, 0.0) for key in ("ixy", "ixz", "iyz")]
        pose = origin_pose(inertial.child("origin"))
        return self._inertia_of(inertial, mass, np.array([*moments, *others]), pose)

    def _add_joint(self, element: Element) -> None:
        name = element.plant_name()
        element.pass_over("safety_controller", "calibration")
        parent = self._find(element.required("parent"), "link", self._bodies)
        child = self._find(element.required("child"), "link", self._bodies)
        kind = element.text("type")
        axis = _axis(element, kind)
        # Planar joints move across their z axis, so their frames are turned on both bodies.
        R_BM = _turn_from_z(axis) if kind == "planar" else np.eye(3)
        X_PB = origin_pose(element.child("origin"))
        with element.blamed():
            F = self.builder.add_frame(f"{name}_parent", parent, (X_PB.R @ R_BM, X_PB.p))
            M = self.builder.add_frame(f"{name}_child", child, (R_BM, np.zeros(3)))
        own = element.text("name")
        self._frames |= {f"{own}_parent": F, f"{own}_child": M}
        joint = _make_joint(element, kind, name, F, M, axis)
        self._read_dynamics(element, joint)
        self._read_limits(element, joint, has_positions=kind != "continuous")
        with element.blamed():
            self._joints[own] = self.builder.add_joint(joint)

    def _add_mimic(self, element: Element) -> None:
        """Couple a joint to the one that it follows: q = multiplier q' + offset."""
        for mimic in (element.child(tag) for tag in ("mimic", "drake:mimic")):
            if mimic is None:
                continue
            joint = self._joints[element.text("name")]
            followed = self._find(mimic, "joint", self._joints)
            multiplier, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
            with mimic.blamed():
                gear = GearPair(f"{joint.name}_mimic", joint, followed, multiplier, offset)
                self.builder.add_constraint(gear)

    def _read_dynamics(self, element: Element, joint: Joint) -> None:
        dynamics = element.child("dynamics")
        if dynamics is None or joint.num_velocities == 0:
            return
        sizes = sorted({1, joint.num_velocities})
        damping = dynamics.numbers("damping", *sizes, default=np.zeros(1))
        with dynamics.blamed():
            joint.default_damping_vector = damping if damping.size > 1 else damping[0]

    def _add_friction(self, element: Element) -> None:
        """Add the dry friction of a joint."""
        joint, dynamics = self._joints[element.text("name")], element.child("dynamics")
        if dynamics is None:
            return
        if joint.num_velocities == 0:
            dynamics.pass_over()
            return
        friction = dynamics.number("friction", 0.0)
        with dynamics.blamed():
            add_friction(self.builder, joint, friction)

    def _read_limits(self, element: Element, joint: Joint, *, has_positions: bool) -> None:
        """Set the limits of a joint with one velocity."""
        limit = element.child("limit")
        if limit is None or joint.num_velocities == 0:
            if limit is not None:
                limit.pass_over()
            return
        if joint.num_velocities != 1:
            return
        lower, upper = limit.number("lower", -np.inf), limit.number("upper", np.inf)
        effort = limit.number("effort", np.inf)
        if effort < 0.0:
            raise limit.refusal(expected="an effort >= 0", found=limit.text("effort"))
        self._efforts[joint.name] = effort if 0.0 < effort < BOUNDLESS else np.inf
        with limit.blamed():
            set_limits(
                joint,
                positions=(lower, upper) if has_positions else None,
                velocity=limit.number("velocity", np.inf),
                acceleration=limit.number("drake:acceleration", np.inf),
            )

    # Motors ----------------------------------------------------------------------------------

    def _add_transmission(self, element: Element) -> None:
        kind_element = element.child("type")
        kind = element.text("type") if kind_element is None else kind_element.content
        if "SimpleTransmission" not in kind:
            raise element.refusal(expected="the type SimpleTransmission", found=repr(kind))
        driven = element.required("joint")
        joint = self._find(driven, "name", self._joints)
        actuator = element.required("actuator")
        name = actuator.plant_name()
        for each in (driven, actuator):
            each.pass_over("hardwareInterface")
        if joint.num_velocities == 0:
            actuator.pass_over()
            self.left_out.add(f"{actuator} is left out: the joint '{joint.name}' is fixed")
            return
        actuated, geared = (
            each.number_of("mechanicalReduction", 1.0) for each in (actuator, element)
        )
        ratio = actuated * geared
        gear, rotor = actuator.child("drake:gear_ratio"), actuator.child("drake:rotor_inertia")
        with actuator.blamed():
            self.builder.add_actuator(
                name,
                joint,
                gear_ratio=ratio if gear is None else gear.number("value"),
                rotor_inertia=0.0 if rotor is None else rotor.number("value"),
                effort_limit=self._efforts.get(joint.name, np.inf),
            )

    # Frames and force elements ---------------------------------------------------------------

    def _add_frame(self, element: Element) -> None:
        element.refuse_other_attributes("name", "link", "xyz", "rpy")
        name = element.text("name")
        if name in self._bodies:
            raise element.refusal(expected="a name that no link has", found=repr(name))
        body = self._find(element, "link", self._bodies)
        with element.blamed():
            frame = self.builder.add_frame(element.plant_name(), body, origin_pose(element))
        self._frames[name] = frame

    def _add_bushing(self, element: Element, name: str) -> None:
        places = ChainMap[str, Any](self._bodies, self._frames)
        frame_a, frame_c = (
            self._find(element.required(f"drake:bushing_frame{letter}"), "name", places)
            for letter in "AC"
        )
        constants: dict[str, Any] = {
            key: element.required(f"drake:bushing_{key}").vector("value")
            for key in ("torque_stiffness", "torque_damping", "force_stiffness", "force_damping")
        }
        with element.blamed():
            self.builder.add_force_element(
                LinearBushingRollPitchYaw(
                    plant_name(element.text_or("name", name)), frame_a, frame_c, **constants
                )
            )

    def _add_spring(self, element: Element, name: str) -> None:
        def required(key: str) -> Element:
            return element.required(f"drake:linear_spring_damper_{key}")

        body_a, body_b = (
            self._find(required(key), "name", self._bodies) for key in ("body_A", "body_B")
        )
        p_ap, p_bq = (required(key).vector("value") for key in ("p_AP", "p_BQ"))
        constants = {
            key: required(key).number("value") for key in ("free_length", "stiffness", "damping")
        }
        with element.blamed():
            self.builder.add_force_element(
                LinearSpringDamper(
                    plant_name(element.text_or("name", name)),
                    body_a,
                    p_ap,
                    body_b,
                    p_bq,
                    **constants,
                )
            )

    def _add_ball(self, element: Element, name: str) -> None:
        """Let two points stay together."""
        frames = []
        name = plant_name(element.text_or("name", name))
        for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
            owner = element.required(f"drake:ball_constraint_{body}")
            place = element.required(f"drake:ball_constraint_{point}").vector("value")
            frames.append(Frame(f"{name}_{body}", self._find(owner, "name", self._bodies), place))
        with element.blamed():
            self.builder.add_loop_joint(BallRpyJoint(name, *frames))

    def _find(self, element: Element, attribute: str, known: Mapping[str, Any]) -> Any:
        """Return what an attribute refers to."""
        name = element.text(attribute)
        if name not in known:
            raise UnknownNameError(
                f"Cannot load {element}",
                expected=f"the name of something that exists in the attribute {attribute!r}",
                found=repr(name),
                remedy=suggestion(name, known),
            )
        return known[name]


def _axis(joint: Element, kind: str) -> FloatArray:
    """Return the direction of the axis of a joint, which is x unless it is given."""
    element = joint.child("axis")
    if element is not None and kind in _WITHOUT_AXIS:
        element.pass_over()
        return _X
    axis = _X if element is None else element.vector("xyz")
    if element is not None and not axis.any():
        raise element.refusal(expected="an axis that is not zero", found="zeros")
    return axis


def _turn_from_z(axis: FloatArray) -> Array:
    """Return the smallest rotation that turns z into the direction of an axis."""
    x, y, z = axis
    sine = np.hypot(x, y)
    about = np.array([-y, x, 0.0]) / sine if sine > 0.0 else _X
    return rotation_about(about, np.arctan2(sine, z))


def _make_joint(
    element: Element, kind: str, name: str, F: Frame, M: Frame, axis: FloatArray
) -> Joint:
    """Return a joint without damping and limits."""
    pitch = 0.0
    if kind == "screw":
        pitch = element.required("drake:screw_thread_pitch").number("value")
    if kind not in _JOINT_TYPES:
        raise element.refusal(expected=f"one of the types {quoted(_JOINT_TYPES)}", found=repr(kind))
    with element.blamed():
        return new_joint(kind, name, F, M, axis, pitch)
