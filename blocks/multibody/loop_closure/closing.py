"""Closed configurations: positions and velocities that constraints allow, found near given ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import dot, rotate_spatial
from flexure.blocks.multibody.constrained_dynamics.accuracy import fit_regularization
from flexure.blocks.multibody.constrained_dynamics.projection import equation_row
from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.constraints.constraint import Condition, Constraint
from flexure.blocks.multibody.constraints.frame_constraints import LoopJoint
from flexure.blocks.multibody.constraints.switched_constraint import SwitchedConstraint
from flexure.blocks.multibody.trees.kinematics import calc_accelerations
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError, quoted, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray

_MAX_ITERATIONS = 100
_LONGEST_STEP = 0.5  # rad or m
_HALVINGS = 30
_PATIENCE = 4  # steps, after which errors have to be smaller than
_PROGRESS = 0.95  # times what they were
_STARTS = 40  # from elsewhere
_FARTHEST = 2.0  # rad or m
_NEARBY = 1e-2  # rad or m, to where a configuration is compared with others
_LOOKS = 3  # at others
_INDEPENDENT = 1e-7  # least singular value of independent equations, relative to the largest
_MEANINGS = {
    "change point": "it can go on in more than one way from here, and rounding decides in which. "
    "Start beside it",
    "dead point": "the joints that are held cannot drive the others from here. Hold others, or "
    "start beside it",
}


@dataclass(frozen=True)
class Closure:
    """How the constraints of a plant are met in a context."""

    error: float  # largest error of an equation that is left
    iterations: int  # number of steps that were taken
    mobility: int  # number of velocities that can be chosen, locked joints left out
    # Number of displacements that can be chosen: more than velocities where equations between
    # velocities, as of rolling, are not those of positions.
    position_mobility: int
    # Number of equations that others imply here. Reactions are those with the least sum of squares
    # then.
    num_redundant: int
    # The same by the names of the constraints; an equation counts where those before it imply it.
    redundant: Mapping[str, int]
    # Whether this is a singular configuration: a change point, where more equations are redundant
    # than nearby, so that the mechanism can go on in more than one way; or a dead point of the
    # joints that were held, which do not determine the velocities of the others here.
    singularity: Literal["change point", "dead point"] | None


class Equations(NamedTuple):
    """All equations of the constraints in a context."""

    errors: FloatArray  # the values φ of the equations between positions
    # The rates φ̇ of these, and the values w of equations between velocities alone.
    rates: FloatArray
    # The derivatives of these by the velocities; zeros for equations that do not hold now.
    J: FloatArray
    of_positions: npt.NDArray[np.bool_]  # which rows of these belong to equations between positions


def calc_equations(tree: TreeDynamics, context: Any, *, modes: bool = False) -> Equations:
    """Return errors and rates of all equations, and their Jacobian, as numbers or symbols.

    Stops and sticking friction, which release moving coordinates, count only where `modes` do; else
    theirs are zero.
    """
    conditions = tree.conditions(context)
    if not modes:
        pairs = zip(conditions, tree.constraints, strict=True)
        conditions = [
            _let_go(condition) if isinstance(constraint, SwitchedConstraint) else condition
            for condition, constraint in pairs
        ]
    placements = tree.placements(context)
    rows = [
        equation_row(tree.topology, placements, condition, k)
        for condition in conditions
        for k in range(len(condition.rates))
    ]
    return Equations(
        scalars.array([error for each in conditions for error in each.errors]),
        scalars.array([rate for each in conditions for rate in each.rates]),
        scalars.array(rows) if rows else np.zeros((0, tree.topology.num_velocities)),
        np.array(
            [k < len(each.errors) for each in conditions for k in range(len(each.rates))],
            dtype=bool,
        ),
    )


def dependent_rates(
    tree: TreeDynamics, context: Any, free: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Return the rates of all velocities with which equations stay met while free ones stay.

    They solve J v̇ = -J̇ v, here for the velocities of the context.
    """
    placements, J = tree.placements(context), calc_equations(tree, context, modes=True).J
    A = calc_accelerations(tree.topology, placements, tree.motions(context))
    biases = [
        (bias + sum(dot(rotate_spatial(placements[n].R_WB, F), A[n]) for n, F in forces.items()))
        * (1.0 if condition.held is None else condition.held[k])
        for condition in tree.conditions(context)
        for k, (forces, bias) in enumerate(zip(condition.forces, condition.biases, strict=True))
    ]
    dependent = np.setdiff1d(np.flatnonzero(tree.constants.mobile_velocities(context)), free)
    rates = np.zeros(tree.topology.num_velocities)
    rates[dependent] = np.linalg.lstsq(J[:, dependent], -np.array(biases), rcond=None)[0]
    return rates


