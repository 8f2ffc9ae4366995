"""Simulations by native loops do what the simulator's own phases do, event by event."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.errors import ZenoError
from flexure.solvers.history import Snapshot
from flexure.solvers.native import runner
from tests.support.native import needs_llvmlite
from tests.support.simulation import together

pytestmark = needs_llvmlite

METHODS = ["RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P"]

# Comparing runs ----------------------------------------------------------------------------------

Change = Callable[[fx.Simulator], None]


def run(
    system: fx.System, compiled: Any, stops: Sequence[float | Change] = (2.0,), **options: Any
) -> fx.Simulator:
    """Advance a simulator of a system from stop to stop, with changes in between."""
    simulator = fx.Simulator(system, compiled=compiled, record=True, **options)
    for stop in stops:
        if callable(stop):
            stop(simulator)
        else:
            simulator.advance_to(stop)
    return simulator


def native_like_interpreted(
    make: Callable[[], fx.System],
    stops: Sequence[float | Change] = (2.0,),
    *,
    exact: bool = False,
    **options: Any,
) -> fx.Simulator:
    """Run a system both ways, compare the runs, and return the native one."""
    # Differences for a Jacobian show in the estimates of errors.
    plain = "python" if options.get("method") == "Rodas5P" else False
    interpreted = run(make(), plain, stops, **options)
    native = run(make(), "native", stops, **options)
    assert_same(native, interpreted)
    assert native.statistics.native_steps == native.statistics.steps
    return native


def assert_same(native: fx.Simulator, interpreted: fx.Simulator) -> None:
    """Compare everything that two simulators tell."""
    assert_same_values(native.context, interpreted.context)
    assert native.terminated_by == interpreted.terminated_by
    assert native.termination == interpreted.termination
    assert counts(native) == counts(interpreted)
    assert native.explain().splitlines()[:-1] == interpreted.explain().splitlines()[:-1]
    assert native.explain().splitlines()[-1].startswith("equations: native code of ")
    assert_same_logs(native.context, interpreted.context)
    assert_same_history(native, interpreted)


def counts(simulator: fx.Simulator) -> dict[str, Any]:
    """Return the statistics; native code evaluates less where that changes nothing."""
    statistics = dict(vars(simulator.statistics))
    statistics.pop("native_steps")
    names = [name for _, name, _ in statistics["methods"]]
    if "Rodas5P" in names or "DOP853" in names:
        statistics.pop("evaluations")  # derivatives by time, and interpolants nobody asked for
    return statistics | {"methods": names}


def assert_same_values(native: fx.Context, interpreted: fx.Context) -> None:
    close([native.time], [interpreted.time])
    close(native.store.x, interpreted.store.x)
    assert_same_discrete(Snapshot.of(native), Snapshot.of(interpreted))


def assert_same_discrete(native: Snapshot, interpreted: Snapshot) -> None:
    for ours, theirs in zip(native.discrete, interpreted.discrete, strict=True):
        for found, expected in zip(ours, theirs, strict=True):
            close(found, expected)


def assert_same_logs(native: fx.Context, interpreted: fx.Context) -> None:
    for leaf, other in zip(native.leaves(), interpreted.leaves(), strict=True):
        if isinstance(leaf.system, fx.VectorLog):
            assert isinstance(other.system, fx.VectorLog)
            found, expected = leaf.system.find_log(leaf), other.system.find_log(other)
            at_steps = any(isinstance(e.trigger, fx.PerStep) for e in leaf.system.events)
            close(found.times, expected.times, OF_STEPS if at_steps else OF_VALUES)
            close(found.data, expected.data, 10.0 * OF_STEPS if at_steps else OF_VALUES)


def assert_same_history(native: fx.Simulator, interpreted: fx.Simulator) -> None:
    assert native.history is not None
    assert interpreted.history is not None
    ours, theirs = native.history.pieces, interpreted.history.pieces
    assert [len(piece.times) for piece in ours] == [len(piece.times) for piece in theirs]
    for found, expected in zip(ours, theirs, strict=True):
        close(found.times, expected.times, OF_STEPS)
        for end in (0, -1):
            close(found.times[end], expected.times[end])
            close(found.states[end], expected.states[end])
        assert found.last == pytest.approx(expected.last, rel=1e-12)
        assert_same_discrete(found.snapshot, expected.snapshot)
        grid = np.array(expected.times)
        for time in np.sort(np.append(grid, 0.5 * (grid[1:] + grid[:-1]))).tolist():
            close(found.state(time), expected.state(time))


OF_VALUES = 1e-9
#: Rounding errors show in the estimates of errors, and from there in the times of steps.
OF_STEPS = 1e-6


def close(found: Any, expected: Any, tolerance: float = OF_VALUES) -> None:
    """Compare numbers up to rounding errors that steps and events have made larger."""
    size = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * size)


# Blocks of pure equations ------------------------------------------------------------------------


class Oscillator(fx.LeafSystem):
    """q″ = u - 9.81 sin q - 0.1 q′, from q = 1."""

    def __init__(self, name: str = "oscillator") -> None:
        super().__init__(name)
        self.damping = self.declare_numeric_parameter("damping", 0.1)
        self.x = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.u = self.declare_vector_input("u", 1, default=0.0)
        self.y = self.declare_vector_output("y", 2, self.x, prerequisites=[self.x])

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        return [v, self.u(context)[0] - 9.81 * np.sin(q) - self.damping(context) * v]


@dataclass
class Act:
    """One event: its kind and trigger, and what becomes of the state, ``f(t, x, d)``."""

    kind: str
    trigger: Any
    update: Callable[..., Any]


class Actor(fx.LeafSystem):
    """ẋ = rate(t, x, d) with discrete values d that the events of a test change.

    A watch of an event is a function of t, x, d as well.
    """

    def __init__(
        self,
        *acts: Act,
        name: str = "actor",
        rate: Callable[..., Any] = lambda t, x, d: -x + d[0],
        start: Sequence[float] = (1.0,),
        numbers: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(name)
        self.rate = rate
        self.x = self.declare_continuous_state(z=len(start), default=start)
        self.d = self.declare_discrete_state("d", numbers)
        self.y = self.declare_vector_output("y", len(numbers), self.d, prerequisites=[self.d])
        for act in acts:
            declare: Any = {
                "publish": self.declare_publish,
                "discrete": self.declare_discrete_update,
                "unrestricted": self.declare_unrestricted_update,
            }[act.kind]
            trigger = act.trigger
            if isinstance(trigger, fx.Witness):
                trigger = fx.Witness(self.reading(trigger.calc), trigger.direction)
            declare(self.handler(act), trigger)

    def reading(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda context: function(context.time, self.x(context), self.d(context))

    def handler(self, act: Act) -> Callable[[Any], Any]:
        calc = self.reading(act.update)

        def handle(context: Any) -> Any:
            found = calc(context)
            if act.kind == "publish":
                return found
            return {{"x": self.x, "d": self.d}[name]: value for name, value in found.items()}

        return handle

    def calc_time_derivatives(self, context: Any) -> Any:
        return self.reading(self.rate)(context)


def noting(t: Any, x: Any, d: Any) -> Any:
    """Count events, and keep the time and the state of the last one."""
    return {"d": [d[0] + 1.0, t, x[0]]}


# Situations --------------------------------------------------------------------------------------


def sampled() -> fx.System:
    """A loop of blocks with clocks of several rates and offsets."""
    builder = fx.DiagramBuilder("sampled")
    builder.add_all(
        Oscillator(),
        fx.Selector("angle", 2, [0]),
        fx.ZeroOrderHold("hold", 0.1),
        fx.SampledPIDController("pid", 0.05, 4.0, 1.0, 0.5, offset=0.02),
        fx.DiscreteIntegrator("sum", 0.3, offset=0.1),
        fx.Constant("target", 0.5),
    )
    builder.connect_chain("oscillator", "angle", "hold", "pid.measurement")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", "oscillator.u")
    builder.connect("hold.y", "sum.u")
    return builder.build()


def several_clocks() -> fx.System:
    return together(
        Actor(
            Act("discrete", fx.Periodic(0.1), noting),
            Act("unrestricted", fx.Periodic(0.25, 0.05), lambda t, x, d: {"x": x + 0.5 * d[0]}),
        ),
        Actor(Act("discrete", fx.Periodic(0.3, 0.3), noting), name="other"),
    )


def unrestricted_and_discrete() -> fx.System:
    """Two kinds of updates at the same instants: the second sees what the first wrote."""
    return Actor(
        Act("discrete", fx.Periodic(0.25), lambda t, x, d: {"d": [d[0], 10.0 * d[0] + x[0], t]}),
        Act("unrestricted", fx.Periodic(0.25), lambda t, x, d: {"d": [d[0] + 1.0, d[1], d[2]]}),
    )


def two_writers() -> fx.System:
    """Two handlers write one state and read the same values; the later one wins."""
    return Actor(
        Act("discrete", fx.Periodic(0.25), lambda t, x, d: {"d": [d[0] + 1.0, d[1], 1.0]}),
        Act("discrete", fx.Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1] + 1.0, 2.0]}),
        Act("unrestricted", fx.Periodic(1.0), lambda t, x, d: {"x": x + 1.0}),
        Act("unrestricted", fx.Periodic(0.5), lambda t, x, d: {"x": x - 0.5}),
    )


def bouncing() -> fx.System:
    """A ball with resets, and a lid that it may hit while it rises."""
    return Actor(
        Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.8 * x[1]], "d": [d[0] + 1.0, t, d[2]]},
        ),
        Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0] - 0.5, "rising"),
            lambda t, x, d: {"x": [x[0], -0.9 * x[1]], "d": [d[0], d[1], d[2] + 1.0]},
        ),
        rate=lambda t, x, d: [x[1], -9.81],
        start=[1.0, 0.0],
    )


def crossings_of_every_direction() -> fx.System:
    """Sines that cross levels, several times in one step, without resets."""
    return together(
        *(
            Actor(
                Act("discrete", fx.Witness(lambda t, x, d, k=k: x[0] - 0.1 * k, direction), noting),
                name=direction,
                rate=lambda t, x, d: [x[1], -25.0 * x[0]],
                start=[1.0, 0.0],
            )
            for k, direction in enumerate(("falling", "rising", "either"))
        ),
        Actor(Act("discrete", fx.Witness(lambda t, x, d: np.sin(40.0 * t)), noting), name="time"),
    )


def simultaneous() -> fx.System:
    """Two functions of two blocks that trigger at one instant, where a clock ticks too."""

    def half(t: Any, x: Any, d: Any) -> Any:
        return t - 0.5

    return together(
        Actor(
            Act("discrete", fx.Witness(half), noting),
            Act("unrestricted", fx.Witness(half, "rising"), lambda t, x, d: {"x": -x}),
            Act("discrete", fx.Periodic(0.5), lambda t, x, d: {"d": [d[0], d[1], d[2] + 100.0]}),
        ),
        Actor(Act("unrestricted", fx.Witness(half, "falling"), noting), name="never"),
        Actor(Act("unrestricted", fx.Witness(half), noting), name="other"),
    )


def turned_around() -> fx.System:
    """A surface on which a motion is reflected at exactly zero, again and again."""
    return Actor(
        Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [0.0, 1.0], "d": [d[0] + 1.0, t, 0.0]},
        ),
        rate=lambda t, x, d: [x[1], -2.0],
        start=[0.0, 1.0],
    )


def thermostat() -> fx.System:
    """A heater that is switched with hysteresis: ẋ = 3 d - x between 0.9 and 1.1."""
    return Actor(
        Act(
            "discrete",
            fx.Witness(lambda t, x, d: x[0] - 1.1, "rising"),
            lambda t, x, d: {"d": [0.0, d[1] + 1.0, t]},
        ),
        Act(
            "discrete",
            fx.Witness(lambda t, x, d: x[0] - 0.9, "falling"),
            lambda t, x, d: {"d": [1.0, d[1] + 1.0, t]},
        ),
        rate=lambda t, x, d: 3.0 * d[0] - x,
        numbers=[1.0, 0.0, 0.0],
    )


def jumps() -> fx.System:
    """Sources whose break times the integrator has to land on."""
    builder = fx.DiagramBuilder("jumps")
    builder.add_all(
        fx.Step("step", at=0.3, to=2.0),
        fx.Square("pulses", period=0.25, duty=0.4, delay=0.1),
        fx.Trajectory("path", [0.0, 0.7, 1.5], [0.0, 2.0, -1.0], kind="hold"),
        fx.Sum("sum", "+++"),
        Oscillator(),
    )
    for k, name in enumerate(("step", "pulses", "path"), start=1):
        builder.connect(f"{name}.y", f"sum.u{k}")
    builder.connect("sum.y", "oscillator.u")
    return builder.build()


def logged() -> fx.System:
    """Logs of several clocks, one of them dense, beside updates and crossings."""
    builder = fx.DiagramBuilder("logged")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("dense", 2, period=0.003),
        fx.VectorLog("coarse", 2, period=0.25, offset=0.1),
        fx.VectorLog("at_ticks", 2, period=0.1),
        Actor(
            Act("discrete", fx.Periodic(0.1), noting),
            Act("discrete", fx.Witness(lambda t, x, d: x[0] - 0.6), noting),
        ),
        fx.VectorLog("numbers", 3, period=0.05),
    )
    for name in ("dense", "coarse", "at_ticks"):
        builder.connect("oscillator.y", f"{name}.u")
    builder.connect("actor.y", "numbers.u")
    return builder.build()


def logged_at_every_step() -> fx.System:
    builder = fx.DiagramBuilder("logged")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("steps", 2),
        fx.VectorLog("both", 2, period=0.15, triggers=["per_step", "periodic"]),
        Actor(Act("discrete", fx.Periodic(0.4), noting)),
    )
    builder.connect("oscillator.y", "steps.u")
    builder.connect("oscillator.y", "both.u")
    return builder.build()


SITUATIONS: dict[str, Callable[[], fx.System]] = {
    each.__name__: each
    for each in (
        Oscillator,
        sampled,
        several_clocks,
        unrestricted_and_discrete,
        two_writers,
        bouncing,
        crossings_of_every_direction,
        simultaneous,
        turned_around,
        thermostat,
        jumps,
        logged,
        logged_at_every_step,
    )
}
every_method = pytest.mark.parametrize("method", METHODS)


@every_method
@pytest.mark.parametrize("make", SITUATIONS.values(), ids=SITUATIONS)
def test_situations(make: Callable[[], fx.System], method: str) -> None:
    native_like_interpreted(make, [2.3], method=method)


def test_tiny_tables_and_short_calls_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More samples inside of one step than the table holds, and a call for every other step."""
    whole = run(logged(), "native", [2.3], method="RK45")
    monkeypatch.setattr(runner, "_TABLE", 1)
    monkeypatch.setattr(runner, "_STRIDE", 2)
    native = native_like_interpreted(logged, [2.3], method="RK45")
    assert native.context.get("actor.d").tolist() == whole.context.get("actor.d").tolist()
    assert native.context.store.x.tolist() == whole.context.store.x.tolist()
    dense: Any = native.system.get_system("dense")
    assert len(dense.find_log(native.context)) == 767


