"""Fits: parameters, initial states and offsets of a system from measured time series.

With measured values m, the computed ones y(p) and standard deviations σ of the signals, a fit
minimizes ``½ Σ ρ(((m - y(p))/σ)²)``, where ρ is the identity or, for a robust fit, grows more
slowly. The derivatives ∂y/∂p are exact: they are integrated together with the motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from flexure.blocks.forces.least_squares import FitReport, normal_inverse
from flexure.diagrams.answers import Answer
from flexure.diagrams.arguments import items_of, one_of, require
from flexure.diagrams.context import Context
from flexure.diagrams.errors import (
    EvaluationError,
    UnknownNameError,
    ValueRefusedError,
    quoted,
    suggestion,
    warn,
)
from flexure.diagrams.handles import require_root, start_context
from flexure.diagrams.places import Way, find_place, path_of
from flexure.diagrams.system import System, require_system
from flexure.diagrams.values import FloatArray, as_number, check_bounds
from flexure.solvers.design.fit_problem import FitProblem
from flexure.solvers.design.records import Record, read_records
from flexure.solvers.simulation.method_selection import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: How the square z of a residual in standard deviations counts.
Loss = Literal["linear", "soft_l1", "huber", "cauchy", "arctan"]

_SLOPES: dict[Loss, Callable[[FloatArray], FloatArray]] = {  # dρ/dz
    "linear": np.ones_like,
    "soft_l1": lambda z: 1.0 / np.sqrt(1.0 + z),
    "huber": lambda z: 1.0 / np.sqrt(np.maximum(z, 1.0)),
    "cauchy": lambda z: 1.0 / (1.0 + z),
    "arctan": lambda z: 1.0 / (1.0 + z**2),
}
# The derivatives are known up to the tolerance of the integration: parameters do the same when
# what tells them apart is below this fraction, and nothing below that of the measured values.
_NOISE = 1e-5
_NO_INFLUENCE = 1e-9
_PRECISION = 1e-14  # least deviation of a signal, as a fraction of what it varies
_ROUNDS = 5  # of fits with the deviations that the last one has left
_SETTLED = 0.01  # change of a deviation at which they end


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Answer, FitReport):
    """What a fit of a system to records found, and how much the measurements say about it.

    ``fit["spring.stiffness"]`` is a fitted number. What it shares with the fits of laws is in
    `flexure.fitting.FitReport`.

    Attributes
    ----------
    constants : dict of str to float
        All that was fitted, by path. What each record has of its own, an initial state or the
        offset of a signal, says so: "plant.x[angle] of record 1", "offset of plant.angle".
    fitted : tuple of str
        Their names.
    residuals : ndarray, shape (n,)
        Measured minus computed values in standard deviations, end to end by record, time and
        component.
    covariance : ndarray, shape (p, p)
        Estimated covariance of what was fitted, ``(JᵀJ)⁻¹`` with the derivatives J of the
        residuals; of a robust fit ``H⁻¹ Jᵀ diag(ψ²) J H⁻¹``, ψ being the residuals as they count.
    condition, unidentified, at_bound
        As for `flexure.fitting.FitReport`.
    system : System
        What was fitted.
    cost : float
        The minimum.
    deviations : dict of str to float
        Standard deviations of the signals, given or found, by path.
    known_deviations : bool
        Whether they were given.
    times : list of ndarray
        Times of the records in seconds.
    measured, computed : list of dict
        For each record the signals by path, of shape (k, size); computed ones with offsets.
    contexts : list of Context
        For each record where its motion begins, with all that was fitted.
    logarithmic : tuple of str
        What was fitted on a logarithmic scale; the intervals of these are symmetric there.
    parameters : tuple of str
        Paths of what `apply` sets.
    """

    system: System
    cost: float
    deviations: dict[str, float]
    known_deviations: bool
    times: list[FloatArray]
    measured: list[dict[str, FloatArray]]
    computed: list[dict[str, FloatArray]]
    contexts: list[Context]
    logarithmic: tuple[str, ...]
    parameters: tuple[str, ...]

    def __getitem__(self, parameter: Way) -> float:
        path = path_of(parameter)
        if path not in self.constants:
            with suppress(UnknownNameError):  # a parameter can have several names
                path = find_place(self.system, path).path
        if path not in self.constants:
            raise UnknownNameError(
                f"Cannot find '{path}' among what was fitted",
                remedy=suggestion(path, self.constants),
            )
        return self.constants[path]

    @property
    def degrees_of_freedom(self) -> float:
        """Samples beyond those that the fit takes, n - p; infinite when deviations were given."""
        return np.inf if self.known_deviations else super().degrees_of_freedom

    def _interval(self, name: str, half_width: float) -> tuple[float, float]:
        value = self.constants[name]
        if name not in self.logarithmic:
            return value - half_width, value + half_width
        with np.errstate(over="ignore"):
            factor = float(np.exp(half_width / value))
        return value / factor, value * factor

    def apply(self, context: Context, record: int = 0) -> None:
        """Set the fitted parameters and the initial states of a record in a context.

        Parameters
        ----------
        context : Context
            A root context of the system. A value that it refuses leaves it as it was.
        record : int, optional
            Which record's initial states, if they were fitted.

        Raises
        ------
        ContextError
            When the context is one of another system.
        ValueRefusedError
            When there is no such record.
        """
        attempt = "Cannot apply a fit"
        require_root(context, self.system, attempt)
        count = len(self.contexts)
        fits = _is_whole(record) and 0 <= record < count
        require(fits, record, attempt, f"the number of a record, 0 to {count - 1}")
        changed = context.clone()
        for path in self.parameters:
            changed.set(path, self.contexts[record].get(path))
        context.copy_from(changed)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Plot measured and fitted signals over time, with the residuals below.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from flexure.solvers.design.fit_figures import plot_fit

        return plot_fit(self, path)

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={value:.6g}" for name, value in self.constants.items())
        records = len(self.times)
        notes = [f"{self.residuals.size} samples in {records} record{'s' * (records > 1)}"]
        notes += [f"not determined: {', '.join(self.unidentified)}"] * bool(self.unidentified)
        notes += [f"at a bound: {', '.join(self.at_bound)}"] * bool(self.at_bound)
        return f"<Fit of '{self.system.label}': {'; '.join([found, *notes])}>"

    def __str__(self) -> str:
        intervals = self.confidence_intervals(0.95)
        errors = self.standard_errors
        width = max(map(len, self.constants))
        lines = [f"{'':{width}}  {'value':>12}  {'± error':>9}  95 % confidence"]
        for name, value in self.constants.items():
            low, high = intervals[name]
            notes = ["at a bound"] * (name in self.at_bound)
            if name in self.unidentified:
                notes.append("not determined")
            else:
                notes.insert(0, f"{low:.6g} to {high:.6g}")
            error = f"{errors[name]:.2g}" if np.isfinite(errors[name]) else ""
            lines.append(f"{name:{width}}  {value:12.6g}  {error:>9}  {', '.join(notes)}")
        lines += [self._line_of(path, deviation) for path, deviation in self.deviations.items()]
        lines.append(f"cost {self.cost:.4g}, condition number {self.condition:.3g}")
        return "\n".join(lines)

    def _line_of(self, path: str, deviation: float) -> str:
        """Say how far a signal is from what was measured."""
        parts = [
            (one[path] - other[path]).ravel()
            for one, other in zip(self.measured, self.computed, strict=True)
            if path in one
        ]
        errors = np.concatenate(parts)
        unit = find_place(self.system, path).handle.unit
        rms = f"{np.sqrt(np.mean(errors**2)):.3g}{f' {unit}' if unit else ''}"
        told = f", standard deviation {deviation:.3g} given" if self.known_deviations else ""
        return f"{path}: residuals of {rms} rms in {errors.size} samples{told}"


def fit(
    system: System,
    records: Any,
    parameters: Way | Iterable[Way] | Mapping[Any, Any],
    context: Context | Iterable[Context] | None = None,
    *,
    signals: Way | Iterable[Way] | None = None,
    offsets: Way | Iterable[Way] = (),
    logarithmic: Way | Iterable[Way] = (),
    deviations: float | Mapping[Any, float] | None = None,
    loss: Loss = "linear",
    method: Method = "auto",
    rtol: float = 1e-8,
    atol: float | None = None,
    max_evaluations: int = 100,
) -> Fit:
    """Fit parameters, initial states and offsets of a block or diagram to measured time series.

    Parameters
    ----------
    system : System
        A block or diagram without events that change states, other than at the beginning.
    records : mapping, DataFrame, str, Path, or iterable of them
        One record or several: a mapping of paths to values with the times in s as "time", a pandas
        DataFrame with a column "time" or the times as its index, or the name of a CSV file. Columns
        are ports or components of them. Those of free input ports drive them, on straight lines
        between the samples; the others are compared with what the system gives.
    parameters : Handle, str, iterable of them, or mapping
        What is looked for: parameters and fixed input ports, common to all records, and initial
        states such as ``"plant.x[angle]"``, of which each record has its own. A mapping gives
        bounds, ``{"spring.stiffness": (1.0, 50.0), "spring.damping": None}``; those of
        declarations hold in any case.
    context : Context or iterable of Context, optional
        Where the motion of the records begins, and the search: one for all, or one for each.
        Contexts are not changed; what is common starts at its value in the first one. A default
        context when omitted.
    signals : Handle, str or iterable of them, optional
        Which columns of the records are used, measured inputs included; all when omitted.
    offsets : Handle, str or iterable of them, optional
        Measured signals with an unknown error that is constant in each record.
    logarithmic : Handle, str or iterable of them, optional
        Parameters whose logarithm is looked for; they stay positive.
    deviations : float or mapping, optional
        Standard deviations of the errors of the measured signals in their units, by path. When
        omitted, they are found from the residuals.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}
        How residuals count, as in ``scipy.optimize.least_squares``. All but the first give those
        beyond one standard deviation less weight; they need ``deviations``.
    method, rtol, atol
        As for `sensitivity`.
    max_evaluations : int, optional
        Most motions of all records that the search may try.

    Returns
    -------
    Fit

    Raises
    ------
    ValueRefusedError
        When records have gaps, times that do not ascend, or other sizes or units, when something
        does not start within its bounds, or has no influence on what was measured.
    UnknownNameError
        When something is not there, or appears twice.
    EvaluationError
        When an event changes a state, or the search does not converge.
    SimulationError
        When the motion at the start of the search does not get to the end of a record.

    Warns
    -----
    UserWarning
        When the data cannot tell parameters apart.

    Notes
    -----
    The search finds the minimum next to the start, and of a swinging system there are others: a
    start whose frequency is off so far that it is behind by half a period at the end of the record
    leads nowhere. Cut records short, or fit the first part first.

    Errors of measurement count as independent from sample to sample. Where they are not, as with
    filtered signals, true errors are greater than those that are stated.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> time = np.linspace(0.0, 5.0, 26)
    >>> record = {"time": time, "u": np.ones(26), "y": 3.0 * (1.0 - np.exp(-time / 2.0))}
    >>> found = fx.fit(lag, record, ["time_constant", "gain"])
    >>> round(found["time_constant"], 5), round(found["gain"], 5)
    (2.0, 3.0)
    """
    require_system(system, "Cannot fit")
    attempt = f"Cannot fit '{system.label}'"
    one_of(loss, get_args(Loss), "loss", attempt)
    fits = _is_whole(max_evaluations) and max_evaluations >= 1
    require(fits, max_evaluations, attempt, "max_evaluations to be an integer >= 1")
    read = read_records(system, records, signals, attempt)
    begins = _contexts(system, context, len(read), attempt)
    options = (method, rtol, 1e-3 * rtol if atol is None else atol)
    problem = FitProblem(begins, read, parameters, offsets, logarithmic, options, attempt)
    count = len(problem.unknowns)
    if problem.measured.size <= count:
        raise ValueRefusedError(
            f"{attempt} by {count} numbers",
            expected=f"at least {count + 1} samples",
            found=str(problem.measured.size),
        )
    given = _given_deviations(system, problem.signals, deviations, attempt)
    if given is None and loss != "linear":
        raise ValueRefusedError(
            f"{attempt} with loss='{loss}'",
            expected="deviations, which tell what is an outlier",
            found="none",
        )
    spread = _spread(problem)
    if given is not None and np.any(given < _PRECISION * spread):
        raise ValueRefusedError(
            f"{attempt} with these deviations",
            expected=f"no less than {_PRECISION:g} of what the signals vary",
            found=quoted(f"{path}: {s:g}" for path, s in zip(problem.signals, given, strict=True)),
        )
    sigma = spread if given is None else given
    _refuse_without_influence(problem, spread, attempt)
    theta, result = problem.start, None
    for _ in range(_ROUNDS):
        result = _search(problem, theta, sigma[problem.which], loss, int(max_evaluations), attempt)
        theta = result.x
        if given is not None:
            break
        before, sigma = sigma, _left(problem, theta, spread)
        if len(sigma) == 1 or np.all(np.abs(sigma / before - 1.0) < _SETTLED):
            break
    return _answer(system, problem, read, theta, sigma, given is not None, loss, result)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _contexts(system: System, context: Any, count: int, attempt: str) -> list[Context]:
    """Return where each record begins."""
    if context is None or isinstance(context, Context):
        return [start_context(system, context, attempt) for _ in range(count)]
    found = items_of(context, "a context, or one for each record", attempt, kind=Context)
    if len(found) != count:
        raise ValueRefusedError(
            attempt, expected=f"{count} contexts, one for each record", found=str(len(found))
        )
    return [start_context(system, each, attempt) for each in found]


def _given_deviations(
    system: System, signals: list[str], deviations: Any, attempt: str
) -> FloatArray | None:
    """Return the standard deviations of the signals, if they are given."""
    if deviations is None:
        return None
    here = f"{attempt} with these deviations"
    if isinstance(deviations, Mapping):
        by_path = {find_place(system, way).path: value for way, value in deviations.items()}
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


def _spread(problem: FitProblem) -> FloatArray:
    """Return how much each signal varies, or how large it is where it does not."""
    found = []
    for number in range(len(problem.signals)):
        values = problem.measured[problem.which == number]
        found.append(float(np.std(values)) or float(np.max(np.abs(values))) or 1.0)
    return np.array(found)


def _left(problem: FitProblem, theta: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the standard deviations that the residuals of each signal have."""
    errors = problem.measured - problem.computed(theta)[0]
    share = 1.0 - len(problem.unknowns) / errors.size
    squares = [np.mean(errors[problem.which == k] ** 2) for k in range(len(spread))]
    return np.maximum(np.sqrt(np.array(squares) / share), 1e-9 * spread)


