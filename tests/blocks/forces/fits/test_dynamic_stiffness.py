"""Stiffness in harmonic motion: its law against the element, and fits to measurements."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.blocks.forces.bushings.mount_branches import FrictionBranch
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.fitting import (
    DynamicStiffness,
    bushing_options,
    fit_dynamic_stiffness,
    fit_relaxation,
)
from tests.support.tiers import for_each, thinned

RUBBER = DynamicStiffness(1e5, branches=((3e4, 0.1), (6e4, 0.002)), friction=(20.0, 3e-4))
SWEEP = np.tile(np.geomspace(0.3, 300.0, 25), 3)
AMPLITUDES = np.repeat([5e-5, 3e-4, 2e-3], 25)


@pytest.mark.parametrize("amplitude", thinned([0.003, 0.02, 0.3], fast=1))
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


@pytest.mark.parametrize("amplitude", [0.003, 0.02, 0.3])
def test_the_stiffness_of_friction_with_memory_is_that_of_the_hyperbolas(amplitude: float) -> None:
    X, F, h = amplitude, 4.0, 0.02
    alpha = (np.sqrt(h**2 + X**2 + 6.0 * X * h) - h - X) / (2.0 * h)
    phase = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 20001)
    way = X * (1.0 + np.sin(phase))
    load = -alpha * F + (1.0 + alpha) * F * way / (h * (1.0 + alpha) + way)
    values = load * np.sin(phase), load * np.cos(phase)
    real, imaginary = (2.0 / np.pi * np.trapezoid(each, phase) / X for each in values)
    found = DynamicStiffness(0.0, friction=(F, h), has_memory=True).at(1.0, X)
    assert found == pytest.approx(complex(real, imaginary), rel=1e-6)


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


def test_a_fit_finds_friction_with_memory_and_knows_it_from_that_without() -> None:
    made = DynamicStiffness(1e5, branches=((3e4, 0.1),), friction=(20.0, 3e-4), has_memory=True)
    measured = made.at(SWEEP, AMPLITUDES)
    options: dict[str, Any] = {"branches": 1, "friction": True}
    found, report = fit_dynamic_stiffness(SWEEP, measured, AMPLITUDES, memory=True, **options)
    assert found.has_memory
    np.testing.assert_allclose(found.friction, (20.0, 3e-4), rtol=1e-5)  # type: ignore[arg-type]
    _, other = fit_dynamic_stiffness(SWEEP, measured, AMPLITUDES, **options)
    assert report.rms < 1e-6
    assert other.rms > 3e-3


def test_a_fit_finds_a_fractional_element() -> None:
    made = DynamicStiffness(2e5, fractional=(3e4, 0.35))
    frequencies = np.geomspace(0.5, 200.0, 12)
    found, _ = fit_dynamic_stiffness(frequencies, made.at(frequencies), branches=0, fractional=True)
    assert found.stiffness == pytest.approx(2e5, rel=1e-6)
    assert found.fractional == pytest.approx((3e4, 0.35), rel=1e-6)


@pytest.mark.parametrize("exponent", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("error", [0.05, 0.01, 0.001])
def test_branches_follow_the_power_of_frequency_in_the_band_with_the_error_that_is_stated(
    exponent: float, error: float
) -> None:
    law = DynamicStiffness(0.0, fractional=(7.0, exponent)).with_branches((0.1, 300.0), error=error)
    frequencies = np.geomspace(0.1, 300.0, 1003)
    exact = 7.0 * (2j * np.pi * frequencies) ** exponent
    assert np.max(np.abs(law.at(frequencies) / exact - 1.0)) <= 1.01 * error
    assert law.fractional is None
    assert len(law.branches) <= 16
    assert all(stiffness > 0.0 for stiffness, _ in law.branches)


def test_a_fractional_element_relaxes_like_its_branches_in_the_times_of_the_band() -> None:
    law = DynamicStiffness(3.0, fractional=(7.0, 0.4))
    times = np.geomspace(0.02, 2.0, 20)
    branches = law.with_branches((0.01, 100.0), error=0.002)
    np.testing.assert_allclose(branches.relaxation(times), law.relaxation(times), rtol=0.01)


def test_a_prony_series_is_relative_to_the_stiffness_at_last_or_at_once() -> None:
    moduli, times = [0.3, 0.2], [0.01, 1.0]
    last = DynamicStiffness.prony(100.0, moduli, times)
    once = DynamicStiffness.prony(100.0, moduli, times, instantaneous=True)
    t = np.array([1e-9, 0.01, 1e9])
    by_hand = 1.0 + 0.3 * np.exp(-t / 0.01) + 0.2 * np.exp(-t / 1.0)
    np.testing.assert_allclose(last.relaxation(t), 100.0 * by_hand)
    lost = 0.3 * -np.expm1(-t / 0.01) + 0.2 * -np.expm1(-t / 1.0)
    np.testing.assert_allclose(once.relaxation(t), 100.0 * (1.0 - lost))
    assert abs(once.at(1e9)) == pytest.approx(100.0)


def test_a_fit_to_a_relaxation_finds_the_series_despite_noise() -> None:
    made = DynamicStiffness.prony(100.0, [0.6, 0.4], [0.02, 3.0])
    times = np.geomspace(1e-3, 30.0, 60)
    noise = 1.0 + 1e-3 * np.random.default_rng(1).normal(size=60)
    found, report = fit_relaxation(times, made.relaxation(times) * noise)
    assert found.stiffness == pytest.approx(100.0, rel=0.01)
    np.testing.assert_allclose(
        found.branches, sorted(made.branches, key=lambda b: -b[1]), rtol=0.03
    )
    assert report.rms == pytest.approx(1e-3, rel=0.3)


def test_a_bushing_has_the_laws_that_it_is_made_of() -> None:
    """The other route: linearize the bushing on a slide, and compare the transfer function."""
    along = DynamicStiffness(3e4, 20.0, ((1e4, 0.01),))
    across = DynamicStiffness.prony(50.0, [0.5], [0.1])
    builder = fx.PlantBuilder("rig")
    block = builder.add_body("block", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    rail = builder.add_joint(fx.PrismaticJoint("rail", builder.world, block, axis=(0, 0, 1)))
    builder.add_actuator("push", rail)
    options = bushing_options({"z": along, "rx": across})
    builder.add_force_element(fx.GeneralBushing("mount", builder.world, block, **options))
    model = fx.linearize(builder.build(), inputs=["push"], outputs=["rail.translation"])
    for hertz in (0.5, 7.0, 90.0):
        s = 2j * np.pi * hertz
        n = len(model.A)
        answer = (model.C @ np.linalg.solve(s * np.eye(n) - model.A, model.B) + model.D)[0, 0]
        assert 1.0 / answer == pytest.approx(complex(along.at(hertz)) + 2.0 * s**2, rel=1e-8)


def test_a_fit_finds_a_damper_beside_a_spring() -> None:
    frequencies = np.geomspace(1.0, 100.0, 9)
    made = DynamicStiffness(50.0, 0.1)
    found, _ = fit_dynamic_stiffness(frequencies, made.at(frequencies), branches=0, damping=True)
    assert (found.stiffness, found.damping) == pytest.approx((50.0, 0.1))


@pytest.mark.full
def test_the_picture_has_a_line_for_each_amplitude(tmp_path: Path) -> None:
    measured = RUBBER.at(SWEEP, AMPLITUDES)
    figure = RUBBER.plot(SWEEP, AMPLITUDES, measured=measured, path=tmp_path / "rubber.png")
    upper, lower = figure.axes
    for panel, values in ((upper, np.abs(measured)), (lower, np.rad2deg(np.angle(measured)))):
        assert len(panel.lines) == 6
        np.testing.assert_allclose(np.asarray(panel.lines[0].get_ydata()), values[:25])
    assert (tmp_path / "rubber.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frequency": [1.0, 0.0, 2.0]}, "frequency"),
        ({"frequency": [1.0, 1.0, 1.0]}, "frequencies that differ"),
        ({"stiffness": [1.0, 2.0]}, "3 complex numbers"),
        ({"stiffness": [1.0, -2.0, 1.0]}, "positive real part"),
        ({"friction": True}, "amplitudes, which friction needs"),
        ({"memory": True}, "friction, which has the memory"),
        ({"friction": True, "amplitude": [1.0, 1.0, 1.0]}, "amplitudes that differ"),
        ({"amplitude": [1.0, 1.0]}, "3, one for each frequency"),
        ({"branches": 3}, "more|constants"),
    ],
)
def test_measurements_that_say_nothing_are_refused(options: dict[str, Any], words: str) -> None:
    given = {"frequency": [1.0, 2.0, 3.0], "stiffness": [1.0, 2.0 + 1j, 3.0], **options}
    with pytest.raises(ValueRefusedError, match=words):
        fit_dynamic_stiffness(**given)


LAW = DynamicStiffness(1.0, fractional=(1.0, 0.5))


@for_each(
    ("refused", "words"),
    [
        (lambda: LAW.with_branches((1.0, 1.0)), "frequencies that increase"),
        (lambda: LAW.with_branches((1.0, 2.0), error=0.0), r"error.*\[0\.0001, 0\.5\]"),
        (lambda: DynamicStiffness.prony(1.0, [0.6, 0.6], [1, 2], instantaneous=True), "at most 1"),
        (lambda: DynamicStiffness.prony(1.0, [0.6], [1.0, 2.0]), "a time for each modulus"),
        (lambda: RUBBER.relaxation(1.0), "a law without friction"),
        (lambda: bushing_options({"z": LAW}), "without a fractional element, as with_branches"),
        (
            lambda: fit_relaxation([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0, -1.0, 1.0, 1.0]),
            "stiffness",
        ),
    ],
)
def test_laws_that_mean_nothing_are_refused(refused: Any, words: str) -> None:
    with pytest.raises(ValueRefusedError, match=words):
        refused()
