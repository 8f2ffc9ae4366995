"""The problem of an optimal motion: what is free, what is bounded, and what is to be small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import mapping, require, shown as written
from flexure.diagrams.checks.errors import EvaluationError, UnknownNameError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import WAYS, Place, Way, find_place, is_signal, path_of
from flexure.diagrams.values.arrays import FloatArray, as_number, as_numbers
from flexure.diagrams.values.events import Forced, Initialization, Settling, Witness
from flexure.diagrams.values.state import DiscreteState
from flexure.diagrams.values.symbolic_values import INPUT
from flexure.solvers.analysis.equations.equations import Shown, find_variables, shown, state_names
from flexure.solvers.design.optimal_motion.phases import Phase, Switch
from flexure.solvers.results.records.history import Snapshot

#: The name of the final time among costs.
T_FINAL = "t_final"
_FORM = "a mapping from paths to values, or to bounds (low, high)"


@dataclass(frozen=True)
class Bounded:
    """Bounds of the components of one signal: their names, and their rows among the signals."""

    path: str
    names: list[str]
    rows: list[int]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class Squared:
    """An integrated square: the distance of one signal from its targets, weighted."""

    path: str
    rows: list[int]
    weights: FloatArray
    targets: FloatArray


class MotionProblem:
    """What `optimal_motion` is asked for, checked and found in the system."""

    def __init__(
        self,
        context: Context,
        attempt: str,
        *,
        t_final: Any,
        inputs: Any,
        start: Any,
        end: Any,
        path: Any,
        cost: Any,
        final_cost: Any,
        targets: Any,
        through_events: bool | None = None,
    ) -> None:
        self.context, self.attempt = context, attempt
        self.system, self.layout = context.system, context.store.layout
        self.states = state_names(context)
        self.signals: list[Shown] = []  # slot and components of each
        self._count = 0
        self.switches = _switches(context, attempt, through_events)
        # Stretches between switches: one, unless the guess has more.
        self.phases = [Phase(Snapshot.of(context))]
        require(self.states, 0, attempt, "a system with continuous states")
        self.duration = self._checked_duration(t_final)
        self._set_inputs(mapping(inputs, _FORM, f"{attempt} with these inputs", keys=WAYS))
        self._set_start(mapping(_given(start), _FORM, f"{attempt} with this start", keys=WAYS))
        self.end = self._bounded(_given(end), "the end")
        self.path = self._bounded(_given(path), "the path")
        self._set_cost(_given(cost), _given(final_cost), _given(targets), given_none=cost is None)
        # Instants at which sources jump or bend, as parts of a fixed duration.
        self.breaks = self._breaks()

    @property
    def free_time(self) -> bool:
        """Whether the final time is free."""
        return self.duration[0] < self.duration[1]

    @property
    def free_durations(self) -> bool:
        """Whether the durations of phases are free."""
        return self.free_time or len(self.phases) > 1

    @property
    def input_names(self) -> list[str]:
        """One path for each component of the free inputs."""
        return [
            name if len(names) > 1 else each.place.path
            for each in self.inputs
            for names in [each.place.names]
            for name in names
        ]

    def set_phases(self, phases: list[Phase]) -> None:
        """Set the phases; sources that jump at known times allow a single one."""
        self.phases = phases
        self.breaks = self._breaks()

    def held_inputs(self) -> FloatArray:
        """Return the values that the inputs have in the context, moved into their bounds."""
        store = self.context.store
        parts = [
            each.read(store) if store.holds(each.keys[0][0][1]) else np.zeros(len(each.keys))
            for each in self.inputs
        ]
        return np.clip(np.concatenate(parts), self.input_lower, self.input_upper)

    def _checked_duration(self, t_final: Any) -> tuple[float, float]:
        """Return the bounds of the duration."""
        attempt = f"{self.attempt} with t_final={t_final!r:.100}"
        lower, upper = _limits(t_final, 1, attempt)
        low, high = float(lower[0]), float(upper[0])
        now = self.context.time
        if not now < low <= high < np.inf:
            raise ValueRefusedError(
                attempt,
                expected=f"a finite end after {now:g} s, where the context is, or two such bounds",
                found=written(t_final),
            )
        return low - now, high - now

    def _set_inputs(self, inputs: Mapping[Any, Any]) -> None:
        attempt = f"{self.attempt} with these inputs"
        require(inputs, inputs, attempt, "at least one free input")
        self.inputs = find_variables(self.context, inputs, attempt)
        for each in self.inputs:
            if each.keys[0][0][0] != INPUT:
                raise UnknownNameError(
                    f"{attempt}, '{each.place.path}' among them",
                    expected="free input ports that carry vectors",
                    found=f"the {each.place.handle.what} '{each.place.handle.full_name}'",
                    remedy="Use fx.optimize for parameters",
                )
        limits = [
            _limits(value, len(variable.keys), f"{attempt}, '{variable.place.path}' among them")
            for variable, value in zip(self.inputs, inputs.values(), strict=True)
        ]
        self.input_lower = np.concatenate([low for low, _ in limits])
        self.input_upper = np.concatenate([high for _, high in limits])

    def _set_start(self, start: Mapping[Any, Any]) -> None:
        x = np.array(self.context.store.x)
        self.start_lower, self.start_upper = x.copy(), x.copy()
        for way, value in start.items():
            attempt = f"{self.attempt} with the start of {path_of(way)!r}"
            place = find_place(self.system, way, is_signal).settable
            slot, components = shown(self.context, place) if is_signal(place.handle) else (0, ())
            if slot is not None:
                raise UnknownNameError(
                    attempt,
                    expected="a continuous state, or an output that shows one",
                    found=f"the {place.handle.what} '{place.handle.full_name}'",
                    remedy="Set other values in the context",
                )
            lower, upper = _limits(value, len(components), attempt)
            self.start_lower[list(components)], self.start_upper[list(components)] = lower, upper

    def _signal(self, way: Way, attempt: str) -> tuple[Place, list[int]]:
        """Add a signal to those that are read; return its place, and where its components are."""
        place = find_place(self.system, way, is_signal)
        handle = place.handle
        if not is_signal(handle) or isinstance(handle, DiscreteState):
            raise UnknownNameError(
                f"{attempt} with {path_of(way)!r}",
                expected="a port that carries a vector, or a continuous state",
                found=f"the {handle.what} '{handle.full_name}'",
            )
        slot, components = shown(self.context, place)
        self.signals.append((slot, components))
        self._count += len(components)
        return place, [*range(self._count - len(components), self._count)]

    def _bounded(self, given: Any, where: str) -> list[Bounded]:
        """Return the bounds of signals."""
        found = []
        attempt = f"{self.attempt} with bounds of {where}"
        for way, value in mapping(given, _FORM, attempt, keys=WAYS).items():
            place, rows = self._signal(way, attempt)
            limits = _limits(value, len(rows), f"{attempt} for {path_of(way)!r}")
            names = place.names if len(rows) > 1 else [place.path]
            found.append(Bounded(place.path, names, rows, *limits))
        return found

    def _set_cost(self, cost: Any, final_cost: Any, targets: Any, *, given_none: bool) -> None:
        attempt = f"{self.attempt} with this cost"
        weights = mapping(cost, "a mapping from paths to weights of squares", attempt, keys=WAYS)
        finals = mapping(final_cost, "a mapping from paths to weights", attempt, keys=WAYS)
        aims = mapping(targets, "a mapping from paths to values", attempt, keys=WAYS)
        wanted = {path_of(way): value for way, value in aims.items()}
        if given_none and not finals:
            if self.free_time:
                finals = {T_FINAL: 1.0}
            else:
                weights = {each.place.path: 1.0 for each in self.inputs}
        self.squares = []
        for way, weight in weights.items():
            if way == T_FINAL:
                raise ValueRefusedError(
                    attempt,
                    expected="weights of squares that are integrated",
                    found="t_final",
                    remedy="Pass final_cost={'t_final': weight}",
                )
            place, rows = self._signal(way, attempt)
            number = _spread(weight, len(rows), f"{attempt}, the weight of {path_of(way)!r}")
            require(np.all(number >= 0.0), weight, attempt, "weights >= 0")
            target = _spread(wanted.pop(path_of(way), 0.0), len(rows), attempt)
            self.squares.append(Squared(place.path, rows, number, target))
        if wanted:
            raise UnknownNameError(
                f"{self.attempt} with targets",
                expected="targets of signals that the cost has weights for",
                found=", ".join(map(repr, wanted)),
            )
        self.finals, self.time_weight = [], 0.0
        for way, weight in finals.items():
            if way == T_FINAL:
                self.time_weight = float(as_number(weight, (), attempt))
                continue
            _, rows = self._signal(way, attempt)
            self.finals.append((rows, _spread(weight, len(rows), attempt)))

    def _breaks(self) -> list[float]:
        """Return the instants in the fixed duration at which sources jump or bend."""
        context, found = self.context.clone(), set[float]()
        start = context.time
        for leaf in context.leaves():
            context.time = start
            while leaf.system.has_break_times and len(found) < _MOST_BREAKS:
                following = float(leaf.system.calc_next_break_time(leaf))
                if not following < start + self.duration[1]:
                    break
                if self.free_durations:
                    raise ValueRefusedError(
                        f"{self.attempt} with a free final time or state events",
                        expected="sources that are smooth in time",
                        found=f"'{leaf.system.path}', which jumps or bends at {following:g} s",
                        remedy="Fix t_final, or replace the source by a Constant",
                    )
                found.add((following - start) / self.duration[1])
                context.time = following
        return sorted(found)


_MOST_BREAKS = 200  # each of which adds an interval


def _given(value: Any) -> Any:
    return {} if value is None else value


def _limits(value: Any, size: int, attempt: str) -> tuple[FloatArray, FloatArray]:
    """Return the bounds that a value, a pair of bounds or None stands for."""
    if value is None:
        value = None, None
    is_pair = isinstance(value, tuple) and len(value) == 2
    low, high = value if is_pair else (value, value)
    lower = _spread(-np.inf if low is None else low, size, attempt)
    upper = _spread(np.inf if high is None else high, size, attempt)
    if not np.all((lower <= upper) & (lower < np.inf) & (upper > -np.inf)):
        raise ValueRefusedError(
            attempt,
            expected="a finite value, or a pair (low, high) with low <= high",
            found=written(value),
        )
    return lower, upper


def _spread(value: Any, size: int, attempt: str) -> FloatArray:
    """Return a number for each component."""
    number = as_numbers(value, attempt)
    if number.shape not in ((), (1,), (size,)) or np.isnan(number).any():
        expected = f"one number, or {size}, and none of them NaN"
        raise ValueRefusedError(attempt, expected=expected, found=written(value))
    return np.array(np.broadcast_to(number, (size,)))


def _switches(context: Context, attempt: str, through_events: bool | None) -> list[Switch]:
    """Return the updates at crossings; refuse other events, and blocks that jump."""
    found: list[Switch] = []
    for position, leaf in enumerate(context.store.leaves):
        system = leaf.system
        changing = [
            event
            for event in system.events
            if event.kind != "publish" and not isinstance(event.trigger, (Forced, Initialization))
        ]
        crossing = [each for each in changing if isinstance(each.trigger, (Witness, Settling))]
        found += [(position, event) for event in crossing]
        refused = [
            f"its {e.kind} update" for e in changing if not through_events or e not in crossing
        ]
        refused += ["its output, which jumps"] * system.has_jumps
        if refused:
            remedy = "Optimize the plant without this block, or replace it by a smooth one"
            if crossing and through_events is False:
                remedy += ". Motions through its events begin from a run: guess='simulated'"
            raise EvaluationError(
                attempt,
                expected="equations that are smooth: no sampled blocks, relays or resets",
                found=f"'{system.label}' with {refused[0]}",
                remedy=remedy,
            )
    return found
