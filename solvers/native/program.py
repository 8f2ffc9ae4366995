"""A program: the equations of a root system as native functions of time, state and environment.

One trace serves every context of the system: time, states and discrete values are read when a
function is called, parameters and fixed inputs when the environment is filled. What depends on
nothing else is computed then, once.

The environment begins with the discrete values of all blocks, in the order of the blocks.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.errors import FlexureError, TraceError
from flexure.diagrams.events import Event, Periodic, Witness
from flexure.diagrams.layout import Layout
from flexure.diagrams.scalars.expression import reachable
from flexure.diagrams.state import ContinuousState
from flexure.diagrams.store import Store
from flexure.diagrams.values import FloatArray, conform
from flexure.solvers.native.emission import Environment, depth_first, emit, key_of
from flexure.solvers.native.language import Module
from flexure.solvers.native.library import Library
from flexure.solvers.native.methods import METHODS, generic_attempt, specialized_attempt
from flexure.solvers.native.purity import without_trace
from flexure.solvers.trace import DISCRETE, INPUT, PARAMETER, STATE, TIME, Key, number_behind, trace

_LARGE = 200_000  # characters, about 3000 operations, beyond which LLVM is to try less hard
_MOVING = (TIME, STATE, DISCRETE)

#: An event of a block: position of the block and of the event in it.
EventKey = tuple[int, int]


class Update:
    """A traced update: what it computes, and where that goes."""

    def __init__(self, expressions: list[Any], targets: list[int]) -> None:
        self.expressions = expressions
        self.targets = targets


class Program:
    """Native functions of one root system.

    Parameters
    ----------
    layout : Layout
        Of the system.

    Attributes
    ----------
    num_states, num_discrete : int
        Numbers of continuous states and discrete values.
    witnesses : list of EventKey
        Witness events whose functions were traced, in the order of the function ``witness``.
    updates : dict
        Traced updates of periodic and witness events.
    signals : dict
        Where the signal that a publish records is among the logged signals, by event.
    refusals : dict
        Why an event was not traced.
    operations : int
        Of the derivatives.
    timed : bool
        Whether the derivatives depend on time.

    Raises
    ------
    TraceError
        When the derivatives cannot be traced.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.num_states = layout.num_states
        self._place_discrete()
        self.witnesses: list[EventKey] = []
        self.updates: dict[EventKey, Update] = {}
        self.signals: dict[EventKey, slice] = {}
        self.refusals: dict[EventKey, str] = {}
        self._witness_expressions: list[Any] = []
        self._signal_expressions: list[Any] = []
        self.derivatives: list[Any] = trace(layout, self._read)
        self.environment = Environment(size=self.num_discrete)
        self._keys: list[Key] = []
        self._key_places: list[int] = []
        self._prepare: list[tuple[Any, int]] = []  # functions, and where their results go
        self._libraries: list[Library] = []
        self.operations = sum(
            node.op != "input" for node in depth_first(self.derivatives, {})
        )
        self.timed = any(key[0][0] == TIME for key in _sources(self.derivatives))
        self.jacobian_entries: tuple[FloatArray, FloatArray] | None = None
        self._jacobian_address = 0
        self._attempts: dict[str, int] = {}
        self._rhs_text: tuple[str, set[str]] = "", set()
        self._compile()

    def _place_discrete(self) -> None:
        """Lay the discrete values of all blocks end to end."""
        self._discrete_base: list[list[int]] = []
        count = 0
        for leaf in self.layout.leaves:
            bases = []
            for group in leaf.discrete_states:
                bases.append(count)
                count += group.size
            self._discrete_base.append(bases)
        self.num_discrete = count

    # Tracing -------------------------------------------------------------------------------

    def _read(self, store: Store) -> list[Any]:
        """Trace the derivatives, and every event that can be traced."""
        derivatives = list(store.time_derivatives())
        for position, leaf in enumerate(store.leaves):
            for index, event in enumerate(leaf.system.events):
                key = position, index
                try:
                    self._read_event(store, key, event)
                except (FlexureError, ArithmeticError, TypeError, ValueError) as error:
                    self.refusals[key] = _reason(error)
        return derivatives

    def _read_event(self, store: Store, key: EventKey, event: Event) -> None:
        """Trace the functions of one event."""
        leaf = store.leaves[key[0]]
        if isinstance(event.trigger, Witness):
            calc = event.trigger.calc
            value = conform(without_trace(calc, leaf), 1, lambda: event.label)
            self.witnesses.append(key)
            self._witness_expressions.extend(value)
        if event.kind == "publish":
            if event.signal is not None:
                start = len(self._signal_expressions)
                self._signal_expressions.extend(event.signal(leaf))
                self.signals[key] = slice(start, len(self._signal_expressions))
            return
        if not isinstance(event.trigger, (Periodic, Witness)):
            return
        expressions: list[Any] = []
        targets: list[int] = []
        for state, value in (without_trace(event.handler, leaf) or {}).items():
            if isinstance(state, ContinuousState):
                start = self.layout.x_slices[key[0]].start
            else:
                start = self.num_states + self._discrete_base[key[0]][state.index]
            expressions.extend(conform(value, state.size, lambda: event.label))
            targets.extend(range(start, start + state.size))
        self.updates[key] = Update(expressions, targets)

    # Compilation ---------------------------------------------------------------------------

    def _compile(self) -> None:
        """Compile the derivatives and everything that events need."""
        functions = {"rhs": self.derivatives}
        if self._witness_expressions:
            functions["witness"] = self._witness_expressions
        if self._signal_expressions:
            functions["signals"] = self._signal_expressions
        for k, update in enumerate(self.updates.values()):
            functions[f"update_{k}"] = update.expressions
        self._addresses = self._add(functions)
        self.rhs = self._addresses["rhs"]
        self.witness = self._addresses.get("witness", 0)
        self.signal = self._addresses.get("signals", 0)

    def update_address(self, key: EventKey) -> int:
        """Return the address of a traced update."""
        return self._addresses[f"update_{list(self.updates).index(key)}"]

    def _add(self, functions: dict[str, list[Any]]) -> dict[str, int]:
        """Compile functions; return their addresses."""
        fixed = self._place_inputs(expression for part in functions.values() for expression in part)
        texts: list[str] = []
        declarations: set[str] = set()
        base = self.environment.reserve(len(fixed))
        for name, expressions in {"prepare": fixed, **functions}.items():
            text, needed = emit(name, expressions, self.environment)
            texts.append(text)
            declarations |= needed
            if name == "prepare":
                for k, node in enumerate(fixed):
                    self.environment.places[node.index] = ("env", base + k)
            elif name == "rhs":
                self._rhs_text = text, needed
        library = _library([*sorted(declarations), *texts])
        self._libraries.append(library)
        self._prepare.append((_equation(library.address("prepare")), base))
        return {name: library.address(name) for name in functions}

    def _place_inputs(self, expressions: Any) -> list[Any]:
        """Find the inputs and what is computed from parameters alone; return the latter."""
        places = self.environment.places
        nodes = reachable(e for e in expressions if isinstance(e, scalars.Symbol))
        moving: set[int] = set()
        fixed: dict[int, Any] = {}
        for node in nodes:
            if node.op == "input":
                (what, where, index), component = key = key_of(node)
                if what in _MOVING:
                    moving.add(node.index)
                if node.index not in places:
                    places[node.index] = self._place_of(key)
            elif any(arg.index in moving for arg in node.args):
                moving.add(node.index)
                for arg in node.args:
                    if arg.index not in moving and arg.args and arg.index not in places:
                        fixed[arg.index] = arg
        return list(fixed.values())

    def _place_of(self, key: Key) -> tuple[str, int]:
        """Return where the number behind an input of the trace is."""
        (what, where, index), component = key
        if what == TIME:
            return "t", 0
        if what == STATE:
            return "x", component
        if what == DISCRETE:
            return "env", self._discrete_base[where][index] + component
        assert what in (PARAMETER, INPUT)
        self._keys.append(key)
        self._key_places.append(self.environment.reserve())
        return "env", self._key_places[-1]

    def attempt(self, name: str) -> int:
        """Return the address of the trial step of a method, made for this system if that pays."""
        method = METHODS[name]
        text, declarations = self._rhs_text
        if method.linear or len(text) > _LARGE:
            return generic_attempt(name)
        if name not in self._attempts:
            module = Module(declarations=set(declarations))
            module.functions["rhs"] = text.replace("define void @rhs(", "define internal void @rhs(")
            specialized_attempt(module, method, self.num_states, "rhs")
            library = _library([module.text])
            self._libraries.append(library)
            self._attempts[name] = library.address("attempt")
        return self._attempts[name]

    def jacobian(self) -> int:
        """Return the address of the function that computes the nonzero entries of the Jacobian.

        Their rows and columns are in `jacobian_entries`. An environment that was filled before
        has to be filled again.
        """
        if self.jacobian_entries is None:
            found = scalars.jacobian(
                self.derivatives, [((STATE, 0, 0), k) for k in range(self.num_states)]
            )
            self._jacobian_address = self._add({"jacobian": list(found.entries)})["jacobian"]
            self.jacobian_entries = (
                np.array(found.rows, dtype=np.int64),
                np.array(found.columns, dtype=np.int64),
            )
        return self._jacobian_address

    # Values --------------------------------------------------------------------------------

    def fill(self, store: Store) -> FloatArray:
        """Return a new environment with the values of a context."""
        env = np.zeros(self.environment.size + 1)
        self.refresh(store, env)
        return env

    def refresh(self, store: Store, env: FloatArray) -> None:
        """Put the values of a context into an environment."""
        self.read_discrete(store, env)
        env[self._key_places] = [number_behind(store, key) for key in self._keys]
        self.prepare(env)

    def prepare(self, env: FloatArray) -> None:
        """Compute what depends on parameters alone."""
        nothing = np.zeros(1)
        for function, base in self._prepare:
            start = env.ctypes.data
            function(0.0, nothing.ctypes.data, start, start + 8 * base)

    def read_discrete(self, store: Store, env: FloatArray) -> None:
        """Put the discrete values of a context into an environment."""
        for leaf, bases in zip(store.leaves, self._discrete_base, strict=True):
            for value, base in zip(leaf.discrete, bases, strict=True):
                env[base : base + len(value)] = value

    def discrete_groups(self, values: FloatArray) -> list[list[FloatArray]]:
        """Cut a vector of all discrete values into those of the blocks."""
        return [
            [
                values[base : base + group.size]
                for base, group in zip(bases, leaf.discrete_states, strict=True)
            ]
            for leaf, bases in zip(self.layout.leaves, self._discrete_base, strict=True)
        ]


