"""`flexure inspect`: a block without states as a page with a slider for each constant."""

from __future__ import annotations

from argparse import Namespace

from flexure.commands import DONE
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report


def run(arguments: Namespace) -> int:
    """Write a page into a file."""
    from flexure.solvers.pages.inspectors import inspect_block

    report = Report(arguments)
    with report.quiet():
        model = load_model(arguments)
        block = model.system.get_system(arguments.block) if arguments.block else model.system
        made = inspect_block(
            block,
            model.context,
            measured=arguments.measured,
            ranges={span.path: (span.low, span.high) for span in arguments.range},
            title=arguments.title,
        )
        report.add(model=model.word, system=block.label)
        report.save(f"{block.name}.html", made.save)
    report.end()
    return DONE
