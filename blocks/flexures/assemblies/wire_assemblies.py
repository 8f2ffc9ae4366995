"""Hexapods and bipods of wires or struts, which carry a platform by tension and compression."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from flexure.blocks.flexures.assemblies.beam_assembly import OF_SHAPE, BeamAssembly
from flexure.blocks.flexures.beams.leaf_spring import WireFlexure
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.arrays import FloatArray


class _WireAssembly(BeamAssembly):
    """Wires from a base on A to a platform on C, which is above it by a height along z."""

    _KIND = WireFlexure

    def _raise(self, height: float) -> None:
        """Put C above A."""
        self.height = self._positive("height", height)
        self._origins[id(self.frame_c)] = np.array([0.0, 0.0, self.height])

    def _wire(self, start: FloatArray, end: FloatArray) -> None:
        """Add a wire between two points."""
        along = end - start
        across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        across /= np.linalg.norm(across)
        self._beam(self.frame_a, self.frame_c, start, end, across=across)


class Hexapod(_WireAssembly):
    """A hexapod: six wires or struts in pairs carry a platform without play.

    The wires lead from pairs of points on a circle of A to pairs on a circle of C. Unstressed, C
    has the orientation of A and is at (0, 0, height) in it. With the length L and EA of each wire,
    the radii r_b and r_p and the angle δ about z from the base of a wire to its end, the stiffness
    at C along z, along x and y, and about z is, where wires only stretch::

        L² = h² + r_b² + r_p² - 2 r_b r_p cos(δ),    δ = (π/3) - (β + γ)/2
        k_z = 6 EA h²/L³,   k_x = k_y = 3 EA (L² - h²)/L³,   k_θ = 6 EA (r_b r_p sin(δ))²/L³

    Bending of the wires adds the order of EI/(EA L²) of it.

    Parameters
    ----------
    name : str
        Name of the assembly; the wires are ``<name>_leaf1`` to ``<name>_leaf6``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    base_radius, platform_radius, height : float
        Radii r_b and r_p of the circles and their distance h along z, in m.
    base_angle, platform_angle : float
        Angles β and γ between the two points of a pair, above 0 and below 2π/3, in rad.
    diameter : float
        Diameter of the wires in m.
    material : Material
        Their material.
    **options
        Further arguments of the wires, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of WireFlexure
        The wires.
    diameter : TiedParameter
        Dimension of all wires in contexts.

    Raises
    ------
    DeclarationError
        When a frame is missing, or as `WireFlexure` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    Bipod : Two wires.

    Notes
    -----
    The stiffness is the sum of EA/L times the outer products of the lines of the wires, as in
    J.-P. Merlet, Parallel Robots (2006). Where δ is zero, k_θ vanishes.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("mount", gravity=(0.0, 0.0, 0.0))
    >>> disk = fx.SpatialInertia.solid_cylinder(1.0, radius=0.05, length=0.01)
    >>> platform = builder.add_body("platform", disk)
    >>> hexapod = fx.Hexapod(
    ...     "legs",
    ...     builder.world,
    ...     platform,
    ...     base_radius=0.06,
    ...     platform_radius=0.05,
    ...     height=0.05,
    ...     base_angle=0.3,
    ...     platform_angle=0.3,
    ...     diameter=0.002,
    ...     material=fx.Material.common("stainless steel 301"),
    ... )
    >>> len(builder.add_assembly(hexapod).leaves)
    6
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        base_radius: float,
        platform_radius: float,
        height: float,
        base_angle: float,
        platform_angle: float,
        diameter: float,
        material: Material,
        **options: Any,
    ) -> None:
        options = {"diameter": diameter, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        self._raise(height)
        r_b, r_p = self._lengths(base_radius=base_radius, platform_radius=platform_radius)
        beta, gamma = (
            self._positive(f"{what}_angle", angle, "rad", upper=2.0 * np.pi / 3.0)
            for what, angle in (("base", base_angle), ("platform", platform_angle))
        )
        for middle, sign in product(2.0 * np.pi * np.arange(3) / 3.0, (1.0, -1.0)):
            start = middle + 0.5 * sign * beta
            end = middle + sign * (np.pi / 3.0 - 0.5 * gamma)
            foot = r_b * np.array([np.cos(start), np.sin(start), 0.0])
            self._wire(foot, np.array([r_p * np.cos(end), r_p * np.sin(end), self.height]))
        self._tie(self.leaves, fixed=OF_SHAPE)


class Bipod(_WireAssembly):
    """Two wires or struts that hold a platform in their plane and let it move out.

    The wires lie in the plane x-z, symmetric to z. Unstressed, C has the orientation of A and is at
    (0, 0, height) in it. With the length L and EA of each wire, the distances b on A and c on C and
    the height h, the stiffness at C along z and x is, where wires only stretch and C does not
    rotate::

        L² = h² + (b - c)²/4,    k_z = 2 EA h²/L³,    k_x = EA (b - c)²/(2 L³)

    Along y and in rotation it is that of bending. Three bipods hold a mirror without constraint.

    Parameters
    ----------
    name : str
        Name of the assembly; the wires are ``<name>_leaf1`` and ``<name>_leaf2``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    base_distance, platform_distance, height : float
        Distances b and c of the wires along x on A and on C, and the height h along z, in m.
    diameter : float
        Diameter of the wires in m.
    material : Material
        Their material.
    **options
        Further arguments of the wires, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of WireFlexure
        The wires.
    diameter : TiedParameter
        Dimension of all wires in contexts.

    Raises
    ------
    DeclarationError
        When a frame is missing, or as `WireFlexure` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    Hexapod : Three bipods in one.

    Notes
    -----
    See P. R. Yoder, Mounting Optics in Optical Instruments (2008), for mirrors on bipods.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("mount", gravity=(0.0, 0.0, 0.0))
    >>> mirror = builder.add_body(
    ...     "mirror", fx.SpatialInertia.solid_cylinder(1.0, radius=0.05, length=0.01)
    ... )
    >>> bipod = fx.Bipod(
    ...     "foot",
    ...     builder.world,
    ...     mirror,
    ...     base_distance=0.03,
    ...     platform_distance=0.005,
    ...     height=0.03,
    ...     diameter=0.002,
    ...     material=fx.Material.common("stainless steel 301"),
    ... )
    >>> len(builder.add_assembly(bipod).leaves)
    2
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        base_distance: float,
        platform_distance: float,
        height: float,
        diameter: float,
        material: Material,
        **options: Any,
    ) -> None:
        options = {"diameter": diameter, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        self._raise(height)
        b = 0.5 * self._positive("base_distance", base_distance)
        c = 0.5 * self._positive("platform_distance", platform_distance)
        for sign in (1.0, -1.0):
            start = np.array([sign * b, 0.0, 0.0])
            self._wire(start, np.array([sign * c, 0.0, self.height]))
        self._tie(self.leaves, fixed=OF_SHAPE)
