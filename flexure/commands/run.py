"""`flexure run`: one simulation."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.commands.arguments.model_files import Model, load_model
from flexure.commands.arguments.plan_texts import metrics_of
from flexure.commands.command_output import Report
from flexure.commands.parser import integration_options
from flexure.diagrams.values.tables import Table

if TYPE_CHECKING:
    from flexure.solvers.results.records.result import SimulationResult

_MOST_NUMBERS = 5_000_000  # of a file, which takes about 100 MB
_MOST = 12  # outputs that are shown, and panels of a plot, where nobody named them


def run(report: Report, arguments: Namespace) -> None:
    """Simulate a model; a run that fails or is interrupted is reported before the error."""
    from flexure.solvers.simulation.simulation import simulate
    from flexure.solvers.tracing.signals import resolve

    model = load_model(arguments)
    options = integration_options(arguments)
    for path in [*(arguments.signals or ()), *(arguments.plot or ())]:
        resolve(model.system, path)  # refused before anything runs
    metrics = metrics_of(arguments.metrics, model.system, arguments.signals)
    report.prepare()
    try:
        result = simulate(
            model.system, arguments.to, context=model.context, progress=True, **options
        )
    except (Exception, KeyboardInterrupt) as error:
        partial: SimulationResult | None = getattr(error, "result", None)
        if partial is not None and partial.context.time > model.context.time:
            _tell(report, model, partial, arguments)
            report.end()
        raise
    _tell(report, model, result, arguments)
    measured = {name: metric(result) for name, metric in metrics.items()}
    if measured:
        report.say()
        report.say(Table(("metric", "value"), measured.items()))
        report.add(metrics=measured)


def _tell(report: Report, model: Model, result: SimulationResult, arguments: Namespace) -> None:
    paths = arguments.signals or _foremost(result)
    data = dict(zip(paths, result.sample_all(paths, result.time), strict=True))
    ending, _, how = result.message.partition("\n")
    if result.outcome == "failed":  # the error itself follows
        ending = f"stopped at t = {result.context.time:.9g} s"
    report.say(f"'{result.system.label}': {ending}\n{how}")
    report.say()
    report.say(_ranges(result, data))
    report.add(
        model=model.word,
        system=result.system.label,
        outcome=result.outcome,
        message=result.message,
        time=result.context.time,
        final={path: values[-1] for path, values in data.items()},
        statistics=asdict(result.statistics),
    )
    if arguments.signals:
        report.add(signals={"time": result.time} | data)
    if report.keeps:
        written = arguments.signals or list(result.signals)
        times = _written_times(result, written)
        report.save("signals.csv", lambda file: result.to_csv(file, written, times))
        if times is not None:
            report.say(
                f"It has {len(times)} of {len(result.time)} times: all of them would be more than "
                f"{_MOST_NUMBERS} numbers. Name fewer signals with --signals for more of them."
            )
        report.save("context.json", result.context.save)
    if arguments.plot is not None:
        name = f"{result.system.name}_signals.png"
        plotted = arguments.plot or paths
        report.save(name, lambda file: result.plot(plotted, path=file))


def _written_times(result: SimulationResult, signals: list[str]) -> Any:
    """Return the times of a file, or None for all, of which the size is bounded."""
    width = sum(result.resolve(path).size for path in signals) + 1
    most = max(2, _MOST_NUMBERS // width)
    if len(result.time) <= most:
        return None
    places = np.linspace(0, len(result.time) - 1, most).round().astype(int)
    return np.unique(result.time[places])


def _foremost(result: SimulationResult) -> list[str]:
    """Return what to show unless signals are named: of a plant with many outputs, the states."""
    paths = list(result.foremost)
    if len(paths) <= _MOST:
        return paths
    return [str(path) for path in result.system.signals().where(kind="state")["path"]] or paths


def _ranges(result: SimulationResult, data: dict[str, Any]) -> Table:
    """Return a table with the range of each component, and where it ends."""
    rows = []
    for path, values in data.items():
        reader = result.resolve(path)
        columns = {path: values}
        if values.ndim > 1:
            columns = {f"{path}[{x}]": values[:, k] for k, x in enumerate(reader.labels)}
        rows += [
            (name, reader.unit, column.min(), column.max(), column[-1])
            for name, column in columns.items()
        ]
    return Table(("signal", "unit", "least", "greatest", "at the end"), rows)
