"""The forces of a bushing as it is measured: coupled, preloaded, with tables and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexure.blocks.forces.bushings.halfway_law import (
    LARGEST_ANGLE,
    Deformation,
    DeformationRates,
    Loads,
    RotationVectorAngles,
    is_far,
)
from flexure.blocks.forces.bushings.mount_branches import FrictionBranch, MaxwellBranch
from flexure.blocks.forces.on_joints.force_table import ForceTable
from flexure.blocks.math import dot
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.values.arrays import Array


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
