"""Reads studies from files: `load_study`, which does not need the model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flexure.diagrams.checks.arguments import file_path
from flexure.diagrams.checks.errors import RecordFileError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.context_files import from_dict
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.results.records.provenance import STRUCTURE, differences, of_model
from flexure.solvers.sweeps.running.metric_columns import MetricColumns
from flexure.solvers.sweeps.running.sweep_record import Settings, SweepRecord
from flexure.solvers.sweeps.running.variants import SweptContexts
from flexure.solvers.sweeps.store.study_file import read_study
from flexure.solvers.sweeps.store.study_tables import Outline
from flexure.solvers.sweeps.sweep import Sweep
from flexure.solvers.sweeps.tables.sweep_tables import AbsentMetrics, AbsentModel
from flexure.solvers.tracing.signals import resolve


def load_study(
    path: str | Path, *, system: System | None = None, context: Context | None = None
) -> Sweep:
    """Read the runs that `sweep` stored with ``store=``, also while it is running.

    Nothing of the model is needed, imported or executed.

    Parameters
    ----------
    path : str or Path
        The file.
    system : System, optional
        The model, which only `Sweep.context` and those metrics of `Sweep.metric` need that find the
        step along the wires. It must be the model with which the runs were made.
    context : Context, optional
        Common values of all runs, needed if a block has parameters or states that are no numbers,
        texts or lists, which the file does not contain.

    Returns
    -------
    Sweep
        With all runs of the plan; the outcome of those that are not finished is "interrupted".

    Raises
    ------
    RecordFileError
        When the file cannot be read, is no study, or that of another model.

    See Also
    --------
    sweep : Simulate and store the runs.

    Examples
    --------
    >>> import flexure as fx
    >>> import tempfile
    >>> lag = fx.FirstOrderLag("lag", 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/lag.study"
    ...     _ = fx.sweep(lag, {"time_constant": [0.5, 1.0], "u": [1.0, 1.0]}, 1.0, store=path)
    ...     fx.load_study(path).final_states.round(3)
    array([[0.865],
           [0.632]])
    """
    name = file_path(path, "Cannot load a study")
    attempt = f"Cannot load a study from '{name}'"
    if system is not None:
        require_system(system, attempt)
    outline, done = read_study(Path(name), attempt)
    count, known = len(outline.plan), list[Any](outline.signals.values())
    record = SweepRecord.of(count, len(outline.states), known, outline.times)
    record.put(done.runs, done.record)
    metrics = MetricColumns(outline.metrics, count)
    metrics.put(done.runs, done.metrics)
    model: Any = AbsentModel(outline, name)
    variants, readers = model, dict[str, Any](outline.signals)
    if system is not None:
        model, variants = system, _variants(system, context, outline, attempt)
        readers = {signal: resolve(system, signal) for signal in outline.signals}
    integration = outline.integration or '{"method": "a class, which is not in the file"}'
    settings = Settings(model, outline.t_final, json.loads(integration), os.cpu_count() or 1)
    measuring = AbsentMetrics(readers, outline.times, outline.metrics)
    return Sweep(settings, variants, measuring, len(readers), record, metrics.columns)


def _variants(
    system: System, context: Context | None, outline: Outline, attempt: str
) -> SweptContexts:
    """Return the beginnings of the runs of the model of a study."""

    def require(kinds: Iterable[str], context: Context) -> None:
        found = differences(outline.provenance, of_model(context), kinds)
        if found:
            raise RecordFileError(
                attempt,
                expected="the model with which its runs were made",
                found=f"differences: {found}",
                remedy="Load it without system=, or with the context= that the runs have in common",
            )

    base = start_context(system, context, attempt)
    require(STRUCTURE, base)  # before values are loaded, which might not fit
    if context is None and outline.context is not None:
        base = from_dict(system, json.loads(outline.context))
    variants = SweptContexts(base, outline.plan)
    require(("value",), variants.base())
    return variants
