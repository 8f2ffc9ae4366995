"""How well live runs keep deadlines: 1 kHz for a minute through UDP, with and without a page.

Run it with ``python benchmarks/exports/live.py [--quick]``, on a machine that does nothing else.
The servo is a plant under a sampled PID controller, whose output goes through UDP to the plant.
Printed are the report of each run, and

missed
    steps in a thousand that missed their deadlines,
jitter, 99 %
    milliseconds by which 99 of 100 steps began late at most,
step / native step
    the ratio of the time of a step without waiting to that of the same step of a `Simulator`.

"with a page" has a browser that listens, "with a page that hangs" one that never reads. Both need
the package websockets. "sleeping alone" is a loop that does nothing but sleep until its deadlines:
what it misses is the machine's.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.versus.table import Row, formatted

PERIOD = 1e-3  # s
#: The most of a thousand steps that miss their deadlines, and milliseconds of jitter, when idle.
MISSED, JITTER = 5.0, 1.0


def servo() -> fx.Diagram:
    """Build a plant under a sampled controller."""
    builder = fx.DiagramBuilder("servo")
    builder.add_all(
        fx.Sine("target", frequency=3.0),
        fx.PIDController("pid", period=10 * PERIOD, kp=16.0, ki=40.0, kd=1.2),
        fx.TransferFunction("motor", [1.0], [0.1, 1.0, 5.0]),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("pid.u", "motor.u")
    builder.connect("motor.y", "pid.measurement")
    return builder.build()


def looped(rate: float | str) -> fx.results.Live:
    """Return a run whose control signal goes through UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return fx.live(
        servo(),
        rate=rate,  # type: ignore[arg-type]
        inputs={"motor.u": fx.UDP(port)},
        outputs={"pid.u": fx.UDP(port)},
        signals=["motor.y"],
    )


@contextmanager
def browser(live: fx.results.Live, *, reads: bool) -> Iterator[None]:
    """Listen to the page of a run as a browser does, or hang."""
    from websockets.sync.client import connect

    page = live.page(0)
    address = page.url.replace("http", "ws").replace("/?", "/ws?")
    options: dict[str, Any] = {"origin": f"http://127.0.0.1:{page.port}"}
    with connect(address, **options) as listener:
        if reads:
            threading.Thread(target=lambda: list(listener), daemon=True).start()
        yield
    live.close()


def sleeping(duration: float) -> Row:
    """Return how often a loop without work wakes up after the next deadline."""
    count, missed, start = round(duration / PERIOD), 0, time.monotonic()
    for k in range(1, count + 1):
        time.sleep(max(start + k * PERIOD - time.monotonic(), 0.0))
        missed += time.monotonic() > start + (k + 1) * PERIOD
    return Row("sleeping alone", "missed", 1e3 * missed / count)


def rows(duration: float) -> Sequence[Row]:
    """Measure."""
    found = [sleeping(duration)]
    for name, reads in (("alone", None), ("with a page", True), ("with a page that hangs", False)):
        live = looped(1.0)
        if reads is None:
            report = live.run(duration)
        elif find_spec("websockets") is None:
            continue
        else:
            with browser(live, reads=reads):
                report = live.run(duration)
        print(f"{name}\n{report}\n")
        found += [
            Row(name, "missed", 1e3 * report.missed / report.steps, MISSED),
            Row(name, "jitter, 99 %", 1e3 * report.jitter.quantile(0.99), JITTER),
        ]
    live = looped("max")
    live.run(0.01)
    began = time.process_time()
    steps = live.run(min(duration, 5.0)).steps
    step = (time.process_time() - began) / steps
    simulator = fx.Simulator(servo())
    simulator.advance_to(PERIOD)
    began = time.process_time()
    for k in range(steps):
        simulator.advance_to((k + 2) * PERIOD)
    native = (time.process_time() - began) / steps
    return [
        *found,
        Row("without waiting", "step / native step", step / native, note=f"{1e6 * step:.0f} us"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one second in place of a minute")
    print(formatted(rows(1.0 if parser.parse_args().quick else 60.0)))


if __name__ == "__main__":
    main()
