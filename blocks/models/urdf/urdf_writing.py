"""URDF files from plants: what the format can hold, and a list of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from flexure.blocks.forces.on_joints.joint_friction import JointFriction
from flexure.blocks.math import RigidTransform, compose_transforms
from flexure.blocks.models.reading.ignored_elements import LeftOut
from flexure.blocks.models.reading.joint_parts import BOUNDLESS, TRANSITION_VELOCITY
from flexure.blocks.models.urdf.urdf_shapes import add_visuals, numbers_text, origin_element
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.constraints import Coupling
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.quaternion_floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.rpy_floating import RpyFloatingJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams.checks.arguments import file_path, require
from flexure.diagrams.checks.errors import DeclarationError, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.values.handles import start_context

_ATTEMPT = "Cannot save a URDF file"


class _Kind(NamedTuple):
    """How a kind of joint is written.

    Attributes
    ----------
    name : str
        Its type in URDF.
    axis : str, optional
        The axis of a kind that always has the same.
    can_turn_around : bool
        Whether it is the same joint from the child to the parent, with the opposite axis.
    has_limits : bool
        Whether the format has limits for it.
    """

    name: str
    axis: str | None = None
    can_turn_around: bool = False
    has_limits: bool = False


_KINDS: dict[type[Joint], _Kind] = {
    RevoluteJoint: _Kind("revolute", can_turn_around=True, has_limits=True),
    PrismaticJoint: _Kind("prismatic", can_turn_around=True, has_limits=True),
    WeldJoint: _Kind("fixed", can_turn_around=True),
    PlanarJoint: _Kind("planar", axis="0 0 1"),
    QuaternionFloatingJoint: _Kind("floating"),
    RpyFloatingJoint: _Kind("floating"),
}
_STANDARD_GRAVITY = (0.0, 0.0, -9.81)


@answers_other_words
def save_urdf(plant: Plant, path: str | Path, *, context: Context | None = None) -> tuple[str, ...]:
    """Save a plant as URDF, and warn of everything that URDF cannot express.

    Parameters
    ----------
    plant : Plant
        The plant.
    path : str or Path
        Where to save the file. Meshes are saved beside it, as ``<file>_<link>_1.stl`` and so on.
    context : Context, optional
        Values of parameters, such as masses and dampings; the default ones when omitted.

    Returns
    -------
    tuple of str
        What URDF cannot hold, each thing by its name; a warning has the same.

    Raises
    ------
    DeclarationError
        When a joint is of a kind that URDF does not have, such as a ball joint, so that a part of
        the mechanism would be lost. The error names all of them, and nothing is written.
    ContextError
        When the context is not one of the plant.

    Warns
    -----
    UserWarning
        When something is left out: force elements, constraints, external forces, positions at
        which joints start, gravity other than 9.81 m/s² along -z, limits that differ in their
        directions, shapes that URDF does not have.

    See Also
    --------
    load_urdf : Read a URDF file.

    Notes
    -----
    Written are bodies as links; joints that turn about an axis, slide, are fixed, planar or
    floating, with damping and limits; actuators as simple transmissions; a `Coupling` or `GearPair`
    of two joints as ``mimic``; frames; a `JointFriction` without static friction as ``friction``;
    what bodies look like as ``visual``. The inertia of a rotor and frames are written as Drake has
    them, which other readers pass over.

    In URDF the frame of a link is that of the joint that carries it: where a plant has other frames
    there, poses are given anew, and the body that `load_urdf` returns has its origin at the joint.
    Joints, their coordinates and the mass matrix stay the same. A joint whose parent is farther
    from the world than its child is written the other way around, with the opposite axis.

    Examples
    --------
    >>> import flexure as fx, tempfile, pathlib
    >>> builder = fx.PlantBuilder("gate")
    >>> leaf = builder.add_body("leaf", fx.SpatialInertia.solid_box(12.0, size=(1.0, 0.05, 0.8)))
    >>> pivot = builder.add_joint(
    ...     fx.RevoluteJoint(
    ...         "pivot",
    ...         builder.world,
    ...         fx.Frame("edge", leaf, (-0.5, 0.0, 0.0)),
    ...         axis=(0, 0, 1),
    ...         damping=0.8,
    ...     )
    ... )
    >>> gate = builder.build()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "gate.urdf")
    ...     _ = save_urdf(gate, path)
    ...     again = fx.load_urdf(path).build()
    >>> [
    ...     float(each.calc_mass_matrix(each.create_default_context())[0, 0])
    ...     for each in (gate, again)
    ... ]
    [4.0025, 4.0025]
    """
    require(
        isinstance(plant, Plant), plant, _ATTEMPT, "a plant, as PlantBuilder.build() returns it"
    )
    name = Path(file_path(path, _ATTEMPT))
    writer = _Writer(plant, start_context(plant, context, _ATTEMPT), name)
    robot = writer.robot()
    ET.indent(robot)
    with replacing(name) as stream:
        stream.write('<?xml version="1.0"?>\n')
        stream.write(ET.tostring(robot, encoding="unicode") + "\n")
    if writer.left_out.texts:
        warn(f"URDF cannot hold all of '{plant.name}'. Left out: {writer.left_out.summary()}.")
    return writer.left_out.texts


class _Writer:
    """Makes the elements of a robot."""

    def __init__(self, plant: Plant, context: Context, path: Path) -> None:
        self.plant, self.context, self.path = plant, context, path
        self.left_out = LeftOut()
        mobilizers = plant.tree.topology.mobilizers
        self._mobilizers = [each for each in mobilizers if not self._body(each.outboard).is_node]
        self._frames = {each.outboard: each.X_MB for each in mobilizers}  # X_LB of links
        self._frames[0] = RigidTransform(np.eye(3), np.zeros(3))

    def _body(self, number: int) -> Body:
        return self.plant.bodies[number]

    def robot(self) -> ET.Element:
        """Return the robot."""
        self._refuse_joints()
        robot = ET.Element("robot", name=self.plant.name)
        robot.set("xmlns:drake", "http://drake.mit.edu")
        links = [self._link(number, body) for number, body in enumerate(self.plant.bodies)]
        robot.extend(link for link in links if link is not None)
        joints = {each.joint: self._joint(each) for each in self._mobilizers}
        robot.extend(joints.values())
        robot.extend(map(self._transmission, self.plant.actuators))
        robot.extend(self._other_frames())
        self._add_friction(joints)
        self._add_mimics(joints)
        self._list_the_rest()
        return robot

    def _refuse_joints(self) -> None:
        """Refuse joints that URDF cannot hold, all of them at once."""
        wrong = []
        for each in self._mobilizers:
            joint = each.joint
            kind = _KINDS.get(type(joint))
            if kind is None:
                wrong.append(f"the {joint.type_name} joint '{joint.name}'")
            elif each.is_reversed and not kind.can_turn_around:
                wrong.append(f"the {joint.type_name} joint '{joint.name}' from child to parent")
            elif self._body(each.inboard).is_node:
                wrong.append(f"joint '{joint.name}' on the inside of a force element")
        if wrong:
            raise DeclarationError(
                f"Cannot save '{self.plant.name}' as URDF",
                expected="joints that URDF has: revolute, prismatic, weld, planar and floating",
                found="; ".join(wrong),
                remedy="Replace them, such as a ball joint by three revolute ones",
            )

    # Links -----------------------------------------------------------------------------------

    def _link(self, number: int, body: Body) -> ET.Element | None:
        """Return a link, with what it weighs and looks like."""
        if body.is_node:
            return None
        link = ET.Element("link", name=body.name)
        X_LB = self._frames[number]
        if number and (mass := float(body.mass.get(self.context))) > 0.0:
            inertial = ET.SubElement(link, "inertial")
            com = X_LB.R @ body.com.get(self.context) + X_LB.p
            ET.SubElement(inertial, "origin", xyz=numbers_text(com))
            ET.SubElement(inertial, "mass", value=numbers_text(mass))
            xx, yy, zz, xy, xz, yz = mass * body.unit_inertia.get(self.context)
            about_B = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            turned = X_LB.R @ about_B @ X_LB.R.T
            entries = {
                f"i{'xyz'[i]}{'xyz'[j]}": numbers_text(turned[i, j])
                for i in range(3)
                for j in range(i, 3)
            }
            ET.SubElement(inertial, "inertia", entries)
        add_visuals(link, body, X_LB, self.path, self.left_out)
        return link

    # Joints ----------------------------------------------------------------------------------

    def _joint(self, mobilizer: Mobilizer) -> ET.Element:
        """Return a joint, from the body that is nearer to the world."""
        joint, kind = mobilizer.joint, _KINDS[type(mobilizer.joint)]
        name = kind.name
        limits = [
            *joint.position_limits,
            *(joint.velocity_lower_limits, joint.velocity_upper_limits),
            *(joint.acceleration_lower_limits, joint.acceleration_upper_limits),
        ]
        is_limited = bool(np.any(np.isfinite(np.concatenate(limits))))
        if name == "revolute" and not np.any(np.isfinite(joint.position_limits)):
            name = "continuous"
        element = ET.Element("joint", name=joint.name, type=name)
        for tag, number in (("parent", mobilizer.inboard), ("child", mobilizer.outboard)):
            ET.SubElement(element, tag, link=self._body(number).name)
        origin = compose_transforms(self._frames[mobilizer.inboard], mobilizer.X_PF)
        element.append(origin_element(origin))
        if joint.axis is not None:
            axis = -joint.axis if mobilizer.is_reversed else joint.axis
            ET.SubElement(element, "axis", xyz=numbers_text(axis))
        elif kind.axis is not None:
            ET.SubElement(element, "axis", xyz=kind.axis)
        if kind.has_limits:
            ET.SubElement(element, "limit", self._limit(joint, name))
        elif is_limited:
            self.left_out.add(f"the limits of the {joint.type_name} joint '{joint.name}'")
        damping = joint.damping.get(self.context) if joint.num_velocities else np.zeros(0)
        if np.any(damping):
            same = damping if np.ptp(damping) else damping[:1]
            ET.SubElement(element, "dynamics", damping=numbers_text(same))
        return element

    def _limit(self, joint: Joint, kind: str) -> dict[str, str]:
        """Return the limits of a joint with one coordinate."""
        limit: dict[str, Any] = {}
        if kind != "continuous":
            (limit["lower"],), (limit["upper"],) = joint.position_limits
        efforts = {each.effort_limit for each in self.plant.actuators if each.joint is joint}
        limit["effort"] = max(efforts, default=np.inf)
        if len(efforts) > 1:
            self.left_out.add(f"that the motors on joint '{joint.name}' have different limits")
        for what, bounds in (
            ("velocity", (joint.velocity_lower_limits, joint.velocity_upper_limits)),
            (
                "drake:acceleration",
                (joint.acceleration_lower_limits, joint.acceleration_upper_limits),
            ),
        ):
            pair = tuple(float(each[0]) for each in bounds)
            if pair[0] != -pair[1]:
                self.left_out.add(f"that the {what} of joint '{joint.name}' is limited to {pair}")
            limit[what] = max(map(abs, pair))
        if limit["drake:acceleration"] == np.inf:
            del limit["drake:acceleration"]
        return {
            key: numbers_text(np.clip(value, -BOUNDLESS, BOUNDLESS)) for key, value in limit.items()
        }

    def _transmission(self, motor: Any) -> ET.Element:
        """Return a motor on a joint."""
        element = ET.Element("transmission", name=f"{motor.name}_transmission")
        ET.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
        ET.SubElement(element, "joint", name=motor.joint.name)
        actuator = ET.SubElement(element, "actuator", name=motor.name)
        ratio = float(motor.gear_ratio.get(self.context))
        inertia = float(motor.rotor_inertia.get(self.context))
        if ratio != 1.0:
            ET.SubElement(actuator, "mechanicalReduction").text = numbers_text(ratio)
        if inertia:
            ET.SubElement(actuator, "drake:rotor_inertia", value=numbers_text(inertia))
        return element

    def _other_frames(self) -> Iterator[ET.Element]:
        """Yield the frames that are not those of joints, as Drake has them."""
        of_joints = {each.frame_on_parent for each in self.plant.joints}
        of_joints |= {each.frame_on_child for each in self.plant.joints}
        for frame in self.plant.frames:
            number = frame.body.number
            if frame not in of_joints and number in self._frames:
                element = origin_element(compose_transforms(self._frames[number], frame.X_BF))
                element.tag = "frame"
                element.attrib = {"name": frame.name, "link": frame.body.name, **element.attrib}
                yield element

    def _add_friction(self, joints: dict[Joint, ET.Element]) -> None:
        """Write friction into the joints that have it, and list all other force elements."""
        for element in self.plant.force_elements:
            if not _write_friction(element, self.context, joints, self.left_out):
                self.left_out.add(f"the {type(element).__name__} '{element.name}'")

    def _add_mimics(self, joints: dict[Joint, ET.Element]) -> None:
        """Write couplings of two joints into the first of them, and list all other constraints."""
        inside = self.context[self.plant.tree.name]
        for each in self.plant.constraints:
            if not _write_mimic(each, inside, joints):
                self.left_out.add(f"the {type(each).__name__} '{each.name}'")

    # What is left ----------------------------------------------------------------------------

    def _list_the_rest(self) -> None:
        """List what no element can hold."""
        for text in self._rest():
            self.left_out.add(text)

    def _rest(self) -> Iterator[str]:
        gravity = self.plant.gravity.get(self.context)
        if not np.array_equal(gravity, _STANDARD_GRAVITY):
            yield f"the gravity {gravity.tolist()}, which load_urdf takes as an argument"
        for each in self._mobilizers:
            joint = each.joint
            if not np.array_equal(joint.default_positions, joint.zero_positions()):
                yield f"the positions at which joint '{joint.name}' starts"
            if joint.num_velocities and joint.locked.get(self.context):
                yield f"that joint '{joint.name}' is locked"
        actuators = {each.name for each in self.plant.actuators}
        for port in self.plant.input_ports:
            if port.name not in actuators and port.name != "generalized_force":
                yield f"the input '{port.name}'"


# What is written into the elements of joints: a kind of force element or constraint that URDF can
# hold is registered with one of these, which return whether they have written it.


@singledispatch
def _write_friction(
    element: ForceElement, context: Context, joints: dict[Joint, ET.Element], left_out: LeftOut
) -> bool:
    return False


@_write_friction.register
def _(
    element: JointFriction, context: Context, joints: dict[Joint, ET.Element], left_out: LeftOut
) -> bool:
    owner, law = joints[element.joint], element.law(context)
    dynamics = owner.find("dynamics")
    if np.ndim(law.coulomb_friction) or (dynamics is not None and dynamics.get("friction")):
        return False
    if dynamics is None:
        dynamics = ET.SubElement(owner, "dynamics")
    dynamics.set("friction", numbers_text(law.coulomb_friction))
    damping = float(dynamics.get("damping", "0")) + float(law.viscous_friction)
    dynamics.set("damping", numbers_text(damping))
    what = f"the {type(element).__name__} '{element.name}'"
    if law.static_friction != law.coulomb_friction:
        left_out.add(f"static friction of {what}")
    if law.transition_velocity != TRANSITION_VELOCITY:
        left_out.add(f"the transition velocity of {what}")
    return True


@singledispatch
def _write_mimic(constraint: Constraint, inside: Any, joints: dict[Joint, ET.Element]) -> bool:
    return False


@_write_mimic.register
def _(constraint: Coupling, inside: Any, joints: dict[Joint, ET.Element]) -> bool:
    pair = constraint.joints
    if len(pair) != 2 or any(joint.num_positions != 1 for joint in pair):
        return False
    follower = joints[pair[0]]
    if follower.find("mimic") is not None:
        return False
    (first, second), offset = map(np.asarray, constraint.equation(inside))
    ET.SubElement(
        follower,
        "mimic",
        joint=pair[1].name,
        multiplier=numbers_text(-second / first),
        offset=numbers_text(offset / first),
    )
    return True
