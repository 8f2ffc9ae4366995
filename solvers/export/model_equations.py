"""Contents of an exported model: everything that a diagram computes, as expressions.

They come from one trace, in which no parameter is taken for zero: all of them can be changed where
the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.loop_closure.loop_assemblies import (
    ClosingEquations,
    closing_equations,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import FlexureError, TraceError
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import Paths
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.scalars.expressions.branches import explore
from flexure.diagrams.systems.system import each_system
from flexure.diagrams.values.arrays import FloatArray, conform
from flexure.diagrams.values.events import (
    Event,
    Initialization,
    Periodic,
    PerStep,
    Settling,
    Terminate,
    Witness,
)
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.export.model_jacobian import ModelJacobian
from flexure.solvers.integration.guard.stiffness_detection import assess
from flexure.solvers.native.programs.system_trace import (
    DiscretePlaces,
    EventKey,
    SystemTrace,
    break_time,
)
from flexure.solvers.tracing.compile_limits import WRITTEN, refuse_beyond
from flexure.solvers.tracing.exact_jacobian import numbers_behind
from flexure.solvers.tracing.side_effects import without_trace
from flexure.solvers.tracing.signals import Reader, Signal, resolve
from flexure.solvers.tracing.trace import SymbolicStore, trace
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agrees_at, interpreted_numbers

TriggerName: TypeAlias = Literal["initialization", "step", "clock", "witness", "settling"]
#: Clocks, and witness functions, that a mask has room for, which is a number here.
_MOST = 52
_TRIGGERS: dict[type, TriggerName] = {  # in the order in which the updates of a block run
    Initialization: "initialization",
    PerStep: "step",
    Periodic: "clock",
    Witness: "witness",
    Settling: "settling",
}


@dataclass(frozen=True)
class ModelEvent:
    """An event, and what its handler gives."""

    path: str  # of the block, and the name of the handler
    kind: str  # "publish", "discrete" or "unrestricted"
    trigger: TriggerName  # "initialization", "step", "clock", "witness" or "settling"
    number: int  # which clock or witness function; -1 where it is neither
    # The results of an update. A publish has a single one, which is not zero when it ends the run,
    # or none if it never does.
    expressions: list[Any]
    # Where the results of an update go: to the states, and beyond them to the discrete values.
    targets: list[int]
    reason: str = ""  # why a publish ends the run


@dataclass(frozen=True)
class ModelSignal:
    """A signal that can be asked for."""

    path: str  # its name
    reader: Reader  # where it is read
    expressions: list[Any]  # its components


@dataclass(frozen=True)
class Closing:
    """How a mechanism with loops is put together."""

    path: str  # of the plant
    at: int  # where its state begins
    equations: ClosingEquations  # what it takes, as symbols
    values: list[Any]  # the arrays of these, one after the other, simplified


class ModelEquations:
    """Everything that a root system computes, as expressions of one trace.

    The values of the root context decide whether the trace gives the numbers of the equations.
    ``signals`` are all that can be traced when omitted, and ``left_out`` then says by path why one
    is missing. ``target`` names the language in messages; ``fixed`` tells by key which parameters
    keep their values.

    ``timed`` is whether derivatives depend on time, ``no_jacobian`` why there is no ``jacobian``:
    it would be too long. ``deviations`` are how far states are from where blocks declare that they
    belong, and ``projected`` the states, moved there; empty without deviations. ``events`` are in
    the order in which they run when they are due together. ``breaks`` are the next break times of
    the blocks that have some. ``starts`` is what motions may begin with: in words, the value, and
    the largest one. ``closings`` are, of each mechanism with loops, what it takes to put it
    together.
    """

    def __init__(
        self,
        context: Context,
        signals: Sequence[Signal] | None = None,
        *,
        target: str = "JavaScript",
        fixed: Mapping[Key, float] | None = None,
    ) -> None:
        self.context = context
        self._target = target
        self.layout = context.store.layout
        self.discrete = DiscretePlaces(self.layout)
        self.clocks: list[Periodic] = []
        self.witnesses: list[Witness] = []
        self.events: list[ModelEvent] = []
        self.signals: list[ModelSignal] = []
        self.left_out: dict[str, str] = {}
        self.closings: list[Closing] = []
        self._wanted = _readers(context, signals)
        self._all = signals is None
        trace(self.layout, self._read)
        self._check()
        self._require_loops()
        if fixed:
            self._fix(fixed)
        self.jacobian: ModelJacobian | None = None
        self.no_jacobian = "" if self.derivatives else "There is no continuous state"
        try:
            self.jacobian = ModelJacobian.of(self.derivatives) if self.derivatives else None
        except TraceError as error:
            self.no_jacobian = error.attempt

    # Tracing -------------------------------------------------------------------------------

    def _read(self, store: SymbolicStore) -> None:
        """Trace everything."""
        traced = SystemTrace(frozenset(), self.discrete, triggers=tuple(_TRIGGERS))
        traced.read_derivatives(store)
        refuse_beyond(WRITTEN, traced.operations, "derivatives")
        traced.read_conditions(store)
        if traced.no_deviations:
            raise TraceError(
                f"Cannot write '{self.layout.root.label}' as {self._target}",
                expected="projections that can be traced",
                found=traced.no_deviations,
                remedy="Write them as pure functions of the context, in NumPy",
            )
        self.deviations = simplify(traced.deviations)
        self.projected = simplify(store.projected_state()) if traced.deviations else []
        self.derivatives: list[Any] = traced.derivatives or []
        self.timed = traced.timed
        self.witness_values = simplify(traced.witness_values, checked=True)
        for position, leaf in enumerate(store.leaves):
            for kind in _TRIGGERS:
                for index, event in enumerate(leaf.system.events):
                    if isinstance(event.trigger, kind):
                        self._read_event(store, traced, (position, index), event)
        self.breaks = [
            entry
            for leaf in store.leaves
            if leaf.system.has_break_times
            for entry in simplify(self._break_time(store, leaf), checked=True)
        ]
        self.starts = [
            (what, *simplify([value, limit]))
            for leaf in store.leaves
            for what, value, limit in leaf.system.start_limits(leaf)
        ]
        for leaf in store.leaves:
            if isinstance(leaf.system, TreeDynamics) and leaf.system.constraints:
                self._read_closing(leaf)
        self._read_signals(store)

    def _read_closing(self, leaf: Any) -> None:
        """Trace what it takes to put a mechanism together."""
        found = closing_equations(leaf.system, leaf)
        arrays = found.errors, found.rates, found.J, found.moves, found.free
        values = [entry for each in arrays for entry in scalars.array(each).ravel()]
        self.closings.append(
            Closing(leaf.system.parent_plant.path, leaf.x_slice.start, found, simplify(values))
        )

    def _read_event(
        self, store: SymbolicStore, traced: SystemTrace, key: EventKey, event: Event
    ) -> None:
        """Take over what an event does."""
        trigger, refusal = event.trigger, traced.refusals.get(key)
        if refusal is not None and (isinstance(trigger, Witness) or event.kind != "publish"):
            raise TraceError(
                f"Cannot write '{event.label}' as {self._target}",
                expected="handlers and witness functions that can be traced",
                found=refusal,
                remedy="Write it as a pure function of the context, in NumPy",
            )
        expressions: list[Any] = []
        targets: list[int] = []
        reason = ""
        if event.kind == "publish":
            expressions, reason = _verdict(store, store.leaves[key[0]], event, self._target)
            if not expressions and not isinstance(trigger, Witness):
                return  # nothing that matters here
        else:
            update = traced.updates[key]
            expressions, targets = simplify(update.expressions, checked=True), update.targets
        number = -1
        if isinstance(trigger, Witness):
            number = len(self.witnesses)
            assert traced.witnesses[number] == key
            self.witnesses.append(trigger)
        elif isinstance(trigger, Periodic):
            if trigger not in self.clocks:
                self.clocks.append(trigger)
            number = self.clocks.index(trigger)
        name = _TRIGGERS[type(trigger)]
        self.events.append(
            ModelEvent(event.label, event.kind, name, number, expressions, targets, reason)
        )

    def _break_time(self, store: SymbolicStore, leaf: Any) -> Any:
        """Trace the next break time of a block."""
        try:
            return [break_time(store, leaf)]
        except Exception as error:
            found = error.attempt if isinstance(error, FlexureError) else str(error)
            raise TraceError(
                f"Cannot write the break times of '{leaf.system.label}' as {self._target}",
                expected="a method calc_next_break_time that runs on symbols",
                found=found,
                remedy="Compute it with NumPy, without float() and math",
            ) from error

    def _read_signals(self, store: SymbolicStore) -> None:
        """Trace the signals."""
        root = store.leaves[0].root
        values: list[Any] = []
        read: list[tuple[str, Reader]] = []
        for path, reader in self._wanted:
            try:
                values.extend(reader(root))
            except (FlexureError, ArithmeticError, TypeError, ValueError) as error:
                if not self._all:
                    raise self._refused_signal(reader, error) from error
                self.left_out[path] = str(error)
            else:
                read.append((path, reader))
        entries = iter(simplify(values, checked=True))  # at once, for what signals have in common
        self.signals = [
            ModelSignal(path, reader, [next(entries) for _ in range(reader.size)])
            for path, reader in read
        ]

    def _refused_signal(self, reader: Reader, error: Exception) -> Exception:
        """Return an error that names the signal that cannot be traced."""
        if not isinstance(error, TraceError):
            return error
        attempt = f"Cannot write '{reader.handle.full_name}' as {self._target}"
        found, remedy = error.attempt, "Write it as a pure function of the context, in NumPy"
        expected = "a signal that can be traced"
        return TraceError(attempt, expected=expected, found=found, remedy=remedy)

    def _check(self) -> None:
        """Refuse a trace that gives other numbers than the equations."""
        store = self.context.store
        root = self.context
        readers = [signal.reader for signal in self.signals]
        expected = interpreted_numbers(store, (reader(root) for reader in readers))
        if expected is None:
            return
        expressions = [*self.derivatives, *(e for s in self.signals for e in s.expressions)]

        def values(x: FloatArray) -> FloatArray:
            numbers = numbers_behind(store, expressions, store.time, x)
            return np.array(scalars.evaluate(expressions, numbers), dtype=float)

        with np.errstate(all="ignore"):
            agrees = agrees_at(values, store.x, expected)
        if not agrees:
            raise TraceError(
                f"Cannot write '{self.layout.root.label}' as {self._target}",
                expected="equations that follow from the context alone",
                found=OTHER_NUMBERS,
            )

    def _fix(self, fixed: Mapping[Key, float]) -> None:
        """Replace parameters by numbers."""
        graph = scalars.Graph()
        parts = [self.derivatives, self.witness_values, self.deviations, self.projected]
        parts += [self.breaks, *(each.expressions for each in self.events)]
        parts += [each.values for each in self.closings]
        parts += [each.expressions for each in self.signals]
        parts += [[value, limit] for _, value, limit in self.starts]
        flat = [each for part in parts for each in part]
        keys = cast("set[Key]", scalars.sources(flat))
        values = {key: fixed[key] if key in fixed else graph.input(key) for key in keys}
        found = iter(simplify(scalars.substitute(flat, values), checked=True) if flat else ())
        for part in parts:
            part[:] = [next(found) for _ in part]
        limits = parts[len(parts) - len(self.starts) :]
        self.starts = [(what, *pair) for (what, *_), pair in zip(self.starts, limits, strict=True)]

    def _require_loops(self) -> None:
        """Refuse what the loops of runs do not do."""
        attempt = f"Cannot write '{self.layout.root.label}' as {self._target}"
        for what, all_of_them in (("clocks", self.clocks), ("witness functions", self.witnesses)):
            if len(all_of_them) > _MOST:
                expected = f"at most {_MOST} {what}"
                raise TraceError(attempt, expected=expected, found=str(len(all_of_them)))

    def stiff_from(self) -> float:
        """Return the length of a run, in seconds, beyond which a stiff method pays from its start.

        That holds for the values of the context.
        """
        if self.jacobian is None:
            return math.inf
        matrix = partial(self.jacobian.matrix, self.context.store)
        try:
            with np.errstate(all="ignore"):
                found = assess(_no_rates, self.context.time, self.context.store.x, 1.0, jac=matrix)
        except FlexureError:
            return math.inf  # an input has no value yet
        return found.pays_from

    # What belongs together -----------------------------------------------------------------

    @property
    def updates(self) -> list[ModelEvent]:
        """The events that change something, in the order in which they run."""
        return [each for each in self.events if each.kind != "publish"]

    @property
    def endings(self) -> list[ModelEvent]:
        """The publishes that may end a run."""
        return [each for each in self.events if each.kind == "publish" and each.expressions]

    @property
    def max_check_interval(self) -> float:
        """The longest stretch of time for which all witness functions may be left alone."""
        return min((each.max_check_interval for each in self.witnesses), default=math.inf)

    @cached_property
    def sources(self) -> frozenset[Key]:
        """The values that the expressions read."""
        return frozenset(cast("set[Key]", scalars.sources(self.expressions())))

    def signal_rows(self) -> list[dict[str, Any]]:
        """Describe the signals as plain data."""
        return [
            {
                "path": each.path,
                "labels": [str(label) for label in each.reader.labels],
                "unit": each.reader.unit,
                "size": each.reader.size,
                "doc": each.reader.doc,
            }
            for each in self.signals
        ]

    def event_rows(self) -> list[dict[str, Any]]:
        """Describe the events as plain data."""
        return [
            {"path": each.path, "kind": each.kind, "trigger": each.trigger} for each in self.events
        ]

    def expressions(self) -> list[Any]:
        """Return all expressions."""
        return [
            *self.derivatives,
            *([] if self.jacobian is None else self.jacobian.expressions),
            *self.witness_values,
            *self.deviations,
            *self.projected,
            *(entry for event in self.events for entry in event.expressions),
            *self.breaks,
            *(entry for _, *pair in self.starts for entry in pair),
            *(entry for closing in self.closings for entry in closing.values),
            *(entry for signal in self.signals for entry in signal.expressions),
        ]


def _no_rates(time: float, x: FloatArray) -> FloatArray:
    """Replace the rates of states, which are not requested if there is a Jacobian."""
    return np.zeros_like(x)


def _readers(context: Context, signals: Sequence[Signal] | None) -> list[tuple[str, Reader]]:
    """Return names and readers of signals, or of all outputs and states."""
    system = context.system
    if signals is not None:
        found = [resolve(system, signal) for signal in signals]
        names = [s if isinstance(s, str) else s.path for s in signals]
        return list(zip(names, found, strict=True))
    path_of = Paths(system)
    readers: dict[str, Reader] = {}
    for each in each_system(system):
        states = [getattr(each, "continuous_state", None), *getattr(each, "discrete_states", ())]
        for handle in (*each.output_ports, *states):
            if handle is not None and getattr(handle, "size", None) is not None:
                readers.setdefault(path_of(handle), Reader(handle, None))
    return list(readers.items())


def _verdict(store: SymbolicStore, leaf: Any, event: Event, target: str) -> tuple[list[Any], str]:
    """Trace whether a publish ends the run, and why; what else it does is for Python alone."""
    reasons: list[str] = []

    def ends() -> float:
        verdict = without_trace(event.handler, leaf)
        if isinstance(verdict, Terminate):
            reasons.append(verdict.reason)
            return 1.0
        return 0.0

    try:
        found = simplify(conform(explore(store.graph, ends), 1, lambda: event.label))
    except Exception as error:
        code = getattr(getattr(event.handler, "__func__", event.handler), "__code__", None)
        if code is not None and Terminate.__name__ in code.co_names:
            raise TraceError(
                f"Cannot write '{event.label}' as {target}",
                expected="a handler that ends runs and keeps nothing",
                found=str(error),
                remedy="Publish what is kept by a handler of its own, or end runs by fx.StopWhen",
            ) from error
        return [], ""
    return (found, reasons[0]) if reasons else ([], "")
