"""Designs of a cross pivot and of a parallel guide to a specification, beside a search by hand.

Run it with ``python benchmarks/flexures/designs.py [--json FILE]``. Both find the shortest leaves
for a stiffness, a safety over the stroke and a first frequency, with length, width and thickness
free. *By hand* is SciPy's SLSQP with differences, on `load_path`, `stiffness` and `modes`. Each
figure is a ratio of processor times of new systems: of the search by hand to `fx.optimize`, and of
`fx.optimize` to one such evaluation of a design. That both find the same length is checked.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.versus.table import Row, formatted, write
from flexure.diagrams.values.arrays import FloatArray

at = fx.metrics
SAFETY, STEEL = 2.5, fx.Material.common("stainless steel 301")
START = {"length": 0.03, "width": 0.01, "thickness": 3e-4}
LOWER, UPPER = np.array([0.01, 4e-3, 1e-4]), np.array([0.08, 0.012, 1e-3])


def stage(kind: str) -> fx.Plant:
    """Return a body on an assembly of two leaves."""
    builder = fx.PlantBuilder(kind, gravity=(0.0, 0.0, 0.0))
    body = builder.add_body("body", fx.SpatialInertia.solid_box(0.2, size=(0.1, 0.02, 0.02)))
    joint = builder.add_joint(fx.RpyFloatingJoint("body", builder.world, body))
    options: dict[str, Any] = {**START, "material": STEEL}
    if kind == "pivot":
        builder.add_assembly(fx.CrossPivot("leaves", builder.world, body, gap=0.012, **options))
    else:
        joint.default_pose = np.eye(3), (START["length"], 0.0, 0.0)
        builder.add_assembly(
            fx.ParallelGuide("leaves", builder.world, body, distance=0.06, **options)
        )
    return builder.build()


#: The coordinate that moves, its stroke, the stiffness at its axis, and the first frequency.
GOALS: dict[str, tuple[str, float, float, dict[str, Any], float]] = {
    "pivot": ("body.q[qz]", 0.2, 0.5, {"about": (0, 0, 1)}, 5.0),
    "guide": ("body.q[y]", 2e-3, 5e3, {"along": (0, 1, 0)}, 10.0),
}


def by_optimize(kind: str) -> tuple[float, float]:
    """Return the shortest length, and the seconds that it takes to find it."""
    moved, stroke, wanted, axis, least = GOALS[kind]
    plant, start = stage(kind), time.process_time()
    stiffness = at.stiffness_at("body", **axis)
    safety = at.over_stroke("leaves_leaf1.safety", moved, stroke, "smallest", points=3)
    limits = [stiffness >= wanted, stiffness <= 1.001 * wanted, safety >= SAFETY]
    box = zip(START, LOWER, UPPER, strict=True)
    bounds = {f"leaves.{name}": (low, high) for name, low, high in box}
    length = at.at_rest("leaves.length")
    found = fx.optimize(plant, bounds, length, [*limits, at.frequency() >= least])
    return found.objective, time.process_time() - start


def evaluation(kind: str) -> Callable[[FloatArray], FloatArray]:
    """Return a function of length, width and thickness that returns what is left of all limits."""
    moved, stroke, wanted, axis, least = GOALS[kind]
    plant = stage(kind)
    worst = plant.find("leaves_leaf1.safety")
    row = 4 if "along" in axis else 2

    def left(sizes: FloatArray) -> FloatArray:
        context = plant.create_default_context()
        for name, size in zip(START, sizes, strict=True):
            context.set(f"leaves.{name}", size)
        context = fx.equilibrium(plant, context=context).context
        path = fx.load_path(plant, {moved: [-stroke, stroke]}, context=context)
        safety = min(worst.eval(path.context(k))[0] for k in (0, -1))
        k = 1.0 / fx.stiffness(plant, "body", context=context).compliance[row, row]
        first = fx.modes(plant, context)[0].frequency
        room = safety / SAFETY - 1.0, first / least - 1.0
        return np.array([k / wanted - 1.0, 1.001 - k / wanted, *room])

    return left


def by_hand(kind: str) -> tuple[float, float]:
    """Return the same as `by_optimize`, by SLSQP with differences."""
    left, start = evaluation(kind), time.process_time()

    def sizes(u: FloatArray) -> FloatArray:
        return np.asarray(LOWER + u * (UPPER - LOWER))

    begin = (np.array([*START.values()]) - LOWER) / (UPPER - LOWER)
    minimize: Any = optimize.minimize
    found = minimize(
        lambda u: u[0],
        begin,
        bounds=[(0.0, 1.0)] * 3,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: left(sizes(np.clip(u, 0.0, 1.0)))},
        options={"eps": 1e-6, "ftol": 1e-9},
    )
    return float(sizes(found.x)[0]), time.process_time() - start


def once(kind: str) -> float:
    """Return the seconds that one evaluation takes in a new system."""
    left, start = evaluation(kind), time.process_time()
    left(np.array([*START.values()]))
    return time.process_time() - start


def main() -> None:
    """Print the ratios, and check that both searches agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    by_optimize("pivot"), by_hand("guide")  # imports and compiled code
    rows = []
    for kind in GOALS:
        (length, ours), (other, theirs) = by_optimize(kind), by_hand(kind)
        assert length < 1.002 * other, f"{kind}: a search by hand finds shorter leaves"
        note = f"{1e3 * length:.3f} mm, by hand {1e3 * other:.3f} mm"
        rows.append(Row(kind, "search by hand / optimize", theirs / ours, 1.0, "higher", note))
        rows.append(Row(kind, "optimize / one evaluation", ours / once(kind), 10.0))
    print(formatted(rows))
    if arguments.json:
        write(rows, arguments.json)


if __name__ == "__main__":
    main()
