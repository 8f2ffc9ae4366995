"""The native way through a simulation, where there is one, and the reason where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexure.diagrams.checks.errors import NativeCodeError
from flexure.solvers.simulation.run_control.options import Compiled, wants_native

if TYPE_CHECKING:
    from flexure.solvers.simulation.native_runs.native_runner import NativeRunner
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState


class NativeWay:
    """Finds the compiled loops for a simulation, and lets them carry it on."""

    def __init__(self, simulation: SimulationState, compiled: Compiled) -> None:
        self._simulation = simulation
        self._compiled = compiled
        self.runner: NativeRunner | None = None  # the compiled loops for the present values
        self._obstacle = ""  # where there are none

    def find(self) -> None:
        """Find the compiled loops for the present values, or why there are none."""
        if not wants_native(self._compiled):
            return
        from flexure.solvers.simulation.native_runs.native_conditions import find_runner

        runner, obstacle = find_runner(self._simulation, self.runner)
        lack = runner.unsuitable if runner is not None and not runner.is_possible() else obstacle
        if lack and self._compiled == "native":
            raise NativeCodeError(
                f"Cannot simulate '{self._simulation.system.label}' with native code",
                expected="a diagram and a method that have native code",
                found=lack,
                remedy="Keep compiled=True, which uses native code where possible",
            )
        self.runner, self._obstacle = runner, lack

    def advance(self, boundary: float) -> bool:
        """Take steps by compiled loops; tell whether that led anywhere."""
        runner = self.runner
        if runner is not None and not runner.fits:
            self.find()
            runner = self.runner
        simulation = self._simulation
        if runner is None or simulation.events.updated or boundary <= simulation.store.time:
            return False
        return runner.is_possible() and runner.advance(boundary)

    @property
    def how(self) -> str:
        """How the equations were evaluated, in words."""
        statistics, how = self._simulation.statistics, self._simulation.derivatives.how
        if not wants_native(self._compiled):
            return how
        if self.runner is None:
            return f"{how}; no native code, because {self._obstacle}"
        if statistics.native_steps == statistics.steps:
            return self.runner.how
        if statistics.native_steps:
            return f"{self.runner.how}; for some steps {how}"
        return f"{how}; no native code, because {self.runner.unsuitable}"
