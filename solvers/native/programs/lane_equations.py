"""The equations of a system for all lanes at once, and the loops that integrate ensembles of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.threads import Lock, once
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.jacobians import jacobian_length
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray, conform
from flexure.diagrams.values.events import Event, Initialization, Periodic
from flexure.diagrams.values.state import AbstractState, ContinuousState
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, TIME, Key
from flexure.solvers.native.emission.emission import (
    Environment,
    depth_first,
    emit,
    emit_with_preparation,
)
from flexure.solvers.native.emission.sparse_factors import (
    Indices,
    SparseFactors,
    find_sparse_factors,
)
from flexure.solvers.native.kernels.ensembles import ensemble, ensemble_rosenbrock
from flexure.solvers.native.language.expressions import FUNCTION, Value
from flexure.solvers.native.language.translation import Module
from flexure.solvers.native.llvm.library import Address, Library, cut, lane_count, vector_functions
from flexure.solvers.native.programs.method_programs import METHODS, source_identity
from flexure.solvers.native.programs.system_trace import (
    DiscretePlaces,
    Update,
    read_breaks,
    read_update,
    update_name,
)
from flexure.solvers.tracing.compile_limits import WRITTEN, refuse_beyond
from flexure.solvers.tracing.lanes import Lanes
from flexure.solvers.tracing.side_effects import without_trace
from flexure.solvers.tracing.signals import Reader
from flexure.solvers.tracing.trace import SymbolicStore, trace

_MANIFOLD = "deviations", "projection"
_LARGE = 200_000  # characters of equations, beyond which LLVM is to try less hard


@dataclass
class _Equations:
    """What is traced."""

    # derivatives, signals, deviations, projected: expressions.
    derivatives: list[Any]
    signals: list[Any]
    deviations: list[Any]
    projected: list[Any]
    # What initialization gives to states, by key: unrestricted updates, then discrete ones.
    updates: list[dict[Key, Any]] = field(default_factory=list)
    # The periodic updates: the event, and what it computes.
    periodic: list[tuple[Event, Update]] = field(default_factory=list)
    # The next break time, where updates may move it.
    breaks: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class LaneJacobian:
    """The derivatives of the derivatives by the states, for all lanes."""

    entries: list[Any]  # expressions of those that are not always zero
    # rows, columns: where these are.
    rows: Indices
    columns: Indices
    # What linear equations with them need; None where dense factors are as fast.
    factors: SparseFactors | None

    @classmethod
    def of(cls, derivatives: list[Any]) -> LaneJacobian:
        """Differentiate all derivatives, or raise `TraceError` where that is too long."""
        keys: list[Key] = [((STATE, 0, 0), k) for k in range(len(derivatives))]
        what = "a Jacobian for lanes"
        refuse_beyond(WRITTEN, jacobian_length(derivatives, keys), what)
        found = scalars.jacobian(derivatives, keys)
        entries = simplify(found.entries)  # without checks, which the derivatives make
        refuse_beyond(WRITTEN, len(depth_first(entries, {})), what)
        rows, columns = (np.array(each, np.int64) for each in (found.rows, found.columns))
        return cls(entries, rows, columns, find_sparse_factors(len(keys), rows, columns))


class LaneEquations:
    """Native functions of one root system that compute all lanes at once.

    ``discrete`` is where in an environment the discrete values are. With ``implicit``, methods
    solve linear equations with ``jacobian``. Raises `TraceError` when something cannot be traced.

    ``traced`` are the derivatives and then the signals, for evaluation in Python. ``environment``
    is as in `Program`, but every entry holds a number for each lane; ``signal_places`` is where in
    it the signals read, and ``prepared`` where the results of the function ``prepare`` go.
    ``timed`` is whether the derivatives depend on time. ``num_deviations`` is the number of
    deviations from where states belong, 0 where they belong everywhere. ``periodic`` are events
    with the `Update` that each makes. ``breaks`` computes the next break time, where updates may
    move it. ``operations`` are those of derivatives and Jacobian, roughly.
    """

    def __init__(
        self,
        layout: Layout,
        discrete: DiscretePlaces,
        signals: Sequence[Reader],
        *,
        implicit: bool = False,
    ) -> None:
        self.num_states, self.num_discrete = layout.num_states, discrete.count
        self.lanes = lanes = lane_count(self.num_states)
        self._vectors = vectors = vector_functions(lanes)
        equations = trace(layout, lambda store: _read(store, signals, discrete.starts))
        self.derivatives, self.signals = equations.derivatives, equations.signals
        self.traced = Lanes([*self.derivatives, *self.signals])
        self._updates = equations.updates
        self.environment = Environment(discrete.count, discrete.starts)
        self._states: list[Key] = [((STATE, 0, 0), k) for k in range(layout.num_states)]
        self._states += [
            ((DISCRETE, position, group.index), k)
            for position, leaf in enumerate(layout.leaves)
            for group in leaf.discrete_states
            for k in range(group.size)
        ]
        operations = depth_first(equations.derivatives, {})
        refuse_beyond(WRITTEN, len(operations), "derivatives")
        sources: Any = scalars.sources(equations.derivatives)
        self.timed = any(key[0][0] == TIME for key in sources)
        functions = {"rhs": equations.derivatives}
        self.num_deviations = len(equations.deviations)
        if equations.deviations:
            functions["deviations"] = equations.deviations
            functions["projection"] = equations.projected
            refuse_beyond(WRITTEN, len(depth_first(equations.projected, {})), "a projection")
        self.jacobian = LaneJacobian.of(equations.derivatives) if implicit else None
        if self.jacobian is not None:
            functions["jacobian"] = self.jacobian.entries
        self.periodic = equations.periodic
        for k, (_, update) in enumerate(self.periodic):
            functions[update_name(k)] = update.expressions
            refuse_beyond(WRITTEN, len(depth_first(update.expressions, {})), "an update")
        if equations.breaks:
            functions["breaks"] = equations.breaks
        self._texts, self.prepared = emit_with_preparation(
            functions, self.environment, lanes=lanes, vectors=vectors
        )
        manifold = [self._texts.pop(name) for name in _MANIFOLD if name in self._texts]
        names = [update_name(k) for k in range(len(self.periodic))]
        texts = [self._texts.pop(name) for name in (*names, "breaks") if name in self._texts]
        library = cut(texts).compile() if texts else None
        self.update_functions = [library.address(name) for name in names] if library else []
        self.breaks = library.address("breaks") if library and equations.breaks else None
        self.operations = sum(text.count("\n") for text, _ in self._texts.values())
        self._manifold = cut(manifold).compile() if manifold else None
        self._lock = Lock()
        self._steps: dict[str, dict[str, Address]] = {}
        self.signal = self._compile_signals() if self.signals else None
        self.signal_places = self._places_of_signals()

    def _compile_signals(self) -> Address:
        """Compile the function that computes the signals; return its address."""
        self.environment.place_inputs(self.signals)
        text, declarations = emit(
            "signals", self.signals, self.environment, lanes=self.lanes, vectors=self._vectors
        )
        text = "\n".join([*sorted(declarations), text])
        return Library(text, lambda: text, level=_level(text)).address("signals")

    def _places_of_signals(self) -> list[int]:
        """Return where in the environment is what the signals read."""
        places = self.environment.places
        read = [self.signals, *(node.args for node in depth_first(self.signals, places))]
        nodes = (node for each in read for node in each if isinstance(node, scalars.Symbol))
        found = (places[node.index] for node in nodes if node.index in places)
        return sorted({place for array, place in found if array == "env"})

    @property
    def keys(self) -> list[Key]:
        """All inputs of the trace but time, sorted."""
        updates = [key for each in self._updates for key in Lanes(list(each.values())).keys]
        inputs = {*self._states, *self.environment.keys, *updates}
        return sorted(key for key in inputs if key[0][0] != TIME)

    def initialize(self, store: Store, lanes: dict[Key, FloatArray]) -> None:
        """Run the initialization updates in all runs at once.

        ``store`` holds what all runs have in common, ``lanes`` that in which they differ, all
        states among it; the results of the updates are added to ``lanes``.
        """
        for updates in self._updates:
            if updates:
                table = Lanes(list(updates.values())).evaluate(store, lanes)
                lanes.update(zip(updates, table, strict=True))

    def place(self, key: Key) -> int:
        """Return where in the environment a parameter, an input or a discrete value is."""
        (what, where, index), component = key
        if what == DISCRETE:
            return self.environment.discrete[where][index] + component
        return self.environment.keys[key]

    def addresses(self, method: str) -> dict[str, Address]:
        """Return the addresses of ``rhs``, ``prepare`` and of ``attempt``, a step of a method.

        The address of ``jacobian`` is among them if there is one.
        """
        with self._lock:
            if method not in self._steps:
                self._steps[method] = self._compile(method)
            return self._steps[method]

    def _compile(self, method: str) -> dict[str, Address]:
        """Compile a step, in one piece with the equations if they are short."""
        parts = "\n".join(text for text, _ in self._texts.values())
        factors = None if self.jacobian is None else self.jacobian.factors
        if _level(parts) > 1 and (self.jacobian is None or (factors and factors.is_short)):
            known = f"{self.num_states} states, {factors}"
            key = _key(f"step of {method} for {known}", self.lanes) + parts
            step = equations = Library(key, lambda: self._step_text(method))
        else:
            step = any_step(method, self.lanes)
            equations = cut(self._texts.values()).compile()
        addresses = {name: equations.address(name) for name in self._texts}
        if self._manifold is not None:
            addresses |= {name: self._manifold.address(name) for name in _MANIFOLD}
        return addresses | {"attempt": step.address("attempt")}

    def _step_text(self, method: str) -> str:
        """Write a step of a method with the equations in it."""
        module = Module(self.lanes, self._vectors)
        for name, (text, declarations) in self._texts.items():
            module.functions[name] = text
            module.declarations |= declarations
        tableau = METHODS[method].tableau
        statics = {"tableau": tableau, "n": self.num_states, "f": Value(FUNCTION, "@rhs")}
        if self.jacobian is not None:
            statics["factors"] = self.jacobian.factors
        module.translate(_kernels(method).attempt, "attempt", statics)
        return module.text


def _read(
    store: SymbolicStore, signals: Sequence[Reader], discrete: Sequence[Sequence[int]]
) -> _Equations:
    """Trace derivatives, signals and updates."""
    root = store.leaves[0].root
    equations = _Equations(
        simplify(store.time_derivatives(), checked=True),
        simplify((entry for signal in signals for entry in signal(root)), checked=True),
        simplify(store.deviations()),
        simplify(store.projected_state() if store.layout.projecting else []),
    )
    for kind in ("unrestricted", "discrete"):
        updates: dict[Key, Any] = {}
        for leaf in store.leaves:
            for event in leaf.system.events:
                if isinstance(event.trigger, Initialization) and event.kind == kind:
                    found = without_trace(event.handler, leaf) or {}
                    for state, value in found.items():
                        updates |= _written(store, leaf.position, state, value)
        equations.updates.append(updates)
    for leaf in store.leaves:
        for event in leaf.system.events:
            if isinstance(event.trigger, Periodic) and event.kind != "publish":
                found = read_update(store, leaf, event, discrete)
                found.expressions = simplify(found.expressions, checked=True)
                equations.periodic.append((event, found))
    equations.breaks = simplify(read_breaks(store), checked=True)
    return equations


def _written(store: Store, position: int, state: Any, value: Any) -> dict[Key, Any]:
    """Return what an update writes, by key."""
    if isinstance(state, AbstractState):
        raise TraceError(
            f"Cannot trace the initialization of '{state.full_name}'",
            expected="a numeric state",
            found=f"an {state.what}",
        )
    numbers = conform(value, state.size, lambda: f"the initialization of '{state.full_name}'")
    if isinstance(state, ContinuousState):
        start = store.layout.x_slices[position].start
        return {((STATE, 0, 0), start + k): each for k, each in enumerate(numbers)}
    return {((DISCRETE, position, state.index), k): each for k, each in enumerate(numbers)}


@once
def ensemble_loop(method: str, lanes: int) -> Library:
    """Return the loop of a method for a number of lanes: ``integrate(run)``."""
    return Library(_key(f"loop of {method}", lanes), lambda: _loop_text(method, lanes), level=1)


@once
def any_step(method: str, lanes: int) -> Library:
    """Return the step of a method for any system and a number of lanes: ``attempt(run)``."""

    def text() -> str:
        module = Module(lanes, vector_functions(lanes))
        tableau = METHODS[method].tableau
        module.translate(_kernels(method).attempt_any, "attempt", {"tableau": tableau})
        return module.text

    return Library(_key(f"step of {method} for any system", lanes), text, level=1)


def _kernels(method: str) -> Any:
    """Return the module with the kernels of a step."""
    return ensemble_rosenbrock if METHODS[method].linear else ensemble


def _level(text: str) -> int:
    """Return how hard LLVM is to try."""
    return 1 if len(text) > _LARGE else 2


def _key(what: str, lanes: int) -> str:
    """Return the key of a library that is made from kernels."""
    functions = " ".join(function.name for function in vector_functions(lanes).values())
    return f"{what}, {lanes} lanes, {source_identity()}\n{functions}\n"


def _loop_text(method: str, lanes: int) -> str:
    module = Module(lanes, vector_functions(lanes))
    module.translate(ensemble.integrate, "integrate", {"method": METHODS[method]})
    return module.text
