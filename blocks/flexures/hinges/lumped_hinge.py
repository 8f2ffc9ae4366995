"""A flexure as a spring in a joint: the pseudo-rigid-body model as a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.flexures.hinges.pseudo_rigid import PseudoRigidBody
from flexure.blocks.flexures.sections.flexure_parameters import (
    MaterialParameters,
    ShapeParameters,
    time_of_damping,
)
from flexure.blocks.flexures.sections.materials import Material
from flexure.blocks.flexures.sections.sections import Section
from flexure.blocks.flexures.sections.strength import StressedElement, stress_limits
from flexure.blocks.forces.on_joints.coordinate_element import CoordinateForceElement
from flexure.blocks.forces.on_joints.joint_springs import SpringLaw
from flexure.blocks.multibody.force_elements.limits import Limit
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array, as_number
from flexure.diagrams.values.parameters import NumericParameter

_THICKEST = 0.1  # of the length


class LumpedHinge(StressedElement, CoordinateForceElement):
    """A flexure as a torsion spring on a revolute joint (pseudo-rigid-body model).

    The joint is where the model has its pivot, as `pivot_distance` says, and turns the link that
    carries the end of the flexure. With its angle q, the angle q₀ at which the flexure is straight,
    the factor k of the load and the section bent about z::

        Θ = q - q₀
        generalized_force = -k E I_z/L (Θ + τ q̇)

    This is the lightest model of a flexure: one coordinate, and no stiff ones. It knows the end of
    one flexure under one kind of load, and neither forces along it nor bending out of the plane;
    for all that there are a `NotchHinge` and beams.

    Length, dimensions of the section, Young's modulus and the strengths that the material has are
    parameters of the block by their names. The joint stays where it was put when the length of a
    context changes.

    Outputs beside those of every element on a joint: ``greatest_stress`` in Pa, where the flexure
    is fixed; ``safety`` against yield; ``utilization`` of its limits.

    Parameters
    ----------
    name : str
        Name of the block.
    joint : Joint
        A joint with one velocity, at which it rotates.
    section : Section
        The section, with its y along the direction in which the flexure bends.
    material : Material
        The material.
    length : float
        Length L > 0 of the flexure in m.
    load : {"end force", "guided", "end moment", "short"}
        How the flexure is loaded: ``fx.laws.PseudoRigidBody`` describes the cases.
    axial_ratio : float
        For "end force", the part of the force along the unbent flexure, that pushes, over the one
        across it; from -5 to 10.
    nominal_position : float
        Angle q₀ of the joint at which the flexure is straight, in rad.
    damping_time : float, optional
        Time τ >= 0 in s of a damper in proportion to the stiffness, a parameter. At an angular
        frequency ω its loss factor is ω τ.
    loss_factor : float, optional
        Loss factor >= 0 at one frequency, which gives the time of damping in place of it.
    at_frequency : float, optional
        That frequency > 0 in Hz.

    Raises
    ------
    DeclarationError
        When the joint does not turn at one velocity, or section or material are missing.
    ValueRefusedError
        When there is no such load, or a number is out of range.

    See Also
    --------
    NotchHinge : A notch between two bodies.

    Notes
    -----
    Valid up to the angle of ``fx.laws.PseudoRigidBody``, for flexures of at least ten times their
    thickness; `check_limits` names hinges beyond, and stresses beyond the strengths. The stress is
    that of the loads by which the link is in balance. Its source is the same.

    Examples
    --------
    A leaf whose free end is pushed aside, on the end of which the link is about 85 mm long:

    >>> import flexure as fx
    >>> model = fx.laws.PseudoRigidBody("end force")
    >>> builder = fx.PlantBuilder("leaf")
    >>> link = builder.add_body("link", fx.SpatialInertia.thin_rod(0.02, length=0.17, axis="x"))
    >>> at = (model.pivot_distance(0.1), 0.0, 0.0)
    >>> place = builder.add_frame("place", builder.world, at)
    >>> pivot = builder.add_joint(fx.RevoluteJoint("pivot", place, link, axis=(0, 0, 1)))
    >>> hinge = builder.add_force_element(
    ...     fx.LumpedHinge(
    ...         "hinge",
    ...         pivot,
    ...         section=fx.sections.RectangleSection(width=0.01, thickness=5e-4),
    ...         material=fx.Material.common("stainless steel 301"),
    ...         length=0.1,
    ...     )
    ... )
    >>> plant = builder.build()
    >>> context = plant.create_default_context()
    >>> pivot.angle.set(context, 0.5)
    >>> print(f"{hinge.greatest_stress.eval(context)[0] / 1e6:.0f} MPa")
    659 MPa
    """

    youngs_modulus: NumericParameter
    yield_strength: NumericParameter

    def __init__(
        self,
        name: str,
        joint: Joint,
        *,
        section: Section,
        material: Material,
        length: float,
        load: str = "end force",
        axial_ratio: float = 0.0,
        nominal_position: float = 0.0,
        damping_time: float | None = None,
        loss_factor: float | None = None,
        at_frequency: float | None = None,
    ) -> None:
        super().__init__(name, joint, losses_need_position=False)
        attempt = f"Cannot make lumped hinge '{name}'"
        time = time_of_damping(damping_time, loss_factor, at_frequency, attempt)
        for value, kind in ((section, Section), (material, Material)):
            what = f"a {kind.__name__}"
            require(isinstance(value, kind), value, attempt, what, error=DeclarationError)
        if joint.num_velocities != 1 or not joint.can_rotate:
            raise DeclarationError(
                f"Cannot attach lumped hinge '{name}' to joint '{joint.name}'",
                expected="a joint with one velocity, at which it rotates",
                found=f"a {joint.type_name} joint",
                remedy="Use a RevoluteJoint",
            )
        self.model = PseudoRigidBody(load, axial_ratio)
        self.section = ShapeParameters(self, section)
        self.material = MaterialParameters(
            self, material, unused=["poissons_ratio", "shear_modulus", "density"]
        )
        self.length = self.declare_numeric_parameter(
            "length",
            as_number(length, (), f"{attempt} with length"),
            unit="m",
            lower=0.0,
            exclusive=True,
            doc="length of the flexure",
        )
        self.nominal_position = self.declare_numeric_parameter(
            "nominal_position",
            as_number(nominal_position, (), f"{attempt} with nominal_position"),
            unit="rad",
            doc="angle at which the flexure is straight",
        )
        self.damping_time = self.declare_numeric_parameter(
            "damping_time",
            0.0 if time is None else time,
            unit="s",
            lower=0.0,
            doc="damping over stiffness",
        )
        self._declare_stress([self.position])
        limits = [
            *stress_limits(self.material.yield_strength, material),
            Limit(
                "angle",
                self.model.factors.greatest_angle,
                "rad",
                "Its pivot is elsewhere, and its stiffness is another one",
                "Move it less, or make it of a Beam with several segments",
            ),
            Limit(
                "thickness over length",
                _THICKEST,
                "",
                "It is no slender beam",
                "Make it thinner or longer, or use a NotchHinge",
            ),
        ]
        self.declare_limits(limits, self._calc_limited, prerequisites=[self.position])

    def law(self, context: Any) -> SpringLaw:
        """Return the law with the constants of a context."""
        bending = self.material(context).youngs_modulus * self.section(context).second_moment_z
        stiffness = self.model.stiffness(bending, self.length(context))
        return SpringLaw(
            stiffness=stiffness,
            nominal_position=self.nominal_position(context),
            damping=self.damping_time(context) * stiffness,
        )

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of the damper, which needs no position."""
        return np.sum(self.law(context).damper_power(self.velocity(context)))

    def _angle(self, context: Any) -> Array:
        """Return Θ."""
        return self.position(context)[0] - self.nominal_position(context)

    def calc_greatest_stress(self, context: Any) -> Array:
        """Return the greatest equivalent stress in Pa."""
        angle = self._angle(context)
        torque, length = self.law(context).stiffness * angle, self.length(context)
        force, moment = self.model.fixed_end(angle, torque, length)
        return self.section(context).normal_stress(force, 0.0, moment)

    def _calc_limited(self, context: Any) -> list[Array]:
        """Return the stress for each strength, the angle, and how thick it is."""
        section = self.section(context)
        thickness = np.sqrt(12.0 * section.second_moment_z / section.area)
        slenderness = thickness / self.length(context)
        stresses = [self.calc_greatest_stress(context)] * (len(self.limits) - 2)
        return [*stresses, np.abs(self._angle(context)), slenderness]
