"""Assemblies of leaf springs: what pivots and guides of flexures are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from flexure.blocks.flexures.beams.leaf_spring import LeafSpring
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.math import z_rotation
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike, as_frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.plants.part_group import PartGroup
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import bounded, check_name
from flexure.diagrams.values.tied_parameters import TiedParameter


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
        self.name = check_name(name, "an assembly")
        attempt = f"Cannot make {type(self).__name__} '{name}'"
        self.frame_a, self.frame_c = as_frame(frame_a, attempt), as_frame(frame_c, attempt)

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


class CrossPivot(FlexureAssembly):
    """A cross pivot: two crossed leaves that let C rotate in A about the crossing's z.

    Unstressed, the frames A and C coincide, with the origin where the leaves cross and x halfway
    between them. The leaves lie in planes z = ± gap/2. With the length L and EI of each leaf, and
    with the crossing in the middle, a moment about z alone meets the stiffness::

        k = 2 EI / L

    Parameters
    ----------
    name : str
        Name of the assembly; the leaves are ``<name>_leaf1`` and ``<name>_leaf2``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    length, width, thickness : float
        Dimensions of both leaves in m.
    material : Material
        Their material.
    angle : float
        Angle between the leaves in rad, above 0 and below π; a right angle by default.
    crossing : float
        Where leaves cross, as a part of their length from A; above 0 and below 1.
    gap : float
        Distance of the middles of the leaves along z, in m. With 0, which is what two halves of
        one leaf on both sides of the other come to, the pivot does not tilt as it turns.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The two leaves.
    length, width, thickness : TiedParameter
        Dimensions of both leaves in contexts.

    Raises
    ------
    DeclarationError
        When a frame is missing, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    LeafSpring : A leaf spring.

    Examples
    --------
    >>> from flexure.blocks.multibody import PlantBuilder, SpatialInertia
    >>> builder = PlantBuilder("pivot", gravity=(0.0, 0.0, 0.0))
    >>> arm = builder.add_body("arm", SpatialInertia.solid_box(mass=0.2, size=(0.1, 0.02, 0.02)))
    >>> steel = Material.common("stainless steel 301")
    >>> pivot = CrossPivot(
    ...     "pivot", builder.world, arm, length=0.03, width=0.01, thickness=3e-4, material=steel
    ... )
    >>> [leaf.name for leaf in builder.add_assembly(pivot).leaves]
    ['pivot_leaf1', 'pivot_leaf2']
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        length: float,
        width: float,
        thickness: float,
        material: Material,
        angle: float = 0.5 * np.pi,
        crossing: float = 0.5,
        gap: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        attempt = f"Cannot make CrossPivot '{name}'"
        part = _between(crossing, 1.0, f"{attempt} with crossing")
        half = 0.5 * _between(angle, np.pi, f"{attempt} with angle")
        offset = bounded(gap, f"{attempt} with gap", unit="m")
        dimensions = {"length": length, "width": width, "thickness": thickness}
        options = {**dimensions, "material": material, "ends": (-part, 1.0 - part), **options}
        leaves = []
        for number, sign in ((1, 1.0), (2, -1.0)):
            place = 0.0, 0.0, 0.5 * sign * float(offset)
            leaves.append(self._leaf(number, frame_a, frame_c, place, sign * half, **options))
        self._tie(leaves)


