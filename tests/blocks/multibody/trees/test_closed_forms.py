"""Mechanisms whose equations of motion are in every textbook."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from flexure.blocks.math import rotation_from_rpy
from flexure.blocks.multibody.bodies.bodies import Body, Frame
from flexure.blocks.multibody.bodies.inertia import SpatialInertia
from flexure.blocks.multibody.joints.ball import BallRpyJoint
from flexure.blocks.multibody.joints.base.joint import Joint
from flexure.blocks.multibody.joints.floating import QuaternionFloatingJoint
from flexure.blocks.multibody.joints.prismatic import PrismaticJoint
from flexure.blocks.multibody.joints.revolute import RevoluteJoint
from flexure.blocks.multibody.joints.screw import ScrewJoint
from flexure.blocks.multibody.trees import energy
from tests.support.mechanics.multibody import State, make_tree, random_inertia, random_pose

G = 9.81
DOWN = np.array([0.0, 0.0, -G])

angles = st.floats(-3.0, 3.0)
rates = st.floats(-5.0, 5.0)


def falling(state: State, tau: Any = None) -> Any:
    """Return the accelerations under gravity."""
    weights = energy.gravity_forces(state.inertias, DOWN)
    return state.forward_dynamics(np.zeros_like(state.v) if tau is None else tau, weights)


def state_of(bodies: list[Body], joints: list[Joint], q: Any, v: Any) -> State:
    """Return a state of bodies but the world, which the first joint is on."""
    world = joints[0].parent_body
    return make_tree([world, *bodies], joints).at(np.array(q), np.array(v))


# Pendulums -----------------------------------------------------------------------------------


@given(q=angles, v=rates)
def test_a_simple_pendulum(q: float, v: float) -> None:
    world, length = Body("world"), 0.7
    bob = Body("bob", SpatialInertia(2.0, (0.0, 0.0, -length)))
    pivot = RevoluteJoint("pivot", world, bob, (0, 1, 0))
    found = falling(state_of([bob], [pivot], [q], [v]))
    assert found == pytest.approx([-G / length * np.sin(q)], rel=1e-13, abs=1e-13)


@given(q=angles, v=rates, tau=rates)
def test_a_physical_pendulum_on_a_tilted_axis(q: float, v: float, tau: float) -> None:
    mass, lever, about_axis, tilt = 2.0, 0.4, 0.05, 0.3
    world = Body("world")
    bob = Body("bob", SpatialInertia(mass, (0.0, 0.0, -lever), (0.06, about_axis, 0.03)))
    tilted = Frame("tilted", world, (rotation_from_rpy([tilt, 0.0, 0.0]), np.zeros(3)))
    pivot = RevoluteJoint("pivot", tilted, bob, (0, 1, 0))
    found = falling(state_of([bob], [pivot], [q], [v]), np.array([tau]))
    torque = tau - mass * G * np.cos(tilt) * lever * np.sin(q)
    expected = torque / (about_axis + mass * lever**2)
    assert found == pytest.approx([expected], rel=1e-12, abs=1e-12)


@given(q1=angles, q2=angles, v1=rates, v2=rates)
def test_a_double_pendulum_of_point_masses(q1: float, q2: float, v1: float, v2: float) -> None:
    m1, m2, l1, l2 = 1.5, 0.8, 0.6, 0.9
    world = Body("world")
    upper = Body("upper", SpatialInertia(m1, (0.0, 0.0, -l1)))
    lower = Body("lower", SpatialInertia(m2, (0.0, 0.0, -l2)))
    elbow = Frame("elbow", upper, (np.eye(3), [0.0, 0.0, -l1]))
    joints: list[Joint] = [
        RevoluteJoint("shoulder", world, upper, (0, 1, 0)),
        RevoluteJoint("elbow", elbow, lower, (0, 1, 0)),
    ]
    found = falling(state_of([upper, lower], joints, [q1, q2], [v1, v2]))
    # Lagrange's equations in the angles a from the vertical, with a2 = q1 + q2.
    a1, a2, w1, w2 = q1, q1 + q2, v1, v1 + v2
    c, s = np.cos(a1 - a2), np.sin(a1 - a2)
    M = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * c], [m2 * l1 * l2 * c, m2 * l2**2]])
    right = [
        -m2 * l1 * l2 * s * w2**2 - (m1 + m2) * G * l1 * np.sin(a1),
        m2 * l1 * l2 * s * w1**2 - m2 * G * l2 * np.sin(a2),
    ]
    first, second = np.linalg.solve(M, right)
    assert found == pytest.approx([first, second - first], rel=1e-10, abs=1e-10)


@given(x=rates, q=angles, u=rates, w=rates, force=rates)
def test_a_pendulum_on_a_cart(x: float, q: float, u: float, w: float, force: float) -> None:
    mass_of_cart, mass, length = 3.0, 0.5, 0.8
    world, cart = Body("world"), Body("cart", SpatialInertia(mass_of_cart))
    bob = Body("bob", SpatialInertia(mass, (0.0, 0.0, -length)))
    joints: list[Joint] = [
        PrismaticJoint("rail", world, cart, (1, 0, 0)),
        # Turned about -y, the bob swings to positive x.
        RevoluteJoint("pivot", cart, bob, (0, -1, 0)),
    ]
    found = falling(state_of([cart, bob], joints, [x, q], [u, w]), np.array([force, 0.0]))
    s, c = np.sin(q), np.cos(q)
    push = force + mass * s * (length * w**2 + G * c)
    acceleration = push / (mass_of_cart + mass * s**2)
    expected = [acceleration, -(acceleration * c + G * s) / length]
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_a_nut_screws_itself_down_its_spindle() -> None:
    mass, about_axis, advance = 0.3, 2e-5, 0.004 / (2.0 * np.pi)
    world, nut = Body("world"), Body("nut", SpatialInertia(mass, inertia=(1e-5, 1e-5, about_axis)))
    spindle = ScrewJoint("spindle", world, nut, (0, 0, 1), screw_pitch=0.004)
    found = falling(state_of([nut], [spindle], [2.0], [30.0]))
    expected = -mass * G * advance / (about_axis + mass * advance**2)
    assert found == pytest.approx([expected], rel=1e-12)


def test_the_elbow_of_a_stretched_arm_is_driven_alone() -> None:
    """A torque between two equal rods in line makes them turn at a known ratio."""
    mass, length = 2.0, 0.6
    rod = SpatialInertia.thin_rod(mass, length=length, axis="x").shifted([length / 2.0, 0.0, 0.0])
    world, upper, lower = Body("world"), Body("upper", rod), Body("lower", rod)
    elbow = Frame("elbow", upper, (np.eye(3), [length, 0.0, 0.0]))
    joints: list[Joint] = [
        RevoluteJoint("shoulder", world, upper, (0, 0, 1)),
        RevoluteJoint("elbow", elbow, lower, (0, 0, 1)),
    ]
    state = state_of([upper, lower], joints, [0.4, 0.0], [0.0, 0.0])
    unit = mass * length**2
    assert state.mass_matrix() == pytest.approx(
        unit * np.array([[8.0 / 3.0, 5.0 / 6.0], [5.0 / 6.0, 1.0 / 3.0]]), rel=1e-14
    )
    found = state.forward_dynamics(np.array([0.0, 1.0]))
    assert found == pytest.approx(np.array([-30.0, 96.0]) / 7.0 / unit, rel=1e-12)


# Free bodies and tops ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_free_body_tumbles_as_euler_says_while_its_center_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inertia = random_inertia(rng)
    world, stone = Body("world"), Body("stone", inertia)
    free = QuaternionFloatingJoint("free", world, stone)
    q, v = free.nearest_positions(random_pose(rng)), rng.normal(size=6)
    state = state_of([stone], [free], q, v)
    vdot = falling(state)
    placement, motion = state.placements[1], state.motions[1]
    R, w = placement.R_WB, motion.V_WB[:3]
    alpha = R.T @ vdot[:3]
    w_B = R.T @ w
    assert inertia.inertia @ alpha == pytest.approx(
        -np.cross(w_B, inertia.inertia @ w_B), abs=1e-13
    )
    c = R @ inertia.com
    center = vdot[3:] + np.cross(vdot[:3], c) + np.cross(w, np.cross(w, c))
    assert center == pytest.approx(DOWN, abs=1e-12)


@given(tilt=st.floats(0.2, 2.8), precession=st.floats(0.5, 3.0))
def test_a_heavy_top_precesses_steadily(tilt: float, precession: float) -> None:
    """Its axis is at a constant tilt θ when m g l = (C ω₃ - A Ω cos θ) Ω."""
    mass, lever, about_axis = 0.4, 0.1, 8e-4
    inertia = SpatialInertia(mass, (0.0, 0.0, lever), (5e-4, 5e-4, about_axis))
    about_tip = 5e-4 + mass * lever**2
    world, top = Body("world"), Body("top", inertia)
    tip = BallRpyJoint("tip", world, top)
    total_spin = (
        mass * G * lever / precession + about_tip * precession * np.cos(tilt)
    ) / about_axis
    axis, up = np.array([np.sin(tilt), 0.0, np.cos(tilt)]), np.array([0.0, 0.0, 1.0])
    spin = total_spin - precession * np.cos(tilt)
    state = state_of([top], [tip], [0.0, tilt, 0.0], precession * up + spin * axis)
    assert state.placements[1].R_WB[:, 2] == pytest.approx(axis, abs=1e-15)
    # The angular velocity is carried round with the axis.
    expected = precession * spin * np.cross(up, axis)
    assert falling(state) == pytest.approx(expected, rel=1e-10, abs=1e-10 * abs(spin))


@given(roll=angles, spin=rates, turn=rates)
def test_a_gyroscope_in_gimbals_resists_being_turned(roll: float, spin: float, turn: float) -> None:
    """The torque on the frame of a fast rotor is its angular momentum times the rate of turning."""
    about_axis = 0.02
    world, frame = Body("world"), Body("frame", SpatialInertia(0.0))
    rotor = Body("rotor", SpatialInertia(1.0, inertia=(0.01, 0.01, about_axis)))
    cradle = Body("cradle", SpatialInertia(0.0))
    joints: list[Joint] = [
        RevoluteJoint("base", world, cradle, (1, 0, 0)),
        RevoluteJoint("gimbal", cradle, frame, (0, 1, 0)),
        RevoluteJoint("bearing", frame, rotor, (0, 0, 1)),
    ]
    state = state_of([cradle, frame, rotor], joints, [0.0, 0.0, roll], [turn, 0.0, spin])
    found = state.inverse_dynamics(np.zeros(3))
    assert found == pytest.approx([0.0, -about_axis * spin * turn, 0.0], abs=1e-15)
