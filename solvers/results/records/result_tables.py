"""Notebook display of runs and responses: outcomes, and small drawings of signals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.interface.html import fold, heading, lines, note
from flexure.diagrams.values.tables import Table
from flexure.solvers.results.records.statistics import Statistics
from flexure.solvers.results.records.thumbnails import POINTS, thinned, thumbnail
from flexure.solvers.tracing.signals import Reader

if TYPE_CHECKING:
    from flexure.solvers.results.measures.disturbances import DisturbanceResponse
    from flexure.solvers.results.measures.step_responses import StepResponse
    from flexure.solvers.results.records.result import SimulationResult
    from flexure.solvers.results.records.stored_results import StoredResult

_SIGNALS = 4  # that are drawn
_NAMES = 60  # of signals in a table


def result_pieces(result: SimulationResult) -> Iterator[str]:
    """Show the outcome of a run, its foremost signals, and its statistics."""
    time = result.time
    about = f"{result.outcome}, t = {time[0]:g} to {time[-1]:g} s, {result.statistics.steps} steps"
    yield heading("Simulation", result.system.label, about)
    if result.outcome != "completed":
        yield note(result.message)
    with suppress(Exception):  # of a run that failed, there may be none to be had
        names = result.foremost[:_SIGNALS]
        grid = np.linspace(time[0], time[-1], POINTS)
        for name, values in zip(names, result.sample_all(names, grid), strict=True):
            yield thumbnail(name, result.resolve(name).unit, grid, values)
    units = ((handle.path, Reader(handle, None).unit) for handle in result._handles())
    yield from _folded(result.statistics, Table(("path", "unit"), units))


def stored_pieces(stored: StoredResult) -> Iterator[str]:
    """Show the outcome of a run from a file, its first signals, and its statistics."""
    about = f"{stored.outcome}, {len(stored.signals)} signals at {len(stored.time)} times"
    yield heading("Stored result", stored.label, about)
    if stored.outcome != "completed":
        yield note(stored.message)
    units = [(each.name, each.reader.unit) for each in stored._table.series]
    for name, unit in units[:_SIGNALS] if len(stored.time) else ():
        yield thumbnail(name, unit, *thinned(stored.time, stored[name]))
    yield from _folded(stored.statistics, Table(("path", "unit"), units))


def response_pieces(response: StepResponse | DisturbanceResponse) -> Iterator[str]:
    """Show a response with its target, and its metrics."""
    yield heading(type(response).__name__, response.name)
    levels = [response.info.target]
    yield thumbnail(
        response.name, response.unit, *thinned(response.time, response.values), levels=levels
    )
    yield lines(str(response.info))


def _folded(statistics: Statistics, signals: Table) -> Iterator[str]:
    counts = asdict(statistics)
    methods = counts.pop("methods")
    inside = Table(("count", "number"), counts.items()).to_html()
    inside += Table(("from t [s]", "method", "why"), methods[:_SIGNALS]).to_html()
    yield fold("Statistics", inside)
    yield fold("Signals", signals.to_html(_NAMES), len(signals))
