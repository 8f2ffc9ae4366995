r"""What tolerances do to the compliant door: a study of many runs, stored, resumed and explained.

Eight constants of the door of ``compliant_door.py`` scatter around their nominal values: the mass
of the panel, those of its hinge, and the gain of the amplifier. A Latin hypercube of them is
simulated. What is measured is how long the door rises and settles, and by how much it misses the
target in the end, where friction holds it. The study is stopped halfway and goes on from its file.
Then Sobol indices say which constant matters; they are compared with those by brute force, where
each constant is held at some values while all others scatter.

Run it with ``python examples/door_tolerances.py [--samples N]``. It saves ``door_N.study`` with
runs, and the pictures ``door_bands.png``, ``door_histograms.png`` and ``door_sobol.png``. From the
command line, without a script::

    flexure sweep examples/door_tolerances.py --to 10 --metrics 'rise_time(door.axis.angle)' \
        --latin 10000 door.panel.mass=5% door.hinge.dynamic_friction_torque=20% pid.kp=5%
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import flexure as fx
from examples.compliant_door import TARGET, build

END = 10.0
ANGLE = "door.axis.angle"
TIMES = np.linspace(0.0, END, 401)
#: How far each constant may be from its nominal value.
TOLERANCES = {
    "door.panel.mass": "5 %",
    "door.hinge.spring_constant": "10 %",
    "door.hinge.spring_zero_angle_rad": "10 %",
    "door.hinge.dynamic_friction_torque": "20 %",
    "door.hinge.static_friction_torque": "20 %",
    "door.hinge.viscous_friction": "20 %",
    "door.hinge.catch_torque": "20 %",
    "pid.kp": "5 %",
}
METRICS = {
    "rise time": fx.metrics.step("rise_time", ANGLE),
    "settling time": fx.metrics.step("settling_time", ANGLE),
    "missed by": TARGET - fx.metrics.final(ANGLE),
}
HELD = 16  # values at which brute force holds a constant


def brute_force(servo: fx.Diagram, path: str, others: int) -> dict[str, tuple[float, float]]:
    """Return two shares of the variance of each metric, by the definitions of Sobol indices.

    The first is that of the means over all other constants, when the constant of a path is held at
    one value after the other. The second is the mean of the variances that are left, when all other
    constants are held.
    """
    rest = {name: tolerance for name, tolerance in TOLERANCES.items() if name != path}
    held = fx.plans.latin_hypercube({path: TOLERANCES[path]}, HELD, context=servo, seed=3)
    scattered = fx.plans.latin_hypercube(rest, others, context=servo, seed=4)
    runs = fx.sweep(servo, held * scattered, END, metrics=METRICS, times=TIMES)
    found = {}
    for name, column in runs.metrics.items():
        table = column.reshape(HELD, others)
        parts = table.mean(axis=1).var(), table.var(axis=0).mean()
        found[name] = (float(parts[0] / table.var()), float(parts[1] / table.var()))
    return found


def stored_study(servo: fx.Diagram, samples: int, path: Path) -> fx.results.Sweep:
    """Run half of a plan, as if it had been stopped there, and then all of it."""
    plan = fx.plans.latin_hypercube(TOLERANCES, samples, context=servo, seed=1)
    print(f"{len(plan)} samples of {len(plan.paths)} constants")

    def run(part: fx.plans.Plan) -> fx.results.Sweep:
        return fx.sweep(servo, part, END, signals=ANGLE, times=TIMES, metrics=METRICS, store=path)

    half = run(plan[: samples // 2])
    sweep = run(plan)  # what is in the file is not run again
    for name, values in half.metrics.items():
        assert np.array_equal(sweep.metrics[name][: len(half)], values), "the runs have changed"
    again = fx.load_study(path)
    assert np.array_equal(again[ANGLE], sweep[ANGLE]), "the file holds other numbers"
    return sweep


def main() -> None:
    """Run the study, save pictures, and compare the Sobol indices."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000, help="runs of the study")
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the files")
    arguments = parser.parse_args()
    folder, samples = arguments.folder, arguments.samples
    servo = build()

    sweep = stored_study(servo, samples, folder / f"door_{samples}.study")
    print(sweep.how)
    sweep.plot(ANGLE, path=folder / "door_bands.png")
    sweep.plot_histogram(path=folder / "door_histograms.png")
    for name, values in sweep.metrics.items():
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        unit = sweep.units[name]
        print(f"{name}: {low:.3g} to {high:.3g} {unit} in 90 % of the runs, median {middle:.3g}")
    assert not sweep.failures, "runs have failed"
    assert np.max(np.abs(sweep.metrics["missed by"])) < np.deg2rad(1.0), "doors stop too early"

    rows = 2 ** round(np.log2(samples / len(TOLERANCES)))
    indices = fx.sobol_indices(servo, TOLERANCES, END, rows, metrics=METRICS, times=TIMES, seed=2)
    indices.plot("rise time", path=folder / "door_sobol.png")
    print(indices.table("rise time"))
    for k, path in enumerate(indices.paths):
        for name, shares in brute_force(servo, path, max(32, samples // 40)).items():
            found = indices[name]
            for share, (low, high) in zip(
                shares, (found.first_interval[k], found.total_interval[k]), strict=True
            ):
                slack = 0.05 + 0.5 * (high - low)
                assert low - slack < share < high + slack, f"{name}, {path}: {share:.3f}"
    print("brute force agrees")


if __name__ == "__main__":
    main()
