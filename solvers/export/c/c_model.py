"""A diagram as C99: one header and one source, for microcontrollers and for other programs."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from flexure.diagrams.checks.arguments import file_path, items_of, one_of, require
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import Paths, each_free_input, each_parameter
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.value_places import Way, several
from flexure.diagrams.files.atomic_files import replacing
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import as_number
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.symbolic_values import PARAMETER, Key
from flexure.solvers.export.c.c_source import PROBLEMS, CSource, Wanted
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.export.model_values import chosen_paths
from flexure.solvers.native.kernels.steps.fixed import FIXED
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.tracing.signals import Signal

_ATTEMPT = "Cannot write C"


class CSize(NamedTuple):
    """Memory and code of a model, in bytes.

    Attributes
    ----------
    program : int
        Code and constants.
    memory : int
        One instance.

    See Also
    --------
    CModel.size : Compile a model and measure it.

    Examples
    --------
    >>> import flexure as fx
    >>> size = fx.results.CSize(program=2048, memory=96)
    >>> size.memory
    96
    """

    program: int
    memory: int


#: Names that C or its library has.
_TAKEN = (
    "auto bool break case char const continue default do double else enum extern false float for "
    "goto if inline int long register restrict return short signed sizeof static struct switch "
    "true typedef union unsigned void volatile while acos acosh asin asinh atan atanh cbrt ceil "
    "copysign cos cosh drem erf erfc exp fabs fdim finite floor fma fmax fmin fmod frexp gamma "
    "hypot ilogb infinity j0 j1 jn ldexp lgamma log logb lrint lround main modf nan nearbyint "
    "nextafter pow remainder remquo rint round scalb scalbln scalbn significand sin sinh sqrt tan "
    "tanh tgamma trunc y0 y1 yn abort abs atexit atof atoi atol bsearch calloc daemon div exit "
    "ffs free getenv heapsort index labs ldiv linux malloc mergesort null qsort radixsort rand "
    "random realloc remove rename rewind rindex srand stdin stdout stderr strtod system unix "
    "printf puts scanf va_list"
)


class CModel(Answer):
    """A diagram as C99 source text.

    Made by `to_c`. All names begin with that of the system, here ``controller``. The source needs
    the C library alone; it takes no memory, has no globals, and calls no function recursively.

    ``void controller_reset(controller *m)``
        begins with the values of the context.
    ``int64_t controller_step(controller *m, const double inputs[], double outputs[])``
        takes the inputs, runs the updates that are due, computes the outputs, and goes on by one
        step. It returns 0; 1 when an event has ended the run; a negative number when the model
        cannot go on, of which ``controller_problem`` returns the meaning.
    ``controller_get(m, place)``, ``controller_set(m, place, value)``
        read and set a parameter, input or discrete value, at a place such as
        ``CONTROLLER_P_PID_KP`` of the header.

    Attributes
    ----------
    name : str
        With what all names begin.
    header, source : str
        The texts of both files.
    info : dict
        What the model says about itself: ``states``, ``discrete``, ``parameters``, ``inputs``,
        ``signals`` and ``events``, as in `JavaScriptModel`.

    See Also
    --------
    to_c : Export a system.

    Examples
    --------
    >>> import flexure as fx
    >>> lag = fx.FirstOrderLag("lag", time_constant=2.0)
    >>> model = fx.to_c(lag, step=0.01)
    >>> [row["path"] for row in model.info["parameters"]]
    ['time_constant', 'gain']
    """

    _function = "to_c"

    def __init__(self, context: Context, wanted: Wanted) -> None:
        fixed = _fixed(context, wanted.parameters)
        numbers = {key: each for known in fixed.values() for key, each in known.items()}
        equations = ModelEquations(context, wanted.signals, target="C", fixed=numbers)
        self.equations = equations
        for name in _identifiers(wanted.name or context.system.name):
            source = CSource(name, context, equations, wanted, fixed)
            self.header, self.source = source.text()
            if not _clashes(name, self.source + wanted.beside):
                break
        self.name = name
        self.places = source.values.places
        self.drives, self.keys = source.drives, source.keys
        self.rtol = context.accuracy or 1e-6  # unless a caller asks for another one
        self.problems = dict(PROBLEMS)
        self.info = source.values.info

    def save(self, path: str | Path) -> None:
        """Write header and source into a folder, which is made if it is missing.

        Parameters
        ----------
        path : str or Path
            The folder; files of the same names are replaced.
        """
        folder = Path(file_path(path, f"Cannot save '{self.name}'"))
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in ((".h", self.header), (".c", self.source)):
            with replacing(folder / f"{self.name}{suffix}") as stream:
                stream.write(text)

    def size(self, compiler: str = "gcc", options: Sequence[str] = ("-Os",)) -> CSize:
        """Compile the model and return what it needs, without the C library.

        Parameters
        ----------
        compiler : str
            A program that takes the options of gcc, such as "arm-none-eabi-gcc".
        options : sequence of str
            Options for it, such as ``["-Os", "-mcpu=cortex-m7", "-mthumb"]``.

        Returns
        -------
        CSize
            Bytes of ``program`` and ``memory``.

        Raises
        ------
        ValueRefusedError
            When the compiler is not there, or refuses the options.

        Examples
        --------
        >>> import flexure as fx
        >>> model = fx.to_c(fx.PIDController("pid", period=0.01, kp=2.0))
        >>> model.size().memory < 1000  # doctest: +SKIP
        True
        """
        attempt = f"Cannot compile '{self.name}'"
        compiler = file_path(compiler, attempt)
        options = [file_path(each, attempt) for each in items_of(options, "options", attempt)]
        tool = re.sub(r"(gcc|clang|cc)$", "size", compiler)
        for program in (compiler, tool):
            if shutil.which(program) is None:
                raise ValueRefusedError(
                    attempt,
                    expected=f"the program '{program}'",
                    found="no such program",
                    remedy="Install it, or name another compiler",
                )
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder)
            instance = f'#include "{self.name}.h"\nextern {self.name} one;\n{self.name} one;\n'
            Path(folder, "instance.c").write_text(instance, encoding="utf-8")
            found = []
            for part in (self.name, "instance"):
                command = [compiler, "-std=c99", "-ffp-contract=off", *options, "-c", f"{part}.c"]
                _run([*command, "-o", f"{part}.o"], folder, attempt)
                table = _run([tool, f"{part}.o"], folder, attempt)
                found.append([int(each) for each in table.splitlines()[1].split()[:3]])
        return CSize(sum(found[0]), sum(found[1]))

    def __repr__(self) -> str:
        counts = {name: len(self.info[name]) for name in ("states", "parameters", "signals")}
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        lines = self.source.count("\n")
        return f"<CModel of '{self.info['name']}': {listed}, {lines} lines>"


def to_c(
    system: System,
    context: Context | None = None,
    *,
    signals: Signal | Sequence[Signal] | None = None,
    inputs: Way | Sequence[Way] | None = None,
    parameters: Way | Sequence[Way] | None = None,
    method: str = "rk4",
    step: float | None = None,
    precision: Literal["double", "single"] = "double",
) -> CModel:
    """Write a diagram as C99, such as a controller for a microcontroller.

    Updates, outputs, events and derivatives come from one trace of the equations. With
    ``-ffp-contract=off``, double precision gives the bits of the trace run in Python.

    Parameters
    ----------
    system : System
        A block or diagram.
    context : Context, optional
        A root context of it, whose values the model begins with; a default one when omitted.
    signals : str, Handle or list of them, optional
        The outputs. When omitted, those of the diagram, or of all blocks if it has none.
    inputs : str, Handle or list of them, optional
        Free inputs that each step takes; all when omitted. Others keep their values.
    parameters : str, Handle or list of them, optional
        Parameters that stay tunable; all when omitted. Others become constants of the code.
    method : str
        By which continuous states advance from step to step: "euler", "rk2" or "rk4" by one fixed
        step; "RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P", "ESDIRK4" or "auto" by
        adaptive steps within the accuracy of the context.
    step : float, optional
        Time from one step to the next, in seconds. When omitted, the longest one in which all
        clocks tick at steps; continuous states need one.
    precision : str
        "double", or "single" for processors that compute no double precision, with fixed steps.

    Returns
    -------
    CModel
        Header and source, with what they say about themselves.

    Raises
    ------
    TraceError
        When derivatives, a signal, an update, a witness function or a break time cannot be traced;
        the text names the block and its line.
    ValueRefusedError
        When there is no such method or precision, or when clocks do not tick at steps.
    UnknownNameError
        When there is no such signal, input or parameter.

    See Also
    --------
    to_javascript : The same for pages and for Node.

    Notes
    -----
    With fixed steps, a witness event runs at the first step behind its crossing, and each step
    takes the same time. With adaptive steps, events are located as by `simulate`. Publish handlers
    are for Python; a model contains only whether they end the run.

    Examples
    --------
    >>> import flexure as fx
    >>> pid = fx.PIDController("pid", period=0.01, kp=2.0, ki=1.0)
    >>> model = fx.to_c(pid, signals="u", parameters=["kp", "ki"])
    >>> model.name, [row["path"] for row in model.info["inputs"]]
    ('pid', ['setpoint', 'measurement', 'feedforward'])
    >>> print(model.header.splitlines()[0])
    /* pid, written by Flexure. */
    """
    require_system(system, _ATTEMPT)
    context = system.create_default_context() if context is None else context
    require_root(context, system, f"Cannot write '{system.label}' as C")
    one_of(precision, ("double", "single"), "precision", _ATTEMPT)
    one_of(method, (*FIXED, "auto", *METHODS), "method", _ATTEMPT)
    if precision == "single" and method not in FIXED:
        raise ValueRefusedError(
            _ATTEMPT,
            expected=f"fixed steps in single precision: {', '.join(FIXED)}",
            found=f"method='{method}'",
            remedy="Take one of them, or precision='double'",
        )
    if step is not None:
        given, step = step, float(as_number(step, (), _ATTEMPT))
        fits = 0.0 < step < math.inf and not isinstance(given, bool)
        require(fits, given, _ATTEMPT, "a positive step in seconds")
    outputs: Sequence[Signal] | None = system.output_ports or None
    attempt, known = f"{_ATTEMPT} of '{system.label}'", [*_parameters(context)]
    free = [Paths(system)(port) for port, _ in each_free_input(context)]
    wanted = Wanted(
        signals=outputs if signals is None else several(signals),
        inputs=chosen_paths(system, inputs, free, attempt, "free inputs"),
        parameters=chosen_paths(system, parameters, known, attempt, "parameters"),
        method=method,
        step=step,
        precision=precision,
        parts=frozenset(("step",)),
    )
    return CModel(context, wanted)


def _fixed(context: Context, tunable: Sequence[str] | None) -> dict[str, dict[Key, float]]:
    """Return the numbers of the parameters that are not tunable, by path."""
    found = {}
    position = context.store.layout.position
    for path, (place, handle) in _parameters(context).items():
        if tunable is not None and path not in tunable:
            numbers = np.ravel(np.asarray(place.read(context), dtype=float)).tolist()
            key = PARAMETER, position[handle.system], handle.index
            found[path] = {(key, k): each for k, each in enumerate(numbers)}
    return found


def _parameters(context: Context) -> dict[str, Any]:
    """Return place and handle of all numeric parameters by path."""
    path_of = Paths(context.system)
    return {
        path_of(handle): (place, handle)
        for place, handle in each_parameter(context.system)
        if isinstance(handle, NumericParameter)
    }


def _identifiers(name: str) -> list[str]:
    """Return a name as C takes it, and one that no text of ours contains."""
    plain = re.sub(r"\W+", "_", name.encode("ascii", "replace").decode()).strip("_").lower()
    taken = plain in _TAKEN.split() or plain[:1].isdigit() or not plain
    return [f"model_{plain}"] if taken else [plain, f"model_{plain}"]


def _clashes(name: str, text: str) -> bool:
    """Return whether C has a name for anything but the structure of a model."""
    text = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', "", text, flags=re.DOTALL)
    return re.search(rf"(?<!\w){name}\b(?! \*m\b)", text) is not None


def _run(command: Sequence[str], folder: str, attempt: str) -> str:
    """Run a program in a folder; return what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueRefusedError(
            attempt, expected=f"'{' '.join(command)}' to succeed", found=done.stderr[:500]
        )
    return done.stdout
