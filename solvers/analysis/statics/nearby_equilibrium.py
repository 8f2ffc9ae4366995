"""The equilibrium near given states, and how it responds to loads; motions may be free.

A stiffness K is regular where each motion needs a load. Motions N with ``K N = 0`` are free: loads
that do work on them have no equilibrium, and all others have many. With the singular values of K,
each unknown measured so that the entries are alike, ``K⁺`` takes the other loads to motions.
Where constraints leave motions ``R y``, all this is asked of ``Rᵀ K R``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.curve_points import LostError
from flexure.solvers.analysis.forces_at_rest.path_following import released
from flexure.solvers.analysis.forces_at_rest.static_coordinates import size_of
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticEquations, StaticPoint

_ITERATIONS = 60
_LONGEST = 0.3  # rad, or part of the size of the mechanism, of a step
_CLOSE = 1e-9  # of the last step, whose error is about the square
_NOISE = 1e-6  # of a step that does not become shorter any more
_DRIVEN = 1e-9  # of all forces, what may be left along free motions
_ROUNDING = 1e-13  # of the largest singular value of a stiffness with entries of about 1
_PASSES = 5
_SHOWN = 0.05  # of the largest part of a motion, which a text mentions


class Flexibility(NamedTuple):
    """How unknowns of statics follow loads."""

    motions: FloatArray  # K⁺: motions by loads that do no work on free motions, shape (n, n)
    # Free motions in columns. Each has a coordinate that is 1 there, and 0 in the others,
    # shape (n, k).
    free: FloatArray
    allowed: FloatArray  # a basis of the motions that constraints allow, shape (n, a)


def flexibility(point: StaticPoint) -> Flexibility:
    """Return the motions by loads, and those without loads, at a point."""
    K, R = point.stiffness, np.eye(len(point.stiffness))
    L = R
    if point.normals.size:  # first, as entries of K may be rounding in all that is measured by them
        L, R = _motions_left(point.normals, point.pushes, point.normals)
        K = L.T @ K @ R
    size = alike(K)
    left, stretches, right = np.linalg.svd(K / np.outer(size, size))
    rank = int(np.sum(stretches > _ROUNDING * np.max(stretches, initial=0.0)))
    inverse = (right[:rank].T / stretches[:rank]) @ left[:, :rank].T / np.outer(size, size)
    free = R @ (right[rank:].T / size[:, np.newaxis])
    return Flexibility(R @ inverse @ L.T, _by_coordinates(free), R)


def _motions_left(normals: FloatArray, *rows: FloatArray) -> list[FloatArray]:
    """Return bases of what rows leave free, in which the coordinates that normals leave are 1."""
    from scipy.linalg import qr

    _, _, order = qr(normals, mode="economic", pivoting=True)
    fixed, free = np.split(order, [len(normals)])
    bases = []
    for each in rows:
        basis = np.zeros((len(order), len(free)))
        basis[free, range(len(free))] = 1.0
        basis[fixed] = -np.linalg.solve(each[:, fixed], each[:, free])
        bases.append(basis)
    return bases


def alike(K: FloatArray) -> FloatArray:
    """Return by what to divide rows and columns of K, so that the largest entries are about 1."""
    size = np.ones(len(K))
    for _ in range(_PASSES):
        scaled = np.abs(K) / np.outer(size, size)
        largest = np.sqrt(np.maximum(np.max(scaled, axis=0), np.max(scaled, axis=1)))
        size *= np.sqrt(np.where(largest > 0.0, largest, 1.0))
    return size


def _by_coordinates(free: FloatArray) -> FloatArray:
    """Return the same motions, with one coordinate for each that the others leave alone."""
    from scipy.linalg import qr

    if not free.size:
        return free
    _, _, order = qr(free.T, pivoting=True)
    return np.asarray(free @ np.linalg.inv(free[order[: free.shape[1]]]))


def motion_in_words(motion: FloatArray, names: Sequence[str]) -> str:
    """Return the names of the coordinates that move most."""
    parts = np.abs(motion)
    order = np.argsort(-parts, kind="stable")
    told = [names[k] for k in order[:4] if parts[k] >= _SHOWN * parts[order[0]]]
    return " with ".join(told)


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
    stays_open = equations.open_constraints()
    if stays_open or not point.is_closed:
        raise not_closed(stays_open, attempt)
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
