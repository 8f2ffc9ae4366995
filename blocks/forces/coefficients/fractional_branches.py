"""Branches of Maxwell that are as stiff as a fractional power of frequency in a band."""

from __future__ import annotations

from itertools import product

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray

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
