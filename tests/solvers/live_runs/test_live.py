"""Live runs compute what simulations compute, keep to their clock, and say where they did not."""

from __future__ import annotations

import gc
import queue
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.live_runs.commands import Commands
from tests.support.live.clocks import OwnClock, lag, servo


def test_a_live_run_has_the_numbers_of_a_simulation() -> None:
    diagram = servo()
    sent: queue.Queue[list[float]] = queue.Queue()
    live = fx.live(diagram, rate="max", outputs={("pid.u", "motor.y"): sent}, signals="target.y")
    report = live.run(0.5)
    assert (report.outcome, report.steps) == ("completed", 500)
    whole = fx.simulate(diagram, 0.6)
    times = live["time"]
    np.testing.assert_allclose(times, 1e-3 * np.arange(500), atol=1e-15)
    after = times + 1e-9  # what holds once the updates of an instant have run
    np.testing.assert_allclose(live["motor.y"], whole.sample("motor.y", times), atol=1e-7)
    np.testing.assert_allclose(live["pid.u"], whole.sample("pid.u", after), atol=1e-5)
    assert np.array_equal(live["target.y"], whole.sample("target.y", after))
    assert [sent.get() for _ in range(500)] == np.c_[live["pid.u"], live["motor.y"]].tolist()


def test_partners_replace_wires_parameters_and_free_inputs() -> None:
    """The run is that of a diagram that has the partners as blocks."""
    live = fx.live(
        servo(),
        rate="max",
        inputs={"pid.setpoint": lambda t: 0.5, "pid.kp": lambda t: 8.0 if t < 0.2 else None},
        signals=["motor.y", "target.y"],
    )
    live.run(0.4)
    builder = fx.DiagramBuilder("other")
    builder.add_all(
        fx.Constant("target", 0.5),
        fx.PIDController("pid", period=0.01, kp=8.0, ki=40.0, kd=1.2),
        fx.TransferFunction("motor", [1.0], [0.1, 1.0, 5.0]),
    )
    builder.connect_chain("target", "pid.setpoint")
    builder.connect_chain("pid", "motor", "pid.measurement")
    whole = fx.simulate(builder.build(), 0.4)
    np.testing.assert_allclose(live["motor.y"], whole.sample("motor.y", live["time"]), atol=1e-7)
    assert live["target.y"][-1] == 1.0  # the wire beyond is as it was
    assert live["pid.kp"].tolist() == [8.0] * 400
    live = fx.live(servo(), rate="max", inputs={"target.y": lambda t: t}, safe={"target.y": 2.0})
    live.run(0.003)
    assert live["target.y"].tolist() == [0.0, 0.001, 0.002]
    with pytest.raises(fx.errors.ValueRefusedError, match=r"Cannot set 'target.y'"):
        live.set("target.y", np.nan)


@pytest.mark.parametrize("rate", [1.0, 0.1, 4.0])
def test_steps_are_due_by_the_clock(rate: float) -> None:
    clock = OwnClock()
    begun: list[tuple[float, float]] = []
    live = fx.live(
        lag(),
        rate=rate,
        period=0.01,
        clock=clock,
        inputs={"u": lambda time: begun.append((time, clock.time))},
    )
    report = live.run(0.5)
    times, wall = np.array(begun).T
    np.testing.assert_allclose(wall - wall[0], times / rate, atol=1e-9)
    assert report.missed == 0
    assert report.jitter.worst < 1e-9
    assert "none" in str(report)


