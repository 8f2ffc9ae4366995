"""The base classes of assemblies: beams between two frames, also through bodies of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.beams.leaf_spring import LeafSpring
from flexure.blocks.math import z_rotation
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.plants.part_group import PartGroup
from flexure.diagrams.checks.arguments import require_that
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import FloatArray, bounded, check_name
from flexure.diagrams.values.tied_parameters import TiedParameter

#: Parameters of beams whose ends are where other dimensions put them.
OF_SHAPE = "length", "curvature"


class FlexureAssembly(PartGroup):
    """Leaf springs that belong together, for `PlantBuilder.add_assembly`.

    Each leaf is a block of its own in the plant, with its own parameters, named after the assembly:
    tolerances of one are not those of the other.

    Attributes
    ----------
    name : str
        Name of the assembly, the beginning of all names in it.
    frame_a, frame_c : Frame
        The frames that it connects.
    leaves : tuple of LeafSpring
        The leaves.
    length, width, thickness : TiedParameter
        Parameters of all leaves, which have one value: ``guide.length.set(context, 0.06)``, or the
        path ``"guide.length"``. So are all other parameters of the leaves. Assemblies whose leaves
        have no ``length`` as an argument, since it follows from other dimensions, tie all but that.
    """

    leaves: tuple[LeafSpring, ...]
    length: TiedParameter
    width: TiedParameter
    thickness: TiedParameter

    def __init__(self, name: str, frame_a: FrameLike, frame_c: FrameLike) -> None:
        self.name, self.leaves = check_name(name, "an assembly"), ()
        self.frame_a, self.frame_c = (as_frame(each, self._attempt) for each in (frame_a, frame_c))
        self._origins = {id(frame): np.zeros(3) for frame in (self.frame_a, self.frame_c)}

    @property
    def _attempt(self) -> str:
        return f"Cannot make {type(self).__name__} '{self.name}'"

    def _positive(self, what: str, value: float, unit: str = "m", **bounds: Any) -> float:
        """Return a positive number, or refuse it by its name."""
        limits = {"lower": 0.0, "exclusive": True, "unit": unit, **bounds}
        return bounded(value, f"{self._attempt} with {what}", **limits)

    def _lengths(self, **values: float) -> list[float]:
        """Return positive lengths, or refuse the first other one by its name."""
        return [self._positive(what, value) for what, value in values.items()]

    def _require(self, possible: bool, expected: str, found: str) -> None:
        """Refuse dimensions that no mechanism has."""
        require_that(possible, self._attempt, expected, found)

    def _body(
        self, label: str, inertia: SpatialInertia, at: npt.ArrayLike = (0.0, 0.0, 0.0)
    ) -> Body:
        """Add a body whose frame is at a point of A."""
        if not isinstance(inertia, SpatialInertia):
            raise DeclarationError(self._attempt, expected="a SpatialInertia", found=repr(inertia))
        body = Body(f"{self.name}_{label}", inertia)
        joint = QuaternionFloatingJoint(body.name, self.frame_a, body)
        joint.default_pose = np.eye(3), at
        self.bodies, self.joints = (*self.bodies, body), (*self.joints, joint)
        self._origins[id(body)] = np.asarray(at, dtype=float)
        return body

    def _leaf(
        self,
        number: int,
        on_a: FrameLike,
        on_c: FrameLike,
        place: tuple[float, float, float],
        angle: float,
        **options: Any,
    ) -> LeafSpring:
        """Return a leaf between frames at a place, with x turned by an angle about z, in both."""
        name = f"{self.name}_leaf{number}"
        pose = z_rotation(angle), np.array(place)
        frames = (Frame(f"{name}_{label}", on, pose) for label, on in (("A", on_a), ("C", on_c)))
        return LeafSpring(name, *frames, **options)

    def _tie(self, leaves: Iterable[LeafSpring], *, fixed: Collection[str] = ()) -> None:
        """Store the leaves, and tie their parameters of one name, but for those that are fixed."""
        self.leaves = tuple(leaves)
        first = self.leaves[0]
        for name in (each.name for each in first.numeric_parameters if each.name not in fixed):
            tied = TiedParameter(self.name, [getattr(leaf, name) for leaf in self.leaves])
            self.tied += (tied,)
            setattr(self, name, tied)

    @property
    def force_elements(self) -> tuple[LeafSpring, ...]:  # type: ignore[override]
        """The leaves."""
        return self.leaves


class BeamAssembly(FlexureAssembly):
    """Beams between frames that are parallel to A while nothing is deformed.

    Subclasses place their beams by points in A, in ``_beam``, and their own bodies in ``_body``;
    then they tie the parameters of the beams, in ``_tie``.
    """

    _KIND: ClassVar[type[Any]] = LeafSpring  # what the beams are

    def __init__(self, name: str, frame_a: FrameLike, frame_c: FrameLike, **options: Any) -> None:
        super().__init__(name, frame_a, frame_c)
        self._options = options

    def _beam(
        self,
        on_a: FrameLike,
        on_c: FrameLike,
        start: npt.ArrayLike,
        end: npt.ArrayLike,
        *,
        across: npt.ArrayLike = (0.0, 0.0, 1.0),
        turned: FloatArray | None = None,
        rests: float | None = None,
        **options: Any,
    ) -> None:
        """Add a beam between two points of A, with its z axis across it."""
        # An arc ends along its chord ``turned`` by a rotation, and starts turned back by it. Where
        # it ``rests`` at a part of its length, a length in a context moves its ends away from
        # there.
        name = f"{self.name}_leaf{len(self.leaves) + 1}"
        chord = np.subtract(end, start)
        length = float(np.linalg.norm(chord))
        x, z = chord / length, np.asarray(across, dtype=float)
        R = np.column_stack([x, np.cross(z, x), z])
        ends = [R, R] if turned is None else [turned.T @ R, turned @ R]
        given = {"length": length, **self._options, **options}
        points = np.asarray(start), np.asarray(end)
        if rests is not None:
            points = (points[0] + rests * chord,) * 2
            given["ends"] = -rests, 1.0 - rests
        frames = [
            Frame(f"{name}_{label}", on, (rotation, p - self._origins[id(on)]))
            for label, on, rotation, p in zip("AC", (on_a, on_c), ends, points, strict=True)
        ]
        self.leaves = (*self.leaves, self._KIND(name, *frames, **given))