@every_method
def test_a_run_in_pieces_is_the_run_in_one_piece(method: str) -> None:
    pieces = [0.0, 0.1, 0.1, 0.1234, 0.5, 0.5000001, 0.75, 1.5, 2.0, 2.3]
    parts = native_like_interpreted(logged, pieces, method=method)
    whole = run(logged(), "native", [2.3], method=method)
    close(parts.context.store.x, whole.context.store.x, 1e-4)
    found, expected = (s.context.get("actor.d") for s in (parts, whole))
    assert found[0] == expected[0]
    close(found, expected, 1e-4)


def started_late(simulator: fx.Simulator) -> None:
    simulator.context.time = 1e4
    simulator.initialize()


def set_to(path: str, value: Any) -> Change:
    return lambda simulator: simulator.context.set(path, value)


CHANGES: dict[str, Change] = {
    "parameter": set_to("oscillator.damping", 2.0),
    "continuous state": set_to("oscillator.x", [0.3, -1.0]),
    "discrete state": set_to("actor.d", [3.0, 2.0, 1.0]),
    "time": started_late,
    "nothing, but initialized": lambda simulator: simulator.initialize(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_what_is_changed_between_advances_counts_from_then_on(method: str, change: Change) -> None:
    start = 1e4 if change is started_late else 0.0
    stops: list[Any] = [0.0, change, start + 0.77, change, start + 1.3]
    if change is not started_late:
        stops[0] = 0.25
    native_like_interpreted(logged, stops, method=method)


def test_a_fixed_input_changed_between_advances_counts_from_then_on() -> None:
    def feed(value: float) -> Change:
        return lambda simulator: simulator.system.input_port("u").fix(simulator.context, value)

    native_like_interpreted(Oscillator, [feed(3.0), 0.7, feed(-2.0), 1.9], method="RK45")


@pytest.mark.parametrize(
    "options",
    [
        {"max_step": 0.011},
        {"rtol": 1e-3, "atol": 1e-3},
        {"rtol": {"actor": 1e-10, "": 1e-4}},
        {"method": "auto"},
    ],
    ids=str,
)
def test_options_mean_the_same(options: dict[str, Any]) -> None:
    native_like_interpreted(logged, [2.3], **{"method": "RK45", **options})


def test_a_run_from_a_negative_time() -> None:
    def back(simulator: fx.Simulator) -> None:
        simulator.context.time = -1.0

    native_like_interpreted(logged, [back, 0.7], method="RK45")


def stiff_later() -> fx.System:
    """A mode that becomes fast and strongly damped on the way."""
    return Actor(
        rate=lambda t, x, d: [x[1], -x[0], -(1.0 + 1e5 * (x[0] < 0.0)) * (x[2] - x[0])],
        start=[1.0, 0.0, 1.0],
    )


@pytest.mark.parametrize("make", [stiff_later, Oscillator, sampled])
def test_the_choice_of_the_method_is_the_same(make: Callable[[], fx.System]) -> None:
    native = run(make(), True, [20.0])
    interpreted = run(make(), False, [20.0])
    assert native.explain().splitlines()[:-1] == interpreted.explain().splitlines()[:-1]
    close(native.context.store.x, interpreted.context.store.x, 1e-4)


# Publishes that end a run ------------------------------------------------------------------------


def stopped_by(trigger: Any, verdict: Callable[[float], Any], **log: Any) -> fx.System:
    """An oscillator that is logged, and a block that may end the run when it publishes."""
    builder = fx.DiagramBuilder("stopped")
    builder.add_all(
        Oscillator(),
        fx.VectorLog("log", 2, **(log or {"period": 0.03})),
        Actor(
            Act("publish", trigger, lambda t, x, d: verdict(t)),
            Act("discrete", fx.Periodic(0.1), noting),
            rate=lambda t, x, d: 1.0,
            start=[0.0],
        ),
    )
    builder.connect("oscillator.y", "log.u")
    return builder.build()


def late(t: float) -> fx.Terminate | None:
    return fx.Terminate("it is late") if t > 0.8 else None


def failing(t: float) -> None:
    if t > 0.8:
        raise ValueError("a bad day")


def interrupting(t: float) -> None:
    if t > 0.8:
        raise KeyboardInterrupt


PUBLISHES: dict[str, Any] = {
    "at a tick of its own": fx.Periodic(0.07),
    "at a tick of updates": fx.Periodic(0.3),
    "at every step": fx.PerStep(),
    "at a crossing": fx.Witness(lambda t, x, d: np.sin(10.0 * t)),
}
every_publish = pytest.mark.parametrize("trigger", PUBLISHES.values(), ids=PUBLISHES)


@every_publish
@pytest.mark.parametrize("log", [{"period": 0.03}, {}], ids=["sampled log", "log of steps"])
@every_method
def test_a_publish_ends_the_run(trigger: Any, log: dict[str, Any], method: str) -> None:
    native = native_like_interpreted(lambda: stopped_by(trigger, late, **log), method=method)
    assert native.termination == fx.Terminate("it is late")
    assert 0.8 < native.context.time < 1.3


@every_publish
@pytest.mark.parametrize("verdict", [failing, interrupting, late])
def test_after_a_publish_that_ended_a_run_another_one_goes_on(trigger: Any, verdict: Any) -> None:
    def to_the_fault(simulator: fx.Simulator) -> None:
        with contextlib.suppress(ValueError, KeyboardInterrupt):
            simulator.advance_to(2.0)
        assert 0.8 < simulator.context.time < 1.3

    def repair(simulator: fx.Simulator) -> None:
        broken.clear()

    def make() -> fx.System:
        broken.append(True)
        return stopped_by(trigger, lambda t: verdict(t) if broken else None)

    broken: list[bool] = []
    native_like_interpreted(make, [to_the_fault, repair, 2.0], method="RK45")


@pytest.mark.parametrize("verdict", [failing, interrupting])
def test_what_a_publish_raises_comes_out_with_the_same_text(verdict: Any) -> None:
    def errors(compiled: Any) -> tuple[BaseException, list[str]]:
        system = stopped_by(fx.Periodic(0.07), verdict)
        with pytest.raises((ValueError, KeyboardInterrupt)) as caught:
            fx.simulate(system, 2.0, method="RK45", compiled=compiled)
        result: Any = caught.value.result  # type: ignore[union-attr]
        assert result.time[-1] == 12.0 * 0.07
        return caught.value, [result.outcome, result.message.splitlines()[0]]

    (native, ours), (interpreted, theirs) = errors("native"), errors(False)
    assert type(native) is type(interpreted)
    assert getattr(native, "__notes__", []) == getattr(interpreted, "__notes__", [])
    assert ours == theirs


def test_a_block_that_stops_the_run_when_a_signal_is_positive() -> None:
    def make() -> fx.System:
        builder = fx.DiagramBuilder("stopped")
        builder.add_all(fx.Sine("sine", phase=-1.0), fx.Integrator("sum"), fx.StopWhen("stop", "up"))
        builder.connect("sine.y", "sum.u")
        builder.connect("sine.y", "stop.u")
        return builder.build()

    native = native_like_interpreted(make, method="RK45")
    assert native.context.time == pytest.approx(1.0)


def test_events_that_pile_up_are_named_alike() -> None:
    def make() -> fx.System:
        fall = Act(
            "unrestricted",
            fx.Witness(lambda t, x, d: x[0], "falling"),
            lambda t, x, d: {"x": [x[0], -0.5 * x[1]]},
        )
        return Actor(fall, rate=lambda t, x, d: [x[1], -9.81], start=[1.0, 0.0])

    texts = []
    for compiled in ("native", False):
        with pytest.raises(ZenoError) as caught:
            fx.Simulator(make(), compiled=compiled).advance_to(3.0)
        texts.append(re.sub(r"t = [\d.]+", "t", str(caught.value)))
        assert caught.value.time == pytest.approx(math.sqrt(2.0 / 9.81) * 3.0, abs=1e-6)
    assert texts[0] == texts[1]
