"""The forces of an element with a frame halfway between its two ends, whatever its energy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from flexure.blocks.math import (
    RigidTransform,
    cross,
    dot,
    half_rotation,
    modified_rodrigues,
    quaternion_from_rotation,
    rotate_spatial,
    rotation_from_quaternion,
    rotation_vector_from_rotation,
    rotation_vector_rate_matrix,
)
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array

#: Largest angle, in rad, at which elements evaluate springs that jump at a half turn. The rest of
#: the half turn is so wide that no integration with a sensible step passes it unseen.
LARGEST_ANGLE = np.deg2rad(170.0)


class Deformation(NamedTuple):
    """How an element is deformed; it follows from the pose of C in A."""

    X_AC: RigidTransform  # pose of C in A, of which the position is r = p_AC
    R_AB: Array  # orientation of the frame B halfway between A and C, shape (3, 3)
    sigma: Array  # the vector σ = tan(θ/4) λ of the rotation from A to C, shape (3,)
    angles: Array  # the three angles q in rad, shape (3,)
    position: Array  # the position x = R_BA r of Co from Ao, expressed in B, in m, shape (3,)
    # What the law has computed of angles and position for all that follows, if anything.
    strains: Any = ()


class DeformationRates(NamedTuple):
    """How fast the deformation of an element changes."""

    rate_matrix: Array  # the matrix N of q̇ = N w_AC, with w_AC expressed in A, shape (3, 3)
    angles: Array  # the rates q̇ in rad/s, shape (3,)
    position: Array  # the exact rate ẋ in m/s, shape (3,)
    # The rate u in m/s along which the force does its work, expressed in B, shape (3,).
    work_rate: Array


class Loads(NamedTuple):
    """Loads along the measures of a deformation, such as the slopes of an energy."""

    angles: Array  # torques about the axes of the three angles in N m, shape (3,)
    position: Array  # force along the axes of B in N, shape (3,)


@dataclass(frozen=True)
class HalfwayLaw(ABC):
    """The law of an element between frames A and C, from any energy.

    Three angles q describe the orientation of C in A, with q̇ = N w_AC. The frame B is halfway
    between A and C in orientation, R_AB = R_BC, and r is the position of Co from Ao. The energy
    V(q, x) and dampers are those of a subclass, and σ belongs to the rotation from A to C::

        x = R_BA r                           position in B
        w_AB = ½ (w_AC - σ × w_AC)           exact angular velocity of B
        ẋ = R_BA (v_AC - w_AB × r)           its exact rate
        τ = -(∂V/∂q + dampers),  t = Nᵀ τ    torque on C, with the power t · w_AC = τ · q̇
        f_B = -(∂V/∂x + dampers)             force on C, expressed in B, f = R_AB f_B

        on C about Co:  ( t - ½ (r×f + σ × (r×f)),   f)
        on A about Ao:  (-t - ½ (r×f - σ × (r×f)),  -f)

    The moments are those with which the power of the forces is τ · q̇ + f_B · u, with u = ẋ. The
    springs then do the work -V̇.

    A subclass chooses the angles, and gives the energy, its slopes and the dampers.

    Attributes
    ----------
    label : str
        What messages call the element.

    See Also
    --------
    BushingLaw : Springs and dampers along each direction.
    GeneralBushingLaw : Full stiffness matrices.

    Notes
    -----
    Functions take one sample. What is computed once for all of them comes from `deformation` and
    `rates`.

    B turns by half of the rotation, with the shortest of all rotations from A to C. It jumps where
    this one passes a half turn, and so does x. How often the frames went around does not follow
    from where they are, so no such law can go on; `in_range` refuses what comes close.

    Examples
    --------
    >>> import flexure as fx
    >>> import numpy as np
    >>> law = fx.laws.RotationVectorBushingLaw(*np.full((4, 3), 2.0))
    >>> now = law.deformation((np.eye(3), [0.1, 0.0, 0.0]))
    >>> round(float(law.stored_energy(now)), 9)
    0.01
    """

    label: str = field(default="element", kw_only=True)

    @abstractmethod
    def calc_angles(self, R_AC: Array) -> Array:
        """Return the angles q of a rotation matrix in rad."""

    @abstractmethod
    def calc_rate_matrix(self, angles: Array) -> Array:
        """Return the matrix N of q̇ = N w_AC, with w_AC expressed in A."""

    @abstractmethod
    def is_near_jump(self, deformation: Deformation) -> Any:
        """Return whether springs are about to jump."""

    @abstractmethod
    def stored_energy(self, deformation: Deformation) -> Array:
        """Return the energy V of the springs in J."""

    @abstractmethod
    def slopes(self, deformation: Deformation) -> Loads:
        """Return ∂V/∂q in N m and ∂V/∂x in N."""

    @abstractmethod
    def damping(self, deformation: Deformation, rates: DeformationRates) -> Loads:
        """Return what dampers add to the slopes: loads with no negative power along q̇ and u."""

    @abstractmethod
    def _near_jump(self, deformation: Deformation) -> EvaluationError:
        """Say that springs are about to jump."""

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

    def rates(self, deformation: Deformation, V_AC_A: Array) -> DeformationRates:
        """Return the rates that belong to the spatial velocity of C in A, at Co, expressed in A."""
        X_AC, R_AB, sigma, angles, *_ = deformation
        w, v = V_AC_A[:3], V_AC_A[3:]
        rate_matrix = self.calc_rate_matrix(angles)
        w_AB = 0.5 * (w - cross(sigma, w))
        return DeformationRates(
            rate_matrix,
            np.matmul(rate_matrix, w),
            np.matmul(R_AB.T, v - cross(w_AB, X_AC.p)),
            np.matmul(R_AB.T, v - cross(self.calc_half(w, sigma), X_AC.p)),
        )

    def forces(self, deformation: Deformation, rates: DeformationRates) -> Loads:
        """Return the torques τ in N m, and the force f_B on C expressed in B in N."""
        springs, dampers = self.slopes(deformation), self.damping(deformation, rates)
        return Loads(-(springs.angles + dampers.angles), -(springs.position + dampers.position))

    def spatial_forces(
        self, deformation: Deformation, rates: DeformationRates
    ) -> tuple[Array, Array]:
        """Return the spatial forces on A about Ao and on C about Co, both expressed in A."""
        X_AC, R_AB, sigma, *_ = deformation
        torques, force = self.forces(deformation, rates)
        t, f = np.matmul(rates.rate_matrix.T, torques), np.matmul(R_AB, force)
        m = cross(X_AC.p, f)
        F_A_A = np.concatenate([-t - self.calc_half(m, sigma), -f])
        F_C_A = np.concatenate([t - self.calc_half(m, -sigma), f])
        return F_A_A, F_C_A

    def spatial_force_on_C(self, deformation: Deformation, F_C_A: Array) -> Array:
        """Return the spatial force on C about Co expressed in C, from that expressed in A."""
        return rotate_spatial(deformation.X_AC.R.T, F_C_A)

    def conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return the negative rate of V in W, -(∂V/∂q · q̇ + ∂V/∂x · ẋ)."""
        springs = self.slopes(deformation)
        return -(dot(springs.angles, rates.angles) + dot(springs.position, rates.position))

    def non_conservative_power(self, deformation: Deformation, rates: DeformationRates) -> Array:
        """Return all other power of the forces in W.

        It is that of the dampers, and -∂V/∂x · (u - ẋ) of the springs, which is zero where u = ẋ.
        """
        springs, dampers = self.slopes(deformation), self.damping(deformation, rates)
        u = rates.work_rate
        dissipated = dot(dampers.angles, rates.angles) + dot(dampers.position, u)
        return -(dissipated + dot(springs.position, u - rates.position))


def is_far(deformation: Deformation) -> Any:
    """Return whether the rotation from A to C is close to a half turn."""
    (xx, _, _), (_, yy, _), (_, _, zz) = deformation.X_AC.R
    return xx + yy + zz < 1.0 + 2.0 * np.cos(LARGEST_ANGLE)


class RotationVectorAngles(HalfwayLaw):
    """A halfway law whose angles are the components of the rotation vector of C in A."""

    def calc_angles(self, R_AC: Array) -> Array:
        """Return the rotation vector in rad."""
        return rotation_vector_from_rotation(R_AC)

    def calc_rate_matrix(self, angles: Array) -> Array:
        """Return the matrix that maps the angular velocity to the rate of the rotation vector."""
        return rotation_vector_rate_matrix(angles)
