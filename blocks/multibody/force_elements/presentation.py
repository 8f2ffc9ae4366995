"""How force elements are drawn and inspected, as plain data: each kind says it of itself."""

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
    """A flexure as it is drawn: sections along a center line through frames on bodies.

    Attributes
    ----------
    frames : sequence of (Frame, array of shape (3, 3))
        From one end to the other, each frame with three rows in it: a point of the center line, and
        the directions of the line and of the width there.
    length : float
        Length of the line between two frames in m.
    outlines : callable
        ``outlines(parts)`` returns the corners of the sections along y and z, of shape (n, q, 2),
        counter-clockwise seen from the far end, for parts of the whole length from 0 to 1; if all
        are equal, one section is enough.
    stress : LeafOutputPort
        The output with the stress along the line, as many values in each interval, or one for all.
    strength : NumericParameter or None
        Where the material yields.
    """

    frames: Sequence[tuple[Frame, FloatArray]]
    length: float
    outlines: Callable[[FloatArray], FloatArray]
    stress: LeafOutputPort
    strength: NumericParameter | None


class Probe(NamedTuple):
    """A quantity along an element, which a page shows over the place.

    Attributes
    ----------
    input, output : str
        Names of the input with the place and of the output with the quantity.
    reach : callable
        ``reach(context)`` returns how far from zero the places are, in either direction.
    place, place_unit : str
        What the place is called, such as ``"place along the notch"``.
    quantity, title, unit : str
        What the quantity is called, what is written above its curve, and its unit.
    """

    input: str
    output: str
    reach: Callable[[Any], float]
    place: str
    place_unit: str
    quantity: str
    title: str
    unit: str


class Presented:
    """The interface of a force element for pictures and pages; subclasses override parts of it.

    Attributes
    ----------
    drawn_as : str
        ``"line"`` for a spring, damper or both between two places, as its parameters ``stiffness``
        and ``damping`` say; ``"cable"``; ``"frames"`` for the axes of its frames; ``"ribbon"`` for
        a flexure; ``"knuckles"`` for those of a door on its joint; ``""`` for nothing.
    moves_along_line : bool
        Whether it acts along the line between two points, so that it is inspected over their
        distance, the output ``length``, and not over a whole pose.
    attachments : tuple of BodyAttachment
        Where it is attached to bodies, if it is.
    """

    drawn_as: ClassVar[str] = ""
    moves_along_line: ClassVar[bool] = False
    attachments: tuple[Any, ...] = ()

    def attachment_points(self, context: Any) -> list[FloatArray]:
        """Return the points on bodies that it is drawn between, each in the frame of its body."""
        return [each.frame.X_BF.p for each in self.attachments]

    def ribbon(self, context: Any) -> Ribbon | None:
        """Return the shape of an element that is drawn as a ribbon, with values of a context."""
        return None

    def undivided(self) -> Self:
        """Return the element as one piece in no plant, to look at its law; itself if it is one."""
        return self

    def unstressed_frames(self) -> RigidTransform | None:
        """Return the default pose of the last frame in the first without load, if it has one."""
        return None

    def inspected_range(self, unit: str, place: float, context: Any) -> tuple[float, float] | None:
        """Return middle and reach of the range in which a coordinate is inspected.

        Parameters
        ----------
        unit : str
            Unit of the coordinate, ``"rad"`` or ``"m"``.
        place : float
            Where the coordinate is.
        context : Context
            Gives the values of parameters.

        Returns
        -------
        (float, float) or None
            None where the constants of the element and the place tell the range.
        """
        return None

    def inspected_angle(self, context: Any) -> float:
        """Return the angle about z at which an element is inspected that rests otherwise."""
        return 0.0

    def declare_probe(self) -> Probe | None:
        """Declare an input and an output that show a quantity along it, if it has one."""
        return None
