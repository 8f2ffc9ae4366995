"""Twenty random assemblies of bodies and beams, ours beside Exudyn's.

Run it with ``python benchmarks/flexures/agreement.py [--quick] [--json FILE] [--record FILE]``. It
needs Exudyn (``pip install exudyn``). Half of the assemblies are in a plane, half in space, all of
them with closed loops. Compared are

statics
    where the bodies stand under a force and a moment, in parts of their largest displacement,
frequencies
    the lowest three natural frequencies, relative,
motion
    where the bodies are at ten times after the load was put on at once, in parts of their largest
    displacement.

Our beams have eight segments at rest, and twelve where they move. Theirs are compared in the limit
of ever shorter elements: the error of second order is taken away by two numbers of elements, and
the notes say how much that was. It takes that many for the motion: a load that is put on at once
makes the light beams swing across at some hundred radians per second, beside bodies a hundred times
slower. Four segments of ours miss some motions by 3 %, and eight elements of theirs by 10 %; both
converge to one limit. Of theirs, 16 and 32 elements leave errors of 4e-4, and 200 steps in 0.02 s
in the place of 400 leave 1e-4.

One thing is modeled in another way. A beam that is twisted becomes shorter with us and not with
Exudyn. That is switched off here, and the row "statics, twist shortens" of spatial assemblies says
what it is about.

``--record`` writes what Exudyn finds, together with the assemblies, as the tests read it: after
each assembly, since fine elements take long, and what the file has already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.flexures import exudyn_side, our_side
from benchmarks.flexures.assemblies import Array, Assembly, plain, random_assembly
from benchmarks.versus.sides import MissingPeerError
from benchmarks.versus.table import Row, formatted, write

#: Of our beams, at rest and where they move, and how many frequencies are compared.
AT_REST, MOVING, COUNT = 8, 12, 3
#: The smaller number of elements in each of their beams.
ELEMENTS = {"statics": 16, "frequencies": 8, "motion": 32}
TIMES, STEPS = np.linspace(0.02, 0.2, 10), 400
#: Largest differences, in parts of the displacement, or of the frequency.
BARS = {"statics": 1e-4, "frequencies": 1e-3, "motion": 5e-4}


@dataclass(frozen=True)
class Found:
    """What one quantity is, how far elements were from their limit, and how many there were.

    Attributes
    ----------
    values : ndarray
        The quantity in the limit of short elements.
    left : float
        How far the finer ones were from it.
    elements, steps : int
        The smaller number of elements in a beam, and of steps between two times.
    """

    values: Array
    left: float
    elements: int
    steps: int = 0

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**vars(self), "values": self.values.tolist()}


def ours(assembly: Assembly) -> dict[str, Array]:
    """Return our quantities."""
    plant = our_side.build(assembly, AT_REST, our_side.PlainSection)
    moving = our_side.build(assembly, MOVING, our_side.PlainSection)
    found = {
        "statics": our_side.static_positions(assembly, plant),
        "frequencies": our_side.frequencies(moving, COUNT),
        "motion": our_side.motion(assembly, moving, TIMES),
    }
    if not assembly.planar:
        plant = our_side.build(assembly, AT_REST, fx.sections.GeneralSection)
        found["statics, twist shortens"] = our_side.static_positions(assembly, plant)
    return found


def theirs(assembly: Assembly) -> dict[str, Found]:
    """Return Exudyn's quantities in the limit."""
    of: dict[str, Callable[[int], Array]] = {
        "statics": lambda n: exudyn_side.static_positions(assembly, n),
        "frequencies": lambda n: exudyn_side.eigenvalues(assembly, n, COUNT),
        "motion": lambda n: exudyn_side.motion(assembly, n, TIMES, STEPS),
    }
    return {
        name: Found(
            *exudyn_side.extrapolated(each, ELEMENTS[name]),
            ELEMENTS[name],
            STEPS if name == "motion" else 0,
        )
        for name, each in of.items()
    }


def rows(assembly: Assembly, expected: dict[str, Found]) -> Iterator[Row]:
    """Compare one assembly."""
    start = np.array([body.position for body in assembly.bodies])
    title = f"{assembly.name} ({len(assembly.bodies)} bodies, {len(assembly.leaves)} beams)"
    for name, found in ours(assembly).items():
        reference = expected[name.partition(",")[0]]
        exact, left = reference.values, reference.left
        if name == "frequencies":
            scale: Any = exact
            note = f"{', '.join(f'{rate:.5g}' for rate in exact)} rad/s"
        else:
            scale = np.abs(exact - start).max()
            note = f"moved {scale:.3g} m"
        difference = float(np.abs((found - exact) / scale).max())
        note += f"; theirs, extrapolated, by {left / np.max(scale):.1e}"
        yield Row(title, name, difference, BARS.get(name), note=note)


def record(cases: list[tuple[Assembly, dict[str, Found]]], path: Path) -> None:
    """Write what Exudyn finds."""
    content = {
        "format_version": 1,
        "made_by": f"Exudyn {exudyn_side.exu.__version__}, benchmarks/flexures/agreement.py",
        "conventions": "SI units; positions are those of the centers of mass, whose frames are "
        "aligned with the world; beams are unstressed, along x of their rotations; force and "
        "moment act on the last body from t = 0 on, when all is at rest.",
        "elements": "geometrically exact, 'elements' in each beam and twice as many, extrapolated; "
        "'left' is how far that moved the largest number; 'steps' lie between two times",
        "times": TIMES.tolist(),
        "cases": [
            plain(assembly) | {name: each.plain() for name, each in found}
            for assembly, found in ((assembly, found.items()) for assembly, found in cases)
        ],
    }
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")


def recorded(path: Path | None) -> dict[str, dict[str, Any]]:
    """Return the cases of a record by name; none where there is no file."""
    if path is None or not path.exists():
        return {}
    return {case["name"]: case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}


def found_before(assembly: Assembly, case: dict[str, Any] | None) -> dict[str, Found] | None:
    """Return what a record has of an assembly, if it is of this very one, and as fine."""
    if case is None or not plain(assembly).items() <= case.items():
        return None
    found = {
        name: Found(**{**case[name], "values": np.array(case[name]["values"])}) for name in ELEMENTS
    }
    coarse = any(found[name].elements < least for name, least in ELEMENTS.items())
    return None if coarse or found["motion"].steps < STEPS else found


def main() -> None:
    """Compare, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Assemblies of beams in Flexure and in Exudyn.")
    parser.add_argument("--quick", action="store_true", help="four assemblies")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    parser.add_argument("--record", type=Path, metavar="FILE", help="where to write Exudyn's side")
    arguments = parser.parse_args()
    try:
        exudyn_side.need_exudyn()
    except MissingPeerError as error:
        print(error)
        return
    made, cases = list[Row](), list[tuple[Assembly, dict[str, Found]]]()
    before = recorded(arguments.record)
    for seed in range(2 if arguments.quick else 10):
        for planar in (True, False):
            assembly = random_assembly(seed, planar=planar)
            known = found_before(assembly, before.get(assembly.name))
            cases.append((assembly, known or theirs(assembly)))
            if known is None and arguments.record is not None:
                record(cases, arguments.record)
            new = list(rows(*cases[-1]))
            print(formatted(new).partition("\n")[2], flush=True)
            made += new
    if arguments.json is not None:
        write(made, arguments.json)


if __name__ == "__main__":
    main()
