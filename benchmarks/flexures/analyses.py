"""Statics and modes of divided beams: by shared code, written out as Python, and by Exudyn.

Run it with ``python benchmarks/flexures/analyses.py [--quick] [--json FILE]``. The comparison with
Exudyn needs it (``pip install exudyn``), and is left out, with a word, where it is missing.

===========  =====================================================================================
load path    a steel leaf of 200 x 20 x 1 mm, clamped, under a force of 10 N across its tip
equilibrium  the same, found at once
stiffness    of its tip, where the load has bent it
modes        of the leaf without load, in the plane and in space
linearize    from the load to the position of the tip
buckling     under a force along the leaf
stage        of eight leaves of 50 x 20 x 0.4 mm in 8 segments each, folded, under 30 N
===========  =====================================================================================

Each figure is a ratio of two times of one run. *Written out* is the same analysis without shared
code, where that ends within seconds. Times are those of a first question, with all that is traced
and compiled for it, in a new system; the machine keeps compiled code, as it does for everybody, so
that the first round is not counted. Exudyn takes as many elements, and answers less: where the leaf
stands after twenty steps of the load, without stability, and the lowest frequencies. An equilibrium
is compared a second time as well, where a system has answered before and its equations are kept;
that is to take at most three times as long as Exudyn with building its model. These ratios are of
processor time, as Exudyn's calls wait.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.flexures import exudyn_side
from benchmarks.flexures.assemblies import Assembly, Leaf, RigidBody, Section
from benchmarks.versus.sides import MissingPeerError, seconds
from benchmarks.versus.table import Row, formatted, write
from flexure.solvers.analysis.equations import shared_equations

LENGTH, WIDTH, THICKNESS, FORCE = 0.2, 0.02, 0.001, 10.0
AGAIN = (
    1 / 3
)  # the time of Exudyn in that of ours, at least, for an equilibrium that is asked again
NEVER = 10**9  # states from which on code is shared, and operations, where none is native


def leaf(segments: int, *, planar: bool) -> fx.Plant:
    """Return the leaf with a body at its tip, and the input ``load`` on that."""
    builder = fx.PlantBuilder("leaf", gravity=(0.0, 0.0, 0.0))
    tip = builder.add_body("tip", fx.SpatialInertia.solid_box(0.01, size=(0.01, 0.02, 0.01)))
    if planar:
        joint: Any = builder.add_joint(fx.PlanarJoint("end", builder.world, tip))
        joint.default_positions = np.array([LENGTH, 0.0, 0.0])
    else:
        joint = builder.add_joint(fx.QuaternionFloatingJoint("end", builder.world, tip))
        joint.default_positions = np.array([1.0, 0.0, 0.0, 0.0, LENGTH, 0.0, 0.0])
    builder.add_force_element(
        fx.LeafSpring(
            "beam",
            builder.world,
            tip,
            length=LENGTH,
            width=WIDTH,
            thickness=THICKNESS,
            material=fx.Material(210e9, shear_modulus=81e9, density=7800.0),
            segments=segments,
            planar=planar,
        )
    )
    builder.add_external_force("load", tip)
    return builder.build()


def across(plant: fx.Plant) -> dict[str, Any]:
    """Return the load across the leaf."""
    del plant
    return {"load": [0.0, 0.0, 0.0, 0.0, FORCE, 0.0]}


def loaded(plant: fx.Plant) -> fx.Context:
    """Return a context with that load."""
    context = plant.create_default_context()
    plant.input_port("load").fix(context, across(plant)["load"])
    return context


#: Analyses of a plant.
ANALYSES: dict[str, Callable[[fx.Plant], Any]] = {
    "load path": lambda plant: fx.load_path(plant, across(plant)),
    "equilibrium": lambda plant: fx.equilibrium(plant, loaded(plant)),
    "stiffness": lambda plant: fx.stiffness(plant, "tip", context=loaded(plant)),
    "modes": fx.modes,
    "linearize": lambda plant: fx.linearize(plant, None, ["load"], ["tip.position"]),
    "buckling": lambda plant: fx.buckling(plant, {"load": [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]}),
}


@dataclass(frozen=True)
class Case:
    """An analysis of a leaf in so many segments, and beside what it is shown."""

    name: str
    segments: int
    planar: bool = True
    is_written: bool = True

    @property
    def label(self) -> str:
        """What the table says."""
        return f"{self.name}, {self.segments} {'in a plane' if self.planar else 'in space'}"

    def run(self, *, shares: bool = True) -> float:
        """Return the seconds that it takes in a new system."""
        plant = leaf(self.segments, planar=self.planar)
        before = shared_equations._MANY, shared_equations._LONG
        if not shares:
            shared_equations._MANY = shared_equations._LONG = NEVER
        try:
            return seconds(lambda: ANALYSES[self.name](plant))
        finally:
            shared_equations._MANY, shared_equations._LONG = before


CASES = [
    *(Case(name, 16) for name in ANALYSES),
    Case("load path", 32),
    Case("modes", 16, planar=False),
    Case("load path", 100, is_written=False),
    Case("buckling", 100, is_written=False),
    Case("modes", 100, is_written=False),
    Case("modes", 100, planar=False, is_written=False),
]


def assembly() -> Assembly:
    """Return the leaf as Exudyn's side builds it."""
    wide, thin = THICKNESS * WIDTH**3 / 12.0, WIDTH * THICKNESS**3 / 12.0
    section = Section(
        E=210e9,
        G=81e9,
        density=7800.0,
        area=WIDTH * THICKNESS,
        moments=(wide, thin),
        torsion=WIDTH * THICKNESS**3 / 3.0,
        shear_factor=5.0 / 6.0,
    )
    tip = RigidBody(position=np.array([LENGTH, 0.0, 0.0]), mass=0.01, moments=(4e-7, 2e-7, 4e-7))
    beam = Leaf(
        start=np.zeros(3), rotation=np.eye(3), length=LENGTH, section=section, bodies=(None, 0)
    )
    force = np.array([0.0, FORCE, 0.0])
    return Assembly(name="leaf", bodies=(tip,), leaves=(beam,), force=force)


