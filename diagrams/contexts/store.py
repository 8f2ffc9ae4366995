"""The store: the values of a root context, and what was computed from them.

Computed values are kept with a stamp. A change of one block's value marks what depends on it as
stale; a change of time or of the whole state (an integrator makes them by the million) only raises
the stamp that values depending on that kind must have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import ContextError, EvaluationError, TraceError
from flexure.diagrams.systems.state_projection import Projection
from flexure.diagrams.values.arrays import FLOAT, Array, FloatArray, conform, freeze
from flexure.diagrams.values.kinds import MOTION, STARTABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexure.diagrams.contexts.context import LeafContext
    from flexure.diagrams.systems.layout import Layout


_ALWAYS = 1 << 62  # stamp of values that are not computed
_NEVER = -1  # stamp of values that must be computed


class Store:
    """The values of a root context and the cache of what was computed from them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.time: float = 0.0
        self.accuracy: float | None = None
        self.x: Array = freeze(np.zeros(layout.num_states))
        self.leaves: list[LeafContext] = []
        self.cache: list[Any] = [None] * len(layout.slot_port)
        self.stamps: list[int] = [_NEVER] * len(layout.slot_port)
        self.clock = 0
        self.revision = 0
        self.unchecked: set[int] = set()  # blocks of which related parameters have changed
        self.onlooker: str | None = None  # who is at work and may not change time and states
        self.is_pure = False  # whether it may not change parameters and inputs either
        self.masks = layout.masks
        self._jobs: list[tuple[Any, ...]] | None = None
        self.required = [0] * (max(layout.masks, default=0) + 1)
        self._running: set[int] = set()
        for slot in range(layout.input_base, len(layout.slot_port)):
            if layout.slot_port[slot].default is not None:
                self.hold(slot, layout.slot_port[slot].default)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.leaves[0].root, "store")

    def hold(self, slot: int, value: Any) -> None:
        """Put a value that is not computed into a slot."""
        self.cache[slot] = value
        self.stamps[slot] = _ALWAYS

    def holds(self, slot: int) -> bool:
        """Return whether a value that is not computed is in a slot."""
        return self.stamps[slot] == _ALWAYS

    # Changes -------------------------------------------------------------------------------

    def changed(self, kinds: int) -> None:
        """Make everything stale that depends on one of the kinds, in any block."""
        self.clock += 1
        if kinds & ~MOTION:
            self.revision += 1
        required, clock = self.required, self.clock
        for mask in self.layout.masks_of(kinds):
            required[mask] = clock

    def changed_in(self, position: int, kind: int) -> None:
        """Make everything stale that depends on values of one kind in one block."""
        layout = self.layout
        first, last = layout.output_base[position], layout.end_of(position)
        self._spread([s for s in range(first, last) if layout.own_masks[s] & kind])

    def _spread(self, stale: list[int]) -> None:
        """Mark slots and everything that reads them as stale."""
        self.revision += 1
        dependents, stamps = self.layout.dependents, self.stamps
        reached = set(stale)
        while stale:
            slot = stale.pop()
            if stamps[slot] == _NEVER:
                continue  # then so are all that read it, as they are computed after it
            stamps[slot] = _NEVER
            for reader in dependents[slot]:
                if reader not in reached:
                    reached.add(reader)
                    stale.append(reader)

    def set_motion(self, time: float, x: FloatArray) -> None:
        """Set time and the whole continuous state; ``x`` must not be modified afterwards."""
        self.time = time
        self.x = freeze(x.view())
        self.changed(MOTION)

    def require_no_onlooker(self, what: str, *, is_state: bool = True) -> None:
        """Refuse a change of the time or of a state by an event or a monitor, by updates of all."""
        if self.onlooker is not None and (is_state or self.is_pure):
            may = "change nothing" if self.is_pure else "change parameters and inputs"
            traced = scalars.is_symbolic(self.time)
            raise (TraceError if traced else ContextError)(
                f"Cannot set {what}" + ("" if traced else f" at t = {self.time:.9g} s"),
                expected="an update, which returns the new values of its states",
                found=f"{self.onlooker}, which may read the time and states, and {may}",
                remedy="Return it from an unrestricted or discrete update with the same trigger, "
                "as {state: value}"
                if is_state
                else "Make it a discrete state, and return its new value, as {state: value}",
            )

    def require_relations(self) -> None:
        """Refuse parameters that contradict each other, of blocks in which some have changed."""
        for position in sorted(self.unchecked):
            leaf = self.leaves[position]
            for relation in leaf.system.relations:
                values = (leaf.parameters[each.index] for each in (relation.left, relation.right))
                relation.require(*values)
        self.unchecked.clear()

    def replace_states(self, span: slice, number: Array) -> None:
        """Replace a part of the continuous state; what depends on it is for the caller to mark."""
        self.require_no_onlooker("the continuous state")
        x = self.x.copy()
        x[span] = number
        self.x = freeze(x)

    def fix(self, slot: int, value: Any) -> None:
        """Set the value of an input that comes from outside."""
        self.require_no_onlooker("an input", is_state=False)
        self.hold(slot, value)
        self._spread(list(self.layout.dependents[slot]))

    # Evaluation ----------------------------------------------------------------------------

    def value(self, slot: int) -> Any:
        """Return the value of a slot, computing what is stale."""
        if self.stamps[slot] < self.required[self.masks[slot]]:
            self.update(slot)
        return self.cache[slot]

    def asked(self, slot: int) -> Any:
        """Return the value of a slot to a caller outside, or refuse values it presumes."""
        if not self.masks[slot] & STARTABLE:
            return self.value(slot)
        self.require_start()
        value = self.value(slot)
        for leaf in self.leaves:
            if leaf.system.restricts_starts:
                leaf.system.check_accuracy(leaf)
        return value

    def require_start(self) -> None:
        """Refuse values of the context that some block refuses to begin a motion with."""
        for leaf in self.leaves:
            if leaf.system.restricts_starts:
                leaf.system.check_start(leaf)

    def update(self, slot: int) -> None:
        """Compute a stale slot after everything stale that it needs, without recursion."""
        if self.unchecked:
            self.require_relations()
        layout, stamps, required = self.layout, self.stamps, self.required
        masks, needs = layout.masks, layout.needs
        stale: set[int] = set()
        stack = [slot]
        while stack:
            top = stack.pop()
            if top not in stale and stamps[top] < required[masks[top]]:
                stale.add(top)
                stack.extend(needs[top])
        for each in sorted(stale, key=layout.rank.__getitem__):
            # A calculation before this one may have read it without declaring so.
            if stamps[each] < required[masks[each]]:
                self._compute_once(each)

    def _compute_once(self, slot: int) -> None:
        """Run the calculation of one slot unless it is running already."""
        if slot in self._running:
            port = self.layout.slot_port[slot]
            raise EvaluationError(
                f"Cannot evaluate {port.what} '{port.full_name}'",
                expected="calculations that read only their declared prerequisites",
                found="a calculation that depends on its own result through undeclared reads",
                remedy="Complete the prerequisites in the declaration",
            )
        self._running.add(slot)
        try:
            self.compute(slot)
        finally:
            self._running.discard(slot)

    def compute(self, slot: int) -> None:
        """Run the calculation of one slot."""
        layout = self.layout
        port = layout.slot_port[slot]
        position = layout.slot_leaf[slot]
        if position < 0:
            raise EvaluationError(
                f"Cannot evaluate input port '{port.full_name}'",
                expected="a connection or a fixed value",
                found="neither",
                remedy=f"Connect the port, or call fix(context, value) on '{port.full_name}'",
            )
        leaf = self.leaves[position]
        try:
            value = port.compute(leaf)
        except Exception as error:
            annotate(error, f"while computing {port.what} '{port.full_name}'", self.time)
            raise
        self.cache[slot] = value
        self.stamps[slot] = self.clock

    def time_derivatives(self) -> Array:
        """Return the time derivative of the whole continuous state, a fresh vector."""
        if self.unchecked:
            self.require_relations()
        self._refresh_plan()
        derivatives = np.empty_like(self.x)
        for position in self.layout.dynamic:
            leaf = self.leaves[position]
            span = leaf.x_slice
            derivatives[span] = self._derivatives_of(leaf, span.stop - span.start)
        return derivatives

    def _refresh_plan(self) -> None:
        """Compute what the derivatives need; this is the inner loop of every integration."""
        if self._jobs is None:
            self._jobs = [self._job(slot) for slot in self.layout.plan]
        stamps, required, cache, clock = self.stamps, self.required, self.cache, self.clock
        port: Any = None
        try:
            for slot, mask, port, calc, leaf, shape in self._jobs:
                if stamps[slot] < required[mask]:
                    value = calc(leaf)
                    if (
                        value.__class__ is np.ndarray
                        and value.dtype is FLOAT
                        and value.shape == shape
                        and value.base is None
                    ):
                        value.setflags(write=False)
                    else:
                        value = port.accept(value)
                    cache[slot] = value
                    stamps[slot] = clock
        except Exception as error:
            annotate(error, f"while computing {port.what} '{port.full_name}'", self.time)
            raise

    def _job(self, slot: int) -> tuple[Any, ...]:
        """Collect everything that the computation of a slot needs."""
        port = self.layout.slot_port[slot]
        leaf = self.leaves[self.layout.slot_leaf[slot]]
        return slot, self.masks[slot], port, port.calc, leaf, (port.size,)

    def _derivatives_of(self, leaf: LeafContext, size: int) -> Array:
        """Run the derivative method of one leaf and check the shape of its result."""
        system = leaf.system
        try:
            value = system.calc_time_derivatives(leaf)
            if value.__class__ is np.ndarray and value.dtype is FLOAT and value.shape == (size,):
                return value
            return conform(value, size, system.derivatives_name)
        except Exception as error:
            annotate(error, f"while computing the time derivatives of '{system.label}'", self.time)
            raise

    # Projections ---------------------------------------------------------------------------

    def deviations(self) -> list[Any]:
        """Return how far states are from where blocks declare that they belong."""
        parts = [
            self._projection_of(self.leaves[position], Projection.calc_deviations)
            for position in self.layout.projecting
        ]
        return [value for part in parts for value in part]

    def projected_state(self) -> Array:
        """Return the whole continuous state, moved to where it belongs, a fresh vector."""
        x = self.x.copy()
        for position in self.layout.projecting:
            leaf = self.leaves[position]
            x[leaf.x_slice] = self._projection_of(leaf, Projection.calc_projected)
        if self.layout.tallying:
            before, time, start = self._tallies(), self.time, self.x
            self.set_motion(time, x)
            try:
                after = self._tallies()
            finally:
                self.set_motion(time, start)
            x = x.copy()
            for position, old, new in zip(self.layout.tallying, before, after, strict=True):
                end = self.leaves[position].x_slice.stop
                x[end - len(new) : end] += new - old
        return x

    def _tallies(self) -> list[Array]:
        """Return what blocks look at before and after projections."""
        found = []
        for position in self.layout.tallying:
            tally = self.leaves[position].system.tally
            assert tally is not None
            try:
                found.append(tally.values(self.leaves[position]))
            except Exception as error:
                annotate(error, f"while computing {tally.label}", self.time)
                raise
        return found

    def _projection_of(self, leaf: LeafContext, calc: Callable[[Projection, Any], Array]) -> Array:
        """Return what a method of the projection of one leaf gives."""
        projection = leaf.system.projection
        assert projection is not None
        try:
            return calc(projection, leaf)
        except Exception as error:
            annotate(error, f"while computing {projection.label}", self.time)
            raise


def annotate(error: BaseException, doing: str, time: float) -> None:
    """Add to an error which block was at work and when, once."""
    note = f"{doing} on symbols" if scalars.is_symbolic(time) else f"{doing} at t = {time:.9g}"
    if not any(known.startswith("while computing") for known in getattr(error, "__notes__", ())):
        error.add_note(note)
