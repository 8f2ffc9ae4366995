"""Provenance: what the numbers of runs depend on, as a table of short texts.

A study may only go on when all of it is as it was. Entries are named so that a difference can be
said: which block is another one, which value, which option, which version.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import ReferenceType

import numpy as np

from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.files.versions import versions
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.handles import Handle
from flexure.solvers.tracing.replicas import is_trusted, names_in, passed_over_in

_SHORT = 200  # letters of a value that is written in full
_SAID = 4  # differences
#: Kinds of entries: of what a model is made, and all.
STRUCTURE = ("block", "wire")
KINDS = (*STRUCTURE, "value", "option", "version")
_COMPUTED_ONCE = cached_property.__mro__[1]  # of which ours is a kind
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)
_DEEPEST = 50  # containers within containers
# What every class has, and what says nothing about what it does.
_OF_EVERY_CLASS = frozenset(
    (
        *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl"),
        *("__slotnames__", "_handle_names"),
        *("__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotations_cache__"),
    )
)


class Fingerprints:
    """Digests of objects that are the same in every process and for every hash seed.

    Two objects have the same fingerprint when they are of the same class and hold the same.
    Functions and classes that users wrote are read as code, together with the functions, classes
    and values that they refer to, so that a change of a law of friction shows. Functions and
    classes of Python, NumPy, SciPy and Flexure itself are replaced by their names, as their
    versions are recorded separately. Names are without modules, so that a file may move. No object
    is pickled. Readings of classes and functions are shared.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}  # by identity, with what has it

    def of(self, *values: Any) -> str:
        """Return the fingerprint of values, 32 hexadecimal digits."""
        walk = _Walk(self)
        found = hashlib.blake2b(digest_size=16)
        for value in values:
            found.update(walk.spell(value).encode("utf-8", "surrogatepass") + b"\n")
        while walk.queue:  # not by recursion, as bodies may hang on each other in long chains
            content = walk.content(walk.queue.popleft())
            found.update(content.encode("utf-8", "surrogatepass") + b"\n")
        return found.hexdigest()

    def of_code(self, thing: Any) -> str:
        """Return the fingerprint of a user's class, or of the code of a function of his."""
        key = id(thing)
        if key not in self._known:
            self._known[key] = thing, "itself"  # for those who refer to themselves
            members = _code_of(thing) if isinstance(thing, FunctionType) else _members(thing)
            self._known[key] = thing, self.of(*members)
        return self._known[key][1]


class _Walk:
    """One pass over values, and over the objects that they lead to."""

    def __init__(self, prints: Fingerprints) -> None:
        self._prints = prints
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is used again
        self.queue: deque[Any] = deque()

    def spell(self, value: Any, depth: int = 0) -> str:
        """Write a value as a text; objects as their number in the queue."""
        if isinstance(value, System):
            return f"system {value.path or value.name}"
        if isinstance(value, Handle):
            return f"{type(value).__name__} {value.full_name}"
        kind = type(value)
        if kind in _PLAIN:
            return f"{kind.__name__} {value!r}"
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(np.asarray(value), depth)
        if kind in (tuple, list) and depth < _DEEPEST:
            return f"{kind.__name__} [{', '.join([self.spell(v, depth + 1) for v in value])}]"
        if kind in (set, frozenset) and depth < _DEEPEST:
            return f"set {sorted([self.spell(v, depth + 1) for v in value])}"
        if isinstance(value, Mapping) and depth < _DEEPEST:
            items = [(self.spell(k, depth + 1), self.spell(v, depth + 1)) for k, v in value.items()]
            return f"{kind.__name__} {sorted(items)}"
        if isinstance(value, type):
            return (
                f"class {_name(value)} {'' if is_trusted(value) else self._prints.of_code(value)}"
            )
        if isinstance(value, ModuleType):
            return f"module {_package(value)}"
        return f"#{self._number(value)}"

    def _array(self, array: np.ndarray[Any, Any], depth: int) -> str:
        if array.dtype.hasobject:
            return f"objects {array.shape} {self.spell(array.ravel().tolist(), depth + 1)}"
        digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16)
        return f"array {array.dtype.str} {array.shape} {digest.hexdigest()}"

    def _number(self, thing: Any) -> int:
        number = self._numbers.setdefault(id(thing), len(self._numbers))
        if number == len(self._kept):
            self._kept.append(thing)
            self.queue.append(thing)
        return number

    def content(self, thing: Any) -> str:
        """Write what an object holds."""
        if isinstance(thing, FunctionType):
            cells = [_content(cell) for cell in thing.__closure__ or ()]
            made_with = [cells, thing.__defaults__, thing.__kwdefaults__, vars(thing)]
            code = _name(thing) if is_trusted(thing) else self._prints.of_code(thing)
            return f"function {code} {self.spell(made_with)}"
        if isinstance(thing, MethodType):
            return f"method {self.spell([thing.__func__, thing.__self__])}"
        if isinstance(thing, (property, _COMPUTED_ONCE, staticmethod, classmethod)):
            functions = [getattr(thing, name, None) for name in ("func", "__func__", "fget")]
            return f"{type(thing).__name__} {self.spell(functions)}"
        if isinstance(thing, CodeType):
            return f"code {self.spell(_parts(thing))}"
        if isinstance(thing, (ReferenceType, Context)):
            return type(thing).__name__
        return f"{self.spell(type(thing))} {self.spell(_state_of(thing))}"


