"""Growing motions around equilibria at which no stiffness is negative.

Forces that have a potential and passive damping make no motion grow where no stiffness is negative.
Follower forces and controllers may (flutter). Then the motions themselves decide: with the mass M,
the damping D and the stiffness K of displacements θ, and other states s,

    M θ̈ + D θ̇ + K θ = F s,    ṡ = S θ + V θ̇ + A s

restricted to the displacements ``θ = R y`` that constraints and held strokes allow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody import MultibodyTree, Plant
from flexure.blocks.multibody.force_elements.force_element import ForceElement
from flexure.blocks.multibody.plants.energy_ledger import EnergyTotals
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations
from flexure.solvers.analysis.forces_at_rest.allowed_motions import allowed_motions
from flexure.solvers.analysis.forces_at_rest.static_coordinates import trees_of
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations
from flexure.solvers.analysis.statics.load_paths.path_run import PathPlan

#: Asymmetry of a stiffness from which on forces may have no potential.
NO_POTENTIAL = 1e-6
_GROWS = 1e-6  # negative damping ratio of a motion that grows
_ROUNDING = 1e-13  # of the square of the fastest pole, what rounding leaves in that of another
_MASSLESS = 1e-13  # part of the largest inertia that is none


def may_drive(context: Context) -> bool:
    """Return whether anything but gravity and elements of the library acts on mechanisms."""
    return not all(
        isinstance(leaf.system, (MultibodyTree, EnergyTotals))
        or not leaf.system.input_ports
        or (
            isinstance(leaf.system, ForceElement)
            and type(leaf.system).__module__.startswith("flexure.blocks.")
        )
        for leaf in context.leaves()
    )


def count_growing(
    context: Context,
    plan: PathPlan,
    numbers: FloatArray,
    states: FloatArray,
    reactions: FloatArray,
    attempt: str,
) -> npt.NDArray[np.intp]:
    """Return at some points of a path how many motions grow, oscillations counted once.

    The context is changed. Numbers are the values of what the plan varies, reactions the forces of
    holders; each has a row for each point, as states have. Raises EvaluationError when motions are
    not defined, as those of bodies without mass.
    """
    static = StaticEquations(context, plan.variables, plan.held, attempt=attempt)
    rates = Equations(context.clone(), plan.variables, shares=True)
    found = []
    for row, x, held in zip(numbers[:, : plan.num_variables], states, reactions, strict=True):
        static.set_variables(row)
        static.move_to(x)
        poles = _poles(static, rates.jacobian(np.concatenate([static.states, row])), held, attempt)
        sizes = np.abs(poles)
        fastest = np.max(sizes, initial=0.0)
        least = _GROWS * sizes + _ROUNDING * fastest * (fastest / np.maximum(sizes, 1e-300))
        found.append(np.sum((poles.real > least) & (poles.imag >= 0.0)))
    return np.array(found, dtype=np.intp)


def _poles(
    static: StaticEquations, slopes: FloatArray, reactions: FloatArray, attempt: str
) -> npt.NDArray[np.complex128]:
    """Return the poles of small motions around the present equilibrium, by slopes of all rates."""
    from scipy.linalg import block_diag

    point, coordinates = static.point(reactions), static.coordinates
    free, others, d = coordinates.free, coordinates.others, point.num_displacements
    v, K = coordinates.velocities[free], point.stiffness
    rows = np.vstack([point.normals, point.directions])
    if np.any(rows[:, d:]):
        raise EvaluationError(attempt, found="constraints that other states move")
    plants = [tree.parent_plant for _, tree in trees_of(static.context)]
    masses = [p.calc_mass_matrix(static.context) for p in plants if isinstance(p, Plant)]
    M, R = block_diag(*masses)[np.ix_(free, free)], allowed_motions(rows[:, :d], rows[:, :d]).R
    reduced = R.T @ M @ R
    size = np.sqrt(np.diag(reduced))
    pushed = R.T @ np.hstack([-K[:d, :d] @ R, M @ slopes[np.ix_(v, v)] @ R, -K[:d, d:]])
    least = np.linalg.eigvalsh(reduced / np.outer(size, size))[:1] if np.all(size) else np.zeros(1)
    if np.any(least < _MASSLESS) or not np.isfinite(pushed).all():
        raise EvaluationError(
            attempt,
            expected="masses against all motions, which decide where forces have no potential",
            found="motions without mass",
            remedy="Give all bodies their mass and inertia",
        )
    n = R.shape[1]
    return np.asarray(
        np.linalg.eigvals(
            np.block(
                [
                    [np.zeros((n, n)), np.eye(n), np.zeros((n, len(others)))],
                    [np.linalg.solve(reduced, pushed)],
                    [-K[d:, :d] @ R, slopes[np.ix_(others, v)] @ R, -K[d:, d:]],
                ]
            )
        ),
        dtype=complex,
    )
