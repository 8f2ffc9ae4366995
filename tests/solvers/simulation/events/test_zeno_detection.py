"""Bouncing balls and relays: events that pile up at one instant, and those that do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ZenoError
from flexure.diagrams.values.events import Direction
from flexure.solvers.simulation.events.due_events import PileUp
from tests.support.systems.simulation import ROUNDING, ball, clock, hits, method_options

# Bouncing balls ----------------------------------------------------------------------------------


def impact_times(
    restitution: float, number: int, *, height: float = 1.0, gravity: float = 9.81
) -> np.ndarray:
    """Impacts of a ball that is dropped, in closed form."""
    fall = math.sqrt(2.0 * height / gravity)
    hops = 2.0 * fall * restitution ** np.arange(1, number)
    return np.cumsum([fall, *hops])


@pytest.mark.parametrize("direction", ["falling", "either"])
@pytest.mark.parametrize("restitution", [0.5, 0.65, 0.8])
def test_impacts_of_a_ball_down_to_tiny_hops(restitution: float, direction: Direction) -> None:
    hops = math.ceil(math.log(2e-5) / math.log(restitution))
    expected = impact_times(restitution, hops)
    flow = ball(restitution, direction=direction)
    simulator = fx.Simulator(flow, method="RK45")
    simulator.advance_to(expected[-1] + 0.1 * (expected[-1] - expected[-2]) * restitution)
    assert len(flow.hits) == hops
    np.testing.assert_allclose(flow.hits, expected, rtol=1e-12, atol=1e-12)
    height = float(flow.x(simulator.context)[0])
    assert 0.0 < height < 1e-8


@pytest.mark.parametrize("method", ["auto", "RK45", "DOP853", "Rodas5P", "Radau", "rk2", "rk4"])
def test_a_ball_bounces_several_times_inside_of_one_long_step(method: str) -> None:
    expected = impact_times(0.7, 6)
    flow = ball(0.7)
    options: dict[str, Any] = {"step": 2.3} if method.startswith("rk") else {}
    simulator = fx.Simulator(flow, method=method, **options)
    simulator.advance_to(2.3)
    np.testing.assert_allclose(flow.hits, expected, rtol=1e-9)
    if method.startswith("rk"):
        assert simulator.statistics.steps == 7


@pytest.mark.parametrize("restitution", [0.5, 0.65, 0.8, 0.95])
def test_a_ball_that_never_comes_to_rest_ends_in_an_error_at_its_last_instant(
    restitution: float,
) -> None:
    flow = ball(restitution)
    last = impact_times(restitution, 2000)[-1]
    simulator = fx.Simulator(flow)
    with pytest.raises(ZenoError, match=r"'ball\.change' closer and closer.*below a speed") as e:
        simulator.advance_to(last + 1.0)
    assert e.value.time == simulator.context.time == pytest.approx(last, rel=1e-5)
    assert abs(flow.x(simulator.context)[0]) < 1e-9


def test_a_ball_that_is_put_to_rest_comes_to_rest() -> None:
    class Resting(fx.LeafSystem):
        """A ball that a slow impact ends."""

        def __init__(self) -> None:
            super().__init__("ball")
            self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
            self.falling = self.declare_discrete_state("falling", 1.0)
            self.declare_unrestricted_update(self.bounce, fx.diagrams.Witness(self.x.q, "falling"))

        def calc_time_derivatives(self, context: Any) -> Any:
            return self.falling(context) * [self.x.v(context)[0], -9.81]

        def bounce(self, context: Any) -> Any:
            speed = -0.5 * self.x.v(context)[0]
            if speed < 1e-3:
                return {self.x: [0.0, 0.0], self.falling: 0.0}
            return {self.x: [0.0, speed]}

    simulator = fx.Simulator(Resting())
    simulator.advance_to(100.0)
    assert simulator.context.get("x").tolist() == [0.0, 0.0]


# Zeno --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "Rodas5P", "Radau", "LSODA", "rk4"])
def test_a_relay_without_hysteresis_ends_in_an_error(method: str) -> None:
    class Relay(fx.LeafSystem):
        """ẋ = -sign, where the sign follows x at once."""

        def __init__(self) -> None:
            super().__init__("relay")
            self.x = self.declare_continuous_state(z=1, default=[1.0])
            self.sign = self.declare_discrete_state("sign", 1.0)
            margin = fx.diagrams.Witness(
                lambda context: (self.x(context) * self.sign(context))[0], "falling"
            )
            self.declare_discrete_update(lambda context: {self.sign: -self.sign(context)}, margin)

        def calc_time_derivatives(self, context: Any) -> Any:
            return -self.sign(context)

    simulator = fx.Simulator(Relay(), **method_options(method, 0.3))
    with pytest.raises(ZenoError, match=r"'relay\.<lambda>'.*give a relay some hysteresis") as e:
        simulator.advance_to(2.0)
    assert e.value.time == pytest.approx(1.0)
    assert simulator.context.get("x") == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize("period", [1e-1, 1e-3, 1e-6])
def test_fast_regular_events_are_no_pile_up(period: float) -> None:
    flow = clock(lambda x: np.sin(math.pi * x / period))
    found = hits(flow, 100.5 * period, max_step=0.4 * period)
    assert found == pytest.approx(period * np.arange(1.0, 101.0), rel=1e-9)


def test_a_hysteresis_relay_that_switches_often_is_no_pile_up() -> None:
    builder = fx.DiagramBuilder("heater")
    builder.add_all(
        fx.Relay("relay", 1e-4, -1e-4, on_value=1.0, off_value=-1.0), fx.Gain("gain", -1.0)
    )
    builder.add(fx.Integrator("tank"))
    builder.connect_chain("tank", "relay", "gain", "tank.u")
    simulator = fx.Simulator(builder.build(), monitor=lambda context: None)
    simulator.advance_to(0.05)
    assert simulator.statistics.witness_events == 250
    assert abs(simulator.context.get("tank.x")[0]) <= 1e-4 + ROUNDING


def test_events_of_a_chirp_are_no_pile_up() -> None:
    flow = clock(lambda x: np.sin(math.pi * x**2))
    found = hits(flow, 10.02, max_step=0.02)
    assert found == pytest.approx(np.sqrt(np.arange(1.0, 101.0)), abs=1e-9)


@pytest.mark.parametrize(
    "times",
    [
        [1e-3 * k for k in range(5000)],
        [1e6 + 1e-5 * k for k in range(5000)],
        [math.sqrt(k) for k in range(5000)],
        [math.log(k) for k in range(1, 5000)],
        [1.0 - 0.5**k for k in range(15)],
        [k // 10 for k in range(5000)],
    ],
    ids=["regular", "regular and late", "square root", "logarithm", "few", "tens at once"],
)
def test_times_that_do_not_pile_up(times: list[float]) -> None:
    pile_up = PileUp()
    assert not any(pile_up.add(time) for time in times)


@pytest.mark.parametrize(
    "times",
    [
        [1.0 - 0.5**k for k in range(60)],
        [1e3 - 0.9**k for k in range(400)],
        [0.3] * 12,
        [0.3 + 1e-16 * k for k in range(12)],
        [*range(1000), *(1000.0 - 0.5**k for k in range(60))],
    ],
    ids=["halving", "late and slow", "one instant", "rounding", "after a regular time"],
)
def test_times_that_pile_up(times: list[float]) -> None:
    pile_up = PileUp()
    assert any(pile_up.add(time) for time in times)
