"""Passivity and sectors of linear models, as indices: how much feedback restores or breaks them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import items_of, require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import as_number
from flexure.solvers.analysis.frequency.frequency_search import QuadraticSearch
from flexure.solvers.analysis.frequency.norms import require_transfer
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.poles import fate, stability

_ROUNDING = 1e-9  # of an index beside 1 or its own size


@dataclass(frozen=True, eq=False)
class PassivityIndices(Answer):
    """How much more, or less, than passive a linear model is.

    Attributes
    ----------
    is_passive : bool
        Whether no pole grows and ``∫ yᵀ u dt`` is never negative: the input index is not.
    input_index : float
        Input passivity index ν: the largest number with ``∫ yᵀ u dt ≥ ν ∫ |u|² dt``. A feedthrough
        of -ν makes a model passive that is not; -inf where no feedthrough does.
    input_frequency : float
        Where it is attained, in rad/s.
    output_index : float
        Output passivity index ρ: the largest number with ``∫ yᵀ u dt ≥ ρ ∫ |y|² dt``. A negative
        feedback of -ρ makes a stable model passive that is not.
    output_frequency : float
        Where it is attained, in rad/s.
    sector : tuple of float
        The sector that was asked for, (0, inf) for passivity itself.
    notes : tuple of str
        Those of the model.

    See Also
    --------
    passivity_indices : Compute them.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.signal import TransferFunction
    >>> model = fx.LinearModel.from_scipy(TransferFunction([1.0], [1.0, 1.0]))
    >>> found = fx.passivity_indices(model)
    >>> found.is_passive, round(found.output_index, 6)
    (True, 1.0)
    """

    is_passive: bool
    input_index: float
    input_frequency: float
    output_index: float
    output_frequency: float
    sector: tuple[float, float]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        low, high = self.sector
        where = "" if self.sector == (0.0, math.inf) else f", sector [{low:g}, {high:g}]"
        lines = [
            f"passive       {'yes' if self.is_passive else 'no'}{where}",
            f"input index   {self.input_index:.4g} at {self.input_frequency:.4g} rad/s",
            f"output index  {self.output_index:.4g} at {self.output_frequency:.4g} rad/s",
        ]
        return "\n".join([*lines, *(f"note          {note}" for note in self.notes)])


@in_one_thread
def passivity_indices(
    model: LinearModel, *, sector: tuple[float, float] = (0.0, math.inf)
) -> PassivityIndices:
    """Return input and output passivity index of a linear model, also for a sector.

    Parameters
    ----------
    model : LinearModel
        With as many inputs as outputs, in pairs whose products are powers, such as forces and
        velocities; continuous or sampled.
    sector : tuple of float, optional
        Bounds a < b of a sector, a finite and b positive or inf. The indices are those of
        ``(G - a I) (I - G / b)⁻¹``, which is passive where G is in the sector: where
        ``∫ (y - a u)ᵀ (u - y / b) dt`` is never negative.

    Returns
    -------
    PassivityIndices

    Raises
    ------
    ValueRefusedError
        When it is no such model, or the sector has no such bounds.

    See Also
    --------
    margins : Stability margins of a loop gain.
    norms : H2 and H-infinity norm.

    Notes
    -----
    ν is the least eigenvalue of ``(G + Gᴴ) / 2`` over all frequencies, and ρ that of
    ``(G⁻¹ + G⁻ᴴ) / 2``, found as peaks are for `norms`. By the circle criterion, the
    feedback loop of a stable loop gain L with ν < 0 is stable for any nonlinearity of a sector
    [0, k] at its wire, also one that varies with time, up to ``k = -1/ν``; and two systems in
    feedback are stable where the excess of one makes up for the shortage of the other:
    ν₁ + ρ₂ > 0 and ν₂ + ρ₁ > 0.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.signal import TransferFunction
    >>> lags = fx.LinearModel.from_scipy(TransferFunction([1.0], [1.0, 2.0, 1.0]))
    >>> found = fx.passivity_indices(lags)  # of 1 / (s + 1)²: Re G = -1/8 at ω² = 3
    >>> found.is_passive, round(found.input_index, 6), round(found.input_frequency**2, 3)
    (False, -0.125, 3.0)
    """
    attempt = "Cannot compute passivity indices"
    model, seen = require_transfer(model, attempt)
    square = len(model.D) == model.D.shape[1]
    require(square, model, attempt, "a model with as many inputs as outputs")
    low, high = _bounds(sector, attempt)
    A, B, C, D, period = seen.A, seen.B, seen.C, model.D, model.period
    unit = np.eye(len(D))
    if high < math.inf:
        away = unit - D / high
        if np.linalg.matrix_rank(away) < len(D):
            raise ValueRefusedError(
                attempt,
                expected="an upper bound of the sector that is no gain at infinite frequency",
                found=f"{high:g}, and D = {D.tolist()!r:.80}",
            )
        back = np.linalg.inv(away)
        A, B, C, D = A + B @ back @ C / high, B @ back, back @ C, D @ back
        # (G - a)(1 - G/b)⁻¹ = G (1 - G/b)⁻¹ (1 - a/b) - a
        C, D = C * (1.0 - low / high), D * (1.0 - low / high)
    D = D - low * unit
    poles = np.linalg.eigvals(A).astype(complex)
    every = np.linalg.eigvals(model.A).astype(complex)
    grows = "grow" in (fate(poles, every, period), fate(seen.hidden_poles, every, period))
    neutral = stability(A, period)[1]
    turns = np.abs(neutral.imag if period is None else np.angle(neutral) / period)
    found = []
    for of_output in (False, True):
        search = QuadraticSearch(A, B, C, D, period, S=-0.5, of_output=of_output, neutral=turns)
        unbounded = len(A) > 0 and search.grows_without_bound()
        value, where = (math.inf, math.nan) if unbounded else search.peak()
        found.append((-value, where))
    (inward, where), (outward, there) = found
    return PassivityIndices(
        is_passive=not grows and inward >= -_ROUNDING,
        input_index=inward,
        input_frequency=where,
        output_index=outward,
        output_frequency=there,
        sector=(low, high),
        notes=model.notes,
    )


def _bounds(sector: Any, attempt: str) -> tuple[float, float]:
    """Return the bounds of a sector."""
    wanted = "sector to be two numbers (a, b), with a finite, and b positive and above a, or inf"
    pair = items_of(sector, wanted, attempt)
    require(len(pair) == 2, sector, attempt, wanted)
    low, high = (float(as_number(each, (), attempt)) for each in pair)
    require(-math.inf < low < high and high > 0.0, sector, attempt, wanted)
    return low, high
