"""Constants of laws, that is of functions that give what is measured, by least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.fits.fit_report import FitReport
from flexure.blocks.forces.fits.least_squares import (
    LeastSquares,
    Loss,
    Unknown,
    bounds_of,
    check_options,
    effective,
    estimate,
    given_deviations,
    require_enough,
    warn_of,
)
from flexure.diagrams.checks.arguments import items_of, mapping, require, shown
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted, suggestion
from flexure.diagrams.values.arrays import FloatArray, as_numbers, bounded, check_bounds

_ATTEMPT = "Cannot fit constants"
#: Bounds of constants by name, as they are declared or given.
Bounds = Mapping[str, Any]


class LawFit(LeastSquares):
    """A law, its constants, and one signal that was measured.

    The law takes all constants by name and should give the measured values.
    """

    tolerances: Mapping[str, Any] = {"ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12}
    no_effect = 1e-6
    noise = 1e-6

    def __init__(
        self,
        signal: str,
        unit: str,
        law: Callable[..., Any],
        measured: FloatArray,
        given: Mapping[str, float],
        unknowns: list[Unknown],
    ) -> None:
        names = [unknown.name for unknown in unknowns]
        require_enough(len(measured), len(names), _ATTEMPT)
        self.attempt = f"Cannot fit the constants {quoted(names)}"
        self.unknowns = unknowns
        self.units = {signal: unit}
        self.measured = measured
        self.which = np.zeros(len(measured), dtype=np.intp)
        self.given = given
        self._law = law
        samples_of(self._shown(self.start), "values of the law at the start", measured.shape)

    @property
    def start(self) -> FloatArray:
        """Where the search starts.

        At zero one constant may hide the effect of another, as a stiffness that of a rest angle.
        """
        return np.array([np.clip(u.start or 1.0, u.lower, u.upper) for u in self.unknowns])

    def _shown(self, values: FloatArray) -> Any:
        names = [unknown.name for unknown in self.unknowns]
        return self._law(**{**self.given, **dict(zip(names, values.tolist(), strict=True))})

    def computed(self, values: FloatArray) -> FloatArray:
        """Return what the law gives."""
        return np.asarray(self._shown(values), dtype=np.float64)

    def split(self, values: FloatArray) -> list[dict[str, FloatArray]]:
        """Return the one signal."""
        return [dict.fromkeys(self.units, values[:, np.newaxis])]


class LinearFit(LawFit):
    """A law that is a sum of columns, each times the given constant of its name."""

    no_effect = 0.0
    is_linear = True
    start = LeastSquares.start

    def __init__(
        self,
        signal: str,
        unit: str,
        columns: Mapping[str, FloatArray],
        measured: FloatArray,
        given: Mapping[str, float],
        unknowns: list[Unknown],
    ) -> None:
        def law(**constants: float) -> FloatArray:
            parts = [columns[name] * value for name, value in constants.items()]
            return np.asarray(sum(parts), dtype=np.float64)

        self._slopes = np.stack([columns[unknown.name] for unknown in unknowns], axis=1)
        super().__init__(signal, unit, law, measured, given, unknowns)

    def derivatives(self, values: FloatArray) -> FloatArray:
        """Return the columns."""
        return self._slopes


def fit_constants(
    law: Callable[..., Any],
    measured: npt.ArrayLike,
    start: Mapping[str, float],
    *,
    fitted: Iterable[str] | None = None,
    bounds: Mapping[str, tuple[float, float] | None] | None = None,
    logarithmic: Iterable[str] = (),
    deviations: float | Mapping[str, float] | None = None,
    loss: Loss = "linear",
    max_evaluations: int | None = None,
) -> FitReport:
    """Fit constants of a law to measured values by nonlinear least squares.

    Minimizes ``½ Σ ρ(((measured - law(**constants))/σ)²)``; ρ is the identity unless ``loss`` says
    otherwise.

    Parameters
    ----------
    law : callable
        Takes all constants as keyword arguments and returns the values that should have been
        measured, of shape (n,).
    measured : array_like, shape (n,)
        Measured values, more than there are constants to fit.
    start : mapping of str to float
        All constants of the law. Those to fit start there, and are assumed to be of that size; 1
        replaces 0.
    fitted : iterable of str, optional
        Names of the constants to fit; all when omitted.
    bounds : mapping of str to (float, float), optional
        Lower and upper bounds of constants.
    logarithmic : iterable of str, optional
        Constants whose logarithm is looked for; they stay positive.
    deviations : float or mapping, optional
        Standard deviation σ of the errors of the measured values, in their unit; as a mapping, by
        the name "measured". When omitted, it is found from the residuals.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}
        How residuals count, as in ``scipy.optimize.least_squares``. All but the first give those
        beyond one standard deviation less weight; they need ``deviations``.
    max_evaluations : int, optional
        How often the search may try other constants; 100 times for each when omitted.

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

    See Also
    --------
    fit : Fit parameters.

    Notes
    -----
    Uses ``scipy.optimize.least_squares`` with central differences. It finds the minimum next to the
    start; a law that is not linear in its constants may have others.

    Examples
    --------
    >>> from flexure.blocks.forces.between_points.spring_damper import SpringDamperLaw
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
    require(callable(law), law, _ATTEMPT, "a law that is called with the constants by name")
    given, unknowns = read_constants(start, fitted, bounds, logarithmic)
    values = samples_of(measured, "measured values")
    problem = LawFit("measured", "", law, values, given, unknowns)
    return fitted_law(problem, deviations, loss, max_evaluations)


