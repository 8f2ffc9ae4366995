"""Constants recovered from torques and forces that were computed by other means, and reports."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import curve_fit

import flexure as fx
from flexure import fitting
from flexure.diagrams.values.arrays import FloatArray
from tests.support.tiers import for_each

LINEAR = [
    "spring_zero_angle_rad",
    "spring_constant",
    "dynamic_friction_torque",
    "static_friction_torque",
    "viscous_friction",
    "catch_torque",
]
MADE = fx.DoorHingeConfig(
    spring_zero_angle_rad=-1.1,
    spring_constant=2.2,
    dynamic_friction_torque=1.7,
    static_friction_torque=0.9,
    viscous_friction=0.4,
    catch_width=0.1,
    catch_torque=6.0,
    motion_threshold=0.02,
)
#: A start with the right shape and everything else wrong.
START = fx.DoorHingeConfig(catch_width=MADE.catch_width, motion_threshold=MADE.motion_threshold)


def swing(samples: int = 1000, closed: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return angles and rates of a door that is swung between closed and 1.2 rad."""
    phase = np.linspace(0.0, 23.0, samples)
    amplitude = 0.5 * (1.2 - closed)
    return closed + amplitude * (1.0 - np.cos(phase)), amplitude * np.sin(phase)


def torque_of(made: fx.DoorHingeConfig, q: FloatArray, rate: FloatArray) -> FloatArray:
    """Return the torque of a hinge, with the doublets as 2 tanh/cosh²."""
    a = (q - made.catch_width / 2.0) / (made.catch_width / 2.0)
    b = rate / made.motion_threshold
    with np.errstate(over="ignore"):
        catch, static = 2.0 * np.tanh([a, b]) / np.cosh([a, b]) ** 2
    total = made.spring_constant * (q - made.spring_zero_angle_rad) - made.catch_torque * catch
    total += made.dynamic_friction_torque * np.tanh(b) + made.static_friction_torque * static
    return np.asarray(-total - made.viscous_friction * rate)


def lines_of(report: fitting.FitReport) -> dict[str, str]:
    """Return the lines of a printed report by their first word."""
    split = [" ".join(line.split()).partition(" ") for line in str(report).splitlines()]
    return {first: rest for first, _, rest in split}


def assert_same(found: Any, made: Any, rel: float) -> None:
    for name, value in asdict(made).items():
        assert getattr(found, name) == pytest.approx(value, rel=rel, abs=rel), name


def test_the_hinge_is_recovered_from_exact_torques() -> None:
    q, rate = swing()
    found, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), START)
    assert_same(found, MADE, 1e-9)
    assert report.constants == asdict(found)
    assert report.rms < 1e-9
    assert report.fitted == tuple(LINEAR)
    assert report.unidentified == report.at_bound == ()


def test_widths_are_recovered_from_a_start_that_is_twice_too_big() -> None:
    q, rate = swing()
    start = replace(START, catch_width=0.2, motion_threshold=0.04)
    found, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), start, fitted=asdict(MADE))
    assert_same(found, MADE, 1e-7)
    assert set(report.fitted) == set(asdict(MADE))


def test_only_the_chosen_constants_are_changed() -> None:
    q, rate = swing()
    given = replace(MADE, spring_constant=1.0, viscous_friction=1.0)
    fitted = ["viscous_friction", "spring_constant"]
    found, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), given, fitted=fitted)
    assert_same(found, MADE, 1e-9)
    assert list(report.fitted) == list(report.standard_errors) == fitted


@pytest.mark.parametrize("seed", range(5))
def test_noise_moves_constants_by_some_standard_errors_only(seed: int) -> None:
    q, rate = swing()
    noise = 0.05 * np.random.default_rng(seed).standard_normal(q.size)
    found, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate) + noise, START)
    assert report.rms == pytest.approx(0.05, rel=0.1)
    for name, error in report.standard_errors.items():
        assert 0.0 < error < 0.1 * abs(getattr(MADE, name))
        assert abs(getattr(found, name) - getattr(MADE, name)) < 4.0 * error


