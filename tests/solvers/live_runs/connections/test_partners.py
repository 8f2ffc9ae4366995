"""Partners of live runs: those that die, flood or send garbage do not disturb a run."""

from __future__ import annotations

import os
import queue
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from tests.support.live.clocks import OwnClock, lag

ROOT = Path(__file__).parents[4]


def run_beside(
    act: Callable[[int, int], None], steps: int = 100, **options: Any
) -> tuple[Any, Any]:
    """Run a lag whose input is a UDP port, at which somebody acts before each step."""
    partner, clock = fx.UDP(0), OwnClock()
    count = iter(range(steps))

    def before(time: float) -> None:
        act(next(count), partner.port)

    inputs = {"gain": before, "u": partner}
    live = fx.live(lag(), clock=clock, inputs=inputs, signals="y", period=0.01, **options)
    return live, live.run(0.01 * steps)


def test_the_latest_packet_counts_whatever_came_before_it() -> None:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def flood(step: int, port: int) -> None:
        for k in range(1000 if step == 50 else 2):
            sender.sendto(struct.pack("<d", step + 0.001 * k), ("127.0.0.1", port))

    live, report = run_beside(flood)
    sender.close()
    seen = live["u"]
    np.testing.assert_allclose(seen[:50], np.arange(50) + 0.001)
    assert 50.0 <= seen[50] < 51.0  # the buffer is short: the rest is lost
    np.testing.assert_allclose(seen[53:], np.arange(53, 100) + 0.001)
    assert report.steps == 100


def test_garbage_is_counted_and_not_taken() -> None:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    garbage = [
        b"",
        b"abc",
        bytes(9),
        bytes(60000),
        struct.pack("<d", np.nan),
        struct.pack("<d", np.inf),
    ]

    def send(step: int, port: int) -> None:
        if step < len(garbage):
            sender.sendto(garbage[step], ("127.0.0.1", port))
        if step == 5:
            sender.sendto(struct.pack("<d", 5.0), ("127.0.0.1", port))

    live, report = run_beside(send)
    sender.close()
    assert live["u"].tolist() == [0.0] * 5 + [5.0] * 95
    (row,) = report.partners.where(path="u")
    assert (row["values"], row["refused"], row["reason"]) == (1, 6, "a number that is not finite")


@pytest.mark.parametrize(("safe", "held"), [(None, 29.0), ({"u": -1.0}, -1.0)])
def test_a_lost_partner_holds_a_value_and_says_so(safe: Any, held: float) -> None:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(step: int, port: int) -> None:
        if step < 30 or step == 80:
            sender.sendto(struct.pack("<d", step), ("127.0.0.1", port))

    live, report = run_beside(send, timeout={"u": 0.205}, safe=safe)
    sender.close()
    assert live["u"][49] == 29.0
    assert live["u"][51:80].tolist() == [held] * 29
    assert live["u"][80:].tolist() == [80.0] * 20
    (lost, gone), (back, again) = report.events
    assert (round(lost, 9), round(back, 9)) == (0.5, 0.8)
    assert gone == f"u is lost, its {'last' if safe is None else 'safe'} value holds"
    assert again == "u is back"


def test_functions_and_queues_that_fail_do_not_end_a_run() -> None:
    full: queue.Queue[Any] = queue.Queue(3)
    wrong = iter([[1.0, 2.0], "text", None, object(), np.nan, 1e400, 5.0])

    def die(time: float) -> float:
        if time > 0.05:
            raise OSError("gone")
        return 2.0

    inputs = {"u": lambda time: next(wrong, None), "gain": die}
    live = fx.live(lag(), rate="max", period=0.01, inputs=inputs, outputs={"y": full})
    report = live.run(0.2)
    assert live["u"].tolist() == [0.0] * 6 + [5.0] * 14
    assert live["gain"].tolist() == [2.0] * 20
    packets = iter([[5.0, -1.0], [1.0, 1.0]])  # the first has a number out of its bounds
    taken = {("gain", "time_constant"): lambda t: next(packets), "u": lambda t: 0.0}
    whole = fx.live(lag(), rate="max", inputs=taken)
    assert whole.run(0.002).partners[0]["refused"] == 1
    assert whole["gain"].tolist() == [1.0, 1.0]
    assert whole.context.get("gain") == 1.0
    by_path = {row["path"]: row for row in report.partners}
    assert by_path["u"]["refused"] == 5
    assert by_path["gain"]["reason"] == "OSError: gone"
    ones: list[Any] = []
    steering = fx.live(lag(), rate="max", inputs={"u": lambda t: ones[0].rewind(0.0)})
    ones.append(steering)
    steps = steering.run(0.01)
    assert steps.steps == 10
    assert steps.partners[0]["refused"] == 10
    assert "between steps" in steps.partners[0]["reason"]
    with pytest.raises(fx.errors.ValueRefusedError, match=r"Cannot open UDP\(5, 'no such.host'\)"):
        fx.live(lag(), outputs={"y": fx.UDP(5, "no such.host")}).run(0.1)
    assert [full.get()[0] for _ in range(3)] == live["y"][-3:].tolist()


