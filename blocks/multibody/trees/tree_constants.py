"""The constants of a tree in contexts: those of bodies, joints and rotors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flexure.blocks.math import MassProperties
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.bodies.solids import mass_properties, validity_problem
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.component_names import common_unit
from flexure.blocks.multibody.trees.coupled_articulation import CoupledInertia, CouplingInput
from flexure.blocks.multibody.trees.topology import Topology
from flexure.blocks.multibody.trees.tree_inputs import INERTIA_SIZE, Actuator, InertiaInput, joined
from flexure.diagrams import LeafSystem, scalars
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.systems.ports import InputPort
from flexure.diagrams.values.arrays import Array, FloatArray, as_number
from flexure.diagrams.values.parameters import NumericParameter

#: In the place of the parameters of a node: mass, center of mass and unit inertia.
_NOTHING = (lambda _: 0.0, lambda _: np.zeros(3), lambda _: np.zeros(6))


class TreeConstants:
    """The parameters of bodies, joints and motors, and what the algorithms make of them.

    ``inertias`` are the defaults of all bodies but the world; without them, those that the bodies
    were made with.
    """

    def __init__(
        self,
        tree: LeafSystem,
        topology: Topology,
        actuators: Sequence[Actuator],
        inertia_inputs: Sequence[InertiaInput | CouplingInput] = (),
        inertias: Sequence[SpatialInertia | None] | None = None,
    ) -> None:
        self._topology = topology
        bodies = topology.bodies[1:]
        inertias = [body.inertia for body in bodies] if inertias is None else inertias
        self._bodies = [
            () if inertia is None else _declare_body(tree, body.name, inertia)
            for body, inertia in zip(bodies, inertias, strict=True)
        ]
        joints = [mobilizer.joint for mobilizer in topology.mobilizers]
        moving = [joint for joint in joints if joint.num_velocities]
        self._joints = {joint: _declare_joint(tree, joint) for joint in moving}
        self._rotors: list[tuple[Actuator, NumericParameter, NumericParameter]] = [
            (actuator, *_declare_rotor(tree, actuator)) for actuator in actuators
        ]
        self.inertia_ports: list[InputPort] = []  # these inputs
        # The same for each body that carries anything, by its number.
        self.carriers: dict[int, list[InputPort]] = {}
        self._couplings: list[tuple[CouplingInput, InputPort]] = []
        for each in inertia_inputs:
            if isinstance(each, CouplingInput):
                port = tree.declare_vector_input(each.name, sum(each.sizes) * (sum(each.sizes) + 1))
                self.inertia_ports.append(port)
                self._couplings.append((each, port))
                continue
            number = each.body.number
            assert number  # the plant builder numbers bodies before, and the world carries nothing
            port = tree.declare_vector_input(
                each.name, INERTIA_SIZE, default=np.zeros(INERTIA_SIZE)
            )
            self.inertia_ports.append(port)
            self.carriers.setdefault(number, []).append(port)

    def items(self) -> Iterator[tuple[str, str, NumericParameter]]:
        """Yield the parameters of bodies, joints and motors: whose, its short name, its handle."""
        for body, parameters in zip(self._topology.bodies[1:], self._bodies, strict=True):
            for what, handle in zip(("mass", "com", "unit_inertia"), parameters, strict=False):
                yield body.name, what, handle
        for joint, parameters in self._joints.items():
            for what, handle in zip(("damping", "locked"), parameters, strict=True):
                yield joint.name, what, handle
        for actuator, *rotor in self._rotors:
            for what, handle in zip(("gear_ratio", "rotor_inertia"), rotor, strict=True):
                yield actuator.name, what, handle

    def named(self, owner: str) -> Iterator[tuple[str, NumericParameter]]:
        """Yield the parameters of the body, joint and motor of a name, by their short names."""
        return ((what, handle) for name, what, handle in self.items() if name == owner)

    def lock_of(self, joint: Joint) -> NumericParameter | None:
        """Return the parameter that locks a joint; None for a weld."""
        return self._joints[joint][1] if joint in self._joints else None

    def mass_properties(self, context: Any) -> list[MassProperties]:
        """Return the mass properties of the bodies but the world about Bo, in B.

        They include the masses that force elements carry.
        """
        properties = [
            mass_properties(*(parameter(context) for parameter in parameters or _NOTHING))
            for parameters in self._bodies
        ]
        for number, ports in self.carriers.items():
            carried = [port(context) for port in ports]
            properties[number - 1] = joined(properties[number - 1], carried)
        return properties

    def couplings(self, context: Any) -> list[CoupledInertia]:
        """Return the inertia with which force elements couple bodies."""
        return [CoupledInertia.from_wire(each, port(context)) for each, port in self._couplings]

    def dampings(self, context: Any) -> Array:
        """Return the viscous damping along each velocity."""
        dampings = (damping(context) for damping, _ in self._joints.values())
        return np.concatenate([np.zeros(0), *dampings])

    def mobile(self, context: Any) -> Array:
        """Return 1 for each mobilizer that is free and 0 for one that is locked."""
        locks = (self.lock_of(mobilizer.joint) for mobilizer in self._topology.mobilizers)
        return scalars.array([1.0 if lock is None else 1.0 - lock(context) for lock in locks])

    def rotors(self, context: Any) -> dict[Joint, Array]:
        """Return the inertia that rotors add to each velocity of a joint, in kg m² or kg.

        Joints without motors have none.
        """
        felt: dict[Joint, Array] = {}
        for actuator, ratio, inertia in self._rotors:
            added = ratio(context) ** 2 * inertia(context)
            felt[actuator.joint] = felt.get(actuator.joint, 0.0) + added
        return felt

    def reflected_inertia(self, context: Any) -> Array:
        """Return the inertia that rotors add to each velocity, in kg m² or kg."""
        rotors = self.rotors(context)
        parts = (rotors.get(joint, 0.0) * np.ones(joint.num_velocities) for joint in self._joints)
        return np.concatenate([np.zeros(0), *parts])

    def mobile_velocities(self, context: Any) -> Array:
        """Return 1 for each velocity of a joint that is free and 0 for one that is locked."""
        return self.mobile(context)[self._mobilizers_of_velocities]

    @cached_property
    def _mobilizers_of_velocities(self) -> npt.NDArray[np.intp]:
        """The number of the mobilizer that each velocity belongs to."""
        sizes = [each.joint.num_velocities for each in self._topology.mobilizers]
        return np.repeat(np.arange(len(sizes)), sizes)


def declare_weight(
    tree: LeafSystem, body: str, inertia: SpatialInertia
) -> tuple[NumericParameter, NumericParameter]:
    """Declare mass and center of mass of a body, by its name."""
    declare = tree.declare_numeric_parameter
    return (
        declare(f"{body}_mass", inertia.mass, unit="kg", lower=0.0),
        declare(f"{body}_com", inertia.com, unit="m", sparse=True),
    )


def declare_gravity(tree: LeafSystem, gravity: FloatArray) -> NumericParameter:
    """Declare the acceleration of free fall in the world."""
    return tree.declare_numeric_parameter("gravity", gravity, unit="m/s^2", sparse=True)


def declare_spin(
    tree: LeafSystem, spin: npt.ArrayLike | None, carried: Sequence[InertiaInput | CouplingInput]
) -> NumericParameter | None:
    """Declare the angular velocity of the world, if there is one."""
    if spin is None:
        return None
    attempt = f"Cannot make '{tree.name}'"
    coupling = [each.name for each in carried if isinstance(each, CouplingInput)]
    if coupling:
        raise DeclarationError(
            f"{attempt} with a spin",
            expected="rigid bodies and flexures",
            found=f"flexible bodies, whose inertia does not feel the spin: {quoted(coupling)}",
            remedy="Turn them by a joint with a PrescribedMotion instead",
        )
    turning = as_number(spin, (3,), attempt)
    return tree.declare_numeric_parameter("spin", turning, unit="rad/s", sparse=True)


def _declare_body(
    tree: LeafSystem, body: str, inertia: SpatialInertia
) -> tuple[NumericParameter, ...]:
    """Declare mass, center of mass and inertia."""
    return (
        *declare_weight(tree, body, inertia),
        tree.declare_numeric_parameter(
            f"{body}_unit_inertia",
            inertia.unit_inertia_six,
            unit="m^2",
            problem=validity_problem,
            sparse=True,
            doc="about the center of mass: xx, yy, zz, xy, xz, yz",
        ),
    )


def _declare_joint(tree: LeafSystem, joint: Joint) -> tuple[NumericParameter, NumericParameter]:
    """Declare damping and lock."""
    declare = tree.declare_numeric_parameter
    damping = declare(
        f"{joint.name}_damping",
        joint.default_damping_vector,
        lower=0.0,
        sparse=True,
        doc="generalized force per velocity",
    )
    locked = declare(
        f"{joint.name}_locked",
        0.0,
        lower=0.0,
        upper=1.0,
        problem=_neither_zero_nor_one,
        sparse=True,
        doc="1 while the joint is locked",
    )
    return damping, locked


def _declare_rotor(
    tree: LeafSystem, actuator: Actuator
) -> tuple[NumericParameter, NumericParameter]:
    """Declare gear ratio and inertia."""
    declare = tree.declare_numeric_parameter
    ratio = declare(
        f"{actuator.name}_gear_ratio",
        actuator.default_gear_ratio,
        doc="turns of the rotor per turn of the joint",
    )
    inertia = declare(
        f"{actuator.name}_rotor_inertia",
        actuator.default_rotor_inertia,
        unit=common_unit(actuator.joint.VELOCITY_SUFFIXES, "kg m^2", "kg"),
        lower=0.0,
        sparse=True,
        doc="the joint feels it times the gear ratio squared",
    )
    return ratio, inertia


def _neither_zero_nor_one(value: FloatArray) -> str | None:
    """Say what is wrong with a flag."""
    return None if value in (0.0, 1.0) else f"{value:g}, which is neither 0 nor 1"
