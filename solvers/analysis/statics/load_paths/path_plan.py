"""The plan of a load path: the inputs, parameters and strokes to vary, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place, Way, find_place, path_of
from flexure.diagrams.systems.ports import OutputPort
from flexure.diagrams.values.arrays import FloatArray, as_numbers, check_bounds
from flexure.solvers.analysis.equations.equations import (
    LARGEST,
    Variable,
    can_vary,
    carries_vector,
    find_variables,
)
from flexure.solvers.analysis.forces_at_rest.curve_points import Leg

_STRAIGHT = 1e-9  # part of the way by which stations may be off one line


@dataclass(frozen=True, eq=False)
class PathPlan:
    """Values through which a path is to go."""

    # What is varied: inputs and parameters first, then outputs that are held.
    places: tuple[Place, ...]
    variables: list[Variable]  # the inputs and parameters
    held: tuple[Place, ...]  # the outputs
    stations: FloatArray  # the values of all components at the stations, shape (K, m)

    def legs(self) -> Iterator[tuple[Leg, FloatArray, FloatArray]]:
        """Yield the parts of the way that are straight, with λ and values at its stations."""
        first = 0
        while first < len(self.stations) - 1:
            last, rest = first + 1, self.stations[first:] - self.stations[first]
            while last < len(self.stations) - 1 and _is_ahead(rest[: last - first + 2]):
                last += 1
            way = self.stations[last] - self.stations[first]
            marks = rest[: last - first + 1] @ way / (way @ way)
            marks[-1] = 1.0
            ends, count = self.stations[[first, last]], self.num_variables
            yield Leg(ends[:, :count], ends[:, count:]), marks, self.stations[first : last + 1]
            first = last

    @property
    def num_variables(self) -> int:
        """Number of components of inputs and parameters."""
        return sum(len(variable.keys) for variable in self.variables)

    def write_first(self, context: Context) -> None:
        """Set inputs and parameters to their first values."""
        for place, rows in zip(self.places, self.values_of(self.stations).values(), strict=True):
            if place not in self.held:
                place.write(context, rows[0].reshape(place.shape or ()))

    def values_of(self, rows: FloatArray) -> dict[str, FloatArray]:
        """Return the values of all components as those of what is varied, by path."""
        return _parted(self.places, rows)

    def required_of(self, rows: FloatArray) -> dict[str, FloatArray]:
        """Return the forces of all holders, by the path of what they hold."""
        return _parted(self.held, rows)


def _parted(places: tuple[Place, ...], rows: FloatArray) -> dict[str, FloatArray]:
    """Return columns as arrays of the shape of each place, by path."""
    found, start = {}, 0
    for place in places:
        end = start + place.components.size
        shape = place.shape if place.components.size > 1 else ()
        found[place.path] = rows[:, start:end].reshape(len(rows), *(shape or ()))
        start = end
    return found


def path_plan(context: Context, along: Mapping[Any, Any], attempt: str) -> PathPlan:
    """Find what is to be varied, and check all values."""
    wanted = "a dictionary of inputs, parameters or strokes with their values"
    is_mapping: object = isinstance(along, Mapping)
    require(is_mapping and len(along) > 0, along, attempt, wanted)
    loads: list[tuple[Way, Place, Any]] = []
    strokes: list[tuple[Way, Place, Any]] = []
    for way, values in along.items():
        place = replace(find_place(context.system, way, _can_lead), alias=path_of(way))
        if can_vary(place.handle):
            loads.append((way, place, values))
        elif isinstance(place.handle, OutputPort) and carries_vector(place.handle):
            strokes.append((way, place, values))
        else:
            raise UnknownNameError(
                f"{attempt} along '{place.path}'",
                expected="a numeric parameter, a free vector input, or an output such as the angle "
                "of a joint or the position of a body",
                found=f"the {place.handle.what} '{place.handle.full_name}'",
            )
    variables = find_variables(context, [way for way, _, _ in loads], attempt)
    places = [place for _, place, _ in (*loads, *strokes)]
    columns = [
        _stations(context, place, values, attempt) for _, place, values in (*loads, *strokes)
    ]
    counts = {place.path: len(column) for place, column in zip(places, columns, strict=True)}
    if len(set(counts.values())) > 1:
        raise ValueRefusedError(
            attempt,
            expected="as many values of each, or the last value of each",
            found=", ".join(f"{count} of '{name}'" for name, count in counts.items()),
        )
    for place, column in zip(places[: len(loads)], columns, strict=False):
        twin = context.clone()
        for row in column:
            place.write(twin, row.reshape(place.shape or ()))
    stations = np.hstack(columns)
    stands = np.flatnonzero(np.all(stations[1:] == stations[:-1], axis=1))
    require(not stands.size, along, attempt, "values that change from each station to the next")
    return PathPlan(tuple(places), variables, tuple(places[len(loads) :]), stations)


def _can_lead(handle: Any) -> bool:
    return can_vary(handle) or (isinstance(handle, OutputPort) and carries_vector(handle))


def _stations(context: Context, place: Place, values: Any, attempt: str) -> FloatArray:
    """Return the values of the components of one place at all stations."""
    attempt = f"{attempt} along '{place.path}'"
    numbers = as_numbers(values, attempt)
    check_bounds(numbers, attempt)
    check_bounds(numbers, attempt, lower=-LARGEST, upper=LARGEST)
    size = place.components.size
    shape = place.shape if size > 1 else ()
    if numbers.shape == (shape or ()):
        present = np.array(place.read(context), dtype=float)
        return np.stack([present.reshape(size), numbers.reshape(size)])
    fits = numbers.shape[1:] == (shape or ()) and len(numbers) > 1
    kind = "a number" if size == 1 else f"an array of shape {shape}"
    require(fits, values, attempt, f"{kind} to go to, or two or more of them to go through")
    return numbers.reshape(len(numbers), size)


def _is_ahead(rows: FloatArray) -> bool:
    """Return whether the last of several rows continues a straight way from the first, zero."""
    way = rows[-1]
    length = way @ way
    if length == 0.0:
        return False
    marks = rows @ way / length
    off = np.max(np.abs(rows - np.outer(marks, way)))
    return bool(off <= _STRAIGHT * np.max(np.abs(way)) and np.all(np.diff(marks) > 0.0))