def test_values_that_are_not_finite_are_not_sent() -> None:
    sent: list[list[float]] = []
    block = fx.TimeFunction("bad", lambda time: np.where(time < 0.05, 1.0, np.nan))
    live = fx.live(
        block,
        rate="max",
        period=0.01,
        outputs={"y": lambda time, values: sent.append(values)},
        safe={"y": 0.5},
    )
    report = live.run(0.1)
    assert sent == [[1.0]] * 5 + [[0.5]]
    assert report.partners[0]["refused"] == 5


def test_a_port_in_use_is_refused_and_ports_are_free_again() -> None:
    partner = fx.UDP(0)
    seen: list[int] = []
    other: Any = None

    def look(time: float) -> float:
        nonlocal other
        if not seen:
            seen.append(partner.port)
            taken = fx.live(lag(), rate="max", inputs={"u": fx.UDP(partner.port)})
            with pytest.raises(fx.errors.ValueRefusedError, match="a free port of this machine"):
                taken.run(0.01)
        return 1.0

    live = fx.live(lag(), rate="max", inputs={"gain": look, "u": partner})
    for _ in range(3):
        live.run(0.01)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", seen[0]))


def test_two_runs_talk_to_each_other() -> None:
    """Two lags in a ring over UDP, in one thread; each hears the other one step later."""
    to_a, to_b = free_port(), free_port()
    b = fx.live(
        lag(), rate="max", period=0.01, inputs={"u": fx.UDP(to_b)}, outputs={"y": fx.UDP(to_a)}
    )
    a = fx.live(
        lag(),
        rate="max",
        period=0.01,
        inputs={"u": fx.UDP(to_a), "gain": lambda time: [b.run(0.01), None][1]},
        outputs={"y": fx.UDP(to_b)},
    )
    a.set("x", 1.0)
    a.run(0.2)
    # b is closed between its steps, so that only what it sends arrives
    assert a["u"][1:].tolist() == b["y"][:-1].tolist()


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_integers_and_several_values_share_a_packet() -> None:
    port, values = free_port(), []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", port))
        probe.settimeout(5.0)
        out = {("y", "u"): fx.UDP(port, format=">hf")}
        live = fx.live(lag(), rate="max", inputs={"u": lambda time: 4.6}, outputs=out)
        live.set("x", 2.5)
        live.run(0.003)
        values = [struct.unpack(">hf", probe.recv(100)) for _ in range(3)]
    assert [first for first, _ in values] == [2, 3, 3]
    assert values[0][1] == pytest.approx(4.6)
    many = fx.live(
        lag(), rate="max", inputs={"u": lambda t: 1e9}, outputs={"u": fx.UDP(port, format="<h")}
    )
    assert many.run(0.01).partners[1]["refused"] == 10  # it does not fit


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs pseudo-terminals")
@pytest.mark.parametrize("format", [None, "<2f"])
def test_a_serial_line_is_read_between_garbage(format: str | None) -> None:
    pytest.importorskip("serial")
    import tty

    master, slave = os.openpty()
    tty.setraw(slave)
    name = os.ttyname(slave)

    def packet(*values: float) -> bytes:
        if format:
            return b"\xa5\x5a" + struct.pack(format, *values)
        return ",".join(map(str, values)).encode() + b"\n"

    steps = iter(range(10))

    def act(time: float) -> None:
        step = next(steps)
        if step == 1:
            os.write(master, packet(7.5, 8.5)[1:])  # it lacks its beginning
        if step == 2:
            os.write(master, b"garbage\n" + packet(1.0, 2.0)[:5])
        if step == 3:
            os.write(master, packet(1.0, 2.0)[5:] + packet(3.0, 4.0))
        if step == 5:
            os.write(master, packet(np.nan, 0.0))

    line = fx.Serial(name, format=format)
    live = fx.live(
        lag(), rate="max", period=0.01, inputs={"x": act, ("u", "gain"): line}, outputs={}
    )
    report = live.run(0.1)
    assert live["u"].tolist() == [0.0] * 3 + [3.0] * 7
    assert live["gain"].tolist() == [1.0] * 3 + [4.0] * 7
    assert report.partners[1]["refused"] >= 1
    fx.live(lag(), rate="max", inputs={"u": lambda t: 1.5}, outputs={"u": fx.Serial(name)}).run(
        0.001
    )
    assert b"1.5\n" in os.read(master, 100)
    # A line that nobody reads does not hold up a run, and later frames are whole.
    received = b""

    def listen(time: float) -> float:
        nonlocal received
        if time > 2.0 and select.select([master], [], [], 0.0)[0]:
            received += os.read(master, 100)
        return time

    inputs = {"u": listen, "gain": lambda t: 2.0}
    row = fx.live(lag(), rate="max", inputs=inputs, outputs={("u", "x"): line}).run(3.0).partners[2]
    assert 0 < row["values"] < 3000 == row["values"] + row["refused"]
    assert row["reason"] == "BlockingIOError: the line takes no more"
    frames = received.split(b"\xa5\x5a" if format else b"\n")[1:-1]
    times = [struct.unpack(format, f)[0] if format else float(f.split(b",")[0]) for f in frames]
    np.testing.assert_allclose(np.round(times, 3), times, atol=1e-6)
    assert len(times) > 100
    assert min(np.diff(times)) > 0.0
    os.close(master)
    report = fx.live(lag(), rate="max", inputs={"u": lambda t: 1.0}).run(0.01)
    assert report.outcome == "completed"
    os.close(slave)


