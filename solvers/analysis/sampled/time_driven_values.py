"""Discrete values that depend on time alone, and follow neither states nor inputs.

Such are the time of the newest sample in a `TimeDelay`, latched clocks and schedules, toggles and
noise. In a model from sample to sample they are no states, but what the equations say depends on
them, so that they go on with every update of the period.

In a context that has just been made, nothing has been sampled. In the model, updates have been due
for ever. So what is latched from time itself counts as latched at the latest update, while
what has a memory, such as a toggle, is what the context says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import freeze
from flexure.diagrams.values.events import Event, EventKind, Periodic
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, Key
from flexure.solvers.analysis.equations.kept_equations import TracedNumbers
from flexure.solvers.analysis.sampled.parameter_slopes import ParameterCode
from flexure.solvers.analysis.sampled.sample_instants import SAME
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode

KINDS: tuple[EventKind, EventKind] = ("unrestricted", "discrete")  # as they act at an instant


@dataclass
class TracedUpdate:
    """A traced update: its event, what it computes, and what becomes of that."""

    event: Event
    clock: Periodic
    values: list[Any]
    targets: list[Key]


class TimeDrivenValues:
    """The discrete values that move by time alone, for all contexts of a system.

    ``following`` are the discrete values that follow states or inputs.
    """

    def __init__(
        self, updates: Sequence[TracedUpdate], following: Collection[Key], num_states: int
    ) -> None:
        followers = set(following)
        moves = [
            (update, key, value)
            for update in updates
            for key, value in zip(update.targets, update.values, strict=True)
            if key[0][0] == DISCRETE and key not in followers
        ]
        self._updates = [update for update, _, _ in moves]
        self._targets = [key for _, key, _ in moves]
        written = Counter(self._targets)
        self.keys = set(written)  # the values
        self._numbers = TracedNumbers([value for _, _, value in moves], num_states)
        self._latched = [
            k
            for k, (_, key, value) in enumerate(moves)
            if written[key] == 1 and self.keys.isdisjoint(scalars.sources([value]))
        ]

    def latch(self, store: Store, start: float) -> None:
        """Let what is latched from time be what it is just before an instant."""
        for clock in dict.fromkeys(self._updates[k].clock for k in self._latched):
            passed = math.ceil((start - clock.offset) / clock.period - SAME) - 1
            latest = clock.offset + passed * clock.period
            chosen = [k for k in self._latched if self._updates[k].clock == clock]
            write_discrete(store, self._passed(store, latest, chosen))

    def advance(self, store: Store, due: Mapping[Event, float], kind: EventKind) -> None:
        """Let the updates of one kind that are due, each at its time, pass at once."""
        times: dict[float, list[int]] = {}
        for k, update in enumerate(self._updates):
            if update.event.kind == kind and update.event in due:
                times.setdefault(due[update.event], []).append(k)
        passed = [self._passed(store, time, chosen) for time, chosen in times.items()]
        for numbers in passed:
            write_discrete(store, numbers)

    def _passed(self, store: Store, time: float, chosen: list[int]) -> dict[Key, float]:
        """Return what some of the moves give at a time."""
        numbers = self._numbers.computed(store, time)
        return {self._targets[k]: float(numbers[k]) for k in chosen}


def write_discrete(store: Store, numbers: Mapping[Key, float]) -> None:
    """Write numbers to discrete values, as far as they are finite."""
    groups: dict[tuple[int, int], Any] = {}
    for ((_, position, index), component), number in numbers.items():
        if np.isfinite(number):
            if (position, index) not in groups:
                groups[position, index] = np.array(store.leaves[position].discrete[index])
            groups[position, index][component] = number
    for (position, index), group in groups.items():
        store.leaves[position].write_discrete_state(index, freeze(group))


def following(updates: Iterable[TracedUpdate], inputs: list[Key]) -> list[Key]:
    """Return the discrete values that follow states or inputs, at once or through others."""
    sources: dict[Key, set[Any]] = {}
    for update in updates:
        for key, value in zip(update.targets, update.values, strict=True):
            sources.setdefault(key, set()).update(scalars.sources([value]))
    found = set(inputs)
    while True:
        more = {
            key
            for key, read in sources.items()
            if key not in found and any(k in found or k[0][0] == STATE for k in read)
        }
        if not more:
            return [key for key in sources if key in found and key[0][0] == DISCRETE]
        found |= more


class Course:
    """The values of a context while time goes on, and the derivatives there.

    The values are ``ahead`` of the first instant by some seconds.
    """

    def __init__(self, store: Store, slopes: JacobianCode, ahead: float) -> None:
        self.store, self.ahead = store, ahead
        self.exact = ExactJacobian(store, slopes)


@dataclass(frozen=True)
class Reading:
    """The findings of a trace, beside rates and outputs."""

    keys: list[Key]  # of discrete values that follow states or inputs
    time_driven: TimeDrivenValues
    moving: list[TracedUpdate]  # those that write states or these discrete values
    num_outputs: int
    cut: list[Any]  # what comes to the cuts
    by_parameters: dict[tuple[Key, ...], ParameterCode] = field(default_factory=dict)
