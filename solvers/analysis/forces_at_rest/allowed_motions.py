"""The motions that constraints allow to unknowns of statics, and the stiffness against them.

With independent equations ``N δθ = 0`` of all constraints and holders, and with the forces ``Cᵀ λ``
by which they are upheld, motions are ``R y`` with ``N R = 0``, and forces count as ``Lᵀ f`` with
``C L = 0``. The bases L and R are one, unless equations read states that are not displacements, as
where a lag moves a joint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flexure.diagrams.values.arrays import FloatArray

INDEPENDENT = 1e-7  # least singular value of independent equations, as a part of the largest


class AllowedMotions(NamedTuple):
    """Bases of the motions that constraints allow, and of the forces that count."""

    # Motions, in orthonormal columns; all unknowns where there are no constraints, shape (n, a).
    R: FloatArray
    L: FloatArray  # what adds up forces, shape (n, a)

    def stiffness(self, K: FloatArray) -> FloatArray:
        """Return the stiffness of the motions, so that its eigenvalues are those of K there."""
        along: FloatArray = self.L.T @ K @ self.R
        if self.L is self.R:
            return along
        return np.asarray(np.linalg.solve(self.L.T @ self.R, along))


class IndependentRows(NamedTuple):
    """Combinations of equations that are independent: orthonormal rows N = A J."""

    rows: FloatArray  # the rows, shape (r, n)
    combine: FloatArray  # the matrix A, shape (r, c)


def independent_rows(J: FloatArray) -> IndependentRows:
    """Return as many combinations of rows as are independent."""
    if not J.size or not np.isfinite(J).all():
        return IndependentRows(np.zeros((0, J.shape[1])), np.zeros((0, len(J))))
    left, sizes, right = np.linalg.svd(J, full_matrices=False)
    rank = int(np.sum(sizes > INDEPENDENT * sizes[0])) if sizes[0] > 0.0 else 0
    return IndependentRows(right[:rank], left[:, :rank].T / sizes[:rank, np.newaxis])


def allowed_motions(normals: FloatArray, pushes: FloatArray) -> AllowedMotions:
    """Return bases of what rows N leave free, and of what forces along the rows C do not touch."""
    if not normals.size:
        everything: FloatArray = np.eye(normals.shape[1])
        return AllowedMotions(everything, everything)
    R = _left_over(normals)
    return AllowedMotions(R, R if np.array_equal(normals, pushes) else _left_over(pushes))


def _left_over(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what is at right angles to some rows."""
    _, sizes, right = np.linalg.svd(rows)
    rank = int(np.sum(sizes > INDEPENDENT * sizes[0]))
    return np.asarray(right[rank:].T)
