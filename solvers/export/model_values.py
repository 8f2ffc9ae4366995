"""The values of an exported model: their places, names, units and bounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from flexure.diagrams.checks.errors import UnknownNameError, suggestion
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.inventory import Paths, each_free_input, each_parameter, each_state
from flexure.diagrams.contexts.value_places import Place, Way, find_place, members_of, several
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState
from flexure.diagrams.values.symbolic_values import INPUT, PARAMETER, Key
from flexure.solvers.export.model_equations import ModelEquations
from flexure.solvers.native.emission.emission import Environment

_DISCRETE = "discrete", "env"


class ModelValues:
    """The values with which a model begins: where they are, and what they are called.

    An environment begins with the discrete values, then come all parameters, and then the free
    inputs.

    The environment gets places for all of them, but for parameters with the paths ``fixed``, which
    keep their values.
    """

    def __init__(
        self,
        context: Context,
        equations: ModelEquations,
        environment: Environment,
        fixed: Collection[str] = (),
    ) -> None:
        self._fixed = fixed
        self._context = context
        self._equations = equations
        self._environment = environment
        self._path_of = Paths(context.system)
        start = np.zeros(environment.size)
        equations.discrete.read(context.store, start)
        self.numbers: list[float] = start.tolist()  # with what the environment begins
        # Array, first entry and size of each value that can be set, by path.
        self.places: dict[str, dict[str, Any]] = {}
        # What the model says about itself, as plain data: what it is, and tables of all values.
        self.info: dict[str, Any] = {
            "name": context.system.name,
            "time": float(context.time),
            "parameters": self._parameters(),
            "relations": self._relations(),
            "inputs": self._inputs(),
            **self._states(),
            "signals": equations.signal_rows(),
            "events": equations.event_rows(),
            "leftOut": equations.left_out,
        }

    def _reserve(self, path: str, key: tuple[str, int, int], value: Any) -> int:
        """Give places to the components of a value."""
        flat = np.ravel(value)
        at = self._environment.reserve(flat.size)
        keys: list[Key] = [(key, k) for k in range(flat.size)]
        self._environment.keys.update({each: at + k for k, each in enumerate(keys)})
        self.numbers.extend(flat.tolist())
        self._add_place(path, "env", at, flat.size)
        return at

    def _parameters(self) -> list[dict[str, Any]]:
        position_of = self._equations.layout.position
        rows = []
        for place, handle in each_parameter(self._context.system):
            if not isinstance(handle, NumericParameter) or self._path_of(handle) in self._fixed:
                continue
            value = np.asarray(place.read(self._context), dtype=float)
            key = PARAMETER, position_of[handle.system], handle.index
            rows.append(
                {
                    "path": self._path_of(handle),
                    "labels": _labels(place),
                    "unit": handle.unit,
                    "doc": handle.doc,
                    "lower": _bound(handle.lower, value.shape),
                    "upper": _bound(handle.upper, value.shape),
                    "exclusive": handle.exclusive,
                    "infinite": handle.allow_infinite,
                    "value": value.ravel().tolist(),
                    "shape": list(value.shape),
                    "at": self._reserve(self._path_of(handle), key, value),
                }
            )
        return rows

    def _relations(self) -> list[dict[str, Any]]:
        return [
            {
                "left": self._path_of(each.left),
                "comparison": each.comparison,
                "right": self._path_of(each.right),
            }
            for leaf in self._equations.layout.leaves
            for each in leaf.relations
        ]

    def _inputs(self) -> list[dict[str, Any]]:
        store = self._context.store
        rows = []
        for port, slot in each_free_input(self._context):
            if port.size is None:
                continue
            is_given = store.holds(slot)
            value = store.cache[slot] if is_given else np.full(port.size, np.nan)
            is_read = any(
                ((INPUT, slot, 0), k) in self._equations.sources for k in range(port.size)
            )
            rows.append(
                {
                    "path": self._path_of(port),
                    "labels": _labels(Place.of(port)),
                    "unit": port.unit,
                    "doc": port.doc,
                    "value": np.ravel(value).tolist() if is_given else None,
                    "required": is_read and not is_given,
                    "at": self._reserve(self._path_of(port), (INPUT, slot, 0), value),
                }
            )
        return rows

    def _states(self) -> dict[str, list[dict[str, Any]]]:
        """Describe states and discrete values, in the order in which they lie."""
        found: dict[str, list[dict[str, Any]]] = {"states": [], "discrete": []}
        for place, state in each_state(self._context.system):
            if not isinstance(state, (ContinuousState, DiscreteState)):
                continue
            kind, array = ("states", "x") if isinstance(state, ContinuousState) else _DISCRETE
            unit = getattr(place.handle, "unit", "")
            paths = self._path_of.components(place)
            held = place.settable  # an output may show something else, as that of a locked joint
            at = (held.components + self._start(state)).tolist()
            numbers = np.ravel(held.read(self._context)).tolist()
            for path, k, initial in zip(paths, at, numbers, strict=True):
                found[kind].append({"path": path, "unit": unit, "initial": initial, "at": k})
                self._add_place(path, array, k, 1)
            self._add_place(self._path_of.place(place), array, at[0], len(at))
            self._add_place(self._path_of(state), array, self._start(state), state.size)
        for rows in found.values():
            rows.sort(key=lambda row: row["at"])
        return found

    def _start(self, state: ContinuousState | DiscreteState) -> int:
        """Return where a state begins: among the states, or in the environment."""
        position = self._equations.layout.position[state.system]
        if isinstance(state, ContinuousState):
            return int(self._equations.layout.x_slices[position].start)
        return self._equations.discrete.starts[position][state.index]

    def _add_place(self, path: str, array: str, at: int, size: int) -> None:
        """Note where a value is that can be set; an outer path comes before an equal inner one."""
        self.places.setdefault(path, {"array": array, "at": at, "size": size})


def _labels(place: Place) -> list[str]:
    """Return the labels of components, without a path; empty where there is one without a name."""
    path = place.handle.path
    names = [name.removeprefix(path)[1:-1] for name in place.names]
    return [] if names == [""] else names


def _bound(bound: Any, shape: Sequence[int]) -> list[float | None]:
    """Return one bound for each component; None where there is none."""
    flat = np.broadcast_to(bound, shape).ravel().tolist()
    return [each if np.isfinite(each) else None for each in flat]


def chosen_paths(
    system: System, ways: Way | Sequence[Way] | None, known: Sequence[str], attempt: str, what: str
) -> Sequence[str]:
    """Return the paths of values that are among known ones; all of these when omitted."""
    if ways is None:
        return known
    path_of = Paths(system)
    paths = []
    for way in (each for given in several(ways) for each in members_of(system, given)):
        path = str(way)
        with suppress(UnknownNameError):
            path = path_of.place(find_place(system, way))
        if path not in known:
            remedy = suggestion(path, known)
            raise UnknownNameError(attempt, expected=what, found=f"'{path}'", remedy=remedy)
        paths.append(path)
    return paths
