"""Bode, Nyquist and Nichols plots, and singular values: numbers in the lines, room for texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from tests.support.systems.linear_models import free_model, transfer_model
from tests.support.tiers import thinned

FREQUENCY = np.geomspace(0.1, 10.0, 41)
#: A loop gain 3/(s + 1)³: |L| = 1 at √(9^(1/3) - 1), phase -180° at √3, where L = -3/8.
LAGS = ([3.0], [1.0, 3.0, 3.0, 1.0])
GRID = ("#bbbbbb", "#cccccc", "#777777")  # colors of lines that texts may interrupt
PICTURES: list[Callable[..., Any]] = [fx.bode, fx.nyquist, fx.nichols, fx.singular_values]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def data(line: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


# Numbers in the lines ---------------------------------------------------------------------------


def test_a_bode_plot_has_magnitude_and_phase_of_the_closed_form() -> None:
    upper, lower = fx.bode(transfer_model(*LAGS), FREQUENCY).axes
    x, decibels = data(upper.lines[0])
    _, degrees = data(lower.lines[0])
    np.testing.assert_allclose(x, FREQUENCY, rtol=1e-15)
    np.testing.assert_allclose(decibels, 20.0 * np.log10(3.0) - 30.0 * np.log10(1.0 + x**2))
    np.testing.assert_allclose(degrees, -3.0 * np.rad2deg(np.arctan(x)), rtol=1e-9)
    assert (upper.get_xscale(), upper.get_yscale()) == ("log", "linear")
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("magnitude [dB]", "phase [°]")
    assert lower.get_xlabel() == "frequency [rad/s]"


def test_frequencies_in_hertz_and_magnitudes_as_they_are() -> None:
    upper, lower = fx.bode(transfer_model(*LAGS), [0.5, 1.0], units="Hz", magnitude="absolute").axes
    hertz, size = data(upper.lines[0])
    np.testing.assert_allclose(hertz, [0.5, 1.0])
    np.testing.assert_allclose(size, 3.0 * (1.0 + (2.0 * np.pi * hertz) ** 2) ** -1.5)
    assert upper.get_yscale() == "log"
    assert lower.get_xlabel() == "frequency [Hz]"


@pytest.mark.parametrize(
    ("numerator", "denominator", "first", "last"),
    [
        ([1.0], [1.0, 0.0], -90.0, -90.0),
        ([1.0], [1.0, 0.0, 0.0], -180.0, -180.0),
        ([1.0], [1.0, 0.0, 0.0, 0.0], -270.0, -270.0),
        ([1.0], [1.0, 3.0, 3.0, 1.0], 0.0, -270.0),
        ([1.0], [1.0, -1.0], -180.0, -90.0),
        ([1.0, -1.0], [1.0, 3.0, 2.0], 180.0, -90.0),
        ([-1.0], [1.0, 1.0], 180.0, 90.0),
        ([1.0], [1.0, 1e-8, 1.0], 0.0, -180.0),
        ([1.0], [1.0, 0.0, 1.0], 0.0, -180.0),
        ([1.0, 0.0, 1.0], [1.0, 3.0, 3.0, 1.0], 0.0, -90.0),
        (np.poly([-2.0, -2.0]), [1.0, 0.0, 100.0, 0.0, 0.0], -180.0, -180.0),
    ],
)
def test_the_phase_is_continuous_and_begins_where_integrators_say(
    numerator: list[float], denominator: list[float], first: float, last: float
) -> None:
    omega = np.geomspace(1e-4, 1e5, 200)
    _, lower = fx.bode(transfer_model(numerator, denominator), omega, margins=False).axes
    _, degrees = data(lower.lines[0])
    np.testing.assert_allclose(degrees[[0, -1]], [first, last], atol=0.2)


def test_sharp_resonances_are_followed_to_their_peak() -> None:
    zeta = 1e-5
    upper, lower = fx.bode(transfer_model([1.0], [1.0, 2.0 * zeta, 1.0]), margins=False).axes
    _, decibels = data(upper.lines[0])
    assert decibels.max() == pytest.approx(20.0 * np.log10(0.5 / zeta), abs=1e-4)
    _, degrees = data(lower.lines[0])
    assert np.max(np.abs(np.diff(degrees))) < 30.0


def test_frequencies_reach_beyond_poles_and_zeros_and_to_the_crossing() -> None:
    x, _ = data(
        fx.bode(transfer_model([1.0, 0.02], [1.0, 50.0, 0.0]), margins=False).axes[0].lines[0]
    )
    assert x[0] <= 0.01
    assert x[-1] >= 100.0
    x, decibels = data(fx.bode(transfer_model([4e5], [1.0, 0.0]), margins=False).axes[0].lines[0])
    assert decibels[0] > 0.0 > decibels[-1]
    x, decibels = data(
        fx.bode(transfer_model([1e6], [1.0, 2.0, 1.0]), margins=False).axes[0].lines[0]
    )
    assert decibels[0] > 0.0 > decibels[-1]


@pytest.mark.full
def test_a_static_gain_is_drawn_as_a_level() -> None:
    upper, lower = fx.bode(free_model(fx.Gain("gain", -5.0))).axes
    np.testing.assert_allclose(data(upper.lines[0])[1], 20.0 * np.log10(5.0))
    np.testing.assert_allclose(data(lower.lines[0])[1], 180.0)
    for draw in (fx.nyquist, fx.nichols):
        assert draw(free_model(fx.Gain("gain", -5.0))).lines[0].get_marker() == "o"
    for draw in PICTURES:
        draw(free_model(fx.Gain("gain", 0.0)))  # its logarithm is left out


@pytest.mark.parametrize("fast", [1e3, 1e6, 1e9])
def test_a_slow_pole_is_no_integrator_however_fast_another_one_is(fast: float) -> None:
    upper, lower = fx.bode(transfer_model([fast], [1e4, 1e4 * fast + 1.0, fast])).axes
    w, decibels = data(upper.lines[0])
    assert w[0] <= 1e-4 / 5.0
    np.testing.assert_allclose(decibels[0], 0.0, atol=0.2)
    exact = -np.degrees(np.arctan(1e4 * w) + np.arctan(w / fast))
    np.testing.assert_allclose(data(lower.lines[0])[1], exact, atol=1e-3)


def test_what_is_level_is_drawn_as_a_level_and_rounding_is_not_shown() -> None:
    upper, lower = fx.bode(transfer_model([-1.0, 1.0], [1.0, 1.0])).axes
    assert np.ptp(upper.get_ylim()) >= 1.0
    _, lower = fx.bode(
        transfer_model([1.0], [1.0, 0.0, 1.0])
    ).axes  # closed, s² + 2: at the boundary
    assert texts(lower) == ["phase margin 0° at 1.41 rad/s"]


def test_a_sampled_model_ends_at_half_of_its_sampling_rate() -> None:
    upper, lower = fx.bode(transfer_model([0.5], [1.0, -1.0], 0.1), units="Hz").axes
    hertz, decibels = data(upper.lines[0])
    z = np.exp(2j * np.pi * hertz * 0.1)
    np.testing.assert_allclose(decibels, 20.0 * np.log10(np.abs(0.5 / (z - 1.0))), atol=1e-9)
    assert hertz[-1] == pytest.approx(5.0, rel=1e-12)
    _, degrees = data(lower.lines[0])
    np.testing.assert_allclose(degrees, -90.0 - 180.0 * hertz * 0.1, atol=1e-6)
    assert texts(upper) == ["gain margin 12 dB at 5 Hz"]


def test_labels_of_less_than_three_decades_are_plain_numbers_that_do_not_overlap() -> None:
    _, lower = fx.bode(transfer_model([1.0], [1.0, 1.0, 0.0]), np.geomspace(0.1, 6.3, 50)).axes
    lower.figure.figure.draw_without_rendering()
    shown = [text for text in lower.get_xticklabels(which="both") if text.get_text()]
    texts = [text.get_text() for text in shown if 0.1 <= float(text.get_text()) <= 6.3]
    assert texts == ["0.1", "0.2", "0.5", "1", "2", "5"]
    boxes = [text.get_window_extent() for text in shown]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_singular_values_are_the_gains_in_all_directions() -> None:
    A, B = np.diag([-1.0, -2.0]), np.array([[1.0, 0.5], [0.0, 2.0]])
    C, D = np.array([[1.0, 1.0], [0.0, 1.0]]), np.zeros((2, 2))
    model = free_model(fx.StateSpace("block", A, B, C, D))
    ax = fx.singular_values(model, FREQUENCY, magnitude="absolute")
    for k, w in enumerate(FREQUENCY):
        G = C @ np.diag(1.0 / (1j * w - np.diag(A))) @ B
        found = [data(line)[1][k] for line in ax.lines]
        np.testing.assert_allclose(np.square(found), np.linalg.eigvalsh(G.conj().T @ G)[::-1])


def test_a_bode_plot_of_several_channels_is_a_grid_of_them() -> None:
    A, B, C = np.diag([-1.0, -2.0]), np.array([[1.0, 0.0], [0.5, 2.0]]), np.eye(2)
    model = free_model(fx.StateSpace("block", A, B, C, np.zeros((2, 2))))
    figure = fx.bode({"one": model, "half": replace(model, B=0.5 * model.B)}, FREQUENCY)
    axes = np.reshape(np.array(figure.axes, dtype=object), (4, 2))
    w = FREQUENCY[3]
    for i, j in ((0, 0), (1, 0), (1, 1)):
        upper, lower = axes[2 * i, j], axes[2 * i + 1, j]
        exact = (C @ np.linalg.solve(1j * w * np.eye(2) - A, B))[i, j]
        assert upper.get_title() == f"{model.output_names[i]} / {model.input_names[j]}"
        sizes = [data(line)[1][3] for line in upper.lines]
        np.testing.assert_allclose(sizes, 20.0 * np.log10(np.abs(exact) / np.array([1.0, 2.0])))
        np.testing.assert_allclose(data(lower.lines[1])[1][3], np.rad2deg(np.angle(exact)))
    assert texts(axes[0, 1]) == ["no response"]  # nothing goes from the second to the first
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "half"]
    _, ax = plt.subplots(2)
    fx.bode(model, FREQUENCY, ax=ax)  # axes of one's own take all channels
    assert len(ax[0].lines) == 4


def test_the_critical_points_of_a_nichols_plot_are_not_at_its_edge() -> None:
    for count in (3, 4, 5, 6, 7):
        ax = fx.nichols(transfer_model([3.0], np.poly(-np.ones(count)).tolist()))
        (points,) = (line for line in ax.lines if line.get_marker() == "+")
        edges = np.subtract.outer(data(points)[0], ax.get_xlim())
        assert np.min(np.abs(edges)) >= 15.0


# Margins ----------------------------------------------------------------------------------------


def test_margins_are_marked_where_the_closed_form_has_them() -> None:
    upper, lower = fx.bode(transfer_model(*LAGS)).axes
    crossing = np.sqrt(9.0 ** (1.0 / 3.0) - 1.0)
    angle = 180.0 - 3.0 * np.rad2deg(np.arctan(crossing))
    assert texts(upper) == [f"gain margin {20.0 * np.log10(8.0 / 3.0):.3g} dB at 1.73 rad/s"]
    assert texts(lower) == [f"phase margin {angle:.3g}° at {crossing:.3g} rad/s"]
    stems = [data(line) for line in upper.lines if len(data(line)[0]) == 2]
    assert any(np.allclose(x, np.sqrt(3.0)) and np.allclose(y, [20.0 * np.log10(0.375), 0.0])
               for x, y in stems)  # fmt: skip


@pytest.mark.full
def test_margins_agree_with_python_control() -> None:
    control = pytest.importorskip("control")
    for numerator, denominator in (LAGS, ([2.0, 1.0], [1.0, 0.2, 9.0, 0.0])):
        gain, phase, at_gain, at_phase = control.margin(control.tf(numerator, denominator))
        upper, lower = fx.bode(transfer_model(numerator, denominator)).axes
        assert texts(upper) == [
            f"gain margin {20.0 * np.log10(gain):.3g} dB at {at_gain:.3g} rad/s"
        ]
        assert texts(lower) == [f"phase margin {phase:.3g}° at {at_phase:.3g} rad/s"]


def test_margins_can_be_left_out() -> None:
    for ax in fx.bode(transfer_model(*LAGS), margins=False).axes:
        assert texts(ax) == []
    assert texts(fx.nyquist(transfer_model(*LAGS), margins=False)) == ["-1"]


# In the plane -----------------------------------------------------------------------------------


def test_a_nyquist_plot_marks_the_circle_that_the_curve_touches() -> None:
    model = transfer_model(*LAGS)
    ax = fx.nyquist(model)
    omega = np.linspace(0.5, 3.0, 200001)
    peak = np.max(np.abs(1.0 / (1.0 + 3.0 / (1j * omega + 1.0) ** 3)))
    (circle,) = (line for line in ax.lines if line.get_linestyle() == "-.")
    x, y = data(circle)
    np.testing.assert_allclose(np.hypot(x + 1.0, y), 1.0 / peak, rtol=1e-8)
    assert f"Ms = {peak:.3g}" in texts(ax)
    x, y = data(ax.lines[0])
    assert np.min(np.hypot(x + 1.0, y)) == pytest.approx(1.0 / peak, rel=1e-3)
    np.testing.assert_allclose(data(ax.lines[1])[1], -y)  # the negative frequencies


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [([1.0], [1.0, 0.5, 0.0]), ([1.0], [1.0, 0.5, 1.0, 0.0]), ([1e6], [1.0, 1.0]), LAGS],
)
def test_the_neighborhood_of_the_point_is_in_a_nyquist_plot(
    numerator: list[float], denominator: list[float]
) -> None:
    ax = fx.nyquist(transfer_model(numerator, denominator))
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert -4.0 < left < -1.5
    assert 0.3 < right < 3.0
    assert -4.0 < low < -0.5
    assert low == -high


def test_no_line_joins_the_two_sides_of_an_undamped_pole() -> None:
    ax = fx.nyquist(transfer_model([1.0, 1.0], [1.0, 0.0, 1.0]))
    x, _ = data(ax.lines[0])
    (broken,) = np.flatnonzero(np.isnan(x))
    sides = x[[broken - 1, broken + 1]]
    assert np.all(np.abs(sides) > 100.0)
    assert np.prod(sides) < 0.0


def test_arrows_point_to_growing_frequencies() -> None:
    ax = fx.nyquist(transfer_model([2.0], [1.0, 1.0]), margins=False)
    arrows: list[Any] = [each for each in ax.texts if not each.get_text()]
    assert len(arrows) == 2
    for arrow in arrows:
        (x, y), (from_x, _) = arrow.xy, arrow.xyann
        assert y < 0.0
        assert x < from_x  # along the lower half of a circle, to its left


def test_a_nichols_plot_has_gain_over_phase_and_contours_of_the_closed_loop() -> None:
    ax = fx.nichols(transfer_model(*LAGS), FREQUENCY)
    phase, decibels = data(ax.lines[0])
    np.testing.assert_allclose(phase, -3.0 * np.rad2deg(np.arctan(FREQUENCY)), rtol=1e-9)
    np.testing.assert_allclose(decibels, 20.0 * np.log10(3.0 * (1.0 + FREQUENCY**2) ** -1.5))
    levels = []
    for line in ax.lines:
        if line.get_color() == "#bbbbbb":
            x, y = data(line)
            L = 10.0 ** (y / 20.0) * np.exp(1j * np.deg2rad(x))
            with np.errstate(invalid="ignore"):
                level = 20.0 * np.log10(np.abs(L / (1.0 + L)))
            assert np.nanmax(level) - np.nanmin(level) < 1e-6
            levels.append(round(float(np.nanmean(level)), 6))
    assert {-20.0, -6.0, 0.0, 3.0, 6.0} <= set(levels)


# Room -------------------------------------------------------------------------------------------


def covered(ax: Any) -> list[str]:
    """Return the texts that cover a part of a line, or each other."""
    figure = ax.figure.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    found = []
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in ax.texts if t.get_text()]
    if ax.get_legend() is not None:
        boxes.append(("legend", ax.get_legend().get_window_extent(renderer)))
    for line in ax.lines:
        if line.get_color() in GRID:
            continue
        points = line.get_transform().transform(np.column_stack(data(line)))
        points = points[np.isfinite(points).all(axis=1)]
        steps = (
            points[:-1, np.newaxis]
            + np.linspace(0.0, 1.0, 30)[:, np.newaxis] * (points[1:] - points[:-1])[:, np.newaxis]
        )
        found += [text for text, box in boxes if box.count_contains(steps.reshape(-1, 2))]
    for k, (text, box) in enumerate(boxes):
        found += [text for _, other in boxes[:k] if box.overlaps(other)]
    return sorted(set(found))


@pytest.mark.full
@pytest.mark.parametrize(
    "draw",
    thinned(
        [
            lambda: fx.bode(transfer_model(*LAGS)).axes[0],
            lambda: fx.bode(transfer_model(*LAGS)).axes[1],
            lambda: fx.nyquist(transfer_model(*LAGS)),
            lambda: fx.nyquist(transfer_model([1.0], [1.0, 0.5, 0.0])),
            lambda: fx.nichols(transfer_model([2.0], [1.0, 1.0, 0.0])),
            lambda: fx.bode([transfer_model(*LAGS), transfer_model([2.0], [1.0, 1.0, 0.0])]).axes[
                0
            ],
            lambda: fx.nyquist(
                {"a": transfer_model(*LAGS), "b": transfer_model([1.0], [1.0, 1.0])}
            ),
        ],
        fast=2,
    ),
)
def test_texts_and_legends_cover_no_curve(draw: Callable[[], Any]) -> None:
    assert covered(draw()) == []


def test_of_several_models_the_legend_has_the_figures() -> None:
    ax, _ = fx.bode({"lags": transfer_model(*LAGS), "lag": transfer_model([0.5], [1.0, 1.0])}).axes
    legend = ax.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["lags (gain margin 8.52 dB, phase margin 41.7°)", "lag"]


@pytest.mark.full
def test_pictures_are_drawn_into_axes_and_saved(tmp_path: Path) -> None:
    figure, ((a, b), (c, d)) = plt.subplots(2, 2)
    model = transfer_model(*LAGS)
    assert fx.bode(model, ax=(a, b)) is figure
    assert fx.nyquist(model, ax=c) is c
    assert fx.nichols(model, ax=d, path=tmp_path / "all.png") is d
    assert (tmp_path / "all.png").stat().st_size > 1000


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", PICTURES)
def test_what_cannot_be_drawn_is_refused(draw: Callable[..., Any]) -> None:
    model = transfer_model(*LAGS)
    refused = fx.errors.ValueRefusedError
    for frequency in (0.0, [0.0, 1.0], [-1.0, 1.0], [2.0, 1.0], [1.0, np.nan], [1.0], "text"):
        with pytest.raises(refused, match="frequencies"):
            draw(model, frequency)
    with pytest.raises(refused, match="units to be one of 'rad/s', 'Hz'"):
        draw(model, units="rpm")
    nothings: list[Any] = [None, [], {}, "model", [model, 1.0]]
    for nothing in nothings:
        with pytest.raises(refused, match="expected a LinearModel, as"):
            draw(nothing)
    silent = replace(model, B=model.B[:, :0], D=model.D[:, :0], input_names=[])
    with pytest.raises(refused, match="with an input and an output"):
        draw(silent)
    with pytest.raises(refused, match="the name of a file"):
        draw(model, path=3)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("draw", [fx.nyquist, fx.nichols])
def test_loops_have_one_input_and_one_output(draw: Callable[..., Any]) -> None:
    model = free_model(fx.StateSpace("block", -np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2))))
    with pytest.raises(fx.errors.ValueRefusedError, match="2 inputs and 2 outputs in 'wide'"):
        draw({"wide": model})


def test_a_bode_plot_needs_two_axes() -> None:
    _, ax = plt.subplots()
    for wrong in (ax, [ax], [ax, 1.0]):
        with pytest.raises(fx.errors.ValueRefusedError, match="two Axes"):
            fx.bode(transfer_model(*LAGS), ax=wrong)  # type: ignore[arg-type]
