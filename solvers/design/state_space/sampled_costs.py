"""Continuous weights and intensities of noise, exactly as a controller with a period has them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.solvers.analysis.linear_models.linear_model import LinearModel


def with_period(model: LinearModel, period: float, attempt: str) -> LinearModel:
    """Return the sampled model of one in continuous time whose inputs are held for a period."""
    own = bounded(period, f"{attempt} with this period", lower=0.0, exclusive=True, unit="s")
    if model.period is not None:
        raise ValueRefusedError(
            attempt,
            expected="a model in continuous time, to sample with a period",
            found=f"a model that is sampled every {model.period:g} s",
            remedy="Leave period out: weights are then sums over samples",
        )
    n, m = model.B.shape
    whole = np.zeros((n + m + 1, n + m + 1))
    whole[:n] = np.hstack([model.A, model.B, model.xdot0[:, np.newaxis]])
    with np.errstate(all="ignore"):
        change, _ = accumulated(whole, np.zeros_like(whole), own)
        fits = np.isfinite(change @ change).all()
    if not fits:
        raise ValueRefusedError(
            f"{attempt} with this period",
            expected="one in which modes that grow stay finite",
            found=f"{own:g} s, with poles at {model.poles[:4]}",
            remedy="Pass a shorter period",
        )
    return replace(
        model,
        A=change[:n, :n],
        B=change[:n, n : n + m],
        xdot0=change[:n, -1],
        period=own,
        how=f"{model.how}; inputs held for {own:g} s",
    )


def sampled_cost(
    model: LinearModel, Q: FloatArray, R: FloatArray, period: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weights Q, R and S of samples for those of an integral, with the input held.

    The sum of xᵀ Q x + 2 xᵀ S u + uᵀ R u over the samples is the integral with the given weights.
    """
    n, m = model.B.shape
    whole = np.vstack([np.hstack([model.A, model.B]), np.zeros((m, n + m))])
    weights = np.zeros((n + m, n + m))
    weights[:n, :n], weights[n:, n:] = Q, R
    _, summed = accumulated(whole, weights, period)
    return summed[:n, :n], summed[n:, n:], summed[:n, n:]


def accumulated(A: FloatArray, Q: FloatArray, time: float) -> tuple[FloatArray, FloatArray]:
    """Return exp(A T) and the integral of exp(Aᵀ t) Q exp(A t) from 0 to T.

    Both come from one exponential (Van Loan) of a short time, which is then doubled, so that fast
    modes that decay do not overflow.
    """
    from scipy.linalg import expm

    n = len(A)
    doublings = math.ceil(math.log2(max(float(np.linalg.norm(A, 1)) * time, 1.0)))
    both = np.block([[-A.T, Q], [np.zeros((n, n)), A]]) * (time / 2.0**doublings)
    found = expm(both)
    change, summed = found[n:, n:], found[n:, n:].T @ found[:n, n:]
    for _ in range(doublings):
        summed = summed + change.T @ summed @ change
        change = change @ change
    return change, 0.5 * (summed + summed.T)
