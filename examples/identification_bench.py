"""Identify a bench through UDP: a sine sweep goes out, the response is recorded, a model is fitted.

The bench is simulated here, a motor with a spring, in a live run of its own that is reached by UDP
only, as a real one would be. Both runs share a clock that moves to the next step when both wait, so
that the example is fast and always the same. Without ``clock=``, it drives a bench in real time.

Run it with ``python examples/identification_bench.py``. It saves ``identification_bench.png`` and
the recording ``identification_bench.npz``.
"""

from __future__ import annotations

import argparse
import socket
import threading
from pathlib import Path

import numpy as np

import flexure as fx

PERIOD, DURATION = 5e-3, 3.0  # s
TRUE = np.array([0.02, 0.15, 3.0])  # kg m², N m s, N m: inertia, damping, stiffness
GUESS = np.array([0.05, 0.05, 5.0])


class SharedClock:
    """A clock of two runs: one of them runs at a time, the one that is due first."""

    def __init__(self) -> None:
        self._time, self._others, self._due = 0.0, 1, dict[int, float]()
        self._turn = threading.Condition()

    def now(self) -> float:
        """Return the time in seconds."""
        return self._time

    def sleep(self, seconds: float) -> None:
        """Let the other one run until it is later."""
        me = threading.get_ident()
        with self._turn:
            self._due[me] = self._time + seconds
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._is_next(me))
            self._time = max(self._time, self._due.pop(me))

    def leave(self) -> None:
        """Let the other one run alone."""
        with self._turn:
            self._others = 0
            self._turn.notify_all()

    def _is_next(self, me: int) -> bool:
        return len(self._due) > self._others and min(self._due, key=self._due.__getitem__) == me


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def build() -> fx.Diagram:
    """Return the bench: a motor with a spring, at rest while no torque comes."""
    builder = fx.DiagramBuilder("bench")
    builder.add_all(fx.Constant("rest", 0.0), fx.TransferFunction("motor", [1.0], TRUE))
    builder.connect("rest.y", "motor.u")
    return builder.build()


def measure(path: Path) -> fx.results.LiveReport:
    """Send a sweep of torque to the bench, and record it with the angle that comes back."""
    clock, torque_port, angle_port = SharedClock(), free_port(), free_port()
    bench = fx.live(
        build(),
        period=PERIOD,
        clock=clock,
        inputs={"motor.u": fx.UDP(torque_port)},
        outputs={"motor.y": fx.UDP(angle_port, format="<f")},
    )
    builder = fx.DiagramBuilder("sweeper")
    builder.add_all(
        fx.Chirp("torque", 0.2, 6.0, DURATION, amplitude=0.4, method="logarithmic"),
        fx.PassThrough("angle", 1),
    )
    builder.export_input("angle.u", name="measured")
    sweeper = fx.live(
        builder.build(),
        period=PERIOD,
        clock=clock,
        inputs={"measured": fx.UDP(angle_port, format="<f")},
        outputs={"torque.y": fx.UDP(torque_port)},
        timeout={"measured": 0.1},
        safe={"torque.y": 0.0},
        record=path,
    )
    other = threading.Thread(target=bench.run)
    other.start()
    clock.sleep(0.5 * PERIOD)  # each hears what the other has sent half a period before
    report = sweeper.run(DURATION)
    clock.leave()
    bench.stop()
    other.join()
    return report


def identify(path: Path) -> fx.results.Fit:
    """Fit inertia, damping and stiffness to a recording."""
    with np.load(path) as stored:
        record = dict(stored)
    builder = fx.DiagramBuilder("model")
    torque = fx.Recorded("torque", {n: record[n] for n in ("time", "torque.y")}, kind="hold")
    builder.add_all(torque, fx.TransferFunction("bench", [1.0], GUESS))
    builder.connect("torque.y", "bench.u")
    model = builder.build()
    # An angle is sent by a step of the bench, and is there at the next step of the sweep.
    late = {"time": record["time"][1:] - PERIOD, "bench.y": record["measured"][1:]}
    wanted = [f"bench.denominator[{k}]" for k in range(3)]
    return fx.fit(model, late, wanted, logarithmic=wanted)


def main() -> None:
    """Measure, fit, and compare with the bench."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the files")
    folder = parser.parse_args().folder
    report = measure(folder / "identification_bench.npz")
    print(report)
    found = identify(folder / "identification_bench.npz")
    print(found)
    found.plot(path=folder / "identification_bench.png")
    values = np.array([found[f"bench.denominator[{k}]"] for k in range(3)])
    print(f"inertia, damping and stiffness are off by {np.max(np.abs(values / TRUE - 1.0)):.1e}")
    assert report.missed == 0, "a deadline was missed"
    assert np.allclose(values, TRUE, rtol=1e-3), "the bench is another one"


if __name__ == "__main__":
    main()
