"""Inertia that couples several bodies, as that of an elastic body between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flexure.blocks.math import dot, shift_spatial_velocity
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.body_jacobians import spatial_jacobian
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.values.arrays import Array


@dataclass(frozen=True)
class CouplingInput:
    """An input of a tree through which a force element couples bodies and joints by inertia.

    With the velocities V of all targets, one after the other, the kinetic energy is ½ V · M V, and
    the inertial forces are M V̇ + b. The input takes M row by row, and then b.
    """

    name: str  # name of the port
    # Bodies, with their spatial velocities at their origins in the world, and joints, with their
    # velocities.
    targets: tuple[Body | Joint, ...]
    element: str  # name of the force element

    @property
    def sizes(self) -> list[int]:
        """How many velocities each target has."""
        return [6 if isinstance(each, Body) else each.num_velocities for each in self.targets]


class CoupledInertia(NamedTuple):
    """The inertia that couples the targets of an input."""

    targets: tuple[Body | Joint, ...]
    parts: list[slice]  # where each of them is in M and b
    # M, b: mass matrix and bias force, see `CouplingInput`, shapes (n, n) and (n,).
    M: Array
    b: Array
    element: str  # name of the force element

    @classmethod
    def from_wire(cls, coupling: CouplingInput, value: Array) -> CoupledInertia:
        """Return what is at the port of an input."""
        ends = np.cumsum([0, *coupling.sizes])
        n = int(ends[-1])
        parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
        M = value[: n * n].reshape(n, n)
        return cls(coupling.targets, parts, M, value[n * n :], coupling.element)

    def stacked(self, topology: Topology, of_bodies: Sequence[Array], of_joints: Array) -> Array:
        """Return the components that belong to the targets, one after the other."""
        return np.concatenate(
            [
                of_bodies[each.number or 0]
                if isinstance(each, Body)
                else of_joints[topology.mobilizer_of(each).v]
                for each in self.targets
            ]
        )

    def jacobian(self, topology: Topology, placements: Sequence[Placement]) -> Array:
        """Return J with V = J v."""
        rows = []
        for each in self.targets:
            if isinstance(each, Body):
                still = np.zeros(3)
                rows.append(spatial_jacobian(topology, placements, each.number or 0, still))
            else:
                rows.append(np.eye(topology.num_velocities)[topology.mobilizer_of(each).v])
        return np.concatenate(rows)

    def rigid(self, placements: Sequence[Placement]) -> Array:
        """Return V of shape (n, 6) for unit motions of all as one body about the world's origin."""
        rows = []
        for each in self.targets:
            if isinstance(each, Body):
                p = placements[each.number or 0].p_WB
                rows.append(shift_spatial_velocity(np.eye(6), p))
            else:
                rows.append(np.zeros((each.num_velocities, 6)))
        return np.concatenate(rows)

    def momentum(self, placements: Sequence[Placement], V: Array) -> Array:
        """Return the spatial momentum about the origin of the world for the velocities V."""
        return self.rigid(placements).T @ (self.M @ V)

    def mass_moment(self, placements: Sequence[Placement]) -> tuple[Array, Array]:
        """Return the mass m and the moment m p_WBcm."""
        X = self.rigid(placements)
        L = X.T @ (self.M @ X[:, 3:])  # of unit velocities: m c × e, and m e
        return L[3, 0], np.stack([L[2, 1], L[0, 2], L[1, 0]])


def added_forces(
    topology: Topology,
    couplings: Sequence[CoupledInertia],
    accelerations: Sequence[Array],
    vdot: Array,
) -> tuple[dict[int, Array], Array]:
    """Return the forces M V̇ + b on bodies, by their numbers, and along joints.

    Accelerations are those of all bodies in the world, the world first. Spatial forces are about
    the origins of bodies, expressed in the world.
    """
    on_bodies: dict[int, Array] = {}
    on_joints = np.zeros(topology.num_velocities)
    for each in couplings:
        F = each.M @ each.stacked(topology, accelerations, vdot) + each.b
        for target, part in zip(each.targets, each.parts, strict=True):
            if isinstance(target, Body):
                number = target.number or 0
                on_bodies[number] = on_bodies[number] + F[part] if number in on_bodies else F[part]
            else:
                selected = np.eye(topology.num_velocities)[topology.mobilizer_of(target).v]
                on_joints = on_joints + selected.T @ F[part]
    return on_bodies, on_joints


def coupled_energy(
    topology: Topology, couplings: Sequence[CoupledInertia], of_bodies: Sequence[Array], v: Array
) -> Array:
    """Return the kinetic energy ½ Σ V · M V in J, for velocities of bodies and joints."""
    total: Array = np.float64(0.0)
    for each in couplings:
        V = each.stacked(topology, of_bodies, v)
        total = total + 0.5 * dot(V, each.M @ V)
    return total


def coupled_weights(
    topology: Topology, couplings: Sequence[CoupledInertia], gravity: Array
) -> tuple[dict[int, Array], Array]:
    """Return the forces of the weight of coupled inertia, as `added_forces` does."""
    falling = [each._replace(b=np.zeros(len(each.b))) for each in couplings]
    accelerations = [np.concatenate([np.zeros(3), gravity])] * len(topology.bodies)
    return added_forces(topology, falling, accelerations, np.zeros(topology.num_velocities))
