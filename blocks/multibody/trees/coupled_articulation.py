"""The dynamics of trees in which inertia couples bodies, with the mass matrix as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from flexure.blocks.math import MassProperties, ldl_factors, ldl_solve, mirrored, rotate_spatial
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.trees.articulated_body import Articulation, Push, steady_motions
from flexure.blocks.multibody.trees.coupled_inertia import CoupledInertia, added_forces
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces, needed_force
from flexure.blocks.multibody.trees.kinematics import world_inertias
from flexure.blocks.multibody.trees.mass_matrix import mass_matrix
from flexure.blocks.multibody.trees.topology import Topology
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.scalars import refuse_where, solved
from flexure.diagrams.values.arrays import Array


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
