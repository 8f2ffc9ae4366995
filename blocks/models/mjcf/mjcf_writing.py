"""MJCF files from plants: what the format can hold, and a list of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

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
    BALLS,
    FLOATING,
    Axis,
    PlantWriter,
    Sizes,
    add,
    attributes_of,
    color_shares,
    has_limits,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.solids import symmetric_matrix
from flexure.blocks.multibody.constraints.constraint import Constraint
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.plants.plant import Plant
from flexure.blocks.multibody.trees.topology import Mobilizer
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.interface.option_names import answers_other_words

_FORCES = ("damping", "frictionloss", "stiffness", "springref")  # what joints carry, in this order
_SMALLEST = 1e-15  # MuJoCo refuses moving bodies with smaller masses and moments


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
        external forces, a spin of the world, limits of velocities and accelerations, shapes that
        MJCF does not have.

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
    KINDS = (
        *("revolute", "prismatic", "cylindrical", "universal", "planar", "weld"),
        *(*BALLS, *FLOATING),
    )
    AXES = (*PlantWriter.AXES, "planar")
    STARTS = (*AXES, "floating")

    def problems(self, mobilizer: Mobilizer) -> Iterator[str]:
        """Yield why a joint or its body cannot be written."""
        yield from super().problems(mobilizer)
        joint, body = mobilizer.joint, self.plant.bodies[mobilizer.outboard]
        if joint.num_velocities and not self._has_inertia(mobilizer.outboard):
            yield f"the body '{body.name}', which moves without a mass or moments of inertia"
        if self.has_axes(joint) and joint.num_positions > 1:
            names = {_axis_name((joint, k)) for k in range(joint.num_positions)}
            for each in self.plant.joints:
                if each.name in names:
                    yield f"joint '{each.name}', named like an axis of joint '{joint.name}'"

    def _has_inertia(self, number: int) -> bool:
        """Return whether a body, or one that is welded onto it, has what MuJoCo asks for."""
        mass, _, moments = self.inertia(self.plant.bodies[number])
        least = np.linalg.eigvalsh(symmetric_matrix([*moments.values()]))[0]
        return bool(mass > _SMALLEST and least > _SMALLEST) or any(
            self._has_inertia(each.outboard)
            for each in self.mobilizers
            if each.inboard == number and not each.joint.num_velocities
        )

    def root(self) -> ET.Element:
        """Return the model."""
        root = ET.Element("mujoco", model=self.plant.name)
        add(root, "compiler", angle="radian", autolimits="true")
        add(root, "option", gravity=self.plant.gravity.get(self.context))
        self._assets = add(root, "asset")
        world = add(root, "worldbody")
        self._bodies = {self.plant.bodies[0]: world}
        self._sites: set[str] = {each.name for each in self.other_frames()}
        self._add_geoms(world, self.plant.bodies[0])
        for each in self.mobilizers:
            self._add_body(each)
        for frame in self.other_frames():
            self._add_site(frame.name, frame.body, frame.X_BF)
        self._equality = add(root, "equality")
        self.list_constraints()
        actuators, tendons = add(root, "actuator"), add(root, "tendon")
        self._add_motors(actuators)
        for element in filter(self.holds, self.plant.force_elements):
            self._add_tendon(tendons, element)
        for part in (self._assets, self._equality, actuators, tendons):
            if not len(part):
                root.remove(part)
        return root

    # Bodies ----------------------------------------------------------------------------------

    def _add_body(self, mobilizer: Mobilizer) -> None:
        """Add a body at the place where it starts, with its joints."""
        (parent, body), pose = self.ends(mobilizer), _pose(self.pose(mobilizer))
        element = self._bodies[body] = add(self._bodies[parent], "body", name=body.name, **pose)
        self._add_joints(element, mobilizer)
        mass, center, moments = self.inertia(body)
        if mass > 0.0:
            add(element, "inertial", pos=center, mass=mass, fullinertia=[*moments.values()])
        self._add_geoms(element, body)

    def _add_geoms(self, element: ET.Element, body: Body) -> None:
        for geom, pose, color in self.shapes(body):
            geom.attrib.update(_pose(pose), contype="0", conaffinity="0", mass="0")
            if color is not None:
                geom.set("rgba", color_shares(color))
            element.append(geom)

    def shape(self, kind: str, sizes: Sizes, file: str) -> ET.Element:
        """Return a geom."""
        match sizes:
            case {"size": extents}:
                return _geom(kind, size=0.5 * np.asarray(extents))
            case {"radius": radius, "length": length}:
                return _geom(kind, size=[radius, 0.5 * length])
            case {"radius": radius}:
                return _geom("ellipsoid", size=[radius] * 3)
            case {"radii": radii}:
                return _geom(kind, size=radii)
        name = file.removesuffix(".stl")
        add(self._assets, kind, name=name, file=file, inertia="shell")
        return _geom(kind, mesh=name)

    def _add_site(self, name: str, body: Body, X_BF: RigidTransform) -> None:
        add(self._bodies[body], "site", name=name, **_pose(X_BF))

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
            return element.efficiency is None and all(map(self.has_axes, coupled))
        if isinstance(element, Cable):  # whose damping is another one
            return hasattr(element, "stiffness") and not element.damping.get(self.context)
        return type(element) is LinearSpringDamper

    def _add_tendon(self, tendons: ET.Element, element: ForceElement) -> None:
        """Add a fixed tendon for a coupling, or one between two sites."""
        if isinstance(element, CompliantCoupling):
            law = element.law(self.context)
            sign = -1.0 if law.offset < 0.0 else 1.0  # MuJoCo has no negative lengths
            one = add(tendons, "fixed", springlength=sign * law.offset)
            places = element.coupling.gearing.coordinates
            for place, factor in zip(places, law.factors, strict=True):
                add(one, "joint", joint=_axis_name(place), coef=sign * factor)
            damping = law.damping
        else:
            assert isinstance(element, LinearSpringDamper | Cable)
            is_cable = isinstance(element, Cable)
            length = float(element.free_length.get(self.context))
            one = add(tendons, "spatial", springlength=[0.0 if is_cable else length, length])
            ends = (element.frame_a, element.p_AP), (element.frame_b, element.p_BQ)
            for label, (frame, point) in zip("AB", ends, strict=True):
                X_FP = RigidTransform(np.eye(3), point.get(self.context))
                X_BP = compose_transforms(frame.X_BF, X_FP)
                add(one, "site", site=self._new_site(f"{element.name}_{label}", frame.body, X_BP))
            damping = 0.0 if is_cable else element.damping.get(self.context)
        stiffness = element.stiffness.get(self.context)
        one.attrib |= attributes_of(name=element.name, stiffness=stiffness, damping=damping)

    # Joints ----------------------------------------------------------------------------------

    def _add_joints(self, element: ET.Element, mobilizer: Mobilizer) -> None:
        """Add one element for each axis of a joint."""
        joint, kind = mobilizer.joint, self.kind(mobilizer.joint)
        if kind == "fixed":
            return
        carried, armature = self.carried[joint], self.rotor_inertia(joint)
        X_BM, has_axes = invert_transform(mobilizer.X_MB), self.has_axes(joint)
        for what in ("velocity", "acceleration", *([] if has_axes else ["position"])):
            if has_limits(joint, what):
                self.left_out.add(f"the limits of the {what} of joint '{joint.name}'", what)
        if not has_axes:
            damping = carried.damping[0]
            if np.ptp(carried.damping):
                self.left_out.add(f"that the dampings of joint '{joint.name}' differ")
                damping = 0.0
            place = {"type": "ball", "pos": X_BM.p} if kind == "ball" else {"type": "free"}
            felt = _nonzero(damping=damping, armature=armature)
            add(element, "joint", name=joint.name, **place, **felt)
            return
        # Axes at the start, where the frames of bodies are those of the file.
        q = joint.default_positions
        H = np.asarray(mobilizer.calc_motion_matrix(q), dtype=float)
        R_BF = X_BM.R @ mobilizer.calc_pose(q).R.T
        limits = np.stack(joint.position_limits, axis=1)
        for k in range(joint.num_positions):
            is_hinge = bool(np.any(H[:3, k]))
            forces = zip(_FORCES, (each[k] for each in vars(carried).values()), strict=True)
            felt = _nonzero(ref=q[k], **dict(forces), armature=armature)
            if np.any(np.isfinite(limits[k])):
                felt["range"] = limits[k]
            add(
                element,
                "joint",
                name=_axis_name((joint, k)),
                type="hinge" if is_hinge else "slide",
                pos=X_BM.p,
                axis=R_BF @ (H[:3, k] if is_hinge else H[3:, k]),
                **felt,
            )

    def _add_motors(self, actuators: ET.Element) -> None:
        for each in self.plant.actuators:
            joint, limit = each.joint, each.effort_limit
            if joint.num_velocities != 1:
                self.left_out.add(f"the motor '{each.name}' on more than one coordinate")
                continue
            motor = add(actuators, "motor", name=each.name, joint=joint.name)
            if np.isfinite(limit):
                motor.attrib |= attributes_of(forcerange=[-limit, limit])

    # Constraints -----------------------------------------------------------------------------

    def write_constraint(self, constraint: Constraint) -> bool:
        """Write a coupling of two coordinates, or a loop with a ball joint or a weld."""
        loop, pair = constraint.loop_joint, self.coupled(constraint)
        if pair is not None:
            follower, leader, ratio, offset = pair
            start, other = (float(joint.default_positions[k]) for joint, k in (follower, leader))
            names = {"joint1": _axis_name(follower), "joint2": _axis_name(leader)}
            polycoef = [offset + ratio * other - start, ratio, 0.0, 0.0, 0.0]
            add(self._equality, "joint", name=constraint.name, **names, polycoef=polycoef)
            return True
        kind = loop and {"fixed": "weld", "ball": "connect"}.get(str(self.kind(loop)))
        if not (loop and kind):
            return False
        F, M = loop.frame_on_parent, loop.frame_on_child
        X_AM = compose_transforms(F.X_BF, loop.calc_pose(loop.zero_positions()))
        ends = enumerate(((F.body, X_AM), (M.body, M.X_BF)), start=1)
        sites = {f"site{k}": self._new_site(f"{loop.name}_{k}", *end) for k, end in ends}
        add(self._equality, kind, name=loop.name, **sites)
        return True


def _axis_name(coordinate: Axis) -> str:
    """Return the name of the element for one coordinate of a joint."""
    joint, k = coordinate
    return joint.name if joint.num_positions == 1 else f"{joint.name}_{joint.position_suffix(k)}"


def _pose(X: RigidTransform) -> dict[str, str]:
    """Return the attributes of a pose."""
    return attributes_of(pos=X.p, quat=quaternion_from_rotation(X.R))


def _nonzero(**numbers: float) -> dict[str, npt.ArrayLike]:
    """Return the numbers that are not zero."""
    return {key: value for key, value in numbers.items() if value}


def _geom(kind: str, **attributes: npt.ArrayLike) -> ET.Element:
    return ET.Element("geom", attributes_of(type=kind, **attributes))