def test_the_covariance_is_that_of_curve_fit() -> None:
    q, rate = swing(200)
    measured = torque_of(MADE, q, rate) + 0.05 * np.random.default_rng(7).standard_normal(200)

    def law(_: Any, *constants: float) -> FloatArray:
        return torque_of(replace(MADE, **dict(zip(LINEAR, constants, strict=True))), q, rate)

    values, covariance = curve_fit(law, q, measured, [getattr(START, name) for name in LINEAR])
    found, report = fitting.fit_hinge(q, rate, measured, START)
    np.testing.assert_allclose([getattr(found, name) for name in LINEAR], values, rtol=1e-6)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(report.covariance / scale, covariance / scale, atol=1e-4)
    residuals = measured - torque_of(found, q, rate)
    np.testing.assert_allclose(report.residuals, residuals, atol=1e-12)


@pytest.mark.parametrize("absent", ["static_friction_torque", "viscous_friction", "catch_torque"])
def test_what_the_hinge_does_not_have_is_found_to_be_nothing(absent: str) -> None:
    q, rate = swing()
    made = replace(MADE, **{absent: 0.0})
    found, report = fitting.fit_hinge(q, rate, torque_of(made, q, rate), START)
    assert_same(found, made, 1e-5)
    assert report.unidentified == ()


def test_without_a_spring_there_is_no_rest_angle_to_be_found() -> None:
    q, rate = swing()
    made = replace(MADE, spring_constant=0.0)
    with pytest.warns(UserWarning, match="'spring_zero_angle_rad'"):
        found, report = fitting.fit_hinge(q, rate, torque_of(made, q, rate), START)
    assert report.unidentified == ("spring_zero_angle_rad",)
    assert found.spring_constant == pytest.approx(0.0, abs=1e-6)
    assert found.catch_torque == pytest.approx(MADE.catch_torque, rel=1e-6)


def test_a_constant_that_noise_would_make_negative_stays_at_its_bound() -> None:
    q, rate = swing()
    measured = torque_of(replace(MADE, viscous_friction=-0.1), q, rate)
    found, report = fitting.fit_hinge(q, rate, measured, START)
    assert found.viscous_friction == pytest.approx(0.0, abs=1e-12)
    assert report.at_bound == ("viscous_friction",)
    assert report.rms > 0.001


def test_constants_that_start_at_zero_are_found() -> None:
    q, rate = swing()
    start = fx.DoorHingeConfig(0.0, 0.0, 0.0, 0.0, 0.0, MADE.catch_width, 0.0, 0.02)
    found, _ = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), start)
    assert_same(found, MADE, 1e-7)


def test_a_catch_that_the_door_never_meets_keeps_its_value_with_a_warning() -> None:
    q, rate = swing(closed=0.6)
    with pytest.warns(UserWarning, match="do not determine 'catch_torque'") as caught:
        found, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), START)
    assert caught[0].filename == __file__
    assert report.unidentified == ("catch_torque",)
    assert report.standard_errors["catch_torque"] == np.inf
    assert_same(found, replace(MADE, catch_torque=START.catch_torque), 1e-7)
    assert lines_of(report)["catch_torque"] == "15 not determined"


def test_without_the_catch_among_the_fitted_there_is_no_warning() -> None:
    q, rate = swing(closed=0.6)
    fitted = [name for name in LINEAR if name != "catch_torque"]
    _, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), START, fitted=fitted)
    assert report.unidentified == ()
    assert lines_of(report)["catch_torque"] == "15 given"


def test_at_one_rate_friction_and_rest_angle_are_told_apart_by_nothing() -> None:
    q = np.linspace(0.0, 1.2, 200)
    rate = np.full(200, 0.5)
    with pytest.warns(UserWarning, match="cannot tell .* apart"):
        found, report = fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), START)
    assert set(report.unidentified) == set(LINEAR) - {"spring_constant", "catch_torque"}
    assert report.condition > 1e6
    assert found.spring_constant == pytest.approx(MADE.spring_constant, rel=1e-9)
    assert found.catch_torque == pytest.approx(MADE.catch_torque, rel=1e-9)
    assert np.isfinite(report.standard_errors["spring_constant"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rates": np.zeros(99)}, r"rates: expected the shape \(100,\).*found the shape \(99,\)"),
        ({"torques": np.zeros((100, 1))}, r"torques: expected the shape \(100,\)"),
        ({"angles": np.zeros((10, 10))}, "angles: expected one number for each sample"),
        ({"torques": np.full(100, np.nan)}, "torques: expected finite"),
        ({"angles": ["a"] * 100}, "angles: expected real numbers"),
        ({"config": replace(START, catch_torque=-1.0)}, "'catch_torque': .*within the bounds"),
        ({"config": replace(START, catch_width=np.nan)}, "start of 'catch_width'"),
        ({"fitted": []}, "expected at least one"),
    ],
)
def test_bad_samples_of_a_hinge_are_refused(change: dict[str, Any], text: str) -> None:
    q, rate = swing(100)
    good = {"angles": q, "rates": rate, "torques": torque_of(MADE, q, rate), "config": START}
    with pytest.raises(fx.errors.ValueRefusedError, match=text):
        fitting.fit_hinge(**{**good, **change})


