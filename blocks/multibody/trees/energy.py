"""Energies, momentum and center of mass of all bodies together, and their weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from flexure.blocks import math
from flexure.blocks.math import MassProperties, cross, dot, shift_spatial_momentum, spatial_momentum
from flexure.blocks.multibody.bodies.body_motion import BodyMotion, Placement
from flexure.blocks.multibody.trees.inverse_dynamics import needed_force
from flexure.diagrams.checks.errors import EvaluationError
from flexure.diagrams.scalars import refuse_where
from flexure.diagrams.values.arrays import Array


def kinetic_energy(motions: Sequence[BodyMotion], inertias_W: Sequence[MassProperties]) -> Array:
    """Return the kinetic energy of all bodies, ½ Σ V · M V, in J."""
    bodies = zip(motions, inertias_W, strict=True)
    return sum((math.kinetic_energy(M, motion.V_WB) for motion, M in islice(bodies, 1, None)), 0.0)


def gravity_energy(
    placements: Sequence[Placement], inertias_W: Sequence[MassProperties], gravity: Array
) -> Array:
    """Return the energy of all bodies in a uniform field, -Σ m g · p_WBcm, in J.

    It is zero for a body whose center of mass is at the origin of the world.
    """
    return -dot(gravity, sum(_mass_moments(placements, inertias_W), np.zeros(3)))


def gravity_forces(inertias_W: Sequence[MassProperties], gravity: Array) -> list[Array]:
    """Return the weights of all bodies, (c × m g, m g) with c = p_BoBcm.

    They are about Bo, expressed in the world, the world first.
    """
    weights: list[Array] = [np.zeros(6)]
    for mass, com, _ in inertias_W[1:]:
        weight = np.multiply(mass, gravity)
        weights.append(np.concatenate([cross(com, weight), weight]))
    return weights


def frame_forces(
    placements: Sequence[Placement],
    motions: Sequence[BodyMotion],
    inertias_W: Sequence[MassProperties],
    spin: Array,
) -> list[Array]:
    """Return the centrifugal and Coriolis forces on all bodies in a world that spins.

    With V = (w, v) in the world and Ω, they are what a body needs to move so in the world, less
    what it needs with the angular velocity w + Ω and the acceleration (Ω × w, Ω × (Ω × p + 2 v)).
    Spatial forces are about Bo, expressed in the world, the world first. Ω is constant, about the
    origin of the world, in rad/s.
    """
    forces: list[Array] = [np.zeros(6)]
    bodies = zip(placements, motions, inertias_W, strict=True)
    for placement, (V, _), M in islice(bodies, 1, None):
        w, v = V[:3], V[3:]
        swept = cross(spin, placement.p_WB) + 2.0 * v
        carried = np.concatenate([cross(spin, w), cross(spin, swept)])
        forces.append(needed_force(M, w, np.zeros(6)) - needed_force(M, w + spin, carried))
    return forces


def spin_energy(
    placements: Sequence[Placement], inertias_W: Sequence[MassProperties], spin: Array
) -> Array:
    """Return the potential energy of centrifugal forces, -½ Ω · J Ω, in J.

    Ω is constant, about the origin of the world, in rad/s.
    """
    carried = [np.concatenate([spin, cross(spin, each.p_WB)]) for each in placements]
    return -kinetic_energy([BodyMotion(V, np.zeros(6)) for V in carried], inertias_W)


def momentum(
    placements: Sequence[Placement],
    motions: Sequence[BodyMotion],
    inertias_W: Sequence[MassProperties],
    p_WQ: npt.ArrayLike = (0.0, 0.0, 0.0),
) -> Array:
    """Return the spatial momentum (h, l) of all bodies about a point Q of the world.

    In kg m²/s and kg m/s, expressed in the world.
    """
    bodies = zip(placements, motions, inertias_W, strict=True)
    momenta = (
        shift_spatial_momentum(spatial_momentum(M, motion.V_WB), p_WQ - placement.p_WB)
        for placement, motion, M in islice(bodies, 1, None)
    )
    return sum(momenta, np.zeros(6))


def center_of_mass(
    placements: Sequence[Placement],
    inertias_W: Sequence[MassProperties],
    added: Sequence[tuple[Array, Array]] = (),
) -> Array:
    """Return the center of mass of all bodies in the world, Σ m p_WBcm / Σ m, in m.

    ``added`` has mass m and moment m p_WBcm of what is on no single body. Raises EvaluationError
    when no body has a mass.
    """
    moment = sum(
        (each for _, each in added), sum(_mass_moments(placements, inertias_W), np.zeros(3))
    )
    return moment / _total_mass(inertias_W, added)


def center_of_mass_velocity(
    motions: Sequence[BodyMotion],
    inertias_W: Sequence[MassProperties],
    added: Sequence[tuple[Array, Array]] = (),
) -> Array:
    """Return the velocity of the center of mass of all bodies, Σ m v_WBcm / Σ m, in m/s.

    ``added`` has mass and momentum of what is on no single body. Raises EvaluationError when no
    body has a mass.
    """
    bodies = zip(motions, inertias_W, strict=True)
    momenta = (
        mass * (motion.V_WB[3:] + cross(motion.V_WB[:3], com))
        for motion, (mass, com, _) in islice(bodies, 1, None)
    )
    momentum = sum((each for _, each in added), sum(momenta, np.zeros(3)))
    return momentum / _total_mass(inertias_W, added)


def _mass_moments(
    placements: Sequence[Placement], inertias_W: Sequence[MassProperties]
) -> Iterator[Array]:
    """Yield m p_WBcm of all bodies."""
    bodies = zip(placements, inertias_W, strict=True)
    for placement, (mass, com, _) in islice(bodies, 1, None):
        yield mass * (placement.p_WB + com)


def _total_mass(
    inertias_W: Sequence[MassProperties], added: Sequence[tuple[Array, Array]]
) -> Array:
    """Return the mass of all bodies, and refuse zero."""
    total = sum((mass for mass, _ in added), sum((M.mass for M in inertias_W[1:]), 0.0))
    return refuse_where(
        total == 0.0,
        total,
        lambda: EvaluationError(
            "Cannot find the center of mass of all bodies",
            expected="at least one body with a mass",
            found="a total mass of zero",
        ),
    )
