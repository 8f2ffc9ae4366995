"""Inputs of a linear model: free ports, parameters, wires, and values measured along a motion.

At a wire, a disturbance d is added to the signal, or the wire is opened and carries d alone. For
the derivatives it is cut (`flexure.diagrams.contexts.rewiring`) either way. They tell what comes
to the cut, m, and what follows from what goes on behind it, v. Then the wires are closed again:

    v = S m + d,   S = 1 where a wire is closed, 0 where it is opened

Since no diagram has an algebraic loop, these equations can always be solved for v.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.rewiring import cut_wires
from flexure.diagrams.contexts.store import Store
from flexure.diagrams.contexts.value_places import Place, Way, find_place, several
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, freeze
from flexure.diagrams.values.symbolic_values import INPUT, Key
from flexure.solvers.analysis.equations.equations import (
    Variable,
    can_vary,
    carries_vector,
    find_variables,
    wire_at,
)
from flexure.solvers.native.runs.sensitivity_run import Line


class LinearInputs:
    """The inputs of a linear model, and the wires that are opened.

    ``context`` has the values of the start, with its wires cut. ``inputs`` are free ports,
    parameters, connected ports, or components of them; ``openings`` are connected ports or
    components of them. Equations are differentiated by ``variables``: free ports and parameters,
    then what goes on behind each cut. ``columns`` are the inputs among their components.
    """

    def __init__(
        self,
        start: Context,
        inputs: Way | Iterable[Way],
        openings: Way | Iterable[Way],
        attempt: str,
    ) -> None:
        ways = several(inputs)
        opened = [wire_place(start, w, f"{attempt} with an opening") for w in several(openings)]
        entered = [find_place(start.system, way, can_vary) for way in ways]
        wires = [wire_at(p.handle) for p in [*opened, *entered] if is_fed(start, p.handle)]
        self.context = cut_wires(start, list(dict.fromkeys(wires))) if wires else start
        cuts = self.context.store.layout.cuts
        self.slots = [self.context.store.layout.slot_before(wire) for wire in cuts]  # at the cuts
        _refuse_unread(self.context, attempt)
        behind = [Variable(Place.of(wire), _keys(slot, wire)) for wire, slot in cuts.items()]

        chosen = find_variables(self.context, ways, attempt)
        free = [each for each in chosen if wire_at(each.place.handle) not in cuts]
        self.variables = [*free, *behind]
        self.names = [name for variable in chosen for name in variable.place.names]
        columns = {key: k for k, key in enumerate(key for v in self.variables for key in v.keys)}
        self.columns = [columns[key] for variable in chosen for key in variable.keys]
        self.behind = behind
        self.num_behind = sum(len(variable.keys) for variable in behind)
        self._open = {(cuts[wire_at(p.handle)], int(k)) for p in opened for k in p.components}
        self._closed = np.array(
            [
                (slot, k) not in self._open
                for wire, slot in cuts.items()
                for k in range(wire.size or 0)
            ],
            dtype=bool,
        )

    def closed(self, matrix: FloatArray, num_states: int) -> FloatArray:
        """Return the derivatives by states and inputs, with the wires closed that are to be.

        The matrix has derivatives by states and `variables` of the results and, in the last rows,
        of what comes to the cuts.
        """
        count = self.num_behind
        results = matrix[: len(matrix) - count]
        if self._closed.any():
            results = results @ closing(matrix, self._closed[:, np.newaxis])[1]
        return results[:, self._chosen(num_states)]

    def _chosen(self, num_states: int) -> list[int]:
        return [*range(num_states), *(num_states + k for k in self.columns)]

    def changes_behind(self, matrix: FloatArray, by: FloatArray) -> FloatArray:
        """Return how what is behind the cuts moves with parameters, shape (count, k).

        ``by`` contains the derivatives by k parameters, with the rows of ``matrix``.
        """
        count = self.num_behind
        known = matrix.shape[1] - count
        going = closing(matrix, self._closed[:, np.newaxis])[1][known:, known:]
        return np.asarray(going @ (self._closed[:, np.newaxis] * by[len(by) - count :]))

    def closed_changes(
        self, matrix: FloatArray, changes: FloatArray, num_states: int
    ) -> FloatArray:
        """Return how what `closed` returns changes, for changes of ``matrix``, an axis in front."""
        left, right = closing(matrix, self._closed[:, np.newaxis])
        return np.asarray(left @ changes @ right[:, self._chosen(num_states)])

    def opens(self, block: System) -> bool:
        """Return whether all wires that leave a block are opened."""
        cuts = self.context.store.layout.cuts
        return all(
            port in cuts and all((cuts[port], k) in self._open for k in range(port.size))
            for port in block.output_ports
            if isinstance(port.size, int)
        )

    def follow(self, store: Store) -> None:
        """Let what goes on behind closed wires be what comes to them, in a context like this."""
        if not self._closed.any():
            return
        for _ in self.behind:  # as many as may follow each other
            end, is_settled = 0, True
            for slot, variable in zip(self.slots, self.behind, strict=True):
                start, end = end, end + len(variable.keys)
                present = variable.read(store)
                numbers = np.where(self._closed[start:end], store.value(slot), present)
                if not np.array_equal(numbers, present):
                    variable.write(store, numbers)
                    is_settled = False
            if is_settled:
                return

    def values(self, numbers: FloatArray) -> FloatArray:
        """Return the values of the inputs, given those of `variables`; of added ones, zero."""
        held = numbers.copy()
        held[len(held) - self.num_behind :][self._closed] = 0.0
        return held[self.columns]


def closing(matrix: FloatArray, closed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L and R that close wires: results of ``results @ R``, their changes ``L change R``.

    The last rows of the matrix of derivatives are those of what comes to the cuts, and the last
    columns those by what goes on behind them. ``closed``, shape (count, 1), is 1 for wires to be
    closed, else 0.
    """
    count = len(closed)
    size, known = len(matrix) - count, matrix.shape[1] - count
    coming = closed * matrix[size:]
    going = np.linalg.inv(np.eye(count) - coming[:, known:])
    right = np.eye(known + count)
    right[known:] = going @ np.hstack([coming[:, :known], np.eye(count)])
    return np.hstack([np.eye(size), matrix[:size, known:] @ going * closed.T]), right


