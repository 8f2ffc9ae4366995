"""Updates at ticks and crossings: how they change derivatives of a run (saltation).

At an event updates replace states and discrete values z = (x, d) by R(t, z, p). The instant of a
crossing g(t, z, p) = 0 moves with z and p, by ``δt = -(∂g/∂z δz + ∂g/∂p δp) / ġ`` with
``ġ = ∂g/∂t + ∂g/∂x f⁻``. Behind the event, compared at one time (the saltation matrix)::

    δz⁺ = ∂R/∂z δz + ∂R/∂p δp + (∂R/∂x f⁻ + ∂R/∂t - (f⁺, 0)) δt

At a tick of a clock, δt is zero. Where equations break, z stays, and δt is that of the break time.
Forward, the columns of δz by all numbers are multiplied by these matrices. Backward, weights λ of
z⁺ become those of z and p by the transposed ones, and a number that is computed from the run adds
what it gains while δt passes.

Several causes at one instant take place one after the other. There is a derivative if it is the
same in every order, as of events that have nothing to do with each other.

Source: R. I. Leine, H. Nijmeijer, "Dynamics and Bifurcations of Non-Smooth Mechanical Systems",
Springer 2004, chapter 7.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flexure.diagrams.checks.errors import EvaluationError, quoted
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.events import Event, Periodic, Settling, Witness
from flexure.diagrams.values.symbolic_values import TIME, Key
from flexure.solvers.analysis.equations.equations import Shown, read_outputs
from flexure.solvers.analysis.equations.kept_equations import kept_jacobian
from flexure.solvers.analysis.sensitivities.break_slopes import Rates, gap_of
from flexure.solvers.analysis.sensitivities.sampled_slopes import SampledSlopes
from flexure.solvers.native.kernels.parts.run import MOST_ROUNDS
from flexure.solvers.native.programs.system_trace import read_witness
from flexure.solvers.results.records.history import Snapshot
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, compressed, state_keys
from flexure.solvers.tracing.trace import SymbolicStore

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_SPACINGS = 1e3  # of time, within which a function is zero where its event takes place,
_CLOSE = 1e-12  # and the part of its terms that is rounding
_STEP = 1e-6  # of the time in which states change as a whole, for the bend of a function
_ALIKE = 1e-6  # relative difference of what are the same numbers,
_SOLVED = 1e-9  # and that of states beside the largest, as where impacts are solved for
_NOTHING = 1e-20  # what a source that begins smoothly has gained after a rounding error of time
_GRAZING = 1e2  # errors of a function, by which it has to go beyond zero
_MOST_CAUSES = 4  # at one instant, whose orders are all tried

#: Stands for a break of the equations among the numbers of events.
BREAK = -1
_Tolerance = Callable[[FloatArray], FloatArray]


class Instant(NamedTuple):
    """Values at one instant, before or after updates."""

    time: float
    x: FloatArray
    snapshot: Snapshot


class _Cause(NamedTuple):
    """Something that takes place at an instant: events, or a break of the equations.

    The instant moves with states, held values and numbers as the way tells; without one, it is
    that of a tick.
    """

    events: list[int]
    way: FloatArray | None = None


@dataclass
class Jump:
    """Derivatives of the updates of one cause.

    ``rounds`` are rows and matrices of updates that run together, by states and held values, by
    numbers, and by time.
    """

    rounds: list[list[tuple[list[int], csc_array]]]
    gain: FloatArray  # by how much later values change while the instant moves by a second
    crossing: FloatArray | None = None  # how it moves with states, held values and numbers
    events: list[int] = field(default_factory=list)  # and breaks at which the rates jump
    shows: bool = True  # whether it may change the signals that a number is computed from

    def pull(self, weights: FloatArray, gained: float) -> FloatArray:
        """Return weights before the instant of those after it.

        They are those of states, of held values, and of numbers. The weight of the instant itself,
        in seconds, is given.
        """
        found = weights.copy()
        for matrices in reversed(self.rounds):
            after = found.copy()
            for rows, _ in matrices:
                found[rows] = 0.0
            for rows, matrix in reversed(matrices):  # what writes a value last counts
                found += matrix[:, :-1].T @ after[rows]
                after[rows] = 0.0
        if self.crossing is not None:
            found += (weights[: len(self.gain)] @ self.gain + gained) * self.crossing
        return found

    def push(self, slopes: FloatArray, others: FloatArray) -> FloatArray:
        """Return derivatives of states and held values behind the instant, shape (n + h, m).

        Those before it are given, and those of the numbers, shape (p, m).
        """
        before, found = np.concatenate([slopes, others]), slopes.copy()
        for matrices in self.rounds:
            now = np.concatenate([found, others])
            for rows, matrix in matrices:
                found[rows] = matrix[:, :-1] @ now
        if self.crossing is not None:
            found += np.outer(self.gain, self.crossing @ before)
        return found


def pulled(jumps: Sequence[Jump], weights: FloatArray, gained: float) -> Iterator[FloatArray]:
    """Yield weights before jumps of those after, for each cause to which a gain may belong.

    A number gains nothing from a cause that changes none of the signals that it is computed from.
    """
    for gaining in [jump for jump in jumps if jump.shows] or jumps:
        found = weights
        for jump in reversed(jumps):
            found = jump.pull(found, gained if jump is gaining else 0.0)
        yield found


class EventSlopes(SampledSlopes):
    """The updates of a context, ticks and crossings, and what they do to derivatives.

    `cross` changes the context; ``keys`` are parameters and fixed inputs, and ``signals`` the
    outputs that a number is computed from.
    """

    _triggers = (Periodic, Witness, Settling)
    _beyond = (((TIME, 0, 0), 0),)

    def __init__(
        self, context: Context, keys: Sequence[Key], attempt: str, signals: Sequence[Shown]
    ) -> None:
        super().__init__(context, keys, attempt)
        self._context, self._signals = context, signals
        held = [key for each in self.held for key in each.keys]
        self._witnesses = [
            k for k, (_, event) in enumerate(self._events) if isinstance(event.trigger, Witness)
        ]
        wanted = [*state_keys(self._store), *held, *keys, *self._beyond]
        chosen = [self._events[k] for k in self._witnesses]

        def read(store: SymbolicStore) -> list[object]:
            pairs = ((store.leaves[leaf.position], event) for leaf, event in chosen)
            return [read_witness(store, *pair)[0] for pair in pairs]

        self._surfaces: ExactJacobian | None = None
        if chosen:
            self._surfaces = kept_jacobian(self._store, "witness functions", read, wanted)

    def cross(
        self,
        before: Instant,
        after: Instant | None,
        rates: Rates,
        tolerance: _Tolerance,
        *,
        moving: bool,
        shift: FloatArray | None,
    ) -> list[list[Jump]]:
        """Repeat the updates of an instant; return what they do one after the other, in any order.

        The instants have the same time but for rounding; ``after`` is None where a tick changed
        nothing. If a motion ends there (``moving``), functions may cross zero. ``shift`` is by how
        much a break of the equations there moves with states, held values and numbers, or the
        states behind it do.

        Raises EvaluationError when an event grazes its surface, when several take place at once
        whose order matters, and when the updates do not give the values after the instant.
        """
        self._restore(before)
        due = self._due(before.time, before.time if after is None else after.time)
        causes: list[_Cause] = []
        early = before.time if shift is None else math.nextafter(before.time, -math.inf)
        if moving and after is not None and self._witnesses:
            causes += self._crossed(before, rates(early, before.x), rates, tolerance)
        if shift is not None and shift.ndim == 2:
            if due or causes or not (after is None or self._leads_to(after)):
                raise self._order_matters(before.time, [*causes, _Cause([BREAK, *due])])
            jump = Jump([], np.zeros(0), events=[BREAK])
            timeless = np.hstack([shift, np.zeros((len(shift), 1))])
            jump.rounds.append([(list(range(len(shift))), compressed(timeless))])
            return [[jump]]
        if shift is not None and (causes or np.any(shift)):
            causes.append(_Cause([BREAK], shift))
        if due or not causes:
            causes.append(_Cause(due))
        if len(causes) > _MOST_CAUSES:
            raise self._order_matters(before.time, causes)
        return [
            self._in_order(order, before, after, early, rates, tolerance)
            for order in itertools.permutations(causes)
        ]

    def _order_matters(self, time: float, causes: Sequence[_Cause]) -> EvaluationError:
        """Return the error that refuses causes at one instant."""
        which = [k for cause in causes for k in cause.events]
        return self.refusal(time, which, "events one after the other", "at once")

    def _in_order(
        self,
        causes: Sequence[_Cause],
        before: Instant,
        after: Instant | None,
        early: float,
        rates: Rates,
        tolerance: _Tolerance,
    ) -> list[Jump]:
        """Repeat the updates of causes, one after the other; what precedes a break is early."""
        store, time, found = self._store, before.time, list[Jump]()
        own = {k for cause in causes for k in cause.events if cause.way is not None}
        now = early if BREAK in own else time
        self._restore(before._replace(time=early))
        values = self._values()
        store.set_motion(now, store.x)
        shown = self._shown(now) if len(causes) > 1 else np.zeros(0)
        for cause in causes:
            jump, breaks = Jump([], np.zeros(0), cause.way), BREAK in cause.events
            if cause.way is not None:
                jump.events = list(cause.events)
                here = Instant(now, store.x, Snapshot.of(self._context))
                slope = rates(now, here.x)
                self._restore(here)  # rates move what they read
                if found and not breaks:  # what was before has moved it
                    crossed, ways, _ = self._through_zero(here, slope, rates, tolerance)
                    if not set(cause.events) <= set(crossed):
                        raise self._order_matters(time, causes)
                    jump.crossing = ways[crossed.index(cause.events[0])]
                    self._restore(here)
            if breaks:
                jump.events = [] if gap_of(rates, time, here.x) is None else [BREAK]
                now = math.nextafter(time, math.inf)  # where equations bend, behind it
                store.set_motion(now, here.x)
            events = [] if breaks else cause.events
            values = self._update(events, own, jump, values, following=after is not None)
            if jump.crossing is not None:
                jump.gain = self._gain(jump, slope, rates(now, store.x))
                store.set_motion(now, store.x)
            if len(causes) > 1:
                before_it, shown = shown, self._shown(now)
                size = np.maximum(np.abs(before_it), np.abs(shown))
                jump.shows = bool(np.any(np.abs(shown - before_it) > _SOLVED * size))
            found.append(jump)
        if after is not None and not self._leads_to(after):
            if len(causes) > 1:
                raise self._order_matters(time, causes)
            lead = "updates that lead from the values before to those after"
            raise self.refusal(time, sorted(own), lead, "which lead elsewhere")
        return found

    def _shown(self, time: float) -> FloatArray:
        """Return the signals at a time, with the other values of the context."""
        store, now = self._store, self._store.time
        store.set_motion(time, store.x)
        found = read_outputs(store, self._signals)
        store.set_motion(now, store.x)
        return np.array(found, dtype=float)

    def _update(
        self,
        events: Sequence[int],
        own: set[int],
        jump: Jump,
        values: list[float],
        *,
        following: bool,
    ) -> list[float]:
        """Run the updates of a cause, and those of other events that follow from jumps.

        The values of the witness functions before are given, and those after it are returned.
        """
        self._round(events, jump)
        self._settle(jump)
        for _ in range(MOST_ROUNDS if following else 0):
            old, values = values, self._values()
            jumped = [
                k
                for k, a, b in zip(self._witnesses, old, values, strict=True)
                if _witness(self._events[k][1]).triggers(a, b) and k not in own
            ]
            if not jumped:
                break
            jump.events += [k for k in jumped if k not in jump.events]
            self._round(jumped, jump)
            self._settle(jump)
        return values

    def _gain(self, jump: Jump, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return how fast later values change with the time of updates between two rates."""
        assert jump.crossing is not None
        n = len(before)
        change = np.append(before, np.zeros(len(jump.crossing) - n))
        for matrices in jump.rounds:
            now, change = np.append(change, 1.0), change.copy()
            for rows, matrix in matrices:
                change[rows] = matrix @ now
        change[:n] -= after
        return change[: n + sum(len(each.keys) for each in self.held)]

    def _restore(self, values: Instant) -> None:
        values.snapshot.restore(self._context)
        self._store.set_motion(values.time, freeze(values.x.copy()))

    def _round(self, chosen: Sequence[int], jump: Jump) -> bool:
        """Run updates, unrestricted ones first; tell whether a value changed."""
        changed = False
        for kind in ("unrestricted", "discrete"):
            revision = self._store.revision
            matrices = self._run(chosen, kind)
            changed |= self._store.revision != revision
            if matrices:
                jump.rounds.append(matrices)
        return changed

    def _settle(self, jump: Jump) -> None:
        """Run settling updates until they change nothing."""
        chosen = [k for k, (_, e) in enumerate(self._events) if isinstance(e.trigger, Settling)]
        for _ in range(MOST_ROUNDS if chosen else 0):
            count, before = len(jump.rounds), self._numbers()
            self._round(chosen, jump)
            if np.array_equal(before, self._numbers()):
                del jump.rounds[count:]
                return

    def _numbers(self) -> FloatArray:
        """Return states and discrete values of the context."""
        held = [value for leaf in self._store.leaves for value in leaf.discrete]
        return np.concatenate([self._store.x, *held])

    def _values(self) -> list[float]:
        """Return the witness functions."""
        events = (self._events[k] for k in self._witnesses)
        return [float(np.reshape(_witness(event).calc(leaf), ())) for leaf, event in events]

    def passing(self, instant: Instant, rates: Rates, tolerance: _Tolerance) -> list[int]:
        """Return which functions cross zero at an instant."""
        if not self._witnesses:
            return []
        self._restore(instant)
        slope = rates(instant.time, instant.x)
        self._restore(instant)  # rates move what they read
        return self._through_zero(instant, slope, rates, tolerance)[0]

    def _crossed(
        self, before: Instant, slope: FloatArray, rates: Rates, tolerance: _Tolerance
    ) -> list[_Cause]:
        """Return which functions cross zero now, together where their instants move alike."""
        self._restore(before)  # rates move what they read
        crossed, ways, grazing = self._through_zero(before, slope, rates, tolerance)
        if grazing and not crossed:
            beyond = "events whose functions pass through zero"
            raise self.refusal(before.time, grazing, beyond, "which only graze it")
        causes: list[tuple[list[int], FloatArray]] = []
        for k, way in zip(crossed, ways, strict=True):
            for events, other in causes:
                if np.max(np.abs(way - other)) <= _ALIKE * np.max(np.abs(other)):
                    events.append(k)
                    break
            else:
                causes.append(([k], way))
        return [_Cause(*each) for each in causes]

    def _through_zero(
        self, before: Instant, slope: FloatArray, rates: Rates, tolerance: _Tolerance
    ) -> tuple[list[int], list[FloatArray], list[int]]:
        """Return which functions cross zero, how that moves the instant, and which only graze."""
        assert self._surfaces is not None
        time, x, n = before.time, before.x, len(before.x)
        matrix = self._surfaces(time, x)
        speeds = matrix[:, :n] @ slope + matrix[:, -1]
        values = np.array(self._values())
        crossed: list[int] = []
        ways: list[FloatArray] = []
        grazing: list[int] = []
        still, size = np.max(np.abs(slope), initial=0.0), np.max(np.abs(x), initial=0.0)
        step = _STEP * (size / still if size and still else max(1.0, abs(time)))
        for place, (k, row, speed) in enumerate(zip(self._witnesses, matrix, speeds, strict=True)):
            sign = _witness(self._events[k][1]).sign or np.sign(speed)
            near = _SPACINGS * math.ulp(time) * abs(speed) + _CLOSE * np.abs(row[:n]) @ np.abs(x)
            if speed * sign < 0.0 or abs(values[place]) > near:
                continue
            earlier = x - step * slope
            bend = self._surfaces(time - step, earlier)[place]
            bent = abs(speed - bend[:n] @ rates(time - step, earlier) - bend[-1])
            least = _GRAZING * np.abs(row[:n]) @ tolerance(x)  # how far beyond zero it has to go
            if speed == 0.0 or 0.5 * speed * speed * step < least * bent:
                grazing.append(k)
                continue
            crossed.append(k)
            ways.append(-row[:-1] / speed)
        return crossed, ways, grazing

    def _leads_to(self, after: Instant) -> bool:
        """Return whether updates have led to the values after them, each on its own scale."""
        held = [value for leaf in after.snapshot.discrete for value in leaf]
        expected = np.concatenate([after.x, *held])
        size = np.abs(expected)
        rounding = np.full(len(size), _CLOSE * np.max(size, initial=0.0))  # of terms that cancel
        rounding[: len(after.x)] = _SOLVED * np.max(np.abs(after.x), initial=0.0)
        least = _ALIKE * size + rounding + _NOTHING
        return bool(np.all(np.abs(self._numbers() - expected) <= least))

    def refusal(
        self, time: float, which: Sequence[int], expected: str, found: str
    ) -> EvaluationError:
        """Return the error that refuses some events at a time."""
        labels = ["a jump of the rates" if k == BREAK else self._events[k][1].label for k in which]
        names = quoted(labels) if which else "none"
        return EvaluationError(
            f"{self._attempt} at t = {time:.9g} s",
            expected=expected,
            found=f"{names}, {found}",
            remedy="Take differences of two simulations instead",
        )


def _witness(event: Event) -> Witness:
    assert isinstance(event.trigger, Witness)
    return event.trigger
