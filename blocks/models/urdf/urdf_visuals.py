"""Where things are in URDF files, and what links look like there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flexure.blocks.math import RigidTransform, rotation_from_rpy
from flexure.blocks.models.reading.visuals import Visuals, color_code, only_shape
from flexure.blocks.models.reading.xml_elements import Element
from flexure.blocks.multibody.bodies.body_shape import BodyShape


def origin_pose(origin: Element | None) -> RigidTransform:
    """Return the pose that is given by xyz and rpy, the identity where they are missing."""
    if origin is None:
        return RigidTransform(np.eye(3), np.zeros(3))
    if origin.tag == "origin":
        origin.refuse_other_attributes("xyz", "rpy")
    rpy = origin.vector("rpy", np.zeros(3))
    return RigidTransform(rotation_from_rpy(rpy), origin.vector("xyz", np.zeros(3)))


class UrdfVisuals(Visuals):
    """Reads what the links of a robot look like, whose materials may have names."""

    def __init__(self, robot: Element, folder: Path) -> None:
        super().__init__(folder)
        self._colors: dict[str, str] = {}
        for material in robot.children("material"):
            self.color_or_note(material)

    def pose(self, visual: Element) -> RigidTransform:
        """Return the pose of a visual in its link."""
        return origin_pose(visual.child("origin"))

    def geometry(self, visual: Element) -> BodyShape:
        """Return the shape of a visual in its own frame."""
        geometry = only_shape(visual)
        match geometry.tag:
            case "box":
                return BodyShape.box(size=geometry.vector("size"))
            case "sphere":
                return BodyShape.sphere(radius=geometry.number("radius"))
            case "cylinder" | "capsule":
                radius, length = geometry.number("radius"), geometry.number("length")
                make = BodyShape.cylinder if geometry.tag == "cylinder" else BodyShape.capsule
                return make(radius=radius, length=length)
            case "mesh":
                return self.mesh(geometry.text("filename"), geometry.vector("scale", np.ones(3)))
        raise geometry.refusal(expected="box, cylinder, sphere or mesh", found=geometry.tag)

    def color(self, material: Element) -> str | None:
        """Return the color of a material, which its own element or an earlier one has."""
        name = material.text_or("name", "")
        given = material.child("color")
        if given is None:
            return self._colors.get(name)
        code = color_code(given.numbers("rgba", 3, 4))
        return self._colors.setdefault(name, code) if name else code