def _let_go(condition: Condition) -> Condition:
    """Return equations of which none holds."""
    errors, rates = np.zeros(len(condition.errors)), np.zeros(len(condition.rates))
    return condition._replace(errors=list(errors), rates=list(rates), held=list(rates))


class Freedom:
    """Which coordinates of a tree may move, and between which limits.

    Nothing moves along velocities that are held. Where limited, the limits of the positions of
    joints count, for coordinates whose velocities are their rates, and that are not held.
    """

    def __init__(
        self, tree: TreeDynamics, held: npt.NDArray[np.bool_], *, limited: bool = True
    ) -> None:
        topology = tree.topology
        self.held = held  # these velocities, shape (num_velocities,)
        self._tree = tree
        # Lower and upper limits of the positions, infinite where there are none,
        # shape (2, num_positions).
        self.limits = np.array([[-np.inf], [np.inf]]) * np.ones(topology.num_positions)
        # Which position a velocity moves, where it has limits, shape (num_velocities,).
        self.places = np.zeros(topology.num_velocities, dtype=np.intp)
        for each in topology.mobilizers:
            if limited and each.joint.velocities_are_rates:
                free = ~held[each.v]
                self.places[each.v] = range(each.q.start, each.q.stop)
                for row, limit in zip(self.limits, each.joint.position_limits, strict=True):
                    row[each.q] = np.where(free, limit, row[each.q])

    def within(self, q: FloatArray) -> FloatArray:
        """Return the positions next to some that are within the limits."""
        return np.asarray(np.clip(q, *self.limits))

    def blocked(self, q: FloatArray, step: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which velocities a step would take beyond their limits, from positions at them."""
        lower, upper = self.limits[:, self.places]
        at = q[self.places]
        return np.asarray(((at <= lower) & (step < 0.0)) | ((at >= upper) & (step > 0.0)))

    def at_limits(self, q: FloatArray) -> list[str]:
        """Return the names of the joints that are at their limits."""
        there = (q <= self.limits[0]) | (q >= self.limits[1])
        return [each.joint.name for each in self._tree.topology.mobilizers if np.any(there[each.q])]


def assemble(tree: TreeDynamics, context: Context, freedom: Freedom, tolerance: float) -> Closure:
    """Move positions until all constraints are met, and then make the velocities fit.

    Steps are those of Newton with the least change of the velocities that are free, so that what
    constraints do not ask for stays. A step is cut where it would be long, and halved where errors
    grow. Where that ends with open constraints, it begins again from positions around the present
    ones, ever farther away. Positions stay within the limits of joints. The context is changed at
    the end only. ``tolerance`` is the largest error that is left. EvaluationError is raised when
    errors do not become small, or when a constraint cannot hold with the values of the context. A
    singular configuration gives a warning.
    """
    for constraint in tree.constraints:
        constraint.check(context)
    trial, held = context.clone(), freedom.held
    iterations = close_anyhow(tree, context, trial, freedom, tolerance)
    fit_velocities(tree, trial, held, tolerance)
    tree.state.set(context, tree.state.get(trial))
    fit_regularization(tree, context)
    equations = calc_equations(tree, trial)
    # Which equations of each constraint hold whatever the modes are.
    holding = [np.full(len(c.rates), c.held is None, dtype=bool) for c in tree.conditions(trial)]
    keep = np.concatenate([np.zeros(0, dtype=bool), *holding])
    free, of_positions = equations.J[keep][:, ~held], equations.of_positions[keep]
    redundant = _redundant(tree, free, [int(np.sum(each)) for each in holding])
    count = sum(redundant.values())
    singularity = _singularity(tree, trial, held, tolerance)
    if singularity is not None:
        warn(
            f"'{tree.parent_plant.label}' is assembled at a {singularity}: {_MEANINGS[singularity]}"
        )
    return Closure(
        _largest(equations.errors),
        iterations,
        free.shape[1] - len(free) + count,
        free.shape[1] - rank(free[of_positions]),
        count,
        redundant,
        singularity,
    )


def _redundant(tree: TreeDynamics, J: FloatArray, counts: Sequence[int]) -> dict[str, int]:
    """Return how many equations of each constraint those before them imply, where there are any."""
    basis, found, start = np.zeros((0, J.shape[1])), {}, 0
    largest = np.linalg.norm(J, 2) if J.size else 0.0
    for constraint, count in zip(tree.constraints, counts, strict=True):
        rows = J[start : start + count]
        start += count
        rest = rows - (rows @ basis.T) @ basis
        rest -= (rest @ basis.T) @ basis
        _, sizes, directions = np.linalg.svd(rest, full_matrices=False)
        new = directions[sizes > _INDEPENDENT * largest]
        basis = np.concatenate([basis, new])
        if len(rows) > len(new):
            found[constraint.name] = len(rows) - len(new)
    return found


def _singularity(
    tree: TreeDynamics, context: Context, held: npt.NDArray[np.bool_], tolerance: float
) -> Literal["change point", "dead point"] | None:
    """Compare the ranks of the Jacobian here with those of configurations nearby."""
    locked = tree.constants.mobile_velocities(context) == 0.0
    here = _ranks(tree, context, locked, held)
    J, x = calc_equations(tree, context).J[:, ~locked], tree.state.get(context)
    most, rng, trial = here, np.random.default_rng(0), context.clone()
    for _ in range(_LOOKS if J.size else 0):
        way: FloatArray = rng.normal(size=(J.shape[1],))
        way -= np.linalg.lstsq(J, J @ way, rcond=_INDEPENDENT)[0]
        if _largest(way) < _INDEPENDENT:
            break  # nothing can move
        step = np.zeros(len(held))
        step[~locked] = way * (_NEARBY / _largest(way))
        move(tree, trial, x, step)
        if close(tree, trial, Freedom(tree, locked, limited=False), tolerance) is not None:
            ranks = _ranks(tree, trial, locked, held)
            most = max(most[0], ranks[0]), max(most[1], ranks[1])
    if most[0] > here[0]:
        return "change point"
    return "dead point" if most[1] > here[1] else None


def _ranks(tree: TreeDynamics, context: Context, *held: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the numbers of independent equations where some velocities are held, and others."""
    J = calc_equations(tree, context).J
    some, others = (rank(J[:, ~each]) for each in held)
    return some, others


def close(tree: TreeDynamics, trial: Any, freedom: Freedom, tolerance: float) -> int | None:
    """Move positions until all constraints are met; return the number of steps, or None."""
    state, nq = tree.state, tree.topology.num_positions
    move(tree, trial, state.get(trial), np.zeros(len(freedom.held)), freedom)
    equations = calc_equations(tree, trial)
    sizes: list[float] = []
    for iterations in range(_MAX_ITERATIONS):
        if _largest(equations.errors) <= tolerance:
            return None if _reversed(tree, trial) else iterations
        sizes.append(float(np.linalg.norm(equations.errors)))
        if iterations >= _PATIENCE and sizes[-1] > _PROGRESS * sizes[-1 - _PATIENCE]:
            return None
        x, size = state.get(trial), sizes[-1]
        step = _step(equations, x[:nq], freedom)
        for _ in range(_HALVINGS):
            move(tree, trial, x, step, freedom)
            equations = calc_equations(tree, trial)
            if float(np.linalg.norm(equations.errors)) < size:
                break
            step *= 0.5
        else:
            state.set(trial, x)
            return None
    return None


def _step(equations: Equations, q: FloatArray, freedom: Freedom) -> FloatArray:
    """Return the step of Newton, in which what is at a limit does not go beyond it."""
    J, held = equations.J[equations.of_positions], freedom.held
    while True:
        step = -_least_solution(J, equations.errors, held)
        beyond = freedom.blocked(q, step)
        if not np.any(beyond):
            return step * min(1.0, _LONGEST_STEP / max(_largest(step), _LONGEST_STEP))
        held = held | beyond


def close_anyhow(
    tree: TreeDynamics, context: Any, trial: Any, freedom: Freedom, tolerance: float
) -> int:
    """Close a mechanism from the present positions, or from others around them.

    ``trial``, which may be the context, is moved as by `assemble`. Returns the number of the last
    steps, or raises EvaluationError with the name of a constraint that stays open.
    """
    rng, held = np.random.default_rng(0), freedom.held
    x = tree.state.get(context)
    for k in range(_STARTS + 1):
        if k:
            away = rng.normal(size=len(held)) * (_FARTHEST * k / _STARTS)
            move(tree, trial, x, np.where(held, 0.0, away), freedom)
        iterations = close(tree, trial, freedom, tolerance)
        if iterations is not None:
            return iterations
    move(tree, trial, x, np.zeros(len(held)), freedom)
    close(tree, trial, freedom, tolerance)
    raise _stays_open(tree, trial, freedom, tolerance)


def fit_velocities(
    tree: TreeDynamics, trial: Any, held: npt.NDArray[np.bool_], tolerance: float
) -> None:
    """Change free velocities as little as constraints ask for."""
    equations = calc_equations(tree, trial)
    change = _least_solution(equations.J, equations.rates, held)
    x = tree.state.get(trial).copy()
    x[tree.topology.num_positions :] = tree.moving_velocities(trial) - change
    tree.state.set(trial, x)
    left = _largest(calc_equations(tree, trial).rates)
    if left > 1e3 * tolerance * (1.0 + _largest(tree.moving_velocities(trial))):
        raise EvaluationError(
            f"Cannot make the velocities of '{tree.parent_plant.label}' fit its constraints",
            expected="free velocities that satisfy them",
            found=f"rates of the equations of up to {left:.3g} with the velocities of held joints",
            remedy="Hold fewer joints, or set their velocities to values that satisfy the "
            "constraints",
        )


def move(
    tree: TreeDynamics, trial: Any, x: FloatArray, step: FloatArray, freedom: Freedom | None = None
) -> None:
    """Set positions that are away from those of x by displacements along the velocities."""
    nq = tree.topology.num_positions
    q = _moved(tree, x[:nq], step)
    q = q if freedom is None else freedom.within(q)
    tree.state.set(trial, np.concatenate([q, x[nq:]]))


def _moved(tree: TreeDynamics, q: FloatArray, step: FloatArray) -> FloatArray:
    """Return positions that are moved by small displacements along the velocities."""
    moved = q.copy()
    for mobilizer in tree.topology.mobilizers:
        joint, part = mobilizer.joint, q[mobilizer.q]
        rates = joint.calc_position_rates(part, step[mobilizer.v])
        moved[mobilizer.q] = joint.normalized_positions(part + rates)
    return moved


def _least_solution(J: FloatArray, right: FloatArray, held: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the shortest vector x with J x = right, in which held components are zero."""
    x = np.zeros(J.shape[1])
    if not held.all():
        x[~held] = np.linalg.lstsq(J[:, ~held], right, rcond=_INDEPENDENT)[0]
    return x


def rank(J: FloatArray) -> int:
    """Return the number of independent rows."""
    return int(np.linalg.matrix_rank(J, rtol=_INDEPENDENT)) if J.size else 0


def _largest(values: FloatArray) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def open_constraints(tree: TreeDynamics, context: Any, tolerance: float) -> str:
    """Return which constraints are open by more than a tolerance, in words, the worst one first."""
    conditions = tree.conditions(context)
    errors = [_largest(np.array(each.errors, dtype=float)) for each in conditions]
    pairs: Sequence[tuple[float, Constraint]] = sorted(
        zip(errors, tree.constraints, strict=True), key=lambda pair: -pair[0]
    )
    found = [f"'{each.name}' by {error:.3g}" for error, each in pairs if not error <= tolerance]
    return ", ".join(found or _reversed(tree, context))


def _reversed(tree: TreeDynamics, context: Any) -> list[str]:
    """Return which loop joints are the wrong way round, in words."""
    loops = (each for each in tree.constraints if isinstance(each, LoopJoint))
    return [problem for each in loops if (problem := each.start_problem(context)) is not None]


def _stays_open(
    tree: TreeDynamics, context: Any, freedom: Freedom, tolerance: float
) -> EvaluationError:
    """Say which constraints stay open."""
    names = freedom.at_limits(tree.state.get(context)[: tree.topology.num_positions])
    limited = (
        f"; at {'its' if len(names) == 1 else 'their'} limits: {quoted(names)}" if names else ""
    )
    return EvaluationError(
        f"Cannot assemble '{tree.parent_plant.label}'",
        expected=f"errors of constraints below {tolerance:g} near the present positions",
        found=f"open constraints: {open_constraints(tree, context, tolerance)}{limited}",
        remedy="Start nearer to a closed configuration, hold fewer joints, or check the lengths "
        "and frames of these constraints",
    )
