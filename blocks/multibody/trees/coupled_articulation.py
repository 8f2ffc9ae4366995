"""The dynamics of trees in which inertia couples bodies, as of an elastic body between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flexure.blocks.math import (
    MassProperties,
    dot,
    ldl_factors,
    ldl_solve,
    mirrored,
    rotate_spatial,
    shift_inertia_matrix,
    shift_spatial_force,
    shift_spatial_velocity,
    spatial_inertia_matrix,
)
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.articulated_body import Articulation, Push, steady_motions
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces, needed_force
from flexure.blocks.multibody.trees.kinematics import spatial_jacobian, world_inertias
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.scalars import refuse_where, solved
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


def mass_matrix(
    topology: Topology, placements: Sequence[Placement], inertias_W: Sequence[MassProperties]
) -> Array:
    """Return the mass matrix M, with which the kinetic energy is ½ vᵀ M v.

    A velocity of a joint moves all bodies outboard of it as if they were one body. The forces that
    this takes are projected on the joint itself and on the joints inboard of it. M is exactly
    symmetric, and positive definite if every joint has an inertia to move.

    Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 6.2.
    """
    composites = [spatial_inertia_matrix(M) for M in inertias_W]
    blocks: dict[tuple[int, int], Array] = {}
    for mobilizer in reversed(topology.mobilizers):
        inboard, outboard, rows = mobilizer.inboard, mobilizer.outboard, mobilizer.rows
        composite, H = composites[outboard], placements[outboard].H_PB_W
        if inboard:
            shifted = shift_inertia_matrix(composite, -placements[outboard].p_PB_W)
            composites[inboard] = composites[inboard] + shifted
        if mobilizer.is_weld:
            continue
        F = composite[:, rows] @ H[rows]
        blocks[outboard, outboard] = mirrored(H[rows].T @ F[rows])
        for crossed, passed in pairwise(topology.path_to(outboard)):
            F = shift_spatial_force(F, -placements[crossed.outboard].p_PB_W)
            if not passed.is_weld:
                H = placements[passed.outboard].H_PB_W
                block = H[passed.rows].T @ F[passed.rows]
                blocks[passed.outboard, outboard] = block
                blocks[outboard, passed.outboard] = block.T
    return _assembled(topology, blocks)


def _assembled(topology: Topology, blocks: dict[tuple[int, int], Array]) -> Array:
    """Return the matrix of the blocks, which is zero between branches."""
    moving = [mobilizer for mobilizer in topology.mobilizers if not mobilizer.is_weld]
    if not moving:
        return np.zeros((0, 0))
    sizes = {mobilizer.outboard: mobilizer.joint.num_velocities for mobilizer in moving}
    return np.block(
        [[blocks.get((i, j), np.zeros((sizes[i], sizes[j]))) for j in sizes] for i in sizes]
    )


def coupled_mass_matrix(
    topology: Topology,
    placements: Sequence[Placement],
    inertias_W: Sequence[MassProperties],
    couplings: Sequence[CoupledInertia],
) -> Array:
    """Return the mass matrix of a tree with what couples its bodies: M + Σ Jᵀ M_c J."""
    M = mass_matrix(topology, placements, inertias_W)
    for each in couplings:
        J = each.jacobian(topology, placements)
        M = M + J.T @ (each.M @ J)
    return M


@dataclass(frozen=True)
class CoupledArticulation(Articulation):
    """A tree under forces that act, whose mass matrix is factored as a whole.

    It takes the place of an `Articulation` where inertia couples bodies, which the articulated-body
    algorithm cannot eliminate joint by joint. Pushes have one entry, with all velocities.
    """

    _M: Array = field(default_factory=lambda: np.zeros((0, 0)))
    _factors: tuple[Array, ...] = ()
    _mobile: Array = field(default_factory=lambda: np.zeros(0))
    _own: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def own_rates(self) -> dict[int, Array]:
        """The rates of all velocities under the forces that act."""
        return {0: self._own}

    def rates(self, own: Mapping[int, Array] | None = None) -> Array:
        """Return the rates of all velocities from those of a push, or under the forces that act."""
        own = self.own_rates if own is None else own
        return own.get(0, np.zeros(self.topology.num_velocities))

    def push(self, forces: Mapping[int, Array], tau: Mapping[int, Array]) -> Push:
        """Return what further forces do to all velocities; see `Articulation.push`."""
        in_world = {
            number: rotate_spatial(self.placements[number].R_WB, F) for number, F in forces.items()
        }
        effort = generalized_forces(self.topology, self.placements, in_world)
        parts = [
            tau.get(each.outboard, np.zeros(each.joint.num_velocities))
            for each in self.topology.mobilizers
        ]
        effort = self._mobile * (effort + np.concatenate([np.zeros(0), *parts]))
        return Push({0: effort}, {0: solved(self._M, effort, self._factors, ldl_solve)})


def articulate_coupled(
    topology: Topology,
    placements: Sequence[Placement],
    inertias: Sequence[MassProperties],
    q: Array,
    v: Array,
    gravity: Array,
    forces_W: Mapping[int, Array],
    tau: Array,
    mobile: Array,
    reflected: Sequence[Array],
    couplings: Sequence[CoupledInertia],
) -> CoupledArticulation:
    """Factor the mass matrix of a tree in which inertia couples bodies; see `articulate`."""
    sizes = [each.joint.num_velocities for each in topology.mobilizers]
    of_velocities = np.repeat(np.arange(len(sizes)), sizes)
    free = mobile[of_velocities]
    rotors = np.concatenate(
        [np.zeros(0), *(r * np.ones(n) for r, n in zip(reflected, sizes, strict=True))]
    )
    inertias_W = world_inertias(placements, inertias)
    M = coupled_mass_matrix(topology, placements, inertias_W, couplings) + np.diag(rotors)
    M = mirrored(np.outer(free, free) * M + np.diag(1.0 - free))
    with np.errstate(all="ignore"):  # a matrix that is not positive definite is refused below
        factors = _, pivots = ldl_factors(M)
    bodies = steady_motions(topology, placements, q, v, gravity)
    A_W, missing = [bodies[0].A], [np.zeros(6)]
    for number, own in enumerate(inertias, start=1):
        R = placements[number].R_WB
        A_W.append(rotate_spatial(R, bodies[number].A))
        F = rotate_spatial(R, needed_force(own, bodies[number].w, bodies[number].A))
        missing.append(F - forces_W[number] if number in forces_W else F)
    nothing = np.zeros(topology.num_velocities)
    on_bodies, on_joints = added_forces(topology, couplings, A_W, nothing)
    for number, F in on_bodies.items():
        missing[number] = missing[number] + F
    effort = free * (
        tau - on_joints - generalized_forces(topology, placements, dict(enumerate(missing)))
    )
    own_rates = solved(M, effort, factors, ldl_solve)
    own_rates = refuse_where(np.any(pivots <= 0.0), own_rates, _no_inertia)
    return CoupledArticulation(
        topology, placements, q, v, bodies, {}, _M=M, _factors=factors, _mobile=free, _own=own_rates
    )


def _no_inertia() -> EvaluationError:
    return EvaluationError(
        "Cannot accelerate the joints of a plant with a flexible body",
        expected="a positive inertia along each of their velocities",
        found="a joint that moves no inertia",
        remedy="Give the bodies that it moves a mass and, where they rotate, moments of inertia",
    )
