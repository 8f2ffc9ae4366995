"""Forward dynamics by the articulated-body algorithm, with an effort proportional to the bodies.

`articulate` eliminates the joints once; from what it returns come the rates under the forces that
act, and what further forces would add to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from flexure.blocks.math import (
    MassProperties,
    cross,
    dot,
    ldl_factors,
    ldl_solve,
    rotate_inertia_matrix,
    rotate_spatial,
    shift_inertia_matrix,
    shift_spatial_force,
    shift_spatial_velocity,
    spatial_inertia_matrix,
)
from flexure.blocks.multibody.bodies.body_motion import Placement
from flexure.blocks.multibody.trees.inverse_dynamics import needed_force
from flexure.blocks.multibody.trees.topology import Mobilizer, Topology
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.scalars import refuse_where
from flexure.diagrams.values.arrays import Array


class _Steady(NamedTuple):
    """How a body B moves while no velocity changes, expressed in B.

    S and Q give its velocity in P, the body inboard of it, at Bo: V_PB = S Qᵀ v. A counts from
    free fall where gravity is an acceleration of the world.
    """

    S: Array
    Q: Array
    w: Array
    A: Array


class _Elimination(NamedTuple):
    """The equation of a joint: Qᵀ v̇ = e - Kᵀ A, with the acceleration A of P carried to Bo.

    L and d are the factors of D, and mobile is zero for a locked joint. Where `is_freed`, a force
    on B goes no farther than to the joint, which hands on its own effort.
    """

    K: Array
    e: Array
    L: Array
    d: Array
    mobile: Array
    is_freed: Array


class Push(NamedTuple):
    """The effect of forces on the joints that they reach, by numbers of outboard bodies.

    Two pushes f and g have the product f · M⁻¹ g, the sum of ``f.efforts · g.rates``.
    """

    # What arrives along the velocities of each joint, if joints inboard of it stand still.
    efforts: dict[int, Array]
    rates: dict[int, Array]  # the rates of these velocities then

    def along(self, rates: Mapping[int, Array]) -> Array:
        """Return the sum of products of the efforts with rates of a push."""
        total = 0.0
        for number, effort in self.efforts.items():
            if number in rates:
                total = total + dot(effort, rates[number])
        return total


@dataclass(frozen=True)
class Articulation:
    """A tree whose joints are eliminated from its equations of motion, under forces that act."""

    topology: Topology  # the tree
    placements: Sequence[Placement]  # of all bodies
    _q: Array
    _v: Array
    _bodies: list[_Steady]
    _eliminations: Mapping[int, _Elimination]

    @property
    def own_rates(self) -> dict[int, Array]:
        """The rates at each joint under the forces that act, if joints inboard stand still."""
        return {number: each.e for number, each in self._eliminations.items()}

    def rates(self, own: Mapping[int, Array] | None = None) -> Array:
        """Return the rates of all velocities from those of a push, or under the forces that act."""
        own = self.own_rates if own is None else own
        beside: dict[int, Array] = {}
        rates = []
        for mobilizer in self.topology.mobilizers:
            inboard, outboard = mobilizer.inboard, mobilizer.outboard
            A = self._carried(mobilizer, beside[inboard]) if inboard in beside else None
            if not mobilizer.is_weld:
                K, (S, Q, *_) = self._eliminations[outboard].K, self._bodies[outboard]
                rate = own.get(outboard)
                if A is not None:
                    rate = -K.T @ A if rate is None else rate - K.T @ A
                if rate is not None:
                    A = S @ rate if A is None else A + S @ rate
                rates.append(np.zeros(S.shape[1]) if rate is None else Q @ rate)
            if A is not None:
                beside[outboard] = A
        return np.concatenate([np.zeros(0), *rates])

    def steady_accelerations(self) -> list[Array]:
        """Return the acceleration of each body about Bo, expressed in B, at v̇ = 0."""
        still = np.zeros(3)
        bodies = steady_motions(self.topology, self.placements, self._q, self._v, still)
        return [body.A for body in bodies]

    def push(self, forces: Mapping[int, Array], tau: Mapping[int, Array]) -> Push:
        """Return what further forces do at joints.

        Spatial forces are about Bo, expressed in the bodies, by numbers of bodies; generalized
        forces are along the velocities of joints, by numbers of outboard bodies.
        """
        Z = {number: -F for number, F in forces.items()}
        push = Push({}, {})
        for mobilizer in reversed(self.topology.mobilizers):
            inboard, outboard, rows = mobilizer.inboard, mobilizer.outboard, mobilizer.rows
            Z_B = Z.get(outboard)
            if not mobilizer.is_weld and (Z_B is not None or outboard in tau):
                K, _, L, d, mobile, is_freed = self._eliminations[outboard]
                S, Q = self._bodies[outboard].S, self._bodies[outboard].Q
                own = Q.T @ tau[outboard] if outboard in tau else np.zeros(S.shape[1])
                Z_B = np.zeros(6) if Z_B is None else Z_B
                effort = own - S[rows].T @ Z_B[rows]
                rates = mobile * ldl_solve(L, d, effort)
                push.efforts[outboard], push.rates[outboard] = effort, rates
                freed = mobile * (S @ own) + (1.0 - mobile) * Z_B
                Z_B = np.where(is_freed, freed, Z_B + K @ effort)
            if inboard and Z_B is not None:
                R, p = self.placements[outboard].X_PB
                if mobilizer.turns:
                    Z_B = rotate_spatial(R, Z_B)
                Z_B = shift_spatial_force(Z_B, -p)
                Z[inboard] = Z[inboard] + Z_B if inboard in Z else Z_B
        return push

    def _carried(self, mobilizer: Mobilizer, A: Array) -> Array:
        """Return an acceleration of P as one of Bo, expressed in B."""
        R, p = self.placements[mobilizer.outboard].X_PB
        A = shift_spatial_velocity(A, p)
        return rotate_spatial(R.T, A) if mobilizer.turns else A


def articulate(
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
    spin: Array | None = None,
) -> Articulation:
    """Eliminate the joints from the equations of motion of a tree under given forces.

    It solves (M + diag(reflected)) v̇ = τ - C v + Σ Jᵀ (F + weight) without forming M. All of a
    body B is about Bo and expressed in B, where its own inertia is constant, and the velocities of
    its joint are Qᵀ v, along axes of B. From the tips inwards, the bodies outboard of a joint are
    summed up in an articulated inertia P and a force Z that B needs when no velocity changes. Each
    joint, with the constant or simple matrix S, is eliminated from them, and what remains is turned
    to the inboard body, shifted and added there::

        D = Sᵀ P S + reflected
        K = P S D⁻¹                P ← P - K (P S)ᵀ
        e = D⁻¹ (Qᵀ τ - Sᵀ Z)      Z ← Z + P S e

    Then from the world outwards, with A = 0 for the world::

        v̇ = Q (e - Kᵀ shift(A_P))      A_B = shift(A_P) + S Qᵀ v̇

    where A is the acceleration beside that at v̇ = 0. Gravity is an acceleration of the world
    upwards, and spin the angular velocity of the world. A joint that is not ``mobile`` has rates of
    exactly zero, and the rest moves as if it were driven at constant velocity.

    The inertias of all bodies but the world are about Bo, each expressed in the body itself.
    ``forces_W`` are about Bo, expressed in the world, by numbers of bodies. ``reflected`` is the
    inertia in kg m² or kg that rotors add to each velocity of a mobilizer. Gravity and spin are in
    m/s² and rad/s, expressed in the world.

    EvaluationError is raised when a joint can move without moving any inertia.

    Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 7.3.
    """
    bodies = steady_motions(topology, placements, q, v, gravity, spin)
    P = [np.zeros((6, 6)), *(spatial_inertia_matrix(M) for M in inertias)]
    Z = [np.zeros(6)]
    for number, M in enumerate(inertias, start=1):
        needed = needed_force(M, bodies[number].w, bodies[number].A)
        if number in forces_W:
            R_BW = np.transpose(placements[number].R_WB)
            needed = needed - rotate_spatial(R_BW, forces_W[number])
        Z.append(needed)
    eliminations: dict[int, _Elimination] = {}
    for k, mobilizer in reversed(list(enumerate(topology.mobilizers))):
        inboard, outboard = mobilizer.inboard, mobilizer.outboard
        P_B, Z_B = P[outboard], Z[outboard]
        if not mobilizer.is_weld:
            S, Q = bodies[outboard].S, bodies[outboard].Q
            joint_force = Q.T @ tau[mobilizer.v]
            eliminations[outboard], P_B, Z_B = _eliminate(
                mobilizer, S, P_B, Z_B, joint_force, mobile[k], reflected[k]
            )
        if inboard:
            R, p = placements[outboard].X_PB
            if mobilizer.turns:
                P_B, Z_B = rotate_inertia_matrix(R, P_B), rotate_spatial(R, Z_B)
            P[inboard] = P[inboard] + shift_inertia_matrix(P_B, -p)
            Z[inboard] = Z[inboard] + shift_spatial_force(Z_B, -p)
    return Articulation(topology, placements, q, v, bodies, eliminations)


def steady_motions(
    topology: Topology,
    placements: Sequence[Placement],
    q: Array,
    v: Array,
    gravity: Array,
    spin: Array | None = None,
) -> list[_Steady]:
    """Return how all bodies move while no velocity changes; in the world, without its spin."""
    none, w_W = np.zeros((6, 0)), np.zeros(3) if spin is None else spin
    world = _Steady(none, none, w_W, np.concatenate([np.zeros(3), -gravity]))
    bodies = [world] * len(topology.bodies)
    for mobilizer in topology.mobilizers:
        w_P, A_P = bodies[mobilizer.inboard].w, bodies[mobilizer.inboard].A
        R, p = placements[mobilizer.outboard].X_PB
        A = shift_spatial_velocity(A_P, p)
        A = np.concatenate([A[:3], A[3:] + cross(w_P, cross(w_P, p))])
        w = w_P
        if mobilizer.turns:
            w, A = R.T @ w, rotate_spatial(R.T, A)
        S, Q = mobilizer.calc_motion_factors(q[mobilizer.q])
        S, Q = S[:, ::-1], Q[:, ::-1]  # the last velocity is eliminated first, see `_eliminate`
        if not mobilizer.is_weld:
            V = S @ (Q.T @ v[mobilizer.v])
            w_PB, v_PB = V[:3], V[3:]
            coriolis = np.concatenate([cross(w, w_PB), 2.0 * cross(w, v_PB)])
            A = A + coriolis + mobilizer.calc_bias(q[mobilizer.q], v[mobilizer.v], w_PB)
            w = w + w_PB
        bodies[mobilizer.outboard] = _Steady(S, Q, w, A)
    return bodies


def _eliminate(
    mobilizer: Mobilizer, S: Array, P: Array, Z: Array, tau: Array, mobile: Array, reflected: Array
) -> tuple[_Elimination, Array, Array]:
    """Return the equation of a joint, and what it leaves of P and Z."""
    # The last velocity is eliminated first. The last velocities of a free body are those of its
    # origin, which only mass resists.
    rows = mobilizer.rows
    PS = P[:, rows] @ S[rows]
    D = S[rows].T @ PS[rows] + (reflected + (1.0 - mobile)) * np.eye(S.shape[1])
    with np.errstate(all="ignore"):  # a matrix that is not positive definite is refused below
        L, d = ldl_factors(D)
        K = mobile * ldl_solve(L, d, PS.T).T
        e = mobile * ldl_solve(L, d, tau - S[rows].T @ Z[rows])
    checked = refuse_where(np.any(d <= 0.0), e, partial(_no_inertia, mobilizer))
    rest = P - K @ PS.T
    # Without a rotor, what the joint moves freely is zero but for rounding.
    is_freed = mobilizer.freed & (reflected == 0.0)
    rest = np.where(np.logical_or.outer(is_freed, is_freed), (1.0 - mobile) * P, rest)
    return _Elimination(K, checked, L, d, mobile, is_freed), rest, Z + PS @ e


def _no_inertia(mobilizer: Mobilizer) -> EvaluationError:
    """Return the error of a joint that moves nothing."""
    return EvaluationError(
        f"Cannot accelerate joint '{mobilizer.joint.name}'",
        expected="a positive inertia along each of its velocities",
        found="bodies that do not resist one of them",
        remedy="Give the bodies that it moves a mass and, where they rotate, moments of inertia; "
        "weld or lock the joint of a base without mass",
    )
