"""A diagram as JavaScript: the text of one function, and what it says about itself.

The function ``flexureModel()`` is put together from

``arithmetic.js``
    operations of NumPy that JavaScript has not, and helpers of equations;
``const info``, ``places``, ``start``
    plain data, see `JavaScriptModel`; ``places`` has {array: "x" | "env", at, size} of each value
    that can be set, by path, and ``start`` the numbers of the context, {time, x, env};
``const equations``
    what the diagram computes, from a trace;
``evaluate.js``
    ``startingValues(options)`` gives {time, x, env} for the values that somebody asks for,
    ``signalReader(paths)`` a function of signals, and ``evaluate(options)`` all numbers of one
    instant.

All equations are functions ``f(t, x, env, out)`` over Float64Arrays. The environment ``env`` has
``equations.size`` numbers: the discrete values of all blocks, the parameters, the free inputs, and
then what functions hand on. ``equations.prepare(env)`` has to be called when parameters have
changed. The members of ``equations`` are

=================  ===============================================================================
states, discrete   numbers of states, and of discrete values, with which ``env`` begins
size               length of ``env``
timed              whether the derivatives depend on time
rhs                their function
jacobian           {rows, columns, values}: entries that are not always zero, or null
noJacobian         why there is none
clocks             [{period, offset}] of the events that matter
witnesses          {count, directions (-1 falling, 1 rising, 0 either), longest, values}: the
                   witness functions, and the longest time for which they may be left alone
events             [{path, kind, trigger, number, targets, reason, values}] in the order in which
                   they run when they are due together. ``kind`` is "publish", "discrete" or
                   "unrestricted"; ``trigger`` is "initialization", "step", "clock" or "witness",
                   and ``number`` which of the last two. ``values`` computes what an update writes
                   to ``targets``: the states, and beyond them (``target - states``) the discrete
                   values. That of a publish gives a number that is not zero where it ends the run,
                   for the ``reason``; null where it never does.
breaks             {count, values}: the next break time of each block that has some, of which those
                   later than t count
signals            {parts, needs, ends}: functions of all signals, which of them each one needs, and
                   where each ends among the numbers of all; see ``signalReader``
=================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from flexure.diagrams.context import Context
from flexure.diagrams.handles import require_root
from flexure.diagrams.system import System, require_system
from flexure.solvers.javascript.description import ModelValues
from flexure.solvers.javascript.equation_functions import number
from flexure.solvers.javascript.loops import loops_text, methods_of
from flexure.solvers.javascript.model_equations import ModelEquations
from flexure.solvers.javascript.model_text import equations_text, literal
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.tracing.signals import Signal


class JavaScriptModel:
    """A diagram as the text of a function of JavaScript.

    Attributes
    ----------
    text : str
        The text of ``function flexureModel() {...}``.
    info : dict
        What the model says about itself, ``flexureModel().info`` in JavaScript.
    """

    def __init__(
        self,
        context: Context,
        signals: Sequence[Signal] | None = None,
        method: str = "auto",
    ) -> None:
        equations = ModelEquations(context, signals)
        environment = Environment(equations.discrete.count, equations.discrete.starts)
        values = ModelValues(context, equations, environment)
        self.info: dict[str, Any] = {
            "name": context.system.name,
            **values.info,
            "signals": [
                {
                    "path": each.path,
                    "labels": [str(label) for label in each.reader.labels],
                    "unit": each.reader.unit,
                    "size": each.reader.size,
                    "doc": each.reader.doc,
                }
                for each in equations.signals
            ],
            "events": [
                {"path": each.path, "kind": each.kind, "trigger": each.trigger}
                for each in equations.events
            ],
            "leftOut": equations.left_out,
        }
        start = {
            "time": float(context.time),
            "x": context.store.x.tolist(),
            "env": values.numbers,
        }
        self.text = "\n".join(
            [
                "function flexureModel() {",
                '"use strict";',
                _asset("arithmetic.js"),
                f"const info = {literal(self.info)};",
                f"const places = {literal(values.places)};",
                f"const start = {literal(start)};",
                equations_text(equations, environment),
                _asset("evaluate.js"),
                loops_text(methods_of(method)),
                f"const defaultMethod = {literal(method)};",
                f"const stiffFrom = {number(equations.stiff_from())};",
                _asset("simulate.js"),
                "return { info, evaluate, simulate, startingValues, signalReader, equations };",
                "}\n",
            ]
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the text to a file, of which Node's ``require`` returns the function."""
        ending = 'if (typeof module !== "undefined") module.exports = flexureModel;\n'
        Path(path).write_text(self.text + ending, encoding="utf-8")


def _asset(name: str) -> str:
    """Return the text of a file of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def to_javascript(
    system: System,
    context: Context | None = None,
    *,
    signals: Sequence[Signal] | None = None,
    method: str = "auto",
) -> JavaScriptModel:
    """Return a diagram as JavaScript."""
    attempt = "Cannot write JavaScript"
    require_system(system, attempt)
    context = system.create_default_context() if context is None else context
    require_root(context, system, f"Cannot write '{system.label}' as JavaScript")
    return JavaScriptModel(context, signals, method)


__all__ = ["JavaScriptModel", "to_javascript"]