def test_as_many_constants_as_samples_are_refused() -> None:
    q, rate = swing(6)
    with pytest.raises(fx.errors.ValueRefusedError, match="at least 7 samples; found 6"):
        fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), START)


def test_a_constant_that_no_hinge_has_is_refused_with_a_guess() -> None:
    q, rate = swing(100)
    with pytest.raises(fx.errors.UnknownNameError, match="Did you mean 'spring_constant'"):
        fitting.fit_hinge(q, rate, torque_of(MADE, q, rate), START, fitted=["spring_constnat"])


# --- bushings ---------------------------------------------------------------------------------

MOUNT = fx.BushingConstants(
    torque_stiffness=[8.0, 10.0, 12.0],
    torque_damping=[0.1, 0.2, 0.3],
    force_stiffness=[400.0, 60.0, 1e5],
    force_damping=[5.0, 6.0, 90.0],
)


def shaken(samples: int, k: Any, d: Any, noise: float = 0.0, seed: int = 0) -> Any:
    """Return displacements, rates and forces of three axes in random motion."""
    rng = np.random.default_rng(seed)
    x, rate, error = rng.standard_normal((3, samples, 3))
    return x, 20.0 * rate, -(np.multiply(k, x) + np.multiply(d, 20.0 * rate)) + noise * error


def test_the_bushing_is_recovered_from_exact_forces() -> None:
    found, reports = fitting.fit_bushing(
        torsion=shaken(50, MOUNT.torque_stiffness, MOUNT.torque_damping),
        translation=shaken(40, MOUNT.force_stiffness, MOUNT.force_damping),
    )
    for name, values in asdict(MOUNT).items():
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-10)
    assert list(reports) == ["q0", "q1", "q2", "x", "y", "z"]
    assert reports["z"].constants == {
        "force_stiffness[2]": found.force_stiffness[2],
        "force_damping[2]": found.force_damping[2],
    }
    assert reports["z"].condition < 2.0


def test_a_group_that_is_not_measured_keeps_its_constants() -> None:
    found, reports = fitting.fit_bushing(torsion=shaken(50, [1.0, 2.0, 3.0], 0.5), base=MOUNT)
    assert (found.force_stiffness, found.force_damping) == (
        MOUNT.force_stiffness,
        MOUNT.force_damping,
    )
    np.testing.assert_allclose(found.torque_stiffness, [1.0, 2.0, 3.0], rtol=1e-10)
    assert list(reports) == ["q0", "q1", "q2"]


def test_free_axes_come_out_as_exactly_zero_or_nearly_so() -> None:
    hinge = fx.BushingConstants.revolute("z", 10.0, 100.0)
    _, reports = fitting.fit_bushing(
        torsion=shaken(500, hinge.torque_stiffness, hinge.torque_damping, noise=0.1)
    )
    for axis, name in (
        ("q0", "torque_damping[0]"),
        ("q1", "torque_damping[1]"),
        ("q2", "torque_stiffness[2]"),
        ("q2", "torque_damping[2]"),
    ):
        report = reports[axis]
        value, error = report.constants[name], report.standard_errors[name]
        assert 0.0 <= value < 4.0 * error
        assert (name in report.at_bound) == (value == 0.0)
    assert any(report.at_bound for report in reports.values())


def test_the_standard_errors_are_the_scatter_of_repeated_experiments() -> None:
    x, rate, force = shaken(30, 50.0, 4.0)
    rng = np.random.default_rng(1)
    fits = []
    for _ in range(150):
        noisy = force + 2.0 * rng.standard_normal(force.shape)
        found, reports = fitting.fit_bushing(translation=(x, rate, noisy))
        fits.append(
            (
                found.force_stiffness[0],
                found.force_damping[0],
                *reports["x"].standard_errors.values(),
            )
        )
    k, d, k_error, d_error = np.transpose(fits)
    assert np.std(k) == pytest.approx(np.mean(k_error), rel=0.2)
    assert np.std(d) == pytest.approx(np.mean(d_error), rel=0.2)
    assert abs(np.mean(k) - 50.0) < 4.0 * np.mean(k_error) / np.sqrt(150.0)


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e4), st.integers(0, 1000))
def test_any_constants_are_recovered(k: float, d: float, seed: int) -> None:
    found, _ = fitting.fit_bushing(translation=shaken(20, k, d, seed=seed))
    np.testing.assert_allclose(found.force_stiffness, k, rtol=1e-9, atol=1e-9 * (k + d))
    np.testing.assert_allclose(found.force_damping, d, rtol=1e-9, atol=1e-9 * (k + d))


