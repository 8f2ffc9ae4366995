"""The equations of motion of the mechanisms, written by hand in NumPy.

They take other ways than the library: the links by Jacobians and a mass matrix, single bodies by
the laws of Newton and Euler. Velocities of free bodies are expressed in the world.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.versus.workloads import (
    Array,
    BodyChain,
    HingedDoor,
    LinkChain,
    Mechanism,
    MountedBody,
)

_AXES = {"x": np.array([1.0, 0.0, 0.0]), "y": np.array([0.0, 1.0, 0.0])}
_DOWN = np.array([0.0, 0.0, -1.0])


def derivatives(workload: Mechanism, x: Array) -> Array:
    """Return the derivatives of the state of a mechanism."""
    match workload:
        case LinkChain():
            return _link_chain(workload, x)
        case MountedBody():
            return _mounted_body(workload, x)
        case BodyChain():
            return _body_chain(workload, x)
        case HingedDoor():
            return _hinged_door(workload, x)
    raise NotImplementedError(workload)


def _link_chain(w: LinkChain, x: Array) -> Array:
    """Project the forces on all rods on the joints: (Σ JᵀMJ) θ″ = τ + Σ Jᵀ (F − M J′θ′)."""
    n = len(w.axes)
    angles, rates = x[:n], x[n:]
    moments = np.diag(w.moments)
    mass_matrix = np.zeros((n, n))
    force = -w.k * angles - w.d * rates
    R = np.eye(3)
    turning = np.zeros((3, n))  # Jacobian of the angular velocity of the rod
    moving = np.zeros((3, n))  # and of the velocity of its upper end
    omega, alpha, acceleration = np.zeros((3, 3))  # at θ″ = 0
    for k, axis in enumerate(w.axes):
        hinge = R @ _AXES[axis]
        R = R @ _turn(axis, angles[k])
        turning[:, k] = hinge
        alpha = alpha + _cross(omega, hinge) * rates[k]
        omega = omega + hinge * rates[k]
        rod = w.length * (R @ _DOWN)
        swept = _cross(turning, rod)
        J = moving + 0.5 * swept
        bend = _cross(alpha, rod) + _cross(omega, _cross(omega, rod))
        inertia = R @ moments @ R.T
        mass_matrix += w.m * J.T @ J + turning.T @ inertia @ turning
        force += J.T @ (w.m * (w.g * _DOWN - acceleration - 0.5 * bend))
        force -= turning.T @ (inertia @ alpha + _cross(omega, inertia @ omega))
        moving = moving + swept
        acceleration = acceleration + bend
    return np.concatenate([rates, np.linalg.solve(mass_matrix, force)])


def _mounted_body(w: MountedBody, x: Array) -> Array:
    """Follow a free body under the forces of the bushing.

    With roll, pitch and yaw of the body, their rates u, and the matrix B of ω = B u, the torque
    of the angles is Bᵀt = −kₜ (roll, pitch, yaw) − dₜ u. The force acts halfway between the
    origins. In axes that are turned by half of the rotation of the body, it is −k p − d p′, where
    p′ is the velocity of the body as it is seen when one turns at half of its angular velocity.
    """
    quaternion, p, omega, v = x[:4], x[4:7], x[7:10], x[10:]
    R = _rotation(quaternion)
    roll = math.atan2(R[2, 1], R[2, 2])
    pitch = math.asin(-R[2, 0])
    yaw = math.atan2(R[1, 0], R[0, 0])
    cp, sp, cy, sy = math.cos(pitch), math.sin(pitch), math.cos(yaw), math.sin(yaw)
    B = np.array([[cp * cy, -sy, 0.0], [cp * sy, cy, 0.0], [-sp, 0.0, 1.0]])
    angles = np.array([roll, pitch, yaw])
    torque = np.linalg.solve(
        B.T, -w.torsional_k * angles - w.torsional_d * np.linalg.solve(B, omega)
    )
    # One number for all directions makes the force independent of the axes in between.
    force = -w.k * p - w.d * (v - 0.5 * _cross(omega, p))
    inertia = R @ np.diag(w.moments) @ R.T
    spin = np.linalg.solve(
        inertia, torque - 0.5 * _cross(p, force) - _cross(omega, inertia @ omega)
    )
    return np.concatenate(
        [_quaternion_rates(quaternion, omega), v, spin, force / w.m + w.g * _DOWN]
    )


def _body_chain(w: BodyChain, x: Array) -> Array:
    """Follow all bodies at once; without moments, balls keep their spin."""
    q, v = x[: 7 * w.count].reshape(-1, 7), x[7 * w.count :].reshape(-1, 6)
    apart = np.diff(q[:, 4:], axis=0, prepend=0.0)
    parting = np.diff(v[:, 3:], axis=0, prepend=0.0)
    distance = np.linalg.norm(apart, axis=1, keepdims=True)
    direction = apart / distance
    rate = np.sum(direction * parting, axis=1, keepdims=True)
    pull = (w.k * (distance - w.length) + w.d * rate) * direction
    acceleration = np.diff(pull, axis=0, append=0.0) / w.m + w.g * _DOWN
    q_rate = np.hstack([_quaternion_rates(q[:, :4].T, v[:, :3].T).T, v[:, 3:]])
    v_rate = np.hstack([np.zeros_like(acceleration), acceleration])
    return np.concatenate([q_rate.ravel(), v_rate.ravel()])


def _hinged_door(w: HingedDoor, x: Array) -> Array:
    """Add up the torques of the hinge."""
    q, v = x.tolist()
    spring = -w.spring_k * (q - w.spring_angle)
    catch = w.catch_torque * _doublet(2.0 * q / w.catch_width - 1.0)
    dry = w.dynamic * math.tanh(v / w.threshold) + w.static * _doublet(v / w.threshold)
    return np.array([v, (spring + catch - dry - w.viscous * v) / w.inertia])


def _doublet(x: float) -> float:
    s = math.tanh(x)
    return 2.0 * s * (1.0 - s * s)


def _turn(axis: str, angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    if axis == "x":
        return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def _rotation(quaternion: Array) -> Array:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _quaternion_rates(quaternion: Array, omega: Array) -> Array:
    """Return ½ (0, ω) ⊗ q; both may have a column for each body."""
    w, x, y, z = quaternion
    a, b, c = omega
    return 0.5 * np.array(
        [
            -a * x - b * y - c * z,
            a * w + b * z - c * y,
            b * w + c * x - a * z,
            c * w + a * y - b * x,
        ]
    )


def _cross(a: Array, b: Array) -> Array:
    """Return a × b, for each column of a; `numpy.cross` takes ten times as long."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )
