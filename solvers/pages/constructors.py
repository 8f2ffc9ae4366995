"""Blocks as the Python that makes them, with places for the values of their parameters."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import flexure.blocks
from flexure.diagrams.leaf import LeafSystem

#: An argument: its name, or None where it is given by position; "text" or "parameter"; which.
Argument = tuple[str | None, str, str]


def constructor_of(leaf: LeafSystem) -> dict[str, Any] | None:
    """Return the call that makes a block like this one, or None where it cannot be known.

    What the block is attached to stands there under the name of the argument.

    Returns
    -------
    dict
        ``call``, and ``arguments``: of each one its keyword or None, "text" or "parameter", and
        the text or the name of the parameter. None when the class does not keep its arguments as
        attributes or parameters of their names.
    """
    kind = type(leaf)
    found: list[Argument] = []
    given: dict[str, Any] = {}
    positional: list[Any] = []
    by_name = {each.name: each for each in leaf.numeric_parameters}
    left = dict(by_name)
    for parameter in inspect.signature(kind).parameters.values():
        name = parameter.name
        keyword = None
        if parameter.kind is parameter.VAR_KEYWORD:
            found += [(each, "parameter", each) for each in left]
            given |= {each: left[each].default for each in left}
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            return None
        if parameter.kind is not parameter.POSITIONAL_ONLY and (
            given
            or parameter.default is not parameter.empty
            or parameter.kind is parameter.KEYWORD_ONLY
        ):
            keyword = name
        if name in by_name:
            value, what = by_name[name].default, ("parameter", name)
            left.pop(name, None)
        elif name in vars(leaf) or hasattr(kind, name):
            value = getattr(leaf, name)
            if parameter.default is not parameter.empty and _same(value, parameter.default):
                continue
            what = ("text", _text(value) or name)
        elif parameter.default is not parameter.empty:
            continue
        else:
            return None
        found.append((keyword, *what))
        if keyword is None:
            positional.append(value)
        else:
            given[keyword] = value
    try:
        twin = kind(*positional, **given)
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


def _same(value: Any, other: Any) -> bool:
    return value is other or (_text(value) is not None and _text(value) == _text(other))


def _looks(leaf: LeafSystem) -> list[Any]:
    """Return what has to be alike in two blocks."""
    ports = [(port.name, port.size) for port in (*leaf.input_ports, *leaf.output_ports)]
    constants = [
        (each.name, each.unit, np.ravel(each.default).tolist()) for each in leaf.numeric_parameters
    ]
    plain = {name: _text(value) for name, value in vars(leaf).items() if name[0] != "_"}
    return [
        ports,
        constants,
        {
            name: text
            for name, text in plain.items()
            if text is not None and name not in ("parent", "claimed_by")
        },
    ]


__all__ = ["constructor_of"]