_programs: WeakKeyDictionary[Layout, Program | TraceError] = WeakKeyDictionary()
_lock = threading.Lock()


def program_of(layout: Layout) -> Program:
    """Return the program of a root system, made when it is first asked for.

    Raises
    ------
    TraceError
        When the derivatives cannot be traced.
    """
    with _lock:
        found = _programs.get(layout)
        if found is None:
            try:
                found = Program(layout)
            except TraceError as error:
                found = error.with_traceback(None)
            _programs[layout] = found
    if isinstance(found, TraceError):
        raise found
    return found


def _library(texts: list[str]) -> Library:
    """Compile the text of equations."""
    text = "\n".join(texts)
    return Library(text, lambda: text, level=2 if len(text) < _LARGE else 1)


def _equation(address: int) -> Callable[..., None]:
    """Return a function ``f(t, x, env, out)`` that takes addresses."""
    pointer = ctypes.c_void_p
    signature = ctypes.CFUNCTYPE(None, ctypes.c_double, pointer, pointer, pointer)
    function: Callable[..., None] = signature(address)
    return function


def _sources(expressions: Sequence[Any]) -> Any:
    return scalars.sources(list(expressions))


def _reason(error: Exception) -> str:
    """Say why something cannot be traced."""
    first = error.attempt if isinstance(error, FlexureError) else f"{type(error).__name__}: {error}"
    return "; ".join([first, *getattr(error, "__notes__", ())])


__all__ = ["EventKey", "Program", "Update", "program_of"]
