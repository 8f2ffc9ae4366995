"""`flexure report`: a model, or a run of it, as a page to send or to print."""

from __future__ import annotations

from argparse import Namespace

from flexure.commands import DONE
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report
from flexure.commands.parser import integration_options


def run(arguments: Namespace) -> int:
    """Write a report into a file, about a run if its end time is given."""
    from flexure.solvers.pages.reports import report as written
    from flexure.solvers.simulation.simulation import simulate
    from flexure.solvers.tracing.signals import resolve

    report = Report(arguments)
    with report.quiet():
        model = load_model(arguments)
        options = integration_options(arguments)
        for path in arguments.signals or ():
            resolve(model.system, path)  # refused before anything runs
        asked = {name: getattr(arguments, name) for name in ("question", "signals", "title")}
        if arguments.to is None:
            made = written(model.system, model.context, **asked)
        else:
            result = simulate(
                model.system, arguments.to, context=model.context, progress=True, **options
            )
            made = written(result, **asked)
        report.add(model=model.word, system=model.system.label)
        report.save(f"{model.system.name}_report.html", made.save)
    report.end()
    return DONE