def test_deadlines_and_quantiles_are_those_of_the_delays() -> None:
    clock = OwnClock()
    delays = np.random.default_rng(3).lognormal(np.log(2e-4), 1.0, 1500)
    delays[[700, 1200]] = 2.5e-3, 4.2e-3

    class Slow:
        count = 0

        def __call__(self, time: float) -> None:
            clock.pass_by(delays[self.count])
            self.count += 1

    report = fx.live(lag(), clock=clock, inputs={"u": Slow()}).run(1.5)
    # Another route: each step begins when it is due, or when the one before has ended.
    due, free, late, over = 0.0, 0.0, [], []
    for delay in delays[1:]:  # the first step is not timed
        due += 1e-3
        begin = max(due, free)
        free = begin + delay
        late.append(begin - due)
        over.append(free - due - 1e-3)
    missed = sum(np.array(over) > 0.0)
    assert report.missed == missed > 2
    assert report.overrun.worst == pytest.approx(max(over), rel=1e-6)
    assert report.overrun.worst_at == pytest.approx(1e-3 * (1 + np.argmax(over)))
    assert report.jitter.worst == pytest.approx(max(late), rel=1e-6)
    for share in (0.99, 0.999):
        expected = np.quantile(late, share, method="inverted_cdf")
        assert report.jitter.quantile(share) == pytest.approx(expected, rel=0.03)
    assert f"{missed} (" in str(report)
    assert report.plot().get_title() == f"1500 steps, {missed} missed"


@pytest.mark.parametrize(
    ("jump", "text", "shifted"), [(3600.0, "schedule was shifted", 3600.0), (-50.0, "back", 0.0)]
)
def test_a_clock_that_jumps_shifts_the_schedule(jump: float, text: str, shifted: float) -> None:
    clock = OwnClock()

    def jumping(time: float) -> None:
        if time == 0.1:
            clock.pass_by(jump)

    report = fx.live(lag(), clock=clock, inputs={"u": jumping}).run(0.2)
    assert report.steps == 200
    assert report.shifted == pytest.approx(shifted, abs=2e-3)
    assert any(text in told for _, told in report.events)
    assert len(clock.slept) < 300  # it does not wait for the time to come again


@pytest.mark.parametrize(
    ("now", "found"), [(float("nan"), "nan"), ("noon", "'noon'"), (7.0, "7.0")]
)
def test_what_is_no_clock_is_refused(now: Any, found: str) -> None:
    class Broken:
        def now(self) -> Any:
            return now

        def sleep(self, seconds: float) -> None: ...

    with pytest.raises(fx.errors.ValueRefusedError, match=f"Cannot follow a clock: .*{found}"):
        fx.live(lag(), clock=Broken(), inputs={"u": lambda t: 1.0}).run(0.1)


def test_two_runs_at_once_and_commands_from_another_thread() -> None:
    lives = [fx.live(servo(), rate="max", signals="motor.y") for _ in range(2)]
    reports: list[Any] = []
    threads = [
        threading.Thread(target=lambda each=each: reports.append(each.run())) for each in lives
    ]
    for thread in threads:
        thread.start()
    for live in lives:
        while live.state != "running":
            pass
    lives[0].pause()
    with pytest.raises(fx.errors.ContextError, match="one run at a time"):
        lives[0].run(1.0)
    before = lives[0].time
    lives[0].step(3)
    while lives[0].time < before + 2.5e-3:
        pass
    lives[0].set("pid.kp", 20.0)
    assert lives[0].time == pytest.approx(before + 3e-3)
    assert lives[0].context.get("pid.kp") == 20.0
    with pytest.raises(fx.errors.ValueRefusedError):
        lives[0].set("pid.kp", "much")
    lives[0].resume()
    for live, thread in zip(lives, threads, strict=True):
        live.stop()
        thread.join(20.0)
    assert [report.outcome for report in reports] == ["stopped", "stopped"]
    assert lives[1].context.get("pid.kp") == 16.0


