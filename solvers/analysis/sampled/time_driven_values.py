"""Instants of a period, and discrete values that depend on time alone.

Such values are the time of the newest sample in a `TimeDelay`, latched clocks and schedules,
toggles and noise. In a model from sample to sample they are no states, but what the equations say
depends on them, so that they go on with every update of the period.

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
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import freeze
from flexure.diagrams.values.events import Event, EventKind, Periodic
from flexure.diagrams.values.symbolic_values import DISCRETE, STATE, Key
from flexure.solvers.analysis.equations.kept_equations import TracedNumbers
from flexure.solvers.analysis.sampled.parameter_slopes import ParameterCode
from flexure.solvers.simulation.events.agenda import Entry
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode

SAME = 1e-9  # part of a period: instants that are closer to each other are one
MOST = 10**5  # instants in a period


class Instants:
    """The schedule of a period from one instant of the slowest clock to the next.

    ``clocks`` maps the clocks of the updates to the updates of each.
    """

    def __init__(
        self, context: Context, clocks: Mapping[Periodic, list[Entry]], period: float, attempt: str
    ) -> None:
        self._context, self._clocks = context, clocks
        self._period, self._attempt = period, attempt
        self._refuse_what_does_not_fit()
        # The first instant of the slowest clock that is not before the time of the context.
        self.start = float(context.time)
        if clocks:
            slowest = max(clocks, key=lambda clock: clock.period)
            self.start = slowest.next_time(np.nextafter(self.start, -np.inf))
        self.ticks = self._ticks()  # the times after an instant at which updates are due, ascending

    def _refuse_what_does_not_fit(self) -> None:
        for clock, due in self._clocks.items():
            what, count = due[0].event.label, self._period / clock.period
            if round(count) < 1 or abs(count - round(count)) > SAME * count:
                raise EvaluationError(
                    self._attempt,
                    expected="a period in which every update is due a whole number of times",
                    found=f"period={self._period:g} s and '{what}', which is due every "
                    f"{clock.period:g} s",
                    remedy="Pass a whole multiple of the periods of all updates",
                )
            self._refuse_many(count, f"'{what}', which is due every {clock.period:g} s")

    def _refuse_many(self, count: float, what: str) -> None:
        if count > MOST:
            raise EvaluationError(
                self._attempt,
                expected=f"a period with at most {MOST} instants",
                found=f"period={self._period:g} s and {what}",
                remedy="Pass a shorter period",
            )

    def _ticks(self) -> list[float]:
        phases: list[float] = []
        for clock in self._clocks:
            first = (clock.offset - self.start) % clock.period
            count = round(self._period / clock.period)
            phases += [(first + k * clock.period) % self._period for k in range(count)]
        same = SAME * self._period
        ends = same, self._period - same
        phases = sorted(phase if ends[0] < phase < ends[1] else 0.0 for phase in phases)
        return [p for k, p in enumerate(phases) if k == 0 or p - phases[k - 1] > same]

    def stops(self, *, smooth: bool) -> list[float]:
        """Return the ticks, the ends and, unless equations are smooth, the times of breaks."""
        fixed = np.unique([0.0, *self.ticks, self._period])
        breaks = np.array([] if smooth else self._breaks())
        after = np.searchsorted(fixed, breaks).clip(1, len(fixed) - 1)
        distance = np.minimum(breaks - fixed[after - 1], fixed[after] - breaks)
        apart = breaks[distance > SAME * self._period]
        return sorted({*fixed.tolist(), *apart.tolist()})

    def _breaks(self) -> list[float]:
        """Return the times after an instant at which equations are not smooth."""
        store = self._context.store
        breaks: list[float] = []
        for leaf in self._context.leaves():
            time = self.start
            while leaf.system.has_break_times:
                store.set_motion(time, store.x)
                following = float(leaf.system.calc_next_break_time(leaf))
                if not time < following < self.start + self._period:
                    break
                breaks.append(following - self.start)
                what = f"'{leaf.system.label}', whose equations are not smooth at more than that"
                self._refuse_many(len(breaks), what)
                time = following
        store.set_motion(self.start, store.x)
        return breaks

    def due(self, phase: float) -> dict[Event, float]:
        """Return the updates that are due some time after an instant, and exactly when."""
        found: dict[Event, float] = {}
        for clock, entries in self._clocks.items():
            count = (phase + self.start - clock.offset) / clock.period
            if abs(count - round(count)) * clock.period <= SAME * self._period:
                time = clock.offset + round(count) * clock.period
                found |= dict.fromkeys([entry.event for entry in entries], time)
        return found

    def time(self, phase: float) -> float:
        """Return some time after an instant: that of what is due there, up to the last digit."""
        return next(iter(self.due(phase).values()), self.start + phase)


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
