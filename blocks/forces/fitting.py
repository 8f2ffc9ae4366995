"""Constants of force elements from measured forces, and how well the measurements determine them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.blocks.forces.door_hinge import DoorHingeConfig, HingeLaw
from flexure.blocks.forces.mounts import BushingConstants
from flexure.diagrams.errors import (
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
)
from flexure.diagrams.values import FloatArray, as_number, as_numbers, check_bounds

#: Displacements, rates, and the forces measured at them, each of shape (n, 3).
Samples: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]

# A constant is said to matter when a change by its own size moves the law by more than this
# fraction of the greatest measured value, and to stand apart from others when no combination of
# constants moves the law by less than this fraction of what they do one by one.
_NO_EFFECT = 1e-6


@dataclass(frozen=True, eq=False)
class FitReport:
    """What a fit found, and how much the measurements say about it.

    Attributes
    ----------
    constants : dict of str to float
        All constants of the law, fitted or not.
    fitted : tuple of str
        Names of those that were fitted.
    residuals : ndarray, shape (n,)
        Measured minus computed values.
    covariance : ndarray, shape (p, p)
        Estimated covariance of the fitted constants, ``s² (JᵀJ)⁻¹`` with the derivatives J of the
        law and s² = Σ residual²/(n - p); infinite where the data do not determine a constant. It
        holds for independent errors of the measured values, away from the bounds.
    condition : float
        Condition number of J with columns of norm 1, over the constants that matter at all. From
        10³ on, errors of the measured values are much amplified.
    unidentified : tuple of str
        Constants that the data do not determine: those without effect on the law where it was
        measured, which keep their initial values, and those that only matter in combination.
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
        """Estimated standard deviation of every fitted constant."""
        deviations = np.sqrt(np.diag(self.covariance)).tolist()
        return dict(zip(self.fitted, deviations, strict=True))

    def __str__(self) -> str:
        errors = self.standard_errors
        width = max(map(len, self.constants))
        lines = []
        for name, value in self.constants.items():
            notes = [f"± {errors[name]:.2g}" if name in errors else "(given)"]
            notes += ["at its bound"] * (name in self.at_bound)
            notes += ["not determined by the data"] * (name in self.unidentified)
            lines.append(f"{name:{width}}  {value:.6g} {', '.join(notes)}")
        lines.append(f"rms residual {self.rms:.3g}, condition {self.condition:.3g}")
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
        All constants of the law. Those to be fitted start there, and that is also taken for their
        typical size; 1 stands in for 0.
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
        When measured values are not finite or too few, when the law gives something else than
        finite values of the same shape, or when a constant starts outside of its bounds.
    UnknownNameError
        When a constant to be fitted or bounded is not among those of the law.
    EvaluationError
        When the fit does not converge.

    Warns
    -----
    UserWarning
        When the data do not determine a constant.

    Notes
    -----
    Uses `scipy.optimize.least_squares` with central differences. It finds the minimum near the
    start; a law that is not linear in its constants may have others.

    Examples
    --------
    >>> from flexure.blocks.forces.spring_damper_law import SpringDamperLaw
    >>> p = np.linspace([0.1, 0.0, 0.2], [0.3, 0.9, 0.2], 20)
    >>> v = np.linspace([1.0, 2.0, 0.0], [-1.0, 0.0, 3.0], 20)
    >>> tension = SpringDamperLaw(free_length=0.5, stiffness=40.0, damping=3.0).tension(p, v)
    >>> report = fit_constants(
    ...     lambda **constants: SpringDamperLaw(**constants).tension(p, v),
    ...     tension,
    ...     start={"free_length": 0.4, "stiffness": 10.0, "damping": 1.0},
    ... )
    >>> {name: round(value, 6) for name, value in report.constants.items()}
    {'free_length': 0.5, 'stiffness': 40.0, 'damping': 3.0}
    """
    from scipy.optimize import least_squares

    attempt = "Cannot fit constants"
    names = _chosen(start if fitted is None else fitted, start, attempt)
    given = {name: _number(value, f"{attempt}: {name}") for name, value in start.items()}
    lower, upper = _limits(names, given, bounds or {}, attempt)
    values = _column(measured, "the measured values", attempt)
    _require_enough(values.size, len(names), attempt)

    def residuals(x: FloatArray, names: tuple[str, ...]) -> FloatArray:
        return _computed(law, given | _named(names, x), values.shape, attempt) - values

    # At zero one constant may hide the effect of another, such as a stiffness that of a rest angle.
    first = np.array([given[name] or 1.0 for name in names])
    first = np.clip(first, lower, upper)
    ...
