"""Weights, intensities of noise, and what designs require of a linear model.

Which modes no input moves, and no output shows, is the test of Popov, Belevitch and Hautus: an
input matrix B does not reach the mode λ of A where a vector w has ``wᵀ A = λ wᵀ`` and ``wᵀ B = 0``,
so that [A - λ I, B] loses rank. With Aᵀ and Cᵀ in their places, no output shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import items_of, mapping, require, require_known, shown
from flexure.diagrams.checks.errors import ValueRefusedError, quoted, warn
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers, bounded, check_bounds
from flexure.solvers.analysis.linear_models.linear_model import LinearModel, channels
from flexure.solvers.analysis.linear_models.poles import all_decay, least_stable_first

#: Eigenvalues.
Poles: TypeAlias = npt.NDArray[np.complex128]
#: A rule for modes.
Chosen = Callable[[complex], bool]
_MOVING = 1e-6  # relative to what the rates are sums of
_VANISHING = 1e-11  # relative to the size of A, once states have been scaled
_SAME = 1e-7  # distance of modes that count as one, relative to the size of A
_PART = 0.1  # of the largest component: from here on a state takes part


def check_model(model: Any, attempt: str, *, inputs: bool = False, outputs: bool = False) -> None:
    """Refuse what is no linear model with states, and with inputs and outputs where needed."""
    fits, remedy = isinstance(model, LinearModel), "fx.linearize(plant, context) returns one"
    require(fits, model, attempt, "a LinearModel", remedy=remedy)
    counts = {"state that can move" if model.locked else "state": len(model.on_tangent().A)}
    if inputs:
        counts["input"] = model.B.shape[1]
    if outputs:
        counts["output"] = len(model.C)
    for what, count in counts.items():
        if count == 0:
            expected = f"a model with at least one {what}"
            raise ValueRefusedError(attempt, expected=expected, found=f"{model!r}")
    for name in ("x0", "u0", "y0", "xdot0"):  # matrices are checked by the model itself
        if not np.isfinite(getattr(model, name)).all():
            raise ValueRefusedError(
                attempt,
                expected="a model of finite numbers",
                found=f"{name} = {getattr(model, name)}",
            )


def warn_unless_at_rest(model: LinearModel, attempt: str) -> None:
    """Warn when a model was taken at a point where states move: feedback does not hold that."""
    size = 1.0 + np.abs(model.A) @ np.abs(model.x0) + np.abs(model.B) @ np.abs(model.u0)
    moving = np.flatnonzero(np.abs(model.xdot0) > _MOVING * size)
    if moving.size:
        k = moving[0]
        per = "s" if model.period is None else "sample"
        warn(
            f"{attempt} so that it holds the point of the model, which is no equilibrium: "
            f"'{model.state_names[k]}' changes by {model.xdot0[k]:g} per {per} there. Linearize at "
            "fx.equilibrium(...).context"
        )


def warn_unless_decaying(poles: Poles, period: float | None, what: str) -> None:
    """Warn when poles that were asked for make something that does not decay."""
    if lasting := [pole for pole in poles if not all_decay(np.array([pole]), period)]:
        shown = ", ".join(f"{p:.6g}" if p.imag else f"{p.real:.6g}" for p in lasting[:4])
        rule = (
            "Poles of a model in continuous time are in rad/s, and decay with negative real parts"
            if period is None
            else f"Poles of a sampled model are in z = exp(s T), here with T = {period:g} s, and "
            "decay inside of the unit circle"
        )
        warn(f"{what} poles that do not decay: {shown}. {rule}")


def warn_if_read_late(model: LinearModel, controls: Iterable[str]) -> None:
    """Warn when a block of a sampled model reads a controlled input an instant later."""
    if late := [name for name in controls if name in model.sampled_inputs]:
        warn(
            f"The loop will have one sample more of delay than this design: {quoted(late)} is "
            "sampled by a block of the model, at the instants at which the controller changes "
            "its output, and that block reads the output of the instant before. Pass "
            "inputs_after_updates=True to linearize, for the model with this delay"
        )


def without_inputs(model: LinearModel, left_out: list[int]) -> LinearModel:
    """Return a model without some of its inputs."""
    kept = [k for k in range(model.B.shape[1]) if k not in left_out]
    return channels(model, kept, [*range(len(model.C))])


def without_states(model: LinearModel, leaves_out: Callable[[str], bool]) -> LinearModel:
    """Return a model on its tangent, without the states of some names, on which nothing depends."""
    model = model.on_tangent()
    kept = [k for k, name in enumerate(model.state_names) if not leaves_out(name)]
    return replace(
        model,
        A=model.A[np.ix_(kept, kept)],
        B=model.B[kept],
        C=model.C[:, kept],
        x0=model.x0[kept],
        xdot0=model.xdot0[kept],
        state_names=[model.state_names[k] for k in kept],
    )


def poles_of(A: FloatArray, period: float | None) -> Poles:
    """Return eigenvalues, the least stable ones first."""
    return ordered(np.linalg.eigvals(A), period)


def ordered(poles: npt.ArrayLike, period: float | None) -> Poles:
    """Return poles in the order of `LinearModel.poles`, for a read-only result."""
    found = least_stable_first(poles, period)
    found.setflags(write=False)
    return found


def stable_poles(A: FloatArray, period: float | None, attempt: str) -> Poles:
    """Return the poles of what a Riccati equation gave, or refuse where the numbers were bad."""
    poles = poles_of(A, period) if np.isfinite(A).all() else np.full(len(A), np.nan + 0j)
    if all_decay(poles, period):
        return poles
    raise unsolvable(attempt, f"poles at {poles[:4]}")


def unsolvable(attempt: str, found: str) -> ValueRefusedError:
    """Return the error for a Riccati equation that has a solution, but not in these numbers."""
    return ValueRefusedError(
        attempt,
        expected="a Riccati equation that can be solved in floating-point numbers",
        found=found,
        remedy="Choose weights that differ less in size",
    )


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
        missed = values <= _VANISHING * size
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