def fitted_law(
    problem: LawFit, deviations: Any, loss: Loss, max_evaluations: int | None
) -> FitReport:
    """Fit those constants of a law that have an effect, and warn of the others."""
    sigma = given_deviations(problem.units, deviations, _ATTEMPT)
    evaluations = check_options(sigma, loss, max_evaluations, _ATTEMPT)
    free = effective(problem)
    if not np.any(free):
        raise ValueRefusedError(
            _ATTEMPT,
            expected="a law that depends on them where it was measured",
            found=f"no effect of {quoted(unknown.name for unknown in problem.unknowns)}",
        )
    report = estimate(
        problem, problem.given, free, deviations=sigma, loss=loss, max_evaluations=evaluations
    )
    warn_of(report)
    return report


def read_constants(
    start: Mapping[str, float],
    fitted: Iterable[str] | None,
    bounds: Bounds | None,
    logarithmic: Iterable[str],
    declared: Bounds | None = None,
) -> tuple[dict[str, float], list[Unknown]]:
    """Return all constants, and those to look for, within bounds that all of them keep."""
    start = mapping(start, "start to be a mapping from names to numbers", _ATTEMPT)
    limits = mapping(
        {} if bounds is None else bounds,
        "bounds to be a mapping from names to (lower, upper)",
        _ATTEMPT,
    )
    given = {
        name: bounded(value, f"{_ATTEMPT} with the start of '{name}'")
        for name, value in start.items()
    }
    names = known_names(given if fitted is None else fitted, given)
    known_names(limits, given)
    logs = known_names(logarithmic, given)
    for name in logs:
        if name not in names:
            raise UnknownNameError(
                f"{_ATTEMPT} with logarithmic='{name}'", remedy=suggestion(name, names)
            )
    unknowns = []
    for name, value in given.items():
        least, most = bounds_of((declared or {}).get(name), (), name, _ATTEMPT)
        lower, upper = bounds_of(limits.get(name), (), name, _ATTEMPT)
        both = float(np.maximum(least, lower)[0]), float(np.minimum(most, upper)[0])
        unknown = Unknown(name, value, *both, name in logs)
        unknown.check(_ATTEMPT)
        unknowns.append(unknown)
    by_name = {unknown.name: unknown for unknown in unknowns}
    if not names:
        raise ValueRefusedError(_ATTEMPT, expected="at least one", found="none")
    return given, [by_name[name] for name in names]


def samples_of(value: object, what: str, shape: tuple[int, ...] | None = None) -> FloatArray:
    """Return finite numbers, one for each sample, or of the shape that others have."""
    attempt = f"Cannot fit to the {what}"
    numbers = as_numbers(value, attempt)
    if numbers.shape != shape if shape else numbers.ndim != 1:
        expected = f"the shape {shape} of the others" if shape else "one number for each sample"
        raise ValueRefusedError(attempt, expected=expected, found=f"the shape {numbers.shape}")
    check_bounds(numbers, attempt)
    return numbers


def known_names(names: Iterable[str], given: Iterable[str]) -> list[str]:
    """Return names of constants without repetitions, or refuse those that do not exist."""
    listed = (names,) if isinstance(names, str) else names
    found = items_of(listed, "names of constants", _ATTEMPT)
    chosen = list(dict.fromkeys(name if isinstance(name, str) else shown(name) for name in found))
    for name in chosen:
        if name not in given:
            raise UnknownNameError(
                f"Cannot fit the constant '{name}'", remedy=suggestion(name, given)
            )
    return chosen
