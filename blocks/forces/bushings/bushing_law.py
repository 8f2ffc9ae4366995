"""The forces of a bushing, as functions of how its two frames stand and move to each other.

`BushingLaw` holds what all bushings have in common. `RollPitchYawBushingLaw` follows Drake's
LinearBushingRollPitchYaw (class documentation and behavior of Drake 1.51),
`RotationVectorBushingLaw` has no gimbal lock, and `GeneralBushingLaw` describes bushings as
measured: coupled, preloaded, with tables and memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.blocks.forces.bushings.halfway_law import (
    LARGEST_ANGLE,
    Deformation,
    DeformationRates,
    HalfwayLaw,
    Loads,
    RotationVectorAngles,
    is_far,
)
from flexure.blocks.forces.bushings.mount_branches import FrictionBranch, MaxwellBranch
from flexure.blocks.forces.on_joints.force_table import ForceTable
from flexure.blocks.math import cos_pitch, dot, rpy_from_rotation, rpy_rate_matrix
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array

#: Smallest cosine of the pitch for which rates of the angles are computed.
GIMBAL_LOCK_TOLERANCE = 0.008


@dataclass(frozen=True)
class BushingLaw(HalfwayLaw):
    """The law of a linear bushing between a frame A and a frame C.

    It is a `HalfwayLaw`, with springs and dampers along each of the three angles q, and along each
    axis of the frame B halfway between A and C. Diagonal matrices K₀, D₀, K and D hold the
    constants::

        τ = -(K₀ q + D₀ q̇)                   torques about the axes of the angles
        f_B = -(K x + D u)                   force on C in B, with u = ẋ
        V = ½ q · K₀ q + ½ x · K x           stored energy

    The springs do the work -V̇ and the dampers dissipate -(q̇ · D₀ q̇ + u · D u).

    A subclass chooses the angles.

    Attributes
    ----------
    torque_stiffness : array, shape (3,)
        Torsional stiffness K₀ >= 0 in N m/rad.
    torque_damping : array, shape (3,)
        Torsional damping D₀ >= 0 in N m s/rad.
    force_stiffness : array, shape (3,)
        Stiffness K >= 0 along the axes of B in N/m.
    force_damping : array, shape (3,)
        Damping D >= 0 along the axes of B in N s/m.
    label : str
        What messages call the bushing.

    See Also
    --------
    RollPitchYawBushingLaw : With roll, pitch and yaw.
    RotationVectorBushingLaw : With the rotation vector.

    Notes
    -----
    The constants may be symbols; they are checked by the block.

    Where the rotation passes a half turn, x jumps and so do f and V, unless the entries of K are
    equal; `in_range` refuses what comes close.

    Examples
    --------
    >>> import flexure as fx
    >>> import numpy as np
    >>> law = fx.laws.RotationVectorBushingLaw(*np.full((4, 3), 2.0))
    >>> isinstance(law, fx.laws.BushingLaw)
    True
    """

    torque_stiffness: Array
    torque_damping: Array
    force_stiffness: Array
    force_damping: Array
    label: str = field(default="bushing", kw_only=True)

    def is_near_jump(self, deformation: Deformation) -> Any:
        """Return whether springs are about to jump: here those along the axes of B."""
        x, y, z = self.force_stiffness
        return is_far(deformation) & ((x != y) | (y != z))

    def stored_energy(self, deformation: Deformation) -> Array:
        """Return the energy V of the springs in J."""
        q, x = deformation.angles, deformation.position
        return 0.5 * (dot(self.torque_stiffness * q, q) + dot(self.force_stiffness * x, x))

    def slopes(self, deformation: Deformation) -> Loads:
        """Return K₀ q in N m and K x in N."""
        return Loads(
            self.torque_stiffness * deformation.angles, self.force_stiffness * deformation.position
        )

    def damping(self, deformation: Deformation, rates: DeformationRates) -> Loads:
        """Return D₀ q̇ in N m and D u in N."""
        return Loads(self.torque_damping * rates.angles, self.force_damping * rates.work_rate)

    def _near_jump(self, deformation: Deformation) -> EvaluationError:
        """Say that springs are about to jump."""
        cosine = np.clip(0.5 * (np.trace(deformation.X_AC.R) - 1.0), -1.0, 1.0)
        angles = ", ".join(f"{angle:.2f}" for angle in np.rad2deg(deformation.angles))
        return EvaluationError(
            f"Cannot evaluate the springs of '{self.label}'",
            expected=f"angles of less than {np.rad2deg(LARGEST_ANGLE):.0f} degrees between its"
            " frames, because its springs would jump at a half turn",
            found=f"a rotation by {np.rad2deg(np.arccos(cosine)):.2f} degrees, with the angles"
            f" ({angles}) degrees",
            remedy="Orient the two frames so that the middle of the motion is near zero; frames "
            "may turn freely where the stiffness along x, y and z is equal and none resists"
            " the rotation",
        )


@dataclass(frozen=True)
class RollPitchYawBushingLaw(BushingLaw):
    """The law of a bushing whose angles q are roll, pitch and yaw of C in A.

    R_AC = Rz(q₂) Ry(q₁) Rx(q₀), and τ are the torques about the axes of these turns: about x of C,
    about y in between, and about z of A. Everything else is said at `BushingLaw`, but for a choice:

    - ``energy_consistent=False``: the forces are Drake's, which take half of w_AC for the angular
      velocity of B, so that σ is absent from u and from the moments::

          u = R_BA (v_AC - ½ w_AC × r)
          moments  ±t - ½ r×f

      The force on C then acts at the point halfway between Ao and Co, and so does the one on A.

    - ``energy_consistent=True``: u = ẋ, and the moments with σ.

    With Drake's forces, springs of unequal stiffness do work that depends on the path, by the power
    -x · K (u - ẋ) = -½ (σ × w_AC) · (r × f) of their force f. Around a loop of orientations the
    work is of second order in the angles, like the torsional energy, and positive in one of its two
    directions. It is zero for equal stiffnesses and for rotations about a fixed axis. It counts as
    non-conservative power, so that energy adds up in both cases.

    Attributes
    ----------
    torque_stiffness, torque_damping, force_stiffness, force_damping
        As in `BushingLaw`.
    energy_consistent : bool
        Whether springs do no work around loops.

    See Also
    --------
    flexure.LinearBushing : The element with this law.
    RotationVectorBushingLaw : A bushing without gimbal lock.

    Notes
    -----
    Angles do not wrap: a torque jumps where roll or yaw pass ±180 degrees. `in_range` refuses what
    comes close if energy is to be consistent; Drake's forces jump without a word, as in Drake.
    Rates of the angles, and with them all forces, are refused where cos q₁ < 0.008, within 0.46
    degrees of gimbal lock at a pitch of ±90 degrees.

    Examples
    --------
    >>> k, d = np.array([1000.0, 100.0, 10.0]), np.zeros(3)
    >>> drakes = RollPitchYawBushingLaw(d, d, k, d)
    >>> consistent = RollPitchYawBushingLaw(d, d, k, d, energy_consistent=True)
    >>> R_AC = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> for law in (drakes, consistent):
    ...     now = law.deformation((R_AC, [0.4, 0.3, -0.2]))
    ...     rates = law.rates(now, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    ...     _, F_C_A = law.spatial_forces(now, rates)
    ...     print(round(F_C_A[0], 3), round(law.conservative_power(now, rates), 3))
    34.2 48.739
    48.739 48.739
    """

    energy_consistent: bool = False

    def calc_angles(self, R_AC: Array) -> Array:
        """Return roll, pitch and yaw in rad."""
        return rpy_from_rotation(R_AC)

    def calc_rate_matrix(self, angles: Array) -> Array:
        """Return N, or refuse gimbal lock."""
        locked = cos_pitch(angles) < GIMBAL_LOCK_TOLERANCE  # a pitch is within ±90 degrees
        return rpy_rate_matrix(
            scalars.refuse_where(locked, angles, lambda: self._gimbal_lock(angles[1]))
        )

    def is_near_jump(self, deformation: Deformation) -> Any:
        """Return whether springs are about to jump: those of roll and yaw by themselves."""
        if not self.energy_consistent:
            return False
        q, k = deformation.angles, self.torque_stiffness
        roll, _, yaw = (np.abs(q) > LARGEST_ANGLE) & (k != 0.0)
        return super().is_near_jump(deformation) | roll | yaw

    def calc_half(self, vector: Array, sigma: Array) -> Array:
        """Return ½ (a - σ × a), or Drake's ½ a."""
        return super().calc_half(vector, sigma) if self.energy_consistent else 0.5 * vector

    def _gimbal_lock(self, pitch: float) -> EvaluationError:
        """Say that the angles are in gimbal lock."""
        tolerance = np.rad2deg(np.arcsin(GIMBAL_LOCK_TOLERANCE))
        return EvaluationError(
            f"Cannot evaluate the rates of the angles of '{self.label}'",
            expected=f"a pitch that is more than {tolerance:.3f} degrees away from gimbal lock at "
            "±90 degrees",
            found=f"a pitch of {np.rad2deg(pitch):.3f} degrees",
            remedy="Orient the two frames so that the largest rotation between them is not about "
            "y, the middle axis, or use LinearBushing, which has no gimbal lock",
        )


@dataclass(frozen=True)
class RotationVectorBushingLaw(RotationVectorAngles, BushingLaw):
    """The law of a bushing with torques from the rotation vector of C in A.

    With the angle θ in [0, π] and the axis λ of the shortest rotation from A to C, q = θ λ, which
    has the same components in A, B and C. The matrix N of q̇ = N w_AC is the one that
    `rotation_vector_rate_matrix` gives, and everything else is said at `BushingLaw`: forces and
    moments are the exact gradient of V = ½ q · K₀ q + ½ x · K x, and dampers only dissipate.

    Both frames have the same rank: the same bushing from C to A exerts the same forces. Turned
    about one of the axes of B only, it is a torsion spring with a torque in proportion to the
    angle.

    Attributes
    ----------
    torque_stiffness, torque_damping, force_stiffness, force_damping
        As in `BushingLaw`, about and along the axes of B.

    See Also
    --------
    flexure.LinearBushing : The element with this law.
    RollPitchYawBushingLaw : A bushing with roll, pitch and yaw.

    Notes
    -----
    Valid for all rotations of less than a half turn, with smooth forces, also at θ = 0. At a half
    turn the shortest rotation becomes the one about the opposite axis: q jumps to -q, and B by a
    half turn. The torsional energy does not jump, but springs that have pulled back then pull
    onwards. Orient the frames so that the middle of the range of motion is near θ = 0. Bushings
    refuse rotations of more than 170 degrees by `in_range`, unless nothing jumps.

    A frame halfway, which prefers neither body, is that of the invariant joints of P. Masarati and
    M. Morandini, Intrinsic deformable joints, Multibody System Dynamics 23 (2010) 361-386. Why a
    measure of the rotation should be a vector along its axis is discussed by O. A. Bauchau and
    S. Han, Flexible joints in structural and multibody dynamics, Mechanical Sciences 4 (2013)
    65-77.

    Examples
    --------
    Springs of equal stiffness turn back about the axis of the rotation:

    >>> import numpy as np
    >>> from flexure.blocks.math import rotation_from_rotation_vector
    >>> k, d = [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]
    >>> law = RotationVectorBushingLaw(*map(np.array, (k, d, k, d)))
    >>> now = law.deformation((rotation_from_rotation_vector([0.9, 1.2, 0.0]), np.zeros(3)))
    >>> _, F_C_A = law.spatial_forces(now, law.rates(now, np.zeros(6)))
    >>> F_C_A[:3].round(12)
    array([-1.8, -2.4,  0. ])
    """

    def is_near_jump(self, deformation: Deformation) -> Any:
        """Return whether springs are about to jump: torques do so at a half turn, too."""
        is_twisted = np.any(self.torque_stiffness != 0.0)
        return super().is_near_jump(deformation) | (is_far(deformation) & is_twisted)


@dataclass(frozen=True)
class GeneralBushingLaw(RotationVectorAngles):
    """The law of a bushing with coupled directions, preload, tables and inner parts.

    It is a `HalfwayLaw` of the deformation ξ = (q, x): the rotation vector from A to C, and the
    position of Co from Ao in the frame B halfway between. With matrices K and D, the preload p,
    tables of loads Tₖ along single directions, and branches j with their energies Vⱼ and inner
    coordinates zⱼ::

        V = ½ ξ · K ξ - p · ξ + Σ ∫₀^ξₖ Tₖ dξₖ + Σ Vⱼ(ξ, zⱼ)
        (τ, f_B) = -(∂V/∂ξ + D ξ̇)

    The conservative power is -V̇ with the rates of the inner coordinates, so that what branches
    dissipate, Σ ∂Vⱼ/∂zⱼ · żⱼ, is part of the other one, as what D dissipates.

    Attributes
    ----------
    stiffness : array, shape (6, 6)
        Symmetric K, not negative, first for rotations, in N m/rad, N m/m = N/rad and N/m.
    damping_matrix : array, shape (6, 6)
        Symmetric D, not negative, in the units of K times s.
    preload : array, shape (6,)
        Loads p on C where nothing is deformed, moment in N m and force in N, expressed in B.
    tables : sequence of (int, ForceTable)
        Directions, and loads over their deformation in addition to K.
    branches : sequence of MaxwellBranch or FrictionBranch
        What is inside, with its inner coordinates.
    label : str
        What messages call the bushing.

    See Also
    --------
    flexure.GeneralBushing : The element with this law.

    Examples
    --------
    >>> import numpy as np
    >>> law = GeneralBushingLaw(np.eye(6), np.zeros((6, 6)), np.array([0, 0, 0, 0, 0, 3.0]))
    >>> now = law.deformation((np.eye(3), np.array([0.0, 0.0, 1.0])))
    >>> law.forces(now, law.rates(now, np.zeros(6))).position
    array([-0., -0.,  2.])
    >>> float(law.stored_energy(now))
    -2.5
    """

    stiffness: Array
    damping_matrix: Array
    preload: Array
    tables: Sequence[tuple[int, ForceTable]] = ()
    branches: Sequence[MaxwellBranch | FrictionBranch] = ()
    label: str = field(default="bushing", kw_only=True)

    def is_near_jump(self, deformation: Deformation) -> Any:
        """Return whether springs are about to jump, as all do at a half turn."""
        return is_far(deformation)

    def stored_energy(self, deformation: Deformation) -> Array:
        """Return the energy V of all springs in J."""
        xi = _measures(deformation)
        energy = dot(0.5 * np.matmul(self.stiffness, xi) - self.preload, xi)
        for direction, table in self.tables:
            energy = energy + table.energy(xi[direction])
        for branch in self.branches:
            energy = energy + branch.energy(_along(branch.directions, xi))
        return energy

    def slopes(self, deformation: Deformation) -> Loads:
        """Return ∂V/∂q in N m and ∂V/∂x in N."""
        xi = _measures(deformation)
        loads = list(np.matmul(self.stiffness, xi) - self.preload)
        for direction, table in self.tables:
            loads[direction] = loads[direction] + table.force(xi[direction])
        for branch in self.branches:
            inner = branch.load(_along(branch.directions, xi))
            for k, direction in enumerate(branch.directions):
                loads[direction] = loads[direction] + inner[k]
        return Loads(scalars.array(loads[:3]), scalars.array(loads[3:]))

    def damping(self, deformation: Deformation, rates: DeformationRates) -> Loads:
        """Return the loads D ξ̇ of the dampers in N m and N."""
        loads = np.matmul(self.damping_matrix, _rates(rates))
        return Loads(loads[:3], loads[3:])

    def inner_rates(self, deformation: Deformation, rates: DeformationRates) -> list[Array]:
        """Return the rates ż of the inner coordinates, an array for each branch."""
        xi, xi_rates = _measures(deformation), _rates(rates)
        return [
            each.flow(_along(each.directions, xi), _along(each.directions, xi_rates))
            for each in self.branches
        ]

    def dissipation_inside(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the power in W that dampers and friction of the branches turn into heat."""
        xi, power = _measures(deformation), 0.0
        inner_rates = self.inner_rates(deformation, rates)
        for each, flow in zip(self.branches, inner_rates, strict=True):
            power = power + dot(each.load(_along(each.directions, xi)), flow)
        return power

    def conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the negative rate of V in W, with what springs give to dampers in series."""
        given = super().conservative_power(deformation, rates)
        return given + self.dissipation_inside(deformation, rates)

    def non_conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the power that is dissipated in W, which is never positive."""
        outside = super().non_conservative_power(deformation, rates)
        return outside - self.dissipation_inside(deformation, rates)

    def _near_jump(self, deformation: Deformation) -> EvaluationError:
        """Say that springs are about to jump."""
        angles = ", ".join(f"{angle:.2f}" for angle in np.rad2deg(deformation.angles))
        limit = np.rad2deg(LARGEST_ANGLE)
        return EvaluationError(
            f"Cannot evaluate the springs of '{self.label}'",
            expected=f"a rotation of less than {limit:.0f} degrees between its frames, because its"
            " springs would jump at a half turn",
            found=f"the rotation vector ({angles}) degrees",
            remedy="Orient the two frames so that the middle of the motion is near zero",
        )


def _measures(deformation: Deformation) -> Array:
    """Return the deformation ξ."""
    return np.concatenate([deformation.angles, deformation.position])


def _rates(rates: DeformationRates) -> Array:
    """Return the rates ξ̇, along which the loads do their work."""
    return np.concatenate([rates.angles, rates.work_rate])


def _along(directions: tuple[int, ...], measures: Array) -> Array:
    """Return the components of a deformation, or of its rates, along some directions."""
    return scalars.array([measures[k] for k in directions])
