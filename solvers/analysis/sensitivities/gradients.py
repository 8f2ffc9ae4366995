"""Gradients: derivatives of one number of a run by any number of parameters, by the adjoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, quoted
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way, find_place, path_of
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.ports import Port
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.handles import start_context
from flexure.diagrams.values.state import ContinuousState
from flexure.solvers.analysis.equations.equations import find_variables
from flexure.solvers.analysis.sensitivities.adjoint_motion import AdjointMotion
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.native.runs.adjoint_run import WITH_ADJOINT
from flexure.solvers.results.measures.metric_slopes import MetricSlopes
from flexure.solvers.results.measures.metrics import Metric, Records, columns_of
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.tolerances import checked_tolerances
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.tracing.signals import is_signal


@dataclass(frozen=True, eq=False, repr=False)
class Gradient(Answer):
    """A metric of a run and its derivatives by parameters.

    ``found["spring.stiffness"]`` is the derivative by a parameter, with the shape of the parameter.

    Attributes
    ----------
    value : float
        The metric.
    derivatives : dict
        Its derivatives, by path of the parameter.
    metric : Metric
        What was differentiated.
    result : SimulationResult
        The run.

    See Also
    --------
    gradient : Compute it.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> lag.u.fix(context, 0.0)
    >>> found = fx.gradient(fx.metrics.final("y"), lag, 3.0, ["time_constant"], context=context)
    >>> found["time_constant"].round(6)
    np.float64(0.167348)
    """

    value: float
    derivatives: dict[str, FloatArray]
    metric: Metric
    result: SimulationResult

    def __getitem__(self, parameter: Way) -> FloatArray:
        return self.derivatives[path_of(parameter)]

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.derivatives]

    def __repr__(self) -> str:
        return f"<Gradient of {self.metric.label} by {quoted(self.derivatives)}>"


@answers_other_words
def gradient(
    metric: Metric,
    system: System,
    t_final: float,
    parameters: Way | Iterable[Way],
    *,
    context: Context | None = None,
    method: Method = "auto",
    rtol: float | None = 1e-8,
    atol: float | None = None,
) -> Gradient:
    """Simulate a system, and differentiate a metric by any number of parameters.
    """
    require_system(system, "Cannot take a gradient")
    attempt = f"Cannot take the gradient of '{system.label}'"
    require(isinstance(metric, Metric), metric, attempt, "a metric, such as fx.metrics.final('y')")
    start = start_context(system, context, attempt)
    variables = find_variables(start, parameters, attempt, states=True)
    places = [_settled(system, signal, metric) for signal in metric.signals]
    relative, absolute = checked_tolerances(rtol, atol, 1e-8, attempt)
    end = float(as_number(t_final, (), attempt))
    if not (math.isfinite(end) and end > start.time):
        raise ValueRefusedError(
            attempt, expected=f"an end after t = {start.time:g} s", found=f"t_final={t_final!r}"
        )
    name = NONSTIFF_METHOD if method == "auto" else method_name(method)
    motion = AdjointMotion(start, variables, places, attempt)
    result = simulate(
        system, end, context=start.clone(), method=name, rtol=relative, atol=absolute
    )
    if result.outcome != "completed":
        raise EvaluationError(attempt, expected="a run up to t_final", found=result.message)
    dense = result._dense_output(metric.signals)
    shapes = {path_of(signal): result.resolve(signal).shape for signal in metric.signals}
    slopes = MetricSlopes.of(metric, Records(dense, columns_of(shapes)))
    found = motion.gradient(name, result._history, dense, slopes, (relative, absolute))
    parts = np.split(found, np.cumsum([len(v.keys) for v in variables])[:-1]) if variables else []
    entries = {
        v.place.path: part.reshape(v.shape)[()] for v, part in zip(variables, parts, strict=True)
    }
    derivatives = ByPath(system, entries, "what the metric was differentiated by")
    return Gradient(slopes.value, derivatives, metric, result)


def _settled(system: System, signal: Way, metric: Metric) -> Place:
    """Refuse signals that have no derivatives."""
    place = find_place(system, signal, is_signal)
    if isinstance(place.handle, (Port, ContinuousState)) and is_signal(place.handle):
        return place
    raise ValueRefusedError(
        f"Cannot differentiate {metric.label}",
        expected="metrics of ports or continuous states",
        found=f"the {place.handle.what} '{place.path}'",
    )
