"""Bushing constants for the joints they stand in for: free axes, stiff axes, and their damping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import flexure as fx
from flexure import compliance
from tests.support.tiers import for_each

BushingConstants = fx.BushingConstants
positive = st.floats(1e-3, 1e6)
triples = st.tuples(positive, positive, positive)

#: Which of (k0, k1, k2) and (kx, ky, kz) are stiff.
PATTERNS = {
    "revolute x": (BushingConstants.revolute("x", 5.0, 7.0), [0, 5, 5], [7, 7, 7]),
    "revolute y": (BushingConstants.revolute("y", 5.0, 7.0), [5, 0, 5], [7, 7, 7]),
    "revolute z": (BushingConstants.revolute("z", 5.0, 7.0), [5, 5, 0], [7, 7, 7]),
    "prismatic x": (BushingConstants.prismatic("x", 5.0, 7.0), [5, 5, 5], [0, 7, 7]),
    "prismatic y": (BushingConstants.prismatic("y", 5.0, 7.0), [5, 5, 5], [7, 0, 7]),
    "prismatic z": (BushingConstants.prismatic("z", 5.0, 7.0), [5, 5, 5], [7, 7, 0]),
    "ball": (BushingConstants.ball(7.0), [0, 0, 0], [7, 7, 7]),
    "weld": (BushingConstants.weld(5.0, 7.0), [5, 5, 5], [7, 7, 7]),
}

every_joint = pytest.mark.parametrize("joint", PATTERNS)


@every_joint
def test_stiff_and_free_axes_are_those_of_the_joint(joint: str) -> None:
    mount, torque_stiffness, force_stiffness = PATTERNS[joint]
    assert list(mount.torque_stiffness) == torque_stiffness
    assert list(mount.force_stiffness) == force_stiffness
    assert mount.torque_damping == mount.force_damping == (0.0, 0.0, 0.0)


@every_joint
def test_damping_is_on_the_stiff_axes_only(joint: str) -> None:
    mount, torque_stiffness, force_stiffness = PATTERNS[joint]
    for damped in (mount.with_time_constant(0.1), mount.with_damping_ratio(1, inertia=1, mass=1)):
        assert np.array_equal(np.array(damped.torque_damping) > 0.0, np.array(torque_stiffness) > 0)
        assert np.array_equal(np.array(damped.force_damping) > 0.0, np.array(force_stiffness) > 0)
        assert (damped.torque_stiffness, damped.force_stiffness) == (
            mount.torque_stiffness,
            mount.force_stiffness,
        )


def test_stiffness_may_differ_from_axis_to_axis() -> None:
    hinge = BushingConstants.revolute(
        "z", torque_stiffness=[10.0, 20.0, 30.0], force_stiffness=[1.0, 2.0, 3.0]
    )
    assert hinge.torque_stiffness == (10.0, 20.0, 0.0)
    slider = BushingConstants.prismatic(
        "y", torque_stiffness=[10.0, 20.0, 30.0], force_stiffness=[1.0, 2.0, 3.0]
    )
    assert slider.force_stiffness == (1.0, 0.0, 3.0)


def test_free_axes_may_have_damping_of_their_own_and_keep_it() -> None:
    hinge = BushingConstants.revolute("y", 5.0, 7.0, free_damping=0.2)
    assert hinge.torque_damping == (0.0, 0.2, 0.0)
    assert hinge.with_time_constant(0.1).torque_damping == (0.5, 0.2, 0.5)
    slider = BushingConstants.prismatic("x", 5.0, 7.0, free_damping=0.3)
    assert slider.with_damping_ratio(0.0, inertia=1.0, mass=1.0).force_damping == (0.3, 0.0, 0.0)
    socket = BushingConstants.ball(7.0, free_damping=[0.1, 0.2, 0.3])
    assert socket.with_time_constant(1.0).torque_damping == (0.1, 0.2, 0.3)


@given(st.floats(0.01, 3.0), triples, triples, triples, positive)
def test_every_axis_has_the_damping_ratio_asked_for(
    zeta: float,
    torque_stiffness: tuple[float, float, float],
    force_stiffness: tuple[float, float, float],
    inertia: tuple[float, float, float],
    mass: float,
) -> None:
    mount = BushingConstants.weld(torque_stiffness, force_stiffness).with_damping_ratio(
        zeta, inertia=inertia, mass=mass
    )
    np.testing.assert_allclose(
        compliance.damping_ratio(mount.torque_damping, torque_stiffness, inertia), zeta, rtol=1e-13
    )
    np.testing.assert_allclose(
        compliance.damping_ratio(mount.force_damping, force_stiffness, mass), zeta, rtol=1e-13
    )


@given(st.floats(0.01, 3.0), positive, positive)
def test_a_time_constant_is_a_damping_ratio_at_a_frequency(
    zeta: float, inertia: float, stiffness: float
) -> None:
    omega = compliance.natural_frequency(stiffness, inertia)
    mount = BushingConstants.weld(stiffness, 0.0)
    by_ratio = mount.with_damping_ratio(zeta, inertia=inertia, mass=1.0)
    by_time = mount.with_time_constant(2.0 * zeta / omega)
    np.testing.assert_allclose(by_time.torque_damping, by_ratio.torque_damping, rtol=1e-13)


def test_a_spring_and_damper_creep_back_within_the_time_constant() -> None:
    mount = BushingConstants.ball(400.0).with_time_constant(0.02)
    rate = -mount.force_stiffness[0] / mount.force_damping[0]  # of d ẋ + k x = 0
    assert np.exp(rate * 0.02) == pytest.approx(np.exp(-1.0))


def test_constants_compare_hash_and_travel_as_dictionaries() -> None:
    mount = BushingConstants.weld([1.0, 2.0, 3.0], 4.0)
    twin = BushingConstants(**asdict(mount))
    assert twin == mount
    assert len({twin, mount, replace(mount, torque_damping=(1.0, 1.0, 1.0))}) == 2


def test_constants_cannot_be_changed() -> None:
    mount = BushingConstants.ball(4.0)
    with pytest.raises(FrozenInstanceError):
        mount.force_stiffness = (0.0, 0.0, 0.0)  # type: ignore[misc]


def test_what_was_passed_is_copied() -> None:
    stiffness = np.array([1.0, 2.0, 3.0])
    mount = BushingConstants.ball(stiffness)
    stiffness[:] = 0.0
    assert mount.force_stiffness == (1.0, 2.0, 3.0)


@for_each(
    ("call", "text"),
    [
        (
            lambda: BushingConstants(torque_stiffness=[1.0, -2.0, 3.0]),
            r"torque_stiffness\[1\].*found -2",
        ),
        (
            lambda: BushingConstants(torque_damping=[1.0, 2.0, np.nan]),
            r"torque_damping\[2\].*found nan",
        ),
        (
            lambda: BushingConstants(force_stiffness=[np.inf, 0.0, 0.0]),
            r"force_stiffness\[0\].*found inf",
        ),
        (lambda: BushingConstants(force_damping=-1e-9), r"force_damping\[0\]"),
        (
            lambda: BushingConstants(force_stiffness=[1.0, 2.0]),
            r"force_stiffness: expected one number, or three",
        ),
        (
            lambda: BushingConstants(force_stiffness="stiff"),
            r"force_stiffness: expected real numbers",
        ),
        (lambda: BushingConstants.revolute("w", 1.0, 1.0), r"axes 'x', 'y', 'z'; found 'w'"),  # type: ignore[arg-type]
        (lambda: BushingConstants.revolute("z", 1.0, -1.0), r"force_stiffness\[0\]"),
        (
            lambda: BushingConstants.revolute("z", 1.0, 1.0, free_damping=-1.0),
            r"torque_damping\[2\]",
        ),
        (lambda: BushingConstants.revolute("z", [1.0, 1.0, np.nan], 1.0), r"torque_stiffness\[2\]"),
        (
            lambda: BushingConstants.prismatic("y", 1.0, 1.0, free_damping=np.nan),
            r"force_damping\[1\]",
        ),
        (lambda: BushingConstants.ball([1.0, 1.0, -1.0]), r"force_stiffness\[2\]"),
        (lambda: BushingConstants.weld(-1.0, 1.0), r"torque_stiffness\[0\]"),
    ],
)
def test_impossible_constants_are_refused_by_entry(
    call: Callable[[], BushingConstants], text: str
) -> None:
    with pytest.raises(fx.errors.DeclarationError, match=text):
        call()


@for_each(
    ("call", "name"),
    [
        (lambda mount: mount.with_damping_ratio(-1.0, inertia=1.0, mass=1.0), "damping_ratio"),
        (lambda mount: mount.with_damping_ratio(1.0, inertia=0.0, mass=1.0), "inertia"),
        (lambda mount: mount.with_time_constant(-1.0), "time_constant"),
        (lambda mount: mount.with_time_constant(np.inf), "time_constant"),
    ],
)
def test_impossible_damping_rules_are_refused(
    call: Callable[[BushingConstants], BushingConstants], name: str
) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=name):
        call(BushingConstants.weld(1.0, 1.0))
