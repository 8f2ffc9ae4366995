"""Forces at rest and equations of strokes and constraints, with all exact derivatives.

The rows are the forces on all trees, one for each velocity, the rates of other states, what is kept
(errors of constraints, then outputs that holders keep), and the derivatives of each of these by all
velocities. Columns are all states, and what is varied. In large systems, forces and rates come from
code that is shared by what is alike; what is kept is as a rule little, and is written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody import MultibodyTree
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars.expressions.branches import explore
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import Key
from flexure.solvers.analysis.equations.kept_equations import TracedEquations, kept_equations
from flexure.solvers.analysis.equations.shared_equations import SharedEquations, shared_equations
from flexure.solvers.analysis.forces_at_rest.static_coordinates import Indices
from flexure.solvers.native.sharing.families.requested_derivatives import Question
from flexure.solvers.tracing.exact_jacobian import ExactJacobian, state_keys
from flexure.solvers.tracing.trace import SymbolicStore, number_behind, trace
from flexure.solvers.tracing.trace_check import OTHER_NUMBERS, agree, sizes_of_terms

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class AtRest:
    """What is asked of one block: the forces on a tree at rest, or derivatives."""

    def begin(self, store: SymbolicStore) -> None:
        """Let a tree rest."""
        (block,) = store.layout.leaves
        if isinstance(block, MultibodyTree):
            first = block.topology.num_positions
            store.x = _with_zeros(store.x, slice(first, first + block.topology.num_velocities))

    def __call__(self, store: SymbolicStore) -> Sequence[Any]:
        """Return the forces, one for each velocity, or the derivatives of all states."""
        return read_forces(store)


def read_forces(store: Store) -> list[Any]:
    """Read the forces on all trees and the rates of other states, numbers or symbols."""
    found: list[Any] = []
    rates: list[Any] = []
    for position in store.layout.dynamic:
        leaf, system = store.leaves[position], store.layout.leaves[position]
        if isinstance(system, MultibodyTree):
            run = partial(system.forces_at_rest, leaf)
            found.extend(explore(store.graph, run) if isinstance(store, SymbolicStore) else run())
        else:
            size = leaf.x_slice.stop - leaf.x_slice.start
            rates.extend(store._derivatives_of(leaf, size))
    return [*found, *rates]


def _rows_of_forces(layout: Layout) -> Indices:
    """Return where shared code has these numbers, in their order."""
    found: list[int] = []
    rates: list[int] = []
    for position in layout.dynamic:
        start, system = layout.x_slices[position].start, layout.leaves[position]
        if isinstance(system, MultibodyTree):
            found += range(start, start + system.topology.num_velocities)
        else:
            rates += range(start, layout.x_slices[position].stop)
    return np.array([*found, *rates], dtype=np.intp)


@dataclass(frozen=True)
class StaticReading:
    """What is read of a system."""

    held: tuple[tuple[int, int], ...]  # slots and components that holders keep
    velocities: Indices  # where the velocities of all trees are among the states

    def all(self, store: SymbolicStore) -> list[Any]:
        """Read all rows."""
        store.x = _with_zeros(store.x, self.velocities)
        return [*read_forces(store), *self.kept(store)]

    def kept(self, store: SymbolicStore) -> list[Any]:
        """Read what is kept, and its derivatives by all velocities."""
        store.x = _with_zeros(store.x, self.velocities)
        strokes = [*_errors(store), *(store.value(slot)[k] for slot, k in self.held)]
        return [*strokes, *(part for g in strokes for part in _direction(store, g))]


def _with_zeros(x: Any, places: Any) -> Any:
    """Return states of which some are zero."""
    x = x.copy()
    x[places] = 0.0
    return x


def _errors(store: SymbolicStore) -> list[Any]:
    """Return the errors of all constraints."""
    leaves = [(store.leaves[k], store.layout.leaves[k]) for k in store.layout.dynamic]
    return [
        error
        for leaf, system in leaves
        if isinstance(system, MultibodyTree)
        for condition in system.conditions(leaf)
        for error in condition.errors
    ]


def _direction(store: SymbolicStore, stroke: Any) -> list[Any]:
    """Return the derivatives of an output by all velocities, ∂g/∂q N(q)."""
    keys = state_keys(store)
    gradient = scalars.jacobian([stroke], keys).to_array()[0]
    found: list[Any] = []
    for position in store.layout.dynamic:
        leaf, system = store.leaves[position], store.layout.leaves[position]
        if not isinstance(system, MultibodyTree):
            continue
        start = leaf.x_slice.start
        for mobilizer in system.topology.mobilizers:
            q = slice(start + mobilizer.q.start, start + mobilizer.q.stop)
            for v in np.eye(mobilizer.joint.num_velocities):
                rates = mobilizer.joint.calc_position_rates(store.x[q], v)
                found.append(np.sum(gradient[q] * rates))
    return found


class ExactForces:
    """All rows at the present values of a context, and their derivatives.

    Rows are ``written`` out: all, or those behind shared ones. With shared code comes where forces
    and rates are among its rows.
    """

    def __init__(
        self,
        store: Store,
        written: TracedEquations | None,
        shared: tuple[SharedEquations, Indices] | None = None,
    ) -> None:
        self._store, self._written, self._shared = store, written, shared
        self._slopes = None if written is None else ExactJacobian(store, written.slopes)
        self._rows = None if written is None else written.bound(store)

    def computed(self) -> FloatArray:
        """Return all rows."""
        parts = []
        if self._shared is not None:
            equations, rows = self._shared
            parts.append(equations.computed()[rows])
        if self._rows is not None:
            parts.append(self._rows(self._store.time, self._store.x))
        return np.concatenate(parts)

    def jacobian(self) -> FloatArray | csr_array:
        """Return their derivatives, a new matrix; a sparse one where all code is shared."""
        written = None
        if self._slopes is not None:
            written = self._slopes(self._store.time, self._store.x)
        if self._shared is None:
            assert written is not None
            return written
        equations, rows = self._shared
        shared = equations.sparse(rows)
        return shared if written is None else np.vstack([shared.toarray(), written])

    def moved(self) -> npt.NDArray[np.bool_]:
        """Return which of the derivatives are not always zero."""
        parts = []
        if self._shared is not None:
            equations, rows = self._shared
            parts.append(_marked(equations.shape, equations.place)[rows])
        if self._written is not None:
            parts.append(_marked(self._written.slopes.shape, self._written.slopes.place))
        return np.vstack(parts)

    def agrees(self, keys: Sequence[Key]) -> bool:
        """Return whether forces and rates are those of the equations."""
        store = self._store
        with np.errstate(all="ignore"):
            present = np.array(read_forces(store), dtype=float)
            point = np.concatenate([store.x, [number_behind(store, key) for key in keys]])
            slopes = self.jacobian()
            slopes = slopes if isinstance(slopes, np.ndarray) else slopes.toarray()
            terms = sizes_of_terms(slopes[: len(present)], point)
            return agree(self.computed()[: len(present)], present, terms)


def _marked(shape: tuple[int, int], place: Any) -> npt.NDArray[np.bool_]:
    marked = np.zeros(shape, dtype=bool)
    marked[place] = True
    return marked


def exact_forces(
    store: Store, reading: StaticReading, keys: Sequence[Key]
) -> tuple[ExactForces | None, TraceError | None]:
    """Return the rows as functions, stored ones or new ones, or the reason why there are none.

    The store is at rest; ``keys`` are inputs and parameters by which the reading is differentiated.
    """
    layout, every = store.layout, [*state_keys(store), *keys]
    try:
        shared = shared_equations(store, Question(varied=tuple(keys), reading=AtRest()))
        if shared is not None:
            rest = None
            constrained = any(getattr(leaf, "constraints", ()) for leaf in layout.leaves)
            if reading.held or constrained:
                rest, _ = kept_equations(
                    layout,
                    ("kept at rest", reading.held, tuple(keys)),
                    lambda: TracedEquations(layout, trace(layout, reading.kept), every),
                )
            found = ExactForces(store, rest, (shared, _rows_of_forces(layout)))
            if found.agrees(keys):
                return found, None

        def agrees(known: TracedEquations) -> bool:
            return ExactForces(store, known).agrees(keys)

        written, known = kept_equations(
            layout,
            ("forces at rest", reading.held, tuple(keys)),
            lambda: TracedEquations(layout, trace(layout, reading.all), every, often=bool(keys)),
            agrees,
        )
    except TraceError as error:
        return None, error
    if not known and not agrees(written):
        return None, TraceError(OTHER_NUMBERS.capitalize())
    return ExactForces(store, written), None
