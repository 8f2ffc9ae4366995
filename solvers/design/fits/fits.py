"""Fits: parameters, initial states and offsets of a system from measured time series.

With measured values m, the computed ones y(p) and standard deviations σ of the signals, a fit
minimizes ``½ Σ ρ(((m - y(p))/σ)²)``, where ρ is the identity or, for a robust fit, grows more
slowly. The derivatives ∂y/∂p are exact: they are integrated together with the motion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from flexure.blocks.forces.fits.fit_figures import Labels
from flexure.blocks.forces.fits.fit_report import FitReport
from flexure.blocks.forces.fits.least_squares import (
    Loss,
    check_options,
    effective,
    estimate,
    given_deviations,
    require_enough,
    warn_of,
)
from flexure.diagrams.checks.arguments import is_whole, items_of, require
from flexure.diagrams.checks.errors import ValueRefusedError, quoted, warn
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root, start_context
from flexure.diagrams.contexts.value_places import Way, find_place
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.sensitivities.motion_derivatives import warn_of_jumps
from flexure.solvers.design.fits.fit_problem import FitProblem
from flexure.solvers.design.fits.fit_warnings import doubts, one_sided, oversized
from flexure.solvers.design.fits.records import names_of, read_records, smallest_signal
from flexure.solvers.simulation.run_control.error_tolerances import checked_tolerances
from flexure.solvers.simulation.run_control.method_selection import Method

_Entry = TypeVar("_Entry")
_CLOSE = 1e-3  # residuals, of what was measured, with which a fit has found the minimum


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Answer, FitReport):
    """Parameters fitted to records, and their uncertainty.

    ``fit["spring.stiffness"]`` is a fitted number. It is a `flexure.fitting.FitReport`, as the fits
    of laws return it, which says what the attributes are; here is what it has of its own.

    Attributes
    ----------
    constants : dict of str to float
        All fitted values, by path. Values of a single record, such as an initial state or the
        offset of a signal, are labelled: "plant.x[angle] of record 1", "offset of plant.angle".
    residuals : ndarray, shape (n,)
        Measured minus computed values in standard deviations, end to end by record, time and
        component.
    measured, computed : list of dict
        For each record the signals by path, of shape (k, size); computed ones with offsets.
    system : System
        What was fitted.
    times : list of ndarray
        Times of the records in seconds.
    contexts : list of Context
        For each record where its motion begins, with all that was fitted.

    See Also
    --------
    fit : Fit a model to records.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> time = np.linspace(0.0, 5.0, 26)
    >>> record = {"time": time, "u": np.ones(26), "y": 1.0 - np.exp(-time / 2.0)}
    >>> found = fx.fit(lag, record, ["time_constant"])
    >>> round(found["time_constant"], 4)
    2.0
    """

    system: System
    times: list[FloatArray]
    contexts: list[Context]

    def __post_init__(self) -> None:
        """Let constants have all names that their places have."""
        object.__setattr__(self, "constants", self._named(self.constants))

    def _named(self, entries: dict[str, _Entry]) -> dict[str, _Entry]:
        return ByPath(self.system, entries, "what was fitted")

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
        fits = is_whole(record) and 0 <= record < count
        require(fits, record, attempt, f"the number of a record, 0 to {count - 1}")
        self._set({path: self.contexts[record].get(path) for path in self.parameters}, context)

    def _labels(self) -> Labels:
        names = {signal: names_of(find_place(self.system, signal)) for signal in self.units}
        return Labels(f"{self.system.label}: measured and fitted", "time [s]", self.times, names)

    @property
    def _kind(self) -> str:
        return f"Fit of '{self.system.label}'"

    @property
    def _extent(self) -> str:
        records = len(self.times)
        return f"{self.residuals.size} samples in {records} record{'s' * (records > 1)}"


@answers_other_words
def fit(
    system: System,
    records: Any,
    parameters: Way | Iterable[Way] | Mapping[Any, Any],
    *,
    context: Context | Iterable[Context] | None = None,
    signals: Way | Iterable[Way] | None = None,
    offsets: Way | Iterable[Way] = (),
    bounds: Mapping[Any, Any] | None = None,
    logarithmic: Way | Iterable[Way] = (),
    deviations: float | Mapping[Any, float] | None = None,
    loss: Loss = "linear",
    method: Method = "auto",
    rtol: float | None = 1e-8,
    atol: float | None = None,
    max_evaluations: int = 100,
) -> Fit:
    """Fit parameters, initial states and offsets of a system to measured time series.

    Parameters
    ----------
    system : System
        A block or diagram in which no events change states but periodic updates, and those at the
        beginning.
    records : mapping, DataFrame, str, Path, SimulationResult, or iterable of them
        One record or several: a mapping of paths to values with the times in s as "time", a pandas
        DataFrame with a column "time" or the times as its index, the name of a CSV file, or the
        result of a simulation, of which ``signals`` are taken at all of its steps. Columns are
        ports, continuous states, or components of them. Columns of free input ports drive them,
        with linear interpolation between samples; the others are compared with the output of the
        system.
    parameters : Handle, str, iterable of them, or mapping
        The unknowns: parameters and fixed input ports, common to all records, and initial states
        such as ``"plant.x[angle]"``, separate for each record. A mapping specifies bounds,
        ``{"spring.stiffness": (1.0, 50.0), "spring.damping": None}``.
    context : Context or iterable of Context, optional
        Initial values of the motions, and of the search: one context for all records, or one for
        each. Contexts are not changed; common unknowns start at their values in the first one. A
        default context when omitted.
    signals : Handle, str or iterable of them, optional
        Columns of the records to use, measured inputs included; all when omitted. For the result of
        a simulation, they are required.
    offsets : Handle, str or iterable of them, optional
        Measured signals with an unknown error that is constant in each record.
    bounds : mapping of path or handle to (float, float), optional
        Bounds of parameters, where ``parameters`` gives none; those of declarations hold in any
        case.
    logarithmic : Handle, str or iterable of them, optional
        Parameters to search by their logarithm; they stay positive.
    deviations : float or mapping, optional
        Standard deviations of the errors of the measured signals in their units, by path. When
        omitted, they are found from the residuals.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}
        Loss function of the residuals, as in ``scipy.optimize.least_squares``. All but the first
        reduce the weight of residuals beyond one standard deviation; they need ``deviations``.
    method, rtol, atol
        As for `parameter_sensitivity`; the default of ``atol`` is at most ``rtol`` times the
        largest value of each measured signal.
    max_evaluations : int, optional
        Largest number of simulations of all records in the search.

    Returns
    -------
    Fit

    Raises
    ------
    ValueRefusedError
        When records have gaps, times that do not ascend, or other sizes or units, when something
        does not start within its bounds, or has no influence on what was measured.
    UnknownNameError
        When a path or name does not exist, or appears twice.
    EvaluationError
        When an event changes a state, or the search does not converge.
    SimulationError
        When the motion at the start of the search does not get to the end of a record.

    Warns
    -----
    UserWarning
        When the data cannot tell parameters apart, or when the fit explains little of a signal; the
        text names a unit or a gap in the times that may be the reason. When a motion will take more
        than a minute in Python, see `parameter_sensitivity`. When motions may jump with the
        parameters and residuals remain: the search may have ended at a local minimum. When an
        unknown has an effect on one side only of what was found, as where a signal just saturates.

    See Also
    --------
    optimize : Minimize any metric of runs.
    parameter_sensitivity : Derivatives by parameters.

    Notes
    -----
    The search finds the minimum nearest to the start, and an oscillating system has several: it
    fails if the frequency at the start is so far off that the phase errs by half a period at the
    end of the record. Use shorter records, or fit the first part first.

    Measurement errors are assumed to be independent from sample to sample. If they are not, as with
    filtered signals, the true errors are larger than stated.

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
    read = read_records(system, records, signals, attempt)
    begins = _contexts(system, context, len(read), attempt)
    options = (method, *checked_tolerances(rtol, atol, 1e-8, attempt))
    if atol is None:  # the same part of small signals
        options = (method, options[1], options[2] * min(1.0, 1e3 * smallest_signal(read)))
    problem = FitProblem(begins, read, parameters, offsets, logarithmic, bounds, options, attempt)
    require_enough(problem.measured.size, len(problem.unknowns), attempt)
    sigma = given_deviations(
        problem.units, deviations, attempt, lambda way: find_place(system, way).path
    )
    evaluations = check_options(sigma, loss, max_evaluations, attempt)
    free = effective(problem)
    if not np.all(free):
        names = [u.name for u, fine in zip(problem.unknowns, free, strict=True) if not fine]
        far = oversized(problem)
        if far is not None:
            raise ValueRefusedError(
                attempt,
                expected="measured values of the size of the computed ones",
                found=f"{far} where the search starts, beside which {quoted(names)} have no effect",
                remedy="Check the units of the record, or start elsewhere",
            )
        raise ValueRefusedError(
            attempt,
            expected="parameters that change what was measured",
            found=f"no influence of {quoted(names)} where the search starts",
            remedy="Leave them out, start elsewhere, or measure what they change",
        )
    report = estimate(problem, {}, free, deviations=sigma, loss=loss, max_evaluations=evaluations)
    warn_of(report)
    doubt = doubts(problem, problem.measured - report.residuals) if loss == "linear" else None
    if doubt is not None:
        warn(doubt)
    found = np.array(list(report.constants.values()))
    names = one_sided(problem, found)
    if names:
        warn(
            f"The fit of '{system.label}' ended where {quoted(names)} just begins to have an "
            "effect: values on one side fit as well, so that the stated error holds for the other "
            "side only. Record a motion that stays off the limit"
        )
    size = float(np.linalg.norm(problem.measured))
    if problem.may_step and float(np.linalg.norm(report.residuals)) > _CLOSE * size:
        remedy = "Start from other values, and keep the fit with the smallest residuals"
        warn_of_jumps(f"The fit of '{system.label}'", remedy)
    for number, begin in enumerate(begins):
        problem.put(begin, found, number)
    weights = 1.0 / np.array(list(report.deviations.values()))[problem.which]
    shared = {each.name: getattr(report, each.name) for each in fields(report)}
    shared["residuals"] = weights * report.residuals
    shared["parameters"] = tuple(variable.place.path for variable in problem.variables)
    return Fit(**shared, system=system, times=[record.times for record in read], contexts=begins)


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
