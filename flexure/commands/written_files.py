"""Commands that write one file: `flexure draw`, `page`, `inspect`, `export` and `report`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report
from flexure.commands.parser import integration_options
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.systems.diagram import Diagram

_ENDINGS = {"dot": "dot", "mermaid": "mmd"}  # of texts


def draw(report: Report, arguments: Namespace) -> None:
    """Draw a diagram into a file, or print it as text."""
    model = load_model(arguments)
    diagram, kind = model.system, arguments.format
    options = {"depth": arguments.depth, "ports": arguments.ports}
    if not isinstance(diagram, Diagram):
        raise DeclarationError(
            f"Cannot draw '{model.word}'",
            expected="a diagram",
            found=f"the single block {diagram!r}",
        )
    report.add(model=model.word, system=diagram.label)
    name = f"{diagram.name}.{_ENDINGS.get(kind, kind)}"
    if kind in _ENDINGS:
        text = diagram.to_dot(**options) if kind == "dot" else diagram.to_mermaid(**options)
        if report.keeps:
            report.save(name, _writer(text))
        else:
            report.say(text.removesuffix("\n"))
            report.add(text=text)
    elif kind == "svg":
        report.save(name, lambda file: diagram.save_svg(file, **options))
    else:
        report.save(name, lambda file: diagram.plot(path=file, **options))


def _writer(text: str) -> Callable[[Path], Any]:
    def write(file: Path) -> None:
        with replacing(file) as stream:
            stream.write(text)

    return write


def write_page(report: Report, arguments: Namespace) -> None:
    """Write a model as a page that runs by itself."""
    from flexure.solvers.pages.pages import page

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


def inspect(report: Report, arguments: Namespace) -> None:
    """Write a block without states as a page with a slider for each constant."""
    from flexure.solvers.pages.inspectors import inspect_block

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


def export(report: Report, arguments: Namespace) -> None:
    """Write a Functional Mock-up Unit."""
    from flexure.solvers.export.fmi.fmu import to_fmu

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


def write_report(report: Report, arguments: Namespace) -> None:
    """Write a model as a page to send or to print, or a run of it if its end time is given."""
    from flexure.solvers.pages.reports import report as written
    from flexure.solvers.simulation.simulation import simulate
    from flexure.solvers.tracing.signals import resolve

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
