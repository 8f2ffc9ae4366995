"""The notch hinge as a block between two bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.hinges.notch_law import NotchCompliance, NotchLaw
from flexure.blocks.flexures.hinges.notches import Notch
from flexure.blocks.flexures.sections.flexure_parameters import (
    MaterialParameters,
    ShapeParameters,
    time_of_damping,
)
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.strength import SECTION_FORCES, StressedElement, stress_limits
from flexure.blocks.forces.bushings.bushing_law import RotationVectorBushingLaw
from flexure.blocks.forces.bushings.halfway_element import HalfwayElement
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.force_elements.limits import Limit
from flexure.blocks.multibody.force_elements.presentation import Probe, Ribbon
from flexure.diagrams.checks.arguments import flag, require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter

_LARGEST_ANGLE = 0.3  # rad
_LARGEST_ERROR = 0.1
_SEEN_ANGLE = 0.01  # rad


class NotchHinge(StressedElement, HalfwayElement):
    """A notch between two bodies: a hinge about z that is stiff in other directions.

    Both frames are in the middle of the neck, with x along the notch and y along its thickness;
    unstressed, they are at one place and have one orientation. With the rotation vector θ from A to
    C, the position x of Co from Ao expressed in the frame B halfway between them, and the
    compliance c of `NotchLaw`::

        torques -(θ + τ θ̇)/c_rotation
        force on C, expressed in B, -(x + τ ẋ)/c_translation
        V = ½ θ · θ/c_rotation + ½ x · x/c_translation

    Moments and forces on the bodies are those of a `LinearBushing` with these constants: exact for
    rigid motions however large, the springs conservative.

    All dimensions of the notch are parameters of the block by their names, as are the elastic
    constants and the strengths that the material has. Derivatives by them are exact.

    Inputs: ``pose_A``, ``velocity_A``, ``pose_C`` and ``velocity_C`` of the bodies, but for the
    world. Outputs: those of `LinearBushing`; ``section_forces``, the torque T, the moments
    My and Mz, the tension N and the shear forces Vy and Vz in the middle, on the side that
    faces C, without damping, in N m and N;
    ``greatest_stress`` in Pa; ``safety`` against yield; ``utilization`` of its limits.

    Parameters
    ----------
    name : str
        Name of the block.
    frame_a, frame_c : Frame or Body
        The frames A and C in the middle of the neck; both may be on one body, and either on the
        world.
    notch : Notch
        The shape: a `CircularNotch`, `EllipticNotch` or `FilletedNotch`.
    material : Material
        The material.
    damping_time : float, optional
        Time τ >= 0 in s of dampers in proportion to the stiffness, a parameter. At an angular
        frequency ω their loss factor is ω τ.
    loss_factor : float, optional
        Loss factor >= 0 at one frequency, which gives the time of damping in place of it.
    at_frequency : float, optional
        That frequency > 0 in Hz.
    plate : bool
        Whether the notch is so wide that its section cannot change its shape, and bends about z
        with E/(1 - ν²) for E.

    Raises
    ------
    DeclarationError
        When a frame, the notch or the material is missing, or options contradict each other.
    ValueRefusedError
        When a number is out of its range or not finite.
    EvaluationError
        When it is evaluated at a rotation of more than 170 degrees.

    See Also
    --------
    LumpedHinge : A pseudo-rigid-body model.
    LeafSpring : A long leaf.

    Notes
    -----
    The middle is where the compliance has no coupling, and where the bodies are when they are
    drawn; so a change of the radius or the length causes no stress. ``law.compliance().at(x)``
    has the coupled compliance at another place. The hinge has no mass: what is between the middle
    and the bodies belongs to them.

    Valid while the neck is slender and bends little: `check_limits` names hinges that are turned by
    more than 0.3 rad, necks that are softer than beams by more than a tenth, as of t = R/4, and
    stresses beyond the strengths. The middle stays where it is, while
    that of a leaf of the length l that bends by θ comes nearer by l θ²/12, and a force along x does
    not stiffen it.

    Examples
    --------
    >>> from flexure.blocks.flexures.hinges.notches import CircularNotch
    >>> from flexure.blocks.multibody.bodies.bodies import Body
    >>> notch = CircularNotch(thickness=5e-4, radius=5e-3, width=1e-2)
    >>> steel = Material.common("structural steel S235")
    >>> hinge = NotchHinge("hinge", Body("base"), Body("lever"), notch=notch, material=steel)
    >>> context = hinge.create_default_context()
    >>> hinge.thickness.set(context, 1e-3)
    >>> law = hinge.notch_law(context)
    >>> print(f"{1.0 / law.compliance().rotation[2]:.2f} N m/rad")
    68.18 N m/rad
    """

    drawn_as = "ribbon"
    thickness: NumericParameter
    width: NumericParameter
    radius: NumericParameter
    half_length: NumericParameter
    depth: NumericParameter
    neck_length: NumericParameter
    fillet_radius: NumericParameter
    youngs_modulus: NumericParameter
    poissons_ratio: NumericParameter
    shear_modulus: NumericParameter
    yield_strength: NumericParameter

    def __init__(
        self,
        name: str,
        frame_a: FrameLike,
        frame_c: FrameLike,
        *,
        notch: Notch,
        material: Material,
        damping_time: float | None = None,
        loss_factor: float | None = None,
        at_frequency: float | None = None,
        plate: bool = False,
    ) -> None:
        attempt = f"Cannot make notch hinge '{name}'"
        time = time_of_damping(damping_time, loss_factor, at_frequency, attempt)
        super().__init__(name, frame_a, frame_c, dissipates=time is not None)
        for value, kind, what in ((notch, Notch, "a Notch"), (material, Material, "a Material")):
            require(isinstance(value, kind), value, attempt, what, error=DeclarationError)
        self.plate = flag(plate, "plate", attempt, error=DeclarationError)
        self.notch = ShapeParameters(self, notch)
        self.material = MaterialParameters(self, material, unused=["density"])
        self.damping_time: NumericParameter | None = None
        if time is not None:
            self.damping_time = self.declare_numeric_parameter(
                "damping_time", time, unit="s", lower=0.0, doc="damping over stiffness"
            )
        self._compliance = self.declare_cache_entry("compliance", self._calc_compliance)
        self._declare_outputs()
        deformed = [self._deformation]
        self.section_forces = self.declare_vector_output(
            "section_forces",
            6,
            self._calc_section_forces,
            prerequisites=deformed,
            element_names=SECTION_FORCES,
            doc="T, My, Mz, N, Vy, Vz in the middle",
        )
        self._declare_stress(deformed)
        limits = [
            *stress_limits(self.material.yield_strength, material),
            Limit(
                "angle",
                _LARGEST_ANGLE,
                "rad",
                "Its stiffness is that of small angles",
                "Move it less, or make the hinge of a Beam",
            ),
            Limit(
                "error of a beam",
                _LARGEST_ERROR,
                "",
                "Its neck is short and thick, and so softer than a beam of its shape",
                "Make the neck thinner, or the notch longer, or correct the stiffness",
            ),
        ]
        self.declare_limits(limits, self._calc_limited, prerequisites=deformed)

    def ribbon(self, context: Any) -> Ribbon:
        """Return the notch with its thickness along it."""
        notch = self.notch(context)
        half = 0.5 * float(notch.length)
        frames = [
            (frame, np.vstack([[x, 0.0, 0.0], np.eye(3)[[0, 2]]]))
            for frame, x in ((self.frame_a, -half), (self.frame_c, half))
        ]
        strength = self.material.yield_strength
        return Ribbon(frames, 2.0 * half, notch.outlines, self.greatest_stress, strength)

    def inspected_angle(self, context: Any) -> float:
        """Return an angle about z that bends an unloaded notch far enough to see its stress."""
        strength = self.material.yield_strength
        if strength is None:
            return _SEEN_ANGLE
        return float(self.notch_law(context).greatest_angle(0.5 * strength.get(context)))

    def inspected_range(self, unit: str, place: float, context: Any) -> tuple[float, float] | None:
        """Return angles that bend it visibly; displacements are as for other elements."""
        if unit != "rad":
            return None
        return 0.0, max(2.0 * self.inspected_angle(context), 1.5 * abs(place))

    def declare_probe(self) -> Probe:
        """Show the stress of the section at a place, which is a further input."""
        place = self.declare_vector_input("place", 1, default=[0.0], unit="m")

        def calc(context: Any) -> Any:
            loads = self.section_forces(context)
            return self.notch_law(context).stress_at(place(context)[0], loads[:3], loads[3:])

        self.declare_vector_output("stress_along", 1, calc, unit="Pa")
        return Probe(
            "place",
            "stress_along",
            lambda context: 0.5 * float(self.notch(context).length),
            "place along the notch",
            "m",
            "von Mises' stress",
            "Greatest stress of each section",
            "Pa",
        )

    def notch_law(self, context: Any) -> NotchLaw:
        """Return compliance and stress with the values of a context.

        Parameters
        ----------
        context : Context
            A context of the block, or of a diagram around it.

        Returns
        -------
        NotchLaw
        """
        return NotchLaw.of(self.notch(context), self.material(context), plate=self.plate)

    def law(self, context: Any) -> RotationVectorBushingLaw:
        """Return the law with the constants of a context."""
        rotation, translation = self._compliance(context)
        time = 0.0 if self.damping_time is None else self.damping_time(context)
        turning, shifting = 1.0 / rotation, 1.0 / translation
        return RotationVectorBushingLaw(
            turning, time * turning, shifting, time * shifting, label=self.label
        )

    def _calc_compliance(self, context: Any) -> NotchCompliance:
        return self.notch_law(context).compliance()

    def _calc_section_forces(self, context: Any) -> Array:
        return np.concatenate(self.law(context).slopes(self._deformation(context)))

    def calc_greatest_stress(self, context: Any) -> Array:
        """Return the greatest equivalent stress in Pa."""
        moment, force = self.law(context).slopes(self._deformation(context))
        return self.notch_law(context).greatest_stress(moment, force)

    def _calc_limited(self, context: Any) -> list[Array]:
        """Return the stress for each strength, the angle, and how short the neck is."""
        x, y, z = self._deformation(context).angles
        angle = np.hypot(np.hypot(x, y), z)
        stresses = [self.calc_greatest_stress(context)] * (len(self.limits) - 2)
        return [*stresses, angle, self.notch(context).beam_error]
