"""`live`: checks what is to run with the clock, and makes a `Live` of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from flexure.diagrams.checks.arguments import file_path, is_one_of, mapping, require
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import Way, path_of, several
from flexure.diagrams.interface.option_names import answers_other_words
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import as_number, bounded
from flexure.solvers.export.c.c_model import CModel
from flexure.solvers.live_runs.charts_and_sliders import sliders
from flexure.solvers.live_runs.connections.channels import InputChannel, OutputChannel
from flexure.solvers.live_runs.connections.partners import Partner, partner_of
from flexure.solvers.live_runs.connections.wiring import Software, Wiring, by_path, together
from flexure.solvers.live_runs.live_report import Clock, MonotonicClock
from flexure.solvers.live_runs.live_run import Live, Plan
from flexure.solvers.simulation.run_control.method_selection import Method
from flexure.solvers.simulation.run_control.options import Tolerance
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.tracing.signals import Signal

_MEMORY = 2.0**28  # bytes of a recording


@answers_other_words
def live(
    system: System,
    *,
    context: Context | None = None,
    rate: float | Literal["max"] = 1.0,
    period: float = 1e-3,
    inputs: Mapping[Any, Any] | None = None,
    outputs: Mapping[Any, Any] | None = None,
    software: Mapping[str, CModel] | None = None,
    signals: Signal | Sequence[Signal] = (),
    parameters: Way | Sequence[Way] | None = None,
    timeout: float | Mapping[str, float] = math.inf,
    safe: Mapping[str, Any] | None = None,
    record: str | Path | None = None,
    max_record: float = _MEMORY,
    method: Method = "auto",
    rtol: Tolerance | None = None,
    atol: Tolerance | None = None,
    step: float | None = None,
    clock: Clock | None = None,
) -> Live:
    """Run a diagram in step with the clock, and exchange values with partners.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        Initial values, a root context; it is not changed. A default context when omitted.
    rate : float or "max"
        Simulated seconds per second: 1 for real time, 0.1 for slow motion, "max" without waiting.
    period : float
        Simulated time from one exchange of values to the next, in seconds. Sampled blocks should
        have multiples of it as their periods.
    inputs : mapping, optional
        Partners that send values, by the path of a free input, a parameter, or a port whose wire
        they replace: a `UDP`, `Serial` or `CAN`; a function ``f(time)``, whose value may be None
        for nothing new; or a queue. A tuple of paths takes the values of all from one partner.
    outputs : mapping, optional
        Partners that take values, by the path of a signal or a tuple of them: one of the same, a
        function ``f(time, values)``, or a queue. Values are lists of numbers.
    software : mapping, optional
        Controllers of `to_c`, by the paths of the blocks in place of which they run, compiled by
        the C compiler of this machine.
    signals : str, Handle or list of them, optional
        Further signals to record and to show.
    parameters : str, Handle or list of them, optional
        Numbers that have a slider on the page; a few of each block when omitted.
    timeout : float or mapping, optional
        Seconds of the clock after which an input without a new value is lost, for all or by path.
    safe : mapping, optional
        Safe values by path: what an input begins with and holds when it is lost, and what an output
        sends when a run has ended. Without one, an input begins with the value of the context, or
        0, and a lost one holds its last value.
    record : str or Path, optional
        Where each run writes the recording when it ends, as a NumPy archive with one array per
        signal; an older file is replaced as a whole or not at all.
    max_record : float
        Memory of the recording in bytes; the latest samples remain.
    method, rtol, atol, step
        As for `simulate`.
    clock : object, optional
        With methods ``now()``, which returns seconds, and ``sleep(seconds)``, for tests and for
        clocks of other devices. The monotonic clock of this machine when omitted.

    Returns
    -------
    Live
        ``live.run(60.0)`` runs, ``live.page()`` serves a page.

    Raises
    ------
    UnknownNameError
        When there is no such path.
    ContextError
        When a value cannot be set, or does not fit.
    ValueRefusedError
        When an argument is refused.

    See Also
    --------
    UDP : Exchange numbers as UDP packets.
    simulate : Run without a clock.
    widget : Move sliders in a notebook.

    Examples
    --------
    >>> import flexure as fx
    >>> import queue
    >>> sent = queue.Queue()
    >>> lag = fx.FirstOrderLag("lag", time_constant=1.0)
    >>> live = fx.live(lag, rate="max", inputs={"u": lambda time: 1.0}, outputs={"y": sent})
    >>> report = live.run(1.0)
    >>> report.steps, sent.qsize()
    (1000, 1000)
    >>> print(round(live["y"][-1], 4))
    0.6318
    """
    require_system(system, "Cannot run with the clock")
    attempt = f"Cannot run '{system.label}' with the clock"
    start = start_context(system, context, attempt)
    length = _positive(period, "period", attempt)
    ticking = MonotonicClock() if clock is None else clock
    fits = all(callable(getattr(ticking, name, None)) for name in ("now", "sleep"))
    require(fits, clock, attempt, "a clock with the methods now() and sleep(seconds)")
    compiled = [
        Software(system, path, _c_model(model, path, attempt), length)
        for path, model in mapping(
            {} if software is None else software, "software to be C models by path", attempt
        ).items()
    ]
    wiring = Wiring(system, start, attempt, compiled)
    sources, sinks = wiring.groups(inputs, "inputs"), wiring.groups(outputs, "outputs")
    partners = [each for _, each in (*sources, *sinks) if isinstance(each, Partner)]
    for each in partners:  # it has one format, and one number of components
        wanted = "an object of its own for each input and output, or a tuple of paths"
        require(partners.count(each) == 1, each, f"{attempt}: a partner is given twice", wanted)
    entries = wiring.entries([ways for ways, _ in sources])
    taken = [path_of(way) for ways, _ in sinks for way in ways]
    paths = [entry.path for group in entries for entry in group]
    values = by_path({} if safe is None else safe, {*paths, *taken}, "safe", attempt)
    moving = wiring.begin(values)
    reading = wiring.reading([ways for ways, _ in sinks], several(signals))
    plan = Plan(
        period=length,
        rate=math.inf if is_one_of(rate, ("max",)) else _positive(rate, "rate", attempt),
        clock=ticking,
        record=None if record is None else file_path(record, attempt),
        max_record=_positive(max_record, "max_record", attempt),
        settable=wiring.settable,
        reading=reading,
        parameters=parameters,
        software=compiled,
    )

    def tell(text: str) -> None:
        plan.events.append((moving.time, text))

    seconds = _timeouts(timeout, paths, attempt)
    for group, (_, partner) in zip(entries, sources, strict=True):
        names = [entry.path for entry in group]
        wait = min(seconds[name] for name in names)
        made = partner_of(partner, ", ".join(names), attempt)
        number = together(names, values, sum(entry.size for entry in group), attempt)
        plan.inputs.append(InputChannel(group, made, wait, number, tell))
    for places, (ways, partner) in zip(reading.places, sinks, strict=True):
        names = [path_of(way) for way in ways]
        made = partner_of(partner, ", ".join(names), attempt)
        number = together(names, values, places.size, attempt)
        plan.outputs.append(OutputChannel(names, made, places, number))
    for _ in sliders(system, moving, parameters, attempt):
        pass  # what has none is refused now
    simulator = Simulator(system, moving, method=method, rtol=rtol, atol=atol, step=step)
    return Live(system, simulator, plan)


def _positive(value: Any, name: str, attempt: str) -> float:
    """Return a finite number above 0."""
    return bounded(value, f"{attempt} with this {name}", lower=0.0, exclusive=True)


def _c_model(model: Any, path: str, attempt: str) -> CModel:
    fits = isinstance(model, CModel)
    require(fits, model, f"{attempt} and '{path}' as C", "what fx.to_c returns for this block")
    return model  # type: ignore[no-any-return]


def _timeouts(timeout: Any, paths: Sequence[str], attempt: str) -> dict[str, float]:
    """Return the seconds after which each input is lost."""
    given = timeout if isinstance(timeout, Mapping) else dict.fromkeys(paths, timeout)
    found = by_path(given, paths, "timeout", attempt)
    for path, value in found.items():
        found[path] = number = float(as_number(value, (), f"{attempt} with a timeout of '{path}'"))
        require(number > 0.0, value, attempt, "a timeout above 0 s")
    return dict.fromkeys(paths, math.inf) | found
