"""Phase portraits, energies and spectra of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ValueRefusedError
from flexure.solvers.results.pictures.energy_plots import _account, _ledger
from tests.support.systems.blocks import diagram_of

FREQUENCY, AMPLITUDE = 8.0, 0.3


def pendulum(ledger: bool = True, damping: float = 0.4) -> fx.Diagram:
    builder = fx.PlantBuilder("pendulum", gravity=(0.0, 0.0, -9.81))
    bob = builder.add_body("bob", fx.SpatialInertia.point_mass(2.0), com=(0.0, 0.0, -1.0))
    builder.add_joint(fx.RevoluteJoint("axis", builder.world, bob, (0, 1, 0), damping=damping))
    builder.add_actuator("motor", builder.joints[-1])
    if ledger:
        builder.add_energy_ledger()
    return builder.build()


def swing(torque: float = 0.0) -> fx.results.SimulationResult:
    system = pendulum()
    context = system.create_default_context()
    context.set("axis.angle", 2.0)
    context.set("motor", torque)
    return fx.simulate(system, 3.0, context=context, rtol=1e-8)


@pytest.fixture(scope="module")
def run() -> fx.results.SimulationResult:
    return swing()


def test_a_phase_portrait_has_one_signal_over_another(
    run: fx.results.SimulationResult, tmp_path: Path
) -> None:
    path = tmp_path / "phase.png"
    ax = run.plot_phase("axis.angle", "axis.rate", units={"rad": "deg", "rad/s": "rpm"}, path=path)
    assert path.stat().st_size > 1000
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("axis.angle [deg]", "axis.rate [rpm]")
    line, first, last = ax.lines
    x, y = (np.ravel(part) for part in line.get_data())
    assert x[0] == pytest.approx(np.rad2deg(2.0))
    assert y[-1] == pytest.approx(run["axis.rate"][-1] * 30.0 / np.pi)
    assert [tuple(np.ravel(dot.get_xydata())) for dot in (first, last)] == [
        (x[0], y[0]),
        (x[-1], y[-1]),
    ]
    swing(1.0).plot_phase("axis.angle", "axis.rate", ax=ax)
    assert len({each.get_color() for each in ax.lines}) == 2
    with pytest.raises(ValueRefusedError, match=r"Name one, as in 'tree.x\[0\]'"):
        run.plot_phase("tree.x", "axis.rate")


@pytest.mark.parametrize("torque", [0.0, -3.0])
def test_stacked_energies_add_up_to_what_was_supplied(torque: float) -> None:
    """The kinetic energy is m l² ω²/2, and the potential one m g l (1 - cos q) from its lowest."""
    result = swing(torque)
    account = _account(result, _ledger(result, None, ""), "")
    angle, rate = result.sample_all(["axis.angle", "axis.rate"], account.time)
    assert account.parts["kinetic"] == pytest.approx(rate**2)
    height = -2.0 * 9.81 * np.cos(angle)
    assert account.parts["gravity"] == pytest.approx(height - height.min(), abs=1e-9)
    lost = 0.4 * np.concatenate(
        [[0.0], np.cumsum(0.5 * (rate[1:] ** 2 + rate[:-1] ** 2) * np.diff(account.time))]
    )
    assert account.parts["lost in damping"] == pytest.approx(lost, abs=1e-3)
    given = torque * (angle - angle[0])
    assert np.max(given) > 0.0 or not torque
    total = np.sum([*account.parts.values()], axis=0)
    assert np.min([*account.parts.values()]) >= 0.0
    assert account.supplied - account.supplied[0] == pytest.approx(given, abs=1e-4)
    assert total - account.supplied == pytest.approx(account.residual, abs=1e-9)
    assert np.max(np.abs(account.residual)) < 1e-4


def test_the_ledger_is_drawn_with_its_residual(
    run: fx.results.SimulationResult, tmp_path: Path
) -> None:
    path = tmp_path / "energy.png"
    figure = run.plot_energy(units={"J": "mJ"}, path=path)
    upper, lower = figure.axes
    assert path.stat().st_size > 1000
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("energy [mJ]", "residual [mJ]")
    names = [text.get_text() for text in upper.get_legend().get_texts()]  # type: ignore[union-attr]
    last = "at first, and supplied since"
    assert names == ["kinetic", "gravity", "lost in damping", last]
    residual = np.ravel(lower.lines[0].get_ydata())
    balance = run.sample("ledger.balance", run.fine_time())
    assert residual == pytest.approx(1e3 * (balance - balance[0]))
    _, axes = plt.subplots(2, 1)
    run.plot_energy("ledger", ax=axes, title="swing")
    assert axes[0].get_title() == "swing"


def test_ledgers_are_found_by_path_or_asked_for() -> None:
    two = fx.DiagramBuilder("two")
    two.add_all(pendulum(), rename(pendulum()))
    both = fx.simulate(two.build(), 0.1)
    assert both.plot_energy("other").axes
    assert both.plot_energy("other.pendulum.ledger").axes
    with pytest.raises(ValueRefusedError, match=r"found none, where there are 'pendulum.ledger'"):
        both.plot_energy()
    without = fx.simulate(pendulum(ledger=False), 0.1)
    with pytest.raises(ValueRefusedError, match="Call add_energy_ledger"):
        without.plot_energy()


def rename(plant: fx.Diagram) -> fx.Diagram:
    builder = fx.DiagramBuilder("other")
    builder.add(plant)
    return builder.build()


# Spectra -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sine() -> fx.results.SimulationResult:
    """A sine of 8 Hz for a whole number of its periods, beside a constant of 5."""
    system = diagram_of(
        fx.Sine("sine", amplitude=AMPLITUDE, frequency=2.0 * np.pi * FREQUENCY, offset=5.0)
    )
    return fx.simulate(system, 4.0)


@pytest.mark.parametrize("window", ["hann", "boxcar", "flattop"])
def test_the_amplitude_of_a_sine_is_at_its_frequency(
    sine: fx.results.SimulationResult, window: str
) -> None:
    found = sine.spectrum("sine.y", window=window)
    assert found.peak == pytest.approx(FREQUENCY)
    assert found.values.max() == pytest.approx(AMPLITUDE, rel=1e-6)
    assert found.values[0] < 1e-3
    assert len(found.frequency) == len(found.values) == 2049


def test_what_alternates_from_sample_to_sample_is_at_half_of_the_rate() -> None:
    flip = fx.StateSpace("flip", [[-1.0]], np.zeros((1, 0)), [[1.0]], initial=[3.0], period=0.125)
    found = fx.simulate(flip, 2.0).spectrum("y", window="boxcar", num_samples=16)
    np.testing.assert_allclose(found.values, [*np.zeros(8), 3.0], atol=1e-12)
    assert found.peak == 4.0


def test_the_integral_of_the_density_is_the_variance(sine: fx.results.SimulationResult) -> None:
    found = sine.spectrum("sine.y", kind="psd", num_samples=8192)
    area = np.sum(found.values) * (found.frequency[1] - found.frequency[0])
    assert area == pytest.approx(0.5 * AMPLITUDE**2, rel=0.01)
    assert found.peak == pytest.approx(FREQUENCY, abs=found.frequency[1])


@pytest.mark.full
def test_spectra_have_units_and_pictures(run: fx.results.SimulationResult, tmp_path: Path) -> None:
    spectrum = run.spectrum("axis.angle", start=0.5)
    density = run.spectrum("axis.angle", kind="psd")
    assert (spectrum.unit, density.unit) == ("rad", "rad^2/Hz")
    ax = spectrum.plot(path=tmp_path / "spectrum.png")
    assert ax.get_ylabel() == "amplitude of axis.angle [rad]"
    assert ax.get_xlabel() == "frequency [Hz], hann window"
    assert (tmp_path / "spectrum.png").stat().st_size > 1000
    assert f"{spectrum.peak:.4g} Hz" in ax.texts[0].get_text()
    assert density.plot().get_ylabel() == "density of axis.angle [rad^2/Hz]"
    still = run.spectrum("ledger.works[input]")
    assert still.plot().get_yscale() == "linear"  # of zeros


@pytest.mark.parametrize(
    ("signal", "options", "text"),
    [
        ("axis.angle", {"kind": "power"}, "kind to be one of 'amplitude'"),
        ("axis.angle", {"window": "kaiser"}, "window to be one of 'hann'"),
        ("axis.angle", {"start": 3.0}, r"start before the end of the run, in \[0, 3\) s"),
        ("tree.x", {}, r"Name one, as in 'tree.x\[0\]'"),
    ],
)
def test_spectra_that_cannot_be_made_are_refused(
    run: fx.results.SimulationResult, signal: str, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueRefusedError, match=text):
        run.spectrum(signal, **options)
    with pytest.raises(ValueRefusedError, match="a run that takes time"):
        fx.simulate(pendulum(), 0.0).spectrum("axis.angle")
