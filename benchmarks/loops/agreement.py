"""Twenty random closed loops, ours beside those of Drake and MuJoCo.

Run it with ``python benchmarks/loops/agreement.py [--quick] [--json FILE] [--record FILE]``. It
needs Drake and MuJoCo (``pip install drake mujoco``), each of which is left out, with a word, where
it is missing. Four-bars and slider-cranks in any plane, spatial four-bars, chains on a rod, rings
of seven hinges and mechanisms of two loops start with velocities under gravity. Compared are

motion
    where all bars are at ten times within half a second, in parts of their largest displacement,
reaction
    the force in the first joint beside Drake's, in parts of the largest; of a mechanism in a plane
    within that plane, since how it is shared at right angles to it is not determined.

Constraints of MuJoCo give way, by an amount that falls with the square of their time constant; they
are as stiff as they can be otherwise, and two time constants give the limit of none. Drake's have
no softness to choose, but an error of first order in the step, and three steps give the limit of
none. All are halved until the best run is near that limit, and the notes say how near. Ours is one
run, whose drift of the energy and opening of the loops are rows of their own.

``--record`` writes these limits, together with the mechanisms, as the tests read them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.loops import drake_side, mujoco_side, our_side
from benchmarks.loops.random_loops import Array, Loop, plain, random_loop
from benchmarks.versus.sides import MissingPeerError
from benchmarks.versus.table import Row, formatted, write

TIMES = np.linspace(0.05, 0.5, 10)
#: The largest time constant of MuJoCo in s, and its steps in each.
CONSTANT, SHARE = 0.002, 10
#: The largest step of Drake in s.
STEP = 1e-3
#: How far the best run may be from the limit, in parts of what bars move; else all is halved.
LEFT = {"MuJoCo": 2e-3, "Drake": 1e-3}
#: Largest differences in parts, largest drift of the energy in J, and opening of loops in m.
BARS = {"motion": 5e-4, "reaction": 5e-3, "drift": 1e-8, "opening": 1e-10}
_HALVINGS = 5


def by_mujoco(loop: Loop, rates: Any, fine: float) -> dict[str, tuple[Array, float]]:
    """Return the motion in the limit, and how far the best run was from it."""
    runs = [
        mujoco_side.positions(loop, rates, TIMES, part * CONSTANT, part * CONSTANT / SHARE)
        for part in (fine, 0.5 * fine)
    ]
    found = runs[1] + (runs[1] - runs[0]) / 3.0
    return {"motion": (found, float(np.abs(found - runs[1]).max()))}


def by_drake(loop: Loop, rates: Any, fine: float) -> dict[str, tuple[Array, float]]:
    """Return motion and reactions in the limit, and how far the best run was from it."""
    steps = [part * STEP for part in (fine, 0.5 * fine, 0.25 * fine)]
    runs = zip(*(drake_side.motion(loop, rates, TIMES, step) for step in steps), strict=True)
    limits = {}
    for name, (first, second, third) in zip(("motion", "reaction"), runs, strict=True):
        found = (8.0 * third - 6.0 * second + first) / 3.0
        limits[name] = found, float(np.abs(found - third).max())
    return limits


def limit(peer: str, loop: Loop, rates: Any) -> dict[str, tuple[Array, float]]:
    """Return what a peer finds in the limit, near enough to it."""
    for halvings in range(_HALVINGS):
        found: dict[str, tuple[Array, float]] = PEERS[peer][1](loop, rates, 0.5**halvings)
        values, left = found["motion"]
        if left <= LEFT[peer] * np.abs(compared(loop, "motion", values)).max():
            break
    return found


PEERS = {"MuJoCo": ("mujoco", by_mujoco), "Drake": ("drake", by_drake)}


def compared(loop: Loop, name: str, values: Array) -> Array:
    """Return what of some values is determined, and compared."""
    if name == "motion":
        return values - [bar.position for bar in loop.bars]
    force = values[:, 3:]
    return force if loop.axis is None else force - np.outer(force @ loop.axis, loop.axis)


def rows(loop: Loop, ours: dict[str, Any], limits: dict[str, Any]) -> Iterator[Row]:
    """Compare one loop."""
    for peer, found in limits.items():
        for name, (values, left) in found.items():
            mine = compared(loop, name, ours[name])
            scale = np.abs(mine).max()
            off = float(np.abs(compared(loop, name, values) - mine).max() / scale)
            note = f"of {scale:.3g}; best run to limit {left / scale:.1e}"
            yield Row(loop.name, f"{name}, {peer}", off, BARS[name], note=note)
    yield Row(loop.name, "energy, ours [J]", ours["drift"], BARS["drift"])
    yield Row(loop.name, "opening, ours [m]", ours["opening"], BARS["opening"])


def record(cases: list[dict[str, Any]], path: Path) -> None:
    """Write what the others find."""
    content = {
        "format_version": 1,
        "made_by": "benchmarks/loops/agreement.py with "
        + ", ".join(f"{name} {metadata.version(key)}" for name, (key, _) in PEERS.items()),
        "conventions": "SI units; frames of bars are at their centers of mass, aligned with the "
        "world at t = 0, when all coordinates are zero; rates are velocities of the joints then, "
        "of balls in the world; motion: positions of the bars; reaction: moment and force of joint "
        "0 on its child where the joint is, expressed in the world; 'left': from the best run to "
        "the limit",
        "times": TIMES.tolist(),
        "cases": cases,
    }
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")


def main() -> None:
    """Compare, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Closed loops in Flexure, Drake and MuJoCo.")
    parser.add_argument("--quick", action="store_true", help="one of each kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    parser.add_argument("--record", type=Path, metavar="FILE", help="where to write the limits")
    arguments = parser.parse_args()
    made, cases, missing = list[Row](), list[dict[str, Any]](), set[str]()
    for number in range(6 if arguments.quick else 20):
        loop = random_loop(number)
        ours = our_side.motion(loop, TIMES)
        limits = {}
        for peer in PEERS:
            try:
                limits[peer] = limit(peer, loop, ours["rates"])
            except MissingPeerError as error:
                missing.add(str(error))
        new = list(rows(loop, ours, limits))
        print(formatted(new).partition("\n")[2], flush=True)
        made += new
        found = {
            peer: {name: {"values": v.tolist(), "left": left} for name, (v, left) in each.items()}
            for peer, each in limits.items()
        }
        cases.append(plain(loop) | {"rates": ours["rates"]} | found)
    print("\n".join(missing))
    if arguments.json is not None:
        write(made, arguments.json)
    if arguments.record is not None:
        record(cases, arguments.record)


if __name__ == "__main__":
    main()