def test_an_axis_that_does_not_move_keeps_its_constants_with_a_warning() -> None:
    x, rate, force = shaken(50, MOUNT.force_stiffness, MOUNT.force_damping)
    for samples in (x, rate, force):
        samples[:, 1] = 0.0
    base = fx.BushingConstants(force_stiffness=7.0)
    with pytest.warns(UserWarning, match=r"'force_stiffness\[1\]', 'force_damping\[1\]'") as caught:
        found, reports = fitting.fit_bushing(translation=(x, rate, force), base=base)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(found.force_stiffness, [400.0, 7.0, 1e5], rtol=1e-10)
    np.testing.assert_allclose(found.force_damping, [5.0, 0.0, 90.0], rtol=1e-10)
    assert reports["y"].unidentified == ("force_stiffness[1]", "force_damping[1]")
    assert np.isinf(list(reports["y"].standard_errors.values())).all()
    assert reports["y"].condition == np.inf
    assert reports["x"].unidentified == ()


def test_slow_loading_says_nothing_about_damping() -> None:
    x, rate, _ = shaken(50, 0.0, 0.0)
    with pytest.warns(
        UserWarning, match=r"'force_damping\[0\]', 'force_damping\[1\]', 'force_damping\[2\]'"
    ):
        found, reports = fitting.fit_bushing(translation=(x, 0.0 * rate, -300.0 * x))
    np.testing.assert_allclose(found.force_stiffness, 300.0, rtol=1e-12)
    assert reports["x"].unidentified == ("force_damping[0]",)
    assert np.isfinite(reports["x"].standard_errors["force_stiffness[0]"])


def test_a_rate_in_proportion_to_the_displacement_tells_nothing_apart() -> None:
    x, _, _ = shaken(50, 0.0, 0.0)
    with pytest.warns(UserWarning, match="cannot tell .* apart, nor "):
        found, reports = fitting.fit_bushing(translation=(x, -3.0 * x, -100.0 * x))
    np.testing.assert_allclose(
        np.subtract(found.force_stiffness, 3.0 * np.array(found.force_damping)), 100.0
    )
    assert all(len(report.unidentified) == 2 for report in reports.values())


def test_forces_of_the_wrong_sign_end_at_the_bound_with_large_residuals() -> None:
    x, rate, force = shaken(50, MOUNT.force_stiffness, MOUNT.force_damping)
    found, reports = fitting.fit_bushing(translation=(x, rate, -force))
    assert found.force_stiffness == (0.0, 0.0, 0.0)
    for i, report in enumerate(reports.values()):
        assert f"force_stiffness[{i}]" in report.at_bound
        assert report.rms > 0.9 * np.sqrt(np.mean(force[:, i] ** 2))


@for_each(
    ("samples", "text"),
    [
        ((np.zeros((9, 3)), np.zeros((9, 3))), "three arrays.*found 2 arrays"),
        ((np.zeros((9, 3)), np.zeros((8, 3)), np.zeros((9, 3))), r"rates: .*\(8, 3\)"),
        ((np.zeros((9, 2)), np.zeros((9, 2)), np.zeros((9, 2))), r"displacements: .*\(9, 2\)"),
        ((0.0, 0.0, 0.0), r"displacements: .*found the shape \(\)"),
        ((np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3))), "at least 3 samples; found 2"),
        ((np.zeros((9, 3)), np.zeros((9, 3)), np.full((9, 3), np.inf)), "forces: expected finite"),
    ],
)
def test_bad_samples_of_a_bushing_are_refused(samples: Any, text: str) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=text):
        fitting.fit_bushing(torsion=samples)


def test_a_bushing_without_samples_is_refused() -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="torsion or translation; found neither"):
        fitting.fit_bushing()


# --- any law ----------------------------------------------------------------------------------

TIME = np.linspace(0.0, 3.0, 60)
DECAY = 2.0 * np.exp(-1.5 * TIME)


