"""Which modes no input moves, and no output shows: the test of Popov, Belevitch and Hautus.

An input matrix B does not reach the mode λ of A where a vector w has ``wᵀ A = λ wᵀ`` and
``wᵀ B = 0``, so that [A - λ I, B] loses rank. With Aᵀ and Cᵀ in their places, no output shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.values.arrays import FloatArray

_ROUNDING = 1e-11  # relative to the size of A, once states have been scaled
_SAME = 1e-7  # distance of modes that count as one, relative to the size of A
_PART = 0.1  # of the largest component: from here on a state takes part
Chosen = Callable[[complex], bool]


def persists(period: float | None) -> Chosen:
    """Return the rule for modes that do not decay."""
    if period is None:
        return lambda mode: mode.real >= -1e-9 * abs(mode)
    return lambda mode: abs(mode) >= 1.0 - 1e-9


def lingers(period: float | None) -> Chosen:
    """Return the rule for modes that neither decay nor grow."""
    if period is None:
        return lambda mode: abs(mode.real) <= 1e-7 * abs(mode) or abs(mode) < 1e-9
    return lambda mode: abs(abs(mode) - 1.0) <= 1e-7


def unreached(A: FloatArray, B: FloatArray, concerns: Chosen) -> list[tuple[complex, FloatArray]]:
    """Return modes that B does not reach, each with how much the states take part in w."""
    from scipy.linalg import matrix_balance

    balanced, (unit, _) = matrix_balance(A, permute=False, separate=True)
    size = float(np.linalg.norm(balanced, 2)) or 1.0
    entries = B / unit[:, np.newaxis]
    length = np.abs(entries).max(axis=0, initial=0.0)
    entries = size * (entries / np.where(length > 0.0, length, 1.0))
    found: list[tuple[complex, FloatArray]] = []
    mode: Any
    for mode in np.linalg.eigvals(balanced):
        if mode.imag < 0.0 or not concerns(complex(mode)):
            continue
        if any(abs(mode - known) <= _SAME * size for known, _ in found):
            continue
        left, values, _ = np.linalg.svd(np.hstack([balanced - mode * np.eye(len(A)), entries]))
        missed = values <= _ROUNDING * size
        if missed.any():
            found.append((complex(mode), np.linalg.norm(left[:, missed], axis=1)))
    return found


def require_reach(
    A: FloatArray,
    B: FloatArray,
    concerns: Chosen,
    names: Sequence[str],
    attempt: str,
    expected: str,
    remedy: str,
) -> None:
    """Refuse modes that B does not reach, and name their states."""
    missed = unreached(A, B, concerns)
    if missed:
        told = []
        for mode, parts in missed[:4]:
            taking = [names[int(k)] for k in np.flatnonzero(parts > _PART * parts.max())]
            told.append(f"the mode at {_shown(mode)} of {quoted(taking, 6)}")
        more = f" and {len(missed) - 4} more" if len(missed) > 4 else ""
        raise ValueRefusedError(
            attempt, expected=expected, found=", ".join(told) + more, remedy=remedy
        )


def _shown(mode: complex) -> str:
    """Show an eigenvalue, for a pair with both signs."""
    small = abs(mode) < 1e-9
    if mode.imag == 0.0 or small:
        return f"{0.0 if small else mode.real:.4g}"
    return f"{mode.real:.4g}±{mode.imag:.4g}j"
