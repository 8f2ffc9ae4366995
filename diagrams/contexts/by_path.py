"""Tables of results by path, which accept every path and handle that the system accepts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from flexure.diagrams.checks.errors import UnknownNameError, suggestion
from flexure.diagrams.contexts.value_places import Place, find_place, path_of
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.tied_parameters import TiedParameter

_Value = TypeVar("_Value")


class ByPath(dict[str, _Value]):
    """A dictionary by path in which handles and other names of the same place lead there, too.

    ``what`` says in messages what is looked for.
    """

    def __init__(self, system: System, entries: Mapping[str, _Value], what: str) -> None:
        super().__init__(entries)
        self._system, self._what = system, what

    def __getitem__(self, way: Any) -> _Value:
        return super().__getitem__(way) if isinstance(way, str) else self.__missing__(way)

    def __missing__(self, way: Any) -> _Value:
        path = self._path(way)
        if path is None:
            name = path_of(way)
            raise UnknownNameError(
                f"Cannot find '{name}' among {self._what}", remedy=suggestion(name, self)
            )
        return super().__getitem__(path)

    def __contains__(self, way: object) -> bool:
        return self._path(way) is not None

    def get(self, way: Any, default: Any = None) -> Any:
        """Return an entry, or else the default."""
        with suppress(UnknownNameError):
            return self[way]
        return default

    def _path(self, way: Any) -> str | None:
        """Return the path of an entry that has another name; None where there is none."""
        with suppress(UnknownNameError):
            name = path_of(way)
            if super().__contains__(name):
                return name
            wanted = find_place(self._system, way)
            if isinstance(wanted.handle, TiedParameter):  # entries are those of its members
                wanted = Place.of(wanted.handle.members[0])
            return next((path for path in self if self._is_at(path, wanted)), None)
        return None

    def _is_at(self, path: str, wanted: Place) -> bool:
        """Return whether a path leads to a place: a parameter can have several names."""
        with suppress(UnknownNameError):
            found = find_place(self._system, path)
            alike = np.array_equal(found.components, wanted.components)
            return wanted.handle in getattr(found.handle, "members", (found.handle,)) and alike
        return False