class ParallelGuide(FlexureAssembly):
    """A parallel guide: two equal leaves side by side, so that C moves along y of A.

    The leaves are along x, at y = ± distance/2. Unstressed, C has the orientation of A and stands
    at (length, 0, 0) in it. With the length L and EI of each leaf, the stiffness along y and the
    shortening along x of small strokes y are, where the leaves do not stretch::

        k = 24 EI / L³,    x = -(3/5) y² / L

    Parameters
    ----------
    name : str
        Name of the assembly; the leaves are ``<name>_leaf1`` and ``<name>_leaf2``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    distance : float
        Distance of the leaves along y in m.
    length, width, thickness : float
        Dimensions of both leaves in m.
    material : Material
        Their material.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The two leaves.
    length, width, thickness : TiedParameter
        Dimensions of both leaves in contexts.

    Raises
    ------
    DeclarationError
        When a frame is missing, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    FoldedGuide : A folded guide.
    LeafSpring : A leaf spring.

    Examples
    --------
    >>> from flexure.blocks.multibody import PlantBuilder, SpatialInertia
    >>> builder = PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> table = builder.add_body("table", SpatialInertia.point_mass(0.5))
    >>> guide = ParallelGuide(
    ...     "guide",
    ...     builder.world,
    ...     builder.add_frame("ends", table, (0.1, 0.0, 0.0)),
    ...     distance=0.08,
    ...     length=0.1,
    ...     width=0.05,
    ...     thickness=5e-4,
    ...     material=Material.common("stainless steel 301"),
    ... )
    >>> builder.add_assembly(guide)
    <ParallelGuide 'guide'>
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        distance: float,
        length: float,
        width: float,
        thickness: float,
        material: Material,
        **options: Any,
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        half = 0.5 * _positive(distance, f"Cannot make ParallelGuide '{name}' with distance", "m")
        dimensions = {"length": length, "width": width, "thickness": thickness}
        options = {**dimensions, "material": material, **options}
        self._tie(
            self._leaf(number, frame_a, frame_c, (0.0, y, 0.0), 0.0, **options)
            for number, y in ((1, half), (2, -half))
        )


class FoldedGuide(FlexureAssembly):
    """A folded guide: two parallel guides in series, so that C moves straight along y.

    Two outer leaves lead from A along x to a shuttle, and two inner leaves from there back to C,
    so that both shorten alike: C goes straight. Unstressed, C coincides with A. With the length L
    and EI of each leaf, and where C does not turn, the stiffness along y is::

        k = 12 EI / L³

    The shuttle moves along with half of the stroke. Along x it is held by the leaves alone, and
    what holds C there gets soft with the stroke.

    Parameters
    ----------
    name : str
        Name of the assembly; leaves are ``<name>_leaf1`` to ``<name>_leaf4``, first the outer
        ones, and the body is ``<name>_shuttle``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    outer_distance, inner_distance : float
        Distances along y of the two outer leaves, and of the two inner ones, in m.
    shuttle : SpatialInertia
        Mass, center of mass and inertia of the shuttle, in a frame that unstressed is A;
        ``.shifted((length, 0, 0))`` puts a solid to the ends of the leaves.
    length, width, thickness : float
        Dimensions of all leaves in m.
    material : Material
        Their material.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The four leaves.
    length, width, thickness : TiedParameter
        Dimensions of all leaves in contexts. The center of mass of the shuttle does not follow the
        length.
    shuttle : Body
        The body between them.

    Raises
    ------
    DeclarationError
        When a frame is missing, the shuttle is no `SpatialInertia`, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    ParallelGuide : A parallel guide.

    Examples
    --------
    >>> from flexure.blocks.multibody import PlantBuilder, SpatialInertia
    >>> builder = PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> table = builder.add_body("table", SpatialInertia.point_mass(0.1))
    >>> guide = FoldedGuide(
    ...     "guide",
    ...     builder.world,
    ...     table,
    ...     outer_distance=0.06,
    ...     inner_distance=0.02,
    ...     shuttle=SpatialInertia.solid_box(0.02, size=(0.005, 0.06, 0.01)).shifted((0.05, 0, 0)),
    ...     length=0.05,
    ...     width=0.01,
    ...     thickness=3e-4,
    ...     material=Material.common("stainless steel 301"),
    ... )
    >>> builder.add_assembly(guide).shuttle
    <Body 'guide_shuttle'>
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        outer_distance: float,
        inner_distance: float,
        shuttle: SpatialInertia,
        length: float,
        width: float,
        thickness: float,
        material: Material,
        **options: Any,
    ) -> None:
        super().__init__(name, frame_a, frame_c)
        attempt = f"Cannot make FoldedGuide '{name}'"
        outer = 0.5 * _positive(outer_distance, f"{attempt} with outer_distance", "m")
        inner = 0.5 * _positive(inner_distance, f"{attempt} with inner_distance", "m")
        if not isinstance(shuttle, SpatialInertia):
            raise DeclarationError(attempt, expected="a SpatialInertia", found=repr(shuttle))
        self.shuttle = Body(f"{name}_shuttle", shuttle)
        self.bodies = (self.shuttle,)
        self.joints = (QuaternionFloatingJoint(self.shuttle.name, self.frame_a, self.shuttle),)
        dimensions = {"length": length, "width": width, "thickness": thickness}
        options = {**dimensions, "material": material, **options}
        leaves = []
        for number, y in ((1, outer), (2, -outer)):
            on, place = (frame_a, self.shuttle), (0.0, y, 0.0)
            leaves.append(self._leaf(number, *on, place, 0.0, ends=(0.0, 1.0), **options))
        for number, y in ((3, inner), (4, -inner)):
            back, place = (self.shuttle, frame_c), (0.0, y, 0.0)
            leaves.append(self._leaf(number, *back, place, np.pi, ends=(-1.0, 0.0), **options))
        self._tie(leaves)


def _positive(value: float, attempt: str, unit: str) -> float:
    """Return a number that is positive."""
    return bounded(value, attempt, lower=0.0, exclusive=True, unit=unit)


def _between(value: float, upper: float, attempt: str) -> float:
    """Return a number between zero and something."""
    return bounded(value, attempt, lower=0.0, upper=upper, exclusive=True)