#: What Exudyn does with so many elements, and the analysis in space that answers the same.
THERE: dict[str, Callable[[int], Any]] = {
    "load path": lambda count: exudyn_side.static_positions(assembly(), count),
    "equilibrium": lambda count: exudyn_side.static_positions(assembly(), count),
    "modes": lambda count: exudyn_side.eigenvalues(assembly(), count, 6),
}


def shared_rows(case: Case, rounds: int) -> Iterator[Row]:
    """Yield the time of an analysis, and that of Python beside it, as a ratio in turns."""
    case.run()
    ours, written = [], []
    for _ in range(rounds):
        ours.append(case.run())
        if case.is_written:
            written.append(case.run(shares=False))
    yield Row(case.label, "seconds", statistics.median(ours))
    if written:
        ratios = [one / other for one, other in zip(written, ours, strict=True)]
        yield Row(case.label, "written out / shared", statistics.median(ratios), better="higher")


def processor_seconds(ask: Callable[[], Any]) -> float:
    """Return the seconds that the processor takes to answer."""
    start = time.process_time()
    ask()
    return time.process_time() - start


def exudyn_rows(name: str, count: int, rounds: int) -> Iterator[Row]:
    """Yield how long Exudyn takes beside ours, in space."""
    case = Case(name, count, planar=False)
    first, again = [], []
    try:
        exudyn_side.need_exudyn()
        case.run()
        for _ in range(rounds):
            plant = leaf(count, planar=False)
            spent = processor_seconds(lambda: THERE[name](count))
            first.append(spent / processor_seconds(lambda: ANALYSES[name](plant)))  # noqa: B023
            again.append(spent / processor_seconds(lambda: ANALYSES[name](plant)))  # noqa: B023
    except (MissingPeerError, *exudyn_side.SOLVER_ERRORS) as error:
        print(f"{case.label}: nothing beside Exudyn, {error}")
        return
    yield Row(case.label, "Exudyn / ours", statistics.median(first), better="higher")
    if name == "equilibrium":
        value = statistics.median(again)
        yield Row(case.label, "Exudyn / ours, asked again", value, AGAIN, "higher")


OUTER, INNER = (-0.045, -0.03, 0.03, 0.045), (-0.02, -0.01, 0.01, 0.02)  # where leaves are, in m
STAGE_LENGTH, STAGE_THICKNESS, STAGE_FORCE = 0.05, 4e-4, 30.0


