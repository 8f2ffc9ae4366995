"""Signals: the vector ports and numeric states of a system, or components of them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from flexure.diagrams.building.known_units import known_units
from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Way, find_place, is_signal
from flexure.diagrams.systems.system import System
from flexure.diagrams.values.parameters import NumericParameter

#: A port or state: its handle, that of a joint's coordinate, or a path like ``"plant.x[0]"``.
Signal: TypeAlias = Way


class Reader(NamedTuple):
    """Where a signal is read."""

    handle: Any  # of the port or state
    part: tuple[int, ...] | None  # the components that are wanted; None for all

    @property
    def size(self) -> int:
        """Number of components that are read."""
        return self.handle.size if self.part is None else len(self.part)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what a user gets: no axis for a single component."""
        return () if self.size == 1 else (self.size,)

    @property
    def unit(self) -> str:
        """Unit of all components, declared or following from wires; empty when it is unknown."""
        return getattr(self.handle, "unit", "") or known_units(self.handle.system).unit(*self)

    @property
    def doc(self) -> str:
        """A description in one line; empty when there is none."""
        return getattr(self.handle, "doc", "")

    @property
    def labels(self) -> list[Any]:
        """Names of the components that are read, or their numbers."""
        names = getattr(self.handle, "element_names", None) or range(self.handle.size)
        return list(names) if self.part is None else [names[k] for k in self.part]

    def __call__(self, context: Context) -> Any:
        """Return what is read from a root context, always with an axis."""
        value = self.handle(context)
        return value if self.part is None else value[list(self.part)]


def resolve(system: System, signal: Signal) -> Reader:
    """Return the reader of a signal below a system."""
    place = find_place(system, signal, is_signal)
    handle = place.handle
    if not is_signal(handle):
        raise UnknownNameError(
            f"Cannot use '{handle.full_name}' as a signal",
            expected="a vector port or a numeric state",
            found=f"an {handle.what}" if handle.what[0] in "aio" else f"a {handle.what}",
        )
    return Reader(handle, None if place.part is None else tuple(place.part.tolist()))


def can_be_read(handle: Any) -> bool:
    """Return whether metrics can read a handle: as a signal, or as a constant."""
    return is_signal(handle) or isinstance(handle, NumericParameter)
