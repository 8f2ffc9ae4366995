"""Frames of SDF files, whose poses are given in other frames, in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexure.blocks.math import (
    RigidTransform,
    compose_transforms,
    relative_pose,
    rotation_from_quaternion,
    rotation_from_rpy,
)
from flexure.blocks.models.reading.xml_elements import Element
from flexure.diagrams.checks.errors import UnknownNameError, suggestion

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


def pose_inside(pose: Element | None) -> RigidTransform:
    """Return the pose that an element contains, the identity where there is none."""
    if pose is None:
        return _IDENTITY
    known = ["relative_to", "degrees", "rotation_format"]
    if not pose.text_or("frame", ""):  # which older files have, and leave empty
        known.append("frame")
    pose.refuse_other_attributes(*known)
    form = pose.text_or("rotation_format", "euler_rpy")
    scale = np.pi / 180.0 if pose.text_or("degrees", "false") in ("true", "1") else 1.0
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
