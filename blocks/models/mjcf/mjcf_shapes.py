"""Shapes of bodies of MJCF files."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.math import rotation_from_quaternion
from flexure.blocks.models.mjcf.mujoco_package import mujoco
from flexure.blocks.models.reading.ignored_elements import LeftOut
from flexure.blocks.models.reading.visuals import color_code
from flexure.blocks.multibody.bodies.body_shape import BodyShape


def geom_shape(model: Any, number: int, name: str, left_out: LeftOut) -> BodyShape:
    """Return the shape of a geom in its body; note what cannot be drawn."""
    kinds = mujoco().mjtGeom
    kind, size = kinds(int(model.geom_type[number])), model.geom_size[number]
    if kind == kinds.mjGEOM_BOX:
        shape = BodyShape.box(size=2.0 * size)
    elif kind == kinds.mjGEOM_SPHERE:
        shape = BodyShape.sphere(radius=size[0])
    elif kind == kinds.mjGEOM_ELLIPSOID:
        shape = BodyShape.ellipsoid(semi_axes=size)
    elif kind == kinds.mjGEOM_CYLINDER:
        shape = BodyShape.cylinder(radius=size[0], length=2.0 * size[1])
    elif kind == kinds.mjGEOM_CAPSULE:
        shape = BodyShape.capsule(radius=size[0], length=2.0 * size[1])
    elif kind == kinds.mjGEOM_MESH:
        shape = _mesh(model, int(model.geom_dataid[number]))
    else:
        what = kind.name.removeprefix("mjGEOM_").lower()
        left_out.add(f"not drawn in pictures: the {what} '{name}'", "not drawn")
        return BodyShape()
    R = rotation_from_quaternion(model.geom_quat[number])
    color = color_code(model.geom_rgba[number])
    return shape.moved((R, model.geom_pos[number])).colored(color)


def _mesh(model: Any, number: int) -> BodyShape:
    """Return a mesh of the model, which MuJoCo has turned to its principal axes."""
    vertices = slice(model.mesh_vertadr[number], None)
    faces = slice(model.mesh_faceadr[number], None)
    points = model.mesh_vert[vertices][: model.mesh_vertnum[number]]
    corners = model.mesh_face[faces][: model.mesh_facenum[number]]
    return BodyShape.mesh((np.asarray(points, dtype=float), np.asarray(corners)))
