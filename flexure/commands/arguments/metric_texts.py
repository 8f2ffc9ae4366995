"""Metrics as words: ``overshoot``, ``overshoot(door.axis.angle)`` or ``rms(pid.u, start=1)``.

A name such as ``peak`` can be that of a step metric and of a function of `flexure.metrics`. Without
a signal it is the step metric, with a signal the function, as in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from flexure.commands.arguments.call_texts import Call
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted, suggestion

if TYPE_CHECKING:
    from flexure.diagrams.systems.system import System
    from flexure.solvers.results.measures.metrics import Metric

_OTHERS = ("Constraint", "Metric", "largest", "of", "smallest")  # which are not of signals


def metrics_of(
    calls: Sequence[Call], system: System, signals: Sequence[str] | None
) -> dict[str, Metric]:
    """Return metrics by their labels.

    A step metric without parentheses applies to the signals that were named, or, with none, to the
    only output of the system.
    """
    from flexure import metrics
    from flexure.solvers.results.measures.step_characteristics import StepInfo
    from flexure.solvers.tracing.signals import resolve

    figures = [field.name for field in fields(StepInfo)]
    kinds = [name for name in vars(metrics)["__all__"] if name not in _OTHERS]
    found: dict[str, Metric] = {}
    for each in calls:
        attempt = f"Cannot measure {each.text}"
        if each.name in figures and not each.args:
            paths = _responses(each, system, signals)
            for path in paths:
                label = each.text if len(paths) == 1 else f"{each.text} of {path}"
                step = Call(each.text, "step", (each.name, path), each.named)
                found[label] = step.of(metrics.step, attempt)
        elif each.name in kinds:
            found[each.text] = each.of(getattr(metrics, each.name), attempt)
        elif each.name in figures:
            step = Call(each.text, "step", (each.name, *each.args), each.named)
            found[each.text] = step.of(metrics.step, attempt)
        else:
            raise UnknownNameError(attempt, remedy=suggestion(each.name, [*figures, *kinds]))
    for metric in found.values():
        for signal in metric.signals:
            resolve(system, signal)  # refused before anything runs
    return found


def _responses(call: Call, system: System, signals: Sequence[str] | None) -> list[str]:
    """Return the signals to which a step metric applies."""
    from flexure.solvers.tracing.signals import resolve

    if signals is None:
        paths = [port.path for port in system.output_ports if port.size == 1]
        fits = len(paths) == 1
    else:
        paths = [path for path in signals if resolve(system, path).size == 1]
        fits = bool(paths)
    if not fits:
        raise ValueRefusedError(
            f"Cannot measure {call.text}",
            expected="a system with one output of one component, or signals with one component",
            found=quoted(paths),
            remedy=f"Name the signal, as in {call.name}(door.axis.angle)",
        )
    return paths
