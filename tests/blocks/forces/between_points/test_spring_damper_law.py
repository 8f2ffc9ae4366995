"""The law of a spring and damper between two points, beyond what all laws have in common."""

from __future__ import annotations

import numpy as np
import pytest

import flexure as fx

LAW = fx.laws.SpringDamperLaw(free_length=0.8, stiffness=50.0, damping=3.0)


@pytest.mark.parametrize(
    ("length", "rate", "tension"),
    [
        (0.8, 0.0, 0.0),
        (1.0, 0.0, 50.0 * 0.2),
        (0.5, 0.0, -50.0 * 0.3),
        (0.8, 2.0, 3.0 * 2.0),
        (0.8, -2.0, -3.0 * 2.0),
        (1.0, -2.0, 50.0 * 0.2 - 3.0 * 2.0),
    ],
)
def test_tension_opposes_elongation_and_its_rate(
    length: float, rate: float, tension: float
) -> None:
    assert LAW.tension(length, rate) == pytest.approx(tension, rel=1e-14)
    assert LAW.force(length, rate) == -LAW.tension(length, rate)


def test_the_energy_is_that_of_the_elongation() -> None:
    lengths = np.array([0.5, 0.8, 1.0])
    np.testing.assert_allclose(LAW.elongation(lengths), [-0.3, 0.0, 0.2], rtol=1e-15)
    np.testing.assert_allclose(LAW.stored_energy(lengths), [2.25, 0.0, 1.0], rtol=1e-14)


def test_the_damper_takes_energy_in_both_directions_at_any_length() -> None:
    for length in (0.3, 0.8, 2.0):
        assert LAW.non_conservative_power(length, 2.0) == LAW.damper_power(-2.0) == -12.0
