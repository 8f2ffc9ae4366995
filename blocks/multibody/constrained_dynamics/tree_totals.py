"""Totals over all bodies of a tree: energies, powers, momentum and the center of mass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from flexure.blocks.math import dot
from flexure.blocks.multibody.constrained_dynamics.tree_dynamics import TreeDynamics
from flexure.blocks.multibody.constraints.constraint import driven_power
from flexure.blocks.multibody.trees import energy
from flexure.blocks.multibody.trees.component_names import POSITION, VELOCITY
from flexure.blocks.multibody.trees.coupled_articulation import CoupledInertia, coupled_energy
from flexure.diagrams.systems.ports import Prerequisite
from flexure.diagrams.values.arrays import Array

_MOMENTUM = ("hx", "hy", "hz", "lx", "ly", "lz")


def declare_totals(tree: TreeDynamics) -> None:
    """Declare the outputs of a tree that concern all of its bodies together."""
    moving: list[Prerequisite] = [tree.moving_velocities]
    motion = [tree.motions, tree.inertias]
    given = [tree.motions, *moving, *tree.inputs_from_outside]
    if tree.constraints:
        given += [tree.conditions, tree.multipliers]
    totals: list[tuple[str, Any, Sequence[Prerequisite], str, Sequence[str]]] = [
        ("kinetic_energy", _kinetic_energy, [*motion, *moving], "J", ()),
        ("gravity_energy", _gravity_energy, [tree.placements, tree.inertias], "J", ()),
        ("gravity_power", _gravity_power, [*motion, *moving], "W", ()),
        ("damping_power", _damping_power, moving, "W", ()),
        ("input_power", _input_power, given, "W", ()),
        ("momentum", _momentum, [*motion, *moving], "", _MOMENTUM),
        ("center_of_mass", _center_of_mass, [tree.inertias], "m", POSITION),
        ("center_of_mass_velocity", _center_of_mass_velocity, [*motion, *moving], "m/s", VELOCITY),
    ]
    if tree.input_impacts is not None:
        taken = tree.input_impacts
        totals.append(("input_impacts_dissipated_energy", _taken_in_impacts, [taken], "J", ()))
    for name, calc, needs, unit, names in totals:
        tree.declare_vector_output(
            name,
            len(names) or 1,
            partial(calc, tree),
            prerequisites=needs,
            unit=unit,
            element_names=names or None,
        )


def _kinetic_energy(tree: TreeDynamics, context: Any) -> Array:
    of_bodies = energy.kinetic_energy(tree.motions(context), tree.inertias(context))
    v = tree.moving_velocities(context)
    of_rotors = [
        0.5 * inertia * np.sum(v[tree.velocities_of(joint)] ** 2)
        for joint, inertia in tree.constants.rotors(context).items()
    ]
    couplings, velocities = _coupled(tree, context)
    coupled = coupled_energy(tree.topology, couplings, velocities, v)
    return sum(of_rotors, of_bodies) + coupled


def _coupled(tree: TreeDynamics, context: Any) -> tuple[list[CoupledInertia], list[Array]]:
    """Return what couples bodies by inertia, and the velocities of all bodies."""
    couplings = tree.constants.couplings(context)
    return couplings, [each.V_WB for each in tree.motions(context)] if couplings else []


def _coupled_momenta(tree: TreeDynamics, context: Any) -> list[Array]:
    """Return the momenta of what couples bodies, about the origin of the world."""
    (couplings, velocities), v = _coupled(tree, context), tree.moving_velocities(context)
    stacked = [each.stacked(tree.topology, velocities, v) for each in couplings]
    placements = tree.placements(context)
    return [each.momentum(placements, V) for each, V in zip(couplings, stacked, strict=True)]


def _mass_moments(tree: TreeDynamics, context: Any) -> list[tuple[Array, Array]]:
    """Return mass and moment of mass of what couples bodies."""
    placements = tree.placements(context)
    return [each.mass_moment(placements) for each in tree.constants.couplings(context)]


def _gravity_energy(tree: TreeDynamics, context: Any) -> Array:
    placements, inertias = tree.placements(context), tree.inertias(context)
    of_bodies = energy.gravity_energy(placements, inertias, tree.gravity(context))
    moments = (moment for _, moment in _mass_moments(tree, context))
    stored = sum((-dot(tree.gravity(context), moment) for moment in moments), of_bodies)
    if tree.spin is None:
        return stored
    return stored + energy.spin_energy(placements, inertias, tree.spin(context))


def _gravity_power(tree: TreeDynamics, context: Any) -> Array:
    weights, motions = tree.gravity_forces(context), tree.motions(context)
    power = sum(dot(weight, motion.V_WB) for weight, motion in zip(weights, motions, strict=True))
    return power + dot(tree.coupled_weights(context)[1], tree.moving_velocities(context))


def _damping_power(tree: TreeDynamics, context: Any) -> Array:
    return np.sum(tree.damping_forces(context) * tree.moving_velocities(context))


def _input_power(tree: TreeDynamics, context: Any) -> Array:
    forces = tree.added_on_joints(context, tree.generalized_force(context), internal=False)
    power = np.sum(forces * tree.moving_velocities(context))
    for port, force, number in tree.on_bodies:
        if not force.is_internal:
            power = power + dot(port(context), tree.motions(context)[number].V_WB)
    if not any(constraint.does_work for constraint in tree.constraints):
        return power
    return power + driven_power(tree, context, tree.multipliers(context).values)


def _taken_in_impacts(tree: TreeDynamics, context: Any) -> Array:
    assert tree.input_impacts is not None  # it is declared where this is an output
    return tree.input_impacts(context)


def _momentum(tree: TreeDynamics, context: Any) -> Array:
    motions, inertias = tree.motions(context), tree.inertias(context)
    of_bodies = energy.momentum(tree.placements(context), motions, inertias)
    return sum(_coupled_momenta(tree, context), of_bodies)


def _center_of_mass(tree: TreeDynamics, context: Any) -> Array:
    placements, inertias = tree.placements(context), tree.inertias(context)
    return energy.center_of_mass(placements, inertias, _mass_moments(tree, context))


def _center_of_mass_velocity(tree: TreeDynamics, context: Any) -> Array:
    moments, momenta = _mass_moments(tree, context), _coupled_momenta(tree, context)
    added = [(m, L[3:]) for (m, _), L in zip(moments, momenta, strict=True)]
    return energy.center_of_mass_velocity(tree.motions(context), tree.inertias(context), added)
