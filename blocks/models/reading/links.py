"""Links and joints of model files: inertia, refused or repaired, limits and friction."""

from __future__ import annotations

from typing import Literal, TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.on_joints.joint_friction import JointFriction
from flexure.blocks.models.reading.xml_elements import Element, LeftOut
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.solids import symmetric_matrix, validity_problem
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.values.arrays import FloatArray, show

#: What becomes of inertia that no body can have.
Unphysical: TypeAlias = Literal["refuse", "repair"]


def link_inertia(
    element: Element, mass: float, six: FloatArray, unphysical: Unphysical, repairs: LeftOut
) -> SpatialInertia:
    """Return the inertia of a link with these numbers about its center of mass.

    The six numbers are xx, yy, zz, xy, xz, yz in kg m². Moments that no body can have are refused
    or repaired; ``repairs`` gets a line for what was repaired.
    """
    if unphysical == "repair" and np.isfinite(six).all():
        if mass == 0.0 and six.any():
            repairs.add(f"{element}: moments of inertia of a link without mass", "moments")
            six = np.zeros(6)
        elif mass > 0.0 and validity_problem(six / mass) is not None:
            found, six = six, _repaired(six)
            repairs.add(
                f"{element}: moments of inertia {show(found)}, which became {show(six)}", "moments"
            )
    with element.blamed():
        return SpatialInertia(mass, inertia=six)


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
                coulomb_friction=coulomb_friction,
                transition_velocity=TRANSITION_VELOCITY,
            )
        )


def _with_infinity(limit: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return limits with infinities instead of very large numbers."""
    numbers = np.asarray(limit, dtype=float)
    return np.where(np.abs(numbers) >= BOUNDLESS, np.copysign(np.inf, numbers), numbers)
