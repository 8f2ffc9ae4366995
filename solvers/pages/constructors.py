"""Blocks as the Python that makes them, with places for the values of their parameters."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import flexure.blocks
from flexure.diagrams.systems.leaf import LeafSystem

#: An argument: its name, or None where it is given by position; "text" or "parameter"; which.
Argument = tuple[str | None, str, str]
#: What tells where a block is, not what it is.
_OUTSIDE = ("parent", "claimed_by", "index", "_layout", "_frozen")


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
