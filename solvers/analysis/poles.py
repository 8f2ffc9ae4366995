"""Poles of linear models: their order, and which of them decay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def least_stable_first(poles: npt.ArrayLike, period: float | None) -> npt.NDArray[np.complex128]:
    """Return poles by their real parts, of a sampled model by magnitude, the largest first."""
    found = np.asarray(poles, dtype=complex)
    growth = found.real if period is None else np.abs(found)
    return found[np.lexsort((found.imag, -growth))]


def all_decay(poles: npt.NDArray[np.complex128], period: float | None) -> bool:
    """Tell whether all poles have a negative real part, or lie inside of the unit circle."""
    return bool(np.all(poles.real < 0.0 if period is None else np.abs(poles) < 1.0))


__all__ = ["all_decay", "least_stable_first"]
