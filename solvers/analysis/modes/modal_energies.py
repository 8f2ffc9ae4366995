"""Modal energies: the shares of bodies and springs in a mode, and its dissipation.

With the displacements φ and the rates λ φ of a mode, and the generalized forces f of an element,
its stiffness and its damping in the mode are

    -φᴴ (∂f/∂θ) φ    of its conservative forces,    -φᴴ (∂f/∂v) φ    of all its forces, at rest.

The first is read from the element's own conservative power P(q, v) = f(q) v: with the velocity
v = φ, the derivative of P along φ is φᵀ (∂f/∂θ) φ, exact and with all that an initial load does.
In loops, it includes P(q, v̇) with the rates v̇ by which constraints turn the motion, J v̇ = -J̇ φ.
The second is the derivative of its forces by the velocities that it feels, times these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.blocks.math import kinetic_energy
from flexure.blocks.multibody import BodyForceElement, ForceElement
from flexure.blocks.multibody.loop_closure.closing import dependent_rates
from flexure.blocks.multibody.trees.coupled_articulation import coupled_energy
from flexure.blocks.multibody.trees.inverse_dynamics import generalized_forces
from flexure.blocks.multibody.trees.kinematics import calc_motions
from flexure.diagrams.contexts.context import Context
from flexure.diagrams.contexts.value_places import Place
from flexure.diagrams.values.arrays import FloatArray
from flexure.solvers.analysis.equations.equations import Equations
from flexure.solvers.analysis.forces_at_rest.static_coordinates import path_in_plant
from flexure.solvers.analysis.modes.minimal_coordinates import MinimalCoordinates, TreeMotion
from flexure.solvers.analysis.modes.spectrum import Branch, ComplexArray

_NOTHING = 1e-9  # part of all terms that counts as rounding
_BALANCED = 1e-7  # of forces, which need not be exact derivatives


class ModalEnergies:
    """The energies of the modes of the mechanisms in a system.

    All of them are dictionaries of shares by path; the sum of their magnitudes is 1. A share is
    negative where something works against the rest: gravity in a pendulum that stands, or a motor
    that drives a motion. They are empty where there is no such energy.

    The context is at rest, and the coordinates are around its values. Without ``fastest``, the
    largest natural frequency in rad/s, it is unknown how large rounding is.
    """

    def __init__(self, context: Context, coordinates: MinimalCoordinates, fastest: float) -> None:
        self._context, self._coordinates, self._fastest = context, coordinates, fastest
        self._trees, self._mass = coordinates.trees, coordinates.mass
        self._displacements = coordinates.displacements
        self._positions = coordinates.outwards[:, coordinates.displacements]
        self._velocities = coordinates.outwards[:, coordinates.rates]
        elements = [
            leaf.system for leaf in context.leaves() if isinstance(leaf.system, ForceElement)
        ]
        self._elements = [element.path for element in elements]
        self._weights = [path_in_plant(motion.tree, "gravity") for motion in self._trees]
        weights = [motion.tree.output_port("gravity_power") for motion in self._trees]
        stores = [element.conservative_power for element in elements]
        places = [Place.of(port) for port in (*stores, *weights)]
        self._powers = Equations(context.clone(), (), places)
        self._point = point = self._powers.point()

        pairs = [_forces_and_velocities(element) for element in elements]
        ports = [Place.of(port) for pair in pairs for ports in pair for port in ports]
        forces = Equations(context.clone(), (), ports)
        slopes = forces.jacobian(point)[len(point) :] @ self._velocities
        self._slopes = []
        for pair in pairs:
            sizes = [sum(port.size for port in ports) for ports in pair]
            self._slopes.append((slopes[: sizes[0]], slopes[sizes[0] : sum(sizes)]))
            slopes = slopes[sum(sizes) :]

    def __reduce__(self) -> tuple[type[ModalEnergies], tuple[Any, ...]]:
        """Be pickled without the code of Jacobians, which is made again."""
        return ModalEnergies, (self._context, self._coordinates, self._fastest)

    def bodies(self, branch: Branch) -> dict[str, float]:
        """Return the shares of bodies and rotors in the kinetic energy."""
        found: dict[str, float] = {}
        for motion in () if self._shape(branch) is None else self._trees:
            found |= _kinetic_energies(self._context, motion, branch.shape)
        return _shares(found, 0.0)

    def strain(self, branch: Branch) -> dict[str, float]:
        """Return the shares of elements, gravity and what comes in in the potential energy."""
        if self._shape(branch) is None:
            return {}
        stiffnesses = self._stiffnesses(branch)
        entering, _ = self._entering(branch)
        floor = _NOTHING * (branch.speed or self._fastest) ** 2
        return _shares(stiffnesses | {"inputs": entering}, floor)

    def dissipation(self, branch: Branch) -> dict[str, float]:
        """Return the shares of elements, joints and what comes in in the dissipated energy."""
        if self._shape(branch) is None or not branch.speed:
            return {}
        dampings = {path: number.real for path, number in self._dampings(branch).items()}
        _, entering = self._entering(branch)
        floor = _NOTHING * branch.speed
        return _shares(dampings | {"inputs": entering}, floor)

    def _shape(self, branch: Branch) -> ComplexArray | None:
        """Return the displacements of mechanisms, which have length 1 in the mass if they move."""
        shape = branch.shape[self._displacements]
        mass = float((shape.conj() @ self._mass @ shape).real)
        return shape if abs(mass - 1.0) < 1e-6 else None

    def _stiffnesses(self, branch: Branch) -> dict[str, float]:
        """Return the stiffness of each store in a mode."""
        shape = branch.shape[self._displacements]
        found = np.zeros(len(self._elements) + len(self._weights))
        for part in (shape.real, shape.imag):
            moved = self._positions @ part + self._bending(part)
            slopes = self._powers.jacobian(self._point + self._velocities @ part)
            found -= slopes[len(self._point) :] @ moved
        return dict(zip([*self._elements, *self._weights], found.tolist(), strict=True))

    def _bending(self, shape: FloatArray) -> FloatArray:
        """Return the rates of velocities with which constraints stay met while a shape goes on."""
        moving, found = self._context.clone(), np.zeros(len(self._point))
        moving.continuous_state = self._point + self._velocities @ shape
        for motion in self._trees:
            if motion.tree.constraints:
                leaf = moving.find_leaf(motion.tree)
                first = leaf.x_slice.start + motion.tree.topology.num_positions
                rates = dependent_rates(motion.tree, leaf, motion.free)
                found[first : first + len(rates)] = rates
        return found

    def _coriolis(self, motion: TreeMotion, branch: Branch) -> complex:
        """Return the damping of Coriolis forces G v in a mode, -φᴴ G φ with G = -Gᵀ."""
        v = motion.velocities @ branch.shape[motion.displacements]
        tree, forces = motion.tree, []
        leaf = self._context.clone().find_leaf(tree)
        for rates in (np.zeros(len(v)), v.imag):
            tree.state.set(leaf, np.concatenate([tree.q(leaf), rates]))
            weights = dict(enumerate(tree.gravity_forces(leaf)))
            forces.append(generalized_forces(tree.topology, tree.placements(leaf), weights))
        return complex(0.0, -2.0 * v.real @ (forces[1] - forces[0]))

    def _dampings(self, branch: Branch) -> dict[str, complex]:
        """Return the damping of each element and joint in a mode."""
        shape = branch.shape[self._displacements]
        found = {
            path: complex(-np.vdot(velocities @ shape, forces @ shape))
            for path, (forces, velocities) in zip(self._elements, self._slopes, strict=True)
        }
        for motion in self._trees:
            leaf = self._context.find_leaf(motion.tree)
            if motion.tree.spin is not None:  # Coriolis forces do no work, and are none of these
                found[path_in_plant(motion.tree, "spin")] = self._coriolis(motion, branch)
            constants = np.asarray(motion.tree.constants.dampings(leaf), dtype=float)
            squares = np.abs(motion.velocities @ branch.shape[motion.displacements]) ** 2
            for joint in motion.tree.joints:
                part = motion.tree.velocities_of(joint)
                if np.any(constants[part]):
                    path = path_in_plant(motion.tree, f"{joint.name}.damping")
                    found[path] = complex(constants[part] @ squares[part])
        return found

    def _entering(self, branch: Branch) -> tuple[float, float]:
        """Return the stiffness and the damping that forces from outside act like."""
        # They are what the others lack in λ² + λ Σ damping + Σ stiffness = φᴴ f.
        pole = branch.poles[0]
        stiffness = np.array([*self._stiffnesses(branch).values()])
        damping = np.array([*self._dampings(branch).values()])
        force = pole**2 + pole * np.sum(damping) + np.sum(stiffness)
        terms = abs(pole) ** 2 + abs(pole) * np.sum(np.abs(damping)) + np.sum(np.abs(stiffness))
        if abs(force) <= _BALANCED * terms:
            return 0.0, 0.0
        acting = -force.imag / pole.imag if pole.imag else 0.0
        return float(-force.real - pole.real * acting), float(acting)


def _forces_and_velocities(element: ForceElement) -> tuple[list[Any], list[Any]]:
    """Return the ports with the forces of an element, and those with what moves there."""
    moving = [(end.force, end.velocity) for end in element.joint_ends]
    on_bodies = element.acting if isinstance(element, BodyForceElement) else ()
    moving += [
        (port, each.velocity)
        for acting in on_bodies
        for port, each in zip(acting.force_ports, acting.attachments, strict=True)
        if each.velocity is not None
    ]
    return [port for port, _ in moving], [velocity for _, velocity in moving]


def _kinetic_energies(
    context: Context, motion: TreeMotion, shape: ComplexArray
) -> dict[str, float]:
    """Return the kinetic energy of each body, rotor and flexible body that moves with a shape."""
    tree = motion.tree
    leaf = context.find_leaf(tree)
    placements, _, inertias = tree.kinematics(leaf)
    bodies, rotors = tree.topology.bodies, tree.constants.rotors(leaf)
    couplings = tree.constants.couplings(leaf)
    paths = [
        *(path_in_plant(tree, body.name) for body in bodies[1:]),
        *(path_in_plant(tree, f"{joint.name}.rotor") for joint in rotors),
        *(path_in_plant(tree, each.element) for each in couplings),
    ]
    total = np.zeros(len(paths))
    for part in (shape.real, shape.imag):
        v = np.zeros(tree.topology.num_velocities)
        v[:] = motion.velocities @ part[motion.displacements]
        motions = calc_motions(tree.topology, placements, v, tree.q(leaf))
        V = [moved.V_WB for moved in motions]
        moving = zip(inertias[1:], V[1:], strict=True)
        total += [
            *(kinetic_energy(inertia, V_WB) for inertia, V_WB in moving),
            *(0.5 * rotors[j] * np.sum(v[tree.velocities_of(j)] ** 2) for j in rotors),
            *(coupled_energy(tree.topology, [each], V, v) for each in couplings),
        ]
    return dict(zip(paths, total.tolist(), strict=True))


def _shares(energies: dict[str, float], floor: float) -> dict[str, float]:
    """Return parts of the sum of magnitudes, if there is anything; what is zero is left out."""
    total = sum(map(abs, energies.values()))
    if total <= floor:
        return {}
    return {path: part / total for path, part in energies.items() if abs(part) > _NOTHING * total}
