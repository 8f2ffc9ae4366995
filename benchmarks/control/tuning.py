"""Tuning a cascade, and objectives at rest beside those of runs, as ratios of times.

Run it with ``python benchmarks/control/tuning.py [--quick] [--json FILE]``. The cascade has three
loops and four operating points; its time is divided by that of 100 linear models of the diagram. A
modal and a static objective are each computed at rest, with derivatives, and from a run; bars are a
ratio of 10 or more for these, and 5 s for the cascade on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from flexure.diagrams.values.arrays import FloatArray
from tests.solvers.design.tuning.test_tune import GAINS, cascade

BAR, SECONDS = 10.0, 5.0
STEEL = fx.Material.common("stainless steel 301")


def shortest(function: Callable[[], object], count: int) -> float:
    """Return the shortest of several times, in seconds."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def leaf() -> tuple[fx.Plant, fx.Context]:
    """Return a body on a leaf, beside its equilibrium under gravity."""
    builder = fx.PlantBuilder("leaf", gravity=(0.0, -9.81, 0.0))
    body = builder.add_body("tip", fx.SpatialInertia.solid_box(0.05, size=(0.02, 0.02, 0.02)))
    joint = builder.add_joint(fx.PlanarJoint("free", builder.world, body))
    joint.default_pose = np.eye(3), (0.06, 0.0, 0.0)
    sizes: dict[str, Any] = {"length": 0.06, "width": 0.01, "thickness": 5e-4, "material": STEEL}
    builder.add_force_element(
        fx.LeafSpring("spring", builder.world, body, planar=True, damping_time=1e-3, **sizes)
    )
    plant = builder.build()
    return plant, plant.create_default_context()


def pitch(times: FloatArray, values: FloatArray) -> float:
    """Return the strongest frequency of a signal in Hz."""
    even = np.linspace(times[0], times[-1], 4096)
    y = np.interp(even, times, values)
    return float(np.argmax(np.abs(np.fft.rfft(y - y.mean()))) / (times[-1] - times[0]))


def tuned(period: float | None = None) -> fx.results.Tune:
    """Tune the cascade, continuous or sampled."""
    diagram, contexts = cascade(period)
    m = fx.metrics
    goals = [
        m.tracking("target.value", "angle.y", 0.1) <= 1.0,
        m.stability_margin("current.u") >= 0.8,
        m.stability_margin("speed.u") >= 0.7,
        m.least_damping() >= 0.5,
        m.gain("load.value", "angle.y") <= 0.05,
        m.overshoot("target.value", "angle.y") <= 5.0,
    ]
    return fx.tune(diagram, GAINS, goals, contexts=contexts, period=period)


def require_met(period: float | None) -> None:
    """End where goals are missed."""
    if not tuned(period).is_met:
        sys.exit("goals are missed")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one measurement of each")
    parser.add_argument("--json", type=Path, help="where to save the table")
    arguments = parser.parse_args()
    count = 1 if arguments.quick else 5
    rows: dict[str, float] = {}

    diagram, contexts = cascade()
    seconds, sampled = (shortest(partial(require_met, each), count) for each in (None, 2e-4))
    model = shortest(
        lambda: [fx.linearize(diagram, contexts[0], "target.value", "angle.y") for _ in range(100)],
        count,
    )
    rows["tune a cascade / 100 linear models"] = seconds / model

    plant, context = leaf()
    bounds, signal = {"spring.thickness": (4e-4, 8e-4)}, "tip.position[y]"
    cases = {
        "modal": (fx.metrics.frequency(), fx.metrics.of(pitch, signal)),
        "static": (fx.metrics.at_rest(signal), fx.metrics.final(signal)),
    }
    for name, (at_rest, of_run) in cases.items():
        search = partial(fx.optimize, plant, bounds, context=context)
        rest, run = partial(search, at_rest), partial(search, of_run, t_final=2.0)
        rest(), run()  # which compile
        rows[f"{name} objective: by runs / at rest"] = shortest(run, count) / shortest(rest, count)
    for name, ratio in rows.items():
        print(f"{name:40} {ratio:8.2f}")
    print(
        f"bars: {BAR:g} for objectives; cascade {seconds:.2f} s, sampled {sampled:.2f} s, "
        f"{SECONDS:g} s on a quiet machine"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