def test_a_can_bus_carries_frames_of_its_identifier() -> None:
    can = pytest.importorskip("can")
    bus = can.Bus(interface="virtual", channel="flexure")
    steps = iter(range(10))

    def act(time: float) -> None:
        step = next(steps)
        for identifier, data in ((0x10, b"\x07\x00"), (0x11, b"\x09\x00"), (0x10, b"\x01")):
            if step == 4:
                bus.send(can.Message(arbitration_id=identifier, data=data, is_extended_id=False))

    options: dict[str, Any] = {"channel": "flexure", "interface": "virtual", "format": "<h"}
    live = fx.live(
        lag(),
        rate="max",
        period=0.01,
        inputs={"x": act, "u": fx.CAN(0x10, **options)},
        outputs={"u": fx.CAN(0x1234, **options)},
    )
    report = live.run(0.1)
    assert live["u"].tolist() == [0.0] * 4 + [7.0] * 6
    assert report.partners[1]["refused"] == 1
    got = [bus.recv(timeout=1.0) for _ in range(10)]
    assert [(each.arbitration_id, each.data[0]) for each in got[-1:]] == [(0x1234, 7)]
    bus.shutdown()
    with pytest.raises(fx.errors.ValueRefusedError, match="at most 8 bytes"):
        fx.live(lag(), outputs={("y", "u"): fx.CAN(1, "flexure", interface="virtual")}).run(0.1)


@pytest.mark.parametrize(
    ("package", "extra", "partner"),
    [("serial", "serial", fx.Serial("/dev/null")), ("can", "can", fx.CAN(1, "can0"))],
)
def test_a_missing_package_names_its_extra(
    package: str, extra: str, partner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(fx.errors.MissingExtraError, match=rf"pip install 'flexure\[{extra}\]'"):
        fx.live(lag(), inputs={"u": partner}).run(0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_in_order(number: signal.Signals, tmp_path: Path) -> None:
    code = f"""
import sys, flexure as fx
lag = fx.FirstOrderLag("lag", time_constant=1.0)
def sent(time, values):
    if time == 0.05: print("running", flush=True)
    if values == [9.0]: print("safe", flush=True)
live = fx.live(lag, inputs={{"u": fx.UDP(0)}}, outputs={{"y": sent}}, safe={{"y": 9.0}},
               record={str(tmp_path / "bench.npz")!r})
report = live.run()
print(report.outcome, report.message, flush=True)
"""
    command = [sys.executable, "-c", code]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(number)
        rest, _ = process.communicate(timeout=60.0)
    told = "safe\ninterrupted by Ctrl-C\n" if number == signal.SIGINT else "safe\n"
    assert rest == told
    assert process.returncode == (0 if number == signal.SIGINT else 143)
    with np.load(tmp_path / "bench.npz") as stored:
        assert len(stored["y"]) >= 50
