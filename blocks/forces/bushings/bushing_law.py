"""The forces of a bushing, as functions of how its two frames stand and move to each other.

`BushingLaw` holds what all bushings have in common, and `RollPitchYawBushingLaw` is the one that
follows Drake's LinearBushingRollPitchYaw (class documentation and behavior of Drake 1.51).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.blocks.forces.bushings.halfway_law import (
    LARGEST_ANGLE,
    Deformation,
    DeformationRates,
    HalfwayLaw,
    Loads,
    is_far,
)
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
