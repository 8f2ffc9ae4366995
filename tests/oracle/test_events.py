"""Event traces, logs and termination agree with Drake to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flexure as fx
from flexure.diagrams import Forced, Initialization, Periodic, PerStep, Terminate
from tests.oracle.reading import cases

Trace = list[list[Any]]

TRIGGERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "init": lambda event: Initialization(),
    "per_step": lambda event: PerStep(),
    "periodic": lambda event: Periodic(event["period"], event["offset"]),
    "forced": lambda event: Forced(),
}


class Recorder(fx.LeafSystem):
    """A block whose handlers note what they saw, and act as the oracle file says."""

    def __init__(self, spec: dict[str, Any], trace: Trace) -> None:
        super().__init__(spec["name"])
        self.trace = trace
        self.entries = [
            self.declare_discrete_state(f"xd{k}", [value]) for k, value in enumerate(spec["xd0"])
        ]
        self.motion = None
        if spec.get("xc0"):
            self.motion = self.declare_continuous_state(z=len(spec["xc0"]), default=spec["xc0"])
            self.rates = spec["xc_rate"]
        declare: dict[str, Any] = {
            "publish": self.declare_publish,
            "discrete": self.declare_discrete_update,
            "unrestricted": self.declare_unrestricted_update,
        }
        for event in spec["events"]:
            declare[event["kind"]](self.handler(event), TRIGGERS[event["trigger"]](event))

    def seen(self, context: Any) -> list[float]:
        return [float(entry(context)[0]) for entry in self.entries]

    def handler(self, event: dict[str, Any]) -> Callable[[Any], Any]:
        def handle(context: Any) -> Any:
            seen = self.seen(context)
            self.trace.append([context.time, self.name, event["label"], seen])
            if event["kind"] == "publish":
                end = event.get("terminate_at")
                return Terminate("the oracle says so") if end and context.time >= end else None
            return {
                self.entries[index]: [self.effect(rest, index, seen, context.time)]
                for index, *rest in event.get("set", [])
            }

        return handle

    @staticmethod
    def effect(rest: list[Any], index: int, seen: list[float], time: float) -> Any:
        match rest:
            case ["add", number]:
                return seen[index] + float(number)
            case ["mul", number]:
                return float(number) * seen[index]
            case ["scale_of", number, other]:
                return float(number) * seen[other]
            case ["copy_time", *_]:
                return time
        raise AssertionError(f"unknown effect {rest}")

    def calc_time_derivatives(self, context: Any) -> list[float]:
        return [float(rate) for rate in self.rates]


@pytest.mark.parametrize("case", cases("framework_events.json"))
def test_event_traces(case: dict[str, Any]) -> None:
    trace: Trace = []
    builder = fx.DiagramBuilder("oracle")
    blocks = [builder.add(Recorder(spec, trace)) for spec in case["systems"]]

    def watch(context: fx.Context) -> None:
        trace.append([context.time, "monitor", "monitor", []])

    simulator = fx.Simulator(
        builder.build(),
        method="euler",
        step=case["fixed_step"],
        monitor=watch if case["monitor"] else None,
    )
    context = simulator.context
    for action in case["expected"]["after_each_action"]:
        name, *arguments = action["action"]
        getattr(simulator, name)(*arguments)
        first, last = action["rows"]
        assert trace[first:] == case["expected"]["trace"][first:last]
        assert context.time == action["time"]
        assert (simulator.termination is not None) == action["reached_termination"]
        for block in blocks:
            if block.name in action["xd"]:
                assert block.seen(context) == action["xd"][block.name]
            if block.motion is not None:
                expected = action["xc"][block.name]
                assert block.motion(context).tolist() == pytest.approx(expected, rel=1e-12)
    assert len(trace) == len(case["expected"]["trace"])


class Counter(fx.LeafSystem):
    """Counts its ticks; with a continuous state the simulator takes integrator steps."""

    def __init__(self, period: float, offset: float, *, moving: bool) -> None:
        super().__init__("counter")
        self.count = self.declare_discrete_state("count", [0.0])
        if moving:
            self.declare_continuous_state(z=1)
        self.declare_vector_output("y", 1, self.count, prerequisites=[self.count])
        self.declare_discrete_update(self.tick, Periodic(period, offset))

    def tick(self, context: Any) -> dict[Any, Any]:
        return {self.count: self.count(context) + 1.0}

    def calc_time_derivatives(self, context: Any) -> list[float]:
        return [1.0]


@pytest.mark.parametrize("case", cases("framework_logs.json"))
def test_logs(case: dict[str, Any]) -> None:
    spec = case["counter"]
    builder = fx.DiagramBuilder("oracle")
    builder.add(
        Counter(spec["period"], spec["offset"], moving=spec["has_continuous_state_with_xdot_1"])
    )
    logs = {}
    for name, log in case["logs"].items():
        label = name.replace(".", "_")
        triggers: Any = ["forced"] if log["triggers"] == ["kForced"] else None
        logs[name] = builder.add(
            fx.VectorLog(label, 1, period=log["publish_period"] or None, triggers=triggers)
        )
        builder.connect("counter.y", f"{label}.u")
    simulator = fx.Simulator(builder.build(), method="euler", step=case["fixed_step"])
    for name, *arguments in case["script"]:
        getattr(simulator, name)(*arguments)
    for name, expected in case["expected"].items():
        record = logs[name].find_log(simulator.context)
        assert record.times.tolist() == expected["times"]
        assert record.data.ravel().tolist() == expected["data"]
