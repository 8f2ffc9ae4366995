"""The energy of a slender beam and its slopes, as functions of how its ends stand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from flexure.blocks.flexures.beams.beam_strains import (
    STRAIGHT,
    BeamStrains,
    Bending,
    Form,
    chord_of,
    elongation,
    in_plane,
    planar_deformation,
    planar_velocity,
    turns_of,
)
from flexure.blocks.flexures.sections.flexure_parameters import MaterialConstants
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.forces.bushings.halfway_law import (
    LARGEST_ANGLE,
    Deformation,
    DeformationRates,
    Loads,
    RotationVectorAngles,
    is_far,
)
from flexure.blocks.math import (
    RigidTransform,
    cross,
    dot,
    rotate_spatial,
    rotation_from_rotation_vector,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array

_OF_ALL = 9  # constants that all have, and
_STATE_AT_REST = 6  # those of a state at rest, and as many of its rate
_OTHERS = ("rest", "rest_rate", "label", "planar")  # fields that are not numbers
_REVERSED = np.deg2rad(179.0)  # angle from x of B at which a chord points backward; V grows to ∞


def num_constants(*, damped: bool, curved: bool, strained: bool = False) -> int:
    """Return the size of the array of `BeamLaw.constants`, with or without what may be None."""
    return _OF_ALL + damped + _STATE_AT_REST * (2 if strained else curved)


@dataclass(frozen=True)
class BeamLaw(RotationVectorAngles):
    """The law of a slender beam along x between a frame A and a frame C.

    It is a `HalfwayLaw`: θ is the rotation vector from A to C, and p the position of Co from Ao
    expressed in the frame B halfway between them. With the length h, and with p = l n of the
    length l::

        u = 2 n_y / (1 + n_x) - θ_x θ_y / 24      w = 2 n_z / (1 + n_x) - θ_x θ_z / 24
        u* = u/(1 + Φ_z),  w* = w/(1 + Φ_y),  Φ = 12 EI/(k G A h²) per plane
        q = θ + θ × (0, -w*, u*)

    The chord is inclined by u and w. The sections are turned by u* and w* of that on average, and
    what is left, γ = u - u* and w - w*, is the angle of shear, by which sections are not turned.
    Bending at constant curvature belongs to q, bending like an S to u* and w*. Both shorten the
    chord, by Q, and shear makes it longer by h γ²/2, as the ends of sections that slide along each
    other are farther apart. Both give way to an axial force, by D::

        Q = h (q_y² + q_z²)/24 + h ((1 - 5 Φ_z²) u*² + (1 - 5 Φ_y²) w*²)/10 + (I_p/A) q_x²/(2 h)
        D = h/EA + 2 h³ (a_z q_z² + s_z u*²)/EI_z + 2 h³ (a_y q_y² + s_y w*²)/EI_y
        a = (1 + 5 Φ)/1440,  s = (1 + 15 Φ + 35 Φ² + 175 Φ³/3)/(1400 (1 + Φ))
        N = (l - h + Q)/D
        V = (½ GJ q_x² + ½ EI_y q_y² + ½ EI_z q_z²
            + 6 EI_z (1 + Φ_z) u*² + 6 EI_y (1 + Φ_y) w*²)/h
            + ½ N² D - ½ (EI_y - EI_z)² q_y² q_z²/((12 GJ + EI_y q_z² + EI_z q_y²) h)
            + ⅛ EW q_x⁴/h³

    The term with the twist q_x alone is the trapeze effect (H. Wagner), with W = ∫ r⁴ dA - I_p²/A:
    fibers far from the axis are stretched more than the mean of them, which pulls a twisted leaf
    back by its edges, with the torque ½ E W k³ for k = q_x/h.

    A beam that is curved while unstressed has q⁰, u⁰, w⁰ and l⁰ then, and its sections are turned
    by u* = u⁰ + (u - u⁰)/(1 + Φ_z). In V the differences q - q⁰, u* - u⁰ and w* - w⁰ take the place
    of q, u* and w*, Q and D remain, N = (l - l⁰ + Q - Q⁰)/D, the term with GJ in its denominator is
    that of EI_y (q_y - q_y⁰) q_z - EI_z (q_z - q_z⁰) q_y, and q_x² - q_x⁰² is in place of q_x².

    Free strain, as of heat, moves q⁰ and l⁰. Dampers add τ, a time, times the rates of q - q⁰, u*,
    w*, q_x² and of l + Q - l⁰ - Q⁰, each times its stiffness, to the loads.

    Attributes
    ----------
    length : float or Symbol
        Length h > 0 of the unstressed beam in m.
    axial_stiffness : float or Symbol
        EA > 0 in N.
    torsion_stiffness : float or Symbol
        GJ > 0 in N m².
    bending_stiffness_y, bending_stiffness_z : float or Symbol
        EI_y, EI_z > 0 of bending about y and z, in N m².
    gyration_square : float or Symbol
        I_p/A >= 0, by which twist shortens a beam, in m².
    shear_ratio_y, shear_ratio_z : float or Symbol
        Φ_y, Φ_z >= 0 of bending about y and z; 0 without deflection by shear.
    wagner_stiffness : float or Symbol
        E W >= 0 of twist whose fibers are stretched unevenly, in N m⁴.
    damping_time : float or Symbol or None
        The time τ >= 0 in s; None without dampers.
    rest : array, shape (6,), or None
        q⁰, u⁰, w⁰ and l⁰; None of a straight beam.
    rest_rate : array, shape (6,), or None
        Rates of q⁰ and l⁰ by free strain, those of u⁰ and w⁰ being zero, with the rate of all
        stiffnesses over themselves in place of that of q_x⁰, which is zero; None without.
    label : str
        What messages call the beam.
    planar : bool
        Whether it is known to move in the plane x-y of A alone; other motion is not looked at.

    See Also
    --------
    flexure.Beam : The element with this law.
    PseudoRigidBody : A model with one angle.

    Notes
    -----
    The constants may be symbols, and nothing is checked. The terms with N and N² are those of the
    series of the stability functions of a beam column with shear, so that one beam stiffens in
    tension, buckles in compression, and is softer along x while it is bent. The term with GJ in its
    denominator is what the energy loses as the twist inside follows from the bending.

    With shear it is the expansion of a geometrically exact rod (E. Reissner, On one-dimensional
    finite-strain beam theory, ZAMP 23 (1972) 795-804) for a small extension: an axial force acts
    along the normals of sections, so that thick columns buckle at Haringx's load. Taken along the
    axis it would be Engesser's, which is smaller. Products of an extension or of the square of an
    angle of shear with the energy of shear are neglected: with N/EA = 0.01, shear is 2 % off, in
    however many segments. The effect of shear forces on sections that turn along a beam is
    neglected, too. In space, where the stiffnesses of both ways differ, that includes a torque by
    shear force and bending. These errors of beams with shear fall with the second power of the
    number of segments.

    Divided into n beams, slender rods come out with errors that fall like 1/n⁴. One beam is good
    for angles up to about 0.3. As its inside twists, a leaf that is bent by q_z has the bending
    stiffness EI_y/(1 + EI_y q_z²/(12 GJ)) the other way. `in_range` states the largest rotations.

    Stability functions: S. P. Timoshenko and J. M. Gere, Theory of Elastic Stability. Terms with
    N²: S. Awtar et al., Journal of Mechanical Design 129 (2007) 625-639.

    Examples
    --------
    The force along y on a tip that is displaced by y without turning is -12 EI y/h³:

    >>> law = BeamLaw(2.0, 1e6, 1.0, 3.0, 4.0)
    >>> now = law.deformation((np.eye(3), np.array([2.0, 1e-6, 0.0])))
    >>> _, F_C_A = law.spatial_forces(now, law.rates(now, np.zeros(6)))
    >>> round(F_C_A[4] * 1e6, 9)
    np.float64(-6.0)
    """

    length: Any
    axial_stiffness: Any
    torsion_stiffness: Any
    bending_stiffness_y: Any
    bending_stiffness_z: Any
    gyration_square: Any = 0.0
    shear_ratio_y: Any = 0.0
    shear_ratio_z: Any = 0.0
    wagner_stiffness: Any = field(default=0.0, kw_only=True)
    damping_time: Any = None
    rest: Any = None
    rest_rate: Any = field(default=None, kw_only=True)
    label: str = field(default="beam", kw_only=True)
    planar: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls,
        length: Any,
        section: Section,
        material: Material | MaterialConstants,
        *,
        shear: bool = True,
        plate_factor: Any = 1.0,
    ) -> Self:
        """Return the law of a beam of one section.

        Parameters
        ----------
        length : float or Symbol
            Length of the unstressed beam in m.
        section : Section
            Its section.
        material : Material or MaterialConstants
            Its material.
        shear : bool
            Whether shear forces deflect it.
        plate_factor : float or Symbol
            Times what its bending about z is stiffer than that of a narrow beam.

        Returns
        -------
        BeamLaw
        """
        E, G, A = material.youngs_modulus, material.shear_modulus, section.area
        bend_y, bend_z = E * section.second_moment_y, E * section.second_moment_z * plate_factor
        ratios: tuple[Any, Any] = (0.0, 0.0)
        if shear:
            k_y, k_z = section.shear_factors(material.poissons_ratio)
            scale = 12.0 / (G * A * length**2)
            ratios = scale * bend_y / k_z, scale * bend_z / k_y  # about y it deflects along z
        return cls(
            length,
            E * A,
            G * section.torsion_constant,
            bend_y,
            bend_z,
            section.polar_moment / A,
            *ratios,
            wagner_stiffness=E * section.wagner_constant,
        )

    @classmethod
    def from_constants(cls, constants: Array, label: str = "beam") -> Self:
        """Return the law of an array of `constants`."""
        states = (len(constants) - _OF_ALL) // _STATE_AT_REST  # damped or not
        end = len(constants) - _STATE_AT_REST * states
        law = cls(**dict(zip(_NAMES, constants[:end], strict=False)), label=label)
        return law.with_rest(constants[end:])

    def with_rest(self, states: Array) -> Self:
        """Return the law with the numbers of an array: none, ``rest``, or its rate as well."""
        both = [states[k : k + _STATE_AT_REST] for k in range(0, len(states), _STATE_AT_REST)]
        return replace(self, **dict(zip(("rest", "rest_rate"), both, strict=False)))

    def constants(self) -> Array:
        """Return all constants in one array, in the order of the attributes, but for None."""
        numbers = [getattr(self, name) for name in _NAMES]
        known = [number for number in numbers if number is not None]
        states = [each for each in (self.rest, self.rest_rate) if each is not None]
        return scalars.array([*known, *(number for each in states for number in each)])

    def rest_at(self, X_AC: RigidTransform) -> Array:
        """Return the state at rest of a beam that is unstressed while C has a pose in A."""
        now = self.deformation(X_AC)
        length, _, chord = chord_of(now.angles, now.position)  # all of it turns the sections
        return scalars.array([*turns_of(now.angles, chord), *chord, length])

    # Measures --------------------------------------------------------------------------------

    def deformation(self, X_AC: tuple[Array, Array]) -> Deformation:
        """Return the deformation that belongs to the pose of C in A."""
        if self.planar:
            return planar_deformation(RigidTransform(*X_AC))
        return super().deformation(X_AC)

    def in_range(self, deformation: Deformation) -> Deformation:
        """Return a deformation with its strains, or refuse one that is out of range."""
        checked = super().in_range(deformation)
        if self.planar:
            checked = in_plane(checked)
        return checked._replace(strains=self.strains(checked))

    def calc_rate_matrix(self, angles: Array) -> Array:
        """Return the matrix that maps the angular velocity to the rate of the rotation vector."""
        return np.eye(3) if self.planar else super().calc_rate_matrix(angles)

    def rates(self, deformation: Deformation, V_AC_A: Array) -> DeformationRates:
        """Return the rates that belong to the spatial velocity of C in A, at Co, expressed in A."""
        return super().rates(deformation, planar_velocity(V_AC_A) if self.planar else V_AC_A)

    def is_near_jump(self, deformation: Deformation) -> Any:
        """Return whether the rotation is close to a half turn, or the chord reversed."""
        x = deformation.position
        return is_far(deformation) | (x[0] <= np.cos(_REVERSED) * np.sqrt(dot(x, x)))

    def strains(self, deformation: Deformation) -> BeamStrains:
        """Return the strains that belong to a deformation."""
        if deformation.strains:
            known: BeamStrains = deformation.strains
            return known
        length, direction, chord = chord_of(deformation.angles, deformation.position)
        tilt = self._tilt(chord)
        turns, bending = turns_of(deformation.angles, tilt), self.bending()
        shortening, compliance = self._axial(bending, turns, tilt)
        stretch = elongation(deformation.X_AC.p, length, self.length) + shortening
        if self.rest is not None:
            at_rest, _ = self._axial(bending, self.rest[:3], self.rest[3:5])
            longer = elongation(deformation.X_AC.p, length, self.rest[5])
            stretch = longer + (shortening - at_rest)
        force = stretch / compliance
        return BeamStrains(length, direction, turns, chord, tilt, compliance, force, bending)

    # Springs ---------------------------------------------------------------------------------

    def stored_energy(self, deformation: Deformation) -> Array:
        """Return the energy V in J."""
        strains = self.strains(deformation)
        (qx, qy, qz), (u, w), (Y, Z) = *self._beyond_rest(strains), strains.bending
        twisting = self.torsion_stiffness / self.length * qx * qx
        bending = Y.stiffness.value(qy, -w) + Z.stiffness.value(qz, u)
        stretching = strains.force**2 * strains.compliance
        torque, softness = self._relaxation(strains)
        wound = self.wagner_stiffness * self.length * self.twist(strains)[1] ** 2
        return 0.5 * (twisting + wound + bending + stretching - softness * torque * torque)

    def slopes(self, deformation: Deformation) -> Loads:
        """Return ∂V/∂θ in N m and ∂V/∂p in N, the loads that hold the beam as it stands."""
        strains = self.strains(deformation)
        (qx, qy, qz), (u, w), (Y, Z) = *self._beyond_rest(strains), strains.bending
        (_, arc_y, arc_z), (curl_z, curl_y) = strains.turns, strains.tilt
        bend_y, bend_z = self.bending_stiffness_y, self.bending_stiffness_z
        my, mw = Y.stiffness.slopes(qy, -w)
        mz, mu = Z.stiffness.slopes(qz, u)
        # Both give way by N², and twist inside.
        square = strains.force * strains.force
        soft_y, soft_w = Y.softness.slopes(arc_y, -curl_y)
        soft_z, soft_u = Z.softness.slopes(arc_z, curl_z)
        torque, softness = self._relaxation(strains)
        relaxed = softness * torque
        resisting = self.length * relaxed * relaxed
        by_y = resisting * bend_z * arc_y - relaxed * (bend_y * arc_z - bend_z * qz)
        by_z = resisting * bend_y * arc_z - relaxed * (bend_y * qy - bend_z * arc_y)
        k, wound = self.twist(strains)
        return self._loads(
            deformation,
            self.torsion_stiffness / self.length * qx + self.wagner_stiffness * wound * k,
            my - square * soft_y + by_y,
            mz - square * soft_z + by_z,
            mu - square * soft_u,
            mw - square * soft_w,
            strains.force,
        )

    def damping(self, deformation: Deformation, rates: DeformationRates) -> Loads:
        """Return the loads of the dampers."""
        tau = self.damping_time
        if tau is None:
            return Loads(np.zeros(3), np.zeros(3))
        strains = self.strains(deformation)
        Y, Z = strains.bending
        (tx, ty, tz), (sx, sy, sz) = deformation.angles, rates.angles
        (_, qy, qz), (u, w) = strains.turns, strains.tilt
        n, c = strains.direction, 1.0 + strains.direction[0]
        rate = dot(n, rates.position)
        dx, dy, dz = (rates.position - n * rate) / strains.length
        by_chord_u, by_chord_w = self._tilt_by_chord()
        du = by_chord_u * (2.0 * (dy - n[1] * dx / c) / c - (sx * ty + tx * sy) / 24.0)
        dw = by_chord_w * (2.0 * (dz - n[2] * dx / c) / c - (sx * tz + tx * sz) / 24.0)
        dqx = sx + sy * u + ty * du + sz * w + tz * dw
        dqy, dqz = sy - sx * u - tx * du, sz - sx * w - tx * dw
        by_y, by_w = Y.shortening.slopes(qy, -w)
        by_z, by_u = Z.shortening.slopes(qz, u)
        shortening = self._twist_shortening() * strains.turns[0] * dqx
        shortening = shortening + by_y * dqy - by_w * dw + by_z * dqz + by_u * du
        if self.rest_rate is not None:
            dqy, dqz = dqy - self.rest_rate[1], dqz - self.rest_rate[2]
            rate = rate - self._free_rate(Y, Z)
        my, mw = Y.stiffness.slopes(dqy, -dw)
        mz, mu = Z.stiffness.slopes(dqz, du)
        k, _ = self.twist(strains)
        mx = (self.torsion_stiffness + self.wagner_stiffness * k * k) / self.length * dqx
        N = (rate + shortening) / strains.compliance
        return self._loads(deformation, *(tau * each for each in (mx, my, mz, mu, mw, N)))

    def non_conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the power of the dampers and the work rate of free strain, ∂V/∂t, in W."""
        power = super().non_conservative_power(deformation, rates)
        if self.rest_rate is None:
            return power
        strains, (growth, dy, dz, *_) = self.strains(deformation), self.rest_rate
        (_, qy, qz), (u, w), (Y, Z) = *self._beyond_rest(strains), strains.bending
        (my, _), (mz, _) = Y.stiffness.slopes(qy, -w), Z.stiffness.slopes(qz, u)
        (_, arc_y, arc_z), (torque, softness) = strains.turns, self._relaxation(strains)
        unwound = self.bending_stiffness_y * dy * arc_z - self.bending_stiffness_z * dz * arc_y
        power = power - my * dy - mz * dz + softness * torque * unwound
        power = power + growth * self.stored_energy(deformation)
        return power - strains.force * self._free_rate(Y, Z)

    def _free_rate(self, Y: Bending, Z: Bending) -> Array:
        """Return the rate of l⁰ + Q⁰."""
        (_, qy, qz, u, w, _), (_, dy, dz, *_, longer) = self.rest, self.rest_rate
        (by_y, _), (by_z, _) = Y.shortening.slopes(qy, -w), Z.shortening.slopes(qz, u)
        return longer + by_y * dy + by_z * dz

    def _loads(
        self, deformation: Deformation, mx: Any, my: Any, mz: Any, mu: Any, mw: Any, N: Any
    ) -> Loads:
        """Return the loads along θ and p, from those along q, u*, -w* and l + Q."""
        strains = self.strains(deformation)
        (tx, ty, tz), n, (Y, Z) = deformation.angles, strains.direction, strains.bending
        (qx, qy, qz), (u, w) = strains.turns, strains.tilt
        by_y, by_w = Y.shortening.slopes(qy, -w)
        by_z, by_u = Z.shortening.slopes(qz, u)
        mx = mx + N * self._twist_shortening() * qx
        my, mz = my + N * by_y, mz + N * by_z
        # By the chain rule from q to θ, u* and w*, from these to u and w, and these to θ and n.
        by_chord_u, by_chord_w = self._tilt_by_chord()
        mu = by_chord_u * (mu + N * by_u + mx * ty - my * tx)
        mw = by_chord_w * (mx * tz - mz * tx - (mw + N * by_w))
        moment = scalars.array(
            [
                mx - my * u - mz * w - (mu * ty + mw * tz) / 24.0,
                my + mx * u - mu * tx / 24.0,
                mz + mx * w - mw * tx / 24.0,
            ]
        )
        c = 1.0 + n[0]
        by_n = scalars.array([-2.0 * (mu * n[1] + mw * n[2]) / c**2, 2.0 * mu / c, 2.0 * mw / c])
        return Loads(moment, N * n + (by_n - dot(by_n, n) * n) / strains.length)

    # Constants of the whole beam -------------------------------------------------------------

    def bending(self) -> tuple[Bending, Bending]:
        """Return how the beam bends about y, and about z."""
        about_z = self._bending(self.bending_stiffness_z, self.shear_ratio_z)
        if self.planar:
            return STRAIGHT, about_z
        return self._bending(self.bending_stiffness_y, self.shear_ratio_y), about_z

    def _bending(self, EI: Array, shear: Array) -> Bending:
        """Return how the beam bends in one plane."""
        h = self.length
        return Bending(
            stiffness=Form(EI / h, 12.0 * EI * (1.0 + shear) / h),
            shortening=Form(h / 12.0, h * (1.0 - 5.0 * shear**2) / 5.0),
            softness=Form(
                h**3 * (1.0 + 5.0 * shear) / (720.0 * EI),
                h**3
                * (1.0 + 15.0 * shear + 35.0 * shear**2 + 175.0 / 3.0 * shear**3)
                / (700.0 * EI * (1.0 + shear)),
            ),
        )

    def _tilt_by_chord(self) -> tuple[Array, Array]:
        """Return how much of an angle of the chord along y, and along z, turns the sections."""
        return 1.0 / (1.0 + self.shear_ratio_z), 1.0 / (1.0 + self.shear_ratio_y)

    def _tilt(self, chord: Array) -> Array:
        """Return u* and w*, by which the sections are turned while the chord is at u and w."""
        (u, w), (by_u, by_w) = chord, self._tilt_by_chord()
        if self.rest is None:
            return scalars.array([by_u * u, by_w * w])
        at_rest, beyond = self.rest[3:5], chord - self.rest[3:5]
        return at_rest + scalars.array([by_u * beyond[0], by_w * beyond[1]])

    def _beyond_rest(self, strains: BeamStrains) -> tuple[Array, Array]:
        """Return turns and tilt, less those of the unstressed beam."""
        if self.rest is None:
            return strains.turns, strains.tilt
        return strains.turns - self.rest[:3], strains.tilt - self.rest[3:5]

    def twist(self, strains: BeamStrains) -> tuple[Array, Array]:
        """Return the twist per length k in rad/m, and ½ k² less that at rest.

        The latter, times r² - I_p/A, is by how much a fiber at r from the axis is strained beyond
        the mean.
        """
        if self.planar:
            return 0.0, 0.0
        k = strains.turns[0] / self.length
        at_rest = 0.0 if self.rest is None else self.rest[0] / self.length
        return k, 0.5 * (k * k - at_rest * at_rest)

    def winding(self, deformation: Deformation) -> Array:
        """Return ½ k² less that at rest in 1/m², and the torque of stretched fibers in N m."""
        strains = self.strains(deformation)
        k, wound = self.twist(strains)
        pull = self.wagner_stiffness * wound + strains.force * self.gyration_square
        return scalars.array([wound, pull * k])

    def _twist_shortening(self) -> Array:
        """Return twice the shortening by a twist of one."""
        return self.gyration_square / self.length

    def _axial(
        self, bending: tuple[Bending, Bending], turns: Array, tilt: Array
    ) -> tuple[Array, Array]:
        """Return Q, by which the chord is shorter than the beam, and the axial compliance D."""
        (qx, qy, qz), (u, w), (Y, Z) = turns, tilt, bending
        bent = Y.shortening.value(qy, -w) + Z.shortening.value(qz, u)
        softer = Y.softness.value(qy, -w) + Z.softness.value(qz, u)
        shortening = 0.5 * (bent + self._twist_shortening() * qx * qx)
        return shortening, self.length / self.axial_stiffness + softer

    def _relaxation(self, strains: BeamStrains) -> tuple[Array, Array]:
        """Return what bending twists the inside with, and how soft that is."""
        if self.planar:
            return 0.0, 0.0
        (_, qy, qz), (_, py, pz) = strains.turns, self._beyond_rest(strains)[0]
        torque = self.bending_stiffness_y * py * qz - self.bending_stiffness_z * pz * qy
        bent = self.bending_stiffness_y * qz * qz + self.bending_stiffness_z * qy * qy
        return torque, 1.0 / ((12.0 * self.torsion_stiffness + bent) * self.length)

    def relaxed_energy(self, strains: BeamStrains) -> Array:
        """Return what the energy loses in J as the twist inside follows from the bending."""
        torque, softness = self._relaxation(strains)
        return 0.5 * softness * torque * torque

    # Inside ----------------------------------------------------------------------------------

    def section_forces(self, deformation: Deformation, F_A_A: Array, F_C_A: Array) -> Array:
        """Return torque, moments and forces of the sections at A, in the middle, and at C.

        Parameters
        ----------
        deformation : Deformation
            How the beam is deformed.
        F_A_A, F_C_A : array, shape (6,)
            The spatial forces on A and C, of `spatial_forces`.

        Returns
        -------
        array, shape (3, 6)
            T, M_y, M_z in N m, and the tension N, V_y, V_z in N, about the axes of the section, on
            the side of it that faces C.
        """
        strains, X_AC = self.strains(deformation), deformation.X_AC
        (_, qy, qz), (u, w) = strains.turns, strains.tilt
        on_C = rotate_spatial(X_AC.R.T, F_C_A)
        # The middle of an arc is beside its chord, and that of an S is turned against it.
        aside = self.length / 8.0 * scalars.array([0.0, -qz, qy])
        moment, force = np.split(rotate_spatial(deformation.R_AB.T, F_C_A), 2)
        moment = moment + cross(0.5 * deformation.position - aside, force)
        R = rotation_from_rotation_vector(scalars.array([0.0, -1.5 * w, 1.5 * u]))
        middle = rotate_spatial(R.T, np.concatenate([moment, force]))
        return np.stack([F_A_A, -middle, -on_C])

    def _near_jump(self, deformation: Deformation) -> EvaluationError:
        """State that the beam is bent beyond its equations."""
        x = deformation.position
        angle, length = np.linalg.norm(deformation.angles), np.linalg.norm(x)
        turned = np.rad2deg(np.arccos(np.clip(x[0] / length, -1.0, 1.0))) if length > 0.0 else 180.0
        return EvaluationError(
            f"Cannot evaluate the beam '{self.label}'",
            expected=f"less than {np.rad2deg(LARGEST_ANGLE):.0f} degrees between its ends, and"
            f" less than {np.rad2deg(_REVERSED):.0f} between its axis and the line that joins them",
            found=f"a rotation by {np.rad2deg(angle):.2f} degrees, and {turned:.2f} degrees to a"
            f" line of {length:.6g} m",
            remedy="Divide it into segments, each of which bends less, or check why the bodies "
            "moved there, such as a missing support or too large a step",
        )


#: The constants in the order of their array, of which the last one may be missing.
_NAMES = [each.name for each in fields(BeamLaw) if each.name not in _OTHERS]
