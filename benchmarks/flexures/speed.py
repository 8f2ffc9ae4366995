"""Motions of divided beams beside Exudyn's implicit solver and beside C, at equal accuracy.

Run it with ``python benchmarks/flexures/speed.py [--quick] [--json FILE]``. The comparison with
Exudyn needs it (``pip install exudyn``), the one with C needs gcc; each is left out, with a word,
where it is missing.

==========  ========================================================================================
cantilever  a steel leaf of 200 x 20 x 1 mm in 32 segments, a force across its tip put on at once
guide       a body of 0.1 kg on two such leaves, each in 16 segments
cold        a new process, without anything compiled, that builds and runs a leaf in 16 segments,
            in the plane and in space; Python modules are compiled once, as installed ones are
==========  ========================================================================================

The leaves are damped in proportion to their stiffness and move in a plane. All errors are those of
the position of the tip, or of the body, against the limit of ever more segments, at thirty times,
so that a side with better elements may take fewer of them. Exudyn uses its fastest setting within
the target. C has the very equations of ours, which is checked, and the same tolerance: the loosest
with which both meet the target.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.versus.in_c.c_side import COMPILER
from benchmarks.versus.sides import Contender, MissingPeerError, in_rounds, loosest, ratio, seconds
from benchmarks.versus.table import Row, show

SOURCE = Path(__file__).with_name("hand_written.c")
SAMPLES = 30
FIRST_STEP = 1e-6  # of C, in s
#: How many times faster than Exudyn, and how many times the time of C, and the seconds cold.
FASTER, COSTS, COLD = 10.0, 1.3, 3.0

Array = Any


@dataclass(frozen=True)
class Case:
    """Leaves from the world to one body, which a force across them moves from rest."""

    E: ClassVar[float] = 210e9
    density: ClassVar[float] = 7850.0
    length: ClassVar[float] = 0.2
    width: ClassVar[float] = 0.02
    thickness: ClassVar[float] = 0.001
    damping_time: ClassVar[float] = 1e-4
    offset: ClassVar[float] = 0.05
    horizon: ClassVar[float] = 0.3

    name: str
    leaves: int
    segments: int
    mass: float = 0.0
    moment: float = 0.0

    @property
    def EA(self) -> float:
        """The axial stiffness."""
        return self.E * self.width * self.thickness

    @property
    def EI(self) -> float:
        """The bending stiffness."""
        return self.EA * self.thickness**2 / 12.0

    @property
    def force(self) -> float:
        """The force across."""
        return self.EI / self.length**2

    @property
    def line_mass(self) -> float:
        """Mass per length."""
        return self.density * self.width * self.thickness

    @property
    def line_inertia(self) -> float:
        """Rotary inertia per length."""
        return self.line_mass * self.thickness**2 / 12.0

    @property
    def target(self) -> float:
        """Largest error of the position, in m."""
        return 2e-3 * float(np.ptp(limit(self)[:, 1]))

    @property
    def feet(self) -> list[float]:
        """Where the leaves begin, across."""
        return [0.0] if self.leaves == 1 else [-self.offset, self.offset]

    @property
    def times(self) -> Array:
        """When positions are compared."""
        return self.horizon * np.arange(1, SAMPLES + 1) / SAMPLES


CASES = (Case("cantilever", 1, 32), Case("guide", 2, 16, 0.1, 1e-4))


# C ------------------------------------------------------------------------------------------------


@cache
def compiled(case: Case, segments: int, gregory: bool = True) -> ctypes.CDLL:
    """Compile the file with the constants of a case, and load it.

    The mass is shared among the bodies by Gregory's rule, as ours is, or by halves of segments.
    """
    if shutil.which(COMPILER[0]) is None:
        raise MissingPeerError("gcc is not installed: no comparison with C")
    h, n = case.length / segments, case.leaves
    half, inertia = 0.5 * case.line_mass * h, case.line_inertia * h
    end, lever = (0.75, 0.0) if gregory else (1.0, h)
    arm = 0.0 if n == 1 else case.offset
    constants = {
        "CHAINS": n,
        "SEGMENTS": segments,
        "LENGTH": h,
        "EA": case.EA,
        "EI": case.EI,
        "DAMPING": case.damping_time,
        "GREGORY": int(gregory),
        "NODE_MASS": 2.0 * half,
        "NODE_INERTIA": half * lever**2 / 6.0 + inertia,
        "MASS": n * end * half + case.mass,
        "FIRST_X": -n * end * half * lever / 4.0,
        "INERTIA": n * end * (half * (lever**2 / 12.0 + arm**2) + 0.5 * inertia) + case.moment,
        "FORCE_X": 0.0,
        "FORCE_Y": case.force,
        "OFFSET": case.offset,
    }
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "hand_written.so"
        defined = [f"-D{name}={value!r}" for name, value in constants.items()]
        subprocess.run([*COMPILER, *defined, "-o", library, SOURCE, "-lm"], check=True)
        made = ctypes.CDLL(str(library))
    made.run.restype = ctypes.c_long
    return made


def c_states(case: Case, segments: int) -> Array:
    """Return the positions of all bodies, in the order of the file, and their rates, at rest."""
    h = case.length / segments
    inner = [[k * h, y, 0.0] for y in case.feet for k in range(1, segments)]
    q = np.array([*inner, [case.length, 0.0, 0.0]]).ravel()
    return np.concatenate([q, np.zeros_like(q)])


def c_advance(
    case: Case,
    segments: int,
    x: Array,
    duration: float,
    rtol: float,
    step: ctypes.c_double | None = None,
    gregory: bool = True,
) -> int:
    """Integrate in place; the step that comes next is put into what is given for the first."""
    step = step or ctypes.c_double(FIRST_STEP)
    tolerance, pointer = ctypes.c_double(rtol), x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    run = compiled(case, segments, gregory).run
    return int(run(ctypes.c_double(duration), pointer, tolerance, tolerance, ctypes.byref(step)))


def c_positions(case: Case, segments: int, rtol: float, gregory: bool = True) -> Array:
    """Return the positions of the last body; steps end at all times."""
    x, found, step = c_states(case, segments), [], ctypes.c_double(FIRST_STEP)
    for before, after in pairwise([0.0, *case.times]):
        c_advance(case, segments, x, after - before, rtol, step, gregory)
        found.append(x[x.size // 2 - 3 : x.size // 2 - 1].copy())
    return np.array(found)


@cache
def limit(case: Case) -> Array:
    """Return the positions in the limit of many segments.

    With halves of segments, errors fall with the square of their number.
    """
    coarse, fine = (c_positions(case, n * case.segments, 1e-5, gregory=False) for n in (1, 2))
    return fine + (fine - coarse) / 3.0


def error(case: Case, found: Array) -> float:
    """Return the largest error."""
    return float(np.abs(found - limit(case)).max())


def by_c(case: Case) -> Contender:
    """Return C."""
    check_equations(case)
    n, rtol = case.segments, tolerance(case)

    def run() -> float:
        x = c_states(case, n)
        return seconds(lambda: c_advance(case, n, x, case.horizon, rtol))

    steps = c_advance(case, n, c_states(case, n), case.horizon, rtol)
    missed = error(case, c_positions(case, n, rtol))
    return Contender("C", run, missed, f"ESDIRK4, rtol and atol {rtol:.1e}", f"{steps} steps")


# Ours ---------------------------------------------------------------------------------------------


def plant(case: Case, segments: int, *, planar: bool = True) -> Any:
    """Return the plant."""
    import flexure as fx

    builder = fx.PlantBuilder(case.name, gravity=(0.0, 0.0, 0.0))
    inertia = fx.SpatialInertia(case.mass, np.zeros(3), np.full(3, case.moment))
    body = builder.add_body("body", inertia)
    kind = fx.PlanarJoint if planar else fx.QuaternionFloatingJoint
    joint = builder.add_joint(kind("joint", builder.world, body))
    start = [case.length, 0.0, 0.0] if planar else [1.0, 0.0, 0.0, 0.0, case.length, 0.0, 0.0]
    joint.default_positions = np.array(start)
    for k, y in enumerate(case.feet):
        builder.add_force_element(
            fx.Beam(
                f"leaf{k}",
                builder.add_frame(f"foot{k}", builder.world, (0.0, y, 0.0)),
                builder.add_frame(f"top{k}", body, (0.0, y, 0.0)),
                section=fx.sections.RectangleSection(width=case.width, thickness=case.thickness),
                material=fx.Material(case.E, poissons_ratio=0.3, density=case.density),
                length=case.length,
                shear=False,
                damping_time=case.damping_time,
                segments=segments,
                planar=planar,
            )
        )
    builder.add_external_force("load", body)
    return builder.build()


def check_equations(case: Case) -> None:
    """Compare the derivatives of C with ours, at a random state."""
    import flexure as fx

    made = plant(case, case.segments)
    context = made.create_default_context()
    made.input_port("load").fix(context, np.array([0.0, 0.0, 0.0, 0.0, case.force, 0.0]))
    x = fx.compiled_equations(made, context).x0
    x = x + 1e-4 * np.random.default_rng(0).normal(size=x.size)
    context.continuous_state = x
    expected = np.asarray(made.eval_time_derivatives(context))
    turned = np.roll(np.arange(x.size).reshape(2, -1), -3, axis=1).ravel()  # our body comes first
    theirs, found = x[turned], np.empty(x.size)
    inner = case.segments - 1
    for chain, y in enumerate(case.feet):
        theirs[3 * inner * chain : 3 * inner * (chain + 1)][1::3] += y
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (theirs, found)]
    compiled(case, case.segments).evaluate(*pointers)
    off = np.abs(found - expected[turned]).max() / np.abs(expected).max()
    assert off < 1e-9, f"{case.name}: the equations differ by {off:.1e}"


def simulator(case: Case, made: Any, rtol: float) -> Any:
    """Return a prepared simulator, which has made its first step."""
    import flexure as fx

    context = made.create_default_context()
    made.input_port("load").fix(context, np.array([0.0, 0.0, 0.0, 0.0, case.force, 0.0]))
    prepared = fx.Simulator(made, context, method="ESDIRK4", rtol=rtol, atol=rtol)
    prepared.advance_to(1e-9)
    return prepared


def our_positions(case: Case, rtol: float) -> Array:
    """Return the positions of the body; steps end at all times."""
    made = plant(case, case.segments)
    prepared, found = simulator(case, made, rtol), []
    for time_ in case.times:
        prepared.advance_to(time_)
        found.append(np.array(made.joint("joint").positions.get(prepared.context))[:2])
    return np.array(found)


@cache
def tolerance(case: Case) -> float:
    """Return the loosest tolerance with which C meets the target as well as we do."""

    def missed(rtol: float) -> float:
        sides = our_positions(case, rtol), c_positions(case, case.segments, rtol)
        return max(error(case, found) for found in sides)

    return (loosest(missed, case.target) or (1e-3, 0.0))[0]


def by_us(case: Case) -> Contender:
    """Return our side."""
    made, rtol = plant(case, case.segments), tolerance(case)

    def run() -> float:
        prepared = simulator(case, made, rtol)
        return seconds(lambda: prepared.advance_to(case.horizon))

    off = error(case, our_positions(case, rtol))
    prepared = simulator(case, made, rtol)
    prepared.advance_to(case.horizon)
    steps = f"{prepared.statistics.steps} steps"
    return Contender("native loop", run, off, f"ESDIRK4, rtol and atol {rtol:.1e}", steps)


# Exudyn -------------------------------------------------------------------------------------------

#: Elements of a leaf, and steps between two times; others were slower, or missed the targets.
CHOICES = ((8, 20), (12, 20), (12, 40), (16, 20), (16, 40), (16, 80))


def exudyn_positions(case: Case, elements: int, steps: int) -> tuple[Array, float]:
    """Return the positions with cable elements, and the seconds."""
    from benchmarks.flexures import exudyn_side

    exu, items = exudyn_side.exu, exudyn_side.items
    container = exu.SystemContainer()
    system, h = container.AddSystem(), case.length / elements
    zero = system.AddMarker(
        items.MarkerNodeCoordinate(nodeNumber=system.AddNode(items.NodePointGround()), coordinate=0)
    )
    if case.leaves > 1:
        last = system.AddNode(items.NodeRigidBody2D(referenceCoordinates=[case.length, 0.0, 0.0]))
        body = system.AddObject(
            items.ObjectRigidBody2D(mass=case.mass, inertia=case.moment, nodeNumber=last)
        )
    for y in case.feet:
        nodes = [
            system.AddNode(items.NodePoint2DSlope1(referenceCoordinates=[k * h, y, 1.0, 0.0]))
            for k in range(elements + 1)
        ]
        for pair in pairwise(nodes):
            system.AddObject(
                items.ObjectANCFCable2D(
                    length=h,
                    massPerLength=case.line_mass,
                    bendingStiffness=case.EI,
                    axialStiffness=case.EA,
                    bendingDamping=case.damping_time * case.EI,
                    axialDamping=case.damping_time * case.EA,
                    nodeNumbers=list(pair),
                )
            )
        for coordinate in (0, 1, 3):
            held = items.MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=coordinate)
            system.AddObject(
                items.ObjectConnectorCoordinate(markerNumbers=[zero, system.AddMarker(held)])
            )
        if case.leaves > 1:
            on_body = items.MarkerBodyRigid(bodyNumber=body, localPosition=[0.0, y, 0.0])
            markers = [
                system.AddMarker(on_body),
                system.AddMarker(items.MarkerNodeRigid(nodeNumber=nodes[-1])),
            ]
            system.AddObject(
                items.ObjectJointGeneric(markerNumbers=markers, constrainedAxes=[1, 1, 0, 0, 0, 1])
            )
        else:
            last = nodes[-1]
    marker = system.AddMarker(items.MarkerNodePosition(nodeNumber=last))
    system.AddLoad(items.LoadForceVector(markerNumber=marker, loadVector=[0.0, case.force, 0.0]))
    sensor = system.AddSensor(
        items.SensorNode(
            nodeNumber=last,
            storeInternal=True,
            writeToFile=False,
            outputVariableType=exu.OutputVariableType.Position,
        )
    )
    system.Assemble()
    set_up = exudyn_side.settings()
    set_up.solution.sensors.writePeriod = case.horizon / SAMPLES
    integration = set_up.timeIntegration
    integration.numberOfSteps, integration.endTime = steps * SAMPLES, case.horizon
    integration.generalizedAlpha.spectralRadius = 0.9
    integration.newton.useModifiedNewton = True
    integration.newton.relativeTolerance = 1e-5
    spent = seconds(lambda: system.SolveDynamic(set_up))
    return system.GetSensorStoredData(sensor)[1:, 1:3], spent


def by_exudyn(case: Case) -> Contender:
    """Return Exudyn with the fastest choice within the target."""
    from benchmarks.flexures import exudyn_side

    exudyn_side.need_exudyn()
    good: list[tuple[float, float, int, int]] = []
    for elements, steps in CHOICES:
        try:
            found, spent = exudyn_positions(case, elements, steps)
        except exudyn_side.SOLVER_ERRORS:
            continue
        if (off := error(case, found)) <= case.target:
            good.append((spent, off, elements, steps))
    if not good:
        raise MissingPeerError(f"{case.name}: Exudyn does not reach {case.target:.1e} m")
    _, off, elements, steps = min(good)
    setting = f"generalized alpha, {steps * SAMPLES} steps"
    run: Callable[[], float] = lambda: exudyn_positions(case, elements, steps)[1]  # noqa: E731
    return Contender("Exudyn", run, off, setting, f"{elements} cable elements for each leaf")


# Rows ---------------------------------------------------------------------------------------------


def case_rows(case: Case, rounds: int) -> Iterator[Row]:
    """Time the sides of one case in rounds."""
    sides = [by_us(case)]
    for other in (by_c, by_exudyn):
        try:
            sides.append(other(case))
        except MissingPeerError as missing:
            print(missing)
    columns = in_rounds([side.run for side in sides], rounds)
    times = {side.name: column for side, column in zip(sides, columns, strict=True)}
    for side in sides:
        note = f"{side.remark} m, of {case.target:.1e} m"
        yield Row(case.name, f"{side.name} [ms]", 1e3 * min(times[side.name]), note=note)
    mine = times["native loop"]
    if "C" in times:
        yield Row(case.name, "native loop / C", ratio(mine, times["C"]), COSTS, "lower")
    if "Exudyn" in times:
        value = ratio(times["Exudyn"], mine)
        yield Row(case.name, "Exudyn / native loop", value, FASTER, "higher")


@cache
def _environment() -> dict[str, str]:
    """Return this environment with a folder for compiled modules, filled and for all processes."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = os.environ | {"PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as other:
        subprocess.run(
            [sys.executable, __file__, "--one", "planar"],
            env=environment | {"FLEXURE_CACHE": str(Path(other) / "cache")},
            capture_output=True,
            check=True,
        )
    return environment


