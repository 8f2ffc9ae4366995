"""How long runs take in JavaScript, beside native code and Python.

Run it with ``python benchmarks/exports/javascript_runs.py``. Each workload runs in one process of
Node, as often as a slider would make it run, with 500 samples of one signal, and in Python with the
same method. Printed are, of processor time,

JavaScript / native
    the ratio of a run in Node, once its engine has warmed up, to one of native code,
first / native
    that of the first run in Node,
Python / native
    that of a run by straight-line Python,

and the milliseconds of a run in Node, with the kilobytes of the text: of all, and of the loops,
which do not depend on the model. Node has to be installed, and the package llvmlite.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import flexure as fx
from benchmarks.first_result import chain
from benchmarks.sweeps.noisy_loop import PERIOD
from benchmarks.versus.plants import build_plant
from benchmarks.versus.table import Row, formatted
from examples import compliant_door
from flexure.solvers.export.javascript.model_text import loops_text, methods_of

Way: TypeAlias = Literal["native", "python"]

#: The most milliseconds of a run in Node, and the largest ratio to native code.
MILLISECONDS, RATIO = 20.0, 2.0

_RUNS = """
const model = flexureModel();
const run = (count) => {
  const start = process.cpuUsage();
  for (let k = 0; k < count; k++) {
    const result = model.simulate(options);
    if (result.outcome !== "completed") throw new Error(result.message);
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / count / 1e6;
};
const first = run(1);
run(30);
console.log(JSON.stringify({ first, warm: run(100) }));
"""


def sampled_loop() -> fx.Diagram:
    """Build a plant under a sampled controller."""
    builder = fx.DiagramBuilder("loop")
    builder.add_all(
        fx.TransferFunction("plant", [1.0], [1.0, 0.6, 4.0]),
        fx.Step("target", at=0.5, to=1.0),
        fx.PIDController("pid", period=PERIOD, kp=8.0, ki=6.0, kd=2.0),
    )
    builder.connect("target.y", "pid.setpoint")
    builder.connect("plant.y", "pid.measurement")
    builder.connect("pid.u", "plant.u")
    return builder.build()


#: Makes a system; the method, the end in seconds and the signal.
WORKLOADS: dict[str, tuple[Callable[[], fx.System], str, float, str]] = {
    "door": (compliant_door.build, "auto", 10.0, "door.axis.angle"),
    "door, explicit": (compliant_door.build, "RK45", 10.0, "door.axis.angle"),
    "sampled loop": (sampled_loop, "RK45", 4.0, "plant.y"),
    "5 links in space": (lambda: build_plant(chain(5)), "DOP853", 2.0, "tree.x"),
}


def in_node(model: fx.results.JavaScriptModel, end: float, signal: str) -> dict[str, float]:
    """Return the seconds of the first run in Node, and of later ones."""
    node = shutil.which("node")
    if node is None:
        sys.exit("Node is not installed")
    options = {"tFinal": end, "samples": 500, "signals": [signal]}
    text = f"{model.text}\nconst options = {json.dumps(options)};\n{_RUNS}"
    done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def in_python(system: fx.System, method: str, end: float, signal: str, way: Way) -> float:
    """Return the seconds of a run in Python with its samples."""
    times = np.linspace(0.0, end, 500)
    found = []
    for _ in range(4 if way == "python" else 20):
        start = time.process_time()
        result = fx.simulate(system, end, method=method, compiled=way)
        result.sample(signal, times)
        found.append(time.process_time() - start)
    return min(found[1:])


def rows() -> Sequence[Row]:
    """Measure."""
    found = []
    for name, (make, method, end, signal) in WORKLOADS.items():
        system = make()
        model = fx.to_javascript(system, signals=[signal], method=method)
        node = in_node(model, end, signal)
        native = in_python(system, method, end, signal, "native")
        python = in_python(system, method, end, signal, "python")
        loops = len(loops_text(methods_of(method)))
        sizes = f"{len(model.text) / 1e3:.0f} kB, {loops / 1e3:.0f} of them loops"
        of = f"{name}, {method}"
        found += [
            Row(of, "JavaScript / native", node["warm"] / native, RATIO),
            Row(of, "first / native", node["first"] / native),
            Row(of, "Python / native", python / native),
            Row(of, "ms in Node", 1e3 * node["warm"], MILLISECONDS, note=sizes),
        ]
    return found


if __name__ == "__main__":
    print(formatted(rows()))
