"""Forward dynamics by the articulated-body algorithm, with an effort proportional to the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from flexure.blocks.math import (
    MassProperties,
    cholesky_factor,
    shift_inertia_matrix,
    shift_spatial_force,
    shift_spatial_velocity,
    solve_lower,
    solve_lower_transposed,
    spatial_inertia_matrix,
)
from flexure.blocks.multibody.inverse_dynamics import missing_forces
from flexure.blocks.multibody.kinematics import Motion, Placement, calc_accelerations
from flexure.blocks.multibody.topology import Mobilizer, Topology
from flexure.diagrams.errors import EvaluationError
from flexure.diagrams.scalars import refuse_where
from flexure.diagrams.values import Array


class _Elimination(NamedTuple):
    """The equation of a joint: v̇ = L⁻ᵀ (y - Y A), with the acceleration A of P carried to Bo.

    Its velocities are in reversed order.
    """

    L: Array
    Y: Array
    y: Array


def forward_dynamics(
    topology: Topology,
    placements: Sequence[Placement],
    motions: Sequence[Motion],
    inertias_W: Sequence[MassProperties],
    forces_W: Sequence[Array],
    tau: Array,
    mobile: Array,
    reflected: Array,
) -> Array:
    """Return the rates of all velocities under given forces.

    It solves (M + diag(reflected)) v̇ = τ - C v + Σ Jᵀ F without forming M. From the tips inwards,
    the bodies outboard of a joint are summed up in an articulated inertia P and a force Z that B
    needs when no velocity changes; both are about Bo. Each joint, with the matrix H, is eliminated
    from them, and what remains is shifted to the inboard body and added there::

        D = Hᵀ P H + diag(reflected) = L Lᵀ
        Y = L⁻¹ Hᵀ P            P ← P - Yᵀ Y
        y = L⁻¹ (τ - Hᵀ Z)      Z ← Z + Yᵀ y

    Then from the world outwards, with A = 0 for the world::

        v̇ = L⁻ᵀ (y - Y shift(A_P))      A_B = shift(A_P) + H v̇

    where A is the acceleration beside that at v̇ = 0.

    Parameters
    ----------
    topology : Topology
        The tree.
    placements, motions, inertias_W : sequence
        Of all bodies, as `calc_placements`, `calc_motions` and `world_inertias` give them.
    forces_W : sequence of array, shape (6,)
        Spatial force F that acts on each body about Bo, expressed in the world, the world first.
    tau : array, shape (num_velocities,)
        Generalized forces along the velocities.
    mobile : array, shape (num_velocities,)
        One for each velocity that can change, and zero for the others: their rate is exactly zero,
        and the rest moves as if they were driven at constant velocity.
    reflected : array, shape (num_velocities,)
        Inertia that rotors add to the velocities, in kg m² or kg.

    Returns
    -------
    array, shape (num_velocities,)

    Raises
    ------
    EvaluationError
        When a joint can move without moving any inertia.

    Notes
    -----
    Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, section 7.3.
    """
    steady = calc_accelerations(topology, placements, motions)
    Z = missing_forces(motions, inertias_W, forces_W, steady)
    P = [spatial_inertia_matrix(M) for M in inertias_W]
    eliminations: dict[int, _Elimination] = {}
    for mobilizer in reversed(topology.mobilizers):
        inboard, outboard, part = mobilizer.inboard, mobilizer.outboard, mobilizer.v
        B, P_B, Z_B = placements[outboard], P[outboard], Z[outboard]
        if not mobilizer.is_weld:
            _, Y, y = eliminations[outboard] = _eliminate(
                mobilizer, B.H_PB_W, P_B, Z_B, tau[part], mobile[part], reflected[part]
            )
            if inboard:
                P_B, Z_B = P_B - Y.T @ Y, Z_B + Y.T @ y
        if inboard:
            P[inboard] = P[inboard] + shift_inertia_matrix(P_B, -B.p_PB_W)
            Z[inboard] = Z[inboard] + shift_spatial_force(Z_B, -B.p_PB_W)
    return _rates(topology, placements, eliminations)


def _eliminate(
    mobilizer: Mobilizer,
    H: Array,
    P: Array,
    Z: Array,
    tau: Array,
    mobile: Array,
    reflected: Array,
) -> _Elimination:
    """Return the equation of a joint; velocities that cannot change get a row of the identity."""
    rows = mobilizer.rows
    # The last velocity goes first. Those of a free body are of its origin, which only mass resists.
    H = (H[rows] * mobile)[:, ::-1]
    mobile, tau, reflected = mobile[::-1], tau[::-1], reflected[::-1]
    PH = P[:, rows] @ H
    D = H.T @ PH[rows] + np.diag(reflected + (1.0 - mobile))
    with np.errstate(all="ignore"):  # a matrix that is not positive definite is refused below
        L = cholesky_factor(D)
        Y = solve_lower(L, PH.T)
        y = solve_lower(L, mobile * tau - H.T @ Z[rows])
    # Numbers that are not finite come from elsewhere, where they are to be found.
    is_free = ~np.all(np.diag(L) > 0.0) & np.all(np.isfinite(np.diag(D)))
    return _Elimination(L, Y, refuse_where(is_free, y, partial(_no_inertia, mobilizer)))


def _no_inertia(mobilizer: Mobilizer) -> EvaluationError:
    """Return the error of a joint that moves nothing."""
    return EvaluationError(
        f"Cannot accelerate joint '{mobilizer.joint.name}'",
        expected="a positive inertia along each of its velocities",
        found="bodies that do not resist one of them",
        remedy="Give the bodies that it moves a mass and, where they turn, an extent",
    )


def _rates(
    topology: Topology, placements: Sequence[Placement], eliminations: dict[int, _Elimination]
) -> Array:
    """Return the rates of all velocities, from the world outwards."""
    accelerations: list[Array] = [np.zeros(6)] * len(topology.bodies)
    rates = [np.zeros(0)]
    for mobilizer in topology.mobilizers:
        inboard, outboard = mobilizer.inboard, mobilizer.outboard
        B, A = placements[outboard], accelerations[inboard]
        if inboard:
            A = shift_spatial_velocity(A, B.p_PB_W)
        if not mobilizer.is_weld:
            L, Y, y = eliminations[outboard]
            rate = solve_lower_transposed(L, y - Y @ A if inboard else y)[::-1]
            rates.append(rate)
            A = A + B.H_PB_W @ rate
        accelerations[outboard] = A
    return np.concatenate(rates)
