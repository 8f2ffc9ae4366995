"""Factors of large stiffness matrices, by nested dissection of the positions of their nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray

Numbers = npt.NDArray[np.intp]

_LEAF = 48  # nodes that are not divided
_SINGULAR = 1e-13  # of the diagonal: what is left of it by elimination


class _Front(NamedTuple):
    """Unknowns that are eliminated together, ``start`` to ``end``, and later ones next to them.

    ``inverse`` is that of their triangular factor, and ``below`` the factor of the later ones.
    """

    start: int
    end: int
    later: Numbers
    inverse: FloatArray
    below: FloatArray


class Cholesky:
    """The factors of a sparse positive definite matrix, three unknowns for each node.

    Nodes are divided again and again by planes across the longest extent, each part from the other
    by the nodes on the plane, which are eliminated after both (nested dissection, George 1973).
    Dense matrices of unknowns and later ones next to them are factored from the leaves to the root,
    with what their parts leave (multifrontal method, Duff and Reid 1983). So a body of 10^5 nodes
    takes matrix products in place of sparse elimination.

    Parameters
    ----------
    matrix : sparse array, shape (3 m, 3 m)
        The matrix.
    points : array, shape (m, 3)
        Positions of the nodes.

    Raises
    ------
    LinAlgError
        When the matrix is not positive definite.
    """

    def __init__(self, matrix: Any, points: FloatArray) -> None:
        import scipy.sparse as sparse
        from scipy.linalg.lapack import dtrtri

        entries = sparse.coo_array(matrix)
        count = len(points)
        itself = np.arange(count)
        row = np.concatenate([entries.row // 3, itself])
        column = np.concatenate([entries.col // 3, itself])
        ones = np.ones(len(row), np.int8)
        pattern = sparse.coo_array((ones, (row, column)), shape=(count, count)).tocsr()
        parts = _dissected(pattern, itself, points)
        order = np.concatenate([nodes for nodes, _ in parts])
        self.order = (3 * order[:, np.newaxis] + np.arange(3)).ravel()
        permuted = sparse.csr_array(matrix)[self.order][:, self.order]
        diagonal = permuted.diagonal()
        local = np.zeros(3 * count, dtype=np.intp)
        left: list[tuple[Numbers, FloatArray]] = []
        self.fronts: list[_Front] = []
        end = 0
        for nodes, children in parts:
            start, end = end, end + 3 * len(nodes)
            rows = permuted[start:end]
            taken = [left.pop() for _ in range(children)]
            beyond = np.concatenate([rows.indices, *(each for each, _ in taken)])
            later = np.unique(beyond[beyond >= end])
            width = end - start
            local[start:end] = np.arange(width)
            local[later] = width + np.arange(len(later))
            F = np.zeros((width + len(later), width + len(later)))
            row = np.repeat(np.arange(width), np.diff(rows.indptr))
            kept = rows.indices >= start
            F[local[rows.indices[kept]], row[kept]] = rows.data[kept]
            for each, rest in taken:
                place = local[each]
                F[np.ix_(place, place)] += rest
            own = np.linalg.cholesky(F[:width, :width])
            if np.any(np.diagonal(own) ** 2 <= _SINGULAR * diagonal[start:end]):
                raise np.linalg.LinAlgError("the matrix is singular")
            inverse, _ = dtrtri(own, lower=1)
            below = F[width:, :width] @ inverse.T
            self.fronts.append(_Front(start, end, later, inverse, below))
            left.append((later, F[width:, width:] - below @ below.T))

    def solve(self, loads: FloatArray) -> FloatArray:
        """Return the solution for loads of shape (3 m,) or (3 m, k)."""
        x = np.asarray(loads, dtype=float)[self.order]
        for front in self.fronts:
            part = slice(front.start, front.end)
            x[part] = front.inverse @ x[part]
            x[front.later] -= front.below @ x[part]
        for front in reversed(self.fronts):
            part = slice(front.start, front.end)
            x[part] = front.inverse.T @ (x[part] - front.below.T @ x[front.later])
        found = np.empty_like(x)
        found[self.order] = x
        return found


def _dissected(pattern: Any, nodes: Numbers, points: FloatArray) -> list[tuple[Numbers, int]]:
    """Return parts in the order of elimination, each with the number of those that it joins."""
    if len(nodes) > _LEAF:
        x = points[:, np.argmax(np.ptp(points, axis=0))]
        farthest = np.maximum.reduceat(x[pattern.indices], pattern.indptr[:-1])
        ordered = np.sort(x)
        places = np.unique(ordered[len(x) * 2 // 5 : len(x) * 3 // 5 + 1])
        # nodes up to a place, less those whose neighbors are all up to it too
        sizes = np.searchsorted(ordered, places, "right") - np.searchsorted(
            np.sort(np.maximum(farthest, x)), places, "right"
        )
        place = places[np.argmin(sizes)]
        below = x <= place
        between = below & (farthest > place)
        sides = below & ~between, ~below
        if all(side.any() for side in sides) and 2 * between.sum() < len(nodes):
            found = []
            for side in sides:
                found += _dissected(pattern[side][:, side], nodes[side], points[side])
            return [*found, (nodes[between], 2)]
    return [(nodes, 0)]
