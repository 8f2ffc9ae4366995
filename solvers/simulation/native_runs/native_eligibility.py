"""The native way through a simulation, where there is one, and the reason where there is none.

Native code is imported where it is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexure.diagrams.checks.errors import FlexureError, NativeCodeError
from flexure.solvers.simulation.run_control.options import Compiled, wants_native

if TYPE_CHECKING:
    from flexure.solvers.native.programs.program import Program
    from flexure.solvers.simulation.native_runs.native_runner import NativeRunner
    from flexure.solvers.simulation.run_control.simulation_state import SimulationState

_MOST = 60  # clocks and witness functions that a mask has room for


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
        runner, obstacle = _find_runner(self._simulation, self.runner)
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


def _find_runner(
    simulation: SimulationState, runner: NativeRunner | None
) -> tuple[NativeRunner | None, str]:
    """Return the compiled loops for a simulation, or why there are none.

    Earlier ones for the same program restart.
    """
    from flexure.solvers.native.programs.programs import UnsuitableError, native_program
    from flexure.solvers.simulation.native_runs.native_runner import NativeRunner
    from flexure.solvers.tracing.trace_check import OTHER_NUMBERS

    try:
        program = native_program(simulation.store)
    except UnsuitableError as reason:
        return None, str(reason)
    if runner is None or runner.program is not program:
        if refusal := _refusal_of_events(simulation, program):
            return None, refusal
        runner = None
    try:
        runner = runner or NativeRunner(simulation, program)
        runner.begin()
        return (runner, "") if runner.agrees() else (None, OTHER_NUMBERS)
    except FlexureError as error:
        return None, str(error).removesuffix(".")


def _refusal_of_events(simulation: SimulationState, program: Program) -> str:
    """Return why the loops cannot run the events of a simulation; nothing where they can."""
    agenda, trace = simulation.agenda, program.trace
    if simulation.monitor is not None:
        return "a monitor reads every step"
    if not simulation.isolate:
        return "witness events are not isolated"
    for entry in agenda.per_step:
        if entry.is_update:
            return f"'{entry.event.label}' updates at every step"
    timed = [entry for _, entries in agenda.clocks for entry in entries]
    for entry in [*timed, *agenda.witnesses, *agenda.settling]:
        refusal = trace.refusals.get(entry.key)
        if refusal is not None and (entry in agenda.witnesses or entry.is_update):
            return f"'{entry.event.label}' cannot be traced ({refusal})"
    if trace.no_deviations:
        label = simulation.store.layout.root.label
        return f"{label} cannot be projected ({trace.no_deviations})"
    if trace.no_breaks:
        return trace.no_breaks
    if max(len(agenda.clocks), len(agenda.witnesses)) > _MOST:
        return f"there are more than {_MOST} clocks or witness functions"
    return ""
