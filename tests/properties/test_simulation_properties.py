"""Simulations of random diagrams against exact solutions and a plain reading of the event rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.linalg
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

import flexure as fx
from flexure.diagrams import Initialization, Periodic, PerStep, Terminate, Witness
from flexure.diagrams.values.events import Trigger
from tests.support.systems.simulation import Clockwork, Flow, ball, chain, count_up, together
from tests.support.tiers import by_tier

FloatArray = npt.NDArray[np.float64]

# Before the end: advancing to the end twice runs the updates that are due there.
splits = st.lists(st.floats(0.0, 3.0, exclude_max=True), max_size=6).map(sorted)
eighths = st.integers(0, 24).map(lambda k: k / 8.0)
periods = st.integers(1, 8).map(lambda k: k / 8.0)


def swing(name: str = "swing") -> Flow:
    """A driven, damped pendulum."""
    return Flow(
        lambda t, x: [x[1], -9.81 * np.sin(x[0]) - 0.2 * x[1] + np.cos(3.0 * t)],
        [0.7, 0.0],
        name=name,
    )


# Splitting a run ---------------------------------------------------------------------------------


def sampled_swing() -> fx.Diagram:
    """A pendulum, a bouncing ball, a counter and a pulse train."""
    return together(
        swing(),
        ball(0.8),
        chain(
            fx.Square("pulses", period=0.7, duty=0.3),
            fx.ZeroOrderHold("hold", 0.25),
            fx.Integrator("sum"),
            name="sampled",
        ),
        Clockwork(Periodic(0.1), count_up, kind="discrete", name="counter"),
    )


@settings(max_examples=by_tier(fast=4, full=12))
@given(splits)
def test_a_run_in_pieces_is_the_run_in_one(times: list[float]) -> None:
    whole, parts = (fx.Simulator(sampled_swing(), rtol=1e-9, atol=1e-11) for _ in range(2))
    whole.advance_to(3.0)
    for time in [*times, 3.0]:
        parts.advance_to(time)
    np.testing.assert_allclose(
        parts.context.continuous_state, whole.context.continuous_state, rtol=1e-6, atol=1e-6
    )
    for path in ("counter.count", "sampled.hold.x"):
        assert parts.context.get(path).tolist() == whole.context.get(path).tolist()


@settings(max_examples=by_tier(fast=4, full=12))
@given(splits, st.booleans())
def test_a_discrete_run_in_pieces_is_exactly_the_run_in_one(
    times: list[float], initialize: bool
) -> None:
    def make() -> fx.Simulator:
        noise = fx.Noise("noise", seed=1, period=0.1)
        builder = fx.DiagramBuilder("diagram")
        builder.add_all(
            noise,
            fx.Integrator("sum", period=0.15),
            fx.TimeDelay("delay", 0.4, 0.2),
            fx.VectorLog("log", period=0.05),
        )
        builder.connect_chain("noise", "sum", "delay", "log")
        return fx.Simulator(builder.build())

    whole, parts = make(), make()
    whole.advance_to(3.0)
    if initialize:
        parts.initialize()
    for time in [*times, 3.0]:
        parts.advance_to(time)
    logs = [
        s.system.get_system("log").find_log(s.context)  # type: ignore[attr-defined]
        for s in (whole, parts)
    ]
    assert logs[0].times.tolist() == logs[1].times.tolist()
    assert logs[0].data.tolist() == logs[1].data.tolist()
    for path in ("noise.sample", "sum.x", "delay.samples"):
        assert parts.context.get(path).tolist() == whole.context.get(path).tolist()


@settings(max_examples=by_tier(fast=4, full=12))
@given(st.lists(eighths, max_size=6).map(sorted), st.sampled_from(["rk4", "euler"]))
def test_a_fixed_step_run_split_at_its_steps_is_exactly_the_run_in_one(
    times: list[float], method: str
) -> None:
    whole, parts = (fx.Simulator(swing(), method=method, step=1.0 / 64.0) for _ in range(2))
    whole.advance_to(3.0)
    for time in [*times, 3.0]:
        parts.advance_to(time)
    assert parts.context.get("x").tolist() == whole.context.get("x").tolist()


# Watching a run ----------------------------------------------------------------------------------


@settings(max_examples=by_tier(fast=4, full=12))
@given(
    st.sampled_from(["auto", "RK45", "DOP853", "Rodas5P", "Radau", "BDF", "LSODA"]),
    st.one_of(
        st.builds(lambda period: {"period": period}, st.floats(0.003, 2.0)),
        st.builds(
            lambda period, offset: {"period": period, "offset": offset},
            st.floats(0.003, 2.0),
            st.floats(0.0, 2.0),
        ),
        st.just({}),
    ),
)
def test_a_log_leaves_every_bit_of_the_motion_as_it_was(
    method: str, options: dict[str, float]
) -> None:
    def run(*, watched: bool) -> tuple[fx.results.SimulationResult, list[float]]:
        builder = fx.DiagramBuilder("diagram")
        bouncing = ball(0.6)
        builder.add_all(swing(), bouncing, fx.Step("step", at=0.7), fx.ZeroOrderHold("hold", 0.3))
        builder.add(fx.Integrator("integral"))
        builder.connect_chain("step", "hold", "integral")
        if watched:
            builder.add(fx.VectorLog("log", 2, **options))  # type: ignore[arg-type]
            builder.connect("swing.y", "log.u")
        return fx.simulate(builder.build(), 1.5, method=method), bouncing.hits

    (alone, hits), (logged, logged_hits) = run(watched=False), run(watched=True)
    assert logged.time.tolist() == alone.time.tolist()
    for signal in ("swing.x", "ball.x", "integral.x", "hold.x"):
        assert logged[signal].tolist() == alone[signal].tolist()
    assert logged_hits == hits
    log: Any = logged.system.get_system("log")
    record = log.find_log(logged.context)
    assert record.data == pytest.approx(
        logged.sample("swing.y", record.times), rel=1e-12, abs=1e-12
    )


# Sampled linear systems --------------------------------------------------------------------------


@dataclass
class Loop:
    """ẋ = A x + B u, and a controller z⁺ = F z + G x, u = H z with a period."""

    A: FloatArray
    B: FloatArray
    F: FloatArray
    G: FloatArray
    H: FloatArray
    x: FloatArray
    z: FloatArray
    period: float
    offset: float

    def diagram(self) -> fx.Diagram:
        builder = fx.DiagramBuilder("loop")
        clock = {"period": self.period, "offset": self.offset}
        builder.add_all(
            fx.StateSpace("controller", self.F, self.G, self.H, initial=self.z, **clock),
            fx.StateSpace("plant", self.A, self.B, np.eye(len(self.A)), None, self.x),
        )
        builder.connect_chain("plant", "controller", "plant.u")
        return builder.build()

    def exact(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """States of plant and controller at times, from matrix exponentials; after updates."""
        n = len(self.A)
        now, x, z, k = 0.0, self.x, self.z, 0
        rows = []

        def flow(duration: float) -> FloatArray:
            system = np.zeros((n + 1, n + 1))
            system[:n, :n], system[:n, n] = self.A, self.B @ self.H @ z
            return np.asarray((scipy.linalg.expm(system * duration) @ np.append(x, 1.0))[:n])

        for time in times:
            while (tick := self.offset + k * self.period) <= time:
                x, now, k = flow(tick - now), tick, k + 1
                z = self.F @ z + self.G @ x
            rows.append(np.concatenate([flow(time - now), z]))
        table = np.array(rows)
        return table[:, :n], table[:, n:]


@st.composite
def loops(draw: st.DrawFn) -> Loop:
    n, m, p = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))

    def matrix(*shape: int) -> FloatArray:
        return draw(arrays(float, shape, elements=st.floats(-1.5, 1.5, width=16)))

    return Loop(
        matrix(n, n),
        matrix(n, m),
        0.5 * matrix(p, p),
        matrix(p, n),
        matrix(m, p),
        matrix(n),
        matrix(p),
        draw(st.floats(0.05, 0.6)),
        draw(st.integers(0, 50)) / 100.0,
    )


@pytest.mark.full
@settings(max_examples=by_tier(fast=5, full=20))
@given(loops(), st.sampled_from(["auto", "DOP853", "Rodas5P"]))
def test_sampled_linear_loops_follow_their_matrix_exponentials(loop: Loop, method: str) -> None:
    result = fx.simulate(loop.diagram(), 2.0, method=method, rtol=1e-9, atol=1e-11)
    times = np.append(np.linspace(0.0, 2.0, 41)[:-1], 1.9999)
    ticks = loop.offset + loop.period * np.arange(40)
    times = times[np.min(np.abs(times[:, None] - ticks), axis=1) > 1e-6]
    x, z = loop.exact(times)
    scale = 1.0 + max(np.max(np.abs(x)), np.max(np.abs(z)))
    found_x = result.sample("plant.x", times).reshape(x.shape)
    found_z = result.sample("controller.x", times).reshape(z.shape)
    np.testing.assert_allclose(found_x, x, atol=1e-6 * scale)
    np.testing.assert_allclose(found_z, z, atol=1e-6 * scale)


# Random schedules against a plain reading of the rules -------------------------------------------

Row = tuple[float, str, float]
RANKS: dict[type, int] = {Initialization: 0, PerStep: 1, Periodic: 2, Witness: 3}


@dataclass
class Spec:
    """One event: what it does to the number of its block when it is an update."""

    kind: str
    trigger: str
    period: float
    offset: float
    factor: float
    ends_at: float | None

    def at(self) -> Trigger:
        triggers: dict[str, Callable[[], Trigger]] = {
            "initialization": Initialization,
            "per_step": PerStep,
            "periodic": lambda: Periodic(self.period, self.offset),
            "witness": lambda: Witness(lambda context: context.time - self.offset),
        }
        return triggers[self.trigger]()


class Actor(fx.LeafSystem):
    """A number, and events that note and change it."""

    def __init__(self, name: str, specs: list[Spec], trace: list[Row]) -> None:
        super().__init__(name)
        self.trace = trace
        self.number = self.declare_discrete_state("number", 1.0)
        declare: dict[str, Callable[[Any, Any], None]] = {
            "publish": self.declare_publish,
            "discrete": self.declare_discrete_update,
            "unrestricted": self.declare_unrestricted_update,
        }
        for index, spec in enumerate(specs):
            declare[spec.kind](self.handler(index, spec), spec.at())

    def handler(self, index: int, spec: Spec) -> Callable[[Any], Any]:
        def handle(context: Any) -> Any:
            number = float(self.number(context)[0])
            self.trace.append((context.time, f"{self.name}.{index}", number))
            if spec.kind != "publish":
                return {self.number: after(number, spec.factor)}
            ends = spec.ends_at is not None and context.time >= spec.ends_at
            return Terminate("enough") if ends else None

        return handle


def after(number: float, factor: float) -> float:
    """The number after an update; bounded, and different for different orders."""
    return math.fmod(factor * number + 1.0, 1000.0)


@dataclass
class Reference:
    """The rules of the simulator, read literally, for blocks whose motion plays no part."""

    blocks: list[list[Spec]]
    step: float
    time: float = 0.0
    trace: list[Row] = field(default_factory=list)
    pending: list[tuple[int, int]] = field(default_factory=list)
    initialized: bool = False
    ended: bool = False

    def __post_init__(self) -> None:
        self.numbers = [1.0] * len(self.blocks)

    def events(self, *triggers: str) -> list[tuple[int, int]]:
        return [
            (b, e)
            for b, specs in enumerate(self.blocks)
            for e, spec in enumerate(specs)
            if spec.trigger in triggers
        ]

    def ticks(self, event: tuple[int, int]) -> list[float]:
        spec = self.blocks[event[0]][event[1]]
        return [spec.offset + k * spec.period for k in range(200)]

    def run(self, events: list[tuple[int, int]], kind: str) -> None:
        order = ["initialization", "per_step", "periodic", "witness"]
        seen = list(self.numbers)
        for b, e in sorted(
            events, key=lambda event: (event[0], order.index(self.spec(event).trigger), event[1])
        ):
            spec = self.blocks[b][e]
            if spec.kind != kind:
                continue
            self.trace.append((self.time, f"b{b}.{e}", seen[b]))
            if kind == "publish":
                self.ended |= spec.ends_at is not None and self.time >= spec.ends_at
            else:
                self.numbers[b] = after(seen[b], spec.factor)

    def spec(self, event: tuple[int, int]) -> Spec:
        return self.blocks[event[0]][event[1]]

    def due(self) -> list[tuple[int, int]]:
        return [event for event in self.events("periodic") if self.time in self.ticks(event)]

    def initialize(self) -> None:
        self.initialized, self.ended = True, False
        events = self.events("initialization")
        self.run(events, "unrestricted")
        self.run(events, "discrete")
        self.run([*events, *self.events("per_step"), *self.due()], "publish")
        self.pending = self.due()

    def advance_to(self, end: float) -> None:
        if not self.initialized:
            self.initialize()
            if self.ended:
                return
        self.ended = False
        while True:
            events = [*self.events("per_step"), *self.pending]
            self.run(events, "unrestricted")
            self.run(events, "discrete")
            start = self.time
            ticks = [t for event in self.events("periodic") for t in self.ticks(event)]
            crossings = [self.spec(event).offset for event in self.events("witness")]
            stops = [t for t in [*ticks, *crossings] if t > start]
            self.time = min([end, start + self.step, *stops])
            moved = self.time > start
            crossed = [
                event
                for event in self.events("witness")
                if start < self.spec(event).offset <= self.time
            ]
            self.pending = [*(self.due() if moved else []), *crossed]
            self.run([*self.events("per_step"), *self.pending], "publish")
            if self.ended or self.time >= end:
                return

    def advance_pending_events(self) -> None:
        self.advance_to(self.time)


specs = st.builds(
    Spec,
    kind=st.sampled_from(["publish", "discrete", "unrestricted"]),
    trigger=st.sampled_from(["initialization", "per_step", "periodic", "witness"]),
    period=periods,
    offset=eighths,
    factor=st.integers(2, 5).map(float),
    ends_at=st.one_of(st.none(), st.none(), eighths),
)
schedules = st.lists(st.lists(specs, min_size=1, max_size=5), min_size=1, max_size=3)
actions = st.lists(
    st.one_of(
        st.just(("initialize",)),
        st.just(("advance_pending_events",)),
        st.tuples(st.just("advance_to"), eighths),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.full
@settings(max_examples=by_tier(fast=60, full=400))
@given(schedules, actions, st.sampled_from(["still", "euler", "RK45"]))
def test_random_schedules_run_as_the_rules_say(
    blocks: list[list[Spec]], script: list[tuple[Any, ...]], motion: str
) -> None:
    triggers = {spec.trigger for block in blocks for spec in block}
    assume(motion != "RK45" or "per_step" not in triggers)  # it chooses its own steps
    trace: list[Row] = []
    systems: list[fx.System] = [Actor(f"b{k}", block, trace) for k, block in enumerate(blocks)]
    options: dict[str, Any] = {}
    if motion != "still":
        systems.append(Flow(lambda t, x: [1.0], [0.0]))
        options = {"method": motion} | ({"step": 0.375} if motion == "euler" else {})
    simulator = fx.Simulator(together(*systems), **options)
    reference = Reference(blocks, 0.375 if motion == "euler" else math.inf)
    for name, *arguments in script:
        if arguments and arguments[0] < reference.time:
            continue
        getattr(simulator, name)(*arguments)
        getattr(reference, name)(*arguments)
        assert [(round(time, 9), *rest) for time, *rest in trace] == reference.trace
        assert simulator.context.time == pytest.approx(reference.time, abs=1e-12)
        assert (simulator.termination is not None) == reference.ended
        for k, number in enumerate(reference.numbers):
            assert simulator.context.get(f"b{k}.number") == [number]
