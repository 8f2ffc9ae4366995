"""How the two frames of a force element are moved against each other, to look at it alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    cross,
    invert_transform,
    relative_pose,
    rotate_spatial,
    rotation_from_rpy,
    rpy_from_rotation,
    rpy_velocity_matrix,
    shift_spatial_velocity,
)
from flexure.blocks.multibody.bodies.body_motion import POSE_SIZE, pose_on_wire
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement
from flexure.diagrams import LeafSystem
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.values.arrays import Array, FloatArray

Calculation = Callable[[Any], Array]
_AT_REST = RigidTransform(np.eye(3), np.zeros(3))


class Coordinates(ABC):
    """Coordinates of a frame C against a frame A."""

    # names, units: of each coordinate; "rad" where it turns.
    names: tuple[str, ...]
    units: tuple[str, ...]

    @abstractmethod
    def pose(self, q: Array) -> RigidTransform:
        """Return the pose of C in A."""

    @abstractmethod
    def directions(self, q: Array) -> list[Array]:
        """Return for each coordinate the velocity of C in A, at Co and expressed in A, per rate."""

    @abstractmethod
    def of(self, element: Any, context: Context) -> FloatArray:
        """Return the coordinates of an element in a context."""

    @abstractmethod
    def unstressed(self, element: Any, context: Context) -> FloatArray:
        """Return the coordinates of an element without load, or zeros."""


class SixCoordinates(Coordinates):
    """Roll, pitch and yaw of C in A, and the position of Co from Ao expressed in A."""

    names = ("roll", "pitch", "yaw", "x", "y", "z")
    units = ("rad", "rad", "rad", "m", "m", "m")

    def pose(self, q: Array) -> RigidTransform:
        """Return the pose of C in A."""
        return RigidTransform(rotation_from_rpy(q[:3]), q[3:])

    def directions(self, q: Array) -> list[Array]:
        """Return the velocity of C in A for each coordinate."""
        turning = rpy_velocity_matrix(q[:3])
        return [*(np.concatenate([turning[:, k], np.zeros(3)]) for k in range(3)), *np.eye(6)[3:]]

    def of(self, element: Any, context: Context) -> FloatArray:
        """Return the coordinates of the last frame against the first."""
        first, last = element.attachments[0], element.attachments[-1]
        at_first = _AT_REST if first is last else first.pose_of_frame(context)
        return _coordinates_at(relative_pose(at_first, last.pose_of_frame(context)))

    def unstressed(self, element: Any, context: Context) -> FloatArray:
        """Return the coordinates of the last frame against the first without load, or zeros."""
        return _coordinates_at(element.unstressed_frames() or _AT_REST)


def _coordinates_at(X_AC: RigidTransform) -> FloatArray:
    """Return roll, pitch, yaw and position of a pose."""
    return np.concatenate([rpy_from_rotation(X_AC.R), X_AC.p])


class LengthCoordinate(Coordinates):
    """The length between the points P on A and Q on C, which are moved apart along x.

    ``offset`` is the position of P in A, less that of Q in C.
    """

    names = ("length",)
    units = ("m",)

    def __init__(self, offset: FloatArray) -> None:
        self._offset = offset

    def pose(self, q: Array) -> RigidTransform:
        """Return the pose of C in A."""
        return RigidTransform(np.eye(3), self._offset + q[0] * np.eye(3)[0])

    def directions(self, q: Array) -> list[Array]:
        """Return the velocity of C in A along x."""
        return [np.eye(6)[3]]

    def of(self, element: Any, context: Context) -> FloatArray:
        """Return the length of the element."""
        return np.asarray(element.length.eval(context))

    def unstressed(self, element: Any, context: Context) -> FloatArray:
        """Return the free length."""
        return np.array([float(element.free_length.get(context))])


def coordinates_of(element: Any, context: Context) -> Coordinates:
    """Return the coordinates along which one looks at an element."""
    if element.moves_along_line:
        return LengthCoordinate(element.p_AP.get(context) - element.p_BQ.get(context))
    return SixCoordinates()


class Motion(LeafSystem):
    """Turns coordinates and rates into the motion of the bodies of a force element.

    One body moves, the last one unless it is the world; everything else is at rest. The outputs
    have the names of the inputs of the element; ``directions`` are the spatial velocities of the
    moving body at its origin, in the world, for a rate of one along each coordinate.
    """

    def __init__(self, name: str, element: BodyForceElement, coordinates: Coordinates) -> None:
        super().__init__(name)
        self._coordinates = coordinates
        ends = element.attachments
        self._first, self._last = ends[0], ends[-1]
        default = element.create_default_context()
        self._places = {end.label: end.X_BF(default) for end in ends}
        count = len(coordinates.names)
        self.position = self.declare_vector_input("position", count)
        self.velocity = self.declare_vector_input("velocity", count)
        self.moving = self._first if self._last.pose is None else self._last
        for end in ends:
            if end.pose is None or end.velocity is None:
                continue
            pose: Calculation = self._calc_pose
            velocity: Calculation = self._calc_velocity
            if end is not self.moving:
                still = pose_on_wire(invert_transform(self._places[end.label]))
                pose = partial(_constant, np.concatenate([np.ravel(part) for part in still]))
                velocity = partial(_constant, np.zeros(6))
            self.declare_vector_output(end.pose.name, POSE_SIZE, pose)
            self.declare_vector_output(end.velocity.name, 6, velocity)
        self.declare_vector_output("directions", 6 * count, self._calc_directions)

    def _base(self) -> RigidTransform:
        """Return the pose of the frame that does not move, or that of the world."""
        end = self._first if self.moving is self._last else self._last
        return self._places[end.label] if end.pose is None else _AT_REST

    def _frame_pose(self, context: Any) -> RigidTransform:
        """Return the pose of the moving frame in the world."""
        X_AC = self._coordinates.pose(self.position(context))
        if self.moving is self._last:
            return compose_transforms(self._base(), X_AC)
        return compose_transforms(self._base(), invert_transform(X_AC))

    def _body_pose(self, context: Any) -> RigidTransform:
        X_BF = self._places[self.moving.label]
        return compose_transforms(self._frame_pose(context), invert_transform(X_BF))

    def _calc_pose(self, context: Any) -> Array:
        return np.concatenate([np.ravel(part) for part in pose_on_wire(self._body_pose(context))])

    def _columns(self, context: Any) -> list[Array]:
        """Return the velocity of the moving body for each coordinate."""
        q = self.position(context)
        X_WF, X_WB = self._frame_pose(context), self._body_pose(context)
        found = []
        for V_AC in self._coordinates.directions(q):
            if self.moving is self._last:
                V_WF = rotate_spatial(self._base().R, V_AC)
            else:  # A moves, and C is at rest
                w = -V_AC[:3]
                v = -V_AC[3:] - cross(w, self._coordinates.pose(q).p)
                V_WF = rotate_spatial(X_WF.R, np.concatenate([w, v]))
            found.append(shift_spatial_velocity(V_WF, X_WB.p - X_WF.p))
        return found

    def _calc_velocity(self, context: Any) -> Array:
        rates = self.velocity(context)
        return sum(rates[k] * column for k, column in enumerate(self._columns(context)))

    def _calc_directions(self, context: Any) -> Array:
        return np.concatenate(self._columns(context))


def _constant(value: FloatArray, context: Any) -> FloatArray:
    return value


class Projection(LeafSystem):
    """The force along each coordinate: the power of a spatial force at a rate of one."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name)
        self._count = count
        self.force = self.declare_vector_input("force", 6)
        self.directions = self.declare_vector_input("directions", 6 * count)
        self.along = self.declare_vector_output("along", count, self._calc_along)

    def _calc_along(self, context: Any) -> Array:
        directions = self.directions(context).reshape(self._count, 6)
        return np.matmul(directions, self.force(context))
