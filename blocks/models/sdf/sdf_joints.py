"""Joints of SDF files with what acts on them, and frames, whose poses are given in other frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    relative_pose,
    rotation_from_quaternion,
    rotation_from_rpy,
)
from flexure.blocks.models.reading.links import (
    BOUNDLESS,
    add_friction,
    add_spring,
    new_joint,
    set_limits,
)
from flexure.blocks.models.reading.xml_elements import TRUE, Element, LeftOut
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.errors import UnknownNameError, quoted, suggestion

_IDENTITY = RigidTransform(np.eye(3), np.zeros(3))


@dataclass
class _Place:
    """Where a frame is: a pose in another frame, and the frame that it is fixed on."""

    element: Element
    pose: RigidTransform
    relative_to: str
    attached_to: str


class FrameGraph:
    """All frames of a file by their full names, with ``::`` between the parts."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._poses: dict[str, RigidTransform] = {"world": _IDENTITY}
        self._bodies: dict[str, str] = {"world": "world"}

    def add(
        self, name: str, element: Element, *, scope: str, default: str, attached_to: str
    ) -> None:
        """Add a frame with the pose of an element, which may have one.

        ``scope`` is the model in which names are looked up, with ``::`` at the end, or nothing;
        ``default`` the frame for a pose that names none; ``attached_to`` the frame that it is fixed
        on, which for a link is itself. All names but those in the element are full.
        """
        if name in self._places or name == "world":
            raise element.refusal(
                expected="a name that no other frame has", found=repr(name.rpartition("::")[2])
            )
        pose = element.child("pose")
        given = "" if pose is None else pose.text_or("relative_to", "")
        relative_to = scoped(given, scope) if given else default
        self._places[name] = _Place(element, pose_inside(pose), relative_to, attached_to)

    def pose(self, name: str, asked_by: Element) -> RigidTransform:
        """Return the pose of a frame in the world of the file."""
        chain: list[str] = []
        while name not in self._poses:
            place = self._place(name, chain, asked_by)
            chain.append(name)
            name, asked_by = place.relative_to, place.element
        X = self._poses[name]
        for each in reversed(chain):
            X = self._poses[each] = compose_transforms(X, self._places[each].pose)
        return X

    def body(self, name: str, asked_by: Element) -> str:
        """Return the full name of the link that a frame is fixed on."""
        chain: list[str] = []
        while name not in self._bodies:
            place = self._place(name, chain, asked_by)
            chain.append(name)
            if place.attached_to == name:
                self._bodies[name] = name
            name, asked_by = place.attached_to, place.element
        found = self._bodies[name]
        for each in chain:
            self._bodies[each] = found
        return found

    def on_body(self, name: str, asked_by: Element) -> RigidTransform:
        """Return the pose of a frame in the link that it is fixed on."""
        body = self.body(name, asked_by)
        return relative_pose(self.pose(body, asked_by), self.pose(name, asked_by))

    def _place(self, name: str, chain: list[str], asked_by: Element) -> _Place:
        if name not in self._places:
            raise UnknownNameError(
                f"Cannot load {asked_by}",
                expected="the name of a frame that exists",
                found=repr(name),
                remedy=suggestion(name, self._places),
            )
        if name in chain:
            raise asked_by.refusal(
                expected="frames that do not rest on each other in a circle",
                found=" -> ".join([*chain[chain.index(name) :], name]),
            )
        return self._places[name]


def scoped(name: str, scope: str) -> str:
    """Return the full name of what a model calls so."""
    if name == "world":
        return name
    return scope.removesuffix("::") if name == "__model__" else scope + name


def pose_in_link(part: Element) -> RigidTransform:
    """Return the pose of a part of a link, which is given in the link."""
    pose = part.child("pose")
    if pose is not None and pose.text_or("relative_to", ""):
        raise pose.refusal(expected="a pose in the link", found="relative_to")
    return pose_inside(pose)


