"""Factors of large stiffness matrices, by nested dissection of the positions of their nodes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray

Numbers = npt.NDArray[np.intp]

_LEAF = 48  # nodes that are not divided
_SINGULAR = 1e-13  # of the diagonal: what is left of it by elimination


class _Front(NamedTuple):
    """Nodes that are eliminated together, ``start`` to ``end``, and later ones next to them.

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

        blocks = sparse.csr_array(matrix).tobsr((3, 3))
        indices, starts, count = blocks.indices, blocks.indptr, len(points)
        if np.any(starts[1:] == starts[:-1]):
            raise np.linalg.LinAlgError("a node without stiffness")
        ones = np.ones(len(indices), np.int8)
        pattern = sparse.csr_array((ones, indices, starts), shape=(count, count))
        parts = _dissected(pattern, np.arange(count), points)
        self.order = np.concatenate([nodes for nodes, _ in parts])
        position = np.empty(count, dtype=np.intp)
        position[self.order] = np.arange(count)
        diagonal = matrix.diagonal().reshape(count, 3)
        left: list[tuple[Numbers, FloatArray]] = []
        self.fronts: list[_Front] = []
        end = 0
        for nodes, children in parts:
            start, end = end, end + len(nodes)
            sizes = starts[nodes + 1] - starts[nodes]
            first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            entries = np.repeat(starts[nodes] - first, sizes) + np.arange(sizes.sum())
            column, row = position[indices[entries]], np.repeat(np.arange(len(nodes)), sizes)
            taken = [left.pop() for _ in range(children)]
            later = np.unique(np.concatenate([column, *(each for each, _ in taken)]))
            later = later[later >= end]
            front = np.concatenate([np.arange(start, end), later])
            kept, width = column >= start, 3 * len(nodes)
            F = np.zeros((3 * len(front), 3 * len(front)))
            place = np.searchsorted(front, column[kept])
            cells = F.reshape(len(front), 3, len(front), 3)
            cells[place, :, row[kept], :] = blocks.data[entries[kept]].transpose(0, 2, 1)
            for each, rest in (piece for piece in taken if len(piece[0])):
                _add(F, rest, np.searchsorted(front, each))
            own = np.linalg.cholesky(F[:width, :width])
            if np.any(np.diagonal(own) ** 2 <= _SINGULAR * diagonal[nodes].ravel()):
                raise np.linalg.LinAlgError("the matrix is singular")
            # a front between parts that are not connected is empty
            inverse = np.asarray(dtrtri(own, lower=1)[0] if width else own)
            below = F[width:, :width] @ inverse.T
            self.fronts.append(_Front(start, end, later, inverse, below))
            left.append((later, F[width:, width:] - below @ below.T))

    def solve(self, loads: FloatArray) -> FloatArray:
        """Return the solution for loads of shape (3 m,) or (3 m, k)."""
        given = np.asarray(loads, dtype=float)
        if not given.size:
            return given
        x = given.reshape(len(self.order), 3, -1)[self.order]
        columns = x.shape[2]
        for front in self.fronts:
            solved = front.inverse @ x[front.start : front.end].reshape(-1, columns)
            x[front.start : front.end] = solved.reshape(-1, 3, columns)
            x[front.later] -= (front.below @ solved).reshape(-1, 3, columns)
        for front in reversed(self.fronts):
            rest = x[front.start : front.end].reshape(-1, columns)
            rest = rest - front.below.T @ x[front.later].reshape(-1, columns)
            x[front.start : front.end] = (front.inverse.T @ rest).reshape(-1, 3, columns)
        found = np.empty_like(x)
        found[self.order] = x
        return np.asarray(found.reshape(given.shape))


def _add(F: FloatArray, rest: FloatArray, place: Numbers) -> None:
    """Add a matrix of nodes in ascending places to the lower part of another one."""
    ends = np.flatnonzero(np.diff(place) != 1) + 1
    runs = list(pairwise([0, *ends.tolist(), len(place)]))
    for number, (a, b) in enumerate(runs):
        rows = slice(3 * place[a], 3 * (place[b - 1] + 1))
        for c, d in runs[: number + 1]:
            columns = slice(3 * place[c], 3 * (place[d - 1] + 1))
            F[rows, columns] += rest[3 * a : 3 * b, 3 * c : 3 * d]


def _dissected(pattern: Any, nodes: Numbers, points: FloatArray) -> list[tuple[Numbers, int]]:
    """Return parts in the order of elimination, each with the number of those that it joins."""
    if len(nodes) > _LEAF:
        extents = np.argsort(-np.ptp(points, axis=0))
        x = points[:, extents[0]]
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
            # sorted, so that neighbors of one part are next to each other
            sorting = np.lexsort(points[between][:, extents[::-1]].T)
            return [*found, (nodes[between][sorting], 2)]
    return [(nodes, 0)]
