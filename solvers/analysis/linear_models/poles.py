"""Poles of linear models: their order, and which of them decay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_DRIFT = 1e-8  # of the fastest pole: what is rounding


def least_stable_first(poles: npt.ArrayLike, period: float | None) -> npt.NDArray[np.complex128]:
    """Return poles by their real parts, of a sampled model by magnitude, the largest first."""
    found = np.asarray(poles, dtype=complex)
    growth = found.real if period is None else np.abs(found)
    return found[np.lexsort((found.imag, -growth))]


def all_decay(poles: npt.NDArray[np.complex128], period: float | None) -> bool:
    """Tell whether all poles have a negative real part, or lie inside of the unit circle."""
    return bool(np.all(poles.real < 0.0 if period is None else np.abs(poles) < 1.0))


def fate(
    hidden: npt.NDArray[np.complex128], poles: npt.NDArray[np.complex128], period: float | None
) -> str:
    """Tell whether states that nothing shows "decay", "stay" or "grow", those that do it the most.

    What is rounding beside the fastest of all poles of the model is neither decay nor growth.
    """
    growth = hidden.real if period is None else np.abs(hidden) - 1.0
    size = _DRIFT * (np.abs(poles).max(initial=0.0) if period is None else 1.0)
    most = growth.max(initial=-np.inf)
    return "decay" if most < -size else "grow" if most > size else "stay"


__all__ = ["all_decay", "fate", "least_stable_first"]
