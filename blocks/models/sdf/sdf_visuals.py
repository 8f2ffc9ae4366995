"""Shapes of links of SDF files."""

from __future__ import annotations

import numpy as np

from flexure.blocks.math import RigidTransform
from flexure.blocks.models.reading.visuals import Visuals, color_code
from flexure.blocks.models.reading.xml_elements import Element
from flexure.blocks.models.sdf.sdf_poses import pose_inside
from flexure.blocks.multibody.bodies.body_shape import BodyShape

#: What matters to renderers alone.
_RENDERING = ("cast_shadows", "transparency", "laser_retro", "visibility_flags", "meta", "plugin")


class SdfVisuals(Visuals):
    """Reads what the links of a model look like."""

    def pose(self, visual: Element) -> RigidTransform:
        """Return the pose of a visual in its link."""
        visual.pass_over(*_RENDERING)
        pose = visual.child("pose")
        if pose is not None and pose.text_or("relative_to", ""):
            raise pose.refusal(expected="a pose in the link", found="relative_to")
        return pose_inside(pose)

    def geometry(self, visual: Element) -> BodyShape:
        """Return the shape of a visual in its own frame."""
        parent = visual.required("geometry")
        found = parent.children()
        if len(found) != 1:
            raise visual.refusal(expected="one shape", found=f"{len(found)}")
        shape = found[0]
        parent.take_as_known(shape.tag)
        match shape.tag:
            case "box":
                return BodyShape.box(size=shape.required("size").numbers_inside(3))
            case "sphere":
                return BodyShape.sphere(radius=shape.required("radius").number_inside())
            case "ellipsoid":
                return BodyShape.ellipsoid(semi_axes=shape.required("radii").numbers_inside(3))
            case "cylinder" | "capsule":
                radius, length = (
                    shape.required(key).number_inside() for key in ("radius", "length")
                )
                make = BodyShape.cylinder if shape.tag == "cylinder" else BodyShape.capsule
                return make(radius=radius, length=length)
            case "mesh":
                scale = shape.child("scale")
                factors = np.ones(3) if scale is None else scale.numbers_inside(3)
                return self.mesh(shape.required("uri").content, factors)
            case "empty":
                return BodyShape()
        expected = "box, sphere, ellipsoid, cylinder, capsule or mesh"
        raise shape.refusal(expected=expected, found=shape.tag)

    def color(self, material: Element) -> str | None:
        """Return the diffuse color of a material, or the ambient one."""
        given = [material.child(key) for key in ("diffuse", "ambient")]
        material.pass_over("specular", "emissive", "lighting")
        shares = next((each for each in given if each is not None), None)
        return None if shares is None else color_code(shares.numbers_inside(3, 4))
