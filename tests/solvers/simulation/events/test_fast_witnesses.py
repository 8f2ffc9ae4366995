"""Witness functions that are flat, fast or short: what is found, and what is a warning."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.systems.simulation import Clockwork, Flow, clock, hits, together
from tests.support.tiers import thinned

READINGS = pytest.mark.parametrize("compiled", [True, "python", False])


@pytest.mark.full
@READINGS
@pytest.mark.parametrize("moving", [False, True], ids=["of time", "of the state"])
@pytest.mark.parametrize(
    "flat", [lambda s: s**3, lambda s: s * abs(s), lambda s: s**9, lambda s: 1e-200 * s**5]
)
def test_a_flat_zero_is_found(flat: Callable[[Any], Any], moving: bool, compiled: Any) -> None:
    flow = Flow(
        lambda t, x: [1.0], [0.0], watch=lambda t, x: flat((x[0] if moving else t) - 1.0 / 3.0)
    )
    assert hits(flow, 1.0, compiled=compiled) == pytest.approx([1.0 / 3.0], abs=1e-12)


@pytest.mark.full
@READINGS
@pytest.mark.parametrize("moving", [False, True], ids=["of time", "of the state"])
@pytest.mark.parametrize("phase", [0.0, 0.5 * math.pi, 2.0])
def test_all_crossings_of_a_fast_function_are_found_in_long_steps(
    phase: float, moving: bool, compiled: Any
) -> None:
    flow = Flow(
        lambda t, x: [1.0],
        [0.0],
        watch=lambda t, x: np.sin(40.0 * math.pi * (x[0] if moving else t) + phase),
    )
    expected = (math.pi * np.arange(1, 40) - phase % math.pi) / (40.0 * math.pi)
    assert hits(flow, 0.98, compiled=compiled) == pytest.approx(
        expected[expected < 0.98], abs=1e-12
    )


def test_crossings_of_a_fast_function_are_found_without_continuous_state() -> None:
    block = Clockwork(fx.diagrams.Witness(lambda context: math.sin(40.0 * math.pi * context.time)))
    fx.Simulator(block).advance_to(5.01)
    assert block.times == pytest.approx(0.025 * np.arange(1, 201), abs=1e-12)


def pulse(t: Any) -> Any:
    """Short pulses at 0.3 and 0.8, between which nothing moves."""
    return np.exp(-(((t - 0.3) / 1e-3) ** 2)) + np.exp(-(((t - 0.8) / 1e-3) ** 2)) - 0.5


@pytest.mark.full
@READINGS
@pytest.mark.parametrize("of_the_witness", thinned([False, True], fast=2))
def test_pulses_are_found_by_looking_often_enough(of_the_witness: bool, compiled: Any) -> None:
    class Pulses(Flow):
        """Watches pulses with an interval of its own."""

        def __init__(self) -> None:
            super().__init__(lambda t, x: [1.0], [0.0])
            witness = fx.diagrams.Witness(
                lambda context: pulse(context.time),
                max_check_interval=1e-3 if of_the_witness else math.inf,
            )
            self.declare_publish(self.note, witness)

    flow = Pulses()
    options = {} if of_the_witness else {"max_check_interval": 1e-3}
    half = 1e-3 * math.sqrt(math.log(2.0))
    expected = [0.3 - half, 0.3 + half, 0.8 - half, 0.8 + half]
    assert hits(flow, 1.0, compiled=compiled, **options) == pytest.approx(expected, abs=1e-9)


def test_a_long_step_is_looked_at_as_often_as_asked_for_up_to_its_end() -> None:
    flow = clock(lambda x: pulse(x - 4.2))
    found = hits(flow, 4.6, method="rk4", step=4.6, max_check_interval=1e-3, compiled=False)
    half = 1e-3 * math.sqrt(math.log(2.0))
    assert found == pytest.approx([4.5 - half, 4.5 + half], abs=1e-9)


@pytest.mark.full
def test_the_interval_means_the_same_in_every_call() -> None:
    flow = Flow(lambda t, x: [1.0], [0.0], watch=lambda t, x: pulse(t), update=lambda t, x: [0.0])
    often: dict[str, Any] = {"max_check_interval": 1e-3}
    result = fx.simulate(flow, 1.0, **often)
    assert result.statistics.witness_events == 4
    found = fx.sweep(flow, {"x": np.zeros((2, 1))}, 1.0, **often)
    assert found.final_states[:, 0] == pytest.approx([1.0 - flow.hits[3]] * 2)


@pytest.mark.parametrize("size", [1.0, 0.01])
def test_a_function_that_varies_too_fast_to_be_watched_is_a_warning(size: float) -> None:
    flow = clock(lambda x: size * (1.5 + np.sin(6000.0 * math.pi * x)))
    with pytest.warns(UserWarning, match=r"'flow\.note' may have missed.*max_check_interval"):
        hits(flow, 1.0, method="rk4", step=1.0)


def test_the_warning_names_no_other_function() -> None:
    fast = clock(lambda x: 1.5 + np.sin(6000.0 * math.pi * x), name="fast")
    calm = clock(lambda x: x + 1.0, name="calm")
    with pytest.warns(UserWarning, match=r"'fast\.note' may have missed") as warned:
        fx.Simulator(together(fast, calm), method="rk4", step=1.0).advance_to(1.0)
    assert "calm" not in str(warned[0].message)


def test_corners_and_jumps_are_no_reason_to_warn() -> None:
    corner = clock(lambda x: abs(x - 0.4), name="corner")
    jump = clock(lambda x: np.where(x < 0.6, 1.0, 0.5), name="jump")
    both = clock(lambda x: np.where(x < 0.7, 1.0, -1.0), name="both")
    fx.Simulator(together(corner, jump, both), method="rk4", step=1.0).advance_to(1.0)
    assert (corner.hits, jump.hits) == ([], [])
    assert both.hits == pytest.approx([0.7])


@pytest.mark.parametrize("compiled", [True, False])
def test_jumps_in_short_steps_are_no_reason_to_warn(compiled: bool) -> None:
    """Late in a run, the shortest stretches of a step are as long as where slopes are taken."""
    flow = clock(lambda x: np.where(np.floor(x / 7.3e-3) % 2.0 < 1.0, 0.01, 0.05))
    simulator = fx.Simulator(flow, method="rk4", step=2e-3, compiled=compiled)
    simulator.context.time = 1000.0
    simulator.advance_to(1001.0)
    assert flow.hits == []


def test_a_steep_change_of_sign_is_found_and_no_reason_to_warn() -> None:
    for place in 0.7 + 1e-7 * np.arange(5):
        steep = clock(partial(lambda at, x: 0.5 * np.tanh((at - x) / 5e-7), place))
        assert hits(steep, 1.0, method="rk4", step=1.0) == pytest.approx([place], abs=1e-12)
