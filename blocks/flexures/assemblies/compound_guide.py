"""A compound guide: two folded guides that face each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.assemblies.flexure_assemblies import FlexureAssembly, FoldedGuide
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.math import z_rotation
from flexure.blocks.multibody.bodies.bodies import Frame, FrameLike
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.diagrams.values.arrays import bounded


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
        attempt = f"Cannot make CompoundGuide '{name}' with root_distance"
        root = 0.5 * bounded(root_distance, attempt, lower=0.0, exclusive=True, unit="m")
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
