"""Stresses of finite elements, and stiffness by stress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import require, require_that
from flexure.diagrams.values.arrays import FloatArray, as_numbers


@dataclass(frozen=True)
class Recovery:
    """Stresses of displacements of the nodes."""

    points: FloatArray  # where stresses are computed, shape (p, 3)
    # Returns σx, σy, σz, τxy, τyz, τzx of displacements (3 m, n), of shape (p, 6, n).
    stresses: Callable[[FloatArray], FloatArray]
    # ``stiffening(u, Ψ)`` returns ∫ ∇Ψ_i · σ(u) ∇Ψ_j dV for the stress of each of the displacements
    # u of shape (3 m, c), of shape (c, n, n).
    stiffening: Callable[[FloatArray, FloatArray], FloatArray] | None = None


def assembled(nodes: npt.NDArray[np.intp], count: int, *blocks: FloatArray) -> list[Any]:
    """Return sparse sums of the matrices of all elements, each with k unknowns for each node.

    Blocks have the shape (e, n, n, k, k) for the n nodes (e, n) of each element.
    """
    import scipy.sparse as sparse

    nodes = nodes.astype(np.int64)
    keys = (nodes[:, :, np.newaxis] * count + nodes[:, np.newaxis, :]).ravel()
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    row, column = np.divmod(ordered[first], count)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
    size = len(first), len(order)
    sums = sparse.csr_array((np.ones(size[1]), order, np.append(first, size[1])), shape=size)
    found = []
    for each in blocks:
        k = each.shape[-1]
        data = (sums @ each.reshape(-1, k * k)).reshape(-1, k, k)
        found.append(sparse.bsr_array((data, column, starts), shape=(k * count, k * count)))
    return found


def stress_stiffness(stresses: FloatArray, gradients: FloatArray) -> FloatArray:
    """Return Σ ∂u_a/∂x_b σ_bd ∂u_a/∂x_d over points of elements, as (c, n, n).

    Stresses have the shape (e, q, b, d, c) and contain weights; gradients have (e, q, a, b, n).
    """
    size = np.prod(gradients.shape[:-1], dtype=int), gradients.shape[-1]
    rows, parts = gradients.reshape(size).T, np.moveaxis(stresses, -1, 0)
    return np.stack([rows @ (part[:, :, np.newaxis] @ gradients).reshape(size) for part in parts])


def equivalent(stresses: FloatArray) -> FloatArray:
    """Return von Mises' stress of σx, σy, σz, τxy, τyz, τzx in the last axis."""
    normal, shear = stresses[..., :3], stresses[..., 3:]
    differences = normal - np.roll(normal, 1, axis=-1)
    squares = 0.5 * np.sum(differences**2, axis=-1) + 3.0 * np.sum(shear**2, axis=-1)
    return np.asarray(np.sqrt(squares))


def recovery_of(given: Any, size: int, attempt: str) -> Recovery:
    """Return the recovery by a matrix (6 p, 3 m) of stresses at points (p, 3)."""
    import scipy.sparse as sparse

    pair = isinstance(given, tuple) and len(given) == 2
    require(pair, given, attempt, "recovery, a pair of points and matrix")
    points = as_numbers(given[0], attempt)
    matrix: Any = given[1] if sparse.issparse(given[1]) else as_numbers(given[1], attempt)
    fits = points.ndim == 2 and points.shape[1] == 3 and matrix.shape == (6 * len(points), size)
    expected = "points of shape (p, 3) and a matrix of shape (6 p, 3 m) for recovery"
    found = f"shapes {points.shape} and {matrix.shape}, with 3 m = {size}"
    require_that(fits, attempt, expected, found)
    return Recovery(points, lambda u: np.asarray(matrix @ u).reshape(len(points), 6, u.shape[1]))
