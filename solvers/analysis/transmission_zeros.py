"""Transmission zeros of linear models: where something goes in and nothing comes out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values import FloatArray
from flexure.solvers.analysis.linear_model import LinearModel

_RANK = 1e-11  # singular values below this part of the scaled matrices count as zero


def transmission_zeros(model: LinearModel) -> npt.NDArray[np.complex128]:
    """Return the finite zeros: where the rank of [[A - s I, B], [C, D]] drops.

    Where zeros at infinity are simply left to the generalized eigenvalue problem, rounding makes
    finite numbers of them. So states that must stay zero while the outputs are zero are taken out,
    in turn of the model and of its transpose, until D can be inverted; then the zeros are the
    eigenvalues of A - B D⁻¹ C. Modes that no input moves or no output shows are among them.

    Parameters
    ----------
    model : LinearModel
        A model; without inputs or outputs it has no zeros.

    Returns
    -------
    ndarray of complex
        In rad/s, or of a sampled model in z; none when the rank is lower everywhere.
    """
    A, B, C, D, rate = _scaled(model)
    A, B, C, D = _with_full_rows(A, B, C, D)
    A, C, B, D = (each.T for each in _with_full_rows(A.T, C.T, B.T, D.T))
    if D.shape[0] != D.shape[1] or not A.size:
        return np.empty(0, dtype=complex)
    found = np.linalg.eigvals(A - B @ np.linalg.solve(D, C)).astype(complex)
    return np.asarray(rate * found[np.lexsort((found.imag, found.real))], dtype=complex)


def _scaled(model: LinearModel) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Return matrices with numbers around 1, and the unit of time that they are measured in."""
    from scipy.linalg import matrix_balance

    A, B, C, D = model.A, model.B, model.C, model.D
    rate = 1.0
    if A.size:
        balanced, (scale, _) = matrix_balance(A, permute=False, separate=True)
        A = np.asarray(balanced, dtype=float)
        B, C = B / scale[:, np.newaxis], C * scale
        rate = float(np.linalg.norm(A, 2)) or 1.0
        A, B = A / rate, B / rate
    columns = _sizes(np.vstack([B, D]).T)
    B, D = B / columns, D / columns
    rows = _sizes(np.hstack([C, D]))[:, np.newaxis]
    C, D = C / rows, D / rows
    return A, B, C, D, rate


def _sizes(matrix: FloatArray) -> FloatArray:
    """Return the length of each row, 1 for rows of zeros."""
    sizes = np.linalg.norm(matrix, axis=1)
    return np.asarray(np.where(sizes > 0.0, sizes, 1.0), dtype=float)


def _with_full_rows(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a model with the same zeros whose D has independent rows.

    Rows of C without a part of D say C₂ x = 0: the states x₂ that they see stay zero, and so do
    their derivatives, which take the place of these rows.
    """
    while True:
        left, sizes, _ = np.linalg.svd(D)
        rank = int(np.sum(sizes > _RANK))
        C, D = left.T @ C, (left.T @ D)[:rank]
        C, C2 = C[:rank], C[rank:]
        _, sizes, turn = np.linalg.svd(C2)
        seen = int(np.sum(sizes > _RANK))
        if not seen:
            return A, B, C, D
        V = turn.T[:, ::-1]  # the states that C₂ sees come last
        kept = len(A) - seen
        A, B, C = V.T @ A @ V, V.T @ B, C @ V
        C, D = np.vstack([C[:, :kept], A[kept:, :kept]]), np.vstack([D, B[kept:]])
        A, B = A[:kept, :kept], B[:kept]


__all__ = ["transmission_zeros"]
