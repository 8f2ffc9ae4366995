"""Blocks with limits, resets, latches and switches, in every method and reading.

All of them are in one diagram, so that each way of running it costs one run. What they are compared
with is computed by hand: states with limits move monotonically between the zeros of their inputs,
and sampled signals are constant between samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ZenoError
from tests.support.native.javascript_runs import simulate_all
from tests.support.systems.event_systems import Act, Actor, Watch
from tests.support.tiers import thinned

Array = npt.NDArray[np.float64]

END, PERIOD, OMEGA = 2.0, 0.3, 2.0 * math.pi
TIMES = np.array([0.13, 0.41, 0.72, 1.09, 1.37, 1.46, 1.66, 1.83, END])
LEVEL, ERROR, AFTER, TURN = 0.2, 1.0, -0.5, 1.13  # limits of a state; steps of an error


class Latch(fx.LeafSystem):
    """Counts how often its input rises through one half; y is the count."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", 1)
        self.count = self.declare_discrete_state("count", 0.0)
        self.declare_vector_output("y", 1, self.count, prerequisites=[self.count])
        self.declare_discrete_update(self.add, fx.diagrams.Witness(self.calc_height, "rising"))

    def calc_height(self, context: Any) -> Any:
        return self.u(context)[0] - 0.5

    def add(self, context: Any) -> dict[Any, Any]:
        return {self.count: self.count(context) + 1.0}


def pid(name: str, way: Any) -> fx.PIDController:
    return fx.PIDController(name, kp=1.0, ki=2.0, lower=-1.5, upper=1.5, anti_windup=way)


@cache
def everything() -> fx.Diagram:
    """Build each chain of blocks behind one of the sources."""
    builder = fx.DiagramBuilder("limits")
    sources = {
        "wave": fx.Sine("wave", amplitude=2.0, frequency=OMEGA),
        "held": fx.ZeroOrderHold("held", PERIOD),
        "one": fx.Constant("one", 1.0),
        "error": fx.Step("error", at=TURN, initial=ERROR, to=AFTER),
    }
    builder.add_all(*sources.values(), fx.Constant("zero", 0.0))
    builder.connect("wave.y", "held.u")
    chains: dict[str, list[list[fx.System]]] = {
        "wave": [
            [fx.Integrator("stopped", lower=-LEVEL, upper=LEVEL)],
            [fx.Relay("switch", 0.5, -0.5), fx.Integrator("switched")],
            [fx.Saturation("bent", -0.5, 0.5), fx.Integrator("saturated")],
            [fx.DeadZone("dead", -0.5, 0.5), fx.Integrator("outside")],
            [fx.RateLimiter("slowed", rising=3.0, falling=2.0, period=PERIOD)],
        ],
        "held": [
            [fx.Integrator("sampled", lower=-LEVEL, upper=LEVEL)],
            [
                *(fx.Relay("relay", 0.5, -0.5), fx.Relay("second", 0.75, 0.25, 2.0, -1.0)),
                *(Latch("latch"), Latch("once")),
                fx.Integrator("relayed", lower=-9.0),
            ],
        ],
        "error": [
            [fx.RateLimiter("limiter", rising=2.0, falling=2.0, time_constant=0.05, initial=0.9)]
        ],
    }
    for source, rows in chains.items():
        for row in rows:
            builder.add_all(*row)
            builder.connect_chain(sources[source], *row)
    for way in ("conditional", "back_calculation"):
        controller = builder.add(pid(way, way))
        builder.connect("error.y", controller.setpoint)
        builder.connect("zero.y", controller.measurement)
    slow = fx.PIDController(
        "slow", kp=1.0, ki=2.0, lower=-1.5, upper=1.5, anti_windup="conditional", period=PERIOD
    )
    builder.add(slow)
    builder.connect("held.y", slow.setpoint)
    builder.connect("zero.y", slow.measurement)
    for name, upper in (("reset", np.inf), ("reset_limited", 0.25)):
        block = builder.add(fx.Integrator(name, upper=upper, reset=True))
        builder.connect("one.y", block.u)
        builder.connect("held.y", block.reset)
    builder.connect("second.y", builder.add(fx.Integrator("total", lower=-1.0, upper=0.5)).u)
    return builder.build()


# By hand -----------------------------------------------------------------------------------------


def wave(time: Any) -> Any:
    return 2.0 * np.sin(OMEGA * time)