def _name(thing: Any) -> str:
    """Return a name, and of what is installed the package, but never a module."""
    # So what moves to another file stays what it is.
    return f"{_package(thing)} {thing.__qualname__}"


def _package(thing: Any) -> str:
    """Return the package of what is installed with a version; nothing for what users wrote."""
    home = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return str(home).partition(".")[0] if is_trusted(thing) else ""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # one that has no value yet
        return "nothing"


def _parts(code: CodeType) -> list[Any]:
    """Return what code does, without the lines and files it is from, and without comments."""
    return [code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_flags]


def _code_of(function: FunctionType) -> list[Any]:
    """Return the code of a function, and what it refers to by global names."""
    parts = _parts(function.__code__)
    if function.__doc__ is not None and parts[1][:1] == (function.__doc__,):
        parts[1] = parts[1][1:]
    names, held = names_in(function.__code__), function.__globals__
    used = {name: held[name] for name in names if name in held}
    modules = [value for value in used.values() if isinstance(value, ModuleType)]
    for number, module in enumerate(modules):
        inside = {} if is_trusted(module) else vars(module)
        used |= {f"{number}.{n}": inside[n] for n in names if n in inside}
    return [_name(function), *parts, used]


def _members(kind: type) -> list[Any]:
    """Return what a class and its bases define."""
    return [
        (_name(each), {} if is_trusted(each) else _defined(each))
        for each in kind.__mro__
        if each is not object
    ]


def _defined(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if name not in _OF_EVERY_CLASS}


def _state_of(thing: Any) -> Any:
    """Return what an object is made of, without what it only keeps to have it at hand."""
    if isinstance(thing, partial):
        return [thing.func, thing.args, thing.keywords]
    try:
        reduced: Any = thing.__reduce_ex__(4)
    except Exception:  # of whatever cannot be copied, such as open files
        return "cannot be read"
    if isinstance(reduced, str):  # the name of what is only wrapped, as by functools.cache
        return [reduced, getattr(thing, "__wrapped__", None)]
    made: list[Any] = [*reduced, None, None, None]
    make, arguments, state, items, entries = made[:5]
    if isinstance(state, dict):
        state = _made_with(thing, state)
    return [make, arguments, state, list(items or ()), list(entries or ())]


