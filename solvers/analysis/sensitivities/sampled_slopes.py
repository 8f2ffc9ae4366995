"""Periodic updates along a motion with derivatives.

At an instant tₖ an update replaces states x and discrete values d by g(tₖ, x, d, p). As the instant
does not depend on the numbers p, the derivatives jump by the derivatives of g ::

    ∂x⁺/∂p = ∂g/∂x ∂x/∂p + ∂g/∂d ∂d/∂p + ∂g/∂p

and likewise those of the discrete values. In between, these hold, and act on the motion as numbers
do that have several columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flexure.diagrams.checks.errors import NonFiniteError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.updates import run_updates
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.scalars.expressions.expression import may_jump
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.events import Initialization, Periodic, Trigger
from flexure.diagrams.values.symbolic_values import DISCRETE, Key
from flexure.solvers.analysis.equations.equations import Variable
from flexure.solvers.analysis.equations.kept_equations import kept_code
from flexure.solvers.native.programs.system_trace import DiscretePlaces, Update, read_update
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, JacobianCode, state_keys
from flexure.solvers.tracing.trace import SymbolicStore, trace

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_KINDS = "unrestricted", "discrete"  # as they run


class SampledSlopes:
    """The periodic updates of a context, and what they do to derivatives.

    Updates change the context; motions are differentiated by ``keys``, parameters and fixed inputs.
    Raises TraceError when an update cannot be traced.
    """

    _triggers: tuple[type[Trigger], ...] = (Periodic,)
    _beyond: tuple[Key, ...] = ()  # by which updates are differentiated, beside states and numbers

    def __init__(self, context: Context, keys: Sequence[Key], attempt: str) -> None:
        self._store, self._attempt = context.store, attempt
        self._events = [
            (leaf, event)
            for leaf in context.leaves()
            for event in leaf.system.events
            if event.kind != "publish" and isinstance(event.trigger, self._triggers)
        ]
        triggers = (event.trigger for _, event in self._events)
        self._clocks = {each for each in triggers if isinstance(each, Periodic)}
        self.held: list[Variable] = []  # the discrete states that updates write
        self.may_jump = False  # whether a periodic update holds an operation that can jump
        self._slopes: list[tuple[ExactJacobian, list[int]]] = []
        updating = {
            leaf.position
            for leaf in context.leaves()
            for event in leaf.system.events
            if event.kind != "publish"
            and isinstance(event.trigger, (*self._triggers, Initialization))
        }
        if updating:
            self._trace(keys, updating)

    def _trace(self, keys: Sequence[Key], updating: set[int]) -> None:
        """Trace all updates, and differentiate them."""
        layout = self._store.layout
        places = DiscretePlaces(layout)
        n = layout.num_states
        groups = [
            (((DISCRETE, position, state.index), k), Place.of(state))
            for position in sorted(updating)
            for state in layout.leaves[position].discrete_states
            for k in range(state.size)
        ]
        held = [key for key, _ in groups]

        def read(store: SymbolicStore) -> list[Update]:
            events = [(store.leaves[leaf.position], event) for leaf, event in self._events]
            return [read_update(store, leaf, event, places.starts) for leaf, event in events]

        def made() -> list[tuple[JacobianCode, list[int], bool]]:
            codes, wanted = [], [*state_keys(self._store), *held, *keys, *self._beyond]
            for update in trace(layout, read):
                jumps = may_jump(update.expressions)
                codes.append((JacobianCode(update.expressions, wanted, n), update.targets, jumps))
            return codes

        codes = kept_code(layout, (self._triggers, *held, *keys), made)
        # Targets are places among all states and all discrete values, rows those of held ones.
        begins = {key: places.starts[key[0][1]][key[0][2]] + key[1] for key in held}
        row = {n + begins[key]: n + k for k, key in enumerate(held)} | {k: k for k in range(n)}
        for (code, targets, jumps), (_, event) in zip(codes, self._events, strict=True):
            rows = [row[target] for target in targets]
            self._slopes.append((ExactJacobian(self._store, code), rows))
            self.may_jump |= jumps and isinstance(event.trigger, Periodic)
        for place in dict.fromkeys(place for _, place in groups):
            self.held.append(Variable(place, tuple(k for k, other in groups if other is place)))

    def next_time(self, time: float) -> float:
        """Return the next time at which updates are due, or infinity."""
        return min((clock.next_time(time) for clock in self._clocks), default=math.inf)

    def run(self, slopes: FloatArray, others: FloatArray, tick: float | None = None) -> FloatArray:
        """Run the updates that are due at the time of the context, or at a tick.

        ``slopes``, shape (n + h, m), are derivatives of the states and of the held values, as is
        the result, and ``others``, shape (p, m), those of ``keys``. A tick may be a rounding error
        away from the time of the context.
        """
        due = self._due(self._store.time if tick is None else tick)
        for kind in _KINDS:
            before, slopes = np.concatenate([slopes, others]), slopes.copy()
            for rows, matrix in self._run(due, kind):
                slopes[rows] = matrix @ before
        return slopes

    def _due(self, *times: float) -> list[int]:
        """Return which of the updates are due at one of some times."""
        return [
            k
            for k, (_, event) in enumerate(self._events)
            if isinstance(event.trigger, Periodic) and any(map(event.trigger.is_due, times))
        ]

    def _run(self, chosen: Sequence[int], kind: str) -> list[tuple[list[int], csc_array]]:
        """Run those of some updates that are of a kind; return what they do to derivatives."""
        # That is a matrix for each, and the rows of what it computes.
        store, found = self._store, []
        due = [k for k in chosen if self._events[k][1].kind == kind]
        for k in due:
            exact, rows = self._slopes[k]
            entries = exact.entries(store.time, store.x)
            if not np.isfinite(entries).all():
                raise infinite_slope(
                    f"{self._attempt} at t = {store.time:.9g} s",
                    f"finite derivatives of the update '{self._events[k][1].label}'",
                )
            found.append((rows, exact.sparse(entries)))
        run_updates(self._events[k] for k in due)
        return found


def infinite_slope(
    attempt: str, expected: str = "finite derivatives by states and parameters"
) -> NonFiniteError:
    """Return the error of derivatives that are not finite."""
    return NonFiniteError(
        attempt,
        expected=expected,
        found="NaN or infinity",
        remedy="Look for a root or a quotient whose slope is infinite there",
    )