def integral_of_wave(time: Any) -> Any:
    return -2.0 / OMEGA * np.cos(OMEGA * time)


def held(time: float) -> float:
    """The latest sample that was taken before a time."""
    before = [k for k in range(20) if PERIOD * k < time]
    return float(wave(PERIOD * before[-1])) if before else 0.0


def relays(value: float, first: float, second: float) -> tuple[float, float]:
    """Both relays, one behind the other, after a value of their input."""
    first = 1.0 if value >= 0.5 else 0.0 if value <= -0.5 else first
    return first, 1.0 if first >= 0.75 else 0.0 if first <= 0.25 else second


def of_samples(time: float) -> dict[str, float]:
    """What follows the held samples, from one sample to the next."""
    found = dict.fromkeys(("sampled", "reset", "reset_limited", "relayed", "total"), 0.0)
    first = second = count = value = 0.0
    edges = [*(PERIOD * k for k in range(20) if PERIOD * k < time), time]
    for begin, end in pairwise(edges):
        width, last, value = end - begin, value, float(wave(begin))
        was_on, (first, second) = second, relays(value, first, second)
        count += second > was_on
        if value >= 0.5 > last:
            found["reset"] = found["reset_limited"] = 0.0
        found["sampled"] = float(np.clip(found["sampled"] + value * width, -LEVEL, LEVEL))
        found["reset"] += width
        found["reset_limited"] = min(found["reset_limited"] + width, 0.25)
        found["relayed"] += min(count, 1.0) * width
        level = 2.0 if second else -1.0
        found["total"] = float(np.clip(found["total"] + level * width, -1.0, 0.5))
    return {**found, "latch": count}


def of_wave(time: float) -> dict[str, float]:
    """What follows the sine: monotone between its zeros, on and off at known times."""
    stopped = 0.0
    edges = [*(k / 2 for k in range(8) if k / 2 < time), time]
    for begin, end in pairwise(edges):
        moved = integral_of_wave(end) - integral_of_wave(begin)
        stopped = float(np.clip(stopped + moved, -LEVEL, LEVEL))
    delay = math.asin(0.25) / OMEGA
    on = [max(min(time, k + 0.5 + delay) - (k + delay), 0.0) for k in range(4)]
    fine = np.linspace(0.0, time, 200_001)
    bent = float(np.trapezoid(np.clip(wave(fine), -0.5, 0.5), fine))
    whole = float(integral_of_wave(time) - integral_of_wave(0.0))
    return {"stopped": stopped, "switched": sum(on), "saturated": bent, "outside": whole - bent}


def of_error(time: float) -> dict[str, float]:
    """What follows the error that turns around."""
    if time < TURN:
        limiter = ERROR - 0.1 * math.exp(-time / 0.05)
    else:
        corner = TURN + (ERROR - AFTER - 0.1) / 2.0
        fall = ERROR - 2.0 * (time - TURN)
        limiter = fall if time < corner else AFTER + 0.1 * math.exp(-(time - corner) / 0.05)
    found = {"limiter": limiter}
    for way, tracking in (("conditional", 0.005), ("back_calculation", 0.5)):
        until = min(time, TURN)  # z reaches v = 1.5 at t = 0.25, and goes on to an excess e ki Tₜ
        beyond = max(until - 0.25, 0.0)
        z = min(until, 0.25) + tracking * (1.0 - math.exp(-beyond / tracking))
        z += AFTER * max(time - TURN, 0.0)
        error = ERROR if time < TURN else AFTER
        found[way] = min(error + 2.0 * z, 1.5)
    return found


def of_clock(time: float) -> dict[str, float]:
    """What is computed together with the samples, from what was held before."""
    slowed = integral = output = 0.0
    for k in range(40):
        now = PERIOD * k
        if now >= time:
            break
        slowed += float(np.clip(wave(now) - slowed, -2.0 * PERIOD, 3.0 * PERIOD))
        error = held(now)
        total = error + 2.0 * (integral + PERIOD * error)
        output = float(np.clip(total, -1.5, 1.5))
        if not (abs(total) > 1.5 and total * error > 0.0):
            integral += PERIOD * error
    return {"slowed": slowed, "slow": output}


@cache
def by_hand() -> dict[str, Array]:
    rows = [{**of_samples(t), **of_wave(t), **of_error(t), **of_clock(t)} for t in TIMES.tolist()]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


