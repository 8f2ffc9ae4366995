"""Amplifiers of small displacements, such as those of piezo stacks: bridges and levers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from flexure.blocks.flexures.assemblies.beam_assembly import OF_SHAPE, BeamAssembly
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.multibody.bodies.bodies import Body, FrameLike, as_frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia


class BridgeAmplifier(BeamAssembly):
    """A bridge: two sides that are pushed apart pull C towards A, many times as far.

    Four arms at an angle θ to x form a flat rhomb between A at the bottom, two sides, and C on top.
    Each arm is a rigid link with a leaf at both ends, or one leaf. Unstressed, C has the
    orientation of A, and stands at (0, 2 L sin θ + side_height, 0) in it. With E, I and the area S
    of leaves of the length l, the ratio of the displacement of C to that of the sides apart, and
    the stiffness against the drive while C is free, are::

        k_a = E S/(2 l),    k_b = 12 EI/(L³ - (L - 2 l)³)
        ratio = (k_a - k_b) sin θ cos θ/(k_a sin²θ + k_b cos²θ)
        k = k_a k_b/(k_a sin²θ + k_b cos²θ)

    Rigid arms on pins have the ratio cot θ. C needs a guide along y, or another amplifier on it:
    the sides alone let it shift along x only against the arms.

    Parameters
    ----------
    name : str
        Name of the assembly; leaves are ``<name>_leaf1`` and so on, arm by arm, and bodies are
        ``<name>_left``, ``<name>_right`` and, of arms with links, ``<name>_link1`` to 4.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    length : float
        Length L of each arm, with its leaves, in m.
    angle : float
        Angle θ of the arms to x in rad, above 0 and below π/4; output and sides approach each
        other with thinner leaves than cot θ says where it is small.
    root_distance : float
        Distance along x of the two arms on A, and of those on C, in m.
    side_height : float
        Distance along y of the two arms on a side, in m.
    sides : SpatialInertia
        Mass, center of mass and inertia of each side, in a frame at the middle of its arms.
    width, thickness : float
        Dimensions of the leaves in m.
    material : Material
        Their material.
    hinge_length : float, optional
        Length l of the leaves at both ends of an arm, below L/2 in m. Without it, each arm is one
        leaf, which has the formulas with l = L/2.
    link : SpatialInertia, optional
        Mass, center of mass and inertia of the link of an arm, in a frame at its middle parallel to
        A; without it, links have the mass of the halves of their leaves only.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The leaves.
    width, thickness : TiedParameter
        Dimensions of all leaves in contexts.
    left, right : Body
        The sides at smaller and at greater x, with their frames at the middle of their arms.

    Raises
    ------
    DeclarationError
        When a frame is missing, an inertia is no `SpatialInertia`, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite, or leaves overlap.

    See Also
    --------
    PiezoStack : The drive between the sides.
    LeverAmplifier : A lever.

    Notes
    -----
    The formulas are the minimum of the energy of arms whose ends keep their orientation, for small
    displacements and without shear, as in H.-W. Ma, S.-M. Yao, L.-Q. Wang and Z. Zhong, Analysis of
    the displacement amplification ratio of bridge-type flexure hinge, Sensors and Actuators A 132
    (2006) 730-736.

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> block = fx.SpatialInertia.solid_box(0.02, size=(0.01, 0.01, 0.01))
    >>> table = builder.add_body("table", block)
    >>> bridge = fx.BridgeAmplifier(
    ...     "bridge",
    ...     builder.world,
    ...     table,
    ...     length=0.02,
    ...     angle=0.1,
    ...     root_distance=0.01,
    ...     side_height=0.01,
    ...     sides=block,
    ...     width=0.01,
    ...     thickness=5e-4,
    ...     hinge_length=0.004,
    ...     material=fx.Material.common("stainless steel 301"),
    ... )
    >>> builder.add_assembly(bridge).left
    <Body 'bridge_left'>
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        length: float,
        angle: float,
        root_distance: float,
        side_height: float,
        sides: SpatialInertia,
        width: float,
        thickness: float,
        material: Material,
        hinge_length: float | None = None,
        link: SpatialInertia | None = None,
        **options: Any,
    ) -> None:
        options = {"width": width, "thickness": thickness, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        L, space = self._lengths(length=length, root_distance=root_distance)
        tilt = self._positive("angle", angle, "rad", upper=0.25 * np.pi)
        half = 0.5 * self._positive("side_height", side_height)
        hinge = L
        if hinge_length is not None:
            hinge = self._positive("hinge_length", hinge_length, upper=0.5 * L)
        rise, middle = L * np.sin(tilt), L * np.sin(tilt) + half
        top, root, far = 2.0 * middle, 0.5 * space, 0.5 * space + L * np.cos(tilt)
        self._origins[id(self.frame_c)] = np.array([0.0, top, 0.0])
        self.left: Body = self._body("left", sides, (-far, middle, 0.0))
        self.right: Body = self._body("right", sides, (far, middle, 0.0))
        massless = SpatialInertia.point_mass(0.0) if link is None else link
        blocks = (self.frame_a, 0.0, rise), (self.frame_c, top, top - rise)
        corners = product(blocks, ((self.left, -1.0), (self.right, 1.0)))
        for number, ((block, y, y_side), (side, sign)) in enumerate(corners, 1):
            start, end = np.array([sign * root, y, 0.0]), np.array([sign * far, y_side, 0.0])
            if hinge_length is None:
                self._beam(block, side, start, end)
                continue
            part = hinge / L * (end - start)
            arm = self._body(f"link{number}", massless, 0.5 * (start + end))
            self._beam(block, arm, start, start + part)
            self._beam(arm, side, end - part, end)
        self._tie(self.leaves, fixed=OF_SHAPE)


class LeverAmplifier(BeamAssembly):
    """A lever amplifier: a lever on a fulcrum moves C farther than its input, along y.

    Three equal leaves along y hold the lever: one from the fulcrum on A, and one from the input B
    at a distance a along x, both below the lever; and one above it, which leads to C at the
    distance b. Unstressed, B and C have the orientation of A, and stand at (a, 0, 0) and
    (b, 2 L, 0) in it. With the length L, EI and the area S of each leaf, the ratio of the
    displacement of C to that of B, both guided along y and C otherwise free, and the stiffness
    against the drive are::

        k_a = E S/L,   k_t = 11 EI/L
        ratio = 1/2 + (b - a/2) a/(a² + 2 k_t/k_a),    k = k_a k_t/(k_a a² + 2 k_t)

    A rigid lever on pins has the ratio b/a.

    Parameters
    ----------
    name : str
        Name of the assembly; leaves are ``<name>_leaf1`` at the fulcrum, 2 at the input and 3 at
        the output, and the body is ``<name>_lever``.
    frame_a, frame_c : Frame or Body
        The frames A and C.
    frame_b : Frame or Body
        The frame B of the input, on a body that a guide leads along y.
    input_arm, output_arm : float
        Distances a of the input and b of the output from the fulcrum along x, above 0 in m; equal
        ones would not amplify.
    lever : SpatialInertia
        Mass, center of mass and inertia of the lever, in a frame above the fulcrum, at (0, L, 0).
    length, width, thickness : float
        Dimensions of all leaves in m.
    material : Material
        Their material.
    **options
        Further arguments of the leaves, such as ``segments`` and ``damping_time``.

    Attributes
    ----------
    leaves : tuple of LeafSpring
        The three leaves.
    length, width, thickness : TiedParameter
        Dimensions of all leaves in contexts; their ends on A, B and C follow the length.
    lever : Body
        The lever.

    Raises
    ------
    DeclarationError
        When a frame is missing, the lever is no `SpatialInertia`, or as `LeafSpring` says.
    ValueRefusedError
        When a number is out of its range or not finite.

    See Also
    --------
    PiezoStack : A drive.
    BridgeAmplifier : A bridge.

    Notes
    -----
    The formulas are the minimum of the energy of the three leaves with a rigid lever, for small
    displacements and without shear; for levers on flexures see S. T. Smith, Flexures: Elements of
    Elastic Mechanisms (2000).

    Examples
    --------
    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    >>> block = fx.SpatialInertia.solid_box(0.02, size=(0.01, 0.01, 0.01))
    >>> pushed, table = builder.add_body("pushed", block), builder.add_body("table", block)
    >>> lever = fx.LeverAmplifier(
    ...     "lever",
    ...     builder.world,
    ...     table,
    ...     frame_b=pushed,
    ...     input_arm=0.008,
    ...     output_arm=0.04,
    ...     lever=fx.SpatialInertia.solid_box(0.02, size=(0.05, 0.008, 0.01)),
    ...     length=0.006,
    ...     width=0.01,
    ...     thickness=4e-4,
    ...     material=fx.Material.common("stainless steel 301"),
    ... )
    >>> builder.add_assembly(lever).lever
    <Body 'lever_lever'>
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        frame_b: FrameLike,
        input_arm: float,
        output_arm: float,
        lever: SpatialInertia,
        length: float,
        width: float,
        thickness: float,
        material: Material,
        **options: Any,
    ) -> None:
        options = {"width": width, "thickness": thickness, "material": material, **options}
        super().__init__(name, frame_a, frame_c, **options)
        self.frame_b = as_frame(frame_b, self._attempt)
        L, a, b = self._lengths(length=length, input_arm=input_arm, output_arm=output_arm)
        self._require(a != b, "an output_arm that differs from the input_arm", f"{a:.6g} m twice")
        self._origins[id(self.frame_b)] = np.array([a, 0.0, 0.0])
        self._origins[id(self.frame_c)] = np.array([b, 2.0 * L, 0.0])
        self.lever: Body = self._body("lever", lever, (0.0, L, 0.0))
        self._beam(self.frame_a, self.lever, (0.0, 0.0, 0.0), (0.0, L, 0.0), rests=1.0)
        self._beam(self.frame_b, self.lever, (a, 0.0, 0.0), (a, L, 0.0), rests=1.0)
        self._beam(self.lever, self.frame_c, (b, L, 0.0), (b, 2.0 * L, 0.0), rests=0.0)
        self._tie(self.leaves)
