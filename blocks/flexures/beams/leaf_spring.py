"""Beams of common shapes, by their dimensions: leaf springs and wires."""

from __future__ import annotations

from typing import Any

from flexure.blocks.flexures.beams.beam import Beam
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.rectangle_section import RectangleSection
from flexure.blocks.flexures.sections.sections import CircleSection
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.diagrams.values.parameters import NumericParameter


class LeafSpring(Beam):
    """A leaf spring: a `Beam` with a rectangular section, thin along y, wide along z.

    Around its unstressed state, its stiffness with the length L is, without deflection by shear::

        k_x = E w t / L             along x
        k_y = E w t³ / L³           along y, if C does not turn
        k_θ = E w t³ / (12 L)       about z, if nothing else loads C

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C; the leaf is along x of A.
    length, width, thickness : float
        Dimensions L along x, w along z and t along y, in m; parameters.
    material : Material
        The material; its constants are parameters in Pa and kg/m^3, as those of `Beam`.
    **options
        Further arguments of `Beam`.

    Raises
    ------
    DeclarationError
        As that of `Beam`.
    ValueRefusedError
        As that of `Beam`.
    EvaluationError
        As that of `Beam`.

    See Also
    --------
    Beam : Any section and options.
    WireFlexure : A round section.
    NotchHinge : A short hinge.
    LumpedHinge : A torsion spring as a model.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> leaf = LeafSpring(
    ...     "leaf",
    ...     Body("frame"),
    ...     Body("table"),
    ...     length=0.1,
    ...     width=0.02,
    ...     thickness=0.0005,
    ...     material=Material.common("structural steel S235"),
    ... )
    >>> context = leaf.create_default_context()
    >>> leaf.thickness.set(context, 0.0004)
    """

    width: NumericParameter
    thickness: NumericParameter

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
        **options: Any,
    ) -> None:
        section = RectangleSection(width=width, thickness=thickness)
        super().__init__(
            name, frame_a, frame_c, section=section, material=material, length=length, **options
        )


class WireFlexure(Beam):
    """A wire: a `Beam` with a circular section, equally stiff in all bending planes.

    Around its unstressed state, its stiffness with the length L and the diameter D is, without
    deflection by shear::

        k_x = π E D² / (4 L)         along x
        k_y = 3 π E D⁴ / (16 L³)     along y or z, if C does not turn
        k_θ = π E D⁴ / (64 L)        about y or z, if nothing else loads C
        k_t = π G D⁴ / (32 L)        about x

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C; the wire is along x of A.
    length, diameter : float
        Dimensions in m; parameters.
    material : Material
        The material; its constants are parameters in Pa and kg/m^3, as those of `Beam`.
    **options
        Further arguments of `Beam`.

    Raises
    ------
    DeclarationError
        As that of `Beam`.
    ValueRefusedError
        As that of `Beam`.
    EvaluationError
        As that of `Beam`.

    See Also
    --------
    Beam : A slender elastic beam from frame A to frame C.

    Examples
    --------
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> steel = Material.common("stainless steel 301")
    >>> wire = WireFlexure(
    ...     "wire", Body("frame"), Body("table"), length=0.05, diameter=0.0006, material=steel
    ... )
    >>> wire.diameter.default
    np.float64(0.0006)
    """

    diameter: NumericParameter

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        length: float,
        diameter: float,
        material: Material,
        **options: Any,
    ) -> None:
        section = CircleSection(diameter=diameter)
        super().__init__(
            name, frame_a, frame_c, section=section, material=material, length=length, **options
        )
