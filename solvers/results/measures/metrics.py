"""Metrics: numbers that say how a run went, computed from the signals of many runs at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import mapping, require
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.contexts.value_places import path_of
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers
from flexure.solvers.results.measures.curves import Curve, DenseOutput
from flexure.solvers.results.measures.step_responses import require_single
from flexure.solvers.tracing.signals import Signal

if TYPE_CHECKING:
    from flexure.solvers.results.measures.step_sources import StepInput
    from flexure.solvers.results.records.result import SimulationResult

#: Any function of the result of one run that returns a number.
Measure = Callable[["SimulationResult"], Any]
_SUM, _PRODUCT, _CALL = range(3)  # how strongly the parts of a label are bound


class Response(NamedTuple):
    """A signal whose step is looked for along the wires."""

    path: str  # of the signal
    at: float | None  # the instant of the step, where it is known
    disturbs: bool = False  # whether it is a disturbance, and not a step to another value


@dataclass(frozen=True, eq=False)
class Records:
    """The input of metrics: the signals of N runs."""

    dense: DenseOutput  # the signals, one behind the other
    # Where each of them is among the components: a slice by path, or a number for a signal that has
    # one component.
    columns: Mapping[str, int | slice]
    # What is known of the steps that signals respond to: ``{"at": ..., "target": ...}``, arrays of
    # shape (N,), by `Response`. Without an entry, the step is where a run begins.
    steps: Mapping[Any, Mapping[str, FloatArray]] = field(default_factory=dict)
    # What functions of whole results returned: arrays of shape (N,) by the function.
    numbers: Mapping[Measure, FloatArray] = field(default_factory=dict)
    # Where to leave the errors of functions, by the row; None to raise them.
    failures: dict[int, str] | None = None
    # What several metrics share, which the first of them leaves here.
    measured: dict[Any, Any] = field(default_factory=dict)
    # How much longer runs have to be of which a signal still moves at the end, by path, (N,).
    longer: dict[str, FloatArray] = field(default_factory=dict)
    # Paths and names of the step metrics that some of these runs lack.
    lacking: set[tuple[str, str]] = field(default_factory=set)
    # When runs begin and end; None for where the signals do.
    span: tuple[float, float] | None = None

    def note(self, path: str, name: str, figures: FloatArray, longer: FloatArray) -> None:
        """Note which runs lack a metric because they have to be longer."""
        self.longer[path] = np.maximum(longer, self.longer.get(path, 0.0))
        if np.any(np.isnan(figures) & (longer > 0.0)):
            self.lacking.add((path, name))

    def fail(self, row: int, label: str, error: Exception) -> None:
        """Note that a function of a run raised an error, or raise it."""
        if self.failures is None:
            raise error
        self.failures.setdefault(row, f"Cannot measure {label}: {error!r}")

    def single(self, signal: Signal) -> Curve:
        """Return a signal with one component."""
        path = path_of(signal)
        if path not in self.measured:
            values = self.dense.values[:, :, self.columns[path]]
            require_single(values, 2, f"Cannot measure '{path}'", f"Name one, as in '{path}[0]'")
            with np.errstate(all="ignore"):
                self.measured[path] = Curve.of(self.dense, values)
        found: Curve = self.measured[path]
        return found

    def difference(self, signal: Signal, other: Signal) -> Curve:
        """Return one signal less another one."""
        self.single(signal), self.single(other)  # refuses those with several components
        a, b = (self.dense.values[:, :, self.columns[path_of(way)]] for way in (signal, other))
        return Curve.of(self.dense, a - b)


@dataclass(frozen=True, eq=False)
class Metric:
    """A number computed from a run, such as ``fx.metrics.rms("pid.u")``.

    The functions of `flexure.metrics` return them, for `flexure.sweep` and other studies of many
    runs. They can be added, subtracted, multiplied and divided, with each other and with numbers,
    and their magnitude is ``abs(metric)``. A comparison, ``metric <= 5.0`` or ``metric >= other``,
    gives a `Constraint`. Called with the result of a run, ``metric(result)`` is the number.

    Attributes
    ----------
    label : str
        What it is called in tables; see `named`.
    signals : tuple of Handle or str
        What it reads.
    responses : tuple of Response
        Those whose steps are looked for along the wires.
    functions : tuple of callable
        Functions of a whole `SimulationResult` that it needs; with any, runs are single ones.
    unit : str
        Unit of the number, with ``{}`` for that of the first signal, as in ``"{} s"``; empty where
        it is not known.

    See Also
    --------
    Constraint : A metric with a bound.
    sweep : Compute metrics of many runs.

    Examples
    --------
    >>> import flexure as fx
    >>> effort = fx.metrics.peak("u") + 2.0 * fx.metrics.rms("u")
    >>> effort.label
    'peak(u) + 2 * rms(u)'
    >>> effort.evaluate([0.0, 1.0], {"u": [[1.0, 1.0]]})
    array([3.])
    """

    label: str
    signals: tuple[Signal, ...]
    responses: tuple[Response, ...]
    functions: tuple[Measure, ...]
    _calc: Callable[[Records], FloatArray] = field(repr=False)
    _binding: int = field(default=_CALL, repr=False)
    unit: str = ""

    __array_ufunc__ = None  # numbers of NumPy leave operations to the metric

    def named(self, label: Any) -> Metric:
        """Return the same metric with another label."""
        fits = isinstance(label, str) and label != ""
        require(fits, label, "Cannot name a metric", "a text that is not empty")
        return replace(self, label=label, _binding=_CALL)

    def unit_among(self, units: Mapping[str, str]) -> str:
        """Return the unit of the number, by the units of signals; empty where it is not known."""
        given = units.get(path_of(self.signals[0]), "") if self.signals else ""
        if "²" in self.unit and not given.isalpha():
            given = given and f"({given})"
        return self.unit.format(given) if given or "{}" not in self.unit else ""

    def evaluate(
        self,
        times: npt.ArrayLike,
        samples: Mapping[str, npt.ArrayLike],
        *,
        steps: Mapping[str, Mapping[str, FloatArray]] | None = None,
    ) -> FloatArray:
        """Return the numbers of many runs whose signals were sampled at the same times.

        Parameters
        ----------
        times : array_like, shape (K,)
            Ascending times in seconds; a repeated time marks a jump. Between them, signals are
            taken to be linear.
        samples : mapping
            Arrays of shape (N, K), or (N, K, size) for a signal with several components, by path:
            at least those of ``signals``. NaN where a run failed or did not come.
        steps : mapping, optional
            For the signals of ``responses``, instants and targets of the steps that they respond
            to: ``{path: {"at": (N,), "target": (N,)}}``. Without them, the step is the first time,
            and there is no target, unless the metric was told.

        Returns
        -------
        ndarray, shape (N,)
            NaN where the record of a run does not hold what is needed.

        Raises
        ------
        UnknownNameError
            When samples are missing.
        ValueRefusedError
            When shapes do not fit, times do not ascend or do not hold what the metric asks for, or
            it is a function of whole results.
        """
        attempt = f"Cannot measure {self.label}"
        t = as_numbers(times, attempt, "ascending times")
        if t.ndim != 1 or not t.size or not np.all(np.diff(t) >= 0.0):
            raise ValueRefusedError(
                attempt, expected="ascending times", found=np.array2string(t, threshold=6)
            )
        if self.functions:
            raise ValueRefusedError(
                attempt,
                expected="a metric of sampled signals",
                found="a function of the whole result of a run",
                remedy="Call it with the result, as in metric(result)",
            )
        given = mapping(samples, "a mapping from paths to samples", attempt)
        known = mapping({} if steps is None else steps, "a mapping from paths to steps", attempt)
        wanted = [path_of(signal) for signal in self.signals]
        missing = [path for path in wanted if path not in given]
        if missing:
            raise UnknownNameError(attempt, expected=f"samples of {quoted(missing)}", found="none")
        arrays = {path: as_numbers(given[path], attempt) for path in dict.fromkeys(wanted)}
        for path, values in arrays.items():
            if values.ndim not in (2, 3) or values.shape[1] != len(t):
                raise ValueRefusedError(
                    attempt,
                    expected=f"samples of '{path}' of shape (N, {len(t)}), a row for each run",
                    found=f"shape {values.shape}",
                )
        found = {each: known[each.path] for each in self.responses if each.path in known}
        blocks = {path: each.reshape(len(each), len(t), -1) for path, each in arrays.items()}
        whole = DenseOutput.of_samples(t, np.concatenate([*blocks.values()], axis=2))
        shapes = {path: each.shape[2:] for path, each in arrays.items()}
        return self.measure(Records(whole, columns_of(shapes), found))

    def measure(self, records: Records) -> FloatArray:
        """Return the numbers of the runs of some records."""
        with np.errstate(all="ignore"):  # what cannot be measured becomes NaN
            return np.asarray(self._calc(records), dtype=float)

    def __call__(self, result: SimulationResult) -> float:
        """Return the number of a run.

        Its signals are read from the steps of the integrator, and what is between them, as those of
        `SimulationResult.step_info`.
        """
        from flexure.solvers.results.records.result import SimulationResult

        attempt = f"Cannot measure {self.label}"
        require(isinstance(result, SimulationResult), result, attempt, "the result of a run")
        readers = {path_of(signal): result.resolve(signal) for signal in self.signals}
        dense = result._dense_output(self.signals)
        columns = columns_of({path: reader.shape for path, reader in readers.items()})
        steps = {each: _columns(result.find_step(*each)) for each in self.responses}
        numbers = {each: np.array([each(result)], dtype=float) for each in self.functions}
        return float(self.measure(Records(dense, columns, steps, numbers))[0])

    # Arithmetic ----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Metric:
        return joined(operator.add, "{} + {}", (self, other), _SUM)

    def __radd__(self, other: Any) -> Metric:
        return joined(operator.add, "{} + {}", (other, self), _SUM)

    def __sub__(self, other: Any) -> Metric:
        return joined(operator.sub, "{} - {}", (self, other), _SUM)

    def __rsub__(self, other: Any) -> Metric:
        return joined(operator.sub, "{} - {}", (other, self), _SUM)

    def __mul__(self, other: Any) -> Metric:
        return joined(operator.mul, "{} * {}", (self, other), _PRODUCT)

    def __rmul__(self, other: Any) -> Metric:
        return joined(operator.mul, "{} * {}", (other, self), _PRODUCT)

    def __truediv__(self, other: Any) -> Metric:
        return joined(operator.truediv, "{} / {}", (self, other), _PRODUCT)

    def __rtruediv__(self, other: Any) -> Metric:
        return joined(operator.truediv, "{} / {}", (other, self), _PRODUCT)

    def __neg__(self) -> Metric:
        return joined(operator.neg, "-{}", (self,), _PRODUCT)

    def __abs__(self) -> Metric:
        return joined(abs, "abs({})", (self,))

    def __le__(self, other: Any) -> Constraint:
        return _bounded(self, other, "<=")

    def __ge__(self, other: Any) -> Constraint:
        return _bounded(self, other, ">=")


@dataclass(frozen=True, eq=False)
class Constraint:
    """A metric with a bound, such as ``fx.metrics.peak("pid.u") <= 12.0``.

    Attributes
    ----------
    metric : Metric
        What is bounded.
    lower, upper : float
        Its bounds; infinite where there is none.
    label : str
        What was written.

    See Also
    --------
    optimize : Search for the best values under constraints.

    Examples
    --------
    >>> import flexure as fx
    >>> bound = fx.metrics.peak("pid.u") <= 12.0
    >>> bound.label, bound.lower, bound.upper
    ('peak(pid.u) <= 12', -inf, 12.0)
    """

    metric: Metric
    lower: float
    upper: float
    label: str

    def excess(self, values: npt.ArrayLike) -> FloatArray:
        """Return how far values of the metric are beyond the bound; 0 where they meet it.

        NaN, as of a run that failed, stays NaN.
        """
        found = as_numbers(values, f"Cannot compare {self.metric.label}")
        return np.maximum(0.0, np.maximum(found - self.upper, self.lower - found))

    def holds(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return which values of the metric meet the bound; NaN does not."""
        found = as_numbers(values, f"Cannot compare {self.metric.label}")
        return np.asarray((found >= self.lower) & (found <= self.upper))

    def __bool__(self) -> bool:
        raise ValueRefusedError(
            f"Cannot decide whether {self.label} is true",
            expected="a comparison with one bound",
            found="a comparison instead of a truth value, as in low <= metric <= high",
            remedy="Write two constraints, metric >= low and metric <= high",
        )


