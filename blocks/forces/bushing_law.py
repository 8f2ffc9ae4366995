"""The forces of a bushing, as functions of how its two frames stand and move to each other.

`BushingLaw` holds what all bushings have in common, and `RollPitchYawBushingLaw` is the one that
follows Drake's LinearBushingRollPitchYaw (class documentation and behavior of Drake 1.51).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import (
    RigidTransform,
    cos_pitch,
    cross,
    dot,
    half_rotation,
    modified_rodrigues,
    quaternion_from_rotation,
    rotate_spatial,
    rotation_from_quaternion,
    rpy_from_rotation,
    rpy_rate_matrix,
)
from flexure.diagrams import scalars
from flexure.diagrams.errors import EvaluationError
from flexure.diagrams.values import Array

#: Smallest cosine of the pitch for which rates of the angles are computed.
GIMBAL_LOCK_TOLERANCE = 0.008
#: Largest angle, in rad, at which bushings evaluate springs that jump at a half turn. The rest of
#: the half turn is so wide that no integration with a sensible step passes it unseen.
LARGEST_ANGLE = np.deg2rad(170.0)


class Deformation(NamedTuple):
    """How a bushing is deformed; it follows from the pose of C in A.

    Attributes
    ----------
    X_AC : RigidTransform
        Pose of C in A, of which the position is r = p_AC.
    R_AB : array, shape (3, 3)
        Orientation of the frame B halfway between A and C.
    sigma : array, shape (3,)
        The vector σ = tan(θ/4) λ of the rotation from A to C.
    angles : array, shape (3,)
        The three angles q in rad.
    position : array, shape (3,)
        The position x = R_BA r of Co from Ao, expressed in B, in m.
    """

    X_AC: RigidTransform
    R_AB: Array
    sigma: Array
    angles: Array
    position: Array


class DeformationRates(NamedTuple):
    """How fast the deformation of a bushing changes.

    Attributes
    ----------
    rate_matrix : array, shape (3, 3)
        The matrix N of q̇ = N w_AC, with w_AC expressed in A.
    angles : array, shape (3,)
        The rates q̇ in rad/s.
    position : array, shape (3,)
        The exact rate ẋ in m/s.
    work_rate : array, shape (3,)
        The rate u in m/s along which the force does its work, expressed in B.
    """

    rate_matrix: Array
    angles: Array
    position: Array
    work_rate: Array


@dataclass(frozen=True)
class BushingLaw(ABC):
    """The law of a linear bushing between a frame A and a frame C.

    Three angles q describe the orientation of C in A, with q̇ = N w_AC. The frame B is halfway
    between A and C in orientation, R_AB = R_BC, and r is the position of Co from Ao. Diagonal
    matrices K₀, D₀, K and D hold the constants, σ belongs to the rotation from A to C::

        x = R_BA r                           position in B
        w_AB = ½ (w_AC - σ × w_AC)           exact angular velocity of B
        ẋ = R_BA (v_AC - w_AB × r)           its exact rate
        τ = -(K₀ q + D₀ q̇),  t = Nᵀ τ        torque on C, with the power t · w_AC = τ · q̇
        f = R_AB f_B,  f_B = -(K x + D u)    force on C, with u = ẋ

        on C about Co:  ( t - ½ (r×f + σ × (r×f)),   f)
        on A about Ao:  (-t - ½ (r×f - σ × (r×f)),  -f)

        V = ½ q · K₀ q + ½ x · K x           stored energy

    The moments are those with which the power of the forces is τ · q̇ + f_B · u. The springs then do
    the work -V̇ and the dampers dissipate -(q̇ · D₀ q̇ + u · D u).

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

    Notes
    -----
    The constants may be symbols; they are checked by the block. Functions take one sample. What is
    computed once for all of them comes from `deformation` and `rates`.

    B turns by half of the rotation, with the shortest of all rotations from A to C. It jumps where
    this one passes a half turn, and so do x and, unless the entries of K are equal, f and V. How
    often the frames went around does not follow from where they are, so no such law can go on;
    `in_range` refuses what comes close.
    """

    torque_stiffness: Array
    torque_damping: Array
    force_stiffness: Array
    force_damping: Array
    label: str = field(default="bushing", kw_only=True)

    @abstractmethod
    def calc_angles(self, R_AC: Array) -> Array:
        """Return the angles q of a rotation matrix in rad."""

    @abstractmethod
    def calc_rate_matrix(self, angles: Array) -> Array:
        """Return the matrix N of q̇ = N w_AC, with w_AC expressed in A."""

    def calc_half(self, vector: Array, sigma: Array) -> Array:
        """Return ½ (a - σ × a): the part of the motion or of the moment a that B takes."""
        return 0.5 * (vector - cross(sigma, vector))

    def deformation(self, X_AC: tuple[Array, Array]) -> Deformation:
        """Return the deformation that belongs to the pose of C in A."""
        X_AC = RigidTransform(*X_AC)
        e = quaternion_from_rotation(X_AC.R)
        R_AB = rotation_from_quaternion(half_rotation(e))
        position = np.matmul(R_AB.T, X_AC.p)
        return Deformation(X_AC, R_AB, modified_rodrigues(e), self.calc_angles(X_AC.R), position)

    def in_range(self, deformation: Deformation) -> Deformation:
        """Return a deformation, or refuse one within 10 degrees of where springs jump."""
        measures = scalars.refuse_where(
            self.is_near_jump(deformation),
            np.concatenate([deformation.angles, deformation.position]),
            lambda: self._near_jump(deformation),
        )
        return deformation._replace(angles=measures[:3], position=measures[3:])

    def is_near_jump(self, deformation: Deformation) -> Any:
        """Tell whether springs are about to jump: here those along the axes of B."""
        x, y, z = self.force_stiffness
        return is_far(deformation) & ((x != y) | (y != z))

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
            remedy="Orient the two frames so that the middle of the motion is near zero; frames may"
            " turn as they like where the stiffness along x, y and z is equal and none resists"
            " the rotation",
        )

    def rates(self, deformation: Deformation, V_AC_A: Array) -> DeformationRates:
        """Return the rates that belong to the spatial velocity of C in A, at Co, expressed in A."""
        X_AC, R_AB, sigma, angles, _ = deformation
        w, v = V_AC_A[:3], V_AC_A[3:]
        rate_matrix = self.calc_rate_matrix(angles)
        w_AB = 0.5 * (w - cross(sigma, w))
        return DeformationRates(
            rate_matrix,
            np.matmul(rate_matrix, w),
            np.matmul(R_AB.T, v - cross(w_AB, X_AC.p)),
            np.matmul(R_AB.T, v - cross(self.calc_half(w, sigma), X_AC.p)),
        )

    def gimbal_torques(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the torques τ about the axes of the three angles in N m."""
        return -(self.torque_stiffness * deformation.angles + self.torque_damping * rates.angles)

    def force(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the force f_B on C, expressed in B, in N."""
        return -(self.force_stiffness * deformation.position + self.force_damping * rates.work_rate)

    def spatial_forces(
        self, deformation: Deformation, rates: DeformationRates
    ) -> tuple[Array, Array]:
        """Return the spatial forces on A about Ao and on C about Co, both expressed in A."""
        X_AC, R_AB, sigma, _, _ = deformation
        t = np.matmul(rates.rate_matrix.T, self.gimbal_torques(deformation, rates))
        f = np.matmul(R_AB, self.force(deformation, rates))
        m = cross(X_AC.p, f)
        F_A_A = np.concatenate([-t - self.calc_half(m, sigma), -f])
        F_C_A = np.concatenate([t - self.calc_half(m, -sigma), f])
        return F_A_A, F_C_A

    def spatial_force_on_C(self, deformation: Deformation, F_C_A: Array) -> Array:
        """Return the spatial force on C about Co expressed in C, from that expressed in A."""
        return rotate_spatial(deformation.X_AC.R.T, F_C_A)

    def stored_energy(self, deformation: Deformation) -> Array:
        """Return the energy V of the springs in J."""
        q, x = deformation.angles, deformation.position
        return 0.5 * (dot(self.torque_stiffness * q, q) + dot(self.force_stiffness * x, x))

    def conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the negative rate of V in W, -q · K₀ q̇ - x · K ẋ."""
        torsion = dot(self.torque_stiffness * deformation.angles, rates.angles)
        return -(torsion + dot(self.force_stiffness * deformation.position, rates.position))

    def non_conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return all other power of the forces in W.

        It is -q̇ · D₀ q̇ - u · D u of the dampers, and -x · K (u - ẋ) of the springs, which is zero
        where u = ẋ.
        """
        u = rates.work_rate
        dissipated = dot(self.torque_damping * rates.angles, rates.angles) + dot(
            self.force_damping * u, u
        )
        follower = dot(self.force_stiffness * deformation.position, u - rates.position)
        return -(dissipated + follower)


def is_far(deformation: Deformation) -> Any:
    """Tell whether the rotation from A to C is close to a half turn."""
    (xx, _, _), (_, yy, _), (_, _, zz) = deformation.X_AC.R
    return xx + yy + zz < 1.0 + 2.0 * np.cos(LARGEST_ANGLE)


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
        """Tell whether springs are about to jump: those of roll and yaw by themselves."""
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
