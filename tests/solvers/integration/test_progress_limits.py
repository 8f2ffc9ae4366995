"""Long runs are patient work; chattering is not."""

from __future__ import annotations

import math

from flexure.solvers.integration.guard.progress_limits import Limits, Pace


def report(pace: Pace, start: float, step: float, steps: int) -> tuple[int, str | None]:
    """Take equal steps until the pace is refused; return how many and why."""
    for k in range(1, steps + 1):
        lack = pace.count(start + k * step)
        if lack is not None:
            return k, lack
    return steps, None


def test_a_million_equal_steps_are_fine() -> None:
    assert report(Pace(0.0, 1.0), 0.0, 1e-6, 1_000_000) == (1_000_000, None)


def test_a_pace_that_needs_ten_million_steps_is_fine() -> None:
    assert report(Pace(0.0, 1.0), 0.0, 1e-7, 30_000) == (30_000, None)


def test_a_worse_pace_is_refused_the_earlier_the_worse_it_is() -> None:
    refused = [report(Pace(0.0, 1.0), 0.0, 1.0 / ahead, 30_000)[0] for ahead in (1e8, 3e8, 1e10)]
    assert refused == [11_000, 4_000, 1_000]


def test_a_pause_in_a_fast_run_is_noticed() -> None:
    pace = Pace(0.0, 10.0)
    assert report(pace, 0.0, 1e-3, 5_000) == (5_000, None)
    taken, lack = report(pace, 5.0, 1e-13, 30_000)
    assert taken <= 2_000
    assert lack is not None
    assert "1000 steps" in lack


def test_a_short_burst_of_tiny_steps_is_fine() -> None:
    pace, t = Pace(0.0, 10.0), 0.0
    for _ in range(20):
        assert report(pace, t, 1e-7, 900)[1] is None
        assert report(pace, t + 9e-5, 1e-2, 40)[1] is None
        t += 9e-5 + 0.4


def test_time_that_stands_still_is_refused_first() -> None:
    taken, lack = report(Pace(0.0, 1.0), 0.5, 0.0, 30_000)
    assert taken == 2_000  # the first thousand reached 0.5 s
    assert lack == "1000 steps that advanced by 0 s, and at that pace inf more to go"


def test_steps_of_the_wanted_length_are_never_refused() -> None:
    wanted = Pace(0.0, 1.0, deliberate=1e-12)
    assert report(wanted, 0.0, 0.9e-12, 30_000) == (30_000, None)
    assert report(Pace(0.0, 1.0, deliberate=1e-10), 0.0, 1e-12, 30_000)[0] == 1_000


def test_half_of_the_wanted_length_is_enough_and_less_is_not() -> None:
    half = Pace(0.0, 1.0, deliberate=2.0**-39)
    assert report(half, 0.0, 2.0**-40, 30_000) == (30_000, None)
    less = Pace(0.0, 1.0, deliberate=2.0**-39)
    assert report(less, 0.0, 0.999 * 2.0**-40, 30_000)[0] == 1_000


def looked_at(step: float, deliberate: float = math.inf) -> list[int]:
    """Take equal steps up to the 20th stride; list the steps with which a look around begins."""
    pace, found = Pace(0.0, 1.0, deliberate=deliberate), []
    for k in range(20_001):
        if k > 0:
            assert pace.count(k * step) is None
        pace.watch(k * step)  # between strides this changes nothing
        if pace.looks > 0:
            found.append(k)
            pace.looks = 0
    return found


def test_a_poor_pace_is_looked_into_after_1_2_4_8_and_16_strides() -> None:
    after = [1_000, 2_000, 4_000, 8_000, 16_000]
    assert looked_at(1e-6) == after  # a million steps are more than a thousandth of the limit
    assert looked_at(1.9e-5) == after[:2]  # 50,600 are just as well, 48,600 no more
    assert looked_at(2.1e-5) == []
    assert looked_at(1e-6, deliberate=1e-6) == []


def test_the_rule_can_be_changed_and_switched_off() -> None:
    strict = Limits(window=200, steps_ahead=1000.0)
    assert report(Pace(0.0, 1.0, strict), 0.0, 1e-4, 5_000)[0] == 30
    patient = Limits(steps_ahead=math.inf)
    assert report(Pace(0.0, 1.0, patient), 0.0, 1e-30, 30_000)[1] is None
