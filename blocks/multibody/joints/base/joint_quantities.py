"""The handle of a quantity of a joint that can be read from a context and written to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from flexure.diagrams.checks.errors import UnknownNameError
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray, as_finite
from flexure.diagrams.values.handles import Located

if TYPE_CHECKING:
    from flexure.blocks.multibody.joints.base.joint import Joint
    from flexure.diagrams.contexts.context import Context

_T = TypeVar("_T")


class JointValue(Located, Generic[_T]):
    """A quantity of a joint in a context, such as its angles, its velocities or its pose.

    Positions and velocities, and components of them, serve wherever a path does: as signals, in
    sweeps and batches, as outputs of linear models. They are what the plant shows in outputs such
    as ``axis.angle``: with ``port`` 0 those of the positions, with 1 of the velocities.
    """

    def __init__(
        self,
        joint: Joint,
        name: str,
        read: Callable[[Context], _T],
        write: Callable[[Context, Any], None],
        port: int | None = None,
    ) -> None:
        self.joint = joint
        self.name = name
        self._read = read
        self._write = write
        self._port = port

    @property
    def place(self) -> Place:
        """The output of the plant that shows it; none shows a pose."""
        joint = self.joint
        if self._port is None or not joint.num_velocities:
            raise UnknownNameError(
                f"Cannot use {self!r} in place of a path",
                expected="positions or velocities of a joint that moves, or components of them",
                found=f"the {self.name} of a {joint.type_name} joint",
                remedy=f"Call {joint.name}.{self.name}.get(context) where a single value is enough",
            )
        name = f"{joint.name}.{joint.PORT_NAMES[self._port]}"
        return Place.of(joint.parent_plant.output_port(name))

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

    A number as ``part`` gives a scalar, a slice a vector.
    """

    def __init__(self, whole: JointValue[FloatArray], name: str, part: int | slice) -> None:
        super().__init__(whole.joint, name, self._get_part, self._set_part)
        self._whole = whole
        self._part = part

    @property
    def place(self) -> Place:
        """Where the components are in an output of the plant."""
        whole = self._whole.place
        part = np.asarray(whole.components[self._part])
        if part.size == whole.components.size:
            return whole
        alias = None if part.size == 1 else f"{whole.path.rpartition('.')[0]}.{self.name}"
        return Place(whole.handle, np.atleast_1d(part), part.shape, alias=alias)

    def _get_part(self, context: Context) -> Any:
        return self._whole.get(context)[self._part]

    def _set_part(self, context: Context, value: Any) -> None:
        attempt = f"Cannot set '{self.name}' of joint '{self.joint.name}'"
        whole = self._whole.get(context).copy()
        whole[self._part] = as_finite(value, whole[self._part].shape, attempt)
        self._whole.set(context, whole)


class Position(property, Generic[_T]):
    """A property of a joint: the handle of some of its positions, as of `JointComponents`."""

    def __init__(self, part: int | slice, doc: str) -> None:
        def read(joint: Joint) -> JointComponents[_T]:
            return JointComponents(self._whole(joint), self._name, part)

        read.__doc__ = doc
        super().__init__(read)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _whole(self, joint: Joint) -> JointValue[FloatArray]:
        return joint.positions

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]
            self, joint: Any, owner: type | None = None
        ) -> JointComponents[_T]: ...


class Velocity(Position[_T]):
    """A property of a joint: the handle of some of its velocities."""

    def _whole(self, joint: Joint) -> JointValue[FloatArray]:
        return joint.velocities


class Default(property, Generic[_T]):
    """A property of a joint: some of its default positions, as of `JointComponents`."""

    def __init__(self, part: int | slice, what: str) -> None:
        one = isinstance(part, int)
        place = slice(part, part + 1) if isinstance(part, int) else part

        def read(joint: Joint) -> Any:
            return float(joint.default_positions[part]) if one else joint.default_positions[part]

        def write(joint: Joint, values: npt.ArrayLike) -> None:
            joint._replace_default(place, values)

        read.__doc__ = f"{what} in new contexts, which can be set until the plant is built."
        super().__init__(read, write)

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]
            self, joint: Any, owner: type | None = None
        ) -> _T: ...
        def __set__(self, joint: Any, values: npt.ArrayLike) -> None: ...
