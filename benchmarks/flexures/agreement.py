"""Twenty random assemblies of bodies and beams, ours beside Exudyn's.

Run it with ``python benchmarks/flexures/agreement.py [--quick] [--json FILE]``. It needs Exudyn
(``pip install exudyn``). Half of the assemblies are in a plane, half in space, many of them with
closed loops. Compared are

statics
    where the bodies stand under a force and a moment, in parts of their largest displacement,
frequencies
    the lowest three natural frequencies, relative,
motion
    where the bodies are a while after the load was put on at once, in parts of their displacement,

ours with a few segments for each beam, theirs with the error of second order of their elements
taken away by two numbers of elements, but for the motion. Seconds are those of the thread, from a
prepared simulator to the end, and say little, since the accuracies differ; ``speed.py`` compares
at equal accuracy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.flexures import exudyn_side, our_side
from benchmarks.flexures.assemblies import Assembly, random_assembly
from benchmarks.versus.sides import MissingPeerError
from benchmarks.versus.table import Row, formatted, write

SEGMENTS, ELEMENTS, COUNT = 4, 8, 3
DURATION, STEPS = 0.2, 1000
#: Largest differences, in parts of the displacement, or of the frequency.
BARS = {"statics": 1e-3, "frequencies": 2e-3, "motion": 2e-2}


def rows(assembly: Assembly) -> Iterator[Row]:
    """Compare one assembly."""
    start = np.array([body.position for body in assembly.bodies])
    plant = our_side.build(assembly, SEGMENTS)
    title = f"{assembly.name} ({len(assembly.bodies)} bodies, {len(assembly.leaves)} beams)"

    found = our_side.static_positions(assembly, plant)
    try:
        exact, left = exudyn_side.extrapolated(
            lambda n: exudyn_side.static_positions(assembly, n), ELEMENTS
        )
    except exudyn_side.SOLVER_ERRORS as error:
        print(f"{title}: Exudyn finds no equilibrium ({error})")
    else:
        moved = np.abs(exact - start).max()
        note = f"moved {moved:.3g} m; theirs, extrapolated, by {left / moved:.1e}"
        difference = np.abs(found - exact).max() / moved
        yield Row(title, "statics", difference, BARS["statics"], note=note)

    rates = our_side.frequencies(plant, COUNT)
    exact, left = exudyn_side.extrapolated(
        lambda n: exudyn_side.eigenvalues(assembly, n, COUNT), ELEMENTS
    )
    note = "rad/s: " + ", ".join(f"{rate:.5g}" for rate in exact)
    difference = np.abs(rates / exact - 1.0).max()
    yield Row(title, "frequencies", difference, BARS["frequencies"], note=note)

    moving, ours = our_side.transient(assembly, plant, DURATION)
    exact, theirs = exudyn_side.transient(assembly, ELEMENTS, DURATION, STEPS)
    moved = np.abs(exact - start).max()
    note = f"moved {moved:.3g} m; Exudyn / ours in time {theirs / ours:.2g}"
    difference = np.abs(moving - exact).max() / moved
    yield Row(title, "motion", difference, BARS["motion"], note=note)


def main() -> None:
    """Compare, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Assemblies of beams in Flexure and in Exudyn.")
    parser.add_argument("--quick", action="store_true", help="four assemblies")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    try:
        exudyn_side.need_exudyn()
    except MissingPeerError as error:
        print(error)
        return
    found: list[Row] = []
    for seed in range(2 if arguments.quick else 10):
        for planar in (True, False):
            new = list(rows(random_assembly(seed, planar=planar)))
            print(formatted(new).partition("\n")[2], flush=True)
            found += new
    if arguments.json is not None:
        write(found, arguments.json)


if __name__ == "__main__":
    main()
