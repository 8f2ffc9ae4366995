"""Data for drawing and inspecting force elements, which each kind provides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from flexure.blocks.math import RigidTransform
from flexure.blocks.multibody.bodies.bodies import Frame
from flexure.diagrams.systems.ports import LeafOutputPort
from flexure.diagrams.values.arrays import FloatArray
from flexure.diagrams.values.parameters import NumericParameter

if TYPE_CHECKING:
    from typing import Self


class Ribbon(NamedTuple):
    """The drawn shape of a flexure: sections along a center line through frames on bodies."""

    # Frames from one end to the other. The rows of each array, in its frame, are a point of the
    # center line, the direction of the line and the direction of the width, shape (3, 3)).
    frames: Sequence[tuple[Frame, FloatArray]]
    length: float  # length of the line between two neighboring frames in m
    # ``outlines(parts)`` returns the corners (y, z) of the sections at fractions of the length from
    # 0 to 1, of shape (n, q, 2), counter-clockwise seen from the far end. One section is enough if
    # all are equal.
    outlines: Callable[[FloatArray], FloatArray]
    # Output with the stress along the line: the same number of values per interval, or one.
    stress: LeafOutputPort
    strength: NumericParameter | None  # yield strength of the material


class Probe(NamedTuple):
    """A quantity along an element, which a page plots over the position."""

    # input, output: names of the input for the position and of the output with the quantity.
    input: str
    output: str
    # ``reach(context)`` returns the largest position; the smallest is its negative.
    reach: Callable[[Any], float]
    # place, place_unit: name of the position, such as ``"place along the notch"``, and its unit.
    place: str
    place_unit: str
    # quantity, title, unit: name of the quantity, title of its chart, and its unit.
    quantity: str
    title: str
    unit: str


class Presented:
    """The interface of force elements for pictures and pages; subclasses override parts of it.

    Attributes
    ----------
    drawn_as : str
        ``"line"`` for a spring, a damper or both between two points, depending on its parameters
        ``stiffness`` and ``damping``; ``"cable"``; ``"frames"`` for the axes of its frames;
        ``"ribbon"`` for a flexure; ``"knuckles"`` for a door hinge; ``""`` for no drawing.
    moves_along_line : bool
        Whether it acts along the line between two points. It is then inspected over their distance,
        the output ``length``, instead of a whole pose.
    attachments : tuple of BodyAttachment
        Its attachments to bodies.
    """

    drawn_as: ClassVar[str] = ""
    moves_along_line: ClassVar[bool] = False
    attachments: tuple[Any, ...] = ()

    def attachment_points(self, context: Any) -> list[FloatArray]:
        """Return the points between which it is drawn, each in the frame of its body."""
        return [each.X_BF(context).p for each in self.attachments]

    def ribbon(self, context: Any) -> Ribbon | None:
        """Return the shape of an element drawn as a ribbon, at the values of a context."""
        return None

    def undivided(self) -> Self:
        """Return the element as one piece outside a plant, for its law; itself if it is one."""
        return self

    def unstressed_frames(self) -> RigidTransform | None:
        """Return the default pose of the last frame in the first one without load, if known."""
        return None

    def inspected_range(self, unit: str, place: float, context: Any) -> tuple[float, float] | None:
        """Return the center and half width of the range in which a coordinate is inspected.

        Parameters
        ----------
        unit : str
            Unit of the coordinate, ``"rad"`` or ``"m"``.
        place : float
            Value of the coordinate.
        context : Context
            The values of parameters.

        Returns
        -------
        (float, float) or None
            None if the range follows from the constants of the element and the value.
        """
        return None

    def inspected_angle(self, context: Any) -> float:
        """Return the angle about z at which an element is inspected in its rest pose otherwise."""
        return 0.0

    def declare_probe(self) -> Probe | None:
        """Declare an input and an output for a quantity along it, if it has one."""
        return None