def _refuse_unread(context: Context, attempt: str) -> None:
    """Refuse cuts behind outputs that no block reads, where nothing would enter."""
    layout = context.store.layout
    read = {slot for sources in layout.sources for slot in sources}
    read |= {layout.slot_before(wire) for wire in layout.cuts}  # the other end of a wire
    for wire, slot in layout.cuts.items():
        if slot not in read:
            raise UnknownNameError(
                f"{attempt} with an input or opening at '{wire.full_name}'",
                expected="a port that carries a vector from one block to another",
                found=f"the {wire.what} '{wire.full_name}', which no block reads",
            )


def _keys(slot: int, wire: InputPort | OutputPort) -> tuple[Key, ...]:
    """Return the keys of the numbers behind a cut."""
    return tuple(((INPUT, slot, 0), k) for k in range(wire.size or 0))


def is_fed(context: Context, handle: object) -> bool:
    """Return whether a handle is that of a port on a wire between blocks."""
    if isinstance(handle, InputPort):
        return not context.find(handle.system, handle).input_is_free(handle.index)
    return isinstance(handle, OutputPort)


def wire_place(context: Context, way: Way, attempt: str) -> Place:
    """Find a port on a wire between blocks."""
    place = find_place(context.system, way, carries_vector)
    if not (carries_vector(place.handle) and is_fed(context, place.handle)):
        raise UnknownNameError(
            f"{attempt} at '{place.path}'",
            expected="a port that carries a vector from one block to another",
            found=f"the {place.handle.what} '{place.handle.full_name}'"
            + (", which nothing feeds" if isinstance(place.handle, InputPort) else ""),
        )
    return place


_STRAIGHT = 1e-12  # of the values: less of a bend is rounding


@dataclass(frozen=True, eq=False)
class Drive:
    """Free input ports that follow straight lines between given points."""

    slot: int  # the slot of the port
    times: FloatArray  # instants of the points, shape (k,)
    values: FloatArray  # the points, shape (k, size)
    _bends: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ways = np.diff(self.values, axis=0)
        lengths = np.diff(self.times)[:, np.newaxis]
        turn = np.abs(ways[1:] - ways[:-1] * lengths[1:] / lengths[:-1])
        bends = np.any(turn > _STRAIGHT * np.max(np.abs(self.values)), axis=1)
        object.__setattr__(self, "_bends", self.times[1:-1][bends])

    def line(self, time: float) -> Line:
        """Return the value at a time, and how it goes on from there."""
        last = len(self.times) - 2
        k = min(max(int(np.searchsorted(self.times, time, side="right")) - 1, 0), last)
        span, way = self.times[k + 1] - self.times[k], self.values[k + 1] - self.values[k]
        return Line(self.slot, self.values[k] + (time - self.times[k]) / span * way, way / span)

    def apply(self, store: Store, time: float) -> None:
        """Fix the port at the value of a time."""
        value = self.line(time).base
        if not (store.holds(self.slot) and np.array_equal(store.cache[self.slot], value)):
            store.fix(self.slot, freeze(value))

    def next_bend(self, time: float) -> float:
        """Return the next instant at which the line bends."""
        k = int(np.searchsorted(self._bends, time, side="right"))
        return float(self._bends[k]) if k < len(self._bends) else math.inf