def _refuse_without_influence(problem: FitProblem, spread: FloatArray, attempt: str) -> None:
    """Refuse what does not change anything that was measured, at the start of the search."""
    slopes = problem.computed(problem.start)[1] / spread[problem.which][:, np.newaxis]
    sizes = [1.0 if u.logarithmic else abs(u.start) or 1.0 for u in problem.unknowns]
    effects = np.max(np.abs(slopes), axis=0) * sizes
    names = [u.name for u, e in zip(problem.unknowns, effects, strict=True) if e < _NO_INFLUENCE]
    if names:
        raise ValueRefusedError(
            attempt,
            expected="parameters that change what was measured",
            found=f"no influence of {quoted(names)} where the search starts",
            remedy="Leave them out, start elsewhere, or measure what they change",
        )


def _search(
    problem: FitProblem,
    start: FloatArray,
    sigma: FloatArray,
    loss: Loss,
    evaluations: int,
    attempt: str,
) -> Any:
    """Run SciPy; signs are those of computed minus measured values."""
    from scipy.optimize import least_squares

    def errors(theta: FloatArray) -> FloatArray:
        found: FloatArray = (problem.tries(theta) - problem.measured) / sigma
        return found

    def slopes(theta: FloatArray) -> FloatArray:
        return problem.computed(theta)[1] / sigma[:, np.newaxis]

    lower, upper = np.transpose([unknown.bounds() for unknown in problem.unknowns])
    result = least_squares(
        errors,
        start,
        jac=slopes,
        bounds=(lower, upper),
        x_scale="jac",
        loss=loss,
        ftol=1e-10,
        xtol=1e-9,
        gtol=1e-10,
        max_nfev=evaluations,
    )
    if not result.success:
        raise EvaluationError(
            attempt,
            expected="least squares that converge",
            found=f"a cost of {result.cost:.3g} after {result.nfev} evaluations",
            remedy="Start closer to the solution, fit less, or raise max_evaluations",
        )
    return result


