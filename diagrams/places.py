"""Places of values: what a path such as ``"arm.x[rate]"`` leads to, for contexts and solvers alike.

A path names a parameter, a state or a port, or components of it in brackets: by their numbers, as
in ``"mass.A[1,0]"``, or by their element name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flexure.diagrams.arguments import require
from flexure.diagrams.errors import ContextError, UnknownNameError, suggestion
from flexure.diagrams.handles import Handle
from flexure.diagrams.parameters import NumericParameter
from flexure.diagrams.ports import InputPort, OutputPort
from flexure.diagrams.values import Array, as_number, freeze

if TYPE_CHECKING:
    from flexure.diagrams.context import Context
    from flexure.diagrams.system import System


@dataclass(frozen=True, eq=False)
class Place:
    """Where a value is: all that a handle stands for, or some of its components.

    Attributes
    ----------
    handle : Handle
        Of a parameter, state, port or cache entry.
    part : ndarray of int or None
        Which components, counted in the flattened value; None for all.
    shape : tuple of int or None
        Shape of the value; None when it is no number or array.
    alias : str or None
        Path of an output that shows these components, if that led here.
    """

    handle: Any
    part: npt.NDArray[np.intp] | None
    shape: tuple[int, ...] | None
    alias: str | None = None

    @classmethod
    def of(cls, handle: Handle) -> Place:
        """Return the place of the whole value of a handle."""
        require(
            isinstance(handle, Handle),
            handle,
            "Cannot find a value",
            "a path such as 'door.hinge.spring_constant', or a handle",
            error=UnknownNameError,
        )
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

        Raises
        ------
        ContextError
            When the value is computed.
        """
        handle = self.handle
        if isinstance(handle, OutputPort) and handle.origin.shows is not None:
            origin: Any = handle.origin
            state = origin.system.continuous_state
            shown = np.arange(state.size)[origin.shows]
            return Place(state, shown[self.components], self.shape, alias=self.path)
        if isinstance(handle, InputPort) or hasattr(handle, "set"):
            return self
        raise ContextError(
            f"Cannot set '{self.path}'",
            expected="a parameter, a state, a free input port, or an output that shows a state",
            found=f"the {handle.what} '{handle.full_name}'",
        )

    def read(self, context: Context) -> Any:
        """Return the value in a context."""
        value = self.handle(context)
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


def find_place(system: System, path: Handle | str) -> Place:
    """Return the place of a value by its path below a system, or by its handle.

    Raises
    ------
    UnknownNameError
        When there is none; the text lists the valid names.
    """
    if not isinstance(path, str):
        return Place.of(path)
    whole, bracket, label = path.rpartition("[")
    try:
        return Place.of(system.find(path))
    except UnknownNameError:
        if not bracket or not label.endswith("]"):
            raise
    handle = system.find(whole)
    return Place(handle, np.array([_component(handle, label[:-1], path)]), ())


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
    whole = path.rpartition("[")[0]
    raise UnknownNameError(
        f"Cannot find '{path}'",
        expected=_indices(shape),
        found=repr(label),
        remedy=suggestion(path, [f"{whole}[{name}]" for name in names]) if names else None,
    )


def _indices(shape: tuple[int, ...] | None) -> str:
    """Say which indices there are."""
    if not shape:
        return "a path without brackets, as the value has no components"
    if len(shape) == 1:
        return f"a component 0 to {shape[0] - 1}" if shape[0] else "no component, as there is none"
    return f"indices into an array of shape {shape}"


def _shape(handle: Any) -> tuple[int, ...] | None:
    """Return the shape of the value of a handle; None when it is no number or array."""
    if isinstance(handle, NumericParameter):
        return handle.shape
    size = getattr(handle, "size", None)
    return None if size is None else (size,)


def _labels(handle: Any) -> list[str] | None:
    """Return the labels of the components in brackets; None when there is a single one without."""
    names, shape = getattr(handle, "element_names", None), _shape(handle) or ()
    if names is not None:
        return list(names)
    if math.prod(shape) == 1:
        return None
    return [", ".join(map(str, index)) for index in np.ndindex(shape)]


__all__ = ["Place", "find_place"]
