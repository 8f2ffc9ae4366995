"""Shapes of bodies: boxes, balls, tubes, meshes and the like, placed on the body."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.multibody.bodies import solids
from flexure.blocks.multibody.bodies.body_motion import PoseLike, checked_pose
from flexure.blocks.multibody.bodies.meshes import Mesh, read_mesh, simplified
from flexure.blocks.signals.argument_shapes import Axis
from flexure.diagrams.checks.arguments import require, shown
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.drawing.formats.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from flexure.diagrams.values.arrays import FloatArray

#: Colors by their names.
COLORS = {
    "blue": BLUE,
    "orange": ORANGE,
    "green": GREEN,
    "purple": PURPLE,
    "gray": GREY,
    "red": RED,
    "black": "#222222",
    "white": "#f4f4f4",
}
#: Rotations that turn z into an axis.
_TO_AXIS = {
    "x": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "y": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "z": np.eye(3),
}


class Primitive(NamedTuple):
    """A part of a shape."""

    # ``"box"`` with its three extents as size, ``"ellipsoid"`` with half of them, ``"tube"`` along
    # z with inner radius, outer radius and length, ``"capsule"`` along z with radius and length of
    # its cylinder, ``"rod"`` along z with its length, ``"point"`` or ``"mesh"``.
    kind: str
    size: tuple[float, ...]  # lengths in m
    R: FloatArray  # rotation matrix of its axes in the body, shape (3, 3)
    p: FloatArray  # position of its center in the body in m, shape (3,)
    color: str | None = None  # as ``"#rrggbb"``; None for the color of the body
    mesh: Mesh | None = None  # the surface of a mesh


@dataclass(frozen=True, eq=False, repr=False)
class BodyShape:
    """The shape of a body in pictures; it has no influence on the motion.

    The constructors put shapes around the origin; `moved`, `colored` and ``+`` make others of them.
    The solids of `SpatialInertia` have the shape of their name already. A shape stays as it is when
    mass, center of mass or inertia take other values in a context.

    Attributes
    ----------
    primitives : tuple of Primitive
        What it consists of; ``BodyShape()`` is empty, and nothing is drawn.

    See Also
    --------
    PlantBuilder.add_shape : Give a body a shape.

    Examples
    --------
    A panel with a knob:

    >>> panel = BodyShape.box(size=(0.02, 0.6, 0.7)).moved((0.0, 0.3, 0.0))
    >>> panel + BodyShape.sphere(radius=0.03).moved((0.04, 0.55, 0.0)).colored("orange")
    <BodyShape: box, ellipsoid>
    """

    primitives: tuple[Primitive, ...] = ()

    @classmethod
    def point(cls) -> BodyShape:
        """Return a point."""
        return cls((Primitive("point", (), np.eye(3), np.zeros(3)),))

    @classmethod
    def rod(cls, *, length: float, axis: Axis = "z") -> BodyShape:
        """Return a line of a length > 0 in m along an axis."""
        return shape_of(solids.rod(length, axis))

    @classmethod
    def box(cls, *, size: npt.ArrayLike) -> BodyShape:
        """Return a box with three extents > 0 along x, y, z in m."""
        return shape_of(solids.box(size))

    @classmethod
    def sphere(cls, *, radius: float) -> BodyShape:
        """Return a ball of a radius > 0 in m."""
        return shape_of(solids.ball(radius))

    @classmethod
    def ellipsoid(cls, *, semi_axes: npt.ArrayLike) -> BodyShape:
        """Return an ellipsoid; half of its extents > 0 along x, y, z in m."""
        return shape_of(solids.ellipsoid(semi_axes))

    @classmethod
    def cylinder(cls, *, radius: float, length: float, axis: Axis = "z") -> BodyShape:
        """Return a cylinder of a radius > 0 and a length > 0 in m along an axis."""
        return shape_of(solids.cylinder(radius, length, axis))

    @classmethod
    def tube(
        cls, *, inner_radius: float, outer_radius: float, length: float, axis: Axis = "z"
    ) -> BodyShape:
        """Return a cylinder with a bore, with radii 0 < a <= b and a length > 0 in m."""
        return shape_of(solids.tube(inner_radius, outer_radius, length, axis))

    @classmethod
    def capsule(cls, *, radius: float, length: float, axis: Axis = "z") -> BodyShape:
        """Return a cylinder of a length > 0 with half a ball on each end, in m."""
        return shape_of(solids.capsule(radius, length, axis))

    @classmethod
    def mesh(
        cls, source: str | Path | tuple[npt.ArrayLike, npt.ArrayLike], *, scale: npt.ArrayLike = 1.0
    ) -> BodyShape:
        """Return a surface of triangles.

        Parameters
        ----------
        source : str, Path, or tuple of array_like, shapes (n, 3) and (m, 3)
            Name of an STL file, binary or ASCII, or vertices and the numbers of the corners of each
            triangle, counter-clockwise seen from outside.
        scale : float or array_like, shape (3,)
            Meters for one unit of the source, for all axes or for each; not zero.

        Returns
        -------
        BodyShape

        Raises
        ------
        DeclarationError
            When the file cannot be read, is of another format, is cut off, or has no triangles or
            no finite numbers.

        Notes
        -----
        The file is read at once. If it has more than 4000 triangles, neighbors are joined until
        there are fewer.
        """
        mesh = simplified(read_mesh(source, scale))
        return cls((Primitive("mesh", (), np.eye(3), np.zeros(3), None, mesh),))

    def moved(self, pose: PoseLike) -> BodyShape:
        """Return the shape at a pose (R, p), or at a position p without turning."""
        R, p = checked_pose(pose, "Cannot move a shape")
        return BodyShape(
            tuple(each._replace(R=R @ each.R, p=p + R @ each.p) for each in self.primitives)
        )

    def colored(self, color: str) -> BodyShape:
        """Return the shape in a color: ``"#rrggbb"``, or a name such as ``"blue"``."""
        code = _checked_color(color)
        return BodyShape(tuple(each._replace(color=code) for each in self.primitives))

    def __add__(self, other: BodyShape) -> BodyShape:
        """Return both shapes as one."""
        if not isinstance(other, BodyShape):
            return NotImplemented
        return BodyShape(self.primitives + other.primitives)

    def __repr__(self) -> str:
        kinds = [each.kind for each in self.primitives]
        return f"<BodyShape: {', '.join(kinds) or 'nothing'}>"


def shape_of(solid: solids.Solid) -> BodyShape:
    """Return the shape of a solid."""
    return BodyShape((Primitive(solid.kind, solid.size, _TO_AXIS[solid.axis], np.zeros(3)),))


def _checked_color(color: object) -> str:
    """Return a color as ``"#rrggbb"``, else raise."""
    if isinstance(color, str) and color in COLORS:
        return COLORS[color]
    if isinstance(color, str) and re.fullmatch("#[0-9a-fA-F]{6}", color):
        return color.lower()
    raise DeclarationError(
        "Cannot color a shape", expected=f"'#rrggbb' or {quoted(COLORS)}", found=shown(color)
    )


def require_shape(shape: object, attempt: str) -> None:
    """Refuse what is no shape."""
    remedy = "Make one, as in BodyShape.box(size=(0.1, 0.2, 0.3))"
    fits = isinstance(shape, BodyShape)
    require(fits, shape, attempt, "a BodyShape", error=DeclarationError, remedy=remedy)
