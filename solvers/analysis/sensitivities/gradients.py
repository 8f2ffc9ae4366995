"""Gradients: derivatives of one number of a run by any number of parameters, by the adjoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import EvaluationError, ValueRefusedError, quoted, warn
from flexure.diagrams.contexts.by_path import ByPath
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Place, Way, find_place, is_signal, path_of
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.ports import Port
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, as_number
from flexure.diagrams.values.state import ContinuousState
from flexure.solvers.analysis.equations.equations import Variable, find_variables
from flexure.solvers.analysis.sensitivities.adjoint_motion import AdjointMotion
from flexure.solvers.analysis.sensitivities.motion_derivatives import sizes_of, uncertain_size
from flexure.solvers.analysis.sensitivities.sensitivities import (
    DIFFERENCE_RTOL,
    move,
    warn_of_differences,
)
from flexure.solvers.integration.methods.methods import is_implicit, method_name
from flexure.solvers.native.programs.method_programs import DIFFERENTIABLE
from flexure.solvers.results.measures.metric_slopes import MetricSlopes
from flexure.solvers.results.measures.metrics import Metric, Records, columns_of
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.options import checked_tolerances
from flexure.solvers.simulation.simulation import recorded
from flexure.solvers.simulation.simulator import Simulator

#: Size of the record in bytes, beyond which steps are repeated to find most of its states.
_MOST_STATES = 2.0**28
_LOOKS = 33  # steps of a run at which its states are looked at
_MOST_HALVINGS = 12  # of the longest step, where states rest
_AGREED, _ROUNDING = 1e-5, 1e-14  # differences, relative to each derivative and to the largest


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
    >>> found = fx.gradient(lag, fx.metrics.final("y"), ["time_constant"], 3.0, context=context)
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
    system: System,
    metric: Metric,
    parameters: Way | Iterable[Way],
    t_final: float,
    *,
    context: Context | None = None,
    method: Method = "auto",
    rtol: float | None = 1e-8,
    atol: float | None = None,
) -> Gradient:
    """Differentiate a metric of a run by any number of parameters.

    The cost is that of a few simulations, whatever the number of parameters. Use it for many
    parameters; for few parameters and many signals, `parameter_sensitivity` is the better choice.

    Parameters
    ----------
    system : System
        A block or diagram.
    metric : Metric
        One of final, at, maximum, minimum, peak, mean, rms, integral, total_variation, iae, ise,
        itae and first_crossing, or arithmetic of them. Its signals are ports and continuous states.
    parameters : Handle, str or iterable of them
        Parameters, fixed input ports and initial states, or components of them, by handle or path,
        as for `parameter_sensitivity`.
    t_final : float
        End time in seconds.
    context : Context, optional
        Initial values, a root context; it is not changed. A default context when omitted.
    method : str
        "auto", ``"RK45"``, ``"RK23"``, ``"DOP853"``, ``"DormandPrince"`` or ``"ESDIRK4"``. The
        first means RK45 or, for stiff systems, ESDIRK4.
    rtol, atol : float
        Tolerances of the run; ``rtol`` defaults to 1e-8, and ``atol`` to a thousandth of ``rtol``.

    Returns
    -------
    Gradient

    Raises
    ------
    TraceError
        When a block cannot be traced; the text names it.
    EvaluationError
        When the metric has no derivative, an event only grazes its surface, several events take
        place at once and their order matters, an event or a jump that moves coincides with an end
        of the metric, an update runs at every step, or a block such as a `Quantizer` has an output
        that jumps.
    SimulationError
        When the integration cannot go on.

    Warns
    -----
    UserWarning
        When the motion crosses a jump of the equations, which the derivatives leave out: two
        motions along one random direction of the parameters show it.

    See Also
    --------
    parameter_sensitivity : Derivatives of states and signals by a few parameters.
    optimize : Search for the best values.

    Notes
    -----
    The result is the exact derivative of what the method computes with the steps of this run
    (discrete adjoint). Where states rest, any step is short enough for them, but not for their
    derivatives: the run is repeated with shorter steps until these agree to 1e-5. Each step is
    repeated backward at a few times its own cost. Where the record of a run in native code would
    take more than 256 MB, it keeps a state at about every thousandth step and behind each jump of
    the states (checkpoints); the others are computed once more when they are needed, and are the
    same to the last bit. So are those of ``result``.

    At an event, the weights are multiplied by the transposed saltation matrix, so that the change
    of the instant counts; likewise where a parameter moves the time of a jump, such as ``at`` of a
    `Step`. An event that disappears under a small change of the parameters has no derivative, nor
    have two at the same instant whose order matters; central differences tell more there. Where
    equations bend without an event, as those of a `Saturation`, the error of the derivatives falls
    with the square root of ``rtol`` only. Where a metric has a kink, as rms and peak of a signal
    that is zero, the derivative is zero.

    Examples
    --------
    A lag that discharges, x = e^(-t/τ), has ∂x/∂τ = t/τ² e^(-t/τ), here 0.75 e^(-1.5):

    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0, initial=1.0)
    >>> context = lag.create_default_context()
    >>> lag.u.fix(context, 0.0)
    >>> found = fx.gradient(lag, fx.metrics.final("y"), ["time_constant"], 3.0, context=context)
    >>> found["time_constant"].round(6)
    np.float64(0.167348)
    """
    call = "Cannot call gradient(system, metric, parameters, t_final)"
    require_system(system, call)
    end = float(as_number(t_final, (), call))
    attempt = f"Cannot take the gradient of '{system.label}'"
    require(isinstance(metric, Metric), metric, attempt, "a metric, such as fx.metrics.final('y')")
    start = start_context(system, context, attempt)
    variables = find_variables(start, parameters, attempt, states=True)
    tolerances = checked_tolerances(rtol, atol, 1e-8, attempt)
    if not (math.isfinite(end) and end > start.time):
        raise ValueRefusedError(
            attempt, expected=f"an end after t = {start.time:g} s", found=f"t_final={t_final!r}"
        )
    gradients = MetricGradients(system, start, variables, metric.signals, end, method, attempt)
    result, ((slopes, found),) = gradients.settled(start, [metric], tolerances)
    if gradients.may_jump and variables:

        def moved(step: FloatArray) -> FloatArray:
            """Return the metric of a run whose numbers are others."""
            context = start.clone()
            move(context, variables, step)
            run = gradients.run(context, DIFFERENCE_RTOL, 1e-3 * DIFFERENCE_RTOL)
            return np.array([metric(run)])

        value = np.array([abs(slopes.value)])
        sizes = sizes_of(variables, start.store)
        warn_of_differences(value, found[np.newaxis], moved, sizes, [metric.label], attempt)
    ends = np.cumsum([0, *(len(variable.keys) for variable in variables)])
    entries = {
        variable.place.path: found[end - len(variable.keys) : end].reshape(variable.shape)[()]
        for variable, end in zip(variables, ends[1:], strict=True)
    }
    derivatives = ByPath(system, entries, "what the metric was differentiated by")
    return Gradient(slopes.value, derivatives, metric, result)


class MetricGradients:
    """Metrics of runs from one context, and their derivatives by the adjoint of these runs.

    The numbers of ``start``, with which runs begin, may change between them. Metrics read the
    signals, and are differentiated by ``variables``. Raises a FlexureError when the runs have no
    adjoint.
    """

    def __init__(
        self,
        system: System,
        start: Context,
        variables: Sequence[Variable],
        signals: Iterable[Way],
        t_final: float,
        method: Method,
        attempt: str,
    ) -> None:
        self._system, self._t_final, self._attempt = system, t_final, attempt
        self._variables, self._longest = variables, math.inf
        found = [find_place(system, signal, is_signal) for signal in signals]
        places = [with_slopes(place, attempt) for place in found]
        self._motion = motion = AdjointMotion(start, variables, places, attempt)
        name = motion.chosen(t_final) if method == "auto" else method_name(method)
        if name not in DIFFERENTIABLE:
            raise ValueRefusedError(
                attempt,
                expected=f"a method out of {quoted(('auto', *DIFFERENTIABLE))}",
                found=f"method={name!r}",
            )
        if motion.why and is_implicit(name):
            raise EvaluationError(
                f"{attempt} with {name}",
                expected="native code, which implicit methods need for that",
                found=f"none, because {motion.why}",
                remedy="Use an explicit method such as RK45",
            )
        self._method = name

    @property
    def may_jump(self) -> bool:
        """Whether rates, signals or periodic updates hold an operation that can jump."""
        return self._motion.may_jump

    def settled(
        self,
        start: Context,
        metrics: Sequence[Metric],
        tolerances: tuple[float, float],
        agreed: float = _AGREED,
    ) -> tuple[SimulationResult, list[tuple[MetricSlopes, FloatArray]]]:
        """Return a run and its metrics, each with derivatives by the components of all variables.

        Where states rest, any step is short enough for them, but not for their derivatives: the
        run is repeated with shorter steps until these agree, and later ones are not longer.
        """
        result = self.run(start.clone(), *tolerances, self._longest)
        found = [self.of(metric, result, tolerances) for metric in metrics]
        known = not self._variables or math.isfinite(self._longest)
        if known or not _rests(result, uncertain_size(*tolerances)):
            return result, found
        sizes = sizes_of(self._variables, start.store)
        fine = np.array([sizes * slopes for _, slopes in found])
        step = float(np.max(np.diff(result.time)))
        for _ in range(_MOST_HALVINGS):
            coarse, self._longest, step = fine, step, 0.5 * step
            result = self.run(start.clone(), *tolerances, step)
            found = [self.of(metric, result, tolerances) for metric in metrics]
            fine = np.array([sizes * slopes for _, slopes in found])
            size = np.abs(fine)
            limits = agreed * size + _ROUNDING * np.max(size, axis=1, keepdims=True)
            if np.all(np.abs(fine - coarse) <= limits):
                break
        else:
            warn(
                f"{self._attempt}: states rest, so that no step is too long for them, and "
                f"derivatives still change with steps of {step:.2g} s. Begin at values that move "
                "them"
            )
        return result, found

    def run(
        self, context: Context, rtol: float, atol: float, max_step: float = math.inf
    ) -> SimulationResult:
        """Return a run up to the end, which changes the context."""
        simulator = Simulator(
            self._system,
            context,
            method=self._method,
            rtol=rtol,
            atol=atol,
            max_step=max_step,
            record=True,
        )
        simulator._keep_few_states(_MOST_STATES)
        result = recorded(simulator, self._t_final)
        if result.outcome != "completed":
            raise EvaluationError(
                self._attempt, expected="a run up to t_final", found=result.message
            )
        return result

    def of(
        self, metric: Metric, result: SimulationResult, tolerances: tuple[float, float]
    ) -> tuple[MetricSlopes, FloatArray]:
        """Return a metric of a run and its derivatives by the components of all variables."""
        dense = result._dense_output(metric.signals)
        shapes = {path_of(signal): result.resolve(signal).shape for signal in metric.signals}
        slopes = MetricSlopes.of(metric, Records(dense, columns_of(shapes)))
        events = result.statistics.witness_events
        found = self._motion.gradient(
            self._method, result._history, dense, slopes, tolerances, events
        )
        return slopes, found


def _rests(result: SimulationResult, size: float) -> bool:
    """Return whether a state of a run stays so small that no step was too long for it."""
    ledger = result._history.ledger()
    rows = np.unique(np.linspace(0, len(ledger.times) - 1, _LOOKS).astype(np.intp))
    return bool(np.any(np.max(np.abs(ledger.states(rows)), axis=0) < size))


def with_slopes(place: Place, attempt: str) -> Place:
    """Return the place of a signal; refuse signals that have no derivatives."""
    if isinstance(place.handle, (Port, ContinuousState)) and is_signal(place.handle):
        return place
    raise ValueRefusedError(
        attempt,
        expected="metrics of ports or continuous states",
        found=f"the {place.handle.what} '{place.path}'",
    )
