"""Static response of a mechanism: loads for motions, and motions without loads.

A stiffness K is regular where each motion needs a load. Motions N with ``K N = 0`` are free: loads
that do work on them have no equilibrium, and all others have many. With the singular values of K,
each unknown measured so that the entries are alike, ``K⁺`` takes the other loads to motions.
Where constraints leave motions ``R y``, all this is asked of ``Rᵀ K R``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.allowed_motions import allowed_motions
from flexure.solvers.analysis.forces_at_rest.static_equations import StaticPoint

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
    K, size = point.stiffness, alike(point.stiffness)
    scaled, allowed = K / np.outer(size, size), None
    if point.normals.size:
        allowed = allowed_motions(point.normals / size, point.pushes / size)
        scaled = allowed.L.T @ scaled @ allowed.R
    left, stretches, right = np.linalg.svd(scaled)
    rank = int(np.sum(stretches > _ROUNDING * np.max(stretches, initial=0.0)))
    inverse = (right[:rank].T / stretches[:rank]) @ left[:, :rank].T
    free, basis = right[rank:].T, np.eye(len(K))
    if allowed is not None:
        inverse = allowed.R @ inverse @ allowed.L.T
        free, basis = allowed.R @ free, allowed.R / size[:, np.newaxis]
    free = free / size[:, np.newaxis]
    return Flexibility(inverse / np.outer(size, size), _by_coordinates(free), basis)


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
