"""The equilibrium near given states, also of mechanisms that move freely in some directions."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import LostError
from flexure.solvers.analysis.forces_at_rest.homotopy import released
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

    Newton steps leave alone in which directions nothing resists. If they do not converge, forces
    balance the states and are gradually released (homotopy).
    """
    x, size = equations.states, size_of(equations.context)
    found = _settled(equations, reactions, size, attempt)
    if found is None:
        stays_open = equations.open_constraints()
        with suppress(LostError, EvaluationError):
            equations.move_to(released(equations, size, x, np.zeros(0))[0])
            found = _settled(equations, reactions, size, attempt)
    if found is None:
        if stays_open:
            raise not_closed(stays_open, attempt)
        raise EvaluationError(
            attempt,
            expected="an equilibrium near the values of the context",
            found=f"none within {_ITERATIONS} steps, and none by gradual release of the residual "
            "forces (homotopy)",
            remedy="Start nearer to one, such as equilibrium(...).context, or with less load",
        )
    point, flexible = found
    if not point.is_closed:
        raise not_closed(equations.open_constraints(), attempt)
    _refuse_driven(point, flexible, equations.coordinates.names, attempt)
    return point, flexible


def _settled(
    equations: StaticEquations, reactions: FloatArray | None, size: float, attempt: str
) -> tuple[StaticPoint, Flexibility] | None:
    """Do what `settle` does by Newton steps alone; return None where they end nowhere."""
    coordinates, x, before = equations.coordinates, equations.states, np.inf
    lengths = np.ones(len(coordinates))
    lengths[: coordinates.num_displacements] = np.where(coordinates.turns, 1.0, size)
    for iteration in range(_ITERATIONS):
        point = equations.point(reactions)
        if not (np.isfinite(point.stiffness).all() and np.isfinite(point.forces).all()):
            if iteration == 0:
                raise _not_finite(point, coordinates.names, attempt)
            return None
        flexible = flexibility(point)
        step = _step(point, flexible)
        length = float(np.linalg.norm(step / lengths))
        if length < _CLOSE**2 or (iteration > 2 and before <= length < _NOISE):
            return point, flexible
        x = coordinates.moved(x, step * min(1.0, _LONGEST / length))
        equations.move_to(x)
        before = length
        if length < _CLOSE:
            point = equations.point(reactions)
            return point, flexibility(point)
    return None


def _step(point: StaticPoint, flexible: Flexibility) -> FloatArray:
    """Return the step of Newton: first to where constraints are met, and then along them."""
    if not point.errors.size:
        return np.asarray(flexible.motions @ point.forces)
    closing = point.closing
    return np.asarray(closing + flexible.motions @ (point.forces - point.stiffness @ closing))


def not_closed(stays_open: str, attempt: str) -> EvaluationError:
    """Return the error where constraints stay open."""
    return EvaluationError(
        attempt,
        expected="an equilibrium near the values of the context, at which constraints are met",
        found=f"open constraints: {stays_open}",
        remedy="Call assemble(context) of the plant first",
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


def _not_finite(point: StaticPoint, names: list[str], attempt: str) -> EvaluationError:
    """Return the error where forces are not defined."""
    row, column = np.argwhere(~np.isfinite(np.column_stack([point.stiffness, point.forces])))[0]
    slope = f" by {names[column]}" if column < len(names) else ""
    return EvaluationError(
        attempt,
        expected="finite forces and derivatives of forces",
        found=f"NaN or infinity along {names[row]}{slope}",
        remedy="Use another point",
    )
