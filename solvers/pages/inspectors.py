"""From a block without states to a page in which its constants move its curves."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import flexure.blocks
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.blocks.multibody.force_elements.joint_force_element import JointForceElement
from flexure.blocks.signals.table_files import read_table
from flexure.diagrams.checks.arguments import file_path, require
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import start_context
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System, require_system
from flexure.diagrams.values.arrays import as_numbers
from flexure.diagrams.values.handles import root_of
from flexure.solvers.export.javascript.javascript_model import to_javascript
from flexure.solvers.pages.block_benches import Bench, round_up, static_bench
from flexure.solvers.pages.document import INSPECTOR, document
from flexure.solvers.pages.force_benches import force_bench
from flexure.solvers.pages.pages import Page, identifier

#: An argument: its name, or None where it is given by position; "text" or "parameter"; which.
Argument = tuple[str | None, str, str]
#: What tells where a block is, not what it is.
_OUTSIDE = ("parent", "claimed_by", "index", "_layout", "_frozen")
_COLUMNS = ("position", "rate", "force")
_FORM = "(position, force), (position, rate, force), or a mapping or CSV file with these names"


def inspect_block(
    system: System,
    context: Context | None = None,
    *,
    measured: Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike] | str | Path | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Page:
    """Make a page that plots a block without states, with sliders for its constants.

    For a force element, it plots the force or torque and its parts over the coordinate and over the
    rate, the stored energy with its wells, and the powers. Elements on joints move along the
    coordinates of the joint, those between two points along the length, and others, such as
    bushings, along roll, pitch and yaw of the last frame in the first, and along its position x, y
    and z there; the other coordinates are held. For a `NotchHinge`, it also plots the stress of
    each section along the notch, which is bent a little by default. A beam with several segments,
    which has bodies inside, is shown with one. For any other block without states, or a diagram of
    such blocks, it plots the outputs over each input. Ranges start within the limits of an element,
    such as its yield strength, or span its table; charts that are zero show their title only.

    The page holds the traced equations of the block as JavaScript (see `to_javascript`), and needs
    neither Python nor a network. It gives the constants back as Python.

    Parameters
    ----------
    system : System
        A block without states, by itself or in a diagram, or a whole diagram of such blocks.
    context : Context, optional
        A root context of the block, or of the diagram in which it is, from which all values are
        taken; a default one when omitted.
    measured : sequence or mapping of array_like, str or Path, optional
        Measured points to be drawn below the curves: (position, force) or (position, rate, force),
        each of shape (k,), or a mapping or a CSV file with columns of these names. For blocks that
        are no force elements: the input and the output that are shown first.
    ranges : mapping of str to (float, float), optional
        Initial ranges of the curves, by the names on the page, such as "angle", "rate" or "roll".
    title : str, optional
        The name of the block when omitted.
    path : str or Path, optional
        Where to save the page.

    Returns
    -------
    Page

    Raises
    ------
    DeclarationError
        When the system has states; `page` shows it in motion.
    TraceError
        When its equations cannot be read as JavaScript; the text names the block.
    UnknownNameError
        When there is no coordinate or input with the name of a range.
    ValueRefusedError
        When a range is empty, or what was measured are no rows of the same length.

    See Also
    --------
    page : A page that simulates a diagram.
    equation : The formula as text.

    Examples
    --------
    >>> import flexure as fx
    >>> axis = fx.RevoluteJoint("axis", fx.Body("frame"), fx.Body("door"), axis=(0, 0, 1))
    >>> hinge = fx.DoorHinge("hinge", axis, spring_constant=3.0)
    >>> fx.inspect_block(hinge, ranges={"angle": (-0.1, 1.6)})  # doctest: +SKIP
    <Page 'hinge', 4.9 MB, runs by itself>
    """
    require_system(system, "Cannot inspect anything")
    attempt = f"Cannot inspect '{system.label}'"
    values = start_context(root_of(system), context, attempt)
    require(title is None or isinstance(title, str), title, attempt, "a title, a text")
    if isinstance(system, (JointForceElement, BodyForceElement)):
        bench = force_bench(system, values, attempt)
    else:
        bench = static_bench(system, values, attempt)
    _take_ranges(bench, ranges, attempt)
    points = None if measured is None else _measured(measured, attempt)
    if points is not None:
        _look_at(points, bench, set(ranges or ()))
    model = to_javascript(bench.system, bench.context, signals=bench.signals)
    parameters = [row["path"] for row in model.info["parameters"]]
    starts = (bench.prefix, *_hidden(bench))
    data = {
        "name": identifier(system.name, "block"),
        "live": True,
        "start": bench.context.time,
        "tFinal": bench.context.time,
        "signals": [],
        "charts": [],
        **bench.plain(),
        "signalNames": bench.signals,
        "measured": points,
        "parameters": [name for name in parameters if name not in starts[1:]],
        "code": _code(system, values, bench.prefix, parameters),
    }
    shown = system.label if title is None else title
    kind = type(system).__name__
    about = kind if isinstance(system, LeafSystem) else "diagram without states"
    if isinstance(system, BodyForceElement) and system.inside:
        about = f"{kind}, as one segment"
    whole = document(shown, about, "", "inspector", data, model.text, INSPECTOR)
    made = Page(shown, whole, live=True)
    if path is not None:
        made.save(path)
    return made


def _take_ranges(bench: Bench, ranges: Any, attempt: str) -> None:
    """Set the requested ranges of axes."""
    if ranges is None:
        return
    require(isinstance(ranges, Mapping), ranges, attempt, "ranges as a mapping by name")
    axes = {axis.name: axis for axis in bench.axes}
    for name, given in ranges.items():
        if name not in axes:
            raise UnknownNameError(
                f"{attempt} with a range of {name!r:.200}", remedy=f"There are {quoted(axes)}"
            )
        span = as_numbers(given, f"{attempt} with a range of '{name}'")
        if span.shape != (2,) or not np.all(np.isfinite(span)) or not span[0] < span[1]:
            raise ValueRefusedError(
                f"{attempt} with a range of '{name}'",
                expected="two finite numbers, the smaller one first",
                found=f"{given!r:.200}",
            )
        axes[name].span = span.tolist()


def _measured(measured: Any, attempt: str) -> dict[str, list[float]]:
    """Return measured points by "position", "rate" and "force"."""
    attempt = f"{attempt} with what was measured"
    columns: dict[str, Any]
    if isinstance(measured, (str, os.PathLike)):
        columns = read_table(file_path(measured, attempt), attempt).values
    elif isinstance(measured, Mapping):
        columns = dict(measured)
    else:
        rows = list(measured) if isinstance(measured, (list, tuple)) else []
        names = _COLUMNS if len(rows) == 3 else ("position", "force")
        columns = dict(zip(names, rows, strict=len(rows) in (2, 3)))
    if not {"position", "force"} <= set(columns) <= set(_COLUMNS):
        raise ValueRefusedError(attempt, expected=_FORM, found=f"{measured!r:.200}")
    arrays = {name: as_numbers(each, f"{attempt}, {name}") for name, each in columns.items()}
    if len({each.shape for each in arrays.values()}) > 1 or arrays["force"].ndim != 1:
        shapes = ", ".join(f"{name} of shape {each.shape}" for name, each in arrays.items())
        raise ValueRefusedError(attempt, expected="rows of the same length", found=shapes)
    for name, each in arrays.items():
        if not np.all(np.isfinite(each)):
            count = np.count_nonzero(~np.isfinite(each))
            raise ValueRefusedError(
                attempt,
                expected="finite numbers",
                found=f"{count} in {name} that are not",
                remedy="Leave these points out",
            )
    return {name: each.tolist() for name, each in arrays.items()}


def _look_at(points: dict[str, list[float]], bench: Bench, chosen: set[str]) -> None:
    """Let the curves of the first view reach as far as what was measured, at its usual rate."""
    axes = [bench.axes[k] for k in bench.views[0].axes]
    for axis in axes:
        row = points.get("rate" if axis.path == "velocity" else "position")
        if not row:
            continue
        if axis.path == "velocity":
            axis.value = float(np.median(row))
            port = bench.system.find(axis.path)
            rates = np.array(port.eval(bench.context))
            rates[axis.component] = axis.value
            port.fix(bench.context, rates)
            reach = round_up(1.25 * max(map(abs, row)))
            row = [-reach, reach]
        if axis.name not in chosen:
            axis.span = [min(axis.span[0], *row), max(axis.span[1], *row)]


def _hidden(bench: Bench) -> list[str]:
    """Return parameters that change nothing: points that are moved apart along a line."""
    if [axis.name for axis in bench.axes][:1] != ["length"]:
        return []
    return [f"{bench.prefix}{name}" for name in ("p_AP", "p_BQ")]


def _code(system: System, values: Context, prefix: str, parameters: list[str]) -> dict[str, Any]:
    """Return what the page needs to write Python: names, and the call of the constructor."""
    root = values.system
    outer = f"{system.path}." if system.path else ""
    changed = {row["path"] for row in values.describe() if row["changed"]}
    names = {name: outer + name.removeprefix(prefix) for name in parameters}
    return {
        "context": identifier(root.name, "system"),
        "names": names,
        "changed": [name for name, other in names.items() if other in changed],
        "block": identifier(system.name, "block"),
        "quoted": repr(system.name),
        "constructor": constructor_of(system) if isinstance(system, LeafSystem) else None,
        "prefix": prefix,
    }


def constructor_of(leaf: LeafSystem) -> dict[str, Any] | None:
    """Return the call that makes a block like this one, or None where it cannot be known.

    It is ``call``, with ``arguments``: of each its keyword or None, "text" or "parameter", and the
    text or the name of the parameter. Objects to which the block is attached appear under the name
    of the argument. Arguments must be attributes or parameters of their names.
    """
    kind = type(leaf)
    found: list[Argument] = []
    positional: list[Any] = []
    named: dict[str, Any] = {}
    left = {each.name: each for each in leaf.numeric_parameters}
    for argument in inspect.signature(kind).parameters.values():
        name, optional = argument.name, argument.default is not argument.empty
        if argument.kind is argument.VAR_POSITIONAL:
            return None
        if argument.kind is argument.VAR_KEYWORD:
            found += [(each, "parameter", each) for each in left]
            named |= {each: handle.default for each, handle in left.items()}
            continue
        if name in left:
            value, what = left.pop(name).default, ("parameter", name)
        elif hasattr(leaf, name):
            value = getattr(leaf, name)
            text = _text(value)
            if optional and text in (None, _text(argument.default)):
                continue  # an object, or what it is without a word
            what = ("text", text or name)
        elif optional:
            continue
        else:
            return None
        if argument.kind is argument.KEYWORD_ONLY or optional or named:
            found.append((name, *what))
            named[name] = value
        else:
            found.append((None, *what))
            positional.append(value)
    try:
        twin = kind(*positional, **named)
    except Exception:  # of a class that we do not know
        return None
    if _looks(twin) != _looks(leaf):
        return None
    public = getattr(flexure.blocks, kind.__name__, None) is kind
    return {"call": f"fx.{kind.__name__}" if public else kind.__name__, "arguments": found}


def _text(value: Any) -> str | None:
    """Return plain values as Python; None for objects."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else None


def _looks(leaf: LeafSystem) -> list[Any]:
    """Return what has to be alike in two blocks."""
    ports = [(port.name, port.size) for port in (*leaf.input_ports, *leaf.output_ports)]
    constants = [
        (each.name, each.unit, np.ravel(each.default).tolist()) for each in leaf.numeric_parameters
    ]
    plain = {name: _text(value) for name, value in vars(leaf).items() if name not in _OUTSIDE}
    return [ports, constants, {name: text for name, text in plain.items() if text is not None}]
