"""Plane springs: arms cut from a sheet, which guide a hub across the sheet."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.assemblies.beam_assembly import OF_SHAPE, BeamAssembly
from flexure.blocks.flexures.bodies.plate_mesh import arc_radius
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.math import z_rotation
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.arrays import check_size


class _PlaneSpring(BeamAssembly):
    """Equal arms in the plane x-y, from a rim of A to a hub of C."""

    def _rim(self, arms: int, inner_radius: float, outer_radius: float) -> None:
        """Store the number of arms, and the radii between which they are."""
        self.num_arms = check_size(arms, f"the arms of plane spring '{self.name}'", minimum=2)
        self.inner, self.outer = self._lengths(inner_radius=inner_radius, outer_radius=outer_radius)
        self._require(
            self.inner < self.outer,
            "an inner_radius below the outer_radius",
            f"{self.inner:.6g} m and {self.outer:.6g} m",
        )

    def _arms(self, start: float, end: float, sweep: float = 0.0, **options: Any) -> None:
        """Add the arms, from one angle on the rim to another on the hub, with their sweep."""
        half = z_rotation(-0.5 * sweep) if sweep else None
        for turn in 2.0 * np.pi * np.arange(self.num_arms) / self.num_arms:
            rim, hub = (
                radius * np.array([np.cos(angle + turn), np.sin(angle + turn), 0.0])
                for radius, angle in ((self.outer, start), (self.inner, end))
            )
            across = np.cross(hub - rim, (0.0, 0.0, 1.0)) / np.linalg.norm(hub - rim)
            self._beam(self.frame_a, self.frame_c, rim, hub, across=across, turned=half, **options)
        self._tie(self.leaves, fixed=OF_SHAPE)


class MembraneFlexure(_PlaneSpring):
    """A membrane flexure: straight arms in a plane guide C along z of A.

    The arms lead from a rim of A to a hub of C, in the plane x-y, with their thickness along z.
    Unstressed, A and C coincide, with the origin at the center. Their angle from the radii lets the
    hub rotate about z as it moves, so that the arms do not have to stretch. With EI of bending in
    z and the length L of each of n arms, the stiffness along z of small strokes is::

        L = r_o cos(γ) - √(r_i² - r_o² sin(γ)²),    k = 12 n EI/L³

    Parameters
    ----------
    name : str
        Name of the assembly; the arms are ``<name>_leaf1`` and so on.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    inner_radius, outer_radius : float
        Radii r_i of the hub and r_o of the rim, where the arms end, in m.
    width, thickness : float
        Dimensions of the arms in the plane and along z, in m.
    material : Material
        Their material.
    arms : int
        Number n of arms, at least 2; three by default.
    angle : float
        Angle γ of each arm from the radius at the rim, in rad, above -π/2 and below π/2, with
        r_o sin(γ) below r_i; 0 by default, for which strokes stretch the arms.
    **options
        Further arguments of the arms, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The arms.
    width, thickness : TiedParameter
        Dimensions of all arms in contexts.

    Raises
    ------
    DeclarationError
        When a frame is missing, there are fewer than two arms, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite, or no arm reaches the hub.

    See Also
    --------
    SpiralFlexure : Curved arms, for longer strokes.

    Notes
    -----
    The formula is that of guided beams, as in S. T. Smith, Flexures: Elements of Elastic
    Mechanisms (2000), for strokes below the thickness of radial arms. Two arms let the hub tilt.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("coil", gravity=(0.0, 0.0, 0.0))
    >>> hub = builder.add_body(
    ...     "hub", fx.SpatialInertia.solid_cylinder(0.1, radius=0.01, length=0.02)
    ... )
    >>> steel = fx.Material.common("stainless steel 301")
    >>> size = {"width": 0.005, "thickness": 2e-4, "material": steel}
    >>> spring = fx.MembraneFlexure(
    ...     "spring", builder.world, hub, inner_radius=0.01, outer_radius=0.03, **size
    ... )
    >>> len(builder.add_assembly(spring).leaves)
    3
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        inner_radius: float,
        outer_radius: float,
        width: float,
        thickness: float,
        material: Material,
        arms: int = 3,
        angle: float = 0.0,
        **options: Any,
    ) -> None:
        options = {"width": width, "thickness": thickness, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        self._rim(arms, inner_radius, outer_radius)
        tilt = self._positive("angle", angle, "rad", lower=-0.5 * np.pi, upper=0.5 * np.pi)
        reach = self.outer * np.sin(tilt)
        self._require(
            abs(reach) < self.inner,
            f"an angle at which arms reach the hub, below {np.arcsin(self.inner / self.outer):.4g}",
            f"{tilt:.6g} rad",
        )
        self._arms(0.0, np.arcsin(reach / self.inner) - tilt)


class SpiralFlexure(_PlaneSpring):
    """A spiral flexure: arms that are arcs in a plane guide C along z of A.

    Each arm leaves the hub of C along its circumference and reaches the rim of A as one arc, in the
    plane x-y, with the thickness along z. Unstressed, A and C coincide, with the origin at the
    center. With the sweep α of the arc, its radius ρ, EI of bending in z and GJ of each of n arms,
    the stiffness along z of small strokes is::

        ρ = r_i + d,  d = (√(r_i² + 2 (r_o² - r_i²)/(1 - cos α)) - r_i)/2
        n/k = ρ³ (α/GJ - (4 sin²(α/2)/GJ²)/((α - sin α)/(2 EI) + (α + sin α)/(2 GJ)))

    The hub rotates about z as it moves.

    Parameters
    ----------
    name : str
        Name of the assembly; the arms are ``<name>_leaf1`` and so on.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    inner_radius, outer_radius : float
        Radii r_i of the hub and r_o of the rim, where the arms end, in m.
    sweep : float
        Angle α by which an arm turns, in rad, above 0 and at most π; at π it ends along the rim.
    width, thickness : float
        Dimensions of the arms in the plane and along z, in m.
    material : Material
        Their material.
    arms : int
        Number n of arms, at least 2; three by default.
    segments : int
        Segments of each arm, 4 by default, for errors of the stiffness below 1 %.
    **options
        Further arguments of the arms, such as ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The arms.
    width, thickness : TiedParameter
        Dimensions of all arms in contexts.
    radius : float
        Radius ρ of the arcs in m.

    Raises
    ------
    DeclarationError
        When a frame is missing, there are fewer than two arms, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    MembraneFlexure : Straight arms.

    Notes
    -----
    The stiffness follows from Castigliano's theorem for an arc whose ends do not tilt, as for
    curved beams in W. C. Young and R. G. Budynas, Roark's Formulas for Stress and Strain, chapter
    9. It neglects deflection by shear, and the arms must not overlap: at n arms they have the room
    of the angle 2π/n at each radius, which is not checked.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("coil", gravity=(0.0, 0.0, 0.0))
    >>> hub = builder.add_body(
    ...     "hub", fx.SpatialInertia.solid_cylinder(0.1, radius=0.01, length=0.02)
    ... )
    >>> steel = fx.Material.common("stainless steel 301")
    >>> size = {"width": 0.002, "thickness": 2e-4, "material": steel}
    >>> spring = fx.SpiralFlexure(
    ...     "spring", builder.world, hub, inner_radius=0.01, outer_radius=0.03, sweep=2.0, **size
    ... )
    >>> print(f"{spring.radius:.5f} m")
    0.02253 m
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        inner_radius: float,
        outer_radius: float,
        sweep: float,
        width: float,
        thickness: float,
        material: Material,
        arms: int = 3,
        segments: int = 4,
        **options: Any,
    ) -> None:
        options |= {"width": width, "thickness": thickness, "material": material}
        options["segments"] = segments
        super().__init__(name, frame_a, frame_c, **options)
        self._rim(arms, inner_radius, outer_radius)
        turn = self._positive("sweep", sweep, "rad", upper=float(np.nextafter(np.pi, 4.0)))
        self.radius = arc_radius(self.inner, self.outer, turn)
        offset = self.inner - self.radius
        rim = np.arctan2(self.radius * np.sin(turn), offset + self.radius * np.cos(turn))
        shape = {"length": self.radius * turn, "curvature": [-1.0 / self.radius, 0.0]}
        self._arms(float(rim), 0.0, turn, **shape)
