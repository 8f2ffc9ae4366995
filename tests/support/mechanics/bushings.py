"""The laws of bushings in a few varieties, and a plainer derivation of their forces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from flexure.blocks.forces.bushings.bushing_law import (
    BushingLaw,
    RollPitchYawBushingLaw,
    RotationVectorBushingLaw,
)

FloatArray = npt.NDArray[np.float64]
Constants = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


#: Makes the energy-consistent law of roll, pitch and yaw.
consistent_law = partial(RollPitchYawBushingLaw, energy_consistent=True)
#: What makes each law from its constants.
LAWS: dict[str, Callable[..., BushingLaw]] = {
    "drake": RollPitchYawBushingLaw,
    "consistent": consistent_law,
    "gimbal_free": RotationVectorBushingLaw,
}


class Sample(NamedTuple):
    """Constants of a bushing, and pose and velocity of C in A, expressed in A."""

    constants: Constants
    R_AC: FloatArray
    r: FloatArray
    V_AC: FloatArray


def random_sample(seed: int, *, damped: bool = True, turn: float = 2.5) -> Sample:
    """Draw a sample with a turn of at most some angle in rad, and a pitch of at most 1.3 rad."""
    rng = np.random.default_rng(seed)
    stiffness, damping = rng.uniform(1.0, 100.0, (2, 3)), rng.uniform(0.1, 10.0, (2, 3))
    damping = damping if damped else np.zeros((2, 3))
    while True:
        axis = rng.normal(size=3)
        rotation = Rotation.from_rotvec(rng.uniform(0.1, turn) * axis / np.linalg.norm(axis))
        if abs(rotation.as_euler("ZYX")[1]) < 1.3:
            break
    constants = (stiffness[0], damping[0], stiffness[1], damping[1])
    return Sample(constants, rotation.as_matrix(), rng.normal(size=3), rng.normal(size=6))


class Computed(NamedTuple):
    """What a law computes."""

    on_A: FloatArray
    on_C: FloatArray
    on_C_in_C: FloatArray
    stored_energy: float
    conservative_power: float
    non_conservative_power: float
    angles: FloatArray
    angle_rates: FloatArray
    position: FloatArray
    position_rate: FloatArray


def compute(law: BushingLaw, R_AC: Any, r: Any, V_AC: Any) -> Computed:
    """Run all functions of a law."""
    now = law.deformation((R_AC, r))
    rates = law.rates(now, V_AC)
    F_A_A, F_C_A = law.spatial_forces(now, rates)
    return Computed(
        F_A_A,
        F_C_A,
        law.spatial_force_on_C(now, F_C_A),
        law.stored_energy(now),
        law.conservative_power(now, rates),
        law.non_conservative_power(now, rates),
        now.angles,
        rates.angles,
        now.position,
        rates.position,
    )


def left_jacobian(theta: FloatArray) -> FloatArray:
    """Return the matrix that maps the rate of a rotation vector to the angular velocity."""
    angle = np.linalg.norm(theta)
    cross = np.cross(np.eye(3), theta)
    matrix: FloatArray = (
        np.sin(angle) / angle * np.eye(3)
        + (1.0 - np.cos(angle)) / angle**2 * cross
        + (angle - np.sin(angle)) / angle**3 * np.outer(theta, theta)
    )
    return matrix


def compute_plainly(kind: str, sample: Sample) -> Computed:
    """Derive all of it again: rates by solving, forces and moments by virtual power."""
    k0, d0, k, d = sample.constants
    rotation = Rotation.from_matrix(sample.R_AC)
    theta = rotation.as_rotvec()
    R_AB = Rotation.from_rotvec(0.5 * theta).as_matrix()
    if kind == "gimbal_free":
        q, axes = theta, left_jacobian(theta)
    else:
        q = rotation.as_euler("ZYX")[::-1]
        about_z = Rotation.from_euler("Z", q[2])
        about_y = about_z * Rotation.from_euler("Y", q[1])
        z, y, x = np.eye(3)[2], about_z.apply([0.0, 1.0, 0.0]), about_y.apply([1.0, 0.0, 0.0])
        axes = np.stack([x, y, z], axis=1)

    def rates(V: FloatArray, *, exact: bool) -> tuple[Any, Any]:
        w, v = V[:3], V[3:]
        theta_rate = np.linalg.solve(left_jacobian(theta), w)
        w_AB = left_jacobian(0.5 * theta) @ (0.5 * theta_rate) if exact else 0.5 * w
        return np.linalg.solve(axes, w), R_AB.T @ (v - np.cross(w_AB, sample.r))

    position = R_AB.T @ sample.r
    angle_rates, position_rate = rates(sample.V_AC, exact=True)
    _, u = rates(sample.V_AC, exact=kind != "drake")
    torques, force = -(k0 * q + d0 * angle_rates), -(k * position + d * u)
    columns = [rates(V, exact=kind != "drake") for V in np.eye(6)]
    F_C = np.array([torques @ angle_rate + force @ rate for angle_rate, rate in columns])
    F_A = -F_C - [*np.cross(sample.r, F_C[3:]), 0.0, 0.0, 0.0]
    conservative = -float(k0 * q @ angle_rates + k * position @ position_rate)
    return Computed(
        F_A,
        F_C,
        np.concatenate([sample.R_AC.T @ F_C[:3], sample.R_AC.T @ F_C[3:]]),
        0.5 * float(k0 @ q**2 + k @ position**2),
        conservative,
        float(F_C @ sample.V_AC) - conservative,
        q,
        angle_rates,
        position,
        position_rate,
    )