def cold_row(*, planar: bool) -> Row:
    """Time a new process from its start to the first result, with an empty cache."""
    name = "planar" if planar else "in space"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name],
            env=_environment() | {"FLEXURE_CACHE": str(Path(folder) / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
    spent = json.loads(done.stdout)
    return Row("cold", f"{name}, new process [s]", spent["all"], COLD, "lower", spent["parts"])


def one(*, planar: bool) -> None:
    """Be that process: processor time, its start included."""
    import flexure as fx

    imported = time.process_time()
    made = plant(CASES[0], 16, planar=planar)
    built = time.process_time()
    context = made.create_default_context()
    made.input_port("load").fix(context, np.array([0.0, 0.0, 0.0, 0.0, CASES[0].force, 0.0]))
    fx.simulate(made, 1e-3, context=context)
    done = time.process_time()
    parts = f"imports {imported:.2f}, building {built - imported:.2f}, run {done - built:.2f} s"
    print(json.dumps({"all": done, "parts": parts}))


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="Divided beams beside Exudyn and C.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    parser.add_argument("--one", choices=("planar", "in space"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(planar=arguments.one == "planar")
        return
    cold = (cold_row(planar=planar) for planar in (True, False))
    cases = (case_rows(case, 3 if arguments.quick else 9) for case in CASES)
    show(map(list, (cold, *cases)), arguments.json)


if __name__ == "__main__":
    main()
