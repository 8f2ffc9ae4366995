"""The exact equations of an analysis from native code, which equal parts of a system share.

What `TracedEquations` write out as Python, operation by operation, takes seconds for a beam of many
segments. Here one segment is traced and compiled for all of them
(`flexure.solvers.native.sharing`), with all derivatives that an analysis asks for. Long equations
without equal parts, as those of a flexible body, become native code as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from flexure.diagrams.checks.errors import TraceError
from flexure.diagrams.concurrency.warnings_and_garbage import quietly
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.scalars import Symbol
from flexure.diagrams.scalars.derivatives.jacobians import jacobian_length
from flexure.diagrams.scalars.derivatives.simplification import simplify
from flexure.diagrams.systems.layout import Layout
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.symbolic_values import STATE, Key
from flexure.solvers.analysis.equations.kept_equations import Seen, kept_equations
from flexure.solvers.native.emission.emission import Environment
from flexure.solvers.native.emission.jacobian_emission import emit_jacobian
from flexure.solvers.native.llvm.library import address_of, available
from flexure.solvers.native.programs.program import OwnFunctions, native_function, run_preparation
from flexure.solvers.native.programs.programs import zeros_in
from flexure.solvers.native.programs.system_trace import DiscretePlaces
from flexure.solvers.native.sharing.families.requested_derivatives import Question
from flexure.solvers.native.sharing.families.structural_key import most_alike
from flexure.solvers.tracing.trace import number_behind

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: States, from which on code is shared: compiling it takes as long as writing out that many.
_MANY = 60
#: Blocks of one kind, from which on it may pay.
_ALIKE = 8
#: Operations of derivatives, from which on native code is made sooner than Python.
_LONG = 30_000
_NONE = "Cannot share the code of what is alike"


class _NativeCode:
    """Native functions of all rows and of their derivatives."""

    shape: tuple[int, int]
    rows: np.ndarray
    _seen: list[Seen]
    _values: Callable[..., None]
    _slopes: Callable[..., None]

    def fits(self) -> bool:
        """Return whether the blocks are what they were when they were traced."""
        return all(seen.is_same() for seen in self._seen)

    def values(self, time: float, x: FloatArray, env: FloatArray) -> FloatArray:
        """Return all rows, for states with what is varied behind them."""
        out = np.zeros(self.shape[0])
        self._values(time, address_of(x), address_of(env), address_of(out))
        return out

    def slopes(self, time: float, x: FloatArray, env: FloatArray) -> FloatArray:
        """Return the entries of the matrix."""
        out = np.empty(len(self.rows))
        self._slopes(time, address_of(x), address_of(env), address_of(out))
        return out


class SharedCode(_NativeCode):
    """Native code of equations and their derivatives, for all contexts of a system.

    The layout is not kept. The code makes use of components of parameters that are ``zeros``.
    """

    def __init__(self, layout: Layout, question: Question, zeros: frozenset[Key]) -> None:
        from flexure.solvers.native.sharing.families.diagram_walk import UnlikeError
        from flexure.solvers.native.sharing.jobs.shared_derivatives import SharedDerivatives

        self.question = question  # what is asked
        self._discrete = DiscretePlaces(layout)
        environment = Environment(self._discrete.count, self._discrete.starts)
        try:
            shared = SharedDerivatives(layout, environment, zeros, question=question)
        except UnlikeError as error:
            raise TraceError(_NONE, found=str(error)) from error
        slopes = shared.jacobian(environment)
        if slopes is None:
            raise TraceError(_NONE, found="derivatives that are too long")
        self._inputs, self._room = shared.inputs, environment.size + 1
        library, jacobian = shared.code.compile(), slopes.code.compile()
        self._values = native_function(library.address("rhs"))
        self._prepare = native_function(library.address("prepare"))
        self._slopes = native_function(jacobian.address("jacobian"))
        n, m = layout.num_states, len(question.varied)
        # Of the matrix of all derivatives: by the states, and by what is varied.
        self.shape = n + question.num_shown, n + m
        # rows, columns: where those are that are not always zero.
        self.rows = np.array(slopes.rows, dtype=np.intp)
        order = np.argsort([question.places[key] for key in question.varied])
        behind = np.empty(n + m, dtype=np.intp)  # where what is asked for has its column
        behind[:n] = np.arange(n)
        behind[n + np.arange(m)] = n + order
        self.columns = behind[np.array(slopes.columns, dtype=np.intp)]
        # What it counts as among all that is kept.
        self.size = 20 * len(layout.leaves) + len(self.rows)
        self._seen = [Seen(leaf) for leaf in layout.leaves]

    def filled(self, store: Store) -> FloatArray:
        """Return an environment with the values of a context."""
        env = np.zeros(self._room)
        self._discrete.read(store, env)
        self._inputs.fill(store, env)
        run_preparation(self._prepare, 0, env)
        return env


class WrittenCode(_NativeCode, OwnFunctions):
    """Native code of long equations of which nothing is shared, instead of `SharedCode`.

    Derivatives along directions take as many operations as the equations, a few times over; written
    out by states, they may take a hundred times as many.

    The expressions are the answer to the question, from a trace. The layout is not kept.
    """

    def __init__(self, layout: Layout, question: Question, expressions: Sequence[Any]) -> None:
        super().__init__(layout)
        self.question = question
        keys: list[Key] = [((STATE, 0, 0), k) for k in range(layout.num_states)]
        keys += question.varied
        with quietly():
            values = simplify(expressions, checked=True)
            slopes = emit_jacobian(values, keys, self.environment, ())
        # In this order, as what prepares the values reads what the slopes have prepared.
        self._slopes = native_function(self._compiled(slopes.code, slopes.base, "jacobian"))
        self._values = native_function(self.made(values, "equations"))
        self.shape = len(expressions), len(keys)
        self.rows, self.columns = (np.array(each) for each in (slopes.rows, slopes.columns))
        self.size = 20 * len(layout.leaves) + len(self.rows)
        self._seen = [Seen(leaf) for leaf in layout.leaves]

    def filled(self, store: Store) -> FloatArray:
        """Return an environment with the values of a context."""
        return self.fill(store)


class SharedEquations:
    """Shared code with the values of one context.

    Time, states and all other values are read from the store at each call.
    """

    def __init__(self, store: Store, code: SharedCode | WrittenCode) -> None:
        self._store, self._code = store, code
        self._env = code.filled(store)
        self._revision = store.revision
        self._places = sorted(code.question.places, key=code.question.places.__getitem__)
        self._order: tuple[Any, ...] | None = None  # of the entries in some rows

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of derivatives."""
        return self._code.shape

    @property
    def place(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of what is not always zero."""
        return self._code.rows, self._code.columns

    def computed(self) -> FloatArray:
        """Return the rates, or what is asked in their place, and what is shown behind them."""
        return self._code.values(*self._point())

    def jacobian(self) -> FloatArray:
        """Return their derivatives by states and by what is varied, a new matrix."""
        matrix = np.zeros(self.shape)
        matrix[self.place] = self._code.slopes(*self._point())
        return matrix

    def sparse(self, rows: np.ndarray) -> csr_array:
        """Return some rows of this matrix."""
        from scipy.sparse import csr_array

        if self._order is None or self._order[0] is not rows:
            number = np.full(self.shape[0], -1)
            number[rows] = np.arange(len(rows))
            own, columns = number[self._code.rows], self._code.columns
            kept = np.flatnonzero(own >= 0)
            order = kept[np.lexsort((columns[kept], own[kept]))]
            starts = np.searchsorted(own[order], np.arange(len(rows) + 1))
            self._order = rows, order, columns[order], starts
        _, order, columns, starts = self._order
        entries = self._code.slopes(*self._point())[order]
        return csr_array((entries, columns, starts), shape=(len(rows), self.shape[1]))

    def _point(self) -> tuple[float, FloatArray, FloatArray]:
        store = self._store
        if self._revision != store.revision:
            self._env, self._revision = self._code.filled(store), store.revision
        varied = [number_behind(store, key) for key in self._places]
        return float(store.time), np.concatenate([store.x, varied]), self._env


def shared_equations(store: Store, question: Question) -> SharedEquations | None:
    """Return equations by shared code, which is kept; None where that is impossible or slow."""
    layout = store.layout
    if layout.num_states < _MANY or not available():
        return None
    zeros = frozenset(zeros_in(store) - set(question.varied))
    key = "shared", question, zeros

    def made() -> SharedCode | _Refused:
        with suppress(TraceError):
            if _may_share(layout):
                return SharedCode(layout, question, zeros)
        return _Refused(layout)

    found, _ = kept_equations(layout, key, made)
    return None if isinstance(found, _Refused) else SharedEquations(store, found)


class _Refused(_NativeCode):
    """Where sharing is not possible, which is remembered as well."""

    size = 1

    def __init__(self, layout: Layout) -> None:
        self._seen = [Seen(leaf) for leaf in layout.leaves]


def written_code(
    layout: Layout, question: Question, expressions: Sequence[Any]
) -> WrittenCode | None:
    """Return native code of equations whose derivatives are too long for Python, else None."""
    symbols = [each for each in expressions if isinstance(each, Symbol)]
    if not symbols or len(symbols[0].graph.nodes) < _LONG / 10 or not available():
        return None
    keys = [((STATE, 0, 0), k) for k in range(layout.num_states)]
    if jacobian_length(simplify(expressions), [*keys, *question.varied]) < _LONG:
        return None
    with suppress(TraceError):  # too long for that, too
        return WrittenCode(layout, question, expressions)
    return None


def _may_share(layout: Layout) -> bool:
    """Return whether many blocks are alike, and all have numbers alone."""
    if any(leaf.abstract_parameters or leaf.abstract_states for leaf in layout.leaves):
        return False
    return most_alike(layout.leaves) >= _ALIKE
