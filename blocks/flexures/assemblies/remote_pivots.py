"""Pivots and guides of inclined leaves, whose lines meet at a center outside of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.assemblies.beam_assembly import BeamAssembly
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.multibody.bodies.bodies import Body, FrameLike
from flexure.blocks.multibody.bodies.inertia import SpatialInertia


class _InclinedLeaves(BeamAssembly):
    """Pairs of leaves whose lines meet on the x axis of A."""

    def _pair(
        self, outer: FrameLike, inner: FrameLike, half: float, span: tuple[float, float], x: float
    ) -> None:
        """Add two leaves towards the center at x, from one distance from it to a smaller one."""
        for sign in (1.0, -1.0):
            u = np.array([np.cos(half), sign * np.sin(half), 0.0])
            center = np.array([x, 0.0, 0.0])
            self._beam(outer, inner, center - span[0] * u, center - span[1] * u, rests=1.0)


class RemoteCenterHinge(_InclinedLeaves):
    """Two inclined leaves that let C rotate about a center outside of them.

    The leaves lead from A towards the center and end on C before it. Unstressed, A and C coincide,
    with the origin at the center and x along the bisector of the leaves, towards the center. With
    the length L and EI of each leaf, the angle α between them, the distance d of their ends on C
    from the center and λ = 1 + d/L, the stiffness about z and the shift of the center along x at
    the angle φ are::

        k = 8 EI (1 - 3 λ + 3 λ²)/L
        x = -(9 λ² - 9 λ + 1) L φ²/(15 cos(α/2))

    Parameters
    ----------
    name : str
        Name of the assembly; the leaves are ``<name>_leaf1`` and ``<name>_leaf2``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    distance : float
        Distance d > 0 from the ends of the leaves on C to the center, in m.
    length, width, thickness : float
        Dimensions of both leaves in m.
    material : Material
        Their material.
    angle : float
        Angle α between the leaves in rad, above 0 and below π; a right angle by default.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The two leaves.
    length, width, thickness : TiedParameter
        Dimensions of both leaves in contexts; their outer ends follow the length.

    Raises
    ------
    DeclarationError
        When a frame is missing, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    CrossPivot : Leaves that cross at the center.
    RobertsGuide : The same leaves as a guide.

    Notes
    -----
    The formulas hold for small angles, without deflection by shear, where nothing but a moment
    loads C. They are those of a generalized cross pivot, W. H. Wittrick, The properties of crossed
    flexure pivots, and the influence of the point at which the strips cross, Aeronautical
    Quarterly 2 (1951) 272-292, with the crossing beyond the leaves.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("hinge", gravity=(0.0, 0.0, 0.0))
    >>> arm = builder.add_body("arm", fx.SpatialInertia.solid_box(0.1, size=(0.02, 0.02, 0.02)))
    >>> steel = fx.Material.common("stainless steel 301")
    >>> size = {"length": 0.03, "width": 0.01, "thickness": 3e-4, "material": steel}
    >>> hinge = fx.RemoteCenterHinge("hinge", builder.world, arm, distance=0.015, **size)
    >>> builder.add_assembly(hinge)
    <RemoteCenterHinge 'hinge'>
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
        angle: float = 0.5 * np.pi,
        **options: Any,
    ) -> None:
        options = {"width": width, "thickness": thickness, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        near, L = self._lengths(distance=distance, length=length)
        half = 0.5 * self._positive("angle", angle, "rad", upper=np.pi)
        self._pair(self.frame_a, self.frame_c, half, (near + L, near), 0.0)
        self._tie(self.leaves)


class RobertsGuide(_InclinedLeaves):
    """Two inclined leaves that lead a point of C in a straight line along y of A.

    The leaves lead from A towards a center on the x axis, and end on C before it. The coupler C
    rotates about the center, and its point on the other side of the leaves moves straight to third
    order. Unstressed, A and C coincide, with the origin at this point. With the length L and EI of
    each leaf, the distances b of their ends on A and c < b on C along y, sin β = (b - c)/(2 L) and
    λ = b/(b - c), the distance r of the center and the stiffness along y are::

        r = 2 L (9 λ² - 9 λ + 1)/(15 cos β),    k = 8 EI (1 - 3 λ + 3 λ²)/(L r²)

    C rotates by the angle -y/r about z.

    Parameters
    ----------
    name : str
        Name of the assembly; the leaves are ``<name>_leaf1`` and ``<name>_leaf2``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    base_distance, coupler_distance : float
        Distances b along y of the ends on A, and c of those on C, b > c > 0 and b - c < 2 L, in m.
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
        Dimensions of both leaves in contexts; their outer ends follow the length at the same angle,
        so that the base distance changes with it.
    center_distance : float
        Distance r of the center of rotation from the guided point, along x, in m, of the default
        dimensions.

    Raises
    ------
    DeclarationError
        When a frame is missing, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite, or the leaves cannot reach the coupler.

    See Also
    --------
    ParallelGuide : A guide without rotation, which is not straight.
    RemoteCenterHinge : The same leaves as a hinge.

    Notes
    -----
    The stiffness is that of `RemoteCenterHinge` about the center, for a force at the guided point
    and small strokes, where C is free to rotate; r is the distance at which the descent r φ²/2 of
    a rotating point cancels the shift of its center.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> table = builder.add_body("table", fx.SpatialInertia.solid_box(0.1, size=(0.05, 0.05, 0.02)))
    >>> steel = fx.Material.common("stainless steel 301")
    >>> size = {"length": 0.04, "width": 0.01, "thickness": 3e-4, "material": steel}
    >>> guide = fx.RobertsGuide(
    ...     "guide", builder.world, table, base_distance=0.06, coupler_distance=0.02, **size
    ... )
    >>> print(f"{guide.center_distance:.4f} m")
    0.0477 m
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        base_distance: float,
        coupler_distance: float,
        length: float,
        width: float,
        thickness: float,
        material: Material,
        **options: Any,
    ) -> None:
        options = {"width": width, "thickness": thickness, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        b, c = self._lengths(base_distance=base_distance, coupler_distance=coupler_distance)
        L = self._positive("length", length)
        self._require(
            0.0 < b - c < 2.0 * L,
            "a base_distance above the coupler_distance, by less than twice the length",
            f"{b:.6g} m and {c:.6g} m with leaves of {L:.6g} m",
        )
        half, ratio = np.arcsin(0.5 * (b - c) / L), b / (b - c)
        square = 9.0 * ratio**2 - 9.0 * ratio + 1.0
        self.center_distance = float(2.0 * L * square / (15.0 * np.cos(half)))
        span = ratio * L, (ratio - 1.0) * L
        self._pair(self.frame_a, self.frame_c, half, span, self.center_distance)
        self._tie(self.leaves)


class ButterflyPivot(_InclinedLeaves):
    """Two remote-center hinges in series, whose shifts of the center cancel.

    One pair of leaves leads from A to a shuttle, and a pair on the other side of the center from
    the shuttle to C; both rotate by half of the angle. Unstressed, A and C coincide, with the
    origin at the common center and x along the bisectors. With the symbols of
    `RemoteCenterHinge`, the stiffness about z is::

        k = 4 EI (1 - 3 λ + 3 λ²)/L

    The shuttle moves freely between the hinges; it adds a mode of its own.

    Parameters
    ----------
    name : str
        Name of the assembly; leaves are ``<name>_leaf1`` to ``<name>_leaf4``, and the body is
        ``<name>_shuttle``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    distance : float
        Distance d > 0 from the inner ends of the leaves to the center, in m.
    shuttle : SpatialInertia
        Mass, center of mass and inertia of the shuttle, in a frame that unstressed is A.
    length, width, thickness : float
        Dimensions of all leaves in m.
    material : Material
        Their material.
    angle : float
        Angle between the leaves of a pair in rad, above 0 and below π; a right angle by default.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The four leaves.
    length, width, thickness : TiedParameter
        Dimensions of all leaves in contexts; their outer ends follow the length.
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
    RemoteCenterHinge : One pair of leaves.

    Notes
    -----
    After S. Henein, P. Spanoudakis, S. Droz, L. I. Myklebust and E. Onillon, Flexure pivot for
    aerospace mechanisms, Proceedings of the 10th European Space Mechanisms and Tribology Symposium
    (2003) 285-288, in its simplest form of two hinges. The formula is that of small angles.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("pivot", gravity=(0.0, 0.0, 0.0))
    >>> box = fx.SpatialInertia.solid_box(0.01, size=(0.02, 0.02, 0.01))
    >>> arm = builder.add_body("arm", box)
    >>> steel = fx.Material.common("stainless steel 301")
    >>> size = {"length": 0.03, "width": 0.01, "thickness": 3e-4, "material": steel}
    >>> pivot = fx.ButterflyPivot("pivot", builder.world, arm, distance=0.01, shuttle=box, **size)
    >>> builder.add_assembly(pivot).shuttle
    <Body 'pivot_shuttle'>
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        distance: float,
        shuttle: SpatialInertia,
        length: float,
        width: float,
        thickness: float,
        material: Material,
        angle: float = 0.5 * np.pi,
        **options: Any,
    ) -> None:
        options = {"width": width, "thickness": thickness, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        near, L = self._lengths(distance=distance, length=length)
        half = 0.5 * self._positive("angle", angle, "rad", upper=np.pi)
        self.shuttle: Body = self._body("shuttle", shuttle, np.zeros(3))
        self._pair(self.frame_a, self.shuttle, half, (near + L, near), 0.0)
        self._pair(self.shuttle, self.frame_c, half, (-near - L, -near), 0.0)
        self._tie(self.leaves)
