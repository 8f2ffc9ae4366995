"""The forces of a bushing that measures rotations by the rotation vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexure.blocks.forces.bushings.bushing_law import BushingLaw
from flexure.blocks.forces.bushings.halfway_law import Deformation, RotationVectorAngles, is_far


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
