"""SDF files from plants: what the format can hold, and a list of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import numpy as np

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    relative_pose,
    rpy_from_rotation,
)
from flexure.blocks.models.writing.plant_writer import (
    JointKind,
    PlantWriter,
    color_shares,
    numbers_text,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_shape import Primitive
from flexure.blocks.multibody.constraints import Coupling
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallQuaternionJoint, BallRpyJoint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint, RpyFloatingJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.joints.universal import UniversalJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.option_names import answers_other_words

_STANDARD_GRAVITY = (0.0, 0.0, -9.81)
_CLOSED = 1e-9  # greatest error in m and rad of a loop that the file closes
_ORIGIN = RigidTransform(np.eye(3), np.zeros(3))


@answers_other_words
def save_sdf(plant: Plant, path: str | Path, *, context: Context | None = None) -> tuple[str, ...]:
    """Save a plant as SDF, and warn of everything that SDF cannot express.

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
        What SDF cannot hold, each thing by its name; a warning has the same.

    Raises
    ------
    DeclarationError
        When a joint is of a kind that SDF does not have, such as a planar joint, or a link, a joint
        and a frame share a name, which SDF forbids. The error names all of them, and nothing is
        written.
    ContextError
        When the context is not one of the plant.

    Warns
    -----
    UserWarning
        When something is left out: force elements other than `JointSpring` and `JointFriction`,
        constraints of other kinds, external forces, positions at which joints start, limits that
        differ in their directions or concern accelerations, shapes that SDF does not have.

    See Also
    --------
    load_sdf : Read an SDF file.
    save_mjcf : Save a plant as MJCF.
    save_urdf : Save a plant as URDF.

    Notes
    -----
    The file is SDF 1.9. Written are bodies as links, with what they look like; revolute,
    prismatic, screw, universal and ball joints and welds; joints that float in the world as links
    without a joint; damping, friction, springs and limits; a `Coupling` or `GearPair` of two joints
    as ``mimic``; the motor of a joint as its ``effort``, with its rotor in Drake's elements;
    frames; gravity other than 9.81 m/s² along -z, as that of a world.

    A `LoopJoint` becomes a joint, if its loop is closed where all joints are at zero, since SDF
    places joints there. Gazebo and `load_sdf` close such loops; Drake refuses them.

    Examples
    --------
    >>> import flexure as fx, tempfile, pathlib
    >>> builder = fx.PlantBuilder("press")
    >>> ram = builder.add_body("ram", fx.SpatialInertia.solid_box(12.0, size=(0.1, 0.1, 0.8)))
    >>> nut = fx.ScrewJoint("nut", builder.world, ram, screw_pitch=0.005)
    >>> _ = builder.add_joint(nut)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "press.sdf")
    ...     left_out = save_sdf(builder.build(), path)
    ...     text = path.read_text()
    >>> left_out, "<screw_thread_pitch>0.005" in text
    ((), True)
    """
    return _Writer.save(plant, path, context)


class _Writer(PlantWriter):
    """Makes the elements of a model."""

    FORMAT = "SDF"
    KINDS: ClassVar[Mapping[type[Joint], JointKind]] = {
        RevoluteJoint: JointKind("revolute", can_turn_around=True, has_axes=True),
        PrismaticJoint: JointKind("prismatic", can_turn_around=True, has_axes=True),
        ScrewJoint: JointKind("screw", can_turn_around=True, has_axes=True),
        UniversalJoint: JointKind("universal", has_axes=True),
        WeldJoint: JointKind("fixed", can_turn_around=True),
        BallQuaternionJoint: JointKind("ball"),
        BallRpyJoint: JointKind("ball"),
        QuaternionFloatingJoint: JointKind("floating"),
        RpyFloatingJoint: JointKind("floating"),
    }

    def problems(self, mobilizer: Mobilizer) -> Iterator[str]:
        """Yield why a joint cannot be written."""
        yield from super().problems(mobilizer)
        joint = mobilizer.joint
        kind = self.KINDS.get(type(joint))
        if kind is None:
            return
        if kind.name == "floating" and mobilizer.inboard:
            yield f"the {joint.type_name} joint '{joint.name}' on a body that is not the world"
        taken = {each.name for each in self.plant.bodies}
        taken |= {each.name for each in self.other_frames() if each.name not in taken}
        if kind.name != "floating" and joint.name in taken:
            yield f"joint '{joint.name}', which shares its name with a link or a frame"

    def root(self) -> ET.Element:
        """Return the file, with a world if there is a gravity to be told."""
        root = ET.Element("sdf", version="1.9")
        root.set("xmlns:drake", "http://drake.mit.edu")
        owner, gravity = root, self.plant.gravity.get(self.context)
        if not np.array_equal(gravity, _STANDARD_GRAVITY):
            owner = ET.SubElement(root, "world", name=f"{self.plant.name}_world")
            ET.SubElement(owner, "gravity").text = numbers_text(gravity)
        model = ET.SubElement(owner, "model", name=self.plant.name)
        if self.plant.bodies[0].shape.primitives:
            self.left_out.add("what the world looks like")
        self._joints: dict[Joint, ET.Element] = {}
        for each in self.mobilizers:
            self._add_link(model, each)
        for each in self.mobilizers:
            if self.kind(each.joint).name != "floating":
                self._add_joint(model, each)
        for frame in self.other_frames():
            element = ET.SubElement(
                model, "frame", name=frame.name, attached_to=_model_frame(frame.body, "world")
            )
            element.append(_pose(frame.X_BF))
        self._model = model
        self.list_constraints()
        return root

    # Links -----------------------------------------------------------------------------------

    def _add_link(self, model: ET.Element, mobilizer: Mobilizer) -> None:
        """Add a link, at its joint or where it floats."""
        joint, body = mobilizer.joint, self.plant.bodies[mobilizer.outboard]
        link = ET.SubElement(model, "link", name=body.name)
        if self.kind(joint).name == "floating":
            X_PM = compose_transforms(mobilizer.X_PF, mobilizer.calc_pose(joint.default_positions))
            link.append(_pose(compose_transforms(X_PM, mobilizer.X_MB)))
            if np.any(self.carried[joint].damping):
                self.left_out.add(f"the damping of joint '{joint.name}'")
        else:
            link.append(_pose(mobilizer.X_MB, joint.name))
        mass, center, moments = self.inertia(body, _ORIGIN)
        inertial = ET.SubElement(link, "inertial")
        inertial.append(_pose(RigidTransform(np.eye(3), center)))
        ET.SubElement(inertial, "mass").text = numbers_text(mass)
        inertia = ET.SubElement(inertial, "inertia")
        for key, value in zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), moments, strict=True):
            ET.SubElement(inertia, key).text = numbers_text(value)
        for number, (shape, pose, color) in enumerate(self.shapes(body, _ORIGIN), start=1):
            visual = ET.SubElement(link, "visual", name=f"{body.name}_visual_{number}")
            visual.append(_pose(pose))
            ET.SubElement(visual, "geometry").append(shape)
            if color is not None:
                material = ET.SubElement(visual, "material")
                ET.SubElement(material, "diffuse").text = color_shares(color)

    def shape(self, part: Primitive, file: str) -> ET.Element | None:
        """Return a shape that SDF has; None of others."""
        size = part.size
        match part.kind:
            case "box":
                return _element("box", size=size)
            case "ellipsoid" if size[0] == size[1] == size[2]:
                return _element("sphere", radius=size[0])
            case "ellipsoid":
                return _element("ellipsoid", radii=size)
            case "tube" if size[0] == 0.0:
                return _element("cylinder", radius=size[1], length=size[2])
            case "capsule":
                return _element("capsule", radius=size[0], length=size[1])
            case "mesh":
                mesh = ET.Element("mesh")
                ET.SubElement(mesh, "uri").text = file
                return mesh
        return None

    # Joints ----------------------------------------------------------------------------------

    def _add_joint(self, model: ET.Element, mobilizer: Mobilizer) -> None:
        """Add a joint, from the body that is nearer to the world."""
        joint, kind = mobilizer.joint, self.kind(mobilizer.joint)
        carried = self.carried[joint]
        parent, child = (
            self.plant.bodies[number] for number in (mobilizer.inboard, mobilizer.outboard)
        )
        element = self._joint_element(
            model, joint, parent, child, mobilizer.X_PF, is_reversed=mobilizer.is_reversed
        )
        self._joints[joint] = element
        if not kind.has_axes:
            if np.any(carried.damping):
                self.left_out.add(f"the damping of the {joint.type_name} joint '{joint.name}'")
            sides = (
                getattr(joint, f"{what}_{side}_limits")
                for what in ("position", "velocity", "acceleration")
                for side in ("lower", "upper")
            )
            if np.any(np.isfinite(np.concatenate(list(sides)))):
                self.left_out.add(f"the limits of the {joint.type_name} joint '{joint.name}'")
            return
        self._add_motor(element, joint)
        effort = self.effort(joint)
        is_driven = any(each.joint is joint for each in self.plant.actuators)
        for k, axis in enumerate(element.findall("axis") + element.findall("axis2")):
            limit = ET.SubElement(axis, "limit")
            rates = joint.velocity_lower_limits[k], joint.velocity_upper_limits[k]
            if rates[0] != -rates[1]:
                self.left_out.add(
                    f"that the velocity of joint '{joint.name}' is limited to {rates}"
                )
            for key, value in (
                ("lower", joint.position_limits[0][k]),
                ("upper", joint.position_limits[1][k]),
                ("velocity", max(map(abs, rates))),
                ("effort", effort if is_driven else 0.0),
            ):
                if np.isfinite(value):
                    ET.SubElement(limit, key).text = numbers_text(value)
            dynamics = ET.SubElement(axis, "dynamics")
            for key, numbers in vars(carried).items():
                name = f"spring_{key}" if key == "stiffness" else key
                if numbers[k]:
                    ET.SubElement(dynamics, name).text = numbers_text(numbers[k])
        accelerations = joint.acceleration_lower_limits, joint.acceleration_upper_limits
        if np.any(np.isfinite(np.concatenate(accelerations))):
            self.left_out.add(f"the limits of the acceleration of joint '{joint.name}'")

    def _joint_element(
        self,
        model: ET.Element,
        joint: Joint,
        parent: Body,
        child: Body,
        X_PF: RigidTransform,
        *,
        is_reversed: bool = False,
    ) -> ET.Element:
        """Return a new joint at a frame of its parent, with its axes."""
        kind = self.kind(joint).name
        if kind == "revolute" and not np.any(np.isfinite(joint.position_limits)):
            kind = "continuous"
        element = ET.SubElement(model, "joint", name=joint.name, type=kind)
        element.append(_pose(X_PF, _model_frame(parent, "__model__")))
        ET.SubElement(element, "parent").text = parent.name
        ET.SubElement(element, "child").text = child.name
        axes = [joint.axis] if joint.axis is not None else []
        if kind == "universal":
            axes = [np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])]
        for tag, direction in zip(("axis", "axis2"), axes, strict=False):
            axis = ET.SubElement(element, tag)
            ET.SubElement(axis, "xyz").text = numbers_text(-direction if is_reversed else direction)
        if isinstance(joint, ScrewJoint):
            pitch = numbers_text(joint.screw_pitch)
            ET.SubElement(element, "screw_thread_pitch").text = pitch
        return element

    def _add_motor(self, element: ET.Element, joint: Joint) -> None:
        """Write the motor of a joint, whose name is that of the joint in SDF."""
        motors = [each for each in self.plant.actuators if each.joint is joint]
        for number, each in enumerate(motors):
            if number or each.name != joint.name:
                self.left_out.add(f"the name of the motor '{each.name}' on joint '{joint.name}'")
        if len(motors) == 1:
            ratio, inertia = motors[0].gear_ratio, motors[0].rotor_inertia
            for key, value in (("gear_ratio", ratio), ("rotor_inertia", inertia)):
                number_text = numbers_text(float(value.get(self.context)))
                ET.SubElement(element, f"drake:{key}").text = number_text
        elif motors:
            felt = sum(
                float(each.gear_ratio.get(self.context)) ** 2
                * float(each.rotor_inertia.get(self.context))
                for each in motors
            )
            ET.SubElement(element, "drake:rotor_inertia").text = numbers_text(felt)

    # Constraints -----------------------------------------------------------------------------

    def write_constraint(self, constraint: Constraint) -> bool:
        """Write a coupling of two joints into the first of them, or a loop as a joint."""
        if constraint.loop_joint is not None:
            return self._write_loop(constraint.loop_joint)
        pair = self.coupled(constraint) if isinstance(constraint, Coupling) else None
        if pair is None or any(joint.num_positions != 1 for joint, _ in pair[:2]):
            return False
        (follower, _), (leader, _), multiplier, offset = pair
        axis = self._joints[follower].find("axis")
        assert axis is not None
        if axis.find("mimic") is not None:
            return False
        mimic = ET.Element("mimic", joint=leader.name)
        axis.insert(1, mimic)
        for key, value in (("multiplier", multiplier), ("offset", offset), ("reference", 0.0)):
            ET.SubElement(mimic, key).text = numbers_text(value)
        return True

    def _write_loop(self, loop: Joint) -> bool:
        """Write a joint that closes a loop, if it does where all joints are at zero."""
        kind = self.KINDS.get(type(loop))
        F, M = loop.frame_on_parent, loop.frame_on_child
        if kind is None or kind.name == "floating" or loop.name in self._taken_names():
            return False
        poses = self._poses_at_zero()
        X_WF, X_WM = (compose_transforms(poses[self.number(f.body)], f.X_BF) for f in (F, M))
        X_FM = relative_pose(X_WF, X_WM)
        q = loop.nearest_positions(X_FM)
        nearest = loop.calc_pose(q)
        error = max(
            float(np.max(np.abs(np.asarray(nearest.R, dtype=float) - X_FM.R))),
            float(np.max(np.abs(np.asarray(nearest.p, dtype=float) - X_FM.p))),
        )
        is_turned = kind.name in ("screw", "universal") and np.max(np.abs(q)) > _CLOSED
        if error > _CLOSED or is_turned:
            return False
        X_PM = relative_pose(poses[self.number(F.body)], X_WM)
        self._joint_element(self._model, loop, F.body, M.body, X_PM)
        return True

    def _taken_names(self) -> set[str]:
        """Return the names in the model."""
        return {each.get("name", "") for each in self._model}

    def _poses_at_zero(self) -> dict[int, RigidTransform]:
        """Return the poses of links in the world of the file."""
        poses = {0: _ORIGIN}
        for each in self.mobilizers:
            joint = each.joint
            is_floating = self.kind(joint).name == "floating"
            q = joint.default_positions if is_floating else joint.zero_positions()
            X_WF = compose_transforms(poses[each.inboard], each.X_PF)
            X_WM = compose_transforms(X_WF, each.calc_pose(q))
            poses[each.outboard] = compose_transforms(X_WM, each.X_MB)
        return poses

    def has_start(self, joint: Joint) -> bool:
        """Return whether the format holds the positions at which a joint starts."""
        return self.kind(joint).name == "floating"


def _model_frame(body: Body, of_world: str) -> str:
    """Return the name of the frame of a body in the model."""
    return of_world if body.is_world else body.name


def _pose(X: RigidTransform, relative_to: str | None = None) -> ET.Element:
    """Return a ``<pose>``."""
    pose = ET.Element("pose", {} if relative_to is None else {"relative_to": relative_to})
    pose.text = numbers_text([*X.p, *rpy_from_rotation(X.R)])
    return pose


def _element(tag: str, **numbers: object) -> ET.Element:
    """Return an element with numbers inside."""
    element = ET.Element(tag)
    for key, value in numbers.items():
        ET.SubElement(element, key).text = numbers_text(value)  # type: ignore[arg-type]
    return element
