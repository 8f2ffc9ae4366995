"""Properties of a realization A, B, C, D: scaling, hidden states, zeros.

Everything here is orthogonal transformations of matrices that were scaled before, so that rounding
stays small beside their size, and ranks can be told from singular values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray

_EPSILON = float(np.finfo(float).eps)
#: Beside the norm: what a loop does not reach or does not see.
HIDDEN = 1e-12


@dataclass(frozen=True)
class Reduction:
    """A realization with fewer states and the same transfer: x = right @ z, z = left @ x."""

    # A, B, C: the matrices that are left.
    A: FloatArray
    B: FloatArray
    C: FloatArray
    # left, right: from the states of before to those that are left, and back, shapes (r, n) and
    # (n, r).
    left: FloatArray
    right: FloatArray
    # uncontrollable, unobservable: how many states were removed because no input moves them, and
    # because no output shows them.
    uncontrollable: int
    unobservable: int
    hidden_poles: npt.NDArray[np.complex128]  # the eigenvalues of what was removed


def scaling(A: FloatArray, B: FloatArray, C: FloatArray) -> FloatArray:
    """Return units for the states, powers of two, in which rows and columns are of like size.

    The inputs and the outputs take part as one more state each way: B and C count, too.
    """
    n = len(A)
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n] = A
    whole[:n, n] = np.abs(B).sum(axis=1)
    whole[n, :n] = np.abs(C).sum(axis=0)
    scale = _balance(whole)
    return np.asarray(scale[:n] / scale[n])


def _balance(A: FloatArray) -> FloatArray:
    """Return powers of two, by which columns are multiplied, and rows divided, to be alike."""
    from scipy.linalg import matrix_balance

    with np.errstate(all="ignore"):
        _, (scale, _) = matrix_balance(A, permute=False, separate=True)
    fits = np.all(np.isfinite(scale) & (scale > 0.0) & np.isfinite(1.0 / scale))
    return np.asarray(scale, dtype=float) if fits else np.ones(len(A))


def reduction(A: FloatArray, B: FloatArray, C: FloatArray, tolerance: float) -> Reduction:
    """Remove the states that no input moves, and then those that no output shows.

    Singular values below ``tolerance``, beside the norm of each of the scaled matrices, are zero.
    """
    n, unit, given = len(A), _balance(A), (A, B, C)
    A, B, C = A * unit / unit[:, np.newaxis], B / unit[:, np.newaxis], C * unit
    # Neither the unit of time matters nor those of inputs and outputs.
    size = float(np.linalg.norm(A)) or 1.0
    columns, rows = _lengths(B), _lengths(C.T)[:, np.newaxis]
    A, B, C = A / size, B / columns, C / rows
    inner = scaling(A, B, C)
    A, B, C = A * inner / inner[:, np.newaxis], B / inner[:, np.newaxis], C * inner
    unit = unit * inner
    basis, reached = reachable(A, B, tolerance)
    hidden = _eigenvalues(basis[:, reached:].T @ A @ basis[:, reached:])
    basis = basis[:, :reached]
    A, B, C = basis.T @ A @ basis, basis.T @ B, C @ basis
    inner, seen = reachable(A.T, C.T, tolerance)
    rest = _eigenvalues(inner[:, seen:].T @ A @ inner[:, seen:])
    if seen == n:  # nothing leaves, and scaling is exact
        A, B, C = given
        scaled = A * unit / unit[:, np.newaxis], B / unit[:, np.newaxis], C * unit
        return Reduction(*scaled, np.diag(1.0 / unit), np.diag(unit), 0, 0, rest)
    inner = inner[:, :seen]
    basis = basis @ inner
    return Reduction(
        A=size * (inner.T @ A @ inner),
        B=(inner.T @ B) * columns,
        C=rows * (C @ inner),
        left=basis.T / unit,
        right=unit[:, np.newaxis] * basis,
        uncontrollable=n - reached,
        unobservable=reached - seen,
        hidden_poles=np.concatenate([hidden, rest]) * complex(size),
    )


def reachable(A: FloatArray, B: FloatArray, tolerance: float) -> tuple[FloatArray, int]:
    """Return an orthogonal basis whose first vectors span what B reaches through A, and how many.

    The staircase: B moves some directions, A carries these into others, and so on.
    """
    from scipy.linalg import hessenberg

    n = len(A)
    basis, reached = np.eye(n), 0
    limit = tolerance * max(np.linalg.norm(A), np.linalg.norm(B), np.finfo(float).tiny)
    if n and B.shape[1] == 1:  # the staircase of one column is a Hessenberg form
        turn = np.linalg.qr(B, mode="complete")[0]
        stairs, inner = hessenberg(turn.T @ A @ turn, calc_q=True)
        sizes = np.abs(np.append(np.linalg.norm(B), np.diagonal(stairs, -1)))
        return turn @ inner, int(np.argmax(np.append(sizes, 0.0) <= limit))
    step = B
    while reached < n and step.shape[1]:
        turn, sizes, _ = np.linalg.svd(step)
        rank = int(np.sum(sizes > limit))
        if rank == 0:
            break
        basis[:, reached:] = basis[:, reached:] @ turn
        fresh = slice(reached, reached + rank)
        reached += rank
        step = basis[:, reached:].T @ A @ basis[:, fresh]
    return basis, reached


def invariant_zeros(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray
) -> npt.NDArray[np.complex128]:
    """Return the finite zeros of the pencil [[A - s I, B], [C, D]], where it loses rank.

    Output directions without direct feedthrough are differentiated until the inputs show in all of
    them, which takes the zeros at infinity away; the same with inputs and outputs exchanged leaves
    a square pencil with an invertible D, which is compressed to an ordinary eigenvalue problem of
    two matrices. So D = 0, and more inputs than outputs, are nothing special.
    """
    from scipy.linalg import eigvals

    unit = scaling(A, B, C)
    A, B, C = A * unit / unit[:, np.newaxis], B / unit[:, np.newaxis], C * unit
    rate = float(np.linalg.norm(A)) or 1.0
    A, B = A / rate, B / rate
    columns = _lengths(np.vstack([B, D]))
    B, D = B / columns, D / columns
    rows = _lengths(np.hstack([C, D]).T)[:, np.newaxis]
    C, D = C / rows, D / rows
    A, B, C, D = _without_infinite_zeros(A, B, C, D)
    A, C, B, D = (each.T for each in _without_infinite_zeros(A.T, C.T, B.T, D.T))
    n = len(A)
    if n == 0 or D.shape[0] != D.shape[1]:
        return np.zeros(0, dtype=complex)
    # Columns of the null space of [C, D]: what states and inputs do while the outputs are zero.
    quiet = np.linalg.svd(np.hstack([C, D]))[2][len(D) :].T
    return np.asarray(rate * eigvals(np.hstack([A, B]) @ quiet, quiet[:n]), dtype=complex)


def static_gain(A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray) -> FloatArray:
    """Return D - C A⁻¹ B; where A is singular, of each way by itself, and inf if it integrates."""
    unit = _balance(A)
    A, B, C = A * unit / unit[:, np.newaxis], B / unit[:, np.newaxis], C * unit
    if is_regular(A):
        return np.asarray(D - C @ np.linalg.solve(A, B))
    gain = D.copy()
    for i, j in np.ndindex(*D.shape):
        own = reduction(A, B[:, j : j + 1], C[i : i + 1], tolerance=1e-9)
        regular = is_regular(own.A)
        gain[i, j] = D[i, j] - (own.C @ np.linalg.solve(own.A, own.B)).item() if regular else np.inf
    return gain


def is_regular(matrix: FloatArray) -> bool:
    """Return whether a matrix has as many rows as columns, and full rank beside rounding."""
    if matrix.shape[0] != matrix.shape[1]:
        return False
    unit = _balance(matrix)
    sizes = np.linalg.svd(matrix * unit / unit[:, np.newaxis], compute_uv=False)
    return bool(len(matrix) == 0 or sizes[-1] > len(matrix) * _EPSILON * sizes[0])


def _without_infinite_zeros(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a realization with the same finite zeros whose D has independent rows."""
    limit = 10.0 * _EPSILON * sum(np.shape(np.block([[A, B], [C, D]])))
    while True:
        turn, sizes, _ = np.linalg.svd(D)
        direct = int(np.sum(sizes > limit))
        C, D = turn.T @ C, turn.T @ D
        turn, sizes, other = np.linalg.svd(C[direct:])
        rank = int(np.sum(sizes > limit))
        left = len(A) - rank
        C, D = C[:direct], D[:direct]
        if rank == 0:
            return A, B, C, D
        # States that the quiet outputs hold at zero leave; their equations become outputs.
        basis = np.roll(other.T, left, axis=1)
        A, B, C = basis.T @ A @ basis, basis.T @ B, C @ basis
        C = np.vstack([C[:, :left], A[left:, :left]])
        D = np.vstack([D, B[left:]])
        A, B = A[:left, :left], B[:left]


def _lengths(columns: FloatArray) -> FloatArray:
    """Return the norms of columns, by which they can be divided: 1 where one is zero."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.where(lengths > 0.0, lengths, 1.0)


def _eigenvalues(A: FloatArray) -> npt.NDArray[np.complex128]:
    return np.linalg.eigvals(A).astype(complex)
