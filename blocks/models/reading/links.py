"""Links and joints of model files: inertia, refused or repaired, limits and friction."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

import networkx as nx
import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.joint_friction import JointFriction
from flexure.blocks.forces.on_joints.joint_springs import JointSpring
from flexure.blocks.math import RigidTransform
from flexure.blocks.models.reading.visuals import Visuals
from flexure.blocks.models.reading.xml_elements import Element, LeftOut, read_xml
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.solids import symmetric_matrix, validity_problem
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.joints.ball import BallRpyJoint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.planar import PlanarJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.joints.universal import UniversalJoint
from flexure.blocks.multibody.joints.weld import WeldJoint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.arguments import one_of
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import FloatArray, show

#: What becomes of inertia that no body can have.
Unphysical: TypeAlias = Literal["refuse", "repair"]


def outermost(source: str | Path, tag: str, unphysical: Unphysical, attempt: str) -> Element:
    """Read an XML file whose outermost element has a tag; check how inertia is to be read."""
    one_of(unphysical, get_args(Unphysical), "unphysical", attempt, error=DeclarationError)
    root = read_xml(source)
    if root.tag != tag:
        raise root.refusal(expected=f"<{tag}> as the outermost element", found=f"<{root.tag}>")
    return root


class Loader:
    """Adds the elements of an XML file to a builder, and notes what it leaves out."""

    def __init__(self, builder: PlantBuilder, visuals: Visuals, unphysical: Unphysical) -> None:
        self.builder, self.visuals, self._unphysical = builder, visuals, unphysical
        self.left_out = LeftOut()
        self._bodies: dict[str, Body] = {"world": builder.world}

    def finish(self, root: Element) -> PlantBuilder:
        """Warn of what the plant lacks, and return its builder."""
        self.left_out.add_all(self.visuals.left_out())
        self.left_out.add_all(root.unread())
        self.left_out.tell(self.builder)
        return self.builder

    def _inertia_of(
        self, inertial: Element, mass: float, six: FloatArray, pose: RigidTransform
    ) -> SpatialInertia:
        """Return the inertia of a link, from moments along the axes of a pose at its center.

        The six numbers are xx, yy, zz, xy, xz, yz in kg m². Moments that no body can have are
        refused or repaired, which is noted.
        """
        if self._unphysical == "repair" and np.isfinite(six).all():
            what = f"{inertial}: moments of inertia"
            if mass == 0.0 and six.any():
                self.left_out.add(f"{what} of a link without mass", "moments")
                six = np.zeros(6)
            elif mass > 0.0 and validity_problem(six / mass) is not None:
                found, six = six, _repaired(six)
                self.left_out.add(f"{what} {show(found)}, which became {show(six)}", "moments")
        with inertial.blamed():
            return SpatialInertia(mass, inertia=six).moved(pose)


def _repaired(six: FloatArray) -> FloatArray:
    """Return moments of inertia that a body can have: principal axes stay, small moments grow."""
    moments, axes = np.linalg.eigh(symmetric_matrix(six))
    moments = np.maximum(moments, 0.0)
    moments[:2] += 0.5 * max(moments[2] - moments[0] - moments[1], 0.0)
    matrix = axes @ np.diag(moments) @ axes.T
    return np.array([*np.diag(matrix), matrix[0, 1], matrix[0, 2], matrix[1, 2]])


def loose_bases(builder: PlantBuilder) -> list[Body]:
    """Return a body of each group that no joint connects to the world, the child of no joint."""
    graph: nx.Graph[Body] = nx.Graph()
    graph.add_nodes_from(builder.bodies)
    graph.add_edges_from((j.parent_body, j.child_body) for j in builder.joints)
    children = {joint.child_body for joint in builder.joints}
    near = nx.node_connected_component(graph, builder.world)
    bases = []
    for body in builder.bodies:
        if body not in near and body not in children:
            bases.append(body)
            near |= nx.node_connected_component(graph, body)
    return bases


def new_joint(kind: str, name: str, F: Frame, M: Frame, axis: FloatArray, pitch: float) -> Joint:
    """Return a joint of a kind, as files call it, without damping and limits."""
    match kind:
        case "revolute" | "continuous":
            return RevoluteJoint(name, F, M, axis)
        case "prismatic":
            return PrismaticJoint(name, F, M, axis)
        case "screw":
            return ScrewJoint(name, F, M, axis, screw_pitch=pitch)
        case "fixed":
            return WeldJoint(name, F, M)
        case "floating":
            return QuaternionFloatingJoint(name, F, M)
        case "planar":
            return PlanarJoint(name, F, M)
        case "ball":
            return BallRpyJoint(name, F, M)
    return UniversalJoint(name, F, M)


#: Limits from here on count as none; formats without infinity write such numbers.
BOUNDLESS = 1e16

#: Rate in rad/s, or m/s, within which friction that was read changes its direction.
TRANSITION_VELOCITY = 0.01


def set_limits(
    joint: Joint,
    *,
    positions: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    velocity: npt.ArrayLike = np.inf,
    acceleration: npt.ArrayLike = np.inf,
) -> None:
    """Set limits of positions, if there are any, and of magnitudes of the rates."""
    if positions is not None:
        joint.set_position_limits(*(_with_infinity(each) for each in positions))
    rate, change = _with_infinity(velocity), _with_infinity(acceleration)
    joint.set_velocity_limits(-rate, rate)
    joint.set_acceleration_limits(-change, change)


def add_friction(builder: PlantBuilder, joint: Joint, coulomb_friction: npt.ArrayLike) -> None:
    """Add dry friction to a joint, called ``<joint>_friction``, if there is any."""
    if np.any(np.asarray(coulomb_friction) != 0.0):
        builder.add_force_element(
            JointFriction(
                f"{joint.name}_friction",
                joint,
                coulomb_friction=_along(joint, coulomb_friction),
                transition_velocity=TRANSITION_VELOCITY,
            )
        )


def add_spring(
    builder: PlantBuilder, joint: Joint, stiffness: npt.ArrayLike, reference: npt.ArrayLike
) -> None:
    """Add a spring to a joint, called ``<joint>_spring``."""
    builder.add_force_element(
        JointSpring(
            f"{joint.name}_spring",
            joint,
            stiffness=_along(joint, stiffness),
            nominal_position=_along(joint, reference),
        )
    )


def _along(joint: Joint, numbers: npt.ArrayLike) -> npt.ArrayLike:
    """Return numbers along a joint, those of a single velocity as one."""
    return np.reshape(numbers, ()) if joint.num_velocities == 1 else numbers


def _with_infinity(limit: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return limits with infinities instead of very large numbers."""
    numbers = np.asarray(limit, dtype=float)
    return np.where(np.abs(numbers) >= BOUNDLESS, np.copysign(np.inf, numbers), numbers)
