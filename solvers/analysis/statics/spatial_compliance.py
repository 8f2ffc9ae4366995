"""Compliance and stiffness at a point of a body, as 6 x 6 matrices with free and rigid directions.

Small twists X = (θ, p) of a frame and small loads F = (t, f) on it, the rotational part first, are
related by X = C F and F = K X. Where a mechanism moves freely, some twists take no load, and where
it cannot move, some loads cause no twist. Both are known as directions, and the rest is regular::

    C = Q M Qᵀ,  K = Q M⁻¹ Qᵀ       Q orthonormal, and orthogonal to free twists and rigid loads

for which angles are multiplied by a length, so that they can be compared with translations.

Seen at another point, at r from this one: C_rt becomes C_rt + C_rr [r]×, where [r]× s = r × s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray

_ALONG = 1e-9  # of directions that are those of axes
_LEAST = 1e-9  # compliance of a rotation beside the largest one, below which none is told


class Principal(NamedTuple):
    """Three perpendicular directions in which a load moves a frame along itself alone.

    The directions are in the order of the axes x, y and z next to which they are.
    """

    compliances: FloatArray  # in rad/(N m) or m/N; infinite of free motions, shape (3,)
    # Their reciprocals in N m/rad or N/m; infinite where nothing moves, shape (3,).
    stiffnesses: FloatArray
    axes: FloatArray  # the directions, in columns, shape (3, 3)


class RotationAxis(NamedTuple):
    """The line about which a body turns under a couple."""

    direction: FloatArray  # unit vector along the line, shape (3,)
    # The point of the line next to that at which the compliance is, in m from there, shape (3,).
    point: FloatArray
    pitch: float  # translation along the line by angle, in m/rad
    compliance: float  # angle by couple, in rad/(N m), for the part of the couple along the line


class Center(NamedTuple):
    """A center of compliance or of stiffness."""

    # Where it is, in m from the point at which the compliance is; of a line or a plane of such
    # centers the point next to that, shape (3,).
    point: FloatArray
    # Unit vectors along that line or plane; none where there is one center alone, shape (n, 3).
    directions: FloatArray
    # What is left of the coupling there, between 0 and 1, beside ``√(|C_rr| |C_tt|)``: 0 where
    # forces through the center do not turn the body, and couples turn it about the center.
    coupling: float


class Regular(NamedTuple):
    """Compliance without the directions that have none or all of it."""

    basis: FloatArray  # Q, shape (6, n)
    middle: FloatArray  # M, shape (n, n)
    scale: FloatArray  # a length for rotations, and 1 for translations, shape (6,)


def regular_part(
    compliance: FloatArray, free: FloatArray, rigid: FloatArray, length: float
) -> Regular:
    """Return what is left of a compliance beside its free twists and its rigid loads.

    The compliance, shape (6, 6), is right for all loads that do no work on the free twists, which
    are columns as rigid loads are. ``length``, in m, makes rotations and translations alike.
    """
    scale = np.array([length] * 3 + [1.0] * 3)
    columns = scale[:, np.newaxis]
    left = _complement(np.hstack([free * columns, rigid / columns]))
    middle = left.T @ (compliance * columns * scale) @ left
    return Regular(left, middle, scale)


def compliance_of(part: Regular) -> FloatArray:
    """Return C, without free twists."""
    found: FloatArray = part.basis @ part.middle @ part.basis.T
    return found / np.outer(part.scale, part.scale)


def stiffness_of(part: Regular) -> FloatArray:
    """Return K, without rigid loads."""
    size = np.sqrt(np.abs(np.diag(part.middle)))
    size = np.where(size > 0.0, size, 1.0)  # which keeps soft and stiff directions apart
    inverse = np.linalg.inv(part.middle / np.outer(size, size)) / np.outer(size, size)
    return np.asarray(part.basis @ inverse @ part.basis.T) * np.outer(part.scale, part.scale)


def coordinate_axes(directions: FloatArray, length: float) -> npt.NDArray[np.intp] | None:
    """Return which of the six coordinates some twists span; None where it is not whole ones."""
    scaled = directions * np.array([length] * 3 + [1.0] * 3)[:, np.newaxis]
    basis = np.linalg.qr(scaled)[0] if scaled.size else scaled
    shares = np.sum(basis**2, axis=1)
    whole = np.abs(shares - np.round(shares)) < _ALONG
    return np.flatnonzero(np.round(shares) == 1.0) if np.all(whole) else None


def _complement(directions: FloatArray) -> FloatArray:
    """Return orthonormal columns that are orthogonal to all directions: axes, where they are."""
    along = coordinate_axes(directions, 1.0)
    if along is not None:
        return np.delete(np.eye(6), along, axis=1)
    left, sizes, _ = np.linalg.svd(directions)
    rank = int(np.sum(sizes > _ALONG * sizes[0]))
    return np.asarray(left[:, rank:])


def cross_matrix(r: FloatArray) -> FloatArray:
    """Return [r]×, with which [r]× s = r × s."""
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def twist_there(r: FloatArray, R: FloatArray) -> FloatArray:
    """Return X with which twists at r, along axes in the columns of R, are X times those here."""
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = R.T
    matrix[3:, :3] = -R.T @ cross_matrix(r)
    return matrix


def principal_directions(block: FloatArray) -> Principal:
    """Return the principal directions of a block of a compliance, of rotation or translation."""
    compliances, axes = np.full(3, np.inf), np.eye(3)
    rest = np.flatnonzero(np.isfinite(np.diag(block)))
    part = block[np.ix_(rest, rest)]
    values, vectors = np.linalg.eigh((part + part.T) / 2.0)
    order = _next_to_axes(vectors)
    compliances[rest] = values[order]
    axes[np.ix_(rest, rest)] = vectors[:, order] * np.sign(np.diag(vectors[:, order]) + 1e-300)
    with np.errstate(divide="ignore"):
        return Principal(compliances, 1.0 / compliances, axes)


def _next_to_axes(vectors: FloatArray) -> npt.NDArray[np.intp]:
    """Return the order in which columns are next to the coordinate axes."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(-np.abs(vectors))[1], dtype=np.intp)


