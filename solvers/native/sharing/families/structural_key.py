"""The first step: which blocks are alike, so that the equations of one serve for all of them.

Two blocks are alike when they are of one class, have parameters, states and ports of the same
shapes, and agree in everything else that their equations can see. Values without a life of their
own are compared by value: numbers, texts, small arrays, and what is built of them. Handles are
compared by kind and position, functions by their code and its closure, and the frames of force
elements of the library by their pose on the body, and frozen dataclasses and named tuples of the
library by their fields. All other objects are compared by identity, because two of them may differ
in ways that cannot be seen; of those that a user's class made, attributes are read as well, so that
the key also tells whether a block is what it was before.
Names, the diagram around a block, the number of a force element of the library in its plant and the
default values of parameters do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from flexure.blocks.multibody.force_elements.force_element import BodyAttachment, ForceElement
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import CacheEntry, Computed, InputPort, LeafOutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState
from flexure.solvers.tracing.replicas import is_trusted, passed_over_in, slots_of

_SMALL = 4096  # bytes of an array that is compared by value
_NOTHING, _NUMBER = frozenset[str](), frozenset({"index"})  # attributes that are passed over
_DEEPEST = 8  # containers within containers
_TOO_DEEP = 5  # containers around an object, or an object: then its attributes are not read
_SEALED = (type, FunctionType, ModuleType, System)


def structural_key(block: LeafSystem) -> Hashable:
    """Return what all blocks that are alike have in common.

    Equal results mean that the blocks are alike, as long as the blocks live.
    """
    state = block.continuous_state
    computed: list[Computed] = [*block.output_ports, *block.cache_entries]
    is_numbered = isinstance(block, ForceElement) and is_trusted(type(block))
    passed_over = passed_over_in(block) | (_NUMBER if is_numbered else _NOTHING)
    return (
        type(block),
        id(block) if _has_slots(type(block)) else None,
        state and (state.num_q, state.num_v, state.num_z),
        tuple([(p.shape, p.lower.tobytes(), p.upper.tobytes()) for p in block.numeric_parameters]),
        tuple([group.size for group in block.discrete_states]),
        tuple([port.size for port in block.input_ports]),
        tuple([(each.size, _mark(each.calc, block)) for each in computed]),
        tuple(
            [
                (name, _mark(value, block))
                for name, value in vars(block).items()
                if name not in passed_over
            ]
        ),
    )


def is_plain(block: LeafSystem) -> bool:
    """Return whether the key stays the same as long as all attributes are the same objects.

    Otherwise something that counts, such as a list or an array, may change inside.
    """
    passed_over = passed_over_in(block)
    computed: list[Computed] = [*block.output_ports, *block.cache_entries]
    held = [value for name, value in vars(block).items() if name not in passed_over]
    return not _has_slots(type(block)) and all(
        _is_plain(value, block) for value in [*held, *(each.calc for each in computed)]
    )


def _is_plain(value: Any, owner: Any) -> bool:
    """Return whether nothing that counts can change in a value."""
    if value.__class__ is MethodType:
        return value.__self__ is owner or value.__self__.__class__ in _HANDLES
    return value.__class__ in _PLAIN or value.__class__ in _HANDLES or value.__class__ in _NUMBERS


@cache
def _has_slots(kind: type) -> bool:
    """Return whether a block can have attributes that are not among its variables."""
    return any(vars(each).get("__slots__") for each in kind.__mro__)


def _mark(value: Any, owner: Any, depth: int = 0) -> Hashable:
    """Return what values that equations cannot tell from each other have in common."""
    # References to the owner, the block itself, are alike in all blocks.
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value
    if kind in _HANDLES:  # one of another block leads out of this one
        return (kind, value.index) if value.system is owner else id(value)
    if value is owner:
        return "owner"
    read = _READERS.get(kind)
    if read is None and _has_fields(kind):
        read = _fields
    content = read(value, owner, depth + 1) if read is not None and depth < _DEEPEST else None
    return _object(value, owner, depth) if content is None else (kind, content)


def _object(value: Any, owner: Any, depth: int) -> Hashable:
    """Read an object: which it is and, if a user's class made it, what its attributes are now."""
    kind = type(value)
    if depth >= _TOO_DEEP or isinstance(value, _SEALED) or is_trusted(kind):
        return id(value)
    slots = [name for each in kind.__mro__ for name in slots_of(each)]
    held = getattr(value, "__dict__", {}) | {name: getattr(value, name, None) for name in slots}
    return id(value), _mark(held, owner, _TOO_DEEP)


def _number(value: float, owner: Any, depth: int) -> Hashable:
    return value.hex()  # tells 0.0 from -0.0, and no NaN from another


@cache
def _has_fields(kind: type) -> bool:
    """Return whether objects of a class of the library are nothing but their fields."""
    if not is_trusted(kind):
        return False
    if is_dataclass(kind):
        return bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    return hasattr(kind, "_fields")  # as of named tuples


def _fields(value: Any, owner: Any, depth: int) -> Hashable:
    names = getattr(value, "_fields", None) or [each.name for each in fields(value)]
    return _items([getattr(value, name) for name in names], owner, depth)


def _items(value: Any, owner: Any, depth: int) -> Hashable:
    return tuple([_mark(item, owner, depth) for item in value])


def _entries(value: dict[Any, Any], owner: Any, depth: int) -> Hashable:
    return _items(value.items(), owner, depth)


def _array(value: Any, owner: Any, depth: int) -> Hashable:
    if value.dtype.kind not in "biufc" or value.nbytes > _SMALL:
        return None
    return value.dtype.str, value.shape, value.tobytes()


def _attachment(value: BodyAttachment, owner: Any, depth: int) -> Hashable:
    """Read where a force element is attached: which body it is does not count in the library."""
    if not is_trusted(type(owner)):
        return None
    X_BF = value.frame.X_BF
    parts = value.label, X_BF.R, X_BF.p, value.pose, value.velocity, value.offset, value.strain
    return _items(parts, owner, depth)


def _function(value: FunctionType, owner: Any, depth: int) -> Hashable:
    """Read a function: those that one line has made differ in what they refer to."""
    if vars(value):
        return None
    try:
        variables = [cell.cell_contents for cell in value.__closure__ or ()]
    except ValueError:  # one that has no value yet
        return None
    made_with = (variables, value.__defaults__, value.__kwdefaults__)
    return id(value.__code__), id(value.__globals__), _items(made_with, owner, depth)


def _method(value: MethodType, owner: Any, depth: int) -> Hashable:
    return id(value.__func__), _mark(value.__self__, owner, depth)


def _partial(value: partial[Any], owner: Any, depth: int) -> Hashable:
    if vars(value):
        return None
    return _items((value.func, value.args, value.keywords), owner, depth)


_PLAIN = frozenset((int, bool, str, bytes, type(None)))
_NUMBERS = frozenset((float, np.float64))
_HANDLES = frozenset(
    (NumericParameter, ContinuousState, DiscreteState, InputPort, LeafOutputPort, CacheEntry)
)
_READERS: dict[type, Callable[..., Hashable]] = {
    float: _number,
    np.float64: _number,
    tuple: _items,
    list: _items,
    dict: _entries,
    np.ndarray: _array,
    BodyAttachment: _attachment,
    FunctionType: _function,
    MethodType: _method,
    partial: _partial,
}


def most_alike(blocks: Iterable[LeafSystem]) -> int:
    """Return how many blocks there are of the most frequent kind."""
    return max(Counter(map(structural_key, blocks)).values())
