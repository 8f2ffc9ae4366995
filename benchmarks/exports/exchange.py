"""Size, time per step and per run of one diagram as C, as an FMU, native and interpreted.

Run it with ``python benchmarks/exports/exchange.py [--quick] [--json FILE]``. The diagram is a door
under a PID controller; a run of 10 s has a relative tolerance of 1e-8. Every time is the shortest
of several in one process, divided by that of the native run, so that machines can be compared. FMUs
are called through FMPy: Co-Simulation in steps of 10 ms, Model Exchange by CVode. It needs gcc and
``pip install 'flexure[fmi]'``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[2]))

import fmpy

import flexure as fx
from examples.compliant_door import build
from flexure.solvers.export.fmi.compilers import OPTIONS

END, RTOL, STEP = 10.0, 1e-8, 0.01
ANGLE = "door.axis.angle"


def shortest(function: Callable[[], object], count: int) -> float:
    """Return the shortest of several times, in seconds."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def c_run(folder: Path, servo: fx.Diagram) -> tuple[Callable[[], object], int]:
    """Return a run of the model as C, and how large its library is."""
    context = servo.create_default_context()
    context.accuracy = RTOL
    fx.to_c(servo, context, signals=[ANGLE], method="RK45", step=STEP).save(folder)
    (source,) = folder.glob("*.c")
    library = folder / "model.so"
    command = ["gcc", *OPTIONS[:-1], "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    name, code = source.stem, ctypes.CDLL(str(library))
    memory, out = ctypes.create_string_buffer(1_000_000), (ctypes.c_double * 8)()
    reset, step = getattr(code, f"{name}_reset"), getattr(code, f"{name}_step")

    def run() -> None:
        reset(memory)
        for _ in range(round(END / STEP)):
            if step(memory, out, out) != 0:
                raise SystemExit("the model in C ends before its time")

    return run, library.stat().st_size


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one measurement of each")
    parser.add_argument("--json", type=Path, help="where to save the table")
    arguments = parser.parse_args()
    count, servo = 1 if arguments.quick else 5, build()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unit = fx.to_fmu(servo, signals=[ANGLE])
        unit.save(folder / "servo.fmu")
        library = next(len(file) for path, file in unit.files.items() if path.endswith(".so"))
        unpacked = fmpy.extract(str(folder / "servo.fmu"), unzipdir=str(folder / "unpacked"))
        run_c, c_size = c_run(folder, servo)

        def run_unit(kind: str, interval: float) -> Any:
            return fmpy.simulate_fmu(
                unpacked, fmi_type=kind, stop_time=END, output_interval=interval,
                relative_tolerance=RTOL,
            )  # fmt: skip

        def simulate(compiled: Literal["native", "python"] | bool) -> fx.results.SimulationResult:
            return fx.simulate(servo, END, rtol=RTOL, compiled=compiled)

        simulate("native")  # which compiles
        steps = simulate("native").statistics.steps
        native = shortest(lambda: simulate("native"), count)
        rows = {
            "native": (native, 0),
            "interpreted": (shortest(lambda: simulate("python"), 1), 0),
            "C, 1000 steps": (shortest(run_c, count), c_size),
            "FMU, Co-Simulation, 1000 steps": (
                shortest(lambda: run_unit("CoSimulation", STEP), count),
                library,
            ),
            "FMU, Co-Simulation, 10 steps": (
                shortest(lambda: run_unit("CoSimulation", END / 10), count),
                library,
            ),
            "FMU, Model Exchange, CVode": (
                shortest(lambda: run_unit("ModelExchange", STEP), count),
                library,
            ),
        }
    print(f"native: {1e6 * native / steps:.1f} us for each of {steps} steps of the integrator")
    print(f"{'reading':<34} {'time of a run':>14} {'library, kB':>12}")
    for label, (seconds, size) in rows.items():
        print(f"{label:<34} {seconds / native:>12.1f} x {size / 1000 or '':>12}")
    if arguments.json is not None:
        table = {label: {"ratio": s / native, "bytes": size} for label, (s, size) in rows.items()}
        arguments.json.write_text(json.dumps(table, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