def pose_inside(pose: Element | None) -> RigidTransform:
    """Return the pose that an element contains, the identity where there is none."""
    if pose is None:
        return _IDENTITY
    known = ["relative_to", "degrees", "rotation_format"]
    if not pose.text_or("frame", ""):  # which older files have, and leave empty
        known.append("frame")
    pose.refuse_other_attributes(*known)
    form = pose.text_or("rotation_format", "euler_rpy")
    scale = np.pi / 180.0 if pose.text_or("degrees", "false") in TRUE else 1.0
    if not pose.content:
        return _IDENTITY
    if form == "quat_xyzw":
        numbers = pose.numbers_inside(7)
        x, y, z, w = numbers[3:]
        length = np.linalg.norm(numbers[3:])
        if not length:
            raise pose.refusal(expected="a quaternion that is not zero", found=pose.content)
        return RigidTransform(
            rotation_from_quaternion(np.array([w, x, y, z]) / length), numbers[:3]
        )
    if form != "euler_rpy":
        raise pose.refusal(expected="the rotation_format euler_rpy or quat_xyzw", found=repr(form))
    numbers = pose.numbers_inside(6)
    return RigidTransform(rotation_from_rpy(scale * numbers[3:]), numbers[:3])


FloatArray = npt.NDArray[np.float64]

_TYPES = ("revolute", "continuous", "prismatic", "fixed", "ball", "universal", "revolute2", "screw")
_NO_AXIS, _TWO_AXES = ("fixed", "ball"), ("universal", "revolute2")
_SQUARE = 1e-6  # greatest cosine of the angle between the axes of a cross
_OF_JOINTS = ("physics",)


def add_sdf_joint(
    builder: PlantBuilder,
    element: Element,
    name: str,
    on_parent: tuple[Body, RigidTransform],
    on_child: tuple[Body, RigidTransform],
    rotation: Callable[[str], FloatArray],
    *,
    is_loop: bool,
    left_out: LeftOut,
) -> None:
    """Add the joint of an element to a builder.

    ``on_parent`` and ``on_child`` are the bodies, and the pose of the joint on each.
    ``rotation(frame)`` returns the orientation of a frame in the joint.
    """
    element.pass_over(*_OF_JOINTS)
    kind = element.text("type")
    if kind not in _TYPES:
        raise element.refusal(expected=f"one of the types {quoted(_TYPES)}", found=repr(kind))
    axes = [
        _Axis(element.required(key), rotation)
        for key in ("axis", "axis2")[: 0 if kind in _NO_AXIS else 1 + (kind in _TWO_AXES)]
    ]
    if kind in _NO_AXIS:
        element.pass_over("axis", "axis2")
    joint = _make_joint(element, kind, name, on_parent, on_child, axes)
    if is_loop:
        with element.blamed():
            builder.add_loop_joint(joint)
        for axis in axes:
            for part in axis.element.children("limit", "dynamics"):
                left_out.add(f"{part}, as the joint closes a loop", "of joints that close loops")
                part.pass_over()
        return
    if axes:
        with element.blamed():
            joint.default_damping_vector = [axis.dynamics("damping") for axis in axes]
            set_limits(
                joint,
                positions=None if kind == "continuous" else _limits(axes),
                velocity=[_magnitude(axis.limit("velocity", -1.0)) for axis in axes],
            )
    with element.blamed():
        builder.add_joint(joint)
        _add_forces(builder, joint, axes)
    _add_motor(builder, element, joint, axes)


class _Axis:
    """An axis of a joint, with its direction in the frame of the joint."""

    def __init__(self, element: Element, rotation: Callable[[str], FloatArray]) -> None:
        self.element = element
        xyz = element.child("xyz")
        self.direction = np.array([0.0, 0.0, 1.0]) if xyz is None else xyz.numbers_inside(3)
        length = float(np.linalg.norm(self.direction))
        if length == 0.0:
            raise element.refusal(expected="an axis that is not zero", found="zeros")
        frame = "" if xyz is None else xyz.text_or("expressed_in", "")
        if element.is_set("use_parent_model_frame"):  # in older files
            frame = "__model__"
        turned = rotation(frame) @ self.direction if frame else self.direction
        self.direction = turned / length

    def dynamics(self, key: str) -> float:
        """Return a number of the dynamics, or zero."""
        return self._inside("dynamics", key, 0.0)

    def limit(self, key: str, default: float) -> float:
        """Return a number of the limit, or another one."""
        return self._inside("limit", key, default)

    def _inside(self, part: str, key: str, default: float) -> float:
        parent = self.element.child(part)
        return default if parent is None else parent.number_of(key, default)


