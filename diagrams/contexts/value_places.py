"""Places of values: resolves paths such as ``"arm.x[rate]"``, for contexts and solvers.

A path names a parameter, a state or a port, or components of it in brackets: by their numbers, as
in ``"mass.A[1,0]"``, or by their element name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.arguments import items_of
from flexure.diagrams.checks.errors import ContextError, UnknownNameError, quoted, suggestion
from flexure.diagrams.systems.ports import InputPort, OutputPort
from flexure.diagrams.values.arrays import Array, as_number, freeze
from flexure.diagrams.values.handles import Handle, Located
from flexure.diagrams.values.parameters import NumericParameter
from flexure.diagrams.values.state import ContinuousState, DiscreteState
from flexure.diagrams.values.tied_parameters import TiedParameter

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.systems.system import System


#: What leads to a value: a handle, the angle or rate of a joint, or a path.
Way: TypeAlias = Handle | Located | str
#: The types of keys by which mappings name values.
WAYS = (Handle, Located, str)


@dataclass(frozen=True, eq=False)
class Place:
    """Where a value is: all that a handle stands for, or some of its components."""

    handle: Any  # of a parameter, state, port or cache entry
    # Which components, counted in the flattened value; None for all.
    part: npt.NDArray[np.intp] | None
    shape: tuple[int, ...] | None  # shape of the value; None when it is no number or array
    alias: str | None = None  # path of an output that shows these components, or of what led here

    @classmethod
    def of(cls, handle: Handle) -> Place:
        """Return the place of the whole value of a handle."""
        return cls(handle, None, _shape(handle))

    @property
    def components(self) -> npt.NDArray[np.intp]:
        """Which components, counted in the flattened value."""
        return np.arange(math.prod(self.shape or ())) if self.part is None else self.part

    @property
    def names(self) -> list[str]:
        """One path for each component."""
        labels = _labels(self.handle)
        if labels is None:
            return [self.handle.path] * self.components.size
        return [f"{self.handle.path}[{labels[k]}]" for k in self.components]

    @property
    def path(self) -> str:
        """The path from the root diagram."""
        if self.alias is not None:
            return self.alias
        return str(self.handle.path if self.part is None else self.names[0])

    @property
    def settable(self) -> Place:
        """The place that is written to when this one is set.

        It is another one for outputs that show components of a state: that of these components.
        """
        handle = self.handle
        if shows_state(handle):
            origin: Any = handle.origin
            state = origin.system.continuous_state
            shown = np.arange(state.size)[origin.shows]
            return Place(state, shown[self.components], self.shape, alias=self.path)
        if isinstance(handle, InputPort) or hasattr(handle, "set"):
            return self
        group = handle.name.rpartition(".")[0]
        shown = filter(shows_state, handle.system.output_ports)
        near = [each.path for each in shown if each.name.rpartition(".")[0] == group]
        raise ContextError(
            f"Cannot set '{self.path}'",
            expected="a parameter, a state, a free input port, or an output that shows a state",
            found=f"the {handle.what} '{handle.full_name}'",
            remedy=f"These can be set there: {quoted(near)}" if near else "",
        )

    def read(self, context: Context) -> Any:
        """Return the value in a context."""
        is_output = isinstance(self.handle, OutputPort)
        value = self.handle.eval(context) if is_output else self.handle(context)
        if self.part is None:
            return value
        number = np.reshape(np.reshape(value, -1)[self.part], self.shape or ())
        return freeze(number) if self.shape else number[()]

    def write(self, context: Context, value: Any) -> None:
        """Set the value in a context, with all checks; other components stay what they are."""
        write = self.handle.fix if isinstance(self.handle, InputPort) else self.handle.set
        write(context, value if self.part is None else self._whole(context, value))

    def _whole(self, context: Context, value: Any) -> Array:
        """Return the whole value of the handle with other numbers in place of its components."""
        number = as_number(value, self.shape or (), f"Cannot set '{self.path}'")
        array = np.array(self.handle(context), dtype=float)
        array.reshape(-1)[self.part] = np.reshape(number, -1)
        return array


def shows_state(handle: Any) -> bool:
    """Return whether a handle is that of an output that shows components of a state."""
    return isinstance(handle, OutputPort) and handle.origin.shows is not None


def can_be_set(handle: Any) -> bool:
    """Return whether the value of a handle can be set in a context, at least where it is free."""
    return isinstance(handle, InputPort) or hasattr(handle, "set") or shows_state(handle)


def is_signal(handle: Any) -> bool:
    """Return whether a handle is that of a vector port or a numeric state."""
    kinds = (OutputPort, InputPort, ContinuousState, DiscreteState)
    return isinstance(handle, kinds) and getattr(handle, "size", None) is not None


def path_of(way: Way) -> str:
    """Return the path that a value is called by; refuse what is neither a path nor a handle."""
    if isinstance(way, (str, Handle, Located)):
        return way if isinstance(way, str) else way.path
    raise _no_way(way)


def several(ways: Way | Iterable[Way]) -> list[Way]:
    """Return ways as a list, which may be a single one."""
    if isinstance(ways, (Handle, Located, str)):
        return [ways]
    wanted = "paths or handles, one or a list of them"
    return list(items_of(ways, wanted, "Cannot find values"))


def find_place(system: System, way: Way, takes: Callable[[Any], bool] | None = None) -> Place:
    """Return the place of a value by its path below a system, or by its handle.

    ``takes(handle)`` tells which handles the caller can use. Only these are suggested when a path
    leads nowhere; all others are found, too.
    """
    if not isinstance(way, str):
        if isinstance(way, Located):
            place: Place = way.place
            return place
        if isinstance(way, Handle):
            return Place.of(way)
        raise _no_way(way)
    try:
        return Place.of(system.find(way, takes))
    except UnknownNameError:
        if "[" not in way or not way.endswith("]"):
            raise
    handle, label = _split(system, way, takes)
    return Place(handle, np.array([_component(handle, label, way)]), ())


def tied_at(system: System, way: Way) -> TiedParameter | None:
    """Return the tied parameter at a path or handle; None for anything else."""
    handle: Any = way
    if isinstance(way, str):
        with suppress(UnknownNameError):
            handle = system.find(way)
    return handle if isinstance(handle, TiedParameter) else None


def members_of(system: System, way: Way) -> list[Way]:
    """Return the parameters that a path or handle ties together; else what is given."""
    tied = tied_at(system, way)
    return [way] if tied is None else list(tied.members)


def untied(context: Context, way: Way) -> list[Way]:
    """Return the parameters that a path or handle ties, which must be equal; else itself."""
    tied = tied_at(context.system, way)
    if tied is not None:
        tied(context)
    return members_of(context.system, way)


def _split(system: System, way: str, takes: Callable[[Any], bool] | None) -> tuple[Any, str]:
    """Return the handle before the brackets at the end of a path, and what is in them."""
    # Names have brackets, too: that of a block, or of an element as in ``"pid.x[integral[0]]"``.
    whole, _, label = way[:-1].rpartition("[")
    try:
        return system.find(whole, takes), label
    except UnknownNameError:
        outer, bracket, inner = whole.rpartition("[")
        if not bracket or not label.endswith("]"):
            raise
        return system.find(outer, takes), f"{inner}[{label}"


def _no_way(thing: object) -> UnknownNameError:
    """Refuse what is neither a path nor a handle."""
    handles = () if isinstance(thing, type) else getattr(thing, "handles", ())
    items = [handle.name for handle in handles]
    return UnknownNameError(
        f"Cannot find a value by {thing!r:.200}",
        expected="a path, or the handle of a parameter, a state or a port",
        found=type(thing).__name__,
        remedy=f"Name one of its items: {quoted(items)}" if items else None,
    )


def _component(handle: Any, label: str, path: str) -> int:
    """Return the position in the flattened value of a component given by name or indices."""
    names, shape = getattr(handle, "element_names", None) or (), _shape(handle)
    if label in names:
        return int(names.index(label))
    indices = label.replace(" ", "").split(",")
    if shape and len(indices) == len(shape) and all(map(str.isdecimal, indices)):
        found = tuple(map(int, indices))
        if all(index < size for index, size in zip(found, shape, strict=True)):
            return int(np.ravel_multi_index(found, shape))
    whole = path[: -len(f"[{label}]")]
    raise UnknownNameError(
        f"Cannot find '{path}'",
        expected=_indices(shape),
        found=repr(label),
        remedy=suggestion(path, [f"{whole}[{name}]" for name in names]) if names else None,
    )


def _indices(shape: tuple[int, ...] | None) -> str:
    """Describe which indices there are."""
    if not shape:
        return "a path without brackets, as the value has no components"
    if len(shape) == 1:
        return f"a component 0 to {shape[0] - 1}" if shape[0] else "no component, as there is none"
    return f"indices into an array of shape {shape}"


def _shape(handle: Any) -> tuple[int, ...] | None:
    """Return the shape of the value of a handle; None when it is no number or array."""
    if isinstance(handle, (NumericParameter, TiedParameter)):
        return handle.shape
    size = getattr(handle, "size", None)
    return None if size is None else (size,)


def _labels(handle: Any) -> list[str] | None:
    """Return the labels of the components in brackets; None for a single one without label."""
    names, shape = getattr(handle, "element_names", None), _shape(handle) or ()
    if names is not None:
        return list(names)
    if math.prod(shape) == 1:
        return None
    return [", ".join(map(str, index)) for index in np.ndindex(shape)]
