"""Matrices of stiffness and damping over the six directions of a bushing, which are passive."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray, as_numbers

#: The directions of a deformation: rotations about x, y and z, and translations along them.
DIRECTIONS = ("rx", "ry", "rz", "x", "y", "z")
#: What is taken for rounding, in matrices that are scaled to a diagonal of ones.
_ROUNDING = 1e-9


def six_by_six(value: npt.ArrayLike, attempt: str) -> FloatArray:
    """Return a matrix over six directions, also from its diagonal, with equal halves."""
    numbers = as_numbers(value, attempt)
    if numbers.shape not in {(6,), (6, 6)}:
        raise ValueRefusedError(
            attempt,
            expected="6 by 6 numbers, or the 6 of a diagonal, those of rotations first",
            found=f"numbers of shape {numbers.shape}",
        )
    matrix = np.asarray(np.diag(numbers) if numbers.ndim == 1 else numbers, dtype=float)
    problem = passivity_problem(matrix)
    if problem is not None:
        raise ValueRefusedError(attempt, found=problem)
    symmetric: FloatArray = 0.5 * (matrix + matrix.T)
    return symmetric


def passivity_problem(matrix: FloatArray) -> str | None:
    """Say why springs or dampers with this matrix could give energy for nothing, if they could.

    Rows and columns are scaled to a diagonal of ones, so that units do not matter.
    """
    if not np.all(np.isfinite(matrix)):
        return "numbers that are not finite"
    diagonal = np.abs(np.diag(matrix))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = matrix * np.outer(scale, scale)
    difference = np.abs(scaled - scaled.T)
    i, j = np.unravel_index(np.argmax(difference), difference.shape)
    if difference[i, j] > _ROUNDING:
        return (
            f"a matrix that is not symmetric, which could make energy: {matrix[i, j]:.6g} in row"
            f" {i + 1}, column {j + 1}, and {matrix[j, i]:.6g} across the diagonal. Take the mean"
            " of both if they are measured"
        )
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    if values[0] >= -_ROUNDING:
        return None
    direction = ", ".join(f"{component:.3g}" for component in scale * vectors[:, 0])
    return (
        f"a matrix with the negative eigenvalue {values[0]:.4g} when its diagonal is scaled to"
        f" ones, which releases energy along ({direction}). Reduce the couplings between "
        "directions, or increase the diagonal"
    )
