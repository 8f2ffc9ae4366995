"""Linear systems of python-control and SciPy, read into the matrices and polynomials of blocks.

Neither package is imported for this: objects of a package that is not loaded do not exist.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import polynomial

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError, FlexureError
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded

#: A linear system of python-control, or one of scipy.signal.
ForeignSystem: TypeAlias = Any
Matrices: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Kind:
    """The kind of an object of another package."""

    package: str  # "python-control" or "scipy.signal"
    form: str  # "matrices", "ratio", "roots", or "other" for what has none of these


def kind_of(value: object) -> Kind | None:
    """Return what a linear system of another package is; None for everything else."""
    control, signal = sys.modules.get("control"), sys.modules.get("scipy.signal")
    if control is not None:
        if isinstance(value, control.StateSpace):
            return Kind("python-control", "matrices")
        if isinstance(value, control.TransferFunction):
            return Kind("python-control", "ratio")
        if isinstance(value, control.InputOutputSystem):
            return Kind("python-control", "other")
    if signal is not None and isinstance(value, (signal.lti, signal.dlti)):
        for form, name in [
            ("matrices", "StateSpace"),
            ("ratio", "TransferFunction"),
            ("roots", "ZerosPolesGain"),
        ]:
            if isinstance(value, getattr(signal, name)):
                return Kind("scipy.signal", form)
        return Kind("scipy.signal", "other")
    return None


def matrices_of(system: ForeignSystem, attempt: str, error: type[FlexureError]) -> Matrices:
    """Return A, B, C, D: those of the system, or a realization of its transfer functions.

    A transfer function is realized in controllable canonical form; several of them lie side by
    side, and nothing is cancelled.
    """
    kind = kind_of(system)
    if kind is not None and kind.form == "matrices":
        n = np.shape(system.A)[0]
        D = as_numbers(system.D, attempt)
        p, m = D.shape
        A, B, C = (as_numbers(each, attempt) for each in (system.A, system.B, system.C))
        return A.reshape(n, n), B.reshape(n, m), C.reshape(p, n), D
    ratios = _ratios(system, attempt, error)
    parts = [[_canonical(*ratio, attempt, error) for ratio in row] for row in ratios]
    p, m = len(parts), len(parts[0])
    orders = [[len(part[0]) for part in row] for row in parts]
    n = sum(map(sum, orders))
    A, B, C, D = np.zeros((n, n)), np.zeros((n, m)), np.zeros((p, n)), np.zeros((p, m))
    at = 0
    for i, row in enumerate(parts):
        for j, (a, b, c, d) in enumerate(row):
            own = slice(at, at + len(a))
            A[own, own], B[own, j], C[i, own], D[i, j] = a, b, c, d
            at = own.stop
    return A, B, C, D


def ratio_of(
    system: ForeignSystem, attempt: str, error: type[FlexureError]
) -> tuple[FloatArray, FloatArray]:
    """Return numerator and denominator of a system with one input and one output."""
    kind = kind_of(system)
    require(
        kind is not None and kind.form in ("ratio", "roots"),
        system,
        attempt,
        "a transfer function",
        error=error,
        remedy="Matrices are kept exactly by a StateSpace block",
    )
    ratios = _ratios(system, attempt, error)
    require(
        len(ratios) == len(ratios[0]) == 1,
        system,
        attempt,
        "one input and one output",
        error=error,
        remedy="Use a StateSpace block, which accepts several",
    )
    return ratios[0][0]


def period_of(
    system: ForeignSystem, period: float | None, attempt: str, error: type[FlexureError]
) -> float | None:
    """Return the sampling period in s, None in continuous time.

    python-control writes 0 for continuous time, None for either, and True for a period that is not
    known; SciPy None for continuous time and True for what is not known.
    """
    told = system.dt
    if period is not None:
        period = float(
            bounded(period, f"{attempt} with this period", lower=0.0, exclusive=True, unit="s")
        )
    if told is True:
        require(
            period is not None,
            told,
            attempt,
            "a sampling period; that of the system is not known",
            error=error,
            remedy="Pass period= in s",
        )
        return period
    open_to_both = told is None and getattr(kind_of(system), "package", "") == "python-control"
    if open_to_both and period is not None:
        return period
    known = float(told) if told else None
    require(
        period in (None, known),
        period,
        attempt,
        "no period=, as the system is in continuous time"
        if known is None
        else f"the period of the system, {known:g} s, or none",
        error=error,
    )
    return known


def block_matrices(
    attempt: str, A: Any, B: Any, C: Any, D: Any
) -> tuple[ForeignSystem | None, Any, Any, Any, Any]:
    """Return a system and its matrices where A is one, and None with the matrices otherwise."""
    if kind_of(A) is None:
        require(
            B is not None and C is not None,
            None,
            attempt,
            "matrices A, B and C, or a linear system of python-control or scipy.signal alone",
            error=DeclarationError,
        )
        return (None, A, B, C, D)
    _alone(attempt, [B, C, D])
    return (A, *matrices_of(A, attempt, DeclarationError))


def block_ratio(
    attempt: str, numerator: Any, denominator: Any
) -> tuple[ForeignSystem | None, Any, Any]:
    """Return a system and its polynomials where the numerator is one, and None with them if not."""
    if kind_of(numerator) is None:
        require(
            denominator is not None,
            None,
            attempt,
            "numerator and denominator, or a transfer function of python-control or scipy.signal",
            error=DeclarationError,
        )
        return (None, numerator, denominator)
    _alone(attempt, [denominator])
    return (numerator, *ratio_of(numerator, attempt, DeclarationError))


def block_period(attempt: str, system: ForeignSystem | None, period: float | None) -> float | None:
    """Return the sampling period of a block, None in continuous time."""
    return period if system is None else period_of(system, period, attempt, DeclarationError)


def _alone(attempt: str, others: list[Any]) -> None:
    """Refuse what is given beside a whole system."""
    beside = next((other for other in others if other is not None), None)
    require(
        beside is None, beside, attempt, "the system alone, which has them", error=DeclarationError
    )


def _ratios(
    system: ForeignSystem, attempt: str, error: type[FlexureError]
) -> list[list[tuple[FloatArray, FloatArray]]]:
    """Return numerator and denominator for every output and input."""
    kind = kind_of(system)
    form = "other" if kind is None else kind.form
    require(
        form != "other",
        system,
        attempt,
        "a state-space system or a transfer function",
        error=error,
        remedy="Linearize or approximate it there first",
    )
    if form == "roots":
        zeros = np.atleast_1d(np.asarray(system.zeros, dtype=complex))
        above = float(system.gain) * _from_roots(zeros, attempt, error)
        return [[(above, _from_roots(np.asarray(system.poles), attempt, error))]]
    if kind is not None and kind.package == "python-control":
        return [
            [
                (as_numbers(above, attempt), as_numbers(below, attempt))
                for above, below in zip(*row, strict=True)
            ]
            for row in zip(system.num, system.den, strict=True)
        ]
    below = as_numbers(system.den, attempt)
    return [[(above, below)] for above in np.atleast_2d(as_numbers(system.num, attempt))]


def _from_roots(roots: Any, attempt: str, error: type[FlexureError]) -> FloatArray:
    """Return the polynomial with these roots, the highest power first."""
    found = np.atleast_1d(polynomial.polyfromroots(roots))[::-1]
    scale = polynomial.polyfromroots(-np.abs(roots))[::-1]
    require(
        np.all(np.abs(found.imag) <= 1e-9 * np.abs(scale)),
        roots,
        attempt,
        "complex roots in conjugate pairs",
        error=error,
    )
    return np.asarray(found.real, dtype=float)


def _canonical(
    above: FloatArray, below: FloatArray, attempt: str, error: type[FlexureError]
) -> Matrices:
    """Return the controllable canonical form of a ratio, without a state where it is a number."""
    above, below = np.trim_zeros(above, "f"), np.trim_zeros(below, "f")
    n = len(below) - 1
    require(n >= 0, below, attempt, "a denominator that is not zero", error=error)
    require(
        len(above) <= n + 1,
        above,
        attempt,
        f"a proper transfer function, with a numerator of at most degree {n}",
        error=error,
        remedy="Differentiators cannot be realized: add fast poles to the denominator",
    )
    below, above = (
        below / below[0],
        np.concatenate([np.zeros(n + 1 - len(above)), above]) / below[0],
    )
    A = np.eye(n, k=-1)
    A[:1] = -below[1:]
    return A, np.eye(1, n)[0], above[1:] - below[1:] * above[0], above[0]