OUTPUTS = {"conditional": "u", "back_calculation": "u", "slow": "u"}


def wrong(sample: Callable[[str], Any], tolerance: float = 2e-4) -> dict[str, float]:
    """Return the largest error of each block that errs."""
    errors = {
        name: float(np.max(np.abs(sample(f"{name}.{OUTPUTS.get(name, 'y')}").ravel() - expected)))
        for name, expected in by_hand().items()
    }
    return {name: error for name, error in errors.items() if not error < tolerance}


# The ways of running it --------------------------------------------------------------------------

NATIVE = ("auto", "RK45", "RK23", "DOP853", "DormandPrince", "Rodas5P", "ESDIRK4")
WAYS: list[tuple[str, Any]] = [
    *((method, True) for method in NATIVE),
    *(("auto", "python"), ("RK45", False), ("Rodas5P", "python")),
    *((method, "python") for method in ("Radau", "BDF", "LSODA")),
]


@pytest.mark.parametrize(("method", "compiled"), thinned(WAYS, fast=3))
def test_limits_and_switches_are_those_by_hand(method: str, compiled: Any) -> None:
    slow = compiled is not True
    result = fx.simulate(
        everything(), END, method=method, compiled=compiled, rtol=1e-5 if slow else None
    )
    assert wrong(lambda path: result.sample(path, TIMES), 2e-3 if slow else 2e-4) == {}
    if compiled is True:
        assert result.statistics.native_steps == result.statistics.steps


def test_a_sweep_gives_the_numbers_by_hand() -> None:
    signals = [f"{name}.{OUTPUTS.get(name, 'y')}" for name in by_hand()]
    sweep = fx.sweep(everything(), {"one.value": [1.0, 1.0]}, END, times=TIMES, signals=signals)
    for run in range(2):
        assert wrong(lambda path, run=run: sweep[path][run]) == {}  # type: ignore[misc]


def test_javascript_gives_the_numbers_by_hand() -> None:
    options = [{"tFinal": END, "times": TIMES.tolist()}]
    models = {m: fx.to_javascript(everything(), method=m) for m in ("RK45", "Rodas5P")}
    found = simulate_all({method: (model, options) for method, model in models.items()})
    for (result,) in found.values():
        assert wrong(lambda path, result=result: result["signals"][path]) == {}  # type: ignore[misc]


# One by one --------------------------------------------------------------------------------------

COMPILED = pytest.mark.parametrize("compiled", ["native", "python", False])


def chain(*blocks: fx.System) -> fx.Diagram:
    builder = fx.DiagramBuilder("chain")
    builder.add_all(*blocks)
    builder.connect_chain(*blocks)
    return builder.build()


@COMPILED
@pytest.mark.parametrize("record", [True, False])
def test_a_run_stops_at_the_sample_that_is_to_stop_it(compiled: Any, record: bool) -> None:
    system = chain(
        *(fx.Ramp("ramp", initial=-0.5), fx.ZeroOrderHold("hold", PERIOD)),
        fx.StopWhen("stop", "it is high"),
    )
    builder = fx.DiagramBuilder("moving")
    builder.add_all(system, fx.Integrator("time"), fx.Constant("one", 1.0))
    builder.connect_chain("one", "time")
    simulator = fx.Simulator(builder.build(), compiled=compiled, record=record, method="RK45")
    simulator.advance_to(2.0)
    assert simulator.context.time == pytest.approx(0.6)
    assert simulator.termination == fx.diagrams.Terminate("it is high")
    assert simulator.context.get("chain.hold.y") == pytest.approx([0.1])
    assert simulator.history is None or simulator.history.end == simulator.context.time
    simulator.advance_to(2.0)
    assert simulator.context.time == 2.0
    assert simulator.context.get("time.y") == pytest.approx([2.0])
    assert simulator.statistics.witness_events == 1


