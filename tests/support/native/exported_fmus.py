"""Functional Mock-up Units in tests: diagrams to export, and runs in FMPy."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

import flexure as fx
from flexure.solvers.export.fmi import compilers

fmpy = pytest.importorskip("fmpy", reason="FMUs run in FMPy (pip install 'flexure[fmi]')")
if shutil.which("gcc") is None and shutil.which("cc") is None:
    pytest.skip("FMUs need gcc or cc", allow_module_level=True)

FloatArray = npt.NDArray[np.float64]
KINDS = {"me": "ModelExchange", "cs": "CoSimulation"}
#: How far a run may be from that of `simulate`, in relative tolerances.
ALLOWED = {"me": 10.0, "cs": 100.0}


def door() -> fx.Plant:
    """Return a door with a hinge and a motor."""
    plant = fx.PlantBuilder("door", gravity=(0, 0, -9.81))
    box = fx.SpatialInertia.solid_box(mass=9.0, size=(0.02, 0.6, 0.7))
    panel = plant.add_body("panel", box, com=(0, 0.3, 0))
    axis = plant.add_joint(fx.RevoluteJoint("axis", plant.world, panel, axis=(0, 0, 1)))
    plant.add_force_element(fx.DoorHinge("hinge", axis, spring_constant=3.0))
    plant.add_actuator("motor", axis)
    return plant.build()


def _loop(name: str, pid: fx.LeafSystem) -> fx.Diagram:
    builder = fx.DiagramBuilder(name)
    builder.add_all(door(), fx.Step("target", at=0.5, to=1.0), pid)
    builder.connect("target.y", "pid.setpoint")
    builder.connect("door.axis.angle", "pid.measurement")
    builder.connect("pid.u", "door.motor")
    return builder.build()


def servo() -> fx.Diagram:
    """Return the door under a PID controller."""
    return _loop("servo", fx.PIDController("pid", kp=60.0, ki=60.0, kd=12.0))


def sampled() -> fx.Diagram:
    """Return the door under a sampled PID controller."""
    return _loop("sampled", fx.PIDController("pid", kp=60.0, ki=60.0, kd=12.0, period=0.02))


class Ball(fx.LeafSystem):
    """A ball that bounces."""

    def __init__(self, name: str = "ball") -> None:
        super().__init__(name)
        self.state = self.declare_continuous_state(q=1, v=1, default=[1.0, 0.0])
        self.e = self.declare_numeric_parameter("restitution", 0.65, lower=0.0, upper=1.0)
        falls = fx.diagrams.Witness(lambda c: self.state(c)[0], "falling")
        self.declare_unrestricted_update(self.bounce, falls)
        self.declare_vector_output("height", 1, self.state.q, unit="m")

    def calc_time_derivatives(self, context: fx.Context) -> Any:
        return [self.state.v(context), -3.7]

    def bounce(self, context: fx.Context) -> Any:
        height, speed = self.state(context)
        return {self.state: [height, -self.e(context) * speed]}


def saved(
    folder: Path, system: fx.System, context: fx.Context | None = None, **options: Any
) -> str:
    """Export a system into a folder, compiled in little time, and return the path of the file."""
    path = folder / f"{system.name}{options.get('version', '2.0')[0]}.fmu"
    plain = tuple("-O0" if each == "-O2" else each for each in compilers.OPTIONS)
    with patch.object(compilers, "OPTIONS", plain):
        fx.to_fmu(system, context, **options).save(path)
    return str(path)


def run(path: str, kind: str, end: float, rtol: float, **options: Any) -> Any:
    """Run a unit in FMPy, and return its table."""
    options = {"output_interval": end / 97.0} | options
    return fmpy.simulate_fmu(
        path, fmi_type=KINDS[kind], stop_time=end, relative_tolerance=rtol, **options
    )


def instance(path: str, folder: Path, kind: str = "me", name: str = "one") -> Any:
    """Return an instance of a unit whose initialization is over, and its value references."""
    description = fmpy.read_model_description(path)
    unpacked = fmpy.extract(path, unzipdir=folder / f"{Path(path).stem}-{name}")
    unit = fmpy.instantiate_fmu(unpacked, description, KINDS[kind])
    if description.fmiVersion == "2.0":
        unit.setupExperiment(startTime=0.0, tolerance=1e-8)
        unit.enterInitializationMode()
    else:
        unit.enterInitializationMode(startTime=0.0, tolerance=1e-8)
    unit.exitInitializationMode()
    return unit, {each.name: each.valueReference for each in description.modelVariables}


def exact_run(
    system: fx.System, context: fx.Context, end: float, rtol: float = 1e-11
) -> fx.results.SimulationResult:
    """Return a reference: a run with `simulate` of a much smaller tolerance."""
    return fx.simulate(system, end, context=context, rtol=rtol, atol=1e-3 * rtol)


def worst_error(table: Any, exact: fx.results.SimulationResult, paths: Sequence[str]) -> float:
    """Return the largest error of signals, relative to their size, away from their jumps."""
    times = np.asarray(table["time"])
    apart = np.diff(times) > 0.0
    alone = np.concatenate([[True], apart]) & np.concatenate([apart, [True]])
    alone &= times < exact.time[-1] - 1e-9  # where a clock may tick
    worst = 0.0
    for path in paths:
        expected = np.asarray(exact.sample(path, times[alone]))
        found = np.asarray(table[path])[alone].reshape(expected.shape)
        size = max(1e-3, float(np.abs(expected).max(initial=0.0)))
        worst = max(worst, float(np.abs(found - expected).max(initial=0.0)) / size)
    return worst
