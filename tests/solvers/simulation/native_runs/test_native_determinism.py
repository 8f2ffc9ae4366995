"""Native runs give the same bytes whenever and wherever they run on one machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.solvers.native.programs.program import Program
from tests.support.native.native import needs_llvmlite

pytestmark = needs_llvmlite

ROOT = Path(__file__).resolve().parents[4]
METHODS = ["RK23", "RK45", "DOP853", "DormandPrince", "Rodas5P"]


class Swing(fx.LeafSystem):
    """A driven pendulum with dry friction, sets of whose names would show any hash order."""

    def __init__(self, name: str, exponent: float = 1.5) -> None:
        super().__init__(name)
        self.exponent = exponent
        self.length = self.declare_numeric_parameter("length", 0.7)
        self.friction = self.declare_numeric_parameter("friction", 0.2)
        self.x = self.declare_continuous_state(q=1, v=1, default=[0.9, 0.0])
        self.swings = self.declare_discrete_state("swings", [0.0, 0.0])
        self.u = self.declare_vector_input("u", 1)
        self.y = self.declare_vector_output("y", 1, self.x.q, prerequisites=[self.x])
        self.declare_discrete_update(
            self.count, fx.diagrams.Witness(lambda context: self.x(context)[1], "falling")
        )

    def calc_time_derivatives(self, context: Any) -> Any:
        q, v = self.x(context)
        friction = self.friction(context) * np.tanh(50.0 * v) * np.abs(v) ** self.exponent
        return [v, self.u(context)[0] - 9.81 / self.length(context) * np.sin(q) - friction]

    def count(self, context: Any) -> Any:
        return {self.swings: [self.swings(context)[0] + 1.0, context.time]}


def swings() -> fx.Diagram:
    builder = fx.DiagramBuilder("swings")
    names = ["zeta", "alpha", "omega", "beta"]
    builder.add_all(
        fx.Sine("drive", frequency=3.0),
        fx.ZeroOrderHold("hold", 0.05),
        fx.Sum("load", "+-+-"),
        *(Swing(name) for name in names),
        fx.VectorLog("log", period=0.1),
    )
    builder.connect_chain("drive", "hold")
    for k, name in enumerate(names):
        builder.connect("hold.y", f"{name}.u")
        builder.connect(f"{name}.y", f"load.u{k + 1}")
    builder.connect("load.y", "log.u")
    return builder.build()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def bytes_of_a_run(method: str, change: Callable[[fx.Context], None] | None = None) -> str:
    """Run, and return a hash of all states, of states inside of steps, and of the log."""
    system = swings()
    context = system.create_default_context()
    if change is not None:
        change(context)
    result = fx.simulate(system, 3.0, context=context, method=method, compiled="native")
    log: Any = system.get_system("log")
    numbers = [
        result.time,
        *(result[f"{name}.x"].ravel() for name in ("zeta", "alpha", "omega", "beta")),
        *(result[f"{name}.swings"].ravel() for name in ("zeta", "alpha")),
        result.sample("omega.x", np.linspace(0.0, 3.0, 50)).ravel(),
        log.find_log(result.context).data.ravel(),
    ]
    return digest(np.concatenate(numbers).tobytes())


def report() -> dict[str, str]:
    """Return the bytes of runs."""
    return {method: bytes_of_a_run(method) for method in ("RK45", "Rodas5P")}


def report_of_a_process(cache: str, seed: str) -> dict[str, str]:
    """Return the report of a new process with a cache folder and a seed of hashes."""
    program = (
        "import json\n"
        "from tests.solvers.simulation.native_runs.test_native_determinism import report\n"
        "print(json.dumps(report()))\n"
    )
    environment = os.environ | {"FLEXURE_CACHE": cache, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", program]
    outcome = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(outcome.stdout)
    return found


def code_in(cache: Path) -> dict[str, bytes]:
    """Return what a cache keeps: the code by the name of its file, which stands for its text."""
    return {file.name: file.read_bytes() for file in cache.rglob("*") if file.is_file()}


@pytest.mark.full
def test_processes_caches_and_hash_seeds_change_no_byte(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    cold = report_of_a_process(str(one), "0")
    code = code_in(one)
    assert len(code) >= 5
    warm = report_of_a_process(str(one), "1")
    assert code_in(one) == code  # nothing was compiled
    elsewhere = report_of_a_process(str(other), "12345")
    assert code_in(other) == code
    assert cold == warm == elsewhere == report()


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
def test_a_run_can_be_repeated_to_the_last_bit(method: str) -> None:
    assert bytes_of_a_run(method) == bytes_of_a_run(method)


@pytest.mark.parametrize("path", ["zeta.length", "beta.friction"])
def test_another_parameter_is_seen_in_the_bytes(path: str) -> None:
    def change(context: fx.Context) -> None:
        context.set(path, np.nextafter(context.get(path), np.inf))

    assert bytes_of_a_run("RK45", change) != bytes_of_a_run("RK45")


def keys_of(system: fx.System, cache: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names under which the code of a system is in an empty cache."""
    monkeypatch.setenv("FLEXURE_CACHE", str(cache))
    program = Program(system.layout)
    program.attempt("RK45")
    program.jacobian()
    return set(code_in(cache))


def test_the_key_of_code_follows_the_equations_and_not_the_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = Swing("swing")
    longer.length.default = np.float64(1.3)
    systems = Swing("swing"), Swing("pendulum"), longer, Swing("swing", exponent=1.25)
    plain, renamed, changed, other = (
        keys_of(system, tmp_path / str(k), monkeypatch) for k, system in enumerate(systems)
    )
    assert plain == renamed == changed
    assert len(other) == len(plain) == 3
    assert not plain & other