@COMPILED
def test_values_that_are_set_between_two_runs_switch_at_once(compiled: Any) -> None:
    builder = fx.DiagramBuilder("steered")
    relay = fx.Relay("relay", 0.5, -0.5)
    builder.add_all(relay, Latch("latch"), fx.Integrator("on"))
    builder.connect_chain("relay", "on")
    builder.add(fx.Integrator("tank", upper=1.0))
    builder.connect("relay.y", "tank.u")
    builder.connect("relay.y", "latch.u")
    builder.export_input(relay.u, name="u")
    system = builder.build()
    simulator = fx.Simulator(system, compiled=compiled, method="RK45")
    context = simulator.context
    for end, value, on, tank, count in (
        *((1.0, 0.0, 0.0, 0.0, 0.0), (2.0, 0.6, 1.0, 1.0, 1.0), (3.0, 0.0, 2.0, 1.0, 1.0)),
        *((4.0, -0.6, 2.0, 1.0, 1.0), (5.0, 0.6, 3.0, 1.0, 2.0)),
    ):
        system.input_port("u").fix(context, value)
        simulator.advance_to(end)
        found = [*context.get("on.y"), *context.get("tank.y"), *context.get("latch.y")]
        assert found == pytest.approx([on, tank, count], abs=1e-12)
    context.set("tank.x", 0.25)
    simulator.advance_to(5.5)
    assert context.get("tank.y") == pytest.approx([0.75], abs=1e-12)


@COMPILED
def test_a_relay_begins_in_the_mode_of_values_that_others_initialize(compiled: Any) -> None:
    system = chain(
        *(fx.Constant("height", 5.0), fx.FilteredDerivative("rate", 0.1)),
        *(fx.Relay("relay", 0.5, -0.5), fx.Integrator("on")),
    )
    result = fx.simulate(system, 1.0, compiled=compiled, method="RK45")
    assert result["on.y"][-1] == 0.0


@COMPILED
def test_an_endless_chain_of_switches_ends_with_the_names_of_the_blocks(compiled: Any) -> None:
    relay = fx.Relay("relay", 0.5, -0.5, on_value=-1.0, off_value=1.0)
    builder = fx.DiagramBuilder("buzzer")
    builder.add_all(relay, fx.Integrator("rest"))
    builder.connect("relay.y", "relay.u")
    builder.connect("relay.y", "rest.u")
    with pytest.raises(ZenoError, match=r"t = 0: .* go on to change values: 'relay\.update_mode'"):
        fx.simulate(builder.build(), 1.0, compiled=compiled, method="RK45")


@COMPILED
def test_an_endless_chain_of_witness_events_ends_with_their_names(compiled: Any) -> None:
    def turn(t: Any, x: Any, d: Any) -> Any:
        return {"d": [-d[0], d[1], d[2]]}

    actor = Actor(
        Act("discrete", Watch(lambda t, x, d: d[0]), turn),
        Act("discrete", fx.diagrams.Periodic(0.5, 0.5), turn),
        rate=lambda t, x, d: d[0] - x,
        numbers=[1.0, 0.0, 0.0],
    )
    with pytest.raises(ZenoError, match=r"t = 0\.5: .* to cause each other: 'actor\.handle'"):
        fx.simulate(actor, 1.0, compiled=compiled, method="RK45")


@pytest.mark.full
@pytest.mark.parametrize("method", ["auto", "Rodas5P", "Radau"])
def test_an_integrator_leaves_its_limit_however_short_the_way(method: str) -> None:
    """Inputs that touch zero, go below it for an instant, or rest there before they leave."""
    short = 0.1  # while the state is held, nothing else tells how fast the input varies
    for depth in (0.0, 1e-13, 1e-9, 1e-5, 1e-2):
        system = chain(
            fx.Sine("wave", frequency=OMEGA, offset=1.0 - depth), fx.Integrator("tank", upper=0.5)
        )
        result = fx.simulate(system, 3.0, method=method, max_step=short)
        phase = math.acos(1.0 - depth) / OMEGA  # half of the time below zero, around 0.75 s
        gap = 2.0 * (math.sin(OMEGA * phase) / OMEGA - (1.0 - depth) * phase)
        assert result["tank.y"].max() == 0.5
        assert result["tank.y"][-1] == 0.5
        low = result.sample("tank.y", [0.75 + phase, 1.75 + phase])
        assert low == pytest.approx([0.5 - gap] * 2, abs=1e-6)
    dead = chain(
        *(fx.Sine("wave", frequency=OMEGA), fx.DeadZone("dead", -0.5, 0.5)),
        fx.Integrator("tank", lower=-0.01, upper=0.01),
    )
    result = fx.simulate(dead, 1.5, method=method, max_step=short)
    found = result.sample("tank.y", [0.5, 1.0, 1.5])
    assert found == pytest.approx([0.01, -0.01, 0.01], abs=1e-12)