def stage(segments: int) -> fx.Plant:
    """Return a folded stage: four leaves carry a body, and four on that carry the table."""
    builder = fx.PlantBuilder("stage", gravity=(0.0, 0.0, 0.0))
    block = fx.SpatialInertia.solid_box(0.2, size=(0.01, 0.1, 0.02))
    bodies = [builder.add_body(name, block) for name in ("middle", "table")]
    for body, x in zip(bodies, (STAGE_LENGTH, 0.0), strict=True):
        joint = builder.add_joint(fx.RpyFloatingJoint(f"{body.name}_pose", builder.world, body))
        joint.default_pose = np.eye(3), (x, 0.0, 0.0)
    for foot, places in ((builder.world, OUTER), (bodies[1], INNER)):
        for y in places:
            ends = [
                builder.add_frame(f"{body.name}_{1e3 * y:g}".replace("-", "m"), body, (0.0, y, 0.0))
                for body in (foot, bodies[0])
            ]
            builder.add_force_element(
                fx.LeafSpring(
                    f"leaf_{1e3 * y:g}".replace("-", "m"),
                    *ends,
                    length=STAGE_LENGTH,
                    width=WIDTH,
                    thickness=STAGE_THICKNESS,
                    material=fx.Material(210e9, shear_modulus=81e9, density=7800.0),
                    segments=segments,
                )
            )
    builder.add_external_force("load", bodies[1])
    return builder.build()


def stage_there() -> Assembly:
    """Return the stage as Exudyn's side builds it; the moments of inertia do not matter."""
    thickness, moments = STAGE_THICKNESS, (1e-4, 1e-4, 1e-4)
    section = Section(
        E=210e9,
        G=81e9,
        density=7800.0,
        area=WIDTH * thickness,
        moments=(thickness * WIDTH**3 / 12.0, WIDTH * thickness**3 / 12.0),
        torsion=WIDTH * thickness**3 / 3.0,
        shear_factor=5.0 / 6.0,
    )
    bodies = [
        RigidBody(position=np.array([x, 0.0, 0.0]), mass=0.2, moments=moments)
        for x in (STAGE_LENGTH, 0.0)
    ]
    leaves = [
        Leaf(
            start=np.array([0.0, y, 0.0]),
            rotation=np.eye(3),
            length=STAGE_LENGTH,
            section=section,
            bodies=(foot, 0),
        )
        for foot, places in ((None, OUTER), (1, INNER))
        for y in places
    ]
    force = np.array([0.0, STAGE_FORCE, 0.0])
    return Assembly(name="stage", bodies=tuple(bodies), leaves=tuple(leaves), force=force)


def stage_rows(rounds: int) -> Iterator[Row]:
    """Yield how long Exudyn takes beside ours for the stage, asked again."""
    plant, load = stage(8), {"load": [0.0, 0.0, 0.0, 0.0, STAGE_FORCE, 0.0]}
    context = plant.create_default_context()
    plant.input_port("load").fix(context, load["load"])
    ours: dict[str, Callable[[], Any]] = {
        "load path": lambda: fx.load_path(plant, load),
        "equilibrium": lambda: fx.equilibrium(plant, context),
    }
    try:
        there = exudyn_side.static_positions(stage_there(), 8)[1, 1]
        for name, ask in ours.items():
            ask()
            ratios = [
                processor_seconds(lambda: exudyn_side.static_positions(stage_there(), 8))
                / processor_seconds(ask)
                for _ in range(rounds)
            ]
            yield Row(
                f"{name}, stage of 8 x 8",
                "Exudyn / ours, asked again",
                statistics.median(ratios),
                AGAIN,
                "higher",
            )
    except (MissingPeerError, *exudyn_side.SOLVER_ERRORS) as error:
        print(f"stage: nothing beside Exudyn, {error}")
        return
    here = fx.load_path(plant, load)["table_pose.q[y]"][-1]
    yield Row("stage of 8 x 8", "travel there / here", there / here)


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Analyses of divided beams.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else 3
    counts = [(name, 32) for name in THERE] + [("equilibrium", 16)]
    measured = chain(
        *(shared_rows(case, rounds) for case in CASES),
        *(exudyn_rows(name, count, rounds) for name, count in counts),
        stage_rows(3 * rounds),
    )
    found = []
    for row in measured:
        found.append(row)
        print(formatted([row]).partition("\n")[2], flush=True)
    if arguments.json is not None:
        write(found, arguments.json)


if __name__ == "__main__":
    main()
