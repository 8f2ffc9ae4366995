"""Signals: the vector ports and numeric states of a system, or components of them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from flexure.diagrams.context import Context
from flexure.diagrams.errors import UnknownNameError
from flexure.diagrams.handles import Handle
from flexure.diagrams.places import find_place
from flexure.diagrams.ports import InputPort, OutputPort
from flexure.diagrams.state import ContinuousState, DiscreteState
from flexure.diagrams.system import System

#: A port or state: its handle, or its path such as ``"plant.angle"`` or ``"plant.x[0]"``.
Signal: TypeAlias = Handle | str


class Reader(NamedTuple):
    """Where a signal is read.

    Attributes
    ----------
    handle : Handle
        Of the port or state.
    component : int or None
        The only component that is wanted, if any.
    """

    handle: Any
    component: int | None

    @property
    def size(self) -> int:
        """Number of components that are read."""
        return self.handle.size if self.component is None else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what a user gets: no axis for a single component."""
        return () if self.size == 1 else (self.size,)

    def __call__(self, context: Context) -> Any:
        """Return what is read from a root context, always with an axis."""
        value = self.handle(context)
        return value if self.component is None else value[self.component : self.component + 1]


def resolve(system: System, signal: Signal) -> Reader:
    """Return the reader of a signal below a system.

    Raises
    ------
    UnknownNameError
        When there is no such signal; the text lists what there is.
    """
    place = find_place(system, signal)
    handle, component = place.handle, None if place.part is None else int(place.part[0])
    readable = isinstance(handle, (OutputPort, InputPort, ContinuousState, DiscreteState))
    if not readable or getattr(handle, "size", None) is None:
        raise UnknownNameError(
            f"Cannot use '{handle.full_name}' as a signal",
            expected="a vector port or a numeric state",
            found=f"an {handle.what}" if handle.what[0] in "aio" else f"a {handle.what}",
        )
    return Reader(handle, component)


def name_of(signal: Signal) -> str:
    """Return the path of a signal."""
    return signal if isinstance(signal, str) else signal.path


__all__ = ["Reader", "Signal", "name_of", "resolve"]
