"""Poles of linear models: their order, and which of them decay."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.values.arrays import FloatArray

#: Eigenvalues.
Poles: TypeAlias = npt.NDArray[np.complex128]

_DRIFT = 1e-8  # of the fastest pole: what is rounding
_DOUBTFUL = 1e-4  # of the size of A: how far rounding moves multiple poles
_SLOWEST = 1e-14  # of the fastest pole
_EPSILON = float(np.finfo(float).eps)


def least_stable_first(poles: npt.ArrayLike, period: float | None) -> Poles:
    """Return poles by their real parts, of a sampled model by magnitude, the largest first."""
    found = np.asarray(poles, dtype=complex)
    growth = found.real if period is None else np.abs(found)
    return found[np.lexsort((found.imag, -growth))]


def all_decay(poles: Poles, period: float | None) -> bool:
    """Return whether all poles have a negative real part, or lie inside of the unit circle."""
    return bool(np.all(poles.real < 0.0 if period is None else np.abs(poles) < 1.0))


def on_boundary(A: FloatArray, poles: Poles, period: float | None) -> npt.NDArray[np.bool_]:
    """Return which poles of a matrix neither decay nor grow, as far as rounding lets one know.

    Such a pole has a point s on the imaginary axis, or z on the unit circle, beside it at which
    s - A is singular but for rounding of its entries. Poles of several integrators are among them,
    however far rounding has moved these from zero.
    """
    from scipy.linalg import matrix_balance

    growth = poles.real if period is None else np.abs(poles) - 1.0
    size = np.abs(poles).max(initial=0.0) if period is None else 1.0
    neutral = np.abs(growth) <= _SLOWEST * size
    with np.errstate(all="ignore"):
        balanced = matrix_balance(A, permute=False)[0] if len(A) else A
    balanced = balanced if np.isfinite(balanced).all() else A
    reach = _DOUBTFUL * max(float(np.linalg.norm(balanced)), size)
    doubtful = (np.abs(growth) <= reach) & ~neutral
    turns = np.abs(poles.imag if period is None else np.angle(poles))[doubtful]
    turns, pairs = np.unique(turns, return_inverse=True)
    s = np.asarray(1j * turns if period is None else np.exp(1j * turns), dtype=complex)
    away = s[:, np.newaxis, np.newaxis] * np.eye(len(A)) - balanced
    rows = np.linalg.norm(away, axis=2, keepdims=True)
    neutral[doubtful] = _are_singular(away / np.where(rows > 0.0, rows, 1.0))[pairs]
    return np.asarray(neutral)


def _are_singular(matrices: npt.NDArray[np.inexact[Any]]) -> npt.NDArray[np.bool_]:
    """Return which matrices are singular, but for rounding."""
    ratio = 4.0 * matrices.shape[1] * _EPSILON
    found = np.ones(len(matrices), dtype=bool)
    if not matrices.size:
        return found
    with suppress(np.linalg.LinAlgError):  # norms are enough where it is far from singular
        norms = [np.linalg.norm(each, axis=(1, 2)) for each in (matrices, np.linalg.inv(matrices))]
        found = ~(10.0 * ratio * norms[0] * norms[1] < 1.0)
    sizes = np.linalg.svd(matrices[found], compute_uv=False)
    found[found] = sizes[:, -1] <= ratio * sizes[:, 0]
    return found


def stability(A: FloatArray, period: float | None) -> tuple[bool, Poles]:
    """Return whether all motions of a matrix decay, and its poles that neither decay nor grow."""
    poles = np.linalg.eigvals(A).astype(complex)
    stay = on_boundary(A, poles, period)
    return all_decay(poles, period) and not stay.any(), poles[stay]


def lasting_states(A: FloatArray, names: Sequence[str], period: float | None) -> list[str]:
    """Return the states that move most in each motion that neither decays nor grows."""
    poles, shapes = np.linalg.eig(A)
    stay = on_boundary(A, poles.astype(complex), period)
    moved = np.abs(shapes[:, stay]).argmax(axis=0) if stay.any() else ()
    known = dict(enumerate(names))
    return [*dict.fromkeys(known.get(int(k), f"state {k}") for k in moved)]


def fate(hidden: Poles, poles: Poles, period: float | None) -> str:
    """Return whether hidden states "decay", "stay" or "grow": the least stable of them.

    What is rounding beside the fastest of all poles of the model is neither decay nor growth.
    """
    growth = hidden.real if period is None else np.abs(hidden) - 1.0
    size = _DRIFT * (np.abs(poles).max(initial=0.0) if period is None else 1.0)
    most = growth.max(initial=-np.inf)
    return "decay" if most < -size else "grow" if most > size else "stay"
