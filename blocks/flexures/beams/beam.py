"""Beams between two frames of bodies, as force elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.beams.beam_constants import FreeStrainInputs, beam_constants, warmed
from flexure.blocks.flexures.beams.beam_law import BeamLaw, num_constants
from flexure.blocks.flexures.beams.beam_presentation import (
    PresentedBeam,
    default_length,
    require_fit,
    require_length,
    unstressed_shape,
)
from flexure.blocks.flexures.beams.beam_segment import (
    BeamSegment,
    Taper,
    TaperedSegment,
    divide,
    end_offsets,
    end_shares,
    node_joints,
    rigid_halves,
    section_inertia,
    warn_of_curved_taper,
)
from flexure.blocks.flexures.beams.range_checks import (
    BENDING_LIMITS,
    beam_limits,
    bending_measures,
    checked_ends,
    checked_segments,
    require_one_shape,
    require_parts,
    require_plate,
    require_warping,
    slenderness,
)
from flexure.blocks.flexures.beams.tapered_beam_law import TaperedBeamLaw
from flexure.blocks.flexures.sections.fatigue import Fatigue
from flexure.blocks.flexures.sections.flexure_parameters import (
    MaterialParameters,
    ShapeParameters,
    time_of_damping,
)
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.polygon_constants import unevenness, warping_length
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.flexures.sections.strength import (
    StressedElement,
    place_names,
    section_force_names,
    stresses_along,
)
from flexure.blocks.math import RigidTransform, rotation_vector_from_rotation
from flexure.blocks.multibody.bodies.bodies import Body, FrameLike
from flexure.blocks.multibody.bodies.body_motion import PoseLike, checked_pose
from flexure.blocks.multibody.joints import Joint
from flexure.blocks.multibody.trees.topology import InPlane
from flexure.blocks.multibody.trees.tree_inputs import INERTIA_SIZE
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import flag
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.systems.ports import LeafOutputPort
from flexure.diagrams.values.arrays import Array, as_number, check_name
from flexure.diagrams.values.parameters import NumericParameter


class Beam(PresentedBeam, StressedElement):
    """A slender elastic beam from frame A to frame C, with a section and a material.

    The beam is along x, with the thickness of its section along y and the width along z, so that a
    leaf bends easily in the plane of x and y, about z. Unstressed, frame C has the orientation of A
    and stands at (length, 0, 0) in A.

    Its forces are the exact derivatives of one energy V(θ, p). With the rotation vector θ from A to
    C, the position p = l n of Co from Ao in the frame halfway between them, and the length h::

        u = 2 n_y / (1 + n_x) - θ_x θ_y / 24      w = 2 n_z / (1 + n_x) - θ_x θ_z / 24
        u* = u/(1 + Φ_z)   w* = w/(1 + Φ_y)       what of the chord's angles turns the sections
        q = θ + θ × (0, -w*, u*)                  turns: twist, and bending about y and z
        Q = h (q_y² + q_z²)/24 + h ((1 - 5 Φ_z²) u*² + (1 - 5 Φ_y²) w*²)/10 + (I_p/A) q_x²/(2 h)
        N = (l - h + Q)/D                         tension; D = h/EA, and more where it is bent
        V = (½ GJ q_x² + ½ EI_y q_y² + ½ EI_z q_z²
            + 6 EI_z (1 + Φ_z) u*² + 6 EI_y (1 + Φ_y) w*²)/h
            + ½ N² D - ½ (EI_y - EI_z)² q_y² q_z²/((12 GJ + EI_y q_z² + EI_z q_y²) h)
            + ⅛ EW q_x⁴/h³

    `BeamLaw` lists D and all other terms. The beam stiffens in tension, buckles in compression,
    becomes shorter and softer along x while it bends, and allows any rigid motion. Twisted leaves
    are stiffer, since their edges are stretched; W = w t (w⁴ + t⁴)/180 is that of a rectangle. Φ =
    12 EI/(k G A h²) is the deflection by shear over that by bending. Shear turns no sections, axial
    forces act along their normals, and products of extension and shear are neglected.

    Each end carries the mass and inertia of the half of the straight beam next to it, as if it were
    rigid, so that those of the whole are exact.

    With ``segments``, the mass is lumped at the ends and nodes. Mass and center of mass of a
    straight beam are then exact, and its inertia too unless it is tapered. Frequencies of slender
    beams converge with fourth order, from above; they are too low with fewer than four segments per
    half wave. A consistent mass would couple both ends of a segment, as no tree of bodies can. Each
    segment has its share of a taper. By default nodes stand on the unstressed beam, which a length
    or curvature in a context does not change. Outputs are those of the whole, without ``angles``,
    ``angle_rates`` and ``position``; forces of sections and stresses are those of all segments, one
    after the other, which are called ``Mz_2_A`` and ``2_A`` in the second.

    Inputs and outputs are those of bushings, ``angles`` being θ and ``position`` p; and

    - ``section_forces``, called ``Mz_A`` and so on: at A, ``middle`` and C, the torque T, moments
      My and Mz, tension N and shear forces Vy and Vz, about and along the axes of that section, on
      the side that faces C, in N m and N;
    - ``stress``: von Mises' stress at these three places in Pa, of `Section.equivalent_stress`;
    - ``greatest_stress``: the greatest of them in Pa;
    - ``safety``: the yield strength over the greatest stress, infinite without stress. Materials
      without a yield strength have no such output;
    - ``utilization``: ratios of stress, slenderness and angles to the limits of the model's
      validity (see `check_limits`); keep them below 1.

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C; each on any body or on the world.
    section : Section
        The cross section. Each of its dimensions is a parameter of its name, such as ``thickness``.
    material : Material
        The material. Parameters are ``youngs_modulus`` in Pa, ``poissons_ratio``, ``density`` in
        kg/m^3, the ``shear_modulus`` where it does not follow from the first two, the
        ``yield_strength`` where it is known, and with a reference temperature the
        ``thermoelastic_coefficient`` where it is known, by which E and G follow the temperature.
    end_section : Section, optional
        The section at C of a tapered beam, of the kind of ``section``, which then is that at A; in
        between, dimensions change linearly. Its parameters are ``end_thickness`` and so on.
    length : float, optional
        Length h > 0 in m, a parameter. It may be omitted for a straight beam both of whose frames
        are on one body, and is then their distance.
    shear : bool
        Whether shear forces deflect the beam.
    curvature : array_like, shape (2,), optional
        Curvature about y and z, in 1/m, of a beam that is an arc while it is unstressed; a
        parameter. Frame C is then at the end of the arc, turned along with it.
    unstressed_pose : tuple of array_like, or array_like, optional
        Pose of C in A, (R, p), of a beam that is bent otherwise while it is unstressed.
    damping_time : float, optional
        Time τ >= 0 in s of dampers in proportion to the stiffness, a parameter. At an angular
        frequency ω their loss factor is ω τ.
    loss_factor : float, optional
        Loss factor >= 0 at one frequency, which gives the time of damping in place of it.
    at_frequency : float, optional
        That frequency > 0 in Hz.
    plate : bool
        Whether bending about z is that of a wide plate, which cannot bow across, stiffer by
        1/(1 - ν²). Not for round sections.
    clamped_warping : bool
        Whether both ends keep a wide leaf from warping as it twists, which makes twist stiffer by
        1/(1 - tanh(λ)/λ), with λ = (h/w) √(12 G/E). Only for a `RectangleSection`.
    prestressed : bool
        Whether the frames may stand otherwise than the unstressed beam in the default context of
        the plant. Otherwise frames that are off by more than 1e-6 of the length, or 1e-6 rad, are
        refused when the plant is built, and so are starts at a length that strains it by 0.5 %.
    segments : int
        Number of equal segments that the beam is divided into, at most 1000, for large deflections,
        buckling and its own vibration. The plant then has bodies ``<name>_node1``, … inside, and
        segments ``<name>_1`` …; this block has the parameters, and shows the whole.
    planar : bool
        Whether nodes move in the plane x-y of A alone: half of the coordinates, for mechanisms that
        move in that plane. The plane moves with A, as on a spinning hub.
    reference_temperature : float, optional
        Temperature in K at which the beam is unstressed, a parameter beside the
        ``thermal_expansion`` of the material in 1/K. The beam then has the inputs ``temperature``
        in K and ``temperature_gradient`` along y and z in K/m.
    free_strain : bool
        Whether there is an input ``free_strain`` of axial strain and of curvature about y and z in
        1/m that the beam would have without stress, as by piezo layers or shape memory.
    ends : (float, float)
        How far the ends are from the frames, along x of A and of C, in lengths of the beam. With
        ``(-0.5, 0.5)`` the frames coincide in its middle, whatever its length is in a context. In
        all equations and outputs, A and C are the ends.
    fatigue : Fatigue, optional
        What it endures. Its numbers are parameters, such as ``fatigue_cycles``, and the output
        ``fatigue_safety`` is the safety if the present stress is the extreme of a cycle.

    Raises
    ------
    DeclarationError
        When a frame or the length is missing, options contradict each other, or the plant is built
        with frames that do not fit.
    ValueRefusedError
        When a number is out of its range or not finite.
    EvaluationError
        When forces are evaluated with more than 170 degrees between the ends, or with C behind A.

    Notes
    -----
    Angles between the ends, and those of the chord, should stay below about 0.3 for errors of
    forces of 1e-3; divide a beam that bends more. Statics warn from three times that on, and from
    an axial force of 30 EI/h² on. Its shape between the ends is that of statics.

    In a tapered beam, the coupling of twist and bending uses mean values along the beam. If the
    beam is curved as well, its stiffness out of plane errs by up to 50 % with one segment; the
    error falls with the square of the number of segments. Building a plant then warns, and states
    the number of segments for 1 %.

    `BeamLaw` states the source of the axial terms. For the bending of wide plates see S. P.
    Timoshenko and S. Woinowsky-Krieger, Theory of Plates and Shells, and for the warping of leaves
    V. Z. Vlasov, Thin-Walled Elastic Beams, with the warping constant w³ t³/144.

    Dampers act on the rates of the elastic strains, so that rigid motions are not damped, and they
    only dissipate.

    Free strain changes the unstressed arc, q⁰ and l⁰ of `BeamLaw`; sections and mass stay. The
    ledger balances while they move if their rates come in at ``temperature_rate``,
    ``temperature_gradient_rate`` and ``free_strain_rate``, zero by default: their work is in
    ``non_conservative_power``. The plant exports these inputs as ``<name>.temperature`` and so on.

    See Also
    --------
    LeafSpring, WireFlexure : Beams of the two usual sections.
    FlexibleBody : Any other shape.

    Examples
    --------
    A leaf spring of 100 x 20 x 0.5 mm on the world, with the stiffness of the textbook:

    >>> import flexure as fx
    >>> builder = fx.PlantBuilder("stage")
    >>> table = builder.add_body("table", fx.SpatialInertia.point_mass(0.5))
    >>> slide = builder.add_joint(fx.PrismaticJoint("slide", builder.world, table, axis=(0, 1, 0)))
    >>> leaf = Beam(
    ...     "leaf",
    ...     builder.world,
    ...     builder.add_frame("end", table, (0.1, 0.0, 0.0)),
    ...     section=fx.sections.RectangleSection(width=0.02, thickness=0.0005),
    ...     material=Material.common("structural steel S235"),
    ...     length=0.1,
    ... )
    >>> plant = builder.add_force_element(leaf) and builder.build()
    >>> context = plant.create_default_context()
    >>> slide.translation.set(context, 1e-6)
    >>> force = leaf.force_on_frame_C.eval(context)
    >>> print(f"{-force[4] / 1e-6:.2f}, without shear {210e9 * 0.02 * 0.005**3:.2f} N/m")
    524.96, without shear 525.00 N/m
    """

    youngs_modulus: NumericParameter
    poissons_ratio: NumericParameter
    shear_modulus: NumericParameter
    density: NumericParameter
    yield_strength: NumericParameter
    reference_temperature: NumericParameter | None = None
    thermal_expansion: NumericParameter | None = None
    thermoelastic_coefficient: NumericParameter | None = None

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        section: Section,
        material: Material,
        end_section: Section | None = None,
        length: float | None = None,
        shear: bool = True,
        curvature: npt.ArrayLike | None = None,
        unstressed_pose: PoseLike | None = None,
        damping_time: float | None = None,
        loss_factor: float | None = None,
        at_frequency: float | None = None,
        plate: bool = False,
        clamped_warping: bool = False,
        prestressed: bool = False,
        segments: int = 1,
        planar: bool = False,
        reference_temperature: float | None = None,
        free_strain: bool = False,
        ends: tuple[float, float] = (0.0, 0.0),
        fatigue: Fatigue | None = None,
    ) -> None:
        attempt = f"Cannot make beam '{check_name(name, 'a block')}'"
        count = checked_segments(segments, name)
        checked_flag = partial(flag, attempt=attempt, error=DeclarationError)
        self.planar = checked_flag(planar, "planar")
        self.ends = checked_ends(ends, attempt)
        offsets = end_offsets(self._calc_offset, self.ends)
        time = time_of_damping(damping_time, loss_factor, at_frequency, attempt)
        require_parts(section, end_section, material, attempt)
        is_free = checked_flag(free_strain, "free_strain")
        self.free_strain = FreeStrainInputs(material, reference_temperature, is_free, attempt)
        strained, curved = bool(self.free_strain), curvature is not None
        works = time is not None or strained
        kind = {"damped": time is not None, "curved": curved, "strained": strained}
        self.taper: Taper | None = None
        inside = None
        if count > 1:
            segment: Any = partial(BeamSegment, damped=works, num_constants=num_constants(**kind))
            if end_section is not None:
                self.taper = Taper(type(end_section), bool(shear), **kind)
                segment = partial(TaperedSegment, taper=self.taper)
            inside = divide(name, frame_a, frame_c, count, self.planar, self.ends, segment)
        super().__init__(
            name,
            frame_a,
            frame_c,
            dissipates=works,
            drives=self.free_strain.drives,
            inside=inside,
            offsets=offsets,
        )
        self.num_segments = count
        self.shear = checked_flag(shear, "shear")
        self.plate = checked_flag(plate, "plate")
        self.clamped_warping = checked_flag(clamped_warping, "clamped_warping")
        self.prestressed = checked_flag(prestressed, "prestressed")
        if self.plate:
            require_plate(section, attempt)
        if self.clamped_warping:
            require_warping(section, end_section, attempt)
        is_straight = curvature is None and unstressed_pose is None
        self.section = ShapeParameters(self, section)
        self.end_section = None
        if end_section is not None:
            self.end_section = ShapeParameters(self, end_section, prefix="end_")
        self.material = MaterialParameters(self, material)
        self.free_strain.declare(self)
        self.length = self.declare_numeric_parameter(
            "length",
            default_length(length, self.frame_a, self.frame_c, is_straight, attempt),
            unit="m",
            lower=0.0,
            exclusive=True,
            doc="length of the unstressed beam",
        )
        self.damping_time: NumericParameter | None = None
        if time is not None:
            self.damping_time = self.declare_numeric_parameter(
                "damping_time", time, unit="s", lower=0.0, doc="damping over stiffness"
            )
        self._declare_state_at_rest(curvature, unstressed_pose, attempt)
        kinds = count if self.taper else 1  # each segment has its part of a taper
        self._constants = [
            self.declare_cache_entry(
                f"constants_{k}",
                partial(beam_constants, self, k - 1),
                prerequisites=self.drive_ports,
            )
            for k in range(1, kinds + 1)
        ]
        if self.inside:
            self._declare_segments()
        else:
            self.declare_inertias(self._calc_halves)
            self._declare_outputs()
        self._declare_stresses(fatigue)
        heated = self.thermoelastic_coefficient is not None
        limits = beam_limits(self.material.yield_strength, material, heated)
        stressed = [self._stresses] if any(each.unit == "Pa" for each in limits) else []
        bending = () if self.inside else BENDING_LIMITS  # segments tell how far they bend
        needs = [*self.drive_ports, *stressed, *([] if self.inside else [self._deformation])]
        self.declare_limits([*limits, *bending], self._calc_limited, prerequisites=needs)

    # Declarations ----------------------------------------------------------------------------

    def _declare_state_at_rest(self, curvature: Any, pose: PoseLike | None, attempt: str) -> None:
        """Declare how the beam stands while it is unstressed."""
        self.curvature: NumericParameter | None = None
        self.unstressed_pose: RigidTransform | None = None
        require_one_shape(curvature, pose, self.num_segments, attempt, bool(self.free_strain))
        if curvature is not None:
            self.curvature = self.declare_numeric_parameter(
                "curvature",
                as_number(curvature, (2,), f"{attempt} with curvature"),
                unit="1/m",
                doc="curvature of the unstressed beam about y and z",
            )
        if pose is not None:
            self.unstressed_pose = checked_pose(pose, f"{attempt} with unstressed_pose")

    def _declare_segments(self) -> None:
        """Declare what the segments get, and what is shown of the ends."""
        inside = self.inside
        size = inside.segments[0].input_port("constants").size or 0
        constants = [
            self.declare_vector_output(
                f"segment_constants_{k}",
                size,
                entry,
                prerequisites=[entry],
                doc="constants of the law of a segment, or of all of them",
            )
            for k, entry in enumerate(self._constants, start=1)
        ]
        lumps: dict[Any, LeafOutputPort] = {}
        shares = end_shares(self.num_segments)
        for k, (segment, both) in enumerate(zip(inside.segments, shares, strict=True)):
            place = k % len(constants)  # segments of one section are alike wherever they are
            if (place, both) not in lumps:
                lumps[place, both] = self.declare_vector_output(
                    f"segment_lumps_{len(lumps) + 1}",
                    2 * INERTIA_SIZE,
                    partial(self._calc_lumps, place, both),
                    prerequisites=[],
                    doc="mass, first moment and inertia at both ends of some segments",
                )
            inside.wires.append((constants[place], segment.input_port("constants")))
            inside.wires.append((lumps[place, both], segment.input_port("lumps")))
        self._sections = inside.declare_inputs(self, "section_forces")
        self._winding_inputs = [] if self.planar else inside.declare_inputs(self, "winding")
        self.force_on_frame_A = self._show_force("A", self._calc_force_on_A, self._sections[:1])
        self.force_on_frame_C = self._show_force("C", self._calc_force_on_C, self._sections[-1:])

    def _declare_stresses(self, fatigue: Fatigue | None) -> None:
        places = place_names(self.num_segments)
        self._forces_of_sections = self.declare_cache_entry(
            "forces_of_sections",
            self._calc_forces_of_sections,
            prerequisites=self._sections
            if self.inside
            else [self._frame_forces, self._deformation, *self.drive_ports],
        )
        wound = self._winding_inputs if self.inside else [self._deformation]
        self._stresses = self.declare_cache_entry(
            "stresses",
            self._calc_stresses,
            prerequisites=[self._forces_of_sections, *wound, *self.drive_ports],
        )
        self.section_forces = self.declare_vector_output(
            "section_forces",
            6 * len(places),
            self._calc_section_forces,
            prerequisites=[self._forces_of_sections],
            element_names=section_force_names(places),
            doc="T, My, Mz, N, Vy, Vz at A, in the middle and at C, of each segment",
        )
        self.stress = self.declare_vector_output(
            "stress",
            len(places),
            self._stresses,
            prerequisites=[self._stresses],
            unit="Pa",
            element_names=places,
            doc="von Mises' stress at A, in the middle and at C, of each segment",
        )
        self._declare_stress([self._stresses], fatigue)

    # Equations -------------------------------------------------------------------------------

    def law(self, context: Any, segment: int = 1) -> BeamLaw:
        """Return the law with the constants of a context, of a segment if it is divided."""
        if self.taper:
            return self.taper.law(self._constants[segment - 1](context), self.label)
        kind = BeamLaw if self.end_section is None else TaperedBeamLaw
        return kind.from_constants(self._constants[0](context), self.label)

    def _calc_line(self, context: Any, part: float) -> Array:
        """Return mass and moments of inertia about x, y, z per length, at a part of the length."""
        section, rho = self.section_at(part, context), self.density(context)
        y, z = section.second_moment_y, section.second_moment_z
        return rho * scalars.array([section.area, y + z, y, z])

    def _calc_halves(self, context: Any) -> list[Array]:
        """Return the inertia of both halves of a beam that is not divided."""
        length = self.length(context)
        curvature = None if self.curvature is None else self.curvature(context)
        return rigid_halves(
            length,
            partial(self._calc_line, context),
            unstressed_shape(length, curvature, self.unstressed_pose),
            tapered=self.end_section is not None,
        )

    def _calc_lumps(self, place: int, shares: tuple[float, float], context: Any) -> Array:
        """Return the inertia at both ends of a segment that has these shares of its own."""
        step = self.length(context) / self.num_segments
        lumps = [
            share
            * section_inertia(step * self._calc_line(context, (place + end) / self.num_segments))
            for end, share in enumerate(shares)
        ]
        return np.concatenate(lumps)

    def _calc_force_on_A(self, context: Any) -> Array:
        return self._sections[0](context)[:6]

    def _calc_force_on_C(self, context: Any) -> Array:
        return -self._sections[-1](context)[-6:]

    def _calc_forces_of_sections(self, context: Any) -> Array:
        if self.inside:
            along = np.concatenate([port(context) for port in self._sections])
            return along.reshape(-1, 6)
        law, (F_A_A, F_C_A) = self.law(context), self._frame_forces(context)
        return law.section_forces(self._deformation(context), F_A_A, F_C_A)

    def _calc_stresses(self, context: Any) -> Array:
        windings, E = self._calc_windings(context), warmed(self, context)[0].youngs_modulus
        rows, at = self._forces_of_sections(context), partial(self.section_at, context=context)
        return stresses_along(at, E, rows, windings, tapered=self.end_section is not None)

    def _calc_windings(self, context: Any) -> list[Array]:
        """Return of each segment half the square of its twist, and the torque of its fibers."""
        if self.inside and self.planar:
            return [np.zeros(2)] * self.num_segments
        if self.inside:
            windings = [port(context) for port in self._winding_inputs]
        else:
            windings = [self.law(context).winding(self._deformation(context))]
        if self.clamped_warping:  # it twists most in the middle
            section, length = self.section(context), self.length(context)
            _, greatest = unevenness(warping_length(length, section, self.material(context)))
            windings = [each * scalars.array([greatest**2, 1.0]) for each in windings]
        return windings

    def _calc_section_forces(self, context: Any) -> Array:
        return self._forces_of_sections(context).reshape(-1)

    def calc_greatest_stress(self, context: Any) -> Array:
        """Return the greatest equivalent stress in Pa."""
        return np.max(self._stresses(context))

    def calc_notched_stress(self, context: Any, factor: Array) -> Array:
        """Return the greatest equivalent stress in Pa, with a factor at both ends."""
        stresses = self._stresses(context)
        ends = factor * np.maximum(stresses[0], stresses[-1])
        return np.maximum(ends, np.max(stresses))

    def _calc_limited(self, context: Any) -> list[Array]:
        """Return the magnitudes of what the limits bound."""
        units = [each.unit for each in self.limits]
        found = [np.max(self._stresses(context)) for unit in units if unit == "Pa"]
        if "K" in units:
            middle = 0.5 * sum(self.material.default.temperature_range)
            (T,) = self.input_port("temperature")(context)
            found.insert(0, np.abs(T - middle))
        found.append(slenderness(self.section(context), self.length(context)))
        if not self.inside:
            found += bending_measures(self.law(context), self._deformation(context))
        return found

    # Checks ----------------------------------------------------------------------------------

    def check_assembly(self, poses: Sequence[RigidTransform]) -> None:
        """Refuse frames off the ends of the unstressed beam; warn about curved tapers."""
        if self.end_section is not None and not self.planar:
            ends = self.section.default, self.end_section.default
            R = self.default_shape()(self.length.default).R
            _, y, z = rotation_vector_from_rotation(R).tolist()
            warn_of_curved_taper(self.name, ends, self.material.default, (y, z), self.num_segments)
        if not self.prestressed:
            require_fit(self, *poses)

    @property
    def restricts_starts(self) -> bool:
        """Whether the frames must fit the length."""
        return not self.prestressed

    @property
    def start_parameters(self) -> tuple[NumericParameter, ...]:
        """The length alone, since `check_assembly` has judged its default."""
        return (self.length,)

    def check_start(self, context: Any) -> None:
        """Refuse a length of a context that does not fit between the frames there."""
        require_length(self, context)

    def make_joints(self, world: Body, poses: Sequence[Any], in_plane: InPlane) -> Sequence[Joint]:
        """Return the joints of the nodes, which are on the unstressed beam by default."""
        shape, length = self.default_shape(), float(self.length.default)
        poses = [self.default_end(k, RigidTransform(*pose)) for k, pose in enumerate(poses)]
        return node_joints(self, shape, length, world, poses, in_plane if self.planar else None)
