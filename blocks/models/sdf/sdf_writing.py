"""SDF files from plants: what the format can hold, and a list of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, compose_transforms, relative_pose, rpy_from_rotation
from flexure.blocks.models.writing.plant_writer import (
    BALLS,
    FLOATING,
    ORIGIN,
    PlantWriter,
    Sizes,
    attributes_of,
    color_shares,
    has_limits,
    numbers_text,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.option_names import answers_other_words

_STANDARD_GRAVITY = (0.0, 0.0, -9.81)
_CLOSED = 1e-9  # greatest error in m and rad of a loop that the file closes


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
        constraints of other kinds, external forces, a spin of the world, positions at which joints
        start, limits that differ in their directions or concern accelerations, shapes that SDF does
        not have.

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
    KINDS = ("revolute", "prismatic", "screw", "universal", "weld", *BALLS, *FLOATING)
    STARTS = ("floating",)

    def problems(self, mobilizer: Mobilizer) -> Iterator[str]:
        """Yield why a joint cannot be written."""
        yield from super().problems(mobilizer)
        joint = mobilizer.joint
        taken = {each.name for each in self.plant.bodies}
        taken |= {each.name for each in self.other_frames()}
        if self.kind(joint) not in (None, "floating") and joint.name in taken:
            yield f"joint '{joint.name}', which shares its name with a link or a frame"

    def root(self) -> ET.Element:
        """Return the file, with a world if there is a gravity to be told."""
        root = ET.Element("sdf", version="1.9")
        root.set("xmlns:drake", "http://drake.mit.edu")
        owner, gravity = root, self.plant.gravity.get(self.context)
        if not np.array_equal(gravity, _STANDARD_GRAVITY):
            owner = ET.SubElement(root, "world", name=f"{self.plant.name}_world")
            _fill(owner, gravity=gravity)
        self._model = ET.SubElement(owner, "model", name=self.plant.name)
        if self.plant.bodies[0].shape.primitives:
            self.left_out.add("what the world looks like")
        self._joints: dict[Joint, ET.Element] = {}
        for each in self.mobilizers:
            self._add_link(each)
        for each in self.mobilizers:
            if self.kind(each.joint) != "floating":
                self._add_joint(each)
        for frame in self.other_frames():
            places = {"name": frame.name, "attached_to": frame.body.name}
            element = ET.SubElement(self._model, "frame", places)
            element.append(_pose(frame.X_BF))
        self.list_constraints()
        return root

    def _add_link(self, mobilizer: Mobilizer) -> None:
        """Add a link, at its joint or where it floats."""
        joint, body = mobilizer.joint, self.plant.bodies[mobilizer.outboard]
        link = ET.SubElement(self._model, "link", name=body.name)
        if self.kind(joint) == "floating":
            link.append(_pose(self.pose(mobilizer)))
            if np.any(self.carried[joint].damping):
                self.left_out.add(f"the damping of joint '{joint.name}'")
        else:
            link.append(_pose(self.pose_at_joint(mobilizer), joint.name))
        mass, center, moments = self.inertia(body)
        inertial = ET.SubElement(link, "inertial")
        inertial.append(_pose(RigidTransform(np.eye(3), center)))
        _fill(inertial, mass=mass)
        _fill(ET.SubElement(inertial, "inertia"), **moments)
        for number, (shape, pose, color) in enumerate(self.shapes(body), start=1):
            visual = ET.SubElement(link, "visual", name=f"{body.name}_visual_{number}")
            visual.append(_pose(pose))
            ET.SubElement(visual, "geometry").append(shape)
            if color is not None:
                _fill(ET.SubElement(visual, "material"), diffuse=color_shares(color))

    def shape(self, kind: str, sizes: Sizes, file: str) -> ET.Element:
        """Return a shape of the format; a mesh has no sizes, but a file beside."""
        return _fill(ET.Element(kind), **(sizes or {"uri": file}))

    def _add_joint(self, mobilizer: Mobilizer) -> None:
        """Add a joint, from the body that is nearer to the world."""
        joint, carried = mobilizer.joint, self.carried[mobilizer.joint]
        sign = -1.0 if mobilizer.is_reversed else 1.0
        element = self._joint_element(joint, *self.ends(mobilizer), mobilizer.X_PF, sign)
        self._joints[joint] = element
        if not self.has_axes(joint):
            if np.any(carried.damping):
                self.left_out.add(f"the damping of the {joint.type_name} joint '{joint.name}'")
            self.list_limits(joint)
            return
        self._add_motor(element, joint)
        effort = self.effort(joint, without=0.0)
        for k, axis in enumerate(element.findall("axis") + element.findall("axis2")):
            lower, upper = (each[k] for each in joint.position_limits)
            velocity = self.magnitude(joint, "velocity", k)
            limits = {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort}
            finite = {key: value for key, value in limits.items() if np.isfinite(value)}
            _fill(ET.SubElement(axis, "limit"), **finite)
            felt = {key: each[k] for key, each in vars(carried).items() if each[k]}
            _fill(ET.SubElement(axis, "dynamics"), **felt)
        if has_limits(joint, "acceleration"):
            self.left_out.add(f"the limits of the acceleration of joint '{joint.name}'")

    def _joint_element(
        self, joint: Joint, parent: Body, child: Body, X_PF: RigidTransform, sign: float = 1.0
    ) -> ET.Element:
        """Return a new joint at a frame of its parent, with its axes in a direction."""
        kind = str(self.kind(joint))
        element = ET.SubElement(self._model, "joint", name=joint.name, type=kind)
        element.append(_pose(X_PF, "__model__" if parent.is_world else parent.name))
        _fill(element, parent=parent.name, child=child.name)
        axes = [joint.axis] if joint.axis is not None else []
        if kind == "universal":
            axes = [*np.eye(3)[:2]]
        for tag, direction in zip(("axis", "axis2"), axes, strict=False):
            _fill(ET.SubElement(element, tag), xyz=sign * direction)
        if isinstance(joint, ScrewJoint):
            _fill(element, screw_thread_pitch=joint.screw_pitch)
        return element

    def _add_motor(self, element: ET.Element, joint: Joint) -> None:
        """Write the motor of a joint, whose name is that of the joint in SDF."""
        motors = self.motors(joint)
        for number, each in enumerate(motors):
            if number or each.name != joint.name:
                self.left_out.add(f"the name of the motor '{each.name}' on joint '{joint.name}'")
        if len(motors) == 1:
            for key in ("gear_ratio", "rotor_inertia"):
                _fill(element, **{f"drake:{key}": getattr(motors[0], key).get(self.context)})
        elif motors:
            _fill(element, **{"drake:rotor_inertia": self.rotor_inertia(joint)})

    def write_constraint(self, constraint: Constraint) -> bool:
        """Write a coupling of two joints into the first of them, or a loop as a joint."""
        if constraint.loop_joint is not None:
            return self._write_loop(constraint.loop_joint)
        pair = self.coupled(constraint)
        if pair is None or any(joint.num_positions != 1 for joint, _ in pair[:2]):
            return False
        (follower, _), (leader, _), multiplier, offset = pair
        axis = self._joints[follower].find("axis")
        assert axis is not None
        if axis.find("mimic") is not None:
            return False
        mimic = ET.Element("mimic", joint=leader.name)
        axis.insert(1, _fill(mimic, multiplier=multiplier, offset=offset, reference=0.0))
        return True

    def _write_loop(self, loop: Joint) -> bool:
        """Write a joint that closes a loop, if it does where the file has all joints."""
        kind, taken = self.kind(loop), {each.get("name") for each in self._model}
        if kind in (None, "floating") or loop.name in taken:
            return False
        poses = {self.plant.bodies[0]: ORIGIN}
        for each in self.mobilizers:
            parent, child = self.ends(each)
            poses[child] = compose_transforms(poses[parent], self.pose(each))
        F, M = loop.frame_on_parent, loop.frame_on_child
        X_WF, X_WM = (compose_transforms(poses[f.body], f.X_BF) for f in (F, M))
        X_FM = relative_pose(X_WF, X_WM)
        q = loop.nearest_positions(X_FM)
        pairs = zip(loop.calc_pose(q), X_FM, strict=True)
        error = max(float(np.abs(near - there).max()) for near, there in pairs)
        is_turned = kind in ("screw", "universal") and np.max(np.abs(q)) > _CLOSED
        if error > _CLOSED or is_turned:
            return False
        X_PM = relative_pose(poses[F.body], X_WM)
        self._joint_element(loop, F.body, M.body, X_PM)
        return True


def _pose(X: RigidTransform, relative_to: str | None = None) -> ET.Element:
    """Return a ``<pose>``."""
    pose = ET.Element("pose", {} if relative_to is None else {"relative_to": relative_to})
    pose.text = numbers_text([*X.p, *rpy_from_rotation(X.R)])
    return pose


def _fill(owner: ET.Element, **inside: npt.ArrayLike) -> ET.Element:
    """Add elements that hold texts or numbers, and return their owner."""
    for tag, text in attributes_of(**inside).items():
        ET.SubElement(owner, tag).text = text
    return owner
