"""`flexure modes`: natural frequencies, damping and shapes."""

from __future__ import annotations

from argparse import Namespace

from flexure.commands import DONE
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report
from flexure.commands.linearize import point_of


def run(arguments: Namespace) -> int:
    """Find the modes of a model."""
    from flexure.solvers.analysis.modes.modes import modes

    report = Report(arguments)
    with report.quiet():
        model = load_model(arguments)
        found = modes(model.system, point_of(model, arguments, report))
        report.say(f"{found!r}; {found.how}")
        report.say()
        report.say(found.table())
        if arguments.energies:
            report.say()
            report.say(found.energy_table())
            report.add(energies=found.energy_table())
        report.add(
            model=model.word,
            system=model.system.label,
            how=found.how,
            modes=[
                row | {"poles": mode.poles, "participation": mode.participation}
                for row, mode in zip(found.table(), found, strict=True)
            ],
        )
        if arguments.plot:
            report.save(f"{model.system.name}_modes.png", lambda file: found.plot(path=file))
    report.end()
    return DONE
