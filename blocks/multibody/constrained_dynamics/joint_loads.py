"""The loads that joints transmit, and the friction that is in proportion to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flexure.blocks.math import dot
from flexure.blocks.multibody.constrained_dynamics.constrained_motion import Multipliers
from flexure.blocks.multibody.constrained_dynamics.contact_friction import (
    ContactFriction,
    eliminate,
    refuse_unless,
)
from flexure.blocks.multibody.constraints.constraint import constraint_forces
from flexure.blocks.multibody.constraints.sticking_constraint import LoadedFriction
from flexure.blocks.multibody.trees.coupled_articulation import added_forces
from flexure.blocks.multibody.trees.inverse_dynamics import (
    missing_forces,
    reaction,
    transmitted_forces,
)
from flexure.blocks.multibody.trees.kinematics import calc_accelerations
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.values.arrays import Array

if TYPE_CHECKING:
    from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics

_STEPS = 6  # of Newton's method, which doubles correct digits; a residual beyond is refused
_SOLVED = 1e-9  # of the friction
_MOST = 1e9  # times as much friction as without its own load

#: The parts of a load without friction, and their changes by each friction of 1.
_Load: TypeAlias = "tuple[list[Array], list[list[Array]]]"


def transmitted_under(
    tree: TreeDynamics, context: Any, rates: Array, multipliers: Sequence[Array]
) -> list[Array]:
    """Return what joints transmit under rates of the velocities and multipliers of constraints.

    As `transmitted_forces`, it is affine in both together.
    """
    topology, placements = tree.topology, tree.placements(context)
    motions, forces = tree.motions(context), tree.given_forces(context)
    if tree.constraints:
        upheld = constraint_forces(placements, tree.conditions(context), multipliers)
        for number, force in upheld.items():
            forces[number] = forces[number] + force
    A = calc_accelerations(topology, placements, motions, rates)
    couplings = tree.constants.couplings(context)
    if couplings:
        carried, _ = added_forces(topology, couplings, A, rates)
        for number, F in carried.items():
            forces[number] = forces[number] - F
    missing = missing_forces(motions, tree.inertias(context), forces, A)
    return transmitted_forces(topology, placements, missing)


def with_loaded_friction(tree: TreeDynamics, context: Any, found: Multipliers) -> Multipliers:
    """Return multipliers and rates with the friction that follows loads: of contacts, of joints.

    The friction of contacts is in proportion to their multipliers, and part of all that follows.
    Each friction τ_i of a joint, with its coefficient in the direction of its slip s_i, loads
    joints itself. With the reactions R without it, their changes G_j by a friction of 1, and the
    sum N of the sizes of the parts that rub, it solves ::

        τ_i + s_i N_i(R + Σ G_j τ_j) = 0

    by Newton's method from τ = 0. As ``|N_i(F + dF) - N_i(F)| <= N_i(dF)``, there is exactly one
    solution where the spectral radius of the matrix ``|s_i| N_i(G_j)`` is less than 1, which is so
    if and only if it leaves (1 - K) x = 1 a solution without negative numbers. Where the radius is
    larger, there may be several solutions, or none (Painlevé's paradox), and EvaluationError is
    raised.
    """
    equations = found.equations
    if equations is None:
        return found
    names = [each.name for each in tree.constraints]
    contacts = ContactFriction(equations, tree.conditions(context), names)
    rates, values = contacts.rubbing(found.rates, found.values)
    found = found._replace(rates=rates, values=values)
    frictions = [each for each in tree.frictions if isinstance(each, LoadedFriction)]
    if not frictions:
        return found
    responses = []
    for friction in frictions:
        assert friction.index is not None  # the plant builder numbers constraints before
        pushed, values = equations.response(equations.rows[friction.index][0])
        responses.append(contacts.rubbing(equations.articulation.rates(pushed), values))

    def reactions(rates: Array, values: Sequence[Array]) -> list[Array]:
        carried, placements = transmitted_under(tree, context, rates, values), tree.placements
        mobilizers = [tree.topology.mobilizer_of(each.joint) for each in frictions]
        return [reaction(each, placements(context), carried) for each in mobilizers]

    alone = reactions(found.rates, found.values)
    pressed = [
        reactions(found.rates + rates, [a + b for a, b in zip(found.values, values, strict=True)])
        for rates, values in responses
    ]
    loads = [
        (each.loads(context, R), [each.loads(context, with_j[i] - R) for with_j in pressed])
        for i, (each, R) in enumerate(zip(frictions, alone, strict=True))
    ]
    s = scalars.array(
        [each.coefficients(context)[0] * each.slip_directions(context)[0] for each in frictions]
    )
    tau = _solution([each.name for each in frictions], s, loads)
    total, upheld = found.rates, found.values
    for t, (rates, values) in zip(tau, responses, strict=True):
        total = total + t * rates
        upheld = [a + t * b for a, b in zip(upheld, values, strict=True)]
    slips = {int(each.index or 0): tau[i : i + 1] for i, each in enumerate(frictions)}
    return found._replace(values=upheld, rates=total, frictions=slips)


def _solution(names: Sequence[str], s: Array, loads: Sequence[_Load]) -> Array:
    """Return the frictions that belong to the loads under them, with their coefficients s."""
    tau, unit = np.zeros(len(names)), np.eye(len(names))
    sizes, slopes = _strengths(loads, tau)
    without = np.sum(sizes)
    for _ in range(_STEPS):
        tau = tau - eliminate(unit + s[:, None] * slopes, tau + s * sizes)[0]
        sizes, slopes = _strengths(loads, tau)
    error = np.abs(tau + s * sizes)
    K = scalars.array([[sum(map(_size, parts)) for parts in changes] for _, changes in loads])
    s = np.abs(s)
    K = s[:, None] * K
    margin, _ = eliminate(unit - K, np.ones(len(names)))
    is_one = np.logical_and(np.min(margin) >= 1.0, np.max(margin) <= _MOST)
    return refuse_unless(
        np.logical_and(is_one, np.all(error <= _SOLVED * s * sizes)),
        without + np.sum(K),
        tau,
        lambda: EvaluationError(
            f"Cannot find the friction of {quoted(names)}",
            expected="friction that loads its own joint by less than it takes to cause it",
            found=f"{np.max(np.abs(np.linalg.eigvals(K))):.3g} times as much: the joint may lock "
            "itself, or its friction may have several values (Painlevé's paradox)",
            remedy="Make the bearing longer, the friction smaller, or the mass less eccentric; a "
            "compliant guide, such as a bushing with JointFriction, has a unique motion",
        ),
    )


def _size(part: Array) -> Array:
    """Return the length of a vector."""
    return np.sqrt(dot(part, part))


def _strengths(loads: Sequence[_Load], tau: Array) -> tuple[Array, Array]:
    """Return the sizes of loads that frictions change, and their slopes by these."""
    totals, slopes = [], []
    for parts, changes in loads:
        total: Array = 0.0
        row: list[Array] = [0.0] * len(changes)
        for k, alone in enumerate(parts):
            part = sum((t * each[k] for t, each in zip(tau, changes, strict=True)), alone)
            square = dot(part, part)
            size = np.sqrt(np.where(square > 0.0, square, 1.0))
            total = total + np.where(square > 0.0, size, 0.0)
            row = [r + dot(part, each[k]) / size for r, each in zip(row, changes, strict=True)]
        totals.append(total)
        slopes.append(row)
    return scalars.array(totals), scalars.array(slopes)