def rotation_axis(compliance: FloatArray, couple: FloatArray) -> RotationAxis | None:
    """Return the line about which a couple turns a body; None where it turns it not at all."""
    turn, moved = compliance[:3, :3] @ couple, compliance[3:, :3] @ couple
    angle = float(np.linalg.norm(turn))
    if not angle > 0.0:
        return None
    direction = turn / angle
    point = np.cross(direction, moved) / angle
    pitch = float(direction @ moved) / angle
    share = float(direction @ couple)
    return RotationAxis(direction, point, pitch, angle / share if share else np.inf)


def center_of(matrix: FloatArray) -> Center | None:
    """Return where the coupling B of a matrix becomes symmetric; None where all points do.

    Seen from a point at r, the blocks of ``[[A, B], [Bᵀ, D]]`` are::

        B + A [r]×        D + Bᵀ [r]× - [r]× B - [r]× A [r]×

    and the first is symmetric where ``(tr(A) 1 - A) r = -b`` with ``[b]× = B - Bᵀ``.

    The matrix, shape (6, 6), is a compliance, or a stiffness with translations first.
    """
    A, B, D = matrix[:3, :3], matrix[:3, 3:], matrix[3:, 3:]
    symmetric = (A + A.T) / 2.0
    values, vectors = np.linalg.eigh(np.trace(symmetric) * np.eye(3) - symmetric)
    if not values[-1] > 0.0:
        return None
    b = np.array([(B - B.T)[row, column] for row, column in ((2, 1), (0, 2), (1, 0))])
    known = np.abs(values) > _LEAST * values[-1]
    r = -vectors[:, known] @ ((vectors[:, known].T @ b) / values[known])
    there = cross_matrix(r)
    coupling = np.linalg.norm(B + A @ there, 2)
    own = np.linalg.norm(D + B.T @ there - there @ B - there @ A @ there, 2)
    both = np.sqrt(np.linalg.norm(A, 2) * own)
    return Center(r, vectors[:, ~known].T, float(coupling / both) if both > 0.0 else 0.0)