def decay(height: float, rate: float) -> FloatArray:
    return np.asarray(height * np.exp(-rate * TIME))


def test_any_function_of_constants_can_be_fitted() -> None:
    report = fitting.fit_constants(decay, DECAY, {"height": 1.0, "rate": 1.0})
    assert report.constants == pytest.approx({"height": 2.0, "rate": 1.5}, rel=1e-9)


def test_bounds_hold() -> None:
    start = {"height": 1.0, "rate": 0.5}
    report = fitting.fit_constants(decay, DECAY, start, bounds={"rate": (0.0, 1.0)})
    assert report.constants["rate"] == pytest.approx(1.0, rel=1e-9)
    assert report.at_bound == ("rate",)


def test_the_representation_of_a_report_is_one_line_without_arrays() -> None:
    report = fitting.fit_constants(
        decay, DECAY, {"height": 2.0, "rate": 1.0}, fitted=["rate"], bounds={"rate": (0.0, 1.0)}
    )
    assert repr(report) == (
        f"<FitReport: rate=1; residuals of {report.rms:.3g} rms in {DECAY.size} samples; "
        "at a bound: rate>"
    )
    with pytest.warns(UserWarning, match="do not determine"):
        vague = fitting.fit_constants(lambda a, b: a * TIME + 0.0 * b, TIME, {"a": 2.0, "b": 3.0})
    assert repr(vague).startswith("<FitReport: a=1, b=3; residuals of ")
    assert repr(vague).endswith("not determined: b>")


def test_the_report_prints_one_line_per_constant() -> None:
    report = fitting.fit_constants(
        decay, DECAY + 0.01 * np.cos(40.0 * TIME), {"height": 1, "rate": 1}
    )
    height, rate = report.constants.values()
    columns = np.array([decay(1.0, rate), -TIME * decay(height, rate)])
    condition = np.linalg.cond(columns.T / np.linalg.norm(columns, axis=1))
    lines = lines_of(report)
    assert list(lines)[1:] == ["height", "rate", "measured:", "cost"]
    for name, (low, high) in report.confidence_intervals(0.95).items():
        value, error = report[name], report.standard_errors[name]
        assert lines[name] == f"{value:.6g} {error:.2g} {low:.6g} to {high:.6g}"
    assert lines["measured:"] == f"residuals of {report.rms:.3g} rms in {TIME.size} samples"
    assert lines["cost"] == f"{report.cost:.4g}, condition number {condition:.3g}"


@for_each(
    ("law", "start", "options", "text"),
    [
        (lambda a: a * DECAY[:5], {"a": 1.0}, {}, r"law at the start: .*found the shape \(5,\)"),
        (lambda a: a * DECAY * np.nan, {"a": 1.0}, {}, "law at the start: expected finite"),
        (lambda a: DECAY, {"a": 1.0}, {}, "no effect of 'a'"),
        (decay, {"height": np.inf, "rate": 1.0}, {}, "start of 'height'"),
        (decay, {"height": 1.0, "rate": 1.0}, {"bounds": {"rate": (2.0, 3.0)}}, "'rate'.*found 1"),
        (decay, {"height": 1.0, "rate": 1.0}, {"bounds": {"rate": (1.0, 1.0)}}, "'rate'"),
        (decay, {}, {}, "expected at least one"),
    ],
)
def test_laws_and_starts_that_cannot_be_fitted_are_refused(
    law: Callable[..., Any], start: dict[str, float], options: dict[str, Any], text: str
) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=text):
        fitting.fit_constants(law, DECAY, start, **options)


@for_each("options", [{"fitted": ["speed"]}, {"bounds": {"speed": (0.0, 1.0)}}])
def test_names_that_the_law_does_not_have_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(fx.errors.UnknownNameError, match="'speed'"):
        fitting.fit_constants(decay, DECAY, {"height": 1.0, "rate": 1.0}, **options)


def test_a_fit_that_does_not_converge_says_so() -> None:
    def curved_valley(x: float, y: float) -> FloatArray:
        return np.array([1e7 * (y - x**2), 1.0 - x, 0.0])

    with pytest.raises(fx.errors.EvaluationError, match="Cannot fit the constants 'x', 'y'"):
        fitting.fit_constants(curved_valley, np.zeros(3), {"x": -100.0, "y": 1e4})


def test_a_good_fit_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitting.fit_constants(decay, DECAY, {"height": 1.0, "rate": 1.0})
