"""URDF files from plants: what the format can hold, and a list of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, compose_transforms, rpy_from_rotation
from flexure.blocks.models.writing.plant_writer import (
    FLOATING,
    ORIGIN,
    PlantWriter,
    Sizes,
    add,
    attributes_of,
    color_shares,
    numbers_text,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.option_names import answers_other_words

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
        When something is left out: force elements, constraints, external forces, a spin of the
        world, positions at which joints start, gravity other than 9.81 m/s² along -z, limits that
        differ in their directions, shapes that URDF does not have.

    See Also
    --------
    load_urdf : Read a URDF file.
    save_sdf : Save a plant as SDF, which has springs, more joints, and loops.
    save_mjcf : Save a plant as MJCF.

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
    return _Writer.save(plant, path, context)


class _Writer(PlantWriter):
    """Makes the elements of a robot."""

    FORMAT = "URDF"
    KINDS = ("revolute", "prismatic", "weld", "planar", *FLOATING)
    SHAPES = tuple(each for each in PlantWriter.SHAPES if each != "ellipsoid")
    HAS_SPRINGS, FLOATS_ANYWHERE = False, True

    def root(self) -> ET.Element:
        """Return the robot."""
        # X_LB of links.
        self._frames = {self.ends(each)[1]: self.pose_at_joint(each) for each in self.mobilizers}
        self._frames[self.plant.bodies[0]] = ORIGIN
        robot = ET.Element("robot", name=self.plant.name)
        robot.set("xmlns:drake", "http://drake.mit.edu")
        robot.extend(self._link(body) for body in self.plant.bodies if not body.is_node)
        self._joints = {each.joint: self._joint(each) for each in self.mobilizers}
        robot.extend(self._joints.values())
        robot.extend(map(self._transmission, self.plant.actuators))
        robot.extend(self._other_frames())
        self.list_constraints()
        return robot

    def _link(self, body: Body) -> ET.Element:
        """Return a link, with what it weighs and looks like."""
        link, X_LB = ET.Element("link", name=body.name), self._frames[body]
        if not body.is_world and (parts := self.inertia(body, X_LB))[0] > 0.0:
            mass, center, moments = parts
            inertial = ET.SubElement(link, "inertial")
            add(inertial, "origin", xyz=center)
            add(inertial, "mass", value=mass)
            add(inertial, "inertia", **moments)
        for shape, pose, color in self.shapes(body, X_LB):
            visual = ET.SubElement(link, "visual")
            visual.append(_origin(pose))
            ET.SubElement(visual, "geometry").append(shape)
            if color is not None:
                material = ET.SubElement(visual, "material", name=color)
                ET.SubElement(material, "color", rgba=color_shares(color))
        return link

    def shape(self, kind: str, sizes: Sizes, file: str) -> ET.Element:
        """Return a shape of the format; a mesh has no sizes, but a file beside."""
        return ET.Element(kind, attributes_of(**(sizes or {"filename": file})))

    def _joint(self, mobilizer: Mobilizer) -> ET.Element:
        """Return a joint, from the body that is nearer to the world."""
        joint, carried = mobilizer.joint, self.carried[mobilizer.joint]
        kind = str(self.kind(joint))
        element = ET.Element("joint", name=joint.name, type=kind)
        parent, child = self.ends(mobilizer)
        add(element, "parent", link=parent.name)
        add(element, "child", link=child.name)
        element.append(_origin(compose_transforms(self._frames[parent], mobilizer.X_PF)))
        if joint.axis is not None:
            add(element, "axis", xyz=-joint.axis if mobilizer.is_reversed else joint.axis)
        elif kind == "planar":
            add(element, "axis", xyz="0 0 1")
        if self.has_axes(joint):
            add(element, "limit", **self._limit(joint, kind))
        else:
            self.list_limits(joint)
        dynamics: dict[str, npt.ArrayLike] = {}
        if np.any(damping := carried.damping):
            dynamics["damping"] = damping if np.ptp(damping) else damping[:1]
        if np.any(carried.friction):
            dynamics["friction"] = carried.friction
        if dynamics:
            add(element, "dynamics", **dynamics)
        return element

    def _limit(self, joint: Joint, kind: str) -> dict[str, npt.ArrayLike]:
        """Return the limits of a joint with one coordinate."""
        limit: dict[str, npt.ArrayLike] = {}
        if kind != "continuous":
            limit["lower"], limit["upper"] = joint.position_limits
        limit["effort"] = self.effort(joint, without=np.inf)
        limit["velocity"] = self.magnitude(joint, "velocity")
        acceleration = self.magnitude(joint, "acceleration")
        if acceleration != np.inf:
            limit["drake:acceleration"] = acceleration
        return limit

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
            add(actuator, "drake:rotor_inertia", value=inertia)
        return element

    def _other_frames(self) -> Iterator[ET.Element]:
        """Yield the frames that are not those of joints, as Drake has them."""
        for frame in self.other_frames():
            X_LB = self._frames[frame.body]
            element = _origin(compose_transforms(X_LB, frame.X_BF))
            element.tag = "frame"
            element.attrib = {"name": frame.name, "link": frame.body.name, **element.attrib}
            yield element

    def write_constraint(self, constraint: Constraint) -> bool:
        """Write a coupling of two joints into the first of them."""
        pair = self.coupled(constraint)
        if pair is None or self._joints[pair[0][0]].find("mimic") is not None:
            return False
        (follower, _), (leader, _), multiplier, offset = pair
        ratio = {"multiplier": multiplier, "offset": offset}
        add(self._joints[follower], "mimic", joint=leader.name, **ratio)
        return True

    def rest(self) -> Iterator[str]:
        """Yield what no element can hold."""
        gravity = self.plant.gravity.get(self.context)
        if not np.array_equal(gravity, _STANDARD_GRAVITY):
            yield f"the gravity {gravity.tolist()}, which load_urdf takes as an argument"
        yield from super().rest()


def _origin(pose: RigidTransform) -> ET.Element:
    """Return an ``<origin>`` with a pose."""
    return ET.Element("origin", attributes_of(xyz=pose.p, rpy=rpy_from_rotation(pose.R)))
