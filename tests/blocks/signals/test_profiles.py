"""Profiles: limits are kept, rates are those of the value, corners are where integrators stop."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, strategies as st

import flexure as fx
from flexure.blocks.signals.profiles import MinimumJerkProfile, TrapezoidalProfile
from flexure.diagrams.checks.errors import DeclarationError, ValueRefusedError
from tests.support.tiers import for_each

NUMBERS = st.floats(-10.0, 10.0)
LIMITS = st.floats(0.1, 10.0)


def at(block: Any, times: Any) -> Any:
    """Return value, velocity and acceleration at some times, one row each."""
    context = block.create_default_context()
    rows = []
    for time in np.atleast_1d(times):
        context.time = float(time)
        rows.append([float(port(context)[0]) for port in block.output_ports])
    return np.array(rows).T


def corners(block: Any) -> list[float]:
    context, found = block.create_default_context(), []
    context.time = -100.0
    while (time := block.calc_next_break_time(context)) < np.inf:
        found.append(time)
        context.time = time
    return found


def test_a_long_move_cruises() -> None:
    # 3 m with 2 m/s and 4 m/s²: 0.5 s and 0.5 m to speed up and to slow down, and 2 m in between.
    block = TrapezoidalProfile("move", 1.0, 5.0, 2.0, max_velocity=2.0, max_acceleration=4.0)
    assert corners(block) == [1.0, 1.5, 2.5, 3.0]
    y, velocity, acceleration = at(block, [0.0, 1.0, 1.25, 1.5, 2.0, 2.5, 2.75, 3.0, 9.0])
    np.testing.assert_allclose(y, [2.0, 2.0, 2.125, 2.5, 3.5, 4.5, 4.875, 5.0, 5.0], rtol=1e-15)
    np.testing.assert_allclose(velocity, [0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0])
    assert acceleration.tolist() == [0.0, 4.0, 4.0, 0.0, 0.0, -4.0, -4.0, 0.0, 0.0]


def test_a_short_move_is_triangular() -> None:
    block = TrapezoidalProfile("move", 0.0, -1.0, 0.0, max_velocity=9.0, max_acceleration=4.0)
    assert corners(block) == [0.0, 0.5, 1.0]
    y, velocity, acceleration = at(block, [0.25, 0.5, 0.75, 1.0])
    assert y.tolist() == [-0.125, -0.5, -0.875, -1.0]
    assert velocity.tolist() == [-1.0, -2.0, -1.0, 0.0]
    assert acceleration.tolist() == [-4.0, 4.0, 4.0, 0.0]


def test_no_move_at_all_stays() -> None:
    block = TrapezoidalProfile("move", 1.0, 3.0, 3.0)
    np.testing.assert_array_equal(at(block, [0.0, 1.0, 2.0]), [[3.0] * 3, [0.0] * 3, [0.0] * 3])


@pytest.mark.full
@given(NUMBERS, NUMBERS, NUMBERS, LIMITS, LIMITS)
def test_a_trapezoid_keeps_its_limits_and_ends_where_it_should(
    begin: float, to: float, initial: float, V: float, A: float
) -> None:
    block = TrapezoidalProfile("move", begin, to, initial, V, A)
    bends = corners(block)
    y, velocity, acceleration = at(block, np.linspace(bends[0] - 0.1, bends[-1] + 0.1, 60))
    assert np.all(np.abs(velocity) <= V * (1.0 + 1e-9))
    assert np.all(np.abs(acceleration) <= A)
    assert np.all(np.diff(y) * np.sign(to - initial) >= -1e-12)
    assert (y[0], y[-1], velocity[-1], acceleration[-1]) == (initial, to, 0.0, 0.0)
    # The shortest time: two ramps of V/A and the rest at V, or two of the root of D/A.
    distance = abs(to - initial)
    rest = distance - V**2 / A
    shortest = 2.0 * V / A + rest / V if rest > 0.0 else 2.0 * np.sqrt(distance / A)
    assert bends[-1] - begin == pytest.approx(shortest, abs=1e-12)


@pytest.mark.parametrize(
    "block",
    [
        TrapezoidalProfile("move", 0.5, 3.0, -1.0, 2.0, 5.0),
        TrapezoidalProfile("move", 0.5, -0.3, 0.2, 2.0, 5.0),
        MinimumJerkProfile("move", 0.5, -3.0, 1.0, 2.5),
    ],
    ids=["trapezoid", "triangle", "least jerk"],
)
def test_rates_are_those_of_the_value(block: Any) -> None:
    bends = corners(block)
    for left, right in pairwise(bends):
        inside = np.linspace(left, right, 9)[1:-1]
        for rate, integral in ((1, 0), (2, 1)):
            gained = [
                scipy.integrate.quad(lambda t, k=rate: at(block, t)[k, 0], inside[0], end)[0]
                for end in inside
            ]
            found = at(block, inside)[integral]
            np.testing.assert_allclose(found - found[0], gained, atol=1e-12)


def test_least_jerk_is_the_polynomial_that_meets_six_conditions() -> None:
    begin, to, initial, duration = 0.5, -3.0, 1.0, 2.5
    block = MinimumJerkProfile("reach", begin, to, initial, duration)
    powers = np.arange(6)
    rows = []
    for end in (0.0, 1.0):
        rows += [end**powers, powers * end ** np.maximum(powers - 1, 0)]
        rows.append(powers * (powers - 1) * end ** np.maximum(powers - 2, 0))
    polyval, polyder = np.polynomial.polynomial.polyval, np.polynomial.polynomial.polyder
    c = np.linalg.solve(rows, [initial, 0.0, 0.0, to, 0.0, 0.0])
    times = np.linspace(begin, begin + duration, 21)
    s = (times - begin) / duration
    found = at(block, times)
    np.testing.assert_allclose(found[0], polyval(s, c), atol=1e-13)
    np.testing.assert_allclose(found[1], polyval(s, polyder(c)) / duration, atol=1e-12)
    np.testing.assert_allclose(found[2], polyval(s, polyder(c, 2)) / duration**2, atol=1e-12)
    assert corners(block) == [begin, begin + duration]


def test_least_jerk_has_the_peaks_that_it_tells() -> None:
    block = MinimumJerkProfile("reach", 0.0, 2.0, 0.0, 4.0)
    _, velocity, acceleration = at(block, np.linspace(0.0, 4.0, 4001))
    assert velocity.max() == pytest.approx(15.0 / 8.0 * 2.0 / 4.0)
    assert acceleration.max() == pytest.approx(10.0 / np.sqrt(3.0) * 2.0 / 4.0**2, rel=1e-6)


@given(NUMBERS, NUMBERS, NUMBERS, LIMITS)
def test_least_jerk_begins_and_ends_exactly(
    begin: float, to: float, initial: float, duration: float
) -> None:
    block = MinimumJerkProfile("reach", begin, to, initial, duration)
    found = at(block, [begin, begin + duration])
    assert found[0].tolist() == [initial, to]
    assert not found[1:].any()


@pytest.mark.parametrize("compiled", [False, True])
def test_integrators_stop_at_the_corners(compiled: bool) -> None:
    move = TrapezoidalProfile("move", 0.3, 1.0, 0.0, max_velocity=0.7, max_acceleration=1.9)
    builder = fx.DiagramBuilder("bench")
    builder.add_all(move, fx.Integrator("speed"), fx.Integrator("place"))
    builder.connect("move.acceleration", "speed.u")
    builder.connect("speed.y", "place.u")
    result = fx.simulate(builder.build(), 3.0, compiled=compiled)
    assert set(corners(move)) <= set(result.time)
    # What is polynomial in between is integrated exactly.
    np.testing.assert_allclose(result["speed.y"], result["move.velocity"], atol=1e-12)
    np.testing.assert_allclose(result["place.y"], result["move.y"], atol=1e-12)


@for_each(
    ("make", "error"),
    [
        (lambda: TrapezoidalProfile("move", max_velocity=0.0), ValueRefusedError),
        (lambda: TrapezoidalProfile("move", max_acceleration=-1.0), ValueRefusedError),
        (lambda: MinimumJerkProfile("move", duration=0.0), ValueRefusedError),
        (lambda: MinimumJerkProfile("move", to=np.nan), ValueRefusedError),
        (lambda: TrapezoidalProfile("move", [0.0, 1.0], [1.0, 2.0, 3.0]), DeclarationError),
    ],
)
def test_arguments_without_meaning_are_refused(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("parameter", ["at", "to", "initial", "max_velocity", "max_acceleration"])
@pytest.mark.parametrize(
    ("limits", "curved"), [((0.7, 1.9), 1e-7), ((1.0, 1.0), 5e-6)], ids=["cruises", "just not"]
)
def test_sensitivities_to_a_profile_are_those_of_differences(
    parameter: str, limits: tuple[float, float], curved: float
) -> None:
    builder = fx.DiagramBuilder("bench")
    builder.add(TrapezoidalProfile("move", 0.3, 1.0, 0.0, *limits))
    builder.add(fx.FirstOrderLag("lag", 0.5))
    builder.connect("move.y", "lag.u")
    diagram, path = builder.build(), f"move.{parameter}"

    def final(change: float) -> float:
        context = diagram.create_default_context()
        context.set(path, context.get(path) + change)
        result = fx.simulate(diagram, 1.9, context=context, rtol=1e-10, atol=1e-12)
        return float(result["lag.x"].ravel()[-1])

    found = fx.parameter_sensitivity(diagram, path, 1.9).derivatives[path][-1]
    assert found.item() == pytest.approx((final(1e-5) - final(-1e-5)) / 2e-5, abs=curved)
