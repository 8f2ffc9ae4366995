"""The eigenvalues of a linear model with their invariant subspaces, sorted into modes.

What is at zero is found first, as the null space of A and its Jordan chains, where rounding would
make small numbers of it: a free motion is a double zero, which eigenvalue solvers return as about
1e-8. What is left is regular. Poles that are equal have any basis of their subspace as shapes; one
that is orthogonal in the mass matrix is chosen, whose first shape carries as much of one coordinate
as there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.forces_at_rest.static_coordinates import Indices
from flexure.solvers.analysis.modes.minimal_coordinates import MinimalCoordinates

ComplexArray = npt.NDArray[np.complex128]

_GRAIN = 1e-3  # of the tolerance, beside the largest numbers of all mechanisms
_LEAST = 1e-15  # of the largest number, what is not looked at
_UNDAMPED = 1e-12  # damping ratio that counts as rounding
_EQUAL = 1e-8  # relative distance of poles that count as equal
_INDEPENDENT = 1e-6  # least singular value of normalized shapes that count as independent
_NEEDED = 1e-8  # least part of a column in what leads to it
_NOTHING = 1e-14  # of the largest number, what rounding leaves between undamped shapes
_SLOWEST = 1e-6  # part of the fastest frequency, as the unit of a shape without any
_REAL = 1e-6  # of a basis, what is left over when it is made real
_MOVES = 1e-6  # least share of a shape that counts as a motion of a mechanism
_ALIKE = 0.9  # least assurance of two shapes of one overdamped oscillation
_OF_MECHANISM = 0.9  # least participation of mechanisms in it


@dataclass(frozen=True, eq=False)
class Branch:
    """One mode as an invariant subspace."""

    kind: str  # as `Mode.kind`
    poles: tuple[complex, ...]  # one for a real pole, and two for a pair, the slower one first
    vectors: ComplexArray  # right eigenvectors, one for each pole, shape (m, r)
    duals: ComplexArray  # left eigenvectors, with ``duals @ vectors = 1``, shape (r, m)

    @property
    def shape(self) -> ComplexArray:
        """The eigenvector of the slower pole."""
        return self.vectors[:, 0]

    @property
    def participation(self) -> FloatArray:
        """How much each coordinate takes part, in any units; the sum is 1."""
        parts = np.abs(self.vectors * self.duals.T)
        return np.asarray(np.mean(parts / np.sum(parts, axis=0), axis=1))

    @property
    def speed(self) -> float:
        """The geometric mean of the magnitudes of the poles."""
        return float(np.prod(np.abs(self.poles)) ** (1.0 / len(self.poles)))

    def resemblance(self, other: Branch) -> float:
        """Return the modal assurance of two modes, 1 if they are the same and 0 if orthogonal.

        It is the trace of the product of the projectors on both subspaces. For undamped mechanisms
        that is the criterion with mass-weighted shapes, (φᵀ M ψ)²; it needs no metric, and so
        compares states of any unit.
        """
        product = (self.duals @ other.vectors) @ (other.duals @ self.vectors)
        return float(np.trace(product).real) / max(len(self.poles), len(other.poles))


def branches(A: FloatArray, coordinates: MinimalCoordinates, tolerance: float) -> list[Branch]:
    """Return the modes of a linear model: free motions, integrators, and others by frequency.

    Rounding leaves ``tolerance`` of a row, as a part of the rows of its group.
    """
    if not len(A):
        return []
    displacements, rates = coordinates.displacements, coordinates.rates
    balanced, scale = _balanced(A, coordinates, tolerance)
    shapes = _Shapes(coordinates, scale)
    still, chains = _at_zero(balanced, coordinates, tolerance)
    free, idle = shapes.split(still)
    poles, vectors = _regular(balanced, (still, chains), shapes)
    clusters = _clusters(poles)
    poles = np.concatenate([np.zeros(0), *(poles[c] for c in clusters)])
    vectors = _side_by_side(len(A), [shapes.apart(vectors[:, c]) for c in clusters])
    rest = _complement(still)
    chained = rest @ _range(rest.T @ chains)
    basis = np.hstack([free, idle, chained, vectors, vectors[:, poles.imag > 0.0].conj()])
    lengths = np.linalg.norm(basis, axis=0)
    num_free, first = free.shape[1], free.shape[1] + idle.shape[1] + chained.shape[1]
    upper = first + np.flatnonzero(poles.imag > 0.0)
    lower = first + len(poles) + np.arange(len(upper))
    duals = _inverse(basis / lengths, upper, lower) / lengths[:, np.newaxis] / scale
    basis = basis * scale[:, np.newaxis]

    found = [
        Branch("rigid" if k < num_free else "integrator", (0j,), basis[:, [k]], duals[[k]])
        for k in range(num_free + idle.shape[1])
    ]
    second = first + len(poles)
    moving = []
    rounding = _UNDAMPED * (np.abs(poles) + 0.01 * np.max(np.abs(poles), initial=0.0))
    undamped = (poles.imag > 0.0) & (np.abs(poles.real) < rounding)
    for k, pole in enumerate(np.where(undamped, 1j * poles.imag, poles)):
        if pole.imag > 0.0:
            both, ends = [first + k, second], (complex(pole), complex(pole.conjugate()))
            moving.append(Branch("oscillation", ends, basis[:, both], duals[both]))
            second += 1
        else:
            at = [first + k]
            kind = "decay" if pole.real < 0.0 else "growth"
            moving.append(Branch(kind, (complex(pole),), basis[:, at], duals[at]))
    of_mechanisms = np.concatenate([displacements, rates])
    moving = _paired(moving, shapes, of_mechanisms)
    return found + sorted(moving, key=lambda branch: branch.speed)


def _inverse(basis: ComplexArray, upper: Indices, lower: Indices) -> ComplexArray:
    """Return the inverse of a basis, or where eigenvectors depend on each other, what is left.

    The columns ``upper`` and ``lower`` are conjugate to each other. All others are usually real.
    Everything computed is then real as well: real and imaginary parts replace such a pair.
    """
    from scipy.linalg.lapack import dgecon, dgetrf, dgetri

    parts = basis.real.copy()
    parts[:, lower] = basis.imag[:, upper]
    is_real = not np.any(np.delete(basis.imag, np.concatenate([upper, lower]), axis=1))
    if is_real and parts.shape[0] == parts.shape[1]:
        factors, pivots, failed = dgetrf(parts)
        size = float(np.max(np.sum(np.abs(parts), axis=0), initial=0.0))
        if not failed and dgecon(factors, size)[0] > _INDEPENDENT**2:
            rows = dgetri(factors, pivots)[0]
            found = rows.astype(complex)
            found[upper] = 0.5 * (rows[upper] - 1j * rows[lower])
            found[lower] = found[upper].conj()
            return np.asarray(found)
    return np.asarray(np.linalg.pinv(basis))


def _side_by_side(rows: int, parts: Sequence[ComplexArray]) -> ComplexArray:
    """Return the columns of several matrices as one."""
    return np.hstack([np.zeros((rows, 0), dtype=complex), *parts])


def _paired(found: list[Branch], shapes: _Shapes, of_mechanisms: Indices) -> list[Branch]:
    """Return modes in which two decays of one shape are one overdamped oscillation."""
    # Where other blocks take part, shapes alone do not tell which decays belong together.
    lone = [
        branch
        for branch in found
        if branch.kind == "decay" and np.sum(branch.participation[of_mechanisms]) >= _OF_MECHANISM
    ]
    if len(lone) < 2:
        return found
    weighed = np.hstack([shapes.weighed(b.vectors / shapes.scale[:, np.newaxis]) for b in lone])
    alike = np.abs(weighed.conj().T @ weighed / np.sum(np.abs(weighed) ** 2, axis=0)) ** 2
    np.fill_diagonal(alike, 0.0)
    best = np.argmax(alike, axis=1)
    pairs = []
    for k, other in enumerate(best):
        if k < other and best[other] == k and alike[k, other] >= _ALIKE:
            slow, fast = sorted((lone[k], lone[other]), key=lambda branch: branch.speed)
            vectors, duals = np.hstack([slow.vectors, fast.vectors]), (slow.duals, fast.duals)
            poles = (*slow.poles, *fast.poles)
            pairs.append((slow, fast, Branch("overdamped", poles, vectors, np.vstack(duals))))
    taken = [single for slow, fast, _ in pairs for single in (slow, fast)]
    return [*(branch for branch in found if branch not in taken), *(pair for *_, pair in pairs)]


# Units ------------------------------------------------------------------------------------------


def _balanced(
    A: FloatArray, coordinates: MinimalCoordinates, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Return the matrix without what is rounding, in suitable units, and these units."""
    # Displacements of mechanisms are weighed with their own mass, and rates with the time of the
    # fastest of them; other states are balanced between what they do and what is done to them. To
    # balance all alike would blow up what rounding leaves of a stiffness that should be zero.
    from scipy.linalg import matrix_balance

    q, v = coordinates.displacements, coordinates.rates
    scale, clean = np.ones(len(A)), A.copy()
    if len(q):
        inertia = np.sqrt(np.diag(coordinates.mass))
        per_column = inertia[:, np.newaxis] / inertia
        stiffness = np.abs(per_column * A[np.ix_(v, q)])
        damping = np.abs(per_column * A[np.ix_(v, v)])
        squares = np.maximum(np.max(stiffness), coordinates.loads)[:, np.newaxis]
        speeds = np.maximum(np.sqrt(squares), np.max(damping))
        nothing = _GRAIN * tolerance
        clean[np.ix_(v, q)] *= stiffness > nothing * squares
        clean[np.ix_(v, v)] *= damping > nothing * speeds
        fastest = max(np.sqrt(np.max(stiffness)), float(np.max(damping)))
        scale[q], scale[v] = 1.0 / inertia, (fastest or 1.0) / inertia
    answer: Any = matrix_balance(clean * scale / scale[:, np.newaxis], permute=False, separate=True)
    others = np.setdiff1d(np.arange(len(A)), np.concatenate([q, v]))
    scale[others] = answer[1][0][others]
    return clean * scale / scale[:, np.newaxis], scale


