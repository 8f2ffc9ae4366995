"""A program: the equations of a root system as native functions of time, state and environment.

It is the last of three steps. `system_trace` has the equations as expressions, and `plan` how they
become code and why; here they are compiled, what runs begin with at once, and steps, Jacobians and
lanes on demand.

One program serves every context of the system: time, states and discrete values are read when a
function is called, parameters and fixed inputs when the environment is filled. Values that depend
on nothing else are computed then, once. The environment begins with the discrete values of all
blocks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.deferred_interrupt import DeferredInterrupt
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.native.emission.emission import Environment, depth_first, emit_with_preparation
from flexure.solvers.native.emission.jacobian_emission import JacobianText, emit_jacobian
from flexure.solvers.native.emission.sparse_factors import (
    BlockFactors,
    SparseFactors,
    find_block_factors,
    find_sparse_factors,
)
from flexure.solvers.native.llvm.library import (
    Address,
    Library,
    ModuleTexts,
    address_of,
    callable_at,
    cut,
)
from flexure.solvers.native.programs.method_programs import (
    METHODS,
    generic_attempt,
    source_identity,
    specialized_attempt,
)
from flexure.solvers.native.programs.plan import JacobianPlan, make_plan
from flexure.solvers.native.programs.system_trace import (
    DiscretePlaces,
    EventKey,
    Line,
    SystemTrace,
    update_name,
)
from flexure.solvers.tracing.compile_limits import WRITTEN, refuse_beyond
from flexure.solvers.tracing.signals import Reader
from flexure.solvers.tracing.trace import number_behind, trace, trace_derivatives

if TYPE_CHECKING:
    from flexure.solvers.native.programs.lane_equations import LaneEquations
    from flexure.solvers.native.sharing.jobs.shared_derivatives import SharedDerivatives
    from flexure.solvers.native.sharing.jobs.shared_jacobian import SharedJacobian

_EQUATIONS = ctypes.CFUNCTYPE(None, ctypes.c_double, *[ctypes.c_void_p] * 3)

IntArray = NDArray[np.int64]


class Program:
    """Native functions of one root system.

    Components of parameters in ``zeros`` are zero in all contexts that the program is to serve. The
    caller of the functions changes inputs in the slots ``driven`` with time, in the environment.

    ``rhs``, ``witness``, ``signal`` and ``deviations`` compute the derivatives, all witness
    functions, all logged signals, and how far states are from where they belong. Functions that are
    made later add to ``environment``. ``shared_jacobian`` writes the Jacobian with shared code,
    until it is requested; ``jacobian_entries`` are then its rows and columns. ``idle_memory`` is
    what `StepRepeater` needs and no thread uses at present, by the method.
    """

    def __init__(
        self, layout: Layout, zeros: Collection[Key] = (), driven: frozenset[int] = frozenset()
    ) -> None:
        self._layout = ref(layout)
        self.driven = driven
        self._lock = Lock()  # while functions are added
        self.num_states = layout.num_states
        self.trace = SystemTrace(frozenset(zeros), DiscretePlaces(layout))
        self._zeros_of_parameters: dict[tuple[int, int], list[int]] = {}  # of block and parameter
        for (_, position, index), component in self.trace.zeros:
            self._zeros_of_parameters.setdefault((position, index), []).append(component)
        self.discrete = self.trace.discrete
        self.num_discrete = self.discrete.count
        self.environment = Environment(self.num_discrete, self.discrete.starts, driven)
        self._environments = [self.environment]  # one for each trace; they lie end to end
        self._prepare: list[tuple[Any, int]] = []  # functions, and where their results go
        self.plan, shared = make_plan(layout, self.trace, self.environment)
        self._shared_inputs = None if shared is None else shared.inputs
        self.shared_jacobian = None if shared is None else shared.jacobian
        self.idle_memory: dict[str, list[Any]] = {}
        self.jacobian_entries: tuple[IntArray, IntArray] | None = None
        self._jacobian_address: Address | None = None
        self._no_jacobian: TraceError | None = None
        self._no_projection: TraceError | None = None
        self._projection: tuple[Address, OwnFunctions] | None = None
        self._attempts: dict[str, Address] = {}
        self._addresses: dict[str, Address] = {}
        self._lane_equations: dict[tuple[bool, tuple[Any, ...]], LaneEquations | TraceError] = {}
        self._rhs_text: tuple[str, set[str]] = "", set()
        self._compile(shared)

    @property
    def layout(self) -> Layout:
        """The layout of the system, which others keep; programs go when their systems do."""
        layout = self._layout()
        assert layout is not None
        return layout

    # What was traced -----------------------------------------------------------------------

    @property
    def lines(self) -> list[tuple[EventKey, Line]]:
        """The discrete values that updates pass on as a whole, in the order of their masks."""
        updates = sorted(self.trace.updates.items())
        return [(key, each.line) for key, each in updates if each.line is not None]

    @property
    def sparse_factors(self) -> SparseFactors | None:
        """Data for linear equations with the Jacobian; None if dense factors are as fast."""
        return None if self.plan.jacobian is None else self.plan.jacobian.factors

    @property
    def block_factors(self) -> BlockFactors | None:
        """Their data in blocks of states; None if that is not cheaper."""
        return None if self.plan.jacobian is None else self.plan.jacobian.blocks

    @property
    def tile(self) -> int:
        """The size of the tiles of these blocks; zero where there are none."""
        return 0 if self.block_factors is None else self.block_factors.size

    # Compilation ---------------------------------------------------------------------------

    def _compile(self, shared: SharedDerivatives | None) -> None:
        """Compile the derivatives and everything that events need."""
        functions = self.trace.functions()
        if shared is None:
            functions = {"rhs": self.derivatives, **functions}
        else:
            library = shared.code.compile()
            self._prepare.append((native_function(library.address("prepare")), 0))
            self._addresses["rhs"] = library.address("rhs")
            self.plan = replace(self.plan, modules=str(shared.code))
        if functions:
            self._add(functions)
        self.rhs = self._addresses["rhs"]
        self.witness = self._addresses.get("witness")
        self.signal = self._addresses.get("signals")
        self.deviations = self._addresses.get("deviations")
        self.breaks = self._addresses.get("breaks")

    @property
    def derivatives(self) -> list[Any]:
        """The derivatives as expressions of one trace of all blocks."""
        with self._lock:
            if self.trace.derivatives is None:
                found = simplify(trace_derivatives(self.layout), self.trace.zeros, checked=True)
                starts = self.discrete.starts
                environment = Environment(self.environment.size, starts, self.driven)
                self._environments.append(environment)
                self.environment = environment
                self.trace.derivatives = found  # last, so that an interruption spoils nothing
            return self.trace.derivatives

    def update_address(self, key: EventKey) -> Address:
        """Return the address of a traced update."""
        return self._addresses[update_name(list(self.trace.updates).index(key))]

    def _add(self, functions: dict[str, list[Any]]) -> None:
        """Compile what is needed from the beginning."""
        with quietly():
            functions = {
                name: simplify(each, self.trace.zeros, checked=True)
                for name, each in functions.items()
            }
            texts, base = emit_with_preparation(functions, self.environment)
        self._rhs_text = texts.get("rhs", self._rhs_text)
        shared = self._shared_deviations(functions)
        if shared is not None:
            del functions["deviations"], texts["deviations"]
            self._addresses["deviations"] = shared.compile().address("deviations")
        modules = cut(texts.values())
        library = modules.compile()
        self._prepare.append((native_function(library.address("prepare")), base))
        self._addresses |= {name: library.address(name) for name in functions}
        self.plan = replace(
            self.plan,
            length=len(self._rhs_text[0]),
            modules=", and ".join([*filter(None, [self.plan.modules]), str(modules)]),
        )

    def _shared_deviations(self, functions: dict[str, list[Any]]) -> ModuleTexts | None:
        """Let deviations share code where the derivatives do, and where that pays."""
        if not self.plan.is_shared or "deviations" not in functions:
            return None
        from flexure.solvers.native.sharing.jobs.shared_derivatives import shared_values

        return shared_values("deviations", functions["deviations"], self.environment)

    def attempt(self, name: str) -> Address:
        """Return the address of the trial step of a method, made for this system if that pays."""
        with self._lock:
            if name not in self._attempts:
                self._attempts[name] = self._make_attempt(name)
            return self._attempts[name]

    def _make_attempt(self, name: str) -> Address:
        method, step, factors = METHODS[name], self.plan.step(name), self.sparse_factors
        if step.states is None:
            tiled = method.linear and self.tile > 0
            return generic_attempt(name, self.tile) if tiled else generic_attempt(name)
        text, declarations = self._rhs_text if step.is_inlined else ("", set())
        text = text.replace("define void @rhs(", "define internal void @rhs(")
        text = text.replace(" #0 {", " #0 alwaysinline {")
        known = f"{self.num_states} states, {factors}, {source_identity()}"
        library = Library(
            f"step of {name}, {known}\n{text}",
            lambda: specialized_attempt(method, self.num_states, (text, declarations), factors),
            vectorized=step.is_vectorized,
        )
        return library.address("attempt")

    def lane_equations(self, signals: Sequence[Reader], *, implicit: bool = False) -> LaneEquations:
        """Return the equations for all lanes at once, with signals to sample.

        They have a Jacobian if they are for implicit methods.
        """
        key = implicit, tuple((signal.handle.path, signal.part) for signal in signals)
        with self._lock:
            if key not in self._lane_equations:
                self._lane_equations[key] = self._make_lane_equations(signals, implicit=implicit)
            found = self._lane_equations[key]
            if isinstance(found, TraceError):
                raise copy(found)
            return found

    def _make_lane_equations(
        self, signals: Sequence[Reader], *, implicit: bool
    ) -> LaneEquations | TraceError:
        """Return the equations for all lanes, or why there are none."""
        from flexure.solvers.native.programs.lane_equations import LaneEquations

        try:
            return LaneEquations(self.layout, self.discrete, signals, implicit=implicit)
        except TraceError as error:
            return copy(error)  # without what was going on when it was raised

    def obstacle(self, method: str) -> str:
        """Return why a method cannot run natively; nothing if it can."""
        if METHODS[method].linear and self._jacobian_address is None:
            try:
                self.jacobian()
            except TraceError as error:
                return _in_a_sentence(error)
        return ""

    def jacobian(self) -> Address:
        """Return the address of the function that computes the nonzero entries of the Jacobian.

        Their rows and columns are in `jacobian_entries`, and what linear equations with them need
        is in `sparse_factors`. An environment that was filled before has to be filled again.
        """
        with self._lock:
            if self._no_jacobian is not None:
                raise copy(self._no_jacobian)
            if self._jacobian_address is None:
                try:
                    self._make_jacobian()
                except TraceError as error:
                    self.plan = replace(self.plan, no_jacobian=_in_a_sentence(error))
                    self._no_jacobian = copy(error)  # without what was going on when it was raised
                    raise
            assert self._jacobian_address is not None
            return self._jacobian_address

    def _make_jacobian(self) -> None:
        """Compile the Jacobian; an interruption leaves everything as it was."""
        with quietly():
            environment = self.environment.copy()
            found: JacobianText | SharedJacobian | None = None
            if self.shared_jacobian is not None:
                found = self.shared_jacobian(environment)
            if found is None:
                derivatives = self.derivatives
                environment = self.environment.copy()
                states = [((STATE, 0, 0), k) for k in range(self.num_states)]
                found = emit_jacobian(derivatives, states, environment, self.trace.zeros)
        library = found.code.compile()
        rows, columns = (np.array(each, np.int64) for each in (found.rows, found.columns))
        factors = find_sparse_factors(self.num_states, rows, columns)
        blocks = find_block_factors(self.num_states, rows, columns, factors)
        patience = DeferredInterrupt()
        with patience:
            self.environment = self._environments[-1] = environment
            if found.base is not None:
                self._prepare.append((native_function(library.address("prepare")), found.base))
            self.shared_jacobian = None
            self.jacobian_entries = rows, columns
            made = JacobianPlan(len(rows), found.way, factors, blocks)
            self.plan = replace(self.plan, jacobian=made)
            self._jacobian_address = library.address("jacobian")
        patience.deliver()

    @property
    def projection(self) -> Address | None:
        """The address of the function that projects the state, if it was asked for.

        It has an environment of its own, which `projection_environment` fills.
        """
        return None if self._projection is None else self._projection[0]

    def projection_environment(self, store: Store) -> FloatArray:
        """Return the environment of the projection that was made, with the values of a context."""
        assert self._projection is not None
        return self._projection[1].fill(store)

    def make_projection(self) -> None:
        """Compile what moves the state to where it belongs, unless it is there."""
        with self._lock:
            if self._no_projection is not None:
                raise copy(self._no_projection)
            if self.projection is None:
                try:
                    self._make_projection()
                except TraceError as error:
                    self._no_projection = copy(error)  # as for the Jacobian
                    raise

    def _make_projection(self) -> None:
        """Compile the projection."""
        traced = trace(self.layout, lambda store: list(store.projected_state()))
        with quietly():
            projected = simplify(traced, self.trace.zeros)  # the derivatives make the checks
        own = OwnFunctions(self.layout)
        self._projection = own.made(projected, "a projection"), own

    # Values --------------------------------------------------------------------------------

    def serves(self, store: Store) -> bool:
        """Return whether what has to be zero is zero in a context."""
        leaves = store.leaves
        return not any(
            np.any(np.reshape(leaves[position].parameters[index], -1)[components])
            for (position, index), components in self._zeros_of_parameters.items()
        )

    def fill(self, store: Store) -> FloatArray:
        """Return a new environment with the values of a context."""
        store.require_relations()
        with self._lock:
            env = np.zeros(self.environment.size + 1)
            self.refresh(store, env)
        return env

    def refresh(self, store: Store, env: FloatArray) -> None:
        """Put the values of a context into an environment that has room for all functions."""
        assert len(env) > self.environment.size
        self.discrete.read(store, env)
        for environment in self._environments:
            _read_keys(environment, store, env)
        if self._shared_inputs is not None:
            self._shared_inputs.fill(store, env)
        self.prepare(env)

    def values_at(self, time: float, x: FloatArray, env: FloatArray) -> FloatArray:
        """Return the time derivatives, and then the logged signals."""
        n = self.num_states
        x = np.ascontiguousarray(x, dtype=float)
        out = np.empty(n + sum(where.stop - where.start for where in self.trace.signals.values()))
        places = address_of(x), address_of(env)
        native_function(self.rhs)(time, *places, address_of(out))
        if self.signal:
            native_function(self.signal)(time, *places, address_of(out) + 8 * n)
        return out

    def prepare(self, env: FloatArray) -> None:
        """Compute what depends on parameters alone."""
        for function, base in self._prepare:
            run_preparation(function, base, env)


class OwnFunctions:
    """Native functions beside those of a program, with an environment of their own.

    Inputs in the slots ``driven`` change with time.
    """

    def __init__(self, layout: Layout, driven: frozenset[int] = frozenset()) -> None:
        self.discrete = DiscretePlaces(layout)
        # What the functions read besides time and state, as it is laid out.
        self.environment = Environment(self.discrete.count, self.discrete.starts, driven)
        self._prepare: list[tuple[Callable[..., None], int]] = []

    def made(self, expressions: Sequence[Any], name: str) -> Address:
        """Compile expressions."""
        refuse_beyond(WRITTEN, len(depth_first(expressions, {})), name)
        with quietly():
            texts, base = emit_with_preparation({"function": expressions}, self.environment)
        return self._compiled(cut(texts.values()), base, "function")

    def _compiled(self, code: ModuleTexts, base: int, name: str) -> Address:
        """Compile a function and what prepares it."""
        library = code.compile()
        self._prepare.append((native_function(library.address("prepare")), base))
        return library.address(name)

    def fill(self, store: Store) -> FloatArray:
        """Return a new environment with the values of a context."""
        env = np.zeros(self.environment.size + 1)
        self.discrete.read(store, env)
        _read_keys(self.environment, store, env)
        for function, base in self._prepare:
            run_preparation(function, base, env)
        return env


def _read_keys(environment: Environment, store: Store, env: FloatArray) -> None:
    """Put parameters and inputs of a context into an environment."""
    keys = environment.keys
    env[list(keys.values())] = [number_behind(store, key) for key in keys]


def run_preparation(function: Callable[..., None], base: int, env: FloatArray) -> None:
    """Compute what depends on parameters alone, to a place in an environment."""
    nothing, start = np.zeros(1), address_of(env)
    function(0.0, address_of(nothing), start, start + 8 * base)


def native_function(address: Address) -> Callable[..., None]:
    """Return a function ``f(t, x, env, out)`` that takes addresses."""
    function: Callable[..., None] = callable_at(address, _EQUATIONS)
    return function


def _in_a_sentence(error: TraceError) -> str:
    """Return what an error says that was attempted, to go on behind other words."""
    return error.attempt[0].lower() + error.attempt[1:]
