"""The speed of closed loops: beside C, beside MuJoCo, and in chains of ever more loops.

Run it with ``python benchmarks/loops/speed.py [--quick] [--json FILE]``. The comparison with MuJoCo
needs it (``pip install mujoco``), the one with C needs gcc; each is left out, with a word, where it
is missing.

=========  =========================================================================================
four-bar   a crank, a coupler and a rocker that fall from rest, for 5 s
squeezer   the squeezing mechanism of Andrews with its constants, for 0.03 s
=========  =========================================================================================

C has the equations of Flexure in the same coordinates, written for these mechanisms in a plane by
hand, with the same method and the same rules for the step. Both run with the loosest common
tolerance by which the states at the end are within the target on either side. A run goes from a
prepared simulator to the end; the squeezer's takes 0.4 ms, a fifth of it on the way in and out of
the compiled loop, and so the rows of one right-hand side say more about the equations.

MuJoCo takes steps of a fixed length with its method of order four; its constraints give way, the
less, the shorter their time constant is. It may choose both so that it is fastest while its loops
open by no more than a millionth of the longest link, whatever the error of its motion is.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.loops import mujoco_side
from benchmarks.loops.mechanisms import CASES, Case, as_loop, chain
from benchmarks.versus.in_c.c_side import COMPILER
from benchmarks.versus.native_cost import evaluation_cost
from benchmarks.versus.sides import (
    Contender,
    MissingPeerError,
    in_rounds,
    loosest,
    ratio,
    seconds,
)
from benchmarks.versus.table import Row, show

Array = Any
SOURCE = Path(__file__).with_name("hand_written.c")
METHODS = {"DormandPrince": "dormand_prince", "DOP853": "dop853"}
#: How much longer than C, how much faster than MuJoCo, and how much one loop more may cost.
COSTS, FASTER, GROWS = 1.5, 20.0, 1.3
#: Largest opening of a loop in parts of the longest link.
OPENING = 1e-6


# C ------------------------------------------------------------------------------------------------


@cache
def compiled() -> ctypes.CDLL:
    """Compile the file with the constants of all cases, and load it."""
    if shutil.which(COMPILER[0]) is None:
        raise MissingPeerError("gcc is not installed: no comparison with C")
    constants: dict[str, str] = {}
    for case in CASES:
        context = case.build()[1]
        pace = float(context.get("tree.stabilization"))
        constants |= case.constants() | {f"{case.name}_PACE".upper(): repr(pace)}
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "hand_written.so"
        defined = [f"-D{name}={value}" for name, value in constants.items()]
        subprocess.run([*COMPILER, *defined, "-o", library, SOURCE, "-lm"], check=True)
        return ctypes.CDLL(str(library))


def _pointer(array: Array) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _run_c(case: Case, method: str, x: Array, rtol: float, atol: float) -> int:
    """Integrate in place; return the number of steps."""
    integrate = getattr(compiled(), f"{case.name}_{METHODS[method]}")
    integrate.restype = ctypes.c_long
    numbers = ctypes.c_double(rtol), ctypes.c_double(atol)
    room = ctypes.c_long(0)
    return int(integrate(ctypes.c_double(case.horizon), _pointer(x), *numbers, None, room))


def initial(case: Case) -> Array:
    """Return the states at the beginning in the order of C."""
    plant, context = case.build()
    return states(case, plant, context)


def states(case: Case, plant: fx.Plant, context: fx.Context) -> Array:
    """Return the states of a context in the order of C."""
    joints = [plant.joint(name) for name in case.joints]
    values = [joint.positions.get(context) for joint in joints]
    return np.concatenate([*values, *(joint.velocities.get(context) for joint in joints)])


@cache
def reference(case: Case) -> Array:
    """Return the states at the end, by C with the tightest tolerances."""
    x = initial(case)
    _run_c(case, "DOP853", x, 1e-13, 1e-13)
    return x


def error(case: Case, x: Array) -> float:
    """Return the largest error of the states at the end, of positions and of velocities."""
    halves = zip(np.split(x, 2), np.split(reference(case), 2), strict=True)
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in halves)


def check(case: Case) -> None:
    """Compare the derivatives of both sides at the beginning."""
    plant, context = case.build()
    x = states(case, plant, context)
    dx = np.empty_like(x)
    getattr(compiled(), f"{case.name}_evaluate")(ctypes.c_double(0.0), _pointer(x), _pointer(dx))
    rates = dict(zip([joint.name for joint in plant.joints], plant.calc_vdot(context), strict=True))
    expected = np.array([rates[name] for name in case.joints])
    largest = np.abs(expected).max()
    np.testing.assert_allclose(dx[len(expected) :], expected, atol=1e-10 * largest)


@dataclass(frozen=True)
class Setting:
    """With what both sides run."""

    method: str
    rtol: float


@cache
def setting(case: Case) -> Setting:
    """Return the method that is fastest in C, with the loosest tolerance that serves both sides."""
    plant, context = case.build()

    def off(method: str, rtol: float) -> float:
        x = initial(case)
        done = simulator(plant, context, method, rtol)
        done.advance_to(case.horizon)
        return max(
            error(case, x) if _run_c(case, method, x, rtol, rtol) > 0 else float("inf"),
            error(case, states(case, plant, done.context)),
        )

    found = []
    for method in METHODS:
        rtol, _ = loosest(partial(off, method), case.target) or (1e-13, 0.0)
        found.append(Setting(method, rtol))
    return min(found, key=lambda each: min(_c_seconds(case, each) for _ in range(5)))


def _c_seconds(case: Case, chosen: Setting) -> float:
    x = initial(case)
    return seconds(lambda: _run_c(case, chosen.method, x, chosen.rtol, chosen.rtol))


def by_c(case: Case) -> Contender:
    """Return C."""
    check(case)
    chosen, x = setting(case), initial(case)
    steps = _run_c(case, chosen.method, x, chosen.rtol, chosen.rtol)
    return Contender(
        "C",
        lambda: _c_seconds(case, chosen),
        error(case, x),
        f"{chosen.method}, rtol and atol {chosen.rtol:.1e}",
        f"{steps} steps",
        right_hand_side=_cost_in_c(case),
    )


def _cost_in_c(case: Case) -> float:
    """Return the seconds of one right-hand side."""
    x, count = initial(case), 100_000
    dx, repeat = np.empty_like(x), getattr(compiled(), f"{case.name}_repeat")
    arguments = ctypes.c_long(count), _pointer(x), _pointer(dx)
    return min(seconds(lambda: repeat(*arguments)) for _ in range(20)) / count


# Ours ---------------------------------------------------------------------------------------------


def simulator(plant: fx.Plant, context: fx.Context, method: str, rtol: float) -> fx.Simulator:
    """Return a prepared simulator."""
    made = fx.Simulator(plant, context.clone(), method=method, rtol=rtol, atol=rtol)
    made.initialize()
    return made


def by_us(case: Case) -> Contender:
    """Return our side."""
    plant, context = case.build()
    chosen = setting(case)

    def prepared() -> fx.Simulator:
        return simulator(plant, context, chosen.method, chosen.rtol)

    def run() -> float:
        made = prepared()
        return seconds(lambda: made.advance_to(case.horizon))

    done = prepared()
    done.advance_to(case.horizon)
    options: dict[str, Any] = {"method": chosen.method, "rtol": chosen.rtol, "atol": chosen.rtol}
    result = fx.simulate(plant, case.horizon, context=context.clone(), **options)
    opened = max(float(np.max(np.abs(result[f"{each.name}.error"]))) for each in plant.constraints)
    assert opened <= OPENING * case.size, "MuJoCo may open its loops farther than we do"
    equations = fx.compiled_equations(plant, context)
    assert equations.program is not None  # or no loop could run
    cost = evaluation_cost(equations.program, equations.x0, equations.environment(), 100_000)
    return Contender(
        "native loop",
        run,
        error(case, states(case, plant, done.context)),
        f"{chosen.method}, rtol and atol {chosen.rtol:.1e}",
        f"{done.statistics.steps} steps; loops open by {opened:.1e} m",
        right_hand_side=cost,
    )


# Rows ---------------------------------------------------------------------------------------------


def case_rows(case: Case, rounds: int) -> Iterator[Row]:
    """Time the sides of one case in rounds."""
    sides = [by_us(case)]
    others: list[Callable[[Case], Contender]] = [
        by_c,
        lambda case: mujoco_side.contender(as_loop(case), case.horizon, OPENING * case.size),
    ]
    for other in others:
        try:
            sides.append(other(case))
        except MissingPeerError as missing:
            print(missing)
    columns = in_rounds([side.run for side in sides], rounds)
    times = {side.name: column for side, column in zip(sides, columns, strict=True)}
    costs = {side.name: side.right_hand_side for side in sides}
    for side in sides:
        yield Row(case.title, f"{side.name} [ms]", 1e3 * min(times[side.name]), note=side.remark)
    mine = times["native loop"]
    if "C" in times:
        yield Row(case.title, "native loop / C", ratio(mine, times["C"]), COSTS, "lower")
        yield Row(case.title, "one right-hand side, native / C", costs["native loop"] / costs["C"])
    if "MuJoCo" in times:
        value = ratio(times["MuJoCo"], mine)
        yield Row(case.title, "MuJoCo / native loop", value, FASTER, "higher")


def growth_rows(counts: tuple[int, ...]) -> Iterator[Row]:
    """Time one right-hand side of chains of linkages, per linkage, and making its code."""
    costs = []
    for count in counts:
        began = time.process_time()
        equations = fx.compiled_equations(*chain(count))
        assert equations.program is not None  # or there were no native code
        made = time.process_time() - began
        arguments = equations.x0, equations.environment(), 100_000 // count
        costs.append(1e9 * evaluation_cost(equations.program, *arguments) / count)
        yield Row(
            "chain", f"{count} linkages [ns]", costs[-1], note="one right-hand side, for each"
        )
        yield Row("chain", f"{count} linkages, native code [s]", made, note="traced and compiled")
    value = costs[-1] / costs[1]
    yield Row("chain", f"{counts[-1]} linkages / {counts[1]}, each", value, GROWS, "lower")


def main() -> None:
    """Measure, print a table, and write the rows."""
    parser = argparse.ArgumentParser(description="The speed of closed loops.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else 9
    groups = [*(case_rows(case, rounds) for case in CASES), growth_rows((1, 10, 50))]
    show(map(list, groups), arguments.json)


if __name__ == "__main__":
    main()
