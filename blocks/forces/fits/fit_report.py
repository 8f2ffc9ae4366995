"""The report of a fit: what it found, how well it is known, and how it looks beside the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from flexure.diagrams.checks.errors import UnknownNameError, suggestion
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, path_of
from flexure.diagrams.drawing.formats.new_figures import PlottedInPanels, new_figure
from flexure.diagrams.drawing.formats.style import COLORS, GREY, labelled, tidy
from flexure.diagrams.interface.html import Shown, heading, note
from flexure.diagrams.values.arrays import FloatArray, bounded
from flexure.diagrams.values.handles import require_context
from flexure.diagrams.values.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Labels:
    """The content of a figure of a fit."""

    title: str  # what is above
    over: str  # what signals are drawn over
    points: list[FloatArray]  # its values, for each record
    names: dict[str, list[str]]  # what the components of each signal are called


_ROWS = 60  # constants in a notebook
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, eq=False, repr=False)
class FitReport(Shown, PlottedInPanels):
    """Fitted constants, and their uncertainty.

    ``report["spring_constant"]`` is the number that was found for a constant.

    Its figure has measured and fitted signals, with the residuals below.

    Attributes
    ----------
    constants : dict of str to float
        All constants, fitted or not.
    fitted : tuple of str
        Names of those that were to be fitted.
    residuals : ndarray, shape (n,)
        Measured minus computed values.
    covariance : ndarray, shape (p, p)
        Estimated covariance of the fitted constants, ``(JᵀJ)⁻¹`` with the derivatives J of the
        computed values in standard deviations σ, which makes ``σ² (JᵀJ)⁻¹`` of a single signal. For
        a robust fit it is ``H⁻¹ Jᵀ diag(ψ²) J H⁻¹``, ψ being the residuals as weighted by the loss.
        Infinite for a constant that is not identified. It holds for independent errors of the
        measured values, and away from the bounds.
    condition : float
        Condition number of J with columns of norm 1, over the constants that have an effect. The
        greater it is, the more errors of the measured values are amplified.
    unidentified : tuple of str
        Constants that the data do not determine: those without effect, and those that have the
        same effect as a combination of others.
    without_effect : tuple of str
        Those of them that do nothing where it was measured; they keep the values they had at the
        start.
    at_bound : tuple of str
        Constants that the fit left at a bound.
    logarithmic : tuple of str
        What was fitted on a logarithmic scale; the intervals of these are symmetric there.
    cost : float
        The minimum of ``½ Σ ρ((residual/σ)²)``.
    deviations : dict of str to float
        Standard deviations σ of the measured signals, given or found, ``σ² = Σ residual²/(n - p)``.
    known_deviations : bool
        Whether they were given.
    units : dict of str to str
        Units of these signals, as far as they are known.
    measured, computed : list of dict
        For each record the signals, of shape (k, size).
    parameters : tuple of str
        Paths of what `apply` sets.

    See Also
    --------
    fit_constants : Make a fit.

    Examples
    --------
    >>> import flexure as fx
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 20)
    >>> line = lambda slope: slope * x
    >>> report = fx.fitting.fit_constants(line, 3.0 * x, start={"slope": 1.0})
    >>> round(report["slope"], 9), report.unidentified
    (3.0, ())
    """

    constants: dict[str, float]
    fitted: tuple[str, ...]
    residuals: FloatArray
    covariance: FloatArray
    condition: float
    unidentified: tuple[str, ...]
    without_effect: tuple[str, ...]
    at_bound: tuple[str, ...]
    logarithmic: tuple[str, ...]
    cost: float
    deviations: dict[str, float]
    known_deviations: bool
    units: dict[str, str]
    measured: list[dict[str, FloatArray]]
    computed: list[dict[str, FloatArray]]
    parameters: tuple[str, ...]

    def __getitem__(self, parameter: Way) -> float:
        path = path_of(parameter)
        if path not in self.constants:
            raise UnknownNameError(
                f"Cannot find '{path}' among the fitted constants",
                remedy=suggestion(path, self.constants),
            )
        return self.constants[path]

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.constants]

    @property
    def rms(self) -> float:
        """Root mean square of the residuals."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def standard_errors(self) -> dict[str, float]:
        """Estimated standard deviations of the fitted constants."""
        errors = np.sqrt(np.diag(self.covariance)).tolist()
        return self._named(dict(zip(self.fitted, errors, strict=True)))

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
        """Degrees of freedom, n - p; infinite when deviations were given."""
        return np.inf if self.known_deviations else float(self.residuals.size - len(self.fitted))

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
        attempt = "Cannot compute intervals of this confidence"
        share = bounded(confidence, attempt, lower=0.0, upper=1.0, exclusive=True)
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * share))
        intervals = {
            name: self._interval(name, quantile * error)
            for name, error in self.standard_errors.items()
        }
        return self._named(intervals)

    def _named(self, entries: dict[str, _Entry]) -> dict[str, _Entry]:
        """Return a table by constant that takes all names which these have."""
        return entries

    def _interval(self, name: str, half_width: float) -> tuple[float, float]:
        """Return the interval of a constant, given half of its width."""
        value = self.constants[name]
        if name not in self.logarithmic:
            return value - half_width, value + half_width
        with np.errstate(over="ignore"):
            factor = float(np.exp(half_width / value))
        return value / factor, value * factor

    def apply(self, context: Context) -> None:
        """Set the fitted constants in the context of a block that has them as parameters.

        Parameters
        ----------
        context : Context
            That of the block: ``report.apply(context["door.hinge"])``. When it refuses a value, it
            stays what it was.

        Raises
        ------
        UnknownNameError
            When the block has no such parameter.
        """
        values = [self.constants[name] for name in self.fitted]
        self._set(dict(zip(self.parameters, values, strict=True)), context)

    def _set(self, values: Mapping[str, Any], context: Context) -> None:
        """Set all values by path, or none."""
        require_context(context, "a fit")
        changed = context.root.clone()
        inside = changed.find(context.system)
        for path, value in values.items():
            inside.set(path, value)
        context.root.copy_from(changed)

    def _figure(self) -> Figure:
        labels = self._labels()
        panels = [
            (signal, component, name, unit)
            for signal, unit in self.units.items()
            for component, name in enumerate(labels.names[signal])
        ]
        figure = new_figure(figsize=(8.0, 0.8 + 3.0 * len(panels)), layout="constrained")
        ratios = [3.0, 1.0] * len(panels)
        axes = figure.subplots(
            len(ratios), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": ratios}
        )[:, 0]
        for row, (signal, component, name, unit) in enumerate(panels):
            above, below = axes[2 * row], axes[2 * row + 1]
            for number, points in enumerate(labels.points):
                if signal not in self.measured[number]:
                    continue
                color = COLORS[number % len(COLORS)]
                measured = self.measured[number][signal][:, component]
                computed = self.computed[number][signal][:, component]
                which = f", record {number}" if len(labels.points) > 1 else ""
                above.plot(
                    points,
                    measured,
                    ".",
                    color=color,
                    alpha=0.45,
                    markersize=4,
                    label="measured" + which,
                )
                above.plot(points, computed, color=color, linewidth=1.6, label="fitted" + which)
                below.plot(points, measured - computed, ".", color=color, markersize=3)
            deviation = self.deviations[signal]
            below.axhspan(-2.0 * deviation, 2.0 * deviation, color=GREY, alpha=0.12, linewidth=0)
            below.axhline(0.0, color=GREY, linewidth=0.9)
            above.set_ylabel(labelled(name, unit))
            below.set_ylabel(labelled("residual", unit))
            tidy(above)
            tidy(below)
            if row == 0:
                above.legend(frameon=False, loc="best")
        axes[-1].set_xlabel(labels.over)
        figure.suptitle(f"{labels.title}, residuals with ±2 σ")
        return figure

    def _labels(self) -> Labels:
        """Return what is written at figures, and what signals are drawn over."""
        counts = [len(next(iter(record.values()))) for record in self.measured]
        over = [np.arange(float(count)) for count in counts]
        return Labels("Measured and fitted", "sample", over, {name: [name] for name in self.units})

    def _pieces(self) -> Iterator[str]:
        yield heading(self._kind, remark=self._extent)
        columns = ("constant", "value", "± error", "95 % confidence")
        yield Table(columns, self._rows()).to_html(_ROWS)
        for text in (*map(self._line_of, self.deviations), self._last_line):
            yield note(text)

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={self.constants[name]:.6g}" for name in self.fitted)
        notes = [self._extent]
        notes += [f"not determined: {', '.join(self.unidentified)}"] * bool(self.unidentified)
        notes += [f"at a bound: {', '.join(self.at_bound)}"] * bool(self.at_bound)
        return f"<{self._kind}: {'; '.join([found, *notes])}>"

    @property
    def _kind(self) -> str:
        return "FitReport"

    @property
    def _extent(self) -> str:
        """Say in a few words what was measured."""
        return f"residuals of {self.rms:.3g} rms in {self.residuals.size} samples"

    def __str__(self) -> str:
        width = max(map(len, self.constants))
        lines = [f"{'':{width}}  {'value':>12}  {'± error':>9}  95 % confidence"]
        lines += [
            f"{name:{width}}  {value:12.6g}  {error:>9}  {told}"
            for name, value, error, told in self._rows()
        ]
        lines += [*map(self._line_of, self.deviations), self._last_line]
        return "\n".join(lines)

    def _rows(self) -> Iterator[tuple[str, float, str, str]]:
        """Go through the constants: the name, the value, its error, and what is known of it."""
        intervals = self.confidence_intervals(0.95)
        errors = self.standard_errors
        for name, value in self.constants.items():
            error = f"{errors[name]:.2g}" if np.isfinite(errors.get(name, np.inf)) else ""
            if name not in errors:
                told = "given"
            elif name in self.unidentified:
                told = "not determined"
            else:
                told = "{:.6g} to {:.6g}".format(*intervals[name])
            told += ", at a bound" * (name in self.at_bound)
            yield name, value, error, told

    @property
    def _last_line(self) -> str:
        return f"cost {self.cost:.4g}, condition number {self.condition:.3g}"

    def _line_of(self, signal: str) -> str:
        """Say how far a signal is from what was measured."""
        parts = [
            (one[signal] - other[signal]).ravel()
            for one, other in zip(self.measured, self.computed, strict=True)
            if signal in one
        ]
        errors = np.concatenate(parts)
        unit = self.units[signal]
        rms = f"{np.sqrt(np.mean(errors**2)):.3g}{f' {unit}' if unit else ''}"
        deviation = self.deviations[signal]
        told = f", standard deviation {deviation:.3g} given" if self.known_deviations else ""
        return f"{signal}: residuals of {rms} rms in {errors.size} samples{told}"
