"""Force elements with a frame halfway between their two ends, as blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from flexure.blocks.forces.bushings.halfway_law import Deformation, DeformationRates, HalfwayLaw
from flexure.blocks.math import relative_pose, relative_velocity, rotate_spatial
from flexure.blocks.multibody.bodies.bodies import Body, Frame, FrameLike
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, FrameMotion
from flexure.blocks.multibody.trees.component_names import SPATIAL_FORCE
from flexure.diagrams.systems.ports import Calculation, LeafOutputPort, Prerequisite
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.state import ContinuousState, DiscreteState


class HalfwayElement(BodyForceElement):
    """Base class of the elements between a frame A and a frame C whose law is a `HalfwayLaw`.

    Besides the outputs of `BodyForceElement` it has ``angles`` in rad, ``angle_rates`` in rad/s,
    the ``position`` of Co from Ao in the frame B halfway between in m, and the spatial forces
    ``force_on_frame_A`` about Ao expressed in A and ``force_on_frame_C`` about Co expressed in C,
    in N m and N.

    A subclass implements `law`. It declares its parameters, and calls `_declare_outputs` after.

    An element that does not dissipate has no damping. Other options are those of
    `BodyForceElement`.
    """

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        dissipates: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(name, {"A": frame_a, "C": frame_c}, dissipates=dissipates, **options)
        self._dissipates = dissipates

    @property
    def _own_state(self) -> list[ContinuousState | DiscreteState]:
        """What is inside, if anything, on which forces depend as on the deformation."""
        states = [] if self.continuous_state is None else [self.continuous_state]
        return [*states, *self.discrete_states]

    def _declare_outputs(self) -> None:
        """Declare what all elements show of their deformation and forces."""
        self._declare_kinematics()
        self._declare_frame_forces()

    def _declare_kinematics(self) -> None:
        positions, velocities = self.position_ports, self.velocity_ports
        given, entry = [*self.given_ports, *self.drive_ports], self.declare_cache_entry
        reads: list[Prerequisite] = [*positions, *given]
        self._deformation = entry("deformation", self._calc_deformation, prerequisites=reads)
        reads = [*positions, *velocities, *given]
        self._frame_motions = entry("frame_motions", self._calc_frame_motions, prerequisites=reads)
        reads = [self._deformation, self._frame_motions, *given]
        self._rates = entry("deformation_rates", self._calc_rates, prerequisites=reads)
        self.angles = self.declare_vector_output(
            "angles", 3, self._calc_angles, prerequisites=[self._deformation], unit="rad"
        )
        self.angle_rates = self.declare_vector_output(
            "angle_rates", 3, self._calc_angle_rates, prerequisites=[self._rates], unit="rad/s"
        )
        self.position = self.declare_vector_output(
            "position",
            3,
            self._calc_position,
            prerequisites=[self._deformation],
            unit="m",
            doc="position of Co from Ao, in the frame B halfway between A and C",
        )

    def _declare_frame_forces(self) -> None:
        reads = [self._deformation, *self.given_ports, *self.drive_ports, *self._own_state]
        self._frame_forces = self.declare_cache_entry(
            "frame_forces",
            self._calc_frame_forces,
            prerequisites=[*reads, self._rates] if self._dissipates else reads,
        )
        forces = [self._frame_forces]
        self.force_on_frame_A = self._show_force("A", self._calc_force_on_frame_A, forces)
        deformed = [*forces, self._deformation]
        self.force_on_frame_C = self._show_force("C", self._calc_force_on_frame_C, deformed)

    def _show_force(
        self, end: str, calc: Calculation, reads: Sequence[Prerequisite]
    ) -> LeafOutputPort:
        """Declare the output of the force on the frame A or C."""
        doc = f"spatial force on {end} about {end}o, expressed in {end}"
        about: dict[str, Any] = {"element_names": SPATIAL_FORCE, "doc": doc}
        return self.declare_vector_output(
            f"force_on_frame_{end}", 6, calc, prerequisites=reads, **about
        )

    @property
    def frame_a(self) -> Frame:
        """The frame A."""
        return self.attachments[0].frame

    @property
    def frame_c(self) -> Frame:
        """The frame C."""
        return self.attachments[1].frame

    @property
    def link0(self) -> Body:
        """The body that carries frame A."""
        return self.frame_a.body

    @property
    def link1(self) -> Body:
        """The body that carries frame C."""
        return self.frame_c.body

    @abstractmethod
    def law(self, context: Any) -> HalfwayLaw:
        """Return the law with the constants of a context."""

    def kinematics(self, context: Any) -> HalfwayLaw:
        """Return a law with the same deformation and rates, which reads no state."""
        return self.law(context)

    def _calc_deformation(self, context: Any) -> Deformation:
        X_WA, X_WC = (each.pose_of_frame(context) for each in self.attachments)
        law = self.kinematics(context)
        return law.in_range(law.deformation(relative_pose(X_WA, X_WC)))

    def _calc_frame_motions(self, context: Any) -> list[FrameMotion]:
        return [each.motion(context) for each in self.attachments]

    def _calc_rates(self, context: Any) -> DeformationRates:
        A, C = self._frame_motions(context)
        V_AC_A = relative_velocity(A.X_WF, A.V_WF, C.X_WF, C.V_WF)
        return self.kinematics(context).rates(self._deformation(context), V_AC_A)

    def _calc_frame_forces(self, context: Any) -> tuple[Array, Array]:
        law, deformation = self.law(context), self._deformation(context)
        at_rest = None if self._dissipates else law.rates(deformation, np.zeros(6))
        return law.spatial_forces(deformation, at_rest or self._rates(context))

    def calc_spatial_forces(self, context: Any) -> Sequence[Array]:
        """Return the spatial force on each body about its origin, expressed in the world."""
        forces = self._frame_forces(context)
        motions = (
            self._frame_motions(context)
            if self._dissipates
            else [each.at_rest(context) for each in self.attachments]
        )
        R_WA = motions[0].X_WF.R
        return [
            motion.force_on_body(rotate_spatial(R_WA, F_A))
            for F_A, motion in zip(forces, motions, strict=True)
        ]

    def calc_stored_energy(self, context: Any) -> Array:
        """Return the energy of the springs in J."""
        return self.law(context).stored_energy(self._deformation(context))

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the negative rate of the stored energy in W."""
        return self.law(context).conservative_power(
            self._deformation(context), self._rates(context)
        )

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return all other power of the forces in W."""
        if not self._dissipates:
            return 0.0
        return self.law(context).non_conservative_power(
            self._deformation(context), self._rates(context)
        )

    def _calc_angles(self, context: Any) -> Array:
        return self._deformation(context).angles

    def _calc_angle_rates(self, context: Any) -> Array:
        return self._rates(context).angles

    def _calc_position(self, context: Any) -> Array:
        return self._deformation(context).position

    def _calc_force_on_frame_A(self, context: Any) -> Array:
        F_A_A, _ = self._frame_forces(context)
        return F_A_A

    def _calc_force_on_frame_C(self, context: Any) -> Array:
        _, F_C_A = self._frame_forces(context)
        return self.law(context).spatial_force_on_C(self._deformation(context), F_C_A)
