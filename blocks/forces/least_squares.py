"""Fits of constants by least squares, and how well the data determine what they find."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.arguments import items_of, mapping, require, shown
from flexure.diagrams.errors import (
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
)
from flexure.diagrams.values import FloatArray, as_number, as_numbers, check_bounds

# What a constant does to the law is too little to be seen below this fraction of the greatest
# measured value, and constants do the same when what tells them apart is below this fraction.
_NO_EFFECT = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class FitReport:
    """What a fit found, and how much the measurements say about it.

    Attributes
    ----------
    constants : dict of str to float
        All constants of the law, fitted or not.
    fitted : tuple of str
        Names of those that were to be fitted.
    residuals : ndarray, shape (n,)
        Measured minus computed values.
    covariance : ndarray, shape (p, p)
        Estimated covariance of the fitted constants, ``s² (JᵀJ)⁻¹`` with the derivatives J of the
        law and s² = Σ residual²/(n - p); infinite for a constant that is not identified. It holds
        for independent errors of the measured values, and away from the bounds.
    condition : float
        Condition number of J with columns of norm 1, over the constants that have an effect. The
        greater it is, the more errors of the measured values are amplified.
    unidentified : tuple of str
        Constants that the data do not determine: those without effect on the law where it was
        measured, which keep the values they had at the start, and those that have the same effect
        as a combination of others.
    at_bound : tuple of str
        Constants that the fit left at a bound.
    """

    constants: dict[str, float]
    fitted: tuple[str, ...]
    residuals: FloatArray
    covariance: FloatArray
    condition: float
    unidentified: tuple[str, ...]
    at_bound: tuple[str, ...]

    @property
    def rms(self) -> float:
        """Root mean square of the residuals."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def standard_errors(self) -> dict[str, float]:
        """Estimated standard deviations of the fitted constants."""
        return dict(zip(self.fitted, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def correlation(self) -> FloatArray:
        """Correlation of the errors of the fitted constants, of shape (p, p).

        NaN in the rows and columns of constants that are not identified.
        """
        deviations = np.sqrt(np.diag(self.covariance))
        known = np.isfinite(deviations)
        found = np.full_like(self.covariance, np.nan)
        inner = np.ix_(known, known)
        with np.errstate(invalid="ignore"):
            found[inner] = self.covariance[inner] / np.outer(deviations[known], deviations[known])
        return found

    @property
    def degrees_of_freedom(self) -> float:
        """Samples beyond those that the constants take, n - p: how well s² is known."""
        return float(self.residuals.size - len(self.fitted))

    def confidence_intervals(self, confidence: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return the intervals that hold the true constants in a share of all experiments.

        Parameters
        ----------
        confidence : float
            The share, between 0 and 1.

        Returns
        -------
        dict of str to (float, float)
            Around the fitted constants, by quantiles of Student's distribution; infinite for
            those that are not identified.

        Raises
        ------
        ValueRefusedError
            When the share is not between 0 and 1.
        """
        attempt = "Cannot give intervals of this confidence"
        share = float(as_number(confidence, (), attempt))
        check_bounds(share, attempt, lower=0.0, upper=1.0, exclusive=True)
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * share))
        return {
            name: self._interval(name, quantile * error)
            for name, error in self.standard_errors.items()
        }

    def _interval(self, name: str, half_width: float) -> tuple[float, float]:
        """Return the interval of a constant, given half of its width."""
        return self.constants[name] - half_width, self.constants[name] + half_width

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={self.constants[name]:.6g}" for name in self.fitted)
        notes = [f"residuals of {self.rms:.3g} rms in {self.residuals.size} samples"]
        notes += [f"not determined: {', '.join(self.unidentified)}"] * bool(self.unidentified)
        notes += [f"at a bound: {', '.join(self.at_bound)}"] * bool(self.at_bound)
        return f"<FitReport: {'; '.join([found, *notes])}>"

    def __str__(self) -> str:
        errors = self.standard_errors
        width = max(map(len, self.constants))
        lines = []
        for name, value in self.constants.items():
            notes = [f"± {errors[name]:.2g}" if name in errors else "given"]
            notes += ["at a bound"] * (name in self.at_bound)
            notes += ["not determined"] * (name in self.unidentified)
            lines.append(f"{name:{width}}  {value:.6g} {', '.join(notes)}")
        lines.append(f"residuals of {self.rms:.3g} rms, condition number {self.condition:.3g}")
        return "\n".join(lines)


def fit_constants(
    law: Callable[..., Any],
    measured: npt.ArrayLike,
    start: Mapping[str, float],
    *,
    fitted: Iterable[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> FitReport:
    """Fit constants of a law to measured values by nonlinear least squares.

    Minimizes ``Σ (measured - law(**constants))²``.

    Parameters
    ----------
    law : callable
        Takes all constants as keyword arguments and returns the values that should have been
        measured, of shape (n,).
    measured : array_like, shape (n,)
        Measured values, more than there are constants to fit.
    start : mapping of str to float
        All constants of the law. Those to be fitted start there, and are taken to be of that size;
        1 stands in for 0.
    fitted : iterable of str, optional
        Names of the constants to fit; all when omitted.
    bounds : mapping of str to (float, float), optional
        Lower and upper bounds of constants.

    Returns
    -------
    FitReport

    Raises
    ------
    ValueRefusedError
        When values are not finite or too few, when the law does not return as many finite numbers,
        when none of the constants has an effect, or one does not start within its bounds.
    UnknownNameError
        When a constant to be fitted or bounded does not appear in ``start``.
    EvaluationError
        When the fit does not converge.

    Warns
    -----
    UserWarning
        When the data do not determine a constant.

    Notes
    -----
    Uses ``scipy.optimize.least_squares`` with central differences. It finds the minimum next to the
    start; a law that is not linear in its constants may have others.

    Examples
    --------
    >>> from flexure.blocks.forces.spring_damper_law import SpringDamperLaw
    >>> length, rate = np.linspace(0.2, 0.9, 20), np.cos(np.arange(20.0))
    >>> made = SpringDamperLaw(free_length=0.5, stiffness=40.0, damping=3.0)
    >>> tension = made.tension(length, rate)
    >>> report = fit_constants(
    ...     lambda **constants: SpringDamperLaw(**constants).tension(length, rate),
    ...     tension,
    ...     start={"free_length": 0.4, "stiffness": 10.0, "damping": 1.0},
    ... )
    >>> {name: round(value, 6) for name, value in report.constants.items()}
    {'free_length': 0.5, 'stiffness': 40.0, 'damping': 3.0}
    """
    report = fit_nonlinear(law, measured, start, fitted, {} if bounds is None else bounds)
    warn_of(report.unidentified)
    return report


def fit_nonlinear(
    law: Callable[..., Any],
    measured: npt.ArrayLike,
    start: Mapping[str, float],
    fitted: Iterable[str] | None,
    bounds: Mapping[str, tuple[float, float]],
) -> FitReport:
    """Fit by nonlinear least squares those constants that have an effect on the law."""
    attempt = "Cannot fit constants"
    require(callable(law), law, attempt, "a law that is called with the constants by name")
    start = mapping(start, "start to be a mapping from names to numbers", attempt)
    bounds = mapping(bounds, "bounds to be a mapping from names to (lower, upper)", attempt)
    given = {name: _number(value, f"the start of '{name}'") for name, value in start.items()}
    names = _known(given if fitted is None else fitted, given)
    limits = _limits(names, given, bounds)
    values = samples_of(measured, "measured values")
    require_enough(values, len(names))

    probe = _minimize(law, given, names, limits, values, evaluations=1)
    free = _effective(probe.jac, given, names, values)
    chosen = [name for name, has_effect in zip(names, free, strict=True) if has_effect]
    if not chosen:
        raise ValueRefusedError(
            "Cannot fit constants",
            expected="a law that depends on them where it was measured",
            found=f"no effect of {quoted(names)}",
        )
    result = _minimize(law, given, chosen, limits, values)
    if not result.success:
        raise EvaluationError(
            f"Cannot fit the constants {quoted(chosen)}",
            expected="least squares that converge",
            found=f"a sum of squares of {2.0 * result.cost:.3g} after {result.nfev} evaluations",
            remedy="Start closer to the solution, or fit fewer constants",
        )
    derivatives = np.zeros((values.size, len(names)))
    derivatives[:, free] = result.jac
    return _report(
        given | dict(zip(chosen, result.x.tolist(), strict=True)),
        names,
        residuals=-result.fun,
        derivatives=derivatives,
        effective=_effective(derivatives, given, names, values),
        at_bound=[name for name, side in zip(chosen, result.active_mask, strict=True) if side],
    )


def _minimize(
    law: Callable[..., Any],
    given: Mapping[str, float],
    chosen: list[str],
    limits: Mapping[str, tuple[float, float]],
    values: FloatArray,
    evaluations: int | None = None,
) -> Any:
    """Run SciPy on the chosen constants; with one evaluation it only finds J at the start."""
    from scipy.optimize import least_squares

    # At zero one constant may hide the effect of another, as a stiffness that of a rest angle.
    first = [float(np.clip(given[name] or 1.0, *limits[name])) for name in chosen]
    lower, upper = np.transpose([limits[name] for name in chosen])

    def computed(x: Iterable[float]) -> Any:
        return law(**{**given, **dict(zip(chosen, map(float, x), strict=True))})

    def errors(x: FloatArray) -> FloatArray:
        return np.asarray(computed(x) - values, dtype=np.float64)

    samples_of(computed(first), "values of the law at the start", values.shape)
    return least_squares(
        errors,
        first,
        jac="3-point",
        bounds=(lower, upper),
        x_scale=[_size(given[name]) for name in chosen],
        ftol=1e-12,
        xtol=1e-12,
        gtol=1e-12,
        max_nfev=evaluations,
    )


def _effective(
    derivatives: FloatArray, given: Mapping[str, float], names: list[str], values: FloatArray
) -> npt.NDArray[np.bool_]:
    """Tell which constants, changed by their own size, move the law noticeably."""
    effects = np.max(np.abs(derivatives), axis=0) * [_size(given[name]) for name in names]
    return np.asarray(effects > _NO_EFFECT * np.max(np.abs(values)))


def fit_linear(start: dict[str, float], derivatives: FloatArray, values: FloatArray) -> FitReport:
    """Fit constants that are not negative and that the values are linear in."""
    from scipy.optimize import lsq_linear

    effective = np.any(derivatives != 0.0, axis=0)
    result = lsq_linear(derivatives, values, bounds=(0.0, np.inf), method="bvls")
    solution = np.where(effective, result.x, list(start.values()))
    at_bound = effective & (solution == 0.0)
    return _report(
        dict(zip(start, solution.tolist(), strict=True)),
        list(start),
        residuals=values - derivatives @ solution,
        derivatives=derivatives,
        effective=effective,
        at_bound=[name for name, there in zip(start, at_bound, strict=True) if there],
    )


def _report(
    constants: dict[str, float],
    fitted: list[str],
    *,
    residuals: FloatArray,
    derivatives: FloatArray,
    effective: npt.NDArray[np.bool_],
    at_bound: list[str],
) -> FitReport:
    """Judge a fit by the singular values of its derivatives, scaled to columns of norm 1."""
    inverse, condition, identified = normal_inverse(derivatives, effective)
    used = int(np.count_nonzero(effective))
    with np.errstate(invalid="ignore"):
        covariance = np.sum(residuals**2) / (residuals.size - used) * inverse
    covariance[~np.isfinite(inverse)] = np.inf
    return FitReport(
        constants=constants,
        fitted=tuple(fitted),
        residuals=residuals,
        covariance=covariance,
        condition=condition,
        unidentified=tuple(name for name, fine in zip(fitted, identified, strict=True) if not fine),
        at_bound=tuple(at_bound),
    )


def normal_inverse(
    derivatives: FloatArray, effective: npt.NDArray[np.bool_], noise: float = _NO_EFFECT
) -> tuple[FloatArray, float, npt.NDArray[np.bool_]]:
    """Return ``(JᵀJ)⁻¹``, the condition of J, and which constants the data determine.

    Judged by the singular values of J with columns of norm 1, where those below a share ``noise``
    of the greatest count as zero. On the diagonal, infinity stands for what is not determined.
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


def warn_of(unidentified: Iterable[str]) -> None:
    """Warn the caller of a fit of the constants that it could not determine."""
    names = list(unidentified)
    if names:
        warnings.warn(
            f"The data do not determine {quoted(names)}: where it was measured, the law does not "
            "depend on them, or only on a combination of them. Measure where each one matters, or "
            "leave them out of the fit",
            stacklevel=3,
        )


def _size(value: float) -> float:
    """Return the typical size of a constant."""
    return abs(value) or 1.0


def _number(value: object, what: str) -> float:
    """Return a finite number."""
    attempt = f"Cannot fit constants with {what}"
    number = as_number(value, (), attempt)
    check_bounds(number, attempt)
    return float(number)


def samples_of(value: object, what: str, shape: tuple[int, ...] | None = None) -> FloatArray:
    """Return finite numbers, one for each sample, or of the shape that others have."""
    attempt = f"Cannot fit to the {what}"
    numbers = as_numbers(value, attempt)
    if numbers.shape != shape if shape else numbers.ndim != 1:
        expected = f"the shape {shape} of the others" if shape else "one number for each sample"
        raise ValueRefusedError(attempt, expected=expected, found=f"the shape {numbers.shape}")
    check_bounds(numbers, attempt)
    return numbers


def require_enough(values: FloatArray, constants: int) -> None:
    """Refuse samples that are not more than the constants to fit."""
    if len(values) <= constants:
        raise ValueRefusedError(
            f"Cannot fit {constants} constants",
            expected=f"at least {constants + 1} samples",
            found=str(len(values)),
        )


def _known(names: Iterable[str], given: Mapping[str, float]) -> list[str]:
    """Return names of constants without repetitions, or refuse those that do not exist."""
    listed = (names,) if isinstance(names, str) else names
    found = items_of(listed, "names of constants", "Cannot fit constants")
    chosen = list(dict.fromkeys(name if isinstance(name, str) else shown(name) for name in found))
    for name in chosen:
        if name not in given:
            raise UnknownNameError(
                f"Cannot fit the constant '{name}'", remedy=suggestion(name, given)
            )
    if not chosen:
        raise ValueRefusedError("Cannot fit constants", expected="at least one", found="none")
    return chosen


def _limits(
    names: Iterable[str], given: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Return the bounds of the constants to fit; every constant must keep its own."""
    for name, limits in bounds.items():
        _known([name], given)
        lower, upper = as_number(limits, (2,), f"Cannot fit constants with bounds of '{name}'")
        if not lower <= given[name] <= upper or lower == upper:
            raise ValueRefusedError(
                f"Cannot fit constants with '{name}'",
                expected=f"a value within its bounds [{lower:g}, {upper:g}]",
                found=f"{given[name]:g}",
            )
    return {name: bounds.get(name, (-np.inf, np.inf)) for name in names}
