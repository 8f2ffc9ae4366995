"""`flexure draw`: the diagram of a model."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flexure.commands import DONE
from flexure.commands.arguments.model_files import load_model
from flexure.commands.command_output import Report
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.systems.diagram import Diagram

_ENDINGS = {"dot": "dot", "mermaid": "mmd"}  # of texts


def run(arguments: Namespace) -> int:
    """Draw a diagram into a file, or print it as text."""
    report = Report(arguments)
    with report.quiet():
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
    report.end()
    return DONE


def _writer(text: str) -> Callable[[Path], Any]:
    def write(file: Path) -> None:
        with replacing(file) as stream:
            stream.write(text)

    return write
