"""How long a noisy, sampled loop takes: natively, interpreted, and a thousand runs of it.

Run it with ``python benchmarks/noisy_loop.py [RUNS]``. The loop is a second-order plant under a
sampled PID controller that measures it with noise, at 100 Hz for 4 s. Printed are

interpreted / native
    the ratio of one run by the equations themselves to one by native code, of processor time,
thousand runs
    the seconds by the clock for 1000 such runs, all of other noise, as measured by `fx.sweep` over
    as many runs as asked for.

Native code needs the package llvmlite.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import flexure as fx

END = 4.0  # s
PERIOD = 0.01  # s
#: The least ratio, and the most seconds of a thousand runs on two idle cores.
RATIO, SECONDS = 20.0, 5.0


def noisy_loop() -> fx.Diagram:
    """Build the loop."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.TransferFunction("plant", [1.0], [1.0, 0.6, 4.0]),
        fx.Noise("noise", 1, PERIOD, standard_deviation=0.01),
        fx.Sum("measured", "++"),
        fx.Step("target", at=0.5, to=1.0),
        fx.SampledPIDController("pid", period=PERIOD, kp=8.0, ki=6.0, kd=2.0),
    )
    builder.connect("plant.y", "measured.u1")
    builder.connect("noise.y", "measured.u2")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("measured.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    return builder.build()


def seconds(run: Callable[[], object], clock: Callable[[], float], times: int) -> float:
    """Return the least time that something takes."""
    found = []
    for _ in range(times):
        start = clock()
        run()
        found.append(clock() - start)
    return min(found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A noisy, sampled loop.")
    parser.add_argument("runs", nargs="?", type=int, default=200, help="runs of the sweep")
    runs = parser.parse_args().runs
    loop = noisy_loop()
    fx.simulate(loop, END)  # compiles
    native = seconds(lambda: fx.simulate(loop, END), time.process_time, 5)
    interpreted = seconds(lambda: fx.simulate(loop, END, compiled=False), time.process_time, 2)
    seeds = np.arange(float(runs))
    swept = seconds(
        lambda: fx.sweep(loop, {"noise.seed": seeds}, END, signals=["plant.y"]),
        time.perf_counter,
        2,
    )
    print(f"interpreted / native: {interpreted / native:.3g} (at least {RATIO:g})")
    print(f"thousand runs: {1000.0 * swept / runs:.3g} s (at most {SECONDS:g} s on two idle cores)")


if __name__ == "__main__":
    main()
