"""`simulate`: runs a diagram and returns the result, in one call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.integration.guard.progress_limits import MOST_STEPS
from flexure.solvers.results.records.history import History
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.simulation.run_control.error_tolerances import Tolerance, warn_of_small_states
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.options import Compiled, Monitor
from flexure.solvers.simulation.simulator import Simulator


@answers_other_words
def simulate(
    system: System,
    t_final: float,
    *,
    context: Context | None = None,
    method: Method = "auto",
    rtol: Tolerance | None = None,
    atol: Tolerance | None = None,
    max_step: float = math.inf,
    max_check_interval: float = math.inf,
    max_steps: float = MOST_STEPS,
    step: float | None = None,
    options: Mapping[str, Any] | None = None,
    isolate: bool = True,
    compiled: Compiled = True,
    monitor: Monitor | None = None,
    progress: bool = False,
    max_record: float | None = None,
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
    require_system(system, "Cannot simulate")
    start = start_context(system, context, f"Cannot simulate '{system.label}'")
    simulator = Simulator(
        system,
        start,
        method=method,
        rtol=rtol,
        atol=atol,
        max_step=max_step,
        max_check_interval=max_check_interval,
        max_steps=max_steps,
        step=step,
        options=options,
        isolate=isolate,
        compiled=compiled,
        monitor=monitor,
        progress=progress,
        record=True,
        max_record=max_record,
    )
    result = recorded(simulator, t_final)
    if atol is None and step is None:
        warn_of_small_states(_states(simulator), simulator.atol, simulator.context)
    return result


def recorded(simulator: Simulator, t_final: float) -> SimulationResult:
    """Advance to a time, and return the result; an error has that of the run up to there."""
    try:
        simulator.advance_to(t_final)
    except (Exception, KeyboardInterrupt) as error:
        failed = isinstance(error, Exception)
        error.result = _result(  # type: ignore[union-attr]
            simulator,
            "failed" if failed else "interrupted",
            str(error) if failed else f"interrupted at t = {simulator.context.time:.9g} s",
        )
        raise
    return result_of(simulator)


def _states(simulator: Simulator) -> Iterator[FloatArray]:
    """Yield the states at the end of a run, then those of all its steps."""
    yield simulator.context.continuous_state[np.newaxis]
    for rows in simulator.history.ledger().sources if simulator.history else ():
        yield rows.states(np.arange(len(rows.times)))


def result_of(simulator: Simulator) -> SimulationResult:
    """Return the result of a run that came to its end."""
    if simulator.termination is not None:
        message = (
            f"terminated by {simulator.terminated_by} at t = {simulator.context.time:.9g} s: "
            f"{simulator.termination.reason}"
        )
        return _result(simulator, "terminated", message)
    return _result(simulator, "completed", f"reached t = {simulator.context.time:.9g} s")


def _result(simulator: Simulator, outcome: str, message: str) -> SimulationResult:
    history = simulator.history or History(simulator.context)
    explanation = simulator.explain()
    return SimulationResult(
        simulator.system,
        simulator.context,
        history,
        simulator.statistics,
        outcome,
        f"{message}\n{explanation}",
    )