# What is at zero --------------------------------------------------------------------------------


def _at_zero(
    A: FloatArray, coordinates: MinimalCoordinates, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal bases of the null space of A, and of all that powers of A lead to it."""
    still = _leading_to(A, np.zeros((len(A), 0)), coordinates, tolerance)
    chains = still
    while chains.shape[1]:
        longer = _leading_to(A, chains, coordinates, tolerance)
        if longer.shape[1] <= chains.shape[1]:
            break
        chains = longer
    return still, chains


def _leading_to(
    A: FloatArray, chains: FloatArray, coordinates: MinimalCoordinates, tolerance: float
) -> FloatArray:
    """Return an orthonormal basis of what A leads to some columns, or to zero."""
    # Rates are known from the rows of displacements, which say that they are rates. So what is
    # asked of is the stiffness alone, beside which damping may be as large as it wants.
    q, v = coordinates.displacements, coordinates.rates
    rest = np.setdiff1d(np.arange(len(A)), v)  # what is unknown, and
    below = np.setdiff1d(np.arange(len(A)), q)  # the equations that are left
    inverse = np.linalg.inv(A[np.ix_(q, v)])
    known = -inverse @ A[np.ix_(q, rest)], inverse @ chains[q]
    moved = A[np.ix_(below, rest)] + A[np.ix_(below, v)] @ known[0]
    pulled = A[np.ix_(below, v)] @ known[1]
    pulled *= np.abs(pulled) > tolerance * (np.abs(A[np.ix_(below, v)]) @ np.abs(known[1]))
    place = np.full(len(A), -1)
    place[below] = np.arange(len(below))
    groups = [place[group] for group in coordinates.groups if np.all(place[group] >= 0)]
    found = _null_space(moved, pulled - chains[below], groups, tolerance)
    whole = np.zeros((len(A), found.shape[1]))
    whole[rest] = found[: len(rest)]
    whole[v] = known[0] @ found[: len(rest)] + known[1] @ found[len(rest) :]
    lengths = np.linalg.norm(whole, axis=0)
    return np.asarray(np.linalg.qr(whole / lengths)[0])


def _null_space(
    matrix: FloatArray, more: FloatArray, groups: Sequence[Indices], tolerance: float
) -> FloatArray:
    """Return a basis of what a matrix, with more columns beside it, maps to zero."""
    # The rows of a group are divided by the largest number in them. So a soft spring beside stiff
    # ones is no rounding, and what is left where the terms of a row cancel is. Those that need none
    # of the other columns come first.
    weighed, beside = np.zeros_like(matrix), more.copy()
    for group in groups:
        largest = np.max(np.abs(matrix[group]), initial=0.0)
        if largest > _LEAST * np.max(np.abs(matrix)):
            weighed[group] = matrix[group] / largest
            beside[group] = more[group] / largest
    sizes = np.max(np.abs(beside), axis=0, initial=0.0)
    units = np.where(sizes > 0.0, sizes, 1.0)
    _, stretches, right = np.linalg.svd(np.hstack([weighed, beside / units]))
    rank = int(np.sum(stretches > tolerance * max(np.max(stretches, initial=0.0), 1.0)))
    found = right[rank:].T
    _, shares, turn = np.linalg.svd(found[len(matrix.T) :])
    needing = int(np.sum(shares > _NEEDED))
    found = found @ np.vstack([turn[needing:], turn[:needing]]).T
    found[len(matrix.T) :] /= units[:, np.newaxis]
    found[len(matrix.T) :, : found.shape[1] - needing] = 0.0
    return np.asarray(found)


def _range(matrix: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns of a matrix."""
    left, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left[:, sizes > _INDEPENDENT])


