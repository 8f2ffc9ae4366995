"""Gears, belts and shafts that give way, and that lose a part of the power that they transmit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.multibody.constraints.couplings import Coupling
from flexure.blocks.multibody.force_elements.force_element import ForceElement, JointEnd
from flexure.blocks.multibody.trees.component_names import along_joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.arguments import require
from flexure.diagrams.checks.errors import DeclarationError
from flexure.diagrams.values.arrays import Array
from flexure.diagrams.values.parameters import NumericParameter

_LEAST_EFFICIENCY = 1e-3


@dataclass(frozen=True)
class CompliantCouplingLaw:
    """The law of a compliant coupling: a spring and damper on its error, with losses.

    With the factors c and the sum b of the coupling, positions q and their rates q̇::

        e = Σ c_k q_k - b                  deflection
        f = -k e - d ė                     what the coupling transmits
        F_k = c_k f                        on each coordinate
        V = ½ k e²                         stored energy

    With an efficiency η, each coordinate but the first gets, of a power p = c_k f q̇_k that comes to
    it, the part η, and gives p/η where it drives the others::

        F_k = c_k f (1 - σ ((1 - η) (1 + σ)/2 + (1/η - 1) (1 - σ)/2)),    σ = tanh(p/P)

    The threshold P smooths the change of direction: there is no loss at rest, and all of it at
    powers of a few P. What is lost is never negative.

    Attributes
    ----------
    factors : array, shape (n,)
        Factors c.
    offset : float
        The sum b.
    stiffness : float
        Stiffness k >= 0, in units of f per unit of e.
    damping : float
        Damping d >= 0, in units of f per unit of ė.
    efficiency : float, optional
        Efficiency 0 < η <= 1; no losses when omitted.
    power_threshold : float
        Power P > 0 in W.

    See Also
    --------
    flexure.CompliantCoupling : The element with this law.

    Examples
    --------
    A gear of 2 : 1 that is turned by 1 mrad against its end, and drives it at 10 rad/s:

    >>> import numpy as np
    >>> law = CompliantCouplingLaw(
    ...     np.array([1.0, -2.0]), 0.0, 1e4, 0.0, efficiency=0.9, power_threshold=1.0
    ... )
    >>> law.forces(np.array([1e-3, 0.0]), np.array([20.0, 10.0]))
    array([-10.,  18.])
    """

    factors: Array
    offset: Array
    stiffness: Array
    damping: Array
    efficiency: Array | None = None
    power_threshold: Array = 1.0

    def deflection(self, q: Array) -> Array:
        """Return e."""
        return np.sum(self.factors * q) - self.offset

    def effort(self, q: Array, v: Array) -> Array:
        """Return f."""
        return -self.stiffness * self.deflection(q) - self.damping * np.sum(self.factors * v)

    def forces(self, q: Array, v: Array) -> Array:
        """Return the generalized force F on each coordinate."""
        ideal = self.factors * self.effort(q, v)
        return ideal * (1.0 - self._lost_parts(ideal * v))

    def stored_energy(self, q: Array) -> Array:
        """Return V in J."""
        return 0.5 * self.stiffness * self.deflection(q) ** 2

    def conservative_power(self, q: Array, v: Array) -> Array:
        """Return the power of the spring in W, the negative rate of V."""
        return -self.stiffness * self.deflection(q) * np.sum(self.factors * v)

    def non_conservative_power(self, q: Array, v: Array) -> Array:
        """Return the power of damper and losses in W, which is never positive."""
        powers = self.factors * self.effort(q, v) * v
        return self.damper_power(v) - np.sum(powers * self._lost_parts(powers))

    def damper_power(self, v: Array) -> Array:
        """Return the power of the damper in W."""
        return -self.damping * np.sum(self.factors * v) ** 2

    def _lost_parts(self, powers: Array) -> Array:
        """Return the parts of powers that are lost on the way to each coordinate."""
        if self.efficiency is None:
            return np.zeros(len(powers))
        direction = np.tanh(powers[1:] / self.power_threshold)
        forth, back = 1.0 - self.efficiency, 1.0 / self.efficiency - 1.0
        parts = direction * 0.5 * (forth * (1.0 + direction) + back * (1.0 - direction))
        return np.concatenate([np.zeros(1), parts])


class CompliantCoupling(ForceElement):
    """A compliant coupling of coordinates, such as a belt or gear teeth, with losses.

    The forces are those of `CompliantCouplingLaw`, a spring and a damper on the error e of a
    `Coupling`::

        e = Σ c_k q_k - b
        f = -k e - d ė
        F_k = c_k f                 generalized force on each coordinate, less losses

    With an efficiency, a part of the transmitted power is lost, which ``non_conservative_power``
    and the ledger show. Constants of the coupling, such as a ratio, are parameters of this block,
    with stiffness, damping and efficiency.

    Parameters
    ----------
    name : str
        Name of the block.
    coupling : Coupling
        What is coupled, and how: a `Coupling` or `GearPair` that is not in a plant itself, whose
        name is not used.
    stiffness : float
        Stiffness k >= 0 of the error: for gears in N m/rad at the first shaft, for racks, screws
        and belts in N/m.
    damping : float
        Damping d >= 0 of the error: in N m s/rad, or N s/m.
    efficiency : float, optional
        Efficiency η, from 0.001 to 1, of the way from the first coordinate to each of the others,
        and back. When omitted there are no losses and no such parameters.
    power_threshold : float
        Power P > 0 in W below which the losses fade, so that their direction can change smoothly.

    Attributes
    ----------
    coupling : Coupling
        As given.
    deflection, effort : LeafOutputPort
        Outputs: the error e, and what is transmitted, f.

    Raises
    ------
    DeclarationError
        When it is no coupling, or one that is in a plant.
    ValueRefusedError
        When a constant is out of its bounds.

    See Also
    --------
    GearPair : A rigid coupling of two joints.

    Notes
    -----
    Rigid couplings have no losses, since these depend on what they transmit. There is no loss at
    rest, so that a worm gear does not hold by itself: add `JointFriction` where it does.

    Examples
    --------
    >>> import flexure as fx
    >>> motor, wheel = (
    ...     fx.RevoluteJoint(name, fx.Body("frame"), fx.Body(name), axis=(0, 0, 1))
    ...     for name in ("motor", "wheel")
    ... )
    >>> gears = fx.constraints.GearPair("gears", motor, wheel, ratio=-20.0)
    >>> teeth = fx.CompliantCoupling("teeth", gears, stiffness=500.0, damping=0.1, efficiency=0.95)
    >>> [port.name for port in teeth.output_ports][:2]
    ['force_on_motor', 'force_on_wheel']
    """

    def __init__(
        self,
        name: str,
        coupling: Coupling,
        *,
        stiffness: float,
        damping: float = 0.0,
        efficiency: float | None = None,
        power_threshold: float = 1.0,
    ) -> None:
        super().__init__(name)
        attempt = f"Cannot make '{name}'"
        wanted = "a Coupling or a GearPair"
        require(isinstance(coupling, Coupling), coupling, attempt, wanted, error=DeclarationError)
        if coupling.index is not None:
            raise DeclarationError(
                attempt,
                expected="a coupling that was not added to a plant",
                found=f"'{coupling.name}', which is rigid as a constraint of one",
                remedy="Omit add_constraint",
            )
        self.coupling = coupling
        made = coupling.gearing
        self._constants, self.offset = made.declare(self, allow_zeros=True)
        setattr(self, made.parameter, self._constants)
        self.stiffness = self.declare_numeric_parameter("stiffness", stiffness, lower=0.0)
        self.damping = self.declare_numeric_parameter("damping", damping, lower=0.0)
        self.efficiency: NumericParameter | None = None
        self.power_threshold: NumericParameter | None = None
        if efficiency is not None:
            self.efficiency = self.declare_numeric_parameter(
                "efficiency", efficiency, lower=_LEAST_EFFICIENCY, upper=1.0
            )
            self.power_threshold = self.declare_numeric_parameter(
                "power_threshold", power_threshold, unit="W", lower=0.0, exclusive=True
            )
        positions = [
            self.declare_vector_input(f"position_{joint.name}", joint.num_positions)
            for joint in made.joints
        ]
        velocities = [
            self.declare_vector_input(f"velocity_{joint.name}", joint.num_velocities)
            for joint in made.joints
        ]
        both = [*positions, *velocities]
        forces = [
            self.declare_vector_output(
                f"force_on_{joint.name}",
                joint.num_velocities,
                partial(self._calc_force_on, k),
                prerequisites=both,
                **along_joint(joint),
            )
            for k, joint in enumerate(made.joints)
        ]
        ends = zip(made.joints, positions, velocities, forces, strict=True)
        self.joint_ends = tuple(JointEnd(*each) for each in ends)
        self.deflection = self.declare_vector_output(
            "deflection", 1, self._calc_deflection, prerequisites=positions
        )
        self.effort = self.declare_vector_output("effort", 1, self._calc_effort, prerequisites=both)
        losses = velocities if self.efficiency is None else both
        self._declare_energies(energy=positions, conservative=both, non_conservative=losses)

    def law(self, context: Any) -> CompliantCouplingLaw:
        """Return the law with the constants of a context."""
        return CompliantCouplingLaw(
            self.coupling.gearing.factors(self._constants(context)),
            self.offset(context),
            self.stiffness(context),
            self.damping(context),
            None if self.efficiency is None else self.efficiency(context),
            1.0 if self.power_threshold is None else self.power_threshold(context),
        )

    def _positions(self, context: Any) -> Array:
        """Return the coordinates that are coupled."""
        q = np.concatenate([end.position(context) for end in self.joint_ends])
        return q[self.coupling.gearing.places]

    def _velocities(self, context: Any) -> Array:
        """Return their rates."""
        v = np.concatenate([end.velocity(context) for end in self.joint_ends])
        return v[self.coupling.gearing.places]

    def _calc_force_on(self, number: int, context: Any) -> Array:
        """Return the generalized force along the velocities of a joint."""
        made = self.coupling.gearing
        forces = self.law(context).forces(self._positions(context), self._velocities(context))
        joint = self.joint_ends[number].joint
        total: list[Any] = [0.0] * joint.num_velocities
        for (owner, k), force in zip(made.coordinates, forces, strict=True):
            if owner is joint:
                total[k] = force
        return scalars.array(total)

    def _calc_deflection(self, context: Any) -> Array:
        return self.law(context).deflection(self._positions(context))

    def _calc_effort(self, context: Any) -> Array:
        return self.law(context).effort(self._positions(context), self._velocities(context))

    def calc_stored_energy(self, context: Any) -> Array:
        """Return the stored energy in J."""
        return self.law(context).stored_energy(self._positions(context))

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of the spring in W."""
        law = self.law(context)
        return law.conservative_power(self._positions(context), self._velocities(context))

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return the power of damper and losses in W."""
        law, v = self.law(context), self._velocities(context)
        if self.efficiency is None:
            return law.damper_power(v)
        return law.non_conservative_power(self._positions(context), v)