def test_runs_within_a_run_do_not_count_what_collections_skip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That takes as long as there are objects; and what others told them to skip stays."""
    counts: list[int] = []
    before, count = gc.get_freeze_count(), gc.get_freeze_count

    def counted() -> int:
        counts.append(count())
        return counts[-1]

    monkeypatch.setattr(gc, "get_freeze_count", counted)
    options: dict[str, Any] = {"rate": "max", "period": 0.01}
    inner = fx.live(servo(), **options)
    outputs = {"motor.y": lambda time, values: inner.run(0.01)}
    outer = fx.live(servo(), outputs=outputs, **options)
    assert outer.run(0.2).outcome == inner.run(0.01).outcome == "completed"
    assert len(counts) < 3
    assert count() >= 0.9 * before  # some of them may have ended


@pytest.mark.parametrize("controller", ["python", "c"])
def test_a_run_goes_on_from_what_was_recorded(controller: str) -> None:
    """Rewound, it repeats what partners sent; then another value leads elsewhere."""
    diagram, values = servo(), np.random.default_rng(1).normal(size=400)
    options: dict[str, Any] = {}
    if controller == "c":
        options["software"] = {"pid": compiled(diagram)}
    live = fx.live(
        diagram,
        rate="max",
        inputs={"pid.setpoint": lambda time: values[round(1000 * time)]},
        signals=["motor.y", "pid.u"],
        **options,
    )
    live.run(0.1)
    live.set("motor.numerator", [2.0])
    live.run(0.2)
    straight = live.to_dict()
    live.rewind(0.1503)
    assert (live.time, len(live["time"])) == (0.15, 150)
    live.run(0.15)
    for name, expected in straight.items():
        np.testing.assert_allclose(live[name], expected, rtol=1e-6, atol=1e-6)
    live.rewind(0.25)
    live.set("motor.numerator", [0.0])
    live.run(0.05)
    assert np.max(np.abs(live["motor.y"] - straight["motor.y"])) > 1e-3
    with pytest.raises(fx.errors.ValueRefusedError, match=r"a time in 0 to 0.299 s; found -1 s"):
        live.rewind(-1.0)
    for time in (0.102, 0.101):  # with what was set before a step, beside a snapshot or not
        live.rewind(time)
        live.set("motor.numerator", [3.0])
        live.run(0.1)
        straight = live.to_dict()
        live.rewind(time)
        assert live.context.get("motor.numerator") == [3.0]
        live.run(0.1)
        np.testing.assert_allclose(live["motor.y"], straight["motor.y"], rtol=1e-6, atol=1e-6)


def compiled(diagram: fx.Diagram) -> Any:
    import shutil

    if not any(map(shutil.which, ("gcc", "cc", "clang"))):
        pytest.skip("needs a C compiler, which is not installed")
    return fx.to_c(diagram.get_system("pid"), inputs=["setpoint", "measurement"])


def test_a_controller_in_c_takes_the_place_of_its_block() -> None:
    diagram = servo(0.005)
    live = fx.live(
        diagram, rate="max", software={"pid": compiled(diagram)}, signals=["motor.y", "pid.u"]
    )
    diagram_context = live.context
    live.set("pid.kp", 0.0)  # of the block, which is not asked any more
    live.run(0.3)
    whole = fx.simulate(diagram, 0.4)
    times = live["time"]
    np.testing.assert_allclose(live["motor.y"], whole.sample("motor.y", times), atol=1e-7)
    np.testing.assert_allclose(live["pid.u"], whole.sample("pid.u", times + 1e-9), atol=1e-5)
    assert diagram_context.time == pytest.approx(0.3)
    with pytest.raises(fx.errors.ValueRefusedError, match="multiple of the period of the run"):
        fx.live(diagram, period=0.003, software={"pid": compiled(diagram)})


def test_an_event_ends_a_run_and_an_error_carries_its_report(tmp_path: Path) -> None:
    builder = fx.DiagramBuilder("watched")
    builder.add_all(fx.TimeFunction("ramp", lambda t: t - 0.2503), fx.StopWhen("far", "it is far"))
    builder.connect("ramp.y", "far.u")
    report = fx.live(builder.build(), rate="max").run(1.0)
    assert report.outcome == "terminated"
    assert report.end == pytest.approx(0.2503, abs=1e-9)  # between two steps

    path = tmp_path / "bench.npz"
    safe: list[list[float]] = []
    live = fx.live(
        Runaway(),
        rate="max",
        outputs={"y": lambda time, values: safe.append(values)},
        safe={"y": 0.0},
        record=path,
        method="RK45",
    )
    with pytest.raises(fx.errors.SimulationError) as failed:
        live.run(3.0)
    assert failed.value.result.outcome == "failed"  # type: ignore[attr-defined]
    assert safe[-1] == [0.0]
    with np.load(path) as stored:
        assert np.array_equal(stored["y"], live["y"])
        assert stored["time"][-1] == pytest.approx(1.0, abs=0.1)


class Runaway(fx.LeafSystem):
    """The solution of x' = x², which is infinite at t = 1 s."""

    def __init__(self) -> None:
        super().__init__("runaway")
        self.x = self.declare_continuous_state(z=1, default=[1.0])
        self.declare_vector_output("y", 1, self.x)

    def calc_time_derivatives(self, context: fx.Context) -> Any:
        return self.x(context) ** 2