def _made_with(thing: Any, state: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return attributes of an object without those that are computed once, when they are needed."""
    kind = type(thing)
    return {
        name: value
        for name, value in state.items()
        if not isinstance(getattr(kind, str(name), None), _COMPUTED_ONCE)
    }


class Entry(NamedTuple):
    """One thing that numbers depend on."""

    kind: str  # "block", "wire", "value", "option" or "version"
    name: str  # which


#: What the numbers depend on, by what it is.
Provenance = dict[Entry, str]


def of_model(context: Context) -> Provenance:
    """Return what a model is: its blocks, its wires, and the values of a root context."""
    store, prints = context.store, Fingerprints()
    layout: Layout = store.layout
    found = {
        Entry("block", leaf.path or leaf.name): f"{type(leaf).__name__} {_print(prints, leaf)}"
        for leaf in layout.leaves
    }
    found[Entry("block", "order")] = prints.of([entry.name for entry in found])
    for leaf, slots in zip(layout.leaves, layout.sources, strict=True):
        for port, slot in zip(leaf.input_ports, slots, strict=True):
            found[Entry("wire", port.full_name)] = layout.slot_port[slot].full_name
    for output in layout.root.output_ports:
        found[Entry("wire", output.name)] = output.origin.full_name
    for handle, value in _values(context):
        found[Entry("value", handle.full_name)] = written(value, prints)
    found[Entry("value", "time")] = repr(float(context.time))
    found[Entry("value", "accuracy")] = repr(context.accuracy)
    return found


def _print(prints: Fingerprints, leaf: LeafSystem) -> str:
    """Return the fingerprint of a block, without the values of its parameters and states."""
    state, passed_over = leaf.continuous_state, passed_over_in(leaf)
    return prints.of(
        type(leaf),
        state and (state.num_q, state.num_v, state.num_z),
        [(p.name, p.shape, p.lower, p.upper, p.unit) for p in leaf.numeric_parameters],
        [(group.name, group.size) for group in leaf.discrete_states],
        [(port.name, port.size) for port in leaf.input_ports],
        [(each.name, each.size, each.calc) for each in (*leaf.output_ports, *leaf.cache_entries)],
        list(leaf.events),
        {k: v for k, v in _made_with(leaf, vars(leaf)).items() if k not in passed_over},
    )


def _values(context: Context) -> Iterable[tuple[Any, Any]]:
    """Go through all that a context holds, by its handles."""
    for leaf in context.leaves():
        block: LeafSystem = leaf.system
        state = block.continuous_state
        numbers = [*block.numeric_parameters, *([] if state is None else [state])]
        others = [*block.discrete_states, *block.abstract_parameters, *block.abstract_states]
        for handle in (*numbers, *others):
            yield handle, handle(leaf)
    store = context.store
    for port, slot in store.layout.held.items():
        yield port, store.cache[slot] if store.holds(slot) else None


def written(value: Any, prints: Fingerprints) -> str:
    """Write a value, in full where it is short."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f":
        text = json.dumps(value.tolist())
    elif value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
    else:
        text = prints.of(value)
    return text if len(text) <= _SHORT else prints.of(value)


def of_versions() -> Provenance:
    """Return the versions on which numbers may depend."""
    return {Entry("version", name): text for name, text in versions().items()}


def differences(then: Provenance, now: Provenance, kinds: Iterable[str] = KINDS) -> str:
    """Describe what differs in entries of some kinds; nothing when all is as it was."""
    then, now = ({e: text for e, text in table.items() if e.kind in kinds} for table in (then, now))
    texts = []
    for entry in [*then, *(each for each in now if each not in then)]:
        old, new = then.get(entry), now.get(entry)
        if old != new:
            texts.append(_said(entry, old, new))
    more = len(texts) - _SAID
    return "; ".join(texts[:_SAID]) + (f"; and {more} more" if more > 0 else "")


def _said(entry: Entry, old: str | None, new: str | None) -> str:
    """Describe what differs in one thing."""
    kind, name = entry
    name = {"wire": f"source of '{name}'"}.get(kind, f"{kind} '{name}'")
    if old is None or new is None:
        return f"the {name} is {'not in the file' if old is None else 'in the file alone'}"
    if kind == "block" and old.partition(" ")[0] == new.partition(" ")[0]:
        return f"the {name} has other code or arguments"
    readable = not any(len(text.rpartition(" ")[2]) == 32 for text in (old, new))
    return f"the {name} is {new}, and {old} in the file" if readable else f"the {name} is another"
