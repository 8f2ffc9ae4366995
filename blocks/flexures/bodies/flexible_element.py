"""The equations of a reduced elastic body between its interfaces, as force element and joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flexure.blocks.flexures.bodies.reduction import ReducedBody
from flexure.blocks.math import (
    RigidTransform,
    cross,
    dot,
    relative_pose,
    rotate_spatial,
    shift_spatial_velocity,
    skew,
)
from flexure.blocks.multibody.bodies.bodies import FrameLike
from flexure.blocks.multibody.force_elements.force_element import BodyForceElement, JointEnd
from flexure.blocks.multibody.force_elements.limits import Limit
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.trees.component_names import along_joint
from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, EvaluationError
from flexure.diagrams.scalars import refuse_where
from flexure.diagrams.values.arrays import Array, FloatArray

_FASTEST = 0.3  # spin over the first angular frequency: 5 % of that frequency by stiffening
_TINY = 1e-300
_LIMITS = (
    Limit(
        "spin",
        0.1,
        "",
        "The spin over the first angular frequency: matrices alone do not stiffen by it",
        "Make the body by from_mesh or from_plate, or divide it into several ones",
        misleads=3.0,
    ),
    Limit(
        "angle",
        0.1,
        "rad",
        "The body is linear: rotations between interfaces must be small",
        "Divide the body into several ones, or use a Beam with segments",
        misleads=3.0,
    ),
)


class Kinematics(NamedTuple):
    """How a body moves and deforms, in the floating frame F at its first interface."""

    # eta, rates: modal coordinates η and their rates, shape (n,).
    eta: Array
    rates: Array
    w: Array  # angular velocity of F, shape (3,)
    # Velocities (V_WF, and rates of the coordinates of the interfaces) by those of the bodies,
    # shape (6 k, 6 k).
    jacobian: Array
    bias: Array  # their rates at zero accelerations of the bodies, shape (6 k,)


class FlexibleElement(BodyForceElement):
    """A reduced elastic body between frames on bodies, with all of its inertia.

    The floating frame F is the first interface. With the rotation R_i of an interface I in F and
    its position r_i, the coordinates are the axial vector of R_i, sin φ times its axis, and the
    displacement; for the small angles of linear elasticity they are those of the model::

        θ_i = ½ (R_i - R_iᵀ)^∨      θ̇_i = ½ (tr R_i 1 - R_i) (w_i - w_F)
        d_i = r_i - r_i0            ḋ_i = v_i - v_F - w_F × r_i

    With u = (w_F, v_F, η̇), the kinetic energy is ½ uᵀ M(η) u with all terms up to the second order
    in η, and the inertial forces are M(η) u̇ + h, where A_F = (α, a) in u̇ is the acceleration of F.
    With r = x + Ψ η, S = ∫ r dm, W = ∫ r rᵀ dm and D = ∫ r (Ψ η̇)ᵀ dm::

        J = tr(W) 1 - W
        h_t = w × J w + 2 (tr(D) w - Dᵀ w)
        h_f = w × (w × S) + 2 w × Ṡ
        h_j = ∫ Ψ_j · (w × (w × r) + 2 w × Ψ η̇) dm

    Bodies of finite elements whose stress is known become shorter as they bend, and so stiffen by
    load and spin. With B_b, the stiffness by the stress under a unit force on coordinate b of the
    interfaces, and S_pq, that under the centrifugal forces of a spin with all of them held::

        η_e,b = η_b + ½ ηᵀ B_b η       V = ½ η_eᵀ K η_e       W_pq = ∫ r_p r_q dm + ηᵀ S_pq η

    Damping is -C η̇ with C = M_η Φ diag(2 ζ ω) Φᵀ M_η, where Φ are the modes with F held. Forces on
    the bodies are those of virtual work.

    Made by `FlexibleBody`; its name, outputs and parameters are those of the block in the plant.
    """

    def __init__(
        self,
        name: str,
        body: ReducedBody,
        frames: Mapping[str, FrameLike],
        modal_joint: ModalJoint | None,
        damping_ratio: npt.ArrayLike,
    ) -> None:
        self.body = body
        self.stiffens = body.stiffens or not len(body.stiffness)
        self.modal_joint = modal_joint
        joints = () if modal_joint is None else (modal_joint,)
        inputs = ("amplitudes", "amplitude_rates") if joints else ()
        super().__init__(name, frames, given=dict.fromkeys(inputs, body.num_modes))
        self._frequencies, shapes = body.modes()
        self._toward_modes = shapes.T @ body.mass_matrix
        ratios = np.broadcast_to(np.asarray(damping_ratio, dtype=float), self._frequencies.shape)
        doc = "of each mode with the first interface held"
        self.damping_ratio = self.declare_numeric_parameter(
            "damping_ratio", ratios, lower=0.0, doc=doc
        )
        both = [*self.position_ports, *self.velocity_ports, *self.given_ports]
        self._kinematics = self.declare_cache_entry(
            "kinematics", partial(self._calc_kinematics, True), prerequisites=both
        )
        output = partial(self.declare_vector_output, prerequisites=[self._kinematics])
        for joint in joints:
            (q, v), along = self.given_ports, along_joint(joint)
            force = output("modal_force", body.num_modes, self._calc_modal_force, **along)
            self.joint_ends = (JointEnd(joint, q, v, force),)
        self.coupled = (*(each.body for each in self.attachments), *joints)
        size = 6 * len(self.attachments) + body.num_modes
        doc = "mass matrix and bias force of the bodies and modes, see CouplingInput"
        calc = self._calc_coupled_inertia
        self.coupled_inertia = output("coupled_inertia", size * (size + 1), calc, doc=doc)
        doc = "rotation and displacement of each further interface, and amplitudes of modes"
        count = len(body.stiffness)
        self.deformation = output("deformation", count, self._calc_deformation, doc=doc)
        limits = _LIMITS[1:] if self.stiffens else _LIMITS
        self.declare_limits(limits, self._calc_limited, prerequisites=[self._kinematics])

    # Kinematics ------------------------------------------------------------------------------

    def _calc_kinematics(self, moving: bool, context: Any) -> Kinematics:
        reads = [each.motion if moving else each.at_rest for each in self.attachments]
        motions = [read(context) for read in reads]
        R_FW, first, one = motions[0].X_WF.R.T, motions[0], np.eye(6)
        V = [rotate_spatial(R_FW, each.V_WF) for each in motions]
        w, v = V[0][:3], V[0][3:]
        to_frames = [rotate_spatial(R_FW, shift_spatial_velocity(one, m.p_BF)) for m in motions]
        spins, arms = [each[:3] for each in V], [R_FW @ each.p_BF for each in motions]
        a = [cross(spin, cross(spin, arm)) for spin, arm in zip(spins, arms, strict=True)]
        of_F, count = to_frames[0], len(motions)
        L = [[np.zeros((6, 6))] * count for _ in motions]
        L[0][0] = of_F
        eta, rates, bias = [np.zeros(0)], [np.zeros(0)], [np.zeros(3), a[0]]
        for i in range(1, count):
            R = R_FW @ motions[i].X_WF.R
            r = R_FW @ (motions[i].X_WF.p - first.X_WF.p)
            w_i, v_i, of_i = V[i][:3], V[i][3:], to_frames[i]
            turning = w_i - w
            G, change = _axial(R), _axial(skew(turning) @ R)
            d_rate = v_i - v - cross(w, r)
            axis = 0.5 * scalars.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
            eta += [axis, r - (self.body.points[i] - self.body.points[0])]
            rates += [G @ turning, d_rate]
            bias += [
                change @ turning - G @ cross(w, w_i),
                a[i] - a[0] - cross(w, cross(w, r)) - 2.0 * cross(w, d_rate),
            ]
            L[i][0] = np.concatenate([-(G @ of_F[:3]), skew(r) @ of_F[:3] - of_F[3:]])
            L[i][i] = np.concatenate([G @ of_i[:3], of_i[3:]])
        for values, port in zip((eta, rates), self.given_ports, strict=False):
            values.append(port(context))
        jacobian = np.concatenate([np.concatenate(row, axis=1) for row in L])
        both = np.concatenate(eta), np.concatenate(rates)
        return Kinematics(*both, w, jacobian, np.concatenate(bias))

    def _calc_deformation(self, context: Any) -> Array:
        return self._kinematics(context).eta

    # Inertia ---------------------------------------------------------------------------------

    def _calc_coupled_inertia(self, context: Any) -> Array:
        """Return M and b of the velocities of the bodies and modes."""
        moved, b = self._kinematics(context), 6 * len(self.attachments)
        M, h = _inertia(self.body, moved)
        if not self.stiffens:
            h = refuse_where(self._spin(moved) > _FASTEST, h, self._too_fast)
        L = moved.jacobian
        coupled = L.T @ M[:b, b:]
        whole = np.block([[L.T @ (M[:b, :b] @ L), coupled], [coupled.T, M[b:, b:]]])
        force = M[:, :b] @ moved.bias + h
        return np.concatenate([np.ravel(whole), L.T @ force[:b], force[b:]])

    def _too_fast(self) -> EvaluationError:
        return EvaluationError(
            f"Cannot move '{self.label}'",
            expected=f"a spin below {_FASTEST:g} of its first angular frequency, "
            f"{self._frequencies[0]:.4g} rad/s, since matrices alone have no stiffening by spin",
            found="a faster spin",
            remedy="Make the body by from_mesh or from_plate, or divide it into several ones",
        )

    # Forces and energy -----------------------------------------------------------------------

    def strained(self, eta: Array) -> Array:
        """Return η_e, of which stresses are linear functions: η less what bending shortens."""
        if not self.stiffens:
            return eta
        count, B = len(self.body.by_force), self.body.by_force
        return np.concatenate([eta[:count] + 0.5 * (B @ eta) @ eta, eta[count:]])

    def _elastic(self, moved: Kinematics) -> Array:
        forces, B = -(self.body.stiffness @ self.strained(moved.eta)), self.body.by_force
        return forces + forces[: len(B)] @ (B @ moved.eta) if self.stiffens else forces

    def _damping(self, context: Any, moved: Kinematics) -> Array:
        """Return -C η̇."""
        of_modes = self._toward_modes @ moved.rates
        constants = 2.0 * self._frequencies * self.damping_ratio(context)
        return -(self._toward_modes.T @ (constants * of_modes))

    def calc_spatial_forces(self, context: Any) -> Sequence[Array]:
        """Return the forces on the bodies: Jᵀ (-K η - C η̇)."""
        moved = self._calc_kinematics(True, context)
        b = 6 * (len(self.attachments) - 1)
        Q = self._elastic(moved) + self._damping(context, moved)
        F = moved.jacobian[6:].T @ Q[:b]
        return [F[6 * k : 6 * k + 6] for k in range(len(self.attachments))]

    def _calc_modal_force(self, context: Any) -> Array:
        moved = self._kinematics(context)
        Q = self._elastic(moved) + self._damping(context, moved)
        return Q[len(Q) - self.body.num_modes :]

    def calc_stored_energy(self, context: Any) -> Array:
        """Return ½ η_eᵀ K η_e."""
        eta = self.strained(self._calc_kinematics(False, context).eta)
        return 0.5 * dot(eta, self.body.stiffness @ eta)

    def calc_conservative_power(self, context: Any) -> Array:
        """Return the power of the elastic forces, -V̇."""
        moved = self._calc_kinematics(True, context)
        return dot(moved.rates, self._elastic(moved))

    def calc_non_conservative_power(self, context: Any) -> Array:
        """Return -η̇ · C η̇."""
        moved = self._calc_kinematics(True, context)
        return dot(moved.rates, self._damping(context, moved))

    # Checks ----------------------------------------------------------------------------------

    def _spin(self, moved: Kinematics) -> Array:
        """Return the spin over the first angular frequency; zero for a rigid body."""
        lowest = min(self._frequencies.tolist(), default=np.inf)
        return np.sqrt(dot(moved.w, moved.w)) / max(lowest, _TINY)

    def _calc_limited(self, context: Any) -> list[Array]:
        moved = self._kinematics(context)
        turned = [moved.eta[6 * k : 6 * k + 3] for k in range(len(self.attachments) - 1)]
        angles = [np.sqrt(dot(each, each)) for each in turned]
        largest = np.max(scalars.array(angles)) if angles else np.float64(0.0)
        return [largest] if self.stiffens else [self._spin(moved), largest]

    def check_assembly(self, poses: Sequence[RigidTransform]) -> None:
        """Refuse frames that are not at the interfaces of the unstressed body."""
        for k, name in enumerate(self.body.interfaces[1:], start=1):
            R, p = relative_pose(poses[0], poses[k])
            wanted = self.body.points[k] - self.body.points[0]
            off = float(np.linalg.norm(p - wanted)) / max(float(np.linalg.norm(wanted)), 1e-300)
            turned = float(np.abs(R - np.eye(3)).max())
            if off > 1e-6 or turned > 1e-6:
                raise DeclarationError(
                    f"Cannot attach '{self.label}' at its interface '{name}'",
                    expected=f"a frame at {wanted} in that of the first interface, not turned",
                    found=f"one at {p}, turned by about {turned:.3g} rad",
                    remedy="Move the frame, or let the body make its own",
                )


def _axial(R: Array) -> Array:
    """Return ½ (tr R 1 - R), with which the axial vector of R changes for an angular velocity."""
    return 0.5 * (np.trace(R) * np.eye(3) - R)


def _inertia(body: ReducedBody, moved: Kinematics) -> tuple[Array, Array]:
    """Return M(η) of (w_F, v_F, η̇), and h."""
    w, second = moved.w, body.second_order
    a, a_rate = np.concatenate([np.ones(1), moved.eta]), np.concatenate([np.zeros(1), moved.rates])
    at, rate = second @ a, second @ a_rate
    S, flow = body.first @ a, body.first @ a_rate
    W, D = at @ a, (at @ a_rate).T
    J = np.trace(W) * np.eye(3) - W
    turning = np.stack([at[p - 1, p - 2] - at[p - 2, p - 1] for p in range(3)])[:, 1:]
    rigid = np.block([[J, skew(S)], [-skew(S), body.mass * np.eye(3)]])
    mixed = np.concatenate([turning, body.first[:, 1:]])
    M = np.block([[rigid, mixed], [mixed.T, body.mass_matrix]])
    C, X = np.outer(w, w) - dot(w, w) * np.eye(3), 2.0 * skew(w)
    h_j = np.einsum("pq,pqi->i", C, at) + np.einsum("pq,pqi->i", X, rate)
    h_t = cross(w, J @ w) + 2.0 * (np.trace(D) * w - D.T @ w)
    h_f = cross(w, cross(w, S)) + 2.0 * cross(w, flow)
    return M, np.concatenate([h_t, h_f, h_j[1:]])


class ModalJoint(Joint):
    """A joint whose coordinates move no body: amplitudes of the internal modes of a flexible body.

    It is between the first interface of the flexible body and a body without inertia.
    """

    TYPE_NAME = "modal"
    can_rotate = False
    can_translate = False

    def __init__(
        self, name: str, frame_on_parent: FrameLike, frame_on_child: FrameLike, count: int
    ) -> None:
        self.POSITION_SUFFIXES = tuple(f"x{k}" for k in range(1, count + 1))  # type: ignore[misc]
        self.VELOCITY_SUFFIXES = tuple(f"v{k}" for k in range(1, count + 1))  # type: ignore[misc]
        super().__init__(name, frame_on_parent, frame_on_child)

    def calc_pose(self, q: Array) -> RigidTransform:
        """Return the identity."""
        return RigidTransform(np.eye(3), np.zeros(3))

    def calc_motion_matrix(self, q: Array) -> Array:
        """Return H = 0."""
        return np.zeros((6, self.num_velocities))

    def calc_motion_bias(self, q: Array, v: Array) -> Array:
        """Return Ḣ v = 0."""
        return np.zeros(6)

    def nearest_positions(self, X_FM: RigidTransform) -> FloatArray:
        """Return zeros, since no pose depends on the positions."""
        return np.zeros(self.num_positions)

    def nearest_velocities(self, q: FloatArray, V_FM: FloatArray) -> FloatArray:
        """Return zeros, since no velocity depends on them."""
        return np.zeros(self.num_velocities)
