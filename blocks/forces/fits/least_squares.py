"""Least squares: what all fits share, from the search to the judgment of what it found.

With measured values m, computed ones y(p) and standard deviations σ, a fit minimizes
``½ Σ ρ(((m - y(p))/σ)²)``, where ρ is the identity or, for a robust fit, grows more slowly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.fits.fit_report import FitReport
from flexure.diagrams.checks.arguments import is_whole, items_of, one_of, require
from flexure.diagrams.checks.errors import (
    EvaluationError,
    FlexureError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
    warn,
)
from flexure.diagrams.values.arrays import FloatArray, as_number, check_bounds

#: How the square z of a residual in standard deviations counts.
Loss = Literal["linear", "soft_l1", "huber", "cauchy", "arctan"]

_LOSSES: dict[Loss, tuple[Callable[[FloatArray], FloatArray], ...]] = {  # ρ and dρ/dz
    "linear": (np.positive, np.ones_like),
    "soft_l1": (lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0), lambda z: 1.0 / np.sqrt(1.0 + z)),
    "huber": (
        lambda z: np.where(z > 1.0, 2.0 * np.sqrt(z) - 1.0, z),
        lambda z: 1.0 / np.sqrt(np.maximum(z, 1.0)),
    ),
    "cauchy": (np.log1p, lambda z: 1.0 / (1.0 + z)),
    "arctan": (np.arctan, lambda z: 1.0 / (1.0 + z**2)),
}
_PRECISION = 1e-14  # least deviation that can be given, as a fraction of what a signal varies
_LEAST = 1e-9  # least one that is found
_TINY = float(np.finfo(float).tiny)
_ROUNDS = 5  # of fits with the deviations that the last one has left
_SETTLED = 0.01  # change of a deviation at which they end


@dataclass(frozen=True)
class Unknown:
    """A number that a fit looks for."""

    name: str  # what it is called in the report
    # start, lower, upper: where it starts, and its bounds.
    start: float
    lower: float = -math.inf
    upper: float = math.inf
    logarithmic: bool = False  # whether its logarithm is looked for

    @property
    def size(self) -> float:
        """The change of an unknown that counts as noticeable."""
        return 1.0 if self.logarithmic else abs(self.start) or 1.0

    @property
    def limits(self) -> tuple[float, float]:
        """Bounds for the search."""
        if not self.logarithmic:
            return self.lower, self.upper
        return math.log(self.lower) if self.lower > 0.0 else -math.inf, math.log(self.upper)

    def check(self, attempt: str, remedy: str | None = None) -> None:
        """Refuse a start that is not within the bounds, or has no logarithm."""
        here = f"{attempt} with '{self.name}'"
        if not self.lower <= self.start <= self.upper or self.lower == self.upper:
            raise ValueRefusedError(
                here,
                expected=f"a start within the bounds [{self.lower:g}, {self.upper:g}]",
                found=f"{self.start:g}",
                remedy=remedy,
            )
        if self.logarithmic and self.start <= 0.0:
            raise ValueRefusedError(
                f"{here} on a logarithmic scale",
                expected="a positive start",
                found=f"{self.start:g}",
                remedy=remedy,
            )


class LeastSquares(ABC):
    """A fit as a problem: its unknowns, the measured values, and the computed ones."""

    unknowns: Sequence[Unknown]
    attempt: str  # beginning of messages
    units: dict[str, str]  # of all measured signals
    measured: FloatArray  # measured values, end to end
    which: npt.NDArray[np.intp]  # of which signal each of them is
    tolerances: Mapping[str, Any]  # where the search ends, as for scipy.optimize.least_squares
    no_effect: float  # of the greatest measured value: a smaller change of all samples is none
    noise: float  # unknowns do the same when what tells them apart is below this fraction
    is_linear = False  # whether the derivatives are the same everywhere

    @abstractmethod
    def computed(self, values: FloatArray) -> FloatArray:
        """Return the values that should have been measured, of shape (n,)."""

    def derivatives(self, values: FloatArray) -> FloatArray | None:
        """Return their derivatives by the unknowns; None where differences have to do."""
        return None

    @abstractmethod
    def split(self, values: FloatArray) -> list[dict[str, FloatArray]]:
        """Return numbers that are end to end by record and signal, of shape (k, size)."""

    @property
    def start(self) -> FloatArray:
        """Where the search starts."""
        return np.array([unknown.start for unknown in self.unknowns])


class _Search:
    """A problem as SciPy sees it: over those unknowns that are free, or their logarithms."""

    def __init__(self, problem: LeastSquares, free: npt.NDArray[np.bool_]) -> None:
        self.problem = problem
        self._free = free
        self._chosen = [u for u, is_free in zip(problem.unknowns, free, strict=True) if is_free]
        self._logs = np.array([unknown.logarithmic for unknown in self._chosen], dtype=bool)
        kept = [unknown.start for unknown in problem.unknowns]
        self.start = np.where(free, problem.start, kept)

    def _to_search(self, values: FloatArray) -> FloatArray:
        chosen = values[self._free]
        return np.where(self._logs, np.log(np.where(self._logs, chosen, 1.0)), chosen)

    def values(self, theta: FloatArray) -> FloatArray:
        """Return all unknowns."""
        values = self.start.copy()
        with np.errstate(over="ignore"):
            values[self._free] = np.where(self._logs, np.exp(self._logs * theta), theta)
        return values

    def factors(self, values: FloatArray) -> FloatArray:
        """Return the derivatives of the free unknowns by what is searched."""
        return np.where(self._logs, values[self._free], 1.0)

    def run(
        self, values: FloatArray, sigma: FloatArray, loss: Loss, evaluations: int | None
    ) -> Any:
        """Run SciPy; signs are those of computed minus measured values."""
        from scipy.optimize import least_squares, lsq_linear

        problem = self.problem
        exact = problem.derivatives(values)
        lower, upper = np.transpose([unknown.limits for unknown in self._chosen])
        if problem.is_linear and loss == "linear" and not np.any(self._logs) and exact is not None:
            sigma = sigma / np.max(sigma)  # their sizes do not matter here, and may be tiny
            columns = exact[:, self._free] / sigma[:, np.newaxis]
            others = problem.computed(np.where(self._free, 0.0, values))
            wanted = (problem.measured - others) / sigma
            return lsq_linear(columns, wanted, (lower, upper), method="bvls", max_iter=1000)

        def errors(theta: FloatArray) -> FloatArray:
            try:
                found = problem.computed(self.values(theta))
            except FlexureError:  # such as a motion that does not get to the end
                found = np.full(problem.measured.shape, np.inf)
            return (found - problem.measured) / sigma

        def slopes(theta: FloatArray) -> FloatArray:
            tried = self.values(theta)
            found = problem.derivatives(tried)
            assert found is not None
            return found[:, self._free] * self.factors(tried) / sigma[:, np.newaxis]

        return least_squares(
            errors,
            np.clip(self._to_search(values), lower, upper),
            jac="3-point" if exact is None else slopes,
            bounds=(lower, upper),
            x_scale="jac" if exact is not None else [unknown.size for unknown in self._chosen],
            loss=loss,
            max_nfev=evaluations,
            **problem.tolerances,
        )

    def slopes(self, values: FloatArray) -> FloatArray:
        """Return the derivatives of the computed values by all unknowns."""
        exact = self.problem.derivatives(values)
        if exact is not None:
            return exact
        found = np.zeros((self.problem.measured.size, values.size))
        there = self.run(values, np.ones(self.problem.measured.size), "linear", 1)
        found[:, self._free] = there.jac / self.factors(values)
        return found


def effective(problem: LeastSquares, slopes: FloatArray | None = None) -> npt.NDArray[np.bool_]:
    """Return which unknowns, changed by their own size, change noticeably what was measured.

    With the derivatives where the search starts, or others.
    """
    start = problem.start
    if slopes is None:
        slopes = _Search(problem, np.ones(start.size, dtype=bool)).slopes(start)
    logs = [unknown.logarithmic for unknown in problem.unknowns]
    sizes = np.where(logs, start, [unknown.size for unknown in problem.unknowns])
    greatest = [
        np.max(np.abs(problem.measured[problem.which == k])) for k in range(len(problem.units))
    ]
    threshold = problem.no_effect * np.array(greatest)[problem.which]
    return np.asarray(np.any(np.abs(slopes) * sizes > threshold[:, np.newaxis], axis=0))


def estimate(
    problem: LeastSquares,
    constants: Mapping[str, float],
    free: npt.NDArray[np.bool_],
    *,
    deviations: FloatArray | None,
    loss: Loss,
    max_evaluations: int | None,
) -> FitReport:
    """Find the minimum and judge it.

    ``constants`` are all by name, those that are not looked for included. Unknowns that are not
    free have no effect, and keep where they start. Without standard deviations of the signals,
    these are found. The other arguments are those of `fit_constants`.
    """
    known, spread, which = deviations is not None, _spread(problem), problem.which
    if deviations is not None and np.any(deviations < _PRECISION * spread):
        told = zip(problem.units, deviations, strict=True)
        raise ValueRefusedError(
            f"{problem.attempt} with these deviations",
            expected=f"no less than {_PRECISION:g} of what the signals vary",
            found=quoted(f"{path}: {value:g}" for path, value in told),
        )
    search, result = _Search(problem, free), None
    values = search.start
    if np.any(free):
        values, sigma, result = _minimum(search, deviations, spread, loss, max_evaluations)
    else:
        sigma = _left(problem, values, spread, 0) if deviations is None else deviations
    slopes = search.slopes(values) if np.any(free) else np.zeros((which.size, values.size))
    computed = problem.computed(values)
    unit = np.max(sigma)  # of the errors, which may be tiny
    scaled = slopes / (sigma / unit)[which][:, np.newaxis]
    residuals = (problem.measured - computed) / sigma[which]
    rho, slope_of = _LOSSES[loss]
    curved = scaled
    if loss != "linear" and result is not None:  # SciPy's makes JᵀJ the Hessian
        curved = np.zeros_like(scaled)
        curved[:, free] = unit * result.jac / search.factors(values)
    seen = free & effective(problem, slopes)
    covariance, condition, identified = normal_inverse(curved, seen, problem.noise)
    inner = np.ix_(identified, identified)
    if loss != "linear":
        counted = scaled * (slope_of(residuals**2) * residuals)[:, np.newaxis]
        covariance[inner] @= (counted.T @ counted)[inner] @ covariance[inner]
    with np.errstate(over="ignore"):
        covariance[inner] *= unit**2
    names = [unknown.name for unknown in problem.unknowns]
    sides = np.zeros(values.size)
    if result is not None:
        sides[free] = result.active_mask
    return FitReport(
        constants={**constants, **dict(zip(names, values.tolist(), strict=True))},
        fitted=tuple(names),
        residuals=problem.measured - computed,
        covariance=covariance,
        condition=condition,
        unidentified=_picked(names, ~identified),
        without_effect=_picked(names, ~seen),
        at_bound=_picked(names, sides != 0.0),
        logarithmic=_picked(names, [unknown.logarithmic for unknown in problem.unknowns]),
        cost=0.5 * float(np.sum(rho(residuals**2))),
        deviations=dict(zip(problem.units, sigma.tolist(), strict=True)),
        known_deviations=known,
        units=dict(problem.units),
        measured=problem.split(problem.measured),
        computed=problem.split(computed),
        parameters=tuple(names),
    )


def _minimum(
    search: _Search,
    deviations: FloatArray | None,
    spread: FloatArray,
    loss: Loss,
    max_evaluations: int | None,
) -> tuple[FloatArray, FloatArray, Any]:
    """Return the unknowns, the deviations of the signals, and what SciPy says."""
    problem = search.problem
    values, sigma = search.start, spread if deviations is None else deviations
    for _ in range(_ROUNDS):
        result = search.run(values, sigma[problem.which], loss, max_evaluations)
        if not result.success:
            raise EvaluationError(
                problem.attempt,
                expected="least squares that converge",
                found=f"a cost of {result.cost:.3g} after {result.nfev} evaluations",
                remedy="Start closer to the solution, fit less, or raise max_evaluations",
            )
        values = search.values(result.x)
        if deviations is not None:
            break
        before, sigma = sigma, _left(problem, values, spread, result.x.size)
        if len(sigma) == 1 or np.all(np.abs(sigma / before - 1.0) < _SETTLED):
            break
    return values, sigma, result


def _picked(names: Iterable[str], mask: Iterable[Any]) -> tuple[str, ...]:
    return tuple(name for name, there in zip(names, mask, strict=True) if there)


def _spread(problem: LeastSquares) -> FloatArray:
    """Return how much each signal varies, or how large it is where it does not."""
    found = []
    for number in range(len(problem.units)):
        values = problem.measured[problem.which == number]
        found.append(float(np.std(values)) or float(np.max(np.abs(values))) or 1.0)
    return np.maximum(found, _TINY)


def _left(problem: LeastSquares, values: FloatArray, spread: FloatArray, count: int) -> FloatArray:
    """Return the standard deviations that the residuals of each signal have."""
    errors = problem.measured - problem.computed(values)
    share = 1.0 - count / errors.size
    squares = [np.mean(errors[problem.which == k] ** 2) for k in range(len(spread))]
    return np.maximum(np.sqrt(np.array(squares) / share), np.maximum(_LEAST * spread, _TINY))


def normal_inverse(
    derivatives: FloatArray, effective: npt.NDArray[np.bool_], noise: float
) -> tuple[FloatArray, float, npt.NDArray[np.bool_]]:
    """Return ``(JᵀJ)⁻¹``, the condition of J, and which constants the data determine.

    Judged by the singular values of J with columns of norm 1, where those below a share ``noise``
    of the greatest count as zero. On the diagonal, infinity marks unknowns that are not determined.
    """
    norms = np.linalg.norm(derivatives[:, effective], axis=0)
    _, singular, directions = np.linalg.svd(derivatives[:, effective] / norms, full_matrices=False)
    largest, smallest = np.max(singular, initial=0.0), np.min(singular, initial=1.0)
    hidden = singular <= noise * largest
    apart = np.all(np.abs(directions[hidden]) < 0.1, axis=0)
    inverse = (directions[~hidden].T / singular[~hidden] ** 2) @ directions[~hidden]
    identified = effective.copy()
    identified[effective] = apart
    found = np.diag(np.where(identified, 0.0, np.inf))
    found[np.ix_(identified, identified)] = (inverse / np.outer(norms, norms))[np.ix_(apart, apart)]
    condition = float(largest / smallest) if largest * smallest > 0.0 else np.inf
    return found, condition, identified


def warn_of(*reports: FitReport) -> None:
    """Warn the caller of fits of the constants that they could not determine."""
    silent = [name for report in reports for name in report.without_effect]
    texts = []
    if silent:
        texts.append(
            f"The data do not determine {quoted(silent)}: they have no effect on the measured "
            "points. Measure where each one has an effect, or omit them from the fit"
        )
    mixed = [
        quoted(name for name in report.unidentified if name not in report.without_effect)
        for report in reports
        if len(report.unidentified) > len(report.without_effect)
    ]
    if mixed:
        texts.append(
            f"The data cannot tell {' apart, nor '.join(mixed)} apart: other combinations of "
            "their values fit equally well. Fix one of them, or measure where their effects differ"
        )
    if texts:
        warn(". ".join(texts))


# Options that all fits have ----------------------------------------------------------------------


def check_options(
    deviations: FloatArray | None, loss: Any, max_evaluations: Any, attempt: str
) -> int | None:
    """Refuse what is no loss, a robust one without deviations, or no number of evaluations."""
    one_of(loss, get_args(Loss), "loss", attempt)
    fits = max_evaluations is None or (is_whole(max_evaluations) and max_evaluations >= 1)
    require(fits, max_evaluations, attempt, "max_evaluations to be an integer >= 1")
    if deviations is None and loss != "linear":
        raise ValueRefusedError(
            f"{attempt} with loss='{loss}'",
            expected="deviations, which define what an outlier is",
            found="none",
        )
    return None if max_evaluations is None else int(max_evaluations)


def given_deviations(
    signals: Iterable[str], deviations: Any, attempt: str, find: Callable[[Any], str] = str
) -> FloatArray | None:
    """Return the standard deviations of signals, if they are given: one for all, or by name."""
    if deviations is None:
        return None
    here, signals = f"{attempt} with these deviations", list(signals)
    if isinstance(deviations, Mapping):
        by_path = {find(way): value for way, value in deviations.items()}
        for path in by_path:
            if path not in signals:
                raise UnknownNameError(f"{here}, for '{path}'", remedy=suggestion(path, signals))
        missing = [path for path in signals if path not in by_path]
        if missing:
            raise ValueRefusedError(
                here, expected="one for every measured signal", found=f"none for {quoted(missing)}"
            )
    else:
        by_path = dict.fromkeys(signals, deviations)
    found = np.array([float(as_number(by_path[path], (), here)) for path in signals])
    check_bounds(found, here, lower=0.0, exclusive=True)
    return found


def bounds_of(
    given: Any, shape: tuple[int, ...], name: str, attempt: str
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper bounds that were given for components, flattened."""
    count = math.prod(shape)
    if given is None:
        return np.full(count, -np.inf), np.full(count, np.inf)
    here = f"{attempt} with bounds of '{name}'"
    low_high = items_of(given, "bounds as (lower, upper), or None", here)
    if len(low_high) != 2:
        raise ValueRefusedError(here, expected="two, (lower, upper)", found=repr(given)[:200])
    least, most = (
        np.broadcast_to(as_number(each, shape if np.ndim(each) else (), here), shape)
        .ravel()
        .astype(float)
        for each in low_high
    )
    if not np.all(least < most):
        raise ValueRefusedError(here, expected="lower bounds below upper ones", found=repr(given))
    return least, most


def require_enough(samples: int, count: int, attempt: str) -> None:
    """Refuse samples that are not more than what is looked for."""
    if samples <= count:
        raise ValueRefusedError(
            f"{attempt} by {count} numbers",
            expected=f"at least {count + 1} samples",
            found=str(samples),
        )
