"""An experiment as a page to send: what was asked, what was done, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import ContextError
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.contexts.value_places import several
from flexure.diagrams.interface.html import note
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.pages.document import printed
from flexure.solvers.pages.pages import Page
from flexure.solvers.pages.report_sections import ANNEX, SECTIONS, Section, Subject
from flexure.solvers.results.records.result import SimulationResult
from flexure.solvers.sweeps.sweep import Sweep
from flexure.solvers.sweeps.tables.sweep_tables import AbsentModel
from flexure.solvers.tracing.signals import Signal, resolve


def report(
    subject: SimulationResult | Sweep | System,
    context: Context | None = None,
    *,
    question: str = "",
    signals: Sequence[Signal | Sequence[Signal]] | None = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Page:
    """Write an experiment as a page to send or print.

    It contains the question, the diagram, the values that differ from the defaults, and flexures
    with their laws, constants and the largest utilization of their limits. For a run it also shows
    signals, step metrics and the poles at its end; for a sweep the head of its table, distributions
    and failures. An annex has energies, equations and the origin of the numbers. Elements with
    equal constants appear once. The page needs neither scripts nor a network, and prints on A4.

    If a section cannot be made, the page states the reason instead.

    Parameters
    ----------
    subject : SimulationResult, Sweep or System
        The experiment.
    context : Context, optional
        The values of a system; those of a default context when omitted. Runs have their own.
    question : str
        The question of the experiment, as plain text; an empty line begins a new paragraph.
    signals : sequence, optional
        Signals of a run to show; lists of them share a panel. When omitted, the inputs and outputs
        of controllers, or else the outputs.
    title : str, optional
        The name of the system when omitted.
    path : str or Path, optional
        Where to save the page.

    Returns
    -------
    Page

    Raises
    ------
    ContextError
        When a context is given for a run, or it belongs to another system.
    UnknownNameError
        When there is no signal of a name.

    See Also
    --------
    page : An interactive page.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=0.5)
    >>> page = fx.report(lag, question="How fast does it answer?")
    >>> page
    <Page 'lag', ... MB, recorded>
    """
    attempt = "Cannot write a report"
    require(isinstance(question, str), question, attempt, "a question, a text")
    require(title is None or isinstance(title, str), title, attempt, "a title, a text")
    about = _subject(subject, context, question, signals, attempt)
    shown = about.system.label if title is None else title
    main, annex = (
        [(name, inside) for name, section in part if (inside := _made(section, about))]
        for part in (SECTIONS, ANNEX)
    )
    whole = printed(shown, main, annex)
    made = Page(shown, whole, live=False)
    if path is not None:
        made.save(path)
    return made


def _subject(
    subject: Any, context: Context | None, question: str, signals: Any, attempt: str
) -> Subject:
    """Return what a report is about, or refuse it."""
    system: Any  # a stored sweep may know no more than its name
    result = subject if isinstance(subject, SimulationResult) else None
    sweep = subject if isinstance(subject, Sweep) else None
    start: Context | None = None
    if context is not None and (result is not None or sweep is not None):
        raise ContextError(
            attempt,
            expected="a run or a sweep alone, which has values of its own, or a system",
            found="a context beside it",
        )
    if result is not None:
        system, start = result.system, result._begun()
    elif sweep is not None:
        system = sweep.system
        if not isinstance(sweep._variants, AbsentModel):
            start = sweep._variants.base()  # what the runs have in common may not be the defaults
    else:
        require_system(subject, attempt)
        system, start = subject, start_context(subject, context, attempt)
    if signals is not None:
        signals = list(several(signals))
        for item in signals:
            for signal in item if isinstance(item, (list, tuple)) else [item]:
                resolve(system, signal)
    return Subject(system, start, question, signals, result, sweep)


def _made(section: Section, about: Subject) -> str:
    """Return a section, or why it cannot be made: a report is better than none."""
    try:
        with quietly():
            return "".join(section(about))
    except Exception as error:
        return note(f"This section could not be made: {str(error) or type(error).__name__}")
