"""Fits: parameters, initial states and offsets of a system from measured time series.

With measured values m, the computed ones y(p) and standard deviations σ of the signals, a fit
minimizes ``½ Σ ρ(((m - y(p))/σ)²)``, where ρ is the identity or, for a robust fit, grows more
slowly. The derivatives ∂y/∂p are exact: they are integrated together with the motion.

A fit explains little of a signal when the squares of its residuals are a large share of the squares
by which the signal varies, and when they follow each other in waves where noise would scatter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from flexure.blocks.forces.fits.fit_report import FitReport, Labels
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
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError, quoted, warn
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root, start_context
from flexure.diagrams.contexts.value_places import Way, find_place
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.sensitivities.motion_derivatives import warn_of_jumps
from flexure.solvers.design.fits.fit_problem import (
    FitProblem,
    names_of,
    read_records,
    smallest_signal,
)
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.options import checked_tolerances

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


_MUCH = 0.25  # share of the squares that is doubted
_BETTER = 0.1  # what a unit has to leave of the squares where the search starts
_EXACT = 1e-6  # of the values: what is no variation, and beside which nothing counts
_GAP = 20.0  # steps of the usual length
_CARRY = 0.1  # of the samples, which alone carry an unknown
_ASIDE = 1e-3  # of an unknown, how far both sides are looked at, and
_NO_EFFECT = 1e-3  # of the effect on the other side, which is none

_DEGREES = 180.0 / math.pi
_UNITS = {
    "rad": {"deg": _DEGREES, "mrad": 1e3, "revolutions": 0.5 / math.pi},
    "rad/s": {"deg/s": _DEGREES, "mrad/s": 1e3, "rpm": 30.0 / math.pi},
    "m": {"mm": 1e3, "cm": 1e2, "um": 1e6, "km": 1e-3, "in": 1.0 / 0.0254},
    "m/s": {"mm/s": 1e3, "cm/s": 1e2, "um/s": 1e6, "km/h": 3.6},
    "N": {"mN": 1e3, "kN": 1e-3},
    "N m": {"N mm": 1e3, "N cm": 1e2, "kN m": 1e-3},
}
_OTHERS = {"degrees": _DEGREES, "thousandths": 1e3, "thousands": 1e-3, "millionths": 1e6}


def doubts(problem: FitProblem, computed: FloatArray) -> str | None:
    """Return what to warn of, if what was computed explains too little of what was measured."""
    texts, remedies = [], []
    for path, unit in problem.units.items():
        pairs = _pairs(problem, computed, path)
        left, spread = _sizes(pairs)
        largest = max(float(np.max(np.abs(one))) for one, _ in pairs)
        if left**2 <= _MUCH * spread**2 or spread <= _EXACT * largest or not _is_wave(pairs):
            continue
        shown = unit and f" {unit}"
        texts.append(f"'{path}': residuals of {left:.3g}{shown} rms beside {spread:.3g}{shown}")
        remedies += _other_unit(problem, path)
    if not texts:
        return None
    remedies += _gaps(problem)
    why = ", and ".join(remedies) if remedies else "check units, signs, zeros and times"
    return (
        f"The fit explains little of {'; and of '.join(texts)}, by which the signal varies. "
        f"{why[0].upper()}{why[1:]}, and start the search closer"
    )


def one_sided(problem: FitProblem, values: FloatArray) -> list[str]:
    """Return which unknowns have next to no effect on one side of what was found.

    Where a signal is at a limit for most of a record, what was found may be where it just comes to
    it. Slopes of the one side then tell of a precision that there is not on the other.
    """
    squares, names = problem.derivatives(values) ** 2, []
    for k, unknown in enumerate(problem.unknowns):
        count = np.sum(squares[:, k]) ** 2 / max(float(np.sum(squares[:, k] ** 2)), 1e-300)
        if not 0.0 < count <= _CARRY * len(squares):
            continue
        step = _ASIDE * (abs(values[k]) or 1.0) * (np.arange(len(values)) == k)
        with suppress(FlexureError):  # beyond the bounds of its declaration, or no motion
            ends = [problem.computed(values + side * step) for side in (-1.0, 0.0, 1.0)]
            less, more = sorted(float(np.linalg.norm(end - ends[1])) for end in (ends[0], ends[2]))
            names += [unknown.name] if less < _NO_EFFECT * more else []
    return names


def oversized(problem: FitProblem) -> str | None:
    """Return which signals are so large that nothing counts beside them, if any are."""
    start, texts = problem.computed(problem.start), []
    for path, unit in problem.units.items():
        pairs = _pairs(problem, start, path)
        measured, usual = (max(float(np.max(np.abs(each[k]))) for each in pairs) for k in (0, 1))
        if measured * _EXACT > usual > 0.0:
            texts.append(f"'{path}' up to {measured:.3g} {unit}".rstrip() + f" beside {usual:.3g}")
    return ", ".join(texts) or None


def _pairs(
    problem: FitProblem, computed: FloatArray, path: str
) -> list[tuple[FloatArray, FloatArray]]:
    """Return measured and computed values of a signal, by record."""
    parts = zip(problem.split(problem.measured), problem.split(computed), strict=True)
    return [(one[path], other[path]) for one, other in parts if path in one]


def _sizes(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[float, float]:
    """Return the root mean squares of residuals, and of what measured values vary by."""
    errors = np.concatenate([(one - other).ravel() for one, other in pairs])
    around = np.concatenate([(one - np.mean(one, axis=0)).ravel() for one, _ in pairs])
    return float(np.sqrt(np.mean(errors**2))), float(np.sqrt(np.mean(around**2)))


def _is_wave(pairs: list[tuple[FloatArray, FloatArray]]) -> bool:
    """Return whether residuals follow each other from sample to sample."""
    # For independent errors, the squares of the differences from sample to sample are twice their
    # own squares, with a standard deviation of 2/√n.
    errors = [one - other for one, other in pairs]
    count = sum(each.size for each in errors)
    whole = sum(float(np.sum(each**2)) for each in errors)
    steps = sum(float(np.sum(np.diff(each, axis=0) ** 2)) for each in errors)
    return steps < min(1.0, 2.0 - 6.0 / math.sqrt(count)) * whole


def _other_unit(problem: FitProblem, path: str) -> list[str]:
    """Return the unit in which a signal would come far closer to the start of the search."""
    pairs = _pairs(problem, problem.computed(problem.start), path)
    unit = problem.units[path]
    factors = _UNITS.get(unit, {} if unit else _OTHERS)
    left = {
        name: sum(float(np.sum((one - factor * other) ** 2)) for one, other in pairs)
        for name, factor in {unit: 1.0, **factors}.items()
    }
    nearest = min(left, key=lambda name: left[name])
    if left[nearest] > _BETTER * left[unit]:
        return []
    instead = f" instead of {unit}" if unit else ""
    return [f"the record of '{path}' looks as if it were in {nearest}{instead}"]


def _gaps(problem: FitProblem) -> list[str]:
    """Return where the times of records make a leap."""
    found = []
    for record in problem.records:
        steps = np.diff(record.times)
        found += [
            f"the times have a gap from {record.times[k]:g} s to {record.times[k + 1]:g} s"
            for k in np.flatnonzero(steps > _GAP * np.median(steps))[:1]
        ]
    return found
