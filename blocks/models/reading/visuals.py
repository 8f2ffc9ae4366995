"""Shapes of links, as far as they can be drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform
from flexure.blocks.models.reading.xml_elements import Element
from flexure.blocks.multibody.bodies.body_shape import BodyShape
from flexure.diagrams.checks.errors import FlexureError
from flexure.diagrams.values.arrays import FloatArray

_PACKAGES, _FILE = ("package://", "model://"), "file://"


def folder_of(source: str | Path) -> Path:
    """Return the folder of a file of a model; of a text, that in which the program runs."""
    return Path() if isinstance(source, str) and "<" in source else Path(source).parent


def color_code(shares: npt.ArrayLike) -> str:
    """Return ``"#rrggbb"`` for shares of red, green and blue, and of what follows."""
    first = np.clip(np.asarray(shares, dtype=float)[:3], 0.0, 1.0)
    return "#" + "".join(f"{round(255 * share):02x}" for share in first.tolist())


def only_shape(visual: Element) -> Element:
    """Return the element of the shape of a visual."""
    parent = visual.required("geometry")
    found = parent.children()
    if len(found) != 1:
        raise visual.refusal(expected="one shape", found=f"{len(found)}")
    parent.take_as_known(found[0].tag)
    return found[0]


class Visuals(ABC):
    """Reads what the links of a model look like, whose file is in a folder.

    Nothing here stops a model from being loaded: what cannot be drawn is noted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._not_drawn: list[str] = []
        self._meshes: dict[tuple[Path, tuple[float, ...]], BodyShape] = {}

    @abstractmethod
    def geometry(self, visual: Element) -> BodyShape:
        """Return the shape of a visual in its own frame."""

    @abstractmethod
    def color(self, material: Element) -> str | None:
        """Return the color of a material, if it has one."""

    @abstractmethod
    def pose(self, visual: Element) -> RigidTransform:
        """Return the pose of a visual in its link."""

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Yield what cannot be drawn."""
        for each in self._not_drawn:
            yield "not drawn", f"not drawn in pictures: {each}"

    def shape_of(self, link: Element) -> BodyShape:
        """Return what a link looks like, in its frame."""
        shape = BodyShape()
        for visual in link.children("visual"):
            try:
                part = self.geometry(visual).moved(self.pose(visual))
                material = visual.child("material")
                color = None if material is None else self.color_or_note(material)
                shape += part if color is None else part.colored(color)
            except FlexureError as error:
                self._not_drawn.append(f"{visual} ({error.expected}; found {error.found})")
                visual.pass_over()
        return shape

    def color_or_note(self, material: Element) -> str | None:
        """Return the color of a material, and note one that means nothing."""
        try:
            return self.color(material)
        except FlexureError as error:
            self._not_drawn.append(f"the color of {material} ({error.expected})")
            return None

    def mesh(self, name: str, scale: FloatArray) -> BodyShape:
        """Return the mesh of a file, which is read once."""
        key = self._path(name), tuple(scale.tolist())
        if key not in self._meshes:
            self._meshes[key] = BodyShape.mesh(key[0], scale=scale)
        return self._meshes[key]

    def _path(self, name: str) -> Path:
        """Return where a file of a mesh should be."""
        if name.startswith(_FILE):
            return Path(unquote(name.removeprefix(_FILE)))
        prefix = next((each for each in _PACKAGES if name.startswith(each)), None)
        if prefix is None:
            return self.folder / name
        package, _, rest = name.removeprefix(prefix).partition("/")
        around = [self.folder, *self.folder.resolve().parents]
        places = [folder / rest for folder in around if folder.resolve().name == package]
        places += [folder / package / rest for folder in around]
        return next((place for place in places if place.is_file()), self.folder / rest)