def _make_joint(
    element: Element,
    kind: str,
    name: str,
    on_parent: tuple[Body, RigidTransform],
    on_child: tuple[Body, RigidTransform],
    axes: list[_Axis],
) -> Joint:
    """Return a joint without damping and limits."""
    (parent, X_PF), (child, X_CM) = on_parent, on_child
    if kind in _TWO_AXES:
        R = _cross(element, *(axis.direction for axis in axes))
        X_PF, X_CM = (RigidTransform(X.R @ R, X.p) for X in (X_PF, X_CM))
    pitch = _pitch(element) if kind == "screw" else 0.0
    direction = axes[0].direction if axes else np.zeros(3)
    with element.blamed():
        F, M = Frame(f"{name}_parent", parent, X_PF), Frame(f"{name}_child", child, X_CM)
        return new_joint(kind, name, F, M, direction, pitch)


def _cross(element: Element, x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the orientation of a cross whose x and y axes are those of the joint."""
    cosine = float(x @ y)
    if abs(cosine) > _SQUARE:
        raise element.refusal(
            expected="two axes at right angles",
            found=f"{np.rad2deg(np.arccos(cosine)):.4g} degrees between them",
        )
    y = y - cosine * x
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def _pitch(element: Element) -> float:
    """Return the advance per right-handed turn in m."""
    pitch = element.child("screw_thread_pitch")
    if pitch is not None:
        element.pass_over("thread_pitch")
        return pitch.number_inside()
    old = element.child("thread_pitch")  # in rad/m, left-handed
    turns = 1.0 if old is None else old.number_inside()
    if turns == 0.0 and old is not None:
        raise old.refusal(expected="a thread that is not zero", found="0")
    return -2.0 * np.pi / turns


def _limits(axes: list[_Axis]) -> tuple[list[float], list[float]]:
    """Return lower and upper limits of positions."""
    return (
        [axis.limit("lower", -np.inf) for axis in axes],
        [axis.limit("upper", np.inf) for axis in axes],
    )


def _magnitude(limit: float) -> float:
    """Return a limit of which a negative number means that there is none."""
    return np.inf if limit < 0.0 else limit


def _add_forces(builder: PlantBuilder, joint: Joint, axes: list[_Axis]) -> None:
    """Add dry friction and springs of a joint."""
    if not axes:
        return
    friction, stiffness, reference = (
        [axis.dynamics(key) for axis in axes]
        for key in ("friction", "spring_stiffness", "spring_reference")
    )
    add_friction(builder, joint, friction)
    if any(stiffness):
        add_spring(builder, joint, stiffness, reference)


def _add_motor(builder: PlantBuilder, element: Element, joint: Joint, axes: list[_Axis]) -> None:
    """Add an actuator with the name of the joint, if there is an effort or a rotor."""
    rotor, gear = (
        None if (each := element.child(f"drake:{key}")) is None else each.number_inside()
        for key in ("rotor_inertia", "gear_ratio")
    )
    efforts = [axis.limit("effort", -1.0) for axis in axes] or [-1.0]
    if len(set(efforts)) > 1:
        raise element.refusal(expected="the same effort for both axes", found=f"{efforts}")
    effort = efforts[0]
    has_limit = 0.0 < effort < BOUNDLESS
    if has_limit or rotor is not None:
        with element.blamed():
            builder.add_actuator(
                joint.name,
                joint,
                gear_ratio=1.0 if gear is None else gear,
                rotor_inertia=0.0 if rotor is None else rotor,
                effort_limit=effort if has_limit else np.inf,
            )
