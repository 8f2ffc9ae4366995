"""Which program serves a context: one for each set of zeros among the parameters that is needed.

A program makes use of zeros in parameters that are declared as sparse. Where one of them is another
number, a second program is made, which makes use only of what was zero in all contexts so far. So
there are few of them, and after a while one of them serves every context. A reason for having none
is the end of a sentence, after "no native code, because".
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from flexure.diagrams.checks.errors import FlexureError, TraceError
from flexure.diagrams.concurrency.threads import Lock
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import PARAMETER, Key
from flexure.solvers.integration.methods.methods import method_name
from flexure.solvers.native.llvm.library import address_of, available
from flexure.solvers.native.programs.method_programs import METHODS
from flexure.solvers.native.programs.program import Program, native_function


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


class UnsuitableError(Exception):
    """Why native code cannot do something."""

    @classmethod
    def because(cls, error: FlexureError) -> UnsuitableError:
        """Make a reason of an attempt that failed."""
        return cls(error.attempt[0].lower() + error.attempt[1:])


def require_native(layout: Layout) -> None:
    """Raise `UnsuitableError` unless a root system may have native code, could it be traced."""
    if not available():
        raise UnsuitableError("the extra flexure[fast] is not installed")
    if layout.num_states == 0:
        raise UnsuitableError("there is no continuous state")


def native_program(store: Store, driven: frozenset[int] = frozenset()) -> Program:
    """Return the native code that serves a context, some inputs of which may change with time."""
    require_native(store.layout)
    try:
        return program_of(store, driven)
    except TraceError as error:
        raise UnsuitableError.because(error) from error


def has_loop(method: Any) -> bool:
    """Return whether a method, which may be a class of another package, has a native loop."""
    return isinstance(method, str) and method_name(method) in METHODS


class BoundProgram:
    """A program with the parameters, inputs and discrete values of one context.

    Time and states of the store are neither read nor changed.
    """

    def __init__(self, program: Program, store: Store) -> None:
        self._store = store
        self._use(program)

    def _use(self, program: Program) -> None:
        """Take a program that serves the present values."""
        self.program = program
        self._derivatives = native_function(program.rhs)
        self._env = program.fill(self._store)
        self._revision = self._store.revision

    @property
    def fits(self) -> bool:
        """Whether the program serves the present values of the context."""
        return self._revision == self._store.revision or self.program.serves(self._store)

    @property
    def env(self) -> FloatArray:
        """The environment with the present values; another array after each change.

        With values that the program does not serve, another program takes its place.
        """
        if not self.fits:
            self._use(program_of(self._store, self.program.driven))
        store, program = self._store, self.program
        is_short = len(self._env) <= program.environment.size  # since somebody asked for a Jacobian
        if is_short or self._revision != store.revision:
            self._env = program.fill(store)
            self._revision = store.revision
        return self._env

    def __call__(self, time: float, x: FloatArray) -> FloatArray:
        """Return the time derivatives, a new array of shape (n,)."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        env = self.env
        out = np.empty(self.program.num_states)
        self._derivatives(time, address_of(x), address_of(env), address_of(out))
        return out

    def jacobian(self, time: float, x: FloatArray) -> FloatArray:
        """Return the exact Jacobian by the state, dense, of shape (n, n).

        Raises `TraceError` when the equations have none.
        """
        address = self.program.jacobian()
        assert self.program.jacobian_entries is not None
        rows, columns = self.program.jacobian_entries
        x = np.ascontiguousarray(x, dtype=np.float64)
        env, entries = self.env, np.empty(len(rows))
        native_function(address)(time, address_of(x), address_of(env), address_of(entries))
        matrix = np.zeros((self.program.num_states, self.program.num_states))
        matrix[rows, columns] = entries
        return matrix

    def hand_back(self) -> None:
        """Put the discrete values, which loops change in the environment, into the context."""
        is_up_to_date = self._revision == self._store.revision
        self.program.discrete.write(self._store, self._env)
        if is_up_to_date:  # and still is, since nothing else has changed
            self._revision = self._store.revision
