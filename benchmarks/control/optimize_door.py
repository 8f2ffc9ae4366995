"""Optimize the controller of the compliant door, beside the same search with pydrake and SciPy.

Three gains are looked for that make the ITAE of the angle small, with bounds on the torque and on
the overshoot. Both sides use SciPy's differential evolution with the same populations, the same
1001 samples and the same formulas. Each takes the fastest of several methods and tolerances whose
objective is within a thousandth of a precise one, for the gains of the example. Drake runs fewer
evaluations, and its time counts for each. What is timed is CPU time of the whole search, on one
thread, the start of each program left out. Needs the package drake; without it, Flexure runs alone.

    python benchmarks/control/optimize_door.py
    python benchmarks/control/optimize_door.py --evaluations 200 --theirs 8
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np

import flexure as fx
from benchmarks.versus import drake_door
from examples import compliant_door
from flexure.diagrams.values.arrays import FloatArray

END, STEP_AT, TARGET = 10.0, 0.5, compliant_door.TARGET
TIMES = np.linspace(0.0, END, 1001)
BOUNDS = {"pid.kp": (10.0, 200.0), "pid.ki": (1.0, 100.0), "pid.kd": (2.0, 60.0)}
TORQUE, OVERSHOOT = 90.0, 5.0
ANGLE = "door.axis.angle"
START = (60.0, 20.0, 12.0)
ITAE = fx.metrics.itae(ANGLE, target=TARGET, start=STEP_AT)
CONSTRAINTS = (
    fx.metrics.peak("pid.u") <= TORQUE,
    100.0 * (fx.metrics.maximum(ANGLE) / TARGET - 1.0) <= OVERSHOOT,
)
METHODS = ("auto", "RK23", "RK45", "DOP853")
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5)
CLOSE = 1e-3


def ours(
    evaluations: int, population: int, **options: Any
) -> tuple[fx.results.Optimization, float]:
    """Return the answer and the seconds of a search."""
    door = compliant_door.build()

    def search(most: int, **options: Any) -> fx.results.Optimization:
        sizes: dict[str, Any] = {"population": population, "max_evaluations": most, "threads": 1}
        return fx.optimize(door, BOUNDS, ITAE, CONSTRAINTS, t_final=END, **sizes, **options)

    search(population, **{**options, "polish": False})  # compiles
    start = time.process_time()
    found = search(evaluations, **options)
    return found, time.process_time() - start


def our_numbers(gains: FloatArray, **options: Any) -> FloatArray:
    """Return objective and constraints of one run."""
    context = compliant_door.build().create_default_context()
    for path, gain in zip(BOUNDS, gains, strict=True):
        context.set(path, gain)
    result = fx.simulate(context.system, END, context=context, **options)
    return measured(result.sample(ANGLE, TIMES), result.sample("pid.u", TIMES))


def measured(angle: FloatArray, torque: FloatArray) -> FloatArray:
    """Return objective and constraints of samples."""
    samples = {ANGLE: angle[np.newaxis], "pid.u": torque[np.newaxis]}
    metrics = (ITAE, *(constraint.metric for constraint in CONSTRAINTS))
    return np.array([float(metric.evaluate(TIMES, samples)[0]) for metric in metrics])


class DrakeDoor:
    """The same loop in Drake."""

    def __init__(self, scheme: str, accuracy: float) -> None:
        self.scheme, self.accuracy = scheme, accuracy

    def numbers(self, gains: FloatArray) -> FloatArray:
        """Return objective and constraints of one run."""
        values = dict(zip(BOUNDS, gains.tolist(), strict=True))
        run = drake_door.run(values, self.scheme, self.accuracy)
        return measured(*(np.interp(TIMES, run.times, each) for each in (run.angle, run.torque)))


def fastest_method(precise: FloatArray) -> dict[str, Any]:
    """Return the options of Flexure with which runs are fastest and close enough."""
    door, count = compliant_door.build(), 48
    gains = {path: np.full(count, gain) for path, gain in zip(BOUNDS, START, strict=True)}
    best: tuple[float, dict[str, Any]] | None = None
    for method in METHODS:
        for rtol in ACCURACIES:
            options = {"method": method, "rtol": rtol}
            runs: dict[str, Any] = {"signals": [ANGLE, "pid.u"], "threads": 1, **options}
            fx.sweep(door, gains, END, **runs)  # compiles
            start = time.process_time()
            swept = fx.sweep(door, gains, END, **runs)
            taken = (time.process_time() - start) / count
            error = abs(measured(swept[ANGLE][0], swept["pid.u"][0])[0] / precise[0] - 1.0)
            print(f"  Flexure {method}, rtol {rtol:g}: {taken:.5f} s, differs by {error:.1e}")
            if error <= CLOSE:
                if best is None or taken < best[0]:
                    best = taken, options
                break
    assert best is not None, "no method of Flexure comes close to its precise run"
    return best[1]


def fastest_scheme(precise: FloatArray) -> DrakeDoor:
    """Return Drake with the fastest scheme whose objective is close enough."""
    best: tuple[float, DrakeDoor] | None = None
    for scheme in drake_door.SCHEMES:
        for accuracy in ACCURACIES:
            door = DrakeDoor(scheme, accuracy)
            start = time.process_time()
            found = door.numbers(np.array(START))
            taken = time.process_time() - start
            error = abs(found[0] / precise[0] - 1.0)
            print(f"  Drake {scheme}, accuracy {accuracy:g}: {taken:.3f} s, differs by {error:.1e}")
            if error <= CLOSE:
                if best is None or taken < best[0]:
                    best = taken, door
                break
    assert best is not None, "no scheme of Drake gives the objective of Flexure"
    return best[1]


def theirs(door: DrakeDoor, evaluations: int, population: int) -> float:
    """Search as far as a number of evaluations goes, and return the seconds for each."""
    from scipy import optimize

    evolve: Any = optimize.differential_evolution
    known: dict[bytes, FloatArray] = {}

    def numbers(gains: FloatArray) -> FloatArray:
        key = gains.tobytes()
        if key not in known:
            if len(known) >= evaluations:
                raise StopIteration
            known[key] = door.numbers(gains)
        return known[key]

    constraint = optimize.NonlinearConstraint(
        lambda gains: numbers(gains)[1:], -np.inf, [TORQUE, OVERSHOOT]
    )
    start = time.process_time()
    with suppress(StopIteration, RuntimeError):
        evolve(
            lambda gains: numbers(gains)[0],
            list(BOUNDS.values()),
            popsize=max(1, population // len(BOUNDS)),
            constraints=constraint,
            polish=False,
            updating="deferred",
            seed=0,
        )
    return (time.process_time() - start) / len(known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=1000, help="of Flexure")
    parser.add_argument("--theirs", type=int, default=20, help="evaluations of Drake")
    parser.add_argument("--population", type=int, default=48)
    options = parser.parse_args()
    size = options.population
    precise = our_numbers(np.array(START), rtol=1e-10)
    best = fastest_method(precise)
    found, taken = ours(options.evaluations, size, polish=False, **best)
    mine = taken / found.evaluations
    print(found)
    print(f"Flexure  {1e3 * mine:8.3f} ms for each of {found.evaluations} evaluations, {best}")
    polished, with_polish = ours(options.evaluations, size, **best)
    print(polished)
    print(f"Flexure  {with_polish - taken:8.1f} s more for the polish")
    if find_spec("pydrake") is None:
        print("pydrake is not installed (pip install drake): no comparison with Drake")
        return
    each = theirs(fastest_scheme(precise), options.theirs, size)
    print(f"Drake    {1e3 * each:8.3f} ms for each of {options.theirs} evaluations")
    print(f"         {each / mine:8.0f} times as long")


if __name__ == "__main__":
    main()
