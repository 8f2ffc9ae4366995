"""Signals: the vector ports and numeric states of a system, or components of them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from flexure.diagrams.context import Context
from flexure.diagrams.errors import UnknownNameError
from flexure.diagrams.handles import Handle
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
    if isinstance(signal, Handle):
        handle, component = signal, None
    else:
        handle, component = _find(system, signal)
    readable = isinstance(handle, (OutputPort, InputPort, ContinuousState, DiscreteState))
    if not readable or getattr(handle, "size", None) is None:
        raise UnknownNameError(
            f"Cannot use '{handle.full_name}' as a signal",
            expected="a vector port or a numeric state",
            found=f"an {handle.what}" if handle.what[0] in "aio" else f"a {handle.what}",
        )
    return Reader(handle, component)


def _find(system: System, path: str) -> tuple[Any, int | None]:
    """Return the handle that a path names, and the component in brackets, if any."""
    whole, bracket, label = path.partition("[")
    try:
        return system.find(path), None
    except UnknownNameError:
        if not bracket or not label.endswith("]"):
            raise
    handle = system.find(whole)
    return handle, _component(handle, label[:-1], path)


def _component(handle: Any, label: str, path: str) -> int:
    """Return the index of a component given by number or element name."""
    names = getattr(handle, "element_names", None) or ()
    size = getattr(handle, "size", None) or 0
    if label in names:
        return int(names.index(label))
    if label.isdigit() and int(label) < size:
        return int(label)
    raise UnknownNameError(
        f"Cannot use '{path}' as a signal",
        expected=f"a component 0 to {size - 1}" + (f" or one of {names}" if names else ""),
        found=repr(label),
    )


__all__ = ["Reader", "Signal", "resolve"]
