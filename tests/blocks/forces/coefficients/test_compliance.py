"""Stiffness, damping and settling times, against simulated motions and the printed tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp

import flexure as fx
from flexure import compliance
from flexure.diagrams.values.arrays import FloatArray
from tests.support.tiers import for_each

ZETAS = [0.05, 0.3, 0.5, 0.65, 0.78, 0.95, 1.0, 1.05, 1.5, 8.0]
FRACTIONS = [0.01, 0.02, 0.05, 0.1]

every_fraction = pytest.mark.parametrize("fraction", FRACTIONS)
positive = st.floats(1e-3, 1e3)
fractions = st.floats(1e-4, 0.5)


def simulate_free_motion(
    damping: float,
    stiffness: float,
    inertia: float,
    until: float,
    events: list[Callable[[float, FloatArray], float]],
) -> Any:
    """Let a spring and damper go at a displacement of 1 and return the solution."""
    return solve_ivp(
        lambda t, s: [s[1], -(stiffness * s[0] + damping * s[1]) / inertia],
        (0.0, until),
        [1.0, 0.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
        max_step=0.1 * np.sqrt(inertia / stiffness),
        events=events,
    )


def crossings(fraction: float) -> list[Callable[[float, FloatArray], float]]:
    return [lambda t, s: s[0] - fraction, lambda t, s: s[0] + fraction]


def motion(zeta: float, tau: float) -> float:
    """Return x/x0 from the complex poles, which must differ."""
    p1, p2 = np.roots([1.0, 2.0 * zeta, 1.0]).astype(complex)
    return float(np.real((p2 * np.exp(p1 * tau) - p1 * np.exp(p2 * tau)) / (p2 - p1)))


def test_stiffness_of_every_axis_from_one_experiment() -> None:
    stiffness = compliance.stiffness_from_load([100.0, 50.0, 20.0], [0.001, 0.001, 0.004])
    np.testing.assert_allclose(stiffness, [1e5, 5e4, 5e3], rtol=1e-15)


def test_stiffness_from_a_frequency_gives_that_period() -> None:
    stiffness = compliance.stiffness_from_frequency(0.3, natural_frequency=2.0 * np.pi)
    solution = simulate_free_motion(0.0, stiffness, 0.3, 3.5, [lambda t, s: s[1]])
    np.testing.assert_allclose(solution.t_events[0][-3:], [2.0, 2.5, 3.0], rtol=1e-9)


@pytest.mark.full
@given(positive, positive)
def test_frequency_and_stiffness_are_inverse(inertia: float, omega: float) -> None:
    stiffness = compliance.stiffness_from_frequency(inertia, omega)
    assert compliance.natural_frequency(stiffness, inertia) == pytest.approx(omega, rel=1e-14)


@given(st.floats(0.0, 20.0), positive, positive)
def test_damping_and_its_ratio_are_inverse(zeta: float, stiffness: float, inertia: float) -> None:
    damping = compliance.damping_from_ratio(zeta, stiffness, inertia)
    assert compliance.damping_ratio(damping, stiffness, inertia) == pytest.approx(zeta, rel=1e-14)


@given(st.floats(0.05, 0.95), positive, positive)
def test_the_damping_ratio_is_that_of_the_poles(
    zeta: float, stiffness: float, inertia: float
) -> None:
    damping = compliance.damping_from_ratio(zeta, stiffness, inertia)
    pole = np.roots([inertia, damping, stiffness])[0]
    assert -pole.real / abs(pole) == pytest.approx(zeta, rel=1e-9)
    assert abs(pole) == pytest.approx(compliance.natural_frequency(stiffness, inertia), rel=1e-9)


@pytest.mark.full
@every_fraction
@pytest.mark.parametrize("zeta", ZETAS)
def test_settling_time_is_the_last_crossing_of_a_simulated_motion(
    zeta: float, fraction: float
) -> None:
    stiffness, inertia = 50.0, 2.0
    found = compliance.settling_time(
        zeta, compliance.natural_frequency(stiffness, inertia), fraction
    )
    damping = compliance.damping_from_ratio(zeta, stiffness, inertia)
    solution = simulate_free_motion(
        damping, stiffness, inertia, 1.5 * found + 1.0, crossings(fraction)
    )
    assert found == pytest.approx(max(map(np.max, filter(len, solution.t_events))), rel=1e-8)


@pytest.mark.parametrize("zeta", [0.2, 0.6, 1.0, 3.0])
def test_settling_time_is_what_step_info_measures(zeta: float) -> None:
    expected = compliance.settling_time(zeta, 1.0)
    time = np.linspace(0.0, 2.0 * expected, 4001)
    solution = solve_ivp(
        lambda t, s: [s[1], -s[0] - 2.0 * zeta * s[1]],
        (0.0, time[-1]),
        [1.0, 0.0],
        method="DOP853",
        rtol=1e-11,
        atol=1e-13,
        t_eval=time,
    )
    info = fx.step_info(time, solution.y[0], initial=1.0, final=0.0)
    assert info.settling_time == pytest.approx(expected, rel=1e-4)


@pytest.mark.full
@given(st.one_of(st.floats(0.02, 0.99), st.floats(1.01, 30.0)), fractions)
def test_the_motion_is_at_the_edge_of_the_band_and_does_not_leave_it_again(
    zeta: float, fraction: float
) -> None:
    settled = compliance.settling_time(zeta, 1.0, fraction)
    assert abs(motion(zeta, settled)) == pytest.approx(fraction, rel=1e-8)
    later = [abs(motion(zeta, settled * (1.0 + k / 50.0))) for k in range(1, 200)]
    assert max(later) < fraction


@given(st.floats(0.02, 30.0), fractions, positive)
def test_both_directions_of_the_settling_time_are_inverse(
    zeta: float, fraction: float, omega: float
) -> None:
    time = compliance.settling_time(zeta, omega, fraction)
    found = compliance.natural_frequency_from_settling_time(zeta, time, fraction)
    assert found == pytest.approx(omega, rel=1e-14)


@given(st.floats(0.02, 30.0), fractions, st.floats(0.1, 0.999))
def test_a_narrower_band_takes_longer(zeta: float, fraction: float, share: float) -> None:
    assert compliance.settling_time(zeta, 1.0, share * fraction) > compliance.settling_time(
        zeta, 1.0, fraction
    )


@every_fraction
def test_settling_time_jumps_where_a_peak_touches_the_band(fraction: float) -> None:
    decrement = -np.log(fraction)
    zeta = decrement / np.hypot(np.pi, decrement)  # the first peak is as high as the band
    at_the_peak = np.pi / np.sqrt(1.0 - zeta**2)
    before = compliance.settling_time(zeta - 1e-9, 1.0, fraction)
    behind = compliance.settling_time(zeta + 1e-9, 1.0, fraction)
    assert before == pytest.approx(at_the_peak, rel=1e-3)
    assert before > 1.15 * behind
    assert all(
        compliance.settling_time(other, 1.0, fraction) > behind
        for other in np.linspace(0.05, 3.0, 60)
    )


@every_fraction
@pytest.mark.parametrize("distance", [1e-12, 1e-8, 1e-5])
def test_critical_damping_is_no_special_point(fraction: float, distance: float) -> None:
    critical = compliance.settling_time(1.0, 1.0, fraction)
    for zeta in (1.0 - distance, 1.0 + distance):
        assert compliance.settling_time(zeta, 1.0, fraction) == pytest.approx(
            critical, rel=10 * distance
        )


@pytest.mark.parametrize(
    ("fraction", "product"), [(0.01, 6.64), (0.02, 5.83), (0.05, 4.74), (0.10, 3.89)]
)
def test_critical_damping_has_the_printed_settling_times(fraction: float, product: float) -> None:
    assert round(compliance.natural_frequency_from_settling_time(1.0, 1.0, fraction), 2) == product
    found = compliance.approximate_natural_frequency(1.0, 0.5, fraction)
    assert found == pytest.approx(
        compliance.natural_frequency_from_settling_time(1.0, 0.5, fraction)
    )


#: The error table of the class page of Drake's LinearBushingRollPitchYaw, in percent.
ERRORS = {
    0.01: {1.01: "1.98", 1.1: "0.005", 1.2: "2.9e-5", 1.3: "1.6e-7", 1.5: "2.4e-12"},
    0.02: {1.01: "2.91", 1.1: "0.016", 1.2: "1.8e-4", 1.3: "2.1e-6", 1.5: "1.6e-10"},
    0.05: {1.01: "5.10", 1.1: "0.076", 1.2: "2.3e-3", 1.3: "7.0e-5", 1.5: "4.4e-8"},
    0.10: {1.01: "8.28", 1.1: "0.258", 1.2: "1.6e-2", 1.3: "1.0e-3", 1.5: "3.3e-6"},
}


def last_digit(number: str) -> float:
    """Return what one unit of the last printed digit is worth."""
    mantissa, _, exponent = number.partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


@for_each(
    ("fraction", "zeta", "percent"),
    [(s, zeta, error) for s, row in ERRORS.items() for zeta, error in row.items()],
)
def test_the_printed_errors_of_the_overdamped_formula(
    fraction: float, zeta: float, percent: str
) -> None:
    exact = compliance.natural_frequency_from_settling_time(zeta, 1.0, fraction)
    error = 100.0 * (compliance.approximate_natural_frequency(zeta, 1.0, fraction) / exact - 1.0)
    rounding = 100.0 * 4.0 * np.finfo(float).eps
    assert abs(error - float(percent)) <= 0.5 * last_digit(percent) + rounding
    row = compliance.approximate_natural_frequency.__doc__ or ""
    assert f"{percent} %" in next(line for line in row.splitlines() if f" {fraction:.2f}  " in line)


@every_fraction
@given(zeta=st.floats(0.01, 0.7, exclude_max=True))
def test_the_envelopes_err_as_much_as_documented(fraction: float, zeta: float) -> None:
    exact = compliance.natural_frequency_from_settling_time(zeta, 1.0, fraction)

    def error(envelope: Literal["peaks", "tangent"]) -> float:
        return (
            compliance.approximate_natural_frequency(zeta, 1.0, fraction, envelope=envelope) / exact
            - 1
        )

    assert -0.09 < error("peaks") < 0.68
    assert -1e-12 < error("tangent") < 0.83


@pytest.mark.parametrize(("fraction", "product"), [(0.01, 4.6), (0.05, 3.0)])
def test_the_envelope_through_the_peaks_has_the_usual_numbers(
    fraction: float, product: float
) -> None:
    found = compliance.approximate_natural_frequency(0.5, 2.0, fraction)
    assert round(found * 0.5 * 2.0, 1) == product


@every_fraction
def test_the_formula_of_critical_damping_is_a_little_low_up_to_its_end(fraction: float) -> None:
    exact = compliance.natural_frequency_from_settling_time(1.0099, 1.0, fraction)
    error = compliance.approximate_natural_frequency(1.0099, 1.0, fraction) / exact - 1.0
    assert -0.022 < error < -0.012


def test_heavily_overdamped_formula_keeps_its_digits() -> None:
    slow = compliance.approximate_natural_frequency(1e9, 1.0, 0.05)
    assert slow == pytest.approx(2e9 * -np.log(0.05), rel=1e-12)
    assert slow == pytest.approx(compliance.natural_frequency_from_settling_time(1e9, 1.0, 0.05))


@pytest.mark.parametrize("zeta", [0.4, 1.0, 2.5])
def test_damping_for_a_settling_time_makes_a_mount_settle_then(zeta: float) -> None:
    stiffness, time = 800.0, 0.25
    damping = compliance.damping_from_settling_time(zeta, stiffness, time, fraction=0.05)
    omega = compliance.natural_frequency_from_settling_time(zeta, time, fraction=0.05)
    inertia = stiffness / omega**2  # of the load that settles like this on that spring
    assert damping == pytest.approx(
        compliance.damping_from_ratio(zeta, stiffness, inertia), rel=1e-14
    )
    solution = simulate_free_motion(damping, stiffness, inertia, 2.0 * time, crossings(0.05))
    assert max(map(np.max, filter(len, solution.t_events))) == pytest.approx(time, rel=1e-8)


@pytest.mark.parametrize("zeta", [0.02, 0.2, 0.6])
def test_damping_ratio_is_recovered_from_measured_peaks(zeta: float) -> None:
    damping = compliance.damping_from_ratio(zeta, stiffness=9.0, inertia=1.0)
    solution = simulate_free_motion(damping, 9.0, 1.0, 10.0, [lambda t, s: s[1]])
    peaks = solution.y_events[0][1::2, 0]  # every second one is on the side of the start
    ratio = peaks[1] / peaks[0]
    assert ratio == pytest.approx(compliance.decay_ratio(zeta), rel=1e-7)
    assert compliance.damping_ratio_from_decay_ratio(ratio) == pytest.approx(zeta, rel=1e-7)


@given(st.floats(0.0, 0.99))
def test_decay_ratio_and_damping_ratio_are_inverse(zeta: float) -> None:
    found = compliance.damping_ratio_from_decay_ratio(compliance.decay_ratio(zeta))
    assert found == pytest.approx(zeta, rel=1e-9, abs=1e-15)


def test_logarithmic_decrement_is_the_decay_of_one_period() -> None:
    assert compliance.logarithmic_decrement(np.exp(-0.3)) == pytest.approx(0.3, rel=1e-14)
    zeta = 0.3
    period = 2.0 * np.pi / np.sqrt(1.0 - zeta**2)
    assert compliance.logarithmic_decrement(compliance.decay_ratio(zeta)) == pytest.approx(
        zeta * period, rel=1e-14
    )


def test_without_damping_the_decrement_is_zero() -> None:
    assert str(compliance.logarithmic_decrement(1.0)) == "0.0"
    assert compliance.decay_ratio(0.0) == 1.0


@for_each(
    ("call", "name"),
    [
        (lambda: compliance.stiffness_from_load(0.0, 1.0), "load"),
        (lambda: compliance.stiffness_from_load(1.0, [1.0, -1.0]), "displacement"),
        (lambda: compliance.stiffness_from_frequency(-1.0, 1.0), "inertia"),
        (lambda: compliance.stiffness_from_frequency(1.0, np.nan), "natural_frequency"),
        (lambda: compliance.natural_frequency(-1.0, 1.0), "stiffness"),
        (lambda: compliance.natural_frequency(1.0, 0.0), "inertia"),
        (lambda: compliance.damping_from_ratio(-0.1, 1.0, 1.0), "damping_ratio"),
        (lambda: compliance.damping_from_ratio(1.0, np.inf, 1.0), "stiffness"),
        (lambda: compliance.damping_from_settling_time(1.0, -1.0, 1.0), "stiffness"),
        (lambda: compliance.damping_from_settling_time(0.0, 1.0, 1.0), "damping_ratio"),
        (lambda: compliance.damping_ratio(1.0, 0.0, 1.0), "stiffness"),
        (lambda: compliance.damping_ratio(-1.0, 1.0, 1.0), "damping"),
        (lambda: compliance.settling_time(0.0, 1.0), "damping_ratio"),
        (lambda: compliance.settling_time(0.5, -1.0), "natural_frequency"),
        (lambda: compliance.settling_time(0.5, 1.0, 1.0), "fraction"),
        (lambda: compliance.settling_time(0.5, 1.0, 0.0), "fraction"),
        (lambda: compliance.settling_time([0.5, 0.6], 1.0), "damping_ratio"),  # type: ignore[arg-type]
        (lambda: compliance.natural_frequency_from_settling_time(0.5, 0.0), "settling_time"),
        (lambda: compliance.approximate_natural_frequency(0.5, 1.0, 2.0), "fraction"),
        (lambda: compliance.decay_ratio(1.0), "damping_ratio"),
        (lambda: compliance.logarithmic_decrement(0.0), "decay_ratio"),
        (lambda: compliance.damping_ratio_from_decay_ratio(1.5), "decay_ratio"),
        (lambda: compliance.stiffness_from_load("heavy", 1.0), "load"),
    ],
)
def test_impossible_numbers_are_refused_by_name(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match=rf"from {name}\b"):
        call()


@for_each("zeta", [0.7, 0.85, 0.999])
def test_where_no_formula_holds_the_exact_function_is_offered(zeta: float) -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="natural_frequency_from_settling_time"):
        compliance.approximate_natural_frequency(zeta, 1.0)


def test_an_unknown_envelope_is_refused() -> None:
    with pytest.raises(fx.errors.ValueRefusedError, match="'peaks', 'tangent'; found 'round'"):
        compliance.approximate_natural_frequency(0.5, 1.0, envelope="round")  # type: ignore[arg-type]
