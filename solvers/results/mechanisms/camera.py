"""Where a mechanism is seen from, and the part of the world that is in the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import FloatArray, as_finite

if TYPE_CHECKING:
    from flexure.blocks import Plant
    from flexure.diagrams.contexts.context import Context

#: A side from which a plant is seen, or azimuth and elevation of the viewer in degrees.
View: TypeAlias = "str | tuple[float, float]"

SIDES = {"xz": (-90.0, 0.0), "yz": (0.0, 0.0), "xy": (-90.0, 90.0)}
_CORNER = (-60.0, 20.0)
_NAMES = ("auto", "corner", *SIDES)
_ATTEMPT = "Cannot draw a plant in a view"
_STILL = 1e-9  # of the largest motion


class Camera:
    """Projects points of the world on the plane of the picture, without perspective.

    The view is a side, ``"corner"``, or azimuth and elevation of the viewer in degrees.
    """

    def __init__(self, view: View) -> None:
        if isinstance(view, str):
            if view not in _NAMES:
                raise DeclarationError(
                    "Cannot draw a plant",
                    expected=f"a view among {', '.join(_NAMES)} or (azimuth, elevation)",
                    found=repr(view),
                )
            view = SIDES.get(view, _CORNER)
        self.angles = as_finite(view, (2,), _ATTEMPT)
        # The two axes of the world that are those of the picture, where it is seen from a side.
        self.side = next((side for side, angles in SIDES.items() if tuple(view) == angles), None)
        azimuth, elevation = np.deg2rad(self.angles)
        ca, sa, ce, se = np.cos(azimuth), np.sin(azimuth), np.cos(elevation), np.sin(elevation)
        # Directions in the world: to the right, upwards, and to the viewer, shape (3, 3).
        self.axes = np.array([[-sa, ca, 0.0], [-ca * se, -sa * se, ce], [ca * ce, sa * ce, se]])

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return points, or directions, of the world to the right, upwards and to the viewer."""
        return np.asarray(points @ self.axes.T)


def chosen_view(view: View, plant: Plant, context: Context) -> View:
    """Return the view that ``"auto"`` stands for: the plane of a planar motion, or a corner."""
    if not (isinstance(view, str) and view == "auto"):
        return view
    columns = [plant.calc_jacobian(context, body) for body in plant.bodies[1:]]
    moves = np.max(np.abs(np.concatenate(columns, axis=1)), axis=1, initial=0.0)
    moves = moves > _STILL * np.max(moves, initial=0.0)
    for side, across in (("xz", 1), ("yz", 0)):
        turns = np.delete(moves[:3], across)
        if not (turns.any() or moves[3 + across]):
            return side
    return "corner"


class Frame(NamedTuple):
    """A rectangle of the plane of the picture, in m, by its center and half of its sides."""

    center: FloatArray
    half: FloatArray


_MARGIN = 0.08  # around the mechanism, as a part of its extent
_NARROWEST = 0.15  # half of the shorter side of a picture, as a part of that extent


def framed(points: FloatArray) -> Frame:
    """Return a rectangle around points of the picture, with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = max(*(high - low), 1e-6)
    half: FloatArray = np.maximum(0.5 * (high - low) + _MARGIN * extent, _NARROWEST * extent)
    return Frame(0.5 * (low + high), half)
