"""Runs in JavaScript are the runs of Python: the same steps, events, signals and verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from examples import compliant_door, dishwasher_door
from flexure.diagrams import Initialization, Periodic, PerStep, Settling, Terminate
from flexure.diagrams.checks.errors import FlexureError
from tests.blocks.forces.contacts.test_sticking_friction import incline
from tests.blocks.forces.on_joints.test_bearing_friction import pendulum
from tests.support.mechanics.mechanisms import MECHANISMS, random_contexts
from tests.support.native.javascript import options_of
from tests.support.native.javascript_runs import ask_models, simulate, simulate_all
from tests.support.systems.event_systems import (
    SITUATIONS,
    Act,
    Actor,
    Oscillator,
    Watch,
    logged,
    sampled,
)
from tests.support.tiers import thinned

TIMES = np.linspace(0.0, 2.3, 24)
#: With different numbers, as logs of steps end steps at clocks, and there are no logs there.
ALIKE = [name for name in SITUATIONS if name != "logged_at_every_step"]

Array = npt.NDArray[np.float64]


def wired(*blocks: fx.System, **wires: str) -> fx.Diagram:
    """Return a diagram of blocks, with a wire to the input of each that is named."""
    builder = fx.DiagramBuilder("wired")
    builder.add_all(*blocks)
    for block, source in wires.items():
        builder.connect(f"{source}.y", f"{block}.u")
    return builder.build()


def relayed() -> fx.System:
    """An update that runs before every motion, of which few change something."""
    heater = fx.Relay("heater", 0.4, -0.4, on_value=-1.0, off_value=1.0)
    return wired(fx.FirstOrderLag("room", time_constant=1.3), heater, room="heater", heater="room")


def stepped() -> fx.System:
    """An update at every step that switches with hysteresis, and what a switch causes."""

    def switch(t: Any, x: Any, d: Any) -> Any:
        off = np.where(x[0] > 0.4, 0.0, d[0])
        return {"d": [np.where(x[0] < -0.4, 1.0, off), d[1], d[2]]}

    return Actor(
        Act("discrete", PerStep(), switch),
        Act(
            "discrete",
            Watch(lambda t, x, d: d[0] - 0.5),
            lambda t, x, d: {"d": [d[0], d[1] + 1.0, t]},
        ),
        rate=lambda t, x, d: 2.0 * d[0] - 1.0 - x,
    )


def limited() -> fx.System:
    held = fx.Integrator("held", lower=-0.1, upper=0.1)
    return wired(fx.Sine("wave", frequency=1.0), held, held="wave")


def stateless() -> fx.System:
    hold, total = fx.ZeroOrderHold("hold", period=0.1), fx.Integrator("total", period=0.25)
    return wired(fx.Sine("wave", frequency=0.5), hold, total, hold="wave", total="hold")


def pulses() -> fx.System:
    pulse = fx.Square("pulse", period=0.23, duty=0.3)
    return wired(pulse, fx.FirstOrderLag("lag", time_constant=0.2), lag="pulse")


def initialized() -> fx.System:
    """Updates at the start, the discrete one after the unrestricted one."""
    return Actor(
        Act("discrete", Initialization(), lambda t, x, d: {"d": [x[0], 2.0, d[1] + 1.0]}),
        Act("unrestricted", Initialization(), lambda t, x, d: {"x": [3.0], "d": [0, 5, 0]}),
        Act("discrete", Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1], d[2] + x[0]]}),
    )


def stopped() -> fx.System:
    height = fx.Integrator("height", initial=-0.1)
    stop = fx.StopWhen("stop", "it is up again")
    return wired(fx.Ramp("rate", initial=-1.0), height, stop, height="rate", stop="height")


def hopping() -> tuple[fx.System, fx.Context]:
    """A mass with friction that falls on a stop, hops and rests."""
    builder = fx.PlantBuilder("hopping")
    body = builder.add_body("body", fx.SpatialInertia.point_mass(2.0))
    rail = fx.PrismaticJoint("rail", builder.world, body, axis=(0, 0, 1), damping=0.0)
    builder.add_joint(rail)
    stop = fx.RigidStop("stop", rail, restitution=0.5, lower=0.0, rest_velocity=0.1)
    builder.add_constraint(stop)
    builder.add_constraint(fx.StickSlipFriction("friction", rail, coulomb_friction=3.0))
    plant = builder.build()
    context = plant.create_default_context()
    rail.translation.set(context, 1.0)
    return plant, context


def caught() -> tuple[fx.System, fx.Context]:
    """A mass that falls, bounces in a rough bowl, and swings."""
    builder = fx.PlantBuilder("caught", gravity=(0.0, -9.81, 0.0))
    bob = builder.add_body("bob", fx.SpatialInertia.solid_sphere(2.0, radius=0.1))
    free = builder.add_joint(fx.PlanarJoint("free", builder.world, bob))
    rope = fx.BodyShape.point(), builder.world, fx.BodyShape.sphere(radius=1.0)
    options: Any = {"inside": True, "restitution": 0.2, "rest_velocity": 0.5}
    options |= {"friction": 0.1, "transition_velocity": 0.3}
    builder.add_constraint(fx.RigidContact("rope", bob, *rope, **options))
    plant = builder.build()
    context = plant.create_default_context()
    free.positions.set(context, [0.8, 0.3, 0.0])
    return plant, context


@dataclass
class Run:
    """A run in both languages."""

    make: Callable[[], Any]  # a system, or a system and a context of it
    method: str = "RK45"
    t_final: float = 2.3
    options: dict[str, float] = field(default_factory=dict)  # as Python calls them
    tolerance: float = 1e-10

    @property
    def times(self) -> Array:
        return np.linspace(0.0, self.t_final, 24)

    def expected(self) -> fx.results.SimulationResult:
        system, context = self._made()
        options: Any = {"compiled": "python", **self.options}  # with exact Jacobians
        return fx.simulate(system, self.t_final, context=context, method=self.method, **options)

    def _made(self) -> tuple[fx.System, fx.Context]:
        made = self.make()
        if isinstance(made, tuple):
            return made
        return made, made.create_default_context()

    def asked(self) -> tuple[Any, list[dict[str, Any]]]:
        system, context = self._made()
        model = fx.to_javascript(system, method=self.method)
        names = {"max_step": "maxStep", "max_check_interval": "maxCheckInterval"}
        options = {names.get(name, name): value for name, value in self.options.items()}
        values = options_of(model, context)
        return model, [options | values | {"tFinal": self.t_final, "times": self.times.tolist()}]


def mechanism(name: str) -> Callable[[], tuple[fx.System, fx.Context]]:
    def make() -> tuple[fx.System, fx.Context]:
        plant = MECHANISMS[name]()
        return plant, random_contexts(plant, 1, seed=4)[0]

    return make


RUNS: dict[str, Run] = {
    **{f"{name} with RK45": Run(SITUATIONS[name]) for name in ALIKE},
    **{
        f"{name} with Rodas5P": Run(SITUATIONS[name], "Rodas5P")
        for name in ("sampled", "bouncing", "simultaneous", "thermostat", "jumps")
    },
    **{
        f"{make.__name__} with {method}": Run(make, method)
        for make in (SITUATIONS["bouncing"], logged)
        for method in ("RK23", "DOP853", "DormandPrince")
    },
    **{make.__name__: Run(make) for make in (relayed, limited, stateless, pulses, initialized)},
    # Updates at ends of steps, which differ by 1e-9 between the BLAS kernels of processors.
    "stepped": Run(stepped, tolerance=1e-8),
    "relayed with Rodas5P": Run(relayed, "Rodas5P"),
    "bouncing with ESDIRK4": Run(SITUATIONS["bouncing"], "ESDIRK4"),
    "stopped": Run(stopped),
    "hopping": Run(hopping),
    "caught": Run(caught),
    "a journal": Run(lambda: pendulum(1.2), t_final=4.0),
    "a box that slides": Run(lambda: incline(0.5), t_final=0.05),
    "short steps": Run(logged, options={"max_step": 0.011}),
    "low accuracy": Run(logged, options={"rtol": 1e-3, "atol": 1e-3}),
    "a search in short stretches": Run(
        SITUATIONS["bouncing"], options={"max_check_interval": 0.01}
    ),
    "compliant door": Run(compliant_door.build, "Rodas5P", 3.0),
    "dishwasher door": Run(dishwasher_door.build, "Rodas5P", 3.0),
    **{
        f"mechanism: {name}": Run(mechanism(name), method, 0.4, {"rtol": 1e-8})
        for name, method in (
            ("chain of axes", "DOP853"),
            ("chain of orientations", "RK45"),
            ("branches", "Rodas5P"),
        )
    },
}


TRIED = [*dict.fromkeys(["bouncing with RK45", "stopped", *thinned(RUNS, fast=14)])]


@cache
def found() -> dict[str, list[dict[str, Any]]]:
    """Run everything in one process."""
    return simulate_all({name: RUNS[name].asked() for name in TRIED})


def close(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    scale = np.max(np.abs(theirs), initial=0.0)
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=tolerance * scale + 1e-14)


@pytest.mark.parametrize("name", TRIED)
def test_a_run_is_that_of_python(name: str) -> None:
    run, result = RUNS[name], found()[name][0]
    expected = run.expected()
    assert result["outcome"] == expected.outcome, result["message"]
    times = run.times[run.times <= expected.time[-1]]
    assert result["time"].tolist() == times.tolist()
    for path, values in result["signals"].items():
        wanted = expected.sample(path, times).reshape(len(times), -1)
        close(values.reshape(len(times), -1), wanted, run.tolerance)
    statistics, counts = result["statistics"], expected.statistics
    assert statistics["updates"] == counts.discrete_updates + counts.unrestricted_updates
    if len(result["state"]):
        assert (statistics["steps"], statistics["restarts"]) == (counts.steps, counts.restarts)
        close(result["state"], expected.context.store.x, run.tolerance)
    if expected.outcome == "completed":
        assert len(result["events"]) == counts.witness_events


def test_events_are_named_with_their_times() -> None:
    result = found()["bouncing with RK45"][0]
    fall = math.sqrt(2.0 / 9.81)
    assert result["events"][0] == {"path": "actor.handle", "time": pytest.approx(fall, rel=1e-9)}
    times = [event["time"] for event in result["events"]]
    assert times == sorted(times)


def test_a_stop_says_why() -> None:
    assert found()["stopped"][0]["message"] == "it is up again"


# Samples -----------------------------------------------------------------------------------------


def test_two_instants_stand_beside_each_jump() -> None:
    model = fx.to_javascript(SITUATIONS["bouncing"](), method="RK45")
    result = simulate(model, tFinal=0.6, samples=13)
    time, x = result["time"], result["signals"]["x"].reshape(-1, 2)
    (hit,) = (event["time"] for event in result["events"])
    before, after = np.flatnonzero(time == hit)
    assert time.tolist() == sorted([*np.linspace(0.0, 0.6, 13), hit, hit])
    assert x[after, 1] == -0.8 * x[before, 1]
    assert x[before, 1] == pytest.approx(-9.81 * hit)


def test_break_times_have_both_sides_and_too_many_jumps_none() -> None:
    step = wired(
        fx.Step("step", at=0.25, to=3.0), fx.FirstOrderLag("lag", time_constant=1.0), lag="step"
    )
    fast = wired(
        fx.Sine("wave", frequency=1.0), fx.ZeroOrderHold("hold", period=0.001), hold="wave"
    )
    models = {name: fx.to_javascript(d, method="RK45") for name, d in (("a", step), ("b", fast))}
    results = simulate_all({k: (m, [{"tFinal": 0.5, "samples": 6}]) for k, m in models.items()})
    a, b = (results[name][0] for name in models)
    assert a["signals"]["step.y"][a["time"] == 0.25].tolist() == [0.0, 3.0]
    assert b["time"].tolist() == pytest.approx(np.linspace(0.0, 0.5, 6).tolist())


def test_models_are_run_again_with_other_values() -> None:
    model = fx.to_javascript(Oscillator(), method="DOP853")
    damped = {"parameters": {"damping": 2.0}, "initial": {"x": [0.3, -1.0]}}
    fed = damped | {"inputs": {"u": 3.0}, "time": 1.0}
    common: dict[str, Any] = {"tFinal": 3.0, "times": [2.0, 3.0]}
    results = simulate_all({"": (model, [common | o for o in ({}, damped, fed, {})])})[""]
    assert results[0]["signals"]["y"].tobytes() == results[3]["signals"]["y"].tobytes()
    for options, result in zip(({}, damped, fed), results, strict=False):
        system = Oscillator()
        context = system.create_default_context()
        context.time = options.get("time", 0.0)  # type: ignore[assignment]
        if options:
            context.set("damping", 2.0)
            context.set("x", [0.3, -1.0])
        if "inputs" in options:
            system.u.fix(context, 3.0)
        expected = fx.simulate(system, 3.0, context=context, method="DOP853", compiled=False)
        close(result["signals"]["y"], expected.sample("y", [2.0, 3.0]).ravel())


@pytest.mark.full
def test_a_run_that_gives_up_has_its_samples_where_it_was() -> None:
    model = fx.to_javascript(Oscillator(), method="DOP853")
    long, short = simulate_all({"": (model, [{"tFinal": 1e6}, {"tFinal": 20.0}])})[""]
    end = long["time"][-1]
    assert long["outcome"] == "failed"
    assert end < 1e5
    assert short["time"].tolist() == np.linspace(0.0, 20.0, 500).tolist()
    np.testing.assert_allclose(long["time"], np.linspace(0.0, end, 500), rtol=1e-12)
    expected = fx.simulate(Oscillator(), end, method="DOP853", compiled=False)
    np.testing.assert_allclose(
        long["signals"]["y"], expected.sample("y", long["time"]).ravel(), rtol=0.0, atol=1e-6
    )


def test_runs_in_parts_are_whole_runs_and_can_be_stopped() -> None:
    model = fx.to_javascript(SITUATIONS["bouncing"](), method="RK45")
    whole = """(() => { const run = model.begin(options);
      let parts = 1;
      while (!run.advance(7) && parts !== options.parts) parts += 1;
      run.stop();
      return {...run.finish(), parts}; })()"""
    asked = {"tFinal": 3.0, "samples": 31, "maxStep": 0.05}
    direct = simulate(model, **asked)
    text = whole.replace("options.parts", "Infinity")
    (parted,) = ask_models({"": (model, [asked])}, text)[""]
    (stopped,) = ask_models({"": (model, [asked])}, whole.replace("options.parts", "3"))[""]
    assert parted["parts"] > 5
    assert parted["outcome"] == direct["outcome"] == "completed"
    assert parted["signals"]["x"].tobytes() == direct["signals"]["x"].tobytes()
    assert stopped["outcome"] == "interrupted"
    end = stopped["time"][-1]
    assert 0.0 < end < 3.0
    assert set(np.linspace(0.0, end, 31)) <= set(stopped["time"])


# The method --------------------------------------------------------------------------------------


def stiff_later() -> fx.System:
    """A mode that becomes fast and strongly damped on the way."""
    return Actor(
        rate=lambda t, x, d: [x[1], -x[0], -(1.0 + 1e5 * (x[0] < 0.0)) * (x[2] - x[0])],
        start=[1.0, 0.0, 1.0],
    )


def test_the_choice_of_the_method_is_that_of_python() -> None:
    makes: dict[str, Callable[[], fx.System]] = {
        "later": stiff_later,
        "door": compliant_door.build,
        "never": sampled,
    }
    models = {name: fx.to_javascript(make()) for name, make in makes.items()}
    results = simulate_all(
        {name: (model, [{"tFinal": 20.0, "times": [20.0]}]) for name, model in models.items()}
    )
    for name, make in makes.items():
        expected, result = fx.simulate(make(), 20.0, compiled="python"), results[name][0]
        ours, theirs = result["statistics"]["methods"], expected.statistics.methods
        assert [each["method"] for each in ours] == [method for _, method, _ in theirs]
        times = [time for time, _, _ in theirs]
        assert [each["time"] for each in ours] == pytest.approx(times, abs=1e-3)
    assert len(results["later"][0]["statistics"]["methods"]) == 2
    assert results["door"][0]["statistics"]["jacobians"] > 0


# Failures ----------------------------------------------------------------------------------------


def escaping() -> fx.System:
    return Actor(rate=lambda t, x, d: [x[0] ** 2], start=[1.0])


def undefined() -> fx.System:
    return Actor(rate=lambda t, x, d: [-np.sqrt(1.0 - t) - x[0]], start=[1.0])


def undefined_at_first() -> fx.System:
    return Actor(rate=lambda t, x, d: [np.log(x[0] - 1.0)], start=[0.0])


def undefined_update() -> fx.System:
    act = Act("discrete", Periodic(0.5), lambda t, x, d: {"d": [np.sqrt(0.7 - t), d[1], d[2]]})
    return Actor(act)


def piling() -> fx.System:
    return Actor(
        Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.5 * x[1]]},
        ),
        rate=lambda t, x, d: [x[1], -9.81],
        start=[1.0, 0.0],
    )


def chattering() -> fx.System:
    return Actor(rate=lambda t, x, d: [np.where(x[0] > 0.0, -1.0, 1.0)], start=[0.1])


def resting() -> fx.System:
    """A ball that is pushed down from where an update has put it to rest."""
    return Actor(
        Act(
            "unrestricted",
            Watch(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [0.0 * x[0], 0.0 * x[1]]},
        ),
        rate=lambda t, x, d: [x[1], -9.81],
        start=[1.0, 0.0],
    )


def unsettled() -> fx.System:
    return Actor(Act("discrete", Settling(), lambda t, x, d: {"d": [d[0] + 1.0, d[1], d[2]]}))


FAILURES: dict[str, tuple[Callable[[], fx.System], dict[str, Any], str]] = {
    "an escape": (escaping, {}, "no step is short enough at t = 1.000.*'x.*moves fastest"),
    "no number on the way": (undefined, {}, "no step is short enough at t = (1|0.99)"),
    "no number at first": (undefined_at_first, {}, "derivative of the state 'x.*not finite"),
    "no number in an update": (undefined_update, {}, "the update 'actor.*finite numbers at t = 1"),
    "events that pile up": (piling, {}, "past t = 1.3.* the events 'actor.* closer and closer"),
    "a rest on zero": (resting, {}, "the events 'actor.handle' cannot be told at t = 0.45"),
    "values that never settle": (unsettled, {}, "settling updates go on to change values at t = 0"),
    "too many steps": (Oscillator, {"budget": 50, "tFinal": 100.0}, "more than 50 steps, up to"),
    "chattering": (chattering, {"budget": 3000}, "'actor': (at the pace|more than 3000 steps)"),
}


def test_failures_are_told_and_runs_end() -> None:
    asked = {
        name: (fx.to_javascript(make(), method="RK45"), [{"tFinal": 3.0, "samples": 7} | options])
        for name, (make, options, _) in FAILURES.items()
    }
    results = simulate_all(asked)
    for name, (make, _, message) in FAILURES.items():
        result = results[name][0]
        assert result["outcome"] == "failed", name
        assert pytest.approx(result["time"][-1]) == result["time"].max()
        assert result["time"][-1] < 100.0
        assert re.search(message, result["message"]), result["message"]
        if "steps" not in message:
            with np.errstate(all="ignore"), pytest.raises(FlexureError):
                fx.simulate(make(), 3.0, method="RK45", compiled=False)


def dithering() -> fx.System:
    """A function that goes up and down ten thousand times in a step, and never to zero."""
    return Actor(
        Act(
            "discrete", Watch(lambda t, x, d: 1.5 + np.sin(1e5 * t)), lambda t, x, d: {"d": 2.0 * d}
        )
    )


@pytest.mark.full
def test_steps_are_shorter_where_events_cannot_be_told_in_long_ones() -> None:
    """Where Python warns that it may have missed some."""
    result = simulate(fx.to_javascript(dithering(), method="RK45"), tFinal=0.1, times=[0.1])
    assert (result["outcome"], result["events"]) == ("completed", [])
    assert "'actor.handle' may have been missed from t = 0.025" in result["message"]
    assert result["signals"]["x"][0] == pytest.approx(math.exp(-0.1), rel=1e-6)
    with pytest.warns(match="may have missed events"):
        fx.simulate(dithering(), 0.1, method="RK45", compiled=False)


def test_clocks_that_may_end_a_run_count_as_steps_do() -> None:
    """A billion of them ends as fast as a billion of steps."""
    act = Act("publish", Periodic(1e-7), lambda t, x, d: Terminate("late") if t > 1e9 else None)
    result = simulate(fx.to_javascript(Actor(act), method="RK45"), tFinal=100.0, budget=1000)
    assert (result["outcome"], result["statistics"]["steps"] < 10) == ("failed", True)
    assert "more than 1000 steps" in result["message"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tfinal": 1.0}, "expected the options to be some of parameters, .*, found 'tfinal'"),
    ({}, "expected tFinal to be a time not before 0, found NaN"),
    ({"tFinal": -1.0}, "expected tFinal to be a time not before 0, found -1"),
    ({"tFinal": math.inf}, "expected tFinal to be finite"),
    ({"tFinal": 1.0, "method": "Radau"}, "expected the method to be one of RK45, found 'Radau'"),
    ({"tFinal": 1.0, "rtol": 0.0}, "expected rtol to be at least 2.2e-14, found 0"),
    ({"tFinal": 1.0, "atol": -1.0}, "expected atol to be a number above 0, found -1"),
    ({"tFinal": 1.0, "maxStep": "fast"}, "expected maxStep to be a number above 0, found fast"),
    ({"tFinal": 1.0, "samples": 1}, "expected samples to be"),
    ({"tFinal": 1.0, "times": [0.5, 0.2]}, "expected times to be ascending from 0 to 1, found 0.2"),
    ({"tFinal": 1.0, "times": [2.0]}, "expected times to be ascending from 0 to 1, found 2"),
    ({"tFinal": 1.0, "times": 0.5}, "expected times to be a list of numbers, found 0.5"),
    ({"tFinal": 1.0, "samples": 2.5}, "expected samples to be a whole number from 2 on"),
    ({"tFinal": 1.0, "signals": ["lag.z"]}, "'lag.z'"),
    ({"tFinal": 1.0, "signals": "lag.y"}, "expected signals to be a list of paths, found lag.y"),
    ({"tFinal": 1.0, "parameters": {"lag.tau": 1.0}}, "Cannot set 'lag.tau'"),
    (
        {"tFinal": 1.0, "parameters": {"lag.time_constant": -1.0}},
        "between 0 and Infinity, found -1",
    ),
    ({"tFinal": 1.0, "parameters": {"lag.time_constant": 0.0}}, "between 0 and Infinity, found 0"),
    ({"tFinal": 1.0, "parameters": {"lag.time_constant": math.nan}}, "found NaN"),
    (
        {"tFinal": 1.0, "parameters": {"lag.time_constant": [1.0, 2.0]}},
        "Cannot set 'lag.time_const",
    ),
    ({"tFinal": 1.0, "initial": {"lag.x": math.inf}}, "Cannot set 'lag.x': .* found Infinity"),
    ({"tFinal": 1.0, "parameters": {"lag.gain": "high"}}, "Cannot set 'lag.gain'"),
    ({"tFinal": 1.0, "parameters": 2.0}, "Cannot set parameters of 'wired': expected {path:"),
    ({"tFinal": 1.0, "initial": [1.0]}, "Cannot set initial of 'wired': expected {path:"),
]


def test_bad_calls_are_refused_with_what_was_expected() -> None:
    lag = wired(fx.Constant("one", 1.0), fx.FirstOrderLag("lag", time_constant=1.0), lag="one")
    results = simulate_all({"": (fx.to_javascript(lag, method="RK45"), [o for o, _ in REFUSED])})[
        ""
    ]
    for (options, message), result in zip(REFUSED, results, strict=True):
        with pytest.raises(ValueError, match=message):
            raise ValueError(result.get("error", f"{options} is taken"))


@pytest.mark.full
def test_loops_that_are_open_are_refused_by_name_as_in_python() -> None:
    plant = MECHANISMS["loops and couplings"]()
    context = random_contexts(plant, 1, seed=3)[0]
    with pytest.raises(FlexureError) as caught:
        fx.simulate(plant, 0.01, context=context)
    found = simulate(fx.to_javascript(plant, context, method="RK45"), tFinal=0.01)["error"]
    assert "Cannot begin with these positions and velocities of 'loops'" in found
    opened = r"'\w+' open by [\d.]+"
    numbers = [float(each.split()[-1]) for each in re.findall(opened, str(caught.value))]
    assert [float(each.split()[-1]) for each in re.findall(opened, found)] == pytest.approx(numbers)