def _complement(basis: FloatArray) -> FloatArray:
    """Return an orthonormal basis of all that is orthogonal to orthonormal columns."""
    whole, _ = np.linalg.qr(basis, mode="complete")
    return np.asarray(whole[:, basis.shape[1] :])


# What is not ------------------------------------------------------------------------------------


def _regular(
    A: FloatArray, zero: tuple[FloatArray, FloatArray], shapes: _Shapes
) -> tuple[ComplexArray, ComplexArray]:
    """Return the eigenvalues that are not zero, one of each pair, and their eigenvectors."""
    # They are found in coordinates of undamped shapes, each with the unit of its own frequency.
    # There slow modes stand beside fast ones as a small number beside a large one, also where
    # damping makes the large ones larger by orders; in coordinates of joints, they are what is left
    # where large numbers cancel. What does not act on each other is solved by itself.
    turned, T, inverse = _by_shapes(A, zero[0], shapes)
    chains = inverse @ zero[1]
    chains[np.abs(chains) < _NOTHING * np.max(np.abs(chains), axis=0, initial=0.0)] = 0.0
    chains = np.linalg.qr(chains)[0]
    others = _complement(chains)
    nilpotent, coupling = chains.T @ turned @ chains, chains.T @ turned @ others
    poles, small = _apart(others.T @ turned @ others)
    vectors = (others @ small).astype(complex)
    for k, pole in enumerate(poles):
        shifted = pole * np.eye(len(nilpotent)) - nilpotent
        vectors[:, k] += chains @ np.linalg.solve(shifted, coupling @ small[:, k])
    return poles, T @ vectors


