"""A diagram as C99: one header and one source, for microcontrollers and for other programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.result_classes import Answer
from flexure.solvers.export.c.c_source import PROBLEMS, CSource
from flexure.solvers.export.c.fixed_steps import StepPlan
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.integration.guard.stiffness_detection import NONSTIFF_METHOD, STIFF_METHOD
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.tracing.signals import Signal

Part = Literal["step", "exchange", "run", "slopes"]


@dataclass(frozen=True)
class Wanted:
    """What is to be written.

    Attributes
    ----------
    signals, inputs, parameters, method, step, precision
        As of `to_c`.
    name : str
        With what all names begin; that of the system when empty.
    parts : frozenset of str
        "step", "exchange", "run", "slopes".
    """

    signals: Sequence[Signal] | None = None
    inputs: Sequence[str] | None = None
    parameters: Sequence[str] | None = None
    method: str = "auto"
    step: float | None = None
    precision: str = "double"
    name: str = ""
    parts: frozenset[Part] = frozenset(("exchange", "run", "slopes"))


class CModel(Answer):
    """A diagram as C99."""

    _function = "to_c"

    def __init__(self, context: Context, wanted: Wanted) -> None:
        signals, inputs, method = wanted.signals, wanted.inputs, wanted.method
        parts, step, precision, name = wanted.parts, wanted.step, wanted.precision, wanted.name
        self.equations = ModelEquations(context, signals)
        self.name = _identifier(name or context.system.name)
        source = CSource(self.name, context, self.equations, inputs, adaptive="run" in parts)
        self.places = source.values.places
        self.drives = source.drives
        self.problems = dict(PROBLEMS)
        self.info: dict[str, Any] = {
            "name": context.system.name,
            "time": float(context.time),
            **source.values.info,
            "signals": self.equations.signal_rows(),
            "events": self.equations.event_rows(),
            "leftOut": self.equations.left_out,
        }
        plan = StepPlan.of(self.equations, method, step) if "step" in parts else None
        methods = _methods(self.equations, method) if "run" in parts else ()
        source.memory.take_steps(plan, [METHODS[each] for each in methods])
        source.write_access()
        if plan is not None:
            source.write_steps(plan)
        if methods:
            source.write_loops(methods)
        if "exchange" in parts or "run" in parts:
            source.write_exchange()
        if "slopes" in parts:
            source.write_slopes()
        self.header, self.source = source.text(single=precision == "single")

    def save(self, path: str | Path) -> None:
        """Write header and source into a folder."""
        for suffix, text in ((".h", self.header), (".c", self.source)):
            with replacing(Path(path) / f"{self.name}{suffix}") as stream:
                stream.write(text)


def _methods(equations: ModelEquations, method: str) -> tuple[str, ...]:
    """Return the methods whose loops are wanted."""
    if method != "auto":
        return (method,)
    jacobian = equations.jacobian
    if jacobian is None or jacobian.plan is not None:
        return (NONSTIFF_METHOD,)
    return (NONSTIFF_METHOD, STIFF_METHOD)


def _identifier(name: str) -> str:
    """Return a name as C takes it."""
    plain = re.sub(r"\W+", "_", name.encode("ascii", "replace").decode()).strip("_").lower()
    return plain if plain and not plain[0].isdigit() else f"model_{plain}"


__all__ = ["METHODS", "CModel"]
