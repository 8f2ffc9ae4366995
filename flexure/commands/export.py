"""`flexure export`: a model for other tools."""

from __future__ import annotations

from argparse import Namespace

from flexure.commands import DONE
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report


def run(arguments: Namespace) -> int:
    """Write a Functional Mock-up Unit into a file."""
    from flexure.solvers.export.fmi.fmu import to_fmu

    report = Report(arguments)
    with report.quiet():
        model = load_model(arguments)
        unit = to_fmu(
            model.system,
            model.context,
            kinds=arguments.kinds,
            version=arguments.fmi,
            signals=arguments.signals,
            inputs=arguments.inputs,
            parameters=arguments.parameters,
            platforms=arguments.platforms,
        )
        report.add(model=model.word, system=model.system.label)
        report.add(inputs=unit.inputs, outputs=unit.outputs, parameters=unit.parameters)
        report.save(arguments.fmu, unit.save)
    report.end()
    return DONE
