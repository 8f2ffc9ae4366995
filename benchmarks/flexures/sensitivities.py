"""Motions with derivatives beside plain ones, and fits in compiled loops beside fits in Python.

Run it with ``python benchmarks/flexures/sensitivities.py [--quick] [--json FILE]``.

==============  ====================================================================================
cantilever      the leaf of ``speed.py`` in 4, 16 and 32 segments, swinging for 0.05 s with ESDIRK4:
                the motion with its derivatives by thickness and damping, by the plain motion
one segment     0.2 ms of the same leaf in one segment with derivatives: in Python by in loops
lag, arm        fits of two and of four numbers: in Python by in loops
driven arm      the same, of which the torque was measured as well
==============  ====================================================================================

In Python means with the same equations and methods without native code: what every sensitivity took
before there were loops. Divided leaves are left out there: 0.05 s of four segments were not done
after nine minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.flexures.speed import Case, plant
from benchmarks.versus.sides import in_rounds, ratio, seconds
from benchmarks.versus.table import Row, show
from flexure.solvers.analysis.sensitivities.native_motion import NativeMotion
from flexure.solvers.native.programs.programs import UnsuitableError

HORIZON, SHORT, RTOL = 0.05, 2e-4, 1e-6
#: Times of a plain motion that derivatives by two parameters may take, and how many times faster
#: small fits are to be.
MOTION, FITS = 5.0, 5.0


@contextmanager
def in_python() -> Iterator[None]:
    """Let sensitivities find no native code."""

    def refuse(*_: object) -> None:
        raise UnsuitableError("of a comparison")

    with patch.object(NativeMotion, "__init__", refuse):
        yield


def leaf(segments: int) -> tuple[fx.Plant, fx.Context]:
    """Return the leaf with its load."""
    case = Case("cantilever", 1, segments)
    made = plant(case, segments)
    context = made.create_default_context()
    made.input_port("load").fix(context, np.array([0.0, 0.0, 0.0, 0.0, case.force, 0.0]))
    return made, context


def motion_row(segments: int, rounds: int) -> Row:
    """Compare a motion with derivatives to a plain one."""
    made, context = leaf(segments)
    ways = ["leaf0.thickness", "leaf0.damping_time"]

    def plain() -> object:
        return fx.simulate(
            made, HORIZON, context=context, method="ESDIRK4", rtol=RTOL, atol=1e-3 * RTOL
        )

    def derived() -> object:
        return fx.parameter_sensitivity(
            made, ways, HORIZON, context=context, method="ESDIRK4", rtol=RTOL
        )

    columns = in_rounds([lambda: seconds(derived), lambda: seconds(plain)], rounds)
    metric = "with derivatives / plain motion"
    note = f"{1e3 * min(columns[0]):.0f} ms"
    return Row(f"{segments} segments", metric, ratio(*columns), MOTION, "lower", note)


def sides_row(name: str, run: Callable[[], object], rounds: int) -> Row:
    """Compare something in Python to the same in loops."""

    def slowly() -> float:
        with in_python():
            return seconds(run)

    columns = in_rounds([slowly, lambda: seconds(run)], rounds)
    note = f"{1e3 * min(columns[0]):.0f} ms and {1e3 * min(columns[1]):.1f} ms"
    return Row(name, "in Python / in loops", ratio(*columns), FITS, "higher", note)


def short_motion() -> Callable[[], object]:
    """Return the motion of a leaf in one segment."""
    made, context = leaf(1)
    ways = ["leaf0.thickness", "leaf0.damping_time"]
    return lambda: fx.parameter_sensitivity(made, ways, SHORT, context=context, rtol=RTOL)


def lag_fit() -> Callable[[], object]:
    """Return the fit of a lag to its answer to a step."""
    lag = fx.FirstOrderLag("lag", time_constant=1.0)
    time = np.linspace(0.0, 5.0, 26)
    record = {"time": time, "u": np.ones(26), "y": 3.0 * (1.0 - np.exp(-time / 2.0))}
    return lambda: fx.fit(lag, record, ["time_constant", "gain"])


def arm_fit(*, driven: bool) -> Callable[[], object]:
    """Return the fit of an arm on a spring, with an initial angle and an offset of its sensor."""
    builder = fx.PlantBuilder("arm")
    rod = fx.SpatialInertia.thin_rod(0.5, length=0.4, axis="x")
    bar = builder.add_body("bar", rod, com=(0.2, 0.0, 0.0))
    axis = builder.add_joint(fx.RevoluteJoint("axis", builder.world, bar, axis=(0.0, 0.0, 1.0)))
    builder.add_force_element(fx.JointSpring("spring", axis, stiffness=2.3, damping=0.012))
    builder.add_actuator("motor", axis)
    arm, time = builder.build(), np.linspace(0.0, 2.0, 101)
    start = arm.create_default_context()
    start.set("motor", 0.0)
    start.set("axis.angle", 0.3)
    noise = np.random.default_rng(0).normal(0.0, 0.005, time.size)
    seen = 0.03 + fx.simulate(arm, 2.0, context=start, rtol=1e-9).sample("axis.angle", time) + noise
    record: dict[str, Any] = {"time": time, "axis.angle": seen}
    if driven:
        record["motor"] = 0.01 * np.sin(7.0 * time)
    start.set("spring.stiffness", 2.0)
    start.set("spring.damping", 0.05)
    start.set("axis.angle", 0.25)
    wanted = ["spring.stiffness", "spring.damping", "axis.angle"]
    return lambda: fx.fit(arm, record, wanted, context=start, offsets=["axis.angle"])


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Sensitivities and fits in compiled loops.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else 9
    motions = (motion_row(segments, rounds) for segments in (4, 16, 32))
    sides = {
        "one segment": short_motion(),
        "lag": lag_fit(),
        "arm": arm_fit(driven=False),
        "driven arm": arm_fit(driven=True),
    }
    fits = (sides_row(name, run, min(rounds, 3)) for name, run in sides.items())
    show(map(list, (motions, fits)), arguments.json)


if __name__ == "__main__":
    main()
