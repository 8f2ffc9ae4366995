"""A diagram as JavaScript: the text of one function, and its description.

The function ``flexureModel()`` is put together from

``arithmetic.js`` and the kernels of `flexure.solvers.export.operations`
    operations of NumPy that JavaScript has not, and helpers of equations;
``const info``, ``places``, ``start``
    plain data, see `JavaScriptModel`; ``places`` has {array: "x" | "env", at, size} of each value
    that can be set, by path, and ``start`` the numbers of the context, {time, x, env};
``const equations``
    what the diagram computes, from a trace;
``evaluate.js``
    ``startingValues(options)`` gives {time, x, env} for the requested values,
    ``signalReader(paths)`` a function of signals, and ``evaluate(options)`` all numbers of one
    instant;
the loops of `flexure.solvers.export.javascript.model_text`
    for the methods that are wanted;
``assemble.js``
    ``assemble(time, x, env, asked)`` assembles mechanisms with loops;
``run_memory.js``, ``recorder.js``, ``simulate.js``
    ``simulate(options)`` runs the model, ``begin(options)`` does so in parts.

All equations are functions ``f(t, x, env, out)`` over Float64Arrays. The environment ``env`` has
``equations.size`` numbers: the discrete values of all blocks, the parameters, the free inputs, and
then what functions hand on. ``equations.prepare(env)`` has to be called when parameters have
changed. The members of ``equations`` are

=================  ===============================================================================
states, discrete   numbers of states, and of discrete values, with which ``env`` begins
size               length of ``env``
timed              whether the derivatives depend on time
rhs                their function
jacobian           {rows, columns, values}: entries that are not always zero; or null
noJacobian         why there is none
clocks             [{period, offset}] of the events that matter
witnesses          {count, values}: the witness functions
events             [{path, kind, trigger, number, targets, reason, values}] in the order in which
                   they run when they are due together. ``kind`` is "publish", "discrete" or
                   "unrestricted"; ``trigger`` is "initialization", "step", "clock", "witness" or
                   "settling", and ``number`` which clock or witness function. ``values`` computes
                   what an update writes to ``targets``: the states, and beyond them
                   (``target - states``) the discrete values. In a publish it computes a number
                   that is not zero if the publish ends the run, for the ``reason``; it is null if
                   it never does.
breaks             {count, values}: the next break time of each block that has some, of which those
                   later than t count
closings           {paths, memory, values} of mechanisms with loops: ``memory()`` gives tables and
                   room of `ClosingData`; ``values`` compute the arrays of `ClosingEquations`, end
                   to end
memory             gives what the structures of a run begin with, see `run_tables`
signals            {parts, needs, ends}: functions of all signals, which of them each one needs, and
                   where each ends among the numbers of all; see ``signalReader``
=================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.value_places import several
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.solvers.export.javascript.equation_functions import number
from flexure.solvers.export.javascript.kernel_functions import arithmetic
from flexure.solvers.export.javascript.model_text import (
    checked_method,
    equations_text,
    literal,
    loops_text,
    methods_of,
)
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.export.model_values import ModelValues
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.tracing.signals import Signal

#: In the place of ``assemble.js`` where no mechanism has loops.
_NO_CLOSINGS = "const assemble = () => [];"


class JavaScriptModel(Answer):
    """A diagram as JavaScript source text.

    Made by `to_javascript`. The text is pure: it imports nothing, asks for nothing and evaluates no
    other text, so it runs in pages, in workers and in Node alike. ``flexureModel()`` returns an
    object of functions and of ``info``.

    ``evaluate({time, state, parameters, inputs, initial, signals})``
        gives ``{derivatives, signals, jacobian, breaks}`` at one instant: Float64Arrays, that of
        each signal by its path, the Jacobian of the derivatives by the state as ``{rows, columns,
        values}``, and the next break time of each block that has some, in their order.
        ``parameters``, ``inputs`` and ``initial`` hold numbers or arrays by path, row by row; what
        is left out is what the context had. ``state`` is the whole state.

    Attributes
    ----------
    text : str
        The text of ``function flexureModel() {...}``.
    info : dict
        What the model says about itself, as plain data; in JavaScript ``flexureModel().info``:

        - ``name``, and the ``time`` of the context;
        - ``states`` and ``discrete``, component by component: ``path``, ``unit``, ``initial``;
        - ``parameters``: ``path``, ``labels`` of the components (none where there is one without a
          name), ``unit``, ``doc``, ``lower`` and ``upper`` (None where there is no bound),
          ``exclusive``, whether values may be ``infinite``, ``value`` (row by row) and ``shape``;
        - ``relations`` that parameters have to keep: ``left``, ``comparison``, ``right``;
        - ``inputs`` that nothing feeds: ``path``, ``labels``, ``unit``, ``doc``, ``value`` (None
          where there is none) and whether one is ``required``;
        - ``signals``: ``path``, ``labels``, ``unit``, ``size``, ``doc``;
        - ``events``: ``path``, ``kind``, ``trigger``;
        - ``leftOut``: why a signal is missing, by path.

    See Also
    --------
    to_javascript : Write the model of a system.
    page : A page that uses it.

    Examples
    --------
    >>> import flexure as fx
    >>> model = fx.to_javascript(fx.FirstOrderLag("lag", time_constant=2.0))
    >>> [row["path"] for row in model.info["parameters"]]
    ['time_constant', 'gain']
    """

    _function = "to_javascript"

    def __init__(self, context: Context, signals: Sequence[Signal] | None, method: str) -> None:
        equations = ModelEquations(context, signals)
        environment = Environment(equations.discrete.count, equations.discrete.starts)
        values = ModelValues(context, equations, environment)
        self.info = values.info
        start = {"time": float(context.time), "x": context.store.x.tolist(), "env": values.numbers}
        self.text = "\n".join(
            [
                "function flexureModel() {",
                '"use strict";',
                arithmetic(),
                f"const info = {literal(self.info)};",
                f"const places = {literal(values.places)};",
                f"const start = {literal(start)};",
                equations_text(equations, environment),
                _asset("evaluate.js"),
                loops_text(methods_of(method), bool(equations.closings)),
                _asset("assemble.js") if equations.closings else _NO_CLOSINGS,
                f"const usual = {literal({'method': method, 'rtol': context.accuracy or 1e-6})};",
                f"const stiffFrom = {number(equations.stiff_from())};",
                _asset("run_memory.js"),
                _asset("recorder.js"),
                _asset("simulate.js"),
                "return { info, evaluate, simulate, begin, startingValues, signalReader,",
                "equations };",
                "}\n",
            ]
        )

    def save(self, path: str | Path) -> None:
        """Write the text to a file, of which ``require`` of Node returns the function.

        Parameters
        ----------
        path : str or Path
            Where to; a file that is there is replaced.
        """
        with replacing(path) as stream:
            stream.write(self.text)
            stream.write('if (typeof module !== "undefined") module.exports = flexureModel;\n')

    def __repr__(self) -> str:
        counts = {name: len(self.info[name]) for name in ("states", "parameters", "signals")}
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        return f"<JavaScriptModel of '{self.info['name']}': {listed}, {len(self.text)} characters>"


def _asset(name: str) -> str:
    """Return the text of a file of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def to_javascript(
    system: System,
    context: Context | None = None,
    *,
    signals: Signal | Sequence[Signal] | None = None,
    method: str = "auto",
) -> JavaScriptModel:
    """Write a diagram as JavaScript, for pages that run without Python.

    Derivatives with their exact Jacobian, outputs, witness functions, updates and break times come
    from one trace of the equations, and give their numbers, but for the last bits of functions such
    as ``sin``. All parameters, initial states and free inputs stay variable.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        A root context of it, whose values the model begins with; a default one when omitted.
    signals : str, Handle or list of them, optional
        The ports and states that can be asked for. When omitted, all outputs and states that can
        be traced, which makes long texts of large plants.
    method : str
        By which the model integrates: "RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P",
        "ESDIRK4", or "auto", which is RK45, and Rodas5P where the diagram is stiff.

    Returns
    -------
    JavaScriptModel
        The text and what it says about itself.

    Raises
    ------
    ValueRefusedError
        When the method has no loop that is written as JavaScript.
    TraceError
        When derivatives, a signal that was asked for, an update, a witness function or a break time
        cannot be traced, or are too long; the text names the block.
    ContextError
        When the context belongs to another system.

    See Also
    --------
    page : An HTML page that runs a system.
    compiled_equations : Compiled equations for SciPy.

    Notes
    -----
    Publish handlers are for Python: they log and print. A model contains only whether they end the
    run.

    Examples
    --------
    >>> import flexure as fx
    >>> model = fx.to_javascript(fx.FirstOrderLag("lag", time_constant=2.0))
    >>> [row["path"] for row in model.info["parameters"]]
    ['time_constant', 'gain']
    >>> model.text.splitlines()[0]
    'function flexureModel() {'
    """
    attempt = "Cannot write JavaScript"
    require_system(system, attempt)
    context = system.create_default_context() if context is None else context
    require_root(context, system, f"Cannot write '{system.label}' as JavaScript")
    signals = None if signals is None else several(signals)
    return JavaScriptModel(context, signals, checked_method(method))
