"""Stiffness in harmonic motion: its law against the element, and fits to measurements."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flexure.blocks.forces.inner_parts import FrictionBranch
from flexure.diagrams.errors import ValueRefusedError
from flexure.fitting import DynamicStiffness, fit_dynamic_stiffness

RUBBER = DynamicStiffness(1e5, branches=((3e4, 0.1), (6e4, 0.002)), friction=(20.0, 3e-4))
SWEEP = np.tile(np.geomspace(0.3, 300.0, 25), 3)
AMPLITUDES = np.repeat([5e-5, 3e-4, 2e-3], 25)


@pytest.mark.parametrize("amplitude", [0.003, 0.02, 0.3])
def test_the_stiffness_of_friction_is_that_of_its_cycle_by_small_steps(amplitude: float) -> None:
    x, slip, loads = amplitude * np.sin(np.linspace(0.0, 8.0 * np.pi, 16001)), 0.0, []
    for before, now in itertools.pairwise(x):
        middle = np.array([0.5 * (before + now)])
        branch = FrictionBranch((0,), 4.0, 0.02, np.array([slip]))
        slip += float(branch.flow(middle, np.array([now - before]))[0])
        loads.append(float(branch.load(middle)[0]))
    phase = np.linspace(6.0 * np.pi, 8.0 * np.pi, 4001)[:-1] + np.pi / 4000.0
    found = 2j * np.mean(np.array(loads[-4000:]) * np.exp(-1j * phase)) / amplitude
    expected = DynamicStiffness(0.0, friction=(4.0, 0.02)).at(1.0, amplitude)
    assert found == pytest.approx(complex(expected), rel=5e-3)


@pytest.mark.parametrize("amplitude", [1e-3, 0.02, 0.5])
def test_the_loss_of_friction_is_that_of_the_closed_form(amplitude: float) -> None:
    X, F, h = amplitude, 4.0, 0.02
    alpha = (np.sqrt(1.0 + 4.0 * X**2 / h**2) - 1.0) * h / (2.0 * X)
    lost = 2.0 * F * (2.0 * X - h * np.log((1.0 + alpha) / (1.0 - alpha)))
    found = DynamicStiffness(0.0, friction=(F, h)).at(1.0, X).imag
    assert found == pytest.approx(lost / (np.pi * X**2), rel=1e-5)


def test_a_fit_finds_what_was_measured_over_frequency_and_amplitude() -> None:
    rng = np.random.default_rng(0)
    noise = 1.0 + 1e-3 * (rng.normal(size=75) + 1j * rng.normal(size=75))
    measured = RUBBER.at(SWEEP, AMPLITUDES) * noise
    found, report = fit_dynamic_stiffness(SWEEP, measured, AMPLITUDES, friction=True)
    assert found.stiffness == pytest.approx(RUBBER.stiffness, rel=0.01)
    np.testing.assert_allclose(found.branches, RUBBER.branches, rtol=0.03)
    np.testing.assert_allclose(found.friction, RUBBER.friction, rtol=0.03)  # type: ignore[arg-type]
    assert report.rms == pytest.approx(1e-3, rel=0.2)


def test_a_fit_finds_a_damper_beside_a_spring() -> None:
    frequencies = np.geomspace(1.0, 100.0, 9)
    made = DynamicStiffness(50.0, 0.1)
    found, _ = fit_dynamic_stiffness(frequencies, made.at(frequencies), branches=0, damping=True)
    assert (found.stiffness, found.damping) == pytest.approx((50.0, 0.1))


def test_the_picture_has_a_line_for_each_amplitude(tmp_path: Path) -> None:
    measured = RUBBER.at(SWEEP, AMPLITUDES)
    upper, lower = RUBBER.plot(SWEEP, AMPLITUDES, measured=measured, path=tmp_path / "rubber.png")
    for panel, values in ((upper, np.abs(measured)), (lower, np.rad2deg(np.angle(measured)))):
        assert len(panel.lines) == 6
        np.testing.assert_allclose(np.asarray(panel.lines[0].get_ydata()), values[:25])
    assert (tmp_path / "rubber.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frequencies": [1.0, 0.0, 2.0]}, "frequencies"),
        ({"frequencies": [1.0, 1.0, 1.0]}, "frequencies that differ"),
        ({"stiffness": [1.0, 2.0]}, "3 complex numbers"),
        ({"stiffness": [1.0, -2.0, 1.0]}, "positive real part"),
        ({"friction": True}, "amplitudes, which friction needs"),
        ({"friction": True, "amplitudes": [1.0, 1.0, 1.0]}, "amplitudes that differ"),
        ({"amplitudes": [1.0, 1.0]}, "3, one for each frequency"),
        ({"branches": 3}, "more|constants"),
    ],
)
def test_measurements_that_say_nothing_are_refused(options: dict[str, Any], words: str) -> None:
    given = {"frequencies": [1.0, 2.0, 3.0], "stiffness": [1.0, 2.0 + 1j, 3.0], **options}
    with pytest.raises(ValueRefusedError, match=words):
        fit_dynamic_stiffness(**given)
