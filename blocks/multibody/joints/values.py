"""The handle of a quantity of a joint that can be read from a context and written to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flexure.blocks.multibody.joints.checks import as_finite
from flexure.diagrams.values import FloatArray

if TYPE_CHECKING:
    from flexure.blocks.multibody.joints.joint import Joint
    from flexure.diagrams.context import Context

_T = TypeVar("_T")


class JointValue(Generic[_T]):
    """A quantity of a joint in a context, such as its angles, its velocities or its pose.

    Parameters
    ----------
    joint : Joint
        The joint.
    name : str
        Name of the quantity.
    read : callable
        ``read(context) -> value``.
    write : callable
        ``write(context, value)``.
    """

    def __init__(
        self,
        joint: Joint,
        name: str,
        read: Callable[[Context], _T],
        write: Callable[[Context, Any], None],
    ) -> None:
        self.joint = joint
        self.name = name
        self._read = read
        self._write = write

    def get(self, context: Context) -> _T:
        """Return the value in a context, the root's or that of the plant or its tree."""
        return self._read(context)

    __call__ = get

    def set(self, context: Context, value: Any) -> None:
        """Set the value in a context.

        Raises
        ------
        ValueRefusedError
            When size or finiteness are violated; the context is unchanged.
        ContextError
            When a locked joint is to move.
        """
        self._write(context, value)

    def __repr__(self) -> str:
        return f"<JointValue '{self.joint.name}.{self.name}'>"


class JointComponents(JointValue[_T]):
    """One or some components of the positions or velocities of a joint.

    Parameters
    ----------
    whole : JointValue
        The positions or the velocities.
    name : str
        Name of the components.
    part : int or slice
        Which components; a number gives a scalar, a slice a vector.
    """

    def __init__(self, whole: JointValue[FloatArray], name: str, part: int | slice) -> None:
        super().__init__(whole.joint, name, self._get_part, self._set_part)
        self._whole = whole
        self._part = part

    def _get_part(self, context: Context) -> Any:
        return self._whole.get(context)[self._part]

    def _set_part(self, context: Context, value: Any) -> None:
        attempt = f"Cannot set '{self.name}' of joint '{self.joint.name}'"
        whole = self._whole.get(context).copy()
        whole[self._part] = as_finite(value, whole[self._part].shape, attempt)
        self._whole.set(context, whole)
