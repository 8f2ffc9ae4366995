"""A program bound to a context: its environment holds the values that the context has now."""

from __future__ import annotations

import numpy as np

from flexure.diagrams.contexts.store import Store
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.native.llvm.library import address_of
from flexure.solvers.native.programs.program import Program, native_function
from flexure.solvers.native.programs.programs import program_of


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
        self.program.write_discrete(self._store, self._env)
        if is_up_to_date:  # and still is, since nothing else has changed
            self._revision = self._store.revision