def _by_shapes(
    A: FloatArray, still: FloatArray, shapes: _Shapes
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return A in coordinates of undamped shapes, the matrix that leads from them, and its inverse.

    Between shapes, what is rounding is left out.
    """
    q, v = shapes.displacements, shapes.rates
    T, inverse = np.eye(len(A)), np.eye(len(A))
    if not len(q):
        return A, T, inverse
    metric, metric_of_rates = shapes.metrics
    back, back_of_rates = np.linalg.inv(metric), np.linalg.inv(metric_of_rates)
    stiffness = -metric_of_rates @ A[np.ix_(v, q)] @ back
    damping = -metric_of_rates @ A[np.ix_(v, v)] @ back_of_rates
    free = _range(metric @ shapes.free(still))
    rest = _complement(free)
    squares, turn = np.linalg.eigh(rest.T @ (stiffness + stiffness.T) @ rest / 2.0)
    squares, turn = np.append(np.zeros(free.shape[1]), squares), np.hstack([free, rest @ turn])
    fastest = np.sqrt(np.max(np.abs(squares))) or 1.0
    units = np.maximum(np.sqrt(np.abs(squares)), _SLOWEST * fastest)
    T[np.ix_(q, q)], inverse[np.ix_(q, q)] = back @ turn, turn.T @ metric
    T[np.ix_(v, v)] = back_of_rates @ (turn * units)
    inverse[np.ix_(v, v)] = (turn / units).T @ metric_of_rates
    turned = inverse @ A @ T
    rates = metric @ A[np.ix_(q, v)] @ back_of_rates
    turned[np.ix_(q, v)] = _without_noise(turn.T @ rates @ turn) * units
    turned[np.ix_(v, q)] = -_without_noise(turn.T @ stiffness @ turn) / units[:, np.newaxis]
    turned[np.ix_(v, v)] = -_without_noise(turn.T @ damping @ turn) * units / units[:, np.newaxis]
    return turned, T, inverse


def _without_noise(matrix: FloatArray) -> FloatArray:
    """Return a matrix without what rounding leaves beside its diagonal."""
    kept = np.abs(matrix) > _NOTHING * np.max(np.abs(matrix), initial=0.0)
    np.fill_diagonal(kept, True)
    return np.where(kept, matrix, 0.0)


def _apart(A: FloatArray) -> tuple[ComplexArray, ComplexArray]:
    """Return eigenvalues of a matrix, one of each pair, and eigenvectors."""
    # Unknowns that do not act on each other, on whatever way, have eigenvalues of their own.
    from scipy.sparse.csgraph import connected_components

    count, group = connected_components(A != 0.0, directed=False)
    poles, vectors = [np.zeros(0, dtype=complex)], []
    for number in range(count):
        own = np.flatnonzero(group == number)
        found, shapes = np.linalg.eig(A[np.ix_(own, own)])
        upper = found.imag >= 0.0
        columns = np.zeros((len(A), int(np.sum(upper))), dtype=complex)
        columns[own] = shapes[:, upper]
        poles.append(found[upper].astype(complex))
        vectors.append(columns)
    return np.concatenate(poles), _side_by_side(len(A), vectors)


# Equal poles, and lengths of shapes -------------------------------------------------------------


def _clusters(poles: ComplexArray) -> list[Indices]:
    """Return the indices of poles, those that count as equal together."""
    found: list[list[int]] = []
    for k in np.lexsort((poles.imag, np.abs(poles))):
        distance = abs(poles[found[-1][-1]] - poles[k]) if found else np.inf
        if distance <= _EQUAL * abs(poles[k]):
            found[-1].append(int(k))
        else:
            found.append([int(k)])
    return [np.array(group) for group in found]


class _Shapes:
    """Chooses shapes in the space of equal poles, and their lengths, in balanced coordinates."""

    def __init__(self, coordinates: MinimalCoordinates, scale: FloatArray) -> None:
        self.displacements, self.rates = coordinates.displacements, coordinates.rates
        self.scale = scale  # the unit of each balanced coordinate
        mass = coordinates.mass
        root = np.linalg.cholesky(mass).T if len(mass) else mass
        # The matrices that weigh displacements, and rates, by the root of the mass.
        self.metrics = root * scale[self.displacements], root * scale[self.rates]
        self._metric = self.metrics[0]
        self._sizes = np.linalg.norm(self._metric, axis=0)

    def weighed(self, vectors: ComplexArray) -> ComplexArray:
        """Return displacements such that the sum of their squares is that with the mass matrix."""
        return np.asarray(self._metric @ vectors[self.displacements])

    def shown(self, vectors: ComplexArray) -> ComplexArray:
        """Return by what shapes are told apart: displacements, or all where no mechanism moves."""
        moved = np.linalg.norm(vectors[self.displacements], axis=0)
        if np.all(moved > _MOVES * np.linalg.norm(vectors, axis=0)):
            return np.asarray(self._sizes[:, np.newaxis] * vectors[self.displacements])
        return vectors

    def normal(self, vectors: ComplexArray) -> ComplexArray:
        """Return eigenvectors of length 1 in the mass, as real and positive as they can be."""
        found = []
        for vector in vectors.T[:, :, np.newaxis].astype(complex):
            shown = self.shown(vector)
            weighed = vector if shown is vector else self.weighed(vector)
            square = np.sum(weighed**2) / np.sum(np.abs(weighed) ** 2)
            turned = np.exp(-0.5j * np.angle(square)) if abs(square) > _REAL else 1.0
            largest = np.argmax(np.round(np.abs(shown) / np.max(np.abs(shown)), 6))
            sign = -1.0 if (shown[largest, 0] * turned).real < 0.0 else 1.0
            found.append(vector * (sign * turned / np.linalg.norm(weighed)))
        return _side_by_side(len(vectors), found)

    def apart(self, vectors: npt.NDArray[Any]) -> ComplexArray:
        """Return normal eigenvectors of equal poles; their shapes are orthogonal."""
        if vectors.shape[1] > 1:
            vectors = vectors / np.linalg.norm(vectors, axis=0)
            weighed = self.weighed(vectors)
            if not _are_independent(weighed):
                weighed = vectors
            if _are_independent(weighed):  # else one eigenvector belongs to several poles
                vectors = vectors @ np.linalg.lstsq(weighed, _real_basis(weighed), rcond=None)[0]
                vectors = vectors @ _rotation(self.shown(vectors))
        return self.normal(vectors)

    def split(self, still: FloatArray) -> tuple[ComplexArray, ComplexArray]:
        """Return bases of a null space: of what moves mechanisms, and of the rest."""
        moving, idle = self._parted(still)
        return self.apart(moving), self.apart(idle)

    def free(self, still: FloatArray) -> FloatArray:
        """Return the displacements of what moves mechanisms, of a null space."""
        return self._parted(still)[0][self.displacements]

    def _parted(self, still: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, sizes, right = np.linalg.svd(still[self.displacements])
        rank = int(np.sum(sizes > _MOVES))
        return still @ right[:rank].T, still @ right[rank:].T


def _are_independent(columns: ComplexArray) -> bool:
    """Return whether the directions of columns are independent."""
    lengths = np.linalg.norm(columns, axis=0)
    if not lengths.size or np.min(lengths) <= _MOVES * np.max(lengths):
        return False
    sizes = np.linalg.svd(columns / lengths, compute_uv=False)
    return len(sizes) == len(lengths) and bool(sizes[-1] > _INDEPENDENT)


def _real_basis(columns: ComplexArray) -> ComplexArray:
    """Return an orthonormal basis of the space of columns, a real one if it has any."""
    basis, _ = np.linalg.qr(columns)
    parts, sizes, _ = np.linalg.svd(np.hstack([basis.real, basis.imag]), full_matrices=False)
    count = basis.shape[1]
    is_real = not np.any(sizes[count:] > _REAL)
    return parts[:, :count].astype(complex) if is_real else basis


def _rotation(columns: ComplexArray) -> ComplexArray:
    """Return what turns a basis so that each vector has a coordinate that later ones lack."""
    from scipy.linalg import qr

    parts = columns.conj().T
    is_real = np.all(np.abs(parts.imag) <= _REAL * np.max(np.abs(parts)))
    return np.asarray(qr(parts.real if is_real else parts, pivoting=True)[0])
