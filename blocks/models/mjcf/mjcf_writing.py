"""MJCF files from plants: what the format can hold, and a list of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import numpy as np

from flexure.blocks.forces.between_points.one_sided_spring import Cable
from flexure.blocks.forces.between_points.spring_damper import LinearSpringDamper
from flexure.blocks.forces.on_joints.compliant_coupling import CompliantCoupling
from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    invert_transform,
    quaternion_from_rotation,
)
from flexure.blocks.models.writing.plant_writer import (
    Axis,
    JointKind,
    PlantWriter,
    color_shares,
    numbers_text,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_shape import Primitive
from flexure.blocks.multibody.constraints import Coupling
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallQuaternionJoint, BallRpyJoint
from flexure.blocks.multibody.joints.cylindrical import CylindricalJoint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint, RpyFloatingJoint
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.universal import UniversalJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.option_names import answers_other_words

_SMALLEST = 1e-15  # MuJoCo refuses moving bodies with smaller masses and moments
_ORIGIN = RigidTransform(np.eye(3), np.zeros(3))


@answers_other_words
def save_mjcf(plant: Plant, path: str | Path, *, context: Context | None = None) -> tuple[str, ...]:
    """Save a plant as MJCF, and warn of everything that MJCF cannot express.

    Parameters
    ----------
    plant : Plant
        The plant.
    path : str or Path
        Where to save the file. Meshes are saved beside it, as ``<file>_<body>_1.stl`` and so on.
    context : Context, optional
        Values of parameters, such as masses and dampings; the default ones when omitted.

    Returns
    -------
    tuple of str
        What MJCF cannot hold, each thing by its name; a warning has the same.

    Raises
    ------
    DeclarationError
        When a joint is of a kind that MJCF does not have, such as a screw, or has the name of an
        axis of another one, or MuJoCo refuses a body, because it moves without a mass or without
        moments of inertia. The error names all of them, and nothing is written.
    ContextError
        When the context is not one of the plant.

    Warns
    -----
    UserWarning
        When something is left out: force elements and constraints of other kinds than below,
        external forces, limits of velocities and accelerations, shapes that MJCF does not have.

    See Also
    --------
    load_mjcf : Read an MJCF file.
    save_sdf : Save a plant as SDF.
    save_urdf : Save a plant as URDF.

    Notes
    -----
    Written are bodies with their inertia; revolute and prismatic joints as ``hinge`` and ``slide``;
    universal, cylindrical and planar joints as two or three of them, called ``<joint>_qx`` and so
    on; ball joints, and joints that float in the world, as ``ball`` and ``free``; damping, limits,
    friction and springs of joints as ``damping``, ``range``, ``frictionloss``, ``stiffness`` and
    ``springref``; start positions as ``ref``; motors on joints with one velocity, with their rotors
    as ``armature``; a `Coupling` or `GearPair` of two coordinates as an equality of joints; a
    `LoopJoint` with a ball joint or a weld as ``connect`` and ``weld``; a `LinearSpringDamper`, a
    `Cable` without damping and a `CompliantCoupling` without losses as tendons; frames as sites;
    gravity; what bodies look like as geoms without contacts.

    MuJoCo enforces limits, which plants only store, and its equalities are soft. Its ball and free
    joints count coordinates with the frame of the body, not with that of the joint on the body.

    Examples
    --------
    >>> import flexure as fx, tempfile, pathlib
    >>> builder = fx.PlantBuilder("gate")
    >>> leaf = builder.add_body("leaf", fx.SpatialInertia.solid_box(12.0, size=(1.0, 0.05, 0.8)))
    >>> edge = fx.Frame("edge", leaf, (-0.5, 0.0, 0.0))
    >>> pivot = builder.add_joint(fx.RevoluteJoint("pivot", builder.world, edge, axis=(0, 0, 1)))
    >>> _ = builder.add_force_element(fx.JointSpring("coil", pivot, stiffness=3.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "gate.xml")
    ...     left_out = save_mjcf(builder.build(), path)
    ...     text = path.read_text()
    >>> left_out, 'stiffness="3.0"' in text
    ((), True)
    """
    return _Writer.save(plant, path, context)


class _Writer(PlantWriter):
    """Makes the elements of a model."""

    FORMAT = "MJCF"
    KINDS: ClassVar[Mapping[type[Joint], JointKind]] = {
        RevoluteJoint: JointKind("axes", can_turn_around=True, has_axes=True),
        PrismaticJoint: JointKind("axes", can_turn_around=True, has_axes=True),
        CylindricalJoint: JointKind("axes", can_turn_around=True, has_axes=True),
        UniversalJoint: JointKind("axes", has_axes=True),
        PlanarJoint: JointKind("axes", has_axes=True),
        WeldJoint: JointKind("weld", can_turn_around=True),
        BallQuaternionJoint: JointKind("ball"),
        BallRpyJoint: JointKind("ball"),
        QuaternionFloatingJoint: JointKind("free"),
        RpyFloatingJoint: JointKind("free"),
    }

    def problems(self, mobilizer: Mobilizer) -> Iterator[str]:
        """Yield why a joint or its body cannot be written."""
        yield from super().problems(mobilizer)
        joint, body = mobilizer.joint, self.plant.bodies[mobilizer.outboard]
        kind = self.KINDS.get(type(joint))
        if kind is not None and kind.name == "free" and mobilizer.inboard:
            yield f"the {joint.type_name} joint '{joint.name}' on a body that is not the world"
        if joint.num_velocities and not self._has_inertia(mobilizer.outboard):
            yield f"the body '{body.name}', which moves without a mass or moments of inertia"
        if kind is not None and kind.name == "axes" and joint.num_positions > 1:
            names = {_axis_name((joint, k)) for k in range(joint.num_positions)}
            for each in self.plant.joints:
                if each.name in names:
                    yield f"joint '{each.name}', named like an axis of joint '{joint.name}'"

    def _has_inertia(self, number: int) -> bool:
        """Return whether a body, or one that is welded onto it, has what MuJoCo asks for."""
        body = self.plant.bodies[number]
        mass, _, moments = self.inertia(body, _ORIGIN)
        if mass > _SMALLEST and np.linalg.eigvalsh(_matrix(moments))[0] > _SMALLEST:
            return True
        return any(
            self._has_inertia(each.outboard)
            for each in self.mobilizers
            if each.inboard == number and not each.joint.num_velocities
        )

    def root(self) -> ET.Element:
        """Return the model."""
        root = ET.Element("mujoco", model=self.plant.name)
        ET.SubElement(root, "compiler", angle="radian", autolimits="true")
        gravity = numbers_text(self.plant.gravity.get(self.context))
        ET.SubElement(root, "option", gravity=gravity)
        self._assets = ET.SubElement(root, "asset")
        world = ET.SubElement(root, "worldbody")
        self._bodies = {0: world}
        self._sites: set[str] = {each.name for each in self.other_frames()}
        self._add_geoms(world, self.plant.bodies[0])
        for each in self.mobilizers:
            self._bodies[each.outboard] = self._add_body(each)
        for frame in self.other_frames():
            self._add_site(frame.name, frame.body, frame.X_BF)
        self._equality = ET.SubElement(root, "equality")
        self.list_constraints()
        self._actuators = ET.SubElement(root, "actuator")
        self._add_motors()
        tendons = ET.SubElement(root, "tendon")
        for element in filter(self.holds, self.plant.force_elements):
            self._add_tendon(tendons, element)
        for part in (self._assets, self._equality, self._actuators, tendons):
            if not len(part):
                root.remove(part)
        return root

    # Bodies ----------------------------------------------------------------------------------

    def _add_body(self, mobilizer: Mobilizer) -> ET.Element:
        """Add a body at the place where it starts, with its joints."""
        joint, body = mobilizer.joint, self.plant.bodies[mobilizer.outboard]
        q = joint.default_positions if self.has_start(joint) else joint.zero_positions()
        X_FM, X_BM = mobilizer.calc_pose(q), invert_transform(mobilizer.X_MB)
        X_PB = compose_transforms(compose_transforms(mobilizer.X_PF, X_FM), mobilizer.X_MB)
        element = ET.SubElement(
            self._bodies[mobilizer.inboard], "body", {"name": body.name, **_pose(X_PB)}
        )
        self._add_joints(element, mobilizer, X_FM.R, X_BM)
        mass, center, moments = self.inertia(body, _ORIGIN)
        if mass > 0.0:
            ET.SubElement(
                element,
                "inertial",
                pos=numbers_text(center),
                mass=numbers_text(mass),
                fullinertia=numbers_text(moments),
            )
        self._add_geoms(element, body)
        return element

    def _add_geoms(self, element: ET.Element, body: Body) -> None:
        for geom, pose, color in self.shapes(body, _ORIGIN):
            geom.attrib.update(_pose(pose), contype="0", conaffinity="0", mass="0")
            if color is not None:
                geom.set("rgba", color_shares(color))
            element.append(geom)

    def shape(self, part: Primitive, file: str) -> ET.Element | None:
        """Return a geom; None of shapes that MJCF does not have."""
        size = part.size
        match part.kind:
            case "box":
                return ET.Element("geom", type="box", size=numbers_text(0.5 * np.asarray(size)))
            case "ellipsoid":
                return ET.Element("geom", type="ellipsoid", size=numbers_text(size))
            case "tube" if size[0] == 0.0:
                half = numbers_text([size[1], 0.5 * size[2]])
                return ET.Element("geom", type="cylinder", size=half)
            case "capsule":
                half = numbers_text([size[0], 0.5 * size[1]])
                return ET.Element("geom", type="capsule", size=half)
            case "mesh":
                name = file.removesuffix(".stl")
                ET.SubElement(self._assets, "mesh", name=name, file=file, inertia="shell")
                return ET.Element("geom", type="mesh", mesh=name)
        return None

    def _add_site(self, name: str, body: Body, X_BF: RigidTransform) -> None:
        ET.SubElement(self._bodies[self.number(body)], "site", {"name": name, **_pose(X_BF)})

    def _new_site(self, name: str, body: Body, X_BF: RigidTransform) -> str:
        """Add a site with a name that no other one has, and return the name."""
        while name in self._sites:
            name += "_"
        self._sites.add(name)
        self._add_site(name, body, X_BF)
        return name

    # Tendons ---------------------------------------------------------------------------------

    def holds(self, element: ForceElement) -> bool:
        """Return whether a tendon has the force of an element."""
        if isinstance(element, CompliantCoupling):
            coupled = element.coupling.gearing.joints
            return element.efficiency is None and all(self.kind(e).has_axes for e in coupled)
        if isinstance(element, Cable):  # whose damping is another one
            return hasattr(element, "stiffness") and not element.damping.get(self.context)
        return type(element) is LinearSpringDamper

    def _add_tendon(self, tendons: ET.Element, element: ForceElement) -> None:
        """Add a fixed tendon for a coupling, or one between two sites."""
        if isinstance(element, CompliantCoupling):
            law = element.law(self.context)
            sign = -1.0 if law.offset < 0.0 else 1.0  # MuJoCo has no negative lengths
            one = ET.SubElement(tendons, "fixed", springlength=numbers_text(sign * law.offset))
            for place, factor in zip(
                element.coupling.gearing.coordinates, law.factors, strict=True
            ):
                coefficient = numbers_text(sign * factor)
                ET.SubElement(one, "joint", joint=_axis_name(place), coef=coefficient)
            damping = law.damping
        else:
            assert isinstance(element, LinearSpringDamper | Cable)
            is_cable = isinstance(element, Cable)
            length = float(element.free_length.get(self.context))
            lengths = numbers_text([0.0 if is_cable else length, length])
            one = ET.SubElement(tendons, "spatial", springlength=lengths)
            ends = (element.frame_a, element.p_AP), (element.frame_b, element.p_BQ)
            for label, (frame, point) in zip("AB", ends, strict=True):
                X_FP = RigidTransform(np.eye(3), point.get(self.context))
                X_BP = compose_transforms(frame.X_BF, X_FP)
                site = self._new_site(f"{element.name}_{label}", frame.body, X_BP)
                ET.SubElement(one, "site", site=site)
            damping = 0.0 if is_cable else element.damping.get(self.context)
        stiffness = numbers_text(element.stiffness.get(self.context))
        one.attrib.update(name=element.name, stiffness=stiffness, damping=numbers_text(damping))

    # Joints ----------------------------------------------------------------------------------

    def _add_joints(
        self, element: ET.Element, mobilizer: Mobilizer, R_FM: np.ndarray, X_BM: RigidTransform
    ) -> None:
        """Add one element for each axis of a joint."""
        joint, kind = mobilizer.joint, self.kind(mobilizer.joint).name
        if kind == "weld":
            return
        carried, armature = self.carried[joint], self._armature(joint)
        self._list_limits(joint)
        if kind != "axes":
            one = ET.SubElement(element, "joint", name=joint.name, type=kind)
            if kind == "ball":
                one.set("pos", numbers_text(X_BM.p))
            if np.ptp(carried.damping):
                self.left_out.add(f"that the dampings of joint '{joint.name}' differ")
            elif carried.damping[0]:
                one.set("damping", numbers_text(carried.damping[0]))
            if armature:
                one.set("armature", numbers_text(armature))
            return
        # Axes at the start, where the frames of bodies are those of the file.
        H = np.asarray(mobilizer.calc_motion_matrix(joint.default_positions), dtype=float)
        limits = np.stack(joint.position_limits, axis=1)
        for k in range(joint.num_positions):
            is_hinge = bool(np.any(H[:3, k]))
            axis = X_BM.R @ R_FM.T @ (H[:3, k] if is_hinge else H[3:, k])
            one = ET.SubElement(
                element,
                "joint",
                name=_axis_name((joint, k)),
                type="hinge" if is_hinge else "slide",
                pos=numbers_text(X_BM.p),
                axis=numbers_text(axis),
            )
            for key, value in (
                ("ref", joint.default_positions[k]),
                ("damping", carried.damping[k]),
                ("frictionloss", carried.friction[k]),
                ("stiffness", carried.stiffness[k]),
                ("springref", carried.spring_reference[k]),
                ("armature", armature),
            ):
                if value:
                    one.set(key, numbers_text(value))
            if np.any(np.isfinite(limits[k])):
                one.set("range", numbers_text(limits[k]))

    def _list_limits(self, joint: Joint) -> None:
        """List the limits that no joint of the format has."""
        kinds = ["velocity", "acceleration"]
        if not self.kind(joint).has_axes:
            kinds.append("position")
        for what in kinds:
            sides = (getattr(joint, f"{what}_{side}_limits") for side in ("lower", "upper"))
            if np.any(np.isfinite(np.concatenate(list(sides)))):
                self.left_out.add(f"the limits of the {what} of joint '{joint.name}'", what)

    def _armature(self, joint: Joint) -> float:
        """Return the inertia of the rotors on a joint, as the joint feels it."""
        return sum(
            float(each.gear_ratio.get(self.context)) ** 2
            * float(each.rotor_inertia.get(self.context))
            for each in self.plant.actuators
            if each.joint is joint
        )

    def _add_motors(self) -> None:
        for each in self.plant.actuators:
            joint = each.joint
            if joint.num_velocities != 1:
                self.left_out.add(f"the motor '{each.name}' on more than one coordinate")
                continue
            motor = ET.SubElement(self._actuators, "motor", name=each.name, joint=joint.name)
            if np.isfinite(each.effort_limit):
                motor.set("forcerange", numbers_text([-each.effort_limit, each.effort_limit]))

    def has_start(self, joint: Joint) -> bool:
        """Return whether the format holds the positions at which a joint starts."""
        return self.kind(joint).has_axes or self.kind(joint).name == "free"

    # Constraints -----------------------------------------------------------------------------

    def write_constraint(self, constraint: Constraint) -> bool:
        """Write a coupling of two coordinates, or a loop with a ball joint or a weld."""
        loop = constraint.loop_joint
        if isinstance(constraint, Coupling):
            pair = self.coupled(constraint)
            if pair is None:
                return False
            follower, leader, ratio, offset = pair
            start, other = (float(joint.default_positions[k]) for joint, k in (follower, leader))
            ET.SubElement(
                self._equality,
                "joint",
                name=constraint.name,
                joint1=_axis_name(follower),
                joint2=_axis_name(leader),
                polycoef=numbers_text([offset + ratio * other - start, ratio, 0.0, 0.0, 0.0]),
            )
            return True
        if loop is None or type(loop) not in (WeldJoint, BallRpyJoint, BallQuaternionJoint):
            return False
        ends = enumerate((loop.frame_on_parent, loop.frame_on_child), start=1)
        sites = {
            f"site{k}": self._new_site(f"{loop.name}_{k}", each.body, each.X_BF) for k, each in ends
        }
        kind = "weld" if type(loop) is WeldJoint else "connect"
        ET.SubElement(self._equality, kind, {"name": loop.name, **sites})
        return True


def _axis_name(coordinate: Axis) -> str:
    """Return the name of the element for one coordinate of a joint."""
    joint, k = coordinate
    return joint.name if joint.num_positions == 1 else f"{joint.name}_{joint.position_suffix(k)}"


def _pose(X: RigidTransform) -> dict[str, str]:
    """Return the attributes of a pose."""
    return {"pos": numbers_text(X.p), "quat": numbers_text(quaternion_from_rotation(X.R))}


def _matrix(moments: np.ndarray) -> np.ndarray:
    """Return the matrix of six moments xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
