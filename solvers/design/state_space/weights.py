"""Weights and intensities of noise: by numbers, names or what is acceptable, and of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import items_of, mapping, require_known, shown
from flexure.diagrams.checks.errors import ValueRefusedError, quoted
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers, bounded, check_bounds
from flexure.solvers.analysis.linear_models.linear_model import LinearModel

#: What describes a symmetric matrix: a number for all, a diagonal, a matrix, or numbers by name.
Weights = Any
_ROUNDING = 1e-10  # relative to the diagonal


def weights(
    value: Weights, names: Sequence[str], argument: str, attempt: str, *, definite: bool = False
) -> FloatArray:
    """Return a symmetric matrix that is positive semidefinite, or definite.

    One number holds for all components, a vector is the diagonal, and of a mapping from names,
    what is not named is zero.
    """
    size = len(names)
    if isinstance(value, Mapping):
        given = mapping(value, f"names of components for {argument}", attempt)
        for name in given:
            require_known(name, names, attempt, f"names of {argument}")
        matrix = np.diag(
            [float(as_number(given.get(name, 0.0), (), f"{attempt}: {name}")) for name in names]
        )
    else:
        array = as_numbers(value, f"{attempt} with this {argument}")
        if array.shape not in ((), (size,), (size, size)):
            raise ValueRefusedError(
                attempt,
                expected=f"one number, {size} numbers, a {size} x {size} matrix or a mapping from "
                f"names for {argument}",
                found=f"shape {array.shape}",
            )
        matrix = array if array.ndim == 2 else np.diag(np.broadcast_to(array, (size,)))
    _check(matrix, argument, attempt, definite=definite)
    return 0.5 * matrix + 0.5 * matrix.T


def _check(matrix: FloatArray, argument: str, attempt: str, *, definite: bool) -> None:
    """Refuse what is not finite, symmetric and positive; units of components do not matter."""
    kind = "definite" if definite else "semidefinite"
    expected = f"a symmetric, positive {kind} {argument} of finite numbers"
    remedy = None
    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all():
        found = "numbers that are not finite"
    elif np.any(diagonal < 0.0) or (definite and np.any(diagonal == 0.0)):
        found = f"the diagonal {diagonal}"
        remedy = "Every component needs a positive number" if definite else None
    else:
        size = np.sqrt(diagonal)
        unit = np.where(size > 0.0, size, 1.0)
        scaled = matrix / unit / unit[:, np.newaxis]
        if np.abs(scaled - scaled.T).max(initial=0.0) > _ROUNDING:
            found = "a matrix that is not symmetric"
        else:
            lowest = np.linalg.eigvalsh(scaled).min(initial=1.0)
            if lowest > (_ROUNDING if definite else -_ROUNDING):
                return
            found = f"the eigenvalues {np.linalg.eigvalsh(matrix)}"
    raise ValueRefusedError(attempt, expected=expected, found=found, remedy=remedy)


def cost(
    Q: Weights | None,
    R: Weights | None,
    largest: Mapping[str, float] | None,
    model: LinearModel,
    attempt: str,
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of states and inputs, which may come from their largest values.

    Bryson's rule: what has the largest acceptable value x has the weight 1/x².
    """
    given = [k for k, value in {"Q": Q, "R": R, "largest": largest}.items() if value is not None]
    if given not in (["Q", "R"], ["largest"]):
        raise ValueRefusedError(
            attempt,
            expected="either weights Q and R, or largest acceptable values of states and inputs",
            found=" and ".join(given) or "neither",
            remedy=f"Pass largest={{'{model.state_names[0]}': ..., '{model.input_names[0]}': ...}}",
        )
    if largest is not None:
        Q, R = _of_largest(largest, model, attempt)
    states = weights(Q, model.state_names, "Q", attempt)
    return states, weights(R, model.input_names, "R", attempt, definite=True)


def _of_largest(
    largest: Mapping[str, float], model: LinearModel, attempt: str
) -> tuple[dict[str, float], dict[str, float]]:
    """Return weights by names of states, and by names of inputs."""
    given = mapping(largest, "names of states and inputs, and their largest values", attempt)
    states, inputs = model.state_names, model.input_names
    found: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for name, value in given.items():
        known = [*states, *inputs]
        require_known(name, known, attempt, "names of states and inputs in largest")
        number = float(as_number(value, (), f"{attempt}: {name}"))
        check_bounds(number, f"{attempt} with this largest {name}", lower=0.0, exclusive=True)
        with np.errstate(all="ignore"):
            weight = float(np.float64(number) ** -2.0)
        for names, part in zip((states, inputs), found, strict=True):
            if name in names:
                part[name] = weight
    if missing := [name for name in inputs if name not in given]:
        raise ValueRefusedError(
            attempt,
            expected="the largest value of every input",
            found=f"none for {quoted(missing)}",
        )
    return found


def chosen(wanted: Any, names: Sequence[str], what: str, attempt: str) -> list[int]:
    """Return the positions of some names, one name or several."""
    listed = [wanted] if isinstance(wanted, str) else wanted
    found = []
    for name in items_of(listed, f"names of {what}s", attempt):
        if not isinstance(name, str):
            raise ValueRefusedError(attempt, expected=f"names of {what}s", found=shown(name))
        require_known(name, names, attempt, f"the name of an {what}")
        if names.index(name) in found:
            raise ValueRefusedError(attempt, expected="names once each", found=f"'{name}' twice")
        found.append(names.index(name))
    return found


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
