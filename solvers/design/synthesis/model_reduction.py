"""Reduction of linear models to fewer states, with bounds of the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import count_of, flag, one_of
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.concurrency.one_thread import in_one_thread
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.values.arrays import FloatArray, bounded, freeze
from flexure.solvers.analysis.frequency.frequency_search import peak_gain
from flexure.solvers.analysis.frequency.norms import gramian, norms, require_transfer
from flexure.solvers.analysis.linear_models.linear_model import LinearModel
from flexure.solvers.analysis.linear_models.poles import Poles, on_boundary
from flexure.solvers.analysis.linear_models.realizations import scaling

_EQUAL = 1e-6  # relative: distance of Hankel singular values that count as equal
_NEAR = 1e-3  # relative: distance of poles that are not separated


class _Part(NamedTuple):
    """A, B and C of a part of a model."""

    A: FloatArray
    B: FloatArray
    C: FloatArray


class _Candidates(NamedTuple):
    """Groups of states that a method keeps or removes, the largest values first."""

    values: FloatArray
    sizes: list[int]
    costs: list[float]
    #: From the number of groups that stay to their sum, and a direct gain beside it.
    reduced: Callable[[int], tuple[_Part, FloatArray]]


@dataclass(frozen=True, eq=False)
class ModelReduction(Answer):
    """A linear model with fewer states, and a bound on the error of its response.

    Attributes
    ----------
    model : LinearModel
        With the inputs and outputs of the original one, and states z1, z2, and so on.
    error_bound : float
        The peak gain of the difference of both models is not larger.
    difference : LinearModel
        The original model minus the reduced one, without what both have in common.
    values : ndarray
        Of the balanced method the Hankel singular values of the part that decays, of the modal one
        the peak gains of its modes; the largest ones first.
    orders : ndarray of int
        The orders that do not separate equal values, or poles that belong together.
    error_bounds : ndarray
        The error bound of each of them.

    See Also
    --------
    model_reduction : Compute one.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.signal import TransferFunction
    >>> model = fx.LinearModel.from_scipy(TransferFunction([1.0], [1.0, 11.0, 10.0]))
    >>> found = fx.model_reduction(model, 1)
    >>> found.model.poles.real.round(3), found.orders
    (array([-0.732]), array([0, 1, 2]))
    """

    model: LinearModel
    error_bound: float
    difference: LinearModel
    values: FloatArray
    orders: np.ndarray
    error_bounds: FloatArray

    @cached_property
    def error(self) -> float:
        """The peak gain of the difference of both models."""
        return norms(self.difference).peak_gain

    def __str__(self) -> str:
        lines = [
            f"order        {len(self.model.A)}",
            f"peak error   {self.error:.4g}, at most {self.error_bound:.4g}",
        ]
        for order, bound in zip(self.orders[:12], self.error_bounds, strict=False):
            lines.append(f"  order {order:<4} error at most {bound:.4g}")
        return "\n".join(lines)


@in_one_thread
def model_reduction(
    model: LinearModel,
    order: int | None = None,
    *,
    tolerance: float | None = None,
    method: Literal["balanced", "modal"] = "balanced",
    keep_static_gain: bool = False,
) -> ModelReduction:
    """Return a linear model with fewer states, and a bound of its error.

    Parameters
    ----------
    model : LinearModel
        Continuous or sampled, with inputs and outputs. Modes that do not decay are kept.
    order : int, optional
        The number of states of the reduced model, those that do not decay among them.
    tolerance : float, optional
        Instead of the order, the largest acceptable error bound: a gain from inputs to outputs.
    method : {"balanced", "modal"}, optional
        Balanced truncation, with the smallest errors; or modal truncation, which keeps the poles of
        the modes with the largest peak gains.
    keep_static_gain : bool, optional
        Whether the static gain of what decays stays exact (singular perturbation of a balanced
        model, static correction of a modal one), rather than the gain at infinite frequency.

    Returns
    -------
    ModelReduction

    Raises
    ------
    ValueRefusedError
        When there is no such model, when the order is less than the number of modes that do not
        decay or more than that of all states, or when it separates equal Hankel singular values or
        poles that belong together.

    See Also
    --------
    LinearModel.minimal : Remove only states that do not matter at all.
    norms : Peak gains.
    hinf_synthesis : Controllers have as many states as the plant with its weights.

    Notes
    -----
    In balanced coordinates, the controllability and observability Gramians are equal and diagonal,
    with the Hankel singular values σ. The peak gain of the error is at most twice the sum of the
    values that are left out, each counted once if several are equal (Enns; Glover). For modes, it
    is the sum of their peak gains. Modes that do not decay are separated before, and do not count.

    Examples
    --------
    >>> import flexure as fx
    >>> from scipy.signal import TransferFunction
    >>> model = fx.LinearModel.from_scipy(TransferFunction([1.0], [1.0, 11.0, 10.0]))
    >>> found = fx.model_reduction(model, 1, keep_static_gain=True)
    >>> round(found.model.static_gain.item(), 6), round(found.error_bound, 5)
    (0.1, 0.00768)
    >>> len(fx.model_reduction(model, tolerance=0.02).model.A)
    1
    """
    attempt = "Cannot reduce a model"
    model, seen = require_transfer(model, attempt)
    one_of(method, ("balanced", "modal"), "method", attempt)
    exact = flag(keep_static_gain, "keep_static_gain", attempt)
    if (order is None) == (tolerance is None):
        both = "neither" if order is None else "both"
        expected = "either the order of the reduced model, or a tolerance of the error"
        raise ValueRefusedError(attempt, expected=expected, found=both)
    period, D = model.period, model.D
    source = seen if len(seen.A) < len(model.A) else model  # as it is, zeros are exact
    unit = scaling(source.A, source.B, source.C)
    A, B, C = source.A * unit / unit[:, np.newaxis], source.B / unit[:, np.newaxis], source.C * unit
    whole = _Part(A, B, C)
    poles = np.linalg.eigvals(whole.A).astype(complex)
    decays = poles.real < 0.0 if period is None else np.abs(poles) < 1.0
    stays = ~decays | on_boundary(whole.A, poles, period)
    kept, rest = _separated(whole, poles, stays, attempt)
    if method == "balanced":
        found = _balanced(rest, period, exact=exact)
    else:
        found = _modal(rest, period, attempt, exact=exact)
    orders = len(kept.A) + np.cumsum([0, *found.sizes])
    bounds = np.append(np.cumsum(found.costs[::-1])[::-1], 0.0)
    if tolerance is not None:
        allowed = bounded(tolerance, f"{attempt} with this tolerance", lower=0.0)
        k = int(np.argmax(bounds <= allowed))
    else:
        wanted = count_of(order, "the order of the reduced model", attempt, minimum=0)
        if wanted not in orders:
            shown = ", ".join(map(str, orders[:30])) + ", ..." * (len(orders) > 30)
            raise ValueRefusedError(
                attempt,
                expected=f"an order among {shown}: not below the {len(kept.A)} modes that do not "
                "decay, and not between equal values or poles that belong together",
                found=f"{wanted}",
            )
        k = orders.tolist().index(wanted)
    part, direct = (rest, np.zeros_like(D)) if k == len(found.sizes) else found.reduced(k)
    joined = _side_by_side([kept, part])
    between = _side_by_side([rest, part._replace(C=-part.C)])
    how = f"{model.how}; {len(model.A) - len(joined.A)} of {len(model.A)} states removed ({method})"
    return ModelReduction(
        model=_model(model, joined, D + direct, how),
        error_bound=float(bounds[k]),
        difference=_model(model, between, -direct, how),
        values=freeze(found.values),
        orders=orders,
        error_bounds=freeze(bounds),
    )


def _model(model: LinearModel, part: _Part, D: FloatArray, how: str) -> LinearModel:
    """Return a linear model with other states."""
    n = len(part.A)
    names = [f"z{k}" for k in range(1, n + 1)]
    x0 = np.zeros(n)
    return replace(model, **part._asdict(), D=D, x0=x0, xdot0=x0, state_names=names, how=how)


def _side_by_side(parts: Sequence[_Part]) -> _Part:
    """Return the sum of several parts."""
    from scipy.linalg import block_diag

    A = block_diag(*(part.A for part in parts))
    return _Part(A, np.vstack([part.B for part in parts]), np.hstack([part.C for part in parts]))


def _separated(
    part: _Part, poles: Poles, first: npt.NDArray[np.bool_], attempt: str
) -> tuple[_Part, _Part]:
    """Return two parts whose sum is the whole: one with the chosen poles, one with the others."""
    from scipy.linalg import schur, solve_sylvester

    def is_chosen(real: Any, imaginary: float = 0.0) -> bool:
        nearest = int(np.abs(poles - complex(real, imaginary)).argmin())
        return bool(first[nearest])

    A, B, C = part
    k = int(first.sum())
    if k in (0, len(A)):
        none = _Part(A[:0, :0], B[:0], C[:, :0])
        return (part, none) if k else (none, part)
    try:
        T, Z, count = schur(A, sort=is_chosen)
    except np.linalg.LinAlgError:
        count = -1
    if count != k:
        raise ValueRefusedError(
            attempt,
            expected="modes that can be separated in floating-point numbers",
            found=f"poles at {poles[:6]}",
            remedy="Remove states that do not matter by minimal() before",
        )
    X = solve_sylvester(T[:k, :k], -T[k:, k:], -T[:k, k:])
    right, left = Z[:, k:] + Z[:, :k] @ X, Z[:, :k].T - X @ Z[:, k:].T
    return (_Part(T[:k, :k], left @ B, C @ Z[:, :k]), _Part(T[k:, k:], Z[:, k:].T @ B, C @ right))


def _balanced(part: _Part, period: float | None, *, exact: bool) -> _Candidates:
    """Return balanced truncations, by the square roots of both Gramians."""
    A, B, C = part
    P, Q = gramian(A, B, period), gramian(A.T, C.T, period)
    (reached, seen), size = (_root(P), _root(Q)), np.linalg.norm(P) * np.linalg.norm(Q)
    u, values, vh = np.linalg.svd(seen.T @ reached)
    noise = math.sqrt(np.finfo(float).eps * size)
    certain = int(np.sum(values > noise))
    # Truncation between equal values has no bound, and what is below rounding counts as that.
    ends = np.flatnonzero(values[1:certain] < (1.0 - _EQUAL) * values[: certain - 1]) + 1
    ends = np.unique([*ends, certain, len(A)])
    ends = ends[ends > 0]
    starts = np.append(0, ends)[:-1]
    costs = [2.0 * values[k] if k < certain else 2.0 * (len(A) - k) * noise for k in starts]

    def reduced(k: int) -> tuple[_Part, FloatArray]:
        r = int(starts[k])
        scale = np.sqrt(values[:r])
        right, left = reached @ vh[:r].T / scale, (seen @ u[:, :r] / scale).T
        if not exact:
            return _Part(left @ A @ right, left @ B, C @ right), np.zeros((len(C), B.shape[1]))
        # The truncation of G(1/s), for a sampled model of G(1 + 1/s).
        unit = np.eye(len(A)) * (period is not None)
        into, out = np.linalg.solve(A - unit, B), np.linalg.solve((A - unit).T, C.T).T
        back = np.linalg.inv(left @ np.linalg.solve(A - unit, right))
        shown = out @ right @ back
        part = _Part(back + unit[:r, :r], back @ left @ into, shown)
        return part, shown @ left @ into - out @ B

    return _Candidates(values, (ends - starts).tolist(), costs, reduced)


def _root(gramian: FloatArray) -> FloatArray:
    """Return L with L Lᵀ equal to a positive semidefinite matrix."""
    sizes, turn = np.linalg.eigh(0.5 * (gramian + gramian.T))
    return np.asarray(turn * np.sqrt(np.maximum(sizes, 0.0)))


def _modal(part: _Part, period: float | None, attempt: str, *, exact: bool) -> _Candidates:
    """Return modal truncations, of modes by their peak gains."""
    modes = []
    while len(part.A):
        poles = np.linalg.eigvals(part.A).astype(complex)
        mode, part = _separated(part, poles, _alike(poles, period), attempt)
        unit = np.eye(len(mode.A)) * (period is not None)
        static = mode.C @ np.linalg.solve(unit - mode.A, mode.B)
        peak = peak_gain(*mode, np.zeros_like(static), period)[0]
        cost = peak_gain(*mode, -static, period)[0] if exact else peak
        modes.append((peak, cost, mode, static))
    modes.sort(key=lambda each: -each[0])
    sizes = [len(mode.A) for _, _, mode, _ in modes]
    empty = part  # nothing is left of it

    def reduced(k: int) -> tuple[_Part, FloatArray]:
        direct = np.zeros((len(empty.C), empty.B.shape[1]))
        if exact:
            direct = sum((static for *_, static in modes[k:]), direct)
        return _side_by_side([empty, *(mode for _, _, mode, _ in modes[:k])]), direct

    peaks = np.array([each[0] for each in modes])
    return _Candidates(peaks, sizes, [each[1] for each in modes], reduced)


def _alike(poles: Poles, period: float | None) -> npt.NDArray[np.bool_]:
    """Return which poles cannot be told from the first one, its conjugate among them."""
    rates = poles if period is None else (poles - 1.0) / (poles + 1.0)
    rates = rates.real + 1j * np.abs(rates.imag)
    near = np.zeros(len(poles), dtype=bool)
    near[0], count = True, 0
    while count < near.sum():
        count = int(near.sum())
        away = np.abs(rates[:, np.newaxis] - rates[near])
        near |= (away <= _NEAR * np.abs(rates)[:, np.newaxis]).any(axis=1)
    return near
