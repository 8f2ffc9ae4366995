"""Factors of large stiffness matrices, by nested dissection of the positions of their nodes."""

from __future__ import annotations

from collections import defaultdict
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
    takes matrix products in place of sparse elimination. The matrix to factor is that in the rows
    and columns of ``nodes``, in ascending order, of a matrix of n by n blocks; ``points`` are the
    positions of all n nodes.
    """

    def __init__(self, blocks: Any, points: FloatArray, nodes: Numbers) -> None:
        import scipy.sparse as sparse
        from scipy.linalg.blas import dsyrk, dtrmm
        from scipy.linalg.lapack import dpotrf, dtrtri

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
        position = np.argsort(self.order)
        diagonal = blocks.diagonal().reshape(-1, 3)[nodes]
        left: list[tuple[Numbers, FloatArray]] = []
        # Memory of what parts leave is used again, since the first use of any takes longest.
        spare: defaultdict[int, list[FloatArray]] = defaultdict(list)
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
            F = np.zeros((3 * len(front), width))  # columns of the nodes
            place = np.searchsorted(front, column[kept])
            cells = F.reshape(len(front), 3, len(part), 3)
            cells[place, :, row[kept], :] = blocks.data[chosen[entries[kept]]].transpose(0, 2, 1)
            pieces = [(added, np.searchsorted(front, each)) for each, added in taken]
            for added, place in pieces:
                _add(F, added, place, int(np.searchsorted(place, len(part))))
            upper, problem = dpotrf(F[:width].T, overwrite_a=1)
            if problem or np.any(np.diagonal(upper) ** 2 <= _SINGULAR * diagonal[part].ravel()):
                raise np.linalg.LinAlgError("the matrix is singular")
            inverse = dtrtri(upper, overwrite_c=1)[0]
            below, size = np.zeros((0, width)), 3 * len(later)
            room = 1 << (size * size).bit_length()
            memory: Any = spare[room].pop() if spare[room] else np.empty(room)
            rest = memory[: size * size].reshape(size, size)  # of which the lower part counts
            if size:
                below = dtrmm(1.0, inverse, F[width:].T, trans_a=1, overwrite_b=1).T
                dsyrk(-1.0, below.T, c=rest.T, trans=1, overwrite_c=1)
            for added, place in pieces:
                own = int(np.searchsorted(place, len(part)))
                _add(rest, added[3 * own :, 3 * own :], place[own:] - len(part), len(place) - own)
                memory = added.base
                spare[memory.size].append(memory)
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


def _add(into: FloatArray, added: FloatArray, place: Numbers, columns: int) -> None:
    """Add the lower part of the first columns of a matrix of nodes, which have ascending places."""
    ends = np.flatnonzero(np.diff(place) != 1) + 1
    runs = list(pairwise(sorted({0, columns, *ends.tolist(), len(place)})))
    with np.errstate(all="ignore"):  # above the diagonal are any numbers
        for number, (c, d) in enumerate(runs):
            for a, b in runs[number:] if c < columns else ():
                piece = added[3 * a : 3 * b, 3 * c : 3 * d]
                row, column = 3 * place[a], 3 * place[c]
                into[row : row + len(piece), column : column + piece.shape[1]] += piece


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
            if not between.any():
                last, children = found.pop()
                return [*found, (last, children + 1)]
            # sorted, so that neighbors of one part are next to each other
            sorting = np.lexsort(points[between][:, extents[::-1]].T)
            return [*found, (nodes[between][sorting], 2)]
    return [(nodes, 0)]
