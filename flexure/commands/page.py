"""`flexure page`: a model as a page that runs by itself."""

from __future__ import annotations

from argparse import Namespace

from flexure.commands import DONE
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report


def run(arguments: Namespace) -> int:
    """Write a page into a file."""
    from flexure.solvers.pages.pages import page

    report = Report(arguments)
    with report.quiet():
        model = load_model(arguments)
        made = page(
            model.system,
            arguments.to,
            context=model.context,
            parameters=arguments.parameters,
            signals=arguments.signals,
            goals=arguments.goals,
            title=arguments.title,
        )
        report.add(model=model.word, system=model.system.label)
        report.save(f"{model.system.name}.html", made.save)
    report.end()
    return DONE
