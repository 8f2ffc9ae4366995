"""The space of a search, numbers between bounds as coordinates from 0 to 1, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from flexure.diagrams.checks.arguments import items_of, require_known, shown
from flexure.diagrams.checks.errors import (
    EvaluationError,
    FlexureError,
    UnknownNameError,
    ValueRefusedError,
)
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.root_contexts import require_root
from flexure.diagrams.contexts.value_places import Place, Way, find_place, path_of, several, untied
from flexure.diagrams.drawing.formats.new_figures import PlottedInPanels
from flexure.diagrams.interface.result_classes import Answer
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.arrays import FloatArray, as_number, show
from flexure.diagrams.values.state import DiscreteState
from flexure.solvers.analysis.equations.equations import can_start

_DECADES = 100.0  # quotient of bounds from which on magnitudes count, and not differences


@dataclass(frozen=True, eq=False)
class _Item:
    """The value at one path, and the coordinates of its components."""

    path: str
    place: Place
    shape: tuple[int, ...]
    coordinates: slice
    leads: bool  # not if it takes the value of another one
    label: str | None  # what results call it; None for all but the first of tied parameters


class SearchResult(Answer, PlottedInPanels):
    """Base of results of searches: the best values by path, which can be set in a context."""

    _result: ClassVar[str]  # what it is called
    values: dict[str, Any]
    system: System

    def __getitem__(self, path: Way) -> Any:
        return self.values[path_of(path)]

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.values]

    def apply(self, context: Context) -> None:
        """Set the values in a context.

        Parameters
        ----------
        context : Context
            A root context of the system. A value that it refuses leaves it as it was.

        Raises
        ------
        ContextError
            When the context is one of another system.
        """
        require_root(context, self.system, f"Cannot apply {self._result}")
        changed = context.clone()
        for path, value in self.values.items():
            changed.set(path, value)
        context.copy_from(changed)


class SearchSpace:
    """The box in which a search looks for numbers of a root context.

    ``bounds`` are the lowest and highest values by path or handle, or by several of them in a
    tuple, which take the same value. ``logarithmic`` names what is searched by its logarithm; with
    None, that is what is positive and spans two decades. If motions begin with the values, as
    ``starts`` says, flexures must fit between their frames.
    """

    def __init__(
        self, context: Context, bounds: Any, logarithmic: Any, attempt: str, *, starts: bool = True
    ) -> None:
        self._attempt = attempt
        if not isinstance(bounds, Mapping) or not bounds:
            raise ValueRefusedError(
                attempt,
                expected="a mapping from paths to bounds, such as {'spring.stiffness': (1.0, 5.0)}",
                found=shown(bounds),
            )
        self._items: list[_Item] = []
        lows, highs = [], []
        names: list[str] = []
        taken: set[tuple[Any, int]] = set()
        for ways, limits in bounds.items():
            start = len(names)
            trials = context.clone(), context.clone()
            given = ways if isinstance(ways, tuple) else (ways,)
            found, labels = [], []
            for way in given:
                members = [self._find(context, each) for each in untied(context, way)]
                named = path_of(way) if len(members) > 1 else members[0][0]
                found += members
                labels += [named, *[None] * (len(members) - 1)]
            for path, place in found:
                low, high = self._limits(trials, path, place, limits)
            if starts:
                self._require_fit(trials, found)
            for number, (path, place) in enumerate(found):
                size, shape = place.components.size, place.shape or ()
                own = {(place.handle, int(k)) for k in place.components}
                if not taken.isdisjoint(own):
                    raise UnknownNameError(
                        f"{attempt} over '{path}'",
                        expected="every number once",
                        found="a repetition",
                    )
                taken |= own
                if number and shape != self._items[-1].shape:
                    raise ValueRefusedError(
                        f"{attempt} over '{path}' with '{self._items[-1].path}'",
                        expected=f"values of one shape, {self._items[-1].shape}",
                        found=f"{shape}",
                    )
                label = labels[number]
                where = slice(start, start + size)
                self._items.append(_Item(path, place, shape, where, number == 0, label))
                if number == 0:
                    one = size == 1 and place.part is not None
                    names += [str(label)] if one else _names(str(label), place)
                    lows.append(low)
                    highs.append(high)
            if len(names) == start:
                raise UnknownNameError(f"{attempt} over ()", expected="a path", found="none")
        self.paths = tuple(item.path for item in self._items)
        self.names = tuple(names)  # one for each coordinate, with the component in brackets
        self.lower, self.upper = np.concatenate(lows), np.concatenate(highs)
        self.logarithmic = self._logarithmic(context, logarithmic)
        logs = self.logarithmic
        self._first = np.where(logs, np.log(np.where(logs, self.lower, 1.0)), self.lower)
        last = np.where(logs, np.log(np.where(logs, self.upper, 1.0)), self.upper)
        self._span = last - self._first

    def __len__(self) -> int:
        return len(self.names)

    def _find(self, context: Context, way: Way) -> tuple[str, Place]:
        """Find what a search can change."""
        path = path_of(way)
        place = find_place(context.system, way, _can_be_searched)
        if not _can_be_searched(place.handle) or not prod(place.shape or ()):
            raise UnknownNameError(
                f"{self._attempt} over '{path}'",
                expected="numbers of a parameter, a state or a free vector input",
                found=f"the {place.handle.what} '{place.handle.full_name}'",
            )
        return path, place.settable

    def _limits(
        self, trials: tuple[Context, Context], path: str, place: Place, limits: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the components, and set each in a context, which may refuse it."""
        here = f"{self._attempt} with bounds of '{path}'"
        pair = items_of(limits, "bounds as (low, high)", here)
        if len(pair) != 2:
            raise ValueRefusedError(here, expected="two, (low, high)", found=shown(limits))
        shape = place.shape or ()
        low, high = (
            np.broadcast_to(as_number(each, shape if np.ndim(each) else (), here), shape)
            .astype(float)
            .ravel()
            for each in pair
        )
        if not (np.isfinite([low, high]).all() and np.all(low < high)):
            raise ValueRefusedError(
                here, expected="finite ones, the lower below the upper", found=shown(limits)
            )
        for trial, each in zip(trials, (low, high), strict=True):
            try:
                place.write(trial, each.reshape(shape))
            except ValueRefusedError as error:
                raise ValueRefusedError(
                    here,
                    expected=f"values that '{path}' may have: {error.expected}",
                    found=error.found,
                ) from None
        return low, high

    def _require_fit(
        self, trials: tuple[Context, Context], found: Iterable[tuple[str, Place]]
    ) -> None:
        """Refuse bounds at which a block begins no motion."""
        for (path, place), trial in product(found, trials):
            value = show(place.read(trial))
            _require_fit(place, trial, f"{self._attempt} with bounds of '{path}' at {value}")

    def _logarithmic(self, context: Context, wish: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which coordinates are logarithms."""
        positive = self.lower > 0.0
        if wish is None:
            return positive & (self.upper >= _DECADES * np.where(positive, self.lower, 1.0))
        chosen = np.zeros(len(self), dtype=bool)
        for way in several(wish):
            path = path_of(way)
            require_known(path, self.paths, f"{self._attempt} with logarithmic='{path}'")
            item = next(item for item in self._items if item.path == path)
            chosen[item.coordinates] = True
            if not positive[item.coordinates].all():
                raise ValueRefusedError(
                    f"{self._attempt} with '{path}' on a logarithmic scale",
                    expected="bounds above 0",
                    found=f"a lower bound of {self.lower[item.coordinates].min():g}",
                )
        return chosen

    def numbers(self, points: FloatArray) -> FloatArray:
        """Return what coordinates stand for, shape (..., n)."""
        scaled = self._first + points * self._span
        values = np.where(self.logarithmic, np.exp(np.where(self.logarithmic, scaled, 0.0)), scaled)
        return np.clip(values, self.lower, self.upper)

    @property
    def spread(self) -> FloatArray:
        """How all numbers, by path and end to end, follow those of the coordinates."""
        rows = np.concatenate([np.arange(len(self))[item.coordinates] for item in self._items])
        return np.asarray(np.eye(len(self))[rows])

    def moved(
        self, context: Context, places: Iterable[Place], coordinate: FloatArray
    ) -> FloatArray:
        """Return how parameters, end to end, move with the numbers of one coordinate."""
        found = []
        for place in places:
            own = np.zeros(np.size(place.read(context)))
            for item in self._items:
                if item.place.handle is place.handle:
                    for column, component in enumerate(item.place.components):
                        own[place.components == component] = coordinate[item.coordinates][column]
            found.append(own)
        return np.concatenate([np.zeros(0), *found])

    def slopes(self, point: FloatArray) -> FloatArray:
        """Return the derivatives of the numbers by their coordinates, shape (n,)."""
        return self._span * np.where(self.logarithmic, self.numbers(point), 1.0)

    def values(self, points: FloatArray) -> dict[str, FloatArray]:
        """Return what each path takes at points of shape (N, n): arrays of shape (N, *shape)."""
        numbers = self.numbers(points)
        return {item.path: _shaped(item, numbers) for item in self._items}

    def labelled(self, numbers: FloatArray) -> dict[str, FloatArray]:
        """Return rows of numbers, shape (N, n), by label: arrays of shape (N, *shape)."""
        return {item.label: _shaped(item, numbers) for item in self._items if item.label}

    def read(self, context: Context, place: Place, points: FloatArray) -> FloatArray:
        """Return a parameter, which may be one that varies, at points: shape (N, *shape)."""
        values = np.repeat(np.reshape(place.read(context), (1, -1)), len(points), axis=0)
        values = values.astype(float)
        numbers = self.numbers(points)
        for item in self._items:
            if item.place.handle is place.handle:
                for column, component in enumerate(item.place.components):
                    where = place.components == component
                    values[:, where] = numbers[:, item.coordinates][:, [column]]
        return values.reshape(len(points), *(place.shape or ()))

    def write(self, context: Context, point: FloatArray) -> None:
        """Set everything in a context, with all checks."""
        for item, values in zip(self._items, self.values(point[np.newaxis]).values(), strict=True):
            item.place.write(context, values[0])

    def position(self, context: Context) -> FloatArray | None:
        """Return the point of a context; None when it is not in the box, or has no values."""
        try:
            read = [np.ravel(item.place.read(context)) for item in self._items if item.leads]
        except EvaluationError:
            return None
        values = np.concatenate(read).astype(float)
        if not np.all((values >= self.lower) & (values <= self.upper)):
            return None
        scaled = np.where(self.logarithmic, np.log(np.where(self.logarithmic, values, 1.0)), values)
        return np.asarray(np.clip((scaled - self._first) / self._span, 0.0, 1.0))

    def refusal(self, context: Context, point: FloatArray) -> str | None:
        """Say why a context refuses a point; None when it does not."""
        try:
            self.write(context.clone(), point)
        except FlexureError as error:
            return str(error)
        return None


def _shaped(item: _Item, numbers: FloatArray) -> FloatArray:
    return numbers[:, item.coordinates].reshape(len(numbers), *item.shape)


def _require_fit(place: Place, context: Context, here: str) -> None:
    """Refuse a bound of a parameter alone at which its block begins no motion."""
    block = place.handle.system
    if place.handle not in (getattr(block, "start_parameters", None) or ()):
        return
    try:
        for leaf in context.leaves():
            if leaf.system is block and block.restricts_starts:
                block.check_start(leaf)
    except EvaluationError as error:
        raise EvaluationError(
            here, expected=error.expected, found=error.found, remedy=error.remedy
        ) from None


def _names(path: str, place: Place) -> list[str]:
    """Return a path for each component."""
    inside = [name.removeprefix(place.handle.path) for name in place.names]
    return [f"{path}{bracket}" for bracket in inside]


def _can_be_searched(handle: Any) -> bool:
    """Return whether a handle is that of a numeric parameter, state or input, or shows a state."""
    return can_start(handle) or isinstance(handle, DiscreteState)
