"""Poses, numbers and shapes, as URDF files have them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import RigidTransform, compose_transforms, rpy_from_rotation
from flexure.blocks.models.reading.ignored_elements import LeftOut
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.body_shape import Primitive
from flexure.blocks.multibody.bodies.meshes import write_stl


def numbers_text(numbers: npt.ArrayLike) -> str:
    """Return numbers that are read back as they are."""
    return " ".join(repr(float(each)) for each in np.atleast_1d(np.asarray(numbers) + 0.0))


def origin_element(pose: RigidTransform) -> ET.Element:
    """Return an ``<origin>`` with a pose."""
    rpy = rpy_from_rotation(pose.R)
    return ET.Element("origin", xyz=numbers_text(pose.p), rpy=numbers_text(rpy))


def add_visuals(
    link: ET.Element, body: Body, X_LB: RigidTransform, path: Path, left_out: LeftOut
) -> None:
    """Add what a body looks like to a link; meshes become files beside that of the robot."""
    for number, each in enumerate(body.shape.primitives, start=1):
        name = f"{path.stem}_{body.name}_{number}.stl"
        shape = _shape(each, name)
        if shape is None:
            left_out.add(f"the {each.kind} in what '{body.name}' looks like", "shapes")
            continue
        if each.mesh is not None:
            write_stl(path.with_name(name), each.mesh)
        visual = ET.SubElement(link, "visual")
        visual.append(origin_element(compose_transforms(X_LB, RigidTransform(each.R, each.p))))
        ET.SubElement(visual, "geometry").append(shape)
        if each.color is not None:
            material = ET.SubElement(visual, "material", name=each.color)
            shares = [int(each.color[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
            ET.SubElement(material, "color", rgba=numbers_text([*shares, 1.0]))


def _shape(part: Primitive, file: str) -> ET.Element | None:
    """Return a shape that URDF has; None of others."""
    size = part.size
    match part.kind:
        case "box":
            return ET.Element("box", size=numbers_text(size))
        case "ellipsoid" if size[0] == size[1] == size[2]:
            return ET.Element("sphere", radius=numbers_text(size[0]))
        case "tube" if size[0] == 0.0:
            radius, length = map(numbers_text, size[1:])
            return ET.Element("cylinder", radius=radius, length=length)
        case "capsule":
            radius, length = map(numbers_text, size)
            return ET.Element("capsule", radius=radius, length=length)
        case "mesh":
            return ET.Element("mesh", filename=file)
    return None
