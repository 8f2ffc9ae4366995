"""The equilibrium near some states, also of what moves freely in some directions."""

from __future__ import annotations

import numpy as np

from flexure.diagrams.errors import EvaluationError
from flexure.diagrams.values import FloatArray
from flexure.solvers.analysis.forces_at_rest.static_coordinates import size_of
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations, StaticPoint
from flexure.solvers.analysis.statics.free_motions import Flexibility, flexibility, motion_in_words

_ITERATIONS = 60
_LONGEST = 0.3  # rad, or part of the size of the mechanism, of a step
_CLOSE = 1e-9  # of the last step, whose error is about the square
_NOISE = 1e-6  # of a step that does not become shorter any more
_DRIVEN = 1e-9  # of all forces, what may be left along free motions


def settle(
    equations: StaticEquations, reactions: FloatArray | None, attempt: str
) -> tuple[StaticPoint, Flexibility]:
    """Move to the equilibrium near the present states; return the forces there, and what moves.

    Newton steps leave alone in which directions nothing resists.

    Raises
    ------
    EvaluationError
        When there is none, something is not finite, or a force drives a free motion.
    """
    coordinates, x, before = equations.coordinates, equations.states, np.inf
    lengths = np.ones(len(coordinates))
    turns = coordinates.turns
    lengths[: coordinates.num_displacements] = np.where(turns, 1.0, size_of(equations.context))
    for iteration in range(_ITERATIONS):
        point = equations.point(reactions)
        _refuse_not_finite(point, coordinates.names, attempt)
        flexible = flexibility(point)
        step = _step(point, flexible)
        length = float(np.linalg.norm(step / lengths))
        if length < _CLOSE**2 or (iteration > 2 and before <= length < _NOISE):
            break
        x = coordinates.moved(x, step * min(1.0, _LONGEST / length))
        equations.move_to(x)
        before = length
        if length < _CLOSE:
            point = equations.point(reactions)
            flexible = flexibility(point)
            break
    else:
        _refuse_open(equations, point, attempt)
        raise EvaluationError(
            attempt,
            expected="an equilibrium near the values of the context",
            found=f"none within {_ITERATIONS} steps",
            remedy="Start from load_path(...).context(0), which comes to rest from farther away,"
            " from equilibrium(...).context, or from less load",
        )
    _refuse_open(equations, point, attempt)
    _refuse_driven(point, flexible, coordinates.names, attempt)
    return point, flexible


def _step(point: StaticPoint, flexible: Flexibility) -> FloatArray:
    """Return the step of Newton: first to where constraints are met, and then along them."""
    if not point.errors.size:
        return np.asarray(flexible.motions @ point.forces)
    closing = point.closing
    return np.asarray(closing + flexible.motions @ (point.forces - point.stiffness @ closing))


def _refuse_open(equations: StaticEquations, point: StaticPoint, attempt: str) -> None:
    """Raise where constraints are not met."""
    if not point.is_closed:
        raise not_closed(equations.open_constraints(), attempt)


def not_closed(stays_open: str, attempt: str) -> EvaluationError:
    """Return the error where constraints stay open."""
    return EvaluationError(
        attempt,
        expected="an equilibrium near the values of the context, at which constraints are met",
        found=f"what stays open: {stays_open}",
        remedy="Call assemble(context) of the plant before",
    )


def _refuse_driven(
    point: StaticPoint, flexible: Flexibility, names: list[str], attempt: str
) -> None:
    """Raise where forces do work on a free motion."""
    work = np.abs(flexible.free.T @ point.forces)
    terms = np.abs(flexible.free.T) @ (np.abs(point.stiffness) @ np.ones(len(names)))
    driven = work > _DRIVEN * (terms + 1.0)
    if np.any(driven):
        worst = flexible.free[:, int(np.argmax(work))]
        raise EvaluationError(
            attempt,
            expected="an equilibrium near the values of the context",
            found=f"forces that drive a free motion: {motion_in_words(worst, names)}",
            remedy="Hold it, or lock a joint",
        )


def _refuse_not_finite(point: StaticPoint, names: list[str], attempt: str) -> None:
    bad = np.argwhere(~np.isfinite(np.column_stack([point.stiffness, point.forces])))
    if bad.size:
        row, column = bad[0]
        slope = f" by {names[column]}" if column < len(names) else ""
        raise EvaluationError(
            attempt,
            expected="finite forces and derivatives of forces",
            found=f"NaN or infinity along {names[row]}{slope}",
            remedy="Take another point",
        )


__all__ = ["not_closed", "settle"]
