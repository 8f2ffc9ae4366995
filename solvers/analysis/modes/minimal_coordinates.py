"""Small motions in minimal coordinates: one displacement for each velocity of a mechanism.

A quaternion has four components for three ways to turn, and a locked joint has positions that do
not move. With the kinematics q̇ = N(q) v of the joints, small motions of a tree are

    δq = N(q) δθ,    δθ = N⁺(q) δq

with as many displacements θ as there are velocities that can move. At rest θ̇ = v, so that the mass
matrix of the tree belongs to θ, too. Constraints J v = 0 make some of them depend on the others,
δθ = Z δθ_i, and the mass matrix of these is Zᵀ M Z. All other states are coordinates themselves.

Equations between velocities alone, as of rolling, leave δθ free, and a mechanism can rest beside
where it rests. Small motions from rest keep J δθ at what it is, so that they are in δθ = Z δθ_i,
too; the poles at zero of other places of rest are left out. In motion this is not so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexure.blocks.multibody import MultibodyTree
from flexure.blocks.multibody.loop_closure.closing import calc_equations
from flexure.blocks.multibody.trees.coupled_articulation import coupled_mass_matrix
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context, LeafContext
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.static_coordinates import Indices, displacement_names

#: Least pivot of independent constraints, as a part of the largest.
_INDEPENDENT = 1e-7


@dataclass(frozen=True, eq=False)
class TreeMotion:
    """The part of minimal coordinates that one tree has."""

    tree: MultibodyTree
    # displacements, rates: where its displacements and their rates are among the coordinates.
    displacements: Indices
    rates: Indices
    # The velocities of the tree that they belong to; those of locked joints, and those that depend
    # on others by constraints, are left out.
    free: Indices
    # All velocities of the tree, for those of the displacements, shape (num_velocities, n).
    velocities: FloatArray
    mass: FloatArray  # the mass matrix of these velocities
    # What gravity can do to each of them, in 1/s²: about g/r of a pendulum of the length r.
    loads: FloatArray


class MinimalCoordinates:
    """Coordinates of the small motions of a system around the values of a context."""

    def __init__(self, context: Context) -> None:
        # What the coordinates are: the paths of joint angles and translations, such as
        # ``"door.axis.angle"``; ``"boat.free.rotation[x]"`` and ``"boat.free.translation[x]"`` for
        # joints whose positions have no rates of their own; the names of all other states. Rates
        # have the name of what they are the rate of.
        self.names: list[str] = []
        self.trees: list[TreeMotion] = []  # the trees in it
        # Coordinates whose equations belong together: of one joint, or one of another block.
        self.groups: list[Indices] = []
        n = context.store.layout.num_states
        self._outwards: list[FloatArray] = []
        self._inwards: list[FloatArray] = []
        self._num_states = n
        for leaf in context.leaves():
            state = leaf.system.continuous_state
            if isinstance(leaf.system, MultibodyTree) and state is not None:
                self._add_tree(leaf, leaf.system)
            elif state is not None:
                first = len(self.names)
                self.names += Place.of(state).names
                self.groups += [np.array([k]) for k in range(first, len(self.names))]
                part = np.eye(n)[leaf.x_slice]
                self._outwards.append(part)
                self._inwards.append(part)
        # Small motions of the states, for those of the coordinates, shape (n, m).
        self.outwards = np.vstack([np.zeros((0, n)), *self._outwards]).T
        # Small motions of the coordinates, for those of the states, shape (m, n).
        self.inwards = np.vstack([np.zeros((0, n)), *self._inwards])

    def _add_tree(self, leaf: LeafContext, tree: MultibodyTree) -> None:
        """Add the displacements of a tree and their rates."""
        topology, q = tree.topology, tree.q(leaf)
        num_q, num_v, mobile = topology.num_positions, topology.num_velocities, []
        N, inverse = np.zeros((num_q, num_v)), np.zeros((num_v, num_q))
        names: list[str] = []
        first = len(self.names)
        for mobilizer, moves in zip(topology.mobilizers, tree.constants.mobile(leaf), strict=True):
            joint, at = mobilizer.joint, q[mobilizer.q]
            rates = [joint.calc_position_rates(at, v) for v in np.eye(joint.num_velocities)]
            moved = [joint.calc_velocities(at, rate) for rate in np.eye(joint.num_positions)]
            if rates and moves:
                N[mobilizer.q, mobilizer.v] = np.transpose(rates)
                inverse[mobilizer.v, mobilizer.q] = np.transpose(moved)
                mobile.append(np.arange(mobilizer.v.start, mobilizer.v.stop))
                names += displacement_names(tree, joint)
        free = np.concatenate([np.zeros(0, dtype=np.intp), *mobile])
        equations = calc_equations(tree, leaf, modes=True)
        if not np.all(equations.of_positions) and np.any(tree.moving_velocities(leaf)):
            raise EvaluationError(
                f"Cannot describe small motions of '{tree.parent_plant.label}' by displacements",
                expected="rest, where constraints between velocities are like such of positions",
                found="velocities that are not zero",
                remedy="Take the poles of fx.linearize(...) while it rolls, or set velocities to "
                "zero",
            )
        Z, chosen = _independent(equations.J[:, free])
        names, moving = [names[k] for k in chosen], free
        mobile = [part[np.isin(part, free[chosen])] for part in mobile]
        mobile = [part for part in mobile if len(part)]
        free = free[chosen]
        count = len(free)
        self.names += names + names
        start = leaf.x_slice.start
        outwards = np.zeros((2 * count, self._num_states))
        inwards = np.zeros_like(outwards)
        outwards[:count, start : start + num_q] = (N[:, moving] @ Z).T
        inwards[:count, start : start + num_q] = inverse[free]
        outwards[count:, start + num_q + moving] = Z.T
        inwards[range(count, 2 * count), start + num_q + free] = 1.0
        self._outwards.append(outwards)
        self._inwards.append(inwards)
        sizes = np.cumsum([len(part) for part in mobile])[:-1]
        displacements = first + np.arange(count)
        for part in (displacements, displacements + count):
            self.groups += np.split(part, sizes) if count else []
        placements, _, inertias = tree.kinematics(leaf)
        couplings = tree.constants.couplings(leaf)
        whole = coupled_mass_matrix(topology, placements, inertias, couplings) + np.diag(
            tree.constants.reflected_inertia(leaf)
        )
        velocities = np.zeros((num_v, count))
        velocities[moving] = Z
        mass = Z.T @ np.asarray(whole, dtype=float)[np.ix_(moving, moving)] @ Z
        total = sum(float(inertia.mass) for inertia in inertias)
        total += sum(float(each.mass_moment(placements)[0]) for each in couplings)
        loads = np.linalg.norm(tree.gravity(leaf)) * np.sqrt(total / np.diag(mass))
        behind = displacements + count
        self.trees.append(TreeMotion(tree, displacements, behind, free, velocities, mass, loads))

    @property
    def displacements(self) -> Indices:
        """Where the displacements of all trees are among the coordinates."""
        parts = [motion.displacements for motion in self.trees]
        return np.concatenate([np.zeros(0, dtype=np.intp), *parts])

    @property
    def rates(self) -> Indices:
        """Where their rates are."""
        parts = [motion.rates for motion in self.trees]
        return np.concatenate([np.zeros(0, dtype=np.intp), *parts])

    @property
    def loads(self) -> FloatArray:
        """The effect of gravity on the displacements of all trees."""
        return np.concatenate([np.zeros(0), *(motion.loads for motion in self.trees)])

    @property
    def mass(self) -> FloatArray:
        """The mass matrix of all trees."""
        from scipy.linalg import block_diag

        masses = (motion.mass for motion in self.trees)
        return np.asarray(block_diag(np.zeros((0, 0)), *masses))


def _independent(J: FloatArray) -> tuple[FloatArray, Indices]:
    """Return Z with δθ = Z δθ_i for all displacements with J δθ = 0, and which ones θ_i are."""
    n = J.shape[1]
    if not J.size:
        everything: FloatArray = np.eye(n)
        return everything, np.arange(n, dtype=np.intp)
    from scipy.linalg import qr

    R, order = qr(J, mode="r", pivoting=True)
    pivots = np.abs(np.diagonal(R))
    rank = int(np.sum(pivots > _INDEPENDENT * np.max(pivots, initial=0.0)))
    chosen: Indices = np.sort(order[rank:])
    dependent = np.setdiff1d(np.arange(n), chosen)
    Z: FloatArray = np.zeros((n, len(chosen)))
    Z[chosen, range(len(chosen))] = 1.0
    Z[dependent] = np.linalg.lstsq(J[:, dependent], -J[:, chosen], rcond=None)[0]
    return Z, chosen
