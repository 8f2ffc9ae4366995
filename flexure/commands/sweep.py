"""`flexure sweep`: many runs of one model."""

from __future__ import annotations

from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.commands import DONE, FINDINGS
from flexure.commands.arguments.model_files import load_model
from flexure.commands.arguments.plan_texts import metrics_of, plan_of
from flexure.commands.command_output import Report
from flexure.commands.parser import integration_options
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.values.tables import Table

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from flexure.solvers.sweeps.plans.plans import Plan
    from flexure.solvers.sweeps.sweep import Sweep

_ROWS = 40  # of the table of runs, beyond which it is summed up
_SHOWN = 3  # failures


def run(report: Report, arguments: Namespace) -> int:
    """Sweep a model; runs finished before an interruption are reported and kept."""
    from flexure.solvers.sweeps.sweeps import sweep

    model = load_model(arguments)
    plan = plan_of(arguments, model.context)
    report.say(repr(plan))
    options: dict[str, Any] = integration_options(arguments)
    if arguments.threads is not None:
        options["threads"] = arguments.threads
    if report.keeps or arguments.json:
        options["signals"] = arguments.signals or ()
    metrics = metrics_of(arguments.metrics, model.system, arguments.signals)
    report.add(model=model.word)
    report.prepare()
    try:
        with _workers(arguments.workers) as executor:
            found = sweep(
                model.system,
                plan,
                arguments.to,
                context=model.context,
                metrics=metrics,
                store=arguments.store,
                force=arguments.force,
                progress=arguments.progress,
                executor=executor,
                **options,
            )
    except KeyboardInterrupt as error:
        partial: Sweep | None = getattr(error, "result", None)
        if partial is not None:
            _tell(report, partial, plan)
            report.end()
        raise
    _tell(report, found, plan)
    return FINDINGS if found.failures else DONE


def _workers(count: int | None) -> AbstractContextManager[Executor | None]:
    """Return processes that share the runs, if they are wanted."""
    if count is None:
        return nullcontext()
    if count < 1:
        raise ValueRefusedError(
            "Cannot use this number of workers", expected="a positive integer", found=f"{count}"
        )
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def _tell(report: Report, found: Sweep, plan: Plan) -> None:
    columns = _columns(found)
    report.say(f"{found!r}\nruns: {found.how}\n")
    if len(found) <= _ROWS:
        report.say(Table(("run", *columns), zip(range(len(found)), *columns.values(), strict=True)))
    elif found.metrics:
        report.say(_summary(found))
    for index, reason in list(found.failures.items())[:_SHOWN]:
        report.say(f"\nrun {index} failed: {reason}")
    if len(found.failures) > _SHOWN:
        report.say(f"\n{len(found.failures) - _SHOWN} more runs failed")
    report.add(
        system=found.system.label,
        how=found.how,
        dims=plan.dims,
        shape=plan.shape,
        values=found.values,
        metrics=found.metrics,
        outcomes=found.outcomes,
        failures=found.failures,
    )
    if found.signals:
        report.add(signals={"time": found.times} | {path: found[path] for path in found.signals})
    if report.keeps:
        report.save("runs.csv", found.to_csv)
        report.save("plan.npz", plan.save)
        if found.signals:
            report.save("signals.npz", lambda file: _write_signals(file, found))


def _columns(found: Sweep) -> dict[str, Any]:
    """Return the reported values of each run, by column."""
    from flexure.solvers.sweeps.plans.plans import by_component

    return by_component(found.values) | found.metrics | {"outcome": found.outcomes}


def _summary(found: Sweep) -> Table:
    """Return a table of what the metrics of many runs are like."""
    rows = []
    for name, values in found.metrics.items():
        good = values[np.isfinite(values)]
        figures = [np.nan] * 5
        if len(good):
            figures = [good.min(), *np.quantile(good, [0.05, 0.5, 0.95]), good.max()]
        rows.append((name, *figures, len(values) - len(good)))
    return Table(("metric", "least", "5 %", "median", "95 %", "greatest", "lacking"), rows)


def _write_signals(file: Path, found: Sweep) -> None:
    arrays: dict[str, Any] = {path: found[path] for path in found.signals}
    with replacing(file, binary=True) as stream:
        np.savez_compressed(stream, time=found.times, **arrays)
