"""Inertia that force elements carry, and that the bodies they are attached to feel as their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexure.blocks.math import MassProperties, RigidTransform, skew
from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.bodies.unit_inertia import symmetric_matrix
from flexure.diagrams import scalars
from flexure.diagrams.values.arrays import Array

#: Ten numbers hold what is carried: mass m in kg, first moment h = m c in kg m, and the inertia
#: xx, yy, zz, xy, xz, yz about the origin of a frame in kg m², all expressed in that frame. They
#: add up where bodies are joined.
INERTIA_SIZE = 10


@dataclass(frozen=True)
class InertiaInput:
    """An input of a tree through which a force element adds to the inertia of a body."""

    name: str  # name of the port, which takes ten numbers about Bo
    body: Body  # the body that carries it


def inertia_on_body(inertia_F: Array, X_BF: RigidTransform) -> Array:
    """Return ten numbers of a frame F on a body B as those of the frame of B.

    With h = R_BF h_F and p = p_BF::

        h_B = h + m p
        I_B = R_BF I_F R_BFᵀ + (2 p · h + m p · p) 1 - (p hᵀ + h pᵀ + m p pᵀ)
    """
    R, p = X_BF
    mass, h = inertia_F[0], R @ inertia_F[1:4]
    twice = skew(h + 0.5 * mass * p) @ skew(p)
    turned = R @ symmetric_matrix(inertia_F[4:]) @ R.T - (twice + twice.T)
    six = [turned[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return scalars.array([mass, *(h + mass * p), *six])


def joined(own: MassProperties, carried: Sequence[Array]) -> MassProperties:
    """Return the mass properties of a body, whose own mass may be zero, with all that it carries.

    Everything is about one point and expressed in one frame.
    """
    added: Array = sum(carried[1:], carried[0])
    mass = own.mass + added[0]
    moment = own.mass * own.com + added[1:4]
    com = moment / np.where(mass == 0.0, 1.0, mass)
    return MassProperties(mass, com, own.inertia + symmetric_matrix(added[4:]))
