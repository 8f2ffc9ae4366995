"""Keeping the runs of a sweep: what a study is about, for the file that it goes to."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from flexure.diagrams.checks.arguments import file_path, flag
from flexure.diagrams.checks.errors import FlexureError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context_files import to_dict
from flexure.diagrams.contexts.value_places import path_of
from flexure.solvers.analysis.equations.equations import state_names
from flexure.solvers.results.records import provenance
from flexure.solvers.results.records.exports import StoredSignal
from flexure.solvers.results.records.provenance import Entry, Fingerprints, Provenance, written
from flexure.solvers.simulation.run_control.options import IntegrationOptions
from flexure.solvers.simulation.simulator import Simulator
from flexure.solvers.sweeps.running.chunks import Chunk
from flexure.solvers.sweeps.running.metric_columns import Measuring
from flexure.solvers.sweeps.running.sweep_record import Settings
from flexure.solvers.sweeps.running.variants import SweptContexts
from flexure.solvers.sweeps.store.study_file import StudyFile
from flexure.solvers.sweeps.store.study_tables import Outline

_SECONDS = 1.0  # that a chunk is to take, which is what a crash may cost


class Kept(TypedDict, total=False):
    """The interface of a running sweep to its file."""

    earlier: Iterable[Chunk]
    seconds: float
    on_chunk: Callable[[Chunk], object]


#: Opens the file of a sweep, while this runs: ``with keep(settings, measuring, kept) as options``.
Keeper: TypeAlias = Callable[[Settings, Measuring, int], AbstractContextManager[Kept]]


def not_kept(*_: object) -> AbstractContextManager[Kept]:
    """Open no file."""
    return nullcontext(Kept())


def keeper(store: Any, force: Any, variants: SweptContexts, attempt: str) -> Keeper:
    """Return what opens the file that a user names, if any."""
    flag(force, "force", attempt)
    if store is None:
        if force:
            raise ValueRefusedError(attempt, expected="store= with force=", found="force= alone")
        return not_kept
    return partial(_kept, Path(file_path(store, attempt)), force, variants)


@contextmanager
def _kept(
    path: Path,
    force: bool,
    variants: SweptContexts,
    settings: Settings,
    measuring: Measuring,
    kept: int,
) -> Iterator[Kept]:
    """Keep the runs of a sweep in a file, and take those that are finished from there."""
    outline = _outline(variants, settings, measuring, [*measuring.readers][:kept])
    with StudyFile(path, outline, force) as study:
        yield Kept(earlier=study.done(), seconds=_SECONDS, on_chunk=study.write)


def _outline(
    variants: SweptContexts, settings: Settings, measuring: Measuring, signals: list[str]
) -> Outline:
    """Return what a study is about."""
    base = variants.base()
    try:
        context = json.dumps(to_dict(base))
    except FlexureError:  # with values that have no such form
        context = None
    try:
        integration = json.dumps(settings.integration)
    except TypeError:  # with a class as the method
        integration = None
    options = _options(settings, measuring, signals)
    return Outline(
        plan=variants.plan,
        provenance=provenance.of_model(base) | options | provenance.of_versions(),
        label=settings.system.label,
        t_final=settings.t_final,
        times=measuring.times,
        states=state_names(base),
        signals={path: StoredSignal.of(measuring.readers[path]) for path in signals},
        metrics=measuring.units,
        varied=variants.varied,
        integration=integration,
        context=context,
    )


def _options(settings: Settings, measuring: Measuring, signals: Iterable[str]) -> Provenance:
    """Return the options of a sweep, those that were not given with their defaults."""
    prints = Fingerprints()
    known = inspect.signature(Simulator.__init__).parameters
    given: dict[str, Any] = {**settings.integration}
    found = {
        Entry("option", name): written(given.get(name, known[name].default), prints)
        for name in sorted(IntegrationOptions.__optional_keys__)
    }
    found[Entry("option", "t_final")] = repr(settings.t_final)
    found[Entry("option", "times")] = written(measuring.times, prints)
    found[Entry("option", "signals")] = quoted(signals, limit=10**9)
    for name, metric in measuring.metrics.items():
        parts = [[path_of(s) for s in metric.signals], list(metric.responses), metric._calc]
        digest = prints.of(*parts, list(metric.functions))
        found[Entry("option", f"metric {name}")] = f"{metric.label} {digest}"
    return found
