"""How long sampled loops take: with noise, interpreted and a thousand times, and with delays.

Run it with ``python benchmarks/sweeps/noisy_loop.py [RUNS]``. The loop is a second-order plant
under a sampled PID controller that measures it with noise, at 100 Hz for 4 s. Printed are

interpreted / native
    the ratio of one run by the equations themselves to one by native code, of processor time,
thousand runs
    the seconds by the clock for 1000 such runs, all of other noise, as measured by `fx.sweep` over
    as many runs as asked for,
delays / unit delay
    the ratios of one run of a loop at 1 kHz with a `TimeDelay` of 2, 2.5 and 500 samples to one
    with a `UnitDelay`, of processor time.

Native code needs the package llvmlite.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx

END = 4.0  # s
PERIOD = 0.01  # s
#: The least ratio, and the most seconds of a thousand runs on two idle cores.
RATIO, SECONDS = 20.0, 5.0
#: The largest ratio of a run with a delay to one with a unit delay.
DELAYED = 3.0


def noisy_loop() -> fx.Diagram:
    """Build the loop."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.TransferFunction("plant", [1.0], [1.0, 0.6, 4.0]),
        fx.Noise("noise", 1, PERIOD, standard_deviation=0.01),
        fx.Sum("measured", "++"),
        fx.Step("target", at=0.5, to=1.0),
        fx.PIDController("pid", period=PERIOD, kp=8.0, ki=6.0, kd=2.0),
    )
    builder.connect("plant.y", "measured.u1")
    builder.connect("noise.y", "measured.u2")
    builder.connect("target.y", "pid.setpoint")
    builder.connect("measured.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    return builder.build()


def delayed_loop(delay: fx.LeafSystem) -> fx.Diagram:
    """Build a loop in which a delay is behind the plant."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.Step("target", at=0.1),
        fx.PIDController("pid", kp=5.0, ki=5.0, kd=0.1, period=1e-3),
        fx.TransferFunction("plant", [1.0], [0.01, 0.1, 0.0]),
        delay,
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect_chain("pid", "plant", delay, "pid.measurement")
    return builder.build()


def delay_ratios() -> list[float]:
    """Return how much longer runs with delays take than one with a unit delay."""
    delays = [fx.TimeDelay("delay", samples * 1e-3, period=1e-3) for samples in (2.0, 2.5, 500.0)]
    found = []
    for delay in (fx.UnitDelay("delay", 1e-3), *delays):
        loop = delayed_loop(delay)
        fx.simulate(loop, END)  # compiles
        found.append(seconds(partial(fx.simulate, loop, END), time.process_time, 5))
    return [each / found[0] for each in found[1:]]


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
    ratios = ", ".join(f"{ratio:.3g}" for ratio in delay_ratios())
    print(f"delays / unit delay: {ratios} (at most {DELAYED:g})")


if __name__ == "__main__":
    main()