def test_memory_of_a_recording_is_bounded_and_a_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "bench.npz"
    options: dict[str, Any] = {"rate": "max", "inputs": {"u": lambda t: t}, "signals": "y"}
    live = fx.live(lag(), max_record=3 * 8 * 500, record=path, **options)
    report = live.run(1.2)
    times = live["time"]
    np.testing.assert_allclose(times, 0.7 + 1e-3 * np.arange(500), atol=1e-9)
    assert np.array_equal(live["u"], times)
    assert any("the oldest 700 samples were discarded" in text for _, text in report.events)
    before = path.read_bytes()
    with np.load(path) as stored:
        assert np.array_equal(stored["time"], times)
    live.rewind(0.9)
    live.run(0.4)
    np.testing.assert_allclose(live["time"], 0.8 + 1e-3 * np.arange(500), atol=1e-9)
    assert path.read_bytes() != before
    assert [each.name for each in tmp_path.iterdir()] == ["bench.npz"]
    options["record"] = tmp_path / "nowhere" / "a.npz"
    with pytest.raises(fx.errors.RecordFileError, match="Cannot write signals") as unwritten:
        fx.live(lag(), **options).run(0.1)
    assert unwritten.value.result.steps == 100  # type: ignore[attr-defined]
    with pytest.raises(fx.errors.SimulationError) as failed:  # the first error counts
        fx.live(Runaway(), rate="max", method="RK45", record=options["record"]).run(3.0)
    assert "Cannot write signals" in str(failed.value.result)  # type: ignore[attr-defined]


def test_wrong_wishes_are_refused() -> None:
    diagram, one = servo(), fx.UDP(0)
    for wishes, text in (
        ({"inputs": {"pid.nothing": lambda t: 0.0}}, "Cannot find"),
        ({"inputs": {"pid.setpoint": 5005}}, "fx.UDP, Serial or CAN, a function or a queue"),
        ({"inputs": {("pid.kp", "pid.kp"): lambda t: 0.0}}, "one partner for each input"),
        ({"safe": {"pid.u": 0.0}}, "Cannot run 'servo' .*safe value of 'pid.u'"),
        ({"outputs": {"pid.u": print}, "safe": {"pid.u": "off"}}, "safe value of pid.u: .*'off'"),
        ({"outputs": {"pid.u": print}, "safe": {"pid.u": [0, 0]}}, "finite numbers that fit"),
        ({"inputs": {"pid.setpoint": one}, "outputs": {"pid.u": one}}, "twice.* its own .*UDP"),
        ({"rate": "fast"}, "rate"),
        ({"rate": 0.0}, r"this rate: expected values in \(0, inf\)"),
        ({"period": -1.0}, r"this period: expected values in \(0, inf\)"),
        ({"outputs": {"pid.u": fx.UDP(9, format="<2f")}}, "a format of 1 number"),
        ({"software": {"pid": "pid.c"}}, "what fx.to_c returns"),
        ({"clock": 3}, "a clock with the methods"),
        ({"parameters": ["pid.upper"]}, "slider of 'pid.upper': expected a finite number"),
        ({"timeout": {"pid.kp": 1.0}}, "timeout value of 'pid.kp'"),
    ):
        with pytest.raises(fx.errors.FlexureError, match=text):
            fx.live(diagram, **wishes).run(0.01)
    with pytest.raises(fx.errors.ValueRefusedError, match="a duration above 0 s"):
        fx.live(diagram).run(0.0)
    with pytest.raises(fx.errors.UnknownNameError, match="Record others with signals="):
        fx.live(diagram)["motor.y"]


def test_a_command_that_runs_out_of_time_says_so() -> None:
    def late() -> None:
        raise TimeoutError("the bench")

    with pytest.raises(TimeoutError, match="the bench"):
        Commands("Cannot steer").do(late)
