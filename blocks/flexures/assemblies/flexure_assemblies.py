"""Assemblies of leaf springs: what pivots and guides of flexures are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.assemblies.beam_assembly import FlexureAssembly
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.math import z_rotation
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.diagrams.values.arrays import bounded


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
        part = self._positive("crossing", crossing, "", upper=1.0)
        half = 0.5 * self._positive("angle", angle, "rad", upper=np.pi)
        offset = bounded(gap, f"{self._attempt} with gap", unit="m")
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
        half = 0.5 * self._positive("distance", distance)
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
        outer = 0.5 * self._positive("outer_distance", outer_distance)
        inner = 0.5 * self._positive("inner_distance", inner_distance)
        self.shuttle: Body = self._body("shuttle", shuttle)
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


class CompoundGuide(FlexureAssembly):
    """A compound guide: two folded guides on opposite sides lead C straight along y.

    One folded guide is at positive x, its mirror image at negative x, so that C does not rotate
    under a force along y. Unstressed, C coincides with A. With the length L and EI of each leaf,
    the stiffness along y is::

        k = 24 EI/L³

    Each shuttle moves along with half of the stroke, held along x by its leaves alone.

    Parameters
    ----------
    name : str
        Name of the assembly; its halves are `FoldedGuide` with the names ``<name>_right`` at
        positive x and ``<name>_left``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    root_distance : float
        Distance along x of the ends of the leaves on A and C of both halves, in m.
    outer_distance, inner_distance : float
        Distances along y of the two outer leaves of a half, and of the two inner ones, in m.
    shuttle : SpatialInertia
        Mass, center of mass and inertia of each shuttle, in a frame at the roots of its leaves,
        with x along them.
    length, width, thickness : float
        Dimensions of all leaves in m.
    material : Material
        Their material.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The eight leaves.
    length, width, thickness : TiedParameter
        Dimensions of all leaves in contexts, as of `FoldedGuide`.
    halves : tuple of FoldedGuide
        The half at positive x, and its mirror image.

    Raises
    ------
    DeclarationError
        When a frame is missing, the shuttle is no `SpatialInertia`, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    FoldedGuide : One half.

    Notes
    -----
    For such suspensions see S. Henein, Conception des guidages flexibles (2001).

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> box = fx.SpatialInertia.solid_box(0.02, size=(0.005, 0.06, 0.01))
    >>> table = builder.add_body("table", box)
    >>> guide = fx.CompoundGuide(
    ...     "guide",
    ...     builder.world,
    ...     table,
    ...     root_distance=0.02,
    ...     outer_distance=0.06,
    ...     inner_distance=0.02,
    ...     shuttle=box.shifted((0.05, 0.0, 0.0)),
    ...     length=0.05,
    ...     width=0.01,
    ...     thickness=3e-4,
    ...     material=fx.Material.common("stainless steel 301"),
    ... )
    >>> len(builder.add_assembly(guide).leaves)
    8
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        root_distance: float,
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
        root = 0.5 * self._positive("root_distance", root_distance)
        options |= {"outer_distance": outer_distance, "inner_distance": inner_distance}
        options |= {"length": length, "width": width, "thickness": thickness, "material": material}
        halves = []
        for half, angle, x in (("right", 0.0, root), ("left", np.pi, -root)):
            ends = (
                Frame(f"{name}_{half}_root_{label}", frame, (z_rotation(angle), (x, 0.0, 0.0)))
                for label, frame in (("A", self.frame_a), ("C", self.frame_c))
            )
            halves.append(FoldedGuide(f"{name}_{half}", *ends, shuttle=shuttle, **options))
        self.halves = tuple(halves)
        self.bodies = [body for half in halves for body in half.bodies]
        self.joints = [joint for half in halves for joint in half.joints]
        self._tie(leaf for half in halves for leaf in half.leaves)
