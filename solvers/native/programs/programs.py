"""Which program serves a context: one for each set of zeros among the parameters that is needed.

A program makes use of zeros in parameters that are declared as sparse. Where one of them is another
number, a second program is made, which makes use only of what was zero in all contexts so far. So
there are few of them, and after a while one of them serves every context.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.symbolic_values import PARAMETER, Key
from flexure.solvers.native.programs.program import Program


@dataclass
class _Known:
    """The programs of one root system, or why there are none."""

    # Sparse parameters, by position of the block and of the parameter in it.
    sparse: list[tuple[int, int]]
    programs: list[Program] = field(default_factory=list)
    refusal: TraceError | None = None
    # Taken while a program is made, which runs the equations of blocks on symbols. They may
    # simulate another system, for which there is another lock.
    lock: Lock = field(default_factory=Lock)

    def zeros_of(self, store: Store) -> set[Key]:
        """Return the components of sparse parameters that are zero in a context."""
        return {
            ((PARAMETER, position, index), int(component))
            for position, index in self.sparse
            for component in np.flatnonzero(store.leaves[position].parameters[index] == 0.0)
        }


_known: WeakKeyDictionary[Layout, _Known] = WeakKeyDictionary()
_lock = Lock()


def program_of(store: Store, driven: frozenset[int] = frozenset()) -> Program:
    """Return a program of a root system that serves a context, made when there is none.

    Inputs in the slots ``driven`` change with time. Raises `TraceError` when the derivatives cannot
    be traced.
    """
    known = _known_of(store.layout)
    with known.lock:
        alike = [program for program in known.programs if program.driven == driven]
        for program in alike:
            if program.serves(store):
                return program
        zeros = known.zeros_of(store).intersection(*(each.trace.zeros for each in alike))
        return _make(store.layout, known, zeros, driven)


def program_with(layout: Layout, zeros: frozenset[Key]) -> Program:
    """Return the program of a root system that makes use of certain zeros.

    Raises `TraceError` when the derivatives cannot be traced.
    """
    known = _known_of(layout)
    with known.lock:
        for program in known.programs:
            if program.trace.zeros == zeros and not program.driven:
                return program
        return _make(layout, known, zeros)


def zeros_in(store: Store) -> set[Key]:
    """Return the components of sparse parameters that are zero in a context."""
    return _known_of(store.layout).zeros_of(store)


def _known_of(layout: Layout) -> _Known:
    """Return what is known of a root system."""
    with _lock:
        if layout not in _known:
            _known[layout] = _Known(
                [
                    (position, parameter.index)
                    for position, leaf in enumerate(layout.leaves)
                    for parameter in leaf.numeric_parameters
                    if parameter.sparse
                ]
            )
        return _known[layout]


def _make(
    layout: Layout, known: _Known, zeros: Collection[Key], driven: frozenset[int] = frozenset()
) -> Program:
    """Make a program and remember it; refuse again what was refused before."""
    if known.refusal is None:
        try:
            known.programs.append(Program(layout, zeros, driven))
        except TraceError as error:
            known.refusal = copy(error)  # without what was going on when it was raised
    if known.refusal is not None:
        raise copy(known.refusal)
    return known.programs[-1]
