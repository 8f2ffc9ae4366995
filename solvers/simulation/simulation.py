"""`simulate` runs a diagram and returns the result; `step_response` applies a step to an input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import numpy as np

from flexure.diagrams.checks.errors import quoted, warn
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.interface.option_names import (
    answers_other_words,
    refuse_unknown,
    shows_options_of,
)
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray, equal
from flexure.solvers.results.measures.step_responses import StepResponse, record_response
from flexure.solvers.results.measures.step_sources import StepFinder
from flexure.solvers.results.records.history import History
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.options import SimulationOptions, warn_of_small_states
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.tracing.signals import Signal


@answers_other_words
@shows_options_of(Simulator, SimulationOptions.__optional_keys__)
def simulate(
    system: System,
    t_final: float,
    *,
    context: Context | None = None,
    **options: Unpack[SimulationOptions],
) -> SimulationResult:
    """Simulate a block or diagram up to a time.

    Parameters
    ----------
    system : System
        A block or diagram.
    t_final : float
        End time in seconds.
    context : Context, optional
        Initial values, a root context; it is not changed. A default context when omitted.
    method, rtol, atol, max_step, max_steps, max_check_interval, step, options, isolate, compiled, \
monitor, progress, max_record
        As for `Simulator`.

    Returns
    -------
    SimulationResult
        All signals of the run.

    Raises
    ------
    DeclarationError
        When it is no system, such as a builder whose ``build()`` is still to be called.
    ContextError
        When the context is no root context of the system.
    SimulationError
        When the simulation cannot go on. The attribute ``result`` of the error holds the run up
        to there; so does that of an exception of a block, or of a ``KeyboardInterrupt``.

    Warns
    -----
    UserWarning
        When the motion is so small that the default of ``atol`` leaves its error without control.

    See Also
    --------
    Simulator : Step through a run under your own control.
    sweep : Simulate many sets of values.
    step_response : Apply a step and measure the response.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("charge")
    >>> builder.add_all(fx.Step("source", at=0.5), fx.FirstOrderLag("lag", time_constant=1.0))
    >>> builder.connect_chain("source", "lag")
    >>> result = fx.simulate(builder.build(), 1.5)
    >>> result["lag.y"][-1].round(4)
    np.float64(0.6321)
    """
    refuse_unknown("simulate", options, SimulationOptions.__optional_keys__)
    require_system(system, "Cannot simulate")
    start = start_context(system, context, f"Cannot simulate '{system.label}'")
    simulator = Simulator(system, start, record=True, **options)
    result = recorded(simulator, t_final)
    if options.get("atol") is None and options.get("step") is None:
        warn_of_small_states(_states(simulator), simulator.atol, simulator.context)
    return result


def recorded(simulator: Simulator, t_final: float) -> SimulationResult:
    """Advance to a time, and return the result; an error has that of the run up to there."""
    context = simulator.context
    eventful = simulator._state.monitor or any(leaf.system.events for leaf in context.leaves())
    start = context.clone() if eventful else None
    try:
        simulator.advance_to(t_final)
    except (Exception, KeyboardInterrupt) as error:
        failed = isinstance(error, Exception)
        error.result = _result(  # type: ignore[union-attr]
            simulator,
            "failed" if failed else "interrupted",
            str(error) if failed else f"interrupted at t = {context.time:.9g} s",
            start,
        )
        raise
    if start is not None and simulator._state.events.has_changed_values:
        _tell_changes(start, context)
    return result_of(simulator, start)


def _tell_changes(start: Context, end: Context) -> None:
    """Warn of parameters and inputs that publishes or a monitor have changed during a run."""
    rows = zip(start.describe(), end.describe(), strict=True)
    paths = [
        new["path"]
        for old, new in rows
        if new["kind"] in ("parameter", "input") and not equal(old["value"], new["value"])
    ]
    if not paths:
        return
    warn(
        f"Signals of '{end.system.label}' that read {quoted(paths)} are computed with the values at"
        " the end: found that publishes or a monitor changed these during the run. States are those"
        " of the run. Use a discrete state, which an update changes, or log these signals"
    )


def _states(simulator: Simulator) -> Iterator[FloatArray]:
    """Yield the states at the end of a run, then those of all its steps."""
    yield simulator.context.continuous_state[np.newaxis]
    for rows in simulator.history.ledger().sources if simulator.history else ():
        yield rows.states(np.arange(len(rows.times)))


def result_of(simulator: Simulator, start: Context | None = None) -> SimulationResult:
    """Return the result of a run that came to its end."""
    if simulator.termination is not None:
        message = (
            f"terminated by {simulator.terminated_by} at t = {simulator.context.time:.9g} s: "
            f"{simulator.termination.reason}"
        )
        return _result(simulator, "terminated", message, start)
    return _result(simulator, "completed", f"reached t = {simulator.context.time:.9g} s", start)


def _result(
    simulator: Simulator, outcome: str, message: str, start: Context | None
) -> SimulationResult:
    history = simulator.history or History(simulator.context)
    explanation = simulator.explain()
    return SimulationResult(
        simulator.system,
        simulator.context,
        history,
        simulator.statistics,
        outcome,
        f"{message}\n{explanation}",
        start,
    )


@answers_other_words
def step_response(
    system: System,
    input: InputPort | str,
    signal: Signal,
    t_final: float,
    *,
    to: float = 1.0,
    context: Context | None = None,
    initial: float | None = None,
    final: float | None = None,
    target: float | None = None,
    band: float = 0.02,
    control: Signal | None = None,
    **options: Unpack[SimulationOptions],
) -> StepResponse:
    """Apply a step to a free input port and record the response of a signal.

    The step occurs at the time of the context: before it, the input has its old value; after it,
    the value ``to``. The states start from those of the context.

    Parameters
    ----------
    system : System
        A block or diagram.
    input : InputPort or str
        An input port with one component that nothing feeds.
    signal : Handle or str
        The signal to record, with one component.
    t_final : float
        End of the record in seconds.
    to : float
        The new value of the input.
    context : Context, optional
        Initial values; it is not changed. A default context when omitted.
    initial, final, target, band
        As for `step_info`. Give the initial value when the signal jumps together with the input.
        Where the signal is the measurement of a controller whose setpoint is the input, ``to`` is
        the target.
    control : Handle or str, optional
        The manipulated input, for its total variation and peak.
    **options
        As for `flexure.simulate`.

    Returns
    -------
    StepResponse

    See Also
    --------
    step_info : Measure a recorded response.
    simulate : Simulate any input.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.5)
    >>> response = fx.step_response(lag, "u", "y", 5.0, final=1.0)
    >>> round(response.info.rise_time, 3)
    1.099
    """
    require_system(system, "Cannot record a step response")
    start = start_context(system, context, f"Cannot record a step response of '{system.label}'")
    port = input if isinstance(input, InputPort) else system.input_port(input)
    port.fix(start, to)
    result = simulate(system, t_final, context=start, **options)
    if target is None and StepFinder(system, result.resolve(signal)).follows(port):
        target = to
    return record_response(
        result,
        signal,
        at=start.time,
        initial=initial,
        final=final,
        target=target,
        band=band,
        control=control,
    )
