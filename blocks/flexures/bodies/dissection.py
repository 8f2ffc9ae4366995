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
    matrix : sparse array, shape (3 n, 3 n)
        A matrix that has the one to factor in the rows and columns of some nodes.
    points : array, shape (n, 3)
        Positions of all nodes.
    nodes : array of int, shape (m,)
        Those nodes, in ascending order.
    """

    def __init__(self, matrix: Any, points: FloatArray, nodes: Numbers) -> None:
        import scipy.sparse as sparse
        from scipy.linalg.blas import dsyrk, dtrmm
        from scipy.linalg.lapack import dpotrf, dtrtri

        blocks = matrix.tobsr((3, 3))
        count = len(nodes)
        number = np.full(len(points), -1)
        number[nodes] = np.arange(count)
        row = np.repeat(number, np.diff(blocks.indptr))
        column = number[blocks.indices]
        chosen = np.flatnonzero((row >= 0) & (column >= 0))
        indices, sizes = column[chosen], np.bincount(row[chosen], minlength=count)
        if np.any(sizes == 0):
            raise np.linalg.LinAlgError("a node without stiffness")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        ones = np.ones(len(indices), np.int8)
        pattern = sparse.csr_array((ones, indices, starts), shape=(count, count))
        parts = _dissected(pattern, np.arange(count), points[nodes])
        self.order = np.concatenate([part for part, _ in parts])
        position = np.empty(count, dtype=np.intp)
        position[self.order] = np.arange(count)
        diagonal = matrix.diagonal().reshape(-1, 3)[nodes]
        left: list[tuple[Numbers, FloatArray]] = []
        self.fronts: list[_Front] = []
        end = 0
        for part, children in parts:
            start, end = end, end + len(part)
            sizes = starts[part + 1] - starts[part]
            first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            entries = np.repeat(starts[part] - first, sizes) + np.arange(sizes.sum())
            column, row = position[indices[entries]], np.repeat(np.arange(len(part)), sizes)
            taken = [left.pop() for _ in range(children)]
            later = np.unique(np.concatenate([column, *(each for each, _ in taken)]))
            later = later[later >= end]
            front = np.concatenate([np.arange(start, end), later])
            kept, width = column >= start, 3 * len(part)
            # columns of the nodes, and what they leave to later ones
            F = np.zeros((3 * len(front), width))
            rest = np.zeros((3 * len(later), 3 * len(later)))
            place = np.searchsorted(front, column[kept])
            cells = F.reshape(len(front), 3, len(part), 3)
            cells[place, :, row[kept], :] = blocks.data[chosen[entries[kept]]].transpose(0, 2, 1)
            for each, added in (piece for piece in taken if len(piece[0])):
                _add(F, rest, added, np.searchsorted(front, each))
            if not width:  # between parts that are not connected
                left.append((later, rest))
                continue
            # All by SciPy: where NumPy brings another BLAS, threads of both would wait in turn.
            upper, problem = dpotrf(F[:width].T)
            if problem or np.any(np.diagonal(upper) ** 2 <= _SINGULAR * diagonal[part].ravel()):
                raise np.linalg.LinAlgError("the matrix is singular")
            inverse = dtrtri(upper)[0]
            below = np.zeros((0, width))
            if later.size:
                below = dtrmm(1.0, inverse, F[width:].T, trans_a=1).T
                dsyrk(-1.0, below.T, beta=1.0, c=rest.T, trans=1, overwrite_c=1)
            self.fronts.append(_Front(start, end, later, inverse.T, below))
            left.append((later, rest))

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


def _add(F: FloatArray, rest: FloatArray, added: FloatArray, place: Numbers) -> None:
    """Add the lower part of a matrix of nodes in ascending places to columns F and the rest."""
    own = F.shape[1] // 3
    ends = np.flatnonzero((np.diff(place) != 1) | ((place[:-1] < own) & (place[1:] >= own))) + 1
    runs = list(pairwise([0, *ends.tolist(), len(place)]))
    for number, (a, b) in enumerate(runs):
        for c, d in runs[: number + 1]:
            into, shift = (F, 0) if place[c] < own else (rest, own)
            rows, columns = 3 * (place[a] - shift), 3 * (place[c] - shift)
            piece = added[3 * a : 3 * b, 3 * c : 3 * d]
            into[rows : rows + len(piece), columns : columns + piece.shape[1]] += piece


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
