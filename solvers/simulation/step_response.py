"""Step responses: applies a step to an input of a system and measures an output."""

from __future__ import annotations

from typing import Any

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.results.measures.step_responses import StepResponse, record_response
from flexure.solvers.results.measures.step_sources import StepFinder
from flexure.solvers.simulation.simulation import simulate
from flexure.solvers.tracing.signals import Signal


def step_response(
    system: System,
    entry: InputPort | str,
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
    **options: Any,
) -> StepResponse:
    """Apply a step to a free input port and record the response of a signal.

    The step occurs at the time of the context: before it, the input has its old value; after it,
    the value ``to``. The states start from those of the context.

    Parameters
    ----------
    system : System
        A block or diagram.
    entry : InputPort or str
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
    port = entry if isinstance(entry, InputPort) else system.input_port(entry)
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
