"""Readable equations: the formula of a signal or a derivative, through all blocks of a diagram."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from flexure.diagrams.checks.arguments import flag
from flexure.diagrams.checks.errors import TraceError, UnknownNameError, quoted
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.scalars import (
    Written,
    latex_names,
    mathml_names,
    write_latex,
    write_mathml,
    write_python,
)
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.expression import as_number, reachable
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.ports import CacheEntry, OutputPort
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.state import ContinuousState
from flexure.diagrams.values.symbolic_values import (
    DISCRETE,
    PARAMETER,
    STATE,
    TIME,
    Key,
    symbols_for,
)
from flexure.solvers.tracing.signals import Reader, Signal, resolve
from flexure.solvers.tracing.sympy_form import import_sympy, sympy_expressions
from flexure.solvers.tracing.trace import SymbolicStore, trace

#: Path and component of a value; the component is empty where there is only one.
Name: TypeAlias = tuple[str, str]

_TIME_NAME: Name = ("t", "")
_PART = "part"  # what a value is that has its name in the place of its equation
_UPRIGHT_D = '<mi mathvariant="normal">d</mi>'
_RATE = f"<mfrac>{_UPRIGHT_D}<mrow>{_UPRIGHT_D}<mi>t</mi></mrow></mfrac><mo>&#x2062;</mo>"


@dataclass(frozen=True, eq=False, repr=False)
class Equation(Answer):
    """The equation of an output or a time derivative, made by `equation`.

    Notebooks show it as mathematics.

    Attributes
    ----------
    text : str
        One line per component, such as ``"plant.y = plant.k*plant.u"``, with Python on the right.
        Definitions of parts that occur several times follow.
    latex : str
        The same for LaTeX's mathematical mode.
    inputs : tuple of str
        Paths of the values that occur: time, states, parameters, discrete states and free inputs,
        in the order of the diagram.

    See Also
    --------
    equation : Write one of a signal.

    Examples
    --------
    >>> import flexure as fx
    >>> equation = fx.equation(fx.FirstOrderLag("lag", time_constant=0.5), "x")
    >>> equation.text
    'd/dt x = (gain*u - x)/time_constant'
    >>> equation.inputs
    ('x', 'time_constant', 'gain', 'u')
    """

    text: str
    latex: str
    inputs: tuple[str, ...]
    _left: tuple[str, ...]
    _right: tuple[Any, ...]
    _names: Mapping[Key, str]
    _everything: tuple[Name, ...]  # the names on the left, then those of the keys
    _is_rate: bool

    @cached_property
    def mathml(self) -> str:
        """The same for browsers, which draw it without a script: a ``<math>`` element."""
        symbols, keys = mathml_names(self._everything), self._names
        heads = symbols[: len(self._left)]
        written = write_mathml(
            self._right,
            dict(zip(keys, symbols[len(heads) :], strict=True)),
            constants=_coefficients(keys),
            reserved=symbols,
        )
        if self._is_rate:
            heads = [f"{_RATE}{head}" for head in heads]
        return _mathml(heads, written)

    def to_sympy(self) -> list[Any]:
        """Return the equation as SymPy objects, with all definitions put in.

        Numbers keep every bit. SymPy simplifies in real arithmetic, without rounding.

        Returns
        -------
        list of sympy.Eq
            One per component. The symbols are real and have the names of the text.

        Raises
        ------
        MissingExtraError
            When SymPy is not installed; it comes with ``flexure[symbolic]``.
        """
        sympy = import_sympy()
        return [
            sympy.Eq(sympy.Symbol(left, real=True), right, evaluate=False)
            for left, right in zip(
                self._left, sympy_expressions(self._right, self._names), strict=True
            )
        ]

    def _pieces(self) -> Iterator[str]:
        yield self.mathml

    def _repr_latex_(self) -> str:
        return f"$${self.latex}$$"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Equation of {quoted(self._left, 3)} in {quoted(self.inputs, 3)}>"


def equation(system: System, signal: Signal, *, shorten: bool = False) -> Equation:
    """Write the equation of a signal, through all blocks that it depends on.

    Parameters
    ----------
    system : System
        A block or diagram.
    signal : OutputPort, ContinuousState or str
        An output port of the system or of a block inside, or a continuous state, for which it is
        the equation of its time derivative; by handle or path. ``"plant.y[0]"`` and
        ``"plant.x[rate]"`` are single components.
    shorten : bool
        Whether to omit the front of paths if the remaining names are unique.

    Returns
    -------
    Equation

    Raises
    ------
    UnknownNameError
        When there is no such output port with a vector, and no such continuous state.
    TraceError
        When a block that contributes cannot be traced; the text names it.

    See Also
    --------
    linearize : The linear model at a point.
    compiled_equations : The equations as a fast function.

    Notes
    -----
    The equation is what is computed, operation by operation. Nothing is expanded or cancelled;
    only operands of sums and products may have changed places. Functions have the names of NumPy.
    Parts that occur several times, unless they are short, become definitions.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("loop")
    >>> builder.add_all(
    ...     fx.Constant("target", 1.0),
    ...     fx.Sum("error", "+-"),
    ...     fx.Gain("controller", 3.0),
    ...     fx.FirstOrderLag("plant", time_constant=0.5),
    ... )
    >>> builder.connect_chain("target", "error.u1")
    >>> builder.connect_chain("error", "controller", "plant", "error.u2")
    >>> loop = builder.build()
    >>> print(fx.equation(loop, "controller.y"))
    controller.y = controller.gain*(target.value - plant.x)
    >>> rate = fx.equation(loop, "plant.x", shorten=True)
    >>> print(rate)
    d/dt x = (controller.gain*(value - x)*plant.gain - x)/time_constant
    >>> rate.inputs
    ('plant.x', 'target.value', 'controller.gain', 'plant.time_constant', 'plant.gain')
    """
    require_system(system, "Cannot write an equation")
    shorten = flag(shorten, "shorten", f"Cannot write an equation of '{system.label}'")
    handle, part = _find(system, signal)
    entries = _read(system.layout, handle)
    chosen = range(handle.size) if part is None else part
    return _written(system.layout, handle, entries, chosen, shorten=shorten)


def named_parts(block: System) -> list[CacheEntry]:
    """Return what a block computes from its parameters alone: vectors that have a name."""
    layout, found = block.layout, []
    for slot, entry in enumerate(layout.slot_port):
        if isinstance(entry, CacheEntry) and entry.prerequisites == ():
            with suppress(TraceError):
                value = trace(layout, partial(Store.value, slot=slot))
                found += [entry] * (getattr(value, "ndim", 0) == 1)
    return found


def brief_equation(
    system: System, handle: OutputPort | ContinuousState | CacheEntry, parts: Sequence[CacheEntry]
) -> Equation:
    """Write down an equation for people: with names of parts, and without constant zeros.

    The ``parts`` are computed elsewhere, and have their names here.
    """
    entries = simplify(_read(system.layout, handle, parts))
    return _written(system.layout, handle, entries, range(len(entries)), shorten=False)


def _written(
    layout: Layout, handle: Any, entries: Sequence[Any], chosen: Iterable[int], *, shorten: bool
) -> Equation:
    """Return an equation of chosen components."""
    size = len(entries)
    right = [as_number(entries[k]) for k in chosen]
    nodes = reachable(right)
    keys: list[Any] = [node.key for node in nodes if node.op == "input"]
    left = [_name(handle, (size,), k) for k in chosen]
    behind = [_name_behind(layout, key) for key in keys]
    inputs = tuple(map(_plain, behind))

    everything = _shortened([*left, *behind]) if shorten else [*left, *behind]
    start = len(left)
    plain, latex = list(map(_plain, everything)), latex_names(everything)
    names = dict(zip(keys, plain[start:], strict=True))
    constants = _coefficients(keys)
    written = write_python(right, names, constants=constants, reserved=plain)
    written_latex = write_latex(
        right, dict(zip(keys, latex[start:], strict=True)), constants=constants, reserved=latex
    )
    heads, latex_heads = plain[:start], latex[:start]
    is_rate = isinstance(handle, ContinuousState)
    if is_rate:
        heads = [f"d/dt {name}" for name in heads]
        latex_heads = [rf"\frac{{\mathrm{{d}}}}{{\mathrm{{d}}t}} {name}" for name in latex_heads]
    return Equation(
        text=_text(heads, written),
        latex=_latex(latex_heads, written_latex),
        inputs=inputs,
        _left=tuple(heads),
        _right=tuple(right),
        _names=names,
        _everything=tuple(everything),
        _is_rate=is_rate,
    )


def _coefficients(keys: Iterable[Any]) -> set[Any]:
    """Return the inputs of a trace that are parameters, or made of them."""
    return {key for key in keys if key[0][0] in (PARAMETER, _PART)}


# What it is --------------------------------------------------------------------------------------


def _find(system: System, signal: Signal) -> Reader:
    """Return an output or continuous state of a system, or a component of one."""
    reader = resolve(system, signal)
    handle = reader.handle
    is_computed = isinstance(handle, (OutputPort, ContinuousState))
    if not is_computed or not _is_inside(handle.system, system):
        raise UnknownNameError(
            f"Cannot write the equation of {signal!r}",
            expected=f"an output port or a continuous state of '{system.label}'",
            found=f"the {handle.what} '{handle.full_name}'"
            + ("" if not is_computed else " of another system"),
        )
    return reader


def _is_inside(system: System | None, root: System) -> bool:
    """Return whether a system is another one or somewhere inside of it."""
    while system is not None and system is not root:
        system = system.parent
    return system is root


def _read(layout: Layout, handle: Any, parts: Sequence[CacheEntry] = ()) -> list[Any]:
    """Return the components of an output or time derivative as expressions and numbers."""

    def read(store: SymbolicStore) -> Any:
        for part in parts:
            if part is not handle:
                slot = layout.slot_port.index(part)
                size = len(store.value(slot))
                symbols = symbols_for(store.graph, _PART, slot, 0, (size,))
                Store.hold(store, slot, symbols)
        if isinstance(handle, ContinuousState):
            return store._derivatives_of(store.leaves[layout.position[handle.system]], handle.size)
        if isinstance(handle, OutputPort):
            return store.value(layout.slot_of(handle))
        return store.value(layout.slot_port.index(handle))

    return list(trace(layout, read))


# Names -------------------------------------------------------------------------------------------


def _name_behind(layout: Layout, key: Key) -> Name:
    """Return the name of an input of a trace."""
    (what, where, index), component = key
    if what == TIME:
        return _TIME_NAME
    if what == STATE:
        position = next(k for k in layout.dynamic if component < layout.x_slices[k].stop)
        state: Any = layout.leaves[position].continuous_state
        return _name(state, (state.size,), component - layout.x_slices[position].start)
    if what == PARAMETER:
        parameter = layout.leaves[where].numeric_parameters[index]
        return _name(parameter, parameter.shape, component)
    if what == _PART:
        return layout.slot_port[where].path, str(component)
    if what == DISCRETE:
        group = layout.leaves[where].discrete_states[index]
        return _name(group, (group.size,), component)
    port = layout.slot_port[where]
    return _name(port, (port.size,), component)


def _name(handle: Any, shape: tuple[int, ...], component: int) -> Name:
    """Return the name of one component of a handle."""
    path = handle.full_name if handle.path == _TIME_NAME[0] else handle.path
    labels = getattr(handle, "element_names", None)
    if labels:
        return path, labels[component]
    if math.prod(shape) == 1:
        return path, ""
    return path, ", ".join(map(str, np.unravel_index(component, shape)))


def _plain(name: Name) -> str:
    """Write a name as text."""
    path, component = name
    return f"{path}[{component}]" if component else path


def _shortened(names: Sequence[Name]) -> list[Name]:
    """Cut off the front of every path, as far as no other path ends like the rest."""
    paths = {_TIME_NAME[0], *(path for path, _ in names)}
    times = Counter(ending for path in paths for ending in _endings(path))
    return [
        (next((ending for ending in _endings(path) if times[ending] == 1), path), component)
        for path, component in names
    ]


def _endings(path: str) -> list[str]:
    """Return the ends of a path, from its last name to the whole."""
    parts = path.split(".")
    return [".".join(parts[k:]) for k in reversed(range(len(parts)))]


# Lines -------------------------------------------------------------------------------------------


def _rows(
    heads: Sequence[str], written: Written, first: str, others: str = ""
) -> list[tuple[str, str]]:
    """Return both sides of all equations, and of the definitions, the first one behind a word."""
    definitions = [
        (f"{others if k else first}{name}", right)
        for k, (name, right) in enumerate(written.definitions)
    ]
    return [*zip(heads, written.results, strict=True), *definitions]


def _text(heads: Sequence[str], written: Written) -> str:
    """Put one equation per line, and the definitions below."""
    return "\n".join(map(" = ".join, _rows(heads, written, "where ", "      ")))


def _latex(heads: Sequence[str], written: Written) -> str:
    """Align the equations and the definitions below, if there is more than one line."""
    rows = _rows(heads, written, r"\text{where } ")
    if len(rows) == 1:
        return " = ".join(rows[0])
    lines = " \\\\\n".join(f"{head} &= {result}" for head, result in rows)
    return f"\\begin{{aligned}}\n{lines}\n\\end{{aligned}}"


def _mathml(heads: Sequence[str], written: Written) -> str:
    """Align the equations and the definitions below at their equals signs."""
    rows = _rows(heads, written, "<mtext>where&#xa0;</mtext>")
    lines = (
        f'<mtr><mtd style="text-align:right">{head}</mtd>'
        f'<mtd style="text-align:left"><mo>=</mo>{text}</mtd></mtr>'
        for head, text in rows
    )
    return f'<math display="block"><mtable displaystyle="true">{"".join(lines)}</mtable></math>'
