"""A new process that imports a library, builds the controlled mass, and runs it: ours or Drake's.

``python -m benchmarks.versus.cold ours|drake`` is such a process; `processor_seconds` times it. An
installation compiles Python modules once and for all, and so does the first process of a side: from
then on, neither side compiles any, whatever the settings are under which the benchmark runs.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.versus.workloads import ControlledMass

ROOT = Path(__file__).parents[2]


def ours() -> None:
    """Run with default settings, but at a tolerance that meets the target."""
    import flexure as fx
    from benchmarks.versus.ours import build

    workload = ControlledMass()
    fx.Simulator(build(workload), rtol=3e-7, atol=3e-7).advance_to(workload.horizon)


def drake() -> None:
    """Run at an accuracy that meets the target."""
    from benchmarks.versus.drake_models import composed_pid
    from benchmarks.versus.drake_side import Setting, run

    workload = ControlledMass()
    run(workload, composed_pid(workload), Setting("runge_kutta5", step=5e-3))


def processor_seconds(side: str) -> float:
    """Return the processor time of one process, its start included."""
    import resource  # which not every operating system has

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    command = [sys.executable, "-m", "benchmarks.versus.cold", side]
    environment = _environment()
    before = spent()
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return spent() - before


@cache
def _environment() -> dict[str, str]:
    """Return this environment with a folder for compiled modules, deleted with this process."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = os.environ | {"PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


if __name__ == "__main__":
    {"ours": ours, "drake": drake}[sys.argv[1]]()
