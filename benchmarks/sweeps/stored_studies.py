"""What keeping the runs of a sweep in a file costs.

Run it with ``python benchmarks/sweeps/stored_studies.py [RUNS]``. The step response of the
compliant door is simulated with gains and springs from a Latin hypercube, in lanes, and measured
without keeping signals, in turn with a file and without one. Printed are the ratios of processor
time, of which the median counts, and of time by the clock, which says little unless the machine is
idle.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from examples import compliant_door

RATIO = 1.05  # at most, of 10^4 runs
ROUNDS = 5
SPREAD = ["pid.kp", "pid.ki", "pid.kd", "door.hinge.spring_constant"]


def measure(runs: int) -> tuple[float, float]:
    """Return the ratios of processor time and of time by the clock, with a file to without."""
    door = compliant_door.build()
    plan = fx.plans.latin_hypercube(SPREAD, runs, plus_minus="5 %", context=door, seed=1)
    angle = "door.axis.angle"
    figures = [fx.metrics.step(name, angle) for name in ("overshoot", "rise_time")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(ROUNDS + 1):
            spent = []
            for store in (None, Path(folder, f"{k}.study")):
                began = time.process_time(), time.perf_counter()
                fx.sweep(door, plan, 4.0, metrics=figures, method="RK45", store=store)
                spent.append((time.process_time() - began[0], time.perf_counter() - began[1]))
            rows.append([with_file / without for without, with_file in zip(*spent, strict=True)])
    cpu, clock = zip(*rows[1:], strict=True)  # the first round compiles
    return statistics.median(cpu), statistics.median(clock)


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description="Measure what a file costs.")
    parser.add_argument("runs", nargs="?", type=int, default=10_000)
    options = parser.parse_args()
    cpu, clock = measure(options.runs)
    print(f"{options.runs} runs with a file / without: {cpu:.3f} of processor time, {clock:.3f} by")
    print(f"the clock; at most {RATIO} is asked for")


if __name__ == "__main__":
    main()