def columns_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int | slice]:
    """Return where signals are whose components are one behind the other."""
    columns: dict[str, int | slice] = {}
    begin = 0
    for path, shape in shapes.items():
        size = shape[0] if shape else 1
        columns[path] = slice(begin, begin + size) if shape else begin
        begin += size
    return columns


def _columns(step: StepInput) -> dict[str, FloatArray]:
    """Return what is known of the step of one run."""
    return {name: np.array([value]) for name, value in step._asdict().items()}


def _bounded(metric: Metric, bound: Any, sign: str) -> Constraint:
    """Return a constraint by a number or by another metric."""
    if isinstance(bound, Metric):
        label = f"{metric.label} {sign} {bound.label}"
        metric, limit = metric - bound, 0.0
    else:
        attempt = f"Cannot compare {metric.label}"
        limit = as_number(bound, (), attempt)[()]
        require(not np.isnan(limit), bound, attempt, "a bound that is no NaN")
        label = f"{metric.label} {sign} {spelled(limit)}"
    lower, upper = (-np.inf, float(limit)) if sign == "<=" else (float(limit), np.inf)
    return Constraint(metric, lower, upper, label)


def joined(function: Any, text: str, operands: tuple[Any, ...], binding: int = _CALL) -> Metric:
    """Return a metric that is computed from others and from numbers, by an operator or a call.

    The text has a place for the label of each; an operator binds them as strongly as is said.
    """
    parts = []
    for position, operand in enumerate(operands):
        if isinstance(operand, Metric):
            weak = binding != _CALL and operand._binding < binding + (position > 0)
            parts.append(f"({operand.label})" if weak else operand.label)
        else:
            parts.append(spelled(as_number(operand, (), f"Cannot compute with {operands}")[()]))
    metrics = [each for each in operands if isinstance(each, Metric)]
    signals = {path_of(each): each for metric in metrics for each in metric.signals}
    responses, functions = (
        tuple(dict.fromkeys(each for metric in metrics for each in getattr(metric, name)))
        for name in ("responses", "functions")
    )
    calc = partial(calc_joined, function, operands)
    return Metric(
        text.format(*parts),
        tuple(signals.values()),
        responses,
        functions,
        calc,
        binding,
        _joined_unit(function, operands, metrics),
    )


def _joined_unit(function: Any, operands: tuple[Any, ...], metrics: list[Metric]) -> str:
    """Return the unit of what is computed from metrics of one kind, where the kind stays."""
    kinds = {(each.unit, *map(path_of, each.signals[:1])) for each in metrics}
    scaled = function is operator.mul or (function is operator.truediv and operands[0] in metrics)
    stays = len(metrics) == 1 if scaled else function is not operator.truediv
    return metrics[0].unit if len(kinds) == 1 and stays else ""


def calc_joined(function: Any, operands: tuple[Any, ...], records: Records) -> FloatArray:
    """Compute a metric from others."""
    values = (each.measure(records) if isinstance(each, Metric) else each for each in operands)
    return np.asarray(function(*values))


def spelled(number: float) -> str:
    """Write a number as in a program, shortly."""
    return repr(float(number)).removesuffix(".0")