def _answer(
    system: System,
    problem: FitProblem,
    records: list[Record],
    theta: FloatArray,
    sigma: FloatArray,
    known: bool,
    loss: Loss,
    result: Any,
) -> Fit:
    """Judge what was found."""
    values = problem.values(theta)
    computed, slopes = problem.computed(theta)
    weights = 1.0 / sigma[problem.which]
    residuals = weights * (problem.measured - computed)
    logs = np.array([unknown.logarithmic for unknown in problem.unknowns])
    # Derivatives by the numbers themselves, also where their logarithms were looked for.
    factors = np.where(logs, 1.0 / np.where(logs, values, 1.0), 1.0)
    plain = weights[:, np.newaxis] * slopes * factors
    curved = result.jac * factors if loss != "linear" else plain
    effective = np.any(plain != 0.0, axis=0)
    covariance, condition, identified = normal_inverse(curved, effective, _NOISE)
    if loss != "linear":
        inner = np.ix_(identified, identified)
        counted = plain * (_SLOPES[loss](residuals**2) * residuals)[:, np.newaxis]
        covariance[inner] @= (counted.T @ counted)[inner] @ covariance[inner]
    names = tuple(unknown.name for unknown in problem.unknowns)
    unidentified = tuple(n for n, fine in zip(names, identified, strict=True) if not fine)
    if unidentified:
        warn(
            f"The data cannot tell {quoted(unidentified)} apart: other values of all of them "
            "together would fit as well. Fix one of them, or measure what tells them apart"
        )
    contexts: list[Context] = []
    for number, begin in enumerate(problem.begins):
        problem.put(begin, values, number)
        contexts.append(begin)
    return Fit(
        constants=dict(zip(names, values.tolist(), strict=True)),
        fitted=names,
        residuals=residuals,
        covariance=covariance,
        condition=condition,
        unidentified=unidentified,
        at_bound=tuple(n for n, side in zip(names, result.active_mask, strict=True) if side),
        system=system,
        cost=float(result.cost) if known else 0.5 * float(np.sum(residuals**2)),
        deviations=dict(zip(problem.signals, sigma.tolist(), strict=True)),
        known_deviations=known,
        times=[record.times for record in records],
        measured=problem.split(problem.measured),
        computed=problem.split(computed),
        contexts=contexts,
        logarithmic=tuple(n for n, log in zip(names, logs, strict=True) if log),
        parameters=tuple(variable.place.path for variable in problem.variables),
    )


__all__ = ["Fit", "fit"]
