"""Coefficients of measured bushings: passive matrices, and branches like a power of frequency."""

from __future__ import annotations

from itertools import product

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


_MOST = 40  # branches
_MARGINS = (2.0, 4.0, 10.0, 30.0)  # by which times lie outside of the band
_FARTHER = (1.0, 100.0)  # by which the two outermost ones do, in addition
_SAMPLES = 40  # frequencies for each decade


def branches_like_power(
    exponent: float, low: float, high: float, error: float
) -> list[tuple[float, float]]:
    """Return as few branches as have the stiffness (i ω)^β in a band, up to an error.

    Times are in geometric progression, where that suffices, but for the two outermost ones.
    Stiffnesses, none of them negative, minimize the sum of squares of relative errors over
    frequencies that are dense in the band; the greatest of these errors, and of those halfway
    between, is what counts. The band is in Hz, and the error relative. Each branch has a stiffness
    for a factor of 1, and a relaxation time in s, from slow to fast.
    """
    decades = np.log10(high / low)
    count = 2 * max(int(_SAMPLES * decades), _SAMPLES) + 1
    omega = 2.0 * np.pi * np.geomspace(low, high, count)
    middle = 2.0 * np.pi * np.sqrt(low * high)
    wanted = (1j * omega / middle) ** exponent
    smallest = np.inf
    for number in range(1, _MOST + 1):
        for farther, margin in product(_FARTHER, _MARGINS):
            longest, shortest = margin / (2.0 * np.pi * low), 1.0 / (2.0 * np.pi * high * margin)
            times = np.geomspace(longest, shortest, number) if number > 1 else [1.0 / middle]
            if number > 2:
                times = np.array([farther * longest, *times[1:-1], shortest / farther])
            stiffnesses, worst = _fitted(omega, wanted, np.asarray(times))
            smallest = min(smallest, worst)
            if worst <= error:
                found = zip(stiffnesses * middle**exponent, times, strict=True)
                return [(float(k), float(time)) for k, time in found if k > 0.0]
    raise ValueRefusedError(
        "Cannot replace a fractional element by branches",
        expected=f"an error that {_MOST} branches can reach",
        found=f"{error:g}, while they reach {smallest:.2g}",
        remedy="Allow a larger error, or use a narrower band",
    )


def _fitted(omega: FloatArray, wanted: FloatArray, times: FloatArray) -> tuple[FloatArray, float]:
    """Return the stiffnesses of branches, and their greatest relative error."""
    from scipy.optimize import nnls

    s = 1j * np.outer(omega, times)
    shares = s / (1.0 + s) / wanted[:, None]
    fitted = shares[::2]
    rows = np.concatenate([fitted.real, fitted.imag])
    lengths = np.linalg.norm(rows, axis=0)  # far from the band, columns are small
    target = np.repeat([1.0, 0.0], len(fitted))
    scaled, _ = nnls(rows / lengths, target, maxiter=100 * len(times))
    stiffnesses = scaled / lengths
    return stiffnesses, float(np.max(np.abs(shares @ stiffnesses - 1.0)))
