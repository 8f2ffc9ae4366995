"""A program: the equations of a root system as native functions of time, state and environment.

One trace serves every context of the system: time, states and discrete values are read when a
function is called, parameters and fixed inputs when the environment is filled. What depends on
nothing else is computed then, once.

Beyond a size, the derivatives of blocks that are alike, and of like parts of one block, share their
code (`flexure.solvers.native.sharing.instances`). With many blocks, all of them are traced together
only when somebody asks for more than the derivatives: for events at once, for exact Jacobians when
a method needs them.

The environment begins with the discrete values of all blocks, in the order of the blocks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams import scalars
from flexure.diagrams.context import LeafContext
from flexure.diagrams.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.errors import FlexureError, TraceError
from flexure.diagrams.events import Event, Periodic, Witness
from flexure.diagrams.kinds import DISCRETE
from flexure.diagrams.layout import Layout
from flexure.diagrams.quiet import quietly
from flexure.diagrams.scalars.branches import explore
from flexure.diagrams.scalars.simplification import simplify
from flexure.diagrams.state import ContinuousState
from flexure.diagrams.store import Store
from flexure.diagrams.threads import Lock
from flexure.diagrams.values import FloatArray, conform, freeze
from flexure.solvers.native.emission.emission import Environment, depth_first, emit_with_preparation
from flexure.solvers.native.emission.jacobian_emission import emit_jacobian
from flexure.solvers.native.emission.sparse_factors import SparseFactors, find_pattern
from flexure.solvers.native.llvm.assembly import equations_library
from flexure.solvers.native.llvm.library import Address, Library, callable_at
from flexure.solvers.native.methods import (
    METHODS,
    generic_attempt,
    source_identity,
    specialized_attempt,
)
from flexure.solvers.tracing.effort import SHARED, WRITTEN, refuse_beyond
from flexure.solvers.tracing.side_effects import without_trace
from flexure.solvers.tracing.signals import Reader
from flexure.solvers.tracing.trace import (
    STATE,
    TIME,
    Key,
    SymbolicStore,
    number_behind,
    trace,
    trace_derivatives,
)

if TYPE_CHECKING:
    from flexure.solvers.native.lane_equations import LaneEquations
    from flexure.solvers.native.sharing.instances import Instances

_LARGE = 200_000  # characters, about 3000 operations, beyond which one explicit step serves all
_FEW = 32  # states, up to which a step is faster with one number at a time, see `Library`
_INLINED = 2000  # operations of all stages, up to which a step gains by having them in one piece
_MANY = 200  # calculations, from which on chains of masses compile faster with shared code
_LONG = 3000  # operations, from which on free bodies do

_EQUATIONS = ctypes.CFUNCTYPE(None, ctypes.c_double, *[ctypes.c_void_p] * 3)

#: An event of a block: position of the block and of the event in it.
EventKey = tuple[int, int]
IntArray = NDArray[np.int64]


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
    zeros : collection of Key, optional
        Components of parameters that are zero in all contexts that the program is to serve.

    Attributes
    ----------
    zeros : frozenset of Key
        Those of them of which use was made.
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

    def __init__(self, layout: Layout, zeros: Collection[Key] = ()) -> None:
        self._layout = ref(layout)
        self.zeros = frozenset(zeros)
        self._zeros_of_parameters: dict[tuple[int, int], list[int]] = {}  # of block and parameter
        for (_, position, index), component in self.zeros:
            self._zeros_of_parameters.setdefault((position, index), []).append(component)
        self._lock = Lock()  # while functions are added
        self.num_states = layout.num_states
        self._place_discrete()
        self.witnesses: list[EventKey] = []
        self.updates: dict[EventKey, Update] = {}
        self.signals: dict[EventKey, slice] = {}
        self.refusals: dict[EventKey, str] = {}
        self._witness_expressions: list[Any] = []
        self._signal_expressions: list[Any] = []
        self.environment = Environment(self.num_discrete, self._discrete_base)
        self._environments = [self.environment]  # one for each trace; they lie end to end
        self._prepare: list[tuple[Any, int]] = []  # functions, and where their results go
        self._instances: Instances | None = None
        self._derivatives: list[Any] | None = None
        if len(layout.plan) + len(layout.dynamic) >= _MANY:
            self._instances = self._share()
        if self._instances is None:
            self._derivatives = trace(layout, self._read)
            self.timed = any(key[0][0] == TIME for key in _sources(self.derivatives))
        else:
            self.operations, self.timed = self._instances.operations, self._instances.timed
            if any(leaf.events for leaf in layout.leaves):
                trace(layout, self._read_events)
        self.jacobian_entries: tuple[IntArray, IntArray] | None = None
        self.pattern: SparseFactors | None = None
        self._jacobian_address: Address | None = None
        self._no_jacobian: TraceError | None = None
        self._attempts: dict[str, Address] = {}
        self._lane_equations: dict[tuple[tuple[str, Any], ...], LaneEquations] = {}
        self._rhs_text: tuple[str, set[str]] = "", set()
        self._compile()

    @property
    def layout(self) -> Layout:
        """The layout of the system, which others keep; programs go when their systems do."""
        layout = self._layout()
        assert layout is not None
        return layout

    def _place_discrete(self) -> None:
        """Lay the discrete values of all blocks end to end."""
        self._discrete_base: list[list[int]] = []
        self._discrete_spans: dict[int, list[slice]] = {}  # of the blocks that have any
        count = 0
        for position, leaf in enumerate(self.layout.leaves):
            spans = []
            for group in leaf.discrete_states:
                spans.append(slice(count, count + group.size))
                count += group.size
            self._discrete_base.append([span.start for span in spans])
            if spans:
                self._discrete_spans[position] = spans
        self.num_discrete = count

    # Tracing -------------------------------------------------------------------------------

    @property
    def derivatives(self) -> list[Any]:
        """The derivatives as expressions of one trace of all blocks."""
        with self._lock:
            if self._derivatives is None:
                found = simplify(trace_derivatives(self.layout), self.zeros, checked=True)
                environment = Environment(self.environment.size, self._discrete_base)
                self._environments.append(environment)
                self.environment = environment
                self._derivatives = found  # last, so that an interruption spoils nothing
            return self._derivatives

    def _read(self, store: SymbolicStore) -> list[Any]:
        """Trace the derivatives, and every event that can be traced."""
        rates = list(store.time_derivatives())
        derivatives = simplify(rates, self.zeros, checked=True)
        self.operations = sum(node.op != "input" for node in depth_first(derivatives, {}))
        if self.operations >= _LONG and len(store.layout.plan) + len(store.layout.dynamic) < _MANY:
            from flexure.solvers.native.sharing.instances import may_pay

            if may_pay(store, rates):
                refuse_beyond(SHARED, self.operations, "derivatives")
                self._instances = self._share()
        if self._instances is None:
            refuse_beyond(WRITTEN, self.operations, "derivatives")
        self._read_events(store)
        return derivatives

    def _share(self) -> Instances | None:
        """Return the derivatives with the code of what is alike shared, if that pays."""
        if any(leaf.abstract_parameters or leaf.abstract_states for leaf in self.layout.leaves):
            return None  # such a system is not traced as a whole, which events and Jacobians need
        from flexure.solvers.native.sharing.instances import Instances
        from flexure.solvers.native.sharing.walk import UnlikeError

        try:
            return Instances(self.layout, self.environment, self.zeros)
        except UnlikeError:
            return None

    def _read_events(self, store: SymbolicStore) -> None:
        """Trace every event that can be traced."""
        for position, leaf in enumerate(store.leaves):
            for index, event in enumerate(leaf.system.events):
                key = position, index
                try:
                    self._read_event(store, key, event)
                except (FlexureError, ArithmeticError, TypeError, ValueError) as error:
                    self.refusals[key] = _reason(error)

    def _read_event(self, store: SymbolicStore, key: EventKey, event: Event) -> None:
        """Trace the functions of one event."""
        leaf = store.leaves[key[0]]
        if isinstance(event.trigger, Witness):
            found = explore(store.graph, partial(without_trace, event.trigger.calc, leaf))
            value = conform(found, 1, lambda: event.label)
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
        for state, value in updated_states(store, leaf, event).items():
            if isinstance(state, ContinuousState):
                start = self.layout.x_slices[key[0]].start
            else:
                start = self.num_states + self._discrete_base[key[0]][state.index]
            expressions.extend(value)
            targets.extend(range(start, start + state.size))
        self.updates[key] = Update(expressions, targets)

    # Compilation ---------------------------------------------------------------------------

    def _compile(self) -> None:
        """Compile the derivatives and everything that events need."""
        functions: dict[str, list[Any]] = {}
        if self._instances is None:
            functions["rhs"] = self.derivatives
        else:
            self._prepare.append((native_function(self._instances.prepare), 0))
        if self._witness_expressions:
            functions["witness"] = self._witness_expressions
        if self._signal_expressions:
            functions["signals"] = self._signal_expressions
        for k, update in enumerate(self.updates.values()):
            functions[f"update_{k}"] = update.expressions
        self._addresses = self._add(functions) if functions else {}
        self.rhs = self._addresses["rhs"] if self._instances is None else self._instances.rhs
        self.witness = self._addresses.get("witness")
        self.signal = self._addresses.get("signals")

    def update_address(self, key: EventKey) -> Address:
        """Return the address of a traced update."""
        return self._addresses[f"update_{list(self.updates).index(key)}"]

    def _add(self, functions: dict[str, list[Any]]) -> dict[str, Address]:
        """Compile functions; return their addresses."""
        with quietly():
            functions = {
                name: simplify(each, self.zeros, checked=True) for name, each in functions.items()
            }
            texts, base = emit_with_preparation(functions, self.environment)
        self._rhs_text = texts.get("rhs", self._rhs_text)
        library = self._load(texts.values(), base)
        return {name: library.address(name) for name in functions}

    def _load(self, texts: Iterable[tuple[str, set[str]]], base: int) -> Library:
        """Compile texts with a function ``prepare`` whose results go to a place."""
        library = equations_library(texts)
        self._prepare.append((native_function(library.address("prepare")), base))
        return library

    def attempt(self, name: str) -> Address:
        """Return the address of the trial step of a method, made for this system if that pays."""
        with self._lock:
            if name not in self._attempts:
                self._attempts[name] = self._make_attempt(name)
            return self._attempts[name]

    def _make_attempt(self, name: str) -> Address:
        method = METHODS[name]
        text, declarations = self._rhs_text
        if self.operations * method.last > _INLINED:
            text, declarations = "", set()  # a call of the derivatives costs next to nothing
        if method.linear:
            made = self.pattern is not None and self.pattern.is_short
        else:
            made = 0 < len(self._rhs_text[0]) <= _LARGE
        if not made:
            return generic_attempt(name)
        text = text.replace("define void @rhs(", "define internal void @rhs(")
        text = text.replace(" #0 {", " #0 alwaysinline {")
        known = f"{self.num_states} states, {self.pattern}, {source_identity()}"
        library = Library(
            f"step of {name}, {known}\n{text}",
            lambda: specialized_attempt(
                method, self.num_states, (text, declarations), self.pattern
            ),
            vectorized=not method.linear and self.num_states > _FEW,
        )
        return library.address("attempt")

    def lane_equations(self, signals: Sequence[Reader]) -> LaneEquations:
        """Return the equations for all lanes at once, with signals to sample.

        Raises
        ------
        TraceError
            When a signal or an initialization update cannot be traced.
        """
        from flexure.solvers.native.lane_equations import LaneEquations

        key = tuple((signal.handle.path, signal.part) for signal in signals)
        with self._lock:
            if key not in self._lane_equations:
                self._lane_equations[key] = LaneEquations(
                    self.layout, self._discrete_base, self.num_discrete, signals
                )
            return self._lane_equations[key]

    def obstacle(self, method: str) -> str:
        """Return why a method cannot run natively; nothing if it can."""
        if METHODS[method].linear and self._jacobian_address is None:
            try:
                self.jacobian()
            except TraceError as error:
                return error.attempt[0].lower() + error.attempt[1:]
        return ""

    def jacobian(self) -> Address:
        """Return the address of the function that computes the nonzero entries of the Jacobian.

        Their rows and columns are in `jacobian_entries`, and what linear equations with them need
        is in `pattern`. An environment that was filled before has to be filled again.

        Raises
        ------
        TraceError
            When it would take too long to compile.
        """
        with self._lock:
            if self._no_jacobian is not None:
                raise copy(self._no_jacobian)
            if self._jacobian_address is None:
                try:
                    self._make_jacobian()
                except TraceError as error:
                    self._no_jacobian = copy(error)  # without what was going on when it was raised
                    raise
            assert self._jacobian_address is not None
            return self._jacobian_address

    def _make_jacobian(self) -> None:
        """Compile the Jacobian; an interruption leaves everything as it was."""
        states = [((STATE, 0, 0), k) for k in range(self.num_states)]
        with quietly():
            derivatives = self.derivatives
            environment = self.environment.copy()
            found = emit_jacobian(derivatives, states, environment, self.zeros)
        library = equations_library(found.texts)
        rows, columns = (np.array(e, np.int64) for e in (found.rows, found.columns))
        pattern = find_pattern(self.num_states, rows, columns)
        patience = DeferredInterrupt()
        with patience:
            self.environment = self._environments[-1] = environment
            self._prepare.append((native_function(library.address("prepare")), found.base))
            self.jacobian_entries, self.pattern = (rows, columns), pattern
            self._jacobian_address = library.address("jacobian")
        patience.deliver()

    # Values --------------------------------------------------------------------------------

    def serves(self, store: Store) -> bool:
        """Tell whether what has to be zero is zero in a context."""
        leaves = store.leaves
        return not any(
            np.any(np.reshape(leaves[position].parameters[index], -1)[components])
            for (position, index), components in self._zeros_of_parameters.items()
        )

    def fill(self, store: Store) -> FloatArray:
        """Return a new environment with the values of a context."""
        with self._lock:
            env = np.zeros(self.environment.size + 1)
            self.refresh(store, env)
        return env

    def refresh(self, store: Store, env: FloatArray) -> None:
        """Put the values of a context into an environment that has room for all functions."""
        assert len(env) > self.environment.size
        self.read_discrete(store, env)
        for environment in self._environments:
            keys = environment.keys
            env[list(keys.values())] = [number_behind(store, key) for key in keys]
        if self._instances is not None:
            self._instances.fill(store, env)
        self.prepare(env)

    def values_at(self, time: float, x: FloatArray, env: FloatArray) -> FloatArray:
        """Return the time derivatives, and then the logged signals."""
        n = self.num_states
        x = np.ascontiguousarray(x, dtype=float)
        out = np.empty(n + sum(where.stop - where.start for where in self.signals.values()))
        native_function(self.rhs)(time, x.ctypes.data, env.ctypes.data, out.ctypes.data)
        if self.signal:
            place = out.ctypes.data + 8 * n
            native_function(self.signal)(time, x.ctypes.data, env.ctypes.data, place)
        return out

    def prepare(self, env: FloatArray) -> None:
        """Compute what depends on parameters alone."""
        nothing = np.zeros(1)
        for function, base in self._prepare:
            start = env.ctypes.data
            function(0.0, nothing.ctypes.data, start, start + 8 * base)

    def read_discrete(self, store: Store, env: FloatArray) -> None:
        """Put the discrete values of a context into an environment."""
        for position, spans in self._discrete_spans.items():
            for value, span in zip(store.leaves[position].discrete, spans, strict=True):
                env[span] = value

    def write_discrete(self, store: Store, values: FloatArray) -> None:
        """Put discrete values, with which a vector begins, into a context."""
        if not self.num_discrete:
            return
        values = freeze(values[: self.num_discrete].copy())
        for position, spans in self._discrete_spans.items():
            store.leaves[position].discrete = [values[span] for span in spans]
        store.changed(DISCRETE)

    def discrete_groups(self, values: FloatArray) -> list[list[FloatArray]]:
        """Cut a vector of all discrete values into those of the blocks."""
        groups: list[list[FloatArray]] = [[]] * len(self._discrete_base)  # most blocks have none
        for position, spans in self._discrete_spans.items():
            groups[position] = [values[span] for span in spans]
        return groups


def updated_states(store: SymbolicStore, leaf: LeafContext, event: Event) -> dict[Any, Any]:
    """Trace an update handler along all of its branches; return the states that it writes.

    A branch that leaves a state out leaves it as it is. That means something else where another
    update of the block writes the state at the same instant, which is why that is refused.
    """
    system = leaf.system
    states: list[Any] = [*system.discrete_states]
    if system.continuous_state is not None:
        states.append(system.continuous_state)
    written: list[set[Any]] = []

    def values() -> list[Any]:
        returned = without_trace(event.handler, leaf) or {}
        written.append(set(returned))
        return [
            conform(returned[state], state.size, lambda: event.label)
            if state in returned
            else state(leaf)
            for state in states
        ]

    merged = explore(store.graph, values)
    everywhere, somewhere = set.intersection(*written), set.union(*written)
    updates = [each for each in system.events if each.kind != "publish"]
    if somewhere - everywhere and len(updates) > 1:
        raise TraceError(
            f"Cannot trace the update '{event.label}'",
            expected="the same states on all of its branches, or no other update in the block",
            found="states that only some of the branches write",
        )
    pairs = zip(states, merged, strict=True)
    return {state: value for state, value in pairs if state in somewhere}


def native_function(address: Address) -> Callable[..., None]:
    """Return a function ``f(t, x, env, out)`` that takes addresses."""
    function: Callable[..., None] = callable_at(address, _EQUATIONS)
    return function


def _sources(expressions: Sequence[Any]) -> Any:
    return scalars.sources(list(expressions))


def _reason(error: Exception) -> str:
    """Say why something cannot be traced."""
    first = error.attempt if isinstance(error, FlexureError) else f"{type(error).__name__}: {error}"
    return "; ".join([first, *getattr(error, "__notes__", ())])


__all__ = ["EventKey", "Program", "Update", "native_function"]
