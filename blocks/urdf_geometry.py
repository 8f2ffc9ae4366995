"""Where things are in URDF files, and what links look like.

Needs lxml, which `flexure[urdf]` installs.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import numpy as np

from flexure.blocks.math import RigidTransform, rotation_from_rpy
from flexure.blocks.multibody.body_shape import BodyShape
from flexure.blocks.xml_elements import Element
from flexure.diagrams.errors import FlexureError

_PACKAGE, _FILE = "package://", "file://"
_LISTED = 5  # visuals in a warning


def origin_pose(origin: Element | None) -> RigidTransform:
    """Return the pose that is given by xyz and rpy, the identity where they are missing."""
    if origin is None:
        return RigidTransform(np.eye(3), np.zeros(3))
    if origin.tag == "origin":
        origin.refuse_other_attributes("xyz", "rpy")
    rpy = origin.vector("rpy", np.zeros(3))
    return RigidTransform(rotation_from_rpy(rpy), origin.vector("xyz", np.zeros(3)))


def folder_of(source: str | Path) -> Path:
    """Return the folder of a file of a robot; of a text, that in which the program runs."""
    return Path() if isinstance(source, str) and "<" in source else Path(source).parent


class Visuals:
    """Reads what the links of a robot look like.

    Nothing here stops a robot from being loaded: what cannot be drawn is noted.

    Parameters
    ----------
    robot : Element
        The robot, whose materials may have names.
    folder : Path
        Where the file of the robot is.
    """

    def __init__(self, robot: Element, folder: Path) -> None:
        self.folder = folder
        self._not_drawn: list[str] = []
        self._meshes: dict[tuple[Path, tuple[float, ...]], BodyShape] = {}
        self._colors: dict[str, str] = {}
        for material in robot.children("material"):
            self._color(material)

    def notes(self) -> list[str]:
        """Return a warning about what cannot be drawn, if there is anything."""
        if not self._not_drawn:
            return []
        more = len(self._not_drawn) - _LISTED
        others = f"; and {more} others" if more > 0 else ""
        return [f"not drawn in pictures: {'; '.join(self._not_drawn[:_LISTED])}{others}"]

    def shape_of(self, link: Element) -> BodyShape:
        """Return what a link looks like, in its frame."""
        shape = BodyShape()
        for visual in link.children("visual"):
            try:
                part = self._geometry(visual).moved(origin_pose(visual.child("origin")))
                material = visual.child("material")
                color = None if material is None else self._color(material)
                shape += part if color is None else part.colored(color)
            except FlexureError as error:
                self._not_drawn.append(f"{visual} ({error.expected}; found {error.found})")
        return shape

    def _geometry(self, visual: Element) -> BodyShape:
        """Return the shape of a visual in its own frame."""
        found = visual.required("geometry").children()
        if len(found) != 1:
            raise visual.refusal(expected="one shape", found=f"{len(found)}")
        geometry = found[0]
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
                scale = geometry.vector("scale", np.ones(3))
                key = self._path(geometry.text("filename")), tuple(scale.tolist())
                if key not in self._meshes:
                    self._meshes[key] = BodyShape.mesh(key[0], scale=scale)
                return self._meshes[key]
        raise geometry.refusal(expected="box, cylinder, sphere or mesh", found=geometry.tag)

    def _path(self, filename: str) -> Path:
        """Return where a file of a mesh should be."""
        if filename.startswith(_FILE):
            return Path(unquote(filename.removeprefix(_FILE)))
        if not filename.startswith(_PACKAGE):
            return self.folder / filename
        package, _, rest = filename.removeprefix(_PACKAGE).partition("/")
        around = [self.folder, *self.folder.resolve().parents]
        places = [folder / rest for folder in around if folder.resolve().name == package]
        places += [folder / package / rest for folder in around]
        return next((place for place in places if place.is_file()), self.folder / rest)

    def _color(self, material: Element) -> str | None:
        """Return the color of a material, which its own element or an earlier one has."""
        name = ""
        try:
            name = material.attributes.get("name", "")
            color = material.child("color")
            if color is not None:
                shares = np.clip(color.numbers("rgba", 3, 4)[:3], 0.0, 1.0)
                code = "#" + "".join(f"{round(255 * share):02x}" for share in shares.tolist())
                return self._colors.setdefault(name, code) if name else code
        except FlexureError as error:
            self._not_drawn.append(f"the color of {material} ({error.expected})")
        return self._colors.get(name)


__all__ = ["Visuals", "folder_of", "origin_pose"]
